//! Ops on two or three tensors by element. Sizes broadcast from the right, names unify from the right, dtypes
//! promote; a plain number does not widen the dtype of a tensor within its category. `dtypes` says what else
//! a row takes or refuses, `before` what is looked at before it runs.

use crate::dtype::{Category, DType, Scalar, default_dtype};
use crate::error::{Error, ErrorKind, Result};
use crate::ops::by_element::{Kernel, beyond, does_not_fit, promoted};
use crate::tensor::NamedTensor;
use namegrad_macros::ops;
use smallvec::SmallVec;

ops! { binary;
    //! # Arithmetic and comparisons by element
    /// `x + other`; "or" of two bools.
    add add_ (x, other) { float: x + other, int: x.wrapping_add(other), boolean: x | other }
    /// `x - other`; no bools, as neither "or" nor "exclusive or" is meant for sure.
    sub sub_ (x, other) { float: x - other, int: x.wrapping_sub(other), dtypes: Dtypes::NoBool }
    /// `x other`; "and" of two bools.
    mul mul_ (x, other) { float: x * other, int: x.wrapping_mul(other), boolean: x & other }
    /// `x / other`; integers divide as floats.
    div div_ (x, other) { float: x / other }
    /// `x / other` rounded down.
    floor_divide floor_divide_ (x, other) { float: x.div_floor(other), int: x.div_floor(other), before: no_zero }
    /// `x / other` rounded towards zero.
    trunc_divide trunc_divide_ (x, other) { float: (x / other).trunc(), int: x.div_trunc(other), before: no_zero }
    /// The remainder of `x / other` with the sign of `x`.
    fmod fmod_ (x, other) { float: x % other, int: x.rem_trunc(other), before: no_zero }
    /// The remainder of `x / other` with the sign of `other`.
    remainder remainder_ (x, other) { float: x.remainder(other), int: x.rem_floor(other), before: no_zero }
    /// `x^exponent`. Integers to the power of a negative number are an error; where a tensor has negative
    /// exponents, what is not 1 or -1 becomes 0.
    pow pow_ (x, exponent) { float: x.powf(exponent), int: x.power(exponent), before: powers }
    /// The angle of the point `(other, x)`, `x` being the ordinate: `atan(x / other)` in the right quadrant,
    /// in radians.
    atan2 atan2_ (x, other) { float: x.atan2(other) }
    /// `√(x² + other²)` without overflow.
    hypot hypot_ (x, other) { float: x.hypot(other), dtypes: Dtypes::Floats }
    /// `ln(e^x + e^other)` without overflow.
    logaddexp (x, other) { float: x.logaddexp(other) }
    /// `log2(2^x + 2^other)` without overflow.
    logaddexp2 (x, other) { float: x.logaddexp2(other) }
    /// `x ln other`, and 0 where `x` is 0.
    xlogy xlogy_ (x, other) { float: x.xlogy(other) }
    /// `|x|` with the sign of `other`.
    copysign copysign_ (x, other) { float: x.copysign(other) }
    /// The larger of `x` and `other`; NaN if either is.
    maximum (x, other) { float: x.maximum(other), int: x.max(other), boolean: x | other, before: numbers_fit }
    /// The smaller of `x` and `other`; NaN if either is.
    minimum (x, other) { float: x.minimum(other), int: x.min(other), boolean: x & other, before: numbers_fit }
    /// The larger of `x` and `other`; the other one if one is NaN.
    fmax (x, other) { float: x.fmax(other), int: x.max(other), boolean: x | other, before: numbers_fit }
    /// The smaller of `x` and `other`; the other one if one is NaN.
    fmin (x, other) { float: x.fmin(other), int: x.min(other), boolean: x & other, before: numbers_fit }
    /// The larger of `x` and `min`, a lower bound: as [`maximum`](Self::maximum), but where both are equal
    /// the gradient is that of `x`.
    clamp_min clamp_min_ (x, min) { like: maximum, before: numbers_fit }
    /// The smaller of `x` and `max`, an upper bound: as [`minimum`](Self::minimum), but where both are equal
    /// the gradient is that of `x`.
    clamp_max clamp_max_ (x, max) { like: minimum, before: numbers_fit }
    /// The step at 0: 0 for `x < 0`, 1 for `x > 0`, and `values` where `x` is 0; 0 for NaN.
    heaviside heaviside_ (x, values) {
        float: if x == T::ZERO { values } else if x > T::ZERO { T::ONE } else { T::ZERO },
        int: if x == T::ZERO { values } else { x.max(T::ZERO).sign() },
        boolean: x | values, before: numbers_fit
    }
    /// Is `x = other`?
    eq eq_ (x, other) -> bool { float: x == other, int: x == other, boolean: x == other }
    /// Is `x ≠ other`?
    ne ne_ (x, other) -> bool { float: x != other, int: x != other, boolean: x != other }
    /// Is `x < other`?
    lt lt_ (x, other) -> bool { float: x < other, int: x < other, boolean: !x & other }
    /// Is `x ≤ other`?
    le le_ (x, other) -> bool { float: x <= other, int: x <= other, boolean: x <= other }
    /// Is `x > other`?
    gt gt_ (x, other) -> bool { float: x > other, int: x > other, boolean: x & !other }
    /// Is `x ≥ other`?
    ge ge_ (x, other) -> bool { float: x >= other, int: x >= other, boolean: x >= other }
    /// Are both not zero?
    logical_and logical_and_ (x, other) -> bool { float: (x != T::ZERO) & (other != T::ZERO), int: (x != T::ZERO) & (other != T::ZERO), boolean: x & other }
    /// Is one not zero?
    logical_or logical_or_ (x, other) -> bool { float: (x != T::ZERO) | (other != T::ZERO), int: (x != T::ZERO) | (other != T::ZERO), boolean: x | other }
    /// Is exactly one not zero?
    logical_xor logical_xor_ (x, other) -> bool { float: (x != T::ZERO) ^ (other != T::ZERO), int: (x != T::ZERO) ^ (other != T::ZERO), boolean: x ^ other }
    /// "And" of the bits.
    bitwise_and bitwise_and_ (x, other) { int: x & other, boolean: x & other }
    /// "Or" of the bits.
    bitwise_or bitwise_or_ (x, other) { int: x | other, boolean: x | other }
    /// "Exclusive or" of the bits.
    bitwise_xor bitwise_xor_ (x, other) { int: x ^ other, boolean: x ^ other }
    /// The bits of `x` moved `other` places up, zeros coming in: `x 2^other`; 0 unless `0 <= other` is less
    /// than the number of bits.
    bitwise_left_shift bitwise_left_shift_ (x, other) { int: x.shift_left(other), before: numbers_fit }
    /// The bits of `x` moved `other` places down, the sign coming in: `x / 2^other` rounded down; nothing but
    /// the sign unless `0 <= other` is less than the number of bits.
    bitwise_right_shift bitwise_right_shift_ (x, other) { int: x.shift_right(other), before: numbers_fit }
    /// The greatest common divisor, not negative; that with 0 is the other number.
    gcd gcd_ (x, other) { int: x.gcd(other), before: numbers_fit }
    /// The least common multiple, not negative; that with 0 is 0.
    lcm lcm_ (x, other) { int: x.lcm(other), before: numbers_fit }
    /// `x + weight (end - x)`: from `x` towards `end`, all of one floating-point dtype.
    lerp lerp_ (x, end, weight) {
        float: if weight.abs() < T::HALF { x + weight * (end - x) } else { end - (end - x) * (T::ONE - weight) },
        dtypes: Dtypes::OneFloat
    }
    /// Each element between `min` and `max`: `min(max(x, min), max)`. At a bound the gradient is that of `x`.
    clamp clamp_ (x, min, max) { float: x.maximum(min).minimum(max), int: x.max(min).min(max), before: numbers_fit }
    /// `x` where the mask is true, elsewhere `other`: PyTorch's `torch.where(condition, x, other)`. Both can be
    /// numbers.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([1.0, -2.0])?;
    /// assert_eq!(x.gt(0)?.choose(&x, 0.5)?.to_vec::<f32>()?, [1.0, 0.5]);
    /// assert_eq!(x.gt(0)?.choose(1, -1)?.to_vec::<i64>()?, [1, -1]);
    /// # Ok::<(), Error>(())
    /// ```
    choose (condition: bool, x, other) {
        float: if condition { x } else { other }, int: if condition { x } else { other },
        boolean: if condition { x } else { other }, before: numbers_fit
    }
    /// The tensor with `value`, a number or 0-d tensor, where `mask` is true. The mask broadcasts to the
    /// tensor.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([1.0, -2.0])?;
    /// assert_eq!(x.masked_fill(&x.lt(0)?, 0.0)?.to_vec::<f32>()?, [1.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    masked_fill masked_fill_ (x, mask: bool, value) {
        float: if mask { value } else { x }, int: if mask { value } else { x }, boolean: if mask { value } else { x },
        dtypes: Dtypes::OfFirst, before: one_value
    }
}

