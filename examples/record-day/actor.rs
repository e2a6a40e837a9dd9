//! An agent of the crew: its calls, with their durations.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use crewlog_executors::claiming::claim_of;
use crewlog_executors::crew::{Caller, Claimed, Join, NewTask, Reserve};
use crewlog_mq::{Cause, Position};
use crewlog_planner::claim::{self, Ending, Executor, TaskCommand, TaskProgress};
use crewlog_planner::crew::agents::{Activity, Profile, Report, Wish};
use crewlog_planner::crew::asks::{Ask, Wanted};
use crewlog_planner::crew::leases::{LeaseCommand, Request, TTL, Turn, Which};
use crewlog_planner::crew::messages::{Importance, Message, Sender};
use crewlog_planner::crew::target::Target;
use crewlog_planner::event::{FailureClass, Usage};

use crate::Result;
use crate::day::{Day, HOST, Job, tags};
use crate::dice::Dice;

const RESERVE: Reserve<'static> = Reserve { ttl: TTL, target: &Target::written };
/// A session compacts its context from this share on, in percent.
const CONTEXT_MAX: u8 = 86;

/// The identity of an agent when it joins.
pub struct Identity {
    pub name: &'static str,
    pub program: &'static str,
    pub model: Option<&'static str>,
    pub capabilities: &'static [&'static str],
    pub worktree: &'static str,
    /// Millionths of a dollar for a thousand input tokens, and for a thousand output tokens.
    pub price: (u64, u64),
}

/// An agent that has joined.
pub struct Actor {
    pub day: Rc<Day>,
    pub caller: Caller,
    dice: Dice,
    context: u8,
    price: (u64, u64),
    /// True if it leaves messages for later.
    pub is_busy: bool,
    /// The last message read from each sender.
    received: BTreeMap<String, Position>,
}

impl Actor {
    /// A session joins; a later one under the same name is a new session.
    pub async fn join(day: &Rc<Day>, who: &Identity, session: u32, parent: Option<&str>) -> Result<Self> {
        let mut dice = Dice::of(&format!("{} {session}", who.name));
        let pid = dice.between(20_000, 90_000);
        let process = Executor {
            name: who.name.to_owned(),
            host: HOST.to_owned(),
            worker: format!("process:{HOST}:6f1e2c4a-4026531836:{pid}:{}", pid * 11),
        };
        let profile = Profile {
            program: who.program.to_owned(),
            model: who.model.map(str::to_owned),
            capabilities: who.capabilities.iter().map(|word| (*word).to_owned()).collect(),
            focus: Vec::new(),
            worktree: who.worktree.to_owned(),
            process: Some(process),
            program_process: None,
        };
        let wish = Wish { parent: parent.map(str::to_owned), ..Wish::of(who.name) };
        let join = Join { wish, session: format!("{}-session-{session}", who.name), profile };
        let caller = day.crew.join(join).await?.caller;
        Ok(Self {
            day: day.clone(),
            caller,
            dice,
            context: 6,
            price: who.price,
            is_busy: false,
            received: BTreeMap::new(),
        })
    }

    /// Works for this many minutes, with occasional calls.
    pub async fn pass(&mut self, minutes: u64) -> Result {
        let mut left = minutes * 60;
        while left > 0 {
            let part = self.dice.between(100, 230).min(left);
            self.day.time.pass(part).await;
            self.day.crew.present(&self.caller).await?;
            left -= part;
        }
        Ok(())
    }

    /// A task from its claim to its end.
    pub async fn work(&mut self, name: &str) -> Result {
        self.begin(name, true).await?;
        self.go_on(name, 0, usize::MAX).await?;
        self.finish(name).await
    }

    /// Claims a task as soon as possible.
    pub async fn begin(&mut self, name: &str, with_leases: bool) -> Result<Claimed> {
        loop {
            self.read_mail().await?;
            let id = self.day.id(name).unwrap_or_default();
            if !id.is_empty() && self.day.is_ready(&id).await? {
                let reserve = with_leases.then_some(RESERVE);
                match self.day.crew.claim(&self.caller, &id, reserve).await {
                    Ok(claimed) => return Ok(claimed),
                    Err(refusal) => println!("{} waits for {name}: {refusal}", self.caller.agent),
                }
            }
            self.say(Activity::Idle, None, Some("Waiting for a task")).await?;
            self.pass(3).await?;
        }
    }

