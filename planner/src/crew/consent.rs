//! Decisions of people about what may run: commands and texts, each by a digest over all that reaches a program.
//!
//! A task runs where a trusted account has agreed to its digest in its plan. In a plan that the same account starts later, the
//! same needs no second decision. A grant lets tasks of agents run that are not known yet; each that does is an agreement, which
//! names the grant.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};

use crewlog_mq::{Event as MqEvent, Handler, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::CrewError;
use super::refusal::check_length;
use crate::plan::{Dependency, Strength, TaskId, TaskPlan};
use crate::state::{PlannerState, Task};

/// The stream of consents; each aggregate is a project.
pub const STREAM: &str = "consent";
/// The most tasks of one decision.
pub const TASKS_MAX: usize = 20_000;
/// The most open grants of one account.
pub const GRANTS_MAX: usize = 100;

/// Means a person decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Means {
    /// By an answer on a terminal.
    Answer,
    /// By `--yes`, or `yes` over HTTP.
    Yes,
    /// By an order that itself names the command, or by an earlier decision about the same one.
    Order,
    /// With the task whose text is the plan.
    Parent,
    /// By a grant.
    Grant,
}

/// A permission for tasks that are not known yet, which only a person gives.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Its name.
    pub id: String,
    /// The repository, or the folder without one, in which the tasks run.
    pub folder: String,
    /// The tasks.
    pub covers: Cover,
    /// The most tasks.
    pub max: Option<u64>,
    /// When it ends, in log time.
    pub until: Option<Timestamp>,
}

/// The tasks of a grant.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cover {
    /// Commands of these words. A `*` stands for one word, at the end for any number.
    Commands(Vec<String>),
    /// Texts for an executor.
    Texts {
        /// The executor.
        executor: String,
        /// In this plan and its sub-plans; in all, if absent.
        plan: Option<String>,
    },
}

/// The characters of a command that no shell treats in a special way.
const PLAIN: &str = "-_./:=@%+,";

impl Grant {
    /// True if it is for this command, or for the text of this executor. Where it runs is another question.
    #[must_use]
    pub fn covers(&self, plan: &str, executor: &str, command: Option<&str>) -> bool {
        command.map_or_else(|| self.covers.has_text(plan, executor), |command| self.covers.has_command(command))
    }
}

impl Display for Grant {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match &self.covers {
            Cover::Commands(words) => write!(to, "{} runs", words.join(" "))?,
            Cover::Texts { executor, plan: None } => write!(to, "new tasks for @{executor} run")?,
            Cover::Texts { executor, plan: Some(plan) } => write!(to, "new tasks for @{executor} in {plan} run")?,
        }
        write!(to, " in {}", self.folder.strip_suffix("/.git").unwrap_or(&self.folder))?;
        self.max.map_or(Ok(()), |max| write!(to, ", at most {max} tasks"))
    }
}

impl Cover {
    /// Commands that begin with a known word.
    ///
    /// # Errors
    /// [`CrewError::Invalid`] for words that no command could match, or that would match every program.
    pub fn commands(words: &str) -> Result<Self, CrewError> {
        let words: Vec<_> = words.split_whitespace().map(str::to_owned).collect();
        let is_known = |word: &String| word == "*" || is_plain(word);
        match words.first() {
            None => Err(CrewError::Invalid("a grant needs the words of a command".into())),
            Some(first) if first == "*" => {
                Err(CrewError::Invalid("a grant names its program: its first word is not *".into()))
            }
            Some(_) if !words.iter().all(is_known) => Err(CrewError::Invalid(format!(
                "the words of a grant have letters, digits and {PLAIN}, or are a single *: a shell could read others as more \
                 than words"
            ))),
            Some(_) => Ok(Self::Commands(words)),
        }
    }

    fn has_command(&self, command: &str) -> bool {
        let Self::Commands(known) = self else { return false };
        let words: Vec<_> = command.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
        let (known, is_open) = match known.split_last() {
            Some((last, before)) if last == "*" => (before, true),
            _ => (&known[..], false),
        };
        let has_length = words.len() == known.len() || (is_open && words.len() > known.len());
        has_length
            && words.iter().all(|word| is_plain(word))
            && known.iter().zip(&words).all(|(known, word)| known == "*" || known == word)
    }

    fn has_text(&self, of_plan: &str, by: &str) -> bool {
        let Self::Texts { executor, plan } = self else { return false };
        let is_below = |plan: &String| {
            of_plan.strip_prefix(&**plan).is_some_and(|below| below.is_empty() || below.starts_with('.'))
        };
        executor.eq_ignore_ascii_case(by) && plan.as_ref().is_none_or(is_below)
    }
}

/// True for a word that a shell takes as it is, whatever stands around it.
pub fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || PLAIN.contains(c))
}

