//! The printed tree of the layers of a model.

use crate::places::{AnyModule, Ids, named_buffers, walk};
use crate::trace::{Trace, traced};
use crate::{Entry, ModulePath};
use namegrad_core::{NamedTensor, Result, Shape};
use std::fmt;

/// The layers of a model with their parameters, dims by name, and counts, as `println!("{model}")` shows
/// them.
///
/// [`summary_of`](crate::Module::summary_of) adds the shapes of outputs and the numbers of multiply-adds.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// #[derive(Module)]
/// struct Model {
///     blocks: Vec<Linear>,
/// }
/// let model = Model { blocks: vec![Linear::new(("in", 3), ("out", 2))?] };
/// let summary = model.summary();
/// assert_eq!((summary.total(), summary.trainable(), summary.bytes()), (8, 8, 32));
/// let text = summary.to_string();
/// assert_eq!(text, model.to_string());
/// assert!(text.contains("blocks.0         Linear(in=3 -> out=2)"), "{text}");
/// assert!(text.contains("blocks.0.weight  float32[out=2, in=3]"), "{text}");
/// assert!(text.ends_with("8 parameters, 8 trainable, 0.00 MiB"), "{text}");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Summary {
    rows: Vec<SummaryRow>,
    layers: Vec<LayerSummary>,
    /// Whether a run was measured.
    ran: bool,
    trainable: usize,
}

/// A layer in a [`Summary`]: the model itself, which has an empty path, or one of its layers, which may have
/// others inside.
///
/// Counts include the layers inside. A multiply-add is a product whose result is added to others: those of
/// matrix products, convolutions, attention and recurrent layers count; sums, norms and elementwise ops do
/// not.
///
/// A layer that has a [`ModulePath`] and calls [`running`](ModulePath::running), as all built-in layers do,
/// has its own output and multiply-adds. What any other layer computes counts for the layer around
/// it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LayerSummary {
    /// The path in the model.
    pub path: String,
    /// The [description](crate::ModuleFields::describe).
    pub description: String,
    /// The dims of the last tensor that the layer computed, if it ran and computed one.
    pub output: Option<Shape>,
    /// The number of elements of its parameters. A shared parameter counts once.
    pub parameters: usize,
    /// The bytes of its parameters.
    pub bytes: usize,
    /// The number of multiply-adds of all calls.
    pub multiply_adds: usize,
    /// The number of calls.
    pub calls: usize,
}

#[derive(Clone, Debug)]
struct SummaryRow {
    path: String,
    text: String,
    count: Option<usize>,
    note: String,
}

