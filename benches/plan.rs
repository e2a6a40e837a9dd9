//! Parsing texts, deciding commands, folding events.

use std::fmt::Write;
use std::hint::black_box;

use crewlog_mq::Handler;
use crewlog_planner::event::{Command, Event, PlannerConfig, TaskEvent};
use crewlog_planner::parse::{ReadOptions, read};
use crewlog_planner::planner::Planner;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

/// A numbered list of commands, each with a remark, as people write them.
fn list(n_tasks: usize) -> String {
    let mut text = String::from("# A long plan\n\n");
    for n in 1..=n_tasks {
        let _ = writeln!(text, "{n}. Run `cargo test -p crate-{n}` (retry 1)\n   - keep what src/part_{n}.rs says");
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

/// Boxes with ids and written dependencies.
fn boxes(n_tasks: usize) -> String {
    let mut text = String::from("# Tasks\n\n");
    for n in 1..=n_tasks {
        let _ = write!(text, "- [ ] T{n}: Add the endpoint for part {n} of the orders");
        let after = if n > 2 { format!(" (depends on T{}, T{})", n - 1, n / 2) } else { String::new() };
        let _ = writeln!(text, "{after}");
    }
    text
}

/// Phases of ids, `[P]`, stories and paths, as generators of task lists write them.
fn phases(n_tasks: usize) -> String {
    let mut text = String::from("# Tasks: Photo albums\n\n**Input**: Design documents from `/specs/001-albums/`\n");
    for n in 1..=n_tasks {
        let story = n / 50 + 1;
        if n % 50 == 1 {
            let _ =
                writeln!(text, "\n## Phase {story}: User story {story}\n\n**Goal**: People can sort photos by day\n");
        }
        let beside = if n % 3 == 0 { " [P]" } else { "" };
        let _ = writeln!(text, "- [ ] T{n:05}{beside} [US{story}] Create the model in src/models/album_{n}.py");
    }
    text
}

/// One line of this many bytes.
fn line(n_bytes: usize) -> String {
    let words = "the quick brown fox jumps over a lazy dog and sees (some) \"thing\" else ";
    format!("- {}", words.repeat(n_bytes / words.len()))
}

fn parsing(criterion: &mut Criterion) {
    let texts = [
        ("list of 10,000 tasks", list(10_000)),
        ("boxes of 10,000 tasks", boxes(10_000)),
        ("phases of 10,000 tasks", phases(10_000)),
        ("prose of 2,000 sentences", prose(2_000)),
        ("one line of 10 MB", line(10_000_000)),
    ];
    let mut group = criterion.benchmark_group("parse");
    group.sample_size(20);
    for (name, text) in texts {
        group.throughput(Throughput::BytesDecimal(text.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| read(black_box(&text), ReadOptions::default()).expect("it is a plan"));
        });
    }
    group.finish();
}

fn initialize(n_tasks: usize) -> Command {
    Command::of_text(list(n_tasks), PlannerConfig::default(), true).expect("it is a plan")
}

/// The reports that complete a plan of this many tasks, and all its events.
fn course(n_tasks: u64) -> (Planner, Vec<Command>, Vec<Event>) {
    let mut planner = Planner::default();
    let mut events = planner.process(initialize(usize::try_from(n_tasks).expect("it is small"))).expect("it is a plan");
    let begun = planner.clone();
    let reports = (1..=n_tasks).map(|n| Command::HandleExecutorEvent {
        task: crewlog_planner::plan::TaskId(n),
        event: TaskEvent::TaskCompleted { attempt: 1, result: "test result: ok".into(), epoch: 1, run: None },
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
