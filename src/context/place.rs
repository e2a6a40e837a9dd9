//! The log and the project of a working directory.
//!
//! The log: `--store`, then `CREWLOG_STORE` (a path or a URL), then `.crewlog/log.db` in the main worktree of the repository,
//! shared by all worktrees, then upward from the working directory. The project: `project` in `crewlog.toml`, for clones on
//! several machines; otherwise a UUID, made at first use in a file of git's folder, or in `.crewlog` without a repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crewlog_executors::crew::owner::{distrusted, is_there};
use crewlog_executors::crew::project::prepare;
use crewlog_executors::crew::worktree::{FOLDER, Repository, upwards};
use crewlog_executors::liveness::LivenessLock;
use crewlog_executors::private::state_folder;
use crewlog_executors::seal::OutputKeys;
use crewlog_mq::{Error, EventStore, Options, Rewrite, is_postgres_url, shown_url};
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::cli::sealing::KeyPlace;
use crate::ui::failure::Failure;

const FILE: &str = "log.db";

/// How long closing the log may take. It may be stuck in a disk, in a server or behind another writer.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

pub struct Place {
    pub(super) url: String,
    /// The log, once it is open.
    opened: OnceCell<EventStore>,
    /// The same with its layers.
    layered: OnceCell<EventStore>,
    /// True if the user named it, so that hints must name it too.
    pub is_named: bool,
    pub repository: Option<Repository>,
    folder: Option<PathBuf>,
    /// Where the search for it began.
    start: PathBuf,
    pub keys: KeyPlace,
    redact: Rewrite,
}

impl Place {
    /// Finds the place for a working directory; nothing is made. `redact` changes each event before it is appended.
    pub fn find(named: Option<&str>, folder: &Path, keys: KeyPlace, redact: Rewrite) -> Self {
        let repository = Repository::around(folder);
        let existing = || upwards(folder).map(|above| above.join(FOLDER)).find(|found| is_there(&found.join(FILE)));
        let log_folder = match &repository {
            Some(repository) => repository.main_worktree.join(FOLDER),
            None => existing().unwrap_or_else(|| folder.join(FOLDER)),
        };
        let url = named.map_or_else(|| log_folder.join(FILE).to_string_lossy().into_owned(), str::to_owned);
        let (start, folder) = (folder.to_owned(), named.is_none().then_some(log_folder));
        Self {
            start,
            url,
            opened: OnceCell::new(),
            layered: OnceCell::new(),
            is_named: named.is_some(),
            repository,
            folder,
            keys,
            redact,
        }
    }

    /// The log's path or URL as it may be shown: without its password.
    pub fn shown(&self) -> String {
        if is_postgres_url(&self.url) { shown_url(&self.url) } else { self.url.clone() }
    }

    /// The log's path or URL for a command line that is printed: without its password. True if it has one.
    pub fn pastable_url(&self) -> (String, bool) {
        let Some((scheme, rest)) = self.url.split_once("://").filter(|_| is_postgres_url(&self.url)) else {
            return (self.url.clone(), false);
        };
        let (server, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (user, host) = server.rsplit_once('@').map_or(("", server), |(user, host)| (user, host));
        let name = user.split_once(':').map_or(user, |(name, _)| name);
        let is_password = |parameter: &&str| parameter.starts_with("password=");
        let (passwords, others) = parameters.split('&').partition::<Vec<_>, _>(is_password);
        let (at, mark) = (if name.is_empty() { "" } else { "@" }, if others.concat().is_empty() { "" } else { "?" });
        let url = format!("{scheme}://{name}{at}{host}{mark}{}", others.join("&"));
        (url, name != user || !passwords.is_empty())
    }

    /// The variables by which children find the log, wherever they run: without its password, which they would print.
    pub fn env_of_children(&self) -> Vec<(String, String)> {
        let url = match self.path().map(std::path::absolute) {
            Some(Ok(path)) => path.to_string_lossy().into_owned(),
            Some(Err(_)) | None => self.pastable_url().0,
        };
        let secret = ["PGPASSWORD", "CREWLOG_MIGRATE_URL"]
            .into_iter()
            .filter(|name| self.path().is_none() && std::env::var_os(name).is_some());
        let secret = secret.map(|name| (name.to_owned(), String::new()));
        secret.chain([("CREWLOG_STORE".to_owned(), url)]).collect()
    }

    /// The file, unless the log is on a server.
    fn path(&self) -> Option<&Path> {
        // A name that is not a file is refused when it is opened.
        #[cfg(feature = "sqlite")]
        let path = crewlog_mq::sqlite_path(&self.url).unwrap_or(Path::new(&self.url));
        #[cfg(not(feature = "sqlite"))]
        let path = Path::new(&self.url);
        (!is_postgres_url(&self.url)).then_some(path)
    }

    /// The folder of the liveness locks of workers on this machine, and of the leader locks of hosts.
    pub fn workers_folder(&self) -> PathBuf {
        self.beside("workers")
    }

    /// The folder of the outputs of runs on this machine.
    pub fn runs_folder(&self) -> PathBuf {
        self.folder.as_ref().map_or_else(|| self.beside("runs"), |folder| folder.join("runs"))
    }

    /// The file with the token of agents over HTTP: in the log's own folder, else next to the log.
    pub fn agent_token_file(&self) -> PathBuf {
        self.folder.as_ref().map_or_else(|| self.beside("agent-token"), |folder| folder.join("agent-token"))
    }

    /// The log's file, with links resolved, unless the log is on a server.
    pub fn file(&self) -> Option<PathBuf> {
        self.path().map(|path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()))
    }

