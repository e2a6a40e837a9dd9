//! `work`: runs the tasks of all plans in the log, together with other workers, until a signal or, with `--until-idle`,
//! until nothing is left to do.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use crewlog_executors::crew::worktree::Worktree;
use crewlog_executors::projecting::list_plans;
use crewlog_executors::roster::Roster;
use crewlog_executors::worker::{InterruptedTask, Scope};
use crewlog_mq::{Error, EventStore, Position, Query, Range, Recorded, Start};
use crewlog_planner::claim;
use crewlog_planner::crew::conflicts;
use crewlog_planner::lifecycle::{self, State};
use crewlog_planner::listing::PlanSummary;
use crewlog_planner::plan_event::plan_of;
use crewlog_planner::sealed::{self, KeyEvent};
use crewlog_planner::state::Phase;
use crewlog_planner::view::PlanView;
use futures::TryStreamExt;
use serde_json::json;

use crate::context::{Session, roster};
use crate::hook;
use crate::run::offering::OpenSessions;
use crate::run::progress::Progress;
use crate::run::runtime::{Next, RunArgs, Runtime};
use crate::ui::failure::{Code, Failure, Why};
use crate::ui::json::print_pretty;
use crate::ui::signals::Signals;
use crate::ui::terminal::{Output, Results};
use crate::ui::text::count;
use crate::views::{ListedPlan, queries, views};

#[derive(Debug, Args)]
pub struct Work {
    /// Run only these executors: shell, or names from crewlog.toml [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<String>,
    /// End when no executor of this process has anything left to do
    #[arg(long)]
    pub until_idle: bool,
    /// Also run what this account agreed to; may be repeated
    #[arg(long, value_name = "ACCOUNT")]
    pub trust: Vec<String>,
    #[command(flatten)]
    pub run_args: RunArgs,
}

struct WorkerLoop<'a> {
    session: &'a Session,
    store: EventStore,
    roster: Roster,
    runtime: Runtime,
    /// The plans that have not ended.
    views: BTreeMap<String, PlanView>,
    unreadable: BTreeSet<String>,
    /// The plans that have ended since the start, and their states.
    ended: BTreeMap<String, State>,
    /// The position up to which the log is read.
    at: Position,
    /// The last event that a planner may have to handle.
    last_report: Position,
    progress: Progress,
    /// The first write error of standard output, after which nothing more is printed.
    output_fault: Option<std::io::Error>,
}

/// Starts over after the log went back.
pub async fn work(session: &Session, work: Work) -> Result<Code, Failure> {
    loop {
        match work_on_log(session, &work).await {
            Err(Failure { why: Why::WentBack, message, .. }) => {
                session.remark(&format!("starting over: {message}"));
            }
            ended => return ended,
        }
    }
}

async fn work_on_log(session: &Session, work: &Work) -> Result<Code, Failure> {
    let roster = roster::roster(session, work.run_args.task_timeout, &work.only)?;
    let (store, _) = session.place.open_or_make().await?;
    let roster = Roster { leaves_limits: work.until_idle, ..roster::to_work(session, roster, &work.trust).await? };
    let signals = Signals::new()?;
    let head = store.head().await?;
    let mut views = BTreeMap::new();
    for plan in list_plans(&store, Some(head)).await?.open() {
        let loaded = queries::load_readable(&store, &plan.id, head).await?;
        let open = loaded.filter(|view| !view.state().phase.is_ended());
        views.extend(open.map(|view| (plan.id.clone(), view)));
    }
    let mut progress = Progress::of_all(session.terminal, roster.clone());
    let (log, open) = (session.place.shown(), count(views.len(), "plan"));
    session.remark(&format!("running the tasks of all plans in {log}; open now: {open}"));
    let (scope, interrupted) = (Scope::All, InterruptedTask::Report);
    let runtime = Runtime::start(session, &store, roster.clone(), scope, interrupted, &work.run_args, signals).await?;
    let open = OpenSessions(runtime.crew.sessions().await?);
    (!open.0.is_empty())
        .then(|| session.remark(&format!("{}; they are offered the steps without an executor", open.named())));
    // Answers the hooks of agent programs.
    let hooks = hook::Resident::start(&runtime.crew, &session.place, Worktree::around(&session.folder));
    views.iter().for_each(|(plan, view)| progress.add(plan, view));
    progress.go_on();
    let mut worker_loop = WorkerLoop {
        session,
        store,
        roster,
        runtime,
        views,
        unreadable: BTreeSet::new(),
        ended: BTreeMap::new(),
        at: head,
        last_report: head,
        progress,
        output_fault: None,
    };
    let end = worker_loop.follow(work.until_idle).await;
    let is_interrupted = matches!(end, Ok(Some(Code::Interrupted)));
    worker_loop.runtime.stop(&worker_loop.progress, is_interrupted).await;
    hooks.end().await;
    worker_loop.finish(end?).await
}

