//! Finds the files that a shell command changes, if its text names them; `docs/hooks.md` lists the recognised forms. It
//! does not guess: other changes pass, and show in the work tree afterwards.

use std::path::{Path, PathBuf};

use super::touches::{COMMAND_BYTES_MAX, DEPTH_MAX, Edits, Touch};

/// Words that may precede the name of a command.
const BEFORE: &str = "{ } if then else elif do while until ! sudo env command time";
/// Long options, each before the short one with the same meaning here.
const LONG: &str = "--target-directory -t --in-place -i --expression -e --file -f --source -s --staged -S --worktree -W \
                    --cached -n --dry-run -n --orphan -b --detach -b";
/// Short options with a value.
const VALUED: [(&str, &str); 4] = [("mv", "tS"), ("cp", "tS"), ("sed", "efl"), ("git restore", "s")];

/// Adds to `found` the changes of `command` when run in `folder`.
pub fn read(command: &str, folder: &Path, found: &mut Edits) {
    let end = command.floor_char_boundary(COMMAND_BYTES_MAX);
    // Cuts at a line end: half a word would be another path.
    let end = if end < command.len() { command[..end].rfind('\n').unwrap_or(0) } else { end };
    found.is_cut |= end < command.len();
    Shell { rest: &command[..end], bodies: None, depth: 0, folder: Some(folder.into()), found }.commands();
}

/// A word; true if the shell expands it as a pattern. Text known only to the shell becomes NUL, which no path contains.
type Word = (String, bool);
/// A command: its words, and the files of its redirections.
type Line = (Vec<Word>, Vec<Word>);

struct Shell<'a, 'f> {
    rest: &'a str,
    /// The text after the here-documents of the current line.
    bodies: Option<&'a str>,
    depth: usize,
    /// The folder of relative paths; `None` after a `cd` to a place that the text does not name.
    folder: Option<PathBuf>,
    found: &'f mut Edits,
}

