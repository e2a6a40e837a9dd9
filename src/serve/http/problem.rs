//! Refusals of requests, in the form of RFC 9457 (`application/problem+json`).

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use crewlog_mq::Error;
use serde::Serialize;
use utoipa::ToSchema;

use crate::serve::mcp::Repeated;
use crate::ui::failure::{Code, Failure, Why};

/// The reason why a request is refused. Nothing has changed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Problem {
    /// `about:blank`, or `consent`: the field `yes` would allow it.
    pub r#type: &'static str,
    pub title: String,
    pub status: u16,
    /// The problem.
    pub detail: String,
    pub hints: Vec<String>,
    /// For consent, the commands that would run; otherwise warnings.
    pub notes: Vec<String>,
}

impl Problem {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            r#type: "about:blank",
            title: status.canonical_reason().unwrap_or_default().to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            hints: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a remedy.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// A command that panicked, as the server's standard error says.
    pub fn bug(command: &str) -> Self {
        let detail = format!("a bug in crewlog stopped {command}, which may have appended events");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail).hint("look at the plan before you send it again")
    }

    /// A body or parameters in a wrong form.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        let status = match (failure.why, failure.code) {
            (Why::Fault | Why::WentBack, _) => StatusCode::SERVICE_UNAVAILABLE,
            (Why::Unconsented, _) | (_, Code::Forbidden) => StatusCode::FORBIDDEN,
            (Why::Refused, Code::Nothing) => StatusCode::NOT_FOUND,
            (Why::Refused, Code::User | Code::Parse) => StatusCode::UNPROCESSABLE_ENTITY,
            (Why::Refused | Why::Declined, _of_the_state) => StatusCode::CONFLICT,
        };
        let r#type = if failure.why == Why::Unconsented { "consent" } else { "about:blank" };
        Self { r#type, hints: failure.hints, ..Self::new(status, failure.message) }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Failure::from(error).into()
    }
}

impl From<Repeated> for Problem {
    fn from(repeated: Repeated) -> Self {
        let hint = match repeated {
            Repeated::KeyReused => "choose another key for another call",
            Repeated::InProgress => "call again in a moment",
            Repeated::ResultLost => "do not repeat it: look at its effect",
        };
        Self::new(StatusCode::CONFLICT, repeated.to_string()).hint(hint)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_string(&self).unwrap_or_default();
        let mut response = (status, [(CONTENT_TYPE, "application/problem+json")], body).into_response();
        // For a person it becomes a page.
        response.extensions_mut().insert(self);
        let headers = response.headers_mut();
        match status {
            StatusCode::UNAUTHORIZED => drop(headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _another => {}
        }
        response
    }
}
