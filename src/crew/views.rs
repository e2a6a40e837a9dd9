//! `stats`, `conflicts`.

use crewlog_mq::Position;
use futures::future::OptionFuture;
use serde_json::json;

use super::facts;
use super::session::views;
use crate::failure::{Code, Failure};
use crate::queries::find_plan;
use crate::session::Session;

pub async fn stats(session: &Session, project: Option<String>, at: Option<Position>) -> Result<Code, Failure> {
    let as_of = views(session).await?.as_of(at).await?;
    let projects = as_of.statistics(project).await?;
    facts::print_list(session, "projects", json!({ "at": as_of.at }), &projects, &["project"], &[])
}

pub async fn conflicts(
    session: &Session,
    plan: Option<&str>,
    all: bool,
    at: Option<Position>,
) -> Result<Code, Failure> {
    let as_of = views(session).await?.as_of(at).await?;
    let plan = OptionFuture::from(plan.map(|plan| find_plan(as_of.store(), plan))).await.transpose()?;
    let found = as_of.conflicts(plan.as_deref(), all).await?;
    facts::print_list(session, "conflicts", json!({ "at": as_of.at }), &found, &["pattern"], &[])
}
