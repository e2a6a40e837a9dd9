//! A plan's life as a transcript: each command to the planner, and below it the resulting events, one per line.
//!
//! A line of JSON below an event names fields of it that its line does not tell, and their values.
//!
//! The commands of the expected transcript are executed, so it shows exactly what ran. After each, both laws
//! of a handler are checked. The planner's state is never used to judge an event.

use crewlog_mq::{Handler, Timestamp};
use crewlog_planner::event::{
    Amendment, Answered, Budget, Command, Edit, Event, FailureClass, PlannerCmd, PlannerConfig, Purpose, QuestionId,
    RetryClass, RetrySetting, Setting, TaskEvent, TaskStatus, Timer, Usage,
};
use crewlog_planner::parse::{ReadOptions, read};
use crewlog_planner::plan::{DefaultAnswer, FailurePolicy, NodeKind, Origin, Proposal, TaskId, TaskPlan};
use crewlog_planner::planner::Planner;
use crewlog_planner::state::PlannerState;
use serde_json::Value;

/// Runs the commands of `transcript` on a plan of `text`, and compares.
pub fn check(text: &str, transcript: &str) {
    check_with(PlannerConfig::default(), text, transcript);
}

/// [`check`] with other settings.
pub fn check_with(config: PlannerConfig, text: &str, transcript: &str) {
    let start = Command::of_text(text.to_owned(), config, false).unwrap();
    carry_out(start, transcript);
}

/// [`check_with`] of tasks that differ from the text.
pub fn check_changed(config: PlannerConfig, text: &str, change: impl Fn(&mut [TaskPlan]), transcript: &str) {
    let mut tasks = read(text, ReadOptions::default()).unwrap().tasks;
    change(&mut tasks);
    let (title, context, origin) = (None, Vec::new(), Origin::default());
    let proposal = Box::new(Proposal { tasks, title, source: text.to_owned(), context, origin });
    let start = Command::Initialize { proposal, attachments: Vec::new(), config };
    carry_out(start, transcript);
}

/// A change of tasks that removes all dependencies.
pub fn unordered(tasks: &mut [TaskPlan]) {
    tasks.iter_mut().for_each(|task| task.depends_on.clear());
}

fn carry_out(start: Command, transcript: &str) {
    let mut plan = Plan { planner: Planner::default(), history: Vec::new(), start };
    let lines = transcript.lines().map(str::trim).filter(|line| !line.is_empty());
    let (mut expected, mut fields) = (String::new(), Vec::new());
    for line in lines {
        if line.starts_with('{') {
            fields.push((expected.lines().count() - 1, line));
        } else {
            expected += &format!("{line}\n");
        }
    }
    let mut actual = Vec::new();
    for order in expected.lines().filter(|line| line.starts_with('>')) {
        actual.push((order.to_owned(), Value::Null));
        actual.extend(plan.carry_out(order.trim_start_matches('>').trim()));
    }
    let told = actual.iter().fold(String::new(), |all, (line, _)| all + line + "\n");
    assert!(told == expected, "expected:\n{expected}\nactual:\n{told}");
    for (index, fields) in fields {
        let (line, event) = &actual[index];
        let fields: Value = serde_json::from_str(fields).unwrap_or_else(|error| panic!("{fields}: {error}"));
        assert!(has(event, &fields), "{line}\nhas not {fields}, but is {event}");
    }
}

/// True if a value has these fields, and in them these fields.
fn has(value: &Value, fields: &Value) -> bool {
    match (value, fields) {
        (Value::Object(value), Value::Object(fields)) => {
            fields.iter().all(|(key, field)| value.get(key).map_or(field.is_null(), |value| has(value, field)))
        }
        (Value::Array(values), Value::Array(fields)) => {
            values.len() == fields.len() && values.iter().zip(fields).all(|(value, fields)| has(value, fields))
        }
        _ => value == fields,
    }
}

/// Lines of a transcript, and the fields of the event of each.
type Told = Vec<(String, Value)>;

fn said(line: &str) -> Told {
    vec![(line.to_owned(), Value::Null)]
}

struct Plan {
    planner: Planner,
    history: Vec<Event>,
    start: Command,
}

impl Plan {
    fn carry_out(&mut self, order: &str) -> Told {
        if order == "startable" {
            return said(&numbers(self.planner.state().startable(|_| false).into_iter()));
        }
        if let Some(now) = order.strip_prefix("tick ") {
            return self.tick(Timestamp(now.parse::<i64>().expect("a number of milliseconds") * 1_000));
        }
        self.process(order, self.command(order))
    }

