//! Names of tasks to the tasks themselves.

use std::borrow::Cow;
use std::collections::HashMap;

use super::built::Built;
use super::draft::{Draft, Reference};
use super::error::ParseError;
use super::graph::EDGES_MAX;
use super::phrases::{self, Words, list, words};
use super::text::{Lines, find_early};
use super::{conditions, references, vocabulary, waits};
use crate::plan::TaskId;

/// Verbs that say nothing of what a task is about.
static GENERAL_VERBS: Words =
    Words::new(|| list("run|execute|make|do|add|create|write|update|get|set|use|start|perform|check|change|fix"));

/// The tasks of a name that the text has for nothing that is a task.
const NOBODY: (usize, usize) = (usize::MAX, 0);

pub(super) struct Names<'a> {
    pub(super) built: &'a Built<'a>,
    pub(super) labels: HashMap<Cow<'a, str>, (usize, usize)>,
    /// Words before a colon at the start of a task: "Migrate: move the data".
    pub(super) heads: HashMap<String, (usize, usize)>,
    /// Titles of groups, from their first task to their last.
    pub(super) groups: HashMap<String, (usize, usize)>,
    /// Some task, or a line, names another.
    named: bool,
    /// Some task has a label or such a word.
    pub(super) has_names: bool,
    /// Some task has a label such as `#12`.
    has_tickets: bool,
    pub(super) numbers: HashMap<(usize, &'a str), (usize, usize)>,
    pub(super) first_numbers: HashMap<&'a str, (usize, usize)>,
    /// For each word the drafts that have it, at most 64.
    pub(super) index: HashMap<String, Vec<usize>>,
    /// The verbs of the drafts, when there is an index.
    verbs: Vec<Option<String>>,
    pub(super) lines: &'a Lines<'a>,
    /// The tasks of the plan that the text is added to, by their names.
    elsewhere: Option<Elsewhere<'a>>,
}

/// The names that the condition of a draft asks about: "T3 fails".
fn tested(draft: &Draft) -> impl Iterator<Item = String> {
    let condition = draft.plan.condition.as_ref();
    let names = condition.and_then(|condition| conditions::tested(&condition.text, draft.at)).unwrap_or_default();
    names.into_iter().filter_map(|name| match name {
        Reference::Name(name, _) => Some(name),
        Reference::Range(..) | Reference::Phrase(..) | Reference::Word(..) => None,
        Reference::Previous | Reference::Above | Reference::Both => None,
    })
}

/// Finds the task of a plan that has a name.
pub(super) type Elsewhere<'a> = &'a dyn Fn(&str) -> Option<TaskId>;

/// What the words of a draft and of others say about its place.
#[derive(Debug, Default, Clone)]
pub(super) struct Explicit {
    pub(super) needs: Vec<usize>,
    /// The same of the plan that the text is added to.
    pub(super) elsewhere: Vec<TaskId>,
    /// Edges that others gave it; they replace nothing.
    pub(super) added: Vec<usize>,
    pub(super) replaces: bool,
    /// Later tasks that its words fit; they give way where they close a circle.
    pub(super) guessed: Vec<usize>,
    /// Words that fit no task, and where they stand.
    pub(super) unmatched: Vec<(usize, String)>,
    /// It comes before this draft, whatever the order of the text says.
    pub(super) moved_before: Option<usize>,
}

