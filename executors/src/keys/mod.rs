//! The keys for the texts of plans, and the veil that seals and opens them. The planner decides which texts are sealed.
//!
//! Each session (a plan with its forks) has its own key, in a file next to the log, wrapped under the operator's key.
//! It is never in the log: destroying that file shreds the texts of that session only.

mod cipher;
mod error;
mod files;
mod sessions;
mod veil;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crewlog_mq::Position;
use serde::Serialize;
use uuid::Uuid;

use crate::seal::OutputKeys;

pub use self::error::KeyError;
pub use self::sessions::{asked_before, plans_of, record_destroyed};

use self::cipher::{OperatorKey, Secret, SessionKey};
use self::files::{Files, KeyFile, Mark, Wrapped, fault};

/// The most keys, and the most plans' sessions, kept in memory.
const KNOWN_MAX: usize = 1024;
/// The most aggregates that are remembered as read without their key.
const READ_CLOSED_MAX: usize = 1 << 16;
/// The most unusable keys that are reported one by one.
const TOLD_MAX: usize = 20;

/// Creates an operator's key in a new file, and returns its fingerprint.
///
/// # Errors
/// [`KeyError::File`] if the file exists or cannot be created.
pub fn make_operator_key(path: &Path) -> Result<String, KeyError> {
    let (text, key) = OperatorKey::written(&Secret::random()?);
    files::make(path, &text).map_err(fault("made", path))?;
    Ok(key.fingerprint)
}

/// An operator's key, and the file that it came from.
struct Operator {
    file: PathBuf,
    key: OperatorKey,
}

impl Operator {
    fn read(path: &Path) -> Result<Self, KeyError> {
        let bytes = files::read(path).map_err(fault("read", path))?;
        let key = std::str::from_utf8(&bytes).ok().and_then(OperatorKey::read);
        let key = key.ok_or_else(|| KeyError::NotAnOperatorKey { path: path.to_owned() })?;
        if files::is_open_to_others(path) {
            let file = path.display();
            tracing::warn!("{file} contains an operator key and is readable by other users: run `chmod 600`");
        }
        Ok(Self { file: path.to_owned(), key })
    }
}

/// The keys of one log in this process. As a [`crewlog_mq::Veil`] it seals the texts of each new plan if it has an
/// operator's key, keeps sealing those of sealed plans, and opens those whose key it has.
pub struct Keys {
    files: Files,
    operator: Option<Operator>,
    known: Mutex<Known>,
}

/// The keys and plans seen so far.
#[derive(Default)]
struct Known {
    /// By name. For a destroyed key only that fact is stored.
    keys: HashMap<String, (Mark, Option<Arc<SessionKey>>)>,
    /// By plan: the name of its key, if it is sealed.
    plans: HashMap<String, Option<String>>,
    /// Streams and aggregates read without their key, with the first event read that way, until it is read again.
    read_closed: HashMap<(String, String), Position>,
    /// The keys that were reported as unusable; an empty name for a missing operator's key.
    told: HashSet<String>,
}

/// The state of access to a session's texts.
#[derive(Clone)]
enum Access {
    Open(Arc<SessionKey>),
    Destroyed,
    NoOperatorKey,
    NoSessionKey,
}

/// A report on a session's key. As JSON `key`, `plan`, `log` and `state`; for a wrapped key also `operator`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyReport {
    /// Its name, which follows `sealed:` in the tag of events.
    #[serde(rename = "key")]
    pub name: String,
    /// The first plan of the session.
    #[serde(rename = "plan")]
    pub session: String,
    /// The log of that plan.
    pub log: Uuid,
    /// Its state.
    #[serde(flatten)]
    pub state: KeyState,
}

/// The state of a session's key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, strum::Display)]
#[serde(tag = "state", content = "operator", rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum KeyState {
    /// It opens with the given operator's key.
    Ready,
    /// It is wrapped under the operator's key with this fingerprint, which was not given.
    #[strum(to_string = "wrapped under operator key {0}")]
    Wrapped(String),
    /// It is destroyed.
    Destroyed,
    /// It cannot be unwrapped, or its file cannot be read.
    Damaged,
}

/// The result of rewrapping keys. As JSON `operator`, `wrapped`, `left` and `not_wrapped`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Rotated {
    /// The fingerprint of the new operator's key.
    #[serde(rename = "operator")]
    pub fingerprint: String,
    /// Keys that are now under it.
    #[serde(rename = "wrapped")]
    pub n_wrapped: usize,
    /// Keys that were already under it, or are destroyed.
    #[serde(rename = "left")]
    pub n_left: usize,
    /// Sessions whose keys are under neither key, or damaged; identified by the key's name if nothing else is known.
    pub not_wrapped: Vec<String>,
}

