//! A log as a transcript: each line an append, its events separated by `;`, and below it, indented, the events of a
//! process. It checks no rule of the planner: the log is exactly as written.
//!
//! ```text
//! p planned 2               p/1 dispatched KIND PATTERNS     p/1 claimed ana
//! p reopened 1 2            p/1 asked                        p/1 completed, failed, asks, stopped, released, expires
//! p ended Completed 2       p/1 is Cancelled                 after 1500 ms
//! ```
//!
//! Among the patterns `$` means that the task has a command, `<` that it only reads, `%` that a sub-plan carries it out, and
//! `!` that it undoes task 1.
//!
//! Plan `p@y` belongs to project `y`, a plan without `@` to project `x`, and `p@` to none.

use crewlog_mq::{Event as MqEvent, Position, Recorded, Timestamp, new_event_id};
use crewlog_planner::claim::{self, Executor, TaskEvent};
use crewlog_planner::crew::Reactor;
use crewlog_planner::event::{
    self, Event, FailureClass, Outcome, Parameters, PlannerCmd, PlannerConfig, TaskStatus, plan_tag,
};
use crewlog_planner::plan::{NodeKind, SubPlan, TaskId, TaskPlan};

/// Runs the lines of `transcript`, and compares the events of the process.
#[track_caller]
pub fn check<R: Reactor>(transcript: &str, tell: fn(&str, &R::Event) -> String) {
    let (mut log, mut reactor, mut told) = (Log::default(), R::default(), String::new());
    for line in transcript.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with("    ")) {
        told += &format!("{line}\n");
        for recorded in log.append(line) {
            reactor.handle(&recorded).unwrap();
        }
        for said in reactor.emit() {
            told += &format!("    {}\n", tell(&said.project, &said.event));
        }
        assert!(reactor.emit().is_empty(), "nothing is said twice, after {line}");
    }
    let expected = transcript.lines().map(str::trim_end).filter(|line| !line.is_empty());
    assert_eq!(told.lines().collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "it says:\n{told}");
}

/// The events appended so far.
#[derive(Default)]
pub struct Log {
    position: i64,
    now: Timestamp,
    folder: Option<String>,
    attempts: std::collections::BTreeMap<String, u32>,
}

impl Log {
    /// With commands that run in this folder.
    pub fn in_folder(folder: &str) -> Self {
        Self { folder: Some(folder.to_owned()), ..Self::default() }
    }

    /// The events of a line.
    pub fn append(&mut self, line: &str) -> Vec<Recorded> {
        if let Some(ms) = line.strip_prefix("after ") {
            self.now.0 += ms.strip_suffix(" ms").unwrap().parse::<i64>().unwrap() * 1_000;
            return Vec::new();
        }
        let start = Position(self.position + 1);
        line.split(';').map(|order| self.record(order.trim(), start)).collect()
    }

    fn record(&mut self, order: &str, append_start: Position) -> Recorded {
        let (of, what) = order.split_once(' ').unwrap();
        let (stream_id, aggregate_id, data, event_type) = match self.event(of, what) {
            Said::OfPlan(event) => {
                let plan = of.split('/').next().unwrap();
                (event::STREAM, plan, event.encode().unwrap(), event.event_type())
            }
            Said::OfTask(event) => (claim::STREAM, of, event.encode().unwrap(), event.event_type()),
        };
        let plan = of.split('/').next().unwrap();
        let project = match plan.split_once('@') {
            None => Some("x"),
            Some((_, "")) => None,
            Some((_, project)) => Some(project),
        };
        let tags = [plan_tag(plan)].into_iter().chain(project.map(|project| format!("project:{project}")));
        self.position += 1;
        Recorded {
            position: Position(self.position),
            event_id: new_event_id(),
            stream_id: stream_id.into(),
            aggregate_id: aggregate_id.into(),
            sequence: self.position,
            event_type: event_type.into(),
            event_version: "1.0".into(),
            data,
            metadata: "{}".into(),
            tags: tags.collect(),
            created_at: self.now,
            append_start,
        }
    }

    fn event(&mut self, of: &str, what: &str) -> Said {
        let (verb, rest) = what.split_once(' ').unwrap_or((what, ""));
        match of.split_once('/') {
            None => Said::OfPlan(of_plan(verb, rest)),
            Some((_, task)) => self.of_task(of, TaskId(task.parse().unwrap()), verb, rest),
        }
    }

