//! Decides which texts of a plan are sealed: all that are not listed as clear, so that new fields are secret by default.

use crate::agents::failures;
use crate::crew::{conflicts, statistics};
use crate::sealed::{PREFIX, STREAM};
use crate::{claim, event, model};

/// The stored form of a string: clear or sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// An id, a kind, a state, a path, a name of an executor: needed by folds and readers without a key.
    Clear,
    /// Text written by people, agents or programs.
    Sealed,
}

use Visibility::{Clear, Sealed};

/// Suffixes of the paths of clear strings in an event's data or metadata, without list indexes.
const CLEAR: &str = "metadata/correlation_id metadata/causation_id \
    tasks/label kind mark strength priority assignee on_failure files folder file/path file/format file/tag profile order \
    ref tool agent origin/agent/tools planned_by \
    Label Kind Priority Assignee OnFailure Files Order ParallelismOfKind ParallelismOfExecutor \
    status outcome purpose class name timer request model role executor/host executor/worker prompt/sha256 output/host output/sha256 progress/session by \
    parent parent/plan";

/// Suffixes of the paths of sealed strings.
const SEALED: &str = "label mentions entity description command compensate text group notes title source system_prompt context \
    Description Command Notes Compensate \
    result error reason cut_short question answer summary system schema step next_step note subject body choices";

/// The visibility of the string at a path, by its longest listed suffix; `None` without a match.
pub fn rule(path: &str) -> Option<Visibility> {
    let names = path.split('/').filter(|name| !name.bytes().all(|byte| byte.is_ascii_digit()));
    let path = names.collect::<Vec<_>>().join("/");
    let fits = |end: &&str| path.strip_suffix(*end).is_some_and(|before| before.is_empty() || before.ends_with('/'));
    let rules = |ends: &'static str, sight| ends.split_ascii_whitespace().map(move |end| (end, sight));
    let fitting = rules(CLEAR, Clear).chain(rules(SEALED, Sealed)).filter(|(end, _)| fits(end));
    fitting.max_by_key(|(end, _)| end.len()).map(|(_, sight)| sight)
}

/// True if the string at a path, as written between its quotes, must be sealed, or already looks sealed.
pub fn must_seal(path: &str, written: &str) -> bool {
    // A label made from group and place contains a part of the text.
    let tells_text = written.contains('/') && path.ends_with("/label");
    !written.is_empty() && (rule(path) != Some(Clear) || tells_text || written.starts_with(PREFIX))
}

/// The plan whose key seals the texts of an event, if any.
pub fn plan_of<'a>(stream_id: &str, aggregate_id: &'a str, tags: &'a [String]) -> Option<&'a str> {
    match stream_id {
        // A text that is sent to a model and is not a plan has its own session.
        event::STREAM | model::STREAM => Some(aggregate_id),
        claim::STREAM => claim::split_aggregate_id(aggregate_id).map(|(plan, _)| plan),
        // They are folds of the log that hold only ids, counts and paths.
        conflicts::STREAM | statistics::STREAM | STREAM => None,
        // A failed planning belongs to the parent plan, or to the text that was to become one; else to the agent.
        failures::STREAM => Some(one_plan_of(tags).unwrap_or(aggregate_id)),
        _another => one_plan_of(tags),
    }
}

fn one_plan_of(tags: &[String]) -> Option<&str> {
    let mut plans = tags.iter().filter_map(|tag| tag.strip_prefix("plan:"));
    plans.next().filter(|_| plans.next().is_none())
}

/// Replaces some strings in JSON and keeps every other byte; `None` if nothing is replaced. `replace` gets the path of
/// each string below `root`, with list indexes from 0, and the text between its quotes.
pub fn replaced(json: &str, root: &str, mut replace: impl FnMut(&str, &str) -> Option<String>) -> Option<String> {
    let mut walk = Walk { path: root.to_owned(), open: Vec::new() };
    let (mut new, mut n_copied, mut at) = (String::new(), 0, 0);
    while let Some(byte) = json.as_bytes().get(at) {
        at += 1;
        if *byte != b'"' {
            walk.step(*byte);
            continue;
        }
        let end = end_of_string(json, at);
        let written = &json[at..end];
        if walk.is_at_key() {
            walk.name(written);
        } else if let Some(other) = replace(&walk.path, written) {
            new.push_str(&json[n_copied..at]);
            new.push_str(&other);
            n_copied = end;
        }
        at = end + 1;
    }
    (n_copied > 0).then(|| new + &json[n_copied..])
}

/// The offset of the quote that ends a string, or of the end of the text.
fn end_of_string(json: &str, start: usize) -> usize {
    let mut bytes = json.bytes().enumerate().skip(start);
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => return at,
            b'\\' => drop(bytes.next()),
            _other => {}
        }
    }
    json.len()
}

/// A reader's place in a JSON value.
struct Walk {
    path: String,
    open: Vec<Bracket>,
}

/// An object or a list that has not ended, with the length of its own path.
enum Bracket {
    Object { path: usize, is_at_key: bool },
    List { path: usize, index: usize },
}

impl Walk {
    fn step(&mut self, byte: u8) {
        match byte {
            b'{' => self.open.push(Bracket::Object { path: self.path.len(), is_at_key: true }),
            b'[' => {
                self.open.push(Bracket::List { path: self.path.len(), index: 0 });
                self.path.push_str("/0");
            }
            b'}' | b']' => {
                if let Some(Bracket::Object { path, .. } | Bracket::List { path, .. }) = self.open.pop() {
                    self.path.truncate(path);
                }
            }
            b',' => match self.open.last_mut() {
                Some(Bracket::Object { path, is_at_key }) => {
                    *is_at_key = true;
                    self.path.truncate(*path);
                }
                Some(Bracket::List { path, index }) => {
                    *index += 1;
                    self.path.truncate(*path);
                    self.path.push_str(&format!("/{index}"));
                }
                None => {}
            },
            _scalar => {}
        }
    }

    fn is_at_key(&self) -> bool {
        matches!(self.open.last(), Some(Bracket::Object { is_at_key: true, .. }))
    }

    fn name(&mut self, key: &str) {
        if let Some(Bracket::Object { is_at_key, .. }) = self.open.last_mut() {
            *is_at_key = false;
            self.path.push('/');
            self.path.push_str(key);
        }
    }
}

#[cfg(test)]
mod tests;
