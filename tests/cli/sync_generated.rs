//! Generated files with groups and optional parts: a run writes exactly the boxes of ended tasks.

use super::scene::Scene;
use super::sync::write;

/// A group of a generated file, or a step.
struct Item {
    parts: Vec<Item>,
    is_optional: bool,
    was_done: bool,
    succeeds: bool,
}

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn items(&mut self, depth: u64) -> Vec<Item> {
        let n_items = 1 + self.below(3);
        let item = |_| {
            let parts = if depth < 2 && self.below(3) == 0 { self.items(depth + 1) } else { Vec::new() };
            let is_step = parts.is_empty();
            Item {
                parts,
                is_optional: self.below(5) == 0,
                was_done: is_step && self.below(5) == 0,
                succeeds: self.below(2) == 0,
            }
        };
        (0..n_items).map(item).collect()
    }
}

impl Item {
    /// Its lines, before and after the run.
    fn lines(&self, indent: &str, before: &mut String, after: &mut String) {
        let star = if self.is_optional { "*" } else { "" };
        let (mut own, mut parts_before, mut parts_after) = (String::from("Group"), String::new(), String::new());
        for part in &self.parts {
            part.lines(&format!("{indent}  "), &mut parts_before, &mut parts_after);
        }
        if self.parts.is_empty() {
            own = format!("Run `{}`", self.succeeds);
        }
        let mark = |is_done| if is_done { "x" } else { " " };
        let is_done = if self.parts.is_empty() { self.ended() } else { self.ended() && self.n_ended_now() > 0 };
        before.push_str(&format!("{indent}- [{}]{star} {own}\n{parts_before}", mark(self.was_done)));
        after.push_str(&format!("{indent}- [{}]{star} {own}\n{parts_after}", mark(is_done)));
    }

    /// True for a step that is done, and for a group whose non-optional steps are.
    fn ended(&self) -> bool {
        let required = self.parts.iter().filter(|part| !part.is_optional).collect::<Vec<_>>();
        let counted = if required.is_empty() { self.parts.iter().collect() } else { required };
        if self.parts.is_empty() {
            return self.was_done || self.succeeds;
        }
        // A group that was complete before the run is not marked, and keeps its parent group open.
        counted.iter().all(|part| part.ended() && (part.parts.is_empty() || part.n_ended_now() > 0))
    }

    fn n_ended_now(&self) -> usize {
        let own = usize::from(self.parts.is_empty() && self.succeeds && !self.was_done);
        own + self.parts.iter().map(Item::n_ended_now).sum::<usize>()
    }
}

#[test]
fn sync_writes_exactly_the_boxes_of_ended_tasks() {
    let paths = ["plan.md", "specs/1/tasks.md", "openspec/changes/a/tasks.md", ".kiro/specs/a/tasks.md"];
    for seed in 1..=16 {
        let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let items = numbers.items(0);
        let (mut before, mut after) = (String::from("# Tasks\r\n\n"), String::from("# Tasks\r\n\n"));
        items.iter().for_each(|item| item.lines("", &mut before, &mut after));
        let scene = Scene::new();
        let path = paths[usize::try_from(seed).expect("it is small") % paths.len()];
        write(&scene, path, &before);
        let ran = scene.run(&["run", path, "--yes", "--sync", "--parallel", "--set", "on-failure=continue"]);
        assert!(matches!(ran.status.code(), Some(0 | 100)), "{ran:?}");
        assert_eq!(scene.read(path), after, "seed {seed}, before:\n{before}");
    }
}
