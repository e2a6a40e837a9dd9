//! The plan of an orchestrator: which agent does what, and when. It says nothing of how.

use serde::{Deserialize, Serialize};

use crate::agents::lower::{self, CARE, Care, Does, Lowered, REQUEST, Step, VERSION, check_length, check_some, one_of};
use crate::agents::registry::ToolRegistry;
use crate::agents::shape::{Field, Shape, Whom, may, needed};
use crate::agents::{Form, PlanError, STEP_TIMEOUT_MS_MAX};
use crate::protocol::{AgentType, CrossAgentStep};

/// Who does what, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrchestrationPlan {
    /// Of the form.
    #[serde(default = "OrchestrationPlan::first_version")]
    pub version: u32,
    /// In order; each becomes a task.
    pub assignments: Vec<Assignment>,
}

/// A piece of work, who does it, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    /// By which the rest of the plan names it.
    pub id: String,
    /// What is to be done.
    pub work: String,
    /// Who makes a plan of its own for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentType>,
    /// The tool with which the orchestrator itself does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What an agent is asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<CrossAgentStep>,
    /// What must have ended before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Milliseconds after its start by which it must have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What is done about its failures, and about what it did.
    #[serde(default, skip_serializing_if = "Care::is_none")]
    pub care: Care,
}

impl OrchestrationPlan {
    const fn first_version() -> u32 {
        1
    }
}

const ASSIGNMENT: &[Field] = &[
    needed("id", &Shape::Id, "by which name the rest of the plan calls the work", r#""build""#),
    needed("work", &Shape::Text, "what is to be done", r#""Build the parser""#),
    may("agent", &Shape::Agent(Whom::Below), "which agent makes a plan of its own for it", r#""tactical""#),
    may("tool", &Shape::Tool, "with which tool of the orchestrator's own it is done", r#""review_progress""#),
    REQUEST,
    may("after", &Shape::List(&Shape::Id), "what must have ended before, by ids", r#"["aim"]"#),
    may(
        "timeout_ms",
        &Shape::Millis(STEP_TIMEOUT_MS_MAX),
        "within how many milliseconds of its start it must have ended",
        "3600000",
    ),
    CARE,
];

impl Form for OrchestrationPlan {
    const AGENT: AgentType = AgentType::Orchestrator;
    const VERSION: u32 = 1;
    const FIELDS: &'static [Field] = &[
        VERSION,
        needed(
            "assignments",
            &Shape::List(&Shape::Fields(ASSIGNMENT)),
            "who does what, and when",
            r#"[{ "id": "build", "work": "Build the parser", "agent": "tactical" }]"#,
        ),
    ];

    fn lower(&self, registry: &ToolRegistry) -> Result<Lowered, PlanError> {
        check_some(&self.assignments, "/assignments")?;
        check_length(self.assignments.len(), "/assignments")?;
        let mut steps = Vec::new();
        for (n, assignment) in self.assignments.iter().enumerate() {
            let at = format!("/assignments/{n}");
            let ways = [
                assignment.agent.map(|to| Does::Delegate { to, text: assignment.work.trim().to_owned() }),
                assignment.tool.as_deref().map(|name| Does::Tool { name, args: &[], command: None }),
                assignment.request.as_ref().map(Does::Ask),
            ];
            let does = one_of(ways, &at, "agent, tool and request")?;
            let after = assignment.after.iter().map(String::as_str).collect();
            let (timeout_ms, care) = (assignment.timeout_ms, assignment.care.clone());
            steps.push(Step { after, timeout_ms, care, ..Step::new(&assignment.id, &assignment.work, does, at) });
        }
        let tasks = lower::tasks(Self::AGENT, registry, steps)?;
        Ok(Lowered { tasks, title: None, context: Vec::new() })
    }
}
