//! The document of a page, with its parts, and the files that it loads.

use std::sync::LazyLock;

use askama::Template;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use crewlog_mq::Position;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::words::Markup;

const CSS: &str = include_str!("page.css");
const JS: &str = include_str!("page.js");
/// The names of the files, which change with their content, so that browsers may keep them forever.
static CSS_NAME: LazyLock<String> = LazyLock::new(|| named(CSS, "css"));
static JS_NAME: LazyLock<String> = LazyLock::new(|| named(JS, "js"));

/// A part of the page: the id of its place, and its markup, which may be empty.
pub type Part = (&'static str, Markup);

pub struct Rendered {
    pub at: Position,
    pub mode: PageMode,
    /// The log time of the position, in microseconds since 1970.
    pub now_us: i64,
    pub title: String,
    /// The view, as a class.
    pub class: &'static str,
    /// The ids of the parts above the columns, in the left and in the right one.
    pub places: [&'static [&'static str]; 3],
    pub parts: Vec<Part>,
}

/// The relation of a page to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum PageMode {
    /// It follows the log.
    #[strum(serialize = "present")]
    Live,
    Past,
    /// It says something once: a refusal, a question.
    Still,
}

#[derive(Template)]
#[template(path = "document.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
struct Document<'a> {
    page: &'a Rendered,
    css: &'a str,
    js: &'a str,
}

impl PageMode {
    fn name(self) -> &'static str {
        self.into()
    }
}

impl Rendered {
    pub fn is_live(&self) -> bool {
        self.mode == PageMode::Live
    }

    /// The parts with these ids. Empty parts also get a place, for later content.
    fn of<'a>(&'a self, ids: &[&'a str]) -> Vec<(&'a str, Markup)> {
        let part = |id: &str| self.parts.iter().find(|(known, _)| *known == id);
        ids.iter().map(|id| (*id, part(id).map(|(_, markup)| markup.clone()).unwrap_or_default())).collect()
    }

    pub fn document(&self) -> Markup {
        Markup::of(&Document { page: self, css: &CSS_NAME, js: &JS_NAME })
    }

    /// The page for the script.
    pub fn json(&self) -> Value {
        let parts: serde_json::Map<_, _> =
            self.parts.iter().map(|(id, markup)| ((*id).to_owned(), json!(markup.0))).collect();
        json!({ "at": self.at, "live": self.is_live(), "now": self.now_us, "title": self.title, "parts": parts })
    }
}

pub async fn asset(Path(name): Path<String>) -> Response {
    let (content, kind) = match name.as_str() {
        "page.css" => (CSS, "text/css; charset=utf-8"),
        "page.js" => (JS, "text/javascript; charset=utf-8"),
        name if name == *CSS_NAME => (CSS, "text/css; charset=utf-8"),
        name if name == *JS_NAME => (JS, "text/javascript; charset=utf-8"),
        _unknown => return StatusCode::NOT_FOUND.into_response(),
    };
    let is_named = name.contains('-');
    let cache = if is_named { "public, max-age=31536000, immutable" } else { "no-cache" };
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, cache)], content).into_response()
}

/// `page-0123456789ab.css`
fn named(content: &str, ending: &str) -> String {
    let hash = Sha256::digest(content.as_bytes());
    let hash: String = hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("page-{hash}.{ending}")
}
