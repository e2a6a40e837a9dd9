//! Gives the steps of a tree their names and dependencies, and checks that the result is a plan.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::tree::{
    CodeUse, Format, MarkAt, Node, ParsedPlan, ReadOptions, Reference, Tree, Verdict, When, diagnostics,
};
use crate::lines::Lines;
use crate::plan::{Condition, Dependency, Mark, Strength, TaskId};
use crate::validity::{InvalidPlan, TASKS_MAX, before, listed, order};

/// Maximum number of dependencies in a plan.
pub const EDGES_MAX: usize = 2_000_000;

/// Finds a task of the plan that a text is added to, by its name.
pub type Named<'a> = &'a dyn Fn(&str) -> Option<TaskId>;

/// A plan, and its dependencies on tasks of the plan that it is added to.
pub type Added = (ParsedPlan, Vec<(TaskId, TaskId)>);

/// Names and orders the steps of a tree.
pub(super) fn connect(
    mut tree: Tree,
    text: &str,
    options: ReadOptions<'_>,
    named: Option<Named<'_>>,
) -> Result<Added, InvalidPlan> {
    let mut builder = TaskBuilder::new(&mut tree, text, named)?;
    settle(&mut tree);
    builder.name(&mut tree);
    builder.resolve(&tree)?;
    builder.order(&tree);
    InvalidPlan::check_limit("dependencies", builder.n_edges, EDGES_MAX)?;
    let TaskBuilder { mut edges, ids, outer, mut conditions, nodes, .. } = builder;
    for own in &mut edges {
        own.retain(|one| one.strength == Strength::Hard || !options.parallel);
    }
    let lines = Lines::new(text);
    loosen(&mut edges).map_err(|circle| {
        let name =
            |number: &usize| tree.nodes[nodes[*number]].task.label.clone().unwrap_or_else(|| (number + 1).to_string());
        InvalidPlan::DependencyCycle(circle.iter().map(name).collect(), lines.at(tree.nodes[nodes[circle[0]]].at))
    })?;
    for own in &mut edges {
        own.sort_unstable();
        own.dedup_by_key(|one| one.task);
    }
    let marks = marks(&tree, &ids);
    let groups = groups(&tree);
    let mut tasks = Vec::with_capacity(nodes.len());
    for (place, node) in tree.nodes.into_iter().enumerate() {
        let Some(id) = ids[place] else { continue };
        let mut task = node.task;
        task.id = id;
        task.depends_on = std::mem::take(&mut edges[id.0 as usize - 1]);
        task.condition = conditions[place].take();
        task.group = node.parent.and_then(|parent| groups[parent].clone());
        tasks.push(task);
    }
    let codes = tree.codes.into_iter().map(|(node, at, verdict)| match verdict {
        Verdict::Runs { form, .. } => CodeUse { at, task: ids[node], form: Some(form), withheld: None },
        Verdict::Withheld { reason, .. } => CodeUse { at, task: ids[node], form: None, withheld: Some(reason) },
        Verdict::Mentioned | Verdict::Text => CodeUse { at, task: ids[node], form: None, withheld: None },
    });
    let mut codes = codes.collect::<Vec<_>>();
    codes.sort_by_key(|code| code.at);
    let warnings = diagnostics(tree.warnings, &lines);
    let Tree { title, context, mut lost, mut parts, .. } = tree;
    lost.retain(|_| options.format == Format::Markdown);
    parts.sort_unstable_by_key(|(span, _)| *span);
    Ok((ParsedPlan { format: options.format, title, tasks, context, warnings, parts, codes, lost, marks }, outer))
}

/// The most bytes of a group's text in the name of a group or a task.
const GROUP_BYTES_MAX: usize = 200;

fn short(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// By node: the text of its group, with the texts of the enclosing groups before it.
fn groups(tree: &Tree) -> Vec<Option<String>> {
    let mut groups: Vec<Option<String>> = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        let around = node.parent.and_then(|parent| groups[parent].as_ref());
        let own = short(&node.task.description, GROUP_BYTES_MAX);
        let outer = around.map_or_else(String::new, |around| format!("{} / ", short(around, GROUP_BYTES_MAX)));
        groups.push(node.is_group.then(|| outer + own));
    }
    groups
}

