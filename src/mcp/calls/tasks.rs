//! Tasks of the open plans.

use std::time::Duration;

use crewlog_executors::crew::{NewTask, Taken, TaskState, TaskSummary, TaskUpdate};
use crewlog_planner::claim::TaskProgress;
use crewlog_planner::crew::agents::{Activity, Report};
use crewlog_planner::event::TaskInput;
use rmcp::model::JsonObject;
use serde_json::{Value, json};

use super::leases::{blocked_json, lease_json, note_blocked};
use super::{entry, object};
use crate::mcp::args::{Args, strings};
use crate::mcp::identity::Member;
use crate::mcp::reply::{Refused, beginning, page};
use crate::mcp::server::Server;

/// The longest notes of a task in a result, in characters together.
const NOTES_CHARS_MAX: usize = 3_000;

impl Server {
    pub async fn next_task(&self, member: &Member, args: &Args) -> Result<JsonObject, Refused> {
        if !args.flag("claim") {
            let Some(task) = self.crew().suggest(&member.caller).await? else { return Ok(no_task(&[])) };
            return Ok(object(json!({ "status": "suggested", "task": summary_json(&task) })));
        }
        let reserve = reserve_for(args);
        let (mut taken, mut passed) = self.crew().next_task(&member.caller, reserve).await?;
        if taken.is_none() {
            // Tasks and leases of agents that are dead are free at once.
            self.crew().fire_timers().await?;
            (taken, passed) = self.crew().next_task(&member.caller, reserve).await?;
        }
        match taken {
            Some(taken) => taken_json(member, &taken),
            None => Ok(no_task(&passed)),
        }
    }

    pub async fn claim_task(&self, member: &Member, args: &Args) -> Result<JsonObject, Refused> {
        let taken = self.crew().claim(&member.caller, &args.string("id"), reserve_for(args)).await?;
        taken_json(member, &taken)
    }

    pub async fn update_task(&self, member: &Member, args: &Args) -> Result<JsonObject, Refused> {
        let (id, note) = (args.string("id"), args.owned("note"));
        let (step, next_step) = (args.owned("step"), args.owned("next_step"));
        let progress = TaskProgress { step: step.clone(), next_step, note: note.clone() };
        let (update, activity) = match args.text("status") {
            Some("done") => (TaskUpdate::Done(note.unwrap_or_else(|| "done".to_owned())), None),
            Some("failed") => {
                let error = args.owned("error").or(note).unwrap_or_else(|| "it failed".to_owned());
                (TaskUpdate::Failed(error), None)
            }
            Some("released") => (TaskUpdate::Released(note.unwrap_or_default(), progress), None),
            Some("blocked") => (TaskUpdate::Progress(progress), Some(Activity::Blocked)),
            Some(_) | None => (TaskUpdate::Progress(progress), Some(Activity::Working)),
        };
        let released = self.crew().update_task(&member.caller, &id, update).await?;
        if let Some(activity) = activity {
            let report = Report { activity, task: Some(id.clone()), step, ..Report::default() };
            self.crew().report(&member.caller, report).await?;
        }
        Ok(object(json!({ "status": "ok", "task": id, "leases_released": released })))
    }

    pub async fn create_tasks(&self, member: &Member, args: &Args) -> Result<JsonObject, Refused> {
        let text = |task: &JsonObject, name: &str| task.get(name).and_then(Value::as_str).map(str::to_owned);
        let new = |task: &JsonObject| NewTask {
            key: text(task, "key").unwrap_or_default(),
            title: text(task, "title").unwrap_or_default(),
            description: text(task, "description"),
            priority: text(task, "priority"),
            files: strings(task.get("files")),
            depends_on: strings(task.get("depends_on")),
        };
        let tasks: Vec<_> = args.objects("tasks").map(new).collect();
        if tasks.is_empty() || tasks.iter().any(|task| task.title.trim().is_empty()) {
            return Err(Refused::invalid("invalid_argument", "tasks has at least one task, and each has a title"));
        }
        let made = self.crew().create_tasks(&member.caller, tasks).await?;
        let (tasks, has_more) = page(made, usize::MAX, |(key, id)| json!({ "key": key, "id": id }));
        let note = has_more.then_some("all tasks were made; the list was shortened");
        Ok(object(json!({ "status": "created", "tasks": tasks, "note": note })))
    }

