//! Plans kept in sync with their files: boxes that are written, and changes that are adopted.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::json;

use super::scene::{Gate, Ran, Running, Scene, named_pipe};
use super::server::on_server;
use crewlog_stage::cluster::Database;

/// A plan without a worker, and its file.
pub struct Kept {
    pub scene: Scene,
    path: &'static str,
    pub plan: String,
}

impl Kept {
    pub fn new(text: &str) -> Self {
        Self::within(Scene::new(), "plan.md", text)
    }

    pub fn within(scene: Scene, path: &'static str, text: &str) -> Self {
        write(&scene, path, text);
        let plan = scene.run(&["run", path, "--yes", "--detach"]).expect(0).stdout.trim().to_owned();
        Self { scene, path, plan }
    }

    pub fn sync(&self) -> Ran {
        self.run(&["plan", "sync", &self.plan, "--yes"])
    }

    #[track_caller]
    fn syncs(&self, said: &str) {
        assert_eq!(self.sync().expect(0).stdout, said);
    }

    #[track_caller]
    fn takes(&self, text: &str, said: &str) {
        self.write(text);
        self.syncs(said);
    }

    #[track_caller]
    fn writes(&self, text: &str) {
        self.sync().expect(0);
        self.is(text);
    }

    #[track_caller]
    fn is(&self, text: &str) {
        assert_eq!(self.read(), text);
    }

    fn done(&self, tasks: &[&str]) {
        tasks.iter().for_each(|task| _ = self.run(&["task", "done", &format!("{}/{task}", self.plan)]).expect(0));
    }

    pub fn run(&self, words: &[&str]) -> Ran {
        self.scene.run(words)
    }

    fn write(&self, text: impl AsRef<[u8]>) {
        self.scene.write(self.path, text);
    }

    pub fn read(&self) -> String {
        self.scene.read(self.path)
    }

    pub fn exported(&self) -> String {
        self.run(&["show", "--markdown", &self.plan]).expect(0).stdout
    }

    fn n_events(&self) -> usize {
        self.scene.events().len()
    }

    /// Tasks with their states: `A Completed`.
    fn status(&self) -> Vec<String> {
        let shown = self.scene.show(&self.plan);
        let tasks = shown["tasks"].as_array().expect("a list").iter();
        tasks.map(|task| format!("{} {}", task["id"], task["state"]).replace('"', "")).collect()
    }

    pub fn order(&self) -> String {
        order_of(&self.scene, &self.plan)
    }
}

pub fn write(scene: &Scene, path: &str, text: &str) {
    std::fs::create_dir_all(scene.path(path).parent().expect("it is in a folder")).expect("a folder can be made");
    scene.write(path, text);
}

/// Tasks with their dependencies: `B<A`.
pub fn order_of(scene: &Scene, plan: &str) -> String {
    let shown = scene.show(plan);
    let tasks = shown["tasks"].as_array().expect("a list").iter().map(|task| {
        let before = task["depends_on"].as_array().expect("a list").iter().map(|id| id.as_str().expect("a name"));
        format!("{}<{}", task["id"].as_str().expect("a name"), before.collect::<Vec<_>>().join(","))
    });
    tasks.collect::<Vec<_>>().join(" ")
}

/// A plan whose tasks people end one by one, and the resulting file.
#[track_caller]
fn check_ticks(path: &'static str, text: &str, done: &[&str], expected: &str) {
    let kept = Kept::within(Scene::new(), path, text);
    kept.syncs("nothing to change\n");
    kept.is(text);
    kept.done(done);
    kept.sync().expect(0);
    let written = kept.read();
    // The year shows that it is the current time.
    let times = written.split('"').filter(|part| part.starts_with("20") && part.contains('T')).collect::<BTreeSet<_>>();
    let time = times.last().filter(|_| expected.contains("NOW")).copied().unwrap_or("NOW");
    assert_eq!(written.replace(time, "NOW"), expected);
    let n_events = kept.n_events();
    kept.syncs("nothing to change\n");
    assert_eq!((kept.read(), kept.n_events()), (written, n_events));
}

