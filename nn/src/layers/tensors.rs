//! [`Tensors`]: the tensors in what a layer takes or gives.

use namegrad_autograd::Tensor;

/// A value that consists of tensors: a tensor, an `Option`, a `Vec` or an array of such values, or a tuple of
/// up to four. Gradient hooks of [`Hooked`](super::Hooked) see the tensors as a list. Implement it for your
/// own struct.
///
/// # Examples
/// ```
/// use namegrad::nn::Tensors;
/// use namegrad::prelude::*;
/// struct Step {
///     output: Tensor,
///     state: (Tensor, Tensor),
/// }
///
/// impl Tensors for Step {
///     fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Step {
///         Step { output: self.output.map(f), state: self.state.map(f) }
///     }
/// }
/// let x = Tensor::new(1.0)?;
/// let step = Step { output: x.clone(), state: (x.clone(), x) };
/// assert_eq!(step.list().len(), 3);
/// # Ok::<(), Error>(())
/// ```
pub trait Tensors: Sized {
    /// The same value with other tensors: `f` of each, in order.
    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self;

    /// The tensors, in order.
    fn list(&self) -> Vec<Tensor> {
        let mut list = Vec::new();
        self.map(&mut |x| {
            list.push(x.clone());
            x.clone()
        });
        list
    }
}

impl Tensors for Tensor {
    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Tensor {
        f(self)
    }
}

impl<T: Tensors> Tensors for Option<T> {
    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Option<T> {
        self.as_ref().map(|value| value.map(f))
    }
}

impl<T: Tensors> Tensors for Vec<T> {
    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Vec<T> {
        crate::list(self.iter().map(|value| value.map(f)))
    }
}

impl<T: Tensors, const N: usize> Tensors for [T; N] {
    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> [T; N] {
        std::array::from_fn(|at| self[at].map(f))
    }
}

impl<A: Tensors, B: Tensors> Tensors for (A, B) {
    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> (A, B) {
        (self.0.map(f), self.1.map(f))
    }
}

impl<A: Tensors, B: Tensors, C: Tensors> Tensors for (A, B, C) {
    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> (A, B, C) {
        (self.0.map(f), self.1.map(f), self.2.map(f))
    }
}

impl<A: Tensors, B: Tensors, C: Tensors, D: Tensors> Tensors for (A, B, C, D) {
    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> (A, B, C, D) {
        (self.0.map(f), self.1.map(f), self.2.map(f), self.3.map(f))
    }
}
