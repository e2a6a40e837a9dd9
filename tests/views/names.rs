//! Names of plans over HTTP: they mean what they mean on the command line.

use reqwest::Method;
use serde_json::json;

use super::Api;
use crate::cli::addresses::{Alike, NAMES};

#[tokio::test(flavor = "multi_thread")]
async fn a_name_means_the_same_plan_over_http_or_is_refused() {
    let plans = Alike::new();
    plans.scene.run(&["task", "add", "Look at it"]).expect(0);
    let api = Api::start(&plans.scene);
    let n_events = plans.scene.events().len();
    for (typed, [viewed, _, sole], fit) in NAMES {
        for path in ["/api/plans/NAME?", "/api/plans/NAME/why?", "/api/events?plan=NAME&", "/api/conflicts?plan=NAME&"]
        {
            let path = format!("{}at={n_events}", path.replace("NAME", typed));
            let response = api.get(&path).await;
            assert_eq!(response.status(), if viewed.is_some() { 200 } else { 404 }, "{path}");
            // The plan that it means may be another one tomorrow.
            assert_eq!(response.headers()["cache-control"], "no-store", "{path}");
        }
        let stream = format!("/api/events/stream?plan={typed}");
        assert_eq!(api.get(&stream).await.status(), if viewed.is_some() { 200 } else { 404 }, "{stream}");
        let why = format!("/api/why?what={typed}/1&at={n_events}");
        let response = api.get(&why).await;
        assert_eq!(response.status(), if viewed.is_some() { 200 } else { 404 }, "{why}");
        assert_eq!(response.headers()["cache-control"], "no-store", "{why}");
        if let Some(viewed) = viewed.map(|name| plans.id(name)) {
            assert_eq!(api.view(&format!("/api/plans/{typed}")).await["plan"], viewed);
            let events = api.view(&format!("/api/events?plan={typed}&limit=500")).await;
            let all = api.view(&format!("/api/events?plan={viewed}&limit=500")).await;
            assert!(events == all && !events["items"].as_array().expect("a list").is_empty(), "{typed}: {events}");
        }
        if sole.is_none() {
            for command in ["cancel", "retry"] {
                let (status, problem) = api.command(command, &json!({ "target": typed })).await;
                assert_eq!(status, 404, "{command} {typed}: {problem}");
                let detail = problem["detail"].as_str().expect("a text");
                assert!(fit.iter().all(|name| detail.contains(plans.id(name))), "{typed}: {problem}");
            }
        }
    }
    let plan = plans.id("ship");
    for path in [
        format!("/api/events?plan={plan}&"),
        format!("/api/conflicts?plan={plan}&"),
        format!("/api/why?what={plan}/1&"),
    ] {
        let response = api.get(&format!("{path}at={n_events}")).await;
        assert!(response.headers()["cache-control"].to_str().expect("a text").contains("immutable"), "{path}");
    }
    let lower = api.bare(Method::GET, "/api/plans").header("authorization", format!("bearer {}", api.token()));
    assert_eq!(lower.send().await.expect("the server answers").status(), 200, "a scheme has no case");
    assert_eq!(plans.scene.events().len(), n_events);
}
