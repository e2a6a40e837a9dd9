//! Waits in the words of a step: "depends on 2", "after step 3", "before the release", "1 and 2 must pass before ...".

use super::draft::Reference;
use super::meta::Reader;
use super::phrases::{Words, after_word, begins, list, strip_prefix_ci};
use super::text::collapse;
use super::{references, relations, starts, vocabulary};

/// Words before the names of tasks to wait for.
pub(super) static WAITS: Words = Words::new(|| {
    list(
        "depends on|dependent on|depending on|depend on|depends|dependencies|dependency|deps|as soon as|after|\
     blocked by|\
     blocked on|needs|requires|waits for|wait for|waiting for|waiting on|following|once|prerequisites|\
     prerequisite|depende de|h\u{e4}ngt ab von|abh\u{e4}ngig von|d\u{e9}pend de|dipende da|nach|apr\u{e8}s|despu\u{e9}s de|depois de|dopo|依赖于|依赖|取决于|после|зависит от|\u{2190}|<-",
    )
});
pub(super) static BEFORE: Words = Words::new(|| list("before|blocks|unblocks|prior to|must precede|precedes"));
/// What may follow names without changing what is meant.
static DONE: Words = Words::new(|| {
    list(
        "are done|is done|are complete|is complete|are completed|is completed|are finished|is finished|completes|\
     complete|finishes|finish|have finished|has finished|are ready|is ready|are merged|is merged|passes|pass|\
     succeeds|succeed|lands|land|done",
    )
});

impl Reader<'_> {
    /// "depends on 2", "after step 3", "before T4" in running text.
    pub(super) fn phrases(&mut self, from: usize, to: usize) {
        let first = self.inline.guards.partition_point(|(_, end)| *end <= from);
        let mut guards = self.inline.guards[first..].iter().peekable();
        let text = self.text;
        let fresh = |at: usize| {
            let before = text[from..at].chars().next_back();
            before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '-' | '_' | '/' | '.'))
        };
        // Where a text is read from the midst of a word, one can begin there too.
        let inside = from.checked_sub(1).is_some_and(|before| text.as_bytes()[before].is_ascii_alphanumeric());
        let first = (inside && starts::waits(&text.as_bytes()[from..])).then_some(from);
        let mut at = from;
        for begin in first.into_iter().chain(self.inline.starts.of(starts::WAIT, from)).take_while(|begin| *begin < to)
        {
            if begin < at {
                continue;
            }
            at = begin + 1;
            while guards.next_if(|(_, end)| *end <= begin).is_some() {}
            if let Some((_, end)) = guards.peek().filter(|(start, _)| *start <= begin) {
                at = *end;
            } else if fresh(begin)
                && let Some(end) = self.phrase(begin, from, to)
            {
                at = end.max(at);
            }
        }
    }

    fn phrase(&mut self, at: usize, from: usize, to: usize) -> Option<usize> {
        let rest = &self.text[at..to];
        let before = self.text[from..at].trim();
        let only = ["only", "but", "but only"].iter().any(|word| before.eq_ignore_ascii_case(word));
        let first = self.text[from..at].len() < 64 && (before.is_empty() || only);
        let cut = if only { from } else { at };
        let beside = after_word(rest, "in parallel");
        let next_to = beside.and_then(|after| after_word(after, " with")).or_else(|| after_word(rest, "alongside"));
        if let Some(after) = next_to {
            (self.meta.parallel, self.meta.alongside) = (true, true);
            let tail = references::prefix(after.trim_start(), 0)
                .map(|(_, length)| after.len() - after.trim_start().len() + length);
            let end = tail.map_or(at + rest.len() - after.len(), |length| at + rest.len() - after.len() + length);
            return tail.map(|_| {
                self.removed.push((at, end));
                end
            });
        }
        if let Some(after) = beside.filter(|after| after.trim().is_empty() || first) {
            self.meta.parallel = true;
            let end = at + rest.len() - after.len();
            self.removed.push((at, end));
            return Some(end);
        }
        let (reversed, after) = match WAITS.after(rest) {
            Some(after) => (false, after),
            None if first && when_done(rest).is_some() => (false, when_done(rest)?),
            None if !first && ends_when_done(rest) => (false, after_word(rest, "when")?),
            None => (true, BEFORE.after(rest)?),
        };
        if reversed && let Some(end) = self.gate(from, at, to, after) {
            return Some(end);
        }
        let nothing = after.strip_prefix(':').filter(|none| !reversed && references::is_nothing(none));
        let free = if nothing.is_some() {
            Some(at)
        } else {
            Some(at).filter(|_| after.is_empty()).and_then(|at| none(self.text, from, at))
        };
        if let Some(begin) = free {
            self.meta.needs.get_or_insert_default();
            self.removed.push((begin, to));
            return Some(to);
        }
        let after = after.trim_start_matches(':');
        let names = at + (rest.len() - after.trim_start().len());
        if let Some((found, length)) = references::prefix(after.trim_start(), names) {
            let mut end = names + length;
            let mut tail = &self.text[end..to];
            if let Some(more) = DONE.after(tail.trim_start()) {
                tail = more;
            }
            // "after 2 weeks" and "needs 3 replicas" name no tasks.
            if !(tail.trim().is_empty() || tail.trim_start().starts_with([',', '.', ';', ')', ':'])) {
                return None;
            }
            if first {
                tail = tail.trim_start().trim_start_matches([',', ':']);
            }
            end = to - tail.len();
            if first {
                self.meta.begin = end;
            }
            self.refer(reversed, found);
            self.removed.push((trimmed_start(self.text, from, cut), end));
            return Some(end);
        }
        self.description(cut, to, first, reversed, rest, names)
    }

    /// "1 and 2 must pass before ...": what stands before "before" comes first, and what is said is what follows.
    fn gate(&mut self, from: usize, at: usize, to: usize, after: &str) -> Option<usize> {
        let start = to - after.trim_start().len();
        let subject = relations::gated(&self.text[from..at])?;
        let place = from + (subject.len() - subject.trim_start().len());
        let rest = self.text[start..to].trim_start();
        let says = rest.starts_with('`') || vocabulary::begins_with_verb(rest);
        let whole = |(_, length): &(Vec<Reference>, usize)| *length == subject.trim().len();
        let names = references::prefix(subject.trim(), place).filter(whole).map(|(names, _)| names);
        let names = names.or_else(|| says.then(|| vec![Reference::Phrase(subject.trim().to_owned(), place)]))?;
        self.refer(false, names);
        if says {
            self.meta.begin = start;
            self.removed.push((from, start));
        }
        Some(start)
    }

    /// "After the review, ..." and "... before the release".
    fn description(
        &mut self,
        at: usize,
        to: usize,
        first: bool,
        reversed: bool,
        rest: &str,
        names: usize,
    ) -> Option<usize> {
        let parted = self.text[..at].trim_end().ends_with(['-', '\u{2013}', '\u{2014}', ';']);
        let firm =
            begins(rest, &["depends on", "blocked by", "\u{2190}"]) || parted && begins(rest, &["needs", "requires"]);
        let timed = reversed || firm || begins(rest, &["after", "once", "as soon as", "when"]);
        if !timed || names >= to {
            return None;
        }
        let tail = &self.text[names..to];
        let end = names
            + tail
                .char_indices()
                .take(200)
                .find(|(_, c)| matches!(c, ',' | '\u{ff0c}' | ';' | '(') || (first && *c == ':'))
                .map_or(tail.len().min(tail.char_indices().nth(200).map_or(tail.len(), |(n, _)| n)), |(n, _)| n);
        let phrase = collapse(&self.text[names..end]).into_owned();
        let comma = self.text[end..to].chars().next().filter(|c| matches!(c, ',' | '\u{ff0c}' | ':'));
        if phrase.is_empty() || (first && comma.is_none()) {
            return None;
        }
        self.refer(reversed, vec![Reference::Phrase(phrase, names)]);
        if first {
            self.meta.led |= !reversed;
            let end = end + comma.map_or(0, char::len_utf8);
            self.meta.begin = end;
            self.removed.push((at, end));
            return Some(end);
        }
        Some(end)
    }

    fn refer(&mut self, reversed: bool, found: Vec<Reference>) {
        if reversed {
            self.meta.before.extend(found);
        } else {
            self.meta.needs.get_or_insert_default().extend(found);
        }
    }
}

