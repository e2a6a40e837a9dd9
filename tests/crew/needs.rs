//! What waits for a person, besides questions and parked tasks: tasks that meet on a file, and late acknowledgements.

use crewlog_executors::crew::{Kind, needs_you};
use crewlog_planner::claim::TaskProgress;
use crewlog_planner::crew::agents::Outcome;
use crewlog_planner::crew::messages::{ACK_WITHIN, Message};

use super::team::{Team, claimed, done, joined, letter, task};

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

    let needs = needs_you(&crew, None).await.unwrap();
    let [conflict, overdue] = &needs.items[..] else { panic!("{needs:#?}") };
    assert_eq!((conflict.kind, overdue.kind), (Kind::Conflict, Kind::Overdue));
    assert_eq!(conflict.holds_up, ["backlog/2", "backlog/1"]);
    assert_eq!(conflict.commands, ["conflicts", "cancel backlog 2"]);
    assert_eq!((&overdue.id, &overdue.commands), (&sent.to_string(), &vec!["why bob".to_owned()]));
    assert_eq!(overdue.text, "ann waits for an acknowledgement of: stop");

    let cat = joined(&crew, "cat").await;
    crew.send(&ann, Message { needs_ack: true, ..letter("ann", "cat", "go") }).await.unwrap();
    team.pass(ACK_WITHIN.as_secs());
    assert_eq!(needs_you(&crew, None).await.unwrap().items.len(), 3);
    crew.leave(&cat, Outcome::Success, String::new(), String::new()).await.unwrap();
    assert_eq!(needs_you(&crew, None).await.unwrap().items.len(), 2, "who has left acknowledges nothing");

    crew.ack(&bob, sent, String::new()).await.unwrap();
    crew.update_task(&bob, "backlog/2", TaskProgress::default(), done()).await.unwrap();
    assert_eq!(needs_you(&crew, None).await.unwrap().items, []);
    assert_eq!(needs_you(&crew, Some(needs.at)).await.unwrap().items, needs.items, "as it was");
    let other = team.process_of("q").await;
    assert_eq!(needs_you(&other, Some(needs.at)).await.unwrap().items, [], "another project's person has other work");
}
