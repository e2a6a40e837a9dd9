//! Which words are paths of files.

use super::text::{Words, list};

/// Endings of pictures.
const IMAGES: &[&str] = &["png", "jpg", "jpeg", "gif", "svg", "webp", "bmp", "ico", "tif", "tiff", "avif", "heic"];

/// Endings that make a bare word a file.
static ENDINGS: Words = Words::new(|| {
    list(
        "rs|toml|lock|md|mdx|txt|rst|adoc|py|pyi|ipynb|js|jsx|mjs|cjs|ts|tsx|mts|cts|json|jsonl|json5|jsonc|ndjson|\
     yaml|yml|xml|html|htm|css|scss|sass|less|vue|svelte|astro|go|mod|sum|java|kt|kts|gradle|scala|rb|erb|php|c|\
     h|cc|cpp|cxx|hpp|hh|cs|csproj|sln|fs|swift|m|mm|dart|lua|pl|pm|r|jl|ex|exs|erl|hs|ml|mli|clj|cljs|zig|nim|\
     sh|bash|zsh|fish|ps1|bat|cmd|sql|db|sqlite|csv|tsv|parquet|xls|xlsx|doc|docx|ppt|pptx|odt|pdf|tex|bib|log|\
     ini|cfg|conf|config|env|properties|proto|graphql|gql|prisma|tf|tfvars|hcl|nix|dockerfile|mk|cmake|bzl|bazel|\
     zip|tar|gz|tgz|bz2|xz|7z|wav|mp3|mp4|mov|avi|mkv|webm|ogg|flac|m4a|wasm|so|dll|exe|bin|jar|war|pem|crt|key|\
     cer|patch|diff|snap|plist|j2|tmpl|tpl|hbs|ejs|psd|fig|sketch|drawio|puml|eml|ics|vcf|bak|tmp|out|v|sv|vhd|\
     asm|s|feature|http|rego|cue|sol|onnx|pt|pkl|npy|h5|srt|po|pot|template|example|service",
    )
});

/// Names of libraries that end like files.
static LIBRARIES: Words = Words::new(|| {
    list(
        "node.js|next.js|vue.js|react.js|nuxt.js|express.js|three.js|d3.js|angular.js|ember.js|backbone.js|nest.js|\
     chart.js|moment.js|alpine.js|p5.js|discord.js|electron.js|deno.js|solid.js|knockout.js|handlebars.js|\
     socket.js|polymer.js|plotly.js|tensorflow.js|mermaid.js|passport.js|asp.net|ai.js|bun.js",
    )
});

/// First parts that make a path without an ending one.
static FOLDERS: Words = Words::new(|| {
    list(
        "src|lib|libs|test|tests|docs|doc|crates|packages|apps|app|scripts|bin|config|public|assets|components|pages|\
     examples|benches|migrations|internal|cmd|pkg|include|vendor|node_modules|target|dist|build|.github|.vscode|\
     .cargo|server|client|frontend|backend|web|api|tools|data|db|specs|spec",
    )
});

/// First parts of paths from the root; every other word with a slash in front is a route.
const ROOTS: &[&str] = &[
    "etc",
    "var",
    "usr",
    "home",
    "tmp",
    "opt",
    "bin",
    "sbin",
    "dev",
    "mnt",
    "root",
    "proc",
    "sys",
    "srv",
    "Users",
    "Library",
    "Applications",
    "media",
    "boot",
    "lib",
];

/// The length of the word that could be a path; it never reaches past white space, quotes or brackets.
pub(super) fn word_length(text: &str) -> usize {
    let mut braces = 0_usize;
    let mut previous = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '{' => braces += 1,
            '}' if braces > 0 => braces -= 1,
            ',' if braces > 0 => {}
            '[' | ']' if matches!(previous, '/' | '.') || previous.is_alphanumeric() => {}
            '\\' | '/' | '.' | '_' | '-' | '~' | '@' | '$' | '*' | '+' | '#' | '%' | ':' | '?' | '=' | '&' | '!' => {}
            c if c.is_alphanumeric() && !super::text::is_cjk(c) => {}
            _ => return at,
        }
        previous = c;
    }
    text.len()
}