impl OutputKeys for Keys {
    fn output_key(&self, name: &str) -> Option<[u8; 32]> {
        match self.access(name) {
            Ok(Access::Open(key)) => Some(key.of_outputs()),
            Ok(Access::Destroyed | Access::NoOperatorKey | Access::NoSessionKey) | Err(_) => None,
        }
    }
}

impl Keys {
    /// The keys in a folder, which may be missing, with the operator's key from a file, if one is given.
    ///
    /// # Errors
    /// [`KeyError::NotAnOperatorKey`], or [`KeyError::File`] if it cannot be read.
    pub fn open(folder: PathBuf, key_file: Option<&Path>) -> Result<Self, KeyError> {
        let operator = key_file.map(Operator::read).transpose()?;
        Ok(Self { files: Files::new(folder), operator, known: Mutex::default() })
    }

    /// All keys in the folder, by name.
    ///
    /// # Errors
    /// [`KeyError::File`] if they cannot be read.
    pub fn list(&self) -> Result<Vec<KeyReport>, KeyError> {
        let mut reports = Vec::new();
        for name in self.files.names()? {
            let report = match self.files.read(&name) {
                Ok(Some(KeyFile { session, log, wrapped, .. })) => {
                    let state = match wrapped {
                        None => KeyState::Destroyed,
                        Some(Wrapped { operator, .. }) if self.is_given(&operator) => match self.access(&name) {
                            Ok(Access::Destroyed) => KeyState::Destroyed,
                            Ok(Access::Open(_) | Access::NoOperatorKey | Access::NoSessionKey) => KeyState::Ready,
                            Err(_) => KeyState::Damaged,
                        },
                        Some(Wrapped { operator, .. }) => KeyState::Wrapped(operator),
                    };
                    KeyReport { name, session, log, state }
                }
                Ok(None) => continue,
                Err(error) if error.is_of_one_key() => {
                    KeyReport { name, session: String::new(), log: Uuid::nil(), state: KeyState::Damaged }
                }
                Err(error) => return Err(error),
            };
            reports.push(report);
        }
        Ok(reports)
    }

    /// Destroys a key for good; false if it was already destroyed. Processes that have it in memory notice at the next
    /// text. It needs no operator's key.
    ///
    /// # Errors
    /// [`KeyError::NoSessionKey`], or [`KeyError::File`] if it cannot be overwritten.
    pub fn destroy(&self, name: &str, plan: &str) -> Result<bool, KeyError> {
        let missing = || KeyError::NoSessionKey {
            plan: plan.to_owned(),
            key: name.to_owned(),
            folder: self.files.folder().to_owned(),
        };
        if self.files.mark(name)?.is_none() {
            return Err(missing());
        }
        let lock = self.files.lock()?;
        self.files.sweep(&lock)?;
        let file = match self.files.read(name) {
            Err(KeyError::Damaged { .. }) => {
                let nobodys = Wrapped { operator: String::new(), key: String::new() };
                KeyFile::new(plan.to_owned(), Uuid::nil(), Some(nobodys))
            }
            read => read?.ok_or_else(missing)?,
        };
        if file.wrapped.is_none() {
            return Ok(false);
        }
        self.files.destroy(&lock, name, &file)?;
        Ok(true)
    }

    /// Rewraps all keys from the operator's key to that of another file. Repeating it continues after an interruption.
    ///
    /// # Errors
    /// [`KeyError::NotAnOperatorKey`], or [`KeyError::File`].
    pub fn rotate(&self, to: &Path) -> Result<Rotated, KeyError> {
        let to = Operator::read(to)?.key;
        let names = self.files.names()?;
        let mut rotated = Rotated { fingerprint: to.fingerprint.clone(), ..Rotated::default() };
        if names.is_empty() {
            return Ok(rotated);
        }
        let lock = self.files.lock()?;
        self.files.sweep(&lock)?;
        for name in names {
            let file = match self.files.read(&name) {
                Err(error) if error.is_of_one_key() => {
                    rotated.not_wrapped.push(name);
                    continue;
                }
                read => read?,
            };
            let Some(KeyFile { session, log, wrapped, .. }) = file else { continue };
            let Some(wrapped) = wrapped.filter(|wrapped| wrapped.operator != to.fingerprint) else {
                rotated.n_left += 1;
                continue;
            };
            let bound_to = [name.as_bytes(), session.as_bytes(), log.as_bytes()];
            let operator = self.operator.as_ref().filter(|_| self.is_given(&wrapped.operator));
            let Some(key) = operator.and_then(|operator| operator.key.unwrap(&wrapped.key, &bound_to)) else {
                rotated.not_wrapped.push(session);
                continue;
            };
            let wrapped = Wrapped { operator: to.fingerprint.clone(), key: to.wrap(&key, &bound_to)? };
            self.files.replace(&lock, &name, &KeyFile::new(session, log, Some(wrapped)))?;
            rotated.n_wrapped += 1;
        }
        Ok(rotated)
    }