impl<'a> Names<'a> {
    pub(super) fn new(
        built: &'a Built<'a>,
        lines: &'a Lines<'a>,
        elsewhere: Option<Elsewhere<'a>>,
    ) -> Result<Self, ParseError> {
        let mut names = Self {
            built,
            labels: HashMap::new(),
            heads: HashMap::new(),
            groups: HashMap::new(),
            named: false,
            has_names: false,
            has_tickets: false,
            numbers: HashMap::new(),
            first_numbers: HashMap::new(),
            index: HashMap::new(),
            verbs: Vec::new(),
            lines,
            elsewhere,
        };
        let references = |draft: &'a Draft| {
            let inherited = draft.inherited.iter().flat_map(|needs| needs.iter());
            draft.needs.iter().flatten().chain(&draft.before).chain(inherited)
        };
        let apart = built.chains.is_empty() && built.beside.is_empty();
        let named = |draft| references(draft).next().is_some() || tested(draft).next().is_some();
        names.named = !apart || built.drafts.iter().any(named);
        // Labels that rise, as written ones do, are no two the same.
        if !names.named && rise(built) {
            return Ok(names);
        }
        names.read_labels()?;
        if !names.named {
            return Ok(names);
        }
        for (n, draft) in built.drafts.iter().enumerate() {
            if let Some(head) = head(&draft.plan.description) {
                names.heads.entry(head.to_lowercase()).or_insert((n, n + 1));
            }
            if let Some(title) = &draft.plan.group {
                names.call_group(title.to_lowercase(), n);
            }
        }
        names.has_names = !names.labels.is_empty() || !names.heads.is_empty();
        for name in &built.names {
            let range = (name.first, name.end);
            match name.list {
                Some(list) => {
                    names.numbers.entry((list, &*name.text)).or_insert(range);
                    names.first_numbers.entry(&*name.text).or_insert(range);
                }
                None => drop(names.labels.entry(name.text.to_lowercase().into()).or_insert(range)),
            }
        }
        names.has_tickets = names.labels.keys().any(|label| label.starts_with('#'));
        let described = |reference| matches!(reference, &Reference::Phrase(..) | &Reference::Word(..));
        let chained = || built.chains.iter().flat_map(|chain| chain.first.iter().chain(&chain.then)).any(described);
        if built.drafts.iter().any(|draft| references(draft).any(described)) || chained() {
            for (n, draft) in built.drafts.iter().enumerate() {
                let text = &draft.plan.description;
                let verb = words(vocabulary::instruction(text)).next();
                names.verbs.push(verb.map(|verb| stem(&verb).to_owned()));
                for word in content_words(text) {
                    match names.index.get_mut(&word) {
                        Some(tasks) if tasks.len() < 64 => tasks.push(n),
                        Some(_) => {}
                        None => drop(names.index.insert(word, vec![n])),
                    }
                }
            }
        }
        Ok(names)
    }

    fn read_labels(&mut self) -> Result<(), ParseError> {
        let (built, lines) = (self.built, self.lines);
        self.labels.reserve(built.drafts.iter().filter(|draft| draft.plan.label.is_some()).count());
        for (n, draft) in built.drafts.iter().enumerate() {
            if let Some(label) = &draft.plan.label
                && let Some((first, _)) = self.labels.insert(phrases::lower(label), (n, n + 1))
            {
                let (line, column) = lines.place(draft.at);
                let first_line = built.drafts.get(first).map_or(0, |first| lines.place(first.at).0);
                return Err(ParseError::DuplicateId { id: label.clone(), line, column, first_line });
            }
        }
        Ok(())
    }

    /// Draft `n` stands in a group; "Research (2d)" is also called "Research".
    fn call_group(&mut self, title: String, n: usize) {
        let short = title.split(['(', ',']).next().unwrap_or("").trim_end();
        if short.len() < title.len() {
            self.groups.entry(short.to_owned()).or_insert((n, n + 1)).1 = n + 1;
        }
        self.groups.entry(title).or_insert((n, n + 1)).1 = n + 1;
    }

    /// What each draft says of others; nothing at all where none says anything, not even that it waits for nothing.
    pub(super) fn resolve(&self) -> Result<Vec<Explicit>, ParseError> {
        if !self.named && self.built.drafts.iter().all(|draft| draft.needs.is_none()) {
            return Ok(Vec::new());
        }
        let mut all: Vec<Explicit> = std::iter::repeat_with(Explicit::default).take(self.built.drafts.len()).collect();
        let mut n_edges = 0;
        for (n, draft) in self.built.drafts.iter().enumerate() {
            if let Some(needs) = &draft.needs {
                let mut known = needs.is_empty();
                for reference in needs {
                    if let Some(ids) = self.find_elsewhere(n, draft, reference)? {
                        count_edges(&mut n_edges, ids.len())?;
                        known |= !ids.is_empty();
                        all[n].elsewhere.extend(ids);
                        continue;
                    }
                    let found = self.find(n, draft, reference, false)?;
                    if found.is_empty()
                        && let Some((first, end)) = self.find(n, draft, reference, true)?.iter().next()
                    {
                        all[n].guessed.extend(first..end);
                        continue;
                    }
                    all[n].unmatched.extend(unmatched(reference, found.is_empty()));
                    known |= !found.is_empty();
                    count(&mut n_edges, &found)?;
                    found.iter().for_each(|(first, end)| all[n].needs.extend(first..end));
                }
                all[n].replaces = known;
            }
            // What is read already was found with the condition.
            let later = tested(draft).filter_map(|name| self.named(draft, &name)).filter(|(first, _)| *first > n);
            all[n].guessed.extend(later.flat_map(|(first, end)| first..end));
            for reference in draft.inherited.iter().flat_map(|needs| needs.iter()) {
                let found = self.find(n, draft, reference, false)?;
                count(&mut n_edges, &found)?;
                found.iter().for_each(|(first, end)| all[n].added.extend(first..end));
            }
            for reference in &draft.before {
                let found = self.find(n, draft, reference, true)?;
                all[n].unmatched.extend(unmatched(reference, found.is_empty()));
                for (first, end) in found.iter() {
                    let moved = all[n].moved_before.map_or(first, |old| old.min(first));
                    all[n].moved_before = Some(moved);
                    for other in all.iter_mut().take(end).skip(first) {
                        other.added.push(n);
                    }
                }
            }
        }
        self.resolve_chains(&mut all, &mut n_edges)?;
        Ok(all)
    }

    fn resolve_chains(&self, all: &mut [Explicit], n_edges: &mut usize) -> Result<(), ParseError> {
        for chain in &self.built.chains {
            let first = self.set(&chain.first, chain.lenient)?;
            let then = self.set(&chain.then, chain.lenient)?;
            count_edges(n_edges, first.len().saturating_mul(then.len()))?;
            for task in then.iter().filter(|_| !first.is_empty()) {
                all[*task].replaces = true;
                all[*task].needs.extend(first.iter().filter(|one| *one != task));
            }
        }
        Ok(())
    }

    /// The drafts that may run side by side, as sets in the order of the text.
    pub(super) fn beside(&self) -> Result<Vec<Vec<usize>>, ParseError> {
        self.built.beside.iter().map(|(names, lenient)| self.set(names, *lenient)).collect()
    }

    /// The drafts that some references name, each once, in their order. Of lenient ones the unknown name nothing.
    fn set(&self, names: &[Reference], lenient: bool) -> Result<Vec<usize>, ParseError> {
        let none = Draft::new(crate::plan::NodeKind::Processing, String::new(), 0);
        let (mut set, mut n_named) = (Vec::new(), 0);
        for name in names {
            let found = match self.find(usize::MAX, &none, name, false) {
                Err(ParseError::UnknownId { .. } | ParseError::UnknownAnywhere { .. }) if lenient => continue,
                found => found?,
            };
            count(&mut n_named, &found)?;
            set.extend(found.iter().flat_map(|(first, end)| first..end.min(self.built.drafts.len())));
        }
        set.sort_unstable();
        set.dedup();
        Ok(set)
    }

    /// The tasks of the plan that a reference names; nothing where it names one of the text. A task never means itself, and a
    /// number by which the text only could call a task that it does not name is no name: where the plan has such a task too,
    /// nobody can tell.
    fn find_elsewhere(
        &self,
        n: usize,
        draft: &Draft,
        reference: &Reference,
    ) -> Result<Option<Vec<TaskId>>, ParseError> {
        let Some(elsewhere) = self.elsewhere else { return Ok(None) };
        let is_other = |range: &(usize, usize)| *range != (n, n + 1) && *range != NOBODY;
        let one = |name: &str, at: usize| {
            let Some(id) = elsewhere(name) else { return Ok(None) };
            if self.written(draft, name).filter(is_other).is_some() {
                return Ok(None);
            }
            if self.placed(name).filter(is_other).is_some_and(|(place, _)| !self.has_name(place)) {
                let (line, column) = self.lines.place(at);
                return Err(ParseError::AmbiguousId { id: name.to_owned(), line, column });
            }
            Ok(Some(id))
        };
        match reference {
            Reference::Name(name, at) => Ok(one(name, *at)?.map(|id| vec![id])),
            Reference::Range(first, last, at) => {
                let (Some(first), Some(last)) = (one(first, *at)?, one(last, *at)?) else { return Ok(None) };
                let ids = first.0.min(last.0)..=last.0.max(first.0);
                Ok(Some(ids.take(EDGES_MAX).filter_map(|id| elsewhere(&id.to_string())).collect()))
            }
            Reference::Phrase(name, _) | Reference::Word(name, _) => {
                let is_here = self.called(n, &name.to_lowercase()).is_some();
                Ok(elsewhere(name).filter(|_| !is_here).map(|id| vec![id]))
            }
            Reference::Previous | Reference::Both | Reference::Above => Ok(None),
        }
    }

    /// The drafts that a reference names, as ranges.
    fn find(&self, n: usize, draft: &Draft, reference: &Reference, forward: bool) -> Result<Ranges, ParseError> {
        match reference {
            Reference::Previous => Ok(Ranges::from(n.checked_sub(1).map(|before| (before, n)))),
            Reference::Both => Ok(Ranges::one((n.saturating_sub(2), n.min(self.built.drafts.len())))),
            Reference::Above => Ok(Ranges::one((0, n.min(self.built.drafts.len())))),
            Reference::Name(name, at) => match self.named(draft, name) {
                Some((first, end)) if (first..end).contains(&n) => {
                    let (line, column) = self.lines.place(*at);
                    if end - first > 1 {
                        Ok(Ranges::one((first, n)))
                    } else {
                        Err(ParseError::SelfDependency { id: name.clone(), line, column })
                    }
                }
                Some(range) => Ok(Ranges::one(range)),
                None => match self.mentioned(n, name) {
                    Some(task) => Ok(Ranges::one((task, task + 1))),
                    None => Err(self.unknown(name, *at)),
                },
            },
            Reference::Range(first, last, at) => {
                let from = self.named(draft, first).ok_or_else(|| self.unknown(first, *at))?;
                let to = self.named(draft, last).ok_or_else(|| self.unknown(last, *at))?;
                if (from.0..to.1).contains(&n) {
                    let (line, column) = self.lines.place(*at);
                    return Err(ParseError::SelfDependency { id: draft.plan.name(), line, column });
                }
                Ok(Ranges::one((from.0.min(to.0), to.1.max(from.1))))
            }
            Reference::Phrase(text, at) | Reference::Word(text, at) => {
                let lower = text.to_lowercase();
                let called = [lower.as_str(), waits::undone(&lower)].into_iter().find_map(|name| self.called(n, name));
                // A single letter can be the name of an item, as its number can.
                let letter = || self.written(draft, &lower).filter(|_| is_letter(&lower)).filter(|one| *one != NOBODY);
                if let Some((first, end)) = called.or_else(letter) {
                    return match (first..end).contains(&n) {
                        true if end - first > 1 => Ok(Ranges::one((first, n))),
                        true => {
                            let (line, column) = self.lines.place(*at);
                            Err(ParseError::SelfDependency { id: text.clone(), line, column })
                        }
                        false => Ok(Ranges::one((first, end))),
                    };
                }
                if matches!(reference, Reference::Word(..)) && self.has_names {
                    return Err(self.unknown(text, *at));
                }
                if let Some((one, other)) = self.both(n, text).filter(|_| !forward) {
                    let range = |task: usize| Some((task, task + 1));
                    return Ok(Ranges([range(one.min(other)), range(one.max(other))]));
                }
                let end = self.built.drafts.len();
                if forward && n + 1 < end && references::is_all_that_follows(text) {
                    return Ok(Ranges::one((n + 1, end)));
                }
                Ok(Ranges::from(self.described(n, text, forward).map(|task| (task, task + 1))))
            }
        }
    }

    /// A label, a word before a colon, the title of a group; in lower case.
    fn called(&self, n: usize, name: &str) -> Option<(usize, usize)> {
        let around = |range: &&(usize, usize)| (range.0..range.1).contains(&n);
        let group = self.groups.get(name).filter(|range| !around(range));
        let range = self.labels.get(name).or_else(|| self.heads.get(name)).or(group);
        range.copied().filter(|(first, end)| first < end)
    }

    /// The one task beside `n` that speaks of a ticket, as in "Fix the crash #123".
    fn mentioned(&self, n: usize, number: &str) -> Option<usize> {
        if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let ticket = format!("#{number}");
        let speaks = |text: &str| {
            text.match_indices(&ticket)
                .any(|(at, _)| !text[at + ticket.len()..].starts_with(|c: char| c.is_alphanumeric()))
        };
        let drafts = self.built.drafts.iter().enumerate();
        let mut found = drafts.filter(|(task, draft)| *task != n && speaks(&draft.plan.description));
        let only = found.next().filter(|_| found.next().is_none());
        only.map(|(task, _)| task)
    }

    fn unknown(&self, name: &str, at: usize) -> ParseError {
        let ((line, column), id) = (self.lines.place(at), name.to_owned());
        match self.elsewhere {
            None => ParseError::UnknownId { id, line, column },
            Some(_) => ParseError::UnknownAnywhere { id, line, column },
        }
    }

    /// A label, a number of the same list, a number of any list, the number of a task.
    fn named(&self, draft: &Draft, name: &str) -> Option<(usize, usize)> {
        self.written(draft, name).or_else(|| self.placed(name)).filter(|range| *range != NOBODY)
    }

    /// What the text itself calls so, or [`NOBODY`].
    fn written(&self, draft: &Draft, name: &str) -> Option<(usize, usize)> {
        if let Some(range) = self.labelled(name) {
            return Some(range);
        }
        let lower = name.to_ascii_lowercase();
        if let Some(range) = self.has_tickets.then(|| self.labels.get(&*format!("#{lower}"))).flatten() {
            return Some(*range);
        }
        let own = draft.list.and_then(|list| self.numbers.get(&(list, lower.as_str())));
        if let Some(range) = own.or_else(|| self.first_numbers.get(lower.as_str())) {
            return Some(Some(*range).filter(|(first, end)| first < end).unwrap_or(NOBODY));
        }
        let (above, own) = name.rsplit_once('.')?;
        Some(self.named(draft, above).and_then(|above| self.under(above, own)).unwrap_or(NOBODY))
    }

    /// True of a task to which the text gives a number or a label.
    fn has_name(&self, place: usize) -> bool {
        let from = self.built.names.partition_point(|name| name.first < place);
        let mut here = self.built.names[from..].iter().take_while(|name| name.first == place);
        here.any(|name| name.end == place + 1)
            || self.built.drafts.get(place).is_some_and(|draft| draft.plan.label.is_some())
    }

    /// The task at a place of the text, by its number.
    fn placed(&self, name: &str) -> Option<(usize, usize)> {
        let number: usize = name.parse().ok()?;
        let any = number.checked_sub(1).filter(|n| *n < self.built.drafts.len())?;
        Some((any, any + 1))
    }

    /// The task with a label, however its letters are written.
    fn labelled(&self, name: &str) -> Option<(usize, usize)> {
        let mut lower = [0; 32];
        match lower.get_mut(..name.len()).filter(|_| name.is_ascii()) {
            Some(lower) => {
                lower.copy_from_slice(name.as_bytes());
                lower.make_ascii_lowercase();
                self.labels.get(std::str::from_utf8(lower).ok()?).copied()
            }
            None => self.labels.get(&*phrases::lower(name)).copied(),
        }
    }

    /// The item with a number among those under another: the `1` of `2.1`.
    fn under(&self, (first, end): (usize, usize), number: &str) -> Option<(usize, usize)> {
        let from = self.built.names.partition_point(|name| name.first < first);
        let inside = self.built.names[from..].iter().take_while(|name| name.first < end);
        let mut own =
            inside.filter(|name| name.text == number && name.end <= end && name.end - name.first < end - first);
        own.next().map(|name| (name.first, name.end))
    }

    /// The two tasks that "the frontend and the backend" names.
    fn both(&self, n: usize, text: &str) -> Option<(usize, usize)> {
        let (one, other) = text.split_once(" and ").filter(|(_, other)| !other.contains(" and "))?;
        let (one, other) = (self.described(n, one, false)?, self.described(n, other, false)?);
        (one != other).then_some((one, other))
    }

    /// The task whose words fit a description best, before `n` unless `forward`.
    fn described(&self, n: usize, text: &str, forward: bool) -> Option<usize> {
        let wanted = content_words(text);
        let mut scores: HashMap<usize, usize> = HashMap::new();
        for word in &wanted {
            for task in self.index.get(word).into_iter().flatten().filter(|task| **task != n && (forward || **task < n))
            {
                *scores.entry(*task).or_default() += 1;
            }
        }
        // Of tasks that fit as well, the one that does what is named, then the nearest.
        let does =
            |task: usize| self.verbs.get(task).and_then(Option::as_ref).is_some_and(|verb| wanted.contains(verb));
        let near = |task: usize| std::cmp::Reverse(task.abs_diff(n));
        let (task, score) = scores
            .into_iter()
            .max_by_key(|(task, score)| (*score, does(*task), near(*task), std::cmp::Reverse(*task)))?;
        // That both run something is no likeness.
        let alike = wanted.len() < 2 || score > 1 || !self.only_acts_alike(task, &wanted);
        (alike && score * 2 >= wanted.len()).then_some(task)
    }

    /// True when all that a task has of some words is a verb that fits everything.
    fn only_acts_alike(&self, task: usize, wanted: &[String]) -> bool {
        let verb = self.verbs.get(task).and_then(Option::as_ref);
        verb.is_some_and(|verb| wanted.contains(verb) && GENERAL_VERBS.iter().any(|general| stem(general) == verb))
    }
}

