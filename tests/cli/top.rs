//! `top` on a real terminal: what waits is shown, answered in place and gone; the terminal is given back.

use std::fs::File;

use rustix::process::Signal;
use rustix::termios::{LocalModes, tcgetattr};

use super::scene::{Running, Scene};

/// The screen of a terminal of 80 columns and 24 lines after this output. It only interprets cursor positions.
fn screen(output: &str) -> String {
    let mut lines = vec![vec![' '; 80]; 24];
    let (mut row, mut column) = (0, 0);
    let mut rest = output;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let control = rest.strip_prefix('[').filter(|_| c == '\u{1b}');
        if let Some((end, last)) = control.and_then(|control| control.char_indices().find(|(_, c)| c.is_alphabetic())) {
            let arguments = &rest[1..=end];
            if last == 'H' {
                let place = arguments.split_once(';').unwrap_or(("1", "1"));
                (row, column) = (place.0.parse::<usize>().unwrap_or(1) - 1, place.1.parse::<usize>().unwrap_or(1) - 1);
            }
            rest = &rest[1 + end + last.len_utf8()..];
        } else if !c.is_control() {
            if let Some(cell) = lines.get_mut(row).and_then(|line| line.get_mut(column)) {
                *cell = c;
            }
            column += 1;
        }
    }
    lines.into_iter().map(|line| line.into_iter().collect::<String>() + "\n").collect()
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
    let (mut top, terminal) = Running::start_full_screen(&mut scene.crewlog(&["top"]));
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
fn ctrl_c_a_signal_and_a_lost_log_give_the_terminal_back() {
    for way in ["ctrl-c", "signal", "lost"] {
        let scene = Scene::new();
        scene.plan("1. Which colour is it?\n").1.expect(5);
        let (mut top, terminal) = Running::start_full_screen(&mut scene.crewlog(&["top"]));
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
fn without_a_terminal_other_commands_are_named() {
    let scene = Scene::new();
    scene.run(&["init"]).expect(0);
    scene.run(&["top"]).expect(1).says(&["needs a terminal", "crewlog show", "crewlog agents"]);
}
