//! [`TripletMarginWithDistanceLoss`], whose distance is a function.

use super::*;
use crate::functional::TripletMarginWithDistanceLossOptions;

/// The distance of a [`TripletMarginWithDistanceLoss`].
#[derive(Clone)]
pub struct Distance(Arc<OfPair>);

/// A function of two tensors.
type OfPair = dyn Fn(&Tensor, &Tensor) -> Result<Tensor> + Send + Sync;

impl<F: Fn(&Tensor, &Tensor) -> Result<Tensor> + Send + Sync + 'static> From<F> for Distance {
    fn from(distance: F) -> Distance {
        Distance(Arc::new(distance))
    }
}

impl fmt::Debug for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Distance")
    }
}

/// [`F::triplet_margin_with_distance_loss`](crate::functional::triplet_margin_with_distance_loss) as a
/// layer, with a distance that you give: a function of two tensors that returns one number for each pair.
///
/// # Shapes
/// - `anchor`, `positive`, `negative`: dims that broadcast
/// - result: one number, or without reduction the dims of the distance
///
/// # Parameters
/// None.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// use namegrad::nn::TripletMarginWithDistanceLoss;
/// let distance = |a: &Tensor, b: &Tensor| F::cosine_similarity(a, b, "embed").neg().add(1);
/// let x = Tensor::randn([("N", 4), ("embed", 8)])?;
/// let loss = TripletMarginWithDistanceLoss::builder(distance).margin(0.25).build();
/// assert_eq!(loss.forward(&x, &x, &x.neg()?)?.item::<f64>()?, 0.0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = TripletMarginWithDistanceLoss::text, layer(anchor, positive, negative))]
pub struct TripletMarginWithDistanceLoss {
    #[module(skip)]
    distance: Distance,
    #[module(skip)]
    pub(crate) options: TripletMarginWithDistanceLossOptions,
    path: ModulePath,
}

impl TripletMarginWithDistanceLoss {
    /// The layer with the default options.
    pub fn new(distance: impl Into<Distance>) -> TripletMarginWithDistanceLoss {
        let options = TripletMarginWithDistanceLossOptions::default();
        TripletMarginWithDistanceLoss { distance: distance.into(), options, path: ModulePath::new() }
    }

    /// A builder, to change the options of [`new`](Self::new).
    pub fn builder(distance: impl Into<Distance>) -> TripletMarginWithDistanceLossBuilder {
        TripletMarginWithDistanceLossBuilder { layer: TripletMarginWithDistanceLoss::new(distance) }
    }

    /// The output.
    ///
    /// # Errors
    /// Same as [`F::triplet_margin_with_distance_loss`].
    #[track_caller]
    pub fn forward(&self, anchor: &Tensor, positive: &Tensor, negative: &Tensor) -> Result<Tensor> {
        self.path.run("TripletMarginWithDistanceLoss", &[anchor, positive, negative], &|_: &Running| {
            let distance = &*self.distance.0;
            F::triplet_margin_with_distance_loss(anchor, positive, negative, distance, self.options)
        })
    }

    fn text(&self) -> String {
        let TripletMarginWithDistanceLossOptions { margin, swap, reduction } = &self.options;
        let layer = "TripletMarginWithDistanceLoss";
        described(layer, &[("margin", margin), ("swap", swap), ("reduction", reduction)])
    }
}

/// A builder for [`TripletMarginWithDistanceLoss`]; see [`TripletMarginWithDistanceLoss::builder`].
#[derive(Clone, Debug)]
pub struct TripletMarginWithDistanceLossBuilder {
    pub(crate) layer: TripletMarginWithDistanceLoss,
}

impl TripletMarginWithDistanceLossBuilder {
    /// The layer.
    pub fn build(self) -> TripletMarginWithDistanceLoss {
        self.layer
    }
}
