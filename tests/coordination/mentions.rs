//! The files that a text mentions.

use crewlog_planner::crew::paths::mentioned_files;

#[test]
fn file_names_are_recognised_among_other_words() {
    for (text, expected) in [
        ("Mend src/a.rs, then (docs/b.md).", &["src/a.rs", "docs/b.md"][..]),
        ("see `lib/x.ts:42:3` and lib/x.ts:12-20 and lib/x.ts#L10", &["lib/x.ts"]),
        ("main.go, Cargo.toml; conf.yaml: a.yml", &["main.go", "Cargo.toml", "conf.yaml", "a.yml"]),
        ("all of src/**/*.rs and test_*.py!", &["src/**/*.rs", "test_*.py"]),
        ("keep .gitignore, .env, .myrc and .Other.", &[".gitignore", ".env", ".myrc"]),
        ("\"src/{a,b}.rs\", 'app/[id]/page.tsx'", &["src/{a,b}.rs", "app/[id]/page.tsx"]),
        ("src/lib[ab] and docs/{x,y}", &["src/lib[ab]", "docs/{x,y}"]),
        ("src/lib[ab]] and [[ab].rs and [id]/page.tsx", &["src/lib[ab]", "[ab].rs", "[id]/page.tsx"]),
        ("write to ana@notes.md about 12/34/56", &[]),
        ("[the guide](docs/guide.md)", &["docs/guide.md"]),
        ("[src/x.rs] {src/y.rs}", &["src/x.rs", "src/y.rs"]),
        ("foo/bar and ../up and ~/notes", &["foo/bar", "../up", "~/notes"]),
        ("src\\win\\a.rs and C:\\x\\y.rs", &["src\\win\\a.rs", "C:\\x\\y.rs"]),
        ("http://example.org/a.rs, https://x.y/z.md, www.example.org/a", &[]),
        ("1.2.3 v1.2 e.g. and/or w/o n/a 1/2 3/4 i/o yes/no Node.js", &[]),
        ("mail ana@example.org, it is a test.", &[]),
        ("2*3 ... a b c", &[]),
        ("", &[]),
    ] {
        assert_eq!(mentioned_files(text).collect::<Vec<_>>(), expected, "{text}");
    }
}

#[test]
fn a_command_mentions_project_files_but_not_system_paths() {
    for (command, expected) in [
        ("cargo test --test main >/dev/null 2>&1", &[][..]),
        ("sort data/in.csv|uniq>data/out.csv", &["data/in.csv", "data/out.csv"]),
        ("make --file=build/x.mk -j4 && ./run.sh", &["build/x.mk", "./run.sh"]),
        ("/usr/bin/env python tools/gen.py \"$OUT/x.rs\"", &["tools/gen.py"]),
        ("rm -rf target/*; cat $HOME/notes", &["target/*", "$HOME/notes"]),
    ] {
        assert_eq!(mentioned_files(command).collect::<Vec<_>>(), expected, "{command}");
    }
}

/// Each text is so long that quadratic work would never end.
#[test]
fn a_hostile_text_is_scanned_in_linear_time() {
    let word = |of: &str, n_bytes: usize| of.repeat(n_bytes / of.len());
    let none = |text: String| assert_eq!(mentioned_files(&text).next(), None, "{}", &text[..20]);
    for mark in ["]", "}", "[", "{", ".", ":1", "]}", "[{", "].", "/", "#L"] {
        none(word(mark, 1 << 18));
        none(word(&format!("{} ", word(mark, 4_000)), 1 << 18));
    }
    none(format!("src/{}.rs", word("a", 1 << 18)));
    for marked in [format!("{}src/a.rs", word("[{", 4_000)), format!("src/a.rs{}", word("}.]", 4_000))] {
        assert!(mentioned_files(&marked).eq(["src/a.rs"]));
    }

    let names = (0..20_000).map(|n| format!("f{n}.rs")).collect::<Vec<_>>();
    let text = format!("{} {}", names.join(" "), names.join("; "));
    assert!(mentioned_files(&text).eq(names.iter().map(String::as_str)), "each once, in its order");
}
