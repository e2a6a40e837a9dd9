//! Sending and reading messages. Roles and `everyone` are resolved to agents when a message is sent.

use std::collections::BTreeSet;

use crewlog_mq::{Append, CellChange, Error, Position, Query, Range, Recorded, Timestamp};
use crewlog_planner::crew::agents::{Agent, Agents, Liveness};
use crewlog_planner::crew::messages::{self, Message, MessageCommand, MessageEvent, Messages, Sender};
use crewlog_planner::crew::names::EVERYONE;

use serde::Serialize;

use super::Refusal;
use super::state::{Caller, Crew};

/// Messages read at a time from the log.
const PAGE: usize = 200;
/// The space of cells with the last message for which each agent was woken.
const WOKEN: &str = "woken";

/// A message, as one reader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// Its id.
    pub position: Position,
    /// The message.
    pub message: Message,
    /// When it was sent.
    pub at: Timestamp,
    /// How far it has come to this reader.
    pub receipt: Receipt,
    /// True if this reader has yet to acknowledge it.
    pub ack_is_due: bool,
}

/// How far a message has come to a reader. It is read once the reader has taken its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Receipt {
    Sent,
    /// A hook has told the reader of it.
    Offered,
    /// The reader's turn was started for it.
    Woken,
    Read,
}

impl Crew {
    /// Sends an agent's message, like [`Crew::deliver`].
    pub async fn send(&self, caller: &Caller, message: Message) -> Result<(Position, BTreeSet<String>), Refusal> {
        self.present(caller).await?;
        self.deliver(message).await
    }

    /// Sends a message to agents by name, by capability or to [`EVERYONE`]. Its thread may be named by any message of
    /// it. Returns its id and its recipients.
    ///
    /// # Errors
    /// An unknown recipient, or a refusal by [`Messages`].
    pub async fn deliver(&self, mut message: Message) -> Result<(Position, BTreeSet<String>), Refusal> {
        let to = recipients(&*self.agents().await?, &message.to, &message.from)?;
        message.to.clone_from(&to);
        if let Some(position) = message.thread {
            message.thread = Some(self.thread_of(position).await?);
        }
        let command = MessageCommand::Send { message, now: self.store.now() };
        let position = self.messages.execute(command, |_, executed| executed.position).await?;
        Ok((position, to))
    }

    /// The first message of the thread that a message belongs to.
    async fn thread_of(&self, position: Position) -> Result<Position, Refusal> {
        let before = Position(position.0.saturating_sub(1));
        let page = self.store.read(&self.sent(), Range::between(before, position), 1).await?;
        match page.events.first().map(Recorded::decode).transpose()? {
            Some(MessageEvent::MessageSent { message, .. }) => Ok(message.thread.unwrap_or(position)),
            _none => Err(Refusal::NoTask(format!("there is no message {position}"))),
        }
    }

    fn sent(&self) -> Query {
        Query::aggregate(messages::STREAM, &self.project).of_type("MessageSent")
    }

    /// Records that an agent has read these messages.
    pub async fn mark_read(&self, caller: &Caller, messages: BTreeSet<Position>) -> Result<(), Refusal> {
        self.present(caller).await?;
        let command = MessageCommand::Read { agent: caller.agent.clone(), messages, now: self.store.now() };
        self.messages.execute(command, |_, _| ()).await
    }

