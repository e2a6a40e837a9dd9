//! The figures of all runs as a table in Markdown: ours next to each peer, with the ratio.

use std::collections::HashMap;
use std::time::Duration;

use crate::measure::Run;
use crate::subject::{Subject, Workload};

/// The runs of each subject by workload, or the reason why there are none.
#[derive(Default)]
pub struct Table {
    runs: HashMap<(u8, u8), Vec<Run>>,
    reasons: HashMap<(u8, u8), String>,
    n_replayed: HashMap<u8, u64>,
}

fn key(subject: Subject, workload: Workload) -> (u8, u8) {
    (subject as u8, workload as u8)
}

impl Table {
    pub fn add(&mut self, subject: Subject, workload: Workload, run: Run) {
        self.runs.entry(key(subject, workload)).or_default().push(run);
    }

    /// Only the first reason is kept.
    pub fn fail(&mut self, subject: Subject, workload: Workload, reason: &str) {
        self.reasons.entry(key(subject, workload)).or_insert(reason.replace('\n', " "));
    }

    pub fn has_failed(&self, subject: Subject, workload: Workload) -> bool {
        self.reasons.contains_key(&key(subject, workload))
    }

    pub fn replayed(&mut self, subject: Subject, n_events: u64) {
        self.n_replayed.insert(subject as u8, n_events);
    }

    pub fn print(&self) {
        let reasons = self.distinct_reasons();
        println!("| workload | ours | | peer | | ratio ours / peer | p50 / p99 ours | p50 / p99 peer |");
        println!("|---|---|--:|---|--:|--:|---|---|");
        for workload in Workload::ALL {
            for peer in Subject::ALL.into_iter().filter(|subject| subject.can(workload)) {
                if let Some(ours) = peer.beside() {
                    self.print_row(workload, ours, peer, &reasons);
                }
            }
        }
        if !reasons.is_empty() {
            println!();
        }
        for (index, (subject, reason)) in reasons.iter().enumerate() {
            println!("({}) {} was not measured: {reason}", index + 1, subject.name());
        }
    }

    /// Each once, in the order of the rows.
    fn distinct_reasons(&self) -> Vec<(Subject, &str)> {
        let mut distinct = Vec::new();
        for workload in Workload::ALL {
            for subject in Subject::ALL {
                if let Some(reason) = self.reasons.get(&key(subject, workload))
                    && !distinct.contains(&(subject, reason.as_str()))
                {
                    distinct.push((subject, reason.as_str()));
                }
            }
        }
        distinct
    }

    fn print_row(&self, workload: Workload, ours: Subject, peer: Subject, reasons: &[(Subject, &str)]) {
        let figures = [ours, peer].map(|subject| self.figure(subject, workload));
        let ratio = match &figures {
            [Some(ours), Some(peer)] if *peer > 10.0 * ours => format!("{:.3}", ours / peer),
            [Some(ours), Some(peer)] if *peer > 0.0 => format!("{:.2}", ours / peer),
            [Some(_), Some(_)] | [None, _] | [_, None] => "-".to_owned(),
        };
        let [figure_of_ours, figure_of_peer] = [ours, peer].map(|subject| {
            if let Some(reason) = self.reasons.get(&key(subject, workload)) {
                let index = reasons.iter().position(|known| *known == (subject, reason)).unwrap_or_default();
                return format!("not measured ({})", index + 1);
            }
            self.figure(subject, workload).map_or("-".into(), |figure| shown(workload, figure))
        });
        let latencies = [ours, peer].map(|subject| self.latencies(subject, workload));
        println!(
            "| {} | {} | {figure_of_ours} | {} | {figure_of_peer} | {ratio} | {} | {} |",
            workload.name(),
            self.named(ours, workload),
            self.named(peer, workload),
            latencies[0],
            latencies[1]
        );
    }

    /// The median of its runs: a rate, or for deliveries microseconds.
    fn figure(&self, subject: Subject, workload: Workload) -> Option<f64> {
        if self.has_failed(subject, workload) {
            return None;
        }
        let of_run = |run: &Run| match workload {
            Workload::Delivery => run.p50.map(|p50| p50.as_secs_f64() * 1e6),
            Workload::OneWriter
            | Workload::ManyWriters
            | Workload::Batches
            | Workload::OneAggregate
            | Workload::Replay
            | Workload::FanOut
            | Workload::FanOutInFlight => Some(run.rate),
        };
        median(self.runs.get(&key(subject, workload))?.iter().filter_map(of_run).collect())
    }

    fn latencies(&self, subject: Subject, workload: Workload) -> String {
        let runs = self.runs.get(&key(subject, workload)).map_or(&[][..], Vec::as_slice);
        let of = |pick: fn(&Run) -> Option<Duration>| {
            let all = runs.iter().filter_map(pick).map(|latency| latency.as_secs_f64()).collect();
            median(all).map(Duration::from_secs_f64)
        };
        match (of(|run| run.p50), of(|run| run.p99)) {
            (Some(p50), Some(p99)) => format!("{p50:.1?} / {p99:.1?}"),
            (None, _) | (_, None) => "-".into(),
        }
    }

    fn named(&self, subject: Subject, workload: Workload) -> String {
        match self.n_replayed.get(&(subject as u8)) {
            Some(n_events) if workload == Workload::Replay => format!("{} ({n_events} events)", subject.name()),
            Some(_) | None => subject.name().to_owned(),
        }
    }
}

fn shown(workload: Workload, figure: f64) -> String {
    match workload {
        Workload::Delivery => format!("{figure:.0} µs"),
        Workload::OneWriter
        | Workload::ManyWriters
        | Workload::Batches
        | Workload::OneAggregate
        | Workload::Replay
        | Workload::FanOut
        | Workload::FanOutInFlight => thousands(figure.round() as u64),
    }
}

/// 12345 is `12,345`.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The upper one of two.
pub fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied()
}
