//! Leases on files.

use crate::serve::mcp::args::Args;
use crate::serve::mcp::identity::Member;
use crate::serve::mcp::reply::{Refused, Reply, blocked_json, page};
use crate::serve::mcp::server::Server;
use crate::ui::text::rfc3339;
use crewlog_executors::crew::{Granted, Refusal};
use crewlog_mq::Timestamp;
use crewlog_planner::crew::CrewError;
use crewlog_planner::crew::leases::{
    self, Blocked, Handoff, Lease, LeaseHolder, MergeRisk, ReleaseAnswer, Request, Turn, Which,
};
use crewlog_planner::crew::target::Target;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long a waiting request keeps its place in the queue.
const QUEUED_FOR: Duration = Duration::from_secs(600);

/// The most tasks that a refusal names as alternatives.
const FREE_MAX: usize = 3;

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

/// A request for the paths of a call.
fn wanted(member: &Member, args: &Args) -> Result<Request, Refused> {
    let targets = member.targets(&args.get::<Vec<_>>("paths"))?;
    let (reason, task) = (args.get("reason"), args.get("task"));
    Ok(Request { targets, reason, task, ..asking(&member.caller.holder(), true) })
}

fn asking(holder: &LeaseHolder, is_exclusive: bool) -> Request {
    let (targets, reason, task) = Default::default();
    Request { holder: holder.clone(), targets, is_exclusive, ttl: leases::TTL, reason, task, is_strict: false }
}

fn granted_json(Granted { leases, merge_risks }: &Granted, denied: &[Blocked]) -> Value {
    let risk =
        |risk: &MergeRisk| json!({ "holder": risk.holder.agent, "pattern": risk.target.path, "lease_id": risk.lease });
    json!({
        "status": if denied.is_empty() { "granted" } else { "partial" },
        "granted": leases_json(leases),
        "denied": denied.iter().map(blocked_json).collect::<Vec<_>>(),
        "merge_risks": merge_risks.iter().map(risk).collect::<Vec<_>>(),
    })
}

