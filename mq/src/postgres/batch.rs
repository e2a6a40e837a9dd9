//! One transaction for several appends: it first reads everything the judge needs from the log in one query,
//! then writes all accepted appends at once.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};
use uuid::Uuid;

use super::log::Log;
use super::rows::{self, recorded_columns};
use super::server::{answered, code_of};
use super::sources;
use crate::append::{Append, Appended, NewEvent, NoneMatching, Write};
use crate::cell::{CellChange, Held};
use crate::clock::{Reading, Timestamp};
use crate::error::Result;
use crate::judge::{Entry, Judge, Known, LAST_CHANGE, Ledger};
use crate::position::Position;
use crate::query::Query;
use crate::recorded::Recorded;
use crate::tail::{End, Look};

/// The most aggregates and kinds kept in memory, each.
const INTERNED_MAX: usize = 65_536;

/// The most events of other writers whose sequences are read one by one.
const OTHERS_MAX: i64 = 2_000;

type Pair = (String, String);

/// The cached state of a log across transactions.
#[derive(Debug, Default)]
pub(super) struct Interned {
    /// By `(stream, aggregate)`.
    aggregates: HashMap<Pair, i64>,
    /// The sequence of the last event of each aggregate as of `head`, by the aggregate's number.
    sequences: HashMap<i64, i64>,
    /// By `(stream, event type)`.
    kinds: HashMap<Pair, i64>,
    /// The sequences are current up to here.
    head: Position,
    /// The generation of the log that the cache belongs to.
    generation: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Aggregate {
    number: i64,
    sequence: i64,
}

impl Interned {
    /// Adds the facts of a transaction that has been committed.
    pub(super) fn learn(&mut self, new: Written) {
        if self.aggregates.len() + new.aggregates.len() > INTERNED_MAX {
            self.forget_aggregates();
        }
        if self.kinds.len() + new.kinds.len() > INTERNED_MAX {
            self.kinds.clear();
        }
        for (pair, Aggregate { number, sequence }) in new.aggregates {
            // An aggregate without a number has no events yet.
            if number != 0 {
                self.aggregates.insert(pair, number);
                self.sequences.insert(number, sequence);
            }
        }
        self.kinds.extend(new.kinds);
        self.head = new.head;
    }

    fn aggregate(&self, pair: &Pair) -> Option<Aggregate> {
        let number = *self.aggregates.get(pair)?;
        Some(Aggregate { number, sequence: *self.sequences.get(&number)? })
    }

    fn forget_aggregates(&mut self) {
        self.aggregates.clear();
        self.sequences.clear();
    }

