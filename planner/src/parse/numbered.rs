//! Steps that are numbered as headings are, and headings that are numbered as steps are: "## 1. Fetch the data" over prose
//! is a step with remarks; "Step 1 - Build" over prose that says what to do names a phase.

use super::lines::{Block, BlockKind, Pieces};
use super::markers::{self, Marker};
use super::phrases::strip_prefix_ci;
use super::sections::{self, Section};
use super::{commands, vocabulary};
use crate::plan::Span;

/// What stands under a heading that became an item stands deeper by so many columns.
const UNDER: usize = 4;

/// Makes the one of the other where nothing else in the text is listed.
pub(super) fn settle<'t>(text: &'t str, blocks: &mut [Block<'t>]) {
    if blocks.iter().any(|block| matches!(block.kind, BlockKind::Heading(_))) {
        headings_to_items(text, blocks);
    } else if blocks.iter().any(|block| is_step(text, block)) {
        steps_to_headings(text, blocks);
    }
}

/// Numbered headings that all say what to do, over nothing but prose and code, are items; a single heading above them
/// stays the title.
fn headings_to_items<'t>(text: &'t str, blocks: &mut [Block<'t>]) {
    let mut heads: Vec<(usize, usize, Marker<'t>, usize)> = Vec::new();
    let mut title = None;
    for (n, block) in blocks.iter().enumerate() {
        match block.kind {
            BlockKind::Heading(level) => {
                let line = line_of(text, block);
                if sections::section(line) != Section::Plain {
                    return;
                }
                let found = markers::item(line, None, false).filter(|found| found.marker.rank() == 1);
                match found {
                    Some(found) if vocabulary::begins_with_verb(&line[found.skip..]) => {
                        heads.push((n, level, found.marker, found.skip));
                    }
                    None if title.is_none() && heads.is_empty() => title = Some(level),
                    Some(_) | None => return,
                }
            }
            BlockKind::Item { .. } | BlockKind::Table => return,
            BlockKind::Paragraph | BlockKind::Fence(_) if heads.is_empty() => return,
            BlockKind::Paragraph | BlockKind::Fence(_) | BlockKind::Ignored => {}
        }
    }
    let Some((first, level)) = heads.first().map(|(n, level, ..)| (*n, *level)) else { return };
    let rises = heads
        .iter()
        .zip(1..)
        .all(|((_, _, marker, _), n)| marker.number().is_some_and(|number| number.parse() == Ok::<usize, _>(n)));
    let same = heads.iter().all(|(_, own, ..)| *own == level);
    if heads.len() < 2 || !rises || !same || title.is_some_and(|title| title >= level) {
        return;
    }
    for block in &mut blocks[first..] {
        block.indent += UNDER;
        if block.kind == BlockKind::Paragraph && commands::is_command_line(whole(text, block)) {
            // A command is a step of its own, and the heading its group.
            block.kind = BlockKind::Item { marker: Marker::Bullet, mark: None };
        }
    }
    for (n, _, marker, skip) in heads {
        let block = &mut blocks[n];
        let Some(mut piece) = block.pieces.first().copied() else { continue };
        piece.start += skip;
        block.kind = BlockKind::Item { marker, mark: None };
        block.indent -= UNDER;
        block.pieces = Pieces::One([piece]);
    }
}

/// Lines such as "Step 1 - Build" are headings where each leads to something and one of them to prose that says what to do.
fn steps_to_headings(text: &str, blocks: &mut [Block]) {
    let under = |n: usize| blocks.get(n + 1).filter(|next| !is_step(text, next));
    let says = |block: &Block| {
        block.kind == BlockKind::Paragraph && block.apart && vocabulary::begins_with_verb(line_of(text, block))
    };
    let steps: Vec<usize> = (0..blocks.len()).filter(|n| is_step(text, &blocks[*n])).collect();
    if !steps.iter().all(|n| under(*n).is_some()) || !steps.iter().any(|n| under(*n).is_some_and(says)) {
        return;
    }
    for n in steps {
        let block = &mut blocks[n];
        let Some(end) = block.pieces.last().map(|piece| piece.end) else { continue };
        let line = &text[block.span.start..end];
        let start = end - line.trim_start().len();
        block.kind = BlockKind::Heading(7);
        block.pieces = Pieces::One([Span { start, end }]);
    }
}

/// True for the item "Step 1 - Build".
fn is_step(text: &str, block: &Block) -> bool {
    matches!(block.kind, BlockKind::Item { mark: None, marker: Marker::Number(_) })
        && block.pieces.len() == 1
        && strip_prefix_ci(text[block.span.start..block.span.end].trim_start(), "step ").is_some()
}

fn whole<'t>(text: &'t str, block: &Block) -> &'t str {
    let ends = block.pieces.first().zip(block.pieces.last());
    ends.map_or("", |(first, last)| &text[first.start..last.end])
}

fn line_of<'t>(text: &'t str, block: &Block) -> &'t str {
    block.pieces.first().map_or("", |piece| &text[piece.start..piece.end])
}
