//! What who tries a task again is told of the attempts before: within the budget, the last first, and nothing that was
//! decided is given up for it.

use crewlog_mq::Handler;
use crewlog_planner::event::{
    Command, Event, ExecutorEvent, FailureClass, Parameters, PlannerCmd, PlannerConfig, QuestionId,
};
use crewlog_planner::plan::TaskId;
use crewlog_planner::planner::Planner;
use crewlog_planner::prompt::prompt;
use crewlog_planner::thread::{TURN_CHARS_MAX, TURNS_MAX};
use crewlog_planner::tokens::CHARS_PER_TOKEN;
use proptest::prelude::*;

/// A plan under way, and what its first task was told last.
struct Run {
    planner: Planner,
    history: Vec<Event>,
}

impl Run {
    fn begin(text: &str, config: PlannerConfig) -> Self {
        let mut run = Self { planner: Planner::new(), history: Vec::new() };
        let (user_input, attachments) = (text.to_owned(), Vec::new());
        run.order(Command::Initialize { user_input, attachments, config, parallel: true });
        run
    }

    fn order(&mut self, command: Command) {
        self.history.extend(self.planner.process(command).unwrap());
    }

    fn attempt(&self) -> u32 {
        self.planner.state().tasks()[0].attempts
    }

    fn fails(&mut self, error: &str) {
        let (node_id, attempt, error, class) = (TaskId(1), self.attempt(), error.to_owned(), FailureClass::Task);
        self.order(Command::HandleExecutorEvent(ExecutorEvent::TaskFailed { node_id, attempt, error, class }));
    }

    fn asks_and_hears(&mut self, question: &str, answer: &str) {
        let (node_id, attempt, question, default) = (TaskId(1), self.attempt(), question.to_owned(), None);
        self.order(Command::HandleExecutorEvent(ExecutorEvent::NeedsClarification {
            node_id,
            attempt,
            question,
            default,
        }));
        let question_id = QuestionId(self.planner.state().questions().len() as u64);
        let answer = answer.to_owned();
        self.order(Command::HandleExecutorEvent(ExecutorEvent::ClarificationProvided { node_id, question_id, answer }));
    }

    fn told(&self) -> &Parameters {
        let told = self.history.iter().rev().find_map(|event| match event {
            Event::TaskDispatched {
                command: PlannerCmd::ExecuteTask { node_id: TaskId(1), parameters, .. }, ..
            } => Some(&**parameters),
            _another => None,
        });
        told.expect("it was dispatched")
    }
}

fn of_tokens(token_budget: usize) -> PlannerConfig {
    PlannerConfig { token_budget, error_char_limit: 20_000, ..PlannerConfig::default() }
}

fn n_chars(text: &str) -> usize {
    text.chars().count()
}

#[test]
fn an_agent_that_tries_again_is_told_what_came_of_the_attempts_before() {
    let mut run = Run::begin("- Paint the door (retry 5)\n", PlannerConfig::default());
    assert_eq!(run.told().earlier, [""; 0]);
    run.fails("no colour\nlooked in src/colours.rs:12");
    run.asks_and_hears("Which colour?", "blue");
    run.fails("the door is locked");
    let expected = ["Attempt 1 failed: no colour\nlooked in src/colours.rs:12", "Attempt 3 failed: the door is locked"];
    assert_eq!(run.told().earlier, expected);
    let told = prompt(run.told());
    let section = "\n## What was tried before\n\n- Attempt 1 failed: no colour\nlooked in src/colours.rs:12\n\
                   - Attempt 3 failed: the door is locked\n\n## Answers that people gave\n";
    assert!(told.contains(section), "{told}");
}

#[test]
fn a_task_that_is_opened_again_is_told_why_it_ended() {
    let mut run = Run::begin("- Paint the door\n- Sweep\n", PlannerConfig::default());
    run.fails("no colour");
    run.order(Command::Retry { task: Some(TaskId(1)) });
    run.order(Command::Cancel { task: Some(TaskId(1)), reason: "not now".into() });
    run.order(Command::Retry { task: Some(TaskId(1)) });
    assert_eq!(run.told().earlier, ["Attempt 1 failed: no colour", "Attempt 2 was cancelled: not now"]);
}

#[test]
fn a_command_is_told_nothing_of_its_attempts() {
    let mut run = Run::begin("- Run `paint` (retry 2)\n", PlannerConfig::default());
    run.fails("no colour");
    assert_eq!((run.attempt(), run.told().earlier.len()), (2, 0));
}

#[test]
fn big_texts_are_shortened_first_with_a_word_where_all_of_it_is() {
    let mut run = Run::begin("- Paint the door (retry 5)\n", of_tokens(1_000));
    let noise = "some words that nobody needs to read again, and more of them\n";
    let big =
        format!("{}ValueError: bad price\n  at sum (src/cart.ts:41:7)\n{}", noise.repeat(3), "x y z\n".repeat(600));
    run.fails("the door is locked");
    run.fails(&big);
    let earlier = &run.told().earlier;
    assert_eq!(earlier[0], "Attempt 1 failed: the door is locked");
    let reference = "\n(all of it: crewlog events --aggregate $CREWLOG_PLAN/1)";
    assert!(earlier[1].starts_with("Attempt 2 failed: ") && earlier[1].ends_with(reference), "{}", earlier[1]);
    assert!(earlier[1].contains("ValueError: bad price") && earlier[1].contains("src/cart.ts:41:7"), "{}", earlier[1]);
    assert!(n_chars(&prompt(run.told())) <= 4_000);
}

