//! The pages: every test that they name exists, every link leads somewhere, and every page is linked.
//!
//! Names are looked up in the text of the sources. People must judge whether a test shows the claim of its page.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Component, Path, PathBuf};

/// The pages whose tests are looked up.
const PAGES_WITH_TESTS: [&str; 2] = ["docs/internal/guarantees.md", "docs/internal/mapping.md"];
/// The prefix of a name, and the folder and root of its modules: without a crate, the tests of this binary.
const SOURCES: [(&str, &str, &str); 8] = [
    ("crewlog-mq ", "mq/src", "lib.rs"),
    ("crewlog-planner ", "planner/src", "lib.rs"),
    ("crewlog-executors ", "executors/src", "lib.rs"),
    ("crewlog ", "src", "main.rs"),
    ("log::", "tests/log", "mod.rs"),
    ("planner::", "tests/planner", "mod.rs"),
    ("coordination::", "tests/coordination", "mod.rs"),
    ("", "tests", "program.rs"),
];
/// With fewer, the search itself is broken.
const N_NAMES_MIN: usize = 100;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[track_caller]
fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn every_test_named_in_the_docs_exists() {
    let (mut n_names, mut missing) = (0, String::new());
    for page in PAGES_WITH_TESTS {
        for name in test_names(&read(page)) {
            n_names += 1;
            if let Err(why) = find_test(&name) {
                writeln!(missing, "{page}: {name}: {why}").expect("a string takes all");
            }
        }
    }
    assert!(missing.is_empty(), "\n{missing}");
    assert!(n_names >= N_NAMES_MIN, "only {n_names} names were found");
}

#[test]
fn every_relative_link_in_the_docs_leads_to_a_file() {
    let (mut n_links, mut broken) = (0, String::new());
    for page in pages() {
        for link in links(&read(&page)) {
            n_links += 1;
            if !root().join(target(&page, &link)).exists() {
                writeln!(broken, "{page}: {link}").expect("a string takes all");
            }
        }
    }
    assert!(broken.is_empty(), "\n{broken}");
    assert!(n_links > 0, "no link was found");
}

#[test]
fn every_page_is_linked_from_another_page() {
    let pages = pages();
    let linked = pages.iter().flat_map(|page| {
        let targets = links(&read(page)).into_iter().map(|link| target(page, &link)).collect::<Vec<_>>();
        targets.into_iter().filter(|target| target != Path::new(page)).collect::<Vec<_>>()
    });
    let linked = linked.collect::<BTreeSet<PathBuf>>();
    // A link to a folder counts for its files.
    let is_linked = |page: &Path| linked.contains(page) || page.parent().is_some_and(|folder| linked.contains(folder));
    let alone = pages.iter().filter(|page| *page != "README.md" && !is_linked(Path::new(page))).collect::<Vec<_>>();
    assert!(alone.is_empty(), "no page links these: {alone:?}");
}

/// README.md and everything in docs/.
fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned()];
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).expect("it is a folder").flatten() {
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path.to_str().expect("pages have plain names").to_owned());
            }
        }
    }
    pages.sort();
    pages
}

/// The lines of a page outside fences.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_fenced = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    })
}

/// The code in backticks of a page that names a test: a path in small letters, optionally with the name of a crate
/// before it. Other functions are written with parentheses.
fn test_names(page: &str) -> Vec<String> {
    let is_small = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || "_:".contains(char);
    let code = prose(page).flat_map(|line| line.split('`').skip(1).step_by(2));
    code.filter(|code| source_of(code).2.contains("::") && source_of(code).2.chars().all(is_small))
        .map(str::to_owned)
        .collect()
}

/// The folder and the root file of a name, and its path in them.
fn source_of(name: &str) -> (&'static str, &'static str, &str) {
    let found = SOURCES.iter().find_map(|(start, folder, root)| Some((*folder, *root, name.strip_prefix(start)?)));
    found.expect("the last takes any name")
}

/// Checks that the test exists to which a name refers.
fn find_test(name: &str) -> Result<(), String> {
    let (folder, root_file, path) = source_of(name);
    let mut modules = path.split("::").collect::<Vec<_>>();
    let function = modules.pop().unwrap_or_default();
    let mut text = read(&format!("{folder}/{root_file}"));
    let mut place = folder.to_owned();
    for module in modules {
        if !declares(&text, module) {
            return Err(format!("no module {module} in {place}"));
        }
        place = format!("{place}/{module}");
        // Without its own file the module is in its parent.
        for file in [format!("{place}.rs"), format!("{place}/mod.rs")] {
            if root().join(&file).exists() {
                text = read(&file);
            }
        }
    }
    if has_test(&text, function) { Ok(()) } else { Err(format!("no test {function} in {place}")) }
}

fn declares(text: &str, module: &str) -> bool {
    let (file, block) = (format!("mod {module};"), format!("mod {module} {{"));
    text.lines().map(str::trim).any(|line| {
        let line = line.strip_prefix("pub ").unwrap_or(line);
        line == file || line == block
    })
}

/// True if the text has the function, with a test attribute.
fn has_test(text: &str, function: &str) -> bool {
    let lines = text.lines().map(str::trim).collect::<Vec<_>>();
    let starts = [format!("fn {function}("), format!("async fn {function}(")];
    let is_test = |at: usize| {
        let attributes = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
        attributes.into_iter().any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
    };
    (0..lines.len()).any(|at| starts.iter().any(|start| lines[at].starts_with(start.as_str())) && is_test(at))
}

