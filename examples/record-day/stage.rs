//! Plays scripts in log time: one script runs at a time, and the clock jumps to the wake-up time of the next one.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::task::Poll;
use std::time::Duration;

use crewlog_mq::{Clock, Timestamp};

use crate::Result;

/// Tuesday, 10 March 2026, 08:57 UTC.
const START: i64 = 1_773_133_020_000_000;
const MINUTE: i64 = 60_000_000;
/// The running script waits for no moment.
const NEVER: i64 = i64::MIN;

/// A person, an agent or a machine.
pub type Script = Pin<Box<dyn Future<Output = Result>>>;

/// The clock of the day.
#[derive(Clone)]
pub struct Time {
    now: Arc<AtomicI64>,
    /// The moment that the script waits for.
    until: Arc<AtomicI64>,
}

impl Time {
    pub fn new() -> Self {
        Self { now: Arc::new(AtomicI64::new(START)), until: Arc::new(AtomicI64::new(NEVER)) }
    }

    /// Waits this many seconds.
    pub async fn pass(&self, secs: u64) {
        let until = self.now.load(SeqCst) + i64::try_from(secs).unwrap_or(0) * 1_000_000 + 137_000;
        poll_fn(|_| {
            if self.now.load(SeqCst) >= until {
                return Poll::Ready(());
            }
            self.until.store(until, SeqCst);
            Poll::Pending
        })
        .await;
    }

    /// Waits until this many minutes after the start of the day.
    pub async fn until_minute(&self, minute: i64) {
        let left = START + minute * MINUTE - self.now.load(SeqCst);
        self.pass(u64::try_from(left / 1_000_000).unwrap_or(0)).await;
    }
}

impl Clock for Time {
    fn wall(&self) -> Timestamp {
        Timestamp(self.now.load(SeqCst))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros(self.now.load(SeqCst).unsigned_abs())
    }
}

/// Plays the scripts until the end of the day, and calls `react` after each part of a script.
pub async fn play(
    time: &Time,
    minutes: i64,
    mut scripts: Vec<Script>,
    mut react: impl AsyncFnMut() -> Result,
) -> Result {
    let mut due: BTreeSet<(i64, usize)> = (0..scripts.len()).map(|index| (START, index)).collect();
    while let Some((at, index)) = due.pop_first().filter(|(at, _)| *at <= START + minutes * MINUTE) {
        time.now.store(at, SeqCst);
        time.until.store(NEVER, SeqCst);
        let ended = poll_fn(|context| match scripts[index].as_mut().poll(context) {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            Poll::Pending if time.until.load(SeqCst) != NEVER => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await;
        match ended {
            Some(ended) => ended?,
            None => _ = due.insert((time.until.load(SeqCst), index)),
        }
        react().await?;
    }
    Ok(())
}
