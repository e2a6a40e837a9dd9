//! Over HTTP on loopback.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST, ORIGIN, SET_COOKIE};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use super::{assert_has, checked};
use crate::cli::scene::{DEADLINE, Running, Scene};

/// A server, and what it printed.
struct Served {
    token: String,
    server: Running,
    printed: Value,
    client: reqwest::Client,
}

impl Served {
    fn start(scene: &Scene) -> Self {
        let mut server = scene.start(&["serve", "--listen", "127.0.0.1:0", "-o", "jsonl"]);
        let line = server.stdout.line();
        // Another test may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        let token = scene.read(".crewlog/agent-token").trim().to_owned();
        Self { server, token, printed: serde_json::from_str(&line).unwrap(), client }
    }

    fn url(&self, path: &str) -> String {
        self.printed["mcp"].as_str().unwrap().replace("/mcp", path)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, self.url(path))
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    fn post(&self, body: &Value) -> RequestBuilder {
        let request = self.request(Method::POST, "/mcp").header(CONTENT_TYPE, "application/json");
        request.header("accept", "application/json, text/event-stream").body(body.to_string())
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": arguments } });
        let request =
            self.post(&body).header(AUTHORIZATION, self.bearer()).header("mcp-protocol-version", "2025-06-18");
        let text = request.send().await.unwrap().text().await.unwrap();
        let answer: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        checked(&answer)["structuredContent"].clone()
    }
}

async fn status(request: RequestBuilder) -> StatusCode {
    request.send().await.unwrap().status()
}

fn list() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })
}

#[tokio::test]
async fn agents_act_by_the_handle_that_join_returns() {
    let scene = Scene::with_repository();
    let served = Served::start(&scene);
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let answer = served.post(&initialize).header(AUTHORIZATION, served.bearer()).send().await.unwrap();
    assert!(answer.text().await.unwrap().contains("\"2025-11-25\""));
    assert_has(&served.call("reserve_paths", json!({ "paths": ["a"] })).await, &json!({ "code": "unknown_agent" }));
    let ada = served.call("join", json!({ "name": "ada", "program": "codex" })).await;
    assert_has(&ada, &json!({ "status": "joined", "name": "ada" }));
    assert_ne!(ada["agent"], "ada");
    let bob = served.call("join", json!({ "name": "bob", "program": "codex" })).await;
    let granted = served.call("reserve_paths", json!({ "paths": ["a"], "agent": ada["agent"] })).await;
    assert_has(&granted, &json!({ "status": "granted" }));
    let denied = served.call("reserve_paths", json!({ "paths": ["a"], "agent": bob["agent"] })).await;
    assert_has(&denied["denied"][0], &json!({ "holder": "ada" }));
    // A name is no handle.
    assert_has(&served.call("leave", json!({ "agent": "ada" })).await, &json!({ "code": "unknown_agent" }));
    served.call("leave", json!({ "agent": ada["agent"] })).await;
    assert_has(
        &served.call("report", json!({ "state": "idle", "agent": ada["agent"] })).await,
        &json!({ "code": "unknown_agent" }),
    );
    assert!(!scene.run(&["export"]).stdout.contains(bob["agent"].as_str().unwrap()), "a handle is in the log");
}

#[tokio::test]
async fn worktree_of_another_repository_is_refused() {
    let scene = Scene::with_repository();
    scene.git(&["worktree", "add", "-q", "../other"]);
    let served = Served::start(&scene);
    let joined = served.call("join", json!({ "name": "ada", "worktree": "../other" })).await;
    let granted = served.call("reserve_paths", json!({ "paths": ["a"], "agent": joined["agent"] })).await;
    assert!(granted["granted"][0]["worktree"].as_str().unwrap().ends_with("/other"), "{granted}");
    for elsewhere in ["/", "../home", "missing"] {
        let refused = served.call("join", json!({ "worktree": elsewhere })).await;
        assert_has(&refused, &json!({ "code": "invalid" }));
    }
}

