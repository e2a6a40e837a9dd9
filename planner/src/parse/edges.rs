//! Gives the steps of a tree their names and dependencies, and checks that the result is a plan.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::graph::loosen;
use super::tree::{Lines, MarkAt, Node, ParseError, ParsedPlan, Part, ReadOptions, Reference, TASKS_MAX, Tree, When};
use crate::plan::{Condition, Dependency, Mark, Strength, TaskId};

/// Maximum number of dependencies in a plan.
pub const EDGES_MAX: usize = 2_000_000;

/// Finds a task of the plan that a text is added to, by its name.
pub type Named<'a> = &'a dyn Fn(&str) -> Option<TaskId>;

/// Dependencies of the tasks of a text on tasks of the plan that it is added to.
type Outer = Vec<(TaskId, TaskId)>;

/// Names and orders the steps of a tree.
pub(super) fn connect(
    mut tree: Tree,
    text: &str,
    options: ReadOptions<'_>,
    named: Option<Named<'_>>,
) -> Result<(ParsedPlan, Outer), ParseError> {
    let lines = Lines::new(text);
    close_groups(&mut tree);
    let n_tasks = tree.nodes.iter().filter(|node| !node.is_group).count();
    if n_tasks == 0 {
        return Err(ParseError::EmptyPlan);
    }
    if n_tasks > TASKS_MAX {
        return Err(ParseError::LimitPassed { limit: "tasks", value: n_tasks, max: TASKS_MAX });
    }
    let mut builder = Builder::new(&tree, &lines, named);
    builder.name(&mut tree);
    builder.resolve(&tree)?;
    builder.order(&tree);
    if builder.n_edges > EDGES_MAX {
        return Err(ParseError::LimitPassed { limit: "dependencies", value: builder.n_edges, max: EDGES_MAX });
    }
    let Builder { mut edges, ids, outer, mut conditions, nodes, .. } = builder;
    if options.parallel {
        edges.iter_mut().for_each(|own| own.retain(|one| one.strength == Strength::Hard));
    }
    for own in &mut edges {
        own.sort_unstable();
        own.dedup_by_key(|one| one.task);
    }
    loosen(&mut edges).map_err(|circle| {
        let nodes = circle.iter().map(|number| &tree.nodes[nodes[*number]]).collect::<Vec<_>>();
        let name =
            |(number, node): (&usize, &&Node)| node.task.label.clone().unwrap_or_else(|| (number + 1).to_string());
        ParseError::DependencyCycle(circle.iter().zip(&nodes).map(name).collect(), lines.place(nodes[0].at))
    })?;
    let marks = marks(&tree, &ids);
    let mut tasks = Vec::with_capacity(n_tasks);
    let names = tree.nodes.iter().map(|node| node.task.description.clone()).collect::<Vec<_>>();
    for (place, node) in tree.nodes.into_iter().enumerate() {
        let Some(id) = ids[place] else { continue };
        let mut task = node.task;
        task.id = id;
        task.depends_on = std::mem::take(&mut edges[id.0 as usize - 1]);
        task.condition = conditions[place].take();
        task.group = node.parent.map(|parent| names[parent].clone());
        tasks.push(task);
    }
    let mut parts = tree.parts;
    parts.extend(tree.ignored.into_iter().map(|span| (span, Part::Heading)));
    parts.sort_unstable_by_key(|(span, _)| *span);
    let mut codes = tree.codes;
    codes.sort_by_key(|(_, code)| code.at);
    let codes = codes.into_iter().map(|(node, mut code)| {
        code.task = node.and_then(|node| ids[node]);
        code
    });
    let plan = ParsedPlan {
        format: options.format,
        title: tree.title,
        tasks,
        context: tree.context,
        warnings: Tree::diagnostics(tree.warnings, &lines),
        parts,
        codes: codes.collect(),
        lost: tree.lost,
        marks,
    };
    Ok((plan, outer))
}

/// A group without a step in it is a step.
fn close_groups(tree: &mut Tree) {
    let mut has_parts = vec![false; tree.nodes.len()];
    for node in &tree.nodes {
        if let Some(parent) = node.parent {
            has_parts[parent] = true;
        }
    }
    for (node, has_parts) in tree.nodes.iter_mut().zip(has_parts) {
        node.is_group &= has_parts;
    }
}

