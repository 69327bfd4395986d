//! Ops on two or three tensors by element. Sizes broadcast from the right, names unify from the right, dtypes promote; a plain number does not
//! widen the dtype of a tensor within its category. `dtypes` says what else a row takes or refuses.

use crate::cpu::pointwise::Kernel;

/// The rows of the ops on two tensors by element, handed to `$with`. `divides` marks those that refuse an integer zero on the right,
/// `powers` the one that is another op for some numbers on the right.
#[macro_export]
#[doc(hidden)]
macro_rules! binary_ops { ($with:ident) => { $with! {
    /// `x + y`; "or" of two bools.
    add add_ (x y) { float: x + y, int: x.wrapping_add(y), boolean: x | y };
    /// `x - y`; no bools, as neither "or" nor "exclusive or" is meant for sure.
    sub sub_ (x y) { float: x - y, int: x.wrapping_sub(y), dtypes: Dtypes::NoBool };
    /// `x y`; "and" of two bools.
    mul mul_ (x y) { float: x * y, int: x.wrapping_mul(y), boolean: x & y };
    /// `x / y`; integers divide as floats.
    div div_ (x y) { float: x / y };
    /// `x / y` rounded down.
    floor_divide floor_divide_ (x y) { float: x.div_floor(y), int: x.div_floor(y) } divides;
    /// `x / y` rounded towards zero.
    trunc_divide trunc_divide_ (x y) { float: (x / y).trunc(), int: x.div_trunc(y) } divides;
    /// The remainder of `x / y` with the sign of `x`.
    fmod fmod_ (x y) { float: x % y, int: x.rem_trunc(y) } divides;
    /// The remainder of `x / y` with the sign of `y`.
    remainder remainder_ (x y) { float: x.remainder(y), int: x.rem_floor(y) } divides;
    /// `x^y`. Integers to the power of a negative number are an error; where a tensor has negative exponents, what is not 1 or -1 becomes 0.
    pow pow_ (x y) { float: x.powf(y), int: x.power(y) } powers;
    /// The angle of the point `(y, x)`, `x` being the ordinate: `atan(x / y)` in the right quadrant, in radians.
    atan2 atan2_ (x y) { float: x.atan2(y) };
    /// `√(x² + y²)` without overflow.
    hypot hypot_ (x y) { float: x.hypot(y), dtypes: Dtypes::Floats };
    /// `ln(e^x + e^y)` without overflow.
    logaddexp (x y) { float: x.logaddexp(y) };
    /// `log2(2^x + 2^y)` without overflow.
    logaddexp2 (x y) { float: x.logaddexp2(y) };
    /// `x ln y`, and 0 where `x` is 0.
    xlogy xlogy_ (x y) { float: x.xlogy(y) };
    /// `|x|` with the sign of `y`.
    copysign copysign_ (x y) { float: x.copysign(y) };
    /// The larger of `x` and `y`; NaN if either is.
    maximum (x y) { float: x.maximum(y), int: x.max(y), boolean: x | y };
    /// The smaller of `x` and `y`; NaN if either is.
    minimum (x y) { float: x.minimum(y), int: x.min(y), boolean: x & y };
    /// The larger of `x` and `y`; the other one if one is NaN.
    fmax (x y) { float: x.fmax(y), int: x.max(y), boolean: x | y };
    /// The smaller of `x` and `y`; the other one if one is NaN.
    fmin (x y) { float: x.fmin(y), int: x.min(y), boolean: x & y };
    /// The larger of `x` and `y`, a lower bound: as [`maximum`](Self::maximum), but where both are equal the gradient is that of `x`.
    clamp_min clamp_min_ (x y) { like: maximum };
    /// The smaller of `x` and `y`, an upper bound: as [`minimum`](Self::minimum), but where both are equal the gradient is that of `x`.
    clamp_max clamp_max_ (x y) { like: minimum };
    /// The step at 0: 0 for `x < 0`, 1 for `x > 0`, and `y` where `x` is 0; 0 for NaN.
    heaviside heaviside_ (x y) {
        float: if x == T::ZERO { y } else if x > T::ZERO { T::ONE } else { T::ZERO },
        int: if x == T::ZERO { y } else { x.max(T::ZERO).sign() },
        boolean: x | y,
    };
    /// Is `x = y`?
    eq eq_ (x y) -> bool { float: x == y, int: x == y, boolean: x == y };
    /// Is `x ≠ y`?
    ne ne_ (x y) -> bool { float: x != y, int: x != y, boolean: x != y };
    /// Is `x < y`?
    lt lt_ (x y) -> bool { float: x < y, int: x < y, boolean: !x & y };
    /// Is `x ≤ y`?
    le le_ (x y) -> bool { float: x <= y, int: x <= y, boolean: x <= y };
    /// Is `x > y`?
    gt gt_ (x y) -> bool { float: x > y, int: x > y, boolean: x & !y };
    /// Is `x ≥ y`?
    ge ge_ (x y) -> bool { float: x >= y, int: x >= y, boolean: x >= y };
    /// Are both not zero?
    logical_and logical_and_ (x y) -> bool { float: (x != T::ZERO) & (y != T::ZERO), int: (x != T::ZERO) & (y != T::ZERO), boolean: x & y };
    /// Is one not zero?
    logical_or logical_or_ (x y) -> bool { float: (x != T::ZERO) | (y != T::ZERO), int: (x != T::ZERO) | (y != T::ZERO), boolean: x | y };
    /// Is exactly one not zero?
    logical_xor logical_xor_ (x y) -> bool { float: (x != T::ZERO) ^ (y != T::ZERO), int: (x != T::ZERO) ^ (y != T::ZERO), boolean: x ^ y };
    /// "And" of the bits.
    bitwise_and bitwise_and_ (x y) { int: x & y, boolean: x & y };
    /// "Or" of the bits.
    bitwise_or bitwise_or_ (x y) { int: x | y, boolean: x | y };
    /// "Exclusive or" of the bits.
    bitwise_xor bitwise_xor_ (x y) { int: x ^ y, boolean: x ^ y };
    /// The bits of `x` moved `y` places up, zeros coming in: `x 2^y`; 0 unless `0 <= y` is less than the number of bits.
    bitwise_left_shift bitwise_left_shift_ (x y) { int: x.shift_left(y) };
    /// The bits of `x` moved `y` places down, the sign coming in: `x / 2^y` rounded down; nothing but the sign unless `0 <= y` is less than the number of
    /// bits.
    bitwise_right_shift bitwise_right_shift_ (x y) { int: x.shift_right(y) };
    /// The greatest common divisor, not negative; that with 0 is the other number.
    gcd gcd_ (x y) { int: x.gcd(y) };
    /// The least common multiple, not negative; that with 0 is 0.
    lcm lcm_ (x y) { int: x.lcm(y) };
} } }
binary_ops!(define_binary);