    /// Adds the writes of others up to `head`, or drops what may be stale.
    async fn catch_up(&mut self, log: &Log, connection: &mut PgConnection, look: Look) -> sqlx::Result<()> {
        let Look { end: End { head, .. }, generation, .. } = look;
        if self.generation != generation {
            *self = Self { generation, ..Self::default() };
        }
        let n_new = head.0 - self.head.0;
        if (1..=OTHERS_MAX).contains(&n_new) && !self.aggregates.is_empty() {
            let sql = "SELECT aggregate, max(sequence) FROM events WHERE position > $1 GROUP BY aggregate";
            let rows = answered(log.statement(sql).bind(self.head.0).fetch_all(connection)).await?;
            for row in rows {
                let (number, sequence): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
                self.sequences.entry(number).and_modify(|known| *known = sequence);
            }
        } else if n_new != 0 {
            self.forget_aggregates();
        }
        self.head = head;
        Ok(())
    }
}

/// The facts and writes of a transaction.
pub(super) struct Written {
    aggregates: HashMap<Pair, Aggregate>,
    kinds: HashMap<Pair, i64>,
    pub(super) generation: u64,
    pub(super) head: Position,
    /// The new events.
    pub(super) events: Vec<Recorded>,
    /// The log time of its writes, if there are any.
    pub(super) time: Option<Timestamp>,
    pub(super) step_is_recorded: bool,
}

impl Written {
    /// The new head, if there is one.
    pub(super) fn news(&self) -> Option<Position> {
        self.events.last().map(|event| event.position)
    }
}

/// Judges appends within an open transaction, and writes the accepted ones.
///
/// With `trusting`, ids are assumed to be new; if the database then rejects a known id, the result is `Ok(None)` and
/// the transaction is useless. Refused appends are judged again after a look-up of their ids.
pub(super) async fn write(
    log: &Log,
    connection: &mut PgConnection,
    (appends, look): (&[Append], Look),
    known: &mut Interned,
    trusting: bool,
) -> sqlx::Result<Option<(Vec<Result<Appended>>, Written)>> {
    known.catch_up(log, connection, look).await?;
    let end = look.end;
    // Uses the clock reading made under the append lock: another reader may have set the shared clock meanwhile.
    let reading = log.log_time.after_by(look.time, look.now);
    let is_stepped = reading.stepped_back.is_some();
    let facts =
        Facts::ask(log, connection, Asked::of(appends, known, trusting, is_stepped), (appends, end.head)).await?;
    let (mut outcomes, mut judge) = judge(log, Writing::new(facts, known), appends, end, &reading);
    if trusting && outcomes.iter().any(Result::is_err) {
        let facts =
            Facts::ask(log, connection, Asked::of(appends, known, false, is_stepped), (appends, end.head)).await?;
        (outcomes, judge) = self::judge(log, Writing::new(facts, known), appends, end, &reading);
    }
    let (head, time) = (judge.head(), judge.written_at());
    let writing = judge.ledger;
    match writing.rows.insert(log, connection).await {
        Ok(()) => {}
        Err(error) if trusting && code_of(&error).as_deref() == Some("23505") => return Ok(None),
        Err(error) => return Err(error),
    }
    let Facts { mut aggregates, mut kinds, .. } = writing.facts;
    aggregates.extend(writing.aggregates);
    kinds.extend(writing.kinds);
    let written = Written {
        aggregates,
        kinds,
        generation: look.generation,
        head,
        events: writing.rows.into_events(),
        time,
        step_is_recorded: is_stepped,
    };
    Ok(Some((outcomes, written)))
}

fn judge<'a>(
    log: &Log,
    writing: Writing<'a>,
    appends: &[Append],
    end: End,
    reading: &Reading,
) -> (Vec<Result<Appended>>, Judge<Writing<'a>>) {
    let Ok(mut judge) = Judge::begin(writing, end.head, reading);
    let judged = appends.iter().map(|append| {
        log.tail.check(append.generation)?;
        let Ok(outcome) = judge.judge(append);
        outcome
    });
    let outcomes = judged.collect();
    (outcomes, judge)
}

/// The facts about the log that a transaction needs.
#[derive(Default)]
pub(super) struct Facts<'a> {
    last_aggregate: i64,
    last_kind: i64,
    aggregates: HashMap<Pair, Aggregate>,
    kinds: HashMap<Pair, i64>,
    events: HashMap<Uuid, Recorded>,
    cells: HashMap<Pair, Held>,
    matches: Vec<(&'a NoneMatching, Option<Position>)>,
}

