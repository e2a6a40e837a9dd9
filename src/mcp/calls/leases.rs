//! Leases on files.

use std::pin::pin;
use std::time::Duration;

use crewlog_executors::crew::{Reserve, Reserved};
use crewlog_mq::{Position, Query, Start};
use crewlog_planner::crew::leases::{self, Blocked, By, Lease, MergeRisk, Which};
use crewlog_planner::crew::target::Target;
use rmcp::model::JsonObject;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::waiting::comes;
use super::{entry, object};
use crate::mcp::args::Args;
use crate::mcp::identity::Member;
use crate::mcp::reply::{Refused, page};
use crate::mcp::server::Server;
use crate::text::rfc3339;

/// How long a waiting request keeps its place in the queue.
const QUEUED_FOR: Duration = Duration::from_secs(600);
/// How often a request that takes what is free leaves out what is not.
const PARTS_MAX: usize = 20;

pub fn lease_json(number: u64, lease: &Lease) -> Value {
    entry(json!({
        "lease_id": number,
        "path": lease.target.path,
        "holder": lease.holder.agent,
        "worktree": lease.holder.worktree,
        "exclusive": lease.is_exclusive,
        "token": lease.token,
        "expires_at": rfc3339(lease.until),
        "task": lease.task,
        "reason": Some(&lease.reason).filter(|reason| !reason.is_empty()),
    }))
}

pub fn blocked_json(blocked: &Blocked) -> Value {
    let lease = match blocked.by {
        By::Lease(number) => Some(number),
        By::Waiting(_) => None,
    };
    entry(json!({
        "path": blocked.asked.path,
        "holder": blocked.holder.agent,
        "pattern": blocked.target.path,
        "lease_id": lease,
        "exclusive": blocked.is_exclusive,
        "expires_at": rfc3339(blocked.until),
        "task": blocked.task,
    }))
}

fn risk_json(risk: &MergeRisk) -> Value {
    json!({ "holder": risk.holder.agent, "pattern": risk.target.path, "lease_id": risk.lease })
}

impl Server {
    pub async fn check_paths(&self, member: &Member, args: &Args) -> Result<JsonObject, Refused> {
        let (targets, refused) = member.targets(&args.strings("paths"));
        let (holder, writes) = (member.holder(), args.text("mode") != Some("read"));
        let leases = self.crew().leases().await?;
        let now = self.crew().store().now();
        let (mut free, mut mine, mut blocked) = (Vec::new(), Vec::new(), Vec::new());
        for (path, target) in targets {
            let in_the_way = leases.in_the_way(&holder, std::slice::from_ref(&target), writes, false, now);
            if !in_the_way.is_empty() {
                blocked.extend(in_the_way.iter().map(blocked_json));
            } else if leases.overlapping(&target, now).any(|(_, lease)| lease.holder == holder) {
                mine.push(path);
            } else {
                free.push(path);
            }
        }
        let (blocked, has_more) = page(blocked, usize::MAX, |blocked| blocked);
        Ok(object(json!({
            "status": "ok", "free": free, "mine": mine, "blocked": blocked, "refused": refused,
            "position": leases.position(), "note": has_more.then_some("blocked was shortened"),
        })))
    }

    pub async fn reserve_paths(&self, member: &Member, args: &Args) -> Result<JsonObject, Refused> {
        let (targets, refused) = member.targets(&args.strings("paths"));
        if !refused.is_empty() {
            let message = format!("{} of the paths cannot be leased: refused says why", refused.len());
            let refusal = Refused::new("bad_path", message, "name files, folders or patterns inside your worktree");
            return Err(refusal.with("refused", json!(refused)));
        }
        let wait = args.seconds("wait_seconds");
        let request = Reserve {
            targets: targets.into_iter().map(|(_, target)| target).collect(),
            is_exclusive: args.flag("exclusive"),
            ttl: args.seconds("ttl_seconds"),
            reason: args.string("reason"),
            task: args.owned("task"),
            is_strict: false,
            wait: (!wait.is_zero()).then_some(QUEUED_FOR),
        };
        let since = self.crew().store().head().await?;
        let mut reserved = self.reserve(member, &request).await?;
        if let Reserved::Queued { waiting } = reserved {
            self.await_grant(waiting, since, wait).await?;
            reserved = self.reserve(member, &request).await?;
        }
        match reserved {
            Reserved::Granted { leases, merge_risks } => Ok(granted("granted", &leases, &[], &merge_risks)),
            Reserved::Queued { waiting } => self.queued(waiting).await,
            Reserved::Denied { blocked } if args.flag("all_or_nothing") => Err(denied(member, &blocked)),
            Reserved::Denied { blocked } => self.reserve_free(member, request, blocked).await,
        }
    }

