//! How far an entry of another program is, by its status and by the fields that switch it on and off. What is not known is
//! never taken for leave to run something.

use super::phrases::{Words, after_any, list, words};
use super::values::{Node, Value};
use crate::plan::Mark;

/// How far an entry is.
pub(super) struct State {
    pub(super) mark: Mark,
    /// What is written of it and cannot be read: the field and its value.
    pub(super) doubt: Option<(String, String)>,
}

static OPEN: Words = Words::new(|| {
    list(
        "open|pending|todo|to_do|new|ready|queued|backlog|blocked|failed|not_started|notstarted|unstarted|waiting|planned|\
         scheduled|accepted|reopened|approved|inbox|none|offen|ausstehend|zu_erledigen|à_faire|en_attente|ouvert|ouverte|\
         pendiente|por_hacer|abierto|abierta|pendente|a_fazer|aberto|aberta|da_fare|aperto|aperta|te_doen|待办|未开始|待处理|\
         未着手|не_начато|открыто",
    )
});
static BEGUN: Words = Words::new(|| {
    list(
        "in_progress|inprogress|doing|review|in_review|hooked|started|active|ongoing|running|working|wip|in_arbeit|\
         in_bearbeitung|begonnen|laufend|läuft|en_cours|en_curso|en_progreso|em_andamento|em_progresso|in_corso|bezig|\
         进行中|進行中|作業中|в_работе|в_процессе",
    )
});
static DONE: Words = Words::new(|| {
    list(
        "done|completed|complete|closed|finished|resolved|fixed|merged|shipped|succeeded|success|passed|verified|\
         erledigt|fertig|abgeschlossen|beendet|fait|faite|fini|finie|terminé|terminée|hecho|hecha|terminado|terminada|\
         completado|completada|feito|feita|concluído|concluída|fatto|fatta|completato|completata|gedaan|klaar|afgerond|\
         完成|已完成|完了|済|済み|готово|сделано|выполнено",
    )
});
static CANCELLED: Words = Words::new(|| {
    list(
        "cancelled|canceled|deferred|deleted|rejected|skipped|skip|wont_do|wontdo|wont_fix|wontfix|will_not_do|not_planned|declined|\
         dropped|abandoned|obsolete|duplicate|invalid|archived|removed|superseded|postponed|disabled|never|not_needed|\
         not_required|not_applicable|no_longer_needed|abgebrochen|entfällt|verworfen|storniert|nicht_nötig|annulé|annulée|\
         abandonné|abandonnée|cancelado|cancelada|descartado|descartada|annullato|annullata|geannuleerd|已取消|取消|中止|\
         キャンセル|отменено",
    )
});
/// Fields that say of an entry that it is done.
const DONE_FIELDS: [&str; 5] = ["done", "completed", "finished", "closed", "resolved"];
/// Fields that switch an entry on or off, and what they say of one that is to be done.
const SWITCHES: [(&str, bool); 16] = [
    ("enabled", true),
    ("if", true),
    ("when", true),
    ("only_if", true),
    ("onlyIf", true),
    ("condition", true),
    ("unless", false),
    ("disabled", false),
    ("skip", false),
    ("skipped", false),
    ("ignore", false),
    ("ignored", false),
    ("cancelled", false),
    ("canceled", false),
    ("deleted", false),
    ("archived", false),
];

/// What the fields of an entry say.
pub(super) fn of(entry: &Value) -> State {
    let mut state = State { mark: Mark::Open, doubt: None };
    let present = |name: &str| entry.field(name).filter(|value| !matches!(value.node, Node::Nothing));
    for name in DONE_FIELDS {
        let Some(value) = present(name) else { continue };
        match flag(value) {
            Some(true) => state.mark = Mark::Done,
            Some(false) => {}
            None => state.doubt = doubt(name, value),
        }
    }
    let status = ["status", "state"].iter().find_map(|name| Some((*name, present(name)?)));
    if let Some((name, value)) = status {
        match value.word().and_then(mark) {
            // A status says more than a flag beside it, unless it says that nothing was done.
            Some(Mark::Open) => {}
            Some(mark) => state.mark = mark,
            None => state.doubt = doubt(name, value),
        }
    }
    for (name, on) in SWITCHES {
        let Some(value) = present(name) else { continue };
        match flag(value) {
            Some(said) if said == on => {}
            Some(_) if state.mark == Mark::Done => {}
            Some(_) => state.mark = Mark::Cancelled,
            None => state.doubt = doubt(name, value),
        }
    }
    state
}

/// What a status says; nothing when it is not known.
pub(super) fn mark(status: &str) -> Option<Mark> {
    let plain: String = status.to_lowercase().chars().filter(|c| !matches!(c, '\'' | '\u{2019}')).collect();
    let plain = plain.replace([' ', '-'], "_");
    let known = [(&OPEN, Mark::Open), (&BEGUN, Mark::InProgress), (&DONE, Mark::Done), (&CANCELLED, Mark::Cancelled)];
    known.into_iter().find(|(words, _)| words.contains(&plain)).map(|(_, mark)| mark)
}

