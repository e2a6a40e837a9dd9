//! The crew of a project on its log: agents join, lease files, take tasks, exchange messages and ask the person.
//!
//! A [`Crew`] runs the pure handlers of [`crewlog_planner::crew`] for all callers of a process: MCP sessions, hooks and
//! the command line. Each handler stays in memory behind its own lock, so decisions about one aggregate are made one
//! after another. All decisions are the handlers'.
//!
//! Every call of an agent goes through [`Crew::present`], which checks that the session still holds the name, and
//! renews the agent's leases and claims. A cell records this at most once a minute.
//!
//! Each call can fail with a fault of the log, and each call of an agent like [`Crew::present`]; the docs of a call
//! name only its other errors.

mod actions;
mod asks;
mod at_rest;
mod board;
pub mod briefs;
mod commits;
pub mod folders;
mod handing;
mod holders;
pub mod human;
pub mod lacking;
mod leases;
mod mail;
mod needs;
mod notices;
mod observed;
pub mod offers;
pub mod owner;
mod presence;
pub mod process;
pub mod project;
pub mod reacting;
mod refusal;
pub mod runs;
pub mod scripts;
mod shared;
mod signs;
pub mod similar;
mod state;
mod tasks;
mod timers;
pub mod warm;
pub mod worktree;

pub use actions::{NeedAction, OWN_WORDS};
pub use at_rest::AtRest;
pub use board::{OpenSession, TaskSummary, is_offered, n_for_sessions, summaries};
pub use commits::LostFile;
pub use holders::Holders;
pub use leases::Granted;
pub use mail::{Mail, Receipt};
pub use needs::{Facts, Kind, Need, OpenPlan, begins, needs_you, question_text};
pub use notices::committed;
pub use observed::SHOWN_EVERY;
pub use refusal::Refusal;
pub use shared::Read;
pub use signs::Hears;
pub use state::{Caller, Crew, Join, Joined};
pub use tasks::{Claimed, NewTask, Reserve, STANDING_PLAN, standing_plan};
pub use timers::host;