#[test]
fn sync_marks_completed_tasks_in_each_format() {
    let text = "# Tasks\n\n## Phase 1: Setup\n\n- [X] T001 Create the folder\n- [ ] T002 [P] Add a linter\n";
    check_ticks("specs/1/tasks.md", text, &["T002"], &text.replace("[ ] T002", "[X] T002"));
    let text = "## 1. Setup\n- [ ] 1.1 Make it\n- [x] 1.2 Check it\n\n## 2. Rest\n- [ ] 2.1 Ship it\n";
    check_ticks("openspec/changes/a/tasks.md", text, &["1.1"], &text.replace("[ ] 1.1", "[x] 1.1"));
    let text =
        "- [ ] 1. Epic\n  - [ ] 1.1 Part\n    - Text\n    - _Requirements: 1.1_\n  - [ ]* 1.2 Tests\n- [ ] 2. Rest\n";
    let ended = text.replace("[ ] 1. Epic", "[x] 1. Epic").replace("[ ] 1.1", "[x] 1.1");
    check_ticks(".kiro/specs/a/tasks.md", text, &["1.1"], &ended);
    let text = "- [ ] Write\n- [-] Leave\n- [ ] Read\n";
    check_ticks("plan.md", text, &["1"], &text.replace("[ ] Write", "[x] Write"));
    let text = r#"{"master": {"tasks": [{"id": 1, "title": "A", "status": "pending", "subtasks": [
        {"id": 1, "title": "a", "status": "pending"}, {"id": 2, "title": "b", "status" : "in-progress"}]},
        {"id": 2, "title": "B", "status": "pending", "dependencies": [1]}]}}"#;
    let ended = text.replacen("\"pending\", \"subtasks\"", "\"done\", \"subtasks\"", 1);
    let ended = ended.replace("\"a\", \"status\": \"pending\"", "\"a\", \"status\": \"done\"");
    let ended = ended.replace("\"status\" : \"in-progress\"", "\"status\" : \"done\"");
    let kept = Kept::within(Scene::new(), ".taskmaster/tasks/tasks.json", text);
    kept.done(&["1.1"]);
    kept.run(&["resume", &format!("{}/1.2", kept.plan)]).expect(0);
    kept.done(&["1.2"]);
    kept.writes(&ended);
    let text = "{\"id\":\"a-1\",\"title\":\"A\",\"status\":\"open\",\"updated_at\":\"2026-01-09T10:45:29.92+03:00\"}\n\
        {\"id\":\"a-2\",\"title\":\"B\",\"status\":\"open\"}";
    let ended = "{\"id\":\"a-1\",\"title\":\"A\",\"status\":\"closed\",\"updated_at\":\"NOW\",\"closed_at\":\"NOW\"}\n\
        {\"id\":\"a-2\",\"title\":\"B\",\"status\":\"open\"}";
    check_ticks(".beads/issues.jsonl", text, &["a-1"], ended);
}

#[test]
fn sync_keeps_other_bytes_file_mode_and_symlink() {
    let text = "\u{feff}# Plan\r\n\r\n- [ ] Write é\r\n\t- [ ] deep\r\n- [ ] last";
    let scene = Scene::new();
    scene.write("real.md", "");
    std::os::unix::fs::symlink("real.md", scene.path("plan.md")).expect("a link can be made");
    std::fs::set_permissions(scene.path("real.md"), PermissionsExt::from_mode(0o640)).expect("the mode can be set");
    let kept = Kept::within(scene, "plan.md", text);
    kept.done(&["1"]);
    kept.sync().expect(0);
    let ticked = text.replace("[ ] Write", "[x] Write").replace("[ ] deep", "[x] deep");
    assert_eq!(std::fs::read(kept.scene.path("real.md")).expect("it is there"), ticked.as_bytes());
    assert!(kept.scene.path("plan.md").is_symlink());
    let mode = std::fs::metadata(kept.scene.path("real.md")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o7777, 0o640);
}

