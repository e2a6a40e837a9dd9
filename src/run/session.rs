//! Runs a plan in this process: hosts the planner and a worker, shows progress, asks the questions, and ends with the
//! plan, or when only a person can continue it.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use crewlog_executors::crew::question_text;
use crewlog_executors::plans;
use crewlog_executors::roster::Roster;
use crewlog_executors::subplans::family;
use crewlog_executors::worker::{InterruptedTask, Scope};
use crewlog_mq::{Error, EventStore, ExecuteError, Position, Query, Range, Recorded, Start};
use crewlog_planner::crew::conflicts;
use crewlog_planner::crew::conflicts::ConflictEvent;
use crewlog_planner::event::{Command, Outcome, QuestionId, Timer, ancestor_tag, plan_tag};
use crewlog_planner::lifecycle::{Observed, State, States};
use crewlog_planner::planner::PARALLELISM_MAX;
use crewlog_planner::prompt::error_lines;
use crewlog_planner::sealed;
use crewlog_planner::state::{Phase, Question, Task};
use crewlog_planner::view::PlanView;
use futures::StreamExt;
use futures::future::OptionFuture;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use crate::context::Session;
use crate::plan_file::sync::{Kept, TRIES_MAX};
use crate::run::by_model;
use crate::run::options::RunArgs;
use crate::run::progress::{ERROR_LINES_MAX, Progress, STOPPING};
use crate::run::runtime::{Runtime, RuntimeOptions, is_busy, states};
use crate::target;
use crate::target::order;
use crate::ui::failure::{Code, Failure};
use crate::ui::json::print_pretty;
use crate::ui::signals::Signals;
use crate::ui::terminal;
use crate::ui::terminal::{Output, say};
use crate::ui::text::{by_default, count, visible};
use crate::views::views;
use crate::views::{PlanShown, queries};

pub struct RunSession<'a> {
    session: &'a Session,
    store: EventStore,
    plan: String,
    view: PlanView,
    /// The sub-plans, at any depth.
    sub_plans: BTreeMap<String, PlanView>,
    /// The position up to which all of them are read.
    at: Position,
    tags: Vec<String>,
    progress: Progress,
    /// Not reported yet.
    conflicts: Vec<ConflictEvent>,
    timeout: Option<Duration>,
    roster: Roster,
    runtime: Runtime,
    asking: Asking,
    /// The plan's file, if the plan is synced with it.
    kept: Option<Kept<'a>>,
    /// Why the plan's texts can no longer be read.
    sealed_for_good: Option<Failure>,
    /// The first write error of standard output, after which nothing more is printed.
    output_fault: Option<std::io::Error>,
}

/// The questions on the terminal. At most one line is being read, whichever question it answers: a second reader would
/// take the line that was meant for the first.
#[derive(Default)]
struct Asking {
    /// The one shown now.
    question: Option<QuestionId>,
    line: Option<oneshot::Receiver<Option<String>>>,
    /// Answered here, which the plan may not show yet.
    answered: HashSet<QuestionId>,
    /// The one that got an empty line: another one leaves it open.
    unanswered: Option<QuestionId>,
    /// Left open by the person.
    left: HashSet<QuestionId>,
    input_has_ended: bool,
}

enum End {
    Plan(Outcome),
    Paused,
    Waiting,
    Unreadable(Failure),
    TimedOut,
    Interrupted,
}

impl<'a> RunSession<'a> {
    /// Starts to host the planner and a worker of a plan. As JSON lines its events after `since` are printed.
    pub async fn new(
        session: &'a Session,
        store: EventStore,
        plan: String,
        since: Position,
        run_args: &RunArgs,
        roster: Roster,
        interrupted: InterruptedTask,
    ) -> Result<Self, Failure> {
        let view = queries::load_view(&store, &plan, Range::default()).await?;
        // The limit of the plan may change while it runs; the planner applies it.
        let jobs = run_args.jobs.unwrap_or(2 * PARALLELISM_MAX);
        let tags = queries::tags_of(&store, &plan).await?;
        let model = by_model::wanted(session, run_args.by_model())?;
        let options =
            RuntimeOptions { roster: roster.clone(), scope: Scope::Plan(plan.clone()), interrupted, jobs, model };
        let mut run_session = Self {
            runtime: Runtime::start(session, &store, options, tags.clone())?,
            progress: Progress::new(session.terminal, Some(roster.clone()), &view),
            timeout: run_args.timeout,
            roster,
            conflicts: Vec::new(),
            session,
            store,
            plan,
            at: view.at,
            view,
            sub_plans: BTreeMap::new(),
            tags,
            asking: Asking::default(),
            kept: None,
            sealed_for_good: None,
            output_fault: None,
        };
        let known = Range::between(since, run_session.view.at);
        let (store, query) = (run_session.store.clone(), Query::tag(plan_tag(&run_session.plan)));
        let fault = &mut run_session.output_fault;
        queries::for_each(&store, None, &query, known, |recorded| session.print_event(recorded, fault)).await?;
        let (sub_plans, up_to) = (Query::tag(ancestor_tag(&run_session.plan)), Range::up_to(run_session.at));
        queries::for_each(&store, None, &sub_plans, up_to, |recorded| run_session.take(recorded)).await?;
        Ok(run_session)
    }