/// Passes the state of each group to its parts, and turns the notes of groups into context.
pub(super) fn settle(tree: &mut Tree) {
    let mut contradicted = BTreeSet::new();
    for place in 0..tree.nodes.len() {
        let (parent, part) = (tree.nodes[place].parent, &tree.nodes[place].task);
        match parent.map(|group| (group, tree.nodes[group].task.mark)) {
            Some((_, whole @ (Mark::Deferred | Mark::Cancelled))) if part.mark == Mark::Open => {
                tree.nodes[place].task.mark = whole;
            }
            Some((group, Mark::Done)) if matches!(part.mark, Mark::Open | Mark::InProgress) && !part.optional => {
                contradicted.insert(tree.nodes[group].at);
            }
            Some(_) | None => {}
        }
        if tree.nodes[place].is_group {
            let task = &mut tree.nodes[place].task;
            let notes = std::mem::take(&mut task.notes);
            tree.context.extend(notes.iter().map(|note| format!("{}: {note}", task.description)));
        }
    }
    for at in contradicted {
        let help = "clear the box of the group, or tick its parts";
        tree.warn(at, "this group is done, and parts of it are open", help);
    }
}

#[derive(Default)]
struct TaskBuilder<'a> {
    text: &'a str,
    named: Option<Named<'a>>,
    /// By node: its number, unless it is a group.
    ids: Vec<Option<TaskId>>,
    /// By number less one: the node.
    nodes: Vec<usize>,
    /// By node, and for the top at the end: the nodes below it.
    parts: Vec<Vec<usize>>,
    /// By name in small letters: the nodes with this name.
    names: HashMap<String, Vec<usize>>,
    /// By node: its written dependencies, if there are any.
    written: Vec<Option<Vec<usize>>>,
    /// By number less one.
    edges: Vec<Vec<Dependency>>,
    n_edges: usize,
    /// By node.
    conditions: Vec<Option<Condition>>,
    /// The condition of the group whose steps are being placed.
    inherited: Option<Condition>,
    /// The last unconditional step.
    last: Option<usize>,
    /// The condition of the previous step, and the steps that decide it.
    last_condition: Option<(Condition, Front)>,
    outer: Vec<(TaskId, TaskId)>,
}

/// The steps that the next one depends on.
type Front = BTreeMap<usize, Strength>;

impl<'a> TaskBuilder<'a> {
    /// Numbers the steps; a group without steps becomes a step.
    fn new(tree: &mut Tree, text: &'a str, named: Option<Named<'a>>) -> Result<Self, InvalidPlan> {
        let n_nodes = tree.nodes.len();
        let mut parts = vec![Vec::new(); n_nodes + 1];
        for (place, node) in tree.nodes.iter().enumerate() {
            parts[node.parent.unwrap_or(n_nodes)].push(place);
        }
        let (mut ids, mut nodes) = (Vec::with_capacity(n_nodes), Vec::with_capacity(n_nodes));
        for (place, node) in tree.nodes.iter_mut().enumerate() {
            node.is_group &= !parts[place].is_empty();
            nodes.extend((!node.is_group).then_some(place));
            ids.push((!node.is_group).then_some(TaskId(nodes.len() as u64)));
        }
        if nodes.is_empty() {
            return Err(InvalidPlan::EmptyPlan);
        }
        InvalidPlan::check_limit("tasks", nodes.len(), TASKS_MAX)?;
        let (written, conditions) = (vec![None; n_nodes], vec![None; n_nodes]);
        let edges = vec![Vec::new(); nodes.len()];
        Ok(Self { text, named, ids, parts, written, edges, nodes, conditions, ..Self::default() })
    }

