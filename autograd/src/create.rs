//! Factories of tensors, and [`TensorOptions`] to choose the dtype and to require a gradient.

use crate::chain::*;
use crate::operators::Operand;
use crate::plain::TensorOrNumber;
use crate::tensor::Tensor;
use namegrad_core::args::NewNames;
use namegrad_core::options::{TrilOptions, TriuOptions};
use namegrad_core::random::{Distribution, Sampled};
use namegrad_core::{
    Argument, DType, Data, Device, IntoShape, NamedTensor, Names, OnDevice, Result, Scalar, default_dtype,
};
use namegrad_core::{Error, ErrorKind};
use std::borrow::Cow;

/// Options of a new tensor: its dtype, its names, and whether it requires a gradient.
///
/// ```
/// use namegrad::prelude::*;
/// let x = TensorOptions::new().dtype(DType::F64).requires_grad(true).zeros([("N", 2), ("C", 3)])?;
/// assert_eq!((x.dtype(), x.requires_grad()), (DType::F64, true));
/// let months = TensorOptions::new().names(["time"]).arange(0, 12, 1)?;
/// assert_eq!(months.shape().to_string(), "[time=12]");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TensorOptions {
    dtype: Option<DType>,
    requires_grad: bool,
    names: NewNames,
    device: Option<Device>,
}

impl TensorOptions {
    /// The defaults: the default dtype or the dtype of the given numbers, and no gradient.
    pub fn new() -> TensorOptions {
        TensorOptions::default()
    }

    /// Sets the dtype.
    pub fn dtype(self, dtype: DType) -> TensorOptions {
        TensorOptions { dtype: Some(dtype), ..self }
    }

    /// Sets whether the tensor requires a gradient.
    pub fn requires_grad(self, requires_grad: bool) -> TensorOptions {
        TensorOptions { requires_grad, ..self }
    }

    /// Sets the names, one for each dim, for factories that do not take a shape: `tensor`, `arange`,
    /// `linspace`, `eye`. If a shape has names, they must agree.
    pub fn names(self, names: impl Into<NewNames>) -> TensorOptions {
        TensorOptions { names: names.into(), ..self }
    }

