//! The breaker of an executor: after a rate limit nothing starts there until a time, and then one task tries.
//!
//! An aggregate is an executor under one account of one host: these share a limit.

use std::time::Duration;

use crewlog_mq::{Event as MqEvent, Handler, Snapshot, Timestamp};
use serde::{Deserialize, Serialize};

use super::CrewError;

/// The stream of breakers.
pub const STREAM: &str = "executors";
/// The first and the longest wait after limits that name no time; each is twice as long as the one before.
pub const WAITS: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(30 * 60));
/// The longest wait for a time that a limit names.
pub const WAIT_MAX: Duration = Duration::from_secs(8 * 24 * 3_600);
/// How long one task tries alone. Programs meet a limit at their start.
pub const PROBE: Duration = Duration::from_secs(120);

/// The aggregate of an executor.
#[must_use]
pub fn aggregate_id(executor: &str, host: &str, account: &str) -> String {
    format!("{executor}@{host}/{account}")
}

/// An event of a breaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum BreakerEvent {
    /// A task met a limit: nothing starts until then.
    BreakerOpened { task: String, until: Timestamp, at: Timestamp },
    /// A task tries alone, at most until then.
    ProbeClaimed { task: String, until: Timestamp, at: Timestamp },
    /// The limit is over: a task met none, or a person said so.
    BreakerClosed { by: String, at: Timestamp },
}

impl MqEvent for BreakerEvent {}

/// A command to a breaker; `now` is log time, and a task is `PLAN/TASK`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum BreakerCommand {
    /// A task met a limit, which may name a time.
    Open { task: String, after: Option<Duration>, now: Timestamp },
    /// A task wants to start.
    Start { task: String, now: Timestamp },
    /// A task met no limit, or a person ends the wait.
    Close { by: String, now: Timestamp },
}

/// The breaker of an executor.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Breaker {
    /// While it is open: the end of the wait, or of the time of the task that tries.
    until: Option<Timestamp>,
    /// How often it was opened in a row.
    n_opened: u32,
}

impl Snapshot for Breaker {
    const FOLD: &'static str = "breaker";
    const VERSION: u32 = 1;
}

impl Breaker {
    /// The time before which nothing starts.
    #[must_use]
    pub fn waits_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.until.filter(|until| now < *until)
    }

    /// True from the first limit until a task met none.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.until.is_some()
    }
}

impl Handler for Breaker {
    type Command = BreakerCommand;
    type Event = BreakerEvent;
    type Error = CrewError;

    fn decide(&self, command: BreakerCommand) -> Result<Vec<BreakerEvent>, CrewError> {
        match command {
            BreakerCommand::Open { task, after, now } => {
                let doubled = WAITS.0.saturating_mul(1 << self.n_opened.min(10)).min(WAITS.1);
                let wait = match after {
                    None => doubled,
                    // The time that was named before was too early.
                    Some(named) if self.n_opened > 0 => named.max(doubled / 2),
                    Some(named) => named,
                };
                let until = now.plus(wait.min(WAIT_MAX));
                // Tasks that started before the first limit meet it too.
                let is_known = self.waits_until(now).is_some_and(|known| until <= known);
                Ok(if is_known { Vec::new() } else { vec![BreakerEvent::BreakerOpened { task, until, at: now }] })
            }
            BreakerCommand::Start { task, now } => match (self.is_open(), self.waits_until(now)) {
                (false, _) => Ok(Vec::new()),
                (true, Some(_)) => Err(CrewError::Closed("it waits for a rate limit".to_owned())),
                (true, None) => Ok(vec![BreakerEvent::ProbeClaimed { task, until: now.plus(PROBE), at: now }]),
            },
            BreakerCommand::Close { by, now } => {
                Ok(if self.is_open() { vec![BreakerEvent::BreakerClosed { by, at: now }] } else { Vec::new() })
            }
        }
    }

    fn apply(&mut self, event: &BreakerEvent) {
        match event {
            BreakerEvent::BreakerOpened { until, .. } => {
                (self.until, self.n_opened) = (Some(*until), self.n_opened.saturating_add(1));
            }
            BreakerEvent::ProbeClaimed { until, .. } => self.until = Some(*until),
            BreakerEvent::BreakerClosed { .. } => *self = Self::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp(minute * 60_000_000)
    }

    fn told(event: &BreakerEvent) -> String {
        match event {
            BreakerEvent::BreakerOpened { until, .. } => format!("opened until {}", until.0 / 60_000_000),
            BreakerEvent::ProbeClaimed { task, until, .. } => format!("{task} tries until {}", until.0 / 60_000_000),
            BreakerEvent::BreakerClosed { by, .. } => format!("closed by {by}"),
        }
    }

    /// At a minute, a command and its events.
    #[track_caller]
    fn check(script: &[(i64, &str, &str)]) {
        let mut breaker = Breaker::default();
        for (minute, what, expected) in script {
            let (now, (verb, rest)) = (at(*minute), what.split_once(' ').unwrap_or((what, "")));
            let task = "p/1".to_owned();
            let command = match verb {
                "limit" => {
                    let after = rest.parse().ok().map(|minutes: u64| Duration::from_secs(minutes * 60));
                    BreakerCommand::Open { task, after, now }
                }
                "start" => BreakerCommand::Start { task: rest.to_owned(), now },
                _ => BreakerCommand::Close { by: rest.to_owned(), now },
            };
            let found = match breaker.process(command) {
                Ok(events) => events.iter().map(told).collect::<Vec<_>>().join(", "),
                Err(refused) => refused.to_string(),
            };
            assert_eq!(found, *expected, "at {minute}: {what}");
        }
    }

    #[test]
    fn one_task_tries_after_the_wait_and_closes_the_breaker_for_all() {
        check(&[
            (0, "start p/1", ""),
            (0, "limit 10", "opened until 10"),
            (0, "limit 10", ""),
            (0, "limit 5", ""),
            (1, "limit 20", "opened until 21"),
            (20, "start p/2", "it waits for a rate limit"),
            (21, "start p/2", "p/2 tries until 23"),
            (21, "start p/3", "it waits for a rate limit"),
            (22, "end p/2", "closed by p/2"),
            (22, "start p/3", ""),
            (22, "end p/3", ""),
        ]);
    }

    #[test]
    fn without_a_time_each_wait_is_twice_the_one_before() {
        check(&[
            (0, "limit", "opened until 1"),
            (1, "start p/1", "p/1 tries until 3"),
            (1, "limit", "opened until 3"),
            (3, "start p/1", "p/1 tries until 5"),
            (3, "limit", "opened until 7"),
            (7, "limit", "opened until 15"),
            (15, "limit", "opened until 31"),
            (31, "limit", "opened until 61"),
            (61, "limit", "opened until 91"),
            (91, "limit 1", "opened until 106"),
            (100, "end a person", "closed by a person"),
            (100, "limit", "opened until 101"),
        ]);
    }

    #[test]
    fn a_task_that_tries_and_ends_without_a_word_makes_room_for_the_next() {
        check(&[
            (0, "limit", "opened until 1"),
            (1, "start p/1", "p/1 tries until 3"),
            (3, "start p/2", "p/2 tries until 5"),
            (4, "start p/1", "it waits for a rate limit"),
        ]);
    }

    #[test]
    fn a_named_time_is_bounded() {
        check(&[(0, "limit 100000000", &format!("opened until {}", 8 * 24 * 60))]);
    }
}
