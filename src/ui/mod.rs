//! Text for people and programs: the terminal, failures, JSON.

pub mod failure;
pub mod json;
pub mod signals;
pub mod terminal;
pub mod text;