/// What a few words in brackets behind or before a task say of it: "(in progress)", "[DONE]". Of the words of a status only
/// those count that are nothing else.
pub(super) fn said(words: &str) -> Option<Mark> {
    static SAID: Words = Words::new(|| {
        list(
            "in progress|in-progress|wip|doing|ongoing|done|completed|complete|finished|cancelled|canceled|won't do|\
             dropped|abandoned",
        )
    });
    if SAID.contains_ci(words) { mark(words) } else { None }
}

/// What a cell of a table says of how far its row is; nothing when that is not understood.
pub(super) fn in_cell(cell: &str) -> Option<Mark> {
    if cell.contains(CROSSES) {
        return None;
    }
    if cell.contains(['\u{1f6a7}', '\u{1f504}', '\u{23f3}']) {
        return Some(Mark::InProgress);
    }
    let cell = cell.to_lowercase();
    let plain = cell.trim_matches(|c: char| !c.is_alphanumeric());
    if plain.is_empty() {
        let all = |signs: &[char]| cell.chars().all(|c| signs.contains(&c));
        return if all(&VOID) { Some(Mark::Open) } else { all(&TICKS).then_some(Mark::Done) };
    }
    if matches!(plain, "x" | "yes") {
        return Some(Mark::Done);
    }
    if plain == "n/a" {
        return Some(Mark::Cancelled);
    }
    if let Some(part) = cell.strip_suffix('%') {
        return match part.trim().parse::<u8>().ok()? {
            0 => Some(Mark::Open),
            1..=99 => Some(Mark::InProgress),
            100 => Some(Mark::Done),
            _ => None,
        };
    }
    // "Done (Bob)", "already done": what is over stays over, whoever it was.
    let over = |words: &str| mark(words.trim()).filter(|mark| matches!(mark, Mark::Done | Mark::Cancelled));
    let bracketed = || over(plain.split_once('(').filter(|(_, why)| !words(why).any(|word| HEDGES.contains(&word)))?.0);
    let already = || over(after_any(plain, &["already", "bereits", "schon", "déjà", "ya"])?);
    mark(plain).filter(|_| !HELD.contains(plain)).or_else(bracketed).or_else(already)
}

/// What a cell says in a column of what is done: yes, no, a day, or a status.
pub(super) fn in_done_cell(cell: &str) -> Option<Mark> {
    let part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '/' | '.' | ':' | ' ' | 'T' | 'Z' | '+');
    let dated = cell.len() >= DAY_BYTES && cell.starts_with(|c: char| c.is_ascii_digit()) && cell.chars().all(part);
    match said_yes(cell) {
        Some(true) => Some(Mark::Done),
        Some(false) => Some(Mark::Open),
        None if dated => Some(Mark::Done),
        None => in_cell(cell),
    }
}

/// A day is written with so many bytes or more.
const DAY_BYTES: usize = 6;

/// Signs of what is not so, be it done, wanted or allowed.
const CROSSES: [char; 6] = ['\u{274c}', '\u{274e}', '\u{1f6ab}', '\u{26d4}', '\u{2717}', '\u{2718}'];
/// Signs of what is done, with the one that only says how they are drawn.
const TICKS: [char; 6] = ['\u{2705}', '\u{2713}', '\u{2714}', '\u{2611}', '\u{fe0f}', ' '];
/// Signs that stand where nothing is said yet.
const VOID: [char; 7] = ['-', '\u{2013}', '\u{2014}', '\u{2610}', '\u{2b1c}', '\u{fe0f}', ' '];

/// Of the open ones, those that something holds which a row does not name.
static HELD: Words = Words::new(|| list("blocked|waiting"));
/// Words behind "done" that take it back.
static HEDGES: Words =
    Words::new(|| list("not|no|never|almost|nearly|partly|partially|except|but|nicht|fast|pas|casi"));
static YES: Words = Words::new(|| list("true|yes|y|on|1|x|always|ja|oui|sí|sim|да|是|はい"));
static NO: Words = Words::new(|| list("false|no|n|off|0|never|nein|non|nee|não|нет|否|いいえ"));

/// Yes or no; what is empty is no.
pub(super) fn said_yes(text: &str) -> Option<bool> {
    let text = text.trim().to_lowercase();
    if YES.contains(&text) { Some(true) } else { (text.is_empty() || NO.contains(&text)).then_some(false) }
}

/// Yes or no, in the words of any of these programs.
fn flag(value: &Value) -> Option<bool> {
    match &value.node {
        Node::Flag(said) => Some(*said),
        Node::Text(text) => said_yes(text),
        Node::Nothing | Node::List(_) | Node::Map(_) => None,
    }
}

fn doubt(name: &str, value: &Value) -> Option<(String, String)> {
    let said = match &value.node {
        Node::Flag(said) => said.to_string(),
        Node::Text(text) => text.clone(),
        Node::Nothing | Node::List(_) | Node::Map(_) => "what stands there".to_owned(),
    };
    Some((name.to_owned(), said))
}