    /// Checks that the texts of a plan sealed with this key can be opened.
    ///
    /// # Errors
    /// The reason why they cannot.
    pub fn check(&self, name: &str, plan: &str) -> Result<(), KeyError> {
        match self.access(name)? {
            Access::Open(_) => Ok(()),
            closed => Err(self.why_closed(&closed, name, plan)),
        }
    }

    /// The keys of outputs, if an operator's key is given.
    #[must_use]
    pub fn of_outputs(self) -> Option<Arc<dyn OutputKeys>> {
        self.operator.is_some().then(|| Arc::new(self) as Arc<dyn OutputKeys>)
    }

    fn why_closed(&self, access: &Access, name: &str, plan: &str) -> KeyError {
        let plan = plan.to_owned();
        match access {
            Access::NoOperatorKey => KeyError::NoOperatorKey { plan },
            Access::NoSessionKey => {
                KeyError::NoSessionKey { plan, key: name.to_owned(), folder: self.files.folder().to_owned() }
            }
            Access::Open(_) | Access::Destroyed => KeyError::Destroyed { plan },
        }
    }

    fn is_given(&self, fingerprint: &str) -> bool {
        self.operator.as_ref().is_some_and(|operator| operator.key.fingerprint == fingerprint)
    }

    /// The current access to a key. Checks the file each time, so that a destroyed key is unusable for every process.
    fn access(&self, name: &str) -> Result<Access, KeyError> {
        let Some(mark) = self.files.mark(name)? else {
            self.known(|known| known.keys.remove(name));
            return Ok(Access::NoSessionKey);
        };
        let before = self.known(|known| known.keys.get(name).cloned());
        match &before {
            Some((known, Some(key))) if *known == mark => return Ok(Access::Open(Arc::clone(key))),
            Some((known, None)) if *known == mark => return Ok(Access::Destroyed),
            Some(_) | None => {}
        }
        let Some(KeyFile { session, log, wrapped, .. }) = self.files.read(name)? else {
            return Ok(Access::NoSessionKey);
        };
        let (key, access) = match (wrapped, before, &self.operator) {
            (None, _, _) => (None, Access::Destroyed),
            // Rewrapped: the key is the same.
            (Some(_), Some((_, Some(key))), _) => (Some(Arc::clone(&key)), Access::Open(key)),
            (Some(_), _, None) => return Ok(Access::NoOperatorKey),
            (Some(wrapped), _, Some(Operator { file, key: operator })) => {
                if wrapped.operator != operator.fingerprint {
                    let (file, given) = (file.clone(), operator.fingerprint.clone());
                    return Err(KeyError::WrongOperatorKey { session, file, given, wrapped_by: wrapped.operator });
                }
                let bound_to = [name.as_bytes(), session.as_bytes(), log.as_bytes()];
                let key = operator.unwrap(&wrapped.key, &bound_to).map(Arc::new);
                let key = key.ok_or_else(|| KeyError::Damaged { path: self.files.path_of(name) })?;
                (Some(Arc::clone(&key)), Access::Open(key))
            }
        };
        self.known(|known| {
            if known.keys.len() >= KNOWN_MAX {
                known.keys.clear();
            }
            known.keys.insert(name.to_owned(), (mark, key));
        });
        Ok(access)
    }

    /// The name of a new session's key; creates a missing key.
    fn make(&self, operator: &OperatorKey, session: &str, log: Uuid) -> Result<String, KeyError> {
        let name = cipher::name_of(&[log.as_bytes(), session.as_bytes()]);
        if self.files.mark(&name)?.is_none() {
            let bound_to = [name.as_bytes(), session.as_bytes(), log.as_bytes()];
            let key = operator.wrap(&SessionKey::random()?, &bound_to)?;
            let wrapped = Wrapped { operator: operator.fingerprint.clone(), key };
            self.files.add(&name, &KeyFile::new(session.to_owned(), log, Some(wrapped)))?;
        }
        Ok(name)
    }

    /// The access for a reader, which continues without the texts of an unusable key: the problem is reported, and the
    /// result is `None`. A writer gets the error itself.
    fn access_or_tell(&self, name: &str) -> Result<Option<Access>, KeyError> {
        match self.access(name) {
            Ok(access) => Ok(Some(access)),
            Err(error) if error.is_of_one_key() => {
                self.tell(name, || error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Warns once per key why texts are shown as placeholders.
    fn tell(&self, name: &str, why: impl FnOnce() -> KeyError) {
        let is_new = self.known(|known| known.told.len() < TOLD_MAX && known.told.insert(name.to_owned()));
        if is_new {
            tracing::warn!("{}; such texts are shown as {}", why(), crewlog_planner::sealed::SEALED);
        }
    }

    fn known<T>(&self, look: impl FnOnce(&mut Known) -> T) -> T {
        look(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
