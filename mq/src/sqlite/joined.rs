//! Appends joined with a caller's own statements in one transaction, on a connection separate from the writer's. The
//! caller's statements cannot touch the log's tables.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::bell::Bell;
use super::ledger::{Memory, Writing};
use super::location::Location;
use super::lock::AppendLock;
use super::tables::look;
use crate::append::{Append, Appended};
use crate::clock::LogTime;
use crate::error::{Error, Result};
use crate::judge::Judge;
use crate::limits::JOINED_TIME_MAX;
use crate::tail::Tail;

const DOING: &str = "appending with other statements";
/// The time limit is checked after this many steps of SQLite.
const STEPS: i32 = 10_000;
/// The log's tables and their view.
const OWN: [&str; 7] = ["log", "aggregates", "events", "tags", "kinds", "cells", "recorded_events"];

/// The error of an append with other statements. Everything was rolled back.
#[derive(Debug, thiserror::Error)]
pub enum JoinedError<E> {
    /// The caller's own work failed.
    #[error(transparent)]
    Work(E),
    /// The log refused or failed.
    #[error(transparent)]
    Store(#[from] Error),
}

/// The connection for joined appends, opened on demand and kept.
#[derive(Clone)]
pub(super) struct Joined {
    location: Location,
    log_time: Arc<LogTime>,
    tail: Arc<Tail>,
    idle: Arc<Mutex<Option<Place>>>,
}

struct Place {
    connection: Connection,
    lock: Option<AppendLock>,
}

impl Joined {
    pub(super) fn new(location: Location, log_time: Arc<LogTime>, tail: Arc<Tail>) -> Self {
        Self { location, log_time, tail, idle: Arc::default() }
    }

    /// Closes the connection. No append may be in progress.
    pub(super) fn close(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Blocks until everything is committed or rolled back.
    pub(super) fn append<T, E>(
        &self,
        append: &Append,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<(Appended, T), JoinedError<E>> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut place = idle.map_or_else(|| self.connect(), Ok)?;
        let done = self.transact(&mut place, append, work)?;
        // A connection on which something failed is not used again.
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
        Ok(done)
    }

    fn connect(&self) -> Result<Place> {
        Ok(Place { connection: self.location.connect_to_write()?, lock: self.location.open_lock()? })
    }

    fn transact<T, E>(
        &self,
        place: &mut Place,
        append: &Append,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<(Appended, T), JoinedError<E>> {
        let fault = |error| self.location.fault(DOING, error);
        let held = self.location.hold(place.lock.as_ref())?;
        self.location.check_same()?;
        let (before, behavior) = (self.tail.seen(), TransactionBehavior::Immediate);
        let transaction = place.connection.transaction_with_behavior(behavior).map_err(fault)?;
        let look = look(&transaction, &self.tail, before).map_err(fault)?;
        let start = look.end;
        self.tail.check_look(look)?;
        self.tail.check(append.generation)?;
        let reading = self.log_time.after_by(look.time, look.now);
        let worked = within_bounds(&transaction, work).map_err(fault)??;
        if transaction.is_autocommit() {
            return Err(Error::storage(DOING, Ended).into());
        }
        let mut memory = Memory::default();
        let writing = Writing::new(&transaction, &mut memory, look).map_err(fault)?;
        let mut judge = Judge::begin(writing, start.head, &reading).map_err(fault)?;
        let appended = judge.judge(append).map_err(fault)??;
        let head = judge.head();
        drop(judge);
        if appended.repeated {
            transaction.rollback().map_err(fault)?;
            return Ok((appended, worked));
        }
        #[cfg(feature = "faults")]
        crate::faults::reach(crate::faults::Point::Before(start.head, head));
        transaction.commit().map_err(fault)?;
        #[cfg(feature = "faults")]
        crate::faults::reach(crate::faults::Point::After(start.head, head));
        Bell::ring_beside(&self.location, head);
        drop(held);
        if reading.stepped_back.is_some() {
            self.log_time.step_is_recorded();
        }
        self.log_time.learn(reading.now);
        Ok((appended, worked))
    }
}

/// Runs the caller's work within its rights and its time limit.
fn within_bounds<T, E>(
    transaction: &Transaction<'_>,
    work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
) -> rusqlite::Result<Result<T, JoinedError<E>>> {
    let end = Instant::now() + JOINED_TIME_MAX;
    transaction.progress_handler(STEPS, Some(move || Instant::now() >= end))?;
    transaction.authorizer(Some(|context: AuthContext<'_>| {
        if is_permitted(context.action) { Authorization::Allow } else { Authorization::Deny }
    }))?;
    // A conflict may end the transaction; later statements would then commit on their own.
    transaction.commit_hook(Some(|| true))?;
    let worked = work(transaction);
    transaction.commit_hook(None::<fn() -> bool>)?;
    transaction.authorizer(None::<fn(AuthContext<'_>) -> Authorization>)?;
    transaction.progress_handler(0, None::<fn() -> bool>)?;
    if Instant::now() >= end {
        return Ok(Err(Error::storage(DOING, Late(JOINED_TIME_MAX)).into()));
    }
    Ok(worked.map_err(JoinedError::Work))
}

#[derive(Debug, thiserror::Error)]
#[error("it took longer than {} s: do less in it", .0.as_secs())]
struct Late(Duration);

#[derive(Debug, thiserror::Error)]
#[error("a statement of the work ended the transaction, so nothing is kept: resolve conflicts without OR ROLLBACK")]
struct Ended;

fn is_permitted(action: AuthAction<'_>) -> bool {
    let is_own = |name: &str| OWN.iter().any(|own| own.eq_ignore_ascii_case(name));
    match action {
        AuthAction::Read { .. } | AuthAction::Select | AuthAction::Function { .. } | AuthAction::Recursive => true,
        AuthAction::Savepoint { .. } | AuthAction::Reindex { .. } => true,
        AuthAction::Insert { table_name }
        | AuthAction::Update { table_name, .. }
        | AuthAction::Delete { table_name }
        | AuthAction::CreateTable { table_name }
        | AuthAction::CreateIndex { table_name, .. }
        | AuthAction::CreateTrigger { table_name, .. }
        | AuthAction::CreateVtable { table_name, .. }
        | AuthAction::DropTable { table_name }
        | AuthAction::DropIndex { table_name, .. }
        | AuthAction::DropTrigger { table_name, .. }
        | AuthAction::DropVtable { table_name, .. }
        | AuthAction::AlterTable { table_name, .. }
        | AuthAction::Analyze { table_name } => !is_own(table_name),
        AuthAction::CreateView { view_name } | AuthAction::DropView { view_name } => !is_own(view_name),
        AuthAction::Pragma { pragma_value, .. } => pragma_value.is_none(),
        // Temporary objects could shadow the log's tables.
        _ => false,
    }
}
