//! Edits JSON with comments in place: comments, order, indentation and line ends stay.

use std::collections::BTreeSet;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstObject, CstRootNode};
use serde_json::{Value, json};

use super::ours::is_our_hook;
use super::status_line;
use super::wanted::{SERVER, Wanted};

/// The text with the wanted members. An empty text counts as `{}`.
pub fn with(text: &str, wanted: &Wanted) -> Result<String, String> {
    let root = parse(text)?;
    let object = root.object_value_or_create().ok_or("it is not an object")?;
    add(&object, &wanted.ours, true)?;
    add(&object, &wanted.trust, false)?;
    Ok(root.to_string())
}

/// The text without our members, and without the objects and arrays that become empty.
pub fn without(text: &str, wanted: &Wanted) -> Result<String, String> {
    let root = parse(text)?;
    if let Some(object) = root.object_value() {
        take_out(&object, &wanted.ours);
    }
    Ok(root.to_string())
}

/// The text as a value, without its comments; null if it is empty.
pub fn value(text: &str) -> Result<Value, String> {
    Ok(parse(text)?.to_serde_value().unwrap_or_default())
}

fn parse(text: &str) -> Result<CstRootNode, String> {
    CstRootNode::parse(text.trim_start_matches('\u{feff}'), &ParseOptions::default())
        .map_err(|error| format!("it is not JSON: {error}"))
}

/// Adds members. Where a person has set a consent otherwise, it stays.
fn add(object: &CstObject, wanted: &Value, is_ours: bool) -> Result<(), String> {
    for (key, value) in wanted.as_object().into_iter().flatten() {
        let Some(member) = object.get(key) else {
            object.append(key, input(value));
            continue;
        };
        let found = member.value().and_then(|found| found.to_serde_value()).unwrap_or_default();
        match value {
            Value::Object(_) if key == status_line::KEY => {
                let object = member.object_value().ok_or_else(|| format!("`{key}` is not an object"))?;
                let command = json!(status_line::chained(&found));
                match object.get("command") {
                    Some(known) => known.set_value(input(&command)),
                    None => add(&object, value, is_ours)?,
                }
            }
            Value::Array(elements) => {
                let array = member.array_value().ok_or_else(|| format!("`{key}` is not an array"))?;
                let missing = elements.iter().filter(|element| !has(&found, element));
                missing.for_each(|element| drop(array.append(input(element))));
            }
            Value::Object(_) if key != SERVER => {
                add(&member.object_value().ok_or_else(|| format!("`{key}` is not an object"))?, value, is_ours)?;
            }
            _ if found.is_object() || found == *value => {}
            _ if is_ours => member.set_value(input(value)),
            _ => return Err(format!("it has `{key}`: {found}, which stays; with it the program skips the hooks")),
        }
    }
    Ok(())
}

/// True for an array with our element: the same string, or a group with one of our hooks for at least the same tools.
fn has(array: &Value, wanted: &Value) -> bool {
    let tools = |group: &Value| {
        let matcher = group["matcher"].as_str().filter(|matcher| !matcher.is_empty()).unwrap_or("*");
        matcher.split('|').map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let is_for_all = |group: &Value| tools(group).contains("*") || tools(group).is_superset(&tools(wanted));
    let is_it = |element: &Value| {
        let hooks = element["hooks"].as_array();
        element == wanted || (hooks.is_some_and(|hooks| hooks.iter().any(is_our_hook)) && is_for_all(element))
    };
    array.as_array().is_some_and(|elements| elements.iter().any(is_it))
}

fn take_out(object: &CstObject, ours: &Value) {
    for (key, value) in ours.as_object().into_iter().flatten() {
        let Some(member) = object.get(key) else { continue };
        let is_ours = match value {
            Value::Object(_) if key == status_line::KEY => {
                let found = member.value().and_then(|found| found.to_serde_value()).unwrap_or_default();
                let known = member.object_value().and_then(|object| object.get("command"));
                match (status_line::own(&found), known) {
                    (Some(Some(own)), Some(known)) => {
                        known.set_value(input(&json!(own)));
                        false
                    }
                    (own, _) => own.is_some(),
                }
            }
            Value::Array(elements) => member.array_value().is_some_and(|array| strip(&array, elements)),
            Value::Object(_) if key != SERVER => member.object_value().is_some_and(|object| {
                let was_empty = object.properties().is_empty();
                take_out(&object, value);
                !was_empty && object.properties().is_empty()
            }),
            // A server that a person has changed is not ours any more.
            Value::Object(_) => member.value().and_then(|found| found.to_serde_value()).as_ref() == Some(value),
            _ => true,
        };
        if is_ours {
            member.remove();
        }
    }
}

/// Removes our elements, and only our hooks from groups; true if nothing else is left.
fn strip(array: &CstArray, ours: &[Value]) -> bool {
    let was_empty = array.elements().is_empty();
    for element in array.elements() {
        let is_ours = match element.as_object().and_then(|group| group.array_value("hooks")) {
            Some(hooks) => strip(&hooks, ours),
            None => element.to_serde_value().is_some_and(|found| ours.contains(&found) || is_our_hook(&found)),
        };
        if is_ours {
            element.remove();
        }
    }
    !was_empty && array.elements().is_empty()
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(is_true) => CstInputValue::Bool(*is_true),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(elements) => CstInputValue::Array(elements.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(key, value)| (key.clone(), input(value))).collect())
        }
    }
}
