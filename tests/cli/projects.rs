//! The project of a plan: shared by a repository with all its worktrees, by clones that name one, by a folder.

use std::path::Path;

use super::scene::{Ran, Running, Scene};

/// Makes a plan in a folder, on a log of the scene, and returns the project in its events.
fn project_in(scene: &Scene, folder: &Path) -> String {
    std::fs::write(scene.around().join("plan.md"), "Run `echo ok`").expect("a file can be written");
    let log = scene.around().join("log.db").display().to_string();
    let words = ["--store", &log, "run", "../plan.md", "--yes"];
    let ran = Running::start(&mut scene.crewlog_in(folder, &words)).finish().expect(0);
    project_of(scene, &log, ran.stdout.trim())
}

fn project_of(scene: &Scene, log: &str, plan: &str) -> String {
    let events = scene.run(&["--store", log, "events", plan, "-o", "jsonl"]).expect(0);
    let first: serde_json::Value =
        serde_json::from_str(events.stdout.lines().next().expect("it has events")).expect("a line is JSON");
    let tags = first["tags"].as_array().expect("it has tags").iter().filter_map(|tag| tag.as_str());
    tags.filter_map(|tag| tag.strip_prefix("project:")).collect::<Vec<_>>().concat()
}

fn git(folder: &Path, words: &[&str]) -> String {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"];
    let ran = std::process::Command::new("git").args(identity).args(words).current_dir(folder).output();
    let ran = ran.expect("git runs");
    assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).expect("git writes text").trim().to_owned()
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && text.split('-').map(str::len).eq([8, 4, 4, 4, 12])
}

#[test]
fn all_worktrees_and_a_renamed_repository_are_one_project() {
    let scene = Scene::with_repository();
    scene.git(&["worktree", "add", "-q", "../other"]);
    let project = project_in(&scene, &scene.around().join("other"));
    assert!(is_uuid(&project), "{project}");
    assert_eq!(project_in(&scene, scene.folder()), project);
    assert_eq!(scene.read(".git/crewlog/project"), project);

    let renamed = scene.around().join("renamed");
    std::fs::rename(scene.folder(), &renamed).expect("it can be renamed");
    std::fs::create_dir(scene.folder()).expect("a folder can be made");
    assert_eq!(project_in(&scene, &renamed), project);
}

#[test]
fn two_repositories_with_the_same_name_share_nothing() {
    let scene = Scene::new();
    let log = scene.around().join("log.db").display().to_string();
    let folders = ["one/app", "two/app"].map(|name| scene.path(name));
    let ids = folders.each_ref().map(|folder| {
        std::fs::create_dir_all(folder).expect("a folder can be made");
        git(folder, &["init", "-q"]);
        let words = ["--store", &log, "task", "add", "Look at it", "-o", "json"];
        let added = Running::start(&mut scene.crewlog_in(folder, &words)).finish().expect(0).json();
        let plan = added["plan"].as_str().expect("it names its plan").to_owned();
        (project_of(&scene, &log, &plan), plan)
    });
    let [(one, first), (two, second)] = ids;
    assert!(is_uuid(&one) && is_uuid(&two) && one != two, "{one} {two}");
    assert_eq!((first.as_str(), second), ("backlog", format!("backlog-{two}")), "each has a backlog of its own");
    let stats = scene.run(&["--store", &log, "stats", "-o", "json"]).expect(0).json();
    assert_eq!(stats["projects"].as_array().map(Vec::len), Some(2), "{stats}");
}

#[test]
fn clones_are_one_project_when_their_configuration_names_it() {
    let scene = Scene::with_repository();
    let project = project_in(&scene, scene.folder());
    let clone = scene.around().join("clone");
    git(scene.around(), &["clone", "-q", "tree", "clone"]);
    let of_clone = project_in(&scene, &clone);
    assert!(is_uuid(&of_clone) && of_clone != project, "a clone without a name is another project");

    scene.write("crewlog.toml", "project = \"shop\"\n");
    scene.git(&["add", "crewlog.toml"]);
    scene.git(&["commit", "-q", "-m", "name the project"]);
    git(&clone, &["pull", "-q"]);
    assert_eq!([project_in(&scene, scene.folder()), project_in(&scene, &clone)], ["shop", "shop"]);
    scene.write("crewlog.toml", "project = \"two words\"\n");
    scene.run(&["task", "add", "Look"]).expect(1).says(&["crewlog.toml:1:11", "invalid project name"]);
}

#[test]
fn a_folder_without_a_repository_keeps_its_project_id_next_to_its_log() {
    let scene = Scene::new();
    std::fs::create_dir_all(scene.path("below")).expect("a folder can be made");
    let project = project_in(&scene, scene.folder());
    assert!(is_uuid(&project), "{project}");
    std::fs::write(scene.path("plan.md"), "Run `echo ok`").expect("a file can be written");
    assert_eq!(project_in(&scene, &scene.path("below")), project);
    assert_eq!(scene.read(".crewlog/project"), project);
    let renamed = scene.around().join("renamed");
    std::fs::rename(scene.folder(), &renamed).expect("it can be renamed");
    std::fs::create_dir(scene.folder()).expect("a folder can be made");
    assert_eq!(project_in(&scene, &renamed), project);
}

#[test]
fn concurrent_processes_at_first_use_agree_on_one_project() {
    for scene in [Scene::with_repository(), Scene::new()] {
        let logs = (0..8).map(|n| scene.around().join(format!("{n}.db")).display().to_string()).collect::<Vec<_>>();
        let add = |log: &String| scene.start(&["--store", log, "task", "add", "Look at it"]);
        let running = logs.iter().map(add).collect::<Vec<_>>();
        running.into_iter().for_each(|running| drop::<Ran>(running.finish().expect(0)));
        let projects = logs.iter().map(|log| project_of(&scene, log, "backlog")).collect::<Vec<_>>();
        assert!(is_uuid(&projects[0]) && projects.iter().all(|project| *project == projects[0]), "{projects:?}");
        let files =
            [".git/crewlog/project", ".crewlog/project"].map(|file| scene.read_if_any(file).unwrap_or_default());
        assert_eq!(files.concat(), projects[0]);
    }
}
