//! The house rules that a compiler cannot check, applied to every file of the repository.
//!
//! Allowed violations are listed in `tests/house_rules.txt`; their limits may only shrink.

mod circles;
mod declared;
mod english;
mod owners;
mod source;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;

use source::{File, code_only, first_test_line, functions, lines_with, names_after, outside, production};

type Paths = &'static [&'static str];

const CRATES: [&str; 4] = ["mq/src/", "planner/src/", "executors/src/", "src/"];
/// The rules by which agents coordinate, and the code that carries them out.
const CREW: [&str; 2] = ["planner/src/crew/", "executors/src/crew/"];
/// The interfaces for agents.
const FACES: [&str; 4] = ["src/hook/", "src/init/", "src/mcp/", "src/serve/mcp/"];
/// The interfaces for people and programs that read.
const VIEWS: [&str; 7] =
    ["src/demo/", "src/http/", "src/page/", "src/serve/http/", "src/serve/page/", "src/top/", "src/views/"];
const FILE_LINES_MAX: usize = 600;
const FN_LINES_MAX: usize = 80;
/// Maximum lines of production code in parts of the repository, including comments and blank lines but not tests: the
/// part, its lists of paths, the paths to leave out, and the limit.
const CEILINGS: [(&str, &[Paths], &[Paths], usize); 7] = [
    ("the log", &[&["mq/src/"]], &[], 16_000),
    ("the planner", &[&["planner/src/"]], &[&CREW], 14_740),
    ("the reader of plan files", &[&["planner/src/parse/"]], &[], 4_000),
    ("the executors", &[&["executors/src/"]], &[&CREW], 11_080),
    ("coordination", &[&CREW, &FACES], &[], 18_600),
    ("views", &[&VIEWS], &[], 9_450),
    ("the program", &[&["src/"]], &[&FACES, &VIEWS], 11_870),
];
const FOLDERS: [&str; 10] =
    [".ci", "benches", "docs", "examples", "executors", "mq", "planner", "src", "tests", "assets"];
const NAMES_REFUSED: [&str; 10] =
    ["common", "utils", "util", "helper", "helpers", "misc", "info", "manager", "service", "services"];
const NOTES_REFUSED: [&str; 4] = ["PLAN", "TODO", "SUMMARY", "NOTES"];
const MIGRATIONS: &str = "mq/migrations/";

#[test]
fn the_repository_keeps_its_house_rules() {
    let files = tree(Path::new(env!("CARGO_MANIFEST_DIR")));
    assert!(files.iter().any(|file| file.path == "mq/src/lib.rs"), "the walk finds the repository");
    let exceptions = files.iter().find(|file| file.path == "tests/house_rules.txt");
    let broken = judge(&findings(&files), exceptions.map_or("", |file| &file.text));
    assert!(broken.is_empty(), "{} house rules are broken:\n{}", broken.len(), broken.join("\n"));
}