    /// Runs until the plan ends or no executor here can advance it, and syncs it with its file if that is asked for.
    pub async fn run(mut self, mut signals: Signals, is_synced: bool) -> Result<Code, Failure> {
        if is_synced {
            self.kept = Some(Kept::new(self.session, &self.store, &self.plan, self.roster.clone()).await?);
        }
        self.progress.begin(&self.view);
        let end = self.follow(&mut signals).await;
        self.progress.pause();
        if let Ok(End::Interrupted) = end {
            self.progress.note(STOPPING);
        }
        self.runtime.stop(&mut signals, |text| self.progress.note(text)).await;
        match end {
            Ok(end) => self.finish(end).await,
            Err(failure) => Err(failure.hint(self.session.command_on("resume", &self.plan))),
        }
    }

    async fn follow(&mut self, signals: &mut Signals) -> Result<End, Failure> {
        let mut events = Box::pin(self.store.follow(&family("", &self.plan), Start::After(self.at)));
        let mut taken_in = self.runtime.taken_in.clone();
        let deadline = self.timeout.map(|timeout| Instant::now() + timeout);
        loop {
            // Tasks that started before their key was destroyed run to their end.
            if !self.view.is_held()
                && let Some(failure) = self.sealed_for_good.take()
                && !self.view.state().phase.is_ended()
            {
                return Ok(End::Unreadable(failure));
            }
            match self.end()? {
                Some(end @ (End::Waiting | End::Paused)) if self.has_read_all().await? => {
                    // The file may have the answer or the result.
                    if !self.keep_file().await {
                        return Ok(end);
                    }
                }
                Some(End::Waiting | End::Paused) | None => {}
                Some(end) => return Ok(end),
            }
            let due = self.kept.as_ref().map(|kept| kept.due);
            tokio::select! {
                event = events.next() => if let Some(recorded) = self.runtime.event(event, &self.progress)? {
                    self.take(&recorded)?;
                    self.report_conflicts().await?;
                },
                Some(line) = OptionFuture::from(self.asking.line.as_mut()) => self.answer(line.ok().flatten()).await?,
                Ok(()) = taken_in.changed() => {}
                Some(()) = OptionFuture::from(due.map(sleep_until)) => drop(self.keep_file().await),
                Some(()) = OptionFuture::from(deadline.map(sleep_until)) => return Ok(End::TimedOut),
                () = signals.next() => return Ok(End::Interrupted),
                fault = self.runtime.fault() => return Err(fault),
            }
        }
    }

    /// Syncs the plan with its file. Returns whether another sync is needed.
    async fn keep_file(&mut self) -> bool {
        let Some(kept) = &mut self.kept else { return false };
        let is_behind = kept.keep(&self.view).await;
        kept.notes.drain(..).for_each(|note| self.progress.note(&note));
        is_behind
    }

    fn take(&mut self, recorded: &Recorded) -> Result<(), Failure> {
        self.at = self.at.max(recorded.position);
        let is_of_key = recorded.stream_id == sealed::STREAM;
        if is_of_key || recorded.event_type == "TaskDispatched" {
            self.sealed_for_good = self.session.place.check_key(&self.plan, &self.tags).err();
        }
        if is_of_key {
            return Ok(());
        }
        if !recorded.tags.contains(&plan_tag(&self.plan)) {
            let Some(plan) = plans::plan_of(recorded) else { return Ok(()) };
            return Ok(self.sub_plans.entry(plan.to_owned()).or_default().apply(recorded)?);
        }
        self.view.apply(recorded)?;
        self.kept.iter_mut().for_each(Kept::plan_has_changed);
        self.session.print_event(recorded, &mut self.output_fault)?;
        self.progress.report(recorded, &self.view);
        if recorded.stream_id == conflicts::STREAM {
            self.conflicts.extend(recorded.decode());
        }
        Ok(())
    }

