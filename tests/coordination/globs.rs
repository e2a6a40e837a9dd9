//! Patterns of paths: two patterns overlap exactly if a path matches both, according to a plain matcher.

use crewlog_planner::crew::globs::{GLOB_ALTERNATIVES_MAX, GLOB_BYTES_MAX, GLOB_COMPONENTS_MAX, Pattern};
use proptest::prelude::*;

/// The plain matcher: tries one character of the text after the other.
fn covers(pattern: &str, path: &str) -> bool {
    let names = path.split('/').collect::<Vec<_>>();
    braceless(pattern).iter().any(|pattern| {
        let parts = pattern.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>();
        (0..=names.len()).any(|n_names| names_match(&parts, &names[..n_names]))
    })
}

fn braceless(pattern: &str) -> Vec<String> {
    let Some((before, rest)) = pattern.split_once('{') else { return vec![pattern.to_owned()] };
    let Some((choices, after)) = rest.split_once('}') else { return vec![pattern.to_owned()] };
    choices.split(',').flat_map(|choice| braceless(&format!("{before}{choice}{after}"))).collect()
}

fn names_match(parts: &[&str], names: &[&str]) -> bool {
    match (parts, names) {
        ([], []) => true,
        (["**", rest @ ..], names) => (0..=names.len()).any(|skipped| names_match(rest, &names[skipped..])),
        ([part, rest @ ..], [name, names @ ..]) => {
            name_matches(&part.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>())
                && names_match(rest, names)
        }
        ([], _) | (_, []) => false,
    }
}

fn name_matches(part: &[char], name: &[char]) -> bool {
    match (part, name) {
        ([], []) => true,
        (['*', rest @ ..], name) => (0..=name.len()).any(|taken| name_matches(rest, &name[taken..])),
        (['?', rest @ ..], [_, name @ ..]) => name_matches(rest, name),
        (['[', '!', not, ']', rest @ ..], [char, name @ ..]) => char != not && name_matches(rest, name),
        (['[', from, '-', to, ']', rest @ ..], [char, name @ ..]) => {
            (from..=to).contains(&char) && name_matches(rest, name)
        }
        ([part, rest @ ..], [char, name @ ..]) => part == char && name_matches(rest, name),
        ([], _) | (_, []) => false,
    }
}

fn overlap(a: &str, b: &str) -> bool {
    let (a, b) = (Pattern::new(None, a), Pattern::new(None, b));
    let does = a.overlaps(&b);
    assert_eq!(b.overlaps(&a), does, "it is the same from both sides: {a:?} {b:?}");
    does
}

/// Small patterns over `a` and `b`, with every feature of a pattern.
fn patterns() -> impl Strategy<Value = String> {
    let step = prop_oneof![
        3 => Just("a"), 3 => Just("b"), 2 => Just("*"), 1 => Just("?"), 1 => Just("[a-b]"), 1 => Just("[!a]"),
        1 => Just("[b-b]"), 1 => Just("{a,ab}"), 1 => Just("{b,a/b}"),
    ];
    let name =
        prop_oneof![5 => prop::collection::vec(step, 1..4).prop_map(|steps| steps.concat()), 1 => Just("**".into())];
    prop::collection::vec(name, 1..4).prop_map(|names| names.join("/"))
}

/// Every path of up to three names of up to three characters; `c` represents all characters outside the patterns.
fn paths() -> Vec<String> {
    let mut names = vec![String::new()];
    let mut all_names = Vec::new();
    for _ in 0..3 {
        names = names.iter().flat_map(|name| ["a", "b", "c"].map(|char| format!("{name}{char}"))).collect();
        all_names.extend(names.clone());
    }
    let short = all_names.iter().filter(|name| name.len() < 3).collect::<Vec<_>>();
    let mut paths = all_names.clone();
    paths.extend(short.iter().flat_map(|a| all_names.iter().map(move |b| format!("{a}/{b}"))));
    paths.extend(
        short
            .iter()
            .flat_map(|a| short.iter().map(move |b| format!("{b}/{a}")))
            .flat_map(|front| short.iter().map(move |name| format!("{front}/{name}")).collect::<Vec<_>>()),
    );
    paths
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_patterns_that_match_a_path_overlap(a in patterns(), b in patterns()) {
        let common = paths().into_iter().find(|path| covers(&a, path) && covers(&b, path));
        if let Some(path) = common {
            prop_assert!(overlap(&a, &b), "{a} and {b} both match {path}");
        }
    }

    #[test]
    fn overlapping_small_patterns_have_a_common_path(
        a in small_patterns(), b in small_patterns(),
    ) {
        let common = paths().into_iter().find(|path| covers(&a, path) && covers(&b, path));
        prop_assert_eq!(overlap(&a, &b), common.is_some(), "{} and {}: {:?}", a, b, common);
    }
}

