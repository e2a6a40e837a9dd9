//! Fenced blocks: a command when they are shell, else a remark on the step before.

use super::build::Builder;
use super::built::{Odd, attach};
use super::draft::{Draft, Link};
use super::lines::{Block, BlockKind};
use super::markup::{Code, Frame};
use super::phrases::{Words, list, lower, words};
use super::roles::{Said, Sense};
use super::text::collapse;
use super::{connectors, crew, inline, paths, shell, unasked, vocabulary};
use crate::plan::{Attachment, NodeKind};

/// What only names the code below it has no more words.
const TITLE_WORDS_MAX: usize = 4;

impl Builder<'_> {
    /// A block of code: whether it stands in what is before it, under a colon, and in what is only told.
    pub(super) fn fence(
        &mut self,
        block: &Block,
        written: &Code,
        (inside, colon, told): (bool, bool, bool),
        lead: Option<&Lead>,
    ) {
        let Code { language, frame } = written;
        let body: Vec<&str> = block.pieces.iter().map(|piece| &self.source[piece.start..piece.end]).collect();
        let body = body.join("\n").replace('\0', "");
        // A fence that never closes takes in the empty lines at the end of the text.
        let body = body.trim_end_matches('\n').to_owned();
        let code = shell::is_shell_language(language) || (language.is_empty() && shell::reads_like_shell(&body));
        let asked = !matches!(frame, Frame::Open(_) | Frame::Shown)
            && lead.is_none_or(|lead| match frame {
                Frame::Indented => lead.colon && lead.asks_to_run() && Said::new(lead.text).sense(true) == Sense::Step,
                Frame::Closed | Frame::Open(_) | Frame::Shown => lead.asks_to_run(),
            });
        let command = code && asked && !told;
        let target = self.last.filter(|_| inside || colon);
        if body.trim().is_empty() {
            return self.out.ignored.push(block.span);
        }
        let script = shell::script(&body);
        let attachments = if command { paths_in(&body) } else { Vec::new() };
        match (target, command) {
            (Some(last), true) => {
                let plan = &mut self.out.drafts[last].plan;
                plan.kind = NodeKind::ToolCall;
                if connectors::connection(&plan.description).is_some() {
                    plan.description = title(&script);
                }
                plan.command = Some(plan.command.take().map_or(script.clone(), |first| format!("{first}\n{script}")));
                attach(&mut plan.attachments, attachments);
                plan.spans.push(block.span);
            }
            (_, true) => {
                self.enter(None, usize::MAX, false);
                let mut draft = Draft::new(NodeKind::ToolCall, title(&script), block.span.start);
                draft.plan.command = Some(script.clone());
                draft.plan.attachments = attachments;
                draft.plan.spans.push(block.span);
                let before = self.out.drafts.len();
                // "Is port 8080 free?" has to be known for the code below it.
                let asked = before.checked_sub(1).filter(|last| {
                    lead.is_some_and(|lead| lead.text.ends_with('?'))
                        && self.out.drafts[*last].plan.kind == NodeKind::Clarification
                });
                draft.questions.extend(asked);
                self.add(draft, Link::Free);
                self.lend_plainly(before);
            }
            (_, false) => {
                let at = block.span.start;
                if let Frame::Open(end) = frame {
                    let message = "this fence never closes, so all that follows is in it".to_owned();
                    self.out.odd.push(Odd { at, message, help: format!("close it with {end}").into() });
                } else if code {
                    let message =
                        "the block of code is not run, since the words before it do not ask for it".to_owned();
                    let help = "write \"Run this:\" before it if it is to be run".into();
                    self.out.odd.push(Odd { at, message, help });
                } else {
                    self.not_run(block, language);
                }
                match self.last {
                    Some(last) => {
                        let plan = &mut self.out.drafts[last].plan;
                        plan.notes.push(body);
                        plan.spans.push(block.span);
                    }
                    None => {
                        self.out.ignored.push(block.span);
                        self.out.context.push(body);
                    }
                }
            }
        }
    }

    /// Says that a block of code is not a command; data and plain text nobody expects to run.
    fn not_run(&mut self, block: &Block, language: &str) {
        static DATA: Words = Words::new(|| {
            list(
                "json|jsonc|yaml|yml|toml|xml|html|css|csv|text|txt|plain|plaintext|markdown|md|diff|patch|ini|log|\
                 output|mermaid|graphql|http|env",
            )
        });
        if !language.is_empty() && !DATA.contains(language) {
            let message = format!("the block of {language} is not run; it is kept as a remark");
            self.out.odd.push(Odd { at: block.span.start, message, help: "mark it as sh if it is a command".into() });
        }
    }
}

