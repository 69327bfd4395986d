//! The printed tree of the layers of a model.

use crate::module::{Entry, Fields, walk};
use std::collections::HashSet;
use std::fmt;

/// The layers of a model with their parameters, dims by name, and counts, as `println!("{model}")` shows
/// them.
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
/// assert_eq!((summary.total(), summary.trainable()), (8, 8));
/// let text = summary.to_string();
/// assert_eq!(text, model.to_string());
/// assert!(text.contains("blocks.0         Linear(in=3 -> out=2)"), "{text}");
/// assert!(text.contains("blocks.0.weight  float32[out=2, in=3]"), "{text}");
/// assert!(text.ends_with("8 parameters, 8 trainable, 0.00 MiB"), "{text}");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Summary {
    title: String,
    rows: Vec<Row>,
    total: usize,
    trainable: usize,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Row {
    path: String,
    what: String,
    count: Option<usize>,
    note: &'static str,
}

impl Summary {
    pub(crate) fn of(title: String, fields: Fields<'_>) -> Summary {
        let mut summary = Summary { title, rows: Vec::new(), total: 0, trainable: 0, bytes: 0 };
        let mut seen = HashSet::new();
        walk(fields, &mut |path, entry| {
            let path = path.to_string();
            match entry {
                Entry::Module(module) => {
                    summary.rows.push(Row { path, what: module.to_string(), count: None, note: "" });
                }
                Entry::Parameter(parameter) => {
                    let value = parameter.tensor();
                    let (count, first) = (value.numel(), seen.insert(parameter.id()));
                    if first {
                        summary.total += count;
                        summary.trainable += if parameter.requires_grad() { count } else { 0 };
                        summary.bytes += value.value().nbytes();
                    }
                    let note = match (first, parameter.requires_grad()) {
                        (false, _) => "shared",
                        (true, false) => "frozen",
                        (true, true) => "",
                    };
                    summary.rows.push(Row {
                        path,
                        what: format!("{:?}", value.value()),
                        count: Some(count),
                        note,
                    });
                }
                Entry::Buffer(buffer) => {
                    let value = buffer.value();
                    summary.rows.push(Row { path, what: format!("{value:?}"), count: None, note: "buffer" });
                }
                Entry::Training(_) => {}
            }
        });
        summary
    }

    /// The number of elements of all parameters. A shared parameter counts once.
    pub fn total(&self) -> usize {
        self.total
    }

    /// The number of elements of parameters that are not frozen.
    pub fn trainable(&self) -> usize {
        self.trainable
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
        let Summary { title, rows, total, trainable, bytes } = self;
        f.write_str(title)?;
        if rows.is_empty() {
            return Ok(()); // a layer such as `Relu` has nothing to count
        }
        let widest =
            |text: fn(&Row) -> &str| rows.iter().map(|row| text(row).chars().count()).max().unwrap_or(0);
        let (width, wide) = (widest(|row| &row.path), widest(|row| &row.what));
        for row in rows {
            let count = row.count.map(grouped).unwrap_or_default();
            let line = format!("  {:width$}  {:wide$}  {count:>12} {}", row.path, row.what, row.note);
            write!(f, "\n{}", line.trim_end())?;
        }
        writeln!(f)?;
        write!(
            f,
            "{} parameters, {} trainable, {:.2} MiB",
            grouped(*total),
            grouped(*trainable),
            *bytes as f64 / (1 << 20) as f64
        )
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