    /// Gives each task its label: its written name if that is unique, else its group and place.
    fn name(&mut self, tree: &mut Tree) {
        for (place, node) in tree.nodes.iter().enumerate() {
            for name in [&node.name, &node.alias].into_iter().flatten() {
                self.names.entry(name.to_lowercase()).or_default().push(place);
            }
        }
        let mut doubles = Vec::new();
        for nodes in self.names.values_mut().filter(|nodes| nodes.len() > 1) {
            // If a heading and a step have the same number, it names the step.
            if nodes.iter().any(|place| !tree.nodes[*place].is_heading) {
                nodes.retain(|place| !tree.nodes[*place].is_heading);
            }
            doubles.extend((nodes.len() > 1).then(|| nodes.clone()));
        }
        for (place, node) in tree.nodes.iter().enumerate().filter(|(_, node)| node.is_heading) {
            self.names.entry(node.task.description.to_lowercase()).or_insert_with(|| vec![place]);
        }
        doubles.sort_unstable();
        self.warn_of_doubles(tree, &doubles);
        let doubles = doubles.into_iter().flatten().collect::<HashSet<_>>();
        let title = tree.title.clone().unwrap_or_else(|| "plan".to_owned());
        let mut counts: HashMap<String, usize> = HashMap::new();
        let has_parts = |place: &usize| !self.parts[*place].is_empty();
        for place in (0..self.parts.len()).filter(has_parts).collect::<Vec<_>>() {
            // Lists of names are separated by commas.
            let group = tree.nodes.get(place).map_or(title.as_str(), |group| {
                let name = group.alias.as_ref().or(group.name.as_ref().filter(|_| !group.is_heading));
                name.unwrap_or(&group.task.description)
            });
            let group = short(group, GROUP_BYTES_MAX).replace(',', "");
            let count = counts.entry(group.to_lowercase()).or_default();
            // If the number of one task is the name of another, the whole list goes by its group.
            let is_taken = |part: &usize| {
                let id = self.ids[*part].filter(|_| tree.nodes[*part].name.is_none());
                id.is_some_and(|id| self.names.contains_key(&id.to_string()))
            };
            let has_taken = self.parts[place].iter().any(is_taken);
            for part in self.parts[place].clone() {
                if self.ids[part].is_none() {
                    continue;
                }
                *count += 1;
                let node = &tree.nodes[part];
                let address = || format!("{group}/{count}");
                let label = match &node.name {
                    Some(name) if !doubles.contains(&part) => Some(name.clone()),
                    Some(_) => Some(address()),
                    None if node.asked_before && part > 0 => {
                        tree.nodes[part - 1].task.label.as_ref().map(|label| format!("{label}/question"))
                    }
                    None => has_taken.then(address),
                };
                if let Some(label) = label.as_ref().filter(|label| node.name.as_ref() != Some(label)) {
                    self.names.entry(label.to_lowercase()).or_default().push(part);
                }
                tree.nodes[part].task.label = label;
            }
        }
    }

    /// One warning for all names that are written more than once.
    fn warn_of_doubles(&self, tree: &mut Tree, doubles: &[Vec<usize>]) {
        const LINES_MAX: usize = 8;
        let Some(first) = doubles.first() else { return };
        let text = Lines::new(self.text);
        let line_of = |place: &usize| text.place(tree.nodes[*place].at).0.to_string();
        let shown = doubles.iter().map(|nodes| {
            let Node { name, alias, .. } = &tree.nodes[nodes[0]];
            let name = name.as_ref().or(alias.as_ref()).map_or("", String::as_str);
            let lines = nodes.iter().take(LINES_MAX).map(line_of).collect::<Vec<_>>();
            format!("{name} on lines {}", lines.join(" and "))
        });
        let (shown, at) = (listed(&shown.collect::<Vec<_>>(), "; "), tree.nodes[first[1]].at);
        let help = "these steps are called by their group and place, such as Deploy/2; write each name once to use it";
        tree.warn(at, format!("duplicate names: {shown}"), help);
    }

    /// Resolves written dependencies to tasks.
    fn resolve(&mut self, tree: &Tree) -> Result<(), InvalidPlan> {
        for (place, node) in tree.nodes.iter().enumerate() {
            for reference in &node.waits_for {
                let found = self.find(tree, place, reference)?;
                self.written[place].get_or_insert_default().extend(found);
            }
        }
        let mut before = Vec::new();
        for wave in &tree.waves {
            let known = wave.iter().filter_map(|one| self.names.get(&one.name.to_lowercase()));
            let wave = known.filter(|nodes| nodes.len() == 1).map(|nodes| nodes[0]).collect::<Vec<_>>();
            InvalidPlan::check_limit("dependencies", before.len().saturating_mul(wave.len()), EDGES_MAX)?;
            for place in &wave {
                self.written[*place].get_or_insert_default().extend(&before);
            }
            before = wave;
        }
        Ok(())
    }

