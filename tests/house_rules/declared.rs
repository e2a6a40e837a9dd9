//! Type names that one crate declares more than once. Test code is left out.

use std::collections::BTreeMap;

use super::source::{File, names_after, outside};
use super::{CRATES, Finding};

pub(crate) fn declared_twice(sources: &[File]) -> Vec<Finding> {
    let mut found = Vec::new();
    for root in CRATES {
        let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for file in sources.iter().filter(|file| file.path.starts_with(root)) {
            // The `type` of a trait is no alias.
            let aliases = outside(&file.text, &["impl", "trait"]);
            let types =
                ["enum", "struct", "trait", "union"].into_iter().flat_map(|keyword| names_after(&file.text, keyword));
            for (line, name) in types.chain(names_after(&aliases, "type")) {
                places.entry(name.to_owned()).or_default().push(format!("{}:{line}", file.path));
            }
        }
        for (name, places) in places.into_iter().filter(|(_, places)| places.len() > 1) {
            let (place, measure) = (root.to_owned(), places.len() - 1);
            let says = format!("`{name}` is declared at {}: one name, one thing", places.join(", "));
            found.push(Finding { rule: "twice", place, line: 1, measure, says });
        }
    }
    found
}
