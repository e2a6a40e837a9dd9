//! The hooks of crewlog in the settings of agent programs.

use serde_json::Value;

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

/// True for a hook whose command is `crewlog hook`, by name or by path: these two words, and no sign of a shell.
pub fn is_our_hook(hook: &Value) -> bool {
    let Some(command) = hook["command"].as_str() else { return false };
    let is_plain = |char: char| char.is_alphanumeric() || "/._-+@~ ".contains(char);
    match command.split(' ').collect::<Vec<_>>()[..] {
        [program, "hook"] => command.chars().all(is_plain) && program.rsplit('/').next() == Some("crewlog"),
        _ => false,
    }
}
