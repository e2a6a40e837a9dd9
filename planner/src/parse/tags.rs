//! Signs in a step that say who does it, how urgent it is and how long it takes: `@name`, `!high`, `!!`, `~2h`.

use super::bytes;
use super::inline::{AtomKind, Inline};
use super::meta::{Meta, Reader, is_priority};
use super::plain::Removed;
use super::text::trim;

/// So many settings are looked for at the end of a step.
const ENDS_MAX: usize = 8;
/// A bracket with more than this holds no setting.
const BRACKET_BYTES_MAX: usize = 2_000;

/// Where the settings begin that end a step, as in "(retry 2) @ann [P1]"; its end where there are none.
pub(super) fn settings_start(text: &str, inline: &Inline, from: usize, to: usize) -> usize {
    let trimmed = |end: usize| from + text[from..end].trim_end().len();
    let mut end = trimmed(to);
    for _ in 0..ENDS_MAX {
        let Some(start) = last_setting(text, inline, from, end) else { break };
        end = trimmed(start);
    }
    if end == trimmed(to) { to } else { end }
}

/// Where the one setting begins that ends at `end`.
fn last_setting(text: &str, inline: &Inline, from: usize, end: usize) -> Option<usize> {
    let part = &text[from..end];
    let mut reader = Reader { text, inline, meta: &mut Meta::default(), removed: Removed::default() };
    if part.ends_with([')', ']']) {
        let first = inline.brackets.partition_point(|(open, _)| *open < from);
        let within = inline.brackets[first..].iter().take_while(|(open, _)| *open < end);
        let (open, close) = *within.into_iter().find(|(_, close)| close + 1 == end)?;
        let inside = &text[open + 1..close];
        let fits = inside.len() <= BRACKET_BYTES_MAX && (reader.tag(trim(inside)) || reader.details(inside, open + 1));
        return fits.then_some(open);
    }
    let word = part.rsplit(char::is_whitespace).next()?;
    if !word.starts_with(['@', '!', '~', 'P']) {
        return None;
    }
    // "approved by @ann" speaks of her.
    let before = part[..part.len() - word.len()].trim_end().rsplit(' ').next().unwrap_or("");
    if ["by", "to", "for", "of", "or"].contains(&before) {
        return None;
    }
    let start = end - word.len();
    reader.tags(from, end);
    reader.removed.iter().any(|(at, _)| *at == start).then_some(start)
}

impl Reader<'_> {
    /// `@name` and `!high`.
    pub(super) fn tags(&mut self, from: usize, to: usize) {
        let text = self.text;
        if !self.inline.has(bytes::TAG) {
            return;
        }
        let fresh = |at: usize| text[from..at].chars().next_back().is_none_or(|c| c.is_whitespace() || c == '(');
        let mut atoms = self.inline.within(from, to).iter().filter(|atom| atom.kind != AtomKind::Word).peekable();
        let signs = text.as_bytes()[from..to].iter().enumerate();
        for (offset, sign) in signs.filter(|(_, byte)| matches!(byte, b'@' | b'!' | b'~')) {
            let (at, c) = (from + offset, char::from(*sign));
            while atoms.next_if(|atom| atom.end <= at).is_some() {}
            if !fresh(at) || atoms.peek().is_some_and(|atom| atom.start <= at) {
                continue;
            }
            let rest = &text[at + 1..to];
            if let Some(length) = self.short_tag(c, rest) {
                self.removed.push((at, at + 1 + length));
                continue;
            }
            let length = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')).count();
            let name = rest[..length].trim_end_matches(['-', '_']);
            let ends = rest[name.len()..]
                .chars()
                .next()
                .is_none_or(|c| c.is_whitespace() || matches!(c, ',' | '.' | ')' | ';' | ':' | '!'));
            if name.is_empty() || !ends {
                continue;
            }
            if c == '@' && addressed(&self.text[from..at]) {
                continue;
            }
            if c == '@' && self.meta.assignee.is_none() {
                self.meta.assignee = Some(name.to_owned());
            } else if c == '!' && is_priority(name) {
                self.meta.priority = Some(name.to_owned());
            } else {
                continue;
            }
            self.removed.push((at, at + 1 + name.len()));
        }
        self.last_word(from, to);
    }

    /// `P1` behind other tags at the end.
    fn last_word(&mut self, from: usize, to: usize) {
        let part = self.text[from..to].trim_end();
        let Some((before, word)) = part.rsplit_once(' ') else { return };
        let urgent = matches!(word.as_bytes(), [b'P', b'0'..=b'4']) && self.meta.priority.is_none();
        let tagged = before.rsplit(' ').next().is_some_and(|tag| tag.starts_with(['@', '~', '#', '!']));
        if urgent && tagged {
            self.meta.priority = Some(word.to_owned());
            self.removed.push((from + before.len(), from + part.len()));
        }
    }

    /// `!!`, `!!!` and, at the end, `~2h`: the bytes after the first sign.
    fn short_tag(&mut self, sign: char, rest: &str) -> Option<usize> {
        let word = &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())];
        match (sign, word) {
            ('!', "!" | "!!") => {
                self.meta.priority = Some(if word.len() == 1 { "high" } else { "critical" }.to_owned());
                Some(word.len())
            }
            ('~', _) if word.starts_with(|c: char| c.is_ascii_digit()) => {
                let after = rest[word.len()..].trim_start();
                let last = after.is_empty() || after.starts_with(['@', '!', '(', '#', '[']);
                (last && self.meta.set.read(&format!("~{}", word.trim_end_matches(['.', ','])))).then_some(word.len())
            }
            _ => None,
        }
    }
}

/// "notify @ann": whoever is named is spoken to and does not do it.
fn addressed(before: &str) -> bool {
    let word = before.trim_end().rsplit([' ', '(']).next().unwrap_or("");
    [
        "notify", "ping", "page", "cc", "ask", "tell", "email", "message", "contact", "thank", "mention", "invite",
        "with", "from", "and",
    ]
    .iter()
    .any(|one| one.eq_ignore_ascii_case(word))
}
