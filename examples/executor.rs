//! An executor of one's own: it follows the dispatched tasks, takes those assigned to `@words`, and reports the number of words
//! of each. The rest of the plan can run anywhere: `crewlog run` with the same log hosts the planner, asks and shows.
//!
//!     cargo run --example executor FILE
//!
//! It makes a small plan in FILE, carries it out next to the planner's host, and prints how the plan ended.

use crewlog_executors::liveness::LivenessLock;
use crewlog_executors::planning;
use crewlog_mq::{Cause, Event as _, EventStore, ExecuteError, Position, Query, Runner, Start};
use crewlog_planner::claim::{self, Claim, Ending, TaskCommand, TaskLease};
use crewlog_planner::event::{self, Command, Event, PlannerCmd, PlannerConfig, Usage, plan_tag};
use crewlog_planner::plan::TaskId;
use crewlog_planner::planner::Planner;
use futures::StreamExt;
use tokio::sync::watch;

type Failure = Box<dyn std::error::Error>;

const NAME: &str = "words";
const TEXT: &str = "1. To be or not to be @words\n2. That is the question @words\n";

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let file = std::env::args().nth(1).ok_or("name the file of a log")?;
    let store = EventStore::open(&file).await?;
    let plan = format!("hamlet-{}", store.head().await?);
    let mut planner = Runner::<Planner>::new(store.clone(), event::STREAM, &plan, vec![plan_tag(&plan)]);
    let (user_input, config) = (TEXT.to_owned(), PlannerConfig::default());
    planner.execute(Command::of_text(user_input, config, false)?, &Cause::request()).await?;
    // The host feeds the reports of executors to the planner, which dispatches the next task.
    let host = tokio::spawn(planning::host(store.clone(), plan.clone(), watch::channel(Position(0)).0));
    take_tasks(&store, &file, &plan).await?;
    host.abort();
    planner.catch_up().await?;
    for task in &planner.handler().state().tasks {
        println!("{}: {}", task.plan.description, task.result.as_deref().unwrap_or("no result"));
    }
    Ok(())
}

/// Follows the plan until it ends. A worker for every plan would leave the tag out, and never end.
async fn take_tasks(store: &EventStore, file: &str, plan: &str) -> Result<(), Failure> {
    // While this process lives it holds a lock, so that another one can prove its death and take its tasks.
    let life = LivenessLock::begin(format!("{file}-workers").as_ref())?;
    let query = Query::tag(plan_tag(plan)).of_types(["TaskDispatched", "PlanningCompleted"]);
    let mut events = store.subscribe_from::<Event>(&query, Start::Beginning)?;
    while let Some(item) = events.next().await {
        let envelope = item?;
        match &envelope.event {
            Event::TaskDispatched { task_id, attempt, command: PlannerCmd::ExecuteTask { parameters, .. } }
                if parameters.assignee.as_deref() == Some(NAME) =>
            {
                let cause = Cause::event(&envelope.recorded);
                let n_words = parameters.description.split_whitespace().count();
                carry_out(store, &life, plan, (*task_id, *attempt), &cause, n_words).await?;
            }
            Event::PlanningCompleted { .. } => break,
            _for_others => {}
        }
    }
    Ok(())
}

/// Claims a task, starts it and ends it. Of several executors that want it, one wins.
async fn carry_out(
    store: &EventStore,
    life: &LivenessLock,
    plan: &str,
    (task, attempt): (TaskId, u32),
    cause: &Cause,
    n_words: usize,
) -> Result<(), Failure> {
    let id = claim::aggregate_id(plan, task);
    let mut lease = Runner::<TaskLease>::new(store.clone(), claim::STREAM, &id, vec![plan_tag(plan)]);
    let (executor, now) = (life.executor(NAME), store.now());
    let claim = TaskCommand::Claim(Claim { attempt, executor, now, ..Claim::default() });
    match lease.execute(claim, cause).await {
        Ok(_) => {}
        // Somebody else has it, or it has ended.
        Err(ExecuteError::Refused(_)) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    let (epoch, usage) = (lease.handler().epoch, Usage::default());
    let ending = Ending::Completed { result: format!("{n_words} words"), run: None };
    let ended = lease.execute(TaskCommand::End { epoch, usage, ending }, cause).await?;
    ended.events.iter().for_each(|event| println!("{id} {}", event.event_type()));
    Ok(())
}
