//! How often a caller may call.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The callers that are remembered, unless more of them call within one second.
const CALLERS_MAX: usize = 10_000;

/// By caller: the start of its current second, and its calls since then.
#[derive(Debug, Default)]
pub struct Rates(Mutex<HashMap<String, (Instant, u32)>>);

impl Rates {
    /// Counts a call. False if it is one too many in its second.
    pub fn is_within(&self, caller: &str, calls_max: u32) -> bool {
        let now = Instant::now();
        let is_over = |since: Instant| now.duration_since(since) >= Duration::from_secs(1);
        let mut rates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if rates.len() > CALLERS_MAX {
            rates.retain(|_, (since, _)| !is_over(*since));
        }
        let (since, n) = rates.entry(caller.to_owned()).or_insert((now, 0));
        if is_over(*since) {
            (*since, *n) = (now, 0);
        }
        *n += 1;
        *n <= calls_max
    }
}

#[cfg(test)]
mod tests;
