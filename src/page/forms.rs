//! Forms that act: each posts to `/do/COMMAND` and comes back to where it was.

use askama::Template;

use super::words::Markup;

/// A form that acts.
#[derive(Template)]
#[template(path = "form.html", whitespace = "minimize")]
pub struct Form {
    command: &'static str,
    key: String,
    fields: Vec<(&'static str, String)>,
    back: String,
    is_past: bool,
    inputs: Vec<Input>,
    buttons: Vec<Button>,
}

/// A field that a person fills in.
struct Input {
    name: &'static str,
    label: &'static str,
}

struct Button {
    label: String,
    name: &'static str,
    value: String,
    is_primary: bool,
}

impl Form {
    /// A form without fields to fill in. In the past it can be seen, and not sent.
    pub fn new(command: &'static str, fields: Vec<(&'static str, String)>, back: String, is_past: bool) -> Self {
        let values: Vec<_> = fields.iter().map(|(_, value)| value.as_str()).collect();
        let key = format!("{command} {}", values.join(" "));
        Self { command, key, fields, back, is_past, inputs: Vec::new(), buttons: Vec::new() }
    }

    /// The same where the past can be acted on.
    pub fn also_in_the_past(self) -> Self {
        Self { is_past: false, ..self }
    }

    pub fn required(mut self, name: &'static str, label: &'static str) -> Self {
        self.inputs.push(Input { name, label });
        self
    }

    /// A button that sends the form with a value.
    pub fn choice(mut self, name: &'static str, value: &str, label: &str) -> Self {
        let (label, value) = (label.to_owned(), value.to_owned());
        self.buttons.push(Button { label, name, value, is_primary: false });
        self
    }

    /// A button that sends the form.
    pub fn button(self, label: &str) -> Self {
        self.choice("", "", label)
    }

    /// Makes the last button the one to take.
    pub fn primary(mut self) -> Self {
        if let Some(button) = self.buttons.last_mut() {
            button.is_primary = true;
        }
        self
    }

    pub fn markup(&self) -> Markup {
        Markup::of(self)
    }
}
