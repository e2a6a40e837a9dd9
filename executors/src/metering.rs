//! Reads the run of an agent from its output while it runs: its session and its usage.

use std::convert::Infallible;
use std::time::Duration;

use crewlog_planner::event::Usage;
use serde_json::Value;

use crate::run::{Sink, SoFar};
use crate::runs::OutputTo;
use crate::usage::AgentRun;

/// A longer line is no event.
const LINE_BYTES_MAX: usize = 8 << 20;
/// How often the output of a run is read.
const METER_INTERVAL: Duration = Duration::from_secs(1);

/// The usage of a run, as it was reported at its end and as it was read while it ran: of each amount the greater.
pub(crate) fn greater(reported: Usage, read: &Usage) -> Usage {
    Usage {
        input_tokens: reported.input_tokens.max(read.input_tokens),
        output_tokens: reported.output_tokens.max(read.output_tokens),
        cost_micros: reported.cost_micros.max(read.cost_micros),
        ..reported
    }
}

/// Reads a run from the file of its output while it runs.
pub(crate) struct Meter {
    file: OutputTo,
    n_read: u64,
    rest: Vec<u8>,
    run: AgentRun,
}

impl Meter {
    pub(crate) fn new(file: OutputTo) -> Self {
        Self { file, n_read: 0, rest: Vec::new(), run: AgentRun::default() }
    }

    /// Reads on, and passes the news on. Returns the usage so far, as far as the program reports it in lines of JSON.
    pub(crate) fn read(&mut self, sink: &Sink) -> Usage {
        // There is no file before the first output.
        if let Ok(kept) = self.file.kept()
            && kept.copy(self.n_read, &mut self.rest).is_ok()
        {
            self.n_read = kept.n_bytes;
            if self.rest.len() > LINE_BYTES_MAX && !self.rest.contains(&b'\n') {
                self.rest.clear();
            }
            let n_whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let rest = self.rest.split_off(n_whole);
            for line in std::mem::replace(&mut self.rest, rest).split(|byte| *byte == b'\n') {
                let event = serde_json::from_slice::<Value>(line).ok();
                event.filter(Value::is_object).into_iter().for_each(|event| self.run.take(&event));
            }
        }
        let used = self.run.so_far();
        let now = SoFar { session: self.run.session.clone(), used, has_ended: self.run.has_ended() };
        sink.send_if_modified(|known| {
            let is_news = *known != now;
            *known = now;
            is_news
        });
        used
    }
}

/// Reads the output of a run again and again, as long as it is polled.
pub(crate) async fn metered(meter: &mut Option<Meter>, sink: &Sink) -> Infallible {
    let Some(meter) = meter else { return std::future::pending().await };
    loop {
        tokio::time::sleep(METER_INTERVAL).await;
        meter.read(sink);
    }
}
