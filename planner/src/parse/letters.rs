//! How a letter asks: wishes, the sentence that spells a wish out, what is added to a request, two requests in one.
//!
//! Only running text in which somebody speaks to somebody ("please", "could you", "I need") is judged here; a list of
//! tasks never is.

use super::inline::Inline;
use super::lines::{Block, BlockKind};
use super::phrases::{Words, after_any, after_word, begins, list, words};
use super::roles::{self, Said};
use super::text::{find, holds};
use super::vocabulary;
use crate::plan::NodeKind;

/// What ends a letter is no longer.
const SIGNATURE_BYTES_MAX: usize = 40;
/// Words that say that help is wanted and not yet with what.
static VAGUE: Words = Words::new(|| {
    list(
        "assistance|help with|need help|your help|some help|interested in|curious about|help me to|help us|assist me|\
         following tasks|help me out|give me a hand|following steps",
    )
});
/// Things that are only the form in which the answer to a request comes.
static FORMS: Words = Words::new(|| {
    list(
        "result|results|report|summary|feedback|output|difference|differences|details|insights|recommendations|answer|\
         findings|conclusion|conclusions",
    )
});
/// Words that carry no matter of their own.
static IDLE: Words = Words::new(|| {
    list(
        "information|please|would|could|should|about|their|there|these|those|which|where|while|help|need|needs|want|\
         like|with|from|that|this|have|also|some|such|into|your|mine|them|they|make|more|know|provide|named|called|\
         using|related|field|retrieve|find|assistance|between|including|specific|different|current|available",
    )
});

/// Takes out the name of the writer, alone under "Best regards,".
pub(super) fn sign_off(text: &str, blocks: &mut [Block]) {
    let line = |block: &Block| match (&block.kind, &*block.pieces) {
        (BlockKind::Paragraph, [piece]) if piece.end - piece.start <= SIGNATURE_BYTES_MAX => {
            text.get(piece.start..piece.end)
        }
        _ => None,
    };
    for n in 1..blocks.len() {
        let signed =
            || line(&blocks[n]).is_some_and(roles::is_signature) && line(&blocks[n - 1]).is_some_and(roles::closes);
        if signed() {
            blocks[n].kind = BlockKind::Ignored;
        }
    }
}

/// True when a sentence only says what a later one asks for: "I need help with X. Please compute ...".
pub(super) fn introduces(said: &Said, next_whole: &str, next: &Said) -> bool {
    let first = begins(next_whole.trim_start(), &["first", "firstly", "to start", "to begin"]);
    if !first && joined(next_whole, next.text) {
        return false;
    }
    let (text, wish) = (said.text, said.is_wish());
    if first && wish {
        return true;
    }
    if text.ends_with("the following") {
        return true;
    }
    let lead = words(text).take(16).collect::<Vec<_>>().join(" ");
    let vague = VAGUE.iter().any(|word| holds(&lead, word)) || lead.starts_with("please help me") && lead.len() < 90;
    // A plain instruction never only introduces.
    let vague = vague && (wish || vocabulary::instruction(text).len() < text.trim_start().len());
    let asks = || next.is_request() || next.begins_with_verb();
    vague && (first || (asks() && !adds(next.text)))
}

/// True when a connector joins a clause to what stands before it.
pub(super) fn joined(whole: &str, text: &str) -> bool {
    let (whole, text) = (whole.trim_start(), text.trim_start());
    !whole.starts_with(text.split(' ').next().unwrap_or(" "))
}

