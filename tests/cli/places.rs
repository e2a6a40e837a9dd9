//! Where the log is: worktrees, folders, explicit locations, and files that are not logs.

use rusqlite::Connection;

use super::scene::{Running, Scene, named_pipe};

#[test]
fn all_worktrees_share_one_log_that_git_neither_lists_nor_cleans() {
    let scene = Scene::with_repository();
    scene.git(&["worktree", "add", "-q", "../other"]);
    let other = scene.around().join("other");
    let (plan, _) = scene.plan("Run `echo ok`");
    std::fs::remove_file(scene.path("plan.md")).expect("it was written");
    std::fs::create_dir_all(other.join("sub/folder")).expect("a folder can be made");
    for folder in [&other, &other.join("sub/folder"), &scene.folder().join(".crewlog")] {
        let ran = Running::start(&mut scene.crewlog_in(folder, &["ls", "-o", "json"])).finish().expect(0);
        assert_eq!(ran.json()["plans"][0]["plan"], plan.as_str(), "from {}", folder.display());
    }
    std::fs::write(other.join("plan.md"), "Run `echo from the other`").expect("a file can be written");
    Running::start(&mut scene.crewlog_in(&other, &["run", "plan.md", "--yes"])).finish().expect(0);
    std::fs::remove_file(other.join("plan.md")).expect("it was written");
    assert!(!other.join(".crewlog").exists());
    assert_eq!(scene.git(&["status", "--porcelain", "--ignored"]).trim(), "!! .crewlog/");
    scene.git(&["clean", "-fdxq"]);
    assert_eq!(scene.run(&["ls", "-o", "json"]).expect(0).json()["plans"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_worktree_of_a_repository_that_was_moved_away_is_refused_and_nothing_is_made() {
    let scene = Scene::with_repository();
    scene.git(&["worktree", "add", "-q", "../other"]);
    let other = scene.around().join("other");
    std::fs::rename(scene.folder(), scene.around().join("moved")).expect("it can be moved");
    let cases: [&[&str]; 3] =
        [&["task", "add", "Look"], &["--store", "../named.db", "task", "add", "Look"], &["init", "--no-hosts"]];
    for words in cases {
        let ran = Running::start(&mut scene.crewlog_in(&other, words)).finish().expect(1);
        ran.says(&["/.git/worktrees/other, which is not there; `git worktree repair` in the repository mends it"]);
    }
    assert!(!scene.folder().exists() && !other.join(".crewlog").exists());
}

#[test]
fn init_creates_the_log_once_and_says_so() {
    let scene = Scene::with_repository();
    assert!(scene.run(&["init", "--no-hosts"]).expect(0).stdout.starts_with("made "));
    let again = scene.run(&["init", "--no-hosts", "-o", "json"]).expect(0).json();
    assert_eq!(again["is_new"], false);
    let exclude = scene.read(".git/info/exclude");
    assert_eq!(exclude.matches("/.crewlog/").count(), 1, "{exclude}");
    scene.run(&["ls"]).expect(0);
    assert_eq!(scene.git(&["status", "--porcelain"]), "");
}

#[test]
fn without_a_repository_the_log_in_a_parent_folder_is_found() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("Run `echo ok`");
    let below = scene.path("a/b");
    std::fs::create_dir_all(&below).expect("a folder can be made");
    let ran = Running::start(&mut scene.crewlog_in(&below, &["ls", "-o", "json"])).finish().expect(0);
    assert_eq!(ran.json()["plans"][0]["plan"], plan.as_str());
}

#[test]
fn nothing_above_a_ceiling_is_looked_at() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("Run `echo ok`");
    let below = scene.path("a/b");
    std::fs::create_dir_all(&below).expect("a folder can be made");
    let real = scene.folder().canonicalize().expect("it is there");
    let run = |ceiling: &std::path::Path, words: &[&str]| {
        let mut command = scene.crewlog_in(&below, words);
        Running::start(command.env("GIT_CEILING_DIRECTORIES", ceiling)).finish()
    };
    for above in [scene.around().canonicalize().expect("it is there"), below.canonicalize().expect("it is there")] {
        assert!(run(&above, &["ls"]).expect(0).stdout.contains(&plan), "{}", above.display());
    }
    run(&real, &["ls"]).expect(1).says(&["there is no log at "]);
    scene.write("crewlog.toml", "project = \"two words\"\n");
    scene.git(&["init", "-q"]);
    run(&real, &["task", "add", "Look at it", "--yes"]).expect(0);
    assert!(below.join(".crewlog/log.db").exists(), "the log, the project and the settings are the folder's own");
}

#[test]
fn a_log_can_be_selected_by_path_url_or_variable() {
    let scene = Scene::with_repository().with_env("CREWLOG_STORE", "named.db");
    scene.write("plan.md", "Run `echo ok`");
    let plan = scene.run(&["run", "plan.md", "--yes"]).expect(0).stdout.trim().to_owned();
    let absolute = format!("sqlite:{}", scene.path("named.db").display());
    for store in ["named.db", "./named.db", "sqlite:named.db", &absolute] {
        let ran = scene.run(&["--store", store, "ls", "-o", "json"]).expect(0);
        assert_eq!(ran.json()["plans"][0]["plan"], plan.as_str(), "{store}");
    }
    scene.run(&["--store", "named.db", "show", "nope"]).expect(4);
    assert!(!scene.path(".crewlog").exists(), "the option and the variable come first");
}

#[test]
fn a_file_that_is_not_a_log_is_refused_and_left_unchanged() {
    let scene = Scene::new();
    scene.write("plan.md", "Run `touch ran`");
    scene.write("text.db", "this is a text, and no database at all; it is long enough to be taken for one".repeat(40));
    std::fs::create_dir(scene.path("folder.db")).expect("a folder can be made");
    let other = Connection::open(scene.path("other.db")).expect("it opens");
    other.execute_batch("CREATE TABLE precious(a); INSERT INTO precious VALUES (1);").expect("it is another's");
    drop(other);
    let contents = |name: &str| std::fs::read(scene.path(name)).expect("it is there");
    let before = (contents("text.db"), contents("other.db"));
    for (store, says) in [
        ("text.db", "text.db is not a usable database"),
        ("folder.db", "folder.db cannot be opened as a log"),
        ("other.db", "other.db is a database of another program"),
        ("nowhere/log.db", "nowhere/log.db"),
        ("mysql://localhost/log", "there is no backend for mysql"),
        ("postgres://ada@127.0.0.1:1/log", "database log on 127.0.0.1:1 cannot be reached"),
        ("", "the path is empty"),
        ("sqlite:", "the path is empty"),
        ("/dev/full", "/dev/full"),
    ] {
        for words in [&["run", "plan.md", "--yes"] as &[&str], &["ls"], &["show", "p"], &["init"]] {
            let ran = scene.run(&[&["--store", store], words].concat()).expect(1);
            ran.says(&["error: ", says]);
            assert_eq!(ran.stdout, "", "{store} {words:?}");
        }
    }
    assert_eq!((contents("text.db"), contents("other.db")), before);
    assert!(!scene.path("ran").exists() && !scene.path("nowhere").exists());
}

#[test]
fn a_locked_log_can_be_read_and_writers_wait_for_it() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("1. Which colour is it?\n");
    let mut holder = Connection::open(scene.path(".crewlog/log.db")).expect("it opens");
    let held = holder.transaction_with_behavior(rusqlite::TransactionBehavior::Exclusive).expect("it locks");
    let waiting = scene.start(&["answer", &format!("{plan}/q1"), "blue"]);
    scene.run(&["show", &plan]).expect(0);
    scene.run(&["events"]).expect(0);
    waiting.finish().expect(1).says(&["log.db was locked by another program for 5 s", "try again"]);
    drop(held);
    assert_eq!(scene.show(&plan)["questions"][0]["answer"], serde_json::Value::Null, "nothing is half done");
    scene.run(&["answer", &format!("{plan}/q1"), "blue"]).expect(0);
}

