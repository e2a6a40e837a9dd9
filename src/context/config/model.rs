//! The section of `crewlog.toml` on the model. No key is read here.

use std::num::NonZeroU32;
use std::time::Duration;

use crewlog_executors::model::{Key, Prices, Settings, is_provider};
use crewlog_executors::programs::ProgramConsent;
use crewlog_planner::event::{RetryClass, RetryPolicy};
use crewlog_planner::model::ModelParameters;
use crewlog_planner::text::millis;
use serde::Deserialize;
use serde::de::Deserializer;

use super::values::checked;
use crate::cli::typed::Typed;

const NAME_CHARS_MAX: usize = 200;
const RETRIES_MAX: u32 = 10;
/// The highest price of a million tokens.
const PRICE_MAX: f64 = 1_000_000.0;
const TIMEOUT_MAX: Duration = Duration::from_secs(3600);
/// The time for an answer where none is given.
const TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "ModelToml")]
pub struct ModelConfig {
    pub parameters: ModelParameters,
    pub settings: Settings,
    pub retry_policy: RetryPolicy,
    /// It plans, unless a command overrides this.
    pub plan: bool,
    /// The agreement that it needs: it is sent a key, and the texts of plans.
    pub consent: Option<ProgramConsent>,
}

impl ModelConfig {
    /// True unless it lacks the agreement of a person.
    pub fn may_be_asked(&self) -> bool {
        self.consent.as_ref().is_none_or(ProgramConsent::is_given)
    }

    /// Where texts go, and with which key.
    pub fn shown(&self) -> String {
        let Settings { provider, endpoint, key, .. } = &self.settings;
        let key = match key {
            Key::Variable(name) => format!(", with the key in {name}"),
            Key::None => String::new(),
        };
        format!("{} at {}{key}", self.parameters.model, endpoint.as_ref().unwrap_or(provider))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelToml {
    #[serde(deserialize_with = "name")]
    name: String,
    #[serde(default, deserialize_with = "provider")]
    provider: Option<String>,
    #[serde(default, deserialize_with = "endpoint")]
    endpoint: Option<String>,
    #[serde(default, deserialize_with = "variable")]
    api_key_env: Option<String>,
    max_tokens: Option<NonZeroU32>,
    #[serde(default, deserialize_with = "temperature")]
    temperature: Option<f64>,
    timeout: Option<Typed<Duration>>,
    #[serde(default = "yes")]
    stream: bool,
    #[serde(default, deserialize_with = "retries")]
    retries: Option<u32>,
    backoff: Option<Typed<Duration>>,
    #[serde(default, deserialize_with = "price")]
    price_per_million_input: Option<u64>,
    #[serde(default, deserialize_with = "price")]
    price_per_million_output: Option<u64>,
    #[serde(default = "yes")]
    plan: bool,
}

fn yes() -> bool {
    true
}

fn name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    checked(from, |typed: String| match typed.trim() {
        name if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || name.contains(char::is_whitespace) => {
            Err(format!("the name of a model has 1 to {NAME_CHARS_MAX} characters, without spaces"))
        }
        name => Ok(name.to_owned()),
    })
}

fn provider<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    checked(from, |provider: String| {
        let help = "openai and anthropic are; many others use the protocol of openai: set endpoint too";
        let message = format!("no provider is called {provider:?}: {help}");
        is_provider(&provider).then_some(Some(provider)).ok_or(message)
    })
}

fn endpoint<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    checked(from, |url: String| {
        let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
        if host.contains('@') {
            return Err("an endpoint holds no password: name the variable with the key, api_key_env = \"...\"".into());
        }
        if host.is_empty() || host.starts_with('/') || host.contains(char::is_whitespace) {
            let help = "write its whole beginning, with the version: http://127.0.0.1:8080/v1";
            return Err(format!("invalid endpoint {url:?}: {help}"));
        }
        Ok(Some(url))
    })
}

/// The name of a variable. Since it may be a key by mistake, it is not repeated.
fn variable<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    checked(from, |name: String| {
        let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !is_plain {
            let help = "put the key into a variable, and the variable's name here: OPENAI_API_KEY";
            return Err(format!("api_key_env is the name of a variable of the environment: {help}"));
        }
        Ok(Some(name))
    })
}

fn temperature<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    checked(from, |temperature: f64| match (0.0..=2.0).contains(&temperature) {
        true => Ok(Some(temperature)),
        false => Err("the temperature is 0 to 2".into()),
    })
}

fn retries<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    checked(from, |retries: i64| {
        let retries = u32::try_from(retries).ok().filter(|retries| *retries <= RETRIES_MAX);
        retries.map(Some).ok_or(format!("retries is 0 to {RETRIES_MAX}"))
    })
}

/// A price in millionths.
fn price<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    checked(from, |price: f64| match (0.0..=PRICE_MAX).contains(&price) {
        // Within its limit it is a whole number that fits.
        true => Ok(Some((price * 1_000_000.0).round() as u64)),
        false => Err(format!("a price is 0 to {PRICE_MAX}")),
    })
}

impl TryFrom<ModelToml> for ModelConfig {
    type Error = String;

    fn try_from(written: ModelToml) -> Result<Self, String> {
        let prices = match (written.price_per_million_input, written.price_per_million_output) {
            (None, None) => None,
            (Some(input), Some(output)) => Some(Prices { input, output }),
            (Some(_), None) | (None, Some(_)) => {
                return Err("one price without the other: give price_per_million_input and _output".into());
            }
        };
        let retry_policy = RetryClass::Transient.policy();
        let timeout = written.timeout.map_or(TIMEOUT, |timeout| timeout.value);
        let first_ms = written.backoff.map_or(retry_policy.first_ms, |backoff| millis(backoff.value));
        let backoff = ("backoff", Duration::from_millis(first_ms), Duration::from_millis(retry_policy.longest_ms));
        for (field, duration, max) in [("timeout", timeout, TIMEOUT_MAX), backoff] {
            if duration > max {
                return Err(format!("{field} is too long: it is at most {} s", max.as_secs()));
            }
        }
        // The provider's own address has a usual variable; another endpoint gets no key unasked.
        let provider = written.provider.unwrap_or_else(|| "openai".to_owned());
        let key = match (written.api_key_env, &written.endpoint, provider.as_str()) {
            (Some(name), _, _) => Key::Variable(name),
            (None, None, "openai") => Key::Variable("OPENAI_API_KEY".into()),
            (None, None, "anthropic") => Key::Variable("ANTHROPIC_API_KEY".into()),
            (None, _, _) => Key::None,
        };
        let ModelToml { endpoint, stream, plan, .. } = written;
        let max_tokens = written.max_tokens.map(NonZeroU32::get);
        Ok(Self {
            parameters: ModelParameters { model: written.name, max_tokens, temperature: written.temperature },
            settings: Settings { provider, endpoint, key, timeout, stream, prices },
            retry_policy: RetryPolicy {
                count: written.retries.unwrap_or(retry_policy.count),
                first_ms,
                ..retry_policy
            },
            plan,
            consent: None,
        })
    }
}
