//! What each host sends, what it gets, and what a patch changes.

mod answers;
mod hosts;
mod shell;

use std::path::Path;

use super::{Edits, Touch, TouchKind, patch};

/// One line: `W` write, `D` delete, `F` moved from, `T` moved to, `C` commit; `*` after it for a pattern.
fn shown(edits: &Edits) -> String {
    let touch = |Touch { path, kind, is_pattern }: &Touch| {
        let letter = match kind {
            TouchKind::Write => 'W',
            TouchKind::Delete => 'D',
            TouchKind::MoveFrom => 'F',
            TouchKind::MoveTo => 'T',
        };
        format!("{letter}{} {}", if *is_pattern { "*" } else { "" }, path.display())
    };
    let commits = edits.commits.iter().map(|folder| format!("C {}", folder.display()));
    let truncated = edits.is_truncated.then(|| "truncated".to_owned());
    edits.touches.iter().map(touch).chain(commits).chain(truncated).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_patch_names_what_it_adds_updates_deletes_and_renames() {
    let cases = [
        ("*** Begin Patch\n*** Update File: a.txt\n@@\n-a\n+b\n*** End Patch", "W a.txt"),
        ("*** Begin Patch\n*** Add File: d/new.rs\n+x\n*** Delete File: old.rs\n*** End Patch", "W d/new.rs, D old.rs"),
        ("*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-a\n+b\n*** End Patch", "F a, T b"),
        ("*** Begin Patch\n*** Update File: a\n*** Update File: b\n*** Move to: c\n*** End Patch", "W a, F b, T c"),
        ("*** Update File: a b.txt  \n*** Move to: /abs/c d\n", "F a b.txt, T /abs/c d"),
        ("*** Update File: a\r\n*** Move to: b\r\n@@\r\n", "F a, T b"),
        // Content that looks like a header.
        (
            "*** Add File: doc\n+*** Delete File: x\n*** Update File: y\n *** Delete File: x\n-*** Add File: z\n",
            "W doc, W y",
        ),
        // An indented header, as Codex reads it.
        ("  *** Begin Patch\n  *** Add File: a\n+x\n  *** Delete File: b\n", "W a, D b"),
        ("<<'EOF'\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF", "D a"),
        // A move without an update moves nothing.
        ("*** Begin Patch\n*** Move to: b\n*** End Patch", ""),
        ("*** Add File: a\n*** Move to: b\n", "W a"),
        ("", ""),
        ("no patch", ""),
        ("*** Update File:", ""),
        ("*** Update File: ä/ö.txt", "W ä/ö.txt"),
    ];
    for (text, expected) in cases {
        let mut found = Edits::default();
        patch::read(text, Path::new(""), &mut found);
        assert_eq!(shown(&found), expected, "{text}");
    }
}

#[test]
fn a_patch_of_too_many_files_is_marked_as_truncated() {
    let text = (0..250).map(|n| format!("*** Delete File: f{n}\n")).collect::<String>();
    let mut found = Edits::default();
    patch::read(&text, Path::new("d"), &mut found);
    assert_eq!((found.touches.len(), found.is_truncated), (super::TOUCHES_MAX, true));
    assert_eq!(found.touches.last().map(|touch| touch.path.as_path()), Some(Path::new("d/f199")));
}
