//! The OpenAPI document, generated from the handlers of the views and the commands of the command line.

use serde_json::{Value, json};
use utoipa::openapi::OpenApi;

use super::access::Scope;
use super::commands::{KEY, schema};
use crate::action::{Action, ActionKind};

/// The answers that any request may get.
const PROBLEMS: [(&str, &str); 12] = [
    ("400", "The request cannot be read"),
    ("401", "A credential is missing or wrong"),
    ("403", "The credential does not allow it, or the commands that would run need consent"),
    ("404", "Not found"),
    ("405", "The address has other methods"),
    ("408", "The body did not arrive in time"),
    ("409", "The state does not allow it"),
    ("413", "The body is too long"),
    ("415", "The body is not JSON"),
    ("422", "A parameter or a field is wrong"),
    ("429", "Too many requests"),
    ("503", "The log failed, or too much is under way"),
];

/// The whole document.
pub fn document(views: OpenApi) -> Value {
    let mut document = serde_json::to_value(views).unwrap_or_default();
    document["openapi"] = "3.1.0".into();
    document["info"] = json!({
        "title": "crewlog", "version": env!("CARGO_PKG_VERSION"), "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        "description": "What a crew of coding agents does on its log, now or as of any position, and the commands of a person to it.",
    });
    document["components"]["securitySchemes"] =
        json!({ "token": { "type": "http", "scheme": "bearer", "description": "crewlog serve tokens add NAME" } });
    document["security"] = json!([{ "token": [] }]);
    for kind in Action::KINDS {
        document["paths"][format!("/api/commands/{}", kind.name)]["post"] = command(kind);
    }
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    for operation in
        paths.flat_map(|(_, path)| path.as_object_mut().into_iter().flatten()).map(|(_, operation)| operation)
    {
        for (status, description) in PROBLEMS {
            operation["responses"][status] = json!({
                "description": description,
                "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
            });
        }
    }
    document
}

fn command(kind: &ActionKind) -> Value {
    let scope: &str = kind.scope.into();
    let scope = match kind.scope {
        Scope::Write => String::new(),
        Scope::Read | Scope::Execute | Scope::Operator => format!(" Needs the scope {scope}."),
    };
    json!({
        "operationId": kind.name,
        "tags": ["commands"],
        "description": format!("{}.{scope}", kind.about.trim()),
        "parameters": [{
            "name": KEY, "in": "header", "required": false, "description": "With it, a repeated request has one effect and the same answer",
            "schema": { "type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$" },
        }],
        "requestBody": { "required": true, "content": { "application/json": { "schema": schema(kind) } } },
        "responses": {
            "200": { "description": "What the command line would print", "content": { "application/json": { "schema": { "type": "object" } } } },
        },
    })
}
