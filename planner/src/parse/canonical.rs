//! The exported form of a plan: a Markdown list of boxes with every field of each task below it, named as in JSON.
//!
//! A comment in its first line marks it. A text with that comment in any other form is read as plain Markdown.

use serde_json::{Map, Value};

use super::tree::{Format, MarkAt, ParsedPlan, Part, ReadOptions};
use crate::plan::{Dependency, Mark, Span, Strength, TaskId, TaskPlan};
use crate::validity::{InvalidPlan, validate};

/// The first line of the form.
const SIGN: &str = "<!-- crewlog plan 1 -->";
/// The signs in the boxes.
const MARKS: [(Mark, &str); 5] =
    [(Mark::Open, " "), (Mark::InProgress, "~"), (Mark::Done, "x"), (Mark::Cancelled, "-"), (Mark::Deferred, ">")];
/// The words for dependencies.
const EDGES: [(Strength, &str); 2] = [(Strength::Hard, "depends on"), (Strength::Soft, "follows")];
/// Fields whose values are separate items below the task.
const LISTS: [&str; 3] = ["attachments", "files", "notes"];
/// Fields that the box shows, or that belong to one run of the plan.
const LEFT_OUT: [&str; 7] = ["id", "description", "mark", "spans", "depends_on", "tool", "sub_plan"];

/// Renders a plan so that reading it gives the same title, context and tasks.
///
/// Spans and warnings are not part of the form.
pub fn render(plan: &ParsedPlan) -> String {
    let mut out = format!("{SIGN}\n");
    if let Some(title) = &plan.title {
        out.push_str(&format!("\n# {}\n", quoted(title)));
    }
    out.push_str(if plan.context.is_empty() { "" } else { "\n" });
    for line in &plan.context {
        out.push_str(&format!("> {}\n", quoted(line)));
    }
    out.push('\n');
    for task in &plan.tasks {
        let sign = MARKS.iter().find(|(mark, _)| *mark == task.mark).map_or(" ", |(_, sign)| sign);
        out.push_str(&format!("- [{sign}] {}. {}\n", task.id, quoted(&task.description)));
        for one in &task.depends_on {
            let (_, name) = EDGES[usize::from(one.strength != Strength::Hard)];
            out.push_str(&format!("  - {name}: {}\n", one.task));
        }
        for (field, value) in fields(task) {
            let values = match value {
                Value::Array(values) if LISTS.contains(&field.as_str()) => values,
                value => vec![value],
            };
            for value in values {
                let text = match value {
                    Value::String(text) if serde_json::from_str::<Value>(&text).is_err() => quoted(&text),
                    value => value.to_string(),
                };
                out.push_str(&format!("  - {}: {text}\n", field.replace('_', " ")));
            }
        }
    }
    out
}

/// The fields of a task that get their own lines.
fn fields(task: &TaskPlan) -> Map<String, Value> {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(task) else { return Map::new() };
    fields.retain(|field, _| !LEFT_OUT.contains(&field.as_str()));
    fields
}

/// Plain text if that can be read back, else a JSON string.
fn quoted(text: &str) -> String {
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{ad}')
    };
    let is_plain = !text.is_empty() && text.trim() == text && !text.starts_with('"') && !text.contains(is_hidden);
    if is_plain { text.to_owned() } else { Value::from(text).to_string() }
}

fn unquoted(text: &str) -> Option<String> {
    if text.starts_with('"') { serde_json::from_str(text).ok() } else { Some(text.to_owned()) }
}

/// True for a text with the comment of the form.
pub(super) fn is_marked(text: &str) -> bool {
    text.strip_prefix('\u{feff}').unwrap_or(text).starts_with(SIGN)
}

/// Reads the form; `None` when the text is not in it.
pub(super) fn read(text: &str, options: ReadOptions<'_>) -> Option<Result<ParsedPlan, InvalidPlan>> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !is_marked(text) || options.format != Format::Markdown {
        return None;
    }
    let mut reader = Reader::default();
    let mut at = text.len() - body.len();
    for line in body.split_inclusive('\n') {
        let body = line.trim_end_matches(['\n', '\r']);
        reader.line(body, Span { start: at, end: at + body.len() })?;
        at += line.len();
    }
    reader.end_task()?;
    let mut plan = reader.plan;
    for task in plan.tasks.iter_mut().filter(|_| options.parallel) {
        task.depends_on.retain(|one| one.strength == Strength::Hard);
    }
    Some(validate(&plan.tasks).map(|()| plan))
}

#[derive(Default)]
struct Reader {
    plan: ParsedPlan,
    /// The fields of the last task.
    fields: Map<String, Value>,
}

impl Reader {
    fn line(&mut self, line: &str, span: Span) -> Option<()> {
        if let Some(rest) = line.strip_prefix("  - ") {
            self.plan.tasks.last_mut()?.spans.last_mut()?.end = span.end;
            let (name, text) = rest.split_once(": ")?;
            return self.field(name, text);
        }
        if let Some(rest) = line.strip_prefix("- [") {
            self.end_task()?;
            return self.task(rest, span);
        }
        let is_blank = line.trim().is_empty();
        self.plan.parts.extend((!is_blank).then_some((span, Part::Context)));
        if let Some(title) = line.strip_prefix("# ") {
            self.plan.title = Some(unquoted(title)?);
        } else if let Some(context) = line.strip_prefix("> ") {
            self.plan.context.push(unquoted(context)?);
        } else if !(is_blank || line == SIGN) {
            return None;
        }
        Some(())
    }

    fn task(&mut self, rest: &str, span: Span) -> Option<()> {
        let (sign, rest) = rest.split_once("] ")?;
        let (id, rest) = rest.split_once(". ")?;
        let (mark, _) = MARKS.into_iter().find(|(_, known)| *known == sign)?;
        let id = TaskId(id.parse().ok()?);
        let place = Span { start: span.start + 3, end: span.start + 3 + sign.len() };
        self.plan.marks.push(MarkAt { span: place, mark, of: Some(id), parent: None, optional: false });
        let task = TaskPlan { id, mark, description: unquoted(rest)?, spans: vec![span], ..TaskPlan::default() };
        self.plan.tasks.push(task);
        Some(())
    }

    fn field(&mut self, name: &str, text: &str) -> Option<()> {
        if let Some((strength, _)) = EDGES.into_iter().find(|(_, known)| *known == name) {
            let task = TaskId(text.parse().ok()?);
            self.plan.tasks.last_mut()?.depends_on.push(Dependency { task, strength });
            return Some(());
        }
        let field = name.replace(' ', "_");
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        if LISTS.contains(&field.as_str()) {
            self.fields.entry(field).or_insert_with(|| Value::Array(Vec::new())).as_array_mut()?.push(value);
            return Some(());
        }
        (!LEFT_OUT.contains(&field.as_str()) && self.fields.insert(field, value).is_none()).then_some(())
    }

    /// Gives the last task its fields, unless one of them is unknown.
    fn end_task(&mut self) -> Option<()> {
        let Some(last) = self.plan.tasks.last_mut() else { return Some(()) };
        let given = std::mem::take(&mut self.fields);
        let Value::Object(mut all) = serde_json::to_value(&*last).ok()? else { return None };
        all.extend(given.clone());
        *last = serde_json::from_value(Value::Object(all)).ok()?;
        let known = fields(last);
        given.keys().all(|field| known.contains_key(field)).then_some(())
    }
}
