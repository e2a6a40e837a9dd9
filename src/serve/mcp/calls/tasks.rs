//! Tasks of the open plans.

use std::time::Duration;

use crewlog_executors::crew::{Claimed, NewTask, Refusal, Reserve};
use crewlog_planner::claim::{Ending, TaskProgress};
use crewlog_planner::crew::agents::{Activity, Report};
use crewlog_planner::crew::target::{Target, TargetError};
use crewlog_planner::event::FailureClass;
use crewlog_planner::lifecycle::State;
use serde_json::{Value, json};

use super::leases_json;
use crate::serve::mcp::args::Args;
use crate::serve::mcp::identity::Member;
use crate::serve::mcp::reply::{Refused, Reply, beginning, page};
use crate::serve::mcp::server::Server;
use crate::ui::text::rfc3339;

/// The longest title of a task in a result, in characters.
const TITLE_CHARS_MAX: usize = 2_000;
/// The longest notes of a task in a result, in characters together.
const NOTES_CHARS_MAX: usize = 3_000;
/// The longest result, error and output of a task, in characters.
const RESULT_CHARS_MAX: usize = 8_000;

impl Server {
    pub async fn next_task(&self, member: &Member, args: &Args) -> Reply {
        let target = |file: &str| member.target(file);
        let reserve = reserve(args, &target);
        if let Some(id) = args.get::<Option<String>>("id") {
            return Ok(claimed_json(self.crew.claim(&member.caller, &id, reserve).await?));
        }
        let (claimed, passed) = self.crew.next_task_of_all(&member.caller, reserve).await?;
        Ok(claimed.map_or_else(|| no_task(passed), claimed_json))
    }

    pub async fn update_task(&self, member: &Member, args: &Args) -> Reply {
        let (id, note): (String, Option<String>) = (args.get("id"), args.get("note"));
        let progress = TaskProgress {
            step: args.get("step"),
            next_step: args.get("next_step"),
            note: note.clone(),
            session: None,
        };
        let or = |note: Option<String>, default: &str| note.unwrap_or_else(|| default.to_owned());
        let ending = |ending| (TaskProgress::default(), Some(ending), None);
        let (progress, ending, activity) = match args.get::<String>("status").as_str() {
            "done" => ending(Ending::Completed { result: or(note, "done"), run: None }),
            "failed" => {
                let error = or(args.get::<Option<_>>("error").or(note), "it failed");
                ending(Ending::Failed { error, class: FailureClass::Task, run: None })
            }
            "released" => (progress, Some(Ending::Released { reason: or(note, ""), cut_off: false }), None),
            "blocked" => (progress, None, Some(Activity::Blocked)),
            _started_or_progress => (progress, None, Some(Activity::Working)),
        };
        let released = self.crew.update_task(&member.caller, &id, progress, ending).await?;
        if let Some(activity) = activity {
            let report = Report { activity, task: Some(id.clone()), step: args.get("step"), ..Report::default() };
            self.crew.report(&member.caller, report).await?;
        }
        Ok(json!({ "status": "ok", "task": id, "leases_released": released }))
    }

    pub async fn create_tasks(&self, member: &Member, args: &Args) -> Reply {
        let mut tasks: Vec<NewTask> = args.get("tasks");
        for file in tasks.iter_mut().flat_map(|task| &mut task.files) {
            *file = member.target(file)?.path;
        }
        if tasks.is_empty() || tasks.iter().any(|task| task.title.trim().is_empty()) {
            return Err(Refused::invalid("tasks has at least one task, and each has a title"));
        }
        let made = self.crew.create_tasks(&member.caller, tasks).await?;
        let tasks: Vec<_> = made.iter().map(|(key, id)| json!({ "key": key, "id": id })).collect();
        Ok(json!({ "status": "created", "tasks": tasks }))
    }

    async fn task_details(&self, id: &str) -> Reply {
        let details = self.crew.task(id).await?;
        let short = |text: &Option<String>| text.as_ref().map(|text| beginning(text, RESULT_CHARS_MAX));
        let mut task = json!(details);
        task["notes"] = json!(beginning(&details.notes.join("\n"), NOTES_CHARS_MAX));
        task["result"] = json!(short(&details.result));
        task["error"] = json!(short(&details.error));
        let end = |text: &str| -> String {
            text.chars().skip(text.chars().count().saturating_sub(RESULT_CHARS_MAX)).collect()
        };
        task["output"] = json!(details.output.as_ref().map(|last| end(&last.lines)));
        task["output_at"] = json!(details.output.as_ref().map(|last| rfc3339(last.at)));
        Ok(json!({ "status": "ok", "task": task }))
    }

    pub async fn list_tasks(&self, args: &Args) -> Reply {
        if let Some(id) = args.get::<Option<String>>("id") {
            return self.task_details(&id).await;
        }
        let state: Option<State> = args.get::<String>("state").parse().ok();
        let (assignee, after): (Option<String>, usize) = (args.get("assignee"), args.get("cursor"));
        let tasks = self.crew.tasks(state).await?;
        let tasks = tasks.iter().filter(|task| assignee.is_none() || task.assignee == assignee);
        let (tasks, has_more) = page(tasks.skip(after), args.get("limit"), |task| json!(task));
        let next = has_more.then(|| after + tasks.len());
        Ok(json!({ "status": "ok", "tasks": tasks, "has_more": has_more, "next_cursor": next }))
    }
}

fn reserve<'a>(args: &Args, target: &'a (dyn Fn(&str) -> Result<Target, TargetError> + Sync)) -> Option<Reserve<'a>> {
    args.get::<bool>("reserve").then(|| Reserve { ttl: Duration::from_secs(args.get("ttl_seconds")), target })
}

fn no_task(passed: Vec<(String, Refusal)>) -> Value {
    let why = |(id, refusal)| json!({ "id": id, "why": Refused::from(refusal).message });
    let why_not: Vec<_> = passed.into_iter().map(why).collect();
    let next = "call wait_for_events with kinds task, or leave if your work is over";
    json!({ "status": "none", "why_not": why_not, "next": next })
}

fn claimed_json(Claimed { id, input, progress, leases, is_own }: Claimed) -> Value {
    let progress = progress.unwrap_or_default();
    json!({
        "status": if is_own { "already_yours" } else { "claimed" },
        "task": {
            "id": id,
            "title": beginning(&input.description, TITLE_CHARS_MAX),
            "notes": beginning(&input.notes.join("\n"), NOTES_CHARS_MAX),
            "files": input.files,
            "step": progress.step,
            "next_step": progress.next_step,
            "progress_note": progress.note,
        },
        "leases": leases_json(&leases),
    })
}
