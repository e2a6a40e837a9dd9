//! Given, when, then: scenarios of handlers, the errors they detect, and their messages.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crewlog_mq::{EventStore, Handler, given};
use futures::FutureExt;

use super::{Fact, logs};

/// Adds up to ten; some variants are wrong.
#[derive(Debug, Clone, Default, PartialEq)]
struct Adder {
    total: i64,
    n_asked: i64,
}

#[derive(Debug, Clone)]
enum Ask {
    Add(i64),
    /// Decides an event without applying it.
    Forget,
    /// Is refused, but counts that.
    CountRefusal,
}

impl Handler for Adder {
    type Command = Ask;
    type Event = Fact;
    type Error = String;

    fn process(&mut self, ask: Ask) -> Result<Vec<Fact>, String> {
        match ask {
            Ask::Add(0) => Ok(vec![]),
            Ask::Add(n) if self.total + n > 10 => Err(format!("{n} is too much")),
            Ask::Add(n) => {
                self.apply(&Fact::Noted { n });
                Ok(vec![Fact::Noted { n }])
            }
            Ask::Forget => Ok(vec![Fact::Noted { n: 1 }]),
            Ask::CountRefusal => {
                self.n_asked += 1;
                Err("counted".into())
            }
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
        .when(Ask::Add(5))
        .then([Fact::Noted { n: 5 }])
        .when(Ask::Add(0))
        .then_nothing()
        .when(Ask::Add(2))
        .then_refused(|refusal| refusal == "2 is too much")
        .when(Ask::Add(1))
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
    let said = failure(|| drop(given::<Adder>([]).when(Ask::Add(5)).then([Fact::Noted { n: 6 }])));
    assert_eq!(
        said,
        "the events: - is missing, + is there instead\n  [\n      Noted {\n-         n: 6,\n+         n: 5,\n      },\n  ]\n"
    );
    let check = |said: String, expected: &str| assert!(said.contains(expected), "{said}");
    check(failure(|| drop(given::<Adder>([]).when(Ask::Add(11)).then_nothing())), "it is refused: \"11 is too much\"");
    check(failure(|| drop(given::<Adder>([]).when(Ask::Add(1)).then_nothing())), "+     Noted {");
    check(failure(|| drop(given::<Adder>([]).when(Ask::Add(1)).then_refused(|_| true))), "it should be refused");
    check(
        failure(|| drop(given::<Adder>([]).when(Ask::Add(11)).then_refused(|refusal| refusal.is_empty()))),
        "refused otherwise than expected: \"11 is too much\"",
    );
}

#[test]
fn every_scenario_detects_a_handler_that_breaks_a_law() {
    let said = failure(|| drop(given::<Adder>([]).when(Ask::Forget)));
    assert!(said.contains("law 1") && said.contains("-     total: 1") && said.contains("+     total: 0"), "{said}");
    let said = failure(|| drop(given::<Adder>([]).when(Ask::CountRefusal)));
    assert!(said.contains("law 2") && said.contains("-     n_asked: 0") && said.contains("+     n_asked: 1"), "{said}");
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

    fn process(&mut self, secret: Secret) -> Result<Vec<Secret>, String> {
        self.apply(&secret);
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
