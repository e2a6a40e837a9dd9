//! The crew's host, with each process as a separate store and liveness lock on one log: who gets a lease or a task, and
//! its fate when an agent resumes, leaves, falls silent or dies.

use std::sync::Arc;

use crewlog_executors::claiming::claim_of;
use crewlog_executors::crew::{Caller, Claimed, Crew, Join, Refusal};
use crewlog_mq::{Append, Cause, CellChange};
use crewlog_planner::claim::{LOST_MAX, TaskCommand, TaskError, TaskProgress};
use crewlog_planner::crew::CrewError;
use crewlog_planner::crew::agents::{Activity, Health, LeaveOutcome, Liveness, Report, SessionState, Wish};
use crewlog_planner::crew::asks::{Ask, Wanted};
use crewlog_planner::crew::leases::{By, TTL, Turn};
use crewlog_planner::event::{Command, PlannerConfig, plan_tag};
use crewlog_planner::lifecycle::State;
use crewlog_planner::plan::TaskId;
use futures::future::join_all;

use super::team::{RESERVE, Team, claimed, done, join, joined, leased, n_of, recorded, request, task};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_32_overlapping_exclusive_requests_wins() {
    let team = Team::new();
    let (mut processes, mut requests) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        processes.push(Arc::new(team.process().await));
    }
    for n in 0..32 {
        let crew = Arc::clone(&processes[n % 4]);
        let caller = joined(&crew, &format!("a{n}")).await;
        let path = ["src/**", "src/a.rs", "src/{a,b}.rs", "src/*.rs"][n / 4 % 4];
        requests
            .push(tokio::spawn(async move { crew.reserve(&caller, request(&caller, &[path]), Turn::Behind).await }));
    }
    let answers: Vec<_> = join_all(requests).await.into_iter().map(Result::unwrap).collect();
    let winners: Vec<_> = answers.iter().flatten().flatten().map(|granted| granted.leases[0].clone()).collect();
    let [(number, lease)] = &winners[..] else { panic!("{winners:?}") };
    let denied: Vec<_> = answers
        .iter()
        .filter_map(|answer| match answer {
            Err(Refusal::Crew(CrewError::Held(blocked))) => Some(&blocked[0]),
            _granted => None,
        })
        .collect();
    assert_eq!(denied.len(), 31);
    assert!(denied.iter().all(|blocked| blocked.by == By::Lease(*number) && blocked.holder == lease.holder));
    assert_eq!(n_of(&processes[0], "LeasesGranted").await, 1);
    let granted = recorded(&processes[0]).await.into_iter().find(|recorded| recorded.event_type == "LeasesGranted");
    assert_eq!(lease.token, granted.unwrap().position, "the token is the position of the grant");
}

#[tokio::test]
async fn tasks_made_at_once_have_numbers_of_their_own_and_any_number_is_taken() {
    let team = Team::new();
    let (crew, other) = (team.process().await, team.process().await);
    let (ann, bob) = (joined(&crew, "ann").await, joined(&other, "bob").await);
    crew.create_tasks(&ann, vec![task("first", &[])]).await.unwrap();
    let mut made = vec!["backlog/1".to_owned()];
    for n in 0..5 {
        let (one, two) = (format!("ann's {n}"), format!("bob's {n}"));
        let (one, two) = tokio::join!(
            crew.create_tasks(&ann, vec![task(&one, &[])]),
            other.create_tasks(&bob, vec![task(&two, &[])])
        );
        made.extend(one.unwrap().into_iter().chain(two.unwrap()).map(|(_, id)| id));
    }
    let tasks = crew.tasks(None).await.unwrap();
    let ids: std::collections::BTreeSet<_> = tasks.iter().map(|task| task.id.clone()).collect();
    assert_eq!((ids, tasks.len()), (made.into_iter().collect(), 11));
    for _ in 0..11 {
        let (taken, _) = crew.next_task(&ann, None).await.unwrap();
        assert!(taken.is_some_and(|claimed| !claimed.is_own));
    }
    assert!(crew.tasks(None).await.unwrap().iter().all(|task| task.state == State::Running));
}