impl<'a> Facts<'a> {
    /// Queries the missing facts.
    pub(super) async fn ask(
        log: &Log,
        connection: &mut PgConnection,
        asked: Asked<'_>,
        (appends, head): (&'a [Append], Position),
    ) -> sqlx::Result<Self> {
        let mut facts = Self::default();
        if !asked.is_nothing() {
            let row = answered(asked.statement(log).fetch_one(&mut *connection)).await?;
            facts.take_in(&asked, &row)?;
            let ids: Vec<Uuid> = row.try_get("known_ids")?;
            if !ids.is_empty() {
                facts.events = known_events(log, connection, ids).await?;
            }
        }
        for condition in appends.iter().filter_map(|append| append.none_matching.as_ref()) {
            let bounds = (condition.after, head);
            let first = sources::first_match(log, connection, &condition.query, bounds).await?;
            facts.matches.push((condition, first));
        }
        Ok(facts)
    }

    fn take_in(&mut self, asked: &Asked<'_>, row: &PgRow) -> sqlx::Result<()> {
        self.last_aggregate = row.try_get("last_aggregate")?;
        self.last_kind = row.try_get("last_kind")?;
        let (numbers, sequences): (Vec<i64>, Vec<i64>) = (row.try_get("aggregates")?, row.try_get("sequences")?);
        for ((pair, number), sequence) in asked.aggregates.owned().zip(numbers).zip(sequences) {
            // An aggregate without a number has no events, and gets a number with its first one.
            self.aggregates.insert(pair, Aggregate { number, sequence });
        }
        let kinds: Vec<i64> = row.try_get("kinds")?;
        let kinds = asked.kinds.owned().zip(kinds).filter(|(_, kind)| *kind != 0);
        self.kinds.extend(kinds);
        let (versions, untils): (Vec<i64>, Vec<Option<i64>>) = (row.try_get("versions")?, row.try_get("untils")?);
        for ((pair, version), until) in asked.cells.owned().zip(versions).zip(untils) {
            if version != 0 {
                self.cells.insert(pair, Held { version, until: until.map(Timestamp) });
            }
        }
        Ok(())
    }
}

/// The parameters of the query, by columns.
#[derive(Default)]
pub(super) struct Asked<'a> {
    ids: Vec<Uuid>,
    aggregates: Names<'a>,
    kinds: Names<'a>,
    cells: Names<'a>,
}

impl<'a> Asked<'a> {
    fn of(appends: &'a [Append], known: &Interned, trusting: bool, is_stepped: bool) -> Self {
        let mut asked = Self::default();
        if is_stepped {
            asked.aggregates.add(("log", "clock"), &known.aggregates);
            asked.kinds.add(("log", "ClockStepped"), &known.kinds);
        }
        for append in appends {
            for write in &append.writes {
                asked.aggregates.add((&write.stream_id, &write.aggregate_id), &known.aggregates);
                for event in &write.events {
                    asked.kinds.add((&write.stream_id, &event.event_type), &known.kinds);
                    asked.ids.extend((!trusting).then_some(event.event_id));
                }
            }
            if !append.cells.is_empty() {
                asked.cells.add(LAST_CHANGE, &HashMap::<Pair, Held>::new());
            }
            for change in &append.cells {
                asked.cells.add((&change.space, &change.key), &HashMap::<Pair, Held>::new());
            }
        }
        asked
    }

    /// The facts needed to import these events unchanged.
    pub(super) fn of_records(records: impl Iterator<Item = &'a Recorded>) -> Self {
        let mut asked = Self::default();
        let nothing = Interned::default();
        for record in records {
            asked.ids.push(record.event_id);
            asked.aggregates.add((&record.stream_id, &record.aggregate_id), &nothing.aggregates);
            asked.kinds.add((&record.stream_id, &record.event_type), &nothing.kinds);
        }
        asked
    }

    fn is_nothing(&self) -> bool {
        let names = [&self.aggregates, &self.kinds, &self.cells];
        self.ids.is_empty() && names.iter().all(|names| names.pairs.is_empty())
    }

    fn statement(&self, log: &Log) -> sqlx::query::Query<'static, sqlx::Postgres, sqlx::postgres::PgArguments> {
        let mut statement = log.statement(FACTS).bind(self.ids.clone());
        for names in [&self.aggregates, &self.kinds, &self.cells] {
            let (firsts, seconds): (Vec<String>, Vec<String>) = names.owned().unzip();
            statement = statement.bind(firsts).bind(seconds);
        }
        statement
    }
}

/// Names of two parts, each once.
#[derive(Default)]
struct Names<'a> {
    seen: HashSet<(&'a str, &'a str)>,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Names<'a> {
    fn add<T>(&mut self, pair: (&'a str, &'a str), known: &HashMap<Pair, T>) {
        if self.seen.insert(pair) && !known.contains_key(&(pair.0.to_owned(), pair.1.to_owned())) {
            self.pairs.push(pair);
        }
    }

    fn owned(&self) -> impl Iterator<Item = Pair> {
        self.pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
    }
}

