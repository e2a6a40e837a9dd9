//! Kills the real binary at every event of a plan and resumes it.

#[cfg(feature = "faults")]
mod nested;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crewlog_executors::crew::reacting;
use crewlog_mq::{EventStore, Query, Range, Recorded};
use crewlog_planner::crew::conflicts::{ConflictEvent, Conflicts};
use crewlog_planner::crew::statistics::Statistics;
use crewlog_planner::crew::{Emitted, Reactor};
use rustix::process::Signal;
use serde_json::Value;
use uuid::Uuid;

use crate::cli::scene::{Gate, Scene, named_pipe};

/// Lease duration in seconds, without a renewal; a resume on the same host must not wait for it.
const LEASE_SECONDS: u64 = 180;

/// How often the test checks whether the conflict and statistics hosts have caught up.
const LOOKS_MAX: usize = 500;

#[test]
fn a_killed_run_leaves_no_child_and_can_be_resumed_at_once() {
    let scene = Scene::new();
    let mut gate = Gate::new(&scene, "gate");
    let first = format!("echo 1 >> side; {}; exec sleep 1000", Gate::pass("gate"));
    scene.write(
        "plan.md",
        format!("1. Run `echo 0 >> side`\n2. Run `if test -e side2; then echo again; else touch side2; {first}; fi`\n"),
    );
    let running = scene.start(&["run", "plan.md", "--yes"]);
    gate.wait();
    let began = Instant::now();
    running.signal(Signal::KILL);
    let ran = running.finish();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ran.status), Some(9));
    let plan = ran.stdout.trim();
    gate.wait_until_free();
    assert_eq!(scene.show(plan)["status"], "interrupted", "its worker is dead");
    scene.run(&["resume", plan]).expect(0).says(&["AGAIN"]);
    assert!(began.elapsed().as_secs() < LEASE_SECONDS, "the lease was not waited for");
    let claims = scene.events_of_type("TaskClaimed");
    let epochs = claims.iter().map(|claim| (claim["attempt"].as_u64(), claim["epoch"].as_u64()));
    assert_eq!(epochs.collect::<Vec<_>>(), [(Some(1), Some(1)), (Some(1), Some(1)), (Some(1), Some(2))]);
    assert_eq!(scene.read("side"), "0\n1\n", "what was finished is not run again");
    assert_eq!(scene.show(plan)["tasks"][1]["result"], "again");
    no_process_remains(&scene, plan);
}

#[test]
fn a_killed_supervisor_leaves_a_question_and_an_intact_log() {
    let scene = Scene::new();
    let mut gate = Gate::new(&scene, "gate");
    let lost = format!("{}; kill -9 $PPID; exec sleep 1000", Gate::pass("gate"));
    let [asked, again] = ["side", "again"]
        .map(|mark| format!("Run `if test -e {mark}; then echo did it; else touch {mark}; {lost}; fi`"));
    scene.write("plan.md", &asked);
    let running = scene.start(&["run", "plan.md", "--yes"]);
    gate.wait();
    let ran = running.finish().expect(5);
    gate.wait_until_free();
    let plan = ran.stdout.trim();
    ran.says(&["It is unknown whether task", "its supervisor was lost"]);
    no_process_remains(&scene, plan);
    scene.run(&["answer", &format!("{plan}/q1"), "retry"]).expect(0);
    scene.run(&["resume", plan]).expect(0);
    assert_eq!(scene.show(plan)["tasks"][0]["result"], "did it", "an answer leads on");
    let mut gate = Gate::new(&scene, "gate2");
    scene.write("plan.md", again.replace(">gate", ">gate2") + " (rerun: safe)");
    let running = scene.start(&["run", "plan.md", "--yes"]);
    gate.wait();
    running.finish().expect(0);
    gate.wait_until_free();
}