/// The tasks whose agreements end with an order: it changes their input or takes away a dependency. A new name, executor or
/// priority ends none, nor does another dependency.
#[must_use]
pub fn changed(before: &PlannerState, after: &PlannerState) -> BTreeSet<TaskId> {
    let is_changed = |known: &&Task| {
        let Some(now) = after.task(known.plan.id).filter(|now| now.plan != known.plan) else { return false };
        let free = now.plan.clone();
        let same = TaskPlan {
            label: free.label,
            mark: free.mark,
            depends_on: free.depends_on,
            group: free.group,
            priority: free.priority,
            assignee: free.assignee,
            estimate_ms: free.estimate_ms,
            spans: free.spans,
            ..known.plan.clone()
        };
        same != now.plan || !known.plan.depends_on.iter().all(|on| waits(after, now, on))
    };
    before.tasks.iter().filter(is_changed).map(|task| task.plan.id).collect()
}

/// True if a task waits for another, also through others, at least as strictly.
fn waits(state: &PlannerState, task: &Task, on: &Dependency) -> bool {
    let (mut looked_at, mut to_look_at) = (BTreeSet::new(), vec![task]);
    while let Some(task) = to_look_at.pop() {
        let strict = |one: &&Dependency| on.strength == Strength::Soft || one.strength == Strength::Hard;
        for one in task.plan.depends_on.iter().filter(strict).filter(|one| looked_at.insert(one.task)) {
            if one.task == on.task {
                return true;
            }
            to_look_at.extend(state.task(one.task));
        }
    }
    false
}

/// A task, and the digest of its input.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Agreement {
    /// Its plan.
    pub plan: String,
    /// The task; that of an undo is the task that it undoes.
    pub task: TaskId,
    /// Over all that reaches a program.
    pub digest: String,
}

/// Agreements as JSON: by their plans, each as a task and a digest.
mod by_plan {
    use super::*;

    pub(super) fn serialize<S: Serializer>(tasks: &[Agreement], to: S) -> Result<S::Ok, S::Error> {
        let mut plans: BTreeMap<&str, Vec<(TaskId, &str)>> = BTreeMap::new();
        for Agreement { plan, task, digest } in tasks {
            plans.entry(plan).or_default().push((*task, digest));
        }
        plans.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Agreement>, D::Error> {
        let plans = BTreeMap::<String, Vec<(TaskId, String)>>::deserialize(from)?;
        let of = |(plan, tasks): (String, Vec<(TaskId, String)>)| {
            tasks.into_iter().map(move |(task, digest)| Agreement { plan: plan.clone(), task, digest })
        };
        Ok(plans.into_iter().flat_map(of).collect())
    }
}

/// A decision.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConsentEvent {
    /// An account agrees.
    Agreed {
        /// The account.
        by: String,
        /// Means.
        how: Means,
        /// The grant that it rests on.
        grant: Option<String>,
        /// To these.
        #[serde(with = "by_plan")]
        tasks: Vec<Agreement>,
        /// The digests that count again in other plans of the account: in them a folder is relative to its worktree.
        remembered: BTreeSet<String>,
        /// When, in log time.
        at: Timestamp,
    },
    /// An account refuses, and its earlier agreement is remembered no more.
    Declined {
        /// The account.
        by: String,
        /// The digests that are no longer remembered.
        forgotten: BTreeSet<String>,
        /// When, in log time.
        at: Timestamp,
    },
    /// Agreements to these tasks end: somebody other than a person is about to change them.
    Withdrawn {
        /// The account.
        by: String,
        /// The plan.
        plan: String,
        /// Its tasks.
        tasks: BTreeSet<TaskId>,
        /// When, in log time.
        at: Timestamp,
    },
    /// An account gives a grant.
    Granted {
        /// The account.
        by: String,
        /// The grant.
        grant: Grant,
        /// When, in log time.
        at: Timestamp,
    },
    /// A grant ends.
    Revoked {
        /// The account that gave it.
        by: String,
        /// The grant.
        grant: String,
        /// When, in log time.
        at: Timestamp,
    },
}

impl MqEvent for ConsentEvent {}

/// A command to the consents of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decide(pub ConsentEvent);

/// The decisions of one account.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Account {
    tasks: BTreeSet<Agreement>,
    remembered: BTreeMap<String, Timestamp>,
    grants: BTreeMap<String, (Grant, u64)>,
}

/// The decisions about a project, or about all projects of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Consents {
    accounts: BTreeMap<String, Account>,
    /// How often the agreements to a task ended, by plan and task.
    n_withdrawn: BTreeMap<(String, TaskId), u64>,
}

