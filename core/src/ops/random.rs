//! Random tensors. Each element depends only on the seed and on the number of elements drawn before it, not
//! on the machine or the number of threads.

use crate::args::IntoShape;
use crate::cpu::random::{
    SampleReal, fill_bernoulli, fill_cauchy, fill_exponential, fill_geometric, fill_log_normal, fill_normal,
    fill_randint, fill_randperm, fill_trials, fill_uniform, outside_unit,
};
use crate::device::{OnDevice, compute};
use crate::dtype::{DType, default_dtype};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::Sizes;
use crate::names::{Names, rules};
use crate::operand::Operand;
use crate::random::{Generator, next_of_default};
use crate::shape::Shape;
use crate::sizes::checked_numel;
use crate::tensor::NamedTensor;
use std::ops::{Bound, RangeBounds};
use std::panic::Location;

/// The error of random floats in another dtype: of a new tensor, or in place.
#[cold]
#[track_caller]
fn not_floats(op: &'static str, dtype: DType) -> Error {
    let float = crate::default_dtype();
    let error = Error::new(
        ErrorKind::DType,
        op,
        format!("not implemented for {dtype}; it takes floating point dtypes"),
    );
    error.with_repair(match op.ends_with('_') {
        true => format!("x = x.to(DType::{float:?})?; before it"),
        false => format!("TensorOptions::new().dtype(DType::{float:?})"),
    })
}

/// A continuous distribution with its parameters.
#[derive(Clone, Copy)]
enum Continuous {
    Uniform { low: f64, high: f64 },
    Normal { mean: f64, std: f64 },
    LogNormal { mean: f64, std: f64 },
    Exponential { rate: f64 },
    Cauchy { median: f64, sigma: f64 },
}

impl Continuous {
    /// The first condition on the parameters that does not hold.
    fn broken(self) -> Option<&'static str> {
        let (need, holds) = match self {
            Continuous::Uniform { low, high } => {
                ("low <= high, and both finite", low <= high && (high - low).is_finite())
            }
            Continuous::Normal { std, .. } => ("std >= 0", std >= 0.0),
            Continuous::LogNormal { std, .. } => ("std > 0", std > 0.0),
            Continuous::Exponential { rate } => ("rate > 0", rate > 0.0),
            Continuous::Cauchy { sigma, .. } => ("sigma > 0", sigma > 0.0),
        };
        (!holds).then_some(need)
    }

    /// The parameters as messages show them.
    fn parameters(self) -> String {
        match self {
            Continuous::Uniform { low, high } => format!("low={low}, high={high}"),
            Continuous::Normal { mean, std } | Continuous::LogNormal { mean, std } => {
                format!("mean={mean}, std={std}")
            }
            Continuous::Exponential { rate } => format!("rate={rate}"),
            Continuous::Cauchy { median, sigma } => format!("median={median}, sigma={sigma}"),
        }
    }

    /// Fills `out` with samples, which will be rounded to `dtype`.
    fn fill<R: SampleReal>(self, out: &mut [R], dtype: DType, generator: &mut Generator) {
        match self {
            Continuous::Uniform { low, high } => fill_uniform(out, low, high, dtype, generator),
            Continuous::Normal { mean, std } => fill_normal(out, mean, std, generator),
            Continuous::LogNormal { mean, std } => fill_log_normal(out, mean, std, generator),
            Continuous::Exponential { rate } => fill_exponential(out, rate, generator),
            Continuous::Cauchy { median, sigma } => fill_cauchy(out, median, sigma, generator),
        }
    }

    /// A tensor of samples; an error if the dtype is not a float.
    #[track_caller]
    fn draw(self, op: &'static str, shape: Shape, dtype: DType) -> Result<NamedTensor> {
        let mut drawn = floats(op, shape, dtype)?;
        compute(|| {
            let generator = &mut next_of_default(drawn.numel());
            match drawn.dtype() {
                DType::F64 => self.fill(drawn.as_mut_slice::<f64>()?, dtype, generator),
                _ => self.fill(drawn.as_mut_slice::<f32>()?, dtype, generator),
            }
            Ok(())
        })?;
        drawn.into_dtype(dtype)
    }

    /// [`draw`](Self::draw) in place, with a check of the parameters.
    #[track_caller]
    fn draw_in_place(self, op: &'static str, x: &mut NamedTensor) -> Result<()> {
        if let Some(need) = self.broken() {
            let message = format!("expects {need}, but found {}", self.parameters());
            return Err(Error::new(ErrorKind::Value, op, message));
        }
        let _device = OnDevice::of(x);
        *x = self.draw(op, x.shape(), x.dtype())?;
        Ok(())
    }
}

