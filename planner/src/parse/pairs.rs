//! Signs that come in pairs: runs of backticks, and brackets. What stands between them is for others.
//!
//! Each is found in one pass and in linear time, however often a sign is never closed.

use std::collections::HashMap;

/// The pairs of a text; their memory serves the next one.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// Runs of backticks: where, how wide, and the number of the next one that is as wide.
    runs: Vec<(usize, usize, usize)>,
    /// Pairs of equal runs of backticks, as start and end of the whole and width of a run.
    pub(super) codes: Vec<(usize, usize, usize)>,
    /// Brackets that are still open, round ones and square ones.
    open: [Vec<usize>; 2],
    /// Pairs of brackets outside code, in order of the opening one.
    pub(super) brackets: Vec<(usize, usize)>,
}

impl Pairs {
    pub(super) fn clear(&mut self) {
        self.runs.clear();
        self.codes.clear();
        self.open.iter_mut().for_each(Vec::clear);
        self.brackets.clear();
    }

    /// Finds code; its backticks are among the signs.
    pub(super) fn code_spans(&mut self, text: &str, signs: &[usize]) {
        let bytes = text.as_bytes();
        let mut next = 0;
        for start in signs.iter().copied().filter(|at| bytes[*at] == b'`') {
            if start < next {
                continue;
            }
            let width = bytes[start..].iter().take_while(|b| **b == b'`').count();
            self.runs.push((start, width, usize::MAX));
            next = start + width;
        }
        // For each run the next one that is as wide.
        // Hardly a run is wider than three.
        let mut narrow = [usize::MAX; 8];
        let mut wide: HashMap<usize, usize> = HashMap::new();
        for (n, (_, width, next)) in self.runs.iter_mut().enumerate().rev() {
            *next = match narrow.get_mut(*width) {
                Some(last) => std::mem::replace(last, n),
                None => wide.insert(*width, n).unwrap_or(usize::MAX),
            };
        }
        let mut n = 0;
        while let Some((start, width, next)) = self.runs.get(n) {
            n += 1;
            if let Some((end, _, _)) = self.runs.get(*next) {
                self.codes.push((*start, end + width, *width));
                n = next + 1;
            }
        }
    }

    /// Finds brackets outside the code that was found; they, and what hides them, are among the signs.
    pub(super) fn bracket_pairs(&mut self, text: &str, signs: &[usize]) {
        let bytes = text.as_bytes();
        let Self { codes, open: [round, square], brackets, .. } = self;
        let mut codes = codes.iter().peekable();
        let mut next = 0;
        for at in signs.iter().copied() {
            if at < next {
                continue;
            }
            match bytes[at] {
                b'`' => {
                    if let Some((_, end, _)) = codes.next_if(|(start, _, _)| *start == at) {
                        next = *end;
                    }
                }
                b'\\' => next = at + 2,
                b'(' => round.push(at),
                b'[' => square.push(at),
                b')' => brackets.extend(round.pop().map(|open| (open, at))),
                b']' => brackets.extend(square.pop().map(|open| (open, at))),
                _other => {}
            }
        }
        brackets.sort_unstable();
    }
}
