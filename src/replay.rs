//! `replay`: a plan's events one by one, with why each came and what it changed. It folds the log and does nothing
//! else: nothing is appended, decided or executed.

use std::io::{self, BufRead, BufWriter, Read, Write};

use crewlog_mq::{EventStore, Position, Query, Range, Recorded};
use crewlog_planner::view::PlanView;

use crate::changes;
use crate::checkpoints::position_of;
use crate::cli::{Output, Replay};
use crate::failure::{Code, Failure};
use crate::json::{ShownJson, print_line};
use crate::queries::{self, for_each_of};
use crate::session::Session;
use crate::show;
use crate::step::{Index, Step};
use crate::terminal::{prompt, say};
use crate::text::{count, one_line};
use crate::verify::verify;

/// The longest order that is read at once, in bytes.
const ORDER_BYTES_MAX: u64 = 4 << 10;

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
    let from = match &replay.from {
        Some(from) => position_of(session, &store, &plan, from).await?,
        None => Position(1),
    };
    let to = match &replay.to {
        Some(to) => position_of(session, &store, &plan, to).await?.min(head),
        None => head,
    };
    let bounds = Bounds { from, to };
    let is_on_terminal = session.terminal.is_interactive && session.output == Output::Text && !replay.failure;
    if replay.step || is_on_terminal {
        step_through(session, store, plan, bounds).await
    } else {
        print_all(session, &store, &plan, bounds, replay.failure).await
    }
}

/// The positions from and to which a replay goes.
#[derive(Clone, Copy)]
struct Bounds {
    from: Position,
    to: Position,
}

/// All steps, from the first to the last.
async fn print_all(
    session: &Session,
    store: &EventStore,
    plan: &str,
    bounds: Bounds,
    is_failures_only: bool,
) -> Result<Code, Failure> {
    let mut stdout = BufWriter::new(io::stdout().lock());
    let (mut view, mut index) = (PlanView::default(), Index::default());
    let mut n_printed = 0_usize;
    if let Output::Json = session.output {
        write!(stdout, "{{\"plan\": {}, \"steps\": [", serde_json::Value::from(plan))?;
    }
    for_each_of(store, plan, &Query::all(), Range::up_to(bounds.to), |recorded| {
        index.push(recorded)?;
        let changes = changes::step(&mut view, recorded)?;
        let is_asked_for = !is_failures_only || index.is_failure(index.len() - 1);
        if recorded.position < bounds.from || !is_asked_for {
            return Ok(());
        }
        let step = Step { recorded: recorded.clone(), changes };
        match session.output {
            Output::Jsonl => print_line(&mut stdout, &step.json(&index)?)?,
            Output::Json => {
                write!(stdout, "{}\n  ", if n_printed == 0 { "" } else { "," })?;
                serde_json::to_writer(&mut stdout, &step.json(&index)?)?;
            }
            Output::Text => step.print(&mut stdout, &index)?,
        }
        n_printed += 1;
        Ok(())
    })
    .await?;
    if let Output::Json = session.output {
        writeln!(stdout, "\n]}}")?;
    }
    stdout.flush()?;
    if n_printed == 0 && !session.terminal.is_quiet {
        let what = if is_failures_only { "no failure of the plan" } else { "no event of the plan" };
        say(&format!("{what} lies there"));
    }
    Ok(if n_printed == 0 { Code::Nothing } else { Code::Done })
}

/// A replay driven by commands.
struct Replayed<'a> {
    session: &'a Session,
    store: EventStore,
    plan: String,
    index: Index,
    /// The places of the first and the last event of the replay.
    first: usize,
    last: usize,
    /// How many events are in the view; the last of them is the one that is shown.
    n_taken: usize,
    view: PlanView,
}

async fn step_through(session: &Session, store: EventStore, plan: String, bounds: Bounds) -> Result<Code, Failure> {
    let mut index = Index::default();
    for_each_of(&store, &plan, &Query::all(), Range::up_to(bounds.to), |recorded| Ok(index.push(recorded)?)).await?;
    let first = index.n_up_to(Position(bounds.from.0 - 1));
    let Some(last) = index.len().checked_sub(1).filter(|last| first <= *last) else {
        let Bounds { from, to } = bounds;
        let failure = Failure::new(Code::Nothing, format!("{plan} has no event from position {from} to {to}"));
        return Err(failure.hint(session.command_on("events", &plan)));
    };
    let view = PlanView::default();
    let mut replayed = Replayed { session, store, plan, index, first, last, n_taken: 0, view };
    if session.terminal.is_interactive {
        say(&format!("{}; h tells what can be said here", count(last - first + 1, "event")));
    }
    replayed.show_step(first).await?;
    loop {
        if session.terminal.is_interactive {
            prompt(&format!("{}> ", replayed.index.position(replayed.place())));
        }
        let Some(line) = read_order()? else { return Ok(Code::Done) };
        match Order::parse(&line) {
            Ok(Order::Quit) => return Ok(Code::Done),
            Ok(order) => replayed.obey(order).await?,
            Err(why) => say(&format!("{why}; h tells what can be said here")),
        }
    }
}

