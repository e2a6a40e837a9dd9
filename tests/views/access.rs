//! Permissions: tokens with scopes, hosts and origins, TLS and proxies.

use std::io::{Read, Write};
use std::net::TcpStream;

use reqwest::Method;
use serde_json::json;

use super::Api;
use super::api::{answered, token};
use crate::cli::scene::{Running, Scene};

#[tokio::test]
async fn a_token_does_what_its_scopes_say_until_it_is_revoked() {
    let scene = Scene::with_repository();
    scene.run(&["task", "add", "One", "--new"]).expect(0);
    let api = Api::start(&scene);
    let (reader, writer) = (token(&scene, "reader", "read"), token(&scene, "writer", "write"));
    let get = async |token: &str, path: &str| {
        api.bare(Method::GET, path).bearer_auth(token).send().await.unwrap().status().as_u16()
    };
    let post = async |token: &str, name: &str, fields| {
        answered(api.bare(Method::POST, &format!("/api/commands/{name}")).bearer_auth(token), &fields).await.0
    };
    let add = || json!({ "text": "Two" });
    assert_eq!((get(&reader, "/api/plans").await, get(&writer, "/api/plans").await), (200, 403));
    assert_eq!((post(&reader, "task-add", add()).await, post(&writer, "task-add", add()).await), (403, 200));
    let answer = || json!({ "plan": "backlog", "question": "q1", "text": "x" });
    assert_eq!(post(&writer, "answer", answer()).await, 403, "a person answers");
    for path in ["/", "/mcp", "/assets/page.css", "/do/done"] {
        assert_eq!(get(&reader, path).await, 403, "{path}");
    }
    assert_eq!(get("wrong", "/api/plans").await, 401);
    assert_eq!(api.bare(Method::GET, "/api/plans").send().await.unwrap().status(), 401);

    let listed = scene.run(&["serve", "tokens", "-o", "json"]).expect(0);
    assert!(!listed.stdout.contains(&reader), "it is shown once");
    assert!(!scene.read(".crewlog/log.db-tokens").contains(&reader), "its digest is kept");
    scene.run(&["serve", "tokens", "add", "reader"]).expect(9);
    scene.run(&["serve", "tokens", "revoke", "reader"]).expect(0);
    scene.run(&["serve", "tokens", "revoke", "reader"]).expect(4);
    assert_eq!((get(&reader, "/api/plans").await, post(&writer, "task-add", add()).await), (401, 200));
    let by = scene.events_of_type("TasksAmended");
    assert_eq!(by.len(), 2);
}

/// The statuses of many requests that a caller sends at once.
fn statuses_of_many(api: &Api, n: usize) -> Vec<String> {
    let host = api.url("").replace("http://", "");
    let mut connection = TcpStream::connect(&host).expect("the server listens");
    let request = format!("GET /api/nothing HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\n", api.token());
    let mut sender = connection.try_clone().expect("a descriptor");
    let sending = std::thread::spawn(move || {
        for _ in 1..n {
            write!(sender, "{request}\r\n").expect("it reads");
        }
        write!(sender, "{request}connection: close\r\n\r\n").expect("it reads");
    });
    let mut answers = String::new();
    connection.read_to_string(&mut answers).expect("answers");
    sending.join().expect("all are sent");
    answers.split("HTTP/1.1 ").skip(1).map(|answer| answer[..3].to_owned()).collect()
}

#[tokio::test]
async fn a_caller_that_asks_too_often_is_refused_for_a_second_and_no_other() {
    let scene = Scene::with_repository();
    scene.run(&["init"]).expect(0);
    let api = Api::start(&scene);
    let other = token(&scene, "other", "read");
    let statuses = statuses_of_many(&api, 4_000);
    let n = |status: &str| statuses.iter().filter(|found| *found == status).count();
    assert_eq!(n("404") + n("429"), 4_000);
    assert!(n("404") >= 500 && n("429") >= 500, "{} of 4,000 were answered", n("404"));
    let by_other = api.bare(Method::GET, "/api/plans").bearer_auth(&other).send().await.unwrap();
    assert_eq!(by_other.status(), 200);
    while api.get("/api/plans").await.status() == 429 {}
}

