//! Planning by agents: each type plans with its own role and tools, by rule or by a model.
//!
//! There is no central planner. A plan is compiled and checked here before it is proposed; executors run it.

use std::sync::Arc;

use crewlog_mq::{Append, Cause, Error, EventStore, Expected, NewEvent};
use crewlog_planner::agents::failures::{self, PlanningEvent};
use crewlog_planner::agents::registry::ToolRegistry;
use crewlog_planner::agents::{AgentPlan, PlanError, plan_answer, plan_words, read_words};
use crewlog_planner::model::{ModelParameters, TooLong, agent_plan_request, read_agent_plan};
use crewlog_planner::plan::{Origin, Proposal, SubPlan};
use crewlog_planner::protocol::AgentType;
use crewlog_planner::sealed::is_undecryptable;

use crate::model::{Asker, NoAnswer};

/// The reason why an agent has no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanningError {
    /// The plan breaks a rule.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The words or the context are sealed, and the key is missing.
    #[error("the text to plan is sealed: name the file of the operator's key with --key-file")]
    Sealed,
    /// The planning thread ended without a result, which is a bug.
    #[error("planning ended without a result; this is a bug in crewlog")]
    Lost,
}

/// Planning by a model.
pub struct PlansByModel {
    /// The model and its settings.
    pub parameters: ModelParameters,
    /// Asks the model and records requests and answers. A repeated request is answered from the log.
    pub asker: Asker,
}

/// One agent of each type. They share only the log.
#[derive(Clone)]
pub struct Agents {
    registry: Arc<ToolRegistry>,
    model: Option<Arc<PlansByModel>>,
}

impl Agents {
    /// Agents with these tools that plan by rule.
    pub fn new(registry: ToolRegistry) -> Self {
        Self { registry: Arc::new(registry), model: None }
    }

    /// Plans by a model, and by rule if the model gives no valid plan.
    pub fn with_model(self, model: PlansByModel) -> Self {
        Self { model: Some(Arc::new(model)), ..self }
    }

    /// The plan that an agent makes from a text. `context` is the part of the parent plan in its prompt.
    ///
    /// # Errors
    /// [`PlanningError`]; it never panics.
    pub async fn plan(&self, agent: AgentType, words: &str, context: &str) -> Result<AgentPlan, PlanningError> {
        self.plan_asking(self.model.as_ref().map(|model| &model.asker), agent, words, context).await
    }

    async fn plan_asking(
        &self,
        asker: Option<&Asker>,
        agent: AgentType,
        words: &str,
        context: &str,
    ) -> Result<AgentPlan, PlanningError> {
        if is_undecryptable(words) || is_undecryptable(context) {
            return Err(PlanningError::Sealed);
        }
        if let Some(plan) = self.by_model(asker, agent, words, context).await {
            return Ok(plan);
        }
        // In a separate thread, so that agents plan in parallel.
        let (registry, words) = (Arc::clone(&self.registry), words.to_owned());
        let planned = tokio::task::spawn_blocking(move || plan_words(agent, &words, &registry)).await;
        Ok(planned.map_err(|_| PlanningError::Lost)??)
    }

    async fn by_model(&self, asker: Option<&Asker>, agent: AgentType, words: &str, context: &str) -> Option<AgentPlan> {
        let (model, asker) = (self.model.as_ref()?, asker?);
        let request = agent_plan_request(&model.parameters, agent, words, context, &self.registry);
        let request =
            request.inspect_err(|error: &TooLong| tracing::warn!(%error, %agent, "planning by rule, without a model"));
        let read = |answer: &str| read_agent_plan(answer, agent, words, &self.registry);
        let found = asker.read(request.ok()?, read).await;
        let found =
            found.inspect_err(|error: &NoAnswer| tracing::warn!(%error, %agent, "planning by rule, without a model"));
        found.ok().map(|found| found.value)
    }

    /// True if a model may plan a sub-plan, and not a rule.
    pub fn plans_by_model(&self, sub_plan: &SubPlan) -> bool {
        let agent = sub_plan.agent.as_deref().and_then(AgentType::named);
        self.model.is_some() && agent.is_some() && sub_plan.request.is_none()
    }

    /// The proposal of a sub-plan: an answer to its request, a plan by the named agent type, or else a parsed plan. If
    /// it names an executor, that executor gets the tasks without a command and an assignee.
    ///
    /// # Errors
    /// [`PlanningError`] if there is no plan.
    pub async fn proposal(&self, sub_plan: &SubPlan, context: &str, origin: Origin) -> Result<Proposal, PlanningError> {
        let name = sub_plan.agent.as_deref();
        if let Some(agent) = name.and_then(AgentType::named) {
            let plan = match &sub_plan.request {
                Some(request) => plan_answer(agent, request, &self.registry)?,
                None => {
                    let asker = self.asker_for(&origin).await;
                    self.plan_asking(asker.as_ref(), agent, &sub_plan.text, context).await?
                }
            };
            let proposal = plan.compile(agent, &self.registry)?;
            let origin = Origin { agent: proposal.origin.agent, ..origin };
            return Ok(Proposal { origin, ..proposal });
        }
        let parsed = read_words(&sub_plan.text).map_err(PlanError::from)?;
        let mut tasks = parsed.tasks;
        for task in tasks.iter_mut().filter(|task| task.command.is_none() && task.assignee.is_none()) {
            task.assignee = name.map(str::to_owned);
        }
        Ok(Proposal { tasks, title: parsed.title, source: sub_plan.text.clone(), context: parsed.context, origin })
    }

    /// Asks on behalf of the sub-plan of this origin: requests and answers belong to it, and are sealed with it.
    async fn asker_for(&self, origin: &Origin) -> Option<Asker> {
        let asker = &self.model.as_ref()?.asker;
        let asker = asker.on_behalf_of_plan_for(origin.parent.as_ref()?).await;
        asker.inspect_err(|error| tracing::warn!(%error, "planning by rule, without a model")).ok()
    }
}

/// Records a failed planning by an agent.
///
/// # Errors
/// A fault of the log.
pub async fn record_failure(
    store: &EventStore,
    agent: AgentType,
    error: &PlanError,
    tags: Vec<String>,
    cause: &Cause,
) -> Result<(), Error> {
    let event = NewEvent::of(&PlanningEvent::of(agent, error), cause.metadata())?.with_tags(tags);
    let append = Append::to(failures::STREAM, agent.as_str(), Expected::Any, vec![event]);
    store.append(append).await.map(drop)
}
