//! Accepts or refuses requests.

use axum::response::IntoResponse;
use std::sync::Arc;
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HOST, LOCATION, ORIGIN, SET_COOKIE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::access::{Caller, Credentials};
use super::forms::sentence;
use super::problem::Problem;
use crate::serve::mcp::{MESSAGE_BYTES_MAX, Rates};
use crate::serve::page::{Framed, Site};

pub const MCP: &str = "/mcp";

/// The most concurrent requests of people and programs, and of agents, half of which may wait for news; further ones wait.
const REQUESTS_MAX: usize = 256;
const AGENTS_MAX: usize = 512;

/// The time limit for the body of a request.
const BODY_MAX: Duration = Duration::from_secs(10);

/// The most requests of a caller per second. An agent has a rate of its own.
const RATE_MAX: u32 = 500;

/// The policy for pages: they may load and run only content of this server.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

pub struct Guard {
    site: Arc<Site>,
    credentials: Arc<Credentials>,
    hosts: Vec<String>,
    free: Semaphore,
    free_for_agents: Semaphore,
    rates: Rates,
}

pub async fn guard(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let accepted = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    let is_person = accepted.is_some_and(|accepted| accepted.contains("text/html"));
    let (mut response, is_within) = match guard.judge(&request) {
        Ok(caller) => (guard.answer(caller, request, next).await, true),
        Err(refused) => (*refused, false),
    };
    if is_person && is_refusal(&response) {
        response = guard.page(response, is_within).await;
    }
    let headers = response.headers_mut();
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

/// True for a refusal that is not a page yet.
fn is_refusal(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    response.status().as_u16() >= 400 && !kind.starts_with(b"text/html")
}

fn signed_out(why: &str) -> Box<Response> {
    let problem = Problem::new(StatusCode::UNAUTHORIZED, why)
        .hint("open the address that `crewlog serve` printed; it works once: `crewlog serve link` prints a new one")
        .hint("programs send Authorization: Bearer TOKEN");
    Box::new(problem.into_response())
}

impl Guard {
    pub fn new(credentials: Arc<Credentials>, hosts: Vec<String>, site: Arc<Site>) -> Self {
        let (free, free_for_agents) = (Semaphore::new(REQUESTS_MAX), Semaphore::new(AGENTS_MAX));
        Self { site, credentials, hosts, free, free_for_agents, rates: Rates::default() }
    }

    /// A refusal as a page. A browser that was not let in sees nothing of the project.
    async fn page(&self, refused: Response, is_within: bool) -> Response {
        let status = refused.status();
        let problem = refused.extensions().get::<Problem>().cloned();
        let problem = problem.unwrap_or_else(|| Problem::new(status, "this address has nothing for a browser"));
        let framed = Framed::refusal(
            status,
            &sentence(&problem.detail),
            problem.hints.iter().map(|hint| sentence(hint)).collect(),
        );
        if is_within { self.site.framed(&framed).await } else { Framed { links: Vec::new(), ..framed }.bare() }
    }

    /// Returns the caller, or the answer to a refused request.
    fn judge(&self, request: &Request) -> Result<Caller, Box<Response>> {
        let (uri, headers) = (request.uri(), request.headers());
        let is_mcp = uri.path() == MCP;
        let refused = |status, why: &str| Box::new(Problem::new(status, why).into_response());
        // For `/mcp` the protocol's library checks both.
        if !is_mcp && !headers.get(HOST).is_some_and(|host| self.is_known(host.as_bytes())) {
            return Err(refused(StatusCode::FORBIDDEN, "the Host header is not allowed"));
        }
        if !is_mcp && !self.is_own_origin(headers) {
            return Err(refused(StatusCode::FORBIDDEN, "the Origin header is not allowed"));
        }
        let token = uri.query().and_then(|query| query.strip_prefix("token="));
        if let Some(token) = token.filter(|_| uri.path() == "/" && request.method() == Method::GET) {
            let why = "this address was used already, or is wrong";
            return Err(match self.credentials.redeem(token) {
                Some(cookie) => {
                    Box::new((StatusCode::SEE_OTHER, [(SET_COOKIE, cookie), (LOCATION, "/".into())]).into_response())
                }
                None => signed_out(why),
            });
        }
        let unreadable = |failure| Box::new(Problem::from(failure).into_response());
        let caller = self.credentials.caller(headers).map_err(unreadable)?;
        let caller = caller.ok_or_else(|| signed_out("this browser or program is not signed in"))?;
        let is_api = uri.path().starts_with("/api/");
        match &caller {
            Caller::Agent if !is_mcp => Err(refused(StatusCode::FORBIDDEN, "an agent may use /mcp only")),
            Caller::Person | Caller::Token { .. } if is_mcp => {
                Err(refused(StatusCode::FORBIDDEN, "/mcp is for agents"))
            }
            Caller::Token { .. } if !is_api => Err(refused(StatusCode::FORBIDDEN, "a token is for /api only")),
            Caller::Person | Caller::Token { .. } if !self.rates.is_within(&format!("{caller:?}"), RATE_MAX) => {
                Err(refused(StatusCode::TOO_MANY_REQUESTS, "more than 500 requests in a second"))
            }
            Caller::Agent | Caller::Person | Caller::Token { .. } => Ok(caller),
        }
    }

    fn is_known(&self, host: &[u8]) -> bool {
        self.hosts.iter().any(|known| known.as_bytes() == host)
    }

    /// True unless a page of another server made the request.
    fn is_own_origin(&self, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(ORIGIN) else { return true };
        let origin = origin.as_bytes();
        let host = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
        host.is_some_and(|host| self.is_known(host))
    }

    /// Reads the whole body first, so that a slow client takes no permit.
    async fn answer(&self, caller: Caller, request: Request, next: Next) -> Response {
        let (mut head, body) = request.into_parts();
        let free = if caller == Caller::Agent { &self.free_for_agents } else { &self.free };
        head.extensions.insert(caller);
        let body = match timeout(BODY_MAX, to_bytes(body, MESSAGE_BYTES_MAX)).await {
            Ok(Ok(body)) => body,
            Ok(Err(_)) => {
                let why = "the body is broken, or longer than 1 MiB";
                return Problem::new(StatusCode::PAYLOAD_TOO_LARGE, why).into_response();
            }
            Err(_) => {
                return Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time").into_response();
            }
        };
        // The semaphore is never closed.
        let _permit = free.acquire().await;
        next.run(Request::from_parts(head, body.into())).await
    }
}
