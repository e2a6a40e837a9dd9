//! `resume`: runs what a plan has left, or lets a task start.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use crewlog_executors::caller::request;
use crewlog_executors::claiming::claim_of;
use crewlog_executors::planning;
use crewlog_mq::{EventStore, Runner};
use crewlog_planner::claim::TaskCommand;
use crewlog_planner::event::{Command, Setting};
use crewlog_planner::planner::Planner;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::cli::typed::{Address, BY_PERSON};
use crate::consent::{allow_programs, consent, keep};
use crate::context::{Session, roster};
use crate::plan_file::sync;
use crate::run::runtime::RunArgs;
use crate::run::session::{RunSession, already_ended};
use crate::target::{self, Target, decide, order, state_now};
use crate::ui::failure::{Code, Failure};
use crate::ui::signals::Signals;
use crate::views::names::{Choice, find_plan, plan_to_resume};
use crate::views::queries;

#[derive(Debug, Args)]
pub struct Resume {
    /// The plan, or a paused task to let start [default: the only plan that can be resumed]
    #[arg(value_name = "PLAN[/TASK]")]
    pub target: Option<Address>,
    /// Write the states of tasks into the plan's file, and apply changes of the file
    #[arg(long)]
    pub sync: bool,
    /// Run it in this folder from now on
    #[arg(long = "in", value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// Only resume the plan, and leave its tasks to `crewlog work`
    #[arg(long, conflicts_with_all = ["timeout", "task_timeout", "sync"])]
    pub detach: bool,
    #[command(flatten)]
    pub run_args: RunArgs,
}

/// The plan, or the paused task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeTarget {
    /// The plan, whose tasks are left to workers, or a paused task to let start
    #[schema(value_type = String)]
    pub target: Address,
}

/// Resumes a plan without running it here, or lets a task start.
pub async fn resume_detached(session: &Session, ResumeTarget { target }: ResumeTarget) -> Result<Code, Failure> {
    let run_args = RunArgs::without_model();
    resume(session, Resume { target: Some(target), sync: false, folder: None, detach: true, run_args }).await
}

pub async fn resume(session: &Session, resume: Resume) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let plan = match &resume.target {
        Some(Address { plan, part: Some(name) }) => {
            if resume.sync || resume.run_args.jobs.is_some() || resume.run_args.timeout.is_some() {
                return Err(Failure::user("--sync, --jobs and --timeout are for plans: a resumed task may only start"));
            }
            return resume_task(session, plan, name).await;
        }
        Some(Address { plan, part: None }) => find_plan(session, &store, plan, Choice::Changed).await?,
        None => plan_to_resume(session, &store).await?,
    };
    let roster = roster::roster(session, resume.run_args.task_timeout, &[])?;
    let tags = queries::tags_of(&store, &plan).await?;
    session.place.check_key(&plan, &tags)?;
    let signals = Signals::new()?;
    let since = store.head().await?;
    if resume.sync {
        // The current text of the file is applied before a task starts.
        sync::keep_once(session, &store, &plan).await?;
    }
    let mut planner = planning::catch_up(&store, &plan, tags.clone()).await?;
    if let Some(folder) = &resume.folder {
        move_to(session, &store, (&plan, &tags), &mut planner, folder).await?;
    } else if let (Some(kept), false) = (&planner.handler().state().config.folder, resume.detach) {
        roster.find(kept).map_err(|why| {
            Failure::user(format!("{plan} cannot run here: {why}"))
                .hint(format!("to run it in another folder: {} --in FOLDER", session.command_on("resume", &plan)))
        })?;
    }
    // Fires the timers that came due without a host.
    planning::keep_time(&mut planner, &store).await?;
    if !resume.detach && (session.yes || session.terminal.is_interactive) {
        let open = planner.handler().state().tasks.iter().filter(|task| !task.status.is_end());
        let tasks: Vec<_> = open.map(|task| task.plan.clone()).collect();
        allow_programs(session, &roster, &tasks).await?;
    }
    if planner.handler().state().phase.is_paused() {
        order(&mut planner, Command::Resume).await?;
        target::propagate(&store, &plan).await?;
    }
    if planner.handler().state().phase.is_ended() {
        if !resume.detach {
            return already_ended(session, &store, &plan).await;
        }
        let retry = session.command_on("retry", &plan);
        return Err(Failure::new(Code::Conflict, format!("{plan} has ended")).hint(format!("to try again: {retry}")));
    }
    // Dispatches the tasks whose dispatch a crash prevented.
    order(&mut planner, Command::Continue).await?;
    if resume.detach {
        session.remark("Its tasks run while a worker does: crewlog work");
        let json = json!({ "plan": plan, "status": state_now(session, &plan).await? });
        return session.print_done(&format!("{plan} is resumed"), &json);
    }
    let roster = roster::to_work(session, roster, &[]).await?;
    let run_session = RunSession::new(session, store, plan, Some(since), &resume.run_args, roster, signals).await?;
    run_session.run(resume.sync).await
}

/// Has a plan run in another folder. The agreements to its tasks name their folder, so they are given again.
async fn move_to(
    session: &Session,
    store: &EventStore,
    (plan, tags): (&str, &[String]),
    planner: &mut Runner<Planner>,
    folder: &Path,
) -> Result<(), Failure> {
    let folder = fs::canonicalize(session.folder.join(folder))
        .map_err(|error| Failure::user(format!("{} cannot be used: {error}", folder.display())))?;
    let kept = session.folders(true)?.keep_other(&folder);
    let roster = roster::roster(session, Duration::MAX, &[])?;
    let open = planner.handler().state().tasks.iter().filter(|task| !task.status.is_end());
    let tasks: Vec<_> = open.map(|task| task.plan.clone()).collect();
    let agreed = consent(session, &tasks, &roster, ("", Some(&kept))).await?;
    order(planner, Command::Configure { changes: vec![Setting::Folder(kept)], reason: BY_PERSON.to_owned() }).await?;
    keep(session, store, (plan, tags), (planner.handler().state(), u64::MAX), agreed).await
}

/// `resume` of a task, which only allows it to start; or of one that was parked after too many agents were lost with it.
async fn resume_task(session: &Session, plan: &str, name: &str) -> Result<Code, Failure> {
    let target = Target::find(session, plan, Choice::Changed).await?;
    let task = target.id(session, name)?;
    let mut claim = claim_of(&target.store, &target.plan, task, target.tags.clone());
    claim.catch_up().await?;
    if claim.handler().is_parked() {
        session.person_only("let a parked task be claimed again").await?;
        let command = TaskCommand::Unpark { by: session.person() };
        let cause = request().keeping(command.recorded());
        claim.execute(command, &cause).await?;
        let said = format!("task {} can be claimed again", target.name(task));
        return target.say(session, &said).await;
    }
    let said = format!("task {} is resumed", target.name(task));
    decide(session, target, Command::ResumeTask { task }, &said).await
}
