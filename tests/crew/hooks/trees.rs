//! Commands that change whatever differs, and the files on which the rules rest.

use serde_json::json;

use super::rig::{Rig, edit, refused, with};

#[test]
fn a_command_on_the_whole_worktree_is_refused_while_others_work_in_it() {
    let rig = Rig::new();
    rig.0.write("own.txt", "mine");
    rig.0.git(&["init", "-q", "../elsewhere"]);
    rig.reserves("bob", "a.txt", "a task");
    for command in [
        "git stash",
        "git stash push -m x",
        "git stash -u",
        "git reset --hard",
        "git reset --hard HEAD~1",
        "git checkout main",
        "git checkout -f",
        "git switch main",
        "git clean -fdx",
        "git pull",
        "git pull --rebase",
        "git merge other",
        "git rebase main",
        "git cherry-pick x",
        "git apply x.patch",
        "cd . && git stash",
        "git -C . reset --hard",
        "bash -c 'git reset --hard'",
        "rm -rf .",
        "rm -rf ../tree",
        "mv ../tree ../other",
    ] {
        let reason = refused(&rig.shell("ann", command));
        assert!(reason.contains("bob"), "{command}: {reason}");
        assert!(reason.contains("Possible now: "), "{command}: {reason}");
    }
    for command in [
        "git stash list",
        "git stash show",
        "git switch -c new",
        "git checkout -b new",
        "git checkout own.txt",
        "git checkout main -- own.txt",
        "git stash push own.txt",
        "git reset",
        "git clean -n",
        "git fetch && git log && git status",
        "git commit -m x -- own.txt",
        "git -C ../elsewhere reset --hard",
        "cd ../elsewhere && git stash && git pull",
        "cd ../elsewhere && patch -p1 < x.patch",
        "cd /tmp && patch -p1 < x.patch",
        "git worktree add ../wt -b wt && cd ../wt && git reset --hard",
    ] {
        assert_eq!(rig.shell("ann", command), "", "{command}");
    }
    rig.asks("ann", "Stop");
    for command in ["git stash", "git reset --hard", "git pull"] {
        assert_eq!(rig.shell("bob", command), "", "its own leases stop nobody: {command}");
    }
}

#[test]
fn stashes_are_shared_by_all_worktrees_and_other_trees_are_not() {
    let rig = Rig::new();
    rig.0.git(&["worktree", "add", "-q", "../linked"]);
    let linked = rig.0.around().join("linked");
    rig.reserves("bob", "a.txt", "a task");
    let asks = |command: &str| {
        let call = json!({ "tool_name": "Bash", "tool_input": { "command": command }, "tool_use_id": "t1" });
        let input = with(super::rig::claude(&linked, "PreToolUse"), call).to_string();
        rig.in_folder(&linked, input.as_bytes(), Some("ann")).expect(0).stdout
    };
    for command in ["git stash pop", "git stash apply", "git stash drop", "git stash clear"] {
        assert!(refused(&asks(command)).contains("shared by all worktrees"), "{command}");
    }
    for command in ["git reset --hard", "git stash", "git checkout main", "git clean -fd"] {
        assert_eq!(asks(command), "", "{command}");
    }
    let tree = rig.0.folder().to_string_lossy().into_owned();
    for command in [format!("rm -rf {tree}"), format!("mv {tree} /tmp/x"), format!("git -C {tree} reset --hard")] {
        assert!(refused(&asks(&command)).contains("bob"), "{command}");
    }
}

/// Not even a file that nobody holds: an agent could take away what holds it.
#[test]
fn the_files_on_which_the_rules_rest_are_changed_by_people_only() {
    let rig = Rig::new();
    rig.0.run(&["init", "--host", "claude"]).expect(0);
    for file in ["crewlog.toml", ".crewlog/log.db", ".claude/settings.json", ".git/hooks/pre-commit"] {
        for host in ["claude", "codex", "opencode"] {
            let reason = rig.edits("ann", host, file);
            assert!(reason.contains("only a person changes it"), "{host} {file}: {reason}");
        }
        for command in [format!("rm -f {file}"), format!("echo x > {file}"), format!("mv {file} x")] {
            assert!(refused(&rig.shell("ann", &command)).contains("only a person changes it"), "{command}");
        }
    }
    for command in ["rm -rf .crewlog", "rm -rf .claude", "mv .git/hooks x"] {
        assert!(refused(&rig.shell("ann", command)).contains("only a person changes it"), "{command}");
    }
    for file in [".claude/agents/a.md", ".github/x.yml", "docs/crewlog.md"] {
        assert_eq!(rig.edits("ann", "claude", file), "", "{file}");
    }
    let of_nobody = edit("claude", rig.0.folder(), ".claude/settings.local.json");
    assert_eq!(rig.hook("ann", &of_nobody), "", "our hooks are not in it");
}

#[test]
fn a_literal_folder_covers_its_files_whatever_its_name() {
    for (held, edited) in [
        ("conf.d", "conf.d/a.conf"),
        (".config", ".config/x/y.toml"),
        ("three.js", "three.js/a.js"),
        ("app/[id]", "app/[id]/p.tsx"),
    ] {
        let rig = Rig::new();
        std::fs::create_dir_all(rig.0.path(held)).unwrap();
        rig.with_crew(async |crew, worktree| {
            let joined = super::rig::join(crew, "bob", worktree).await;
            let tree = crewlog_executors::crew::worktree::Worktree::around(rig.0.folder());
            let request = crewlog_planner::crew::leases::Request {
                holder: joined.caller.holder(),
                targets: vec![tree.target(rig.0.folder(), held).unwrap()],
                is_exclusive: true,
                ttl: std::time::Duration::from_secs(3_600),
                reason: String::new(),
                task: None,
                is_strict: false,
            };
            crew.reserve(&joined.caller, request, crewlog_planner::crew::leases::Turn::Behind).await.unwrap();
        });
        assert!(refused(&rig.edits("ann", "claude", edited)).contains("leased by bob"), "{held} {edited}");
        assert_eq!(rig.edits("ann", "claude", "app/i/p.tsx"), "", "{held}");
    }
}
