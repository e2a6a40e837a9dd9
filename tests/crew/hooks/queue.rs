//! Hooks and requests that wait for files.

use std::time::Duration;

use crewlog_planner::crew::leases::{Request, TTL, Turn, Which};
use crewlog_planner::crew::target::Target;

use super::rig::{Rig, context, join};

/// An agent asks for files that others lease.
fn waits(rig: &Rig, agent: &str, path: &str, asks: bool) {
    rig.with_crew(async |crew, worktree| {
        let caller = join(crew, agent, worktree).await.caller;
        let (targets, reason) = (vec![Target::written(path).unwrap()], "parses".to_owned());
        let request = Request {
            holder: caller.holder(),
            targets,
            is_exclusive: true,
            ttl: TTL,
            reason,
            task: None,
            is_strict: false,
        };
        if asks {
            crew.request_release(&caller, request, Duration::from_secs(300)).await.unwrap().unwrap_err();
        } else {
            let turn = Turn::Wait(crew.store().now().plus(TTL));
            assert_eq!(crew.reserve(&caller, request, turn).await.unwrap(), None);
        }
    });
}

#[test]
fn an_edit_of_a_free_file_passes_a_request_that_waits_for_its_folder() {
    let rig = Rig::new();
    rig.reserves("bob", "src/a.rs", "rewrites it");
    waits(&rig, "cyd", "src/**", false);
    assert_eq!(rig.edits("ann", "claude", "src/z.rs"), "");
    assert!(rig.edits("ann", "claude", "src/a.rs").contains("src/a.rs is leased by bob"));
}

/// The agents are sessions with hooks only: by the end of a tool, of a prompt and of a turn.
#[test]
fn hooks_tell_a_holder_of_a_request_and_a_waiting_agent_of_its_grant_once() {
    let rig = Rig::new();
    rig.edits("ann", "claude", "a.rs");
    waits(&rig, "cyd", "a.rs", false);
    let waiting = "crewlog: cyd waits for a.rs (parses) as request 1, and you lease a.rs: release_paths frees it when you are \
                   done, answer_release hands it over.";
    assert_eq!(context(&rig.asks("ann", "UserPromptSubmit")), waiting);
    assert_eq!(rig.asks("ann", "UserPromptSubmit"), "", "once");
    waits(&rig, "cyd", "a.rs", true);
    assert!(
        context(&rig.asks("ann", "UserPromptSubmit")).contains("cyd asks you to release a.rs (parses) within 5 min")
    );

    rig.edits("dan", "claude", "b.rs");
    waits(&rig, "dan", "a.rs", false);
    rig.with_crew(async |crew, worktree| {
        for name in ["ann", "cyd"] {
            crew.release(&join(crew, name, worktree).await.caller, Which::All).await.unwrap();
        }
    });
    let stopped = rig.asks("dan", "Stop");
    assert!(
        stopped.contains("your waiting request was granted: a.rs") && stopped.contains("you still hold"),
        "{stopped}"
    );
}
