//! Text for people and programs: the terminal, failures, JSON.

pub mod signals;

pub mod failure;
pub mod json;
pub mod similar;
pub mod terminal;
pub mod text;
