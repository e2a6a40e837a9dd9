//! Workers on a log that goes back to an older state, as by a fail-over to a standby that lagged behind.

use crewlog_executors::claiming::claim_of;
use crewlog_mq::{Cause, EventStore};
use crewlog_planner::claim::TaskCommand;
use crewlog_planner::event::plan_tag;
use crewlog_planner::plan::TaskId;
use crewlog_stage::cluster::{Database, execute};
use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::Value;

use super::scene::Scene;
use super::server::on_server;
use super::work::{gates, leave, let_go, waits};

/// A log, and one older state of it.
struct Log {
    scene: Scene,
    server: Option<Database>,
}

impl Log {
    fn all() -> [Self; 2] {
        let database = Database::new();
        [Self { scene: Scene::new(), server: None }, Self { scene: on_server(&database), server: Some(database) }]
    }

    fn keep(&self) {
        match &self.server {
            None => copy(&self.scene, ".crewlog/log.db", "older.db"),
            Some(database) => on_tables(database, |schema, table| {
                format!(
                    "CREATE SCHEMA IF NOT EXISTS {schema}_older; CREATE TABLE {schema}_older.{table} AS TABLE {schema}.{table};"
                )
            }),
        }
    }

    /// Ends the claim of the only task of a plan, as others do whose proof it is that the worker is dead.
    fn lose_claim(&self, plan: &str) {
        let url = match &self.server {
            None => format!("sqlite:{}", self.scene.path(".crewlog/log.db").display()),
            Some(database) => database.url(),
        };
        runtime().block_on(async {
            let store = EventStore::open(&url).await.expect("it opens");
            let mut claim = claim_of(&store, plan, TaskId(1), vec![plan_tag(plan)]);
            let lost = TaskCommand::FireTimer { epoch: 1, now: store.now(), is_dead: true };
            claim.execute(lost, &Cause::request()).await.expect("it is lost");
            store.close().await;
        });
    }

    fn bring_back(&self) {
        match &self.server {
            None => copy(&self.scene, "older.db", ".crewlog/log.db"),
            Some(database) => on_tables(database, |schema, table| {
                format!("TRUNCATE {schema}.{table}; INSERT INTO {schema}.{table} TABLE {schema}_older.{table};")
            }),
        }
    }
}

fn copy(scene: &Scene, from: &str, to: &str) {
    let from = Connection::open(scene.path(from)).expect("it is a database");
    let mut to = Connection::open(scene.path(to)).expect("a database can be made");
    to.busy_timeout(std::time::Duration::from_secs(5)).expect("it can be set");
    let backup = rusqlite::backup::Backup::new(&from, &mut to).expect("it begins");
    backup.run_to_completion(i32::MAX, std::time::Duration::from_millis(1), None).expect("it is done");
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("it starts")
}

/// Carries out statements on all tables, in one transaction.
fn on_tables(database: &Database, sql: impl Fn(&str, &str) -> String) {
    runtime().block_on(async {
        let mut connection = database.connect().await;
        let schema = &database.schema;
        let tables = format!("SELECT tablename::text FROM pg_tables WHERE schemaname = '{schema}'");
        let tables: Vec<String> =
            sqlx::query_scalar(sqlx::AssertSqlSafe(tables)).fetch_all(&mut connection).await.expect("they are listed");
        let all = tables.iter().map(|table| sql(schema, table)).collect::<String>();
        let is_deadlock =
            |error: &sqlx::Error| error.as_database_error().is_some_and(|it| it.code().as_deref() == Some("40P01"));
        // A reader takes the same locks one after the other: the server ends one of the two.
        while let Err(error) =
            sqlx::raw_sql(sqlx::AssertSqlSafe(format!("BEGIN;{all}COMMIT"))).execute(&mut connection).await
        {
            assert!(is_deadlock(&error), "{error}");
            execute(&mut connection, "ROLLBACK").await;
        }
    });
}

fn state_of(scene: &Scene, plan: &str, task: usize) -> Value {
    scene.show(plan)["tasks"][task - 1]["state"].clone()
}

