//! Requests, events and commands of leases.

use std::time::Duration;

use crewlog_mq::{Event as MqEvent, Position, Timestamp};
use serde::{Deserialize, Serialize};

use crate::crew::CrewError;
use crate::crew::names::LeaseHolder;
use crate::crew::refusal::check_length;
use crate::crew::target::Target;

/// A request for leases, granted as a whole or not at all.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The holder-to-be.
    pub holder: LeaseHolder,
    /// The files.
    pub targets: Vec<Target>,
    /// Shared leases overlap with each other, exclusive ones with none.
    pub is_exclusive: bool,
    /// How long they stay live without a call from the holder.
    pub ttl: Duration,
    /// The reason, in the words of the holder.
    pub reason: String,
    /// The task that it is for: `PLAN/NAME`.
    pub task: Option<String>,
    /// True if an overlap in another worktree is refused too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_strict: bool,
}

/// The longest reason of a request, and name of its task, in bytes.
pub(super) const REASON_BYTES_MAX: usize = 4_000;

impl Request {
    pub(super) fn check_texts(&self) -> Result<(), CrewError> {
        check_length("a reason", self.reason.len(), REASON_BYTES_MAX)?;
        check_length("the name of a task", self.task.as_ref().map_or(0, String::len), REASON_BYTES_MAX)
    }
}

/// An overlap with a lease of another worktree. It blocks no request, but the changes meet when the worktrees are merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MergeRisk {
    /// The other lease.
    pub lease: u64,
    /// Its holder.
    pub holder: LeaseHolder,
    /// The leased files.
    pub target: Target,
}

/// The turn of a request among those that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Granted now or not at all, unless others hold the files or wait for them.
    Behind,
    /// Otherwise it waits until then.
    Wait(Timestamp),
    /// Granted now or not at all, unless others hold the files: an edit of free files.
    Edit,
}

/// A holder that was asked to release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The time by which it should answer, or up to which it keeps its leases.
    pub until: Timestamp,
    /// True once it has answered that it keeps them.
    pub keeps: bool,
}

/// A holder's answer to a request for a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReleaseAnswer {
    /// It ends its leases; the oldest waiting request comes next.
    Release,
    /// It keeps them.
    Keep {
        /// Up to this time.
        until: Timestamp,
    },
    /// It ends them for this request, before all that wait.
    HandOver,
}

/// A part of a ring of agents that wait for each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingPart {
    /// The agent.
    pub agent: String,
    /// Its waiting request.
    pub waiting: u64,
    /// The lease that it waits for.
    pub lease: u64,
}

/// Agents that wait for each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadlock {
    /// Each waits for a lease of the next, and the last one for one of the first. The first by name comes first.
    pub ring: Vec<RingPart>,
    /// The lease whose release is suggested.
    pub release: u64,
    /// When it was detected.
    pub at: Timestamp,
}

/// Work that an agent offers to another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handoff {
    /// The agent.
    pub from: String,
    /// The other one.
    pub to: String,
    /// Its tasks: `PLAN/NAME`.
    pub tasks: Vec<String>,
    /// Its leases, by number.
    pub leases: Vec<u64>,
    /// Where to continue.
    pub next_step: String,
    /// A remark.
    pub note: String,
    /// When the offer lapses.
    pub until: Timestamp,
}

/// A past fact that an agent should hear once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct News {
    /// Its number in the repository.
    pub number: u64,
    /// The agent.
    pub agent: String,
    /// The fact.
    pub fact: LeaseNews,
}

/// A past fact about leases and handoffs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum LeaseNews {
    /// A waiting request was granted.
    Granted { targets: Vec<Target> },
    /// A lease expired, or was ended by this person.
    Lost { lease: u64, target: Target, by: Option<String> },
    /// A holder that was asked to release keeps its leases.
    Kept { by: String, until: Timestamp, note: String },
    /// An offer was accepted or refused.
    Answered { handoff: u64, by: String, is_accepted: bool, note: String },
    /// Another agent changed a file under its lease, or somebody whom nobody saw.
    Edited { lease: u64, path: String, by: Option<String>, is_at_risk: bool },
    /// A command of git of another agent or a person committed or changed files under its lease.
    Committed { lease: u64, paths: Vec<String>, commit: Commit },
}

