//! How many tokens a text is taken for: by its characters at first, then by what is reported of texts like it.

use crewlog_mq::Handler;
use crewlog_planner::context::SOFT_PERCENT;
use crewlog_planner::event::{Command, Event, ExecutorEvent, PlannerCmd, PlannerConfig, Usage};
use crewlog_planner::plan::TaskId;
use crewlog_planner::planner::Planner;
use crewlog_planner::prompt::prompt;
use crewlog_planner::state::words_for;
use crewlog_planner::tokens::{CHARS_PER_TOKEN, CHARS_PER_TOKEN_MAX, GAUGES_MAX, Told, guess};
use proptest::prelude::*;

const BUDGET: usize = 1_000;

fn begin(text: &str) -> Planner {
    let config = PlannerConfig { token_budget: BUDGET, parallelism: 1_000, ..PlannerConfig::default() };
    let mut planner = Planner::new();
    let (user_input, attachments) = (text.to_owned(), Vec::new());
    planner.process(Command::Initialize { user_input, attachments, config, parallel: true }).unwrap();
    planner
}

/// What is recorded when the executor of a task says that it used so much.
fn uses(planner: &mut Planner, task: u64, usage: Usage) -> Usage {
    let report = ExecutorEvent::UsageReported { node_id: TaskId(task), attempt: 1, usage };
    let events = planner.process(Command::HandleExecutorEvent(report)).unwrap();
    let recorded = events.iter().find_map(|event| match event {
        Event::UsageRecorded { usage, .. } => Some(*usage),
        _another => None,
    });
    recorded.expect("it is recorded")
}

/// Tokens that were reported of a text of so many characters, which four of them make each by guess.
fn reported(input_tokens: u64, n_chars: u64) -> Usage {
    Usage { input_tokens, told: Told { n_chars, n_guessed: n_chars / 4 }, ..Usage::default() }
}

/// Of a text that nobody counted.
fn estimated(input_tokens: u64, output_tokens: u64) -> Usage {
    let told = Told { n_chars: input_tokens * 4, n_guessed: input_tokens };
    Usage { input_tokens, output_tokens, estimated_tokens: input_tokens + output_tokens, told, ..Usage::default() }
}

fn done(planner: &mut Planner, task: u64, result: &str) -> Vec<Event> {
    let (node_id, attempt, result) = (TaskId(task), 1, result.to_owned());
    let report = ExecutorEvent::TaskCompleted { node_id, attempt, result };
    planner.process(Command::HandleExecutorEvent(report)).unwrap()
}

#[test]
fn a_guess_goes_by_the_sorts_of_characters() {
    for (text, n_tokens) in [
        ("", 0),
        ("word", 1),
        ("four words and a half", 6),
        ("2026-11", 4),
        ("{}()", 2),
        ("Größe", 2),
        ("привет", 3),
        ("你好世界", 4),
        ("🙂", 1),
        ("            x", 2),
    ] {
        assert_eq!(guess(text), n_tokens, "{text}");
    }
}

#[test]
fn before_any_report_a_token_is_four_characters_and_of_other_scripts_fewer() {
    assert_eq!(begin("- Paint it\n- Sweep it\n").state().chars_of_budget(100), BUDGET * CHARS_PER_TOKEN);
    assert_eq!(begin("- Größere Türen\n- Schöne Fenster\n").state().chars_of_budget(100), BUDGET * CHARS_PER_TOKEN);
    let chinese = begin("- 把房子刷成蓝色\n- 打扫房子\n").state().chars_of_budget(100);
    assert!((BUDGET..2 * BUDGET).contains(&chinese), "{chinese}");
}

#[test]
fn what_is_told_next_keeps_to_the_tokens_that_were_reported() {
    let parts = (1..=40).map(|n| format!("{n}. Write part {n}\n")).collect::<String>();
    let names = (2..=40).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let mut planner = begin(&format!("{parts}41. Write the book (depends on {names})\n"));
    for task in 2..=39 {
        done(&mut planner, task, &"word ".repeat(200));
    }
    let mut frugal = planner.clone();
    // Twice as many tokens as guessed: half as many characters are told.
    for _ in 0..20 {
        uses(&mut planner, 1, reported(1_000, 2_000));
        uses(&mut frugal, 1, reported(250, 2_000));
    }
    let told = |planner: &mut Planner| {
        let events = done(planner, 40, &"word ".repeat(200));
        let dispatched = events.iter().find_map(|event| match event {
            Event::TaskDispatched { command: PlannerCmd::ExecuteTask { parameters, .. }, .. } => {
                Some(prompt(parameters))
            }
            _another => None,
        });
        dispatched.expect("it is dispatched").chars().count()
    };
    let (of_many, of_few) = (told(&mut planner), told(&mut frugal));
    assert!((1_500..=2_060).contains(&of_many), "{of_many}");
    assert!((4_050..=6_000).contains(&of_few), "{of_few}");
}

