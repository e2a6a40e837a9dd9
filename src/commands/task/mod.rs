//! `task`: adds, changes and reports tasks. New commands need consent. Each order is one command to the planner, all or nothing.

mod add;
mod ask;
pub mod changing;
mod claim;
mod done;
mod edit;
mod fail;
mod r#move;
mod skip;
mod withdraw;

use clap::Subcommand;

pub use self::add::{AddTask, add};
pub use self::ask::{Ask, ask};
pub use self::claim::{Claim, Release, claim, next, release};
pub use self::done::{Done, done};
pub use self::edit::{EditTask, edit};
pub use self::fail::{Fail, fail};
pub use self::r#move::{Move, reorder};
pub use self::skip::{Skip, skip};
pub use self::withdraw::{Withdraw, withdraw};

#[derive(Debug, Subcommand)]
pub enum Task {
    /// Add a task to a plan, by default to the standing plan of the project
    Add(AddTask),
    /// Change a task that has not started
    Edit(EditTask),
    /// Skip tasks; the tasks that wait for them may run
    Skip(Skip),
    /// Make a task wait for other tasks than before
    Move(Move),
    /// Claim the next ready task, for the agent AGENT_ID
    ///
    /// With leases on its files. The exit code is 4 if none is ready.
    Next,
    /// Claim a task, for the agent AGENT_ID
    Claim(Claim),
    /// Give a claimed task back, for the agent AGENT_ID
    Release(Release),
    /// Report that you have done a task
    Done(Done),
    /// Report that a task cannot be done
    Fail(Fail),
    /// Ask a question about a task, which then waits for the answer
    Ask(Ask),
    /// Withdraw a question
    Withdraw(Withdraw),
}
