//! Names to edges, and the check that a plan's graph is sound.

use std::collections::HashMap;

use super::ParseError;
use super::build::Built;
use super::draft::{self, Draft, Reference};
use super::text::{Lines, words};
use super::{references, vocabulary};
use crate::plan::{Dependency, Strength, TaskId, TaskPlan};

/// At most so many dependencies in a plan.
pub const EDGES_MAX: usize = 2_000_000;

/// Reads the `A -> B` lines of a text; each chain has two names or more.
pub(super) fn chains(text: &str, source: impl Fn(usize) -> usize) -> Vec<Vec<Reference>> {
    let mut found = Vec::new();
    let mut from = 0;
    for line in text.split_inclusive(['\n', ';']) {
        let mut chain = Vec::new();
        let mut at = from;
        from += line.len();
        let arrows = line.replace('\u{2192}', "->").replace("=>", "->");
        let parts: Vec<&str> = arrows.split("->").collect();
        for part in &parts {
            let plain = part.trim().trim_end_matches(['.', ';', ',']);
            let plain = plain.rsplit(": ").next().unwrap_or(plain);
            match references::prefix(plain, source(at)) {
                Some((names, length)) if plain[length..].trim().is_empty() => chain.push(names),
                Some(_) | None => return Vec::new(),
            }
            at += part.len();
        }
        if parts.len() < 2 {
            return Vec::new();
        }
        for pair in chain.windows(2) {
            let [left, right] = pair else { continue };
            for one in left {
                found.extend(right.iter().map(|other| vec![one.clone(), other.clone()]));
            }
        }
    }
    found
}

/// True for a line that begins like `T001 -> T002`.
pub(super) fn begins_chain(line: &str) -> bool {
    let rest = references::prefix(line, 0).and_then(|(_, length)| line.get(length..)).map(str::trim_start);
    rest.is_some_and(|rest| ["->", "=>", "\u{2192}"].iter().any(|arrow| rest.starts_with(arrow)))
}

struct Names<'a> {
    built: &'a Built,
    labels: HashMap<String, (usize, usize)>,
    numbers: HashMap<(usize, &'a str), (usize, usize)>,
    first_numbers: HashMap<&'a str, (usize, usize)>,
    /// For each word the drafts that have it, at most 64.
    index: HashMap<String, Vec<usize>>,
    lines: &'a Lines<'a>,
}

/// Numbers the drafts and joins them: names first, then the order of the text.
pub(super) fn connect(mut built: Built, lines: &Lines<'_>, relax: bool) -> Result<Vec<TaskPlan>, ParseError> {
    for (n, draft) in built.drafts.iter_mut().enumerate() {
        draft.plan.id = TaskId(n as u64 + 1);
    }
    let (mut explicit, waits) = {
        let names = Names::new(&built, lines)?;
        let explicit = names.resolve()?;
        let waits = draft::order(&built.steps, &built.drafts, EDGES_MAX).ok_or(ParseError::LimitPassed {
            limit: "dependencies",
            value: EDGES_MAX + 1,
            max: EDGES_MAX,
        })?;
        (explicit, waits)
    };
    let mut edges: Vec<Vec<Dependency>> = Vec::with_capacity(built.drafts.len());
    for (n, draft) in built.drafts.iter().enumerate() {
        let own = &mut explicit[n];
        let mut all: Vec<Dependency> =
            own.needs.drain(..).chain(own.added.drain(..)).map(|task| edge(task, Strength::Hard)).collect();
        all.extend(draft.questions.iter().map(|task| edge(*task, Strength::Hard)));
        if !own.replaces {
            let (tasks, strength) = &waits[n];
            let kept = tasks.iter().filter(|task| own.moved_before.is_none_or(|limit| **task < limit));
            all.extend(kept.map(|task| edge(*task, *strength)));
        }
        all.sort_by_key(|one| (one.task, one.strength));
        all.dedup_by_key(|one| one.task);
        all.retain(|one| one.task.0 != n as u64 + 1);
        edges.push(all);
    }
    loosen(&mut edges);
    for (draft, mut edges) in built.drafts.iter_mut().zip(edges) {
        if relax {
            edges.retain(|one| one.strength == Strength::Hard);
        }
        draft.plan.depends_on = edges;
    }
    let places: Vec<usize> = built.drafts.iter().map(|draft| draft.at).collect();
    let tasks: Vec<TaskPlan> = built.drafts.into_iter().map(|draft| draft.plan).collect();
    check_cycle(&tasks, |n| places.get(n).map_or((0, 0), |at| lines.place(*at)))?;
    Ok(tasks)
}

