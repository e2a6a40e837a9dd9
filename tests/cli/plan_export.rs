//! `plan export`: a plan as Markdown that reads back as the same plan.

use super::sync::{Kept, order_of};

#[test]
fn an_exported_plan_reads_back_as_the_same_plan() {
    let text = "# Release\n\nSome words.\n\n- [x] 1. Plan it\n- [ ] 2. Build: `make all` (retry 2) (timeout 10m) @ann\n  \
        Note with `code`.\n- [ ] 3. Run `make test` (on failure: continue)\n- [ ] If it fails, run `make clean`\n- [~] 5. Look\n\
        - [-] 6. Drop\n- [ ]* 7. Extra (P)\n- [ ] Is it good? (default: yes after 1h)\n- [ ] Publish (after 3)\n";
    let kept = Kept::new(text);
    let facts = |file: &str| {
        let mut checked = kept.run(&["plan", "check", file, "-o", "json"]).expect(0).json();
        for task in checked["tasks"].as_array_mut().expect("a list") {
            ["line", "column", "spans"].iter().for_each(|name| _ = task.as_object_mut().expect("a task").remove(*name));
        }
        (checked["title"].clone(), checked["tasks"].clone())
    };
    kept.scene.write("exported.md", kept.exported());
    assert_eq!(facts("exported.md"), facts("plan.md"));
    // The same for a plan that has progressed.
    let last = kept.scene.events().last().expect("there are some")["position"].to_string();
    kept.run(&["task", "add", "- N1: Sweep", "--plan", &kept.plan, "--after", "2"]).expect(0);
    kept.run(&["cancel", &format!("{}/3", kept.plan)]).expect(0);
    let exported = kept.exported();
    kept.scene.write("exported.md", &exported);
    let other = kept.run(&["run", "exported.md", "--yes", "--detach"]).expect(0).stdout.trim().to_owned();
    assert_eq!(order_of(&kept.scene, &other), kept.order());
    assert_eq!(kept.run(&["show", "--markdown", &other]).expect(0).stdout, exported);
    let first = kept.run(&["show", "--markdown", &kept.plan, "--at", &last]).expect(0).stdout;
    assert!(first.contains("- [ ] 3. Run `make test`") && !first.contains("Sweep"), "{first}");
}
