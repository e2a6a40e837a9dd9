//! The commands and agents that a person sees before they run, and the answers that let them run.

use super::scene::{Running, Scene};

const TEXT: &str = "\
---
crewlog: prompt.system='Be brief.'
---
# Garden
- [x] Run `echo done`
- [-] Run `echo given-up`
- [ ] Run `echo brush` (undo: `rm brush`)
- [ ] Paint the door
- [ ] Which colour is it?
";

fn scene(config: &str) -> Scene {
    let scene = Scene::new();
    scene.write("crewlog.toml", config);
    scene.write("plan.md", TEXT);
    scene
}

const PAINTER: &str = "[executors.painter]\ncommand = [\"true\"]\n";

/// The lines about a plan before it runs.
fn shown(scene: &Scene, words: &[&str], code: i32) -> Vec<String> {
    let ran = scene.run(&[&["run", "plan.md"], words].concat()).expect(code);
    let folder = scene.folder().to_string_lossy().into_owned();
    ran.stderr.replace(&folder, "FOLDER").lines().map(str::to_owned).collect()
}

const ASKED: [&str; 2] =
    ["error: nothing was run: no terminal to ask on", "  hint: to run them, repeat the command with --yes"];

#[test]
fn all_that_would_run_is_shown_and_nothing_else() {
    let with_agents = [
        "5 tasks, 1 with a command, 2 for agents, in FOLDER:",
        "              2  Run `echo given-up` (painter)  (given up)",
        "              3  echo brush",
        "              3  rm brush  (if it is to be undone)",
        "              4  Paint the door (painter)",
        "  prompt.system  Be brief.",
        "        painter  starts: true  (new in crewlog.toml)",
    ];
    let without =
        ["5 tasks, 1 with a command, in FOLDER:", "  3  echo brush", "  3  rm brush  (if it is to be undone)"];
    for quiet in [&[][..], &["--quiet"]] {
        assert_eq!(shown(&scene(PAINTER), quiet, 1), [&with_agents[..], &ASKED].concat());
        assert_eq!(shown(&scene(""), quiet, 1), [&without[..], &ASKED].concat());
    }
    let told = shown(&scene(PAINTER), &["--yes", "--detach"], 0);
    assert_eq!(told[..with_agents.len()], with_agents);
    assert_eq!(shown(&scene(PAINTER), &["--quiet", "--yes", "--detach"], 0), [""; 0], "nobody asked to be told");
}

#[test]
fn a_plan_that_runs_nothing_asks_nothing() {
    let scene = Scene::new();
    scene.write("plan.md", "- [x] Run `echo done`\n- [ ] Which colour is it?\n");
    assert_eq!(shown(&scene, &["--quiet"], 5)[0], "q1 asks: Which colour is it?");
}

#[test]
fn a_yes_is_a_yes_in_four_spellings() {
    for (answer, code) in
        [("y", 0), ("Y", 0), ("yes", 0), ("Yes", 0), ("YES", 1), ("ye", 1), ("n", 1), ("no", 1), ("y y", 1)]
    {
        let scene = Scene::new();
        scene.write("plan.md", "Run `true`");
        let mut running = Running::start_on_terminal(&mut scene.crewlog(&["run", "plan.md"]));
        running.stderr.until("Run them? [y/N]");
        running.types(answer);
        let ran = running.finish().expect(code);
        // A no is no error.
        assert_eq!(ran.stderr.trim_end().ends_with("nothing was run"), code == 1, "{answer}: {}", ran.stderr);
        assert!(!ran.stderr.contains("error:"), "{answer}: {}", ran.stderr);
    }
}

#[test]
fn what_would_undo_a_task_is_shown_before_anything_runs() {
    let scene = Scene::new();
    scene.write("plan.md", "1. Run `true` (undo: `rm -rf build`)\n2. Look at it (undo: `rm -rf notes`)\n");
    let undone = ["1  rm -rf build  (if it is to be undone)", "2  rm -rf notes  (if it is to be undone)"];
    scene.run(&["run", "plan.md"]).expect(1).says(&undone).says(&["nothing was run: no terminal to ask on"]);
    scene.run(&["run", "plan.md", "--yes", "--detach"]).expect(0).says(&undone);
}
