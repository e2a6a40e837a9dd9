//! Connectors at the start of a clause: "then", "once both are done", "meanwhile", "otherwise", and what they mean for its
//! place. They never split; that is for `sentences`.

use super::draft::Link;
use super::phrases::{Phrases, Word, Words, after_any, after_word, list, strip_prefix_ci, words};
use super::{elsewhere, vocabulary};

static THEN: Words = Words::new(|| {
    list(
        "dann|daraufhin|und dann|und danach|und anschlie\u{df}end|und schlie\u{df}lich|und zuletzt|zum schluss|\
     et ensuite|et puis|et enfin|apr\u{e8}s cela|entonces|y luego|y despu\u{e9}s|y entonces|y finalmente|y por \u{fa}ltimo|\
     despu\u{e9}s de eso|e poi|e infine|dopodich\u{e9}|successivamente|e depois|e em seguida|e por fim|finalement|daarna|\
     vervolgens|ten slotte|en dan|en daarna|en vervolgens|затем|потом|после этого|наконец|Затем|Потом|После этого|Наконец|\
     а затем|а потом|и затем|и потом|\
     danach|anschlie\u{df}end|zuletzt|schlie\u{df}lich|ensuite|puis|enfin|luego|despu\u{e9}s|a continuaci\u{f3}n|finalmente|por \u{fa}ltimo|depois|em seguida|por fim|poi|infine|\u{5168}\u{90e8}\u{5b8c}\u{6210}\u{540e}|\u{5b8c}\u{6210}\u{540e}|\u{6700}\u{5f8c}\u{306b}|\u{adf8}\u{b7f0}\u{20}\u{b2e4}\u{c74c}|\u{adf8}\u{20}\u{b2e4}\u{c74c}|\u{b9c8}\u{c9c0}\u{b9c9}\u{c73c}\u{b85c}|\u{6b21}\u{306b}|and then|only then|and only then|and finally|and after that|and afterwards|and lastly|then|after that|after this|afterwards|afterward|finally|lastly|last but not least|subsequently|\
     following that|once done|once that is done|once that's done|once this is done|once it is done|\
     once it's done|when done|when that is done|when this is done|once finished|once complete|once completed|\
     as a last step|as a final step|at the end|in the end|after which|secondly|thirdly|second,|third,|fourth,|second:|third:|fourth:|fifth:|\
     step two:|step three:|step four:|step five:|step 2:|step 3:|step 4:|step 5:|\
     fifth,|thereafter|once all are done|once all of them are done|once all of these are done|\
     once everything is done|once all that is done|when you're done|when you are done|once you're done|\
     once you are done|when you have finished|once you have finished|when you finish|once you finish|when all are done|when everything is done|after all of that|\
     after all that|after all of these|after all are done|once they are done|when they are done|\
     once they're done|once these are done|once all tasks are done|once all is done|once all are finished|\
     once all are complete|once all done|once all three are done|when all is done|from there|moving on|next up|\
     as soon as that is done|as soon as they are done|\u{7136}\u{540e}|\u{63a5}\u{7740}|\u{6700}\u{540e}|\
     \u{968f}\u{540e}|\u{4e4b}\u{540e}|\u{63a5}\u{4e0b}\u{6765}|\u{7136}\u{5f8c}|\u{6700}\u{5f8c}|\
     \u{6b21}\u{306b}|\u{305d}\u{306e}\u{5f8c}|\u{6700}\u{5f8c}\u{306b}|\u{305d}\u{308c}\u{304b}\u{3089}",
    )
});
static BOTH: Words = Words::new(|| {
    list(
        "\u{4e24}\u{8005}\u{5b8c}\u{6210}\u{540e}|\u{4e24}\u{8005}\u{90fd}\u{5b8c}\u{6210}\u{540e}|\u{90fd}\u{5b8c}\u{6210}\u{540e}|once both are done|once both are finished|once both are complete|once both are completed|\
     once both have finished|once both are ready|once both finish|when both are done|when both are finished|\
     when both are complete|when both are ready|after both are done|after both are finished|after both|\
     once both of them are done|once the two are done|as soon as both are done|once both done|once both complete|\
     once both tasks are done|once these two are done|when both have finished|once both are in place|\
     after both have finished",
    )
});
static PARALLEL: Words = Words::new(|| {
    list(
        "\u{4e0e}\u{6b64}\u{540c}\u{65f6}|\u{b3d9}\u{c2dc}\u{c5d0}|gleichzeitig|w\u{e4}hrenddessen|parallel dazu|\
     en parall\u{e8}le|en m\u{ea}me temps|pendant ce temps|mientras tanto|al mismo tiempo|en paralelo|nel frattempo|\
     ao mesmo tempo|in parallel|meanwhile|at the same time|simultaneously|concurrently|in the meantime|and in parallel|\
     and meanwhile|and at the same time|while that runs|while that is running|while this runs|\
     \u{540c}\u{65f6}|\u{540c}\u{6642}\u{306b}|\u{2225}",
    )
});
static ARROWS: Words = Words::new(|| list("\u{2192}|->"));
static NONE: Words = Words::new(|| {
    list(
        "first of all|firstly|first|step one:|step 1:|to start with|to start|to begin with|to begin|initially|additionally|\
     in addition|furthermore|moreover|besides|also|plus|zuerst|zun\u{e4}chst|als erstes|d'abord|tout d'abord|\
     premi\u{e8}rement|primero|en primer lugar|primeiro|innanzitutto|сначала|Сначала|сперва|Сперва|\u{9996}\u{5148}|\u{5148}|\u{307e}\u{305a}",
    )
});
static OTHERWISE: Words = Words::new(|| {
    list(
        "otherwise|else|if not|or else|sonst|ansonsten|andernfalls|sinon|altrimenti|de lo contrario|caso contrário|senão|anders|иначе|Иначе|\u{5426}\u{5219}",
    )
});

