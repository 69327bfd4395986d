//! Drawing the tape.

use crate::tape::history;
use crate::tensor::Tensor;
use namegrad_core::DType;
use std::fmt;
use std::panic::Location;

/// The values that some tensors were computed from, and the ops between them. It prints as Graphviz source,
/// which `dot -Tsvg` draws.
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
    /// The values; every value comes after the values that it was computed from.
    pub nodes: Vec<GraphNode>,
    /// Pairs of indices into `nodes`: the second value was computed from the first.
    pub edges: Vec<(usize, usize)>,
}

/// A value on the tape.
#[derive(Clone, Debug)]
pub struct GraphNode {
    /// The label of the tensor in [`Graph::of`], with the names of its dims if it has any.
    pub label: Option<String>,
    /// The op that made the value; `None` for a leaf.
    pub op: Option<&'static str>,
    /// The line that called the op.
    pub at: Option<&'static Location<'static>>,
    /// The sizes; empty for a node that only collects the gradients of several outputs.
    pub sizes: Vec<usize>,
    /// The dtype.
    pub dtype: DType,
    /// Whether the value is a leaf, in which `backward` stores a gradient.
    pub is_leaf: bool,
}

impl Graph {
    /// The graph of everything that `tensors` were computed from. Each tensor is given with its label.
    pub fn of(tensors: &[(&str, &Tensor)]) -> Graph {
        let mut labels: Vec<(u64, String)> = Vec::new();
        let mut starts = Vec::with_capacity(tensors.len());
        for (label, tensor) in tensors {
            let Some(meta) = tensor.meta() else { continue };
            labels.push((meta.id, format!("{label} {}", tensor.shape())));
            starts.push(meta.clone());
        }
        // In order of creation, every value comes after the values that it was computed from.
        let mut metas = history(&starts, 0);
        metas.reverse();
        let place = |id: u64| metas.binary_search_by_key(&id, |meta| meta.id).expect("it was found");
        let (mut nodes, mut edges) = (Vec::with_capacity(metas.len()), Vec::new());
        for (at, meta) in metas.iter().enumerate() {
            if let Some(route) = &meta.state().route {
                route.visit(&mut |into| edges.push((place(into.id), at)));
            }
            nodes.push(GraphNode {
                label: labels.iter().find(|(id, _)| *id == meta.id).map(|(_, label)| label.clone()),
                op: meta.origin.map(|origin| origin.op),
                at: meta.origin.map(|origin| origin.at),
                sizes: meta.sizes.to_vec(),
                dtype: meta.dtype,
                is_leaf: meta.is_leaf(),
            });
        }
        Graph { nodes, edges }
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
                node.at.map(|at| format!(", tooltip = \"{}\"", quoted(&format!("{at}")))).unwrap_or_default();
            writeln!(f, "    n{place} [label = \"{}\", shape = {shape}{tip}];", label.replace('"', "\\\""))?;
        }
        for (from, to) in &self.edges {
            writeln!(f, "    n{from} -> n{to};")?;
        }
        f.write_str("}")
    }
}

/// The text in quotation marks.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
