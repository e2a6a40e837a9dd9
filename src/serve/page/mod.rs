//! The page for a person: the views of [`crate::views`] as HTML and SVG, live and as of any position. It only reads the
//! log: forms for commands post to `/do/`, which `src/http` answers.

mod asked;
mod crew;
mod document;
mod events;
mod forms;
mod frame;
mod graph;
mod inspector;
mod layers;
mod lists;
mod live;
mod look;
mod needs;
mod parts;
mod summary;
mod svg;
mod time;
mod timeline;
mod words;

use std::sync::Arc;

use axum::extract::{Query, RawPathParams, State};
use axum::http::HeaderMap;
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Json, Router};
use crewlog_mq::{Position, Range};
use futures::TryStreamExt;
use futures::future::ready;

pub use self::asked::encoded;
use self::asked::{Asked, Tab};
use self::document::{Rendered, asset};
pub use self::forms::Form;
pub use self::frame::Framed;
use self::live::Lives;
pub use self::look::Site;
use self::look::{Look, NoPage};
use crate::ui::failure::Failure;

type Pairs = Query<Vec<(String, String)>>;

/// The page and its files.
pub fn router(site: Arc<Site>) -> Router {
    let lives = Arc::new(Lives::new(site.clone()));
    let (mut pages, mut live) = (Router::new(), Router::new());
    for (path, tab) in Tab::paths() {
        let asked = move |parts: &RawPathParams, pairs: &Pairs| {
            let plan = parts.iter().find(|(name, _)| *name == "plan").map(|(_, plan)| plan);
            Asked::of(plan, tab, pairs)
        };
        let show = async move |State(site): State<Arc<Site>>, parts: RawPathParams, pairs: Pairs| {
            page(&site, &asked(&parts, &pairs), &pairs).await
        };
        let follow =
            async move |State(lives): State<Arc<Lives>>, headers: HeaderMap, parts: RawPathParams, pairs: Pairs| {
                follow(&lives, &headers, &asked(&parts, &pairs), &pairs)
            };
        pages = pages.route(&path, get(show));
        live = live.route(&path, get(follow));
    }
    let live = Router::new().nest("/live", live.with_state(lives));
    pages.with_state(site).merge(live).route("/assets/{name}", get(asset))
}

impl Site {
    /// The last position of an event's append: the first at which its effects show.
    async fn end_of_append(&self, position: Position) -> Result<Position, Failure> {
        let head = self.views.as_of(None).await?;
        let records =
            head.store().records(&crewlog_mq::Query::all(), Range::between(Position((position.0 - 1).max(0)), head.at));
        let append = records.try_take_while(move |event| ready(Ok(event.append_start <= position)));
        let last = append.try_fold(position, |_, event| ready(Ok(event.position))).await?;
        Ok(last.min(head.at))
    }

    async fn render(&self, asked: &Asked) -> Result<Rendered, NoPage> {
        Ok(Look::at(self, asked).await?.render().await?)
    }
}

async fn page(site: &Site, asked: &Asked, pairs: &[(String, String)]) -> Response {
    let is_part = pairs.iter().any(|(name, value)| name == "part" && value == "1");
    let answered = async {
        // A mark is shown as of the end of its append.
        if let Some(mark) = asked.number("mark") {
            let at = site.end_of_append(Position(mark)).await?.to_string();
            let link = asked.link(&[("mark", ""), ("at", &at)]);
            return Ok(Redirect::to(&if is_part { format!("{link}&part=1") } else { link }).into_response());
        }
        let page = site.render(asked).await?;
        Ok(if is_part { Json(page.json()).into_response() } else { Html(page.document().0).into_response() })
    };
    match answered.await {
        Ok(page) => page,
        Err(no_page) => site.no_page(no_page).await,
    }
}

fn follow(lives: &Arc<Lives>, headers: &HeaderMap, asked: &Asked, pairs: &[(String, String)]) -> Response {
    // The reader's content: its last message, or the page that it loaded.
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let seen = pairs.iter().find(|(name, _)| name == "seen").map(|(_, value)| value.as_str());
    lives.follow(asked, last.or(seen).and_then(|at| at.parse().ok())).into_response()
}

#[cfg(test)]
mod tests;