/// Everyone who embeds the log on SQLite must compile and trust these crates.
#[test]
fn the_log_on_sqlite_needs_at_most_sixty_crates() {
    let tree =
        "tree --offline --locked -p crewlog-mq --no-default-features --features sqlite -e normal --prefix none -f {p}";
    let ran = Command::new(env!("CARGO")).args(tree.split(' ')).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let ran = ran.expect("cargo runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let tree = String::from_utf8(ran.stdout).expect("it is UTF-8");
    let crates: BTreeSet<&str> = tree.lines().collect();
    assert!((10..=60).contains(&crates.len()), "{} crates: {crates:#?}", crates.len());
}

/// One violation of a rule.
struct Finding {
    rule: &'static str,
    /// A path, or `path:name` for a function.
    place: String,
    line: usize,
    /// A size for rules on size, else 1: compared with an exception's limit, summed by rule and location.
    measure: usize,
    says: String,
}

fn findings(files: &[File]) -> Vec<Finding> {
    let mut found = frozen_migrations(files);
    found.extend(ceilings(files));
    let sources: Vec<File> = files.iter().filter(|file| file.path.ends_with(".rs")).map(production).collect();
    found.extend(circles::circles(&sources));
    found.extend(declared::declared_twice(&sources));
    found.extend(owners::readers_of_task_status(&sources));
    found.extend(owners::writers(&sources));
    found.extend(owners::quoters(&sources));
    for file in files {
        found.extend(text_rules(file));
        if file.path.ends_with("Cargo.toml") {
            found.extend(crate_arrows(file));
        }
        if file.path.ends_with(".rs") {
            let code = code_only(&file.text);
            found.extend(sizes(file, &code));
            found.extend(names(file, &code));
            found.extend(unfinished_work(file, &code));
            found.extend(shared_locks(file, &code));
            found.extend(purity(file, &code));
        }
    }
    found
}

fn ceilings(files: &[File]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (part, places, apart, max) in CEILINGS {
        let is_in = |paths: &[&str], file: &File| paths.iter().any(|path| file.path.starts_with(path));
        let (places, apart) = (places.concat(), apart.concat());
        let is_counted = |file: &&File| file.path.ends_with(".rs") && is_in(&places, file) && !is_in(&apart, file);
        let lines = files.iter().filter(is_counted).map(|file| first_test_line(&file.path, &file.text) - 1);
        let total = lines.sum::<usize>();
        if total > max {
            let place = places[0].to_owned();
            let says = format!("{part} has {total} lines, over {max}: simplify it");
            found.push(Finding { rule: "ceiling", place, line: 1, measure: total, says });
        }
    }
    found
}

/// The violations beyond their exceptions, and the exceptions that are too large.
fn judge(findings: &[Finding], exceptions: &str) -> Vec<String> {
    let mut broken = Vec::new();
    let mut limits: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for line in exceptions.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let [rule, place, limit] = line.split_whitespace().collect::<Vec<_>>()[..]
            && let Ok(limit) = limit.parse()
        {
            limits.insert((rule, place), limit);
        } else {
            broken.push(format!("tests/house_rules.txt: `{line}` is not `rule path[:name] limit`"));
        }
    }
    let mut totals: HashMap<(&str, &str), usize> = HashMap::new();
    for finding in findings {
        *totals.entry((finding.rule, &finding.place)).or_default() += finding.measure;
    }
    for Finding { rule, place, line, says, .. } in findings {
        let total = totals[&(*rule, place.as_str())];
        let limit = limits.get(&(*rule, place.as_str())).copied().unwrap_or(0);
        if total > limit {
            let path = place.split(':').next().unwrap_or(place);
            let allowed = if limit > 0 { format!(" ({total} in all, {limit} allowed)") } else { String::new() };
            broken.push(format!("{path}:{line}: [{rule}] {says}{allowed}"));
        }
    }
    for ((rule, place), limit) in limits {
        match totals.get(&(rule, place)).copied().unwrap_or(0) {
            0 => broken.push(format!("tests/house_rules.txt: `{rule} {place}` is no longer needed: delete it")),
            total if total < limit => {
                broken.push(format!("tests/house_rules.txt: `{rule} {place}` can be lowered to {total}: do it"));
            }
            _needed => {}
        }
    }
    broken
}

fn tree(root: &Path) -> Vec<File> {
    let mut files = Vec::new();
    let entries = std::fs::read_dir(root).expect("the root is a folder").flatten().map(|entry| entry.path());
    // In a worktree `.git` is a file.
    for path in entries.filter(|path| path.is_file() && !path.ends_with(".git")) {
        files.extend(read(root, &path));
    }
    for folder in FOLDERS {
        walk(root, &root.join(folder), &mut files);
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn walk(root: &Path, folder: &Path, files: &mut Vec<File>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_file() {
            files.extend(read(root, &path));
        } else if name != "target" && !name.to_string_lossy().starts_with('.') {
            walk(root, &path, files);
        }
    }
}

/// Empty for a file that is not UTF-8: an image, a font.
fn read(root: &Path, path: &Path) -> Option<File> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(File { path: path.strip_prefix(root).ok()?.to_str()?.to_owned(), text })
}

