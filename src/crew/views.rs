//! `stats`, `conflicts`: folds of the log from their last snapshot, correct even when no host runs the projections.

use std::collections::BTreeMap;

use crewlog_executors::projecting::Projected;
use crewlog_executors::reacting::fold;
use crewlog_mq::{EventStore, Position};
use crewlog_planner::crew::conflicts::{ConflictEvent, Conflicts, Holder, Moment, TaskRef};
use crewlog_planner::crew::statistics::Statistics;
use crewlog_planner::event::plan_tag;
use futures::future::OptionFuture;
use serde_json::{Value, json};

use super::facts;
use crate::failure::{Code, Failure};
use crate::json::ProjectJson;
use crate::queries::{find_plan, reached};
use crate::session::Session;
use crate::text::rfc3339;

pub async fn stats(session: &Session, project: Option<String>, at: Option<Position>) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let at = reached(&store, at).await?;
    let mut statistics = Projected::<Statistics>::read(&store, Some(at)).await?;
    statistics.keep().await;
    let (at, statistics) = (statistics.at, statistics.state);
    let projects = match project {
        Some(project) => vec![ProjectJson { figures: statistics.of(&project), project }],
        None => statistics.figures().map(|(name, figures)| ProjectJson { project: name.to_owned(), figures }).collect(),
    };
    let projects = projects.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
    let facts = json!({ "at": at });
    session.print_list(
        "projects",
        facts,
        &projects,
        |project| project,
        |to, project| facts::print(to, project, &["project"], &[]),
    )
}

pub async fn conflicts(
    session: &Session,
    plan: Option<&str>,
    all: bool,
    at: Option<Position>,
) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let plan = OptionFuture::from(plan.map(|plan| find_plan(&store, plan))).await.transpose()?;
    let at = reached(&store, at).await?;
    let mut open = Projected::<Conflicts>::read(&store, Some(at)).await?;
    open.keep().await;
    let (at, tag) = (open.at, plan.as_deref().map(plan_tag));
    let mut found = match all {
        true => load_all(&store, at, tag.as_ref()).await?,
        false => {
            let open = open.state.open().filter(|(_, open)| tag.as_ref().is_none_or(|tag| open.tags.contains(tag)));
            open.filter_map(|(project, open)| conflict(project, &open.detected, open.since)).collect()
        }
    };
    let key = |found: &Value| (found["position"].as_i64(), found["project"].to_string(), found["conflict"].as_u64());
    found.sort_by_key(key);
    let facts = json!({ "at": at });
    session.print_list(
        "conflicts",
        facts,
        &found,
        |found| found,
        |to, found| facts::print(to, found, &["pattern"], &[]),
    )
}

/// All conflicts up to a position, of one plan or of all; the resolved ones are in the whole history alone.
async fn load_all(store: &EventStore, at: Position, tag: Option<&String>) -> Result<Vec<Value>, Failure> {
    let mut known: BTreeMap<(String, u64), Value> = BTreeMap::new();
    fold::<Conflicts>(store, at, |cause, said| {
        if tag.is_some_and(|tag| !said.tags.contains(tag)) {
            return;
        }
        let since = Moment { position: cause.position, at: cause.created_at };
        match &said.event {
            ConflictEvent::ConflictDetected { conflict: number, .. } => {
                let found = conflict(&said.project, &said.event, since);
                known.extend(found.map(|found| ((said.project.clone(), *number), found)));
            }
            ConflictEvent::ConflictResolved { conflict, by: TaskRef { plan, task }, resolution } => {
                if let Some(found) = known.get_mut(&(said.project.clone(), *conflict)) {
                    found["resolved"] = json!({
                        "position": since.position, "since": rfc3339(since.at), "plan": plan, "task": task.to_string(),
                        "resolution": resolution,
                    });
                }
            }
        }
    })
    .await?;
    Ok(known.into_values().collect())
}

/// A conflict that is not resolved yet.
fn conflict(project: &str, detected: &ConflictEvent, since: Moment) -> Option<Value> {
    let ConflictEvent::ConflictDetected { conflict, pattern, holders, n_holders } = detected else { return None };
    let holders = holders.iter().map(|Holder { plan, task, executor, patterns }| {
        json!({ "plan": plan, "task": task.to_string(), "executor": executor.to_string(), "patterns": patterns })
    });
    Some(json!({
        "project": project, "conflict": conflict, "position": since.position, "since": rfc3339(since.at),
        "pattern": pattern, "holders": holders.collect::<Vec<_>>(), "n_holders": n_holders, "resolved": null,
    }))
}
