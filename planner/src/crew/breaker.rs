//! The breaker of an executor: after a rate limit nothing starts there until a time, and then one task tries.
//!
//! An aggregate is an executor under one account of one host: these share a limit.

use std::time::Duration;

use crewlog_mq::{Event as MqEvent, Handler, Snapshot, Timestamp};
use serde::{Deserialize, Serialize};

use super::CrewError;
use crate::event::RetryPolicy;

/// The stream of breakers.
pub const STREAM: &str = "executors";
/// The longest wait for a time that a limit names.
pub const WAIT_MAX: Duration = Duration::from_secs(8 * 24 * 3_600);
/// How long one task tries alone. Programs meet a limit at their start.
pub const PROBE: Duration = Duration::from_secs(120);

/// The aggregate of an executor.
#[must_use]
pub fn aggregate_id(executor: &str, host: &str, account: &str) -> String {
    format!("{executor}@{host}/{account}")
}

/// The wait after a limit that follows `n_before` others in a row, for the time that it names if it names one.
#[must_use]
pub fn wait(policy: RetryPolicy, n_before: u32, named: Option<Duration>) -> Duration {
    let doubled = Duration::from_millis(policy.wait_ms(n_before));
    match named {
        None => doubled,
        // The time that was named before was too early.
        Some(named) if n_before > 0 => named.max(doubled / 2),
        Some(named) => named,
    }
}

/// An event of a breaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum BreakerEvent {
    /// A task met a limit, for the nth time in a row: nothing starts until then.
    BreakerOpened { task: String, n: u32, until: Timestamp, at: Timestamp },
    /// A task tries alone, at most until then.
    ProbeClaimed { task: String, until: Timestamp, at: Timestamp },
    /// It did not run, so another may try.
    ProbeReleased { task: String, at: Timestamp },
    /// A run ended that day, in the zone of its host, and used this much, in millionths of its program's unit.
    DaySpent { day: String, cost_micros: u64, at: Timestamp },
    /// The limit is over: a task met none, or a person said so.
    BreakerClosed { by: String, at: Timestamp },
}

impl MqEvent for BreakerEvent {}

/// A command to a breaker; `now` is log time, and a task is `PLAN/TASK`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum BreakerCommand {
    /// A task met a limit, which may name a time.
    Open { task: String, after: Option<Duration>, policy: RetryPolicy, now: Timestamp },
    /// A task wants to start.
    Start { task: String, now: Timestamp },
    /// The task that tries met no limit.
    Pass { task: String, now: Timestamp },
    /// The task that was to try did not run.
    Release { task: String, now: Timestamp },
    /// A run has used something of the budget of the day, which begins again at `tomorrow`.
    Spend { task: String, day: String, cost_micros: u64, budget: u64, tomorrow: Timestamp, now: Timestamp },
    /// A person ends the wait.
    Close { by: String, now: Timestamp },
}

/// The breaker of an executor.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Breaker {
    phase: BreakerPhase,
    /// How often in a row a limit was met.
    n: u32,
    /// The last day on which something was used, and how much.
    spent: (String, u64),
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
enum BreakerPhase {
    #[default]
    Closed,
    /// Nothing starts before then.
    Waiting(Timestamp),
    /// This task tries, and until then no other.
    Probing(String, Timestamp),
}

impl Snapshot for Breaker {
    const FOLD: &'static str = "breaker";
    const VERSION: u32 = 2;
}

impl Breaker {
    /// The end of the wait for a limit.
    #[must_use]
    pub fn waits_until(&self, now: Timestamp) -> Option<Timestamp> {
        if let BreakerPhase::Waiting(until) = self.phase { Some(until).filter(|until| now < *until) } else { None }
    }

    /// True while a task other than the one that tries may not start.
    #[must_use]
    pub fn holds(&self, now: Timestamp) -> bool {
        match self.phase {
            BreakerPhase::Closed => false,
            BreakerPhase::Waiting(until) | BreakerPhase::Probing(_, until) => now < until,
        }
    }