/// One row; each list is in the order of the request.
const FACTS: &str = "SELECT \
     coalesce((SELECT aggregate FROM aggregates ORDER BY aggregate DESC LIMIT 1), 0) AS last_aggregate, \
     coalesce((SELECT kind FROM kinds ORDER BY kind DESC LIMIT 1), 0) AS last_kind, \
     ARRAY(SELECT e.event_id FROM unnest($1::uuid[]) AS i (id) JOIN events AS e ON e.event_id = i.id) AS known_ids, \
     a.numbers AS aggregates, a.sequences, k.numbers AS kinds, c.versions, c.untils \
     FROM (SELECT coalesce(array_agg(number), '{}') AS numbers, coalesce(array_agg(sequence), '{}') AS sequences FROM ( \
         SELECT coalesce(a.aggregate, 0) AS number, \
                coalesce((SELECT e.sequence FROM events AS e WHERE e.aggregate = a.aggregate \
                          ORDER BY e.sequence DESC LIMIT 1), 0) AS sequence \
         FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS i (stream_id, aggregate_id, n) \
         LEFT JOIN aggregates AS a ON a.stream_id = i.stream_id AND a.aggregate_id = i.aggregate_id ORDER BY i.n) AS x) AS a, \
     (SELECT coalesce(array_agg(number), '{}') AS numbers FROM ( \
         SELECT coalesce(k.kind, 0) AS number \
         FROM unnest($4::text[], $5::text[]) WITH ORDINALITY AS i (stream_id, event_type, n) \
         LEFT JOIN kinds AS k ON k.stream_id = i.stream_id AND k.event_type = i.event_type ORDER BY i.n) AS x) AS k, \
     (SELECT coalesce(array_agg(version), '{}') AS versions, coalesce(array_agg(held_until), '{}') AS untils FROM ( \
         SELECT coalesce(c.version, 0) AS version, c.held_until \
         FROM unnest($6::text[], $7::text[]) WITH ORDINALITY AS i (space, key, n) \
         LEFT JOIN cells AS c ON c.space = i.space AND c.key = i.key ORDER BY i.n) AS x) AS c";

const KNOWN_EVENTS: &str = concat!(
    "SELECT ",
    recorded_columns!(),
    " FROM unnest($1::uuid[]) AS i (id) JOIN events AS e ON e.event_id = i.id \
      JOIN aggregates AS a ON a.aggregate = e.aggregate"
);

/// The events with these ids; a rare query.
async fn known_events(
    log: &Log,
    connection: &mut PgConnection,
    ids: Vec<Uuid>,
) -> sqlx::Result<HashMap<Uuid, Recorded>> {
    let found = answered(log.statement(KNOWN_EVENTS).bind(ids).fetch_all(connection)).await?;
    found.iter().map(rows::recorded).map(|event| event.map(|event| (event.event_id, event))).collect()
}

/// The log as the transaction sees it: the facts, and the appends accepted since.
pub(super) struct Writing<'a> {
    facts: Facts<'a>,
    known: &'a Interned,
    /// The state after the accepted appends.
    aggregates: HashMap<Pair, Aggregate>,
    kinds: HashMap<Pair, i64>,
    cells: HashMap<Pair, Option<Held>>,
    /// The row indexes of accepted events.
    ids: HashMap<Uuid, usize>,
    pub(super) rows: rows::Rows,
}

impl<'a> Writing<'a> {
    pub(super) fn new(facts: Facts<'a>, known: &'a Interned) -> Self {
        Self {
            facts,
            known,
            aggregates: HashMap::new(),
            kinds: HashMap::new(),
            cells: HashMap::new(),
            ids: HashMap::new(),
            rows: rows::Rows::default(),
        }
    }

    fn aggregate(&self, pair: &Pair) -> Aggregate {
        let found = self.aggregates.get(pair).or_else(|| self.facts.aggregates.get(pair));
        found.copied().or_else(|| self.known.aggregate(pair)).unwrap_or_default()
    }