    /// The node with this name; `None` if the name means a task of the plan that the text is added to.
    fn find(&mut self, tree: &Tree, place: usize, reference: &Reference) -> Result<Option<usize>, InvalidPlan> {
        let name = reference.name.to_lowercase();
        let mut around = std::iter::successors(Some(place), |node| tree.nodes[*node].parent);
        let (at, id) = (|| Lines::new(self.text).at(reference.at), || reference.name.clone());
        match self.names.get(&name).map(Vec::as_slice) {
            Some([one]) if around.any(|node| node == *one) => Err(InvalidPlan::SelfDependency(id(), at())),
            Some([one]) => Ok(Some(*one)),
            Some(several) => {
                let candidates = several.iter().filter_map(|node| tree.nodes[*node].task.label.clone()).collect();
                Err(InvalidPlan::AmbiguousId(id(), candidates, at()))
            }
            None => {
                if let Some(named) = self.named {
                    let of_plan = named(&reference.name).ok_or_else(|| InvalidPlan::UnknownId(id(), at()))?;
                    self.outer.extend(self.ids[place].map(|id| (id, of_plan)));
                    return Ok(None);
                }
                // A task without a name can be named by its number.
                let number = name.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                let numbered = number.and_then(|number| self.nodes.get(number).copied());
                let numbered = numbered.filter(|node| *node != place && tree.nodes[*node].task.label.is_none());
                numbered.map(Some).ok_or_else(|| InvalidPlan::UnknownId(id(), at()))
            }
        }
    }

    /// Orders the steps as written, except those marked as parallel.
    fn order(&mut self, tree: &Tree) {
        let top = std::mem::take(&mut self.parts[tree.nodes.len()]);
        if tree.is_ordered {
            self.sequence(tree, &top, false, &mut Front::new());
        } else {
            (0..tree.nodes.len()).for_each(|place| self.bind(tree, place));
        }
    }

    /// The steps of a group, without the optional ones unless all are optional.
    fn leaves(&self, tree: &Tree, place: usize) -> Vec<usize> {
        if !tree.nodes[place].is_group {
            return vec![place];
        }
        let (mut found, mut optional, mut to_do) = (Vec::new(), Vec::new(), vec![place]);
        while let Some(place) = to_do.pop() {
            let node = &tree.nodes[place];
            match (node.is_group, node.task.optional) {
                (true, _) => to_do.extend(self.parts[place].iter().rev()),
                (false, true) => optional.push(place),
                (false, false) => found.push(place),
            }
        }
        if found.is_empty() { optional } else { found }
    }

    /// The written dependencies of a node, as steps; `None` if there are none.
    fn written(&self, tree: &Tree, place: usize) -> Option<Vec<usize>> {
        let written = self.written[place].as_ref()?;
        Some(written.iter().flat_map(|one| self.leaves(tree, *one)).filter(|one| *one != place).collect())
    }

    fn wait(&mut self, place: usize, before: usize, strength: Strength) {
        let (Some(id), Some(task)) = (self.ids[place], self.ids[before]) else { return };
        if id != task && self.n_edges <= EDGES_MAX {
            self.edges[id.0 as usize - 1].push(Dependency { task, strength });
            self.n_edges += 1;
        }
    }

    /// Applies only written dependencies, including those of the enclosing groups.
    fn bind(&mut self, tree: &Tree, place: usize) {
        let node = &tree.nodes[place];
        if node.is_group || self.n_edges > EDGES_MAX {
            return;
        }
        for around in std::iter::successors(Some(place), |known| tree.nodes[*known].parent) {
            for before in self.written(tree, around).unwrap_or_default() {
                self.wait(place, before, Strength::Hard);
            }
        }
        if let When::Failed(reference) = &node.when
            && let Some([before]) = self.names.get(&reference.name.to_lowercase()).map(Vec::as_slice)
        {
            let before = *before;
            self.wait(place, before, Strength::Hard);
            let failed = self.outcome(tree, std::iter::once(&before), false);
            self.conditions[place] = Some(Condition { by_any_work: true, ..failed });
        }
    }

    fn sequence(&mut self, tree: &Tree, parts: &[usize], parts_beside: bool, front: &mut Front) {
        let is_plain = |place: &usize| !tree.nodes[*place].asked_before;
        let has_priority = |place: &usize| !tree.nodes[*place].is_group && tree.nodes[*place].task.priority.is_some();
        let mut steps = parts.iter().filter(|place| is_plain(place));
        let is_backlog = steps.clone().nth(1).is_some() && steps.all(has_priority);
        let is_decided = |place: &usize| matches!(tree.nodes[*place].when, When::Outcome { .. } | When::Otherwise);
        let beside = |place: &usize| (parts_beside || is_backlog || tree.nodes[*place].beside) && !is_decided(place);
        let mut rest = parts.iter().copied().filter(is_plain).peekable();
        while let Some(first) = rest.next() {
            let mut run = vec![first];
            while beside(&first) && rest.peek().is_some_and(beside) {
                run.extend(rest.next());
            }
            if let [single] = run[..] {
                self.place(tree, single, front);
                continue;
            }
            let (entry, mut left, mut exits) = (front.clone(), front.clone(), Front::new());
            for place in run {
                if self.n_edges > EDGES_MAX {
                    return;
                }
                if let (false, Some(written)) = (tree.nodes[place].is_group, self.written(tree, place)) {
                    if !tree.nodes[place].task.optional && tree.nodes[place].when == When::Always {
                        written.iter().for_each(|before| _ = left.remove(before));
                    }
                    self.place(tree, place, &mut exits);
                    continue;
                }
                let mut own = entry.clone();
                self.place(tree, place, &mut own);
                left.retain(|place, _| own.contains_key(place));
                exits.extend(own.into_iter().filter(|(place, _)| !entry.contains_key(place)));
            }
            left.extend(exits);
            *front = left;
        }
    }