#[test]
fn a_synced_run_marks_tasks_when_they_start_and_end() {
    let scene = Scene::new();
    let text = "- [ ] Build\n  - [ ] Run `until grep -q '^  - .~' plan.md; do sleep 0.02; done`\n  - [ ] Run `true`\n\
        - [ ] Run `false`\n- [ ] Run `echo never`\n- [ ] If it fails, run `true`\n";
    scene.write("plan.md", text);
    let ran = scene.run(&["run", "plan.md", "--yes", "--sync"]).expect(100);
    let ended = text.replace("[ ] Build", "[x] Build").replacen("[ ] Run `until", "[x] Run `until", 1);
    // A step that a failure or an outcome skipped stays open.
    let ended = ended.replace("[ ] Run `true`", "[x] Run `true`");
    assert_eq!(scene.read("plan.md"), ended);
    // The retried task decides its branch again; the completed ones stay completed.
    let plan = ran.stdout.trim();
    scene.run(&["retry", plan]).expect(0);
    scene.run(&["plan", "sync", plan]).expect(0);
    assert_eq!(scene.read("plan.md"), ended);
}

#[test]
fn a_file_changed_during_the_run_amends_the_plan() {
    let scene = Scene::new();
    let crewlog = env!("CARGO_BIN_EXE_crewlog");
    let edit = format!(
        "sed -i 's/ two/ 2/; /three/d' plan.md; printf '%s\\n' '- [ ] D: Run `echo four >> out`' >> plan.md; \
         until {crewlog} events $CREWLOG_PLAN --type TasksAmended | grep -q .; do sleep 0.02; done"
    );
    scene.write("edit.sh", edit);
    let text = "- [ ] A: Run `sh edit.sh`\n- [ ] B: Run `echo two >> out`\n- [ ] C: Run `echo three >> out`\n";
    scene.write("plan.md", text);
    let ran = scene.run(&["run", "plan.md", "--yes", "--sync"]).expect(5);
    let plan = ran.stdout.trim();
    ran.says(&["the file has new commands", &format!("crewlog agree {plan}")]);
    assert!(!scene.path("out").exists(), "--yes agreed to the file as it was");
    scene.run(&["agree", plan, "--yes"]).expect(0);
    scene.run(&["resume", plan, "--sync"]).expect(0);
    assert_eq!(scene.read("out"), "2\nfour\n");
    let after = "- [x] A: Run `sh edit.sh`\n- [x] B: Run `echo 2 >> out`\n- [x] D: Run `echo four >> out`\n";
    assert_eq!(scene.read("plan.md"), after);
    assert_eq!(scene.events_of_type("TasksAmended").len(), 1, "all of it is one change");
    let kept = Kept { scene, path: "plan.md", plan: ran.stdout.trim().to_owned() };
    assert_eq!(kept.status(), ["A done", "B done", "C skipped", "D done"]);
}

#[test]
fn a_run_adopts_no_new_command_without_consent() {
    let scene = Scene::new();
    named_pipe(&scene, "go");
    scene.write("plan.md", "- [ ] A: Run `read line < go`\n- [ ] B: Paint the door\n");
    let mut command = scene.crewlog(&["run", "plan.md", "--sync"]);
    let mut running = Running::start_on_terminal(&mut command);
    running.stderr.until("Run them?");
    running.types("y");
    running.stderr.until("START");
    scene.write("plan.md", "- [ ] A: Run `read line < go`\n- [ ] B: Run `touch bad`\n");
    running.stderr.until("plan.md:2: warning: the file has new commands");
    std::fs::write(scene.path("go"), "go\n").expect("the command reads it");
    running.finish().expect(5);
    assert!(!scene.path("bad").exists());
    let waiting = scene.run(&["inbox", "-o", "json"]).expect(0).json();
    assert_eq!(
        (waiting["items"][0]["kind"].clone(), waiting["items"][0]["text"].clone()),
        ("consent".into(), "touch bad".into())
    );
}

