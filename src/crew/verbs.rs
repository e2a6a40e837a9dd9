//! `agents`, `leases`, `send`, `answer` of an agent's question: the crew of the project, and what a person does about it.

use std::io::Write;
use std::path::Path;

use crewlog_executors::crew::{Crew as Host, Draft};
use crewlog_mq::{Position, Timestamp};
use crewlog_planner::crew::agents::{Agent, Liveness};
use crewlog_planner::crew::asks::Answer as Said;
use crewlog_planner::crew::leases::{self, Lease, Request};
use crewlog_planner::crew::target::Target;
use serde_json::{Value, json};

use super::session::{agent_id, open, person, person_only};
use super::worktree::Worktree;
use super::{inbox, why};
use crate::cli::{Answer, Crew, Leases, Send};
use crate::failure::{Code, Failure};
use crate::session::{Session, read_text};
use crate::text::{one_line, rfc3339, visible};

pub async fn obey(session: &Session, command: Crew) -> Result<Code, Failure> {
    match command {
        Crew::Agents { all, at } => agents(session, all, at.at).await,
        Crew::Leases(args) if args.force.is_empty() => leases(session, args).await,
        Crew::Leases(args) => force(session, args).await,
        Crew::Send(args) => send(session, args).await,
        Crew::Inbox(args) => inbox::inbox(session, args).await,
        Crew::Why { what, at } => why::why(session, &what, at.at).await,
    }
}

/// The position that a view is of.
pub async fn position(crew: &Host, at: Option<Position>) -> Result<Position, Failure> {
    let head = crew.store().head().await?;
    Ok(at.map_or(head, |at| at.min(head)))
}

async fn agents(session: &Session, all: bool, at: Option<Position>) -> Result<Code, Failure> {
    let crew = open(session).await?;
    let (position, agents) = (position(&crew, at).await?, crew.agents_at(at).await?);
    let shown: Vec<_> = agents.iter().filter(|(_, agent)| all || agent.liveness != Liveness::Left).collect();
    session.print_list(
        "agents",
        json!({ "at": position }),
        &shown,
        |(name, agent)| agent_json(name, agent),
        |to, (name, agent)| print_agent(to, name, agent),
    )
}

pub fn agent_json(name: &str, agent: &Agent) -> Value {
    let Agent { profile, session, epoch, report, liveness, seen, since } = agent;
    json!({
        "agent": name, "liveness": liveness, "activity": report.activity, "program": profile.program,
        "model": profile.model, "capabilities": profile.capabilities,
        "focus": profile.focus.iter().map(|target| &target.path).collect::<Vec<_>>(), "worktree": profile.worktree,
        "session": session, "epoch": epoch, "since": rfc3339(*since), "seen": rfc3339(*seen), "task": report.task,
        "step": report.step, "note": report.note, "context_usage": report.context_usage,
    })
}

pub fn print_agent(mut to: impl Write, name: &str, agent: &Agent) -> std::io::Result<()> {
    let (report, profile) = (&agent.report, &agent.profile);
    let (liveness, activity): (&str, &str) = (agent.liveness.into(), report.activity.into());
    let program = [Some(&profile.program), profile.model.as_ref()].into_iter().flatten().map(String::as_str);
    let program = one_line(&program.collect::<Vec<_>>().join(" "), 60);
    writeln!(to, "{}  {liveness}, {activity}  {program}  last call {}", visible(name), rfc3339(agent.seen))?;
    let work: Vec<_> = [&report.task, &report.step, &report.note].into_iter().flatten().map(String::as_str).collect();
    if !work.is_empty() {
        writeln!(to, "  {}", one_line(&work.join(": "), 140))?;
    }
    writeln!(to, "  {}", one_line(&profile.worktree, 140))
}

/// A lease, or a target of a request that waits for one.
pub struct Shown {
    lease: Option<u64>,
    waiting: Option<u64>,
    request: Request,
    target: Target,
    token: Option<Position>,
    until: Timestamp,
}

/// The leases on what overlaps a target, and what waits for them.
pub fn shown(leases: &leases::Leases, wanted: Option<&Target>) -> Vec<Shown> {
    let live = leases.iter().map(|(number, lease)| {
        let Lease { holder, target, is_exclusive, ttl, until, reason, task, token, .. } = lease.clone();
        let targets = vec![target.clone()];
        let request = Request { holder, targets, is_exclusive, ttl, reason, task, is_strict: false };
        Shown { lease: Some(number), waiting: None, request, target, token: Some(token), until }
    });
    let waiting = leases.waiting().flat_map(|(number, waiting)| {
        let request = &waiting.request;
        request.targets.iter().map(|target| {
            let (request, target) = (request.clone(), target.clone());
            Shown { lease: None, waiting: Some(*number), request, target, token: None, until: waiting.until }
        })
    });
    let meets = |target: &Target| wanted.is_none_or(|wanted| wanted.pattern().overlaps(&target.pattern()));
    live.chain(waiting).filter(|shown| meets(&shown.target)).collect()
}