struct Builder<'a> {
    lines: &'a Lines<'a>,
    named: Option<Named<'a>>,
    /// By node: its number, unless it is a group.
    ids: Vec<Option<TaskId>>,
    /// By node, and for the top at the end: the nodes below it.
    parts: Vec<Vec<usize>>,
    /// By name in small letters: the nodes that have it.
    names: HashMap<String, Vec<usize>>,
    /// By the text of a heading in small letters: its group.
    headings: HashMap<String, usize>,
    /// By number less one: the node.
    nodes: Vec<usize>,
    /// By node: the nodes that it waits for, as it is written.
    written: Vec<Vec<usize>>,
    /// By node: the nodes of the wave before its own.
    waves: HashMap<usize, Vec<usize>>,
    /// By number less one.
    edges: Vec<Vec<Dependency>>,
    n_edges: usize,
    /// By node.
    conditions: Vec<Option<Condition>>,
    /// The condition of the group around the steps that are being placed.
    inherited: Option<Condition>,
    /// The last step that always runs.
    last: Option<usize>,
    /// The condition of the step before, and what decides it.
    last_condition: Option<(Condition, Front)>,
    outer: Outer,
    /// The nodes that wait for a task of the plan that the text is added to.
    has_outer: HashSet<usize>,
}

impl<'a> Builder<'a> {
    fn new(tree: &Tree, lines: &'a Lines<'a>, named: Option<Named<'a>>) -> Self {
        let n_nodes = tree.nodes.len();
        let mut n_tasks = 0;
        let ids = tree.nodes.iter().map(|node| {
            n_tasks += u64::from(!node.is_group);
            (!node.is_group).then_some(TaskId(n_tasks))
        });
        let ids = ids.collect::<Vec<_>>();
        let mut parts = vec![Vec::new(); n_nodes + 1];
        for (place, node) in tree.nodes.iter().enumerate() {
            parts[node.parent.unwrap_or(n_nodes)].push(place);
        }
        Self {
            lines,
            named,
            ids,
            parts,
            names: HashMap::new(),
            headings: HashMap::new(),
            nodes: Vec::new(),
            written: vec![Vec::new(); n_nodes],
            waves: HashMap::new(),
            edges: vec![Vec::new(); n_tasks as usize],
            n_edges: 0,
            conditions: vec![None; n_nodes],
            inherited: None,
            last: None,
            last_condition: None,
            outer: Vec::new(),
            has_outer: HashSet::new(),
        }
    }

    /// Gives each task its label: the name that is written, if it is written once; else its group and place.
    fn name(&mut self, tree: &mut Tree) {
        for (place, node) in tree.nodes.iter().enumerate() {
            if node.is_heading {
                self.headings.entry(node.task.description.to_lowercase()).or_insert(place);
            }
            self.nodes.extend(self.ids[place].map(|_| place));
            for name in [&node.name, &node.alias].into_iter().flatten() {
                self.names.entry(name.to_lowercase()).or_default().push(place);
            }
        }
        for nodes in self.names.values_mut() {
            // The number of a heading yields to that of a step.
            if nodes.len() > 1 && nodes.iter().any(|place| !tree.nodes[*place].is_heading) {
                nodes.retain(|place| !tree.nodes[*place].is_heading);
            }
        }
        let mut doubles =
            self.names.iter().filter(|(_, nodes)| nodes.len() > 1).map(|(_, nodes)| nodes.clone()).collect::<Vec<_>>();
        doubles.sort_unstable();
        self.warn_of_doubles(tree, &doubles);
        let doubles = doubles.into_iter().flatten().collect::<HashSet<_>>();
        let mut counts: HashMap<String, usize> = HashMap::new();
        let mut taken = HashSet::new();
        let title = tree.title.clone().unwrap_or_else(|| "plan".to_owned());
        for place in 0..tree.nodes.len() {
            let Some(id) = self.ids[place] else { continue };
            let node = &tree.nodes[place];
            let parent = node.parent.map(|parent| &tree.nodes[parent]);
            let group = parent.map_or(title.as_str(), |parent| {
                let name = parent.alias.as_ref().or(parent.name.as_ref().filter(|_| !parent.is_heading));
                name.unwrap_or(&parent.task.description)
            });
            let count = match counts.get_mut(group) {
                Some(count) => {
                    *count += 1;
                    *count
                }
                None => *counts.entry(group.to_owned()).or_insert(1),
            };
            // A list of names is written with commas.
            let address = || format!("{}/{count}", group.replace(',', ""));
            let is_named = |label: &String| !doubles.contains(&place) && !taken.contains(&label.to_lowercase());
            let label = match &node.name {
                Some(name) if is_named(name) => Some(name.clone()),
                Some(_) => Some(address()),
                // Its number in the plan would be the name of another.
                None if node.asked_before && place > 0 => {
                    tree.nodes[place - 1].task.label.as_ref().map(|label| format!("{label}/question"))
                }
                None => self.names.contains_key(&id.to_string()).then(address),
            };
            if let Some(label) = &label {
                taken.insert(label.to_lowercase());
                let known = self.names.entry(label.to_lowercase()).or_default();
                if !known.contains(&place) {
                    known.push(place);
                }
            }
            tree.nodes[place].task.label = label;
        }
    }

