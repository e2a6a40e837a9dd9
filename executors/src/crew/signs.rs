//! Signs of life of a project's agents, in one cell for each. Most calls of an agent say nothing but that it lives, and nobody
//! asks later when it did.

use std::collections::{BTreeMap, BTreeSet};

use crewlog_mq::{Append, CellChange, Error, EventStore, Timestamp};
use crewlog_planner::crew::agents::{Agent, Agents, Liveness, SEEN_EVERY};
use crewlog_planner::crew::asks::Asks;
use crewlog_planner::crew::leases::Leases;
use crewlog_planner::crew::messages::Messages;

/// The cells of one read.
const PAGE: usize = 1_000;

/// When agents were last seen, in log time.
#[derive(Debug)]
pub struct Signs {
    seen: BTreeMap<String, Timestamp>,
    /// When an agent without a sign counts as seen: so long ago that its next call leaves one.
    unknown: Timestamp,
}

/// A state that depends on signs of life.
pub trait Hears {
    /// False if it depends on none.
    const HEARS: bool = false;

    /// Takes them in. An agent without a sign counts as just seen: its log may come from a backup, which has none.
    fn hear(&mut self, _signs: &Signs) {}
}

impl Signs {
    pub(super) async fn read(store: &EventStore, project: &str) -> Result<Self, Error> {
        let (space, mut seen, mut from) = (space(project), BTreeMap::new(), String::new());
        loop {
            let cells = store.cells(&space, &from, PAGE).await?;
            let is_last = cells.len() < PAGE;
            // It is read twice, at the end of one page and the beginning of the next.
            from = cells.last().map(|cell| cell.key.clone()).unwrap_or_default();
            seen.extend(cells.into_iter().filter_map(|cell| Some((cell.key, Timestamp(cell.value.parse().ok()?)))));
            if is_last {
                let unknown = Timestamp(store.now().0 - i64::try_from(SEEN_EVERY.as_micros()).unwrap_or_default());
                return Ok(Self { seen, unknown });
            }
        }
    }

    /// Records that an agent is seen.
    pub(super) async fn put(store: &EventStore, project: &str, agent: &str) -> Result<(), Error> {
        let sign = CellChange::set(&space(project), agent, store.now().0.to_string());
        store.append(Append::default().cell(sign)).await.map(drop)
    }

    /// Begins those of the present agents that have none, and ends those of agents that left.
    pub(super) async fn begin(
        store: &EventStore,
        project: &str,
        present: &BTreeSet<String>,
        left: &BTreeSet<String>,
    ) -> Result<(), Error> {
        let (signs, space, now) = (Self::read(store, project).await?, space(project), store.now().0.to_string());
        let begun = present.iter().filter(|agent| !signs.seen.contains_key(*agent));
        let begun = begun.map(|agent| CellChange::set(&space, agent, now.clone()));
        let ended = signs.seen.keys().filter(|agent| left.contains(*agent));
        let changes: Vec<_> = begun.chain(ended.map(|agent| CellChange::delete(&space, agent))).take(PAGE).collect();
        if changes.is_empty() {
            return Ok(());
        }
        store.append(changes.into_iter().fold(Append::default(), Append::cell)).await.map(drop)
    }
}

fn space(project: &str) -> String {
    format!("seen:{project}")
}

impl Hears for Agents {
    const HEARS: bool = true;

    fn hear(&mut self, signs: &Signs) {
        let of = |(name, agent): (&str, &Agent)| {
            let unknown = || matches!(agent.liveness, Liveness::Alive | Liveness::Stuck).then_some(signs.unknown);
            Some((name.to_owned(), signs.seen.get(name).copied().or_else(unknown)?))
        };
        let seen: Vec<_> = self.iter().filter_map(of).collect();
        seen.iter().for_each(|(agent, at)| Self::hear(self, agent, *at));
    }
}

impl Hears for Leases {
    const HEARS: bool = true;

    fn hear(&mut self, signs: &Signs) {
        let holders: Vec<_> = self.holders().into_iter().map(str::to_owned).collect();
        for holder in holders {
            let seen = signs.seen.get(&holder).copied().unwrap_or(signs.unknown);
            Self::hear(self, &holder, seen);
        }
    }
}

impl Hears for Asks {}

impl Hears for Messages {}
