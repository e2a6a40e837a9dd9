//! The graph of a plan, and the changes that a model proposes. It changes nothing.

use std::collections::BTreeMap;
use std::io::Write;

use crewlog_executors::model::text_aggregate;
use crewlog_planner::analysis::Analysis;
use crewlog_planner::model::{advice_request, read_advice};
use crewlog_planner::plan::{TaskId, TaskPlan};
use serde::Serialize;

use crate::by_model::{self, Advisor};
use crate::failure::Failure;
use crate::session::Session;
use crate::text::{count, one_line};

#[derive(Serialize)]
pub struct GraphJson {
    tasks: usize,
    steps: usize,
    at_once: usize,
    groups: Vec<Vec<String>>,
    critical_path: Vec<String>,
    bottlenecks: Vec<BottleneckJson>,
    saving_relaxed: usize,
}

#[derive(Serialize)]
struct BottleneckJson {
    task: String,
    waiting: usize,
}

/// The changes that a model proposes; null where it gave no answer.
#[derive(Serialize)]
pub struct AdviceJson {
    dependencies: Option<DependenciesJson>,
    kinds: Option<Vec<KindJson>>,
}

#[derive(Serialize)]
struct DependenciesJson {
    edges: Vec<EdgeJson>,
    saving: i64,
    #[serde(flatten)]
    graph: GraphJson,
}

#[derive(Serialize)]
struct EdgeJson {
    task: String,
    after: String,
}

#[derive(Serialize)]
struct KindJson {
    task: String,
    kind: &'static str,
    was: &'static str,
}

/// Asks the model for changes.
pub async fn advice(
    session: &Session,
    source: &str,
    tasks: &[TaskPlan],
    graph: &Analysis,
) -> Result<AdviceJson, Failure> {
    let names = Names::of(tasks);
    let Some(model) = by_model::wanted(session, Some(true))? else {
        return Ok(AdviceJson { dependencies: None, kinds: None });
    };
    let (store, _) = session.place.open_or_make().await?;
    let advisor = Advisor::new(session, &model, &store, &text_aggregate(source), session.tags_of_project()?);
    let request = advice_request(&model.parameters, tasks);
    let found = advisor.ask("advice", "it is left out", request, |answer| read_advice(answer, tasks)).await?;
    let advised = found.map(|found| found.value);
    Ok(AdviceJson {
        dependencies: advised.as_ref().map(|advised| names.dependencies(graph, advised)).transpose()?,
        kinds: advised.map(|advised| kinds(tasks, &advised)),
    })
}

/// The names of the tasks.
pub struct Names(BTreeMap<TaskId, String>);

impl Names {
    pub fn of(tasks: &[TaskPlan]) -> Self {
        Self(tasks.iter().map(|task| (task.id, task.name())).collect())
    }

    pub fn name(&self, task: TaskId) -> String {
        self.0.get(&task).cloned().unwrap_or_else(|| task.to_string())
    }

    fn list(&self, tasks: &[TaskId]) -> Vec<String> {
        tasks.iter().map(|task| self.name(*task)).collect()
    }

    /// A graph by names.
    pub fn graph(&self, graph: &Analysis) -> GraphJson {
        let bottlenecks = graph.bottlenecks.iter();
        GraphJson {
            tasks: self.0.len(),
            steps: graph.n_steps(),
            at_once: graph.n_at_once(),
            groups: graph.groups.iter().map(|group| self.list(group)).collect(),
            critical_path: self.list(&graph.critical_path),
            bottlenecks: bottlenecks
                .map(|one| BottleneckJson { task: self.name(one.task), waiting: one.n_waiting })
                .collect(),
            saving_relaxed: graph.n_steps() - graph.n_steps_relaxed,
        }
    }

    /// The graph of the model's dependencies, and the steps that it saves; negative when it adds dependencies.
    fn dependencies(&self, before: &Analysis, tasks: &[TaskPlan]) -> Result<DependenciesJson, Failure> {
        let graph = Analysis::of(tasks)?;
        let edges = tasks.iter().flat_map(|task| {
            task.depends_on.iter().map(|one| EdgeJson { task: task.name(), after: self.name(one.task) })
        });
        let n_steps = |graph: &Analysis| i64::try_from(graph.n_steps()).unwrap_or(i64::MAX);
        let saving = n_steps(before) - n_steps(&graph);
        Ok(DependenciesJson { edges: edges.collect(), saving, graph: self.graph(&graph) })
    }
}

fn kinds(tasks: &[TaskPlan], advised: &[TaskPlan]) -> Vec<KindJson> {
    let differing = tasks.iter().zip(advised).filter(|(task, advised)| task.kind != advised.kind);
    let kind = |(task, advised): (&TaskPlan, &TaskPlan)| KindJson {
        task: task.name(),
        kind: advised.kind.as_str(),
        was: task.kind.as_str(),
    };
    differing.map(kind).collect()
}

/// For people.
pub fn print(mut to: impl Write, proposed: &AdviceJson) -> std::io::Result<()> {
    if let Some(dependencies) = &proposed.dependencies {
        let saving = dependencies.saving;
        writeln!(to, "\nthe model's dependencies (steps saved: {saving}):")?;
        for EdgeJson { task, after } in &dependencies.edges {
            writeln!(to, "  {task} after {after}")?;
        }
        print_graph(&mut to, &dependencies.graph)?;
    }
    for KindJson { task, kind, was } in proposed.kinds.iter().flatten() {
        writeln!(to, "the model calls {task} {kind}, not {was}")?;
    }
    Ok(())
}

/// For people.
pub fn print_graph(mut to: impl Write, graph: &GraphJson) -> std::io::Result<()> {
    let (tasks, steps) = (count(graph.tasks, "task"), count(graph.steps, "step"));
    writeln!(to, "{tasks} in {steps}, at most {} at once", graph.at_once)?;
    for (n, group) in graph.groups.iter().enumerate() {
        writeln!(to, "  step {}: {}", n + 1, one_line(&group.join(", "), 200))?;
    }
    writeln!(to, "the longest chain: {}", one_line(&graph.critical_path.join(" -> "), 200))?;
    for BottleneckJson { task, waiting } in &graph.bottlenecks {
        writeln!(to, "a bottleneck: {task}, for which {waiting} wait")?;
    }
    if graph.saving_relaxed > 0 {
        let steps = count(graph.saving_relaxed, "step");
        writeln!(to, "--parallel saves {steps}: only the order of the file requires them")?;
    }
    Ok(())
}
