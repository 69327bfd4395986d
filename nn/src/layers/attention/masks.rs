//! The masks of attention: their dims, and how they are added to the scores.

use super::*;
use crate::functional::without_keys;

/// The scores `[batch.., heads, queries, keys]` to which masks are applied.
pub(super) struct MaskedScores<'a> {
    pub(super) of: Finder<'a>,
    pub(super) names: Vec<Option<Name>>,
    pub(super) sizes: Vec<usize>,
    /// The name of the sequence in the keys, which in `names` differs from that of the queries.
    pub(super) key_name: Option<Name>,
    pub(super) dtype: DType,
}

/// A dim of a mask: its name, and its position in the scores.
type MaskDim = (Option<Name>, usize);

impl MaskedScores<'_> {
    /// The mask of scores as numbers to be added to them, without names and with as many dims.
    pub(super) fn mask(&self, mask: &Tensor) -> Result<Tensor> {
        let [.., queries, keys] = self.sizes[..] else { unreachable!("scores are matrices") };
        let heads = numel(&self.sizes[..self.sizes.len() - 2]);
        // PyTorch's third form, `[N * heads, queries, keys]`.
        let is_plain = !is_strict() || self.names.iter().all(Option::is_none);
        if is_plain && !mask.has_names() && *mask.sizes() == [heads, queries, keys] {
            return self.added(&mask.reshape(&self.sizes[..])?);
        }
        let dims: Vec<MaskDim> = crate::list(self.names.iter().copied().zip(0..));
        // Without a name, the batch of `[N, queries, keys]` could be taken for heads.
        let arranged = self.arranged("attn_mask", mask, &dims, 2)?;
        if let [.., Some(queries), Some(keys)] = self.names[..]
            && self.key_name == Some(queries)
            && let Some(error) = without_keys("attn_mask", mask, queries, keys)
        {
            let message = format_args!("{}: {}", self.of, error.message());
            let repair = error.repair().unwrap_or_default();
            return Err(self.of.error(&[mask], error.kind(), message).with_repair(repair));
        }
        Ok(arranged)
    }

    /// The mask of keys `[batch.., keys]`, in the same form.
    pub(super) fn padding(&self, mask: &Tensor) -> Result<Tensor> {
        let batch = self.sizes.len() - 3;
        let mut dims: Vec<MaskDim> = crate::list(self.names[..batch].iter().copied().zip(0..));
        dims.push((self.key_name, batch + 2));
        self.arranged("key_padding_mask", mask, &dims, 1)
    }

    /// A mask of these dims, which are found by name, or by position from the right, in the form of the scores.
    /// A mask with an unnamed dim has its named dims in their place as well, and has all dims or up to `alone`
    /// of them.
    fn arranged(&self, what: &str, mask: &Tensor, dims: &[MaskDim], alone: usize) -> Result<Tensor> {
        let is_unnamed = |dim: usize| mask.name(dim).is_none() && mask.sizes()[dim] != 1;
        let by_position = (0..mask.ndim()).any(is_unnamed);
        if by_position && mask.ndim() > alone && mask.ndim() != dims.len() {
            return Err(self.unfit(what, mask, dims));
        }
        let mut places = vec![None; self.sizes.len()];
        for dim in 0..mask.ndim() {
            let place = (dims.len() + dim).checked_sub(mask.ndim());
            let named = |name| dims.iter().position(|(own, _)| *own == Some(name));
            let own = mask.name(dim).map_or(place, named).filter(|own| !by_position || Some(*own) == place);
            let taken = own.and_then(|own| dims[own].0).filter(|_| is_strict() && mask.name(dim).is_none());
            if let Some(name) = taken {
                return Err(self.of.strict(&[mask], format_args!("an unnamed dim of {what} as '{name}'")));
            }
            let at = own.map(|own| dims[own].1);
            let fits =
                |at: &usize| places[*at].is_none() && [1, self.sizes[*at]].contains(&mask.sizes()[dim]);
            let Some(at) = at.filter(fits) else { return Err(self.unfit(what, mask, dims)) };
            places[at] = Some(dim);
        }
        self.check_dtype(mask)?; // as it was given
        self.added(&opened(mask, &places)?)
    }

    #[cold]
    fn unfit(&self, what: &str, mask: &Tensor, dims: &[MaskDim]) -> Error {
        let named: Vec<Named> = crate::list(dims.iter().map(|(name, at)| (*name, self.sizes[*at])));
        let is_known = |name: Name| dims.iter().any(|(own, _)| *own == Some(name));
        let fits = (0..mask.ndim()).filter_map(|dim| mask.name(dim)).all(is_known);
        let kind = if fits { ErrorKind::Shape } else { ErrorKind::NameNotFound };
        let (of, dims) = (self.of, dims_text(&named));
        let is_partial = mask.has_names() && (0..mask.ndim()).any(|dim| mask.name(dim).is_none());
        let hint = if is_partial { "; give all of its dims names" } else { "" };
        let message = format_args!("{of}: {what} {} does not broadcast to [{dims}]{hint}", mask.shape());
        repaired(of.error(&[mask], kind, message), renamed_to_fit(what, mask, &named))
    }

    /// `true` hides a key, and numbers are added to the scores.
    fn added(&self, mask: &Tensor) -> Result<Tensor> {
        if mask.dtype() == DType::Bool {
            let zeros = TensorOptions::new().dtype(self.dtype).device(mask.device()).zeros(mask.sizes())?;
            return zeros.masked_fill(mask, f64::NEG_INFINITY);
        }
        self.check_dtype(mask)?;
        mask.to(self.dtype)
    }

    /// An error for a mask of integers.
    fn check_dtype(&self, mask: &Tensor) -> Result<()> {
        if mask.dtype() == DType::Bool || mask.dtype().is_floating_point() {
            return Ok(());
        }
        let message = format_args!("{}: a mask is bool or floating-point, not {}", self.of, mask.dtype());
        Err(self.of.error(&[mask], ErrorKind::DType, message).with_repair("mask.to(DType::Bool)?"))
    }
}
