//! The formats of plan files, and how one is read.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// The tool whose rules apply to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[derive(Serialize, Deserialize, EnumString, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Format {
    /// Plain Markdown.
    #[default]
    Markdown,
    /// `tasks.md` of spec-kit.
    SpecKit,
    /// `tasks.md` of OpenSpec.
    OpenSpec,
    /// `tasks.md` of Kiro and cc-sdd.
    Kiro,
    /// `tasks.json` of Task Master.
    TaskMaster,
    /// `issues.jsonl` of beads.
    Beads,
}

impl Format {
    /// All formats.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;

    /// The format for a path, by the tool that stores its files there.
    pub fn of_path(path: &str) -> Self {
        let parts = path.split(['/', '\\']).collect::<Vec<_>>();
        let holds = |names: &[&str]| parts.windows(names.len()).any(|window| window == names);
        match parts.as_slice() {
            _ if holds(&[".kiro", "specs"]) => Self::Kiro,
            _ if holds(&["openspec", "changes"]) => Self::OpenSpec,
            [.., "specs", _, "tasks.md"] => Self::SpecKit,
            [above @ .., name] if above.contains(&".taskmaster") && name.ends_with(".json") => Self::TaskMaster,
            [above @ .., name] if above.contains(&".beads") && name.ends_with(".jsonl") => Self::Beads,
            _other => Self::Markdown,
        }
    }
}

/// Options for reading a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadOptions<'a> {
    /// The rules to read it by.
    pub format: Format,
    /// Drops the order in which the steps are written; only written dependencies remain.
    pub parallel: bool,
    /// The tag of a Task Master file to read; the only tag, else `master`, when unset.
    pub tag: Option<&'a str>,
}
