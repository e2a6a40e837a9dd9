//! Reads the files of two task trackers: `tasks.json` of Task Master and `issues.jsonl` of beads.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Format::{self, Beads, TaskMaster};
use super::tree::{Node, Reference, Tree, When};
use crate::lines::Lines;
use crate::plan::{Mark, NodeKind, Span, TaskId, TaskPlan};
use crate::validity::InvalidPlan;

/// Reads `tasks.json`: the tasks of one tag, each with its subtasks.
pub(super) fn task_master(text: &str, tag: Option<&str>) -> Result<Tree, InvalidPlan> {
    let mut source = Source { text, format: TaskMaster, tree: Tree::default(), places: HashMap::new() };
    let mut links = Vec::new();
    for task in source.tasks_of(tag)? {
        let task = source.record(task.get())?;
        let name = source.id(&task)?;
        let group = source.add(&task, name.clone(), None)?;
        links.push((group, source.list(&task, "dependencies")?));
        for part in source.list(&task, "subtasks")? {
            let part = source.record(part.get())?;
            let id = source.id(&part)?;
            let is_full = id.strip_prefix(&name).is_some_and(|rest| rest.starts_with('.'));
            let node = source.add(&part, if is_full { id } else { format!("{name}.{id}") }, Some(group))?;
            links.push((node, source.list(&part, "dependencies")?));
            source.tree.nodes[group].is_group = true;
        }
    }
    for (node, ids) in links {
        let group = source.tree.nodes[node].parent.map(|group| source.name(group).to_owned());
        for id in ids {
            let (at, name) = (source.at(id.get()), words(id));
            let sibling = group.as_ref().map(|group| format!("{group}.{name}"));
            let name = sibling.filter(|sibling| source.places.contains_key(sibling)).unwrap_or(name);
            source.link(node, "blocks", name, at);
        }
    }
    Ok(source.tree)
}

/// Reads `issues.jsonl`: one issue per line, in any order.
pub(super) fn beads(text: &str) -> Result<Tree, InvalidPlan> {
    let mut source = Source { text, format: Beads, tree: Tree::default(), places: HashMap::new() };
    let (mut links, mut left_out, mut records) = (Vec::new(), HashSet::new(), Vec::new());
    for line in source.body().lines().map(str::trim).filter(|line| !line.is_empty()) {
        let issue = source.record(line)?;
        let (kind, at) = (issue.text("issue_type").unwrap_or_default(), source.at(line));
        if issue.text("_type").is_some_and(|kind| kind != "issue") {
            records.push(at);
            continue;
        }
        let id = source.id(&issue)?;
        if issue.text("status").as_deref() == Some("tombstone") {
            left_out.insert(id);
        } else if RECORDS.contains(&kind.as_str()) {
            records.push(at);
            left_out.insert(id);
        } else if let Some(first) = source.places.get(&id) {
            let lines = Lines::new(text);
            let first = lines.at(source.tree.nodes[*first].at);
            return Err(InvalidPlan::DuplicateId(id, lines.at(at), first));
        } else {
            links.push((source.add(&issue, id, None)?, source.list(&issue, "dependencies")?));
        }
    }
    if let Some(at) = records.first() {
        let message = format!("records that are not work are left out: {}, from this one on", records.len());
        source.tree.warn(*at, message, "change the issue_type of a record that is work");
    }
    for (node, list) in links {
        for link in list {
            if link.get().starts_with('"') {
                source.link(node, "blocks", words(link), source.at(link.get()));
                continue;
            }
            let link = source.record(link.get())?;
            let [name, kind] = ["depends_on_id", "type"].map(|field| link.text(field).unwrap_or_default());
            let at = link.fields.get("depends_on_id").map_or(link.json, |id| id.get());
            if BINDING.contains(&kind.as_str()) && !left_out.contains(&name) {
                source.link(node, &kind, name, source.at(at));
            }
        }
    }
    source.group_issues()?;
    Ok(source.tree)
}

/// Types of beads records that are not work.
const RECORDS: [&str; 8] = ["event", "message", "agent", "role", "gate", "molecule", "convoy", "wisp"];

/// Types of dependencies that block an issue.
const BINDING: [&str; 4] = ["blocks", "waits-for", "parent-child", "conditional-blocks"];

/// Fields that become notes.
const NOTES: &str =
    "description details testStrategy design acceptance_criteria notes labels defer_until due_at external_ref";

/// A JSON object with its fields as raw JSON.
struct Record<'a> {
    json: &'a str,
    fields: HashMap<String, &'a RawValue>,
}

impl Record<'_> {
    /// The content of a field, if there is any.
    fn text(&self, field: &str) -> Option<String> {
        self.fields.get(field).map(|value| words(value)).filter(|text| !text.is_empty())
    }
}

