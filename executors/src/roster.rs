//! Assigns tasks to executors: tasks with a command to the shell, others to a configured agent. The rest is left to
//! people and other machines.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crewlog_mq::{Error, Recorded, Timestamp};
use crewlog_planner::agents::registry::ToolRegistry;
use crewlog_planner::crew::breaker;
use crewlog_planner::crew::consent::{self, Agreement};
use crewlog_planner::event::TaskInput;
use crewlog_planner::lifecycle::{Observed, State, States, Taker};
use crewlog_planner::plan::{NodeKind, SubPlan, TaskId, TaskPlan};
use crewlog_planner::sealed::is_plan_undecryptable;
use crewlog_planner::state::{Phase, PlannerState, Task};
use crewlog_planner::view::PlanView;

use crate::agent::Agent;
use crate::breakers::Breakers;
use crate::consent::{Basis, Places, Told, Trust, inputs};
use crate::programs::ProgramConsent;
use crate::runs::OutputFiles;
use crate::shell::{SHELL, Shell};
use crate::subplans::SUB_PLANS;

/// The executors of a worker.
#[derive(Debug, Clone)]
pub struct Roster {
    /// For tasks with a command; agents use its supervisor and environment.
    pub shell: Shell,
    /// True if tasks with a command are taken at all.
    pub takes_commands: bool,
    /// For the others; of several that could take a task, the first one does.
    pub agents: Vec<Agent>,
    /// The tools of planning agents; without them, this worker takes no tasks with a sub-plan.
    pub registry: Option<ToolRegistry>,
    /// True if a person knows the commands of these tools; otherwise each waits for an agreement.
    pub knows_tools: bool,
    /// The decisions about what may run; without them everything may.
    pub trust: Option<Trust>,
    /// The folders of plans; without them every folder is where it was.
    pub places: Option<Arc<dyn Places>>,
    /// The rate limits of the executors, where there is a log.
    pub limits: Option<Breakers>,
    /// True if a process ends rather than waits for a rate limit.
    pub leaves_limits: bool,
    /// The files of the outputs of runs on this machine, if they are kept.
    pub outputs: Option<OutputFiles>,
}

/// A task that nobody has agreed to, whose decisions count.
#[derive(Debug, Clone)]
pub struct Unagreed {
    /// The task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// The inputs of its programs, whole.
    pub text: String,
    /// The agreements that it lacks.
    pub lacking: Vec<Agreement>,
    /// Its program with all that starts, and the agreement that it lacks on this machine.
    pub program: Option<(String, ProgramConsent)>,
    /// How often agreements to it have ended.
    pub n_withdrawn: u64,
}

impl Unagreed {
    /// Names of the inputs and the program that are shown, to which a person agrees. They change with the task.
    pub fn seen(&self) -> Vec<String> {
        let inputs = self.lacking.iter().map(|wanted| self.name_of(wanted));
        inputs.chain(self.program.iter().map(|(_, program)| program.digest())).collect()
    }

    /// Keeps only what these names stand for.
    pub fn keep(&mut self, seen: &[String]) {
        let lacking = std::mem::take(&mut self.lacking);
        self.lacking = lacking.into_iter().filter(|wanted| seen.contains(&self.name_of(wanted))).collect();
        self.program.take_if(|(_, program)| !seen.contains(&program.digest()));
    }

    fn name_of(&self, wanted: &Agreement) -> String {
        format!("{}.{}", wanted.digest, self.n_withdrawn)
    }
}

