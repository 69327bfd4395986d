//! Exact and approximate equality of tensors, for tests.
//!
//! When `assert_eq!` and the macros of the `approx` crate fail, they only print both tensors with `{:?}`. So
//! a failed comparison stores a note about the left tensor for its thread, and the next `{:?}` of that tensor
//! on that thread prints it once: how many elements differ, the first difference, and the largest.

use crate::callback::Callback;
use crate::dtype::{DType, Scalar};
use crate::tensor::NamedTensor;
use half::{bf16, f16};
use std::cell::RefCell;
use std::fmt;

thread_local! {
    static NOTE: RefCell<Option<Note>> = const { RefCell::new(None) };
}

/// The result of a failed comparison.
struct Note {
    /// The left tensor: where its elements begin, and its shape and dtype.
    about: (usize, String),
    text: String,
}

/// Identifies a tensor while it exists.
fn identity(x: &NamedTensor) -> (usize, String) {
    (x.data_ptr() as usize, format!("{}{}", x.dtype(), x.shape()))
}

impl fmt::Debug for NamedTensor {
    /// Only the dtype and the dims, `f32[N=32, C=3]`, so that a tensor in a message does not fill the screen.
    /// After a failed `assert_eq!` or `assert_relative_eq!`, it also says where the tensors differ.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype(), self.shape())?;
        write_note(self, f)
    }
}

/// Writes the note about `x`, if the last comparison on this thread left one.
fn write_note(x: &NamedTensor, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let note = NOTE.try_with(|note| {
        let mut note = note.try_borrow_mut().ok()?;
        note.take_if(|note| note.about.0 == x.data_ptr() as usize && note.about == identity(x))
    });
    match note {
        Ok(Some(note)) => write!(f, ": {}", note.text),
        _ => Ok(()),
    }
}

/// Whether dtype, shape and names are the same and all elements are near each other.
#[track_caller]
fn all_near(x: &NamedTensor, y: &NamedTensor, near: &dyn Callback<(Scalar, Scalar), bool>) -> bool {
    let text = match mismatch(x, y) {
        Some(text) => Some(text),
        None if x.is_meta() || y.is_meta() => without_elements(if x.is_meta() { x } else { y }),
        None => differences(x, y, near).map(|found| found.to_string()),
    };
    let equal = text.is_none();
    let note = text.map(|text| Note { about: identity(x), text });
    let _ = NOTE.try_with(|last| last.replace(note)); // a thread that is ending keeps none
    equal
}

/// The traits of comparisons have no errors.
#[cold]
#[track_caller]
fn without_elements(x: &NamedTensor) -> ! {
    let error = x.check_elements("==").expect_err("a meta tensor has none");
    panic!("{error}")
}

/// The difference between two tensors in anything but their elements, for messages.
fn mismatch(x: &NamedTensor, y: &NamedTensor) -> Option<String> {
    if x.dtype() != y.dtype() {
        return Some(format!("the dtypes differ, {} and {}", x.dtype(), y.dtype()));
    }
    (x.shape() != y.shape()).then(|| format!("the shapes differ, {} and {}", x.shape(), y.shape()))
}

/// The elements in which two tensors of one shape and dtype differ.
struct Differences<'a> {
    x: &'a NamedTensor,
    y: &'a NamedTensor,
    count: usize,
    first: Vec<usize>,
    largest: (f64, Vec<usize>),
}

fn differences<'a>(
    x: &'a NamedTensor,
    y: &'a NamedTensor,
    near: &dyn Callback<(Scalar, Scalar), bool>,
) -> Option<Differences<'a>> {
    let mut found: Option<Differences<'a>> = None;
    let mut index = vec![0; x.ndim()];
    for _ in 0..x.numel() {
        let (a, b) = (x.at(&index), y.at(&index));
        if !near.call_with((a, b)) {
            let apart = distance(a, b);
            let found = found.get_or_insert_with(|| Differences {
                x,
                y,
                count: 0,
                first: index.clone(),
                largest: (apart, index.clone()),
            });
            found.count += 1;
            if apart > found.largest.0 {
                found.largest = (apart, index.clone());
            }
        }
        // The next element in row-major order.
        for (i, size) in index.iter_mut().zip(x.sizes()).rev() {
            *i += 1;
            if *i < *size {
                break;
            }
            *i = 0;
        }
    }
    found
}

/// `|a - b|`, or infinity if one of the two is NaN.
fn distance(a: Scalar, b: Scalar) -> f64 {
    match (a, b) {
        (Scalar::Int(a), Scalar::Int(b)) => a.abs_diff(b) as f64,
        _ => {
            let apart = (a.to_f64() - b.to_f64()).abs();
            if apart.is_nan() { f64::INFINITY } else { apart }
        }
    }
}

