//! What a plan tells of its past, and what an agent is told of its task: never more than the budget, and what matters
//! first.

use crewlog_mq::{Handler, Position};
use crewlog_planner::context::{HARD_PERCENT, SOFT_PERCENT, SUMMARY_PERCENT};
use crewlog_planner::event::{
    Amendment, Command, Covered, Edit, Event, ExecutorEvent, Parameters, PlannerCmd, PlannerConfig, Purpose,
    QuestionId, TaskStatus,
};
use crewlog_planner::parse::{ParsedPlan, render};
use crewlog_planner::plan::{
    Attachment, AttachmentKind, Dependency, FailurePolicy, NodeKind, Origin, Proposal, Strength, TaskId, TaskPlan,
};
use crewlog_planner::planner::Planner;
use crewlog_planner::prompt::prompt;
use crewlog_planner::state::PlannerState;
use crewlog_planner::tokens::CHARS_PER_TOKEN;
use proptest::prelude::*;

use super::random::{Act, acts, drafts, report};

const BUDGET_MIN: usize = 200;

fn budget(token_budget: usize) -> PlannerConfig {
    PlannerConfig { token_budget, parallelism: 1_000, ..PlannerConfig::default() }
}

/// A plan under way, and all its events.
struct Run {
    planner: Planner,
    history: Vec<Event>,
}

impl Run {
    fn begin(config: PlannerConfig, text: &str) -> Self {
        let mut run = Self { planner: Planner::new(), history: Vec::new() };
        run.order(Command::Initialize { user_input: text.to_owned(), attachments: Vec::new(), config, parallel: true });
        run
    }

    fn state(&self) -> &PlannerState {
        self.planner.state()
    }

    fn order(&mut self, command: Command) {
        self.history.extend(self.planner.process(command).unwrap());
    }

    fn hear(&mut self, event: ExecutorEvent) {
        self.order(Command::HandleExecutorEvent(event));
    }

    fn done(&mut self, task: u64, result: &str) {
        let node_id = TaskId(task);
        let attempt = self.state().task(node_id).unwrap().attempts;
        self.hear(ExecutorEvent::TaskCompleted { node_id, attempt, result: result.to_owned() });
    }

    fn answer(&mut self, task: u64, question: u64, answer: &str) {
        self.hear(ExecutorEvent::ClarificationProvided {
            node_id: TaskId(task),
            question_id: QuestionId(question),
            answer: answer.to_owned(),
        });
    }

    fn compactions(&self) -> Vec<(&str, &[TaskId])> {
        let compactions = self.history.iter().filter_map(|event| match event {
            Event::ContextCompacted { summary, removed_task_ids, .. } => Some((&**summary, &**removed_task_ids)),
            _ => None,
        });
        compactions.collect()
    }

    /// What the last dispatch of a task says.
    fn told(&self, task: u64) -> &Parameters {
        let told = self.history.iter().rev().find_map(|event| match event {
            Event::TaskDispatched { command: PlannerCmd::ExecuteTask { node_id, parameters, .. }, .. }
                if *node_id == TaskId(task) =>
            {
                Some(&**parameters)
            }
            _ => None,
        });
        told.expect("it was dispatched")
    }
}

fn n_chars(text: &str) -> usize {
    text.chars().count()
}

fn n_tokens(text: &str) -> usize {
    n_chars(text).div_ceil(CHARS_PER_TOKEN)
}

/// Follows a plan event by event: the past is counted right, compacted only when it must be, and never too long.
struct Watch {
    planner: Planner,
    is_ordered: bool,
    n_events: u64,
    /// The last event that a summary stands for.
    covered: u64,
}

