//! Module files that use each other in a circle, and top modules that do.
//!
//! A file uses the file that defines the item it names: a path from `crate`, `super`, `self`, a child or an import is
//! followed through imports and re-exports to the definition. A `mod.rs` that only declares and re-exports its children
//! is in no circle. One that also defines an item is in a circle with each child that takes the item and that it names
//! or re-exports. Test code and calls of methods are left out.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::source::File;
use super::{CRATES, Finding};

/// The names from the root of a crate to a module or item.
type Segments = Vec<String>;
type Modules<'a> = BTreeMap<Segments, Module<'a>>;
/// The files, or top modules, that each one uses, with the names that tie them.
type Uses<'a> = BTreeMap<&'a str, BTreeMap<&'a str, BTreeSet<String>>>;

/// The longest chain of imports that is followed: globs can name each other.
const IMPORTS_MAX: usize = 16;
const DECLARING: [&str; 8] = ["const", "enum", "fn", "static", "struct", "trait", "type", "union"];

struct Module<'a> {
    file: &'a str,
    /// The items that the file defines.
    declared: HashSet<String>,
    /// The name that each import gives, and its path as written.
    imports: HashMap<String, Segments>,
    /// The paths that imports with `*` name.
    globs: Vec<Segments>,
    /// All other paths of two or more segments.
    paths: Vec<Segments>,
}

pub(crate) fn circles(sources: &[File]) -> Vec<Finding> {
    let mut found = Vec::new();
    for root in CRATES {
        let modules = modules(sources, root);
        let uses = uses(&modules);
        let between = between_top_modules(&modules, &uses);
        for (rule, of, uses) in [("circle", "files", &uses), ("circle-top", "top modules", &between)] {
            for circle in circles_of(uses) {
                let (place, measure) = (root.to_owned(), circle.len());
                let says = format!("{measure} {of} use each other in a circle:{}", ties(&circle, uses));
                found.push(Finding { rule, place, line: 1, measure, says });
            }
        }
    }
    found
}

fn ties(circle: &BTreeSet<&str>, uses: &Uses) -> String {
    let mut ties = String::new();
    for user in circle {
        ties.push_str(&format!("\n    {user} uses"));
        for (used, names) in uses[user].iter().filter(|(used, _)| circle.contains(*used)) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            ties.push_str(&format!(" {used} ({})", names.join(", ")));
        }
    }
    ties
}

fn modules<'a>(sources: &'a [File], root: &str) -> Modules<'a> {
    let mut modules = Modules::new();
    for file in sources {
        let Some(path) = file.path.strip_prefix(root).and_then(|path| path.strip_suffix(".rs")) else { continue };
        let segments = if matches!(path, "lib" | "main") { "" } else { path.trim_end_matches("/mod") };
        let segments = segments.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        modules.insert(segments, module(&file.path, &file.text));
    }
    modules
}

fn module<'a>(file: &'a str, code: &str) -> Module<'a> {
    let (declared, imports, globs, paths) = Default::default();
    let mut module = Module { file, declared, imports, globs, paths };
    let tokens = tokens(code);
    let mut at = 0;
    while at < tokens.len() {
        let (path, end) = read_path(&tokens, at);
        if tokens[at] == "use" {
            at = read_use(&tokens, at + 1, &[], &mut module);
            continue;
        } else if at > 0 && DECLARING.contains(&tokens[at - 1]) {
            module.declared.extend(path.into_iter().next());
        } else if path.len() > 1 {
            module.paths.push(path);
        }
        at = end.max(at + 1);
    }
    module
}

/// Reads one tree of an import up to the comma, brace or semicolon after it; returns the place of that.
fn read_use(tokens: &[&str], from: usize, above: &[String], module: &mut Module) -> usize {
    let (mut path, at) = read_path(tokens, from);
    path.splice(0..0, above.iter().cloned());
    match tokens.get(at).copied() {
        Some("{") => {
            let mut at = at;
            while matches!(tokens.get(at), Some(&("{" | ","))) {
                at = read_use(tokens, at + 1, &path, module);
            }
            at + 1
        }
        Some("*") => {
            module.globs.push(path);
            at + 1
        }
        next => {
            path.pop_if(|last| last == "self");
            let alias = tokens.get(at + 1).copied().filter(|_| next == Some("as"));
            if let Some(name) = alias.or(path.last().map(String::as_str)) {
                module.imports.insert(name.to_owned(), path.clone());
            }
            at + if alias.is_some() { 2 } else { 0 }
        }
    }
}

