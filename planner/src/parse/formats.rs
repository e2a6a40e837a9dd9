//! Plans that other programs write as JSON or YAML: Task Master's `tasks.json`, tasks and todos of Claude Code, plans of Codex,
//! beads line by line. A text is one of them when it is JSON and every entry has a title, and an id, a status or a step;
//! what begins as JSON and is none of them is an error, for nobody wants a task of brackets.
//!
//! What one of these programs calls a field, the others do not call something else, so one reader knows them all. It
//! follows the rules for lists: an entry with entries under it is a group, and only what is written binds.

use std::collections::{BTreeMap, HashMap};

use serde_json::value::RawValue;

use super::error::{Diagnostic, ParseError};
use super::graph::{EDGES_MAX, check_cycle};
use super::inline::{Definitions, Inline};
use super::names::Elsewhere;
use super::parsed::{ParseOptions, ParsedPlan, TASKS_MAX, WARNINGS_MAX};
use super::text::{Lines, collapse};
use super::values::{Value, broken, offset};
use super::{built, commands, states, vocabulary};
use crate::plan::{Dependency, Mark, NodeKind, Span, Strength, TaskId, TaskPlan};

/// Entries under entries are read to this depth.
const DEPTH_MAX: usize = 8;

/// So many bytes of the notes of groups are repeated for the tasks in them.
const LENT_BYTES_MAX: usize = 1 << 20;

/// How a list is to be read.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) options: ParseOptions,
    /// Finds tasks of the plan to which the list is added.
    pub(super) elsewhere: Option<Elsewhere<'a>>,
}

/// Which task waits for which task of the plan that the list is added to.
type Outer = Vec<(TaskId, TaskId)>;

/// The plan of a list, and what of it waits for tasks of another plan.
pub(super) type Read = Result<(ParsedPlan, Outer), ParseError>;

/// An entry, before it is known which tasks it waits for.
#[derive(Default)]
struct Entry {
    span: Option<Span>,
    id: Option<String>,
    title: String,
    notes: Vec<String>,
    mark: Mark,
    priority: Option<String>,
    assignee: Option<String>,
    needs: Vec<String>,
    /// Those that wait for it.
    blocks: Vec<String>,
    parent: Option<usize>,
    /// The id of what it stands under, where that is written.
    parent_id: Option<String>,
    /// Whether it comes after the entry before it.
    follows: bool,
    /// What it has as a command of its own, which is not run.
    code: Option<String>,
    /// What is written of how far it is and cannot be read: no command of it is run.
    doubt: Option<String>,
}

/// The plan that a text in one of these forms means; nothing when it is in none of them.
pub(super) fn read(text: &str, asked: Asked<'_>) -> Option<Read> {
    let body = text.trim_start_matches('\u{feff}').trim();
    if !body.starts_with(['{', '[']) {
        return None;
    }
    let mut reader = Reader::new(text);
    if reader.whole(body).is_some() && !reader.entries.is_empty() {
        return Some(reader.plan(asked));
    }
    let (at, problem) = if serde_json::from_str::<&RawValue>(body).is_ok() {
        reader.wrong.unwrap_or((offset(text, body), "there is no entry in it".into()))
    } else {
        broken(text, body, NO_TASK)?
    };
    let (line, column) = Lines::new(text).place(at);
    Some(Err(ParseError::BadJson { problem, line, column }))
}

/// The plan of a list in a part of a text; nothing when that is no JSON or no list of tasks.
pub(super) fn of_json(text: &str, part: &str, asked: Asked<'_>) -> Option<Read> {
    let mut reader = Reader::new(text);
    (reader.whole(part).is_some() && !reader.entries.is_empty()).then(|| reader.plan(asked))
}

/// The plan of a value in a text; nothing when it is no list of tasks.
pub(super) fn of(text: &str, value: &Value, asked: Asked<'_>) -> Option<Read> {
    let mut reader = Reader::new(text);
    (reader.value(value).is_some() && !reader.entries.is_empty()).then(|| reader.plan(asked))
}

/// What is wrong with an entry.
const NO_TASK: &str = "an entry needs a title, and an id, a status or a step";

/// The fields that hold a list of tasks, and whether it is a sequence.
pub(super) const LISTS: [(&str, bool); 5] =
    [("tasks", false), ("plan", true), ("todos", false), ("issues", false), ("steps", true)];

