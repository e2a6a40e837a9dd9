//! States written into plan files of every format.

use crate::parse::{Format, ParsedPlan, ReadOptions, expressible, read, write_states};
use crate::plan::{Mark, TaskId};

const NOW: &str = "2026-01-02T03:04:05Z";

fn plan(format: Format, text: &str) -> ParsedPlan {
    read(text, ReadOptions { format, ..ReadOptions::default() }).unwrap()
}

/// Writes states by task number, and checks the invariants of every file.
#[track_caller]
fn check(format: Format, text: &str, states: &[(u64, Mark)], expected: &str) {
    let plan = plan(format, text);
    let states = states.iter().map(|(task, mark)| (TaskId(*task), *mark)).collect::<Vec<_>>();
    let written = write_states(text, &plan, &states, NOW);
    assert_eq!(written.text, expected);
    assert_eq!(written.unwritten, []);
    let (mut old, mut new) = (0, 0);
    for (place, span) in written.changed.iter().enumerate() {
        let kept = &text[old..span.start];
        assert!(written.text[new..].starts_with(kept));
        old = span.end;
        let rest = &text[old..written.changed.get(place + 1).map_or(text.len(), |next| next.start)];
        new = written.text[new + kept.len()..].find(rest).map(|at| new + kept.len() + at).unwrap();
    }
    assert_eq!(written.text[new..], text[old..]);
    let again = write_states(&written.text, &self::plan(format, &written.text), &[], NOW);
    assert_eq!((again.text.as_str(), again.changed.len()), (expected, 0));
    let identity = write_states(text, &plan, &[], NOW);
    assert_eq!((identity.text.as_str(), identity.changed.len()), (text, 0));
}

#[test]
fn each_format_has_its_marks() {
    use Mark::{Cancelled, Deferred, Done, InProgress, Open};
    let all = [(1, Done), (2, InProgress), (3, Cancelled), (4, Deferred), (5, Open), (6, Done)];
    let text = "- [ ] a\n- [ ] b\n- [ ] c\n- [ ] d\n- [x] e\n- [x] f";
    check(Format::Markdown, text, &all, "- [x] a\n- [~] b\n- [-] c\n- [ ] d\n- [ ] e\n- [x] f");
    check(Format::Kiro, text, &all, "- [x] a\n- [-] b\n- [ ] c\n- [ ] d\n- [ ] e\n- [x] f");
    check(Format::OpenSpec, text, &all, "- [x] a\n- [ ] b\n- [ ] c\n- [ ] d\n- [ ] e\n- [x] f");
    check(Format::SpecKit, text, &all, "- [x] a\n- [ ] b\n- [ ] c\n- [ ] d\n- [ ] e\n- [x] f");
    for format in [Format::Markdown, Format::Kiro, Format::OpenSpec, Format::SpecKit] {
        for mark in [Open, InProgress, Done, Cancelled, Deferred] {
            let plan = plan(format, "- [ ] a");
            let written = write_states("- [ ] a", &plan, &[(TaskId(1), mark)], NOW).text;
            assert_eq!(self::plan(format, &written).marks[0].mark, expressible(format, mark), "{format:?} {mark:?}");
        }
    }
}

#[test]
fn capital_ticks_of_spec_kit_are_kept() {
    let done = [(1, Mark::Done), (2, Mark::Done)];
    check(Format::SpecKit, "- [X] a\n- [ ] b\n", &done, "- [X] a\n- [X] b\n");
    check(Format::SpecKit, "- [X] a\n- [ ] b\n- [x] c\n", &done, "- [X] a\n- [x] b\n- [x] c\n");
    check(Format::OpenSpec, "- [X] a\n- [ ] b\n", &done, "- [X] a\n- [x] b\n");
}

#[test]
fn every_other_byte_is_kept() {
    let text = "\u{feff}# é\r\n\r\n- [ ]* 1. a (P) ✅\r\n\t- [~] b\r\n\r\n```\n- not\n";
    check(Format::Markdown, text, &[(1, Mark::Done)], &text.replace("[~]", "[x]").replace("[ ]*", "[x]*"));
    check(Format::Markdown, text, &[], text);
}

#[test]
fn a_group_ends_with_its_parts() {
    let done = |tasks: &[u64]| tasks.iter().map(|task| (*task, Mark::Done)).collect::<Vec<_>>();
    let text = "- [ ] 1\n  - [ ] a\n  - [ ] 2\n    - [ ] b\n    - [ ]* c\n- [ ] d";
    check(Format::Kiro, text, &done(&[1]), "- [ ] 1\n  - [x] a\n  - [ ] 2\n    - [ ] b\n    - [ ]* c\n- [ ] d");
    check(Format::Kiro, text, &done(&[2]), "- [ ] 1\n  - [ ] a\n  - [x] 2\n    - [x] b\n    - [ ]* c\n- [ ] d");
    check(Format::Kiro, text, &done(&[1, 2]), "- [x] 1\n  - [x] a\n  - [x] 2\n    - [x] b\n    - [ ]* c\n- [ ] d");
    // If all parts are optional, all of them count.
    let text = "- [ ] 1\n  - [ ]* a\n  - [ ]* b";
    check(Format::Kiro, text, &done(&[1]), "- [ ] 1\n  - [x]* a\n  - [ ]* b");
    check(Format::Kiro, text, &done(&[1, 2]), "- [x] 1\n  - [x]* a\n  - [x]* b");
    // An optional group blocks nothing.
    let text = "- [ ] 1\n  - [ ] a\n  - [ ]* 2\n    - [ ] b";
    check(Format::Kiro, text, &done(&[1]), "- [x] 1\n  - [x] a\n  - [ ]* 2\n    - [ ] b");
}

