//! `stats`, `conflicts`: folds of the log from their last snapshot, right also when no host runs the projections.

use std::collections::BTreeMap;
use std::io::Write;

use crewlog_executors::projecting::Projected;
use crewlog_executors::reacting::fold;
use crewlog_mq::{EventStore, Position};
use crewlog_planner::crew::conflicts::{ConflictEvent, Conflicts, Moment};
use crewlog_planner::crew::statistics::{Figures, Statistics};
use crewlog_planner::event::plan_tag;
use serde_json::json;

use crate::failure::{Code, Failure};
use crate::json::{ConflictJson, ProjectJson, ResolvedJson};
use crate::queries::find_plan;
use crate::session::Session;
use crate::text::{count, one_line, rfc3339, visible};

pub async fn stats(session: &Session, project: Option<String>, at: Option<Position>) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let mut statistics = Projected::<Statistics>::read(&store, at).await?;
    statistics.keep().await;
    let (at, statistics) = (statistics.at, statistics.state);
    let projects = match project {
        Some(project) => vec![ProjectJson { figures: statistics.of(&project), project }],
        None => {
            let all = statistics.figures().map(|(name, figures)| ProjectJson { project: name.to_owned(), figures });
            all.collect()
        }
    };
    session.print_list(
        "projects",
        json!({ "at": at }),
        &projects,
        |project| project,
        |to, project| print_figures(to, at, project),
    )
}

fn print_figures(mut to: impl Write, at: Position, project: &ProjectJson) -> std::io::Result<()> {
    let ProjectJson { project, figures } = project;
    let Figures { completed, failed, active, .. } = figures;
    writeln!(to, "{}  as of position {at}", visible(project))?;
    let mut line = |label: &str, value: &str| writeln!(to, "  {:<18}{value}", format!("{label}:"));
    line("Completed", &completed.to_string())?;
    line("Failed", &failed.to_string())?;
    line("Active", &active.to_string())?;
    line("Success rate", &format!("{} %", figures.success_rate))?;
    line("Mean duration", &format!("{} ms", figures.mean_duration_ms))?;
    line("Mean steps", &figures.mean_steps.to_string())?;
    line("Mean iterations", &figures.mean_iterations.to_string())?;
    line("Most active", &figures.most_active_executor)
}

pub async fn conflicts(
    session: &Session,
    plan: Option<&str>,
    all: bool,
    at: Option<Position>,
) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let plan = match plan {
        Some(plan) => Some(find_plan(&store, plan).await?),
        None => None,
    };
    let mut open = Projected::<Conflicts>::read(&store, at).await?;
    open.keep().await;
    let (at, tag) = (open.at, plan.as_deref().map(plan_tag));
    let found = match all {
        true => load_all(&store, at, tag.as_ref()).await?,
        false => {
            let open = open.state.open().filter(|open| tag.as_ref().is_none_or(|tag| open.tags.contains(tag)));
            sorted(open.filter_map(|open| ConflictJson::of(open.project, open.detected, open.since)))
        }
    };
    session.print_list("conflicts", json!({ "at": at }), &found, |found| found, |to, found| print_conflict(to, found))
}

/// All conflicts up to a position, of one plan or of all; the resolved ones are in the whole history alone.
async fn load_all(store: &EventStore, at: Position, tag: Option<&String>) -> Result<Vec<ConflictJson>, Failure> {
    let mut known: BTreeMap<(String, u64), ConflictJson> = BTreeMap::new();
    fold::<Conflicts>(store, at, |cause, said| {
        if tag.is_some_and(|tag| !said.tags.contains(tag)) {
            return;
        }
        let since = Moment { position: cause.position, at: cause.created_at };
        match &said.event {
            ConflictEvent::ConflictDetected { conflict, .. } => {
                let found = ConflictJson::of(&said.project, &said.event, since);
                known.extend(found.map(|found| ((said.project.clone(), *conflict), found)));
            }
            ConflictEvent::ConflictResolved { conflict, by, resolution } => {
                if let Some(found) = known.get_mut(&(said.project.clone(), *conflict)) {
                    let (plan, task, resolution) = (by.plan.clone(), by.task.to_string(), resolution.as_str());
                    let (position, since) = (since.position, rfc3339(since.at));
                    found.resolved = Some(ResolvedJson { position, since, plan, task, resolution });
                }
            }
        }
    })
    .await?;
    Ok(sorted(known.into_values()))
}

/// The oldest first.
fn sorted(conflicts: impl Iterator<Item = ConflictJson>) -> Vec<ConflictJson> {
    let mut found = conflicts.collect::<Vec<_>>();
    found.sort_by(|a, b| (a.position, &a.project, a.conflict).cmp(&(b.position, &b.project, b.conflict)));
    found
}

fn print_conflict(mut to: impl Write, conflict: &ConflictJson) -> std::io::Result<()> {
    let ConflictJson { project, conflict: number, position, since, pattern, holders, n_holders, resolved } = conflict;
    let (project, pattern) = (visible(project), one_line(pattern, 100));
    writeln!(to, "{project} {number}  {pattern}  since {since}, position {position}")?;
    for holder in holders {
        writeln!(to, "  {}", one_line(&holder.line(), 140))?;
    }
    let n_more = n_holders.saturating_sub(holders.len() as u64);
    if n_more > 0 {
        writeln!(to, "  and {}", count(usize::try_from(n_more).unwrap_or(usize::MAX), "more task"))?;
    }
    if let Some(ResolvedJson { position, since, plan, task, resolution }) = resolved {
        writeln!(to, "  resolved {since}, position {position}: {plan} task {task} {resolution}")?;
    }
    Ok(())
}
