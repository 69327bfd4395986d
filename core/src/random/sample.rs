//! Tensors with samples from the distributions of `rand` and `rand_distr`.

use super::next_of_default;
use crate::args::IntoShape;
use crate::cpu::random::fill_each;
use crate::device::compute;
use crate::dtype::{DType, Element, Scalar};
use crate::error::Result;
use crate::ops::data::dtype_of_literals;
use crate::tensor::NamedTensor;
use rand::distr::Distribution;

mod sealed {
    pub trait Sealed {}
}

/// The types of samples that a tensor can hold: floats, integers and `bool`. Floats become the default dtype,
/// and integers are treated as in [`NamedTensor::new`]; types without a dtype, such as `u64`, become `i64`.
pub trait Sampled: sealed::Sealed + Sized + 'static {
    /// The element type of the drawn tensor.
    type Element: Element + Send;
    /// Converts a sample to an element.
    fn element(self) -> Self::Element;
    /// The default dtype of the tensor.
    fn dtype() -> DType {
        dtype_of_literals::<Self>()
    }
}

crate::for_types!(bool, u8, i8, i16, i32, i64, f32, f64 => Number {
    impl sealed::Sealed for Number {}
    impl Sampled for Number {
        type Element = Number;
        fn element(self) -> Number {
            self
        }
    }
});

crate::for_types!(u16, u32, u64, usize => Number {
    impl sealed::Sealed for Number {}
    impl Sampled for Number {
        type Element = i64;
        fn element(self) -> i64 {
            self as i64
        }
    }
});

impl NamedTensor {
    /// Samples from `distribution` with `dtype` or the default of [`Sampled`].
    ///
    /// See `namegrad::Tensor::sample`.
    ///
    /// # Errors
    /// The errors of the shape, and [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    #[track_caller]
    pub fn sample<T: Sampled>(
        shape: impl IntoShape,
        distribution: &(impl Distribution<T> + Sync),
        dtype: Option<DType>,
    ) -> Result<NamedTensor> {
        let shape = shape.shape_for("sample")?;
        let mut drawn = NamedTensor::filled("sample", shape, T::Element::DTYPE, Scalar::Int(0))?;
        compute(|| {
            let mut generator = next_of_default(drawn.numel());
            let out = drawn.as_mut_slice::<T::Element>()?;
            fill_each(out, &mut generator, |_, rng| distribution.sample(rng).element());
            Ok(())
        })?;
        drawn.into_dtype(dtype.unwrap_or_else(T::dtype))
    }
}
