//! [`Distribution`], what all distributions have in common.

use crate::common::*;

/// A probability distribution over tensors, or a batch of them.
///
/// Its dims are those of the [batch](Frame::batch), one distribution for each element, and those of the
/// [event](Frame::event), one draw of one distribution. A draw has further dims in front. The
/// [page of the crate](crate) says how names decide which is which.
///
/// The trait can be an object: `&dyn Distribution`, `Box<dyn Distribution>`.
///
/// # Your own distribution
///
/// Implement `frame`, `support`, `log_density` and `draw`; everything else has a default, which is an error
/// if there is no formula.
///
/// ```
/// use namegrad::core::Shape;
/// use namegrad::distributions::{Distribution, Frame, Support};
/// use namegrad::prelude::*;
///
/// /// The density `2 x` on `[0, 1]`, once for each element of a tensor of zeros.
/// #[derive(Debug)]
/// struct Ramp(Frame);
///
/// impl Distribution for Ramp {
///     fn frame(&self) -> &Frame {
///         &self.0
///     }
///     fn support(&self) -> Support {
///         Support::UnitInterval
///     }
///     fn log_density(&self, x: &Tensor) -> Result<Tensor> {
///         x.mul(2.0).log()
///     }
///     fn draw(&self, shape: &Shape) -> Result<Tensor> {
///         Tensor::rand(shape).sqrt()
///     }
/// }
///
/// let ramp = Ramp(Frame::of("Ramp", &Tensor::zeros([("N", 3)])?));
/// assert_eq!(ramp.sample([("draw", 100)])?.shape().to_string(), "[draw=100, N=3]");
/// assert_eq!(ramp.log_prob(&Tensor::ones([("N", 3)])?)?.shape().to_string(), "[N=3]");
/// assert!(ramp.entropy().unwrap_err().to_string().starts_with("entropy: Ramp has no entropy"));
/// # Ok::<(), Error>(())
/// ```
pub trait Distribution: Any + fmt::Debug + Send + Sync {
    /// The dims, the name and the dtype.
    fn frame(&self) -> &Frame;

    /// The values that the distribution can give.
    fn support(&self) -> Support;

    /// The formula of [`log_prob`](DistributionExt::log_prob). `x` has the event dims at the end and is in
    /// the support, unless checks are off.
    ///
    /// # Errors
    /// Those of its ops.
    #[track_caller]
    fn log_density(&self, x: &Tensor) -> Result<Tensor>;

    /// Draws a tensor of `shape`, whose last dims are those of the batch and the event. If
    /// [`has_rsample`](Self::has_rsample), it is a function of the parameters on the tape.
    ///
    /// # Errors
    /// Those of its ops.
    #[track_caller]
    fn draw(&self, shape: &Shape) -> Result<Tensor>;

