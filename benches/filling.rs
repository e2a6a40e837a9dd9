//! A log of a crew at work: a large plan with dependencies, a backlog, and agents that claim tasks with leases on their
//! files, report, write messages and ask the person. The same calls make the same events in each run.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crewlog_executors::crew::{Caller, Crew, Join, NewTask, Reserve};
use crewlog_executors::liveness::LivenessLock;
use crewlog_executors::plans::planner_of;
use crewlog_mq::{Cause, Clock, EventStore, Options, Position, SystemClock, Timestamp};
use crewlog_planner::claim::{Ending, TaskProgress};
use crewlog_planner::crew::agents::{Activity, Profile, Report, Wish};
use crewlog_planner::crew::asks::{Answer, Ask, Wanted};
use crewlog_planner::crew::leases::{LeaseCommand, TTL};
use crewlog_planner::crew::messages::{Importance, Message, Sender};
use crewlog_planner::crew::target::Target;
use crewlog_planner::event::{Command, PlannerConfig, plan_tag};
use crewlog_planner::plan::{Dependency, NodeKind, Proposal, Strength, TaskId, TaskPlan};

use crate::Failure;

/// The project of the crew.
pub const PROJECT: &str = "shop";
/// The plan with the most tasks.
pub const PLAN: &str = "rewrite";
/// The tasks of the plan, and the most that can run at once: each waits for two earlier ones.
const N_PLANNED: u64 = 1_000;
const WIDTH: u64 = 80;
const N_IN_BACKLOG: usize = 40;
const N_AGENTS: usize = 100;
/// The log time from the first event to the last. An agent that is silent for longer than this is stuck.
const LASTS: Duration = Duration::from_secs(1_500);
const RESERVE: Reserve<'static> = Reserve { ttl: TTL, target: &Target::written };

/// A clock that shows the time it was last set to.
#[derive(Clone)]
struct Paced(Arc<AtomicI64>);

impl Clock for Paced {
    fn wall(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros(self.wall().0.unsigned_abs())
    }
}

/// An agent with the task that it holds.
#[derive(Clone)]
pub struct Agent {
    pub caller: Caller,
    pub task: Option<String>,
    n_turns: usize,
}

/// The contents of a log.
pub struct Filled {
    pub head: Position,
    pub n_done: usize,
    pub agents: Vec<Agent>,
}

/// The crew of the project. `folder` is for the locks by which processes prove that they are alive.
pub fn crew_on(store: &EventStore, folder: &Path) -> Result<Crew, Failure> {
    Ok(Crew::new(store, PROJECT, Arc::new(LivenessLock::begin(folder)?)))
}

/// Fills a log with at least this many events, the last of them made now.
pub async fn fill(log: &str, folder: &Path, n_events: i64) -> Result<Filled, Failure> {
    let now = SystemClock::default().wall();
    let first = now.0 - i64::try_from(LASTS.as_micros())?;
    let clock = Paced(Arc::new(AtomicI64::new(first)));
    let options = Options { clock: Arc::new(clock.clone()), ..Options::default() };
    let store = EventStore::open_with(log, options).await?;
    let crew = crew_on(&store, folder)?;
    let mut agents = Vec::new();
    for n in 0..N_AGENTS {
        let caller = crew.join(join(n)).await?.caller;
        agents.push(Agent { caller, task: None, n_turns: n % 3 });
    }
    plan(&store).await?;
    let backlog = (1..=N_IN_BACKLOG).map(|n| NewTask {
        key: format!("k{n}"),
        title: format!("Look into report {n} of a customer"),
        files: vec![format!("support/case-{n}.md")],
        ..NewTask::default()
    });
    crew.create_tasks(&agents[0].caller, backlog.collect()).await?;
    let (mut n_done, mut n) = (0, 0);
    loop {
        let head = store.head().await?;
        if head.0 >= n_events {
            return Ok(Filled { head, n_done, agents });
        }
        clock.0.store(first + (now.0 - first) * head.0 / n_events, Ordering::Relaxed);
        let n_agents = agents.len();
        n_done += usize::from(turn(&crew, &mut agents[n % n_agents], n).await?);
        n += 1;
    }
}

fn join(n: usize) -> Join {
    let profile = Profile {
        program: if n.is_multiple_of(3) { "codex".to_owned() } else { "claude-code".to_owned() },
        model: None,
        capabilities: Vec::new(),
        focus: Vec::new(),
        worktree: "host:/shop".to_owned(),
        process: None,
        program_process: None,
    };
    Join { wish: Wish::of(&format!("agent-{n:02}")), session: format!("session {n}"), profile }
}