/// Beside much room, so that only the report's own limit makes it short.
fn fails_at_length() -> Run {
    let mut run = Run::begin("- Paint the door (retry 1)\n", PlannerConfig::default());
    let lines = (0..400).map(|n| format!("ValueError: bad price {n} of {}", "x".repeat(n))).collect::<Vec<_>>();
    run.fails(&lines.join("\n"));
    run
}

#[test]
fn where_all_of_it_is_stands_also_by_a_text_that_the_report_made_short() {
    let run = fails_at_length();
    let told = &run.told().earlier[0];
    assert!(n_chars(told) <= 2_000 + 100, "{told}");
    assert!(told.ends_with("\n(all of it: crewlog events --aggregate $CREWLOG_PLAN/1)"), "{told}");
    let mut run = Run::begin("- Paint the door (retry 1)\n", PlannerConfig::default());
    run.fails("short");
    assert_eq!(run.told().earlier, ["Attempt 1 failed: short"]);
}

#[test]
fn a_fork_names_no_events_of_its_own_for_an_attempt_of_the_other_plan() {
    let mut run = fails_at_length();
    run.fails("short");
    let (parent, at, reason) = ("plan-a".to_owned(), crewlog_mq::Position(9), "another way".to_owned());
    run.order(Command::Fork { parent, at, reason, config: None, amendments: Vec::new() });
    run.order(Command::Retry { task: Some(TaskId(1)) });
    let earlier = &run.told().earlier;
    assert!(earlier[0].starts_with("Attempt 1 failed: ") && !earlier[0].contains("CREWLOG_PLAN"), "{}", earlier[0]);
    assert_eq!(earlier[1], "Attempt 2 failed: short");
}

#[test]
fn the_oldest_attempts_are_left_out_first_and_counted() {
    let mut run = Run::begin("- Paint the door (retry 100)\n", of_tokens(1_000));
    for n in 1..=30 {
        run.fails(&format!("failure {n}: {}", format!("word{n} ").repeat(100)));
    }
    let earlier = &run.told().earlier;
    let n_told = earlier.len() - 1;
    assert!((2..=6).contains(&n_told), "{n_told}");
    assert_eq!(earlier[0], format!("({} attempts before these are not told here)", 30 - n_told));
    for (n, said) in (31 - n_told..=30).zip(&earlier[1..]) {
        assert!(said.starts_with(&format!("Attempt {n} failed: failure {n}:")), "{said}");
    }
    // Much room makes no difference to what is kept.
    let mut run = Run::begin("- Paint the door (retry 100)\n", of_tokens(1_000_000));
    for n in 1..=TURNS_MAX + 4 {
        run.fails(&format!("failure {n}: {}", "word ".repeat(2_000)));
    }
    let earlier = &run.told().earlier;
    assert_eq!((earlier.len(), &*earlier[0]), (TURNS_MAX + 1, "(4 attempts before these are not told here)"));
    assert!(earlier.iter().all(|said| n_chars(said) <= TURN_CHARS_MAX + 200));
}

/// What one attempt comes to.
#[derive(Debug, Clone)]
enum Try {
    Fails { n_lines: usize, line: String },
    Asks { question: String, answer: String },
}

fn tries() -> impl Strategy<Value = Try> {
    let text = || (0..100_usize, "[a-zA-Z0-9é中:/. ]{0,60}");
    prop_oneof![
        4 => text().prop_map(|(n_lines, line)| Try::Fails { n_lines, line }),
        2 => ("[a-z]{1,20}", "[a-zé]{1,40}").prop_map(|(question, answer)| Try::Asks { question, answer }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn no_answer_is_given_up_and_no_budget_passed_for_what_attempts_print(
        tries in prop::collection::vec(tries(), 0..30),
        token_budget in prop_oneof![Just(200), 200..4_000_usize],
    ) {
        let mut run = Run::begin("- Paint the door (retry 100)\n- Which door?\n", of_tokens(token_budget));
        let mut answers = Vec::new();
        for one in &tries {
            match one {
                Try::Fails { n_lines, line } => run.fails(&format!("{line}\n").repeat(*n_lines)),
                Try::Asks { .. } if answers.len() >= 15 => continue,
                Try::Asks { question, answer } => {
                    run.asks_and_hears(question, answer);
                    answers.push(answer.clone());
                }
            }
            let told = run.told();
            let given = told.answers.iter().map(|answered| &answered.answer).collect::<Vec<_>>();
            prop_assert_eq!(given, answers.iter().collect::<Vec<_>>(), "no answer is left out");
            let alone = Parameters { earlier: Vec::new(), results: Vec::new(), context: String::new(), ..told.clone() };
            let (all, alone) = (n_chars(&prompt(told)), n_chars(&prompt(&alone)));
            prop_assert!(all <= alone.max(token_budget * CHARS_PER_TOKEN), "{} of {}", all, token_budget * CHARS_PER_TOKEN);
            prop_assert_eq!(run.planner.state().open_questions().count(), 1, "what is open stays open");
        }
        prop_assert_eq!(&Planner::fold(&run.history), &run.planner);
    }
}
