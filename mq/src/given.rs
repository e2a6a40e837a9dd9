//! Tests of handlers as data: given events, when a command, then events. Pure, unless a scenario is run on a log.

use std::fmt::{Debug, Write as _};
use std::ops::Range;
use std::panic::Location;

use crate::append::{Append, NewEvent};
use crate::error::Error;
use crate::event::Event;
use crate::executed::ExecuteError;
use crate::expected::Expected;
use crate::handler::{Cause, Handler};
use crate::ids::new_event_id;
use crate::recorded::Metadata;
use crate::runner::Runner;
use crate::store::EventStore;

/// The stream for scenarios; each scenario has its own aggregate.
const STREAM: &str = "given";

/// Begins a scenario of a handler with what has happened so far.
///
/// There is an example [among those of the crate](crate#handlers).
#[must_use]
pub fn given<H: Handler>(history: impl IntoIterator<Item = H::Event>) -> Given<H> {
    let history = history.into_iter().collect::<Vec<_>>();
    Given { n_given: history.len(), handler: H::fold(&history), history, steps: Vec::new() }
}

/// A scenario so far: the history, and the handler's current state.
pub struct Given<H: Handler> {
    handler: H,
    history: Vec<H::Event>,
    n_given: usize,
    steps: Vec<Step<H::Command>>,
}

/// A command and its outcome.
struct Step<C> {
    command: C,
    /// The events of the history that it led to, or the refusal as text.
    outcome: Result<Range<usize>, String>,
}

/// A scenario whose last command is decided: state the expected outcome next.
#[must_use = "a scenario ends with what is expected"]
pub struct When<H: Handler> {
    given: Given<H>,
    command: H::Command,
    outcome: Result<Range<usize>, H::Error>,
}

impl<H> Given<H>
where
    H: Handler + PartialEq + Debug,
    H::Command: Clone,
    H::Event: PartialEq + Debug,
    H::Error: Debug,
{
    /// Gives the handler a command.
    pub fn when(mut self, command: H::Command) -> When<H> {
        let n_before = self.history.len();
        let outcome = self.handler.process(command.clone()).map(|events| {
            self.history.extend(events);
            n_before..self.history.len()
        });
        When { given: self, command, outcome }
    }

    /// The handler in its current state.
    #[must_use]
    pub fn handler(&self) -> &H {
        &self.handler
    }

    /// Runs the same scenario on a log: the given events are appended to a new aggregate, and a runner executes the
    /// commands. Events, refusals and state must be the same there, also for a reader that loads everything again.
    ///
    /// # Panics
    /// On a difference, which it prints, or if the log fails.
    #[track_caller]
    pub fn on(&self, store: &EventStore) -> impl Future<Output = ()>
    where
        H::Event: Event,
    {
        let caller = Location::caller();
        async move {
            if let Err(error) = self.run_on(store, caller).await {
                panic!("{caller}: the log failed: {error}");
            }
        }
    }

    async fn run_on(&self, store: &EventStore, caller: &Location<'_>) -> Result<(), Error>
    where
        H::Event: Event,
    {
        let aggregate_id = new_event_id().to_string();
        let given = self.history[..self.n_given].iter().map(|event| NewEvent::of(event, &Metadata::default()));
        let given = given.collect::<Result<Vec<_>, _>>()?;
        if !given.is_empty() {
            store.append(Append::to(STREAM, &aggregate_id, Expected::NoStream, given)).await?;
        }
        let runner = || Runner::<H>::new(store.clone(), STREAM, &aggregate_id, Vec::new());
        let mut warm = runner();
        for (n, Step { command, outcome }) in (1..).zip(&self.steps) {
            let what = format!("{caller}: what command {n} leads to on the log");
            match (warm.execute(command.clone(), &Cause::request()).await, outcome) {
                (Ok(executed), Ok(decided)) => check(&what, &*executed.events, &self.history[decided.clone()]),
                (Ok(executed), Err(refusal)) => panic!("{what}: {:#?}, and not {refusal}", executed.events),
                (Err(ExecuteError::Refused(found)), Err(refusal)) => check(&what, &format!("{found:?}"), refusal),
                (Err(ExecuteError::Refused(found)), Ok(_)) => panic!("{what}: it is refused: {found:?}"),
                (Err(ExecuteError::Contended { .. }), _) => panic!("{what}: others write to {aggregate_id}"),
                (Err(ExecuteError::Store(error)), _) => return Err(error),
            }
        }
        let mut cold = runner();
        for runner in [&mut warm, &mut cold] {
            runner.catch_up().await?;
            check(&format!("{caller}: the state on the log"), runner.handler(), &self.handler);
        }
        Ok(())
    }
}

impl<H> When<H>
where
    H: Handler,
    H::Event: PartialEq + Debug,
    H::Error: Debug,
{
    /// Expects these events.
    ///
    /// # Panics
    /// If the outcome is different.
    #[track_caller]
    pub fn then(self, events: impl IntoIterator<Item = H::Event>) -> Given<H> {
        let expected = events.into_iter().collect::<Vec<_>>();
        match &self.outcome {
            Ok(decided) => check("the events", &self.given.history[decided.clone()], &*expected),
            Err(refusal) => panic!("it is refused: {refusal:?}\nand should lead to {expected:#?}"),
        }
        self.done()
    }

    /// Expects no events.
    ///
    /// # Panics
    /// If the command led to events, or was refused.
    #[track_caller]
    pub fn then_nothing(self) -> Given<H> {
        self.then([])
    }

    /// Expects a refusal with an error for which `is_expected` is true.
    ///
    /// # Panics
    /// If the outcome is different.
    #[track_caller]
    pub fn then_refused(self, is_expected: impl FnOnce(&H::Error) -> bool) -> Given<H> {
        match &self.outcome {
            Ok(decided) => panic!("it should be refused, and led to {:#?}", &self.given.history[decided.clone()]),
            Err(refusal) => assert!(is_expected(refusal), "it is refused otherwise than expected: {refusal:?}"),
        }
        self.done()
    }

    fn done(self) -> Given<H> {
        let Self { mut given, command, outcome } = self;
        given.steps.push(Step { command, outcome: outcome.map_err(|refusal| format!("{refusal:?}")) });
        given
    }
}

/// Panics with the difference if the two values differ.
#[track_caller]
fn check<T: PartialEq + Debug + ?Sized>(what: &str, found: &T, expected: &T) {
    assert!(found == expected, "{what}: - is missing, + is there instead\n{}", difference(found, expected));
}

/// Both values as lines, with their common beginning and end printed once.
fn difference<T: Debug + ?Sized>(found: &T, expected: &T) -> String {
    let (found, expected) = (format!("{found:#?}"), format!("{expected:#?}"));
    let (found, expected) = (found.lines().collect::<Vec<_>>(), expected.lines().collect::<Vec<_>>());
    let n_first = found.iter().zip(&expected).take_while(|(a, b)| a == b).count();
    let behind = found[n_first..].iter().rev().zip(expected[n_first..].iter().rev());
    let n_last = behind.take_while(|(a, b)| a == b).count();
    let mut text = String::new();
    let mut put = |mark: char, lines: &[&str]| {
        for line in lines {
            let _ = writeln!(text, "{mark} {line}");
        }
    };
    put(' ', &found[..n_first]);
    put('-', &expected[n_first..expected.len() - n_last]);
    put('+', &found[n_first..found.len() - n_last]);
    put(' ', &found[found.len() - n_last..]);
    text
}