/// All of them: most clauses begin with none.
static ALL: Words = Words::new(|| Phrases::union(&[&BOTH, &THEN, &PARALLEL, &ARROWS, &NONE, &OTHERWISE]));

/// A connector at the start: what it means, whether it is "otherwise", and its length with the comma.
pub(super) fn connector(rest: &str) -> Option<(Link, bool, usize)> {
    let mut best = ALL.longest(rest).map(|(word, after)| {
        let (link, negated) = meaning(word);
        (link, negated, word, after)
    });
    if best.is_none()
        && let Some(after) = after_word(rest, "next")
        && next_connects(after)
    {
        best = Some((Link::Then, false, "next", after));
    }
    // "\u{518d}" is "then", but not in "\u{518d}\u{6b21}", "again".
    if best.is_none()
        && let Some(after) = rest.strip_prefix('\u{518d}').filter(|after| !after.starts_with(['\u{6b21}', '\u{8bf4}']))
    {
        best = Some((Link::Then, false, "\u{518d}", after));
    }
    if best.is_none()
        && let Some(length) = elsewhere::then_later(rest)
    {
        return Some((Link::Then, false, length));
    }
    let best = best.filter(|(_, _, word, after)| !inside_word(word, after));
    let Some((link, negated, word, after)) = best else {
        let and = joined(rest).or_else(|| leading_and(rest));
        let (link, length) = match (wait(&rest[and.unwrap_or(0)..]), and) {
            (Some((link, length)), _) => (link, length),
            (None, Some(_)) => (if and_runs(rest) { Link::Then } else { Link::Free }, 0),
            (None, None) => return None,
        };
        return Some((link, false, and.unwrap_or(0) + length));
    };
    let trimmed =
        after.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ':' | '\u{ff0c}' | '\u{3001}'));
    let comma = after.trim_start().starts_with([',', ':', '\u{ff0c}', '\u{3001}']);
    // "First class tickets", "Plus sign", "Second half": only a comma or an instruction makes these connectors.
    let doubtful = DOUBTFUL.contains(word);
    let fits = !doubtful || comma || vocabulary::begins_with_verb(trimmed) || starts_with_pronoun(trimmed);
    fits.then(|| (link, negated, rest.len() - trimmed.len()))
}

/// Connectors that are also other words.
static DOUBTFUL: Words = Words::new(|| {
    list(
        "first|plus|initially|also|besides|else|anders|иначе|Иначе|at the end|in the end|in parallel|to start|to begin|from there",
    )
});

/// The length of the "and " of an item that goes on from the one before: "and write the docs".
fn leading_and(rest: &str) -> Option<usize> {
    let after = after_word(rest, "and")?;
    words(after).next().is_some_and(|word| vocabulary::is_verb(&word)).then(|| rest.len() - after.trim_start().len())
}

