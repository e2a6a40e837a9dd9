//! Which command a clause asks to run. In doubt it asks for none.

use std::borrow::Cow;

use super::inline::{Atom, AtomKind, Definitions, Inline};
use super::phrases::{Words, begins, list, lower};
use super::shell::{self, Shape};
use super::text::{first_word, holds, rfind};
use super::{crew, unasked, vocabulary};

/// What may follow a command that is judged, placed or timed.
static AFTER: Words = Words::new(|| {
    list(
        ",|and |then |&&|must |should |passes|succeeds|works|in |on |from |to |until |again|with |for |once|locally|before\
     |after|(|inside |at |twice|.|;|:|)|if |unless |when |while |every |as |over |against |within |through |via |by \
     |into |per |but |so |since |because |first|now|here|without |instead |rather |aus|uit\
     |\u{3092}\u{5b9f}\u{884c}|\u{2014}|\u{2013}|- |@|!|[|#",
    )
});
/// What asks for the code after it to be run.
static ASKS: Words = Words::new(|| {
    list(
        "run|execute|invoke|rerun|re-run|then run|first run|run the command|execute the command|run command|run this\
     |run the script|run script|\u{8fd0}\u{884c}|\u{6267}\u{884c}",
    )
});
/// Those of them that ask for it alone.
static RUN: Words = Words::new(|| list("run|execute|invoke|rerun|re-run"));
/// The same, but what follows can also be the name of a thing.
static STARTS: Words = Words::new(|| list("start|launch|call|do|try|issue|type|enter|use"));
/// Verbs of running, with the code somewhere after them.
static RUNS: Words = Words::new(|| list("run|execute|invoke|rerun|re-run|install|deploy|launch|start|call|do|try|use"));
/// Verbs that make the code after them a thing to write about.
static WRITES: Words = Words::new(|| {
    list("implement|add|create|write|document|fix|replace|refactor|rename|support|extend|remove|describe")
});
/// Verbs that make a thing of their object, but not of what follows "with".
static CONCERNS: Words = Words::new(|| {
    list(
        "update|explain|mention|make|change|edit|delete|review|debug|investigate|improve|optimise|optimize|discuss\
     |read|look|study|understand|rewrite|port|migrate|handle|teach|list|define|design|decide|find|ask|clarify|consider\
     |compare|quote|introduce|expose|deprecate|drop|disable|enable|allow|let|extract|simplify|move|adjust|modify|set",
    )
});
/// Verbs with nothing behind them but what does it.
static DOES: Words = Words::new(|| list("build|lint|test|format|check|type-check|typecheck|compile|bundle"));
/// Verbs whose object is a file, also when it is a script.
static FILES: Words = Words::new(|| {
    list("lint|format|copy|open|chmod|parse|show|print|save|upload|download|commit|load|import|export|test|sign")
});
/// Words before code that make a thing of it.
static LEADS: Words = Words::new(|| {
    list(
        "the|a|an|this|these|why|how|whether|of|about|like|as|for|between|and|or|what|which|when|our|before|until|while",
    )
});
/// Words with which a statement begins, and not an instruction.
static SUBJECTS: Words =
    Words::new(|| list("it|he|she|they|i|we|you|there|this|that|nobody|somebody|someone|everybody|everyone|anybody"));
/// Words of running at the end of what stands before the code.
const RUNNING: &[&str] = &["run", "rerun", "re-run", "execute", "running", "executing"];
/// Words before "run" that leave it an instruction: where, with what and how to run.
static ROOMS: Words = Words::new(|| {
    list(
        "in|from|inside|at|on|for|with|using|within|under|use|always|just|simply|manually|locally|first|also|again\
     |immediately|finally|quickly|then|periodically|automatically|carefully",
    )
});
/// Words before "running" that leave it an instruction.
const BY_RUNNING: &[&str] = &["by", "start", "begin", "keep", "continue", "try"];
/// Verbs that only speak of something.
static TELLS: Words = Words::new(|| {
    list(
        "document|describe|explain|mention|discuss|ask|clarify|consider|compare|understand|teach|tell|warn|investigate\
     |stop|prevent|refuse|avoid|forbid|debug|review|quote",
    )
});
/// Words that only lead to an instruction.
static FIRSTS: Words = Words::new(|| list("first|firstly|please|then|next|finally|lastly|now|also|and|afterwards"));
/// Words with which a wait begins, up to the comma.
static WAITS: Words = Words::new(|| list("after|before|once|when|while|until|if|unless|as soon as"));

/// So many pieces of code in a clause are looked at.
const CODES_MAX: usize = 20;

