//! The slugs of plans and of their forks.

use super::{fork_slug, new_id, slug_of};

#[test]
fn no_fork_has_the_slug_of_a_plan_that_it_descends_from() {
    let cases = [
        ("ship-yx5x", "ship", "ship-fork"),
        ("ship-fork-yx5x", "ship-fork", "ship-fork-2"),
        ("ship-fork-2-yx5x", "ship-fork-2", "ship-fork-3"),
        ("ship-fork-it-yx5x", "ship-fork-it", "ship-fork-it-fork"),
        ("backlog", "backlog", "backlog-fork"),
        ("ship-prod", "ship-prod", "ship-prod-fork"),
        ("ship-yx5x.3-1", "ship-yx5x.3-1", "ship-yx5x-3-1-fork"),
        ("\u{1b}[31m-yx5x", "\u{1b}[31m", "31m-fork"),
        ("\u{e4}", "\u{e4}", "plan-fork"),
        ("", "", "plan-fork"),
    ];
    for (parent, slug, fork) in cases {
        assert_eq!((slug_of(parent), fork_slug(parent).as_str()), (slug, fork), "{parent}");
        assert_eq!(slug_of(&new_id(fork)), fork);
    }
}
