//! `why FILE` and `blame`: the history of a file by its commits and leases.

use serde_json::{Value, json};

use super::commits::{connected, git};

#[test]
fn blame_names_the_agent_of_each_line_and_why_lists_the_past_of_a_file() {
    let rig = connected();
    rig.0.write("victim.txt", "base\nof bob\n");
    git(&rig, Some("bob"), &["commit", "-qam", "by bob"]).expect(0);
    rig.asks("bob", "Stop");
    assert_eq!(rig.edits("ann", "claude", "victim.txt"), "");
    rig.0.write("victim.txt", "base\nof bob\nof ann\n");
    let blame = rig.0.run(&["blame", "victim.txt", "-o", "json"]).expect(0).json();
    let line = |n: usize| ["text", "agent", "by", "lease"].map(|key| blame["lines"][n][key].clone());
    assert_eq!(line(0)[..3], [json!("base"), Value::Null, Value::Null], "nobody held it: {blame:#}");
    assert_eq!(line(1), [json!("of bob"), json!("bob"), json!("commit"), json!(1)]);
    assert_eq!(line(2), [json!("of ann"), json!("ann"), json!("lease"), json!(2)]);
    assert_eq!((&blame["lines"][2]["commit"], &blame["lines"][2]["at"]), (&Value::Null, &Value::Null));
    let one = rig.0.run(&["blame", "victim.txt:2"]).expect(0).stdout;
    let head = rig.0.git(&["rev-parse", "HEAD"]);
    assert!(one.starts_with(&head[..10]) && one.contains("bob") && one.ends_with("2  of bob\n"), "{one}");
    assert_eq!(one.lines().count(), 1);

    let why = rig.0.run(&["why", "victim.txt", "-o", "json"]).expect(0).json();
    let past: Vec<_> = why["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|past| (past["event"].as_str().unwrap(), past["agent"].as_str().unwrap()))
        .collect();
    assert_eq!(past, [("LeasesGranted", "ann"), ("FilesCommitted", "bob"), ("LeasesGranted", "bob")]);
    assert_eq!(why["history"][1]["commit"], head.trim());
    assert!(why["history"][0]["until"].is_null() && why["history"][2]["until"].is_string(), "{why:#}");
    let lease = &why["leases"][0];
    assert_eq!((&lease["call"], &lease["since"]), (&json!("edit"), &why["history"][0]["at"]));
}

#[test]
fn blame_refuses_what_has_no_lines() {
    let rig = connected();
    rig.0.write("new.txt", "x\n");
    rig.0.write("binary", "a\0b");
    rig.0.write("empty", "");
    git(&rig, None, &["add", "binary", "empty"]).expect(0);
    git(&rig, None, &["commit", "-qm", "binary"]).expect(0);
    for (file, code, says) in [
        ("none.txt", 4, "none.txt cannot be read: No such file"),
        ("new.txt", 1, "git knows no lines of new.txt"),
        ("a.txt:0", 1, "a.txt has lines 1 to 1, and no line 0"),
        ("a.txt:2", 1, "a.txt has lines 1 to 1, and no line 2"),
        ("binary", 1, "binary is a binary file, which has no lines"),
        ("../elsewhere", 1, "outside the repository"),
        (".git", 4, ".git cannot be read"),
    ] {
        rig.0.run(&["blame", file]).expect(code).says(&[says]);
    }
    rig.0.run(&["blame", "empty"]).expect(0);
    rig.0.write("a:1", "x\n");
    rig.0.run(&["blame", "a:1"]).expect(1).says(&["git knows no lines of a:1"]);
}
