//! Decides which code of a step is a command: the four forms, and what withholds a command.

use std::ops::Range;

use super::blocks::{Block, Inline, Kind};
use super::program::{is_program, placeholder};
use super::tree::Verdict;
use super::words::{
    ALONE, CODE, COLON, CONTENT, EXPECTED, FOLLOWING, INTRODUCING, LIMITS, NEVER, NEXT, OBJECT, RUN, SHELLS, TURNED,
    after, after_any, find_word, first_word, is_one_of, kind_of, sentences, words,
};
use crate::crew::paths::{Link, file_ref};

/// A fence below a step.
pub(super) struct Fence<'a> {
    pub block: &'a Block,
    /// The paragraph before it.
    pub before: Option<&'a Inline>,
    pub is_last: bool,
}

/// Facts that apply to all commands of a step.
#[derive(Default)]
pub(super) struct Around<'a> {
    /// The reason why nothing in this step runs, if there is one.
    pub barred: Option<&'static str>,
    /// The step has a box or a number.
    pub is_strong: bool,
    /// The step has a box, so any line may precede its list.
    pub has_box: bool,
    /// It is a cell of a column of commands.
    pub is_column: bool,
    /// The lines that introduce the lists it is in.
    pub leads: &'a [&'a Inline],
    /// Its notes and the headings above it.
    pub others: &'a [&'a Inline],
}

/// The verdicts on the code in a step's text, in its order, and then on the fences below it.
pub(super) fn judge(inline: &Inline, fences: &[Fence<'_>], around: &Around<'_>) -> Vec<Verdict> {
    let masked = inline.masked();
    let sentences = if inline.codes.is_empty() { Vec::new() } else { sentences(&masked) };
    let has_many = inline.codes.len() > CODES_MAX;
    let of_code = |code| if has_many { Verdict::Text } else { of_code(inline, code, &masked, &sentences, around) };
    let of_text = inline.codes.iter().map(of_code);
    let of_fences = fences.iter().map(|fence| of_fence(inline, fence, around));
    let mut verdicts = of_text.chain(of_fences).collect::<Vec<_>>();
    let has_form = |verdict: &&Verdict| matches!(verdict, Verdict::Runs { .. } | Verdict::Withheld { .. });
    let n_shells = verdicts[inline.codes.len()..].iter().filter(has_form).count();
    if verdicts.iter().filter(has_form).count() > 1 || (n_shells > 0 && fences.len() > 1) {
        for verdict in verdicts.iter_mut().filter(|verdict| matches!(verdict, Verdict::Runs { .. })) {
            *verdict = withheld("its step has more than one piece of code", SPLIT);
        }
    }
    verdicts
}

fn withheld(reason: impl Into<String>, help: &'static str) -> Verdict {
    Verdict::Withheld { reason: reason.into(), help }
}

fn when(holds: bool, reason: &str, help: &'static str) -> Option<Verdict> {
    holds.then(|| withheld(reason, help))
}

fn because(reason: Option<impl Into<String>>, help: &'static str) -> Option<Verdict> {
    reason.map(|reason| withheld(reason, help))
}

/// In a line with more pieces of code than this, none is a command.
const CODES_MAX: usize = 50;
/// A command below a longer text is withheld, since each step would search all of it.
const AROUND_BYTES_MAX: usize = 20_000;
/// Words that may follow a command in its line.
const FOLLOWING_MAX: usize = 8;
const SAY: &str = "to run it, write a step that says only: Run `...`";
const SPLIT: &str = "write a step for each command";
const MARK: &str = "mark a fence of commands as sh, as the last thing below its step";
const FILL: &str = "write the value in its place";

fn of_code(
    inline: &Inline,
    range: &Range<usize>,
    masked: &str,
    sentences: &[Range<usize>],
    around: &Around<'_>,
) -> Verdict {
    let (&Range { start, end }, code) = (range, inline.code(range));
    let sentence = sentences.iter().find(|sentence| sentence.start <= start && end <= sentence.end);
    let sentence = sentence.cloned().unwrap_or(0..masked.len());
    let (before, after_it) = (&masked[sentence.start..start], &masked[end..sentence.end]);
    let lead = if around.is_column && before.trim().is_empty() { RUN[0] } else { lead_taken_off(before) };
    let Some((command, form)) = form_of(code, before, lead, after_it, around.is_strong) else {
        let is_near = orders(lead) || after_any(lead, &COLON).is_some();
        if orders(lead) && !code.starts_with('/') && !is_program(code) {
            return withheld("it does not begin with the name of a program", "put it into a fence marked sh");
        }
        let is_plausible =
            (code.contains(' ') || is_near) && is_program(code.trim_start_matches("$ ")) && file_ref(code).is_none();
        return if is_plausible { Verdict::Mentioned } else { Verdict::Text };
    };
    let is_other = |other: &Range<usize>| other != range && !names_a_thing(inline.code(other));
    // After the command's sentence, a step may only say what it expects.
    let is_alone = |other: &Range<usize>| *other == sentence || is_expected(&masked[other.clone()]);
    let says_more = sentences.first().is_some_and(|first| *first != sentence) || !sentences.iter().all(is_alone);
    let is_link = |link: &Link| link.range.start <= start && end <= link.range.end;
    let says = |word: &str| format!("its line says {word:?}");
    because(around.barred, SAY)
        .or_else(|| when(inline.links.iter().any(is_link), "it is the text of a link", SAY))
        .or_else(|| when(says_more, "its step says more than to run it", SAY))
        .or_else(|| because(denied(around), SAY))
        .or_else(|| because(limited(&masked[sentence.clone()]).map(says), SAY))
        .or_else(|| when(!may_follow(after_it), "other text follows it", SAY))
        .or_else(|| when(inline.codes.iter().any(is_other), "its step has more than one piece of code", SPLIT))
        .or_else(|| because(placeholder(command), FILL))
        .unwrap_or_else(|| Verdict::Runs { command: command.to_owned(), form })
}

/// The command and the form of a piece of code, from the parts of its sentence; `lead` is the first without its label.
fn form_of<'a>(code: &'a str, before: &str, lead: &str, after_it: &str, is_strong: bool) -> Option<(&'a str, u8)> {
    let ends = after_it.trim_matches(['.', '!', ')', ' ']).is_empty();
    if let Some(command) = code.strip_prefix("$ ") {
        let opens = lead.trim().is_empty() || before.trim_end().ends_with('(') || orders(lead);
        return (opens && ends && is_program(command)).then(|| (command.trim(), 2));
    }
    let has_argument = code.split_ascii_whitespace().nth(1).is_some();
    if !is_program(code) || code.starts_with('/') {
        return None;
    }
    if orders(lead) {
        return (has_argument || code.starts_with("./") || ends).then_some((code, 3));
    }
    let is_final = before.trim_end().ends_with(':') && ends && !after_it.contains(')');
    let is_turned = before.contains(',') || find_word(before, &TURNED).is_some();
    if is_final && !is_turned && after_any(lead, &RUN).is_some() {
        return Some((code, 4));
    }
    // A verb alone, or with a definite object: `Build scripts:` is not an instruction.
    let begins = COLON.iter().any(|verb| {
        let object = after(lead, verb).map(str::trim);
        object.is_some_and(|it| it == ":" || !ALONE.contains(verb) && after_any(it, &OBJECT).is_some())
    });
    let is_plain = find_word(before, &CODE).is_none();
    (is_strong && begins && is_final && !is_turned && has_argument && is_plain).then_some((code, 4))
}

