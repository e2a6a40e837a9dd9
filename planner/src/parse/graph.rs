//! The graph of a plan: circles in it, and the check that every plan passes.

use std::collections::{HashMap, HashSet};

use super::tree::{ParseError, TASKS_MAX};
use crate::plan::{Dependency, Strength, TaskId, TaskPlan};

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
    if tasks.len() > TASKS_MAX {
        return Err(ParseError::LimitPassed { limit: "tasks", value: tasks.len(), max: TASKS_MAX });
    }
    let mut previous = 0;
    let mut labels = HashSet::new();
    let ids: HashSet<TaskId> = tasks.iter().map(|task| task.id).collect();
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

/// Drops the edges of mere order that would close a circle. What waits for a step that lost one takes it over, so that
/// nothing comes before what was written before it.
pub(super) fn hand_on(edges: &mut [Vec<Dependency>]) {
    let circle = components(edges).into_iter().flatten().collect::<HashSet<_>>();
    let mut lost: HashMap<usize, Vec<usize>> = HashMap::new();
    for (waiting, before) in loosen(edges) {
        lost.entry(waiting).or_default().push(before);
    }
    if lost.is_empty() {
        return;
    }
    for (place, own) in edges.iter_mut().enumerate().filter(|(place, _)| !circle.contains(place)) {
        let taken = own.iter().filter(|one| one.strength == Strength::Soft);
        let taken = taken.flat_map(|one| lost.get(&(one.task.0 as usize - 1)).into_iter().flatten());
        let taken =
            taken.filter(|before| **before != place).map(|before| TaskId(*before as u64 + 1)).collect::<Vec<_>>();
        own.extend(taken.into_iter().map(|task| Dependency { task, strength: Strength::Soft }));
        own.sort_unstable();
        own.dedup_by_key(|one| one.task);
    }
}

/// Drops the edges of mere order that contradict written ones.
///
/// A task that an earlier one waits for loses its own edges of order first; only when that does not help do all
/// edges of order in the circle go. Gives the edges that went, as task and what it waited for.
fn loosen(edges: &mut [Vec<Dependency>]) -> Vec<(usize, usize)> {
    let loops = components(edges);
    let mut dropped = Vec::new();
    if loops.is_empty() {
        return dropped;
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
    let mut drop_soft = |edges: &mut [Vec<Dependency>], circle: &[usize], only: &dyn Fn(usize) -> bool| {
        for (n, own) in edges.iter_mut().enumerate().filter(|(n, _)| circle[*n] != usize::MAX && only(*n)) {
            own.retain(|one| {
                let to = one.task.0 as usize - 1;
                let kept = one.strength == Strength::Hard || circle[to] != circle[n];
                dropped.extend((!kept).then_some((n, to)));
                kept
            });
        }
    };
    drop_soft(edges, &circle, &|n| moved[n]);
    let left = components(edges);
    let mut circle = vec![usize::MAX; edges.len()];
    for (n, members) in left.iter().enumerate() {
        members.iter().for_each(|task| circle[*task] = n);
    }
    drop_soft(edges, &circle, &|_| true);
    dropped
}

/// The strongly connected components of two tasks or more, without recursion.
fn components(edges: &[Vec<Dependency>]) -> Vec<Vec<usize>> {
    let n_tasks = edges.len();
    // Where everything waits for earlier tasks only, there is no circle.
    if edges.iter().enumerate().all(|(n, own)| own.iter().all(|one| one.task.0 as usize <= n)) {
        return Vec::new();
    }
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

/// Finds a circle among tasks whose ids rise, and names it.
pub(super) fn check_cycle(tasks: &[TaskPlan], place: impl Fn(usize) -> (usize, usize)) -> Result<(), ParseError> {
    let position = |id: TaskId| {
        let near = usize::try_from(id.0).ok()?.checked_sub(1)?;
        let numbered = tasks.get(near).is_some_and(|task| task.id == id);
        if numbered { Some(near) } else { tasks.binary_search_by_key(&id, |task| task.id).ok() }
    };
    // Where everything waits for earlier tasks only, there is no circle.
    if tasks.iter().all(|task| task.depends_on.iter().all(|one| one.task < task.id)) {
        return Ok(());
    }
    let edges: Vec<Vec<Dependency>> = tasks
        .iter()
        .map(|task| task.depends_on.iter().filter_map(|one| Some(edge(position(one.task)?, one.strength))).collect())
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
    let inside: HashSet<usize> = members.iter().copied().collect();
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

fn edge(task: usize, strength: Strength) -> Dependency {
    Dependency { task: TaskId(task as u64 + 1), strength }
}
