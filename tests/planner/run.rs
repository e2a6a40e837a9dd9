//! A running plan, its events, and the prompts of its tasks.

use crewlog_mq::Handler;
use crewlog_planner::event::{
    Command, Event, FailureClass, PlannerCmd, PlannerConfig, QuestionId, TaskEvent, TaskInput,
};
use crewlog_planner::plan::TaskId;
use crewlog_planner::planner::Planner;
use crewlog_planner::prompt::render as render_prompt;
use crewlog_planner::state::PlannerState;
use crewlog_planner::text::CHARS_PER_TOKEN;

pub(super) const BUDGET_MIN: usize = 200;

pub(super) fn budget(token_budget: usize) -> PlannerConfig {
    PlannerConfig { token_budget, parallelism: 1_000, ..PlannerConfig::default() }
}

/// A running plan, and all its events.
pub(super) struct Run {
    pub(super) planner: Planner,
    pub(super) history: Vec<Event>,
}

impl Run {
    pub(super) fn begin(config: PlannerConfig, text: &str) -> Self {
        let mut run = Self { planner: Planner::default(), history: Vec::new() };
        run.order(Command::of_text(text.to_owned(), config, true).unwrap());
        run
    }

    pub(super) fn state(&self) -> &PlannerState {
        self.planner.state()
    }

    pub(super) fn order(&mut self, command: Command) {
        self.history.extend(self.planner.process(command).unwrap());
    }

    /// Processes a report; a delayed retry starts at once.
    pub(super) fn hear(&mut self, report: Command) {
        self.order(report);
        let waiting = self.state().tasks.iter().find(|task| task.retry_ms.is_some()).map(|task| task.plan.id);
        if let Some(task) = waiting {
            self.order(Command::RetryNow { task });
        }
    }

    pub(super) fn done(&mut self, task: u64, result: &str) {
        let node_id = TaskId(task);
        let attempt = self.state().task(node_id).unwrap().attempts;
        self.hear(Command::HandleExecutorEvent {
            task: node_id,
            event: TaskEvent::TaskCompleted { attempt, result: result.to_owned(), epoch: 1, run: None },
        });
    }

    pub(super) fn answer(&mut self, question: u64, answer: &str) {
        self.order(Command::Answer { question: QuestionId(question), answer: answer.to_owned() });
    }

    pub(super) fn compactions(&self) -> Vec<(&str, &[TaskId])> {
        let compactions = self.history.iter().filter_map(|event| match event {
            Event::ContextCompacted { summary, removed_task_ids, .. } => Some((&**summary, &**removed_task_ids)),
            _ => None,
        });
        compactions.collect()
    }

    /// The last dispatch of a task: its index in the history, and the input of its executor.
    pub(super) fn dispatch(&self, task: u64) -> (usize, TaskInput) {
        let is_it = |event: &Event| match event {
            Event::TaskDispatched { command: PlannerCmd::ExecuteTask { node_id, .. }, .. } => *node_id == TaskId(task),
            _another => false,
        };
        let place = self.history.iter().rposition(is_it).expect("it was dispatched");
        (place, input_at(&self.history, place, TaskId(task)))
    }

    /// The prompt of the last dispatch of a task.
    pub(super) fn prompt(&self, task: u64) -> String {
        prompt_at(&self.history, self.dispatch(task).0, task).expect("it is a task for an agent")
    }

    pub(super) fn fails(&mut self, task: u64, error: &str) {
        let (node_id, error, class) = (TaskId(task), error.to_owned(), FailureClass::Task);
        let attempt = self.state().task(node_id).unwrap().attempts;
        self.hear(Command::HandleExecutorEvent {
            task: node_id,
            event: TaskEvent::TaskFailed { attempt, error, class, epoch: 1, run: None },
        });
    }

    pub(super) fn asks_and_gets(&mut self, task: u64, question: &str, answer: &str) {
        let (node_id, question, default) = (TaskId(task), question.to_owned(), None);
        let attempt = self.state().task(node_id).unwrap().attempts;
        self.hear(Command::HandleExecutorEvent {
            task: node_id,
            event: TaskEvent::NeedsClarification { attempt, question, default, epoch: 1 },
        });
        self.answer(self.state().questions.len() as u64, answer);
    }
}

/// The prompt of a task dispatched by the event at an index.
pub(super) fn prompt_at(history: &[Event], place: usize, task: u64) -> Option<String> {
    let planner = Planner::fold(&history[..=place]);
    let state = planner.state();
    render_prompt(state, state.task(TaskId(task))?)
}

/// A section of a prompt, without its heading.
pub(super) fn section<'p>(prompt: &'p str, title: &str) -> &'p str {
    let (_, rest) = prompt.split_once(&format!("\n## {title}\n\n")).unwrap_or_default();
    rest.split_once("\n## ").map_or(rest, |(section, _)| section)
}

pub(super) fn chars_of(state: &PlannerState, percent: usize) -> usize {
    state.config.token_budget * CHARS_PER_TOKEN * percent / 100
}

pub(super) fn n_chars(text: &str) -> usize {
    text.chars().count()
}

pub(super) fn n_tokens(text: &str) -> usize {
    n_chars(text).div_ceil(CHARS_PER_TOKEN)
}

/// Independent tasks for agents.
pub(super) fn list(n_tasks: usize) -> String {
    (1..=n_tasks).fold("# A list\n\n".to_owned(), |text, n| text + &format!("- Write part {n}\n"))
}

/// The input of a task's executor by the history up to a place.
pub(super) fn input_at(history: &[Event], place: usize, task: TaskId) -> TaskInput {
    let planner = Planner::fold(&history[..=place]);
    planner.state().input(planner.state().task(task).expect("it was dispatched"))
}