impl WorkerLoop<'_> {
    /// Returns why it was stopped, or `None` when nothing is left to do.
    async fn follow(&mut self, until_idle: bool) -> Result<Option<Code>, Failure> {
        let mut events = Box::pin(self.store.follow(&Query::all(), Start::After(self.at)));
        loop {
            if until_idle && self.is_idle().await? {
                return Ok(None);
            }
            match self.runtime.next(&mut events, &self.progress).await? {
                Next::Event(recorded) => self.take(&recorded).await?,
                Next::Check => {}
                Next::TimedOut => return Ok(Some(Code::TimedOut)),
                Next::Interrupted => return Ok(Some(Code::Interrupted)),
            }
        }
    }

    /// True when all events are processed and no plan advances by itself. The planner appends before it updates `taken_in`,
    /// so the order of the checks matters.
    async fn is_idle(&self) -> Result<bool, Failure> {
        let is_taken_in = *self.runtime.taken_in.borrow() >= self.last_report;
        let is_busy = || self.views.iter().any(|(plan, view)| self.roster.is_busy(plan, view, &self.views));
        Ok(is_taken_in && !is_busy() && self.store.head().await? <= self.at)
    }

    async fn take(&mut self, recorded: &Recorded) -> Result<(), Failure> {
        self.at = recorded.position;
        self.roster.follow(recorded).await?;
        if recorded.stream_id == conflicts::STREAM {
            return Ok(self.progress.report_conflict(&self.store, recorded).await?);
        }
        if recorded.stream_id == sealed::STREAM {
            return self.read_again(recorded).await;
        }
        let Some(plan) = plan_of(recorded) else { return Ok(()) };
        if recorded.stream_id == claim::STREAM {
            self.last_report = recorded.position;
        }
        self.session.print_event(recorded, &mut self.output_fault)?;
        if self.unreadable.contains(plan) {
            return Ok(());
        }
        match self.show(plan, recorded).await {
            // The other plans continue.
            Err(error @ Error::Decode { .. }) => {
                self.progress.note(&queries::unreadable_plan(plan, &error));
                self.views.remove(plan);
                self.progress.add(plan, &PlanView::default());
                self.unreadable.insert(plan.to_owned());
                Ok(())
            }
            other => Ok(other?),
        }
    }

    /// Loads plans again whose key was destroyed: nobody can run them.
    async fn read_again(&mut self, recorded: &Recorded) -> Result<(), Failure> {
        let KeyEvent::KeyDestroyed { plans, .. } = recorded.decode()?;
        for plan in plans {
            if let Some(view) = self.views.get_mut(&plan) {
                *view = queries::load_view(&self.store, &plan, Range::up_to(recorded.position)).await?;
                self.progress.add(&plan, view);
            }
        }
        Ok(())
    }

    async fn show(&mut self, plan: &str, recorded: &Recorded) -> Result<(), Error> {
        let before = Range::up_to(Position(recorded.position.0 - 1));
        let view = match self.views.entry(plan.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            // A new plan, or one that had ended before the start and is open again.
            Entry::Vacant(new) => new.insert(queries::load_view(&self.store, plan, before).await?),
        };
        let event = view.apply(recorded)?;
        self.progress.report(&event, recorded, view);
        if view.state().phase.is_ended() {
            self.ended.insert(plan.to_owned(), lifecycle::of_log(plan, view));
            self.views.remove(plan);
        } else {
            self.ended.remove(plan);
        }
        Ok(())
    }

    async fn finish(mut self, stopped: Option<Code>) -> Result<Code, Failure> {
        let head = self.store.head().await?;
        let store = self.store.clone();
        let mut rest = std::pin::pin!(store.records(&Query::all(), Range::between(self.at, head)));
        while let Some(recorded) = rest.try_next().await? {
            self.take(&recorded).await?;
        }
        let as_of = views(self.session).await?.as_of(None).await?;
        if let Output::Json = self.session.output {
            for plan in self.ended.keys() {
                self.views.insert(plan.clone(), queries::load_view(&store, plan, Range::up_to(head)).await?);
            }
            let mut plans = Vec::new();
            for (plan, view) in &self.views {
                let Some(summary) = PlanSummary::of(plan, view) else { continue };
                let status = as_of.states(plan).await?.plan.state;
                plans.push(ListedPlan { status, ..ListedPlan::of(plan, summary) });
            }
            self.output_fault = print_pretty(Results::exact(), &json!({ "plans": plans })).err();
        }
        for plan in self.views.keys() {
            for line in as_of.waits(self.session, plan).await? {
                self.progress.note(&format!("{plan}: {line}"));
            }
        }
        self.output_fault.map_or(Ok(()), |fault| Failure::output(fault).unless_closed())?;
        // A standing plan whose tasks are done does not wait.
        let open = self.views.iter().filter(|(_, view)| !view.state().waits_for_work());
        let open = open.map(|(plan, view)| match view.state().shortage() {
            Some(_) if view.state().phase == Phase::Paused => Code::Budget,
            Some(_) | None => code_of(lifecycle::of_log(plan, view)),
        });
        let codes = open.chain(self.ended.into_values().map(code_of)).collect::<Vec<_>>();
        // A failure first, then what waits for a person.
        let worst = [Code::TaskFailed, Code::Waiting, Code::Budget, Code::Paused];
        Ok(stopped.or(worst.into_iter().find(|code| codes.contains(code))).unwrap_or(Code::Done))
    }
}

fn code_of(state: State) -> Code {
    match state {
        State::Failed | State::Cancelled => Code::TaskFailed,
        State::Planned
        | State::Ready
        | State::Running
        | State::WaitingForYou
        | State::Waiting
        | State::Interrupted
        | State::Skipped => Code::Waiting,
        State::Paused => Code::Paused,
        State::Done => Code::Done,
    }
}
