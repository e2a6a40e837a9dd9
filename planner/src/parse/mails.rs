//! What a mail brings beside what it says: greetings, the mails it answers, and the notice that lawyers want under it. Nobody who
//! sends it asks for what stands there.

use super::lines::{Block, BlockKind, Pieces};
use super::phrases::{Words, list};
use super::text::{holds, threes};
use super::vocabulary;
use crate::plan::Span;

/// A line that says who wrote what is quoted under it is no longer, though it may be broken once.
const ATTRIBUTION_BYTES_MAX: usize = 200;

/// How such a line begins and ends.
const ATTRIBUTIONS: [(&str, &str); 8] = [
    ("On ", " wrote:"),
    ("Am ", ":"),
    ("Le ", "crit :"),
    ("Le ", "crit:"),
    ("El ", "escribi\u{f3}:"),
    ("Il ", "scritto:"),
    ("Em ", "escreveu:"),
    ("Op ", ":"),
];
/// What stands in it where its end is only a colon.
const WROTE: [&str; 2] = [" schrieb", " schreef"];
/// The rules above a mail that is answered.
const RULES: [&str; 5] = [
    "original message",
    "urspr\u{fc}ngliche nachricht",
    "message d'origine",
    "mensaje original",
    "messaggio originale",
];
/// Words of the notice under a mail.
const NOTICES: [&str; 4] =
    ["intended recipient", "intended addressee", "nicht der richtige adressat", "destinataire pr\u{e9}vu"];

/// What is said to somebody before anything is asked of them, in other languages than English.
static GREETINGS: Words = Words::new(|| {
    list(
        "hallo|guten tag|guten morgen|liebe|lieber|sehr geehrte|sehr geehrter|moin|servus|bonjour|bonsoir|salut|cher|ch\u{e8}re|\
         hola|buenos d\u{ed}as|buenas tardes|estimado|estimada|ciao|buongiorno|ol\u{e1}|bom dia|\u{4f60}\u{597d}|\u{60a8}\u{597d}|\u{5927}\u{5bb6}\u{597d}",
    )
});
/// What is said at the end, in other languages than English; and the sign that parts a signature from a mail.
static FAREWELLS: Words = Words::new(|| {
    list(
        "--|viele gr\u{fc}\u{df}e|liebe gr\u{fc}\u{df}e|beste gr\u{fc}\u{df}e|mit freundlichen gr\u{fc}\u{df}en|gru\u{df}|gr\u{fc}\u{df}e|danke|vielen dank|\
         cordialement|bien cordialement|bien \u{e0} vous|merci|merci d'avance|saludos|un saludo|atentamente|gracias|\
         saluti|cordiali saluti|grazie|obrigado|obrigada|abra\u{e7}os|met vriendelijke groet|groeten|bedankt|\u{8c22}\u{8c22}|\u{6b64}\u{81f4}",
    )
});
/// A greeting, and each line of what ends a mail, is no longer and has no more words.
const FRAME_BYTES_MAX: usize = 60;
const FRAME_WORDS_MAX: usize = 6;
/// What ends a mail has no more lines.
const FAREWELL_LINES_MAX: usize = 6;

fn is_frame(line: &str, words: &Words) -> bool {
    let ends =
        |rest: &str| rest.is_empty() || rest.starts_with([',', '!', '.', ' ', '\u{ff0c}', '\u{ff01}', '\u{3002}']);
    let short = line.len() <= FRAME_BYTES_MAX && line.split_whitespace().nth(FRAME_WORDS_MAX).is_none();
    short && !line.ends_with(['?', ':']) && words.found(line).any(|(_, rest)| ends(rest))
}

/// Ignores the greeting that begins a mail, alone on its line, and what ends it.
pub(super) fn frame(text: &str, blocks: &mut Vec<Block>) {
    let line = |piece: &Span| &text[piece.start..piece.end];
    let first = blocks.iter_mut().find(|block| block.kind != BlockKind::Ignored);
    if let Some(block) = first.filter(|block| block.kind == BlockKind::Paragraph && block.pieces.len() == 1) {
        let greets = block.pieces.iter().all(|piece| is_frame(line(piece), &GREETINGS));
        let calls = || block.pieces.iter().all(|piece| line(piece).split_whitespace().nth(3).is_none());
        if greets && calls() {
            block.kind = BlockKind::Ignored;
        }
    }
    let mut found = None;
    let mut n_lines = 0;
    'blocks: for (n, block) in blocks.iter().enumerate().rev() {
        match block.kind {
            BlockKind::Ignored => continue,
            BlockKind::Paragraph if !block.quoted => {}
            _ => break,
        }
        for (at, piece) in block.pieces.iter().enumerate().rev() {
            let said = line(piece);
            n_lines += 1;
            if is_frame(said, &FAREWELLS) {
                found = Some((n, at));
            }
            let named = said.len() <= FRAME_BYTES_MAX && !vocabulary::begins_with_verb(said);
            if n_lines > FAREWELL_LINES_MAX || !named {
                break 'blocks;
            }
        }
    }
    let Some((n, piece)) = found else { return };
    cut(blocks, n, piece);
    for block in &mut blocks[n + 1..] {
        block.kind = BlockKind::Ignored;
    }
}