fn finding(rule: &'static str, file: &File, line: usize, says: impl Into<String>) -> Finding {
    Finding { rule, place: file.path.clone(), line, measure: 1, says: says.into() }
}

fn text_rules(file: &File) -> Vec<Finding> {
    let mut found = Vec::new();
    let stem = Path::new(&file.path).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    if NOTES_REFUSED.contains(&stem) {
        let says = "plans and notes are not kept: docs/internal/decisions/ is for designs";
        found.push(finding("notes", file, 1, says));
    }
    let is_source = file.path.ends_with(".rs");
    for (index, line) in file.text.lines().enumerate() {
        let prose = if is_source { line.split_once("//").map(|(_, comment)| comment) } else { Some(line) };
        let is_judged = is_source || file.path.ends_with(".md");
        for wording in english::stilted(prose.filter(|_| is_judged).unwrap_or_default(), is_source) {
            found.push(finding("english", file, index + 1, format!("`{wording}`: say it plainly")));
        }
        for folder in ["home", "work", "Users", "root"] {
            let starts_a_path = |at: usize| {
                !line[..at].ends_with(|before: char| before.is_alphanumeric() || "_-.~/}*)>$".contains(before))
            };
            if line.match_indices(&format!("/{folder}/")).any(|(at, _)| starts_a_path(at)) {
                found.push(finding("machine-path", file, index + 1, "a path of one machine: make it relative"));
            }
        }
    }
    found
}

fn sizes(file: &File, code: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let n_lines = file.text.lines().count();
    if n_lines > FILE_LINES_MAX {
        let says = format!("{n_lines} lines, over {FILE_LINES_MAX}: split it by job");
        found.push(Finding { measure: n_lines, ..finding("file-lines", file, 1, says) });
    }
    for function in functions(code).into_iter().filter(|function| function.n_lines > FN_LINES_MAX) {
        let (name, n_lines) = (function.name, function.n_lines);
        let says = format!("fn {name} has {n_lines} lines, over {FN_LINES_MAX}: split it by level");
        let found_here = finding("fn-lines", file, function.line, says);
        found.push(Finding { measure: n_lines, place: format!("{}:{name}", file.path), ..found_here });
    }
    if !file.text.starts_with("//!") {
        found.push(finding("module-docs", file, 1, "begin with `//!`: what the module is, and what it never does"));
    }
    found
}

/// A trait that another crate defines may require a name that is refused here.
fn names(file: &File, code: &str) -> Vec<Finding> {
    let code = &outside(code, &["impl"]);
    let mut found = Vec::new();
    let mut check = |line: usize, name: &str| {
        if words(name).iter().any(|word| NAMES_REFUSED.contains(&word.as_str())) {
            found.push(finding("names", file, line, format!("`{name}` says nothing: name the job")));
        }
    };
    for part in file.path.trim_end_matches(".rs").split('/') {
        check(1, part);
    }
    for keyword in ["mod", "struct", "enum", "trait", "type", "union"] {
        for (line, name) in names_after(code, keyword) {
            check(line, name);
        }
    }
    for function in functions(code).into_iter().filter(|function| function.name.starts_with("get_")) {
        found.push(finding("names", file, function.line, format!("fn {}: drop the `get_`", function.name)));
    }
    found
}

/// `TaskRow` and `task_row` are both `task`, `row`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for char in name.chars() {
        if !char.is_alphanumeric() || char.is_uppercase() {
            words.push(String::new());
        }
        if char.is_alphanumeric() {
            words.last_mut().expect("it begins with one word").extend(char.to_lowercase());
        }
    }
    words
}

const BODY: &str = "#[ignore = \"runs in another process\"]";

