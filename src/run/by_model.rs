//! Plans and advice by a model, with the parser as a fallback: no fault of a model ends a command.

use std::collections::BTreeMap;
use std::io;
use std::io::Write;
use std::sync::Arc;

use crewlog_executors::agents::PlansByModel;
use crewlog_executors::model::{AskError, Asker, Client, ModelError, ModelRead, NoAnswer, text_aggregate};
use crewlog_mq::EventStore;
use crewlog_planner::analysis::Analysis;
use crewlog_planner::event::{Usage, money};
use crewlog_planner::model::{
    AnswerError, ModelRequest, Proposed, TooLong, advice_request, plan_request, read_advice, read_plan, request_tag,
};
use crewlog_planner::parse::ParsedPlan;
use crewlog_planner::plan::{NodeKind, Origin, TaskId, TaskPlan};
use crewlog_planner::validity::InvalidPlan;
use serde_json::{Value, json};

use crate::context::Session;
use crate::context::config::ModelConfig;
use crate::ui::failure::Failure;
use crate::ui::terminal::say;
use crate::ui::text::{count, one_line, visible};

/// The model that has to plan: as given on the command line, else as configured.
pub fn wanted(session: &Session, typed: Option<bool>) -> Result<Option<ModelConfig>, Failure> {
    if typed == Some(false) {
        return Ok(None);
    }
    let config = session.config()?;
    if config.model.is_none() && typed.is_some() {
        let file =
            config.file.as_ref().map_or_else(|| "there is no crewlog.toml".into(), |file| file.display().to_string());
        return Err(Failure::user(format!("no model is configured ({file})"))
            .hint("name one in crewlog.toml: [model] with name, provider and api_key_env"));
    }
    Ok(config.model.clone().filter(|model| model.plan || typed.is_some()))
}

impl ModelConfig {
    /// The model as a planner for agents, on behalf of an aggregate whose events have these tags.
    pub fn planner(&self, store: &EventStore, aggregate: &str, tags: Vec<String>) -> Result<PlansByModel, ModelError> {
        let client = Arc::new(Client::new(self.settings.clone())?);
        let asker = Asker::new(client, self.retry_policy, store.clone(), aggregate, tags);
        Ok(PlansByModel { parameters: self.parameters.clone(), asker })
    }
}

/// A model that is asked on behalf of a plan.
pub struct Advisor<'a> {
    session: &'a Session,
    model: &'a ModelConfig,
    planner: Result<PlansByModel, ModelError>,
}

impl<'a> Advisor<'a> {
    /// Asks on behalf of a plan or a text, whose events have these tags.
    pub async fn new(
        session: &'a Session,
        model: &'a ModelConfig,
        aggregate: &str,
        tags: Vec<String>,
    ) -> Result<Self, Failure> {
        let (store, _) = session.place.open_or_make().await?;
        Ok(Self { session, model, planner: model.planner(&store, aggregate, tags) })
    }

    /// Asks the model, and reports the cost of the answer or the fallback. Only a fault of the log is an error.
    pub async fn ask<T>(
        &self,
        what: &str,
        otherwise: &str,
        request: Result<ModelRequest, TooLong>,
        read: impl Fn(&str) -> Result<T, AnswerError>,
    ) -> Result<Option<ModelRead<T>>, Failure> {
        let name = visible(&self.model.parameters.model);
        let failed = |error: &dyn std::fmt::Display| {
            say(&format!("warning: {name} gave no {what}: {}; {otherwise}", visible(&error.to_string())));
            Ok(None)
        };
        let (planner, request) = match (&self.planner, request) {
            (Ok(planner), Ok(request)) => (planner, request),
            (Err(error), _) => return failed(error),
            (Ok(_), Err(error)) => return failed(&error),
        };
        match planner.asker.read(request, read).await {
            Ok(found) => {
                self.session.remark(&format!("{name} gave {what}{}", took(&found)));
                Ok(Some(found))
            }
            Err(NoAnswer::Ask(AskError::Log(error))) => Err(error.into()),
            Err(error @ (NoAnswer::Ask(AskError::Model(_) | AskError::Refused(_)) | NoAnswer::NotUnderstood(_))) => {
                failed(&error)
            }
        }
    }

    /// The plan of a text, and its planner: the model, or the parser if the model gives none.
    pub async fn plan(
        &self,
        text: &str,
        parsed: Result<ParsedPlan, InvalidPlan>,
    ) -> Result<(ParsedPlan, Origin), Failure> {
        let by_rule = parsed.as_ref().map(|parsed| parsed.tasks.as_slice()).unwrap_or_default();
        let request = plan_request(&self.model.parameters, text);
        let answer =
            self.ask("plan", "the text is parsed instead", request, |answer| read_plan(answer, by_rule)).await?;
        let Some(ModelRead { value: Proposed { title, tasks }, answered }) = answer else {
            return Ok((parsed?, Origin::default()));
        };
        let n_questions = tasks.iter().filter(|task| task.kind == NodeKind::Clarification).count();
        self.session.remark(&format!("{}, {n_questions} of them for a person", count(tasks.len(), "task")));
        let (parsed_title, context) = parsed.map_or_else(|_| (None, Vec::new()), |plan| (plan.title, plan.context));
        let title = parsed_title.or(title);
        let parsed = ParsedPlan { title, tasks, context, ..ParsedPlan::default() };
        Ok((parsed, Origin { planned_by: Some(request_tag(&answered.request)), ..Origin::default() }))
    }
}

/// The cost of an answer, in words.
fn took<T>(found: &ModelRead<T>) -> String {
    if found.answered.from_log {
        return " (answered from the log)".into();
    }
    let Usage { input_tokens, output_tokens, cost_micros, duration_ms, .. } = found.answered.answer.usage;
    let cost = if cost_micros > 0 { format!("cost {}, ", money(cost_micros)) } else { String::new() };
    format!(" ({input_tokens} + {output_tokens} tokens, {cost}{duration_ms} ms)")
}

