//! Elementwise ops on two or three tensors. Sizes broadcast from the right, names unify from the right, and
//! dtypes promote; a plain number does not widen the dtype of a tensor within its category. `dtypes` is an
//! extra rule about dtypes, and `before` a function that checks the inputs before the op runs.

use crate::cpu::math::rare::{self, Family};
use crate::dtype::{Category, DType, Scalar, default_dtype};
use crate::error::{Error, ErrorKind, Result};
use crate::ops::by_element::{Instead, Kernel, promoted};
use crate::tensor::NamedTensor;
use crate::tensor::range::{beyond, does_not_fit};
use namegrad_macros::ops;
use smallvec::SmallVec;

ops! { binary;
    //! # Elementwise arithmetic and comparisons
    /// `x + other`; the logical "or" for two `bool`s.
    add add_ (x, other) halves { float: x + other, int: x.wrapping_add(other), boolean: x | other }
    /// `x - other`; `bool` is an error, as in PyTorch.
    sub sub_ (x, other) halves { float: x - other, int: x.wrapping_sub(other), dtypes: Dtypes::NoBool }
    /// `x other`; the logical "and" for two `bool`s.
    mul mul_ (x, other) halves { float: x * other, int: x.wrapping_mul(other), boolean: x & other }
    /// `x / other`; dividing integers gives floats.
    div div_ (x, other) halves { float: x / other }
    /// `x / other` rounded down.
    floor_divide floor_divide_ (x, other) scalar { float: x.div_floor(other), int: x.floor_div(other), before: no_zero }
    /// `x / other` rounded toward zero.
    trunc_divide trunc_divide_ (x, other) plain { float: (x / other).trunc(), int: x.wrapping_div(other), before: no_zero }
    /// The remainder of `x / other` with the sign of `x`.
    fmod fmod_ (x, other) scalar { float: x % other, int: x.wrapping_rem(other), before: no_zero }
    /// The remainder of `x / other` with the sign of `other`.
    remainder remainder_ (x, other) scalar { float: x.remainder(other), int: x.floor_rem(other), before: no_zero }
    /// `x^exponent`. For integers, a negative number as the exponent is an error; with a tensor of exponents,
    /// a negative power of anything but 1 and -1 is 0.
    pow pow_ (x, exponent) long { float: x.powf(exponent), int: x.power(exponent), before: powers }
    /// The angle of the point with abscissa `other` and ordinate `x`: `atan(x / other)` in the right
    /// quadrant, in radians.
    atan2 atan2_ (x, other) scalar { float: x.atan2(other) }
    /// `√(x² + other²)` without overflow.
    hypot hypot_ (x, other) scalar { float: x.hypot(other), dtypes: Dtypes::Floats }
    /// `ln(e^x + e^other)` without overflow.
    logaddexp (x, other) scalar { float: x.logaddexp(other) }
    /// `log2(2^x + 2^other)` without overflow.
    logaddexp2 (x, other) scalar { float: x.logaddexp2(other) }
    /// `x ln other`, and 0 where `x` is 0.
    xlogy xlogy_ (x, other) long { float: x.xlogy(other) }
    /// `x ln(1 + other)`, and 0 where `x` is 0.
    xlog1py xlog1py_ (x, other) scalar { float: if x == T::ZERO && !other.is_nan() { T::ZERO } else { x * other.ln_1p() } }
    /// Hurwitz's zeta function `Σ (other + k)⁻ˣ` over `k ≥ 0`; infinite at `x = 1`, NaN below.
    zeta (x, other) scalar { float: T::from_f64(rare::zeta(x.to_f64(), other.to_f64())) }
    /// The regularized lower incomplete gamma function `P(x, other)`: `1/Γ(x) ∫ t^(x-1) e^-t dt` from 0 to
    /// `other`. NaN if one is negative.
    gammainc (x, other) scalar { float: T::from_f64(rare::gamma_p_q(x.to_f64(), other.to_f64())[0]) }
    /// The regularized upper incomplete gamma function, `1 -` [`gammainc`](Self::gammainc) without
    /// cancellation.
    gammaincc (x, other) scalar { float: T::from_f64(rare::gamma_p_q(x.to_f64(), other.to_f64())[1]) }
    /// The Chebyshev polynomial of the first kind of degree `n` at `x`; 0 for a negative degree.
    chebyshev_polynomial_t (x, n) scalar { float: T::from_f64(rare::polynomial(Family::ChebyshevT, x.to_f64(), n.to_f64())) }
    /// The Chebyshev polynomial of the second kind of degree `n` at `x`; 0 for a negative degree.
    chebyshev_polynomial_u (x, n) scalar { float: T::from_f64(rare::polynomial(Family::ChebyshevU, x.to_f64(), n.to_f64())) }
    /// The Chebyshev polynomial of the third kind of degree `n` at `x`; 0 for a negative degree.
    chebyshev_polynomial_v (x, n) scalar { float: T::from_f64(rare::polynomial(Family::ChebyshevV, x.to_f64(), n.to_f64())) }
    /// The Chebyshev polynomial of the fourth kind of degree `n` at `x`; 0 for a negative degree.
    chebyshev_polynomial_w (x, n) scalar { float: T::from_f64(rare::polynomial(Family::ChebyshevW, x.to_f64(), n.to_f64())) }
    /// The physicist's Hermite polynomial of degree `n` at `x`; 0 for a negative degree.
    hermite_polynomial_h (x, n) scalar { float: T::from_f64(rare::polynomial(Family::HermiteH, x.to_f64(), n.to_f64())) }
    /// The probabilist's Hermite polynomial of degree `n` at `x`; 0 for a negative degree.
    hermite_polynomial_he (x, n) scalar { float: T::from_f64(rare::polynomial(Family::HermiteHe, x.to_f64(), n.to_f64())) }
    /// The Laguerre polynomial of degree `n` at `x`; 0 for a negative degree.
    laguerre_polynomial_l (x, n) scalar { float: T::from_f64(rare::polynomial(Family::LaguerreL, x.to_f64(), n.to_f64())) }
    /// The Legendre polynomial of degree `n` at `x`; 0 for a negative degree.
    legendre_polynomial_p (x, n) scalar { float: T::from_f64(rare::polynomial(Family::LegendreP, x.to_f64(), n.to_f64())) }
    /// [`chebyshev_polynomial_t`](Self::chebyshev_polynomial_t) at `2 x - 1`.
    shifted_chebyshev_polynomial_t (x, n) scalar { float: T::from_f64(rare::shifted(Family::ChebyshevT, x.to_f64(), n.to_f64())) }
    /// [`chebyshev_polynomial_u`](Self::chebyshev_polynomial_u) at `2 x - 1`.
    shifted_chebyshev_polynomial_u (x, n) scalar { float: T::from_f64(rare::shifted(Family::ChebyshevU, x.to_f64(), n.to_f64())) }
    /// [`chebyshev_polynomial_v`](Self::chebyshev_polynomial_v) at `2 x - 1`.
    shifted_chebyshev_polynomial_v (x, n) scalar { float: T::from_f64(rare::shifted(Family::ChebyshevV, x.to_f64(), n.to_f64())) }
    /// [`chebyshev_polynomial_w`](Self::chebyshev_polynomial_w) at `2 x - 1`.
    shifted_chebyshev_polynomial_w (x, n) scalar { float: T::from_f64(rare::shifted(Family::ChebyshevW, x.to_f64(), n.to_f64())) }
    /// The cross entropy `-(other ln x + (1 - other) ln(1 - x))` of a probability `x` with the target
    /// `other`, another probability. Logarithms are at least -100, and the derivative divides by at least
    /// 1e-12, so that a probability of 0 or 1 gives finite numbers.
    /// [`binary_cross_entropy`](https://docs.rs/namegrad) in `nn::functional` checks its inputs, and adds
    /// weights and reductions.
    bernoulli_cross_entropy (x, other) long {
        float: (other - T::ONE) * (-x).ln_1p().maximum(T::from_f64(-100.0)) - other * x.ln().maximum(T::from_f64(-100.0)),
        dtypes: Dtypes::Floats
    }
    /// `|x|` with the sign of `other`.
    copysign copysign_ (x, other) plain { float: x.copysign(other) }
    /// The larger of `x` and `other`; NaN if either is.
    maximum (x, other) { float: x.maximum(other), int: x.max(other), boolean: x | other, before: numbers_fit }
    /// The smaller of `x` and `other`; NaN if either is.
    minimum (x, other) { float: x.minimum(other), int: x.min(other), boolean: x & other, before: numbers_fit }
    /// The larger of `x` and `other`; if one is NaN, the other one.
    fmax (x, other) plain { float: x.fmax(other), int: x.max(other), boolean: x | other, before: numbers_fit }
    /// The smaller of `x` and `other`; if one is NaN, the other one.
    fmin (x, other) plain { float: x.fmin(other), int: x.min(other), boolean: x & other, before: numbers_fit }
    /// The larger of `x` and the lower bound `min`. This is [`maximum`](Self::maximum), except that the
    /// gradient goes to `x` if both are equal.
    clamp_min clamp_min_ (x, min) { like: maximum, dtypes: Dtypes::Bounds }
    /// The smaller of `x` and the upper bound `max`. This is [`minimum`](Self::minimum), except that the
    /// gradient goes to `x` if both are equal.
    clamp_max clamp_max_ (x, max) { like: minimum, dtypes: Dtypes::Bounds }
    /// The Heaviside step function: 0 for `x < 0`, 1 for `x > 0`, and `values` where `x` is 0; 0 for NaN.
    heaviside heaviside_ (x, values) plain {
        float: if x == T::ZERO { values } else if x > T::ZERO { T::ONE } else { T::ZERO },
        int: if x == 0 { values } else { x.max(0).signum() },
        boolean: x | values, before: numbers_fit
    }
    /// Whether `x = other`, for each element.
    eq eq_ (x, other) -> bool plain { float: x == other, int: x == other, boolean: x == other }
    /// Whether `x ≠ other`, for each element.
    ne ne_ (x, other) -> bool plain { float: x != other, int: x != other, boolean: x != other }
    /// Whether `x < other`, for each element.
    lt lt_ (x, other) -> bool plain { float: x < other, int: x < other, boolean: !x & other }
    /// Whether `x ≤ other`, for each element.
    le le_ (x, other) -> bool plain { float: x <= other, int: x <= other, boolean: x <= other }
    /// Whether `x > other`, for each element.
    gt gt_ (x, other) -> bool plain { float: x > other, int: x > other, boolean: x & !other }
    /// Whether `x ≥ other`, for each element.
    ge ge_ (x, other) -> bool plain { float: x >= other, int: x >= other, boolean: x >= other }
    /// Whether both elements are nonzero.
    logical_and logical_and_ (x, other) -> bool plain { float: (x != T::ZERO) & (other != T::ZERO), int: (x != 0) & (other != 0), boolean: x & other }
    /// Whether at least one of the elements is nonzero.
    logical_or logical_or_ (x, other) -> bool plain { float: (x != T::ZERO) | (other != T::ZERO), int: (x != 0) | (other != 0), boolean: x | other }
    /// Whether exactly one of the elements is nonzero.
    logical_xor logical_xor_ (x, other) -> bool plain { float: (x != T::ZERO) ^ (other != T::ZERO), int: (x != 0) ^ (other != 0), boolean: x ^ other }
    /// The bitwise "and".
    bitwise_and bitwise_and_ (x, other) { int: x & other, boolean: x & other }
    /// The bitwise "or".
    bitwise_or bitwise_or_ (x, other) { int: x | other, boolean: x | other }
    /// The bitwise "exclusive or".
    bitwise_xor bitwise_xor_ (x, other) { int: x ^ other, boolean: x ^ other }
    /// `x` shifted left by `other` bits: `x 2^other`. The result is 0 if `other` is negative or not less than
    /// the number of bits.
    bitwise_left_shift bitwise_left_shift_ (x, other) { int: x.shift_left(other), before: numbers_fit }
    /// `x` shifted right by `other` bits, with the sign shifted in: `x / 2^other` rounded down. If `other` is
    /// negative or not less than the number of bits, the result is 0, or -1 for negative `x`.
    bitwise_right_shift bitwise_right_shift_ (x, other) { int: x.shift_right(other), before: numbers_fit }
    /// The greatest common divisor, which is never negative. With 0 it is the absolute value of the other
    /// number.
    gcd gcd_ (x, other) { int: x.gcd(other), before: numbers_fit }
    /// The least common multiple, which is never negative. With 0 it is 0.
    lcm lcm_ (x, other) { int: x.lcm(other), before: numbers_fit }
    /// The linear interpolation `x + weight (end - x)` from `x` to `end`. All tensors must have the same
    /// floating-point dtype.
    lerp lerp_ (x, end, weight) {
        float: if weight.abs() < T::HALF { x + weight * (end - x) } else { end - (end - x) * (T::ONE - weight) },
        dtypes: Dtypes::OneFloat
    }
    /// `x` limited to the range from `min` to `max`: `min(max(x, min), max)`. At a bound, the gradient goes
    /// to `x`.
    clamp clamp_ (x, min, max) { float: x.maximum(min).minimum(max), int: x.max(min).min(max), dtypes: Dtypes::Bounds }
    /// `x` where the mask is true, `other` elsewhere: PyTorch's `torch.where(condition, x, other)`. Both `x`
    /// and `other` can be numbers.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([1.0, -2.0])?;
    /// assert_eq!(x.gt(0)?.choose(&x, 0.5)?.to_vec::<f32>()?, [1.0, 0.5]);
    /// assert_eq!(x.gt(0)?.choose(1, -1)?.to_vec::<i64>()?, [1, -1]);
    /// # Ok::<(), Error>(())
    /// ```
    choose (condition: bool, x, other) {
        any: if condition { x } else { other }, before: numbers_fit
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
        any: if mask { value } else { x }, dtypes: Dtypes::OfFirst, before: one_value
    }
}

