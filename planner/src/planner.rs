//! The planner: a pure handler that decides what happens next in a plan.
//!
//! A command is decided on the present state, its events are applied, and then what has become possible is
//! scheduled, until nothing more is. It never acts: executors learn of a task from its `TaskDispatched` alone.

use crewlog_mq::Handler;

use crate::brevity::shorten;
use crate::context::{self, TOKEN_BUDGET_MAX, TOKEN_BUDGET_MIN};
pub use crate::error::PlannerError;
use crate::event::{
    Command, Event, ExecutorEvent, FailureClass, Outcome, PlannerCmd, PlannerConfig, Purpose, QuestionId, TaskStatus,
};
use crate::parse::{self, ParseOptions};
use crate::plan::{Attachment, AttachmentKind, FailurePolicy, Mark, NodeKind, TaskId, TaskPlan};
use crate::state::{N_LANES, Phase, PlannerState, QUESTIONS, Question, Task, is_yes};

/// The most tasks that a plan may run at once.
pub const PARALLELISM_MAX: usize = 1_000;
/// The most times a task may be tried again.
pub const RETRIES_MAX: u32 = 100;

/// The greatest length of an answer, in bytes. Commands find answers in their environment, which has a limit too.
pub const ANSWER_BYTES_MAX: usize = 8 << 10;

/// The planner of one plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Planner {
    state: PlannerState,
}

impl Planner {
    /// A planner without a plan.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// All that is known of the plan.
    #[must_use]
    pub fn state(&self) -> &PlannerState {
        &self.state
    }

    fn decide(&self, command: Command) -> Result<Vec<Event>, PlannerError> {
        if let Command::Initialize { user_input, attachments, config, relax_order } = command {
            return self.initialize(user_input, attachments, config, relax_order);
        }
        if self.state.phase == Phase::Empty {
            return Err(PlannerError::NotPlanned);
        }
        match command {
            Command::Initialize { .. } => Err(PlannerError::AlreadyPlanned),
            Command::HandleExecutorEvent(event) => self.handle(event),
            Command::Continue => Ok(Vec::new()),
            Command::CompactContext { max_tokens } => {
                Ok(context::compact(&self.state, max_tokens).into_iter().collect())
            }
            Command::Cancel { task: Some(task), reason } => self.cancel_task(task, &reason),
            Command::Cancel { task: None, reason } => Ok(self.cancel_plan(&reason)),
            Command::Pause { reason } => self.pause(reason),
            Command::Resume => Ok(match self.state.phase {
                Phase::Paused => vec![Event::PlanResumed {}],
                Phase::Empty | Phase::Active | Phase::Ended(_) => Vec::new(),
            }),
            Command::Retry { task } => self.retry(task),
        }
    }

    fn initialize(
        &self,
        source: String,
        attachments: Vec<Attachment>,
        config: PlannerConfig,
        relax_order: bool,
    ) -> Result<Vec<Event>, PlannerError> {
        if self.state.phase != Phase::Empty {
            return Err(PlannerError::AlreadyPlanned);
        }
        check_setting("parallelism", config.parallelism, 1, PARALLELISM_MAX)?;
        check_setting("token_budget", config.token_budget, TOKEN_BUDGET_MIN, TOKEN_BUDGET_MAX)?;
        check_setting("retries_max", config.retries_max as usize, 0, RETRIES_MAX as usize)?;
        let parsed = parse::parse(&source, ParseOptions { relax_order })?;
        let mut tasks = parsed.tasks;
        let attachments = attach(&mut tasks, attachments);
        let marked = tasks.iter().filter_map(end_by_mark).collect::<Vec<_>>();
        let planned =
            Event::TasksPlanned { tasks, title: parsed.title, source, config, context: parsed.context, attachments };
        Ok([vec![planned], marked].concat())
    }

