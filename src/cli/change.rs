//! Arguments of commands that change plans under way and their tasks.

use clap::{Args, Subcommand};
use crewlog_planner::event::Edit;

use super::typed::{Address, InPlan, address, in_plan};
use crate::failure::Failure;
use crate::settings::{FIELDS, edit, help, millis};

#[derive(Debug, Args)]
pub struct Answer {
    /// The question: PLAN/q1, the task that asks, a plan with one open question, or a12 of an agent
    #[arg(value_name = "PLAN/QUESTION", value_parser = address)]
    pub question: Address,
    /// The answer; allow or deny for an agent that asks for permission
    #[arg(allow_hyphen_values = true)]
    pub text: String,
    /// Words for the agent, after allow or deny
    #[arg(allow_hyphen_values = true, conflicts_with = "ask")]
    pub note: Option<String>,
    /// Ask this of the same task too, which then waits for both answers
    #[arg(long, value_name = "QUESTION")]
    pub ask: Option<String>,
}

impl Answer {
    /// The number of an agent's question: `a12`.
    pub fn number(&self) -> Option<u64> {
        self.question.plan.strip_prefix('a').filter(|_| self.question.part.is_none())?.parse().ok()
    }

    /// For a permission: true to allow it, and the words for the agent.
    pub fn decision(&self) -> Option<(bool, &str)> {
        let is_granted = match self.text.trim().to_lowercase().as_str() {
            "allow" | "yes" => true,
            "deny" | "no" => false,
            _neither => return None,
        };
        Some((is_granted, self.note.as_ref().unwrap_or(&self.text)))
    }

    /// The text of any other answer.
    pub fn one_text(self) -> Result<String, Failure> {
        match self.note {
            None => Ok(self.text),
            Some(_) => Err(Failure::user("the answer is one text, and two were given").hint("put it in quotes")),
        }
    }
}

#[derive(Debug, Args)]
pub struct Cancel {
    /// The plan, or one of its tasks
    #[arg(value_name = "PLAN[/TASK]", value_parser = address)]
    pub target: Address,
    /// Why
    #[arg(long, default_value = "cancelled by a person")]
    pub reason: String,
    /// Run the undo commands of the plan's completed tasks
    #[arg(long)]
    pub compensate: bool,
}

#[derive(Debug, Args)]
pub struct Pause {
    /// The plan, or one of its tasks
    #[arg(value_name = "PLAN[/TASK]", value_parser = address)]
    pub target: Address,
    /// Why
    #[arg(long, default_value = "by a person")]
    pub reason: String,
}

#[derive(Debug, Args)]
pub struct Retry {
    /// A task, or a plan with all its failed tasks
    #[arg(value_name = "PLAN[/TASK]", value_parser = address)]
    pub target: Address,
    /// Retry at once a task that waits for its next attempt
    #[arg(long)]
    pub now: bool,
}

#[derive(Debug, Subcommand)]
pub enum Task {
    /// Add a task to a plan, by default to the standing plan of the project
    Add(AddTask),
    /// Change a task that has not started
    Edit {
        /// The task
        #[arg(value_name = "PLAN/TASK", value_parser = in_plan)]
        task: InPlan,
        /// text, command, kind, label, note, priority, assignee, retry, timeout, ...
        #[arg(required = true, value_name = "KEY=VALUE", value_parser = edit, long_help = help("Fields of the task", FIELDS))]
        changes: Vec<Edit>,
        /// Why
        #[arg(long, default_value = "edited by a person")]
        reason: String,
    },
    /// Skip tasks; the tasks that wait for them may run
    Skip {
        /// Tasks of one plan
        #[arg(required = true, value_name = "PLAN/TASK", value_parser = in_plan)]
        tasks: Vec<InPlan>,
        /// Why
        #[arg(long, default_value = "skipped by a person")]
        reason: String,
    },
    /// Make a task wait for other tasks than before
    Move {
        /// The task
        #[arg(value_name = "PLAN/TASK", value_parser = in_plan)]
        task: InPlan,
        /// The only tasks of the plan to wait for, by number or label; none if left out
        #[arg(long, value_name = "TASK", value_delimiter = ',')]
        after: Vec<String>,
        /// Why
        #[arg(long, default_value = "moved by a person")]
        reason: String,
    },
    /// Report that you have done a task
    Done {
        /// The task
        #[arg(value_name = "PLAN/TASK", value_parser = in_plan)]
        task: InPlan,
        /// Its result
        #[arg(default_value = "done")]
        result: String,
    },
    /// Report that a task cannot be done
    Fail {
        /// The task
        #[arg(value_name = "PLAN/TASK", value_parser = in_plan)]
        task: InPlan,
        /// Why
        error: String,
    },
    /// Ask a question about a task, which then waits for the answer
    Ask(Ask),
    /// Withdraw a question
    Withdraw {
        /// The question: PLAN/q1, or the task that asks
        #[arg(value_name = "PLAN/QUESTION", value_parser = in_plan)]
        question: InPlan,
        /// Why
        #[arg(long, default_value = "withdrawn by a person")]
        reason: String,
    },
}

#[derive(Debug, Args)]
pub struct AddTask {
    /// Description of the task; - reads one or more tasks from standard input
    // A list begins with a dash.
    #[arg(allow_hyphen_values = true)]
    pub text: String,
    /// The plan
    #[arg(long, default_value = BACKLOG)]
    pub plan: String,
    /// Make a standing plan of this name first
    #[arg(long)]
    pub new: bool,
    /// The tasks to wait for, by number or label
    #[arg(long, value_name = "TASK", value_delimiter = ',')]
    pub after: Vec<String>,
    /// The tasks that wait for it
    #[arg(long, value_name = "TASK", value_delimiter = ',')]
    pub before: Vec<String>,
    /// Why
    #[arg(long, default_value = "added by a person")]
    pub reason: String,
}

#[derive(Debug, Args)]
pub struct Ask {
    /// The task: one that has not started, or that waits for an answer
    #[arg(value_name = "PLAN/TASK", value_parser = in_plan)]
    pub task: InPlan,
    /// The question
    #[arg(allow_hyphen_values = true)]
    pub question: String,
    /// The default answer, with --after
    #[arg(long, value_name = "ANSWER", requires = "after")]
    pub default: Option<String>,
    /// When the default answer counts (30s, 10m, 2h)
    #[arg(long, value_name = "DURATION", value_parser = millis, requires = "default")]
    pub after: Option<u64>,
}

/// The standing plan of a project.
pub const BACKLOG: &str = "backlog";
