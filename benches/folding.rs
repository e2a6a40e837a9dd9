//! Reading one aggregate of a million events and folding it into a struct: a handler of the store, and bare SQLite.

use crewlog_mq::{EventStore, Handler};

use crate::raw::{Data, Raw};
use crate::workload::{Sample, append_to, metadata};

pub const N_FOLDED: u64 = 1_000_000;

/// The fold of the events of one aggregate.
#[derive(Debug, Clone, Default)]
pub struct Folded {
    pub position: i64,
    pub n_events: u64,
    pub sum: u64,
    pub longest_note: usize,
    pub last_unit: String,
}

impl Folded {
    pub fn take(&mut self, Sample::Measured { n, unit, note }: &Sample) {
        self.n_events += 1;
        self.sum += n;
        self.longest_note = self.longest_note.max(note.len());
        self.last_unit.clone_from(unit);
    }
}

impl Handler for Folded {
    type Command = ();
    type Event = Sample;
    type Error = std::convert::Infallible;

    fn decide(&self, (): ()) -> Result<Vec<Sample>, Self::Error> {
        Ok(Vec::new())
    }

    fn apply(&mut self, event: &Sample) {
        self.take(event);
    }
}

/// A log of this many events, all of one aggregate.
pub async fn fill_one(store: &EventStore, n_events: u64) {
    let metadata = metadata();
    for first in (0..n_events).step_by(1000) {
        let append = append_to(0, first, 1000, &metadata);
        store.append(append).await.expect("the append is taken");
    }
}

impl Raw {
    /// Folds the events of one aggregate in order, using only position, type, version and data.
    pub fn fold(&self, aggregate: u64) -> Folded {
        let sql = "SELECT position, event_type, event_version, data FROM events WHERE aggregate = ?1 ORDER BY sequence";
        let mut statement = self.connection.prepare_cached(sql).expect("it is SQL");
        let mut rows = statement.query([aggregate as i64 + 1]).expect("it runs");
        let mut folded = Folded::default();
        while let Some(row) = rows.next().expect("it reads") {
            let text = |index| row.get_ref(index).expect("it is a column").as_str().expect("it is a text");
            folded.position = row.get(0).expect("it is a position");
            assert_eq!((text(1), text(2)), ("Measured", "1.0"));
            let Data { n, unit, note } = serde_json::from_str(text(3)).expect("it is a sample");
            folded.take(&Sample::Measured { n, unit, note });
        }
        folded
    }
}
