//! A request from one agent to another: asked, answered, expired or withdrawn; one aggregate for each.
//!
//! It is held to the rules before anybody is told of it. Time arrives in commands. An answer that comes late is
//! recorded, and changes nothing. Nothing here knows how an answer is found.

use crewlog_mq::{Event as MqEvent, Handler, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

use crate::plan::ParentTask;
use crate::protocol::{Abilities, Ability, AgentResponse, Asking, RESPONSE_BYTES_MAX, RequestError, check_request};

/// The stream of all requests; an aggregate of it is one request, and its id the correlation of question and answer.
pub const STREAM: &str = "requests";

/// The id of the request that a dispatch of a task makes.
#[must_use]
pub fn request_id(task: &ParentTask) -> String {
    format!("{}/{}/{}", task.plan, task.task, task.attempt)
}

/// What happened to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestEvent {
    /// It was taken in.
    AgentRequested {
        /// By which question and answer belong together.
        correlation: String,
        /// The task that waits for the answer.
        task: ParentTask,
        /// Who asks whom for what.
        asking: Asking,
        /// Until when an answer counts, in log time.
        until: Timestamp,
    },
    /// It has its answer.
    AgentAnswered {
        /// By which question and answer belong together.
        correlation: String,
        /// What came of it.
        response: AgentResponse,
    },
    /// Nobody answered in time.
    RequestTimedOut {
        /// By which question and answer belong together.
        correlation: String,
    },
    /// An answer came when it no longer counted.
    LateAnswer {
        /// By which question and answer belong together.
        correlation: String,
        /// What it was.
        response: AgentResponse,
    },
    /// The answer is no longer wanted.
    RequestWithdrawn {
        /// By which question and answer belong together.
        correlation: String,
        /// Why.
        reason: String,
    },
}

impl MqEvent for RequestEvent {
    const EVENT_VERSION: &'static str = "1.0";

    fn event_type(&self) -> &'static str {
        match self {
            Self::AgentRequested { .. } => "AgentRequested",
            Self::AgentAnswered { .. } => "AgentAnswered",
            Self::RequestTimedOut { .. } => "RequestTimedOut",
            Self::LateAnswer { .. } => "LateAnswer",
            Self::RequestWithdrawn { .. } => "RequestWithdrawn",
        }
    }
}

/// What a request is asked. It is kept whole: most of it is short, and an answer is bounded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestCommand {
    /// Take it in.
    Ask {
        /// The task that waits for the answer.
        task: ParentTask,
        /// Who asks whom for what.
        asking: Asking,
        /// What the other answers.
        answers: BTreeSet<Ability>,
        /// Log time.
        now: Timestamp,
    },
    /// Take in an answer.
    Answer {
        /// The answer.
        response: AgentResponse,
        /// Log time.
        now: Timestamp,
    },
    /// Time has gone on.
    Tick {
        /// Log time.
        now: Timestamp,
    },
    /// The answer is no longer wanted.
    Withdraw {
        /// Why.
        reason: String,
    },
}

impl RequestCommand {
    /// What has to be kept of it, for [`crewlog_mq::Cause::keeping`]: all of it.
    #[must_use]
    pub fn recorded(&self) -> Value {
        serde_json::to_value(self).expect("names, numbers and texts can always be written as JSON")
    }
}

/// Why a request refuses a command; it is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestRefused {
    /// It breaks a rule.
    #[error(transparent)]
    Rule(#[from] RequestError),
    /// Nothing was asked.
    #[error("there is no such request")]
    NotAsked,
    /// Something else was asked under this id.
    #[error("this request was made already, and asked for something else")]
    AskedOtherwise,
    /// The answer is too long.
    #[error("the answer has {value} bytes, and response_bytes_max is {max}: put it into a file and name that")]
    AnswerTooLong {
        /// Its length.
        value: usize,
        /// The limit.
        max: usize,
    },
}

/// How a request stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// An answer is awaited.
    Open,
    /// It has its answer.
    Answered(AgentResponse),
    /// Nobody answered in time.
    TimedOut,
    /// The answer is no longer wanted.
    Withdrawn,
}

/// What was asked, and how it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The task that waits for the answer.
    pub task: ParentTask,
    /// Who asks whom for what.
    pub asking: Asking,
    /// Until when an answer counts, in log time.
    pub until: Timestamp,
    /// How it stands.
    pub standing: Standing,
    late: Vec<AgentResponse>,
}

impl Asked {
    /// By which question and answer belong together.
    #[must_use]
    pub fn correlation(&self) -> String {
        request_id(&self.task)
    }

    /// The answers that came when they no longer counted.
    #[must_use]
    pub fn late(&self) -> &[AgentResponse] {
        &self.late
    }
}

