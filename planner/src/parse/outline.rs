//! The tree of list items: which stands under which, and which are tasks.

use super::lines::{Block, BlockKind};
use super::markers::Marker;
use super::{commands, heads, roles, vocabulary};

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
    /// A step whose items are the steps after it, and remarks on it.
    Lead,
    /// A remark on the item above it.
    Note,
}

/// Where a block stands among the lists; for blocks that are no items only the parent counts.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) parent: Option<usize>,
    pub(super) list: usize,
    pub(super) role: Role,
    /// A group that only holds other groups: no task has its name.
    pub(super) unnamed: bool,
    /// It stands deeper than lists go, and is taken for an item of the deepest.
    pub(super) flat: bool,
}

struct Open<'a> {
    block: usize,
    indent: usize,
    rank: usize,
    list: usize,
    number: Option<&'a str>,
}

/// Finds the place of each block.
pub(super) fn outline(text: &str, blocks: &[Block]) -> Vec<Place> {
    let mut tree = Tree { open: Vec::new(), closed: None, n_lists: 0, flat: false };
    let mut places: Vec<Place> = Vec::with_capacity(blocks.len());
    for (n, block) in blocks.iter().enumerate() {
        let (parent, list) = tree.place(n, block);
        places.push(Place { parent, list, role: Role::Task, unnamed: false, flat: std::mem::take(&mut tree.flat) });
    }
    roles_of(text, blocks, &mut places);
    places
}

struct Tree<'a> {
    open: Vec<Open<'a>>,
    /// The outermost list that text interrupted, for numbers that go on after it.
    closed: Option<(usize, &'a str)>,
    n_lists: usize,
    /// The last item had no place of its own.
    flat: bool,
}