    /// Sets the device; by default, it is that of [`on_device`](namegrad_core::on_device).
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = TensorOptions::new().device(Device::Meta).randn([("row", 1 << 20), ("col", 1 << 20)])?;
    /// assert_eq!(x.sum("row")?.shape().to_string(), "[col=1048576]");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn device(self, device: Device) -> TensorOptions {
        TensorOptions { device: Some(device), ..self }
    }

    /// The device of a new tensor, until the result is dropped.
    #[track_caller]
    fn on_device(&self) -> Result<OnDevice> {
        self.device.map_or_else(|| Ok(OnDevice::default()), OnDevice::enter)
    }

    #[track_caller]
    fn finish(&self, op: &'static str, mut value: NamedTensor) -> Result<Tensor> {
        const OP: &str = "TensorOptions::names";
        if self.names != NewNames::default() {
            let names = self.names.look_up(OP, &[]).map_err(|error| error.of(OP))?;
            Names::given(OP, &names, &vec![None; value.ndim()])?; // as many as dims
            value = value.refine_names(&names[..]).map_err(|error| {
                error.of(OP).context("the shape and TensorOptions::names both give names: ").with_repair("")
            })?;
        }
        let mut tensor = Tensor::constant(value);
        tensor.requires_grad_(self.requires_grad).map_err(|error| {
            error.of(op).with_repair(format!("TensorOptions::new().dtype(DType::{:?})", default_dtype()))
        })?;
        Ok(tensor)
    }

    fn float(&self) -> DType {
        self.dtype.unwrap_or_else(default_dtype)
    }

    /// A tensor of zeros.
    ///
    /// # Errors
    /// The errors of the shape, [`ErrorKind::OutOfMemory`], [`ErrorKind::Autograd`] if the dtype has no
    /// gradients.
    #[track_caller]
    pub fn zeros(&self, shape: impl IntoShape) -> Result<Tensor> {
        let _device = self.on_device()?;
        self.finish("zeros", NamedTensor::full_as("zeros", shape, Scalar::Float(0.0), self.float())?)
    }

    /// A tensor of ones.
    ///
    /// # Errors
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn ones(&self, shape: impl IntoShape) -> Result<Tensor> {
        let _device = self.on_device()?;
        self.finish("ones", NamedTensor::full_as("ones", shape, Scalar::Float(1.0), self.float())?)
    }

    /// A tensor for values to be written later; it has zeros.
    ///
    /// # Errors
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn empty(&self, shape: impl IntoShape) -> Result<Tensor> {
        let _device = self.on_device()?;
        // Zeros, because reading uninitialized memory is undefined behavior, and new pages are zero anyway.
        self.finish("empty", NamedTensor::full_as("empty", shape, Scalar::Float(0.0), self.float())?)
    }

    /// A tensor filled with `value`.
    ///
    /// # Errors
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn full(&self, shape: impl IntoShape, value: impl Into<Scalar>) -> Result<Tensor> {
        let _device = self.on_device()?;
        let value = value.into();
        self.finish("full", NamedTensor::full_as("full", shape, value, self.dtype.unwrap_or(value.dtype()))?)
    }

    /// Uniform random numbers in [0, 1).
    ///
    /// # Errors
    /// As [`zeros`](Self::zeros); [`ErrorKind::DType`] unless floating-point.
    #[track_caller]
    pub fn rand(&self, shape: impl IntoShape) -> Result<Tensor> {
        self.uniform(shape, 0.0, 1.0).map_err(|error| error.of("rand"))
    }

    /// Uniform random numbers in [`low`, `high`).
    ///
    /// # Errors
    /// As [`rand`](Self::rand); [`ErrorKind::Value`] unless `low <= high`.
    #[track_caller]
    pub fn uniform(&self, shape: impl IntoShape, low: f64, high: f64) -> Result<Tensor> {
        let _device = self.on_device()?;
        self.finish(
            "uniform",
            NamedTensor::uniform("uniform", shape.shape_for("uniform")?, low, high, self.float())?,
        )
    }

    /// Normal random numbers with mean 0 and standard deviation 1.
    ///
    /// # Errors
    /// As [`rand`](Self::rand).
    #[track_caller]
    pub fn randn(&self, shape: impl IntoShape) -> Result<Tensor> {
        self.normal(shape, 0.0, 1.0).map_err(|error| error.of("randn"))
    }

    /// Normal random numbers.
    ///
    /// # Errors
    /// As [`rand`](Self::rand); [`ErrorKind::Value`] for a negative `std`.
    #[track_caller]
    pub fn normal(&self, shape: impl IntoShape, mean: f64, std: f64) -> Result<Tensor> {
        let _device = self.on_device()?;
        self.finish(
            "normal",
            NamedTensor::normal("normal", shape.shape_for("normal")?, mean, std, self.float())?,
        )
    }

    /// Samples from `distribution`; see [`Tensor::sample`]. They are drawn in the type of the distribution,
    /// then cast.
    ///
    /// # Errors
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn sample<T: Sampled>(
        &self,
        shape: impl IntoShape,
        distribution: &(impl Distribution<T> + Sync),
    ) -> Result<Tensor> {
        let _device = self.on_device()?;
        self.finish("sample", NamedTensor::sample(shape, distribution, self.dtype)?)
    }

    /// `start, start + step, ...` up to before `end`.
    ///
    /// # Errors
    /// As [`zeros`](Self::zeros); [`ErrorKind::Value`] for a step of zero or in the wrong direction, or a
    /// number that an integer dtype does not have.
    #[track_caller]
    pub fn arange(
        &self,
        start: impl Into<Scalar>,
        end: impl Into<Scalar>,
        step: impl Into<Scalar>,
    ) -> Result<Tensor> {
        let _device = self.on_device()?;
        let (start, end, step) = (start.into(), end.into(), step.into());
        let dtype = [start, end, step].map(Scalar::dtype).into_iter().fold(DType::I64, DType::promote);
        self.finish("arange", NamedTensor::arange(start, end, step, self.dtype.unwrap_or(dtype))?)
    }

    /// `steps` numbers evenly spaced from `start` to `end`, both included. The ends are numbers or tensors of
    /// one number, to which gradients flow.
    ///
    /// # Errors
    /// As [`zeros`](Self::zeros), and [`ErrorKind::Shape`] for a tensor of several numbers.
    #[track_caller]
    pub fn linspace(&self, start: impl Operand, end: impl Operand, steps: usize) -> Result<Tensor> {
        self.spaced("linspace", start.either(), end.either(), steps)
    }

    #[track_caller]
    fn spaced(
        &self,
        op: &'static str,
        start: TensorOrNumber<'_>,
        end: TensorOrNumber<'_>,
        steps: usize,
    ) -> Result<Tensor> {
        let _device = self.on_device()?;
        let (start, end) = (start.tensor(DType::F64)?, end.tensor(DType::F64)?);
        if start.numel() != 1 || end.numel() != 1 {
            let message = "the ends must be single numbers";
            return Err(Error::about(&[start.value(), end.value()], ErrorKind::Shape, op, message));
        }
        if start.is_followed() || end.is_followed() {
            let shares = TensorOptions { requires_grad: false, ..self.clone() };
            let shares = shares.finish(op, NamedTensor::linspace(0.0, 1.0, steps, self.float())?)?;
            let [start, end] = [start, end].map(|x| x.reshape(()).to(self.float()));
            return start?.lerp(&end?, &shares);
        }
        let number = |x: &Tensor| match x.device() {
            Device::Meta => Ok(0.0),
            _ => x.item::<Scalar>().map(Scalar::to_f64),
        };
        let (start, end) = (number(&start)?, number(&end)?);
        self.finish(op, NamedTensor::linspace(start, end, steps, self.float())?)
    }

    /// `steps` powers of `base` whose exponents are at equal distances from `start` to `end`, both included.
    /// The ends are as in [`linspace`](Self::linspace).
    ///
    /// # Errors
    /// As [`linspace`](Self::linspace).
    #[track_caller]
    pub fn logspace(
        &self,
        start: impl Operand,
        end: impl Operand,
        steps: usize,
        base: f64,
    ) -> Result<Tensor> {
        let _device = self.on_device()?;
        let exact = TensorOptions { dtype: Some(DType::F64), requires_grad: false, ..self.clone() };
        let mut ends = [start.either().tensor(DType::F64)?, end.either().tensor(DType::F64)?];
        if !self.float().is_floating_point() {
            // As in PyTorch, the ends are truncated for an integer dtype.
            ends = [Cow::Owned(ends[0].to(DType::I64)?), Cow::Owned(ends[1].to(DType::I64)?)];
        }
        let [start, end] = &ends;
        let exponents = exact.spaced("logspace", start.either(), end.either(), steps)?;
        let base = Tensor::constant(NamedTensor::full_as("logspace", (), base.into(), DType::F64)?);
        let mut powers = base.pow(&exponents)?.to(self.float())?;
        if self.requires_grad {
            powers.requires_grad_(true)?;
        }
        Ok(powers)
    }

    /// A matrix with ones on the diagonal and zeros elsewhere.
    ///
    /// # Errors
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn eye(&self, rows: usize, cols: usize) -> Result<Tensor> {
        let _device = self.on_device()?;
        self.finish("eye", NamedTensor::eye(rows, cols, self.float())?)
    }

    /// A tensor from a number or from nested arrays or `Vec`s.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if rows differ in length.
    #[track_caller]
    pub fn tensor(&self, data: impl Data) -> Result<Tensor> {
        let _device = self.on_device()?;
        self.finish("tensor", NamedTensor::new_as(data, self.dtype)?)
    }
}

