//! Opens the crew of a project for a process.

use std::sync::Arc;

use crewlog_executors::crew::{Crew, Refusal};
use crewlog_executors::human;
use crewlog_mq::EventStore;

use crate::failure::{Code, Failure};
use crate::session::Session;

/// The name by which a launcher tells an agent program, and its tools and hooks, which agent it is.
pub const AGENT_ID: &str = "AGENT_ID";

/// The crew of the project of the working directory, for a command.
pub async fn open(session: &Session) -> Result<Arc<Crew>, Failure> {
    match session.served() {
        Some(crew) => Ok(crew.clone()),
        None => crew_on(session, &session.place.open().await?),
    }
}

/// The same for a server, which goes on if the log goes back. The log is made if there is none.
pub async fn open_to_serve(session: &Session) -> Result<Arc<Crew>, Failure> {
    crew_on(session, &session.place.open_to_serve().await?)
}

fn crew_on(session: &Session, store: &EventStore) -> Result<Arc<Crew>, Failure> {
    let life = Arc::new(session.place.liveness_lock()?);
    Ok(Arc::new(Crew::new(store, &session.project()?, life)))
}

/// Variables that are set below an agent program. Codex sets none.
const SIGNS: [&str; 4] = [AGENT_ID, "CLAUDECODE", "GEMINI_CLI", "OPENCODE"];

/// Whether this process was started by an agent program.
pub fn is_below_agent() -> bool {
    SIGNS.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// The agent that this process acts for, if it has the identity of one.
pub fn agent_id() -> Option<String> {
    std::env::var(AGENT_ID).ok().filter(|agent| !agent.is_empty())
}

/// The person, as events name them.
pub fn person() -> String {
    std::env::var("USER").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| human::NAME.to_owned())
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Store(error) => error.into(),
            Refusal::NoTask(_) | Refusal::NoRecipient(_) => Self::new(Code::Nothing, refusal.to_string()),
            Refusal::Busy | Refusal::Crew(_) | Refusal::Task(_) | Refusal::NotReady(_) => {
                Self::new(Code::Conflict, refusal.to_string())
            }
        }
    }
}
