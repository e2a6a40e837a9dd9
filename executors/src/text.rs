//! Text that others wrote, for a terminal: it cannot move the cursor, colour the terminal or hide anything, and lines stay
//! lines.

/// The text with control characters and invisible ones as escapes, except line ends and tabs.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\n' || c == '\t' || !(c.is_control() || is_hidden(c)) {
            shown.push(c);
        } else {
            shown.extend(c.escape_unicode());
        }
    }
    shown
}

/// True for characters that show nothing, or that reorder others: a command could look like another one. The selector in
/// coloured symbols shows something.
fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0e}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// The words of another in a text for an agent, in one line that is cut at `chars_max` characters: then in quotes, unless they
/// are a plain word or path.
#[must_use]
pub fn quoted_line(text: &str, chars_max: usize) -> String {
    let line = one_line(text, chars_max);
    let is_plain = !line.is_empty() && line.chars().all(|c| c.is_alphanumeric() || "-_./:@#*+=,{}[]".contains(c));
    if is_plain { line } else { format!("{line:?}") }
}

/// The words of others in a list: each as [`quoted_line`] has it, the first `max` of them, and how many more there are.
#[must_use]
pub fn quoted_list<'a>(items: impl IntoIterator<Item = &'a str>, max: usize, chars_max: usize) -> String {
    let mut items = items.into_iter();
    let shown = items.by_ref().take(max).map(|item| quoted_line(item, chars_max)).collect::<Vec<_>>().join(", ");
    match items.count() {
        0 => shown,
        n_more => format!("{shown} and {n_more} more"),
    }
}

/// The text in one line of at most `chars_max` characters.
#[must_use]
pub fn one_line(text: &str, chars_max: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        // No more is looked at than can be shown, even of a text of a megabyte.
        if line.len() > chars_max.saturating_mul(4) {
            break;
        }
        line.push_str(if line.is_empty() { "" } else { " " });
        line.extend(word.chars().take(chars_max.saturating_add(1)));
    }
    let text = visible(&line);
    if text.chars().count() <= chars_max {
        return text;
    }
    text.chars().take(chars_max.saturating_sub(3)).chain("...".chars()).collect()
}