    /// One warning for all names that are written twice.
    fn warn_of_doubles(&self, tree: &mut Tree, doubles: &[Vec<usize>]) {
        const SHOWN_MAX: usize = 8;
        let Some(first) = doubles.first() else { return };
        let line_of = |place: &usize| self.lines.place(tree.nodes[*place].at).0.map_or(0, |(line, _)| line).to_string();
        let shown = doubles.iter().take(SHOWN_MAX).map(|nodes| {
            let name = tree.nodes[nodes[0]].name.as_deref().unwrap_or_default();
            let lines = nodes.iter().take(SHOWN_MAX).map(line_of).collect::<Vec<_>>();
            format!("{name} on lines {}", lines.join(" and "))
        });
        let shown = shown.collect::<Vec<_>>().join("; ");
        let more = doubles.len().saturating_sub(SHOWN_MAX);
        let more = if more > 0 { format!("; and {more} more names") } else { String::new() };
        let at = tree.nodes[first[1]].at;
        let help = "these steps are called by their group and place, such as Deploy/2; write each name once to use it";
        tree.warn(at, format!("a name is written more than once: {shown}{more}"), help);
    }

    /// Finds the tasks that written dependencies name.
    fn resolve(&mut self, tree: &Tree) -> Result<(), ParseError> {
        for (place, node) in tree.nodes.iter().enumerate() {
            for reference in &node.waits_for {
                let found = self.find(tree, place, reference)?;
                self.written[place].extend(found);
            }
        }
        for waves in tree.waves.windows(2) {
            let [before, wave] = waves else { continue };
            let known = |names: &[Reference]| {
                let found = names.iter().filter_map(|one| self.names.get(&one.name.to_lowercase()));
                found.filter(|nodes| nodes.len() == 1).map(|nodes| nodes[0]).collect::<Vec<_>>()
            };
            let (before, wave) = (known(before), known(wave));
            self.waves.extend(wave.into_iter().map(|place| (place, before.clone())));
        }
        if let Some(first) = tree.waves.first() {
            for place in first.iter().filter_map(|one| self.names.get(&one.name.to_lowercase())).flatten() {
                self.waves.entry(*place).or_default();
            }
        }
        Ok(())
    }

    fn find(&mut self, tree: &Tree, place: usize, reference: &Reference) -> Result<Option<usize>, ParseError> {
        let at = self.lines.place(reference.at);
        let name = reference.name.to_lowercase();
        let known = self.names.get(&name).cloned().unwrap_or_default();
        match known[..] {
            [one] if one == place => Err(ParseError::SelfDependency(reference.name.clone(), at)),
            [one] => Ok(Some(one)),
            [] => {
                if let Some(heading) = self.headings.get(&name) {
                    return Ok(Some(*heading));
                }
                if let Some(of_plan) = self.named.and_then(|named| named(&reference.name)) {
                    self.outer.extend(self.ids[place].map(|id| (id, of_plan)));
                    self.has_outer.insert(place);
                    return Ok(None);
                }
                let id = reference.name.clone();
                // A task without a name is called by its number.
                let numbered =
                    name.parse::<usize>().ok().and_then(|number| self.nodes.get(number.checked_sub(1)?).copied());
                match numbered {
                    Some(found) if self.named.is_none() && tree.nodes[found].task.label.is_none() && found != place => {
                        Ok(Some(found))
                    }
                    Some(_) | None if self.named.is_some() => Err(ParseError::UnknownAnywhere(id, at)),
                    Some(_) | None => Err(ParseError::UnknownId(id, at)),
                }
            }
            [..] => {
                let candidates = known.iter().filter_map(|node| tree.nodes[*node].task.label.clone()).collect();
                Err(ParseError::AmbiguousId(reference.name.clone(), candidates, at))
            }
        }
    }