/// The targets of the links and images of a page that lead into the repository.
fn links(page: &str) -> Vec<String> {
    let mut links = Vec::new();
    for line in prose(page) {
        let text = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
        let is_relative = |target: &&str| !target.contains("://") && !target.starts_with(['#', '<']);
        links.extend(targets.filter(is_relative).map(str::to_owned));
    }
    links
}

/// The target of a link of a page, from the root.
fn target(page: &str, link: &str) -> PathBuf {
    let mut target = Path::new(page).parent().unwrap_or(Path::new("")).to_path_buf();
    for part in Path::new(link.split('#').next().unwrap_or_default()).components() {
        match part {
            Component::ParentDir if target.pop() => {}
            Component::CurDir => {}
            other => target.push(other),
        }
    }
    target
}

#[test]
fn test_names_and_links_are_extracted_from_a_page() {
    let page = "see `log::ids::a_test`, `crewlog-mq event::tests::b`, `Store::open`, `a::b()`, [a](b.md#c), `[d](e)`\n\
        ```sh\n`log::not::here` [f](g)\n```\n![h](../i.svg) [j](https://k.example/l) [m](#n)\n";
    assert_eq!(test_names(page), ["log::ids::a_test", "crewlog-mq event::tests::b"]);
    assert_eq!(links(page), ["b.md#c", "../i.svg"]);
    assert_eq!(target("docs/a/b.md", "../c.md#d"), Path::new("docs/c.md"));
    assert_eq!(target("docs/a.md", "../../out.md"), Path::new("../out.md"), "what lies outside stays outside");
}

#[test]
fn names_without_a_test_are_detected() {
    for name in [
        "documents::names_without_a_test_are_detected",
        "crewlog-mq clock::tests::a_time_before_1970_is_clamped_to_1970",
        "crewlog ui::text::tests::timestamps_are_printed_as_rfc_3339_in_utc",
    ] {
        assert_eq!(find_test(name), Ok(()));
    }
    for (name, why) in [
        ("documents::nothing", "no test nothing in tests/documents"),
        ("documents::find_test", "no test find_test in tests/documents"),
        ("nowhere::nothing", "no module nowhere in tests"),
        ("log::nowhere::nothing", "no module nowhere in tests/log"),
        ("crewlog-mq nowhere::nothing", "no module nowhere in mq/src"),
    ] {
        assert_eq!(find_test(name), Err(why.to_owned()));
    }
}

/// The lists come from the sources, so that a new variant without a row is detected: every enum of events of the log,
/// and every enum of recorded commands.
#[test]
fn the_json_page_lists_every_event_type_and_recorded_command() {
    let page = read("docs/json.md");
    let (events, commands) = (logged("Event for ", ""), logged("", "pub fn recorded(&self)"));
    assert!(events.len() >= 40 && commands.len() >= 30, "too few are found: {events:?}, {commands:?}");
    let difference = commands
        .symmetric_difference(&names_in_tables(&page, "| command | keys | what its events repeat |", 0))
        .cloned()
        .collect::<Vec<_>>();
    assert!(difference.is_empty(), "recorded commands without a row, or rows without a command: {difference:?}");
    let mut documented = names_in_tables(&page, "| stream | type | keys of `data` |", 1);
    // It has no enum, because the log itself appends it.
    assert!(documented.remove("ClockStepped"));
    let difference = events.symmetric_difference(&documented).collect::<Vec<_>>();
    assert!(difference.is_empty(), "event types without a row, or rows without an event: {difference:?}");
}

/// The variants of every enum with an `impl` whose first line or body contains this.
fn logged(head: &str, body: &str) -> BTreeSet<String> {
    let mut variants = BTreeSet::new();
    for folder in ["mq/src", "planner/src", "executors/src", "src"] {
        let sources = sources(folder);
        for source in &sources {
            for implementation in source.split("\nimpl ").skip(1) {
                let (line, rest) = implementation.split_once(" {").unwrap_or_default();
                let block = rest.split("\n}\n").next().unwrap_or_default();
                let name = line.rsplit(' ').next().unwrap_or_default();
                if line.contains(head) && block.contains(body) && (head.is_empty() || line.starts_with(['M', 'E'])) {
                    variants.extend(sources.iter().flat_map(|source| variants_of(source, name)));
                }
            }
        }
    }
    variants
}

fn sources(folder: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(root().join(folder)).expect("it is a folder").flatten() {
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            texts.extend(sources(&path));
        } else if path.ends_with(".rs") {
            texts.push(read(&path));
        }
    }
    texts
}

/// As rustfmt writes them: one per line, indented once.
fn variants_of(source: &str, name: &str) -> Vec<String> {
    let Some((_, rest)) = source.split_once(&format!("\npub enum {name} {{\n")) else { return Vec::new() };
    let block = rest.split("\n}\n").next().unwrap_or_default();
    let lines = block.lines().filter_map(|line| line.strip_prefix("    "));
    let names = lines.filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()));
    names.map(|line| line.chars().take_while(|char| char.is_alphanumeric()).collect()).collect()
}

/// The names in one cell of each row of the tables with this head.
fn names_in_tables(page: &str, head: &str, cell: usize) -> BTreeSet<String> {
    let tables = page.split(head).skip(1).map(|rest| rest.split("\n\n").next().unwrap_or_default());
    let cells = tables.flat_map(str::lines).filter_map(|row| row.split(" | ").nth(cell));
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    names.map(str::to_owned).collect()
}
