//! Where in a text the list of another program stands: it is the text, its front matter, or the only such fence of a text
//! in which nothing else is to be done and which gives it as its plan. What stands around it is context; what the list says,
//! `formats` knows. A list of which that is doubtful is data as any other, and a warning says so.

use std::ops::Range;

use super::built::Odd;
use super::draft::Draft;
use super::formats::{Asked, IDS, LISTS, Read, TITLES};
use super::lines::{Block, BlockKind};
use super::markup::Frame;
use super::parsed::{ParsedPlan, WARNINGS_MAX};
use super::phrases::{Words, list, words};
use super::sections::{Section, Use};
use super::text::{Lines, collapse, find, is_blank};
use super::{build, built, connectors, formats, lines, sections, unasked, vocabulary, yaml};
use crate::plan::Span;

/// So many lines are looked at to know whether a text is YAML.
const LINES_MAX: usize = 200;
/// So many fences are looked at for a list.
const FENCES_MAX: usize = 8;
/// So many paragraphs around a list are kept as context.
const CONTEXT_MAX: usize = 100;

/// What a text holds.
pub(super) enum Held {
    /// A list, which is the plan.
    Plan(Read),
    /// A text to be read as any other, with what is said of the lists in it that are not the plan.
    Text(Unread),
}

/// Lists that are not the plan.
#[derive(Default)]
pub(super) struct Unread {
    pub(super) odd: Vec<Odd>,
    fences: Vec<Range<usize>>,
}

impl Unread {
    /// The text without these fences and the colons before them, if there are any.
    pub(super) fn without(&self, text: &str) -> Option<String> {
        let colon = |fence: &Range<usize>| {
            let lead = text[..fence.start].trim_end().strip_suffix(':')?;
            Some(lead.len()..fence.end)
        };
        let parts = self.fences.iter().map(|fence| colon(fence).unwrap_or(fence.clone()));
        (!self.fences.is_empty()).then(|| without(text, parts))
    }

    /// Gives the fences as notes to the drafts before them, else to the first.
    pub(super) fn lend(&self, text: &str, drafts: &mut [Draft]) {
        for fence in &self.fences {
            let n = drafts.iter().rposition(|draft| draft.at <= fence.start).unwrap_or(0);
            let Some(draft) = drafts.get_mut(n) else { return };
            draft.plan.notes.push(text[fence.clone()].trim().to_owned());
        }
    }
}

/// The plan of a list in a text.
pub(super) fn read(text: &str, asked: Asked<'_>) -> Held {
    if let Some(plan) = formats::read(text, asked) {
        return Held::Plan(plan);
    }
    let body = text.trim_start_matches(is_blank);
    if let Some(head) = body.strip_prefix("---\n").or_else(|| body.strip_prefix("---\r\n")) {
        return front_matter(text, head, asked);
    }
    if begins_as_yaml(body)
        && let Some(plan) = of_yaml(text, body, asked)
    {
        return Held::Plan(plan);
    }
    fence(text, asked)
}

/// The list in what stands between `---` and `---`; a text without the second is all of it YAML. Boxes in the text below
/// are the tasks in its place.
fn front_matter(text: &str, head: &str, asked: Asked<'_>) -> Held {
    let mut length = 0;
    let end = head.split_inclusive('\n').find_map(|line| {
        let start = length;
        length += line.len();
        matches!(line.trim_end(), "---" | "...").then_some((start, length))
    });
    let (inside, below) = end.map_or((head, ""), |(start, after)| (&head[..start], &head[after..]));
    let plan = if begins_as_yaml(inside) { of_yaml(text, inside, asked) } else { None };
    let Some(plan) = plan else { return fence(text, asked) };
    let at = text.len() - below.len();
    let around = without(text, std::iter::once(0..at));
    let boxed = |block: &Block| matches!(block.kind, BlockKind::Item { mark: Some(_), .. });
    let drafts = build::build(&around, false).drafts;
    if !drafts.is_empty() && lines::blocks(below).iter().any(boxed) {
        let message =
            "the list of tasks in the front matter is not read, since the text has boxes of its own".to_owned();
        let help = "leave one of the two".into();
        return Held::Text(Unread {
            odd: vec![Odd { at: text.len() - head.len(), message, help }],
            fences: Vec::new(),
        });
    }
    let odd = drafts.iter().map(|draft| Odd {
        at: draft.at,
        message: "this is not read as a task, since the front matter has the list of tasks".into(),
        help: "add it to that list if it is to be done".into(),
    });
    let said = built::diagnostics(odd.collect(), &Lines::new(text));
    Held::Plan(plan.map(|(plan, outer)| {
        let mut plan = with_context(plan, &[below]);
        plan.warnings.extend(said);
        plan.warnings.truncate(WARNINGS_MAX);
        (plan, outer)
    }))
}