    /// True from the first limit until a task met none.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.phase != BreakerPhase::Closed
    }

    /// The usage of a day, in millionths.
    #[must_use]
    pub fn spent_on(&self, day: &str) -> u64 {
        if self.spent.0 == day { self.spent.1 } else { 0 }
    }

    fn is_tried_by(&self, task: &str) -> bool {
        matches!(&self.phase, BreakerPhase::Probing(probing, _) if probing == task)
    }

    /// Tasks that started before the first limit meet it too: only a later time counts then, and no longer wait.
    fn open(&self, task: String, after: Option<Duration>, policy: RetryPolicy, now: Timestamp) -> Option<BreakerEvent> {
        let is_again = matches!(self.phase, BreakerPhase::Waiting(_)) || self.is_open() && !self.is_tried_by(&task);
        let n = if is_again { self.n } else { self.n.saturating_add(1) };
        let until = now.plus(wait(policy, n.saturating_sub(1), after).min(WAIT_MAX));
        let is_known = is_again && (after.is_none() || self.waits_until(now).is_some_and(|known| until <= known));
        (!is_known).then_some(BreakerEvent::BreakerOpened { task, n, until, at: now })
    }
}

impl Handler for Breaker {
    type Command = BreakerCommand;
    type Event = BreakerEvent;
    type Error = CrewError;

    fn decide(&self, command: BreakerCommand) -> Result<Vec<BreakerEvent>, CrewError> {
        let event = match command {
            BreakerCommand::Spend { task, day, cost_micros, budget, tomorrow, now } => {
                let is_used_up = self.spent_on(&day).saturating_add(cost_micros) >= budget;
                let opens = is_used_up && self.waits_until(now).is_none_or(|until| until < tomorrow);
                let opened = BreakerEvent::BreakerOpened { task, n: self.n, until: tomorrow, at: now };
                let spent = BreakerEvent::DaySpent { day, cost_micros, at: now };
                return Ok([spent].into_iter().chain(opens.then_some(opened)).collect());
            }
            BreakerCommand::Open { task, after, policy, now } => self.open(task, after, policy, now),
            BreakerCommand::Start { now, .. } if self.holds(now) => {
                return Err(CrewError::Closed("it waits for a rate limit".to_owned()));
            }
            BreakerCommand::Start { task, now } => {
                let until = now.plus(PROBE);
                self.is_open().then_some(BreakerEvent::ProbeClaimed { task, until, at: now })
            }
            BreakerCommand::Pass { task, now } => {
                self.is_tried_by(&task).then_some(BreakerEvent::BreakerClosed { by: task, at: now })
            }
            BreakerCommand::Release { task, now } => {
                self.is_tried_by(&task).then_some(BreakerEvent::ProbeReleased { task, at: now })
            }
            BreakerCommand::Close { by, now } => self.is_open().then_some(BreakerEvent::BreakerClosed { by, at: now }),
        };
        Ok(event.into_iter().collect())
    }

