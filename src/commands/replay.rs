//! `replay`: tells a plan's history, event by event: what each changed. It appends and executes nothing.

use std::collections::HashMap;
use std::io::{self, Write};

use clap::Args;
use crewlog_executors::verify::{Verification, verify};
use crewlog_mq::{self as mq, Error, EventStore, Position, Query, Recorded};
use crewlog_planner::claim;
use crewlog_planner::event::{self, Event};
use crewlog_planner::lifecycle::{Observed, State, States};
use crewlog_planner::view::PlanView;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::diff;
use crate::cli::sealing::KeyPlace;
use crate::cli::typed::At;
use crate::context::{ListPrinter, Session};
use crate::ui::failure::{Code, Failure};
use crate::ui::terminal::{Output, prompt, read_line, say};
use crate::ui::text::{count, moment_of, one_line, rfc3339, utc, visible};
use crate::views::at::{Point, position_of};
use crate::views::changes::{Change, in_short};
use crate::views::names::{Choice, find_plan, open_plan};
use crate::views::queries::for_each;
use crate::views::text::print_view;
use crate::views::{PlanShown, name_of};

#[derive(Debug, Args)]
pub struct Replay {
    /// The plan; with --verify all plans if left out
    #[arg(required_unless_present = "verify")]
    pub plan: Option<String>,
    /// Replay every command with this version, and print the first event that differs from the log
    #[arg(long, conflicts_with_all = ["step", "from", "to", "failure"])]
    pub verify: bool,
    /// Read commands from standard input, one per line, even if it is not a terminal (h lists them)
    #[arg(long)]
    pub step: bool,
    /// Begin with the first event at or after this position, or with a checkpoint
    #[arg(long, value_name = "POSITION|CHECKPOINT")]
    pub from: Option<At>,
    /// End with the last event at or before this position, or with a checkpoint
    #[arg(long, value_name = "POSITION|CHECKPOINT")]
    pub to: Option<At>,
    /// Print only the events with which a task fails, times out or is cancelled
    #[arg(long, conflicts_with = "step")]
    pub failure: bool,
}

/// Changes in the text of a step; JSON has all of them.
const CHANGES_SHOWN_MAX: usize = 40;

/// Characters of a difference in the text; JSON has all of it.
const DIFFERENCE_CHARS_MAX: usize = 2_000;

const HELP: &str = "\
n, next, or nothing [COUNT]  step forward COUNT events (default 1)
b, back [COUNT]              step back COUNT events (default 1)
g, to POSITION               to the last event at or before a position
f, failure                   to the next failure
F, previous                  to the previous failure
s, show                      print the whole plan as of this event
first, last                  to the first or last event
h, help                      print this help
q, quit                      quit, as at the end of input";

pub async fn replay(session: &Session, replay: &Replay) -> Result<Code, Failure> {
    let typed = match &replay.plan {
        Some(typed) if !replay.verify => typed,
        Some(_) | None => return verify_again(session, replay.plan.as_deref()).await,
    };
    let (store, plan) = open_plan(session, typed, Choice::Viewed).await?;
    let head = store.head().await?;
    let from = position_of(session, &store, &plan, replay.from.as_ref(), Position(1)).await?;
    let to = position_of(session, &store, &plan, replay.to.as_ref(), head).await?;
    let mut steps = Steps::load(&store, &plan, to).await?;
    let places = steps.n_up_to(Position(from.0 - 1))..steps.events.len();
    let is_on_terminal = session.terminal.is_interactive && session.output == Output::Text && !replay.failure;
    if !replay.step && !is_on_terminal {
        let mut printer = ListPrinter::new(session, format!("\"plan\": {}, \"steps\"", Value::from(plan)));
        let failures = steps.failures.clone();
        for place in places.filter(|place| !replay.failure || failures.binary_search(place).is_ok()) {
            let step = steps.step(place)?;
            printer.print(&step, |to| step.print(to))?;
        }
        let event = if replay.failure { "failure" } else { "event" };
        return printer.end(&format!("no {event} of the plan is in this range"));
    }
    if places.is_empty() {
        let failure = Failure::new(Code::Nothing, format!("{plan} has no event from position {from} to {to}"));
        return Err(failure.hint(session.command_on("events", &plan)));
    }
    // The steps of a person are no document: each has a line.
    let mut session = session.clone();
    session.output = if session.output == Output::Text { Output::Text } else { Output::Jsonl };
    let printer = ListPrinter::new(&session, "");
    Stepper { is_interactive: session.terminal.is_interactive, printer, plan, place: places.start, places, steps }.run()
}