#[test]
fn edits_to_the_file_become_one_amendment() {
    let kept = Kept::new("- [ ] A: Paint\n- [ ] B: Dry\n- [ ] C: Sand (P1)\n- [ ] D: Sell\n");
    let edited = "- [ ] A: Paint\n- [ ] N: Wait a day\n- [ ] C: Sand twice (retry 2)\n- [ ] D: Sell (after A)\n";
    kept.write(edited);
    let n_events = kept.n_events();
    kept.syncs("added: N\nedited: C, D\nleft out: B\n");
    assert_eq!(kept.n_events(), n_events + 2, "one amendment, and the end of what was left out");
    assert_eq!(kept.order(), "A< B<A C<N D<A N<A");
    kept.is(edited);
    let exported = kept.exported();
    assert!(exported.contains("Sand twice") && exported.contains("  - retry: 2\n"), "{exported}");
    kept.syncs("nothing to change\n");
    let json = kept.run(&["plan", "sync", &kept.plan, "-o", "json"]).expect(0).json();
    assert_eq!((&json["states_written"], &json["tasks"]["added"]), (&json!(0), &json!([])));
}

#[test]
fn changes_made_by_amend_survive_a_change_of_the_file() {
    let kept = Kept::new("- [ ] Paint\n- [ ] Dry\n- [ ] Sell\n");
    kept.run(&["task", "edit", &format!("{}/2", kept.plan), "text=Dry well", "priority=high"]).expect(0);
    kept.run(&["task", "add", "- Sweep", "--plan", &kept.plan, "--after", "3"]).expect(0);
    kept.takes("- [ ] Paint\n- [ ] Dry (retry 3)\n- [ ] Sell\n- [ ] Rest\n", "added: 5\nedited: 2\n");
    let exported = kept.exported();
    let task = "- [ ] 2. Dry well\n  - follows: 1\n  - kind: Processing\n  - priority: high\n  - retry: 3\n";
    assert!(exported.contains(task), "{exported}");
    assert_eq!(kept.order(), "1< 2<1 3<2 4<3 5<3");
    kept.done(&["1", "2", "3"]);
    kept.writes("- [x] Paint\n- [x] Dry (retry 3)\n- [x] Sell\n- [ ] Rest\n");
}

#[test]
fn a_started_task_is_neither_edited_nor_removed() {
    let text = "- [ ] A: Paint\n- [ ] B: Dry (after A)\n- [ ] C: Sweep (P) (after A)\n";
    let kept = Kept::new(text);
    kept.write(text.replace("Paint", "Paint it red"));
    kept.sync().expect(0).says(&["plan.md:1: warning: task A has begun", "not taken over"]);
    kept.done(&["A"]);
    let refused = kept.sync().expect(9);
    refused.says(&[
        "plan.md:1: warning: the line of task A was changed",
        "the state done",
        "not in step: ",
        "plan.md:1",
    ]);
    // A further change of the file does not make the plan forget the earlier one.
    let edited = text.replace("Paint", "Paint it red") + "- [ ] D: Sell\n";
    kept.write(&edited);
    kept.sync().expect(9).says(&["plan.md:1: warning: the line of task A"]);
    kept.is(&edited);
    kept.write(edited.replace("Paint it red", "Paint"));
    kept.sync().expect(0);
    let ticked = edited.replace("[ ] A: Paint it red", "[x] A: Paint");
    kept.is(&ticked);
    let gone = ticked.replace("- [ ] B: Dry (after A)\n", "");
    kept.write(&gone);
    kept.sync().expect(0).says(&["plan.md:2: warning: begun, so that the plan keeps it", "is gone: B"]);
    kept.is(&gone);
    kept.done(&["B"]);
    kept.sync().expect(9).says(&["the line of task B was changed"]);
}