    fn handle(&self, event: ExecutorEvent) -> Result<Vec<Event>, PlannerError> {
        match event {
            ExecutorEvent::TaskCompleted { node_id, attempt, result } => Ok(self
                .running(node_id, attempt)?
                .map_or_else(Vec::new, |_| vec![end(node_id, TaskStatus::Completed, Some(result), None, true)])),
            ExecutorEvent::TaskFailed { node_id, attempt, error, class } => {
                let error = shorten(&error, self.state.config.error_char_limit);
                Ok(self.running(node_id, attempt)?.map_or_else(Vec::new, |task| self.fail(task, error, class)))
            }
            ExecutorEvent::NeedsClarification { node_id, attempt, question } => Ok(self
                .running(node_id, attempt)?
                .map_or_else(Vec::new, |_| vec![self.ask(node_id, question, Purpose::Executor, 0)])),
            ExecutorEvent::ClarificationProvided { node_id, question_id, answer } => {
                self.answer(node_id, question_id, answer)
            }
        }
    }

    /// The task, if this attempt of it is the one that runs. What is reported late or twice changes nothing.
    fn running(&self, id: TaskId, attempt: u32) -> Result<Option<&Task>, PlannerError> {
        let task = self.state.task(id).ok_or(PlannerError::UnknownTask { task: id })?;
        Ok((task.status == TaskStatus::Running && task.attempts == attempt).then_some(task))
    }

    fn fail(&self, task: &Task, error: String, class: FailureClass) -> Vec<Event> {
        let id = task.plan.id;
        let is_unknown = class == FailureClass::OutcomeUnknown;
        let retries = match class {
            // A run that was cut off is no failure of the task's, so what the text says of those does not count.
            FailureClass::OutcomeUnknown if task.plan.rerun_safe => self.state.config.retries_max,
            FailureClass::OutcomeUnknown => 0,
            FailureClass::Task => task.plan.retry.unwrap_or(0),
            FailureClass::NotStarted | FailureClass::TimedOut | FailureClass::RateLimited => {
                task.plan.retry.unwrap_or(self.state.config.retries_max)
            }
        };
        if task.failures < retries.min(RETRIES_MAX) && !self.has_stopped() {
            let again = end(id, TaskStatus::Planned, None, Some(error), false);
            // Where it may not start now, it is dispatched when the plan is resumed, or what it waits for ends.
            let may_start = self.state.phase == Phase::Active
                && self.state.is_unblocked(id)
                && matches!(self.condition_holds(&task.plan), Holds::Yes);
            let dispatched = may_start.then(|| self.dispatch(task, self.backoff(task)));
            return [again].into_iter().chain(dispatched).collect();
        }
        let name = task.plan.name();
        let said = match task.plan.on_failure.unwrap_or(self.state.config.on_failure) {
            // Neither a pause nor a plan that has stopped keeps it from being asked: nothing starts by asking, and
            // nobody else can say whether the work was done.
            _ if is_unknown => format!("It is not known whether task {name} did its work"),
            FailurePolicy::Ask => format!("Task {name} failed"),
            policy => return self.give_up(task, failed_status(class), error, policy),
        };
        let question = format!("{said}: {error}. Retry, done, skip, continue or stop?");
        let failed = end(id, TaskStatus::NeedsClarification, None, Some(error), false);
        vec![failed, self.ask(id, question, Purpose::Failure, 0)]
    }

    /// True when a failure has stopped the plan.
    fn has_stopped(&self) -> bool {
        self.state.tasks.iter().any(|task| self.stops(task))
    }

    /// True of a task whose failure stopped the plan.
    fn stops(&self, task: &Task) -> bool {
        let policy = task.plan.on_failure.unwrap_or(self.state.config.on_failure);
        policy == FailurePolicy::Stop && matches!(task.status, TaskStatus::Failed | TaskStatus::TimedOut)
    }

