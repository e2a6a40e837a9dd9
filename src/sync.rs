//! `plan sync`, `run --sync` and `plan export`: a plan and its file, each kept in step with the other.
//!
//! The file is only ever replaced as a whole, and only while it has the bytes that were read. What its boxes showed after
//! that is kept in a cell of the log, so that a box set by a person is told from one that was written here.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crewlog_executors::roster::Roster;
use crewlog_executors::{human, planning};
use crewlog_mq::{Append, CellChange, EventStore, ExecuteError, Position, Range};
use crewlog_planner::claim::{Ending, TaskError};
use crewlog_planner::event::{Amendment, Command};
use crewlog_planner::parse::{self, Format, ParseError, ParsedPlan, write_states};
use crewlog_planner::plan::{Mark, Strength, TaskId, TaskPlan};
use crewlog_planner::planner::PlannerError;
use crewlog_planner::state::{Phase, PlannerState};
use crewlog_planner::view::PlanView;
use serde::Serialize;
use tokio::time::Instant;

use crate::act;
use crate::cli::{ExportPlan, Output, SyncPlan};
use crate::failure::{Code, Failure};
use crate::json::print_line;
use crate::look;
use crate::matching::{Boxes, Changes, Comparison, Note, Reading, Shown, mark_of};
use crate::points::position_of;
use crate::session::{Session, read_text};
use crate::start::{consent, order, short_id};
use crate::terminal::say;
use crate::text::{count, visible};
use crate::workforce;

/// How often a file is read again because somebody else writes it.
const TRIES_MAX: usize = 8;
/// The cells that hold what the boxes of files showed, by plan.
const SPACE: &str = "plan-files";
/// How long changes of a plan are collected before they are written.
const COLLECTED: Duration = Duration::from_millis(50);
/// How often a file is looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Steps whose lines differ that are named at once.
const SHOWN_MAX: usize = 20;
/// Why a plan is amended.
const REASON: &str = "its file was changed";

/// What a file may change in its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// All of it; a person is asked before anything new can run.
    Asking,
    /// All of it, unless a person would have to be asked.
    Unasked,
    /// Nothing: only the boxes are written.
    Nothing,
}

/// What came of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Round {
    /// The plan has changes that the view does not have yet.
    Stale,
    /// The plan was changed; the next round writes the file.
    Changed,
    /// Somebody else wrote the file meanwhile.
    Overtaken,
    /// Plan and file are in step.
    InStep,
}

/// What was done, as JSON.
#[derive(Debug, Default, Serialize)]
struct DoneJson {
    plan: String,
    file: String,
    added: BTreeSet<String>,
    edited: BTreeSet<String>,
    left_out: BTreeSet<String>,
    done: BTreeSet<String>,
    boxes_written: usize,
    refused: BTreeSet<String>,
}

/// A text that was taken in, as it is read.
struct Source {
    text: String,
    parallel: bool,
    plan: ParsedPlan,
}

/// When a file was written last, its length and its number.
type Stamp = (i64, i64, u64, u64);

/// The file of a plan.
pub struct Kept<'a> {
    session: &'a Session,
    store: EventStore,
    plan: String,
    tags: Vec<String>,
    roster: Roster,
    path: PathBuf,
    source: Option<Arc<Source>>,
    /// As the cell has it, if it is there.
    shown: Option<Shown>,
    /// Where the log ended before the last change from here; a view that has not read on does not have that.
    seen: Position,
    done: DoneJson,
    said: HashSet<String>,
    /// What is to be said.
    pub notes: Vec<String>,
    stamp: Option<Stamp>,
    is_behind: bool,
    due: Instant,
}

/// `plan sync`.
pub async fn sync(session: &Session, typed: &SyncPlan) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let plan = look::find_plan(&store, &typed.plan).await?;
    let tags = look::tags_of(&store, &plan).await?;
    act::check_key(session, &plan, &tags)?;
    planning::catch_up(&store, &plan, tags.clone()).await?;
    let roster = workforce::roster(session, Duration::MAX, &[])?;
    let view = look::load_view(&store, &plan, Range::default()).await?;
    let mut kept = Kept::new(session, store.clone(), plan.clone(), tags, roster, view.state()).await?;
    for _ in 0..TRIES_MAX {
        let view = look::load_view(&store, &plan, Range::default()).await?;
        let round = kept.round(&view, Takes::Asking).await;
        kept.notes.drain(..).filter(|_| !session.terminal.is_quiet).for_each(|note| say(&visible(&note)));
        if round? == Round::InStep {
            return kept.finish();
        }
    }
    Err(Failure::new(Code::Conflict, format!("{} is being written all the time: try again", kept.path.display())))
}

