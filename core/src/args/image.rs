//! [`Resize`]: the options of resizing images.

use super::{Extents, Value};
use crate::cpu::SPATIAL;
use crate::cpu::resample::{Interpolation, ResizedDim};
use crate::cpu::sample::{Outside, Sampling};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::has;
use crate::tensor::NamedTensor;
use std::panic::Location;

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

    /// Sets the interpolation between elements.
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

    /// The resizing of dims of these lengths.
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
        if sizes.len() != count || has(&sizes, 0) {
            let message = format!("the sizes of the result must be at least 1, got {sizes:?}");
            return Err(fail(ErrorKind::Value, message));
        }
        if has(lengths, 0) {
            return Err(fail(ErrorKind::Shape, "a dim without elements cannot be resized".into()));
        }
        if self.antialias && !matches!(self.mode, Interpolation::Linear | Interpolation::Cubic) {
            let message = "the nearest elements cannot be antialiased".into();
            return Err(fail(ErrorKind::Value, message));
        }
        let dim = |(at, (from, to)): (usize, (&usize, usize))| ResizedDim {
            from: *from,
            to,
            mode: self.mode,
            align_corners: self.align_corners,
            antialias: self.antialias,
            factor: self.factors.map(|factors| factors[at]).filter(|factor| *factor > 0.0),
        };
        Ok(crate::list(lengths.iter().zip(sizes).enumerate().map(dim)))
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

impl super::Immediate for Resize {
    fn of_value(value: &Value) -> Option<Resize> {
        match value {
            Value::None => None,
            sizes => <Extents as super::Argument>::from_value(sizes).map(Resize::to),
        }
    }
    fn accepts() -> String {
        "a size or a list of sizes".into()
    }
}

impl super::Immediate for Sampling {
    fn of_value(value: &Value) -> Option<Sampling> {
        interpolation(value).map(Sampling::new)
    }
    fn accepts() -> String {
        "one of nearest, nearest-exact, linear, cubic".into()
    }
}
impl super::Immediate for Outside {
    const WORDS: &'static [(&'static str, Self)] =
        &[("zeros", Self::Zeros), ("border", Self::Border), ("reflection", Self::Reflection)];
}
