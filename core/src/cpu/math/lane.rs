//! The operations that the algorithms in `elementary.rs` and `erf.rs` need from a type: its bits and its
//! coefficients.

use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, Sub, SubAssign};

/// The constants of the algorithms, in `f64` so that a type shares its table with its fused form.
///
/// Polynomials start with the coefficient of the lowest power. They are minimax fits (Remez exchange with 50
/// digits, relative error of the whole function) that were repeated after each coefficient was rounded to the
/// type. A constant in two parts is `[head, rest]`; the head has so few bits that its product with an
/// exponent is exact.
#[derive(Debug)]
pub struct Tables {
    pub(super) ln_2: [f64; 2],
    pub(super) log10_2: [f64; 2],
    /// `1 / ln 2`; the head has half the bits of the type.
    pub(super) log2_e: [f64; 2],
    /// `1 / ln 10`, split like `log2_e`.
    pub(super) log10_e: [f64; 2],
    /// Outside this range `exp` is 0 or infinite. The range is small because `2^k` is a product of two normal
    /// numbers.
    pub(super) exp_range: [f64; 2],
    pub(super) exp2_range: [f64; 2],
    /// The number from which `tanh` rounds to 1.
    pub(super) tanh_one: f64,
    /// `(exp(r) - 1 - r) / r²` for `|r| ≤ ln(2)/2`, relative to `exp`.
    pub(super) exp: &'static [f64],
    /// The same as `exp`, relative to `exp(r) - 1`.
    pub(super) exp_m1: &'static [f64],
    /// `(2ʳ - 1) / r` for `|r| ≤ 1/2`, relative to `2ʳ`.
    pub(super) exp2: &'static [f64],
    /// `(ln(1 + f) - f + f²/2) / f³` for `√½ ≤ 1 + f ≤ √2`, relative to the logarithm.
    pub(super) ln: &'static [f64],
    /// `(tanh(x) - x) / x³` in `x²` for `|x| ≤ 5/8`.
    pub(super) tanh: &'static [f64],
    /// `erf(x)/x - 1` in `x²` for `x² ≤ 1`.
    pub(super) erf: &'static [f64],
    /// `(1 + 2x) erfcx(x) - 1` in `t = (x - 3) / (x + 3)` for `0 ≤ x ≤ 1.01 erfc_zero`, which is smooth and
    /// flat (Shepherd and Laframboise, *Chebyshev approximation of (1 + 2x) exp(x²) erfc(x)*, 1981).
    pub(super) erfcx: &'static [f64],
    /// The number from which `erfc` underflows to 0.
    pub(super) erfc_zero: f64,
    /// `(1 + a/4) exp(a²/2) Φ(-a)` in `t = (1 - a/4) / (1 + a/4)` for `0 ≤ a ≤ √2 erfc_zero`: a
    /// Chebyshev series.
    pub(super) ndtr: &'static [f64],
}

pub(super) const F32: Tables = Tables {
    ln_2: [0.693115234375, 3.1946184945309415e-05],
    log10_2: [0.301025390625, 4.605038981195214e-06],
    log2_e: [1.4423828125, 0.00031222838896340733],
    log10_e: [0.4342041015625, 9.038034075182765e-05],
    exp_range: [-104.5, 89.0],
    exp2_range: [-151.0, 128.0],
    tanh_one: 10.0,
    exp: &[0.49999994, 0.16666517, 0.041668106, 0.008369134, 0.0013836519],
    exp_m1: &[0.5, 0.16666667, 0.041666325, 0.008333066, 0.0013949455, 0.00020074242],
    exp2: &[0.69314724, 0.24022655, 0.05550262, 0.009617452, 0.0013423206, 0.00015644275],
    ln: &[
        0.33333313,
        -0.25000167,
        0.20002224,
        -0.16659358,
        0.14209552,
        -0.12550034,
        0.12109554,
        -0.10913541,
        0.05332279,
    ],
    tanh: &[-0.3333328, 0.13331406, -0.053736515, 0.020628167, -0.0056922967],
    erf: &[0.12837917, -0.37612626, 0.11283579, -0.026853347, 0.005187162, -0.0007997853, 7.806904e-05],
    erfcx: &[
        0.25300807,
        -0.13562115,
        -0.047563173,
        0.12964614,
        -0.119260006,
        0.0683054,
        -0.023846025,
        0.002502332,
        0.0020545954,
        -0.0006567845,
        -0.00021751576,
    ],
    erfc_zero: 10.5,
    ndtr: &[
        0.18882129,
        0.15197414,
        0.09678423,
        0.0466309,
        0.015100896,
        0.0018810852,
        -0.00087771396,
        -0.00039219874,
        4.3979453e-05,
        3.3398814e-05,
    ],
};

