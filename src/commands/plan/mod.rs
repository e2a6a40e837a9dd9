//! `plan`: checks, changes and syncs plans.

mod check;
mod checkpoint;
mod draft;
mod propose;
mod schema;
mod set;

use clap::Subcommand;

pub use self::check::{Check, check};
pub use self::checkpoint::{Checkpoint, checkpoint};
pub use self::draft::{Draft, draft};
pub use self::propose::{Propose, propose};
pub use self::schema::{Schema, print_schema};
pub use self::set::{Set, set};

#[derive(Debug, Subcommand)]
pub enum Plan {
    /// Show how a plan file is read, line by line; nothing runs
    Check(Check),
    /// Apply changes of a plan's file to the plan, and write the states of its tasks into the file
    Sync {
        /// The plan
        plan: String,
    },
    /// Change the settings of a plan
    Set(Set),
    /// Name the present point of a plan, or list its checkpoints
    Checkpoint(Checkpoint),
    /// Make a plan from the JSON of an agent, if it follows the schema and names only the tools of the agent
    #[command(hide = true)]
    Propose(Propose),
    /// Print the plan that an agent makes from words, for `propose`
    #[command(hide = true)]
    Draft(Draft),
    /// Print the form of an agent's plans as a JSON schema, with its tools
    #[command(hide = true)]
    Schema(Schema),
}