    /// Sets the timers, and fires those that are due, one after another.
    fn tick(&mut self, now: Timestamp) -> Told {
        let mut told = Told::new();
        if let Some((None, _)) = self.planner.state().next_timer() {
            told.extend(self.process("set timers", Command::SetTimers { now }));
            let unset = matches!(self.planner.state().next_timer(), Some((None, _)));
            assert!(!unset, "every timer has its due time");
        }
        while let Some((Some(due), timer)) = self.planner.state().next_timer()
            && due <= now
        {
            told.extend(self.process("fire a timer", Command::FireTimer { timer, due }));
        }
        if told.is_empty() { said("(nothing)") } else { told }
    }

    fn process(&mut self, order: &str, command: Command) -> Told {
        let before = self.planner.clone();
        match self.planner.process(command) {
            Ok(events) if events.is_empty() => said("(nothing)"),
            Ok(events) => {
                self.history.extend(events.iter().cloned());
                assert_eq!(self.planner, Planner::fold(&self.history), "the live state is that of the log: {order}");
                events.iter().map(|event| (tell(event, self.planner.state()), fields_of(event))).collect()
            }
            Err(refusal) => {
                assert_eq!(self.planner, before, "a refusal changes nothing: {order}");
                said(&format!("! {refusal}"))
            }
        }
    }

    fn command(&self, order: &str) -> Command {
        let (first, rest) = order.split_once(' ').unwrap_or((order, ""));
        let task = || (!rest.is_empty()).then(|| TaskId(rest.parse().expect("a task is a number")));
        match first {
            "start" => self.start.clone(),
            "undo" => Command::CancelAndUndo { reason: "not wanted".into() },
            "now" => Command::RetryNow { task: task().expect("a task is tried now") },
            "withdraw" => Command::Withdraw { question: question_of(rest), reason: "nobody knows".into() },
            "ask" => {
                let (task, question) = rest.split_once(' ').expect("a task, and a question");
                let (question, default) = question.split_once(" | ").unwrap_or((question, ""));
                let default = default.split_once(' ').map(|(answer, after)| DefaultAnswer {
                    answer: answer.to_owned(),
                    after_ms: after.parse().expect("milliseconds"),
                });
                let task = TaskId(task.parse().expect("a task is a number"));
                Command::Ask { task, question: question.to_owned(), default }
            }
            "also" => {
                let (question, rest) = rest.split_once(' ').expect("a question, and its answer");
                let (answer, further) = rest.split_once(" | ").expect("an answer, and another question");
                let (answer, further) = (answer.to_owned(), further.to_owned());
                Command::AnswerAndAsk { question: question_of(question), answer, further }
            }
            "continue" => Command::Continue,
            "pause" => match task() {
                None => Command::Pause { reason: "lunch".into() },
                Some(task) => Command::PauseTask { task, reason: "not yet".into() },
            },
            "resume" => task().map_or(Command::Resume, |task| Command::ResumeTask { task }),
            "amend" => {
                let amendments = rest.split(" ; ").map(amendment).collect();
                Command::Amend { amendments, reason: "better".into() }
            }
            "set" => {
                let changes = rest.split(' ').map(setting).collect();
                Command::Configure { changes, reason: "more".into() }
            }
            "cancel" => Command::Cancel { task: task(), reason: "not wanted".into() },
            "retry" => Command::Retry { task: task() },
            "compact" => Command::CompactContext { max_tokens: rest.parse().expect("a number of tokens") },
            question if question.starts_with('q') => {
                Command::Answer { question: question_of(question), answer: rest.to_owned() }
            }
            task => self.report(task, rest),
        }
    }