/// A tensor in the dtype in which numbers are drawn for `dtype`; an error if that is not a float.
#[track_caller]
fn floats(op: &'static str, shape: Shape, dtype: DType) -> Result<NamedTensor> {
    match dtype.is_floating_point() {
        true => NamedTensor::filled(op, shape, dtype.wide(), 0.0.into()),
        false => Err(not_floats(op, dtype)),
    }
}

impl NamedTensor {
    /// Uniform random numbers in [0, 1), in the default dtype.
    ///
    /// # Errors
    /// The errors of the shape, [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn rand(shape: impl IntoShape) -> Result<NamedTensor> {
        NamedTensor::uniform("rand", shape.shape_for("rand")?, 0.0, 1.0, default_dtype())
    }

    /// Normal random numbers with mean 0 and standard deviation 1, in the default dtype.
    ///
    /// # Errors
    /// Same as [`rand`](Self::rand).
    #[track_caller]
    pub fn randn(shape: impl IntoShape) -> Result<NamedTensor> {
        NamedTensor::normal("randn", shape.shape_for("randn")?, 0.0, 1.0, default_dtype())
    }

    /// Uniform random numbers in [`low`, `high`), in `dtype`; errors name `op`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless `low <= high` and both are finite, [`ErrorKind::DType`] unless
    /// floating-point.
    #[track_caller]
    pub fn uniform(op: &'static str, shape: Shape, low: f64, high: f64, dtype: DType) -> Result<NamedTensor> {
        if !(low <= high && (high - low).is_finite()) {
            let message =
                format!("low must not be greater than high, and both finite, got low={low}, high={high}");
            return Err(Error::new(ErrorKind::Value, op, message));
        }
        Continuous::Uniform { low, high }.draw(op, shape, dtype)
    }

    /// Normal random numbers, in `dtype`; errors name `op`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for a negative `std`, [`ErrorKind::DType`] unless floating-point.
    #[track_caller]
    pub fn normal(op: &'static str, shape: Shape, mean: f64, std: f64, dtype: DType) -> Result<NamedTensor> {
        if std.is_nan() || std < 0.0 {
            return Err(Error::new(ErrorKind::Value, op, format!("std must not be negative, got {std}")));
        }
        Continuous::Normal { mean, std }.draw(op, shape, dtype)
    }

    /// `values[1]` with probability `p`, else `values[0]`, in `dtype`: a mask for dropout.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless `p` is in [0, 1], [`ErrorKind::DType`] unless floating-point.
    #[track_caller]
    pub fn choice(
        op: &'static str,
        shape: Shape,
        p: f64,
        values: [f64; 2],
        dtype: DType,
    ) -> Result<NamedTensor> {
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::new(
                ErrorKind::Value,
                op,
                format!("probability has to be between 0 and 1, but got {p}"),
            ));
        }
        let mut drawn = floats(op, shape, dtype)?;
        compute(|| {
            let (generator, narrow) = (&mut next_of_default(drawn.numel()), values.map(|value| value as f32));
            match drawn.dtype() {
                DType::F64 => fill_bernoulli(drawn.as_mut_slice::<f64>()?, p, values, generator),
                _ => fill_bernoulli(drawn.as_mut_slice::<f32>()?, p, narrow, generator),
            }
            Ok(())
        })?;
        drawn.into_dtype(dtype)
    }

    /// Uniformly distributed random integers in [`low`, `high`), in `i64`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless `low < high`.
    #[track_caller]
    pub fn randint(low: i64, high: i64, shape: impl IntoShape) -> Result<NamedTensor> {
        if low >= high {
            let message = format!(
                "the lower end must be less than the upper, which is not included, got {low} and {high}"
            );
            return Err(Error::new(ErrorKind::Value, "randint", message));
        }
        let mut out = NamedTensor::filled("randint", shape.shape_for("randint")?, DType::I64, 0.into())?;
        compute(|| {
            let mut generator = next_of_default(out.numel());
            fill_randint(out.as_mut_slice::<i64>()?, low, high, &mut generator);
            Ok(())
        })?;
        Ok(out)
    }

    /// The integers `0..n` in random order, in `i64`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn randperm(n: usize) -> Result<NamedTensor> {
        checked_numel("randperm", &[n], size_of::<i64>())?;
        let shape = Shape { sizes: Sizes::from_slice(&[n]), names: Names::none() };
        let mut out = NamedTensor::filled("randperm", shape, DType::I64, 0.into())?;
        compute(|| {
            let mut generator: Generator = next_of_default(n);
            fill_randperm(out.as_mut_slice::<i64>()?, &mut generator);
            Ok(())
        })?;
        Ok(out)
    }
}

