//! Files of Task Master and beads, and their trees.

use std::fmt::Write as _;

use crate::lines::{At, Lines};
use crate::parse::edges::settle;
use crate::parse::json::{beads, task_master};
use crate::parse::tree::{Tree, When, diagnostics};
use crate::parse::{Format, ReadOptions};
use crate::plan::{Mark, NodeKind};
use crate::validity::{InvalidPlan, TASKS_MAX};

/// The tree of a file: one node per line, indented below its group, then the warnings; or the error.
fn read(format: Format, text: &str) -> String {
    shown(text, if format == Format::Beads { beads(text) } else { task_master(text, None) })
}

fn shown(text: &str, tree: Result<Tree, InvalidPlan>) -> String {
    let tree = match tree {
        Ok(tree) => tree,
        Err(error) => return error.to_string(),
    };
    let mut tree = tree;
    assert!(!tree.is_ordered && tree.parts.is_empty() && tree.context.is_empty());
    settle(&mut tree);
    let mut out = String::new();
    for (place, node) in tree.nodes.iter().enumerate() {
        let mut depth = 0;
        let mut up = node.parent;
        while let Some(parent) = up {
            assert!(parent < place && tree.nodes[parent].is_group);
            (depth, up) = (depth + 1, tree.nodes[parent].parent);
        }
        assert_eq!(node.task.spans[0].start, node.at);
        assert!(text[node.at..].starts_with('{') && text[..node.task.spans[0].end].ends_with('}'));
        let name = node.name.as_deref().unwrap();
        write!(out, "{}{name} {:?}", "  ".repeat(depth), node.task.mark).unwrap();
        out += if node.is_group { " group" } else { "" };
        match node.state {
            Some(state) => write!(out, " {}", &text[state.start..state.end]).unwrap(),
            None => out += " -",
        }
        for reference in &node.waits_for {
            assert!(text[reference.at..].starts_with(['"', '-']) || text.as_bytes()[reference.at].is_ascii_digit());
            write!(out, " <{}", reference.name).unwrap();
        }
        if let When::Failed(reference) = &node.when {
            write!(out, " if {} fails", reference.name).unwrap();
        }
        out.push('\n');
    }
    for warning in diagnostics(tree.warnings, &Lines::new(text)) {
        writeln!(out, "! {}:{} {}", warning.line, warning.column, warning.message).unwrap();
    }
    out
}

fn check(format: Format, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(read(format, text).trim_end(), *expected, "{text}");
        let with_mark = read(format, &format!("\u{feff}{text}"));
        let told = |line: &&str| !line.starts_with('!');
        assert!(with_mark.lines().filter(told).eq(expected.lines().filter(told)) || expected.contains("not valid"));
    }
}