#[test]
fn the_past_is_compacted_when_reports_say_that_it_is_too_long() {
    let parts = (1..=30).map(|n| format!("- Write part {n}\n")).collect::<String>();
    let mut planner = begin(&parts);
    for task in 2..=25 {
        done(&mut planner, task, &"word ".repeat(12));
    }
    let before = planner.state().past_tokens();
    assert!((BUDGET / 2..BUDGET * SOFT_PERCENT / 100).contains(&before), "{before}");
    for _ in 0..20 {
        uses(&mut planner, 1, reported(1_000, 2_000));
        assert!(planner.state().past_tokens() <= BUDGET * SOFT_PERCENT / 100 + 1);
    }
    assert!(!planner.state().context_summary().is_empty(), "it was compacted on the way");
}

#[test]
fn a_report_of_far_more_or_less_than_the_text_says_nothing_of_the_text() {
    let mut planner = begin("- Paint it\n- Sweep it\n");
    for input_tokens in [0, 100, 180_000, u64::MAX] {
        let told = Told { n_chars: 2_000, n_guessed: 500 };
        uses(&mut planner, 1, Usage { input_tokens, output_tokens: 1, told, ..Usage::default() });
    }
    uses(&mut planner, 1, Usage { input_tokens: 900, ..Usage::default() });
    assert_eq!(planner.state().chars_of_budget(100), BUDGET * CHARS_PER_TOKEN);
}

#[test]
fn an_assignee_is_told_by_his_own_reports_and_others_by_all() {
    let mut planner = begin("- Paint it @ann\n- Sweep it @bob\n- Draw it @ann\n- Look at it\n");
    for _ in 0..20 {
        uses(&mut planner, 1, reported(1_000, 2_000));
    }
    let hundred = estimated(100, 100);
    for (task, expected) in [(3, 194..=201), (2, 194..=201), (4, 194..=201)] {
        let corrected = uses(&mut planner.clone(), task, hundred).input_tokens;
        assert!(expected.contains(&corrected), "{task}: {corrected}");
    }
    for _ in 0..20 {
        uses(&mut planner, 2, reported(500, 2_000));
    }
    for (task, expected) in [(3, 194..=201), (2, 100..=103), (4, 100..=103)] {
        let corrected = uses(&mut planner.clone(), task, hundred).input_tokens;
        assert!(expected.contains(&corrected), "{task}: {corrected}");
    }
}

#[test]
fn what_nobody_counted_is_estimated_by_the_reports_before_and_said_to_be() {
    let mut planner = begin("- Paint it\n- Sweep it\n");
    let used = uses(&mut planner, 1, estimated(300, 50));
    assert_eq!((used.input_tokens, used.output_tokens, used.estimated_tokens), (300, 50, 350));
    for _ in 0..20 {
        uses(&mut planner, 1, reported(1_000, 2_000));
    }
    let used = uses(&mut planner, 2, estimated(300, 50));
    assert!((590..=600).contains(&used.input_tokens) && (97..=100).contains(&used.output_tokens), "{used:?}");
    assert_eq!(used.estimated_tokens, used.input_tokens + used.output_tokens);
    assert_eq!(words_for(&used), format!("{} tokens (estimated)", used.estimated_tokens));
    let spent = planner.state().spent();
    assert_eq!(spent.estimated_tokens, 350 + used.estimated_tokens);
    assert_eq!(spent.told, Told::default(), "what was told is no sum");
    let words = format!("{} tokens ({} of them estimated)", 20_350 + used.estimated_tokens, spent.estimated_tokens);
    assert_eq!(words_for(&spent), words);
    // What a plan within the plan has used up was corrected there.
    let within = Usage { told: Told::default(), ..estimated(300, 50) };
    assert_eq!(uses(&mut planner, 2, within), within);
}

#[test]
fn no_more_than_so_many_assignees_are_kept_apart() {
    let tasks = (1..=GAUGES_MAX + 5).map(|n| format!("- Part {n} @a{n}\n")).collect::<String>();
    let mut planner = begin(&tasks);
    for task in 1..=GAUGES_MAX as u64 + 5 {
        uses(&mut planner, task, reported(1_000, 2_000));
    }
    let last = uses(&mut planner, GAUGES_MAX as u64 + 5, estimated(1_000, 0)).input_tokens;
    assert!((1_900..=2_001).contains(&last), "{last}: by all reports");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn no_report_makes_a_token_less_than_half_a_character_or_more_than_six(
        reports in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), any::<bool>(), 0..64_u32), 0..30),
    ) {
        let mut planner = begin("- Paint it @ann\n- Sweep it\n");
        for (input_tokens, n_chars, n_guessed, is_estimated, shift) in reports {
            let (input_tokens, n_chars, n_guessed) = (input_tokens >> shift, n_chars >> shift, n_guessed >> shift);
            let estimated_tokens = if is_estimated { input_tokens } else { 0 };
            let told = Told { n_chars, n_guessed };
            let usage = Usage { input_tokens, output_tokens: 0, duration_ms: 1, estimated_tokens, told, ..Usage::default() };
            uses(&mut planner, 1, usage);
            let n_chars = planner.state().chars_of_budget(100) as u128;
            prop_assert!((BUDGET as u128 / 2..=BUDGET as u128 * CHARS_PER_TOKEN_MAX).contains(&n_chars), "{}", n_chars);
        }
    }
}