fn of_yaml(text: &str, part: &str, asked: Asked<'_>) -> Option<Read> {
    let value = yaml::read(text, part)?;
    // A list of words alone is read as any list is.
    let fields = value.fields().unwrap_or_default();
    if matches!(fields, [(_, list)] if list.list().is_some_and(|list| list.iter().all(|one| one.word().is_some()))) {
        return None;
    }
    formats::of(text, &value, asked)
}

/// True for a text whose first lines are fields, one of them a list of tasks, or entries with a title.
fn begins_as_yaml(part: &str) -> bool {
    let mut lines = part.lines().take(LINES_MAX).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let Some(first) = lines.next() else { return false };
    if let Some(entry) = first.strip_prefix("- ") {
        let name = entry.split(':').next().filter(|name| name.len() < entry.len());
        return name.is_some_and(|name| TITLES.contains(&name) || IDS.contains(&name) || name == "status");
    }
    let is_list = |line: &str| {
        let name = line.split(" #").next().unwrap_or(line).trim_end().strip_suffix(':');
        name.is_some_and(|name| LISTS.iter().any(|(list, _)| *list == name))
    };
    let length = first.bytes().take(32).take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')).count();
    let is_field = first.starts_with(|c: char| c.is_ascii_lowercase()) && first[length..].starts_with(':');
    is_field && (is_list(first) || lines.any(is_list))
}

/// The list in a fence of JSON or YAML, if there is one alone, nothing around it is to be done, and its place and the
/// words before it make it the plan. Any other stays what a fence of data is, and that is said.
fn fence(text: &str, asked: Asked<'_>) -> Held {
    let mut unread = Unread::default();
    if find(text, "```").is_none() {
        return Held::Text(unread);
    }
    let mut blocks = lines::blocks(text);
    sections::promote(text, &mut blocks);
    let lists = blocks.iter().enumerate().filter_map(|(n, block)| Some((n, inside(text, block)?)));
    let mut found = None;
    for (n, inside) in lists.take(FENCES_MAX) {
        let part = &text[inside];
        let plan = match part.trim_start_matches(is_blank).as_bytes().first() {
            Some(b'{' | b'[') => formats::of_json(text, part.trim(), asked),
            Some(_) if begins_as_yaml(part) => of_yaml(text, part, asked),
            Some(_) | None => None,
        };
        if let Some(plan) = plan {
            let message = "the list of tasks in this fence is not read as the plan".to_owned();
            let help = "write \"Execute this plan:\" before it, and nothing else that is to be done beside it";
            let span = blocks[n].span;
            unread.odd.push(Odd { at: span.start, message, help: help.into() });
            unread.fences.push(span.start..span.end);
            found = Some((n, plan));
        }
    }
    match found {
        Some((n, plan)) if unread.odd.len() == 1 && is_given(text, &blocks, n) => {
            let span = blocks[n].span;
            Held::Plan(plan.map(|(plan, outer)| (with_context(plan, &[&text[..span.start], &text[span.end..]]), outer)))
        }
        Some(_) | None => Held::Text(unread),
    }
}

/// What stands in a fence with an end that may hold a list.
fn inside(text: &str, block: &Block) -> Option<Range<usize>> {
    let BlockKind::Fence(code) = &block.kind else { return None };
    let known = matches!(code.language.as_str(), "" | "json" | "jsonc" | "json5" | "jsonl" | "yaml" | "yml");
    let written = text[block.span.start..block.span.end].trim();
    let marked = written.starts_with("```") && written.ends_with("```") && !block.quoted;
    let (first, last) = block.pieces.first().zip(block.pieces.last())?;
    (known && marked).then_some(first.start..last.end)
}