impl fmt::Display for Differences<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.x.numel();
        write!(f, "{} of {total} elements differ, the first at {}", self.count, self.at(&self.first))?;
        if self.count > 1 {
            write!(f, ", the most at {}", self.at(&self.largest.1))?;
        }
        Ok(())
    }
}

impl Differences<'_> {
    /// `[N=1, C=0] (2.5 and 3)`: a position by the names of its dims, and both elements.
    fn at(&self, index: &[usize]) -> String {
        let place = index.iter().enumerate().map(|(dim, i)| match self.x.name(dim) {
            Some(name) => format!("{name}={i}"),
            None => i.to_string(),
        });
        let place: Vec<String> = crate::list(place);
        let shown = |x: &NamedTensor| match x.at(index) {
            // For a narrow float, as many digits as distinguish it from its neighbors.
            Scalar::Float(value) if x.dtype() != DType::F64 => format!("{}", value as f32),
            value => format!("{value}"),
        };
        format!("[{}] ({} and {})", crate::joined(&place, ", "), shown(self.x), shown(self.y))
    }
}

impl PartialEq for NamedTensor {
    /// Whether dtype, sizes, names and all elements are equal. NaN is not equal to anything. For an
    /// elementwise comparison, see [`eq`](NamedTensor::eq).
    ///
    /// # Panics
    /// If all but the elements is equal and a tensor is on the meta device, where there are none.
    #[track_caller]
    fn eq(&self, other: &NamedTensor) -> bool {
        all_near(self, other, &|a: Scalar, b: Scalar| a == b)
    }
}

/// Whether the absolute difference is at most `epsilon`.
fn near_by(a: Scalar, b: Scalar, epsilon: f64) -> bool {
    a == b || distance(a, b) <= epsilon && a.to_f64().is_finite() && b.to_f64().is_finite()
}

/// Whether dtype, sizes and names are equal, and all elements are within `epsilon` of each other.
#[doc(hidden)]
#[track_caller]
pub fn abs_diff_eq(x: &NamedTensor, y: &NamedTensor, epsilon: f64) -> bool {
    all_near(x, y, &|a: Scalar, b: Scalar| near_by(a, b, epsilon))
}

/// Like [`abs_diff_eq`], but elements may also differ by up to `max_relative` times the larger of the two.
#[doc(hidden)]
#[track_caller]
pub fn relative_eq(x: &NamedTensor, y: &NamedTensor, epsilon: f64, max_relative: f64) -> bool {
    all_near(x, y, &|a: Scalar, b: Scalar| {
        near_by(a, b, epsilon.max(a.to_f64().abs().max(b.to_f64().abs()) * max_relative))
    })
}

/// Like [`abs_diff_eq`], but elements may also be up to `max_ulps` representable numbers apart.
#[doc(hidden)]
#[track_caller]
pub fn ulps_eq(x: &NamedTensor, y: &NamedTensor, epsilon: f64, max_ulps: u32) -> bool {
    let dtype = x.dtype();
    all_near(x, y, &|a: Scalar, b: Scalar| near_by(a, b, epsilon) || steps(a, b, dtype) <= max_ulps.into())
}

/// The number of steps between two numbers of the same sign, from one representable number of the dtype to
/// the next.
fn steps(a: Scalar, b: Scalar, dtype: DType) -> u64 {
    let bits = |value: f64| match dtype {
        DType::F64 => value.to_bits(),
        DType::F16 => f16::from_f64(value).to_bits().into(),
        DType::BF16 => bf16::from_f64(value).to_bits().into(),
        _ => u64::from((value as f32).to_bits()),
    };
    match (a, b) {
        (Scalar::Float(a), Scalar::Float(b)) if a.is_nan() || b.is_nan() => u64::MAX,
        (Scalar::Float(a), Scalar::Float(b)) if a.is_sign_negative() == b.is_sign_negative() => {
            bits(a).abs_diff(bits(b))
        }
        (Scalar::Int(a), Scalar::Int(b)) => a.abs_diff(b),
        _ => u64::MAX,
    }
}

/// The default tolerance: the distance from 1 to the next number of the default dtype.
#[doc(hidden)]
pub fn default_epsilon() -> f64 {
    match crate::default_dtype() {
        DType::F64 => f64::EPSILON,
        DType::F16 => f16::EPSILON.into(),
        DType::BF16 => bf16::EPSILON.into(),
        _ => f32::EPSILON.into(),
    }
}

