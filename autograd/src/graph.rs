//! The tape as a picture.

use crate::tape::{Meta, Way};
use crate::tensor::Tensor;
use namegrad_core::DType;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// The values that some tensors were made of, and by which ops. Its `Display` is the language of Graphviz:
/// `dot -Tsvg` draws it.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::autograd::Graph;
/// let x = Tensor::ones([("N", 2)])?.requiring_grad()?;
/// let loss = x.exp()?.sum("N")?;
/// let graph = Graph::of(&[("loss", &loss), ("x", &x)]);
/// assert_eq!(graph.nodes.iter().filter_map(|node| node.op).collect::<Vec<_>>(), ["exp", "sum"]);
/// assert!(graph.to_string().starts_with("digraph"));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The values, those first that others were made of.
    pub nodes: Vec<GraphNode>,
    /// Pairs of places in `nodes`: the second was made of the first.
    pub edges: Vec<(usize, usize)>,
}

/// A value on the tape.
#[derive(Clone, Debug)]
pub struct GraphNode {
    /// What the tensor was called in [`Graph::of`], with its names if it has some.
    pub label: Option<String>,
    /// The op that made it; none for a leaf.
    pub op: Option<&'static str>,
    /// Where the op was called.
    pub at: Option<&'static Location<'static>>,
    /// The sizes. A value that is only a place where the gradients of several outputs meet has none.
    pub sizes: Vec<usize>,
    /// The dtype.
    pub dtype: DType,
    /// Does backward leave a gradient there?
    pub is_leaf: bool,
}

impl Graph {
    /// All that lies behind `tensors`, which are labelled as they are called here.
    pub fn of(tensors: &[(&str, &Tensor)]) -> Graph {
        let mut labels: BTreeMap<u64, String> = BTreeMap::new();
        let mut found: BTreeMap<u64, Arc<Meta>> = BTreeMap::new();
        let mut todo = Vec::new();
        for (label, tensor) in tensors {
            let Some(meta) = tensor.meta() else { continue };
            labels.entry(meta.id).or_insert_with(|| format!("{label} {}", tensor.shape()));
            todo.push(meta.clone());
        }
        while let Some(meta) = todo.pop() {
            if found.insert(meta.id, meta.clone()).is_none() {
                let way = meta.way();
                todo.extend(way.iter().flat_map(Way::leads_to).cloned());
            }
        }
        // In order of birth what is used comes before what is made of it.
        let places: BTreeMap<u64, usize> = found.keys().enumerate().map(|(place, id)| (*id, place)).collect();
        let node = |meta: &Arc<Meta>| GraphNode {
            label: labels.get(&meta.id).cloned(),
            op: meta.origin.map(|origin| origin.op),
            at: meta.origin.map(|origin| origin.at),
            sizes: meta.sizes.to_vec(),
            dtype: meta.dtype,
            is_leaf: meta.is_leaf(),
        };
        let mut edges = Vec::new();
        for meta in found.values() {
            let way = meta.way();
            let into = way.iter().flat_map(Way::leads_to);
            edges.extend(into.map(|into| (places[&into.id], places[&meta.id])));
        }
        Graph { nodes: found.values().map(node).collect(), edges }
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "digraph tape {{\n    rankdir = BT;\n    node [fontname = \"monospace\"];")?;
        for (place, node) in self.nodes.iter().enumerate() {
            let what = node.op.unwrap_or("leaf");
            let label = match &node.label {
                Some(label) => format!("{what}\\n{label}"),
                None => format!("{what}\\n{:?}", node.sizes),
            };
            let shape = if node.is_leaf { "box" } else { "ellipse" };
            let tip =
                node.at.map(|at| format!(", tooltip = \"{}\"", quoted(&at.to_string()))).unwrap_or_default();
            writeln!(f, "    n{place} [label = \"{}\", shape = {shape}{tip}];", label.replace('"', "\\\""))?;
        }
        for (from, to) in &self.edges {
            writeln!(f, "    n{from} -> n{to};")?;
        }
        f.write_str("}")
    }
}

/// A text inside of quotation marks.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