impl Consents {
    /// True if one of these accounts has agreed.
    pub fn has<'a>(&self, accounts: impl IntoIterator<Item = &'a String>, wanted: &Agreement) -> bool {
        accounts.into_iter().any(|by| self.accounts.get(by).is_some_and(|account| account.tasks.contains(wanted)))
    }

    /// How often the agreements to a task ended. A person who looked at it before the last time has not seen its present form.
    pub fn n_withdrawn(&self, plan: &str, task: TaskId) -> u64 {
        self.n_withdrawn.get(&(plan.to_owned(), task)).copied().unwrap_or_default()
    }

    /// The tasks among these to which somebody has agreed.
    pub fn agreed<'a>(&'a self, of: &'a str, tasks: &'a BTreeSet<TaskId>) -> impl Iterator<Item = TaskId> {
        let agreed = self.accounts.values().flat_map(|account| &account.tasks);
        agreed.filter(move |wanted| wanted.plan == of && tasks.contains(&wanted.task)).map(|wanted| wanted.task)
    }

    /// The grants of an account that are not used up and have not ended, with the tasks that rest on each.
    pub fn grants(&self, by: &str, now: Timestamp) -> impl Iterator<Item = (&Grant, u64)> {
        let grants = self.accounts.get(by).into_iter().flat_map(|account| account.grants.values());
        let is_open = move |(grant, n_used): &(&Grant, u64)| {
            grant.max.is_none_or(|max| *n_used < max) && grant.until.is_none_or(|until| now < until)
        };
        grants.map(|(grant, n_used)| (grant, *n_used)).filter(is_open)
    }

    /// When an account agreed to a digest, in any plan.
    #[must_use]
    pub fn remembers(&self, by: &str, digest: &str) -> Option<Timestamp> {
        self.accounts.get(by)?.remembered.get(digest).copied()
    }
}

impl Handler for Consents {
    type Command = Decide;
    type Event = ConsentEvent;
    type Error = CrewError;

    fn decide(&self, Decide(mut decision): Decide) -> Result<Vec<ConsentEvent>, CrewError> {
        let is_new = match &mut decision {
            ConsentEvent::Agreed { by, grant, tasks, remembered, at, .. } => {
                // A person's decision is kept as it is: an agreement that is known may have come with an import.
                let known = self.accounts.get(by).filter(|_| grant.is_some());
                tasks.retain(|task| known.is_none_or(|account| !account.tasks.contains(task)));
                check_length("a decision", tasks.len(), TASKS_MAX)?;
                if let Some(id) = grant.as_ref().filter(|_| !tasks.is_empty()) {
                    let open = self.grants(by, *at).find(|(grant, _)| grant.id == *id);
                    let (grant, n_used) = open.ok_or_else(|| CrewError::Closed(format!("grant {id} has ended")))?;
                    if grant.max.is_some_and(|max| n_used + tasks.len() as u64 > max) {
                        return Err(CrewError::Closed(format!("grant {id} is used up")));
                    }
                }
                !tasks.is_empty() || remembered.iter().any(|digest| self.remembers(by, digest).is_none())
            }
            ConsentEvent::Declined { .. } | ConsentEvent::Withdrawn { .. } => true,
            ConsentEvent::Granted { by, at, .. } => {
                let n_open = self.grants(by, *at).count();
                check_length("the grants of an account", n_open + 1, GRANTS_MAX)?;
                true
            }
            ConsentEvent::Revoked { by, grant, .. } => {
                let is_known = self.accounts.get(by).is_some_and(|account| account.grants.contains_key(grant));
                if !is_known {
                    return Err(CrewError::Missing(format!("there is no grant {grant} of {by}")));
                }
                true
            }
        };
        Ok(is_new.then_some(decision).into_iter().collect())
    }

    fn apply(&mut self, event: &ConsentEvent) {
        match event {
            ConsentEvent::Agreed { by, grant, tasks, remembered, at, .. } => {
                let account = self.accounts.entry(by.clone()).or_default();
                if let Some((_, n_used)) = grant.as_ref().and_then(|id| account.grants.get_mut(id)) {
                    *n_used += tasks.len() as u64;
                }
                account.tasks.extend(tasks.iter().cloned());
                account.remembered.extend(remembered.iter().map(|digest| (digest.clone(), *at)));
            }
            ConsentEvent::Declined { by, forgotten, .. } => {
                let account = self.accounts.entry(by.clone()).or_default();
                account.remembered.retain(|digest, _| !forgotten.contains(digest));
            }
            ConsentEvent::Withdrawn { plan, tasks, .. } => {
                let is_left = |known: &Agreement| known.plan != *plan || !tasks.contains(&known.task);
                self.accounts.values_mut().for_each(|account| account.tasks.retain(is_left));
                tasks.iter().for_each(|task| *self.n_withdrawn.entry((plan.clone(), *task)).or_default() += 1);
            }
            ConsentEvent::Granted { by, grant, .. } => {
                self.accounts.entry(by.clone()).or_default().grants.insert(grant.id.clone(), (grant.clone(), 0));
            }
            ConsentEvent::Revoked { by, grant, .. } => {
                self.accounts.entry(by.clone()).or_default().grants.remove(grant);
            }
        }
    }
}

#[cfg(test)]
mod tests;
