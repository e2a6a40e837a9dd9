//! What holds for every text: no panic, one result, nothing lost, limits.

use super::{check, plan};
use crate::parse::{ParseError, ParseOptions, ParsedPlan, TASKS_MAX, TEXT_BYTES_MAX, parse, render, validate};
use crate::plan::{Dependency, NodeKind, Strength, TaskId, TaskPlan};

/// A small generator: the same seed gives the same texts.
struct Seeded(u64);

impl Seeded {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }
}

const PARTS: &[&str] = &[
    "Add login",
    "Run `make`",
    ". ",
    "\n",
    "\n\n",
    "- ",
    "1. ",
    "2. ",
    "  ",
    "\t",
    "- [ ] ",
    "- [x] ",
    "Then ",
    ", then ",
    "(after 1)",
    "(depends on T1)",
    "[P] ",
    "T1 ",
    "T2: ",
    "?",
    "?? ",
    "# Tasks\n",
    "## Phase 1\n",
    "```\n",
    "```sh\n",
    "`",
    "\"",
    "'",
    "(",
    ")",
    "[",
    "]",
    "https://x.y/z",
    "src/a.rs",
    "![a](b.png)",
    "~~",
    "<!--",
    "-->",
    "| a | b |\n",
    "|---|---|\n",
    "> ",
    "If it fails, ",
    "otherwise ",
    "; ",
    "然后",
    "。",
    "\u{feff}",
    "\u{a0}",
    "\0",
    "\r\n",
    "🚀 ",
    "é",
    "---\n",
    "\n---\n",
    "\n===\n",
    "@ann ",
    "!high ",
    "in parallel ",
    "once both are done, ",
    "before 2",
    "->",
    "→",
    "T1 -> T2\n",
    "**",
    "Use x",
    "Don't y",
    "See also z.md",
    "TBD",
    "if ",
    "unless ",
    "and ",
    "please find the a",
    "I need the a. ",
    "Could you ",
    "(deadline 2h) ",
    "(undo: `x`) ",
    "(default: y after 1m) ",
    "~2h",
    " !!",
    "Ann: ",
    "[10:31] ",
    "#12 ",
    "In order to a, ",
    "a) ",
    "i. ",
    "Step 3: ",
    "\\",
    "{",
    "*",
];

fn texts() -> impl Iterator<Item = String> {
    let mut seeded = Seeded(7);
    (0..4_000).map(move |_| {
        let length = 1 + seeded.next(24);
        (0..length).map(|_| PARTS[seeded.next(PARTS.len())]).collect()
    })
}

fn visible(text: &str) -> bool {
    text.chars().any(|c| !c.is_whitespace() && !matches!(c, '\0' | '\u{feff}'))
}

/// The first visible part of a text that stands in no span.
fn lost<'t>(text: &'t str, plan: &ParsedPlan) -> Option<&'t str> {
    let mut spans: Vec<_> = plan.tasks.iter().flat_map(|task| &task.spans).chain(&plan.ignored).collect();
    spans.sort();
    let mut at = 0;
    for span in spans {
        let gap = &text[at..span.start.max(at)];
        if visible(gap) {
            return Some(gap);
        }
        at = at.max(span.end);
    }
    Some(&text[at..]).filter(|rest| visible(rest))
}

#[test]
fn any_text_gives_one_sound_result_and_loses_nothing() {
    let mut n_plans = 0;
    for text in texts() {
        let result = parse(&text, ParseOptions::default());
        assert_eq!(result, parse(&text, ParseOptions::default()), "of {text:?}");
        let Ok(plan) = result else { continue };
        n_plans += 1;
        assert_eq!(validate(&plan.tasks), Ok(()), "of {text:?}");
        assert_eq!(lost(&text, &plan), None, "of {text:?}");
        for task in &plan.tasks {
            assert!(task.spans.windows(2).all(|pair| pair[0].end <= pair[1].start), "of {text:?}");
            assert!(task.spans.iter().all(|span| text.get(span.start..span.end).is_some()), "of {text:?}");
        }
    }
    assert!(n_plans > 2_000, "only {n_plans} texts were plans");
}

