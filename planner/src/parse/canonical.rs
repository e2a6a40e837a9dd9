//! The exported form of a plan: a Markdown list of boxes with every field of each task below it.
//!
//! A comment in its first line marks it. A text with that comment in any other form is read as plain Markdown.

use super::graph::validate;
use super::tree::ParseError;
use super::tree::{MarkAt, ParsedPlan, Part, ReadOptions};
use crate::plan::{
    Attachment, AttachmentKind, Condition, DefaultAnswer, Dependency, FailurePolicy, Mark, NodeKind, Span, Strength,
    TaskId, TaskPlan,
};

/// The first line of the form.
const SIGN: &str = "<!-- crewlog plan 1 -->";

/// Renders a plan such that reading it gives the same title, context and tasks.
///
/// Spans and warnings are not part of the form.
#[must_use]
pub fn render(plan: &ParsedPlan) -> String {
    let mut out = String::from(SIGN);
    out.push('\n');
    if let Some(title) = &plan.title {
        out.push_str(&format!("\n# {}\n", value(title)));
    }
    if !plan.context.is_empty() {
        out.push('\n');
    }
    for line in &plan.context {
        out.push_str(&format!("> {}\n", value(line)));
    }
    out.push('\n');
    for task in &plan.tasks {
        item(&mut out, task);
    }
    out
}

fn item(out: &mut String, task: &TaskPlan) {
    let mark = match task.mark {
        Mark::Open => ' ',
        Mark::InProgress => '~',
        Mark::Done => 'x',
        Mark::Cancelled => '-',
        Mark::Deferred => '>',
    };
    out.push_str(&format!("- [{mark}] {}. {}\n", task.id, value(&task.description)));
    let mut field = |name: &str, text: &str| out.push_str(&format!("  - {name}: {}\n", value(text)));
    field("kind", task.kind.as_str());
    if let Some(label) = &task.label {
        field("id", label);
    }
    for one in &task.depends_on {
        let name = match one.strength {
            Strength::Hard => "depends on",
            Strength::Soft => "follows",
        };
        field(name, &one.task.to_string());
    }
    if let Some(command) = &task.command {
        field("command", command);
    }
    if let Some(condition) = &task.condition {
        field(if condition.negated { "unless" } else { "if" }, &condition.text);
        if let Some(task) = condition.outcome_of {
            field("decided by", &task.to_string());
        }
    }
    let texts = [("group", &task.group), ("priority", &task.priority), ("assignee", &task.assignee)];
    for (name, text) in texts {
        if let Some(text) = text {
            field(name, text);
        }
    }
    if let Some(retry) = task.retry {
        field("retry", &retry.to_string());
    }
    if let Some(timeout) = task.timeout_ms {
        field("timeout", &format!("{timeout}ms"));
    }
    if let Some(deadline) = task.deadline_ms {
        field("deadline", &format!("{deadline}ms"));
    }
    if let Some(estimate) = task.estimate_ms {
        field("estimate", &format!("{estimate}ms"));
    }
    if let Some(policy) = task.on_failure {
        field("on failure", policy.as_str());
    }
    if let Some(command) = &task.compensate {
        field("compensate", command);
    }
    if let Some(undone) = task.compensates {
        field("compensates", &undone.to_string());
    }
    if let Some(DefaultAnswer { answer, after_ms }) = &task.default_answer {
        field("default after", &format!("{after_ms}ms"));
        field("default", answer);
    }
    rest(out, task);
}

fn rest(out: &mut String, task: &TaskPlan) {
    let mut field = |name: &str, text: &str| out.push_str(&format!("  - {name}: {}\n", value(text)));
    for path in &task.files {
        field("works on", path);
    }
    if task.optional {
        field("optional", "yes");
    }
    if task.rerun_safe {
        field("rerun", "safe");
    }
    for attachment in &task.attachments {
        let (name, reference) = attachment_parts(&attachment.kind);
        field(name, reference);
        if let Some(label) = &attachment.label {
            field("shown as", label);
        }
    }
    for note in &task.notes {
        field("note", note);
    }
}

fn attachment_parts(kind: &AttachmentKind) -> (&'static str, &str) {
    match kind {
        AttachmentKind::Link(to) => ("link", to),
        AttachmentKind::ImageRef(to) => ("image", to),
        AttachmentKind::FileRef(to) => ("file", to),
        AttachmentKind::EmbeddingRef(to) => ("embedding", to),
        AttachmentKind::ScreenshotRef(to) => ("screenshot", to),
    }
}

