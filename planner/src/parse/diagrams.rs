//! Diagrams in fences: which box points at which, in the words of Mermaid. What is no arrow between boxes is left out.

use super::draft::Reference;

/// A line of a diagram points at most so often.
const ARROWS_MAX: usize = 64;

/// A box: its name, where that stands, and what is written in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node<'t> {
    pub(super) name: &'t str,
    pub(super) at: usize,
    pub(super) text: Option<&'t str>,
}

/// True for the language of such a diagram.
pub(super) fn is_diagram(language: &str) -> bool {
    language == "mermaid"
}

/// The arrows of one line: from each of the first to each of the second.
pub(super) fn arrows(line: &str, at: usize) -> Vec<(Vec<Node<'_>>, Vec<Node<'_>>)> {
    let mut found = Vec::new();
    let mut from = 0;
    for part in line.split(';') {
        read(part, at + from, &mut found);
        from += part.len() + 1;
    }
    found
}

fn read<'t>(line: &'t str, at: usize, found: &mut Vec<(Vec<Node<'t>>, Vec<Node<'t>>)>) {
    let Some((mut left, mut rest)) = nodes(line, line, at) else { return };
    while let Some((right, after)) = arrow(rest).and_then(|rest| nodes(line, rest, at)) {
        if found.len() >= ARROWS_MAX {
            return;
        }
        found.push((left, right.clone()));
        (left, rest) = (right, after);
    }
}

/// The text after "-->", "-.->", "==>", "-- yes -->" or "-->|yes|".
fn arrow(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let rest = text.strip_prefix("--").or_else(|| text.strip_prefix("==")).or_else(|| text.strip_prefix("-."))?;
    let rest = rest[rest.find('>')? + 1..].trim_start();
    match rest.strip_prefix('|') {
        Some(said) => said.split_once('|').map(|(_, rest)| rest),
        None => Some(rest),
    }
}

/// "A", "A[Build it]" or "A & B", and the text after it.
fn nodes<'t>(line: &'t str, text: &'t str, at: usize) -> Option<(Vec<Node<'t>>, &'t str)> {
    let mut all = Vec::new();
    let mut rest = text;
    loop {
        let (node, after) = node(line, rest.trim_start(), at)?;
        all.push(node);
        match after.trim_start().strip_prefix('&') {
            Some(more) if all.len() < ARROWS_MAX => rest = more,
            Some(_) | None => return Some((all, after)),
        }
    }
}

fn node<'t>(line: &'t str, text: &'t str, at: usize) -> Option<(Node<'t>, &'t str)> {
    let is_part = |(n, c): &(usize, char)| {
        c.is_alphanumeric()
            || matches!(c, '_' | '.')
            || (*c == '-' && text[n + 1..].starts_with(|next: char| next.is_alphanumeric()))
    };
    let length: usize = text.char_indices().take_while(is_part).map(|(_, c)| c.len_utf8()).sum();
    let (name, rest) = text.split_at(length);
    if name.is_empty() {
        return None;
    }
    let close = match rest.chars().next() {
        Some('[') => Some(']'),
        Some('(') => Some(')'),
        Some('{') => Some('}'),
        Some(_) | None => None,
    };
    let node = |text| Node { name, at: at + (line.len() - rest.len() - name.len()), text };
    let Some(close) = close else { return Some((node(None), class(rest))) };
    let end = rest.find(close)?;
    let said = rest[1..end].trim_matches(['[', '(', '{', '"', '/', ' ']);
    Some((node(Some(said)), class(rest[end..].trim_start_matches([']', ')', '}']))))
}

/// The text after ":::done".
fn class(text: &str) -> &str {
    let Some(rest) = text.strip_prefix(":::") else { return text };
    rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_')
}

/// What a box names: a task that has its name, else one that says what is written in it.
pub(super) fn reference(node: &Node, knows: impl Fn(&Reference) -> bool) -> Reference {
    let name = Reference::Name(node.name.to_owned(), node.at);
    match node.text {
        Some(text) if !knows(&name) => Reference::Phrase(text.to_owned(), node.at),
        Some(_) | None => name,
    }
}
