//! The target of a lease: a file, a folder or a pattern in a repository, in normal form; or a thing of the machine.
//!
//! Paths are relative to the root of the worktree, use slashes, have no `.` and `..`, and are in Unicode NFC. This module
//! reads no file system, so callers resolve links first. A thing is written `@KIND:NAME`, as `@port:5432`. It overlaps with
//! itself alone, in all worktrees. A path that looks like one starts with `./`.

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use super::globs::{GLOB_BYTES_MAX, GLOB_COMPONENTS_MAX, Pattern};
use super::names::is_below;

const WILDCARDS: [char; 4] = ['*', '?', '[', '{'];

/// A file, a folder with all that is in it, a pattern, or a thing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// From the root of the worktree, or `@KIND:NAME`.
    pub path: String,
    /// False if wildcard characters are literal, as in `app/[id]/page.tsx`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_pattern: bool,
}

/// The reason why a text is not a valid target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum TargetError {
    #[error("a path is empty: name a file, a folder or a pattern")]
    Empty,
    #[error("{path:?} has a control character")]
    Control { path: String },
    #[error("{path} is outside the repository: use a path relative to its root")]
    Outside { path: String },
    #[error("{path} is the whole repository: name the files or folders that you change")]
    TooBroad { path: String },
    #[error(
        "{path}... has {n_bytes} bytes or too many parts; at most {GLOB_BYTES_MAX} bytes, {GLOB_COMPONENTS_MAX} folders"
    )]
    TooLong { path: String, n_bytes: usize },
    #[error("{path} has too many alternatives, or `..` beside braces: write the patterns one by one")]
    TooComplex { path: String },
    #[error(
        "{text} is no thing of the form @KIND:NAME, as @port:5432: KIND has letters, digits and `-`, NAME no blanks and none of \
         `/\\*?[]{{}}`, in at most {GLOB_BYTES_MAX} bytes; write ./{text} for a file"
    )]
    NoThing { text: String },
}

impl Target {
    /// A file or folder; wildcard characters are literal.
    ///
    /// # Errors
    /// A [`TargetError`] for a path that is empty, too long or the whole repository, leaves it, or has control
    /// characters.
    pub fn literal(path: &str) -> Result<Self, TargetError> {
        Self::new(path, false)
    }

    /// A pattern if it has wildcards, else a file or folder.
    ///
    /// # Errors
    /// Those of [`Target::literal`], and a pattern with too many alternatives.
    pub fn written(text: &str) -> Result<Self, TargetError> {
        Self::new(text, text.contains(WILDCARDS))
    }

    /// The thing that a text names; `None` for a path.
    ///
    /// # Errors
    /// A text that begins like a thing and is none.
    pub fn thing(text: &str) -> Option<Result<Self, TargetError>> {
        let (kind, name) = text.strip_prefix('@').filter(|_| is_like_thing(text))?.split_once(':')?;
        let is_refused = |c: char| c.is_whitespace() || c.is_control() || "/\\*?[]{}".contains(c);
        let is_kind = !kind.is_empty() && kind.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let is_named = !name.is_empty() && !name.contains(is_refused) && text.len() <= GLOB_BYTES_MAX;
        let thing = || Self { path: text.nfc().collect(), is_pattern: false };
        let refused = || TargetError::NoThing { text: text.chars().take(80).collect::<String>() };
        Some((is_kind && is_named).then(thing).ok_or_else(refused))
    }

    /// True for a thing, which is the same in all worktrees.
    #[must_use]
    pub fn is_thing(&self) -> bool {
        is_like_thing(&self.path)
    }

    fn new(written: &str, is_pattern: bool) -> Result<Self, TargetError> {
        let path = written.replace('\\', "/");
        let shown = || written.chars().take(80).collect::<String>();
        if path.trim().is_empty() {
            return Err(TargetError::Empty);
        }
        if path.chars().any(char::is_control) {
            return Err(TargetError::Control { path: shown() });
        }
        if path.starts_with('/') || path.starts_with("~/") || path.get(1..3) == Some(":/") {
            return Err(TargetError::Outside { path: shown() });
        }
        if is_pattern && path.contains('{') && path.split('/').any(|name| name == "..") {
            return Err(TargetError::TooComplex { path: shown() });
        }
        let names = resolved(&path).ok_or_else(|| TargetError::Outside { path: shown() })?;
        let is_any = |name: &&str| is_pattern && name.chars().all(|c| "*?.".contains(c));
        if names.iter().all(is_any) {
            return Err(TargetError::TooBroad { path: shown() });
        }
        let path: String = names.join("/").nfc().collect();
        if path.len() > GLOB_BYTES_MAX || names.len() > GLOB_COMPONENTS_MAX {
            return Err(TargetError::TooLong { path: shown(), n_bytes: path.len() });
        }
        if is_pattern && !Pattern::fits(&path) {
            return Err(TargetError::TooComplex { path: shown() });
        }
        let path = if is_like_thing(&path) { format!("./{path}") } else { path };
        Ok(Self { path, is_pattern })
    }