    fn place(&mut self, tree: &Tree, place: usize, front: &mut Front) {
        if self.n_edges > EDGES_MAX {
            return;
        }
        let node = &tree.nodes[place];
        let questions = tree.nodes[place + 1..].iter().take_while(|next| next.asked_before && !node.asked_before);
        let questions = place + 1..place + 1 + questions.count();
        if node.is_group {
            questions.clone().for_each(|question| self.place(tree, question, front));
        }
        let written = self.written(tree, place);
        let (condition, decided_by) = self.condition(tree, place, front);
        let is_conditional = condition.is_some();
        let condition = both(self.inherited.as_ref(), condition);
        let mut own = match (&written, &decided_by) {
            (Some(written), _) => written.iter().map(|before| (*before, Strength::Hard)).collect(),
            (None, None) => front.clone(),
            (None, Some(_)) => Front::new(),
        };
        own.extend(decided_by.into_iter().flatten());
        if node.is_group {
            let around = std::mem::replace(&mut self.inherited, condition);
            let decides = (self.last, self.last_condition.clone());
            let before = own.clone();
            self.sequence(tree, &self.parts[place].clone(), node.parts_beside, &mut own);
            // Tasks after the group only follow the dependencies of the group; they do not depend on them.
            own.values_mut().for_each(|strength| *strength = Strength::Soft);
            self.inherited = around;
            if is_conditional {
                (self.last, self.last_condition) = decides;
            }
            if node.task.optional {
                return;
            }
            if written.is_some() || is_conditional {
                front.retain(|known, _| is_conditional || !before.contains_key(known));
                front.extend(own);
            } else {
                *front = own;
            }
            return;
        }
        for (before, strength) in &own {
            questions.clone().for_each(|question| self.wait(question, *before, *strength));
            if questions.is_empty() || *strength == Strength::Hard {
                self.wait(place, *before, *strength);
            }
        }
        questions.for_each(|question| self.wait(place, question, Strength::Hard));
        self.conditions[place] = condition;
        if !is_conditional {
            self.last = Some(place);
            self.last_condition = None;
        }
        if node.task.optional {
            return;
        }
        if !is_conditional {
            // The next step follows the open steps before an ended one, and does not wait for the ended one.
            let has_ended = |place: usize| tree.nodes[place].task.mark.is_end();
            let passed = own.keys().filter(|before| !has_ended(place) || has_ended(**before));
            passed.for_each(|before| _ = front.remove(before));
        }
        front.insert(place, Strength::Soft);
    }

    /// The condition of a step, and the steps that must end before it can be decided, if an outcome decides it.
    fn condition(&mut self, tree: &Tree, place: usize, front: &Front) -> (Option<Condition>, Option<Front>) {
        let (mut condition, decided_by) = match (&tree.nodes[place].when, self.last_condition.clone()) {
            (When::Always | When::Failed(_), _) => return (None, None),
            (When::Otherwise, Some((condition, decided_by))) => {
                return (Some(Condition { negated: !condition.negated, ..condition }), Some(decided_by));
            }
            (When::Asked { text, negated }, _) => (Condition::asked(text.clone(), *negated), None),
            (when @ (When::Outcome { .. } | When::Otherwise), _) => {
                let succeeded = *when == When::Outcome { succeeded: true };
                match self.last {
                    Some(last) => {
                        let is_among = |before: usize| front.contains_key(&last) && self.conditions[before].is_none();
                        let always = front.iter().filter(|(before, _)| is_among(**before));
                        let mut decided_by = always.map(|(before, strength)| (*before, *strength)).collect::<Front>();
                        decided_by.insert(last, Strength::Hard);
                        (self.outcome(tree, decided_by.keys(), succeeded), Some(decided_by))
                    }
                    None => (Condition::asked("it succeeds".to_owned(), !succeeded), None),
                }
            }
        };
        let same = self.last_condition.take().filter(|(last, _)| last.text == condition.text);
        condition.first = same.and_then(|(last, _)| last.first).or_else(|| self.ids[place..].iter().find_map(|id| *id));
        self.last_condition = Some((condition.clone(), decided_by.clone().unwrap_or_else(|| front.clone())));
        (Some(condition), decided_by)
    }

