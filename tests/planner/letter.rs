//! A letter of a few sentences: its plan, and the tasks that start.

use crewlog_planner::parse::{ReadOptions, read};
use crewlog_planner::plan::{AttachmentKind, NodeKind};

use super::transcript::check;

#[test]
fn a_letter_of_four_sentences_gives_three_tasks_and_a_constraint() {
    let letter = "Add login with session cookies. Use basic auth. Read API spec at https://example.com/spec.pdf. \
                  Then write unit tests.";
    let tasks = read(letter, ReadOptions::default()).unwrap().tasks;
    let links = |place: usize| tasks[place].attachments.iter().map(|one| one.kind.clone()).collect::<Vec<_>>();
    let described = tasks.iter().map(|task| (task.kind, task.description.as_str())).collect::<Vec<_>>();
    let expected = [
        (NodeKind::CodeImplementation, "Add login with session cookies"),
        (NodeKind::Retrieval, "Read API spec at https://example.com/spec.pdf"),
        (NodeKind::UnitTest, "write unit tests"),
    ];
    assert_eq!(described, expected);
    assert_eq!((tasks[0].notes.as_slice(), links(0).len()), (&["Use basic auth".to_owned()][..], 0));
    assert_eq!(links(1), [AttachmentKind::Link("https://example.com/spec.pdf".into())]);
}

#[test]
fn a_then_step_waits_for_all_open_steps_before_it() {
    check(
        "Add login with session cookies. Meanwhile, read the API spec. Then write unit tests.",
        "
        > start
        planned 1 2 3
        dispatched 1#1
        dispatched 2#1
        > 2 done
        2 Completed:
        > 1 done
        1 Completed:
        dispatched 3#1
        > 3 done
        3 Completed:
        ended Completed, 3 tasks: 3 completed
        ",
    );
}
