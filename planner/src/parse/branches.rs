//! Conditions of steps and of what stands under them, and what each is to be asked of.

use super::build::{Builder, Open};
use super::draft::{Draft, Link};
use super::heads::{self, Asks, Branch};
use super::inline::Inline;
use super::lines::Block;
use super::meta::Meta;
use super::phrases::{after_word, begins};
use super::sentences::{self, Clause, Stop};
use super::text::Flow;
use super::{conditions, letters, plain, roles, starts, tags};
use crate::plan::{Condition, Span};

/// A clause with its condition taken off.
pub(super) struct Part {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) condition: Option<Condition>,
    /// How it follows, where the condition alone says it.
    pub(super) link: Option<Link>,
}

impl Builder<'_> {
    /// True when what a condition at the end of an item says can be known from the step before it.
    pub(super) fn is_tested(&self, condition: &str) -> bool {
        let Some(last) = self.out.drafts.last() else { return false };
        let back = ["it", "they", "this", "that", "these", "those", "all", "any", "both", "everything", "none", "so"];
        let day = begins(condition, &["it is the", "it's the", "it is late", "it is after", "it is before"]);
        begins(condition, &back) && !day || letters::shares(&last.plan.description, condition)
    }

    /// "Check whether the index exists": what "if so" and "if not" say after it.
    fn asked_before(&self) -> Option<String> {
        let last = &self.out.drafts.last().filter(|last| last.plan.condition.is_none())?.plan.description;
        let asked = [" whether ", " if "].iter().find_map(|word| last.split_once(word))?.1;
        Some(asked.strip_suffix(" or not").unwrap_or(asked).to_owned())
    }

    /// `asked` is the condition that something before it is to answer.
    pub(super) fn place(&self, link: Link, found: &Meta, asked: Option<&str>, otherwise: bool, item: bool) -> Link {
        if found.beside {
            return Link::Beside;
        }
        if otherwise && self.condition.is_some() && self.asked_before().is_none() {
            return Link::Parallel;
        }
        let next = link == Link::Next && self.is_paired(asked.unwrap_or_default());
        if let Some(asked) = asked
            && (matches!(link, Link::Free | Link::Tested) || next)
        {
            if self.is_branch_of_item() || self.is_paired(asked) || self.is_beside(asked) {
                return Link::Parallel;
            }
            // Under a new heading nothing is there to be asked about.
            return if self.last.is_some() { Link::Tested } else { link };
        }
        if found.parallel {
            return if item && link == Link::Free { Link::Free } else { Link::Parallel };
        }
        if found.led && link == Link::Free { Link::Then } else { link }
    }

    /// Takes "if ...," off the front and " if ..." off the end.
    pub(super) fn condition_of(&self, text: &str, inline: &Inline, clause: &Clause) -> Part {
        let part = &text[clause.from..clause.to];
        let shown = |from, to| plain::plain(text, inline, from, to, &[]);
        if clause.otherwise {
            let asked = self.asked_before().map(|text| Condition { text, negated: true, outcome_of: None });
            let last = self.condition.as_ref();
            let condition = asked.or_else(|| {
                last.map(|last| Condition { text: last.text.clone(), negated: !last.negated, outcome_of: None })
            });
            return Part { from: clause.from, to: clause.to, condition, link: None };
        }
        if roles::idle_condition(part) {
            return Part { from: clause.from, to: clause.to, condition: None, link: None };
        }
        if let Some(rest) = conditions::after_failure(part) {
            let condition = Some(Condition { text: "it fails".to_owned(), negated: false, outcome_of: None });
            return Part { from: clause.to - rest.len(), to: clause.to, condition, link: None };
        }
        // Most clauses begin with another word.
        let may_ask = heads::may_open(part);
        let letters = ['u', 'U', 'i', 'I', 'o', 'O', 'w', 'W', 's', 'S', 'f', 'F', 'a', 'A', 'e', 'E'];
        let may_ask = may_ask && (part.starts_with(letters) || !part.starts_with(|c: char| c.is_ascii()));
        let foreign = may_ask && heads::is_foreign(part);
        let words = [
            ("unless", true),
            ("if", false),
            ("only if", false),
            ("in case", false),
            ("when", false),
            ("should", false),
            ("\u{5982}\u{679c}", false),
            ("\u{3082}\u{3057}", false),
        ];
        let foreign = heads::FOREIGN.into_iter().filter(|_| foreign).map(|word| (word, false));
        for (word, negated) in if may_ask { &words[..] } else { &[] }.iter().copied().chain(foreign) {
            let Some(rest) = after_word(part, word) else { continue };
            let start = clause.to - rest.len();
            if let Some((end, next)) = conditions::condition_end(text, inline, start, clause.to) {
                if matches!(word, "when" | "should") && !conditions::is_outcome(&text[start..end]) {
                    continue;
                }
                let mut asked = shown(start, end);
                let positive = asked.strip_suffix(" or not").map(str::to_owned);
                asked = positive.unwrap_or(asked);
                let (condition, turned) = self.meant(Condition { text: asked, negated, outcome_of: None });
                let link = turned.then_some(Link::Parallel);
                return Part { from: next, to: clause.to, condition: Some(condition), link };
            }
        }
        if let Some((at, start, negated)) = conditions::trailing_condition(text, inline, clause) {
            let said = shown(start, clause.to);
            let said = if part[..at - clause.from].matches('(').count() == part[..at - clause.from].matches(')').count()
            {
                said.strip_suffix(')').filter(|said| !said.contains('(')).map(str::to_owned).unwrap_or(said)
            } else {
                said
            };
            let condition = Some(Condition { text: said, negated, outcome_of: None });
            return Part { from: clause.from, to: at, condition, link: None };
        }
        let head = Some(part).filter(|_| may_ask && clause.stop != Stop::Question).and_then(heads::head);
        let head = head.filter(|head| head.rest.is_empty()).map(|head| self.resolve(head.asks, Link::Free));
        let (condition, link) = head.unzip();
        Part { from: clause.from, to: clause.to, condition, link }
    }

    /// Takes the condition off a clause behind which settings may stand; says where they begin that follow a condition.
    pub(super) fn condition_before_settings(
        &self,
        text: &str,
        inline: &Inline,
        clause: &Clause,
    ) -> (Part, Option<usize>) {
        let asks = inline.starts.has(starts::CONDITION);
        let end = if asks { tags::settings_start(text, inline, clause.from, clause.to) } else { clause.to };
        let mut part = self.condition_of(text, inline, &Clause { to: end, ..*clause });
        if part.to < end {
            return (part, Some(end).filter(|end| *end < clause.to));
        }
        part.to = clause.to;
        (part, None)
    }

    /// "if 1 succeeds": what a condition names is waited for, when it is a task that was read already.
    pub(super) fn wait_for_tested(&self, found: &mut Meta, part: &Part, flow: &Flow, start: usize) {
        let Some(condition) = &part.condition else { return };
        let at = flow.text[start..].find(&*condition.text).map_or(start, |offset| start + offset);
        let names = conditions::tested(&condition.text, at).filter(|names| names.iter().all(|name| self.knows(name)));
        if let Some(mut names) = names {
            found.needs.get_or_insert_default().append(&mut names);
        }
    }

    /// The same, for a line that may end with its condition: "Roll back if the tests fail:".
    pub(super) fn branch_in(&self, flow: &Flow, inline: &Inline, link: Link) -> Option<(Condition, Link)> {
        self.branch_of(&flow.text, link).or_else(|| {
            let clauses = sentences::clauses(&flow.text, inline);
            let last = clauses.last()?;
            let (_, start, negated) = conditions::trailing_condition(&flow.text, inline, last)?;
            let said = plain::plain(&flow.text, inline, start, last.to, &[]);
            let text = said.strip_suffix(')').filter(|said| !said.contains('(')).unwrap_or(&said).to_owned();
            Some(self.resolve(Asks::This(Condition { text, negated, outcome_of: None }), link))
        })
    }

    /// What a line that leads to steps asks, and how the steps under it follow what stands before them.
    pub(super) fn branch_of(&self, line: &str, link: Link) -> Option<(Condition, Link)> {
        let head = heads::head(line)?;
        Some(self.resolve(head.asks, link))
    }

    fn resolve(&self, asks: Asks, link: Link) -> (Condition, Link) {
        let after = |parallel: bool| match link {
            Link::Phase | Link::Then | Link::Both | Link::Beside | Link::Parallel if !parallel => link,
            Link::Next | Link::Anew if !parallel => link,
            Link::Beside => link,
            _ if parallel => Link::Parallel,
            _ => Link::Tested,
        };
        match asks {
            Asks::Otherwise => {
                let asked = self.asked_before().map(|text| Condition { text, negated: true, outcome_of: None });
                let parallel = asked.is_none() && self.condition.is_some();
                let condition = asked.or_else(|| self.turned());
                // What nothing was said of has to be asked as it stands.
                let condition = condition.unwrap_or_else(|| Condition {
                    text: "otherwise".to_owned(),
                    negated: false,
                    outcome_of: None,
                });
                (condition, after(parallel))
            }
            Asks::This(condition) => {
                let (condition, turned) = self.meant(condition);
                let parallel = turned || self.is_paired(&condition.text);
                (condition, after(parallel))
            }
        }
    }

    /// The last condition turned round.
    fn turned(&self) -> Option<Condition> {
        self.condition.as_ref().map(|last| Condition {
            text: last.text.clone(),
            negated: !last.negated,
            outcome_of: None,
        })
    }

    /// What "if so", "if yes" and "if no" ask, and whether it is the last condition turned round.
    fn meant(&self, condition: Condition) -> (Condition, bool) {
        let Condition { text, negated, .. } = condition;
        match text.to_ascii_lowercase().as_str() {
            "so" | "yes" => (Condition { text: self.asked_before().unwrap_or(text), negated, outcome_of: None }, false),
            "no" | "not" => match (self.asked_before(), self.turned()) {
                (Some(text), _) => (Condition { text, negated: !negated, outcome_of: None }, false),
                (None, Some(turned)) => (turned, true),
                (None, None) => (Condition { text: "yes".to_owned(), negated: !negated, outcome_of: None }, false),
            },
            _ => (Condition { text, negated, outcome_of: None }, false),
        }
    }

    /// True when a condition asks about what the step before it asked about: "If it passes, ... If it fails, ...".
    fn is_paired(&self, condition: &str) -> bool {
        let Some(last) = &self.condition else { return false };
        let follows = self.out.drafts.last().is_some_and(|draft| draft.plan.condition.is_some());
        let inside = self.branches.last().is_some_and(|branch| branch.own == *last);
        // Steps under the same words follow one another as they stand.
        follows && !inside && last.text != condition && heads::same_subject(&last.text, condition)
    }

    /// True for "If the disk is full, ..." after "If the CPU is hot, ...": neither asks about the other.
    fn is_beside(&self, condition: &str) -> bool {
        let conditional = |draft: &Draft| draft.plan.condition.is_some() && draft.plan.condition == self.condition;
        self.out.drafts.last().is_some_and(conditional) && !self.is_tested(condition)
    }

    /// True for an item that says what follows if something holds of the item above it.
    fn is_branch_of_item(&self) -> bool {
        let above = self.open.iter().rev().nth(1);
        matches!(self.open.last(), Some(Open::List(..)))
            && matches!(above, Some(Open::Group { follow: Some(Link::Tested), .. }))
    }

    /// All that comes until what is open now is closed has this condition.
    pub(super) fn begin_branch(&mut self, own: Condition) {
        let outer = self.branches.last().map(Branch::whole);
        self.condition = Some(own.clone());
        self.branches.push(Branch { depth: self.open.len(), own, outer });
    }

    /// What one block says, with the condition of the line above it.
    pub(super) fn under_lead(&mut self, say: impl FnOnce(&mut Self)) {
        let Some((condition, link)) = self.lead_condition.take() else { return say(self) };
        let begin = self.out.steps.len();
        let outer = self.branches.last().map(Branch::whole);
        self.condition = Some(condition.clone());
        self.branches.push(Branch { depth: 0, own: condition.clone(), outer });
        say(self);
        self.branches.pop();
        self.condition = Some(condition);
        self.wrap(begin, link);
    }

    /// "Run the tests. If they fail:" above a list: a step and the condition of the list; true when it is that.
    pub(super) fn ask_last(&mut self, block: &Block, flow: &Flow, inline: &Inline) -> bool {
        let clauses = sentences::clauses(&flow.text, inline);
        let [.., before, last] = clauses.as_slice() else { return false };
        let said = flow.text.get(last.start..).unwrap_or("");
        if before.to > last.start || !heads::head(said).is_some_and(|head| head.rest.is_empty()) {
            return false;
        }
        let end = flow.source(last.start);
        let cut = |piece: &Span| Span { start: piece.start, end: piece.end.min(end) };
        let pieces: Vec<Span> = block.pieces.iter().map(cut).filter(|piece| piece.start < piece.end).collect();
        let first = Flow::new(self.source, &pieces, self.is_plain);
        let mut found = Inline::default();
        found.read(&first.text, &self.definitions, &mut self.pairs);
        let begin = self.out.drafts.len();
        self.under_lead(|builder| builder.prose(&first, &found, false));
        self.lend_plainly(begin);
        self.out.ignored.extend(flow.span(last.start, flow.text.len()));
        self.lead_condition = self.branch_of(said, Link::Free);
        true
    }

    /// Leaves the branches of what is closed; "otherwise" after them refers to them.
    pub(super) fn end_branches(&mut self) {
        while let Some(branch) = self.branches.pop_if(|branch| branch.depth > self.open.len()) {
            self.condition = Some(branch.own);
        }
    }
}

/// True for a clause that begins with a condition.
pub(super) fn starts_condition(text: &str) -> bool {
    heads::may_open(text)
        && (begins(text, &["if", "unless", "only if", "in case", "\u{5982}\u{679c}"]) || heads::is_foreign(text))
}
