//! Facts about its leases that an agent hears once, from whichever of its calls and hooks comes first: requests that wait for
//! its leases, grants, losses, offers and deadlocks.

use crewlog_mq::{Append, CellChange, Error, Timestamp};
use crewlog_planner::crew::leases::news::Notice;
use crewlog_planner::crew::leases::{Commit, Deadlock, GitChange, Handoff, LeaseNews, Leases, News, RingPart, Waiting};
use crewlog_planner::crew::target::Target;

use super::Refusal;
use super::state::Crew;
use crate::text::{quoted_line, quoted_list};

/// The most notices at once, and the most of a session that are remembered as given.
const NOTICES_MAX: usize = 8;
const KEPT_MAX: usize = 64;
/// The space of cells with the keys of the notices that each agent has heard.
const HEARD: &str = "heard";
/// The most characters of a path, and of another agent's words.
const PATH_CHARS_MAX: usize = 120;
const WORDS_CHARS_MAX: usize = 120;
/// The most paths in a list, and the characters of a commit's id.
const PATHS_MAX: usize = 3;
const ID_CHARS: usize = 10;

impl Crew {
    /// The notices that an agent has not heard, which it hears now.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn notices(&self, agent: &str) -> Result<Vec<String>, Error> {
        let (mut unheard, heard) = self.unheard(agent).await?;
        unheard.truncate(NOTICES_MAX);
        if unheard.is_empty() {
            return Ok(Vec::new());
        }
        self.remember(HEARD, agent, &heard, &unheard).await?;
        let (leases, now) = (self.leases().await?, self.store.now());
        let notices = leases.notices(agent, now);
        let told = notices.iter().filter(|notice| unheard.contains(&notice.key()));
        Ok(told.map(|notice| text(notice, agent, &leases, now)).collect())
    }

    /// The keys of the notices that an agent has not heard.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn unheard_keys(&self, agent: &str) -> Result<Vec<String>, Error> {
        Ok(self.unheard(agent).await?.0)
    }

    /// The keys of the notices that an agent has not heard, and of those that it has.
    async fn unheard(&self, agent: &str) -> Result<(Vec<String>, String), Error> {
        let mut keys: Vec<_> = self.leases().await?.notices(agent, self.store.now()).iter().map(Notice::key).collect();
        if keys.is_empty() {
            return Ok((keys, String::new()));
        }
        let heard = self.heard(HEARD, agent).await?;
        keys.retain(|key| !heard.lines().any(|known| known == key));
        Ok((keys, heard))
    }

    async fn heard(&self, space: &str, agent: &str) -> Result<String, Error> {
        Ok(self.store.cell(space, &self.cell_of(agent)).await?.map(|cell| cell.value).unwrap_or_default())
    }

    /// The cell of an agent, or of a program, in a space of the log.
    pub(super) fn cell_of(&self, agent: &str) -> String {
        format!("{}:{agent}", self.project)
    }

    /// Records that an agent hears something once. False if it has heard it.
    ///
    /// # Errors
    /// A fault of the log.
    pub(super) async fn hears(&self, space: &str, agent: &str, key: &str) -> Result<bool, Refusal> {
        let heard = self.heard(space, agent).await?;
        if heard.lines().any(|known| known == key) {
            return Ok(false);
        }
        self.remember(space, agent, &heard, &[key.to_owned()]).await?;
        Ok(true)
    }

    /// Adds keys to the last ones that an agent has heard.
    async fn remember(&self, space: &str, agent: &str, heard: &str, keys: &[String]) -> Result<(), Error> {
        let mut kept: Vec<&str> = heard.lines().chain(keys.iter().map(String::as_str)).collect();
        let last = kept.split_off(kept.len().saturating_sub(KEPT_MAX)).join("\n");
        self.store.append(Append::default().cell(CellChange::set(space, &self.cell_of(agent), last))).await?;
        Ok(())
    }
}

fn text(notice: &Notice<'_>, agent: &str, leases: &Leases, now: Timestamp) -> String {
    let asks = |waiting: &Waiting| {
        let paths = paths(&waiting.request.targets);
        (waiting.request.holder.agent.clone(), paths, said(&waiting.request.reason))
    };
    match notice {
        Notice::Awaited(number, waiting, lease) => {
            let (asker, paths, reason) = asks(waiting);
            let own = path(&lease.target);
            format!(
                "{asker} waits for {paths}{reason} as request {number}, and you lease {own}: release_paths frees it when you \
                 are done, answer_release hands it over"
            )
        }
        Notice::Asked(number, waiting, _, until) => {
            let (asker, paths, reason) = asks(waiting);
            let left = until.since(now).as_secs().div_ceil(60);
            format!(
                "{asker} asks you to release {paths}{reason} within {left} min: call answer_release with request {number} and \
                 release, keep or hand_over; then the person decides"
            )
        }
        Notice::Offered(number, offer) => {
            format!("{}: handoff with number {number} and accept or refuse", offered(offer, leases))
        }
        Notice::Deadlocked(Deadlock { ring, release, .. }) => {
            let part = |RingPart { agent, lease, .. }: &RingPart| {
                let (of, on) = leases
                    .get(*lease)
                    .map_or_else(Default::default, |held| (held.holder.agent.clone(), path(&held.target)));
                format!("{agent} waits for {on} of {of}")
            };
            let parts = ring.iter().map(part).collect::<Vec<_>>().join(", ");
            let by = leases.get(*release).map_or_else(String::new, |lease| match lease.holder.agent == agent {
                true => format!("you should release {}, lease {release}", path(&lease.target)),
                false => format!("{} should release {}", lease.holder.agent, path(&lease.target)),
            });
            format!("a deadlock: {parts}; {by}")
        }
        Notice::Past(News { fact, .. }) => past(fact, leases, now),
    }
}