fn edge(task: usize, strength: Strength) -> Dependency {
    Dependency { task: TaskId(task as u64 + 1), strength }
}

/// What the words of a draft and of others say about its place.
#[derive(Debug, Default, Clone)]
struct Explicit {
    needs: Vec<usize>,
    /// Edges that others gave it; they replace nothing.
    added: Vec<usize>,
    replaces: bool,
    /// It comes before this draft, whatever the order of the text says.
    moved_before: Option<usize>,
}

impl<'a> Names<'a> {
    fn new(built: &'a Built, lines: &'a Lines<'a>) -> Result<Self, ParseError> {
        let mut names = Self {
            built,
            labels: HashMap::new(),
            numbers: HashMap::new(),
            first_numbers: HashMap::new(),
            index: HashMap::new(),
            lines,
        };
        for (n, draft) in built.drafts.iter().enumerate() {
            if let Some(label) = &draft.plan.label
                && let Some((first, _)) = names.labels.insert(label.to_lowercase(), (n, n + 1))
            {
                let (line, column) = lines.place(draft.at);
                let first_line = built.drafts.get(first).map_or(0, |first| lines.place(first.at).0);
                return Err(ParseError::DuplicateId { id: label.clone(), line, column, first_line });
            }
        }
        for name in &built.names {
            let range = (name.first, name.end);
            match name.list {
                Some(list) => {
                    names.numbers.entry((list, name.text.as_str())).or_insert(range);
                    names.first_numbers.entry(name.text.as_str()).or_insert(range);
                }
                None => drop(names.labels.entry(name.text.to_lowercase()).or_insert(range)),
            }
        }
        if built
            .drafts
            .iter()
            .any(|draft| draft.needs.iter().flatten().chain(&draft.before).any(|r| matches!(r, Reference::Phrase(..))))
        {
            for (n, draft) in built.drafts.iter().enumerate() {
                for word in content_words(&draft.plan.description) {
                    let tasks = names.index.entry(word).or_default();
                    if tasks.len() < 64 && tasks.last() != Some(&n) {
                        tasks.push(n);
                    }
                }
            }
        }
        Ok(names)
    }

    fn resolve(&self) -> Result<Vec<Explicit>, ParseError> {
        let mut all = vec![Explicit::default(); self.built.drafts.len()];
        let mut n_edges = 0;
        for (n, draft) in self.built.drafts.iter().enumerate() {
            if let Some(needs) = &draft.needs {
                let mut known = needs.is_empty();
                for reference in needs {
                    for (first, end) in self.find(n, draft, reference, false)? {
                        known = true;
                        n_edges += end - first;
                        if n_edges > EDGES_MAX {
                            return Err(ParseError::LimitPassed {
                                limit: "dependencies",
                                value: n_edges,
                                max: EDGES_MAX,
                            });
                        }
                        all[n].needs.extend(first..end);
                    }
                }
                all[n].replaces = known;
            }
            for reference in &draft.before {
                for (first, end) in self.find(n, draft, reference, true)? {
                    let moved = all[n].moved_before.map_or(first, |old| old.min(first));
                    all[n].moved_before = Some(moved);
                    for other in all.iter_mut().take(end).skip(first) {
                        other.added.push(n);
                    }
                }
            }
        }
        self.resolve_chains(&mut all)?;
        Ok(all)
    }