/// What the code of a clause comes to.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) command: Option<String>,
    /// Code that looks like a command and is none, and where it stands.
    pub(super) missed: Option<(usize, String)>,
}

/// What the words before a piece of code make of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// Something that must not be run.
    Never,
    /// Something to write about.
    Thing,
    /// The object of another verb.
    Object,
    /// The object of a verb of running, with words between.
    Running,
    /// The means to something else: "with", "via".
    Means,
    /// What does it: "Build `make`"; a file there is what it is done to.
    Doer,
    /// "start", "call": a line to run or the name of a thing.
    Started,
    /// What stands for itself.
    Itself,
    /// "run": whatever it is.
    Run,
}

impl Asked {
    fn takes(self, shape: Shape) -> bool {
        match shape {
            Shape::Name => false,
            Shape::Command => !matches!(self, Self::Never | Self::Thing),
            Shape::Script => !matches!(self, Self::Never | Self::Thing | Self::Object | Self::Doer),
            Shape::Alone => !matches!(self, Self::Never | Self::Thing | Self::Object),
            Shape::Program | Shape::Line => matches!(self, Self::Started | Self::Itself | Self::Run),
            Shape::Word => self == Self::Run,
        }
    }
}

/// The command that a clause asks to run, from the code in it; several in a row are joined.
///
/// Code in the `hidden` brackets belongs to a setting.
pub(super) fn command_in(text: &str, inline: &Inline, from: usize, to: usize, hidden: Option<(usize, usize)>) -> Found {
    let shown = |atom: &&Atom| hidden.is_none_or(|(start, end)| atom.start < start || atom.start >= end);
    let mut all = inline.within(from, to).iter().filter(|atom| atom.kind == AtomKind::Code).filter(shown);
    let Some(first) = all.next() else { return Found::default() };
    let mut codes = [first; CODES_MAX];
    let mut n_codes = 1;
    for (slot, atom) in codes[1..].iter_mut().zip(all) {
        *slot = atom;
        n_codes += 1;
    }
    let codes = &codes[..n_codes];
    let sentence = crew::sentence_before(text, first.start);
    let mut found = Found::default();
    let mut end = from;
    for (n, atom) in codes.iter().enumerate() {
        let code = text.get(atom.inner.0..atom.inner.1).unwrap_or("").trim();
        let shape = shell::shape(code);
        let gap = text.get(end..atom.start).unwrap_or("");
        let after = text.get(atom.end..to).unwrap_or("").trim_start();
        end = atom.end;
        let before = text.get(from..atom.start).unwrap_or("");
        // What stands before other code belongs to that, unless a new verb comes.
        let asked = match n {
            _ if unasked::settles(after) => Some(Asked::Never),
            _ if !crew::is_ordered(sentence, before, after) => Some(Asked::Thing),
            0 => asked(before, after),
            _ => again(before, gap, after),
        };
        // "`app/main.py`: drop the templates" only says where.
        let place = || looks_at(before) || after.starts_with(':');
        // `src/auth.py` alone can be something to work on.
        let alone = || asked == Some(Asked::Itself) && !shell::is_shell_script(code);
        let asked = asked.filter(|_| shape != Shape::Script || !(place() || alone()));
        if asked.is_some_and(|asked| asked.takes(shape)) {
            let (command, n_joined) = joined(text, &codes[n..]);
            found.command = Some(command);
            found.missed = codes.get(n + n_joined).and_then(|next| other(text, codes[n + n_joined - 1].end, next));
            break;
        }
        let told = match shape {
            Shape::Command => true,
            Shape::Script => speaks_of_running(before),
            Shape::Alone | Shape::Program => speaks_of_running(before) || only_verb(before) && after.is_empty(),
            Shape::Line | Shape::Word | Shape::Name => false,
        };
        if told && found.missed.is_none() && asked.is_some_and(|asked| asked != Asked::Never) {
            found.missed = Some((atom.start, code.to_owned()));
        }
    }
    found
}

/// "Test:", "Verify": the file behind it is looked at and not run.
fn looks_at(before: &str) -> bool {
    let word = before.trim().trim_end_matches(':').trim_matches('*');
    matches!(&*lower(word), "test" | "tests" | "verify" | "check" | "inspect" | "review" | "modify" | "create" | "see")
}