#[tokio::test]
async fn requests_need_a_credential_a_host_and_an_origin() {
    let scene = Scene::with_repository();
    let served = Served::start(&scene);
    let mcp = || served.post(&list());
    assert_eq!(status(mcp()).await, 401);
    assert_eq!(status(mcp().header(AUTHORIZATION, "Bearer wrong")).await, 401);
    assert_eq!(status(served.request(Method::GET, "/anything")).await, 401);
    let authorized = || mcp().header(AUTHORIZATION, served.bearer());
    assert_eq!(status(authorized()).await, 200);
    for host in ["evil.example", "evil.example:7777", "127.0.0.1", "127.0.0.1:1", "localhost"] {
        assert_eq!(status(authorized().header(HOST, host)).await, 403, "{host}");
    }
    let port = served.url("").rsplit_once(':').unwrap().1.to_owned();
    assert_eq!(status(authorized().header(HOST, format!("localhost:{port}"))).await, 200);
    for origin in ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1"] {
        assert_eq!(status(authorized().header(ORIGIN, origin)).await, 403, "{origin}");
    }
    let mut huge = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    huge.set_read_timeout(Some(DEADLINE)).unwrap();
    let length = (1 << 20) + 1;
    let bearer = served.bearer();
    write!(
        huge,
        "POST /mcp HTTP/1.1\r\nHost: localhost:{port}\r\nAuthorization: {bearer}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {length}\r\n\r\n"
    )
    .unwrap();
    huge.write_all(&vec![b'x'; length]).unwrap();
    let mut begun = [0; 12];
    huge.read_exact(&mut begun).unwrap();
    assert_eq!(&begun, b"HTTP/1.1 413");
    let answer = authorized().send().await.unwrap();
    assert!(answer.headers().get("access-control-allow-origin").is_none());
    assert_eq!(answer.headers()["cache-control"], "no-store");
}

#[tokio::test]
async fn bodies_that_never_arrive_hold_up_no_other_request() {
    let scene = Scene::with_repository();
    let served = Served::start(&scene);
    let host = served.url("").replace("http://", "");
    let slow = || {
        let mut stream = TcpStream::connect(&host).unwrap();
        let bearer = served.bearer();
        let head =
            format!("POST /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: {bearer}\r\ncontent-length: 1000\r\n\r\n{{");
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let mut all: Vec<_> = (0..300).map(|_| slow()).collect();
    assert_eq!(served.call("join", json!({ "name": "ada" })).await["status"], "joined");
    // None of them was dropped for that.
    for stream in &mut all {
        stream.set_nonblocking(true).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}

#[tokio::test]
async fn agents_that_wait_hold_up_no_other_call_and_no_page() {
    let scene = Scene::with_repository();
    let served = Served::start(&scene);
    let ada = served.call("join", json!({ "name": "ada" })).await;
    let cat = served.call("join", json!({ "name": "cat" })).await;
    let wait = |agent: &Value| served.call("wait_for_events", json!({ "agent": agent, "timeout_seconds": 45 }));
    let mut waits: FuturesUnordered<_> = (0..150).flat_map(|_| [wait(&ada["agent"]), wait(&cat["agent"])]).collect();
    // The calls that find no place to wait answer at once.
    for _ in 0..300 - 256 {
        let answered = waits.next().await.expect("it answers");
        assert_eq!(answered["status"], "timed_out", "{answered}");
    }
    let others = async {
        assert_eq!(served.call("join", json!({ "name": "bob" })).await["status"], "joined");
        let cookie = served.client.get(served.printed["person"].as_str().unwrap()).send().await.unwrap();
        let cookie = cookie.headers()[SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
        assert_eq!(status(served.request(Method::GET, "/api/plans").header(COOKIE, cookie)).await, 200);
    };
    tokio::select! {
        () = others => {}
        Some(answered) = waits.next() => panic!("a call that waits was answered first: {answered}"),
    }
}

#[tokio::test]
async fn one_time_token_becomes_a_cookie_of_the_person() {
    let scene = Scene::with_repository();
    let served = Served::start(&scene);
    let person = served.printed["person"].as_str().unwrap();
    let first = served.client.get(person).send().await.unwrap();
    assert_eq!((first.status().as_u16(), first.headers()["location"].as_bytes()), (303, &b"/"[..]));
    let cookie = first.headers()[SET_COOKIE].to_str().unwrap().to_owned();
    assert!(cookie.contains("; HttpOnly") && cookie.contains("; SameSite=Strict"), "{cookie}");
    assert_eq!(status(served.client.get(person)).await, 401);
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(status(served.request(Method::GET, "/").header(COOKIE, cookie)).await, 200);
    assert_eq!(status(served.post(&list()).header(COOKIE, cookie)).await, 403);
    assert_eq!(status(served.request(Method::GET, "/").header(AUTHORIZATION, served.bearer())).await, 403);
}

#[tokio::test]
async fn agents_token_stays_private_and_the_same() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::with_repository();
    let first = Served::start(&scene);
    let file = scene.path(".crewlog/agent-token");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(first.printed["agent_token"], json!(null), "only a terminal shows it");
    let token = first.token;
    let server = first.server;
    server.signal(rustix::process::Signal::TERM);
    server.finish().expect(0);
    assert_eq!(Served::start(&scene).token, token);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_ne!(Served::start(&scene).token, token);
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("nowhere", &file).unwrap();
    assert_eq!(Served::start(&scene).token.len(), token.len());
    let kept = file.symlink_metadata().unwrap();
    assert!(kept.is_file() && kept.permissions().mode() & 0o777 == 0o600, "a link that leads nowhere is replaced");
    scene.run(&["serve", "--listen", "0.0.0.0:0"]).expect(1).says(&["loopback"]);
}
