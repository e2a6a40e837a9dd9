//! `task`: adds, changes and reports tasks. New commands need consent. Each order is one command to the planner, all or nothing.

pub mod add;
pub mod ask;
pub mod changing;
pub mod done;
pub mod edit;
pub mod fail;
pub mod r#move;
pub mod skip;
pub mod withdraw;

use clap::Subcommand;

use crate::context::Session;
use crate::ui::failure::{Code, Failure};

pub use self::add::AddTask;
pub use self::ask::Ask;
pub use self::done::Done;
pub use self::edit::EditTask;
pub use self::fail::Fail;
pub use self::r#move::Move;
pub use self::skip::Skip;
pub use self::withdraw::Withdraw;

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
    /// Report that you have done a task
    Done(Done),
    /// Report that a task cannot be done
    Fail(Fail),
    /// Ask a question about a task, which then waits for the answer
    Ask(Ask),
    /// Withdraw a question
    Withdraw(Withdraw),
}

pub async fn execute(session: &Session, task: Task) -> Result<Code, Failure> {
    match task {
        Task::Add(add) => add::add(session, add).await,
        Task::Edit(edit) => edit::edit(session, edit).await,
        Task::Skip(skip) => skip::skip(session, skip).await,
        Task::Move(order) => r#move::reorder(session, order).await,
        Task::Done(done) => done::done(session, done).await,
        Task::Fail(fail) => fail::fail(session, fail).await,
        Task::Ask(ask) => ask::ask(session, ask).await,
        Task::Withdraw(withdraw) => withdraw::withdraw(session, withdraw).await,
    }
}