/// True when the ending is that of a picture.
pub(super) fn is_image(path: &str) -> bool {
    ending(path).is_some_and(|ending| IMAGES.contains(&ending.as_str()))
}

/// True when the ending is one that files have.
pub(crate) fn has_file_ending(path: &str) -> bool {
    ending(path).is_some_and(|ending| ENDINGS.contains(&ending.as_str()) || IMAGES.contains(&ending.as_str()))
}

/// What follows the last full stop of the last part, in lower case.
fn ending(path: &str) -> Option<String> {
    let name = path.rsplit(['/', '\\']).next()?;
    let (_, ending) = name.rsplit_once('.')?;
    (!ending.is_empty() && ending.len() <= 10).then(|| ending.to_ascii_lowercase())
}

/// The path when a word is one, without the line number after it.
pub(crate) fn file_ref(word: &str) -> Option<&str> {
    if word.len() < 2 || word.len() > 1_000 || word.contains("://") || word.contains(char::is_whitespace) {
        return None;
    }
    let path = without_line(word);
    let bare = path.trim_end_matches(['/', '\\']);
    if path.contains('@') && !path.contains('/')
        || path.starts_with('-')
        || path.contains(['=', '&', '|', '<', '>', '`', '"'])
    {
        return None;
    }
    let known = has_file_ending(path);
    let windows = path.as_bytes().get(1) == Some(&b':')
        && path.as_bytes()[0].is_ascii_alphabetic()
        && matches!(path.as_bytes().get(2), Some(b'\\' | b'/'));
    let parts = path.split(['/', '\\']).filter(|part| !part.is_empty()).count();
    let first = path.split(['/', '\\']).find(|part| !part.is_empty()).unwrap_or("");
    if windows || path.starts_with("\\\\") {
        return (parts > 1).then_some(path);
    }
    if !path.contains(['/', '\\']) {
        return (known && bare_file(path)).then_some(path);
    }
    if path.starts_with('/') {
        return ((ROOTS.contains(&first) && parts > 1) || (known && parts > 1 && !path.contains(['{', ':'])))
            .then_some(path);
    }
    let dotted = ["./", "../", "~/", ".\\", "..\\", "$HOME/"].iter().any(|start| path.starts_with(start));
    let folder = FOLDERS.contains(&first) && (parts > 1 || bare.len() < path.len());
    let glob = path.contains("*") && parts > 1;
    let directory = bare.len() < path.len() && bare.contains(|c: char| c.is_alphabetic()) && !bare.contains(' ');
    let host = first.contains('.') && !first.starts_with('.') && parts > 1 && !known;
    ((dotted && parts > 1) || known || ((folder || glob || directory) && !host)).then_some(path)
}

/// A name with a known ending and something before it that can name a file.
fn bare_file(path: &str) -> bool {
    let Some((stem, ending)) = path.rsplit_once('.') else { return false };
    let lower = path.to_ascii_lowercase();
    let hidden = stem.is_empty() && matches!(lower.as_str(), ".env" | ".gitignore" | ".dockerignore");
    let short = ending.len() == 1 && stem.len() == 1;
    let named = stem.chars().any(|c| c.is_alphabetic() || c == '*') || stem.len() > 3;
    let joined = ending.chars().next().is_some_and(char::is_uppercase)
        && stem.chars().next_back().is_some_and(char::is_lowercase)
        && ending.len() < 3;
    hidden || (!stem.is_empty() && named && !short && !joined && !LIBRARIES.contains(&lower.as_str()))
}

/// Takes off `:12` and `:12-20`.
fn without_line(word: &str) -> &str {
    match word.rsplit_once(':') {
        Some((path, line)) if path.len() > 1 && line.bytes().all(|b| b.is_ascii_digit() || b == b'-') => {
            without_line_once(path)
        }
        Some(_) | None => word,
    }
}

fn without_line_once(path: &str) -> &str {
    match path.rsplit_once(':') {
        Some((short, line)) if short.len() > 1 && !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit()) => short,
        Some(_) | None => path,
    }
}
