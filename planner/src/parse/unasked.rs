//! The words by which a text shows that something is not asked for: it is forbidden, refused, done, reported or only
//! spoken of. Whoever wants to know asks here, by the place where the words stand: at the beginning of a text, in a head
//! over others, before code, behind it, as a label, in a heading.
//!
//! Each word stands once, with the places at which it counts. This module only reads the words; what follows from them
//! is for others.

use std::sync::LazyLock;

use super::phrases::{Hit, Marked, after_any, after_word, lower, words};
use super::text::holds;
use super::{states, vocabulary};
use crate::plan::Mark;

/// Begins a prohibition: "never push".
const FIRST: u32 = 1 << 0;
/// Leaves an order what it is, though it begins like a prohibition.
const KEEPS: u32 = 1 << 1;
/// In a head forbids what stands under it: "the agent must not".
const HEAD: u32 = 1 << 2;
/// First or last in a head, names what is forbidden: "forbidden commands".
const NAME: u32 = 1 << 3;
/// Forbids the code behind it, wherever it stands.
const BEFORE: u32 = 1 << 4;
/// Forbids the code behind it up to a comma.
const UNTIL: u32 = 1 << 5;
/// Makes a mention of the code behind it, also over an "and".
const MENTION: u32 = 1 << 6;
/// Right behind code, refuses it or says that it is done.
const BEHIND: u32 = 1 << 7;
/// Begins what is not done, or has been.
const ITEM: u32 = 1 << 8;
/// Alone over code, says that it is an example of what is wrong, or belongs elsewhere.
const LABEL: u32 = 1 << 9;
/// Anywhere in the sentence over code, forbids it.
const OVER: u32 = 1 << 10;
/// In the sentence over code, shows what was printed or happened.
const SHOWN: u32 = 1 << 11;
/// Begins a heading over what will not be done.
const EXCLUDED: u32 = 1 << 12;
/// Is a heading over what happened.
const REPORT: u32 = 1 << 13;
/// Before a colon, begins a warning.
const WARNS: u32 = 1 << 14;
/// Beside a list of another program, says that it is not to be carried out, or only shown.
const DENIES: u32 = 1 << 15;
/// The same, wherever in the text it stands.
const REJECTS: u32 = 1 << 16;
/// Before a colon, says that what follows is what somebody else said.
const QUOTES: u32 = 1 << 17;
/// Behind code, says that it is done, or that it is not wanted; beside it stand no other words than idle ones.
const CLOSES: u32 = 1 << 18;
/// Says nothing beside such a word.
const IDLE: u32 = 1 << 19;
/// Is the beginning of words.
const STEM: u32 = Marked::STEM;

