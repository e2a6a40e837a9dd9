//! Of several racing executors one wins; a lease expires; a dead holder blocks nobody.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use crewlog_executors::claiming::claim_of;
use crewlog_executors::crew::human;
use crewlog_executors::liveness::{Life, LivenessLock};
use crewlog_executors::worker::InterruptedTask;
use crewlog_mq::{Append, Cause, CellChange, EventStore, ExecuteError, Query, Range, Sqlite, Timestamp};
use crewlog_planner::claim::{Claim, Ending, Executor, LEASE, TaskCommand, TaskError, TaskEvent, TaskProgress};
use crewlog_planner::event::{Event, FailureClass, PlannerConfig, Usage};
use crewlog_planner::plan::{FailurePolicy, TaskId};
use crewlog_planner::view::PlanView;

use super::rig::{
    PLAN, Rig, Scripted, blocking, executor, first_line, new_log, program, rest, soon, step, tags, task_query,
};

const TASK: TaskId = TaskId(1);

/// Claims the first attempt of the task for a worker, and starts it.
async fn claim(store: &EventStore, worker: &str) -> Result<u64, TaskError> {
    claim_as(store, worker, false).await
}

/// Claims the first attempt of the task for a worker, perhaps only to report an end.
async fn claim_as(store: &EventStore, worker: &str, only_reports: bool) -> Result<u64, TaskError> {
    let mut claim = claim_of(store, PLAN, TASK, tags());
    let command = TaskCommand::Claim(Claim {
        attempt: 1,
        executor: executor(worker),
        now: store.now(),
        only_reports,
        ..Claim::default()
    });
    order(&mut claim, command).await.map(|()| claim.handler().epoch)
}