/// A replay driven by orders.
struct Stepper<'a> {
    is_interactive: bool,
    printer: ListPrinter<'a>,
    plan: String,
    steps: Steps,
    /// The events that can be shown.
    places: std::ops::Range<usize>,
    place: usize,
}

impl Stepper<'_> {
    fn run(mut self) -> Result<Code, Failure> {
        if self.is_interactive {
            say(&format!("{}; h lists the orders", count(self.places.len(), "event")));
        }
        self.show_step(self.place)?;
        loop {
            if self.is_interactive {
                prompt(&format!("{}> ", self.steps.events[self.place].position));
            }
            let line = read_line().map_err(Failure::input)?;
            match line.as_deref().map(Order::parse) {
                None | Some(Ok(Order::Quit)) => return Ok(Code::Done),
                Some(Ok(order)) => self.obey(order)?,
                Some(Err(why)) => say(&format!("{why}; h lists the orders")),
            }
        }
    }

    fn obey(&mut self, order: Order) -> Result<(), Failure> {
        let std::ops::Range { start: first, end } = self.places;
        let (here, last) = (self.place, end - 1);
        // A place before the first or after the last event leads to that event.
        let wanted = match order {
            Order::Next(n) => {
                let to = here.saturating_add(n);
                (here + 1..to.min(last)).try_for_each(|place| self.show_step(place))?;
                Some(to)
            }
            Order::Back(n) => here.checked_sub(n),
            Order::To(position) if position > self.steps.events[last].position => Some(end),
            Order::To(position) => self.steps.n_up_to(position).checked_sub(1),
            Order::First => Some(first),
            Order::Last => Some(last),
            Order::NextFailure | Order::FailureBefore => {
                let failures = &self.steps.failures;
                let (found, side) = if order == Order::NextFailure {
                    (failures.iter().find(|place| (here + 1..end).contains(place)), "after")
                } else {
                    (failures.iter().rfind(|place| (first..here).contains(place)), "before")
                };
                if found.is_none() {
                    say(&format!("nothing fails {side} this event"));
                }
                Some(found.copied().unwrap_or(here))
            }
            Order::Show => return self.show_plan(),
            Order::Help => {
                say(HELP);
                return Ok(());
            }
            Order::Quit => return Ok(()),
        };
        let wanted = wanted.filter(|place| *place >= first);
        let to = wanted.map_or(first, |wanted| wanted.min(last));
        if to != here {
            self.show_step(to)?;
        }
        match wanted {
            None => say("this is the first event"),
            Some(wanted) if wanted > last => say("this is the last event"),
            Some(_) => {}
        }
        Ok(())
    }

    fn show_step(&mut self, place: usize) -> Result<(), Failure> {
        let step = self.steps.step(place)?;
        self.place = place;
        self.printer.print(&step, |to| step.print(to))?;
        self.printer.flush()
    }

    fn show_plan(&mut self) -> Result<(), Failure> {
        let Recorded { position: at, created_at, .. } = self.steps.events[self.place];
        let (plan, view, point) = (&self.plan, &self.steps.view, Point { asked: at, at });
        let states = States::of(plan, view, &Observed::default());
        let json = PlanShown::of(plan, at, view, &states);
        self.printer.print(&json, |to| print_view(to, plan, point, created_at, view, &states))?;
        self.printer.flush()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Next(usize),
    Back(usize),
    To(Position),
    NextFailure,
    FailureBefore,
    Show,
    First,
    Last,
    Help,
    Quit,
}

