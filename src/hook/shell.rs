//! Finds the files that a shell command changes, if its text names them; `docs/hooks.md` lists the recognised forms. It
//! does not guess: other changes pass, and show in the work tree afterwards.

use std::path::{Path, PathBuf};

use crewlog_executors::crew::worktree::as_written;

use super::patch;
use super::touches::Extent::{Repository, Worktree};
use super::touches::{COMMAND_BYTES_MAX, DEPTH_MAX, Edits, Extent, Touch, Tree};

/// Words that may precede the name of a command, and their options with a value.
const BEFORE: &str =
    "{ } if then else elif do while until ! sudo env command time exec nohup nice ionice timeout xargs";
const BEFORE_VALUED: &str = "-u -g -n -k -s -c -I -P -L";
/// Shells, which read commands from an argument or from their input.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "ksh", "zsh"];
/// Long options, each before the short one with the same meaning here.
const LONG: &str = "--target-directory -t --in-place -i --expression -e --file -f --source -s --staged -S --worktree -W \
                    --cached -n --orphan -O --create -c --detach -d --hard -H --merge -H --keep -H --message -m --force -f \
                    --reference -r --date -d --help -? --version -? --dry-run -? --check -? --stat -? --numstat -? \
                    --summary -? --show-current-patch -? --edit-todo -? --quit -?";
/// Short options with a value.
const VALUED: &str = "mv tS cp tS ln tS install tSmog sed efl perl eEMmIFx ruby eEIrFTx truncate sr touch rdt sh o bash o \
                      dash o ksh o zsh o git-restore s git-stash m git-clean e git-commit mFCct";

/// Adds to `found` the changes of `command` when run in `folder`.
pub fn read(command: &str, folder: &Path, found: &mut Edits) {
    let end = command.floor_char_boundary(COMMAND_BYTES_MAX);
    // Cuts at a line end: half a word would be another path.
    let end = if end < command.len() { command[..end].rfind('\n').unwrap_or(0) } else { end };
    found.is_cut |= end < command.len();
    Shell { rest: &command[..end], bodies: None, body: "", depth: 0, folder: Some(folder.into()), found }.commands();
}

/// A word; true if the shell expands it as a pattern. Text known only to the shell becomes NUL, which no path contains.
type Word = (String, bool);
/// A command: its words, and the files of its redirections.
type Line = (Vec<Word>, Vec<Word>);

struct Shell<'a, 'f> {
    rest: &'a str,
    /// The text after the here-documents of the current line.
    bodies: Option<&'a str>,
    /// The last here-document of the current command.
    body: &'a str,
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
                '(' if self.arithmetic().is_some() => self.rest = &self.rest[self.arithmetic().unwrap_or_default()..],
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

    /// The length of an arithmetic expression: its two parentheses end together.
    fn arithmetic(&self) -> Option<usize> {
        let (mut depth, expression) = (2, self.rest.strip_prefix("((")?);
        let end = expression.find(|char| {
            depth += i32::from(char == '(') - i32::from(char == ')');
            depth < 2
        })?;
        expression[end..].starts_with("))").then_some(end + 4)
    }

