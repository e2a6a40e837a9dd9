//! Export, import and check: an export is imported completely or not at all, and a log can be checked.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crewlog_mq::{Append, Clock, EventStore, Expected, Metadata, NewEvent, Options, Timestamp, new_event_id};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::scene::{Ran, Running, Scene, named_pipe};

/// A plan that asked, failed and was retried, up to where it waits for a person; its export and its id.
fn lived(scene: &Scene) -> (String, String) {
    let (plan, _) = scene.plan("# Paint\n1. Which colour is it?\n2. Run `test -e fixed`\n3. Paint it\n");
    scene.run(&["answer", &format!("{plan}/q1"), "blue"]).expect(0);
    scene.run(&["resume", &plan]).expect(100);
    scene.write("fixed", "");
    scene.run(&["retry", &plan]).expect(0);
    scene.run(&["resume", &plan]).expect(5);
    (scene.run(&["export"]).expect(0).stdout, plan)
}

/// Appends events with this data from outside the program.
fn append(scene: &Scene, stream_id: &str, event_type: &str, all_data: &[String]) {
    append_under(scene, stream_id, event_type, all_data, &Metadata::default());
}

fn append_under(scene: &Scene, stream_id: &str, event_type: &str, all_data: &[String], metadata: &Metadata) {
    let path = scene.path(".crewlog/log.db");
    let event = |data: &String| NewEvent::from_json(event_type, "1.0", data.clone(), metadata);
    let events = all_data.iter().map(|data| event(data).expect("it is JSON")).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    runtime.block_on(async {
        let store = EventStore::open(path.to_str().expect("it is text")).await.expect("the log opens");
        store
            .append(Append::to(stream_id, "a", Expected::Any, events))
            .await
            .expect("an append of any kind is accepted");
    });
}

#[test]
fn a_cause_outside_the_log_is_noted_and_imported() {
    let (here, there) = (Scene::new(), Scene::new());
    here.run(&["init"]).expect(0);
    let metadata = Metadata { causation_id: Some(new_event_id()), ..Metadata::default() };
    append_under(&here, "raw", "Noted", &["1".into(), "2".into()], &metadata);
    let found = here.run(&["db", "check"]).expect(0).stdout;
    assert!(found.contains("\nnote: causes outside this log: 2, the first at position "), "{found}");
    import(&there, &here.run(&["export"]).expect(0).stdout).expect(0);
    let checked = there.run(&["db", "check", "-o", "json"]).expect(0).json();
    assert_eq!(checked["foreign_causes"]["count"], 2);
    assert_eq!(
        (&checked["findings"], checked["foreign_causes"]["positions"].as_array().map(Vec::len)),
        (&json!([]), Some(2))
    );
}

fn import(scene: &Scene, export: &str) -> Ran {
    scene.write("export.jsonl", export);
    scene.run(&["import", "export.jsonl"])
}

/// Every value of every table of the log, which a refused import must not change. Opening the file may still tidy
/// its layout.
fn tables(scene: &Scene) -> Vec<String> {
    let database = rusqlite::Connection::open(scene.path(".crewlog/log.db")).expect("it is a database");
    let rows_of = |table: &str| {
        let mut select = database.prepare(&format!("SELECT * FROM {table}")).expect("it is a table");
        let n_columns = select.column_count();
        let row_of = |row: &rusqlite::Row<'_>| {
            let columns = (0..n_columns).map(|column| row.get::<_, rusqlite::types::Value>(column));
            Ok(format!("{table}: {:?}", columns.collect::<Result<Vec<_>, _>>()?))
        };
        let rows = select.query_map([], row_of).expect("it can be read");
        rows.map(|row| row.expect("it can be read")).collect::<Vec<_>>()
    };
    ["log", "aggregates", "events", "tags"].into_iter().flat_map(rows_of).collect()
}