impl<'a> Kept<'a> {
    /// The file that a plan was made from.
    pub async fn new(
        session: &'a Session,
        store: EventStore,
        plan: String,
        tags: Vec<String>,
        roster: Roster,
        state: &PlannerState,
    ) -> Result<Self, Failure> {
        let path = path_of(&plan, state).map_err(|failure| failure.hint(session.command_on("plan export", &plan)))?;
        remove_left_over(&path);
        let shown = store.cell(SPACE, &plan).await?.map(|cell| Shown::read(&cell.value));
        let done = DoneJson { plan: plan.clone(), file: path.display().to_string(), ..DoneJson::default() };
        Ok(Self {
            session,
            store,
            plan,
            tags,
            roster,
            path,
            source: None,
            shown,
            seen: Position(0),
            done,
            said: HashSet::new(),
            notes: Vec::new(),
            stamp: None,
            is_behind: true,
            due: Instant::now(),
        })
    }

    /// Takes in the file or, where that changes nothing, writes the boxes.
    pub async fn round(&mut self, view: &PlanView, takes: Takes) -> Result<Round, Failure> {
        if view.at() <= self.seen {
            return Ok(Round::Stale);
        }
        self.stamp = stamp_of(&self.path);
        let text = read_text(&self.path)?;
        let source = self.source(view.state())?;
        let options = view.state().config().file.options(source.parallel);
        let read = |text: &str| parse::read(text, options).map_err(|error| self.unreadable(&error));
        let now = read(&text)?;
        let before = Reading { text: &source.text, plan: &source.plan };
        let comparison = Comparison::new(view, before, Reading { text: &text, plan: &now });
        let settled = comparison.with_boxes_before();
        let mut changes = if settled == source.text {
            Changes::default()
        } else {
            let plan = read(&settled)?;
            Comparison::new(view, before, Reading { text: &settled, plan: &plan }).edits()
        };
        let shown = self.shown.clone().unwrap_or_default();
        comparison.boxes_by_hand(&shown, &mut changes);
        let shown_before = comparison.shown_before(&shown);
        let mut boxes = comparison.boxes(&shown);
        for note in std::mem::take(&mut changes.notes) {
            self.note("warning", &note);
        }
        if !changes.is_empty() && self.is_taken(view.state(), &changes, takes, &mut boxes)? {
            self.warn_of_new(&source.plan, &now);
            self.remember(shown_before).await?;
            let text = comparison.taken_in(options);
            return self.amend(view.state(), changes, text).await;
        }
        for note in std::mem::take(&mut boxes.refused) {
            let refused = self.note("not written", &note);
            self.done.refused.insert(refused);
        }
        if now.marks.is_empty() && boxes.shown != shown_before {
            self.note("note", &Note { line: 1, text: "the file has no boxes, so it shows no states".to_owned() });
        }
        self.write(&text, now, boxes, &shown_before).await
    }

    /// Whether a plan is changed as its file asks.
    fn is_taken(
        &mut self,
        state: &PlannerState,
        changes: &Changes,
        takes: Takes,
        boxes: &mut Boxes,
    ) -> Result<bool, Failure> {
        let line = changes.lines.values().min().copied().unwrap_or(1);
        if let (Phase::Ended(_), false) = (state.phase(), state.config().standing) {
            let text =
                "the plan has ended, so that changes of its file are not taken over: run the file again".to_owned();
            boxes.refused.push(Note { line, text });
            return Ok(false);
        }
        let to_run = self.to_run(state, changes);
        let sync = self.session.command_on("plan sync", &self.plan);
        match takes {
            Takes::Nothing => {
                self.note("warning", &Note { line, text: format!("the file was changed; to take that over: {sync}") });
                Ok(false)
            }
            Takes::Unasked if !to_run.is_empty() && !self.session.yes => {
                let text = format!("the file has new commands; to look at them and take them over: {sync}");
                self.note("warning", &Note { line, text });
                Ok(false)
            }
            Takes::Unasked => Ok(true),
            Takes::Asking => {
                let shown = ParsedPlan { tasks: to_run, ..ParsedPlan::empty(Format::Markdown) };
                consent(self.session, &shown, &self.roster).map(|()| true)
            }
        }
    }