/// The value of a fill is one, and the mask of a tensor with names has no more dims than it.
fn one_value(
    op: &'static str,
    inputs: &[&NamedTensor; 3],
    _: &[Scalar],
) -> Result<Option<&'static Kernel<1>>> {
    let [x, mask, _] = inputs;
    if mask.ndim() > x.ndim() && x.has_names() {
        let (mask, x) = (mask.names().list(mask.ndim()), x.names().list(x.ndim()));
        let message = format!(
            "attempted to broadcast Tensor{mask} to Tensor{x} but the number of dims ({}) must be greater than \
             or equal to the number of dims in the mask ({})",
            inputs[0].ndim(),
            inputs[1].ndim()
        );
        return Err(Error::about(inputs, ErrorKind::Shape, op, message));
    }
    if inputs[2].ndim() == 0 {
        return match beyond(&inputs[2..], x.dtype())? {
            Some(number) => Err(does_not_fit(op, Some(x), number, x.dtype())),
            None => Ok(None),
        };
    }
    let ndim = inputs[2].ndim();
    let message = format!("the value must be a number or a 0-d tensor, got a tensor of {ndim} dims");
    Err(Error::about(inputs, ErrorKind::Shape, op, message).with_repair("mask.choose(&value, &x)?"))
}

/// A plain number fits the integer dtype that is computed in, as a cast would wrap it. A sum or product that
/// wraps in the end is the same whether or not its terms were wrapped first, so those rows do not ask.
fn numbers_fit<const N: usize>(
    op: &'static str,
    inputs: &[&NamedTensor; N],
    _: &[Scalar],
) -> Result<Option<&'static Kernel<1>>> {
    if inputs.iter().any(|x| x.is_number()) {
        check_numbers(op, inputs)?;
    }
    Ok(None)
}