fn without_spans(mut plan: ParsedPlan) -> ParsedPlan {
    plan.ignored.clear();
    plan.warnings.clear();
    plan.tasks.iter_mut().for_each(|task| task.spans.clear());
    plan
}

#[test]
fn a_rendered_plan_reads_back_as_itself() {
    for text in texts() {
        let Ok(first) = parse(&text, ParseOptions::default()) else { continue };
        let again = plan(&render(&first));
        assert_eq!(without_spans(again), without_spans(first), "of {text:?}");
    }
}

#[test]
fn line_ends_change_spans_only() {
    for text in texts().filter(|text| !text.contains('\r')) {
        let shown = |text: &str| parse(text, ParseOptions::default()).ok().map(without_spans);
        assert_eq!(shown(&format!("{text}\n")), shown(&text), "of {text:?}");
        assert_eq!(shown(&text.replace('\n', "\r\n")), shown(&text), "of {text:?}");
    }
}

#[test]
fn permuting_bullets_permutes_tasks() {
    let items = [
        "Add login",
        "Fix the crash in src/a.rs",
        "Run `make`",
        "Write the docs @ann",
        "Which port?",
        "Read https://x.y/z (deadline 2h) !!",
        "P1: Rename a to b",
        "添加缓存",
    ];
    for turn in 0..items.len() {
        let order: Vec<&str> = items.iter().cycle().skip(turn).take(items.len()).copied().collect();
        let text: String = order.iter().map(|item| format!("- {item}\n")).collect();
        let bare = |mut plan: ParsedPlan| {
            plan.tasks.iter_mut().for_each(|task| {
                task.spans.clear();
                task.id = TaskId(1);
            });
            plan.tasks
        };
        let alone: Vec<TaskPlan> = order.iter().flat_map(|item| bare(plan(&format!("- {item}")))).collect();
        assert_eq!(bare(plan(&text)), alone, "of {text:?}");
    }
}

#[test]
fn long_texts_are_refused_or_read_in_time() {
    let long = "x".repeat(TEXT_BYTES_MAX + 1);
    let limit = ParseError::LimitPassed { limit: "bytes", value: TEXT_BYTES_MAX + 1, max: TEXT_BYTES_MAX };
    assert_eq!(parse(&long, ParseOptions::default()), Err(limit));
    let many = "- a\n".repeat(TASKS_MAX + 1);
    let limit = ParseError::LimitPassed { limit: "tasks", value: TASKS_MAX + 1, max: TASKS_MAX };
    assert_eq!(parse(&many, ParseOptions::default()), Err(limit));
    for text in [
        "(".repeat(200_000),
        "[a](".repeat(50_000),
        "`".repeat(200_000),
        "@a ".repeat(50_000),
        " 'a".repeat(50_000),
        "> ".repeat(50_000),
    ] {
        assert!(parse(&format!("Add x {text}"), ParseOptions::default()).is_ok_and(|plan| plan.tasks.len() == 1));
    }
    let nested: String = (0..2_000).map(|n| format!("{}- x\n", " ".repeat(2 * n))).collect();
    assert!(parse(&nested, ParseOptions::default()).is_ok());
    for text in
        ["10:00 ann: ".repeat(20_000), format!("steps:\n{}", "k: v\n".repeat(20_000)), "In order to a, ".repeat(20_000)]
    {
        assert!(parse(&text, ParseOptions::default()).is_ok_and(|plan| plan.tasks.len() == 1));
    }
    // Lines that end with "\r" alone are looked at one by one as well.
    assert!(parse(&"a\r".repeat(200_000), ParseOptions::default()).is_ok());
    let named = format!("web: {}the tests", "run: ".repeat(20_000));
    assert!(parse(&named, ParseOptions::default()).is_ok());
}