impl Server {
    pub async fn check_paths(&self, member: &Member, args: &Args) -> Reply {
        let (paths, writes): (Vec<String>, _) = (args.get("paths"), args.get::<String>("mode") == "write");
        let (targets, holder) = (member.targets(&paths)?, member.caller.holder());
        let (leases, now) = (self.crew.leases().await?, self.crew.store().now());
        let (mut free, mut mine, mut blocked) = (Vec::new(), Vec::new(), Vec::new());
        for (path, target) in paths.into_iter().zip(targets) {
            let request = Request { targets: vec![target.clone()], ..asking(&holder, writes) };
            let in_the_way = leases.blocked(&request, None, now);
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
        let mut request = Request {
            is_exclusive: args.get("exclusive"),
            ttl: Duration::from_secs(args.get("ttl_seconds")),
            ..wanted(member, args)?
        };
        let newest = self.crew.leases().await?.newest();
        let mut denied = Vec::new();
        loop {
            match self.look_until(leases::STREAM, wait, || self.reserve(member, &request, !wait.is_zero())).await {
                Ok(Some(mut granted)) => {
                    // Those that it had before get the wanted duration, too.
                    let old = granted.leases.iter().map(|(number, _)| *number).filter(|number| *number <= newest);
                    let old = old.collect::<Vec<_>>();
                    if args.has("ttl_seconds") && !old.is_empty() {
                        let own = self.crew.extend(&member.caller, Which::Numbers(old), request.ttl).await?;
                        let wanted: BTreeSet<_> = granted.leases.iter().map(|(number, _)| *number).collect();
                        granted.leases = own.into_iter().filter(|(number, _)| wanted.contains(number)).collect();
                    }
                    return Ok(granted_json(&granted, &denied));
                }
                Ok(None) => return Ok(json!({ "status": "queued", "next": WAIT_ON })),
                Err(Refusal::Crew(CrewError::Held(blocked))) => {
                    request.targets.retain(|target| !blocked.iter().any(|blocked| blocked.asked == *target));
                    denied.extend(blocked);
                    if args.get("all_or_nothing") || request.targets.is_empty() {
                        let refused = Refused::from(Refusal::from(CrewError::Held(denied)));
                        return Err(refused.with_free(self.free(member, &request).await?));
                    }
                }
                Err(refusal) => return Err(refusal.into()),
            }
        }
    }

    /// Requests leases. Before it refuses, it ends the leases of dead holders.
    async fn reserve(&self, member: &Member, request: &Request, waits: bool) -> Result<Option<Granted>, Refusal> {
        let turn = if waits { Turn::Wait(self.crew.store().now().plus(QUEUED_FOR)) } else { Turn::Behind };
        match self.crew.reserve(&member.caller, request.clone(), turn).await {
            Err(Refusal::Crew(CrewError::Held(_))) if self.crew.bury().await? => {
                self.crew.reserve(&member.caller, request.clone(), turn).await
            }
            reserved => reserved,
        }
    }

    /// The alternatives of an agent that is refused: the paths that are free, and ready tasks with free files.
    async fn free(&self, member: &Member, request: &Request) -> Result<Value, Refused> {
        let free: Vec<_> = {
            let (leases, now) = (self.crew.leases().await?, self.crew.store().now());
            let one = |target: &Target| Request { targets: vec![target.clone()], ..request.clone() };
            let is_free = |target: &&Target| leases.blocked(&one(target), None, now).is_empty();
            request.targets.iter().filter(is_free).map(|target| target.path.clone()).collect()
        };
        let tasks = self.crew.free_steps(&member.caller, FREE_MAX).await?;
        Ok(json!({ "paths": free, "tasks": tasks.into_iter().map(|step| step.target).collect::<Vec<_>>() }))
    }

    pub async fn request_release(&self, member: &Member, args: &Args) -> Reply {
        let (request, deadline) = (wanted(member, args)?, Duration::from_secs(args.get("deadline_seconds")));
        self.crew.bury().await?;
        Ok(match self.crew.request_release(&member.caller, request, deadline).await? {
            Ok(granted) => granted_json(&granted, &[]),
            Err((number, asked)) => json!({ "status": "asked", "request": number, "asked": asked, "next": WAIT_ON }),
        })
    }

    pub async fn answer_release(&self, member: &Member, args: &Args) -> Reply {
        let keep_for = Duration::from_secs(args.get("keep_seconds"));
        let answer = match args.get::<String>("answer").as_str() {
            "release" => ReleaseAnswer::Release,
            "keep" => ReleaseAnswer::Keep { until: self.crew.store().now().plus(keep_for) },
            _hand_over => ReleaseAnswer::HandOver,
        };
        let (request, note) = (args.get("request"), args.get("note"));
        let released = self.crew.answer_release(&member.caller, request, answer, note).await?;
        Ok(json!({ "status": "ok", "released": released }))
    }

    pub async fn handoff(&self, member: &Member, args: &Args) -> Reply {
        let (caller, number, note) = (&member.caller, args.get::<Option<u64>>("number"), args.get::<String>("note"));
        let need = |name: &str| Refused::invalid(format!("{name} is missing"));
        match args.get::<String>("action").as_str() {
            "offer" => {
                let to = args.get::<Option<String>>("to").ok_or_else(|| need("to"))?;
                let (tasks, paths) =
                    (args.get::<Option<String>>("task").into_iter().collect(), args.get::<Vec<_>>("paths"));
                let leases = self.leases_on(member, &paths).await?;
                let (from, next_step, until) = (caller.agent.clone(), args.get("next_step"), Timestamp::default());
                let offer = Handoff { from, to, tasks, leases, next_step, note, until };
                let lapse = Duration::from_secs(args.get("deadline_seconds"));
                let (number, offer) = self.crew.offer_handoff(caller, offer, lapse).await?;
                Ok(json!({ "status": "offered", "number": number, "tasks": offer.tasks, "leases": offer.leases }))
            }
            answer => {
                let (number, accepts) = (number.ok_or_else(|| need("number"))?, answer == "accept");
                let offer = self.crew.answer_handoff(caller, number, accepts, note).await?;
                let (leases, now) = (self.crew.leases().await?, offer.leases.iter());
                let moved: Vec<_> =
                    now.filter_map(|number| Some(lease_json((*number, leases.get(*number)?)))).collect();
                let tasks = if accepts { offer.tasks } else { Vec::new() };
                let status = if accepts { "accepted" } else { "refused" };
                Ok(json!({
                    "status": status, "number": number, "tasks": tasks, "granted": moved,
                    "next_step": offer.next_step, "from": offer.from,
                }))
            }
        }
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
        numbers.extend(self.own_leases(member, &paths).await?.into_iter().flatten());
        Ok(Which::Numbers(numbers))
    }

    /// The numbers of the agent's leases on each path.
    async fn own_leases(&self, member: &Member, paths: &[String]) -> Result<Vec<Vec<u64>>, Refused> {
        let (targets, holder) = (member.targets(paths)?, member.caller.holder());
        let leases = self.crew.leases().await?;
        let own: Vec<_> = leases.of_agent(&holder.agent).filter(|(_, lease)| lease.holder == holder).collect();
        let on = |target: &Target| {
            own.iter().filter(|(_, lease)| lease.target == *target).map(|(number, _)| *number).collect()
        };
        Ok(targets.iter().map(on).collect())
    }

    /// The numbers of the agent's leases on paths. A path without a lease is refused: an empty list would offer everything.
    async fn leases_on(&self, member: &Member, paths: &[String]) -> Result<Vec<u64>, Refused> {
        let own = self.own_leases(member, paths).await?;
        if let Some((path, _)) = paths.iter().zip(&own).find(|(_, own)| own.is_empty()) {
            return Err(Refused::invalid(format!("you have no lease on {path}, named like that")));
        }
        Ok(own.concat())
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
