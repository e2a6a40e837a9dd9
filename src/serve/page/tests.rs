//! The page's handling of texts, addresses and graphs.

use super::asked::{Asked, Tab};
use super::layers::{lay_out, reduced};
use super::svg::{Anchor, Svg, in_two_lines};
use super::words::{cut, grouped, lasting, whole};

fn asked(pairs: &[(&str, &str)]) -> Asked {
    Asked::of(&pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>())
}

#[test]
fn every_state_has_one_address() {
    let state = asked(&[("task", "T 1&<"), ("plan", "p/é"), ("at", "12"), ("q", ""), ("other", "x"), ("said", "done")]);
    assert_eq!(state.link(&[]), "/?at=12&plan=p/%C3%A9&task=T+1%26%3C");
    assert_eq!(state.link(&[("at", ""), ("plan", ""), ("task", "")]), "/");
    assert_eq!((state.number("at"), state.number("task"), state.tab()), (Some(12), None, Tab::Overview));
    assert_eq!(asked(&[("at", "-1")]).number("at"), None);
}

#[test]
fn texts_of_the_log_stay_texts() {
    let mut svg = Svg::new("a", (1.0, 2.0), "\"<>'&", true);
    svg.label("b", (0.0, 0.05), "</text><script>", Anchor::Start);
    let svg = svg.end().0;
    assert!(svg.contains("aria-label=\"&quot;&lt;&gt;&#39;&amp;\""), "{svg}");
    assert!(svg.contains(">&lt;/text&gt;&lt;script&gt;</text>"), "{svg}");
    assert_eq!(cut("a\u{202e}\u{1b}b", 40), "a\\u{202e}\\u{1b}b");
    assert_eq!(whole("abc", 2), ("ab".to_owned(), false));
    assert_eq!(cut(&"x".repeat(1 << 20), 5), "xx...");
}

#[test]
fn numbers_and_times_are_written_for_people() {
    assert_eq!(
        [0, 999, 1_000, 18_204, -1_234_567].map(|n: i64| grouped(n)),
        ["0", "999", "1,000", "18,204", "-1,234,567"]
    );
    let of_seconds = |seconds: i64| lasting(seconds * 1_000_000);
    assert_eq!([59, 60, 6_480, 3_600, 90_000].map(of_seconds), ["59 s", "1 min", "1 h 48 min", "1 h", "1 d 1 h"]);
    assert_eq!(in_two_lines("one two three", 48.0, 6.0), ("one two".to_owned(), "three".to_owned()));
}

#[test]
fn lines_that_a_longer_way_implies_are_left_out() {
    let edges = reduced(4, &[0, 1, 2, 2], &[(0, 1), (1, 2), (0, 2), (0, 3)]);
    assert_eq!(edges, [(0, 1), (1, 2), (0, 3)]);
}

#[test]
fn nodes_of_a_layer_do_not_overlap() {
    let layer = [0, 0, 0, 1, 1, 2, 3, 3];
    let edges = [(0, 4), (1, 3), (2, 3), (3, 5), (4, 5), (0, 6), (5, 7)];
    let layout = lay_out(&layer, &edges, 40.0, 10.0);
    for (a, b) in (0..layer.len()).flat_map(|a| (0..a).map(move |b| (a, b))).filter(|(a, b)| layer[*a] == layer[*b]) {
        assert!((layout.y[a] - layout.y[b]).abs() >= 49.9, "{a} and {b}: {:?}", layout.y);
    }
    assert_eq!(layout.bends.iter().map(Vec::len).collect::<Vec<_>>(), [0, 0, 0, 0, 0, 2, 0]);
    assert!(layout.y.iter().all(|y| (20.0..layout.height).contains(y)), "{:?}", layout.y);
}
