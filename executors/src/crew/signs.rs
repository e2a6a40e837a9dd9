//! The signs of life of a project's agents, as its state takes them in.

use crewlog_planner::crew::agents::{Agent, Agents, Liveness};
use crewlog_planner::crew::asks::Asks;
use crewlog_planner::crew::leases::Leases;
use crewlog_planner::crew::messages::Messages;

use crate::signs::Signs;

/// A state that depends on signs of life.
pub trait Hears {
    /// False if it depends on none.
    const HEARS: bool = false;

    /// Takes them in. An agent without a sign counts as just seen: its log may come from a backup, which has none.
    fn hear(&mut self, _signs: &Signs) {}
}

/// The cells with the signs of a project's agents.
pub(super) fn space(project: &str) -> String {
    format!("seen:{project}")
}

impl Hears for Agents {
    const HEARS: bool = true;

    fn hear(&mut self, signs: &Signs) {
        let of = |(name, agent): (&str, &Agent)| {
            let unknown = || matches!(agent.liveness, Liveness::Alive | Liveness::Stuck).then_some(signs.unknown);
            Some((name.to_owned(), signs.of(name).or_else(unknown)?))
        };
        let seen: Vec<_> = self.iter().filter_map(of).collect();
        seen.iter().for_each(|(agent, at)| Self::hear(self, agent, *at, || signs.state_of(agent)));
    }
}

impl Hears for Leases {
    const HEARS: bool = true;

    fn hear(&mut self, signs: &Signs) {
        let holders: Vec<_> = self.holders().into_iter().map(str::to_owned).collect();
        for holder in holders {
            let seen = signs.of(&holder).unwrap_or(signs.unknown);
            Self::hear(self, &holder, seen);
        }
    }
}

impl Hears for Asks {}

impl Hears for Messages {}