impl<'a> Shell<'a, '_> {
    fn eat(&mut self, sign: &str) -> bool {
        self.rest.strip_prefix(sign).map(|rest| self.rest = rest).is_some()
    }

    /// The text before the sign, or all of it; skips both.
    fn until(&mut self, sign: &str) -> &'a str {
        let (before, after) = self.rest.split_once(sign).unwrap_or((self.rest, ""));
        self.rest = after;
        before
    }

    /// Parses the commands up to the end of the text or of the subshell.
    fn commands(&mut self) {
        let mut line = Line::default();
        while let Some(sign) = self.rest.chars().next() {
            match sign {
                ' ' | '\t' | '\r' => self.rest = &self.rest[1..],
                '#' => self.rest = self.rest.trim_start_matches(|char| char != '\n'),
                '(' if self.eat("((") => drop(self.until("))")),
                '&' if self.rest.starts_with("&>") => self.rest = &self.rest[1..],
                '<' | '>' if !self.rest[1..].starts_with('(') => self.redirection(&mut line),
                '\n' | ';' | '&' | '|' | '(' | ')' => {
                    // A `cd` has no lasting effect in a pipe or in the background, nor before `||`, where it failed.
                    let lasts = self.eat("&&") || !matches!(sign, '&' | '|');
                    self.rest = self.rest.strip_prefix(sign).unwrap_or(self.rest);
                    self.run(std::mem::take(&mut line), lasts);
                    match sign {
                        '\n' => self.rest = self.bodies.take().unwrap_or(self.rest),
                        '(' => self.subshell(),
                        ')' if self.depth > 0 => return,
                        _ => {}
                    }
                }
                _ => match self.word() {
                    // Within `[[ ]]` all signs are comparisons. Then: a descriptor, and the empty word of `sed -i ''`
                    // in BSD.
                    (word, _) if word == "[[" => drop(self.until("]]")),
                    (word, _) if self.rest.starts_with(['<', '>']) && word.parse::<u8>().is_ok() => {}
                    (word, _) if word.is_empty() => {}
                    word => line.0.push(word),
                },
            }
        }
        self.run(line, true);
    }

    fn subshell(&mut self) {
        let outside = (self.folder.clone(), self.depth);
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            (self.rest, self.found.is_cut) = ("", true);
        }
        self.commands();
        (self.folder, self.depth) = outside;
    }

    fn redirection(&mut self, (_, written): &mut Line) {
        let is_output = self.eat(">");
        if self.eat("<<") && !self.eat("<") {
            let tabs: &[char] = if self.eat("-") { &['\t'] } else { &[] };
            let (delimiter, _) = self.word();
            let bodies = self.bodies.unwrap_or_else(|| self.rest.split_once('\n').map_or("", |(_, bodies)| bodies));
            let is_body = |line: &&str| line.trim_start_matches(tabs).trim_end() != delimiter;
            let n_bytes = bodies.split_inclusive('\n').take_while(is_body).map(str::len).sum();
            self.bodies = Some(bodies[n_bytes..].split_once('\n').map_or("", |(_, after)| after));
            return;
        }
        self.rest = self.rest.strip_prefix(['<', '>', '|']).unwrap_or(self.rest);
        let is_copy = self.eat("&") && self.rest.starts_with(|char: char| char == '-' || char.is_ascii_digit());
        let word = self.word();
        written.extend(Some(word).filter(|_| is_output && !is_copy));
    }

    /// The next word, after blanks; empty at a sign.
    fn word(&mut self) -> Word {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
        let (mut text, mut is_pattern, mut is_quoted) = (String::new(), false, false);
        while let Some(char) = self.rest.chars().next() {
            let is_files = !is_quoted && (self.rest.starts_with("<(") || self.rest.starts_with(">("));
            if !is_quoted && !is_files && " \t\r\n;&|()<>".contains(char) {
                break;
            }
            self.rest = &self.rest[char.len_utf8()..];
            match char {
                '"' => is_quoted = !is_quoted,
                '\\' => {
                    let next = self.rest.chars().next();
                    self.rest = self.rest.strip_prefix(|_| true).unwrap_or_default();
                    let is_kept = is_quoted && !matches!(next, Some('$' | '`' | '"' | '\\' | '\n'));
                    text.extend(is_kept.then_some('\\').into_iter().chain(next.filter(|next| *next != '\n')));
                }
                _ if is_files || matches!(char, '$' | '`') => {
                    text.push('\0');
                    match char {
                        '`' => drop(self.until("`")),
                        _ if self.eat("((") => drop(self.until("))")),
                        _ if self.eat("(") => self.subshell(),
                        _ if self.eat("{") => drop(self.until("}")),
                        _ if !is_quoted && self.eat("'") => while self.until("'").ends_with('\\') {},
                        _variable => {}
                    }
                }
                '\'' if !is_quoted => {
                    is_quoted = !self.rest.contains('\'');
                    text.push_str(self.until("'"));
                }
                _ => {
                    is_pattern |= !is_quoted && "*?[{".contains(char);
                    text.push(char);
                }
            }
        }
        // An open quote, or a home directory.
        text.extend((is_quoted || text.starts_with('~')).then_some('\0'));
        (text, is_pattern)
    }

    fn run(&mut self, (words, written): Line, lasts: bool) {
        self.touch(&written);
        let mut words = words.into_iter().skip_while(|(text, _)| {
            BEFORE.split(' ').any(|word| word == text) || text.contains('=') || (text.starts_with('-') && text != "-v")
        });
        let Some((name, _)) = words.next() else { return };
        let mut name = name.rsplit('/').next().unwrap_or_default().to_owned();
        name.extend(words.by_ref().take(usize::from(name == "git")).map(|(sub, _)| format!(" {sub}")));
        let (flags, mut operands) = arguments(words, &name);
        for (text, is_pattern) in operands.iter_mut().filter(|_| name.starts_with("git ")) {
            // Git expands patterns itself, and `:/` is the top of the work tree.
            *is_pattern |= text.contains(['*', '?', '[']);
            *text = if text.starts_with(':') { "/".to_owned() } else { std::mem::take(text) };
        }
        match name.as_str() {
            "cd" | "pushd" | "popd" => {
                self.folder = operands.first().filter(|word| lasts && !word.1).and_then(|(to, _)| self.below(to));
            }
            "sed" if flags.contains('i') => self.touch(operands.iter().skip(usize::from(!flags.contains(['e', 'f'])))),
            "cp" | "mv" | "git mv" => self.copy(&operands, flags.contains('t'), name != "cp"),
            "tee" | "rm" | "git rm" if !flags.contains('n') => self.touch(&operands),
            "git restore" if !flags.contains('S') || flags.contains('W') => self.touch(&operands),
            "git checkout" if !flags.contains(['b', 'B', 'd']) => {
                // Without a preceding `--`, a first word like `main` is a branch.
                let is_branch = |(text, _): &Word| !text.contains(['.', '/']) && !flags.contains("--");
                self.touch(operands.iter().skip(operands.first().is_some_and(is_branch).into()));
            }
            "git commit" => self.found.commits.extend(self.folder.clone()),
            _unknown => {}
        }
    }

    /// The last word is the target.
    fn copy(&mut self, operands: &[Word], is_folder: bool, is_move: bool) {
        let [sources @ .., target] = operands else { return };
        self.touch(sources.iter().filter(|_| is_move));
        let is_folder = is_folder || sources.len() > 1 || target.0.ends_with(['/', '.']);
        for (source, is_pattern) in sources {
            let name = source.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            let inside = (format!("{}/{name}", target.0.trim_end_matches('/')), target.1 || *is_pattern);
            if is_folder || *is_pattern {
                self.touch([&inside]);
            } else if let Some(path) = self.below(&target.0) {
                self.found.add(Touch { path, is_pattern: target.1, in_folder: self.below(&inside.0) });
            }
        }
    }

    fn touch<'w>(&mut self, words: impl IntoIterator<Item = &'w Word>) {
        for (text, is_pattern) in words {
            if let Some(path) = self.below(text) {
                self.found.add(Touch { path, is_pattern: *is_pattern, in_folder: None });
            }
        }
    }

    /// `None` for a path that is unknown or not a file.
    fn below(&self, path: &str) -> Option<PathBuf> {
        let is_none = matches!(path, "" | "-") || path.contains('\0') || path.starts_with("/dev/");
        let folder = self.folder.as_deref().or(path.starts_with('/').then_some(Path::new("/")))?;
        Some(folder.join(path)).filter(|_| !is_none)
    }
}

