//! Questions and requests for permission from the agents of a project. Only a person answers them.

use std::collections::BTreeMap;

use crewlog_mq::{Event as MqEvent, Handler, Snapshot, Timestamp};
use serde::{Deserialize, Serialize};

use super::CrewError;
use super::refusal::check_length;

/// The stream of questions and answers. An aggregate of it is a project.
pub const STREAM: &str = "asks";
/// The longest question, and the longest answer, in bytes.
pub const TEXT_BYTES_MAX: usize = 8_192;
/// The most choices of a question, each of at most [`CHOICE_BYTES_MAX`].
pub const CHOICES_MAX: usize = 10;
/// The longest choice, in bytes.
pub const CHOICE_BYTES_MAX: usize = 200;
/// The most unanswered questions of one agent.
pub const OPEN_MAX: usize = 20;
/// How many answers are kept for agents that ask for them later.
pub const ANSWERED_MAX: usize = 1_000;

/// The kind of answer wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[derive(Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Wanted {
    /// An answer in words.
    #[default]
    Answer,
    /// Yes or no, for something the agent may not do on its own.
    Permission,
}

/// A question of an agent.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The agent.
    pub agent: String,
    /// The kind of answer wanted.
    #[serde(default)]
    pub wanted: Wanted,
    /// The question, in its words.
    pub text: String,
    /// Suggested answers; others are allowed too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// The task that waits for the answer.
    pub task: Option<String>,
    /// A digest of the call of a tool about which the program's own dialog asks too.
    #[serde(default)]
    pub call: Option<String>,
}

/// An event of the questions of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum AskEvent {
    /// An agent asks the person.
    PersonAsked { number: u64, ask: Ask, at: Timestamp },
    /// A person answered.
    PersonAnswered { number: u64, answer: Answer, at: Timestamp },
    /// It no longer needs an answer.
    AskWithdrawn { number: u64, reason: String, at: Timestamp },
}

impl MqEvent for AskEvent {}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The person.
    pub by: String,
    /// The answer, in their words.
    pub text: String,
    /// For a permission: true if granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_granted: Option<bool>,
}

/// A command to the questions of a project; `now` is log time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum AskCommand {
    /// Ask the person. An open question is not asked again.
    Ask { ask: Ask, now: Timestamp },
    /// A person answers.
    Answer { number: u64, answer: Answer, now: Timestamp },
    /// The agent's questions no longer need an answer.
    Withdraw { agent: String, which: Withdrawn, reason: String, now: Timestamp },
}

/// The questions of an agent that no longer need an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Withdrawn {
    /// All.
    All,
    /// Those about calls of tools.
    Calls,
    /// That about this call.
    Call(String),
}

/// An unanswered question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenAsk {
    /// The question.
    pub ask: Ask,
    /// When it was asked.
    pub at: Timestamp,
}

/// The questions of a project.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Asks {
    open: BTreeMap<u64, OpenAsk>,
    answered: BTreeMap<u64, (Ask, Answer)>,
    n_asked: u64,
}

impl Snapshot for Asks {
    const FOLD: &'static str = "asks";
    const VERSION: u32 = 1;
}

impl Asks {
    /// Unanswered questions, the oldest first.
    pub fn open(&self) -> impl Iterator<Item = (u64, &OpenAsk)> {
        self.open.iter().map(|(number, open)| (*number, open))
    }

    /// An answered question with its answer.
    #[must_use]
    pub fn answer(&self, number: u64) -> Option<&(Ask, Answer)> {
        self.answered.get(&number)
    }

    /// The answered questions of an agent with their answers, the oldest first.
    pub fn answers_to(&self, agent: &str) -> impl Iterator<Item = (u64, &Ask, &Answer)> {
        let own = self.answered.iter().filter(move |(_, (ask, _))| ask.agent == agent);
        own.map(|(number, (ask, answer))| (*number, ask, answer))
    }

    /// The number of this question, if it is open.
    #[must_use]
    pub fn number_of(&self, ask: &Ask) -> Option<u64> {
        self.open.iter().find(|(_, open)| open.ask == *ask).map(|(number, _)| *number)
    }
}

fn check(ask: &Ask) -> Result<(), CrewError> {
    if ask.text.trim().is_empty() {
        return Err(CrewError::Invalid("a question needs a text".to_owned()));
    }
    check_length("the question", ask.text.len(), TEXT_BYTES_MAX)?;
    check_length("the list of choices", ask.choices.len(), CHOICES_MAX)?;
    ask.choices.iter().try_for_each(|choice| check_length("a choice", choice.len(), CHOICE_BYTES_MAX))
}

impl Handler for Asks {
    type Command = AskCommand;
    type Event = AskEvent;
    type Error = CrewError;

    fn decide(&self, command: AskCommand) -> Result<Vec<AskEvent>, CrewError> {
        match command {
            AskCommand::Ask { ask, now } => {
                check(&ask)?;
                if self.number_of(&ask).is_some() {
                    return Ok(Vec::new());
                }
                if self.open.values().filter(|open| open.ask.agent == ask.agent).count() >= OPEN_MAX {
                    let says = format!("{} already waits for {OPEN_MAX} answers (open_max)", ask.agent);
                    return Err(CrewError::Full(says));
                }
                Ok(vec![AskEvent::PersonAsked { number: self.n_asked + 1, ask, at: now }])
            }
            AskCommand::Answer { number, answer, now } => {
                check_length("the answer", answer.text.len(), TEXT_BYTES_MAX)?;
                let open = self.open.get(&number).ok_or_else(|| match number {
                    number if (1..=self.n_asked).contains(&number) => {
                        CrewError::Closed(format!("a{number} is answered or withdrawn already"))
                    }
                    _unknown => CrewError::Missing(format!("no agent has asked a question a{number}")),
                })?;
                if open.ask.wanted == Wanted::Permission && answer.is_granted.is_none() {
                    return Err(CrewError::Invalid(format!("{number} is a permission: say allow or deny")));
                }
                Ok(vec![AskEvent::PersonAnswered { number, answer, at: now }])
            }
            AskCommand::Withdraw { agent, which, reason, now } => {
                let is_meant = |ask: &Ask| match &which {
                    Withdrawn::All => true,
                    Withdrawn::Calls => ask.call.is_some(),
                    Withdrawn::Call(call) => ask.call.as_ref() == Some(call),
                };
                let own = self.open.iter().filter(|(_, open)| open.ask.agent == agent && is_meant(&open.ask));
                let event = |(number, _): (&u64, _)| AskEvent::AskWithdrawn {
                    number: *number,
                    reason: reason.clone(),
                    at: now,
                };
                Ok(own.map(event).collect())
            }
        }
    }

    fn apply(&mut self, event: &AskEvent) {
        match event {
            AskEvent::PersonAsked { number, ask, at } => {
                self.n_asked = *number;
                self.open.insert(*number, OpenAsk { ask: ask.clone(), at: *at });
            }
            AskEvent::PersonAnswered { number, answer, .. } => {
                if let Some(open) = self.open.remove(number) {
                    self.answered.insert(*number, (open.ask, answer.clone()));
                    if self.answered.len() > ANSWERED_MAX {
                        self.answered.pop_first();
                    }
                }
            }
            AskEvent::AskWithdrawn { number, .. } => {
                self.open.remove(number);
            }
        }
    }
}

#[cfg(test)]
mod tests;
