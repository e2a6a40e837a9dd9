//! `db`: checks, copies and migrates the database of the log.

mod backup;
mod check;
mod info;
mod migrate;

use clap::Subcommand;

pub use self::backup::{Backup, backup};
pub use self::check::check;
pub use self::info::info;
pub use self::migrate::migrate;

#[derive(Debug, Subcommand)]
pub enum Db {
    /// Check that the log is sound; nothing is changed
    Check,
    /// Migrate the schema of the log, as opening the log does
    Migrate,
    /// Copy the log into a new file; others can keep writing
    Backup(Backup),
    /// Count the events of the log
    Info,
}