    /// A failure for good, by any policy but `Ask`.
    fn give_up(&self, task: &Task, status: TaskStatus, error: String, policy: FailurePolicy) -> Vec<Event> {
        let unblocks = policy == FailurePolicy::Continue;
        let mut events = vec![end(task.plan.id, status, None, Some(error), unblocks)];
        if policy == FailurePolicy::Stop {
            let reason = format!("not started: the plan stopped when task {} failed", task.plan.name());
            let rest = self.state.tasks.iter().filter(|other| other.plan.id != task.plan.id);
            let waiting =
                rest.filter(|other| matches!(other.status, TaskStatus::Planned | TaskStatus::NeedsClarification));
            events.extend(waiting.map(|other| match &other.error {
                // It did start, and what is known of that stays.
                Some(error) if self.state.is_asked_what_to_do_about(other.plan.id) => {
                    end(other.plan.id, TaskStatus::Failed, None, Some(error.clone()), false)
                }
                Some(_) | None => end(other.plan.id, TaskStatus::Skipped, None, Some(reason.clone()), false),
            }));
        }
        events
    }

    /// Milliseconds before the next try: doubled each time, less up to a quarter so that tasks which failed together
    /// do not come back together. The spread depends on the task alone, so replay gives the same.
    fn backoff(&self, task: &Task) -> u64 {
        let config = &self.state.config;
        let doubled = config.backoff_ms.saturating_mul(1_u64 << task.failures.min(20)).min(config.backoff_ms_max);
        let mixed = (task.plan.id.0 ^ (u64::from(task.attempts) << 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
        doubled - mixed % (doubled / 4 + 1)
    }

    /// A question, the `nth` that the same decision asks.
    fn ask(&self, task_id: TaskId, question: String, purpose: Purpose, nth: u64) -> Event {
        let question_id = QuestionId(self.state.questions.len() as u64 + 1 + nth);
        Event::ClarificationRequested { task_id, question_id, question, purpose }
    }

    fn answer(&self, asker: TaskId, id: QuestionId, answer: String) -> Result<Vec<Event>, PlannerError> {
        let question = self.state.question(id).filter(|question| question.task == asker);
        let question = question.ok_or(PlannerError::UnknownQuestion { question: id })?;
        if question.answer.as_ref() == Some(&answer) {
            return Ok(Vec::new());
        }
        if answer.len() > ANSWER_BYTES_MAX {
            let (value, max) = (answer.len(), ANSWER_BYTES_MAX);
            return Err(PlannerError::AnswerTooLong { question: id, value, max });
        }
        if !question.is_open() {
            return Err(PlannerError::QuestionClosed { question: id, answer: question.answer.clone() });
        }
        let task = self.state.task(question.task).ok_or(PlannerError::UnknownTask { task: question.task })?;
        let follows = self.follow_answer(question, task, &answer)?;
        let received = Event::ClarificationReceived { task_id: question.task, question_id: id, answer };
        Ok([vec![received], follows].concat())
    }

    fn follow_answer(&self, question: &Question, task: &Task, answer: &str) -> Result<Vec<Event>, PlannerError> {
        let not_understood = |allowed| PlannerError::AnswerNotUnderstood { question: question.id, allowed };
        match question.purpose {
            Purpose::Task => Ok(vec![end(task.plan.id, TaskStatus::Completed, Some(answer.to_owned()), None, true)]),
            // Back among the planned: it is dispatched again, with the answer, when a place is free.
            Purpose::Executor => Ok(vec![end(task.plan.id, TaskStatus::Planned, None, None, false)]),
            Purpose::Condition => is_yes(answer).map(|_| Vec::new()).ok_or_else(|| not_understood("yes, no")),
            Purpose::Failure => {
                let error = task.error.clone().unwrap_or_default();
                let policy = match answer.trim().to_lowercase().as_str() {
                    "retry" => {
                        return Ok(vec![end(task.plan.id, TaskStatus::Planned, None, task.error.clone(), false)]);
                    }
                    "done" => {
                        let result = Some("said to be done by a person".to_owned());
                        return Ok(vec![end(task.plan.id, TaskStatus::Completed, result, None, true)]);
                    }
                    "skip" => FailurePolicy::SkipDependants,
                    "continue" => FailurePolicy::Continue,
                    "stop" => FailurePolicy::Stop,
                    _ => return Err(not_understood("retry, done, skip, continue, stop")),
                };
                Ok(self.give_up(task, TaskStatus::Failed, error, policy))
            }
        }
    }

    fn cancel_task(&self, id: TaskId, reason: &str) -> Result<Vec<Event>, PlannerError> {
        let task = self.state.task(id).ok_or(PlannerError::UnknownTask { task: id })?;
        if task.status.is_end() {
            return Ok(Vec::new());
        }
        Ok(vec![end(id, TaskStatus::Cancelled, None, Some(reason.to_owned()), false)])
    }

    fn cancel_plan(&self, reason: &str) -> Vec<Event> {
        if let Phase::Ended(_) = self.state.phase {
            return Vec::new();
        }
        let open = self.state.tasks.iter().filter(|task| !task.status.is_end());
        let cancelled = open.map(|task| end(task.plan.id, TaskStatus::Cancelled, None, Some(reason.to_owned()), false));
        [Event::PlanCancelled { reason: reason.to_owned() }].into_iter().chain(cancelled).collect()
    }

    fn pause(&self, reason: String) -> Result<Vec<Event>, PlannerError> {
        match self.state.phase {
            Phase::Active => Ok(vec![Event::PlanPaused { reason }]),
            Phase::Paused | Phase::Empty => Ok(Vec::new()),
            Phase::Ended(_) => Err(PlannerError::PlanEnded),
        }
    }

    fn retry(&self, task: Option<TaskId>) -> Result<Vec<Event>, PlannerError> {
        let is_retryable = |status| {
            matches!(status, TaskStatus::Failed | TaskStatus::TimedOut | TaskStatus::Cancelled | TaskStatus::Skipped)
        };
        let mut reopened = vec![false; self.state.tasks.len()];
        match task {
            Some(id) => {
                let index = self.state.index(id).ok_or(PlannerError::UnknownTask { task: id })?;
                let status = self.state.tasks[index].status;
                if !is_retryable(status) {
                    return Err(PlannerError::NotRetryable { task: id, status });
                }
                reopened[index] = true;
                if self.stops(&self.state.tasks[index]) {
                    let skipped = |task: &Task| task.status == TaskStatus::Skipped && !task.unblocks;
                    for (index, task) in self.state.tasks.iter().enumerate() {
                        reopened[index] |= skipped(task);
                    }
                }
            }
            None => {
                for (index, task) in self.state.tasks.iter().enumerate() {
                    reopened[index] = is_retryable(task.status) && !is_left_out(task);
                }
            }
        }
        self.reopen_dependants(&mut reopened);
        let ids = self.state.tasks.iter().zip(reopened).filter(|(_, is_reopened)| *is_reopened);
        let task_ids = ids.map(|(task, _)| task.plan.id).collect::<Vec<_>>();
        Ok(if task_ids.is_empty() { Vec::new() } else { vec![Event::TasksReopened { task_ids }] })
    }

    /// What was skipped because of a reopened task is opened with it.
    fn reopen_dependants(&self, reopened: &mut [bool]) {
        let mut to_follow = (0..reopened.len()).filter(|index| reopened[*index]).collect::<Vec<_>>();
        while let Some(index) = to_follow.pop() {
            for dependant in self.state.dependants(index) {
                let task = &self.state.tasks[*dependant];
                if !reopened[*dependant] && task.status == TaskStatus::Skipped && !task.unblocks {
                    reopened[*dependant] = true;
                    to_follow.push(*dependant);
                }
            }
        }
    }

    /// What has become possible, or has to happen, in the present state.
    fn schedule(&self) -> Vec<Event> {
        let skipped = self.skip();
        if !skipped.is_empty() {
            return skipped;
        }
        let is_on = matches!(self.state.phase, Phase::Active | Phase::Paused);
        if is_on && self.state.graph.open.is_empty() {
            return vec![self.complete()];
        }
        if self.state.phase == Phase::Active { self.start() } else { Vec::new() }
    }

    /// Ends the tasks that can no longer run.
    fn skip(&self) -> Vec<Event> {
        let doomed = self.state.graph.doomed.iter().map(|(index, because)| {
            let blocker = self.state.task(*because).map_or_else(|| because.to_string(), |task| task.plan.name());
            let reason = format!("task {blocker} did not complete");
            end(self.state.tasks[*index].plan.id, TaskStatus::Skipped, None, Some(reason), false)
        });
        doomed.collect()
    }

    /// Dispatches what is ready, as far as there is room, and asks what must be known first.
    fn start(&self) -> Vec<Event> {
        let mut events = Vec::new();
        let mut n_asked = 0;
        let mut being_asked = std::collections::BTreeSet::new();
        for lane in 0..N_LANES {
            let room = match lane {
                QUESTIONS => usize::MAX,
                _ => self.state.config.parallelism.saturating_sub(self.state.graph.n_running[lane]),
            };
            let mut n_dispatched = 0;
            for index in &self.state.graph.ready[lane] {
                if n_dispatched == room {
                    break;
                }
                let task = &self.state.tasks[*index];
                match self.condition_holds(&task.plan) {
                    Holds::Yes => {
                        events.push(self.dispatch(task, 0));
                        if let NodeKind::Clarification = task.plan.kind {
                            let question = task.plan.description.clone();
                            events.push(self.ask(task.plan.id, question, Purpose::Task, n_asked));
                            n_asked += 1;
                        }
                        n_dispatched += 1;
                    }
                    Holds::No { reason } => {
                        events.push(end(task.plan.id, TaskStatus::Skipped, None, Some(reason), true));
                    }
                    Holds::Asked => {}
                    Holds::Unknown { text } => {
                        if being_asked.insert(text) {
                            let before = task.plan.depends_on.iter().filter_map(|before| self.state.task(before.task));
                            let before = before.map(|before| before.plan.name()).collect::<Vec<_>>().join(", ");
                            let after = if before.is_empty() { before } else { format!(", after {before}") };
                            let question = format!("Is it so{after}: {text}? (yes or no)");
                            events.push(self.ask(task.plan.id, question, Purpose::Condition, n_asked));
                            n_asked += 1;
                        }
                    }
                }
            }
        }
        events
    }

    fn condition_holds<'a>(&self, task: &'a TaskPlan) -> Holds<'a> {
        let Some(condition) = &task.condition else { return Holds::Yes };
        match self.state.conditions.get(&condition.text) {
            Some(Some(holds)) if *holds != condition.negated => Holds::Yes,
            Some(Some(_)) => {
                let not = if condition.negated { "" } else { "not " };
                Holds::No { reason: format!("it is {not}so: {}", condition.text) }
            }
            Some(None) => Holds::Asked,
            None => Holds::Unknown { text: &condition.text },
        }
    }

