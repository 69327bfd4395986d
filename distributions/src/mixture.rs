//! [`MixtureSameFamily`], mixtures of distributions of one kind.

use crate::categorical::Categorical;
use crate::common::*;
use crate::frame::part;
use crate::independent::IntoDistribution;

/// A mixture of distributions of one kind: the components are along a batch dim of `component`, and each has
/// the probability that `mixture` gives to its class.
///
/// ```
/// use namegrad::distributions::{Categorical, MixtureSameFamily, Normal};
/// use namegrad::prelude::*;
/// let weights = Categorical::new(&Tensor::new([0.25, 0.75])?.refine_names(["k"])?, "k")?;
/// let normals = Normal::new(&Tensor::new([-3.0, 3.0])?.refine_names(["k"])?, 1.0)?;
/// let x = MixtureSameFamily::new(weights, normals)?;
/// assert_eq!(x.mean()?.item::<f64>()?, 1.5);
/// assert_eq!(x.sample([("draw", 5)])?.shape().to_string(), "[draw=5]");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MixtureSameFamily {
    mixture: Categorical,
    component: Arc<dyn Distribution>,
    /// How many batch dims of the component are behind that of the classes.
    behind: usize,
    frame: Frame,
}

impl MixtureSameFamily {
    /// The mixture of the distributions in the batch of `component`, along the dim that has the name of the
    /// classes of `mixture`, or the last if that has no name.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if the component has no such batch dim, [`ErrorKind::Shape`] if there are
    /// not as many components as classes, the errors of broadcasting the other batch dims.
    #[track_caller]
    pub fn new(mixture: Categorical, component: impl IntoDistribution) -> Result<MixtureSameFamily> {
        MixtureSameFamily::of(mixture, component.shared())
    }

    #[track_caller]
    fn of(mixture: Categorical, component: Arc<dyn Distribution>) -> Result<MixtureSameFamily> {
        const NAME: &str = "MixtureSameFamily";
        let (batch, classes) = (component.frame().batch().clone(), mixture.class_shape());
        let here = Location::caller();
        let fault = |kind, message: String| Err(Error::new(kind, NAME, message).at(here));
        let Some(last) = batch.sizes.len().checked_sub(1) else {
            return fault(ErrorKind::Shape, format!("the component has no batch dim: {}", component.frame()));
        };
        let place = match classes.names.get(0) {
            Some(name) if batch.names.position(name).is_some() => batch.names.position(name).unwrap_or(last),
            Some(name) if batch.names.get(last).is_some() => {
                let message =
                    format!("the component has no batch dim '{name}', that of the mixture's classes");
                return fault(ErrorKind::NameNotFound, format!("{message}: {}", component.frame()));
            }
            _ => last,
        };
        if batch.sizes[place] != mixture.classes() {
            let message = format!(
                "the mixture has {} classes, and the component {} distributions: {}",
                mixture.classes(),
                batch.sizes[place],
                component.frame()
            );
            return fault(ErrorKind::Shape, message);
        }
        let others = (0..=last).filter(|dim| *dim != place);
        let names = Names::new(NAME, others.clone().map(|dim| batch.names.get(dim)))?;
        let others = Shape { sizes: others.map(|dim| batch.sizes[dim]).collect(), names };
        let own = expanded(&Tensor::zeros(())?, &others)?;
        let of_mixture = expanded(&Tensor::zeros(())?, mixture.frame().batch())?;
        let spread = unified(NAME, &["mixture", "component"], &[&of_mixture, &own])?;
        let event = component.frame().event().clone();
        let frame = Frame::new(NAME, spread[0].shape(), event, component.frame().dtype());
        Ok(MixtureSameFamily { mixture, component, behind: last - place, frame })
    }

    /// The probabilities of the components.
    pub fn mixture(&self) -> &Categorical {
        &self.mixture
    }

    /// The components, along one of the batch dims.
    pub fn component(&self) -> &dyn Distribution {
        &*self.component
    }

    /// The name of the dim of the components.
    fn class_name(&self) -> Option<Name> {
        let batch = self.component.frame().batch();
        batch.names.get(batch.sizes.len() - 1 - self.behind)
    }

    fn events(&self) -> usize {
        self.frame.event().sizes.len()
    }

    /// A value with a dim for the components.
    #[track_caller]
    fn padded(&self, x: &Tensor) -> Result<Tensor> {
        inserted(x, self.behind + self.events(), self.class_name())
    }

    /// A tensor over the classes of the mixture with their dim where the component has it, and `events` more
    /// dims.
    #[track_caller]
    fn placed(&self, x: &Tensor, events: usize) -> Result<Tensor> {
        let mut x = x.clone();
        while x.ndim() <= self.behind {
            x = x.unsqueeze(0)?;
        }
        let place = x.ndim() - 1 - self.behind;
        let mut x = x.movedim(-1, place)?;
        for _ in 0..events {
            x = x.unsqueeze(-1)?;
        }
        Ok(x)
    }

    /// The mean over the components of a tensor with `events` event dims.
    #[track_caller]
    fn average(&self, x: &Tensor, events: usize) -> Result<Tensor> {
        let weighted = self.placed(self.mixture.probs(), events)?.mul(x)?;
        let dim = weighted.ndim() - 1 - self.behind - events;
        weighted.sum(dim)
    }
}

/// A tensor with a dim of size one that has `behind` dims behind it.
#[track_caller]
fn inserted(x: &Tensor, behind: usize, name: Option<Name>) -> Result<Tensor> {
    let mut x = x.clone();
    while x.ndim() < behind {
        x = x.unsqueeze(0)?;
    }
    let place = x.ndim() - behind;
    match name {
        Some(name) => x.unsqueeze_with(place, UnsqueezeOptions::new().name(name)),
        None => x.unsqueeze(place),
    }
}

impl Distribution for MixtureSameFamily {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        self.component.support()
    }
    fn check_value(&self, op: &'static str, x: &Tensor) -> Result<()> {
        self.component.check_value(op, &self.padded(x)?)
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        let of_components = self.component.log_density(&self.padded(x)?)?;
        let both = self.placed(&self.mixture.logits().log_softmax(-1)?, 0)?.add(of_components)?;
        let dim = both.ndim() - 1 - self.behind;
        both.logsumexp(dim)
    }
    fn cumulative(&self, x: &Tensor) -> Result<Tensor> {
        self.average(&self.component.cumulative(&self.padded(x)?)?, 0)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        let (events, dims) = (self.events(), shape.sizes.len());
        let place = dims - events - self.behind;
        let mut sizes = shape.sizes.clone();
        sizes.insert(place, self.mixture.classes());
        let drawn = self.component.draw(&Shape { sizes, names: Names::none() })?.rename(None)?;
        let batch = part(shape, 0..dims - events);
        let mut index = self.mixture.draw(&batch)?.rename(None)?.unsqueeze(place)?;
        let mut picked = shape.sizes.clone();
        picked.insert(place, 1);
        for _ in 0..events {
            index = index.unsqueeze(-1)?;
        }
        let index = index.expand(picked)?;
        renamed(&drawn.gather(&index, place).squeeze(place)?, &shape.names)
    }
    fn mean(&self) -> Result<Tensor> {
        self.average(&self.component.mean()?, self.events())
    }
    fn variance(&self) -> Result<Tensor> {
        let (means, events) = (self.component.mean()?, self.events());
        let within = self.average(&self.component.variance()?, events)?;
        let center = inserted(&self.mean()?, self.behind + events, self.class_name())?;
        within.add(self.average(&means.sub(center).square()?, events)?)
    }
}
