//! The log of the day, its plans and its tasks.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use crewlog_executors::crew::Crew;
use crewlog_executors::liveness::LivenessLock;
use crewlog_executors::{planning, plans};
use crewlog_mq::{Cause, EventStore, Options, Position, Query, Range, Recorded, Runner};
use crewlog_planner::event::{self, Command, Event, plan_tag};
use crewlog_planner::lifecycle::State;
use crewlog_planner::plan::TaskId;
use crewlog_planner::planner::Planner;

use crate::Result;
use crate::stage::Time;

pub const PROJECT: &str = "almanac";
/// The machine of the agents, and the worktrees on it.
pub const HOST: &str = "studio";
pub const TREE: &str = "studio:/srv/almanac";
pub const SECOND_TREE: &str = "studio:/srv/almanac-zones";
pub const WEEKS: &str = "iso-week-dates-7k2m";
pub const ZONES: &str = "built-in-time-zones-3fqa";
pub const FORK: &str = "built-in-time-zones-fork-9w4d";
pub const BACKLOG: &str = "backlog";

/// The steps of a task, and its result.
#[derive(Clone, Default)]
pub struct Job {
    pub steps: Vec<&'static str>,
    pub result: &'static str,
}

/// State shared by all scripts.
pub struct Day {
    pub store: EventStore,
    pub crew: Crew,
    pub time: Time,
    jobs: BTreeMap<&'static str, Job>,
    /// The plans whose timers are fired.
    plans: RefCell<Vec<&'static str>>,
    /// The tasks of the backlog, by their short names.
    added: RefCell<BTreeMap<&'static str, String>>,
}

impl Day {
    pub async fn new(folder: &Path) -> Result<Self> {
        let time = Time::new();
        let options = Options { clock: Arc::new(time.clone()), ..Options::default() };
        let file = folder.join("log.db");
        let store = EventStore::open_with(&file.to_string_lossy(), options).await?;
        let crew = Crew::new(&store, PROJECT, Arc::new(LivenessLock::begin(&folder.join("workers"))?));
        Ok(Self { store, crew, time, jobs: jobs(), plans: RefCell::default(), added: RefCell::default() })
    }

    /// The work on a task, by its short name in `work.md`.
    pub fn job(&self, name: &str) -> Result<Job> {
        Ok(self.jobs.get(name).cloned().ok_or_else(|| format!("work.md has no {name}"))?)
    }

    /// The id of a task by its short name: `T03` and `Z01` of the two plans, `FZ05` and `F11` of the fork, `B4` of the
    /// backlog. `None` if the backlog does not have it yet.
    pub fn id(&self, name: &str) -> Option<String> {
        match name.split_at_checked(1)? {
            ("T", _) => Some(format!("{WEEKS}/{name}")),
            ("Z", _) => Some(format!("{ZONES}/{name}")),
            ("F", of_fork) => Some(format!("{FORK}/{of_fork}")),
            _of_backlog => self.added.borrow().get(name).cloned(),
        }
    }

    /// Gives a task of the backlog its short name.
    pub fn name(&self, name: &'static str, id: String) {
        self.added.borrow_mut().insert(name, id);
    }

    pub async fn planner(&self, plan: &str) -> Result<Runner<Planner>> {
        let mut planner = plans::planner_of(&self.store, plan, tags(plan)).await?;
        planner.catch_up().await?;
        Ok(planner)
    }

    /// Sends a command to a plan, like a person.
    pub async fn order(&self, plan: &'static str, command: Command) -> Result<Position> {
        let cause = Cause::request().keeping(command.recorded());
        let position = self.planner(plan).await?.execute(command, &cause).await?.position;
        self.follow(plan);
        Ok(position)
    }

    /// Fires the timers of a plan from now on.
    pub fn follow(&self, plan: &'static str) {
        let mut plans = self.plans.borrow_mut();
        if !plans.contains(&plan) {
            plans.push(plan);
        }
    }

    /// Passes the reports of a plan's tasks to its planner.
    pub async fn take_in(&self, plan: &str) -> Result {
        planning::catch_up(&self.store, plan, tags(plan)).await?;
        Ok(())
    }

    /// The dispatch of an unfinished task: its number, attempt and event.
    pub async fn dispatched(&self, plan: &str, name: &str) -> Result<Option<(TaskId, u32, Recorded)>> {
        let planner = self.planner(plan).await?;
        let Some(task) = planner.handler().state().task_named(name) else { return Ok(None) };
        let (id, attempt) = (task.plan.id, task.attempts);
        let query = Query::aggregate(event::STREAM, plan).of_type("TaskDispatched");
        let mut rest = Some(Range::default().backwards());
        while let Some(range) = rest.filter(|_| task.status == event::TaskStatus::Running) {
            let page = self.store.read(&query, range, 100).await?;
            for recorded in &page.events {
                if matches!(recorded.decode()?, Event::TaskDispatched { task_id, .. } if task_id == id) {
                    return Ok(Some((id, attempt, recorded.clone())));
                }
            }
            rest = range.rest(&page);
        }
        Ok(None)
    }

    /// True if a task can be claimed.
    pub async fn is_ready(&self, id: &str) -> Result<bool> {
        let tasks = self.crew.tasks(Some(State::Ready)).await?;
        Ok(tasks.iter().any(|task| task.id == id))
    }

    /// Prints the tasks that are left over, to compare with the expected ones; `crewlog inbox` lists the rest.
    pub async fn report_left_over(&self) -> Result {
        for task in self.crew.tasks(None).await?.iter().filter(|task| task.state != State::Done) {
            println!("{:<10} {}: {}", task.state.as_str(), task.id, task.title);
        }
        Ok(())
    }
}

pub fn tags(plan: &str) -> Vec<String> {
    vec![plan_tag(plan), format!("project:{PROJECT}")]
}

/// Reads `work.md`.
fn jobs() -> BTreeMap<&'static str, Job> {
    let mut jobs = BTreeMap::new();
    for section in include_str!("work.md").split("\n## ").skip(1) {
        let (name, lines) = section.split_once('\n').unwrap_or((section, ""));
        let marked = |mark| lines.lines().filter_map(move |line: &str| line.strip_prefix(mark));
        let job = Job { steps: marked("- ").collect(), result: marked("= ").next().unwrap_or_default() };
        jobs.insert(name, job);
    }
    jobs
}

/// Fires the timers of the crew and of its plans every minute.
pub async fn host(day: Rc<Day>) -> Result {
    let mut planners = BTreeMap::new();
    loop {
        day.time.pass(60).await;
        day.crew.fire_timers().await?;
        let plans = day.plans.borrow().clone();
        for plan in plans {
            if !planners.contains_key(plan) {
                planners.insert(plan, day.planner(plan).await?);
            }
            let planner = planners.get_mut(plan).ok_or("it was inserted")?;
            planning::keep_time(planner, &day.store).await?;
        }
    }
}
