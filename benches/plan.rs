//! Parsing texts, deciding commands, folding events.

use std::fmt::Write;
use std::hint::black_box;

use crewlog_mq::Handler;
use crewlog_planner::event::{Command, Event, ExecutorEvent, PlannerConfig};
use crewlog_planner::parse::{ParseOptions, parse};
use crewlog_planner::planner::Planner;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

/// A numbered list of commands, each with a remark, as people write them.
fn list(n_tasks: usize) -> String {
    let mut text = String::from("# A long plan\n\n");
    for n in 1..=n_tasks {
        let _ = writeln!(text, "{n}. Run `cargo test -p crate-{n}` and keep what src/part_{n}.rs says (retry 1)");
    }
    text
}

/// Sentences with connectors, constraints and links.
fn prose(n_sentences: usize) -> String {
    let mut text = String::new();
    for n in 0..n_sentences {
        let _ = write!(
            text,
            "Read https://example.com/spec-{n}.pdf, then write unit tests for part {n}. Do not change its interface. "
        );
    }
    text
}

fn parsing(criterion: &mut Criterion) {
    let texts = [("list of 10,000 tasks", list(10_000)), ("prose of 2,000 sentences", prose(2_000))];
    let mut group = criterion.benchmark_group("parse");
    for (name, text) in texts {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| parse(black_box(&text), ParseOptions::default()).expect("it is a plan"));
        });
    }
    group.finish();
}

fn initialize(n_tasks: usize) -> Command {
    Command::Initialize {
        user_input: list(n_tasks),
        attachments: Vec::new(),
        config: PlannerConfig::default(),
        relax_order: true,
    }
}

/// The reports that bring a plan of this many tasks to its end, and the events of the whole.
fn course(n_tasks: u64) -> (Planner, Vec<Command>, Vec<Event>) {
    let mut planner = Planner::new();
    let mut events = planner.process(initialize(usize::try_from(n_tasks).expect("it is small"))).expect("it is a plan");
    let begun = planner.clone();
    let reports = (1..=n_tasks).map(|n| {
        Command::HandleExecutorEvent(ExecutorEvent::TaskCompleted {
            node_id: crewlog_planner::plan::TaskId(n),
            attempt: 1,
            result: "test result: ok".into(),
        })
    });
    let reports = reports.collect::<Vec<_>>();
    for report in &reports {
        events.extend(planner.process(report.clone()).expect("it runs"));
    }
    (begun, reports, events)
}

fn deciding(criterion: &mut Criterion) {
    let (begun, reports, events) = course(100);
    let mut group = criterion.benchmark_group("planner, 100 tasks");
    group.throughput(Throughput::Elements(reports.len() as u64));
    group.bench_function("process", |bencher| {
        bencher.iter_batched(
            || (begun.clone(), reports.clone()),
            |(mut planner, reports)| {
                for report in reports {
                    black_box(planner.process(report).expect("it runs"));
                }
                planner
            },
            BatchSize::SmallInput,
        );
    });
    group.throughput(Throughput::Elements(events.len() as u64));
    group.bench_function("fold", |bencher| bencher.iter(|| Planner::fold(black_box(&events))));
    group.finish();
}

criterion_group!(benches, parsing, deciding);
criterion_main!(benches);