/// True when each label comes after the one before it, however their letters are written.
fn rise(built: &Built) -> bool {
    let mut labels = built.drafts.iter().filter_map(|draft| draft.plan.label.as_deref());
    let mut last = "";
    labels.all(|label| {
        let lower = |byte: u8| byte.to_ascii_lowercase();
        let rises = label.is_ascii() && last.bytes().map(lower).lt(label.bytes().map(lower));
        last = label;
        rises
    })
}

/// The tasks that a reference names: none, those of one range, or of two.
struct Ranges([Option<(usize, usize)>; 2]);

impl Ranges {
    fn one(range: (usize, usize)) -> Self {
        Self([Some(range), None])
    }

    fn from(range: Option<(usize, usize)>) -> Self {
        Self([range, None])
    }

    fn is_empty(&self) -> bool {
        self.0[0].is_none()
    }

    fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        self.0.iter().flatten().copied()
    }
}

fn count(n_edges: &mut usize, found: &Ranges) -> Result<(), ParseError> {
    count_edges(n_edges, found.iter().map(|(first, end)| end.saturating_sub(first)).sum())
}

fn count_edges(n_edges: &mut usize, more: usize) -> Result<(), ParseError> {
    *n_edges = n_edges.saturating_add(more);
    if *n_edges > EDGES_MAX {
        return Err(ParseError::LimitPassed { limit: "dependencies", value: *n_edges, max: EDGES_MAX });
    }
    Ok(())
}

