//! Edits JSON with comments in place: comments, order, indentation and line ends stay.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;

use super::entry::{Entry, Wrong, has_ours, is_our_hook, serves};

/// The text with these entries. An empty text counts as `{}`.
pub fn with(text: &str, entries: &[Entry]) -> Result<String, Wrong> {
    let root = parse(text)?;
    let top = top(&root)?;
    for entry in entries {
        match entry {
            Entry::Member(keys, value) | Entry::Trust(keys, value) => set(&top, keys, value)?,
            Entry::Element(keys, value) => add(&top, keys, value)?,
        }
    }
    Ok(root.to_string())
}

/// The text without these entries, and without the objects and arrays that are empty then.
pub fn without(text: &str, entries: &[Entry]) -> Result<String, Wrong> {
    let root = parse(text)?;
    let top = top(&root)?;
    for entry in entries {
        match entry {
            Entry::Trust(..) => {}
            Entry::Member(keys, _) => {
                if let Some(member) = find(&top, keys)? {
                    remove(member);
                }
            }
            Entry::Element(keys, value) => take_out(&top, keys, value)?,
        }
    }
    Ok(root.to_string())
}

/// True of a text that says nothing: blank, `{}`, or only the schema that editors use.
pub fn is_nothing(text: &str) -> bool {
    let value = parse(text).ok().map(|root| root.to_serde_value());
    match value {
        Some(None) => text.trim().is_empty(),
        Some(Some(Value::Object(members))) => {
            !text.contains("//") && !text.contains("/*") && members.is_empty() || {
                members.len() == 1 && members.contains_key("$schema")
            }
        }
        Some(Some(_)) | None => false,
    }
}

/// The value at these keys, where the text has one.
pub fn value_at(text: &str, keys: &[String]) -> Result<Option<Value>, Wrong> {
    let root = parse(text)?;
    Ok(find(&top(&root)?, keys)?.and_then(|member| member.value()).and_then(|node| node.to_serde_value()))
}

fn parse(text: &str) -> Result<CstRootNode, Wrong> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    CstRootNode::parse(text, &options).map_err(|error| {
        let at = Some((error.line_display(), error.column_display()));
        Wrong { at, what: format!("it is not JSON: {}", error.kind()) }
    })
}

fn top(root: &CstRootNode) -> Result<CstObject, Wrong> {
    root.object_value_or_create().ok_or_else(|| Wrong::kind(&[], kind(root.value().as_ref()), "an object"))
}

fn kind(node: Option<&CstNode>) -> &'static str {
    match node.and_then(CstNode::to_serde_value) {
        Some(Value::Array(_)) => "an array",
        Some(Value::Object(_)) => "an object",
        Some(Value::String(_)) => "a string",
        Some(Value::Number(_)) => "a number",
        Some(Value::Bool(_)) => "true or false",
        Some(Value::Null) | None => "null",
    }
}

/// The member of a name. Programs read the last of several, the parser gives the first: none is right to edit.
fn member(object: &CstObject, name: &str, path: &[String]) -> Result<Option<CstObjectProp>, Wrong> {
    let is_it = |member: &CstObjectProp| member.decoded_name().as_deref() == Some(name);
    let mut found = object.properties().into_iter().filter(is_it);
    let first = found.next();
    match found.next() {
        Some(_) => Err(Wrong::at_all(format!("it has `{}` twice", path.join(".")))),
        None => Ok(first),
    }
}

fn find(top: &CstObject, keys: &[String]) -> Result<Option<CstObjectProp>, Wrong> {
    let (Some((last, _)), Some(object)) = (keys.split_last(), object_of(top, keys, false)?) else { return Ok(None) };
    member(&object, last, keys)
}

fn set(top: &CstObject, keys: &[String], value: &Value) -> Result<(), Wrong> {
    let (Some((last, _)), Some(object)) = (keys.split_last(), object_of(top, keys, true)?) else { return Ok(()) };
    merge(&object, member(&object, last, keys)?, last, value);
    Ok(())
}

/// The object that the last key is looked for in, made first if it is to be.
fn object_of(top: &CstObject, keys: &[String], make: bool) -> Result<Option<CstObject>, Wrong> {
    let mut object = top.clone();
    for i in 1..keys.len() {
        let path = &keys[..i];
        let found = match member(&object, &keys[i - 1], path)? {
            Some(found) => found,
            None if make => object.append(&keys[i - 1], CstInputValue::Object(Vec::new())),
            None => return Ok(None),
        };
        let existing = found.value();
        object = found.object_value().ok_or_else(|| Wrong::kind(path, kind(existing.as_ref()), "an object"))?;
    }
    Ok(Some(object))
}

fn merge(object: &CstObject, found: Option<CstObjectProp>, key: &str, value: &Value) {
    let Some(found) = found else {
        object.append(key, input(value));
        return;
    };
    let existing = found.value().and_then(|node| node.to_serde_value()).unwrap_or_default();
    match (found.object_value(), value) {
        _ if serves(&existing, value) => {}
        (Some(object), Value::Object(members)) => {
            for (key, value) in members {
                merge(&object, object.get(key), key, value);
            }
        }
        _ => found.set_value(input(value)),
    }
}

fn add(top: &CstObject, keys: &[String], value: &Value) -> Result<(), Wrong> {
    if find(top, keys)?.is_none() {
        set(top, keys, &Value::Array(Vec::new()))?;
    }
    let Some(member) = find(top, keys)? else { return Ok(()) };
    let array = array(&member, keys)?;
    let elements = array.elements().into_iter().filter_map(|node| node.to_serde_value()).collect::<Vec<_>>();
    let mut ours = elements.iter().filter(|element| has_ours(element, value));
    if let (Some(only), None) = (ours.next(), ours.next())
        && serves(only, value)
    {
        return Ok(());
    }
    strip(&array, value);
    array.append(input(value));
    Ok(())
}

fn take_out(top: &CstObject, keys: &[String], value: &Value) -> Result<(), Wrong> {
    let Some(member) = find(top, keys)? else { return Ok(()) };
    let array = array(&member, keys)?;
    let n_before = array.elements().len();
    strip(&array, value);
    if n_before > 0 && array.elements().is_empty() {
        remove(member);
    }
    Ok(())
}

fn array(member: &CstObjectProp, keys: &[String]) -> Result<CstArray, Wrong> {
    member.array_value().ok_or_else(|| Wrong::kind(keys, kind(member.value().as_ref()), "an array"))
}

/// Takes our elements out. A group that has hooks of others too loses only ours.
fn strip(array: &CstArray, wanted: &Value) {
    for element in array.elements() {
        let Some(value) = element.to_serde_value().filter(|value| has_ours(value, wanted)) else { continue };
        let hooks = value.get("hooks").and_then(Value::as_array);
        let is_shared = hooks.is_some_and(|hooks| !hooks.iter().all(is_our_hook));
        match element.as_object().and_then(|group| group.array_value("hooks")) {
            Some(hooks) if is_shared => {
                let is_ours = |hook: &CstNode| hook.to_serde_value().is_some_and(|hook| is_our_hook(&hook));
                hooks.elements().into_iter().filter(is_ours).for_each(CstNode::remove);
            }
            Some(_) | None => element.remove(),
        }
    }
}

/// Removes a member, then the objects around it that are empty now; the outermost stays.
fn remove(member: CstObjectProp) {
    let object = member.parent().and_then(|parent| parent.as_object());
    member.remove();
    let Some(object) = object.filter(|object| object.properties().is_empty()) else { return };
    if let Some(member) = object.parent().and_then(|parent| parent.as_object_prop()) {
        remove(member);
    }
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
