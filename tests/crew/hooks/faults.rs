//! Hooks when something fails: the log, the configuration, the input.

use super::rig::{Rig, context, edit, refused};
use crate::cli::scene::Running;

#[test]
fn a_log_that_cannot_be_read_follows_the_policy() {
    let rig = Rig::new();
    rig.0.write(".crewlog/log.db", "this is no database, and long enough to be taken for one".repeat(100));
    let edit = edit("claude", rig.0.folder(), "a.txt").to_string();
    let allowed = rig.raw(edit.as_bytes(), Some("ann")).expect(0);
    assert!(context(&allowed.stdout).starts_with("crewlog could not look at the leases, this call is allowed: "));
    allowed.says(&["crewlog could not look at the leases"]);
    rig.0.write("crewlog.toml", "[hooks]\non_error = \"deny\"\n");
    let denied = rig.raw(edit.as_bytes(), Some("ann")).expect(0);
    assert!(refused(&denied.stdout).contains("could not look at the leases, this call is refused: "));
    rig.raw(b"no JSON", Some("ann")).expect(2).says(&["the hook input is unknown"]);
    rig.0.write("crewlog.toml", "[hooks]\nunknown = 1\n");
    let broken = rig.raw(edit.as_bytes(), Some("ann")).expect(0);
    assert!(refused(&broken.stdout).contains("could not look at the leases, this call is refused: "));
}

#[test]
fn a_configuration_that_cannot_be_read_hides_no_lease() {
    for broken in ["[hooks]\nunknown = 1\n", "not TOML", "[executors\n", "\u{0}"] {
        let rig = Rig::new();
        rig.reserves("ann", "a.txt", "a task");
        rig.0.write("crewlog.toml", broken);
        let held = rig.edits("bob", "claude", "a.txt");
        assert!(refused(&held).contains("a.txt is leased by ann"), "{broken}: {held}");
        let free = rig.edits("bob", "claude", "b.txt");
        assert!(context(&free).starts_with("crewlog takes no lease on this file, since "), "{broken}: {free}");
    }
}

#[test]
fn hostile_inputs_never_fail_the_host() {
    let rig = Rig::new();
    let deep = format!("{{\"hook_event_name\":{}", "[".repeat(1_000_000));
    let nested = edit("claude", rig.0.folder(), "a.txt")
        .to_string()
        .replace("\"a\"", &format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)));
    let huge = vec![b'x'; 20 * 1024 * 1024];
    for input in [&b""[..], b"{", b"null", b"[]", b"\xff\xfe", b"{\"hook_event_name\":1}", deep.as_bytes(), &huge] {
        let ran = rig.raw(input, Some("ann")).expect(0);
        assert_eq!(ran.stdout, "", "{:?}", &input[..input.len().min(30)]);
        assert!(ran.stderr.starts_with("crewlog: "), "{}", ran.stderr);
    }
    rig.raw(nested.as_bytes(), Some("ann")).expect(0);
    let name = rig.raw(edit("codex", rig.0.folder(), "a.txt").to_string().as_bytes(), Some("no name!")).expect(0);
    assert!(refused(&name.stdout).contains("a.txt is leased by ann"), "a caller with an unusable name is a stranger");
    let free = edit("codex", rig.0.folder(), "free.txt").to_string();
    let free = rig.raw(free.as_bytes(), Some("no name!")).expect(0).stdout;
    assert!(
        context(&free).starts_with("crewlog takes no lease for this session: \"no name!\" is not a valid"),
        "{free}"
    );
    rig.command(rig.0.folder(), &["hook"]);
    // With exit code 2 an agent program would refuse every call.
    for words in [&["hook", "--unknown"] as &[&str], &["-q", "hook", "--unknown"], &["-o", "json", "hook", "--unknown"]]
    {
        Running::start(&mut rig.command(rig.0.folder(), words)).finish().expect(1);
    }
}
