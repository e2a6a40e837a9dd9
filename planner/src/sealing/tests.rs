//! Tests which texts of an event are sealed.

use super::*;

/// The paths and texts of all strings, and the same JSON with each text in capitals.
fn walked(json: &str) -> (Vec<(String, String)>, Option<String>) {
    let mut seen = Vec::new();
    let new = replaced(json, "data", |path, written| {
        seen.push((path.to_owned(), written.to_owned()));
        Some(written.to_uppercase())
    });
    (seen, new)
}

#[test]
fn each_string_is_visited_with_its_path_and_other_values_stay_unchanged() {
    let check = |json: &str, strings: &[(&str, &str)], new: Option<&str>| {
        let strings = strings.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect();
        assert_eq!(walked(json), (strings, new.map(str::to_owned)), "{json}");
    };
    check("null", &[], None);
    check("\"a\"", &[("data", "a")], Some("\"A\""));
    check(
        r#"{ "a" : "x", "b":{"c":["y",{"d":"z"},[],["q"]],"e" : 1.50}, "f":"w"}"#,
        &[("data/a", "x"), ("data/b/c/0", "y"), ("data/b/c/1/d", "z"), ("data/b/c/3/0", "q"), ("data/f", "w")],
        Some(r#"{ "a" : "X", "b":{"c":["Y",{"d":"Z"},[],["Q"]],"e" : 1.50}, "f":"W"}"#),
    );
    check(
        r#"{"a":"é\" , \\","b\"":"{[","c":""}"#,
        &[("data/a", r#"é\" , \\"#), ("data/b\\\"", "{["), ("data/c", "")],
        Some(r#"{"a":"É\" , \\","b\"":"{[","c":""}"#),
    );
}

#[test]
fn invalid_json_never_panics() {
    for json in ["", "\"", "\"a\\", "]", "}", "{\"a\"", "[\"a\",", ",", "{]\"", "{\"a\":\"b"] {
        walked(json);
    }
}

#[test]
fn the_longest_matching_rule_applies_and_unmatched_strings_are_sealed() {
    let check = |path: &str, expected: Option<Visibility>| assert_eq!(rule(path), expected, "{path}");
    check("data/tasks/0/label", Some(Clear));
    check("data/tasks/0/attachments/1/label", Some(Sealed));
    check("data/tasks/10/notes/3", Some(Sealed));
    check("data/command/ExecuteTask/kind", Some(Clear));
    check("data/mankind", None);
    assert!(must_seal("data/mankind", "x"));
    assert!(!must_seal("data/mankind", ""));
    assert!(!must_seal("data/kind", "Analysis"));
    assert!(must_seal("data/kind", "sealed:1:Analysis"), "what looks sealed must be");
}

#[test]
fn an_event_belongs_to_the_plan_named_by_its_stream_or_single_tag() {
    let check = |stream: &str, aggregate: &str, tags: &[&str], expected: Option<&str>| {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
        assert_eq!(plan_of(stream, aggregate, &tags), expected);
    };
    check("planner", "p", &[], Some("p"));
    check("task", "a/b/3", &[], Some("a/b"));
    check("task", "nothing", &[], None);
    check("models", "m", &["project:x", "plan:p"], Some("p"));
    check("models", "m", &["plan:p", "plan:q"], None);
    check("planning", "tactical", &["plan:p"], Some("p"));
    check("planning", "tactical", &["project:x"], Some("tactical"));
    check("conflicts", "x", &["plan:p"], None);
    check("keys", "p", &["plan:p"], None);
}
