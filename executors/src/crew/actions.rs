//! The actions that settle an item of the inbox, as data and as commands.

use serde::{Deserialize, Serialize};

use crate::shell::shell_word;

/// Stands for the person's own words in an action.
pub const OWN_WORDS: &str = "...";

/// An action of a person. Its JSON is what every face executes, once the person's own words replace [`OWN_WORDS`].
/// Targets are written as on the command line: `a12`, `PLAN`, `PLAN/q1`, `PLAN/TASK`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub enum NeedAction {
    /// Answers a question; grants or refuses a permission with the words allow and deny.
    Answer {
        /// The question.
        question: String,
        /// The answer.
        text: String,
    },
    /// Continues a plan, a paused task or a parked task.
    Resume {
        /// The plan or the task.
        target: String,
    },
    /// Agrees to what a task runs, as it was shown.
    Agree {
        /// The task.
        target: String,
        /// The digests of the inputs that were shown.
        seen: Vec<String>,
    },
    /// Opens a failed task again.
    Retry {
        /// The task.
        target: String,
    },
    /// Reports that the person has done a task.
    TaskDone {
        /// The task.
        task: String,
        /// The result.
        result: String,
    },
    /// Reports that a task cannot be done.
    TaskFail {
        /// The task.
        task: String,
        /// The reason.
        error: String,
    },
    /// Cancels a plan or a task.
    Cancel {
        /// The plan or the task.
        target: String,
    },
    /// Raises a limit of a plan's budget.
    PlanSet {
        /// The plan.
        plan: String,
        /// `KEY=VALUE`.
        settings: Vec<String>,
    },
    /// Ends leases of agents.
    EndLeases {
        /// Their numbers.
        leases: Vec<u64>,
        /// Why.
        reason: String,
    },
    /// Sends a reminder to agents.
    Send {
        /// The agents.
        to: Vec<String>,
        /// The subject.
        subject: String,
    },
}

impl NeedAction {
    /// The words after `crewlog`, quoted for a shell. `"..."` stands for the person's own words.
    #[must_use]
    pub fn words(&self) -> String {
        let word = |text: &str| if text == OWN_WORDS { format!("\"{OWN_WORDS}\"") } else { shell_word(text) };
        let list = |texts: &[String]| texts.iter().map(|text| shell_word(text)).collect::<Vec<_>>().join(" ");
        match self {
            Self::Answer { question, text } => format!("answer {} {}", word(question), word(text)),
            Self::Resume { target } => format!("resume {}", word(target)),
            Self::Agree { target, .. } => format!("agree {}", word(target)),
            Self::Retry { target } => format!("retry {}", word(target)),
            Self::TaskDone { task, result } => format!("task done {} {}", word(task), word(result)),
            Self::TaskFail { task, error } => format!("task fail {} {}", word(task), word(error)),
            Self::Cancel { target } => format!("cancel {}", word(target)),
            Self::PlanSet { plan, settings } => format!("plan set {} {}", word(plan), list(settings)),
            Self::EndLeases { leases, reason } => {
                let numbers = leases.iter().map(|lease| format!("--force {lease} ")).collect::<String>();
                format!("leases {numbers}--reason {}", word(reason))
            }
            Self::Send { to, subject } => format!("send {} --subject {}", list(to), word(subject)),
        }
    }
}