/// Random numbers in place of every element.
impl NamedTensor {
    /// Fills the tensor with uniform random numbers in [`low`, `high`).
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless low <= high, and both finite; [`ErrorKind::DType`] unless floating-point.
    #[track_caller]
    pub fn uniform_(&mut self, low: f64, high: f64) -> Result<&mut NamedTensor> {
        Continuous::Uniform { low, high }.draw_in_place("uniform_", self)?;
        Ok(self)
    }

    /// Fills the tensor with normal random numbers.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless std >= 0; [`ErrorKind::DType`] unless floating-point.
    #[track_caller]
    pub fn normal_(&mut self, mean: f64, std: f64) -> Result<&mut NamedTensor> {
        Continuous::Normal { mean, std }.draw_in_place("normal_", self)?;
        Ok(self)
    }

    /// Fills the tensor with `e^z`, where `z` is normal with this mean and standard deviation.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless std > 0; [`ErrorKind::DType`] unless floating-point.
    #[track_caller]
    pub fn log_normal_(&mut self, mean: f64, std: f64) -> Result<&mut NamedTensor> {
        Continuous::LogNormal { mean, std }.draw_in_place("log_normal_", self)?;
        Ok(self)
    }

    /// Fills the tensor with exponential random numbers with density `rate e^(-rate x)`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless rate > 0; [`ErrorKind::DType`] unless floating-point.
    #[track_caller]
    pub fn exponential_(&mut self, rate: f64) -> Result<&mut NamedTensor> {
        Continuous::Exponential { rate }.draw_in_place("exponential_", self)?;
        Ok(self)
    }

    /// Fills the tensor with Cauchy random numbers with density `σ / (π ((x - median)² + σ²))`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless sigma > 0; [`ErrorKind::DType`] unless floating-point.
    #[track_caller]
    pub fn cauchy_(&mut self, median: f64, sigma: f64) -> Result<&mut NamedTensor> {
        Continuous::Cauchy { median, sigma }.draw_in_place("cauchy_", self)?;
        Ok(self)
    }
}

/// The first and the last of the consecutive integers that a dtype can represent, within the range of `i64`.
fn whole_numbers(dtype: DType) -> (i64, i64) {
    let below = |bits: u32| (-(1 << bits), 1 << bits);
    match dtype {
        DType::Bool => (0, 1),
        DType::U8 => (0, u8::MAX.into()),
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        DType::I64 => (i64::MIN, i64::MAX - 1),
        DType::F16 => below(half::f16::MANTISSA_DIGITS),
        DType::BF16 => below(half::bf16::MANTISSA_DIGITS),
        DType::F32 => below(f32::MANTISSA_DIGITS),
        DType::F64 => below(f64::MANTISSA_DIGITS),
    }
}

impl NamedTensor {
    /// Fills the tensor with the number of trials up to the first success, each with probability `p`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless `p` is in (0, 1); [`ErrorKind::DType`] on `bool`.
    #[track_caller]
    pub fn geometric_(&mut self, p: f64) -> Result<&mut NamedTensor> {
        const OP: &str = "geometric_";
        if !(p > 0.0 && p < 1.0) {
            return Err(Error::new(
                ErrorKind::Value,
                OP,
                format!("expects p to be in (0, 1), but got p={p}"),
            ));
        }
        self.check_not_bool(OP)?;
        let _device = OnDevice::of(self);
        let mut drawn = NamedTensor::filled(OP, self.shape(), DType::F64, 0.0.into())?;
        compute(|| {
            let mut generator = next_of_default(drawn.numel());
            fill_geometric(drawn.as_mut_slice::<f64>()?, p, &mut generator);
            Ok(())
        })?;
        if !self.dtype().is_floating_point() {
            drawn.clamp_max_(whole_numbers(self.dtype()).1)?; // a cast would wrap
        }
        *self = drawn.to(self.dtype())?;
        Ok(self)
    }