    fn dispatch(&self, task: &Task, delay_ms: u64) -> Event {
        let node_id = task.plan.id;
        let command = match task.plan.kind {
            NodeKind::Clarification => {
                PlannerCmd::RequestClarification { node_id, question: task.plan.description.clone() }
            }
            kind => PlannerCmd::ExecuteTask { node_id, kind, parameters: Box::new(self.state.parameters(task)) },
        };
        Event::TaskDispatched { task_id: node_id, attempt: task.attempts.saturating_add(1), delay_ms, command }
    }

    fn complete(&self) -> Event {
        let count = |status| self.state.tasks.iter().filter(|task| task.status == status).count();
        let is_bad = |task: &Task| task.status != TaskStatus::Completed && !is_left_out(task);
        let outcome = match () {
            () if self.state.cancelled => Outcome::Cancelled,
            () if self.state.tasks.iter().any(is_bad) => Outcome::Failed,
            () => Outcome::Completed,
        };
        let ends = [
            (TaskStatus::Completed, "completed"),
            (TaskStatus::Failed, "failed"),
            (TaskStatus::TimedOut, "timed out"),
            (TaskStatus::Cancelled, "cancelled"),
            (TaskStatus::Skipped, "skipped"),
        ];
        let ends = ends.into_iter().map(|(status, word)| (count(status), word)).filter(|(n, _)| *n > 0);
        let parts = ends.map(|(n, word)| format!("{n} {word}")).collect::<Vec<_>>();
        let n_tasks = self.state.tasks.len();
        let noun = if n_tasks == 1 { "task" } else { "tasks" };
        Event::PlanningCompleted { summary: format!("{n_tasks} {noun}: {}", parts.join(", ")), outcome }
    }
}

