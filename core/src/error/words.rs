//! How the error of an op becomes that of the op that called it: a repair is one for the caller if the tensors
//! in it are the caller's own.

use super::{Error, ErrorKind};
use crate::dtype::DType;
use crate::layout::{Sizes, Strides};
use crate::names::{Names, OfCall};
use crate::tensor::NamedTensor;
use std::ops::Range;

/// What tells a tensor from all others while it exists.
#[derive(Clone, PartialEq)]
pub(super) struct Identity {
    start: usize,
    dtype: DType,
    sizes: Sizes,
    strides: Strides,
    names: Names,
}

impl Identity {
    fn of(x: &NamedTensor) -> Identity {
        Identity {
            start: x.data_ptr().addr(),
            dtype: x.dtype(),
            sizes: Sizes::from_slice(x.sizes()),
            strides: Strides::from_slice(x.strides()),
            names: x.names().clone(),
        }
    }
}

impl Error {
    /// Whether the error is that of `op`, or of its other form: `add_` and `add` are alike.
    pub(crate) fn is_of(&self, op: &str) -> bool {
        self.0.op.trim_end_matches('_') == op.trim_end_matches('_')
    }

    /// The same error for another op. This is for arguments that are checked before the op is known, and for
    /// ops that are part of another op, whose tensors and calls the caller of that op does not know: a repair
    /// with them is dropped.
    #[doc(hidden)]
    pub fn of(self, op: &'static str) -> Error {
        match self.is_of(op) {
            true => self.called(op),
            false => self.reworded(op, "x", &|_| None),
        }
    }

    /// The error of an op that a layer calls, as one of the layer about its own inputs.
    #[doc(hidden)]
    #[cold]
    pub fn of_layer(self, layer: &'static str, inputs: &[&NamedTensor]) -> Error {
        let (is_own, alone) = (self.is_of(layer) && !self.0.operands.is_empty(), inputs.len() == 1);
        let error = self.reworded(layer, "x", &|(word, tensor)| {
            let is_input = inputs.iter().any(|x| Identity::of(x) == *tensor);
            // A parameter has the name that the function has for it, unlike a value between two ops.
            let is_parameter = !matches!(*word, "x" | "y" | "other" | "a" | "b");
            match is_input {
                true if alone => Some("x"),
                true => Some(word),
                false => is_parameter.then_some(word),
            }
        });
        if is_own || inputs.is_empty() { error } else { error.with_inputs(inputs) }
    }

    /// The same error for the call of `op` with these inputs, in their names.
    #[cold]
    pub(crate) fn in_words(self, op: &'static str, inputs: &[OfCall<'_>]) -> Error {
        let is_own = self.is_of(op);
        let keeps_inputs = inputs.is_empty() || is_own && !self.0.operands.is_empty();
        let mut error = match is_own {
            true => self.called(op),
            false => self.reworded(op, inputs.first().map_or("x", |(name, ..)| *name), &|(_, tensor)| {
                inputs.iter().find(|(.., x)| Identity::of(x) == *tensor).map(|(name, ..)| *name)
            }),
        };
        error.0.words = crate::list(inputs.iter().map(|(name, _, x)| (*name, Identity::of(x))));
        if let [_, (.., y)] = inputs {
            error.0.words.push(("y", Identity::of(y))); // as in `x.op(&y)`
        }
        if keeps_inputs {
            return error;
        }
        let tensors: Vec<&NamedTensor> = crate::list(inputs.iter().map(|(.., x)| *x));
        error.with_inputs(&tensors)
    }

    fn called(mut self, op: &'static str) -> Error {
        self.0.op = op;
        self
    }

    /// The error of another op, with the names that the caller has for the tensors in its repair. The repair is
    /// dropped if the caller has none for one of them. Of dtypes, `first` is then cast to that of all.
    fn reworded(
        mut self,
        op: &'static str,
        first: &str,
        own: &dyn Fn(&(&'static str, Identity)) -> Option<&'static str>,
    ) -> Error {
        let inner = std::mem::replace(&mut self.0.op, op);
        if inner.is_empty() {
            return self;
        }
        let words = std::mem::take(&mut self.0.words);
        let Some(repair) = self.0.repair.take() else { return self };
        self.0.repair = match calls(&repair, inner) {
            true => None,
            false => in_own_words(&repair, &words, own),
        };
        if self.0.repair.is_none() && self.0.kind == ErrorKind::DType {
            let common = self.0.dtypes.iter().copied().reduce(DType::promote).unwrap_or(DType::Bool);
            let common = if common == DType::Bool { DType::I64 } else { common };
            let alike = if self.0.dtypes.len() > 1 { ", and the other inputs alike" } else { "" };
            self.0.repair = Some(format!("{first}.to(DType::{common:?})?{alike}"));
        }
        self
    }
}

/// Whether a repair calls the op.
fn calls(repair: &str, op: &str) -> bool {
    repair.contains(&format!(".{op}(")) || repair.contains(&format!("::{op}("))
}

fn in_own_words(
    repair: &str,
    words: &[(&'static str, Identity)],
    own: &dyn Fn(&(&'static str, Identity)) -> Option<&'static str>,
) -> Option<String> {
    let (mut reworded, mut end) = (String::new(), 0);
    for place in variables(repair) {
        let Some(tensor) = words.iter().find(|(word, _)| *word == &repair[place.clone()]) else { continue };
        reworded += &repair[end..place.start];
        reworded += own(tensor)?;
        end = place.end;
    }
    Some(reworded + &repair[end..])
}

/// The places of the variables in a repair: what has a method called, is passed by reference or is bound.
fn variables(repair: &str) -> Vec<Range<usize>> {
    let (bytes, mut places, mut at, mut is_text) = (repair.as_bytes(), Vec::new(), 0, false);
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    while at < bytes.len() {
        is_text ^= bytes[at] == b'"';
        let start = at;
        while at < bytes.len() && is_word(&bytes[at]) {
            at += 1;
        }
        let before = &repair[..start];
        let is_called = bytes.get(at) == Some(&b'.') && !before.ends_with('.');
        let is_bound = before.ends_with("let ") || before.ends_with("let mut ");
        let is_name = at > start && !bytes[start].is_ascii_digit() && repair[start..at] != *"mut";
        if is_name && !is_text && (is_called || is_bound || before.ends_with('&')) {
            places.push(start..at);
        }
        at = at.max(start + 1);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::variables;

    #[test]
    fn variables_of_a_repair() {
        let found = |repair: &'static str| {
            variables(repair).into_iter().map(|place| &repair[place]).collect::<Vec<_>>()
        };
        assert_eq!(found("x.matmul(&y.mt()?)?, which takes a"), ["x", "y"]);
        assert_eq!(found("let mut x = x.rename([(\"y.a\", \"&b\")])?; in x"), ["x", "x"]);
        assert_eq!(found("Tensor::cat(&tensors, 1)? or 0.5"), ["tensors"]);
    }
}