#[test]
fn an_unchanged_group_is_not_touched() {
    let text = "- [ ] 1\n  - [x] a\n- [x] 2\n  - [ ] b\n- [ ] c";
    let after = "- [ ] 1\n  - [x] a\n- [x] 2\n  - [ ] b\n- [x] c";
    check(Format::Markdown, text, &[(1, Mark::Done), (3, Mark::Done)], after);
    // Parts that only began end no group.
    let text = "- [ ] 1\n  - [x] a\n  - [ ]* b";
    check(Format::Markdown, text, &[(2, Mark::InProgress)], "- [ ] 1\n  - [x] a\n  - [~]* b");
    // A done group with an open part does not end the enclosing group.
    let text = "- [ ] 1\n  - [x] 2\n    - [ ] a\n  - [ ] b";
    check(Format::Markdown, text, &[(2, Mark::Done)], "- [ ] 1\n  - [x] 2\n    - [ ] a\n  - [x] b");
}

#[test]
fn a_group_with_only_cancelled_parts_is_not_marked() {
    let text = "- [ ] 1\n  - [ ] a\n  - [ ] b";
    let given_up = [(1, Mark::Cancelled), (2, Mark::Cancelled)];
    check(Format::Markdown, text, &given_up, "- [ ] 1\n  - [-] a\n  - [-] b");
    check(Format::Markdown, text, &[(1, Mark::Done), given_up[1]], "- [x] 1\n  - [x] a\n  - [-] b");
    check(Format::OpenSpec, text, &[(1, Mark::Done), given_up[1]], "- [ ] 1\n  - [x] a\n  - [ ] b");
}

#[test]
fn task_master_gets_a_new_string() {
    let text = r#"{"tasks":[{"id":1,"status" : "pending","title":"A","subtasks":[{"id":1,"title":"a","status":"review"},
 {"id":2,"title":"b","status":"pending"}]},{"id":2,"title":"B","status":"deferred"}]}"#;
    let states = [(1, Mark::Done), (2, Mark::Cancelled), (3, Mark::Deferred)];
    let after = text.replacen("pending", "done", 1).replace("review", "done").replace("pending", "cancelled");
    check(Format::TaskMaster, text, &states, &after);
    check(Format::TaskMaster, text, &[(1, Mark::InProgress)], text);
    check(Format::TaskMaster, text, &[(3, Mark::Open)], &text.replace("deferred", "pending"));
}

#[test]
fn beads_gets_times_too() {
    let text = "{\"id\":\"e\",\"title\":\"E\",\"status\":\"open\",\"updated_at\":\"old\"}\r\n\
        {\"id\":\"e.1\",\"title\":\"A\",\"status\":\"open\",\"updated_at\":\"old\",\"closed_at\":null,\
        \"dependencies\":[{\"depends_on_id\":\"e\",\"type\":\"parent-child\"}] } \r\n\
        {\"id\":\"b\",\"title\":\"B\",\"status\":\"open\"}";
    let after = "{\"id\":\"e\",\"title\":\"E\",\"status\":\"closed\",\"updated_at\":\"NOW\",\"closed_at\":\"NOW\"}\r\n\
        {\"id\":\"e.1\",\"title\":\"A\",\"status\":\"closed\",\"updated_at\":\"NOW\",\"closed_at\":\"NOW\",\
        \"dependencies\":[{\"depends_on_id\":\"e\",\"type\":\"parent-child\"}] } \r\n\
        {\"id\":\"b\",\"title\":\"B\",\"status\":\"open\"}";
    check(Format::Beads, text, &[(1, Mark::Done), (2, Mark::Cancelled)], &after.replace("NOW", NOW));
    let begun = text.replace("\"B\",\"status\":\"open\"", "\"B\",\"status\":\"in_progress\",\"updated_at\":\"NOW\"");
    check(Format::Beads, text, &[(2, Mark::InProgress)], &begun.replace("NOW", NOW));
    let reopened = format!("\u{feff}{{\"id\":\"a\",\"title\":\"A\",\"status\":\"open\",\"updated_at\":\"{NOW}\"}}");
    check(Format::Beads, "\u{feff}{\"id\":\"a\",\"title\":\"A\",\"status\":\"closed\"}", &[(1, Mark::Open)], &reopened);
    // An issue that is deferred to a date is open in the file.
    let text = "{\"id\":\"a\",\"title\":\"A\",\"status\":\"open\",\"defer_until\":\"x\"}";
    check(Format::Beads, text, &[(1, Mark::Open)], text);
}

#[test]
fn states_that_cannot_be_written_are_returned() {
    let text = r#"{"tasks":[{"id":1,"title":"A"},{"id":2,"title":"B","status":"pending"}]}"#;
    let states = [(9, Mark::Done), (2, Mark::Done), (1, Mark::InProgress), (8, Mark::Open), (9, Mark::Cancelled)];
    let states = states.map(|(task, mark)| (TaskId(task), mark));
    let written = write_states(text, &plan(Format::TaskMaster, text), &states, NOW);
    assert_eq!(written.text, text.replace("pending", "done"));
    assert_eq!(written.unwritten, [TaskId(1), TaskId(9)]);
}

#[test]
fn writing_states_with_the_plan_of_another_text_is_harmless() {
    let plan = plan(Format::Beads, "{\"id\":\"b\",\"title\":\"B\",\"status\":\"open\"}");
    let states = [(TaskId(1), Mark::Done)];
    assert_eq!(write_states("", &plan, &states, NOW).unwritten, [TaskId(1)]);
    let other = "é".repeat(30);
    let written = write_states(&other, &plan, &states, NOW);
    assert!(written.unwritten == [TaskId(1)] || written.changed.len() == 1);
}
