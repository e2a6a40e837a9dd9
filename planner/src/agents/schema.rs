//! The forms of plans as JSON schemas, for models. An agent's schema names its own tools and no others.

use serde_json::{Value, json};

use crate::agents::registry::ToolRegistry;
use crate::agents::{ID_CHARS_MAX, STEP_TIMEOUT_MS_MAX, STEPS_MAX};
use crate::planner::RETRIES_MAX;
use crate::protocol::{AgentType, REQUEST_TIMEOUT_MS_MAX};

/// The form of a plan of this type of agent, with the tools that it has.
#[must_use]
pub fn schema(agent: AgentType, registry: &ToolRegistry) -> Value {
    let tools = registry.tools_of(agent).map(|tool| tool.name.as_str()).collect::<Vec<_>>();
    let has_shell = registry.tools_of(agent).any(|tool| tool.takes_command);
    let parts = Parts { agent, tool: json!({ "enum": tools }), has_shell };
    let mut schema = match agent {
        AgentType::Strategic => parts.strategic(),
        AgentType::Tactical => parts.tactical(),
        AgentType::Perception => parts.perception(),
        AgentType::Orchestrator => parts.orchestration(),
    };
    schema["properties"]["version"] = json!({ "const": 1 });
    schema
}

struct Parts {
    agent: AgentType,
    tool: Value,
    has_shell: bool,
}

impl Parts {
    fn strategic(&self) -> Value {
        let goal = object(&["id", "goal"], json!({ "id": id(), "goal": text(), "reached_when": text() }));
        let theme = object(&["constraint"], json!({ "constraint": text(), "goals": list(&id()) }));
        let beat = json!({
            "id": id(), "milestone": text(), "goals": list(&id()), "after": list(&id()),
            "agent": self.below(), "tool": self.tool, "request": self.request(), "care": self.care(),
        });
        let beat = object(&["id", "milestone"], beat);
        let plan = json!({
            "narrative_goals": list(&goal), "thematic_elements": list(&theme), "dramatic_beats": list(&beat),
        });
        object(&["dramatic_beats"], plan)
    }

    fn tactical(&self) -> Value {
        let step = json!({
            "id": id(), "step": text(), "tool": self.tool, "args": list(&text()), "command": text(),
            "request": self.request(), "agent": self.below(), "timeout_ms": number(STEP_TIMEOUT_MS_MAX),
            "care": self.care(),
        });
        let by_step = json!({ "type": "object", "additionalProperties": list(&text()) });
        let resources = json!({
            "files": by_step,
            "agent_types": list(&json!({ "enum": AgentType::ALL })),
            "capacities": { "type": "object", "additionalProperties": { "type": "integer", "minimum": 0 } },
        });
        let plan = json!({
            "execution_steps": list(&object(&["id", "step"], step)), "dependencies": by_step,
            "resource_requirements": object(&[], resources),
        });
        object(&["execution_steps"], plan)
    }

    fn perception(&self) -> Value {
        let pattern = json!({
            "id": id(), "look_for": text(), "within": list(&text()), "tool": self.tool, "args": list(&text()),
            "care": self.care(),
        });
        let strategy = json!({
            "by": list(&json!({ "enum": ["path", "symbol", "text"] })),
            "ambiguous": { "enum": ["all", "first", "ask"] },
        });
        let update = json!({
            "id": id(), "keep": text(), "from": list(&id()), "tool": self.tool, "care": self.care(),
        });
        let plan = json!({
            "extraction_patterns": list(&object(&["id", "look_for", "tool"], pattern)),
            "entity_resolution_strategy": object(&[], strategy),
            "state_update_sequence": list(&object(&["id", "keep", "tool"], update)),
        });
        object(&["extraction_patterns"], plan)
    }

    fn orchestration(&self) -> Value {
        let assignment = json!({
            "id": id(), "work": text(), "agent": self.below(), "tool": self.tool, "request": self.request(),
            "after": list(&id()), "timeout_ms": number(STEP_TIMEOUT_MS_MAX), "care": self.care(),
        });
        object(&["assignments"], json!({ "assignments": list(&object(&["id", "work"], assignment)) }))
    }

    /// What is done about failures; only an agent that may have a line executed may say how something is undone.
    fn care(&self) -> Value {
        let mut care = json!({
            "retry": { "type": "integer", "minimum": 0, "maximum": RETRIES_MAX },
            "deadline_ms": number(STEP_TIMEOUT_MS_MAX),
        });
        if self.has_shell {
            care["undo"] = text();
        }
        object(&[], care)
    }

    /// Those to whom the agent may leave work.
    fn below(&self) -> Value {
        let below = AgentType::ALL.into_iter().filter(|other| self.agent.may_delegate_to(*other));
        json!({ "enum": below.collect::<Vec<_>>() })
    }

    fn request(&self) -> Value {
        let targets = AgentType::ALL.into_iter().filter(|other| self.agent.may_ask(*other));
        let request = json!({ "oneOf": [
            object(&["analyse"], json!({ "analyse": object(&["text"], json!({ "text": text() })) })),
            object(&["extract"], json!({ "extract": object(&["context"], json!({ "context": text() })) })),
            object(&["locate"], json!({ "locate": object(&["entity"], json!({ "entity": text() })) })),
        ] });
        let step = json!({
            "target_agent": { "enum": targets.collect::<Vec<_>>() }, "request": request,
            "timeout_ms": number(REQUEST_TIMEOUT_MS_MAX),
        });
        object(&["target_agent", "request", "timeout_ms"], step)
    }
}

fn object(required: &[&str], properties: Value) -> Value {
    let mut object = json!({ "type": "object", "additionalProperties": false, "required": required });
    object["properties"] = properties;
    object
}

fn list(items: &Value) -> Value {
    json!({ "type": "array", "maxItems": STEPS_MAX, "items": items })
}

fn id() -> Value {
    json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]+$", "maxLength": ID_CHARS_MAX })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn number(max: u64) -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": max })
}
