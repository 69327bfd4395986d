//! New tensors, and [`TensorOptions`] for those of another dtype or that require a gradient.

use crate::op::Op;
use crate::operators::Operand;
use crate::tensor::Tensor;
use namegrad_core::{
    DType, Data, Element, Error, ErrorKind, IntoShape, NamedTensor, Result, Scalar, default_dtype,
};
use std::fmt;
use std::ops::RangeBounds;
use std::panic::Location;

/// Dtype and gradient of a tensor to be made.
///
/// ```
/// use namegrad::prelude::*;
/// let x = TensorOptions::new().dtype(DType::F64).requires_grad(true).zeros([("N", 2), ("C", 3)])?;
/// assert_eq!((x.dtype(), x.requires_grad()), (DType::F64, true));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TensorOptions {
    dtype: Option<DType>,
    requires_grad: bool,
}

impl TensorOptions {
    /// The default dtype, or that of the numbers given; no gradient.
    pub fn new() -> TensorOptions {
        TensorOptions::default()
    }

    /// Of this dtype.
    pub fn dtype(self, dtype: DType) -> TensorOptions {
        TensorOptions { dtype: Some(dtype), ..self }
    }

    /// Requiring a gradient.
    pub fn requires_grad(self, requires_grad: bool) -> TensorOptions {
        TensorOptions { requires_grad, ..self }
    }

    #[track_caller]
    fn finish(self, value: NamedTensor) -> Result<Tensor> {
        Tensor::constant(value).requires_grad_(self.requires_grad)
    }

    fn float(self) -> DType {
        self.dtype.unwrap_or_else(default_dtype)
    }

    /// Zeros.
    ///
    /// # Errors
    /// Those of the shape, [`ErrorKind::OutOfMemory`], [`ErrorKind::Autograd`] if the dtype has no gradients.
    #[track_caller]
    pub fn zeros(self, shape: impl IntoShape) -> Result<Tensor> {
        self.finish(NamedTensor::full_as("zeros", shape, Scalar::Float(0.0), self.float())?)
    }

    /// Ones.
    ///
    /// # Errors
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn ones(self, shape: impl IntoShape) -> Result<Tensor> {
        self.finish(NamedTensor::full_as("ones", shape, Scalar::Float(1.0), self.float())?)
    }

    /// Of these sizes, with values that mean nothing.
    ///
    /// # Errors
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn empty(self, shape: impl IntoShape) -> Result<Tensor> {
        // Zeros: memory that nobody wrote must not be read in Rust, and fresh pages are zero anyway.
        self.finish(NamedTensor::full_as("empty", shape, Scalar::Float(0.0), self.float())?)
    }

    /// `value` everywhere.
    ///
    /// # Errors
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn full(self, shape: impl IntoShape, value: impl Into<Scalar>) -> Result<Tensor> {
        let value = value.into();
        self.finish(NamedTensor::full_as("full", shape, value, self.dtype.unwrap_or(value.dtype()))?)
    }

    /// Uniform in [0, 1).
    ///
    /// # Errors
    /// As [`zeros`](Self::zeros); [`ErrorKind::DType`] unless floating-point.
    #[track_caller]
    pub fn rand(self, shape: impl IntoShape) -> Result<Tensor> {
        self.uniform(shape, 0.0, 1.0)
    }

    /// Uniform in [`low`, `high`).
    ///
    /// # Errors
    /// As [`rand`](Self::rand); [`ErrorKind::Value`] unless `low <= high`.
    #[track_caller]
    pub fn uniform(self, shape: impl IntoShape, low: f64, high: f64) -> Result<Tensor> {
        self.finish(NamedTensor::uniform("rand", shape.into_shape()?, low, high, self.float())?)
    }

    /// Normal with mean 0 and standard deviation 1.
    ///
    /// # Errors
    /// As [`rand`](Self::rand).
    #[track_caller]
    pub fn randn(self, shape: impl IntoShape) -> Result<Tensor> {
        self.normal(shape, 0.0, 1.0)
    }

    /// Normal.
    ///
    /// # Errors
    /// As [`rand`](Self::rand); [`ErrorKind::Value`] for a negative `std`.
    #[track_caller]
    pub fn normal(self, shape: impl IntoShape, mean: f64, std: f64) -> Result<Tensor> {
        self.finish(NamedTensor::normal("randn", shape.into_shape()?, mean, std, self.float())?)
    }

