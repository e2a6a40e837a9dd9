//! The plan of a strategic agent: what is wanted, within what, and by which milestones. It says nothing of how.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::agents::lower::{
    self, CARE, Care, Does, Lowered, REQUEST, Step, VERSION, check_length, check_some, check_text, one_of,
};
use crate::agents::registry::ToolRegistry;
use crate::agents::shape::{Field, Shape, Whom, may, needed};
use crate::agents::{Form, PlanError};
use crate::protocol::{AgentType, CrossAgentStep};

/// Goals, constraints and milestones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StrategicPlan {
    /// Of the form.
    #[serde(default = "StrategicPlan::first_version")]
    pub version: u32,
    /// What is wanted, the most important first.
    #[serde(default)]
    pub narrative_goals: Vec<NarrativeGoal>,
    /// What binds all work, or that for some goals.
    #[serde(default)]
    pub thematic_elements: Vec<Theme>,
    /// The milestones, in order; each becomes a task.
    pub dramatic_beats: Vec<DramaticBeat>,
}

/// A goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NarrativeGoal {
    /// By which the rest of the plan names it.
    pub id: String,
    /// What is wanted.
    pub goal: String,
    /// How one sees that it is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached_when: Option<String>,
}

/// A constraint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Theme {
    /// What binds.
    pub constraint: String,
    /// The goals whose milestones it binds; all, if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<String>,
}

/// A milestone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DramaticBeat {
    /// By which the rest of the plan names it.
    pub id: String,
    /// What is so when it is reached.
    pub milestone: String,
    /// The goals that it serves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<String>,
    /// The milestones that come before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Who makes a plan of its own for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentType>,
    /// The tool by which the agent itself gets there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What another agent is asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<CrossAgentStep>,
    /// What is done about its failures, and about what it did.
    #[serde(default, skip_serializing_if = "Care::is_none")]
    pub care: Care,
}

impl StrategicPlan {
    const fn first_version() -> u32 {
        1
    }

    /// The goals of a milestone, or of a constraint, each of which must be there.
    fn goals<'a>(
        &'a self,
        known: &HashMap<String, usize>,
        ids: &[String],
        at: &str,
    ) -> Result<Vec<&'a NarrativeGoal>, PlanError> {
        let goals = ids.iter().enumerate();
        goals
            .map(|(n, id)| lower::place(known, id, &format!("{at}/goals/{n}")).map(|n| &self.narrative_goals[n]))
            .collect()
    }

    /// What is told of a milestone beside its own words.
    fn notes(&self, beat: &DramaticBeat, goals: &[&NarrativeGoal]) -> Vec<String> {
        let goals = goals.iter().map(|goal| goal.said());
        let binds = |theme: &&Theme| theme.goals.is_empty() || theme.goals.iter().any(|goal| beat.goals.contains(goal));
        let themes = self.thematic_elements.iter().filter(binds);
        goals.chain(themes.map(|theme| format!("constraint: {}", theme.constraint.trim()))).collect()
    }
}

/// A milestone as a text for the agent that plans it. The rest is in a section that has no steps.
fn words(milestone: &str, notes: &[String]) -> String {
    if notes.is_empty() {
        return milestone.trim().to_owned();
    }
    let notes = notes.iter().map(|note| format!("- {}", note.replace('\n', " "))).collect::<Vec<_>>();
    format!("## Background\n\n{}\n\n## Tasks\n\n{}\n", notes.join("\n"), listed(milestone.trim()))
}

/// A milestone as an item of a list, unless it has a list of its own: beside listed notes, plain prose would be the
/// introduction and the notes the work.
fn listed(milestone: &str) -> String {
    let is_item = |line: &str| {
        let line = line.trim_start();
        let number = line.trim_start_matches(|char: char| char.is_ascii_digit());
        line.starts_with(['-', '*', '+', '#', '|'])
            || number.len() < line.len() && (number.starts_with(". ") || number.starts_with(") "))
    };
    if milestone.lines().any(is_item) { milestone.to_owned() } else { format!("- {}", milestone.replace('\n', "\n  ")) }
}

impl NarrativeGoal {
    fn said(&self) -> String {
        let reached = self.reached_when.as_deref().map(|when| format!(" (reached when {})", when.trim()));
        format!("goal: {}{}", self.goal.trim(), reached.unwrap_or_default())
    }
}