/// Every word that shows that something is not asked for, with the places at which it counts.
static WORDS: LazyLock<Marked> = LazyLock::new(|| {
    Marked::new(&[
        (KEEPS, "don't forget to|do not forget to|never mind|don't hesitate|do not hesitate|i have to"),
        (FIRST | BEFORE | LABEL | DENIES, "don't|avoid"),
        (FIRST | BEFORE | LABEL, "do not"),
        (FIRST | BEFORE | OVER | DENIES, "never"),
        (FIRST | BEFORE | DENIES, "dont|can't"),
        (FIRST | BEFORE | BEHIND | DENIES, "cannot"),
        (FIRST | UNTIL | DENIES, "without"),
        (
            FIRST,
            "nobody should|nobody may|nobody must|no one should|no one may|no one must|what not to do|things not to do|what never to do|don'ts|donts|do nots|no hacer|ne jamais|nao",
        ),
        (
            FIRST | BEFORE,
            "no need to|refrain from|under no circumstances|on no account|by no means|in no case|at no time|nunca|\
             jamás|no usar|no lances|no lanzar|no hagas|no uses|ne pas|jamais|niemals|nie|nicht|auf keinen fall|\
             nooit|mai|não|не|никогда|нельзя|请勿|切勿|不得|严禁",
        ),
        (FIRST | BEFORE | MENTION, "不要|禁止"),
        (FIRST | BEFORE | STEM, "no ejecut|no borr|no corr|non eseg|non lanc|non us|non fa"),
        (FIRST | HEAD | BEHIND, "must not|must never|should not|should never"),
        (FIRST | HEAD | BEFORE | BEHIND | DENIES, "mustn't|shouldn't"),
        (FIRST | HEAD, "not allowed"),
        (HEAD, "not permitted|are not to"),
        (HEAD | BEHIND, "shall not|shall never|may not|may never|is not to"),
        (NAME, "prohibited|disallowed|banned"),
        (NAME | BEFORE, "verboten|interdit|interdits|vietato|proibido|prohibido|prohibidos"),
        (NAME | MENTION | DENIES, "forbidden"),
        (BEFORE | DENIES, "not"),
        (BEFORE, "no longer|hold off|pas|niet|geen|ikke|inte|aldrig|别运|别执"),
        (BEFORE | STEM, "kein|n'ex|prohibid|запрещ"),
        (OVER, "not to"),
        (UNTIL, "instead of|rather than|except|everything but|anything but|all but"),
        (MENTION | CLOSES, "executed|已经"),
        (
            MENTION,
            "runs|executes|invokes|invoked|i have|i've|i will|i'll|i'm going to|i am going to|ich|ik|je|j'ai|nous avons|yo|ya|he ejecutado|hemos|già|já|\
             eu vou|déjà|schon|bereits|я|уже|我会|我来|我将|我自|我刚|我去|运行了|执行了",
        ),
        (
            MENTION,
            "how|whether|why|who|whom|whose|unsafe|risky|harmful|prevent|prevents|forbids|prohibit|prohibits|\
             disallow|disallows|如何|怎么|为什么|是否",
        ),
        (MENTION | DENIES, "nobody|nothing|forbid"),
        (MENTION | IDLE | DENIES, "already"),
        (MENTION | SHOWN, "ran"),
        (MENTION | DENIES | REJECTS, "refuse|refuses"),
        (
            BEHIND,
            "can not|is never to|is forbidden|is prohibited|is not allowed|isn't allowed|must wait|has to wait|\
             can wait|is banned|is off limits|is already|was already|has already|has been|was run|darf nicht",
        ),
        (BEHIND | STEM, "を実行しな|を実行するな|を実行しました|を実行した"),
        (ITEM | MENTION, "previously|formerly|historically"),
        (ITEM, "skip|done:|finished:|completed:|rejected:|postponed:|deferred:|declined:|no "),
        (ITEM | CLOSES, "n/a|cancelled|canceled|wontfix"),
        (ITEM | CLOSES | DENIES, "deprecated"),
        (ITEM | CLOSES | DENIES | REJECTS, "obsolete"),
        (CLOSES, "done|finished|completed|skipped|no|longer|erledigt|hecho|fait|fatto|feito|gedaan|готово|完成|已完成"),
        (
            IDLE,
            "all|now|yet|today|it|this|that|is|do|run|execute|use|any|more|anymore|again|please|for|me|myself|need|\
             needed|required|necessary|earlier|before|to",
        ),
        (LABEL, "incorrect|not like this|anti-pattern|antipattern|replace|with|by|change|from|into|danger|destructive"),
        (LABEL | MENTION, "dangerous"),
        (LABEL | DENIES, "bad"),
        (LABEL | SHOWN | DENIES, "wrong"),
        (LABEL | REPORT, "to reproduce|steps to reproduce|how to reproduce"),
        (LABEL | REPORT | DENIES, "reproduction"),
        (
            SHOWN,
            "outputs|prints|saw|sees|get|gets|got|went|message|messages|showed|shows|stacktrace|happened|happens|\
             currently|fails|failing|crashes|crashed|tried",
        ),
        (SHOWN | MENTION, "did"),
        (SHOWN | IDLE, "yesterday"),
        (SHOWN | QUOTES, "says|said|writes|wrote"),
        (SHOWN | DENIES, "error|errors|log|output|printed|failed|broke|broken"),
        (SHOWN | REPORT | DENIES, "logs"),
        (SHOWN | REPORT, "traceback"),
        (
            REPORT,
            "reproduction steps|repro|repro steps|environment|system info|system information|expected behavior|\
             expected behaviour|expected result|actual behavior|actual behaviour|actual result|current behavior|\
             current behaviour|log output|error log|stack trace",
        ),
        (
            EXCLUDED,
            "out of scope|out-of-scope|non-goals|non goals|nongoals|non-goal|will not do|not in scope|not doing|\
             not now|explicitly excluded|excluded|anti-goals|won't have|what we won't do|what we will not do|\
             not planned|no-goals|future work (out of scope)|things we won't do|nicht im umfang|nicht ziele|\
             nichtziele|nicht-ziele|außerhalb des umfangs|nicht enthalten|hors périmètre|hors du périmètre|\
             hors sujet|non-objectifs|fuera de alcance|fuera del alcance|no objetivos|fora do escopo|fora de escopo|\
             não objetivos|fuori ambito|fuori portata|non obiettivi|вне рамок|не входит|за рамками|不做|范围外|范围之外|非目标|\
             不在范围内|対象外|スコープ外|やらないこと",
        ),
        (ITEM | EXCLUDED, "won't do|wont do|won't fix"),
        (WARNS, "critical|important|note|nb|warning|caution|attention|reminder|tip|hint|remember|gate"),
        (
            DENIES,
            "won't|instead|rejects|old|older|previous|former|example|examples|sample|samples|template|dummy|fake|\
             mock|fixture|fixtures|schema|format|response|responses|request|requests|payload|returns|returned|input|\
             reproduce|like|looks|were|wasn't|weren't|imagine",
        ),
        (IDLE | DENIES, "was"),
        (DENIES | REJECTS, "refused|reject|rejected|outdated|superseded|abandoned|discarded|hypothetical"),
    ])
});

