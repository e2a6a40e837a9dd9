//! What a clause is to the plan: a step, a constraint, a reference, a question, or only context.

use std::cell::OnceCell;

use super::phrases::{Words, after_any, after_word, begins, list, words};
use super::text::{any_pair, find, find_early, has_byte, holds};
use super::unasked::is_prohibition;
use super::{labels, markers, vocabulary};

/// What a clause is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sense {
    /// Something to do.
    Step,
    /// How to do what stands before it.
    Constraint,
    /// Where to read more on it.
    Reference,
    /// Something that is not decided.
    Question,
    /// A statement.
    Statement,
}

/// Constraints after a step.
static CONSTRAIN: Words = Words::new(|| {
    list(
        "use|ensure|make sure|be sure|expect|aim for|keep|must|should|always|only|remember|note|note that|prefer|be careful|follow|\
     respect|stick to|take care|it must|it should|it has to|they must|they should|this must|this should|limit|\
     stay|leave|\u{4e0d}\u{8981}|\u{786e}\u{4fdd}|\u{8bf7}\u{52ff}",
    )
});
static SEE: Words = Words::new(|| {
    list(
        "see also|see|refer to|cf.|cf|ref:|refs:|reference:|references:|more at|more in|details in|details at|\
     details:|docs:|docs at|link:|links:|related:|source:|spec:|design:|mockup:|mockups:|as described in|\
     for details see|for more information see|for reference, see|for more, see|read more at|\u{8bf7}\u{53c2}\u{8003}|\u{53c2}\u{8003}|\u{53c2}\u{89c1}|\u{8be6}\u{89c1}",
    )
});
/// Words with which a statement begins.
static STATE: Words = Words::new(|| {
    list(
        "the|a|an|this|that|these|those|it|it's|its|they|he|she|there|here|my|our|your|their|his|her|users|user|i|\
     i'm|i've|i'd|i'll|we|we're|we've|we'd|we'll|you|everything|nothing|someone|some|most|many|as|since|because|\
     given|currently|thanks|thank|who|both|what|which|when|where|while|although|though|today|now|hi|hello|hey|here's|to|\
     for|with|in|on|at|from|by|assuming|considering|yes|no|ok|okay|sorry|regarding|additionally|that's|there's|\
     they're|he's|she's|each|every|sure|great|perfect|awesome|nice|alright|absolutely|certainly|understood|\
     agreed|hmm|well|cheers|regards|sincerely|greetings|welcome|dear",
    )
});
/// Conditions that say nothing.
static IDLE: Words =
    Words::new(|| list("if possible|if needed|if necessary|if applicable|if any|if available|if you can|if required"));
/// The same in running text; an item of a list that begins so is a step.
static BESIDES: Words = Words::new(|| list("consider|include|take into account|bear in mind"));
/// The name of a field is no longer.
const FIELD_BYTES_MAX: usize = 24;
/// A line that names what stands below it is no longer, and has no more words.
const TITLE_BYTES_MAX: usize = 60;
const TITLE_WORDS_MAX: usize = 6;
/// So many labels, or words before commas, one behind the other are looked behind.
const LABELS_MAX: usize = 8;
/// What ends a letter has no more words.
const CLOSING_WORDS_MAX: usize = 6;
/// What ends a letter.
static CLOSINGS: Words = Words::new(|| {
    list(
        "best regards|kind regards|warm regards|kindest regards|with kind regards|with best regards|many thanks|\
         best wishes|all the best|yours sincerely|yours truly|yours faithfully|sent from my|get outlook for",
    )
});
/// The same, alone on a line or before a sign.
static LAST_WORDS: Words =
    Words::new(|| list("best|cheers|thanks|thank you|thanks a lot|regards|sincerely|yours|thx|ta"));
/// What the writer brings, and nobody else has to do.
static OWN: Words = Words::new(|| {
    list(
        "let me know if anything|let me know if something|let me know if there|let me know if you have|\
         let me know if you need|i will provide|i'll provide|we will provide|we'll provide|i will send you|i'll send you|i can provide|we can provide",
    )
});
const ASKS: &[&str] = &[
    "need", "needs", "want", "would", "require", "'d", "wish", "must", "have", "should", "am", "could", "intend",
    "plan",
];

/// The text of a clause; what is asked of its words more than once is judged once.
pub(super) struct Said<'t> {
    pub(super) text: &'t str,
    /// So many words before commas it stands behind.
    n_leads: usize,
    wish: OnceCell<bool>,
    late_wish: OnceCell<Option<usize>>,
    request: OnceCell<bool>,
    verb: OnceCell<bool>,
    /// After a step, and before the first.
    sense: [OnceCell<Sense>; 2],
}

