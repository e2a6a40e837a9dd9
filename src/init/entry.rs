//! The entries that crewlog keeps in the configuration of agent programs, and when an existing value already serves.

use serde_json::Value;

/// Something that crewlog needs in a JSON or TOML file, by the keys that lead to it.
#[derive(Debug, Clone)]
pub enum Entry {
    /// A member of an object. An object is merged into one that is there, so members that a person added stay.
    Member(Vec<String>, Value),
    /// An element of an array that others use too: a string, or a group of hooks.
    Element(Vec<String>, Value),
    /// A member that a person may have come to rely on. It is taken out only when a whole file is restored.
    Trust(Vec<String>, Value),
}

/// The keys of an entry, as text.
pub fn keys(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|&key| key.to_owned()).collect()
}

/// A parse error or a value of the wrong type.
#[derive(Debug)]
pub struct Wrong {
    /// Line and column, from 1, where the parser gives them.
    pub at: Option<(usize, usize)>,
    /// What is wrong, without the path of the file.
    pub what: String,
}

impl Wrong {
    /// Something wrong with the file as a whole.
    pub fn at_all(what: impl Into<String>) -> Self {
        Self { at: None, what: what.into() }
    }

    /// What is wrong, after the path of the file.
    pub fn of(&self, path: &str) -> String {
        match self.at {
            Some((line, column)) => format!("{path}:{line}:{column}: {}", self.what),
            None => format!("{path}: {}", self.what),
        }
    }

    /// A value of the wrong type, found by its keys.
    pub fn kind(keys: &[String], found: &str, wanted: &str) -> Self {
        let keys = keys.join(".");
        let name = if keys.is_empty() { "the file".to_owned() } else { format!("`{keys}`") };
        Self::at_all(format!("{name} is {found}, not {wanted}"))
    }
}

/// True where an existing value does what the wanted one does. A person may set a time-out, add members,
/// arguments and tools to match, name the program by its path, or connect to the server by a URL.
pub fn serves(existing: &Value, wanted: &Value) -> bool {
    match (existing, wanted) {
        (Value::Object(existing), Value::Object(wanted)) => {
            let is_remote = existing.contains_key("url") || existing.contains_key("httpUrl");
            let has = |(key, value)| existing.get(key).is_some_and(|existing| serves(existing, value));
            (is_remote && wanted.contains_key("command")) || wanted.iter().all(has)
        }
        (Value::Array(existing), Value::Array(wanted)) => {
            wanted.iter().all(|wanted| existing.iter().any(|existing| serves(existing, wanted)))
        }
        (Value::Number(_), Value::Number(_)) => true,
        (Value::String(existing), Value::String(wanted)) => {
            let has = |tool| existing.split('|').any(|existing| existing == tool);
            wanted.split('|').all(has) || (wanted == "crewlog" && existing.ends_with("/crewlog"))
        }
        _ => existing == wanted,
    }
}

/// True of a hook that runs `crewlog hook`, in this form or another.
pub fn is_our_hook(hook: &Value) -> bool {
    let command = hook.get("command").and_then(Value::as_str).unwrap_or_default();
    let mut words = command.split_whitespace();
    let program = words.next().and_then(|program| program.rsplit('/').next());
    // More than arguments, such as a second command, is somebody else's addition.
    let is_plain = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    program == Some("crewlog") && words.next() == Some("hook") && words.all(is_plain)
}

/// True of an element that has something of ours: the same string, or a group with one of our hooks.
pub fn has_ours(element: &Value, wanted: &Value) -> bool {
    let hooks = element.get("hooks").and_then(Value::as_array);
    element == wanted || (wanted.is_object() && hooks.is_some_and(|hooks| hooks.iter().any(is_our_hook)))
}
