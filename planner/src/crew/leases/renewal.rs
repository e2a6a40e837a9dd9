//! The renewal of leases by their holders' calls, which are signs of life and no events.

use crewlog_mq::Timestamp;

use super::{Leases, RENEWAL};

impl Leases {
    /// True if the holder's next call renews its leases.
    #[must_use]
    pub fn renewal_is_due(&self, agent: &str, now: Timestamp) -> bool {
        let Some(shortest) = self.of_agent(agent).map(|(_, lease)| lease.ttl).min() else { return false };
        let every = shortest.div_f64(2.0).min(RENEWAL);
        self.renewed.get(agent).is_none_or(|at| now.since(*at) >= every)
    }

    /// Takes in when a holder was last seen: each of its leases lasts for its TTL from then, unless its end is in the log.
    pub fn hear(&mut self, agent: &str, seen: Timestamp) {
        let is_news = self.renewed.get(agent).is_none_or(|known| *known < seen);
        let numbers = self.by_agent.get(agent).filter(|_| is_news).cloned().unwrap_or_default();
        for number in &numbers {
            self.set_end(*number, |lease| seen.plus(lease.ttl));
        }
        if !numbers.is_empty() {
            self.renewed.insert(agent.to_owned(), seen);
        }
    }
}
