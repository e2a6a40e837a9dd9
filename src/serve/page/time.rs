//! The slider over the log, with a histogram of the stages of tasks, and marks for events.

use std::fmt::Write;

use askama::Template;
use crewlog_mq::{Error, Position, Range};
use crewlog_planner::lifecycle::State;

use super::look::Look;
use super::words::{self, Markup, of_counts};
use crate::ui::failure::Failure;
use crate::views::{CountsAt, EventFilter, Mark};

/// The bars of the histogram.
const N_BARS: usize = 120;
/// The height of the histogram; bars are drawn in hundredths of it.
const HEIGHT: u32 = 100;
/// The stages from bottom to top, each with its class.
const LAYERS: [(&str, &[State]); 7] = [
    ("s-done", &[State::Done]),
    ("s-fail", &[State::Failed, State::Interrupted]),
    ("s-run", &[State::Running]),
    ("s-wait", &[State::WaitingForYou]),
    ("s-queue", &[State::Ready, State::Waiting]),
    ("s-plan", &[State::Planned, State::Paused]),
    ("s-skip", &[State::Skipped, State::Cancelled]),
];

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
    let mut bars = Vec::new();
    if let Some(plan) = &look.plan {
        let counts = look.head.counts(&plan.id, N_BARS).await?.counts;
        let n_max = counts.iter().map(|counts| counts.counts.iter().sum::<u32>()).max().unwrap_or(0).max(1);
        let (past, later) = counts.split_at(counts.partition_point(|counts| counts.position <= look.shown.at));
        bars = paths(past, 0, "", n_max);
        bars.extend(paths(later, past.len(), " later", n_max));
    }
    let words = look.existing().map(|plan| of_counts(&plan.track.counts())).unwrap_or_default();
    let percent = |position: Position| (position.0 as f64 / look.head.at.0.max(1) as f64 * 1_000.0).round() / 10.0;
    let at = percent(look.shown.at);
    let (steps, marks) = (steps(look, &all).await?, placed(&all, percent));
    let head = (at, format!("{:.1}", -34.0 - (at / 100.0 - 0.5) * 40.0));
    Ok(Markup::of(&Time { look, steps, words, bars, marks, head }))
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
    let filter = EventFilter { plan: look.plan.as_ref().map(|plan| plan.id.clone()), ..EventFilter::default() };
    let found = async |range: Range| -> Result<Option<Position>, Error> {
        Ok(look.head.events(&filter, range, 1).await?.events.first().map(|event| event.position))
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
