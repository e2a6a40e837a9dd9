//! Sets of places that share what they have in common, so that one that is nearly another costs little beside it.
//!
//! The same places make the same set, in whatever order they came. None is ever taken out.

use std::sync::Arc;

/// A set of places.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Places(Option<Arc<Node>>);

/// How many places a leaf may hold.
const BLOCK: usize = u64::BITS as usize;

#[derive(Debug, PartialEq, Eq)]
enum Node {
    /// Places of one block, a bit for each.
    Leaf { block: usize, bits: u64 },
    /// Blocks that are alike above a bit: those without it, and those with it.
    Fork { above: usize, bit: u32, without: Arc<Node>, with: Arc<Node> },
}

impl Places {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn insert(&mut self, place: usize) {
        let leaf = Node::Leaf { block: place / BLOCK, bits: 1 << (place % BLOCK) };
        self.extend(&Self(Some(Arc::new(leaf))));
    }

    /// Takes in all places of another set.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.0 = match (&self.0, &other.0) {
            (Some(these), Some(those)) => Some(union(these, those)),
            (None, only) | (only, None) => only.clone(),
        };
    }

    /// All of them, the least first.
    pub(crate) fn to_vec(&self) -> Vec<usize> {
        let mut places = Vec::new();
        let mut to_visit = self.0.iter().collect::<Vec<_>>();
        while let Some(node) = to_visit.pop() {
            match &**node {
                Node::Leaf { block, bits } => {
                    places.extend((0..BLOCK).filter(|bit| bits >> bit & 1 == 1).map(|bit| block * BLOCK + bit));
                }
                Node::Fork { without, with, .. } => to_visit.extend([with, without]),
            }
        }
        places
    }
}

/// What of a block's number is above a bit.
fn above(block: usize, bit: u32) -> usize {
    block >> bit >> 1
}

/// All places of both. It is one of them where that has all.
fn union(one: &Arc<Node>, other: &Arc<Node>) -> Arc<Node> {
    if Arc::ptr_eq(one, other) {
        return one.clone();
    }
    match (&**one, &**other) {
        (Node::Leaf { block, bits }, Node::Leaf { block: of_other, bits: more }) if block == of_other => {
            match bits | more {
                both if both == *bits => one.clone(),
                both if both == *more => other.clone(),
                both => Arc::new(Node::Leaf { block: *block, bits: both }),
            }
        }
        (
            Node::Fork { above: high, bit, without, with },
            Node::Fork { above: of_other, bit: bit_of_other, without: other_without, with: other_with },
        ) if (high, bit) == (of_other, bit_of_other) => {
            let (less, more) = (union(without, other_without), union(with, other_with));
            if Arc::ptr_eq(&less, without) && Arc::ptr_eq(&more, with) {
                one.clone()
            } else if Arc::ptr_eq(&less, other_without) && Arc::ptr_eq(&more, other_with) {
                other.clone()
            } else {
                Arc::new(Node::Fork { above: *high, bit: *bit, without: less, with: more })
            }
        }
        _other_blocks if one.holds(other) => one.with(other),
        _other_blocks if other.holds(one) => other.with(one),
        _other_blocks => {
            let bit = usize::BITS - 1 - (one.first_block() ^ other.first_block()).leading_zeros();
            let (without, with) = if one.has(bit) { (other, one) } else { (one, other) };
            let above = above(one.first_block(), bit);
            Arc::new(Node::Fork { above, bit, without: without.clone(), with: with.clone() })
        }
    }
}

impl Node {
    /// A block that has all in common that those of the node have.
    fn first_block(&self) -> usize {
        match self {
            Self::Leaf { block, .. } => *block,
            Self::Fork { above, bit, .. } => above << 1 << bit,
        }
    }

    fn has(&self, bit: u32) -> bool {
        self.first_block() >> bit & 1 == 1
    }

    /// Whether all blocks of another node belong on one side of this fork.
    fn holds(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Fork { above: high, bit, .. }, Self::Leaf { block, .. }) => above(*block, *bit) == *high,
            (Self::Fork { above: high, bit, .. }, Self::Fork { bit: lower, .. }) => {
                lower < bit && above(other.first_block(), *bit) == *high
            }
            (Self::Leaf { .. }, Self::Leaf { .. } | Self::Fork { .. }) => false,
        }
    }

    /// This fork with what it holds on the side where it belongs.
    fn with(self: &Arc<Self>, held: &Arc<Self>) -> Arc<Self> {
        let Self::Fork { above, bit, without, with } = &**self else { return self.clone() };
        let (side, is_with) = if held.has(*bit) { (with, true) } else { (without, false) };
        let grown = union(side, held);
        if Arc::ptr_eq(&grown, side) {
            return self.clone();
        }
        let (without, with) = if is_with { (without.clone(), grown) } else { (grown, with.clone()) };
        Arc::new(Self::Fork { above: *above, bit: *bit, without, with })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Places;

    fn set_of(places: impl Iterator<Item = usize>) -> Places {
        let mut set = Places::default();
        places.for_each(|place| set.insert(place));
        set
    }

    /// Places near each other and far apart: every so manieth of a power of two.
    fn some(n: usize) -> BTreeSet<usize> {
        (0..60).map(|nth| (nth * (n + 1)) % (1 << (n % 20))).chain([n, usize::MAX - n]).collect()
    }

    #[test]
    fn a_set_is_what_was_put_into_it_in_any_order_and_by_whatever_way() {
        for (one, other) in (0..40).flat_map(|n| (0..40).map(move |other| (some(n), some(other)))) {
            let both = one.union(&other).copied().collect::<BTreeSet<_>>();
            let mut joined = set_of(one.iter().copied());
            joined.extend(&set_of(other.iter().copied()));
            assert_eq!(joined.to_vec(), both.iter().copied().collect::<Vec<_>>());
            assert_eq!(joined, set_of(both.iter().rev().copied()));
            let mut more = set_of(other.into_iter());
            more.extend(&joined);
            assert_eq!(more, joined);
        }
        assert!(set_of(std::iter::empty()).is_empty());
    }
}
