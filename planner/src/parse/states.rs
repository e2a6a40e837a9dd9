//! How far an entry of another program is, by its status and by the fields that switch it on and off. What is not known is
//! never taken for leave to run something.

use super::phrases::{Words, list};
use super::values::{Node, Value};
use crate::plan::Mark;

/// How far an entry is.
pub(super) struct State {
    pub(super) mark: Mark,
    /// What is written of it and cannot be read: the field and its value.
    pub(super) doubt: Option<(String, String)>,
}

static OPEN: Words = Words::new(|| {
    list(
        "open|pending|todo|to_do|new|ready|queued|backlog|blocked|failed|not_started|notstarted|unstarted|waiting|planned|\
         scheduled|accepted|reopened|approved|inbox|none",
    )
});
static BEGUN: Words = Words::new(|| {
    list("in_progress|inprogress|doing|review|in_review|hooked|started|active|ongoing|running|working|wip")
});
static DONE: Words = Words::new(|| {
    list("done|completed|complete|closed|finished|resolved|fixed|merged|shipped|succeeded|success|passed|verified")
});
static CANCELLED: Words = Words::new(|| {
    list(
        "cancelled|canceled|deferred|deleted|rejected|skipped|skip|wont_do|wontdo|wont_fix|wontfix|will_not_do|not_planned|declined|\
         dropped|abandoned|obsolete|duplicate|invalid|archived|removed|superseded|postponed|disabled|never",
    )
});
/// Fields that say of an entry that it is done.
const DONE_FIELDS: [&str; 5] = ["done", "completed", "finished", "closed", "resolved"];
/// Fields that switch an entry on or off, and what they say of one that is to be done.
const SWITCHES: [(&str, bool); 16] = [
    ("enabled", true),
    ("if", true),
    ("when", true),
    ("only_if", true),
    ("onlyIf", true),
    ("condition", true),
    ("unless", false),
    ("disabled", false),
    ("skip", false),
    ("skipped", false),
    ("ignore", false),
    ("ignored", false),
    ("cancelled", false),
    ("canceled", false),
    ("deleted", false),
    ("archived", false),
];

/// What the fields of an entry say.
pub(super) fn of(entry: &Value) -> State {
    let mut state = State { mark: Mark::Open, doubt: None };
    let present = |name: &str| entry.field(name).filter(|value| !matches!(value.node, Node::Nothing));
    for name in DONE_FIELDS {
        let Some(value) = present(name) else { continue };
        match flag(value) {
            Some(true) => state.mark = Mark::Done,
            Some(false) => {}
            None => state.doubt = doubt(name, value),
        }
    }
    let status = ["status", "state"].iter().find_map(|name| Some((*name, present(name)?)));
    if let Some((name, value)) = status {
        match value.word().and_then(mark) {
            // A status says more than a flag beside it, unless it says that nothing was done.
            Some(Mark::Open) => {}
            Some(mark) => state.mark = mark,
            None => state.doubt = doubt(name, value),
        }
    }
    for (name, on) in SWITCHES {
        let Some(value) = present(name) else { continue };
        match flag(value) {
            Some(said) if said == on => {}
            Some(_) if state.mark == Mark::Done => {}
            Some(_) => state.mark = Mark::Cancelled,
            None => state.doubt = doubt(name, value),
        }
    }
    state
}

/// What a status says; nothing when it is not known.
pub(super) fn mark(status: &str) -> Option<Mark> {
    let plain: String = status.to_lowercase().chars().filter(|c| !matches!(c, '\'' | '\u{2019}')).collect();
    let plain = plain.replace([' ', '-'], "_");
    let known = [(&OPEN, Mark::Open), (&BEGUN, Mark::InProgress), (&DONE, Mark::Done), (&CANCELLED, Mark::Cancelled)];
    known.into_iter().find(|(words, _)| words.contains(&plain)).map(|(_, mark)| mark)
}

/// What a few words in brackets behind or before a task say of it: "(in progress)", "[DONE]". Of the words of a status only
/// those count that are nothing else.
pub(super) fn said(words: &str) -> Option<Mark> {
    static SAID: Words = Words::new(|| {
        list(
            "in progress|in-progress|wip|doing|ongoing|done|completed|complete|finished|cancelled|canceled|won't do|\
             dropped|abandoned",
        )
    });
    if SAID.contains_ci(words) { mark(words) } else { None }
}

/// Yes or no, in the words of any of these programs.
fn flag(value: &Value) -> Option<bool> {
    match &value.node {
        Node::Flag(said) => Some(*said),
        Node::Text(text) => match text.trim().to_lowercase().as_str() {
            "true" | "yes" | "y" | "on" | "1" | "x" | "always" => Some(true),
            "false" | "no" | "n" | "off" | "0" | "" | "never" => Some(false),
            _ => None,
        },
        Node::Nothing | Node::List(_) | Node::Map(_) => None,
    }
}

fn doubt(name: &str, value: &Value) -> Option<(String, String)> {
    let said = match &value.node {
        Node::Flag(said) => said.to_string(),
        Node::Text(text) => text.clone(),
        Node::Nothing | Node::List(_) | Node::Map(_) => "what stands there".to_owned(),
    };
    Some((name.to_owned(), said))
}