/// The text of a past fact.
fn past(fact: &LeaseNews, leases: &Leases, now: Timestamp) -> String {
    match fact {
        LeaseNews::Granted { targets } => {
            format!("your waiting request was granted: {}", paths(targets))
        }
        LeaseNews::Lost { lease, target, by } => {
            let how = by.as_ref().map_or_else(|| "expired".to_owned(), |by| format!("was ended by {by}"));
            let next = leases.overlapping(target, now).find(|(_, found)| found.is_exclusive);
            let next = next.map_or_else(String::new, |(_, found)| format!(", and {} has it now", found.holder.agent));
            format!("your lease {lease} on {} {how}{next}: stop editing it, or reserve it again", path(target))
        }
        LeaseNews::Kept { by, until, note } => {
            format!("{by} keeps its leases for {} min more{}", until.since(now).as_secs().div_ceil(60), said(note))
        }
        LeaseNews::Answered { handoff, by, is_accepted: true, note } => {
            format!("{by} has accepted your handoff {handoff}{}: it works on that now", said(note))
        }
        LeaseNews::Answered { handoff, by, is_accepted: false, note } => {
            format!("{by} has refused your handoff {handoff}{}", said(note))
        }
        LeaseNews::Edited { lease, path, by, .. } => {
            let by = by.as_deref().unwrap_or("somebody");
            let path = quoted_line(path, PATH_CHARS_MAX);
            format!("{by} changed {path} under your lease {lease}: read the file before you edit or commit it")
        }
        LeaseNews::Committed { lease, paths, commit } => {
            format!(
                "{} under your lease {lease}: read what is there before you edit or commit it",
                committed(commit, paths)
            )
        }
    }
}

/// A command of git that committed or changed files, with the first ones: `ann committed a.txt in 1a2b3c4d`.
#[must_use]
pub fn committed(Commit { id, how, agent, .. }: &Commit, paths: &[String]) -> String {
    let by = agent.as_deref().unwrap_or("a person");
    let verb = match how {
        GitChange::Commit => "committed",
        GitChange::Checkout | GitChange::Merge | GitChange::Rebase => "changed",
    };
    let through = match how {
        GitChange::Commit => "in",
        GitChange::Checkout => "by a checkout of",
        GitChange::Merge => "by a merge of",
        GitChange::Rebase => "by a rebase to",
    };
    let shown = quoted_list(paths.iter().map(String::as_str), PATHS_MAX, PATH_CHARS_MAX);
    format!("{by} {verb} {shown} {through} {}", id.get(..ID_CHARS).unwrap_or(id))
}

/// An offer in one line, with the files of its leases.
fn offered(offer: &Handoff, leases: &Leases) -> String {
    let Handoff { from, tasks, next_step, note, .. } = offer;
    let numbers = leases.offered(offer);
    let held = numbers.iter().filter_map(|number| leases.get(*number));
    let paths = quoted_list(held.map(|lease| lease.target.path.as_str()), PATHS_MAX, PATH_CHARS_MAX);
    let tasks = quoted_list(tasks.iter().map(String::as_str), PATHS_MAX, PATH_CHARS_MAX);
    let on = if paths.is_empty() { paths } else { format!("leases on {paths}") };
    let parts = [tasks, on].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" and ");
    let next = if next_step.is_empty() {
        String::new()
    } else {
        format!("; next step {}", quoted_line(next_step, WORDS_CHARS_MAX))
    };
    format!("{from} offers you {parts}{next}{}", said(note))
}

fn path(target: &Target) -> String {
    quoted_line(&target.path, PATH_CHARS_MAX)
}

fn paths(targets: &[Target]) -> String {
    quoted_list(targets.iter().map(|target| target.path.as_str()), PATHS_MAX, PATH_CHARS_MAX)
}

/// Another agent's words in brackets.
fn said(words: &str) -> String {
    if words.trim().is_empty() { String::new() } else { format!(" ({})", quoted_line(words, WORDS_CHARS_MAX)) }
}