/// "In the meantime the docs ...": a line that is no part of the short item above it, which ends without a comma.
pub(super) fn leads_line(line: &str, above: &str) -> bool {
    const SHORT_BYTES: usize = 60;
    let open = above.len() > SHORT_BYTES || above.ends_with([',', '-', ':']) || above.ends_with(" and");
    let said = |(_, after): (&str, &str)| !after.trim().is_empty();
    !open && [&BOTH, &THEN, &PARALLEL].into_iter().any(|list| list.longest(line).is_some_and(said))
}

/// How a connector joins, and whether it is "otherwise".
fn meaning(word: &str) -> (Link, bool) {
    let lists = [
        (&BOTH, Link::Both, false),
        (&THEN, Link::Then, false),
        (&PARALLEL, Link::Parallel, false),
        (&ARROWS, Link::Then, false),
        (&NONE, Link::Free, false),
    ];
    let found = lists.into_iter().find(|(list, _, _)| list.contains(word));
    found.map_or((Link::Free, true), |(_, link, negated)| (link, negated))
}

/// True for "after that" in "after that's merged", for "\u{5148}" in "\u{5148}\u{51b3}\u{6761}\u{4ef6}" (a prerequisite)
/// and "\u{6700}\u{540e}" in "\u{6700}\u{540e}\u{4e00}\u{4e2a}" (the last one): the beginning of a longer word.
fn inside_word(word: &str, after: &str) -> bool {
    match word {
        _ if after.starts_with(['\'', '\u{2019}']) => true,
        "\u{5148}" => after.starts_with(['\u{51b3}', '\u{8fdb}', '\u{524d}', '\u{751f}', '\u{950b}', '\u{4f8b}']),
        // "Despu\u{e9}s de 1, ..." says what is waited for.
        "despu\u{e9}s" | "depois" | "luego" => after.starts_with(" de "),
        "\u{6700}\u{540e}" | "\u{6700}\u{5f8c}" => after.starts_with(['\u{4e00}', '\u{7684}', '\u{306e}']),
        _ => false,
    }
}

/// What "Then:" and its like above a list say of its place.
pub(super) fn connection(text: &str) -> Option<Link> {
    let plain = text.trim().trim_end_matches([':', '\u{ff1a}', '.']);
    let lists = [(&BOTH, Link::Both), (&THEN, Link::Then), (&PARALLEL, Link::Parallel)];
    let found = lists.into_iter().find(|(list, _)| list.after(plain).is_some());
    found.map(|(_, link)| link).or_else(|| plain.eq_ignore_ascii_case("next").then_some(Link::Then))
}

/// What is over or has come about.
static DONE: Words = Words::new(|| {
    list(
        "done|finished|complete|completed|ready|green|merged|passed|pass|passes|works|work|succeeded|succeeds|succeed|built|\
         deployed|installed|approved|live|place|over|up|in|out|through|landed|lands|settled|fixed|good|fine|ok|sorted|written",
    )
});
/// What stands for everything that was said.
static ALL_OF_IT: Words = Words::new(|| list("everything|all|both|they|these|those|it|that|this"));
/// A wait takes no more bytes up to its comma, and no more words.
const WAIT_BYTES_MAX: usize = 80;
const WAIT_WORDS_MAX: usize = 9;

/// "When everything is green, ...", "once that's in, ...", "when that passes deploy it", "while it is running, ...": what
/// it means, and its length with the comma.
pub(super) fn wait(rest: &str) -> Option<(Link, usize)> {
    // Most clauses begin with another letter, and need no word for that.
    let first = rest.chars().find(|c| c.is_alphanumeric())?;
    if !matches!(first, 'a' | 'A' | 'o' | 'O' | 'w' | 'W') {
        return None;
    }
    if !matches!(words(rest).next()?.as_str(), "as" | "once" | "when" | "after" | "while") {
        return None;
    }
    let comma = rest.char_indices().take(WAIT_BYTES_MAX).find(|(_, c)| matches!(c, ',' | '\u{ff0c}'));
    if let Some((comma, _)) = comma
        && let Some(link) = waits_for(&rest[..comma])
    {
        return Some((link, rest.len() - rest[comma..].trim_start_matches([',', '\u{ff0c}', ' ']).len()));
    }
    // No comma ends it, but the instruction behind it.
    let ends = rest.match_indices(' ').map(|(at, _)| at).take(WAIT_WORDS_MAX);
    let mut ends = ends.filter(|at| vocabulary::begins_with_verb(&rest[at + 1..]));
    ends.find_map(|at| Some((waits_for(&rest[..at])?, at + 1)).filter(|(link, _)| *link != Link::Parallel))
}

