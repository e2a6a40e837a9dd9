//! Writes states back into a plan file as the smallest change of its bytes.

/// A file with states written into it.
pub struct Written;
/// Writes states.
pub fn write_states() {}
