//! Servers of agents that are killed in the middle of a call: the log has each grant that was reported, and no lease is
//! granted twice.

use std::collections::BTreeSet;
use std::thread;

use crewlog_mq::{EventStore, Query, Range};
use crewlog_planner::crew::leases::{LeaseEvent, STREAM};
use futures::TryStreamExt;
use serde_json::json;

use super::judged::{TARGETS, below, judge};
use super::mcp::Client;
use crate::cli::scene::Scene;
use crate::executors::rig::new_log;

/// The number of kills of each agent's server.
const N_KILLS: usize = 5;

#[tokio::test]
async fn a_killed_server_loses_no_grant_and_grants_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let url = new_log(&folder);
    let scene = Scene::with_repository().with_env("CREWLOG_STORE", &url);
    let answered: Vec<(u64, String)> = thread::scope(|scope| {
        let agents = (1..=4_u64).map(|seed| {
            let scene = &scene;
            scope.spawn(move || work(scene, &format!("agent-{seed}"), seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
        });
        let agents: Vec<_> = agents.collect();
        agents.into_iter().flat_map(|agent| agent.join().unwrap()).collect()
    });
    assert!(answered.len() >= 10, "{} answers show little", answered.len());

    let store = EventStore::open(&url).await.unwrap();
    let log: Vec<_> = store.records(&Query::stream(STREAM), Range::default()).try_collect().await.unwrap();
    judge(&log, 0);
    let mut granted = BTreeSet::new();
    for recorded in &log {
        if let LeaseEvent::LeasesGranted { first, request, .. } = recorded.decode().unwrap() {
            granted.extend((first..).take(request.targets.len()).map(|lease| (lease, request.holder.agent.clone())));
        }
    }
    let lost: Vec<_> = answered.iter().filter(|answer| !granted.contains(*answer)).collect();
    assert!(lost.is_empty(), "{lost:?}");
}

/// The leases that an agent got while its server is killed repeatedly. Each request names two targets.
fn work(scene: &Scene, agent: &str, mut seed: u64) -> Vec<(u64, String)> {
    let mut answered = Vec::new();
    for _ in 0..N_KILLS {
        let mut server = Client::named(scene, agent);
        for _ in 0..2 + below(&mut seed, 6) {
            let paths = [(); 2].map(|()| TARGETS[below(&mut seed, TARGETS.len())].0);
            let given = server.call("reserve_paths", json!({ "paths": paths }));
            let leases = given["granted"].as_array().into_iter().flatten();
            answered.extend(leases.filter_map(|lease| Some((lease["lease_id"].as_u64()?, agent.to_owned()))));
            if below(&mut seed, 3) == 0 {
                server.call("release_paths", json!({}));
            }
        }
        server.ask("reserve_paths", json!({ "paths": [TARGETS[below(&mut seed, TARGETS.len())].0] }));
        server.kill();
    }
    answered
}
