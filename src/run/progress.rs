//! Progress on standard error while plans run: an aligned line for each event, and below them on a terminal a live block
//! with a line for each running task.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use console::truncate_str;
use crewlog_executors::crew::question_text;
use crewlog_executors::roster::Roster;
use crewlog_mq::{Error, EventStore, Recorded, Timestamp};
use crewlog_planner::claim::{Holder, TaskEvent};
use crewlog_planner::crew::conflicts::ConflictEvent;
use crewlog_planner::event::{Event, TaskStatus, Timer};
use crewlog_planner::lifecycle::{State, States};
use crewlog_planner::plan::{NodeKind, TaskId, TaskPlan};
use crewlog_planner::plan_event::{PlanEvent, plan_of};
use crewlog_planner::prompt::{error_lines, headline};
use crewlog_planner::state::{Question, Task};
use crewlog_planner::view::PlanView;
use indicatif::{ProgressBar, ProgressStyle};

use crate::ui::terminal::{BLOCK, Terminal, say, show_block, size};
use crate::ui::text::{by_default, count, duration, in_one_line, millis, now, one_line, visible};
use crate::views::{TaskNames, counts_of};

const GREEN: u8 = 32;
const YELLOW: u8 = 33;
const RED: u8 = 31;
const BLUE: u8 = 34;
const GREY: u8 = 90;

const TICK: Duration = Duration::from_millis(120);
/// Characters of a task's text in a line.
const TEXT_CHARS_MAX: usize = 96;
/// Characters of a question in a line.
const QUESTION_CHARS_MAX: usize = 400;
/// The width of a duration.
const TOOK_WIDTH: usize = 9;
/// Lines of an error that are shown.
pub const ERROR_LINES_MAX: usize = 12;

pub struct Progress {
    terminal: Terminal,
    began: Instant,
    name_width: usize,
    roster: Option<Roster>,
    /// The plan of the last line, where there are several.
    plan: Option<String>,
    shares: BTreeMap<String, Share>,
    /// The lines of the live block.
    lines: Vec<ProgressBar>,
}

/// A plan's part of the live block.
struct Share {
    /// The tasks that have ended, all tasks, and the questions and tasks that wait for a person.
    counts: [usize; 3],
    /// When each running task was claimed, and its text.
    running: Vec<(Option<Timestamp>, String)>,
}

impl Progress {
    /// With the executors of this process; tasks that none of them accepts are shown as work for a person.
    pub fn new(terminal: Terminal, roster: Option<Roster>, view: &PlanView) -> Self {
        let names = view.state().tasks.iter().map(|task| task.plan.name().chars().count());
        let (began, name_width) = (Instant::now(), names.max().unwrap_or(1));
        let (shares, lines) = (BTreeMap::new(), Vec::new());
        Self { terminal, began, name_width, roster, plan: None, shares, lines }
    }

    /// A reporter for any number of plans, which names each.
    pub fn of_all(terminal: Terminal, roster: Roster) -> Self {
        Self { plan: Some(String::new()), ..Self::new(terminal, Some(roster), &PlanView::default()) }
    }

    /// Shows the live block, on a terminal that can draw it.
    pub fn go_on(&self) {
        if self.terminal.is_live {
            show_block(true);
            self.lines.iter().for_each(|line| line.enable_steady_tick(TICK));
        }
    }

    /// Adds one of several plans to the live block.
    pub fn add(&mut self, plan: &str, view: &PlanView) {
        self.plan = Some(plan.to_owned());
        self.draw(view);
    }

    /// Starts the live block of a plan, and shows its open questions.
    pub fn begin(&mut self, view: &PlanView) {
        self.go_on();
        self.draw(view);
        view.state().open_questions().for_each(|question| self.ask(question, view));
    }

    fn ask(&self, question: &Question, view: &PlanView) {
        let Some(task) = view.state().task(question.task) else { return };
        // The timer of a new question is set right after it.
        let waits = question.default.as_ref().map(|default| Duration::from_millis(default.after_ms));
        let deadline = view.state().due(Timer::Question(question.id)).or(waits.map(|waits| now().plus(waits)));
        let by_default = by_default(question.default.as_ref(), deadline);
        // The possible answers are at its end.
        let text = one_line(&question_text(view, question, headline), QUESTION_CHARS_MAX);
        let said = format!("{}: {text}{by_default}", question.id);
        self.line_of("ASK", YELLOW, None, task, &said, 2 * QUESTION_CHARS_MAX);
    }

    /// Clears the live block, so that something else can be written.
    pub fn pause(&self) {
        // A tick in between would draw it again.
        self.lines.iter().for_each(ProgressBar::disable_steady_tick);
        // A terminal that is gone shows nothing.
        let _ = BLOCK.clear();
        show_block(false);
    }

