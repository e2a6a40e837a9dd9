//! The slider over the log, with a histogram of the stages of tasks, and marks for events.

use std::fmt::Write;

use askama::Template;
use crewlog_mq::{Error, Position, Query, Range};
use crewlog_planner::event::plan_tag;

use super::look::Look;
use super::words::{self, LAYERS, Markup, of_counts};
use crate::ui::failure::Failure;
use crate::views::{CountsAt, Mark};

/// The bars of the histogram.
const N_BARS: usize = 120;
/// The most plans that are counted together, the newest.
const PLANS_MAX: usize = 40;
/// The height of the histogram; bars are drawn in hundredths of it.
const HEIGHT: u32 = 100;
#[derive(Template)]
#[template(path = "time.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
struct Time<'a> {
    look: &'a Look<'a>,
    steps: Vec<Step>,
    words: String,
    bars: Vec<(String, String)>,
    /// The marks, and their places in percent of the width.
    marks: Vec<(&'a Mark, f64)>,
    /// The place of the position shown, and of its label next to it.
    head: (f64, String),
}

/// A link to another moment; disabled without an address.
struct Step {
    name: &'static str,
    label: &'static str,
    words: &'static str,
    href: String,
}

pub async fn time(look: &Look<'_>) -> Result<Markup, Failure> {
    let all = look.head.marks().await?;
    let counts = counted(look).await?;
    let n_max = counts.iter().map(|counts| counts.counts.iter().sum::<u32>()).max().unwrap_or(0).max(1);
    let (past, later) = counts.split_at(counts.partition_point(|counts| counts.position <= look.shown.at));
    let mut bars = paths(past, 0, "", n_max);
    bars.extend(paths(later, past.len(), " later", n_max));
    let words = past.last().map(|counts| of_counts(&counts.counts)).unwrap_or_default();
    let percent = |position: Position| (position.0 as f64 / look.head.at.0.max(1) as f64 * 1_000.0).round() / 10.0;
    let at = percent(look.shown.at);
    let (steps, marks) = (steps(look, &all).await?, placed(&all, percent));
    let head = (at, format!("{:.1}", -34.0 - (at / 100.0 - 0.5) * 40.0));
    Ok(Markup::of(&Time { look, steps, words, bars, marks, head }))
}

/// The counts of the plan over the log, or those of all plans together.
async fn counted(look: &Look<'_>) -> Result<Vec<CountsAt>, Failure> {
    let all: Vec<_> = match &look.plan {
        Some(plan) => vec![plan.id.clone()],
        None => look.head.plans().await?.into_iter().rev().take(PLANS_MAX).map(|plan| plan.plan).collect(),
    };
    let mut sums: Vec<CountsAt> = Vec::new();
    for plan in all {
        let counts = look.head.counts(&plan, N_BARS).await?.counts;
        if sums.is_empty() {
            sums = counts;
            continue;
        }
        for (sum, counts) in sums.iter_mut().zip(counts) {
            sum.counts.iter_mut().zip(counts.counts).for_each(|(sum, n)| *sum += n);
        }
    }
    Ok(sums)
}

/// One path for each stage, with its class, made of a rectangle for each bar.
fn paths(bars: &[CountsAt], first: usize, class: &str, n_max: u32) -> Vec<(String, String)> {
    let mut paths: Vec<_> = LAYERS.iter().map(|(layer, _)| (format!("{layer}{class}"), String::new())).collect();
    for (n, bar) in bars.iter().enumerate() {
        let mut ground = HEIGHT * 10;
        for ((_, stages), (_, path)) in LAYERS.iter().zip(&mut paths) {
            let n_tasks: u32 = stages.iter().map(|stage| bar.counts[*stage as usize]).sum();
            if n_tasks > 0 {
                let height = (n_tasks * HEIGHT * 10 / n_max).max(8).min(ground);
                ground -= height;
                let (top, height) = (f64::from(ground) / 10.0, f64::from(height) / 10.0);
                let _ = write!(path, "M{} {top}h9v{height}h-9z", (first + n) * 10);
            }
        }
    }
    paths.retain(|(_, path)| !path.is_empty());
    paths
}

/// The links to other moments.
async fn steps(look: &Look<'_>, marks: &[Mark]) -> Result<Vec<Step>, Error> {
    let (at, head, start) = (look.shown.at, look.head.at, look.append_start().await?);
    let query = look.plan.as_ref().map_or(Query::all(), |plan| Query::all().and_tag(plan_tag(&plan.id)));
    let found = async |range: Range| -> Result<Option<Position>, Error> {
        Ok(look.head.events(&query, range, 1).await?.events.first().map(|event| event.position))
    };
    let back = found(Range::up_to(Position((start.0 - 1).max(0))).backwards()).await?;
    let on = if at < head { found(Range::between(at, head)).await? } else { None };
    let failure = |mark: &&Mark| mark.kind == "failure";
    let before = marks.iter().rev().filter(failure).find(|mark| mark.position < start).map(|mark| mark.position);
    let after = marks.iter().filter(failure).find(|mark| mark.position > at).map(|mark| mark.position);
    let href = |to: Option<Position>| to.map(|to| look.link_mark(to)).unwrap_or_default();
    let step = |name, label, words, to| Step { name, label, words, href: href(to) };
    Ok(vec![
        step("failure-before", "◂ failure", "to the failure before", before),
        step("back", "◂", "one event back", back),
        step("on", "▸", "one event on", on),
        step("failure-after", "failure ▸", "to the next failure", after),
    ])
}

/// The marks that are drawn, the newest first, with their places.
fn placed(marks: &[Mark], percent: impl Fn(Position) -> f64) -> Vec<(&Mark, f64)> {
    let mut placed: Vec<(&Mark, f64)> = Vec::new();
    let cell = |x: f64| (x / 0.9) as i64;
    for mark in marks.iter().rev() {
        let mut x = percent(mark.position);
        // A mark that would cover another one of its kind is omitted; next to one of another kind it is shifted.
        if placed.iter().any(|(other, at)| cell(*at) == cell(x) && other.kind == mark.kind) {
            continue;
        }
        while placed.iter().any(|(_, at)| cell(*at) == cell(x)) {
            x += 0.9;
        }
        placed.push((mark, x));
    }
    placed
}

/// The shape of a mark.
fn shape(mark: &Mark) -> &'static str {
    match mark.kind {
        "failure" => "M-5 9L0 0L5 9z",
        "conflict" => "M0 0L5 5L0 10L-5 5z",
        "question" => "M-4.5 4.5a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0",
        _checkpoint => "M-4 0h8v10l-4-3l-4 3z",
    }
}