impl Shown {
    pub fn agent(&self) -> &str {
        &self.request.holder.agent
    }

    pub fn task(&self) -> Option<&String> {
        self.request.task.as_ref()
    }

    pub fn json(&self) -> Value {
        let Self { lease, waiting, request, target, token, until } = self;
        json!({
            "lease": lease, "waiting": waiting, "agent": request.holder.agent, "worktree": request.holder.worktree,
            "path": target.path, "is_pattern": target.is_pattern, "is_exclusive": request.is_exclusive,
            "reason": request.reason, "task": request.task, "token": token, "until": rfc3339(*until),
        })
    }

    pub fn print(&self, mut to: impl Write) -> std::io::Result<()> {
        let Self { lease, waiting, request, target, token, until } = self;
        let kind = if request.is_exclusive { "exclusive" } else { "shared" };
        let number = lease.or(*waiting).unwrap_or_default();
        let since = token.map_or_else(|| "waits".to_owned(), |token| format!("since position {token}"));
        let (path, agent) = (one_line(&target.path, 100), visible(&request.holder.agent));
        writeln!(to, "{number}  {path}  {agent}  {kind}  {since}, until {}", rfc3339(*until))?;
        let task = request.task.as_ref().map_or_else(String::new, |task| format!(" (task {task})"));
        writeln!(to, "  {}", one_line(&format!("{}: {}{task}", request.holder.worktree, request.reason), 140))
    }
}

async fn leases(session: &Session, args: Leases) -> Result<Code, Failure> {
    let crew = open(session).await?;
    let wanted = args.path.map(|path| target(session, &path)).transpose()?;
    let (position, leases) = (position(&crew, args.at.at).await?, crew.leases_at(args.at.at).await?);
    let shown = shown(&leases, wanted.as_ref());
    session.print_list("leases", json!({ "at": position }), &shown, Shown::json, |to, shown| shown.print(to))
}

/// A path of the working directory as leases name it.
pub fn target(session: &Session, path: &str) -> Result<Target, Failure> {
    let target = Worktree::around(&session.folder).target(&session.folder, path);
    target.map_err(|error| Failure::user(error.to_string()))
}

async fn force(session: &Session, args: Leases) -> Result<Code, Failure> {
    person_only("end the leases of others")?;
    let crew = open(session).await?;
    let ended = crew.force(args.force, person(), args.reason.unwrap_or_default()).await?;
    let numbers = ended.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    session.print_done(&format!("ended: {numbers}"), &json!({ "ended": ended }))
}

async fn send(session: &Session, args: Send) -> Result<Code, Failure> {
    let Send { to, subject, body, importance, ack, thread } = args;
    let body = if body == "-" { read_text(Path::new("-"))? } else { body };
    let crew = open(session).await?;
    let draft = Draft { to, subject, body, thread, importance, needs_ack: ack };
    let sent = match agent_id() {
        Some(agent) => crew.send(&crew.caller(&agent).await?, draft).await?,
        None => crew.send_from_person(person(), draft).await?,
    };
    let text = format!("message {} to {}", sent.message, sent.to.join(", "));
    session.print_done(&text, &json!({ "message": sent.message, "to": sent.to }))
}

/// The number of an agent's question, if the answer is to one: `answer a12 TEXT`.
pub fn number_of(answer: &Answer) -> Option<u64> {
    answer.plan.strip_prefix('a').filter(|_| answer.text.is_none()).and_then(|number| number.parse().ok())
}

/// `answer` of an agent's question.
pub async fn answer(session: &Session, number: u64, answer: Answer) -> Result<Code, Failure> {
    let is_granted = if answer.no { Some(false) } else { session.yes.then_some(true) };
    let decided = is_granted.map(|granted| if granted { "yes" } else { "no" }.to_owned());
    let text = answer.question.or(decided).unwrap_or_default();
    let crew = open(session).await?;
    crew.answer(number, Said { by: person(), text, is_granted }).await?;
    session.print_done(&format!("a{number} is answered"), &json!({ "ask": format!("a{number}") }))
}
