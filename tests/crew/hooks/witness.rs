//! Changes of leased files by means that no tool call names.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::rig::{HOSTS, Rig, context, edit, shell, wait_for, with};

/// A repository with a committed file and folder that bob has leased by an edit, and has changed.
fn leased() -> Rig {
    let rig = Rig::new();
    fs::create_dir(rig.0.path("dir")).unwrap();
    rig.0.write("victim.txt", "base\n");
    rig.0.write("dir/one.txt", "base\n");
    rig.0.git(&["add", "victim.txt", "dir"]);
    rig.0.git(&["commit", "-qm", "base"]);
    for path in ["victim.txt", "dir/one.txt"] {
        assert_eq!(rig.edits("bob", "claude", path), "");
        rig.0.write(path, "of bob\n");
        rig.hook("bob", &over(edit("claude", rig.0.folder(), path)));
    }
    rig
}

fn over(call: Value) -> Value {
    with(call, json!({ "hook_event_name": "PostToolUse" }))
}

/// Runs a command as an agent: the hook before it, the command, and the hook after it. Returns the output of that.
fn runs(rig: &Rig, agent: &str, command: &str) -> String {
    let call = shell(rig.0.folder(), command);
    assert_eq!(rig.hook(agent, &call), "", "{command} passes");
    executes(rig, command);
    rig.hook(agent, &over(call))
}

fn executes(rig: &Rig, command: &str) {
    assert!(
        Command::new("sh").args(["-c", command]).current_dir(rig.0.folder()).status().unwrap().success(),
        "{command}"
    );
}

fn recorded(rig: &Rig) -> Vec<Value> {
    rig.0.events_of_type("UnleasedEdit")
}

#[test]
fn a_write_that_no_tool_names_is_recorded_with_its_author() {
    for command in [
        "python3 -c \"open('victim.txt','w').write('x')\"",
        "F=victim.txt; echo x > $F",
        "cat > s.sh <<'E'\necho x >> victim.txt\nE\nsh s.sh",
        "find . -name victim.txt -delete",
        "echo victim.txt | xargs sh -c 'echo x > $0'",
        "F=victim.txt; mv $F other.txt",
        "cp victim.txt n; echo x >> n; F=victim.txt; mv n $F",
        "F=dir; mv $F dir3",
        "git show HEAD:victim.txt > t; F=victim.txt; cat t > $F",
        "F=victim.txt; touch -r $F r; echo 'of BOB' > $F; touch -r r $F",
    ] {
        let rig = leased();
        let text = context(&runs(&rig, "ann", command));
        let path = if command.contains("F=dir") { "dir/one.txt" } else { "victim.txt" };
        assert!(
            text.starts_with(&format!("crewlog: this call changed files of others: {path} is leased by bob")),
            "{command}: {text}"
        );
        let [edit] = &recorded(&rig)[..] else { panic!("{command}: {:?}", recorded(&rig)) };
        assert_eq!(
            (&edit["path"], &edit["agent"], &edit["is_at_risk"]),
            (&json!(path), &json!("ann"), &json!(true)),
            "{command}"
        );
        let told = context(&rig.asks("bob", "UserPromptSubmit"));
        assert!(told.contains(&format!("ann changed {path} under your lease {}", edit["lease"])), "{command}: {told}");
        assert_eq!(rig.asks("bob", "UserPromptSubmit"), "", "told once");
        let inbox = rig.0.run(&["inbox"]).expect(0).stdout;
        let text = format!("ann changed {path} under the lease of bob, whose work in it was not committed");
        assert!(inbox.contains(&text), "{command}: {inbox}");
    }
}

#[test]
fn nothing_is_recorded_that_is_not_a_change_by_another() {
    let harmless = [
        "cat victim.txt",
        "python3 -c 'print(1)'",
        "F=victim.txt; touch $F",
        "F=victim.txt; chmod +x $F",
        "F=victim.txt; cp $F t; cat t > $F",
        "echo x > own.txt",
    ];
    let rig = leased();
    for command in harmless {
        assert_eq!(runs(&rig, "ann", command), "", "{command}");
    }
    // The holder by any means, and its subagent.
    for n in 0..2 {
        assert_eq!(runs(&rig, "bob", &format!("python3 -c \"open('victim.txt','w').write('{n}')\"")), "");
    }
    let sub =
        with(shell(rig.0.folder(), "F=victim.txt; echo s > $F"), json!({ "agent_id": "s1", "agent_type": "Explore" }));
    assert_eq!(rig.hook("bob", &sub), "");
    executes(&rig, "echo s > victim.txt");
    assert_eq!(rig.hook("bob", &over(sub)), "");
    assert_eq!(recorded(&rig).len(), 0, "{:?}", recorded(&rig));
}

#[test]
fn an_edit_of_the_holder_during_anothers_call_is_its_own() {
    let rig = leased();
    let call = shell(rig.0.folder(), "cargo test");
    let own = edit("claude", rig.0.folder(), "victim.txt");
    // The edit begins in the call and ends in it, begins before it, or ends after it.
    for (begins_before, ends_after) in [(false, false), (true, false), (false, true), (true, true)] {
        if begins_before {
            rig.hook("bob", &own);
        }
        assert_eq!(rig.hook("ann", &call), "");
        if !begins_before {
            rig.hook("bob", &own);
        }
        rig.0.write("victim.txt", format!("{begins_before} {ends_after}\n"));
        if !ends_after {
            rig.hook("bob", &over(own.clone()));
        }
        assert_eq!(rig.hook("ann", &over(call.clone())), "");
        if ends_after {
            rig.hook("bob", &over(own.clone()));
        }
        // Of another file, it explains nothing.
        assert_eq!(rig.hook("ann", &call), "");
        rig.hook("bob", &edit("claude", rig.0.folder(), "dir/one.txt"));
        rig.hook("bob", &over(edit("claude", rig.0.folder(), "dir/one.txt")));
        rig.0.write("victim.txt", format!("foreign {begins_before} {ends_after}\n"));
        assert!(context(&rig.hook("ann", &over(call.clone()))).contains("victim.txt is leased by bob"));
    }
    assert_eq!(recorded(&rig).len(), 4);
}

