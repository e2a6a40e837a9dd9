//! Joining, leaving, reporting, and the state of the crew.

use crewlog_executors::crew::briefs::{CONTEXT_FULL, WHEN_FULL};
use crewlog_executors::projecting::Projected;
use crewlog_planner::crew::agents::{Agent, Liveness, Report};
use crewlog_planner::crew::conflicts::{ConflictEvent, Conflicts};
use crewlog_planner::lifecycle::State;
use serde_json::{Value, json};

use super::lease_json;
use crate::context::agent_id;
use crate::serve::mcp::args::Args;
use crate::serve::mcp::identity::{Client, Member, run_session};
use crate::serve::mcp::reply::{Refused, Reply};
use crate::serve::mcp::server::Server;
use crate::views::TaskNames;

const GUIDE: &str = "Before you edit files, call reserve_paths and edit only what it grants. Take work with next_task and report it \
                     with update_task. Read messages with read_inbox. Release files as soon as you are done, and call leave at \
                     the end.";

impl Server {
    pub async fn join(&self, args: &Args, client: &Client) -> Reply {
        let (member, joined, handle) = self.members.join(&self.crew, args, client).await?;
        let name = &member.caller.agent;
        let leases: Vec<_> = self.crew.leases().await?.of_agent(name).map(lease_json).collect();
        let messages = self.crew.messages().await?;
        let (unread, n_acks) = (messages.unread(name).count(), messages.acks_due(name).count());
        drop(messages);
        let n_conflicts = self.conflicts().await?.len();
        let acks = format!("{n_acks} messages wait for your acknowledgement: read_inbox");
        let conflicts = format!("{n_conflicts} conflicts are open: get_status with view conflicts");
        let alerts = [(n_acks, acks), (n_conflicts, conflicts)].into_iter().filter(|(n, _)| *n > 0);
        Ok(json!({
            "status": if joined.is_resumed { "resumed" } else { "joined" },
            "agent": handle,
            "name": name,
            "resumed": joined.is_resumed,
            "leases": leases,
            "tasks": self.crew.tasks_of(name).await?,
            "unread": unread,
            "alerts": alerts.map(|(_, alert)| alert).collect::<Vec<_>>(),
            "guide": GUIDE,
            "position": joined.position,
        }))
    }

    pub async fn leave_crew(&self, member: &Member, args: &Args) -> Reply {
        let (outcome, note, next_step) = (args.get("outcome"), args.get("note"), args.get("next_step"));
        // Its worker says how a run ended, and ends its leases when nothing of it runs any more.
        if run_session().is_some() && agent_id().as_ref() == Some(&member.caller.agent) {
            return Ok(json!({ "status": "left", "released": [], "tasks_returned": [] }));
        }
        let (released, tasks) = self.crew.leave(&member.caller, outcome, note, next_step).await?;
        self.members.forget(member);
        Ok(json!({ "status": "left", "released": released, "tasks_returned": tasks }))
    }

    pub async fn report(&self, member: &Member, args: &Args) -> Reply {
        let report = Report {
            activity: args.get("state"),
            task: args.get("task"),
            step: args.get("step"),
            context_usage: args.get("context_usage"),
            note: args.get("note"),
        };
        self.crew.report(&member.caller, report).await?;
        let unread = self.crew.messages().await?.unread(&member.caller.agent).count();
        let is_full = args.get::<Option<u8>>("context_usage").is_some_and(|usage| usage >= CONTEXT_FULL);
        Ok(json!({ "status": "ok", "unread": unread, "next": is_full.then_some(WHEN_FULL) }))
    }

    pub async fn brief(&self, member: &Member, args: &Args) -> Reply {
        let of = args.get::<Option<String>>("of").unwrap_or_else(|| member.caller.agent.clone());
        Ok(json!({ "status": "ok", "brief": self.crew.brief(&of).await?.text() }))
    }

    pub async fn status(&self, member: &Member, args: &Args) -> Reply {
        match args.get::<String>("view").as_str() {
            "agents" => self.agents().await,
            "conflicts" => Ok(json!({ "status": "ok", "conflicts": self.conflicts().await? })),
            _summary => self.summary(&member.caller.agent).await,
        }
    }

    async fn summary(&self, you: &str) -> Reply {
        let crew = &self.crew;
        let n_agents = crew.agents().await?.iter().filter(|(_, agent)| agent.liveness != Liveness::Left).count();
        let (leases, now) = (crew.leases().await?, crew.store().now());
        let n_leases = leases.iter().filter(|(_, lease)| now <= lease.until).count();
        let position = leases.position();
        drop(leases);
        let tasks = crew.tasks(None).await?;
        let in_state = |state| tasks.iter().filter(|task| task.state == state).count();
        Ok(json!({
            "status": "ok",
            "project": crew.project(),
            "you": you,
            "n_agents": n_agents,
            "n_leases": n_leases,
            "n_ready": in_state(State::Ready),
            "n_claimed": in_state(State::Running),
            "n_questions": crew.asks().await?.open().count(),
            "n_conflicts": self.conflicts().await?.len(),
            "unread": crew.messages().await?.unread(you).count(),
            "position": position,
        }))
    }

    async fn agents(&self) -> Reply {
        let agents = (*self.crew.agents().await?).clone();
        let leases = self.crew.leases().await?;
        let present = agents.iter().filter(|(_, agent)| agent.liveness != Liveness::Left);
        let row = |(name, agent): (&str, &Agent)| {
            let Agent { profile, report, liveness, .. } = agent;
            json!({
                "name": name, "program": profile.program, "liveness": liveness, "activity": agent.activity(), "health": agent.health().0,
                "task": report.task, "step": report.step, "worktree": profile.worktree,
                "leases": leases.of_agent(name).count(),
            })
        };
        let rows: Vec<_> = present.map(row).collect();
        Ok(json!({ "status": "ok", "agents": rows, "position": leases.position() }))
    }

    /// The open conflicts of the project.
    async fn conflicts(&self) -> Result<Vec<Value>, Refused> {
        let projected = Projected::<Conflicts>::read(self.crew.store(), None).await?;
        let open = projected.state.open().filter(|(project, _)| *project == self.crew.project());
        let (mut shown, mut names) = (Vec::new(), TaskNames::on(self.crew.store()));
        for (_, open) in open {
            let ConflictEvent::ConflictDetected { pattern, holders, .. } = &open.detected else { continue };
            let mut tasks = Vec::new();
            for holder in holders {
                let name = names.of(&holder.plan, holder.task).await?;
                tasks.push(format!("{}/{name} of {}", holder.plan, holder.executor.name));
            }
            shown.push(json!({ "pattern": pattern, "tasks": tasks }));
        }
        Ok(shown)
    }
}