    /// A path next to the log's file, the same for all names of the file; for a log on a server, in the user's state folder.
    pub fn beside(&self, what: &str) -> PathBuf {
        let Some(path) = self.file() else {
            let name = Uuid::new_v5(&Uuid::NAMESPACE_URL, self.shown().as_bytes());
            let folder = state_folder().unwrap_or_else(|| std::env::temp_dir().join("crewlog"));
            return folder.join(format!("{name}-{what}"));
        };
        let mut name = path.into_os_string();
        name.push(format!("-{what}"));
        PathBuf::from(name)
    }

    /// The log with its layers: secrets redacted, and encryption.
    async fn with_layers(&self) -> Result<EventStore, Failure> {
        let make = async || {
            self.check_owner()?;
            let store = self.open_once(false).await?.clone();
            let store = self.keys.veiled(self.keys_folder(), store)?;
            Ok::<_, Failure>(store.rewriting(self.redact.clone()))
        };
        self.layered.get_or_try_init(make).await.cloned()
    }

    /// The log of a server, which continues if the log goes back, since each call is a command. Creates a missing log.
    pub async fn open_to_serve(&self) -> Result<EventStore, Failure> {
        self.open_or_make().await?;
        self.with_layers().await
    }

    /// True if there is no log and the user named none: nobody coordinates here.
    pub fn is_unused(&self) -> bool {
        !self.is_named && self.path().is_some_and(|path| !is_there(path))
    }

    /// Refuses a log or a repository that others may have written, unless the user named the log.
    fn check_owner(&self) -> Result<(), Failure> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let hint = "if you trust it, name the log with --store or CREWLOG_STORE";
        if let Some(why) = distrusted(folder).or_else(|| distrusted(&folder.join(FILE))) {
            return Err(Failure::user(format!("{why}: what this log says would run as yours")).hint(hint));
        }
        let Some(repository) = &self.repository else {
            let Some((hidden, end)) = Repository::hidden_from(&self.start) else { return Ok(()) };
            let why = distrusted(&end).unwrap_or_default();
            let failure = format!("{why}, so the repository {} above it is not used", hidden.worktree.display());
            return Err(Failure::user(failure).hint(hint));
        };
        repository.check_owner().map_err(|why| {
            let safe = format!("git config --global --add safe.directory {}", repository.worktree.display());
            Failure::user(format!("{why}: a repository of others"))
                .hint(format!("{hint}, or its folder to git: `{safe}`"))
        })
    }

    /// The folder with the keys of sealed plans, unless the user names another one.
    pub fn keys_folder(&self) -> PathBuf {
        self.beside("keys")
    }

    /// The keys of the outputs of sealed plans, if they can be opened here.
    pub fn output_keys(&self) -> Result<Option<Arc<dyn OutputKeys>>, Failure> {
        self.keys.of_outputs(self.keys_folder())
    }

    /// Checks that the texts of a plan with these tags can be read, if it is sealed.
    pub fn check_key(&self, plan: &str, tags: &[String]) -> Result<(), Failure> {
        self.keys.check(self.keys_folder(), plan, tags)
    }

    /// Lets this process be a worker.
    pub fn liveness_lock(&self) -> Result<LivenessLock, Failure> {
        let folder = self.workers_folder();
        LivenessLock::begin(&folder)
            .map_err(|error| Failure::user(format!("{} cannot be written: {error}", folder.display())))
    }

    /// Opens the log that is there, for a command. It fails if the log goes back while the command runs: it must not mix
    /// two histories.
    pub async fn open(&self) -> Result<EventStore, Failure> {
        Ok(self.with_layers().await?.pinned())
    }

    /// Opens the log once for this process, and makes it if wanted.
    pub async fn open_once(&self, create: bool) -> Result<&EventStore, Error> {
        // It bypasses a pooler to migrate a log on a server.
        let migrate_url = std::env::var("CREWLOG_MIGRATE_URL").ok().filter(|url| !url.is_empty());
        let options = Options { create, migrate_url, ..Options::default() };
        self.opened.get_or_try_init(|| EventStore::open_with(&self.url, options)).await
    }

    /// Opens the log if there is one.
    pub async fn open_if_any(&self) -> Result<Option<EventStore>, Failure> {
        match self.open_once(false).await {
            Ok(_) => self.open().await.map(Some),
            Err(Error::NoLog { .. } | Error::NoLogIn { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Closes the log at the end of a command, so that no -wal file remains if nobody else has the log open.
    pub async fn close(&self) {
        if let Some(store) = self.opened.get() {
            // A log that is not closed loses nothing: the next process to open it reads its -wal file.
            let _ = tokio::time::timeout(CLOSE_WAIT, store.close()).await;
        }
    }

    /// Opens the log, and makes it first when there is none. True when it was made.
    pub async fn open_or_make(&self) -> Result<(EventStore, bool), Failure> {
        self.check_owner()?;
        // An empty file becomes a log. Any other file is refused again below.
        if let Some(store) = self.open_if_any().await? {
            return Ok((store, false));
        }
        if let Some(folder) = &self.folder {
            prepare(self.repository.as_ref(), folder).map_err(|error| {
                Failure::user(format!("{} cannot be made: {error}", folder.display()))
                    .hint("name a place for the log with --store PATH")
            })?;
        }
        self.open_once(true).await?;
        Ok((self.open().await?, true))
    }
}
