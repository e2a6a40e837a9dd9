//! What is known of a task while the text is still being read.

use std::rc::Rc;

use crate::plan::{NodeKind, Strength, TaskId, TaskPlan};

/// A name of another task, as written, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reference {
    /// `T001`, `2`, `A`.
    Name(String, usize),
    /// `T001-T003`.
    Range(String, String, usize),
    /// "the previous step".
    Previous,
    /// "all of the above".
    Above,
    /// "both": the two tasks before it.
    Both,
    /// Words that describe a task.
    Phrase(String, usize),
    /// One word in a written list of dependencies: a name where tasks have names, else a description.
    Word(String, usize),
}

/// A task that is not numbered yet; ids are set at the end.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) plan: TaskPlan,
    /// Where it begins in the source.
    pub(super) at: usize,
    /// The list it stands in.
    pub(super) list: Option<usize>,
    /// What it waits for by its own words; these replace the order of the text.
    pub(super) needs: Option<Vec<Reference>>,
    /// What waits for it by its words.
    pub(super) before: Vec<Reference>,
    /// What the groups around it wait for.
    pub(super) inherited: Vec<Rc<[Reference]>>,
    /// Words in it that look like a setting and cannot be read, and where.
    pub(super) unread: Vec<(usize, String)>,
    /// Questions that must be answered first.
    pub(super) questions: Vec<usize>,
}

impl Draft {
    #[inline]
    pub(super) fn new(kind: NodeKind, description: String, at: usize) -> Self {
        Self {
            plan: TaskPlan::new(TaskId(0), kind, description),
            at,
            list: None,
            needs: None,
            before: Vec::new(),
            inherited: Vec::new(),
            unread: Vec::new(),
            questions: Vec::new(),
        }
    }
}

/// How something follows what stands before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    /// It does not.
    Free,
    /// It is next in a numbered list.
    Next,
    /// Next in a numbered list, but what it waits for is written.
    Anew,
    /// The next phase.
    Phase,
    /// "then": after every open end.
    Then,
    /// "once both are done": after the last two open ends.
    Both,
    /// "meanwhile": it begins with what stands before it.
    Parallel,
    /// `[P]`: beside everything else.
    Beside,
    /// "if ...": after the task that is tested.
    Tested,
}

impl Link {
    fn strength(self) -> Strength {
        match self {
            Self::Next | Self::Anew => Strength::Soft,
            Self::Free | Self::Phase | Self::Then | Self::Both | Self::Parallel | Self::Beside | Self::Tested => {
                Strength::Hard
            }
        }
    }
}

/// The order of the text as a program for [`order`].
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// A list, an item or a section begins.
    Open(Link),
    /// It ends.
    Close,
    /// A draft.
    Task(usize, Link),
}

/// Some drafts; mostly it is one or none.
#[derive(Debug, Clone, Default)]
pub(super) enum Set {
    #[default]
    None,
    One([usize; 1]),
    Many(Rc<[usize]>),
}

impl std::ops::Deref for Set {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        match self {
            Self::None => &[],
            Self::One(one) => one,
            Self::Many(all) => all,
        }
    }
}

impl From<&[usize]> for Set {
    fn from(all: &[usize]) -> Self {
        match all {
            [] => Self::None,
            [one] => Self::One([*one]),
            all => Self::Many(Rc::from(all)),
        }
    }
}

impl FromIterator<usize> for Set {
    fn from_iter<I: IntoIterator<Item = usize>>(all: I) -> Self {
        Self::from(&all.into_iter().collect::<Vec<_>>()[..])
    }
}

/// What a draft waits for, and how firmly.
type Wait = (Set, Strength);

struct Frame {
    link: Link,
    /// What the first thing in it waits for.
    entry: Wait,
    /// What the last thing waited for.
    last: Wait,
    /// The ends of the last thing.
    exits: Set,
    /// The ends of the last thing in sequence.
    chain: Option<Set>,
    /// Ends that nothing waits for, without those of the chain.
    open: Vec<usize>,
}

/// Runs the steps: for each draft what it waits for by the order of the text.
///
/// Gives `None` when there would be more than `max` edges.
pub(super) fn order(steps: &[Step], drafts: &[Draft], max: usize) -> Option<Vec<Wait>> {
    let free: Wait = (Set::None, Strength::Hard);
    let mut waits = vec![free.clone(); drafts.len()];
    let mut frames = vec![Frame::new(Link::Free, free)];
    let mut n_edges = 0;
    for step in steps {
        match *step {
            Step::Open(link) => {
                let entry = waits_for(&frames, link);
                frames.push(Frame::new(link, entry));
            }
            Step::Close => {
                let Some(frame) = (frames.len() > 1).then(|| frames.pop()).flatten() else { continue };
                let exits = frame.ends();
                if let Some(parent) = frames.last_mut().filter(|_| !exits.is_empty()) {
                    parent.add(frame.link, frame.entry, Set::from(&exits[..]));
                }
            }
            Step::Task(n, link) => {
                let wait = waits_for(&frames, link);
                n_edges += wait.0.len();
                if n_edges > max {
                    return None;
                }
                if let Some(slot) = waits.get_mut(n) {
                    *slot = wait.clone();
                }
                if let Some(frame) = frames.last_mut() {
                    frame.add(link, wait, Set::One([n]));
                }
            }
        }
    }
    Some(waits)
}

