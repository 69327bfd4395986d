//! Transforms that are made of others: in a row, for parts of a dim, over event dims, and other shapes.

use crate::common::*;
use crate::frame::part;
use crate::transform::Transform;

/// The list of transforms as shared ones.
fn shared(transforms: impl IntoIterator<Item = Box<dyn Transform>>) -> Vec<Arc<dyn Transform>> {
    transforms.into_iter().map(Arc::from).collect()
}

/// The sum over the last `dims` dims.
#[track_caller]
pub(crate) fn sum_last(x: &Tensor, dims: isize) -> Result<Tensor> {
    let last: Vec<isize> = (1..=dims).map(|dim| -dim).collect();
    if last.is_empty() { Ok(x.clone()) } else { x.sum(last) }
}

/// Transforms one after the other.
///
/// ```
/// use namegrad::distributions::{AffineTransform, ComposeTransform, ExpTransform, Transform};
/// use namegrad::prelude::*;
/// let double = AffineTransform::new(0.0, 2.0)?;
/// let both = ComposeTransform::new([Box::new(double) as Box<dyn Transform>, Box::new(ExpTransform)]);
/// assert_eq!(both.inverse(&both.forward(&Tensor::new(0.0)?)?)?.item::<f64>()?, 0.0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ComposeTransform {
    parts: Vec<Arc<dyn Transform>>,
}

impl ComposeTransform {
    /// The transforms in the order in which they are applied.
    pub fn new(parts: impl IntoIterator<Item = Box<dyn Transform>>) -> ComposeTransform {
        ComposeTransform { parts: shared(parts) }
    }
}

impl Transform for ComposeTransform {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = x.clone();
        for part in &self.parts {
            x = part.forward(&x)?;
        }
        Ok(x)
    }
    fn inverse(&self, y: &Tensor) -> Result<Tensor> {
        let mut y = y.clone();
        for part in self.parts.iter().rev() {
            y = part.inverse(&y)?;
        }
        Ok(y)
    }
    fn log_abs_det_jacobian(&self, x: &Tensor, _y: &Tensor) -> Result<Tensor> {
        let (mut x, mut events, mut sum) = (x.clone(), self.event_dims().len() as isize, None::<Tensor>);
        for part in &self.parts {
            let y = part.forward(&x)?;
            let own = part.log_abs_det_jacobian(&x, &y)?;
            let own = sum_last(&own, events - part.event_dims().len() as isize)?;
            sum = Some(match sum {
                Some(sum) => sum.add(own)?,
                None => own,
            });
            events += part.new_event_dims();
            x = y;
        }
        sum.map_or_else(|| x.zeros_like(), Ok)
    }
    fn event_dims(&self) -> Vec<Dim> {
        // dims that a part makes are none of the input
        let (mut dims, mut made): (Vec<Dim>, Vec<Dim>) = (Vec::new(), Vec::new());
        for part in &self.parts {
            let new = part.event_dims().into_iter().filter(|dim| !dims.contains(dim) && !made.contains(dim));
            dims.extend(new.collect::<Vec<_>>());
            made.extend(part.made_dims());
        }
        dims
    }
    fn new_event_dims(&self) -> isize {
        self.parts.iter().map(|part| part.new_event_dims()).sum()
    }
    fn made_dims(&self) -> Vec<Dim> {
        self.parts.iter().flat_map(|part| part.made_dims()).collect()
    }
    fn sign(&self) -> Result<Tensor> {
        let mut sign = Tensor::ones(())?;
        for part in &self.parts {
            sign = sign.mul(part.sign()?)?;
        }
        Ok(sign)
    }
    fn codomain(&self) -> Support {
        self.parts.last().map_or(Support::Real, |last| last.codomain())
    }
}

/// A transform over further event dims: the logarithm of its slope is added up over them.
///
/// ```
/// use namegrad::distributions::{ExpTransform, IndependentTransform, Transform};
/// use namegrad::prelude::*;
/// let exp = IndependentTransform::new(ExpTransform, ["coord"]);
/// let x = Tensor::ones([("N", 2), ("coord", 3)])?;
/// assert_eq!(exp.log_abs_det_jacobian(&x, &exp.forward(&x)?)?.to_vec::<f32>()?, [3.0, 3.0]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct IndependentTransform {
    base: Arc<dyn Transform>,
    dims: Vec<Dim>,
}

