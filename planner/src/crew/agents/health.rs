//! The health of agents. It follows from their observed state and the time; each change of it is an event.

use std::time::Duration;

use super::{Activity, Agent, AgentEvent, Agents, Health, Liveness};
use crewlog_mq::Timestamp;

/// A context that is fuller than this, in percent, needs care; 85 itself does not.
pub const CONTEXT_MAX: u8 = 85;
/// An agent whose program shows hooks works slowly if nothing happens in a turn for this time.
pub const SLOW_AFTER: Duration = Duration::from_secs(600);
/// The kind of error of a turn that met a rate limit.
pub const RATE_LIMIT: &str = "rate_limit";

impl Agent {
    /// The last recorded health, and its reason.
    #[must_use]
    pub fn health(&self) -> (Health, &str) {
        (self.health, &self.health_reason)
    }

    /// The health that follows from its state. That of an agent that is lost or has left stays as it was.
    #[must_use]
    pub fn derived_health(&self, now: Timestamp) -> Health {
        let (activity, usage) = (self.activity(), &self.observed.usage);
        let is_working = matches!(activity, Activity::Working | Activity::Thinking);
        let last = self.seen().max(self.observed.at);
        let until = usage.limited_until(now);
        // The error does not say when the limit ends; only a window that is over is known to be.
        let may_be_limited = || until.is_some() || usage.limits.values().all(|limit| limit.used < 100);
        let is_limited = until.is_some() || self.observed.error.as_deref() == Some(RATE_LIMIT) && may_be_limited();
        match self.liveness {
            Liveness::Lost | Liveness::Left => self.health,
            _present if is_limited => Health::Limited,
            _present if activity == Activity::Error => Health::Error,
            Liveness::Stuck if is_working => Health::Stalled,
            _present if self.context_usage().is_some_and(|used| used > CONTEXT_MAX) => Health::Context,
            Liveness::Alive if is_working && self.is_watched() && now.since(last) >= SLOW_AFTER => Health::Slow,
            Liveness::Alive | Liveness::Stuck => Health::Healthy,
        }
    }

    /// True if its program shows its state, so silence in a turn says something.
    fn is_watched(&self) -> bool {
        self.observed.activity == Some(Activity::Working)
    }

    fn reason(&self, health: Health) -> String {
        let minutes = |time: Duration| format!("it works, and nothing has happened for {} min", time.as_secs() / 60);
        match health {
            Health::Healthy => String::new(),
            Health::Slow => minutes(SLOW_AFTER),
            Health::Stalled => minutes(super::STUCK_AFTER),
            Health::Context => format!("its context is {} % full", self.context_usage().unwrap_or_default()),
            Health::Limited => {
                let used_up = self.observed.usage.limits.iter().find(|(_, limit)| limit.used >= 100);
                used_up.map_or_else(|| "its rate limit".to_owned(), |(window, _)| format!("its limit {window}"))
            }
            Health::Error => {
                let reported = || self.report.note.clone().unwrap_or_else(|| "it reported an error".to_owned());
                self.observed.error.clone().unwrap_or_else(reported)
            }
        }
    }
}

impl Agents {
    /// True if the health of an agent is not the recorded one.
    #[must_use]
    pub fn is_health_news(&self, now: Timestamp) -> bool {
        self.iter().any(|(_, agent)| agent.derived_health(now) != agent.health)
    }

