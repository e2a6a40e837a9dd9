//! Names that are suggested for mistyped ones.

use super::similar;

#[test]
fn a_mistyped_name_suggests_the_nearest_names() {
    let plans = ["nightly-check-ab12", "release-the-shop-yx5x", "release-notes-77aa", "backlog"];
    let tasks = ["T001", "T012", "Deploy/2", "1", "2"];
    let cases: [(&str, &[&str], &[&str]); 14] = [
        ("nightli", &plans, &["nightly-check-ab12"]),
        ("Nightly", &plans, &["nightly-check-ab12"]),
        ("check-ab13", &plans, &["nightly-check-ab12"]),
        ("relaese", &plans, &["release-the-shop-yx5x", "release-notes-77aa"]),
        ("notse", &plans, &["release-notes-77aa"]),
        ("backlgo", &plans, &["backlog"]),
        ("release-the-shop-yx5y", &plans, &["release-the-shop-yx5x"]),
        ("paint", &plans, &[]),
        ("backlog-ab1", &plans, &[]),
        ("release-notes-8cd2", &plans, &[]),
        ("T01", &tasks, &["T001", "T012"]),
        ("Deploy/3", &tasks, &["Deploy/2"]),
        ("9", &tasks, &[]),
        ("", &tasks, &[]),
    ];
    for (typed, known, suggested) in cases {
        assert_eq!(similar(typed, known.iter().copied()), suggested, "{typed}");
    }
}