fn unfinished_work(file: &File, code: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for pattern in ["todo!", "unimplemented!", "dbg!", "#[ignore", "#[allow(", "#![allow("] {
        // Only tests that another test starts as a process may be ignored.
        let is_body = |line: &usize| file.text.lines().nth(line - 1).is_some_and(|text| text.trim() == BODY);
        for line in lines_with(code, pattern).into_iter().filter(|line| !is_body(line)) {
            found.push(finding(
                "unfinished",
                file,
                line,
                format!("`{pattern}`: finish it, or expect it with a reason"),
            ));
        }
    }
    let first_test_line = first_test_line(&file.path, code);
    for pattern in ["thread::sleep", "time::sleep"] {
        for line in lines_with(code, pattern).into_iter().filter(|line| *line >= first_test_line) {
            found.push(finding("sleep", file, line, format!("`{pattern}` in a test: wait for what it waits for")));
        }
    }
    found
}

fn shared_locks(file: &File, code: &str) -> Vec<Finding> {
    let signatures = functions(code).into_iter().map(|function| (function.line, function.signature));
    let public = code.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("pub "));
    let public =
        public.filter(|(_, line)| !line.contains("fn ")).map(|(index, line)| (index + 1, line.replace(' ', "")));
    let shares = |text: &str| {
        text.split("Arc<").skip(1).any(|inner| {
            let outer = inner.split(['<', '>', ',']).next().unwrap_or_default();
            matches!(outer.rsplit("::").next(), Some("Mutex" | "RwLock"))
        })
    };
    let found = signatures.chain(public).filter(|(_, text)| shares(text));
    found
        .map(|(line, _)| finding("shared-lock", file, line, "a shared lock in a signature: give it one owner"))
        .collect()
}

fn crate_arrows(file: &File) -> Vec<Finding> {
    let allowed: &[&str] = match file.path.as_str() {
        "mq/Cargo.toml" => &["crewlog-mq", "crewlog-stage"],
        "planner/Cargo.toml" => &["crewlog-planner", "crewlog-mq"],
        "executors/Cargo.toml" => &["crewlog-executors", "crewlog-mq", "crewlog-planner"],
        _root_and_others => return vec![],
    };
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let code = line.split('#').next().unwrap_or_default();
        for name in code.split(|char: char| !char.is_alphanumeric() && char != '-') {
            if name.starts_with("crewlog-") && !allowed.contains(&name) {
                let says = format!("`{name}`: dependencies run mq <- planner <- executors <- crewlog");
                found.push(finding("crate-arrows", file, index + 1, says));
            }
        }
    }
    found
}

/// The planner has no clock, id source, I/O or waiting; the log does not use the crates above it.
fn purity(file: &File, code: &str) -> Vec<Finding> {
    let patterns: &[&str] = match file.path.split_once("/src/") {
        Some(("planner", _)) => &[
            "std::fs",
            "fs::",
            "std::net",
            "net::",
            "std::process",
            "std::env",
            "std::thread",
            "SystemTime",
            "Instant",
            "tokio",
            "async",
            ".await",
            "now_v7",
            "new_v4",
            "rand",
            "crewlog_executors",
        ],
        Some(("mq", _)) => &["crewlog_planner", "crewlog_executors"],
        _elsewhere => return vec![],
    };
    let first_test_line = first_test_line(&file.path, code);
    let mut found = Vec::new();
    for pattern in patterns {
        for line in lines_with(code, pattern).into_iter().filter(|line| *line < first_test_line) {
            found.push(finding("purity", file, line, format!("`{pattern}`: this crate does not know about it")));
        }
    }
    found
}