/// The fields that hold the title of an entry, the first of them before the others.
pub(super) const TITLES: [&str; 7] = ["title", "subject", "content", "step", "name", "task", "description"];

/// The fields that hold the id of an entry.
pub(super) const IDS: [&str; 3] = ["id", "taskId", "key"];

/// The fields that say what an entry waits for.
const NEEDS: [&str; 10] = [
    "dependencies",
    "dependsOn",
    "depends_on",
    "depends",
    "blockedBy",
    "blocked_by",
    "deps",
    "needs",
    "requires",
    "after",
];

struct Reader<'t> {
    source: &'t str,
    /// The list has a name; true when that is the name of a sequence.
    named: Option<bool>,
    entries: Vec<Entry>,
    title: Option<String>,
    /// Lists of tasks that are not read: where they stand, and their tags.
    unread: Vec<(usize, String)>,
    /// The first entry that is none, and what is wrong with it.
    wrong: Option<(usize, String)>,
}

impl<'t> Reader<'t> {
    const fn new(source: &'t str) -> Self {
        Self { source, named: None, entries: Vec::new(), title: None, unread: Vec::new(), wrong: None }
    }

    /// The text as one value, else as one value a line.
    fn whole(&mut self, body: &str) -> Option<()> {
        if let Some(value) = Value::json(self.source, body) {
            return self.value(&value);
        }
        for line in body.lines().map(str::trim).filter(|line| !line.is_empty()) {
            self.entry(&Value::json(self.source, line)?, None, 0)?;
        }
        Some(())
    }

    fn value(&mut self, value: &Value) -> Option<()> {
        if let Some(entries) = value.list() {
            return self.entries(entries, None);
        }
        let fields = value.fields()?;
        let named = LISTS.iter().find_map(|(name, sequence)| Some((value.field(name)?, *sequence)));
        if let Some((list, sequence)) = named {
            self.title = ["title", "name", "explanation", "projectName"].iter().find_map(|name| value.text(name));
            return self.entries(list.list()?, Some(sequence));
        }
        // Task Master keeps lists of tasks by tag, and works on `master`.
        let is_tag = |tag: &Value| tag.field("tasks").is_some();
        let read = value.field("master").filter(|tag| is_tag(tag));
        let Some(read) = read.or_else(|| fields.iter().map(|(_, tag)| tag).find(|tag| is_tag(tag))) else {
            return self.entry(value, None, 0);
        };
        for (name, tag) in fields.iter().filter(|(_, tag)| is_tag(tag) && tag.span != read.span) {
            self.unread.push((tag.span.start, name.clone()));
        }
        self.value(read)
    }

    /// The entries of a list; of one that has a name it is known whether it is a sequence.
    fn entries(&mut self, entries: &[Value], named: Option<bool>) -> Option<()> {
        self.named = named;
        entries.iter().try_for_each(|entry| self.entry(entry, None, 0))
    }

    fn entry(&mut self, value: &Value, parent: Option<usize>, depth: usize) -> Option<()> {
        let read = self.fields(value, parent, depth);
        if read.is_none() {
            self.wrong.get_or_insert((value.span.start, NO_TASK.into()));
        }
        read
    }

