//! Joining, leaving, reporting, and the state of the crew.

use std::time::Duration;

use crewlog_executors::crew::TaskState;
use crewlog_executors::projecting::Projected;
use crewlog_planner::crew::agents::{Activity, Agent, Liveness, Report};
use crewlog_planner::crew::conflicts::{ConflictEvent, Conflicts};
use rmcp::model::JsonObject;
use serde_json::{Value, json};

use super::leases::lease_json;
use super::{entry, object};
use crate::mcp::args::Args;
use crate::mcp::identity::{Client, Member};
use crate::mcp::reply::{Refused, page};
use crate::mcp::server::Server;

const GUIDE: &str = "Before you edit files, call reserve_paths and edit only what it grants. Take work with next_task and report it \
                     with update_task. Read messages with read_inbox. Release files as soon as you are done, and call leave at \
                     the end.";
/// Leases that end within this time are reported.
const EXPIRING: Duration = Duration::from_secs(600);

impl Server {
    pub async fn join(&self, args: &Args, client: &Client) -> Result<JsonObject, Refused> {
        let (member, joined, handle) = self.members().join(self.crew(), args, client).await?;
        let name = &member.caller.agent;
        let leases = self.crew().leases().await?;
        let (held, has_more) = page(leases.of_agent(name), 20, |(number, lease)| lease_json(number, lease));
        drop(leases);
        let messages = self.crew().messages().await?;
        let (unread, n_acks) = (messages.unread(name).count(), messages.acks_due(name).count());
        drop(messages);
        let mut alerts = Vec::new();
        if n_acks > 0 {
            alerts.push(format!("{n_acks} messages wait for your acknowledgement: read_inbox"));
        }
        let n_conflicts = self.conflicts().await?.len();
        if n_conflicts > 0 {
            alerts.push(format!("{n_conflicts} conflicts are open: get_status with view conflicts"));
        }
        Ok(object(json!({
            "status": if joined.is_resumed { "resumed" } else { "joined" },
            "agent": handle,
            "name": name,
            "resumed": joined.is_resumed,
            "leases": held,
            "tasks": self.crew().tasks_of(name).await?,
            "unread": unread,
            "alerts": alerts,
            "guide": GUIDE,
            "position": joined.position,
            "note": has_more.then_some("you hold more leases: call list_leases"),
        })))
    }

    pub async fn leave_crew(&self, member: &Member, args: &Args) -> Result<JsonObject, Refused> {
        let outcome = args.choice("outcome").unwrap_or_default();
        let (note, next_step) = (args.string("note"), args.string("next_step"));
        let (released, tasks) = self.crew().leave(&member.caller, outcome, note, next_step).await?;
        self.members().forget(member);
        Ok(object(json!({ "status": "left", "released": released, "tasks_returned": tasks })))
    }

    pub async fn report(&self, member: &Member, args: &Args) -> Result<JsonObject, Refused> {
        let report = Report {
            activity: args.choice::<Activity>("state").unwrap_or_default(),
            task: args.owned("task"),
            step: args.owned("step"),
            context_usage: args.number("context_usage"),
            note: args.owned("note"),
        };
        self.crew().report(&member.caller, report).await?;
        let soon = self.crew().store().now().plus(EXPIRING);
        let leases = self.crew().leases().await?;
        let expiring = leases.of_agent(&member.caller.agent).filter(|(_, lease)| lease.until < soon);
        let (expiring, _) = page(expiring, 20, |(number, lease)| lease_json(number, lease));
        drop(leases);
        let unread = self.crew().messages().await?.unread(&member.caller.agent).count();
        Ok(object(json!({ "status": "ok", "leases_expiring": expiring, "unread": unread })))
    }

    pub async fn status(&self, member: Option<&Member>, args: &Args) -> Result<JsonObject, Refused> {
        match args.text("view") {
            Some("agents") => self.agents().await,
            Some("conflicts") => {
                let (conflicts, has_more) = page(self.conflicts().await?, 100, |conflict| conflict);
                Ok(object(json!({ "status": "ok", "conflicts": conflicts, "has_more": has_more })))
            }
            Some(_) | None => self.summary(member).await,
        }
    }

    async fn summary(&self, member: Option<&Member>) -> Result<JsonObject, Refused> {
        let crew = self.crew();
        let agents = crew.agents().await?;
        let n_agents = agents.iter().filter(|(_, agent)| agent.liveness != Liveness::Left).count();
        drop(agents);
        let leases = crew.leases().await?;
        let (n_leases, position) = (leases.iter().count(), leases.position());
        drop(leases);
        let tasks = crew.tasks(None).await?;
        let in_state = |state| tasks.iter().filter(|task| task.state == state).count();
        let you = member.map(|member| &member.caller.agent);
        let unread = match you {
            Some(you) => Some(crew.messages().await?.unread(you).count()),
            None => None,
        };
        Ok(object(json!({
            "status": "ok",
            "project": crew.project(),
            "you": you,
            "n_agents": n_agents,
            "n_leases": n_leases,
            "n_ready": in_state(TaskState::Ready),
            "n_claimed": in_state(TaskState::Claimed),
            "n_questions": crew.asks().await?.open().count(),
            "n_conflicts": self.conflicts().await?.len(),
            "unread": unread,
            "position": position,
        })))
    }

    async fn agents(&self) -> Result<JsonObject, Refused> {
        let leases = self.crew().leases().await?;
        let counts: std::collections::BTreeMap<_, _> =
            leases.holders().map(|holder| (holder.to_owned(), leases.of_agent(holder).count())).collect();
        drop(leases);
        let agents = self.crew().agents().await?;
        let present = agents.iter().filter(|(_, agent)| agent.liveness != Liveness::Left);
        let row =
            |(name, agent): (&str, &Agent)| agent_json(name, agent, counts.get(name).copied().unwrap_or_default());
        let (rows, has_more) = page(present, 100, row);
        Ok(object(json!({ "status": "ok", "agents": rows, "has_more": has_more, "position": agents.position() })))
    }

    /// The open conflicts of the project.
    async fn conflicts(&self) -> Result<Vec<Value>, Refused> {
        let projected = Projected::<Conflicts>::read(self.crew().store(), None).await?;
        let open = projected.state.open().filter(|(project, _)| *project == self.crew().project());
        Ok(open.filter_map(|(_, open)| conflict_json(&open.detected)).collect())
    }
}

fn agent_json(name: &str, agent: &Agent, n_leases: usize) -> Value {
    let activity: &str = agent.report.activity.into();
    let liveness: &str = agent.liveness.into();
    entry(json!({
        "name": name, "program": agent.profile.program, "liveness": liveness, "activity": activity,
        "task": agent.report.task, "step": agent.report.step, "worktree": agent.profile.worktree, "leases": n_leases,
    }))
}

fn conflict_json(detected: &ConflictEvent) -> Option<Value> {
    match detected {
        ConflictEvent::ConflictDetected { pattern, holders, .. } => {
            let tasks =
                holders.iter().map(|holder| format!("{}/{} of {}", holder.plan, holder.task, holder.executor.name));
            Some(json!({ "pattern": pattern, "tasks": tasks.collect::<Vec<_>>() }))
        }
        ConflictEvent::ConflictResolved { .. } => None,
    }
}
