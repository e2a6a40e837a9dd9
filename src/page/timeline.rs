//! The time line: who did what when, in lanes.

use askama::Template;

use super::look::Look;
use super::svg::{Anchor, Px, Svg, fitting};
use super::words::{Markup, clock, cut, lasting, of_stage};
use crate::failure::Failure;
use crate::text::rfc3339;
use crate::views::{AgentView, LaneBar, Stage, Timeline};
use crewlog_mq::Timestamp;

/// The width of the names of the lanes, which stay in view, and of the time beside them.
const NAMES: f64 = 116.0;
const WIDTH: f64 = 790.0;
/// Where time begins.
const LEFT: f64 = 4.0;
const TOP: f64 = 22.0;
/// The room of a long time in which nothing ran.
const IDLE_WIDTH: f64 = 56.0;
/// The most rows of one lane: what overlaps comes below.
const ROWS_MAX: usize = 6;
/// The most bars: the newest.
const BARS_MAX: usize = 400;
/// Distances of ticks, in seconds.
const TICKS: [i64; 17] =
    [1, 5, 15, 30, 60, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 604_800, 2_592_000];
/// The room of the label of a tick.
const TICK_WIDTH: f64 = 56.0;
const SECOND_US: i64 = 1_000_000;

#[derive(Template)]
#[template(path = "timeline.html", whitespace = "minimize")]
struct Card {
    by_agent: String,
    by_task: String,
    is_by_task: bool,
    names: Markup,
    drawing: Markup,
    n_more: usize,
}

/// The card of the time line.
pub async fn timeline(look: &Look<'_>) -> Result<Markup, Failure> {
    let Some(plan) = look.existing() else { return Ok(Markup::default()) };
    let is_by_task = look.asked.is("lanes", "task");
    let mut timeline = look.shown.timeline(&plan.id, is_by_task).await?;
    let left_out = thin(&mut timeline);
    if timeline.lanes.is_empty() {
        return Ok(Markup::default());
    }
    let agents = look.shown.agents(true).await?;
    let (names, drawing) = draw(look, &timeline, &agents, plan.is_open(), is_by_task);
    Ok(Markup::of(&Card {
        by_agent: look.link(&[("lanes", "")]),
        by_task: look.link(&[("lanes", "task")]),
        is_by_task,
        names,
        drawing,
        n_more: timeline.n_more + left_out,
    }))
}

/// Keeps the newest bars, and says how many are left out.
fn thin(timeline: &mut Timeline) -> usize {
    let mut begins: Vec<_> = timeline.lanes.iter().flat_map(|lane| &lane.bars).map(|bar| bar.from).collect();
    let n_more = begins.len().saturating_sub(BARS_MAX);
    if n_more > 0 {
        begins.sort_unstable();
        let first = begins[n_more];
        timeline.lanes.iter_mut().for_each(|lane| lane.bars.retain(|bar| bar.from >= first));
        timeline.lanes.retain(|lane| !lane.bars.is_empty());
    }
    n_more
}

/// From time to pixels. Long times in which nothing ran take little room.
struct Scale {
    /// Moments and their places, in order: between two of them time passes evenly.
    points: Vec<(i64, f64)>,
    /// The long times in which nothing ran.
    idle: Vec<(i64, i64)>,
    from: i64,
    to: i64,
}

impl Scale {
    /// From the first bar to the last end, or to now while the plan is open.
    fn of(timeline: &Timeline, is_open: bool) -> Self {
        let bars = || timeline.lanes.iter().flat_map(|lane| &lane.bars);
        let from = bars().map(|bar| bar.from_us).min().unwrap_or(timeline.now_us);
        let ends = bars().map(|bar| bar.to_us.unwrap_or(timeline.now_us)).max().unwrap_or(timeline.now_us);
        let to = if is_open { timeline.now_us } else { ends };
        let mut ran: Vec<_> = bars().filter(|bar| bar.stage == Stage::Running).collect();
        ran.sort_by_key(|bar| bar.from_us);
        let (mut idle, mut busy_to, mut n_busy) = (Vec::new(), from, 0);
        let spans = ran.iter().map(|bar| (bar.from_us, bar.to_us.unwrap_or(timeline.now_us)));
        for (begin, end) in spans.chain([(to, to)]) {
            if begin > busy_to {
                idle.push((busy_to, begin));
            }
            n_busy += (end - begin.max(busy_to)).max(0);
            busy_to = busy_to.max(end);
        }
        idle.retain(|(begin, end)| end - begin > (n_busy / 3).max(600 * SECOND_US));
        let n_idle: i64 = idle.iter().map(|(begin, end)| end - begin).sum();
        let n_even = to - from - n_idle;
        // In steps, so that not each moment is another drawing.
        let step = (n_even / 400).max(SECOND_US);
        let to = to + step - (n_even % step);
        let room = WIDTH - LEFT - 12.0 - IDLE_WIDTH * idle.len() as f64;
        let width = |us: i64| us as f64 / (to - from - n_idle).max(1) as f64 * room;
        let (mut at, mut x, mut points) = (from, LEFT, vec![(from, LEFT)]);
        for (begin, end) in &idle {
            x += width(begin - at);
            points.push((*begin, x));
            x += IDLE_WIDTH;
            points.push((*end, x));
            at = *end;
        }
        points.push((to.max(at + 1), x + width(to - at)));
        Self { points, idle, from, to }
    }