    /// Requests leases. Before it gives up, it ends the leases of holders that are dead.
    async fn reserve(&self, member: &Member, request: &Reserve) -> Result<Reserved, Refused> {
        let reserved = self.crew().reserve(&member.caller, request.clone()).await?;
        if !matches!(reserved, Reserved::Denied { .. }) {
            return Ok(reserved);
        }
        self.crew().fire_timers().await?;
        Ok(self.crew().reserve(&member.caller, request.clone()).await?)
    }

    /// Requests what is free of a request that was denied.
    async fn reserve_free(
        &self,
        member: &Member,
        mut request: Reserve,
        mut denied_for: Vec<Blocked>,
    ) -> Result<JsonObject, Refused> {
        for _ in 0..PARTS_MAX {
            let is_free = |target: &Target| !denied_for.iter().any(|blocked| blocked.asked == *target);
            request.targets.retain(is_free);
            if request.targets.is_empty() {
                break;
            }
            match self.crew().reserve(&member.caller, request.clone()).await? {
                Reserved::Denied { blocked } => denied_for.extend(blocked),
                Reserved::Granted { leases, merge_risks } => {
                    note_blocked(member, &denied_for);
                    return Ok(granted("partial", &leases, &denied_for, &merge_risks));
                }
                Reserved::Queued { waiting } => return self.queued(waiting).await,
            }
        }
        Err(denied(member, &denied_for))
    }

    /// Waits until a request leaves the queue.
    async fn await_grant(&self, waiting: u64, since: Position, wait: Duration) -> Result<(), Refused> {
        let deadline = Instant::now() + wait;
        let query = Query::aggregate(leases::STREAM, self.crew().project());
        let mut news = pin!(self.crew().store().follow(&query, Start::After(since)));
        while self.crew().leases().await?.waiting().any(|(number, _)| *number == waiting) {
            if !comes(&mut news, deadline).await? {
                break;
            }
        }
        Ok(())
    }

    async fn queued(&self, waiting: u64) -> Result<JsonObject, Refused> {
        let leases = self.crew().leases().await?;
        let n_before = leases.waiting().take_while(|(number, _)| *number != waiting).count();
        Ok(object(json!({
            "status": "queued", "queue_position": n_before + 1,
            "next": "do other work, or call wait_for_events with kinds lease: you get the leases when they are free",
        })))
    }

    pub async fn renew_paths(&self, member: &Member, args: &Args) -> Result<JsonObject, Refused> {
        let (which, lost) = self.which(member, args).await?;
        let by = args.seconds("extend_seconds");
        let live = match which {
            Some(which) => {
                let live = self.crew().extend(&member.caller, which.clone(), by).await?;
                live.into_iter().filter(|(number, lease)| is_meant(&which, *number, lease)).collect()
            }
            None => Vec::new(),
        };
        let (renewed, has_more) = page(live, usize::MAX, |(number, lease)| lease_json(number, &lease));
        let note = has_more.then_some("renewed was shortened");
        Ok(object(json!({ "status": "ok", "renewed": renewed, "lost": lost, "note": note })))
    }

    pub async fn release_paths(&self, member: &Member, args: &Args) -> Result<JsonObject, Refused> {
        let (released, granted_to) = match self.which(member, args).await? {
            (Some(which), _) => self.crew().release(&member.caller, which).await?,
            (None, _) => Default::default(),
        };
        Ok(object(json!({ "status": "ok", "released": released, "now_granted_to": granted_to })))
    }