impl<'a> Tree<'a> {
    fn place(&mut self, n: usize, block: &'a Block<'_>) -> (Option<usize>, usize) {
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
                    self.closed = outer.and_then(|open| Some((open.list, open.number?))).or(self.closed.take());
                    self.open.clear();
                }
                (inside.and_then(|at| self.open.get(at)).map(|open| open.block), usize::MAX)
            }
        }
    }

    fn item(&mut self, n: usize, block: &Block, marker: &'a Marker<'_>) -> (Option<usize>, usize) {
        let number = marker.number().map(|number| &**number);
        let rank = marker.rank();
        while let Some(top) = self.open.last() {
            let deeper = block.indent >= top.indent + 2;
            let level = block.indent + 1 >= top.indent;
            let lettered = level && rank > top.rank && top.rank > 0;
            let bulleted = level && rank == 0 && top.rank > 0 && block.indent >= top.indent && !block.apart;
            let dotted = level && number.is_some_and(|number| top.number.is_some_and(|above| is_under(above, number)));
            if (deeper || lettered || bulleted || dotted) && self.open.len() < DEPTH_MAX {
                break;
            }
            // A list that goes on at this level keeps its entry until the new item replaces it.
            if level && !deeper && self.continues(rank, number) {
                let list = top.list;
                self.open.pop();
                return self.push(n, block.indent, rank, list, number);
            }
            if deeper {
                self.flat = true;
                let list = top.list;
                self.open.pop();
                return self.push(n, block.indent, rank, list, number);
            }
            self.open.pop();
        }
        let resumed = self
            .closed
            .take()
            .filter(|(_, last)| self.open.is_empty() && number.is_some_and(|number| succeeds(last, number)));
        let list = resumed.map_or_else(|| self.new_list(), |(list, _)| list);
        self.push(n, block.indent, rank, list, number)
    }

    /// True when the top of the stack is the item before this one in the same list.
    fn continues(&self, rank: usize, number: Option<&str>) -> bool {
        let Some(top) = self.open.last() else { return false };
        if top.rank != rank {
            return false;
        }
        match (top.number, number) {
            (None, None) => true,
            (Some(above), Some(number)) => {
                let depth = |text: &str| text.bytes().filter(|byte| *byte == b'.').count();
                let lazy = above == number && !number.contains('.');
                // "1.2" and then "2", where nothing is called "1".
                let up =
                    || self.open.len() == 1 && above.split_once('.').is_some_and(|(major, _)| succeeds(major, number));
                depth(above) == depth(number)
                    && (lazy || above == "0" || !(matches!(number, "1" | "a" | "i" | "0") && above != number))
                    || up()
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
        number: Option<&'a str>,
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

/// What stands under an item, counted from the leaves up.
#[derive(Debug, Clone, Default)]
struct Under {
    steps: usize,
    /// Those that only say something, if the item is a step.
    said: usize,
    branches: usize,
    /// Those with a box, an id or a number.
    tracked: usize,
    /// Those that are steps whatever the item is: tracked ones, commands, "then ...".
    active: usize,
}

/// Settles the roles from the leaves up.
fn roles_of(text: &str, blocks: &[Block], places: &mut [Place]) {
    let mut under = vec![Under::default(); blocks.len()];
    let mut active = vec![false; blocks.len()];
    for n in (0..blocks.len()).rev() {
        let BlockKind::Item { marker, mark } = &blocks[n].kind else { continue };
        // An item without others above and under it is a task, whatever it says.
        if under[n].steps == 0 && places[n].parent.is_none() {
            continue;
        }
        let line = blocks[n].pieces.first().map_or("", |piece| &text[piece.start..piece.end]);
        let named = mark.is_some() || roles::is_labelled(line);
        let note = places[n].parent.is_some() && !named && !marker.is_ordered() && roles::is_remark(line);
        let own = &under[n];
        // Of an item that stands alone nobody asks.
        let command =
            (own.steps > 0 || places[n].parent.is_some()) && commands::is_command_line(whole(text, &blocks[n]));
        // Itself a step, under which nothing but remarks stands.
        let noted = own.steps > 0 && ((named && own.tracked == 0) || (own.said == own.steps && acts(line)));
        // "If it fails:" is no step that could be tested.
        let asks = || heads::head(line).is_some_and(|head| head.rest.is_empty());
        let role = if own.steps > 0 && own.branches == own.steps && (named || !asks()) {
            Role::Tested
        } else if own.steps > 0 && command && own.active > 0 {
            Role::Lead
        } else if own.steps > 0 && !command && !noted {
            Role::Group
        } else if note {
            Role::Note
        } else {
            Role::Task
        };
        places[n].role = role;
        let tracked = named || marker.is_ordered() || role == Role::Group && own.tracked > 0;
        active[n] = tracked || command || roles::is_next(line) || own.active > 0;
        if let Some(parent) = places[n].parent.filter(|_| role != Role::Note) {
            let asked = vocabulary::is_question_mark(line) && !vocabulary::is_request(line);
            let said = !active[n] && own.steps == 0 && (roles::is_said(line) || asked);
            let above = &mut under[parent];
            above.steps += 1;
            above.said += usize::from(said);
            above.branches += usize::from(roles::is_branch(line));
            above.tracked += usize::from(tracked);
            above.active += usize::from(active[n]);
        }
    }
    settle(blocks, places, &active);
}

/// The text of a block from its first line to its last.
fn whole<'t>(text: &'t str, block: &Block) -> &'t str {
    let ends = block.pieces.first().zip(block.pieces.last());
    ends.and_then(|(first, last)| text.get(first.start..last.end)).unwrap_or("")
}

/// What stands under a step is a remark on it, unless it follows it.
fn settle(blocks: &[Block], places: &mut [Place], active: &[bool]) {
    let mut tasks = vec![0_usize; blocks.len()];
    for n in 0..blocks.len() {
        if !matches!(blocks[n].kind, BlockKind::Item { .. }) {
            continue;
        }
        let Some(parent) = places[n].parent else { continue };
        match places[parent].role {
            Role::Group | Role::Tested => {}
            Role::Lead if active[n] => {}
            Role::Lead | Role::Task | Role::Note => places[n].role = Role::Note,
        }
        tasks[parent] += usize::from(!matches!(places[n].role, Role::Group | Role::Note));
    }
    for (place, tasks) in places.iter_mut().zip(tasks) {
        place.unnamed = place.role == Role::Group && tasks == 0;
    }
}

/// True for a line that says what to do, and does not lead to what follows.
fn acts(line: &str) -> bool {
    let asks = line.to_ascii_lowercase().contains("question");
    vocabulary::begins_with_verb(line) && !asks && !line.trim_end().ends_with([':', '\u{ff1a}'])
}
