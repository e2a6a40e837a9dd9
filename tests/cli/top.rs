//! `top` on a real terminal: what waits is shown, answered in place and gone; the terminal is given back.

use std::fs::File;

use rustix::process::Signal;
use rustix::termios::{LocalModes, tcgetattr};

use super::scene::{Running, Scene};

const SIZE: (u16, u16) = (80, 24);

fn screen(output: &str) -> String {
    super::screen::screen(output, (80, 24))
}

fn resize(terminal: &File, (columns, rows): (u16, u16)) {
    let size = rustix::termios::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(terminal, size).expect("it has a size");
}

fn is_raw(terminal: &File) -> bool {
    let modes = tcgetattr(terminal).expect("it is a terminal").local_modes;
    !modes.contains(LocalModes::ICANON | LocalModes::ECHO)
}

#[test]
fn question_is_answered_in_place_and_the_terminal_given_back() {
    let scene = Scene::new();
    let (plan, ran) = scene.plan("1. Which colour is it?\n");
    ran.expect(5);
    let (mut top, terminal) = Running::start_full_screen(&mut scene.crewlog(&["top"]), SIZE);
    top.stderr.until_it(|output| screen(output).contains("Which colour is it?"));
    assert!(is_raw(&terminal), "keys come one by one");
    top.presses("\r");
    top.stderr.until_it(|output| screen(output).contains("answer>"));
    top.presses("deep blue\r");
    top.stderr.until_it(|output| screen(output).contains("nothing waits for you"));
    assert_eq!(scene.show(&plan)["questions"][0]["answer"], "deep blue");
    top.presses("q");
    // It leaves the other screen and shows the cursor.
    let ran = top.finish().expect(0);
    assert!(ran.stderr.contains("\u{1b}[?1049l") && ran.stderr.ends_with("\u{1b}[?25h"), "{:?}", ran.stderr);
    assert!(!is_raw(&terminal));
}

#[test]
fn the_bell_rings_for_a_new_question_unless_it_is_quiet() {
    for words in [&["top"][..], &["top", "--quiet"]] {
        let scene = Scene::new();
        scene.plan("1. Which colour is it?\n").1.expect(5);
        let (mut top, _terminal) = Running::start_full_screen(&mut scene.crewlog(words), SIZE);
        top.stderr.until_it(|output| screen(output).contains("Which colour is it?"));
        assert!(!top.stderr.text().contains('\u{7}'), "{words:?}: the first view is no news");
        scene.run(&["task", "add", "--yes", "Which size is it?"]).expect(0);
        let rings = words.len() == 1;
        top.stderr.until_it(|output| screen(output).contains("Which size is it?") && output.contains('\u{7}') == rings);
        top.presses("q");
        assert_eq!(top.finish().expect(0).stderr.contains('\u{7}'), rings, "{words:?}");
    }
}

#[test]
fn ctrl_c_a_signal_and_a_lost_log_give_the_terminal_back() {
    for way in ["ctrl-c", "signal", "lost"] {
        let scene = Scene::new();
        scene.plan("1. Which colour is it?\n").1.expect(5);
        let (mut top, terminal) = Running::start_full_screen(&mut scene.crewlog(&["top"]), SIZE);
        top.stderr.until_it(|output| screen(output).contains("Which colour is it?"));
        match way {
            "ctrl-c" => top.presses("\u{3}"),
            "signal" => top.signal(Signal::TERM),
            _lost => std::fs::rename(scene.path(".crewlog/log.db"), scene.path("gone.db")).expect("it can be moved"),
        }
        let ran = top.finish().expect(if way == "lost" { 1 } else { 0 });
        let (_, after) = ran.stderr.split_once("\u{1b}[?1049l").expect("it leaves the other screen");
        assert_eq!(after.contains("error: "), way == "lost", "{way}: {after}");
        assert!(!is_raw(&terminal), "{way}");
    }
}

#[test]
fn a_terminal_of_any_size_and_kind_is_drawn_on_and_given_back() {
    let scene = Scene::new();
    scene.plan("1. Which colour is it?\n").1.expect(5);
    for (size, term) in [((1, 1), "xterm"), ((2, 1), "xterm"), ((3, 200), "xterm"), ((500, 2), "xterm"), (SIZE, "dumb")]
    {
        let mut command = scene.crewlog(&["top"]);
        let (mut top, terminal) = Running::start_full_screen(command.env("TERM", term), size);
        top.stderr.until("\u{1b}[?1049h");
        for size in [(80, 24), (1, 1), (80, 24)] {
            resize(&terminal, size);
            top.signal(Signal::WINCH);
        }
        top.stderr.until_it(|output| screen(output).contains("Which colour"));
        top.presses("q");
        let ran = top.finish().expect(0);
        assert!(ran.stderr.ends_with("\u{1b}[?25h"), "{size:?} {term}: {:?}", ran.stderr);
        assert!(!is_raw(&terminal), "{size:?} {term}");
    }
}

#[test]
fn without_a_terminal_other_commands_are_named() {
    let scene = Scene::new();
    scene.run(&["init"]).expect(0);
    scene.run(&["top"]).expect(1).says(&["needs a terminal", "crewlog show", "crewlog agents"]);
}
