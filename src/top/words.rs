//! The commands that settle items that wait for a person.

use crewlog_executors::crew::Kind;

use crate::views::NeedView;

/// The command that answers a question of an agent (`a12`) or of a plan (`PLAN/q1`).
pub fn answer(need: &NeedView, option: Option<&str>, text: Option<&str>) -> Vec<String> {
    let words = ["answer"].into_iter().chain(option).chain(["--", &need.id]).chain(text);
    words.map(str::to_owned).collect()
}

/// The command that settles the item, unless it only lists something or needs words of the person. It runs no tasks
/// itself: workers do.
pub fn settling(need: &NeedView) -> Option<String> {
    let is_list = |command: &str| command.starts_with("leases ") || command.starts_with("why ");
    let is_answered = matches!(need.kind, Kind::Permission | Kind::Question | Kind::Failure);
    let needs_words = |command: &str| !is_answered && (command.ends_with("=...") || command.ends_with("\"...\""));
    let command = need.commands.iter().find(|command| !is_list(command) && !needs_words(command))?;
    Some(if command.starts_with("resume ") {
        command.replacen("resume", "resume --detach", 1)
    } else {
        command.clone()
    })
}

/// The words of such a line. Its names are never parsed as options.
pub fn listed(command: &str) -> Vec<String> {
    let mut words = crate::text::words(command).unwrap_or_default();
    let n_before = if command.starts_with("resume --detach ") { 2 } else { 1 };
    words.insert(n_before.min(words.len()), "--".to_owned());
    words
}
