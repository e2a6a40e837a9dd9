//! The client of model providers: the protocols of OpenAI and Anthropic, and others that `genai` supports. It asks
//! once, within a time limit, and never leaks a key, neither into errors nor, by a redirection, to another host.

use std::fmt;
use std::time::Duration;

use crewlog_planner::event::Usage;
use crewlog_planner::model::{MessageRole, ModelMessage, ModelRequest};
use futures::StreamExt;
use futures::future::BoxFuture;
use genai::adapter::AdapterKind;
use genai::chat::{ChatMessage, ChatOptions, ChatRequest, ChatStreamEvent, JsonSpec, StopReason};
use genai::resolver::{AuthData, Endpoint, ServiceTargetResolver};
use genai::{ModelIden, ServiceTarget};
use reqwest::StatusCode;
use reqwest::header::HeaderMap;

use super::error::ModelError;
use super::reply::{ANSWER_BYTES_MAX, Model, Reply};
use crate::web;

/// Characters kept of a provider's error text.
const MESSAGE_CHARS_MAX: usize = 500;
/// Shown in place of a key.
const HIDDEN: &str = "[key]";

/// True if a provider of this name is known.
pub fn is_provider(name: &str) -> bool {
    AdapterKind::from_lower_str(name).is_some()
}

/// The source of a provider's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// No key is sent.
    None,
    /// An environment variable, which must be set.
    Variable(String),
}

/// The price of a million tokens, in millionths of a currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prices {
    /// Input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
}

impl Prices {
    /// The cost of an answer, rounded up; 0 if the tokens are unknown.
    pub fn cost_micros(&self, usage: &Usage) -> u64 {
        let of = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let sum = of(usage.input_tokens, self.input) + of(usage.output_tokens, self.output);
        let is_known = usage.input_tokens > 0 && usage.output_tokens > 0;
        if is_known { u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX) } else { 0 }
    }
}

/// A provider's protocol, address and limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Its name: `openai`, `anthropic`, or another that [`is_provider`] knows.
    pub provider: String,
    /// The beginning of its URLs; the provider's own when unset.
    pub endpoint: Option<String>,
    /// The source of its key.
    pub key: Key,
    /// The most time for an answer.
    pub timeout: Duration,
    /// True if the answer is streamed.
    pub stream: bool,
    /// Its prices.
    pub prices: Option<Prices>,
}

/// The client of one provider.
pub struct Client {
    client: genai::Client,
    kind: AdapterKind,
    secret: ApiKey,
    settings: Settings,
}

/// A key, which is never shown.
#[derive(Clone)]
struct ApiKey(Option<String>);

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl ApiKey {
    /// The text without the key.
    fn hidden_in(&self, text: &str) -> String {
        match &self.0 {
            Some(key) if !key.is_empty() => text.replace(key.as_str(), HIDDEN),
            Some(_) | None => text.to_owned(),
        }
    }
}