#[cold]
#[track_caller]
fn check_numbers(op: &'static str, inputs: &[&NamedTensor]) -> Result<()> {
    // A mask takes no part.
    let values: SmallVec<[&NamedTensor; 3]> =
        inputs.iter().copied().filter(|x| x.dtype() != DType::Bool).collect();
    if values.is_empty() {
        return Ok(());
    }
    let dtype = promoted(&values);
    match beyond(&values, dtype)? {
        Some(number) => Err(does_not_fit(op, values.iter().copied().find(|x| !x.is_number()), number, dtype)),
        None => Ok(()),
    }
}

/// An integer divided by zero is an error.
fn no_zero(
    op: &'static str,
    inputs: &[&NamedTensor; 2],
    args: &[Scalar],
) -> Result<Option<&'static Kernel<1>>> {
    numbers_fit(op, inputs, args)?;
    let dtype = promoted(inputs);
    let divides = dtype.category() == Category::Integer && inputs[0].numel() > 0;
    // Cast first: a 0-d tensor of 256 is zero as a byte.
    if divides && inputs[1].to(dtype)?.has_zero()? {
        let message = "ZeroDivisionError: an integer divided by zero";
        return Err(Error::about(inputs, ErrorKind::Value, op, message).with_repair(format!(
            "x.to(DType::{:?})?, whose quotients by zero are infinite or NaN",
            default_dtype()
        )));
    }
    Ok(None)
}

/// What `pow` is where the exponent is a plain number.
fn powers(
    op: &'static str,
    inputs: &[&NamedTensor; 2],
    args: &[Scalar],
) -> Result<Option<&'static Kernel<1>>> {
    let [x, exponent] = *inputs;
    check_power(x, exponent)?;
    numbers_fit(op, inputs, args)?;
    Ok(power_of(x, exponent))
}

/// Integers have no power of a negative number, which would be 0 but for 1 and -1.
#[track_caller]
fn check_power(x: &NamedTensor, exponent: &NamedTensor) -> Result<()> {
    let whole = |x: &NamedTensor| !x.dtype().is_floating_point();
    if !exponent.is_number() || !whole(exponent) || !whole(x) || exponent.item::<Scalar>()?.to_f64() >= 0.0 {
        return Ok(());
    }
    Err(Error::about(&[x], ErrorKind::DType, "pow", "Integers to negative integer powers are not allowed.")
        .with_repair(format!("x.to(DType::{:?})?", default_dtype())))
}

