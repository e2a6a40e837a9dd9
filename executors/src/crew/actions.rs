//! The actions that settle an item of the inbox, as data and as commands.

use serde::Serialize;

use crate::shell::shell_word;

/// An action of a person. Targets are written as on the command line: `a12`, `PLAN`, `PLAN/q1`, `PLAN/TASK`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NeedAction {
    /// Answers a question.
    Answer {
        /// The question.
        question: String,
        /// The answer; the person's own words when unset.
        text: Option<String>,
    },
    /// Grants or refuses what an agent asks permission for.
    Permit {
        /// The question.
        question: String,
        /// True to grant it.
        is_granted: bool,
    },
    /// Continues a plan, a paused task or a parked task.
    Resume {
        /// The plan or the task.
        target: String,
    },
    /// Opens a failed task again.
    Retry {
        /// The task.
        task: String,
    },
    /// Reports that the person has done a task; the result is the person's own words.
    Done {
        /// The task.
        task: String,
    },
    /// Reports that a task cannot be done; the reason is the person's own words.
    Fail {
        /// The task.
        task: String,
    },
    /// Cancels a plan or a task.
    Cancel {
        /// The plan or the task.
        target: String,
    },
    /// Raises a limit of a plan's budget to a number of the person's choice.
    Raise {
        /// The plan.
        plan: String,
        /// The setting.
        key: &'static str,
    },
    /// Lists the open conflicts.
    ListConflicts,
    /// Explains what an agent does.
    Explain {
        /// The agent.
        agent: String,
    },
}

impl NeedAction {
    /// The words after `crewlog`, quoted for a shell. `"..."` stands for the person's own words.
    #[must_use]
    pub fn words(&self) -> String {
        let word = |text: &str| shell_word(text);
        match self {
            Self::Answer { question, text: Some(text) } => format!("answer {} {}", word(question), word(text)),
            Self::Answer { question, text: None } => format!("answer {} \"...\"", word(question)),
            Self::Permit { question, is_granted: true } => format!("answer {} allow", word(question)),
            Self::Permit { question, is_granted: false } => format!("answer {} deny", word(question)),
            Self::Resume { target } => format!("resume {}", word(target)),
            Self::Retry { task } => format!("retry {}", word(task)),
            Self::Done { task } => format!("task done {} \"...\"", word(task)),
            Self::Fail { task } => format!("task fail {} \"...\"", word(task)),
            Self::Cancel { target } => format!("cancel {}", word(target)),
            Self::Raise { plan, key } => format!("plan set {} {key}=...", word(plan)),
            Self::ListConflicts => "leases --conflicts".to_owned(),
            Self::Explain { agent } => format!("why {}", word(agent)),
        }
    }
}
