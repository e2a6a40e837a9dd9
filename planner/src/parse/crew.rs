//! Whether the words around code are an order to whoever works the plan.
//!
//! They are one when they begin with an instruction or with what leads to one, or only name what the code does, and when
//! what stands behind the code says how, where or why. All else is only told of: who does it, that it is done, or on which
//! condition that nobody reads.

use super::phrases::{Spelt, Words, after_any, list, lower, spelt_words};
use super::text::{find, holds, is_cjk, rfind};
use super::{heads, vocabulary};

/// A name before code has no more words.
const NAME_WORDS_MAX: usize = 4;
/// So far back the beginning of a sentence is looked for.
const SENTENCE_BYTES_MAX: usize = 400;
/// So many labels one behind the other are looked behind.
const LABELS_MAX: usize = 4;

/// Begin a condition that nobody reads, or what is left to somebody.
static CONDITIONS: Words = Words::new(|| {
    list(
        "assuming|provided|providing|supposing|in the event|in case|in the case|only|should the|should it|should they|\
         should this|should that|should any|should anything|should something|as long as|so long as|given that|depending|\
         whenever|on request|on demand|upon|on failure|on error|nur|sollte|sollten|falls|wenn|sofern|bei bedarf|im falle|\
         im fall|bei fehlern|bei einem fehler|en cas|en caso|si|se|in caso|em caso|caso|alleen|indien|als|bij|при|если|в случае|only with",
    )
});
/// The same at any place of what stands behind code.
const LIMITS: &[&str] = &[
    "only ",
    "if needed",
    "if necessary",
    "if required",
    "when needed",
    "on request",
    "on demand",
    "as needed",
    "bei bedarf",
    "nur ",
    "approv",
    "permission",
    "sign-off",
    "signs off",
    "say so",
    "says so",
    "tell you",
];
/// The same in a script without spaces.
const HAN_LIMITS: &[&str] = &[
    "\u{305f}\u{3089}",
    "\u{5834}\u{5408}",
    "\u{308c}\u{3070}",
    "\u{5fc5}\u{8981}\u{306b}",
    "\u{5931}\u{8d25}\u{65f6}",
    "\u{51fa}\u{9519}\u{65f6}",
    "\u{5982}\u{679c}",
    "\u{82e5}",
    "\u{65f6}\u{ff0c}",
    "\u{5fc5}\u{8981}\u{65f6}",
    "\u{65e0}\u{9700}",
    "\u{4e0d}\u{5fc5}",
    "\u{4e0d}\u{7528}",
    "\u{3055}\u{3093}",
    "\u{304c} ",
    "\u{306f} ",
    "\u{304c}`",
    "\u{306f}`",
];
/// Verbs that want their object left alone: the code right behind them, or behind "using".
static LEAVES: Words = Words::new(|| {
    list(
        "stop|forget|kill|cancel|postpone|quit|cease|avoid|skip|ignore|delay|defer|abandon|abort|halt|suspend|pause|see|cf|\
         cf.|refer to|drop|scrap|revoke|reject|disable|\u{e9}vitez|\u{e9}vite|\u{e9}viter|evita|evitar|evite|evitare|vermeide|\
         vermeiden|vermijd|\u{438}\u{437}\u{431}\u{435}\u{433}\u{430}\u{439}|\u{438}\u{437}\u{431}\u{435}\u{433}\u{430}\u{439}\u{442}\u{435}",
    )
});
/// Begin a warning to leave something alone.
static AWAY: Words = Words::new(|| {
    list(
        "finger weg|h\u{e4}nde weg|hands off|stay away|keep away|keep off|steer clear|lay off|\u{65e0}\u{9700}|\u{4e0d}\u{5fc5}|\u{4e0d}\u{7528}",
    )
});
/// Between such a verb and code.
static USES: Words = Words::new(|| {
    list(
        "using|running|executing|calling|de lancer|d'utiliser|d'ex\u{e9}cuter|ejecutar|usar|lanzar|executar|rodar|eseguire|usare|lanciare|the|any|all",
    )
});
/// Labels of what is only shown, is not to be done, or was.
static SHOWN: Words = Words::new(|| {
    list(
        "warning|caution|danger|old way|old|old command|before|previously|example|examples|e.g.|eg|for example|sample|skipped|\
         skip|won't|wont|won't run|blocked|superseded|rejected|cancelled|canceled|done|wrong|bad|beispiel|warnung|achtung|exemple|\
         ejemplo|exemplo|esempio|voorbeeld|\u{43f}\u{440}\u{438}\u{43c}\u{435}\u{440}|\u{4f8b}|\u{793a}\u{4f8b}|\u{4f8b}\u{5982}|\u{8b66}\u{544a}",
    )
});
/// Begin an instruction, beside its verbs.
static LEADS: Words = Words::new(|| {
    list(
        "please|bitte|por favor|s'il te pla\u{ee}t|s'il vous pla\u{ee}t|per favore|alsjeblieft|\u{43f}\u{43e}\u{436}\u{430}\u{43b}\u{443}\u{439}\u{441}\u{442}\u{430}|we|let's|you|someone|somebody|anyone|wir m\u{fc}ssen|du musst|\
         man muss|dann|danach|anschlie\u{df}end|zuerst|zun\u{e4}chst|zum schluss|jetzt|nun|puis|ensuite|d'abord|enfin|luego|despu\u{e9}s|\
         primero|finalmente|poi|infine|prima|depois|dan|daarna|\u{437}\u{430}\u{442}\u{435}\u{43c}|\u{43f}\u{43e}\u{442}\u{43e}\u{43c}|\u{441}\u{43d}\u{430}\u{447}\u{430}\u{43b}\u{430}|first|firstly|second|secondly|third|thirdly|\
         next|then|finally|lastly|last|now|also|and|afterwards|again|always|just|simply|manually|locally|immediately|\
         quickly|periodically|automatically|carefully|but|or|instead|otherwise|meanwhile|here|never mind|step|task",
    )
});
/// Words before an instruction, or before code, that say where, when, how and what for.
static PLACES: Words = Words::new(|| {
    list(
        "in|inside|from|at|on|for|with|using|within|under|to|after|before|once|when|while|until|by|via|through|during|as|\
         into|against|over|instead of|because|since|mit|in|im|auf|aus|von|vor|nach|zu|zum|zur|f\u{fc}r|per|avec|dans|pour|con|en|para|com|voor|met|op|\u{441}|\u{432}|\u{43d}\u{430}|\u{434}\u{43b}\u{44f}",
    )
});
/// Words that stand before what is done something with, and behind no name.
static OBJECTS: Words = Words::new(|| {
    list(
        "the|a|an|it|them|this|that|these|those|all|every|each|our|your|my|its|any|everything|both|some|die|der|das|den|dem|alle|\
         alles|ein|eine|einen|le|la|les|l'|un|une|tout|el|los|las|una|todo|il|lo|gli|i|o|os|as|um|uma|de|het|een",
    )
});
/// Who or what does not order: the beginning of a statement.
static WHO: Words = Words::new(|| {
    list(
        "i|he|she|they|it|this|that|there|who|nobody|everybody|everyone|my|his|her|their|our|your|the|a|an|one|some|ich|er|sie|es|je|il|elle|on|ils|yo|\u{e9}l|ella|eu|ele|ela|io|lui|lei|ik|hij|zij|\u{44f}|\u{43e}\u{43d}|\u{43e}\u{43d}\u{430}|\u{43e}\u{43d}\u{438}",
    )
});
/// Make a statement of what stands before them.
static TELLING: Words = Words::new(|| {
    list(
        "is|are|was|were|has|have|had|will|would|can|could|may|might|does|did|got|gets|said|says|wants|'ll|owns|handles|se|wird|hat|ist|\
         kann|will|va|a|est|ha|heeft|zal|gaat|wil",
    )
});
/// What may stand right behind code in an order.
static BEHIND: Words = Words::new(|| {
    list(
        "and|then|&&|must|should|passes|succeeds|works|in|on|from|to|until|again|with|without|for|once|locally|before|after|\
         inside|at|twice|if|unless|when|while|every|as|over|against|within|through|via|by|into|per|so|since|because|\
         first|now|here|instead|rather|aus|uit|using|under|during|next|daily|weekly|nightly|hourly|three|several|times|\
         or|not later|not as|it|this|which|that|plus|finally|afterwards|later|ausf\u{fc}hren|aufrufen|starten|laufen|uitvoeren|\u{e0}|dans|\
         pour|avec|sur|en|para|con|per|im|auf|mit|vor|nach|f\u{fc}r|um|und|et|y|e|ed|en|\u{438}|\u{432}|\u{43d}\u{430}|\u{434}\u{43b}\u{44f}|\u{447}\u{442}\u{43e}\u{431}\u{44b}|the|a|an|all|no|takes|\
         needs|depends|requires|also|only if|back|out|up|off|down|expect|expected|see|note|be|make|let|about|ca.|approx|approximately|optional|background|parallel|is expected|will|does|prints|\
         returns|too|immediately|manually|carefully|exactly|across",
    )
});
/// What stands there when it is done, left or put off.
static ENDS: Words = Words::new(|| {
    list(
        "on hold|on ice|but not|but only|but wait|but never|it is done|it's done|it was|it has been done|this was|this is done|that was|which was|which bob|is on|\
         in place already|for later|will be done|will be run|does not|doesn't|no longer|after all no|if needed|if necessary|see above|not needed|no need|optional, skip|from last",
    )
});
/// Tell that somebody did or will do it.
static DONE: Words = Words::new(|| {
    list(
        "did|done|doing|already|superseded|rejected|skip|skipped|obsolete|deprecated|cancelled|canceled|abandoned|postponed|deferred|\
         schon|bereits|erledigt|d\u{e9}j\u{e0}|ya|gi\u{e0}|j\u{e1}|\u{443}\u{436}\u{435}|himself|herself|myself|handles|handled|hat|took|takes care|blocked|paused|was|were",
    )
});

