//! `plan sync` and `run --sync`: keep a plan and its file in step.
//!
//! A cell of the log keeps what the boxes showed last, to tell a box that a person set from one that crewlog wrote.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crewlog_executors::claiming::claim_of;
use crewlog_executors::consent::Consent;
use crewlog_executors::crew::human;
use crewlog_executors::matching::{Changes, Comparison, FileText, n_ended, told_of};
use crewlog_executors::private::replace_known;
use crewlog_executors::{planning, plans};
use crewlog_mq::{Append, CellChange, EventStore, ExecuteError, Position, Range};
use crewlog_planner::claim::{Ending, TaskError};
use crewlog_planner::event::{Amendment, Command};
use crewlog_planner::parse::write_states;
use crewlog_planner::plan::{Mark, NodeKind, TaskId, TaskPlan};
use crewlog_planner::planner::PlannerError;
use crewlog_planner::state::{Phase, PlannerState};
use crewlog_planner::validity::InvalidPlan;
use crewlog_planner::view::PlanView;
use serde_json::json;
use tokio::time::Instant;

use crate::consent::{consent, keep, withdraw};
use crate::context::{Session, roster};
use crate::target::{self, order};
use crate::ui::failure::{Code, Failure};
use crate::ui::text::count;
use crate::views::names::{Choice, open_plan};
use crate::views::queries;

/// How often a plan or a file is read again because somebody else writes it.
pub const TRIES_MAX: usize = 8;
/// The cells that hold what the boxes of files show, by plan.
const SPACE: &str = "plan-files";
/// How long a file must have been left alone before it is read, and how long changes of its plan are collected.
const SETTLED: Duration = Duration::from_millis(50);
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
const NOTES_MAX: usize = 200;

pub struct Kept<'a> {
    session: &'a Session,
    store: EventStore,
    plan: String,
    tags: Vec<String>,
    path: PathBuf,
    /// By task: boxes as crewlog has written them or seen them agree, where they differ from the source of the plan.
    shown: BTreeMap<TaskId, Mark>,
    /// By task: the attempts that had ended when the file was last in step.
    ended: BTreeMap<TaskId, u32>,
    /// The end of the log before the last change that was made here: a view up to there does not have that change.
    seen: Position,
    /// The names of tasks, by the change made to them.
    did: BTreeMap<&'static str, Vec<String>>,
    n_written: usize,
    /// Lines whose states were not written.
    refused: Vec<String>,
    said: HashSet<String>,
    /// The decision about the changes that are taken over next.
    agreed: Consent,
    /// Warnings that are not printed yet.
    pub notes: Vec<String>,
    /// The time and length of the file when both were in step, if nothing has happened since.
    stamp: Option<(SystemTime, u64)>,
    pub due: Instant,
}

pub async fn sync(session: &Session, typed: &str) -> Result<Code, Failure> {
    let (store, plan) = open_plan(session, typed, Choice::Changed).await?;
    keep_once(session, &store, &plan).await?.finish()
}

/// Brings a plan and its file into step before anything of it runs. A person is asked before anything new can run.
pub async fn keep_once<'a>(session: &'a Session, store: &EventStore, plan: &str) -> Result<Kept<'a>, Failure> {
    // Settings that cannot be read are refused before the file is touched.
    session.config()?;
    let mut kept = Kept::new(session, store, plan).await?;
    planning::catch_up(store, plan, kept.tags.clone()).await?;
    for _ in 0..TRIES_MAX {
        let view = queries::load_view(store, plan, Range::default()).await?;
        let is_in_step = kept.round(&view, true).await;
        kept.notes.drain(..).for_each(|note| session.remark(&note));
        if is_in_step? {
            return Ok(kept);
        }
    }
    Err(Failure::new(Code::Conflict, format!("{} kept changing: try again", kept.path.display())))
}

/// By task: the number of attempts that have ended.
fn ended_of(state: &PlannerState) -> BTreeMap<TaskId, u32> {
    state.tasks.iter().map(|task| (task.plan.id, n_ended(task))).collect()
}