/// The first of some commands, and those that directly follow it.
fn joined(text: &str, codes: &[&Atom]) -> (String, usize) {
    let mut command = String::with_capacity(codes.first().map_or(0, |atom| atom.end - atom.start));
    let mut end = 0;
    let mut n_joined = 0;
    for atom in codes {
        let code = text.get(atom.inner.0..atom.inner.1).unwrap_or("").trim();
        if !command.is_empty() {
            let gap = lower(text.get(end..atom.start).unwrap_or("").trim().trim_matches(',').trim());
            let joins = ["", "and", "then", "and then", "&&", "and run", "then run", "and then run"];
            if !joins.contains(&&*gap) || !shell::is_command(code, true) {
                break;
            }
            command.push_str(" && ");
        }
        command.push_str(code);
        end = atom.end;
        n_joined += 1;
    }
    (command, n_joined)
}

/// A command that stands beside one that is taken, as what it is piped to or instead of it.
fn other(text: &str, end: usize, next: &Atom) -> Option<(usize, String)> {
    let gap = lower(text.get(end..next.start)?.trim());
    let code = text.get(next.inner.0..next.inner.1)?.trim();
    (matches!(&*gap, "|" | "or" | "||") && shell::is_command(code, true)).then(|| (next.start, code.to_owned()))
}

/// What a second verb in the clause makes of the code after it.
fn again(before: &str, gap: &str, after: &str) -> Option<Asked> {
    let (before, low) = (lower(before), lower(gap));
    let last = low.rsplit([',', ';']).next().unwrap_or("").rsplit(" and ").next().unwrap_or("");
    let verb = last.trim().trim_start_matches("and ").trim_start_matches("then ");
    let parted = last.len() < low.len() || holds(gap, " then ");
    let runs = parted && ASKS.contains(verb) && !unasked::forbids_code(&before);
    runs.then(|| match () {
        () if mentions(&before) => Asked::Thing,
        () if follows(after) => Asked::Run,
        () => Asked::Running,
    })
}

/// The words after the last sign or word that begins a new instruction.
fn last_instruction<'t>(said: &'t str, parts: &[&str]) -> &'t str {
    let ends = parts.iter().filter_map(|part| rfind(said, part).map(|at| at + part.len()));
    &said[ends.max().unwrap_or(0)..]
}

/// True when what stands before the code speaks of it, also over an "and".
fn mentions(said: &str) -> bool {
    unasked::mentions(last_instruction(said, &[", ", "; ", " then ", ": "]))
}

/// True when a word of running stands right before the code.
fn speaks_of_running(before: &str) -> bool {
    let before = lower(before);
    let last = before.split_whitespace().next_back().unwrap_or("");
    RUNNING.contains(&last) || matches!(last, "ran" | "runs" | "executes" | "executed")
}

/// True for one word that can be an instruction with a program behind it: "Build".
fn only_verb(before: &str) -> bool {
    let verb = lower(before.trim());
    let speaks = [&WRITES, &CONCERNS, &FILES, &TELLS, &LEADS].iter().any(|list| list.contains(&verb));
    !verb.is_empty() && verb.chars().all(char::is_alphabetic) && !speaks
}

/// The code of a cell in a column of commands.
pub(super) fn in_column(cell: &str) -> Option<String> {
    let code = cell.trim().strip_prefix('`')?.strip_suffix('`')?.trim();
    (!code.contains('`') && shell::is_command(code, true)).then(|| code.to_owned())
}

/// True when the last of some words is a verb of running, but others say that only something is said of it.
fn only_mentions(said: &str) -> bool {
    if mentions(said) || rfind(said, ": ").is_some_and(|at| unasked::quotes(&said[..at])) {
        return true;
    }
    let tail = last_instruction(said, &[", ", "; ", " then ", ": ", " and ", " but ", " & ", " - ", "\u{2014} "]);
    let tail = tail.rsplit('(').next().unwrap_or(tail);
    let tail = vocabulary::instruction(tail).trim();
    let Some((lead, last)) = tail.rsplit_once(' ').filter(|(_, last)| RUNNING.contains(last)) else { return false };
    let first = first_word(lead);
    let before = lead.rsplit(' ').next().unwrap_or("");
    if last.ends_with("ing") {
        let caused = lead.strip_suffix(" by").is_some_and(|lead| lead.ends_with("ed") || lead.ends_with("broken"));
        return !BY_RUNNING.contains(&before) || TELLS.contains(first) || caused;
    }
    let sure = begins(lead, &["make sure", "be sure", "ensure", "go"]);
    let leads = sure || purpose(lead);
    !leads && (SUBJECTS.contains(before) || !ROOMS.contains(first))
}

/// "Executed", "Built it with": what was done, and no instruction.
fn is_past(said: &str) -> bool {
    let verb = first_word(said);
    let ends = verb.len() > 4 && verb.ends_with("ed") && !verb.ends_with("eed") && !vocabulary::is_verb(verb);
    ends && !said.contains(':')
}