    /// The number of an aggregate that gets its next event; assigns one if it has none.
    fn number(&mut self, (stream_id, aggregate_id): (&str, &str), sequence: i64) -> i64 {
        let pair = (stream_id.to_owned(), aggregate_id.to_owned());
        let Aggregate { mut number, .. } = self.aggregate(&pair);
        if number == 0 {
            self.facts.last_aggregate += 1;
            number = self.facts.last_aggregate;
            self.rows.aggregate(number, stream_id, aggregate_id);
        }
        self.aggregates.insert(pair, Aggregate { number, sequence });
        number
    }

    /// Adds an event unchanged.
    pub(super) fn record(&mut self, record: Recorded) {
        let number = self.number((&record.stream_id, &record.aggregate_id), record.sequence);
        let kind = self.kind(&record.stream_id, &record.event_type);
        self.ids.insert(record.event_id, self.rows.n_events());
        self.rows.event_row(record, number, kind);
    }

    /// The position of the event with this id.
    pub(super) fn position_of(&self, event_id: Uuid) -> Option<Position> {
        let accepted = self.ids.get(&event_id).map(|index| self.rows.event(*index));
        accepted.or_else(|| self.facts.events.get(&event_id)).map(|event| event.position)
    }

    /// The number of a kind; assigns one if it has none.
    fn kind(&mut self, stream_id: &str, event_type: &str) -> i64 {
        let pair = (stream_id.to_owned(), event_type.to_owned());
        let found = self.kinds.get(&pair).or_else(|| self.facts.kinds.get(&pair));
        if let Some(kind) = found.or_else(|| self.known.kinds.get(&pair)) {
            return *kind;
        }
        self.facts.last_kind += 1;
        self.rows.kind(self.facts.last_kind, stream_id, event_type);
        self.kinds.insert(pair, self.facts.last_kind);
        self.facts.last_kind
    }
}

impl Ledger for Writing<'_> {
    type Fault = Infallible;

    fn known(&mut self, write: &Write, event: &NewEvent) -> Result<Option<Known>, Infallible> {
        let accepted = self.ids.get(&event.event_id).map(|index| self.rows.event(*index));
        let found = accepted.or_else(|| self.facts.events.get(&event.event_id));
        Ok(found.map(|found| Known::of(write, event, found)))
    }

    fn sequence(&mut self, stream_id: &str, aggregate_id: &str) -> Result<i64, Self::Fault> {
        Ok(self.aggregate(&(stream_id.to_owned(), aggregate_id.to_owned())).sequence)
    }

    fn first_match(&mut self, query: &Query, after: Position) -> Result<Option<Position>, Self::Fault> {
        let before = self.facts.matches.iter().find(|(condition, _)| std::ptr::eq(&condition.query, query));
        let (_, first) = before.expect("every condition of the batch was asked for");
        if first.is_some() {
            return Ok(*first);
        }
        let accepted = self.rows.events().find(|event| event.position > after && query.matches(event));
        Ok(accepted.map(|event| event.position))
    }

    fn cell(&mut self, space: &str, key: &str) -> Result<Option<Held>, Self::Fault> {
        let pair = (space.to_owned(), key.to_owned());
        Ok(match self.cells.get(&pair) {
            Some(changed) => *changed,
            None => self.facts.cells.get(&pair).copied(),
        })
    }

    fn insert(&mut self, entry: &Entry<'_>) -> Result<(), Self::Fault> {
        let number = self.number((entry.stream_id, entry.aggregate_id), entry.place.sequence);
        let kind = self.kind(entry.stream_id, &entry.event.event_type);
        self.ids.insert(entry.event.event_id, self.rows.n_events());
        self.rows.entry(entry, number, kind);
        Ok(())
    }

    fn change_cell(&mut self, change: &CellChange, held: Held) -> Result<(), Self::Fault> {
        let pair = (change.space.clone(), change.key.clone());
        self.cells.insert(pair, change.value.is_some().then_some(held));
        self.rows.cell(change, held);
        Ok(())
    }
}
