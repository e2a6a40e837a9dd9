//! Reads projections of the log: the newest snapshot, then the events after it. A long read stores a new snapshot.

use crewlog_mq::{Error, EventStore, Last, Position, Query, Range, Snapshots};
use crewlog_planner::crew::Projection;
use crewlog_planner::listing::PlanList;

/// The page size.
const PAGE: usize = 1000;
/// Snapshots of readers are separate from those of hosts, which may not yet have appended everything due.
const READERS: &str = "view";

/// A projection as of a position.
pub struct Projected<P> {
    /// Its state.
    pub state: P,
    /// The position.
    pub at: Position,
    snapshots: Snapshots<P>,
    /// The last event in the state, if the state may be stored.
    last: Option<Last>,
}

impl<P: Projection> Projected<P> {
    /// Reads a projection as of a position, or of the head of the log. Texts stay sealed in it.
    ///
    /// # Errors
    /// A fault of the log. An unreadable event is skipped with a warning.
    pub async fn read(store: &EventStore, at: Option<Position>) -> Result<Self, Error> {
        let store = store.clone().as_stored();
        let mut snapshots = Snapshots::<P>::of(&store, &Query::all()).under(READERS);
        let is_before = |(_, last): &(P, Last)| at.is_none_or(|at| last.position <= at);
        let own = snapshots.newest().await?;
        // True unless a newer snapshot than this state is stored.
        let mut may_keep = own.as_ref().is_none_or(is_before);
        let of_host = Snapshots::<P>::of(&store, &Query::all()).newest().await?;
        let usable = [own, of_host].into_iter().flatten().filter(is_before);
        let (mut state, mut read_to, mut last, query) = match usable.max_by_key(|(_, last)| last.position) {
            Some((state, last)) => (state, last.position, Some(last), Query::all()),
            None => (P::default(), Position(0), None, P::from_scratch()),
        };
        // An append is atomic, so the read must end with a complete one.
        let head = store.head().await?;
        let up_to = store.whole(at.unwrap_or(head).min(head)).await?;
        while read_to < up_to {
            let page = store.read(&query, Range::between(read_to, up_to), PAGE).await?;
            let is_whole = store.whole(page.next).await? == page.next;
            let mut events = page.events.iter().peekable();
            while let Some(recorded) = events.next() {
                if let Err(error) = state.handle(recorded) {
                    tracing::warn!(fold = P::FOLD, %error, "skipped an unreadable event");
                    may_keep = false;
                }
                if events.peek().map_or(is_whole, |next| next.append_start != recorded.append_start) {
                    state.end_append();
                }
            }
            snapshots.fold(page.events.len());
            read_to = if page.more { page.next } else { up_to };
        }
        if query == P::from_scratch() {
            state.read_to(up_to);
        }
        if may_keep && last.is_none_or(|last| last.position < up_to) {
            let newest = store.read(&Query::all(), Range::between(Position(up_to.0 - 1), up_to), 1).await?;
            last = newest.events.first().map(Last::from);
        }
        Ok(Self { state, at: up_to, snapshots, last: last.filter(|_| may_keep) })
    }

    /// Counts events that were folded separately for a part of the state.
    pub fn fold(&mut self, n_events: usize) {
        self.snapshots.fold(n_events);
    }

    /// Stores the state for the next reader, if many events were read.
    pub async fn keep(&mut self) {
        if let Some(last) = self.last {
            self.snapshots.keep(&self.state, last).await;
        }
    }
}

/// The list of all plans as of a position, or of the head of the log, without summaries of changed plans.
///
/// # Errors
/// A fault of the log.
pub async fn list_plans(store: &EventStore, at: Option<Position>) -> Result<PlanList, Error> {
    let mut list = Projected::<PlanList>::read(store, at).await?;
    list.keep().await;
    Ok(list.state)
}
