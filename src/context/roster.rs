//! The executors that crewlog.toml configures for this process.

use std::sync::Arc;
use std::time::Duration;

use crewlog_executors::breakers::Breakers;
use crewlog_executors::consent::Places;
use crewlog_executors::roster::Roster;
use crewlog_executors::run::GRACE;
use crewlog_executors::shell::{SHELL, Shell};
use crewlog_executors::supervisor::{Supervisor, SupervisorProgram};
use crewlog_planner::agents::registry::ToolRegistry;
use futures::future::OptionFuture;

use crate::context::Session;
use crate::ui::failure::Failure;

/// The executors of this process: the shell and the agents that are configured, or those of them that are named.
pub fn roster(session: &Session, task_timeout: Duration, only: &[String]) -> Result<Roster, Failure> {
    let config = session.config()?;
    let is_wanted = |name: &str| only.is_empty() || only.iter().any(|wanted| wanted == name);
    let known = || config.agents.iter().map(|agent| agent.name.as_str()).chain([SHELL]);
    if let Some(unknown) = only.iter().find(|name| known().all(|known| known != name.as_str())) {
        let failure = Failure::user(format!("no executor is called {unknown:?}")).did_you_mean(unknown, known());
        return Err(failure.hint("`crewlog agents --configured` lists them; `shell` is always one"));
    }
    let program = SupervisorProgram::this_binary(["supervise"])
        .map_err(|error| Failure::user(format!("the path of this program cannot be found: {error}")))?;
    let shell = Shell {
        supervisor: Supervisor::new(program, None).hiding(config.secrets.clone()),
        env: session.place.env_of_children(),
        timeout: task_timeout,
        grace: config.grace.unwrap_or(GRACE),
    };
    let agents = config.agents.iter().filter(|agent| is_wanted(&agent.name)).cloned().collect();
    // Named executors exclude all others.
    let registry = only.is_empty().then(|| config.registry.clone());
    let knows_tools = config.knows_tools || config.registry == ToolRegistry::default();
    let (trust, places) = (None, Some(Arc::new(session.folders(false)?) as Arc<dyn Places>));
    Ok(Roster {
        shell,
        takes_commands: is_wanted(SHELL),
        agents,
        registry,
        knows_tools,
        trust,
        places,
        limits: None,
        leaves_limits: false,
        outputs: Some(session.outputs()?),
    })
}

/// The executors for work, with the decisions of this account and of others.
pub async fn to_work(session: &Session, roster: Roster, others: &[String]) -> Result<Roster, Failure> {
    let limits = OptionFuture::from(session.place.open_if_any().await?.map(Breakers::open)).await.transpose()?;
    Ok(Roster { trust: session.trust(others).await?, places: Some(Arc::new(session.folders(true)?)), limits, ..roster })
}
