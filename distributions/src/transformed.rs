//! [`Transformed`], the distribution of a function of a draw.

use crate::common::*;
use crate::frame::{concatenated, split};
use crate::independent::{Independent, IntoDistribution};
use crate::transform::Transform;
use crate::transform_of::sum_last;

/// The distribution of a function of a draw: the base is transformed by each of a list of [`Transform`]s.
///
/// `log_prob` adds the logarithm of the slope. Dims that a transform of vectors knows by name become event
/// dims.
///
/// ```
/// use namegrad::distributions::{AffineTransform, ExpTransform, Normal, Transform, Transformed};
/// use namegrad::prelude::*;
/// let normal = Normal::new(&Tensor::zeros([("N", 3)])?, 1.0)?;
/// let affine = AffineTransform::new(1.0, 2.0)?;
/// let transforms: Vec<Box<dyn Transform>> = vec![Box::new(ExpTransform), Box::new(affine)];
/// let x = Transformed::new(normal, transforms)?;
/// assert!(x.sample([("draw", 100)])?.gt(1.0)?.all(..)?.item::<bool>()?);
/// assert!((x.cdf(&Tensor::new([3.0, 3.0, 3.0])?)?.item_at::<f64>([0])? - 0.5).abs() < 1e-6);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Transformed {
    pub(crate) base: Arc<dyn Distribution>,
    pub(crate) transforms: Vec<Arc<dyn Transform>>,
    frame: Frame,
}

impl Transformed {
    /// The distribution of draws of `base` after each of `transforms`, in this order.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] and [`ErrorKind::DimRange`] if the base lacks a dim of a transform, and
    /// the errors of the transforms.
    #[track_caller]
    pub fn new(
        base: impl IntoDistribution,
        transforms: impl IntoIterator<Item = Box<dyn Transform>>,
    ) -> Result<Transformed> {
        Transformed::of(base.shared(), transforms.into_iter().map(Arc::from).collect())
    }

    #[track_caller]
    fn of(base: Arc<dyn Distribution>, transforms: Vec<Arc<dyn Transform>>) -> Result<Transformed> {
        let mut base = base;
        let mut made: Vec<Dim> = Vec::new();
        for transform in &transforms {
            let dims = transform.event_dims().into_iter().filter(|dim| !made.contains(dim));
            base = with_events(base, &dims.collect::<Vec<_>>())?;
            made.extend(transform.made_dims());
        }
        let (mut shape, mut events) =
            (concatenated(base.frame().batch(), base.frame().event())?, event_dims(&*base));
        for transform in &transforms {
            shape = match transform.forward_shape(&shape) {
                Ok(shape) => shape,
                Err(error) => {
                    let about = format!("{transform:?} of {}: ", base.frame());
                    return Err(error.of("Transformed").context(about).at(Location::caller()));
                }
            };
            events += transform.new_event_dims();
        }
        let (batch, event) = split(&shape, events.unsigned_abs());
        let frame = Frame::new("Transformed", batch, event, base.frame().dtype());
        Ok(Transformed { base, transforms, frame })
    }

    /// The distribution that is transformed.
    pub fn base(&self) -> &dyn Distribution {
        &*self.base
    }

    #[track_caller]
    fn forward(&self, x: Tensor) -> Result<Tensor> {
        let mut x = x;
        for transform in &self.transforms {
            x = transform.forward(&x)?;
        }
        Ok(x)
    }

    /// 1 where the transforms increase, -1 where they decrease.
    #[track_caller]
    fn sign(&self) -> Result<Tensor> {
        let mut sign = Tensor::ones(())?;
        for transform in &self.transforms {
            sign = sign.mul(transform.sign()?)?;
        }
        Ok(sign)
    }

    /// `p` where the transforms increase, and `1 - p` where they decrease.
    #[track_caller]
    fn monotone(&self, p: &Tensor) -> Result<Tensor> {
        self.sign()?.gt(0.0)?.choose(p, p.neg().add(1.0)?)
    }
}

/// The number of event dims.
fn event_dims(of: &dyn Distribution) -> isize {
    of.frame().event().sizes.len() as isize
}

/// A distribution with these dims as event dims, if they are not yet.
#[track_caller]
fn with_events(base: Arc<dyn Distribution>, dims: &[Dim]) -> Result<Arc<dyn Distribution>> {
    let (batch, event) = (base.frame().batch(), base.frame().event());
    let missing = |(place, dim): (usize, &Dim)| match dim {
        Dim::Name(name) => batch.names.position(*name).map(|_| dim.clone()),
        // an index from the end, if there are not so many event dims
        Dim::Index(_) if dims.len() - place > event.sizes.len() => {
            Some(Dim::Index(event.sizes.len() as isize - (dims.len() - place) as isize))
        }
        _ => None,
    };
    let missing: Vec<Dim> = dims.iter().enumerate().filter_map(missing).collect();
    if missing.is_empty() { Ok(base) } else { Ok(Arc::new(Independent::of(base, Dims::from(missing))?)) }
}

impl Distribution for Transformed {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        self.transforms.last().map_or_else(|| self.base.support(), |last| last.codomain())
    }
    fn log_density(&self, y: &Tensor) -> Result<Tensor> {
        let (mut y, mut events, mut slope) = (y.clone(), event_dims(self), None::<Tensor>);
        for transform in self.transforms.iter().rev() {
            let x = transform.inverse(&y)?;
            events -= transform.new_event_dims();
            let own = transform.log_abs_det_jacobian(&x, &y)?;
            let own = sum_last(&own, events - transform.event_dims().len() as isize)?;
            slope = Some(match slope {
                Some(slope) => slope.add(own)?,
                None => own,
            });
            y = x;
        }
        if self.frame.is_checked() {
            self.base.check_value("log_prob", &y)?;
        }
        let log = self.base.log_density(&y)?;
        match slope {
            Some(slope) => log.sub(slope),
            None => Ok(log),
        }
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        let own = self.frame.batch().sizes.len() + self.frame.event().sizes.len();
        let drawn = crate::frame::part(shape, 0..shape.sizes.len() - own);
        let of_base = self.base.frame().drawn("sample", &drawn)?;
        self.forward(self.base.draw(&of_base)?)
    }
    fn has_rsample(&self) -> bool {
        self.base.has_rsample()
    }
    fn cumulative(&self, y: &Tensor) -> Result<Tensor> {
        let mut y = y.clone();
        for transform in self.transforms.iter().rev() {
            y = transform.inverse(&y)?;
        }
        if self.frame.is_checked() {
            self.base.check_value("cdf", &y)?;
        }
        self.monotone(&self.base.cumulative(&y)?)
    }
    fn quantile(&self, p: &Tensor) -> Result<Tensor> {
        self.forward(self.base.quantile(&self.monotone(p)?)?)
    }
}