    pub fn note(&self, text: &str) {
        self.print(&visible(text));
    }

    fn note_of_plan(&self, text: &str) {
        self.note(&format!("{} {text}", self.plan.as_deref().unwrap_or("the plan")));
    }

    /// Shows an event that `view` has applied.
    pub fn report(&mut self, event: &PlanEvent, recorded: &Recorded, view: &PlanView) {
        if let (Some(last), Some(plan)) = (&mut self.plan, plan_of(recorded)) {
            plan.clone_into(last);
        }
        let _ = match event {
            PlanEvent::Plan(event) => self.report_plan(event, recorded.created_at, view),
            PlanEvent::Task(task, event) => {
                view.state().task(*task).map(|it| self.report_task(event, it, view.holder(*task)))
            }
            PlanEvent::Other => None,
        };
        self.draw(view);
    }

    fn report_task(&self, event: &TaskEvent, task: &Task, holder: Option<&Holder>) {
        match event {
            TaskEvent::TaskClaimed { epoch, only_reports: false, .. } => {
                let again = if task.attempts > 1 { format!("TRY {}", task.attempts) } else { "AGAIN".to_owned() };
                let by = holder.filter(|holder| holder.is_agent()).map(|holder| format!(" ({})", holder.executor.name));
                let text = text_of(task) + &by.unwrap_or_default();
                self.line(if *epoch == 1 { "START" } else { &again }, BLUE, None, task, &text);
            }
            TaskEvent::TaskStopped { reason, .. } | TaskEvent::TaskReleased { reason, .. } => {
                self.line("STOPPED", YELLOW, None, task, reason);
            }
            _not_shown => {}
        }
    }

    /// Shows that tasks which are held at the same time touch the same files.
    pub async fn report_conflict(&self, store: &EventStore, recorded: &Recorded) -> Result<(), Error> {
        let Ok(event) = recorded.decode() else { return Ok(()) };
        let mut names = TaskNames::on(store);
        let (label, colour, text) = match event {
            ConflictEvent::ConflictDetected { conflict, pattern, holders, .. } => {
                let mut tasks = Vec::new();
                for holder in &holders {
                    tasks.push(format!("{}/{}", holder.plan, names.of(&holder.plan, holder.task).await?));
                }
                ("CONFLICT", YELLOW, format!("{conflict}: {pattern} is held by {}", tasks.join(", ")))
            }
            ConflictEvent::ConflictResolved { conflict, by, resolution } => {
                let name = names.of(&by.plan, by.task).await?;
                ("RESOLVED", GREY, format!("{conflict}: {}/{name}: {resolution}", by.plan))
            }
        };
        let label = self.terminal.colour(colour, label);
        self.print(&format!("{label} [{}] {}", " ".repeat(TOOK_WIDTH), one_line(&text, TEXT_CHARS_MAX)));
        Ok(())
    }