    /// What the file lets run that did not run before.
    fn to_run(&self, state: &PlannerState, changes: &Changes) -> Vec<TaskPlan> {
        let runs = |task: &TaskPlan| {
            (
                task.command.clone(),
                task.compensate.clone(),
                task.assignee.clone(),
                self.roster.agent_for(task).is_some(),
            )
        };
        let told = |task: &TaskPlan| (task.description.clone(), task.notes.clone(), task.kind);
        let is_new = |task: &&TaskPlan| {
            let known = state.task(task.id).map(|known| &known.plan);
            let (command, undo, _, by_agent) = runs(task);
            let is_run = task.mark != Mark::Done && (command.is_some() || undo.is_some() || by_agent);
            is_run && known.is_none_or(|known| runs(known) != runs(task) || by_agent && told(known) != told(task))
        };
        changes.defined.iter().filter(is_new).cloned().collect()
    }

    /// Changes the plan, all at once, and reports what a person has ticked while it ran.
    async fn amend(&mut self, state: &PlannerState, changes: Changes, text: String) -> Result<Round, Failure> {
        let source = (!changes.is_only_boxes()).then_some(Amendment::Source { text });
        let Changes { defined, gone, given_up, done, reported, lines, .. } = changes;
        let skip = |task: &TaskId| Amendment::Skip { task: *task, keeps_order: true };
        let names = |ids: &[TaskId]| ids.iter().filter_map(|id| Some(state.task(*id)?.plan.name())).collect::<Vec<_>>();
        let (left_out, ended) = (names(&[&gone[..], &given_up].concat()), names(&[&done[..], &reported].concat()));
        let (edited, added): (Vec<_>, Vec<_>) = defined.iter().partition(|task| state.task(task.id).is_some());
        let [edited, added] = [edited, added].map(|tasks| tasks.into_iter().map(TaskPlan::name).collect::<Vec<_>>());
        let amendments = (!defined.is_empty()).then(|| Amendment::Define { tasks: defined.clone() });
        let amendments = amendments.into_iter().chain(gone.iter().chain(&given_up).map(skip));
        let amendments = amendments.chain(done.iter().map(|task| Amendment::Done { task: *task })).chain(source);
        let amendments = amendments.collect::<Vec<_>>();
        let head = self.store.head().await?;
        if !amendments.is_empty() {
            let mut planner = planning::planner_of(&self.store, &self.plan, self.tags.clone()).await?;
            let command = Command::Amend { amendments, reason: REASON.to_owned() };
            match order(&mut planner, command).await {
                Ok(executed) if executed.events.is_empty() => {}
                Ok(_) => self.seen = head,
                // A task began meanwhile.
                Err(ExecuteError::Refused(PlannerError::TaskUnderWay { .. } | PlannerError::TaskEnded { .. })) => {
                    return Ok(Round::Changed);
                }
                Err(error) => return Err(self.refused(planner.handler().state(), error, &defined, &lines)),
            }
        }
        for id in reported {
            if self.report(state, id).await? {
                self.seen = head;
            }
        }
        planning::catch_up(&self.store, &self.plan, self.tags.clone()).await?;
        act::bring_into_step(&self.store, &self.plan).await?;
        self.done.added.extend(added);
        self.done.edited.extend(edited);
        self.done.left_out.extend(left_out);
        self.done.done.extend(ended);
        Ok(Round::Changed)
    }