/// Patterns so small that if two overlap, a path among [`paths`] matches both.
fn small_patterns() -> impl Strategy<Value = String> {
    let step = prop_oneof![
        3 => Just("a"), 3 => Just("b"), 2 => Just("*"), 1 => Just("?"), 1 => Just("[!a]"), 1 => Just("{a,b}"),
    ];
    let name =
        prop_oneof![4 => prop::collection::vec(step, 1..3).prop_map(|steps| steps.concat()), 1 => Just("**".into())];
    (prop::collection::vec(name, 1..3)).prop_map(|names| names.join("/"))
}

#[test]
fn listed_pattern_pairs_overlap_as_expected() {
    for (a, b, expected) in [
        ("src/a.rs", "src/a.rs", true),
        ("src/a.rs", "src/b.rs", false),
        ("src", "src/deep/a.rs", true),
        ("src/", "srca/b", false),
        ("src/*.rs", "src/a.rs", true),
        ("src/*.rs", "src/deep/a.rs", false),
        ("src/**/*.rs", "src/a.rs", true),
        ("src/**/*.rs", "src/a/b/c.rs", true),
        ("src/**/*.rs", "src/a/b/c.md", false),
        ("**/*.md", "docs", true),
        ("**/*.md", "a.rs/", true),
        ("**/*.md", "a.rs", false),
        ("**/*.md", "conf.d", true),
        ("a.rs/b", "a.rs", true),
        (".config/x", ".config", true),
        ("src/*.rs", "src/a.rs/b", true),
        ("src/*.rs", "src/*/b", false),
        ("src/**/*.rs", "src/x.rs/a/**/b", true),
        ("three.js", "three.js/*.md", true),
        ("a.rs/b", "a.*", true),
        ("*.md", "docs/a.md", false),
        ("a*b", "*ab*", true),
        ("a*", "b*", false),
        ("?", "ab", false),
        ("[a-c]x", "[c-d]x", true),
        ("[a-c]x", "[!a-c]x", false),
        ("[a-]x", "ax", true),
        ("[a-]x", "-x", true),
        ("[a-]x", "bx", false),
        ("[acb]x", "cx", true),
        ("[acb]x", "dx", false),
        ("[xa-c]x", "bx", true),
        ("[]x", "x", false),
        ("[z-a]", "*", false),
        ("a/[z-a]", "a", false),
        ("src/{a,b}.rs", "src/b.rs", true),
        ("src/{a,b}.rs", "src/c.rs", false),
        ("{src,lib}/{a,{b,c}}", "lib/c", true),
        ("a{b", "a{b", true),
        ("app/[id]/page", "app/[id]/page", true),
        ("Readme", "README", false),
        ("src\\a.rs", "src/a.rs", true),
        ("./src//x/../a.rs", "src/a.rs", true),
        ("../a", "a", false),
        ("../a", "x/../../a", true),
        ("../../a", "a", false),
        ("../../a", "../a", false),
        ("../../a", "x/../../../a", true),
        ("/a", "a", false),
        ("/../a", "/a", true),
        ("~/a", "~/*", true),
        (".", "anything/at.all", true),
        ("**/../a", "b/c", true),
        ("\u{e4}?", "\u{e4}\u{1f980}", true),
    ] {
        assert_eq!(overlap(a, b), expected, "{a} and {b}");
    }
}

#[test]
fn a_pattern_is_relative_to_its_folder() {
    let check = |(folder_a, a): (&str, &str), (folder_b, b): (&str, &str), expected: bool| {
        let (a, b) = (Pattern::new(Some(folder_a), a), Pattern::new(Some(folder_b), b));
        assert_eq!(a.overlaps(&b), expected, "{a:?} and {b:?}");
    };
    check(("/r/one", "a"), ("/r/two", "a"), false);
    check(("/r/one", "a"), ("/r", "one/*"), true);
    check(("/r/one", "../two/a"), ("/r/two", "a"), true);
    check(("/r/one", "/r/one/a"), ("/r/one/", "a"), true);
    check(("/r/one", "~/a"), ("/r/two", "~/a"), true);
    assert_eq!(Pattern::new(Some("/r/one"), "./src/../a").shown(), "./src/../a");
}

#[test]
fn a_pattern_fits_up_to_each_limit() {
    let names = |n: usize| vec!["a"; n].join("/");
    for (written, fits) in [
        ("a".repeat(GLOB_BYTES_MAX), true),
        ("a".repeat(GLOB_BYTES_MAX + 1), false),
        (names(GLOB_COMPONENTS_MAX), true),
        (names(GLOB_COMPONENTS_MAX + 1), false),
        (format!("{{b,{}}}", names(GLOB_COMPONENTS_MAX)), true),
        (format!("{{b,{}}}", names(GLOB_COMPONENTS_MAX + 1)), false),
        ("{a,b}".repeat(6), true),
        ("{a,b}".repeat(7), false),
    ] {
        assert_eq!(Pattern::fits(&written), fits, "{written}");
    }
    // One that fits is not widened.
    let longest = format!("src/{}", "?".repeat(GLOB_BYTES_MAX - 4));
    assert!(!overlap(&longest, "src/other"));
}