/// True for code among the words of a quotation beside which something stands.
fn is_quoted(before: &str, after: &str) -> bool {
    const QUOTES: [char; 3] = ['"', '\u{201c}', '\u{201d}'];
    let Some((outside, inside)) = before.rsplit_once(QUOTES) else { return false };
    let open = outside.matches(QUOTES).count() % 2 == 0;
    let said = |part: &str| part.contains(char::is_alphanumeric);
    let rest = after.split_once(QUOTES).map(|(_, rest)| rest);
    open && said(inside) && rest.is_some_and(|rest| said(outside) || said(rest))
}

/// "to check it": what a command is for.
fn purpose(lead: &str) -> bool {
    lead.split_once(' ').is_some_and(|(first, rest)| first == "to" && !rest.ends_with(" to"))
}

/// The text after an id or a name with a colon: "T1 fix", "Web: fix".
fn unlabelled(text: &str) -> &str {
    let Some((first, rest)) = text.split_once(' ') else { return text };
    let id = first.starts_with(|c: char| c.is_ascii_uppercase()) && first.ends_with(|c: char| c.is_ascii_digit());
    if (first.ends_with(':') || id) && !rest.trim().is_empty() { vocabulary::instruction(rest) } else { text }
}

/// True when an item names a command of its own.
pub(super) fn is_command_line(line: &str) -> bool {
    line.len() <= 4_000 && line.contains('`') && !vocabulary::is_question_mark(line) && {
        let inline = Inline::scan(line, &Definitions::new());
        command_in(line, &inline, 0, line.len(), None).command.is_some()
    }
}

/// True when no noun follows, of which the code would be the name.
fn follows(after: &str) -> bool {
    after.is_empty() || AFTER.begin(after)
}

fn asked(before: &str, after: &str) -> Option<Asked> {
    let before = before.trim_end_matches(['*', ' ', '"', '(']);
    if RUN.contains_ci(before) {
        return Some(if follows(after) { Asked::Run } else { Asked::Running });
    }
    let all = lower(before);
    let waits = WAITS.after(&all).is_some() && !holds(&all, ", ");
    if unasked::forbids_code(all.trim_start()) || before.trim_start().starts_with(unasked::TICKS) {
        return Some(Asked::Never);
    }
    if waits {
        return None;
    }
    let empty = !before.contains(|c: char| c.is_alphanumeric());
    let plain = if empty { "" } else { vocabulary::instruction(before) };
    let plain = unlabelled(plain);
    // It is the end of what is in lower case already, unless that has another length.
    let plain = if before.is_ascii() { Cow::Borrowed(&all[all.len() - plain.len()..]) } else { lower(plain) };
    let said = plain.trim().trim_end_matches(':').trim();
    let said = if FIRSTS.contains(said.trim_end_matches(',')) { "" } else { said };
    let verb = first_word(said);
    let last = said.rsplit(' ').next().unwrap_or("");
    let writes = WRITES.contains(verb);
    let judged = follows(after);
    let runs = ASKS.contains(said)
        || [" run", " running", " execute", "\u{8fd0}\u{884c}", "\u{6267}\u{884c}"]
            .iter()
            .any(|end| said.ends_with(end));
    let sure = verb == "make" && said.split_whitespace().nth(1) == Some("sure");
    let subject = verb.split(['\'', '\u{2019}']).next().unwrap_or(verb);
    let stated = SUBJECTS.contains(subject) && said.contains(' ');
    Some(match () {
        () if mentions(&all) || only_mentions(said) || stated && !runs || is_past(said) || is_quoted(before, after) => {
            Asked::Thing
        }
        () if runs && judged => Asked::Run,
        () if runs => Asked::Running,
        () if writes => Asked::Thing,
        () if before.ends_with(':') || said.is_empty() && judged => Asked::Itself,
        () if matches!(last, "with" | "via" | "using" | "by") => Asked::Means,
        () if STARTS.contains(said) => {
            if judged {
                Asked::Started
            } else {
                Asked::Running
            }
        }
        // "Build `make`" says what builds, "Install `pytest`" what is installed.
        () if DOES.contains(said) && after.is_empty() => Asked::Doer,
        () if verb == "install" => Asked::Object,
        () if RUNS.contains(verb) => Asked::Running,
        () if CONCERNS.contains(verb) && !sure || LEADS.contains(last) || !judged => Asked::Thing,
        () => Asked::Object,
    })
}
