//! Planning inside agents: each type makes plans of its own form, with its own tools, of what it is told.
//!
//! No one plans for all: an agent plans by rule, or by a model when it is given one, whether or not any other is there.
//! What it plans is judged by the planner when it is proposed, by the same rules whoever made it. Nothing here runs
//! anything.

mod cache;
mod context;

use std::sync::Arc;

use crewlog_mq::{Append, Cause, Error, EventStore, Expected, NewEvent};
use crewlog_planner::agents::failures::{self, PlanningEvent};
use crewlog_planner::agents::registry::ToolRegistry;
use crewlog_planner::agents::{
    AgentPlan, AgentProposal, OrchestrationPlan, PerceptionPlan, PlanError, StrategicPlan, TacticalPlan, plan_answer,
    plan_words, read_words,
};
use crewlog_planner::event::{Command, PlannerConfig};
use crewlog_planner::model::{Terms, TooLong, agent_plan_request, read_agent_plan};
use crewlog_planner::plan::{Origin, Proposal, SubPlan};
use crewlog_planner::protocol::{AgentType, CrossAgentStep};
use crewlog_planner::sealed::is_withheld;
use futures::future::join_all;

use crate::model::{Asker, NoAnswer};
use cache::Cache;
pub use cache::PLANS_KEPT_MAX;
pub use context::{PLANS_TOLD_MAX, PlanGlance, SharedContext, TASKS_TOLD_MAX, TOLD_CHARS_MAX};

/// Why an agent has no plan.
#[derive(Debug)]
pub enum PlanningError {
    /// What was planned, or was to be, breaks a rule.
    Plan(PlanError),
    /// What it would have to know is sealed, and the key is not here.
    Sealed,
    /// It stopped in the middle; that is a fault of the program.
    Lost,
}

impl std::fmt::Display for PlanningError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Plan(error) => error.fmt(f),
            Self::Sealed => {
                f.write_str("what is to be planned is sealed: name the file of the operator's key with --key-file")
            }
            Self::Lost => f.write_str("the planning ended without a word; this is a fault of the program"),
        }
    }
}

impl std::error::Error for PlanningError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Plan(error) => Some(error),
            Self::Sealed | Self::Lost => None,
        }
    }
}

impl From<PlanError> for PlanningError {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}

/// A model that agents plan by.
pub struct PlansByModel {
    /// Which, and how it is asked.
    pub terms: Terms,
    /// It asks, and keeps what was asked and answered in the log: of a plan that carries out a task as that plan's.
    pub asker: Asker,
}

/// Agents that plan: one of each type, which share nothing but what is in the log. What was planned of the same words,
/// tools and knowledge is not planned again.
#[derive(Clone)]
pub struct Agents {
    registry: Arc<ToolRegistry>,
    model: Option<Arc<PlansByModel>>,
    cache: Cache,
}

impl Agents {
    /// Agents with these tools, who plan by rule.
    #[must_use]
    pub fn new(registry: ToolRegistry) -> Self {
        Self { registry: Arc::new(registry), model: None, cache: Cache::default() }
    }

    /// The same, who plan by a model, and by rule when it has no plan.
    #[must_use]
    pub fn with_model(self, model: PlansByModel) -> Self {
        Self { model: Some(Arc::new(model)), ..self }
    }

    /// How often a plan was found that had been made before.
    #[must_use]
    pub fn n_found(&self) -> u64 {
        self.cache.n_found()
    }

    /// The strategic agent's plan: goals, constraints, milestones.
    ///
    /// # Errors
    /// [`PlanningError`]; never a panic.
    pub async fn plan_goals(&self, words: &str, context: &SharedContext) -> Result<StrategicPlan, PlanningError> {
        match self.plan(AgentType::Strategic, words, context).await? {
            AgentPlan::Strategic(plan) => Ok(plan),
            AgentPlan::Tactical(_) | AgentPlan::Perception(_) | AgentPlan::Orchestration(_) => Err(PlanningError::Lost),
        }
    }

    /// The tactical agent's plan: steps, what waits for what, and what they need.
    ///
    /// # Errors
    /// [`PlanningError`]; never a panic.
    pub async fn plan_steps(&self, words: &str, context: &SharedContext) -> Result<TacticalPlan, PlanningError> {
        match self.plan(AgentType::Tactical, words, context).await? {
            AgentPlan::Tactical(plan) => Ok(plan),
            AgentPlan::Strategic(_) | AgentPlan::Perception(_) | AgentPlan::Orchestration(_) => {
                Err(PlanningError::Lost)
            }
        }
    }

    /// The perception agent's plan: what to find out, and what to keep of it.
    ///
    /// # Errors
    /// [`PlanningError`]; never a panic.
    pub async fn plan_survey(&self, words: &str, context: &SharedContext) -> Result<PerceptionPlan, PlanningError> {
        match self.plan(AgentType::Perception, words, context).await? {
            AgentPlan::Perception(plan) => Ok(plan),
            AgentPlan::Strategic(_) | AgentPlan::Tactical(_) | AgentPlan::Orchestration(_) => Err(PlanningError::Lost),
        }
    }

