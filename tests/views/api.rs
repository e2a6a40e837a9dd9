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