#[test]
fn a_box_ticked_by_hand_completes_an_unclaimed_task() {
    let text = "- [ ] Group\n  - [ ] A: Paint\n  - [ ] B: Dry\n- [ ] C: Sell\n- [ ] D: Sweep\n- [ ] E: Rest\n";
    let kept = Kept::new(text);
    // One running task, one not started, and one cancelled.
    let ticked = text.replace("[ ] A", "[x] A").replace("[ ] B", "[X] B").replace("[ ] D", "[-] D");
    kept.write(&ticked);
    assert_eq!(
        kept.sync().expect(0).stdout,
        format!("done: A, B\nleft out: D\n1 state written to {}\n", kept.scene.path("plan.md").display())
    );
    kept.is(&ticked.replace("[ ] Group", "[x] Group"));
    let ends = kept.scene.events_of_type("TaskStatusUpdated");
    let by_person = ends.iter().filter(|end| end["result"] == "done by a person").count();
    assert_eq!(by_person, 2, "{ends:?}");
    assert_eq!(kept.status(), ["A done", "B done", "C waiting_for_you", "D skipped", "E planned"]);
    // A cleared box reopens nothing, and stays as the person left it.
    let cleared = kept.read().replace("[x] A", "[ ] A");
    kept.write(&cleared);
    for _ in 0..2 {
        kept.sync().expect(0).says(&["plan.md:2: warning: task A stays done, although its box was cleared"]);
    }
    kept.is(&cleared);
}

#[test]
fn a_group_ticked_by_hand_completes_none_of_its_parts() {
    let text = "- [ ] Group\n  - [ ] A: Paint\n  - [ ] B: Dry\n";
    let kept = Kept::new(text);
    let ticked = text.replace("[ ] Group", "[x] Group");
    kept.write(&ticked);
    let said = kept.sync().expect(0);
    assert_eq!(said.stderr.matches("warning").count(), 1, "{said:?}");
    said.says(&["plan.md:1: warning: this group is done, and parts of it are open"]);
    kept.is(&ticked);
    assert_eq!(kept.status(), ["A waiting_for_you", "B planned"]);
}

#[test]
fn a_step_ticked_early_keeps_the_order_of_the_rest() {
    let kept = Kept::new("- [ ] A: Test\n- [ ] B: Note\n- [ ] C: Publish\n");
    kept.takes("- [ ] A: Test\n- [x] B: Note\n- [ ] C: Publish\n", "done: B\n");
    assert_eq!(kept.order(), "A< B<A C<A,B");
    assert_eq!(kept.status()[2], "C planned");
}

#[test]
fn a_box_ticked_by_hand_does_not_complete_a_claimed_task() {
    let scene = Scene::new();
    let mut gate = Gate::new(&scene, "gate");
    named_pipe(&scene, "go");
    scene.write("plan.md", format!("- [ ] A: Run `{}; read line < go`\n", Gate::pass("gate")));
    let running = scene.start(&["run", "plan.md", "--yes"]);
    gate.wait();
    let plan =
        scene.run(&["ls", "-o", "json"]).expect(0).json()["plans"][0]["plan"].as_str().expect("an id").to_owned();
    let kept = Kept { scene, path: "plan.md", plan };
    let ticked = kept.read().replace("[ ]", "[x]");
    kept.write(&ticked);
    let said = kept.sync().expect(0);
    assert!(!said.stderr.contains("is held"), "its run decides about the box: {said:?}");
    kept.is(&ticked);
    assert_eq!(kept.status(), ["A running"]);
    std::fs::write(kept.scene.path("go"), "go\n").expect("the command reads it");
    running.finish().expect(0);
    kept.syncs("nothing to change\n");
}

#[test]
fn marks_written_by_sync_do_not_count_as_manual_edits() {
    let kept = Kept::new("- [ ] A: Paint\n- [ ] B: Dry\n- [ ] C: Sell\n");
    kept.done(&["A"]);
    kept.run(&["cancel", &format!("{}/C", kept.plan)]).expect(0);
    kept.writes("- [x] A: Paint\n- [ ] B: Dry\n- [-] C: Sell\n");
    kept.run(&["retry", &format!("{}/C", kept.plan)]).expect(0);
    let said = kept.sync().expect(0);
    assert!(!said.stderr.contains("warning") && !said.stdout.contains("left out"), "{said:?}");
    kept.is("- [x] A: Paint\n- [ ] B: Dry\n- [ ] C: Sell\n");
}

