//! `db migrate`: migrates the schema of the log, as opening the log does.

use serde_json::json;

use crate::context::Session;
use crate::ui::failure::{Code, Failure};

pub async fn migrate(session: &Session) -> Result<Code, Failure> {
    // Opening brings the schema up to date, or says why that cannot be.
    let log = session.place.open().await?.log().await?;
    let store = session.place.shown();
    let text = format!("{store} is up to date (log {}, format {})", log.id, log.format);
    session.print_done(&text, &json!({ "store": store, "log": log.id, "format": log.format }))
}
