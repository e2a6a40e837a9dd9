//! The prompts that a worker passes to agents: rendered from the log, recorded by their hash, and reproducible.

use std::time::Duration;

use crewlog_executors::agent::{Agent, Program, PromptBy};
use crewlog_executors::history::History;
use crewlog_executors::prompts::{PromptError, Rendered, prompt_of};
use crewlog_executors::roster::Roster;
use crewlog_executors::run::GRACE;
use crewlog_executors::shell::Shell;
use crewlog_executors::worker::{InterruptedTask, Scope, Worker};
use crewlog_mq::{EventStore, Query, Range};
use crewlog_planner::claim::{PromptDigest, TaskEvent};
use crewlog_planner::event::PlannerConfig;
use crewlog_planner::plan::{NodeKind, TaskId, TaskPlan};
use crewlog_planner::verify::Verifier;
use futures::TryStreamExt;
use tokio::sync::watch;

use super::rig::{PLAN, Rig, step, supervisor};
use crewlog_stage::backends::logs;

/// A plan of three consecutive tasks, completed by an agent that prints its prompt.
async fn ran(store: EventStore) -> Rig {
    let think = |id: u64| TaskPlan {
        command: None,
        kind: NodeKind::Processing,
        ..step(id, "", &(1..id).rev().take(1).collect::<Vec<_>>())
    };
    let config = PlannerConfig { system_prompt: "Be brief. ".repeat(40), ..PlannerConfig::default() };
    let rig = Rig::on(store, (1..=3).map(think).collect(), config).await;
    let agent = Agent {
        name: "parrot".into(),
        kinds: Vec::new(),
        program: Program::Shell("cat".into()),
        prompt: PromptBy::Stdin,
        env: Vec::new(),
        timeout: None,
        jobs: 1,
        rate_limited: Vec::new(),
        for_person: Vec::new(),
        budget_per_day: None,
        passes: None,
        grace: None,
        resume: None,
        consent: None,
    };
    let shell = Shell { supervisor: supervisor(), env: Vec::new(), timeout: Duration::from_secs(60), grace: GRACE };
    let roster = Roster {
        shell,
        takes_commands: true,
        agents: vec![agent],
        registry: None,
        knows_tools: true,
        trust: None,
        places: None,
        limits: None,
        leaves_limits: false,
        outputs: None,
    };
    let (stop, is_stopped) = watch::channel(false);
    let worker = Worker::new(rig.store.clone(), roster, rig.life(), 1, InterruptedTask::Report);
    let worker = tokio::spawn(worker.run(Scope::Plan(PLAN.to_owned()), is_stopped));
    let host = rig.host();
    rig.end().await;
    stop.send_replace(true);
    worker.await.unwrap().unwrap();
    host.abort();
    rig
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_passes_and_records_the_prompt_that_the_log_reproduces() {
    for (store, _on) in logs().await {
        let rig = ran(store).await;
        for task in 1..=3 {
            let events = rig.task_events(task).await;
            let [TaskEvent::TaskClaimed { prompt: Some(recorded), .. }, .., TaskEvent::TaskCompleted { result, .. }] =
                &events[..]
            else {
                panic!("{events:?}")
            };
            let prompt = prompt_of(&rig.store, PLAN, TaskId(task), Some(recorded), Range::default()).await.unwrap();
            assert_eq!(result.trim(), prompt.text.trim(), "task {task}");
            assert_eq!(*recorded, prompt.digest());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatch_carries_no_prompt_and_replays() {
    for (store, _on) in logs().await {
        let rig = ran(store).await;
        let records = History::of(&rig.store, PLAN).await.unwrap().records(&rig.store, &Query::all(), Range::default());
        let records = records.try_collect::<Vec<_>>().await.unwrap();
        let dispatches = records.iter().filter(|recorded| recorded.event_type == "TaskDispatched");
        assert!(dispatches.clone().count() == 3 && dispatches.clone().all(|one| !one.data.contains("Be brief.")));
        let mut verifier = Verifier::default();
        for append in records.chunk_by(|one, other| one.append_start == other.append_start) {
            // The rig planned it.
            match append[0].event_type.as_str() {
                "TasksPlanned" => verifier.trust(append).unwrap(),
                _later => drop(verifier.verify(append).unwrap()),
            }
        }
    }
}

#[tokio::test]
async fn a_command_has_no_prompt() {
    let rig = Rig::with_plan(vec![step(1, "true", &[])], PlannerConfig::default()).await;
    let refused = prompt_of(&rig.store, PLAN, TaskId(1), None, Range::default()).await;
    assert!(matches!(refused, Err(PromptError::NotForAgents { .. })), "{refused:?}");
}

#[test]
fn a_prompt_digest_is_its_sha_256_and_length_in_characters() {
    let sha256 = "6ae09b93b879dcea013a862186616db68c6fd0aa90a324de604676604ccf4dc7".to_owned();
    let rendered = Rendered { text: "aé中".to_owned(), n_events: 7, cut_short: None };
    assert_eq!(rendered.digest(), PromptDigest { n_chars: 3, sha256, n_events: 7, cut_short: None });
}