impl Summary {
    #[track_caller]
    pub(crate) fn of_run(
        title: String,
        module: &dyn AnyModule,
        run: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Summary> {
        let buffers = named_buffers(module);
        let before: Vec<NamedTensor> = crate::list(buffers.iter().map(|(_, buffer)| buffer.value()));
        let (result, trace) = traced(run);
        for ((_, buffer), value) in buffers.iter().zip(before) {
            buffer.set(value)?;
        }
        result?;
        Ok(Summary::of(title, module, Some(&trace)))
    }

    /// The layers, with what a run told.
    pub(crate) fn of(title: String, module: &dyn AnyModule, trace: Option<&Trace>) -> Summary {
        let root = LayerSummary::new(String::new(), title);
        let mut summary =
            Summary { rows: Vec::new(), layers: vec![root], ran: trace.is_some(), trainable: 0 };
        let work = |layer: usize| trace.and_then(|trace| trace.layers.get(&layer));
        let mut seen = Ids::default();
        // The ids of the parameters of each layer.
        let mut own: Vec<Vec<usize>> = vec![Vec::new()];
        walk(module, &mut |path, entry| match entry {
            Entry::Module(module) => {
                summary.layers.push(LayerSummary::new(path.to_string(), format!("{module}")));
                own.push(Vec::new());
                // The text follows when all of the layer is known.
                summary.rows.push(SummaryRow::new(path, String::new(), None, ""));
            }
            Entry::Path(known) => {
                let of = path.rsplit_once('.').map_or("", |(layer, _)| layer);
                let layer = summary.layers.iter_mut().rfind(|layer| layer.path == of);
                if let (Some(layer), Some(work)) = (layer, work(known as *const ModulePath as usize)) {
                    layer.output = work.output.clone();
                    (layer.multiply_adds, layer.calls) = (work.multiply_adds, work.calls);
                }
            }
            Entry::Parameter(parameter) => {
                let value = parameter.tensor();
                let (count, bytes) = (value.numel(), value.value().nbytes());
                let (id, row) = (parameter.id(), summary.rows.len());
                let first = seen.first(id, row) == row;
                if first && parameter.requires_grad() {
                    summary.trainable += count;
                }
                for (layer, own) in summary.layers.iter_mut().zip(&mut own) {
                    if layer.is_around(path) && !own.contains(&id) {
                        own.push(id);
                        layer.parameters += count;
                        layer.bytes += bytes;
                    }
                }
                let note = match (first, parameter.requires_grad()) {
                    (false, _) => "shared",
                    (true, false) => "frozen",
                    (true, true) => "",
                };
                summary.rows.push(SummaryRow::new(path, format!("{:?}", value.value()), Some(count), note));
            }
            Entry::Buffer(buffer) => {
                summary.rows.push(SummaryRow::new(path, format!("{:?}", buffer.value()), None, "buffer"));
            }
            _ => {}
        });
        // What is known of all.
        if let Some(all) = work(0) {
            let root = &mut summary.layers[0];
            root.output = root.output.take().or(all.output.clone());
            (root.multiply_adds, root.calls) = (all.multiply_adds, 1);
        }
        let of_layers = summary.rows.iter_mut().filter(|row| row.text.is_empty());
        for (layer, row) in summary.layers[1..].iter().zip(of_layers) {
            row.text = layer.text();
            if layer.multiply_adds > 0 {
                row.note = format!("{} multiply-adds", grouped(layer.multiply_adds));
            }
        }
        summary
    }

    /// The number of elements of all parameters. A shared parameter counts once.
    pub fn total(&self) -> usize {
        self.layers[0].parameters
    }

    /// The number of elements of parameters that are not frozen.
    pub fn trainable(&self) -> usize {
        self.trainable
    }

    /// The bytes of all parameters. A shared parameter counts once.
    pub fn bytes(&self) -> usize {
        self.layers[0].bytes
    }

    /// The model itself, then its layers in the order of their fields.
    pub fn layers(&self) -> &[LayerSummary] {
        &self.layers
    }

    /// The multiply-adds of the run of [`summary_of`](crate::Module::summary_of), as [`LayerSummary`] counts
    /// them.
    pub fn multiply_adds(&self) -> usize {
        self.layers[0].multiply_adds
    }
}

impl LayerSummary {
    fn new(path: String, description: String) -> LayerSummary {
        LayerSummary { path, description, output: None, parameters: 0, bytes: 0, multiply_adds: 0, calls: 0 }
    }

    fn text(&self) -> String {
        let output = self.output.as_ref().map(|shape| format!(" -> {shape}")).unwrap_or_default();
        format!("{}{output}", self.description)
    }

    /// Whether the layer is around the entry at a path.
    fn is_around(&self, path: &str) -> bool {
        self.path.is_empty() || path.strip_prefix(&self.path).is_some_and(|rest| rest.starts_with('.'))
    }
}

impl SummaryRow {
    fn new(path: &str, text: String, count: Option<usize>, note: &str) -> SummaryRow {
        SummaryRow { path: path.into(), text, count, note: note.into() }
    }
}

/// 12345 as `12,345`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.layers[0].text())?;
        if self.rows.is_empty() && !self.ran {
            return Ok(()); // a layer such as `Relu` has nothing to count
        }
        let width = self.rows.iter().map(|row| row.path.chars().count()).max().unwrap_or(0);
        let wide = self.rows.iter().map(|row| row.text.chars().count()).max().unwrap_or(0);
        for SummaryRow { path, text, count, note } in &self.rows {
            let count = count.map(grouped).unwrap_or_default();
            let line = format!("  {path:width$}  {text:wide$}  {count:>12} {note}");
            write!(f, "\n{}", line.trim_end())?;
        }
        let (total, trainable) = (grouped(self.total()), grouped(self.trainable));
        let mebibytes = self.bytes() as f64 / (1 << 20) as f64;
        write!(f, "\n{total} parameters, {trainable} trainable, {mebibytes:.2} MiB")?;
        if self.ran {
            write!(f, ", {} multiply-adds", grouped(self.multiply_adds()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn thousands() {
        assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
