//! The time line of a plan, in lanes.

use askama::Template;

use super::look::Look;
use super::svg::{Anchor, Px, Svg, fitting};
use crewlog_planner::lifecycle::State;

use super::words::{Markup, cut, lasting};
use crate::ui::failure::Failure;
use crate::ui::text::rfc3339;
use crate::views::{LaneBar, Timeline, time_of_day};
use crewlog_mq::Timestamp;

/// The width of the names of the lanes, which stay in view, and of the times next to them.
const NAMES: f64 = 116.0;
const WIDTH: f64 = 1_224.0;
/// The x coordinate where time begins.
const LEFT: f64 = 4.0;
const TOP: f64 = 22.0;
/// The width of a long time without running tasks.
const IDLE_WIDTH: f64 = 56.0;
/// The most rows of one lane; overlapping bars go into further rows.
const ROWS_MAX: usize = 6;
/// The most bars, the newest.
const BARS_MAX: usize = 400;
/// Distances of ticks, in seconds.
const TICKS: [i64; 17] =
    [1, 5, 15, 30, 60, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 604_800, 2_592_000];
/// The width of a tick's label.
const TICK_WIDTH: f64 = 56.0;
const SECOND_US: i64 = 1_000_000;

#[derive(Template)]
#[template(path = "timeline.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
struct Card<'a> {
    look: &'a Look<'a>,
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
    let n_more = timeline.n_more + thin(&mut timeline);
    if timeline.lanes.is_empty() {
        return Ok(Markup::default());
    }
    let agents = look.shown.agents(true).await?;
    let second = |lane: &str, bars: &[LaneBar]| match is_by_task {
        true => bars.first().map(|bar| bar.title.clone()),
        false => agents.iter().find(|agent| agent.agent == lane).map(|agent| agent.program.clone()),
    };
    let (names, drawing) = draw(look, &timeline, second, plan.is_open());
    Ok(Markup::of(&Card { look, is_by_task, names, drawing, n_more }))
}

/// Keeps the newest bars, and returns the number of omitted ones.
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

/// Converts time to pixels. Long times without running tasks are shortened.
struct Scale {
    /// The long times without running tasks.
    idle: Vec<(i64, i64)>,
    from: i64,
    to: i64,
    /// The time that is drawn to scale.
    n_even: i64,
}

impl Scale {
    /// From the first bar to the last end, or to now while the plan is open.
    fn of(timeline: &Timeline, is_open: bool) -> Self {
        let now = timeline.now_us;
        let bars = || timeline.lanes.iter().flat_map(|lane| &lane.bars);
        let from = bars().map(|bar| bar.from_us).min().unwrap_or(now);
        let end = bars().map(|bar| bar.to_us.unwrap_or(now)).max().filter(|_| !is_open).unwrap_or(now);
        let ran = bars().filter(|bar| bar.stage == State::Running);
        let mut ran: Vec<_> = ran.map(|bar| (bar.from_us, bar.to_us.unwrap_or(now))).chain([(end, end)]).collect();
        ran.sort_unstable();
        let (mut idle, mut busy_to) = (Vec::new(), from);
        for (begin, end) in ran {
            idle.extend((begin > busy_to).then_some((busy_to, begin)));
            busy_to = busy_to.max(end);
        }
        let length = |idle: &[(i64, i64)]| idle.iter().map(|(begin, end)| end - begin).sum::<i64>();
        let n_busy = end - from - length(&idle);
        idle.retain(|(begin, end)| end - begin > (n_busy / 3).max(600 * SECOND_US));
        let n_even = end - from - length(&idle);
        // Rounded, so that the drawing does not change at every moment.
        let step = (n_even / 400).max(SECOND_US);
        let more = step - n_even % step;
        Self { idle, from, to: end + more, n_even: n_even + more }
    }

    fn x(&self, us: i64) -> f64 {
        let room = WIDTH - LEFT - 12.0 - IDLE_WIDTH * self.idle.len() as f64;
        let width = |us: i64| us as f64 / self.n_even as f64 * room;
        let us = us.clamp(self.from, self.to);
        self.idle.iter().fold(LEFT + width(us - self.from), |x, (begin, end)| {
            let passed = us.clamp(*begin, *end) - begin;
            x - width(passed) + passed as f64 / (end - begin) as f64 * IDLE_WIDTH
        })
    }
}

