//! Edits TOML in place: comments and order stay.

use serde::Deserialize;
use serde::Serialize;
use serde::de::IntoDeserializer;
use serde_json::Value;
use toml_edit::ser::ValueSerializer;
use toml_edit::{DocumentMut, Item, Table, TableLike};

use super::wanted::{SERVER, Wanted};

/// The text with the wanted members.
pub fn with(text: &str, wanted: &Wanted) -> Result<String, String> {
    edit(text, |table| {
        add(table, &wanted.trust, false)?;
        add(table, &wanted.ours, true)
    })
}

/// The text without our members, and without the tables that become empty.
pub fn without(text: &str, wanted: &Wanted) -> Result<String, String> {
    let left = edit(text, |table| {
        take_out(table, &wanted.ours);
        Ok(())
    })?;
    // The writer may change line ends.
    let has_ours = left != edit(text, |_| Ok(()))?;
    Ok(if has_ours { left } else { text.to_owned() })
}

fn edit(text: &str, change: impl FnOnce(&mut Table) -> Result<(), String>) -> Result<String, String> {
    let parse = |text: &str| text.parse::<DocumentMut>().map_err(|error| format!("it is not TOML: {error}"));
    let mut document = parse(text)?;
    change(document.as_table_mut())?;
    let changed = document.to_string();
    parse(&changed).map_err(|_| "its tables are written in a way that cannot be edited in place")?;
    // The writer ends lines with `\n`.
    let has_crlf = text.contains("\r\n");
    Ok(if has_crlf { changed.replace("\r\n", "\n").replace('\n', "\r\n") } else { changed })
}

/// Adds members. Where a person has set a consent otherwise, it stays.
fn add(table: &mut dyn TableLike, wanted: &Value, is_ours: bool) -> Result<(), String> {
    for (key, value) in wanted.as_object().into_iter().flatten() {
        match (table.get_mut(key), value) {
            (Some(found), Value::Object(inner)) if key != SERVER => {
                let table = found.as_table_like_mut().ok_or_else(|| format!("`{key}` is not a table"))?;
                add(table, value, is_ours)?;
            }
            (Some(found), _) if found.is_table_like() || found.as_str().is_some_and(|found| value == found) => {}
            (Some(found), _) if !is_ours => {
                let found = found.to_string();
                return Err(format!("it has {key} ={found}, which stays; with it the program skips the hooks"));
            }
            _ => drop(table.insert(key, item(value))),
        }
    }
    Ok(())
}

fn take_out(table: &mut dyn TableLike, ours: &Value) {
    for (key, value) in ours.as_object().into_iter().flatten() {
        let is_ours = match (table.get_mut(key), value) {
            (Some(found), Value::Object(inner)) if key != SERVER => found.as_table_like_mut().is_some_and(|table| {
                let was_empty = table.is_empty();
                take_out(table, value);
                !was_empty && table.is_empty()
            }),
            // A server that a person has changed is not ours any more.
            (Some(found), Value::Object(_)) => is_same(found, value),
            _ => true,
        };
        if is_ours {
            table.remove(key);
        }
    }
}

/// True if a value equals ours, in any notation.
fn is_same(found: &Item, value: &Value) -> bool {
    let found = found.clone().into_value().ok().map(|found| Value::deserialize(found.into_deserializer()));
    found.and_then(Result::ok).as_ref() == Some(value)
}

/// An object as a separate table, for people to read and edit. Its header appears only if it has values.
fn item(value: &Value) -> Item {
    let Value::Object(members) = value else {
        return Item::Value(value.serialize(ValueSerializer::new()).expect("we want no null"));
    };
    let mut table = Table::from_iter(members.iter().map(|(key, value)| (key.as_str(), item(value))));
    table.set_implicit(true);
    Item::Table(table)
}
