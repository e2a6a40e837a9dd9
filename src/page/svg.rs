//! Writes SVG: elements with attributes and texts, all escaped.

use std::fmt::{Display, Formatter};

use super::words::{Markup, escaped};

/// A length or a place in pixels, with one decimal at most.
#[derive(Debug, Clone, Copy)]
pub struct Px(pub f64);

impl Display for Px {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let tenths = (self.0 * 10.0).round();
        if tenths % 10.0 == 0.0 { write!(f, "{}", tenths / 10.0) } else { write!(f, "{:.1}", tenths / 10.0) }
    }
}

/// Names and values of attributes.
pub type Attributes<'a> = &'a [(&'a str, &'a dyn Display)];

/// What of a text is at its place.
#[derive(Debug, Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing that is being written.
#[derive(Default)]
pub struct Svg(String);

impl Svg {
    /// A drawing of a size in pixels, with a description for those who cannot see it. It takes the width that there is, or scrolls.
    pub fn new(class: &str, (width, height): (f64, f64), label: &str, fits: bool) -> Self {
        let class = format!("{class}{}", if fits { " fits" } else { "" });
        let mut svg = Self::default();
        let view = format!("0 0 {} {}", Px(width), Px(height));
        let (width, height) = (Px(width), Px(height));
        svg.open(
            "svg",
            &[
                ("class", &class),
                ("viewBox", &view),
                ("width", &width),
                ("height", &height),
                ("role", &"group"),
                ("aria-label", &label),
            ],
        );
        svg
    }

    fn tag(&mut self, tag: &str, attributes: Attributes<'_>) {
        self.0.push('<');
        self.0.push_str(tag);
        for (name, value) in attributes {
            let value = escaped(&value.to_string());
            self.0.push_str(&format!(" {name}=\"{value}\""));
        }
    }

    pub fn open(&mut self, tag: &str, attributes: Attributes<'_>) {
        self.tag(tag, attributes);
        self.0.push('>');
    }

    pub fn close(&mut self, tag: &str) {
        self.0.push_str(&format!("</{tag}>"));
    }

    /// An element without content.
    pub fn draw(&mut self, tag: &str, attributes: Attributes<'_>) {
        self.tag(tag, attributes);
        self.0.push_str("/>");
    }

    /// An element with a text.
    pub fn text(&mut self, tag: &str, attributes: Attributes<'_>, text: &str) {
        self.open(tag, attributes);
        self.0.push_str(&escaped(text));
        self.close(tag);
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = ((Px(from.0), Px(from.1)), (Px(to.0), Px(to.1)));
        self.draw("line", &[("class", &class), ("x1", &x1), ("y1", &y1), ("x2", &x2), ("y2", &y2)]);
    }

    pub fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), rx: f64) {
        let (x, y, width, height) = (Px(x), Px(y), Px(width), Px(height));
        self.draw("rect", &[("x", &x), ("y", &y), ("width", &width), ("height", &height), ("rx", &rx)]);
    }

    /// A text at a place.
    pub fn label(&mut self, class: &str, (x, y): (f64, f64), text: &str, anchor: Anchor) {
        let (x, y) = (Px(x), Px(y));
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.text("text", &[("class", &class), ("x", &x), ("y", &y), ("text-anchor", &anchor)], text);
    }

    /// Begins a link with words for a hint and for screen readers; [`Self::close`] with `a` ends it.
    pub fn link(&mut self, class: &str, href: &str, words: &str) {
        self.open("a", &[("class", &class), ("href", &href)]);
        self.text("title", &[], words);
    }

    pub fn end(mut self) -> Markup {
        self.close("svg");
        Markup(self.0)
    }
}

/// The text as far as it fits into a width, in letters of a mean width; nothing if that is not even a few of them.
pub fn fitting(text: &str, width: f64, letter: f64) -> String {
    let n_fit = n_fit(width, letter);
    match text.chars().count() {
        n if n <= n_fit => text.to_owned(),
        _ if n_fit < 4 => String::new(),
        _ => text.chars().take(n_fit - 1).collect::<String>().trim_end().to_owned() + "…",
    }
}

/// The text in two lines as far as it fits, parted between words.
pub fn in_two_lines(text: &str, width: f64, letter: f64) -> (String, String) {
    let n_fit = n_fit(width, letter);
    if text.chars().count() <= n_fit {
        return (text.to_owned(), String::new());
    }
    let end = text.char_indices().nth(n_fit).map_or(text.len(), |(end, _)| end);
    // A long word is parted where the line ends.
    let end = text[..end].rfind(' ').filter(|space| *space >= end / 3).unwrap_or(end);
    (text[..end].trim_end().to_owned(), fitting(text[end..].trim_start(), width, letter))
}

fn n_fit(width: f64, letter: f64) -> usize {
    (width / letter).floor().max(0.0) as usize
}