/// A request from one agent to another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    asked: Option<Asked>,
}

/// The most late answers that are recorded of one request.
pub const LATE_ANSWERS_MAX: usize = 16;

impl Request {
    /// What was asked, and how it stands.
    #[must_use]
    pub fn asked(&self) -> Option<&Asked> {
        self.asked.as_ref()
    }

    fn decide(&self, command: RequestCommand) -> Result<Vec<RequestEvent>, RequestRefused> {
        match (command, &self.asked) {
            (RequestCommand::Ask { task, asking, answers, now }, None) => {
                let abilities = Abilities::from([(asking.step.target_agent, answers)]);
                check_request(asking.from, &asking.step, &abilities)?;
                let until = now.plus(Duration::from_millis(asking.step.timeout_ms));
                let correlation = request_id(&task);
                Ok(vec![RequestEvent::AgentRequested { correlation, task, asking, until }])
            }
            // Somebody asks again after a crash: it stands as it stood, and its time runs on.
            (RequestCommand::Ask { task, asking, .. }, Some(asked)) => {
                let is_same = task == asked.task && asking == asked.asking;
                if is_same { Ok(Vec::new()) } else { Err(RequestRefused::AskedOtherwise) }
            }
            (RequestCommand::Answer { .. } | RequestCommand::Tick { .. } | RequestCommand::Withdraw { .. }, None) => {
                Err(RequestRefused::NotAsked)
            }
            (RequestCommand::Answer { response, now }, Some(asked)) => asked.answer(response, now),
            (RequestCommand::Tick { now }, Some(asked)) => Ok(asked.expired(now).into_iter().collect()),
            (RequestCommand::Withdraw { reason }, Some(asked)) => Ok(match asked.standing {
                Standing::Open => vec![RequestEvent::RequestWithdrawn { correlation: asked.correlation(), reason }],
                Standing::Answered(_) | Standing::TimedOut | Standing::Withdrawn => Vec::new(),
            }),
        }
    }
}

impl Asked {
    fn expired(&self, now: Timestamp) -> Option<RequestEvent> {
        let is_over = self.standing == Standing::Open && self.until <= now;
        is_over.then(|| RequestEvent::RequestTimedOut { correlation: self.correlation() })
    }

    fn answer(&self, response: AgentResponse, now: Timestamp) -> Result<Vec<RequestEvent>, RequestRefused> {
        let (AgentResponse::Answer { text } | AgentResponse::Refusal { reason: text }) = &response;
        if text.len() > RESPONSE_BYTES_MAX {
            return Err(RequestRefused::AnswerTooLong { value: text.len(), max: RESPONSE_BYTES_MAX });
        }
        let is_known = self.standing == Standing::Answered(response.clone()) || self.late.contains(&response);
        if is_known || self.late.len() >= LATE_ANSWERS_MAX {
            return Ok(Vec::new());
        }
        let correlation = self.correlation();
        let expired = self.expired(now);
        if self.standing == Standing::Open && expired.is_none() {
            return Ok(vec![RequestEvent::AgentAnswered { correlation, response }]);
        }
        Ok(expired.into_iter().chain([RequestEvent::LateAnswer { correlation, response }]).collect())
    }
}

impl Handler for Request {
    type Command = RequestCommand;
    type Event = RequestEvent;
    type Error = RequestRefused;

    fn process(&mut self, command: RequestCommand) -> Result<Vec<RequestEvent>, RequestRefused> {
        let events = self.decide(command)?;
        for event in &events {
            self.apply(event);
        }
        Ok(events)
    }

    fn apply(&mut self, event: &RequestEvent) {
        match (event, &mut self.asked) {
            (RequestEvent::AgentRequested { task, asking, until, .. }, asked) => {
                let (task, asking, until) = (task.clone(), asking.clone(), *until);
                *asked = Some(Asked { task, asking, until, standing: Standing::Open, late: Vec::new() });
            }
            (RequestEvent::AgentAnswered { response, .. }, Some(asked)) => {
                asked.standing = Standing::Answered(response.clone());
            }
            (RequestEvent::RequestTimedOut { .. }, Some(asked)) => asked.standing = Standing::TimedOut,
            (RequestEvent::RequestWithdrawn { .. }, Some(asked)) => asked.standing = Standing::Withdrawn,
            (RequestEvent::LateAnswer { response, .. }, Some(asked)) => asked.late.push(response.clone()),
            // Of what was never asked; the log is trusted, and nothing of it is read here.
            (
                RequestEvent::AgentAnswered { .. }
                | RequestEvent::RequestTimedOut { .. }
                | RequestEvent::RequestWithdrawn { .. }
                | RequestEvent::LateAnswer { .. },
                None,
            ) => {}
        }
    }
}