/// An event of the leases of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum LeaseEvent {
    /// A request was granted. Its leases are numbered from `first`, in the order of its targets.
    LeasesGranted {
        first: u64,
        request: Request,
        until: Timestamp,
        /// The number of the waiting request, if it had to wait.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waited: Option<u64>,
        /// At most [`BLOCKED_MAX`](super::BLOCKED_MAX).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        merge_risks: Vec<MergeRisk>,
    },
    /// A request waits for other leases to end.
    LeasesQueued { waiting: u64, request: Request, until: Timestamp },
    /// Requests stopped waiting.
    WaitingEnded { waiting: Vec<u64> },
    /// The holders in the way of a request were asked to release by a deadline. It waits longer.
    ReleaseRequested { waiting: u64, of: Vec<String>, deadline: Timestamp, until: Timestamp },
    /// One of them has answered.
    ReleaseAnswered { waiting: u64, agent: String, answer: ReleaseAnswer, note: String },
    /// Agents wait for each other.
    DeadlockDetected(Deadlock),
    /// An agent offers its work to another one.
    HandoffOffered { handoff: u64, offer: Handoff, at: Timestamp },
    /// The other one has answered, or the first has withdrawn the offer.
    HandoffAnswered { handoff: u64, agent: String, is_accepted: bool, note: String },
    /// Offers lapsed.
    HandoffsEnded { handoffs: Vec<u64> },
    /// Leases went to another agent, numbered from `first` in their order.
    LeasesTransferred { leases: Vec<u64>, first: u64, to: String, at: Timestamp },
    /// The holder asked for more time.
    LeasesExtended { leases: Vec<u64>, until: Timestamp },
    /// The holder released them.
    LeasesReleased { agent: String, leases: Vec<u64> },
    /// Their time was up.
    LeasesExpired { leases: Vec<u64>, at: Timestamp },
    /// Their holder is dead.
    LeasesAbandoned { agent: String, leases: Vec<u64> },
    /// A person ended them.
    LeasesForced { leases: Vec<u64>, by: String, reason: String },
    /// An edit was refused because of a lease.
    EditRefused { holder: LeaseHolder, target: Target, lease: u64, at: Timestamp },
    /// A file was changed without a lease, or under another's.
    UnleasedEdit {
        worktree: String,
        path: String,
        /// Unset if a watcher saw the change: it cannot know who made it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// The lease of another that covers the file, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lease: Option<u64>,
        /// True if the holder's work in the file was not committed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_at_risk: bool,
        at: Timestamp,
    },
    /// An agent committed files, or anybody files that an agent leases; or another command of git changed files that another
    /// leases.
    FilesCommitted { commit: Commit, files: Vec<CommittedFile>, at: Timestamp },
}

impl MqEvent for LeaseEvent {}

/// A command to the leases of a repository; `now` is log time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum LeaseCommand {
    /// Grant a request, or queue it if it may wait.
    Reserve { request: Request, turn: Turn, now: Timestamp },
    /// Queue a request, and ask the holders in its way to release by a deadline.
    RequestRelease { request: Request, deadline: Timestamp, now: Timestamp },
    /// A holder answers.
    AnswerRelease { agent: String, waiting: u64, answer: ReleaseAnswer, note: String, now: Timestamp },
    /// An agent offers its work to another one.
    OfferHandoff { offer: Handoff, now: Timestamp },
    /// The other one accepts or refuses, or the first withdraws the offer.
    AnswerHandoff { handoff: u64, agent: String, accepts: bool, note: String, now: Timestamp },
    /// The holder asks for more time, counted from now.
    Extend { agent: String, which: Which, by: Duration, now: Timestamp },
    /// The holder releases them. If it releases all, its waiting requests end too.
    Release { agent: String, which: Which, now: Timestamp },
    /// The holder is proven dead, or has left. Its waiting requests and its leases up to this number end.
    Abandon { agent: String, up_to: u64, now: Timestamp },
    /// A person ends them.
    Force { leases: Vec<u64>, by: String, reason: String, now: Timestamp },
    /// End leases and waiting requests whose time is up.
    Expire { now: Timestamp },
    /// An edit was refused: recorded once for each holder, target and lease.
    RefuseEdit { holder: LeaseHolder, target: Target, lease: u64, now: Timestamp },
    /// A file was changed: recorded when the agent holds no lease on it.
    SeeEdit { worktree: String, path: Target, agent: Option<String>, now: Timestamp },
    /// A file was changed under the lease of another.
    SeeForeignEdit { edit: ForeignEdit, now: Timestamp },
    /// A command of git committed or changed these files.
    SeeCommit { commit: Commit, paths: Vec<Target>, now: Timestamp },
}

/// The commit that a command of git has made or moved to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Its id.
    pub id: String,
    /// The command.
    pub how: GitChange,
    /// The worktree.
    pub worktree: String,
    /// The agent that ran it; unset for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Its task: `PLAN/NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

