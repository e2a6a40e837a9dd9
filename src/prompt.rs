//! `show PLAN/TASK --prompt`: renders an agent's prompt again and compares it with the one that the agent got.

use crewlog_executors::prompts::digest;
use crewlog_mq::{EventStore, Range};
use serde_json::json;

use crate::failure::{Code, Failure};
use crate::queries::{load_view, no_task};
use crate::session::Session;
use crate::views::{Prompt, prompt_of_attempt};

pub async fn show(
    session: &Session,
    store: &EventStore,
    plan: &str,
    task: &str,
    attempt: Option<u32>,
) -> Result<Code, Failure> {
    let view = load_view(store, plan, Range::default()).await?;
    let found = view.state().task_named(task).ok_or_else(|| no_task(session, plan, view.state(), task))?;
    let (task, attempt) = (found.plan.id, attempt.unwrap_or(found.attempts));
    let Some(Prompt { at, rendered, recorded }) =
        prompt_of_attempt(store, plan, task, attempt, Range::default()).await?
    else {
        let message = format!("task {} has no attempt {attempt}", found.plan.name());
        return Err(Failure::new(Code::Nothing, message));
    };
    let digest = digest(&rendered);
    match &recorded {
        None => session.say("note: no agent has started with this prompt yet"),
        Some(recorded) if *recorded == digest => {}
        Some(recorded) => session.say(&format!(
            "warning: the agent got another prompt, of {} characters instead of {}: another version of crewlog rendered \
             it, or its texts were decrypted with a key that is missing here",
            recorded.n_chars, digest.n_chars
        )),
    }
    let json = json!({
        "plan": plan, "task": task, "attempt": attempt, "at": at,
        "prompt": rendered, "digest": digest, "recorded": recorded,
    });
    session.print(&json, |to| to.write_all(rendered.as_bytes()))
}