/// The words that count at a place, by themselves: a short list is done with sooner than the long one.
fn at(places: u32) -> Marked {
    WORDS.only(places | KEEPS)
}

static FIRSTS: LazyLock<Marked> = LazyLock::new(|| at(FIRST));
static HEADS: LazyLock<Marked> = LazyLock::new(|| at(HEAD));
static BEFORES: LazyLock<Marked> = LazyLock::new(|| at(BEFORE | UNTIL));
static MENTIONS: LazyLock<Marked> = LazyLock::new(|| at(MENTION));
static BEHINDS: LazyLock<Marked> = LazyLock::new(|| at(BEHIND));
static ITEMS: LazyLock<Marked> = LazyLock::new(|| at(ITEM));
static OVERS: LazyLock<Marked> = LazyLock::new(|| at(OVER));
static SHOWNS: LazyLock<Marked> = LazyLock::new(|| at(SHOWN));
static EXCLUDES: LazyLock<Marked> = LazyLock::new(|| at(EXCLUDED));
static DENIALS: LazyLock<Marked> = LazyLock::new(|| at(DENIES));
static REJECTIONS: LazyLock<Marked> = LazyLock::new(|| at(REJECTS));

/// So many words have the head over forbidden things that only names them.
const NAME_WORDS_MAX: usize = 6;

/// "Never do this", "Please don't": a text that begins as a prohibition.
pub(super) fn is_prohibition(text: &str) -> bool {
    let rest = after_any(text, &["please", "pls", "plz"]).map_or(text, str::trim_start);
    let found = marks_of(&FIRSTS, rest);
    found & KEEPS == 0 && (found & FIRST > 0 || negated(rest))
}

/// "N'ex\u{e9}cute jamais", "Ne lance pas".
fn negated(text: &str) -> bool {
    let ne =
        text.starts_with(['n', 'N']) && (after_word(text, "ne").is_some() || text[1..].starts_with(['\'', '\u{2019}']));
    ne && {
        let all = lower(text);
        holds(&all, " jamais") || holds(&all, " pas") || holds(&all, " rien")
    }
}