async fn order(
    claim: &mut crewlog_mq::Runner<crewlog_planner::claim::TaskLease>,
    command: TaskCommand,
) -> Result<(), TaskError> {
    match claim.execute(command, &Cause::request()).await {
        Ok(_) => Ok(()),
        Err(ExecuteError::Refused(refusal)) => Err(refusal),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn an_agent_holds_a_task_no_longer_than_its_attempt() {
    let store = EventStore::in_memory().await.unwrap();
    let mut claim = claim_of(&store, PLAN, TASK, tags());
    let of = |attempt, name: &str| TaskCommand::ClaimForAgent { attempt, executor: executor(name), now: store.now() };
    order(&mut claim, of(1, "ann")).await.unwrap();
    assert!(matches!(order(&mut claim, of(1, "bob")).await, Err(TaskError::Held { .. })));
    order(&mut claim, of(2, "bob")).await.unwrap();
    assert!(matches!(order(&mut claim, of(2, "ann")).await, Err(TaskError::Held { .. })));
}

/// Lets 16 workers claim one task, spread over the stores, and returns the number of winners.
async fn race(stores: &[EventStore]) -> usize {
    let racers = (0..16).map(|n| {
        let store = stores[n % stores.len()].clone();
        tokio::spawn(async move { claim(&store, &n.to_string()).await })
    });
    let racers = racers.collect::<Vec<_>>();
    let mut n_won = 0;
    for racer in racers {
        match soon(racer).await.unwrap() {
            Ok(epoch) => {
                assert_eq!(epoch, 1);
                n_won += 1;
            }
            Err(TaskError::Held { epoch, .. }) => assert_eq!(epoch, 1),
            Err(other) => panic!("{other}"),
        }
    }
    n_won
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_sixteen_racing_executors_wins() {
    let in_memory = EventStore::in_memory().await.unwrap();
    assert_eq!(race(&[in_memory]).await, 1);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut stores = Vec::new();
    for _ in 0..4 {
        stores.push(EventStore::open(path.to_str().unwrap()).await.unwrap());
    }
    assert_eq!(race(&stores).await, 1, "four stores on one file");
    let events: Vec<TaskEvent> = stores[3].load_events(&task_query(1), None).await.unwrap();
    assert_eq!(events.len(), 1, "{events:?}");
}

/// The `cut_off` of each claim in the log.
async fn cut_off(store: &EventStore) -> Vec<bool> {
    let events: Vec<TaskEvent> = store.load_events(&task_query(1), None).await.unwrap();
    let claims = events.iter().filter_map(|event| match event {
        TaskEvent::TaskClaimed { cut_off, .. } => Some(*cut_off),
        _other => None,
    });
    claims.collect()
}

#[tokio::test]
async fn a_claim_says_whether_a_lost_holder_may_have_had_effects() {
    let clock = Scripted::default();
    let store = EventStore::on(Sqlite::in_memory(clock.options()).await.unwrap());
    let mut task = claim_of(&store, PLAN, TASK, tags());
    claim_as(&store, "never began", true).await.unwrap();
    clock.pass(LEASE);
    claim(&store, "began").await.unwrap();
    clock.pass(LEASE);
    claim_as(&store, "found it cut off and was lost too", true).await.unwrap();
    clock.pass(LEASE);
    claim(&store, "gave it back").await.unwrap();
    let released = Ending::Released { reason: "the worker was cut_off".into(), cut_off: false };
    order(&mut task, TaskCommand::End { epoch: 4, usage: Usage::default(), ending: released }).await.unwrap();
    claim(&store, "ran it again and was lost").await.unwrap();
    clock.pass(LEASE);
    claim(&store, "ended it").await.unwrap();
    let ended = Ending::Completed { result: String::new(), run: None };
    order(&mut task, TaskCommand::End { epoch: 6, usage: Usage::default(), ending: ended }).await.unwrap();
    let next =
        TaskCommand::Claim(Claim { attempt: 2, executor: executor("next"), now: store.now(), ..Claim::default() });
    order(&mut task, next).await.unwrap();
    assert_eq!(cut_off(&store).await, [false, false, true, true, true, true, false]);
}

#[tokio::test]
async fn a_released_task_counts_as_cut_off_if_it_was_running() {
    // A claim may start the task before its program is: nothing ran then.
    for (has_started, was_running) in [(true, true), (true, false), (false, true), (false, false)] {
        let store = EventStore::in_memory().await.unwrap();
        let mut task = claim_of(&store, PLAN, TASK, tags());
        claim_as(&store, "first", !has_started).await.unwrap();
        let released = Ending::Released { reason: "the worker was interrupted".into(), cut_off: was_running };
        order(&mut task, TaskCommand::End { epoch: 1, usage: Usage::default(), ending: released }).await.unwrap();
        claim(&store, "second").await.unwrap();
        assert_eq!(cut_off(&store).await, [false, has_started && was_running]);
    }
}

#[tokio::test]
async fn an_expired_lease_is_reclaimed_and_its_late_holder_refused() {
    let clock = Scripted::default();
    let store = EventStore::on(Sqlite::in_memory(clock.options()).await.unwrap());
    assert_eq!(claim(&store, "first").await, Ok(1));
    clock.pass(LEASE - Duration::from_micros(1));
    assert!(matches!(claim(&store, "second").await, Err(TaskError::Held { epoch: 1, .. })));

    clock.pass(Duration::from_micros(1));
    assert_eq!(claim(&store, "second").await, Ok(2));
    let mut late = claim_of(&store, PLAN, TASK, tags());
    let done = |epoch| TaskCommand::End {
        epoch,
        usage: Usage::default(),
        ending: Ending::Completed { result: "ok".into(), run: None },
    };
    let stale = Err(TaskError::StaleEpoch(1));
    assert_eq!(order(&mut late, done(1)).await, stale);
    let progress = TaskProgress::default();
    assert_eq!(order(&mut late, TaskCommand::Progress { epoch: 1, progress }).await, stale);
    assert_eq!(order(&mut late, done(2)).await, Ok(()));
    assert_eq!(order(&mut late, done(2)).await, Err(TaskError::StaleEpoch(2)), "it has ended");
    assert_eq!(claim(&store, "third").await, Err(TaskError::AttemptEnded(1)));
}

/// The task claimed by the worker of `holder`.
async fn claimed_by(rig: &Rig, holder: &LivenessLock, only_reports: bool) {
    let mut claim = claim_of(&rig.store, PLAN, TASK, tags());
    let command = TaskCommand::Claim(Claim {
        attempt: 1,
        executor: holder.executor("shell"),
        now: rig.store.now(),
        only_reports,
        ..Claim::default()
    });
    order(&mut claim, command).await.unwrap();
}

async fn report_done(rig: &Rig, life: &LivenessLock) -> Result<(), ExecuteError<TaskError>> {
    let mut claim = claim_of(&rig.store, PLAN, TASK, tags());
    let failed = Ending::Failed { error: "no".into(), class: FailureClass::Task, run: None };
    human::report(&mut claim, 1, &rig.store, life, failed).await
}

#[tokio::test]
async fn a_person_can_report_for_a_dead_worker_but_not_for_a_live_one() {
    let rig = Rig::new().await;
    let (holder, person) = (rig.life(), rig.life());
    claimed_by(&rig, &holder, true).await;
    let refused = report_done(&rig, &person).await;
    assert!(matches!(refused, Err(ExecuteError::Refused(TaskError::Held { .. }))), "{refused:?}");

    drop(holder);
    report_done(&rig, &person).await.unwrap();
    let epochs = rig.task_events(1).await.into_iter().filter_map(|event| match event {
        TaskEvent::TaskClaimed { epoch, .. } => Some(epoch),
        _other => None,
    });
    assert_eq!(epochs.collect::<Vec<_>>(), [1, 2]);
    let again = report_done(&rig, &person).await;
    assert!(matches!(again, Err(ExecuteError::Refused(TaskError::AttemptEnded(1)))), "{again:?}");
}

#[tokio::test]
async fn a_command_gets_its_lease_epoch() {
    for (had_begun, learnt) in [(false, "1"), (true, "2")] {
        let rig = Rig::with_plan(vec![step(TASK.0, "echo $CREWLOG_EPOCH", &[])], PlannerConfig::default()).await;
        if had_begun {
            claimed_by(&rig, &rig.life(), true).await;
        }
        let (host, worker) = (rig.host(), rig.worker(1));
        rig.end().await;
        worker.stop().await;
        host.abort();
        let last = rig.task_events(TASK.0).await.pop();
        let Some(TaskEvent::TaskCompleted { result, .. }) = last else { panic!("{last:?}") };
        assert_eq!(result, learnt);
    }
}

#[tokio::test]
async fn a_claim_whose_acknowledgement_was_lost_is_repeated() {
    let store = EventStore::in_memory().await.unwrap();
    assert_eq!(claim(&store, "one").await, Ok(1));
    assert_eq!(claim(&store, "one").await, Ok(1), "it holds the task already");
    assert!(matches!(claim(&store, "other").await, Err(TaskError::Held { epoch: 1, .. })));
    assert_eq!(cut_off(&store).await, [false], "one claim");
}

#[tokio::test]
async fn a_worker_that_holds_a_task_without_a_job_for_it_starts_the_task() {
    let rig = Rig::with_plan(vec![step(TASK.0, "echo $CREWLOG_EPOCH", &[])], PlannerConfig::default()).await;
    let life = rig.life();
    claimed_by(&rig, &life, true).await;
    let (host, worker) = (rig.host(), rig.worker_as(life));
    rig.end().await;
    worker.stop().await;
    host.abort();
    let last = rig.task_events(TASK.0).await.pop();
    assert!(matches!(&last, Some(TaskEvent::TaskCompleted { result, .. }) if result == "2"), "{last:?}");
}

#[tokio::test]
async fn a_stopped_plan_asks_about_a_task_whose_worker_died() {
    let config = PlannerConfig { on_failure: FailurePolicy::Stop, ..PlannerConfig::default() };
    let rig = Rig::with_plan(vec![step(1, "sleep 1000", &[]), step(2, "false", &[])], config).await;
    let dead = rig.life();
    claimed_by(&rig, &dead, false).await;
    drop(dead);
    let (executor, now) = (executor("somebody"), rig.store.now());
    let ending = Ending::Failed { error: "no".into(), class: FailureClass::Task, run: None };
    let report = TaskCommand::Report { claim: Claim { attempt: 1, executor, now, ..Claim::default() }, ending };
    order(&mut claim_of(&rig.store, PLAN, TaskId(2), tags()), report).await.unwrap();
    let host = rig.host();
    rig.until_plan(|event| matches!(event, Event::PlanStopped { .. })).await;
    let worker = rig.worker(1);
    rig.until_plan(|event| matches!(event, Event::ClarificationRequested { task_id: TASK, .. })).await;
    worker.stop().await;
    host.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_was_cut_off_runs_again_only_if_somebody_wants_that() {
    for interrupted in [InterruptedTask::Report, InterruptedTask::Rerun] {
        let rig = Rig::with_plan(vec![step(1, "touch ran", &[])], PlannerConfig::default()).await;
        let dead = rig.life();
        claimed_by(&rig, &dead, false).await;
        let lost = dead.executor("shell");
        drop(dead);
        let worker = rig.worker_after(interrupted);
        let is_end =
            |event: &TaskEvent| matches!(event, TaskEvent::TaskCompleted { .. } | TaskEvent::TaskFailed { .. });
        let end = rig.until(1, is_end).await.pop();
        worker.stop().await;
        let is_run = rig.path("ran").exists();
        match interrupted {
            InterruptedTask::Rerun => {
                assert!(is_run && matches!(end, Some(TaskEvent::TaskCompleted { .. })), "{end:?}");
            }
            InterruptedTask::Report => {
                let Some(TaskEvent::TaskFailed { class, error, .. }) = end else { panic!("{end:?}") };
                assert_eq!((class, is_run), (FailureClass::OutcomeUnknown, false));
                assert!(error.contains(&lost.to_string()), "{error}");
            }
        }
    }
}

#[test]
fn a_worker_is_dead_only_once_all_its_processes_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (LivenessLock::begin(folder.path()).unwrap(), LivenessLock::begin(folder.path()).unwrap());
    let gone = one.executor("shell");
    assert!(!other.is_dead(&gone), "it lives");
    assert!(!one.is_dead(&gone), "nobody is dead to itself");
    assert!(!other.is_dead(&executor("far away")), "of another host nothing is known");

    let supervisor = File::open(one.lock_path()).unwrap();
    supervisor.lock_shared().unwrap();
    drop(one);
    assert!(!other.is_dead(&gone), "a child of it lives");
    drop(supervisor);
    let elsewhere = Executor { host: format!("not-{}", gone.host), ..gone.clone() };
    assert_eq!(other.locks().life(&elsewhere), Life::Unknown, "its lock is of another host's folder of the same id");
    assert!(other.is_dead(&gone));
    assert!(other.is_dead(&gone), "and stays so");
}

#[test]
fn the_file_of_a_dead_worker_goes_after_an_hour_and_a_younger_one_may_be_about_to_be_locked() {
    let folder = tempfile::tempdir().unwrap();
    let aged = |name: &str, minutes: u64| {
        let path = folder.path().join(name);
        let made = SystemTime::now() - Duration::from_secs(60 * minutes);
        File::create(&path).unwrap().set_modified(made).unwrap();
        path
    };
    let (young, old, leader) = (aged("a.lock", 58), aged("b.lock", 62), aged("c.leader", 62));
    let held = aged("d.lock", 62);
    let holder = File::open(&held).unwrap();
    holder.lock_shared().unwrap();
    LivenessLock::begin(folder.path()).unwrap();
    let left = [&young, &old, &leader, &held].map(|path| path.exists());
    assert_eq!(left, [true, false, true, true]);
}

#[test]
fn a_killed_worker_is_dead_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (LivenessLock::begin(folder.path()).unwrap(), LivenessLock::begin(folder.path()).unwrap());
    let (gone, path) = (one.executor("shell"), one.lock_path());
    // Another process keeps the liveness lock, and so outlives the value here.
    let mut process = Command::new("flock")
        .args(["--shared", "--no-fork"])
        .arg(&path)
        .args(["sh", "-c", "echo held; exec cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "held\n");
    drop(one);
    assert!(!other.is_dead(&gone));
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(other.is_dead(&gone));
}

#[tokio::test]
async fn another_worker_finishes_the_tasks_of_a_killed_one_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let log = new_log(&folder);
    let rig = Rig { store: EventStore::open(&log).await.unwrap(), folder };
    let pipe = rig.pipe("pipe");
    let marker = rig.path("second");
    std::fs::write(
        rig.path("plan.md"),
        format!(
            "- Run `if test -e {second}; then echo finished; else touch {second}; echo up > {pipe}; sleep 1000; fi`\n",
            second = marker.display(),
            pipe = pipe.display()
        ),
    )
    .unwrap();
    let mut killed = Command::new(program())
        .arg("--store")
        .arg(&log)
        .args(["--yes", "--quiet", "run"])
        .arg(rig.path("plan.md"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert_eq!(blocking(move || std::fs::read_to_string(pipe).unwrap()).await, "up\n");
    killed.kill().unwrap();
    let mut plan = String::new();
    BufReader::new(killed.stdout.take().unwrap()).read_line(&mut plan).unwrap();
    killed.wait().unwrap();
    let mut second = tokio::process::Command::new(program());
    second.arg("--store").arg(&log).args(["resume", plan.trim()]);
    let second = soon(second.output()).await.unwrap();
    assert!(second.status.success(), "{}", String::from_utf8_lossy(&second.stderr));

    let query = crewlog_mq::Query::stream(crewlog_planner::claim::STREAM);
    let events: Vec<TaskEvent> = rig.store.load_events(&query, None).await.unwrap();
    let told = events.iter().map(|event| match event {
        TaskEvent::TaskClaimed { epoch, .. } => format!("claimed {epoch}"),
        TaskEvent::TaskCompleted { epoch, result, .. } => format!("completed {epoch}: {result}"),
        other => crewlog_mq::Event::event_type(other).to_owned(),
    });
    let expected = ["claimed 1", "TimerFired", "claimed 2", "completed 2: finished"];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_stopped_past_its_lease_loses_its_task_and_its_command_on_another_host_only() {
    stopped_past_its_lease(true).await;
    stopped_past_its_lease(false).await;
}

/// The folder with the locks of workers somewhere below another one.
fn workers_below(folder: &Path) -> Option<PathBuf> {
    let folders = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
    let is_it = |path: &Path| path.to_string_lossy().ends_with("workers");
    folders.into_iter().find_map(|path| if is_it(&path) { Some(path) } else { workers_below(&path) })
}

/// Log time moves past the lease, as the holder would find it after a long stop. A worker that sees the holder's lock
/// leaves the task to it; one that does not, as on another host, takes it.
async fn stopped_past_its_lease(is_seen: bool) {
    let folder = tempfile::tempdir().unwrap();
    let [pipe, second, end] = ["pipe", "second", "end"].map(|name| folder.path().join(name));
    let log = new_log(&folder);
    assert!(Command::new("mkfifo").args([&pipe, &end]).status().unwrap().success());
    let (second, written, ends) = (second.display(), pipe.display(), end.display());
    let command = format!(
        "test -e {second} || (touch {second}; exec 3> {written}; echo up >&3; read word < {ends}; echo on >&3); echo finished"
    );
    std::fs::write(folder.path().join("plan.md"), format!("- Run `{command}`\n")).unwrap();
    let mut stopped = tokio::process::Command::new(program());
    stopped.arg("--store").arg(&log).args(["--yes", "--quiet", "run"]).arg(folder.path().join("plan.md"));
    // Of a log on a server the locks are in the state folder.
    stopped.current_dir(folder.path()).env("XDG_STATE_HOME", folder.path());
    let mut stopped = stopped.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
    let (up, output) = first_line(pipe).await;
    assert_eq!(up, "up\n");
    let pid = stopped.id().unwrap().to_string();
    let signal = |name: &str| assert!(Command::new("kill").args([name, pid.as_str()]).status().unwrap().success());
    signal("-STOP");

    let store = EventStore::open(&log).await.unwrap();
    let (now, tasks) = (store.now(), Query::stream(crewlog_planner::claim::STREAM));
    let claimed = store.load::<TaskEvent>(&tasks, Range::default()).await.unwrap().swap_remove(0).event;
    let TaskEvent::TaskClaimed { executor: Executor { worker, host, .. }, .. } = claimed else { panic!("{claimed:?}") };
    // Its last sign of life.
    let sign = CellChange::set("worker", &format!("{worker}@{host}"), now.0.to_string());
    store.append(Append::default().cell(sign)).await.unwrap();
    let clock = Scripted::default();
    clock.pass(LEASE + Duration::from_micros(now.0.unsigned_abs()));
    let store = EventStore::open_with(&log, clock.options()).await.unwrap();
    // A plan of its own shows that the other worker is at work.
    let rig = Rig::on(store, vec![step(1, "true", &[])], PlannerConfig::default()).await;
    let workers = if is_seen { workers_below(folder.path()).expect("it has locks") } else { rig.path("workers") };
    let (host, worker) = (rig.host_all(), rig.worker_of_all(&workers));
    let (ended, n_ended) = (Query::stream(crewlog_planner::event::STREAM), Cell::new(0));
    let is_last = |event: &Event| {
        n_ended.set(n_ended.get() + usize::from(matches!(event, Event::PlanningCompleted { .. })));
        n_ended.get() == if is_seen { 1 } else { 2 }
    };
    rig.follow(&ended, is_last).await;
    signal("-CONT");
    if is_seen {
        blocking(move || std::fs::write(end, "end\n").unwrap()).await;
    }
    let goes_on = if is_seen { "on\n" } else { "" };
    assert_eq!(rest(output).await, goes_on, "the command is ended if another host has the task");
    assert!(soon(stopped.wait()).await.unwrap().success(), "the plan is completed");
    worker.stop().await;
    host.abort();

    let (plan, own) = (crewlog_planner::claim::STREAM, crewlog_planner::claim::aggregate_id(PLAN, TASK));
    let events = rig.store.load::<TaskEvent>(&Query::stream(plan), Range::default()).await.unwrap();
    let events: Vec<_> = events.into_iter().filter(|event| event.recorded.aggregate_id != own).collect();
    let events = events.iter().map(|envelope| &envelope.event);
    let events = events.map(|event| match event {
        TaskEvent::TaskClaimed { epoch, cut_off, .. } => format!("claimed {epoch}, cut off: {cut_off}"),
        TaskEvent::TaskCompleted { epoch, result, .. } => format!("completed {epoch}: {result}"),
        other => crewlog_mq::Event::event_type(other).to_owned(),
    });
    let expected = match is_seen {
        true => &["claimed 1, cut off: false", "completed 1: finished"][..],
        false => &["claimed 1, cut off: false", "TimerFired", "claimed 2, cut off: true", "completed 2: finished"],
    };
    assert_eq!(events.filter(|event| !event.is_empty()).collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn the_lost_executor_is_named_not_the_one_that_noticed() {
    let (now, late) = (Timestamp(0), Timestamp(0).plus(LEASE));
    let claim = |host: &str, now, dead_epoch| {
        let (executor, only_reports) = (Executor { host: host.into(), ..executor(host) }, host == "noticed");
        TaskCommand::Claim(Claim { attempt: 1, executor, now, dead_epoch, only_reports, prompt: None })
    };
    let fire = |now, is_dead| TaskCommand::FireTimer { epoch: 1, now, is_dead };
    // How the loss shows: the timers before the next claim, its time, and its proof.
    let losses = [
        (Some(fire(late, false)), late, None),
        (Some(fire(now, true)), now, None),
        (None, late, None),
        (None, now, Some(1)),
    ];
    for (timer, at, dead_epoch) in losses {
        let store = EventStore::in_memory().await.unwrap();
        let mut task = claim_of(&store, PLAN, TASK, tags());
        order(&mut task, claim("lost", now, None)).await.unwrap();
        if let Some(timer) = timer {
            order(&mut task, timer).await.unwrap();
        }
        order(&mut task, claim("noticed", at, dead_epoch)).await.unwrap();
        let ending = Ending::cut_short(&task.handler().interrupted.as_ref().unwrap().executor);
        let Ending::Failed { error, .. } = &ending else { panic!("{ending:?}") };
        assert_eq!(error, "its run by shell@lost was cut short");
        order(&mut task, TaskCommand::End { epoch: 2, usage: Usage::default(), ending }).await.unwrap();
        let mut view = PlanView::default();
        for recorded in store.read(&task_query(1), Range::default(), 10).await.unwrap().events {
            view.apply(&recorded).unwrap();
        }
        assert_eq!(view.times(TASK).executor().unwrap(), "shell@lost");
    }
}
