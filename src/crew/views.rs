//! `stats`.

use crewlog_mq::Position;
use serde_json::json;

use super::facts;
use super::session::views;
use crate::failure::{Code, Failure};
use crate::session::Session;

pub async fn stats(session: &Session, project: Option<String>, at: Option<Position>) -> Result<Code, Failure> {
    let as_of = views(session).await?.as_of(at).await?;
    let projects = as_of.statistics(project).await?;
    facts::print_list(session, "projects", json!({ "at": as_of.at }), &projects, &["project"], &[])
}