    /// Fills the tensor with uniformly distributed integers in `range`. Without a start, the range starts
    /// at 0. Without an end, it ends at the largest integer up to which the dtype represents all integers.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if the range is empty or exceeds the range of the dtype.
    #[track_caller]
    pub fn random_(&mut self, range: impl RangeBounds<i64>) -> Result<&mut NamedTensor> {
        const OP: &str = "random_";
        let (least, last) = whole_numbers(self.dtype());
        let low = match range.start_bound() {
            Bound::Included(low) => *low,
            Bound::Excluded(low) => low.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let high = match range.end_bound() {
            Bound::Included(high) => high.saturating_add(1),
            Bound::Excluded(high) => *high,
            Bound::Unbounded => last.saturating_add(1),
        };
        if low >= high {
            let message = format!(
                "the lower end must be less than the upper, which is not included, got {low} and {high}"
            );
            return Err(Error::about(&[self], ErrorKind::Value, OP, message));
        }
        if low < least || high - 1 > last {
            let message =
                format!("integers from {low} to below {high} are out of bounds for {}", self.dtype());
            return Err(Error::about(&[self], ErrorKind::Value, OP, message)
                .with_repair(format!("x.random_({least}..={last})?")));
        }
        let _device = OnDevice::of(self);
        *self = NamedTensor::randint(low, high, self.shape())?.to(self.dtype())?;
        Ok(self)
    }

    /// Fills the tensor with 1 with probability `p`, else 0. `p` is a number, or a float tensor that
    /// broadcasts to this one.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless `p` is in [0, 1], [`ErrorKind::DType`] for a `p` of integers,
    /// [`ErrorKind::Shape`] for one that does not fit.
    #[track_caller]
    pub fn bernoulli_(&mut self, p: impl Operand) -> Result<&mut NamedTensor> {
        let p = p.operand_beside(DType::F64)?;
        let _device = OnDevice::of_inputs("bernoulli_", &[&[&*self, &*p]])?;
        rules::unify("bernoulli_", "broadcast", self.input(), p.input())?;
        let p = if p.is_number() { p.to(DType::F64)? } else { p.unnamed() };
        let drawn = p.expand(self.sizes())?.bernoulli()?.to(self.dtype())?;
        *self = drawn.with_names(self.names().clone());
        Ok(self)
    }

    /// Normal random numbers, each with its own mean and standard deviation. This tensor has the means; it
    /// and `std` broadcast to each other, and names unify.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for a negative `std`, [`ErrorKind::DType`] unless floating-point,
    /// [`ErrorKind::Shape`], and the errors of the name rule.
    #[track_caller]
    pub fn normal_around(&self, std: impl Operand) -> Result<NamedTensor> {
        const OP: &str = "normal";
        let std = &*std.operand_beside(self.dtype())?;
        let _device = OnDevice::of_inputs(OP, &[&[self, std]])?;
        if !std.ge(0)?.is_true_everywhere()? {
            return Err(Error::about(
                &[self, std],
                ErrorKind::Value,
                OP,
                "no element of std may be negative",
            ));
        }
        // The sum with zeros has the sizes, the names and the dtype of the result.
        let shape = self.add(&std.mul(0)?)?;
        let drawn = NamedTensor::normal(OP, shape.shape(), 0.0, 1.0, shape.dtype())?;
        drawn.mul(std)?.add(self)
    }

    /// For each element `p` of this tensor, 1 with probability `p`, else 0.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] unless all are in [0, 1], [`ErrorKind::DType`] unless floating-point.
    #[track_caller]
    pub fn bernoulli(&self) -> Result<NamedTensor> {
        const OP: &str = "bernoulli";
        self.check_float(OP)?;
        let _device = OnDevice::of(self);
        let mut drawn = NamedTensor::filled(OP, self.shape(), DType::F64, 0.0.into())?;
        let caller = Location::caller();
        compute(|| {
            let p = self.to_vec::<f64>()?;
            if let Some(bad) = outside_unit(&p) {
                let message = format!("probabilities must be between 0 and 1, got {bad}");
                return Err(Error::new(ErrorKind::Value, OP, message).at(caller));
            }
            let mut generator = next_of_default(drawn.numel());
            fill_trials(drawn.as_mut_slice::<f64>()?, &p, &mut generator);
            Ok(())
        })?;
        drawn.to(self.dtype())
    }
}