    fn of_task(&mut self, of: &str, task_id: TaskId, verb: &str, rest: &str) -> Said {
        let attempt = *self.attempts.get(of).unwrap_or(&0);
        match verb {
            "dispatched" | "asked" => {
                let command = if verb == "asked" {
                    PlannerCmd::RequestClarification { node_id: task_id, question: "?".into() }
                } else {
                    execute(task_id, rest, self.folder.clone())
                };
                self.attempts.insert(of.to_owned(), attempt + 1);
                Said::OfPlan(Event::TaskDispatched { task_id, attempt: attempt + 1, command })
            }
            "is" => {
                let status = serde_json::from_value::<TaskStatus>(rest.into()).unwrap();
                let (result, error, unblocks) = (None, None, false);
                Said::OfPlan(Event::TaskStatusUpdated { task_id, status, result, error, unblocks })
            }
            verb => Said::OfTask(of_executor(attempt, verb, rest)),
        }
    }
}

enum Said {
    OfPlan(Event),
    OfTask(TaskEvent),
}

fn of_plan(verb: &str, rest: &str) -> Event {
    match verb {
        "planned" => {
            let task = |n| TaskPlan::new(TaskId(n), NodeKind::Processing, "a task");
            Event::planned((1..=rest.parse().unwrap()).map(task).collect(), PlannerConfig::default())
        }
        "cancelled" => Event::PlanCancelled { reason: String::new() },
        "reopened" => {
            let task_ids = rest.split(' ').map(|task| TaskId(task.parse().unwrap())).collect();
            Event::TasksReopened { task_ids }
        }
        "ended" => {
            let (outcome, n_tasks) = rest.split_once(' ').unwrap();
            let outcome = serde_json::from_value::<Outcome>(outcome.into()).unwrap();
            Event::PlanningCompleted { summary: String::new(), outcome, n_tasks: n_tasks.parse().unwrap() }
        }
        other => panic!("a plan cannot {other}"),
    }
}

/// A kind, then patterns; after a colon, the text of the task.
fn execute(node_id: TaskId, rest: &str, folder: Option<String>) -> PlannerCmd {
    let (kind, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let kind = if kind.is_empty() { NodeKind::Processing } else { serde_json::from_value(kind.into()).unwrap() };
    let (files, description) = match rest.split_once(':') {
        Some((files, description)) => (files, description.trim()),
        None => (rest, "a task"),
    };
    let words = || files.split_whitespace();
    let plan = TaskPlan {
        command: words().any(|word| word == "$").then(|| "true".to_owned()),
        files: words().filter(|word| !["$", "<", "%", "!"].contains(word)).map(str::to_owned).collect(),
        reads_only: words().any(|word| word == "<"),
        sub_plan: words().any(|word| word == "%").then(|| SubPlan { text: String::new(), agent: None, request: None }),
        compensates: words().any(|word| word == "!").then_some(TaskId(1)),
        ..TaskPlan::new(node_id, kind, description)
    };
    let parameters = Parameters::of(&plan, folder);
    PlannerCmd::ExecuteTask { node_id, kind, parameters: Box::new(parameters) }
}

fn of_executor(attempt: u32, verb: &str, rest: &str) -> TaskEvent {
    let (epoch, run, reason) = (1, None, String::new());
    match verb {
        "claimed" => {
            let executor = Executor { name: rest.into(), host: "h".into(), worker: rest.into() };
            TaskEvent::TaskClaimed {
                attempt,
                executor,
                lease_until: Some(Timestamp(0)),
                epoch,
                cut_off: false,
                only_reports: false,
                prompt: None,
            }
        }
        "completed" => TaskEvent::TaskCompleted { attempt, epoch, result: String::new(), run },
        "failed" => TaskEvent::TaskFailed { attempt, epoch, error: String::new(), class: FailureClass::Task, run },
        "asks" => TaskEvent::NeedsClarification { attempt, epoch, question: String::new(), default: None },
        "stopped" => TaskEvent::TaskStopped { epoch, reason },
        "released" => TaskEvent::TaskReleased { epoch, reason, cut_off: false },
        "expires" => TaskEvent::TimerFired { epoch, due: Timestamp(0) },
        other => panic!("an executor cannot {other}"),
    }
}
