//! Streams of events: events arrive in order, and a reconnecting client misses and repeats none.

use std::time::Duration;

use futures::StreamExt;
use reqwest::Method;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpSocket;

use super::Api;
use super::api::token;
use crate::cli::demo;
use crate::cli::scene::Scene;

/// Reads `n` events of a stream, and returns their positions.
async fn read(api: &Api, path: &str, last: Option<i64>, n: usize) -> Vec<i64> {
    let mut request = api.request(Method::GET, path);
    if let Some(last) = last {
        request = request.header("last-event-id", last.to_string());
    }
    let response = request.send().await.expect("the stream goes on");
    assert_eq!(
        (response.status().as_u16(), response.headers()["content-type"].as_bytes()),
        (200, &b"text/event-stream"[..])
    );
    let (mut bytes, mut text) = (response.bytes_stream(), String::new());
    let read = async {
        loop {
            let ids = text
                .lines()
                .filter_map(|line| line.strip_prefix("id: "))
                .map(|id| id.parse().expect("the stream goes on"));
            let ids: Vec<i64> = ids.collect();
            if ids.len() >= n {
                return ids.into_iter().take(n).collect();
            }
            text.push_str(&String::from_utf8_lossy(
                &bytes.next().await.expect("the stream goes on").expect("the stream goes on"),
            ));
        }
    };
    tokio::time::timeout(Duration::from_secs(30), read).await.expect("the events arrive")
}

#[tokio::test]
async fn a_client_that_comes_back_misses_and_repeats_no_event() {
    let scene = demo::scene();
    let api = Api::start(&scene);
    let head = api.view("/api/plans").await["at"].as_i64().unwrap();
    let (mut found, mut last) = (Vec::new(), None);
    while found.len() < head as usize {
        let n = (head as usize - found.len()).min(173);
        let path = if last.is_none() { "/api/events/stream?after=0" } else { "/api/events/stream" };
        found.extend(read(&api, path, last, n).await);
        last = found.last().copied();
    }
    assert_eq!(found, (1..=head).collect::<Vec<_>>());
    assert_eq!(api.get(&format!("/api/events/stream?after={}", head + 1_000)).await.status(), 404);
    let wrong = api.request(Method::GET, "/api/events/stream").header("last-event-id", "x").send().await.unwrap();
    assert_eq!(wrong.status(), 422);
}

#[tokio::test]
async fn appended_events_arrive_while_the_client_listens() {
    let scene = Scene::with_repository();
    let made = scene.run(&["task", "add", "One", "--new", "-o", "json"]).expect(0).json();
    let api = Api::start(&scene);
    let head = api.view("/api/plans").await["at"].as_i64().unwrap();
    let path = format!("/api/events/stream?after={head}&plan={}", made["plan"].as_str().unwrap());
    let (found, added) =
        tokio::join!(read(&api, &path, None, 1), async { api.command("task-add", &json!({ "text": "Two" })).await });
    assert_eq!(added.0, 200);
    assert_eq!(found, [head + 1]);
}

#[tokio::test]
async fn a_revoked_token_reads_no_further_event() {
    let scene = Scene::with_repository();
    scene.run(&["task", "add", "One", "--new"]).expect(0);
    let api = Api::start(&scene);
    let head = api.view("/api/plans").await["at"].as_i64().unwrap();
    let reader = token(&scene, "reader", "read");
    let path = format!("/api/events/stream?after={}", head - 1);
    let response = api.bare(Method::GET, &path).bearer_auth(reader).send().await.unwrap();
    let mut bytes = response.bytes_stream();
    let first = bytes.next().await.unwrap().unwrap();
    assert!(first.starts_with(format!("id: {head}\n").as_bytes()), "{first:?}");
    scene.run(&["serve", "tokens", "revoke", "reader"]).expect(0);
    scene.run(&["task", "add", "Two"]).expect(0);
    let rest = tokio::time::timeout(Duration::from_secs(30), bytes.collect::<Vec<_>>()).await.expect("it ends");
    let rest = rest.into_iter().map(|part| String::from_utf8(part.unwrap().to_vec()).unwrap()).collect::<String>();
    assert!(!rest.contains("id: "), "{rest}");
}

/// Pages, streams and views after the file of the log was replaced by an older one.
#[tokio::test]
async fn a_log_that_was_replaced_is_named_on_every_face_of_a_running_server() {
    let scene = Scene::with_repository();
    scene.run(&["task", "add", "One", "--new"]).expect(0);
    scene.run(&["db", "backup", "older.db"]).expect(0);
    scene.run(&["task", "add", "Two"]).expect(0);
    let api = Api::start(&scene);
    let cookie = api.cookie().await;
    let head = api.view("/api/plans").await["at"].as_i64().unwrap();
    assert_eq!(read(&api, "/api/events/stream?after=0", None, head as usize).await.last(), Some(&head));
    std::fs::rename(scene.path("older.db"), scene.path(".crewlog/log.db")).unwrap();
    let said = "was deleted or replaced while it was in use";
    for path in ["/api/plans", "/api/plans/backlog", "/api/events?after=0", "/api/events/stream?after=0"] {
        let answer = api.get(path).await;
        assert_eq!(answer.status(), 503, "{path}");
        let text = answer.text().await.unwrap();
        assert!(text.contains(said), "{path}: {text}");
    }
    let added = api.command("task-add", &json!({ "text": "Three" })).await;
    assert_eq!(added.0, 503, "{}", added.1);
    for path in ["/", "/plans/backlog"] {
        let page = api.bare(Method::GET, path).header("cookie", &cookie).header("accept", "text/html").send();
        let page = page.await.unwrap();
        assert_eq!(page.status(), 503, "{path}");
        let text = page.text().await.unwrap();
        assert!(text.contains(said) && !text.contains("Two"), "{path}: {text}");
    }
}

#[tokio::test]
async fn clients_that_never_read_hold_up_nobody() {
    let scene = demo::scene();
    let api = Api::start(&scene);
    let host = api.url("").replace("http://", "");
    let request = format!(
        "GET /api/events/stream?after=0 HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\n\r\n",
        api.token()
    );
    // With buffers far smaller than the log, so that the server has to wait for its readers.
    let mut open = Vec::new();
    for _ in 0..20 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let mut connection = socket.connect(host.parse().unwrap()).await.unwrap();
        connection.write_all(request.as_bytes()).await.unwrap();
        connection.readable().await.unwrap();
        open.push(connection);
    }
    assert_eq!(api.command("task-add", &json!({ "text": "Go on", "plan": "backlog" })).await.0, 200);
    assert_eq!(api.view("/api/plans").await["items"].as_array().unwrap().len(), 4);
    drop(open);
}
