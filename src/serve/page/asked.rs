//! The address of the page: a path for the plan and the view, and a query. Every state of the page has an address.

use std::collections::BTreeMap;

/// The parameters of the query that the page knows; others are ignored.
const KEYS: [&str; 13] =
    ["at", "before", "event", "lanes", "mark", "prompt", "q", "said", "scope", "step", "task", "type", "with"];
/// The parts of the path.
const PLAN: &str = "plan";
const TAB: &str = "tab";
/// The longest value in bytes; longer ones are ignored.
const VALUE_BYTES_MAX: usize = 4_096;

/// A view with its own page. Home is the overview of all plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Tab {
    Overview,
    Tasks,
    Plans,
    Files,
    Events,
    Statistics,
}

impl Tab {
    /// The pages of the project, and those of a plan.
    pub const OF_PROJECT: [Self; 5] = [Self::Overview, Self::Plans, Self::Files, Self::Events, Self::Statistics];
    pub const OF_PLAN: [Self; 3] = [Self::Overview, Self::Tasks, Self::Events];

    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The paths of all pages, where `{plan}` is the id of a plan.
    pub fn paths() -> impl Iterator<Item = (String, Self)> {
        let of_project = Self::OF_PROJECT.map(|tab| (path_of(None, tab), tab));
        of_project.into_iter().chain(Self::OF_PLAN.map(|tab| (path_of(Some("{plan}"), tab), tab)))
    }

    /// `Overview`
    pub fn title(self) -> String {
        format!("{self:?}")
    }
}

/// An address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked(BTreeMap<&'static str, String>);

impl Asked {
    /// A view of a plan or of the project, with the names and values of a query. Empty values count as absent, as in a form
    /// that was not filled in.
    pub fn of(plan: Option<&str>, tab: Tab, pairs: &[(String, String)]) -> Self {
        let known = |(name, value): &(String, String)| {
            let key = KEYS.into_iter().find(|key| key == name)?;
            (!value.is_empty() && value.len() <= VALUE_BYTES_MAX).then(|| (key, value.clone()))
        };
        let page = Self::default().page(plan.unwrap_or_default(), tab);
        Self(pairs.iter().filter_map(known).chain(page.0).collect())
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// A number that is not negative.
    pub fn number(&self, key: &str) -> Option<i64> {
        self.get(key)?.parse().ok().filter(|n| *n >= 0)
    }

    pub fn is(&self, key: &str, value: &str) -> bool {
        self.get(key) == Some(value)
    }

    pub fn tab(&self) -> Tab {
        self.get(TAB).and_then(|tab| tab.parse().ok()).unwrap_or(Tab::Overview)
    }

    /// The address with changes; an empty value removes a parameter.
    pub fn but(&self, changes: &[(&'static str, &str)]) -> Self {
        let mut asked = self.clone();
        for (key, value) in changes {
            asked.0.remove(key);
            if !value.is_empty() {
                asked.0.insert(key, (*value).to_owned());
            }
        }
        asked
    }

    /// The address of a view of a plan, or of the project without one, as of the same position.
    pub fn page(&self, plan: &str, tab: Tab) -> Self {
        let at = self.get("at").unwrap_or_default();
        let tab = if tab == Tab::Overview { "" } else { tab.as_str() };
        Self::default().but(&[("at", at), (PLAN, plan), (TAB, tab)])
    }

    /// The address with these changes, as text. Messages are shown only once.
    pub fn link(&self, changes: &[(&'static str, &str)]) -> String {
        let asked = self.but(&[("said", "")]).but(changes);
        let (path, query) = (asked.path(), asked.query());
        if query.is_empty() { path } else { format!("{path}?{query}") }
    }

    pub fn path(&self) -> String {
        path_of(self.get(PLAN).map(encoded).as_deref(), self.tab())
    }

    /// The query in a normal form.
    fn query(&self) -> String {
        let pairs = self.except(&[]).into_iter().map(|(key, value)| format!("{key}={}", encoded(&value)));
        pairs.collect::<Vec<_>>().join("&")
    }

    /// The parameters of the query except some, for the hidden fields of a form.
    pub fn except(&self, keys: &[&str]) -> Vec<(&'static str, String)> {
        let is_in_query = |key: &str| !keys.contains(&key) && ![PLAN, TAB].contains(&key);
        self.0.iter().filter(|(key, _)| is_in_query(key)).map(|(key, value)| (*key, value.clone())).collect()
    }
}

fn path_of(plan: Option<&str>, tab: Tab) -> String {
    match (plan, tab) {
        (None, Tab::Overview) => "/".to_owned(),
        (None, tab) => format!("/{}", tab.as_str()),
        (Some(plan), Tab::Overview) => format!("/plans/{plan}"),
        (Some(plan), tab) => format!("/plans/{plan}/{}", tab.as_str()),
    }
}

/// A value encoded for a query or a part of a path.
pub fn encoded(value: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
    value.bytes().map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