#[tokio::test]
async fn a_later_lease_has_a_higher_token_in_every_process() {
    let team = Team::new();
    let (one, other) = (team.process().await, team.process().await);
    let (ann, bob) = (joined(&one, "ann").await, joined(&other, "bob").await);
    let first = leased(&one, &ann, &["a"]).await[0];
    let token = one.leases().await.unwrap().get(first).unwrap().token;
    one.release(&ann, crewlog_planner::crew::leases::Which::All).await.unwrap();
    let second = leased(&other, &bob, &["a"]).await[0];
    for crew in [&one, &other] {
        assert!(crew.leases().await.unwrap().get(second).unwrap().token > token);
    }
}

#[tokio::test]
async fn a_task_and_the_leases_on_its_files_are_one_append() {
    let team = Team::new();
    let crew = team.process().await;
    let (ann, bob) = (joined(&crew, "ann").await, joined(&crew, "bob").await);
    crew.create_tasks(&ann, vec![task("edit", &["src/**"])]).await.unwrap();
    leased(&crew, &ann, &["src/a.rs"]).await;
    let refused = crew.claim(&bob, "backlog/1", Some(RESERVE)).await.unwrap_err();
    let Refusal::Crew(CrewError::Held(blocked)) = refused else { panic!("{refused}") };
    assert_eq!(blocked[0].holder.agent, "ann");
    assert_eq!((n_of(&crew, "TaskClaimed").await, n_of(&crew, "LeasesGranted").await), (0, 1), "neither");

    crew.release(&ann, crewlog_planner::crew::leases::Which::All).await.unwrap();
    let (taken, passed) = crew.next_task(&bob, Some(RESERVE)).await.unwrap();
    assert!(taken.is_some_and(|claimed| !claimed.is_own && claimed.leases.len() == 1));
    assert!(passed.is_empty());
    let of = |event_type: &str| {
        let event_type = event_type.to_owned();
        let crew = &crew;
        async move { recorded(crew).await.into_iter().rfind(|event| event.event_type == event_type).unwrap().append_start }
    };
    assert_eq!(of("TaskClaimed").await, of("LeasesGranted").await, "both at once");

    let released = crew.update_task(&bob, "backlog/1", TaskProgress::default(), done()).await.unwrap();
    assert_eq!(released, [2], "its end releases the leases of the task");
    assert_eq!(crew.tasks(None).await.unwrap()[0].state, State::Done);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_loser_of_a_race_for_a_task_leases_nothing() {
    let team = Team::new();
    let (mut racers, mut processes) = (Vec::new(), Vec::new());
    for n in 0..8 {
        let crew = Arc::new(team.process().await);
        let mut join = join(&crew, &format!("a{n}"));
        // In separate worktrees their leases block nobody.
        join.profile.worktree = format!("host:tree{n}");
        let caller = crew.join(join).await.unwrap().caller;
        if n == 0 {
            crew.create_tasks(&caller, vec![task("edit", &["src/a.rs"])]).await.unwrap();
        }
        processes.push(Arc::clone(&crew));
        racers.push(tokio::spawn(async move { crew.claim(&caller, "backlog/1", Some(RESERVE)).await }));
    }
    let taken: Vec<_> = join_all(racers).await.into_iter().map(Result::unwrap).collect();
    let n_won = taken.iter().filter(|taken| taken.is_ok()).count();
    let n_held = taken.iter().filter(|taken| matches!(taken, Err(Refusal::Task(TaskError::Held { .. })))).count();
    assert_eq!((n_won, n_held), (1, 7), "{taken:?}");
    let crew = &processes[0];
    assert_eq!((n_of(crew, "TaskClaimed").await, n_of(crew, "LeasesGranted").await), (1, 1));
}

#[tokio::test]
async fn a_call_keeps_what_an_agent_holds_and_adds_nothing_to_the_log() {
    let team = Team::new();
    let crew = team.process().await;
    let ann = joined(&crew, "ann").await;
    crew.create_tasks(&ann, vec![task("edit", &[])]).await.unwrap();
    leased(&crew, &ann, &["a"]).await;
    claimed(&crew, &ann).await.unwrap();
    let head = crew.store().head().await.unwrap();
    for _ in 0..70 {
        team.pass(60);
        for _ in 0..5 {
            // A process that has read nothing yet, like that of a hook.
            let other = team.process().await;
            other.present(&other.caller("ann").await.unwrap()).await.unwrap();
        }
    }
    let now = crew.store().now();
    let leases = crew.leases().await.unwrap();
    assert!(leases.of_agent("ann").all(|(_, lease)| lease.until == now.plus(TTL)));
    drop(leases);
    crew.fire_timers().await.unwrap();
    assert_eq!(crew.store().head().await.unwrap(), head);
    assert_eq!(crew.tasks_of("ann").await.unwrap(), ["backlog/1"], "its claim outlasts an hour of calls");
}

/// An agent over HTTP, say: no process of it is known.
async fn unproven(crew: &Crew, name: &str) -> Caller {
    let mut join = join(crew, name);
    join.profile.process = None;
    crew.join(join).await.unwrap().caller
}

/// Each conflict makes a process read the state and decide again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_an_agent_holds_by_its_calls_outlasts_the_conflicts_of_others() {
    let team = Team::new();
    let crew = team.process().await;
    let ann = unproven(&crew, "ann").await;
    leased(&crew, &ann, &["a"]).await;
    let mut others = Vec::new();
    for n in 0..8 {
        let crew = Arc::new(team.process().await);
        others.push((joined(&crew, &format!("other-{n}")).await, crew));
    }
    for n_hours in 0..4 {
        for _ in 0..60 {
            team.pass(61);
            crew.present(&ann).await.unwrap();
        }
        // All of them first: the timers of one would find the others stuck.
        for (caller, crew) in &others {
            crew.present(caller).await.unwrap();
        }
        let requests = others.iter().enumerate().map(|(n, (caller, crew))| {
            let (caller, crew) = (caller.clone(), crew.clone());
            tokio::spawn(async move {
                let path = format!("{n_hours}-{n}");
                crew.reserve(&caller, request(&caller, &[&path]), Turn::Behind).await.unwrap();
                crew.report(&caller, Report { note: Some(path), ..Report::default() }).await.unwrap();
                crew.fire_timers().await.unwrap();
            })
        });
        join_all(requests.collect::<Vec<_>>()).await.into_iter().for_each(Result::unwrap);
        assert_eq!(team.process().await.leases().await.unwrap().of_agent("ann").count(), 1, "after {n_hours} hours");
        let agents = crew.agents().await.unwrap().clone();
        assert_eq!(agents.get("ann").unwrap().liveness, Liveness::Alive, "after {n_hours} hours");
    }
    assert_eq!((n_of(&crew, "AgentStuck").await, n_of(&crew, "AgentLost").await), (0, 0));
}