#[test]
fn a_read_only_log_is_reported_as_such() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let scene = Scene::new();
    scene.write("plan.md", "Run `touch ran`");
    scene.plan("Run `echo ok`").1.expect(0);
    let log = scene.path(".crewlog");
    // The superuser may write anywhere, so another user runs it.
    let (is_superuser, program) = (rustix::process::geteuid().is_root(), scene.around().join("crewlog"));
    std::fs::copy(env!("CARGO_BIN_EXE_crewlog"), &program).expect("the program can be copied");
    for path in [scene.around(), scene.folder(), &program] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("they are ours");
    }
    if is_superuser {
        chown(scene.folder(), Some(65_534), None).expect("the superuser may");
    }
    let read_only = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("they are ours");
    };
    for entry in std::fs::read_dir(&log).expect("it is there").flatten().filter(|entry| entry.path().is_file()) {
        read_only(&entry.path(), 0o444);
    }
    read_only(&log, 0o555);
    let mut command = scene.crewlog(&["run", "plan.md", "--yes"]);
    let mut other = std::process::Command::new(&program);
    other
        .args(command.get_args())
        .current_dir(scene.folder())
        .env_remove("CREWLOG_STORE")
        .stdin(std::process::Stdio::null());
    if is_superuser {
        std::os::unix::process::CommandExt::uid(&mut other, 65_534);
        command = other;
    }
    let ran = Running::start(&mut command).finish();
    read_only(&log, 0o755);
    ran.expect(1).says(&["log.db cannot be written: make the file and its folder writable"]);
    assert!(!scene.path("ran").exists());
}