    fn id(&self, name: &str) -> Result<String> {
        Ok(self.day.id(name).ok_or_else(|| format!("there is no task {name}"))?)
    }

    /// Works on some steps of a task that it holds, counted from 0.
    pub async fn go_on(&mut self, name: &str, from: usize, to: usize) -> Result {
        let (id, Job { steps, .. }) = (self.id(name)?, self.day.job(name)?);
        for (index, step) in steps.iter().enumerate().take(to).skip(from) {
            self.grow();
            self.say(Activity::Working, Some(&id), Some(step)).await?;
            let next_step = steps.get(index + 1).map(|next| (*next).to_owned());
            let progress = TaskProgress { step: Some((*step).to_owned()), next_step, note: None, session: None };
            self.day.crew.update_task(&self.caller, &id, progress, None).await?;
            let minutes = self.dice.between(6, 12);
            self.pass(minutes).await?;
            self.read_mail().await?;
        }
        Ok(())
    }

    /// Reports the result of a task that it holds.
    pub async fn finish(&mut self, name: &str) -> Result {
        let result = self.day.job(name)?.result.to_owned();
        self.end(name, Ending::Completed { result, run: None }).await
    }

    /// Reports that a task that it holds cannot be done.
    pub async fn fail(&mut self, name: &str, error: &str) -> Result {
        self.end(name, Ending::Failed { error: error.to_owned(), class: FailureClass::Task, run: None }).await
    }

    /// The end of a task with its usage; its leases are released.
    async fn end(&mut self, name: &str, ending: Ending) -> Result {
        let (id, steps) = (self.id(name)?, self.day.job(name)?.steps.len() as u64);
        let (input_tokens, output_tokens) =
            (steps * self.dice.between(14_000, 42_000), steps * self.dice.between(700, 2_400));
        let cost_micros = (input_tokens * self.price.0 + output_tokens * self.price.1) / 1_000;
        let usage = Usage { input_tokens, output_tokens, cost_micros, ..Usage::default() };
        let (plan, task) = id.rsplit_once('/').ok_or("a task is PLAN/NAME")?;
        let task = self.day.planner(plan).await?.handler().state().id_named(task).ok_or("there is such a task")?;
        let mut claim = claim_of(&self.day.store, plan, task, tags(plan));
        claim.catch_up().await?;
        let command = TaskCommand::End { epoch: claim.handler().epoch, usage, ending };
        let cause = Cause::request().keeping(command.recorded());
        claim.execute(command, &cause).await?;
        self.day.crew.release(&self.caller, Which::OfTask(claim::aggregate_id(plan, task))).await?;
        self.day.take_in(plan).await?;
        self.day.time.pass(20).await;
        Ok(())
    }

    /// The context grows, and is compacted in time.
    fn grow(&mut self) {
        self.context += u8::try_from(self.dice.between(2, 6)).unwrap_or(2);
        if self.context > CONTEXT_MAX {
            self.context = 19;
        }
    }

    pub async fn say(&mut self, activity: Activity, task: Option<&str>, step: Option<&str>) -> Result {
        let (task, step) = (task.map(str::to_owned), step.map(str::to_owned));
        let note = (self.context == 19).then(|| "The context was compacted".to_owned());
        let report = Report { activity, task, step, context_usage: Some(self.context), note };
        Ok(self.day.crew.report(&self.caller, report).await?)
    }

    /// Reads its messages, and acknowledges those that request it.
    pub async fn read_mail(&mut self) -> Result {
        let (crew, agent) = (&self.day.crew, &self.caller.agent);
        let (_, n_unread) = crew.offer(agent).await?;
        if n_unread == 0 || self.is_busy {
            return Ok(());
        }
        let (mail, _) = crew.inbox(agent, true, Position(0), 50, None).await?;
        crew.mark_read(&self.caller, mail.iter().map(|mail| mail.position).collect()).await?;
        self.day.time.pass(25).await;
        let received = mail.iter().map(|mail| (mail.message.from.name().to_owned(), mail.position));
        self.received.extend(received);
        for mail in mail.iter().filter(|mail| mail.ack_is_due) {
            self.day.crew.ack(&self.caller, mail.position, "Understood".to_owned()).await?;
        }
        Ok(())
    }

