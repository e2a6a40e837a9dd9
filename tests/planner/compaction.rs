//! The compaction of a plan's history: within the token budget, most important lines first.

use crewlog_mq::{Handler, Position};
use crewlog_planner::event::{Command, Covered, Event, PlannerConfig, Purpose, TaskStatus, Usage};
use crewlog_planner::plan::{FailurePolicy, NodeKind, TaskId, TaskPlan};
use crewlog_planner::planner::Planner;
use crewlog_planner::prompt::{HARD_PERCENT, SOFT_PERCENT, SUMMARY_PERCENT, history};
use proptest::prelude::*;

use super::random::{Act, acts, drafts, report};

use super::run::*;

/// Follows a plan event by event: the history is measured correctly, compacted only when necessary, and never too long.
struct Watch {
    planner: Planner,
    is_ordered: bool,
    n_events: u64,
    /// The last event that a summary covers.
    covered: u64,
}

impl Watch {
    fn take(&mut self, event: &Event) {
        let state = self.planner.state();
        if let Event::ContextCompacted { summary, removed_task_ids, covers } = event {
            let Covered { from, to } = covers.expect("it says what it stands for");
            assert_eq!(from, self.covered + 1, "it begins where the one before it ends");
            assert_eq!(to, self.n_events);
            self.covered = to;
            if !self.is_ordered {
                assert!(
                    state.history_chars() > chars_of(state, SOFT_PERCENT),
                    "below the threshold nothing is appended"
                );
                assert!(n_chars(summary) <= chars_of(state, SUMMARY_PERCENT), "it is short enough for long");
            }
            assert!(removed_task_ids.is_sorted());
            for id in removed_task_ids {
                assert!(state.task(*id).unwrap().status.is_end(), "an open task is never removed");
            }
        }
        let is_compaction = matches!(event, Event::ContextCompacted { .. });
        let before = is_compaction.then(|| (state.tasks.to_vec(), state.questions.to_vec()));
        self.planner.apply(event);
        self.n_events += 1;
        if let Some((tasks, questions)) = before {
            let state = self.planner.state();
            assert_eq!((&state.tasks, &state.questions), (&tasks, &questions), "every task, question and answer");
        }
    }

