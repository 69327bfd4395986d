//! Checks of values: dtypes, names, memory orders, in-place forms.

use super::compare::{assert_close, identical};
use super::{Case, plain};
use namegrad::prelude::*;

/// The dims from the last to the first.
pub(super) fn reversed(x: &Tensor) -> Vec<usize> {
    (0..x.ndim()).rev().collect()
}

/// A tensor with an unshared buffer.
pub(super) fn own(x: &Tensor) -> Tensor {
    Tensor::constant(x.value().deep_clone().unwrap())
}

/// The same tensor in other memory orders.
pub(crate) fn orders(x: &Tensor) -> Vec<(&'static str, Tensor)> {
    let made = || -> Result<_> {
        let permuted = x.permute(reversed(x))?.contiguous()?.permute(reversed(x))?;
        let flipped = x.flip(..)?.contiguous()?.flip(..)?;
        let mut narrowed = x.clone();
        for dim in 0..x.ndim() {
            let padding = narrowed.narrow(dim, 0, narrowed.sizes()[dim].min(1))?;
            let before = padding.sizes()[dim];
            narrowed = Tensor::cat(&[&padding, &narrowed, &padding], dim)?;
            narrowed = narrowed.narrow(dim, before, x.sizes()[dim])?;
        }
        let pairs = Tensor::stack([x, &x.zeros_like()?], x.ndim() as isize)?;
        let stepped = pairs.select(x.ndim(), 0)?;
        Ok(vec![("permuted", permuted), ("flipped", flipped), ("narrowed", narrowed), ("stepped", stepped)])
    };
    made().unwrap()
}

impl Case {
    /// Checks that the result is close to the reference and has the right dtype and names.
    pub(crate) fn value(&self, dtype: DType) {
        let inputs = self.tensors(dtype);
        let result = (self.call)(&inputs);
        let what = || self.describe(dtype);
        match ((self.dtype)(dtype), result) {
            (Some(wanted), Ok(result)) => {
                assert_eq!(result.dtype(), wanted, "dtype of {}", what());
                assert_close(&result, &self.reference_of(&inputs), self.scale.unwrap_or(0.0), &what);
                let names = self.result.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
                let found: Vec<_> = (0..result.ndim())
                    .map(|dim| result.name(dim).map(|name| name.as_str().to_string()))
                    .collect();
                assert_eq!(found, names, "names of {}", what());
            }
            (None, Err(error)) => assert_eq!(error.kind(), ErrorKind::DType, "{}: {error}", what()),
            (Some(_), Err(error)) => panic!("{}: {error}", what()),
            (None, Ok(result)) => panic!("{} should be refused and gives {result}", what()),
        }
    }

    /// Unnamed inputs give the same values, and no names except those that the call adds.
    pub(super) fn no_names(&self) {
        let Some(dtype) = [DType::F64, DType::I64].into_iter().find(|dtype| (self.dtype)(*dtype).is_some())
        else {
            return;
        };
        let inputs = self.tensors(dtype);
        let unnamed: Vec<Tensor> = inputs.iter().map(|x| x.rename(None).unwrap()).collect();
        match (self.call)(&unnamed) {
            Ok(result) => {
                let named = (self.call)(&inputs).unwrap();
                let own = |dim: usize| {
                    named.name(dim).filter(|name| {
                        inputs.iter().all(|x| x.names().iter(x.ndim()).all(|known| known != Some(*name)))
                    })
                };
                let made: Vec<Option<String>> =
                    (0..named.ndim()).map(|dim| own(dim).map(|name| name.to_string())).collect();
                let want = named.rename(made).unwrap();
                assert!(identical(&result, &want), "{} without names gives {result}", self.describe(dtype));
            }
            // The call refers to dims by name.
            Err(error) => {
                let kinds = [ErrorKind::NameNotFound, ErrorKind::UnnamedNotAllowed];
                assert!(kinds.contains(&error.kind()), "{} without names: {error}", self.describe(dtype));
            }
        }
    }