impl Watch {
    fn take(&mut self, event: &Event) {
        let state = self.planner.state();
        let n_chars_max = |percent| state.chars_of_budget(percent);
        if let Event::ContextCompacted { summary, removed_task_ids, covers } = event {
            let Covered { from, to } = covers.expect("it says what it stands for");
            assert_eq!((from, to), (self.covered + 1, self.n_events), "all that the one before it does not stand for");
            self.covered = to;
            if !self.is_ordered {
                assert!(n_chars(&state.past()) > n_chars_max(SOFT_PERCENT), "below the threshold nothing is appended");
                assert!(n_chars(summary) <= n_chars_max(SUMMARY_PERCENT), "it is short enough for long");
            }
            assert!(removed_task_ids.is_sorted());
            for id in removed_task_ids {
                assert!(state.task(*id).unwrap().status.is_end(), "an open task is never removed");
            }
        }
        let is_compaction = matches!(event, Event::ContextCompacted { .. });
        let before = is_compaction.then(|| (state.tasks().to_vec(), state.questions().to_vec()));
        self.planner.apply(event);
        self.n_events += 1;
        if let Some((tasks, questions)) = before {
            let state = self.planner.state();
            assert_eq!(
                (state.tasks(), state.questions()),
                (&tasks[..], &questions[..]),
                "every task, question and answer"
            );
        }
    }

    fn check(&self) {
        let state = self.planner.state();
        let past = state.past();
        assert_eq!(state.past_tokens(), state.tokens_of(n_chars(&past)), "its size is kept from event to event");
        let n_chars_max = state.chars_of_budget(HARD_PERCENT);
        assert!(n_chars(&past) <= n_chars_max, "{} of {n_chars_max} characters", n_chars(&past));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn the_past_is_within_its_budget_after_any_orders(draft in drafts(), acts in prop::collection::vec(acts(), 0..60)) {
        let mut planner = Planner::new();
        let mut watch = Watch { planner: Planner::new(), is_ordered: false, n_events: 0, covered: 0 };
        let initialize = Act::Initialize;
        for act in [initialize].iter().chain(&acts) {
            let command = act.command(&draft, planner.state());
            watch.is_ordered = matches!(act, Act::Compact { .. });
            for event in planner.process(command).unwrap_or_default() {
                watch.take(&event);
                // A compaction on order is the decision itself; what follows from it is not ordered.
                watch.is_ordered = false;
            }
            watch.check();
            prop_assert_eq!(planner.state(), watch.planner.state());
        }
    }

    #[test]
    fn an_agent_is_told_its_task_whole_and_all_else_within_the_budget(
        tasks in prop::collection::vec((any::<String>(), prop::collection::vec(any::<bool>(), 12), 0..3_u8), 1..12),
        results in prop::collection::vec((0..4_000_usize, "[a-zé]{1,3}"), 12),
        (token_budget, notes) in (prop_oneof![Just(BUDGET_MIN), 200..3_000_usize], prop::collection::vec(any::<String>(), 0..3)),
        (goal, system_prompt) in ("[a-z \n]{0,900}", "[a-z]{0,40}"),
    ) {
        let planned = tasks.iter().enumerate().map(|(n, (words, before, kind))| {
            let kind = if *kind == 0 { NodeKind::Clarification } else { NodeKind::Processing };
            let before = (0..n).filter(|place| before[*place]).map(|place| TaskId(place as u64 + 1));
            let depends_on = before.map(|task| Dependency { task, strength: Strength::Hard }).collect();
            TaskPlan { notes: notes.clone(), depends_on, ..TaskPlan::new(TaskId(n as u64 + 1), kind, words.as_str()) }
        });
        let (title, tasks_of, context) = (Some("A plan".into()), planned.collect(), vec![goal]);
        let plan = ParsedPlan { title, tasks: tasks_of, context, ..ParsedPlan::default() };
        let config = PlannerConfig { system_prompt: system_prompt.clone(), ..budget(token_budget) };
        let mut run = Run::begin(config, &render(&plan));
        for _ in 0..3 * tasks.len() {
            let open = run.state().open_questions().next().map(|question| (question.task.0, question.id.0));
            let running = run.state().tasks().iter().find(|task| task.status == TaskStatus::Running);
            match (open, running.map(|task| task.plan.id.0)) {
                (Some((task, question)), _) => run.answer(task, question, "in the third house on the left"),
                (None, Some(task)) => {
                    let (times, text) = &results[usize::try_from(task).unwrap() - 1];
                    run.done(task, &text.repeat(*times));
                }
                (None, None) => break,
            }
        }
        for event in &run.history {
            let Event::TaskDispatched { command: PlannerCmd::ExecuteTask { node_id, parameters, .. }, .. } = event else {
                continue;
            };
            let told = prompt(parameters);
            let alone = prompt(&Parameters { earlier: Vec::new(), results: Vec::new(), context: String::new(), ..(**parameters).clone() });
            prop_assert!(n_chars(&told) <= n_chars(&alone).max(token_budget * CHARS_PER_TOKEN));
            let plan = &run.state().task(*node_id).unwrap().plan;
            prop_assert!(told.starts_with(&system_prompt) && told.contains(plan.description.trim_end()));
            prop_assert!(plan.notes.iter().all(|note| told.contains(note)));
            prop_assert!(parameters.answers.iter().all(|answered| told.contains(&answered.answer)));
            let n_questions = plan.depends_on.iter().filter(|before| tasks[usize::try_from(before.task.0).unwrap() - 1].2 == 0);
            prop_assert!(parameters.answers.len() >= n_questions.count(), "no answer is left out");
        }
        let folded = Planner::fold(&run.history);
        prop_assert_eq!(&folded, &run.planner);
        let last = run.state().tasks().last().unwrap();
        prop_assert_eq!(run.state().parameters(last), folded.state().parameters(last), "the same is told of the same");
    }
}

/// Tasks for agents that wait for nothing.
fn list(n_tasks: usize) -> String {
    (1..=n_tasks).fold("# A list\n\n".to_owned(), |text, n| text + &format!("- Write part {n}\n"))
}

#[test]
fn a_long_plan_is_compacted_now_and_then_and_keeps_what_happened_last() {
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
    assert_eq!(lines[0], format!("(not told: {} of what happened earlier)", last - n_told));
    for (line, task) in lines[1..].iter().zip(last - n_told + 1..) {
        assert!(line.starts_with(&format!("{task} Completed: Write part {task} -> part {task} has words")), "{line}");
    }
    assert!(run.state().tasks().iter().all(|task| task.result.as_ref().unwrap().len() > 120), "nothing is deleted");
}

#[test]
fn decisions_and_failures_are_told_when_what_was_done_is_not() {
    let text = "- Which colour is it?\n- Call them\n- Try it\n".to_owned() + &list(60)[10..];
    let mut run = Run::begin(budget(BUDGET_MIN), &text);
    run.answer(1, 1, "blue");
    run.hear(report(TaskId(2), 1, 5));
    run.answer(2, 2, "the one on the left");
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
            "3 Failed: Try it -> it broke"
        ]
    );
    let told = lines[4..].join("\n");
    assert!(!told.is_empty() && told.contains("Write part") && n_chars(summary) <= 280, "{summary}");
}

