//! Opens the crew of a project for a process.

use std::sync::Arc;
use std::time::Duration;

use crewlog_executors::crew::{Crew, Refusal};
use crewlog_mq::EventStore;
use crewlog_planner::crew::CrewError;

use super::roster;
use crate::context::Session;
use crate::ui::failure::{Code, Failure};

/// The crew of the project of the working directory, for a command.
pub async fn open(session: &Session) -> Result<Arc<Crew>, Failure> {
    match &session.remote {
        Some(remote) => Ok(remote.crew.clone()),
        None => crew_on(session, &session.place.open().await?),
    }
}

/// The crew for a server, which continues if the log goes back. Creates a missing log.
pub async fn open_to_serve(session: &Session) -> Result<Arc<Crew>, Failure> {
    crew_on(session, &session.place.open_to_serve().await?)
}

fn crew_on(session: &Session, store: &EventStore) -> Result<Arc<Crew>, Failure> {
    let life = Arc::new(session.place.liveness_lock()?);
    let roster = roster::roster(session, Duration::MAX, &[]).ok();
    Ok(Arc::new(Crew::new(store, &session.project()?, life).with_roster(roster)))
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Store(error) => error.into(),
            Refusal::NoRecipient(name) => Self::new(Code::Nothing, format!("there is no agent or role {name:?}"))
                .hint("`crewlog agents` lists the agents"),
            Refusal::NoTask(_) | Refusal::Crew(CrewError::Missing(_) | CrewError::Unknown(_)) => {
                Self::new(Code::Nothing, refusal.to_string())
            }
            Refusal::Crew(CrewError::Invalid(_)) => Self::user(refusal.to_string()),
            Refusal::Crew(
                CrewError::Closed(_)
                | CrewError::Full(_)
                | CrewError::Held(_)
                | CrewError::NotYours { .. }
                | CrewError::Left(_)
                | CrewError::Superseded(_),
            )
            | Refusal::Busy
            | Refusal::Task(_)
            | Refusal::NotReady(_) => Self::new(Code::Conflict, refusal.to_string()),
        }
    }
}
