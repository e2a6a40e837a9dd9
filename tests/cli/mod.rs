//! The program from outside: the real binary, its output, its exit codes, its terminal.

mod addresses;
mod agents;
mod amending;
mod answers;
mod archive;
mod check;
mod codes;
mod crew;
mod database;
pub mod demo;
mod documented;
mod executors;
mod forks;
mod groups;
mod help;
mod hostile;
mod inbox;
mod limits;
mod names;
mod places;
mod plan_export;
mod projects;
mod prompts;
mod remedies;
mod replay;
mod results;
pub(crate) mod scene;
#[cfg(feature = "sealing")]
mod sealed;
pub mod server;
mod sync;
mod sync_generated;
mod terminal;
mod together;
mod top;
mod verify;
mod work;