impl<'t> Said<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            n_leads: 0,
            wish: OnceCell::new(),
            late_wish: OnceCell::new(),
            request: OnceCell::new(),
            verb: OnceCell::new(),
            sense: [OnceCell::new(), OnceCell::new()],
        }
    }

    /// "I need ...", "we want ...": a step in the words of a wish.
    pub(super) fn is_wish(&self) -> bool {
        *self.wish.get_or_init(|| is_wish(self.text))
    }

    /// "I'm planning a trip and I need a map": where the wish begins that follows a statement.
    pub(super) fn late_wish(&self) -> Option<usize> {
        *self.late_wish.get_or_init(|| late_wish(self.text))
    }

    pub(super) fn is_request(&self) -> bool {
        *self.request.get_or_init(|| vocabulary::is_request(self.text))
    }

    pub(super) fn begins_with_verb(&self) -> bool {
        *self.verb.get_or_init(|| vocabulary::begins_with_verb(self.text))
    }

    /// True for a sentence in which somebody asks for something: "please ...", "could you ...", "I need ...".
    pub(super) fn speaks(&self) -> bool {
        self.is_wish() || self.is_request() || self.late_wish().is_some()
    }

    /// What it means in running text; `first` when no step stands before it.
    pub(super) fn sense(&self, first: bool) -> Sense {
        *self.sense[usize::from(first)].get_or_init(|| {
            let plain = self.text.trim_start_matches(|c: char| matches!(c, '*' | '_' | '"' | '(') || c.is_whitespace());
            let bare = || Said { n_leads: self.n_leads, ..Said::new(plain) };
            if plain.len() < self.text.len() { sense(&bare(), first) } else { sense(self, first) }
        })
    }

    /// What it means when it ends in a question mark.
    pub(super) fn asks(&self) -> Sense {
        if self.is_request() { Sense::Step } else { Sense::Question }
    }
}

fn sense(said: &Said, first: bool) -> Sense {
    let plain = said.text;
    if closes(plain) && words(plain).nth(CLOSING_WORDS_MAX).is_none() {
        return Sense::Statement;
    }
    if is_reference(plain) {
        return Sense::Reference;
    }
    if is_prohibition(plain) || (!first && (is_constraint(plain) || BESIDES.after(plain).is_some())) {
        return Sense::Constraint;
    }
    // "In order to save time, cache the answers": what stands before the comma only says why or where.
    if let Some(rest) = vocabulary::after_lead(plain).filter(|_| said.n_leads < LABELS_MAX) {
        let rest = Said { n_leads: said.n_leads + 1, ..Said::new(rest) };
        let own = rest.sense(first);
        if own != Sense::Statement && (own != Sense::Step || rest.speaks() || rest.begins_with_verb()) {
            return own;
        }
    }
    // "cc @ann"
    let copied = after_word(plain, "cc").is_some_and(|rest| rest.trim_start_matches([':', ' ']).starts_with('@'));
    if copied || OWN.after(plain).is_some() {
        return Sense::Statement;
    }
    if said.begins_with_verb() || said.is_request() || vocabulary::is_open(plain) {
        return Sense::Step;
    }
    if !first && is_demand_on_thing(plain) {
        return Sense::Constraint;
    }
    if said.is_wish() {
        return Sense::Step;
    }
    if is_statement(plain) && said.late_wish().is_none() { Sense::Statement } else { Sense::Step }
}

/// "Best regards", "Thanks!": what ends a letter, with the name of the writer or before it.
pub(super) fn closes(text: &str) -> bool {
    let ends = |(_, rest): (&str, &str)| rest.is_empty() || rest.starts_with([',', '!', '.', '\n']);
    CLOSINGS.after(text).is_some() || LAST_WORDS.found(text).any(ends)
}

/// "Ann", "Bob Smith": what stands under the end of a letter.
pub(super) fn is_signature(text: &str) -> bool {
    let plain = text.trim_start_matches(['-', '\u{2013}', '\u{2014}', ' ']);
    let named = plain.split(' ').all(|word| word.starts_with(char::is_uppercase) && !word.ends_with(':'));
    named && plain.split(' ').count() <= 3
}

/// "Once the design is complete, ...": a step after a wait.
pub(super) fn waits(text: &str) -> bool {
    static STARTS: Words = Words::new(|| list("once|after|before|when|as soon as|prior to"));
    let text = after_word(text, "only").map_or(text, str::trim_start);
    let step = STARTS.after(text).and_then(|_| find(text, ", ")).map(|at| &text[at + 2..]);
    step.is_some_and(|rest| vocabulary::begins_with_verb(rest) || is_wish(rest))
}