    /// Says for a person that a running task is done, unless somebody was faster, which the next round sees.
    async fn report(&mut self, state: &PlannerState, id: TaskId) -> Result<bool, Failure> {
        let Some(task) = state.task(id) else { return Ok(false) };
        let life = self.session.place.sign_of_life()?;
        let mut claim = human::claim_of(&self.store, &self.plan, id, self.tags.clone());
        let ending = Ending::Completed { result: "done by a person".to_owned(), run: None };
        match human::report(&mut claim, task.attempts, &life, self.store.now(), ending).await {
            Ok(()) => Ok(true),
            Err(ExecuteError::Refused(TaskError::Held { .. } | TaskError::AttemptEnded { .. })) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the boxes, if the file is still as it was read.
    async fn write(
        &mut self,
        text: &str,
        mut now: ParsedPlan,
        boxes: Boxes,
        shown_before: &Shown,
    ) -> Result<Round, Failure> {
        // What a person has ticked ends the groups around it, too.
        for mark in now.marks.iter_mut().filter(|mark| mark.of.is_some_and(|task| boxes.ticked.contains(&task))) {
            mark.mark = Mark::Open;
        }
        let written = write_states(text, &now, &boxes.states, &moment_like(text));
        if written.text != text {
            let places = now.marks.iter().map(|mark| mark.span).collect::<BTreeSet<_>>();
            let cannot = |error| Failure::user(format!("{} cannot be written: {error}", self.path.display()));
            let Some(stamp) = replace(&self.path, text, &written.text).map_err(cannot)? else {
                return Ok(Round::Overtaken);
            };
            self.stamp = Some(stamp);
            self.done.boxes_written += written.changed.iter().filter(|span| places.contains(span)).count();
        }
        if boxes.shown != *shown_before || self.shown.is_some() {
            self.remember(boxes.shown).await?;
        }
        Ok(Round::InStep)
    }

    /// Keeps what the boxes show.
    async fn remember(&mut self, shown: Shown) -> Result<(), Failure> {
        if self.shown.as_ref() != Some(&shown) {
            let change = CellChange::set(SPACE, &self.plan, shown.to_string());
            self.store.append(Append::default().cell(change)).await?;
            self.shown = Some(shown);
        }
        Ok(())
    }

    /// The text that the plan has taken in. Whether its order binds is seen from the plan that was made of it.
    fn source(&mut self, state: &PlannerState) -> Result<Arc<Source>, Failure> {
        if let Some(source) = self.source.as_ref().filter(|source| source.text == state.source()) {
            return Ok(Arc::clone(source));
        }
        let text = state.source().to_owned();
        let read = |parallel| parse::read(&text, state.config().file.options(parallel));
        let is_soft = |task: &TaskPlan| task.depends_on.iter().any(|before| before.strength == Strength::Soft);
        let plan = read(false)?;
        let parallel = plan.tasks.iter().any(is_soft) && !state.tasks().iter().any(|task| is_soft(&task.plan));
        let plan = if parallel { read(true)? } else { plan };
        let source = Arc::new(Source { text, parallel, plan });
        self.source = Some(Arc::clone(&source));
        Ok(source)
    }

    fn unreadable(&self, error: &ParseError) -> Failure {
        let (line, column) = error.place().unwrap_or((1, 1));
        let path = self.path.display();
        Failure::new(Code::Parse, format!("{path}:{line}:{column}: {error} [{}]", error.name()))
            .hint("the plan and its file are as they were")
    }

    fn refused(
        &self,
        state: &PlannerState,
        error: ExecuteError<PlannerError>,
        defined: &[TaskPlan],
        lines: &HashMap<TaskId, usize>,
    ) -> Failure {
        let named = match &error {
            ExecuteError::Refused(PlannerError::Parse(ParseError::DependencyCycle { cycle, .. })) => {
                defined.iter().find(|task| cycle.contains(&task.name())).map(|task| task.id)
            }
            ExecuteError::Refused(refusal) => refusal.task(),
            ExecuteError::Contended { .. } | ExecuteError::Store(_) => None,
        };
        let line = named.and_then(|task| lines.get(&task)).or(lines.values().min()).copied().unwrap_or(1);
        let message = format!("{}:{line}: {error}", self.path.display());
        Failure::new(act::refused(state, error).code, message).hint("the plan and its file are as they were")
    }

    /// Tells once what is to be said of a line.
    fn note(&mut self, sort: &str, note: &Note) -> String {
        let said = format!("{}:{}: {}", self.path.display(), note.line, note.text);
        if self.said.insert(said.clone()) && self.said.len() <= SHOWN_MAX * 10 {
            self.notes.push(format!("{}:{}: {sort}: {}", self.path.display(), note.line, note.text));
        }
        said
    }

    /// What the reader says of the file that it did not say of the text before.
    fn warn_of_new(&mut self, before: &ParsedPlan, now: &ParsedPlan) {
        let known = before.warnings.iter().map(|warning| &warning.message).collect::<HashSet<_>>();
        for warning in now.warnings.iter().filter(|warning| !known.contains(&warning.message)).take(SHOWN_MAX) {
            self.note("warning", &Note { line: warning.line, text: warning.message.clone() });
        }
    }

    /// Says what was done.
    fn finish(&self) -> Result<Code, Failure> {
        let DoneJson { file, added, edited, left_out, done, boxes_written, refused, .. } = &self.done;
        let mut stdout = io::stdout().lock();
        if self.session.output == Output::Text {
            let named = [("added", added), ("edited", edited), ("left out", left_out), ("done", done)];
            let named = named.into_iter().filter(|(_, names)| !names.is_empty());
            let mut said = named
                .map(|(did, names)| {
                    format!("{did}: {}", names.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
                })
                .collect::<Vec<_>>();
            if *boxes_written > 0 {
                let boxes = count(*boxes_written, "state");
                said.push(format!("{boxes} written to {file}"));
            }
            let said = if said.is_empty() { "nothing to change".to_owned() } else { said.join("\n") };
            writeln!(stdout, "{}", visible(&said))?;
        } else {
            print_line(&mut stdout, &self.done)?;
        }
        if refused.is_empty() {
            return Ok(Code::Done);
        }
        let lines = refused.iter().take(SHOWN_MAX).map(String::as_str).collect::<Vec<_>>().join("\n");
        Err(Failure::new(Code::Conflict, format!("plan and file differ:\n{lines}")))
    }
}

/// Beside the loop that carries out a plan.
impl Kept<'_> {
    /// When the next look is due.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// Says that the plan has changed.
    pub fn plan_has_changed(&mut self) {
        if !self.is_behind {
            self.is_behind = true;
            self.due = self.due.min(Instant::now() + COLLECTED);
        }
    }

    /// A round if the plan or the file has changed. The file must not end the work, so a failure is a note. Gives whether
    /// the plan was changed.
    pub async fn keep(&mut self, view: &PlanView, takes: Takes) -> bool {
        let begun = Instant::now();
        self.due = begun + LOOK_INTERVAL;
        if !self.is_behind && (self.stamp.is_some() && self.stamp == stamp_of(&self.path)) {
            return false;
        }
        let round = self.round(view, takes).await;
        let is_changed = matches!(round, Ok(Round::Changed));
        self.is_behind = matches!(round, Ok(Round::Changed | Round::Stale | Round::Overtaken));
        if self.is_behind {
            // A large file takes a while, which is not spent again at once.
            self.due = Instant::now() + COLLECTED.max(4 * begun.elapsed());
        }
        if let Err(failure) = round {
            let said = failure.to_string().replacen("error: ", "warning: ", 1);
            if self.said.insert(said.clone()) {
                self.notes.push(said);
            }
        }
        is_changed
    }
}

/// The file that a plan is kept in step with.
fn path_of(plan: &str, state: &PlannerState) -> Result<PathBuf, Failure> {
    let why = if state.parent().is_some() {
        "a fork, and its file is that of the plan it goes on from"
    } else if !state.origin().is_text() {
        "not made by reading a file, but planned"
    } else if let Some(path) = &state.config().file.path {
        return Ok(path.into());
    } else {
        "not made from a file"
    };
    Err(Failure::user(format!("{plan} has no file to be kept in step with: it was {why}")))
}

fn stamp_of(path: &Path) -> Option<Stamp> {
    fs::metadata(path).ok().map(|known| stamp(&known))
}

fn stamp(known: &fs::Metadata) -> Stamp {
    (known.mtime(), known.mtime_nsec(), known.len(), known.ino())
}

/// Puts another text in the place of a file, unless it has changed. A link goes on to lead to it, and it keeps its mode.
fn replace(path: &Path, known: &str, text: &str) -> io::Result<Option<Stamp>> {
    let path = fs::canonicalize(path)?;
    let mut name = prefix_of(&path);
    name.push(short_id());
    let beside = path.with_file_name(name);
    let written = write_beside(&path, &beside, text).and_then(|stamp| {
        let is_known = fs::read(&path)? == known.as_bytes();
        if is_known { fs::rename(&beside, &path).map(|()| Some(stamp)) } else { Ok(None) }
    });
    if !matches!(written, Ok(Some(_))) {
        // What is left over is removed by the next who looks.
        let _ = fs::remove_file(&beside);
    }
    if let (Ok(Some(_)), Some(folder)) = (&written, path.parent()) {
        File::open(folder)?.sync_all()?;
    }
    written
}

fn write_beside(path: &Path, beside: &Path, text: &str) -> io::Result<Stamp> {
    let mut file = File::options().write(true).create_new(true).open(beside)?;
    // Nobody takes it for one that was left over.
    file.lock()?;
    file.set_permissions(fs::metadata(path)?.permissions())?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(stamp(&file.metadata()?))
}

/// How the names of files begin that are written beside a file.
fn prefix_of(path: &Path) -> OsString {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".crewlog-");
    name
}

/// Removes what a process left over that was killed while it wrote.
fn remove_left_over(path: &Path) {
    let Ok(path) = fs::canonicalize(path) else { return };
    let prefix = prefix_of(&path);
    let entries = path.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let is_left_over = |entry: &fs::DirEntry| {
        entry.file_name().as_encoded_bytes().starts_with(prefix.as_encoded_bytes())
            && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok())
    };
    for entry in entries.filter(is_left_over) {
        // It disturbs nobody.
        let _ = fs::remove_file(entry.path());
    }
}

