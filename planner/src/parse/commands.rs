//! Which command a clause asks to run.

use super::inline::{AtomKind, Inline};
use super::{shell, vocabulary};

/// The command that a clause asks to run, from the code in it.
pub(super) fn command_in(text: &str, inline: &Inline, from: usize, to: usize) -> Option<String> {
    let codes: Vec<_> = inline.within(from, to).iter().filter(|atom| atom.kind == AtomKind::Code).take(20).collect();
    let first = codes.first()?;
    let before = text.get(from..first.start)?.trim_end_matches(['*', ' ', '"']);
    let plain = vocabulary::instruction(before);
    let plain = if before.trim_matches(|c: char| !c.is_alphanumeric()).is_empty() { "" } else { plain };
    let lower = plain.trim().trim_end_matches(':').trim().to_lowercase();
    let verb = lower.split_whitespace().next().unwrap_or("");
    let after = text.get(first.end..to)?.trim_start();
    let judged = after.is_empty()
        || [
            ",", "and ", "then ", "&&", "must ", "should ", "passes", "succeeds", "in ", "on ", "from ", "to ",
            "until ", "again", "with ", "for ", "once", "locally", "before", "after", "(", "inside ", "at ", "twice",
            ".",
        ]
        .iter()
        .any(|word| after.starts_with(word));
    let asked = matches!(
        lower.as_str(),
        "run"
            | "execute"
            | "invoke"
            | "rerun"
            | "re-run"
            | "start"
            | "launch"
            | "try"
            | "call"
            | "then run"
            | "use"
            | "first run"
            | "run the command"
            | "execute the command"
            | "\u{8fd0}\u{884c}"
            | "\u{6267}\u{884c}"
    );
    let asked = asked
        || lower.ends_with(" run")
        || lower.ends_with(" running")
        || lower.ends_with(" execute")
        || lower.ends_with("\u{8fd0}\u{884c}")
        || lower.ends_with("\u{6267}\u{884c}");
    let by = [" with", " via", " using", " by"].iter().any(|word| lower.ends_with(word)) || before.ends_with(':');
    let running =
        matches!(verb, "run" | "execute" | "invoke" | "rerun" | "re-run" | "install" | "deploy" | "launch" | "start");
    let writes = matches!(
        verb,
        "implement"
            | "add"
            | "create"
            | "write"
            | "document"
            | "fix"
            | "replace"
            | "refactor"
            | "rename"
            | "support"
            | "extend"
            | "remove"
            | "describe"
    );
    let firm = asked || (lower.is_empty() && judged) || (before.ends_with(':') && !writes);
    if !(firm || by || running) {
        return None;
    }
    let mut command = String::new();
    let mut end = first.start;
    for atom in codes {
        let code = text.get(atom.inner.0..atom.inner.1).unwrap_or("").trim();
        let gap = text.get(end..atom.start).unwrap_or("").trim().trim_matches(',').trim().to_lowercase();
        let joined = command.is_empty()
            || matches!(
                gap.as_str(),
                "" | "and" | "then" | "and then" | "&&" | "and run" | "then run" | "and then run"
            );
        if !joined || !shell::is_command(code, firm && command.is_empty()) || (by && !firm && writes) {
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
