//! The expectations of a writer about an aggregate or a cell. An append with a wrong one is refused.

/// The expected state of an aggregate; the append is refused if it is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// No expectation.
    Any,
    /// The aggregate has no events.
    NoStream,
    /// The aggregate's last event has this sequence; 0 means it has none.
    Sequence(i64),
}

impl std::fmt::Display for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Any => f.write_str("anything"),
            Self::NoStream | Self::Sequence(0) => f.write_str("no event"),
            Self::Sequence(sequence) => write!(f, "sequence {sequence}"),
        }
    }
}

/// The expected state of a cell; the whole append is refused if it is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellExpected {
    /// No expectation.
    Any,
    /// The cell does not exist.
    Absent,
    /// The cell does not exist, or its lease has expired.
    Free,
    /// The cell has this version.
    Version(i64),
    /// The cell has this version, and its lease has not expired.
    Held(i64),
}

impl std::fmt::Display for CellExpected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Any => f.write_str("anything"),
            Self::Absent => f.write_str("no cell"),
            Self::Free => f.write_str("a free cell"),
            Self::Version(version) => write!(f, "version {version}"),
            Self::Held(version) => write!(f, "version {version}, still held"),
        }
    }
}
