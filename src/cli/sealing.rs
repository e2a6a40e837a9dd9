//! The program's only access to sealing: options, the layer over the log, and the check before a sealed plan changes.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use crewlog_executors::seal::OutputKeys;
use crewlog_mq::EventStore;
use crewlog_planner::sealed;

use crate::ui::failure::Failure;

/// The location of keys, as named by the user.
#[derive(Debug, Clone, Default, Args)]
pub struct KeyPlace {
    /// The file with the operator's key, by which texts are sealed and opened
    #[arg(long, global = true, env = "CREWLOG_KEY_FILE", value_name = "FILE", hide_short_help = true)]
    key_file: Option<PathBuf>,
    /// The folder with the keys of sealed plans [default: LOG-keys next to the log]
    #[arg(long, global = true, env = "CREWLOG_KEYS", value_name = "FOLDER", hide_short_help = true)]
    keys: Option<PathBuf>,
}

impl KeyPlace {
    /// True if an operator's key is given, so that new plans are sealed.
    pub fn is_given(&self) -> bool {
        self.key_file.is_some()
    }

    /// The options that were given, for command lines of this program.
    pub fn options(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let options = [("--key-file", &self.key_file), ("--keys", &self.keys)];
        options.into_iter().filter_map(|(option, path)| Some((option, path.as_ref()?)))
    }
}

#[cfg(feature = "sealing")]
impl KeyPlace {
    /// The keys of a log's sealed plans, in `folder` where no folder was named.
    pub fn open(&self, folder: PathBuf) -> Result<crewlog_executors::keys::Keys, Failure> {
        let folder = self.keys.clone().unwrap_or(folder);
        Ok(crewlog_executors::keys::Keys::open(folder, self.key_file.as_deref())?)
    }

    /// The log under the layer that seals and opens its texts.
    pub fn veiled(&self, folder: PathBuf, store: EventStore) -> Result<EventStore, Failure> {
        Ok(store.veiled(std::sync::Arc::new(self.open(folder)?)))
    }

    /// The keys of the outputs of sealed plans, if an operator's key is given.
    pub fn of_outputs(&self, folder: PathBuf) -> Result<Option<Arc<dyn OutputKeys>>, Failure> {
        Ok(self.open(folder)?.of_outputs())
    }

    /// Checks that the texts of a plan with these tags can be read, if it is sealed.
    pub fn check(&self, folder: PathBuf, plan: &str, tags: &[String]) -> Result<(), Failure> {
        match sealed::key_of(tags) {
            Some(key) => Ok(self.open(folder)?.check(key, plan)?),
            None => Ok(()),
        }
    }
}

#[cfg(feature = "sealing")]
impl From<crewlog_executors::keys::KeyError> for Failure {
    fn from(error: crewlog_executors::keys::KeyError) -> Self {
        Self::user(error.to_string())
    }
}

#[cfg(not(feature = "sealing"))]
impl KeyPlace {
    #[expect(clippy::unnecessary_wraps, reason = "with sealing it can fail")]
    pub fn veiled(&self, _: PathBuf, store: EventStore) -> Result<EventStore, Failure> {
        Ok(store)
    }

    #[expect(clippy::unnecessary_wraps, reason = "with sealing it can fail")]
    pub fn of_outputs(&self, _: PathBuf) -> Result<Option<Arc<dyn OutputKeys>>, Failure> {
        Ok(None)
    }

    pub fn check(&self, _: PathBuf, plan: &str, tags: &[String]) -> Result<(), Failure> {
        if sealed::key_of(tags).is_none() {
            return Ok(());
        }
        let message = format!("the texts of {plan} are sealed, and this crewlog is built without sealing");
        Err(Failure::user(message).hint("use one that is built with the feature `sealing`"))
    }
}
