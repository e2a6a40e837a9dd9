//! Drafts to tasks: numbers them, and joins them by what is written and by the order of the text.

use std::collections::HashSet;

use super::built::{self, Built, Odd};
use super::draft;
use super::error::ParseError;
use super::graph::{EDGES_MAX, check_cycle, edge, is_circular, loosen};
use super::names::{Elsewhere, Explicit, Names};
use super::parsed::WARNINGS_MAX;
use super::text::Lines;
use crate::plan::{Dependency, Strength, TaskId, TaskPlan};

/// How many bytes of tasks are searched for words that fit nothing, in one text. Behind that, words may be said twice rather than
/// be lost.
const SEARCHED_BYTES_MAX: usize = 16 << 20;

/// Numbers the drafts and joins them: names first, then the order of the text. What they wait for of the plan that the
/// text is added to is put into `outer`, by their numbers.
pub(super) fn connect(
    built: &mut Built,
    lines: &Lines<'_>,
    relax: bool,
    elsewhere: Option<Elsewhere<'_>>,
    outer: &mut Vec<(TaskId, TaskId)>,
) -> Result<Vec<TaskPlan>, ParseError> {
    for (n, draft) in built.drafts.iter_mut().enumerate() {
        draft.plan.id = TaskId(n as u64 + 1);
    }
    let (mut explicit, waits) = {
        let names = Names::new(built, lines, elsewhere)?;
        let explicit = names.resolve()?;
        let waits = draft::order(&built.steps, &built.drafts, EDGES_MAX);
        let beside = names.beside()?;
        let waits = waits.and_then(|waits| draft::side_by_side(waits, &beside, EDGES_MAX));
        let passed = ParseError::LimitPassed { limit: "dependencies", value: EDGES_MAX + 1, max: EDGES_MAX };
        (explicit, waits.ok_or(passed)?)
    };
    let guesses = explicit.iter().any(|own| !own.guessed.is_empty());
    let guessed: Vec<Vec<usize>> =
        explicit.iter_mut().filter(|_| guesses).map(|own| std::mem::take(&mut own.guessed)).collect();
    let mut given_up = Vec::new();
    let mut edges: Vec<Vec<Dependency>> = Vec::with_capacity(built.drafts.len());
    // What names no other task says nothing.
    let mut silent = Explicit::default();
    for (n, draft) in built.drafts.iter().enumerate() {
        let own = explicit.get_mut(n).unwrap_or(&mut silent);
        outer.extend(own.elsewhere.drain(..).map(|id| (draft.plan.id, id)));
        let n_waits = if own.replaces { 0 } else { waits[n].0.len() };
        let mut all: Vec<Dependency> =
            Vec::with_capacity(own.needs.len() + own.added.len() + draft.questions.len() + n_waits);
        all.extend(own.needs.drain(..).chain(own.added.drain(..)).map(|task| edge(task, Strength::Hard)));
        all.extend(draft.questions.iter().map(|task| edge(*task, Strength::Hard)));
        if !own.replaces {
            let (tasks, strength) = &waits[n];
            let kept = |task: &&usize| own.moved_before.is_none_or(|limit| **task < limit);
            all.extend(tasks.iter().filter(kept).map(|task| edge(*task, *strength)));
            if *strength == Strength::Soft {
                given_up.extend(tasks.iter().filter(|task| !kept(task)).map(|task| (n, *task)));
            }
        }
        if all.len() > 1 {
            all.sort_by_key(|one| (one.task, one.strength));
            all.dedup_by_key(|one| one.task);
        }
        all.retain(|one| one.task.0 != n as u64 + 1);
        edges.push(all);
    }
    given_up.extend(loosen(&mut edges));
    given_up.extend(guess(&mut edges, guessed, &mut explicit));
    warn(built, explicit, &given_up);
    for (draft, mut edges) in built.drafts.iter_mut().zip(edges) {
        if relax {
            edges.retain(|one| one.strength == Strength::Hard);
        }
        draft.plan.depends_on = edges;
    }
    let places: Vec<usize> = built.drafts.iter().map(|draft| draft.at).collect();
    let tasks: Vec<TaskPlan> = std::mem::take(&mut built.drafts).into_iter().map(|draft| draft.plan).collect();
    check_cycle(&tasks, |n| places.get(n).map_or((0, 0), |at| lines.place(*at)))?;
    Ok(tasks)
}