/// The op that raises floats to this number, if it is a cheaper one: PyTorch's choice, whose results at -0
/// and -inf are those of the cheaper op.
fn power_of(x: &NamedTensor, exponent: &NamedTensor) -> Option<&'static Kernel<1>> {
    use crate::ops::unary::elements::{POSITIVE, RECIPROCAL, RSQRT, SQRT, SQUARE};
    use by_number::elements::{CUBE, FIRST_POWER, ZEROTH_POWER};
    if !exponent.is_number() || x.is_number() {
        return None;
    }
    if exponent.dtype() == DType::Bool && x.dtype() == DType::Bool {
        // The powers that bools have, as in PyTorch.
        return Some(if exponent.item::<Scalar>().ok()?.to_f64() == 0.0 {
            &ZEROTH_POWER
        } else {
            &FIRST_POWER
        });
    }
    if !x.dtype().is_floating_point() {
        return None;
    }
    let powers =
        [(-1.0, &RECIPROCAL), (-0.5, &RSQRT), (0.5, &SQRT), (1.0, &POSITIVE), (2.0, &SQUARE), (3.0, &CUBE)];
    let exponent = exponent.item::<Scalar>().ok()?.to_f64();
    powers.into_iter().find(|(power, _)| *power == exponent).map(|(_, kernel)| kernel)
}

/// `pow` for some numbers.
mod by_number {
    namegrad_macros::kernels! {
        /// `x³`: what `pow` is for the number 3.
        cube (x) { float: x * x * x }
        /// What `pow` is of bools for the number `true`.
        first_power (x) { boolean: x }
        /// What `pow` is of bools for the number `false`.
        zeroth_power (x) { boolean: x | !x }
    }
}

impl crate::NamedTensor {
    /// The dtype that an op by element computes in on this tensor and `other`.
    pub fn result_type(&self, other: &crate::NamedTensor) -> crate::DType {
        promoted(&[self, other])
    }

    /// The next number of the dtype after each element towards `other`. Not a row of the table, which would
    /// compute in `f32` for half types.
    ///
    /// # Errors
    /// As `namegrad::Tensor::nextafter`.
    #[track_caller]
    pub fn nextafter(&self, other: impl crate::Operand) -> crate::Result<crate::NamedTensor> {
        self.next_towards(&*other.operand_beside(self.dtype())?)
    }

    /// [`nextafter`](Self::nextafter), compiled once for all operands.
    #[track_caller]
    fn next_towards(&self, other: &NamedTensor) -> Result<NamedTensor> {
        use crate::cpu::fill::{half_down, half_up, next_after};
        use half::{bf16, f16};
        const OP: &str = "nextafter";
        let dtype = self.result_type(other);
        let names = crate::names::rules::unify(OP, "broadcast", self.input(), other.input())?;
        let sizes = crate::shape::broadcast(OP, self.sizes(), other.sizes())
            .map_err(|error| error.with_operands([self.shape(), other.shape()]))?;
        let (x, y) =
            (self.unnamed().expand(&sizes[..])?.to(dtype)?, other.unnamed().expand(&sizes[..])?.to(dtype)?);
        let (x, y) = (x.contiguous()?, y.contiguous()?);
        let mut next = crate::NamedTensor::fresh(OP, crate::shape::Shape { sizes, names }, dtype)?;
        match dtype {
            crate::DType::F32 => next_after(
                [x.as_slice()?, y.as_slice()?],
                [f32::next_up, f32::next_down],
                f32::NAN,
                next.as_mut_slice()?,
            ),
            crate::DType::F64 => next_after(
                [x.as_slice()?, y.as_slice()?],
                [f64::next_up, f64::next_down],
                f64::NAN,
                next.as_mut_slice()?,
            ),
            crate::DType::F16 => next_after(
                [x.as_slice()?, y.as_slice()?],
                [|x: f16| f16::from_bits(half_up(x.to_bits())), |x| f16::from_bits(half_down(x.to_bits()))],
                f16::NAN,
                next.as_mut_slice()?,
            ),
            crate::DType::BF16 => next_after(
                [x.as_slice()?, y.as_slice()?],
                [
                    |x: bf16| bf16::from_bits(half_up(x.to_bits())),
                    |x| bf16::from_bits(half_down(x.to_bits())),
                ],
                bf16::NAN,
                next.as_mut_slice()?,
            ),
            _ => {
                let message = format!("not implemented for {dtype}; it takes floating-point dtypes");
                return Err(crate::Error::about(&[self, other], crate::ErrorKind::DType, OP, message)
                    .with_repair(format!("x.to(DType::{:?})?", default_dtype())));
            }
        }
        Ok(next)
    }
}
