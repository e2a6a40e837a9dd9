//! The log and the bus.