    /// The formula of [`cdf`](DistributionExt::cdf).
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] unless the distribution has one.
    #[track_caller]
    fn cumulative(&self, _x: &Tensor) -> Result<Tensor> {
        self.frame().missing("cdf")
    }

    /// The formula of [`icdf`](DistributionExt::icdf).
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] unless the distribution has one.
    #[track_caller]
    fn quantile(&self, _p: &Tensor) -> Result<Tensor> {
        self.frame().missing("icdf")
    }

    /// Whether gradients flow through a draw to the parameters.
    fn has_rsample(&self) -> bool {
        false
    }

    /// The values of a distribution that has few, with one dim in front of the dims of an event.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] unless the distribution has few values.
    #[track_caller]
    fn values(&self) -> Result<Tensor> {
        let message = format!("{} has no list of its values", self.frame().name());
        Err(Error::new(ErrorKind::Unsupported, "enumerate_support", message))
    }

    /// The mean; NaN or infinite where there is none.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if there is no formula.
    #[track_caller]
    fn mean(&self) -> Result<Tensor> {
        self.frame().missing("mean")
    }

    /// The most likely value; NaN where there is none.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if there is no formula.
    #[track_caller]
    fn mode(&self) -> Result<Tensor> {
        self.frame().missing("mode")
    }

    /// The variance of each element; NaN or infinite where there is none.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if there is no formula.
    #[track_caller]
    fn variance(&self) -> Result<Tensor> {
        self.frame().missing("variance")
    }

    /// The standard deviation, `√variance`.
    ///
    /// # Errors
    /// As [`variance`](Self::variance).
    #[track_caller]
    fn stddev(&self) -> Result<Tensor> {
        self.variance()?.sqrt()
    }

    /// The entropy in nats, `-E[log p(x)]`, over the batch dims.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if there is no formula.
    #[track_caller]
    fn entropy(&self) -> Result<Tensor> {
        self.frame().missing("entropy")
    }

    /// The divergence `KL(self ‖ q)` of a distribution of your own, if it has a formula for `q`;
    /// [`kl_divergence`](crate::kl_divergence) calls it.
    #[track_caller]
    fn kl(&self, _q: &dyn Distribution) -> Option<Result<Tensor>> {
        None
    }

    /// Checks that a value, with the event dims at the end, is in the support.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] with the first element that is not.
    #[track_caller]
    fn check_value(&self, op: &'static str, x: &Tensor) -> Result<()> {
        self.support().check(op, "value", x)
    }

    /// The batch dims.
    fn batch_shape(&self) -> Shape {
        self.frame().batch().clone()
    }

    /// The event dims.
    fn event_shape(&self) -> Shape {
        self.frame().event().clone()
    }
}

/// What is asked of a distribution: draws, and densities and probabilities of values.
///
/// Every [`Distribution`] has these methods, also as an object. The prelude brings them into scope.
pub trait DistributionExt: Distribution {
    /// The logarithm of the density, or of the probability, at `value`. The result has the dims that were
    /// drawn and those of the batch; the event dims are gone.
    ///
    /// Event dims are found by name, wherever they are; dims without names by position, from the end.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for a value outside of the support, and the errors of [`Frame::fit`].
    #[track_caller]
    fn log_prob(&self, value: &Tensor) -> Result<Tensor> {
        let _called = called_here();
        let x = self.frame().fit("log_prob", value)?;
        if self.frame().is_checked() {
            supported(self.frame(), "log_prob", self.check_value("log_prob", &x))?;
        }
        self.frame().answer("log_prob", self.log_density(&x))
    }

    /// The probability of a value that is at most `value`.
    ///
    /// # Errors
    /// As [`log_prob`](Self::log_prob); [`ErrorKind::Unsupported`] if there is no formula.
    #[track_caller]
    fn cdf(&self, value: &Tensor) -> Result<Tensor> {
        let _called = called_here();
        let x = self.frame().fit("cdf", value)?;
        if self.frame().is_checked() {
            supported(self.frame(), "cdf", self.check_value("cdf", &x))?;
        }
        self.frame().answer("cdf", self.cumulative(&x))
    }

    /// The value below which a draw is with probability `p`, the inverse of [`cdf`](Self::cdf). `p` is not
    /// checked: outside of `[0, 1]`, most distributions give NaN.
    ///
    /// # Errors
    /// As [`cdf`](Self::cdf).
    #[track_caller]
    fn icdf(&self, p: &Tensor) -> Result<Tensor> {
        let _called = called_here();
        let p = self.frame().fit("icdf", p)?;
        self.frame().answer("icdf", self.quantile(&p))
    }