    /// `start, start + step, ...` up to before `end`.
    ///
    /// # Errors
    /// As [`zeros`](Self::zeros); [`ErrorKind::Value`] for a step of zero or in the wrong direction.
    #[track_caller]
    pub fn arange(
        self,
        start: impl Into<Scalar>,
        end: impl Into<Scalar>,
        step: impl Into<Scalar>,
    ) -> Result<Tensor> {
        let (start, end, step) = (start.into(), end.into(), step.into());
        let dtype = [start, end, step].map(Scalar::dtype).into_iter().fold(DType::I64, DType::promote);
        self.finish(NamedTensor::arange(start, end, step, self.dtype.unwrap_or(dtype))?)
    }

    /// `steps` numbers evenly spaced from `start` to `end`, both included.
    ///
    /// # Errors
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn linspace(self, start: f64, end: f64, steps: usize) -> Result<Tensor> {
        self.finish(NamedTensor::linspace(start, end, steps, self.float())?)
    }

    /// Ones on the diagonal of a matrix.
    ///
    /// # Errors
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn eye(self, rows: usize, cols: usize) -> Result<Tensor> {
        self.finish(NamedTensor::eye(rows, cols, self.float())?)
    }

    /// These numbers: one, or nested arrays or `Vec`s of them.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if rows differ in length.
    #[track_caller]
    pub fn tensor(self, data: impl Data) -> Result<Tensor> {
        self.finish(NamedTensor::new_as(data, self.dtype)?)
    }
}

