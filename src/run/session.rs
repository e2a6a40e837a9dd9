//! Runs a plan in this process: hosts the planner and a worker, shows progress, asks the questions, and ends with the
//! plan, or when only a person can continue it.

use std::collections::{BTreeMap, HashSet};

use crewlog_executors::crew::question_text;
use crewlog_executors::plans;
use crewlog_executors::roster::Roster;
use crewlog_executors::subplans::family;
use crewlog_executors::worker::{InterruptedTask, Scope};
use crewlog_mq::{EventStore, ExecuteError, Position, Query, Range, Recorded, Start};
use crewlog_planner::crew::{agents, breaker, conflicts};
use crewlog_planner::event::{Command, Outcome, QuestionId, Timer, ancestor_tag, plan_tag};
use crewlog_planner::lifecycle::{Observed, State, States, Wait};
use crewlog_planner::prompt::{error_lines, headline};
use crewlog_planner::state::{Phase, Question, Task};
use crewlog_planner::view::PlanView;
use crewlog_planner::{plan_event, sealed};
use futures::TryStreamExt;
use futures::future::OptionFuture;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::sleep_until;

use crate::context::Session;
use crate::plan_file::sync::{Kept, TRIES_MAX};
use crate::run::offering::OpenSessions;
use crate::run::progress::{ERROR_LINES_MAX, Progress};
use crate::run::runtime::{Next, RunArgs, Runtime};
use crate::target::{self, order};
use crate::ui::failure::{Code, Failure};
use crate::ui::json::print_pretty;
use crate::ui::signals::Signals;
use crate::ui::terminal::{self, Output, Results, say};
use crate::ui::text::{by_default, clock, count, visible};
use crate::views::{PlanShown, queries, views};

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
    roster: Roster,
    runtime: Runtime,
    asking: Asking,
    /// The plan's file, if the plan is synced with it.
    kept: Option<Kept<'a>>,
    sessions: OpenSessions,
    /// True if a person watches at a terminal.
    stays: bool,
    /// The line about them that was shown last.
    offered: Option<String>,
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
    line: Option<JoinHandle<Option<String>>>,
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
    /// Starts to host the planner and a worker of a plan. With JSON lines it prints the plan's events; of a resumed plan,
    /// those after the position where it was resumed.
    pub async fn new(
        session: &'a Session,
        store: EventStore,
        plan: String,
        resumed_at: Option<Position>,
        run_args: &RunArgs,
        roster: Roster,
        signals: Signals,
    ) -> Result<Self, Failure> {
        let view = queries::load_view(&store, &plan, Range::default()).await?;
        let tags = queries::tags_of(&store, &plan).await?;
        let scope = Scope::Plan(plan.clone());
        // `run` does not consent to repeating interrupted tasks.
        let interrupted = if resumed_at.is_some() { InterruptedTask::Rerun } else { InterruptedTask::Report };
        // A limit may last for hours, which only a person can decide to wait for.
        let roster = Roster { leaves_limits: !session.terminal.is_interactive, ..roster };
        let runtime = Runtime::start(session, &store, roster.clone(), scope, interrupted, run_args, signals).await?;
        let (own, known) = (Query::tag(plan_tag(&plan)), Range::between(resumed_at.unwrap_or_default(), view.at));
        let (mut output_fault, is_person) = (None, session.is_person().await?);
        let print = |recorded: &Recorded| session.print_event(recorded, &mut output_fault);
        queries::for_each(&store, None, &own, known, print).await?;
        Ok(Self {
            sessions: OpenSessions(runtime.crew.sessions().await?),
            stays: is_person && session.terminal.is_interactive && session.output == Output::Text,
            offered: None,
            runtime,
            progress: Progress::new(session.terminal, Some(roster.clone()), &view),
            roster,
            session,
            store,
            plan,
            at: view.at,
            view,
            sub_plans: BTreeMap::new(),
            tags,
            // An agent may have a terminal too.
            asking: Asking { input_has_ended: !is_person, ..Asking::default() },
            kept: None,
            sealed_for_good: None,
            output_fault,
        })
    }

    /// Runs until the plan ends or no executor here can advance it, and syncs it with its file if that is asked for.
    pub async fn run(mut self, is_synced: bool) -> Result<Code, Failure> {
        if is_synced {
            self.kept = Some(Kept::new(self.session, &self.store, &self.plan).await?);
        }
        self.progress.begin(&self.view);
        let end = self.follow().await;
        self.runtime.stop(&self.progress, matches!(end, Ok(End::Interrupted))).await;
        let end = end.map_err(|failure| failure.hint(self.session.command_on("resume", &self.plan)))?;
        self.finish(end).await
    }

    async fn follow(&mut self) -> Result<End, Failure> {
        self.take_all(&Query::tag(ancestor_tag(&self.plan)), Range::up_to(self.at)).await?;
        let query = family("", &self.plan).or(Query::stream(breaker::STREAM));
        let query = query.or(Query::aggregate(agents::STREAM, self.runtime.crew.project()));
        let mut events = Box::pin(self.store.follow(&query, Start::After(self.at)));
        loop {
            // Tasks that started before their key was destroyed run to their end.
            if !self.view.is_held()
                && let Some(failure) = self.sealed_for_good.take()
                && !self.view.state().phase.is_ended()
            {
                return Ok(End::Unreadable(failure));
            }
            match self.end() {
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
                next = self.runtime.next(&mut events, &self.progress) => match next? {
                    Next::Event(recorded) => self.take(&recorded).await?,
                    Next::Check => {}
                    Next::TimedOut => return Ok(End::TimedOut),
                    Next::Interrupted => return Ok(End::Interrupted),
                },
                Some(line) = OptionFuture::from(self.asking.line.as_mut()) => self.answer(line.ok().flatten()).await?,
                Some(()) = OptionFuture::from(due.map(sleep_until)) => drop(self.keep_file().await),
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

    async fn take_all(&mut self, query: &Query, range: Range) -> Result<(), Failure> {
        let store = self.store.clone();
        let mut records = std::pin::pin!(store.records(query, range));
        while let Some(recorded) = records.try_next().await? {
            self.take(&recorded).await?;
        }
        Ok(())
    }

    async fn take(&mut self, recorded: &Recorded) -> Result<(), Failure> {
        self.at = self.at.max(recorded.position);
        self.roster.follow(recorded).await?;
        if recorded.stream_id == agents::STREAM {
            // A fault is no reason to end: sessions change nothing about the plan.
            self.sessions.0 = self.runtime.crew.sessions().await.unwrap_or_default();
            return Ok(());
        }
        let is_of_key = recorded.stream_id == sealed::STREAM;
        if is_of_key || recorded.event_type == "TaskDispatched" {
            self.sealed_for_good = self.session.place.check_key(&self.plan, &self.tags).err();
        }
        if is_of_key {
            return Ok(());
        }
        if !recorded.tags.contains(&plan_tag(&self.plan)) {
            let Some(plan) = plan_event::plan_of(recorded) else { return Ok(()) };
            return Ok(self.sub_plans.entry(plan.to_owned()).or_default().apply(recorded).map(drop)?);
        }
        let event = self.view.apply(recorded)?;
        self.kept.iter_mut().for_each(Kept::plan_has_changed);
        self.session.print_event(recorded, &mut self.output_fault)?;
        self.progress.report(&event, recorded, &self.view);
        if recorded.stream_id == conflicts::STREAM {
            self.progress.report_conflict(&self.store, recorded).await?;
        }
        Ok(())
    }

    /// False in the middle of an append, or when more has been appended or reported.
    async fn has_read_all(&self) -> Result<bool, Failure> {
        let is_taken_in = *self.runtime.taken_in.borrow() >= self.view.last_report;
        let query = family("", &self.plan);
        Ok(is_taken_in && self.store.read(&query, Range::after(self.at), 1).await?.events.is_empty())
    }

    /// Returns how the loop ends, if it does. Asks the next open question if a person is at the terminal.
    fn end(&mut self) -> Option<End> {
        let state = self.view.state();
        let is_busy = self.roster.is_busy(&self.plan, &self.view, &self.sub_plans);
        match state.phase {
            Phase::Ended(outcome) => return Some(End::Plan(outcome)),
            Phase::Paused if !is_busy => return Some(End::Paused),
            Phase::Paused | Phase::Active | Phase::Empty => {}
        }
        let is_asked = self.session.terminal.is_interactive && !self.asking.input_has_ended;
        let is_settled = |id| self.asking.answered.contains(id) || self.asking.left.contains(id);
        let is_answered = state.open_questions().any(|question| self.asking.answered.contains(&question.id));
        let question = state.open_questions().find(|question| !is_settled(&question.id)).filter(|_| is_asked).cloned();
        let Some(question) = question else {
            // On a terminal it stays while sessions may go on.
            let offered = if self.stays { self.sessions.offered(&self.roster, &self.view) } else { None };
            if !is_busy && offered.is_some() && self.offered != offered {
                offered.iter().for_each(|offered| self.progress.note(&format!("{offered} (Ctrl-C ends this run)")));
                self.offered.clone_from(&offered);
            }
            return (!is_busy && !is_answered && offered.is_none()).then_some(End::Waiting);
        };
        if self.asking.question != Some(question.id) {
            self.ask(&question);
        }
        None
    }

    fn ask(&mut self, question: &Question) {
        self.progress.pause();
        let deadline = self.view.state().due(Timer::Question(question.id));
        let by_default = by_default(question.default.as_ref(), deadline);
        let text = question_text(&self.view, question, |error| error_lines(error, ERROR_LINES_MAX).join("\n"));
        terminal::prompt(&format!("{} {}{by_default}\n> ", question.id, visible(&text)));
        self.asking.question = Some(question.id);
        if self.asking.line.is_none() {
            // When nobody waits for the line any more, the program ends without it.
            self.asking.line = Some(spawn_blocking(|| terminal::read_line().ok().flatten()));
        }
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
        for _ in 0..TRIES_MAX {
            self.take_all(&family("", &self.plan), Range::between(self.at, head)).await?;
            if !self.keep_file().await {
                break;
            }
            head = self.store.head().await?;
        }
        let states = self.roster.states(&self.plan, &self.view, &self.sub_plans);
        if let Output::Json = self.session.output {
            let shown = PlanShown::of(&self.plan, head, &self.view, &states);
            self.output_fault = print_pretty(Results::exact(), &shown).err();
        }
        self.progress.summary(&self.plan, &self.view, &states);
        if matches!(end, End::Paused | End::Waiting) && !self.view.state().waits_for_work() {
            let offered = self.sessions.offered(&self.roster, &self.view);
            offered.iter().for_each(|offered| say(offered));
            let as_of = views(self.session).await?.as_of(None).await?;
            as_of.waits(self.session, &self.plan).await?.iter().for_each(|line| say(line));
        }
        let mut limited = states.tasks.iter().filter_map(|(task, it)| match &it.wait {
            Some(Wait::Limit { until }) => Some((self.view.state().task(*task)?, *until)),
            _another => None,
        });
        for (task, until) in limited.by_ref().take(3) {
            let until = until.map_or_else(String::new, |until| format!(" until {}", clock(until, self.store.now())));
            let why = task.error.as_deref().map_or_else(|| "that of its executor".to_owned(), headline);
            say(&format!("task {} waits{until} for a rate limit: {}", visible(&task.plan.name()), visible(&why)));
        }
        let n_more = limited.count();
        (n_more > 0).then(|| say(&format!("so for {}", count(n_more, "more task"))));
        let (code, next) = self.what_next(&end);
        next.iter().for_each(|line| say(line));
        self.output_fault.map_or(Ok(()), |fault| Failure::output(fault).unless_closed())?;
        Ok(code)
    }

    fn what_next(&self, end: &End) -> (Code, Option<String>) {
        let (resume, retry) =
            (self.session.command_on("resume", &self.plan), self.session.command_on("retry", &self.plan));
        let state = self.view.state();
        match end {
            End::Plan(Outcome::Completed) => (Code::Done, None),
            End::Plan(Outcome::Failed) => (Code::TaskFailed, Some(format!("to try again: {retry}, then {resume}"))),
            End::Plan(Outcome::Cancelled) => (Code::TaskFailed, None),
            End::Paused if state.shortage().is_some() => (Code::Budget, None),
            End::Paused => (Code::Paused, None),
            End::Unreadable(failure) => (failure.code, Some(failure.to_string())),
            End::TimedOut => (Code::TimedOut, Some(format!("stopped after its --timeout; to continue: {resume}"))),
            End::Interrupted => (Code::Interrupted, Some(format!("interrupted; to continue: {resume}"))),
            End::Waiting if state.waits_for_work() => {
                let add = self.session.command_on("task add \"...\" --plan", &self.plan);
                let has_failed = |task: &&Task| State::of_end(task.status) == Some(State::Failed);
                match state.tasks.iter().filter(has_failed).count() {
                    0 => (Code::Done, Some(format!("all tasks are done; to add more: {add}"))),
                    n => {
                        let again = format!("{} failed; to try again: {retry}, then {resume}", count(n, "task"));
                        (Code::TaskFailed, Some(format!("{again}; to add tasks: {add}")))
                    }
                }
            }
            End::Waiting => {
                let lacks = |view: &PlanView| view.state().phase == Phase::Paused && view.state().shortage().is_some();
                let code = if self.sub_plans.values().any(lacks) { Code::Budget } else { Code::Waiting };
                (code, Some(format!("then continue: {resume}")))
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
        let printed = print_pretty(Results::exact(), &PlanShown::of(plan, head, &view, &states));
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
