//! The views as of a position, and the folds that they are made of.

use super::ProjectFigures;
use super::conflicts::EveryConflict;
use super::track::{Track, ViewedPlan};
use crate::context::{self, Session};
use crate::ui::failure::Failure;
use crate::views::queries::beyond;
use crewlog_executors::crew::warm::{Fold, Folded, Handled, Warm, WarmPlans};
use crewlog_executors::crew::{Crew, Hears, Holders};
use crewlog_executors::history::History;
use crewlog_executors::liveness::LivenessLock;
use crewlog_executors::projecting::Projected;
use crewlog_mq::{Error, Event, EventStore, Handler, Last, Position, Query, Range, Snapshot, Snapshots, Timestamp};
use crewlog_planner::crew::agents::Agents;
use crewlog_planner::crew::asks::Asks;
use crewlog_planner::crew::conflicts::Conflicts;
use crewlog_planner::crew::leases::Leases;
use crewlog_planner::crew::messages::Messages;
use crewlog_planner::crew::statistics::Statistics;
use crewlog_planner::crew::{NO_PROJECT, Projection};
use crewlog_planner::event::plan_tag;
use crewlog_planner::lifecycle::States;
use crewlog_planner::listing::{ListedPlan, PlanList};
use futures::{StreamExt, TryStreamExt, stream};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::OnceCell;

/// The most plans that are read at once.
const TOGETHER_MAX: usize = 8;

/// The views of a project on a log.
pub struct Views {
    crew: Arc<Crew>,
    /// The log until it goes back, with its cached folds.
    kept: Mutex<(EventStore, Arc<Kept>)>,
    /// True if many positions will be requested.
    is_server: bool,
}

/// The cached folds of a log.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) tracks: WarmPlans<Track>,
    pub(super) viewed: WarmPlans<ViewedPlan>,
    pub(super) list: Warm<Folded<PlanList>>,
    pub(super) conflicts: Warm<Folded<Conflicts>>,
    pub(super) every_conflict: Warm<EveryConflict>,
    pub(super) statistics: Warm<Folded<Statistics>>,
    pub(super) agents: Warm<Handled<Agents>>,
    pub(super) leases: Warm<Handled<Leases>>,
    pub(super) asks: Warm<Handled<Asks>>,
    pub(super) messages: Warm<Handled<Messages>>,
}

/// The views as of a position.
#[derive(Clone)]
pub struct AsOf {
    /// The position, at which an append ends.
    pub at: Position,
    /// The log time of that position, or of the present.
    pub now: Timestamp,
    /// True if a position was requested.
    pub is_past: bool,
    pub(super) crew: Arc<Crew>,
    pub(super) store: EventStore,
    pub(super) kept: Arc<Kept>,
    /// Read and computed before: one view may need a plan several times.
    plans: Arc<Mutex<BTreeMap<String, Arc<ViewedPlan>>>>,
    states: Arc<Mutex<BTreeMap<String, States>>>,
    /// Read once for all plans; unset at a past position.
    pub(super) present: Arc<OnceCell<Option<Present>>>,
    pub(super) is_server: bool,
}

/// The holders and leases by which the states of tasks are judged at the head.
pub(super) struct Present {
    pub(super) holders: Holders,
    pub(super) leases: Arc<Handled<Leases>>,
}

/// The views of the project of the working directory, for a command.
pub async fn views(session: &Session) -> Result<Views, Failure> {
    Ok(Views::new(context::crew::open(session).await?, false))
}

/// Reads the views of every project once, which stores their snapshots.
pub async fn read_all(store: &EventStore, life: Arc<LivenessLock>) -> Result<(), Failure> {
    let views_of = |project: &str| Views::new(Arc::new(Crew::new(store, project, life.clone())), false);
    let all = views_of(NO_PROJECT).as_of(None).await?;
    all.summaries().await?;
    for ProjectFigures { project, .. } in all.statistics(None).await? {
        let as_of = views_of(&project).as_of(None).await?;
        as_of.needs(|_| String::new()).await?;
        as_of.leases(|_| false).await?;
    }
    Ok(())
}

