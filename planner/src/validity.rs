//! The check that every plan passes, and its errors.

use std::collections::{BTreeMap, HashSet};

use crate::lines::{At, Lines};
use crate::plan::{Dependency, Span, TaskId, TaskPlan};

/// Maximum number of tasks in a plan.
pub const TASKS_MAX: usize = 100_000;

/// Checks a plan from any source: rising ids, unique labels, known dependencies, no cycle.
///
/// # Errors
/// The first violated rule, without a place.
pub fn validate(tasks: &[TaskPlan]) -> Result<(), InvalidPlan> {
    edges_of(tasks).map(drop)
}

/// By index: the dependencies of the tasks of a valid plan, which refer to indexes instead of ids, and their ranks.
///
/// # Errors
/// As of [`validate`].
pub fn edges_of(tasks: &[TaskPlan]) -> Result<(Vec<Vec<Dependency>>, Vec<usize>), InvalidPlan> {
    let nowhere = At::default();
    if tasks.is_empty() {
        return Err(InvalidPlan::EmptyPlan);
    }
    InvalidPlan::check_limit("tasks", tasks.len(), TASKS_MAX)?;
    let mut previous = 0;
    let mut labels = HashSet::new();
    let places = tasks.iter().enumerate().map(|(place, task)| (task.id, place)).collect::<BTreeMap<_, _>>();
    let mut edges = Vec::with_capacity(tasks.len());
    for task in tasks {
        if task.id.0 <= previous {
            return Err(InvalidPlan::IdOrder(task.id.0, previous));
        }
        previous = task.id.0;
        if let Some(label) = &task.label
            && !labels.insert(label.to_lowercase())
        {
            return Err(InvalidPlan::DuplicateId(label.clone(), nowhere, nowhere));
        }
        let mut own = Vec::with_capacity(task.depends_on.len());
        for one in &task.depends_on {
            if one.task == task.id {
                return Err(InvalidPlan::SelfDependency(task.name(), nowhere));
            }
            let place = places.get(&one.task).copied();
            let place = place.ok_or_else(|| InvalidPlan::UnknownId(one.task.to_string(), nowhere))?;
            own.push(Dependency { task: TaskId(place as u64 + 1), ..*one });
        }
        edges.push(own);
    }
    match order(&edges, |_| true) {
        Ok(ranks) => Ok((edges, ranks)),
        Err(circle) => {
            let names = circle.iter().map(|place| tasks[*place].name()).collect();
            Err(InvalidPlan::DependencyCycle(names, nowhere))
        }
    }
}

/// The index of the task that another depends on.
pub fn before(one: &Dependency) -> usize {
    one.task.0 as usize - 1
}

/// The rank of each task in a topological order near the given one; or a cycle, its first task repeated at the end.
pub(crate) fn order(edges: &[Vec<Dependency>], counts: impl Fn(&Dependency) -> bool) -> Result<Vec<usize>, Vec<usize>> {
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

/// The reason why a text or a list of tasks is not a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, strum::IntoStaticStr)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum InvalidPlan {
    #[error("the plan has no tasks; write a list, or sentences that begin with a verb")]
    EmptyPlan,
    /// Names in order of waiting, the first repeated at the end.
    #[error("dependency cycle: {names}{at}; remove one of these dependencies", names = listed(.0, " -> "), at = .1)]
    DependencyCycle(Vec<String>, At),
    #[error("no task is called {0}{1}; name an existing task or remove the dependency")]
    UnknownId(String, At),
    /// The name, and the names that each have one task.
    #[error("{name}{at} is the name of several tasks; write one of {names} instead", name = .0, names = listed(.1, ", "), at = .2)]
    AmbiguousId(String, Vec<String>, At),
    /// The name, and where the second and the first task are.
    #[error("the id {name} is used twice{at}{first}; rename one of the two", name = .0, at = .1, first = first(*.2))]
    DuplicateId(String, At, At),
    #[error("task {0} waits for itself{1}; remove that dependency")]
    SelfDependency(String, At),
    /// The number of a task, and that of the task before it, 0 for the first task.
    #[error("task {0} comes after task {1}; number the tasks in rising order from 1")]
    IdOrder(u64, u64),
    /// The format of another tool, and the problem.
    #[error("this file is not valid {0}: {1}{2}; correct it, or choose another format with --format")]
    BadJson(&'static str, String, At),
    /// The first mark of an unfinished merge.
    #[error("this file has the marks of an unfinished merge{0}; finish it, and remove the marks")]
    Unmerged(At),
    #[error("{value} {limit} are more than {max}; split the plan into several")]
    LimitPassed { limit: &'static str, value: usize, max: usize },
}

/// Names in an error.
const NAMES_MAX: usize = 20;

pub(crate) fn listed(names: &[String], between: &str) -> String {
    let more = if names.len() > NAMES_MAX { between.to_owned() + "..." } else { String::new() };
    names[..names.len().min(NAMES_MAX)].join(between) + &more
}

fn first(at: At) -> String {
    at.0.map_or_else(String::new, |(line, _)| format!(", first on line {line}"))
}

impl InvalidPlan {
    /// The name of the variant, by which programs tell errors apart.
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// Refuses a value that exceeds a limit.
    pub(crate) fn check_limit(limit: &'static str, value: usize, max: usize) -> Result<(), Self> {
        if value > max { Err(Self::LimitPassed { limit, value, max }) } else { Ok(()) }
    }

    /// Refuses a file with the marks of a merge that nobody finished.
    pub(crate) fn check_merged(text: &str) -> Result<(), Self> {
        let mut marks = ["<<<<<<<", "=======", ">>>>>>>"].into_iter().peekable();
        let mut begin = 0;
        for line in text.lines() {
            let is_mark =
                |mark: &&str| line.strip_prefix(*mark).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
            let Some(mark) = marks.next_if(is_mark) else { continue };
            if mark == "<<<<<<<" {
                begin = Span::of(text, line).start;
            }
        }
        if marks.peek().is_none() { Err(Self::Unmerged(Lines::new(text).at(begin))) } else { Ok(()) }
    }

    /// Line and column of the problem, both from 1; `None` if it concerns the whole or there is no text.
    pub const fn place(&self) -> Option<(usize, usize)> {
        match self {
            Self::DependencyCycle(_, at)
            | Self::UnknownId(_, at)
            | Self::AmbiguousId(_, _, at)
            | Self::DuplicateId(_, at, _)
            | Self::SelfDependency(_, at)
            | Self::BadJson(_, _, at)
            | Self::Unmerged(at) => at.0,
            Self::EmptyPlan | Self::IdOrder(..) | Self::LimitPassed { .. } => None,
        }
    }
}

/// The most characters of the name of a position in a plan's history.
pub const CHECKPOINT_CHARS_MAX: usize = 64;

/// True for at most [`CHECKPOINT_CHARS_MAX`] letters, digits, dashes, dots and underscores that are not a number.
pub fn is_checkpoint_name(name: &str) -> bool {
    let is_short = (1..=CHECKPOINT_CHARS_MAX).contains(&name.chars().count());
    let is_plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '.' | '_'));
    let is_number = name.trim_start_matches('-').chars().all(|c| c.is_ascii_digit());
    is_short && is_plain && !is_number
}
