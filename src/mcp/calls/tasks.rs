//! Tasks of the open plans.

use std::time::Duration;

use crewlog_executors::crew::{NewTask, Refusal, Taken, TaskState, TaskUpdate};
use crewlog_planner::claim::TaskProgress;
use crewlog_planner::crew::CrewError;
use crewlog_planner::crew::agents::{Activity, Report};
use crewlog_planner::event::TaskInput;
use rmcp::model::JsonObject;
use serde_json::{Value, json};

use super::lease_json;
use crate::mcp::args::{Args, read};
use crate::mcp::identity::Member;
use crate::mcp::reply::{Refused, Reply, beginning, page};
use crate::mcp::server::Server;

/// The longest notes of a task in a result, in characters together.
const NOTES_CHARS_MAX: usize = 3_000;

impl Server {
    pub async fn next_task(&self, member: &Member, args: &Args) -> Reply {
        if !args.get::<bool>("claim") {
            let task = self.crew.suggest(&member.caller).await?;
            return Ok(task.map_or_else(|| no_task(&[]), |task| json!({ "status": "suggested", "task": task })));
        }
        let reserve = reserve_for(args);
        let (mut taken, mut passed) = self.crew.next_task(&member.caller, reserve).await?;
        if taken.is_none() {
            // Tasks and leases of agents that are dead are free at once.
            self.crew.fire_timers().await?;
            (taken, passed) = self.crew.next_task(&member.caller, reserve).await?;
        }
        taken.map_or_else(|| Ok(no_task(&passed)), taken_json)
    }

    pub async fn claim_task(&self, member: &Member, args: &Args) -> Reply {
        let id: String = args.get("id");
        taken_json(self.crew.claim(&member.caller, &id, reserve_for(args)).await?)
    }

    pub async fn update_task(&self, member: &Member, args: &Args) -> Reply {
        let (id, note): (String, Option<String>) = (args.get("id"), args.get("note"));
        let progress = TaskProgress { step: args.get("step"), next_step: args.get("next_step"), note: note.clone() };
        let or = |note: Option<String>, default: &str| note.unwrap_or_else(|| default.to_owned());
        let (update, activity) = match args.get::<String>("status").as_str() {
            "done" => (TaskUpdate::Done(or(note, "done")), None),
            "failed" => (TaskUpdate::Failed(or(args.get::<Option<_>>("error").or(note), "it failed")), None),
            "released" => (TaskUpdate::Released(or(note, ""), progress), None),
            "blocked" => (TaskUpdate::Progress(progress), Some(Activity::Blocked)),
            _started_or_progress => (TaskUpdate::Progress(progress), Some(Activity::Working)),
        };
        let released = self.crew.update_task(&member.caller, &id, update).await?;
        if let Some(activity) = activity {
            let report = Report { activity, task: Some(id.clone()), step: args.get("step"), ..Report::default() };
            self.crew.report(&member.caller, report).await?;
        }
        Ok(json!({ "status": "ok", "task": id, "leases_released": released }))
    }

    pub async fn create_tasks(&self, member: &Member, args: &Args) -> Reply {
        let new = |task: &JsonObject| NewTask {
            key: read(task.get("key")),
            title: read(task.get("title")),
            description: read(task.get("description")),
            priority: read(task.get("priority")),
            files: read(task.get("files")),
            depends_on: read(task.get("depends_on")),
        };
        let tasks: Vec<_> = args.get::<Vec<_>>("tasks").iter().map(new).collect();
        if tasks.is_empty() || tasks.iter().any(|task| task.title.trim().is_empty()) {
            return Err(Refused::invalid("tasks has at least one task, and each has a title"));
        }
        let made = self.crew.create_tasks(&member.caller, tasks).await?;
        let tasks: Vec<_> = made.iter().map(|(key, id)| json!({ "key": key, "id": id })).collect();
        Ok(json!({ "status": "created", "tasks": tasks }))
    }

    pub async fn list_tasks(&self, args: &Args) -> Reply {
        let state: Option<TaskState> = args.get::<String>("state").parse().ok();
        let (assignee, after): (Option<String>, usize) = (args.get("assignee"), args.get("cursor"));
        let tasks = self.crew.tasks(state).await?;
        let tasks = tasks.iter().filter(|task| assignee.is_none() || task.assignee == assignee);
        let (tasks, has_more) = page(tasks.skip(after), args.get("limit"), |task| json!(task));
        let next = has_more.then(|| after + tasks.len());
        Ok(json!({ "status": "ok", "tasks": tasks, "has_more": has_more, "next_cursor": next }))
    }
}

fn reserve_for(args: &Args) -> Option<Duration> {
    args.get::<bool>("reserve").then(|| Duration::from_secs(args.get("ttl_seconds")))
}

fn no_task(passed: &[(String, Taken)]) -> Value {
    let why = |taken: &Taken| taken_json(taken.clone()).err().map(|refused| refused.message);
    let why_not: Vec<_> = passed.iter().map(|(id, taken)| json!({ "id": id, "why": why(taken) })).collect();
    let next = "call wait_for_events with kinds task, or leave if your work is over";
    json!({ "status": "none", "why_not": why_not, "next": next })
}

fn taken_json(taken: Taken) -> Reply {
    const OTHER: &str = "take another with next_task";
    match taken {
        Taken::Claimed { id, input, progress, leases, is_own } => Ok(json!({
            "status": if is_own { "already_yours" } else { "claimed" },
            "task": work_json(&id, &input, &progress.unwrap_or_default()),
            "leases": leases.iter().map(|(number, lease)| lease_json((*number, lease))).collect::<Vec<_>>(),
        })),
        Taken::Held { holder } => Err(Refused::new("taken", format!("{holder} has the task"), OTHER)),
        Taken::Blocked { blocked } => Err(Refusal::from(CrewError::Held(blocked)).into()),
        Taken::Parked => {
            Err(Refused::new("parked", "agents were lost with it again and again: it waits for the person", OTHER))
        }
        Taken::NotReady { state } => {
            let state: &str = state.into();
            Err(Refused::new("not_ready", format!("the task cannot be started: it is {state}"), OTHER))
        }
    }
}

fn work_json(id: &str, input: &TaskInput, progress: &TaskProgress) -> Value {
    json!({
        "id": id,
        "title": beginning(&input.description, 2_000),
        "notes": beginning(&input.notes.join("\n"), NOTES_CHARS_MAX),
        "files": input.files,
        "step": progress.step,
        "next_step": progress.next_step,
        "progress_note": progress.note,
    })
}