/// The text of a plan that stands whole in one fence with an end, as a chat hands it over, with spaces for the fence and
/// its place. It has to hold a list or, where the fence names prose, nothing but instructions; a patch is none, nor is what
/// has a line over or beside its items that shows, reports or refuses something.
pub(super) fn bared(text: &str) -> Option<(String, [Span; 2])> {
    if !text.trim_start_matches(is_blank).starts_with(['`', '~']) {
        return None;
    }
    let blocks = lines::blocks(text);
    let mut said = blocks.iter().filter(|block| block.kind != BlockKind::Ignored);
    let (Some(block), None) = (said.next(), said.next()) else { return None };
    let BlockKind::Fence(code) = &block.kind else { return None };
    if code.frame != Frame::Closed || block.quoted {
        return None;
    }
    let (first, last) = block.pieces.first().zip(block.pieces.last())?;
    let around = [Span { start: block.span.start, end: first.start }, Span { start: last.end, end: block.span.end }];
    let bare = without(text, around.iter().map(|span| span.start..span.end));
    let named = match code.language.as_str() {
        "text" | "txt" | "plain" | "plaintext" | "md" | "markdown" | "gfm" => true,
        "" => false,
        _ => return None,
    };
    let inside = lines::blocks(&bare);
    let listed = inside.iter().any(|block| matches!(block.kind, BlockKind::Item { .. }));
    let is_plan = !is_patch(&bare)
        && (listed || named && all_asked(&bare, &inside))
        && beside_items(&bare, &inside).all(is_harmless);
    is_plan.then_some((bare, around))
}

/// True when lines begin with `-` and others with `+`, as those of a patch do.
fn is_patch(text: &str) -> bool {
    let begins = |sign: char| text.lines().any(|line| line.trim_start_matches(is_blank).starts_with(sign));
    begins('-') && begins('+')
}

/// The lines of a text that begin no item.
fn beside_items<'t>(text: &'t str, blocks: &'t [Block]) -> impl Iterator<Item = &'t str> {
    let pieces = |block: &'t Block| {
        let from = usize::from(matches!(block.kind, BlockKind::Item { .. }));
        block.pieces.iter().skip(from)
    };
    blocks.iter().flat_map(pieces).map(|piece| &text[piece.start..piece.end])
}

/// True for a line that neither shows nor refuses what stands near it; a prohibition of its own is a sentence.
fn is_harmless(line: &str) -> bool {
    let denied = unasked::denies(line) || unasked::shows(line) || unasked::rejects(line) || unasked::reports(line);
    let label = line.trim_end().strip_suffix(':');
    let own = line.trim_end().ends_with(['.', '!']) && unasked::is_prohibition(line);
    (!denied || own) && !label.is_some_and(unasked::quotes)
}

/// True when every sentence of a text without a list is an instruction; headings are none.
fn all_asked(text: &str, blocks: &[Block]) -> bool {
    let said = blocks.iter().filter(|block| !matches!(block.kind, BlockKind::Heading(1..=6) | BlockKind::Ignored));
    let lines = said.flat_map(|block| block.pieces.iter()).map(|piece| &text[piece.start..piece.end]);
    let mut sentences = lines.flat_map(|line| line.split_inclusive(". "));
    sentences.all(|one| {
        let led = connectors::connector(one).map_or(one, |(_, _, length)| &one[length..]);
        vocabulary::begins_with_verb(led) || unasked::is_prohibition(one)
    })
}

/// True when the list in the fence at `n` is what the text gives as its plan: it is announced, or stands under the title or under a
/// heading of tasks; no heading, sentence or mark of HTML says otherwise; and nothing else in the text is to be done.
fn is_given(text: &str, blocks: &[Block], n: usize) -> bool {
    let fence = blocks[n].span;
    let said = |block: &Block| match (block.pieces.first(), block.pieces.last()) {
        (Some(first), Some(last)) => first.start..last.end,
        _ => block.span.start..block.span.start,
    };
    let lead = blocks[..n].iter().rposition(|block| block.kind != BlockKind::Ignored);
    let lead = match lead.map(|lead| (lead, &blocks[lead].kind)) {
        None => None,
        Some((lead, BlockKind::Heading(level))) if *level < 7 => {
            let is_tasks = sections::section(&text[said(&blocks[lead])]) == Section::Tasks;
            if !is_tasks && (lead > 0 || *level > 1) {
                return false;
            }
            None
        }
        Some((lead, BlockKind::Heading(_) | BlockKind::Paragraph)) => {
            let whole = said(&blocks[lead]);
            let begin = whole.start + last_sentence(&text[whole.clone()]);
            if unasked::denies(&text[whole.clone()]) || !announces(&text[begin..whole.end]) {
                return false;
            }
            Some(begin..whole.end)
        }
        Some((_, BlockKind::Item { .. } | BlockKind::Fence(_) | BlockKind::Table | BlockKind::Ignored)) => {
            return false;
        }
    };
    let is_html =
        |line: &str| line.trim_start().strip_prefix('<').is_some_and(|tag| tag.starts_with(char::is_alphabetic));
    if sections::uses(text, blocks, false)[n] != Use::Tasks || text[..fence.start].lines().any(is_html) {
        return false;
    }
    let mut open = usize::MAX;
    for (block, level) in blocks[..n].iter().rev().filter_map(|block| match block.kind {
        BlockKind::Heading(level) => Some((block, level)),
        BlockKind::Item { .. } | BlockKind::Paragraph | BlockKind::Fence(_) | BlockKind::Table | BlockKind::Ignored => {
            None
        }
    }) {
        if level < open && unasked::denies(&text[said(block)]) {
            return false;
        }
        open = open.min(level);
    }
    let around = without(text, lead.clone().into_iter().chain(std::iter::once(fence.start..fence.end)));
    let listed = || blocks.iter().any(|block| matches!(block.kind, BlockKind::Item { .. } | BlockKind::Table));
    let mut sentences = around.lines().flat_map(|line| line.split_inclusive(". "));
    let denied = sentences.any(|one| unasked::is_prohibition(one.trim_start()) || unasked::rejects(one));
    !denied
        && (lead.is_some() || !listed())
        && build::build(&around, false).drafts.iter().all(|draft| TALK.after(&draft.plan.description).is_some())
}