/// Takes the order from between the drafts of each set: the later ones wait for what the first waits for, and what waited
/// for one of them waits for all. Nothing when that would be more than `max` edges.
pub(super) fn side_by_side(mut waits: Vec<Wait>, sets: &[Vec<usize>], max: usize) -> Option<Vec<Wait>> {
    let mut n_edges = 0;
    for set in sets {
        let is_in = |n: &usize| set.binary_search(n).is_ok();
        for n in 0..waits.len() {
            if !waits[n].0.iter().any(is_in) {
                continue;
            }
            let (ours, mut now): (Vec<usize>, Vec<usize>) = waits[n].0.iter().copied().partition(is_in);
            if is_in(&n) {
                now.extend(ours.iter().flat_map(|one| waits[*one].0.iter()));
            } else {
                now.extend(set.iter().filter(|one| **one < n));
            }
            now.sort_unstable();
            now.dedup();
            n_edges += now.len();
            if n_edges > max {
                return None;
            }
            waits[n].0 = Set::from(&now[..]);
        }
    }
    Some(waits)
}

fn waits_for(frames: &[Frame], link: Link) -> Wait {
    let Some(frame) = frames.last() else { return (Set::None, Strength::Hard) };
    match link {
        Link::Free | Link::Beside | Link::Anew => frame.entry.clone(),
        Link::Next | Link::Phase => {
            frame.chain.clone().map_or_else(|| frame.entry.clone(), |chain| (chain, link.strength()))
        }
        Link::Parallel => frame.last.clone(),
        Link::Tested => {
            // What begins a list asks about what stands before the list.
            let tested = frames.iter().rev().take_while(|frame| frame.entry.0.is_empty()).map(|frame| &frame.exits);
            match [&frame.exits].into_iter().chain(tested).find(|exits| !exits.is_empty()) {
                Some(exits) => (exits.clone(), link.strength()),
                None => frame.entry.clone(),
            }
        }
        Link::Then | Link::Both if let Some(end) = frame.only_end() => (Set::One([end]), link.strength()),
        Link::Then | Link::Both => {
            let ends = frames.iter().rev().map(Frame::ends).find(|ends| !ends.is_empty()).unwrap_or_default();
            let from = if link == Link::Both { ends.len().saturating_sub(2) } else { 0 };
            (Set::from(&ends[from..]), link.strength())
        }
    }
}

impl Frame {
    fn new(link: Link, entry: Wait) -> Self {
        Self { link, last: entry.clone(), entry, exits: Set::None, chain: None, open: Vec::new() }
    }

    /// The end that nothing waits for, when it is one.
    fn only_end(&self) -> Option<usize> {
        match (&self.open[..], self.chain.as_deref().unwrap_or_default()) {
            ([end], []) | ([], [end]) => Some(*end),
            _ => None,
        }
    }

    fn ends(&self) -> Vec<usize> {
        let mut ends = self.open.clone();
        ends.extend(self.chain.iter().flat_map(|chain| chain.iter().copied()));
        ends.sort_unstable();
        ends
    }

    fn add(&mut self, link: Link, wait: Wait, exits: Set) {
        match link {
            Link::Free | Link::Beside => self.open.extend(exits.iter()),
            Link::Next | Link::Anew | Link::Phase => self.chain = Some(exits.clone()),
            Link::Then => {
                self.open.clear();
                self.chain = Some(exits.clone());
            }
            Link::Both => {
                self.consume(&wait.0);
                self.open.extend(exits.iter());
            }
            Link::Parallel => match &mut self.chain {
                Some(chain) => *chain = chain.iter().chain(exits.iter()).copied().collect(),
                None => self.open.extend(exits.iter()),
            },
            Link::Tested => {
                self.consume(&wait.0);
                match &mut self.chain {
                    Some(chain) if !chain.is_empty() => self.open.extend(exits.iter()),
                    Some(_) => self.chain = Some(exits.clone()),
                    None => self.open.extend(exits.iter()),
                }
            }
        }
        self.last = wait;
        self.exits = exits;
    }

    /// Takes tasks off the open ends; only the newest can be meant.
    fn consume(&mut self, tasks: &[usize]) {
        while self.open.last().is_some_and(|last| tasks.contains(last)) {
            self.open.pop();
        }
        if let Some(chain) = &mut self.chain
            && chain.iter().all(|task| tasks.contains(task))
        {
            *chain = Set::None;
        }
    }
}
