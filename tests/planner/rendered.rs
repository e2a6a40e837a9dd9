//! Plans with any texts in every field, written out and read back.

use crewlog_planner::parse::{ParsedPlan, ReadOptions, read, render};
use crewlog_planner::plan::{Attachment, AttachmentKind, DefaultAnswer, Strength, TaskId, TaskPlan};
use proptest::prelude::*;
use proptest::sample::select;

use super::random::{TASKS_MAX, drafts};

/// A text of a task: plain, or with characters that the exported form must quote.
fn texts() -> impl Strategy<Value = String> {
    let quoted = ["", " ", "\"a\"", "- [x] 2. b", "> c", "# d", "two\nlines", "\u{2028}", "\\", "note: e", "Deploy/2"];
    prop_oneof!["[a-z ]{1,12}", select(quoted.to_vec()).prop_map(str::to_owned), any::<String>()]
}

fn attachments() -> impl Strategy<Value = Vec<Attachment>> {
    let kinds = [AttachmentKind::Link, AttachmentKind::ImageRef, AttachmentKind::FileRef];
    let attachment = (select(kinds.to_vec()), texts(), prop::option::of(texts()))
        .prop_map(|(kind, reference, label)| Attachment { kind: kind(reference), label });
    prop::collection::vec(attachment, 0..3)
}

/// A draft whose tasks have every field of the exported form, with any texts in them.
fn full_drafts() -> impl Strategy<Value = Vec<TaskPlan>> {
    let lists = (prop::collection::vec(texts(), 0..3), prop::collection::vec(texts(), 0..3), attachments());
    let words = prop::collection::vec(prop::option::of(texts()), 5);
    let numbers = (any::<u64>(), prop::option::of((texts(), 1..u64::MAX)), any::<[bool; 8]>());
    let fields = (texts(), words, lists, numbers);
    (drafts(), prop::collection::vec(fields, usize::try_from(TASKS_MAX).unwrap())).prop_map(|(draft, fields)| {
        let filled = draft.tasks.into_iter().zip(fields).map(|(task, (description, words, lists, numbers))| {
            let (n, default, is_set) = numbers;
            let some = |place: usize| is_set[place].then_some(n);
            let word = |place: usize| words[place].clone();
            let mut task = TaskPlan {
                description,
                label: task
                    .label
                    .map(|label| if is_set[0] { format!("{}/{label}", word(0).unwrap_or_default()) } else { label }),
                command: word(1).or(task.command),
                group: word(2),
                priority: word(3),
                assignee: word(4),
                notes: lists.0,
                files: lists.1,
                attachments: lists.2,
                timeout_ms: some(1),
                deadline_ms: some(2),
                estimate_ms: some(3),
                compensates: some(4).map(TaskId),
                default_answer: default.map(|(answer, after_ms)| DefaultAnswer { answer, after_ms }),
                sub_plan: None,
                ..task
            };
            for one in task.depends_on.iter_mut().filter(|one| is_set[5 + usize::from(one.task.0 > 2)]) {
                one.strength = Strength::Soft;
            }
            if let Some(condition) = task.condition.as_mut().filter(|_| is_set[7]) {
                condition.text = words[0].clone().unwrap_or_default();
            }
            task
        });
        filled.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_rendered_plan_reads_back_with_every_field(
        tasks in full_drafts(),
        title in prop::option::of(texts()),
        context in prop::collection::vec(texts(), 0..3),
    ) {
        let plan = ParsedPlan { title, tasks, context, ..ParsedPlan::default() };
        let text = render(&plan);
        let back = |parallel| read(&text, ReadOptions { parallel, ..ReadOptions::default() }).unwrap();
        let without_spans = |plan: ParsedPlan| {
            let tasks = plan.tasks.into_iter().map(|task| TaskPlan { spans: Vec::new(), ..task });
            (plan.title, plan.context, tasks.collect::<Vec<_>>())
        };
        let mut expected = (plan.title.clone(), plan.context.clone(), plan.tasks.clone());
        prop_assert_eq!(without_spans(back(false)), expected.clone(), "{}", text);
        let shown = back(false).marks.iter().map(|mark| (mark.of, mark.mark)).collect::<Vec<_>>();
        prop_assert_eq!(shown, plan.tasks.iter().map(|task| (Some(task.id), task.mark)).collect::<Vec<_>>());
        for task in &mut expected.2 {
            task.depends_on.retain(|one| one.strength == Strength::Hard);
        }
        prop_assert_eq!(without_spans(back(true)), expected, "in parallel: {}", text);
    }
}
