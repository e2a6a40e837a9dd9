//! The state of each task and of its plan: from events, holders and what a reader knows now. And the property of the
//! inbox: an open plan that cannot advance by itself has an item.

use std::collections::{BTreeMap, BTreeSet};

use crewlog_executors::crew::{Facts, Kind, Need, OpenPlan, needs_you};
use crewlog_mq::{Event as MqEvent, Handler, Position, Recorded, Timestamp, new_event_id};
use crewlog_planner::claim::{self, Claim, Ending, Executor, Holder, TaskCommand, TaskLease};
use crewlog_planner::crew::agents::Agents;
use crewlog_planner::crew::asks::Asks;
use crewlog_planner::crew::conflicts::Conflicts;
use crewlog_planner::crew::leases::Leases;
use crewlog_planner::crew::messages::Messages;
use crewlog_planner::event::{self, Command, Event, FailureClass, PlannerConfig, QuestionId, TaskEvent, Timer};
use crewlog_planner::lifecycle::{Observed, Situation, State, States, Taker, of_task};
use crewlog_planner::plan::{FailurePolicy, NodeKind, Origin, Proposal, SubPlan, TaskId, TaskPlan};
use crewlog_planner::planner::Planner;
use crewlog_planner::view::PlanView;
use proptest::prelude::*;

use super::random::{acts, drafts};
use crate::retries::retries_after;

/// A plan with its tasks' own aggregates, and what a reader knows.
#[derive(Default)]
struct Scene {
    planner: Planner,
    leases: BTreeMap<u64, TaskLease>,
    view: PlanView,
    now: i64,
    dead: BTreeSet<String>,
    /// The assignees that a worker runs tasks for, and those that are agents.
    workers: BTreeSet<String>,
    agents: BTreeSet<String>,
    sub_plan: Option<State>,
    is_past: bool,
}

impl Scene {
    fn append(&mut self, stream: &str, aggregate: &str, event: &impl MqEvent) {
        let position = Position(self.view.at.0 + 1);
        let recorded = Recorded {
            position,
            event_id: new_event_id(),
            stream_id: stream.into(),
            aggregate_id: aggregate.into(),
            sequence: position.0,
            event_type: event.event_type().into(),
            event_version: "1.0".into(),
            data: event.encode().unwrap(),
            metadata: "{}".into(),
            tags: Vec::new(),
            created_at: Timestamp(self.now),
            append_start: position,
        };
        self.view.apply(&recorded).unwrap();
    }

    fn order(&mut self, command: Command) {
        let events: Vec<Event> = self.planner.process(command).unwrap_or_default();
        events.iter().for_each(|event| self.append(event::STREAM, "p", event));
    }

    fn of_task(&mut self, task: u64, command: TaskCommand) {
        let events = self.leases.entry(task).or_default().process(command).unwrap();
        events.iter().for_each(|event| self.append(claim::STREAM, &claim::aggregate_id("p", TaskId(task)), event));
    }

    fn ends(&mut self, task: u64, ending: Ending) {
        let epoch = self.leases.get(&task).map_or(0, |lease| lease.epoch);
        self.of_task(task, TaskCommand::End { epoch, usage: Default::default(), ending });
    }

    fn reports(&mut self, task: u64, event: impl Fn(TaskId, u32) -> Command) {
        let attempt = self.planner.state().task(TaskId(task)).unwrap().attempts;
        self.order(event(TaskId(task), attempt));
    }