/// The names of the lanes, and the lanes. `second` is a subtitle for a lane.
fn draw(
    look: &Look<'_>,
    timeline: &Timeline,
    second: impl Fn(&str, &[LaneBar]) -> Option<String>,
    is_open: bool,
) -> (Markup, Markup) {
    let scale = Scale::of(timeline, is_open);
    let packed: Vec<_> = timeline.lanes.iter().map(|lane| pack(&lane.bars, &scale)).collect();
    let is_dense = timeline.lanes.len() > 12;
    let (bar_height, row_height, gap) = if is_dense { (18.0, 22.0, 2.0) } else { (26.0, 32.0, 6.0) };
    let height_of = |rows: usize| rows as f64 * row_height + 2.0 * gap;
    let height = TOP + packed.iter().map(|(rows, _)| height_of(*rows)).sum::<f64>() + 4.0;
    let n_bars: usize = timeline.lanes.iter().map(|lane| lane.bars.len()).sum();
    let label = format!("Timeline with {} lanes and {n_bars} bars; each bar is a link to its task", packed.len());
    let mut names = Svg::new("names", (NAMES, height), "The lanes", false);
    let mut svg = Svg::new("timeline", (WIDTH, height), &label, false);
    ticks(&mut svg, &scale, height);
    let mut y = TOP;
    for (lane, (rows, places)) in timeline.lanes.iter().zip(&packed) {
        let (room, middle) = (NAMES - 8.0, y + row_height / 2.0);
        names.label("lane", (2.0, middle + 3.0), &fitting(&cut(&lane.name, 40), room, 7.0), Anchor::Start);
        if let Some(second) = second(&lane.name, &lane.bars).filter(|_| !is_dense) {
            names.label("sub", (2.0, middle + 17.0), &fitting(&cut(&second, 40), room, 5.8), Anchor::Start);
        }
        for (bar, row) in lane.bars.iter().zip(places) {
            if let Some(row) = row {
                let top = y + *row as f64 * row_height + gap;
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

/// Puts overlapping bars into separate rows: the number of rows, and the row of each bar, or `None` without space.
fn pack(bars: &[LaneBar], scale: &Scale) -> (usize, Vec<Option<usize>>) {
    let mut ends: Vec<f64> = Vec::new();
    let mut place = |bar: &LaneBar| {
        let (from, to) = (scale.x(bar.from_us), scale.x(bar.to_us.unwrap_or(scale.to)));
        // Such a short wait is too small to see or click.
        if bar.to_us.is_some() && to - from < 3.0 && bar.stage != State::Running {
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
    let (begin, lasted) = (rfc3339(Timestamp(bar.from_us)), lasting(until - bar.from_us));
    let words = format!("{} {}: {word}, {lasted} from {} UTC", bar.task, cut(&bar.title, 100), time_of_day(&begin));
    svg.link(&format!("bar {class}"), &look.link_task(&bar.task), &words);
    svg.rect((from, top), (width, height), 4.0);
    let (room, rest) = (width - 12.0, if class == "b-fail" { "failed" } else { &bar.title });
    // A name is shown in full or not at all.
    let text = match room > 80.0 {
        true => fitting(&format!("{} {rest}", bar.task).replace('`', ""), room, 6.5),
        false if bar.task.chars().count() as f64 * 7.0 <= room => bar.task.clone(),
        false => String::new(),
    };
    svg.label("", (from + 7.0, top + height / 2.0 + 4.0), &text, Anchor::Start);
    svg.close();
}

/// The class of a bar, and its meaning.
fn looks(bar: &LaneBar) -> (&'static str, &'static str) {
    match (bar.stage, bar.then) {
        (State::Running, None) => ("b-run", "running"),
        (State::Running, Some(State::Done)) => ("b-done", "done"),
        (State::Running, Some(State::Failed | State::Waiting)) => ("b-fail", "failed"),
        (State::Running, Some(State::WaitingForYou)) => ("b-done", "ran until it asked"),
        (State::Running, Some(State::Skipped | State::Cancelled)) => ("b-skip", "cancelled"),
        (State::Running, Some(_lost)) => ("b-skip", "given back"),
        (State::WaitingForYou, _) => ("b-wait", State::WaitingForYou.words()),
        (state, _) => ("b-queue", state.words()),
    }
}

fn ticks(svg: &mut Svg, scale: &Scale, height: f64) {
    for (begin, end) in &scale.idle {
        let x = scale.x(*begin);
        svg.write(format_args!("<g class=\"idle\">"));
        svg.rect((x, TOP - 4.0), (IDLE_WIDTH, height - TOP), 0.0);
        svg.label("tick", (x + IDLE_WIDTH / 2.0, 12.0), &lasting(end - begin), Anchor::Middle);
        svg.write(format_args!("</g>"));
    }
    let span = scale.n_even / SECOND_US;
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
        let next = scale.idle.iter().map(|(begin, _)| *begin).find(|begin| *begin >= at).unwrap_or(scale.to);
        if x - last > 8.0 && scale.x(next) - x > TICK_WIDTH {
            let (how, text) = match step / SECOND_US {
                0..60 => ("time", moment.get(11..19)),
                60..86_400 => ("time", moment.get(11..16)),
                _days => ("day", moment.get(5..10)),
            };
            let text = text.unwrap_or_default();
            svg.write(format_args!(
                "<text class=\"tick\" x=\"{}\" y=\"12\" data-tick=\"{how}\" data-at=\"{moment}\">{text}</text>",
                Px(x)
            ));
        }
        at += step;
    }
}