impl Views {
    /// The views for one command, or for a server, which needs many positions.
    pub fn new(crew: Arc<Crew>, is_server: bool) -> Self {
        let kept = Mutex::new((crew.store().pinned(), Arc::default()));
        Self { crew, kept, is_server }
    }

    /// The views as of a position, or now.
    ///
    /// # Errors
    /// A position beyond the end of the log.
    pub async fn as_of(&self, at: Option<Position>) -> Result<AsOf, Failure> {
        let (store, kept, head) = self.of_log().await?;
        if let Some(at) = at.filter(|at| *at > head) {
            return Err(beyond(at, head));
        }
        let position = store.whole(at.unwrap_or(head)).await?;
        let now = match at {
            Some(_) => time_of(&store, position).await?,
            None => store.now(),
        };
        let (crew, is_server) = (self.crew.clone(), self.is_server);
        let (plans, states, present) = Default::default();
        Ok(AsOf { at: position, now, is_past: at.is_some(), crew, store, kept, plans, states, present, is_server })
    }

    /// The log, its cache, and its last position. After the log went back, a server starts a new cache.
    async fn of_log(&self) -> Result<(EventStore, Arc<Kept>, Position), Error> {
        let (mut store, mut kept) = self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut head = store.head().await;
        if self.is_server && matches!(head, Err(Error::WentBack { .. })) {
            (store, kept) = (self.crew.store().pinned(), Arc::default());
            *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = (store.clone(), kept.clone());
            head = store.head().await;
        }
        Ok((store, kept, head?))
    }
}

/// The time of the last event up to a position.
async fn time_of(store: &EventStore, at: Position) -> Result<Timestamp, Error> {
    let last = store.read(&Query::all(), Range::up_to(at).backwards(), 1).await?;
    Ok(last.events.first().map(|recorded| recorded.created_at).unwrap_or_default())
}

impl AsOf {
    pub fn store(&self) -> &EventStore {
        &self.store
    }

    pub fn project(&self) -> &str {
        self.crew.project()
    }

    pub fn crew(&self) -> &Arc<Crew> {
        &self.crew
    }

    /// The same views as of an earlier position.
    pub async fn earlier(&self, at: Position) -> Result<Self, Error> {
        let at = self.store().whole(at.min(self.at)).await?;
        let now = time_of(self.store(), at).await?;
        let (plans, states, present) = Default::default();
        Ok(Self { at, now, is_past: true, plans, states, present, ..self.clone() })
    }

    pub(super) fn known_states(&self) -> MutexGuard<'_, BTreeMap<String, States>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A plan with its history. Without events if the plan did not exist yet.
    pub async fn track(&self, plan: &str) -> Result<Arc<Track>, Error> {
        let history = History::of(self.store(), plan).await?;
        let records = |range| history.records(self.store(), &Query::all(), range);
        self.kept.tracks.of(plan).at(self.at, self.is_past, async { Ok(None) }, records).await
    }

    /// A plan without its history. Without events if the plan did not exist yet.
    pub async fn viewed(&self, plan: &str) -> Result<Arc<ViewedPlan>, Error> {
        let plans = || self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(viewed) = plans().get(plan).cloned() {
            return Ok(viewed);
        }
        let history = History::of(self.store(), plan).await?;
        let records = |range| history.records(self.store(), &Query::all(), range);
        let base = async {
            let mut snapshots = Snapshots::<ViewedPlan>::of(self.store(), &Query::tag(plan_tag(plan)));
            let newest = snapshots.newest().await?.filter(|(_, last)| last.position <= self.at);
            let (mut seen, mut last) = newest.unzip();
            if self.is_past {
                return Ok(seen.zip(last.map(|last| last.position)));
            }
            let mut tail = pin!(records(Range::between(last.map_or(Position(0), |last| last.position), self.at)));
            while let Some(recorded) = tail.try_next().await? {
                seen.get_or_insert_default().take(&recorded)?;
                last = Some(Last::from(&recorded));
                snapshots.fold(1);
            }
            if let (Some(seen), Some(last)) = (&seen, last) {
                snapshots.keep(seen, last).await;
            }
            Ok(seen.map(|seen| (seen, self.at)))
        };
        let viewed = self.kept.viewed.of(plan).at(self.at, self.is_past, base, records).await?;
        Ok(plans().entry(plan.to_owned()).or_insert(viewed).clone())
    }