    /// Reads another text as commands in this place: an argument of a shell, or its input.
    fn nested(&mut self, text: &str) {
        let (depth, folder) = (self.depth + 1, self.folder.clone());
        self.found.is_cut |= depth > DEPTH_MAX;
        if depth <= DEPTH_MAX {
            Shell { rest: text, bodies: None, body: "", depth, folder, found: self.found }.commands();
        }
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
            let is_literal = self.rest.trim_start().starts_with(['\'', '"', '\\']);
            let (delimiter, _) = self.word();
            let bodies = self.bodies.unwrap_or_else(|| self.rest.split_once('\n').map_or("", |(_, bodies)| bodies));
            let is_body = |line: &&str| line.trim_start_matches(tabs).trim_end() != delimiter;
            let n_bytes = bodies.split_inclusive('\n').take_while(is_body).map(str::len).sum();
            self.body = &bodies[..n_bytes];
            self.bodies = Some(bodies[n_bytes..].split_once('\n').map_or("", |(_, after)| after));
            let is_run = |at: usize| !is_literal && !self.body[..at].ends_with('\\');
            for (at, _) in self.body.match_indices("$(").filter(|(at, _)| is_run(*at)) {
                self.nested(&self.body[at + 2..]);
            }
            return;
        }
        self.rest = self.rest.strip_prefix(['<', '>', '|']).unwrap_or(self.rest);
        let is_copy = self.eat("&") && self.rest.starts_with(|char: char| char == '-' || char.is_ascii_digit());
        let word = self.word();
        written.extend(Some(word).filter(|(to, _)| is_output && !is_copy && to != "."));
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
        let body = std::mem::take(&mut self.body);
        let mut words = words.into_iter().peekable();
        let mut is_value = false;
        // A number is the time of `timeout`, or the niceness.
        while let Some((text, _)) = words.next_if(|(text, _)| {
            let is_number = text.trim_end_matches(['s', 'm', 'h', 'd']).parse::<f32>().is_ok();
            let is_option = text.starts_with('-') && text != "-v";
            is_value || is_number || is_option || text.contains('=') || BEFORE.split(' ').any(|word| word == text)
        }) {
            is_value = !is_value && BEFORE_VALUED.split(' ').any(|option| option == text);
        }
        let Some((name, _)) = words.next() else { return };
        let mut name = name.rsplit('/').next().unwrap_or_default().to_owned();
        let outside = self.folder.clone();
        if name == "git" {
            while let Some((option, _)) = words.next_if(|(text, _)| text.starts_with('-')) {
                match option.as_str() {
                    "-C" => self.folder = words.next().and_then(|(to, _)| self.below(&to)),
                    "-c" => drop(words.next()),
                    other if other.contains("-dir") || other.contains("-tree") => self.folder = None,
                    _ => {}
                }
            }
            name.extend(words.next().map(|(sub, _)| format!(" {sub}")));
        }
        let (flags, mut operands) = arguments(words, &name);
        for (text, is_pattern) in operands.iter_mut().filter(|_| name.starts_with("git ")) {
            // Git expands patterns itself, and `:/` is the top of the work tree.
            *is_pattern |= text.contains(['*', '?', '[']);
            *text = if text.starts_with(':') { "/".to_owned() } else { std::mem::take(text) };
        }
        match name.as_str() {
            "cd" | "pushd" | "popd" => {
                let to = operands.first().filter(|word| lasts && !word.1).and_then(|(to, _)| self.below(to));
                self.folder = to.map(|to| as_written(&to));
                return;
            }
            _ if flags.contains('?') => {}
            name if SHELLS.contains(&name) && flags.contains('c') => {
                self.nested(operands.first().map_or("", |(text, _)| text));
            }
            name if SHELLS.contains(&name) && operands.is_empty() => self.nested(body),
            "eval" => self.nested(&operands.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join(" ")),
            "apply_patch" | "applypatch" => {
                let files = patch::files(operands.first().map_or(body, |(text, _)| text));
                self.touch(&files.into_iter().map(|path| (path.to_owned(), false)).collect::<Vec<_>>());
            }
            "sed" | "perl" | "ruby" if flags.contains('i') => {
                self.touch(operands.iter().skip(usize::from(!flags.contains(['e', 'f']))));
            }
            "git mv" if flags.contains('n') => {}
            "cp" | "mv" | "git mv" | "ln" | "install" => self.copy(&operands, &flags, name.ends_with("mv")),
            "tee" | "rm" | "rmdir" | "touch" | "truncate" | "git rm" if !flags.contains('n') => self.touch(&operands),
            "dd" => {
                let files = operands.iter().filter_map(|(text, _)| Some((text.strip_prefix("of=")?.into(), false)));
                self.touch(&files.collect::<Vec<_>>());
            }
            "patch" if operands.is_empty() => self.tree(Worktree, None),
            "patch" => self.touch(&operands[..1]),
            name if name.starts_with("git ") => self.git(&name[4..], &flags, &operands),
            _unknown => {}
        }
        self.folder = outside;
    }

    /// Git's own commands; many change whatever differs, in the whole worktree.
    fn git(&mut self, command: &str, flags: &str, operands: &[Word]) {
        let first = operands.first().map(|(text, _)| text.as_str());
        match (command, first) {
            // Its help.
            _ if flags == "-h" => {}
            ("commit", Some(_)) if !flags.contains(['a', 'i']) => self.touch(operands),
            ("commit", _) => self.found.commits.extend(self.folder.clone()),
            ("restore", _) if !flags.contains('S') || flags.contains('W') => self.touch(operands),
            ("checkout", _) if flags.contains(['b', 'B', 'O']) => {}
            ("switch", _) if flags.contains(['c', 'C']) => {}
            ("checkout", Some(_)) if flags.contains("--") => self.touch(operands),
            // One word is a branch, unless a file has this name. Of several the first may be one.
            ("checkout", Some(first)) if operands.len() == 1 => self.tree(Worktree, self.below(first)),
            ("checkout", Some(first)) => self.touch(operands.iter().skip((!first.contains(['.', '/'])).into())),
            ("switch", Some(_)) | ("pull" | "merge" | "rebase" | "cherry-pick" | "revert" | "am", _) => {
                self.tree(Worktree, None);
            }
            ("checkout", None) | ("reset", _) if flags.contains(['f', 'H']) => self.tree(Worktree, None),
            ("clean", Some(_)) if !flags.contains(['n', 'X']) => self.touch(operands),
            ("apply" | "clean", _) if !flags.contains(['n', 'X']) => self.tree(Worktree, None),
            ("stash", Some("list" | "show" | "create" | "store")) => {}
            ("stash", Some("pop" | "apply" | "drop" | "clear" | "branch")) => self.tree(Repository, None),
            ("stash", Some("push")) if operands.len() > 1 => self.touch(&operands[1..]),
            ("stash", Some(_)) if flags.contains("--") => self.touch(operands),
            ("stash", _) => self.tree(Worktree, None),
            ("worktree", Some("remove" | "move")) => self.touch(operands.iter().skip(1).take(1)),
            _unknown => {}
        }
    }

    /// A change of whatever differs; not if a file is named after all.
    fn tree(&mut self, extent: Extent, unless: Option<PathBuf>) {
        self.found.trees.extend(self.folder.clone().map(|folder| Tree { folder, extent, unless }));
    }

    /// The last word is the target.
    fn copy(&mut self, operands: &[Word], flags: &str, is_move: bool) {
        let [sources @ .., target] = operands else { return };
        self.touch(sources.iter().filter(|_| is_move));
        let is_folder = flags.contains('t') || sources.len() > 1 || target.0.ends_with(['/', '.']);
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
    let name_of = name.replace(' ', "-");
    let valued = VALUED.split(' ').skip_while(|known| *known != name_of).nth(1).unwrap_or_default();
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
        } else if !text.starts_with('-') || text == "-" {
            operands.push((text, kind));
        } else if !text.starts_with("--") {
            // After `i` comes the suffix of sed's backups.
            let has_suffix = |char| char == 'i' && ["sed", "perl", "ruby"].contains(&name);
            let end = text.find(|char| has_suffix(char) || valued.contains(char)).map_or(text.len(), |at| at + 1);
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
