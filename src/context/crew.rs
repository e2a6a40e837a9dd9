//! Opens the crew of a project for a process.

use std::sync::Arc;
use std::time::Duration;

use crewlog_executors::breakers::Breakers;
use crewlog_executors::caller::account;
use crewlog_executors::consent::Trust;
use crewlog_executors::crew::{Crew, Refusal, process, project};
use crewlog_executors::roster::Roster;
use crewlog_mq::{EventStore, Position};
use crewlog_planner::crew::CrewError;

use super::roster;
use crate::context::{Session, is_below_agent};
use crate::ui::failure::{Code, Failure};

/// The crew of the project of the working directory, for a command.
pub async fn open(session: &Session) -> Result<Arc<Crew>, Failure> {
    match &session.remote {
        Some(remote) => Ok(remote.crew.clone()),
        None => on(session, &session.place.open().await?),
    }
}

/// The crew for a server, which continues if the log goes back. Creates a missing log.
pub async fn open_to_serve(session: &Session) -> Result<Arc<Crew>, Failure> {
    on(session, &session.place.open_to_serve().await?)
}

impl Session {
    /// Refuses a command that only a person may give. An agent is known by its variables, or by a process above this one
    /// that an agent of this log has recorded as its program. It can shed both, but not by accident.
    pub async fn person_only(&self, what: &str) -> Result<(), Failure> {
        if self.is_person().await? {
            return Ok(());
        }
        let (who, hint) = match self.may_decide() {
            true => ("an agent", "ask the person with the tool ask_person"),
            false => ("this token", "crewlog serve tokens add NAME --scope write,operator makes one that may"),
        };
        let refused = Failure::new(Code::Forbidden, format!("{who} may not {what}: a person has to do it"));
        Err(refused.hint(hint))
    }

    /// True unless the order comes from an agent, or from a program whose token is not for decisions.
    pub async fn is_person(&self) -> Result<bool, Failure> {
        Ok(self.may_decide() && !is_below_agent() && !is_below_recorded(self).await?)
    }

    /// False for a token that is not for decisions.
    fn may_decide(&self) -> bool {
        self.remote.as_ref().is_none_or(|remote| remote.is_person)
    }

    fn imported(&self) -> Result<Position, Failure> {
        project::imported(&self.place.beside("imported")).map_err(Failure::user)
    }

    /// The decisions of this account and of others about what may run; `None` without a log.
    pub async fn trust(&self, others: &[String]) -> Result<Option<Trust>, Failure> {
        let Some(store) = self.place.open_if_any().await? else { return Ok(None) };
        let accounts = [&[account()], others].concat();
        let trust = Trust::new(&store, accounts, self.imported()?, Arc::new(self.folders(false)?));
        trust.catch_up().await?;
        Ok(Some(trust))
    }
}

/// True if a process above this one is the program of an agent, present or not.
async fn is_below_recorded(session: &Session) -> Result<bool, Failure> {
    if session.remote.is_none() && session.place.open_if_any().await?.is_none() || !session.has_project()? {
        return Ok(false);
    }
    let ancestors = process::ancestors();
    let crew = open(session).await?;
    let agents = crew.agents().await?;
    let mut programs = agents.iter().filter_map(|(_, agent)| agent.profile.program_process.as_ref());
    Ok(programs.any(|program| ancestors.contains(program)))
}

/// The crew of the project of the working directory, on a log.
pub fn on(session: &Session, store: &EventStore) -> Result<Arc<Crew>, Failure> {
    let life = Arc::new(session.place.liveness_lock()?);
    let trust = Some(Trust::new(store, vec![account()], session.imported()?, Arc::new(session.folders(false)?)));
    let roster = roster::roster(session, Duration::MAX, &[]).ok().map(|roster| Roster {
        trust,
        limits: Some(Breakers::new(store)),
        ..roster
    });
    Ok(Arc::new(Crew::new(store, &session.project()?, life).with_roster(roster)))
}

impl From<CrewError> for Failure {
    fn from(refused: CrewError) -> Self {
        Refusal::from(refused).into()
    }
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
                | CrewError::Taken(_)
                | CrewError::Superseded(_),
            )
            | Refusal::Busy
            | Refusal::Task(_)
            | Refusal::NotReady(_) => Self::new(Code::Conflict, refusal.to_string()),
        }
    }
}
