//! What is only told: quoted or reported, or in the column of a board for what is done or dropped. It is run by nobody.

use super::build::Builder;
use super::built::Odd;
use super::sections;
use crate::plan::Mark;

/// A section in which things are only told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    level: usize,
    /// How far all is that stands in it.
    mark: Option<Mark>,
}

impl Told {
    /// What holds under a heading, which can stand in a section that is told.
    pub(super) fn below(above: Option<Self>, level: usize, title: &str) -> Option<Self> {
        above.filter(|above| above.level > 1 && above.level < level).or_else(|| {
            let mark = sections::column(title);
            (mark.is_some() || sections::reports(title)).then_some(Self { level, mark })
        })
    }
}

impl Builder<'_> {
    /// Takes the commands from what is only told; `boxed` items say themselves how far they are.
    pub(super) fn only_told(&mut self, first: usize, boxed: bool) {
        let mark = self.told.and_then(|told| told.mark).filter(|_| !boxed);
        for draft in &mut self.out.drafts[first..] {
            if let Some(mark) = mark.filter(|_| draft.plan.mark == Mark::Open) {
                draft.plan.mark = mark;
            }
            if let Some(command) = draft.plan.command.take() {
                let message = format!("`{command}` stands in what is quoted or reported and is not run");
                let help = "write it outside of the quotation if it is to be run".into();
                self.out.odd.push(Odd { at: draft.at, message, help });
            }
        }
    }
}
