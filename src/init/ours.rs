//! The hooks of crewlog in the settings of agent programs.

use serde_json::Value;

use super::wanted::COMMAND;

/// A hook of ours in a program's file of hooks.
pub struct OurHook<'a> {
    pub event: &'a str,
    /// Its place: the group of its event, and the hook in the group.
    pub place: (usize, usize),
    pub matcher: Option<&'a Value>,
    pub hook: &'a Value,
}

/// Our hooks in the text of such a file.
pub fn our_hooks(settings: &Value) -> Vec<OurHook<'_>> {
    let mut ours = Vec::new();
    for (event, groups) in settings["hooks"].as_object().into_iter().flatten() {
        for (i, group) in groups.as_array().into_iter().flatten().enumerate() {
            for (j, hook) in group["hooks"].as_array().into_iter().flatten().enumerate() {
                if is_our_hook(hook) {
                    ours.push(OurHook { event, place: (i, j), matcher: group.get("matcher"), hook });
                }
            }
        }
    }
    ours
}

/// True for a hook that runs `crewlog hook`, by name or by path. A command with more in it is not ours.
pub fn is_our_hook(hook: &Value) -> bool {
    hook["command"].as_str().is_some_and(|command| command == COMMAND || command.ends_with("/crewlog hook"))
}