/// The first of two workers holds the leader locks. It dies with `kill -9`, and the other takes over.
#[test]
fn another_process_takes_over_conflicts_and_statistics_from_a_killed_worker() {
    let scene = Scene::new();
    let mut gates = ["one", "two"].map(|name| {
        named_pipe(&scene, &format!("go-{name}"));
        Gate::new(&scene, name)
    });
    let wait = |name: &str| format!("{}; read line < go-{name}; echo {name} >> notes.txt", Gate::pass(name));
    scene.write("crewlog.toml", format!("[executors.mender]\ncommand = '{}'\n", wait("two")));
    let mut first = scene.start(&["work"]);
    first.stderr.until("open now");
    scene.write("plan.md", format!("- [P] Run `{}`\n- [P] Mend notes.txt\n", wait("one")));
    scene.run(&["run", "plan.md", "--yes", "--detach"]).expect(0);
    first.stderr.until("CONFLICT");
    let mut other = scene.start(&["work"]);
    other.stderr.until("open now");
    gates.iter_mut().for_each(Gate::wait);
    first.killed();
    // The commands died with their worker, and the other asks whether they did their work.
    other.stderr.until("ASK");
    other.stderr.until("ASK");
    let plan =
        scene.run(&["ls", "-o", "json"]).expect(0).json()["plans"][0]["plan"].as_str().expect("an id").to_owned();
    for question in ["q1", "q2"] {
        scene.run(&["answer", &format!("{plan}/{question}"), "done"]).expect(0);
    }
    other.stderr.until("2 completed");
    // It takes the leader lock of the dead worker at its next attempt.
    let is_level = || {
        said::<Conflicts>(&scene) == derived_events::<Conflicts>(&scene)
            && said::<Statistics>(&scene) == derived_events::<Statistics>(&scene)
    };
    let _ = (0..LOOKS_MAX).find(|_| is_level());
    other.signal(Signal::TERM);
    other.finish().expect(130);
    let conflicts = said::<Conflicts>(&scene);
    assert_eq!(conflicts, derived_events::<Conflicts>(&scene));
    let last = conflicts.last().map(|(_cause, event)| event);
    assert!(matches!(last, Some(ConflictEvent::ConflictResolved { .. })), "the other says when it is over: {last:?}");
    assert_eq!(said::<Statistics>(&scene), derived_events::<Statistics>(&scene));
    assert_eq!(scene.read_if_any("notes.txt"), None, "nothing ran twice, or to its end");
}

/// No process of the plan runs, and every worker's liveness lock is gone or lockable.
fn no_process_remains(scene: &Scene, plan: &str) {
    let mark = format!("CREWLOG_PLAN={plan}");
    for entry in std::fs::read_dir("/proc").expect("Linux has it").flatten() {
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let is_child = environ.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes());
        assert!(!is_child, "{} of {plan} is left", entry.path().display());
    }
    for entry in std::fs::read_dir(workers(scene)).expect("it has been made") {
        let lock = entry.expect("it can be listed").path();
        assert!(is_free(&lock), "{} is held", lock.display());
    }
}

/// The folder of the locks of workers: next to a log in a file, else below the folder of states.
fn workers(scene: &Scene) -> PathBuf {
    let Some(states) = scene.env("XDG_STATE_HOME") else { return scene.path(".crewlog/log.db-workers") };
    let folders = std::fs::read_dir(Path::new(states).join("crewlog")).expect("a worker has run");
    let mut folders = folders.map(|entry| entry.expect("it can be listed").path());
    folders.find(|folder| folder.to_string_lossy().ends_with("-workers")).expect("a worker has run")
}

