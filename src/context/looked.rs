//! The position up to which a person has looked at a log, in the person's state folder. Looking appends nothing.

use std::fs;
use std::path::PathBuf;

use crewlog_mq::Position;

/// The last position that a person has seen of a project on a log.
pub struct Looked {
    file: Option<PathBuf>,
}

impl Looked {
    /// `log` and `project` are ids.
    pub fn at(log: &str, project: &str) -> Self {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")));
        let name = crate::ui::text::sha256(&format!("{log}\0{project}"));
        Self { file: state.map(|state| state.join("crewlog/looked").join(&name[..32])) }
    }

    /// None at the first look.
    pub fn last(&self) -> Option<Position> {
        fs::read_to_string(self.file.as_ref()?).ok()?.trim().parse().ok().map(Position)
    }

    /// Remembers the position. Without a state folder that can be written every look is the first.
    pub fn remember(&self, position: Position) {
        let Some(file) = &self.file else { return };
        let folder = file.parent().map_or(Ok(()), fs::create_dir_all);
        let _ = folder.and_then(|()| fs::write(file, position.0.to_string()));
    }
}
