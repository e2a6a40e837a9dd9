//! The inputs of each host, the answers, and the changes in patches.

mod answers;
mod hosts;
mod shell;

use super::patch;
use super::touches::{Edits, Touch, Tree};
use std::path::Path;

/// One line: the paths, `glob` before a pattern, both readings of a path that may be a folder, and the commits.
fn shown(edits: &Edits) -> String {
    let touch = |Touch { path, is_pattern, in_folder }: &Touch| {
        let inside = in_folder.as_ref().map(|inside| format!(" or {}", inside.display())).unwrap_or_default();
        format!("{}{}{inside}", if *is_pattern { "glob " } else { "" }, path.display())
    };
    let commits = edits.commits.iter().map(|folder| match folder.to_string_lossy() {
        here if here.is_empty() => "commit".to_owned(),
        folder => format!("commit in {folder}"),
    });
    let trees = edits.trees.iter().map(|Tree { folder, extent, unless }| {
        let unless = unless.as_ref().map(|path| format!(" or {}", path.display())).unwrap_or_default();
        format!(
            "{extent:?}{unless}{}",
            if folder == Path::new("") { String::new() } else { format!(" in {}", folder.display()) }
        )
    });
    edits.touches.iter().map(touch).chain(commits).chain(trees).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_patch_names_what_it_adds_updates_deletes_and_renames() {
    let cases = [
        ("*** Begin Patch\n*** Update File: a.txt\n@@\n-a\n+b\n*** End Patch", "a.txt"),
        ("*** Begin Patch\n*** Add File: d/new.rs\n+x\n*** Delete File: old.rs\n*** End Patch", "d/new.rs, old.rs"),
        ("*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-a\n+b\n*** End Patch", "a, b"),
        ("*** Begin Patch\n*** Update File: a\n*** Update File: b\n*** Move to: c\n*** End Patch", "a, b, c"),
        ("*** Update File: a b.txt  \n*** Move to: /abs/c d\n", "a b.txt, /abs/c d"),
        ("*** Update File: a\r\n*** Move to: b\r\n@@\r\n", "a, b"),
        // Content that looks like a header.
        (
            "*** Add File: doc\n+*** Delete File: x\n*** Update File: y\n *** Delete File: x\n-*** Add File: z\n",
            "doc, y",
        ),
        // An indented header, as Codex reads it.
        ("  *** Begin Patch\n  *** Add File: a\n+x\n  *** Delete File: b\n", "a, b"),
        ("<<'EOF'\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF", "a"),
        // A move without an update has no effect.
        ("*** Begin Patch\n*** Move to: b\n*** End Patch", ""),
        ("*** Add File: a\n*** Move to: b\n", "a"),
        ("", ""),
        ("no patch", ""),
        ("*** Update File:", ""),
        ("*** Update File: ä/ö.txt", "ä/ö.txt"),
    ];
    for (text, expected) in cases {
        let mut found = Edits::default();
        found.add_files(patch::files(text));
        assert_eq!(shown(&found), expected, "{text}");
    }
}

#[test]
fn a_patch_of_too_many_files_is_read_in_part() {
    let text = (0..250).map(|n| format!("*** Delete File: f{n}\n")).collect::<String>();
    let mut found = Edits::default();
    found.add_files(patch::files(&text));
    assert_eq!(found.touches.len(), super::touches::TOUCHES_MAX);
    assert_eq!(found.touches.last().map(|touch| touch.path.as_path()), Some("f199".as_ref()));
}
