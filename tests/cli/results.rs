//! The report of a task: stored in the log once, and shown everywhere.

use rusqlite::Connection;

use super::scene::Scene;

const MARK: &str = "a line that no other text of the log has, as nobody would write the same twice by chance";

/// How many events in the database contain the text.
fn n_stored(scene: &Scene, log: &str) -> i64 {
    let log = Connection::open(scene.path(log)).expect("it opens");
    let sql = "SELECT count(*) FROM events WHERE data LIKE '%' || ?1 || '%'";
    log.query_row(sql, [MARK], |row| row.get(0)).expect("it counts")
}

#[test]
fn a_result_and_an_error_are_stored_once_and_shown_everywhere() {
    for (exit, field, status) in [(0, "result", "Completed"), (3, "error", "Failed")] {
        let scene = Scene::new();
        scene.write("say.sh", format!("echo '{MARK}'; exit {exit}"));
        let (plan, ran) = scene.plan("1. Run `sh say.sh`\n2. Run `echo $CREWLOG_PLAN`\n");
        ran.expect(if exit == 0 { 0 } else { 100 });
        let shown = scene.show(&plan);
        assert_eq!(shown["tasks"][0]["status"], status);
        assert!(shown["tasks"][0][field].as_str().is_some_and(|text| text.contains(MARK)), "{shown:#}");
        assert_eq!(n_stored(&scene, ".crewlog/log.db"), 1, "{status}");
        for event in scene.events_of_type("TaskStatusUpdated").iter().filter(|event| event["data"]["task_id"] == 1) {
            assert!(event["data"][field].as_str().is_some_and(|text| text.contains(MARK)), "{event:#}");
        }
        scene.run(&["replay", &plan, "--verify"]).expect(0);
        scene.run(&["export", "--to", "log.jsonl"]).expect(0);
        scene.run(&["--store", "copy.db", "import", "log.jsonl"]).expect(0);
        assert_eq!(n_stored(&scene, "copy.db"), 1, "{status}");
        let copied = scene.run(&["--store", "copy.db", "show", &plan, "-o", "json"]).expect(0).json();
        assert_eq!(copied["tasks"], shown["tasks"]);
    }
}
