//! The prompts of agents, rendered from the fold of a plan when a task is about to be claimed, or again from its history.

use crewlog_mq::{Error, EventStore, Handler, Query, Range};
use crewlog_planner::claim::PromptDigest;
use crewlog_planner::event;
use crewlog_planner::plan::TaskId;
use crewlog_planner::planner::Planner;
use crewlog_planner::prompt;
use crewlog_planner::state::PlannerState;
use futures::TryStreamExt;
use sha2::{Digest, Sha256};

use crate::history::History;
use crate::programs::hex;

/// A prompt that cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// The log failed, or has an unreadable event.
    #[error(transparent)]
    Log(#[from] Error),
    /// Commands, questions and missing tasks have no prompt.
    #[error("task {task} has no prompt: it is a command or a question, or it does not exist")]
    NotForAgents {
        /// The name of the task.
        task: String,
    },
}

/// A prompt as an agent gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The text.
    pub text: String,
    /// The events of the plan's history that it was rendered from.
    pub n_events: u64,
    /// Its last section, if an earlier run was cut short.
    pub cut_short: Option<String>,
}

impl Rendered {
    /// The prompt of a task from the fold of its plan; none for a command or a question.
    pub(crate) fn of(state: &PlannerState, task: TaskId) -> Option<Self> {
        let text = prompt::render(state, state.task(task)?)?;
        Some(Self { text, n_events: state.n_events, cut_short: None })
    }

    /// With its last section, if an earlier run was cut short.
    pub(crate) fn after(&self, cut_short: Option<String>) -> Self {
        let text = format!("{}{}", self.text, cut_short.as_deref().unwrap_or_default());
        Self { text, cut_short, ..*self }
    }

    /// Its record in the log.
    #[must_use]
    pub fn digest(&self) -> PromptDigest {
        let sha256 = hex(&Sha256::digest(self.text.as_bytes()));
        PromptDigest {
            sha256,
            n_chars: self.text.chars().count() as u64,
            n_events: self.n_events,
            cut_short: self.cut_short.clone(),
        }
    }
}

/// The prompt of a task from the events of its plan's history in a range; that of a run, if its record is given.
///
/// # Errors
/// [`PromptError`].
pub async fn prompt_of(
    store: &EventStore,
    plan: &str,
    task: TaskId,
    recorded: Option<&PromptDigest>,
    range: Range,
) -> Result<Rendered, PromptError> {
    let history = History::of(store, plan).await?;
    let mut records = std::pin::pin!(history.records(store, &Query::stream(event::STREAM), range));
    let mut planner = Planner::default();
    while recorded.is_none_or(|recorded| planner.state().n_events < recorded.n_events)
        && let Some(recorded) = records.try_next().await?
    {
        planner.apply(&recorded.decode()?);
    }
    let state = planner.state();
    let rendered =
        Rendered::of(state, task).map(|rendered| rendered.after(recorded.and_then(|it| it.cut_short.clone())));
    rendered.ok_or_else(|| PromptError::NotForAgents { task: state.name(task) })
}
