//! Forms for commands: each posts to `/do/COMMAND` and returns to its page.

use askama::Template;

use super::words::Markup;

/// A form for a command.
#[derive(Template)]
#[template(path = "form.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
pub struct Form {
    command: String,
    fields: Vec<(String, String)>,
    back: String,
    is_past: bool,
    inputs: Vec<FormInput>,
    /// The labels of the buttons, with a name and a value to send.
    buttons: Vec<(String, &'static str, String)>,
    /// The number of the preferred button, from 1; 0 without one.
    primary: usize,
}

/// A field to fill in.
struct FormInput {
    name: String,
    label: String,
    value: String,
    is_required: bool,
}

impl Form {
    /// A form without fields to fill in. In the past it is shown, but cannot be sent.
    pub fn new(command: &str, fields: Vec<(String, String)>, back: String, is_past: bool) -> Self {
        let command = command.to_owned();
        Self { command, fields, back, is_past, inputs: Vec::new(), buttons: Vec::new(), primary: 0 }
    }

    /// The key that identifies the form across renderings.
    fn key(&self) -> String {
        self.fields.iter().fold(self.command.clone(), |key, (_, value)| format!("{key} {value}"))
    }

    /// Allows sending the form in the past.
    pub fn also_in_the_past(self) -> Self {
        Self { is_past: false, ..self }
    }

    pub fn required(self, name: &str, label: &str) -> Self {
        self.input(name, label, "", true)
    }

    pub fn optional(self, name: &str, label: &str) -> Self {
        self.input(name, label, "", false)
    }

    /// Adds a field that has a value already.
    pub fn filled(self, name: &str, value: &str) -> Self {
        self.input(name, name, value, false)
    }

    /// Adds a required field that begins with a text.
    pub fn filled_as(self, name: &str, start: &str, label: &str) -> Self {
        self.input(name, label, start, true)
    }

    fn input(mut self, name: &str, label: &str, value: &str, is_required: bool) -> Self {
        let [name, label, value] = [name, label, value].map(str::to_owned);
        self.inputs.push(FormInput { name, label, value, is_required });
        self
    }

    /// Adds a button that sends the form with a value.
    pub fn choice(mut self, name: &'static str, value: &str, label: &str) -> Self {
        self.buttons.push((label.to_owned(), name, value.to_owned()));
        self
    }

    /// Adds a button that sends the form.
    pub fn button(self, label: &str) -> Self {
        self.choice("", "", label)
    }

    /// Makes the last button the preferred one.
    pub fn primary(mut self) -> Self {
        self.primary = self.buttons.len();
        self
    }

    pub fn markup(&self) -> Markup {
        Markup::of(self)
    }
}
