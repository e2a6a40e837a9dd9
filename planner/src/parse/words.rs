//! The closed lists of English words in the documented rules.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::plan::NodeKind;
pub(super) use crate::words::{after, after_any, find_word, first_word, is_one_of, sentences, words};

/// Words that withhold a command anywhere: in its line, its notes, or the lines and headings above it.
pub(super) const NEVER: [&str; 10] =
    ["not", "never", "no", "avoid", "without", "instead", "rather", "unless", "example", "e.g"];
/// Words that withhold a command in its line, and in the line that introduces its list.
pub(super) const LIMITS: [&str; 18] = [
    "how", "why", "that", "what", "when", "if", "whether", "before", "after", "until", "once", "should", "would",
    "was", "has", "says", "failed", "only",
];
/// Verbs before a command.
pub(super) const RUN: [&str; 2] = ["run", "execute"];
/// First words of a line that introduces steps, besides verbs.
pub(super) const INTRODUCING: [&str; 7] = ["to", "then", "next", "first", "finally", "in", "here"];
/// Words that may continue a line after its command: about its target, means or purpose, but not its folder.
pub(super) const FOLLOWING: [&str; 6] = ["on", "to", "with", "for", "against", "again"];
/// First words of a sentence after a command that states the expected result.
pub(super) const EXPECTED: [&str; 5] = ["expected", "expect", "all", "every", "both"];
/// Words in the line above a fence that refer to the code itself.
pub(super) const CODE: [&str; 5] = ["this", "these", "following", "snippet", "script"];
/// First words of a line whose fence is the content of a file, or a text to read.
pub(super) const CONTENT: [&str; 10] =
    ["create", "write", "add", "edit", "replace", "insert", "append", "paste", "explain", "review"];
/// Languages of fences that hold commands.
pub(super) const SHELLS: [&str; 5] = ["sh", "bash", "shell", "zsh", "console"];
/// First words of a step whose final colon comes before a command.
pub(super) const COLON: [&str; 9] =
    ["build", "check", "format", "generate", "install", "lint", "migrate", "test", "verify"];
/// Those that need the colon right after them.
pub(super) const ALONE: [&str; 2] = ["check", "verify"];
/// First words of an object after one of the others.
pub(super) const OBJECT: [&str; 4] = ["the", "all", "in", "with"];
/// Words between Run and a colon that turn the order around, or leave it to somebody.
pub(super) const TURNED: [&str; 22] = [
    "nothing",
    "none",
    "neither",
    "everything",
    "anything",
    "except",
    "but",
    "later",
    "skip",
    "manually",
    "forbidden",
    "wrong",
    "opposite",
    "into",
    "by",
    "out",
    "ask",
    "hand",
    "yourself",
    "old",
    "broken",
    "against",
];
/// Words by which an order that ends with `?` is in doubt.
pub(super) const UNSURE: [&str; 4] = ["maybe", "perhaps", "possibly", "probably"];
/// First words of a line with dependencies.
pub(super) const DEPENDS: [&str; 4] = ["depends on", "depends", "dependencies", "blocked by"];
/// First words of a line whose list holds acceptance criteria.
pub(super) const ACCEPTANCE: [&str; 2] = ["acceptance", "done when"];
/// First words of the headings of sections without steps.
#[rustfmt::skip]
pub(super) const SECTIONS: [&str; 17] = [
    "out of scope", "non-goals", "notes", "background", "overview", "how", "what", "why", "example", "parallel example",
    "usage", "rollback", "troubleshooting", "cancelled", "deferred", "faq", "reference",
];
/// Words that withhold the commands of a section if its heading contains them, as those above do.
pub(super) const OVER: [&str; 9] =
    ["completed", "done", "forbidden", "anti-patterns", "recovery", "emergency", "undo", "back-out", "history"];
/// First words of a sentence that is a note of the previous step.
pub(super) const NOTES: [&str; 8] = ["do not", "don't", "never", "use", "keep", "ensure", "make sure", "see"];
/// Words before the verb of a sentence that are skipped.
pub(super) const POLITE: [&str; 8] =
    ["please", "first", "now", "i'd like to", "i want to", "we need to", "we want to", "let's"];
/// Words that split a sentence in two, or begin one.
pub(super) const NEXT: [&str; 7] = ["and then", "after that", "then", "next", "finally", "lastly", "and finally"];

/// Verbs that make a sentence a step, with the kind of the step.
pub const VERBS: [(NodeKind, &str); 7] = [
    (NodeKind::UnitTest, "test"),
    (
        NodeKind::CodeImplementation,
        "add build change code connect convert create develop disable enable expose extend fix hook implement integrate \
         introduce make migrate modify patch port remove scaffold set setup support switch upgrade wire",
    ),
    (
        NodeKind::Processing,
        "adjust agree announce apply archive assign clean close compute configure copy cut decide define delete design \
         discuss document draft drop edit enter format generate import initialise initialize insert label log merge \
         move open organise organize plan post prepare process rebase record regenerate register reply request reserve \
         resolve revert save schedule send sort split stop store submit summarise summarize sync train transform \
         translate update wait write",
    ),
    (
        NodeKind::Refactor,
        "clean-up dedupe deduplicate extract inline refactor rename reorganise reorganize restructure rewrite simplify",
    ),
    (NodeKind::Retrieval, "collect download fetch find get list load look obtain pull query read retrieve search"),
    (
        NodeKind::Analysis,
        "analyse analyze assess audit benchmark calculate check compare confirm count debug determine estimate evaluate \
         examine explain identify inspect investigate judge measure monitor profile research review study validate verify",
    ),
    (
        NodeKind::ToolCall,
        "backup bump call clone commit compile deploy email execute install invoke launch lint notify provision \
         publish push reboot release reset restart roll run ship start tag trigger uninstall upload",
    ),
];

/// The kind of a verb in small letters.
pub(super) fn kind_of(verb: &str) -> Option<NodeKind> {
    static KINDS: LazyLock<HashMap<&str, NodeKind>> = LazyLock::new(|| {
        let known = VERBS.iter().flat_map(|(kind, verbs)| verbs.split_ascii_whitespace().map(|verb| (verb, *kind)));
        known.collect()
    });
    KINDS.get(verb).copied()
}

/// The text after the introductory and polite words before its verb.
pub(super) fn after_order(text: &str) -> &str {
    let mut rest = text.trim_start();
    for _ in 0..4 {
        let after = after_any(rest, &NEXT).or_else(|| after_any(rest, &POLITE));
        rest = after.map_or(rest, |after| after.trim_start_matches([',', ':', ' ']));
    }
    rest
}