#[test]
fn task_master_states_are_marks() {
    let states = [
        ("\"pending\"", Mark::Open),
        ("\"in-progress\"", Mark::InProgress),
        ("\"review\"", Mark::InProgress),
        ("\"done\"", Mark::Done),
        ("\"Completed\"", Mark::Done),
        ("\"deferred\"", Mark::Deferred),
        ("\"blocked\"", Mark::Deferred),
        ("\"cancelled\"", Mark::Cancelled),
        ("\"\"", Mark::Open),
        ("null", Mark::Open),
    ];
    for (state, mark) in states {
        let text = format!(r#"{{"tasks":[{{"id":1,"title":"A","status":{state}}}]}}"#);
        let tree = task_master(&text, None).unwrap();
        assert_eq!((tree.nodes[0].task.mark, tree.warnings.len()), (mark, 0), "{state}");
    }
}

#[test]
fn beads_states_are_marks() {
    let states = [
        (r#""open""#, Mark::Open),
        (r#""blocked""#, Mark::Deferred),
        (r#""in_progress""#, Mark::InProgress),
        (r#""hooked""#, Mark::InProgress),
        (r#""closed""#, Mark::Done),
        (r#""deferred""#, Mark::Deferred),
        (r#""pinned""#, Mark::Deferred),
        (r#""open","defer_until":"2031-01-01T00:00:00Z""#, Mark::Deferred),
        (r#""closed","defer_until":"2031-01-01T00:00:00Z""#, Mark::Done),
        (r#""open","defer_until":null"#, Mark::Open),
    ];
    for (state, mark) in states {
        let text = format!(r#"{{"id":"a-1","title":"A","status":{state}}}"#);
        let tree = beads(&text).unwrap();
        assert_eq!((tree.nodes[0].task.mark, tree.warnings.len()), (mark, 0), "{state}");
    }
}

#[test]
fn subtasks_are_parts_of_their_task() {
    check(
        Format::TaskMaster,
        &[
            (
                r#"{"master":{"tasks":[
{"id":1,"title":"A","status":"pending","subtasks":[
 {"id":1,"title":"a","status":"done","parentId":"undefined"},
 {"id":2,"title":"b","status":"pending","dependencies":[1,3,"3.1",3.1]}]},
{"id":"2","title":"B","status":"done","dependencies":[],"subtasks":[]},
{"id":3,"title":"C","status":"pending","dependencies":[1,"2"],"subtasks":[
 {"id":"3.1","title":"c","dependencies":["3.1"]}]}],"metadata":{}}}"#,
                r#"1 Open group "pending"
  1.1 Done "done"
  1.2 Open "pending" <1.1 <3 <3.1 <3.1
2 Done "done"
3 Open group "pending" <1 <2
  3.1 Open - <3.1"#,
            ),
            (
                r#"{"tasks":[{"id":1,"title":"A","status":"done","subtasks":[{"id":1,"title":"a","status":"pending"},
{"id":2,"title":"b","status":"in-progress"},{"id":3,"title":"c","status":"cancelled"}]}]}"#,
                r#"1 Done group "done"
  1.1 Open "pending"
  1.2 InProgress "in-progress"
  1.3 Cancelled "cancelled"
! 1:11 this group is done, and parts of it are open"#,
            ),
            (
                r#"{"tasks":[{"id":1,"title":"A","status":"deferred","subtasks":[{"id":1,"title":"a","status":"pending"},
{"id":2,"title":"b","status":"in-progress"}]}]}"#,
                r#"1 Deferred group "deferred"
  1.1 Deferred "pending"
  1.2 InProgress "in-progress""#,
            ),
            (
                r#"{"tasks":[{"id":1,"title":"A","status":"odd","dependencies":[9]}]}"#,
                r#"1 Deferred "odd"
! 1:11 the status "odd" of 1 is unknown; it waits until you resume it
! 1:62 1 depends on 9, which the file does not have"#,
            ),
        ],
    );
}

#[test]
fn a_tag_is_chosen() {
    let text =
        r#"{"a":{"tasks":[{"id":1,"title":"A"}]},"master":{"tasks":[{"id":2,"title":"B"}]},"empty":{"tasks":[]}}"#;
    let named = |tag: Option<&str>| shown(text, task_master(text, tag));
    assert_eq!(named(None), "2 Open -\n! 1:1 of the tags a, master, only master is read\n");
    for (tag, name) in [("a", "master"), ("master", "tasks")] {
        let both = format!(r#"{{"{tag}":{{"tasks":[{{"id":1,"title":"A"}}]}},"tasks":[{{"id":2,"title":"B"}}]}}"#);
        let read = |tag: Option<&str>| shown(&both, task_master(&both, tag));
        assert!(read(None).contains("only master is read"), "{tag}");
        assert_eq!(read(Some(name)), "2 Open -\n", "{tag}");
    }
    assert_eq!(named(Some("a")), "1 Open -\n");
    assert_eq!(named(Some("empty")), "");
    assert!(named(Some("c")).contains("it has no tasks with the tag c, only with a, master: choose one with --tag"));
    check(
        Format::TaskMaster,
        &[
            (
                r#"{"b":{"tasks":[{"id":1,"title":"A"}]},"a":{"tasks":[{"id":2,"title":"B"}]},"version":3}"#,
                "this file is not valid Task Master: it has no tasks with the tag master, only with a, b: choose one with --tag (line 1, column 1); correct it, or choose another format with --format",
            ),
            (r#"{"b":{"tasks":[{"id":1,"title":"A"}]},"a":{"tasks":null}}"#, "1 Open -"),
        ],
    );
    let text = r#"{"tasks":[{"id":1,"title":"A"}],"metadata":{}}"#;
    assert_eq!(shown(text, task_master(text, Some("master"))), "1 Open -\n");
    assert!(shown(text, task_master(text, Some("b"))).contains("it has no tasks with the tag b, only with master"));
}

#[test]
fn issues_follow_their_parents() {
    check(
        Format::Beads,
        &[
            (
                r#"{"id":"e.1","title":"One","status":"open","dependencies":[{"depends_on_id":"e","type":"parent-child"},{"depends_on_id":"x","type":"related"}]}

{"id":"z","title":"Last","status":"blocked","dependencies":[{"depends_on_id":"e","type":"blocks"},{"depends_on_id":"e.1","type":"waits-for"}]}
{"id":"e.2","title":"Two","status":"closed","dependencies":[{"depends_on_id":"e","type":"parent-child"},{"depends_on_id":"z","type":"parent-child"}]}
{"id":"e","title":"Epic","status":"open","issue_type":"epic","dependencies":null}
{"id":"f","title":"Repair","status":"open","dependencies":[{"depends_on_id":"z","type":"conditional-blocks"}]}"#,
                r#"z Deferred "blocked" <e <e.1
e Open group "open"
  e.1 Open "open"
  e.2 Done "closed"
f Open "open" if z fails"#,
            ),
            (
                r#"{"id":"top","title":"Top","status":"open"}
{"id":"e","title":"Epic","status":"open","dependencies":[{"depends_on_id":"top","type":"parent-child"}]}
{"id":"e.1","title":"One","status":"closed","dependencies":[{"depends_on_id":"e","type":"parent-child"}]}"#,
                r#"top Open group "open"
  e Open "open"
  e.1 Done "closed""#,
            ),
            (
                r#"{"id":"e","title":"Epic","status":"closed"}
{"id":"e.1","title":"One","status":"open","dependencies":[{"depends_on_id":"e","type":"parent-child"}]}"#,
                r#"e Done group "closed"
  e.1 Open "open"
! 1:1 this group is done, and parts of it are open"#,
            ),
            (
                r#"{"id":"e","title":"Epic","status":"open"}
{"id":"f","title":"Part","status":"closed","dependencies":[{"depends_on_id":"e","type":"parent-child"}]}
{"id":"g","title":"Late","status":"open","dependencies":[{"depends_on_id":"f","type":"parent-child"}]}"#,
                r#"e Open group "open"
  f Done group "closed"
    g Open "open"
! 2:1 this group is done, and parts of it are open"#,
            ),
            (
                r#"{"id":"d","title":"D","status":"open","dependencies":[{"depends_on_id":"a","type":"parent-child"}]}
{"id":"a","title":"A","status":"open","dependencies":[{"depends_on_id":"b","type":"parent-child"}]}
{"id":"b","title":"B","status":"open","dependencies":[{"depends_on_id":"a","type":"parent-child"}]}
{"id":"c","title":"C","status":"open","dependencies":[{"depends_on_id":"c","type":"parent-child"}]}"#,
                r#"this file is not valid beads: the parents of this issue go round in a circle; remove a dependency of the type parent-child (line 1, column 1); correct it, or choose another format with --format"#,
            ),
        ],
    );
}

#[test]
fn records_that_are_not_work_items_are_ignored() {
    check(
        Format::Beads,
        &[(
            r#"{"id":"a","title":"A","status":"open","dependencies":[{"depends_on_id":"t","type":"blocks"},{"depends_on_id":"m","type":"blocks"},{"depends_on_id":"q","type":"blocks"}]}
{"id":"a.1","status":"open","issue_type":"event","dependencies":[{"depends_on_id":"a","type":"parent-child"}]}
{"id":"a.2","status":"open","issue_type":"event"}
{"id":"m","status":"open","issue_type":"message"}
{"_type":"memory","key":"k","value":"v"}
{"_type":"issue","id":"b","title":"B","status":"in-progress"}
{"id":"t","title":"T","status":"tombstone","issue_type":"task"}"#,
            r#"a Open "open"
b InProgress "in-progress"
! 1:148 a depends on q, which the file does not have
! 2:1 records that are not work are left out: 4, from this one on"#,
        )],
    );
}

#[test]
fn fields_become_properties_and_notes() {
    let tree = beads(
        r#"{"id":"a","title":" Fix it ","issue_type":"bug","priority":0,"assignee":"@ann","estimated_minutes":90,"description":"Why\nso","labels":["x","y"],"design":"","due_at":null,"external_ref":"gh-9"}"#,
    );
    let task = &tree.unwrap().nodes[0].task;
    assert_eq!((task.description.as_str(), task.kind), ("Fix it", NodeKind::CodeImplementation));
    assert_eq!((task.priority.as_deref(), task.assignee.as_deref()), (Some("P0"), Some("ann")));
    assert_eq!(task.estimate_ms, Some(5_400_000));
    assert_eq!(task.notes, ["description: Why\nso", "labels: x, y", "external_ref: gh-9"]);
    let tree = task_master(r#"{"tasks":[{"id":1,"title":"A","priority":"high","testStrategy":"Run it"}]}"#, None);
    let task = &tree.unwrap().nodes[0].task;
    assert_eq!((task.priority.as_deref(), task.kind), (Some("high"), NodeKind::Processing));
    assert_eq!(task.notes, ["testStrategy: Run it"]);
}

#[test]
fn errors_name_the_location() {
    let end = "correct it, or choose another format with --format";
    let cases = [
        (Format::TaskMaster, "", "EOF while parsing a value (line 1, column 1)"),
        (Format::TaskMaster, "[]", "invalid type: sequence, expected a map (line 1, column 1)"),
        (Format::TaskMaster, "{}", "it has no tasks (line 1, column 1)"),
        (Format::TaskMaster, "{\"tasks\":[\n {\"id\":1}]}", "1 has no title (line 2, column 2)"),
        (Format::TaskMaster, "{\"tasks\":[\n {\"title\":\"A\"}]}", "an id is missing here (line 2, column 2)"),
        (Format::TaskMaster, "{\"tasks\":[\n {\"é\":1 2}]}", "expected `,` or `}` (line 2, column 9)"),
        (
            Format::TaskMaster,
            "{\"tasks\":[{\"id\":1,\"title\":\"A\",\n\"dependencies\":\n7}]}",
            "invalid type: integer `7`, expected a sequence (line 3, column 1)",
        ),
        (Format::Beads, "{\"id\":\"a\",\"title\":\"A\"}\n\n{\"id\":", "EOF while parsing a value (line 3, column 6)"),
    ];
    for (format, text, problem) in cases {
        let name = if format == Format::Beads { "beads" } else { "Task Master" };
        assert_eq!(read(format, text), format!("this file is not valid {name}: {problem}; {end}"));
    }
    let twice = "{\"id\":\"a\",\"title\":\"A\"}\n {\"id\":\"a\",\"title\":\"A\"}";
    assert_eq!(beads(twice).unwrap_err(), InvalidPlan::DuplicateId("a".into(), At(Some((2, 2))), At(Some((1, 1)))));
}

#[test]
fn too_many_tasks_are_refused() {
    let text = (0..=TASKS_MAX).map(|n| format!("{{\"id\":{n},\"title\":\"A\"}}\n")).collect::<String>();
    let limit = InvalidPlan::LimitPassed { limit: "tasks", value: TASKS_MAX + 1, max: TASKS_MAX };
    let options = ReadOptions { format: Format::Beads, ..ReadOptions::default() };
    assert_eq!(crate::parse::read(&text, options), Err(limit));
}

#[test]
fn deep_nesting_is_read_without_recursion() {
    let issue = |n: usize| {
        let parent = n.checked_sub(1).map_or_else(|| "none".to_owned(), |parent| parent.to_string());
        let link = format!("{{\"depends_on_id\":\"{parent}\",\"type\":\"parent-child\"}}");
        format!("{{\"id\":\"{n}\",\"title\":\"A\",\"status\":\"open\",\"dependencies\":[{link}]}}\n")
    };
    let tree = beads(&(0..50_000).rev().map(issue).collect::<String>()).unwrap();
    assert_eq!(tree.nodes.len(), 50_000);
    assert_eq!(tree.nodes.last().unwrap().parent, Some(49_998));
    let deep = format!("{{\"tasks\":{}{}}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    assert_eq!(task_master(&deep, None).unwrap_err().name(), "BadJson");
    let deep = format!("{{\"id\":1,\"title\":\"A\",\"notes\":{}{}}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    assert_eq!(beads(&deep).unwrap().nodes.len(), 1);
}

#[test]
fn a_file_truncated_anywhere_is_read_or_refused() {
    let master = r#"{"master":{"tasks":[{"id":1,"title":"é","status":"done","dependencies":["1.2"],"subtasks":[{"id":2,"title":"b"}]}]}}"#;
    let issues =
        "\u{feff}{\"id\":\"a\",\"title\":\"é\",\"status\":\"open\"}\r\n{\"id\":\"b\",\"title\":\"\\ud800\"}\r\n";
    for text in [master, issues] {
        for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
            for at in (0..end).filter(|at| text.is_char_boundary(*at)) {
                let (part, without) = (&text[at..end], format!("{}{}", &text[..at], &text[end..]));
                let _ = (task_master(part, None), beads(part), task_master(&without, None), beads(&without));
            }
        }
    }
}