/// Checks that the value of a fill is a single number, and that the mask of a named tensor has no more dims
/// than the tensor.
fn one_value(op: &'static str, inputs: &[&NamedTensor], _: &[Scalar]) -> Result<Option<Instead>> {
    let (x, mask) = (inputs[0], inputs[1]);
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

/// Checks that plain numbers fit the integer dtype of the computation, because a cast would wrap them. Sums
/// and products wrap anyway, so their rows do not need this check.
fn numbers_fit(op: &'static str, inputs: &[&NamedTensor], _: &[Scalar]) -> Result<Option<Instead>> {
    if inputs.iter().any(|x| x.is_number()) {
        check_numbers(op, inputs)?;
    }
    Ok(None)
}

#[cold]
#[track_caller]
fn check_numbers(op: &'static str, inputs: &[&NamedTensor]) -> Result<()> {
    // A mask does not count.
    let mut values: SmallVec<[&NamedTensor; 3]> = SmallVec::from_slice(inputs);
    values.retain(|x| x.dtype() != DType::Bool);
    if values.is_empty() {
        return Ok(());
    }
    let dtype = promoted(&values);
    match beyond(&values, dtype)? {
        Some(number) => Err(does_not_fit(op, values.iter().copied().find(|x| !x.is_number()), number, dtype)),
        None => Ok(()),
    }
}

/// Returns an error if an integer is divided by zero.
fn no_zero(op: &'static str, inputs: &[&NamedTensor], args: &[Scalar]) -> Result<Option<Instead>> {
    numbers_fit(op, inputs, args)?;
    let dtype = promoted(inputs);
    let divides = dtype.category() == Category::Integer && inputs[0].numel() > 0;
    // Cast first, because 256 in a 0-d tensor is zero as a byte.
    if divides && inputs[1].to(dtype)?.has_zero()? {
        let message = "ZeroDivisionError: an integer divided by zero";
        return Err(Error::about(inputs, ErrorKind::Value, op, message).with_repair(format!(
            "x.to(DType::{:?})?, whose quotients by zero are infinite or NaN",
            default_dtype()
        )));
    }
    Ok(None)
}

/// Finds a cheaper kernel for `pow` if the exponent is a plain number.
fn powers(op: &'static str, inputs: &[&NamedTensor], args: &[Scalar]) -> Result<Option<Instead>> {
    let (x, exponent) = (inputs[0], inputs[1]);
    check_power(x, exponent)?;
    numbers_fit(op, inputs, args)?;
    if let Some(kernel) = power_of(x, exponent) {
        return Ok(Some(Instead::OfFirst(kernel)));
    }
    Ok(odd_powers(x, exponent)?.map(|odd| Instead::Masked(&by_number::elements::POWER_OF_SIZE, odd)))
}

/// Where integer exponents of floats are odd, if they may be too large for the dtype of the float, which has
/// only even numbers there: the sign of the power comes from the exact exponent.
fn odd_powers(x: &NamedTensor, exponent: &NamedTensor) -> Result<Option<NamedTensor>> {
    const EXACT: u64 = 1 << f32::MANTISSA_DIGITS;
    if !x.dtype().is_floating_point() || !matches!(exponent.dtype(), DType::I32 | DType::I64) {
        return Ok(None);
    }
    if exponent.is_number() && exponent.item::<i64>()?.unsigned_abs() <= EXACT {
        return Ok(None);
    }
    exponent.bitwise_and(1)?.ne(0).map(Some)
}

/// Returns an error for a negative power of integers, which would be 0 except for 1 and -1.
#[track_caller]
fn check_power(x: &NamedTensor, exponent: &NamedTensor) -> Result<()> {
    let whole = |x: &NamedTensor| !x.dtype().is_floating_point();
    if !exponent.is_number() || !whole(exponent) || !whole(x) || exponent.item::<Scalar>()?.to_f64() >= 0.0 {
        return Ok(());
    }
    Err(Error::about(&[x], ErrorKind::DType, "pow", "Integers to negative integer powers are not allowed.")
        .with_repair(format!("x.to(DType::{:?})?", default_dtype())))
}

/// The cheaper op that raises floats to this power, if there is one. The choice is PyTorch's, whose results
/// at -0 and -inf are those of the cheaper op.
fn power_of(x: &NamedTensor, exponent: &NamedTensor) -> Option<&'static Kernel> {
    use crate::ops::unary::elements::{POSITIVE, RECIPROCAL, RSQRT, SQRT, SQUARE};
    use by_number::elements::{CUBE, FIRST_POWER, ZEROTH_POWER};
    if !exponent.is_number() || x.is_number() {
        return None;
    }
    if exponent.dtype() == DType::Bool && x.dtype() == DType::Bool {
        // The powers of `bool`, as in PyTorch.
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

/// Kernels of `pow` for certain exponents.
mod by_number {
    namegrad_macros::kernels! {
        /// `x³`: `pow` with the number 3.
        cube (x) { float: x * x * x }
        /// `|x|^exponent`, with the sign of `x` where the exponent is odd.
        power_of_size (x, exponent, odd: bool) scalar {
            float: { let size = x.abs().powf(exponent); if odd { size.copysign(x) } else { size } }
        }
        /// `pow` of `bool` with the number `true`.
        first_power (x) { boolean: x }
        /// `pow` of `bool` with the number `false`.
        zeroth_power (x) { boolean: x | !x }
    }
}

impl crate::NamedTensor {
    /// The dtype in which an elementwise op computes on this tensor and `other`.
    pub fn result_type(&self, other: &crate::NamedTensor) -> crate::DType {
        promoted(&[self, other])
    }

    /// For each element, the next representable number in the direction of `other`. This is not a row of the
    /// table, because rows compute half types in `f32`.
    ///
    /// # Errors
    /// Same as `namegrad::Tensor::nextafter`.
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
        let sizes = crate::sizes::broadcast(OP, self.sizes(), other.sizes())
            .map_err(|error| error.with_operands([self.shape(), other.shape()]))?;
        let (x, y) =
            (self.unnamed().expand(&sizes[..])?.to(dtype)?, other.unnamed().expand(&sizes[..])?.to(dtype)?);
        let (x, y) = (x.contiguous()?, y.contiguous()?);
        let next = crate::tensor::Unwritten::new(OP, crate::shape::Shape { sizes, names }, dtype)?;
        Ok(match dtype {
            crate::DType::F32 => {
                let inputs = [x.elements()?, y.elements()?];
                next.write(|next| next_after(inputs, [f32::next_up, f32::next_down], f32::NAN, next))
            }
            crate::DType::F64 => {
                let inputs = [x.elements()?, y.elements()?];
                next.write(|next| next_after(inputs, [f64::next_up, f64::next_down], f64::NAN, next))
            }
            crate::DType::F16 => {
                let up = |x: f16| f16::from_bits(half_up(x.to_bits()));
                let down = |x: f16| f16::from_bits(half_down(x.to_bits()));
                let inputs = [x.elements()?, y.elements()?];
                next.write(|next| next_after(inputs, [up, down], f16::NAN, next))
            }
            crate::DType::BF16 => {
                let up = |x: bf16| bf16::from_bits(half_up(x.to_bits()));
                let down = |x: bf16| bf16::from_bits(half_down(x.to_bits()));
                let inputs = [x.elements()?, y.elements()?];
                next.write(|next| next_after(inputs, [up, down], bf16::NAN, next))
            }
            _ => {
                let message = format!("not implemented for {dtype}; it takes floating-point dtypes");
                return Err(crate::Error::about(&[self, other], crate::ErrorKind::DType, OP, message)
                    .with_repair(format!("x.to(DType::{:?})?", default_dtype())));
            }
        })
    }
}