    fn fields(&mut self, value: &Value, parent: Option<usize>, depth: usize) -> Option<()> {
        let follows = self.named == Some(true) && parent.is_none() && !self.entries.is_empty();
        if let (Some(title), Some(_)) = (value.word(), self.named) {
            let title = collapse(title).into_owned();
            self.entries.push(Entry { span: Some(value.span), title, parent, follows, ..Entry::default() });
            return Some(());
        }
        let (named, title) = TITLES.iter().find_map(|name| Some((*name, value.text(name)?)))?;
        let id = IDS.iter().find_map(|name| value.text(name));
        let status = value.text("status");
        if id.is_none() && status.is_none() && named != "step" && self.named.is_none() {
            return None;
        }
        if matches!(status.as_deref(), Some("tombstone")) {
            return Some(());
        }
        // The ids of entries under another count in it.
        let above = parent.and_then(|parent| self.entries[parent].id.clone());
        let id = match (id, &above) {
            (Some(id), Some(above)) if !id.starts_with(&format!("{above}.")) => Some(format!("{above}.{id}")),
            (id, _) => id,
        };
        let state = states::of(value);
        let mut entry = Entry {
            span: Some(value.span),
            id,
            title: collapse(&title).into_owned(),
            mark: state.mark,
            priority: priority(value),
            assignee: ["assignee", "owner", "assigned_to"]
                .iter()
                .find_map(|name| value.text(name))
                .map(|name| name.trim_start_matches('@').to_owned()),
            parent,
            parent_id: ["parent", "parentId", "epic"].iter().find_map(|name| value.text(name)),
            follows: follows || named == "step" && !self.entries.is_empty(),
            code: ["command", "cmd", "run", "script"].iter().find_map(|name| value.text(name)),
            ..Entry::default()
        };
        entry.notes = notes(value, named);
        entry.notes.extend(state.doubt.iter().map(|(name, said)| format!("{name}: {said}")));
        entry.doubt = state.doubt.map(|(name, said)| format!("\"{name}: {said}\""));
        entry.notes.extend(entry.code.iter().map(|code| format!("Command: {code}")));
        for name in NEEDS {
            needs(value.field(name), &mut entry);
        }
        entry.follows &= entry.needs.is_empty();
        let blocks = value.field("blocks").and_then(Value::list).unwrap_or_default();
        entry.blocks = blocks.iter().filter_map(Value::word).map(str::to_owned).collect();
        let place = self.entries.len();
        self.entries.push(entry);
        let under = ["subtasks", "children"].iter().find_map(|name| value.field(name));
        if let (Some(under), true) = (under, depth < DEPTH_MAX) {
            under.list()?.iter().try_for_each(|one| self.entry(one, Some(place), depth + 1))?;
        }
        Some(())
    }

    fn plan(mut self, asked: Asked<'_>) -> Read {
        let lines = Lines::new(self.source);
        let place = |entry: &Entry| lines.place(entry.span.map_or(0, |span| span.start));
        let mut by_id: HashMap<String, usize> = HashMap::new();
        for (n, entry) in self.entries.iter().enumerate() {
            let Some(id) = &entry.id else { continue };
            if let Some(first) = by_id.insert(id.to_lowercase(), n) {
                let (line, column) = place(entry);
                let first_line = place(&self.entries[first]).0;
                return Err(ParseError::DuplicateId { id: id.clone(), line, column, first_line });
            }
        }
        for (n, entry) in self.entries.iter().enumerate().filter(|(_, entry)| entry.id.is_none()) {
            by_id.entry(entry.title.to_lowercase()).or_insert(n);
        }
        for n in 0..self.entries.len() {
            if let Some(above) = &self.entries[n].parent_id {
                self.entries[n].parent = by_id.get(&above.to_lowercase()).copied().filter(|above| *above != n);
            }
        }
        let groups = Groups::of(&self.entries);
        if groups.tasks.is_empty() {
            return Err(ParseError::EmptyPlan);
        }
        if groups.tasks.len() > TASKS_MAX {
            return Err(ParseError::LimitPassed { limit: "tasks", value: groups.tasks.len(), max: TASKS_MAX });
        }
        let (waits, outer) = self.waits(&by_id, &groups, asked.elsewhere, &place)?;
        let mut warnings = self.odd(&by_id, &lines);
        let lent = self.lent(&groups, &mut warnings, &place);
        let tasks = groups.tasks.iter().enumerate().map(|(n, entry)| {
            let above = self.entries[*entry].parent.map(|above| &self.entries[above]);
            let mut task = task(&self.entries[*entry], TaskId(n as u64 + 1), above, &lent[*entry]);
            self.inherit(*entry, &mut task);
            let binds = |one: &&Dependency| !asked.options.relax_order || one.strength == Strength::Hard;
            task.depends_on = waits[n].iter().filter(binds).copied().collect();
            task
        });
        let tasks = tasks.collect::<Vec<_>>();
        check_cycle(&tasks, |n| place(&self.entries[groups.tasks[n]]))?;
        let ignored = around(self.source, &tasks);
        Ok((ParsedPlan { title: self.title, tasks, context: Vec::new(), warnings, ignored }, outer))
    }

