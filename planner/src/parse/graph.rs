//! The graph of a plan: an order that its dependencies allow, and the check that every plan passes.

use std::collections::{BTreeMap, HashSet};

use super::tree::{At, ParseError, TASKS_MAX};
use crate::plan::{Dependency, Strength, TaskId, TaskPlan};

/// The check that every plan passes, whoever proposed it.
///
/// Ids rise, labels are unique, dependencies name tasks of the plan, no task waits for itself, and no tasks wait for
/// each other in a circle.
///
/// # Errors
///
/// The first of these rules that does not hold, without a place.
pub fn validate(tasks: &[TaskPlan]) -> Result<(), ParseError> {
    let nowhere = At::default();
    if tasks.is_empty() {
        return Err(ParseError::EmptyPlan);
    }
    if tasks.len() > TASKS_MAX {
        return Err(ParseError::LimitPassed { limit: "tasks", value: tasks.len(), max: TASKS_MAX });
    }
    let mut previous = 0;
    let mut labels = HashSet::new();
    let places = tasks.iter().enumerate().map(|(place, task)| (task.id, place)).collect::<BTreeMap<_, _>>();
    let mut edges = Vec::with_capacity(tasks.len());
    for task in tasks {
        if task.id.0 <= previous {
            return Err(ParseError::IdOrder(task.id.0, previous));
        }
        previous = task.id.0;
        if let Some(label) = &task.label
            && !labels.insert(label.to_lowercase())
        {
            return Err(ParseError::DuplicateId(label.clone(), nowhere, nowhere));
        }
        let mut own = Vec::with_capacity(task.depends_on.len());
        for one in &task.depends_on {
            if one.task == task.id {
                return Err(ParseError::SelfDependency(task.name(), nowhere));
            }
            let place = places.get(&one.task).copied();
            let place = place.ok_or_else(|| ParseError::UnknownId(one.task.to_string(), nowhere))?;
            own.push(Dependency { task: TaskId(place as u64 + 1), ..*one });
        }
        edges.push(own);
    }
    let circle = order(&edges, |_| true).map(|_| ());
    circle.map_err(|circle| {
        ParseError::DependencyCycle(circle.iter().map(|place| tasks[*place].name()).collect(), nowhere)
    })
}

/// Drops the edges of mere order that the others contradict: a task that an earlier one waits for comes before that one.
/// The tasks between the two follow each other, so that nothing comes before what was written before it. Edges are by
/// number less one.
///
/// # Errors
///
/// A circle of the other edges, its first task repeated at the end.
pub(super) fn loosen(edges: &mut [Vec<Dependency>]) -> Result<(), Vec<usize>> {
    if edges.iter().enumerate().all(|(place, own)| own.iter().all(|one| before(one) < place)) {
        return Ok(());
    }
    let ranks = order(edges, |one| one.strength == Strength::Hard)?;
    let mut tasks = (0..edges.len()).collect::<Vec<_>>();
    tasks.sort_unstable_by_key(|place| ranks[*place]);
    // By rank: the first and the last rank of the chain around it. A chain reaches from a task to what it cannot follow.
    let mut chains: Vec<(usize, usize)> = Vec::with_capacity(tasks.len());
    let (mut first, mut last) = (0, 0);
    for (rank, place) in tasks.iter().enumerate() {
        if rank > last {
            chains[first..].fill((first, last));
            first = rank;
        }
        last = edges[*place].iter().map(|one| ranks[before(one)]).fold(last.max(rank), usize::max);
        chains.push((first, last));
    }
    chains[first..].fill((first, last));
    let soft = |rank: usize| Dependency { task: TaskId(tasks[rank] as u64 + 1), strength: Strength::Soft };
    let old = edges.iter_mut().map(std::mem::take).collect::<Vec<_>>();
    for (place, own) in old.into_iter().enumerate() {
        let (first, last) = chains[ranks[place]];
        for one in own {
            let rank = ranks[before(&one)];
            if one.strength == Strength::Hard {
                edges[place].push(one);
            } else if rank < first {
                edges[if first < last { tasks[first] } else { place }].push(soft(chains[rank].1));
            }
        }
        edges[place].extend((ranks[place] > first).then(|| soft(ranks[place] - 1)));
    }
    for own in edges {
        own.sort_unstable();
        own.dedup_by_key(|one| one.task);
    }
    Ok(())
}

/// The place of a task that another waits for.
fn before(one: &Dependency) -> usize {
    one.task.0 as usize - 1
}

/// The rank of each task in an order in which all that it waits for comes before it, as near to the given one as that
/// goes; or a circle, its first task repeated at the end.
fn order(edges: &[Vec<Dependency>], counts: impl Fn(&Dependency) -> bool) -> Result<Vec<usize>, Vec<usize>> {
    const OPEN: usize = usize::MAX;
    let mut ranks = vec![None; edges.len()];
    let mut n_ranked = 0;
    let mut path: Vec<(usize, usize)> = Vec::new();
    for root in 0..edges.len() {
        path.extend(ranks[root].is_none().then_some((root, 0)));
        while let Some((task, next)) = path.last_mut() {
            ranks[*task].get_or_insert(OPEN);
            let Some(one) = edges[*task].get(*next) else {
                ranks[*task] = Some(n_ranked);
                n_ranked += 1;
                path.pop();
                continue;
            };
            *next += 1;
            let to = before(one);
            match ranks[to].filter(|_| counts(one)) {
                Some(OPEN) => {
                    let mut circle =
                        path.iter().map(|(task, _)| *task).skip_while(|task| *task != to).collect::<Vec<_>>();
                    let first = circle.iter().enumerate().min_by_key(|(_, task)| **task).map_or(0, |(at, _)| at);
                    circle.rotate_left(first);
                    circle.push(circle[0]);
                    return Err(circle);
                }
                None if counts(one) => path.push((to, 0)),
                Some(_) | None => {}
            }
        }
    }
    Ok(ranks.into_iter().flatten().collect())
}