/// What follows "when" in "when the docs are done, ...": a wait and no condition.
fn when_done(text: &str) -> Option<&str> {
    let after = after_word(text, "when")?;
    let comma = after.char_indices().take(100).find(|(_, c)| matches!(c, ',' | ':')).map(|(at, _)| at)?;
    let said = &after[..comma];
    (DONE.iter().any(|done| said.ends_with(done) && done.contains(' ')) || is_made(said.trim_start())).then_some(after)
}

/// "when everything else is done" at the end: a wait for what is named, and no condition.
fn ends_when_done(text: &str) -> bool {
    let Some(after) = after_word(text, "when") else { return false };
    let said = after.trim_start();
    let named = references::prefix(said, 0).and_then(|(_, length)| said.get(length..));
    named.and_then(after_done).is_some_and(|rest| rest.trim_end_matches(['.', '!']).is_empty())
}

/// What follows "are done" and its like.
pub(super) fn after_done(text: &str) -> Option<&str> {
    DONE.after(text.strip_prefix(' ')?)
}

/// "the image is built": a step that was done, and no event that comes now and then.
fn is_made(said: &str) -> bool {
    static MADE: Words = Words::new(|| {
        list(
            "built|deployed|installed|created|written|implemented|published|approved|tested|pushed|migrated|released|\
             fixed|reviewed|uploaded|downloaded|generated|trained|compiled|merged|set up|in place",
        )
    });
    let made = |be: &str| said.split_once(be).is_some_and(|(_, made)| MADE.contains(made));
    let be = [" is ", " are ", " has been ", " have been ", " was ", " were "];
    strip_prefix_ci(said, "the ").is_some() && be.iter().any(|be| made(be))
}

fn trimmed_start(text: &str, from: usize, at: usize) -> usize {
    let before = text[from..at].trim_end_matches([' ', ',', ';', '\u{2014}', '\u{2013}', '-']);
    from + before.len()
}

/// Where the "no" of "no deps" begins, with the dash before it.
fn none(text: &str, from: usize, at: usize) -> Option<usize> {
    let before = text[from..at].strip_suffix(' ')?;
    let (before, no) = before.split_at_checked(before.len().checked_sub(2)?)?;
    if !no.eq_ignore_ascii_case("no") {
        return None;
    }
    let apart = before.is_empty() || before.ends_with([' ', '\u{2014}', '\u{2013}', '-', ',', ';', '.']);
    apart.then(|| from + before.trim_end_matches([' ', '\u{2014}', '\u{2013}', '-']).len())
}

/// A name without "is done" after it.
pub(super) fn undone(text: &str) -> &str {
    if !text.contains(' ') {
        return text;
    }
    DONE.iter()
        .filter_map(|word| text.strip_suffix(word)?.strip_suffix(' '))
        .min_by_key(|name| name.len())
        .unwrap_or(text)
}
