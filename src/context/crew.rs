//! Opens the crew of a project for a process.

use std::sync::Arc;

use crewlog_executors::crew::{Crew, Refusal};
use crewlog_mq::EventStore;
use crewlog_planner::crew::CrewError;

use crate::context::Session;
use crate::ui::failure::{Code, Failure};

/// The crew of the project of the working directory, for a command.
pub async fn open(session: &Session) -> Result<Arc<Crew>, Failure> {
    match session.served() {
        Some(crew) => Ok(crew.clone()),
        None => crew_on(session, &session.place.open().await?),
    }
}

/// The crew for a server, which continues if the log goes back. Creates a missing log.
pub async fn open_to_serve(session: &Session) -> Result<Arc<Crew>, Failure> {
    crew_on(session, &session.place.open_to_serve().await?)
}

fn crew_on(session: &Session, store: &EventStore) -> Result<Arc<Crew>, Failure> {
    let life = Arc::new(session.place.liveness_lock()?);
    Ok(Arc::new(Crew::new(store, &session.project()?, life)))
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Store(error) => error.into(),
            Refusal::NoRecipient(name) => Self::new(Code::Nothing, format!("there is no agent or role {name:?}"))
                .hint("`crewlog agents` lists the agents"),
            Refusal::NoTask(_) | Refusal::Crew(CrewError::Missing(_) | CrewError::Unknown(_) | CrewError::Left(_)) => {
                Self::new(Code::Nothing, refusal.to_string())
            }
            Refusal::Crew(CrewError::Invalid(_) | CrewError::Full(_)) => Self::user(refusal.to_string()),
            Refusal::Busy
            | Refusal::Crew(
                CrewError::Held(_) | CrewError::NotYours { .. } | CrewError::Superseded(_) | CrewError::Closed(_),
            )
            | Refusal::Task(_)
            | Refusal::NotReady(_) => Self::new(Code::Conflict, refusal.to_string()),
        }
    }
}
