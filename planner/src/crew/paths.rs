//! Recognizes the paths, links and images in a text, for attachments and commands, and the files and patterns that it
//! mentions, for conflicts. It does not check whether they exist.
//!
//! A mention is a word with a slash, a file ending, a `*` or a leading full stop, and at least three characters. URLs,
//! versions, e-mail addresses, command options and pairs such as "and/or" do not count, nor do devices and installed
//! programs, which any command may name.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

use crate::plan::{Attachment, AttachmentKind};

/// The most attachments of one step; further ones stay text.
pub(crate) const ATTACHMENTS_MAX: usize = 100;

/// A link or an image in a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Link {
    pub range: Range<usize>,
    pub url: String,
    pub is_image: bool,
}

/// File endings of images.
const IMAGES: &str = "png jpg jpeg gif svg webp bmp ico tif tiff avif heic";

/// Endings that make a bare word a file.
const ENDINGS: &str = "rs toml lock md mdx txt rst adoc py pyi ipynb js jsx mjs cjs ts tsx mts cts json jsonl json5 jsonc ndjson yaml \
     yml xml html htm css scss sass less vue svelte astro go mod sum java kt kts gradle scala rb erb php c h cc cpp \
     cxx hpp hh cs csproj sln fs swift m mm dart lua pl pm r jl ex exs erl hs ml mli clj cljs zig nim sh bash zsh \
     fish ps1 bat cmd sql db sqlite csv tsv parquet xls xlsx doc docx ppt pptx odt pdf tex bib log ini cfg conf \
     config env properties proto graphql gql prisma tf tfvars hcl nix dockerfile mk cmake bzl bazel zip tar gz tgz \
     bz2 xz 7z wav mp3 mp4 mov avi mkv webm ogg flac m4a wasm so dll exe bin jar war pem crt key cer patch diff \
     snap plist j2 tmpl tpl hbs ejs psd fig sketch drawio puml eml ics vcf bak tmp out v sv vhd asm s feature http \
     rego cue sol onnx pt pkl npy h5 srt po pot template example service";

/// Files whose whole name is such an ending.
const HIDDEN: &str = "env gitignore dockerignore gitattributes gitmodules npmrc nvmrc yarnrc npmignore editorconfig eslintrc \
     eslintignore prettierrc prettierignore babelrc browserslistrc stylelintrc pylintrc flake8 coveragerc bashrc \
     zshrc bash_profile profile vimrc gitconfig htaccess clang-format clang-tidy tool-versions node-version python- \
     version ruby-version envrc rspec rubocop pypirc netrc";

/// Names of libraries that end like files.
const LIBRARIES: &str = "node.js next.js vue.js react.js nuxt.js express.js three.js d3.js angular.js ember.js backbone.js nest.js \
     chart.js moment.js alpine.js p5.js discord.js electron.js deno.js solid.js knockout.js handlebars.js socket.js \
     polymer.js plotly.js tensorflow.js mermaid.js passport.js asp.net ai.js bun.js";

/// First parts that make a path even without an ending.
const FOLDERS: &str = "src lib libs test tests docs doc crates packages apps app scripts bin config public assets components pages \
     examples benches migrations internal cmd pkg include vendor node_modules target dist build .github .vscode \
     .cargo server client frontend backend web api tools data db specs spec";

/// First parts of absolute paths; any other word with a leading slash is a route.
const ROOTS: &str =
    "etc var usr home tmp opt bin sbin dev mnt root proc sys srv Users Library Applications media boot lib";

/// True if a list of words contains one, in any case.
fn has(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known.eq_ignore_ascii_case(word))
}

/// True for Chinese, Japanese and Korean characters, which have no spaces between words.
fn is_cjk(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}')
}

/// Paths and addresses contain one of these signs.
fn may_be_path(text: &str) -> bool {
    text.bytes().any(|byte| matches!(byte, b'.' | b'/' | b'\\'))
}