/// True when a request says how a wish before it is to be met: "I want to compare A and B. Please compute the mean of A."
pub(super) fn spells_out(said: &Said, asked: &Said) -> bool {
    let (wish, request) = (core(said), asked.text);
    let is_wish = if wish.len() == said.text.len() { said.is_wish() } else { Said::new(wish).is_wish() };
    if !(is_wish || dreams(wish))
        || adds(request)
        || tail_is_order(request)
        || is_more(request)
        || roles::waits_for(request)
    {
        return false;
    }
    if is_aim(wish) {
        return true;
    }
    // Whoever wants to write or run something says a step, whatever is asked for after it.
    let kind = vocabulary::own_kind(wish);
    let wants = words(wish).take(3).any(|word| word == "want" || word == "plan");
    let step = matches!(
        kind,
        Some(NodeKind::CodeImplementation | NodeKind::Refactor | NodeKind::UnitTest | NodeKind::ToolCall)
    );
    let polite = asked.is_request();
    if polite && words(wish).take(4).any(|word| matches!(word.as_str(), "looking" | "searching")) && seeks(request) {
        return true;
    }
    if polite {
        let seeks = wants && words(wish).nth(2).as_deref() == Some("to") && !step;
        return (seeks && !shares_nothing_to_do(request)) || (!step && (points_back(request) || shares(wish, request)));
    }
    asks_to_know(wish) && asked.begins_with_verb() && shares(wish, request)
}

/// "It would be great if you could also recommend a shop": beside what was asked before it.
fn is_more(request: &str) -> bool {
    words(request).take(9).any(|word| word == "also")
}

/// "I want to surprise my friends": what nobody can do for somebody.
fn is_aim(wish: &str) -> bool {
    // What can be given to somebody is a wish like any other.
    const GIVEN: &[&str] = &["know", "see", "have", "view", "hear", "receive", "use", "include", "access", "obtain"];
    let mut all = words(wish).skip(1).filter(|word| !matches!(word.as_str(), "would" | "really" | "also"));
    let wants = all.next().is_some_and(|word| matches!(word.as_str(), "want" | "like" | "wish"));
    let to = all.next().is_some_and(|word| word == "to");
    wants && to && all.next().is_some_and(|verb| !vocabulary::is_verb(&verb) && !GIVEN.contains(&verb.as_str()))
}

/// What a sentence says after "After the game, ..." and its like.
fn core<'t>(said: &Said<'t>) -> &'t str {
    let text = said.text;
    let waits = begins(text, &["after", "once", "when", "before"]);
    let late = if waits { text.split_once(", ").map(|(_, rest)| rest) } else { None };
    let late = late.or_else(|| vocabulary::after_lead(text)).filter(|rest| Said::new(rest).is_wish());
    late.or_else(|| said.late_wish().and_then(|at| text.get(at..))).unwrap_or(text)
}

/// "I'm thinking about publishing a book": what is wished for and not asked for.
fn dreams(text: &str) -> bool {
    let mut all = words(text);
    matches!(all.next().as_deref(), Some("i'm" | "i" | "we're" | "we"))
        && all.take(2).any(|word| matches!(word.as_str(), "thinking" | "planning" | "considering" | "hoping"))
}

/// "Provide insights into the outfit." after a step about the outfit: the form of its answer.
pub(super) fn forms(step: &str, text: &str) -> bool {
    let given = ["provide", "give me", "include", "present", "return", "generate the", "give"];
    begins(text, &given) && shares(step, text)
}

/// "... first", "... before that": a step of its own.
fn tail_is_order(text: &str) -> bool {
    let bare = text.trim_end_matches(|c: char| !c.is_alphanumeric()).as_bytes();
    let ends =
        |word: &str| bare.last_chunk::<3>().is_some_and(|end| word.as_bytes().ends_with(&end.to_ascii_lowercase()));
    let last = || words(text).last().unwrap_or_default();
    let orders = ["first", "beforehand", "afterwards", "too"];
    (orders.iter().any(|word| ends(word)) && orders.contains(&last().as_str()))
        || after_word(text, "please also").is_some()
}

/// "Can you find ...", "could you recommend ...".
fn seeks(request: &str) -> bool {
    let verb = words(vocabulary::instruction(request)).next().unwrap_or_default();
    matches!(verb.as_str(), "find" | "recommend" | "suggest" | "search" | "show")
}

