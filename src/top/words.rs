//! The commands that settle items that wait for a person.

use crate::views::NeedView;

/// The command that answers a question of an agent (`a12`) or of a plan (`PLAN q1`).
pub fn answer(need: &NeedView, option: Option<&str>, text: Option<&str>) -> Vec<String> {
    let of_plan = need.id.strip_prefix(&need.from).and_then(|rest| rest.strip_prefix(' '));
    let names = of_plan.map_or_else(|| vec![need.id.as_str()], |question| vec![&need.from, question]);
    let words = ["answer"].into_iter().chain(option).chain(["--"]).chain(names).chain(text);
    words.map(str::to_owned).collect()
}

/// The command that settles the item, unless it only lists something. It runs no tasks itself: workers do.
pub fn settling(need: &NeedView) -> Option<String> {
    let command = need.commands.iter().find(|command| *command != "conflicts" && !command.starts_with("why "))?;
    let is_plan = command.starts_with("resume ") && split(command).len() == 2;
    Some(if is_plan { command.replacen("resume", "resume --detach", 1) } else { command.clone() })
}

/// The words of such a line. Its names are never parsed as options.
pub fn listed(command: &str) -> Vec<String> {
    let mut words = split(command);
    let n_before = if command.starts_with("resume --detach ") { 2 } else { 1 };
    words.insert(n_before.min(words.len()), "--".to_owned());
    words
}

/// The words of a line that [`crate::text::shell_word`] quoted.
fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), None::<String>, false);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' if !is_quoted => words.extend(word.take()),
            '\'' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            '\\' if !is_quoted => word.get_or_insert_default().extend(chars.next()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}