#[tokio::test]
async fn a_file_of_tokens_that_cannot_be_read_is_named_and_no_token_is_called_wrong() {
    let scene = Scene::with_repository();
    scene.run(&["init", "--no-hosts"]).expect(0);
    let api = Api::start(&scene);
    let cookie = api.cookie().await;
    for damaged in ["", "{bad", "{}", "[{}]"] {
        scene.write(".crewlog/log.db-tokens", damaged);
        let answer = api.get("/api/plans").await;
        assert_eq!(answer.status(), 503, "{damaged:?}");
        let problem: serde_json::Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("log.db-tokens cannot be read"), "{damaged:?}: {detail}");
        assert!(problem["hints"][0].as_str().unwrap().contains("serve tokens add"), "{problem}");
        let page = api.bare(Method::GET, "/").header("cookie", &cookie).send().await.unwrap();
        assert_eq!(page.status(), 200, "the person needs no token");
        for words in [&["serve", "--listen", "127.0.0.1:0"][..], &["serve", "tokens"], &["serve", "tokens", "add", "a"]]
        {
            scene.run(words).expect(1).says(&["log.db-tokens cannot be read", "hint: "]);
        }
        assert_eq!(scene.read(".crewlog/log.db-tokens"), damaged, "it is left for the person to look at");
    }
}