/// The tasks as a model would have them, and their graph.
pub struct Advice {
    tasks: Vec<TaskPlan>,
    graph: Analysis,
}

/// Asks the model for changes; none without an answer.
pub async fn advice(session: &Session, source: &str, tasks: &[TaskPlan]) -> Result<Option<Advice>, Failure> {
    let Some(model) = wanted(session, Some(true))? else { return Ok(None) };
    let advisor = Advisor::new(session, &model, &text_aggregate(source), session.tags_of_project()?).await?;
    let request = advice_request(&model.parameters, tasks);
    let found = advisor.ask("advice", "it is left out", request, |answer| read_advice(answer, tasks)).await?;
    let Some(tasks) = found.map(|found| found.value) else { return Ok(None) };
    Ok(Some(Advice { graph: Analysis::of(&tasks)?, tasks }))
}

/// The tasks of a plan by name, and their graph.
pub struct Graph<'a> {
    tasks: &'a [TaskPlan],
    names: BTreeMap<TaskId, String>,
    pub graph: Analysis,
}

impl<'a> Graph<'a> {
    pub fn of(tasks: &'a [TaskPlan]) -> Result<Self, Failure> {
        let names = tasks.iter().map(|task| (task.id, task.name())).collect();
        Ok(Self { tasks, names, graph: Analysis::of(tasks)? })
    }

    pub fn name(&self, task: TaskId) -> String {
        self.names.get(&task).cloned().unwrap_or_else(|| task.to_string())
    }

    fn list(&self, tasks: &[TaskId]) -> Vec<String> {
        tasks.iter().map(|task| self.name(*task)).collect()
    }

    pub fn json(&self, graph: &Analysis) -> Value {
        let bottlenecks = graph.bottlenecks.iter();
        let bottlenecks = bottlenecks.map(|one| json!({ "task": self.name(one.task), "waiting": one.n_waiting }));
        json!({
            "tasks": self.tasks.len(), "steps": graph.n_steps(), "at_once": graph.n_at_once(),
            "groups": graph.groups.iter().map(|group| self.list(group)).collect::<Vec<_>>(),
            "critical_path": self.list(&graph.critical_path), "bottlenecks": bottlenecks.collect::<Vec<_>>(),
            "saving_relaxed": graph.n_steps() - graph.n_steps_relaxed,
        })
    }

    /// The changes that a model proposes; null without an answer.
    pub fn advice_json(&self, advice: Option<&Advice>) -> Value {
        let dependencies = advice.map(|Advice { tasks, graph }| {
            let edges = self.edges(tasks).map(|(task, after)| json!({ "task": task, "after": after }));
            let mut json = self.json(graph);
            json["edges"] = edges.collect();
            json["saving"] = self.saving(graph).into();
            json
        });
        let kinds = advice.map(|advice| {
            let kind =
                |(was, is): (&TaskPlan, &TaskPlan)| json!({ "task": is.name(), "kind": is.kind, "was": was.kind });
            self.kinds(advice).map(kind).collect::<Vec<_>>()
        });
        json!({ "dependencies": dependencies, "kinds": kinds })
    }

    /// The steps that a graph saves; negative when it adds dependencies.
    fn saving(&self, graph: &Analysis) -> i64 {
        let n_steps = |graph: &Analysis| i64::try_from(graph.n_steps()).unwrap_or(i64::MAX);
        n_steps(&self.graph) - n_steps(graph)
    }

    fn edges(&self, tasks: &[TaskPlan]) -> impl Iterator<Item = (String, String)> {
        tasks.iter().flat_map(|task| task.depends_on.iter().map(|one| (task.name(), self.name(one.task))))
    }

    /// The tasks to which the model gives another kind, before and after.
    fn kinds<'b>(&'b self, advice: &'b Advice) -> impl Iterator<Item = (&'b TaskPlan, &'b TaskPlan)> {
        self.tasks.iter().zip(&advice.tasks).filter(|(was, is)| was.kind != is.kind)
    }

    pub fn print_advice(&self, to: &mut dyn Write, advice: &Advice) -> io::Result<()> {
        let Advice { tasks, graph } = advice;
        writeln!(to, "\nthe model's dependencies (steps saved: {}):", self.saving(graph))?;
        self.edges(tasks).try_for_each(|(task, after)| writeln!(to, "  {task} after {after}"))?;
        self.print(to, graph)?;
        self.kinds(advice).try_for_each(|(was, is)| {
            writeln!(to, "the model calls {} {}, not {}", is.name(), is.kind.as_str(), was.kind.as_str())
        })
    }

    pub fn print(&self, to: &mut dyn Write, graph: &Analysis) -> io::Result<()> {
        let (tasks, steps) = (count(self.tasks.len(), "task"), count(graph.n_steps(), "step"));
        writeln!(to, "{tasks} in {steps}, at most {} at once", graph.n_at_once())?;
        for (n, group) in graph.groups.iter().enumerate() {
            writeln!(to, "  step {}: {}", n + 1, one_line(&self.list(group).join(", "), 200))?;
        }
        writeln!(to, "the longest chain: {}", one_line(&self.list(&graph.critical_path).join(" -> "), 200))?;
        for one in &graph.bottlenecks {
            writeln!(to, "bottleneck: {} ({} depend on it)", self.name(one.task), count(one.n_waiting, "task"))?;
        }
        match graph.n_steps() - graph.n_steps_relaxed {
            0 => Ok(()),
            n => writeln!(to, "--parallel saves {}: only the order of the file requires them", count(n, "step")),
        }
    }
}