#[tokio::test]
async fn a_session_that_is_silent_in_its_turn_is_slow_then_stalled() {
    let team = Team::new();
    let (crew, other) = (team.process().await, team.process().await);
    let ann = unproven(&crew, "ann").await;
    let agent = crew.agents().await.unwrap().get("ann").unwrap().clone();
    let turn = crew.store().now();
    let state = SessionState { activity: Some(Activity::Working), turn, ..SessionState::default() };
    crew.observe("ann", &agent, state).await.unwrap();
    let steps = [(590, Health::Healthy, 0), (11, Health::Slow, 1), (1_200, Health::Stalled, 2)];
    for (seconds, health, n_changes) in steps {
        team.pass(seconds);
        for process in [&crew, &other, &crew] {
            process.fire_timers().await.unwrap();
        }
        assert_eq!(crew.agents().await.unwrap().get("ann").unwrap().health().0, health);
        assert_eq!(n_of(&crew, "AgentHealthChanged").await, n_changes, "{health:?}");
    }
    crew.present(&ann).await.unwrap();
    other.fire_timers().await.unwrap();
    assert_eq!(crew.agents().await.unwrap().get("ann").unwrap().health().0, Health::Healthy);
}

#[tokio::test]
async fn an_agent_of_a_log_without_signs_of_life_counts_as_seen_when_its_timers_begin() {
    let team = Team::new();
    let crew = team.process().await;
    let ann = unproven(&crew, "ann").await;
    leased(&crew, &ann, &["a"]).await;
    // As a restored log has them: none.
    let space = format!("seen:{}", crew.project());
    crew.store().append(Append::default().cell(CellChange::delete(&space, "ann"))).await.unwrap();
    team.pass(100_000);
    for (secs, liveness, n_leases) in
        [(0, Liveness::Alive, 1), (1_799, Liveness::Alive, 1), (1, Liveness::Stuck, 1), (1_801, Liveness::Lost, 0)]
    {
        team.pass(secs);
        let restored = team.process().await;
        restored.fire_timers().await.unwrap();
        let agents = restored.agents().await.unwrap().clone();
        assert_eq!(agents.get("ann").unwrap().liveness, liveness, "after {secs} s more");
        assert_eq!(restored.leases().await.unwrap().iter().count(), n_leases, "after {secs} s more");
    }
}

