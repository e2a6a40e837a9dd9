//! The known names that are nearest to a mistyped one.

use strsim::osa_distance;

/// The most names that are suggested.
const SUGGESTED_MAX: usize = 3;
/// The most typing errors in a name.
const ERRORS_MAX: usize = 3;

/// The names with the fewest typing errors, if these are few for the length of the typed name.
pub fn similar<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    if typed.is_empty() {
        return Vec::new();
    }
    let typed = typed.to_lowercase();
    let n_chars = typed.chars().count();
    let errors_max = (n_chars / 4).min(ERRORS_MAX).max(usize::from(n_chars > 1));
    let errors = |name: &'a str| (errors_in(&typed, n_chars, &name.to_lowercase()), name);
    let near = known.into_iter().map(errors).filter(|(errors, _)| *errors <= errors_max).collect::<Vec<_>>();
    let least = near.iter().map(|(errors, _)| *errors).min();
    near.into_iter().filter(|(errors, _)| Some(*errors) == least).map(|(_, name)| name).take(SUGGESTED_MAX).collect()
}

/// The least number of typing errors in a name, or in a part of it that begins with a word: people abbreviate names.
fn errors_in(typed: &str, n_chars: usize, name: &str) -> usize {
    let words = name.match_indices(['-', '/', ' ']).map(|(at, separator)| &name[at + separator.len()..]);
    let parts = std::iter::once(name).chain(words).flat_map(|rest| {
        let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
        ends.skip(n_chars.saturating_sub(1)).take(3).map(move |end| &rest[..end])
    });
    parts.chain([name]).map(|part| osa_distance(typed, part)).min().unwrap_or(n_chars)
}

#[cfg(test)]
mod tests {
    use super::similar;

    #[test]
    fn a_mistyped_name_suggests_the_nearest_names() {
        let plans = ["nightly-check-ab12", "release-the-shop-yx5x", "release-notes-77aa", "backlog"];
        let tasks = ["T001", "T012", "Deploy/2", "1", "2"];
        let cases: [(&str, &[&str], &[&str]); 14] = [
            ("nightli", &plans, &["nightly-check-ab12"]),
            ("Nightly", &plans, &["nightly-check-ab12"]),
            ("check-ab13", &plans, &["nightly-check-ab12"]),
            ("relaese", &plans, &["release-the-shop-yx5x", "release-notes-77aa"]),
            ("notse", &plans, &["release-notes-77aa"]),
            ("backlgo", &plans, &["backlog"]),
            ("release-the-shop-yx5y", &plans, &["release-the-shop-yx5x"]),
            ("paint", &plans, &[]),
            ("backlog-ab1", &plans, &[]),
            ("release-notes-8cd2", &plans, &[]),
            ("T01", &tasks, &["T001", "T012"]),
            ("Deploy/3", &tasks, &["Deploy/2"]),
            ("9", &tasks, &[]),
            ("", &tasks, &[]),
        ];
        for (typed, known, suggested) in cases {
            assert_eq!(similar(typed, known.iter().copied()), suggested, "{typed}");
        }
    }
}