    fn resolve_chains(&self, all: &mut [Explicit]) -> Result<(), ParseError> {
        for chain in &self.built.chains {
            let [left, right] = chain.as_slice() else { continue };
            let anchor = usize::MAX;
            let none = Draft::new(crate::plan::NodeKind::Processing, String::new(), 0);
            let lefts = self.find(anchor, &none, left, false)?;
            for (first, end) in self.find(anchor, &none, right, false)? {
                for task in first..end.min(all.len()) {
                    all[task].replaces = true;
                    all[task].needs.extend(lefts.iter().flat_map(|(from, to)| *from..*to).filter(|one| *one != task));
                }
            }
        }
        Ok(())
    }

    /// The drafts that a reference names, as ranges.
    fn find(
        &self,
        n: usize,
        draft: &Draft,
        reference: &Reference,
        forward: bool,
    ) -> Result<Vec<(usize, usize)>, ParseError> {
        match reference {
            Reference::Previous => Ok(n.checked_sub(1).map(|before| (before, n)).into_iter().collect()),
            Reference::Both => Ok(vec![(n.saturating_sub(2), n.min(self.built.drafts.len()))]),
            Reference::Above => Ok(vec![(0, n.min(self.built.drafts.len()))]),
            Reference::Name(name, at) => match self.named(draft, name) {
                Some((first, end)) if (first..end).contains(&n) => {
                    let (line, column) = self.lines.place(*at);
                    if end - first > 1 {
                        Ok(vec![(first, n)])
                    } else {
                        Err(ParseError::SelfDependency { id: name.clone(), line, column })
                    }
                }
                Some(range) => Ok(vec![range]),
                None => Err(self.unknown(name, *at)),
            },
            Reference::Range(first, last, at) => {
                let from = self.named(draft, first).ok_or_else(|| self.unknown(first, *at))?;
                let to = self.named(draft, last).ok_or_else(|| self.unknown(last, *at))?;
                if (from.0..to.1).contains(&n) {
                    let (line, column) = self.lines.place(*at);
                    return Err(ParseError::SelfDependency { id: draft.plan.name(), line, column });
                }
                Ok(vec![(from.0.min(to.0), to.1.max(from.1))])
            }
            Reference::Phrase(text, at) => {
                if let Some(range) = self.labels.get(&text.to_lowercase()) {
                    return if range.0 == n {
                        let (line, column) = self.lines.place(*at);
                        Err(ParseError::SelfDependency { id: text.clone(), line, column })
                    } else {
                        Ok(vec![*range])
                    };
                }
                Ok(self.described(n, text, forward).map(|task| (task, task + 1)).into_iter().collect())
            }
        }
    }

    fn unknown(&self, name: &str, at: usize) -> ParseError {
        let (line, column) = self.lines.place(at);
        ParseError::UnknownId { id: name.to_owned(), line, column }
    }

    /// A label, a number of the same list, a number of any list, the number of a task.
    fn named(&self, draft: &Draft, name: &str) -> Option<(usize, usize)> {
        if let Some(range) = self.labels.get(&name.to_lowercase()) {
            return Some(*range);
        }
        let lower = name.to_ascii_lowercase();
        let own = draft.list.and_then(|list| self.numbers.get(&(list, lower.as_str())));
        if let Some(range) = own.or_else(|| self.first_numbers.get(lower.as_str())) {
            return Some(*range).filter(|(first, end)| first < end);
        }
        let number: usize = name.parse().ok()?;
        let any = number.checked_sub(1).filter(|n| *n < self.built.drafts.len())?;
        Some((any, any + 1))
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
        let does = |task: usize| {
            let text = self.built.drafts.get(task).map_or("", |draft| draft.plan.description.as_str());
            words(vocabulary::instruction(text)).next().is_some_and(|verb| wanted.contains(&stem(&verb)))
        };
        let near = |task: usize| std::cmp::Reverse(task.abs_diff(n));
        let (task, score) = scores
            .into_iter()
            .max_by_key(|(task, score)| (*score, does(*task), near(*task), std::cmp::Reverse(*task)))?;
        (score * 2 >= wanted.len()).then_some(task)
    }
}