impl Replayed<'_> {
    /// The place of the event that is shown.
    fn place(&self) -> usize {
        self.n_taken.saturating_sub(1)
    }

    async fn obey(&mut self, order: Order) -> Result<(), Failure> {
        let place = self.place();
        match order {
            Order::Next(n) => {
                let to = place.saturating_add(n);
                for place in place + 1..=to.min(self.last) {
                    self.show_step(place).await?;
                }
                if to > self.last {
                    say("this is the last event");
                }
            }
            Order::Back(n) => {
                let to = place.checked_sub(n).filter(|to| *to >= self.first);
                self.move_to(to.unwrap_or(self.first)).await?;
                if to.is_none() {
                    say("this is the first event");
                }
            }
            Order::To(position) => {
                let to = self.index.n_up_to(position).checked_sub(1).filter(|to| *to >= self.first);
                self.move_to(to.unwrap_or(self.first)).await?;
                if to.is_none() {
                    say("this is the first event: there is none at or before that position");
                } else if position > self.index.position(self.last) {
                    say("this is the last event: there is none at or after that position");
                }
            }
            Order::NextFailure => {
                let mut after = place + 1..=self.last;
                self.move_if_found(after.find(|place| self.index.is_failure(*place)), "after").await?;
            }
            Order::FailureBefore => {
                let mut before = (self.first..place).rev();
                self.move_if_found(before.find(|place| self.index.is_failure(*place)), "before").await?;
            }
            Order::Show => self.show_plan()?,
            Order::First => self.move_to(self.first).await?,
            Order::Last => self.move_to(self.last).await?,
            Order::Help => say(HELP),
            Order::Quit => {}
        }
        Ok(())
    }

    async fn move_if_found(&mut self, found: Option<usize>, side: &str) -> Result<(), Failure> {
        match found {
            Some(place) => self.show_step(place).await,
            None => {
                say(&format!("nothing fails {side} this event"));
                Ok(())
            }
        }
    }

    /// Shows another event; the one that is shown already is not shown again.
    async fn move_to(&mut self, place: usize) -> Result<(), Failure> {
        if place == self.place() { Ok(()) } else { self.show_step(place).await }
    }

    /// Folds up to an event and shows it. To go back is to begin again.
    async fn show_step(&mut self, place: usize) -> Result<(), Failure> {
        if place < self.n_taken {
            self.n_taken = 0;
            self.view = PlanView::default();
        }
        let before = self.n_taken.checked_sub(1).map_or(Position(0), |last| self.index.position(last));
        let target = self.index.position(place);
        let range = Range::between(before, target);
        let (view, mut step) = (&mut self.view, None);
        for_each_of(&self.store, &self.plan, &Query::all(), range, |recorded: &Recorded| {
            if recorded.position == target {
                let changes = changes::step(view, recorded)?;
                step = Some(Step { recorded: recorded.clone(), changes });
            } else {
                view.apply(recorded)?;
            }
            Ok(())
        })
        .await?;
        self.n_taken = place + 1;
        let Some(step) = step else {
            return Err(Failure::user(format!("the event at position {target} is no longer in the log")));
        };
        let mut stdout = BufWriter::new(io::stdout().lock());
        match self.session.output {
            Output::Text => step.print(&mut stdout, &self.index)?,
            Output::Json | Output::Jsonl => print_line(&mut stdout, &step.json(&self.index)?)?,
        }
        Ok(stdout.flush()?)
    }

    fn show_plan(&self) -> io::Result<()> {
        let mut stdout = BufWriter::new(io::stdout().lock());
        let at = self.index.position(self.place());
        match self.session.output {
            Output::Text => show::print_view(&mut stdout, &self.plan, at, &self.view)?,
            Output::Json | Output::Jsonl => print_line(&mut stdout, &ShownJson::of(&self.plan, at, &self.view))?,
        }
        stdout.flush()
    }
}

/// A command to a replay.
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
    /// From a line; else what is wrong with it.
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

/// The next order; `None` at the end of input.
fn read_order() -> Result<Option<String>, Failure> {
    let mut stdin = io::stdin().lock();
    let mut read_part = || {
        let mut part = Vec::new();
        let read = stdin.by_ref().take(ORDER_BYTES_MAX).read_until(b'\n', &mut part);
        read.map_err(|error| Failure::user(format!("standard input cannot be read: {error}")))?;
        Ok::<_, Failure>(part)
    };
    let is_cut = |part: &[u8]| part.len() as u64 == ORDER_BYTES_MAX && !part.ends_with(b"\n");
    let mut line = read_part()?;
    if is_cut(&line) {
        while is_cut(&read_part()?) {}
        // No order is as long, so this is none.
        line.extend(b" ...");
    }
    Ok((!line.is_empty()).then(|| String::from_utf8_lossy(&line).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_words_with_a_number_where_one_belongs() {
        let check = |line: &str, expected: Option<Order>| assert_eq!(Order::parse(line).ok(), expected, "{line:?}");
        for (line, order) in [
            ("", Order::Next(1)),
            (" \r\n", Order::Next(1)),
            ("n 3\n", Order::Next(3)),
            ("next", Order::Next(1)),
            ("b", Order::Back(1)),
            ("back 2", Order::Back(2)),
            ("g 0", Order::To(Position(0))),
            ("to 17", Order::To(Position(17))),
            ("f", Order::NextFailure),
            ("failure", Order::NextFailure),
            ("F", Order::FailureBefore),
            ("previous", Order::FailureBefore),
            ("s", Order::Show),
            ("show", Order::Show),
            ("first", Order::First),
            ("last", Order::Last),
            ("h", Order::Help),
            ("q", Order::Quit),
        ] {
            check(line, Some(order));
        }
        for line in ["n 0", "n -1", "n x", "n 1 2", "g", "g -1", "g x", "N", "f 2", "quit now", "99999999999999999999"]
        {
            check(line, None);
        }
    }
}