    /// Shows an event of a plan; `None` when its task is not in the plan.
    fn report_plan(&self, event: &Event, now: Timestamp, view: &PlanView) -> Option<()> {
        let task = |id: &TaskId| view.state().task(*id);
        match event {
            Event::TaskDispatched { task_id, .. } if self.is_for_person(task(task_id)?) => {
                let task = task(task_id)?;
                let why = match &task.plan.assignee {
                    Some(assignee) => format!("assigned to {assignee}, which is not an executor here"),
                    None => format!("no executor here for {}", task.plan.kind.as_str()),
                };
                self.line("YOURS", YELLOW, None, task, &format!("{} ({why})", text_of(task)));
            }
            Event::RetryScheduled { task_id, delay_ms, .. } => {
                let task = task(task_id)?;
                let (wait, attempt) = (duration(*delay_ms), task.attempts + 1);
                let text = format!("attempt {attempt} in {wait}: {}", reason_of(task));
                self.line("RETRY", YELLOW, None, task, &text);
            }
            Event::LimitReached { task_id, delay_ms, .. } => {
                let task = task(task_id)?;
                let text = format!("in {}: {}", duration(*delay_ms), reason_of(task));
                self.line("WAIT", YELLOW, None, task, &text);
            }
            Event::PlanStopped { because } => {
                self.note_of_plan(&format!("stops: task {} failed", task(because)?.plan.name()));
            }
            Event::TaskStatusUpdated { task_id, status, .. } => self.report_status(task(task_id)?, *status, now, view),
            Event::ClarificationRequested { question_id, .. } => {
                self.ask(view.state().open_questions().find(|question| question.id == *question_id)?, view);
            }
            Event::ClarificationReceived { task_id, question_id, answer, is_default } => {
                let label = if *is_default { "DEFAULT" } else { "ANSWER" };
                self.line(label, GREEN, None, task(task_id)?, &format!("{question_id}: {answer}"));
            }
            Event::ClarificationWithdrawn { task_id, question_id, reason } => {
                self.line("WITHDRAW", GREY, None, task(task_id)?, &format!("{question_id}: {reason}"));
            }
            Event::PlanPaused { reason, .. } => self.note_of_plan(&format!("is paused: {reason}")),
            Event::PlanResumed {} => self.note_of_plan("is resumed"),
            Event::TasksAmended { tasks, reason, .. } => {
                let names = tasks.iter().map(TaskPlan::name).collect::<Vec<_>>().join(", ");
                self.note_of_plan(&format!("has new or changed tasks: {}: {reason}", one_line(&names, TEXT_CHARS_MAX)));
            }
            Event::SettingsChanged { config, reason } => {
                let words = Some(config.words().join(", ")).filter(|words| !words.is_empty());
                self.note_of_plan(&format!(
                    "has new settings: {}: {reason}",
                    words.as_deref().unwrap_or("the defaults")
                ));
            }
            Event::TaskPaused { task_id, reason } => self.line("PAUSED", YELLOW, None, task(task_id)?, reason),
            Event::TaskResumed { task_id } => {
                let task = task(task_id)?;
                self.line("RESUMED", GREEN, None, task, &text_of(task));
            }
            Event::PlanCancelled { reason } => self.note_of_plan(&format!("is cancelled: {reason}")),
            Event::PlanningCompleted { summary, .. } if self.plan.is_some() => {
                self.note_of_plan(&format!("has ended: {summary}"));
            }
            Event::TaskDispatched { .. }
            | Event::PlanForked { .. }
            | Event::TimerSet { .. }
            | Event::TimerFired { .. }
            | Event::RetryHastened { .. }
            | Event::UsageRecorded { .. }
            | Event::CheckpointNamed { .. }
            | Event::TasksPlanned { .. }
            | Event::TasksReopened { .. }
            | Event::ContextCompacted { .. }
            | Event::PlanningCompleted { .. } => {}
        }
        Some(())
    }

    /// True if a person has to do the task, because no executor here accepts it.
    fn is_for_person(&self, task: &Task) -> bool {
        let is_taken = self.roster.as_ref().is_some_and(|roster| roster.takes(&task.plan));
        !is_taken && task.plan.kind != NodeKind::Clarification
    }

    fn report_status(&self, task: &Task, status: TaskStatus, now: Timestamp, view: &PlanView) {
        let ran = view.times(task.plan.id).claimed_at.map(|claimed_at| now.since(claimed_at));
        let reason = || reason_of(task);
        match status {
            TaskStatus::Completed if task.plan.kind != NodeKind::Clarification => {
                self.line("DONE", GREEN, ran, task, &text_of(task));
            }
            TaskStatus::Failed => self.line("FAIL", RED, ran, task, &reason()),
            TaskStatus::TimedOut => self.line("TIMEOUT", RED, ran, task, &reason()),
            TaskStatus::Cancelled => self.line("CANCEL", YELLOW, None, task, &reason()),
            TaskStatus::Skipped => self.line("SKIP", GREY, None, task, &reason()),
            TaskStatus::Completed | TaskStatus::Planned | TaskStatus::Running | TaskStatus::NeedsClarification => {}
        }
    }

    /// Shows the end of a run: the failed tasks again, and a line that sums up.
    pub fn summary(&self, plan: &str, view: &PlanView, states: &States) {
        let tasks = &view.state().tasks;
        let failed = tasks.iter().filter(|task| matches!(task.status, TaskStatus::Failed | TaskStatus::TimedOut));
        self.print(&"-".repeat(60));
        for task in failed {
            self.line("FAIL", RED, None, task, &text_of(task));
            for line in error_lines(task.error.as_deref().unwrap_or_default(), ERROR_LINES_MAX) {
                self.print(&format!("         {}", visible(&line)));
            }
        }
        let counts = State::ALL.iter().zip(counts_of(states)).filter(|(_, n)| *n > 0);
        let parts = counts.map(|(state, n)| format!("{n} {}", state.words())).collect::<Vec<_>>().join(", ");
        let status = states.plan.state.words();
        let took = aligned(self.began.elapsed());
        let plan = visible(plan);
        self.print(&format!(" Summary [{took}] {plan} {status}: {}: {parts}", count(tasks.len(), "task")));
    }