#[tokio::test]
async fn a_silent_agent_is_stuck_then_lost_and_recovers() {
    let team = Team::new();
    let crew = team.process().await;
    let ann = unproven(&crew, "ann").await;
    crew.create_tasks(&ann, vec![task("edit", &[])]).await.unwrap();
    claimed(&crew, &ann).await.unwrap();
    leased(&crew, &ann, &["a"]).await;
    team.pass(61);
    crew.present(&ann).await.unwrap();
    let last = crew.store().now();
    for (secs, liveness) in
        [(1_799, Liveness::Alive), (1, Liveness::Stuck), (1_799, Liveness::Stuck), (1, Liveness::Lost)]
    {
        team.pass(secs);
        crew.fire_timers().await.unwrap();
        assert_eq!(crew.agents().await.unwrap().get("ann").unwrap().liveness, liveness, "after {secs} s more");
    }
    assert_eq!(crew.tasks(None).await.unwrap()[0].state, State::Ready, "its claim ran out");
    assert_eq!(crew.leases().await.unwrap().iter().count(), 1, "a lease is live up to its last moment");
    team.pass(1);
    crew.fire_timers().await.unwrap();
    assert_eq!(crew.leases().await.unwrap().iter().count(), 0);
    crew.fire_timers().await.unwrap();
    let agents = team.process().await.agents().await.unwrap().clone();
    assert_eq!(agents.get("ann").unwrap().seen(), last, "its last call is known after it was lost");
    crew.present(&ann).await.unwrap();
    assert_eq!(crew.agents().await.unwrap().get("ann").unwrap().liveness, Liveness::Alive);
    assert_eq!(n_of(&crew, "AgentRecovered").await, 1);
    let n_events = recorded(&crew).await.len();
    crew.fire_timers().await.unwrap();
    assert_eq!(recorded(&crew).await.len(), n_events, "a timer without work writes nothing");
}

/// The agent, the one that joins from its program later, whether the process is seen here, and its fate.
#[tokio::test]
async fn an_agent_whose_program_runs_is_stuck_and_keeps_its_task_however_long_it_is_silent() {
    for (name, parent, newer, is_seen, expected) in [
        ("ann", None, None, true, Liveness::Stuck),
        ("ann", None, Some("bob"), true, Liveness::Lost),
        ("ann/sub", Some("ann"), None, true, Liveness::Lost),
        ("ann", None, None, false, Liveness::Lost),
    ] {
        let team = Team::new();
        let (program, elsewhere) = (team.process().await, Team::new());
        if let Some(above) = parent {
            joined(&program, above).await;
        }
        let mut own = join(&program, name);
        own.wish.parent = parent.map(str::to_owned);
        let ann = program.join(own).await.unwrap().caller;
        program.create_tasks(&ann, vec![task("edit", &[])]).await.unwrap();
        claimed(&program, &ann).await.unwrap();
        if let Some(newer) = newer {
            joined(&program, newer).await;
        }
        // A machine slept meanwhile: no timer fired.
        team.pass(7_200);
        let host = if is_seen { team.process().await } else { team.process_seeing(&elsewhere).await };
        host.fire_timers().await.unwrap();
        let (agents, case) = (host.agents().await.unwrap().clone(), (name, newer, is_seen));
        assert_eq!(agents.get(name).unwrap().liveness, expected, "{case:?}");
        let is_kept = expected == Liveness::Stuck;
        let state = if is_kept { State::Running } else { State::Ready };
        assert_eq!(host.tasks(None).await.unwrap()[0].state, state, "{case:?}");
        assert_eq!(claimed(&host, &joined(&host, "cat").await).await.is_err(), is_kept, "{case:?}");
        let n_events = recorded(&host).await.len();
        host.fire_timers().await.unwrap();
        assert_eq!(recorded(&host).await.len(), n_events, "{case:?}: a timer without work writes nothing");
    }
}

