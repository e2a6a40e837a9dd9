//! What a writer believes of an aggregate or a cell: its append is refused when that is wrong.

/// What a writer believes of an aggregate; the append is refused when it is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Nothing.
    Any,
    /// The aggregate has no events.
    NoStream,
    /// The aggregate's last event has this sequence; 0 means that it has none.
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

/// What a writer believes of a cell; the whole append is refused when it is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellExpected {
    /// Nothing.
    Any,
    /// It is not there.
    Absent,
    /// It is not there, or nobody holds it any more: its time is over.
    Free,
    /// It has this version.
    Version(i64),
    /// It has this version, and the time for which it is held is not over.
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
