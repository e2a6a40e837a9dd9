//! Where in a text the list of another program stands: it is the text, its front matter, or a fence that the words before
//! it announce or beside which there are no items. What stands around it is context; what the list says, `formats` knows.

use super::error::ParseError;
use super::parsed::{ParseOptions, ParsedPlan};
use super::phrases::words;
use super::text::{collapse, find, is_blank};
use super::{formats, markers, vocabulary, yaml};

/// So many lines are looked at to know whether a text is YAML.
const LINES_MAX: usize = 200;
/// So many paragraphs around a list are kept as context.
const CONTEXT_MAX: usize = 100;

type Read = Result<ParsedPlan, ParseError>;

/// The plan of a list in a text; nothing when there is none.
pub(super) fn read(text: &str, options: ParseOptions) -> Option<Read> {
    if let Some(plan) = formats::read(text, options) {
        return Some(plan);
    }
    let body = text.trim_start_matches(is_blank);
    if let Some(head) = body.strip_prefix("---\n").or_else(|| body.strip_prefix("---\r\n")) {
        return front_matter(text, head, options);
    }
    if begins_as_yaml(body)
        && let Some(plan) = of_yaml(text, body, options)
    {
        return Some(plan);
    }
    fence(text, options)
}

/// The list in what stands between `---` and `---`; a text without the second is all of it YAML.
fn front_matter(text: &str, head: &str, options: ParseOptions) -> Option<Read> {
    let mut length = 0;
    for line in head.split_inclusive('\n') {
        if matches!(line.trim_end(), "---" | "...") {
            let (inside, rest) = head.split_at(length);
            let plan = if begins_as_yaml(inside) { of_yaml(text, inside, options) } else { None };
            return plan.map(|plan| plan.map(|plan| with_context(plan, &[&rest[line.len()..]])));
        }
        length += line.len();
    }
    if begins_as_yaml(head) { of_yaml(text, head, options) } else { None }
}

fn of_yaml(text: &str, part: &str, options: ParseOptions) -> Option<Read> {
    let value = yaml::read(text, part)?;
    // A list of words alone is read as any list is.
    let fields = value.fields().unwrap_or_default();
    if matches!(fields, [(_, list)] if list.list().is_some_and(|list| list.iter().all(|one| one.word().is_some()))) {
        return None;
    }
    formats::of(text, &value, options)
}

/// True for a text whose first lines are fields, one of them a list of tasks, or entries with a title.
fn begins_as_yaml(part: &str) -> bool {
    const LISTS: [&str; 5] = ["tasks:", "plan:", "todos:", "issues:", "steps:"];
    const TITLES: [&str; 8] =
        ["- id:", "- title:", "- name:", "- content:", "- step:", "- task:", "- subject:", "- status:"];
    let mut lines = part.lines().take(LINES_MAX).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let Some(first) = lines.next() else { return false };
    if first.starts_with("- ") {
        return TITLES.iter().any(|title| first.starts_with(title));
    }
    let is_list = |line: &str| LISTS.contains(&line.split(" #").next().unwrap_or(line).trim_end());
    let length = first.bytes().take(32).take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')).count();
    let is_field = first.starts_with(|c: char| c.is_ascii_lowercase()) && first[length..].starts_with(':');
    is_field && (is_list(first) || lines.any(is_list))
}

/// The list in a fence of JSON or YAML.
fn fence(text: &str, options: ParseOptions) -> Option<Read> {
    let mut at = find(text, "```")?;
    at = text[..at].rfind('\n').map_or(0, |end| end + 1);
    while let Some((open, inside, end)) = next_fence(text, at) {
        at = end;
        let plan = match text[inside.clone()].trim_start_matches(is_blank).as_bytes().first() {
            Some(b'{' | b'[') => formats::of_json(text, text[inside.clone()].trim(), options),
            Some(_) if begins_as_yaml(&text[inside.clone()]) => of_yaml(text, &text[inside.clone()], options),
            Some(_) | None => None,
        };
        let Some(plan) = plan else { continue };
        let (before, after) = (&text[..open], &text[end..]);
        let said = announced(before);
        let listed =
            || before.lines().chain(after.lines()).any(|line| markers::item(line.trim(), None, false).is_some());
        if said == Some(true) || said.is_none() && !listed() {
            return Some(plan.map(|plan| with_context(plan, &[before, after])));
        }
    }
    None
}

/// The next fence that may hold a list: where it begins, what is in it, and where it ends.
fn next_fence(text: &str, from: usize) -> Option<(usize, std::ops::Range<usize>, usize)> {
    let mut at = from;
    let mut open: Option<(usize, usize, bool)> = None;
    for line in text.get(from..)?.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let Some(language) = line.trim_start_matches([' ', '\t']).strip_prefix("```") else { continue };
        match open {
            Some((begin, inside, true)) => return Some((begin, inside..start, at)),
            Some((_, _, false)) => open = None,
            None => {
                let language = language.trim().to_ascii_lowercase();
                let known = matches!(language.as_str(), "" | "json" | "jsonc" | "json5" | "jsonl" | "yaml" | "yml");
                open = Some((start, at, known));
            }
        }
    }
    None
}

/// Whether the line before a fence says that a plan follows: nothing when it stands alone, false when it says that
/// something else is to be done with it.
fn announced(before: &str) -> Option<bool> {
    const NAMES: [&str; 12] =
        ["plan", "plans", "task", "tasks", "todo", "todos", "step", "steps", "issues", "tickets", "backlog", "roadmap"];
    const BEGINS: [&str; 16] = [
        "execute",
        "carry",
        "do",
        "follow",
        "run",
        "implement",
        "work",
        "complete",
        "continue",
        "resume",
        "finish",
        "start",
        "take",
        "use",
        "perform",
        "process",
    ];
    let line = before.lines().rev().find(|line| !line.trim().is_empty())?.trim();
    if line.starts_with('#') || line.ends_with("```") {
        return None;
    }
    // `TodoWrite` and `update_plan` are how assistants call it.
    let tool = |word: &str| word.starts_with("todo") || word.ends_with("_plan") || word.starts_with("task");
    let named = words(line).any(|word| NAMES.contains(&word.as_str()) || tool(word.as_str()));
    let asked = vocabulary::instruction(line);
    let first = words(asked).next();
    let begins = |word: &str| BEGINS.contains(&word) || NAMES.contains(&word);
    let other = vocabulary::begins_with_verb(asked) && !first.is_some_and(|word| begins(word.as_str()));
    Some(named && !other)
}

/// The plan with the words around its list.
fn with_context(mut plan: ParsedPlan, parts: &[&str]) -> ParsedPlan {
    for part in parts {
        let mut lines: Vec<&str> = Vec::new();
        for line in part.lines().chain([""]) {
            if !line.trim_matches(is_blank).is_empty() {
                lines.push(line);
            } else if !lines.is_empty() {
                if plan.context.len() < CONTEXT_MAX {
                    plan.context.push(collapse(&lines.join("\n")).into_owned());
                }
                lines.clear();
            }
        }
    }
    plan
}
