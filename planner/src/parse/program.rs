//! Recognises programs and placeholders in a text that may be a command.

use std::sync::LazyLock;

use regex::Regex;

/// True for a text that is a command by itself.
pub(super) fn may_run(command: &str) -> bool {
    is_program(command) && placeholder(command).is_none()
}

/// True for code that begins with a program in small letters (`python3.12`, not `app.py`) or a path, after assignments.
pub(super) fn is_program(code: &str) -> bool {
    static PROGRAM: LazyLock<Regex> = LazyLock::new(|| {
        let path = "[A-Za-z0-9_.@-]*/[A-Za-z0-9_.@/-]*";
        let name = r"[a-z_][A-Za-z0-9_+-]*(?:\.[0-9.]*)?";
        Regex::new(&format!("^[ \t\r\n]*(?:[A-Z0-9_]*=[^ \t\r\n]*[ \t\r\n]+)*(?:{path}|{name})(?:[ \t\r\n]|$)"))
            .expect("it is a constant")
    });
    PROGRAM.is_match(code)
}

/// The placeholder in a command, if it has one.
pub(super) fn placeholder(command: &str) -> Option<String> {
    static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| {
        // Characters beyond ASCII count as letters.
        let letter = r"[A-Za-z\x{80}-\x{10ffff}]";
        let name = &format!(r"{letter}(?:{letter}|[0-9_-])*(?:\.(?:{letter}|[0-9_-])+)*");
        let parts = [
            r"\$\{[A-Za-z0-9_]*", // Not a placeholder: a variable.
            &format!(r"<{letter}(?:[^<>$\n]*[^<>$\s])?>"),
            &format!(r"\{{(?:\{{[^{{}}\n]*|{name})\}}"),
            &format!(r"(?:^|\s)\[(?:--[^\[\]\n]*|{name})\]"),
            r"\u{2026}|___|path/to/|(?:^|\s)\.\.\.(?:\s|$)",
            r"(?-u:\b)(?:YYYY|XXX|[vV]?[xX]\.[yY][0-9A-Za-z_.]*|[0-9A-Za-z_.]*\.[xX]\.[xX]|[yY][oO][uU][rR](?:_[A-Za-z0-9_]*)?)(?-u:\b)",
        ];
        Regex::new(&parts.join("|")).expect("it is a constant")
    });
    let is_variable = |word: &&str| {
        *word == "VERSION"
            || word.len() > 3 && word.contains('_') && word.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
    };
    let mut parts = PLACEHOLDER.find_iter(command).map(|part| part.as_str().trim());
    // Words in quotes may be code of another language.
    let mut words = command.split(['"', '\'']).step_by(2).flat_map(str::split_ascii_whitespace);
    let found = parts.find(|part| !part.starts_with('$')).or_else(|| words.find(is_variable));
    found.map(|part| format!("it has a placeholder: {part}"))
}