/// The links, images and paths of a text, in order of appearance, each once.
pub(crate) fn attachments(text: &str, links: &[Link]) -> Vec<Attachment> {
    let mut found: Vec<(usize, Attachment)> = Vec::new();
    if links.is_empty() && !may_be_path(text) {
        return Vec::new();
    }
    let mut add = |at: usize, kind: AttachmentKind, label: Option<String>| {
        if found.len() < ATTACHMENTS_MAX && !found.iter().any(|(_, known)| known.kind == kind) {
            found.push((at, Attachment { kind, label }));
        }
    };
    for link in links {
        let label =
            Some(text[link.range.clone()].trim().to_owned()).filter(|label| !label.is_empty() && *label != link.url);
        let kind = match (link.is_image, link.url.contains("://") || link.url.starts_with("mailto:")) {
            (true, _) => AttachmentKind::ImageRef(link.url.clone()),
            (false, true) => AttachmentKind::Link(link.url.clone()),
            (false, false) if link.url.starts_with('#') => continue,
            (false, false) => AttachmentKind::FileRef(link.url.clone()),
        };
        add(link.range.start, kind, label);
    }
    let is_linked = |at: usize| {
        let after = links.partition_point(|link| link.range.end <= at);
        links.get(after).is_some_and(|link| link.range.contains(&at))
    };
    for word in words(text).filter(|word| may_be_path(word)) {
        let at = word.as_ptr() as usize - text.as_ptr() as usize;
        // A value of an option, or a part of an expression.
        let is_joined = text[..at].ends_with(['=', '&']) || text[at + word.len()..].starts_with(['=', '&']);
        if is_linked(at) {
            continue;
        }
        if is_url(word) {
            let url = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '\'', '*']);
            add(at, AttachmentKind::Link(url.to_owned()), None);
        } else if let Some(path) = file_ref(without_marks(word)).filter(|_| !is_joined) {
            let kind = if is_image(path) { AttachmentKind::ImageRef } else { AttachmentKind::FileRef };
            add(at, kind(path.to_owned()), None);
        }
    }
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, attachment)| attachment).collect()
}

/// True if the ending is that of an image.
fn is_image(path: &str) -> bool {
    ending(path).is_some_and(|ending| has(IMAGES, ending))
}

/// True if the ending is a file ending.
pub(crate) fn has_file_ending(path: &str) -> bool {
    static KNOWN: LazyLock<HashSet<&str>> =
        LazyLock::new(|| [ENDINGS, IMAGES].into_iter().flat_map(str::split_ascii_whitespace).collect());
    ending(path).is_some_and(|ending| KNOWN.contains(ending.to_ascii_lowercase().as_str()))
}

/// The part after the last full stop of the last name.
fn ending(path: &str) -> Option<&str> {
    let last = path.bytes().rposition(|b| matches!(b, b'.' | b'/' | b'\\'))?;
    let ending = path.get(last + 1..).filter(|_| path.as_bytes()[last] == b'.')?;
    (!ending.is_empty() && ending.len() <= 10).then_some(ending)
}

/// The path, without the line number after it, if the word is a path.
pub(crate) fn file_ref(word: &str) -> Option<&str> {
    let is_word = (2..=1_000).contains(&word.len()) && !word.contains(char::is_whitespace) && !word.contains("://");
    if !is_word || !may_be_path(word) {
        return None;
    }
    let path = without_line(word);
    let is_alien = path.contains(['=', '&', '|', '<', '>', '`', '"']);
    if is_alien || path.starts_with('-') || (path.contains('@') && !path.contains('/')) {
        return None;
    }
    let mut parts = path.split(['/', '\\']).filter(|part| !part.is_empty());
    let (first, is_nested) = (parts.next().unwrap_or(""), parts.next().is_some());
    let has_drive = matches!(path.as_bytes(), [letter, b':', b'\\' | b'/', ..] if letter.is_ascii_alphabetic());
    let is_known = has_file_ending(path) || path.strip_prefix('.').is_some_and(|name| has(HIDDEN, name));
    let is_path = if has_drive || path.starts_with("\\\\") {
        is_nested
    } else if !path.contains(['/', '\\']) {
        is_known && bare_file(path)
    } else if path.starts_with('/') {
        is_nested && (has(ROOTS, first) || (is_known && !path.contains(['{', ':'])))
    } else {
        is_known || is_relative(path, first, is_nested)
    };
    is_path.then_some(path)
}

/// True if words with a slash and without a known ending are a path below the working or home directory.
fn is_relative(path: &str, first: &str, is_nested: bool) -> bool {
    let is_dotted = ["./", "../", "~/", ".\\", "..\\", "$HOME/"].iter().any(|start| path.starts_with(start));
    let bare = path.trim_end_matches(['/', '\\']);
    let has_slash = bare.len() < path.len();
    let is_folder = has(FOLDERS, first) && (is_nested || has_slash);
    // "w/" stands for "with".
    let is_directory = has_slash && bare.len() > 1 && bare.contains(char::is_alphabetic);
    let is_host = first.contains('.') && !first.starts_with('.') && is_nested;
    let is_glob = path.contains('*') && is_nested;
    (is_dotted && is_nested) || ((is_folder || is_glob || is_directory) && !is_host)
}

/// A name with a known ending and a possible file name before it.
fn bare_file(path: &str) -> bool {
    let Some((stem, ending)) = path.rsplit_once('.') else { return false };
    let hidden = stem.is_empty() && has(HIDDEN, ending);
    let short = ending.len() == 1 && stem.len() == 1;
    let named = stem.chars().any(|c| c.is_alphabetic() || c == '*') || stem.len() > 3;
    let joined = ending.chars().next().is_some_and(char::is_uppercase)
        && stem.chars().next_back().is_some_and(char::is_lowercase)
        && ending.len() < 3;
    hidden || (!stem.is_empty() && named && !short && !joined && !has(LIBRARIES, path))
}