/// True when the code between what stands before it in its clause and behind it is to be run.
pub(super) fn is_ordered(sentence: &str, before: &str, after: &str) -> bool {
    !opens_otherwise(sentence) && leads(before) && ends(after)
}

/// True for a sentence over code that says who runs it, that it is only shown, or on which condition that nobody reads.
pub(super) fn is_told(lead: &str) -> bool {
    let low = lower(unmarked(lead));
    let plain = low.trim_end();
    let read = || heads::head(&format!("{plain}:")).is_some();
    SHOWN.contains(plain)
        || plain.ends_with(" not")
        || plain == "not"
        || AWAY.after(plain).is_some()
        || opens_otherwise(lead)
        || acts(unmarked(lead))
        || limits(plain) && !read()
}

/// "Bob runs this", "My colleague builds it so".
fn acts(plain: &str) -> bool {
    let mut all = spelt_words(plain);
    let Some(first) = all.next() else { return false };
    let owned = ["my", "his", "her", "their", "our"].iter().any(|who| first.is(who));
    let named = plain.starts_with(char::is_uppercase) && !known(first.as_str()) && !WHO.contains_ci(first.as_str());
    let verb = if owned { all.nth(1) } else { all.next().filter(|_| named) };
    verb.is_some_and(|verb| verb.as_str().strip_suffix('s').is_some_and(vocabulary::is_verb) || verb.is("does"))
}