    /// What holds of a group holds of what stands in it: it is done, it will not be, it is in doubt.
    fn inherit(&self, n: usize, task: &mut TaskPlan) {
        let mut at = Some(n);
        for _ in 0..=DEPTH_MAX {
            let Some(entry) = at.map(|at| &self.entries[at]) else { break };
            if task.mark == Mark::Open && matches!(entry.mark, Mark::Done | Mark::Cancelled) {
                task.mark = entry.mark;
            }
            if entry.doubt.is_some() && task.command.take().is_some() {
                task.kind = vocabulary::kind(&task.description, None);
            }
            at = entry.parent;
        }
    }

    /// What is named and not here, and what is here and not read.
    fn odd(&self, by_id: &HashMap<String, usize>, lines: &Lines<'_>) -> Vec<Diagnostic> {
        let mut odd = Vec::new();
        let mut say = |at: usize, message: String, help: &str| {
            let (line, column) = lines.place(at);
            odd.push(Diagnostic { message, line, column, help: Some(help.to_owned()) });
        };
        for (at, tag) in &self.unread {
            say(*at, format!("the tasks of the tag {tag} are not read"), "give them in a text of their own");
        }
        for entry in &self.entries {
            let at = entry.span.map_or(0, |span| span.start);
            if let (Some(above), None) = (&entry.parent_id, entry.parent) {
                let message = format!("{} stands under {above}, which is not here", entry.title);
                say(at, message, "add that entry, or take the reference away");
            }
            if let Some(doubt) = &entry.doubt {
                let message =
                    format!("{doubt} of {} cannot be read, so it stays open and no command of it is run", entry.title);
                say(
                    at,
                    message,
                    "write open, in_progress, done or cancelled as its status, and \"skip\" or \"enabled\" with true or false",
                );
            }
            if entry.code.is_some() && !entry.title.contains('`') {
                let message = format!("the command of {} is not run", entry.title);
                say(at, message, "write it between backticks in the title if it is to be run");
            }
            for id in entry.blocks.iter().filter(|id| self.find(id, entry, by_id).is_none()) {
                let message = format!("{} blocks {id}, which is not here", entry.title);
                say(at, message, "add that entry, or take the reference away");
            }
        }
        odd.truncate(WARNINGS_MAX);
        odd
    }

    /// By entry: the notes of the groups in which it stands; what is too much to repeat goes to their first task.
    fn lent(
        &self,
        groups: &Groups,
        warnings: &mut Vec<Diagnostic>,
        place: &impl Fn(&Entry) -> (usize, usize),
    ) -> Vec<Vec<String>> {
        let mut lent = vec![Vec::new(); self.entries.len()];
        let mut left = LENT_BYTES_MAX;
        for (n, entry) in self.entries.iter().enumerate() {
            let leaves = &groups.leaves[n];
            if entry.notes.is_empty() || leaves.iter().any(|task| groups.tasks[*task] == n) {
                continue;
            }
            let bytes: usize = entry.notes.iter().map(String::len).sum();
            let needed = bytes.saturating_mul(leaves.len());
            let n_tasks = if needed <= left { leaves.len() } else { 1 };
            left = left.saturating_sub(if n_tasks == 1 { 0 } else { needed });
            for task in &leaves[..n_tasks.min(leaves.len())] {
                lent[groups.tasks[*task]].extend(entry.notes.iter().cloned());
            }
            if n_tasks < leaves.len() && warnings.len() < WARNINGS_MAX {
                let (line, column) = place(entry);
                let message =
                    format!("the notes of {} are too long for each of its tasks; the first has them", entry.title);
                let help = Some("shorten them, or put them into a file".into());
                warnings.push(Diagnostic { message, line, column, help });
            }
        }
        lent
    }