#[tokio::test]
async fn a_resumed_session_goes_on_and_a_superseded_one_is_refused() {
    let team = Team::new();
    let (crew, other) = (team.process().await, team.process().await);
    let of_program = |crew: &Crew, session: &str, program: &str| {
        let mut join = Join { session: session.to_owned(), ..join(crew, "ann") };
        join.profile.program_process = Some(program.to_owned());
        join
    };
    let old = crew.join(of_program(&crew, "one", "process:h:1:1:1")).await.unwrap().caller;
    let again = crew.join(of_program(&crew, "one", "process:h:1:1:1")).await.unwrap();
    assert!(again.is_resumed && again.caller == old);
    let refused = other.join(of_program(&other, "another", "process:h:1:2:1")).await.unwrap_err();
    assert!(matches!(refused, Refusal::Crew(CrewError::Taken(_))), "{refused}");
    let newer = other.join(of_program(&other, "another", "process:h:1:1:1")).await.unwrap();
    assert!(!newer.is_resumed && newer.caller.epoch > old.epoch);
    let refused = crew.reserve(&old, request(&old, &["a"]), Turn::Behind).await.unwrap_err();
    assert!(matches!(refused, Refusal::Crew(CrewError::Superseded(_))), "{refused}");
    let refused = crew.claim(&old, "backlog/1", None).await.unwrap_err();
    assert!(matches!(refused, Refusal::Crew(CrewError::Superseded(_))), "{refused}");
    other.present(&newer.caller).await.unwrap();
}

#[tokio::test]
async fn a_subagent_may_share_the_session_of_its_parent() {
    let team = Team::new();
    let crew = team.process().await;
    let ann = joined(&crew, "ann").await;
    let below = Join { wish: Wish::below("ann"), ..join(&crew, "ann") };
    let sub = crew.join(below.clone()).await.unwrap().caller;
    assert_eq!(sub.agent, "ann/claudecode-1");
    let again = crew.join(below).await.unwrap();
    assert_eq!((again.caller.agent.as_str(), again.is_resumed), ("ann/claudecode-1", true));
    let parent = crew.join(join(&crew, "ann")).await.unwrap();
    assert_eq!(parent.caller, ann, "a name that is given counts");
    let named = Join { wish: Wish { parent: Some("ann".into()), ..Wish::of("scout") }, ..join(&crew, "ann") };
    assert_eq!(crew.join(named).await.unwrap().caller.agent, "ann/scout");
    leased(&crew, &ann, &["src"]).await;
    leased(&crew, &sub, &["src/a.rs"]).await;
}

#[tokio::test]
async fn an_agent_that_leaves_takes_its_subagents_and_keeps_nothing() {
    let team = Team::new();
    let crew = team.process().await;
    let (ann, bob) = (joined(&crew, "ann").await, joined(&crew, "bob").await);
    let sub =
        Join { wish: Wish { parent: Some("ann".into()), ..Wish::of("sub") }, session: "s".into(), ..join(&crew, "x") };
    let sub = crew.join(sub).await.unwrap().caller;
    crew.create_tasks(&ann, vec![task("one", &[]), task("two", &[])]).await.unwrap();
    leased(&crew, &bob, &["b"]).await;
    leased(&crew, &ann, &["a"]).await;
    claimed(&crew, &ann).await.unwrap();
    crew.claim(&sub, "backlog/2", None).await.unwrap();
    assert_eq!(
        crew.reserve(&sub, request(&sub, &["b"]), Turn::Wait(crew.store().now().plus(TTL))).await.unwrap(),
        None,
        "it waits"
    );
    let (wanted, text) = (Wanted::Permission, "may I?".to_owned());
    crew.ask(&sub, Ask { agent: String::new(), wanted, text, choices: Vec::new(), task: None, call: None })
        .await
        .unwrap();

    let too_long = crew.leave(&ann, LeaveOutcome::Success, "x".repeat(2_000), String::new()).await.unwrap_err();
    assert!(matches!(too_long, Refusal::Crew(CrewError::Invalid(_))), "{too_long}");
    assert_eq!(crew.tasks_of("ann").await.unwrap().len(), 1, "a refused text changes nothing");

    let (leases, mut tasks) = crew.leave(&ann, LeaveOutcome::Success, "done".into(), String::new()).await.unwrap();
    tasks.sort();
    assert_eq!((leases.len(), tasks), (1, vec!["backlog/1".to_owned(), "backlog/2".to_owned()]));
    let ready = crew.tasks(Some(State::Ready)).await.unwrap();
    assert_eq!(ready.len(), 2);
    assert_eq!(crew.asks().await.unwrap().open().count(), 0);
    assert_eq!(crew.leases().await.unwrap().waiting().count(), 0, "nobody waits for a lease who has left");
    for caller in [&ann, &sub] {
        let refused = crew.present(caller).await.unwrap_err();
        assert!(matches!(refused, Refusal::Crew(CrewError::Left(_))), "{refused}");
    }
}