/// The content of a string, the words of a list, an empty text for null, else the JSON.
fn words(value: &RawValue) -> String {
    let json = value.get();
    let text = serde_json::from_str::<String>(json).map(|text| text.trim().to_owned());
    let text = text.or_else(|_| serde_json::from_str::<Vec<String>>(json).map(|list| list.join(", ")));
    text.unwrap_or_else(|_| if json == "null" { String::new() } else { json.to_owned() })
}

/// A file, and the tree made from it.
struct Source<'a> {
    text: &'a str,
    format: Format,
    tree: Tree,
    /// The first node of each name.
    places: HashMap<String, usize>,
}

impl<'a> Source<'a> {
    /// The text after its byte order mark.
    fn body(&self) -> &'a str {
        self.text.strip_prefix('\u{feff}').unwrap_or(self.text)
    }

    /// The offset of a part of the text.
    fn at(&self, part: &str) -> usize {
        Span::of(self.text, part).start
    }

    fn name(&self, node: usize) -> &str {
        self.tree.nodes[node].name.as_deref().unwrap_or_default()
    }

    fn bad(&self, at: usize, problem: impl Into<String>) -> InvalidPlan {
        let format = if self.format == Beads { "beads" } else { "Task Master" };
        InvalidPlan::BadJson(format, problem.into(), Lines::new(self.text).at(at))
    }

    /// Reads a part of the text.
    fn read<T: Deserialize<'a>>(&self, json: &'a str) -> Result<T, InvalidPlan> {
        serde_json::from_str(json).map_err(|error| {
            let lines = json.split_inclusive('\n').take(error.line().saturating_sub(1));
            let at = lines.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
            let problem = error.to_string();
            let problem = problem.rsplit_once(" at line ").map_or(problem.as_str(), |(problem, _)| problem);
            self.bad(self.at(json) + json.floor_char_boundary(at), problem)
        })
    }

    fn record(&self, json: &'a str) -> Result<Record<'a>, InvalidPlan> {
        Ok(Record { json, fields: self.read(json)? })
    }

    fn list(&self, record: &Record<'a>, field: &str) -> Result<Vec<&'a RawValue>, InvalidPlan> {
        let list = record.fields.get(field).map(|list| self.read::<Option<Vec<_>>>(list.get())).transpose()?;
        Ok(list.flatten().unwrap_or_default())
    }

    fn id(&self, record: &Record<'a>) -> Result<String, InvalidPlan> {
        record.text("id").ok_or_else(|| self.bad(self.at(record.json), "an id is missing here"))
    }

    /// Adds the node of a task or issue.
    fn add(&mut self, record: &Record<'a>, name: String, parent: Option<usize>) -> Result<usize, InvalidPlan> {
        let at = self.at(record.json);
        let title = record.text("title").ok_or_else(|| self.bad(at, format!("{name} has no title")))?;
        let is_code = record.text("issue_type").is_some_and(|kind| ["bug", "feature"].contains(&kind.as_str()));
        let kind = if is_code { NodeKind::CodeImplementation } else { NodeKind::Processing };
        let mut task = TaskPlan::new(TaskId(0), kind, title);
        task.mark = self.mark(record, &name);
        let priority = record.text("priority");
        task.priority = priority.map(|text| if text.parse::<u64>().is_ok() { format!("P{text}") } else { text });
        task.assignee = record.text("assignee").map(|name| name.trim_start_matches('@').to_owned());
        task.notes = NOTES.split(' ').filter_map(|field| Some(format!("{field}: {}", record.text(field)?))).collect();
        let minutes = record.text("estimated_minutes").and_then(|text| text.parse::<u64>().ok()).filter(|n| *n > 0);
        task.estimate_ms = minutes.map(|minutes| minutes.saturating_mul(60_000));
        task.spans = vec![Span::of(self.text, record.json)];
        let mut node = Node { task, at, parent, ..Node::default() };
        let status = record.fields.get("status").filter(|status| status.get().starts_with('"'));
        node.state = status.map(|status| Span::of(self.text, status.get()));
        self.places.entry(name.clone()).or_insert(self.tree.nodes.len());
        node.name = Some(name);
        self.tree.nodes.push(node);
        Ok(self.tree.nodes.len() - 1)
    }

    fn mark(&mut self, record: &Record<'a>, name: &str) -> Mark {
        let status = record.text("status").unwrap_or_default();
        let mark = match (self.format, status.to_ascii_lowercase().replace('_', "-").as_str()) {
            (_, "") | (TaskMaster, "pending") | (Beads, "open") => Mark::Open,
            (TaskMaster, "in-progress" | "review") | (Beads, "in-progress" | "hooked") => Mark::InProgress,
            (TaskMaster, "done" | "completed") | (Beads, "closed") => Mark::Done,
            (_, "deferred" | "blocked") | (Beads, "pinned") => Mark::Deferred,
            (TaskMaster, "cancelled") => Mark::Cancelled,
            (_, _) => {
                let message = format!("the status {status:?} of {name} is unknown; it waits until you resume it");
                self.tree.warn(self.at(record.json), message, "correct the status");
                Mark::Deferred
            }
        };
        if mark.is_open() && record.text("defer_until").is_some() { Mark::Deferred } else { mark }
    }

    /// The tasks of the requested tag, else of `master`, else of the only tag.
    fn tasks_of(&mut self, asked: Option<&str>) -> Result<Vec<&'a RawValue>, InvalidPlan> {
        let root = self.record(self.body())?;
        let mut tags = BTreeMap::new();
        for (name, tag) in root.fields.iter().filter(|(_, tag)| tag.get().starts_with('{')) {
            let tasks = self.list(&self.record(tag.get())?, "tasks")?;
            tags.extend((!tasks.is_empty() || asked == Some(name)).then_some((name.as_str(), tasks)));
        }
        if root.fields.get("tasks").is_some_and(|tasks| tasks.get().starts_with('[')) {
            // The older form, which Task Master reads as tag `master`.
            let name = if tags.contains_key("master") { "tasks" } else { "master" };
            tags.insert(name, self.list(&root, "tasks")?);
        }
        let names = tags.keys().copied().collect::<Vec<_>>().join(", ");
        let only = tags.keys().next().filter(|_| tags.len() == 1).copied();
        let wanted = asked.or(only).unwrap_or("master");
        let at = self.at(root.json);
        let Some(tasks) = tags.remove(wanted) else {
            let why = if names.is_empty() {
                "no tasks".into()
            } else {
                format!("no tasks with the tag {wanted}, only with {names}: choose one with --tag")
            };
            return Err(self.bad(at, format!("it has {why}")));
        };
        if asked.is_none() && !tags.is_empty() {
            let message = format!("of the tags {names}, only {wanted} is read");
            self.tree.warn(at, message, "choose another tag with --tag");
        }
        Ok(tasks)
    }

    /// Applies a dependency of an issue.
    fn link(&mut self, node: usize, kind: &str, name: String, at: usize) {
        let Some(other) = self.places.get(&name).copied() else {
            let message = format!("{} depends on {name}, which the file does not have", self.name(node));
            let help = "this dependency is ignored; correct or remove it, or export both";
            return self.tree.warn(at, message, help);
        };
        let issue = &mut self.tree.nodes[node];
        if kind == "parent-child" {
            issue.parent.get_or_insert(other);
        } else if kind != "conditional-blocks" {
            issue.waits_for.push(Reference { name, at });
        } else if issue.when == When::Always {
            issue.when = When::Failed(Reference { name, at });
        } else {
            let message = format!("{} already waits for another issue to fail; {name} is ignored", self.name(node));
            self.tree.warn(at, message, "keep one dependency of the type conditional-blocks");
        }
    }

    /// Places parts after their groups. An issue whose parts have all ended becomes a step, so that it gets closed.
    fn group_issues(&mut self) -> Result<(), InvalidPlan> {
        let mut nodes = std::mem::take(&mut self.tree.nodes).into_iter().map(Some).collect::<Vec<_>>();
        let mut parts = vec![Vec::new(); nodes.len()];
        let mut left = Vec::new();
        for (place, node) in nodes.iter().enumerate().rev() {
            let parent = node.as_ref().and_then(|node| node.parent);
            parent.map_or(&mut left, |parent| &mut parts[parent]).push(place);
        }
        let mut places = vec![0; nodes.len()];
        while let Some(place) = left.pop() {
            left.append(&mut parts[place]);
            places[place] = self.tree.nodes.len();
            if let Some(mut node) = nodes[place].take() {
                node.parent = node.parent.map(|parent| places[parent]);
                self.tree.nodes.push(node);
            }
        }
        if let Some(node) = nodes.iter().flatten().next() {
            return Err(self.bad(
                node.at,
                "the parents of this issue go round in a circle; remove a dependency of the type parent-child",
            ));
        }
        let nodes = &mut self.tree.nodes;
        let mut parts_ended = vec![true; nodes.len()];
        for node in (0..nodes.len()).rev() {
            nodes[node].is_group &= !parts_ended[node];
            if let Some(parent) = nodes[node].parent {
                nodes[parent].is_group = true;
                parts_ended[parent] &= nodes[node].task.mark.is_end() && parts_ended[node];
            }
        }
        for node in 0..nodes.len() {
            let up = nodes[node].parent;
            nodes[node].parent = up.and_then(|up| if nodes[up].is_group { Some(up) } else { nodes[up].parent });
        }
        Ok(())
    }
}
