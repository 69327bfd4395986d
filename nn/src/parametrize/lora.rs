//! LoRA adapters.

use super::*;
use crate::Buffer;
use crate::dims::{numel, shape_of};
use crate::init::{KaimingOptions, kaiming_uniform_with_};
use crate::pattern::Pattern;
use namegrad_autograd::{TensorOptions, no_grad};
use namegrad_core::names::Name;

/// `w + (alpha / rank) B A`: a frozen weight with an adapter of low rank, which is learned. Clones are the
/// same adapter.
///
/// [`lora`] adds it to weights. A weight with more than two dims, as of a convolution, is a matrix of its
/// first dim and all others.
///
/// # Parameters
/// - `original`: the weight, frozen
/// - `lora_A`: `[rank, in]`, uniform in ±1/√in
/// - `lora_B`: `[out, rank]`, zeros, so that the layer computes the same at first
///
/// # Source
/// Hu et al., *LoRA: Low-Rank Adaptation of Large Language Models* (2021), section 4.1.
#[derive(Clone, Debug, Module)]
#[module(crate = crate, dims = format!("rank={}, scale={}", self.a.shape().sizes[0], self.scale))]
pub struct Lora {
    #[module(name = "lora_A")]
    a: Parameter,
    #[module(name = "lora_B")]
    b: Parameter,
    scale: f64,
    #[module(skip)]
    original: Parameter,
    /// Whether the product is in the original.
    #[module(skip)]
    merged: Buffer,
}

impl Lora {
    #[track_caller]
    fn new(weight: &Tensor, rank: usize, alpha: f64) -> Result<Lora> {
        let value = weight.detach();
        let (out, inner) = (value.sizes()[0], numel(&value.sizes()[1..]));
        let name = Name::new("rank")?;
        let named = value.ndim() == 2 && (0..2).all(|dim| value.name(dim).is_some_and(|own| own != name));
        let dim = |dim: usize| value.name(dim).filter(|_| named);
        let rank_dim = (named.then_some(name), rank);
        let options = TensorOptions::new().dtype(value.dtype()).device(value.device());
        let a = Parameter::new(options.zeros(shape_of(&[rank_dim, (dim(1), inner)])?)?)?;
        // Of this slope, the bound is 1/√in.
        kaiming_uniform_with_(&a, KaimingOptions::new().gain(crate::init::Gain::LeakyRelu(5f64.sqrt())))?;
        let b = Parameter::new(options.zeros(shape_of(&[(dim(0), out), rank_dim])?)?)?;
        let original = Parameter::new(value)?;
        original.set_requires_grad(false)?;
        let scale = alpha / rank as f64;
        Ok(Lora { a, b, scale, original, merged: Buffer::new(Tensor::new(false)?) })
    }

    /// `(alpha / rank) B A`, with the dims of the weight.
    fn product(&self, weight: &Tensor) -> Result<Tensor> {
        let product = self.b.tensor().mm(self.a.tensor())?.mul(self.scale)?;
        match product.names() == weight.names() {
            true => Ok(product),
            false => product.rename(None)?.reshape(weight.sizes())?.rename(Some(weight.names().clone())),
        }
    }

    /// Whether the adapter is merged into the weight.
    pub fn is_merged(&self) -> bool {
        self.merged.value().item().unwrap_or(false) // it is one number
    }

    /// Adds the product to the weight, so that running the layer costs nothing more. While it is merged, the
    /// adapter gets no gradient. A merged adapter stays as it is. A state that is saved while it is merged
    /// has the sum in place of the weight, so unmerge before you save or load one.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn merge(&self) -> Result<()> {
        self.moved(true)
    }

    /// Subtracts the product from the weight, which is equal to what it was up to rounding.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn unmerge(&self) -> Result<()> {
        self.moved(false)
    }

    #[track_caller]
    fn moved(&self, merged: bool) -> Result<()> {
        if self.is_merged() == merged {
            return Ok(());
        }
        let weight = self.original.tensor().detach();
        let product = no_grad(|| self.product(&weight))?;
        let sum = if merged { weight.add(&product)? } else { weight.sub(&product)? };
        self.original.set(sum.value())?;
        self.merged.set(Tensor::new(merged)?)
    }
}

impl Parametrization for Lora {
    fn compute(&self, originals: &[Tensor]) -> Result<Tensor> {
        let weight = &originals[0];
        if self.is_merged() { Ok(weight.clone()) } else { weight.add(&self.product(weight)?) }
    }
}

/// Adds adapters of rank `rank` to the weights of `module` whose paths match a [pattern](Module::matching)
/// such as `"blocks.*.attn.q.weight"`: `w + (alpha / rank) B A`, in which only `A` and `B` are learned.
/// Returns the adapters, in the order of the paths. See [`Lora`].
///
/// All other parameters stay as they are; to learn nothing but the adapters, freeze the model first.
///
/// # Errors
/// [`ErrorKind::Value`] if no parameter matches, for a rank of 0, or if a parameter is parametrized already;
/// [`ErrorKind::Shape`] for a parameter with fewer than two dims. Then nothing has changed.
///
/// # Examples
/// ```
/// use namegrad::nn::parametrize;
/// use namegrad::prelude::*;
/// let model = Sequential::new().then(Linear::new(("x", 8), ("h", 8))?).then(Relu);
/// model.freeze("**")?;
/// let adapters = parametrize::lora(&model, "**.weight", 2, 4.0)?;
/// let learned = model.parameters().into_iter().filter(|parameter| parameter.requires_grad());
/// assert_eq!(learned.map(|parameter| parameter.numel()).sum::<usize>(), 2 * 8 + 8 * 2);
/// adapters[0].merge()?; // for evaluation
/// # Ok::<(), Error>(())
/// ```
#[track_caller]
pub fn lora(module: &dyn Module, pattern: &str, rank: usize, alpha: f64) -> Result<Vec<Lora>> {
    const OP: &str = "lora";
    Error::ensure(rank > 0, ErrorKind::Value, OP, || "the rank of an adapter is at least 1, got 0")?;
    let from = Pattern::new(pattern);
    let known = all(module);
    let mut made: Vec<(Parameter, super::Parametrized, Lora)> = Vec::new();
    for (path, parameter) in known.iter().filter(|(path, _)| from.captures(path).is_some()) {
        if made.iter().any(|(other, ..)| other.is(parameter)) {
            continue; // a shared parameter has one adapter
        }
        if parameter.computed().is_some() {
            let message = format!("the parameter '{path}' is parametrized already");
            return Err(Error::new(ErrorKind::Value, OP, message)
                .with_repair(format!("parametrize::remove(&model, {path:?})?")));
        }
        let weight = parameter.tensor();
        if weight.ndim() < 2 {
            let message = format!("an adapter needs a matrix, and '{path}' is {}", weight.shape());
            return Err(Error::new(ErrorKind::Shape, OP, message).with_operands([weight.shape()]));
        }
        let lora = Lora::new(&weight, rank, alpha).map_err(|error| error.of(OP))?;
        let mut computed = parametrized(parameter, Arc::new(lora.clone()))?;
        computed.originals = vec![lora.original.clone()];
        made.push((parameter.clone(), computed, lora));
    }
    if made.is_empty() {
        return Err(from.unmatched(OP, "parameter", &mut known.iter().map(|(path, _)| path.as_str())));
    }
    let mut adapters = Vec::with_capacity(made.len());
    for (parameter, computed, lora) in made {
        parameter.compute_by(Arc::new(computed))?;
        adapters.push(lora);
    }
    Ok(adapters)
}
