//! The graph of a plan's dependencies, step by step from left to right.

use std::fmt::Write;

use askama::Template;

use super::layers::{lay_out, reduced};
use super::look::{Chosen, Look};
use super::svg::{Anchor, Px, Svg, fitting, in_two_lines};
use crewlog_planner::lifecycle::State;

use super::words::{Markup, cut, of_counts, of_executor};
use crate::ui::failure::Failure;
use crate::views::{GraphNode, PlanGraph};

/// The heights of nodes with one line and with two lines of their title.
const NODE_HEIGHTS: [f64; 2] = [42.0, 56.0];
/// The mean width of a letter of a title.
const LETTER: f64 = 6.3;
const NODE_GAP: f64 = 18.0;
const LAYER_GAP: f64 = 24.0;
/// The least and the greatest width of a node; titles decide in between.
const NODE_WIDTH: [f64; 2] = [100.0, 200.0];
/// The width of the card.
const ROOM: f64 = 1_340.0;
/// A drawing that is wider than its card by up to this factor is scaled down; a wider one scrolls.
const SHRUNK_MAX: f64 = 1.12;
/// The most steps that are drawn, around the current ones.
const LAYERS_MAX: usize = 40;

#[derive(Template)]
#[template(path = "graph.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
struct Card<'a> {
    look: &'a Look<'a>,
    graph: PlanGraph,
    has_added: bool,
    is_open: bool,
    before: String,
    after: String,
    drawing: Markup,
}

/// The card of the graph.
pub async fn graph(look: &Look<'_>) -> Result<Markup, Failure> {
    let Some(plan) = look.existing() else { return Ok(Markup::default()) };
    let open = look.asked.number("step").and_then(|step| usize::try_from(step).ok());
    let graph = look.shown.graph(&plan.id, open).await?;
    // Without a line between them the list of tasks says as much.
    if graph.edges.is_empty() {
        return Ok(Markup::default());
    }
    let first = first_step(&graph, open);
    let end = first + LAYERS_MAX;
    let to = |step: usize| look.link(&[("step", &step.to_string())]);
    let before = if first > 0 { to(first.saturating_sub(LAYERS_MAX / 2)) } else { String::new() };
    let after = if end < graph.n_steps { to(end + LAYERS_MAX / 4) } else { String::new() };
    let drawing = draw(look, plan, &graph, first..end);
    let has_added = graph.nodes.iter().any(|node| node.is_added);
    Ok(Markup::of(&Card { look, graph, has_added, is_open: open.is_some(), before, after, drawing }))
}

/// The first step that is drawn: a long plan is drawn around the opened step, or the first unfinished one.
fn first_step(graph: &PlanGraph, open: Option<usize>) -> usize {
    if graph.n_steps <= LAYERS_MAX {
        return 0;
    }
    let is_left = |node: &&GraphNode| !node.stage.is_end() || node.stage == State::Failed;
    let here = open.or_else(|| graph.nodes.iter().find(is_left).map(|node| node.step)).unwrap_or(graph.n_steps);
    here.saturating_sub(LAYERS_MAX / 4).min(graph.n_steps - LAYERS_MAX)
}

fn draw(look: &Look<'_>, plan: &Chosen, graph: &PlanGraph, steps: std::ops::Range<usize>) -> Markup {
    // The nodes are in the order of their steps.
    let shown = [steps.start, steps.end].map(|step| graph.nodes.partition_point(|node| node.step < step));
    let shown = shown[0]..shown[1];
    let nodes = &graph.nodes[shown.clone()];
    let layer: Vec<usize> = nodes.iter().map(|node| node.step - steps.start).collect();
    let edges = graph.edges.iter().filter(|(from, to)| shown.contains(from) && shown.contains(to));
    let edges: Vec<_> = edges.map(|(from, to)| (from - shown.start, to - shown.start)).collect();
    let edges = reduced(nodes.len(), &layer, &edges);
    let n_layers = layer.iter().max().map_or(1, |last| last + 1) as f64;
    let width = ((ROOM - 16.0 - (n_layers - 1.0) * LAYER_GAP) / n_layers).clamp(NODE_WIDTH[0], NODE_WIDTH[1]);
    let is_long = |node: &GraphNode| node.title.chars().count() as f64 * LETTER > width - 20.0;
    let height = NODE_HEIGHTS[usize::from(nodes.iter().any(is_long))];
    let layout = lay_out(&layer, &edges, height, NODE_GAP);
    let left = |layer: usize| 8.0 + layer as f64 * (width + LAYER_GAP);
    let size = (left(layer.iter().max().copied().unwrap_or(0)) + width + 8.0, layout.height + 4.0);
    let label = format!("Graph of {} tasks and groups; each is a link", nodes.len());
    let mut svg = Svg::new("graph", (size.0.max(ROOM), size.1), &label, size.0 <= ROOM * SHRUNK_MAX);
    let mut lines = [String::new(), String::new()];
    for ((from, to), bends) in edges.iter().zip(&layout.bends) {
        let path = &mut lines[usize::from(nodes[*from].is_critical && nodes[*to].is_critical)];
        let (begin, end) = ((left(layer[*from]) + width, layout.y[*from]), (left(layer[*to]), layout.y[*to]));
        draw_line(path, begin, end, bends);
    }
    for (class, path) in ["edge", "edge crit"].into_iter().zip(lines) {
        svg.write(format_args!("<path class=\"{class}\" d=\"{path}\"/>"));
    }
    for (place, node) in nodes.iter().enumerate() {
        let task = plan.shown.tasks.iter().find(|task| task.id == node.name);
        let executor = of_executor(task.and_then(|task| task.executor.as_deref()).unwrap_or_default());
        let (x, y) = (left(layer[place]), layout.y[place] - height / 2.0);
        draw_node(&mut svg, look, node, executor, (x, y), (width, height));
    }
    svg.end()
}

