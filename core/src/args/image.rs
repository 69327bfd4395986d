//! How images are resized and sampled.

use super::{Extents, SPATIAL, Value};
use crate::error::{Error, ErrorKind, Result};
use crate::tensor::NamedTensor;
use std::panic::Location;

/// What a number between elements is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interpolation {
    /// The element at the rounded-down position: the one that older programs take for the nearest.
    Nearest,
    /// The nearest element.
    NearestExact,
    /// The two elements beside it, by their distances.
    #[default]
    Linear,
    /// The four elements around it, with the cubic polynomials of Keys for `a = -3/4`.
    Cubic,
}

/// The sizes to which [`resample`](NamedTensor::resample) resizes dims, and how: one size for all dims, or a
/// list. By default it interpolates linearly.
///
/// ```
/// use namegrad_core::{NamedTensor, args::{Interpolation, Resize}};
/// let x = NamedTensor::from_slice(&[0.0f32, 4.0], [2])?;
/// assert_eq!(x.resample(0, Resize::to(4))?.to_vec::<f32>()?, [0.0, 1.0, 3.0, 4.0]);
/// assert_eq!(x.resample(0, Resize::to(3).align_corners(true))?.to_vec::<f32>()?, [0.0, 2.0, 4.0]);
/// let nearest = Resize::to(4).mode(Interpolation::Nearest);
/// assert_eq!(x.resample(0, nearest)?.to_vec::<f32>()?, [0.0, 0.0, 4.0, 4.0]);
/// # Ok::<(), namegrad_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resize {
    sizes: Extents,
    mode: Interpolation,
    align_corners: bool,
    antialias: bool,
    factors: Option<[f64; SPATIAL]>,
}

/// How one dim is resized.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ResizedDim {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) mode: Interpolation,
    pub(crate) align_corners: bool,
    pub(crate) antialias: bool,
    /// The factor, if it is not the quotient of the sizes.
    pub(crate) factor: Option<f64>,
}

impl Resize {
    /// To these sizes.
    pub fn to(sizes: impl Into<Extents>) -> Resize {
        Resize {
            sizes: sizes.into(),
            mode: Interpolation::Linear,
            align_corners: false,
            antialias: false,
            factors: None,
        }
    }

    /// What an element between elements is made of.
    pub fn mode(self, mode: Interpolation) -> Resize {
        Resize { mode, ..self }
    }

    /// Whether the first and the last elements stay where they are. By default, elements are areas, and the
    /// edges of the first and the last stay.
    pub fn align_corners(self, align_corners: bool) -> Resize {
        Resize { align_corners, ..self }
    }

    /// Whether a dim that becomes smaller is smoothed, so that all elements have a part in the result.
    pub fn antialias(self, antialias: bool) -> Resize {
        Resize { antialias, ..self }
    }

    /// The factors from which the sizes were computed and rounded, one for each dim. They are used instead of
    /// the quotients of the sizes.
    pub fn factors(self, factors: &[f64]) -> Resize {
        let mut all = [1.0; SPATIAL];
        all.iter_mut().zip(factors).for_each(|(to, factor)| *to = *factor);
        Resize { factors: Some(all), ..self }
    }

    /// How dims of these lengths are resized.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for a size of 0, for a wrong number of sizes, and for antialiasing of the nearest
    /// elements; [`ErrorKind::Shape`] for dims without elements.
    #[track_caller]
    pub(crate) fn dims(
        &self,
        op: &'static str,
        x: &NamedTensor,
        lengths: &[usize],
    ) -> Result<Vec<ResizedDim>> {
        let caller = Location::caller();
        let fail = |kind, message: String| Error::about(&[x], kind, op, message).at(caller);
        let count = lengths.len();
        if !(1..=SPATIAL).contains(&count) {
            return Err(fail(ErrorKind::Value, format!("one to three dims can be resized, got {count}")));
        }
        let sizes = self.sizes.over(op, "size", count).map_err(|error| error.with_inputs(&[x]).at(caller))?;
        if sizes.len() != count || sizes.contains(&0) {
            let message = format!("the sizes of the result must be at least 1, got {sizes:?}");
            return Err(fail(ErrorKind::Value, message));
        }
        if lengths.contains(&0) {
            return Err(fail(ErrorKind::Shape, "a dim without elements cannot be resized".into()));
        }
        if self.antialias && !matches!(self.mode, Interpolation::Linear | Interpolation::Cubic) {
            let message = "the nearest elements cannot be antialiased".into();
            return Err(fail(ErrorKind::Value, message).with_repair(".antialias(false)"));
        }
        let dim = |(at, (from, to)): (usize, (&usize, usize))| ResizedDim {
            from: *from,
            to,
            mode: self.mode,
            align_corners: self.align_corners,
            antialias: self.antialias,
            factor: self.factors.map(|factors| factors[at]).filter(|factor| *factor > 0.0),
        };
        Ok(lengths.iter().zip(sizes).enumerate().map(dim).collect())
    }
}

/// What is outside of an image that is sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outside {
    /// Zeros.
    #[default]
    Zeros,
    /// The element at the edge.
    Border,
    /// The elements of the image in reverse: from the centers of the first and the last element if
    /// `align_corners`, otherwise from their edges.
    Reflection,
}

/// How [`sample_at`](NamedTensor::sample_at) makes elements of those around a position.
///
/// ```
/// use namegrad_core::args::{Interpolation, Outside, Sampling};
/// let nearest = Sampling::new(Interpolation::NearestExact).outside(Outside::Border).align_corners(true);
/// assert_ne!(nearest, Sampling::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampling {
    pub(crate) mode: Interpolation,
    pub(crate) outside: Outside,
    pub(crate) align_corners: bool,
    /// How often the result is differentiated along each of the spatial dims.
    pub(crate) slopes: [u8; SPATIAL],
}

impl Sampling {
    /// With zeros outside.
    pub fn new(mode: Interpolation) -> Sampling {
        Sampling { mode, ..Sampling::default() }
    }

    /// What is outside of the image.
    pub fn outside(self, outside: Outside) -> Sampling {
        Sampling { outside, ..self }
    }

    /// Whether -1 and 1 are the centers of the first and the last elements; by default they are their edges.
    pub fn align_corners(self, align_corners: bool) -> Sampling {
        Sampling { align_corners, ..self }
    }

    /// The derivative of what is sampled, by the coordinate along a spatial dim.
    #[doc(hidden)]
    pub fn slope(self, dim: usize) -> Sampling {
        let mut slopes = self.slopes;
        slopes[dim] = slopes[dim].saturating_add(1);
        Sampling { slopes, ..self }
    }
}

fn interpolation(value: &Value) -> Option<Interpolation> {
    match value {
        Value::Text(text) => match text.as_str() {
            "nearest" => Some(Interpolation::Nearest),
            "nearest-exact" => Some(Interpolation::NearestExact),
            "linear" => Some(Interpolation::Linear),
            "cubic" => Some(Interpolation::Cubic),
            _ => None,
        },
        _ => None,
    }
}

super::plain! {
    Resize: "a size or a list of sizes" => |value| match value {
        Value::None => None,
        sizes => <Extents as super::Argument>::from_value(sizes).map(Resize::to),
    },
    Sampling: "one of nearest, nearest-exact, linear, cubic" => |value| interpolation(value).map(Sampling::new),
}
super::plain! { Outside: ["zeros" = Outside::Zeros, "border" = Outside::Border, "reflection" = Outside::Reflection] }
