//! The masks of attention: their dims, and how they are added to the scores.

use super::*;
use crate::dims::{dims_with, permuted};
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

impl MaskedScores<'_> {
    /// The mask of scores as numbers to be added to them, without names and with as many dims.
    pub(super) fn mask(&self, mask: &Tensor) -> Result<Tensor> {
        let [.., queries, keys] = self.sizes[..] else { unreachable!("scores are matrices") };
        let heads: usize = self.sizes[..self.sizes.len() - 2].iter().product();
        // PyTorch's third form, `[N * heads, queries, keys]`.
        if !mask.has_names() && *mask.sizes() == [heads, queries, keys] {
            return self.added(&mask.reshape(&self.sizes[..])?);
        }
        // Without names, the dims of `[N, queries, keys]` could be taken for heads.
        if !mask.has_names() && mask.ndim() > 2 && mask.ndim() != self.sizes.len() {
            return Err(self.unfit("attn_mask", mask));
        }
        let arranged = self.arranged("attn_mask", mask, &self.names)?;
        if let [.., Some(queries), Some(keys)] = self.names[..]
            && self.key_name == Some(queries)
            && let Some(error) = without_keys("attn_mask", mask, queries, keys)
        {
            let message = format!("{}: {}", self.of.who(), error.message());
            let repair = error.repair().unwrap_or_default().to_string();
            return Err(self.of.error(mask, error.kind(), message).with_repair(repair));
        }
        self.added(&arranged)
    }

    /// The mask of keys `[batch.., keys]`, in the same form.
    pub(super) fn padding(&self, mask: &Tensor) -> Result<Tensor> {
        let batch = self.sizes.len() - 3;
        let mut names = self.names.clone();
        (names[batch], names[batch + 1], names[batch + 2]) = (None, None, self.key_name);
        if mask.has_names() {
            return self.added(&self.arranged("key_padding_mask", mask, &names)?);
        }
        if mask.ndim() != 1 && mask.ndim() != batch + 1 {
            return Err(self.unfit("key_padding_mask", mask));
        }
        let own = [&self.sizes[..batch], &self.sizes[batch + 2..]].concat();
        let fit = |(size, own): (&usize, &usize)| *size == 1 || size == own;
        if !mask.sizes().iter().rev().zip(own.iter().rev()).all(fit) {
            return Err(self.unfit("key_padding_mask", mask));
        }
        self.check_dtype(mask)?; // as it was given
        let mut sizes = mask.sizes().to_vec();
        sizes.splice(mask.ndim() - 1..mask.ndim() - 1, [1, 1]);
        self.added(&self.arranged("key_padding_mask", &mask.reshape(sizes)?, &names)?)
    }

    /// The mask with its dims in the order of the scores: by name, or by position from the right.
    fn arranged(&self, what: &str, mask: &Tensor, names: &[Option<Name>]) -> Result<Tensor> {
        let n = self.sizes.len();
        let mut places = vec![None; n];
        for dim in 0..mask.ndim() {
            let at = match mask.name(dim) {
                Some(name) => names.iter().position(|own| *own == Some(name)),
                None => (n + dim).checked_sub(mask.ndim()),
            };
            let Some(at) = at.filter(|at| places[*at].is_none()) else {
                return Err(self.unfit(what, mask));
            };
            if ![1, self.sizes[at]].contains(&mask.sizes()[dim]) {
                return Err(self.unfit(what, mask));
            }
            places[at] = Some(dim);
        }
        let (mut order, mut sizes) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for dim in places {
            order.extend(dim);
            sizes.push(dim.map_or(1, |dim| mask.sizes()[dim]));
        }
        permuted(mask.rename(None)?, &order)?.reshape(sizes)
    }

    #[cold]
    fn unfit(&self, what: &str, mask: &Tensor) -> Error {
        let mut names = self.names.clone();
        let n = names.len();
        let mut sizes = self.sizes.clone();
        if what == "key_padding_mask" {
            names[n - 1] = self.key_name;
            names.drain(n - 3..n - 1);
            sizes.drain(n - 3..n - 1);
        }
        let dims = dims_with(&names, &sizes);
        let who = self.of.who();
        let missing =
            (0..mask.ndim()).filter_map(|dim| mask.name(dim)).find(|name| !names.contains(&Some(*name)));
        let kind = if missing.is_some() { ErrorKind::NameNotFound } else { ErrorKind::Shape };
        let message = format!("{who}: {what} {} does not broadcast to [{}]", mask.shape(), dims_text(&dims));
        self.of.error(mask, kind, message)
    }

    /// `true` hides a key, and numbers are added to the scores.
    fn added(&self, mask: &Tensor) -> Result<Tensor> {
        if mask.dtype() == DType::Bool {
            let zeros = TensorOptions::new().dtype(self.dtype).zeros(mask.sizes())?;
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
        let who = self.of.who();
        let message = format!("{who}: a mask is bool or floating-point, not {}", mask.dtype());
        Err(self.of.error(mask, ErrorKind::DType, message).with_repair("mask.to(DType::Bool)?"))
    }
}

/// The name of the keys beside that of the queries: `seq_key` if both are `seq`.
pub(super) fn apart(queries: Option<Name>, keys: Option<Name>) -> Result<Option<Name>> {
    match keys {
        Some(name) if keys == queries => Name::new(&format!("{name}_key")).map(Some),
        _ => Ok(keys),
    }
}
