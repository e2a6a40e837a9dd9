//! `plan analyse`: what the graph of a plan says of the time it takes; and, when asked for, what a model would change.
//! Nothing is changed here: what a model finds is shown, and counts only after the checks that every plan passes.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::Path;

use crewlog_executors::model::text_aggregate;
use crewlog_mq::Range;
use crewlog_planner::analysis::Analysis;
use crewlog_planner::model::{
    AskedQuestion, dependencies_request, kinds_request, questions_request, read_dependencies, read_kinds,
    read_questions,
};
use crewlog_planner::parse::{self, ParseOptions};
use crewlog_planner::plan::{NodeKind, TaskId, TaskPlan};
use serde::Serialize;

use crate::by_model::{self, Advisor};
use crate::cli::{Analyse, Output};
use crate::failure::{Code, Failure};
use crate::json::{print_line, print_pretty};
use crate::look;
use crate::session::{Session, read_text};
use crate::text::{count, one_line};

/// `plan analyse`.
#[derive(Serialize)]
struct AnalysedJson {
    #[serde(flatten)]
    graph: GraphJson,
    /// What a model would change; absent without one.
    proposed: Option<ProposedJson>,
}

/// What a graph says.
#[derive(Serialize)]
struct GraphJson {
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

/// What a model would change; what it gave no answer to is absent.
#[derive(Serialize)]
struct ProposedJson {
    dependencies: Option<DependenciesJson>,
    kinds: Option<Vec<KindJson>>,
    questions: Option<Vec<QuestionJson>>,
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

#[derive(Serialize)]
struct QuestionJson {
    question: String,
    blocks: Vec<String>,
}

/// What is analysed.
struct Subject {
    source: String,
    tasks: Vec<TaskPlan>,
    /// The plan's id, or that of the text.
    aggregate: String,
    tags: Vec<String>,
}

/// `plan analyse`.
pub async fn analyse(session: &Session, args: Analyse) -> Result<Code, Failure> {
    let subject = find(session, &args).await?;
    let names = Names::of(&subject.tasks);
    let graph = Analysis::of(&subject.tasks)?;
    let proposed = if args.model { Some(advice(session, &subject, &names, &graph).await?) } else { None };
    let shown = AnalysedJson { graph: names.graph(&graph), proposed };
    let mut stdout = BufWriter::new(std::io::stdout().lock());
    match session.output {
        Output::Json => print_pretty(&mut stdout, &shown)?,
        Output::Jsonl => print_line(&mut stdout, &shown)?,
        Output::Text => print(&mut stdout, &shown)?,
    }
    stdout.flush()?;
    Ok(Code::Done)
}

/// A file, where there is one of this name; else a plan of the log.
async fn find(session: &Session, args: &Analyse) -> Result<Subject, Failure> {
    let file = Path::new(&args.subject);
    if args.subject == "-" || file.is_file() {
        let source = read_text(file)?;
        let parsed = parse::parse(&source, ParseOptions { relax_order: args.relax_order })?;
        let (aggregate, tags) = (text_aggregate(&source), session.tags_of_project());
        return Ok(Subject { source, tasks: parsed.tasks, aggregate, tags });
    }
    let store = session.place.open().await?;
    let plan = look::find_plan(&store, &args.subject).await?;
    let view = look::load_view(&store, &plan, Range::default()).await?;
    let tasks = view.state().tasks().iter().map(|task| task.plan.clone()).collect();
    let (source, tags) = (view.state().source().to_owned(), look::tags_of(&store, &plan).await?);
    Ok(Subject { source, tasks, aggregate: plan, tags })
}

/// What a model would change.
async fn advice(
    session: &Session,
    subject: &Subject,
    names: &Names,
    graph: &Analysis,
) -> Result<ProposedJson, Failure> {
    let Some(model) = by_model::wanted(session, Some(true))? else {
        return Ok(ProposedJson { dependencies: None, kinds: None, questions: None });
    };
    let (store, _) = session.place.open_or_make().await?;
    let advisor = Advisor::new(session, &model, &store, &subject.aggregate, subject.tags.clone());
    let (tasks, otherwise) = (&subject.tasks, "it is left out");
    let request = dependencies_request(&model.terms, tasks);
    let found = advisor.ask("dependencies", otherwise, request, |answer| read_dependencies(answer, tasks)).await?;
    let dependencies = found.map(|found| names.dependencies(graph, &found.value)).transpose()?;
    let request = kinds_request(&model.terms, tasks);
    let found = advisor.ask("kinds", otherwise, request, |answer| read_kinds(answer, tasks)).await?;
    let kinds = found.map(|found| names.kinds(tasks, &found.value));
    let request = questions_request(&model.terms, &subject.source, tasks);
    let found = advisor.ask("questions", otherwise, request, |answer| read_questions(answer, tasks)).await?;
    let questions = found.map(|found| found.value.into_iter().map(|asked| names.question(asked)).collect());
    Ok(ProposedJson { dependencies, kinds, questions })
}

/// What people call the tasks.
struct Names(BTreeMap<TaskId, String>);

impl Names {
    fn of(tasks: &[TaskPlan]) -> Self {
        Self(tasks.iter().map(|task| (task.id, task.name())).collect())
    }