    /// The leases that a call means: all if it names none, nothing if all that it names have ended; and those that have ended.
    async fn which(&self, member: &Member, args: &Args) -> Result<(Option<Which>, Vec<String>), Refused> {
        let (numbers, paths) = (args.numbers::<u64>("lease_ids"), args.strings("paths"));
        if numbers.is_empty() && paths.is_empty() {
            return Ok((Some(Which::All), Vec::new()));
        }
        let leases = self.crew().leases().await?;
        let (mut live, mut lost): (Vec<_>, Vec<_>) = (Vec::new(), Vec::new());
        for number in numbers {
            if leases.get(number).is_some() { live.push(number) } else { lost.push(number.to_string()) }
        }
        let (targets, refused) = member.targets(&paths);
        lost.extend(refused.iter().filter_map(|refused| refused["path"].as_str().map(str::to_owned)));
        let holder = member.holder();
        for (path, target) in targets {
            let own =
                leases.of_agent(&holder.agent).find(|(_, lease)| lease.holder == holder && lease.target == target);
            match own {
                Some((number, _)) => live.push(number),
                None => lost.push(path),
            }
        }
        Ok(((!live.is_empty()).then_some(Which::Numbers(live)), lost))
    }

    pub async fn list_leases(&self, member: &Member, args: &Args) -> Result<JsonObject, Refused> {
        let limit = args.number("limit").unwrap_or(usize::MAX);
        let after = args.number("cursor").unwrap_or(0);
        let (path, holder) = (args.owned("path"), args.text("holder"));
        if path.is_none() && holder.is_none() {
            return self.leases_after(after, limit).await;
        }
        let (targets, refused) = member.targets(&path.into_iter().collect::<Vec<_>>());
        if let Some(refused) = refused.into_iter().next() {
            let why = refused["why"].as_str().unwrap_or_default().to_owned();
            return Err(Refused::new("bad_path", why, "name a file, folder or pattern inside your worktree"));
        }
        let leases = self.crew().leases().await?;
        let now = self.crew().store().now();
        let overlapping =
            |target: &Target| leases.overlapping(target, now).map(|(number, _)| number).collect::<Vec<_>>();
        let numbers = targets.first().map(|(_, target)| overlapping(target));
        let is_meant = |(number, lease): &(u64, &Lease)| {
            *number > after
                && numbers.as_ref().is_none_or(|numbers| numbers.binary_search(number).is_ok())
                && holder.is_none_or(|holder| lease.holder.agent == holder)
        };
        Ok(leases_page(leases.iter().filter(is_meant), limit))
    }

    pub async fn leases_after(&self, after: u64, limit: usize) -> Result<JsonObject, Refused> {
        let leases = self.crew().leases().await?;
        Ok(leases_page(leases.iter().filter(|(number, _)| *number > after), limit))
    }
}

fn leases_page<'a>(leases: impl Iterator<Item = (u64, &'a Lease)>, limit: usize) -> JsonObject {
    let (leases, has_more) = page(leases, limit, |(number, lease)| lease_json(number, lease));
    let last = leases.last().filter(|_| has_more).map(|lease| lease["lease_id"].clone());
    object(json!({ "status": "ok", "leases": leases, "has_more": has_more, "next_cursor": last }))
}

fn granted(status: &str, leases: &[(u64, Lease)], denied: &[Blocked], risks: &[MergeRisk]) -> JsonObject {
    let (granted, has_more) = page(leases, usize::MAX, |(number, lease)| lease_json(*number, lease));
    let note = has_more.then(|| format!("all {} paths are granted; the list was shortened", leases.len()));
    object(json!({
        "status": status,
        "granted": granted,
        "denied": denied.iter().take(5).map(blocked_json).collect::<Vec<_>>(),
        "merge_risks": risks.iter().take(5).map(risk_json).collect::<Vec<_>>(),
        "note": note,
    }))
}

fn denied(member: &Member, blocked: &[Blocked]) -> Refused {
    note_blocked(member, blocked);
    let refused =
        Refused::from(crewlog_executors::crew::Refusal::from(crewlog_planner::crew::CrewError::Held(blocked.to_vec())));
    let (denied, _) = page(blocked, usize::MAX, blocked_json);
    refused.with("denied", json!(denied))
}

/// Remembers what is in the way, so that `wait_for_events` can say when it ends.
pub fn note_blocked(member: &Member, blocked: &[Blocked]) {
    let mut known = member.blocked_by.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    known.clear();
    known.extend(blocked.iter().filter_map(|blocked| match blocked.by {
        By::Lease(number) => Some((number, blocked.target.path.clone())),
        By::Waiting(_) => None,
    }));
}

fn is_meant(which: &Which, number: u64, lease: &Lease) -> bool {
    match which {
        Which::All => true,
        Which::Numbers(numbers) => numbers.contains(&number),
        Which::Targets(worktree, targets) => lease.holder.worktree == *worktree && targets.contains(&lease.target),
    }
}