/// An executor that takes a task.
#[derive(Debug, Clone, Copy)]
pub enum Actor<'a> {
    /// The task has a command.
    Shell(&'a Shell),
    /// The task has no command.
    Agent(&'a Agent, &'a Shell),
    /// A sub-plan carries it out.
    SubPlan(&'a SubPlan),
}

impl Roster {
    /// The executor of a dispatched task: its sub-plan if it has one; the shell if it has a command; its assignee,
    /// regardless of that agent's kinds; otherwise the first agent whose kinds include `kind`. Questions are for
    /// people.
    pub fn actor<'a>(&'a self, kind: NodeKind, parameters: &'a TaskInput) -> Option<Actor<'a>> {
        let TaskInput { command, assignee, sub_plan, .. } = parameters;
        self.choose(kind, Way { has_command: command.is_some(), assignee, sub_plan })
    }

    /// True if one of these executors would take the dispatched task.
    pub fn takes(&self, task: &TaskPlan) -> bool {
        self.choose(task.kind, Way::of(task)).is_some()
    }

    /// The taker of a task that one of these executors would take: it may wait for a rate limit.
    pub fn taker(&self, task: &TaskPlan) -> Taker {
        self.agent_for(task).and_then(|agent| self.waits_until(&agent.name)).map_or(Taker::Worker, Taker::Limited)
    }

    /// Reads the decisions and the rate limits that are not known yet.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn catch_up(&self) -> Result<(), Error> {
        if let Some(limits) = &self.limits {
            limits.catch_up().await?;
        }
        if let Some(trust) = &self.trust { trust.catch_up().await } else { Ok(()) }
    }

    /// [`Self::catch_up`] after an event of a decision or a rate limit.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn follow(&self, recorded: &Recorded) -> Result<(), Error> {
        if is_followed(recorded) { self.catch_up().await } else { Ok(()) }
    }

    /// The end of the wait of an executor for a rate limit.
    pub fn waits_until(&self, executor: &str) -> Option<Timestamp> {
        self.limits.as_ref()?.waits_until(executor)
    }

    /// Where the folder of a plan is on this machine.
    ///
    /// # Errors
    /// The reason why it is nowhere.
    pub fn find(&self, kept: &str) -> Result<PathBuf, String> {
        self.places.as_ref().map_or_else(|| Ok(PathBuf::from(kept)), |places| places.find(kept))
    }

    /// True if one of these executors would take the dispatched task, and it may run. The folder of the plan is another question.
    fn runs(&self, plan: &str, task: &TaskPlan, state: &PlannerState) -> bool {
        let Some(actor) = self.choose(task.kind, Way::of(task)).filter(|actor| actor.may_start()) else { return false };
        let Some(trust) = &self.trust else { return true };
        let own = inputs(plan, task, state.config.folder.as_deref()).into_iter().next();
        own.is_some_and(|own| trust.basis(&own, actor.name()).is_some())
    }

    /// True if the folder of a plan is on this machine.
    fn is_here(&self, state: &PlannerState) -> bool {
        state.config.folder.as_ref().is_none_or(|folder| self.find(folder).is_ok())
    }

    /// The programs that carry tasks out. A sub-plan may use any that is new.
    pub fn programs(&self, tasks: &[TaskPlan]) -> Vec<&Agent> {
        let has_sub_plan = tasks.iter().any(|task| task.sub_plan.is_some());
        let is_used = |agent: &&Agent| {
            let takes = |task| self.agent_for(task).is_some_and(|taker| taker.name == agent.name);
            has_sub_plan && !agent.may_start() || tasks.iter().any(takes)
        };
        self.agents.iter().filter(is_used).collect()
    }

    /// The agent whose program would carry the task out, and lacks the agreement of a person.
    pub fn unknown_program<'a>(&'a self, task: &'a TaskPlan) -> Option<(&'a Agent, &'a ProgramConsent)> {
        let agent = self.agent_for(task).filter(|agent| !agent.may_start())?;
        agent.consent.as_ref().map(|consent| (agent, consent))
    }

    /// The agreements that a task lacks which one of these executors would take.
    pub fn lacking(&self, plan: &str, task: &TaskPlan, state: &PlannerState) -> Vec<Agreement> {
        let actor = self.choose(task.kind, Way::of(task));
        let (Some(trust), Some(actor)) = (&self.trust, actor) else { return Vec::new() };
        let inputs = inputs(plan, task, state.config.folder.as_deref()).into_iter();
        // A grant counts when the task runs; one that waits for its program anyway is agreed to with that.
        let may_start = actor.may_start();
        let has = |basis: Option<Basis>| basis.is_some_and(|basis| may_start || basis == Basis::Agreed);
        let lacking = inputs.filter(|input| !has(trust.basis(input, actor.name())));
        lacking.map(|input| input.agreement).collect()
    }

    /// The open tasks of a plan that lack agreements.
    pub fn unagreed(&self, plan: &str, state: &PlannerState) -> Vec<Unagreed> {
        // Nobody agrees to a text that is not shown.
        if is_plan_undecryptable(state) {
            return Vec::new();
        }
        let of = |task: &Task| {
            let lacking = self.lacking(plan, &task.plan, state);
            let program = self.unknown_program(&task.plan);
            if lacking.is_empty() && program.is_none() {
                return None;
            }
            let mut text = Told::of(&task.plan).map(Told::shown).collect::<Vec<_>>().join("\nto undo it: ");
            // The values of its variables may be secret.
            let starts = program.map(|(agent, _)| format!("\n{} starts: {}", agent.name, agent.shown(false)));
            text.extend(starts.map(|starts| starts + "  (new in crewlog.toml)"));
            let program = program.map(|(agent, consent)| (agent.shown(true), consent.clone()));
            let (task, name) = (task.plan.id, task.plan.name());
            let n_withdrawn = self.trust.as_ref().map_or(0, |trust| trust.n_withdrawn(plan, task));
            Some(Unagreed { task, name, text, lacking, program, n_withdrawn })
        };
        state.tasks.iter().filter(|task| !task.status.is_end()).filter_map(of).collect()
    }

    /// The agent that would take the dispatched task, if there is one.
    pub fn agent_for<'a>(&'a self, task: &'a TaskPlan) -> Option<&'a Agent> {
        match self.choose(task.kind, Way::of(task))? {
            Actor::Agent(agent, _) => Some(agent),
            Actor::Shell(_) | Actor::SubPlan(_) => None,
        }
    }

    /// True while these executors can advance a plan. `all` are its possible sub-plans.
    pub fn is_busy(&self, plan: &str, view: &PlanView, all: &BTreeMap<String, PlanView>) -> bool {
        let state = view.state();
        if is_plan_undecryptable(state) {
            return false;
        }
        let is_here = self.is_here(state);
        let is_left = |task: &Task| {
            let is_held = view.holder(task.plan.id).is_some();
            let is_limited = || matches!(self.taker(&task.plan), Taker::Limited(_));
            self.leaves_limits && (task.waits_for_limit() || !is_held && is_limited())
        };
        let is_run = |task: &Task| is_here && !is_left(task) && self.runs(plan, &task.plan, state);
        let is_run = |task| state.task(task).is_some_and(is_run);
        // The host withdraws the dispatched tasks of a stopped plan.
        let is_free = |task: &Task| view.holder(task.plan.id).is_none();
        let is_withdrawn =
            state.phase == Phase::Active && state.stopped_by.is_some() && state.dispatched().any(is_free);
        view.has_unhandled_report() || is_withdrawn || self.states(plan, view, all).go_on(is_run)
    }

    /// The states of a plan that these executors run. `all` are its possible sub-plans.
    pub fn states(&self, plan: &str, view: &PlanView, all: &BTreeMap<String, PlanView>) -> States {
        let is_here = self.is_here(view.state());
        let runs = |task: &TaskPlan| is_here && self.runs(plan, task, view.state());
        let taker = |task: &TaskPlan| if runs(task) { self.taker(task) } else { Taker::Nobody };
        let sub_plan = |below: &str| {
            let view = all.get(below).filter(|view| view.state().phase != Phase::Empty)?;
            let state = self.states(below, view, all).plan.state;
            let goes_on = !state.is_end() && self.is_busy(below, view, all);
            Some(match (goes_on, state) {
                (true, _) => State::Waiting,
                // Nobody has agreed to it.
                (false, State::Ready) => State::WaitingForYou,
                (false, state) => state,
            })
        };
        States::of(plan, view, &Observed { taker: &taker, sub_plan: &sub_plan, ..Observed::default() })
    }

    fn choose<'a>(&'a self, kind: NodeKind, way: Way<'a>) -> Option<Actor<'a>> {
        let Way { has_command, assignee, sub_plan } = way;
        if kind == NodeKind::Clarification {
            return None;
        }
        if let Some(sub_plan) = sub_plan {
            return self.registry.is_some().then_some(Actor::SubPlan(sub_plan));
        }
        if has_command {
            return self.takes_commands.then_some(Actor::Shell(&self.shell));
        }
        let takes = |agent: &&Agent| match assignee {
            Some(assignee) => agent.name.to_lowercase() == assignee.to_lowercase(),
            None => agent.kinds.is_empty() || agent.kinds.contains(&kind),
        };
        self.agents.iter().find(takes).map(|agent| Actor::Agent(agent, &self.shell))
    }
}