/// Removes `:12`, `:12:3`, `:12-20` and `#L12`.
fn without_line(word: &str) -> &str {
    let mut path = word.split_once("#L").map_or(word, |(path, _)| path);
    for _line_and_column in 0..2 {
        if let Some((before, number)) = path.rsplit_once(':')
            && before.len() > 1
            && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
        {
            path = before;
        }
    }
    path
}

const CHARS_MIN: usize = 3;
/// The longest word that is examined, in bytes, including the marks around it.
const WORD_BYTES_MAX: usize = 4_096;
/// Prefixes of paths that belong to the machine.
const MACHINE: [&str; 6] = ["/dev/", "/proc/", "/sys/", "/bin/", "/sbin/", "/usr/"];
/// Words that a slash joins in prose.
const PAIRS: [&str; 26] = [
    "and", "or", "he", "she", "his", "her", "him", "it", "its", "yes", "no", "on", "off", "true", "false", "input",
    "output", "read", "write", "client", "server", "tcp", "ip", "in", "out", "either",
];

/// The paths and patterns that a text mentions, in order, each once. The iterator is lazy.
pub fn mentioned_files(text: &str) -> impl Iterator<Item = &str> {
    let mut known = BTreeSet::new();
    let words = words(text).filter(|word| word.len() <= WORD_BYTES_MAX);
    words.map(without_marks).map(without_line).filter(move |path| is_file(path) && known.insert(*path))
}

/// The words of a text that may be paths, with the marks around them, and its URLs. White space, shell signs, quotation
/// marks, and commas outside braces divide words.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c| !is_of_word(c) || c == ',');
        let mut depth = 0_usize;
        let ends = |c: char| {
            match c {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            !is_of_word(c) || (c == ',' && depth == 0)
        };
        let end = match is_url(rest) {
            true => rest.find(|c: char| c.is_whitespace() || "<>\"`".contains(c)),
            false => rest.find(ends),
        };
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}

fn is_of_word(c: char) -> bool {
    "\\/._-~@$*+#%:?![]{},".contains(c) || (c.is_alphanumeric() && !is_cjk(c)) || ('\u{300}'..='\u{36f}').contains(&c)
}

fn is_url(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// Removes the marks around a word, but keeps the brackets of a pattern and the full stop of a hidden file.
fn without_marks(word: &str) -> &str {
    let mut word = word.trim_start_matches([',', ';', ':', '!', '?']);
    let count = |char: char| word.matches(char).count();
    let mut pairs = [('[', ']'), ('{', '}')].map(|(open, close)| (open, close, count(open), count(close)));
    loop {
        let before = word.len();
        word = word.trim_end_matches([',', ';', ':', '!', '?', '.']);
        for (open, close, n_open, n_close) in &mut pairs {
            if *n_close > *n_open {
                if let Some(rest) = word.strip_suffix(*close) {
                    (word, *n_close) = (rest, *n_close - 1);
                }
            } else if *n_open > *n_close {
                if let Some(rest) = word.strip_prefix(*open) {
                    (word, *n_open) = (rest, *n_open - 1);
                }
            } else if *n_open == 1
                && let Some(rest) = word.strip_prefix(*open).and_then(|rest| rest.strip_suffix(*close))
            {
                (word, *n_open, *n_close) = (rest, 0, 0);
            }
        }
        if word.len() == before {
            return word;
        }
    }
}

fn is_file(word: &str) -> bool {
    let is_odd = word.chars().count() < CHARS_MIN
        || word.contains("://")
        || word.starts_with(['-', '+', '%', '#'])
        || (word.contains('$') && !word.starts_with("$HOME/"))
        || (word.contains('@') && !word.contains('/'))
        || !word.contains(|char: char| char.is_alphabetic() || char == '*')
        || MACHINE.iter().any(|start| word.starts_with(start));
    if is_odd || is_pair(word) {
        return false;
    }
    let is_hidden = word.strip_prefix('.').is_some_and(|name| name.starts_with(|char: char| char.is_ascii_lowercase()));
    let is_pattern = word.contains('*') && word.contains(|char: char| char.is_alphabetic());
    is_hidden || is_pattern || has_slash(word) || file_ref(word).is_some()
}

fn has_slash(word: &str) -> bool {
    match word.trim_matches('/').split('/').find(|name| !name.is_empty()) {
        // A host without its `https:`.
        Some(first) => word.contains('/') && !(first.starts_with("www.") || first.ends_with(".com")),
        None => false,
    }
}

/// True for `and/or`, `w/o`, `n/a`, `1/2`.
fn is_pair(word: &str) -> bool {
    let Some((first, second)) = word.split_once('/') else { return false };
    let is_word = |half: &str| {
        let half = half.to_lowercase();
        PAIRS.contains(&half.as_str()) || half.chars().count() == 1 && half.chars().all(char::is_alphanumeric)
    };
    is_word(first) && is_word(second)
}
