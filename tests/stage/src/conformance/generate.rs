//! Random logs, queries and ranges, reproducible by their seed.

use std::time::Duration;

use uuid::Uuid;

use crewlog_mq::{
    Append, Cell, CellChange, CellExpected, Expected, Metadata, NewEvent, Position, Query, Range, Recorded, Timestamp,
};

/// A random source: splitmix64.
pub(super) struct Dice(u64);

/// Few, so that many collide; odd, so that text comparisons must tell them apart.
const STREAMS: [&str; 4] = ["s", "S", "s ", "t/%_"];
const AGGREGATES: [&str; 5] = ["1", "2", "é", "e\u{301}", "a'b\"c"];
const TYPES: [&str; 4] = ["Noted", "noted", "Closed", "?1"];
const TAGS: [&str; 5] = ["x", "X", "y", "z:1", "z:10"];
const SPACES: [&str; 2] = ["lease", "Lease"];
const KEYS: [&str; 4] = ["a", "b", "á", "b\u{1}"];
const N_CAUSES: u64 = 4;

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `n`.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    /// True once in `n`.
    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// A start for reading cells.
    pub(super) fn cells_from(&mut self) -> (&'static str, &'static str) {
        (self.pick(&["lease", "Lease", "none"]), self.pick(&["", "a", "a\u{1}", "b", "á", "z"]))
    }

    fn id(&mut self) -> Uuid {
        Uuid::from_u64_pair(self.next(), self.next())
    }

    /// A cause that several events share.
    fn cause(&mut self) -> Option<Uuid> {
        let n = self.below(N_CAUSES + 2);
        (n < N_CAUSES).then(|| Uuid::from_u128(u128::from(n) + 1))
    }

    pub(super) fn event(&mut self) -> NewEvent {
        let metadata = Metadata {
            correlation_id: self.cause(),
            causation_id: self.cause(),
            extra: self.one_in(4).then(|| 1.into()),
        };
        let n_tags = self.below(4);
        let tags: Vec<_> = (0..n_tags).map(|_| self.pick(&TAGS)).collect();
        let (event_type, data) = (self.pick(&TYPES), format!(" {{\"n\": {}}}", self.below(3)));
        let event = NewEvent::from_json(event_type, self.pick(&["1", "2"]), data, &metadata).expect("it is JSON");
        event.with_id(self.id()).with_tags(tags)
    }

    /// A random append; its expectations about the log may be right or wrong.
    pub(super) fn append(&mut self, history: &[Recorded], cells: &[Cell]) -> Append {
        let mut append = Append::default();
        let n_writes = if self.one_in(12) { 0 } else { 1 + self.below(3) };
        for _ in 0..n_writes {
            let (stream_id, aggregate_id) = (self.pick(&STREAMS), self.pick(&AGGREGATES));
            let n_events = if self.one_in(10) { 0 } else { 1 + self.below(3) };
            let events = (0..n_events).map(|_| self.event()).collect();
            let of = |event: &&Recorded| event.stream_id == stream_id && event.aggregate_id == aggregate_id;
            let last = history.iter().filter(of).count() as i64;
            let expected = match self.below(8) {
                0 => Expected::NoStream,
                1 => Expected::Sequence(last + self.pick(&[-1, 1, 7])),
                2 | 3 => Expected::Sequence(last),
                _ => Expected::Any,
            };
            append = append.and(stream_id, aggregate_id, expected, events);
        }
        if self.one_in(4) {
            let after = self.position(history.len());
            append = append.none_matching(self.query(history), after);
        }
        let n_cells = if self.one_in(2) { 0 } else { self.below(3) };
        for _ in 0..n_cells {
            append = append.cell(self.change(cells));
        }
        append
    }

    /// A change to one of a few cells.
    fn change(&mut self, cells: &[Cell]) -> CellChange {
        let (space, key) = (self.pick(&SPACES), self.pick(&KEYS));
        let change = if self.one_in(3) {
            CellChange::delete(space, key)
        } else {
            CellChange::set(space, key, format!("value {}", self.below(9)))
        };
        let found = cells.iter().find(|cell| cell.space == space && cell.key == key);
        let version = found.map_or(7, |cell| cell.version) + self.pick(&[-1, 0, 0, 0, 1]);
        let change = change.expecting(match self.below(7) {
            0 => CellExpected::Version(version),
            1 => CellExpected::Held(version),
            2 => CellExpected::Free,
            3 => CellExpected::Absent,
            _ => CellExpected::Any,
        });
        if self.one_in(2) { change.held_for(Duration::from_micros(self.below(5))) } else { change }
    }

    /// An append with ids that the log knows: repeated unchanged, or with a difference.
    pub(super) fn repetition(&mut self, appends: &[Append]) -> Append {
        let mut append = self.one_of(appends).cloned().unwrap_or_default();
        for write in append.writes_mut() {
            if self.one_in(3) {
                write.expected = Expected::NoStream;
            }
            match self.below(12) {
                0 => write.events.push(self.event()),
                1 => drop(write.events.pop()),
                2 => write.aggregate_id = self.pick(&AGGREGATES).to_owned(),
                3 => write.events.reverse(),
                4 => write.events.iter_mut().for_each(|event| *event = with_json(event, "1", event.metadata())),
                5 => write.events.iter_mut().for_each(|event| *event = with_json(event, event.data(), "{}")),
                _ => {}
            }
        }
        append
    }

    pub(super) fn one_of<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len() as u64) as usize)
    }

    /// A query that matches many, few or none of the generated events.
    pub(super) fn query(&mut self, history: &[Recorded]) -> Query {
        let mut query = Query::default();
        if self.one_in(3) {
            self.pick(&["s", "S", "s ", "t/%_", "none"]).clone_into(&mut query.stream_id);
        }
        query.event_type = self.one_in(4).then(|| self.pick(&["Noted", "noted", "?1", "none"]).to_owned());
        query.aggregate_id = self.one_in(4).then(|| self.pick(&["1", "é", "e\u{301}", "none"]).to_owned());
        let n_tags = if self.one_in(3) { 1 + self.below(2) } else { 0 };
        query.tags = (0..n_tags).map(|_| self.pick(&["x", "X", "z:1", "none"]).to_owned()).collect();
        if self.one_in(8) {
            query.correlation_id = self.cause();
        }
        if self.one_in(8) {
            query.causation_id = self.cause();
        }
        if self.one_in(12) {
            query.event_id = self.one_of(history).map(|event| event.event_id);
        }
        while self.one_in(3) {
            query = query.or(self.query(history));
        }
        query
    }

    pub(super) fn position(&mut self, n_events: usize) -> Position {
        Position(match self.below(12) {
            0 => -1,
            1 => i64::MIN,
            2 => i64::MAX,
            3 => n_events as i64 + 1,
            _ => self.below(n_events as u64 + 1) as i64,
        })
    }

    /// A part of a log, with arbitrary bounds.
    pub(super) fn range(&mut self, history: &[Recorded]) -> Range {
        let moment = |dice: &mut Self| {
            let near = dice.one_of(history).map_or(Timestamp(0), |event| event.created_at);
            Timestamp(match dice.below(10) {
                0 => i64::MIN,
                1 => i64::MAX,
                2 => near.0 - 1,
                3 => near.0 + 1,
                _ => near.0,
            })
        };
        Range {
            after: if self.one_in(2) { Position(0) } else { self.position(history.len()) },
            up_to: self.one_in(3).then(|| self.position(history.len())),
            since: self.one_in(4).then(|| moment(self)),
            until: self.one_in(4).then(|| moment(self)),
            backwards: self.one_in(2),
        }
    }
}