/// True for "Expected output:" and "New schema:" above a block that is not run: they only say what it is.
pub(super) fn is_title(text: &str, next: &Block, code: bool) -> bool {
    matches!(next.kind, BlockKind::Fence(_))
        && words(text).count() <= TITLE_WORDS_MAX
        && !vocabulary::begins_with_verb(text)
        && connectors::connector(text).is_none()
        && (!code || unasked::shows(text))
}

/// Verbs that put what follows into a file.
static PUTS: Words =
    Words::new(|| list("create|write|add|append|put|save|replace|change|insert|paste|set|define|update|edit|copy"));
/// First words of a condition for what follows.
const WAITS: [&str; 6] = ["if", "when", "once", "unless", "otherwise", "else"];
/// Ends of sentences that show what something is to hold.
const HOLDS: &[&str] =
    &["should say", "should be", "look like", "looks like", "contains", "contain", "content", "contents"];

/// The last sentence before a block of code.
#[derive(Debug)]
pub(super) struct Lead<'t> {
    text: &'t str,
    /// It ends with a colon.
    colon: bool,
    item: bool,
    /// It has a box.
    boxed: bool,
}

impl<'t> Lead<'t> {
    /// That of the blocks before the code.
    pub(super) fn of(source: &'t str, before: &[Block]) -> Option<Self> {
        let block = before.iter().rev().find(|block| block.kind != BlockKind::Ignored)?;
        let (item, boxed) = match &block.kind {
            BlockKind::Paragraph => (false, false),
            BlockKind::Item { mark, .. } => (true, mark.is_some()),
            BlockKind::Heading(_) | BlockKind::Fence(_) | BlockKind::Table | BlockKind::Ignored => return None,
        };
        let (first, last) = block.pieces.first().zip(block.pieces.last())?;
        let whole = source.get(first.start..last.end)?.trim_end_matches([' ', '*', '_', '\n', '\t']);
        let text = whole.trim_end_matches([':', '\u{ff1a}']);
        let sentence = text.rfind(". ").map_or(text, |at| &text[at + 2..]);
        let colon = text.len() < whole.len();
        Some(Self { text: sentence.trim_matches([' ', '*', '_', '\n', '\t']), colon, item, boxed })
    }

    /// True for an item that goes on in the code right behind it.
    pub(super) fn holds_code(&self) -> bool {
        let open = [" with", " by", " using", " like"].iter().any(|end| self.text.ends_with(end));
        self.item && (self.colon || self.boxed || open)
    }

    /// True when the code may be run: the sentence neither forbids it nor shows what happened.
    fn asks_to_run(&self) -> bool {
        // "If it fails, run:" tells in its last part what to do.
        let last = self.text.rsplit(", ").next().unwrap_or(self.text);
        let waits = || words(self.text).next().is_some_and(|word| WAITS.contains(&&*word));
        let begins = || waits() || [self.text, last].iter().any(|part| vocabulary::begins_with_verb(part));
        !self.forbids() && (!self.colon || begins() || !unasked::shows(self.text))
    }

    /// True for "Never do this", "Create `clean.sh`" and "To reproduce": whatever the code is, it is not to be run.
    fn forbids(&self) -> bool {
        let lower = lower(self.text);
        unasked::forbids_below(self.text)
            || crew::is_told(self.text)
            || (self.colon && (self.puts() || HOLDS.iter().any(|end| lower.ends_with(end))))
    }

    /// True for "Append to `~/.bashrc`" and "In package.json, set the script to": the code belongs into a file.
    fn puts(&self) -> bool {
        let puts = words(self.text).take(8).any(|word| PUTS.contains(word.as_str()));
        let is_file = |word: &str| {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '/' | '~'));
            paths::file_ref(word).is_some()
                || word.rsplit('/').next().is_some_and(|name| name.len() > 1 && name.starts_with('.'))
        };
        puts && self.text.split_whitespace().any(is_file)
    }
}

/// The first line of a script that is no comment.
fn title(script: &str) -> String {
    let mut lines = script.lines().map(str::trim);
    collapse(lines.find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or(script)).into_owned()
}

/// The files named in a script.
fn paths_in(body: &str) -> Vec<Attachment> {
    let mut found = Vec::new();
    for word in body.lines().filter(|line| !line.trim_start().starts_with('#')).flat_map(str::split_whitespace) {
        let word = word.trim_matches(['"', '\'', ';', ',', '(', ')']);
        if let Some(path) = paths::file_ref(word).filter(|path| !path.starts_with("./") && found.len() < 100) {
            attach(&mut found, vec![Attachment { kind: inline::path_kind(path), label: None }]);
        }
    }
    found
}
