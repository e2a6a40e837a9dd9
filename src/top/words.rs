//! The commands that settle items that wait for a person.

use crate::views::NeedView;

/// The command that answers a question of an agent (`a12`) or of a plan (`PLAN/q1`).
pub fn answer(need: &NeedView, text: &str) -> Vec<String> {
    ["answer", "--", &need.id, text].map(str::to_owned).into()
}

/// The command that settles the item, unless it only lists something. It runs no tasks itself: workers do.
pub fn settling(need: &NeedView) -> Option<String> {
    let is_list = |command: &str| command.starts_with("leases ") || command.starts_with("why ");
    let command = need.commands.iter().find(|command| !is_list(command))?;
    Some(if command.starts_with("resume ") {
        command.replacen("resume", "resume --detach", 1)
    } else {
        command.clone()
    })
}

/// The words of such a line. Its names are never parsed as options.
pub fn listed(command: &str) -> Vec<String> {
    let mut words = crate::ui::text::words(command).unwrap_or_default();
    let n_before = if command.starts_with("resume --detach ") { 2 } else { 1 };
    words.insert(n_before.min(words.len()), "--".to_owned());
    words
}
