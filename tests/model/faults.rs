//! Faults of a model: their classes, and the waits before a retry.

use std::time::Duration;

use crewlog_executors::model::{Client, Model, ModelError, Wait};
use crewlog_planner::event::RetryPolicy;
use crewlog_planner::model::Fault;
use serde_json::json;

use super::rig::{Mock, WAYS, question, settings};

#[tokio::test]
async fn each_fault_is_classified_in_both_protocols_with_and_without_streaming() {
    let replies = json!([
        { "when": { "prompt": "1" }, "fault": "rate_limited", "retry_after": 7 },
        { "when": { "prompt": "2" }, "fault": "overloaded" },
        { "when": { "prompt": "3" }, "fault": "server_error" },
        { "when": { "prompt": "4" }, "fault": "unauthorized", "message": "who are you?" },
        { "when": { "prompt": "5" }, "fault": "cut", "text": "a text that ends before its end" },
        { "when": { "prompt": "6" }, "fault": "malformed_json" },
        { "when": { "prompt": "7" }, "finish": "length", "text": "and then" },
        { "when": { "prompt": "8" }, "finish": "refusal", "text": "I would rather not" },
    ]);
    let expected = [
        (Fault::RateLimited, Wait::AtLeast(Duration::from_secs(7)), "slow down"),
        (Fault::Overloaded, Wait::Backoff, "come back later"),
        (Fault::Server, Wait::Backoff, "HTTP 500"),
        (Fault::Refused, Wait::Never, "who are you?"),
        (Fault::CutOff, Wait::Backoff, "cut off"),
        (Fault::Malformed, Wait::Backoff, "sent an invalid answer"),
        (Fault::CutOff, Wait::Never, "more than 500 tokens"),
        (Fault::Refused, Wait::Never, "the content"),
    ];
    for (provider, stream) in WAYS {
        let mock = Mock::new(&replies);
        let client = mock.client(provider, stream);
        for (n, (fault, wait, says)) in expected.iter().enumerate() {
            let error = client.ask(&question(&(n + 1).to_string())).await.expect_err("it fails");
            let found = (error.fault(), error.wait());
            assert_eq!(found, (*fault, *wait), "{provider} {stream} {n}: {error}");
            assert!(error.to_string().contains(says), "{provider} {stream}: {error}");
        }
    }
}

#[tokio::test]
async fn a_request_without_an_answer_times_out() {
    for (provider, stream) in WAYS {
        let mock = Mock::new(&json!([{ "fault": "time_out" }]));
        let after = Duration::from_millis(50);
        let endpoint = mock.endpoint();
        let client =
            Client::new(crewlog_executors::model::Settings { timeout: after, ..settings(provider, stream, endpoint) });
        let asked = client.expect("it is configured").ask(&question("Hello?")).await;
        assert_eq!(asked, Err(ModelError::TimedOut { after }), "{provider} {stream}");
        drop(mock.stop());
    }
}

#[tokio::test]
async fn a_missing_provider_is_reported_as_unreachable() {
    for (provider, stream) in WAYS {
        // A port that was free a moment ago.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        drop(listener);
        let client = Client::new(settings(provider, stream, format!("http://{address}/v1")));
        let error = client.expect("it is configured").ask(&question("Hello?")).await.expect_err("nobody is there");
        assert_eq!((error.fault(), error.wait()), (Fault::Unreachable, Wait::Backoff), "{error}");
    }
}

#[test]
fn the_providers_retry_after_is_respected_up_to_a_maximum() {
    let s = Duration::from_secs;
    let retry_policy = RetryPolicy { count: 4, first_ms: 1_000, longest_ms: 5_000, jitter_percent: 0 };
    let limited = |retry_after| ModelError::RateLimited { retry_after, message: String::new() };
    let server = ModelError::Server { status: 500, message: String::new() };
    let refused = ModelError::Refused { message: String::new() };
    for (error, n_retries, pause) in [
        (&server, 0, Some(s(1))),
        (&server, 1, Some(s(2))),
        (&server, 2, Some(s(4))),
        (&server, 3, Some(s(5))),
        (&server, 4, None),
        (&limited(None), 1, Some(s(2))),
        (&limited(Some(s(3))), 0, Some(s(3))),
        (&limited(Some(Duration::ZERO)), 2, Some(s(4))),
        (&limited(Some(s(6))), 0, None),
        (&limited(Some(s(3))), 4, None),
        (&refused, 0, None),
    ] {
        assert_eq!(error.pause(retry_policy, n_retries), pause, "{error} after {n_retries}");
    }
}