fn shares_nothing_to_do(request: &str) -> bool {
    after_word(request, "please use").is_some()
}

/// "I need information on ...", "I want to know ...".
fn asks_to_know(wish: &str) -> bool {
    words(wish).take(9).any(|word| matches!(word.as_str(), "information" | "know" | "details" | "learn" | "understand"))
}

/// "Could you recommend one?": the thing was named before.
fn points_back(text: &str) -> bool {
    words(vocabulary::instruction(text)).take(4).skip(1).any(|word| matches!(word.as_str(), "one" | "it" | "them"))
}

/// True when two sentences speak of the same thing.
pub(super) fn shares(one: &str, other: &str) -> bool {
    let own: Vec<String> = matter(one).collect();
    matter(other).any(|word| own.contains(&word))
}

/// The beginnings of the words that carry the matter of a sentence.
fn matter(text: &str) -> impl Iterator<Item = String> + '_ {
    words(text).take(60).filter(|word| word.chars().count() > 3 && !IDLE.contains(word.as_str())).map(|word| {
        let short = word.strip_suffix("'s").unwrap_or(&word);
        short.chars().take(5).collect()
    })
}

/// "It would be helpful to see the data."
pub(super) fn would_help(text: &str) -> bool {
    let good = after_any(text, &["it would be helpful", "it would be great", "it would be nice"]);
    let good = good.or_else(|| after_any(text, &["it would be good", "it would be useful"]));
    good.is_some_and(|rest| after_word(rest, " to").is_some())
}

/// "Please provide the title and the author.": more on the step before it, when nothing joins them.
pub(super) fn adds(text: &str) -> bool {
    let told_late = after_word(text, "once").and_then(|rest| rest.split_once(", ")).map_or(text, |(_, rest)| rest);
    let told = begins(vocabulary::instruction(told_late), &["let me know", "let us know"]);
    let plain = vocabulary::instruction(text);
    let polite = plain.len() < text.trim_start().len();
    let more = begins(plain, &["include", "make sure", "ensure", "specify"]);
    let same = ["provide me with details", "provide details", "provide me with the", "provide the"];
    let same = begins(plain, &same) || begins(plain, &["give me the details", "provide a detailed"]);
    let narrows = begins(text, &["specifically", "in particular", "it should", "this should"]);
    told || more && polite || same && polite || narrows
}

/// Where a second request begins in a clause of a letter: "find the flight and book the hotel in Rome"; and the length
/// of the words of the first that it needs, when it is only a thing: "fetch" in "fetch a joke of today and a quote of
/// yesterday".
///
/// What is asked in the form of a question can speak of its first thing in its second: "... and sort them by date".
pub(super) fn second_request<'t>(
    text: &'t str,
    inline: &Inline,
    from: usize,
    to: usize,
    asks: bool,
) -> Option<(usize, &'t str)> {
    let part = text.get(from..to)?;
    let mut at = 0;
    while let Some(found) = find(&part[at..], " and ") {
        let and = at + found;
        at = and + 5;
        let place = from + and;
        let guard = inline.guards.get(inline.guards.partition_point(|(_, end)| *end <= place));
        if guard.is_some_and(|(start, _)| *start <= place) {
            continue;
        }
        let rest = &part[at..];
        let also = after_word(rest, "also").map(str::trim_start);
        let also_as_well = also.is_some() || part.ends_with(" as well");
        if is_request_of_its_own(&part[..and], also.unwrap_or(rest), also_as_well, asks) {
            return Some((place + 1, ""));
        }
        if let Some(verb) = thing_of_its_own(&part[..and], rest) {
            return Some((place + 1, verb));
        }
    }
    None
}

/// Words that speak of what was named before.
fn points(word: &str) -> bool {
    matches!(word, "it" | "its" | "them" | "their" | "one" | "each" | "this" | "that" | "these" | "those" | "any")
}