    pub async fn list_tasks(&self, args: &Args) -> Result<JsonObject, Refused> {
        let (state, assignee) = (args.choice::<TaskState>("state"), args.text("assignee"));
        let limit = args.number("limit").unwrap_or(usize::MAX);
        let after: usize = args.number("cursor").unwrap_or(0);
        let tasks = self.crew().tasks(state).await?;
        let tasks = tasks.iter().filter(|task| assignee.is_none() || task.assignee.as_deref() == assignee);
        let (tasks, has_more) = page(tasks.skip(after), limit, summary_json);
        let next = has_more.then(|| after + tasks.len());
        Ok(object(json!({ "status": "ok", "tasks": tasks, "has_more": has_more, "next_cursor": next })))
    }
}

fn reserve_for(args: &Args) -> Option<Duration> {
    args.flag("reserve").then(|| args.seconds("ttl_seconds"))
}

fn summary_json(task: &TaskSummary) -> Value {
    serde_json::to_value(task).expect("texts are JSON")
}

fn no_task(passed: &[(String, Taken)]) -> JsonObject {
    let why = |taken: &Taken| match taken {
        Taken::Claimed { .. } => "claimed".to_owned(),
        Taken::Held { holder } => format!("{holder} has it"),
        Taken::Blocked { blocked } => blocked.first().map(ToString::to_string).unwrap_or_default(),
        Taken::Parked => "it waits for the person".to_owned(),
        Taken::NotReady { .. } => "it cannot be started now".to_owned(),
    };
    let (why_not, _) = page(passed, 20, |(id, taken)| json!({ "id": id, "why": why(taken) }));
    let next = "call wait_for_events with kinds task, or leave if your work is over";
    object(json!({ "status": "none", "why_not": why_not, "next": next }))
}

fn taken_json(member: &Member, taken: &Taken) -> Result<JsonObject, Refused> {
    const OTHER: &str = "take another with next_task";
    match taken {
        Taken::Claimed { id, input, progress, leases, is_own } => {
            let (leases, has_more) = page(leases, 20, |(number, lease)| lease_json(*number, lease));
            Ok(object(json!({
                "status": if *is_own { "already_yours" } else { "claimed" },
                "task": work_json(id, input, progress.as_ref()),
                "leases": leases,
                "note": has_more.then_some("you hold more leases: call list_leases"),
            })))
        }
        Taken::Held { holder } => {
            let refused = Refused::new("taken", format!("{holder} has the task"), OTHER).retryable();
            Err(refused.with_status("taken").with("holder", json!(holder)))
        }
        Taken::Blocked { blocked } => {
            note_blocked(member, blocked);
            let why = blocked.first().map(ToString::to_string).unwrap_or_default();
            let next = "take another with next_task, or wait with wait_for_events for the leases on its files";
            let (denied, _) = page(blocked, 20, blocked_json);
            Err(Refused::new("held", why, next).retryable().with_status("blocked").with("denied", json!(denied)))
        }
        Taken::Parked => {
            let why = "agents were lost with the task again and again: it waits for the person";
            Err(Refused::new("parked", why, OTHER).with_status("parked"))
        }
        Taken::NotReady { state } => {
            let state: &str = state.into();
            let why = format!("the task cannot be started: it is {state}");
            Err(Refused::new("not_ready", why, OTHER).retryable().with_status("not_ready"))
        }
    }
}

fn work_json(id: &str, input: &TaskInput, progress: Option<&TaskProgress>) -> Value {
    let progress = progress.cloned().unwrap_or_default();
    let mut chars_left = NOTES_CHARS_MAX;
    let notes = input.notes.iter().map(|note| {
        let note = beginning(note, chars_left);
        chars_left = chars_left.saturating_sub(note.chars().count());
        note
    });
    entry(json!({
        "id": id,
        "title": beginning(&input.description, 2_000),
        "notes": notes.filter(|note| note != "...").collect::<Vec<_>>(),
        "files": input.files,
        "step": progress.step,
        "next_step": progress.next_step,
        "progress_note": progress.note,
    }))
}
