//! `why`: what is known about an agent, a task or a file, in a few lines.

use crewlog_executors::crew::{Crew, TaskState, TaskSummary};
use crewlog_mq::{Position, Query, Range};
use crewlog_planner::crew::agents::Agent;
use crewlog_planner::crew::leases::{self, LeaseEvent};
use crewlog_planner::crew::target::Target;
use serde_json::{Value, json};

use super::session::open;
use super::verbs::{Shown, agent_json, position, print_agent, shown, target};
use crate::failure::{Code, Failure};
use crate::session::Session;
use crate::text::{count, one_line, rfc3339, visible};

/// Edits that are named, the newest first.
const EDITS_MAX: usize = 5;

pub async fn why(session: &Session, what: &str, at: Option<Position>) -> Result<Code, Failure> {
    let crew = open(session).await?;
    let position = position(&crew, at).await?;
    let (agents, tasks) = (crew.agents_at(at).await?, crew.tasks_at(position).await?);
    if let Some(agent) = agents.get(what) {
        return about_agent(session, &crew, what, agent, &tasks, at, position).await;
    }
    let leases = crew.leases_at(at).await?;
    match tasks.iter().find(|task| task.id == what) {
        Some(task) => about_task(session, &leases, task, position),
        None => about_file(session, &crew, &leases, &target(session, what)?, position).await,
    }
}

async fn about_agent(
    session: &Session,
    crew: &Crew,
    name: &str,
    agent: &Agent,
    tasks: &[TaskSummary],
    at: Option<Position>,
    position: Position,
) -> Result<Code, Failure> {
    let is_own = |task: &&TaskSummary| task.state == TaskState::Claimed && task.assignee.as_deref() == Some(name);
    let tasks: Vec<_> = tasks.iter().filter(is_own).map(|task| &task.id).collect();
    let leases = crew.leases_at(at).await?;
    let held: Vec<_> = shown(&leases, None).into_iter().filter(|shown| shown.agent() == name).collect();
    let n_unread = crew.messages_at(at).await?.unread(name).count();
    let asks = crew.asks_at(at).await?;
    let asked: Vec<_> = asks.open().filter(|(_, open)| open.ask.agent == name).collect();
    let questions = asked.iter().map(|(number, open)| json!({ "id": format!("a{number}"), "text": open.ask.text }));
    let mut json = agent_json(name, agent);
    json["at"] = json!(position);
    json["tasks"] = json!(tasks);
    json["leases"] = held.iter().map(Shown::json).collect();
    json["n_unread"] = json!(n_unread);
    json["questions"] = questions.collect();
    session.print(&json, |to| {
        print_agent(&mut *to, name, agent)?;
        if n_unread > 0 {
            writeln!(to, "  has {}", count(n_unread, "unread message"))?;
        }
        tasks.iter().try_for_each(|task| writeln!(to, "  works on {}", visible(task)))?;
        asked
            .iter()
            .try_for_each(|(number, open)| writeln!(to, "  asks a{number}: {}", one_line(&open.ask.text, 200)))?;
        held.iter().try_for_each(|shown| shown.print(&mut *to))
    })
}

fn about_task(
    session: &Session,
    leases: &leases::Leases,
    task: &TaskSummary,
    position: Position,
) -> Result<Code, Failure> {
    let held: Vec<_> = shown(leases, None).into_iter().filter(|shown| shown.task() == Some(&task.id)).collect();
    let state: &str = task.state.into();
    let TaskSummary { id, title, assignee, priority, files, depends_on, step, next_step, .. } = task;
    let json = json!({
        "at": position, "task": id, "title": title, "state": state, "assignee": assignee, "priority": priority,
        "files": files, "depends_on": depends_on, "step": step, "next_step": next_step,
        "leases": held.iter().map(Shown::json).collect::<Vec<_>>(),
    });
    session.print(&json, |to| {
        let by = assignee.as_ref().map_or_else(String::new, |name| format!(" by {name}"));
        writeln!(to, "{}  {state}{}: {}", visible(id), visible(&by), one_line(title, 200))?;
        if !depends_on.is_empty() {
            writeln!(to, "  waits for {}", one_line(&depends_on.join(", "), 140))?;
        }
        for (label, said) in [("step", step), ("next", next_step)] {
            said.iter().try_for_each(|said| writeln!(to, "  {label}: {}", one_line(said, 200)))?;
        }
        if task.state == TaskState::Parked
            && let Some((plan, name)) = id.rsplit_once('/')
        {
            let resume = session.command_on("resume", plan);
            writeln!(to, "  too many agents were lost with it: {resume} {name}")?;
        }
        held.iter().try_for_each(|shown| shown.print(&mut *to))
    })
}

async fn about_file(
    session: &Session,
    crew: &Crew,
    leases: &leases::Leases,
    target: &Target,
    position: Position,
) -> Result<Code, Failure> {
    let (held, edits) = (shown(leases, Some(target)), edits(crew, target, position).await?);
    let json = json!({
        "at": position, "path": target.path, "leases": held.iter().map(Shown::json).collect::<Vec<_>>(), "edits": edits,
    });
    session.print(&json, |to| {
        if held.is_empty() {
            writeln!(to, "nobody leases {}", one_line(&target.path, 100))?;
        }
        held.iter().try_for_each(|shown| shown.print(&mut *to))?;
        for edit in &edits {
            let (what, agent) =
                (edit["event"].as_str().unwrap_or_default(), edit["agent"].as_str().unwrap_or("somebody"));
            writeln!(to, "  {what} by {} at position {}", visible(agent), edit["position"])?;
        }
        Ok(())
    })
}

/// The last refused edits of a file and changes without a lease, the newest first.
async fn edits(crew: &Crew, target: &Target, up_to: Position) -> Result<Vec<Value>, Failure> {
    let of_edits = Query::aggregate(leases::STREAM, crew.project()).of_types(["EditRefused", "UnleasedEdit"]);
    let (mut found, mut rest, pattern) = (Vec::new(), Some(Range::up_to(up_to).backwards()), target.pattern());
    while let Some(range) = rest.filter(|_| found.len() < EDITS_MAX) {
        let page = crew.store().read(&of_edits, range, 500).await?;
        for recorded in &page.events {
            let event: LeaseEvent = recorded.decode()?;
            let (path, agent, lease, at) = match &event {
                LeaseEvent::EditRefused { holder, target, lease, at } => {
                    (target.path.clone(), Some(holder.agent.clone()), Some(*lease), *at)
                }
                LeaseEvent::UnleasedEdit { path, agent, lease, at, .. } => (path.clone(), agent.clone(), *lease, *at),
                LeaseEvent::LeasesGranted { .. }
                | LeaseEvent::LeasesQueued { .. }
                | LeaseEvent::WaitingEnded { .. }
                | LeaseEvent::LeasesRenewed { .. }
                | LeaseEvent::LeasesExtended { .. }
                | LeaseEvent::LeasesReleased { .. }
                | LeaseEvent::LeasesExpired { .. }
                | LeaseEvent::LeasesAbandoned { .. }
                | LeaseEvent::LeasesForced { .. } => continue,
            };
            let is_meant = Target::literal(&path).is_ok_and(|edited| edited.pattern().overlaps(&pattern));
            if is_meant && found.len() < EDITS_MAX {
                found.push(json!({
                    "event": recorded.event_type, "path": path, "agent": agent, "lease": lease,
                    "position": recorded.position, "at": rfc3339(at),
                }));
            }
        }
        rest = range.rest(&page);
    }
    Ok(found)
}