const GOAL: &[Field] = &[
    needed("id", &Shape::Id, "by which name the milestones call the goal", r#""login""#),
    needed("goal", &Shape::Text, "what is wanted", r#""people can log in""#),
    may("reached_when", &Shape::Text, "how one sees that the goal is reached", r#""a session is kept""#),
];

const THEME: &[Field] = &[
    needed("constraint", &Shape::Text, "what binds the work", r#""no new dependency""#),
    may("goals", &Shape::List(&Shape::Id), "for which goals it binds, by their ids", r#"["login"]"#),
];

const BEAT: &[Field] = &[
    needed("id", &Shape::Id, "by which name the rest of the plan calls the milestone", r#""store""#),
    needed("milestone", &Shape::Text, "what is so when it is reached", r#""sessions are stored""#),
    may("goals", &Shape::List(&Shape::Id), "which goals it serves, by their ids", r#"["login"]"#),
    may("after", &Shape::List(&Shape::Id), "which milestones come before it, by their ids", r#"["store"]"#),
    may("agent", &Shape::Agent(Whom::Below), "which agent makes a plan of its own for it", r#""tactical""#),
    may("tool", &Shape::Tool, "by which tool of the agent's own it is reached", r#""review_outcome""#),
    REQUEST,
    CARE,
];

impl Form for StrategicPlan {
    const AGENT: AgentType = AgentType::Strategic;
    const VERSION: u32 = 1;
    const FIELDS: &'static [Field] = &[
        VERSION,
        may(
            "narrative_goals",
            &Shape::List(&Shape::Fields(GOAL)),
            "what is wanted, the most important first",
            r#"[{ "id": "login", "goal": "people can log in" }]"#,
        ),
        may(
            "thematic_elements",
            &Shape::List(&Shape::Fields(THEME)),
            "what binds the work",
            r#"[{ "constraint": "no new dependency" }]"#,
        ),
        needed(
            "dramatic_beats",
            &Shape::List(&Shape::Fields(BEAT)),
            "which milestones there are, in order",
            r#"[{ "id": "store", "milestone": "sessions are stored", "agent": "tactical" }]"#,
        ),
    ];

    fn lower(&self, registry: &ToolRegistry) -> Result<Lowered, PlanError> {
        let Self { version: _, narrative_goals, thematic_elements, dramatic_beats } = self;
        check_length(narrative_goals.len(), "/narrative_goals")?;
        check_length(thematic_elements.len(), "/thematic_elements")?;
        check_some(dramatic_beats, "/dramatic_beats")?;
        check_length(dramatic_beats.len(), "/dramatic_beats")?;
        let ids = narrative_goals.iter().enumerate();
        let known = lower::places(ids.map(|(n, goal)| (goal.id.as_str(), format!("/narrative_goals/{n}/id"))))?;
        for (n, goal) in narrative_goals.iter().enumerate() {
            check_text(&goal.goal, format!("/narrative_goals/{n}/goal"))?;
        }
        for (n, theme) in thematic_elements.iter().enumerate() {
            let at = format!("/thematic_elements/{n}");
            check_text(&theme.constraint, format!("{at}/constraint"))?;
            self.goals(&known, &theme.goals, &at)?;
        }
        let mut steps = Vec::new();
        for (n, beat) in dramatic_beats.iter().enumerate() {
            let at = format!("/dramatic_beats/{n}");
            let notes = self.notes(beat, &self.goals(&known, &beat.goals, &at)?);
            let text = words(&beat.milestone, &notes);
            let ways = [
                beat.agent.map(|to| Does::Delegate { to, text }),
                beat.tool.as_deref().map(|name| Does::Tool { name, args: &[], command: None }),
                beat.request.as_ref().map(Does::Ask),
            ];
            let does = one_of(ways, &at, "agent, tool and request")?;
            let step = Step::new(&beat.id, &beat.milestone, does, at);
            let after = beat.after.iter().map(String::as_str).collect();
            steps.push(Step { after, notes, care: beat.care.clone(), ..step });
        }
        let tasks = lower::tasks(Self::AGENT, registry, steps)?;
        let title = narrative_goals.first().map(|goal| goal.goal.trim().to_owned());
        Ok(Lowered { tasks, title, context: narrative_goals.iter().map(NarrativeGoal::said).collect() })
    }
}
