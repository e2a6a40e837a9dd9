//! Words and markup: formats numbers, times and texts for the page. Texts from the log cannot become markup.

use std::fmt::{Display, Formatter};

use askama::Template;
use askama::filters::HtmlSafe;
use crewlog_mq::Timestamp;
use crewlog_planner::lifecycle::State;

pub use crate::ui::text::one_line as cut;
use crate::ui::text::{rfc3339, visible};
use crate::views::{Counts, time_of_day};
pub use crate::views::{name_of_value, of_executor};

/// The states from bottom to top and from left to right, each with its class in drawings.
pub const LAYERS: [(&str, &[State]); 7] = [
    ("f-done", &[State::Done]),
    ("f-fail", &[State::Failed, State::Interrupted]),
    ("f-run", &[State::Running]),
    ("f-wait", &[State::WaitingForYou]),
    ("f-queue", &[State::Ready, State::Waiting]),
    ("f-plan", &[State::Planned, State::Paused]),
    ("f-skip", &[State::Skipped, State::Cancelled]),
];

/// Markup written by this program, which templates insert unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Markup(pub String);

impl Display for Markup {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for Markup {}

impl Markup {
    /// The markup of a template.
    pub fn of(template: &impl Template) -> Self {
        Self(template.render().expect("a template of the page writes to memory, and nothing in it fails"))
    }
}

/// A text escaped for use between tags or in an attribute.
pub fn escaped(text: &str) -> String {
    let pairs = [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;"), ('\'', "&#39;")];
    pairs.into_iter().fold(text.to_owned(), |markup, (c, entity)| markup.replace(c, entity))
}

/// A text of several lines, of at most `chars_max` characters, and true if it is complete.
pub fn whole(text: &str, chars_max: usize) -> (String, bool) {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => (visible(&text[..end]), false),
        None => (visible(text), true),
    }
}

/// `18204` as `18,204`.
pub fn grouped(n: impl Display) -> String {
    let digits = n.to_string();
    let n_digits = digits.trim_start_matches('-').len();
    let mut grouped = String::new();
    for (n_left, digit) in (1..=digits.len()).rev().zip(digits.chars()) {
        if n_left.is_multiple_of(3) && n_left < n_digits {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A text in one line with its `code` as code.
pub fn rich(text: &str, chars_max: usize) -> Markup {
    let text = escaped(&cut(text, chars_max));
    let n_marks = text.matches('`').count();
    let mut markup = String::new();
    for (n, part) in text.split('`').enumerate() {
        match n % 2 {
            1 if n < n_marks => markup.push_str(&format!("<code>{part}</code>")),
            // The last mark of an odd number opens nothing.
            1 => markup.push_str(&format!("`{part}")),
            _text => markup.push_str(part),
        }
    }
    Markup(markup)
}

/// The most informative line of an error: the first that names a failure, or the first after the exit code.
pub fn telling_line(error: &str) -> &str {
    const NAMES: [&str; 6] = ["error", "failed", "failure", "fatal", "panicked", "exception"];
    let lines = || error.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("exit code"));
    let names_it = |line: &&str| NAMES.iter().any(|name| line.to_lowercase().contains(name));
    lines().find(names_it).or_else(|| lines().next()).unwrap_or(error)
}

/// A text element, and a link with a text.
pub fn span(text: &str) -> Markup {
    Markup(format!("<span dir=\"auto\">{}</span>", escaped(text)))
}

pub fn link(href: &str, text: &str) -> Markup {
    Markup(format!("<a href=\"{}\"><bdi>{}</bdi></a>", escaped(href), escaped(text)))
}

/// The first few items as text, and the number of the others.
pub fn some_of<T>(all: &[T], n_max: usize, words: impl Fn(&T) -> String) -> String {
    let mut named: Vec<_> = all.iter().take(n_max).map(words).collect();
    named.extend((all.len() > n_max).then(|| format!("{} more", all.len() - n_max)));
    named.join(", ")
}

/// A time of day; the script writes it in the reader's time zone.
pub fn at_clock(rfc3339: &str) -> Markup {
    timed("data-clock", rfc3339)
}

/// A time of day, which the script replaces by the time since then, or until then.
pub fn ago(rfc3339: &str) -> Markup {
    timed("data-ago", rfc3339)
}

fn timed(how: &str, moment: &str) -> Markup {
    Markup(format!("<time {how} datetime=\"{moment}\" title=\"{moment}\">{}</time>", time_of_day(moment)))
}

/// The time of day of a log time; empty before the first event.
pub fn clock_of(moment: Timestamp) -> Markup {
    if moment == Timestamp::default() { Markup("the beginning".to_owned()) } else { at_clock(&rfc3339(moment)) }
}

/// A length of time in at most two units: `1 h 48 min`.
pub fn lasting(us: i64) -> String {
    let seconds = us.max(0) / 1_000_000;
    match (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, 0) => format!("{hours} h"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, 0, _) => format!("{days} d"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// The word for a state with its sign.
pub fn pill_of(state: State) -> Markup {
    pill(state.as_str(), state.words())
}

pub fn pill(class: &str, word: &str) -> Markup {
    Markup(format!("<span class=\"s s-{class}\">{}</span>", escaped(word)))
}

/// The tasks of a plan as a bar, with its words for screen readers.
pub fn progress(counts: &Counts) -> Markup {
    let n_tasks = counts.iter().sum::<u32>().max(1);
    let mut bar = format!(
        "<svg class=\"progress\" width=\"100%\" height=\"8\" role=\"img\" aria-label=\"{}\">",
        of_counts(counts)
    );
    let mut x = 0.0;
    for (class, states) in &LAYERS {
        let width =
            f64::from(states.iter().map(|state| counts[*state as usize]).sum::<u32>()) * 100.0 / f64::from(n_tasks);
        if width > 0.0 {
            bar.push_str(&format!("<rect class=\"{class}\" x=\"{x:.1}%\" width=\"{width:.1}%\" height=\"8\"/>"));
        }
        x += width;
    }
    Markup(bar + "</svg>")
}

/// `9 done, 2 running`; states without tasks are omitted.
pub fn of_counts(counts: &Counts) -> String {
    let some = State::ALL.iter().map(|state| (counts[*state as usize], *state)).filter(|(n, _)| *n > 0);
    let words: Vec<_> = some.map(|(n, state)| format!("{} {}", grouped(n), state.words())).collect();
    if words.is_empty() { "no tasks".to_owned() } else { words.join(", ") }
}
