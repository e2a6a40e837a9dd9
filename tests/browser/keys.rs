//! Names of keys as events of the DevTools protocol.

use serde_json::{Value, json};

/// Keys with a name: the code, the Windows virtual key code, and the text that the key types.
const NAMED: [(&str, &str, u32, &str); 14] = [
    ("Enter", "Enter", 13, "\r"),
    ("Tab", "Tab", 9, ""),
    ("Escape", "Escape", 27, ""),
    ("Backspace", "Backspace", 8, ""),
    ("Delete", "Delete", 46, ""),
    ("ArrowLeft", "ArrowLeft", 37, ""),
    ("ArrowUp", "ArrowUp", 38, ""),
    ("ArrowRight", "ArrowRight", 39, ""),
    ("ArrowDown", "ArrowDown", 40, ""),
    ("Home", "Home", 36, ""),
    ("End", "End", 35, ""),
    ("PageUp", "PageUp", 33, ""),
    ("PageDown", "PageDown", 34, ""),
    (" ", "Space", 32, " "),
];
const ALT: u32 = 1;
const CONTROL: u32 = 2;
const META: u32 = 4;
const SHIFT: u32 = 8;

/// The parameters of `Input.dispatchKeyEvent` for one stroke.
pub struct Stroke {
    pub down: Value,
    pub up: Value,
}

/// The stroke of a key such as `Enter`, `a`, `+`, `Shift+Tab` or `Control+k`.
pub fn stroke(name: &str) -> Option<Stroke> {
    let (mut modifiers, mut key) = (0, name);
    while let Some((modifier, rest)) =
        key.split_once('+').filter(|(modifier, rest)| !modifier.is_empty() && !rest.is_empty())
    {
        modifiers |= match modifier {
            "Alt" => ALT,
            "Control" => CONTROL,
            "Meta" => META,
            "Shift" => SHIFT,
            _unknown => return None,
        };
        key = rest;
    }
    let (code, virtual_code, text) = match NAMED.iter().find(|(named, ..)| *named == key) {
        Some((_, code, virtual_code, text)) => ((*code).to_owned(), *virtual_code, *text),
        None => {
            let char = key.chars().next().filter(|char| key.len() == char.len_utf8())?;
            let upper = char.to_ascii_uppercase();
            let (code, virtual_code) = match upper {
                'A'..='Z' => (format!("Key{upper}"), u32::from(upper)),
                '0'..='9' => (format!("Digit{upper}"), u32::from(upper)),
                _other => (String::new(), 0),
            };
            (code, virtual_code, key)
        }
    };
    let text = if modifiers & !SHIFT == 0 { text } else { "" };
    let kind = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
    let event = |kind: &str| json!({ "type": kind, "key": key, "code": code, "windowsVirtualKeyCode": virtual_code, "modifiers": modifiers });
    let (mut down, up) = (event(kind), event("keyUp"));
    if !text.is_empty() {
        down["text"] = text.into();
    }
    Some(Stroke { down, up })
}