    /// `1 done RESULT` for the running attempt; `1#2 done RESULT` for attempt 2.
    fn report(&self, task: &str, rest: &str) -> Command {
        let (task, attempt) = task.split_once('#').unwrap_or((task, ""));
        let node_id = TaskId(task.parse().expect("an order is a word, a question or a task"));
        let attempt = match attempt {
            "" => self.planner.state().task(node_id).map_or(1, |task| task.attempts),
            attempt => attempt.parse().expect("an attempt is a number"),
        };
        let (how, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let class = match how {
            "done" => {
                return Command::HandleExecutorEvent {
                    task: node_id,
                    event: TaskEvent::TaskCompleted { attempt, result: text.to_owned(), epoch: 1, run: None },
                };
            }
            "withdrawn" => {
                return Command::HandleExecutorEvent { task: node_id, event: TaskEvent::TaskWithdrawn { attempt } };
            }
            "used" => {
                let usage = match text.parse() {
                    Ok(input_tokens) => Usage { input_tokens, ..Usage::default() },
                    Err(_) => serde_json::from_str(text).expect("usage is a number of tokens, or JSON"),
                };
                return Command::HandleExecutorEvent {
                    task: node_id,
                    event: TaskEvent::UsageReported { attempt, epoch: attempt.into(), usage },
                };
            }
            "asks" => {
                return Command::HandleExecutorEvent {
                    task: node_id,
                    event: TaskEvent::NeedsClarification {
                        attempt,
                        question: text.to_owned(),
                        default: None,
                        epoch: 1,
                    },
                };
            }
            "fails" => FailureClass::Task,
            "not-started" => FailureClass::NotStarted,
            "timed-out" => FailureClass::TimedOut,
            "rate-limited" => FailureClass::RateLimited { retry_after_ms: None },
            "cut-off" => FailureClass::OutcomeUnknown,
            "over-budget" => FailureClass::OverBudget,
            "for-person" => FailureClass::ForPerson,
            other => panic!("a task cannot {other}"),
        };
        Command::HandleExecutorEvent {
            task: node_id,
            event: TaskEvent::TaskFailed { attempt, error: text.to_owned(), class, epoch: 1, run: None },
        }
    }
}

fn question_of(typed: &str) -> QuestionId {
    QuestionId(typed[1..].parse().expect("a question is a number"))
}

/// `add after=1,2 before=3 TEXT` with `/` at the end of a line, `edit 2 priority=high`, `skip 2`, `reorder 2 after=1,3`,
/// `done 2`, `source TEXT`.
fn amendment(said: &str) -> Amendment {
    let (word, rest) = said.split_once(' ').expect("an amendment has an object");
    let task = |said: &str| TaskId(said.parse().expect("a task is a number"));
    let tasks = |said: &str| said.split(',').filter(|one| !one.is_empty()).map(task).collect::<Vec<_>>();
    let (object, fact) = rest.split_once(' ').unwrap_or((rest, ""));
    match word {
        "add" => {
            let (mut after, mut before, mut text) = (Vec::new(), Vec::new(), rest);
            while let Some((key, rest)) = text.split_once(' ').filter(|(word, _)| word.contains('=')) {
                match key.split_once('=').expect("it has a sign of equality") {
                    ("after", said) => after = tasks(said),
                    ("before", said) => before = tasks(said),
                    other => panic!("nothing is added {other:?}"),
                }
                text = rest;
            }
            Amendment::Add { text: text.replace(" / ", "\n"), after, before }
        }
        "done" => Amendment::Done { task: task(object) },
        "source" => Amendment::Source { text: rest.to_owned() },
        "skip" => Amendment::Skip { task: task(object), keeps_order: true },
        "reorder" => {
            let after = tasks(fact.strip_prefix("after=").expect("it says after what"));
            Amendment::Reorder { task: task(object), after }
        }
        "edit" => Amendment::Edit { task: task(object), edits: vec![edit(fact)] },
        other => panic!("no plan is amended by {other}"),
    }
}

fn edit(fact: &str) -> Edit {
    let (field, said) = fact.split_once('=').expect("an edit is FIELD=VALUE");
    let text = || (!said.is_empty()).then(|| said.to_owned());
    match field {
        "description" => Edit::Description(said.to_owned()),
        "command" => Edit::Command(text()),
        "label" => Edit::Label(text()),
        "priority" => Edit::Priority(text()),
        "assignee" => Edit::Assignee(text()),
        "retry" => Edit::Retry(said.parse().ok()),
        other => panic!("no task has {other}"),
    }
}

fn setting(said: &str) -> Setting {
    let (name, value) = said.split_once('=').expect("a setting is NAME=VALUE");
    let n = || value.parse().expect("a number");
    match name {
        "tokens" => Setting::Budget(Budget { tokens: value.parse().ok(), ..Budget::default() }),
        "parallelism" => Setting::Parallelism(n()),
        "standing" => Setting::Standing(value == "true"),
        "on-failure" => Setting::OnFailure(FailurePolicy::Stop),
        "retries" => Setting::Retry(RetryClass::Transient, RetrySetting::Count(value.parse().expect("a number"))),
        "analyses" => Setting::ParallelismOfKind(NodeKind::Analysis, value.parse().ok()),
        "questions" => Setting::ParallelismOfKind(NodeKind::Clarification, value.parse().ok()),
        executor => Setting::ParallelismOfExecutor(executor.to_owned(), value.parse().ok()),
    }
}

/// The fields of an event as JSON.
fn fields_of(event: &Event) -> Value {
    let event = serde_json::to_value(event).expect("an event is JSON");
    event.as_object().and_then(|event| event.values().next()).cloned().expect("an event has a name, and fields")
}

/// An event as a line.
pub fn tell(event: &Event, state: &PlannerState) -> String {
    let told = match event {
        Event::TasksPlanned { tasks, .. } => format!("planned {}", numbers(tasks.iter().map(|task| task.id))),
        Event::TaskDispatched { task_id, attempt, command } => {
            let with = match command {
                PlannerCmd::ExecuteTask { parameters, .. } => {
                    let with = |told: String, answered: &Answered| told + " with " + &answered.answer;
                    let task = state.task(*task_id).expect("it is of the plan");
                    let with = state.input(task).answers.iter().fold(String::new(), with);
                    let may = |tokens| format!(", which may use {tokens} tokens");
                    let left = parameters.is_delegated.then(|| state.left_for_plan(*task_id).tokens).flatten();
                    with + &left.map(may).unwrap_or_default()
                }
                PlannerCmd::RequestClarification { .. } => " as a question".to_owned(),
            };
            format!("dispatched {task_id}#{attempt}{with}")
        }
        Event::TaskStatusUpdated { task_id, status, result, error, unblocks } => {
            let text = |text: &Option<String>| text.as_ref().map_or(String::new(), |text| format!(": {text}"));
            let lets_go = if *unblocks && *status != TaskStatus::Completed { " (lets go)" } else { "" };
            format!("{task_id} {status:?}{lets_go}{}{}", text(result), text(error))
        }
        Event::ClarificationRequested { task_id, question_id, question, purpose, .. } => {
            match purpose {
                // The question equals the task in the text.
                Purpose::Task => format!("{question_id} of {task_id}, Task"),
                Purpose::Executor | Purpose::Condition | Purpose::Failure => {
                    format!("{question_id} of {task_id}, {purpose:?}: {question}")
                }
            }
        }
        Event::ClarificationReceived { question_id, answer, is_default, .. } => {
            format!("{question_id} = {answer}{}", if *is_default { " (by default)" } else { "" })
        }
        Event::ContextCompacted { summary, removed_task_ids, .. } => {
            format!("compacted {}: {summary}", numbers(removed_task_ids.iter().copied()))
        }
        // The hint for the person is omitted.
        Event::PlanPaused { reason, .. } => format!("paused: {}", reason.split("; ").next().unwrap_or_default()),
        Event::PlanResumed {} => "resumed".to_owned(),
        Event::PlanCancelled { reason } => format!("cancelled: {reason}"),
        Event::TasksReopened { task_ids } => format!("reopened {}", numbers(task_ids.iter().copied())),
        Event::PlanForked { parent, at, reason, .. } => format!("forked from {parent} at {at}: {reason}"),
        Event::TasksAmended { tasks, reason, source } => {
            let source = source.as_ref().map_or(String::new(), |source| format!(", the text is now {source}"));
            format!("amended {}: {reason}{source}", numbers(tasks.iter().map(|task| task.id)))
        }
        Event::SettingsChanged { reason, .. } => format!("settings changed: {reason}"),
        Event::TaskPaused { task_id, reason } => format!("{task_id} paused: {reason}"),
        Event::TaskResumed { task_id } => format!("{task_id} resumed"),
        Event::TimerSet { timer: Timer::Retry(task), .. } => format!("Retry({task:?}) is set"),
        Event::TimerSet { timer, due } => format!("{timer:?} until {}", due.0 / 1_000),
        Event::TimerFired { timer, .. } => format!("{timer:?} fired"),
        Event::RetryScheduled { task_id, .. } => format!("{task_id} again later"),
        Event::LimitReached { task_id, error, .. } => format!("{task_id} waits for a limit: {error}"),
        Event::RetryHastened { task_id } => format!("{task_id} again now"),
        Event::PlanStopped { because } => format!("stopped because of {because}"),
        Event::UsageRecorded { task_id, attempt, usage, .. } => {
            format!("{task_id}#{attempt} used {} and {} tokens", usage.input_tokens, usage.output_tokens)
        }
        Event::ClarificationWithdrawn { question_id, reason, .. } => format!("{question_id} withdrawn: {reason}"),
        Event::CheckpointNamed { name } => format!("checkpoint {name}"),
        Event::PlanningCompleted { summary, outcome, .. } => format!("ended {outcome:?}, {summary}"),
    };
    told.replace('\n', " / ").trim_end().to_owned()
}

fn numbers(tasks: impl Iterator<Item = TaskId>) -> String {
    tasks.map(|task| task.to_string()).collect::<Vec<_>>().join(" ")
}