#[test]
fn many_long_decisions_are_each_shortened_and_then_the_last_are_told() {
    let decide = |n: usize| {
        let text = (1..=n).map(|n| format!("- Which colour is house {n}?\n")).collect::<String>();
        let mut run = Run::begin(budget(BUDGET_MIN), &text);
        for task in 1..=n as u64 {
            run.answer(task, task, &format!("{} {task}", "blue ".repeat(30)));
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
    assert!(lines[0].starts_with("(not told: 3"), "{many}");
    assert!(lines[1..].iter().all(|line| n_chars(line) >= 40) && lines.last().unwrap().ends_with(" 40"), "{many}");
    assert!(n_chars(&many) <= 280);
}

#[test]
fn a_summary_names_the_events_that_it_stands_for_also_behind_a_fork() {
    let mut run = Run::begin(budget(8_000), &list(6));
    let covers = |run: &Run| match run.history.last() {
        Some(Event::ContextCompacted { covers, .. }) => covers.map(|Covered { from, to }| (from, to)),
        _another => None,
    };
    run.done(1, "part 1 is there");
    run.order(Command::CompactContext { max_tokens: 100 });
    // It is planned, six are dispatched, one is done.
    assert_eq!(covers(&run), Some((1, 8)));
    run.done(2, "part 2 is there");
    run.order(Command::CompactContext { max_tokens: 100 });
    assert_eq!(covers(&run), Some((9, 10)), "the summary before it, and one more is done");
    let (parent, at, reason) = ("p".into(), Position(11), "another way".into());
    let fork = Command::Fork { parent, at, reason, config: None, amendments: Vec::new() };
    run.order(fork);
    let n_events = run.history.len() as u64;
    run.done(3, "part 3 is there");
    run.order(Command::CompactContext { max_tokens: 100 });
    assert_eq!(covers(&run), Some((11, n_events + 1)), "the history of a fork begins with that of the other plan");
    assert_eq!(Planner::fold(&run.history), run.planner);
}

#[test]
fn a_retried_task_is_told_anew() {
    let mut run = Run::begin(budget(8_000), "- Try it\n- Look at it\n");
    run.hear(report(TaskId(1), 1, 1));
    run.order(Command::CompactContext { max_tokens: 100 });
    assert_eq!(run.compactions(), [("1 Failed: Try it -> it broke", &[TaskId(1)][..])]);
    assert_eq!(run.state().past(), "1 Failed: Try it -> it broke\n");
    run.order(Command::Retry { task: Some(TaskId(1)) });
    assert_eq!(run.state().past(), "", "what came of it before holds no more, in the summary neither");
    run.done(1, "it went well");
    assert_eq!(run.state().past(), "1 Completed: Try it -> it went well\n");
    run.order(Command::CompactContext { max_tokens: 100 });
    assert_eq!(run.state().past(), "1 Completed: Try it -> it went well\n");
    assert_eq!(run.compactions()[1].1, [TaskId(1)]);
    let mut run = Run::begin(budget(8_000), "- Try it\n- Look at it\n");
    run.hear(report(TaskId(1), 1, 1));
    run.order(Command::Retry { task: Some(TaskId(1)) });
    assert_eq!(run.state().past(), "", "what came of it before holds no more");
}

#[test]
fn an_order_to_compact_leaves_no_more_than_it_says_nor_than_the_budget_lets_stand() {
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
fn a_budget_that_is_too_small_or_too_large_is_refused() {
    for token_budget in [0, 1, 10, 199, 1_000_001, usize::MAX] {
        let mut planner = Planner::new();
        let initialize = Command::Initialize {
            user_input: "- a\n- b\n".into(),
            attachments: Vec::new(),
            config: budget(token_budget),
            parallel: false,
        };
        let refusal = planner.process(initialize).unwrap_err().to_string();
        assert_eq!(refusal, format!("token_budget is {token_budget}, and must be from 200 to 1000000"));
        assert_eq!(planner, Planner::new());
    }
    for token_budget in [200, 1_000_000] {
        Run::begin(budget(token_budget), "- a\n- b\n");
    }
}

#[test]
fn a_log_with_a_budget_of_nothing_goes_on_without_end_or_panic() {
    for token_budget in [0, 1, 2, 10] {
        let mut history = Run::begin(budget(BUDGET_MIN), &list(3)).history;
        let Event::TasksPlanned { config, .. } = &mut history[0] else { panic!("a plan begins with its tasks") };
        config.token_budget = token_budget;
        let mut run = Run { planner: Planner::fold(&history), history };
        for task in 1..=3 {
            run.done(task, "it is done");
        }
        assert_eq!((run.state().past().as_str(), run.compactions().len()), ("", 3), "{token_budget}");
    }
}

const HOUSE: &str = "# A house

The goal is a small house.

## Tasks

1. Which colour is it?
2. Run `make plan`
3. Draw the walls (depends on 1, 2) (files: walls/**)
   - Do not draw the roof
4. Draw the roof (depends on 3)
5. Which garden is wanted?
6. Plant the garden (depends on 5)
";

#[test]
fn an_agent_is_told_its_task_the_results_before_it_the_plan_and_how_to_answer() {
    let config = PlannerConfig { system_prompt: "You build houses.".into(), ..budget(8_000) };
    let mut run = Run::begin(config, HOUSE);
    run.answer(1, 1, "blue");
    run.done(2, "the plan is in plan.pdf\n");
    let expected = "You build houses.

# Your task

Draw the walls

## Notes

- Do not draw the roof

## Files to work on

- walls/**

## Answers that people gave

- Which colour is it?
  -> blue

## Result of task 2: Run `make plan`

the plan is in plan.pdf

## The plan so far

A house
The goal is a small house.

Still to be done, and not by you:
- 4 Planned: Draw the roof
- 5 NeedsClarification: Which garden is wanted?
- 6 Planned: Plant the garden

Not answered yet:
- q2 of 5: Which garden is wanted?

## How to answer
";
    let told = prompt(run.told(3));
    assert!(told.starts_with(expected), "{told}");
    let command = run.told(2);
    assert!(!command.description.is_empty() && command.command.is_some());
    assert_eq!((command.results.len(), command.context.as_str(), command.system_prompt.as_str()), (0, "", ""));
}

#[test]
fn results_share_their_room_and_small_ones_stay_whole() {
    let text = "- A: Look\n- B: Look at it\n- C: Look again\n- D: Write it (depends on A, B, C)\n";
    let mut run = Run::begin(budget(1_000), text);
    run.done(1, "short");
    run.done(2, &format!("{}the end of b", "b".repeat(5_000)));
    run.done(3, &format!("{}the end of c", "c".repeat(90_000)));
    let results = &run.told(4).results;
    assert_eq!(results.iter().map(|result| result.task.0).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(results[0].result, "short");
    let lengths = [n_chars(&results[1].result), n_chars(&results[2].result)];
    assert!(lengths[0] == lengths[1] && (900..1_300).contains(&lengths[0]), "{lengths:?}");
    let ends = format!("the end of b\n(from {} characters; the log has the whole result of task 2)", 5_012);
    assert!(results[1].result.ends_with(&ends), "{}", results[1].result);
    assert!(prompt(run.told(4)).chars().count() <= 4_000);
    let whole = run.state().tasks()[2].result.as_ref().unwrap();
    assert_eq!(whole.len(), 90_012, "nothing is lost");
}

#[test]
fn of_very_many_results_the_last_are_told_within_the_budget() {
    let names = (1..=300).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let parts = (1..=300).fold(String::new(), |text, n| text + &format!("{n}. Write part {n}\n"));
    let text = format!("{parts}301. Write the book (depends on {names})\n");
    let mut run = Run::begin(budget(1_000), &text);
    for task in 1..=300 {
        run.done(task, &"word ".repeat(100));
    }
    let told = run.told(301);
    let tasks = told.results.iter().map(|result| result.task.0).collect::<Vec<_>>();
    assert!((5..=20).contains(&tasks.len()) && tasks.is_sorted() && tasks.last() == Some(&300), "{tasks:?}");
    assert!(n_chars(&prompt(told)) <= 4_000);
}

#[test]
fn what_is_dispatched_after_a_compaction_is_told_the_compacted_past() {
    let text = list(30) + "- Write the end (depends on Write part 30)\n";
    let mut run = Run::begin(PlannerConfig { parallelism: 1, ..budget(BUDGET_MIN * 2) }, &text);
    for task in 1..=30 {
        run.done(task, &"word ".repeat(20));
    }
    let is_compacted = |event: &Event| matches!(event, Event::ContextCompacted { .. });
    let at = run.history.iter().rposition(is_compacted).unwrap();
    let Event::TaskDispatched { command: PlannerCmd::ExecuteTask { parameters, .. }, .. } = &run.history[at + 1] else {
        panic!("a compaction comes before what its decision dispatches: {:?}", run.history[at + 1]);
    };
    let Event::ContextCompacted { summary, .. } = &run.history[at] else { unreachable!() };
    let newest = summary.lines().last().unwrap();
    assert!(parameters.context.contains(newest), "{}", parameters.context);
    assert!(parameters.context.contains("(more has happened than is told here)"), "{}", parameters.context);
}

#[test]
fn of_very_many_open_tasks_the_next_are_told_and_the_others_counted() {
    let mut run = Run::begin(PlannerConfig { parallelism: 1, ..budget(100_000) }, &list(500));
    run.done(1, "ok");
    let context = &run.told(2).context;
    assert!(context.contains("- 3 Planned: Write part 3\n") && context.contains("- 102 Planned: Write part 102\n"));
    assert!(!context.contains("Write part 103") && context.ends_with("(398 more are not told here)\n"), "{context}");
}

#[test]
fn an_answer_to_a_failure_or_a_condition_is_a_decision_too() {
    let config = PlannerConfig { on_failure: FailurePolicy::Ask, ..budget(8_000) };
    let mut run = Run::begin(config, "- If it rains, take an umbrella\n- Walk\n");
    let question = run.state().open_questions().next().unwrap();
    assert_eq!(question.purpose, Purpose::Condition);
    run.answer(1, 1, "no");
    run.hear(report(TaskId(2), 1, 1));
    run.answer(2, 2, "continue");
    let past = run.state().past();
    assert!(past.contains("Decided in 1: Is it so: it rains? (yes or no) -> no\n"), "{past}");
    assert!(past.contains("Decided in 2: Task 2 failed: it broke. Retry, done, skip, continue or stop? -> continue\n"));
}

#[test]
fn open_tasks_are_told_in_their_new_words_and_as_they_stand() {
    let config = PlannerConfig { parallelism: 2, ..PlannerConfig::default() };
    let mut run = Run::begin(config, "1. Weed\n2. Rake\n3. Mow\n4. Sow\n");
    let mut amend = |amendment| run.order(Command::Amend { amendments: vec![amendment], reason: String::new() });
    for n in 1..=9 {
        amend(Amendment::Edit { task: TaskId(4), edits: vec![Edit::Description(format!("Sow row {n}"))] });
    }
    amend(Amendment::Add { text: "- Prune".to_owned(), after: Vec::new(), before: Vec::new() });
    run.done(1, "all of it");
    assert_eq!(
        run.told(3).context,
        "Done and decided so far:\n- 1 Completed: Weed -> all of it\n\n\
         Still to be done, and not by you:\n- 2 Running: Rake\n- 4 Planned: Sow row 9\n- 5 Planned: Prune\n"
    );
}

#[test]
fn a_file_must_be_there_unless_an_earlier_task_names_it_by_now() {
    let file = || vec![Attachment { kind: AttachmentKind::FileRef("src/a.rs".to_owned()), label: None }];
    let after = |id| vec![Dependency { task: TaskId(id), strength: Strength::Hard }];
    let tasks = vec![
        TaskPlan::new(TaskId(1), NodeKind::Processing, "Begin"),
        TaskPlan {
            attachments: file(),
            depends_on: after(1),
            ..TaskPlan::new(TaskId(2), NodeKind::Processing, "Write it")
        },
        TaskPlan {
            attachments: file(),
            depends_on: after(2),
            ..TaskPlan::new(TaskId(3), NodeKind::Analysis, "Read it")
        },
    ];
    for (changes, needs) in [(vec![], vec![]), (vec![vec![]], vec!["src/a.rs"]), (vec![vec![], file()], vec![])] {
        let mut run = Run { planner: Planner::new(), history: Vec::new() };
        run.order(Command::Propose {
            proposal: Box::new(Proposal {
                tasks: tasks.clone(),
                title: None,
                source: String::new(),
                context: Vec::new(),
                origin: Origin::default(),
            }),
            attachments: Vec::new(),
            config: PlannerConfig::default(),
        });
        for attachments in changes {
            let amendments = vec![Amendment::Edit { task: TaskId(2), edits: vec![Edit::Attachments(attachments)] }];
            run.order(Command::Amend { amendments, reason: String::new() });
        }
        run.done(1, "begun");
        run.done(2, "written");
        assert_eq!(run.told(3).needs, needs);
    }
}