    /// Orders the steps as they are written, but for what is marked as parallel.
    fn order(&mut self, tree: &Tree) {
        let top = std::mem::take(&mut self.parts[tree.nodes.len()]);
        if tree.is_ordered {
            self.sequence(tree, &top, false, &mut Front::new());
        } else {
            for place in 0..tree.nodes.len() {
                self.bind(tree, place);
            }
        }
        for (place, node) in tree.nodes.iter().enumerate() {
            if !node.is_group && self.written[place].iter().any(|one| tree.nodes[*one].is_group) {
                self.reduce(place);
            }
        }
    }

    /// The steps of a group, without the optional ones unless it has no others.
    fn leaves(&self, tree: &Tree, place: usize) -> Vec<usize> {
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

    /// What a node waits for as it is written, step by step; unset without anything written.
    fn written(&self, tree: &Tree, place: usize) -> Option<Vec<usize>> {
        if let Some(before) = self.waves.get(&place) {
            return Some(before.iter().flat_map(|one| self.leaves(tree, *one)).collect());
        }
        let written = &self.written[place];
        let found = written.iter().flat_map(|one| self.leaves(tree, *one)).filter(|one| *one != place);
        (!written.is_empty() || self.has_outer.contains(&place)).then(|| found.collect())
    }

    fn wait(&mut self, place: usize, before: usize, strength: Strength) {
        if let (Some(id), Some(task)) = (self.ids[place], self.ids[before])
            && id != task
            && self.n_edges <= EDGES_MAX
        {
            let own = &mut self.edges[id.0 as usize - 1];
            own.push(Dependency { task, strength });
            self.n_edges += 1;
        }
    }

    /// Written dependencies alone, those of the groups around a step included.
    fn bind(&mut self, tree: &Tree, place: usize) {
        let node = &tree.nodes[place];
        if node.is_group {
            return;
        }
        let mut around = Some(place);
        while let Some(known) = around {
            for before in self.written(tree, known).unwrap_or_default() {
                self.wait(place, before, Strength::Hard);
            }
            around = tree.nodes[known].parent;
        }
        if let When::Failed(reference) = &node.when
            && let Some([before]) = self.names.get(&reference.name.to_lowercase()).map(Vec::as_slice)
        {
            let before = *before;
            self.wait(place, before, Strength::Hard);
            self.conditions[place] = Some(self.outcome(tree, before, false));
        }
    }

    /// Of the steps of a group only those are waited for that no other of them waits for.
    fn reduce(&mut self, place: usize) {
        let Some(id) = self.ids[place] else { return };
        let own = std::mem::take(&mut self.edges[id.0 as usize - 1]);
        let known = own.iter().map(|one| one.task).collect::<HashSet<_>>();
        let covered =
            known.iter().flat_map(|one| &self.edges[one.0 as usize - 1]).map(|one| one.task).collect::<HashSet<_>>();
        let left = own.iter().filter(|one| !covered.contains(&one.task)).copied().collect::<Vec<_>>();
        self.edges[id.0 as usize - 1] = if left.is_empty() { own } else { left };
    }

    fn sequence(&mut self, tree: &Tree, parts: &[usize], parts_beside: bool, front: &mut Front) {
        let is_plain = |place: &usize| !tree.nodes[*place].asked_before;
        let has_priority = |place: &usize| !tree.nodes[*place].is_group && tree.nodes[*place].task.priority.is_some();
        let mut steps = parts.iter().filter(|place| is_plain(place));
        let is_backlog = steps.clone().nth(1).is_some() && steps.all(has_priority);
        let beside = |place: &usize| parts_beside || is_backlog || tree.nodes[*place].beside;
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
                if let (false, Some(written)) = (tree.nodes[place].is_group, self.written(tree, place)) {
                    written.iter().for_each(|before| left.remove(before));
                    self.place(tree, place, &mut exits);
                    continue;
                }
                let mut own = entry.clone();
                self.place(tree, place, &mut own);
                left.0.retain(|place, _| own.0.contains_key(place));
                exits.0.extend(own.0.into_iter().filter(|(place, _)| !entry.0.contains_key(place)));
            }
            left.0.extend(exits.0);
            *front = left;
        }
    }

    fn place(&mut self, tree: &Tree, place: usize, front: &mut Front) {
        if self.n_edges > EDGES_MAX {
            return;
        }
        let node = &tree.nodes[place];
        let written = self.written(tree, place);
        let (condition, decided_by) = self.condition(tree, node, front);
        let mut own = match (&decided_by, &written) {
            (Some(front), _) => front.clone(),
            (None, Some(written)) => Front(written.iter().map(|before| (*before, Strength::Hard)).collect()),
            (None, None) => front.clone(),
        };
        if node.is_group {
            let around = self.inherited.clone();
            self.inherited = condition.or(self.inherited.take());
            let is_conditional = node.when != When::Always;
            let before = own.clone();
            self.sequence(tree, &self.parts[place].clone(), node.parts_beside, &mut own);
            self.inherited = around;
            if node.task.optional {
                return;
            }
            if written.is_some() || is_conditional {
                let keeps = |known: &usize| is_conditional || !before.0.contains_key(known);
                front.0.retain(|known, _| keeps(known));
                front.0.extend(own.0);
            } else {
                *front = own;
            }
            return;
        }
        let asked = Some(place + 1).filter(|next| tree.nodes.get(*next).is_some_and(|node| node.asked_before));
        for (before, strength) in &own.0 {
            if let Some(asked) = asked {
                self.wait(asked, *before, *strength);
            }
            if asked.is_none() || *strength == Strength::Hard {
                self.wait(place, *before, *strength);
            }
        }
        if let Some(asked) = asked {
            self.wait(place, asked, Strength::Hard);
        }
        let is_conditional = condition.is_some();
        self.conditions[place] = condition.or_else(|| self.inherited.clone());
        if !is_conditional {
            self.last = Some(place);
            self.last_condition = None;
        }
        if node.task.optional {
            return;
        }
        if !is_conditional {
            // A step that has ended holds nothing up: what comes after it waits for what stands before it, too.
            let has_ended = |place: usize| matches!(tree.nodes[place].task.mark, Mark::Done | Mark::Cancelled);
            let passed = own.0.keys().filter(|before| !has_ended(place) || has_ended(**before));
            passed.for_each(|before| front.remove(before));
        }
        front.0.insert(place, Strength::Soft);
    }

    /// The condition of a step, and what alone it waits for, where the condition says that.
    fn condition(&mut self, tree: &Tree, node: &Node, front: &Front) -> (Option<Condition>, Option<Front>) {
        let found = match &node.when {
            When::Always | When::Failed(_) => return (None, None),
            When::Asked { text, negated } => {
                let condition = Condition { text: text.clone(), negated: *negated, outcome_of: None };
                (condition, None)
            }
            When::Outcome { succeeded } => self.of_last(tree, *succeeded),
            When::Otherwise => match self.last_condition.clone() {
                Some((condition, decided_by)) => {
                    let condition = Condition { negated: !condition.negated, ..condition };
                    return (Some(condition), Some(decided_by));
                }
                None => self.of_last(tree, false),
            },
        };
        let (condition, decided_by) = found;
        self.last_condition = Some((condition.clone(), decided_by.clone().unwrap_or_else(|| front.clone())));
        (Some(condition), decided_by)
    }

    /// Whether the last step that always runs succeeds, or a person's word without such a step.
    fn of_last(&self, tree: &Tree, succeeded: bool) -> (Condition, Option<Front>) {
        match self.last {
            Some(last) => {
                let decided_by = Front([(last, Strength::Hard)].into_iter().collect());
                (self.outcome(tree, last, succeeded), Some(decided_by))
            }
            None => (Condition { text: "it succeeds".to_owned(), negated: !succeeded, outcome_of: None }, None),
        }
    }

    fn outcome(&self, tree: &Tree, place: usize, succeeded: bool) -> Condition {
        let id = self.ids[place];
        let name = tree.nodes[place].task.label.clone().or_else(|| id.map(|id| id.to_string())).unwrap_or_default();
        Condition { text: format!("step {name} succeeds"), negated: !succeeded, outcome_of: id }
    }
}

/// The steps that the next one waits for.
#[derive(Debug, Clone, Default)]
struct Front(BTreeMap<usize, Strength>);

impl Front {
    fn new() -> Self {
        Self::default()
    }

    fn remove(&mut self, place: &usize) {
        self.0.remove(place);
    }
}

/// The places that show states, each with the nearest group around it that does.
fn marks(tree: &Tree, ids: &[Option<TaskId>]) -> Vec<MarkAt> {
    let mut place_of: HashMap<usize, usize> = HashMap::new();
    let mut marks: Vec<MarkAt> = Vec::new();
    for (place, node) in tree.nodes.iter().enumerate() {
        let Some(span) = node.state else { continue };
        let mut around = node.parent;
        while let Some(parent) = around.filter(|parent| !place_of.contains_key(parent)) {
            around = tree.nodes[parent].parent;
        }
        let parent = around.and_then(|parent| place_of.get(&parent).copied());
        place_of.insert(place, marks.len());
        marks.push(MarkAt { span, mark: node.task.mark, of: ids[place], parent, optional: node.task.optional });
    }
    marks
}
