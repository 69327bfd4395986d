//! Rotary positions.

use super::*;

/// Rotary positions, for queries and keys: pair `i` of the features of position `p` is turned by the angle
/// `p base^(-2i/width)`, from `(a, b)` to `(a cos - b sin, a sin + b cos)`. The product of a query and a key
/// then depends on their distance and not on where they are.
///
/// The pairs are the features `i` and `i + width/2`, as in the usual files of Llama and GPT-NeoX, or `2i` and
/// `2i + 1`, as in the paper, with [`interleaved`](RotaryEmbeddingBuilder::interleaved).
///
/// # Shapes
/// - `x`: any dims that include the sequence and the features, in any order; without names `[.., seq, width]`
/// - result: the dims of `x`
///
/// # Parameters
/// None.
///
/// # Source
/// Su et al., *RoFormer: Enhanced Transformer with Rotary Position Embedding* (2021), section 3.2.2.
///
/// # Examples
/// ```
/// use namegrad::nn::RotaryEmbedding;
/// use namegrad::prelude::*;
/// let rotary = RotaryEmbedding::new(("width", 4), "seq")?;
/// let query = Tensor::randn([("N", 2), ("seq", 5), ("heads", 3), ("width", 4)])?;
/// let turned = rotary.forward(&query)?;
/// assert_eq!(turned.shape(), query.shape());
/// // The first position is not turned, and the length of a vector does not change.
/// assert!(turned.select("seq", 0)?.allclose(&query.select("seq", 0)?)?);
/// assert!(turned.square()?.sum("width")?.allclose(&query.square()?.sum("width")?)?);
/// // The next element of a sequence of which 5 are known:
/// let next = Tensor::randn([("N", 2), ("seq", 1), ("heads", 3), ("width", 4)])?;
/// assert_eq!(rotary.forward_from(&next, 5)?.shape(), next.shape());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, dims = self.about(), layer)]
pub struct RotaryEmbedding {
    config: RotaryEmbeddingConfig,
    path: ModulePath,
}

/// A builder for [`RotaryEmbedding`]; see [`RotaryEmbedding::builder`].
#[derive(Clone, Debug, Setters)]
struct RotaryEmbeddingConfig {
    /// The features of a head, a size with or without a name.
    width: Named,
    /// The name or position of the sequence.
    seq: Seq,
    /// The base by which the angles fall, from 1 to almost `1 / base` per position; the default is 10,000.
    #[setters(default = 10_000.0)]
    base: f64,
    /// Whether the features of a pair are beside each other; the default is `false`.
    interleaved: bool,
}

impl RotaryEmbeddingBuilder {
    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid or odd size and
    /// for a `base` that is not above 0.
    #[track_caller]
    pub fn build(self) -> Result<RotaryEmbedding> {
        const LAYER: &str = "RotaryEmbedding";
        let config = self.config()?;
        let RotaryEmbeddingConfig { width, base, .. } = config;
        Error::ensure(width.1.is_multiple_of(2), ErrorKind::Value, LAYER, || {
            format!("the number of features must be even, got {}", dim_text(width))
        })?;
        Error::ensure(base > 0.0 && base.is_finite(), ErrorKind::Value, LAYER, || {
            format!("base must be above 0, got {base}")
        })?;
        Ok(RotaryEmbedding { config, path: ModulePath::new() })
    }
}

impl RotaryEmbedding {
    /// The output for `x`, whose positions are counted from 0.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` lacks a dim of the layer, [`ErrorKind::Shape`] if it has another
    /// number of features, [`ErrorKind::DType`] unless it is floating-point.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.forward_from(x, 0)
    }

    /// The output for `x`, whose positions are counted from `start`, such as the next element of a sequence
    /// of which `start` are known.
    ///
    /// # Errors
    /// Same as [`forward`](Self::forward).
    #[track_caller]
    pub fn forward_from(&self, x: &Tensor, start: usize) -> Result<Tensor> {
        self.path.run("RotaryEmbedding", &[x], &|_: &Running| {
            let of = Finder { layer: "RotaryEmbedding", path: &self.path, dims: &|| self.about() };
            let width = of.place(x, self.config.width, x.ndim().checked_sub(1))?;
            let seq = if x.ndim() > 1 { self.config.seq.place(x, width, true) } else { None };
            let Some(seq) = seq else { return Err(of.lacks(x, &self.config.seq.text(), &[])) };
            if !x.dtype().is_floating_point() {
                return Err(of.wrong(x, ErrorKind::DType, format_args!("takes floats, not {}", x.dtype())));
            }
            let order = Order::ending_with(x, &[seq, width]);
            order.restore(self.turned(&order.apply(x)?, start)?)
        })
    }

    /// `[.., seq, width]` without names.
    pub(super) fn turned(&self, x: &Tensor, start: usize) -> Result<Tensor> {
        let (seq, half) = (x.sizes()[x.ndim() - 2], self.config.width.1 / 2);
        if half == 0 {
            return Ok(x.clone());
        }
        let options = TensorOptions::new().dtype(DType::F64).device(x.device());
        // Positions are numbers of `f64`.
        Error::ensure(start < 1 << 52, ErrorKind::Value, "", || format!("the start {start} is too large"))?;
        let positions = options.arange(start as i64, (start + seq) as i64, 1)?.unsqueeze(1)?;
        let exponents = options.arange(0, half as i64, 1)?.mul(-self.config.base.ln() / half as f64)?;
        let angles = positions.mul(exponents.exp()?)?; // [seq, half]
        let (cos, sin) = (angles.cos()?.to(x.dtype())?, angles.sin()?.to(x.dtype())?);
        let interleaved = self.config.interleaved;
        let pairs = if interleaved { x.unflatten(-1, [half, 2])?.unbind(-1)? } else { x.chunk(2, -1)? };
        let (a, b) = (&pairs[0], &pairs[1]);
        let (a, b) = (&a.mul(&cos)?.sub(b.mul(&sin)?)?, &a.mul(&sin)?.add(b.mul(&cos)?)?);
        if interleaved { Tensor::stack(&[a, b], -1)?.reshape(x.sizes()) } else { Tensor::cat(&[a, b], -1) }
    }

    pub(super) fn width(&self) -> usize {
        self.config.width.1
    }

    fn about(&self) -> String {
        format!("{}, along {}", dim_text(self.config.width), self.config.seq.text())
    }
}