impl Order {
    fn parse(line: &str) -> Result<Self, String> {
        let words = line.split_whitespace().collect::<Vec<_>>();
        let n = |word: &str| match word.parse() {
            Ok(n @ 1..) => Ok(n),
            Ok(0_usize) | Err(_) => Err(format!("{:?} is not a number of events", one_line(word, 40))),
        };
        match words.as_slice() {
            [] | ["n" | "next"] => Ok(Self::Next(1)),
            ["n" | "next", count] => n(count).map(Self::Next),
            ["b" | "back"] => Ok(Self::Back(1)),
            ["b" | "back", count] => n(count).map(Self::Back),
            ["g" | "to", position] => match position.parse() {
                Ok(at @ 0..) => Ok(Self::To(Position(at))),
                Ok(_) | Err(_) => Err(format!("{:?} is not a position", one_line(position, 40))),
            },
            ["g" | "to"] => Err("it needs a position".to_owned()),
            ["f" | "failure"] => Ok(Self::NextFailure),
            ["F" | "previous"] => Ok(Self::FailureBefore),
            ["s" | "show"] => Ok(Self::Show),
            ["first"] => Ok(Self::First),
            ["last"] => Ok(Self::Last),
            ["h" | "help"] => Ok(Self::Help),
            ["q" | "quit"] => Ok(Self::Quit),
            _other_words => Err(format!("{:?} is not understood", one_line(line, 40))),
        }
    }
}

/// The events of a plan, and the plan as of one of them.
#[derive(Default)]
struct Steps {
    events: Vec<Recorded>,
    by_id: HashMap<Uuid, usize>,
    /// The places of the events with which a task fails, times out or is cancelled, or an executor reports a failure.
    failures: Vec<usize>,
    n_applied: usize,
    view: PlanView,
}

impl Steps {
    /// Reads the history of a plan up to a position.
    async fn load(store: &EventStore, plan: &str, up_to: Position) -> Result<Self, Failure> {
        let mut steps = Self::default();
        for_each(store, Some(plan), &Query::all(), mq::Range::up_to(up_to), |recorded| {
            let place = steps.events.len();
            steps.failures.extend(is_failure(recorded)?.then_some(place));
            steps.by_id.insert(recorded.event_id, place);
            steps.events.push(recorded.clone());
            Ok(())
        })
        .await?;
        Ok(steps)
    }

    /// The number of events at or before a position.
    fn n_up_to(&self, position: Position) -> usize {
        self.events.partition_point(|event| event.position <= position)
    }

    /// Moves the view to an event and returns the changes it made. Going back folds from the first event.
    fn step(&mut self, place: usize) -> Result<StepJson<'_>, Failure> {
        if place < self.n_applied {
            (self.n_applied, self.view) = (0, PlanView::default());
        }
        self.events[self.n_applied..place].iter().try_for_each(|recorded| self.view.apply(recorded).map(drop))?;
        let recorded = &self.events[place];
        let changes = diff::step(&mut self.view, recorded)?;
        self.n_applied = place + 1;
        let metadata = recorded.metadata()?;
        let mut extra = metadata.extra.unwrap_or_default();
        let command = extra.get_mut("command").map(Value::take).filter(|command| !command.is_null());
        let cause = metadata.causation_id.map(|event_id| {
            let event = self.by_id.get(&event_id).map(|place| &self.events[*place]);
            let event_type = event.map(|event| event.event_type.as_str());
            CauseJson { position: event.map(|event| event.position), event_type, event_id }
        });
        Ok(StepJson {
            position: recorded.position,
            created_at: rfc3339(recorded.created_at),
            stream_id: &recorded.stream_id,
            aggregate_id: &recorded.aggregate_id,
            subject: subject(&self.view, recorded),
            event_type: &recorded.event_type,
            data: serde_json::from_str(&recorded.data)?,
            author: if cause.is_none() { author(&extra, command.as_ref()) } else { String::new() },
            cause,
            command,
            changes,
        })
    }
}

/// The author of an order that no event caused.
fn author(extra: &Value, command: Option<&Value>) -> String {
    let is_timer =
        command.is_some_and(|command| ["SetTimers", "FireTimer"].iter().any(|name| !command[name].is_null()));
    let named = ["agent", "account"].iter().find_map(|by| extra["by"][by].as_str());
    match named.filter(|_| !is_timer) {
        Some(name) => format!("  (by {})", one_line(name, 80)),
        None => String::new(),
    }
}

fn subject(view: &PlanView, recorded: &Recorded) -> String {
    let of_task = claim::split_aggregate_id(&recorded.aggregate_id).filter(|_| recorded.stream_id == claim::STREAM);
    let named = of_task.and_then(|(plan, task)| Some(format!("{plan}/{}", name_of(view, task)?)));
    named.unwrap_or_else(|| recorded.aggregate_id.clone())
}