/// Ignores what a mail quotes of others beside what it says itself: under "On Monday, Ann wrote:" all that is quoted, and
/// all that follows where nothing is; everything under the rule above an original message.
pub(super) fn history(text: &str, blocks: &mut Vec<Block>) {
    let notes = blocks.iter().any(|block| block.kind == BlockKind::Paragraph) && may_notice(text);
    for block in blocks.iter_mut().filter(|block| notes && block.kind == BlockKind::Paragraph) {
        let said = block.pieces.iter().map(|piece| &text[piece.start..piece.end]);
        let said = said.collect::<Vec<_>>().join(" ").to_lowercase();
        if NOTICES.iter().any(|notice| holds(&said, notice)) {
            block.kind = BlockKind::Ignored;
        }
    }
    let Some((n, piece, rule)) = begin(text, blocks) else { return };
    let says = |block: &Block| !matches!(block.kind, BlockKind::Ignored | BlockKind::Heading(_));
    let before = piece > 0 || blocks[..n].iter().any(|block| says(block) && !block.quoted);
    let quotes = !rule && blocks[n + 1..].iter().find(|block| says(block)).is_some_and(|next| next.quoted);
    let after = quotes && blocks[n + 1..].iter().any(|block| says(block) && !block.quoted);
    if !(before || after) {
        return;
    }
    cut(blocks, n, piece);
    for block in blocks[n + 1..].iter_mut().filter(|block| block.quoted || !quotes) {
        block.kind = BlockKind::Ignored;
    }
}

/// True for a text with a word of such a notice. Most texts have not even three letters of one.
fn may_notice(text: &str) -> bool {
    let near = |a: u8, b: u8, c: u8| {
        ((a == b'c') & (b == b'i') & (c == b'p'))
            | ((a == b'd') & (b == b'r') & (c == b'e'))
            | ((a == b'n') & (b == b'a') & (c == b't'))
    };
    threes(text).fold(false, |any, (a, b, c)| any | near(a, b, c))
        && ["recipient", "addressee", "adressat", "Adressat", "destinataire"].iter().any(|word| holds(text, word))
}

/// Where the line stands under which others speak, and whether it is a rule.
fn begin(text: &str, blocks: &[Block]) -> Option<(usize, usize, bool)> {
    let paragraphs = blocks.iter().enumerate().filter(|(_, block)| !block.quoted && !block.pieces.is_empty());
    for (n, block) in paragraphs.filter(|(_, block)| !matches!(block.kind, BlockKind::Fence(_) | BlockKind::Table)) {
        for (at, piece) in block.pieces.iter().enumerate() {
            let line = &text[piece.start..piece.end];
            let next = block.pieces.get(at + 1).map_or("", |next| &text[next.start..next.end]);
            let is_rule = is_rule(line);
            if is_rule || is_attribution(line, "") || !next.is_empty() && is_attribution(line, next) {
                return Some((n, at, is_rule));
            }
        }
    }
    None
}

fn is_rule(line: &str) -> bool {
    let signs = |c: char| c == '-' || c == ' ';
    let dashed = line.starts_with("--") && line.ends_with("--") && line.len() <= ATTRIBUTION_BYTES_MAX;
    dashed && RULES.contains(&&*line.trim_matches(signs).to_lowercase())
}

/// "On Mon, Mar 2, 2026 at 5:00 PM Ann <ann@example.com> wrote:", which may be broken.
fn is_attribution(line: &str, next: &str) -> bool {
    if line.len() + next.len() > ATTRIBUTION_BYTES_MAX {
        return false;
    }
    let fits = |(_, end): &(&str, &str)| {
        let ends = if next.is_empty() { line.ends_with(end) } else { next.ends_with(end) || next == end.trim_start() };
        let wrote = *end != ":" || WROTE.iter().any(|word| holds(line, word) || holds(next, word.trim_start()));
        ends && wrote
    };
    // Most lines begin otherwise, and have no space there.
    let spaced = line.as_bytes().get(2) == Some(&b' ');
    let mut begun = ATTRIBUTIONS.iter().filter(|(start, _)| spaced && line.starts_with(start));
    begun.any(fits) && line.bytes().any(|byte| byte.is_ascii_digit())
}

/// Ignores the lines of a block from one of them on.
fn cut(blocks: &mut Vec<Block>, n: usize, piece: usize) {
    let block = &mut blocks[n];
    let kept: Vec<Span> = block.pieces.iter().take(piece).copied().collect();
    let Some(last) = kept.last() else {
        block.kind = BlockKind::Ignored;
        return;
    };
    let rest = Span { start: last.end, end: block.span.end };
    block.span.end = last.end;
    block.pieces = Pieces::Many(kept);
    let rest = Block { kind: BlockKind::Ignored, span: rest, pieces: Pieces::Many(Vec::new()), ..block.clone() };
    blocks.insert(n + 1, rest);
}
