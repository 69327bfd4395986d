//! [`Flatten`] and [`Unflatten`].

use super::*;
use namegrad_core::args::Positions;
use namegrad_core::{Argument, Dims, IntoShape, Shape};

/// Flattens dims into one, at the place of the first of them.
///
/// The elements are in the order of the dims as they were given, so the result does not depend on the order
/// of the input's dims. [`Flatten::default`] flattens all dims but the first, like PyTorch's.
///
/// # Shapes
/// - `x`: any dims that include those to flatten, in any order
/// - result: the dims of `x`, with the new dim in place of the first of those
///
/// # Parameters
/// None.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// let flatten = Flatten::new(["C", "H", "W"], "features")?;
/// let images = Tensor::rand([("N", 2), ("C", 3), ("H", 4), ("W", 5)])?;
/// let y = flatten.forward(&images)?;
/// assert_eq!(y.shape().to_string(), "[N=2, features=60]");
/// let last = images.align_to(["N", "H", "W", "C"])?;
/// assert!(flatten.forward(&last)?.equal(&y)?);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default, Module)]
#[module(crate = crate, describe = self.text(), layer)]
pub struct Flatten {
    /// `None` for all dims but the first.
    dims: Option<Dims>,
    name: Option<Name>,
    path: ModulePath,
}

impl Flatten {
    /// A layer that flattens `dims` into a dim called `name`.
    ///
    /// # Errors
    /// `ErrorKind::InvalidName`.
    #[track_caller]
    pub fn new(dims: impl Into<Dims>, name: &str) -> Result<Flatten> {
        Ok(Flatten { dims: Some(dims.into()), name: Some(Name::new(name)?), path: ModulePath::new() })
    }

    /// The output for `x`.
    ///
    /// # Errors
    /// `ErrorKind::NameNotFound` if `x` lacks a dim, `ErrorKind::DuplicateName` if it has one with the
    /// name of the result.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.path.run("Flatten", &[x], &|_: &Running| {
            let dims: Positions = match &self.dims {
                Some(dims) => dims.resolve("Flatten", x.value())?,
                None => range(1..x.ndim()).into(),
            };
            let Some(first) = dims.iter().min().copied() else {
                // Nothing to flatten: a dim of one element, as in PyTorch for one number.
                return if x.ndim() > 0 { Ok(x.clone()) } else { x.unsqueeze(0) };
            };
            let mut order = others(x, &dims);
            let before = order.partition_point(|dim| *dim < first);
            order.splice(before..before, dims.iter().copied());
            x.permute(order)?.flatten(range(first..first + dims.len()), self.name.map(Name::as_str))
        })
    }

    fn text(&self) -> String {
        self.name.map_or("Flatten".into(), |name| format!("Flatten(-> {name})"))
    }
}

/// Splits a dim into several.
///
/// # Shapes
/// - `x`: any dims that include the dim to split
/// - result: the dims of `x`, with the new dims in its place
///
/// # Parameters
/// None.
///
/// # Examples
/// ```
/// use namegrad::nn::Unflatten;
/// use namegrad::prelude::*;
/// let unflatten = Unflatten::new("features", [("C", 3), ("L", 4)])?;
/// let y = unflatten.forward(&Tensor::rand([("N", 2), ("features", 12)])?)?;
/// assert_eq!(y.shape().to_string(), "[N=2, C=3, L=4]");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = format!("Unflatten(-> {})", self.shape), layer)]
pub struct Unflatten {
    dim: Dim,
    shape: Shape,
    path: ModulePath,
}

impl Unflatten {
    /// A layer that splits `dim` into dims with the given sizes, with names or without.
    ///
    /// # Errors
    /// `ErrorKind::InvalidName`, `ErrorKind::Value` for a negative size.
    #[track_caller]
    pub fn new(dim: impl Into<Dim>, dims: impl IntoShape) -> Result<Unflatten> {
        let shape = dims.into_shape().map_err(|error| error.of("Unflatten"))?;
        Ok(Unflatten { dim: dim.into(), shape, path: ModulePath::new() })
    }

    /// The output for `x`.
    ///
    /// # Errors
    /// `ErrorKind::NameNotFound` if `x` lacks the dim, `ErrorKind::Shape` if its size is not the product
    /// of the new sizes.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.path.run("Unflatten", &[x], &|_: &Running| x.unflatten(self.dim.clone(), &self.shape))
    }
}