    /// A line about a task. It is cut at the width of a terminal, unless it is an error.
    fn line(&self, label: &str, colour: u8, took: Option<Duration>, task: &Task, text: &str) {
        self.line_of(label, colour, took, task, text, TEXT_CHARS_MAX);
    }

    fn line_of(&self, label: &str, colour: u8, took: Option<Duration>, task: &Task, text: &str, chars_max: usize) {
        let took = took.map_or_else(|| " ".repeat(TOOK_WIDTH), aligned);
        let label = self.terminal.colour(colour, &format!("{label:>8}"));
        let line = format!("{label} [{took}] {}", self.named(task, text, chars_max));
        if !self.terminal.is_live || colour == RED || chars_max > TEXT_CHARS_MAX {
            return self.print(&line);
        }
        self.print(&truncate_str(&line, size().1.into(), "..."));
    }

    /// The name of a task, and a text.
    fn named(&self, task: &Task, text: &str, chars_max: usize) -> String {
        let (name, width) = match &self.plan {
            Some(plan) => (visible(&format!("{plan} {}", task.plan.name())), 0),
            None => (visible(&task.plan.name()), self.name_width),
        };
        format!("{name:>width$}  {}", one_line(text, chars_max))
    }

    fn print(&self, line: &str) {
        if !self.terminal.is_quiet {
            say(line);
        }
    }

    /// Draws the live block after a change of a plan.
    fn draw(&mut self, view: &PlanView) {
        if !self.terminal.is_live {
            return;
        }
        let tasks = &view.state().tasks;
        let (held, free) = tasks.iter().partition::<Vec<_>, _>(|task| view.holder(task.plan.id).is_some());
        let for_person = free.iter().filter(|task| task.status == TaskStatus::Running && self.is_for_person(task));
        let n_waiting = view.state().open_questions().count() + for_person.count();
        let n_ended = tasks.iter().filter(|task| task.status.is_end()).count();
        let line = |task: &Task| self.named(task, &text_of(task), TEXT_CHARS_MAX);
        let running = held.into_iter().map(|task| (view.times(task.plan.id).claimed_at, line(task))).collect();
        let share = Share { counts: [n_ended, tasks.len(), n_waiting], running };
        self.shares.insert(self.plan.clone().unwrap_or_default(), share);
        let mut lines = self.shares.values().flat_map(|share| share.running.clone()).collect::<Vec<_>>();
        let [n_ended, n_tasks, n_waiting] = [0, 1, 2].map(|n| self.shares.values().map(|share| share.counts[n]).sum());
        let n_running = lines.len();
        // The last two lines of the block fit too, and one above it.
        lines.truncate(usize::from(size().0.saturating_sub(3).max(1)));
        let n_more = n_running - lines.len();
        lines.extend((n_more > 0).then(|| (None, format!("and {n_more} more"))));
        let waiting = if n_waiting == 1 { "waits for you" } else { "wait for you" };
        let counts = [(n_running, "running"), (n_waiting, waiting)].into_iter().filter(|(n, _)| *n > 0);
        let counts = counts.map(|(n, word)| format!(" · {n} {word}")).collect::<String>();
        lines.push((None, format!("{n_ended} of {n_tasks} done{counts}")));
        self.redraw(lines);
    }

    fn redraw(&mut self, lines: Vec<(Option<Timestamp>, String)>) {
        self.lines.drain(lines.len().min(self.lines.len())..).for_each(|line| BLOCK.remove(&line));
        let now = now();
        let sign = self.terminal.colour(BLUE, "{spinner}");
        for (n, (claimed_at, text)) in lines.into_iter().enumerate() {
            let template = match claimed_at {
                Some(_) => format!("{sign} {{elapsed_precise}} {{wide_msg}}"),
                None => self.terminal.colour(GREY, "{wide_msg}"),
            };
            let line = self.lines.get(n).cloned().unwrap_or_else(|| BLOCK.add(ProgressBar::new_spinner()));
            let style = ProgressStyle::with_template(&template);
            line.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            line.set_elapsed(claimed_at.map_or(Duration::ZERO, |claimed_at| now.since(claimed_at)));
            line.set_message(text);
            if n == self.lines.len() {
                line.enable_steady_tick(TICK);
                self.lines.push(line);
            }
        }
    }
}

/// The text of a task in a line: its command where it has one.
fn text_of(task: &Task) -> String {
    task.plan.command.as_ref().map_or_else(|| task.plan.description.clone(), |command| in_one_line(command))
}

fn reason_of(task: &Task) -> String {
    headline(task.error.as_deref().unwrap_or_default())
}

fn aligned(took: Duration) -> String {
    format!("{:>TOOK_WIDTH$}", duration(millis(took)))
}