#[test]
fn a_box_cleared_by_a_retry_is_ticked_when_the_task_is_done() {
    let kept = Kept::new("- [ ] A: Paint\n- [ ] B: Dry\n");
    kept.run(&["cancel", &format!("{}/B", kept.plan)]).expect(0);
    kept.writes("- [ ] A: Paint\n- [-] B: Dry\n");
    kept.run(&["retry", &format!("{}/B", kept.plan)]).expect(0);
    kept.takes("- [ ] A: Paint\n- [ ] B: Dry\n", "nothing to change\n");
    kept.done(&["A", "B"]);
    kept.writes("- [x] A: Paint\n- [x] B: Dry\n");
}

#[test]
fn renumbering_the_file_renames_tasks_without_rerunning_them() {
    let kept = Kept::new("1. Paint\n2. Dry\n3. Sell\n4. Rest\n");
    kept.done(&["1"]);
    // One before the running task, and one after it.
    kept.write("1. Paint\n2. Prime\n3. Dry\n4. Wait\n5. Sell\n6. Rest\n");
    let said = kept.sync().expect(0);
    said.says(&["plan.md:2: warning: 2 is the name of a task that has begun: this one is called added/5"]);
    assert_eq!(said.stdout, "added: added/5, 4\nedited: 5, 6\n");
    // The started task is 2, and the later ones also wait for the task inserted before it.
    assert_eq!(kept.order(), "1< 2<1 5<4 6<5 added/5<1 4<2,added/5");
    kept.syncs("nothing to change\n");
    kept.takes("1. Paint\n2. Prime\n3. Dry\n4. Sell\n5. Rest\n", "edited: 4, 5\nleft out: 4\n");
    assert_eq!(kept.order(), "1< 2<1 4<2,added/5 5<4 added/5<1 left-out/6<2,added/5");
}

#[test]
fn tasks_are_matched_despite_a_renamed_heading_and_equal_texts() {
    let kept = Kept::new("## One\n- [ ] Test\n- [ ] Test\n\n## Two\n- [ ] Test\n");
    kept.done(&["1"]);
    kept.write("## First\n- [ ] Test\n- [ ] Test\n- [ ] Check\n\n## Two\n- [ ] Test\n");
    assert_eq!(kept.sync().expect(0).stdout.lines().next(), Some("added: 4"));
    kept.is("## First\n- [x] Test\n- [ ] Test\n- [ ] Check\n\n## Two\n- [ ] Test\n");
    // The same text in another existing group is another task.
    kept.takes(
        "## First\n- [x] Test\n- [ ] Test\n\n## Two\n- [ ] Test\n- [ ] Check\n",
        "added: 5\nedited: 3\nleft out: 4\n",
    );
    let kept = Kept::new("- [-] Test\n- [ ] Test\n");
    kept.done(&["2"]);
    kept.writes("- [-] Test\n- [x] Test\n");
}

#[test]
fn a_removed_step_can_come_back() {
    let text = "- [ ] A: Paint\n- [ ] B: Dry\n- [ ] C: Sell\n";
    let kept = Kept::new(text);
    kept.takes("- [ ] A: Paint\n- [ ] C: Sell\n", "edited: C\nleft out: B\n");
    kept.write(text);
    kept.sync().expect(0).says(&["plan.md:2: warning: B is the name of a task that has begun"]);
    assert_eq!(kept.order(), "A< B<A C<added/4 added/4<A");
    kept.done(&["A", "added/4"]);
    kept.writes("- [x] A: Paint\n- [x] B: Dry\n- [ ] C: Sell\n");
}

