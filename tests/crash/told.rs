//! The append that carries a dispatch and, apart from it, what its agent is told: the process dies right before and right
//! after its commit, and a fork is cut at it. Each dispatch is told exactly once, and nothing is told apart from a dispatch.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;

use crewlog_mq::{Position, Query, Range, Recorded};
use crewlog_planner::event::{STREAM, TOLD_STREAM, unpaired};
use futures::TryStreamExt;

use super::{Scene, Value, at_every_position, nothing_is_left, read};
use crate::cli::scene::Running;

/// Its agent does nothing but say whether it was told what all agents are.
const AGENT: &str = "case $(cat) in *'Be brief.'*) echo told ;; *) exit 9 ;; esac\n";
const TEXT: &str = "1. Paint the door (rerun: safe)\n2. Paint the wall (rerun: safe) (depends on 1)\n";
/// Beside the plan there are processes that watch it: by how many events a run may be shorter than another.
const SHORTER_MAX: i64 = 3;

fn scene() -> Scene {
    let scene = Scene::new();
    scene.write("painter.sh", AGENT);
    scene.write("crewlog.toml", "[executors.painter]\ncommand = [\"sh\", \"painter.sh\"]\n");
    scene.write("plan.md", TEXT);
    scene
}

/// So long that it stands apart.
fn system_prompt() -> String {
    "Be brief. ".repeat(200)
}

fn run(scene: &Scene) -> String {
    let ran = scene.run(&["run", "plan.md", "--yes", "-q", "--system-prompt", &system_prompt()]);
    ran.expect(0).stdout.trim().to_owned()
}

fn records(scene: &Scene) -> Vec<Recorded> {
    read(scene, async |store| store.records(&Query::all(), Range::default()).try_collect().await.expect("it is read"))
}

/// Each dispatch, with the first and the last position of its append. Every one of them is told apart, once.
fn told(scene: &Scene, when: &str) -> Vec<(i64, i64)> {
    let records = records(scene);
    let mut appends = Vec::new();
    for append in records.chunk_by(|one, other| one.append_start == other.append_start) {
        assert_eq!(unpaired(append), [], "{when}");
        let n_of = |stream: &str, event_type: &str| {
            append.iter().filter(|one| one.stream_id == stream && one.event_type == event_type).count()
        };
        let (n_dispatched, n_told) = (n_of(STREAM, "TaskDispatched"), n_of(TOLD_STREAM, "TaskTold"));
        assert_eq!(n_dispatched, n_told, "{when}");
        let Position(end) = append[append.len() - 1].position;
        appends.extend((0..n_told).map(|_| (append[0].position.0, end)));
    }
    let told = records.iter().filter(|one| one.stream_id == TOLD_STREAM);
    let told = told.map(|one| {
        let data: Value = serde_json::from_str(&one.data).expect("it is JSON");
        (one.aggregate_id.clone(), data["attempt"].as_u64())
    });
    assert_eq!(told.collect::<BTreeSet<_>>().len(), appends.len(), "{when}: no dispatch is told twice");
    appends
}

fn ends_told(scene: &Scene, plan: &str, when: &str) {
    let shown = scene.show(plan);
    assert_eq!(shown["status"], "Completed", "{when}");
    let results = shown["tasks"].as_array().expect("tasks").iter().map(|task| &task["result"]);
    assert_eq!(results.collect::<Vec<_>>(), ["told", "told"], "{when}");
    scene.run(&["replay", "--verify", "-q"]).expect(0);
    scene.run(&["db", "check"]).expect(0);
}

#[test]
fn a_kill_at_a_dispatch_leaves_it_with_what_its_agent_is_told_or_neither() {
    let reference = scene();
    let plan = run(&reference);
    assert_eq!(told(&reference, "without a kill").len(), 2, "one for each task");
    ends_told(&reference, &plan, "without a kill");
    let head = i64::try_from(records(&reference).len()).expect("a short log");
    let n_deaths = at_every_position(1..=head, survives);
    assert!(n_deaths >= 2 * (head - SHORTER_MAX), "{n_deaths} deaths at {head} events");
}

/// Kills a run, and goes on with it. True when it died.
fn survives(kill: &str) -> bool {
    let scene = scene();
    let prompt = system_prompt();
    let words = ["run", "plan.md", "--yes", "-q", "--system-prompt", &prompt];
    let ran = Running::start(scene.crewlog(&words).env("CREWLOG_KILL", kill)).finish();
    let is_dead = ran.status.signal() == Some(9);
    assert!(is_dead || ran.status.success(), "{kill}: {ran:?}");
    let has_log = scene.path(".crewlog/log.db").exists();
    let before = if has_log { told(&scene, kill).len() } else { 0 };
    let listed = scene.run(&["ls", "-o", "json"]);
    let known =
        listed.status.success().then(|| listed.json()["plans"][0]["plan"].as_str().map(str::to_owned)).flatten();
    let plan = match known {
        Some(plan) => {
            scene.run(&["resume", &plan, "-q"]).expect(0);
            plan
        }
        None => run(&scene),
    };
    let after = told(&scene, kill).len();
    assert!((before.max(2)..=before + 2).contains(&after), "{kill}: {before} dispatches were told, and then {after}");
    ends_told(&scene, &plan, kill);
    nothing_is_left(&scene, &plan);
    is_dead
}

#[test]
fn a_fork_cut_at_a_dispatch_has_it_with_what_its_agent_is_told_or_neither() {
    let scene = scene();
    let plan = run(&scene);
    let is_end = |one: &&Recorded| one.event_type == "TaskStatusUpdated";
    let ended = records(&scene).iter().filter(is_end).map(|one| one.position.0).collect::<Vec<_>>();
    for (start, end) in told(&scene, "before a fork") {
        for at in (start - 1).max(1)..=end {
            let (when, at_text) = (format!("cut at {at}, of an append from {start} to {end}"), at.to_string());
            let words = ["fork", &plan, "--at", &at_text, "--yes", "--run", "-q"];
            // A cut within an append is one before it, and before the first there is nothing to go on from.
            let whole = if at == end { end } else { start - 1 };
            if whole < 1 {
                scene.run(&words).expect(4);
                continue;
            }
            let n_before = told(&scene, &when).len();
            let fork = scene.run(&words).expect(0).stdout;
            let n_told = told(&scene, &when).len() - n_before;
            let n_ended = ended.iter().filter(|position| **position <= whole).count();
            assert_eq!(n_told, 2 - n_ended, "{when}: what had not ended is dispatched anew, and told anew");
            ends_told(&scene, fork.trim(), &when);
        }
    }
}
