//! Names that few programs print as they are: each is a file like another, for an edit and for a commit.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use super::rig::{Rig, refused};

#[test]
fn a_file_of_any_name_is_held_for_its_agent() {
    let longest = "n".repeat(255);
    let names = [
        "a space",
        " ends ",
        "quote\"d",
        "it's",
        "-dash",
        "back\\slash",
        "$HOME",
        "`id`",
        "~",
        "#hash",
        "100%",
        "\u{202e}reversed",
        "日本語",
        "new\nline",
        "tab\t",
        "\u{1b}[31mred",
        &longest,
    ];
    for name in names {
        let rig = Rig::new();
        fs::create_dir(rig.0.path("held")).unwrap();
        let path = format!("held/{name}");
        rig.0.write(&path, "text\n");
        rig.0.write("free", "text\n");
        rig.reserves("bob", "held/**", "");
        assert!(refused(&rig.edits("ann", "claude", &path)).contains("leased by bob"), "{name:?}");
        rig.0.git(&["add", "--", &path]);
        let reason = refused(&rig.shell("ann", "git commit -m x"));
        assert!(reason.contains("leased by bob"), "{name:?}: {reason}");
        assert!(!reason.contains(['\u{1b}', '\u{202e}']), "{reason:?}");
        assert_eq!(rig.edits("ann", "claude", "free"), "", "{name:?}");
        // No lease can have such a name, so the hook also says that the policy lets it pass.
        if !name.contains(char::is_control) {
            assert_eq!(rig.shell("bob", "git commit -m x"), "", "{name:?}");
        }
    }
}

#[test]
fn a_file_whose_name_is_not_unicode_is_held_in_a_commit() {
    let rig = Rig::new();
    fs::create_dir(rig.0.path("held")).unwrap();
    rig.0.write(OsStr::from_bytes(b"held/caf\xe9.txt"), "text\n");
    rig.reserves("bob", "held/**", "");
    rig.0.git(&["add", "held"]);
    let reason = refused(&rig.shell("ann", "git commit -m x"));
    assert!(reason.contains("leased by bob"), "{reason}");
    assert_eq!(rig.shell("bob", "git commit -m x"), "");
}
