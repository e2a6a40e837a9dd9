//! The parameters in the address of the page. Every state of the page has an address.

use std::collections::BTreeMap;

/// The parameters that the page knows; others are ignored.
const KEYS: [&str; 15] = [
    "at", "before", "event", "lanes", "mark", "plan", "prompt", "q", "said", "scope", "step", "tab", "task", "type",
    "with",
];
/// The longest value in bytes; longer ones are ignored.
const VALUE_BYTES_MAX: usize = 4_096;

/// A view with its own page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Tab {
    Overview,
    Graph,
    Files,
    Events,
    Statistics,
}

impl Tab {
    pub const ALL: &[Self] = <Self as strum::VariantArray>::VARIANTS;

    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// `Overview`
    pub fn title(self) -> String {
        format!("{self:?}")
    }
}

/// The query of an address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked(BTreeMap<&'static str, String>);

impl Asked {
    /// From the names and values of a query; empty values count as absent, as in a form that was not filled in.
    pub fn of(pairs: &[(String, String)]) -> Self {
        let known = |(name, value): &(String, String)| {
            let key = KEYS.into_iter().find(|key| key == name)?;
            (!value.is_empty() && value.len() <= VALUE_BYTES_MAX).then(|| (key, value.clone()))
        };
        Self(pairs.iter().filter_map(known).collect())
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// A number that is not negative.
    pub fn number(&self, key: &str) -> Option<i64> {
        self.get(key)?.parse().ok().filter(|n| *n >= 0)
    }

    pub fn is(&self, key: &str, value: &str) -> bool {
        self.get(key) == Some(value)
    }

    pub fn tab(&self) -> Tab {
        self.get("tab").and_then(|tab| tab.parse().ok()).unwrap_or(Tab::Overview)
    }

    /// The parameters with changes; an empty value removes a parameter.
    pub fn but(&self, changes: &[(&'static str, &str)]) -> Self {
        let mut asked = self.clone();
        for (key, value) in changes {
            asked.0.remove(key);
            if !value.is_empty() {
                asked.0.insert(key, (*value).to_owned());
            }
        }
        asked
    }

    /// The address of the page with these changes. Messages are shown only once.
    pub fn link(&self, changes: &[(&'static str, &str)]) -> String {
        let query = self.but(&[("said", "")]).but(changes).query();
        if query.is_empty() { "/".to_owned() } else { format!("/?{query}") }
    }

    /// The query in a normal form.
    pub fn query(&self) -> String {
        let pairs: Vec<_> = self.0.iter().map(|(key, value)| format!("{key}={}", encoded(value))).collect();
        pairs.join("&")
    }

    /// The parameters except some, for the hidden fields of a form.
    pub fn except(&self, keys: &[&str]) -> Vec<(&'static str, String)> {
        let kept = self.0.iter().filter(|(key, _)| !keys.contains(key) && **key != "said");
        kept.map(|(key, value)| (*key, value.clone())).collect()
    }
}

/// A value encoded for a query.
fn encoded(value: &str) -> String {
    let mut query = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => query.push(char::from(byte)),
            b' ' => query.push('+'),
            other => query.push_str(&format!("%{other:02X}")),
        }
    }
    query
}