    fn outcome<'p>(&self, tree: &Tree, places: impl Iterator<Item = &'p usize> + Clone, succeeded: bool) -> Condition {
        let text = Condition::outcome_text(&places.clone().map(|place| self.name_of(tree, *place)).collect::<Vec<_>>());
        let outcome_of = places.filter_map(|place| self.ids[*place]).collect();
        Condition { outcome_of, ..Condition::asked(text, !succeeded) }
    }

    fn name_of(&self, tree: &Tree, place: usize) -> String {
        let id = self.ids[place];
        tree.nodes[place].task.label.clone().or_else(|| id.map(|id| id.to_string())).unwrap_or_default()
    }
}

/// The combined condition of a step and its group; if both have one, a person is asked.
fn both(around: Option<&Condition>, own: Option<Condition>) -> Option<Condition> {
    match (around, own) {
        (Some(around), Some(own)) => Some(Condition {
            first: own.first,
            ..Condition::asked(format!("{} and {}", around.words(), own.words()), false)
        }),
        (around, own) => own.or_else(|| around.cloned()),
    }
}

/// Reverses soft edges that contradict hard ones, so that the task needed first comes first. Tasks after a reversed
/// task still follow everything before it in the file. Edges are by number less one.
///
/// # Errors
/// A cycle of the other edges, its first task repeated at the end.
pub(super) fn loosen(edges: &mut [Vec<Dependency>]) -> Result<(), Vec<usize>> {
    const TAKEN_MAX: usize = 1_000;
    if edges.iter().enumerate().all(|(place, own)| own.iter().all(|one| before(one) < place)) {
        return Ok(());
    }
    let ranks = order(edges, |one| one.strength == Strength::Hard)?;
    let soft = |place: usize| Dependency { task: TaskId(place as u64 + 1), strength: Strength::Soft };
    let old = edges.iter_mut().map(std::mem::take).collect::<Vec<_>>();
    // By task: the tasks that it should run after but cannot.
    let mut missed: Vec<Vec<usize>> = vec![Vec::new(); old.len()];
    for place in 0..old.len() {
        let (mut seen, mut left) = (HashSet::from([place]), old[place].clone());
        left.sort_unstable_by(|a, b| b.cmp(a));
        while let Some(one) = left.pop().filter(|_| seen.len() < TAKEN_MAX) {
            let task = before(&one);
            if !seen.insert(task) {
                continue;
            }
            if ranks[task] > ranks[place] {
                // The two swap places: this one runs after the predecessors of the other.
                missed[place].push(task);
                edges[task].push(soft(place));
                left.extend(old[task].iter().map(|one| soft(before(one))));
                continue;
            }
            edges[place].push(one);
            let follows = |task: &usize| one.strength == Strength::Soft && ranks[*task] < ranks[place];
            let (after, passed): (Vec<_>, Vec<_>) = missed[task].clone().into_iter().partition(follows);
            edges[place].extend(after.into_iter().map(soft));
            missed[place].extend(passed);
        }
    }
    Ok(())
}

/// The places that show states, each with the nearest enclosing group that does.
fn marks(tree: &Tree, ids: &[Option<TaskId>]) -> Vec<MarkAt> {
    let mut marks: Vec<MarkAt> = Vec::new();
    // By node: the last mark at it or around it.
    let mut nearest: Vec<Option<usize>> = Vec::with_capacity(tree.nodes.len());
    for (node, of) in tree.nodes.iter().zip(ids) {
        let parent = node.parent.and_then(|parent| nearest[parent]);
        nearest.push(node.state.map_or(parent, |_| Some(marks.len())));
        let (mark, optional) = (node.task.mark, node.task.optional);
        marks.extend(node.state.map(|span| MarkAt { span, mark, of: *of, parent, optional }));
    }
    marks
}