/// Whether a task may run as far as its condition goes.
enum Holds<'a> {
    Yes,
    No { reason: String },
    Asked,
    Unknown { text: &'a str },
}

impl Handler for Planner {
    type Command = Command;
    type Event = Event;
    type Error = PlannerError;

    fn process(&mut self, command: Command) -> Result<Vec<Event>, PlannerError> {
        let mut events = self.decide(command)?;
        let mut n_applied = 0;
        loop {
            for event in &events[n_applied..] {
                self.state.apply(event);
            }
            n_applied = events.len();
            // What is dispatched next is told the compacted past.
            match context::due(&self.state) {
                Some(compacted) => events.push(compacted),
                None => events.extend(self.schedule()),
            }
            if events.len() == n_applied {
                debug_assert!(context::is_within_budget(&self.state), "the past is compacted before it is too long");
                return Ok(events);
            }
        }
    }

    fn apply(&mut self, event: &Event) {
        self.state.apply(event);
    }
}

fn check_setting(setting: &'static str, value: usize, min: usize, max: usize) -> Result<(), PlannerError> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(PlannerError::Setting { setting, value, min, max }) }
}

/// A change of status; an end, mostly.
fn end(task_id: TaskId, status: TaskStatus, result: Option<String>, error: Option<String>, unblocks: bool) -> Event {
    Event::TaskStatusUpdated { task_id, status, result, error, unblocks }
}

