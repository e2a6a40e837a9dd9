//! The cost of planning by agents: a plan of each type from words, checked and compiled, alone and all four in
//! parallel.

use std::hint::black_box;

use crewlog_executors::agents::Agents;
use crewlog_planner::agents::plan_words;
use crewlog_planner::agents::registry::ToolRegistry;
use crewlog_planner::parse::{ReadOptions, read};
use crewlog_planner::protocol::AgentType;
use criterion::{Criterion, criterion_group, criterion_main};

/// The number of steps in the words.
const N_STEPS: usize = 100;

fn words() -> String {
    let steps = (1..=N_STEPS).map(|n| format!("{n}. Look for where part {n} is kept in `src/part_{n}.rs`\n"));
    format!("# Find all parts\n\n{}", steps.collect::<String>())
}

fn planning(criterion: &mut Criterion) {
    let (words, registry) = (words(), ToolRegistry::coding());
    let mut group = criterion.benchmark_group("planning");
    group.bench_function("parser alone", |bench| {
        bench.iter(|| read(black_box(&words), ReadOptions::default()).map(|parsed| parsed.tasks.len()));
    });
    for agent in AgentType::ALL {
        group.bench_function(agent.as_str(), |bench| {
            bench.iter(|| {
                let plan = plan_words(agent, black_box(&words), &registry);
                plan.and_then(|plan| plan.compile(agent, &registry)).map(|proposal| proposal.tasks.len())
            });
        });
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().build().expect("a runtime can be made");
    let mut n_rounds = 0_u64;
    let mut told = || {
        // Words that have not been planned before.
        n_rounds += 1;
        AgentType::ALL.map(|agent| (agent, format!("{words}\n> round {n_rounds}\n"))).to_vec()
    };
    group.bench_function("all four, one after another", |bench| {
        let agents = Agents::new(registry.clone());
        bench.iter(|| {
            runtime.block_on(async {
                for (agent, words) in told() {
                    black_box(agents.plan(agent, &words, "").await.is_ok());
                }
            });
        });
    });
    group.bench_function("all four, side by side", |bench| {
        let agents = Agents::new(registry.clone());
        bench.iter(|| {
            let told = told();
            let plans = told.iter().map(|(agent, words)| agents.plan(*agent, words, ""));
            let plans = runtime.block_on(futures::future::join_all(plans));
            black_box(plans.len())
        });
    });
    group.finish();
}

criterion_group!(benches, planning);
criterion_main!(benches);
