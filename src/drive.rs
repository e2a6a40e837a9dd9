//! Carrying out a plan in this process: it hosts the planner and a worker, shows what happens, asks what is asked, and
//! ends when the plan does, or when only a person can go on.

use std::time::Duration;

use crewlog_executors::liveness::SignOfLife;
use crewlog_executors::shell::Shell;
use crewlog_executors::supervisor::SupervisorProgram;
use crewlog_executors::worker::Worker;
use crewlog_executors::{human, planning};
use crewlog_mq::{Error, EventStore, Handler, Query, Range, Recorded, Start};
use crewlog_planner::event::{Command, ExecutorEvent, Outcome, QuestionId, TaskStatus, plan_tag};
use crewlog_planner::state::{Phase, Question};
use crewlog_planner::view::PlanView;
use futures::StreamExt;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::cli::{Carry, Output};
use crate::failure::{Code, Failure};
use crate::json::{EventJson, ShownJson, print_line, print_pretty};
use crate::look;
use crate::progress::Progress;
use crate::session::Session;
use crate::terminal;
use crate::text::visible;

/// A plan on its way.
pub struct Drive<'a> {
    session: &'a Session,
    store: EventStore,
    plan: String,
    view: PlanView,
    progress: Progress,
    timeout: Option<Duration>,
    stop_worker: watch::Sender<bool>,
    worker: JoinHandle<Result<(), Error>>,
    host: JoinHandle<Result<(), Error>>,
    asking: Option<Asking>,
    /// The question that was answered here, until the planner has taken the answer in.
    answered: Option<QuestionId>,
}

/// A question that stands on the terminal.
struct Asking {
    question: QuestionId,
    answer: oneshot::Receiver<Option<String>>,
}

/// Why the loop ended.
enum End {
    Plan(Outcome),
    Paused,
    Waiting,
    TimedOut,
    Interrupted,
}

impl<'a> Drive<'a> {
    /// Starts to host the planner and a worker of a plan.
    pub async fn new(session: &'a Session, store: EventStore, plan: String, carry: &Carry) -> Result<Self, Failure> {
        let view = look::load_view(&store, &plan, Range::default()).await?;
        let life = SignOfLife::begin(&session.place.workers()).map_err(|error| {
            Failure::user(format!("{} cannot be written: {error}", session.place.workers().display()))
        })?;
        let shell = Shell {
            supervisor: SupervisorProgram::this_binary(["supervise"])?,
            env: vec![("CREWLOG_STORE".into(), session.place.absolute_url())],
            timeout: carry.task_timeout,
        };
        let jobs = carry.jobs.map_or(view.state().config().parallelism, usize::from);
        let worker = Worker::new(store.clone(), shell, life, jobs);
        let (stop_worker, stop) = watch::channel(false);
        let tags = session.tags(&plan);
        Ok(Self {
            worker: tokio::spawn(worker.run(plan.clone(), stop)),
            host: tokio::spawn(planning::host(store.clone(), plan.clone(), tags)),
            progress: Progress::new(session.terminal, &view),
            timeout: carry.timeout,
            session,
            store,
            plan,
            view,
            stop_worker,
            asking: None,
            answered: None,
        })
    }