/// The sentence without the label and the introductory word before its verb.
fn lead_taken_off(before: &str) -> &str {
    let mut rest = before.trim_start();
    if let Some((label, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let number = label.trim_start_matches(|c: char| c.is_ascii_uppercase());
        let is_label = number.len() < label.len() && number.parse::<u32>().is_ok();
        rest = if is_label { after.trim_start() } else { rest };
    }
    let after = after_any(rest, &NEXT).or_else(|| after(rest, "first"));
    after.map_or(rest, |after| after.trim_start_matches([',', ' ']))
}

/// True for Run or Execute alone.
fn orders(lead: &str) -> bool {
    after_any(lead, &RUN).is_some_and(|rest| matches!(rest.trim(), "" | ":"))
}

/// True for a sentence that states the expected result of a command.
fn is_expected(sentence: &str) -> bool {
    is_one_of(&first_word(sentence), &EXPECTED) && find_word(sentence, &NEVER).is_none()
}

/// The reason why the surroundings of a step withhold its commands.
fn denied(around: &Around<'_>) -> Option<String> {
    let says = |word: &str| format!("the text around it says {word:?}");
    let is_long = |text: &Inline| text.text.len() > AROUND_BYTES_MAX;
    if around.leads.iter().chain(around.others).any(|text| is_long(text)) {
        return Some("the text around it is too long".to_owned());
    }
    for lead in around.leads {
        if let Some(word) = limited(&lead.masked()) {
            return Some(says(word));
        }
        if !around.has_box && !introduces(lead) {
            return Some("the paragraph above its list introduces no steps".to_owned());
        }
    }
    around.others.iter().find_map(|other| find_word(&other.masked(), &NEVER).map(says))
}

/// The word in a line that withholds its command.
fn limited(masked: &str) -> Option<&str> {
    words(masked).find(|word| is_one_of(word, &NEVER) || is_one_of(word, &LIMITS))
}

/// A line introduces steps if it is one word or begins like an instruction.
fn introduces(lead: &Inline) -> bool {
    let text = lead.text.trim();
    let last = sentences(text).last().map_or(text, |last| text[last.clone()].trim());
    let first = first_word(last);
    let is_order = kind_of(&first).is_some() || INTRODUCING.contains(&first.as_str());
    text.ends_with(':') && (is_order || last.split_whitespace().count() == 1)
}

/// True for a text that may follow a command in its line: nothing, or a few words about its target or purpose.
fn may_follow(after_it: &str) -> bool {
    let rest = after_it.trim_matches(['.', '!', ' ']);
    let is_short = rest.split_whitespace().count() <= FOLLOWING_MAX
        && !rest.contains([',', ';', ':', '(', '\u{2014}', '\u{2013}']);
    rest.is_empty() || rest == ")" || is_short && after_any(rest, &FOLLOWING).is_some()
}

/// True for a file, a folder, an option or another single word that is not a program.
fn names_a_thing(code: &str) -> bool {
    !code.contains(' ') && code.contains(['.', '/', '_', '-', '=', '*'])
        || !code.starts_with(|c: char| c.is_ascii_lowercase())
}

/// The language of a fence, and true if it is a shell.
pub(super) fn language_of(first_line: &str) -> (String, bool) {
    let name = first_line.trim().split([' ', ',', '{']).next().unwrap_or_default().to_lowercase();
    let is_shell = SHELLS.contains(&name.as_str());
    (name, is_shell)
}

fn of_fence(inline: &Inline, fence: &Fence<'_>, around: &Around<'_>) -> Verdict {
    let Kind::Fence { language, code, is_closed } = &fence.block.kind else { return Verdict::Text };
    let (name, is_shell) = language_of(language);
    if !is_shell && !language.trim().is_empty() {
        return Verdict::Text;
    }
    let command = match prompted(code) {
        None if !is_shell => return Verdict::Mentioned,
        None if name == "console" => {
            return withheld("none of its lines begins with `$ `", "write `$ ` before each command");
        }
        None => code.trim_end().to_owned(),
        Some((_, false)) => return withheld("it shows output too", "leave only the commands in it"),
        Some((lines, true)) => lines,
    };
    let line = fence.before.unwrap_or(inline);
    let (masked, before) = (inline.masked(), line.masked());
    let comment = |line: &str| Some(if line.starts_with('#') { 0 } else { line.find(" #")? });
    let comments = command.lines().map(str::trim_start).filter_map(|line| Some(&line[comment(line)?..]));
    let comments = comments.collect::<Vec<_>>().join("\n");
    let is_code = |line: &&str| !matches!(line.trim_start().chars().next(), None | Some('#'));
    let first = command.lines().find(is_code);
    let says_more = |other: &Range<usize>| !is_expected(&masked[other.clone()]);
    let is_content = command.starts_with("#!")
        || comments.split_whitespace().any(|word| file_ref(word).is_some())
        || speaks_of_code(line);
    let says = |word: &str| format!("the line above it says {word:?}");
    because(around.barred, SAY)
        .or_else(|| when(name.len() < language.trim().len(), "its first line says more than the language", MARK))
        .or_else(|| when(sentences(&masked).iter().skip(1).any(says_more), "its step says more than to run it", SAY))
        .or_else(|| when(!is_closed, "the fence is not closed", "close the fence"))
        .or_else(|| when(!fence.is_last, "it is not the last thing below its step", MARK))
        .or_else(|| because(denied(around), SAY))
        .or_else(|| because(limited(&masked).or_else(|| limited(&before)).map(says), SAY))
        .or_else(|| because(find_word(&comments, &NEVER).map(|word| format!("a comment in it says {word:?}")), SAY))
        .or_else(|| when(is_content, "it looks like the content of a file", "write above it: Run:"))
        .or_else(|| because(placeholder(&command), FILL))
        .or_else(|| when(first.is_none_or(|line| !begins_a_script(line)), "it does not begin with a command", MARK))
        .unwrap_or(Verdict::Runs { command, form: 1 })
}

/// True if the line above a fence is about the code as text: it names a file, or asks for something other than running it.
fn speaks_of_code(line: &Inline) -> bool {
    let text = lead_taken_off(&line.text);
    let names_a_file =
        || line.text.split_whitespace().any(|word| file_ref(word.trim_matches(['`', ':', ',', '.'])).is_some());
    after_any(text, &RUN).is_none()
        && (!line.codes.is_empty()
            || after_any(text, &CONTENT).is_some()
            || find_word(&line.text, &CODE).is_some()
            || names_a_file())
}

/// The lines after `$ ` with their continuation lines, and true if there are no others.
fn prompted(code: &str) -> Option<(String, bool)> {
    let (mut lines, mut all, mut continues) = (Vec::new(), true, false);
    for line in code.lines() {
        let command = line.trim_start().strip_prefix("$ ");
        match command.or_else(|| Some(line).filter(|_| continues)) {
            Some(command) => {
                continues = command.trim_end().ends_with('\\');
                lines.push(command);
            }
            None => all &= line.trim().is_empty(),
        }
    }
    (!lines.is_empty()).then(|| (lines.join("\n"), all))
}

/// True for a program, an assignment, a keyword or a sign that can begin a line of a script.
fn begins_a_script(line: &str) -> bool {
    let line = line.trim_start();
    let name = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap_or_default();
    line.starts_with(['(', '{', '[', '!', '"', '\'', '$', '~', ':', '/', '\\'])
        || line[name.len()..].starts_with('=')
        || is_program(line.split([';', '|', '&', '(', ')']).next().unwrap_or_default())
}