    /// Draws from each distribution of the batch, along new dims in front: `sample([("draw", 100)])`, or
    /// `sample(())` for one draw. No gradient flows through it.
    ///
    /// ```
    /// use namegrad::distributions::Normal;
    /// use namegrad::prelude::*;
    /// let normal = Normal::new(&Tensor::zeros([("N", 3)])?, 1.0)?;
    /// assert_eq!(normal.sample([("draw", 100)])?.shape().to_string(), "[draw=100, N=3]");
    /// assert_eq!(normal.sample(())?.shape().to_string(), "[N=3]");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DuplicateName`] if a drawn dim has the name of another one, [`ErrorKind::OutOfMemory`].
    #[track_caller]
    fn sample(&self, drawn: impl IntoShape) -> Result<Tensor> {
        sampled(self.frame(), "sample", drawn.shape_for("sample"), true, &|shape: &Shape| self.draw(shape))
    }

    /// [`sample`](Self::sample), as a function of the parameters: gradients flow through the draw to them
    /// (reparametrization).
    ///
    /// ```
    /// use namegrad::distributions::Normal;
    /// use namegrad::prelude::*;
    /// let scale = Tensor::new(2.0)?.requiring_grad()?;
    /// let x = Normal::new(0.0, &scale)?.rsample([("draw", 1000)])?;
    /// x.square().mean("draw")?.backward()?; // about scale²
    /// assert!((scale.grad().unwrap().item::<f64>()? - 4.0).abs() < 0.5);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`sample`](Self::sample); [`ErrorKind::Unsupported`] unless
    /// [`has_rsample`](Distribution::has_rsample).
    #[track_caller]
    fn rsample(&self, drawn: impl IntoShape) -> Result<Tensor> {
        sampled(self.frame(), "rsample", drawn.shape_for("rsample"), self.has_rsample(), &|shape: &Shape| {
            self.draw(shape)
        })
    }

    /// All values of a distribution that has few, along a new first dim called `name`, for each distribution
    /// of the batch.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] unless the distribution has a list of values, [`ErrorKind::DuplicateName`],
    /// [`ErrorKind::InvalidName`].
    #[track_caller]
    fn enumerate_support(&self, name: Option<&str>) -> Result<Tensor> {
        let frame = self.frame();
        let values = self.values()?; // [values, event]
        let name = name.map(Name::new).transpose()?;
        let list =
            Shape { sizes: Sizes::from_slice(&values.sizes()[..1]), names: Names::new("values", [name])? };
        let shape = frame.drawn("enumerate_support", &list)?;
        let mut sizes = vec![1; shape.sizes.len()];
        sizes[0] = values.sizes()[0];
        let events = frame.event().sizes.len();
        let first = sizes.len() - events;
        sizes[first..].copy_from_slice(&values.sizes()[1..]);
        values.rename(None).reshape(sizes).expand(&shape.sizes).rename(Some(shape.names))
    }

    /// `e^entropy`.
    ///
    /// # Errors
    /// As [`entropy`](Distribution::entropy).
    #[track_caller]
    fn perplexity(&self) -> Result<Tensor> {
        self.entropy()?.exp()
    }
}

impl<D: Distribution + ?Sized> DistributionExt for D {}

/// Draws by `draw`, on the tape for `rsample`.
#[track_caller]
fn sampled(
    frame: &Frame,
    op: &'static str,
    drawn: Result<Shape>,
    can: bool,
    draw: &dyn Fn(&Shape) -> Result<Tensor>,
) -> Result<Tensor> {
    let _called = called_here();
    let shape = frame.drawn(op, &drawn?)?;
    if !can {
        let message = format!("no gradient flows through draws of {}", frame.name());
        return Err(
            Error::new(ErrorKind::Unsupported, op, message).with_repair("sample, for draws without one")
        );
    }
    frame.answer(op, if op == "rsample" { draw(&shape) } else { no_grad(|| draw(&shape)) })
}

/// The error of a value outside of the support, with the name of the distribution.
#[track_caller]
fn supported(frame: &Frame, op: &'static str, checked: Result<()>) -> Result<()> {
    match checked {
        Ok(()) => Ok(()),
        Err(error) => Err(error.of(op).context(format_args!("{}: ", frame.name())).at(Location::caller())),
    }
}
