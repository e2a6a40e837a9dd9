//! Executes a person's commands on plans, and makes new plans.

use crewlog_executors::plans;
use crewlog_mq::{Cause, EventStore, ExecuteError, Executed, Runner, new_event_id};
use crewlog_planner::event::{Command, Event};
use crewlog_planner::planner::{Planner, PlannerError};

use crate::failure::{Code, Failure};
use crate::session::Session;

/// How often another plan id is tried when one is taken.
const ID_ATTEMPTS_MAX: usize = 8;

/// Makes a plan; another id is tried when one is taken.
pub async fn make_plan(
    session: &Session,
    store: &EventStore,
    mut plan: String,
    begin: Command,
) -> Result<String, Failure> {
    for _ in 0..ID_ATTEMPTS_MAX {
        let mut planner = plans::planner_of(store, &plan, session.tags_of_new(&plan)?).await?;
        match order(&mut planner, begin.clone()).await {
            Ok(_) => return Ok(plan),
            Err(ExecuteError::Refused(PlannerError::AlreadyPlanned)) => {}
            Err(error) => return Err(error.into()),
        }
        let name = plan.rsplit_once('-').map_or(plan.as_str(), |(name, _)| name);
        plan = format!("{name}-{}", short_id());
    }
    Err(Failure::new(Code::Conflict, "no free id for the plan was found: try again"))
}

/// Executes a command on a plan and records it with the events.
pub async fn order(
    planner: &mut Runner<Planner>,
    command: Command,
) -> Result<Executed<Event>, ExecuteError<PlannerError>> {
    let cause = Cause::request().keeping(command.recorded());
    planner.execute(command, &cause).await
}

/// Four letters and digits that are hard to mistake for each other.
pub fn short_id() -> String {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let random = new_event_id().into_bytes();
    random[12..].iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect()
}
