//! The tests of the event store.

mod log;
