//! What a careful reader would ask about a text that is a plan: what was left out, what names a task without waiting for
//! it, what is left open. It changes nothing of the plan, and what it finds may be meant so.

use std::collections::HashSet;

use super::error::Diagnostic;
use super::lines::{self, Block, BlockKind};
use super::parsed::{ParsedPlan, WARNINGS_MAX};
use super::phrases::{after_word, words};
use super::sections::{self, Use};
use super::text::{Lines, is_blank};
use super::{canonical, references};
use crate::plan::{NodeKind, Span, TaskPlan};

/// The warnings of a plan and what else is odd about the text it was read from, in the order of the text; at most
/// [`WARNINGS_MAX`].
#[must_use]
pub fn lint(text: &str, plan: &ParsedPlan) -> Vec<Diagnostic> {
    let mut linter = Linter { text, lines: Lines::new(text), found: plan.warnings.clone() };
    // What other programs write is read field by field, and has no prose.
    let written = canonical::is_form(text) || text.trim_start_matches(is_blank).starts_with(['{', '[']);
    if !written {
        linter.left_out(plan);
        linter.tasks(&plan.tasks);
    }
    let mut found = linter.found;
    found.sort_by_key(|one| (one.line, one.column));
    found.truncate(WARNINGS_MAX);
    found
}

struct Linter<'a> {
    text: &'a str,
    lines: Lines<'a>,
    found: Vec<Diagnostic>,
}

impl Linter<'_> {
    fn say(&mut self, at: usize, message: impl Into<String>, help: impl Into<String>) {
        if self.found.len() < 2 * WARNINGS_MAX {
            let (line, column) = self.lines.place(at);
            self.found.push(Diagnostic { message: message.into(), line, column, help: Some(help.into()) });
        }
    }

    /// Fences without an end, what is out of scope, sentences that are no tasks.
    fn left_out(&mut self, plan: &ParsedPlan) {
        let mut blocks = lines::blocks(self.text);
        sections::promote(self.text, &mut blocks);
        let uses = sections::uses(self.text, &blocks, false);
        let mut never = Vec::new();
        for (block, uses) in blocks.iter().zip(&uses) {
            self.half_read(block);
            let heading = matches!(block.kind, BlockKind::Heading(_) | BlockKind::Ignored);
            if *uses == Use::Never && !heading {
                never.push(block.span);
                self.say(
                    block.span.start,
                    "this is out of scope and is not planned",
                    "move it under another heading if it is to be done",
                );
            }
        }
        let plain = |span: &Span| {
            let block = blocks.partition_point(|block| block.span.end <= span.start);
            let kind = blocks.get(block).map(|block| &block.kind);
            let prose = matches!(kind, Some(BlockKind::Paragraph | BlockKind::Item { .. }));
            prose && !never.iter().any(|skipped| skipped.start <= span.start && span.start < skipped.end)
        };
        let taken = Taken::of(plan);
        for span in plan.ignored.iter().filter(|span| plain(span)) {
            let part = self.text.get(span.start..span.end).unwrap_or("").trim_end();
            let spare = part.ends_with([':', '\u{ff1a}']) || part.contains("~~") || taken.has(part);
            if words(part).nth(2).is_some() && !spare {
                self.say(
                    span.start,
                    "this is read as context and is no task",
                    "write what is to be done as an instruction or an item: \"Add ...\", \"- Add ...\"",
                );
            }
        }
    }

    /// Boxes that are none, and words to a forge.
    fn half_read(&mut self, block: &Block) {
        let Some(piece) = block.pieces.first() else { return };
        let line = &self.text[piece.start..piece.end];
        let boxed = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
        let sign = boxed.map_or("", |(sign, _)| sign);
        if matches!(block.kind, BlockKind::Item { .. }) && sign.chars().count() == 1 && !matches!(sign, "P" | "p") {
            self.say(
                piece.start,
                format!("the box [{sign}] says nothing that is known, and stays part of the text"),
                "write [ ], [x], [~] or [-]",
            );
        }
        if block.kind == BlockKind::Ignored && line.starts_with('/') && !line.starts_with("//") {
            self.say(
                piece.start,
                "this is said to a forge and is not read",
                "write behind a task what is meant for it: (assignee: ann), (priority: high), (deadline: 2h)",
            );
        }
    }

    /// A date by which something is due, for nothing waits for a date.
    fn dates(&mut self, task: &TaskPlan) {
        let texts = std::iter::once(&task.description).chain(&task.notes);
        let dated = |text: &String| {
            let marks = ["due:", "due ", "deadline:", "DEADLINE:", "SCHEDULED:", "\u{1f4c5}"];
            marks.iter().any(|mark| {
                let after = text.split_once(mark).map(|(_, after)| after.trim_start_matches([' ', '<']));
                after.is_some_and(|after| after.bytes().take(5).filter(u8::is_ascii_digit).count() == 4)
            })
        };
        if texts.clone().any(dated) {
            let at = task.spans.first().map_or(0, |span| span.start);
            self.say(
                at,
                format!("the date of task {} is kept as words, and nothing goes by it", task.name()),
                "write (deadline: 2h) for the time that it may take",
            );
        }
    }

    fn tasks(&mut self, tasks: &[TaskPlan]) {
        let labels: HashSet<String> =
            tasks.iter().filter_map(|task| task.label.as_deref()).map(str::to_lowercase).collect();
        let heads: HashSet<String> = labels.iter().filter_map(|label| head(label)).map(str::to_owned).collect();
        let mut asked = None;
        for task in tasks {
            let at = task.spans.first().map_or(0, |span| span.start);
            self.names(task, tasks, &labels, &heads);
            self.dates(task);
            if task.kind != NodeKind::Clarification && leaves_open(task) {
                self.say(
                    at,
                    format!("task {} leaves open which of two is meant", task.name()),
                    "write it as a question (\"Which ... ?\"), so that it is asked before the task begins",
                );
            }
            let untested = task.depends_on.is_empty();
            if let Some(condition) = task.condition.as_ref().filter(|one| untested && asked != Some(one.text.as_str()))
            {
                asked = Some(condition.text.as_str());
                self.say(
                    at,
                    format!("nothing before task {} finds out whether \"{}\"", task.name(), condition.text),
                    "put a step before it that tests it: \"Run the tests. If they pass, ...\"",
                );
            }
        }
    }

    /// Words in a task that look like the id of another, for which it does not wait.
    fn names(&mut self, task: &TaskPlan, tasks: &[TaskPlan], labels: &HashSet<String>, heads: &HashSet<String>) {
        if heads.is_empty() {
            return;
        }
        for word in task.description.split(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_'))) {
            let lower = word.to_lowercase();
            let like = references::is_id(word, false) && head(&lower).is_some_and(|head| heads.contains(head));
            if !like || task.label.as_deref() == Some(word) {
                continue;
            }
            let at = self.find(task, word);
            let other =
                tasks.iter().find(|other| other.label.as_deref().is_some_and(|label| label.eq_ignore_ascii_case(word)));
            match other {
                Some(other) if !task.depends_on.iter().any(|one| one.task == other.id) => self.say(
                    at,
                    format!("task {} speaks of {word} and does not wait for it", task.name()),
                    format!("write (depends on {word}) if it has to"),
                ),
                None if !labels.contains(&lower) => self.say(
                    at,
                    format!("{word} looks like the id of a task, and no task has it"),
                    "give the task that is meant this id, or name an existing one",
                ),
                Some(_) | None => {}
            }
        }
    }

    /// Where a word of a task stands in the text.
    fn find(&self, task: &TaskPlan, word: &str) -> usize {
        let mut places = task.spans.iter().filter_map(|span| {
            let part = self.text.get(span.start..span.end)?;
            part.rfind(word).map(|at| span.start + at)
        });
        places.next().or(task.spans.first().map(|span| span.start)).unwrap_or(0)
    }
}

