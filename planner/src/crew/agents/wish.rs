//! The names that sessions want.

/// The name that a session wants.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wish {
    /// This one, and no other.
    pub name: Option<String>,
    /// Otherwise the one given by its launcher, or the next free one after it: `ann-2`.
    pub given: Option<String>,
    /// The agent that started it, and has proven it.
    pub parent: Option<String>,
    /// The session of the name's holder, if its program has ended, or continues as the session that joins.
    pub over: Option<String>,
}

impl Wish {
    /// The beginning of the session of a run that crewlog started. Its agent has the name of its task.
    pub const OF_RUN: &str = "run:";

    /// This name, and no other.
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..Self::default() }
    }

    /// Some name below a parent.
    #[must_use]
    pub fn below(parent: &str) -> Self {
        Self { parent: Some(parent.to_owned()), ..Self::default() }
    }

    /// The name in full, if it wants a certain one.
    #[must_use]
    pub fn full_name(&self) -> Option<String> {
        let name = self.name.as_ref().or(self.given.as_ref())?;
        match &self.parent {
            Some(parent) if !name.starts_with(&format!("{parent}/")) => Some(format!("{parent}/{name}")),
            // A subagent may be named in full.
            Some(_) | None => Some(name.clone()),
        }
    }
}
