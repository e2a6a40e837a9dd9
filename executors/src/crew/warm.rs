//! Folds kept in memory, so that a view at any position folds few events.

use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};

use crewlog_mq::{Error, Event, Handler, Position, Range, Recorded, Snapshot};
use crewlog_planner::crew::Projection;
use futures::{Stream, TryStreamExt};
use tokio::sync::Mutex;

/// A state is stored after this many events.
const EVERY: usize = 250;
/// The most stored states of a fold, and their most weight; beyond it every other one is dropped, and the interval
/// doubles.
const STATES_MAX: usize = 48;
const WEIGHT_MAX: usize = 48_000;
/// The most weight of the stored states of plans; those of the least recently used plan are dropped first.
const PLANS_WEIGHT_MAX: usize = 60_000;

/// A fold of events.
pub trait Fold: Clone + Default + Send + Sync + 'static {
    /// Applies one event.
    fn take(&mut self, recorded: &Recorded) -> Result<(), Error>;

    /// Called after the last event of each append.
    fn end_append(&mut self) {}

    /// The size of the state: of a plan the number of its tasks, of others 1.
    fn weight(&self) -> usize {
        1
    }
}

/// The handler of a crew's aggregate as a fold.
#[derive(Clone, Default)]
pub struct Handled<H>(pub H);

impl<H: Handler + Snapshot + Clone + Send + Sync + 'static> Fold for Handled<H>
where
    H::Event: Event,
{
    fn take(&mut self, recorded: &Recorded) -> Result<(), Error> {
        self.0.apply(&recorded.decode()?);
        self.0.placed(recorded.position);
        Ok(())
    }
}

/// A projection of the whole log as a fold. It skips unreadable events.
#[derive(Clone, Default)]
pub struct Folded<P>(pub P);

impl<P: Projection + Clone + Sync + 'static> Fold for Folded<P> {
    fn take(&mut self, recorded: &Recorded) -> Result<(), Error> {
        if let Err(error) = self.0.handle(recorded) {
            tracing::warn!(fold = P::FOLD, %error, "an event is passed over");
        }
        Ok(())
    }

    fn end_append(&mut self) {
        self.0.end_append();
    }
}

/// The stored states of one fold.
pub struct Warm<F> {
    states: Mutex<States<F>>,
    weight: AtomicUsize,
}

struct States<F> {
    every: usize,
    /// The number of events folded since the last stored state.
    n_since: usize,
    spaced: BTreeMap<Position, Arc<F>>,
    /// The last states requested, of the present and of the past.
    last: [Option<(Position, Arc<F>)>; 2],
}

impl<F> Default for Warm<F> {
    fn default() -> Self {
        Self {
            states: Mutex::new(States { every: EVERY, n_since: 0, spaced: BTreeMap::new(), last: [None, None] }),
            weight: AtomicUsize::new(1),
        }
    }
}

impl<F> Warm<F> {
    /// The weight of the stored states together.
    pub fn weight(&self) -> usize {
        self.weight.load(Ordering::Relaxed)
    }
}

impl<F: Fold> Warm<F> {
    /// The state at a position, at which an append ends. `records` reads the events of the fold; `base` provides a
    /// state to continue from if none is stored, which may be newer. On the way to a past position it stores states.
    pub async fn at<S: Stream<Item = Result<Recorded, Error>>>(
        &self,
        at: Position,
        is_past: bool,
        base: impl Future<Output = Result<Option<(F, Position)>, Error>>,
        records: impl FnOnce(Range) -> S,
    ) -> Result<Arc<F>, Error> {
        let mut states = self.states.lock().await;
        let (from, state) = match states.before(at) {
            Some(kept) => {
                // This state is replaced below: it changes in place, unless it is shared or stored.
                states.last[usize::from(is_past)].take_if(|(position, _)| *position == kept.0 && *position < at);
                kept
            }
            None => match base.await? {
                Some((state, from)) => (from, Arc::new(state)),
                None => (Position(0), Arc::new(F::default())),
            },
        };
        let state =
            if from < at { states.fold(state, records(Range::between(from, at)), is_past).await? } else { state };
        states.last[usize::from(is_past)] = Some((at.max(from), state.clone()));
        self.weight.store((1 + states.spaced.len()) * state.weight(), Ordering::Relaxed);
        Ok(state)
    }
}

impl<F: Fold> States<F> {
    /// The newest stored state up to a position.
    fn before(&self, at: Position) -> Option<(Position, Arc<F>)> {
        let spaced = self.spaced.range(..=at).next_back().map(|(position, state)| (*position, state.clone()));
        let last = self.last.iter().flatten().filter(|(position, _)| *position <= at).cloned();
        last.chain(spaced).max_by_key(|(position, _)| *position)
    }

    async fn fold(
        &mut self,
        mut state: Arc<F>,
        records: impl Stream<Item = Result<Recorded, Error>>,
        keeps: bool,
    ) -> Result<Arc<F>, Error> {
        let mut records = pin!(records);
        let mut last: Option<Recorded> = None;
        loop {
            let next = records.try_next().await?;
            if let Some(before) = &last
                && next.as_ref().is_none_or(|next| next.append_start != before.append_start)
            {
                Arc::make_mut(&mut state).end_append();
                if keeps && self.n_since >= self.every {
                    self.n_since = 0;
                    self.keep(before.position, state.clone());
                }
            }
            let Some(recorded) = next else { return Ok(state) };
            Arc::make_mut(&mut state).take(&recorded)?;
            self.n_since += 1;
            last = Some(recorded);
        }
    }

    fn keep(&mut self, position: Position, state: Arc<F>) {
        let n_max = (WEIGHT_MAX / state.weight().max(1)).clamp(1, STATES_MAX);
        self.spaced.insert(position, state);
        while self.spaced.len() > n_max {
            self.every *= 2;
            let mut is_second = every_other();
            self.spaced.retain(|_, _| is_second());
        }
    }
}

/// The folds of plans, the last used first.
pub struct WarmPlans<F>(std::sync::Mutex<VecDeque<(String, Arc<Warm<F>>)>>);

impl<F> Default for WarmPlans<F> {
    fn default() -> Self {
        Self(std::sync::Mutex::default())
    }
}

impl<F> WarmPlans<F> {
    /// The fold of a plan.
    pub fn of(&self, plan: &str) -> Arc<Warm<F>> {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = plans.iter().position(|(known, _)| known == plan);
        let found = place.and_then(|place| plans.remove(place)).map(|(_, warm)| warm).unwrap_or_default();
        plans.push_front((plan.to_owned(), found.clone()));
        let mut weight = 0;
        plans.retain(|(_, warm)| {
            weight += warm.weight();
            weight <= PLANS_WEIGHT_MAX || Arc::ptr_eq(warm, &found)
        });
        found
    }
}

/// False, true, false, true ...
pub fn every_other() -> impl FnMut() -> bool {
    let mut is_second = true;
    move || {
        is_second = !is_second;
        is_second
    }
}
