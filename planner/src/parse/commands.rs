//! Which command a clause asks to run. In doubt it asks for none.

use super::inline::{Atom, AtomKind, Inline};
use super::text::{Words, list};
use super::{shell, vocabulary};

/// What may follow a command that is judged, placed or timed.
static AFTER: Words = Words::new(|| {
    list(
        ",|and |then |&&|must |should |passes|succeeds|in |on |from |to |until |again|with |for |once|locally|before\
     |after|(|inside |at |twice|.",
    )
});
/// What asks for the code after it to be run.
static ASKS: Words = Words::new(|| {
    list(
        "run|execute|invoke|rerun|re-run|start|launch|then run|first run|run the command\
     |execute the command|\u{8fd0}\u{884c}|\u{6267}\u{884c}",
    )
});
/// Verbs that make the code after them a thing to write about.
static WRITES: Words = Words::new(|| {
    list("implement|add|create|write|document|fix|replace|refactor|rename|support|extend|remove|describe")
});
/// Words that forbid.
const FORBIDS: &[&str] =
    &["don't", "don\u{2019}t", "do not", "not ", "never", "without", "avoid", "instead of", "rather than"];

/// How far the words before the first code ask to run it.
struct Asked {
    /// They say so.
    firm: bool,
    /// The code is the means to something else: "with", "via".
    by: bool,
    /// The verb is about running, the code comes later.
    running: bool,
    writes: bool,
}

/// The command that a clause asks to run, from the code in it; several in a row are joined.
pub(super) fn command_in(text: &str, inline: &Inline, from: usize, to: usize) -> Option<String> {
    let codes: Vec<&Atom> =
        inline.within(from, to).iter().filter(|atom| atom.kind == AtomKind::Code).take(20).collect();
    let first = codes.first()?;
    let asked = asked(text.get(from..first.start)?, text.get(first.end..to)?.trim_start());
    let means = asked.by && !asked.writes || asked.running && !asked.by;
    if !(asked.firm || means) {
        return None;
    }
    let mut command = String::new();
    let mut end = first.start;
    for atom in codes {
        let code = text.get(atom.inner.0..atom.inner.1).unwrap_or("").trim();
        let gap = text.get(end..atom.start).unwrap_or("").trim().trim_matches(',').trim().to_lowercase();
        let joins = ["", "and", "then", "and then", "&&", "and run", "then run", "and then run"];
        let joined = command.is_empty() || joins.contains(&gap.as_str());
        if !joined || !shell::is_command(code, asked.firm && command.is_empty()) {
            break;
        }
        if !command.is_empty() {
            command.push_str(" && ");
        }
        command.push_str(code);
        end = atom.end;
    }
    (!command.is_empty()).then_some(command)
}

fn asked(before: &str, after: &str) -> Asked {
    let before = before.trim_end_matches(['*', ' ', '"']);
    let empty = !before.contains(|c: char| c.is_alphanumeric());
    let plain = if empty { "" } else { vocabulary::instruction(before) };
    let lower = plain.trim().trim_end_matches(':').trim().to_lowercase();
    if FORBIDS.iter().any(|word| before.to_lowercase().contains(word)) {
        return Asked { firm: false, by: false, running: false, writes: true };
    }
    let verb = lower.split_whitespace().next().unwrap_or("");
    let writes = WRITES.contains(&verb);
    let colon = before.ends_with(':');
    let judged = after.is_empty() || AFTER.iter().any(|word| after.starts_with(word));
    let ends = [" run", " running", " execute", "\u{8fd0}\u{884c}", "\u{6267}\u{884c}"];
    let runs = ASKS.contains(&lower.as_str()) || ends.iter().any(|word| lower.ends_with(word));
    Asked {
        firm: runs || (lower.is_empty() && judged) || (colon && !writes),
        by: colon
            || ["call", "try", "use"].contains(&lower.as_str())
            || [" with", " via", " using", " by"].iter().any(|word| lower.ends_with(word)),
        running: ["run", "execute", "invoke", "rerun", "re-run", "install", "deploy", "launch", "start"]
            .contains(&verb),
        writes,
    }
}