    /// Leases files for work without a task; `None` if the request waits.
    pub async fn lease(&self, paths: &[&str], reason: &str, wait_minutes: Option<u64>) -> Result<bool> {
        let targets = paths.iter().map(|path| Target::written(path)).collect::<std::result::Result<_, _>>()?;
        let (holder, reason) = (self.caller.holder(), reason.to_owned());
        let request = Request { holder, targets, is_exclusive: true, ttl: TTL, reason, task: None, is_strict: false };
        let now = self.day.crew.store().now();
        let wait = |minutes| Turn::Wait(now.plus(Duration::from_secs(60 * minutes)));
        Ok(self.day.crew.reserve(&self.caller, request, wait_minutes.map_or(Turn::Behind, wait)).await?.is_some())
    }

    pub async fn release_all(&self) -> Result {
        self.day.crew.release(&self.caller, Which::All).await?;
        Ok(())
    }

    /// Its hook refuses an edit of a file leased by another agent.
    pub async fn is_refused(&self, path: &str) -> Result {
        let (target, holder) = (Target::written(path)?, self.caller.holder());
        let leases = self.day.crew.leases().await?;
        let of_other = leases.overlapping(&target, self.day.store.now()).find(|(_, lease)| lease.holder != holder);
        let lease = of_other.ok_or_else(|| format!("nobody leases {path}"))?.0;
        drop(leases);
        self.day.crew.record_edit(|now| LeaseCommand::RefuseEdit { holder, target, lease, now }).await?;
        Ok(())
    }

    /// It changed a file without a lease.
    pub async fn edits_unleased(&self, path: &str) -> Result {
        let (path, agent) = (Target::written(path)?, Some(self.caller.agent.clone()));
        let worktree = self.caller.worktree.clone();
        self.day.crew.record_edit(|now| LeaseCommand::SeeEdit { worktree, path, agent, now }).await?;
        Ok(())
    }

    /// Asks the person; returns the number of the question.
    pub async fn ask(&mut self, wanted: Wanted, text: &str, choices: &[&str], name: Option<&str>) -> Result<u64> {
        let task = name.map(|name| self.id(name)).transpose()?;
        self.say(Activity::Blocked, task.as_deref(), Some("Waiting for an answer")).await?;
        let choices = choices.iter().map(|choice| (*choice).to_owned()).collect();
        let ask = Ask { agent: String::new(), wanted, text: text.to_owned(), choices, task, call: None };
        Ok(self.day.crew.ask(&self.caller, ask).await?)
    }

    /// Asks the person, and waits for the answer.
    pub async fn ask_and_wait(&mut self, wanted: Wanted, text: &str, choices: &[&str], name: Option<&str>) -> Result {
        let number = self.ask(wanted, text, choices, name).await?;
        while self.day.crew.asks().await?.answer(number).is_none() {
            self.pass(4).await?;
        }
        Ok(())
    }

    /// Sends a message; returns its id.
    pub async fn send(
        &self,
        to: &str,
        subject: &str,
        body: &str,
        thread: Option<Position>,
        needs_ack: bool,
    ) -> Result<Position> {
        let importance = if needs_ack { Importance::High } else { Importance::Normal };
        let (from, to) = (Sender::Agent(self.caller.agent.clone()), BTreeSet::from([to.to_owned()]));
        let (subject, body) = (subject.to_owned(), body.to_owned());
        let message = Message { from, to, subject, body, thread, importance, needs_ack };
        Ok(self.day.crew.send(&self.caller, message).await?.0)
    }

    /// Answers the last message that it has read from another agent.
    pub async fn reply(&self, to: &str, subject: &str, body: &str) -> Result {
        let thread = self.received.get(to).copied();
        self.send(to, subject, body, thread, false).await?;
        Ok(())
    }

    /// Adds a task to the backlog, under a short name.
    pub async fn add_task(
        &self,
        name: &'static str,
        title: &str,
        files: &[&str],
        priority: Option<&str>,
        why: &str,
    ) -> Result {
        let (title, files) = (title.to_owned(), files.iter().map(|file| (*file).to_owned()).collect());
        let (priority, description) = (priority.map(str::to_owned), Some(why.to_owned()));
        let task = NewTask { key: "new".to_owned(), title, description, priority, files, depends_on: Vec::new() };
        let made = self.day.crew.create_tasks(&self.caller, vec![task]).await?;
        made.into_iter().for_each(|(_, id)| self.day.name(name, id));
        Ok(())
    }
}