    async fn report_conflicts(&mut self) -> Result<(), Error> {
        for conflict in std::mem::take(&mut self.conflicts) {
            self.progress.report_conflict(&self.store, &conflict).await?;
        }
        Ok(())
    }

    /// False in the middle of an append, or when more has been appended or reported.
    async fn has_read_all(&self) -> Result<bool, Failure> {
        if *self.runtime.taken_in.borrow() < self.view.last_report {
            return Ok(false);
        }
        let rest = self.store.read(&family("", &self.plan), Range::after(self.at), 1).await?;
        Ok(rest.events.is_empty())
    }

    /// Returns how the loop ends, if it does. Asks the next open question if a person is at the terminal.
    fn end(&mut self) -> Result<Option<End>, Failure> {
        let state = self.view.state();
        let is_busy = is_busy(&self.roster, &self.plan, &self.view, &self.sub_plans);
        match state.phase {
            Phase::Ended(outcome) => return Ok(Some(End::Plan(outcome))),
            Phase::Paused if !is_busy => return Ok(Some(End::Paused)),
            Phase::Paused | Phase::Active | Phase::Empty => {}
        }
        let is_asked = self.session.terminal.is_interactive && !self.asking.input_has_ended;
        let is_new = |question: &&Question| {
            !self.asking.answered.contains(&question.id) && !self.asking.left.contains(&question.id)
        };
        let is_answered = state.open_questions().any(|question| self.asking.answered.contains(&question.id));
        let question = state.open_questions().find(is_new).filter(|_| is_asked).cloned();
        let Some(question) = question else {
            return Ok((!is_busy && !is_answered).then_some(End::Waiting));
        };
        if self.asking.question != Some(question.id) {
            self.ask(&question)?;
        }
        Ok(None)
    }

    fn ask(&mut self, question: &Question) -> Result<(), Failure> {
        self.progress.pause();
        let deadline = self.view.state().due(Timer::Question(question.id));
        let by_default = by_default(question.default.as_ref(), deadline);
        let text = question_text(self.view.state(), question, |error| error_lines(error, ERROR_LINES_MAX).join("\n"));
        terminal::prompt(&format!("{} {}{by_default}\n> ", question.id, visible(&text)));
        self.asking.question = Some(question.id);
        if self.asking.line.is_none() {
            let (sender, line) = oneshot::channel();
            let reader = move || {
                // The session may no longer wait for the line.
                let _ = sender.send(terminal::read_line().ok().flatten());
            };
            let started = std::thread::Builder::new().name("crewlog-prompt".into()).spawn(reader);
            started.map_err(|error| Failure::user(format!("the question cannot be asked: {error}")))?;
            self.asking.line = Some(line);
        }
        Ok(())
    }

