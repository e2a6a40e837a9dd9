//! `why`: what is known about an agent, a task or a file, in a few lines.

use crewlog_executors::crew::{Crew, TaskState, TaskSummary};
use crewlog_mq::{Position, Query, Range};
use crewlog_planner::crew::agents::{Agent, Agents};
use crewlog_planner::crew::asks::Asks;
use crewlog_planner::crew::leases::{self, LeaseEvent};
use crewlog_planner::crew::messages::Messages;
use crewlog_planner::crew::target::Target;
use serde_json::{Value, json};

use super::facts;
use super::session::open;
use super::verbs::{agent_json, shown, target};
use crate::failure::{Code, Failure};
use crate::queries::reached;
use crate::session::Session;
use crate::text::rfc3339;

/// Edits that are named, the newest first.
const EDITS_MAX: usize = 5;

pub async fn why(session: &Session, what: &str, at: Option<Position>) -> Result<Code, Failure> {
    let crew = open(session).await?;
    let position = reached(crew.store(), at).await?;
    let (agents, tasks) = (crew.at::<Agents>(at).await?, crew.tasks_at(position).await?);
    if let Some(agent) = agents.get(what) {
        return about_agent(session, &crew, what, agent, &tasks, at, position).await;
    }
    let leases = crew.at::<leases::Leases>(at).await?;
    match tasks.iter().find(|task| task.id == what) {
        Some(task) => about_task(session, &leases, task, position),
        None => about_file(session, &crew, &leases, what, position).await,
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
    let leases = crew.at::<leases::Leases>(at).await?;
    let asks = crew.at::<Asks>(at).await?;
    let asked = asks.open().filter(|(_, open)| open.ask.agent == name);
    let mut json = agent_json(name, agent);
    json["at"] = json!(position);
    json["tasks"] = json!(tasks);
    json["leases"] = json!(shown(&leases, |agent, _, _| agent == name));
    json["n_unread"] = json!(crew.at::<Messages>(at).await?.unread(name).count());
    json["questions"] =
        asked.map(|(number, open)| json!({ "id": format!("a{number}"), "text": open.ask.text })).collect();
    session.print(&json, |to| facts::print(to, &json, &["agent"], &[]))
}

fn about_task(
    session: &Session,
    leases: &leases::Leases,
    task: &TaskSummary,
    position: Position,
) -> Result<Code, Failure> {
    let TaskSummary { id, title, state, assignee, priority, files, depends_on, step, next_step } = task;
    let parked = (*state == TaskState::Parked).then(|| id.rsplit_once('/')).flatten();
    let settled_by = parked.map(|(plan, name)| format!("{} {name}", session.command_on("resume", plan)));
    let json = json!({
        "at": position, "task": id, "title": title, "state": state, "assignee": assignee, "priority": priority,
        "files": files, "depends_on": depends_on, "step": step, "next_step": next_step, "settled_by": settled_by,
        "leases": shown(leases, |_, _, task| task == Some(id)),
    });
    session.print(&json, |to| facts::print(to, &json, &["task"], &[]))
}

async fn about_file(
    session: &Session,
    crew: &Crew,
    leases: &leases::Leases,
    what: &str,
    position: Position,
) -> Result<Code, Failure> {
    let target = target(session, what)?;
    let held = shown(leases, |_, held, _| target.overlaps(held));
    let edits = edits(crew, &target, position).await?;
    let is_known = target.is_pattern || session.folder.join(what).symlink_metadata().is_ok();
    if held.is_empty() && edits.is_empty() && !is_known {
        let missing = Failure::new(Code::Nothing, format!("there is no agent, task or file {what}"));
        return Err(missing.hint(session.command("agents")).hint(session.command("ls")));
    }
    let json = json!({ "at": position, "path": target.path, "leases": held, "edits": edits });
    session.print(&json, |to| facts::print(to, &json, &["path"], &[]))
}

/// The last refused edits of a file and changes without a lease, the newest first.
async fn edits(crew: &Crew, target: &Target, up_to: Position) -> Result<Vec<Value>, Failure> {
    let of_edits = Query::aggregate(leases::STREAM, crew.project()).of_types(["EditRefused", "UnleasedEdit"]);
    let (mut found, mut rest) = (Vec::new(), Some(Range::up_to(up_to).backwards()));
    while let Some(range) = rest.filter(|_| found.len() < EDITS_MAX) {
        let page = crew.store().read(&of_edits, range, 500).await?;
        for recorded in &page.events {
            let event: LeaseEvent = recorded.decode()?;
            let (path, agent, lease, at) = match event {
                LeaseEvent::EditRefused { holder, target, lease, at } => {
                    (target.path, Some(holder.agent), Some(lease), at)
                }
                LeaseEvent::UnleasedEdit { path, agent, lease, at, .. } => (path, agent, lease, at),
                // The query gives no other.
                _another => continue,
            };
            let is_meant = Target::literal(&path).is_ok_and(|edited| target.overlaps(&edited));
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