/// `x³`: what `pow` is for the number 3.
#[allow(non_upper_case_globals)] // as the kernels of the tables
pub(crate) static cube: Kernel<1> = kernel!(1 pow (x) [] [] { float: x * x * x });
/// What `pow` is of bools for the number `true`.
#[allow(non_upper_case_globals)]
pub(crate) static first_power: Kernel<1> = kernel!(1 pow (x) [] [] { boolean: x });
/// What `pow` is of bools for the number `false`.
#[allow(non_upper_case_globals)]
pub(crate) static zeroth_power: Kernel<1> = kernel!(1 pow (x) [] [] { boolean: x | !x });

/// The rows of the ops on three tensors by element, handed to `$with`.
#[macro_export]
#[doc(hidden)]
macro_rules! ternary_ops { ($with:ident) => { $with! {
    /// `x + weight (end - x)`: from `x` towards `end`, all of one floating-point dtype.
    lerp lerp_ (x end weight) {
        float: if weight.abs() < T::HALF { x + weight * (end - x) } else { end - (end - x) * (T::ONE - weight) },
        dtypes: Dtypes::OneFloat
    };
    /// Each element between `min` and `max`: `min(max(x, min), max)`. At a bound the gradient is that of `x`.
    clamp clamp_ (x min max) { float: x.maximum(min).minimum(max), int: x.max(min).min(max) };
} } }
ternary_ops!(define_ternary);

impl crate::NamedTensor {
    /// The dtype that an op by element computes in on this tensor and `other`.
    pub fn result_type(&self, other: &crate::NamedTensor) -> crate::DType {
        crate::cpu::pointwise::promoted(&[self, other])
    }

    /// The next number of the dtype after each element towards `other`, of `f32` and `f64`. Not a row of the table, which would compute in `f32` for half types.
    ///
    /// # Errors
    /// As `namegrad::Tensor::nextafter`.
    #[track_caller]
    pub fn nextafter(&self, other: impl crate::Operand) -> crate::Result<crate::NamedTensor> {
        const OP: &str = "nextafter";
        let other = &*other.operand_beside(self.dtype())?;
        let dtype = self.result_type(other);
        let names = crate::names::rules::unify(OP, "broadcast", self.input(), other.input())?;
        let sizes = crate::shape::broadcast(OP, self.sizes(), other.sizes())
            .map_err(|error| error.with_operands([self.extents(), other.extents()]))?;
        let (x, y) =
            (self.unnamed().expand(&sizes[..])?.to(dtype)?, other.unnamed().expand(&sizes[..])?.to(dtype)?);
        macro_rules! next {
            ($T:ty) => {{
                let towards = |(x, y): (&$T, &$T)| match x.partial_cmp(y) {
                    Some(std::cmp::Ordering::Less) => x.next_up(),
                    Some(std::cmp::Ordering::Greater) => x.next_down(),
                    Some(std::cmp::Ordering::Equal) => *y,
                    None => <$T>::NAN,
                };
                let (x, y) = (x.contiguous()?, y.contiguous()?);
                let next: Vec<$T> =
                    x.as_slice::<$T>()?.iter().zip(y.as_slice::<$T>()?).map(towards).collect();
                crate::NamedTensor::from_slice(&next, crate::shape::Shape { sizes, names })
            }};
        }
        match dtype {
            crate::DType::F32 => next!(f32),
            crate::DType::F64 => next!(f64),
            _ => {
                let message = format!("not implemented for {dtype}; it takes float32, float64");
                Err(crate::Error::new(crate::ErrorKind::DType, OP, message))
            }
        }
    }
}