#[test]
fn remains_of_a_deleted_log_do_not_become_a_new_one() {
    let scene = Scene::new();
    scene.write("plan.md", "Run `true`");
    scene.run(&["--store", "a.db", "run", "plan.md", "--yes"]).expect(0);
    // A database whose tables were all in a missing -wal file; and an empty file.
    let part = Connection::open(scene.path("part.db")).expect("it opens");
    part.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).expect("it can be written");
    drop(part);
    assert!(!scene.path("part.db-wal").exists() && scene.path("part.db").metadata().is_ok_and(|part| part.len() > 0));
    scene.write("empty.db", "");
    for (store, reason) in [("part.db", "it has none of a log's tables"), ("empty.db", "the file is empty")] {
        let before = std::fs::read(scene.path(store)).expect("it is there");
        for words in [&["ls"] as &[&str], &["db", "check"], &["stats"], &["export"]] {
            let ran = scene.run(&[&["--store", store], words].concat()).expect(1);
            let hints =
                ["hint: a log is copied with `crewlog export`", "hint: `crewlog init` makes a new log in an empty"];
            ran.says(&[&format!("holds no log: {reason}"), hints[0], hints[1]]);
        }
        assert!(std::fs::read(scene.path(store)).expect("it is there") == before, "{store}");
    }
    let log = Connection::open(scene.path("a.db")).expect("it opens");
    log.execute_batch("DELETE FROM log").expect("it can be written");
    drop(log);
    for words in [&["ls"] as &[&str], &["db", "check"], &["run", "plan.md", "--yes"]] {
        let ran = scene.run(&[&["--store", "a.db"], words].concat()).expect(1);
        ran.says(&["it has events, and the log's identity is gone"]);
    }
}

#[test]
fn init_makes_a_log_in_an_empty_file() {
    let scene = Scene::new();
    scene.write("empty.db", "");
    for is_new in [true, false] {
        assert_eq!(scene.run(&["--store", "empty.db", "-o", "json", "init"]).expect(0).json()["is_new"], is_new);
    }
}

#[test]
fn a_command_on_a_log_that_is_restored_says_what_was_lost_and_what_to_do() {
    let scene = Scene::new();
    let copy = |from: &str, to: &str| {
        let from = Connection::open(scene.path(from)).expect("it is a database");
        let mut to = Connection::open(scene.path(to)).expect("a database can be made");
        let backup = rusqlite::backup::Backup::new(&from, &mut to).expect("it begins");
        backup.run_to_completion(i32::MAX, std::time::Duration::ZERO, None).expect("it is done");
    };
    scene.plan("Run `true`").1.expect(0);
    copy(".crewlog/log.db", "older.db");
    named_pipe(&scene, "never");
    scene.write("lost.md", "1. Run `read line < never`\n");
    let mut following = scene.start(&["events", "--follow", "--type", "TaskDispatched"]);
    let mut running = scene.start(&["run", "lost.md", "--yes"]);
    let plan = running.stdout.line().trim().to_owned();
    running.stderr.until("START");
    following.stdout.until(&plan);
    copy("older.db", ".crewlog/log.db");
    let says = [
        "error: the log went back to an older state, by a restore or a fail-over: position ",
        "Nothing else is lost, and nothing was appended",
        "hint: `crewlog ls` shows the plans that are left",
    ];
    following.finish().expect(1).says(&says);
    running.finish().expect(1).says(&says).says(&[&format!("hint: crewlog resume {plan}")]);
    scene.run(&["resume", &plan]).expect(4).says(&["in its id", "the newest are "]);
}

#[test]
fn a_run_whose_log_is_deleted_ends_with_an_error() {
    let scene = Scene::new();
    named_pipe(&scene, "never");
    scene.write("plan.md", "1. Run `read line < never`\n");
    let mut running = scene.start(&["run", "plan.md", "--yes"]);
    running.stderr.until("START");
    std::fs::remove_file(scene.path(".crewlog/log.db")).expect("it is there");
    running.finish().expect(1).says(&["error:", "was deleted or replaced while it was in use"]);
}