    fn x(&self, us: i64) -> f64 {
        let n = self.points.partition_point(|(at, _)| *at <= us).clamp(1, self.points.len() - 1);
        let ((from, left), (to, right)) = (self.points[n - 1], self.points[n]);
        left + ((us - from) as f64 / (to - from).max(1) as f64).clamp(0.0, 1.0) * (right - left)
    }
}

fn draw(
    look: &Look<'_>,
    timeline: &Timeline,
    agents: &[AgentView],
    is_open: bool,
    is_by_task: bool,
) -> (Markup, Markup) {
    let scale = Scale::of(timeline, is_open);
    let packed: Vec<_> = timeline.lanes.iter().map(|lane| pack(&lane.bars, &scale)).collect();
    let is_dense = timeline.lanes.len() > 12;
    let (bar_height, row_height) = if is_dense { (18.0, 22.0) } else { (26.0, 32.0) };
    let height_of = |rows: usize| rows as f64 * row_height + if is_dense { 4.0 } else { 12.0 };
    let height = TOP + packed.iter().map(|(rows, _)| height_of(*rows)).sum::<f64>() + 4.0;
    let n_bars: usize = timeline.lanes.iter().map(|lane| lane.bars.len()).sum();
    let label = format!("Timeline with {} lanes and {n_bars} bars; each bar is a link to its task", packed.len());
    let mut names = Svg::new("names", (NAMES, height), "The lanes", false);
    let mut svg = Svg::new("timeline", (WIDTH, height), &label, false);
    ticks(&mut svg, &scale, height);
    let mut y = TOP;
    for (lane, (rows, places)) in timeline.lanes.iter().zip(&packed) {
        let room = NAMES - 8.0;
        names.label(
            "lane",
            (2.0, y + row_height / 2.0 + 3.0),
            &fitting(&cut(&lane.name, 40), room, 7.0),
            Anchor::Start,
        );
        let program = agents.iter().find(|agent| agent.agent == lane.name).map(|agent| agent.program.as_str());
        let title = lane.bars.first().map(|bar| bar.title.as_str()).filter(|_| is_by_task);
        if let Some(second) = title.or(program).filter(|_| !is_dense) {
            names.label(
                "sub",
                (2.0, y + row_height / 2.0 + 17.0),
                &fitting(&cut(second, 40), room, 5.8),
                Anchor::Start,
            );
        }
        for (bar, row) in lane.bars.iter().zip(places) {
            if let Some(row) = row {
                let top = y + *row as f64 * row_height + if is_dense { 2.0 } else { 6.0 };
                draw_bar(&mut svg, look, bar, timeline.now_us, &scale, (top, bar_height));
            }
        }
        y += height_of(*rows);
        svg.line("grid", (0.0, y), (WIDTH, y));
        names.line("grid", (0.0, y), (NAMES, y));
    }
    if is_open {
        let now = scale.x(timeline.now_us);
        svg.line("now", (now, TOP - 6.0), (now, height - 4.0));
    }
    (names.end(), svg.end())
}

/// Puts bars that overlap below each other: how many rows there are, and the row of each bar; none of what finds no place.
fn pack(bars: &[LaneBar], scale: &Scale) -> (usize, Vec<Option<usize>>) {
    let mut ends: Vec<f64> = Vec::new();
    let mut place = |bar: &LaneBar| {
        let (from, to) = (scale.x(bar.from_us), scale.x(bar.to_us.unwrap_or(scale.to)));
        // Nobody can see or reach so short a wait.
        if bar.to_us.is_some() && to - from < 3.0 && bar.stage != Stage::Running {
            return None;
        }
        let to = to.max(from + 4.0);
        let row = ends.iter().position(|end| *end <= from + 0.5);
        let row = row.or_else(|| (ends.len() < ROWS_MAX).then_some(ends.len()))?;
        if row == ends.len() {
            ends.push(to);
        }
        ends[row] = to;
        Some(row)
    };
    let places = bars.iter().map(&mut place).collect();
    (ends.len().max(1), places)
}

