//! `task next`, `task claim` and `task release`: tasks of the agent that `AGENT_ID` names.

use std::sync::Arc;

use clap::Args;
use crewlog_executors::crew::scripts::Script;
use crewlog_executors::crew::{Claimed, Crew, Refusal, Reserve};
use crewlog_planner::claim::{Ending, TaskProgress};
use crewlog_planner::crew::leases::TTL;
use serde_json::json;

use crate::cli::typed::InPlan;
use crate::context::Session;
use crate::context::crew::open;
use crate::target::Target;
use crate::ui::failure::{Code, Failure};
use crate::views::{facts, views};

#[derive(Debug, Args)]
pub struct Claim {
    /// The task
    #[arg(value_name = "PLAN/TASK")]
    pub task: InPlan,
}

#[derive(Debug, Args)]
pub struct Release {
    /// The task
    #[arg(value_name = "PLAN/TASK")]
    pub task: InPlan,
    /// Why, for the one who takes it next
    #[arg(default_value = "")]
    pub note: String,
}

/// The agent that a command reports for, if it is there: never one of a server's environment.
pub async fn agent(session: &Session) -> Result<Option<(Arc<Crew>, Script)>, Failure> {
    if !session.is_local() {
        return Ok(None);
    }
    let crew = open(session).await?;
    Ok(Script::known(&crew, &session.folder).await?.map(|script| (crew, script)))
}

pub async fn next(session: &Session) -> Result<Code, Failure> {
    let crew = open(session).await?;
    let script = Script::named(&crew, &session.folder).await?;
    let target = |file: &str| script.worktree.target(&script.worktree.root, file);
    let reserve = Some(Reserve { ttl: TTL, target: &target });
    let (claimed, passed) = crew.next_task_of_all(script.caller(), reserve).await?;
    if let Some(claimed) = claimed {
        return print(session, claimed).await;
    }
    script.rest().await?;
    let why_not: Vec<_> = passed.iter().map(|(id, why)| json!({ "task": id, "why": why.to_string() })).collect();
    session.print(&json!({ "task": null, "why_not": why_not }), |_| Ok(()))?;
    let passed = passed.iter().map(|(id, why)| format!("\n  {id}: {why}")).collect::<Vec<_>>();
    session.remark(&format!("no task is ready{}", passed.concat()));
    Ok(Code::Nothing)
}

pub async fn claim(session: &Session, Claim { task }: Claim) -> Result<Code, Failure> {
    let id = id(session, &task).await?;
    let crew = open(session).await?;
    let script = Script::named(&crew, &session.folder).await?;
    let target = |file: &str| script.worktree.target(&script.worktree.root, file);
    match crew.claim(script.caller(), &id, Some(Reserve { ttl: TTL, target: &target })).await {
        Ok(claimed) => print(session, claimed).await,
        Err(refusal) => {
            script.rest().await?;
            Err(refusal.into())
        }
    }
}

pub async fn release(session: &Session, Release { task, note }: Release) -> Result<Code, Failure> {
    let target = Target::find_to_tell(session, &task.plan).await?;
    let name = target.task(session, &task.name)?.plan.name();
    let Some((crew, script)) = agent(session).await? else {
        return Err(Failure::user("only the agent that has a task releases it: AGENT_ID names no agent that is here"));
    };
    let ending = Ending::Released { reason: note, cut_off: false };
    let id = format!("{}/{name}", target.plan);
    report(&crew, &script, &id, ending).await?;
    target.say(session, &format!("task {name} is released")).await
}

/// Ends the claim of an agent.
pub async fn report(crew: &Crew, script: &Script, id: &str, ending: Ending) -> Result<(), Refusal> {
    crew.update_task(script.caller(), id, TaskProgress::default(), Some(ending)).await?;
    script.rest().await
}

async fn id(session: &Session, task: &InPlan) -> Result<String, Failure> {
    let target = Target::find_to_tell(session, &task.plan).await?;
    Ok(format!("{}/{}", target.plan, target.task(session, &task.name)?.plan.name()))
}

async fn print(session: &Session, Claimed { id, input, progress, is_own, .. }: Claimed) -> Result<Code, Failure> {
    let as_of = views(session).await?.as_of(None).await?;
    let leases = as_of.leases(|lease| lease.lease.is_some() && lease.task.as_ref() == Some(&id)).await?;
    let progress = progress.unwrap_or_default();
    let json = json!({
        "task": id, "title": input.description, "notes": input.notes.join("\n"), "files": input.files,
        "step": progress.step, "next_step": progress.next_step, "progress_note": progress.note,
        "was_claimed": is_own, "leases": leases,
    });
    session.print(&json, |to| {
        facts::print(to, &json, [&["task", "title"], &["notes", "files", "step", "next_step", "progress_note"]], None)
    })
}