/// What stands before a place in its sentence.
pub(super) fn sentence_before(text: &str, at: usize) -> &str {
    let all = text.get(text.floor_char_boundary(at.saturating_sub(SENTENCE_BYTES_MAX))..at).unwrap_or("");
    let ends = [". ", "! ", "? ", "\n", "\u{3002}"].iter().filter_map(|end| rfind(all, end).map(|at| at + end.len()));
    &all[ends.max().unwrap_or(0)..]
}

/// "I will build it, then": who the sentence is about does all of it.
fn opens_otherwise(sentence: &str) -> bool {
    let plain = unmarked(sentence);
    let mut all = spelt_words(plain);
    let Some(first) = all.next() else { return false };
    let word = first.as_str();
    let own = |word: &str| matches!(&*lower(word), "i'll" | "i\u{2019}ll" | "ich" | "je" | "ik" | "yo" | "eu" | "io");
    let named = || plain.starts_with(char::is_uppercase) && !known(word) && !WHO.contains_ci(word);
    let tells = all.next().is_some_and(|next| TELLING.contains_ci(next.as_str()));
    own(word) || tells && (word == "I" || word == "i" || named())
}

/// True for words before code that ask for it, or only name it.
fn leads(before: &str) -> bool {
    let low = lower(before);
    if HAN_LIMITS.iter().any(|limit| holds(&low, limit)) || before.trim_start().starts_with('~') {
        return false;
    }
    let mut said = unmarked(&low);
    for _ in 0..LABELS_MAX {
        let Some(at) = find(said, ": ").or_else(|| said.trim_end().strip_suffix(':').map(str::len)) else { break };
        let label = said[..at].trim();
        if limits(label) || tells(label) || SHOWN.contains(label) {
            return false;
        }
        said = unmarked(&said[at + 1..]);
    }
    if said.is_empty() {
        return true;
    }
    if limits(said) || AWAY.after(said).is_some() {
        return false;
    }
    if said.starts_with(is_cjk) {
        return han(said);
    }
    let plain = vocabulary::instruction(said);
    let leaves = |rest: &str| rest.trim().is_empty() || USES.after(rest.trim_start()).is_some_and(str::is_empty);
    if LEAVES.found(plain).any(|(_, rest)| leaves(rest)) {
        return false;
    }
    let first = plain.split_whitespace().next().unwrap_or("");
    if known(first.trim_end_matches(',')) || LEADS.after(plain).is_some() || PLACES.after(plain).is_some() {
        return true;
    }
    named(plain)
}