/// A text with spaces for some parts of it, so that the rest stands where it stood.
fn without(text: &str, parts: impl IntoIterator<Item = Range<usize>>) -> String {
    let mut left = String::with_capacity(text.len());
    let mut at = 0;
    for part in parts {
        left.push_str(&text[at..part.start]);
        left.extend(text[part.clone()].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        at = part.end;
    }
    left.push_str(&text[at..]);
    left
}

/// Where the last sentence of a paragraph begins.
fn last_sentence(text: &str) -> usize {
    [". ", "! ", "? ", ".\n", "!\n", "?\n"].iter().filter_map(|end| text.rfind(end)).max().map_or(0, |at| at + 2)
}

/// Names of a plan; `TodoWrite` and `update_plan` are how assistants call it.
static NAMES: Words = Words::new(|| {
    list(
        "plan|plans|task|tasks|todo|todos|to-do|to-dos|step|steps|issues|tickets|backlog|roadmap|todowrite|todo_write|update_plan",
    )
});
/// Verbs with which a plan is given to be carried out.
static CARRIES: Words = Words::new(|| {
    list("execute|carry|do|follow|run|implement|work|complete|continue|resume|finish|start|begin|use|perform|process")
});
/// Words that change nothing about what a plan is.
static FILLS: Words = Words::new(|| {
    list(
        "the|a|an|my|our|your|this|that|these|those|here|here's|is|are|it|all|of|to|do|out|on|with|through|up|from|in|as|by|\
         json|yaml|following|below|current|new|updated|revised|final|full|complete|whole|entire|next|list|now|then|and|\
         please|i've|i|we've|we|have|me|agreed|approved|implementation|project|work|ok|okay|sure|hi|hello|thanks|order|given|one|at|\
         time",
    )
});
/// With these words a writer asks for an answer, and for nothing that is to be done.
static TALK: Words = Words::new(|| list("let me know|tell me if|tell me what you think"));

/// True for "Please execute the following plan" and "Tasks for today": a sentence that asks to carry a plan out or only
/// names it, in words of which none is other than expected.
fn announces(sentence: &str) -> bool {
    let asked = vocabulary::instruction(sentence);
    let carries = words(asked).next().is_some_and(|first| CARRIES.contains(first.as_str()));
    let plain = |part: &str| words(part).all(|word| NAMES.contains(word.as_str()) || FILLS.contains(word.as_str()));
    let named = |part: &str| words(part).any(|word| NAMES.contains(word.as_str()));
    if carries {
        let rest = asked.trim_start().split_once(char::is_whitespace).map_or("", |(_, rest)| rest);
        return named(rest) && plain(rest);
    }
    let (name, _) = asked.split_once(" for ").unwrap_or((asked, ""));
    named(name) && plain(name)
}

/// The plan with the words around its list.
fn with_context(mut plan: ParsedPlan, parts: &[&str]) -> ParsedPlan {
    for part in parts {
        let mut lines: Vec<&str> = Vec::new();
        for line in part.lines().chain([""]) {
            if !line.trim_matches(is_blank).is_empty() {
                lines.push(line);
            } else if !lines.is_empty() {
                if plan.context.len() < CONTEXT_MAX {
                    plan.context.push(collapse(&lines.join("\n")).into_owned());
                }
                lines.clear();
            }
        }
    }
    plan
}
