//! Plans keep their folder within their project: they run on in a renamed folder, in another clone and in another worktree.

use std::path::Path;

use super::scene::{Ran, Running, Scene};
use super::server::on_server;
use crewlog_stage::cluster::Database;

const TEXT: &str = "1. Run `echo one >> ran`\n2. Which port?\n3. Run `echo three >> ran`\n";

fn run_in(scene: &Scene, folder: &Path, words: &[&str]) -> Ran {
    Running::start(&mut scene.crewlog_in(folder, words)).finish()
}

/// Starts the plan in a folder, and answers its question.
fn begun(scene: &Scene, folder: &Path) -> String {
    std::fs::write(folder.join("plan.md"), TEXT).expect("a file can be written");
    let plan = run_in(scene, folder, &["run", "plan.md", "--yes"]).expect(5).stdout.trim().to_owned();
    run_in(scene, folder, &["answer", &format!("{plan}/q1"), "80"]).expect(0);
    plan
}

fn ran(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("ran")).unwrap_or_default()
}

#[test]
fn a_plan_runs_on_in_its_renamed_folder_also_in_one_below_the_root() {
    for below in ["", "sub"] {
        let scene = Scene::with_repository();
        std::fs::create_dir_all(scene.path(below)).unwrap();
        let plan = begun(&scene, &scene.path(below));
        let renamed = scene.around().join("renamed");
        std::fs::rename(scene.folder(), &renamed).unwrap();
        // `--sync` finds the file, too.
        run_in(&scene, &renamed, &["resume", &plan, "--sync"]).expect(0);
        assert_eq!(ran(&renamed.join(below)), "one\nthree\n", "{below}");
    }
}

#[test]
fn a_plan_of_a_linked_worktree_runs_there_else_in_one_of_its_branch_else_where_a_person_says() {
    let scene = Scene::with_repository();
    let [linked, again, other] = ["linked", "again", "other"].map(|name| scene.around().join(name));
    scene.git(&["worktree", "add", "-q", "-b", "feature", "../linked"]);
    let plan = begun(&scene, &linked);
    // From the main worktree.
    scene.run(&["resume", &plan]).expect(0);
    assert_eq!((ran(&linked).as_str(), ran(scene.folder()).as_str()), ("one\nthree\n", ""));

    let plan = begun(&scene, &linked);
    scene.git(&["worktree", "remove", "--force", "../linked"]);
    scene
        .run(&["resume", &plan])
        .expect(1)
        .says(&["neither the worktree linked nor one of the branch \"feature\" is here", "--in FOLDER"]);
    scene.run(&["work", "--until-idle"]).expect(5).says(&["is left to other workers", "--in FOLDER"]);
    scene.git(&["worktree", "add", "-q", "../again", "feature"]);
    scene.run(&["resume", &plan]).expect(0);
    assert_eq!((ran(&again).as_str(), ran(scene.folder()).as_str()), ("three\n", ""));

    let plan = begun(&scene, &again);
    scene.git(&["worktree", "remove", "--force", "../again"]);
    scene.git(&["worktree", "add", "-q", "-b", "another", "../other"]);
    scene.run(&["resume", &plan, "--in", "../nowhere"]).expect(1).says(&["cannot be used"]);
    scene.run(&["resume", &plan, "--in", "../other", "--yes"]).expect(0);
    assert_eq!((ran(&other).as_str(), ran(scene.folder()).as_str()), ("three\n", ""));
}

#[test]
fn a_plan_of_a_worktree_of_a_bare_repository_runs_on_after_a_move_of_all() {
    let scene = Scene::with_repository();
    let all = scene.around().join("all");
    std::fs::create_dir(&all).unwrap();
    scene.git(&["clone", "-q", "--bare", ".", "../all/.bare"]);
    scene.git(&["-C", "../all/.bare", "worktree", "add", "-q", "-b", "feature", "../feature"]);
    let plan = begun(&scene, &all.join("feature"));
    let moved = scene.around().join("moved");
    std::fs::rename(&all, &moved).unwrap();
    scene.git(&["-C", "../moved/.bare", "worktree", "repair", "../feature"]);
    run_in(&scene, &moved.join("feature"), &["resume", &plan]).expect(0);
    assert_eq!(ran(&moved.join("feature")), "one\nthree\n");
}

#[test]
fn a_plan_that_a_person_moves_into_another_repository_runs_there() {
    let scene = Scene::with_repository();
    let plan = begun(&scene, scene.folder());
    let other = scene.around().join("other");
    scene.git(&["init", "-q", "../other"]);
    scene.run(&["resume", &plan, "--in", "../other", "--yes"]).expect(0);
    assert_eq!((ran(&other).as_str(), ran(scene.folder()).as_str()), ("three\n", "one\n"));
}

/// A second clone of a project, on a machine of its own.
fn clones(scene: &Scene) -> Scene {
    scene.write("crewlog.toml", "project = 'shop'\n");
    let there = Scene::new().with_env("CREWLOG_STORE", scene.env("CREWLOG_STORE").expect("a log"));
    let there = there.with_env("XDG_STATE_HOME", scene.env("XDG_STATE_HOME").expect("a folder"));
    there.git(&["init", "-q", "-b", "main"]);
    there.write("crewlog.toml", "project = 'shop'\n");
    there
}

#[test]
fn each_machine_runs_tasks_in_its_own_clone_and_none_fails_a_plan_whose_repository_it_lacks() {
    let on_file = Scene::with_repository();
    let (log, state) = (on_file.around().join("shared.db"), on_file.around().join("state"));
    let on_file = on_file.with_env("CREWLOG_STORE", log.to_str().unwrap());
    let database = Database::new();
    let on_database = on_server(&database);
    on_database.git(&["init", "-q", "-b", "main"]);
    for scene in [on_file.with_env("XDG_STATE_HOME", state.to_str().unwrap()), on_database] {
        let there = clones(&scene);
        let plan = begun(&scene, scene.folder());
        // A machine with another repository, and one with none.
        let others = [Scene::with_repository(), Scene::new()];
        for other in others.map(|other| other.with_env("CREWLOG_STORE", scene.env("CREWLOG_STORE").unwrap())) {
            other
                .run(&["work", "--until-idle"])
                .expect(5)
                .says(&["is left to other workers: its repository is neither here"]);
        }
        assert_eq!(scene.show(&plan)["status"], "ready");
        there.run(&["work", "--until-idle"]).expect(0);
        assert_eq!((ran(scene.folder()).as_str(), ran(there.folder()).as_str()), ("one\n", "three\n"));
    }
}

#[test]
fn a_command_from_another_folder_of_the_machine_finds_the_project() {
    let scene = Scene::with_repository();
    let log = scene.around().join("shared.db");
    let scene = scene.with_env("CREWLOG_STORE", log.to_str().unwrap());
    let plan = begun(&scene, scene.folder());
    let elsewhere = scene.around().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    run_in(&scene, &elsewhere, &["resume", &plan]).expect(0);
    assert_eq!((ran(scene.folder()).as_str(), ran(&elsewhere).as_str()), ("one\nthree\n", ""));
}