/// True for the beginning of a condition that is not read.
fn limits(said: &str) -> bool {
    static NEEDED: Words =
        Words::new(|| list("if needed|if necessary|if required|if you like|falls n\u{f6}tig|when needed|as needed"));
    CONDITIONS.after(said).is_some() || NEEDED.after(said).is_some()
}

/// The same in Chinese and Japanese: a verb at the beginning, or words that lead to one, and nobody who does it.
fn han(said: &str) -> bool {
    static FIRST: &[&str] = &[
        "\u{8bf7}",
        "\u{7136}\u{540e}",
        "\u{63a5}\u{7740}",
        "\u{6700}\u{540e}",
        "\u{9996}\u{5148}",
        "\u{5148}",
        "\u{518d}",
        "\u{5e76}",
        "\u{6211}\u{4eec}\u{9700}\u{8981}",
        "\u{9700}\u{8981}",
        "\u{7528}",
        "\u{4f7f}\u{7528}",
        "\u{901a}\u{8fc7}",
        "\u{5728}",
        "\u{4ece}",
        "\u{8fd0}\u{884c}",
        "\u{6267}\u{884c}",
        "\u{73b0}\u{5728}",
    ];
    let kana = said.contains(|c: char| matches!(c, '\u{3041}'..='\u{309f}'));
    let runs = ["\u{8fd0}\u{884c}", "\u{6267}\u{884c}"].iter().any(|run| said.contains(run));
    kana || !runs && !said.contains('\u{4f1a}')
        || FIRST.iter().any(|first| said.starts_with(first))
        || vocabulary::begins_with_verb(said)
        || vocabulary::own_kind(said).is_some()
}