/// "Once the copy is written, please publish it": a step after another, however it is asked for.
pub(super) fn waits_for(text: &str) -> bool {
    let step = after_any(text, &["once", "as soon as"]).and_then(|rest| find(rest, ", ").map(|at| &rest[at + 2..]));
    step.is_some_and(|rest| vocabulary::begins_with_verb(rest) || is_wish(rest))
}

/// "If possible, ...".
pub(super) fn idle_condition(text: &str) -> bool {
    IDLE.found(text).any(|(_, rest)| rest.starts_with(','))
}

/// "after the review, ..." behind "only".
fn waits_in(rest: &str) -> bool {
    begins(rest.trim_start(), &["after", "once", "when"]) && rest.contains(", ")
}

/// True for "Use ...", "Ensure ..." and their like; not for "Use the API to fetch ...".
pub(super) fn is_constraint(text: &str) -> bool {
    let rest = after_any(text, &["please", "pls", "plz"]).map_or(text, str::trim_start);
    // "Don't forget to keep it": what is kept is no step.
    let rest = after_any(rest, &["don't forget to", "do not forget to"]).map_or(rest, str::trim_start);
    let Some(after) = CONSTRAIN.after(rest) else { return false };
    let waits = after_word(rest, "only").is_some_and(waits_in);
    if waits || rest.starts_with('`') || after.starts_with(['-', '.', '/']) {
        return false;
    }
    !(after_word(rest, "use").is_some() && uses_to_act(after))
}

/// "... to fetch the forecast": using something is then the step itself.
fn uses_to_act(after: &str) -> bool {
    let all: Vec<_> = words(after).take(24).collect();
    all.windows(2).any(|pair| {
        pair[0].as_str() == "to" && vocabulary::own_kind(&pair[1]).is_some() && vocabulary::is_verb(&pair[1])
    })
}

/// With these a demand on a thing begins.
static THINGS: Words = Words::new(|| list("the|it|this|that|these|they|all|each|every|there|a|an|both|no"));

/// "The API must answer in 50 ms": a demand on a thing, not on the reader.
fn is_demand_on_thing(text: &str) -> bool {
    let mut all = words(text).take(12);
    let subject = all.next().is_some_and(|word| THINGS.contains(word.as_str()));
    subject && all.any(|word| matches!(word.as_str(), "must" | "should" | "shall" | "needs" | "need"))
}

fn is_reference(text: &str) -> bool {
    let Some(after) = SEE.after(text) else { return false };
    let plain_see = after_word(text, "see").is_some() && after_word(text, "see also").is_none();
    !plain_see || !begins(after.trim_start(), &["if", "whether", "what", "how", "that"])
}

fn late_wish(text: &str) -> Option<usize> {
    // Nobody speaks of themselves where nothing ends like "I" or begins like "we".
    let who = |a: u8, b: u8| (((a == b'I') | (a == b'i')) & (b == b' ')) | ((a == b'w') & (b == b'e'));
    if !any_pair(text, who) {
        return None;
    }
    let joined = |at: &usize| ["and", "so"].iter().any(|join| text[..*at].trim_end_matches(',').ends_with(join));
    let found = [" I ", " we ", " i "].iter().filter_map(|who| find(text, who)).filter(joined).min()?;
    let wish = found + 1;
    is_wish(&text[wish..]).then_some(wish)
}

fn is_wish(text: &str) -> bool {
    if !text.trim_start().starts_with(['i', 'I', 'w', 'W', 'y', 'Y']) {
        return false;
    }
    let mut all = words(text).filter(|word| !matches!(word.as_str(), "also" | "now" | "just" | "really"));
    let Some(first) = all.next() else { return false };
    if !matches!(first.as_str(), "i" | "we" | "you" | "i'd" | "we'd" | "i'm" | "we're") {
        return false;
    }
    let rest: Vec<_> = all.take(3).collect();
    match first.as_str() {
        "i" | "we" | "you" => {
            let asks = rest.iter().take(2).any(|word| ASKS.contains(&word.as_str()));
            let past = rest.first().is_some_and(|word| {
                matches!(word.as_str(), "have" | "am" | "had")
                    && !rest.get(1).is_some_and(|next| {
                        matches!(next.as_str(), "to" | "looking" | "searching" | "seeking" | "interested" | "trying")
                    })
            });
            asks && !past
        }
        "i'd" | "we'd" => true,
        "i'm" | "we're" => rest.first().is_some_and(|word| {
            matches!(word.as_str(), "looking" | "searching" | "seeking" | "interested" | "trying" | "curious")
        }),
        _ => false,
    }
}

