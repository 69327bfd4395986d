//! New tensors: filled, counted, random, or made of given numbers.

use crate::cpu::fill;
use crate::dtype::{Category, DType, Element, Scalar, default_dtype, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::names::Names;
use crate::shape::{IntoShape, Shape, Sizes, checked_numel};
use crate::tensor::NamedTensor;
use ndarray::ArrayD;
use std::panic::Location;

impl NamedTensor {
    /// Zeros of the default dtype.
    ///
    /// # Errors
    /// Those of the shape, [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn zeros(shape: impl IntoShape) -> Result<NamedTensor> {
        NamedTensor::full_as("zeros", shape, Scalar::Float(0.0), default_dtype())
    }

    /// Ones of the default dtype.
    ///
    /// # Errors
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn ones(shape: impl IntoShape) -> Result<NamedTensor> {
        NamedTensor::full_as("ones", shape, Scalar::Float(1.0), default_dtype())
    }

    /// `value` everywhere, of the dtype of the number: `bool`, `i64` or the default float.
    ///
    /// # Errors
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn full(shape: impl IntoShape, value: impl Into<Scalar>) -> Result<NamedTensor> {
        let value = value.into();
        NamedTensor::full_as("full", shape, value, value.dtype())
    }

    /// `value` everywhere, of `dtype`; `op` is named in errors.
    ///
    /// # Errors
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn full_as(
        op: &'static str,
        shape: impl IntoShape,
        value: Scalar,
        dtype: DType,
    ) -> Result<NamedTensor> {
        NamedTensor::filled(op, shape.into_shape()?, dtype, value)
    }

    /// A tensor of the same sizes and names filled with `value`, of `dtype`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn full_like(&self, value: impl Into<Scalar>, dtype: DType) -> Result<NamedTensor> {
        NamedTensor::filled("full_like", self.shape(), dtype, value.into())
    }

    /// `start, start + step, ...` up to before `end`, of `dtype`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for a step of zero, in the wrong direction, or bounds that are not finite.
    #[track_caller]
    pub fn arange(
        start: impl Into<Scalar>,
        end: impl Into<Scalar>,
        step: impl Into<Scalar>,
        dtype: DType,
    ) -> Result<NamedTensor> {
        const OP: &str = "arange";
        let (start, end, step) = (start.into(), end.into(), step.into());
        let (first, last, by) = (start.to_f64(), end.to_f64(), step.to_f64());
        let caller = Location::caller();
        let invalid = |message: String| Err(Error::new(ErrorKind::Value, OP, message).at(caller));
        if !(first.is_finite() && last.is_finite() && by.is_finite()) {
            return invalid(format!("unsupported range: {first} -> {last} in steps of {by}"));
        }
        // As in PyTorch, the numbers of an integer dtype start and step in integers.
        let whole = dtype.category() != Category::Float;
        let [start, end, step] = match whole {
            true => [start, end, step].map(|number| Scalar::Int(i64::from_scalar(number))),
            false => [start, end, step],
        };
        if step.to_f64() == 0.0 {
            return invalid("step must be nonzero".into());
        }
        let integers = [start, end, step].iter().all(|number| matches!(number, Scalar::Int(_)));
        let (from, to, upwards) = (i64::from_scalar(start), i64::from_scalar(end), step.to_f64() > 0.0);
        if if integers { upwards && to < from || !upwards && to > from } else { (last - first) * by < 0.0 } {
            return invalid(format!(
                "upper bound and lower bound inconsistent with step sign: {first} -> {last} in steps of {by}"
            ));
        }
        // The smaller integer dtypes count their elements before they cut fractions off, as in PyTorch.
        let count = if integers
            && (dtype == DType::I64 || first.fract() == 0.0 && last.fract() == 0.0 && by.fract() == 0.0)
        {
            let span = (i128::from(to) - i128::from(from)).unsigned_abs();
            usize::try_from(span.div_ceil(i128::from(i64::from_scalar(step)).unsigned_abs()))
                .unwrap_or(usize::MAX)
        } else {
            ((last - first) / by).ceil() as usize
        };
        checked_numel(OP, &[count], dtype.itemsize())?;
        let shape = Shape { sizes: Sizes::from_slice(&[count]), names: Names::none() };
        let mut out = NamedTensor::fresh(OP, shape, dtype)?;
        dispatch!(dtype, T => match (start, step) {
            (Scalar::Int(start), Scalar::Int(step)) if whole => {
                fill::count(start, step, out.as_mut_slice::<T>()?);
            }
            _ => fill::steps(first, by, out.as_mut_slice::<T>()?),
        });
        Ok(out)
    }

    /// `steps` numbers evenly spaced from `start` to `end`, both included, of `dtype`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn linspace(start: f64, end: f64, steps: usize, dtype: DType) -> Result<NamedTensor> {
        const OP: &str = "linspace";
        checked_numel(OP, &[steps], dtype.itemsize())?;
        let whole = dtype.category() != Category::Float;
        let [start, end] = if whole { [start.trunc(), end.trunc()] } else { [start, end] };
        let shape = Shape { sizes: Sizes::from_slice(&[steps]), names: Names::none() };
        let mut out = NamedTensor::fresh(OP, shape, dtype)?;
        dispatch!(dtype, T => fill::between(start, end, out.as_mut_slice::<T>()?));
        Ok(out)
    }

    /// The unit matrix, or its first `rows` and `cols`: ones on the diagonal, of `dtype`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn eye(rows: usize, cols: usize, dtype: DType) -> Result<NamedTensor> {
        let shape = Shape { sizes: Sizes::from_slice(&[rows, cols]), names: Names::none() };
        let mut out = NamedTensor::filled("eye", shape, dtype, Scalar::Int(0))?;
        dispatch!(dtype, T => fill::unit([rows, cols], out.as_mut_slice::<T>()?));
        Ok(out)
    }

    /// A tensor of the elements of an ndarray array, in its order of axes.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn from_ndarray<T: Element, D: ndarray::Dimension>(
        array: ndarray::ArrayView<'_, T, D>,
    ) -> Result<NamedTensor> {
        let sizes = array.shape().to_vec();
        match array.as_slice() {
            Some(data) => NamedTensor::from_slice(data, sizes),
            None => NamedTensor::from_slice(&array.iter().copied().collect::<Vec<T>>(), sizes),
        }
    }

    /// The elements as an ndarray array.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if the dtype is not that of `T`, [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn to_ndarray<T: Element>(&self) -> Result<ArrayD<T>> {
        let data = self.contiguous()?.as_slice::<T>()?.to_vec();
        let caller = Location::caller();
        let invalid = |error: ndarray::ShapeError| {
            Error::new(ErrorKind::Shape, "to_ndarray", error.to_string()).at(caller)
        };
        ArrayD::from_shape_vec(self.sizes().to_vec(), data).map_err(invalid)
    }
}