#[tokio::test]
async fn a_dead_agents_task_goes_on_with_a_successor() {
    let team = Team::new();
    let (first, crew) = (team.process().await, team.process().await);
    let (ann, bob) = (joined(&first, "ann").await, joined(&crew, "bob").await);
    first.create_tasks(&ann, vec![task("edit", &["a"])]).await.unwrap();
    first.claim(&ann, "backlog/1", Some(RESERVE)).await.unwrap();
    let next_step = Some("write the test".to_owned());
    let progress = TaskProgress { next_step: next_step.clone(), ..TaskProgress::default() };
    first.update_task(&ann, "backlog/1", progress, None).await.unwrap();
    crew.fire_timers().await.unwrap();
    assert_eq!(crew.agents().await.unwrap().get("ann").unwrap().liveness, Liveness::Alive);
    first.store().close().await;
    drop(first);
    crew.fire_timers().await.unwrap();
    assert_eq!(crew.agents().await.unwrap().get("ann").unwrap().liveness, Liveness::Lost);
    assert_eq!(n_of(&crew, "LeasesAbandoned").await, 1);
    let (taken, _) = crew.next_task(&bob, Some(RESERVE)).await.unwrap();
    let Some(Claimed { progress: Some(progress), leases, .. }) = taken else { panic!("{taken:?}") };
    assert_eq!((progress.next_step, leases.len()), (next_step, 1));
}

#[tokio::test]
async fn a_resumed_agent_keeps_its_task_when_its_old_process_dies() {
    let team = Team::new();
    let (first, second, third) = (team.process().await, team.process().await, team.process().await);
    let ann = joined(&first, "ann").await;
    first.create_tasks(&ann, vec![task("edit", &[])]).await.unwrap();
    claimed(&first, &ann).await.unwrap();
    let resumed = second.join(join(&second, "ann")).await.unwrap();
    assert!(resumed.is_resumed);
    drop(first);
    third.fire_timers().await.unwrap();
    let bob = joined(&third, "bob").await;
    let refused = claimed(&third, &bob).await.unwrap_err();
    assert!(matches!(&refused, Refusal::Task(TaskError::Held { executor, .. }) if executor.name == "ann"), "{refused}");
    second.update_task(&resumed.caller, "backlog/1", TaskProgress::default(), done()).await.unwrap();
}

#[tokio::test]
async fn after_three_dead_claimants_a_task_waits_for_a_person() {
    let team = Team::new();
    let crew = team.process().await;
    let bob = joined(&crew, "bob").await;
    crew.create_tasks(&bob, vec![task("deadly", &[])]).await.unwrap();
    for n in 0..LOST_MAX {
        assert_eq!(crew.tasks(None).await.unwrap()[0].state, State::Ready, "after {n}");
        let victim = team.process().await;
        let agent = joined(&victim, &format!("victim{n}")).await;
        claimed(&victim, &agent).await.unwrap();
        drop(victim);
        crew.fire_timers().await.unwrap();
    }
    assert_eq!(crew.tasks(None).await.unwrap()[0].state, State::WaitingForYou);
    assert!(matches!(claimed(&crew, &bob).await, Err(Refusal::Task(TaskError::Parked))));
    assert!(crew.next_task(&bob, None).await.unwrap().0.is_none(), "nobody is offered it");
    let tags = vec![plan_tag("backlog"), "project:p".to_owned()];
    let mut claim = claim_of(crew.store(), "backlog", TaskId(1), tags);
    claim.execute(TaskCommand::Unpark { by: "ana".into() }, &Cause::request()).await.unwrap();
    claimed(&crew, &bob).await.unwrap();
}

