//! Redacts secrets in what agents write, before it is appended: an append-only log keeps them for ever.

use regex::{Regex, RegexBuilder};

/// What takes the place of a secret.
const REDACTED: &str = "[redacted]";
/// The shortest value of a variable that counts as a secret; shorter ones occur in any text.
const VALUE_BYTES_MIN: usize = 6;
/// How large a compiled pattern may be, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// The secrets that are configured.
#[derive(Debug, Default)]
pub struct Secrets {
    patterns: Vec<Regex>,
    values: Vec<String>,
}

impl Secrets {
    /// What these patterns match, and the values that these environment variables have now.
    pub fn of(patterns: &[String], variables: &[String]) -> Self {
        let values = variables.iter().filter_map(|name| std::env::var(name).ok());
        Self {
            patterns: patterns.iter().filter_map(|pattern| compiled(pattern).ok()).collect(),
            values: values.filter(|value| value.len() >= VALUE_BYTES_MIN).collect(),
        }
    }

    /// The text with each secret replaced.
    pub fn redacted(&self, text: &str) -> String {
        let text = self.values.iter().fold(text.to_owned(), |text, value| text.replace(value, REDACTED));
        self.patterns.iter().fold(text, |text, pattern| pattern.replace_all(&text, REDACTED).into_owned())
    }
}

/// Compiles a pattern. One that matches the empty text is refused.
pub fn compiled(pattern: &str) -> Result<Regex, String> {
    let compiled = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).build();
    let compiled = compiled.map_err(|error| format!("{pattern:?} is no pattern: {error}").replace('\n', " "))?;
    if compiled.is_match("") {
        return Err(format!("the pattern {pattern:?} matches the empty text: write one that matches secrets only"));
    }
    Ok(compiled)
}