#[test]
fn an_exported_log_behaves_identically_elsewhere_at_every_position() {
    let (here, there) = (Scene::new(), Scene::new());
    let (export, plan) = lived(&here);
    there.write("export.jsonl", &export);
    let store = ["--store", "other.db"];
    let elsewhere = |words: &[&str]| there.run(&[&store, words].concat());
    elsewhere(&["import", "export.jsonl"]).expect(0);
    let mut n_compared = 0;
    let mut compare = |words: &[&str]| {
        let (one, other) = (here.run(words), elsewhere(words));
        assert_eq!((one.status.code(), &one.stdout), (other.status.code(), &other.stdout), "{words:?}");
        n_compared += usize::from(one.status.success());
    };
    compare(&["export"]);
    compare(&["export", &plan]);
    compare(&["events", "-o", "jsonl"]);
    compare(&["events", &plan]);
    compare(&["show", &plan, "-o", "json"]);
    for form in ["text", "json", "jsonl"] {
        compare(&["replay", &plan, "-o", form]);
        compare(&["replay", &plan, "--failure", "-o", form]);
        compare(&["diff", &format!("{plan}@1"), &plan, "-o", form]);
    }
    // As text they have the name of the folder, and ages.
    for form in ["json", "jsonl"] {
        compare(&["stats", "-o", form]);
        compare(&["leases", "--conflicts", "--all", "-o", form]);
    }
    let n_events = here.events().len();
    assert!(n_events >= 18, "much has happened: {n_events}");
    for at in (1..=n_events).map(|at| at.to_string()) {
        compare(&["show", &plan, "--at", &at, "-o", "json"]);
        compare(&["ls", "--at", &at, "-o", "json"]);
        compare(&["events", "--up-to", &at, "-o", "jsonl"]);
    }
    assert!(n_compared > 3 * n_events, "only {n_compared} had an answer");
    let after = |said: Ran| said.expect(0).json()["status"].clone();
    let done = ["task", "done", &format!("{plan}/3"), "it is blue", "-o", "json"];
    assert_eq!(after(here.run(&done)), after(elsewhere(&done)), "and it goes on");
    elsewhere(&["resume", &plan]).expect(0);
}

#[test]
fn repeating_an_import_adds_only_new_events() {
    let (here, there) = (Scene::new(), Scene::new());
    let (first, plan) = lived(&here);
    let n_first = first.lines().count() - 1;
    here.run(&["task", "done", &format!("{plan}/3")]).expect(0);
    let second = here.run(&["export"]).expect(0).stdout;
    let n_second = second.lines().count() - 1;
    for (export, added, known, head) in [
        (&first, n_first, 0, n_first),
        (&first, 0, n_first, n_first),
        (&second, n_second - n_first, n_first, n_second),
        (&second, 0, n_second, n_second),
        (&first, 0, n_first, n_second),
    ] {
        let ran = import(&there, export).expect(0);
        let (added, known, head) =
            (format!("{added} event"), format!("{known} known"), format!("at position {head}\n"));
        assert!(
            ran.stdout.starts_with(&added) && ran.stdout.contains(&known) && ran.stdout.ends_with(&head),
            "{ran:?}"
        );
    }
    assert_eq!(there.run(&["export"]).expect(0).stdout, second);
}

#[test]
fn multi_line_data_keeps_its_bytes_and_an_error_names_its_line() {
    let (here, there) = (Scene::new(), Scene::new());
    here.run(&["init"]).expect(0);
    let data =
        ["{\r\n\t\"a\" : [1.0,\n\n1e2]\n}", "\"\\u0000\\u00e9\u{e9}\"", "{\n}", " {\"same\":1,\n\"same\":2} \n", "7"];
    append(&here, "raw", "Noted", &data.map(str::to_owned));
    let export = here.run(&["export"]).expect(0).stdout;
    assert_eq!(export.lines().count(), 1 + 5 + 4 + 1 + 1, "values have several lines");
    let broken = export.replace("\"data\":7", "\"data\":7,\"date\":7");
    import(&there, &broken).expect(1).says(&["export.jsonl, line 12: ", "unknown field `date`"]);
    import(&there, &export).expect(0);
    assert_eq!(there.run(&["export"]).expect(0).stdout, export);
    import(&here, &export).expect(0);
    let mut piped = Running::start(there.crewlog(&["import", "-", "-q"]).stdin(Stdio::piped()));
    // Any white space, or none, may separate values.
    piped.types(&export.replace("}\n{\"position\"", "} \t{\"position\""));
    piped.close_input();
    assert!(piped.finish().expect(0).stdout.starts_with("0 events added, 5 known"));
}