/// The names that `::` joins, and the place after them.
fn read_path(tokens: &[&str], from: usize) -> (Segments, usize) {
    let (mut path, mut at) = (vec![], from);
    while at < tokens.len() && is_name(tokens[at]) {
        path.push(tokens[at].to_owned());
        at += 1;
        if tokens.get(at) != Some(&"::") {
            break;
        }
        at += 1;
    }
    (path, at)
}

fn is_name(token: &str) -> bool {
    token.starts_with(|char: char| char.is_alphanumeric() || char == '_')
}

fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let n_name = rest.find(|char: char| !(char.is_alphanumeric() || char == '_')).unwrap_or(rest.len());
        let n_token = if rest.starts_with("::") { 2 } else { n_name.max(first.len_utf8()) };
        tokens.push(&rest[..n_token]);
        rest = rest[n_token..].trim_start();
    }
    tokens
}

fn uses<'a>(modules: &Modules<'a>) -> Uses<'a> {
    let mut uses = Uses::new();
    for (place, module) in modules {
        let items = module.imports.values().chain(&module.paths);
        let items = items.filter_map(|path| defined(modules, &from_root(modules, place, path, 0)?, 0));
        let globs = module.globs.iter().filter_map(|path| {
            let path = from_root(modules, place, path, 0)?;
            let Some(all) = modules.get(&path) else { return defined(modules, &path, 0) };
            (!all.declared.is_empty()).then(|| (all.file, "*".to_owned()))
        });
        let used: &mut BTreeMap<&str, BTreeSet<String>> = uses.entry(module.file).or_default();
        for (file, name) in items.chain(globs).filter(|(file, _)| *file != module.file) {
            used.entry(file).or_default().insert(name);
        }
    }
    uses
}

/// The path from the root of the crate for a path that the module at `place` names; `None` in other crates.
fn from_root(modules: &Modules, place: &[String], path: &[String], n_imports: usize) -> Option<Segments> {
    let (first, mut rest) = path.split_first()?;
    let mut start = match first.as_str() {
        "crate" => vec![],
        "self" => place.to_vec(),
        "super" => place.split_last()?.1.to_vec(),
        name => {
            let child = [place, &[name.to_owned()]].concat();
            if modules.contains_key(&child) {
                child
            } else {
                let import = modules[place].imports.get(name).filter(|_| n_imports < IMPORTS_MAX)?;
                from_root(modules, place, import, n_imports + 1)?
            }
        }
    };
    while let Some(("super", below)) = rest.split_first().map(|(name, below)| (name.as_str(), below)) {
        start.pop()?;
        rest = below;
    }
    Some([&start, rest].concat())
}

/// The file that defines the item at a path from the root, and its name; `None` for a module or another crate's item.
fn defined<'a>(modules: &Modules<'a>, path: &[String], n_imports: usize) -> Option<(&'a str, String)> {
    let n_module = (0..=path.len()).rev().find(|n| modules.contains_key(&path[..*n]))?;
    let (place, item) = path.split_at(n_module);
    let (name, below) = item.split_first()?;
    let module = &modules[place];
    if n_imports > IMPORTS_MAX {
        return None;
    } else if let Some(import) = module.imports.get(name) {
        let import = from_root(modules, place, import, n_imports)?;
        return defined(modules, &[&import, below].concat(), n_imports + 1);
    }
    let in_glob = |glob: &Segments| {
        let glob = from_root(modules, place, glob, n_imports).filter(|glob| modules.contains_key(glob))?;
        let (file, found) = defined(modules, &[&glob, item].concat(), n_imports + 1)?;
        let is_declared = modules.values().any(|module| module.file == file && module.declared.contains(&found));
        is_declared.then_some((file, found))
    };
    let elsewhere = (!module.declared.contains(name)).then(|| module.globs.iter().find_map(in_glob)).flatten();
    Some(elsewhere.unwrap_or_else(|| (module.file, name.clone())))
}

