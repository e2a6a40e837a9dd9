//! Remarks that are fields: `depends on: 2`, `priority: P1`.

use super::draft::Draft;
use super::phrases::strip_prefix_ci;
use super::{references, settings};

/// Applies a line such as `Priority: high`; false when it is none of these.
pub(super) fn apply(draft: &mut Draft, line: &str, at: usize) -> bool {
    let plain = line.trim().trim_start_matches(['*', '_', '`']);
    let Some((name, value)) = plain.split_once(':').filter(|(name, _)| name.len() <= 20) else {
        return dependency(draft, plain, at);
    };
    let written = value;
    let value = value.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '`'));
    let plan = &mut draft.plan;
    match name.trim_end_matches(['*', '_', '`', ' ']).to_lowercase().as_str() {
        "depends on" | "depends" | "dependencies" | "deps" | "blocked by" | "after" | "needs" => {
            let start = at + (value.as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
            let needs = draft.needs.get_or_insert_default();
            if name.to_lowercase().contains("after") {
                references::list(needs, value, start);
            } else {
                references::names(needs, value, start);
            }
        }
        "before" | "blocks" => references::list(&mut draft.before, value, at),
        "priority" => plan.priority = Some(value.to_owned()),
        "assignee" | "owner" => plan.assignee = Some(value.trim_start_matches('@').to_owned()),
        // A glob has stars of its own.
        "files" => {
            match settings::files(["**", "__"].iter().find_map(|end| written.strip_prefix(end)).unwrap_or(written)) {
                Some(files) => plan.files.extend(files),
                None => return false,
            }
        }
        name => {
            let mut set = settings::Settings::default();
            // A command keeps its backticks.
            let value = if written.contains('`') { written.trim() } else { value };
            let read = set.read(&format!("{name}: {value}"));
            set.give(plan);
            return read;
        }
    }
    true
}

fn dependency(draft: &mut Draft, plain: &str, at: usize) -> bool {
    let Some(rest) = ["depends on ", "blocked by "].iter().find_map(|word| strip_prefix_ci(plain, word)) else {
        return false;
    };
    let Some((found, length)) = references::prefix(rest, at) else { return false };
    if !rest[length..].trim_matches(|c: char| !c.is_alphanumeric()).is_empty() {
        return false;
    }
    draft.needs.get_or_insert_default().extend(found);
    true
}