/// Draws a line between two nodes, which is level where it passes a layer.
fn draw_line(path: &mut String, begin: (f64, f64), end: (f64, f64), bends: &[f64]) {
    let mut curve = |from: (f64, f64), to: (f64, f64)| {
        let (x1, y1, x, x2, y2) = (Px(from.0), Px(from.1), Px((from.0 + to.0) / 2.0), Px(to.0), Px(to.1));
        let _ = write!(path, "M{x1} {y1}C{x} {y1} {x} {y2} {x2} {y2}");
    };
    let (mut at, stride) = (begin, (end.0 - begin.0 - LAYER_GAP) / bends.len().max(1) as f64);
    for (n, y) in bends.iter().enumerate() {
        let x = at.0 + LAYER_GAP;
        curve(at, (x, *y));
        at = (x + stride - if n + 1 < bends.len() { LAYER_GAP } else { 0.0 }, *y);
        curve((x, *y), at);
    }
    curve(at, end);
}

fn draw_node(svg: &mut Svg, look: &Look<'_>, node: &GraphNode, executor: &str, (x, y): (f64, f64), size: (f64, f64)) {
    let (width, is_group) = (size.0, node.n_tasks > 1);
    let (class, corner) = match node.stage {
        State::Done => ("n-done", ""),
        State::Failed => ("n-fail", "failed"),
        State::Interrupted => ("n-fail", "interrupted"),
        State::Skipped | State::Cancelled => ("n-skip", node.stage.words()),
        State::Running => ("n-run", executor),
        State::WaitingForYou => ("n-wait", "you"),
        State::Waiting => ("n-queue", "waits"),
        State::Ready => ("n-queue", "ready"),
        State::Paused => ("n-plan", "paused"),
        State::Planned => ("n-plan", if node.is_startable { "ready" } else { "" }),
    };
    let title = if is_group { of_counts(&node.counts) } else { cut(&node.title, 100).replace('`', "") };
    let mut words = format!("{} {title}", node.name);
    for (is, more) in [
        (!is_group, format!(": {}", node.stage.words())),
        (!is_group && node.stage == State::Running && !executor.is_empty(), format!(", by {executor}")),
        (node.is_critical, ", on the critical path".to_owned()),
        (node.is_startable, ", can start".to_owned()),
        (node.is_added, ", added while the plan ran".to_owned()),
    ] {
        words.push_str(if is { &more } else { "" });
    }
    let is_step = node.name.starts_with("step ") && (is_group || node.title.is_empty());
    let href = if is_step { look.link(&[("step", &node.step.to_string())]) } else { look.link_task(&node.name) };
    svg.link(&format!("node {class}{}", if node.is_critical { " crit" } else { "" }), &href, &words);
    if is_group {
        svg.rect((x + 4.0, y - 4.0), size, 6.0);
    }
    svg.rect((x, y), size, 6.0);
    let mark = if node.is_added { " +" } else { "" };
    let id = fitting(&format!("{}{mark}", cut(&node.name, 40)), width - 20.0, 7.2);
    svg.label("id", (x + 10.0, y + 17.0), &id, Anchor::Start);
    if !is_group {
        let corner = fitting(&cut(corner, 30), width - 28.0 - id.chars().count() as f64 * 7.4, 6.0);
        svg.label("corner", (x + width - 10.0, y + 17.0), &corner, Anchor::End);
    }
    let (first, second) = match size.1 > NODE_HEIGHTS[0] {
        true => in_two_lines(&title, width - 20.0, LETTER),
        false => (fitting(&title, width - 20.0, LETTER), String::new()),
    };
    svg.label("ti", (x + 10.0, y + 32.0), &first, Anchor::Start);
    svg.label("ti", (x + 10.0, y + 45.0), &second, Anchor::Start);
    svg.close();
}
