//! A program that uses the API of `crewlog serve`.

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::Value;

use crate::cli::scene::{Running, Scene};

pub struct Api {
    /// It ends with this.
    _server: Running,
    /// Its output: addresses and tokens.
    pub printed: Value,
    pub client: Client,
    base: String,
    token: String,
}

/// All scopes of a token.
pub const ALL: &str = "read,write,execute,operator";

impl Api {
    /// Starts a server, with a token that has all scopes.
    pub fn start(scene: &Scene) -> Self {
        Self::start_with(scene, &["--listen", "127.0.0.1:0"])
    }

    /// The same with other options.
    pub fn start_with(scene: &Scene, options: &[&str]) -> Self {
        let mut server = scene.start(&[&["serve", "-o", "jsonl"], options].concat());
        let printed: Value = serde_json::from_str(&server.stdout.line()).expect("the server answers as it should");
        // Another test may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client =
            Client::builder().no_proxy().redirect(Policy::none()).build().expect("the server answers as it should");
        let base = printed["mcp"]
            .as_str()
            .expect("the server answers as it should")
            .strip_suffix("/mcp")
            .expect("the server answers as it should")
            .to_owned();
        let token = token(scene, &format!("all-{}", uuid::Uuid::new_v4().simple()), ALL);
        Self { _server: server, printed, client, base, token }
    }

    /// An address of the server.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    /// A request without a credential.
    pub fn bare(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, self.url(path))
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.bare(method, path).header(AUTHORIZATION, format!("Bearer {}", self.token))
    }

    pub async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await.expect("the server answers as it should")
    }

    /// A view, which has to be there.
    pub async fn view(&self, path: &str) -> Value {
        let response = self.get(path).await;
        let (status, text) = (response.status(), response.text().await.expect("the server answers as it should"));
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).expect("the server answers as it should")
    }

    /// Sends a command: the status and the body of the answer.
    pub async fn command(&self, name: &str, fields: &Value) -> (u16, Value) {
        answered(self.request(Method::POST, &format!("/api/commands/{name}")), fields).await
    }

    pub async fn cookie(&self) -> String {
        let response = self
            .client
            .get(self.printed["person"].as_str().expect("the server answers as it should"))
            .send()
            .await
            .expect("the server answers as it should");
        let cookie = response.headers()["set-cookie"].to_str().expect("the server answers as it should");
        cookie.split(';').next().expect("the server answers as it should").to_owned()
    }
}

/// Sends a JSON body: the status and the body of the answer.
pub async fn answered(request: RequestBuilder, body: &Value) -> (u16, Value) {
    let response = request
        .header(CONTENT_TYPE, "application/json")
        .body(body.to_string())
        .send()
        .await
        .expect("the server answers as it should");
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.expect("the server answers as it should")).unwrap_or_default())
}

pub fn token(scene: &Scene, name: &str, scopes: &str) -> String {
    let made = scene.run(&["serve", "tokens", "add", name, "--scope", scopes, "-o", "json"]).expect(0).json();
    made["token"].as_str().expect("the server answers as it should").to_owned()
}

/// Every GET path of the OpenAPI document, with its required parameters.
#[tokio::test]
async fn each_documented_view_answers() {
    let scene = Scene::with_repository();
    scene.run(&["init"]).expect(0);
    let made = scene.run(&["task", "add", "Look at it", "--new", "-o", "json"]).expect(0).json();
    let plan = made["plan"].as_str().expect("it says which plan");
    let (task, fork) = (format!("{plan}/1"), scene.run(&["fork", plan]).expect(0).stdout);
    let api = Api::start(&scene);
    let document = api.view("/api/openapi.json").await;
    let mut n_seen = 0;
    for (path, item) in document["paths"].as_object().expect("it has paths") {
        let Some(parameters) = item["get"].as_object().map(|get| get.get("parameters").cloned().unwrap_or_default())
        else {
            continue;
        };
        let is_stream = path.ends_with("/stream");
        let value = |name: &str| match name {
            "plan" | "before" => plan,
            "after" => fork.trim(),
            "position" => "1",
            "task" if path.ends_with("/prompt") => "1",
            "what" => &task,
            _agent => "nobody",
        };
        let (mut path, mut query) = (path.clone(), String::new());
        for parameter in parameters.as_array().into_iter().flatten().filter(|one| one["required"] == true) {
            let name = parameter["name"].as_str().expect("it has a name");
            match parameter["in"] == "path" {
                true => path = path.replace(&format!("{{{name}}}"), value(name)),
                false => query.push_str(&format!("&{name}={}", value(name))),
            }
        }
        let response = api.get(&format!("{path}?{query}")).await;
        let status = response.status();
        let text = if is_stream { String::new() } else { response.text().await.expect("the server answers") };
        assert!(status == 200 || text.contains("there is no agent"), "{path}?{query}: {status} {text}");
        n_seen += 1;
    }
    assert!(n_seen > 20, "{n_seen}");
}