    /// The changes of health, of one agent or of all.
    pub(super) fn judge(&self, of: Option<&str>, now: Timestamp) -> Vec<AgentEvent> {
        let wanted = self.iter().filter(|(name, _)| of.is_none_or(|of| of == *name));
        let change = |(name, agent): (&str, &Agent)| {
            let health = agent.derived_health(now);
            let until = agent.observed.usage.limited_until(now).filter(|_| health == Health::Limited);
            let (agent, reason) = (name.to_owned(), agent.reason(health));
            AgentEvent::AgentHealthChanged { agent, health, reason, until, at: now }
        };
        wanted.filter(|(_, agent)| agent.derived_health(now) != agent.health).map(change).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::super::{AgentCommand, LeaveOutcome, ModelUsage, Profile, RateLimit, Report, SessionState, Wish};
    use super::*;
    use crewlog_mq::Handler;

    const LIMIT: &str = "five_hour";

    fn at(minute: u32) -> Timestamp {
        Timestamp(i64::from(minute) * 60_000_000)
    }

    fn joined(agent: &str) -> AgentCommand {
        let profile = Profile {
            program: "claude-code".into(),
            model: None,
            capabilities: Vec::new(),
            focus: Vec::new(),
            worktree: "w".into(),
            process: None,
            program_process: None,
        };
        let session = format!("of {agent}");
        AgentCommand::Join { wish: Wish::of(agent), session, profile: profile.into(), now: at(0) }
    }

    fn shows(activity: Activity, error: Option<&str>, context: Option<u8>, limit: Option<(u8, u32)>) -> SessionState {
        let limit = limit.map(|(used, until)| (LIMIT.to_owned(), RateLimit { used, until: Some(at(until)) }));
        SessionState {
            activity: Some(activity),
            error: error.map(str::to_owned),
            turn: at(1),
            usage: ModelUsage { context_usage: context, limits: limit.into_iter().collect(), ..ModelUsage::default() },
            ..SessionState::default()
        }
    }

    #[test]
    fn health_follows_from_the_observed_state_and_the_time() {
        let (working, error) = (Activity::Working, Activity::Error);
        for (observed, minute, expected, reason) in [
            (shows(working, None, Some(85), None), 11, Health::Healthy, ""),
            (shows(working, None, Some(86), None), 11, Health::Context, "its context is 86 % full"),
            (shows(working, None, None, None), 11, Health::Healthy, ""),
            (shows(working, None, None, None), 12, Health::Slow, "it works, and nothing has happened for 10 min"),
            (shows(Activity::Idle, None, None, None), 29, Health::Healthy, ""),
            (shows(Activity::Waiting, None, None, None), 29, Health::Healthy, ""),
            (
                shows(working, None, Some(90), None),
                32,
                Health::Stalled,
                "it works, and nothing has happened for 30 min",
            ),
            (shows(Activity::Idle, None, None, None), 40, Health::Healthy, ""),
            (shows(error, Some("overloaded"), Some(90), None), 3, Health::Error, "overloaded"),
            (shows(error, Some(RATE_LIMIT), None, None), 3, Health::Limited, "its rate limit"),
            (shows(error, Some(RATE_LIMIT), None, Some((100, 9))), 8, Health::Limited, "its limit five_hour"),
            (shows(error, Some(RATE_LIMIT), None, Some((100, 9))), 9, Health::Error, RATE_LIMIT),
            (shows(working, None, None, Some((100, 9))), 8, Health::Limited, "its limit five_hour"),
            (shows(working, None, None, Some((99, 9))), 8, Health::Healthy, ""),
        ] {
            let mut agents = Agents::default();
            agents.process(joined("ann")).expect("she joins");
            agents.hear("ann", at(2), || Some(SessionState { at: at(2), ..observed.clone() }));
            agents.process(AgentCommand::FireTimer { now: at(minute), proven: BTreeSet::new() }).expect("it fires");
            assert_eq!(agents.get("ann").expect("ann").health(), (expected, reason), "{minute}: {observed:?}");
        }
    }

    #[test]
    fn a_report_counts_until_the_next_turn_begins() {
        let mut agents = Agents::default();
        agents.process(joined("ann")).expect("she joins");
        let mut shown = |minute: u32, activity| {
            agents.hear("ann", at(minute), || Some(shows(activity, None, None, None)));
            let report = Report { activity: Activity::Blocked, ..Report::default() };
            let command = AgentCommand::Report { agent: "ann".into(), report, now: at(1) };
            agents.process(command).expect("a report");
            agents.get("ann").expect("ann").activity()
        };
        assert_eq!(shown(2, Activity::Working), Activity::Blocked);
        let turn = SessionState { turn: at(2), ..shows(Activity::Working, None, None, None) };
        agents.hear("ann", at(3), || Some(turn));
        assert_eq!(agents.get("ann").expect("ann").activity(), Activity::Working);
    }

    fn of_any_kind() -> impl Strategy<Value = SessionState> {
        let activity =
            prop::sample::select(vec![Activity::Working, Activity::Idle, Activity::Waiting, Activity::Error]);
        let error = prop::option::of(prop::sample::select(vec![RATE_LIMIT, "overloaded"]));
        let context = prop::option::of(80..95u8);
        let limit = prop::option::of((95..101u8, 0..200u32));
        (activity, error, context, limit)
            .prop_map(|(activity, error, context, limit)| shows(activity, error, context, limit))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn each_change_of_health_is_one_event(
            steps in prop::collection::vec((0..6u8, 0..2usize, 0..15u32, of_any_kind()), 1..60),
        ) {
            let (mut agents, mut minute) = (Agents::default(), 0);
            let mut last: BTreeMap<String, Health> = BTreeMap::new();
            for (step, of, passes, observed) in steps {
                minute += passes;
                let (agent, now) = (["ann", "bob"][of].to_owned(), at(minute));
                let observed = SessionState { at: now, turn: now, ..observed };
                let command = match step {
                    0 => joined(&agent),
                    1 => AgentCommand::Leave { agent, outcome: LeaveOutcome::Success, note: String::new(), next_step: String::new(), now },
                    2 | 3 => {
                        agents.hear(&agent, now, || Some(observed));
                        if step == 2 { AgentCommand::Judge { agent, now } } else { AgentCommand::See { agent, now } }
                    }
                    _ => AgentCommand::FireTimer { now, proven: BTreeSet::new() },
                };
                let is_fired = matches!(command, AgentCommand::FireTimer { .. });
                for event in agents.process(command).unwrap_or_default() {
                    match event {
                        AgentEvent::AgentJoined { agent, .. } => drop(last.insert(agent, Health::Healthy)),
                        AgentEvent::AgentHealthChanged { agent, health, .. } => {
                            prop_assert_ne!(last.insert(agent, health), Some(health), "no two in a row are equal");
                        }
                        _another => {}
                    }
                }
                for (name, agent) in agents.iter() {
                    prop_assert_eq!(last.get(name), Some(&agent.health().0));
                    prop_assert!(!is_fired || agent.derived_health(now) == agent.health().0, "{} {:?}", name, agent);
                }
                prop_assert!(!is_fired || !agents.is_health_news(now));
            }
        }
    }
}
