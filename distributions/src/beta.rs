//! The beta distribution and Dirichlet's, its form for more than two parts.

use crate::common::*;
use crate::frame::part;

/// The beta distribution on `[0, 1]`, with density `x^(α - 1) (1 - x)^(β - 1) / B(α, β)`.
///
/// Gradients flow through its draws to both parameters (implicit reparametrization).
///
/// ```
/// use namegrad::distributions::Beta;
/// use namegrad::prelude::*;
/// let x = Beta::new(&Tensor::new([1.0, 3.0])?.refine_names(["N"])?, 1.0)?;
/// assert_eq!(x.mean()?.to_vec::<f32>()?, [0.5, 0.75]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Beta {
    /// The shape at 1, `α`, positive.
    pub concentration1: Tensor,
    /// The shape at 0, `β`, positive.
    pub concentration0: Tensor,
    frame: Frame,
}

impl Beta {
    /// The distribution with the shapes `α` and `β`.
    ///
    /// # Errors
    /// As [`Normal::new`](crate::Normal::new).
    #[track_caller]
    pub fn new(concentration1: impl Operand, concentration0: impl Operand) -> Result<Beta> {
        let given = [
            ("concentration1", &concentration1 as &dyn Operand, Support::Positive),
            ("concentration0", &concentration0, Support::Positive),
        ];
        let ([concentration1, concentration0], frame) = parameters("Beta", given)?;
        Ok(Beta { concentration1, concentration0, frame })
    }

    #[track_caller]
    pub(crate) fn total(&self) -> Result<Tensor> {
        self.concentration1.add(&self.concentration0)
    }
}

impl Distribution for Beta {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::UnitInterval
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        special::log_beta_density(&self.concentration1, &self.concentration0, x)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        let one = random::log_gamma(shape, &self.concentration1)?;
        let zero = random::log_gamma(shape, &self.concentration0)?;
        one.sub(zero).sigmoid().to(self.concentration1.dtype())
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn mean(&self) -> Result<Tensor> {
        self.concentration1.div(self.total()?)
    }
    fn mode(&self) -> Result<Tensor> {
        let (one, zero) = (&self.concentration1, &self.concentration0);
        let (above, below) = (one.sub(1.0).clamp_min(0.0)?, zero.sub(1.0).clamp_min(0.0)?);
        let mode = above.div(above.add(&below)?)?;
        // as in PyTorch, the first of two modes
        mode.masked_fill(&one.lt(1.0)?.logical_and(zero.lt(1.0)?)?, 1.0)
    }
    fn variance(&self) -> Result<Tensor> {
        let total = self.total()?;
        self.concentration1.mul(&self.concentration0).div(total.square().mul(total.add(1.0)?)?)
    }
    fn entropy(&self) -> Result<Tensor> {
        let (one, zero, total) = (&self.concentration1, &self.concentration0, self.total()?);
        let parts = one.sub(1.0).mul(one.digamma()?).add(zero.sub(1.0).mul(zero.digamma()?)?)?;
        special::log_beta(one, zero)?.add(total.sub(2.0).mul(total.digamma()?)?).sub(parts)
    }
}

/// Dirichlet's distribution of shares whose sum is 1, with density
/// `Π xᵢ^(αᵢ - 1) Γ(Σ αᵢ) / Π Γ(αᵢ)`.
///
/// Gradients flow through its draws (implicit reparametrization).
///
/// ```
/// use namegrad::distributions::Dirichlet;
/// use namegrad::prelude::*;
/// let concentration = Tensor::new([[1.0, 2.0], [1.0, 3.0]])?.refine_names(["topic", "N"])?;
/// let x = Dirichlet::new(&concentration, "topic")?;
/// assert_eq!(x.batch_shape().to_string(), "[N=2]");
/// assert_eq!(x.sample([("draw", 5)])?.shape().to_string(), "[draw=5, N=2, topic=2]");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Dirichlet {
    /// The concentrations `α`, positive, with the event dim at the end.
    pub concentration: Tensor,
    frame: Frame,
}

impl Dirichlet {
    /// The distribution of shares along `dim` of `concentration`.
    ///
    /// # Errors
    /// As [`Normal::new`](crate::Normal::new), and [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`] or
    /// [`ErrorKind::Shape`] if `concentration` has no such dim.
    #[track_caller]
    pub fn new(concentration: impl Operand, dim: impl Into<Dim>) -> Result<Dirichlet> {
        Dirichlet::of(&concentration, &dim.into())
    }

    #[track_caller]
    fn of(concentration: &dyn Operand, dim: &Dim) -> Result<Dirichlet> {
        const NAME: &str = "Dirichlet";
        let given = floats(NAME, &[("concentration", concentration)])?.remove(0);
        check(NAME, "concentration", &Support::Positive, &given)?;
        let concentration = with_events(NAME, "concentration", &given, dim)?;
        let frame = Frame::of_events(NAME, &concentration, 1);
        Ok(Dirichlet { concentration, frame })
    }

    /// The sum of the concentrations.
    #[track_caller]
    pub(crate) fn total(&self) -> Result<Tensor> {
        self.concentration.sum(-1)
    }
}

impl Distribution for Dirichlet {
    fn frame(&self) -> &Frame {
        &self.frame
    }
    fn support(&self) -> Support {
        Support::Simplex
    }
    fn log_density(&self, x: &Tensor) -> Result<Tensor> {
        let logs = self.concentration.sub(1.0).xlogy(x)?.sum(-1)?;
        logs.add(self.total()?.lgamma()?).sub(self.concentration.lgamma().sum(-1)?)
    }
    fn draw(&self, shape: &Shape) -> Result<Tensor> {
        random::log_gamma(shape, &self.concentration)?.softmax(-1).to(self.concentration.dtype())
    }
    fn has_rsample(&self) -> bool {
        true
    }
    fn mean(&self) -> Result<Tensor> {
        self.concentration.div(self.concentration.sum(keep(-1))?)
    }
    fn mode(&self) -> Result<Tensor> {
        let above = self.concentration.sub(1.0).clamp_min(0.0)?;
        let mode = above.div(above.sum(keep(-1))?)?;
        let corners = self.concentration.lt(1.0).all(keep(-1))?;
        let last = mode.ndim() - 1;
        let classes = part(&mode.shape(), last..last + 1);
        // as in PyTorch, the first of several modes
        let first = TensorOptions::new().dtype(DType::I64).arange(0, mode.sizes()[last], 1)?.eq(0)?;
        corners.choose(first.to(mode.dtype())?.rename(Some(classes.names))?, mode)
    }
    fn variance(&self) -> Result<Tensor> {
        let total = self.concentration.sum(keep(-1))?;
        let others = total.sub(&self.concentration)?;
        self.concentration.mul(others).div(total.square().mul(total.add(1.0)?)?)
    }
    fn entropy(&self) -> Result<Tensor> {
        let (a, total) = (&self.concentration, self.total()?);
        let classes = a.sizes()[a.ndim() - 1] as f64;
        let parts = a.sub(1.0).mul(a.digamma()?).sum(-1)?;
        let of_total = total.sub(classes).mul(total.digamma()?).sub(total.lgamma()?)?;
        a.lgamma().sum(-1)?.add(of_total).sub(parts)
    }
}