    /// Goes on until the plan ends or nothing here can bring it further.
    pub async fn run(mut self) -> Result<Code, Failure> {
        self.progress.begin(&self.view);
        let query = Query::tag(plan_tag(&self.plan));
        let mut events = Box::pin(self.store.follow(&query, Start::After(self.view.at())));
        let mut signals = Signals::new()?;
        let timeout = self.timeout;
        let deadline = async move {
            match timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(deadline);
        let end = loop {
            match self.end()? {
                Some(end @ (End::Waiting | End::Paused)) if self.has_read_all().await? => break end,
                Some(End::Waiting | End::Paused) | None => {}
                Some(end) => break end,
            }
            tokio::select! {
                event = events.next() => match event {
                    Some(Ok(recorded)) => self.take(&recorded)?,
                    Some(Err(error)) => self.progress.note(&format!("the log could not be read: {error}")),
                    None => return Err(Failure::user("the log can no longer be followed")),
                },
                answer = answered(&mut self.asking) => self.answer(answer).await?,
                () = &mut deadline => break End::TimedOut,
                () = signals.next() => break End::Interrupted,
                _ = &mut self.worker => return Err(Failure::user("the log could not be read by the worker")),
            }
        };
        self.finish(end, signals).await
    }

    fn take(&mut self, recorded: &Recorded) -> Result<(), Failure> {
        self.view.apply(recorded)?;
        self.print_event(recorded)?;
        self.progress.report(recorded, &self.view);
        Ok(())
    }

    /// As JSON lines, the events are the output.
    fn print_event(&self, recorded: &Recorded) -> Result<(), Failure> {
        if let Output::Jsonl = self.session.output {
            let line = EventJson::of(recorded).map_err(std::io::Error::from)?;
            print_line(std::io::stdout().lock(), &line)?;
        }
        Ok(())
    }

    /// False in the middle of an append, or when more has been appended: then nothing is decided yet.
    async fn has_read_all(&self) -> Result<bool, Failure> {
        let query = Query::tag(plan_tag(&self.plan));
        let rest = self.store.read(&query, Range::after(self.view.at()), 1).await?;
        Ok(rest.events.is_empty())
    }

    /// Whether the loop ends here; where only an answer is missing and somebody is there, asks.
    fn end(&mut self) -> Result<Option<End>, Failure> {
        let state = self.view.state();
        let is_busy =
            state.tasks().iter().any(|task| task.status == TaskStatus::Running && task.plan.command.is_some());
        match state.phase() {
            Phase::Ended(outcome) => return Ok(Some(End::Plan(outcome))),
            Phase::Paused if !is_busy => return Ok(Some(End::Paused)),
            Phase::Paused | Phase::Active | Phase::Empty => {}
        }
        let question = state.open_questions().next().cloned();
        let Some(question) = question.filter(|_| self.session.terminal.is_interactive) else {
            return Ok((!is_busy).then_some(End::Waiting));
        };
        if self.asking.is_none() && self.answered != Some(question.id) {
            self.asking = Some(self.ask(&question)?);
        }
        Ok(None)
    }

    fn ask(&self, question: &Question) -> Result<Asking, Failure> {
        let (sender, answer) = oneshot::channel();
        let prompt = format!("{} {}\n> ", question.id, visible(&question.question));
        self.progress.pause();
        let reader = move || {
            // Whether the drive still waits for it is not this thread's concern.
            let _ = sender.send(terminal::ask(&prompt).ok().flatten());
        };
        std::thread::Builder::new().name("crewlog-prompt".into()).spawn(reader)?;
        Ok(Asking { question: question.id, answer })
    }

    async fn answer(&mut self, answer: Option<String>) -> Result<(), Failure> {
        let Some(asking) = self.asking.take() else { return Ok(()) };
        self.progress.go_on();
        let Some(question) = self.view.state().questions().iter().find(|known| known.id == asking.question) else {
            return Ok(());
        };
        let Some(answer) = answer.filter(|answer| !answer.is_empty()) else {
            return Err(Failure::new(Code::Waiting, format!("{} was not answered", question.id))
                .hint(self.session.command(&format!("answer {} {} \"...\"", self.plan, question.id)))
                .hint(self.session.command(&format!("resume {}", self.plan))));
        };
        let (node_id, question_id) = (question.task, question.id);
        let report = ExecutorEvent::ClarificationProvided { node_id, question_id, answer: answer.clone() };
        if let Err(refusal) = self.view.planner().clone().process(Command::HandleExecutorEvent(report)) {
            self.progress.note(&refusal.to_string());
            return Ok(());
        }
        let mut claim = human::claim_of(&self.store, &self.plan, node_id, self.session.tags(&self.plan));
        human::answer(&mut claim, question_id, answer).await?;
        self.answered = Some(question_id);
        Ok(())
    }

    async fn finish(mut self, end: End, mut signals: Signals) -> Result<Code, Failure> {
        self.progress.pause();
        if let End::Interrupted = end {
            self.progress.note("interrupted: stopping what runs (once more to end at once)");
        }
        self.stop_worker.send_replace(true);
        tokio::select! {
            _ = &mut self.worker => {}
            () = signals.next() => {}
        }
        self.host.abort();
        let head = self.store.head().await?;
        self.view = look::load_view(&self.store, &self.plan, Range::up_to(head)).await?;
        if let Output::Json = self.session.output {
            print_pretty(std::io::stdout().lock(), &ShownJson::of(&self.plan, head, &self.view))?;
        }
        self.progress.summary(&self.plan, &self.view);
        let resume = self.session.command(&format!("resume {}", self.plan));
        let (code, next) = match end {
            End::Plan(Outcome::Completed) => (Code::Done, Vec::new()),
            End::Plan(Outcome::Failed) => {
                let retry = self.session.command(&format!("retry {}", self.plan));
                (Code::TaskFailed, vec![format!("to try again: {retry}, then {resume}")])
            }
            End::Plan(Outcome::Cancelled) => (Code::TaskFailed, Vec::new()),
            End::Paused => (Code::Paused, vec![format!("the plan is paused; to go on: {resume}")]),
            End::TimedOut => (Code::TimedOut, vec![format!("the time given ran out; to go on: {resume}")]),
            End::Interrupted => (Code::Interrupted, vec![format!("interrupted; to go on: {resume}")]),
            End::Waiting => {
                let mut next = look::what_is_waited_for(self.session, &self.plan, self.view.state());
                next.push(format!("then, to go on: {resume}"));
                (Code::Waiting, next)
            }
        };
        for line in next {
            eprintln!("{line}");
        }
        Ok(code)
    }
}

/// `resume` of a plan that is over.
pub async fn already_ended(session: &Session, store: &EventStore, plan: &str, retry: &str) -> Result<Code, Failure> {
    let head = store.head().await?;
    let view = look::load_view(store, plan, Range::up_to(head)).await?;
    if let Output::Json = session.output {
        print_pretty(std::io::stdout().lock(), &ShownJson::of(plan, head, &view))?;
    }
    let progress = Progress::new(session.terminal, &view);
    progress.pause();
    progress.summary(plan, &view);
    match view.state().phase() {
        Phase::Ended(Outcome::Completed) => Ok(Code::Done),
        Phase::Ended(Outcome::Failed | Outcome::Cancelled) | Phase::Empty | Phase::Active | Phase::Paused => {
            eprintln!("the plan has ended; to open what failed again: {retry}");
            Ok(Code::TaskFailed)
        }
    }
}

/// The answer on the terminal, when one is awaited.
async fn answered(asking: &mut Option<Asking>) -> Option<String> {
    match asking {
        Some(asking) => (&mut asking.answer).await.ok().flatten(),
        None => std::future::pending().await,
    }
}

/// The signals that ask the program to end.
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}