/// The time now, in the style of the times in a file of beads.
fn moment_like(text: &str) -> String {
    let known = text.split("\"updated_at\":").nth(1).and_then(|rest| rest.split('"').nth(1)).unwrap_or_default();
    let digits =
        known.split_once('.').map_or(0, |(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count()).min(9);
    let now = jiff::Timestamp::now();
    let offset = known.len().checked_sub(6).and_then(|at| known.get(at..)).and_then(|offset| {
        let sign = match offset.as_bytes().first()? {
            b'+' => 1,
            b'-' => -1,
            _other => return None,
        };
        let (hours, minutes) = offset[1..].split_once(':')?;
        let seconds = sign * (hours.parse::<i32>().ok()? * 3600 + minutes.parse::<i32>().ok()? * 60);
        jiff::tz::Offset::from_seconds(seconds).ok()
    });
    match offset {
        Some(offset) => format!("{:.digits$}", now.display_with_offset(offset)),
        None => format!("{now:.digits$}"),
    }
}

/// `plan export`.
pub async fn export(session: &Session, typed: &ExportPlan) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let plan = look::find_plan(&store, &typed.plan).await?;
    act::check_key(session, &plan, &look::tags_of(&store, &plan).await?)?;
    let head = store.head().await?;
    let asked = match &typed.at {
        Some(at) => position_of(session, &store, &plan, at).await?,
        None => head,
    };
    let at = store.whole(asked.min(head)).await?;
    let view = look::load_view(&store, &plan, Range::up_to(at)).await?;
    if view.created_at().is_none() {
        return Err(Failure::new(Code::Nothing, format!("{plan} did not exist yet at position {asked}")));
    }
    let state = view.state();
    let tasks = state.tasks().iter().map(|task| {
        let read = if task.is_paused { task.plan.mark } else { Mark::Open };
        TaskPlan { mark: mark_of(&view, task).unwrap_or(read), ..task.plan.clone() }
    });
    let exported = ParsedPlan {
        title: state.title().map(str::to_owned),
        context: state.context().to_vec(),
        tasks: tasks.collect(),
        ..ParsedPlan::empty(Format::Markdown)
    };
    if exported.tasks.iter().any(|task| task.is_delegated() || task.tool.is_some()) {
        say("warning: what other plans and tools do for tasks has no form in Markdown and is left out");
    }
    io::stdout().lock().write_all(parse::render(&exported).as_bytes())?;
    Ok(Code::Done)
}
