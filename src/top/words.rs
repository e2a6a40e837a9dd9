//! The words of the commands that settle what waits for a person.

use crate::views::NeedView;

/// The command that answers a question of an agent (`a12`) or of a plan (`PLAN q1`).
pub fn answer(need: &NeedView, option: Option<&str>, text: Option<&str>) -> Vec<String> {
    let of_plan = need.id.strip_prefix(&need.from).and_then(|rest| rest.strip_prefix(' '));
    let names = of_plan.map_or_else(|| vec![need.id.as_str()], |question| vec![&need.from, question]);
    let words = ["answer"].into_iter().chain(option).chain(["--"]).chain(names).chain(text);
    words.map(str::to_owned).collect()
}

/// A listed command, so that it runs no tasks itself: workers do.
pub fn without_running(command: &str) -> String {
    match split(command).as_slice() {
        [resume, _plan] if resume == "resume" => command.replacen("resume", "resume --detach", 1),
        _other => command.to_owned(),
    }
}

/// The words of a listed command. None of its names is taken for an option.
pub fn listed(command: &str) -> Vec<String> {
    let mut words = split(command);
    let n_before = if words.get(1).is_some_and(|word| word == "--detach") { 2 } else { 1 };
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
