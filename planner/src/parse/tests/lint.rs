//! What a careful reader would ask about a text that is a plan.

use super::plan;
use crate::parse::{lint, render};

fn asked(text: &str) -> Vec<String> {
    let found = lint(text, &plan(text));
    assert!(found.iter().all(|one| one.help.as_ref().is_some_and(|help| !help.is_empty())), "of {text:?}");
    found.iter().map(|one| format!("{}:{} {}", one.line, one.column, one.message)).collect()
}

#[test]
fn what_a_careful_reader_would_ask_is_said() {
    for (text, expected) in [
        ("- T1 Add a\n- T2 Add b to what T1 made", "2:20 task T2 speaks of T1 and does not wait for it"),
        ("- T1 Add a\n- T2 Add b to what T7 made", "2:20 T7 looks like the id of a task, and no task has it"),
        ("- Use Redis or Memcached", "1:1 task 1 leaves open which of two is meant"),
        ("If the cache is warm, add a.", "1:1 nothing before task 1 finds out whether \"the cache is warm\""),
        ("Add a.\n\n# Out of scope\n\nAdd b.", "5:1 this is out of scope and is not planned"),
        ("- [ ] Add a\n- [w] Add b", "2:3 the box [w] says nothing that is known, and stays part of the text"),
        ("Add a.\n/label ~bug", "2:1 this is said to a forge and is not read"),
        ("- Add a due:2026-01-02", "1:1 the date of task 1 is kept as words, and nothing goes by it"),
        ("The build is red. Fix it.", "1:1 this is read as context and is no task"),
        ("Run this:\n\n```sh\nmake", "3:1 this fence never closes, so all that follows is in it"),
        (
            "- Add a (assignee: ann, bob)",
            "1:10 \"assignee: ann, bob\" cannot be read as a setting and stays part of the text",
        ),
    ] {
        assert_eq!(asked(text), [expected], "of {text:?}");
    }
}

#[test]
fn of_a_plain_plan_nothing_is_asked() {
    for text in [
        "# Tasks\n\n- [ ] T1 Add a\n- [ ] T2 Add b (depends on T1)\n\n```sh\nmake\n```\n",
        "Run the tests. If they pass, ship it; otherwise tell Ann.",
        "1. Add a or b to the list\n2. Ship it",
        "Run this:\n\n    $ make all\n",
        "1. Create the whole schema\n   a. Add users\n   b. Add orders\n2. Seed the data\n",
        "T1 → T2 → T3\n\n- T1 Add a\n- T2 Add b\n- T3 Add c\n",
    ] {
        assert_eq!(asked(text), Vec::<String>::new(), "of {text:?}");
        assert_eq!(asked(&render(&plan(text))), Vec::<String>::new(), "of {text:?} written out");
    }
}
