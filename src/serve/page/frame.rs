//! The frame of each page: the document, its header, its notices, and pages without a view: refusals, questions, errors.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use crewlog_mq::Position;

use super::asked::{Asked, Tab};
use super::document::{PageMode, Rendered};
use super::forms::Form;
use super::look::{Look, NoPage, Site};
use super::needs::n_waiting;
use super::words::{self, Markup, cut, lasting, rich};
use crate::ui::failure::Failure;

/// The longest text of a notice, in characters.
const SAID_CHARS_MAX: usize = 400;

#[derive(Template)]
#[template(path = "top.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
struct Top<'a> {
    /// Absent before anybody is let in, and if the log cannot be read.
    look: Option<&'a Look<'a>>,
    project: String,
    n_waiting: usize,
}

pub fn top(look: &Look<'_>) -> Markup {
    // A project without a name has a UUID, which is not shown.
    let project = Some(look.shown.project()).filter(|project| uuid::Uuid::parse_str(project).is_err());
    let project = project.map(|project| cut(project, 40)).unwrap_or_default();
    Markup::of(&Top { look: Some(look), project, n_waiting: n_waiting(&look.needs) })
}

impl Top<'_> {
    /// The pages of the project: address, name, and true for the one shown.
    fn pages(&self) -> Vec<(String, String, bool)> {
        let asked = self.look.map(|look| &look.asked);
        let pages = Tab::OF_PROJECT.into_iter().map(|tab| {
            let name = if tab == Tab::Overview { "Home".to_owned() } else { tab.title() };
            let is_current = asked.is_some_and(|asked| match asked.get("plan") {
                Some(_) => tab == Tab::Plans,
                None => asked.tab() == tab,
            });
            (asked.cloned().unwrap_or_default().page("", tab).link(&[]), name, is_current)
        });
        pages.collect()
    }
}

#[derive(Template)]
#[template(path = "notice.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
struct Notices<'a> {
    look: &'a Look<'a>,
    said: Option<Markup>,
    /// In the past: the distance from now.
    past: Option<String>,
}

/// The message of a command, errors, and the banner of the past.
pub fn notice(look: &Look<'_>) -> Markup {
    let said = look.asked.get("said").map(|said| rich(said, SAID_CHARS_MAX));
    let past = look.is_past().then(|| lasting(look.head.now.0 - look.shown.now.0));
    match (&said, &past, &look.fault) {
        (None, None, None) => Markup::default(),
        _some => Markup::of(&Notices { look, said, past }),
    }
}

#[derive(Template)]
#[template(path = "empty.html", config = "src/serve/page/askama.toml")]
struct Empty<'a> {
    look: &'a Look<'a>,
}

/// The page of an empty log: a description, and the commands to begin with.
pub fn empty(look: &Look<'_>) -> Markup {
    Markup::of(&Empty { look })
}

/// A page that says something once.
#[derive(Template, Default)]
#[template(path = "framed.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
pub struct Framed {
    pub status: StatusCode,
    /// The meaning of the status for the person.
    pub says: String,
    pub title: String,
    pub lines: Vec<String>,
    /// The commands that would run.
    pub commands: Vec<String>,
    pub forms: Vec<Form>,
    /// Addresses and names: the way back first.
    pub links: Vec<(String, String)>,
    /// The addresses and names of what was perhaps meant.
    pub near: Vec<(String, String)>,
}

impl Framed {
    /// A refusal with a way back.
    pub fn refusal(status: StatusCode, title: &str, lines: Vec<String>) -> Self {
        let links = vec![("/".to_owned(), "Home".to_owned())];
        let says = format!("{} · {}", status.as_u16(), status.canonical_reason().unwrap_or_default().to_lowercase());
        Self { status, says, title: title.to_owned(), lines, links, ..Self::default() }
    }

    fn of(no_page: NoPage) -> Self {
        match no_page {
            NoPage::Failed(Failure { message, hints, .. }) => {
                let title = "The log cannot be read";
                Self::refusal(StatusCode::SERVICE_UNAVAILABLE, title, [message].into_iter().chain(hints).collect())
            }
            NoPage::Missing { what, back, near } => {
                let page = Self::refusal(StatusCode::NOT_FOUND, &what, vec!["It was never in this log.".to_owned()]);
                Self { near, links: back.into_iter().chain(page.links).collect(), ..page }
            }
        }
    }

    /// The page with only the name in its header.
    pub fn bare(&self) -> Response {
        self.within(Markup::of(&Top { look: None, project: String::new(), n_waiting: 0 }))
    }

    fn within(&self, top: Markup) -> Response {
        let (title, parts) = (format!("{} · crewlog", self.title), vec![("top", top), ("notice", Markup::of(self))]);
        let page = Rendered {
            at: Position(0),
            mode: PageMode::Still,
            now_us: 0,
            title,
            class: "framed",
            places: [&[]; 3],
            parts,
        };
        (self.status, Html(page.document().0)).into_response()
    }
}

impl Site {
    /// A page that says something once, with the header of all pages.
    pub async fn framed(&self, framed: &Framed) -> Response {
        match Look::at(self, &Asked::default()).await {
            Ok(look) => framed.within(top(&look)),
            Err(_unreadable) => framed.bare(),
        }
    }

    pub(super) async fn no_page(&self, no_page: NoPage) -> Response {
        self.framed(&Framed::of(no_page)).await
    }
}