/// A migration that may have run must never change: `frozen.txt` holds a hash of each.
fn frozen_migrations(files: &[File]) -> Vec<Finding> {
    let list_path = format!("{MIGRATIONS}frozen.txt");
    let list = files.iter().find(|file| file.path == list_path).map_or("", |file| &file.text);
    let lines: Vec<(&str, &str)> = list.lines().filter_map(|line| line.split_once("  ")).collect();
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.path.starts_with(MIGRATIONS) && file.path != list_path) {
        let (name, hash) = (&file.path[MIGRATIONS.len()..], format!("{:016x}", fnv1a_64(file.text.as_bytes())));
        match lines.iter().find(|(_, listed)| *listed == name) {
            Some((frozen, _)) if *frozen == hash => {}
            Some(_) => {
                let says = "a frozen migration has changed: restore it and write a new one";
                found.push(finding("frozen", file, 1, says));
            }
            None => found.push(finding("frozen", file, 1, format!("add to {list_path}: {hash}  {name}"))),
        }
    }
    for (_, name) in lines {
        let path = format!("{MIGRATIONS}{name}");
        if !files.iter().any(|file| file.path == path) {
            let file = File { path, text: String::new() };
            found.push(finding("frozen", &file, 1, "a frozen migration is missing: restore it"));
        }
    }
    found
}

fn fnv1a_64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The rules of the findings in the order in which they are found. A line `=== path` begins a further file.
fn rules_broken(path: &str, text: &str) -> Vec<&'static str> {
    let further = text.split("\n=== ").enumerate();
    let files = further.map(|(index, part)| {
        let (path, text) = if index == 0 { (path, part) } else { part.split_once('\n').expect("a path and a text") };
        let docs = if path.ends_with(".rs") { "//! Docs.\n" } else { "" };
        File { path: path.to_owned(), text: format!("{docs}{text}") }
    });
    findings(&files.collect::<Vec<_>>()).into_iter().map(|finding| finding.rule).collect()
}

#[test]
fn each_rule_finds_its_violations_and_nothing_else() {
    let long_fn = format!("fn long() {{\n{}}}", "    step();\n".repeat(79));
    let short_fn = format!("fn short() {{\n{}}}", "    step();\n".repeat(78));
    for (path, text, expected) in [
        ("src/a.rs", "x\n".repeat(600).as_str(), Some("file-lines")),
        ("src/a.rs", "x\n".repeat(599).as_str(), None),
        ("src/a.rs", &long_fn, Some("fn-lines")),
        ("src/a.rs", &short_fn, None),
        ("src/task_utils.rs", "", Some("names")),
        ("src/helpers/a.rs", "", Some("names")),
        ("src/a.rs", "pub struct LeaseManager;", Some("names")),
        ("src/a.rs", "mod misc;", Some("names")),
        ("src/a.rs", "struct Information; fn inform(service: Other) {}", None),
        ("src/a.rs", "fn get_name() {}", Some("names")),
        ("src/a.rs", "fn target() {} // fn get_name()", None),
        ("src/a.rs", "impl A {\nfn get_name() {}\n}", Some("names")),
        ("src/a.rs", "impl<T>\nServer for A<T> {\nfn get_info() {}\ntype Services = T;\n}", None),
        ("src/a.rs", "fn f() { todo!() }", Some("unfinished")),
        ("src/a.rs", "#[ignore = \"slow\"]", Some("unfinished")),
        ("tests/a.rs", BODY, None),
        ("src/a.rs", "#![allow(dead_code)]", Some("unfinished")),
        ("src/a.rs", "fn f() { is(\"todo!() #[allow(\", r#\"\"dbg!\"#, '\"', todo) } /* dbg! /* */ */ // todo!", None),
        ("src/a.rs", "fn f() { thread::sleep(a) }", None),
        ("src/a.rs", "#[cfg(test)]\nmod tests {\nfn f() { thread::sleep(a) }\n}", Some("sleep")),
        ("tests/a.rs", "fn f() { tokio::time::sleep(a).await }", Some("sleep")),
        ("src/a.rs", "fn f<'a>(a: &'a std::sync::Arc<tokio::sync::Mutex<u8>>) {}", Some("shared-lock")),
        ("src/a.rs", "pub map: Arc<RwLock<u8>>,", Some("shared-lock")),
        ("src/a.rs", "struct A { a: Arc<Mutex<u8>> } fn f(a: Mutex<u8>, b: Arc<u8>) {}", None),
        ("planner/src/a.rs", "use std::time::Instant;", Some("purity")),
        ("planner/src/a.rs", "async fn f() {}", Some("purity")),
        ("planner/src/a.rs", "fn f(id: Uuid) { Instantly::process(operand) }", None),
        ("planner/src/a.rs", "#[cfg(test)]\nmod tests {\nuse std::fs;\n}", None),
        ("mq/src/a.rs", "use crewlog_planner::Task;", Some("purity")),
        ("mq/Cargo.toml", "name = \"crewlog-mq\"\ncrewlog-planner.workspace = true", Some("crate-arrows")),
        ("planner/Cargo.toml", "plan = { package = \"crewlog-executors\" }", Some("crate-arrows")),
        ("executors/Cargo.toml", "crewlog-mq.workspace = true\ncrewlog-planner.workspace = true", None),
        ("docs/PLAN.md", "", Some("notes")),
        ("docs/plan.md", "", None),
        ("docs/a.md", "What Is Told of it stands here.", Some("english")),
        ("src/a.rs", "fn f() {} /\u{2f} the tag that it bears", Some("english")),
        ("src/a.rs", "fn f() {} /\u{2f} The end. Whether it ends.", Some("english")),
        ("docs/a.md", "Whoever reads on goes on. What is a step?", None),
        ("src/a.rs", "const A: &str = \"it is told anew\"; // A standing plan. Whatever.", None),
        ("README.md", "see `/home\u{2f}ana/log`", Some("machine-path")),
        ("README.md", "https://example.org/home/x and src/work/x", None),
    ] {
        assert_eq!(rules_broken(path, text).first().copied(), expected, "{path}: {text}");
    }
    let undocumented = File { path: "src/a.rs".to_owned(), text: "fn f() {}".to_owned() };
    assert_eq!(findings(&[undocumented])[0].rule, "module-docs");
}