fn failed_status(class: FailureClass) -> TaskStatus {
    match class {
        FailureClass::TimedOut => TaskStatus::TimedOut,
        FailureClass::Task | FailureClass::NotStarted | FailureClass::RateLimited | FailureClass::OutcomeUnknown => {
            TaskStatus::Failed
        }
    }
}

/// What the box before a task says of its end, before anything has run.
fn end_by_mark(task: &TaskPlan) -> Option<Event> {
    match task.mark {
        Mark::Open | Mark::InProgress => None,
        Mark::Done => Some(end(task.id, TaskStatus::Completed, Some("done before the plan began".into()), None, true)),
        Mark::Cancelled => {
            let reason = "given up before the plan began".into();
            Some(end(task.id, TaskStatus::Cancelled, None, Some(reason), true))
        }
    }
}

/// True of a task that did not complete because the text, or an answer, wanted it so.
fn is_left_out(task: &Task) -> bool {
    task.unblocks && matches!(task.status, TaskStatus::Skipped | TaskStatus::Cancelled)
}

/// Gives each attachment to the tasks whose text names it; what none names stays with the plan.
fn attach(tasks: &mut [TaskPlan], attachments: Vec<Attachment>) -> Vec<Attachment> {
    let mut of_the_plan = Vec::new();
    for attachment in attachments {
        let (AttachmentKind::Link(reference)
        | AttachmentKind::ImageRef(reference)
        | AttachmentKind::FileRef(reference)
        | AttachmentKind::EmbeddingRef(reference)
        | AttachmentKind::ScreenshotRef(reference)) = &attachment.kind;
        let mut is_named = false;
        for task in tasks.iter_mut().filter(|task| task.description.contains(reference.as_str())) {
            is_named = true;
            if !task.attachments.iter().any(|known| known.kind == attachment.kind) {
                task.attachments.push(attachment.clone());
            }
        }
        if !is_named {
            of_the_plan.push(attachment);
        }
    }
    of_the_plan
}