impl<'a> Kept<'a> {
    pub async fn new(session: &'a Session, store: &EventStore, plan: &str) -> Result<Self, Failure> {
        let tags = queries::tags_of(store, plan).await?;
        session.place.check_key(plan, &tags)?;
        let view = queries::load_view(store, plan, Range::default()).await?;
        let state = view.state();
        // A fork continues from a plan that already has the file.
        let is_its_own = state.origin.is_text() && state.parent.is_none();
        let Some(kept) = state.config.file.path.as_ref().filter(|_| is_its_own) else {
            let export = session.command_on("show --markdown", plan);
            let message = format!("{plan} has no file of its own: no file was read to make it, or it is a fork");
            return Err(Failure::user(message).hint(format!("to write it into a file: {export}")));
        };
        let path = session.folders(false)?.locate(kept).map_err(Failure::user)?;
        let cell = store.cell(SPACE, plan).await?;
        Ok(Self {
            session,
            store: store.clone(),
            plan: plan.to_owned(),
            tags,
            path,
            shown: cell.and_then(|cell| serde_json::from_str(&cell.value).ok()).unwrap_or_default(),
            ended: ended_of(state),
            seen: Position(0),
            did: ["added", "edited", "left_out", "done"].map(|did| (did, Vec::new())).into(),
            n_written: 0,
            refused: Vec::new(),
            said: HashSet::new(),
            agreed: Consent::default(),
            notes: Vec::new(),
            stamp: None,
            due: Instant::now(),
        })
    }

    /// Does a round if the plan or the file has changed; a failure is a warning. Gives whether another round is due.
    pub async fn keep(&mut self, view: &PlanView) -> bool {
        let begun = Instant::now();
        self.due = begun + LOOK_INTERVAL;
        if self.stamp.is_some() && self.stamp == stamp_of(&self.path) {
            return false;
        }
        let is_in_step = self.round(view, false).await.unwrap_or_else(|failure| {
            self.note(failure.to_string().replacen("error: ", "warning: ", 1));
            true
        });
        if !is_in_step {
            self.stamp = None;
            // A large file takes a while, which is not spent again at once.
            self.due = Instant::now() + SETTLED.max(4 * begun.elapsed());
        }
        !is_in_step
    }

    /// Makes a look due, as the plan has changed.
    pub fn plan_has_changed(&mut self) {
        if self.stamp.take().is_some() {
            self.due = self.due.min(Instant::now() + SETTLED);
        }
    }

    /// Updates the plan from its file or, if that changes nothing, writes the boxes. True if both are then in step.
    async fn round(&mut self, view: &PlanView, asks: bool) -> Result<bool, Failure> {
        if view.at <= self.seen {
            return Ok(false);
        }
        let state = view.state();
        self.stamp = stamp_of(&self.path);
        // Somebody may be writing it just now, part by part.
        if let Some(age) = self.stamp.and_then(|(written, _)| written.elapsed().ok()) {
            tokio::time::sleep(SETTLED.saturating_sub(age)).await;
        }
        let text = self.session.read_text(&self.path)?;
        let (before, parallel) = FileText::source_of(state)?;
        let options = state.config.file.options(parallel);
        let unreadable = |error: InvalidPlan| self.failure(error.place().map_or(1, |(line, _)| line), &error);
        let now = FileText::new(text, options).map_err(unreadable)?;
        let comparison = Comparison::new(view, &before, &now);
        let settled = comparison.with_boxes_before();
        let mut changes = if settled == before.text {
            Changes::default()
        } else {
            let settled = FileText::new(settled, options).map_err(unreadable)?;
            Comparison::new(view, &before, &settled).edits(options)
        };
        comparison.boxes(&self.shown, &self.ended, &mut changes);
        std::mem::take(&mut changes.notes).iter().for_each(|(line, text)| self.warn(*line, text));
        let known = before.plan.warnings.iter().map(|warning| &warning.message).collect::<HashSet<_>>();
        let new = now.plan.warnings.iter().filter(|warning| !known.contains(&warning.message));
        let new = new.filter(|warning| changes.source.is_some() || warning.message.contains(" is done, "));
        new.for_each(|warning| self.warn(warning.line, &warning.message));
        let is_changed = changes.source.is_some() || !changes.left_out.is_empty() || !changes.done.is_empty();
        if is_changed && self.is_taken(state, &changes, asks).await? {
            return self.amend(state, changes, asks).await;
        }
        let is_in_step = self.write(now, changes).await?;
        if is_in_step {
            self.ended = ended_of(state);
        }
        Ok(is_in_step)
    }