#[test]
fn each_rule_of_a_crate_finds_its_violations_and_nothing_else() {
    let traits = "impl Iterator for A {\ntype Item = u8;\n}\nunsafe impl C for A {\ntype Item = u8;\n}";
    let declared = "trait B {\ntype Item;\n}\npub trait D: B {\ntype Item;\n}";
    for (path, text, expected) in [
        ("planner/src/a.rs", "struct Open;\nmod b {\nenum Open {}\n}", Some("twice")),
        ("src/a.rs", "struct Open;\n=== src/b/c.rs\npub type Open = u8;", Some("twice")),
        ("src/a.rs", "struct Open;\n=== mq/src/a.rs\nstruct Open;\n=== tests/a.rs\nstruct Open;", None),
        ("src/a.rs", "struct Open;\n#[cfg(test)]\nmod tests {\nstruct Open;\n}", None),
        ("src/a.rs", traits, None),
        ("src/a.rs", declared, None),
        ("src/a.rs", "const A: B = TaskStatus::Done;\n=== executors/src/a.rs\nuse TaskStatus::*;", Some("status")),
        ("src/a.rs", "use TaskStatus::*;\n=== src/b.rs\nfn f(a: TaskStatus) {}", None),
        ("src/a.rs", "use TaskStatus::*;\n=== planner/src/b.rs\nuse TaskStatus::*;", None),
        ("src/a.rs", "fn f() { println!() }", Some("writer")),
        ("src/hook/a.rs", "fn f() { std::io::stdout().lock() }", Some("writer")),
        ("src/ui/a.rs", "fn f() { print!(); eprintln!(); stdout(); io::stderr() }", None),
        ("executors/src/a.rs", "fn f() { println!() }", None),
        ("src/hook/a.rs", "fn f() { one_line(words, 9) }", Some("quoter")),
        ("src/hook/a.rs", "fn f() { quoted_line(words, 9) }", None),
        ("planner/src/prompt/mod.rs", "fn f() { excerpt(words, 9) }", Some("quoter")),
        ("src/a.rs", "fn f() { command.stdout(piped()); is(\"println!\"); writeln!(out) } // stdout()", None),
        ("mq/src/a/b.rs", "use super::c::C;\n=== mq/src/a/c.rs\nfn f() { crate::a::b::g() }", Some("circle")),
        ("mq/src/a/b.rs", "use super::c::C;\n=== mq/src/a/c.rs\nfn f() { crate::a::g() }", None),
        (
            "src/a/b.rs",
            "use crate::c::d::D;\n=== src/c/d.rs\n\n=== src/c/e.rs\nuse crate::a::f::F;\n=== src/a/f.rs\n",
            Some("circle-top"),
        ),
        (
            "src/a/b.rs",
            "use crate::c::d::D;\n=== src/c/d.rs\n\n=== src/a/e.rs\nuse crate::c::f::F;\n=== src/c/f.rs\n",
            None,
        ),
    ] {
        assert_eq!(rules_broken(path, text).first().copied(), expected, "{path}: {text}");
    }
}

