//! `replay`: shows a plan's events one by one, with the cause of each and its changes. It only folds the log: nothing
//! is appended, decided or executed.

use std::io::{self, BufWriter, Write};
use std::ops::Range;

use crewlog_mq::Position;

use crate::cli::{Output, Replay};
use crate::failure::{Code, Failure};
use crate::fork::position_of;
use crate::json::print_line;
use crate::queries;
use crate::session::{ListPrinter, Session};
use crate::show;
use crate::step::Steps;
use crate::terminal::{prompt, read_line, say};
use crate::text::{count, one_line};
use crate::verify::verify;
use crate::views::PlanShown;

const HELP: &str = "\
n, next, or nothing [COUNT]  one event on, or COUNT of them
b, back [COUNT]              one event back, or COUNT
g, to POSITION               to the last event at or before a position
f, failure                   to the next event with which something fails
F, previous                  to the one before
s, show                      the whole plan as of here
first, last                  to either end
h, help                      this
q, quit                      the end, as the end of input is";

pub async fn replay(session: &Session, replay: &Replay) -> Result<Code, Failure> {
    let typed = match &replay.plan {
        Some(typed) if !replay.verify => typed,
        Some(_) | None => return verify(session, replay.plan.as_deref()).await,
    };
    let (store, plan) = queries::open_plan(session, typed).await?;
    let head = store.head().await?;
    let from = position_of(session, &store, &plan, replay.from.as_ref(), Position(1)).await?;
    let to = position_of(session, &store, &plan, replay.to.as_ref(), head).await?;
    let steps = Steps::load(&store, &plan, to).await?;
    let places = steps.n_up_to(Position(from.0 - 1))..steps.len();
    let is_on_terminal = session.terminal.is_interactive && session.output == Output::Text && !replay.failure;
    if !replay.step && !is_on_terminal {
        return print_all(session, &plan, steps, places, replay.failure);
    }
    if places.is_empty() {
        let failure = Failure::new(Code::Nothing, format!("{plan} has no event from position {from} to {to}"));
        return Err(failure.hint(session.command_on("events", &plan)));
    }
    Stepper { session, plan, place: places.start, places, steps }.run()
}

fn print_all(
    session: &Session,
    plan: &str,
    mut steps: Steps,
    places: Range<usize>,
    is_failures_only: bool,
) -> Result<Code, Failure> {
    let head = format!("\"plan\": {}, \"steps\"", serde_json::Value::from(plan));
    let mut printer = ListPrinter::begin(session, &head)?;
    let failures = steps.failures.clone();
    for place in places.filter(|place| !is_failures_only || failures.binary_search(place).is_ok()) {
        let step = steps.step(place)?;
        printer.print(&step, |to| step.print(to))?;
    }
    let event = if is_failures_only { "failure" } else { "event" };
    printer.end(&format!("no {event} of the plan is in this range"))
}

/// A replay driven by orders.
struct Stepper<'a> {
    session: &'a Session,
    plan: String,
    steps: Steps,
    /// The events that can be shown.
    places: Range<usize>,
    /// The event that is shown.
    place: usize,
}

impl Stepper<'_> {
    fn run(mut self) -> Result<Code, Failure> {
        let is_interactive = self.session.terminal.is_interactive;
        if is_interactive {
            say(&format!("{}; h lists the orders", count(self.places.len(), "event")));
        }
        self.show_step(self.place)?;
        loop {
            if is_interactive {
                prompt(&format!("{}> ", self.steps.position(self.place)));
            }
            let line = read_line();
            let line = line.map_err(|error| Failure::user(format!("standard input cannot be read: {error}")))?;
            match line.as_deref().map(Order::parse) {
                None | Some(Ok(Order::Quit)) => return Ok(Code::Done),
                Some(Ok(order)) => self.obey(order)?,
                Some(Err(why)) => say(&format!("{why}; h lists the orders")),
            }
        }
    }

    fn obey(&mut self, order: Order) -> Result<(), Failure> {
        let Range { start: first, end } = self.places;
        let (here, last) = (self.place, end - 1);
        // A place before the first or after the last event leads to that event.
        let wanted = match order {
            Order::Next(n) => {
                let to = here.saturating_add(n);
                (here + 1..to.min(last)).try_for_each(|place| self.show_step(place))?;
                Some(to)
            }
            Order::Back(n) => here.checked_sub(n),
            Order::To(position) if position > self.steps.position(last) => Some(end),
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
            Order::Show => return Ok(self.show_plan()?),
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
        let mut stdout = BufWriter::new(io::stdout().lock());
        let step = self.steps.step(place)?;
        match self.session.output {
            Output::Text => step.print(&mut stdout)?,
            Output::Json | Output::Jsonl => print_line(&mut stdout, &step)?,
        }
        self.place = place;
        Ok(stdout.flush()?)
    }

    fn show_plan(&self) -> io::Result<()> {
        let mut stdout = BufWriter::new(io::stdout().lock());
        let (at, view) = (self.steps.position(self.place), &self.steps.view);
        match self.session.output {
            Output::Text => show::print_view(&mut stdout, &self.plan, at, view)?,
            Output::Json | Output::Jsonl => print_line(&mut stdout, &PlanShown::of(&self.plan, at, view))?,
        }
        stdout.flush()
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
    /// Parses a line, or gives the error.
    fn parse(line: &str) -> Result<Self, String> {
        let words = line.split_whitespace().collect::<Vec<_>>();
        let n = |word: &str| match word.parse() {
            Ok(n @ 1..) => Ok(n),
            Ok(0_usize) | Err(_) => Err(format!("{:?} is no number of events", one_line(word, 40))),
        };
        match words.as_slice() {
            [] | ["n" | "next"] => Ok(Self::Next(1)),
            ["n" | "next", count] => n(count).map(Self::Next),
            ["b" | "back"] => Ok(Self::Back(1)),
            ["b" | "back", count] => n(count).map(Self::Back),
            ["g" | "to", position] => match position.parse() {
                Ok(at @ 0..) => Ok(Self::To(Position(at))),
                Ok(_) | Err(_) => Err(format!("{:?} is no position", one_line(position, 40))),
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

#[cfg(test)]
mod tests;