    fn name(&self, task: TaskId) -> String {
        self.0.get(&task).cloned().unwrap_or_else(|| task.to_string())
    }

    fn list(&self, tasks: &[TaskId]) -> Vec<String> {
        tasks.iter().map(|task| self.name(*task)).collect()
    }

    fn graph(&self, graph: &Analysis) -> GraphJson {
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

    /// The graph that a model found, and how many steps it saves; fewer than none when it found what the text does not say.
    fn dependencies(&self, before: &Analysis, tasks: &[TaskPlan]) -> Result<DependenciesJson, Failure> {
        let graph = Analysis::of(tasks)?;
        let edges = tasks.iter().flat_map(|task| {
            task.depends_on.iter().map(|one| EdgeJson { task: task.name(), after: self.name(one.task) })
        });
        let n_steps = |graph: &Analysis| i64::try_from(graph.n_steps()).unwrap_or(i64::MAX);
        let saving = n_steps(before) - n_steps(&graph);
        Ok(DependenciesJson { edges: edges.collect(), saving, graph: self.graph(&graph) })
    }

    /// The kinds that differ.
    fn kinds(&self, tasks: &[TaskPlan], kinds: &[(TaskId, NodeKind)]) -> Vec<KindJson> {
        let differing = tasks.iter().zip(kinds).filter(|(task, (_, kind))| task.kind != *kind);
        differing
            .map(|(task, (_, kind))| KindJson { task: task.name(), kind: kind.as_str(), was: task.kind.as_str() })
            .collect()
    }

    fn question(&self, asked: AskedQuestion) -> QuestionJson {
        QuestionJson { question: asked.question, blocks: self.list(&asked.blocks) }
    }
}

fn print(mut to: impl Write, shown: &AnalysedJson) -> std::io::Result<()> {
    print_graph(&mut to, &shown.graph)?;
    if shown.graph.saving_relaxed > 0 {
        let steps = count(shown.graph.saving_relaxed, "step");
        writeln!(to, "--relax-order saves {steps}: what only the order of the text binds")?;
    }
    let Some(proposed) = &shown.proposed else { return Ok(()) };
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
    for QuestionJson { question, blocks } in proposed.questions.iter().flatten() {
        writeln!(to, "the model would ask, before {}: {}", blocks.join(", "), one_line(question, 200))?;
    }
    Ok(())
}

fn print_graph(mut to: impl Write, graph: &GraphJson) -> std::io::Result<()> {
    let (tasks, steps) = (count(graph.tasks, "task"), count(graph.steps, "step"));
    writeln!(to, "{tasks} in {steps}, at most {} at once", graph.at_once)?;
    for (n, group) in graph.groups.iter().enumerate() {
        writeln!(to, "  step {}: {}", n + 1, one_line(&group.join(", "), 200))?;
    }
    writeln!(to, "the longest chain: {}", one_line(&graph.critical_path.join(" -> "), 200))?;
    for BottleneckJson { task, waiting } in &graph.bottlenecks {
        writeln!(to, "a bottleneck: {task}, for which {waiting} wait")?;
    }
    Ok(())
}
