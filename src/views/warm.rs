//! Folds kept in memory, so that a view at any position folds few events.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crewlog_mq::{Error, Event, Handler, Position, Range, Recorded, Snapshot};
use crewlog_planner::crew::Projection;
use futures::{Stream, TryStreamExt};
use tokio::sync::Mutex;

/// A state is stored after this many events.
const EVERY: usize = 250;
/// The most stored states of a fold; beyond it every other one is dropped, and the interval doubles.
const STATES_MAX: usize = 48;

/// A fold of events.
pub trait Fold: Clone + Default + Send + Sync + 'static {
    /// Applies one event.
    fn take(&mut self, recorded: &Recorded) -> Result<(), Error>;

    /// Called after the last event of each append.
    fn end_append(&mut self) {}
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
    n_states: AtomicUsize,
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
            n_states: AtomicUsize::new(1),
        }
    }
}

impl<F> Warm<F> {
    /// The approximate number of stored states.
    pub fn n_states(&self) -> usize {
        self.n_states.load(Ordering::Relaxed)
    }
}

impl<F: Fold> Warm<F> {
    /// The state at a position, at which an append ends. `records` reads the events of the fold; `base` provides a
    /// state to continue from if none is stored.
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
        let state = if from < at { states.fold(state, records(Range::between(from, at))).await? } else { state };
        states.last[usize::from(is_past)] = Some((at, state.clone()));
        self.n_states.store(1 + states.spaced.len(), Ordering::Relaxed);
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
    ) -> Result<Arc<F>, Error> {
        let mut records = pin!(records);
        let mut last: Option<Recorded> = None;
        loop {
            let next = records.try_next().await?;
            if let Some(before) = &last
                && next.as_ref().is_none_or(|next| next.append_start != before.append_start)
            {
                Arc::make_mut(&mut state).end_append();
                if self.n_since >= self.every {
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
        self.spaced.insert(position, state);
        if self.spaced.len() > STATES_MAX {
            self.every *= 2;
            let mut is_second = every_other();
            self.spaced.retain(|_, _| is_second());
        }
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
