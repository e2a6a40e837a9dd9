//! Leases on files.

use crate::serve::mcp::args::Args;
use crate::serve::mcp::identity::Member;
use crate::serve::mcp::reply::{Refused, Reply, blocked_json, page};
use crate::serve::mcp::server::Server;
use crate::ui::text::rfc3339;
use crewlog_executors::crew::{Granted, Refusal};
use crewlog_planner::crew::CrewError;
use crewlog_planner::crew::leases::{self, Lease, MergeRisk, Request, Which};
use serde_json::{Value, json};
use std::time::Duration;

/// How long a waiting request keeps its place in the queue.
const QUEUED_FOR: Duration = Duration::from_secs(600);

const WAIT_ON: &str = "do other work, or call wait_for_events with kinds lease: you get the leases when they are free";

pub fn lease_json((number, lease): (u64, &Lease)) -> Value {
    json!({
        "lease_id": number,
        "path": lease.target.path,
        "holder": lease.holder.agent,
        "worktree": lease.holder.worktree,
        "exclusive": lease.is_exclusive,
        "token": lease.token,
        "expires_at": rfc3339(lease.until),
        "task": lease.task,
        "reason": lease.reason,
    })
}

pub fn leases_json(leases: &[(u64, Lease)]) -> Vec<Value> {
    leases.iter().map(|(number, lease)| lease_json((*number, lease))).collect()
}

impl Server {
    pub async fn check_paths(&self, member: &Member, args: &Args) -> Reply {
        let (paths, writes): (Vec<String>, _) = (args.get("paths"), args.get::<String>("mode") == "write");
        let (targets, holder) = (member.targets(&paths)?, member.caller.holder());
        let (leases, now) = (self.crew.leases().await?, self.crew.store().now());
        let (mut free, mut mine, mut blocked) = (Vec::new(), Vec::new(), Vec::new());
        for (path, target) in paths.into_iter().zip(targets) {
            let in_the_way = leases.in_the_way(&holder, std::slice::from_ref(&target), writes, false, now);
            if !in_the_way.is_empty() {
                blocked.extend(in_the_way.iter().map(blocked_json));
            } else if leases.overlapping(&target, now).any(|(_, lease)| lease.holder == holder) {
                mine.push(path);
            } else {
                free.push(path);
            }
        }
        Ok(json!({ "status": "ok", "free": free, "mine": mine, "blocked": blocked, "position": leases.position() }))
    }

    pub async fn reserve_paths(&self, member: &Member, args: &Args) -> Reply {
        let wait = Duration::from_secs(args.get("wait_seconds"));
        let queued_for = (!wait.is_zero()).then_some(QUEUED_FOR);
        let mut request = Request {
            holder: member.caller.holder(),
            targets: member.targets(&args.get::<Vec<_>>("paths"))?,
            is_exclusive: args.get("exclusive"),
            ttl: Duration::from_secs(args.get("ttl_seconds")),
            reason: args.get("reason"),
            task: args.get("task"),
            is_strict: false,
        };
        let risk = |risk: &MergeRisk| json!({ "holder": risk.holder.agent, "pattern": risk.target.path, "lease_id": risk.lease });
        let mut denied = Vec::new();
        loop {
            match self.look_until(leases::STREAM, wait, || self.reserve(member, &request, queued_for)).await {
                Ok(Some(Granted { leases, merge_risks })) => {
                    return Ok(json!({
                        "status": if denied.is_empty() { "granted" } else { "partial" },
                        "granted": leases_json(&leases),
                        "denied": denied.iter().map(blocked_json).collect::<Vec<_>>(),
                        "merge_risks": merge_risks.iter().map(risk).collect::<Vec<_>>(),
                    }));
                }
                Ok(None) => return Ok(json!({ "status": "queued", "next": WAIT_ON })),
                Err(Refusal::Crew(CrewError::Held(blocked))) => {
                    request.targets.retain(|target| !blocked.iter().any(|blocked| blocked.asked == *target));
                    denied.extend(blocked);
                    if args.get("all_or_nothing") || request.targets.is_empty() {
                        return Err(Refusal::from(CrewError::Held(denied)).into());
                    }
                }
                Err(refusal) => return Err(refusal.into()),
            }
        }
    }

    /// Requests leases. Before it refuses, it ends the leases of dead holders.
    async fn reserve(
        &self,
        member: &Member,
        request: &Request,
        wait: Option<Duration>,
    ) -> Result<Option<Granted>, Refusal> {
        match self.crew.reserve(&member.caller, request.clone(), wait).await {
            Err(Refusal::Crew(CrewError::Held(_))) if self.crew.bury().await? => {
                self.crew.reserve(&member.caller, request.clone(), wait).await
            }
            reserved => reserved,
        }
    }

    pub async fn renew_paths(&self, member: &Member, args: &Args) -> Reply {
        let (which, by) = (self.which(member, args).await?, Duration::from_secs(args.get("extend_seconds")));
        let leases = self.crew.extend(&member.caller, which, by).await?;
        Ok(json!({ "status": "ok", "leases": leases_json(&leases) }))
    }

    pub async fn release_paths(&self, member: &Member, args: &Args) -> Reply {
        let which = self.which(member, args).await?;
        let (released, granted_to) = self.crew.release(&member.caller, which).await?;
        Ok(json!({ "status": "ok", "released": released, "now_granted_to": granted_to }))
    }

    /// The leases that a call names by number or path, or else all of the agent.
    async fn which(&self, member: &Member, args: &Args) -> Result<Which, Refused> {
        let (mut numbers, paths): (Vec<u64>, Vec<String>) = (args.get("lease_ids"), args.get("paths"));
        if numbers.is_empty() && paths.is_empty() {
            return Ok(Which::All);
        }
        let (targets, holder) = (member.targets(&paths)?, member.caller.holder());
        let leases = self.crew.leases().await?;
        let own = leases.of_agent(&holder.agent).filter(|(_, lease)| lease.holder == holder);
        numbers.extend(own.filter(|(_, lease)| targets.contains(&lease.target)).map(|(number, _)| number));
        Ok(Which::Numbers(numbers))
    }

    pub async fn list_leases(&self, member: &Member, args: &Args) -> Reply {
        let target = args.get::<Option<String>>("path").map(|path| member.target(&path)).transpose()?;
        let (after, holder): (u64, Option<String>) = (args.get("cursor"), args.get("holder"));
        let (leases, now) = (self.crew.leases().await?, self.crew.store().now());
        let found: Vec<_> = match &target {
            Some(target) => leases.overlapping(target, now).collect(),
            None => leases.iter().filter(|(_, lease)| now <= lease.until).collect(),
        };
        let is_meant = |(number, lease): &(u64, &Lease)| {
            *number > after && holder.as_ref().is_none_or(|holder| lease.holder.agent == *holder)
        };
        let (leases, has_more) = page(found.into_iter().filter(is_meant), args.get("limit"), lease_json);
        let last = leases.last().filter(|_| has_more).map(|lease| &lease["lease_id"]);
        Ok(json!({ "status": "ok", "next_cursor": last, "has_more": has_more, "leases": leases }))
    }
}
