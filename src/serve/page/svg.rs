//! Writes SVG. Texts, labels and addresses are escaped.

use std::fmt::{Arguments, Display, Formatter, Write};

use super::words::{Markup, escaped};

/// A length or a coordinate in pixels, with at most one decimal.
#[derive(Debug, Clone, Copy)]
pub struct Px(pub f64);

impl Display for Px {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let tenths = (self.0 * 10.0).round();
        if tenths % 10.0 == 0.0 { write!(f, "{}", tenths / 10.0) } else { write!(f, "{:.1}", tenths / 10.0) }
    }
}

/// The part of a text that is at its coordinates.
#[derive(Debug, Clone, Copy, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing in progress.
pub struct Svg(String);

impl Svg {
    /// A drawing with a size in pixels and a description for screen readers. It fits the available width, or scrolls.
    pub fn new(class: &str, (width, height): (f64, f64), label: &str, fits: bool) -> Self {
        let (fits, width, height) = (if fits { " fits" } else { "" }, Px(width), Px(height));
        let (size, label) = (format!("width=\"{width}\" height=\"{height}\""), escaped(label));
        let view = format!("viewBox=\"0 0 {width} {height}\" {size}");
        Self(format!("<svg class=\"{class}{fits}\" {view} role=\"group\" aria-label=\"{label}\">"))
    }

    /// Writes markup unchanged.
    pub fn write(&mut self, markup: Arguments<'_>) {
        self.0.write_fmt(markup).expect("memory takes it");
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = ((Px(from.0), Px(from.1)), (Px(to.0), Px(to.1)));
        self.write(format_args!("<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"));
    }

    pub fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), rx: f64) {
        let (x, y, width, height) = (Px(x), Px(y), Px(width), Px(height));
        let size = format_args!("width=\"{width}\" height=\"{height}\"");
        self.write(format_args!("<rect x=\"{x}\" y=\"{y}\" {size} rx=\"{rx}\"/>"));
    }

    /// A text at a place, unless it is empty.
    pub fn label(&mut self, class: &str, (x, y): (f64, f64), text: &str, anchor: Anchor) {
        if !text.is_empty() {
            let (x, y, anchor, text) = (Px(x), Px(y), <&str>::from(anchor), escaped(text));
            let place = format_args!("x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\"");
            self.write(format_args!("<text class=\"{class}\" {place}>{text}</text>"));
        }
    }

    /// Begins a link with words for a hint and for screen readers; [`Self::close`] ends it.
    pub fn link(&mut self, class: &str, href: &str, words: &str) {
        let (href, words) = (escaped(href), escaped(words));
        self.write(format_args!("<a class=\"{class}\" href=\"{href}\"><title>{words}</title>"));
    }

    pub fn close(&mut self) {
        self.0.push_str("</a>");
    }

    pub fn end(self) -> Markup {
        Markup(self.0 + "</svg>")
    }
}

/// The text cut to a width, given the mean width of a letter; empty if only a few letters would fit.
pub fn fitting(text: &str, width: f64, letter: f64) -> String {
    let n_fit = (width / letter).max(0.0) as usize;
    match text.chars().count() {
        n if n <= n_fit => text.to_owned(),
        _ if n_fit < 4 => String::new(),
        _ => text.chars().take(n_fit - 1).collect::<String>().trim_end().to_owned() + "…",
    }
}

/// The text in two lines, cut to a width and split between words.
pub fn in_two_lines(text: &str, width: f64, letter: f64) -> (String, String) {
    let Some((end, _)) = text.char_indices().nth((width / letter).max(0.0) as usize) else {
        return (text.to_owned(), String::new());
    };
    // A long word is split at the end of the line.
    let end = text[..end].rfind(' ').filter(|space| *space >= end / 3).unwrap_or(end);
    (text[..end].trim_end().to_owned(), fitting(text[end..].trim_start(), width, letter))
}
