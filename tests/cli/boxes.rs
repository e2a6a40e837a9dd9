//! Each state of a task has its box in each format of files, and a file whose run failed runs again.

use super::scene::{Scene, named_pipe};
use super::sync::Kept;

/// A file of each format with a step `Build`, and a step `Publish` after it, both open; and the words for a box that is open,
/// in progress, done and cancelled, where the format has them.
type Boxes = (&'static str, &'static str, [&'static str; 4]);

const FORMATS: [Boxes; 6] = [
    ("plan.md", "1. [ ] Build @w\n2. [ ] Publish @w\n", ["[ ]", "[~]", "[x]", "[-]"]),
    ("specs/1/tasks.md", "- [ ] T001 Build @w\n- [ ] T002 Publish @w\n", ["[ ]", "", "[x]", ""]),
    ("openspec/changes/a/tasks.md", "- [ ] 1.1 Build @w\n- [ ] 1.2 Publish @w\n", ["[ ]", "", "[x]", ""]),
    (".kiro/specs/a/tasks.md", "- [ ] 1. Build @w\n- [ ] 2. Publish @w\n", ["[ ]", "[-]", "[x]", ""]),
    (
        ".taskmaster/tasks/tasks.json",
        r#"{"tasks": [{"id": 1, "title": "Build", "assignee": "w", "status": "pending"},
        {"id": 2, "title": "Publish", "assignee": "w", "status": "pending", "dependencies": [1]}]}"#,
        ["\"pending\"", "\"in-progress\"", "\"done\"", "\"cancelled\""],
    ),
    (
        ".beads/issues.jsonl",
        "{\"id\":\"a-1\",\"title\":\"Build\",\"assignee\":\"w\",\"status\":\"open\"}\n{\"id\":\"a-2\",\"title\":\"Publish\",\
         \"assignee\":\"w\",\"status\":\"open\",\"dependencies\":[{\"depends_on_id\":\"a-1\",\"type\":\"blocks\"}]}\n",
        ["\"open\"", "\"in_progress\"", "\"closed\"", ""],
    ),
];

/// Orders for `Build`, and the boxes of both steps after it: open, in progress, done or cancelled.
const STATES: [(&str, &[&str], [usize; 2]); 6] = [
    ("nothing", &[], [0, 0]),
    ("done", &["task", "done", "P/1"], [2, 0]),
    ("failed", &["task", "fail", "P/1", "boom"], [0, 0]),
    ("skipped by a person", &["task", "skip", "P/1"], [3, 0]),
    ("cancelled", &["cancel", "P/1"], [3, 0]),
    ("the plan cancelled", &["cancel", "P"], [3, 3]),
];

/// The boxes of a file in order, by the words of its format; open for a state without one.
fn boxes_of(text: &str, words: &[&str; 4]) -> Vec<usize> {
    let begins = |at: usize| words.iter().position(|word| !word.is_empty() && text[at..].starts_with(word));
    text.char_indices().filter_map(|(at, _)| begins(at)).collect()
}

#[test]
fn each_state_has_its_box_in_each_format() {
    for (path, text, words) in FORMATS {
        for (state, order, expected) in STATES {
            let kept = Kept::within(Scene::new(), path, text);
            let names = kept.scene.show(&kept.plan)["tasks"].as_array().unwrap().clone();
            let first = format!("{}/{}", kept.plan, names[0]["id"].as_str().unwrap());
            let order = order.iter().map(|word| if *word == "P" { &kept.plan } else { *word });
            let order: Vec<_> = order.map(|word| if word == "P/1" { &first } else { word }).collect();
            if !order.is_empty() {
                kept.run(&order).expect(0);
            }
            let _ = kept.sync();
            let shown = |state: usize| if words[state].is_empty() { 0 } else { state };
            assert_eq!(boxes_of(&kept.read(), &words), expected.map(shown), "{path}: {state}\n{}", kept.read());
        }
    }
}

#[test]
fn after_a_failure_the_file_runs_again_and_all_work_is_done() {
    // An agent may tick the box of its task before it fails; that a box is ticked before the task ends is seen or not.
    let ticks = |[open, begun, done, _]: [&str; 4]| match open.starts_with('[') {
        true => "sed -i '/Build/s/\\[[^x]\\]/[x]/' $FILE".to_owned(),
        false => format!("sed -E -i '/Build/s/{open}|{begun}/{done}/' $FILE"),
    };
    for (path, text, words) in FORMATS {
        for does in ["true".to_owned(), ticks(words), ticks(words) + "; cat go"] {
            let scene = Scene::new();
            scene.write(
                "w.sh",
                format!(
                    "case $CREWLOG_TASK in *1) test -e mended || {{ {does}; exit 1; }};; *) touch published;; esac"
                ),
            );
            scene.write(
                "crewlog.toml",
                format!("[executors.w]\ncommand = ['sh', 'w.sh']\nenv = {{ FILE = '{path}' }}\n"),
            );
            let go = named_pipe(&scene, "go");
            std::fs::create_dir_all(scene.path(path).parent().unwrap()).unwrap();
            scene.write(path, text);
            let running = scene.start(&["run", path, "--yes", "--sync", "--set", "retry.transient.count=0"]);
            if does.contains("go") {
                std::fs::write(&go, "").unwrap();
            }
            running.finish().expect(100);
            assert_eq!(boxes_of(&scene.read(path), &words), [0, 0], "{path}, {does}\n{}", scene.read(path));
            scene.write("mended", "");
            scene.run(&["run", path, "--yes", "--sync"]).expect(0);
            assert_eq!(boxes_of(&scene.read(path), &words), [2, 2], "{path}, {does}");
            assert!(scene.read_if_any("published").is_some(), "{path}, {does}");
        }
    }
}
