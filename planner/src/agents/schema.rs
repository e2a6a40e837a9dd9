//! The forms of plans as JSON schemas, for models. An agent's schema names its own tools and no others.

use serde_json::{Map, Value, json};

use crate::agents::registry::ToolRegistry;
use crate::agents::shape::{Field, Shape, Whom};
use crate::agents::{Form, ID_CHARS_MAX, OrchestrationPlan, PerceptionPlan, STEPS_MAX, StrategicPlan, TacticalPlan};
use crate::planner::RETRIES_MAX;
use crate::protocol::AgentType;

/// The form of a plan of this type of agent, with the tools that it has.
#[must_use]
pub fn schema(agent: AgentType, registry: &ToolRegistry) -> Value {
    let form = match agent {
        AgentType::Strategic => StrategicPlan::FIELDS,
        AgentType::Tactical => TacticalPlan::FIELDS,
        AgentType::Perception => PerceptionPlan::FIELDS,
        AgentType::Orchestrator => OrchestrationPlan::FIELDS,
    };
    let mut schema = Schema { agent, registry }.of_fields(form);
    schema["properties"]["version"] = json!({ "const": 1 });
    schema
}

/// Whose schema it is.
struct Schema<'a> {
    agent: AgentType,
    registry: &'a ToolRegistry,
}

impl Schema<'_> {
    fn of_fields(&self, fields: &[Field]) -> Value {
        let required = fields.iter().filter(|field| field.is_needed).map(|field| field.name).collect::<Vec<_>>();
        let said = fields.iter().filter(|field| self.may_say(field));
        let properties = said.map(|field| (field.name.to_owned(), self.of(field.shape))).collect::<Map<_, _>>();
        json!({ "type": "object", "additionalProperties": false, "required": required, "properties": properties })
    }

    /// Only an agent that may have a line executed may say one.
    fn may_say(&self, field: &Field) -> bool {
        !matches!(field.shape, Shape::Line) || self.registry.tools_of(self.agent).any(|tool| tool.takes_command)
    }

    fn of(&self, shape: &Shape) -> Value {
        match shape {
            Shape::Text | Shape::Line => json!({ "type": "string" }),
            Shape::Id => json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]+$", "maxLength": ID_CHARS_MAX }),
            Shape::Tool => {
                let tools = self.registry.tools_of(self.agent).map(|tool| tool.name.as_str());
                json!({ "enum": tools.collect::<Vec<_>>() })
            }
            Shape::Word(words) => json!({ "enum": words }),
            Shape::Agent(whom) => {
                let is_one = |other: &AgentType| match whom {
                    Whom::Any => true,
                    Whom::Asked => self.agent.may_ask(*other),
                    Whom::Below => self.agent.may_delegate_to(*other),
                };
                json!({ "enum": AgentType::ALL.into_iter().filter(is_one).collect::<Vec<_>>() })
            }
            Shape::Tries => json!({ "type": "integer", "minimum": 0, "maximum": RETRIES_MAX }),
            Shape::Millis(max) => json!({ "type": "integer", "minimum": 1, "maximum": max }),
            Shape::Amount => json!({ "type": "integer", "minimum": 0 }),
            Shape::List(items) => json!({ "type": "array", "maxItems": STEPS_MAX, "items": self.of(items) }),
            Shape::Fields(fields) => self.of_fields(fields),
            Shape::ByName(of) => json!({ "type": "object", "additionalProperties": self.of(of) }),
            Shape::OneOf(fields) => {
                let one = fields.iter().map(|field| self.of_fields(std::slice::from_ref(field)));
                json!({ "oneOf": one.collect::<Vec<_>>() })
            }
        }
    }
}
