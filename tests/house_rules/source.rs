//! A minimal parser of Rust for the house rules: code and comments, the extent of functions, tests.

/// A Rust file, or any other text, under its path from the root of the repository.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

pub(crate) struct Function {
    pub(crate) name: String,
    /// The line of the word `fn`, counted from 1.
    pub(crate) line: usize,
    /// From the word `fn` to the closing brace; 1 for a declaration.
    pub(crate) n_lines: usize,
    /// From the name to the body, without white space.
    pub(crate) signature: String,
}

/// The text with comments and the insides of strings and characters blanked. Line breaks stay where they are.
pub(crate) fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match chars[at..] {
            ['/', '/', ..] => find(&chars, at, &['\n']).unwrap_or(chars.len()),
            ['/', '*', ..] => block_comment_end(&chars, at),
            ['"', ..] => quoted_end(&chars, at + 1, '"'),
            ['r', '"' | '#', ..] if !in_word(&chars, at) => raw_string_end(&chars, at + 1).unwrap_or(at),
            ['b' | 'c', 'r', '"' | '#', ..] if !in_word(&chars, at) => raw_string_end(&chars, at + 2).unwrap_or(at),
            ['\'', '\\', ..] => quoted_end(&chars, at + 1, '\''),
            ['\'', _, '\'', ..] => at + 3,
            _ => at,
        };
        if end == at {
            code.push(chars[at]);
            at += 1;
        } else {
            code.extend(chars[at..end].iter().map(|char| if *char == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    code
}

fn in_word(chars: &[char], at: usize) -> bool {
    at > 0 && is_word(chars[at - 1])
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

fn find(chars: &[char], from: usize, what: &[char]) -> Option<usize> {
    (from..chars.len()).find(|at| chars[*at..].starts_with(what))
}

fn block_comment_end(chars: &[char], from: usize) -> usize {
    let (mut at, mut depth) = (from, 0);
    while at < chars.len() {
        match chars[at..] {
            ['/', '*', ..] => (at, depth) = (at + 2, depth + 1),
            ['*', '/', ..] if depth == 1 => return at + 2,
            ['*', '/', ..] => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
    }
    at
}

fn quoted_end(chars: &[char], from: usize, quote: char) -> usize {
    let mut at = from;
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

/// `from` is after the `r`; a raw identifier is not a string.
fn raw_string_end(chars: &[char], from: usize) -> Option<usize> {
    let n_hashes = chars[from..].iter().take_while(|char| **char == '#').count();
    let open = from + n_hashes;
    (chars.get(open) == Some(&'"')).then(|| {
        let close: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', n_hashes)).collect();
        find(chars, open + 1, &close).map_or(chars.len(), |at| at + close.len())
    })
}

/// The lines with the pattern in code, as a whole word.
pub(crate) fn lines_with(code: &str, pattern: &str) -> Vec<usize> {
    let stands_alone = |at: usize| {
        let before = code[..at].chars().next_back().filter(|_| pattern.starts_with(is_word));
        let after = code[at + pattern.len()..].chars().next().filter(|_| pattern.ends_with(is_word));
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    };
    code.match_indices(pattern).filter(|(at, _)| stands_alone(*at)).map(|(at, _)| line_of(code, at)).collect()
}

/// The names that follow a keyword, with their lines.
pub(crate) fn names_after<'a>(code: &'a str, keyword: &str) -> Vec<(usize, &'a str)> {
    let keyword = format!("{keyword} ");
    let mut names = Vec::new();
    for (at, _) in code.match_indices(&keyword) {
        let rest = &code[at + keyword.len()..];
        let name = rest.split(|char| !is_word(char)).next().unwrap_or_default();
        if !name.is_empty() && !code[..at].ends_with(is_word) {
            names.push((at, name));
        }
    }
    names.into_iter().map(|(at, name)| (line_of(code, at), name)).collect()
}

pub(crate) fn functions(code: &str) -> Vec<Function> {
    let starts = code.match_indices("fn ").filter(|(at, _)| !code[..*at].ends_with(is_word));
    starts.filter_map(|(at, _)| function(code, at)).collect()
}

fn function(code: &str, at: usize) -> Option<Function> {
    let rest = &code[at + "fn ".len()..];
    let name: String = rest.chars().take_while(|char| is_word(*char)).collect();
    let mut depth = 0_i32;
    let body = rest.find(|char| {
        depth += i32::from(matches!(char, '(' | '[')) - i32::from(matches!(char, ')' | ']'));
        depth == 0 && matches!(char, '{' | ';')
    })?;
    let end = body + block_end(&rest[body..])?;
    let n_lines = line_of(&rest[..=end], end);
    let signature = rest[..body].split_whitespace().collect();
    (!name.is_empty()).then(|| Function { name, line: line_of(code, at), n_lines, signature })
}

/// The place of the brace that closes the block at the start of a text; 0 for a text that starts with no block.
fn block_end(text: &str) -> Option<usize> {
    let mut depth = 0_i32;
    text.find(|char| {
        depth += i32::from(char == '{') - i32::from(char == '}');
        depth == 0
    })
}

/// The code with the bodies of some items blanked: of `trait`, and of `impl` where it is for a trait.
pub(crate) fn outside(code: &str, keywords: &[&str]) -> String {
    let mut outside = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(open) = rest.find('{') {
        let header = rest[..open].rsplit([';', '}', '{']).next().unwrap_or_default();
        let mut words = header.split(|char| !is_word(char));
        let is_left_out = match words.find(|word| matches!(*word, "fn" | "impl" | "trait")) {
            Some("impl") => keywords.contains(&"impl") && header.split_whitespace().any(|word| word == "for"),
            keyword => keyword.is_some_and(|keyword| keywords.contains(&keyword)),
        };
        let end = if is_left_out { open + block_end(&rest[open..]).unwrap_or(0) } else { open };
        outside.push_str(&rest[..open]);
        outside.extend(rest[open..end].chars().map(|char| if char == '\n' { '\n' } else { ' ' }));
        outside.push_str(&rest[end..=end]);
        rest = &rest[end + 1..];
    }
    outside + rest
}

/// The first line of test code: 1 if the whole file is test code, after the last line if nothing is.
pub(crate) fn first_test_line(path: &str, code: &str) -> usize {
    let folders = ["tests", "benches"];
    if path.split('/').any(|part| folders.contains(&part) || part == "tests.rs") {
        return 1;
    }
    let lines: Vec<&str> = code.lines().map(str::trim).collect();
    let opens = |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{');
    lines.windows(2).position(opens).map_or(lines.len() + 1, |index| index + 1)
}

/// A file of code without comments and tests.
pub(crate) fn production(file: &File) -> File {
    let n_lines = first_test_line(&file.path, &file.text) - 1;
    let text = code_only(&file.text).lines().take(n_lines).collect::<Vec<_>>().join("\n");
    File { path: file.path.clone(), text }
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}