    /// By task: what it waits for, sorted, each once.
    fn waits(
        &self,
        by_id: &HashMap<String, usize>,
        groups: &Groups,
        elsewhere: Option<Elsewhere<'_>>,
        place: &impl Fn(&Entry) -> (usize, usize),
    ) -> Result<(Vec<Vec<Dependency>>, Outer), ParseError> {
        let mut edges: Vec<(usize, usize)> = Vec::new();
        let mut outer = Outer::new();
        for (n, entry) in self.entries.iter().enumerate() {
            for id in &entry.needs {
                if let Some(before) = self.find(id, entry, by_id) {
                    edges.push((n, before));
                    continue;
                }
                let named = elsewhere.and_then(|named| named(id)).ok_or_else(|| unknown(id, entry, place))?;
                outer.extend(groups.leaves[n].iter().map(|task| (TaskId(*task as u64 + 1), named)));
                if outer.len() > EDGES_MAX {
                    return Err(ParseError::LimitPassed { limit: "dependencies", value: outer.len(), max: EDGES_MAX });
                }
            }
            for id in &entry.blocks {
                edges.extend(self.find(id, entry, by_id).map(|blocked| (blocked, n)));
            }
        }
        if let Some((n, _)) = edges.iter().find(|(n, before)| n == before) {
            let (line, column) = place(&self.entries[*n]);
            return Err(ParseError::SelfDependency { id: or_none(&self.entries[*n].id), line, column });
        }
        // Within a group, who waits for nobody begins, and whom nobody waits for ends.
        let mut inner: Vec<(bool, bool)> = vec![(true, true); self.entries.len()];
        for (n, before) in &edges {
            let above = self.entries[*n].parent;
            if above.is_some() && above == self.entries[*before].parent {
                inner[*n].0 = false;
                inner[*before].1 = false;
            }
        }
        let mut waits: Vec<BTreeMap<TaskId, Strength>> = vec![BTreeMap::new(); groups.tasks.len()];
        let n_edges =
            edges.iter().map(|(n, before)| groups.leaves[*n].len().saturating_mul(groups.leaves[*before].len()));
        let n_edges = n_edges.fold(0, usize::saturating_add);
        if n_edges > EDGES_MAX {
            return Err(ParseError::LimitPassed { limit: "dependencies", value: n_edges, max: EDGES_MAX });
        }
        for (n, before) in edges {
            let begins = |task: &&usize| n == groups.tasks[**task] || inner[groups.tasks[**task]].0;
            let ends = |task: &&usize| before == groups.tasks[**task] || inner[groups.tasks[**task]].1;
            for task in groups.leaves[n].iter().filter(begins) {
                let ended = groups.leaves[before].iter().filter(ends);
                waits[*task].extend(ended.map(|ended| (TaskId(*ended as u64 + 1), Strength::Hard)));
            }
        }
        for (n, entry) in groups.tasks.iter().enumerate().skip(1) {
            if self.entries[*entry].follows {
                waits[n].entry(TaskId(n as u64)).or_insert(Strength::Soft);
            }
        }
        let sorted = |waits: BTreeMap<TaskId, Strength>| {
            waits.into_iter().map(|(task, strength)| Dependency { task, strength }).collect()
        };
        Ok((waits.into_iter().map(sorted).collect(), outer))
    }

    /// An id as an entry says it: among those beside it first.
    fn find(&self, id: &str, entry: &Entry, by_id: &HashMap<String, usize>) -> Option<usize> {
        let above = entry.parent.and_then(|parent| self.entries[parent].id.as_ref());
        let beside = above.and_then(|above| by_id.get(&format!("{above}.{id}").to_lowercase()));
        beside.or_else(|| by_id.get(&id.to_lowercase())).copied()
    }
}

/// Which entries are tasks, and which tasks an entry stands for.
struct Groups {
    /// The entries that are tasks, in order.
    tasks: Vec<usize>,
    /// By entry: the tasks that it is, or that stand under it.
    leaves: Vec<Vec<usize>>,
}

impl Groups {
    fn of(entries: &[Entry]) -> Self {
        let mut is_group = vec![false; entries.len()];
        for entry in entries {
            if let Some(parent) = entry.parent {
                is_group[parent] = true;
            }
        }
        let tasks = (0..entries.len()).filter(|n| !is_group[*n]).collect::<Vec<_>>();
        let mut leaves = vec![Vec::new(); entries.len()];
        for (task, entry) in tasks.iter().enumerate() {
            let mut above = Some(*entry);
            for _ in 0..=DEPTH_MAX {
                let Some(n) = above else { break };
                leaves[n].push(task);
                above = entries[n].parent;
            }
        }
        Self { tasks, leaves }
    }
}

