//! Tensors with samples from the distributions of `rand` and `rand_distr`.

use super::next_of_default;
use crate::args::IntoShape;
use crate::cpu::random::fill_each;
use crate::dtype::{DType, Element, Scalar, default_dtype};
use crate::error::Result;
use crate::tensor::NamedTensor;
use rand::distr::Distribution;

mod sealed {
    pub trait Sealed {}
}

/// The types of samples that a tensor can hold: floats, integers and `bool`. Floats become the default dtype,
/// and integers are treated as in [`NamedTensor::new`]; types without a dtype, such as `u64`, become `i64`.
pub trait Sampled: sealed::Sealed {
    /// The element type of the drawn tensor.
    type Element: Element + Send;
    /// Converts a sample to an element.
    fn element(self) -> Self::Element;
    /// The default dtype of the tensor.
    fn dtype() -> DType;
}

/// Numbers. A row has the type of the samples, the element type, and the dtype of the tensor.
/// `u16 as i64 => DType::I64` becomes
///
/// ```ignore
/// impl sealed::Sealed for u16 {}
/// impl Sampled for u16 {
///     type Element = i64;
///     fn element(self) -> i64 { self as i64 }
///     fn dtype() -> DType { DType::I64 }
/// }
/// ```
macro_rules! sampled {
    ($($ty:ty as $element:ty => $dtype:expr;)*) => {$(
        impl sealed::Sealed for $ty {}
        impl Sampled for $ty {
            type Element = $element;
            fn element(self) -> $element { self as $element }
            fn dtype() -> DType { $dtype }
        }
    )*};
}
sampled! {
    bool as bool => DType::Bool; u8 as u8 => DType::U8; i8 as i8 => DType::I8; i16 as i16 => DType::I16;
    i32 as i64 => DType::I64; i64 as i64 => DType::I64; u16 as i64 => DType::I64; u32 as i64 => DType::I64;
    u64 as i64 => DType::I64; usize as i64 => DType::I64; f32 as f32 => default_dtype(); f64 as f64 => default_dtype();
}

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
        let mut generator = next_of_default(drawn.numel());
        let out = drawn.as_mut_slice::<T::Element>()?;
        fill_each(out, &mut generator, |_, rng| distribution.sample(rng).element());
        drawn.into_dtype(dtype.unwrap_or_else(T::dtype))
    }
}
