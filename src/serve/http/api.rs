//! The state shared by the handlers of the API.

use std::sync::Arc;

use crewlog_executors::crew::Crew;
use tokio::sync::Semaphore;

use crate::context::Session;
use crate::views::Views;

/// State shared by the handlers of `/api`.
pub struct Api {
    pub session: Session,
    pub crew: Arc<Crew>,
    pub views: Arc<Views>,
    pub streams: Arc<Semaphore>,
}