/// # New tensors
impl Tensor {
    /// The indices of the elements of the lower triangle of a matrix, as two rows, of which the first has their
    /// rows and the second their columns; a positive `offset` includes that many diagonals above the main one.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// assert_eq!(Tensor::tril_indices(2, 2, 0)?.to_vec::<i64>()?, [0, 1, 1, 0, 0, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn tril_indices(rows: usize, cols: usize, offset: isize) -> Result<Tensor> {
        Tensor::triangle(
            NamedTensor::full([rows, cols], true)?.tril_with(TrilOptions::new().diagonal(offset))?,
        )
    }

    /// The indices of the elements of the upper triangle of a matrix, as in
    /// [`tril_indices`](Self::tril_indices); a positive `offset` leaves out that many diagonals from the main
    /// one up.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn triu_indices(rows: usize, cols: usize, offset: isize) -> Result<Tensor> {
        Tensor::triangle(
            NamedTensor::full([rows, cols], true)?.triu_with(TriuOptions::new().diagonal(offset))?,
        )
    }

    /// The indices where a matrix is true, as two rows.
    #[track_caller]
    fn triangle(mask: NamedTensor) -> Result<Tensor> {
        mask.nonzero()?.t()?.contiguous().map(Tensor::constant)
    }

    /// The sizes to which tensors of these sizes broadcast.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// assert_eq!(Tensor::broadcast_shapes(&[&[3, 1], &[4]])?, [3, 4]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if they do not broadcast to each other.
    #[track_caller]
    pub fn broadcast_shapes(shapes: &[&[usize]]) -> Result<Vec<usize>> {
        let ndim = shapes.iter().map(|sizes| sizes.len()).max().unwrap_or(0);
        let mut all = vec![1; ndim];
        for sizes in shapes {
            for (size, own) in all[ndim - sizes.len()..].iter_mut().zip(*sizes) {
                if *own != 1 && *size != 1 && own != size {
                    let message =
                        format!("the sizes {own} and {size} of {shapes:?} do not broadcast to each other");
                    return Err(Error::new(ErrorKind::Shape, "broadcast_shapes", message));
                }
                *size = if *own == 1 { *size } else { *own };
            }
        }
        Ok(all)
    }

    /// `steps` powers of 10 whose exponents are at equal distances from `start` to `end`, in the default dtype.
    /// For other bases and dtypes, see [`TensorOptions::logspace`].
    ///
    /// # Errors
    /// Same as [`TensorOptions::logspace`].
    #[track_caller]
    pub fn logspace(start: impl Operand, end: impl Operand, steps: usize) -> Result<Tensor> {
        TensorOptions::new().logspace(start, end, steps, 10.0)
    }

    /// A tensor of zeros, in the default dtype.
    /// For other dtypes, see [`TensorOptions::zeros`].
    ///
    /// # Errors
    /// Same as [`TensorOptions::zeros`].
    #[track_caller]
    pub fn zeros(shape: impl IntoShape) -> Result<Tensor> {
        TensorOptions::new().zeros(shape)
    }

    /// A tensor of ones, in the default dtype.
    /// For other dtypes, see [`TensorOptions::ones`].
    ///
    /// # Errors
    /// Same as [`TensorOptions::ones`].
    #[track_caller]
    pub fn ones(shape: impl IntoShape) -> Result<Tensor> {
        TensorOptions::new().ones(shape)
    }

    /// A tensor in the default dtype, for values to be written later; it has zeros.
    /// For other dtypes, see [`TensorOptions::empty`].
    ///
    /// # Errors
    /// Same as [`TensorOptions::empty`].
    #[track_caller]
    pub fn empty(shape: impl IntoShape) -> Result<Tensor> {
        TensorOptions::new().empty(shape)
    }

    /// A tensor filled with `value`, in the dtype of the number.
    /// For other dtypes, see [`TensorOptions::full`].
    ///
    /// # Errors
    /// Same as [`TensorOptions::full`].
    #[track_caller]
    pub fn full(shape: impl IntoShape, value: impl Into<Scalar>) -> Result<Tensor> {
        TensorOptions::new().full(shape, value)
    }

    /// Uniform random numbers in [0, 1), in the default dtype.
    /// For other dtypes, see [`TensorOptions::rand`].
    ///
    /// # Errors
    /// Same as [`TensorOptions::rand`].
    #[track_caller]
    pub fn rand(shape: impl IntoShape) -> Result<Tensor> {
        TensorOptions::new().rand(shape)
    }

    /// Normal random numbers with mean 0 and standard deviation 1, in the default dtype.
    /// For other dtypes, see [`TensorOptions::randn`].
    ///
    /// # Errors
    /// Same as [`TensorOptions::randn`].
    #[track_caller]
    pub fn randn(shape: impl IntoShape) -> Result<Tensor> {
        TensorOptions::new().randn(shape)
    }

    /// The numbers `start, start + step, ...` before `end`; `i64` if all three arguments are integers.
    /// For other dtypes, see [`TensorOptions::arange`].
    ///
    /// # Errors
    /// Same as [`TensorOptions::arange`].
    #[track_caller]
    pub fn arange(
        start: impl Into<Scalar>,
        end: impl Into<Scalar>,
        step: impl Into<Scalar>,
    ) -> Result<Tensor> {
        TensorOptions::new().arange(start, end, step)
    }

    /// `steps` numbers evenly spaced from `start` to `end`, both included.
    /// For other dtypes, see [`TensorOptions::linspace`].
    ///
    /// # Errors
    /// Same as [`TensorOptions::linspace`].
    #[track_caller]
    pub fn linspace(start: impl Operand, end: impl Operand, steps: usize) -> Result<Tensor> {
        TensorOptions::new().linspace(start, end, steps)
    }

    /// A matrix with ones on the diagonal and zeros elsewhere.
    /// For other dtypes, see [`TensorOptions::eye`].
    ///
    /// # Errors
    /// Same as [`TensorOptions::eye`].
    #[track_caller]
    pub fn eye(rows: usize, cols: usize) -> Result<Tensor> {
        TensorOptions::new().eye(rows, cols)
    }
}
