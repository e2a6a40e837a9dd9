//! The tree of list items: which stands under which, and which are tasks.

use super::lines::{Block, BlockKind};
use super::markers::Marker;
use super::roles;

/// Deeper lists are taken as lists of this depth.
const DEPTH_MAX: usize = 64;

/// What an item is for the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A step.
    Task,
    /// A heading for the items under it.
    Group,
    /// A step whose items say what follows if something holds of it.
    Tested,
    /// A remark on the item above it.
    Note,
}

/// Where a block stands among the lists; for blocks that are no items only the parent counts.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) parent: Option<usize>,
    pub(super) list: usize,
    pub(super) role: Role,
}

struct Open {
    block: usize,
    indent: usize,
    rank: usize,
    list: usize,
    number: Option<String>,
}

/// Finds the place of each block.
pub(super) fn outline(text: &str, blocks: &[Block]) -> Vec<Place> {
    let mut tree = Tree { open: Vec::new(), closed: None, n_lists: 0 };
    let mut places: Vec<Place> = Vec::with_capacity(blocks.len());
    for (n, block) in blocks.iter().enumerate() {
        let (parent, list) = tree.place(n, block);
        places.push(Place { parent, list, role: Role::Task });
    }
    roles_of(text, blocks, &mut places);
    places
}

struct Tree {
    open: Vec<Open>,
    /// The outermost list that text interrupted, for numbers that go on after it.
    closed: Option<(usize, String)>,
    n_lists: usize,
}

impl Tree {
    fn place(&mut self, n: usize, block: &Block) -> (Option<usize>, usize) {
        match &block.kind {
            BlockKind::Item { marker, .. } => self.item(n, block, marker),
            BlockKind::Heading(_) => {
                self.open.clear();
                self.closed = None;
                (None, usize::MAX)
            }
            BlockKind::Ignored => (None, usize::MAX),
            BlockKind::Paragraph | BlockKind::Fence(_) | BlockKind::Table => {
                let fence = matches!(block.kind, BlockKind::Fence(_)) && !block.apart;
                let inside = self
                    .open
                    .iter()
                    .rposition(|open| block.indent > open.indent || (fence && block.indent == open.indent));
                if inside.is_none() {
                    let outer = self.open.first();
                    self.closed = outer.and_then(|open| Some((open.list, open.number.clone()?))).or(self.closed.take());
                    self.open.clear();
                }
                (inside.and_then(|at| self.open.get(at)).map(|open| open.block), usize::MAX)
            }
        }
    }

    fn item(&mut self, n: usize, block: &Block, marker: &Marker) -> (Option<usize>, usize) {
        let number = marker.number().map(str::to_owned);
        let rank = marker.rank();
        while let Some(top) = self.open.last() {
            let deeper = block.indent >= top.indent + 2;
            let level = block.indent + 1 >= top.indent;
            let lettered = level && rank > top.rank && top.rank > 0;
            let bulleted = level && rank == 0 && top.rank > 0 && block.indent >= top.indent && !block.apart;
            let dotted = level
                && number
                    .as_deref()
                    .is_some_and(|number| top.number.as_deref().is_some_and(|above| is_under(above, number)));
            if (deeper || lettered || bulleted || dotted) && self.open.len() < DEPTH_MAX {
                break;
            }
            // A list that goes on at this level keeps its entry until the new item replaces it.
            if level && !deeper && self.continues(rank, number.as_deref()) {
                let list = top.list;
                self.open.pop();
                return self.push(n, block.indent, rank, list, number);
            }
            if deeper {
                let list = top.list;
                self.open.pop();
                return self.push(n, block.indent, rank, list, number);
            }
            self.open.pop();
        }
        let resumed = self
            .closed
            .take()
            .filter(|(_, last)| self.open.is_empty() && number.as_deref().is_some_and(|number| succeeds(last, number)));
        let list = resumed.map_or_else(|| self.new_list(), |(list, _)| list);
        self.push(n, block.indent, rank, list, number)
    }

    /// True when the top of the stack is the item before this one in the same list.
    fn continues(&self, rank: usize, number: Option<&str>) -> bool {
        let Some(top) = self.open.last() else { return false };
        if top.rank != rank {
            return false;
        }
        match (top.number.as_deref(), number) {
            (None, None) => true,
            (Some(above), Some(number)) => {
                let depth = |text: &str| text.matches('.').count();
                let lazy = above == number && !number.contains('.');
                depth(above) == depth(number) && (lazy || !(matches!(number, "1" | "a" | "i" | "0") && above != number))
            }
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    fn new_list(&mut self) -> usize {
        self.n_lists += 1;
        self.n_lists - 1
    }

    fn push(
        &mut self,
        block: usize,
        indent: usize,
        rank: usize,
        list: usize,
        number: Option<String>,
    ) -> (Option<usize>, usize) {
        let parent = self.open.last().map(|open| open.block);
        self.open.push(Open { block, indent, rank, list, number });
        (parent, list)
    }
}

/// True for `2` and `2.1`.
fn is_under(above: &str, number: &str) -> bool {
    number.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'))
}

fn succeeds(last: &str, number: &str) -> bool {
    matches!((last.parse::<u64>(), number.parse::<u64>()), (Ok(a), Ok(b)) if b > a && b <= a.saturating_add(1))
}

/// Settles the roles from the leaves up.
fn roles_of(text: &str, blocks: &[Block], places: &mut [Place]) {
    let mut steps = vec![0_usize; blocks.len()];
    let mut tracked = vec![0_usize; blocks.len()];
    let mut branches = vec![0_usize; blocks.len()];
    for n in (0..blocks.len()).rev() {
        let BlockKind::Item { marker, mark } = &blocks[n].kind else { continue };
        let line = blocks[n].pieces.first().map_or("", |piece| &text[piece.start..piece.end]);
        let named = mark.is_some() || roles::is_labelled(line);
        let note = places[n].parent.is_some() && !named && !marker.is_ordered() && roles::is_remark(line);
        let role = if steps[n] > 0 && branches[n] == steps[n] {
            Role::Tested
        } else if steps[n] > 0 && !((named || roles::is_command_line(line)) && tracked[n] == 0) {
            Role::Group
        } else if note {
            Role::Note
        } else {
            Role::Task
        };
        places[n].role = role;
        if let Some(parent) = places[n].parent.filter(|_| role != Role::Note) {
            steps[parent] += 1;
            branches[parent] += usize::from(roles::is_branch(line));
            tracked[parent] += usize::from(named || marker.is_ordered() || role == Role::Group && tracked[n] > 0);
        }
    }
    // What stands under a step is a remark on it.
    for n in 0..blocks.len() {
        if let Some(parent) = places[n].parent.filter(|_| matches!(blocks[n].kind, BlockKind::Item { .. }))
            && !matches!(places[parent].role, Role::Group | Role::Tested)
        {
            places[n].role = Role::Note;
        }
    }
}
