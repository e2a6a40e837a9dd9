//! The model that plans, as `crewlog.toml` says. Nobody is asked here, and no key is read.

use std::time::Duration;

use crewlog_executors::model::{Key, Prices, RetryPolicy, Settings, is_provider};
use crewlog_planner::model::Terms;
use serde::Deserialize;
use toml::Spanned;

use super::Fault;
use crate::cli;

/// The most characters of a model's name.
const NAME_CHARS_MAX: usize = 200;
/// The most times a model is asked again.
const RETRIES_MAX: i64 = 10;
/// The highest price of a million tokens.
const PRICE_MAX: f64 = 1_000_000.0;
/// The longest time for an answer.
const TIMEOUT_MAX: Duration = Duration::from_secs(3600);
/// The time for an answer where none is given.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The model that is configured.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// Which model, and how it is asked.
    pub terms: Terms,
    /// How its provider is spoken to.
    pub settings: Settings,
    /// How often it is asked again.
    pub retry_policy: RetryPolicy,
    /// It plans, where a command does not say otherwise.
    pub plan: bool,
    /// It writes the summaries of what has happened.
    pub summaries: bool,
}

/// The section as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelToml {
    name: Spanned<String>,
    provider: Option<Spanned<String>>,
    endpoint: Option<Spanned<String>>,
    api_key_env: Option<Spanned<String>>,
    max_tokens: Option<Spanned<i64>>,
    temperature: Option<Spanned<f64>>,
    timeout: Option<Spanned<String>>,
    #[serde(default = "yes")]
    stream: bool,
    retries: Option<Spanned<i64>>,
    backoff: Option<Spanned<String>>,
    price_per_million_input: Option<Spanned<f64>>,
    price_per_million_output: Option<Spanned<f64>>,
    #[serde(default = "yes")]
    plan: bool,
    #[serde(default = "yes")]
    summaries: bool,
}

fn yes() -> bool {
    true
}

/// The name of a model, as its provider calls it.
pub(super) fn checked_name(typed: &Spanned<String>) -> Result<String, Fault> {
    let name = typed.get_ref().trim();
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX {
        return Err(Fault::of(typed, format!("the name of a model has 1 to {NAME_CHARS_MAX} characters")));
    }
    Ok(name.to_owned())
}

/// The model of a section.
pub(super) fn model(written: ModelToml) -> Result<ModelConfig, Fault> {
    let name = checked_name(&written.name)?;
    let provider = match written.provider {
        Some(typed) if is_provider(typed.get_ref()) => typed.into_inner(),
        Some(typed) => {
            let message = format!("no provider is called {:?}", typed.get_ref());
            let help = "openai and anthropic are; many others speak the protocol of openai: set endpoint too";
            return Err(Fault::of(&typed, message).help(help));
        }
        None => "openai".to_owned(),
    };
    let endpoint = written.endpoint.map(checked_endpoint).transpose()?;
    let key = key(&provider, endpoint.as_deref(), written.api_key_env)?;
    let max_tokens = written.max_tokens.map(|typed| {
        let n_tokens = u32::try_from(*typed.get_ref()).ok().filter(|n_tokens| *n_tokens > 0);
        n_tokens.ok_or_else(|| Fault::of(&typed, "max_tokens is a number from 1"))
    });
    let temperature = written.temperature.map(|typed| match *typed.get_ref() {
        temperature if (0.0..=2.0).contains(&temperature) => Ok(temperature),
        _outside => Err(Fault::of(&typed, "the temperature is 0 to 2")),
    });
    let default = RetryPolicy::default();
    let retries_max = written.retries.map(|typed| match *typed.get_ref() {
        retries @ 0..=RETRIES_MAX => u32::try_from(retries).map_err(|_| Fault::of(&typed, "no number of retries")),
        _outside => Err(Fault::of(&typed, format!("retries is 0 to {RETRIES_MAX}"))),
    });
    let first = written.backoff.map(|typed| duration(&typed, default.longest)).transpose()?.unwrap_or(default.first);
    let timeout = written.timeout.map(|typed| duration(&typed, TIMEOUT_MAX)).transpose()?.unwrap_or(TIMEOUT);
    let prices = prices(written.price_per_million_input, written.price_per_million_output)?;
    Ok(ModelConfig {
        terms: Terms { model: name, max_tokens: max_tokens.transpose()?, temperature: temperature.transpose()? },
        settings: Settings { provider, endpoint, key, timeout, stream: written.stream, prices },
        retry_policy: RetryPolicy {
            retries_max: retries_max.transpose()?.unwrap_or(default.retries_max),
            first,
            ..default
        },
        plan: written.plan,
        summaries: written.summaries,
    })
}

fn checked_endpoint(typed: Spanned<String>) -> Result<String, Fault> {
    let url = typed.get_ref();
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    match host {
        Some(host) if host.contains('@') => Err(Fault::of(&typed, "an endpoint holds no password")
            .help("name the variable that has the key: api_key_env = \"...\"")),
        Some(host) if !host.is_empty() && !host.starts_with('/') && !host.contains(char::is_whitespace) => {
            Ok(typed.into_inner())
        }
        Some(_) | None => Err(Fault::of(&typed, format!("{url:?} is no endpoint"))
            .help("write its whole beginning, with the version: http://127.0.0.1:8080/v1")),
    }
}

/// Where the key is: as named; else, at the provider's own address, in the variable that is usual for it.
fn key(provider: &str, endpoint: Option<&str>, named: Option<Spanned<String>>) -> Result<Key, Fault> {
    if let Some(typed) = named {
        let name = typed.get_ref();
        // What looks like a key must not be shown.
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(is_name) {
            return Err(Fault::of(&typed, "api_key_env is the name of a variable of the environment")
                .help("put the key into a variable, and the variable's name here: OPENAI_API_KEY"));
        }
        return Ok(Key::Variable(typed.into_inner()));
    }
    Ok(match (provider, endpoint) {
        (_, Some(_)) => Key::None,
        ("openai", None) => Key::Variable("OPENAI_API_KEY".into()),
        ("anthropic", None) => Key::Variable("ANTHROPIC_API_KEY".into()),
        (_another, None) => Key::None,
    })
}

fn duration(typed: &Spanned<String>, max: Duration) -> Result<Duration, Fault> {
    let help = "a number with its unit: 30s, 10m";
    let duration =
        cli::duration(typed.get_ref()).map_err(|why| Fault::of(typed, format!("no duration: {why}")).help(help))?;
    if duration > max {
        return Err(Fault::of(typed, format!("it is at most {} s", max.as_secs())));
    }
    Ok(duration)
}

/// Both prices or none, in millionths.
fn prices(input: Option<Spanned<f64>>, output: Option<Spanned<f64>>) -> Result<Option<Prices>, Fault> {
    let micros = |typed: Spanned<f64>| match *typed.get_ref() {
        // Within its limit it is a whole number that fits.
        price if (0.0..=PRICE_MAX).contains(&price) => Ok((price * 1_000_000.0).round() as u64),
        _outside => Err(Fault::of(&typed, format!("a price is 0 to {PRICE_MAX}"))),
    };
    match (input, output) {
        (None, None) => Ok(None),
        (Some(input), Some(output)) => Ok(Some(Prices { input: micros(input)?, output: micros(output)? })),
        (Some(one), None) | (None, Some(one)) => {
            Err(Fault::of(&one, "one price without the other").help("give price_per_million_input and _output"))
        }
    }
}