pub(super) const F64: Tables = Tables {
    ln_2: [0.6931471805582987, 1.6465949582897082e-12],
    log10_2: [0.30102999565860955, 5.371644767466998e-12],
    log2_e: [1.4426950216293335, 1.9259629911266175e-08],
    log10_e: [0.4342944771051407, 4.798111141615973e-09],
    exp_range: [-746.0, 710.0],
    exp2_range: [-1076.0, 1024.0],
    tanh_one: 20.0,
    exp: &[
        0.5000000000000011,
        0.1666666666666643,
        0.04166666666652566,
        0.00833333333347967,
        0.0013888888944923964,
        0.00019841269546511515,
        2.4801491657125818e-05,
        2.7557543779194504e-06,
        2.763079492662828e-07,
        2.5015696742124773e-08,
    ],
    exp_m1: &[
        0.5000000000000001,
        0.1666666666666667,
        0.04166666666664831,
        0.008333333333324637,
        0.0013888888897381727,
        0.0001984126988003391,
        2.4801571279265486e-05,
        2.755724882360034e-06,
        2.7570526347247815e-07,
        2.5107937967989853e-08,
        1.6935156002276473e-09,
    ],
    exp2: &[
        0.6931471805599457,
        0.240226506959101,
        0.055504108664787874,
        0.009618129107605608,
        0.0013333558153967528,
        0.00015403530443911577,
        1.5252726938173835e-05,
        1.3215441251801172e-06,
        1.0180812163291515e-07,
        7.0728544855723305e-09,
        4.056209497478069e-10,
    ],
    ln: &[
        0.33333333333333454,
        -0.24999999999998926,
        0.19999999999945645,
        -0.16666666666912314,
        0.14285714293902782,
        -0.1249999998229944,
        0.11111110512460146,
        -0.10000000364942968,
        0.09090933614098,
        -0.08333346419279855,
        0.07691712846457698,
        -0.07141986431398527,
        0.06675155069035285,
        -0.06269960822816285,
        0.058179038823674666,
        -0.05325835639762176,
        0.054142706306471916,
        -0.0627670352121469,
        0.05703152718336146,
        -0.024319004663194928,
    ],
    tanh: &[
        -0.3333333333333284,
        0.133333333332597,
        -0.05396825393017886,
        0.02186948755165261,
        -0.008863220688016154,
        0.0035919866732615755,
        -0.0014549461947281812,
        0.0005862754056097202,
        -0.00022848167461959312,
        7.705106221553659e-05,
        -1.6027139748358126e-05,
    ],
    erf: &[
        0.12837916709551256,
        -0.37612638903183343,
        0.1128379167093695,
        -0.026866170641959137,
        0.005223977596735829,
        -0.0008548325484994309,
        0.00012055280496351438,
        -1.492446563279814e-05,
        1.6444150434500148e-06,
        -1.6183989584750145e-07,
        1.3616689301272868e-08,
        -7.60778654533202e-10,
    ],
    erfcx: &[
        0.25300805826972966,
        -0.13562110612458053,
        -0.047562294353453605,
        0.12964515870269963,
        -0.11927366341523288,
        0.0683080273459858,
        -0.023770514919115804,
        0.0025293917846710874,
        0.0018886903541761133,
        -0.0007798319996565402,
        -0.00010515970227196545,
        0.00012509792108980042,
        4.948792294363135e-06,
        -2.0095799254969926e-05,
        -7.287566394199976e-07,
        3.4621632624139437e-06,
        3.5013133752363254e-07,
        -6.025784493149094e-07,
        -1.314542923874734e-07,
        9.009413493309905e-08,
        3.260440492794661e-08,
        -7.954193242318125e-09,
        -3.995227493066868e-09,
    ],
    erfc_zero: 27.5,
    ndtr: &[
        0.18882128260393788,
        0.15197416049297294,
        0.09678435018555472,
        0.04663046448992354,
        0.015099143722674867,
        0.0018850472413982648,
        -0.0008699230905606333,
        -0.0004077046104725899,
        3.333606350476228e-05,
        5.777370457984405e-05,
        -4.769666329153394e-07,
        -8.786045289440243e-06,
        1.7875139898040247e-07,
        1.479723182940809e-06,
        -1.56283026011967e-07,
        -2.549512129533793e-07,
        6.592062144101906e-08,
        3.856580134192769e-08,
        -1.9095205133726126e-08,
        -3.644648336759115e-09,
        3.4810059983754273e-09,
        -1.8173863697566723e-11,
        -2.413356355057126e-10,
    ],
};

/// A number in one lane of a vector.
///
/// No method has branches or calls, so that a loop over lanes becomes vector code.
pub trait Lane:
    Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Rem<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
{
    /// The constants for this precision.
    const TABLES: &'static Tables;

    /// A large number: the low bits of its sum with a small `x` are `x`, rounded to the nearest integer, plus
    /// twice the bias of the exponent.
    const ROUND: f64;

    /// The smallest positive number that is not subnormal.
    const SMALLEST_NORMAL: f64;
    /// The number of explicit bits of the significand.
    const FRACTION: i32;

    /// `x` rounded to this type.
    fn from_f64(x: f64) -> Self;
    /// The same number.
    fn to_f64(self) -> f64;
    /// `self · a + b`, with one rounding or two: see [`Fused`](super::Fused).
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// The magnitude of `self`.
    fn abs(self) -> Self;
    /// The magnitude of `self` with the sign of `sign`.
    fn copysign(self, sign: Self) -> Self;
    /// The nearest integer toward 0.
    fn trunc(self) -> Self;
    /// The upper half of the digits, whose square is exact.
    fn head(self) -> Self;
    /// The bits of both. It is NaN if one is.
    fn or(self, other: Self) -> Self;
    /// For `self = k + ROUND`, two factors of `2^k`, which may itself be subnormal or too large.
    fn powers_of_two(self) -> (Self, Self);
    /// For `self = k + ROUND`, the reciprocal of the second of [`powers_of_two`](Self::powers_of_two).
    fn second_reciprocal(self) -> Self;
    /// For `self = k + ROUND`, `2^k`, which must be a normal number.
    fn power_of_two(self) -> Self;
    /// For a positive normal number, `(k, m, 2^(1-k))` with `self = 2^k m` and `√½ ≤ m < √2`.
    fn split(self) -> (Self, Self, Self);
}

/// `Σ c[i] xⁱ` by Horner's rule.
#[inline(always)]
pub(super) fn polynomial<T: Lane>(x: T, c: &'static [f64]) -> T {
    let (last, rest) = c.split_last().expect("a table has coefficients");
    let mut sum = T::from_f64(*last);
    for c in rest.iter().rev() {
        sum = sum.mul_add(x, T::from_f64(*c));
    }
    sum
}
