//! The pairing of the dims of two tensors in a sum of products.

use crate::Argument;
use crate::args::Value;
use crate::dim::{Dim, Dims, Positions, position, positions};
use crate::error::{Error, ErrorKind, Result};
use crate::names::is_strict;
use crate::tensor::NamedTensor;

/// The dims of two tensors in a sum of products, by position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paired {
    /// Dims that both tensors have and that are kept, in pairs.
    pub batch: Vec<(usize, usize)>,
    /// Dims that are summed over, in pairs.
    pub summed: Vec<(usize, usize)>,
    /// The other dims of the left tensor.
    pub rows: Positions,
    /// The other dims of the right tensor.
    pub cols: Positions,
}

impl Paired {
    /// The same with left and right swapped.
    pub fn exchanged(&self) -> Paired {
        let Paired { mut batch, mut summed, rows, cols } = self.clone();
        for (left, right) in batch.iter_mut().chain(&mut summed) {
            std::mem::swap(left, right);
        }
        Paired { batch, summed, rows: cols, cols: rows }
    }

    /// The given pairs, for tensors with these numbers of dims. Dims that are in no pair become rows and
    /// columns.
    pub fn new(
        [ndim, other_ndim]: [usize; 2],
        batch: &[(usize, usize)],
        summed: Vec<(usize, usize)>,
    ) -> Paired {
        // The dims of a tensor that are in no pair.
        let left_over = |ndim: usize, own: fn(&(usize, usize)) -> usize| {
            let mut dims = Positions::new();
            for dim in 0..ndim {
                if !batch.iter().chain(&summed).any(|pair| own(pair) == dim) {
                    dims.push(dim);
                }
            }
            dims
        };
        let (rows, cols) = (left_over(ndim, |pair| pair.0), left_over(other_ndim, |pair| pair.1));
        Paired { batch: batch.to_vec(), rows, cols, summed }
    }
}

/// The dims that a contraction sums over, by names that both tensors have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contraction(pub Dims);

impl<T: Into<Dims>> From<T> for Contraction {
    fn from(dims: T) -> Contraction {
        Contraction(dims.into())
    }
}

impl Argument for Contraction {
    type Resolved = Paired;
    type View<'a> = &'a Paired;

    #[track_caller]
    fn look_up(&self, op: &'static str, of: &[&NamedTensor]) -> Result<Paired> {
        let [x, other] = *of else {
            return Err(Error::new(ErrorKind::Value, op, "a contraction is of two tensors"));
        };
        let mut summed = Vec::new();
        for dim in positions(&self.0, op, x)? {
            let Some(name) = x.name(dim) else {
                let message = format!("dim {dim} has no name, and contract sums over dims by name");
                let error = Error::about(of, ErrorKind::UnnamedNotAllowed, op, message);
                let size = x.sizes().get(dim);
                return Err(match other.sizes().iter().position(|other| Some(other) == size) {
                    Some(there) => error.with_repair(format!(
                        "x.tensordot(&y, {dim}, {there})?, which sums over dims by position, if both mean the same"
                    )),
                    None => error,
                });
            };
            let there = position(&Dim::Name(name), op, other).map_err(|error| {
                let error = error.with_inputs(of);
                match other.has_names() {
                    true => error,
                    false => error.with_repair(format!(
                        "y.refine_names([\"...\", \"{name}\"])? first, if its last dim is meant"
                    )),
                }
            })?;
            summed.push((dim, there));
        }
        for input in of {
            if let Some(dim) = (0..input.ndim()).find(|dim| input.name(*dim).is_none()) {
                let message = format!("every dim must be named; dim {dim} of {} is not", input.shape());
                return Err(Error::about(of, ErrorKind::UnnamedNotAllowed, op, message));
            }
        }
        let mut batch = Vec::new();
        for dim in 0..x.ndim() {
            let there = x.name(dim).and_then(|name| other.names().position(name));
            batch.extend(there.map(|there| (dim, there)).filter(|pair| !summed.contains(pair)));
        }
        if is_strict() && summed.is_empty() {
            let message = "strict names: nothing is contracted, and mul is the product by element";
            return Err(Error::about(of, ErrorKind::Value, op, message));
        }
        for (left, right) in summed.iter().chain(&batch) {
            let (here, there) = (x.sizes()[*left], other.sizes()[*right]);
            if here != there {
                let name = x.name(*left).map_or_else(String::new, |name| format!("{name}"));
                let message =
                    format!("dim '{name}' has {here} elements in the first tensor and {there} in the second");
                return Err(Error::about(of, ErrorKind::Shape, op, message));
            }
        }
        Ok(Paired::new([x.ndim(), other.ndim()], &batch, summed))
    }

    fn view(resolved: &Paired) -> &Paired {
        resolved
    }

    fn from_value(value: &Value) -> Option<Contraction> {
        Dims::from_value(value).map(Contraction)
    }
    fn accepted() -> String {
        Dims::accepted()
    }
}
