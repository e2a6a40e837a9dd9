//! How texts name a phase: "Phase 2: Core", "Sprint 3", "Étape 1 : Préparation", "第二阶段：实施". What a phase means for the
//! steps in it is for others.

use super::phrases::{Words, list};

/// Words that name a phase with a number behind them, also alone on a line.
static NAMES: Words = Words::new(|| {
    list(
        "phase|stage|milestone|sprint|meilenstein|etappe|étape|Étape|jalon|fase|etapa|hito|этап|Этап|фаза|Фаза|阶段|\
         里程碑|フェーズ",
    )
});
/// The same in headings only: elsewhere what follows is a step.
static HEADS: Words =
    Words::new(|| list("step|iteration|part|task|wave|schritt|teil|paso|passo|parte|marco|шаг|步骤|ステップ|第"));
/// What the number stands before in Chinese and Japanese: "第二阶段".
const COUNTED: [&str; 6] = ["阶段", "階段", "段階", "步", "期", "部分"];

/// What follows "phase 2" in a heading in lower case.
pub(super) fn rest(plain: &str) -> Option<&str> {
    let found = NAMES.after(plain).or_else(|| HEADS.after(plain))?.trim_start();
    let found = found.strip_prefix('#').unwrap_or(found);
    if let Some(after) = han(plain, found) {
        return Some(after);
    }
    let length = found.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'.').count();
    let number = found[..length].trim_end_matches('.');
    let spelt = matches!(number, "one" | "two" | "three" | "four" | "five" | "six" | "seven" | "eight" | "n");
    let counted = number.starts_with(|c: char| c.is_ascii_digit())
        || spelt
        || roman(number).is_some()
        || (number.len() == 1 && number.bytes().all(|b| b.is_ascii_alphabetic()));
    let after = &found[number.len()..];
    let ends = after.is_empty() || after.starts_with([':', ' ', '.', ')', '-', '\u{2013}', '\u{2014}', '\u{ff1a}']);
    (counted && ends).then_some(after)
}

/// What follows a number in Chinese characters, or "第二阶段" as a whole.
fn han<'t>(plain: &str, found: &'t str) -> Option<&'t str> {
    let number = |c: char| c.is_ascii_digit() || "一二三四五六七八九十".contains(c);
    let after = found.trim_start_matches(number);
    let after = match plain.starts_with('第') {
        true => COUNTED.iter().find_map(|word| after.trim_start().strip_prefix(word))?,
        false => after,
    };
    let ends = after.is_empty() || after.starts_with(['\u{ff1a}', ':', ' ', '\u{3001}']);
    (found.starts_with(number) && !plain.is_ascii() && ends).then_some(after)
}

/// "Phase 2: Core", "Milestone 1 - Setup" and "Phase 3", alone on a line, and no sentence that begins so.
pub(super) fn names(line: &str) -> bool {
    numbered(line).is_some_and(|after| {
        let signed = [":", " :", " -", " \u{2013}", " \u{2014}", "\u{ff1a}"].iter().any(|sign| after.starts_with(sign));
        after.is_empty() || signed
    })
}

/// "Phase 2" and "Stage 1: Collect", alone on a line.
pub(super) fn begins(line: &str) -> bool {
    numbered(line).is_some_and(|after| {
        after.is_empty() || after.starts_with([':', '.', ' ', '\u{ff1a}']) && !after.ends_with('.')
    })
}

/// True for a line that names a phase, under the first line of a paragraph, and for what stands under such a line.
pub(super) fn parts(above: &str, line: &str) -> bool {
    names(line) || names(above)
}

/// What follows the digits behind the name of a phase on a short line.
fn numbered(line: &str) -> Option<&str> {
    if line.len() >= 80 {
        return None;
    }
    if line.starts_with('第') {
        return han(line, &line['第'.len_utf8()..]);
    }
    let found = NAMES.after(line)?;
    let number = found.trim_start();
    let after = number.trim_start_matches(|c: char| c.is_ascii_digit());
    (after.len() < number.len()).then_some(after).or_else(|| han(line, number))
}

/// The value of a Roman number in lower case.
pub(super) fn roman(text: &str) -> Option<u32> {
    let mut total = 0_u32;
    let mut last = 0;
    for c in text.chars().rev() {
        let value = match c {
            'i' => 1,
            'v' => 5,
            'x' => 10,
            'l' => 50,
            _ => return None,
        };
        if value < last {
            total = u32::saturating_sub(total, value);
        } else {
            total += value;
            last = value;
        }
    }
    (total > 0 && text.len() <= 6).then_some(total)
}