/// One edit of the lines of a valid export, and the expected error.
type Edit = (&'static str, fn(&mut Vec<String>), &'static [&'static str]);

/// The same within a line: `lines[at]` with `from` replaced.
fn edit(lines: &mut [String], at: usize, from: &str, to: &str) {
    let edited = lines[at].replacen(from, to, 1);
    assert_ne!(edited, lines[at], "the edit changes the line");
    lines[at] = edited;
}

/// The value of a key in a line.
fn value(line: &str, key: &str) -> Value {
    serde_json::from_str::<Value>(line).expect("it is JSON")[key].clone()
}

/// Writes the id of an event in another way.
fn edit_id(lines: &mut [String], write: fn(&str) -> String) {
    let id = value(&lines[9], "event_id");
    let id = id.as_str().expect("a text");
    edit(lines, 9, id, &write(id));
}

const HOSTILE: &[Edit] = &[
    ("nothing", |lines| lines.clear(), &["it is empty"]),
    (
        "no header",
        |lines| drop(lines.remove(0)),
        &["line 1: ", "it does not begin with the header of an export: missing"],
    ),
    ("no JSON", |lines| lines[0] = "Dear all,".into(), &["line 1: ", "expected value"]),
    ("a newer form", |lines| edit(lines, 0, "\"export\":1", "\"export\":2"), &["version 2, and this program reads 1"]),
    ("a newer log", |lines| edit(lines, 0, "\"format\":2", "\"format\":9"), &["log format 9", "install a newer one"]),
    ("an odd id", |lines| edit(lines, 0, "\"log\":\"", "\"log\":\"{"), &["line 1: ", "not a UUID"]),
    ("an odd time", |lines| edit(lines, 0, "Z\"", "+00:00\""), &["line 1: ", "not RFC 3339 in UTC"]),
    (
        "a head too low",
        |lines| edit(lines, 0, "\"head\":", "\"head\":1,\"was\":"),
        &["at position 1, and there is more"],
    ),
    ("a head below all", |lines| edit(lines, 0, "\"head\":", "\"head\":-"), &["line 1: ", "no log ends there"]),
    ("a line too few", |lines| drop(lines.pop()), &["it was cut off, or is that of one plan"]),
    (
        "half a line",
        |lines| lines.last_mut().expect("it has lines").truncate(99),
        &["it ends in the middle of a value"],
    ),
    ("a key too many", |lines| edit(lines, 9, "{", "{\"more\":1,"), &["line 10: ", "unknown field `more`"]),
    ("a key twice", |lines| edit(lines, 9, "{", "{\"sequence\":1,"), &["line 10: ", "duplicate field `sequence`"]),
    ("a key too few", |lines| edit(lines, 9, "\"data\"", "\"date\""), &["line 10: ", "unknown field `date`"]),
    ("another sort", |lines| edit(lines, 9, "\"tags\":[", "\"tags\":[1,"), &["line 10: ", "expected a string"]),
    ("no event", |lines| lines.insert(9, "null".into()), &["line 10: ", "invalid type: null"]),
    ("an odd event id", |lines| edit(lines, 9, "\"event_id\":\"0", "\"event_id\":\""), &["line 10: ", "not a UUID"]),
    ("an id in capitals", |lines| edit_id(lines, |id| id.to_uppercase()), &["line 10: ", "in small letters"]),
    ("an id in braces", |lines| edit_id(lines, |id| format!("{{{id}}}")), &["line 10: ", "not a UUID"]),
    ("an id without dashes", |lines| edit_id(lines, |id| id.replace('-', "")), &["line 10: ", "with dashes"]),
    ("a time of less", |lines| edit(lines, 9, "Z\"", "0Z\""), &["line 10: ", "six digits"]),
    ("a gap", |lines| drop(lines.remove(9)), &["line 10: ", "position 10 where 9 should be", "export of one plan"]),
    ("an event twice", |lines| lines.insert(9, lines[9].clone()), &["line 11: ", "position 9 where 10 should be"]),
    ("another order", |lines| lines.swap(9, 10), &["line 10: ", "position 10 where 9 should be"]),
    (
        "no type",
        |lines| {
            let event_type = format!("\"event_type\":{}", value(&lines[9], "event_type"));
            edit(lines, 9, &event_type, "\"event_type\":\"\"");
        },
        &["line 10: ", "at position 9: the event type is empty"],
    ),
    (
        "an unsorted tag",
        |lines| edit(lines, 9, "\"tags\":[", "\"tags\":[\"z\","),
        &["at position 9: the tags are not sorted"],
    ),
    (
        "an id twice",
        |lines| {
            let (first, second) = (value(&lines[8], "event_id"), value(&lines[9], "event_id"));
            edit(lines, 9, &second.to_string(), &first.to_string());
        },
        &["line 10: ", "is that of position 8 too"],
    ),
    (
        "time back",
        |lines| {
            let created_at = value(&lines[9], "created_at");
            edit(lines, 9, &created_at.to_string(), "\"2001-01-01T00:00:00.000000Z\"");
        },
        &["line 10: ", "at position 9: created_at runs backwards"],
    ),
    (
        "a sequence too high",
        |lines| edit(lines, 9, "\"sequence\":", "\"sequence\":1"),
        &["line 10: ", "at position 9: "],
    ),
    (
        "a start too low",
        |lines| edit(lines, 9, "\"append_start\":", "\"append_start\":-"),
        &["line 10: ", "append_start is -"],
    ),
];

#[test]
fn an_impossible_import_is_refused_and_leaves_the_log_unchanged_byte_for_byte() {
    let (here, there) = (Scene::new(), Scene::new());
    let (export, _) = lived(&here);
    // The log already has the first complete append.
    let lines: Vec<_> = export.lines().map(str::to_owned).collect();
    let n_first = lines.iter().skip(1).take_while(|line| value(line, "append_start") == 1).count();
    let head = format!("\"head\":{}}}", lines.len() - 1);
    let first = lines[..=n_first].join("\n").replace(&head, &format!("\"head\":{n_first}}}"));
    assert!(n_first < 8, "the edits are behind it");
    import(&there, &first).expect(0);
    let before = tables(&there);
    for (case, edit, said) in HOSTILE {
        let mut edited = lines.clone();
        edit(&mut edited);
        let ran = import(&there, &edited.join("\n")).expect(1);
        let place = "error: export.jsonl";
        assert!(
            ran.stderr.contains(place) && ran.stderr.contains("; nothing was imported\n  hint: "),
            "{case}: {ran:?}"
        );
        for part in *said {
            assert!(ran.stderr.contains(part), "{case}: {part:?} is not said:\n{}", ran.stderr);
        }
        assert!(tables(&there) == before, "{case}: the log has changed");
    }
    import(&there, &export).expect(0);
    assert_eq!(there.run(&["export"]).expect(0).stdout, export);
}

#[test]
fn importing_another_log_or_a_fork_exits_with_9_and_a_plan_export_is_refused() {
    let (here, there) = (Scene::new(), Scene::new());
    let (export, plan) = lived(&here);
    there.plan("Run `true`").1.expect(0);
    let before = tables(&there);
    let n_events = format!("with {} events", there.events().len());
    import(&there, &export).expect(9).says(&["this is log ", &n_events, "a new log"]);
    assert!(tables(&there) == before);
    let before = tables(&here);
    let forked = export.replacen("Which colour", "What colour", 1);
    import(&here, &forked).expect(9).says(&["line 3: ", "differ at position 2, in data"]);
    assert!(tables(&here) == before);
    here.plan("Run `true`").1.expect(0);
    let first = here.run(&["export", &plan]).expect(0).stdout;
    let export = here.run(&["export"]).expect(0).stdout;
    let (cut_off, _last) = export.trim_end().rsplit_once('\n').expect("it has lines");
    let (second, _) = here.plan("Run `true`");
    let second = here.run(&["export", &second]).expect(0).stdout;
    let empty = Scene::new();
    import(&empty, cut_off).expect(1).says(&["it was cut off, or is that of one plan"]);
    import(&empty, &first).expect(1).says(&["the export of one plan: `crewlog export` without a plan"]);
    assert!(empty.run(&["export"]).expect(0).stdout.ends_with("\"head\":0}\n"), "all or nothing");
    import(&Scene::new(), &second)
        .expect(1)
        .says(&["line 2: ", "the export of one plan: `crewlog export` without a plan"]);
}

#[test]
fn an_obviously_invalid_export_creates_no_log() {
    let scene = Scene::new();
    let no_log = |folder: &Path| std::fs::read_dir(folder).expect("it is a folder").count() == 1;
    for text in ["", "Dear all,", "{\"export\":1}", "{\"position\":1}", "[1]", "{\"export\":1,\"export\":1}"] {
        import(&scene, text).expect(1).says(&["error: export.jsonl, line 1: ", "hint: "]);
        assert!(no_log(scene.folder()), "{text}");
    }
    scene.run(&["import", "nowhere.jsonl"]).expect(1).says(&["nowhere.jsonl cannot be read", "hint: "]);
    assert!(!scene.path(".crewlog").exists());
    let (here, there) = (Scene::new(), Scene::new());
    let (export, _) = lived(&here);
    let cut = export.lines().take(5).collect::<Vec<_>>().join("\n");
    import(&there, &cut).expect(1).says(&["was made for it, and is empty"]);
    import(&there, &export).expect(0);
}

#[test]
fn an_endless_value_is_refused_before_it_fills_memory() {
    let scene = Scene::new();
    scene.run(&["init"]).expect(0);
    let header = scene.run(&["export"]).expect(0).stdout.replace("\"head\":0", "\"head\":1");
    let ran = import(&scene, &format!("{header}{{\"stream_id\":\"{}", "x".repeat(40 << 20)));
    ran.expect(1).says(&["a value exceeds the limit of 3", " bytes for an event"]);
}

/// Appends more than a pipe and all buffers hold: after typing three of these lines, the second was certainly read.
fn append_long_lines(scene: &Scene) {
    let data = (0..4).map(|n| format!("\"{n}{}\"", "x".repeat(1 << 20))).collect::<Vec<_>>();
    append(scene, "raw", "Noted", &data);
}

/// A scene with a folder for temporary files, next to its working directory.
fn scene_with_temporary_folder() -> (Scene, PathBuf) {
    let scene = Scene::new();
    let folder = scene.around().join("temporary");
    std::fs::create_dir(&folder).expect("a folder can be made");
    let path = folder.to_str().expect("it is text").to_owned();
    (scene.with_env("TMPDIR", path), folder)
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).expect("it is a folder").next().is_none()
}

#[test]
fn an_import_killed_midway_leaves_nothing() {
    let (here, (there, temporary)) = (Scene::new(), scene_with_temporary_folder());
    here.run(&["init"]).expect(0);
    append_long_lines(&here);
    let export = here.run(&["export"]).expect(0).stdout;
    there.run(&["init"]).expect(0);
    let before = there.run(&["export"]).expect(0).stdout;
    let mut importing = Running::start(there.crewlog(&["import", "-"]).stdin(Stdio::piped()));
    for line in export.lines().take(4) {
        importing.types(line);
    }
    importing.signal(Signal::KILL);
    assert!(!importing.finish().status.success());
    assert!(is_empty(&temporary), "what it kept went with it");
    assert_eq!(there.run(&["export"]).expect(0).stdout, before);
    there.run(&["db", "check"]).expect(0);
    import(&there, &export).expect(0);
    assert_eq!(there.run(&["export"]).expect(0).stdout, export);
}

#[test]
fn an_import_from_an_open_pipe_does_not_block_appends() {
    let (here, (there, temporary)) = (Scene::new(), scene_with_temporary_folder());
    here.run(&["init"]).expect(0);
    append_long_lines(&here);
    let export = here.run(&["export"]).expect(0).stdout;
    import(&there, &export).expect(0);
    named_pipe(&there, "pipe");
    for file in ["-", "pipe"] {
        let mut importing = Running::start(there.crewlog(&["import", file]).stdin(Stdio::piped()));
        let mut pipe = (file == "pipe").then(|| File::create(there.path("pipe")).expect("the pipe opens"));
        let mut lines = export.lines();
        for line in lines.by_ref().take(4) {
            match &mut pipe {
                Some(pipe) => writeln!(pipe, "{line}").expect("it reads"),
                None => importing.types(line),
            }
        }
        let (_, ran) = there.plan("Run `true`");
        ran.expect(0);
        for line in lines {
            match &mut pipe {
                Some(pipe) => writeln!(pipe, "{line}").expect("it reads"),
                None => importing.types(line),
            }
        }
        drop(pipe);
        importing.close_input();
        assert!(importing.finish().expect(0).stdout.starts_with("0 events added, 4 known"));
        assert!(is_empty(&temporary));
    }
}

#[test]
fn a_pipe_that_cannot_be_buffered_is_refused_with_a_hint() {
    let (here, there) = (Scene::new(), Scene::new());
    here.run(&["init"]).expect(0);
    append_long_lines(&here);
    there.write("export.jsonl", here.run(&["export"]).expect(0).stdout);
    let program = env!("CARGO_BIN_EXE_crewlog");
    // The file size is limited to some blocks, as on a full disk.
    let full = format!("trap '' XFSZ; ulimit -f 64; cat export.jsonl | {program} import -");
    let nowhere = format!("cat export.jsonl | TMPDIR=/nowhere {program} import -");
    for (line, said) in [(full, "File too large"), (nowhere, "/nowhere")] {
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(there.folder()).env_remove("CREWLOG_STORE").stdin(Stdio::null());
        let ran = Running::start(&mut shell).finish().expect(1);
        ran.says(&["error: cannot buffer standard input in ", said, "; nothing was imported\n  hint: ", "TMPDIR"]);
    }
    assert!(!there.path(".crewlog").exists());
}

#[cfg(feature = "faults")]
#[test]
fn an_import_that_dies_during_its_commit_leaves_all_or_nothing() {
    let here = Scene::new();
    let (export, _) = lived(&here);
    for (order, is_there) in [("before:9", false), ("after:9", true)] {
        let there = Scene::new();
        there.run(&["init"]).expect(0);
        there.write("export.jsonl", &export);
        let before = there.run(&["export"]).expect(0).stdout;
        let mut dying = there.crewlog(&["import", "export.jsonl"]);
        let died = Running::start(dying.env("CREWLOG_KILL", order)).finish();
        assert!(!died.status.success() && died.stdout.is_empty(), "{died:?}");
        assert_eq!(there.run(&["export"]).expect(0).stdout, if is_there { export.clone() } else { before }, "{order}");
        import(&there, &export).expect(0);
        assert_eq!(there.run(&["export"]).expect(0).stdout, export);
    }
}

#[test]
fn db_check_passes_a_sound_log_and_reports_findings_with_positions() {
    let scene = Scene::new();
    scene.run(&["db", "check"]).expect(1).says(&["there is no log"]);
    let (_, plan) = lived(&scene);
    append(&scene, "mine", "Anything", &["{}".into()]);
    let n_events = scene.events().len();
    let sound = scene.run(&["db", "check"]).expect(0).stdout;
    assert!(sound.starts_with(&format!("ok: {n_events} events, log ")), "{sound}");
    append(&scene, "planner", "TasksPlanned", &["{\"tasks\":\"\u{1b}[2J\"}".replace('\u{1b}', "\\u001b")]);
    append(&scene, "task", "Nonsense", &["{}".into()]);
    let database = rusqlite::Connection::open(scene.path(".crewlog/log.db")).expect("it is a database");
    database.execute("UPDATE events SET created_at = 1 WHERE position = ?1", [n_events as i64]).expect("it is a table");
    let found = scene.run(&["db", "check"]).expect(1);
    let lines: Vec<_> = found.stdout.lines().collect();
    let (planner, task) =
        (format!("position {}: the event", n_events + 1), format!("position {}: the event", n_events + 2));
    assert_eq!(lines.len(), 3, "{found:?}");
    assert!(lines[0].starts_with(&format!("position {n_events}: created_at runs backwards")), "{found:?}");
    assert!(
        lines[1].starts_with(&planner) && lines[1].contains("(TasksPlanned, version 1.0) cannot be read"),
        "{found:?}"
    );
    assert!(lines[2].starts_with(&task) && lines[2].contains("Nonsense"), "{found:?}");
    assert!(!plan.is_empty() && found.stderr.is_empty(), "{found:?}");
    append(&scene, "task", "Nonsense", &vec!["{}".to_owned(); 120]);
    let found = scene.run(&["db", "check"]).expect(1).stdout;
    assert_eq!(found.lines().count(), 101);
    assert!(found.lines().last().is_some_and(|line| line.contains("there is more than these 100")), "{found}");
}

#[test]
fn db_check_reports_unreadable_conflict_and_statistics_events() {
    let scene = Scene::new();
    scene.run(&["init"]).expect(0);
    for (stream, event_type) in [("conflicts", "ConflictDetected"), ("statistics", "StatisticsProjected")] {
        append(&scene, stream, event_type, &["{\"nothing\":1}".into()]);
    }
    let found = scene.run(&["db", "check"]).expect(1).stdout;
    let lines: Vec<_> = found.lines().collect();
    assert!(lines[0].starts_with("position 1: ") && lines[0].contains("ConflictDetected, version 1.0"), "{found}");
    assert!(lines[1].starts_with("position 2: ") && lines[1].contains("StatisticsProjected, version"), "{found}");
    assert_eq!(lines.len(), 2, "{found}");
}

/// The example in the section of a command in docs/json.md.
fn documented(section: &str) -> Value {
    let page = include_str!("../../docs/json.md");
    let section = page.split_once(&format!("\n## {section}\n")).expect("the section is there").1;
    let example = section.split_once("\n```json\n").and_then(|(_, rest)| rest.split_once("\n```"));
    serde_json::from_str(example.expect("it has an example").0).expect("it is JSON")
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn import_and_check_print_the_documented_keys() {
    let (here, there) = (Scene::new(), Scene::new());
    let (export, _) = lived(&here);
    there.write("export.jsonl", &export);
    let imported = there.run(&["import", "export.jsonl", "-o", "json"]).expect(0).json();
    assert_eq!(keys(&imported), keys(&documented("`import FILE`")));
    append(&there, "task", "Nonsense", &["{}".into()]);
    let checked = there.run(&["db", "check", "-o", "json"]).expect(1).json();
    assert_eq!(keys(&checked), keys(&documented("`db check`")));
    assert_eq!(keys(&checked["findings"][0]), keys(&documented("`db check`")["findings"][0]));
    let line = there.run(&["db", "check", "-o", "jsonl"]).expect(1).stdout;
    assert_eq!(serde_json::from_str::<Value>(line.trim()).expect("one line of JSON"), checked);
    assert_eq!(imported["log"], checked["log"]);
    assert_eq!(imported["added"], imported["head"]);
}

#[test]
fn control_characters_in_an_imported_plan_id_are_escaped_and_quoted_in_hints() {
    let (here, there) = (Scene::new(), Scene::new());
    let (plan, _) = here.plan("1. Which colour is it?\n");
    let export = here.run(&["export"]).expect(0).stdout.replace(&plan, "x\\u001b[31m;id #");
    import(&there, &export).expect(0);
    let shown = [&["ls"] as &[&str], &["show", "x"], &["pause", "x"], &["resume", "x"], &["work", "--until-idle"]]
        .map(|words| there.run(words));
    for ran in &shown {
        assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "{ran:?}");
    }
    assert!(shown[1].stdout.contains("crewlog answer 'x\\u{1b}[31m;id #/q1'"), "{}", shown[1].stdout);
}

/// A clock that shows the last microsecond of the year 9999.
struct Latest;

impl Clock for Latest {
    fn wall(&self) -> Timestamp {
        Timestamp(253_402_300_799_999_999)
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

#[test]
fn a_log_at_the_largest_time_is_exported_and_imported() {
    let (here, there) = (Scene::new(), Scene::new());
    let path = here.path("late.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    runtime.block_on(async {
        let options = Options { clock: Arc::new(Latest), ..Options::default() };
        let store = EventStore::open_with(path.to_str().expect("it is text"), options).await.expect("the log opens");
        let event = NewEvent::from_json("Noted", "1.0", "1".to_owned(), &Metadata::default()).expect("it is JSON");
        store.append(Append::to("raw", "a", Expected::Any, vec![event])).await.expect("it is accepted");
        store.close().await;
    });
    let export = here.run(&["--store", "late.db", "export"]).expect(0).stdout;
    let latest = "9999-12-31T23:59:59.999999Z";
    assert_eq!(export.matches(latest).count(), 2, "{export}");
    import(&there, &export).expect(0);
    assert_eq!(there.run(&["export"]).expect(0).stdout, export);
    assert!(there.run(&["db", "check"]).expect(0).stdout.starts_with("ok: 1 event"));
}
