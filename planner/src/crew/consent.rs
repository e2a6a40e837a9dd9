//! Decisions of people about what may run: commands and texts, each by a digest over all that reaches a program.
//!
//! A task runs where a trusted account has agreed to its digest in its plan. In a plan that the same account starts later, the
//! same needs no second decision.

use std::collections::{BTreeMap, BTreeSet};

use crewlog_mq::{Event as MqEvent, Handler, Timestamp};
use serde::{Deserialize, Serialize};

use super::CrewError;
use super::refusal::check_length;
use crate::plan::TaskId;

/// The stream of consents; each aggregate is a project.
pub const STREAM: &str = "consent";
/// The most tasks of one decision.
pub const TASKS_MAX: usize = 20_000;

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
}

/// A task, and the digest of its input.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Agreement {
    /// Its plan.
    pub plan: String,
    /// The task; that of an undo is the task that it undoes.
    pub task: TaskId,
    /// Over all that reaches a program.
    pub digest: String,
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConsentEvent {
    /// An account agrees.
    Agreed {
        /// The account.
        by: String,
        /// Means.
        how: Means,
        /// To these.
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
}

/// The decisions about a project, or about all projects of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Consents(BTreeMap<String, Account>);

impl Consents {
    /// True if one of these accounts has agreed.
    pub fn has<'a>(&self, accounts: impl IntoIterator<Item = &'a String>, wanted: &Agreement) -> bool {
        accounts.into_iter().any(|by| self.0.get(by).is_some_and(|account| account.tasks.contains(wanted)))
    }

    /// When an account agreed to a digest, in any plan.
    #[must_use]
    pub fn remembers(&self, by: &str, digest: &str) -> Option<Timestamp> {
        self.0.get(by)?.remembered.get(digest).copied()
    }
}

impl Handler for Consents {
    type Command = Decide;
    type Event = ConsentEvent;
    type Error = CrewError;

    fn process(&mut self, Decide(mut decision): Decide) -> Result<Vec<ConsentEvent>, CrewError> {
        let is_new = match &mut decision {
            ConsentEvent::Agreed { by, tasks, remembered, .. } => {
                let known = self.0.get(by);
                tasks.retain(|task| known.is_none_or(|account| !account.tasks.contains(task)));
                check_length("a decision", tasks.len(), TASKS_MAX)?;
                !tasks.is_empty() || remembered.iter().any(|digest| self.remembers(by, digest).is_none())
            }
            ConsentEvent::Declined { .. } => true,
        };
        let events: Vec<_> = is_new.then_some(decision).into_iter().collect();
        events.iter().for_each(|event| self.apply(event));
        Ok(events)
    }

    fn apply(&mut self, event: &ConsentEvent) {
        match event {
            ConsentEvent::Agreed { by, tasks, remembered, at, .. } => {
                let account = self.0.entry(by.clone()).or_default();
                account.tasks.extend(tasks.iter().cloned());
                account.remembered.extend(remembered.iter().map(|digest| (digest.clone(), *at)));
            }
            ConsentEvent::Declined { by, forgotten, .. } => {
                let account = self.0.entry(by.clone()).or_default();
                account.remembered.retain(|digest, _| !forgotten.contains(digest));
            }
        }
    }
}

#[cfg(test)]
mod tests;
