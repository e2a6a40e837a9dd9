//! The pages for a person.

use std::sync::Arc;

use axum::Router;

use crate::views::Views;

/// What the pages are made of.
pub struct Site {
    pub views: Arc<Views>,
    pub command: Arc<dyn Fn(&str) -> String + Send + Sync>,
}

/// The routes of the pages.
pub fn router(site: Arc<Site>) -> Router {
    drop(site);
    Router::new()
}

/// The address of the stylesheet.
pub fn style() -> &'static str {
    "/assets/page.css"
}