/// Factories with the default options.
macro_rules! factories {
    ($($(#[$meta:meta])* $name:ident($($arg:ident: $ty:ty),*);)*) => {
        impl Tensor {$(
            $(#[$meta])*
            #[doc = concat!("Other dtypes: [`TensorOptions::", stringify!($name), "`].")]
            ///
            /// # Errors
            #[doc = concat!("Those of [`TensorOptions::", stringify!($name), "`].")]
            #[track_caller]
            pub fn $name($($arg: $ty),*) -> Result<Tensor> {
                TensorOptions::new().$name($($arg),*)
            }
        )*}
    };
}
factories! {
    /// Zeros of the default dtype.
    zeros(shape: impl IntoShape);
    /// Ones of the default dtype.
    ones(shape: impl IntoShape);
    /// A tensor of the default dtype with values that mean nothing.
    empty(shape: impl IntoShape);
    /// `value` everywhere; the dtype is that of the number.
    full(shape: impl IntoShape, value: impl Into<Scalar>);
    /// Uniform numbers in [0, 1) of the default dtype.
    rand(shape: impl IntoShape);
    /// Normal numbers of mean 0 and standard deviation 1 of the default dtype.
    randn(shape: impl IntoShape);
    /// `start, start + step, ...` up to before `end`; `i64` if all three are integers.
    arange(start: impl Into<Scalar>, end: impl Into<Scalar>, step: impl Into<Scalar>);
    /// `steps` numbers evenly spaced from `start` to `end`, both included.
    linspace(start: f64, end: f64, steps: usize);
    /// The unit matrix, or the first `rows` and `cols` of it.
    eye(rows: usize, cols: usize);
}

impl Tensor {
    /// A tensor of these numbers: one, or nested arrays or `Vec`s of them. Floats are of the default dtype, integers `i64`.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 2.0], [3.0, 4.5]])?;
    /// assert_eq!(x.to_string(), "tensor([[1.0000, 2.0000],\n        [3.0000, 4.5000]])");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if rows differ in length.
    #[track_caller]
    pub fn new(data: impl Data) -> Result<Tensor> {
        TensorOptions::new().tensor(data)
    }

    /// A tensor of these elements in row-major order.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if there are more or fewer elements than the shape has.
    #[track_caller]
    pub fn from_slice<T: Element>(data: &[T], shape: impl IntoShape) -> Result<Tensor> {
        NamedTensor::from_slice(data, shape).map(Tensor::constant)
    }

    /// A tensor of the elements of an ndarray array.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn from_ndarray<T: Element, D: ndarray::Dimension>(
        array: ndarray::ArrayView<'_, T, D>,
    ) -> Result<Tensor> {
        NamedTensor::from_ndarray(array).map(Tensor::constant)
    }

    /// The elements as an ndarray array.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if the dtype is not that of `T`.
    #[track_caller]
    pub fn to_ndarray<T: Element>(&self) -> Result<ndarray::ArrayD<T>> {
        self.value().to_ndarray()
    }

    /// Integers in [`low`, `high`), each as likely, of dtype `i64`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless `low < high`.
    #[track_caller]
    pub fn randint(low: i64, high: i64, shape: impl IntoShape) -> Result<Tensor> {
        NamedTensor::randint(low, high, shape).map(Tensor::constant)
    }

    /// The numbers `0..n` in random order, of dtype `i64`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn randperm(n: usize) -> Result<Tensor> {
        NamedTensor::randperm(n).map(Tensor::constant)
    }

    /// Zeros of the sizes, names and dtype of this tensor.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn zeros_like(&self) -> Result<Tensor> {
        self.full_like(0)
    }

    /// Ones of the sizes, names and dtype of this tensor.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn ones_like(&self) -> Result<Tensor> {
        self.full_like(1)
    }

    /// The sizes, names and dtype of this tensor, with values that mean nothing.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn empty_like(&self) -> Result<Tensor> {
        self.full_like(0)
    }

    /// `value` everywhere, of the sizes, names and dtype of this tensor.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn full_like(&self, value: impl Into<Scalar>) -> Result<Tensor> {
        self.value().full_like(value, self.dtype()).map(Tensor::constant)
    }

    /// Uniform numbers in [0, 1) of the sizes, names and dtype of this tensor.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] unless floating-point.
    #[track_caller]
    pub fn rand_like(&self) -> Result<Tensor> {
        NamedTensor::uniform("rand_like", self.shape(), 0.0, 1.0, self.dtype()).map(Tensor::constant)
    }

    /// Normal numbers of the sizes, names and dtype of this tensor.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] unless floating-point.
    #[track_caller]
    pub fn randn_like(&self) -> Result<Tensor> {
        NamedTensor::normal("randn_like", self.shape(), 0.0, 1.0, self.dtype()).map(Tensor::constant)
    }

    /// Zeros of other sizes and the dtype of this tensor.
    ///
    /// # Errors
    /// Those of the shape.
    #[track_caller]
    pub fn new_zeros(&self, shape: impl IntoShape) -> Result<Tensor> {
        self.new_full(shape, 0)
    }

    /// Ones of other sizes and the dtype of this tensor.
    ///
    /// # Errors
    /// Those of the shape.
    #[track_caller]
    pub fn new_ones(&self, shape: impl IntoShape) -> Result<Tensor> {
        self.new_full(shape, 1)
    }

    /// `value` everywhere, of other sizes and the dtype of this tensor.
    ///
    /// # Errors
    /// Those of the shape.
    #[track_caller]
    pub fn new_full(&self, shape: impl IntoShape, value: impl Into<Scalar>) -> Result<Tensor> {
        NamedTensor::full_as("new_full", shape, value.into(), self.dtype()).map(Tensor::constant)
    }

    /// `value`, a number or a 0-d tensor, everywhere, in place. The gradient of what was there is 0, that of the value the sum of all.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the value has dims, [`ErrorKind::Autograd`] on a leaf that requires a gradient.
    #[track_caller]
    pub fn fill_(&mut self, value: impl Operand) -> Result<&mut Tensor> {
        let value = &*value.operand_beside(self.dtype())?;
        if value.ndim() > 0 {
            let message = format!(
                "fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.",
                value.ndim()
            );
            return Err(Error::new(ErrorKind::Shape, "fill_", message)
                .with_operands([self.extents(), value.extents()]));
        }
        let filled = self.full_like(value.item()?)?.into_value();
        let op = Op::new("fill_", filled).input(self, |g, _| g.zeros_like());
        let result = op.input(value, |g, _| Ok(g.clone())).output();
        self.assign("fill_", result)
    }

    /// `value` in the place of this tensor's, on which the result still depends for the tape, with a gradient of 0.
    #[track_caller]
    fn overwrite(&mut self, op: &'static str, value: NamedTensor) -> Result<&mut Tensor> {
        let result = Op::new(op, value).input(self, |g, _| g.zeros_like()).output();
        self.assign(op, result)
    }

    /// Zeros, in place. The gradient of what was there is 0.
    ///
    /// # Errors
    /// [`ErrorKind::Autograd`] on a leaf that requires a gradient.
    #[track_caller]
    pub fn zero_(&mut self) -> Result<&mut Tensor> {
        self.fill_(0)
    }

    /// Fails where `condition` does not hold. A message from `format_args!` is only formatted then.
    #[track_caller]
    pub(crate) fn ensure(
        condition: bool,
        kind: ErrorKind,
        op: &'static str,
        message: impl fmt::Display,
    ) -> Result<()> {
        if condition { Ok(()) } else { Err(Error::new(kind, op, message.to_string())) }
    }
}

