//! The known names that are nearest to a mistyped one.

use strsim::osa_distance;

const SUGGESTED_MAX: usize = 3;
const ERRORS_MAX: usize = 3;

/// The names with the fewest typing errors, if these are few for the length of the typed name. Whole names come before
/// parts that begin with a word: people abbreviate names.
pub fn similar<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let typed = typed.to_lowercase();
    let n_chars = typed.chars().count();
    let errors_max = (n_chars / 4).min(ERRORS_MAX).max(usize::from(n_chars > 1));
    let known = known.into_iter().filter(|_| n_chars > 0).map(|name| (name, name.to_lowercase())).collect::<Vec<_>>();
    let nearest = |errors: &dyn Fn(&str) -> usize| {
        let near = known.iter().map(|(name, lower)| (errors(lower), *name)).filter(|(n, _)| *n <= errors_max);
        let near = near.collect::<Vec<_>>();
        let least = near.iter().map(|(errors, _)| *errors).min();
        let nearest = near.into_iter().filter(|(errors, _)| Some(*errors) == least).map(|(_, name)| name);
        nearest.take(SUGGESTED_MAX).collect::<Vec<_>>()
    };
    let whole = nearest(&|name| osa_distance(&typed, name));
    if whole.is_empty() { nearest(&|name| errors_in_parts(&typed, n_chars, name)) } else { whole }
}

/// The least number of typing errors in a part of about the same length.
fn errors_in_parts(typed: &str, n_chars: usize, name: &str) -> usize {
    let words = name.match_indices(['-', '/', ' ']).map(|(at, separator)| &name[at + separator.len()..]);
    let parts = std::iter::once(name).chain(words).flat_map(|rest| {
        let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
        ends.skip(n_chars.saturating_sub(1)).take(3).map(move |end| &rest[..end])
    });
    parts.map(|part| osa_distance(typed, part)).min().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
