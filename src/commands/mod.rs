//! The commands of the program, one file each.

pub mod amend;
pub mod archive;
pub mod check;
pub mod completions;
pub mod crew;
pub mod diff;
pub mod events;
pub mod fork;
pub mod groups;
pub mod inbox;
#[cfg(feature = "sealing")]
pub mod keys;
pub mod replay;
pub mod show;
pub mod start;
pub mod why;
pub mod work;