async fn plan(store: &EventStore) -> Result<(), Failure> {
    let tasks = (1..=N_PLANNED).map(|n| {
        let mut task =
            TaskPlan::new(TaskId(n), NodeKind::Processing, format!("Rewrite part {n} of the shop and its tests"));
        task.files = vec![format!("src/area-{}/part-{n}.rs", n % 30)];
        let before = [n.checked_sub(WIDTH), n.checked_sub(WIDTH + 7 + n % 5)].into_iter().flatten().filter(|n| *n > 0);
        task.depends_on = before.map(|n| Dependency { task: TaskId(n), strength: Strength::Hard }).collect();
        task.depends_on.sort_unstable();
        task
    });
    let title = Some("Rewrite the shop".to_owned());
    let proposal = Box::new(Proposal { tasks: tasks.collect(), title, ..Proposal::default() });
    let config = PlannerConfig { parallelism: 100, ..PlannerConfig::default() };
    let command = Command::Initialize { proposal, attachments: Vec::new(), config };
    let mut planner = planner_of(store, PLAN, vec![plan_tag(PLAN), format!("project:{PROJECT}")]).await?;
    let cause = Cause::request().keeping(command.recorded());
    planner.execute(command, &cause).await?;
    Ok(())
}

/// The next call of an agent; true if it has ended a task by it.
async fn turn(crew: &Crew, agent: &mut Agent, n: usize) -> Result<bool, Failure> {
    let Agent { caller, task, n_turns } = agent;
    *n_turns += 1;
    let Some(id) = task.clone() else {
        let (claimed, _) = crew.next_task(caller, Some(RESERVE)).await?;
        match claimed {
            Some(claimed) => (*task, *n_turns) = (Some(claimed.id), 0),
            None => crew.report(caller, report(Activity::Idle, None, n)).await?,
        }
        return Ok(false);
    };
    match *n_turns {
        1 | 3 | 6 | 9 => drop(crew.update_task(caller, &id, progress(*n_turns), None).await?),
        2 | 5 | 10 => crew.report(caller, report(Activity::Working, Some(id), n)).await?,
        4 => drop(crew.send(caller, message(&caller.agent, n)).await?),
        7 if n.is_multiple_of(5) => {
            let edited = Target::literal(&format!("docs/page-{}.md", n % 50))?;
            let (worktree, agent) = (caller.worktree.clone(), Some(caller.agent.clone()));
            crew.record_edit(|now| LeaseCommand::SeeEdit { worktree, path: edited, agent, now }).await?;
        }
        7 => {
            let (mail, _) = crew.inbox(&caller.agent, true, Position(0), 5, None).await?;
            let read: BTreeSet<_> = mail.iter().map(|mail| mail.position).collect();
            if !read.is_empty() {
                crew.mark_read(caller, read).await?;
            }
        }
        8 if n.is_multiple_of(4) => {
            let text = format!("May part {n} keep its old name?");
            let ask = Ask {
                agent: caller.agent.clone(),
                wanted: Wanted::Answer,
                text,
                choices: Vec::new(),
                task: Some(id),
                call: None,
            };
            let number = crew.ask(caller, ask).await?;
            // A few are left open.
            if !number.is_multiple_of(25) {
                crew.answer(number, Answer { by: "ada".to_owned(), text: "yes".to_owned(), is_granted: None }).await?;
            }
        }
        8 => crew.report(caller, report(Activity::Thinking, Some(id), n)).await?,
        _last => {
            let ending = Ending::Completed { result: "rewritten, all tests pass".to_owned(), run: None };
            crew.update_task(caller, &id, TaskProgress::default(), Some(ending)).await?;
            *task = None;
            return Ok(true);
        }
    }
    Ok(false)
}

fn progress(n: usize) -> TaskProgress {
    let step = Some(format!("step {n}: the callers are changed"));
    TaskProgress { step, next_step: Some("run the tests".to_owned()), ..TaskProgress::default() }
}

/// A report that differs for each `n`.
pub fn report(activity: Activity, task: Option<String>, n: usize) -> Report {
    let step = Some(format!("reads file {n}"));
    Report { activity, task, step, context_usage: u8::try_from(n % 100).ok(), note: None }
}

fn message(from: &str, n: usize) -> Message {
    Message {
        from: Sender::Agent(from.to_owned()),
        to: BTreeSet::from([format!("agent-{:02}", (n * 7 + 3) % N_AGENTS)]),
        subject: format!("The signature of part {n} has changed"),
        body: "It takes the currency too: please pass it on where you call it.".to_owned(),
        thread: None,
        importance: Importance::Normal,
        needs_ack: false,
    }
}
