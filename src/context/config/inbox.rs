//! The section of `crewlog.toml` on the inbox.

use crewlog_executors::programs::ProgramConsent;
use serde::Deserialize;

/// How a person hears of new items of the inbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InboxConfig {
    /// The program that runs when the inbox grows.
    pub notify: Option<Notify>,
}

/// The program that runs when the inbox grows.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub struct Notify {
    pub argv: Vec<String>,
    /// The agreement that it needs.
    pub consent: Option<ProgramConsent>,
}

impl Notify {
    /// True unless it lacks the agreement of a person.
    pub fn may_start(&self) -> bool {
        self.consent.as_ref().is_none_or(ProgramConsent::is_given)
    }
}

impl TryFrom<Vec<String>> for Notify {
    type Error = String;

    fn try_from(argv: Vec<String>) -> Result<Self, String> {
        if argv.first().is_none_or(|program| program.trim().is_empty()) {
            return Err("the command is empty: name the program first, as in [\"notify-send\", \"crewlog\"]".to_owned());
        }
        if argv.iter().any(|word| word.contains('\0')) {
            return Err("a word of the command holds a NUL".to_owned());
        }
        Ok(Self { argv, consent: None })
    }
}