#[test]
fn a_file_that_is_not_a_plan_changes_nothing() {
    let check = |kept: &Kept, edited: &str, says: &[&str]| {
        kept.write(edited);
        let n_events = kept.n_events();
        kept.sync().expect(3).says(says);
        kept.is(edited);
        assert_eq!(kept.n_events(), n_events);
    };
    let kept = Kept::new("- [ ] A: Paint\n- [ ] B: Dry\n- [ ] C: Sell\n");
    check(&kept, "- [ ] A: Paint\n- [ ] B: Dry (after Z9)\n", &["plan.md:2: no task is called Z9"]);
    let edited = "- [ ] A: Paint\n- [ ] B: Dry (after C)\n- [ ] C: Sell (after B)\n";
    check(&kept, edited, &["plan.md:2: dependency cycle: B -> C -> B"]);
    check(&kept, "nothing here.\n", &["plan.md:1: the plan has no tasks"]);
    // The plan has an order that is not in the file.
    let kept = Kept::new("- [ ] A: Paint\n- [ ] B: Dry (after A)\n- [ ] C: Sell (after A)\n");
    kept.run(&["task", "move", &format!("{}/B", kept.plan), "--after", "A,C"]).expect(0);
    let edited = "- [ ] A: Paint\n- [ ] B: Dry (after A)\n- [ ] C: Sell (after B)\n";
    check(&kept, edited, &["plan.md:3: dependency cycle", "as they were"]);
}

#[test]
fn new_commands_need_consent_first() {
    let kept = Kept::new("- [ ] A: Paint\n- [ ] B: Run `true`\n");
    kept.write("- [ ] A: Paint\n- [ ] B: Run `touch bad`\n");
    let n_events = kept.n_events();
    kept.run(&["plan", "sync", &kept.plan]).expect(1).says(&["touch bad", "nothing was run"]);
    assert_eq!(kept.n_events(), n_events);
    // A different order runs nothing new.
    kept.write("- [ ] A: Paint\n- [ ] C: Dry\n- [ ] B: Run `true`\n");
    kept.run(&["plan", "sync", &kept.plan]).expect(0);
}

#[test]
fn a_plan_without_a_file_of_its_own_says_so() {
    let scene = Scene::new();
    let mut command = scene.crewlog(&["run", "-", "--yes", "--detach"]);
    let mut running = Running::start(command.stdin(std::process::Stdio::piped()));
    running.types("- [ ] Paint");
    running.close_input();
    let plan = running.finish().expect(0).stdout.trim().to_owned();
    let sync = |scene: &Scene, plan: &str| scene.run(&["plan", "sync", plan]);
    sync(&scene, &plan).expect(1).says(&["has no file of its own", &format!("crewlog show --markdown {plan}")]);
    scene.run(&["run", "-", "--sync"]).expect(1).says(&["--sync needs a plan file"]);
    let kept = Kept::within(scene, "plan.md", "- [ ] Paint\n");
    let fork = kept.run(&["fork", &kept.plan]).expect(0).stdout.trim().to_owned();
    sync(&kept.scene, &fork).expect(1).says(&["has no file of its own"]);
    std::fs::remove_file(kept.scene.path("plan.md")).expect("it is there");
    kept.sync().expect(1).says(&["plan.md cannot be read"]);
}

#[test]
fn an_ended_plan_adopts_no_changes() {
    let kept = Kept::new("- [ ] A: Paint\n");
    kept.done(&["A"]);
    kept.write("- [ ] A: Paint\n- [ ] B: Dry\n");
    kept.sync().expect(9).says(&["plan.md:2: warning: the file was changed, but the plan has ended"]);
    kept.is("- [x] A: Paint\n- [ ] B: Dry\n");
}

#[test]
fn a_resumed_plan_reads_its_file_before_anything_runs() {
    let kept = Kept::new("- [ ] Look\n- [ ] Run `touch ran`\n- [ ] Run `touch too`\n");
    kept.done(&["1"]);
    kept.write("- [x] Look\n- [x] Run `touch ran`\n- [-] Run `touch too`\n");
    kept.run(&["resume", &kept.plan, "--sync", "--yes"]).expect(0);
    assert_eq!(["ran", "too"].map(|name| kept.scene.path(name).exists()), [false, false]);
    assert_eq!(kept.status(), ["1 done", "2 done", "3 skipped"]);
}

