//! Questions inside sentences: in brackets, in quotes, with their default answer behind them.

use super::inline::Inline;
use super::phrases::{Words, list, strip_prefix_ci};
use super::vocabulary;

/// With these a question in brackets begins.
static ASKS: Words = Words::new(|| {
    list(
        "who|whom|whose|what|which|when|where|why|how|is|are|do|does|did|should|shall|can|could|will|would|has|have|\
         with whom|with what|with which|for whom|for what|for which|by when|by whom|to whom|to what|from where|in which|on which|at what|at which",
    )
});

/// Where brackets open at the end of a sentence that ask something: "Buy the domain (who has the card?)".
pub(super) fn asides(text: &str, inline: &Inline) -> impl Iterator<Item = usize> {
    let asks = |open: usize, close: usize| {
        let inside = &text[open + 1..close];
        let after = text[close + 1..].trim_start_matches(['.', '!', ' ']);
        let then = after.trim_start_matches([',', ' ']).starts_with("then ");
        let ends = then || after.is_empty() || after.starts_with(['\n', ';']) || text[close + 1..].starts_with(". ");
        ends && inside.ends_with('?') && ASKS.after(inside).is_some()
    };
    inline.brackets.iter().filter(move |(open, close)| *open > 0 && asks(*open, *close)).map(|(open, _)| *open)
}

/// True for `Set the title to "Ready?"` and "Open an account (with whom?)": an instruction with a question in it.
pub(super) fn quotes_question(tail: &str) -> bool {
    let aside = tail.strip_suffix(')').and_then(|inside| inside.rfind('('));
    if aside.is_some_and(|open| open > 0) {
        return vocabulary::begins_with_verb(tail);
    }
    let quoted = tail.trim_end_matches([')', '*', '_', ' ']).strip_suffix(['"', '\u{201d}']);
    let open = quoted.and_then(|inside| inside.rfind(['"', '\u{201c}']));
    open.is_some_and(|open| open > 0) && vocabulary::begins_with_verb(tail)
}

/// What follows "(default" after a question.
pub(super) fn strip_default(after: &str) -> Option<&str> {
    strip_prefix_ci(after.trim_start(), "(default")
}