fn is_failure(recorded: &Recorded) -> Result<bool, Error> {
    match (recorded.stream_id.as_str(), recorded.event_type.as_str()) {
        (claim::STREAM, "TaskFailed") => Ok(true),
        (event::STREAM, "TaskStatusUpdated") => {
            let Event::TaskStatusUpdated { status, .. } = recorded.decode()? else { return Ok(false) };
            Ok(matches!(State::of_end(status), Some(State::Failed | State::Cancelled)))
        }
        _another_type => Ok(false),
    }
}

#[derive(Serialize)]
struct CauseJson<'a> {
    /// Unset when the cause is not an event of the plan.
    position: Option<Position>,
    event_type: Option<&'a str>,
    event_id: Uuid,
}

#[derive(Serialize)]
struct StepJson<'a> {
    position: Position,
    created_at: String,
    stream_id: &'a str,
    aggregate_id: &'a str,
    /// The aggregate, with the name of the task.
    #[serde(skip)]
    subject: String,
    event_type: &'a str,
    data: &'a RawValue,
    cause: Option<CauseJson<'a>>,
    command: Option<Value>,
    changes: Vec<Change>,
    #[serde(skip)]
    author: String,
}

impl StepJson<'_> {
    /// As text: what the event changed, and who ordered it. JSON has its data, its cause and all changes.
    fn print(&self, mut to: impl Write) -> io::Result<()> {
        let created_at = moment_of(&self.created_at).map_or_else(String::new, utc);
        let is_told = |change: &&Change| {
            let is_end = ["done", "failed", "cancelled", "paused"].iter().any(|end| change.to == *end);
            change.field != "attempts" && (change.of != "plan" || change.field != "status" || is_end)
        };
        let mut changes = in_short(&self.changes).filter(is_told).map(Change::to_string);
        let first = changes.next().unwrap_or_else(|| format!("{}: {}", self.subject, in_words(self.event_type)));
        writeln!(to, "{:>6}  {created_at}  {}", self.position, visible(&(first + &self.author)))?;
        for (n, change) in changes.enumerate() {
            match n {
                CHANGES_SHOWN_MAX => return writeln!(to, "        and more"),
                _ => writeln!(to, "        {}", visible(&change))?,
            }
        }
        Ok(())
    }
}

/// The name of an event type in words: `task started`.
fn in_words(name: &str) -> String {
    let parted = name.chars().flat_map(|c| c.is_uppercase().then_some(' ').into_iter().chain(c.to_lowercase()));
    parted.collect::<String>().trim_start().to_owned()
}

/// `replay --verify`: decides the commands of a plan, or of all plans, again.
async fn verify_again(session: &Session, plan: Option<&str>) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let plan = match plan {
        Some(typed) => Some(find_plan(session, &store, typed, Choice::Viewed).await?),
        None => None,
    };
    let verification = verify(&store, plan.as_deref()).await?;
    session.print(&verification, |to| print_verification(to, &verification, &session.place.keys))?;
    Ok(if verification.difference.is_some() { Code::Differs } else { Code::Done })
}

fn print_verification(mut to: impl Write, verification: &Verification, keys: &KeyPlace) -> io::Result<()> {
    let Verification { plans, events, commands, reactions, given, sealed, shredded, difference } = verification;
    let (plans, events, commands) = (count(*plans, "plan"), count(*events, "event"), count(*commands, "command"));
    let reactions = count(*reactions, "reaction");
    match difference {
        Some(difference) => writeln!(to, "{}", one_line(&difference.to_string(), DIFFERENCE_CHARS_MAX))?,
        None => {
            writeln!(to, "verified: {plans}, {events}, {commands}, {reactions}: every decision matches the log")?;
        }
    }
    let no_key = match keys.is_given() {
        false => "sealed, and not decided again: their key is given with --key-file FILE",
        true => "sealed, and not decided again: this --key-file, with the keys in --keys FOLDER, does not open them",
    };
    let unverified = [
        (*given, "without a recorded reason: trusted"),
        (*sealed, no_key),
        (*shredded, "shredded, and never to be decided again"),
    ];
    for (n, why) in unverified.into_iter().filter(|(n, _)| *n > 0) {
        writeln!(to, "{} {why}", count(n, "append"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