/// Ops that replace every element by a random number: the gradient of what was there is 0.
macro_rules! tensor_random {
    ($(
        #[doc = $doc:literal]
        $name:ident ($($arg:ident: $ty:ty),*) [$need:literal] $valid:expr => $fill:ident
    )*) => {
        impl Tensor {$(
            #[doc = $doc]
            ///
            /// # Errors
            #[doc = concat!("[`ErrorKind::Value`] unless ", $need, "; [`ErrorKind::DType`] unless floating-point; [`ErrorKind::Autograd`] on a leaf that requires a gradient.")]
            #[track_caller]
            pub fn $name(&mut self, $($arg: $ty),*) -> Result<&mut Tensor> {
                self.draw_in_place(stringify!($name), |value| value.$name($($arg),*).map(drop))
            }
        )*}
    };
}
namegrad_core::random_ops!(tensor_random);

impl Tensor {
    #[track_caller]
    fn draw_in_place(
        &mut self,
        op: &'static str,
        draw: impl FnOnce(&mut NamedTensor) -> Result<()>,
    ) -> Result<&mut Tensor> {
        self.check_in_place(op)?;
        let (mut value, at) = (self.value().clone(), Location::caller());
        draw(&mut value).map_err(|error| error.at(at))?; // a closure does not know its caller
        self.overwrite(op, value)
    }

    /// The number of trials up to the first success, each of probability `p`, in place.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless `p` is in (0, 1); [`ErrorKind::DType`] on `bool`; [`ErrorKind::Autograd`] on a leaf that requires a gradient.
    #[track_caller]
    pub fn geometric_(&mut self, p: f64) -> Result<&mut Tensor> {
        self.draw_in_place("geometric_", |value| value.geometric_(p).map(drop))
    }

    /// Integers in `range`, each as likely, in place. Without a start it is 0, without an end the largest integer up to which the dtype has all of them.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let mut x = Tensor::zeros([("N", 9)])?;
    /// x.random_(2..5)?;
    /// assert!(x.to_vec::<i64>()?.iter().all(|x| (2..5).contains(x)));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the range is empty or beyond the dtype; [`ErrorKind::Autograd`] on a leaf that requires a gradient.
    #[track_caller]
    pub fn random_(&mut self, range: impl RangeBounds<i64>) -> Result<&mut Tensor> {
        self.draw_in_place("random_", |value| value.random_(range).map(drop))
    }

    /// 1 with probability `p`, else 0, in place: `p` is a number, or a tensor of floats that broadcasts to this one.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless `p` is in [0, 1], [`ErrorKind::DType`] for a `p` of integers, [`ErrorKind::Shape`] for one that does not fit,
    /// [`ErrorKind::Autograd`] on a leaf that requires a gradient.
    #[track_caller]
    pub fn bernoulli_(&mut self, p: impl Operand) -> Result<&mut Tensor> {
        let p = p.operand_beside(DType::F64)?.into_owned();
        self.draw_in_place("bernoulli_", |value| value.bernoulli_(p.value()).map(drop))
    }

    /// Normal numbers, each with its own mean and standard deviation; one of the two may be a number. They broadcast to each other, names unify. No gradient flows
    /// through: for one write `mean + std * Tensor::randn(..)`.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let mean = Tensor::new([1.0, 2.0])?.refine_names(["N"])?;
    /// let x = Tensor::normal(&mean, 0.0)?;
    /// assert_eq!((x.to_vec::<f32>()?, x.extents()), (vec![1.0, 2.0], mean.extents()));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for a negative `std`, [`ErrorKind::DType`] unless floating-point, [`ErrorKind::Shape`], those of the name rule.
    #[track_caller]
    pub fn normal(mean: impl Operand, std: impl Operand) -> Result<Tensor> {
        let beside = std.operand()?.dtype();
        let mean = mean.operand_beside(beside)?;
        mean.value().normal_around(std.operand_beside(mean.dtype())?.value()).map(Tensor::constant)
    }

    /// For each element `p` of this tensor 1 with probability `p`, else 0. No gradient flows through.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless all are in [0, 1], [`ErrorKind::DType`] unless floating-point.
    #[track_caller]
    pub fn bernoulli(&self) -> Result<Tensor> {
        self.value().bernoulli().map(Tensor::constant)
    }
}
