//! Listings, quotations and comments of other markup than Markdown: what is run of them, and what is only kept.

use super::{check, plan};

/// Asserts that a text has no command.
#[track_caller]
fn runs_nothing(text: &str) {
    let tasks = plan(text).tasks;
    let commands: Vec<_> = tasks.iter().filter_map(|task| task.command.as_deref()).collect();
    assert_eq!(commands, Vec::<&str>::new(), "of {text:?}");
}

#[test]
fn code_on_one_line_ends_there() {
    check(
        "h2. Steps\nRun this:\n{code:bash}make x{code}\nReboot the server.",
        &["1 ToolCall Run this | $ make x", "2 Processing Reboot the server"],
    );
    check("h2. Steps\n# Run this:\n{code:bash}make x\nmake y{code}\n", &["1 ToolCall Run this | $ make x\\nmake y"]);
}

#[test]
fn a_listing_that_never_closes_is_not_run() {
    for (text, help) in [
        ("h2. Steps\nRun this:\n{code:bash}\nmake x\nrm -rf y\n", "close it with {code}"),
        ("#+TITLE: a\n* TODO Run this:\n#+BEGIN_SRC sh\nmake x\n", "close it with #+END_ and the name it began with"),
        ("= Guide\n\n. Run this:\n+\n----\nmake x\n", "close it with ----"),
    ] {
        runs_nothing(text);
        let warnings = plan(text).warnings;
        assert!(warnings.iter().any(|one| one.help.as_deref() == Some(help)), "{warnings:?} of {text:?}");
    }
}

#[test]
fn what_is_said_of_a_listing_holds_for_it() {
    for text in [
        "= Guide\n\n. Run this:\n+\n[source,python]\n----\nmake install\n----\n",
        "= Guide\n\n. Run this:\n+\n.Never do this\n[source,sh]\n----\nmake install\n----\n",
        "= Guide\n\n. Run this:\n+\n[source,sh,title=\"No\"]\n----\nmake install\n----\n",
        "h2. Steps\nRun this:\n{code:title=a.py|borderStyle=solid}\nmake install\n{code}\n",
        "h2. Steps\nRun this:\n{code:bash|title=Never do this}\nmake install\n{code}\n",
        "#+TITLE: a\n* TODO Run this:\n#+BEGIN_SRC sh :eval never\nmake install\n#+END_SRC\n",
        "#+TITLE: a\n* TODO Run this:\n#+CAPTION: Never do this\n#+BEGIN_SRC sh\nmake install\n#+END_SRC\n",
    ] {
        runs_nothing(text);
        assert_eq!(plan(text).tasks.len(), 1, "of {text:?}");
    }
    check(
        "#+TITLE: a\n* TODO Run this:\n#+BEGIN_SRC sh :eval yes\nmake install\n#+END_SRC\n",
        &["1 ToolCall Run this | $ make install"],
    );
}

#[test]
fn comments_quotations_and_literals_are_no_steps() {
    for text in [
        "#+TITLE: a\n* TODO Fix it\n: Run `rm -rf a`\n",
        "#+TITLE: a\n* TODO Fix it\n#+BEGIN_COMMENT\n- Run `rm -rf a`\n#+END_COMMENT\n",
        "#+TITLE: a\n* TODO Fix it\n#+BEGIN_QUOTE\n- Run `rm -rf a`\n#+END_QUOTE\n",
        "#+TITLE: a\n* TODO Fix it\n#+BEGIN_EXAMPLE\nrm -rf a\n#+END_EXAMPLE\n",
        "#+TITLE: a\n* TODO Fix it\n* COMMENT TODO hidden\n** TODO Run `rm -rf a`\n",
        "#+TITLE: a\n* TODO Fix it\n* TODO COMMENT hidden\n** TODO Run `rm -rf a`\n",
        "= Guide\n\n. Fix it\n\n[quote, Ann]\nRun `rm -rf a`.\n",
        "= Guide\n\n. Fix it\n\n[quote]\n____\n* Run `rm -rf a`\n____\n",
        "= Guide\n\n. Fix it\n\n////\n. Run `rm -rf a`\n////\n",
        "h2. Steps\n# Fix it\n{quote}\n# Run `rm -rf a`\n{quote}\n",
        "h2. Steps\n# Fix it\nbq. Run `rm -rf a`\n",
    ] {
        let tasks = plan(text).tasks;
        let shown: Vec<_> = tasks.iter().map(|task| (task.description.as_str(), task.command.as_deref())).collect();
        assert_eq!(shown, [("Fix it", None)], "of {text:?}");
    }
}

#[test]
fn what_a_text_or_a_section_says_of_its_listings_holds_for_them() {
    let listing = "#+BEGIN_SRC sh\nmake a\n#+END_SRC\n";
    for text in [
        format!("#+PROPERTY: header-args :eval no\n* TODO Run it\n{listing}"),
        format!("* Notes\n#+PROPERTY: header-args:sh+ :eval never\n* TODO Test it\n{listing}"),
        format!("* TODO Run it\n:PROPERTIES:\n:header-args: :eval no\n:END:\n{listing}"),
        format!("* TODO Run it\n#+HEADER: :eval no\n{listing}"),
        "h2. Steps\n# Run it\n{noformat}\nmake a\n{noformat}\n".to_owned(),
    ] {
        runs_nothing(&text);
    }
}