#[test]
fn a_third_agent_whose_call_runs_meanwhile_leaves_the_author_open() {
    let rig = leased();
    let call = shell(rig.0.folder(), "F=victim.txt; echo x > $F");
    rig.asks("cyd", "SessionStart");
    assert_eq!(rig.hook("ann", &call), "");
    assert_eq!(rig.hook("cyd", &shell(rig.0.folder(), "make")), "");
    executes(&rig, "echo x > victim.txt");
    assert!(context(&rig.hook("ann", &over(call))).contains("victim.txt is leased by bob"));
    assert_eq!(recorded(&rig)[0]["agent"], Value::Null);
    assert!(context(&rig.asks("bob", "UserPromptSubmit")).contains("somebody changed victim.txt under your lease"));
}

#[test]
fn a_change_under_a_lease_of_an_agent_without_hooks_is_not_judged() {
    let rig = Rig::new();
    rig.reserves("bob", "victim.txt", "");
    let text = context(&runs(&rig, "ann", "F=victim.txt; echo x > $F"));
    assert!(
        text.contains("victim.txt changed during this call; bob leases it and runs no hooks, so it may have been bob"),
        "{text}"
    );
    assert_eq!(recorded(&rig).len(), 0);
}

#[test]
fn every_program_and_the_resident_process_notice_it() {
    for (with_resident, host) in [false, true].into_iter().flat_map(|resident| HOSTS.map(|host| (resident, host))) {
        let rig = leased();
        let resident = with_resident.then(|| rig.resident());
        let (tool, before, after) = match host {
            "claude" => ("Bash", "PreToolUse", "PostToolUse"),
            "codex" => ("exec_command", "PreToolUse", "PostToolUse"),
            "gemini" => ("run_shell_command", "BeforeTool", "AfterTool"),
            _opencode => ("bash", "PreToolUse", "PostToolUse"),
        };
        let call = |event: &str| {
            let input = json!({ "command": "F=victim.txt; echo x > $F", "cmd": "" });
            let input = if tool == "exec_command" {
                json!({ "cmd": input["command"] })
            } else {
                json!({ "command": input["command"] })
            };
            with(
                edit(host, rig.0.folder(), "x"),
                json!({ "tool_name": tool, "tool_input": input, "hook_event_name": event }),
            )
        };
        assert_eq!(rig.hook("ann", &call(before)), "", "{host}");
        executes(&rig, "F=victim.txt; echo x > $F");
        let text = rig.hook("ann", &call(after));
        assert!(text.contains("this call changed files of others: victim.txt is leased by bob"), "{host}: {text}");
        assert!(recorded(&rig).iter().any(|edit| edit["agent"] == "ann"), "{host}: {:?}", recorded(&rig));
        if let Some(resident) = resident {
            resident.signal(rustix::process::Signal::INT);
            resident.finish().expect(130);
        }
    }
}

/// E-12: a violation is in the log within two seconds.
#[test]
fn the_watcher_records_a_change_under_a_lease_without_a_hook() {
    let rig = leased();
    let resident = rig.resident();
    wait_for("the watch", || {
        rig.0.write("free.txt", format!("{:?}", Instant::now()));
        !recorded(&rig).is_empty()
    });
    let of = |path: &str| recorded(&rig).into_iter().filter(|edit| edit["path"] == path).collect::<Vec<_>>();
    // The holder's own edit comes with hooks, before or after it.
    let own = edit("claude", rig.0.folder(), "dir/one.txt");
    rig.hook("bob", &own);
    rig.0.write("dir/one.txt", "more of bob\n");
    rig.hook("bob", &over(own));
    let begun = Instant::now();
    fs::write(rig.0.path("victim.txt"), "x\n").unwrap();
    wait_for("a record", || !of("victim.txt").is_empty());
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!(of("victim.txt")[0]["agent"], Value::Null);
    assert!(of("victim.txt")[0]["lease"].is_u64());
    assert!(context(&rig.asks("bob", "UserPromptSubmit")).contains("somebody changed victim.txt under your lease"));
    // Both were in one comparison, or the own edit in an earlier one.
    assert_eq!(of("dir/one.txt").len(), 0);
    // A revert leaves no difference to the last commit.
    fs::write(rig.0.path("dir/one.txt"), "base\n").unwrap();
    wait_for("a record of the revert", || !of("dir/one.txt").is_empty());
    resident.signal(rustix::process::Signal::INT);
    resident.finish().expect(130);
}

#[test]
fn a_shell_command_reads_no_log_where_nobody_leases_files() {
    let rig = Rig::new();
    // The first call lists the leases; calls record at most once a minute that hooks ran.
    for _ in 0..2 {
        assert_eq!(runs(&rig, "ann", "ls"), "");
    }
    let lists = || {
        fs::read_dir(rig.0.path(".crewlog/log.db-hooks"))
            .unwrap()
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("leased-"))
            .map(|entry| entry.metadata().unwrap().modified().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(rig.shell("ann", "make"), "");
    let listed = lists();
    assert_eq!(rig.shell("ann", "make -j2"), "");
    assert_eq!((listed.len(), lists()), (1, listed.clone()), "the list is current");
    rig.reserves("bob", "victim.txt", "");
    assert_eq!(rig.shell("ann", "make -j3"), "");
    assert_ne!(lists(), listed, "a grant makes it stale");
}