    /// The pattern that decides overlaps.
    #[must_use]
    pub fn pattern(&self) -> Pattern {
        if self.is_pattern { Pattern::new(None, &self.path) } else { Pattern::literal(&self.path) }
    }

    /// The file, or the folder that contains every path it matches: the part before the first wildcard.
    #[must_use]
    pub fn stem(&self) -> &str {
        match self.path.find(WILDCARDS).filter(|_| self.is_pattern) {
            Some(wildcard) => self.path[..wildcard].rfind('/').map_or("", |slash| &self.path[..slash]),
            None => &self.path,
        }
    }

    /// True if some path matches both, or is below a match of both.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let is_in = |path: &str, folder: &str| folder.is_empty() || is_below(path, folder);
        // Most targets are far apart, and creating patterns is slow.
        let are_near = is_in(self.stem(), other.stem()) || is_in(other.stem(), self.stem());
        are_near && self.is_thing() == other.is_thing() && self.pattern().overlaps(&other.pattern())
    }
}

/// True for a text that begins with `@`, and has a colon in its first part.
fn is_like_thing(text: &str) -> bool {
    text.starts_with('@') && text.split('/').next().is_some_and(|first| first.contains(':'))
}

/// The names of a path after resolving `.` and `..`; `None` if it leaves its root.
fn resolved(path: &str) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop()?;
            }
            name => names.push(name),
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_has_one_name() {
        for (written, path, stem) in [
            ("./a", "a", "a"),
            ("a//b/", "a/b", "a/b"),
            ("x/../a", "a", "a"),
            ("cafe\u{301}.md", "caf\u{e9}.md", "caf\u{e9}.md"),
            ("src\\a.rs", "src/a.rs", "src/a.rs"),
            ("src/*.rs", "src/*.rs", "src"),
            ("src/a*/b.rs", "src/a*/b.rs", "src"),
            ("{a,b}/c", "{a,b}/c", ""),
            ("**/*.rs", "**/*.rs", ""),
        ] {
            let target = Target::written(written).expect(written);
            assert_eq!((target.path.as_str(), target.stem()), (path, stem), "{written}");
        }
        let page = Target::literal("app/[id]/page.tsx").unwrap();
        assert_eq!(page.stem(), "app/[id]/page.tsx");
        assert!(!page.pattern().overlaps(&Target::literal("app/i/page.tsx").unwrap().pattern()));
        assert!(page.pattern().overlaps(&Target::written("app/**").unwrap().pattern()));
    }

    #[test]
    fn a_thing_has_a_kind_and_a_name() {
        for thing in ["@port:5432", "@db:test", "@GPU-0:a", "@url:host:80", "@db:caf\u{e9}", "@db:x.rs"] {
            let found = Target::thing(thing).expect(thing).expect(thing);
            assert!(found.is_thing() && found.path == thing, "{thing}");
            let file = Target::literal(thing).expect(thing);
            assert_eq!((file.path.as_str(), file.is_thing()), (format!("./{thing}").as_str(), false));
            assert_eq!(Target::written(&file.path).expect(thing), file, "it is read as it is shown");
            assert!(!found.overlaps(&file) && !found.overlaps(&Target::written("@*").unwrap()));
            assert!(file.overlaps(&Target::written("@*").unwrap()));
        }
        for path in ["@types", "@scope/a:b", "src/@port:5432", "./@port:5432", "port:5432"] {
            assert_eq!(Target::thing(path), None, "{path}");
        }
        let long = format!("@db:{}", "x".repeat(512));
        for wrong in
            ["@:1", "@port:", "@po rt:1", "@port:a b", "@port:a/b", "@port:*", "@port:[1]", "@p_q:1", "@db:a\n", &long]
        {
            let refused = Target::thing(wrong).expect(wrong).expect_err(wrong).to_string();
            assert!(refused.contains("of the form @KIND:NAME"), "{wrong}: {refused}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let long = "a/".repeat(300);
        let wide = "{a,b}".repeat(7);
        for (written, expected) in [
            ("", "is empty"),
            (" ", "is empty"),
            ("a\nb", "control character"),
            ("a\u{7f}", "control character"),
            ("../a", "outside"),
            ("a/../../b", "outside"),
            ("/etc/passwd", "outside"),
            ("~/a", "outside"),
            ("C:\\a", "outside"),
            (".", "the whole repository"),
            ("a/..", "the whole repository"),
            ("**", "the whole repository"),
            ("*/**", "the whole repository"),
            ("*.*", "the whole repository"),
            (&long, "at most 512 bytes"),
            (&wide, "one by one"),
            ("{a/../b,c}", "one by one"),
        ] {
            let refused = Target::written(written).expect_err(written).to_string();
            assert!(refused.contains(expected), "{written:?}: {refused}");
        }
    }
}