    /// The orchestrator's plan: who does what, and when.
    ///
    /// # Errors
    /// [`PlanningError`]; never a panic.
    pub async fn plan_team(&self, words: &str, context: &SharedContext) -> Result<OrchestrationPlan, PlanningError> {
        match self.plan(AgentType::Orchestrator, words, context).await? {
            AgentPlan::Orchestration(plan) => Ok(plan),
            AgentPlan::Strategic(_) | AgentPlan::Tactical(_) | AgentPlan::Perception(_) => Err(PlanningError::Lost),
        }
    }

    /// What several agents plan, side by side, in the order of what they are told.
    pub async fn plan_all(
        &self,
        told: Vec<(AgentType, String)>,
        context: &SharedContext,
    ) -> Vec<Result<AgentPlan, PlanningError>> {
        join_all(told.iter().map(|(agent, words)| self.plan(*agent, words, context))).await
    }

    /// The plan of one agent.
    ///
    /// # Errors
    /// [`PlanningError`]; never a panic.
    pub async fn plan(
        &self,
        agent: AgentType,
        words: &str,
        context: &SharedContext,
    ) -> Result<AgentPlan, PlanningError> {
        self.plan_asking(self.model.as_ref().map(|model| &model.asker), agent, words, context).await
    }

    async fn plan_asking(
        &self,
        asker: Option<&Asker>,
        agent: AgentType,
        words: &str,
        context: &SharedContext,
    ) -> Result<AgentPlan, PlanningError> {
        if is_withheld(words) || context.is_withheld() {
            return Err(PlanningError::Sealed);
        }
        let known = context.told();
        let key = cache::key(agent, words, &known, &self.registry);
        if let Some(plan) = self.cache.find(&key) {
            return Ok(plan);
        }
        let plan = match self.by_model(asker, agent, words, &known).await {
            Some(plan) => plan,
            None => self.by_rule(agent, words).await?,
        };
        self.cache.keep(key, plan.clone());
        Ok(plan)
    }

    async fn by_model(&self, asker: Option<&Asker>, agent: AgentType, words: &str, known: &str) -> Option<AgentPlan> {
        let (model, asker) = (self.model.as_ref()?, asker?);
        let request = agent_plan_request(&model.terms, agent, words, known, &self.registry);
        let request = request.inspect_err(|error: &TooLong| tracing::warn!(%error, %agent, "an agent plans by rule"));
        let read = |answer: &str| read_agent_plan(answer, agent, words, &self.registry);
        let found = asker.read(request.ok()?, read).await;
        found
            .inspect_err(|error: &NoAnswer| tracing::warn!(%error, %agent, "an agent plans by rule"))
            .ok()
            .map(|found| found.value)
    }

    /// On a thread of its own, so that agents that plan at the same time do.
    async fn by_rule(&self, agent: AgentType, words: &str) -> Result<AgentPlan, PlanningError> {
        let (registry, words) = (Arc::clone(&self.registry), words.to_owned());
        let planned = tokio::task::spawn_blocking(move || plan_words(agent, &words, &registry)).await;
        Ok(planned.map_err(|_| PlanningError::Lost)??)
    }

    /// The command that proposes a plan by which an agent answers a request.
    ///
    /// # Errors
    /// [`PlanningError`] when it can make none.
    pub fn answering(
        &self,
        step: &CrossAgentStep,
        origin: Origin,
        config: PlannerConfig,
    ) -> Result<Command, PlanningError> {
        let (agent, plan) = (step.target_agent, plan_answer(step, &self.registry)?.json());
        let registry = (*self.registry).clone();
        let proposal = Box::new(AgentProposal { agent, plan, registry, origin });
        Ok(Command::ProposeAgentPlan { proposal, attachments: Vec::new(), config })
    }

    /// Who asks on behalf of a plan of this origin: what is asked belongs to it, and is sealed as it is.
    async fn asker_for(&self, origin: &Origin) -> Option<Asker> {
        let asker = &self.model.as_ref()?.asker;
        let asker = asker.on_behalf_of_plan_for(origin.parent.as_ref()?).await;
        asker.inspect_err(|error| tracing::warn!(%error, "an agent plans by rule")).ok()
    }

    /// The command that proposes a plan for the words of a task: by the type of agent that is named, else by the parser
    /// alone. Where another name is given, what has no command and is nobody's is that executor's.
    ///
    /// # Errors
    /// [`PlanningError`] when no plan can be made of them.
    pub async fn proposal(
        &self,
        words: &SubPlan,
        context: &SharedContext,
        origin: Origin,
        config: PlannerConfig,
    ) -> Result<Command, PlanningError> {
        let attachments = Vec::new();
        let name = words.agent.as_deref();
        if let Some(agent) = name.and_then(AgentType::named) {
            let asker = self.asker_for(&origin).await;
            let plan = self.plan_asking(asker.as_ref(), agent, &words.text, context).await?.json();
            let registry = (*self.registry).clone();
            let proposal = Box::new(AgentProposal { agent, plan, registry, origin });
            return Ok(Command::ProposeAgentPlan { proposal, attachments, config });
        }
        let parsed = read_words(&words.text).map_err(|error| PlanError::Words { error })?;
        let mut tasks = parsed.tasks;
        for task in tasks.iter_mut().filter(|task| task.command.is_none() && task.assignee.is_none()) {
            task.assignee = name.map(str::to_owned);
        }
        let (title, source, context) = (parsed.title, words.text.clone(), parsed.context);
        let proposal = Box::new(Proposal { tasks, title, source, context, origin });
        Ok(Command::Propose { proposal, attachments, config })
    }
}

/// Records that an agent could not plan.
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