/// "give me a quote on courage and a joke of yesterday": two things, each with what it is of, and what is done with both.
fn thing_of_its_own<'t>(before: &'t str, rest: &str) -> Option<&'t str> {
    const GIVES: &[&str] = &["provide", "give", "fetch", "show", "send", "get", "find", "retrieve", "providing"];
    let determined = |word: &str| matches!(word, "the" | "a" | "an" | "some" | "information" | "details");
    let rest =
        after_word(rest, "any").map(str::trim_start).filter(|rest| rest.starts_with("information")).unwrap_or(rest);
    if !words(rest).next().is_some_and(|first| determined(&first)) {
        return None;
    }
    let plain = vocabulary::instruction(before);
    let (told, asked): (Vec<_>, Vec<_>) = (words(plain).take(40).collect(), words(rest).take(16).collect());
    let knows = told.first().is_some_and(|word| *word == "know");
    let gives = knows || told.iter().take(4).any(|word| GIVES.contains(&word.as_str()));
    let of = |word: &str| matches!(word, "of" | "for" | "about" | "from" | "on" | "to" | "regarding");
    let [first, second, ..] = asked.as_slice() else { return None };
    let head = asked.iter().position(|word| of(word)).unwrap_or(asked.len());
    let form = asked.iter().take(head).any(|word| FORMS.contains(word.as_str()));
    // "the film 'Titanic'"
    let named = rest.contains(" '") || rest.contains(" \"");
    let whole = named || (2..asked.len().saturating_sub(1)).contains(&head) || (*first == "information" && head == 1);
    let told_of = told.iter().skip(2).position(|word| of(word)).is_some_and(|at| at + 4 <= told.len()) || knows;
    // "including the rating and the text": both belong to the thing before them.
    let listed = ["including", "such as", "along with", "between", "both"].iter().any(|word| holds(before, word));
    let listed = listed || before.trim_end_matches([',', ' ']).contains(", ");
    let own = gives && !listed && !vocabulary::is_verb(second) && whole && told_of && !form;
    let lead = plain.match_indices(' ').take(4).map(|(at, _)| at).find(|at| {
        words(&plain[*at..]).next().is_some_and(|word| {
            determined(&word) || !matches!(word.as_str(), "me" | "us" | "with" | "by" | "providing")
        })
    });
    lead.filter(|_| own && !asked.iter().any(|word| points(word))).map(|at| &plain[..at])
}

fn is_request_of_its_own(before: &str, rest: &str, also: bool, asks: bool) -> bool {
    if !words(rest).next().is_some_and(|verb| vocabulary::is_verb(&verb)) {
        return false;
    }
    let all: Vec<_> = words(rest).take(16).collect();
    let [verb, object, ..] = all.as_slice() else { return false };
    let shown = matches!(verb.as_str(), "provide" | "give" | "let" | "tell" | "include");
    // "... and provide me with the number of the office" asks for more than the form of an answer.
    let given =
        all.get(1..3).is_some_and(|next| next[0] == "me" && next[1] == "with") && *verb == "provide" && all.len() >= 10;
    let shown = shown && !given && !(also && *verb == "provide");
    if shown || words(vocabulary::instruction(before)).nth(2).is_none() {
        return false;
    }
    if also || (asks && matches!(object.as_str(), "it" | "them")) {
        return all.len() > 2;
    }
    let own = matches!(
        object.as_str(),
        "the" | "a" | "an" | "my" | "our" | "all" | "any" | "some" | "me" | "information" | "if" | "whether"
    );
    let object_end = all.iter().skip(2).position(|word| matches!(word.as_str(), "of" | "for" | "in" | "with" | "on"));
    let head = all.get(..object_end.map_or(all.len().min(6), |n| n + 2)).unwrap_or(&all);
    let form = head.iter().any(|word| FORMS.contains(word.as_str()));
    let back = all.iter().any(|word| matches!(word.as_str(), "it" | "its" | "them" | "their" | "one"));
    own && !form && !back && all.len() > 5
}