/// Implements the traits of `approx` for a type. `$value` returns its [`NamedTensor`].
/// `approximate_equality!(Tensor, Tensor::value)` becomes
///
/// ```ignore
/// impl approx::AbsDiffEq for Tensor {
///     type Epsilon = f64;
///     fn default_epsilon() -> f64 { close::default_epsilon() }
///     fn abs_diff_eq(&self, other: &Tensor, epsilon: f64) -> bool {
///         close::abs_diff_eq(self.value(), other.value(), epsilon)
///     }
/// }
/// ```
///
/// and `RelativeEq` and `UlpsEq` likewise.
#[doc(hidden)]
#[macro_export]
macro_rules! approximate_equality {
    ($type:ty, $value:expr) => {
        /// `approx::assert_abs_diff_eq!(x, y, epsilon = 1e-6)`: dtype, sizes and names are equal, and all
        /// elements are within `epsilon` of each other. NaN is not near anything. A failed assertion says how
        /// many elements differ, and gives the first difference and the largest.
        impl ::approx::AbsDiffEq for $type {
            type Epsilon = f64;

            fn default_epsilon() -> f64 {
                $crate::close::default_epsilon()
            }

            #[track_caller]
            fn abs_diff_eq(&self, other: &Self, epsilon: f64) -> bool {
                $crate::close::abs_diff_eq($value(self), $value(other), epsilon)
            }
        }

        /// Like `AbsDiffEq`, but elements may also differ by up to `max_relative` times the larger of the
        /// two: `approx::assert_relative_eq!(x, y, epsilon = 1e-6)`.
        impl ::approx::RelativeEq for $type {
            fn default_max_relative() -> f64 {
                $crate::close::default_epsilon()
            }

            #[track_caller]
            fn relative_eq(&self, other: &Self, epsilon: f64, max_relative: f64) -> bool {
                $crate::close::relative_eq($value(self), $value(other), epsilon, max_relative)
            }
        }

        /// Like `AbsDiffEq`, but elements may also be up to `max_ulps` representable numbers apart:
        /// `approx::assert_ulps_eq!(x, y, max_ulps = 4)`.
        impl ::approx::UlpsEq for $type {
            fn default_max_ulps() -> u32 {
                4
            }

            #[track_caller]
            fn ulps_eq(&self, other: &Self, epsilon: f64, max_ulps: u32) -> bool {
                $crate::close::ulps_eq($value(self), $value(other), epsilon, max_ulps)
            }
        }
    };
}

#[cfg(feature = "approx")]
approximate_equality!(NamedTensor, |x| x);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_comparison_leaves_one_note() {
        let x = NamedTensor::new([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).unwrap();
        let x = x.refine_names(["N", "C"]).unwrap();
        let mut y = x.clone();
        assert!(x == y);
        assert_eq!(format!("{x:?}"), "float32[N=2, C=3]");
        y.add_(NamedTensor::new([[0.0, 0.5, 0.0], [-2.0, 0.0, 0.0]]).unwrap()).unwrap();
        assert!(x != y);
        let text =
            ": 2 of 6 elements differ, the first at [N=0, C=1] (2 and 2.5), the most at [N=1, C=0] (4 and 2)";
        assert_eq!(format!("{x:?}"), format!("float32[N=2, C=3]{text}"));
        assert_eq!(format!("{x:?}"), "float32[N=2, C=3]");
        assert!(x != y && x == x.clone());
        assert_eq!(format!("{x:?}"), "float32[N=2, C=3]");
        let unnamed = x.unnamed();
        assert!(unnamed != x);
        let text = "float32[2, 3]: the shapes differ, [2, 3] and [N=2, C=3]";
        assert_eq!(format!("{unnamed:?}"), text);
    }

    #[test]
    fn tolerances_are_those_of_approx() {
        let one = |x: f64, dtype| NamedTensor::new_as([x], Some(dtype)).unwrap();
        let f64 = |x: f64| one(x, DType::F64);
        assert!(abs_diff_eq(&f64(1.0), &f64(1.1), 0.11) && !abs_diff_eq(&f64(1.0), &f64(1.1), 0.09));
        assert!(
            relative_eq(&f64(100.0), &f64(101.0), 0.0, 0.01) && !relative_eq(&f64(1.0), &f64(2.0), 0.0, 0.4)
        );
        for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(!relative_eq(&f64(x), &f64(1.0), 1e9, 1e9) && !ulps_eq(&f64(x), &f64(1.0), 1e9, 9));
            assert_eq!(relative_eq(&f64(x), &f64(x), 0.0, 0.0), !x.is_nan());
        }
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let up = |x: NamedTensor| x.nextafter(one(2.0, dtype)).unwrap();
            let next = up(up(one(1.0, dtype)));
            assert!(ulps_eq(&one(1.0, dtype), &next, 0.0, 2) && !ulps_eq(&one(1.0, dtype), &next, 0.0, 1));
            assert!(!ulps_eq(&one(1.0, dtype), &one(-1.0, dtype), 0.0, 1 << 30));
        }
        let large = |x: i64| NamedTensor::new([x]).unwrap();
        assert!(large(i64::MAX) != large(i64::MAX - 1));
        assert!(abs_diff_eq(&large(i64::MAX), &large(i64::MAX - 1), 1.0));
    }
}