/// True for words that forbid what stands under them: a prohibition, "the agent must not", "Forbidden commands".
pub(super) fn forbids(text: &str) -> bool {
    let plain = text.trim_matches(|c: char| !c.is_alphanumeric());
    let plain = after_any(plain, &["and", "but", "also", "then", "please"]).map_or(plain, str::trim_start);
    if is_prohibition(plain) {
        return true;
    }
    if vocabulary::begins_with_verb(plain) {
        return false;
    }
    let named = || {
        let mut all = words(plain);
        let ends = [all.next(), all.by_ref().take(NAME_WORDS_MAX - 1).last()];
        all.next().is_none() && ends.into_iter().flatten().any(|word| WORDS.marks(&word) & NAME > 0)
    };
    holds_any(&HEADS, plain, HEAD) || named()
}

/// True for what stands over code that is not to be run: a prohibition, "Bad", "To reproduce".
pub(super) fn forbids_below(text: &str) -> bool {
    WORDS.marks(text) & LABEL > 0 || forbids(text) || holds_any(&OVERS, text, OVER)
}

/// True when some word before a piece of code forbids it, or says that it is not to be run any more.
pub(super) fn forbids_code(before: &str) -> bool {
    let open = |hit: &Hit| hit.marks & UNTIL > 0 && !holds(&before[hit.start..], ", ");
    let no = || before.rsplit(' ').next().is_some_and(|last| last.eq_ignore_ascii_case("no"));
    marks_of(&ITEMS, before) & ITEM > 0
        || hits(&BEFORES, before).any(|hit| hit.marks & BEFORE > 0 || open(&hit))
        || no()
}

/// True when some word of a part of a clause makes a mention of the code behind it.
pub(super) fn mentions(said: &str) -> bool {
    holds_any(&MENTIONS, said, MENTION)
}

/// True when a part before a colon gives what follows as what somebody said: "the guide says: run `make`".
pub(super) fn quotes(label: &str) -> bool {
    words(label).last().is_some_and(|last| WORDS.marks(&last) & QUOTES > 0)
}

/// True when what stands right behind code refuses it or says that it is done, as "is forbidden" and "(done)" do.
pub(super) fn settles(after: &str) -> bool {
    marks_of(&BEHINDS, after) & BEHIND > 0 || after.starts_with(TICKS) || closes(after)
}

/// True for a remark beside a step that withholds its command: it forbids it, says that it is done, or that somebody does
/// it.
pub(super) fn withholds(remark: &str) -> bool {
    let own = |word: &str| matches!(word, "himself" | "herself" | "themselves" | "myself" | "ourselves");
    let whole = || forbids_code(remark) || mentions(remark) || words(remark).any(|word| own(&word));
    settles(remark) || forbids(remark) || whole()
}

/// How far a step is by the word behind the last sign in it: "Fix it - DONE", "Push it (skipped)", "`make`: done". A dash
/// stands apart, and a colon right behind code or in brackets; elsewhere the word belongs to what is to be done.
pub(super) fn ending(step: &str) -> Option<Mark> {
    if !ends_alone(step.as_bytes()) {
        return None;
    }
    let plain = step.trim_end_matches([' ', '.', '!', ')', ']', '*', '_']);
    let (at, sign) = plain.rmatch_indices(['-', '\u{2013}', '\u{2014}', '(', '[', ':']).next()?;
    let (head, said) = (&plain[..at], &plain[at + sign.len()..]);
    let bracketed = || head.rfind(['(', '[']) > head.rfind([')', ']']);
    let apart = match sign {
        ":" => head.ends_with('`') || bracketed(),
        "(" | "[" => head.ends_with([' ', '`', '*', '_']),
        _ => head.trim_end_matches('-').ends_with(' ') && said.starts_with(' '),
    };
    let word = lower(said.trim_matches([' ', '*', '_']));
    if apart && WORDS.marks(&word) & CLOSES > 0 { states::mark(&word) } else { None }
}

/// False when the last word stands behind another one, as in most steps; none that closes a step has a sign in it.
fn ends_alone(step: &[u8]) -> bool {
    let idle = |byte: u8| matches!(byte, b' ' | b'*' | b'_');
    let closing = |byte: u8| idle(byte) || matches!(byte, b'.' | b'!' | b')' | b']');
    let in_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'/';
    let mut before = step.iter().copied().rev().skip_while(|byte| closing(*byte)).skip_while(|byte| in_word(*byte));
    before.find(|byte| !idle(*byte)).is_some_and(|byte| !byte.is_ascii() || matches!(byte, b'-' | b'(' | b'[' | b':'))
}

