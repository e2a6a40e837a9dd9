//! The places of the tasks that have not ended, a bit for each, so that the next of them are found at once. It knows no
//! task.

use std::ops::Range;

/// Some places of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Open {
    words: Vec<u64>,
    /// How many words at the beginning are empty, at least.
    n_empty: usize,
    len: usize,
}

const BITS: usize = u64::BITS as usize;

impl Open {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn contains(&self, place: usize) -> bool {
        self.words.get(place / BITS).is_some_and(|word| word >> (place % BITS) & 1 == 1)
    }

    pub(crate) fn insert(&mut self, place: usize) {
        if self.contains(place) {
            return;
        }
        let at = place / BITS;
        if self.words.len() <= at {
            self.words.resize(at + 1, 0);
        }
        self.words[at] |= 1 << (place % BITS);
        self.n_empty = self.n_empty.min(at);
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, place: usize) {
        if !self.contains(place) {
            return;
        }
        self.words[place / BITS] &= !(1 << (place % BITS));
        self.len -= 1;
        while self.words.get(self.n_empty) == Some(&0) {
            self.n_empty += 1;
        }
    }

    /// All of them, the least first.
    pub(crate) fn iter(&self) -> Places<'_> {
        self.range(0..usize::MAX)
    }

    /// Those within a range, the least first.
    pub(crate) fn range(&self, range: Range<usize>) -> Places<'_> {
        let at = (range.start / BITS).max(self.n_empty);
        let first = self.words.get(at).copied().unwrap_or(0);
        let skipped = range.start.saturating_sub(at * BITS) % BITS;
        Places { words: &self.words, at, left: first >> skipped << skipped, end: range.end }
    }
}

/// Places one after another.
pub(crate) struct Places<'a> {
    words: &'a [u64],
    at: usize,
    /// What of the word is still to come.
    left: u64,
    end: usize,
}

impl Iterator for Places<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        while self.left == 0 {
            self.at += 1;
            if self.at * BITS >= self.end {
                return None;
            }
            self.left = *self.words.get(self.at)?;
        }
        let place = self.at * BITS + self.left.trailing_zeros() as usize;
        self.left &= self.left - 1;
        (place < self.end).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Open;

    #[test]
    fn places_are_there_as_they_came_and_went() {
        let (mut open, mut known) = (Open::default(), BTreeSet::new());
        for step in 0..4_000_usize {
            let place = (step * 7_919) % 517;
            if step * 31 % 17 < 9 {
                open.insert(place);
                known.insert(place);
            } else {
                open.remove(place);
                known.remove(&place);
            }
            assert_eq!((open.len(), open.is_empty()), (known.len(), known.is_empty()));
            assert_eq!(open.contains(place), known.contains(&place));
            let (start, end) = (step % 530, step * 13 % 530);
            if step % 50 == 0 && start <= end {
                assert!(open.iter().eq(known.iter().copied()));
                assert!(open.range(start..end).eq(known.range(start..end).copied()));
            }
        }
        known.iter().for_each(|place| open.remove(*place));
        assert!(open.is_empty() && open.iter().next().is_none());
    }
}