    pub(super) async fn folded<P: Projection + Clone + Sync + 'static>(
        &self,
        warm: &Warm<Folded<P>>,
    ) -> Result<Arc<Folded<P>>, Error> {
        // Snapshots contain stored events, so the events after them are read as stored, too.
        let store = self.store().clone().as_stored();
        let base = async {
            // A server that shows the past stores states on the way.
            if self.is_past && self.is_server {
                return Ok(None);
            }
            // The newest snapshot in the log. A long read stores a new one.
            let mut read = Projected::<P>::read(self.store(), Some(self.at)).await?;
            read.keep().await;
            Ok(Some((Folded(read.state), read.at)))
        };
        warm.at(self.at, self.is_past, base, |range| {
            let query = if range.after == Position(0) { P::from_scratch() } else { Query::all() };
            store.records(&query, range)
        })
        .await
    }

    /// All conflicts. No snapshot has the resolved ones, so the first call reads the whole log.
    pub(super) async fn every_conflict(&self) -> Result<Arc<EveryConflict>, Error> {
        let store = self.store().clone().as_stored();
        let records = |range| store.records(&Query::all(), range);
        self.kept.every_conflict.at(self.at, self.is_past, async { Ok(None) }, records).await
    }

    pub(super) async fn handled<H>(&self, warm: &Warm<Handled<H>>) -> Result<Arc<Handled<H>>, Error>
    where
        H: Handler + Snapshot + Hears + Clone + Send + Sync + 'static,
        H::Command: Clone,
        H::Event: Event,
    {
        let query = Query::aggregate(H::FOLD, self.project());
        let base = async {
            if !self.is_past {
                let (state, position) = self.crew.newest::<H>().await?;
                return Ok(Some((Handled(state), position)));
            }
            let newest = Snapshots::<H>::of(self.store(), &query).newest().await?;
            let usable = newest.filter(|(_, last)| last.position <= self.at);
            Ok(usable.map(|(state, last)| (Handled(state), last.position)))
        };
        let state = warm.at(self.at, self.is_past, base, |range| self.store().records(&query, range)).await?;
        if self.is_past { Ok(state) } else { self.crew.told(state).await }
    }

    /// The open plans of the project, as the list of plans has them.
    pub(super) async fn open_plans(&self) -> Result<Vec<ListedPlan>, Error> {
        let tag = format!("project:{}", self.project());
        let list = self.folded(&self.kept.list).await?;
        Ok(list.0.open().filter(|plan| plan.tags.contains(&tag)).cloned().collect())
    }

    /// The readable open plans of the project, by id.
    pub async fn open(&self) -> Result<BTreeMap<String, Arc<ViewedPlan>>, Error> {
        self.readable(self.open_plans().await?.into_iter().map(|plan| plan.id).collect()).await
    }

    /// Those of these plans that can be read.
    pub(super) async fn readable(&self, plans: Vec<String>) -> Result<BTreeMap<String, Arc<ViewedPlan>>, Error> {
        let read = plans.into_iter().map(async |plan| (self.viewed(&plan).await, plan));
        let mut read = stream::iter(read).buffer_unordered(TOGETHER_MAX);
        let mut readable = BTreeMap::new();
        while let Some((seen, plan)) = read.next().await {
            match seen {
                Ok(seen) => drop(readable.insert(plan, seen)),
                Err(error @ Error::Decode { .. }) => tracing::warn!(plan, %error, "the plan is left out"),
                Err(error) => return Err(error),
            }
        }
        Ok(readable)
    }
}