/// "sure", "sounds good, thanks": an answer in a chat that asks for nothing.
pub(super) fn answers(said: &str) -> bool {
    static ANSWERS: Words = Words::new(|| {
        list(
            "sure|yes|yep|yeah|ok|okay|no|nope|thanks|thank you|lgtm|sounds good|will do|done|great|cool|np|+1|on it|\
             got it|agreed|perfect|nice|good idea|no problem|hi|hello|hey|right|fine|awesome",
        )
    });
    let mut rest = said.trim();
    for _ in 0..4 {
        let Some((_, after)) = ANSWERS.longest(rest) else { break };
        rest = after.trim_start_matches(|c: char| !c.is_alphanumeric());
    }
    rest.is_empty() && !said.trim().is_empty()
}

/// "Q3 launch plan": a line that names what stands below it, and neither says nor asks anything.
pub(super) fn is_title(line: &str) -> bool {
    let plain = line.trim_end();
    plain.len() <= TITLE_BYTES_MAX
        && !plain.contains(['\n', '?', '@', ':'])
        && !plain.starts_with('`')
        && plain.ends_with(|c: char| c.is_alphanumeric() || matches!(c, ')' | '`'))
        && words(plain).nth(TITLE_WORDS_MAX).is_none()
        && !is_labelled(plain)
        && (!vocabulary::begins_with_verb(plain) || names_a_plan(plain))
        && sense(&Said::new(plain), true) == Sense::Step
        && !is_wish(plain)
        && !vocabulary::is_request(plain)
        && super::connectors::connector(plain).is_none()
}

/// "Plan for the refactor": a list is named, and nothing asked for.
fn names_a_plan(line: &str) -> bool {
    after_word(line, "plan").is_some_and(|rest| begins(rest.trim_start(), &["for", "of", "to"]))
}

/// True when a text begins with a word of statements: "the", "here", "we".
pub(super) fn states(text: &str) -> bool {
    words(text).next().is_none_or(|first| STATE.contains(first.as_str()))
}

fn is_statement(text: &str) -> bool {
    let mut rest = text;
    for _ in 0..LABELS_MAX {
        // "bob: sure"
        let answered = rest.split_once(": ").is_some_and(|(name, said)| name.len() < 24 && answers(said));
        if answered || is_told(rest) {
            return true;
        }
        // "Quick thing: the build is red."
        let label = find(rest, ": ").map(|at| (&rest[..at], &rest[at + 2..])).filter(|(label, said)| {
            label.len() < 24
                && !label.contains('`')
                && !matches!(label.to_lowercase().as_str(), "todo" | "fixme" | "task" | "action")
                && !vocabulary::begins_with_verb(label)
                && !vocabulary::begins_with_verb(said)
                && words(label).nth(1).is_some()
        });
        let Some((_, said)) = label else { return false };
        rest = said;
    }
    false
}

/// True for words that tell something by themselves, without what stands before a colon.
fn is_told(text: &str) -> bool {
    static FINITE: Words = Words::new(|| {
        list(
            "is|are|was|were|has|have|had|will|can|may|might|does|do|isn't|aren't|wrote|said|asked|writes|says|asks|\
             mentioned|reported|paste|get|gets|shows|fails|works|contains|needs|means",
        )
    });
    let mut all = words(text);
    let Some(first) = all.next() else { return true };
    if STATE.contains(first.as_str()) {
        return true;
    }
    !text.starts_with('`') && all.take(4).any(|word| FINITE.contains(word.as_str()))
}

/// Labels of lines that explain and ask for nothing.
pub(super) fn explains(text: &str) -> bool {
    let text = text.trim_start_matches(['\u{26a0}', '\u{fe0f}', '\u{2757}', '\u{2139}', '\u{1f4a1}', ' ']);
    let bold = text.starts_with("**") || text.starts_with("__");
    let plain = text.trim_start_matches(['*', '_', '\u{26a0}', '\u{fe0f}', ' ']);
    let Some((label, _)) = plain.split_once(':').filter(|(label, _)| label.len() <= 40) else { return false };
    let written = label.trim_end_matches(['*', '_', ' ']);
    let label = written.to_lowercase();
    let loud = bold || written.bytes().all(|b| !b.is_ascii_lowercase());
    if loud && super::sections::warns(plain) {
        return true;
    }
    if matches!(label.as_str(), "task" | "todo" | "action" | "do" | "next" | "step")
        || label.starts_with("step ")
        || label.starts_with("task ")
    {
        return false;
    }
    let known = super::sections::section(&label) == super::sections::Section::Context;
    known
        || (bold && !vocabulary::is_verb(&label) && !label.contains(' ') && holds(plain, "**:"))
        || (bold && holds(plain, ":**"))
}

