//! [`Independent`], batch dims as event dims.

use crate::common::*;
use crate::frame::concatenated;

/// What becomes a shared distribution: a distribution, `Box<dyn Distribution>` or `Arc<dyn Distribution>`.
pub trait IntoDistribution {
    /// The distribution.
    fn shared(self) -> Arc<dyn Distribution>;
}

impl<D: Distribution> IntoDistribution for D {
    fn shared(self) -> Arc<dyn Distribution> {
        Arc::new(self)
    }
}

impl IntoDistribution for Box<dyn Distribution> {
    fn shared(self) -> Arc<dyn Distribution> {
        self.into()
    }
}

impl IntoDistribution for Arc<dyn Distribution> {
    fn shared(self) -> Arc<dyn Distribution> {
        self
    }
}

/// A distribution some of whose batch dims are event dims: `log_prob` adds up over them.
///
/// ```
/// use namegrad::distributions::{Independent, Normal};
/// use namegrad::prelude::*;
/// let pixels = Normal::new(&Tensor::zeros([("H", 4), ("W", 4), ("N", 2)])?, 1.0)?;
/// let image = Independent::new(pixels, ["H", "W"])?;
/// assert_eq!(image.batch_shape().to_string(), "[N=2]");
/// assert_eq!(image.event_shape().to_string(), "[H=4, W=4]");
/// assert_eq!(image.log_prob(&image.sample(())?)?.shape().to_string(), "[N=2]");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Independent {
    pub(crate) base: Arc<dyn Distribution>,
    /// Where the dims are in the batch of the base.
    picked: Vec<usize>,
    frame: Frame,
}

impl Independent {
    /// `base` with its batch dims `dims` as event dims, in front of those that it has: names, or indices in
    /// the batch, such as -1 for the last batch dim.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] and [`ErrorKind::DimRange`] if the batch lacks one of the dims.
    #[track_caller]
    pub fn new(base: impl IntoDistribution, dims: impl Into<Dims>) -> Result<Independent> {
        Independent::of(base.shared(), dims.into())
    }

    #[track_caller]
    pub(crate) fn of(base: Arc<dyn Distribution>, dims: Dims) -> Result<Independent> {
        let batch = base.frame().batch();
        // a tensor of the batch dims, to look the dims up in
        let stand_in = Tensor::zeros(())?.expand(&batch.sizes).rename(Some(batch.names.clone()))?;
        let picked: Vec<usize> = match dims.look_up("Independent", &[stand_in.value()]) {
            Ok(picked) => picked.to_vec(),
            Err(error) => return Err(error.context(format_args!("batch dims of {}: ", base.frame()))),
        };
        let rest: Vec<usize> = (0..batch.sizes.len()).filter(|dim| !picked.contains(dim)).collect();
        let select = |dims: &[usize]| -> Result<Shape> {
            let names = Names::new("Independent", dims.iter().map(|dim| batch.names.get(*dim)))?;
            Ok(Shape { sizes: dims.iter().map(|dim| batch.sizes[*dim]).collect(), names })
        };
        let event = concatenated(&select(&picked)?, base.frame().event())?;
        let frame = Frame::new("Independent", select(&rest)?, event, base.frame().dtype());
        Ok(Independent { base, picked, frame })
    }

    /// The number of batch dims of the base.
    fn batch_dims(&self) -> usize {
        self.base.frame().batch().sizes.len()
    }

    /// For each dim of the base, which of the dims here it is: first the batch, then the picked dims, then
    /// the events.
    fn places(&self) -> Vec<usize> {
        let (batch, events) = (self.batch_dims(), self.base.frame().event().sizes.len());
        let rest: Vec<usize> = (0..batch).filter(|dim| !self.picked.contains(dim)).collect();
        let here: Vec<usize> =
            rest.iter().chain(&self.picked).copied().chain(batch..batch + events).collect();
        (0..batch + events)
            .map(|dim| here.iter().position(|own| *own == dim).expect("every dim is listed"))
            .collect()
    }

    /// Whether the dims here are in the order of the base.
    fn is_in_order(&self) -> bool {
        self.places().is_sorted()
    }

    /// A value with its dims in the order of the base.
    #[track_caller]
    fn to_base(&self, x: &Tensor) -> Result<Tensor> {
        if self.is_in_order() {
            return Ok(x.clone());
        }
        let places = self.places();
        let mut x = x.clone();
        while x.ndim() < places.len() {
            x = x.unsqueeze(0)?;
        }
        let drawn = x.ndim() - places.len();
        let order: Vec<usize> = (0..drawn).chain(places.iter().map(|place| drawn + place)).collect();
        x.permute(order)
    }

    /// A tensor of the base with its dims in the order here.
    #[track_caller]
    fn here(&self, x: &Tensor) -> Result<Tensor> {
        if self.is_in_order() {
            return Ok(x.clone());
        }
        let places = self.places();
        let drawn = x.ndim() - places.len();
        let mut order: Vec<usize> = (0..x.ndim()).collect();
        for (dim, place) in places.iter().enumerate() {
            order[drawn + place] = drawn + dim;
        }
        x.permute(order)
    }

    /// The sum of a result of the base over the picked dims.
    #[track_caller]
    pub(crate) fn summed(&self, x: &Tensor) -> Result<Tensor> {
        let first = x.ndim() - self.batch_dims();
        let dims: Vec<usize> = self.picked.iter().map(|dim| first + dim).collect();
        if dims.is_empty() { Ok(x.clone()) } else { x.sum(dims) }
    }

    /// The number of dims that became event dims.
    pub(crate) fn reinterpreted(&self) -> &[usize] {
        &self.picked
    }
}

impl Distribution for Independent {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        self.base.support()
    }
    fn check_value(&self, op: &'static str, x: &Tensor) -> Result<()> {
        self.base.check_value(op, &self.to_base(x)?)
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        self.summed(&self.base.log_density(&self.to_base(x)?)?)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        let places = self.places();
        let drawn = shape.sizes.len() - places.len();
        let dims: Vec<usize> = (0..drawn).chain(places.iter().map(|place| drawn + place)).collect();
        let names = Names::new("sample", dims.iter().map(|dim| shape.names.get(*dim)))?;
        let of_base = Shape { sizes: dims.iter().map(|dim| shape.sizes[*dim]).collect(), names };
        self.here(&self.base.draw(&of_base)?)
    }
    fn has_rsample(&self) -> bool {
        self.base.has_rsample()
    }
    fn mean(&self) -> Result<Tensor> {
        self.here(&self.base.mean()?)
    }
    fn mode(&self) -> Result<Tensor> {
        self.here(&self.base.mode()?)
    }
    fn variance(&self) -> Result<Tensor> {
        self.here(&self.base.variance()?)
    }
    fn entropy(&self) -> Result<Tensor> {
        self.summed(&self.base.entropy()?)
    }
}