fn draw_bar(svg: &mut Svg, look: &Look<'_>, bar: &LaneBar, now_us: i64, scale: &Scale, (top, height): (f64, f64)) {
    let (class, word) = looks(bar);
    let until = bar.to_us.unwrap_or(now_us);
    let (from, to) = (scale.x(bar.from_us), scale.x(until));
    let width = (to - from - 1.0).max(3.0);
    let begin = rfc3339(Timestamp(bar.from_us));
    let words = format!(
        "{} {}: {word}, {} from {} UTC",
        bar.task,
        cut(&bar.title, 100),
        lasting(until - bar.from_us),
        clock(&begin)
    );
    svg.link(&format!("bar {class}"), &look.link_task(&bar.task), &words);
    svg.rect((from, top), (width, height), 4.0);
    let room = width - 12.0;
    let whole = match class {
        "b-fail" => format!("{} failed", bar.task),
        _other => format!("{} {}", bar.task, bar.title),
    };
    let text = if room > 80.0 { fitting(&whole, room, 6.5) } else { fitting_name(&bar.task, room) };
    if !text.is_empty() {
        svg.label("", (from + 7.0, top + height / 2.0 + 4.0), &text, Anchor::Start);
    }
    svg.close("a");
}

/// A name is shown whole or not at all.
fn fitting_name(name: &str, room: f64) -> String {
    if name.chars().count() as f64 * 7.0 <= room { name.to_owned() } else { String::new() }
}

/// The class of a bar, and what it means.
fn looks(bar: &LaneBar) -> (&'static str, &'static str) {
    match (bar.stage, bar.then) {
        (Stage::Running, None) => ("b-run", "running"),
        (Stage::Running, Some(Stage::Done)) => ("b-done", "done"),
        // A failed task whose plan tries again is planned until its timer is set.
        (Stage::Running, Some(Stage::Failed | Stage::Retrying | Stage::Planned)) => ("b-fail", "failed"),
        (Stage::Running, Some(Stage::Waiting)) => ("b-done", "ran until it asked"),
        (Stage::Running, Some(Stage::Skipped)) => ("b-skip", "cancelled"),
        (Stage::Running, Some(_lost)) => ("b-skip", "given back"),
        (Stage::Waiting, _) => ("b-wait", of_stage(Stage::Waiting)),
        (stage, _) => ("b-queue", of_stage(stage)),
    }
}

fn ticks(svg: &mut Svg, scale: &Scale, height: f64) {
    for (begin, end) in &scale.idle {
        let x = scale.x(*begin);
        svg.open("g", &[("class", &"idle")]);
        svg.rect((x, TOP - 4.0), (IDLE_WIDTH, height - TOP), 0.0);
        svg.label("tick", (x + IDLE_WIDTH / 2.0, 12.0), &lasting(end - begin), Anchor::Middle);
        svg.close("g");
    }
    let n_idle: i64 = scale.idle.iter().map(|(begin, end)| end - begin).sum();
    let span = (scale.to - scale.from - n_idle) / SECOND_US;
    let step = TICKS.into_iter().find(|step| span / step <= 7).unwrap_or(span / 7).max(1) * SECOND_US;
    let (mut at, mut last) = ((scale.from / step + 1) * step, 0.0);
    while at < scale.to {
        if let Some((_, end)) = scale.idle.iter().find(|(begin, end)| (begin..end).contains(&&at)) {
            at = (end / step + 1) * step;
            last = scale.x(*end);
            continue;
        }
        let (x, moment) = (scale.x(at), rfc3339(Timestamp(at)));
        svg.line("grid", (x, TOP - 4.0), (x, height - 4.0));
        let until_idle = scale.idle.iter().map(|(begin, _)| scale.x(*begin) - x).find(|room| *room >= 0.0);
        let until_end = scale.x(scale.to) - x;
        if x - last > 8.0 && until_end > TICK_WIDTH && until_idle.is_none_or(|room| room > TICK_WIDTH) {
            let text = match step {
                _seconds if step < 60 * SECOND_US => clock(&moment).to_owned(),
                _hours if step < 86_400 * SECOND_US => clock(&moment).get(..5).unwrap_or_default().to_owned(),
                _days => moment.get(5..10).unwrap_or_default().to_owned(),
            };
            let how = if step < 86_400 * SECOND_US { "time" } else { "day" };
            let (x, y) = (Px(x), 12);
            svg.text(
                "text",
                &[("class", &"tick"), ("x", &x), ("y", &y), ("data-tick", &how), ("data-at", &moment)],
                &text,
            );
        }
        at += step;
    }
}