/// Tasks that were done, that ran, and that may run twice; a step that was not reached runs for the first time.
#[test]
fn after_a_fail_over_a_worker_starts_over_and_runs_nothing_twice_unasked() {
    for log in Log::all() {
        let scene = &log.scene;
        let [first, mut second] = gates(scene);
        drop(first);
        let plan = leave(
            scene,
            &format!("1. Run `echo 1 >> side`\n2. Run `{}`\n3. Run `echo $CREWLOG_EPOCH >> last`\n", waits(2)),
        );
        let safe = leave(scene, "1. Run `echo $CREWLOG_EPOCH >> safe` (rerun: safe)\n");
        log.keep();
        if log.server.is_none() {
            // Others append before the worker sees it: the log is longer than it was, and positions tell nothing.
            let set = |n| format!("parallelism={n}");
            (1..30).for_each(|n| _ = scene.run(&["--store", "older.db", "plan", "set", &plan, &set(n)]).expect(0));
        }
        let mut worker = scene.start(&["work"]);
        second.wait();
        worker.stderr.until(&format!("{safe} has ended"));
        log.bring_back();
        worker.stderr.until("the log went back from position ");
        worker.stderr.until("starting over: ");
        second.wait_until_free();
        let (asked, ended) = ("It is unknown whether task 1 did its work", format!("{safe} has ended"));
        worker.stderr.until_it(|text| text.contains(asked) && text.contains(&ended));
        assert_eq!(scene.read("safe"), "1\n3\n", "it is marked, and its third claim tells that it may have run before");
        assert_eq!(state_of(scene, &plan, 1), "waiting_for_you");
        scene.run(&["answer", &format!("{plan}/q1"), "done"]).expect(0);
        worker.stderr.until("It is unknown whether task 2 did its work");
        scene.run(&["answer", &format!("{plan}/q2"), "done"]).expect(0);
        worker.stderr.until(&format!("{plan} has ended"));
        assert_eq!((scene.read("side"), scene.read("last")), ("1\n2\n".to_owned(), "1\n".to_owned()));
        let lost = scene.events_of_type("LogWentBack").remove(0);
        assert_eq!(lost["n_tasks"], 3, "{lost}");
        worker.signal(Signal::TERM);
        worker.finish().expect(130);
    }
}

/// The worker stood still while its run ended and somebody else took the task for lost.
#[test]
fn a_report_that_comes_too_late_is_kept_and_shown_beside_the_question() {
    for log in Log::all() {
        let scene = &log.scene;
        let [mut gate] = gates(scene);
        let plan = leave(scene, &format!("1. Run `{}`\n", waits(1)));
        let mut followed = scene.start(&["events", "--follow", "--type", "TaskReportedLate"]);
        let worker = scene.start(&["work"]);
        gate.wait();
        worker.signal(Signal::STOP);
        log.lose_claim(&plan);
        scene.run(&["work", "--until-idle"]).expect(5);
        let_go(scene, 1);
        gate.wait_until_free();
        worker.signal(Signal::CONT);
        followed.stdout.until("TaskReportedLate");
        let said = "reported too late that it completed: done 1";
        for words in [&["inbox"] as &[&str], &["show", &plan], &["inbox", "-o", "json"]] {
            let shown = scene.run(words).expect(0).stdout;
            assert!(shown.contains("It is unknown whether task 1 did its work") && shown.contains(said), "{shown}");
        }
        assert_eq!(state_of(scene, &plan, 1), "waiting_for_you", "it decides nothing");
        worker.signal(Signal::TERM);
        worker.finish().expect(130);
        followed.kill();
    }
}

/// It began after they ran, and has seen none of their events. The worker that ran them is gone with its machine.
#[test]
fn a_worker_interrupts_the_tasks_that_were_in_the_plans_when_it_began() {
    for log in Log::all() {
        let scene = &log.scene;
        let [first, mut second] = gates(scene);
        drop(first);
        scene.write("crewlog.toml", "[executors.other]\ncommand = ['true']\n");
        let plan = leave(scene, &format!("1. Run `echo 1 >> side`\n2. Run `{}`\n", waits(2)));
        log.keep();
        let gone = scene.start(&["work"]);
        second.wait();
        gone.killed();
        let mut followed = scene.start(&["events", "--follow", "--type", "TimerFired"]);
        let mut worker = scene.start(&["work", "--only", "other"]);
        // It has read the plans, and takes no step itself.
        followed.stdout.until("TimerFired");
        log.bring_back();
        worker.stderr.until("2 tasks may have run and are interrupted");
        scene.run(&["work", "--until-idle"]).expect(5).says(&["It is unknown whether task 1 did its work"]);
        scene.run(&["answer", &format!("{plan}/q1"), "done"]).expect(0);
        scene.run(&["work", "--until-idle"]).expect(5).says(&["It is unknown whether task 2 did its work"]);
        assert_eq!(scene.read("side"), "1\n2\n");
        worker.signal(Signal::TERM);
        worker.finish().expect(130);
        followed.kill();
    }
}

/// `resume` ends with the log that it began on. The inbox names all tasks that another one would run again.
#[test]
fn after_a_fail_over_the_inbox_names_each_task_that_resuming_runs_again() {
    for log in Log::all() {
        let scene = &log.scene;
        let [mut gate] = gates(scene);
        let plan = leave(scene, &format!("1. Run `echo 1 >> side`\n2. Run `{}`\n3. Run `true`\n", waits(1)));
        log.keep();
        let resumed = scene.start(&["resume", &plan]);
        gate.wait();
        log.bring_back();
        gate.wait_until_free();
        resumed.finish().expect(1);
        let inbox = scene.run(&["inbox"]).expect(0).stdout;
        let named = "its run ended during task 1; resuming runs it again, and 2, of which a run is lost too";
        assert!(inbox.contains(named), "{inbox}");
    }
}
