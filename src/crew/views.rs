//! `stats`, `conflicts`: folds of the log from their last snapshot, correct even when no host runs the projections.

use std::collections::BTreeMap;
use std::io::Write;

use crewlog_executors::projecting::Projected;
use crewlog_executors::reacting::fold;
use crewlog_mq::{EventStore, Position};
use crewlog_planner::crew::conflicts::{ConflictEvent, Conflicts, Holder, Moment, Resolution, TaskRef};
use crewlog_planner::crew::statistics::{Figures, Statistics};
use crewlog_planner::event::plan_tag;
use futures::future::OptionFuture;
use serde_json::{Value, json};

use crate::failure::{Code, Failure};
use crate::json::ProjectJson;
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
        None => statistics.figures().map(|(name, figures)| ProjectJson { project: name.to_owned(), figures }).collect(),
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
    let plan = OptionFuture::from(plan.map(|plan| find_plan(&store, plan))).await.transpose()?;
    let mut open = Projected::<Conflicts>::read(&store, at).await?;
    open.keep().await;
    let (at, tag) = (open.at, plan.as_deref().map(plan_tag));
    let mut found = match all {
        true => load_all(&store, at, tag.as_ref()).await?,
        false => {
            let open = open.state.open().filter(|open| tag.as_ref().is_none_or(|tag| open.tags.contains(tag)));
            open.filter_map(|open| Conflict::of(open.project, open.detected, open.since)).collect()
        }
    };
    found.sort_by(|a, b| (a.since.position, &a.project, a.number).cmp(&(b.since.position, &b.project, b.number)));
    session.print_list("conflicts", json!({ "at": at }), &found, Conflict::json, |to, found| found.print(to))
}

/// All conflicts up to a position, of one plan or of all; the resolved ones are in the whole history alone.
async fn load_all(store: &EventStore, at: Position, tag: Option<&String>) -> Result<Vec<Conflict>, Failure> {
    let mut known: BTreeMap<(String, u64), Conflict> = BTreeMap::new();
    fold::<Conflicts>(store, at, |cause, said| {
        if tag.is_some_and(|tag| !said.tags.contains(tag)) {
            return;
        }
        let since = Moment { position: cause.position, at: cause.created_at };
        match &said.event {
            ConflictEvent::ConflictDetected { conflict, .. } => {
                let found = Conflict::of(&said.project, &said.event, since);
                known.extend(found.map(|found| ((said.project.clone(), *conflict), found)));
            }
            ConflictEvent::ConflictResolved { conflict, by, resolution } => {
                if let Some(found) = known.get_mut(&(said.project.clone(), *conflict)) {
                    found.resolved = Some((since, by.clone(), *resolution));
                }
            }
        }
    })
    .await?;
    Ok(known.into_values().collect())
}

/// A conflict, and how it ended.
struct Conflict {
    project: String,
    number: u64,
    since: Moment,
    pattern: String,
    holders: Vec<Holder>,
    n_holders: u64,
    resolved: Option<(Moment, TaskRef, Resolution)>,
}

impl Conflict {
    fn of(project: &str, detected: &ConflictEvent, since: Moment) -> Option<Self> {
        let ConflictEvent::ConflictDetected { conflict, pattern, holders, n_holders } = detected.clone() else {
            return None;
        };
        Some(Self { project: project.to_owned(), number: conflict, since, pattern, holders, n_holders, resolved: None })
    }

    fn json(&self) -> Value {
        let Self { project, number, since, pattern, holders, n_holders, resolved } = self;
        let holders = holders.iter().map(|Holder { plan, task, executor, patterns }| {
            json!({ "plan": plan, "task": task.to_string(), "executor": executor.to_string(), "patterns": patterns })
        });
        let resolved = resolved.as_ref().map(|(since, TaskRef { plan, task }, resolution)| {
            json!({
                "position": since.position, "since": rfc3339(since.at), "plan": plan, "task": task.to_string(),
                "resolution": resolution,
            })
        });
        json!({
            "project": project, "conflict": number, "position": since.position, "since": rfc3339(since.at),
            "pattern": pattern, "holders": holders.collect::<Vec<_>>(), "n_holders": n_holders, "resolved": resolved,
        })
    }

    fn print(&self, mut to: impl Write) -> std::io::Result<()> {
        let Self { project, number, since: Moment { position, at }, pattern, holders, n_holders, resolved } = self;
        let (project, pattern, since) = (visible(project), one_line(pattern, 100), rfc3339(*at));
        writeln!(to, "{project} {number}  {pattern}  since {since}, position {position}")?;
        for Holder { plan, task, executor, patterns } in holders {
            let line = format!("{plan} task {task} by {executor}: {}", patterns.join(", "));
            writeln!(to, "  {}", one_line(&line, 140))?;
        }
        let n_more = usize::try_from(*n_holders).unwrap_or(usize::MAX).saturating_sub(holders.len());
        if n_more > 0 {
            writeln!(to, "  and {}", count(n_more, "more task"))?;
        }
        if let Some((Moment { position, at }, TaskRef { plan, task }, resolution)) = resolved {
            let (since, resolution) = (rfc3339(*at), resolution.as_str());
            writeln!(to, "  resolved {since}, position {position}: {plan} task {task} {resolution}")?;
        }
        Ok(())
    }
}
