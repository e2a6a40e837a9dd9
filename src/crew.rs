//! Looking at the crew: `stats`, `conflicts`. They fold the log themselves, so they are right where nothing hosts the
//! processes that append the same. Nothing here appends or executes anything.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};

use crewlog_executors::reacting::fold;
use crewlog_mq::{EventStore, Position};
use crewlog_planner::crew::conflicts::{ConflictEvent, Conflicts};
use crewlog_planner::crew::statistics::{Figures, Statistics};
use crewlog_planner::event::plan_tag;

use crate::cli::{self, Output};
use crate::failure::{Code, Failure};
use crate::json::{
    ConflictJson, ConflictsJson, HolderJson, ProjectJson, ResolvedJson, StatsJson, print_line, print_pretty,
};
use crate::look::find_plan;
use crate::session::Session;
use crate::text::{count, one_line, rfc3339, visible};

/// `stats`.
pub async fn stats(session: &Session, stats: &cli::Stats) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let at = position(&store, stats.at).await?;
    let statistics = fold::<Statistics>(&store, at, |_, _| {}).await?;
    let projects = statistics.figures().map(|(name, figures)| ProjectJson { project: name.to_owned(), figures });
    let projects = projects.collect::<Vec<_>>();
    let mut stdout = BufWriter::new(std::io::stdout().lock());
    match session.output {
        Output::Json => print_pretty(&mut stdout, &StatsJson { at, projects })?,
        Output::Jsonl => {
            for project in projects {
                print_line(&mut stdout, &project)?;
            }
        }
        Output::Text => {
            for project in projects {
                print_figures(&mut stdout, at, &project)?;
            }
        }
    }
    stdout.flush()?;
    Ok(Code::Done)
}

/// The position that a view is as of.
async fn position(store: &EventStore, asked: Option<i64>) -> Result<Position, Failure> {
    let head = store.head().await?;
    Ok(match asked {
        Some(asked) => store.whole(Position(asked).min(head)).await?,
        None => head,
    })
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
    line("Most active kind", &figures.most_active_kind)
}

/// `conflicts`.
pub async fn conflicts(session: &Session, conflicts: &cli::Conflicts) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let plan = match &conflicts.plan {
        Some(plan) => Some(find_plan(&store, plan).await?),
        None => None,
    };
    let at = position(&store, conflicts.at).await?;
    let found = load(&store, at, plan.as_deref(), conflicts.all).await?;
    let mut stdout = BufWriter::new(std::io::stdout().lock());
    match session.output {
        Output::Json => print_pretty(&mut stdout, &ConflictsJson { at, conflicts: found })?,
        Output::Jsonl => {
            for conflict in found {
                print_line(&mut stdout, &conflict)?;
            }
        }
        Output::Text => {
            for conflict in found {
                print_conflict(&mut stdout, &conflict)?;
            }
        }
    }
    stdout.flush()?;
    Ok(Code::Done)
}

/// The conflicts as of a position, of one plan or of all, the oldest first.
async fn load(store: &EventStore, at: Position, plan: Option<&str>, all: bool) -> Result<Vec<ConflictJson>, Failure> {
    let tag = plan.map(plan_tag);
    let mut known: BTreeMap<(String, u64), ConflictJson> = BTreeMap::new();
    let mut resolved = Vec::new();
    fold::<Conflicts>(store, at, |cause, said| {
        if tag.as_ref().is_some_and(|tag| !said.tags.contains(tag)) {
            return;
        }
        let (position, since, project) = (cause.position, rfc3339(cause.created_at), said.project);
        match said.event {
            ConflictEvent::ConflictDetected { conflict, pattern, holders, n_holders } => {
                let holders = holders.into_iter().map(HolderJson::of).collect();
                let key = (project.clone(), conflict);
                let found =
                    ConflictJson { project, conflict, position, since, pattern, holders, n_holders, resolved: None };
                known.insert(key, found);
            }
            ConflictEvent::ConflictResolved { conflict, by, resolution } => {
                let found = known.remove(&(project, conflict)).filter(|_| all);
                let (plan, task, resolution) = (by.plan, by.task.to_string(), resolution.as_str());
                let how = ResolvedJson { position, since, plan, task, resolution };
                resolved.extend(found.map(|found| ConflictJson { resolved: Some(how), ..found }));
            }
        }
    })
    .await?;
    let mut found = resolved.into_iter().chain(known.into_values()).collect::<Vec<_>>();
    found.sort_by(|a, b| (a.position, &a.project, a.conflict).cmp(&(b.position, &b.project, b.conflict)));
    Ok(found)
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
