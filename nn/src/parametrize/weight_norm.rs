//! Weight normalization.

use super::*;
use namegrad_core::args::Argument;
use namegrad_core::{Dim, keep};

/// `w = g v / |v|`: a weight by length and direction, separately for each index of one dim. Both `g` and `v`
/// are learned.
///
/// [`weight_norm`] parametrizes a weight with it. As in PyTorch, an index whose weights are all zero has no
/// direction, and gives NaN.
///
/// # Parameters
/// - `original0`: `g`, with the dims of the weight, of which only `dim` has more than one element; the norm
///   of the weight at first
/// - `original1`: `v`, with the dims of the weight; the weight at first
///
/// # Source
/// Salimans, Kingma, *Weight Normalization* (2016), equation 2. PyTorch,
/// `torch.nn.utils.parametrizations.weight_norm`.
#[derive(Clone, Debug, Module)]
#[module(crate = crate, dims = self.dims())]
pub struct WeightNorm {
    /// The dim whose indices each have a length, or `None` for one length in all.
    dim: Option<usize>,
}

impl WeightNorm {
    /// A single length for the whole weight: PyTorch's `dim=None`.
    pub fn whole() -> WeightNorm {
        WeightNorm { dim: None }
    }

    fn dims(&self) -> String {
        self.dim.map_or(String::new(), |dim| format!("dim={dim}"))
    }

    /// `|v|`, with the dims of `g`.
    fn length(&self, v: &Tensor) -> Result<Tensor> {
        let Some(dim) = self.dim else { return v.norm(..) };
        v.norm(keep(crate::dims::others(v, &[dim])))
    }
}

impl Parametrization for WeightNorm {
    fn compute(&self, originals: &[Tensor]) -> Result<Tensor> {
        let [g, v] = originals else {
            let message = format!("weight normalization has two originals, and got {}", originals.len());
            return Err(Error::new(ErrorKind::Value, "weight_norm", message));
        };
        v.mul(&g.div(&self.length(v)?)?)
    }

    fn originals(&self, value: &Tensor) -> Result<Vec<Tensor>> {
        Ok(vec![self.length(value)?, value.clone()])
    }
}

/// Normalizes the weight of `module` at `path`: `w = g v / |v|` for each index of `dim`, usually that of the
/// outputs. See [`WeightNorm`].
///
/// # Errors
/// [`ErrorKind::Value`] for a path that `module` does not have,
/// [`ErrorKind::NameNotFound`] or
/// [`ErrorKind::DimRange`] for a dim that the weight does not have.
///
/// # Examples
/// ```
/// use namegrad::nn::parametrize;
/// use namegrad::prelude::*;
/// let conv = Conv2d::new(("C", 3), ("F", 8), [("H", 3), ("W", 3)])?;
/// let before = conv.weight().tensor();
/// parametrize::weight_norm(&conv, "weight", "F")?;
/// assert!(conv.weight().tensor().allclose(&before)?);
/// let paths: Vec<String> = conv.named_parameters().into_iter().map(|(path, _)| path).collect();
/// assert!(paths.contains(&"parametrizations.weight.original0".into()));
/// # Ok::<(), Error>(())
/// ```
#[track_caller]
pub fn weight_norm(module: &dyn Module, path: &str, dim: impl Into<Dim>) -> Result<()> {
    const OP: &str = "weight_norm";
    let parameter = find(OP, module, path)?;
    let dim = dim.into().look_up(OP, &[parameter.tensor().value()])?;
    super::add(&parameter, Arc::new(WeightNorm { dim: Some(dim) })).map_err(|error| error.of(OP))
}
