//! Given, when, then: scenarios of handlers, the errors they detect, and their messages.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crewlog_mq::{EventStore, Handler, Query, Range, given};
use futures::FutureExt;

use super::{Fact, logs};

/// Adds up to ten. At five it rounds up to six, and at six to eight.
#[derive(Debug, Clone, Default, PartialEq)]
struct Adder {
    total: i64,
}

#[derive(Debug, Clone)]
struct Add(i64);

impl Handler for Adder {
    type Command = Add;
    type Event = Fact;
    type Error = String;

    fn decide(&self, Add(n): Add) -> Result<Vec<Fact>, String> {
        match n {
            0 => Ok(vec![]),
            n if self.total + n > 10 => Err(format!("{n} is too much")),
            n => Ok(vec![Fact::Noted { n }]),
        }
    }

    fn follow(&self, last: &[Fact]) -> Vec<Fact> {
        match self.total {
            _ if last.is_empty() => vec![],
            5 => vec![Fact::Noted { n: 1 }],
            6 => vec![Fact::Noted { n: 2 }],
            _ => vec![],
        }
    }

    fn apply(&mut self, event: &Fact) {
        if let Fact::Noted { n } = event {
            self.total += n;
        }
    }
}

/// The message of a failing scenario.
fn failure(scenario: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(scenario)).expect_err("the scenario fails");
    panic.downcast_ref::<String>().expect("a panic with words").clone()
}

#[tokio::test]
async fn a_scenario_passes_in_memory_and_on_a_log() {
    let scenario = given::<Adder>([Fact::Noted { n: 4 }, Fact::Closed])
        .when(Add(5))
        .then([Fact::Noted { n: 5 }])
        .when(Add(0))
        .then_nothing()
        .when(Add(2))
        .then_refused(|refusal| refusal == "2 is too much")
        .when(Add(1))
        .then([Fact::Noted { n: 1 }]);
    assert_eq!(scenario.handler().total, 10);
    for (store, _place) in logs().await {
        scenario.on(&store).await;
        scenario.on(&store).await;
        assert_eq!(store.head().await.unwrap().0, 8);
    }
}

#[test]
fn a_failed_expectation_is_reported_with_a_diff() {
    let said = failure(|| drop(given::<Adder>([]).when(Add(4)).then([Fact::Noted { n: 3 }])));
    assert_eq!(
        said,
        "the events: - is missing, + is there instead\n  [\n      Noted {\n-         n: 3,\n+         n: 4,\n      },\n  ]\n"
    );
    let check = |said: String, expected: &str| assert!(said.contains(expected), "{said}");
    check(failure(|| drop(given::<Adder>([]).when(Add(11)).then_nothing())), "it is refused: \"11 is too much\"");
    check(failure(|| drop(given::<Adder>([]).when(Add(1)).then_nothing())), "+     Noted {");
    check(failure(|| drop(given::<Adder>([]).when(Add(1)).then_refused(|_| true))), "it should be refused");
    check(
        failure(|| drop(given::<Adder>([]).when(Add(11)).then_refused(|refusal| refusal.is_empty()))),
        "refused otherwise than expected: \"11 is too much\"",
    );
}

#[tokio::test]
async fn what_follows_from_a_decision_is_decided_in_the_new_state_and_appended_with_it() {
    let noted = |n| Fact::Noted { n };
    let scenario = given::<Adder>([noted(3)])
        .when(Add(2))
        .then([noted(2), noted(1), noted(2)])
        .when(Add(0))
        .then_nothing()
        .when(Add(3))
        .then_refused(|refusal| refusal == "3 is too much");
    assert_eq!(scenario.handler().total, 8);
    for (store, _place) in logs().await {
        scenario.on(&store).await;
        let events = store.load::<Fact>(&Query::all(), Range::default()).await.unwrap();
        let starts: Vec<_> = events.iter().map(|event| event.recorded.append_start.0).collect();
        assert_eq!(starts, [1, 2, 2, 2], "one append");
    }
}

/// Remembers a value that serde does not serialise.
#[derive(Debug, Clone, Default, PartialEq)]
struct Forgetful(Vec<Secret>);

#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
enum Secret {
    Told {
        #[serde(skip)]
        secret: String,
    },
}

impl crewlog_mq::Event for Secret {}

impl Handler for Forgetful {
    type Command = Secret;
    type Event = Secret;
    type Error = String;

    fn decide(&self, secret: Secret) -> Result<Vec<Secret>, String> {
        Ok(vec![secret])
    }

    fn apply(&mut self, secret: &Secret) {
        self.0.push(secret.clone());
    }
}

#[tokio::test]
async fn running_a_scenario_on_a_log_detects_data_lost_in_encoding() {
    let told = Secret::Told { secret: "x".into() };
    let scenario = given::<Forgetful>([]).when(told.clone()).then([told]);
    let store = EventStore::in_memory().await.unwrap();
    let panic = AssertUnwindSafe(scenario.on(&store)).catch_unwind().await.expect_err("it is not the same");
    let said = panic.downcast_ref::<String>().unwrap();
    assert!(said.contains("scenarios.rs") && said.contains("the state on the log"), "{said}");
}
