//! Errors with keys.

use std::io;
use std::path::PathBuf;

/// An error with keys.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "names and messages say what the fields hold")]
pub enum KeyError {
    /// A text must be sealed, and the operator's key was not given.
    #[error(
        "the texts of {plan} are sealed, and no operator key is given: name its file with --key-file or CREWLOG_KEY_FILE"
    )]
    NoOperatorKey { plan: String },
    /// The session's key is wrapped under another operator's key.
    #[error(
        "the key of {session} is wrapped under the operator key {wrapped_by}, and {} holds {given}: name the file of the right key, or no file to show everything except the texts",
        file.display()
    )]
    WrongOperatorKey { session: String, file: PathBuf, given: String, wrapped_by: String },
    /// The session's key is in another folder, or was removed.
    #[error(
        "the texts of {plan} are sealed with key {key}, which is not in {}: copy it there, or name its folder with --keys or \
         CREWLOG_KEYS",
        folder.display()
    )]
    NoSessionKey { plan: String, key: String, folder: PathBuf },
    /// The session's key was destroyed.
    #[error("the key of {plan} was destroyed, and the plan's texts with it: the plan cannot continue")]
    Destroyed { plan: String },
    /// The events contain texts that were read without their key, and would store the placeholders for good.
    #[error("{plan} was read without its key; restart the command now that the key is available")]
    ReadWithoutKey { plan: String },
    /// The file is not an operator's key.
    #[error("{} is not an operator key: create one with `crewlog keys new FILE`", path.display())]
    NotAnOperatorKey { path: PathBuf },
    /// The file is not a session's key, or was changed.
    #[error("the session key {} is damaged: restore it from a backup, or destroy it", path.display())]
    Damaged { path: PathBuf },
    /// A file cannot be used.
    #[error("{} cannot be {doing}: {source}", path.display())]
    File { doing: &'static str, path: PathBuf, source: io::Error },
    /// The system gives no random bytes.
    #[error("cannot create a key: the system has no random bytes: {0}")]
    NoRandomness(#[from] getrandom::Error),
}

impl KeyError {
    /// True if the error concerns one key, and lasts until somebody repairs it: texts under other keys stay readable.
    pub(super) fn is_of_one_key(&self) -> bool {
        use io::ErrorKind::{InvalidData, IsADirectory, NotADirectory, PermissionDenied};
        match self {
            Self::WrongOperatorKey { .. } | Self::Damaged { .. } => true,
            // Other errors may be transient, and the text becomes readable then.
            Self::File { source, .. } => {
                matches!(source.kind(), InvalidData | IsADirectory | NotADirectory | PermissionDenied)
            }
            Self::NoOperatorKey { .. }
            | Self::NoSessionKey { .. }
            | Self::Destroyed { .. }
            | Self::ReadWithoutKey { .. }
            | Self::NotAnOperatorKey { .. }
            | Self::NoRandomness(_) => false,
        }
    }
}
