//! The slider over the log: at once the histogram of how far the tasks were, and what happened when.

use std::collections::BTreeSet;
use std::fmt::Write;

use askama::Template;
use crewlog_mq::{Error, Position, Range};

use super::look::Look;
use super::svg::Svg;
use super::words::{Markup, clock_of, cut, grouped, of_counts};
use crate::failure::Failure;
use crate::views::{Counts, EventFilter, Mark, Stage};

/// The bars of the histogram.
const N_BARS: usize = 120;
/// The height of the histogram, in hundredths of which bars are drawn.
const HEIGHT: u32 = 100;
/// The stages from the ground up, each with its class.
const LAYERS: [(&str, &[Stage]); 7] = [
    ("s-done", &[Stage::Done]),
    ("s-fail", &[Stage::Failed]),
    ("s-run", &[Stage::Running]),
    ("s-wait", &[Stage::Waiting]),
    ("s-queue", &[Stage::Queued, Stage::Retrying]),
    ("s-plan", &[Stage::Planned]),
    ("s-skip", &[Stage::Skipped]),
];

#[derive(Template)]
#[template(path = "time.html", whitespace = "minimize")]
struct Time<'a> {
    look: &'a Look<'a>,
    steps: Vec<Step>,
    clock: Markup,
    position: String,
    words: String,
    at: i64,
    max: i64,
    width: usize,
    has_counts: bool,
    bars: Vec<(String, String)>,
    marks: Markup,
}

/// A link to another moment; without an address there is none.
struct Step {
    name: &'static str,
    label: &'static str,
    words: &'static str,
    href: String,
}

/// The time line.
pub async fn time(look: &Look<'_>) -> Result<Markup, Failure> {
    let (at, head) = (look.shown.at, look.head.at);
    let all = look.head.marks().await?;
    let mut bars = Vec::new();
    if let Some(plan) = &look.plan {
        let counts = look.head.counts(&plan.id, N_BARS).await?.counts;
        let n_max = counts.iter().map(|counts| counts.counts.iter().sum::<u32>()).max().unwrap_or(0).max(1);
        for (is_past, class) in [(true, ""), (false, " later")] {
            let some: Vec<_> = counts
                .iter()
                .enumerate()
                .filter(|(_, counts)| (counts.position <= at) == is_past)
                .map(|(n, counts)| (n, &counts.counts))
                .collect();
            bars.extend(paths(&some, n_max).into_iter().map(|(layer, path)| (format!("{layer}{class}"), path)));
        }
    }
    let words = look.existing().map(|plan| of_counts(&plan.track.counts())).unwrap_or_default();
    Ok(Markup::of(&Time {
        look,
        steps: steps(look, &all).await?,
        clock: clock_of(look.shown.now),
        position: grouped(at.0),
        words,
        at: at.0,
        max: head.0,
        width: N_BARS * 10,
        has_counts: !bars.is_empty(),
        bars,
        marks: drawn(look, &all),
    }))
}

/// One path for each stage, of a rectangle for each bar.
fn paths(bars: &[(usize, &Counts)], n_max: u32) -> Vec<(&'static str, String)> {
    let mut paths: Vec<_> = LAYERS.iter().map(|(class, _)| (*class, String::new())).collect();
    for (n, counts) in bars {
        let mut ground = HEIGHT * 10;
        for ((_, stages), (_, path)) in LAYERS.iter().zip(&mut paths) {
            let n_tasks: u32 = stages.iter().map(|stage| counts[*stage as usize]).sum();
            if n_tasks > 0 {
                let height = (n_tasks * HEIGHT * 10 / n_max).max(8).min(ground);
                ground -= height;
                let (top, height) = (f64::from(ground) / 10.0, f64::from(height) / 10.0);
                let _ = write!(path, "M{} {top}h9v{height}h-9z", n * 10);
            }
        }
    }
    paths.retain(|(_, path)| !path.is_empty());
    paths
}

/// The address of the moment at which an event is known.
fn link_mark(look: &Look<'_>, position: Position) -> String {
    look.link(&[("mark", &position.to_string()), ("at", "")])
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
    let href = |to: Option<Position>| to.map(|to| link_mark(look, to)).unwrap_or_default();
    let step = |name, label, words, to| Step { name, label, words, href: href(to) };
    Ok(vec![
        step("failure-before", "◂ failure", "to the failure before", before),
        step("back", "◂", "one event back", back),
        step("on", "▸", "one event on", on),
        step("failure-after", "failure ▸", "to the next failure", after),
    ])
}

/// The marks and the head of the slider, in percent of the width.
fn drawn(look: &Look<'_>, marks: &[Mark]) -> Markup {
    let max = look.head.at.0.max(1) as f64;
    let percent = |position: Position| (position.0 as f64 / max * 1_000.0).round() / 10.0;
    let mut svg = Svg::default();
    svg.open("svg", &[("class", &"marks"), ("width", &"100%"), ("height", &"100%")]);
    let mut drawn = BTreeSet::new();
    for mark in marks.iter().rev() {
        let mut x = percent(mark.position);
        let place = |x: f64| (x / 0.9) as i64;
        // What would cover another of its kind is left out; beside one of another kind it stands apart.
        if drawn.contains(&(place(x), mark.kind)) {
            continue;
        }
        while drawn.iter().any(|(known, _)| *known == place(x)) {
            x += 0.9;
        }
        drawn.insert((place(x), mark.kind));
        let words = format!("{} at {}: {}", mark.kind, grouped(mark.position.0), cut(&mark.text, 120));
        let path = match mark.kind {
            "failure" => "M-5 9L0 0L5 9z",
            "conflict" => "M0 0L5 5L0 10L-5 5z",
            "question" => "M-4.5 4.5a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0",
            _checkpoint => "M-4 0h8v10l-4-3l-4 3z",
        };
        svg.link(&format!("m-{}", mark.kind), &link_mark(look, mark.position), &words);
        svg.open("svg", &[("x", &format!("{x}%")), ("y", &58), ("overflow", &"visible")]);
        svg.draw("path", &[("d", &path)]);
        svg.close("svg");
        svg.close("a");
    }
    let x = percent(look.shown.at);
    let left = -34.0 - (x / 100.0 - 0.5) * 40.0;
    svg.open("svg", &[("class", &"head"), ("x", &format!("{x}%")), ("overflow", &"visible"), ("aria-hidden", &"true")]);
    svg.line("", (0.0, 0.0), (0.0, 74.0));
    svg.open("g", &[("transform", &format!("translate({left:.1} 72)"))]);
    svg.rect((0.0, 0.0), (68.0, 18.0), 9.0);
    let at = grouped(look.shown.at.0);
    svg.text("text", &[("x", &34), ("y", &13), ("text-anchor", &"middle")], &at);
    svg.close("g");
    svg.close("svg");
    svg.end()
}
