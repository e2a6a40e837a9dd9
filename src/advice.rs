//! The graph of a plan, and the changes that a model proposes. It changes nothing.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crewlog_executors::model::text_aggregate;
use crewlog_planner::analysis::Analysis;
use crewlog_planner::model::{advice_request, read_advice};
use crewlog_planner::plan::{TaskId, TaskPlan};
use serde_json::{Value, json};

use crate::by_model::{self, Advisor};
use crate::failure::Failure;
use crate::session::Session;
use crate::text::{count, one_line};

/// The tasks as a model would have them, and their graph.
pub struct Advice {
    tasks: Vec<TaskPlan>,
    graph: Analysis,
}

/// Asks the model for changes; none without an answer.
pub async fn advice(session: &Session, source: &str, tasks: &[TaskPlan]) -> Result<Option<Advice>, Failure> {
    let Some(model) = by_model::wanted(session, Some(true))? else { return Ok(None) };
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
            writeln!(to, "a bottleneck: {}, for which {} wait", self.name(one.task), one.n_waiting)?;
        }
        match graph.n_steps() - graph.n_steps_relaxed {
            0 => Ok(()),
            n => writeln!(to, "--parallel saves {}: only the order of the file requires them", count(n, "step")),
        }
    }
}
