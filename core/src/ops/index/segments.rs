//! The numbers of segments, for reductions over groups of slices.

use super::kernels::whole_positions;
use crate::args::{OpenDim, OpenShape};
use crate::cpu::index as cpu;
use crate::dim::called;
use crate::error::{Error, ErrorKind, Result};
use crate::names::{Names, rules};
use crate::shape::Shape;
use crate::tensor::NamedTensor;

impl NamedTensor {
    /// Checks the numbers of segments in `index`, one for each slice of this tensor along `dim`. Returns the
    /// numbers, dense and in `i64`, and the shape of a reduction to `segments`.
    ///
    /// # Errors
    /// [`ErrorKind::DType`], [`ErrorKind::Shape`], [`ErrorKind::Index`] for a number out of range,
    /// [`ErrorKind::NameMismatch`], [`ErrorKind::DuplicateName`].
    #[doc(hidden)]
    #[track_caller]
    pub fn segments(
        &self,
        op: &'static str,
        index: &NamedTensor,
        dim: usize,
        segments: &OpenShape,
    ) -> Result<(NamedTensor, Shape)> {
        let inputs = [self, index];
        let [OpenDim { name, size: Some(count) }] = segments[..] else {
            let message = "segments must be one size, with or without a name";
            return Err(Error::about(&inputs, ErrorKind::Shape, op, message)
                .with_repair(format!("x.{op}(&index, dim, (\"node\", 10))?")));
        };
        if index.ndim() != 1 || self.ndim() == 0 || index.numel() != self.sizes()[dim] {
            let message = format!(
                "index must be a vector with the number of a segment for each element of {}, got {} for {}",
                called(self, dim),
                index.shape(),
                self.shape()
            );
            let error = Error::about(&inputs, ErrorKind::Shape, op, message);
            let fits = |d: &usize| {
                let named = index.name(0).is_none_or(|name| self.name(*d) == Some(name));
                index.ndim() == 1 && self.sizes()[*d] == index.numel() && named
            };
            return Err(match (0..self.ndim()).find(fits).and_then(|d| self.name(d)) {
                Some(other) => error.with_repair(format!("\"{other}\", which has as many elements")),
                None => error,
            });
        }
        rules::matched(op, ["x", "index"], [self.input(), index.input()], [dim, 0])?;
        let numbers = whole_positions(op, self, index)?;
        if cpu::stray(numbers.elements()?, count, None).is_some() {
            let (mut least, mut most) = (0, 0);
            for number in numbers.elements::<i64>()? {
                (least, most) = (least.min(*number), most.max(*number));
            }
            let stray = if least < 0 { least } else { most };
            let message = match stray {
                ..0 => format!("index has the number {stray}; segments are counted from 0"),
                _ => format!("index has the number {stray}, but there are {count} segments"),
            };
            let error = Error::about(&inputs, ErrorKind::Index, op, message);
            return Err(match (stray, name) {
                (..0, _) => error,
                (_, Some(name)) => {
                    error.with_repair(format!("(\"{name}\", {}) or more segments", stray.saturating_add(1)))
                }
                _ => error.with_repair(format!("{} or more segments", stray.saturating_add(1))),
            });
        }
        let mut shape = self.shape();
        shape.sizes[dim] = count;
        let names = (0..self.ndim()).map(|d| if d == dim { name } else { self.names().get(d) });
        shape.names = Names::new(op, names).map_err(|error| error.with_operands([self.shape()]))?;
        Ok((numbers, shape))
    }
}