#[tokio::test]
async fn agents_of_two_projects_may_have_the_same_name() {
    let team = Team::new();
    let (one, other) = (team.process_of("p").await, team.process_of("q").await);
    let (ann, namesake) = (joined(&one, "ann").await, joined(&other, "ann").await);
    one.create_tasks(&ann, vec![task("edit", &[])]).await.unwrap();
    let ids = other.create_tasks(&namesake, vec![task("edit", &[])]).await.unwrap();
    assert_eq!(ids[0].1, "backlog-q/1", "each project has a standing plan");
    claimed(&one, &ann).await.unwrap();
    assert_eq!(other.tasks_of("ann").await.unwrap(), Vec::<String>::new());
    other.leave(&namesake, LeaveOutcome::Success, String::new(), String::new()).await.unwrap();
    assert_eq!(one.tasks_of("ann").await.unwrap(), ["backlog/1"]);
}

#[tokio::test]
async fn agents_see_and_give_the_labels_of_tasks() {
    let team = Team::new();
    let crew = team.process().await;
    let ann = joined(&crew, "ann").await;
    // The label of each task is the number of another one, or none.
    let text = "- [ ] 12. Write `src/a.rs` (files: src/a.rs)\n- [ ] T901 Review it\n- [ ] 1. Publish it\n";
    let tags = vec![plan_tag("release"), format!("project:{}", crew.project())];
    let mut planner = crewlog_executors::plans::planner_of(crew.store(), "release", tags).await.unwrap();
    let user_input = text.to_owned();
    let command = Command::of_text(user_input, PlannerConfig::default(), false).unwrap();
    planner.execute(command, &Cause::request()).await.unwrap();

    let tasks = crew.tasks(None).await.unwrap();
    let seen: Vec<_> = tasks.iter().map(|task| (&*task.id, task.depends_on.join(" "))).collect();
    let expected = [("release/12", ""), ("release/T901", "release/12"), ("release/1", "release/T901")];
    assert_eq!(seen, expected.map(|(id, after)| (id, after.to_owned())));

    let refused = |refusal: Refusal| refusal.to_string();
    for id in ["release/2", "release/3", "release"] {
        assert!(refused(crew.claim(&ann, id, None).await.unwrap_err()).contains("there is no open task"), "{id}");
    }
    let refusal = crew.claim(&ann, "release/1", None).await.unwrap_err();
    assert!(matches!(refusal, Refusal::NotReady(State::Planned)), "the one with this label: {refusal}");
    let (taken, _) = crew.next_task(&ann, Some(RESERVE)).await.unwrap();
    let taken = taken.unwrap();
    let [(_, lease)] = &taken.leases[..] else { panic!("{:?}", taken.leases) };
    assert_eq!(
        (&*taken.id, lease.task.as_deref(), &*lease.reason),
        ("release/12", Some("release/12"), "task release/12")
    );
    assert_eq!(crew.tasks_of("ann").await.unwrap(), ["release/12"]);
    assert_eq!(crew.task_name("release/1").await.unwrap().as_deref(), Some("release/12"));
    let refusal = crew.update_task(&ann, "release/T901", TaskProgress::default(), done()).await.unwrap_err();
    assert_eq!(refused(refusal), "you have not claimed release/T901: stop working on it, or claim it first");
    let released = crew.update_task(&ann, "release/12", TaskProgress::default(), done()).await.unwrap();
    assert_eq!(released.len(), 1, "the lease that was taken with it");
    let (next, _) = crew.next_task(&ann, None).await.unwrap();
    assert_eq!(next.unwrap().id, "release/T901");
}