fn task(entry: &Entry, id: TaskId, above: Option<&Entry>, lent: &[String]) -> TaskPlan {
    let inline = Inline::scan(&entry.title, &Definitions::default());
    let mut task = TaskPlan::new(
        id,
        vocabulary::kind(&entry.title, above.map(|above| above.title.as_str())),
        entry.title.replace('`', ""),
    );
    task.command = commands::command_in(&entry.title, &inline, 0, entry.title.len(), None).command;
    if task.command.is_some() {
        task.kind = NodeKind::ToolCall;
    }
    task.attachments = inline.attachments(&entry.title, 0, entry.title.len());
    task.notes = entry.notes.iter().chain(lent).cloned().collect();
    for note in &task.notes {
        let inline = Inline::scan(note, &Definitions::default());
        built::attach(&mut task.attachments, inline.attachments(note, 0, note.len()));
    }
    task.label.clone_from(&entry.id);
    task.priority = entry.priority.clone().or_else(|| above.and_then(|above| above.priority.clone()));
    task.assignee.clone_from(&entry.assignee);
    task.group = above.map(|above| above.title.clone());
    task.mark = entry.mark;
    task.spans.extend(entry.span);
    task
}

fn unknown(id: &str, entry: &Entry, place: &impl Fn(&Entry) -> (usize, usize)) -> ParseError {
    let (line, column) = place(entry);
    ParseError::UnknownId { id: id.to_owned(), line, column }
}

fn or_none(text: &Option<String>) -> String {
    text.clone().unwrap_or_default()
}

/// A number is that of a class: 0 is the most urgent.
fn priority(entry: &Value) -> Option<String> {
    let priority = entry.text("priority")?;
    Some(if priority.parse::<u8>().is_ok() { format!("P{priority}") } else { priority })
}

fn notes(entry: &Value, named: &str) -> Vec<String> {
    let plain = ["description", "details", "design", "notes"];
    let plain = plain.iter().filter(|name| **name != named).filter_map(|name| entry.text(name));
    let tests = ["testStrategy", "acceptance_criteria", "acceptanceCriteria"];
    let tests = tests.iter().filter_map(|name| entry.text(name)).map(|note| format!("Test: {note}"));
    plain.chain(tests).filter(|note| !note.trim().is_empty()).collect()
}

/// What an entry waits for, and what it stands under: ids, or objects that name one and say how.
fn needs(list: Option<&Value>, entry: &mut Entry) {
    let Some(list) = list else { return };
    let names = list.word().unwrap_or("").split(',').map(str::trim).filter(|name| !name.is_empty());
    entry.needs.extend(names.map(str::to_owned));
    for one in list.list().unwrap_or_default() {
        if let Some(word) = one.word() {
            // beads writes `blocks:bd-1` on its command line.
            match word.split_once(':').filter(|(how, _)| is_relation(how)) {
                Some((how, id)) => relate(how, id, entry),
                None => entry.needs.push(word.to_owned()),
            }
            continue;
        }
        let Some(id) = ["depends_on_id", "id"].iter().find_map(|name| one.text(name)) else { continue };
        let how = ["type", "dependency_type"].iter().find_map(|name| one.text(name));
        relate(how.as_deref().unwrap_or("blocks"), &id, entry);
    }
}

fn is_relation(word: &str) -> bool {
    matches!(
        word,
        "blocks" | "waits-for" | "conditional-blocks" | "parent-child" | "parent" | "related" | "discovered-from"
    )
}

fn relate(how: &str, id: &str, entry: &mut Entry) {
    match how {
        "parent-child" | "parent" => entry.parent_id = Some(id.to_owned()),
        "blocks" | "waits-for" | "conditional-blocks" => entry.needs.push(id.to_owned()),
        _only_related => {}
    }
}

/// What of a text is in no task.
fn around(source: &str, tasks: &[TaskPlan]) -> Vec<Span> {
    let mut spans = tasks.iter().flat_map(|task| task.spans.iter().copied()).collect::<Vec<_>>();
    spans.sort_unstable();
    let mut left = Vec::new();
    let mut at = 0;
    for span in spans.into_iter().chain([Span { start: source.len(), end: source.len() }]) {
        if span.start > at {
            left.push(Span { start: at, end: span.start });
        }
        at = at.max(span.end);
    }
    left
}