fn is_letter(name: &str) -> bool {
    matches!(name.as_bytes(), [b'a'..=b'z'])
}

/// The words of a description that fits no task.
fn unmatched(reference: &Reference, none: bool) -> Option<(usize, String)> {
    match reference {
        Reference::Phrase(words, at) | Reference::Word(words, at) if none => Some((*at, words.clone())),
        Reference::Phrase(..)
        | Reference::Word(..)
        | Reference::Name(..)
        | Reference::Range(..)
        | Reference::Previous
        | Reference::Above
        | Reference::Both => None,
    }
}

/// The word before a colon at the start of a text.
fn head(text: &str) -> Option<&str> {
    let colon = find_early(text, b':', 33)?;
    let (word, rest) = (&text[..colon], &text[colon + 1..]);
    let fits = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    (fits && rest.starts_with(' ')).then_some(word)
}

/// The words that say what a text is about, without their endings.
fn content_words(text: &str) -> Vec<String> {
    static IDLE: Words = Words::new(|| {
        list(
            "the|a|an|is|are|be|been|was|it|to|of|in|on|and|or|for|with|has|have|all|that|this|done|complete|\
         completed|finished|ready|pass|passes|passed|you|we|they|i|by|at|from|your|our|my|any|merged|step|\
         task|up|into|over|works|work|monday|tuesday|wednesday|thursday|friday|saturday|sunday|today|\
         tomorrow|week|month|noon",
        )
    });
    let mut found: Vec<String> =
        words(text).take(64).filter(|word| !IDLE.contains(word)).map(|word| stem(&word).to_owned()).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn stem(word: &str) -> &str {
    let word = match word {
        "built" => "build",
        "written" | "wrote" => "write",
        "sent" => "send",
        "ran" => "run",
        "chosen" => "choose",
        "made" => "make",
        regular => regular,
    };
    let endings = [
        "ations", "ating", "ation", "ated", "ates", "ate", "ions", "ings", "ments", "ion", "ing", "ment", "ed", "es",
        "is", "s", "e",
    ];
    let short = endings
        .iter()
        .find_map(|ending| word.strip_suffix(ending).filter(|rest| rest.chars().count() >= 3))
        .unwrap_or(word);
    let doubled =
        short.len() > 3 && short.as_bytes()[short.len() - 1] == short.as_bytes()[short.len() - 2] && short.is_ascii();
    if doubled { &short[..short.len() - 1] } else { short }
}
