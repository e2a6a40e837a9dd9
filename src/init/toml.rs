//! Edits TOML in place: comments, order and line ends stay.

use serde_json::Value;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, value};

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
    Ok(restored(document.to_string()))
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

fn plain(item: &Item) -> Value {
    if let Some(table) = item.as_table_like() {
        return table.iter().map(|(key, item)| (key.to_owned(), plain(item))).collect::<serde_json::Map<_, _>>().into();
    }
    if let Some(array) = item.as_array() {
        return array.iter().map(|value| plain(&Item::Value(value.clone()))).collect();
    }
    let number = item.as_integer().map(Value::from);
    let text = item.as_str().map(Value::from);
    number.or(text).or_else(|| item.as_bool().map(Value::from)).unwrap_or(Value::Null)
}

fn item(wanted: &Value) -> Item {
    match wanted {
        Value::Object(members) => {
            let mut table = Table::new();
            for (key, wanted) in members {
                table.insert(key, item(wanted));
            }
            Item::Table(table)
        }
        Value::Array(elements) => value(elements.iter().filter_map(Value::as_str).collect::<Array>()),
        Value::Bool(is_true) => value(*is_true),
        Value::Number(number) => value(number.as_i64().unwrap_or_default()),
        Value::String(text) => value(text),
        Value::Null => Item::None,
    }
}