/// Names of fields over a text.
static FORM: Words = Words::new(|| {
    list(
        "title|priority|severity|assignee|assigned to|owner|reporter|author|status|type|kind|labels|label|tags|component|\
         components|epic|sprint|milestone|project|team|environment|version|fix version|due|due date|deadline|date|\
         created|updated|estimate|points|story points|id|ticket|issue|branch|parent|from|to|cc|subject|sent",
    )
});

/// True for lines that are all fields of a form, such as "Priority: high" under "Title: Rotate the keys".
pub(super) fn is_form(text: &str) -> bool {
    let field = |line: &str| {
        let label =
            find_early(line, b':', FIELD_BYTES_MAX).map(|colon| line[..colon].trim_matches(['*', '_', ' ', '-']));
        label.is_some_and(|label| FORM.contains_ci(label))
    };
    let heads = || after_any(text, &["subject:", "from:", "to:", "cc:", "title:"]).is_some();
    (has_byte(text, b'\n') || heads()) && text.lines().all(field)
}

/// Names of fields, with which a remark begins.
static FIELDS: Words = Words::new(|| {
    list(
        "depends on|depends:|dependencies:|deps:|blocked by|priority:|assignee:|owner:|estimate:|retry:|\
     rerun: safe|timeout:|requirements:|_requirements|effort:|status:|after:|needs:|on failure:|note:|\
     notes:|test strategy:|details:|description:|acceptance criteria:|acceptance:|file:|files:|tags:|\
     labels:|type:|complexity:|due:|deadline:|milestone:|assigned to:|estimated|undo:|compensate:|\
     compensation:|rollback:|default:",
    )
});

/// True for a line under an item that only says something about it.
pub(super) fn is_remark(line: &str) -> bool {
    let plain = line.trim();
    let named = plain.trim_start_matches(['*', '_', '`']);
    if FIELDS.begin_ci(named) || explains(plain) {
        return true;
    }
    if !vocabulary::is_question_mark(plain) && (is_reference(plain) || is_prohibition(plain) || is_constraint(plain)) {
        return true;
    }
    // "in the header": where, how or with what the item above is done.
    const LIMITS: &[&str] = &["in", "with", "without", "by", "on", "at", "from", "via", "within", "as"];
    if plain.starts_with(|c: char| c.is_ascii_lowercase()) && begins(plain, LIMITS) && !plain.contains([',', ':', '`'])
    {
        return true;
    }
    // A link, a path or an address alone.
    (plain.starts_with("http") || plain.starts_with('[') || plain.starts_with("![")) && !plain.contains(' ')
        || (plain.starts_with("![") && plain.ends_with(')'))
}

/// True for an item that says what follows if something holds of the item above it.
pub(super) fn is_branch(line: &str) -> bool {
    let comma = line.contains([',', ':', '\u{ff0c}']);
    let opens = ["if", "otherwise", "else", "unless", "\u{5982}\u{679c}", "\u{5426}\u{5219}"];
    let acts = |rest: &str| rest.starts_with('`') || vocabulary::begins_with_verb(rest);
    opens.iter().any(|word| after_word(line, word).is_some_and(|_| comma))
        || after_any(line, &["otherwise", "else"]).is_some_and(|rest| acts(rest.trim_start()))
}

/// True when an item begins with an id.
pub(super) fn is_labelled(line: &str) -> bool {
    labels::has_label(line) || markers::checkbox(line).is_some()
}

/// True for an item that says something of the item above it: "it takes long", "needs network".
pub(super) fn is_said(line: &str) -> bool {
    static SAYS: Words = Words::new(|| {
        list(
            "is|are|was|were|takes|take|needs|requires|has|have|must|should|can|will|may|might|uses|depends|costs|\
             runs|works|fails|does|cannot|it's|that's",
        )
    });
    !vocabulary::begins_with_verb(line)
        && !vocabulary::is_question_mark(line)
        && !is_branch(line)
        && words(line).take(5).any(|word| SAYS.contains(word.as_str()))
}

/// True for "then run the tests": a step after the one above it.
pub(super) fn is_next(line: &str) -> bool {
    after_any(line, &["and then", "then", "next", "afterwards", "finally"])
        .is_some_and(|rest| vocabulary::begins_with_verb(rest.trim_start_matches([',', ' '])))
}
