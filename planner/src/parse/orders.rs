//! Lines and diagrams beside the tasks that say which waits for which, handed to the plan.

use std::collections::HashSet;

use super::build::Builder;
use super::built::Chain;
use super::bytes;
use super::diagrams::{self, Node};
use super::draft::{Draft, Reference};
use super::inline::Inline;
use super::lines::Block;
use super::references;
use super::relations::{self, Relations};
use super::text::{Flow, holds};

/// A longer text says more than which task waits for which.
const ORDERING_BYTES_MAX: usize = 4_000;

/// The labels of so many tasks at the end can still change.
const UNSETTLED_MAX: usize = 64;

/// The names of the tasks that were read, in lower case, so that none is looked for among all of them.
#[derive(Default)]
pub(super) struct Known {
    all: HashSet<String>,
    n_drafts: usize,
    n_names: usize,
}

impl Builder<'_> {
    /// Reads lines that say nothing but which task waits for which; true when the text is nothing else.
    pub(super) fn ordering(&mut self, flow: &Flow, inline: &Inline) -> bool {
        if self.chain(flow, inline) {
            return true;
        }
        if flow.text.len() > ORDERING_BYTES_MAX || !relations::begins(&flow.text) {
            return false;
        }
        let found = relations::relations(&flow.text, |name| self.knows(name), |at| flow.source(at));
        let any = found.is_some();
        self.relate(found, false);
        any
    }

    /// The same beside other things that the text says.
    pub(super) fn ordering_aside(&mut self, flow: &Flow, inline: &Inline) {
        if !self.chain(flow, inline) && flow.text.len() <= ORDERING_BYTES_MAX {
            self.relate(relations::asides(&flow.text, |at| flow.source(at)), true);
        }
    }

    /// Reads `T001 -> T002` lines; true when the text is nothing else.
    fn chain(&mut self, flow: &Flow, inline: &Inline) -> bool {
        let points = inline.has(bytes::ARROW) || (inline.has(bytes::FOREIGN) && holds(&flow.text, "\u{2192}"));
        if flow.text.len() > ORDERING_BYTES_MAX || !points {
            return false;
        }
        let found = references::chains(&flow.text, |at| flow.source(at));
        // "x -> y" speaks of tasks only where one is called so.
        let unknown = |name: &Reference| references::is_small_letter(name) && !self.knows(name);
        let any = !found.is_empty() && !found.iter().any(|(first, then)| first.iter().chain(then).any(unknown));
        let found = if any { found } else { Vec::new() };
        self.out.chains.extend(found.into_iter().map(|(first, then)| Chain { first, then, lenient: false }));
        any
    }

    fn relate(&mut self, found: Option<Relations>, lenient: bool) {
        let Some(found) = found else { return };
        self.out.chains.extend(found.pairs.into_iter().map(|(first, then)| Chain { first, then, lenient }));
        self.out.beside.extend(found.beside.into_iter().map(|named| (named, lenient)));
    }

    /// True for the name of a task that was read already.
    pub(super) fn knows(&self, name: &Reference) -> bool {
        let (Reference::Name(name, _) | Reference::Range(name, _, _)) = name else { return false };
        let called = |draft: &Draft| draft.plan.label.as_ref().is_some_and(|label| label.eq_ignore_ascii_case(name));
        match name.parse::<usize>() {
            Ok(number) => (1..=self.out.drafts.len()).contains(&number),
            Err(_) => {
                let (labels, names) = (&self.out.drafts, &self.out.names);
                let mut known = self.known.borrow_mut();
                let settled = labels.len().saturating_sub(UNSETTLED_MAX);
                let new = labels.get(known.n_drafts..settled).unwrap_or(&[]);
                known.all.extend(new.iter().filter_map(|one| Some(one.plan.label.as_ref()?.to_ascii_lowercase())));
                let new = names.get(known.n_names..).unwrap_or(&[]);
                known.all.extend(new.iter().map(|one| one.text.to_ascii_lowercase()));
                (known.n_drafts, known.n_names) = (settled, names.len());
                labels[settled..].iter().any(called) || known.all.contains(&name.to_ascii_lowercase())
            }
        }
    }

    /// A diagram beside tasks says which waits for which; true when it names one that was read already.
    pub(super) fn diagram(&mut self, language: &str, block: &Block) -> bool {
        if !diagrams::is_diagram(language) || self.out.drafts.is_empty() {
            return false;
        }
        let mut any = false;
        let mut chains = Vec::new();
        for piece in block.pieces.iter() {
            for (first, then) in diagrams::arrows(&self.source[piece.start..piece.end], piece.start) {
                let mut named = |nodes: Vec<Node>| -> Vec<Reference> {
                    let references = nodes.iter().map(|node| diagrams::reference(node, |name| self.knows(name)));
                    references.inspect(|one| any |= self.knows(one)).collect()
                };
                chains.push(Chain { first: named(first), then: named(then), lenient: true });
            }
        }
        if any {
            self.out.chains.append(&mut chains);
            self.out.ignored.push(block.span);
        }
        any
    }
}
