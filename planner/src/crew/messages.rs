//! Messages between the agents of a project. A message informs and has no authority: it changes nothing by itself.
//!
//! A message is identified by its position in the log, so two sent at the same moment stay separate. The state holds
//! messages that are not yet read or acknowledged; the texts are in the log.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crewlog_mq::{Event as MqEvent, Handler, Position, Snapshot, Timestamp};
use serde::{Deserialize, Serialize};

use super::CrewError;
use super::refusal::check_length;

/// The stream of messages. An aggregate of it is a project.
pub const STREAM: &str = "messages";
/// The longest body, in bytes.
pub const BODY_BYTES_MAX: usize = 16_384;
/// The longest subject, in bytes.
pub const SUBJECT_BYTES_MAX: usize = 200;
/// The most recipients of a message.
pub const RECIPIENTS_MAX: usize = 200;
/// The most unread messages of one agent.
pub const UNREAD_MAX: usize = 1_000;
/// The most of them from one agent and its subagents.
pub const UNREAD_FROM_ONE_MAX: usize = 200;
/// The most messages that are not yet read and acknowledged by all their recipients.
pub const OPEN_MAX: usize = 20_000;
/// The most of them from one agent and its subagents.
pub const OPEN_FROM_ONE_MAX: usize = 5_000;
/// Of each of these, how many are kept for urgent messages. Of those that count for all senders, as many again are kept for
/// people.
pub const KEPT: usize = 50;
/// How long an acknowledgement may take before it is overdue.
pub const ACK_WITHIN: Duration = Duration::from_secs(1_800);

/// How urgent a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[derive(Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Importance {
    Low,
    #[default]
    Normal,
    High,
    Urgent,
}

/// A message.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// The agent that sent it, or the person.
    pub from: Sender,
    /// The recipients.
    pub to: BTreeSet<String>,
    /// The subject, in one line.
    pub subject: String,
    /// The text.
    pub body: String,
    /// The first message of its thread; unset for that itself.
    pub thread: Option<Position>,
    /// How urgent it is.
    #[serde(default)]
    pub importance: Importance,
    /// True if each recipient has to acknowledge it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_ack: bool,
}

/// The sender of a message.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sender {
    /// An agent, by name.
    Agent(String),
    /// A person, by name.
    Person(String),
}

impl Sender {
    /// The name of the agent or person.
    #[must_use]
    pub fn name(&self) -> &str {
        let (Self::Agent(name) | Self::Person(name)) = self;
        name
    }
}

/// An event of messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum MessageEvent {
    /// It was sent.
    MessageSent { message: Message, at: Timestamp },
    /// An agent was notified of its unread messages, up to this one.
    MessagesOffered { agent: String, up_to: Position, at: Timestamp },
    /// An agent received the texts.
    MessagesRead { agent: String, messages: BTreeSet<Position>, at: Timestamp },
    /// An agent acknowledged a message.
    MessageAcked { agent: String, message: Position, note: String, at: Timestamp },
}

impl MqEvent for MessageEvent {}

/// A command to the messages of a project; `now` is log time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum MessageCommand {
    /// Send it.
    Send { message: Message, now: Timestamp },
    /// Notify an agent of its unread messages.
    Offer { agent: String, now: Timestamp },
    /// An agent receives these.
    Read { agent: String, messages: BTreeSet<Position>, now: Timestamp },
    /// An agent acknowledges one.
    Ack { agent: String, message: Position, note: String, now: Timestamp },
}

/// A message that someone has yet to read or acknowledge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the other fields are those of the message")]
pub struct OpenMessage {
    pub from: Sender,
    pub subject: String,
    pub importance: Importance,
    /// The agents that have not read it.
    pub unread: BTreeSet<String>,
    /// The agents that have not acknowledged it.
    pub unacked: BTreeSet<String>,
    /// When it was sent.
    pub at: Timestamp,
}

/// The open messages of a project.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Messages {
    open: BTreeMap<Position, OpenMessage>,
    unread: BTreeMap<String, BTreeSet<Position>>,
    offered: BTreeMap<String, Position>,
    /// The sent message of each event, or `None`, until the event's position is known.
    #[serde(skip)]
    unplaced: VecDeque<Option<OpenMessage>>,
}

impl Snapshot for Messages {
    const FOLD: &'static str = "messages";
    const VERSION: u32 = 1;
}

impl Messages {
    /// The unread messages of an agent, the oldest first.
    pub fn unread(&self, agent: &str) -> impl DoubleEndedIterator<Item = Position> {
        self.unread.get(agent).into_iter().flatten().copied()
    }

    /// The last message that an agent was notified of.
    #[must_use]
    pub fn offered_up_to(&self, agent: &str) -> Position {
        self.offered.get(agent).copied().unwrap_or_default()
    }

    /// The number of unread messages it has not been notified of.
    #[must_use]
    pub fn n_new(&self, agent: &str) -> usize {
        let offered = self.offered_up_to(agent);
        self.unread(agent).filter(|message| *message > offered).count()
    }

    /// An open message.
    #[must_use]
    pub fn get(&self, message: Position) -> Option<&OpenMessage> {
        self.open.get(&message)
    }

    /// The messages that an agent has to acknowledge.
    pub fn acks_due(&self, agent: &str) -> impl Iterator<Item = Position> {
        self.open.iter().filter(move |(_, open)| open.unacked.contains(agent)).map(|(message, _)| *message)
    }

    /// Messages whose acknowledgement is overdue.
    pub fn overdue(&self, now: Timestamp) -> impl Iterator<Item = (Position, &OpenMessage)> {
        let is_overdue = move |open: &OpenMessage| !open.unacked.is_empty() && open.at.plus(ACK_WITHIN) <= now;
        self.open.iter().filter(move |(_, open)| is_overdue(open)).map(|(message, open)| (*message, open))
    }