/// True for an event of a decision or a rate limit.
pub(crate) fn is_followed(recorded: &Recorded) -> bool {
    matches!(&*recorded.stream_id, consent::STREAM | breaker::STREAM)
}

/// The fields of a task, besides its kind, that decide on its executor.
#[derive(Clone, Copy)]
struct Way<'a> {
    has_command: bool,
    assignee: &'a Option<String>,
    sub_plan: &'a Option<SubPlan>,
}

impl<'a> Way<'a> {
    fn of(task: &'a TaskPlan) -> Self {
        let TaskPlan { command, assignee, sub_plan, .. } = task;
        Self { has_command: command.is_some(), assignee, sub_plan }
    }
}

impl Actor<'_> {
    /// The name under which it claims.
    pub fn name(&self) -> &str {
        match self {
            Self::Shell(_) => SHELL,
            Self::Agent(agent, _) => &agent.name,
            Self::SubPlan(_) => SUB_PLANS,
        }
    }

    /// True unless its program lacks the agreement of a person.
    pub fn may_start(&self) -> bool {
        match self {
            Self::Shell(_) | Self::SubPlan(_) => true,
            Self::Agent(agent, _) => agent.may_start(),
        }
    }

    /// Its own limit on parallel tasks in one worker, if it has one.
    pub fn jobs(&self) -> Option<usize> {
        match self {
            Self::Shell(_) | Self::SubPlan(_) => None,
            Self::Agent(agent, _) => Some(agent.jobs),
        }
    }

    /// True if it only waits for a sub-plan, so that any worker may take the task over at any time.
    pub const fn only_waits(&self) -> bool {
        match self {
            Self::Shell(_) | Self::Agent(..) => false,
            Self::SubPlan(_) => true,
        }
    }
}