    /// Checks that the result does not depend on the memory order of the inputs.
    pub(crate) fn orders(&self, dtype: DType) {
        if (self.dtype)(dtype).is_none() {
            return;
        }
        let inputs = self.tensors(dtype);
        let want = self.reference_of(&inputs);
        let dense = (self.call)(&inputs).unwrap();
        let same = |inputs: &[Tensor], order: &str| {
            let what = || format!("{} with an input {order}", self.describe(dtype));
            let got = (self.call)(inputs).unwrap_or_else(|error| panic!("{}: {error}", what()));
            match self.scale {
                None => assert!(identical(&got, &dense), "{}: {got} and not {dense}", what()),
                Some(scale) => assert_close(&got, &want, scale, &what),
            }
        };
        for number in 0..inputs.len() {
            for (order, x) in orders(&inputs[number]) {
                let mut inputs = inputs.clone();
                inputs[number] = x;
                same(&inputs, order);
            }
            for dim in (0..inputs[number].ndim()).filter(|dim| inputs[number].sizes()[*dim] > 1) {
                let mut spread = inputs.clone();
                let one = inputs[number].narrow(dim, 0, 1).unwrap();
                spread[number] = one.expand(inputs[number].sizes()).unwrap();
                let mut dense = spread.clone();
                dense[number] = own(&spread[number]);
                let (got, want) = ((self.call)(&spread).unwrap(), (self.call)(&dense).unwrap());
                let what =
                    || format!("{} with input {number} expanded along dim {dim}", self.describe(dtype));
                match self.scale {
                    None => assert!(identical(&got, &want), "{}: {got} and not {want}", what()),
                    Some(scale) => assert_close(&got, &plain(&want), scale, &what),
                }
            }
        }
    }

    /// The in-place form gives the same result as the op, or fails and changes nothing. It never changes
    /// another tensor.
    pub(crate) fn in_place(&self, dtype: DType) {
        let Some(in_place) = &self.in_place else { return };
        let inputs = self.tensors(dtype);
        let result = (self.call)(&inputs);
        let x = &inputs[0];
        let fits = |y: &Tensor| y.dtype().can_cast(dtype) && (self.reshapes || y.sizes() == x.sizes());
        let wanted = result.ok().filter(fits).map(|y| y.to(dtype).unwrap());
        let holders = [("its own buffer", None), ("a shared buffer", Some(())), ("a view", None)];
        for (place, shared) in holders {
            let what = || format!("in place in {place}: {}", self.describe(dtype));
            let mut target = if place == "a view" { orders(x).swap_remove(0).1 } else { own(x) };
            let other = shared.map(|()| target.clone());
            match (in_place(&mut target, &inputs[1..]), &wanted) {
                (Ok(()), Some(wanted)) => match self.scale {
                    None => assert!(identical(&target, wanted), "{}: {target} and not {wanted}", what()),
                    Some(scale) => {
                        assert_eq!(target.shape(), wanted.shape(), "{}", what());
                        assert_close(&target, &plain(wanted), scale, &what);
                    }
                },
                (Err(error), None) => {
                    assert!(identical(&target, x), "a failed call changed its tensor {}", what());
                    assert!(
                        [ErrorKind::DType, ErrorKind::Shape].contains(&error.kind()),
                        "{}: {error}",
                        what()
                    );
                }
                (Ok(()), None) => panic!("{} should fail and gives {target}", what()),
                (Err(error), Some(_)) => panic!("{}: {error}", what()),
            }
            if let Some(other) = other {
                assert!(identical(&other, x), "another tensor was changed {}", what());
            }
            let rest = self.tensors(dtype);
            assert!(
                inputs.iter().zip(&rest).all(|(a, b)| identical(a, b)),
                "an input was changed {}",
                what()
            );
        }
    }
}
