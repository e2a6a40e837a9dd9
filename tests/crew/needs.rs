//! Everything that waits for a person besides questions and parked tasks: tasks with common files, and late
//! acknowledgements.

use std::collections::BTreeMap;
use std::time::Duration;

use crewlog_executors::crew::{Crew, Facts, Kind, Need, needs_you};
use crewlog_executors::projecting::Projected;
use crewlog_mq::Position;
use crewlog_planner::claim::TaskProgress;
use crewlog_planner::crew::agents::LeaveOutcome;
use crewlog_planner::crew::leases::{ReleaseAnswer, Request, Turn, Which};
use crewlog_planner::crew::messages::{ACK_WITHIN, Message};

use crewlog_planner::crew::conflicts::Conflicts;

use super::team::{Team, claimed, done, joined, letter, request, task};

/// The items that wait in the project of a crew, except questions of plans.
async fn needs(crew: &Crew, at: Option<Position>) -> Vec<Need> {
    let conflicts = Projected::<Conflicts>::read(crew.store(), at).await.unwrap().state;
    needs_you(&Facts {
        project: crew.project(),
        open: &BTreeMap::new(),
        now: crew.store().now(),
        plans: &[],
        agents: &crew.at(at).await.unwrap(),
        asks: &crew.at(at).await.unwrap(),
        messages: &crew.at(at).await.unwrap(),
        leases: &crew.at(at).await.unwrap(),
        roster: None,
        conflicts: &conflicts,
    })
}

#[tokio::test]
async fn conflicts_and_overdue_acknowledgements_wait_for_a_person() {
    let team = Team::new();
    let crew = team.process().await;
    let (ann, bob) = (joined(&crew, "ann").await, joined(&crew, "bob").await);
    crew.create_tasks(&ann, vec![task("one", &["src/a.rs"]), task("two", &["src/*.rs"])]).await.unwrap();
    claimed(&crew, &ann).await.unwrap();
    crew.claim(&bob, "backlog/2", None).await.unwrap();
    let (sent, _) = crew.send(&ann, Message { needs_ack: true, ..letter("ann", "bob", "stop") }).await.unwrap();
    team.pass(ACK_WITHIN.as_secs());
    crew.fire_timers().await.unwrap();

    let found = needs(&crew, None).await;
    let head = crew.store().head().await.unwrap();
    let [conflict, overdue] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((conflict.kind, overdue.kind), (Kind::Conflict, Kind::Overdue));
    assert_eq!(conflict.holds_up, ["backlog/2", "backlog/1"]);
    assert_eq!(conflict.commands(), ["cancel backlog/2"]);
    assert_eq!((&overdue.id, &overdue.commands()), (&sent.to_string(), &vec!["send bob --subject \"...\"".to_owned()]));
    assert_eq!(overdue.text, "ann waits for an acknowledgement of: stop");

    let cat = joined(&crew, "cat").await;
    let (later, _) = crew.send(&ann, Message { needs_ack: true, ..letter("ann", "cat", "go") }).await.unwrap();
    team.pass(ACK_WITHIN.as_secs());
    let ids: Vec<_> = needs(&crew, None).await.into_iter().skip(1).map(|item| item.id).collect();
    assert_eq!(ids, [sent.to_string(), later.to_string()], "what has waited longer comes first");
    crew.leave(&cat, LeaveOutcome::Success, String::new(), String::new()).await.unwrap();
    assert_eq!(needs(&crew, None).await.len(), 2, "who has left acknowledges nothing");

    crew.ack(&bob, sent, String::new()).await.unwrap();
    crew.update_task(&bob, "backlog/2", TaskProgress::default(), done()).await.unwrap();
    assert_eq!(needs(&crew, None).await, []);
    assert_eq!(needs(&crew, Some(head)).await.len(), 2, "as it was");
    let other = team.process_of("q").await;
    assert_eq!(needs(&other, Some(head)).await, [], "another project's person has other work");
}

#[tokio::test]
async fn a_request_that_its_holder_does_not_answer_waits_for_a_person() {
    let team = Team::new();
    let crew = team.process().await;
    let (ann, bob) = (joined(&crew, "ann").await, joined(&crew, "bob").await);
    crew.reserve(&ann, request(&ann, &["a"]), Turn::Behind).await.unwrap();
    let wanted = Request { reason: "the parser".into(), ..request(&bob, &["a"]) };
    crew.request_release(&bob, wanted, Duration::from_secs(300)).await.unwrap().unwrap_err();
    team.pass(300);
    crew.present(&bob).await.unwrap();
    assert_eq!(needs(&crew, None).await.len(), 0, "it has time");
    team.pass(1);
    let found = needs(&crew, None).await;
    assert_eq!(
        (found[0].kind, found[0].text.as_str()),
        (Kind::Conflict, "bob waits for a, which ann does not release: the parser")
    );
    assert_eq!(found[0].commands(), ["leases --force 1 --reason \"...\"", "send ann --subject \"...\""]);
    let until = crew.store().now().plus(Duration::from_secs(60));
    crew.answer_release(&ann, 1, ReleaseAnswer::Keep { until }, String::new()).await.unwrap();
    assert_eq!(needs(&crew, None).await.len(), 0, "it has answered");
    team.pass(61);
    assert_eq!(needs(&crew, None).await.len(), 1, "it keeps them longer than it said");
    crew.release(&ann, Which::All).await.unwrap();
    assert_eq!(needs(&crew, None).await.len(), 0);
}
