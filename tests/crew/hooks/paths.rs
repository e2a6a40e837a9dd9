//! Paths that hooks cannot check as they are written: from outside the repository, without a lease, past a limit.

use std::fs;
use std::path::Path;

use super::rig::{Rig, edit, refused, shell};
use crate::cli::scene::Running;

#[test]
fn an_edit_from_outside_the_repository_is_checked() {
    let rig = Rig::new();
    rig.reserves("bob", "a.txt", "");
    let outside = rig.0.around().join("outside");
    fs::create_dir(&outside).unwrap();
    let edits = |folder: &Path, path: &Path| {
        let input = edit("claude", folder, path.to_str().unwrap());
        rig.in_folder(folder, input.to_string().as_bytes(), Some("ann")).expect(0).stdout
    };
    for folder in [rig.0.around(), &outside] {
        assert!(refused(&edits(folder, &rig.0.path("a.txt"))).contains("a.txt is leased by bob"));
        assert_eq!(edits(folder, &rig.0.path("new/b.txt")), "");
        assert_eq!(edits(folder, &outside.join("a.txt")), "");
        assert_eq!(rig.leases(), ["bob a.txt", "ann new/b.txt"]);
    }
    // Another repository with a log of its own, around the hook.
    rig.0.git(&["init", "-q", outside.to_str().unwrap()]);
    Running::start(&mut rig.command(&outside, &["init", "--no-hosts"])).finish().expect(0);
    assert!(refused(&edits(&outside, &rig.0.path("a.txt"))).contains("a.txt is leased by bob"));
    assert_eq!(edits(&outside, &outside.join("a.txt")), "");
    let rm = shell(&outside, &format!("rm {}", rig.0.path("a.txt").display()));
    let ran = rig.in_folder(&outside, rm.to_string().as_bytes(), Some("ann")).expect(0);
    assert!(refused(&ran.stdout).contains("a.txt is leased by bob"));
}

