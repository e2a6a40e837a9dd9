//! The parts of what is told of a plan: which of their lines have room together. It knows no plan.

use std::borrow::Cow;
use std::ops::Range;

use crate::brevity::{n_chars, shorten};

/// The lines of a part, by their places.
pub(crate) trait Lines {
    /// How many places there are.
    fn n_places(&self) -> usize;

    /// The characters of a line, its end included; none where nothing is told.
    fn n_chars_at(&self, place: usize) -> Option<usize>;

    /// Whether some lines are told before the others.
    fn has_first(&self) -> bool {
        false
    }

    /// Whether a line is one of those.
    fn is_first(&self, _place: usize) -> bool {
        false
    }

    /// Puts the lines of some places behind a text, each with its end.
    fn write(&self, places: Range<usize>, text: &mut String);
}

/// A part of the context.
pub(crate) struct Part<'a> {
    pub(crate) title: &'static str,
    pub(crate) lines: &'a dyn Lines,
    /// How many lines may be told.
    pub(crate) n_lines: usize,
    /// Their characters, with their ends.
    pub(crate) n_chars: usize,
    /// How many there are beside them.
    pub(crate) n_more: usize,
    pub(crate) keeps: Keeps,
}

/// Which lines of a part are told when not all can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// The first, and of the next what has room.
    Beginning,
    /// The first.
    First,
    /// The last.
    Last {
        /// More has been left out before.
        is_more: bool,
    },
}

impl Part<'_> {
    /// What all of it takes, but for its title.
    pub(crate) fn n_chars(&self) -> usize {
        self.n_chars + n_chars(&self.mark(self.n_more))
    }

    /// The line for what is left out, and its end.
    fn mark(&self, n_left_out: usize) -> Cow<'static, str> {
        match self.keeps {
            Keeps::Last { is_more } if is_more || n_left_out > 0 => {
                Cow::Borrowed("(more has happened than is told here)\n")
            }
            Keeps::First if n_left_out > 0 => Cow::Owned(format!("({n_left_out} more are not told here)\n")),
            Keeps::Beginning | Keeps::First | Keeps::Last { .. } => Cow::Borrowed(""),
        }
    }

    /// Puts the part with its title behind a text, where its lines take at most `limit` characters.
    pub(crate) fn tell(&self, limit: usize, text: &mut String) {
        if self.n_chars() <= limit {
            let all = |text: &mut String| self.lines.write(0..self.lines.n_places(), text);
            return self.write(self.n_more, all, text);
        }
        let mark = n_chars(&self.mark(self.n_more + self.n_lines));
        let Some(mut left) = limit.checked_sub(mark) else { return };
        let mut is_told = vec![false; self.lines.n_places()];
        let mut last = None;
        for place in self.order() {
            let Some(n_chars) = self.lines.n_chars_at(place) else { continue };
            let Some(less) = left.checked_sub(n_chars) else {
                if self.keeps == Keeps::Beginning {
                    let mut line = String::new();
                    self.lines.write(place..place + 1, &mut line);
                    let shown = line.strip_suffix('\n').unwrap_or(&line);
                    last = Some(shorten(shown, left.saturating_sub(1))).filter(|line| !line.is_empty());
                }
                break;
            };
            left = less;
            is_told[place] = true;
        }
        let n_told = is_told.iter().filter(|is_told| **is_told).count() + usize::from(last.is_some());
        if n_told == 0 {
            return;
        }
        let chosen = |text: &mut String| {
            let mut place = 0;
            for same in is_told.chunk_by(|one, other| one == other) {
                if same[0] {
                    self.lines.write(place..place + same.len(), text);
                }
                place += same.len();
            }
            if let Some(last) = &last {
                text.push_str(last);
                text.push('\n');
            }
        };
        self.write(self.n_more + self.n_lines - n_told, chosen, text);
    }

    /// The places as they have a claim to be told.
    fn order(&self) -> impl Iterator<Item = usize> {
        let n_places = self.lines.n_places();
        let is_backwards = matches!(self.keeps, Keeps::Last { .. });
        let places = move || (0..n_places).map(move |nth| if is_backwards { n_places - 1 - nth } else { nth });
        let has_first = self.lines.has_first();
        let ranked =
            move |is_first: bool| places().filter(move |place| !has_first || self.lines.is_first(*place) == is_first);
        has_first.then(|| ranked(true)).into_iter().flatten().chain(ranked(false))
    }

    fn write(&self, n_left_out: usize, lines: impl Fn(&mut String), text: &mut String) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(self.title);
        let mark = self.mark(n_left_out);
        match self.keeps {
            Keeps::Last { .. } => {
                text.push_str(&mark);
                lines(text);
            }
            Keeps::Beginning | Keeps::First => {
                lines(text);
                text.push_str(&mark);
            }
        }
    }
}

/// Lines that were made for this once.
impl Lines for Vec<Cow<'_, str>> {
    fn n_places(&self) -> usize {
        self.len()
    }

    fn n_chars_at(&self, place: usize) -> Option<usize> {
        Some(n_chars(&self[place]) + 1)
    }

    fn write(&self, places: Range<usize>, text: &mut String) {
        for line in &self[places] {
            text.push_str(line);
            text.push('\n');
        }
    }
}