    fn step(&mut self, step: &str) {
        let words: Vec<&str> = step.split(' ').collect();
        let n = |word: &str| word.parse::<u64>().unwrap();
        let now = Timestamp(self.now);
        let attempt = |scene: &Self, task| scene.planner.state().task(TaskId(task)).map_or(1, |task| task.attempts);
        let executor =
            |name: &str| Executor { name: name.to_owned(), host: "here".to_owned(), worker: format!("of {name}") };
        let failed = |class| {
            move |node_id, attempt| Command::HandleExecutorEvent {
                task: node_id,
                event: TaskEvent::TaskFailed { attempt, error: "no".into(), class, epoch: 1, run: None },
            }
        };
        match words[..] {
            ["claim", task, who] => {
                let (attempt, executor) = (attempt(self, n(task)), executor(who));
                self.of_task(n(task), TaskCommand::Claim(Claim { attempt, executor, now, ..Claim::default() }));
            }
            ["agent", task, who] => {
                let (attempt, executor) = (attempt(self, n(task)), executor(who));
                self.of_task(n(task), TaskCommand::ClaimForAgent { attempt, executor, now });
            }
            ["lost", task] => {
                let epoch = self.leases[&n(task)].epoch;
                self.of_task(n(task), TaskCommand::FireTimer { epoch, now, is_dead: true });
            }
            ["unpark", task] => self.of_task(n(task), TaskCommand::Unpark { by: "ann".into() }),
            ["withdraw", task] => {
                let attempt = attempt(self, n(task));
                self.of_task(n(task), TaskCommand::Withdraw { attempt });
            }
            ["reported", task] => self.ends(n(task), Ending::Completed { result: String::new(), run: None }),
            ["released", task] => self.ends(n(task), Ending::Released { reason: String::new(), cut_off: false }),
            ["done", task] => self.reports(n(task), |node_id, attempt| Command::HandleExecutorEvent {
                task: node_id,
                event: TaskEvent::TaskCompleted { attempt, result: String::new(), epoch: 1, run: None },
            }),
            ["fails", task] => self.reports(n(task), failed(FailureClass::Task)),
            ["times-out", task] => self.reports(n(task), failed(FailureClass::TimedOut)),
            ["unknown", task] => self.reports(n(task), failed(FailureClass::OutcomeUnknown)),
            ["asks", task] => self.reports(n(task), |node_id, attempt| Command::HandleExecutorEvent {
                task: node_id,
                event: TaskEvent::NeedsClarification { attempt, question: "Which?".into(), default: None, epoch: 1 },
            }),
            ["answer", question, answer] => {
                self.order(Command::Answer { question: QuestionId(n(question)), answer: answer.to_owned() });
            }
            ["pause"] => self.order(Command::Pause { reason: "lunch".into() }),
            ["pause", task] => self.order(Command::PauseTask { task: TaskId(n(task)), reason: "lunch".into() }),
            ["cancel", task] => {
                self.order(Command::Cancel { task: Some(TaskId(n(task))), reason: "no".into() });
            }
            ["cancel"] => self.order(Command::Cancel { task: None, reason: "no".into() }),
            ["retry", task] => self.order(Command::Retry { task: Some(TaskId(n(task))) }),
            ["timers"] => self.order(Command::SetTimers { now }),
            ["later", seconds] => self.now += n(seconds).cast_signed() * 1_000_000,
            ["dies", who] => _ = self.dead.insert(who.to_owned()),
            ["works", who] => _ = self.workers.insert(who.to_owned()),
            ["joins", who] => _ = self.agents.insert(who.to_owned()),
            ["below", state] => self.sub_plan = state.parse().ok(),
            ["past"] => self.is_past = true,
            _ => panic!("{step}"),
        }
    }

