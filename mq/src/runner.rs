//! The loop that runs a handler on a log: reads new events, decides, appends, and decides again if concurrent writers
//! were faster. All decisions are the handler's.

use std::time::Duration;

use crate::append::{Append, Appended, NewEvent, Write};
use crate::error::Error;
use crate::event::Event;
use crate::executed::{Decided, ExecuteError, Executed, Executions, executed, nothing, one};
use crate::expected::Expected;
use crate::handler::{Cause, Handler};
use crate::ids::new_event_id;
use crate::position::Position;
use crate::query::{Query, Range};
use crate::snapshot::{Last, Snapshot, Snapshots};
use crate::store::EventStore;

/// How often a decision is repeated because of concurrent appends.
const ATTEMPTS_MAX: usize = 32;
/// The longest pause between two attempts, in milliseconds.
const PAUSE_MAX: u32 = 512;
/// The most events a spare state may be behind: reading more takes longer than a snapshot and its tail.
const SPARE_EVENTS_MAX: i64 = 1_000;
/// The page size, and the pages after which a long read stores a snapshot.
const CATCH_UP_PAGE: usize = 1000;
const PAGES_PER_SNAPSHOT: usize = 20;

/// Waits a random time before an attempt, so that each of many writers gets its turn. The limit doubles with each
/// attempt; the first two do not wait.
async fn pause(attempt: usize) {
    if attempt > 1 {
        let limit = PAUSE_MAX.min(1 << attempt.min(16));
        let [.., a, b] = new_event_id().into_bytes();
        let millis = u32::from(u16::from_le_bytes([a, b])) % limit;
        tokio::time::sleep(Duration::from_millis(millis.into())).await;
    }
}

/// A handler on a log. It stays in memory and reads only new events.
///
/// [`Runner::new`] runs a handler on one aggregate, [`Runner::over`] on all events that match a query.
pub struct Runner<H: Handler> {
    store: EventStore,
    /// Selects the events to fold.
    query: Query,
    /// The stream to append to.
    stream_id: String,
    aggregate_id: String,
    scope: Scope<H::Event>,
    /// Histories to fold before that.
    prefix: Vec<Prefix>,
    snapshots: Option<Snapshots<H>>,
    state: State<H>,
    /// The last event in a state that the caller has seen, and its generation.
    shown: Option<(Last, u64)>,
    /// A copy of the state, kept after a conflict. After the next conflict the runner starts from it and reads only
    /// newer events; reading all of them again would take so long that the next append would conflict too.
    spare: Option<State<H>>,
    /// Adds facts that no event has.
    facts: Option<Box<Telling<H>>>,
}

type Telling<H> = dyn Fn(&mut H) + Send + Sync;

/// The beginning of another history, folded before the handler's own events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    /// Selects its events.
    pub query: Query,
    /// The last position to fold.
    pub up_to: Position,
}

/// Determines the condition of an append and the tags of its events.
enum Scope<E> {
    /// One aggregate: its sequence guards the append.
    Aggregate(Vec<String>),
    /// A query: no new matching event may exist.
    Query(fn(&E) -> Vec<String>),
}

/// The part of the log read so far.
#[derive(Clone, Default)]
struct State<H> {
    handler: H,
    last: Option<Last>,
    read_to: Position,
    /// The pinned log that was read. Set once the state includes the prefix, directly or from a snapshot.
    log: Option<EventStore>,
}

impl<H> State<H> {
    fn sequence(&self) -> i64 {
        self.last.map_or(0, |last| last.sequence)
    }

    /// The log that was read, unless it went back since.
    fn current_log(&self) -> Option<EventStore> {
        self.log.clone().filter(|log| log.still(()).is_ok())
    }
}