/// A command of git that changes files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GitChange {
    /// It made the commit.
    Commit,
    /// It moved to another branch or commit.
    Checkout,
    /// It merged the commit.
    Merge,
    /// It made the commits of a branch again.
    Rebase,
}

/// A file of a commit, with the lease on it at that time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommittedFile {
    /// The file.
    pub path: String,
    /// The lease, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<CommittedLease>,
}

/// A lease on a committed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommittedLease {
    /// Its number.
    pub lease: u64,
    /// Its fencing token.
    pub token: Position,
    /// Its holder.
    pub holder: String,
    /// The task that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

/// A change of a file under the lease of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignEdit {
    /// The worktree.
    pub worktree: String,
    /// The file.
    pub path: Target,
    /// Its author, if known.
    pub agent: Option<String>,
    /// The lease.
    pub lease: u64,
    /// True if the holder's work in the file was not committed.
    pub is_at_risk: bool,
}

/// Some of an agent's leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// All.
    All,
    /// Those that it took for a task.
    OfTask(String),
    /// Those with these numbers.
    Numbers(Vec<u64>),
}

impl LeaseEvent {
    /// The time of the decision, if the event has it.
    pub(super) fn at(&self) -> Option<Timestamp> {
        match self {
            Self::LeasesGranted { request, until, .. } => {
                let ttl = i64::try_from(request.ttl.as_micros()).unwrap_or(i64::MAX);
                Some(Timestamp(until.0.saturating_sub(ttl)))
            }
            Self::LeasesExpired { at, .. }
            | Self::EditRefused { at, .. }
            | Self::UnleasedEdit { at, .. }
            | Self::FilesCommitted { at, .. }
            | Self::DeadlockDetected(Deadlock { at, .. })
            | Self::HandoffOffered { at, .. }
            | Self::LeasesTransferred { at, .. } => Some(*at),
            Self::LeasesQueued { .. }
            | Self::WaitingEnded { .. }
            | Self::ReleaseRequested { .. }
            | Self::ReleaseAnswered { .. }
            | Self::HandoffAnswered { .. }
            | Self::HandoffsEnded { .. }
            | Self::LeasesExtended { .. }
            | Self::LeasesReleased { .. }
            | Self::LeasesAbandoned { .. }
            | Self::LeasesForced { .. } => None,
        }
    }

    /// The agent whose request waits from now on, or that gets leases.
    pub(super) fn gains(&self) -> Option<&str> {
        match self {
            Self::LeasesGranted { request, .. } | Self::LeasesQueued { request, .. } => Some(&request.holder.agent),
            Self::LeasesTransferred { to, .. } => Some(to),
            _another => None,
        }
    }

    /// The leases and the waiting requests that it ends.
    pub(super) fn ends(&self) -> (&[u64], &[u64]) {
        match self {
            Self::WaitingEnded { waiting } => (&[], waiting),
            Self::LeasesReleased { leases, .. }
            | Self::LeasesExpired { leases, .. }
            | Self::LeasesAbandoned { leases, .. }
            | Self::LeasesForced { leases, .. }
            | Self::LeasesTransferred { leases, .. } => (leases, &[]),
            Self::LeasesGranted { .. }
            | Self::LeasesQueued { .. }
            | Self::ReleaseRequested { .. }
            | Self::ReleaseAnswered { .. }
            | Self::DeadlockDetected(_)
            | Self::HandoffOffered { .. }
            | Self::HandoffAnswered { .. }
            | Self::HandoffsEnded { .. }
            | Self::LeasesExtended { .. }
            | Self::EditRefused { .. }
            | Self::UnleasedEdit { .. }
            | Self::FilesCommitted { .. } => (&[], &[]),
        }
    }
}

impl LeaseCommand {
    pub(super) fn now(&self) -> Timestamp {
        match self {
            Self::Reserve { now, .. }
            | Self::RequestRelease { now, .. }
            | Self::AnswerRelease { now, .. }
            | Self::OfferHandoff { now, .. }
            | Self::AnswerHandoff { now, .. }
            | Self::Extend { now, .. }
            | Self::Release { now, .. }
            | Self::Abandon { now, .. }
            | Self::Force { now, .. }
            | Self::Expire { now }
            | Self::RefuseEdit { now, .. }
            | Self::SeeEdit { now, .. }
            | Self::SeeForeignEdit { now, .. }
            | Self::SeeCommit { now, .. } => *now,
        }
    }
}
