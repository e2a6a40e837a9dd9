//! Forms for commands: each posts to `/do/COMMAND` and returns to its page.

use askama::Template;

use super::words::Markup;

/// A form for a command.
#[derive(Template)]
#[template(path = "form.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
pub struct Form {
    command: &'static str,
    fields: Vec<(&'static str, String)>,
    back: String,
    is_past: bool,
    /// The names and labels of the fields to fill in.
    inputs: Vec<(&'static str, &'static str)>,
    /// The labels of the buttons, with a name and a value to send.
    buttons: Vec<(String, &'static str, String)>,
    /// The number of the preferred button, from 1; 0 without one.
    primary: usize,
}

impl Form {
    /// A form without fields to fill in. In the past it is shown, but cannot be sent.
    pub fn new(command: &'static str, fields: Vec<(&'static str, String)>, back: String, is_past: bool) -> Self {
        Self { command, fields, back, is_past, inputs: Vec::new(), buttons: Vec::new(), primary: 0 }
    }

    /// The key that identifies the form across renderings.
    fn key(&self) -> String {
        self.fields.iter().fold(self.command.to_owned(), |key, (_, value)| format!("{key} {value}"))
    }

    /// Allows sending the form in the past.
    pub fn also_in_the_past(self) -> Self {
        Self { is_past: false, ..self }
    }

    pub fn required(mut self, name: &'static str, label: &'static str) -> Self {
        self.inputs.push((name, label));
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