impl<H: Handler> Runner<H>
where
    H::Command: Clone,
    H::Event: Event,
{
    /// Runs a handler on `stream_id/aggregate_id`. Its events get these tags.
    #[must_use]
    pub fn new(store: EventStore, stream_id: &str, aggregate_id: &str, tags: Vec<String>) -> Self {
        let query = Query::aggregate(stream_id, aggregate_id);
        Self::with_scope(store, query, (stream_id, aggregate_id), Scope::Aggregate(tags))
    }

    /// Runs a handler on all events that match a query, in any aggregates. Use it for a decision across aggregates,
    /// such as a seat in a course for a student of few courses. Its events go to the aggregate `to` (stream and id),
    /// with the tags that `tags_of` gives each event.
    ///
    /// Its appends are refused if a new event matches the query, and it then decides again. So two deciders with common
    /// facts never both win, and two without common facts never conflict, even in one aggregate. For that, every event
    /// it decides must itself match the query; others are refused.
    ///
    /// ```
    /// # use crewlog_mq::{Cause, Event, EventStore, Handler, Query, Runner};
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(Clone, Serialize, Deserialize)]
    /// enum Enrolment { Enrolled { course: String, student: String } }
    ///
    /// impl Event for Enrolment {}
    ///
    /// fn tags_of(Enrolment::Enrolled { course, student }: &Enrolment) -> Vec<String> {
    ///     vec![format!("course:{course}"), format!("student:{student}")]
    /// }
    ///
    /// /// A course of two seats.
    /// #[derive(Clone, Default)]
    /// struct Seats { taken: Vec<String> }
    ///
    /// impl Handler for Seats {
    ///     type Command = Enrolment;
    ///     type Event = Enrolment;
    ///     type Error = String;
    ///     fn decide(&self, wanted: Enrolment) -> Result<Vec<Enrolment>, String> {
    ///         let Enrolment::Enrolled { student, .. } = &wanted;
    ///         if self.taken.contains(student) { return Ok(vec![]) }
    ///         if self.taken.len() == 2 { return Err("the course is full".into()) }
    ///         Ok(vec![wanted])
    ///     }
    ///     fn apply(&mut self, Enrolment::Enrolled { student, .. }: &Enrolment) { self.taken.push(student.clone()) }
    /// }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = EventStore::in_memory().await?;
    /// let course = || Query::tag("course:chess");
    /// let mut seats = Runner::<Seats>::over(store.clone(), course(), ("enrolments", "all"), tags_of);
    /// for student in ["ada", "bob"] {
    ///     let wanted = Enrolment::Enrolled { course: "chess".into(), student: student.into() };
    ///     seats.execute(wanted, &Cause::request()).await?;
    /// }
    /// let late = Enrolment::Enrolled { course: "chess".into(), student: "eve".into() };
    /// let refusal = seats.execute(late, &Cause::request()).await.err();
    /// assert_eq!(refusal.ok_or("it is refused")?.to_string(), "the course is full");
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn over(store: EventStore, query: Query, to: (&str, &str), tags_of: fn(&H::Event) -> Vec<String>) -> Self {
        Self::with_scope(store, query, to, Scope::Query(tags_of))
    }

    fn with_scope(
        store: EventStore,
        query: Query,
        (stream_id, aggregate_id): (&str, &str),
        scope: Scope<H::Event>,
    ) -> Self {
        let (stream_id, aggregate_id) = (stream_id.to_owned(), aggregate_id.to_owned());
        Self {
            store,
            query,
            stream_id,
            aggregate_id,
            scope,
            prefix: Vec::new(),
            snapshots: None,
            state: State::default(),
            shown: None,
            spare: None,
            facts: None,
        }
    }

    /// Starts from the newest snapshot and its tail. New snapshots are stored from time to time, as events are read.
    #[must_use]
    pub fn with_snapshots(mut self) -> Self
    where
        H: Snapshot,
    {
        self.snapshots = Some(Snapshots::of(&self.store, &self.query));
        self
    }

    /// Folds the beginnings of other histories first, in this order. They affect decisions, but guard no append: up to
    /// those positions they never change. If the log ends before one of them, reading fails with [`Error::WentBack`].
    /// Pass the same prefixes each time for one aggregate or query; none of their events may match the query itself.
    #[must_use]
    pub fn behind(mut self, prefix: Vec<Prefix>) -> Self {
        self.prefix = prefix;
        self
    }

    /// The state as last read; after a failed append it is the default until the log is read again.
    #[must_use]
    pub fn handler(&self) -> &H {
        &self.state.handler
    }

    /// Adds facts that no event has, such as those in cells, to the state, now and after each read. They must do no harm when
    /// they are added again, and be no part of a snapshot.
    pub fn tell(&mut self, facts: impl Fn(&mut H) + Send + Sync + 'static) {
        facts(&mut self.state.handler);
        self.facts = Some(Box::new(facts));
    }

    /// The sequence of the last event in the state, in its aggregate; 0 if there is none.
    #[must_use]
    pub fn sequence(&self) -> i64 {
        self.state.sequence()
    }

    /// The aggregate that it appends to.
    #[must_use]
    pub fn aggregate_id(&self) -> &str {
        &self.aggregate_id
    }

    /// The tags of its events; none for a handler on a query.
    #[must_use]
    pub fn tags(&self) -> &[String] {
        match &self.scope {
            Scope::Aggregate(tags) => tags,
            Scope::Query(_) => &[],
        }
    }

    /// The position up to which the log has been read.
    #[must_use]
    pub fn position(&self) -> Position {
        self.state.read_to
    }

    /// Reads new events, and appends none. It stores a due snapshot, in a long read also on the way.
    ///
    /// # Errors
    /// [`Error::Decode`] with the position, type and version of an event that cannot be decoded; the state has the
    /// events before it, and each further call fails alike. Or a fault of the database.
    pub async fn catch_up(&mut self) -> Result<(), Error> {
        match self.read_on().await {
            // A page detected it. The second call finds out whether the state has lost an event.
            Err(Error::WentBack { .. }) if self.state.log.is_some() => self.read_on().await,
            read => read,
        }
    }

    async fn read_on(&mut self) -> Result<(), Error> {
        let log = match self.state.current_log() {
            Some(log) => log,
            // Runs once in a runner's life; inlined it would make all its other futures larger.
            None => Box::pin(self.begin()).await?,
        };
        let (mut pages, mut n_pages) =
            (log.pages(&self.query, Range::after(self.state.read_to), CATCH_UP_PAGE)?, 0_usize);
        while let Some(page) = pages.next().await? {
            n_pages += 1;
            for recorded in &page.events {
                self.state.handler.apply(&recorded.decode()?);
                self.state.handler.placed(recorded.position);
                self.state.last = Some(Last::from(recorded));
                self.state.read_to = recorded.position;
                self.count(1);
            }
            self.state.read_to = page.next;
            if n_pages.is_multiple_of(PAGES_PER_SNAPSHOT) {
                self.keep_due().await;
            }
        }
        self.keep_due().await;
        if let Some(facts) = &self.facts {
            facts(&mut self.state.handler);
        }
        self.show();
        Ok(())
    }

    /// After the log went back, reads everything again. If the old state had a lost event, the user gets an error once.
    async fn check_shown(&mut self, log: &EventStore) -> Result<(), Error> {
        let Some((last, _)) = self.shown.filter(|(_, shown_in)| *shown_in != log.generation()) else { return Ok(()) };
        let is_there = last.is_in(log, &self.query).await?;
        self.shown = None;
        if is_there { Ok(()) } else { Err(log.backend().tail().went_back()) }
    }

    fn show(&mut self) {
        self.shown = self.state.last.zip(self.state.log.as_ref().map(EventStore::generation));
    }

    /// Starts over; returns the log that was read.
    async fn begin(&mut self) -> Result<EventStore, Error> {
        self.state = State::default();
        let log = self.store.pinned();
        self.check_shown(&log).await?;
        if let Some(snapshots) = &mut self.snapshots
            && let Some((handler, last)) = snapshots.newest().await?
        {
            log.still(())?;
            self.state = State { handler, last: Some(last), read_to: last.position, log: Some(log.clone()) };
            return Ok(log);
        }
        // Into a separate handler: an unreadable event changes no state, and the next call reads it again.
        let (mut handler, mut n_events) = (H::default(), 0);
        for Prefix { query, up_to } in &self.prefix {
            let (mut pages, mut head) = (log.pages(query, Range::up_to(*up_to), CATCH_UP_PAGE)?, Position(0));
            while let Some(page) = pages.next().await? {
                for recorded in &page.events {
                    handler.apply(&recorded.decode()?);
                    handler.placed(recorded.position);
                    n_events += 1;
                }
                head = page.next;
            }
            if head < *up_to {
                return Err(Error::WentBack { known: *up_to, head });
            }
        }
        self.count(n_events);
        self.state = State { handler, log: Some(log.clone()), ..State::default() };
        Ok(log)
    }

    /// Decides a command on the newest state, and appends its events in one append.
    ///
    /// After concurrent writes it reads the new events and decides again, a bounded number of times. A reaction that is
    /// already in the log gives no events.
    ///
    /// # Errors
    /// [`ExecuteError::Refused`] by the handler, [`ExecuteError::Contended`], or a fault of the store.
    pub async fn execute(
        &mut self,
        command: H::Command,
        cause: &Cause,
    ) -> Result<Executed<H::Event>, ExecuteError<H::Error>> {
        self.execute_with(command, cause, &[]).await
    }

    /// [`Runner::execute`] with prepared writes to other aggregates in the same, atomic append. They are appended even
    /// if the command changes nothing.
    ///
    /// # Errors
    /// As for [`Runner::execute`], and [`Error::SequenceMismatch`] for one of the writes, to be decided again.
    pub async fn execute_with(
        &mut self,
        command: H::Command,
        cause: &Cause,
        others: &[Write],
    ) -> Result<Executed<H::Event>, ExecuteError<H::Error>> {
        self.catch_up().await?;
        one(self.decide(vec![(command, cause)], others).await?)
    }

    /// [`Runner::execute`] on the state as last read: new events are read only if they conflict with the decision. It
    /// suits commands that follow from events already read, many of which change nothing any more.
    ///
    /// # Errors
    /// As for [`Runner::execute`].
    pub async fn execute_as_read(
        &mut self,
        command: H::Command,
        cause: &Cause,
    ) -> Result<Executed<H::Event>, ExecuteError<H::Error>> {
        one(self.decide(vec![(command, cause)], &[]).await?)
    }

    /// Several commands in one append. Each is decided on the state after those before it, whose events are not placed yet. Returns
    /// the result of each, in their order; a refused one does not keep the others from being appended.
    ///
    /// # Errors
    /// [`ExecuteError::Contended`] or a fault of the store. Then no command was carried out. [`Error::PartlyKnown`] or
    /// [`Error::IdReused`] if another process appended some of the reactions: execute them one by one.
    pub async fn execute_all(
        &mut self,
        all: Vec<(H::Command, Cause)>,
    ) -> Result<Executions<H>, ExecuteError<H::Error>> {
        self.catch_up().await?;
        let (commands, causes): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        self.decide(commands.into_iter().zip(&causes).collect(), &[]).await
    }

    async fn decide(
        &mut self,
        commands: Vec<(H::Command, &Cause)>,
        others: &[Write],
    ) -> Result<Executions<H>, ExecuteError<H::Error>> {
        for attempt in 0..ATTEMPTS_MAX {
            if attempt > 0 || self.state.current_log().is_none() {
                pause(attempt).await;
                self.catch_up().await?;
            }
            if attempt > 0 {
                self.spare = Some(self.state.clone());
            }
            // The state includes decided events before the log does. So it is put back only once both agree: after a
            // failed append, or if the caller drops this future, it is read again.
            let mut state = std::mem::take(&mut self.state);
            let decided = commands.iter().map(|(command, _)| state.handler.process(command.clone()));
            let decided = decided.collect::<Vec<_>>();
            let n_events = decided.iter().flatten().map(Vec::len).sum::<usize>();
            if n_events == 0 && (others.is_empty() || decided.iter().all(Result::is_err)) {
                let position = state.read_to;
                self.state = state;
                return Ok(nothing(decided, position));
            }
            let events = self.written(&decided, &commands)?;
            match self.append(events, &state, others).await {
                Ok((appended, _, is_rewritten))
                    if appended.repeated && (is_rewritten || !self.follows(&appended, &state)) =>
                {
                    self.catch_up().await?;
                    return Ok(nothing(decided, appended.last()));
                }
                // The log has other events than the state.
                Ok((appended, _, true)) => {
                    self.catch_up().await?;
                    return Ok(executed(decided, &appended));
                }
                // A repetition directly after the state: another host decided the same on the same state.
                Ok((appended, last, false)) => {
                    let own = appended.places.iter().take(n_events);
                    own.for_each(|place| state.handler.placed(place.position));
                    // Without events of its own, nothing kept others from writing to its aggregate before this append.
                    if last.is_some() {
                        (state.last, state.read_to) = (last, appended.last());
                    }
                    self.state = state;
                    self.show();
                    self.count(n_events);
                    return Ok(match appended.repeated {
                        true => nothing(decided, appended.last()),
                        false => executed(decided, &appended),
                    });
                }
                Err(error) if self.is_behind(&error) => {
                    let spare = self.spare.take();
                    let spare = spare.filter(|spare| state.sequence() - spare.sequence() <= SPARE_EVENTS_MAX);
                    self.state = spare.unwrap_or_default();
                }
                Err(error @ (Error::IdReused { position, .. } | Error::PartlyKnown { position, .. }))
                    if commands.len() == 1 && commands[0].1.derived.is_some() =>
                {
                    tracing::warn!(%error, "this reaction is in the log with other content; it is left as it is");
                    self.catch_up().await?;
                    return Ok(nothing(decided, position));
                }
                Err(error) => {
                    // The next read does not report the same loss again.
                    self.shown = self.shown.filter(|_| !matches!(error, Error::WentBack { .. }));
                    return Err(error.into());
                }
            }
        }
        let (stream_id, aggregate_id) = (self.stream_id.clone(), self.aggregate_id.clone());
        Err(ExecuteError::Contended { stream_id, aggregate_id, attempts: ATTEMPTS_MAX })
    }

    /// True if a concurrent write changed the basis of the decision.
    fn is_behind(&self, error: &Error) -> bool {
        match error {
            Error::SequenceMismatch { stream_id, aggregate_id, .. } => {
                (stream_id, aggregate_id) == (&self.stream_id, &self.aggregate_id)
            }
            error => matches!(error, Error::MatchFound { .. }),
        }
    }

    /// Appends the events. Also returns the last one, and whether the log has other events.
    async fn append(
        &mut self,
        events: Vec<NewEvent>,
        state: &State<H>,
        others: &[Write],
    ) -> Result<(Appended, Option<Last>, bool), Error> {
        let last = events.last().map(|event| (events.len() - 1, event.event_id()));
        let mut append = match &self.scope {
            Scope::Aggregate(_) if events.is_empty() => Append::default(),
            Scope::Aggregate(_) => {
                Append::to(&self.stream_id, &self.aggregate_id, Expected::Sequence(state.sequence()), events)
            }
            Scope::Query(_) => {
                let append = Append::to(&self.stream_id, &self.aggregate_id, Expected::Any, events);
                self.check_scope(&append)?;
                append.none_matching(self.query.clone(), state.read_to)
            }
        };
        append.writes.extend_from_slice(others);
        // To the log that the decision is based on, which refuses the append after it went back.
        let (appended, is_rewritten) = state.log.as_ref().unwrap_or(&self.store).append_rewritten(append).await?;
        let last = last.and_then(|(index, event_id)| {
            let place = appended.places.get(index)?;
            Some(Last { position: place.position, sequence: place.sequence, event_id })
        });
        Ok((appended, last, is_rewritten))
    }

    /// The events in the form that is appended.
    fn written(
        &self,
        decided: &Decided<H::Event, H::Error>,
        commands: &[(H::Command, &Cause)],
    ) -> Result<Vec<NewEvent>, Error> {
        let caused = decided.iter().zip(commands).flat_map(|(decided, (_, cause))| {
            decided.iter().flatten().enumerate().map(move |(index, event)| (index, event, cause))
        });
        let written = caused.map(|(index, event, cause)| {
            let tags = match &self.scope {
                Scope::Aggregate(tags) => tags.clone(),
                Scope::Query(tags_of) => tags_of(event),
            };
            Ok(NewEvent::of(event, &cause.metadata_of(index))?.with_id(cause.event_id(index)).with_tags(tags))
        });
        written.collect()
    }

    /// Refuses an event outside the query, which concurrent deciders would not see.
    fn check_scope(&self, append: &Append) -> Result<(), Error> {
        for write in append.writes() {
            if let Some(unseen) = write.events.iter().find(|event| !event.matches(write, &self.query)) {
                let reason = format!(
                    "{} does not match the query that it was decided on, so two who decide at once could both win: give it \
                     the tags that the query asks for",
                    unseen.event_type
                );
                return Err(Error::InvalidAppend { reason });
            }
        }
        Ok(())
    }

    /// True if the events of a repeated append come directly after the state.
    fn follows(&self, repeated: &Appended, state: &State<H>) -> bool {
        match self.scope {
            Scope::Aggregate(_) => {
                repeated.places.iter().zip(state.sequence() + 1..).all(|(place, next)| place.sequence == next)
            }
            // Other matching events may be in between.
            Scope::Query(_) => false,
        }
    }

    fn count(&mut self, n_events: usize) {
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.fold(n_events);
        }
    }

    async fn keep_due(&mut self) {
        if let Some((snapshots, last)) = self.snapshots.as_mut().zip(self.state.last)
            && let Some(change) = snapshots.due(&self.state.handler, last)
        {
            // Rare; inlined it would make all futures of the runner larger.
            Box::pin(snapshots.put(change)).await;
        }
    }
}
