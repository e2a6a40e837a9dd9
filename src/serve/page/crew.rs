//! The agents of the project and their work: directories, leases, and edits without leases.

use askama::Template;

use super::look::Look;
use super::needs::{NeedGroup, anchor};
use super::words::{self, Markup, name_of_value, some_of};
use crate::ui::failure::Failure;
use crate::ui::text::count;
use crate::views::{AgentView, EditView, FilesCell, FilesView, LeaseView, NeedView};

/// The number of agents after which the rest are folded.
const OPEN_MAX: usize = 8;
/// The most leases that are listed.
const LEASES_MAX: usize = 500;

#[derive(Template)]
#[template(path = "agents.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
struct Agents<'a> {
    look: &'a Look<'a>,
    /// Each with its state, most urgent first.
    agents: Vec<(Markup, &'a AgentView)>,
    n_idle: usize,
    leases: Vec<LeaseView>,
}

/// The card of the agents.
pub async fn agents(look: &Look<'_>) -> Result<Markup, Failure> {
    let all = look.shown.agents(false).await?;
    if all.is_empty() {
        return Ok(Markup::default());
    }
    let state = |agent: &AgentView| {
        let (liveness, activity) = (name_of_value(&agent.liveness), name_of_value(&agent.activity));
        let health = name_of_value(&agent.health);
        match (liveness.as_str(), activity.as_str()) {
            ("lost", _) => (0, "lost", "lost"),
            _ if health == "error" => (0, "failed", "error"),
            _ if health == "limited" => (1, "waiting", "limited"),
            ("stuck", _) => (0, "stalled", "stalled"),
            (_, "waiting" | "blocked") if question_of(look, agent).is_some() => {
                (1, "waiting_for_you", "waiting for you")
            }
            (_, "waiting" | "blocked") => (1, "waiting", "waiting"),
            (_, "working") => (2, "working", "working"),
            _resting => (3, "idle", "idle"),
        }
    };
    let mut ranked: Vec<_> = all.iter().map(|agent| (state(agent), agent)).collect();
    ranked.sort_by_key(|((rank, _, _), _)| *rank);
    let n_idle = ranked.iter().filter(|((rank, _, _), _)| *rank == 3).count();
    let agents = ranked.into_iter().map(|((_, class, word), agent)| (words::pill(class, word), agent)).collect();
    let leases = look.shown.leases(|_| true).await?;
    Ok(Markup::of(&Agents { look, agents, n_idle, leases }))
}

/// The question that an agent waits for.
fn question_of<'a>(look: &'a Look<'_>, agent: &AgentView) -> Option<&'a NeedView> {
    look.needs.iter().find(|need| need.from == agent.agent && NeedGroup::of(need.kind) == NeedGroup::Answer)
}

impl Agents<'_> {
    /// A link to the question that an agent waits for.
    fn question(&self, agent: &AgentView) -> Markup {
        let link = |need| words::link(&format!("#{}", anchor(need)), &words::cut(&need.text, 120));
        question_of(self.look, agent).map(link).unwrap_or_default()
    }

    /// The paths of an agent's leases.
    fn held(&self, agent: &AgentView) -> String {
        let is_held = |lease: &&LeaseView| lease.agent == agent.agent && lease.lease.is_some();
        let held: Vec<_> = self.leases.iter().filter(is_held).collect();
        if held.is_empty() { "no leases".to_owned() } else { some_of(&held, 3, |lease| words::cut(&lease.path, 60)) }
    }
}

#[derive(Template)]
#[template(path = "files.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
struct Files<'a> {
    look: &'a Look<'a>,
    files: FilesView,
    leases: Vec<LeaseView>,
}

/// The card of the files.
pub async fn files(look: &Look<'_>) -> Result<Markup, Failure> {
    let (files, leases) = (look.shown.files().await?, look.shown.leases(|_| true).await?);
    Ok(Markup::of(&Files { look, files, leases }))
}

impl Files<'_> {
    fn form(&self, lease: &LeaseView) -> Markup {
        let number = lease.lease.map(|number| number.to_string());
        let form = self.look.form("end-leases", vec![("leases", number.unwrap_or_default())]);
        form.required("reason", "why").button("End the lease").markup()
    }
}

/// The class, the signs and the words for an agent's work in a directory.
fn cell(cell: &FilesCell) -> (&'static str, String, String) {
    let kinds = [
        ("c-x", '✕', "touched without a lease", &cell.touched),
        ("c-h", '■', "holds", &cell.holds),
        ("", '□', "means to touch", &cell.means),
    ];
    let some: Vec<_> = kinds.iter().filter(|(_, _, _, paths)| !paths.is_empty()).collect();
    let words = |(_, _, what, paths): &&(_, _, _, &Vec<String>)| {
        format!("{what} {}", some_of(paths, 5, |path| words::cut(path, 80)))
    };
    let class = some.first().map_or("", |(class, _, _, _)| class);
    (class, some.iter().map(|kind| kind.1).collect(), some.iter().map(words).collect::<Vec<_>>().join("; "))
}

#[derive(Template)]
#[template(path = "edits.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
struct Edits<'a> {
    look: &'a Look<'a>,
    edits: Vec<EditView>,
}

/// The last edits that were refused or made without a lease.
pub async fn edits(look: &Look<'_>) -> Result<Markup, Failure> {
    Ok(Markup::of(&Edits { look, edits: look.shown.edits(None, 50).await? }))
}
