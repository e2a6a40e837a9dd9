//! The pages of the program in a real browser: the driver, the page checks, and the tests.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, also outside of its own function")]

mod addresses;
mod checking;
mod checks;
mod dashboard;
mod devtools;
mod driving;
mod faults;
mod keys;
mod page;
mod proxy;
mod site;