#[test]
fn a_resumed_run_adopts_boxes_ticked_in_the_meantime() {
    let scene = Scene::new();
    scene.write("plan.md", "- [ ] Paint\n- [ ] Run `echo dry > dry`\n");
    let plan = scene.run(&["run", "plan.md", "--yes", "--sync"]).expect(5).stdout.trim().to_owned();
    scene.write("plan.md", "- [x] Paint\n- [ ] Run `echo dry > dry`\n");
    scene.run(&["resume", &plan, "--sync"]).expect(0);
    assert_eq!(scene.read("plan.md"), "- [x] Paint\n- [x] Run `echo dry > dry`\n");
}

#[test]
fn parallel_plans_stay_parallel() {
    let scene = Scene::new();
    scene.write("plan.md", "- [ ] A: Paint\n- [ ] B: Dry\n");
    let plan = scene.run(&["run", "plan.md", "--parallel", "--detach"]).expect(0).stdout.trim().to_owned();
    let kept = Kept { scene, path: "plan.md", plan };
    kept.write("- [ ] A: Paint\n- [ ] B: Dry\n- [ ] C: Sell\n- [ ] D: Rest (after C)\n");
    kept.sync().expect(0);
    assert_eq!(kept.order(), "A< B< C< D<C");
}

#[test]
fn a_plan_on_a_server_is_synced_too() {
    let database = Database::new();
    let kept = Kept::within(on_server(&database), "plan.md", "- [ ] A: Paint\n- [ ] B: Dry\n");
    kept.done(&["A"]);
    kept.write("- [ ] A: Paint\n- [x] B: Dry\n- [ ] C: Sell\n");
    assert!(kept.sync().expect(0).stdout.starts_with("added: C\ndone: B\n1 state written to "));
    kept.is("- [x] A: Paint\n- [x] B: Dry\n- [ ] C: Sell\n");
    kept.syncs("nothing to change\n");
}

#[test]
fn a_killed_sync_leaves_the_old_file_or_the_new_one() {
    let text = "- [ ] Paint\n".repeat(2000);
    let kept = Kept::new(&text);
    kept.done(&["1"]);
    let ticked = text.replacen("[ ]", "[x]", 1);
    for n in 0..12 {
        kept.write(&text);
        let running = kept.scene.start(&["plan", "sync", &kept.plan]);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(20 * n) {
            std::hint::spin_loop();
        }
        running.kill();
        let was_killed = running.finish().status.code().is_none();
        let left = kept.read();
        assert!(left == text || left == ticked, "{left}");
        if !was_killed {
            break;
        }
    }
    // The next write removes the leftovers of a killed one.
    let kept = Kept::new(&text);
    kept.done(&["1"]);
    kept.scene.write(".plan.md.crewlog", "half");
    kept.writes(&ticked);
    assert!(!kept.scene.path(".plan.md.crewlog").exists());
}

#[test]
fn an_issue_that_waits_for_a_failure_does_not_run_after_a_closed_one() {
    for (status, state) in [("closed", "skipped"), ("open", "planned")] {
        let scene = Scene::new();
        let waits = r#""dependencies":[{"depends_on_id":"a-1","type":"conditional-blocks"}]"#;
        let issues = format!(
            r#"{{"id":"a-1","title":"Look","status":"{status}"}}{}{{"id":"a-2","title":"Mend","status":"open",{waits}}}"#,
            "\n"
        );
        scene.write("issues.jsonl", issues);
        scene.run(&["run", "issues.jsonl", "--format", "beads", "--yes", "--detach"]).expect(0);
        let plan = scene.run(&["ls", "-o", "json"]).json()["plans"][0]["plan"].as_str().expect("an id").to_owned();
        assert_eq!(scene.show(&plan)["tasks"][1]["state"], state, "{status}");
        assert_eq!(scene.show(&plan)["questions"], serde_json::json!([]), "{status}");
    }
}
