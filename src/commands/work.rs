//! `work`: runs the tasks of all plans in the log, together with other workers, until a signal or, with `--until-idle`,
//! until nothing is left to do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use clap::Args;
use crewlog_executors::crew::Crew;
use crewlog_executors::plans::plan_of;
use crewlog_executors::projecting::list_plans;
use crewlog_executors::roster::Roster;
use crewlog_executors::worker::{InterruptedTask, Scope};
use crewlog_mq::{Error, EventStore, Position, Query, Range, Recorded, Start};
use crewlog_planner::claim;
use crewlog_planner::crew::conflicts;
use crewlog_planner::lifecycle::{self, State};
use crewlog_planner::listing::PlanSummary;
use crewlog_planner::sealed::{self, KeyEvent};
use crewlog_planner::state::Phase;
use crewlog_planner::view::PlanView;
use futures::future::OptionFuture;
use futures::{StreamExt, TryStreamExt};
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use crate::context::worktree::Worktree;
use crate::context::{Session, roster};
use crate::hook;
use crate::run::by_model;
use crate::run::options::RunArgs;
use crate::run::progress::{Progress, STOPPING};
use crate::run::runtime::{Runtime, RuntimeOptions, is_busy};
use crate::ui::failure::{Code, Failure};
use crate::ui::json::print_pretty;
use crate::ui::signals::Signals;
use crate::ui::terminal::Output;
use crate::ui::text::count;
use crate::views::views;
use crate::views::{ListedPlan, queries};

#[derive(Debug, Args)]
pub struct Work {
    /// Run only these executors: shell, or names from crewlog.toml [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<String>,
    /// End when no executor of this process has anything left to do
    #[arg(long)]
    pub until_idle: bool,
    #[command(flatten)]
    pub run_args: RunArgs,
}

/// Tasks at once, unless the command line says otherwise.
const JOBS: usize = 4;

struct WorkerLoop<'a> {
    session: &'a Session,
    store: EventStore,
    roster: Roster,
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

pub async fn work(session: &Session, work: Work) -> Result<Code, Failure> {
    let roster = roster::roster(session, work.run_args.task_timeout, &work.only)?;
    let (store, _) = session.place.open_or_make().await?;
    let mut signals = Signals::new()?;
    let head = store.head().await?;
    let list = list_plans(&store, Some(head)).await?;
    let mut views = BTreeMap::new();
    for plan in list.open() {
        let loaded = queries::load_readable(&store, &plan.id, head).await?;
        let open = loaded.filter(|view| !view.state().phase.is_ended());
        views.extend(open.map(|view| (plan.id.clone(), view)));
    }
    let mut progress = Progress::of_all(session.terminal, roster.clone());
    let (log, open) = (session.place.shown(), count(views.len(), "plan"));
    session.remark(&format!("running the tasks of all plans in {log}; open now: {open}"));
    let jobs = work.run_args.jobs.unwrap_or(JOBS);
    let model = by_model::wanted(session, work.run_args.by_model())?;
    let options =
        RuntimeOptions { roster: roster.clone(), scope: Scope::All, interrupted: InterruptedTask::Report, jobs, model };
    let mut runtime = Runtime::start(session, &store, options, Vec::new())?;
    let hooks = answer_hooks(session, &store)?;
    views.iter().for_each(|(plan, view)| progress.add(plan, view));
    progress.go_on();
    let mut worker_loop = WorkerLoop {
        session,
        store,
        roster,
        views,
        unreadable: BTreeSet::new(),
        ended: BTreeMap::new(),
        at: head,
        last_report: head,
        progress,
        output_fault: None,
    };
    let end = worker_loop.follow(&work, &mut runtime, &mut signals).await;
    worker_loop.progress.pause();
    if let Ok(Some(Code::Interrupted)) = end {
        worker_loop.progress.note(STOPPING);
    }
    runtime.stop(&mut signals, |text| worker_loop.progress.note(text)).await;
    hooks.end().await;
    worker_loop.finish(end?).await
}

/// Answers the hooks of agent programs.
fn answer_hooks(session: &Session, store: &EventStore) -> Result<hook::Resident, Failure> {
    let life = Arc::new(session.place.liveness_lock()?);
    let crew = Arc::new(Crew::new(store, &session.project()?, life));
    Ok(hook::Resident::start(&crew, &session.place, Worktree::around(&session.folder)))
}

impl WorkerLoop<'_> {
    /// Returns why it was stopped, or `None` when nothing is left to do.
    async fn follow(
        &mut self,
        work: &Work,
        runtime: &mut Runtime,
        signals: &mut Signals,
    ) -> Result<Option<Code>, Failure> {
        let mut events = Box::pin(self.store.follow(&Query::all(), Start::After(self.at)));
        let mut taken_in = runtime.taken_in.clone();
        let deadline = work.run_args.timeout.map(|timeout| Instant::now() + timeout);
        loop {
            if work.until_idle && self.is_idle(runtime).await? {
                return Ok(None);
            }
            tokio::select! {
                event = events.next() => if let Some(recorded) = runtime.event(event, &self.progress)? {
                    self.take(&recorded).await?;
                },
                Ok(()) = taken_in.changed() => {}
                Some(()) = OptionFuture::from(deadline.map(sleep_until)) => return Ok(Some(Code::TimedOut)),
                () = signals.next() => return Ok(Some(Code::Interrupted)),
                fault = runtime.fault() => return Err(fault),
            }
        }
    }

    /// True when all events are processed and no plan advances by itself. The planner appends before it updates `taken_in`,
    /// so the order of the checks matters.
    async fn is_idle(&self, runtime: &Runtime) -> Result<bool, Failure> {
        let is_taken_in = *runtime.taken_in.borrow() >= self.last_report;
        let is_busy = || self.views.iter().any(|(plan, view)| is_busy(&self.roster, plan, view, &self.views));
        Ok(is_taken_in && !is_busy() && self.store.head().await? <= self.at)
    }

    async fn take(&mut self, recorded: &Recorded) -> Result<(), Failure> {
        self.at = recorded.position;
        if recorded.stream_id == conflicts::STREAM {
            if let Ok(conflict) = recorded.decode() {
                self.progress.report_conflict(&self.store, &conflict).await?;
            }
            return Ok(());
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
        if !self.views.contains_key(plan) {
            // A new plan, or one that had ended before the start and is open again.
            let before = Range::up_to(Position(recorded.position.0 - 1));
            let view = queries::load_view(&self.store, plan, before).await?;
            self.views.insert(plan.to_owned(), view);
        }
        let Some(view) = self.views.get_mut(plan) else { return Ok(()) };
        view.apply(recorded)?;
        self.progress.report(recorded, view);
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
            self.output_fault = print_pretty(std::io::stdout().lock(), &json!({ "plans": plans })).err();
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
        Ok(stopped.unwrap_or_else(|| worst(open.chain(self.ended.into_values().map(code_of)))))
    }
}

/// The exit code for several plans: a failure first, then what waits for a person.
fn worst(codes: impl Iterator<Item = Code>) -> Code {
    let codes = codes.collect::<Vec<_>>();
    let order = [Code::TaskFailed, Code::Waiting, Code::Budget, Code::Paused];
    order.into_iter().find(|code| codes.contains(code)).unwrap_or(Code::Done)
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
