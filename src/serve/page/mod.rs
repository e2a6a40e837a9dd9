//! The page for a person: the views of [`crate::views`] as HTML and SVG, live and as of any position. It only reads the
//! log: forms for commands post to `/do/`, which `src/http` answers.

mod asked;
mod crew;
mod events;
mod forms;
mod frame;
mod graph;
mod inspector;
mod layers;
mod lists;
mod live;
mod look;
mod needs;
mod svg;
mod time;
mod timeline;
mod words;

use std::sync::{Arc, LazyLock};

use axum::extract::{Path, Query, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Json, Router};
use crewlog_mq::{Position, Range};
use futures::TryStreamExt;
use futures::future::ready;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use self::asked::Asked;
use self::live::Lives;
use self::look::{Look, Rendered};
use crate::ui::failure::{Code, Failure};
use crate::views::Views;

const CSS: &str = include_str!("page.css");
const JS: &str = include_str!("page.js");
/// The names of the files, which change with their content, so that browsers may keep them forever.
static CSS_NAME: LazyLock<String> = LazyLock::new(|| named(CSS, "css"));
static JS_NAME: LazyLock<String> = LazyLock::new(|| named(JS, "js"));
/// The input of the page.
pub struct Site {
    pub views: Arc<Views>,
    /// Makes a command line from the words of a command.
    pub command: Arc<dyn Fn(&str) -> String + Send + Sync>,
}

/// The page and its files.
pub fn router(site: Arc<Site>) -> Router {
    let lives = Arc::new(Lives::new(site.clone()));
    let live = get(live).with_state(lives);
    Router::new().route("/", get(page)).with_state(site).route("/live", live).route("/assets/{name}", get(asset))
}

impl Site {
    /// The last position of an event's append: the first at which its effects show.
    async fn end_of_append(&self, position: Position) -> Result<Position, Failure> {
        let head = self.views.as_of(None).await?;
        let records =
            head.store().records(&crewlog_mq::Query::all(), Range::between(Position((position.0 - 1).max(0)), head.at));
        let append = records.try_take_while(move |event| ready(Ok(event.append_start <= position)));
        let last = append.try_fold(position, |_, event| ready(Ok(event.position))).await?;
        Ok(last.min(head.at))
    }

    async fn render(&self, asked: &Asked) -> Result<Rendered, Failure> {
        Look::at(self, asked).await?.render().await
    }
}

async fn page(State(site): State<Arc<Site>>, Query(pairs): Query<Vec<(String, String)>>) -> Response {
    let asked = Asked::of(&pairs);
    let is_part = pairs.iter().any(|(name, value)| name == "part" && value == "1");
    let answered = async {
        // A mark is shown as of the end of its append.
        if let Some(mark) = asked.number("mark") {
            let at = site.end_of_append(Position(mark)).await?.to_string();
            let link = asked.link(&[("mark", ""), ("at", &at)]);
            return Ok(Redirect::to(&if is_part { format!("{link}&part=1") } else { link }).into_response());
        }
        let page = site.render(&asked).await?;
        Ok(if is_part { Json(page.json()).into_response() } else { Html(page.document().0).into_response() })
    };
    answered.await.unwrap_or_else(|failure: Failure| {
        let is_missing = failure.code == Code::Nothing;
        let status = if is_missing { StatusCode::NOT_FOUND } else { StatusCode::INTERNAL_SERVER_ERROR };
        (status, format!("{failure}\n")).into_response()
    })
}

async fn live(
    State(lives): State<Arc<Lives>>,
    headers: HeaderMap,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    // The reader's content: its last message, or the page that it loaded.
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let seen = pairs.iter().find(|(name, _)| name == "seen").map(|(_, value)| value.as_str());
    let seen = last.or(seen).and_then(|at| at.parse().ok());
    lives.follow(&Asked::of(&pairs), seen).into_response()
}

async fn asset(Path(name): Path<String>) -> Response {
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

/// The address of the stylesheet.
pub fn style() -> String {
    format!("/assets/{}", *CSS_NAME)
}

/// `page-0123456789ab.css`
fn named(content: &str, ending: &str) -> String {
    let hash = Sha256::digest(content.as_bytes());
    let hash: String = hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("page-{hash}.{ending}")
}

impl Rendered {
    /// The page for the script.
    fn json(&self) -> Value {
        let parts: serde_json::Map<_, _> =
            self.parts.iter().map(|(id, markup)| ((*id).to_owned(), json!(markup.0))).collect();
        json!({ "at": self.at, "live": self.is_live, "now": self.now_us, "title": self.title, "parts": parts })
    }
}

#[cfg(test)]
mod tests;
