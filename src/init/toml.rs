//! Edits TOML in place: comments and order stay.

use serde::Serialize;
use serde_json::Value;
use toml_edit::ser::ValueSerializer;
use toml_edit::{DocumentMut, Item, Table, TableLike};

use super::content::{SERVER, Wanted};

/// The text with the wanted members.
pub fn with(text: &str, wanted: &Wanted) -> Result<String, String> {
    let mut document = parse(text)?;
    add(document.as_table_mut(), &wanted.trust)?;
    add(document.as_table_mut(), &wanted.ours)?;
    checked(&document)
}

/// The text without our members, and without the tables that become empty.
pub fn without(text: &str, wanted: &Wanted) -> Result<String, String> {
    let mut document = parse(text)?;
    take_out(document.as_table_mut(), &wanted.ours);
    checked(&document)
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse::<DocumentMut>().map_err(|error| format!("it is not TOML: {error}"))
}

fn checked(document: &DocumentMut) -> Result<String, String> {
    let text = document.to_string();
    parse(&text).map_err(|_| "its tables are written in a way that cannot be edited in place")?;
    Ok(text)
}

fn add(table: &mut dyn TableLike, wanted: &Value) -> Result<(), String> {
    for (key, value) in wanted.as_object().into_iter().flatten() {
        match (table.get_mut(key), value) {
            (Some(found), Value::Object(inner)) if key != SERVER => {
                let table = found.as_table_like_mut().ok_or_else(|| format!("`{key}` is not a table"))?;
                add(table, value)?;
            }
            (Some(found), _) if found.is_table_like() || found.as_str().is_some_and(|found| value == found) => {}
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
            _ => true,
        };
        if is_ours {
            table.remove(key);
        }
    }
}

/// An object as a table of its own, since it is read and edited by people. Its header shows where it has values.
fn item(value: &Value) -> Item {
    let Value::Object(members) = value else {
        return Item::Value(value.serialize(ValueSerializer::new()).expect("we want no null"));
    };
    let mut table = Table::from_iter(members.iter().map(|(key, value)| (key.as_str(), item(value))));
    table.set_implicit(true);
    Item::Table(table)
}