/// What "once that is done" and its like say.
fn waits_for(said: &str) -> Option<Link> {
    let all: Vec<_> = words(said).take(WAIT_WORDS_MAX).collect();
    let all: Vec<&str> = all.iter().map(Word::as_str).collect();
    let said = match all.as_slice() {
        ["as", "soon", "as", said @ ..] | ["once" | "when" | "after" | "while", said @ ..] => said,
        _ => return None,
    };
    if all.first() == Some(&"while") {
        // "While the tests run", "while seeding".
        let going = |word: &&str| word.ends_with("ing");
        let runs = |word: &&str| going(word) || matches!(*word, "run" | "runs" | "happens");
        let on = said.strip_suffix(&["on"]).and_then(|said| said.last()).is_some_and(going);
        let beside = on || said.last().is_some_and(runs) || said.first().is_some_and(going);
        return beside.then_some(Link::Parallel);
    }
    let (subject, predicate) = match said {
        ["all", "of", "them" | "these" | "this" | "that", predicate @ ..] => ("all", predicate),
        [subject, predicate @ ..] => {
            (subject.trim_end_matches(['s', 'r', 'e']).strip_suffix('\'').unwrap_or(subject), predicate)
        }
        [] => return None,
    };
    let last = predicate.last().filter(|_| ALL_OF_IT.contains(subject) && !predicate.contains(&"not"))?;
    // "When it is requested" can be at any time.
    let done = DONE.contains(last) || last.ends_with("ed") && all.first() != Some(&"when");
    done.then_some(if subject == "both" { Link::Both } else { Link::Then })
}

/// "and run `make`": the command behind another step is the next one.
pub(super) fn and_runs(rest: &str) -> bool {
    let run = after_word(rest, "and").and_then(|after| after_any(after.trim_start(), &["run", "then run", "execute"]));
    run.is_some_and(|after| after.starts_with(" `"))
}

/// "Run `make`", and nothing more.
pub(super) fn runs(said: &str) -> bool {
    let plain = connector(said.trim_start()).map_or(said.trim(), |(.., length)| said.trim_start()[length..].trim());
    let code = after_any(vocabulary::instruction(plain).trim_start(), &["run", "execute"]).map(str::trim);
    code.is_some_and(|code| {
        code.len() > 2 && code.starts_with('`') && code.ends_with('`') && code.matches('`').count() == 2
    })
}

/// "and fix what breaks": what is to be done behind a command is the next step.
pub(super) fn and_works(rest: &str) -> bool {
    let not = ["then", "see", "make sure", "run", "execute"];
    after_word(rest, "and").map(str::trim_start).is_some_and(|after| {
        !after.starts_with('`') && vocabulary::begins_with_verb(after) && after_any(after, &not).is_none()
    })
}

/// The length of the "and " before a step that waits or depends on how the one before it ends: "and when that passes,
/// deploy it", "and, if it is green, open a pull request".
pub(super) fn joined(rest: &str) -> Option<usize> {
    let after = after_word(rest, "and")?.trim_start_matches([',', ' ']);
    let length = Some(rest.len() - after.len());
    if wait(after).is_some() {
        return length;
    }
    let asked = after_word(after, "if").or_else(|| after_word(after, "unless"))?;
    let (comma, _) = asked.char_indices().take(WAIT_BYTES_MAX).find(|(_, c)| *c == ',')?;
    let step = asked[comma..].trim_start_matches([',', ' ']);
    length.filter(|_| vocabulary::begins_with_verb(step))
}

pub(super) fn next_connects(after: &str) -> bool {
    after.trim_start().starts_with([',', ':'])
        || vocabulary::begins_with_verb(after) && !matches!(words(after).next().as_deref(), Some("to" | "set"))
        || starts_with_pronoun(after.trim_start())
}

pub(super) fn starts_with_pronoun(text: &str) -> bool {
    ["i ", "i'd", "i'm", "we ", "you ", "please", "let's", "could you", "can you"]
        .iter()
        .any(|word| strip_prefix_ci(text, word).is_some())
}