    fn apply(&mut self, event: &BreakerEvent) {
        match event {
            BreakerEvent::BreakerOpened { n, until, .. } => {
                (self.phase, self.n) = (BreakerPhase::Waiting(*until), *n);
            }
            BreakerEvent::ProbeClaimed { task, until, .. } => self.phase = BreakerPhase::Probing(task.clone(), *until),
            BreakerEvent::ProbeReleased { at, .. } => self.phase = BreakerPhase::Waiting(*at),
            BreakerEvent::DaySpent { day, cost_micros, .. } => {
                self.spent = (day.clone(), self.spent_on(day).saturating_add(*cost_micros));
            }
            BreakerEvent::BreakerClosed { .. } => (self.phase, self.n) = (BreakerPhase::Closed, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::RetryClass;

    fn at(minute: i64) -> Timestamp {
        Timestamp(minute * 60_000_000)
    }

    fn told(event: &BreakerEvent) -> String {
        match event {
            BreakerEvent::BreakerOpened { until, .. } => format!("opened until {}", until.0 / 60_000_000),
            BreakerEvent::ProbeClaimed { task, until, .. } => format!("{task} tries until {}", until.0 / 60_000_000),
            BreakerEvent::ProbeReleased { task, .. } => format!("{task} did not run"),
            BreakerEvent::BreakerClosed { by, .. } => format!("closed by {by}"),
            BreakerEvent::DaySpent { day, cost_micros, .. } => format!("{cost_micros} on {day}"),
        }
    }

    /// At a minute, what a task or a person does, and the events.
    #[track_caller]
    fn check(script: &[(i64, &str, &str, &str)]) {
        let mut breaker = Breaker::default();
        for (minute, who, what, expected) in script {
            let (now, (verb, rest)) = (at(*minute), what.split_once(' ').unwrap_or((what, "")));
            let task = (*who).to_owned();
            let command = match verb {
                "limit" => {
                    let after = rest.parse().ok().map(|minutes: u64| Duration::from_secs(minutes * 60));
                    BreakerCommand::Open { task, after, policy: RetryClass::RateLimited.policy(), now }
                }
                "start" => BreakerCommand::Start { task, now },
                "end" => BreakerCommand::Pass { task, now },
                "release" => BreakerCommand::Release { task, now },
                "spend" => {
                    let (day, cost_micros) = (format!("day {}", minute / 1_440), rest.parse().expect("a cost"));
                    let tomorrow = at((minute / 1_440 + 1) * 1_440);
                    BreakerCommand::Spend { task, day, cost_micros, budget: 100, tomorrow, now }
                }
                _ => BreakerCommand::Close { by: task, now },
            };
            let found = match breaker.process(command) {
                Ok(events) => events.iter().map(told).collect::<Vec<_>>().join(", "),
                Err(refused) => refused.to_string(),
            };
            assert_eq!(found, *expected, "at {minute}: {who} {what}");
        }
    }

    #[test]
    fn one_task_tries_after_the_wait_and_closes_the_breaker_for_all() {
        check(&[
            (0, "p/1", "start", ""),
            (0, "p/1", "limit 10", "opened until 10"),
            (9, "p/2", "start", "it waits for a rate limit"),
            (10, "p/2", "start", "p/2 tries until 12"),
            (10, "p/3", "start", "it waits for a rate limit"),
            (11, "p/2", "end", "closed by p/2"),
            (11, "p/3", "start", ""),
            (12, "p/3", "end", ""),
        ]);
    }

    #[test]
    fn tasks_that_meet_one_limit_together_wait_once() {
        for named in ["limit", "limit 1"] {
            check(&[
                (0, "p/1", named, "opened until 1"),
                (0, "p/2", named, ""),
                (0, "p/3", "limit 1", ""),
                (0, "p/4", named, ""),
                (1, "p/1", "start", "p/1 tries until 3"),
                (1, "p/5", "limit", ""),
                (1, "p/1", "limit", "opened until 3"),
            ]);
        }
        check(&[(0, "p/1", "limit 10", "opened until 10"), (1, "p/2", "limit 20", "opened until 21")]);
    }

    #[test]
    fn without_a_time_each_wait_is_twice_the_one_before() {
        let (mut script, mut minute) = (vec![(0, "p/1", "limit", "opened until 1".to_owned())], 1);
        for wait in [2, 4, 8, 16, 30, 30] {
            script.push((minute, "p/1", "start", format!("p/1 tries until {}", minute + 2)));
            script.push((minute, "p/1", "limit", format!("opened until {}", minute + wait)));
            minute += wait;
        }
        script.push((minute, "p/1", "start", format!("p/1 tries until {}", minute + 2)));
        // The limit names a time that is too early again.
        script.push((minute, "p/1", "limit 1", format!("opened until {}", minute + 15)));
        script.push((minute, "ann", "close", "closed by ann".to_owned()));
        script.push((minute, "p/1", "limit", format!("opened until {}", minute + 1)));
        check(&script.iter().map(|(at, who, what, told)| (*at, *who, *what, told.as_str())).collect::<Vec<_>>());
    }

    #[test]
    fn a_task_that_tries_and_says_nothing_makes_room_for_the_next() {
        check(&[
            (0, "p/1", "limit", "opened until 1"),
            (1, "p/1", "start", "p/1 tries until 3"),
            (1, "p/2", "release", ""),
            (1, "p/1", "release", "p/1 did not run"),
            (1, "p/2", "start", "p/2 tries until 3"),
            (3, "p/3", "start", "p/3 tries until 5"),
            (3, "p/3", "limit 60", "opened until 63"),
            (4, "p/2", "end", ""),
            (4, "p/4", "start", "it waits for a rate limit"),
        ]);
    }

    #[test]
    fn a_budget_of_a_day_that_is_used_up_opens_the_breaker_until_the_next() {
        check(&[
            (0, "p/1", "spend 60", "60 on day 0"),
            (1, "p/2", "spend 39", "39 on day 0"),
            (2, "p/3", "start", ""),
            (3, "p/3", "spend 1", "1 on day 0, opened until 1440"),
            (4, "p/4", "spend 7", "7 on day 0"),
            (5, "p/5", "start", "it waits for a rate limit"),
            (1_440, "p/5", "start", "p/5 tries until 1442"),
            (1_441, "p/5", "end", "closed by p/5"),
            (1_441, "p/5", "spend 99", "99 on day 1"),
            (1_442, "p/6", "limit 10", "opened until 1452"),
            (1_443, "p/7", "spend 1", "1 on day 1, opened until 2880"),
        ]);
    }

    #[test]
    fn a_named_time_is_bounded() {
        check(&[(0, "p/1", "limit 100000000", &format!("opened until {}", 8 * 24 * 60))]);
    }
}
