//! Edits TOML in place: comments, order and line ends stay.

use serde::de::IntoDeserializer;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toml_edit::ser::ValueSerializer;
use toml_edit::{DocumentMut, Item, Table, TableLike};

use super::entry::{Entry, Wrong, serves};

/// The text with these entries.
pub fn with(text: &str, entries: &[Entry]) -> Result<String, Wrong> {
    edit(text, |document| {
        for entry in entries {
            if let Entry::Member(keys, value) | Entry::Trust(keys, value) = entry {
                set(document.as_table_mut(), keys, 0, value)?;
            }
        }
        Ok(())
    })
}

/// The text without these entries, and without the tables that are empty then.
pub fn without(text: &str, entries: &[Entry]) -> Result<String, Wrong> {
    edit(text, |document| {
        for entry in entries {
            if let Entry::Member(keys, _) = entry {
                remove(document.as_table_mut(), keys);
            }
        }
        Ok(())
    })
}

fn parse(text: &str) -> Result<DocumentMut, Wrong> {
    text.parse::<DocumentMut>().map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let at = before.map(|before| {
            let line = before.rsplit('\n').next().unwrap_or_default();
            (before.matches('\n').count() + 1, line.chars().count() + 1)
        });
        Wrong { at, what: format!("it is not TOML: {}", error.message().replace('\n', ", ")) }
    })
}

/// The writer ends lines with `\n`: a file with `\r\n` throughout is edited without and gets them back.
fn edit(text: &str, change: impl FnOnce(&mut DocumentMut) -> Result<(), Wrong>) -> Result<String, Wrong> {
    let has_crlf = text.contains("\r\n");
    let plain = if has_crlf { text.replace("\r\n", "\n") } else { text.to_owned() };
    let mut document = parse(&plain)?;
    let restored = |text: String| if has_crlf { text.replace('\n', "\r\n") } else { text };
    if restored(document.to_string()) != text {
        return Err(Wrong::at_all("it cannot be edited in place: its line ends are mixed"));
    }
    change(&mut document)?;
    let changed = document.to_string();
    parse(&changed).map_err(|_| Wrong::at_all("its tables are written in a way that cannot be edited in place"))?;
    Ok(restored(changed))
}

fn set(table: &mut dyn TableLike, keys: &[String], depth: usize, wanted: &Value) -> Result<(), Wrong> {
    let Some(key) = keys.get(depth) else { return Ok(()) };
    if depth + 1 == keys.len() {
        merge(table, key, wanted);
        return Ok(());
    }
    let mut implicit = Table::new();
    implicit.set_implicit(true);
    let item = table.entry(key).or_insert(Item::Table(implicit));
    let found = item.type_name();
    let path = keys.get(..=depth).unwrap_or(keys);
    let table = item.as_table_like_mut().ok_or_else(|| Wrong::kind(path, &format!("a {found}"), "a table"))?;
    set(table, keys, depth + 1, wanted)
}

fn merge(table: &mut dyn TableLike, key: &str, wanted: &Value) {
    let Some(existing) = table.get_mut(key) else {
        table.insert(key, item(wanted));
        return;
    };
    match (existing.as_table_like().is_some(), wanted) {
        _ if serves(&plain(existing), wanted) => {}
        (true, Value::Object(members)) => {
            let Some(existing) = existing.as_table_like_mut() else { return };
            for (key, wanted) in members {
                merge(existing, key, wanted);
            }
        }
        _ => *existing = item(wanted),
    }
}

fn remove(table: &mut dyn TableLike, keys: &[String]) {
    let Some((key, below)) = keys.split_first() else { return };
    let Some(item) = table.get_mut(key) else { return };
    if let (Some(inner), false) = (item.as_table_like_mut(), below.is_empty()) {
        let n_before = inner.len();
        remove(inner, below);
        if n_before == 0 || !inner.is_empty() {
            return;
        }
    } else if !below.is_empty() {
        return;
    }
    table.remove(key);
}

/// A value as it is in JSON; null where it has none.
fn plain(item: &Item) -> Value {
    let value = item.clone().into_value().ok();
    value.and_then(|value| Value::deserialize(value.into_deserializer()).ok()).unwrap_or_default()
}

fn item(wanted: &Value) -> Item {
    let value = wanted.serialize(ValueSerializer::new()).expect("our entries have no null");
    // An object becomes a table of its own, since it is read and edited by people.
    Item::Value(value).into_table().map_or_else(|value| value, Item::Table)
}
