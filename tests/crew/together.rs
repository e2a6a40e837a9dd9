//! Concurrent calls of one process: they share an append, and each gets its own answer.

use std::collections::BTreeSet;
use std::sync::Arc;

use crewlog_executors::crew::{Join, Refusal};
use crewlog_planner::crew::CrewError;
use crewlog_planner::crew::leases::{LeaseCommand, Turn};
use crewlog_planner::crew::target::Target;
use futures::future::join_all;

use super::team::{TREE, Team, join, joined, n_of, recorded, request};

#[tokio::test]
async fn requests_of_one_process_go_together_and_each_has_its_own_answer() {
    let team = Team::new();
    let crew = Arc::new(team.process().await);
    let mut callers = Vec::new();
    for n in 0..20 {
        callers.push(joined(&crew, &format!("a{n}")).await);
    }
    let requests = callers.iter().enumerate().map(|(n, caller)| {
        let (crew, caller) = (Arc::clone(&crew), caller.clone());
        // Every two of them want the same file.
        let path = format!("src/f{}.rs", n / 2);
        tokio::spawn(async move { crew.reserve(&caller, request(&caller, &[&path]), Turn::Behind).await })
    });
    let answers: Vec<_> = join_all(requests).await.into_iter().map(Result::unwrap).collect();
    let is_refused = |answer: &&Result<_, _>| matches!(answer, Err(Refusal::Crew(CrewError::Held(_))));
    assert_eq!(answers.iter().flatten().flatten().count(), 10, "{answers:?}");
    assert_eq!(answers.iter().filter(is_refused).count(), 10, "{answers:?}");
    let grants = recorded(&crew).await.into_iter().filter(|event| event.event_type == "LeasesGranted");
    let grants: Vec<_> = grants.map(|event| (event.append_start, event.metadata().unwrap().correlation_id)).collect();
    let appends: BTreeSet<_> = grants.iter().map(|(append, _)| append).collect();
    let requests: BTreeSet<_> = grants.iter().map(|(_, request)| request).collect();
    assert!(appends.len() < 10 && requests.len() == 10, "{grants:?}");
}

#[tokio::test]
async fn a_caller_that_goes_away_breaks_off_nothing() {
    let team = Team::new();
    let crew = Arc::new(team.process().await);
    let record = |path: &str| {
        let (crew, path) = (Arc::clone(&crew), Target::literal(path).unwrap());
        tokio::spawn(async move {
            let see = |now| LeaseCommand::SeeEdit { worktree: TREE.into(), path, agent: None, now };
            crew.record_edit(see).await
        })
    };
    let held = crew.leases().await.unwrap();
    let (gone, other) = (record("src/a.rs"), record("src/b.rs"));
    tokio::task::yield_now().await;
    drop(held);
    // Now both are carried out.
    tokio::task::yield_now().await;
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    other.await.unwrap().unwrap();
    assert_eq!(n_of(&crew, "UnleasedEdit").await, 2);
}

#[tokio::test]
async fn of_two_sessions_that_join_under_one_name_at_once_one_has_it() {
    let team = Team::new();
    let crew = team.process().await;
    let held = crew.agents().await.unwrap();
    let session = |session: &str| crew.join(Join { session: session.to_owned(), ..join(&crew, "ann") });
    let joins = async { tokio::join!(session("one"), session("two")) };
    // Both wait for the lock.
    let free = async {
        tokio::task::yield_now().await;
        drop(held);
    };
    let ((one, two), ()) = tokio::join!(joins, free);
    assert!(matches!(two, Err(Refusal::Crew(CrewError::Taken(name))) if name == "ann"));
    let appends: BTreeSet<_> = recorded(&crew).await.into_iter().map(|event| event.append_start).collect();
    assert_eq!((appends.len(), n_of(&crew, "AgentJoined").await), (1, 1));
    crew.present(&one.unwrap().caller).await.unwrap();
}
