//! The tape drawn as SVG: rows of boxes, with each value above the values computed from it.

use namegrad::autograd::{Graph, GraphNode};
use std::fmt::Write as _;

const WIDTH: usize = 190;
const HEIGHT: usize = 44;
const GAP: usize = 36;

/// The row of each node: results are in the last row, and any other node is just above the first node that
/// uses it.
fn layers(graph: &Graph) -> Vec<usize> {
    let mut above = vec![0; graph.nodes.len()];
    // Every node comes after its inputs, so one pass from the end is enough.
    let mut edges = graph.edges.clone();
    edges.sort_unstable();
    for (from, to) in edges.into_iter().rev() {
        above[from] = above[from].max(above[to] + 1);
    }
    let last = above.iter().copied().max().unwrap_or(0);
    above.into_iter().map(|rows| last - rows).collect()
}

/// The center of each node's box.
fn places(layers: &[usize]) -> Vec<(usize, usize)> {
    let rows = layers.iter().max().map_or(0, |last| last + 1);
    let in_row = |row: usize| layers.iter().filter(|layer| **layer == row).count();
    let widest = (0..rows).map(in_row).max().unwrap_or(1);
    let mut taken = vec![0; rows];
    let mut places = Vec::with_capacity(layers.len());
    for &row in layers {
        let indent = (widest - in_row(row)) * (WIDTH + GAP) / 2;
        places.push((
            GAP + indent + taken[row] * (WIDTH + GAP) + WIDTH / 2,
            GAP + row * (HEIGHT + GAP) + HEIGHT / 2,
        ));
        taken[row] += 1;
    }
    places
}

/// The text, escaped for SVG.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A rounded box: the op, and the value with its sizes and names below.
fn boxed(svg: &mut String, node: &GraphNode, (x, y): (usize, usize)) {
    let (left, top, fill) = (x - WIDTH / 2, y - HEIGHT / 2, if node.is_leaf { "#dbeafe" } else { "#f1f5f9" });
    let tip = node.at.map_or("a leaf".into(), |at| at.to_string());
    let value = node.label.clone().unwrap_or_else(|| format!("{:?}", node.sizes));
    let _ = writeln!(
        svg,
        "<g><title>{}</title><rect x='{left}' y='{top}' width='{WIDTH}' height='{HEIGHT}' rx='8' fill='{fill}' stroke='#475569'/>\n\
         <text x='{x}' y='{}' font-weight='bold'>{}</text><text x='{x}' y='{}'>{}</text></g>",
        escaped(&tip),
        y - 4,
        escaped(node.op.unwrap_or("leaf")),
        y + 13,
        escaped(&value),
    );
}

/// A drawing of the graph, with the leaves at the top.
pub fn svg(graph: &Graph) -> String {
    let places = places(&layers(graph));
    let width = places.iter().map(|(x, _)| x + WIDTH / 2 + GAP).max().unwrap_or(0);
    let height = places.iter().map(|(_, y)| y + HEIGHT / 2 + GAP).max().unwrap_or(0);
    let mut svg = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' font-family='monospace' font-size='12' \
         text-anchor='middle'>\n<rect width='{width}' height='{height}' fill='white'/>\n"
    );
    // Writing to a string cannot fail.
    for (from, to) in &graph.edges {
        let ((x, y), (to_x, to_y)) = (places[*from], places[*to]);
        let (y, to_y) = (y + HEIGHT / 2, to_y - HEIGHT / 2);
        let bend = (y + to_y) / 2;
        let _ = writeln!(
            svg,
            "<path d='M{x},{y} C{x},{bend} {to_x},{bend} {to_x},{to_y}' fill='none' stroke='#64748b'/>"
        );
    }
    graph.nodes.iter().zip(&places).for_each(|(node, place)| boxed(&mut svg, node, *place));
    svg.push_str("</svg>\n");
    svg
}