    fn check(&self) {
        let state = self.planner.state();
        let (n_chars, n_chars_max) = (state.history_chars(), chars_of(state, HARD_PERCENT));
        assert!(n_chars <= n_chars_max, "{n_chars} of {n_chars_max} characters");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_history_stays_within_its_budget_after_any_commands(draft in drafts(), acts in prop::collection::vec(acts(), 0..60)) {
        let mut planner = Planner::default();
        let mut watch = Watch { planner: Planner::default(), is_ordered: false, n_events: 0, covered: 0 };
        let initialize = Act::Initialize;
        for act in [initialize].iter().chain(&acts) {
            let command = act.command(&draft, planner.state());
            watch.is_ordered = matches!(act, Act::Compact { .. });
            for event in planner.process(command).unwrap_or_default() {
                watch.take(&event);
                // A compaction on command is the decision itself; later ones are automatic.
                watch.is_ordered = false;
            }
            watch.check();
            prop_assert_eq!(planner.state(), watch.planner.state());
        }
    }
}

#[test]
fn a_long_plan_is_compacted_occasionally_and_keeps_its_latest_history() {
    let mut run = Run::begin(budget(1_000), &list(500));
    for task in 1..=500 {
        run.done(task, &format!("part {task} has {}", "words ".repeat(20)));
    }
    let compactions = run.compactions();
    // 1,000 tokens are 4,000 characters: 35 % of them between two compactions, and about 160 for each task.
    assert!((500 * 160 / 1_500..500 * 160 / 1_300).contains(&compactions.len()), "{}", compactions.len());
    let removed = compactions.iter().flat_map(|(_, removed)| removed.iter().copied()).collect::<Vec<_>>();
    let expected = (1..=removed.len() as u64).map(TaskId).collect::<Vec<_>>();
    assert_eq!(removed, expected, "each task is removed once, in turn");
    let (summary, _) = compactions.last().unwrap();
    let lines = summary.lines().collect::<Vec<_>>();
    let last = removed.len();
    let n_told = lines.len() - 1;
    assert_eq!(lines[0], format!("({} earlier lines are omitted)", last - n_told));
    for (line, task) in lines[1..].iter().zip(last - n_told + 1..) {
        assert!(line.starts_with(&format!("{task} done: Write part {task} -> part {task} has words")), "{line}");
    }
    assert!(run.state().tasks.iter().all(|task| task.result.as_ref().unwrap().len() > 120), "nothing is deleted");
}

#[test]
fn decisions_and_failures_are_kept_in_preference_to_completed_tasks() {
    let text = "- Which colour is it?\n- Call them\n- Try it\n".to_owned() + &list(60)[10..];
    let mut run = Run::begin(budget(BUDGET_MIN), &text);
    run.answer(1, "blue");
    run.hear(report(TaskId(2), 1, 5));
    run.answer(2, "the one on the left");
    run.hear(report(TaskId(3), 1, 1));
    run.done(2, "they said so");
    for task in 4..=60 {
        run.done(task, "it is written");
    }
    let (summary, _) = *run.compactions().last().unwrap();
    let lines = summary.lines().collect::<Vec<_>>();
    assert_eq!(
        lines[1..4],
        [
            "Decided in 1: Which colour is it? -> blue",
            "Decided in 2: Which one? -> the one on the left",
            "3 failed: Try it -> it broke"
        ]
    );
    let told = lines[4..].join("\n");
    assert!(!told.is_empty() && told.contains("Write part") && n_chars(summary) <= 280, "{summary}");
}

#[test]
fn many_long_decisions_are_shortened_and_then_only_the_latest_kept() {
    let decide = |n: usize| {
        let text = (1..=n).map(|n| format!("- Which colour is house {n}?\n")).collect::<String>();
        let mut run = Run::begin(budget(BUDGET_MIN), &text);
        for task in 1..=n as u64 {
            run.answer(task, &format!("{} {task}", "blue ".repeat(30)));
        }
        run.order(Command::CompactContext { max_tokens: 70 });
        run.state().context_summary().to_owned()
    };
    let few = decide(4);
    assert_eq!(few.lines().count(), 4);
    for (line, n) in few.lines().zip(1..) {
        assert!(
            line.starts_with(&format!("Decided in {n}: Which colour")) && line.ends_with(&format!(" {n}")),
            "{line}"
        );
        assert!((50..=70).contains(&n_chars(line)), "{line}");
    }
    let many = decide(40);
    let lines = many.lines().collect::<Vec<_>>();
    assert!(lines[0].starts_with("(3"), "{many}");
    assert!(lines[1..].iter().all(|line| n_chars(line) >= 40) && lines.last().unwrap().ends_with(" 40"), "{many}");
    assert!(n_chars(&many) <= 280);
}

#[test]
fn a_summary_lists_the_events_it_covers_even_after_a_fork() {
    let mut run = Run::begin(budget(8_000), &list(6));
    let covers = |run: &Run| match run.history.last() {
        Some(Event::ContextCompacted { covers, .. }) => covers.map(|Covered { from, to }| (from, to)),
        _another => None,
    };
    run.done(1, "part 1 is there");
    run.order(Command::CompactContext { max_tokens: 100 });
    // The plan is made, six tasks are dispatched, one is done.
    assert_eq!(covers(&run), Some((1, 8)));
    run.done(2, "part 2 is there");
    run.order(Command::CompactContext { max_tokens: 100 });
    assert_eq!(covers(&run), Some((9, 10)), "the summary before it, and one more is done");
    let (parent, at, reason) = ("p".into(), Position(11), "another way".into());
    let fork = Command::Fork { parent, at, reason, pauses: false, amendments: Vec::new() };
    run.order(fork);
    let n_events = run.history.len() as u64;
    run.done(3, "part 3 is there");
    run.order(Command::CompactContext { max_tokens: 100 });
    assert_eq!(covers(&run), Some((11, n_events + 1)), "the history of a fork begins with that of the other plan");
    assert_eq!(Planner::fold(&run.history), run.planner);
}

#[test]
fn a_retried_task_has_no_history_line_until_it_ends_again() {
    let mut run = Run::begin(budget(8_000), "- Try it\n- Look at it\n");
    run.hear(report(TaskId(1), 1, 1));
    run.order(Command::CompactContext { max_tokens: 100 });
    assert_eq!(run.compactions(), [("1 failed: Try it -> it broke", &[TaskId(1)][..])]);
    assert_eq!(history(run.state()), "1 failed: Try it -> it broke\n");
    run.order(Command::Retry { task: Some(TaskId(1)) });
    assert_eq!(history(run.state()), "", "what came of it before holds no more, in the summary neither");
    run.done(1, "it went well");
    assert_eq!(history(run.state()), "1 done: Try it -> it went well\n");
    run.order(Command::CompactContext { max_tokens: 100 });
    assert_eq!(history(run.state()), "1 done: Try it -> it went well\n");
    assert_eq!(run.compactions()[1].1, [TaskId(1)]);
    let mut run = Run::begin(budget(8_000), "- Try it\n- Look at it\n");
    run.hear(report(TaskId(1), 1, 1));
    run.order(Command::Retry { task: Some(TaskId(1)) });
    assert_eq!(history(run.state()), "", "what came of it before holds no more");
}

#[test]
fn a_compact_command_leaves_at_most_its_limit_and_the_budget() {
    let mut run = Run::begin(budget(BUDGET_MIN), &list(40));
    for task in 1..=20 {
        run.done(task, &"word ".repeat(40));
    }
    for max_tokens in [0, 1, 5, 12, 40, 140, 1_000_000, usize::MAX] {
        run.order(Command::CompactContext { max_tokens });
        assert!(n_tokens(run.state().context_summary()) <= max_tokens.min(140), "{max_tokens}");
        let n_events = run.history.len();
        run.order(Command::CompactContext { max_tokens });
        run.order(Command::Continue);
        assert_eq!(run.history.len(), n_events, "it says nothing twice: {max_tokens}");
    }
}

#[test]
fn a_token_budget_out_of_range_is_refused() {
    for token_budget in [0, 1, 10, 199, 1_000_001, usize::MAX] {
        let mut planner = Planner::default();
        let initialize = Command::of_text("- a\n- b\n".into(), budget(token_budget), false).unwrap();
        let refusal = planner.process(initialize).unwrap_err().to_string();
        assert_eq!(refusal, format!("prompt.tokens is {token_budget}: it must be from 200 to 1000000"));
        assert_eq!(planner, Planner::default());
    }
    for token_budget in [200, 1_000_000] {
        Run::begin(budget(token_budget), "- a\n- b\n");
    }
}

#[test]
fn a_log_with_a_zero_budget_causes_no_endless_loop_or_panic() {
    for token_budget in [0, 1, 2, 10] {
        let mut events = Run::begin(budget(BUDGET_MIN), &list(3)).history;
        let Event::TasksPlanned { config, .. } = &mut events[0] else { panic!("a plan begins with its tasks") };
        config.token_budget = token_budget;
        let mut run = Run { planner: Planner::fold(&events), history: events };
        for task in 1..=3 {
            run.done(task, "it is done");
        }
        assert_eq!((history(run.state()).as_str(), run.compactions().len()), ("", 3), "{token_budget}");
    }
}

#[test]
fn an_answer_to_a_failure_or_a_condition_is_a_decision_too() {
    let config = PlannerConfig { on_failure: FailurePolicy::Ask, ..budget(8_000) };
    let mut run = Run::begin(config, "- If it rains, take an umbrella\n- Walk\n");
    let question = run.state().open_questions().next().unwrap();
    assert_eq!(question.purpose, Purpose::Condition);
    run.answer(1, "no");
    run.hear(report(TaskId(2), 1, 1));
    run.answer(2, "continue");
    let past = history(run.state());
    assert!(
        past.contains("Decided in 1: Does \"it rains\" hold? Task 1 runs only if it does. (yes or no) -> no\n"),
        "{past}"
    );
    assert!(past.contains("Decided in 2: Task 2 failed: it broke. Retry, done, skip, continue or stop? -> continue\n"));
}

#[test]
fn late_usage_of_a_summarized_task_does_not_bring_its_line_back() {
    let task_id = TaskId(1);
    let task = TaskPlan::new(task_id, NodeKind::Processing, "Paint");
    let mut planner = Planner::default();
    let events = [
        Event::planned(vec![task], PlannerConfig::default()),
        Event::TaskStatusUpdated {
            task_id,
            status: TaskStatus::Completed,
            result: Some("green".into()),
            error: None,
            unblocks: true,
        },
        Event::ContextCompacted {
            summary: "Painted".into(),
            removed_task_ids: vec![task_id],
            covers: Some(Covered { from: 1, to: 2 }),
        },
    ];
    events.iter().for_each(|event| planner.apply(event));
    let before = planner.state().history_chars();
    let usage = Usage { input_tokens: 7, ..Usage::default() };
    planner.apply(&Event::UsageRecorded { task_id, attempt: 1, epoch: 1, usage });
    assert_eq!(planner.state().history_chars(), before);
    assert_eq!(planner.state().spent(), usage);
}