fn is_free(path: &Path) -> bool {
    match std::fs::File::open(path) {
        Ok(file) => file.try_lock().is_ok(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// The log as it was when a process died.
struct Wreck {
    events: Vec<Value>,
    side: Vec<String>,
}

impl Wreck {
    fn of(scene: &Scene) -> Self {
        Self { events: scene.events_if_any().unwrap_or_default(), side: side(scene) }
    }

    /// The runs that have ended, from the side file: task and attempt.
    fn ended(&self) -> Vec<String> {
        let is_end = |event: &&Value| matches!(event["event_type"].as_str(), Some("TaskCompleted" | "TaskFailed"));
        let name = |event: &Value| {
            let task = event["aggregate_id"].as_str().and_then(|id| id.rsplit_once('/')).expect("a task's aggregate").1;
            format!("{task} {}", event["data"]["attempt"])
        };
        self.events.iter().filter(is_end).map(name).collect()
    }
}

/// The events that a process appended: cause and event, in log order.
fn said<R: Reactor>(scene: &Scene) -> Vec<(Uuid, R::Event)> {
    read(scene, async |store| {
        let envelopes = store.load::<R::Event>(&Query::stream(R::STREAM), Range::default()).await.expect("it is there");
        envelopes.into_iter().map(|said| (said.metadata.causation_id.expect("a cause"), said.event)).collect()
    })
}

/// The events that a new host of the process derives from the log.
fn derived_events<R: Reactor>(scene: &Scene) -> Vec<(Uuid, R::Event)> {
    read(scene, async |store| {
        let (head, mut follows) = (store.head().await.expect("it is there"), Vec::new());
        let tell = |cause: &Recorded, said: Emitted<R::Event>| follows.push((cause.event_id, said.event));
        reacting::fold::<R>(&store, head, tell).await.expect("it can be read");
        follows
    })
}

fn read<T>(scene: &Scene, read: impl AsyncFnOnce(EventStore) -> T) -> T {
    let file = scene.path(".crewlog/log.db");
    let store = scene.env("CREWLOG_STORE").unwrap_or_else(|| file.to_str().expect("it is text"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async { read(EventStore::open(store).await.expect("it opens")).await })
}

/// The runs of commands, one `task attempt` for each.
fn side(scene: &Scene) -> Vec<String> {
    scene.read_if_any("side").unwrap_or_default().lines().map(str::to_owned).collect()
}

fn count(lines: &[String]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for line in lines {
        *counts.entry(line.as_str()).or_default() += 1;
    }
    counts
}

/// All of these positions in `./test crash`; else every fourth, with another beginning in each run. A failure names its position.
fn sampled(positions: RangeInclusive<i64>) -> Vec<i64> {
    let step = if crewlog_stage::tries_all() { 1 } else { 4 };
    positions.skip(std::process::id() as usize % step).step_by(step).collect()
}

/// Kills right before and right after the commit of each position, and returns the number of deaths.
fn at_each(positions: &[i64], dies: impl Fn(&str) -> bool + Sync) -> usize {
    /// Concurrent cases: they mostly wait.
    const N_THREADS: usize = 6;
    let (next, n_deaths) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|threads| {
        for _ in 0..N_THREADS {
            threads.spawn(|| {
                loop {
                    let Some(position) = positions.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                    for kill in [format!("before:{position}"), format!("after:{position}")] {
                        n_deaths.fetch_add(usize::from(dies(&kill)), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    n_deaths.into_inner()
}

#[cfg(feature = "faults")]
mod sweep {
    //! Every process dies by itself right before or right after the commit of a given position.

    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;
    use crate::cli::scene::{Ran, Running};
    use crate::cli::server::on_server;
    use crewlog_stage::cluster::Database;

    const TEXT: &str = "\
# Sweep
1. Run `echo \"1 $CREWLOG_ATTEMPT\" >> side; echo built`
2. In parallel:
   - Run `echo \"2 $CREWLOG_ATTEMPT\" >> side; echo linted`
   - Run `echo \"3 $CREWLOG_ATTEMPT\" >> side; echo tested`
3. Which colour is it?
4. Run `echo \"5 $CREWLOG_ATTEMPT\" >> side; echo \"$CREWLOG_ANSWER\"; exit 3` (retry 1)
5. Run `echo \"6 $CREWLOG_ATTEMPT\" >> side`
";
    #[test]
    fn a_plan_killed_at_any_event_ends_like_an_uninterrupted_one() {
        sweep(|| (Scene::new(), None), Iterator::collect);
    }

    #[test]
    fn a_plan_on_a_server_killed_at_any_event_ends_like_an_uninterrupted_one() {
        let begin = || {
            let database = Database::new();
            (on_server(&database), Some(database))
        };
        sweep(begin, sampled);
    }

    /// Each scene is separate; the resources it needs live as long.
    fn sweep(
        begin: impl Fn() -> (Scene, Option<Database>) + Sync,
        choose: impl FnOnce(RangeInclusive<i64>) -> Vec<i64>,
    ) {
        let (reference, _database) = begin();
        reference.write("plan.md", TEXT);
        let plan = reference.run(&["run", "plan.md", "--yes", "-q"]).expect(5).stdout.trim().to_owned();
        reference.run(&["answer", &format!("{plan}/q1"), "blue"]).expect(0);
        reference.run(&["resume", &plan, "-q"]).expect(100);
        let expected = shape(reference.show(&plan));
        assert_eq!(expected["tasks"].as_array().map(Vec::len), Some(6), "{expected}");
        assert_eq!(side(&reference).len(), 5, "four commands, one of them twice");
        let head = i64::try_from(reference.events().len()).expect("a short log");

        let positions = choose(1..=head);
        let n_deaths = at_each(&positions, |kill| {
            let (scene, _database) = begin();
            survives(&scene, kill, &expected)
        });
        assert_eq!(n_deaths, 2 * positions.len(), "each position of an uninterrupted run was died at");
    }

    /// Runs a plan with a kill in it, resumes it, and compares. True when something died.
    fn survives(scene: &Scene, kill: &str, expected: &Value) -> bool {
        scene.write("plan.md", TEXT);
        let is_dead = until_death(scene, kill);
        let wreck = Wreck::of(scene);
        let plan = recover(scene);
        let events = scene.events();
        for (index, event) in events.iter().enumerate() {
            assert_eq!(event["position"], index + 1, "{kill}: the log has a gap");
        }
        assert_eq!(events[..wreck.events.len()], wreck.events[..], "{kill}: something acknowledged was lost");
        let (before, after) = (count(&wreck.side), side(scene));
        let after = count(&after);
        for run in wreck.ended() {
            assert_eq!(after.get(run.as_str()), before.get(run.as_str()), "{kill}: {run} was run again");
        }
        for run in ["1 1", "2 1", "3 1", "5 1", "5 2"] {
            assert!(after.contains_key(run), "{kill}: {run} was never run");
        }
        assert!(!after.contains_key("6 1"), "{kill}: what depends on a failed task was run");
        assert_eq!(&shape(scene.show(&plan)), expected, "{kill}");
        let set = scene.events_of_type("TimerSet");
        let mut fired = scene.events_of_type("TimerFired");
        // Those of a plan; the leases of killed workers end by an event of this name too.
        fired.retain(|fired| fired["timer"].is_object());
        assert_eq!(fired, set, "{kill}: the retry was due once, when the log says");
        assert_eq!(set.len(), 1, "{kill}: there is one retry");
        scene.run(&["work", "--until-idle", "-q"]).expect(0);
        let (said, follows) = (said::<Statistics>(scene), derived_events::<Statistics>(scene));
        assert_eq!(said, follows, "{kill}: each figure is in the log once, in the order of its causes");
        no_process_remains(scene, &plan);
        is_dead
    }

    /// Run, answer and resume, each with an order to kill itself, until one dies. False if none did.
    fn until_death(scene: &Scene, kill: &str) -> bool {
        let killed = |words: &[&str]| -> Result<Ran, ()> {
            let ran = Running::start(Command::env(&mut scene.crewlog(words), "CREWLOG_KILL", kill)).finish();
            match ran.status.signal() {
                Some(9) => Err(()),
                Some(signal) => panic!("{kill}: ended by signal {signal}: {}", ran.stderr),
                None => Ok(ran),
            }
        };
        let steps = || {
            let plan = killed(&["run", "plan.md", "--yes", "-q"])?.expect(5).stdout.trim().to_owned();
            killed(&["answer", &format!("{plan}/q1"), "blue"])?.expect(0);
            killed(&["resume", &plan, "-q"])?.expect(100);
            Ok(())
        };
        steps().is_err_and(|()| true)
    }

    /// Runs the rest of the plan to its end, and returns the plan.
    fn recover(scene: &Scene) -> String {
        let plans = scene.run(&["ls", "-o", "json"]);
        let known =
            plans.status.success().then(|| plans.json()["plans"][0]["plan"].as_str().map(str::to_owned)).flatten();
        let (plan, mut ran) = match known {
            Some(plan) => {
                let ran = scene.run(&["resume", &plan, "-q"]);
                (plan, ran)
            }
            None => {
                assert!(side(scene).is_empty(), "nothing runs before its plan is in the log");
                let ran = scene.run(&["run", "plan.md", "--yes", "-q"]);
                (ran.stdout.trim().to_owned(), ran)
            }
        };
        if ran.status.code() == Some(5) {
            scene.run(&["answer", &format!("{plan}/q1"), "blue"]).expect(0);
            ran = scene.run(&["resume", &plan, "-q"]);
        }
        ran.expect(100);
        plan
    }

    /// The facts that must not depend on time, executor or number of attempts.
    fn shape(mut shown: Value) -> Value {
        let object = shown.as_object_mut().expect("a plan");
        object.remove("plan");
        object.remove("at");
        for task in object["tasks"].as_array_mut().expect("tasks") {
            let task = task.as_object_mut().expect("a task");
            for key in ["attempts", "started_at", "ended_at"] {
                task.remove(key);
            }
        }
        shown
    }
}

#[cfg(feature = "faults")]
#[test]
fn a_kill_during_a_fork_leaves_a_complete_fork_or_none_and_an_unchanged_parent() {
    let scene = Scene::new();
    let (plan, ran) = scene.plan("1. Run `echo built`\n2. Run `test -e fixed`\n3. Run `echo shipped`\n");
    ran.expect(100);
    scene.write("fixed", "");
    let before = scene.show(&plan);
    // The consent to what the fork runs comes first.
    for (point, at, n_forks) in [("before", 1, 0), ("after", 1, 0), ("before", 2, 0), ("after", 2, 1)] {
        let head = scene.events().len();
        let order = format!("{point}:{}", head + at);
        let mut dying = scene.crewlog(&["fork", &plan, "--at", "failure"]);
        let ran = crate::cli::scene::Running::start(dying.env("CREWLOG_KILL", order)).finish();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ran.status), Some(9), "{ran:?}");
        let shown = scene.show(&plan);
        assert_eq!(shown["forks"].as_array().map_or(0, Vec::len), n_forks);
        assert_eq!(shown["tasks"], before["tasks"]);
        scene.run(&["db", "check"]).expect(0);
    }
    let fork = scene.show(&plan)["forks"][0]["plan"].as_str().expect("text").to_owned();
    scene.run(&["resume", &fork]).expect(0);
    scene.run(&["replay", "--verify"]).expect(0);
    assert_eq!(scene.show(&plan)["tasks"], before["tasks"]);
}