    /// Handles a typed line: an answer, a second empty line to leave the question open, or the end of input to stop asking.
    async fn answer(&mut self, line: Option<String>) -> Result<(), Failure> {
        self.asking.line = None;
        self.progress.go_on();
        let Some(answer) = line else {
            self.asking.input_has_ended = true;
            return Ok(());
        };
        let mut open = self.view.state().open_questions();
        let asked = self.asking.question.take();
        let Some(question) = open.find(|question| Some(question.id) == asked) else {
            self.progress.note("the answer was not used: the question is no longer open");
            return Ok(());
        };
        let question = question.id;
        let was_unanswered = self.asking.unanswered.take() == Some(question);
        if answer.is_empty() && was_unanswered {
            let later = self.session.command_in("answer", &self.plan, &question.to_string());
            self.progress.note(&format!("{question} stays open; to answer it later: {later} \"...\""));
            self.asking.left.insert(question);
            return Ok(());
        }
        if answer.is_empty() {
            self.progress.note("no answer was typed (Enter again: answer later; Ctrl-C: stop the run)");
            self.asking.unanswered = Some(question);
            return Ok(());
        }
        let command = Command::Answer { question, answer };
        let mut planner = plans::planner_of(&self.store, &self.plan, self.tags.clone()).await?;
        match order(&mut planner, command).await {
            Ok(_) => _ = self.asking.answered.insert(question),
            Err(ExecuteError::Refused(refusal)) => self.progress.note(&refusal.to_string()),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    async fn finish(mut self, end: End) -> Result<Code, Failure> {
        if let End::Plan(_) = end {
            target::propagate(&self.store, &self.plan).await?;
        }
        let mut head = self.store.head().await?;
        let (store, query) = (self.store.clone(), family("", &self.plan));
        for _ in 0..TRIES_MAX {
            let rest = Range::between(self.at, head);
            queries::for_each(&store, None, &query, rest, |recorded| self.take(recorded)).await?;
            self.report_conflicts().await?;
            if !self.keep_file().await {
                break;
            }
            head = self.store.head().await?;
        }
        let states = states(&self.roster, &self.plan, &self.view, &self.sub_plans);
        if let Output::Json = self.session.output {
            let shown = PlanShown::of(&self.plan, head, &self.view, &states);
            self.output_fault = print_pretty(std::io::stdout().lock(), &shown).err();
        }
        self.progress.summary(&self.plan, &self.view, &states);
        let waits = match &end {
            End::Paused | End::Waiting if !self.view.state().waits_for_work() => {
                views(self.session).await?.as_of(None).await?.waits(self.session, &self.plan).await?
            }
            _goes_no_further => Vec::new(),
        };
        let (code, next) = self.what_next(&end);
        for line in waits.into_iter().chain(next) {
            say(&line);
        }
        self.output_fault.map_or(Ok(()), |fault| Failure::output(fault).unless_closed())?;
        Ok(code)
    }

    fn what_next(&self, end: &End) -> (Code, Vec<String>) {
        let resume = self.session.command_on("resume", &self.plan);
        match end {
            End::Plan(Outcome::Completed) => (Code::Done, Vec::new()),
            End::Plan(Outcome::Failed) => {
                let retry = self.session.command_on("retry", &self.plan);
                (Code::TaskFailed, vec![format!("to try again: {retry}, then {resume}")])
            }
            End::Plan(Outcome::Cancelled) => (Code::TaskFailed, Vec::new()),
            End::Paused if self.view.state().shortage().is_some() => (Code::Budget, Vec::new()),
            End::Paused => (Code::Paused, Vec::new()),
            End::Unreadable(failure) => (failure.code, vec![failure.to_string()]),
            End::TimedOut => (Code::TimedOut, vec![format!("stopped after its --timeout; to continue: {resume}")]),
            End::Interrupted => (Code::Interrupted, vec![format!("interrupted; to continue: {resume}")]),
            End::Waiting if self.view.state().waits_for_work() => {
                let add = self.session.command_on("task add \"...\" --plan", &self.plan);
                let has_failed = |task: &Task| State::of_end(task.status) == Some(State::Failed);
                let n_failed = self.view.state().tasks.iter().filter(|task| has_failed(task)).count();
                if n_failed > 0 {
                    let retry = self.session.command_on("retry", &self.plan);
                    let failed = count(n_failed, "task");
                    let said = format!("{failed} failed; to try again: {retry}, then {resume}; to add tasks: {add}");
                    return (Code::TaskFailed, vec![said]);
                }
                (Code::Done, vec![format!("all tasks are done; to add more: {add}")])
            }
            End::Waiting => {
                let next = vec![format!("then continue: {resume}")];
                let lacks = |view: &PlanView| view.state().phase == Phase::Paused && view.state().shortage().is_some();
                (if self.sub_plans.values().any(lacks) { Code::Budget } else { Code::Waiting }, next)
            }
        }
    }
}

/// `resume` of a plan that has ended.
pub async fn already_ended(session: &Session, store: &EventStore, plan: &str) -> Result<Code, Failure> {
    let head = store.head().await?;
    let view = queries::load_view(store, plan, Range::up_to(head)).await?;
    let states = States::of(plan, &view, &Observed::default());
    if let Output::Json = session.output {
        let printed = print_pretty(std::io::stdout().lock(), &PlanShown::of(plan, head, &view, &states));
        printed.map_err(Failure::output).or_else(Failure::unless_closed)?;
    }
    Progress::new(session.terminal, None, &view).summary(plan, &view, &states);
    if view.state().phase == Phase::Ended(Outcome::Completed) {
        return Ok(Code::Done);
    }
    let retry = session.command_on("retry", plan);
    say(&format!("the plan has ended; to run its failed tasks again: {retry}"));
    Ok(Code::TaskFailed)
}