    /// At most `limit` messages to an agent after a position, oldest first, now or as of a position; only unread ones
    /// if `unread_only`. They stay unread. The second value is true if there are more.
    pub async fn inbox(
        &self,
        agent: &str,
        unread_only: bool,
        after: Position,
        limit: usize,
        position: Option<Position>,
    ) -> Result<(Vec<Mail>, bool), Refusal> {
        let head = match position {
            Some(position) => position,
            None => self.messages().await?.position(),
        };
        let open: Messages = self.at(position).await?;
        let unread: BTreeSet<_> = open.unread(agent).collect();
        let due: BTreeSet<_> = open.acks_due(agent).collect();
        let offered = open.offered_up_to(agent);
        let woken = if unread.is_empty() { Position(0) } else { self.woken_up_to(agent).await? };
        // Start at the oldest unread one.
        let after = match unread.first().filter(|_| unread_only) {
            Some(first) => after.max(Position(first.0.saturating_sub(1))),
            None if unread_only => head,
            None => after,
        };
        let (mut found, mut rest, query) = (Vec::new(), Some(Range::between(after, head)), self.sent());
        while let Some(range) = rest {
            let page = self.store.read(&query, range, PAGE).await?;
            for recorded in &page.events {
                let MessageEvent::MessageSent { message, at } = recorded.decode()? else { continue };
                let position = recorded.position;
                let (is_unread, ack_is_due) = (unread.contains(&position), due.contains(&position));
                let receipt = match position {
                    _ if !is_unread => Receipt::Read,
                    _ if position <= woken => Receipt::Woken,
                    _ if position <= offered => Receipt::Offered,
                    _ => Receipt::Sent,
                };
                if !message.to.contains(agent) || (unread_only && !is_unread) {
                    continue;
                }
                if found.len() == limit {
                    return Ok((found, true));
                }
                found.push(Mail { position, message, at, receipt, ack_is_due });
            }
            rest = range.rest(&page);
        }
        Ok((found, false))
    }

    /// Records that an agent's turn was started for its messages up to this one, in a cell since nothing depends on it.
    pub async fn woke(&self, agent: &str, up_to: Position) -> Result<(), Error> {
        let cell = CellChange::set(WOKEN, &self.cell_of(agent), up_to.0.to_string());
        self.store.append(Append::default().cell(cell)).await.map(drop)
    }

    async fn woken_up_to(&self, agent: &str) -> Result<Position, Error> {
        let cell = self.store.cell(WOKEN, &self.cell_of(agent)).await?;
        Ok(Position(cell.and_then(|cell| cell.value.parse().ok()).unwrap_or_default()))
    }

    /// The unread messages of people to an agent.
    pub async fn unread_of_people(&self, agent: &str) -> Result<Vec<Position>, Refusal> {
        let unread = self.messages().await?.unread(agent).count();
        let mail = if unread == 0 { Vec::new() } else { self.inbox(agent, true, Position(0), unread, None).await?.0 };
        let of_people = mail.iter().filter(|mail| matches!(mail.message.from, Sender::Person(_)));
        Ok(of_people.map(|mail| mail.position).collect())
    }

    /// An agent acknowledges a message.
    ///
    /// # Errors
    /// A message that needs no acknowledgement from this agent.
    pub async fn ack(&self, caller: &Caller, message: Position, note: String) -> Result<(), Refusal> {
        self.present(caller).await?;
        let command = MessageCommand::Ack { agent: caller.agent.clone(), message, note, now: self.store.now() };
        self.messages.execute(command, |_, _| ()).await
    }

    /// Notifies an agent of its unread messages, and returns the number of new ones and of all unread ones.
    pub async fn offer(&self, agent: &str) -> Result<(usize, usize), Refusal> {
        let messages = self.messages().await?;
        let mut counted = (messages.n_new(agent), messages.unread(agent).count());
        drop(messages);
        if counted.0 > 0 {
            let command = MessageCommand::Offer { agent: agent.to_owned(), now: self.store.now() };
            // Another hook of the agent may have been faster.
            let is_offered = self.messages.execute(command, |_, executed| !executed.events.is_empty()).await?;
            counted.0 *= usize::from(is_offered);
        }
        Ok(counted)
    }
}

/// The agents for names, roles and [`EVERYONE`]. The sender is included only if named.
fn recipients(agents: &Agents, wanted: &BTreeSet<String>, from: &Sender) -> Result<BTreeSet<String>, Refusal> {
    let mut found = BTreeSet::new();
    for wanted in wanted {
        let is_sender = |name: &str| matches!(from, Sender::Agent(own) if own == name);
        let is_meant = |&(name, agent): &(&str, &Agent)| {
            let has_role = wanted == EVERYONE || agent.profile.capabilities.contains(wanted);
            name == wanted || (has_role && agent.liveness != Liveness::Left && !is_sender(name))
        };
        let mut meant = agents.iter().filter(is_meant).map(|(name, _)| name.to_owned()).peekable();
        if meant.peek().is_none() {
            return Err(Refusal::NoRecipient(wanted.clone()));
        }
        found.extend(meant);
    }
    Ok(found)
}