#[test]
fn a_part_is_counted_wherever_its_files_are() {
    for (path, n_lines, expected) in [
        ("src/a.rs", 11_870, None),
        ("src/a.rs", 11_871, Some("src/")),
        ("src/serve/a.rs", 11_871, Some("src/")),
        ("src/tests.rs", 11_871, None),
        ("src/mcp/a.rs", 18_601, Some("planner/src/crew/")),
        ("src/serve/mcp/a.rs", 18_601, Some("planner/src/crew/")),
        ("src/page/a.rs", 9_451, Some("src/demo/")),
        ("src/serve/page/a.rs", 9_451, Some("src/demo/")),
        ("planner/src/parse/a.rs", 4_001, Some("planner/src/parse/")),
        ("planner/src/a.rs", 14_740, None),
    ] {
        let found = ceilings(&[File { path: path.to_owned(), text: "// x\n".repeat(n_lines) }]);
        assert_eq!(found.first().map(|finding| finding.place.as_str()), expected, "{path}: {n_lines}");
    }
}

#[test]
fn a_migration_is_listed_and_never_changes() {
    let check = |list: &str, migration: Option<&str>, expected: &str| {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let mut files = vec![file("mq/migrations/frozen.txt", list)];
        files.extend(migration.map(|text| file("mq/migrations/sqlite/1.sql", text)));
        let says: Vec<String> = frozen_migrations(&files).into_iter().map(|finding| finding.says).collect();
        assert!(says.concat().contains(expected) && says.concat().is_empty() == expected.is_empty(), "{says:?}");
    };
    check("", Some("a"), "add to mq/migrations/frozen.txt: af63dc4c8601ec8c  sqlite/1.sql");
    check("af63dc4c8601ec8c  sqlite/1.sql", Some("a"), "");
    check("af63dc4c8601ec8c  sqlite/1.sql", Some("b"), "has changed");
    check("af63dc4c8601ec8c  sqlite/1.sql", None, "is missing");
}

#[test]
fn an_exception_can_only_shrink() {
    let check = |measure: usize, exceptions: &str, expected: &str| {
        let file = File { path: "src/a.rs".to_owned(), text: String::new() };
        let found = Finding { measure, place: "src/a.rs:f".to_owned(), ..finding("fn-lines", &file, 3, "too long") };
        let found = if measure == 0 { vec![] } else { vec![found] };
        assert_eq!(judge(&found, exceptions).join("\n"), expected);
    };
    check(90, "", "src/a.rs:3: [fn-lines] too long");
    check(90, "# why\nfn-lines src/a.rs:f 90", "");
    check(91, "fn-lines src/a.rs:f 90", "src/a.rs:3: [fn-lines] too long (91 in all, 90 allowed)");
    check(85, "fn-lines src/a.rs:f 90", "tests/house_rules.txt: `fn-lines src/a.rs:f` can be lowered to 85: do it");
    check(0, "fn-lines src/a.rs:f 90", "tests/house_rules.txt: `fn-lines src/a.rs:f` is no longer needed: delete it");
    check(0, "fn-lines src/a.rs", "tests/house_rules.txt: `fn-lines src/a.rs` is not `rule path[:name] limit`");
}
