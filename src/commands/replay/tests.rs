//! The commands typed in a replay.

use super::*;

#[test]
fn replay_commands_are_words_with_an_optional_number() {
    let check = |line: &str, expected: Option<Order>| assert_eq!(Order::parse(line).ok(), expected, "{line:?}");
    for (line, order) in [
        ("", Order::Next(1)),
        (" \r\n", Order::Next(1)),
        ("n 3\n", Order::Next(3)),
        ("next", Order::Next(1)),
        ("b", Order::Back(1)),
        ("back 2", Order::Back(2)),
        ("g 0", Order::To(Position(0))),
        ("to 17", Order::To(Position(17))),
        ("f", Order::NextFailure),
        ("failure", Order::NextFailure),
        ("F", Order::FailureBefore),
        ("previous", Order::FailureBefore),
        ("s", Order::Show),
        ("show", Order::Show),
        ("first", Order::First),
        ("last", Order::Last),
        ("h", Order::Help),
        ("q", Order::Quit),
    ] {
        check(line, Some(order));
    }
    for line in ["n 0", "n -1", "n x", "n 1 2", "g", "g -1", "g x", "N", "f 2", "quit now", "99999999999999999999"] {
        check(line, None);
    }
}