impl Client {
    /// A client with its key read from the environment. It does not connect yet.
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`] if the provider is unknown or the key is missing.
    pub fn new(settings: Settings) -> Result<Self, ModelError> {
        let not_configured = |message: String| ModelError::NotConfigured { message };
        let kind = AdapterKind::from_lower_str(&settings.provider)
            .ok_or_else(|| not_configured(format!("unknown provider {:?}", settings.provider)))?;
        let secret = ApiKey(match &settings.key {
            Key::None => None,
            Key::Variable(name) => {
                let key = std::env::var(name).map(|key| key.trim().to_owned());
                let key = key.ok().filter(|key| !key.is_empty());
                Some(key.ok_or_else(|| {
                    not_configured(format!("the environment variable {name} with the API key is not set"))
                })?)
            }
        });
        let web = web::client().redirect(reqwest::redirect::Policy::none()).build();
        let web = web.map_err(|error| not_configured(error.to_string()))?;
        let endpoint = settings.endpoint.as_ref().map(|url| format!("{}/", url.trim_end_matches('/')));
        let auth = AuthData::from_single(secret.0.clone().unwrap_or_else(|| "none".into()));
        let resolver = ServiceTargetResolver::from_resolver_fn(
            move |target: ServiceTarget| -> Result<ServiceTarget, genai::resolver::Error> {
                let endpoint = endpoint.clone().map_or(target.endpoint, Endpoint::from_owned);
                Ok(ServiceTarget { endpoint, auth: auth.clone(), model: target.model })
            },
        );
        let client = genai::Client::builder().with_reqwest(web).with_service_target_resolver(resolver).build();
        let client = client.map_err(|error| not_configured(error.to_string()))?;
        Ok(Self { client, kind, secret, settings })
    }

    async fn answer(&self, request: &ModelRequest) -> Result<Reply, ModelError> {
        let mut options = ChatOptions::default().with_capture_usage(true);
        options.max_tokens = request.parameters.max_tokens;
        options.temperature = request.parameters.temperature;
        if let Some(schema) = &request.schema {
            let schema: serde_json::Value = serde_json::from_str(schema).map_err(|error| {
                ModelError::NotConfigured { message: format!("the schema is not valid JSON: {error}") }
            })?;
            options.response_format =
                Some(JsonSpec::new(format!("{:?}", request.purpose).to_lowercase(), schema).into());
        }
        let messages = request.messages.iter().map(|ModelMessage { role, text }| match role {
            MessageRole::User => ChatMessage::user(text.clone()),
            MessageRole::Assistant => ChatMessage::assistant(text.clone()),
        });
        let asked = ChatRequest::new(messages.collect()).with_system(request.system.clone());
        let model = ModelIden::new(self.kind, request.parameters.model.clone());
        let Taken { text, usage, stop, model } = if self.settings.stream {
            self.stream(model, asked, &options).await?
        } else {
            self.whole(model, asked, &options).await?
        };
        match stop {
            Some(StopReason::MaxTokens(_)) => {
                let max =
                    request.parameters.max_tokens.map_or_else(|| "its provider allows".into(), |max| format!("{max}"));
                return Err(ModelError::TooLong { what: format!("{max} tokens") });
            }
            Some(StopReason::ContentFilter(why)) => {
                return Err(ModelError::Refused { message: format!("the content ({why})") });
            }
            Some(
                StopReason::Completed(_) | StopReason::ToolCall(_) | StopReason::StopSequence(_) | StopReason::Other(_),
            )
            | None => {}
        }
        check_length(&text)?;
        let cost_micros = self.settings.prices.map_or(0, |prices| prices.cost_micros(&usage));
        Ok(Reply { text: self.secret.hidden_in(&text), usage: Usage { cost_micros, ..usage }, model })
    }

    async fn whole(&self, model: ModelIden, asked: ChatRequest, options: &ChatOptions) -> Result<Taken, ModelError> {
        let response = self.client.exec_chat(model, asked, Some(options)).await.map_err(|error| self.error(&error))?;
        Ok(Taken {
            usage: usage_of(&response.usage),
            stop: response.stop_reason.clone(),
            model: response.provider_model_iden.model_name.to_string(),
            text: response.into_texts().concat(),
        })
    }

    async fn stream(&self, model: ModelIden, asked: ChatRequest, options: &ChatOptions) -> Result<Taken, ModelError> {
        let name = model.model_name.to_string();
        let opened = self.client.exec_chat_stream(model, asked, Some(options)).await;
        let mut stream = opened.map_err(|error| self.error(&error))?.stream;
        let mut text = String::new();
        while let Some(event) = stream.next().await {
            match event.map_err(|error| self.error(&error))? {
                ChatStreamEvent::Chunk(chunk) => {
                    text.push_str(&chunk.content);
                    check_length(&text)?;
                }
                ChatStreamEvent::End(end) => {
                    let usage = end.captured_usage.as_ref().map(usage_of).unwrap_or_default();
                    return Ok(Taken { text, usage, stop: end.captured_stop_reason, model: name });
                }
                ChatStreamEvent::Start
                | ChatStreamEvent::ReasoningChunk(_)
                | ChatStreamEvent::ThoughtSignatureChunk(_)
                | ChatStreamEvent::ToolCallChunk(_)
                | ChatStreamEvent::Heartbeat => {}
            }
        }
        Err(ModelError::CutOff { message: format!("the stream ended after {} characters", text.chars().count()) })
    }

    /// Maps a protocol error.
    fn error(&self, error: &genai::Error) -> ModelError {
        match error {
            genai::Error::HttpError { status, body, headers, .. } => self.refusal(*status, body, Some(headers)),
            genai::Error::WebModelCall { webc_error, .. } | genai::Error::WebAdapterCall { webc_error, .. } => {
                match webc_error {
                    genai::webc::Error::ResponseFailedStatus { status, body, headers } => {
                        self.refusal(*status, body, Some(headers))
                    }
                    genai::webc::Error::Reqwest(error) => self.transport(error),
                    genai::webc::Error::ResponseFailedNotJson { .. }
                    | genai::webc::Error::ResponseFailedInvalidJson { .. }
                    | genai::webc::Error::JsonValueExt(_) => self.malformed(&webc_error.to_string()),
                }
            }
            genai::Error::WebStream { error, cause, .. } => {
                if let Some(error) = error.downcast_ref::<genai::Error>() {
                    self.error(error)
                } else if let Some(error) = error.downcast_ref::<reqwest::Error>() {
                    self.transport(error)
                } else {
                    ModelError::CutOff { message: self.shown(cause) }
                }
            }
            genai::Error::ChatResponse { body, .. } => self.event(body),
            genai::Error::ChatResponseGeneration { cause, .. } => self.malformed(cause),
            genai::Error::Resolver { .. }
            | genai::Error::RequiresApiKey { .. }
            | genai::Error::NoAuthResolver { .. }
            | genai::Error::NoAuthData { .. } => ModelError::NotConfigured { message: self.shown(&error.to_string()) },
            // All others concern one request or one answer, and name it.
            other => self.malformed(&other.to_string()),
        }
    }

    /// Maps an HTTP status other than success.
    fn refusal(&self, status: StatusCode, body: &str, headers: Option<&HeaderMap>) -> ModelError {
        let retry_after = headers.and_then(retry_after);
        let message = self.shown(&said_in(body));
        match status.as_u16() {
            429 if body.contains("insufficient_quota") => ModelError::Refused { message },
            429 => ModelError::RateLimited { retry_after, message },
            503 | 529 => ModelError::Overloaded { retry_after, message },
            408 => ModelError::TimedOut { after: self.settings.timeout },
            status @ 500.. => ModelError::Server { status, message },
            status => ModelError::Refused { message: format!("HTTP {status}: {message}") },
        }
    }

    /// Maps an error within a stream.
    fn event(&self, body: &serde_json::Value) -> ModelError {
        let error = body.get("error").unwrap_or(body);
        let text = |key: &str| error.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
        let message = self.shown(if text("message").is_empty() { text("type") } else { text("message") });
        match text("type") {
            "overloaded_error" => ModelError::Overloaded { retry_after: None, message },
            "rate_limit_error" => ModelError::RateLimited { retry_after: None, message },
            "invalid_request_error" | "authentication_error" | "permission_error" => ModelError::Refused { message },
            _other => ModelError::Server { status: 200, message },
        }
    }

    fn transport(&self, error: &reqwest::Error) -> ModelError {
        if error.is_timeout() {
            return ModelError::TimedOut { after: self.settings.timeout };
        }
        let mut message = error.to_string();
        let mut source = std::error::Error::source(error);
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        let message = self.shown(&message);
        if error.is_connect() {
            ModelError::Unreachable { message }
        } else if error.is_builder() {
            ModelError::NotConfigured { message }
        } else {
            ModelError::CutOff { message }
        }
    }

    fn malformed(&self, message: &str) -> ModelError {
        ModelError::Malformed { message: self.shown(message) }
    }

    /// A message of a provider or a library, shortened and without the key.
    fn shown(&self, text: &str) -> String {
        let text = self.secret.hidden_in(text);
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut shown = line.chars().take(MESSAGE_CHARS_MAX).collect::<String>();
        if shown.len() < line.len() {
            shown.push_str(" ...");
        }
        shown
    }
}

impl Model for Client {
    fn ask<'a>(&'a self, request: &'a ModelRequest) -> BoxFuture<'a, Result<Reply, ModelError>> {
        let after = self.settings.timeout;
        Box::pin(async move {
            let answered = tokio::time::timeout(after, self.answer(request)).await;
            answered.unwrap_or(Err(ModelError::TimedOut { after }))
        })
    }
}

/// The result of one request.
struct Taken {
    text: String,
    usage: Usage,
    stop: Option<StopReason>,
    model: String,
}

fn check_length(text: &str) -> Result<(), ModelError> {
    if text.len() > ANSWER_BYTES_MAX {
        return Err(ModelError::TooLong { what: format!("{ANSWER_BYTES_MAX} bytes") });
    }
    Ok(())
}

fn usage_of(usage: &genai::chat::Usage) -> Usage {
    let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok()).unwrap_or(0);
    let (input_tokens, output_tokens) = (count(usage.prompt_tokens), count(usage.completion_tokens));
    Usage { input_tokens, output_tokens, ..Usage::default() }
}

/// The wait that a provider asks for. Dates are not supported.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|ms| ms / 1_000.0).or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The message in the body of an error, or else the whole body.
fn said_in(body: &str) -> String {
    let parsed = serde_json::from_str::<serde_json::Value>(body).ok();
    let message = parsed.as_ref().and_then(|body| body.pointer("/error/message").or_else(|| body.pointer("/message")));
    message.and_then(serde_json::Value::as_str).unwrap_or(body).to_owned()
}