/// What stands in no task and means something all the same.
struct Taken<'a> {
    groups: HashSet<&'a str>,
    labels: HashSet<&'a str>,
}

impl<'a> Taken<'a> {
    fn of(plan: &'a ParsedPlan) -> Self {
        let named = |of: fn(&TaskPlan) -> Option<&str>| plan.tasks.iter().filter_map(of).collect();
        Self { groups: named(|task| task.group.as_deref()), labels: named(|task| task.label.as_deref()) }
    }

    /// Whether a line names a group, or is about tasks that it calls by their ids: "T1 → T2", "T2 needs T1".
    fn has(&self, part: &str) -> bool {
        let bare = part.trim_end_matches(['*', '_', '.', ' ']);
        let mut called =
            bare.split(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_'))).filter(|word| !word.is_empty());
        let relates = called.next().is_some_and(|word| self.labels.contains(word))
            && called.any(|word| self.labels.contains(word));
        // Before the name stand its sign, its box and the like.
        let rests =
            std::iter::once(bare).chain(bare.match_indices([' ', '*', '_']).map(|(at, sign)| &bare[at + sign.len()..]));
        relates || rests.take(8).any(|rest| self.groups.contains(rest))
    }
}

/// What stands before the digits of an id.
fn head(label: &str) -> Option<&str> {
    let head = label.trim_end_matches(|c: char| c.is_ascii_digit());
    (!head.is_empty() && head.len() < label.len()).then_some(head)
}

/// "Use Redis or Memcached": a choice that nobody has made.
fn leaves_open(task: &TaskPlan) -> bool {
    let chooses = ["use", "using", "choose", "pick", "select", "either", "decide"];
    std::iter::once(&task.description).chain(&task.notes).filter(|text| text.contains(" or ")).any(|text| {
        let before = text.split(" or ").next().unwrap_or("");
        let first = ["use", "choose", "pick", "select"].iter().any(|word| after_word(text, word).is_some());
        first || words(before).any(|word| word == "either" || (chooses.contains(&word.as_str()) && text.len() < 200))
    })
}
