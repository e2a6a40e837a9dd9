//! How many tokens a text is: guessed by its characters, and by what providers have said of texts before.
//!
//! The order is: what a provider reports, else what a tokenizer counts, else a guess that is corrected by the reports seen.
//! Here are the guess and its correction, in whole numbers, so that a fold of the log gives the same on any machine. No
//! tokenizer is known here: who has one counts with it, and says so in the usage.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::Usage;

/// So many characters make a token, when nothing better is known.
pub const CHARS_PER_TOKEN: usize = 4;
/// The most characters that a token is ever taken for. Less than one for two is never taken either.
pub const CHARS_PER_TOKEN_MAX: u128 = 6;
/// The most assignees whose reports are kept apart.
pub const GAUGES_MAX: usize = 100;

/// A guess counts in twelfths of a token.
const TWELFTHS: u64 = 12;
/// A text of other letters than English ones begins with its own guess when that gives fewer characters a token than this.
const CHARS_PER_TOKEN_OF_ENGLISH_MIN: u64 = 3;
/// What is told weighs so much for each character and token, so that a part of little is not rounded away.
const SCALE: u64 = 1 << 10;
/// What is taken for granted before the first report weighs as much as a text of 250 tokens.
const PRIOR_TOKENS: u64 = 250 * SCALE;
/// Of what was known, so many parts of [`PARTS`] count beside a new report.
const PARTS_KEPT: u64 = 3;
const PARTS: u64 = 4;
/// A report by which a text has more than so many times the tokens that are guessed, or less than that part of them, tells
/// of more than the text: an agent that reads files, or that told nobody.
const TIMES_MAX: u64 = 2;
/// No report counts for more than a text of so many characters.
const SAMPLE_MAX: u64 = 1 << 40;

/// A text that was told: its length, and what it is in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Told {
    /// Its characters.
    pub n_chars: u64,
    /// Its tokens as [`guess`] has them.
    pub n_guessed: u64,
}

impl Told {
    /// A text that is told.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self { n_chars: text.chars().count() as u64, n_guessed: guess(text) }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, more: Self) -> Self {
        let n_chars = self.n_chars.saturating_add(more.n_chars);
        Self { n_chars, n_guessed: self.n_guessed.saturating_add(more.n_guessed) }
    }

    /// True when nothing was told, or nobody says.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// The tokens of a text by its characters: a quarter of a token for an English letter or a blank, half of one for a
/// digit, a sign, and a letter with an accent or of another alphabet, one for a character of Chinese, Japanese or Korean and
/// for a picture. A blank among blanks is a twelfth: those of an indented line go together.
#[must_use]
pub fn guess(text: &str) -> u64 {
    let (mut twelfths, mut is_after_blank) = (0_u64, false);
    for c in text.chars() {
        let is_blank = matches!(c, ' ' | '\t');
        twelfths += match c {
            ' ' | '\t' if is_after_blank => 1,
            'a'..='z' | 'A'..='Z' | ' ' | '\t' | '\n' | '\r' => 3,
            '\0'..='\u{1fff}' => 6,
            '\u{2000}'..='\u{10ffff}' => 12,
        };
        is_after_blank = is_blank;
    }
    twelfths.div_ceil(TWELFTHS)
}

/// How texts and tokens have gone together, the later reports counting for more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gauge {
    /// Of texts that were told: their characters ...
    n_chars: u64,
    /// ... and their tokens as guessed.
    n_guessed: u64,
    /// Of texts of which somebody counted the tokens: as guessed ...
    n_guessed_of_counted: u64,
    /// ... and as counted.
    n_counted: u64,
}

impl Gauge {
    /// Before any report: four characters a token, or what the plan's own text says when that is far from it.
    fn of(source: &str) -> Self {
        let mut chars_of_prior = PRIOR_TOKENS * CHARS_PER_TOKEN as u64;
        if !source.is_ascii() {
            let Told { n_chars, n_guessed } = Told::of(source);
            if n_chars < n_guessed * CHARS_PER_TOKEN_OF_ENGLISH_MIN {
                chars_of_prior = (n_chars * PRIOR_TOKENS / n_guessed).max(1);
            }
        }
        let (n_guessed, n_counted) = (PRIOR_TOKENS, PRIOR_TOKENS);
        Self { n_chars: chars_of_prior, n_guessed, n_guessed_of_counted: PRIOR_TOKENS, n_counted }
    }

