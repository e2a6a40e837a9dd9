//! The views that `top` shows, as of one position.

use std::collections::BTreeMap;

use crewlog_executors::crew::Kind;
use crewlog_mq::{Error, Position, Query, Range, Recorded, Timestamp};
use crewlog_planner::lifecycle::State;
use serde_json::{Value, json};
use strum::{IntoStaticStr, VariantArray};

use crate::ui::failure::Failure;
use crate::ui::text::{age, millis, moment_of, one_line, rfc3339, visible};
use crate::views::facts;
use crate::views::{
    AgentView, Counts, LeaseView, ListedPlan, NeedView, PlanShown, TaskNames, TaskShown, Views, counts_of,
    name_of_value, of_executor, time_of_day,
};

/// The most plans that are listed: the open ones first, then the newest.
const PLANS_MAX: usize = 200;
/// The most events that are listed, the newest.
const EVENTS_MAX: usize = 200;
/// The longest text in a cell, in characters.
const CELL_CHARS_MAX: usize = 400;
/// The steps of the meter of an agent's context.
const METER_STEPS: usize = 5;

/// A list on the screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, VariantArray, IntoStaticStr)]
pub enum Panel {
    #[default]
    #[strum(serialize = "Needs you")]
    Needs,
    Plans,
    Tasks,
    Agents,
    Leases,
    Log,
}

/// The selection to show: the views at a position, or now, with the tasks of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    pub at: Option<Position>,
    /// The first plan of the list if unset or not in the list.
    pub plan: Option<String>,
}

/// The views as of one position.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    pub at: Position,
    pub head: Position,
    /// The end of the previous append.
    pub before: Option<Position>,
    /// The log time of the position, or of the present.
    pub time: Timestamp,
    pub needs: Vec<NeedView>,
    pub plans: Vec<PlanLine>,
    /// The plan of the tasks.
    pub plan: Option<String>,
    pub tasks: Vec<TaskLine>,
    pub agents: Vec<AgentView>,
    pub leases: Vec<LeaseView>,
    /// Each with its subject, newest first.
    pub events: Vec<(Recorded, String)>,
}

/// A plan, with the number of its tasks in each state if it is an open one of the project.
#[derive(Debug, Clone)]
pub struct PlanLine {
    pub listed: ListedPlan,
    pub counts: Option<Counts>,
}

/// A task, with the start of its state.
#[derive(Debug, Clone)]
pub struct TaskLine {
    pub task: TaskShown,
    pub state: State,
    pub since: Option<Timestamp>,
}

/// The look of a row, besides its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Good,
    Busy,
    Bad,
}

/// A row of a panel. Its texts are safe to show.
pub struct Row {
    /// Identifies the item as long as it is listed.
    pub key: String,
    /// Its index in the list of the view.
    pub place: usize,
    pub cells: Vec<String>,
    pub tone: Tone,
}

impl Panel {
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;

    pub fn moved(self, steps: usize) -> Self {
        Self::ALL[(self as usize + steps) % Self::ALL.len()]
    }
}