#[test]
fn edges_are_limited() {
    let items = |n| "- [P] Add x\n".repeat(n);
    let text = format!("## Phase 1\n{}## Phase 2\n{}", items(2_000), items(2_000));
    assert!(matches!(
        parse(&text, ParseOptions::default()),
        Err(ParseError::LimitPassed { limit: "dependencies", .. })
    ));
}

#[test]
fn proposed_tasks_are_checked_without_a_text() {
    let task = |id| TaskPlan::new(TaskId(id), NodeKind::Processing, "x");
    let wait = |id| Dependency { task: TaskId(id), strength: Strength::Hard };
    assert_eq!(validate(&[task(1), task(2)]), Ok(()));
    assert_eq!(validate(&[]), Err(ParseError::EmptyPlan));
    assert_eq!(validate(&[task(1), task(1)]), Err(ParseError::IdOrder { id: 1, previous: 1 }));
    let mut own = task(1);
    own.depends_on.push(wait(1));
    assert_eq!(validate(&[own]), Err(ParseError::SelfDependency { id: "1".into(), line: 0, column: 0 }));
    let (mut first, mut second) = (task(1), task(2));
    first.depends_on.push(wait(2));
    second.depends_on.push(wait(1));
    let cycle = vec!["1".to_owned(), "2".to_owned(), "1".to_owned()];
    assert_eq!(validate(&[first, second]), Err(ParseError::DependencyCycle { cycle, line: 0, column: 0 }));
    let mut unknown = task(1);
    unknown.depends_on.push(wait(9));
    assert_eq!(validate(&[unknown]), Err(ParseError::UnknownId { id: "9".into(), line: 0, column: 0 }));
}

#[test]
fn a_nul_byte_is_a_space() {
    check("Add\0login.\0", &["1 CodeImplementation Add login"]);
}

#[test]
fn headings_alone_are_no_plan_unless_they_are_phases() {
    let headings = "# a\n".repeat(100_000);
    assert_eq!(parse(&headings, ParseOptions::default()), Err(ParseError::EmptyPlan));
    assert_eq!(plan(&format!("{headings}## Phase 1: Build it")).tasks.len(), 1);
}

#[test]
fn signs_in_odd_places_do_not_end_the_reading() {
    // A wide comma after a wait, a full stop in the sign of a speaker, a capital that is longer when it is small.
    for text in ["After the review\u{ff0c}deploy it", "[10:31]. ann: do it", "\u{130}.G", "Ask \u{130}.G. for it"] {
        let read = parse(text, ParseOptions::default());
        assert!(read.is_ok_and(|plan| !plan.tasks.is_empty()), "{text}");
    }
}

#[test]
fn fields_of_any_depth_and_of_any_number_are_read_or_left() {
    for n in [10, 20_000] {
        let brackets = format!("{}{}", "[".repeat(n), "]".repeat(n));
        for deep in [
            format!("tasks:\n- title: x\n  a: {brackets}"),
            format!("tasks:\n- title: x\n  a:\n  {}x", "- ".repeat(n)),
            format!("{{\"tasks\":[{{\"title\":\"x\",\"a\":{brackets}}}]}}"),
        ] {
            assert!(parse(&deep, ParseOptions::default()).is_ok_and(|plan| plan.tasks.len() == 1), "{n}");
        }
    }
    let fields: String = (0..100_000).map(|n| format!("k{n}: v\n")).collect();
    assert_eq!(plan(&format!("{fields}tasks:\n- title: Fix it\n")).tasks.len(), 1);
    assert!(parse(&format!("{fields}k7: v\ntasks:\n- title: Fix it\n"), ParseOptions::default()).is_ok());
}

#[test]
fn of_many_lists_in_fences_none_is_the_plan() {
    let fence = "# h\n```json\n[{\"id\":1,\"title\":\"Run `rm -rf z`\",\"status\":\"open\"}]\n```\n";
    let read = plan(&format!("{}- [ ] item", fence.repeat(20_000)));
    assert_eq!(read.tasks.len(), 1);
    assert_eq!(read.tasks[0].description, "item");
}