/// Adds what the words of tasks say of later ones, unless tasks would wait for each other in a circle.
///
/// Gives the edges of mere order that went.
fn guess(edges: &mut Vec<Vec<Dependency>>, guessed: Vec<Vec<usize>>, explicit: &mut [Explicit]) -> Vec<(usize, usize)> {
    if guessed.iter().all(Vec::is_empty) {
        return Vec::new();
    }
    let before = edges.clone();
    let mut dropped = Vec::new();
    for (n, tasks) in guessed.into_iter().enumerate().filter(|(_, tasks)| !tasks.is_empty()) {
        let Some(own) = edges.get_mut(n) else { continue };
        // What is written replaces the order of the text.
        let (mut hard, order): (Vec<_>, Vec<_>) = own.drain(..).partition(|one| one.strength == Strength::Hard);
        hard.extend(tasks.iter().map(|task| edge(*task, Strength::Hard)));
        *own = hard;
        // What comes later takes its place in the order.
        for task in tasks {
            let follows = |one: &Dependency| one.strength == Strength::Soft && one.task.0 == n as u64 + 1;
            if let Some(later) = edges.get_mut(task).filter(|later| later.iter().any(follows)) {
                later.retain(|one| !follows(one));
                later.extend(order.iter().cloned());
                dropped.push((task, n));
            }
        }
        let own = &mut edges[n];
        own.sort_by_key(|one| (one.task, one.strength));
        own.dedup_by_key(|one| one.task);
        if let Some(own) = explicit.get_mut(n) {
            own.replaces = true;
        }
    }
    dropped.extend(loosen(edges));
    if is_circular(edges) {
        *edges = before;
        return Vec::new();
    }
    dropped
}

/// Says what no task fits, what cannot be read, and where the order of a list gave way; what was said in words that
/// fit nothing stays with its task.
fn warn(built: &mut Built, explicit: Vec<Explicit>, given_up: &[(usize, usize)]) {
    let mut odd = std::mem::take(&mut built.odd);
    let mut room = SEARCHED_BYTES_MAX;
    let silent = std::iter::repeat_with(Explicit::default);
    for (draft, own) in built.drafts.iter_mut().zip(explicit.into_iter().chain(silent)) {
        odd.extend(draft.unread.drain(..).map(built::unread));
        if own.unmatched.is_empty() {
            continue;
        }
        let noted_bytes = draft.plan.notes.iter().map(String::len).sum::<usize>();
        let (mut n_bytes, mut noted) = (draft.plan.description.len() + noted_bytes, HashSet::new());
        for (at, words) in own.unmatched {
            let message = format!("no task fits \"{words}\", so nothing waits for it");
            odd.push(Odd { at, message, help: "name the task by its id or number, for example (after 2)".into() });
            let plan = &mut draft.plan;
            let is_kept = if n_bytes <= room {
                room -= n_bytes;
                plan.description.contains(&words) || plan.notes.iter().any(|note| note.contains(&words))
            } else {
                noted.contains(&words)
            };
            if is_kept {
                continue;
            }
            n_bytes += words.len();
            noted.insert(words.clone());
            plan.notes.push(words);
        }
    }
    for (n, before) in given_up.iter().take(WARNINGS_MAX) {
        let (Some(draft), Some(other)) = (built.drafts.get(*n), built.drafts.get(*before)) else { continue };
        let (name, other) = (draft.plan.name(), other.plan.name());
        let message = format!("task {name} stands after task {other} in its list, but what is written says otherwise");
        odd.push(Odd { at: draft.at, message, help: "put the items in the order in which they are to be done".into() });
    }
    built.odd = odd;
}