    fn take(&mut self, usage: &Usage) {
        let Told { n_chars, n_guessed } = usage.told;
        if n_guessed == 0 || n_chars == 0 || n_chars > SAMPLE_MAX || n_guessed > SAMPLE_MAX {
            return;
        }
        let joined = |known: u64, new: u64| (known * PARTS_KEPT / PARTS + new * SCALE).max(1);
        self.n_chars = joined(self.n_chars, n_chars);
        self.n_guessed = joined(self.n_guessed, n_guessed);
        let counted = usage.input_tokens;
        let is_of_the_text = counted <= n_guessed * TIMES_MAX && counted.saturating_mul(TIMES_MAX) >= n_guessed;
        if usage.estimated_tokens == 0 && is_of_the_text {
            self.n_guessed_of_counted = joined(self.n_guessed_of_counted, n_guessed);
            self.n_counted = joined(self.n_counted, counted);
        }
    }

    /// The tokens that so many guessed ones are.
    fn corrected(&self, n_guessed: u64) -> u64 {
        let tokens = u128::from(n_guessed) * u128::from(self.n_counted);
        saturated(tokens.div_ceil(u128::from(self.n_guessed_of_counted)))
    }

    /// Characters, and the tokens that they are.
    fn ratio(&self) -> (u128, u128) {
        let chars = u128::from(self.n_chars) * u128::from(self.n_guessed_of_counted);
        let tokens = u128::from(self.n_guessed) * u128::from(self.n_counted);
        if chars > tokens * CHARS_PER_TOKEN_MAX {
            return (CHARS_PER_TOKEN_MAX, 1);
        }
        if chars * 2 < tokens { (1, 2) } else { (chars, tokens) }
    }
}

fn saturated(n: u128) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// What is known of how texts and tokens go together: in the whole plan, and by who was to do a task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Gauges {
    /// Unset before there is a plan.
    all: Option<Gauge>,
    by_assignee: BTreeMap<String, Gauge>,
}

impl Gauges {
    /// Of a plan that begins with a text.
    pub(crate) fn of(source: &str) -> Self {
        Self { all: Some(Gauge::of(source)), by_assignee: BTreeMap::new() }
    }

    /// Takes in what was used up for a task of somebody, or of anybody.
    pub(crate) fn take(&mut self, assignee: Option<&str>, usage: &Usage) {
        if usage.told.is_nothing() {
            return;
        }
        let all = self.all();
        if let Some(name) = assignee
            && (self.by_assignee.contains_key(name) || self.by_assignee.len() < GAUGES_MAX)
        {
            self.by_assignee.entry(name.to_owned()).or_insert(all).take(usage);
        }
        self.all.insert(all).take(usage);
    }

    fn all(&self) -> Gauge {
        self.all.unwrap_or_else(|| Gauge::of(""))
    }

    fn for_assignee(&self, assignee: Option<&str>) -> Gauge {
        assignee.and_then(|name| self.by_assignee.get(name)).copied().unwrap_or_else(|| self.all())
    }

    /// The same usage; where its tokens are guessed, corrected by what was reported before.
    pub(crate) fn corrected(&self, assignee: Option<&str>, usage: Usage) -> Usage {
        let Usage { input_tokens, output_tokens, .. } = usage;
        if !usage.is_guessed() {
            return usage;
        }
        let (input_tokens, output_tokens) =
            (self.estimated(assignee, input_tokens), self.estimated(assignee, output_tokens));
        let estimated_tokens = input_tokens.saturating_add(output_tokens);
        Usage { input_tokens, output_tokens, estimated_tokens, ..usage }
    }

    /// The tokens that so many guessed ones are, for somebody.
    pub(crate) fn estimated(&self, assignee: Option<&str>, n_guessed: u64) -> u64 {
        self.for_assignee(assignee).corrected(n_guessed)
    }

    /// The characters that so many tokens are, for somebody.
    pub(crate) fn n_chars(&self, assignee: Option<&str>, n_tokens: usize) -> usize {
        let (chars, tokens) = self.for_assignee(assignee).ratio();
        usize::try_from(n_tokens as u128 * chars / tokens).unwrap_or(usize::MAX)
    }

    /// The tokens that so many characters are, for somebody, rounded up.
    pub(crate) fn n_tokens(&self, assignee: Option<&str>, n_chars: usize) -> u64 {
        let (chars, tokens) = self.for_assignee(assignee).ratio();
        saturated((n_chars as u128 * tokens).div_ceil(chars))
    }
}