/// The words that say what a text is about, without their endings.
fn content_words(text: &str) -> Vec<String> {
    const IDLE: &[&str] = &[
        "the",
        "a",
        "an",
        "is",
        "are",
        "be",
        "been",
        "was",
        "it",
        "to",
        "of",
        "in",
        "on",
        "and",
        "or",
        "for",
        "with",
        "has",
        "have",
        "all",
        "that",
        "this",
        "done",
        "complete",
        "completed",
        "finished",
        "ready",
        "pass",
        "passes",
        "passed",
        "you",
        "we",
        "they",
        "i",
        "by",
        "at",
        "from",
        "your",
        "our",
        "my",
        "any",
        "merged",
        "step",
        "task",
        "up",
        "into",
        "over",
        "works",
        "work",
    ];
    let mut found: Vec<String> =
        words(text).take(64).filter(|word| !IDLE.contains(&word.as_str())).map(|word| stem(&word)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn stem(word: &str) -> String {
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
    if doubled { short[..short.len() - 1].to_owned() } else { short.to_owned() }
}

/// Drops the edges of mere order that contradict written ones.
///
/// A task that an earlier one waits for loses its own edges of order first; only when that does not help do all
/// edges of order in the circle go.
fn loosen(edges: &mut [Vec<Dependency>]) {
    let loops = components(edges);
    if loops.is_empty() {
        return;
    }
    let mut circle = vec![usize::MAX; edges.len()];
    for (n, members) in loops.iter().enumerate() {
        members.iter().for_each(|task| circle[*task] = n);
    }
    let mut moved = vec![false; edges.len()];
    for (n, own) in edges.iter().enumerate() {
        for one in own.iter().filter(|one| one.strength == Strength::Hard) {
            let to = one.task.0 as usize - 1;
            moved[to] |= to > n && circle[to] == circle[n] && circle[n] != usize::MAX;
        }
    }
    let drop_soft = |edges: &mut [Vec<Dependency>], circle: &[usize], only: &dyn Fn(usize) -> bool| {
        for (n, own) in edges.iter_mut().enumerate().filter(|(n, _)| circle[*n] != usize::MAX && only(*n)) {
            own.retain(|one| one.strength == Strength::Hard || circle[one.task.0 as usize - 1] != circle[n]);
        }
    };
    drop_soft(edges, &circle, &|n| moved[n]);
    let left = components(edges);
    let mut circle = vec![usize::MAX; edges.len()];
    for (n, members) in left.iter().enumerate() {
        members.iter().for_each(|task| circle[*task] = n);
    }
    drop_soft(edges, &circle, &|_| true);
}

/// The strongly connected components of two tasks or more, without recursion.
fn components(edges: &[Vec<Dependency>]) -> Vec<Vec<usize>> {
    let n_tasks = edges.len();
    let mut order = vec![usize::MAX; n_tasks];
    let mut low = vec![0; n_tasks];
    let mut held = vec![false; n_tasks];
    let mut stack = Vec::new();
    let mut found = Vec::new();
    let mut count = 0;
    let mut calls: Vec<(usize, usize)> = Vec::new();
    for root in 0..n_tasks {
        if order[root] == usize::MAX {
            calls.push((root, 0));
        }
        while let Some((task, next)) = calls.pop() {
            if next == 0 {
                order[task] = count;
                low[task] = count;
                count += 1;
                stack.push(task);
                held[task] = true;
            }
            let to = edges[task].get(next).map(|one| one.task.0 as usize - 1).filter(|to| *to < n_tasks);
            match to {
                Some(to) if order[to] == usize::MAX => {
                    calls.push((task, next + 1));
                    calls.push((to, 0));
                    continue;
                }
                Some(to) => {
                    if held[to] {
                        low[task] = low[task].min(order[to]);
                    }
                    calls.push((task, next + 1));
                    continue;
                }
                None => {}
            }
            if low[task] == order[task] {
                let from = stack.iter().rposition(|member| *member == task).unwrap_or(0);
                let members = stack.split_off(from);
                members.iter().for_each(|member| held[*member] = false);
                if members.len() > 1 || edges[task].iter().any(|one| one.task.0 as usize == task + 1) {
                    found.push(members);
                }
            }
            if let Some((parent, _)) = calls.last() {
                low[*parent] = low[*parent].min(low[task]);
            }
        }
    }
    found
}

/// Finds a circle and names it.
fn check_cycle(tasks: &[TaskPlan], place: impl Fn(usize) -> (usize, usize)) -> Result<(), ParseError> {
    let position: HashMap<TaskId, usize> = tasks.iter().enumerate().map(|(n, task)| (task.id, n)).collect();
    let edges: Vec<Vec<Dependency>> = tasks
        .iter()
        .map(|task| {
            task.depends_on.iter().filter_map(|one| position.get(&one.task).map(|n| edge(*n, one.strength))).collect()
        })
        .collect();
    let Some(members) = components(&edges).into_iter().min_by_key(|members| members.iter().min().copied()) else {
        return Ok(());
    };
    let start = members.iter().min().copied().unwrap_or(0);
    let path = circle(&edges, start, &members);
    let name = |n: &usize| tasks.get(*n).map_or_else(String::new, TaskPlan::name);
    let (line, column) = place(start);
    Err(ParseError::DependencyCycle { cycle: path.iter().map(name).collect(), line, column })
}

/// A shortest way from a task back to itself along its dependencies.
fn circle(edges: &[Vec<Dependency>], start: usize, members: &[usize]) -> Vec<usize> {
    let inside: std::collections::HashSet<usize> = members.iter().copied().collect();
    let mut from: HashMap<usize, usize> = HashMap::new();
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(task) = queue.pop_front() {
        for to in edges[task].iter().map(|one| one.task.0 as usize - 1).filter(|to| inside.contains(to)) {
            if to == start {
                let mut path = vec![start, task];
                let mut at = task;
                while let Some(before) = from.get(&at).filter(|_| at != start) {
                    path.push(*before);
                    at = *before;
                }
                path.dedup();
                path.reverse();
                if path.first() != Some(&start) {
                    path.insert(0, start);
                }
                return path;
            }
            if let std::collections::hash_map::Entry::Vacant(slot) = from.entry(to) {
                slot.insert(task);
                queue.push_back(to);
            }
        }
    }
    vec![start, start]
}

/// The check that every plan passes, whoever proposed it.
///
/// Ids rise, labels are unique, dependencies name tasks of the plan, no task waits for itself, and no tasks wait for
/// each other in a circle. Lines and columns in errors are 0.
///
/// # Errors
///
/// The first of these rules that does not hold.
pub fn validate(tasks: &[TaskPlan]) -> Result<(), ParseError> {
    if tasks.is_empty() {
        return Err(ParseError::EmptyPlan);
    }
    if tasks.len() > super::TASKS_MAX {
        return Err(ParseError::LimitPassed { limit: "tasks", value: tasks.len(), max: super::TASKS_MAX });
    }
    let mut previous = 0;
    let mut labels = std::collections::HashSet::new();
    let ids: std::collections::HashSet<TaskId> = tasks.iter().map(|task| task.id).collect();
    for task in tasks {
        if task.id.0 <= previous {
            return Err(ParseError::IdOrder { id: task.id.0, previous });
        }
        previous = task.id.0;
        if let Some(label) = &task.label
            && !labels.insert(label.to_lowercase())
        {
            return Err(ParseError::DuplicateId { id: label.clone(), line: 0, column: 0, first_line: 0 });
        }
        for one in &task.depends_on {
            if one.task == task.id {
                return Err(ParseError::SelfDependency { id: task.name(), line: 0, column: 0 });
            }
            if !ids.contains(&one.task) {
                return Err(ParseError::UnknownId { id: one.task.to_string(), line: 0, column: 0 });
            }
        }
    }
    check_cycle(tasks, |_| (0, 0))
}
