//! Fenced blocks: a command when they are shell, else a remark on the step before.

use super::build::Builder;
use super::built::{Odd, attach};
use super::draft::{Draft, Link};
use super::lines::Block;
use super::phrases::{Words, list, lower, words};
use super::roles::{self, Said, Sense};
use super::text::{collapse, holds};
use super::{inline, paths, shell, vocabulary};
use crate::plan::{Attachment, NodeKind};

impl Builder<'_> {
    /// `lead` is the sentence with a colon right before it, if there is one.
    pub(super) fn fence(&mut self, block: &Block, language: &str, inside: bool, colon: bool, lead: Option<&str>) {
        let body: Vec<&str> = block.pieces.iter().map(|piece| &self.source[piece.start..piece.end]).collect();
        let body = body.join("\n").replace('\0', "");
        // A fence that never closes takes in the empty lines at the end of the text.
        let body = body.trim_end_matches('\n').to_owned();
        let code = shell::is_shell_language(language) || (language.is_empty() && shell::reads_like_shell(&body));
        let sign = self.source[block.span.start..block.span.end].trim_start_matches(['>', ' ', '\t']);
        let asked = lead.is_none_or(|lead| match language {
            _ if !sign.starts_with(['`', '~']) => asks_to_run(lead) && Said::new(lead).sense(true) == Sense::Step,
            "" => asks_to_run(lead),
            _ => !forbids(lead),
        });
        let command = code && asked;
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
                plan.command = Some(plan.command.take().map_or(script.clone(), |first| format!("{first}\n{script}")));
                attach(&mut plan.attachments, attachments);
                plan.spans.push(block.span);
            }
            (_, true) => {
                self.enter(None, usize::MAX, false);
                let line = script
                    .lines()
                    .map(str::trim)
                    .find(|line| !line.is_empty() && !line.starts_with('#'))
                    .unwrap_or(script.as_str());
                let mut draft = Draft::new(NodeKind::ToolCall, collapse(line).into_owned(), block.span.start);
                draft.plan.command = Some(script.clone());
                draft.plan.attachments = attachments;
                draft.plan.spans.push(block.span);
                let before = self.out.drafts.len();
                self.add(draft, Link::Free);
                self.lend_plainly(before);
            }
            (_, false) => {
                if code {
                    let message =
                        "the block of code is not run, since the words before it do not ask for it".to_owned();
                    let help = "write \"Run this:\" before it if it is to be run".into();
                    self.out.odd.push(Odd { at: block.span.start, message, help });
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
        const DATA: &[&str] = &[
            "json",
            "jsonc",
            "yaml",
            "yml",
            "toml",
            "xml",
            "html",
            "css",
            "csv",
            "text",
            "txt",
            "plain",
            "plaintext",
            "markdown",
            "md",
            "diff",
            "patch",
            "ini",
            "log",
            "output",
            "mermaid",
            "graphql",
            "http",
            "env",
        ];
        if !language.is_empty() && !DATA.contains(&language) {
            let message = format!("the block of {language} is not run; it is kept as a remark");
            self.out.odd.push(Odd { at: block.span.start, message, help: "mark it as sh if it is a command".into() });
        }
    }
}

/// Words of sentences that show what was printed or happened.
static SHOWN: Words = Words::new(|| {
    list(
        "error|errors|log|logs|output|outputs|printed|prints|saw|sees|got|went|wrong|message|messages|says|said|showed|\
         shows|traceback|stacktrace|happened|happens",
    )
});

/// True when a sentence before code may want it run: it neither forbids it nor shows what happened.
fn asks_to_run(lead: &str) -> bool {
    let shows = !vocabulary::begins_with_verb(lead) && words(lead).any(|word| SHOWN.contains(word.as_str()));
    !forbids(lead) && !shows
}

/// True for "Never do this" and "This is what you must not run".
fn forbids(lead: &str) -> bool {
    const NOT: &[&str] = &["must not", "should not", "shouldn't", "never ", "not to ", "what not"];
    let lower = lower(lead);
    roles::is_prohibition(lead) || NOT.iter().any(|not| holds(&lower, not))
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
