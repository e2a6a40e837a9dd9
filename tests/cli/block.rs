//! The live block of `run` and `work` on a terminal: running tasks below the finished lines, and nothing at the end.

use std::process::Command;

use rustix::process::Signal;

use super::scene::{Running, Scene};
use super::screen::screen;
use super::work::{gates, leave, let_go, waits};

const SIZE: (u16, u16) = (80, 24);

fn start(command: &mut Command, size: (u16, u16)) -> Running {
    Running::start_full_screen(command, size).0
}

/// The lines on a terminal of this size, without empty ones.
fn shown(output: &str, (columns, rows): (u16, u16)) -> Vec<String> {
    let screen = screen(output, (columns.into(), rows.into()));
    screen.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Waits until the last lines contain these texts, each its own, and returns the lines above.
#[track_caller]
fn above(running: &mut Running, size: (u16, u16), block: &[&str]) -> Vec<String> {
    let at = |lines: &[String]| lines.len().checked_sub(block.len());
    let is_block = |lines: &[String]| {
        at(lines).is_some_and(|at| lines[at..].iter().zip(block).all(|(line, text)| line.contains(text)))
    };
    running.stderr.until_it(|output| is_block(&shown(output, size)));
    let mut lines = shown(&running.stderr.text(), size);
    lines.truncate(lines.len() - block.len());
    lines
}

fn n_with(lines: &[String], text: &str) -> usize {
    lines.iter().filter(|line| line.contains(text)).count()
}

/// A command followed by two that run until they are let go.
fn plan_with_two_held() -> String {
    let held = [1, 2].map(|n| format!("- [P] Run `{}`\n", waits(n))).concat();
    format!("- Run `echo first`\n{held}")
}

#[test]
fn running_tasks_are_shown_below_finished_lines_and_nothing_is_left() {
    let scene = Scene::new();
    let mut gates: [_; 2] = gates(&scene);
    scene.write("plan.md", plan_with_two_held());
    let mut run = start(&mut scene.crewlog(&["run", "plan.md", "--yes"]), SIZE);
    gates.iter_mut().for_each(|gate| gate.wait());
    // The block may show a task before the line that announces it.
    run.stderr.until_it(|output| n_with(&shown(output, SIZE), "START") == 3);
    let lines = above(&mut run, SIZE, &["echo 1 >> side", "echo 2 >> side", "1 of 3 done · 2 running"]);
    assert_eq!((n_with(&lines, "START"), n_with(&lines, "DONE")), (3, 1), "{lines:#?}");
    let_go(&scene, 1);
    run.stderr.until_it(|output| n_with(&shown(output, SIZE), "DONE") == 2);
    let lines = above(&mut run, SIZE, &["echo 2 >> side", "2 of 3 done · 1 running"]);
    assert_eq!((n_with(&lines, "START"), n_with(&lines, "DONE")), (3, 2), "{lines:#?}");
    let_go(&scene, 2);
    let ran = run.finish().expect(0);
    let lines = shown(&ran.stderr, SIZE);
    assert_eq!((n_with(&lines, "START"), n_with(&lines, "DONE")), (3, 3), "{lines:#?}");
    assert_eq!((n_with(&lines, " of 3 done"), n_with(&lines, "00:00:")), (0, 0), "{lines:#?}");
    assert!(lines.last().is_some_and(|line| line.contains("Summary")) && ran.stderr.ends_with('\n'), "{lines:#?}");
}

#[test]
fn work_names_the_plan_of_each_task_and_an_interrupt_clears_the_block() {
    let scene = Scene::new();
    let mut gates: [_; 2] = gates(&scene);
    let plans = [1, 2].map(|n| leave(&scene, &format!("1. Run `{}`\n2. Which colour is it?\n", waits(n))));
    let mut work = start(&mut scene.crewlog(&["work"]), SIZE);
    gates.iter_mut().for_each(|gate| gate.wait());
    let mut block = plans.clone().map(|plan| format!("{plan} 1  echo"));
    block.sort_by_key(|line| !line.contains(plans.iter().min().expect("there are two").as_str()));
    above(&mut work, SIZE, &[&block[0], &block[1], "0 of 4 done · 2 running"]);
    let_go(&scene, 1);
    let of_second = format!("{} 1  echo", plans[1]);
    above(&mut work, SIZE, &[&of_second, "1 of 4 done · 1 running · 1 waits for you"]);
    work.signal(Signal::INT);
    let ran = work.finish().expect(130);
    let lines = shown(&ran.stderr, SIZE);
    assert_eq!(
        (n_with(&lines, "STOPPED"), n_with(&lines, " of 4 done"), n_with(&lines, "00:00:")),
        (1, 0, 0),
        "{lines:#?}"
    );
    assert!(ran.stderr.ends_with('\n'), "{lines:#?}");
}

#[test]
fn a_small_terminal_neither_wraps_nor_overflows() {
    let (scene, size) = (Scene::new(), (30, 5));
    let mut gates: [_; 4] = gates(&scene);
    let tasks = (1..=4).map(|n| format!("- [P] Run `echo 配布物を検査して公開する配布物を検査; {}`\n", waits(n)));
    scene.write("plan.md", tasks.collect::<String>());
    let mut run = start(&mut scene.crewlog(&["run", "plan.md", "--yes", "--jobs", "4"]), size);
    gates.iter_mut().for_each(|gate| gate.wait());
    let text = "echo 配布物";
    let lines = above(&mut run, size, &[text, text, "and 2 more", "0 of 4 done · 4 running"]);
    let [.., plan, a, b, c, d] = &lines[..] else { panic!("{lines:#?}") };
    assert!(plan.starts_with("plan-") && [a, b, c, d].iter().all(|line| line.contains("START")), "{lines:#?}");
    (1..=4).for_each(|n| let_go(&scene, n));
    run.finish().expect(0);
}

#[test]
fn a_question_hides_the_block() {
    let scene = Scene::new();
    let [mut gate] = gates(&scene);
    scene.write("plan.md", format!("- [P] Run `{}`\n- [P] Which colour is it?\n", waits(1)));
    let mut run = start(&mut scene.crewlog(&["run", "plan.md", "--yes"]), SIZE);
    gate.wait();
    let lines = above(&mut run, SIZE, &["q1 Which colour is it?", ">"]);
    assert_eq!(n_with(&lines, " of 2 done"), 0, "{lines:#?}");
    run.types("blue");
    above(&mut run, SIZE, &["echo 1 >> side", "1 of 2 done · 1 running"]);
    let_go(&scene, 1);
    run.finish().expect(0);
}

#[test]
fn pipes_quiet_runs_and_terminals_without_a_cursor_get_no_block() {
    let scene = Scene::new();
    scene.write("plan.md", "Run `echo ok`");
    let run = ["run", "plan.md", "--yes"];
    let on_terminal = |words: &[&str], term: &str| {
        let ran = start(scene.crewlog(words).env("TERM", term), SIZE).finish().expect(0);
        ran.stderr.matches('\u{1b}').count()
    };
    assert_ne!(on_terminal(&run, "xterm"), 0);
    assert_eq!(on_terminal(&run, "dumb"), 0);
    assert_eq!(on_terminal(&["run", "plan.md", "--yes", "--quiet"], "xterm"), 0);
    leave(&scene, "Run `echo ok`");
    for words in [&run as &[&str], &["work", "--until-idle"]] {
        assert!(!scene.run(words).expect(0).stderr.contains('\u{1b}'), "{words:?}");
    }
}

#[test]
fn the_block_has_colours_only_where_they_are_wanted() {
    let scene = Scene::new();
    scene.write("plan.md", "Run `echo ok`");
    for color in ["auto", "never"] {
        let ran = start(&mut scene.crewlog(&["run", "plan.md", "--yes", "--color", color]), SIZE).finish().expect(0);
        let codes =
            ran.stderr.split("\u{1b}[").filter_map(|rest| rest.find(|c: char| c.is_alphabetic()).map(|n| &rest[n..=n]));
        assert_eq!(codes.filter(|code| *code == "m").count() > 0, color == "auto", "{:?}", ran.stderr);
    }
}