    fn check(&self, message: &Message) -> Result<(), CrewError> {
        if message.to.is_empty() || message.subject.trim().is_empty() {
            return Err(CrewError::Invalid("a message needs a recipient and a subject".to_owned()));
        }
        check_length("the list of recipients", message.to.len(), RECIPIENTS_MAX)?;
        check_length("the subject", message.subject.len(), SUBJECT_BYTES_MAX)?;
        check_length("the body", message.body.len(), BODY_BYTES_MAX)?;
        let is_urgent = message.importance == Importance::Urgent;
        let (sender, kept, kept_of_own) = match &message.from {
            Sender::Person(_) => (None, 0, 0),
            Sender::Agent(name) if is_urgent => (Some(family(name)), KEPT, 0),
            Sender::Agent(name) => (Some(family(name)), 2 * KEPT, KEPT),
        };
        let is_own = |open: &&OpenMessage| matches!(&open.from, Sender::Agent(name) if Some(family(name)) == sender);
        let check = |open: &[&OpenMessage], all_max: usize, own_max: usize, where_: &str, limit: &str| {
            if open.len() >= all_max - kept {
                return Err(CrewError::Full(format!("{where_} {} messages that are open ({limit}_max)", open.len())));
            }
            let n_own = open.iter().copied().filter(is_own).count();
            let Some(sender) = sender.filter(|_| n_own >= own_max - kept_of_own) else { return Ok(()) };
            let says = format!("{where_} {n_own} messages of {sender} that are open ({limit}_from_one_max)");
            Err(CrewError::Full(format!("{says}: wait until some are read")))
        };
        let open: Vec<_> = self.open.values().chain(self.unplaced.iter().flatten()).collect();
        check(&open, OPEN_MAX, OPEN_FROM_ONE_MAX, "there are", "open")?;
        for agent in &message.to {
            let placed = self.unread(agent).filter_map(|message| self.open.get(&message));
            let unplaced = self.unplaced.iter().flatten().filter(|open| open.unread.contains(agent));
            let unread: Vec<_> = placed.chain(unplaced).collect();
            check(&unread, UNREAD_MAX, UNREAD_FROM_ONE_MAX, &format!("{agent} has"), "unread")?;
        }
        Ok(())
    }

    /// A message that everyone has read and acknowledged is no longer open.
    fn read(&mut self, agent: &str, message: Position) {
        if let Some(unread) = self.unread.get_mut(agent) {
            unread.remove(&message);
            if unread.is_empty() {
                self.unread.remove(agent);
            }
        }
        if let Some(open) = self.open.get_mut(&message) {
            open.unread.remove(agent);
            if open.unread.is_empty() && open.unacked.is_empty() {
                self.open.remove(&message);
            }
        }
    }
}

impl Handler for Messages {
    type Command = MessageCommand;
    type Event = MessageEvent;
    type Error = CrewError;

    fn decide(&self, command: MessageCommand) -> Result<Vec<MessageEvent>, CrewError> {
        match command {
            MessageCommand::Send { message, now } => {
                self.check(&message)?;
                Ok(vec![MessageEvent::MessageSent { message, at: now }])
            }
            MessageCommand::Offer { agent, now } => {
                let up_to = self.unread(&agent).next_back().filter(|_| self.n_new(&agent) > 0);
                Ok(up_to.map(|up_to| MessageEvent::MessagesOffered { agent, up_to, at: now }).into_iter().collect())
            }
            MessageCommand::Read { agent, mut messages, now } => {
                messages.retain(|message| self.unread.get(&agent).is_some_and(|unread| unread.contains(message)));
                let is_news = !messages.is_empty();
                Ok(is_news.then_some(MessageEvent::MessagesRead { agent, messages, at: now }).into_iter().collect())
            }
            MessageCommand::Ack { agent, message, note, now } => {
                check_length("the note", note.len(), SUBJECT_BYTES_MAX)?;
                match self.open.get(&message) {
                    Some(open) if open.unacked.contains(&agent) => {
                        Ok(vec![MessageEvent::MessageAcked { agent, message, note, at: now }])
                    }
                    Some(_) | None => {
                        Err(CrewError::Missing(format!("message {message} needs no acknowledgement from you")))
                    }
                }
            }
        }
    }

    fn apply(&mut self, event: &MessageEvent) {
        let mut sent = None;
        match event {
            MessageEvent::MessageSent { message, at } => {
                sent = Some(OpenMessage {
                    from: message.from.clone(),
                    subject: message.subject.clone(),
                    importance: message.importance,
                    unread: message.to.clone(),
                    unacked: if message.needs_ack { message.to.clone() } else { BTreeSet::new() },
                    at: *at,
                });
            }
            MessageEvent::MessagesOffered { agent, up_to, .. } => {
                self.offered.insert(agent.clone(), *up_to);
            }
            MessageEvent::MessagesRead { agent, messages, .. } => {
                messages.iter().for_each(|message| self.read(agent, *message));
            }
            MessageEvent::MessageAcked { agent, message, .. } => {
                if let Some(open) = self.open.get_mut(message) {
                    open.unacked.remove(agent);
                }
                // An acknowledged message has been read.
                self.read(agent, *message);
            }
        }
        self.unplaced.push_back(sent);
    }

    fn placed(&mut self, position: Position) {
        let Some(open) = self.unplaced.pop_front().flatten() else { return };
        for agent in &open.unread {
            self.unread.entry(agent.clone()).or_default().insert(position);
        }
        self.open.insert(position, open);
    }
}

/// The agent that an agent and its siblings stem from.
fn family(agent: &str) -> &str {
    agent.split('/').next().unwrap_or(agent)
}

#[cfg(test)]
mod tests;