impl Shown {
    /// Reads the views.
    ///
    /// # Errors
    /// A position that the log does not reach, or a fault of the log.
    pub async fn load(views: &Views, asked: &Asked) -> Result<Self, Failure> {
        let as_of = views.as_of(asked.at).await?;
        let mut counts = BTreeMap::new();
        for plan in as_of.open().await?.keys() {
            counts.insert(plan.clone(), counts_of(&as_of.states(plan).await?));
        }
        let plans = as_of.plans().await?.into_iter().rev();
        let line = |listed: ListedPlan| PlanLine { counts: counts.get(&listed.plan).copied(), listed };
        let mut plans: Vec<_> = plans.map(line).collect();
        plans.sort_by_key(|plan| plan.counts.is_none());
        plans.truncate(PLANS_MAX);
        let is_listed = |plan: &&String| plans.iter().any(|line| line.listed.plan == **plan);
        let plan = asked.plan.as_ref().filter(is_listed).or(plans.first().map(|first| &first.listed.plan)).cloned();
        let mut tasks = Vec::new();
        if let Some(plan) = &plan {
            match as_of.track(plan).await {
                Ok(track) => {
                    let shown = PlanShown::of(plan, as_of.at, &track.view, &as_of.states(plan).await?);
                    let shown = as_of.with_outputs(shown, &track.view);
                    tasks.extend(shown.tasks.into_iter().zip(&track.view.state().tasks).map(|(task, of)| {
                        let last = track.bars(of.plan.id).last();
                        let since = last.map(|bar| bar.ended.map_or(bar.from, |(ended, _)| ended).at);
                        TaskLine { state: task.state, task, since }
                    }));
                }
                // Its key is missing or destroyed.
                Err(Error::Decode { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let range = Range::up_to(as_of.at).backwards();
        let (mut events, mut names) = (Vec::new(), TaskNames::up_to(as_of.at, as_of.store()));
        for event in as_of.events(&Query::all(), range, EVENTS_MAX).await?.events {
            let subject = names.subject(&event).await?;
            events.push((event, subject));
        }
        let before = events.first().map(|(last, _)| Position(last.append_start.0 - 1)).filter(|before| before.0 > 0);
        Ok(Self {
            at: as_of.at,
            head: as_of.store().head().await?,
            before,
            time: as_of.now,
            needs: as_of.needs(str::to_owned).await?,
            plans,
            plan,
            tasks,
            agents: as_of.agents(false).await?,
            leases: as_of.leases(|_| true).await?,
            events,
        })
    }

    /// The rows of a panel at a moment.
    pub fn rows(&self, panel: Panel, now: Timestamp) -> Vec<Row> {
        match panel {
            Panel::Needs => self.needs.iter().enumerate().map(|(place, need)| self.need(place, need, now)).collect(),
            Panel::Plans => self.plans.iter().enumerate().map(|(place, plan)| plan.row(place)).collect(),
            Panel::Tasks => self.tasks.iter().enumerate().map(|(place, task)| task.row(place, now)).collect(),
            Panel::Agents => self.agents.iter().enumerate().map(agent).collect(),
            Panel::Leases => self.leases.iter().enumerate().map(lease).collect(),
            Panel::Log => self.events.iter().enumerate().map(event).collect(),
        }
    }

    fn need(&self, place: usize, need: &NeedView, now: Timestamp) -> Row {
        let waited = millis(now.since(self.time));
        let age = need.age_ms.map(|ms| age(ms.saturating_add(waited))).unwrap_or_default();
        let who = if need.id.starts_with(&need.from) { need.id.clone() } else { format!("{} {}", need.id, need.from) };
        let tone = if matches!(need.kind, Kind::Permission | Kind::Question) { Tone::Busy } else { Tone::Bad };
        let kind = name_of_value(&json!(need.kind));
        Row::new(format!("{kind} {}", need.id), place, tone, &[&kind, &age, &who, &need.text])
    }

    /// All fields of an item in a panel, in lines that are safe to show.
    pub fn details(&self, panel: Panel, place: usize) -> Option<String> {
        let (json, first, heading): (_, _, &[&str]) = match panel {
            Panel::Needs => (json!(self.needs.get(place)?), "text", &["kind", "id"]),
            Panel::Plans => (json!(self.plans.get(place)?.listed), "title", &["plan", "status"]),
            Panel::Tasks => (json!(self.tasks.get(place)?.task), "description", &["id", "state"]),
            Panel::Agents => (json!(self.agents.get(place)?), "note", &["agent", "liveness"]),
            Panel::Leases => (json!(self.leases.get(place)?), "reason", &["path", "agent"]),
            Panel::Log => {
                let (event, subject) = self.events.get(place)?;
                let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
                let (at, stream) = (rfc3339(event.created_at), &event.stream_id);
                let head = format!("{} {}\n{stream} {subject}\n{at}", event.position, event.event_type);
                return Some(safe(&format!("{head}\n\n{data:#}")));
            }
        };
        Some(described(json, first, heading))
    }
}

impl PlanLine {
    fn row(&self, place: usize) -> Row {
        let ListedPlan { plan, title, status, .. } = &self.listed;
        let tone = match *status {
            State::Failed | State::Interrupted => Tone::Bad,
            State::WaitingForYou | State::Paused => Tone::Busy,
            State::Running
            | State::Ready
            | State::Waiting
            | State::Planned
            | State::Done
            | State::Skipped
            | State::Cancelled => Tone::Plain,
        };
        let counted = self.counts.iter().flat_map(|counts| State::ALL.iter().zip(counts)).filter(|(_, n)| **n > 0);
        let counts = counted.map(|(state, n)| format!("{n} {}", state.words())).collect::<Vec<_>>().join(", ");
        Row::new(plan.clone(), place, tone, &[plan, status.words(), &counts, title])
    }
}

impl TaskLine {
    fn row(&self, place: usize, now: Timestamp) -> Row {
        let Self { task, state, since } = self;
        let tone = match state {
            State::Done => Tone::Good,
            State::Failed | State::Interrupted => Tone::Bad,
            State::Running | State::Waiting | State::WaitingForYou | State::Paused => Tone::Busy,
            State::Skipped | State::Cancelled | State::Ready | State::Planned => Tone::Plain,
        };
        let age_of = |at| age(millis(now.since(at)));
        let age = since.map(age_of).unwrap_or_default();
        let executor = task.executor.as_deref().map(of_executor).unwrap_or_default();
        let text = match (&task.error, &task.result) {
            (Some(error), _) => format!("error: {error}; {}", task.description),
            (None, Some(result)) => format!("{}: {result}", task.description),
            (None, None) => match (&task.waits_for, &task.last_output) {
                (Some(lease), _) => format!("{lease}: {}", task.description),
                (None, Some(last)) => {
                    let age = moment_of(&last.at).map(age_of).unwrap_or_default();
                    format!("{} ({age} ago), {}", last.line, task.description)
                }
                (None, None) => task.description.clone(),
            },
        };
        Row::new(task.id.clone(), place, tone, &[&task.id, state.words(), &age, executor, &text])
    }
}

impl Row {
    fn new(key: String, place: usize, tone: Tone, cells: &[&str]) -> Self {
        let cells = cells.iter().map(|cell| one_line(cell, CELL_CHARS_MAX)).collect();
        Self { key, place, cells, tone }
    }

    /// True if a cell contains the text, in any case.
    pub fn has(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.cells.iter().any(|cell| cell.to_lowercase().contains(&text))
    }
}

fn agent((place, agent): (usize, &AgentView)) -> Row {
    let liveness = name_of_value(&agent.liveness);
    let tone = if liveness == "alive" && name_of_value(&agent.health) == "healthy" { Tone::Good } else { Tone::Bad };
    let meter = agent.context_usage.map(|percent| {
        let full = (usize::from(percent) * METER_STEPS).div_ceil(100).min(METER_STEPS);
        format!("{}{} {percent}%", "#".repeat(full), "-".repeat(METER_STEPS - full))
    });
    let step = agent.step.clone().or_else(|| agent.doing.clone());
    let [meter, task, step] = [&meter, &agent.task, &step].map(|text| text.as_deref().unwrap_or_default());
    // Its trouble says more than its activity.
    let health = name_of_value(&agent.health);
    let state = if health == "healthy" { name_of_value(&agent.activity) } else { health };
    let cells = [&agent.agent, &liveness, &state, meter, task, step];
    Row::new(agent.agent.clone(), place, tone, &cells)
}

fn lease((place, lease): (usize, &LeaseView)) -> Row {
    let (state, tone) = match lease.lease {
        Some(_) if lease.is_exclusive => ("holds", Tone::Plain),
        Some(_) => ("shares", Tone::Plain),
        None => ("waits", Tone::Busy),
    };
    let key = format!("{:?} {:?} {}", lease.lease, lease.waiting, lease.path);
    let since = lease.since.as_ref().map_or_else(String::new, |since| format!("since {} ", time_of_day(since)));
    let until = format!("{since}until {}", time_of_day(&lease.until));
    Row::new(key, place, tone, &[&lease.path, &lease.agent, state, &until])
}

fn event((place, (event, subject)): (usize, &(Recorded, String))) -> Row {
    let tone = if event.event_type.ends_with("Failed") { Tone::Bad } else { Tone::Plain };
    let (position, at) = (event.position.to_string(), rfc3339(event.created_at));
    let cells = [&position, time_of_day(&at), &event.event_type, subject];
    Row::new(position.clone(), place, tone, &cells)
}

/// Fields line by line, after one of them in full.
pub fn described(mut json: Value, first: &str, heading: &[&str]) -> String {
    let long = json.as_object_mut().and_then(|fields| fields.remove(first)).unwrap_or_default();
    let mut text = Vec::new();
    // Writing to memory cannot fail.
    let _ = facts::print(&mut text, &json, [heading, &[]], None);
    safe(&format!("{}\n\n{}", long.as_str().unwrap_or_default(), String::from_utf8_lossy(&text)))
}

/// Lines that are safe to show.
pub fn safe(text: &str) -> String {
    visible(text).replace('\t', "    ")
}