impl IndependentTransform {
    /// `base` over `dims`, which are no event dims of it.
    pub fn new(base: impl Transform, dims: impl IntoIterator<Item = impl Into<Dim>>) -> IndependentTransform {
        IndependentTransform { base: Arc::new(base), dims: dims.into_iter().map(Into::into).collect() }
    }
}

impl Transform for IndependentTransform {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.base.forward(x)
    }
    fn inverse(&self, y: &Tensor) -> Result<Tensor> {
        self.base.inverse(y)
    }
    fn log_abs_det_jacobian(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        self.base.log_abs_det_jacobian(x, y)?.sum(self.dims.clone())
    }
    fn event_dims(&self) -> Vec<Dim> {
        self.dims.iter().cloned().chain(self.base.event_dims()).collect()
    }
    fn new_event_dims(&self) -> isize {
        self.base.new_event_dims()
    }
    fn made_dims(&self) -> Vec<Dim> {
        self.base.made_dims()
    }
    fn codomain(&self) -> Support {
        self.base.codomain()
    }
}

/// Another transform for each part of a dim; the parts are next to each other.
///
/// ```
/// use namegrad::distributions::{CatTransform, ExpTransform, TanhTransform, Transform};
/// use namegrad::prelude::*;
/// let parts = [(Box::new(ExpTransform) as Box<dyn Transform>, 1), (Box::new(TanhTransform), 2)];
/// let y = CatTransform::new(parts, "C").forward(&Tensor::zeros([("C", 3)])?)?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 0.0, 0.0]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CatTransform {
    parts: Vec<(Arc<dyn Transform>, usize)>,
    dim: Dim,
}

impl CatTransform {
    /// Each transform with the number of elements of `dim` that it is for. They are functions of one element.
    pub fn new(
        parts: impl IntoIterator<Item = (Box<dyn Transform>, usize)>,
        dim: impl Into<Dim>,
    ) -> CatTransform {
        let parts = parts.into_iter().map(|(part, length)| (Arc::from(part), length)).collect();
        CatTransform { parts, dim: dim.into() }
    }

    /// A function of each part of two tensors, joined again.
    #[track_caller]
    fn each(
        &self,
        x: &Tensor,
        y: &Tensor,
        f: &dyn Fn(&dyn Transform, &Tensor, &Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let (total, size) =
            (self.parts.iter().map(|(_, length)| length).sum::<usize>(), x.size(self.dim.clone())?);
        if total != size {
            let message = format!("the parts have {total} elements, and the tensor {size}");
            return Err(Error::new(ErrorKind::Shape, "CatTransform", message).with_operands([x.shape()]));
        }
        let (mut start, mut results) = (0, Vec::with_capacity(self.parts.len()));
        for (part, length) in &self.parts {
            let of = |x: &Tensor| x.narrow(self.dim.clone(), start, *length);
            results.push(f(&**part, &of(x)?, &of(y)?)?);
            start += *length as isize;
        }
        Tensor::cat(&results.iter().collect::<Vec<_>>(), self.dim.clone())
    }
}

impl Transform for CatTransform {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.each(x, x, &|part, x, _| part.forward(x))
    }
    fn inverse(&self, y: &Tensor) -> Result<Tensor> {
        self.each(y, y, &|part, y, _| part.inverse(y))
    }
    fn log_abs_det_jacobian(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        self.each(x, y, &|part, x, y| part.log_abs_det_jacobian(x, y))
    }
    fn sign(&self) -> Result<Tensor> {
        Err(Error::new(ErrorKind::Unsupported, "sign", "the parts of a CatTransform have signs of their own"))
    }
}

