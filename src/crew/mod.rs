//! The crew on the command line, and its shared parts: the worktree of a caller, and the crew of its log.

pub mod facts;
pub mod inbox;
pub mod session;
pub mod verbs;
pub mod why;
pub mod worktree;
