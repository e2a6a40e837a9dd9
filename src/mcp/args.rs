//! The arguments of a call, checked against the schema of its tool.

use std::str::FromStr;
use std::time::Duration;

use crewlog_mq::Position;
use rmcp::model::JsonObject;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::reply::Refused;
use super::schema::{fault, integer, redact};
use super::tools::Tool;
use crate::secrets::Secrets;

/// The longest arguments of a call, in bytes of JSON.
const BYTES_MAX: usize = 256 << 10;

/// Checked arguments. A null counts as absent.
#[derive(Debug, Clone)]
pub struct Args {
    tool: Tool,
    values: JsonObject,
}

impl Args {
    /// Checks arguments and redacts secrets in their texts. Unknown arguments are passed over.
    pub fn check(tool: Tool, values: Option<JsonObject>, secrets: &Secrets) -> Result<Self, Refused> {
        let mut values = values.unwrap_or_default();
        let n_bytes = Value::Object(values.clone()).to_string().len();
        if n_bytes > BYTES_MAX {
            let why = format!("the arguments have {n_bytes} bytes; at most {BYTES_MAX}");
            return Err(Refused::invalid("too_long", why));
        }
        values.retain(|_, value| !value.is_null());
        if let Some(why) = fault(tool.input(), &values) {
            return Err(Refused::invalid("invalid_argument", why));
        }
        redact(tool.input(), &mut values, &|text| secrets.redacted(text));
        Ok(Self { tool, values })
    }

    /// A digest of the known arguments, without the ones named.
    pub fn digest(&self, without: &[&str]) -> String {
        let known = self.tool.input().filter(|field| !without.contains(&field.name.as_str()));
        let known: Vec<_> = known.map(|field| (&field.name, self.values.get(&field.name))).collect();
        hex(&Sha256::digest(serde_json::to_vec(&known).unwrap_or_default()))
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    pub fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    /// A text, empty if absent.
    pub fn string(&self, name: &str) -> String {
        self.owned(name).unwrap_or_default()
    }

    pub fn strings(&self, name: &str) -> Vec<String> {
        strings(self.get(name))
    }

    pub fn numbers<T: TryFrom<i64>>(&self, name: &str) -> Vec<T> {
        let values = self.get(name).and_then(Value::as_array).into_iter().flatten();
        values.filter_map(integer).filter_map(|number| T::try_from(number).ok()).collect()
    }

    pub fn objects(&self, name: &str) -> impl Iterator<Item = &JsonObject> {
        self.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
    }

    fn or_default(&self, name: &str) -> Option<Value> {
        let default = || self.tool.input().find(|field| field.name == name)?.default();
        self.get(name).cloned().or_else(default)
    }

    pub fn flag(&self, name: &str) -> bool {
        self.or_default(name).is_some_and(|value| value == Value::Bool(true))
    }

    pub fn number<T: TryFrom<i64>>(&self, name: &str) -> Option<T> {
        self.or_default(name).as_ref().and_then(integer).and_then(|number| T::try_from(number).ok())
    }

    pub fn position(&self, name: &str) -> Option<Position> {
        self.number(name).map(Position)
    }

    pub fn seconds(&self, name: &str) -> Duration {
        Duration::from_secs(self.number(name).unwrap_or_default())
    }

    /// One of the choices.
    pub fn choice<T: FromStr>(&self, name: &str) -> Option<T> {
        self.or_default(name)?.as_str()?.parse().ok()
    }
}

/// The strings of a list.
pub fn strings(value: Option<&Value>) -> Vec<String> {
    let values = value.and_then(Value::as_array).into_iter().flatten();
    values.filter_map(Value::as_str).map(str::to_owned).collect()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