/// The uses between the modules directly below the root, each with everything below it.
fn between_top_modules<'a>(modules: &'a Modules, uses: &Uses<'a>) -> Uses<'a> {
    let tops = modules.iter().filter_map(|(place, module)| Some((module.file, place.first()?.as_str())));
    let tops: HashMap<&str, &str> = tops.collect();
    let mut between = Uses::new();
    for (user, used) in uses {
        for (used, names) in used {
            if let (Some(user), Some(used)) = (tops.get(user), tops.get(used))
                && user != used
            {
                between.entry(user).or_default().entry(used).or_default().extend(names.iter().cloned());
            }
        }
    }
    between
}

/// The largest sets in which each node reaches all others.
fn circles_of<'a>(uses: &Uses<'a>) -> BTreeSet<BTreeSet<&'a str>> {
    let reached = |from: &&'a str| {
        let (mut reached, mut next) = (BTreeSet::new(), vec![*from]);
        while let Some(node) = next.pop() {
            let used = uses.get(node).into_iter().flat_map(BTreeMap::keys);
            next.extend(used.filter(|used| reached.insert(**used)));
        }
        (*from, reached)
    };
    let reached: BTreeMap<&str, BTreeSet<&str>> = uses.keys().map(reached).collect();
    let is_back = |from: &&str, to: &&str| reached.get(to).is_some_and(|back| back.contains(from));
    let circle = |from: &&'a str| reached[from].iter().filter(|to| is_back(from, to)).copied().collect();
    reached.keys().filter(|node| reached[*node].contains(*node)).map(circle).collect()
}

#[test]
fn only_files_that_use_each_other_are_in_a_circle() {
    for (path, text, is_circle) in [
        // Files next to each other.
        ("src/a.rs", "use crate::{c::C, b::{self as d}};\nfn f() { d::g() }\n=== src/b.rs\nuse crate::a::f;", true),
        (
            "src/a.rs",
            "use crate::b::B;\n=== src/b.rs\nuse crate::c::C;\n=== src/c.rs\nuse super::a::*;\nstruct C;",
            false,
        ),
        ("src/a.rs", "use crate::b::B;\n=== src/b.rs\n#[cfg(test)]\nmod tests {\nuse crate::a::A;\n}", false),
        ("src/a/b/c.rs", "use super::super::d::D;\n=== src/a/d.rs\nuse super::b::c::C;", true),
        ("src/a.rs", "use serde;\nfn f() { serde::g(); crate::a::f() }", false),
        (
            "src/a.rs",
            "use crate::b::{self};\nfn f() { b::C }\n=== src/b.rs\npub use crate::{a::f, c::C};\n=== src/c.rs\n",
            false,
        ),
        ("src/a.rs", "use crate::b::*;\nfn f() { crate::b::X }\n=== src/b.rs\nuse crate::a::*;", true),
        // A child that takes what its parent defines, and a parent that uses the child.
        ("src/a/mod.rs", "pub use self::b::B;\npub struct A;\n=== src/a/b.rs\nuse super::A;", true),
        ("src/a/mod.rs", "mod b;\nfn f() { b::g() }\n=== src/a/b.rs\nuse super::*;", true),
        ("src/main.rs", "mod a;\nfn main() { a::f() }\n=== src/a.rs\nfn f() { crate::main() }", true),
        ("src/a/mod.rs", "mod b;\npub struct A;\n=== src/a/b.rs\nuse super::A;", false),
        ("src/a.rs", "mod b;\npub use b::B;\npub struct A;\n=== src/a/b.rs\npub struct B;", false),
        // A parent that only declares and re-exports.
        (
            "src/a/mod.rs",
            "pub use self::{b::B, c::C};\n=== src/a/b.rs\nuse super::C;\n=== src/a/c.rs\nstruct C;",
            false,
        ),
        (
            "src/a/mod.rs",
            "pub use self::{b::B, c::*};\n=== src/a/b.rs\nuse super::C;\n=== src/a/c.rs\nstruct C;",
            false,
        ),
        (
            "src/a/mod.rs",
            "pub use self::{b::B, c::*};\n=== src/a/b.rs\nuse super::C;\n=== src/a/c.rs\nuse super::B;\nstruct C;",
            true,
        ),
    ] {
        assert_eq!(super::rules_broken(path, text).contains(&"circle"), is_circle, "{path}: {text}");
    }
}
