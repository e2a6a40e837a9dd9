//! Lays a graph out in layers, so that few lines cross and related nodes are close.

use std::collections::{BTreeMap, HashSet};

/// Rounds of moving nodes towards their neighbours.
const ROUNDS: usize = 6;

/// An item that takes space in a layer: a node, or a passing line to a later layer.
struct Item {
    layer: usize,
    height: f64,
    /// The connected items of the previous layer, and of the next one.
    joined: [Vec<usize>; 2],
    y: f64,
}

/// The positions of everything, in pixels. The middle of a node is at `y`.
pub struct Layout {
    pub y: Vec<f64>,
    /// For each edge, the heights at which it passes the layers between its ends.
    pub bends: Vec<Vec<f64>>,
    pub height: f64,
}

/// The edges without those that a longer path implies.
pub fn reduced(n_nodes: usize, layer: &[usize], edges: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); n_nodes];
    edges.iter().for_each(|(from, to)| before[*to].push(*from));
    let mut order: Vec<usize> = (0..n_nodes).collect();
    order.sort_by_key(|node| layer[*node]);
    let mut reach: Vec<HashSet<usize>> = vec![HashSet::new(); n_nodes];
    let mut kept = Vec::new();
    for node in order {
        // The latest first: their predecessors are implied.
        before[node].sort_by_key(|from| std::cmp::Reverse(layer[*from]));
        let mut reached = HashSet::new();
        for from in &before[node] {
            if reached.insert(*from) {
                kept.push((*from, node));
                reached.extend(&reach[*from]);
            }
        }
        reach[node] = reached;
    }
    kept
}

/// Lays out nodes of one height, `gap` apart, in the given layers. Edges lead to later layers.
pub fn lay_out(layer: &[usize], edges: &[(usize, usize)], node_height: f64, gap: f64) -> Layout {
    let item = |layer: usize, height| Item { layer, height, joined: [Vec::new(), Vec::new()], y: 0.0 };
    let mut items: Vec<Item> = layer.iter().map(|layer| item(*layer, node_height + gap)).collect();
    let mut passes: Vec<Vec<usize>> = Vec::new();
    // Lines from one node to one layer share a point.
    let mut shared: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (from, to) in edges {
        let (mut last, mut passed) = (*from, Vec::new());
        for between in layer[*from] + 1..layer[*to] {
            let pass = *shared.entry((*from, between)).or_insert_with(|| {
                items.push(item(between, gap));
                items.len() - 1
            });
            join(&mut items, last, pass);
            passed.push(pass);
            last = pass;
        }
        join(&mut items, last, *to);
        passes.push(passed);
    }
    let n_layers = items.iter().map(|item| item.layer + 1).max().unwrap_or(0);
    let mut layers: Vec<Vec<usize>> = vec![Vec::new(); n_layers];
    (0..items.len()).for_each(|i| layers[items[i].layer].push(i));
    layers.iter().for_each(|layer| stack(&mut items, layer, 0.0));
    for round in 0..ROUNDS {
        let side = round % 2;
        let forward: Vec<usize> = if side == 0 { (0..n_layers).collect() } else { (0..n_layers).rev().collect() };
        for n in forward {
            settle(&mut items, &mut layers[n], side, round >= ROUNDS - 2);
        }
    }
    let top = items.iter().map(|item| item.y - item.height / 2.0).fold(f64::INFINITY, f64::min);
    let end = items.iter().map(|item| item.y + item.height / 2.0).fold(0.0, f64::max);
    let y = |i: usize| items[i].y - top;
    Layout {
        y: (0..layer.len()).map(y).collect(),
        bends: passes.iter().map(|passed| passed.iter().map(|pass| y(*pass)).collect()).collect(),
        height: if items.is_empty() { 0.0 } else { end - top },
    }
}

fn join(items: &mut [Item], from: usize, to: usize) {
    if !items[from].joined[1].contains(&to) {
        items[from].joined[1].push(to);
        items[to].joined[0].push(from);
    }
}

/// Puts items below each other, around a height.
fn stack(items: &mut [Item], members: &[usize], middle: f64) {
    let total: f64 = members.iter().map(|i| items[*i].height).sum();
    let mut y = middle - total / 2.0;
    for i in members {
        items[*i].y = y + items[*i].height / 2.0;
        y += items[*i].height;
    }
}

/// Moves the items of a layer towards those they are connected with on one side, finally on both.
fn settle(items: &mut [Item], layer: &mut Vec<usize>, side: usize, is_both: bool) {
    let wanted = |i: usize| {
        let sides = if is_both { [0, 1].as_slice() } else { std::slice::from_ref(&side) };
        let joined: Vec<f64> =
            sides.iter().flat_map(|side| &items[i].joined[*side]).map(|other| items[*other].y).collect();
        if joined.is_empty() { items[i].y } else { joined.iter().sum::<f64>() / joined.len() as f64 }
    };
    let mut wants: Vec<(f64, usize)> = layer.iter().map(|i| (wanted(*i), *i)).collect();
    wants.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Items that compete for the same space form groups, each around the mean of its members' targets.
    let mut groups: Vec<(f64, f64, Vec<usize>)> = Vec::new();
    for (want, i) in &wants {
        let mut group = (*want, items[*i].height, vec![*i]);
        while let Some(last) = groups.pop_if(|last| last.0 + last.1 / 2.0 > group.0 - group.1 / 2.0) {
            let (n, m) = (last.2.len() as f64, group.2.len() as f64);
            let middle = (last.0 * n + group.0 * m) / (n + m);
            group = (middle, last.1 + group.1, [last.2, group.2].concat());
        }
        groups.push(group);
    }
    groups.iter().for_each(|(middle, _, members)| stack(items, members, *middle));
    *layer = groups.into_iter().flat_map(|(_, _, members)| members).collect();
}