/// The meaning of a query and a range, implemented again without the code that reads.
pub(super) fn is_meant(query: &Query, range: Range, event: &Recorded) -> bool {
    let metadata: Metadata = serde_json::from_str(&event.metadata).expect("the suite writes no other");
    let alone = (query.stream_id.is_empty() || query.stream_id == event.stream_id)
        && query.event_type.as_ref().is_none_or(|wanted| *wanted == event.event_type)
        && query.aggregate_id.as_ref().is_none_or(|wanted| *wanted == event.aggregate_id)
        && query.tags.iter().all(|wanted| event.tags.contains(wanted))
        && query.event_id.is_none_or(|wanted| wanted == event.event_id)
        && (query.correlation_id.is_none() || query.correlation_id == metadata.correlation_id)
        && (query.causation_id.is_none() || query.causation_id == metadata.causation_id);
    let in_range = event.position > range.after
        && range.up_to.is_none_or(|up_to| event.position <= up_to)
        && range.since.is_none_or(|since| event.created_at >= since)
        && range.until.is_none_or(|until| event.created_at <= until);
    in_range && (alone || query.or.iter().any(|other| is_meant(other, range, event)))
}

/// The events of a history that a query and a range select, in the order of the range.
pub(super) fn meant(query: &Query, range: Range, history: &[Recorded]) -> Vec<Recorded> {
    let mut meant: Vec<_> = history.iter().filter(|event| is_meant(query, range, event)).cloned().collect();
    if range.backwards {
        meant.reverse();
    }
    meant
}

fn with_json(event: &NewEvent, data: &str, metadata: &str) -> NewEvent {
    event.clone().with_json(data.to_owned(), metadata.to_owned()).expect("it is JSON")
}