/// What a tensor can be made of: numbers, nested arrays and `Vec`s of them. A float is of the default dtype,
/// an integer `i64`, as PyTorch has it; typed data keep their type through [`NamedTensor::from_slice`].
pub trait Data {
    /// The sizes, outermost first.
    fn sizes(&self) -> Vec<usize>;
    /// Appends the numbers in row-major order; `false` when a row is longer or shorter than the first.
    fn collect(&self, into: &mut Vec<Scalar>) -> bool;
    /// The dtype of the whole.
    fn dtype() -> DType;
}

/// Numbers: a row says the type and the dtype of a tensor of such. `bool => DType::Bool` becomes
///
/// ```ignore
/// impl Data for bool {
///     fn sizes(&self) -> Vec<usize> { Vec::new() }
///     fn collect(&self, into: &mut Vec<Scalar>) -> bool { into.push((*self).into()); true }
///     fn dtype() -> DType { DType::Bool }
/// }
/// ```
macro_rules! numbers {
    ($($ty:ty => $dtype:expr;)*) => {$(
        impl Data for $ty {
            fn sizes(&self) -> Vec<usize> { Vec::new() }
            fn collect(&self, into: &mut Vec<Scalar>) -> bool { into.push((*self).into()); true }
            fn dtype() -> DType { $dtype }
        }
    )*};
}
numbers! {
    bool => DType::Bool; u8 => DType::U8; i8 => DType::I8; i16 => DType::I16; i32 => DType::I64; i64 => DType::I64;
    f32 => default_dtype(); f64 => default_dtype(); half::f16 => DType::F16; half::bf16 => DType::BF16;
}

impl<D: Data> Data for [D] {
    fn sizes(&self) -> Vec<usize> {
        std::iter::once(self.len()).chain(self.first().map(D::sizes).unwrap_or_default()).collect()
    }
    fn collect(&self, into: &mut Vec<Scalar>) -> bool {
        let first = self.first().map(D::sizes);
        self.iter().all(|row| Some(row.sizes()) == first && row.collect(into))
    }
    fn dtype() -> DType {
        D::dtype()
    }
}

impl<D: Data, const K: usize> Data for [D; K] {
    fn sizes(&self) -> Vec<usize> {
        self.as_slice().sizes()
    }
    fn collect(&self, into: &mut Vec<Scalar>) -> bool {
        self.as_slice().collect(into)
    }
    fn dtype() -> DType {
        D::dtype()
    }
}

impl<D: Data> Data for Vec<D> {
    fn sizes(&self) -> Vec<usize> {
        self.as_slice().sizes()
    }
    fn collect(&self, into: &mut Vec<Scalar>) -> bool {
        self.as_slice().collect(into)
    }
    fn dtype() -> DType {
        D::dtype()
    }
}

impl<D: Data + ?Sized> Data for &D {
    fn sizes(&self) -> Vec<usize> {
        (**self).sizes()
    }
    fn collect(&self, into: &mut Vec<Scalar>) -> bool {
        (**self).collect(into)
    }
    fn dtype() -> DType {
        D::dtype()
    }
}

impl NamedTensor {
    /// A tensor of these numbers: a number, or nested arrays or `Vec`s.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if rows differ in length.
    #[track_caller]
    pub fn new(data: impl Data) -> Result<NamedTensor> {
        NamedTensor::new_as(data, None)
    }

    /// [`new`](Self::new) of `dtype`, to which each number is rounded once.
    ///
    /// # Errors
    /// Those of `new`.
    #[track_caller]
    pub fn new_as(data: impl Data, dtype: Option<DType>) -> Result<NamedTensor> {
        fn build<D: Data>(data: &D) -> Option<(Vec<usize>, Vec<Scalar>, DType)> {
            let mut numbers = Vec::new();
            data.collect(&mut numbers).then(|| (data.sizes(), numbers, D::dtype()))
        }
        let Some((sizes, numbers, own)) = build(&data) else {
            return Err(Error::new(ErrorKind::Shape, "tensor", "expected rows of equal length"));
        };
        let mut out = NamedTensor::fresh("tensor", sizes.into_shape()?, dtype.unwrap_or(own))?;
        dispatch!(out.dtype(), T => fill::cast(&numbers, out.as_mut_slice::<T>()?));
        Ok(out)
    }
}