/// Plain where that can be read back, else as a JSON string.
fn value(text: &str) -> String {
    let plain = !text.is_empty()
        && text.trim() == text
        && !text.starts_with('"')
        && !text.contains(|c: char| c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{ad}'));
    if plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

fn read_value(text: &str) -> Option<String> {
    if text.starts_with('"') { serde_json::from_str(text).ok() } else { Some(text.to_owned()) }
}

/// Reads the form; `None` when the text is not in it.
pub(super) fn read(text: &str, options: ReadOptions<'_>) -> Option<Result<ParsedPlan, ParseError>> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !body.starts_with(SIGN) {
        return None;
    }
    let plan = ParsedPlan::empty(options.format);
    let mut reader = Reader { plan };
    let mut at = text.len() - body.len();
    for line in body.split_inclusive('\n') {
        let body = line.trim_end_matches(['\n', '\r']);
        reader.line(body, Span { start: at, end: at + body.len() })?;
        at += line.len();
    }
    let mut plan = reader.plan;
    if options.parallel {
        for task in &mut plan.tasks {
            task.depends_on.retain(|one| one.strength == Strength::Hard);
        }
    }
    Some(validate(&plan.tasks).map(|()| plan))
}

struct Reader {
    plan: ParsedPlan,
}

impl Reader {
    fn line(&mut self, line: &str, span: Span) -> Option<()> {
        if let Some(rest) = line.strip_prefix("  - ") {
            let (name, rest) = rest.split_once(": ")?;
            let task = self.plan.tasks.last_mut()?;
            if let Some(last) = task.spans.last_mut() {
                last.end = span.end;
            }
            return field(task, name, read_value(rest)?);
        }
        if let Some(rest) = line.strip_prefix("- [") {
            return self.task(rest, span);
        }
        if !line.trim().is_empty() {
            self.plan.parts.push((span, Part::Context));
        }
        if let Some(title) = line.strip_prefix("# ") {
            self.plan.title = Some(read_value(title)?);
        } else if let Some(context) = line.strip_prefix("> ") {
            self.plan.context.push(read_value(context)?);
        } else if !(line.trim().is_empty() || line == SIGN) {
            return None;
        }
        Some(())
    }

    fn task(&mut self, rest: &str, span: Span) -> Option<()> {
        let (mark, rest) = rest.split_once("] ")?;
        let (id, rest) = rest.split_once(". ")?;
        let mut task = TaskPlan::new(TaskId(id.parse().ok()?), NodeKind::Processing, read_value(rest)?);
        task.mark = match mark {
            " " => Mark::Open,
            "~" => Mark::InProgress,
            "x" => Mark::Done,
            "-" => Mark::Cancelled,
            ">" => Mark::Deferred,
            _ => return None,
        };
        let place = Span { start: span.start + 3, end: span.start + 3 + mark.len() };
        self.plan.marks.push(MarkAt { span: place, mark: task.mark, of: Some(task.id), parent: None, optional: false });
        task.spans.push(span);
        self.plan.tasks.push(task);
        Some(())
    }
}

fn field(task: &mut TaskPlan, name: &str, text: String) -> Option<()> {
    let edge = |strength| text.parse().ok().map(|id| Dependency { task: TaskId(id), strength });
    let attachment = |kind| Attachment { kind, label: None };
    match name {
        "kind" => task.kind = kind(&text)?,
        "id" => task.label = Some(text),
        "depends on" => task.depends_on.push(edge(Strength::Hard)?),
        "follows" => task.depends_on.push(edge(Strength::Soft)?),
        "command" => task.command = Some(text),
        "if" => task.condition = Some(Condition { text, negated: false, outcome_of: None }),
        "unless" => task.condition = Some(Condition { text, negated: true, outcome_of: None }),
        "decided by" => task.condition.as_mut()?.outcome_of = Some(TaskId(text.parse().ok()?)),
        "group" => task.group = Some(text),
        "priority" => task.priority = Some(text),
        "assignee" => task.assignee = Some(text),
        "retry" => task.retry = Some(text.parse().ok()?),
        "timeout" => task.timeout_ms = Some(text.strip_suffix("ms")?.parse().ok()?),
        "deadline" => task.deadline_ms = Some(text.strip_suffix("ms")?.parse().ok()?),
        "estimate" => task.estimate_ms = Some(text.strip_suffix("ms")?.parse().ok()?),
        "compensate" => task.compensate = Some(text),
        "compensates" => task.compensates = Some(TaskId(text.parse().ok()?)),
        "default after" => {
            let after_ms = text.strip_suffix("ms")?.parse().ok().filter(|after_ms| *after_ms > 0)?;
            task.default_answer = Some(DefaultAnswer { answer: String::new(), after_ms });
        }
        "default" => task.default_answer.as_mut()?.answer = text,
        "on failure" => task.on_failure = Some(policy(&text)?),
        "works on" => task.files.push(text),
        "optional" => task.optional = (text == "yes").then_some(true)?,
        "rerun" => task.rerun_safe = (text == "safe").then_some(true)?,
        "link" => task.attachments.push(attachment(AttachmentKind::Link(text))),
        "image" => task.attachments.push(attachment(AttachmentKind::ImageRef(text))),
        "file" => task.attachments.push(attachment(AttachmentKind::FileRef(text))),
        "embedding" => task.attachments.push(attachment(AttachmentKind::EmbeddingRef(text))),
        "screenshot" => task.attachments.push(attachment(AttachmentKind::ScreenshotRef(text))),
        "shown as" => task.attachments.last_mut()?.label = Some(text),
        "note" => task.notes.push(text),
        _ => return None,
    }
    Some(())
}

fn policy(text: &str) -> Option<FailurePolicy> {
    [FailurePolicy::SkipDependants, FailurePolicy::Continue, FailurePolicy::Stop, FailurePolicy::Ask]
        .into_iter()
        .find(|policy| policy.as_str() == text)
}

fn kind(text: &str) -> Option<NodeKind> {
    use NodeKind::{Analysis, Clarification, CodeImplementation, Processing, Refactor, Retrieval, ToolCall, UnitTest};
    [Clarification, ToolCall, Processing, UnitTest, Retrieval, Analysis, Refactor, CodeImplementation]
        .into_iter()
        .find(|kind| kind.as_str() == text)
}