#[test]
fn a_literal_path_has_no_wildcards() {
    let literal = Pattern::literal("src/{a,b}*[x]?.rs");
    assert_eq!(literal.shown(), "src/{a,b}*[x]?.rs");
    assert!(!literal.overlaps(&Pattern::new(None, "src/ax1.rs")));
    assert!(literal.overlaps(&Pattern::new(None, "src")) && literal.overlaps(&Pattern::new(None, "src/*.rs")));
    assert!(literal.overlaps(&literal.clone()));
}

#[test]
fn the_cost_of_a_pattern_is_the_number_of_its_characters_and_wildcards() {
    for (written, n_steps) in
        [("src/a.rs", 7), ("**/a.rs", 5), ("{a,b}.rs", 8), ("[a-c]*.rs", 5), ("src", 4), ("a**b.rs", 6)]
    {
        assert_eq!(Pattern::new(None, written).n_steps(), n_steps, "{written}");
    }
}

#[test]
fn patterns_that_mean_the_same_are_the_same() {
    for (a, b, expected) in
        [("src/./x/../a.rs", "src/a.rs", true), ("{a,a}", "a", true), ("a", "b", false), ("a*", "a?", false)]
    {
        assert_eq!(Pattern::new(None, a).is_same(&Pattern::new(None, b)), expected, "{a} and {b}");
    }
}

#[test]
fn a_pattern_beyond_a_limit_is_widened_to_its_folder() {
    let long = format!("src/{}.rs", "*x".repeat(GLOB_BYTES_MAX));
    assert!(overlap(&long, "src/other") && !overlap(&long, "docs"));
    let long = format!("src.rs/{}", "*x".repeat(GLOB_BYTES_MAX));
    assert!(overlap(&long, "src.rs/other"), "the folder is one, whatever its name");
    let deep = format!("src/{}", "a/".repeat(GLOB_BYTES_MAX));
    assert!(overlap(&deep, "src/a/a") && !overlap(&deep, "src/b"));
    let many = format!("src/{}", "{a,b}".repeat(7));
    const { assert!(1 << 7 > GLOB_ALTERNATIVES_MAX && 1 << 6 <= GLOB_ALTERNATIVES_MAX) };
    assert!(overlap(&many, "src/c") && !overlap(&many, "docs"));
    let just = format!("src/{}", "{a,b}".repeat(6));
    assert!(overlap(&just, "src/ababab") && !overlap(&just, "src/c"));
    let names = vec!["a"; GLOB_COMPONENTS_MAX + 1].join("/");
    let others = format!("{}/b", vec!["a"; GLOB_COMPONENTS_MAX].join("/"));
    assert!(overlap(&names, &others), "what is deeper is not distinguished");
    assert!(overlap(&"*".repeat(GLOB_BYTES_MAX + 1), "anything"));
    assert!(Pattern::new(None, &"\u{e4}".repeat(5_000)).shown().chars().count() <= GLOB_BYTES_MAX);
}

/// Trying one place after the other would never end.
#[test]
fn hostile_patterns_are_matched_in_bounded_time() {
    let decided = |a: &str, b: &str| {
        for text in [a, b] {
            let n_steps = Pattern::new(None, text).n_steps();
            assert!(n_steps <= GLOB_BYTES_MAX + GLOB_COMPONENTS_MAX, "{n_steps} of {text}");
        }
        overlap(a, b)
    };
    let stars = |last: &str| format!("{}{last}", "*a".repeat(GLOB_BYTES_MAX / 2 - 1));
    assert!(!decided(&stars("b"), &stars("c")));
    assert!(decided(&stars("b"), &stars("*b")));
    let deep = |last: &str| format!("{}{last}", "**/*a/".repeat(31));
    assert!(decided(&deep("x"), &deep("x")) && decided(&deep("b"), &deep("c")), "one may lie below the other");
    assert!(!decided(&format!("{}/b.rs", deep("x")), &format!("{}/c.rs", deep("x"))));
    let braces = "{a,{b,".repeat(80);
    assert!(decided(&braces, &braces));
    let nested = format!("{}{}", "{a,".repeat(63), "}".repeat(63));
    assert!(decided(&nested, "a"));
    assert!(decided(&"{a,b}".repeat(100), "a"), "so many ways stand for their folder");
}