    /// Changes the plan as its file asks; true if it did. A person is asked before anything new can run.
    async fn is_taken(&mut self, state: &PlannerState, changes: &Changes, asks: bool) -> Result<bool, Failure> {
        let line = changes.line.unwrap_or(1);
        if let (Phase::Ended(_), false) = (state.phase, state.config.standing) {
            self.refuse(line, "the file was changed, but the plan has ended: run the file again");
            return Ok(false);
        }
        let changed = changes.defined.iter().map(|task| &task.id).chain(&changes.left_out).chain(&changes.done);
        let is_question = |id: &TaskId| state.task(*id).is_some_and(|task| task.plan.kind == NodeKind::Clarification);
        // While a run follows its file, the file does not tell who changed it.
        if changed.into_iter().any(is_question) && !(asks && self.session.is_person().await?) {
            let sync = self.session.command_on("plan sync", &self.plan);
            self.refuse(line, &format!("the file changes or settles a question, which only a person does: {sync}"));
            return Ok(false);
        }
        let roster = roster::roster(self.session, Duration::MAX, &[])?;
        // Names, order and groups run nothing else.
        let runs = |task: &&TaskPlan| {
            let is_run = task.command.is_some() || task.compensate.is_some() || roster.agent_for(task).is_some();
            let known = state.task(task.id).is_some_and(|known| told_of(&known.plan) == told_of(task));
            is_run && task.mark != Mark::Done && !known
        };
        let tasks = changes.defined.iter().filter(runs).cloned().collect::<Vec<_>>();
        if asks {
            self.agreed = consent(self.session, &tasks, &roster, ("", state.config.folder.as_deref())).await?;
        } else if !tasks.is_empty() {
            let agree = self.session.command_on("agree", &self.plan);
            self.warn(line, &format!("the file has new commands, which run once you agree: {agree}"));
        }
        Ok(true)
    }

    /// Changes the plan in one amendment, and reports the tasks that a person has ticked while they ran.
    async fn amend(&mut self, state: &PlannerState, changes: Changes, asks: bool) -> Result<bool, Failure> {
        let Changes { defined, left_out, done, source, line, .. } = changes;
        let (edited, added): (Vec<_>, Vec<_>) =
            defined.iter().filter(|task| !task.spans.is_empty()).partition(|task| state.task(task.id).is_some());
        let tasks = |ids: &[TaskId]| ids.iter().filter_map(|id| Some(&state.task(*id)?.plan)).collect::<Vec<_>>();
        let did = [("added", added), ("edited", edited), ("left_out", tasks(&left_out)), ("done", tasks(&done))];
        let did = did.map(|(did, tasks)| (did, tasks.into_iter().map(TaskPlan::name).collect::<Vec<_>>()));
        let is_running = |id: &TaskId| state.dispatched().any(|task| task.plan.id == *id);
        let (running, done): (Vec<_>, Vec<_>) = done.into_iter().partition(is_running);
        let define = (!defined.is_empty()).then_some(Amendment::Define { tasks: defined });
        let skipped = left_out.into_iter().map(|task| Amendment::Skip { task, keeps_order: true });
        let done = done.into_iter().map(|task| Amendment::Done { task });
        let source = source.map(|text| Amendment::Source { text });
        let amendments = define.into_iter().chain(skipped).chain(done).chain(source).collect::<Vec<_>>();
        let head = self.store.head().await?;
        if !amendments.is_empty() {
            let mut planner = plans::planner_of(&self.store, &self.plan, self.tags.clone()).await?;
            let command = Command::Amend { amendments, reason: "its file was changed".to_owned() };
            if !(asks && self.session.is_person().await?) {
                planner.catch_up().await?;
                let of = (&*self.plan, &*self.tags);
                let ended = withdraw(self.session, of, planner.handler(), &command).await?;
                ended.iter().for_each(|says| self.warn(line.unwrap_or(1), says));
            }
            match order(&mut planner, command).await {
                Ok(executed) => {
                    self.seen = if executed.events.is_empty() { self.seen } else { head };
                    let (agreed, first_new) = (std::mem::take(&mut self.agreed), state.next_id());
                    let of = (&*self.plan, &*self.tags);
                    keep(self.session, &self.store, of, (planner.handler().state(), first_new), agreed).await?;
                }
                // A task has begun meanwhile.
                Err(ExecuteError::Refused(PlannerError::TaskUnderWay(..) | PlannerError::TaskEnded(..))) => {
                    return Ok(false);
                }
                Err(ExecuteError::Refused(PlannerError::Parse(error))) => {
                    return Err(self.failure(line.unwrap_or(1), &error));
                }
                Err(error) => return Err(error.into()),
            }
        }
        for task in running.into_iter().filter_map(|id| state.task(id)) {
            let life = self.session.place.liveness_lock()?;
            let mut claim = claim_of(&self.store, &self.plan, task.plan.id, self.tags.clone());
            let ending = Ending::Completed { result: "done by a person".to_owned(), run: None };
            match human::report(&mut claim, task.attempts, &self.store, &life, ending).await {
                Ok(()) => self.seen = head,
                // Somebody was faster, which the next round sees.
                Err(ExecuteError::Refused(TaskError::Held { .. } | TaskError::AttemptEnded(_))) => {}
                Err(error) => return Err(error.into()),
            }
        }
        planning::catch_up(&self.store, &self.plan, self.tags.clone()).await?;
        target::propagate(&self.store, &self.plan).await?;
        for (did, names) in did {
            self.did.entry(did).or_default().extend(names);
        }
        Ok(false)
    }