/// Signs of what is done, and of what is not to be done.
pub(super) const TICKS: [char; 7] =
    ['\u{2705}', '\u{2713}', '\u{2714}', '\u{2611}', '\u{274c}', '\u{1f6ab}', '\u{26d4}'];

/// "- DONE", "(not needed)", ": done by Bob": up to a sign no words but those by which it is done or not wanted.
fn closes(after: &str) -> bool {
    let said = after.trim_start_matches(|c: char| !c.is_alphanumeric());
    let signs = [')', ']', ',', '.', ';', '!', ':'];
    // Mostly the first of some words is none of them.
    if let Some((first, _)) = said.split_once(' ')
        && !first.contains(signs)
        && words(first).next().is_none_or(|word| WORDS.marks(&word) & (CLOSES | IDLE | BEFORE) == 0)
    {
        return false;
    }
    let end = said.find(signs).unwrap_or(said.len());
    let mut all = words(&said[..end]).map(|word| WORDS.marks(&word) & (CLOSES | IDLE | BEFORE));
    let Some(first) = all.next() else { return false };
    let by = words(said).nth(1).is_some_and(|next| matches!(&*next, "by" | "on" | "at" | "in" | "with" | "last"));
    let whole = |(marks, rest): (u32, &str)| marks & CLOSES > 0 && said.len() - rest.len() >= end;
    let (any, known) = all.fold((first, first > 0), |(any, known), marks| (any | marks, known && marks > 0));
    first & CLOSES > 0 && by || WORDS.found(said).any(whole) || known && any & (CLOSES | BEFORE) > 0
}

/// True for a sentence that shows what was printed or happened.
pub(super) fn shows(text: &str) -> bool {
    holds_any(&SHOWNS, text, SHOWN)
}

/// What follows the words in a heading that say of what stands under it that it will not be done.
pub(super) fn excluded(heading: &str) -> impl Iterator<Item = &str> {
    EXCLUDES.found(heading).filter(|(marks, _)| marks & EXCLUDED > 0).map(|(_, rest)| rest)
}

/// True for a heading that announces what happened, which nobody is to do again unasked.
pub(super) fn reports(heading: &str) -> bool {
    WORDS.marks(heading) & REPORT > 0
}

/// True for what stands before the colon of a warning.
pub(super) fn warns(label: &str) -> bool {
    WORDS.marks(label) & WARNS > 0
}

/// True for words of what is not to be carried out, or is only shown.
pub(super) fn denies(text: &str) -> bool {
    holds_any(&DENIALS, text, DENIES)
}

/// True for words of what is not to be carried out, wherever they stand.
pub(super) fn rejects(text: &str) -> bool {
    holds_any(&REJECTIONS, text, REJECTS)
}

/// The places of the words with which a text begins.
fn marks_of(words: &Marked, text: &str) -> u32 {
    let found = |text: &str| words.found(text).fold(0, |all, (marks, _)| all | marks);
    if text.starts_with(|c: char| c.is_ascii()) { found(text) } else { found(&lower(text)) }
}

fn holds_any(words: &Marked, text: &str, place: u32) -> bool {
    let any = |text: &str| hits(words, text).any(|hit| hit.marks & place > 0);
    if text.is_ascii() { any(text) } else { any(&lower(text)) }
}

/// The words in a text, without those that an order keeps.
fn hits<'t>(words: &'t Marked, text: &'t str) -> impl Iterator<Item = Hit> + 't {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let hit = words.next(text, at)?;
            let kept = hit.marks & KEEPS > 0;
            at = if kept { hit.end } else { hit.start + 1 };
            if !kept {
                return Some(hit);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_word_stands_once() {
        let mut all: Vec<&str> = super::WORDS.iter().collect();
        all.sort_unstable();
        let twice: Vec<_> = all.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        assert_eq!(twice, [""; 0]);
    }
}