#[tokio::test]
async fn another_host_or_the_page_of_another_server_is_refused() {
    let scene = Scene::with_repository();
    scene.run(&["init"]).expect(0);
    let api = Api::start(&scene);
    let cookie = api.cookie().await;
    let send = async |name: &str, value: &str| {
        let request = api.bare(Method::GET, "/api/plans").header("cookie", &cookie).header(name, value);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(send("x-other", "1").await, 200);
    assert_eq!(send("host", "evil.example").await, 403);
    assert_eq!(send("origin", "http://evil.example").await, 403);
    assert_eq!(send("origin", "null").await, 403);
    assert_eq!(send("origin", &api.url("")).await, 200);
    let redeemed = api.client.get(api.printed["person"].as_str().unwrap()).send().await.unwrap();
    assert_eq!(redeemed.status(), 401, "the one-time token was used");
}

#[tokio::test]
async fn an_address_that_others_reach_needs_tls_or_a_proxy() {
    let scene = Scene::with_repository();
    scene.run(&["init"]).expect(0);
    let refused = scene.run(&["serve", "--listen", "0.0.0.0:0"]).expect(1);
    refused.says(&["loopback", "[serve]"]);

    scene.write("crewlog.toml", "[serve]\nproxies = [\"203.0.113.7\"]\nhosts = [\"crew.example\"]\n");
    let api = Api::start_with(&scene, &["--listen", "0.0.0.0:0"]);
    let port = api.printed["listen"].as_str().unwrap().rsplit(':').next().unwrap();
    let dropped = api.client.get(format!("http://127.0.0.1:{port}/api/plans")).send().await;
    assert!(dropped.is_err(), "only the proxy is answered");
    drop(api);

    scene.write("crewlog.toml", "[serve]\nproxies = [\"127.0.0.1\"]\nhosts = [\"crew.example\"]\n");
    let api = Api::start_with(&scene, &["--listen", "0.0.0.0:0"]);
    let port = api.printed["listen"].as_str().unwrap().rsplit(':').next().unwrap();
    let token = token(&scene, "proxied", "read");
    let request = api.client.get(format!("http://127.0.0.1:{port}/api/plans")).bearer_auth(&token);
    assert_eq!(request.header("host", "crew.example").send().await.unwrap().status(), 200);
    drop(api);

    // A proxy on the same machine makes the same addresses and cookies.
    let api = Api::start_with(&scene, &["--listen", "127.0.0.1:0"]);
    let person = api.printed["person"].as_str().unwrap();
    let token = person.strip_prefix("https://crew.example/?token=").expect(person);
    let listen = api.printed["listen"].as_str().unwrap();
    let signing_in = api.client.get(format!("http://{listen}/?token={token}")).header("host", "crew.example");
    let cookie = signing_in.send().await.unwrap().headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(cookie.contains("; Secure"), "{cookie}");
}

#[tokio::test]
async fn a_new_address_of_the_page_works_once_and_only_a_person_gets_one() {
    let scene = Scene::with_repository();
    scene.run(&["init"]).expect(0);
    scene.run(&["serve", "link"]).expect(1).says(&["there is no server to open", "crewlog serve"]);
    let api = Api::start(&scene);
    let status = async |address: &str| api.client.get(address).send().await.unwrap().status().as_u16();
    let own = api.printed["person"].as_str().unwrap();
    assert_eq!((status(own).await, status(own).await), (303, 401));
    let link = || scene.run(&["serve", "link"]).expect(0).stdout.trim().to_owned();
    let (first, second) = (link(), link());
    assert_ne!(first, second);
    for address in [&first, &second] {
        assert_eq!((status(address).await, status(address).await), (303, 401), "{address}");
    }
    // One that is too old.
    let old = link();
    let folder = std::fs::read_dir(scene.path(".crewlog/log.db-entries")).unwrap().flatten();
    for file in folder.filter(|file| file.file_name() != "server") {
        let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(601);
        std::fs::File::options().write(true).open(file.path()).unwrap().set_modified(long_ago).unwrap();
    }
    assert_eq!(status(&old).await, 401);
    for token in ["", "server", "../log.db", "wrong"] {
        assert_eq!(status(&api.url(&format!("/?token={token}"))).await, 401, "{token}");
    }
    let agent = Running::start(scene.crewlog(&["serve", "link"]).env("AGENT_ID", "ann")).finish();
    agent.expect(11).says(&["an agent may not open the page"]);
}

#[tokio::test]
async fn a_certificate_makes_everything_go_over_tls() {
    let scene = Scene::with_repository();
    scene.run(&["init"]).expect(0);
    scene.write("crewlog.toml", "[serve]\ncertificate = \"missing.pem\"\nkey = \"missing.pem\"\n");
    scene.run(&["serve", "--listen", "127.0.0.1:0"]).expect(1).says(&["missing.pem"]);
    scene.write("crewlog.toml", "[serve]\ncertificate = \"missing.pem\"\n");
    scene.run(&["serve", "--listen", "127.0.0.1:0"]).expect(1).says(&["certificate and key"]);

    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    scene.write("chain.pem", made.cert.pem());
    scene.write("key.pem", made.signing_key.serialize_pem());
    scene.write("crewlog.toml", "[serve]\ncertificate = \"chain.pem\"\nkey = \"key.pem\"\n");
    let api = Api::start(&scene);
    assert!(api.printed["person"].as_str().unwrap().starts_with("https://"), "{}", api.printed);
    let root = reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
    let client = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([root])
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let token = token(&scene, "over-tls", "read");
    let answered = client.get(api.url("/api/plans")).bearer_auth(&token).send().await.unwrap();
    assert_eq!(answered.status(), 200);
    let redeemed = client.get(api.printed["person"].as_str().unwrap()).send().await.unwrap();
    assert!(redeemed.headers()["set-cookie"].to_str().unwrap().contains("; Secure"));
    let plain = api.client.get(api.url("/api/plans").replace("https", "http")).send().await;
    assert!(plain.is_err(), "nothing is answered without TLS");
}

#[test]
fn tokens_that_change_at_the_same_time_are_all_as_they_were_made() {
    let scene = Scene::with_repository();
    scene.run(&["init"]).expect(0);
    for round in 0..5 {
        let gone = format!("gone-{round}");
        token(&scene, &gone, "read");
        let adds = (0..3).map(|n| scene.start(&["serve", "tokens", "add", &format!("kept-{round}-{n}")]));
        let running: Vec<_> = adds.chain([scene.start(&["serve", "tokens", "revoke", &gone])]).collect();
        running.into_iter().for_each(|one| drop(one.finish().expect(0)));
    }
    let listed = scene.run(&["serve", "tokens", "-o", "json"]).expect(0).json();
    let names: Vec<_> =
        listed["tokens"].as_array().unwrap().iter().map(|token| token["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 15, "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("kept-")), "{names:?}");
}