/// Another transform for each slice along a dim.
///
/// ```
/// use namegrad::distributions::{ExpTransform, StackTransform, TanhTransform, Transform};
/// use namegrad::prelude::*;
/// let slices: [Box<dyn Transform>; 2] = [Box::new(ExpTransform), Box::new(TanhTransform)];
/// let stack = StackTransform::new(slices, "C");
/// let y = stack.forward(&Tensor::zeros([("N", 2), ("C", 2)])?)?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 0.0, 1.0, 0.0]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct StackTransform(CatTransform);

impl StackTransform {
    /// The transforms of the slices along `dim`. They are functions of one element.
    pub fn new(parts: impl IntoIterator<Item = Box<dyn Transform>>, dim: impl Into<Dim>) -> StackTransform {
        StackTransform(CatTransform::new(parts.into_iter().map(|part| (part, 1)), dim))
    }
}

impl Transform for StackTransform {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.0.forward(x)
    }
    fn inverse(&self, y: &Tensor) -> Result<Tensor> {
        self.0.inverse(y)
    }
    fn log_abs_det_jacobian(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        self.0.log_abs_det_jacobian(x, y)
    }
    fn sign(&self) -> Result<Tensor> {
        self.0.sign()
    }
}

/// The event dims in another shape.
///
/// ```
/// use namegrad::distributions::{ReshapeTransform, Transform};
/// use namegrad::prelude::*;
/// let flat = ReshapeTransform::new([("H", 2), ("W", 3)], ("pixel", 6))?;
/// let y = flat.forward(&Tensor::zeros([("N", 4), ("H", 2), ("W", 3)])?)?;
/// assert_eq!(y.shape().to_string(), "[N=4, pixel=6]");
/// assert_eq!(flat.inverse(&y)?.shape().to_string(), "[N=4, H=2, W=3]");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ReshapeTransform {
    from: Shape,
    to: Shape,
}

impl ReshapeTransform {
    /// The dims `from`, found by name or else at the end, as the dims `to`.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] unless both have the same number of elements, and the errors of the shapes.
    #[track_caller]
    pub fn new(from: impl IntoShape, to: impl IntoShape) -> Result<ReshapeTransform> {
        const NAME: &str = "ReshapeTransform";
        let (from, to) = (from.shape_for(NAME)?, to.shape_for(NAME)?);
        if from.sizes.iter().product::<usize>() != to.sizes.iter().product::<usize>() {
            let message = "the dims must have as many elements in both shapes";
            return Err(Error::new(ErrorKind::Shape, NAME, message).with_operands([from, to]));
        }
        Ok(ReshapeTransform { from, to })
    }
}

/// Dims as arguments: by name, or from the end.
fn as_dims(shape: &Shape) -> Vec<Dim> {
    let count = shape.sizes.len();
    (0..count)
        .map(|dim| shape.names.get(dim).map_or(Dim::Index(dim as isize - count as isize), Dim::Name))
        .collect()
}

/// `x` with its dims `from` as the dims `to`, at the end.
#[track_caller]
fn reshaped(x: &Tensor, from: &Shape, to: &Shape) -> Result<Tensor> {
    let mut places = Vec::with_capacity(from.sizes.len());
    for dim in as_dims(from) {
        places.push(dim.look_up("ReshapeTransform", &[x.value()])?);
    }
    let x = moved_last(x, &places)?;
    let rest = part(&x.shape(), 0..x.ndim() - places.len());
    let shape = crate::frame::concatenated(&rest, to)?;
    x.rename(None).reshape(&shape.sizes).rename(Some(shape.names))
}

impl Transform for ReshapeTransform {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        reshaped(x, &self.from, &self.to)
    }
    fn inverse(&self, y: &Tensor) -> Result<Tensor> {
        reshaped(y, &self.to, &self.from)
    }
    fn log_abs_det_jacobian(&self, x: &Tensor, _y: &Tensor) -> Result<Tensor> {
        x.detach().zeros_like()?.sum(self.event_dims())
    }
    fn event_dims(&self) -> Vec<Dim> {
        as_dims(&self.from)
    }
    fn new_event_dims(&self) -> isize {
        self.to.sizes.len() as isize - self.from.sizes.len() as isize
    }
    fn made_dims(&self) -> Vec<Dim> {
        as_dims(&self.to)
    }
}