/// The letters of a command's options, and its other words; the value of `-t` comes last.
fn arguments(mut words: impl Iterator<Item = Word>, name: &str) -> (String, Vec<Word>) {
    let valued = VALUED.iter().find(|(known, _)| *known == name).map_or("", |(_, letters)| *letters);
    let (mut flags, mut operands, mut target) = (String::new(), Vec::new(), None);
    while let Some((mut text, kind)) = words.next() {
        let (long, value) = text.split_once('=').unwrap_or((&text, ""));
        if let Some(short) = LONG.split(' ').skip_while(|known| *known != long).nth(1).filter(|_| long.len() > 2) {
            text = format!("{short}{value}");
        }
        if text == "--" {
            flags += "--";
            operands.retain(|_| name != "git checkout");
            operands.extend(words.by_ref());
        } else if !text.starts_with('-') {
            operands.push((text, kind));
        } else if !text.starts_with("--") {
            // After `i` comes the suffix of sed's backups.
            let end = text.find(|char| char == 'i' || valued.contains(char)).map_or(text.len(), |at| at + 1);
            let value = Some((text.split_off(end), kind)).filter(|(value, _)| !value.is_empty());
            if text.ends_with(|char| valued.contains(char)) {
                let value = value.or_else(|| words.next());
                target = value.filter(|_| text.ends_with('t')).or(target);
            }
            flags += &text;
        }
    }
    operands.extend(target);
    (flags, operands)
}