    /// The knowledge of a reader at the head, or at a past position.
    fn observed<T>(&self, judge: impl FnOnce(&Observed<'_>) -> T) -> T {
        let now = Timestamp(self.now);
        let is_live =
            |holder: &Holder| self.is_past || !(self.dead.contains(&holder.executor.name) || holder.has_expired(now));
        let taker = |task: &TaskPlan| match task.assignee.as_deref() {
            Some(name) if self.workers.contains(name) => Taker::Worker,
            Some(name) if self.agents.contains(name) => Taker::Agent,
            Some(_) | None => Taker::Nobody,
        };
        let now = (!self.is_past).then_some(now);
        judge(&Observed { now, is_live: &is_live, taker: &taker, sub_plan: &|_| self.sub_plan, lease: &|_, _| None })
    }

    fn states(&self) -> States {
        self.observed(|observed| States::of("p", &self.view, observed))
    }

    /// `running: done, running, waiting(retry until 5)`
    fn in_words(&self) -> String {
        let states = self.states();
        // One at a time they are the same.
        self.observed(|observed| {
            let one = |task| (&self.view, of_task("p", &self.view, task, observed));
            let tasks = self.view.state().tasks.iter().map(|task| one(task).1);
            assert_eq!(
                tasks.collect::<Vec<_>>(),
                states.tasks.iter().map(|(_, task)| task.clone()).collect::<Vec<_>>()
            );
        });
        let words = |Situation { state, wait }: &Situation| match wait {
            None => state.as_str().to_owned(),
            Some(wait) => {
                let json = serde_json::to_value(wait).unwrap();
                let until = json["until"].as_i64().map(|until| format!(" until {}", until / 1_000_000));
                let kind = json["for"].as_str().unwrap().to_owned();
                format!("{}({kind}{})", state.as_str(), until.unwrap_or_default())
            }
        };
        let tasks = states.tasks.iter().map(|(_, task)| words(task)).collect::<Vec<_>>();
        format!("{}: {}", words(&states.plan), tasks.join(", "))
    }

    /// The items of the plan's person.
    fn needs(&self) -> Vec<Need> {
        let (states, since) = (self.states(), BTreeMap::new());
        let plans = [OpenPlan { plan: "p", view: &self.view, states: &states, since: &since }];
        needs_you(&Facts {
            project: "",
            open: &BTreeMap::new(),
            now: Timestamp(self.now),
            plans: if self.view.state().phase.is_ended() { &[] } else { &plans },
            agents: &Agents::default(),
            asks: &Asks::default(),
            messages: &Messages::default(),
            leases: &Leases::default(),
            roster: None,
            conflicts: &Conflicts::default(),
        })
    }

    /// `question p/q1: answer p/q1 "..."`, one for each item, with its first action.
    fn inbox(&self) -> Vec<String> {
        let kind = |need: &Need| serde_json::to_value(need.kind).unwrap().as_str().unwrap().to_owned();
        self.needs().iter().map(|need| format!("{}: {}", kind(need), need.commands()[0])).collect()
    }
}

const COMMANDS: &str = "1. Run `a`\n2. Run `b`\n";

fn plan(text: &str, set: impl Fn(&mut PlannerConfig)) -> Scene {
    let mut config = PlannerConfig::default();
    set(&mut config);
    let mut scene = Scene { now: 1_000_000, ..Scene::default() };
    let (user_input, parallel) = (text.to_owned(), text.starts_with('-'));
    scene.order(Command::of_text(user_input, config, parallel).unwrap());
    scene
}

fn check(text: &str, set: impl Fn(&mut PlannerConfig), steps: &str, states: &str, inbox: &[&str]) {
    let mut scene = plan(text, set);
    steps.split(", ").filter(|step| !step.is_empty()).for_each(|step| scene.step(step));
    assert_eq!(scene.in_words(), states, "{text:?} {steps}");
    assert_eq!(scene.inbox(), inbox, "{text:?} {steps}");
}

const NOTHING: [&str; 0] = [];
const NOBODY_RUNS_IT: [&str; 1] = ["ready: resume p"];
const ITS_RUN_DIED: [&str; 1] = ["interrupted: resume p"];

#[test]
fn a_task_runs_only_with_a_live_holder() {
    let check = |steps: &str, states: &str, inbox: &[&str]| check(COMMANDS, |_| {}, steps, states, inbox);
    check("", "ready: ready, planned", &NOBODY_RUNS_IT);
    check("claim 1 shell", "running: running, planned", &NOTHING);
    check("claim 1 shell, dies shell", "interrupted: interrupted, planned", &ITS_RUN_DIED);
    check("claim 1 shell, dies shell, past", "running: running, planned", &NOTHING);
    let mut both = plan("- Runs them:\n  - Run `a`\n  - Run `b`\n", |config| config.parallelism = 2);
    let names = both.view.state().tasks.iter().map(|task| task.plan.name()).collect::<Vec<_>>().join(", ");
    for (step, tasks, again) in [("1", "task", "it"), ("2", "tasks", "them")] {
        both.step(&format!("claim {step} shell{step}"));
        both.step(&format!("dies shell{step}"));
        let names = if tasks == "task" { names.split(", ").next().unwrap() } else { &names };
        let died = both.needs().into_iter().find(|need| need.kind == Kind::Interrupted).unwrap();
        assert_eq!(died.text, format!("its run ended during {tasks} {names}; resuming runs {again} again"));
    }
    check("claim 1 shell, later 179", "running: running, planned", &NOTHING);
    check("claim 1 shell, later 180", "interrupted: interrupted, planned", &ITS_RUN_DIED);
    check("claim 1 shell, later 180, past", "running: running, planned", &NOTHING);
    check("claim 1 shell, lost 1", "interrupted: interrupted, planned", &ITS_RUN_DIED);
    check("claim 1 shell, released 1", "ready: ready, planned", &NOBODY_RUNS_IT);
    check("claim 1 shell, reported 1", "running: running, planned", &NOTHING);
    check("claim 1 shell, reported 1, dies shell", "interrupted: interrupted, planned", &ITS_RUN_DIED);
    check("claim 1 shell, reported 1, done 1", "ready: done, ready", &NOBODY_RUNS_IT);
    check("claim 1 shell, reported 1, done 1, claim 2 shell", "running: done, running", &NOTHING);
    check("done 1, done 2", "done: done, done", &NOTHING);
}

#[test]
fn a_failure_is_failed_whatever_follows() {
    use FailurePolicy::{Ask, Continue, SkipDependants, Stop};
    let check = |policy, steps: &str, states: &str, inbox: &[&str]| {
        check(
            "1. Run `a`\n2. Run `b`\n3. Run `c` (after 1)\n",
            |config| config.on_failure = policy,
            steps,
            states,
            inbox,
        );
    };
    check(SkipDependants, "fails 1", "failed: failed, skipped, skipped", &NOTHING);
    check(Continue, "fails 1", "ready: failed, ready, ready", &NOBODY_RUNS_IT);
    check(SkipDependants, "cancel", "cancelled: cancelled, cancelled, cancelled", &NOTHING);
    let ask = "failure: answer p/q1 retry";
    check(Ask, "fails 1", "waiting_for_you(answer): waiting_for_you(answer), planned, planned", &[ask]);
    check(Ask, "fails 1, answer 1 retry", "ready: ready, planned, planned", &NOBODY_RUNS_IT);
    check(SkipDependants, "unknown 1", "waiting_for_you(answer): waiting_for_you(answer), planned, planned", &[ask]);
    check(Stop, "fails 1", "failed: failed, skipped, skipped", &NOTHING);
}

#[test]
fn a_stopped_plan_waits_for_its_person_once_nothing_runs() {
    let check = |steps: &str, states: &str, inbox: &[&str]| {
        check(
            "- Run `a`\n- Run `b`\n",
            |config| (config.on_failure, config.parallelism) = (FailurePolicy::Stop, 2),
            steps,
            states,
            inbox,
        );
    };
    let retry = "stopped: retry p/2";
    check("claim 1 shell, fails 2", "running: running, failed", &[retry]);
    check("claim 1 shell, dies shell, fails 2", "interrupted: interrupted, failed", &[retry, ITS_RUN_DIED[0]]);
    check("fails 2", "waiting_for_you(stopped): waiting_for_you(stopped), failed", &[retry]);
    // An agent that claimed an earlier attempt does not hold up the end of the plan.
    let steps = "agent 1 ann, cancel 1, retry 1, fails 2";
    check(steps, "waiting_for_you(stopped): waiting_for_you(stopped), failed", &[retry]);
    let mut scene =
        plan("- Run `a`\n- Run `b`\n", |config| (config.on_failure, config.parallelism) = (FailurePolicy::Stop, 2));
    steps.split(", ").chain(["withdraw 1"]).for_each(|step| scene.step(step));
    assert!(scene.view.is_reported(TaskId(1)), "it is withdrawn");
}

#[test]
fn a_retry_waits_until_it_is_due_and_then_for_somebody_who_runs_it() {
    let check = |steps: &str, states: &str, inbox: &[&str]| {
        let set = |config: &mut PlannerConfig| config.retry = retries_after(60_000);
        check("1. Run `a` (retry 2)\n2. Run `b`\n", set, steps, states, inbox);
    };
    check("fails 1, past", "waiting(retry): waiting(retry), planned", &NOTHING);
    check("fails 1", "ready: waiting(retry), planned", &NOBODY_RUNS_IT);
    let waits = "waiting(retry until 49): waiting(retry until 49), planned";
    check("fails 1, timers", waits, &NOTHING);
    check("fails 1, timers, later 60", "ready: waiting(retry until 49), planned", &NOBODY_RUNS_IT);
    check("fails 1, timers, later 60, past", waits, &NOTHING);
    check("fails 1, timers, pause 1", "waiting_for_you: paused, planned", &["paused: resume p/1"]);
    check("fails 1, timers, pause", "paused: paused, planned", &["paused: resume p"]);
}

#[test]
fn paused_tasks_and_plans_wait_for_their_person() {
    let check = |steps: &str, states: &str, inbox: &[&str]| check(COMMANDS, |_| {}, steps, states, inbox);
    check("pause 1", "waiting_for_you: paused, planned", &["paused: resume p/1"]);
    check("pause 2", "ready: ready, paused", &["ready: resume p", "paused: resume p/2"]);
    check("pause 2, done 1", "waiting_for_you: done, paused", &["paused: resume p/2"]);
    check("pause", "paused: paused, planned", &["paused: resume p"]);
    check("claim 1 shell, pause", "paused: running, planned", &["paused: resume p"]);
    check("claim 1 shell, dies shell, pause", "paused: interrupted, planned", &["paused: resume p"]);
}

#[test]
fn a_step_without_a_taker_is_the_persons() {
    let check = |text: &str, steps: &str, states: &str, inbox: &[&str]| check(text, |_| {}, steps, states, inbox);
    let own = "waiting_for_you(work): waiting_for_you(work), planned";
    let step = ["step: task done p/1 \"...\""];
    check("1. Paint the door\n2. Run `b`\n", "", own, &step);
    check("1. Paint the door @bob\n2. Run `b`\n", "joins ann, works claude", own, &step);
    check("1. Paint the door @bob\n2. Run `b`\n", "works bob", "ready: ready, planned", &NOBODY_RUNS_IT);
    check("1. Paint the door @bob\n2. Run `b`\n", "joins bob", "ready(agent): ready(agent), planned", &NOTHING);
    check("1. Paint the door\n2. Run `b`\n", "agent 1 ann", "running: running, planned", &NOTHING);
    let lost = ["interrupted: cancel p/1"];
    check("1. Paint the door\n2. Run `b`\n", "agent 1 ann, dies ann", "interrupted: interrupted, planned", &lost);
    check("1. Paint the door\n2. Run `b`\n", "agent 1 ann, lost 1", own, &step);
    let lost = "agent 1 ann, lost 1, agent 1 bob, lost 1, agent 1 cat, lost 1";
    let parked = "waiting_for_you(unpark): waiting_for_you(unpark), planned";
    check("1. Paint the door\n2. Run `b`\n", lost, parked, &["parked: resume p/1"]);
    check("1. Paint the door\n2. Run `b`\n", &format!("{lost}, unpark 1"), own, &step);
}

#[test]
fn questions_wait_for_their_person_or_their_default() {
    let check = |text: &str, steps: &str, states: &str, inbox: &[&str]| check(text, |_| {}, steps, states, inbox);
    let (asked, answer) =
        ("waiting_for_you(answer): waiting_for_you(answer), planned", ["question: answer p/q1 \"...\""]);
    check("1. Which colour?\n2. Run `b`\n", "", asked, &answer);
    check("1. Which colour?\n2. Run `b`\n", "answer 1 red", "ready: done, ready", &NOBODY_RUNS_IT);
    let text = "1. Which colour? (default: red after 1h)\n2. Run `b`\n";
    check(text, "", "waiting_for_you(default): waiting_for_you(default), planned", &answer);
    let until = "waiting_for_you(default until 3601): waiting_for_you(default until 3601), planned";
    check(text, "timers", until, &answer);
    check(COMMANDS, "claim 1 shell, asks 1", asked, &answer);
    check(COMMANDS, "asks 1, answer 1 red", "ready: ready, planned", &NOBODY_RUNS_IT);
    check(
        "If it rains, run `a`.\n",
        "",
        "waiting_for_you(answer): waiting_for_you(answer)",
        &["question: answer p/q1 yes"],
    );
    check("If it rains, run `a`.\n", "answer 1 no", "done: skipped", &NOTHING);
}

#[test]
fn limits_make_tasks_wait() {
    let one = |config: &mut PlannerConfig| config.parallelism = 1;
    check("- Run `a`\n- Run `b`\n", one, "claim 1 shell", "running: running, waiting(place)", &NOTHING);
    check("- Run `a`\n- Run `b`\n", one, "", "ready: ready, waiting(place)", &NOBODY_RUNS_IT);
    let budget = |config: &mut PlannerConfig| {
        (config.parallelism, config.budget.duration_ms) = (2, Some(1_000));
    };
    check("- Run `a`\n- Run `b`\n", budget, "claim 1 shell", "running: running, waiting(budget)", &NOTHING);
    let none = |config: &mut PlannerConfig| config.budget.duration_ms = Some(0);
    check("1. Run `a`\n", none, "", "paused: paused", &["paused: plan set p budget.time=..."]);
}

#[test]
fn a_standing_plan_waits_for_agents_and_for_more_tasks() {
    let check = |steps: &str, states: &str, inbox: &[&str]| {
        check("- Paint the door\n- Mow the lawn (after 1)\n", |config| config.standing = true, steps, states, inbox);
    };
    check("", "ready(agent): ready(agent), planned", &NOTHING);
    check("agent 1 ann", "running: running, planned", &NOTHING);
    check("agent 1 ann, dies ann", "interrupted: interrupted, planned", &NOTHING);
    check("agent 1 ann, lost 1", "ready(agent): ready(agent), planned", &NOTHING);
    check("fails 1", "waiting(tasks): failed, skipped", &NOTHING);
    check("done 1, done 2", "waiting(tasks): done, done", &NOTHING);
    check("pause 1", "waiting_for_you: paused, planned", &["paused: resume p/1"]);
}

#[test]
fn a_task_with_a_sub_plan_has_the_state_of_that_plan() {
    let sub_plan = Some(SubPlan { text: "- Run `a`\n".into(), agent: None, request: None });
    let task = TaskPlan { sub_plan, ..TaskPlan::new(TaskId(1), NodeKind::Processing, "Weed") };
    let check = |steps: &str, expected: &str| {
        let proposal = Proposal {
            tasks: vec![task.clone()],
            title: None,
            source: String::new(),
            context: Vec::new(),
            origin: Origin::default(),
        };
        let mut scene = Scene { now: 1_000_000, ..Scene::default() };
        let config = PlannerConfig::default();
        scene.order(Command::Initialize { proposal: Box::new(proposal), attachments: Vec::new(), config });
        steps.split(", ").filter(|step| !step.is_empty()).for_each(|step| scene.step(step));
        assert_eq!(scene.in_words(), format!("{expected}: {expected}"), "{steps}");
    };
    check("", "ready");
    check("claim 1 subplans", "running");
    check("claim 1 subplans, below ready", "running");
    check("claim 1 subplans, dies subplans, below ready", "interrupted");
    check("claim 1 subplans, below interrupted", "interrupted");
    check("claim 1 subplans, below waiting_for_you", "waiting_for_you(sub_plan)");
    check("claim 1 subplans, below paused", "waiting_for_you(sub_plan)");
    check("claim 1 subplans, below waiting", "waiting(sub_plan)");
    check("claim 1 subplans, released 1, below waiting_for_you", "waiting_for_you(sub_plan)");
    check("claim 1 subplans, dies subplans, below done", "interrupted");
}

proptest! {
    /// Holders of random tasks live, die or are agents; the oracle knows nothing of states.
    #[test]
    fn an_open_plan_that_cannot_advance_by_itself_is_in_the_inbox(
        draft in drafts(),
        acts in prop::collection::vec((acts(), any::<u8>()), 0..25),
        later in 0..4_000_i64,
    ) {
        let mut scene = Scene { now: 1_000_000, ..Scene::default() };
        scene.dead.insert("dead".to_owned());
        scene.order(draft.initialize());
        for (act, pick) in &acts {
            let command = act.command(&draft, scene.planner.state());
            scene.order(command);
            let free = scene.view.free();
            let Some(task) = free.get(usize::from(pick / 8)).filter(|_| pick % 8 < 3) else { continue };
            let attempt = scene.planner.state().task(*task).unwrap().attempts;
            let who = ["live", "dead", "live"][usize::from(pick % 8)];
            let executor = Executor { name: who.into(), host: "here".into(), worker: who.into() };
            let now = Timestamp(scene.now);
            scene.leases.remove(&task.0);
            scene.of_task(task.0, match pick % 8 {
                2 => TaskCommand::ClaimForAgent { attempt, executor, now },
                _ => TaskCommand::Claim(Claim { attempt, executor, now, ..Claim::default() }),
            });
        }
        scene.now += later * 1_000;
        let (state, needs) = (scene.view.state(), scene.needs());
        let runs = state.tasks.iter().any(|task| scene.view.holder(task.plan.id).is_some_and(|it| it.executor.name == "live"));
        let retries = state.tasks.iter().filter_map(|task| state.due(Timer::Retry(task.plan.id)));
        let goes_on = runs
            || state.phase.is_ended()
            || { retries }.any(|due| due > Timestamp(scene.now))
            || state.is_paused_from_parent();
        prop_assert!(goes_on || !needs.is_empty(), "{}", scene.in_words());
        let states = scene.states();
        let is_unattended = needs.iter().any(|need| matches!(need.kind, Kind::Ready | Kind::Interrupted));
        prop_assert!(states.plan.state != State::Running || !is_unattended, "{needs:?}");
        prop_assert!(needs.iter().all(|need| !need.actions.is_empty()));
    }
}