/// True when a label says of somebody that they do it.
fn tells(label: &str) -> bool {
    let tells = |word: &Spelt| {
        let verbs = ["will", "runs", "does", "did", "says", "said", "has", "wrote", "writes", "ran"];
        verbs.iter().any(|verb| word.is(verb))
    };
    spelt_words(label).skip(1).any(|word| tells(&word))
}

/// True for the name of what the code does, and for an instruction whose verb is in no list: "Greet", "Feed the index with".
fn named(plain: &str) -> bool {
    let all: Vec<Spelt> = spelt_words(plain).take(NAME_WORDS_MAX + 8).collect();
    let Some(first) = all.first() else { return true };
    if WHO.contains_ci(first.as_str()) {
        return false;
    }
    let told = |word: &Spelt| TELLING.contains_ci(word.as_str());
    let means = |word: &Spelt| PLACES.contains_ci(word.as_str());
    let infinitive = |word: &Spelt| {
        let word = word.as_str();
        word.len() > 4 && ["en", "ern", "eln"].iter().any(|end| word.ends_with(end)) || known(word)
    };
    let inner = match all.split_last() {
        Some((last, rest)) if means(last) => rest,
        _ => &all[..],
    };
    let bends = |word: &Spelt| {
        let word = word.as_str();
        ["s", "ed", "t"].iter().any(|end| word.ends_with(end))
    };
    match inner {
        [] => true,
        [only] => !told(only),
        _ if inner[1..].iter().any(told) => false,
        [_, .., last] if infinitive(last) => true,
        [_, second, ..] if OBJECTS.contains_ci(second.as_str()) => true,
        rest => rest.len() < all.len() && rest.len() <= NAME_WORDS_MAX && !rest[1..].iter().any(bends),
    }
}

/// True for what may stand behind code that is run.
fn ends(after: &str) -> bool {
    let low = lower(after);
    if HAN_LIMITS.iter().any(|limit| holds(&low, limit)) {
        return false;
    }
    let mut said = low.trim_matches(['*', '_', '"', '~', ' ', '\n', '\u{201d}']);
    if LIMITS.iter().any(|limit| holds(said, limit)) {
        return false;
    }
    let dashed = said.starts_with(['-', '\u{2013}', '\u{2014}', '\u{2190}']);
    let bare = said.starts_with(char::is_alphanumeric);
    if said.starts_with(['(', '[']) {
        let inner = said[1..].split([')', ']']).next().unwrap_or("");
        if ENDS.begin_ci(inner)
            || spelt_words(inner).any(|word| DONE.contains_ci(word.as_str())) && !inner.starts_with("should")
        {
            return false;
        }
        let own = spelt_words(inner).nth(1).is_some_and(|word| TELLING.contains_ci(word.as_str()));
        return !own && said.split_once([')', ']']).is_none_or(|(_, rest)| rest.starts_with(['(', '[']) || ends(rest));
    }
    said = said.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '`' && c != '@' && c != '#' && c != '&');
    let Some(first) = spelt_words(said).next() else { return true };
    if ENDS.begin_ci(said) || dashed && DONE.contains(first.as_str()) {
        return false;
    }
    let stem = first.as_str().strip_suffix('s').unwrap_or(first.as_str());
    let fits = BEHIND.after(said).is_some() || known(first.as_str()) || known(stem) || said.starts_with(is_cjk);
    let fits = fits || said.starts_with(['`', '@', '#', '&']) || said.starts_with(|c: char| c.is_ascii_digit());
    if dashed || bare { fits } else { fits || !spelt_words(said).any(|word| DONE.contains_ci(word.as_str())) }
}

/// A verb of any language, or a word that leads to one.
fn known(word: &str) -> bool {
    vocabulary::is_verb(word) || vocabulary::is_verb(&lower(word)) || LEADS.contains_ci(word)
}

fn unmarked(text: &str) -> &str {
    let plain = text.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '`');
    let plain = after_any(plain, &["and", "but", "so"]).map_or(plain, |rest| rest.trim_start_matches([',', ' ']));
    plain.trim_end_matches(['*', '_', ' ', '"', '(', '\n'])
}