    /// Writes the boxes, if the file is still as it was read.
    async fn write(&mut self, mut now: FileText, changes: Changes) -> Result<bool, Failure> {
        if now.plan.marks.is_empty() {
            self.warn(1, "the file has no boxes, so it shows no states");
        }
        changes.refused.iter().for_each(|(line, text)| self.refuse(*line, text));
        // A box that a person has ticked ends the groups around it, too.
        let marks = now.plan.marks.iter_mut();
        let ticked = marks.filter(|mark| mark.of.and_then(|task| changes.states.get(&task)) == Some(&mark.mark));
        ticked.for_each(|mark| mark.mark = Mark::Open);
        let states = changes.states.into_iter().collect::<Vec<_>>();
        let moment = format!("{:.0}", jiff::Timestamp::now());
        let written = write_states(&now.text, &now.plan, &states, &moment);
        if written.text != now.text {
            let cannot = |error| Failure::user(format!("{} cannot be written: {error}", self.path.display()));
            if !replace_known(&self.path, &now.text, &written.text).map_err(cannot)? {
                return Ok(false);
            }
            let places = now.plan.marks.iter().map(|mark| mark.span).collect::<BTreeSet<_>>();
            self.n_written += written.changed.iter().filter(|span| places.contains(span)).count();
        }
        if self.shown != changes.shown {
            let value = serde_json::to_string(&changes.shown)?;
            self.store.append(Append::default().cell(CellChange::set(SPACE, &self.plan, value))).await?;
            self.shown = changes.shown;
        }
        Ok(true)
    }

    fn failure(&self, line: usize, error: &dyn std::error::Error) -> Failure {
        let message = format!("{}:{line}: {error}", self.path.display());
        Failure::new(Code::Parse, message).hint("the plan and its file are as they were")
    }

    fn warn(&mut self, line: usize, text: &str) {
        self.note(format!("{}:{line}: warning: {text}", self.path.display()));
    }

    fn refuse(&mut self, line: usize, text: &str) {
        self.warn(line, text);
        self.refused.push(format!("{}:{line}", self.path.display()));
    }

    fn note(&mut self, text: String) {
        if self.said.len() < NOTES_MAX && self.said.insert(text.clone()) {
            self.notes.push(text);
        }
    }

    fn finish(self) -> Result<Code, Failure> {
        let named = self.did.iter().filter(|(_, names)| !names.is_empty());
        let lines = named.map(|(did, names)| format!("{}: {}", did.replace('_', " "), names.join(", ")));
        let wrote = || format!("{} written to {}", count(self.n_written, "state"), self.path.display());
        let lines = lines.chain((self.n_written > 0).then(wrote)).collect::<Vec<_>>();
        let text = if lines.is_empty() { "nothing to change".to_owned() } else { lines.join("\n") };
        let json = json!({
            "plan": self.plan, "file": self.path, "tasks": self.did, "states_written": self.n_written,
            "refused": self.refused,
        });
        self.session.print_done(&text, &json)?;
        if self.refused.is_empty() {
            return Ok(Code::Done);
        }
        Err(Failure::new(Code::Conflict, format!("the plan and its file are not in step: {}", self.refused.join(", "))))
    }
}

fn stamp_of(path: &Path) -> Option<(SystemTime, u64)> {
    fs::metadata(path).and_then(|known| Ok((known.modified()?, known.len()))).ok()
}
