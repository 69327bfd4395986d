//! Attention.

use crate::cpu::attention::{Attention, AttentionGradients, MatrixStack};
use crate::cpu::matmul::{Mat, MatmulElement};
use crate::device::compute;
use crate::dtype::{DType, Element, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::{Sizes, product};
use crate::names::Names;
use crate::names::rules::{self, NamedInput};
use crate::random::{Generator, GeneratorState, next_of_default};
use crate::shape::Shape;
use crate::sizes::broadcast;
use crate::tensor::{NamedTensor, Unwritten};
use namegrad_macros::ops;
use std::panic::Location;

ops! { attention;
    //! # Attention
    /// `softmax(scale query keyᵀ + mask) value`: for each query, the mean of the values, weighted by how well
    /// their keys match it. The weights are never stored as a whole, so memory grows with the length, not
    /// with its square.
    ///
    /// The default `scale` is `1/√E`. In `attn_mask`, `false` hides a key from a query, and numbers are added
    /// to the scores. With `is_causal`, query `i` sees the keys up to `i`, of which the mask may hide more;
    /// with `window`, it sees those that are at most `window` positions away, and no others are computed. A
    /// query that sees no key has the result 0. `dropout_p` is the probability to drop a weight; the others
    /// are divided by `1 - dropout_p`. With `enable_gqa`, the third dim from the right has the heads, and a
    /// head of `key` and `value` serves several heads of `query`.
    ///
    /// # Shapes
    /// - `query`: `[.., L, E]`, `key`: `[.., S, E]`, `value`: `[.., S, V]`; the other dims broadcast
    /// - `attn_mask`: broadcasts to `[.., L, S]`
    /// - result: `[.., L, V]`
    ///
    /// # Source
    /// Vaswani et al., *Attention Is All You Need* (2017), equation 1; Ainslie et al., *GQA* (2023) for
    /// groups of heads; Beltagy et al., *Longformer* (2020) for windows.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::randn([("N", 2), ("heads", 4), ("seq", 5), ("embed", 8)])?;
    /// let causal = ScaledDotProductAttentionOptions::new().is_causal(true);
    /// let y = x.scaled_dot_product_attention_with(&x, &x, causal)?;
    /// assert_eq!(y.shape(), x.shape());
    /// // The first query sees only the first key.
    /// assert!(y.select("seq", 0)?.allclose(&x.select("seq", 0)?)?);
    /// # Ok::<(), Error>(())
    /// ```
    scaled_dot_product_attention (query, key, value, attn_mask?; dropout_p: f64 = 0.0, is_causal: bool = false,
        scale: Option<f64> = None, enable_gqa: bool = false, window: Option<usize> = None) -> (y; lse, draw)
        on floats names contracts, attn_mask: by key;
}

/// The arguments of [`scaled_dot_product_attention`](NamedTensor::scaled_dot_product_attention).
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct AttentionArgs {
    pub dropout_p: f64,
    pub is_causal: bool,
    pub scale: Option<f64>,
    pub enable_gqa: bool,
    pub window: Option<usize>,
}

pub(crate) mod kernels {
    use super::*;

    const OP: &str = "scaled_dot_product_attention";

    #[track_caller]
    pub(crate) fn scaled_dot_product_attention(
        query: &NamedTensor,
        key: &NamedTensor,
        value: &NamedTensor,
        attn_mask: Option<&NamedTensor>,
        dropout_p: f64,
        is_causal: bool,
        scale: Option<f64>,
        enable_gqa: bool,
        window: Option<usize>,
    ) -> Result<(NamedTensor, NamedTensor, NamedTensor)> {
        let inputs = [query, key, value];
        let args = AttentionArgs { dropout_p, is_causal, scale, enable_gqa, window };
        let heads = Heads::new(inputs, &args)?;
        let names = names(inputs)?;
        attn_mask.map_or(Ok(()), |mask| check_mask(inputs, mask))?;
        let draw = match dropout_p > 0.0 {
            true => {
                let state = next_of_default(heads.count() * heads.queries() * heads.keys()).state();
                NamedTensor::from_slice(&[state.seed as i64, state.offset as i64], [2])?
            }
            false => NamedTensor::from_slice::<i64>(&[], [0])?,
        };
        let operands = Operands::new(inputs, attn_mask, &heads)?;
        let dtype = operands.query.dtype();
        let sizes = |last: &[usize]| crate::list::<_, Sizes>(heads.batch.iter().chain(last).copied());
        let out = [
            Unwritten::of(OP, &sizes(&[heads.queries(), heads.value_width()]), names.clone(), dtype)?,
            Unwritten::of(OP, &sizes(&[heads.queries()]), Names::none(), dtype)?,
        ];
        let [y, lse] = dispatch!(dtype, float T => {
            // SAFETY: the operands have the sizes in `heads`.
            Unwritten::try_write_all(out, |out| Ok(unsafe { operands.attention::<T>(&heads, &args, &draw)?.forward(out) }))?
        }, else unreachable!("checked to be floats"));
        Ok((y.into_dtype(query.dtype())?.with_names(names), lse, draw))
    }

    /// The gradients of query, key, value and mask; `None` if one is not wanted.
    #[track_caller]
    pub(super) fn backward(
        g: &NamedTensor,
        inputs: [&NamedTensor; 3],
        attn_mask: Option<&NamedTensor>,
        [y, lse, draw]: [&NamedTensor; 3],
        args: &AttentionArgs,
        wants: [bool; 4],
    ) -> Result<[Option<NamedTensor>; 4]> {
        const OP: &str = "scaled_dot_product_attention_backward";
        let heads = Heads::new(inputs, args)?;
        let operands = Operands::new(inputs, attn_mask, &heads)?;
        let dtype = operands.query.dtype();
        let [g, y] = [g, y].map(|x| x.unnamed().to(dtype).and_then(|x| x.contiguous()));
        let (g, y) = (g?, y?);
        let sizes =
            |batch: &[usize], last: [usize; 2]| crate::list::<_, Sizes>(batch.iter().chain(&last).copied());
        let zeros =
            |sizes: Sizes| NamedTensor::filled(OP, Shape { sizes, names: Names::none() }, dtype, 0.into());
        let key_batch = heads.key_batch();
        let mut of_query = zeros(sizes(&heads.batch, [heads.queries(), heads.width()]))?;
        let mut of_key = zeros(sizes(&key_batch, [heads.keys(), heads.width()]))?;
        let mut of_value = zeros(sizes(&key_batch, [heads.keys(), heads.value_width()]))?;
        let mut of_mask = match wants[3] {
            true => Some(zeros(sizes(&heads.batch, [heads.queries(), heads.keys()]))?),
            false => None,
        };
        compute(|| {
            dispatch!(dtype, float T => {
            let attention = operands.attention::<T>(&heads, args, draw)?;
            let out = AttentionGradients {
                q: of_query.as_mut_slice::<T>()?,
                k: of_key.as_mut_slice::<T>()?,
                v: of_value.as_mut_slice::<T>()?,
                mask: of_mask.as_mut().map(|mask| mask.as_mut_slice::<T>()).transpose()?,
            };
            // SAFETY: the operands have the sizes in `heads`.
            unsafe { attention.backward(g.elements::<T>()?, y.elements::<T>()?, lse.elements::<T>()?, out) };
            Ok(())
        }, else unreachable!("only floats have gradients"))
        })?;
        let [q, k, v, _] = wants;
        Ok([q.then_some(of_query), k.then_some(of_key), v.then_some(of_value), of_mask])
    }

    /// The sizes of an attention.
    struct Heads {
        /// The dims before the last two, of queries and result.
        batch: Sizes,
        /// The number of heads of queries for each head of keys.
        group: usize,
        last: [usize; 4],
    }

    impl Heads {
        #[track_caller]
        fn new(inputs: [&NamedTensor; 3], args: &AttentionArgs) -> Result<Heads> {
            let [query, key, value] = inputs;
            let caller = Location::caller();
            let fail = |kind, message: String| Err(Error::about(&inputs, kind, OP, message).at(caller));
            for x in inputs {
                x.check_float(OP)?;
            }
            if key.dtype() != query.dtype() || value.dtype() != query.dtype() {
                let [q, k, v] = inputs.map(NamedTensor::dtype);
                let message = format!(
                    "Expected query, key, and value to have the same dtype, but got query.dtype: {q} key.dtype: {k} and value.dtype: {v} instead."
                );
                let error = Error::about(&inputs, ErrorKind::DType, OP, message);
                let other = [("key", k), ("value", v)].into_iter().filter(|(_, dtype)| *dtype != q);
                let casts: Vec<String> = other.map(|(what, _)| format!("{what}.to(DType::{q:?})?")).collect();
                return Err(error.with_repair(crate::joined(&casts, ", ")));
            }
            if let Some(short) = inputs.iter().find(|x| x.ndim() < 2) {
                let message = format!(
                    "Expected query, key, and value to all be at least 2 dimensional, but one has {} dims",
                    short.ndim()
                );
                return fail(ErrorKind::Shape, message);
            }
            let last = |x: &NamedTensor| [x.sizes()[x.ndim() - 2], x.sizes()[x.ndim() - 1]];
            let ([queries, width], [keys, key_width], [values, depth]) =
                (last(query), last(key), last(value));
            if width != key_width {
                return fail(
                    ErrorKind::Shape,
                    format!("queries have {width} elements, and keys {key_width}"),
                );
            }
            if keys != values {
                return fail(ErrorKind::Shape, format!("there are {keys} keys and {values} values"));
            }
            if !(0.0..=1.0).contains(&args.dropout_p) {
                let message =
                    format!("dropout probability has to be between 0 and 1, but got {}", args.dropout_p);
                return fail(ErrorKind::Value, message);
            }
            let batch = |x: &NamedTensor| Sizes::from_slice(&x.sizes()[..x.ndim() - 2]);
            let (query_batch, mut key_batch, mut value_batch) = (batch(query), batch(key), batch(value));
            let mut group = 1;
            if args.enable_gqa {
                let (Some(&heads), Some(of_keys), Some(of_values)) =
                    (query_batch.last(), key_batch.last_mut(), value_batch.last_mut())
                else {
                    let message =
                        "enable_gqa needs a dim of heads before the last two of query, key and value";
                    return fail(ErrorKind::Shape, message.into());
                };
                if *of_keys != *of_values || *of_keys == 0 || heads % *of_keys != 0 {
                    let message = format!(
                        "Number of heads in key and value must divide the number of heads in query, got {heads} heads in query, {of_keys} in key and {of_values} in value"
                    );
                    return fail(ErrorKind::Shape, message);
                }
                group = heads / *of_keys;
                (*of_keys, *of_values) = (heads, heads);
            }
            let about = |error: Error| error.with_inputs(&inputs);
            let batch = broadcast(OP, &query_batch, &key_batch).map_err(about)?;
            let batch = broadcast(OP, &batch, &value_batch).map_err(about)?;
            Ok(Heads { batch: Sizes::from_slice(&batch), group, last: [queries, keys, width, depth] })
        }

        fn count(&self) -> usize {
            product(&self.batch)
        }

        fn queries(&self) -> usize {
            self.last[0]
        }

        fn keys(&self) -> usize {
            self.last[1]
        }

        fn width(&self) -> usize {
            self.last[2]
        }

        fn value_width(&self) -> usize {
            self.last[3]
        }

        /// The batch dims of keys and values.
        fn key_batch(&self) -> Sizes {
            let mut batch = self.batch.clone();
            if let Some(heads) = batch.last_mut() {
                *heads /= self.group;
            }
            batch
        }

        /// The position of the matrix of each head in an operand, whose batch dims broadcast to these;
        /// `group` heads share one.
        fn starts(&self, x: &NamedTensor, group: usize) -> Vec<isize> {
            let own = x.ndim() - 2;
            let start = |mut index: usize| {
                let mut start = 0;
                for (from_right, size) in self.batch.iter().rev().enumerate() {
                    let mut at = index % size;
                    if from_right == 0 {
                        at /= group;
                    }
                    if from_right < own && x.sizes()[own - 1 - from_right] != 1 {
                        start += at as isize * x.strides()[own - 1 - from_right];
                    }
                    index /= size;
                }
                start
            };
            crate::list((0..self.count()).map(start))
        }
    }

    /// The operands in the dtype that kernels compute in.
    struct Operands {
        query: NamedTensor,
        key: NamedTensor,
        value: NamedTensor,
        mask: Option<NamedTensor>,
    }

    impl Operands {
        #[track_caller]
        fn new(
            [query, key, value]: [&NamedTensor; 3],
            mask: Option<&NamedTensor>,
            heads: &Heads,
        ) -> Result<Operands> {
            let dtype = query.dtype().compute();
            let mask = match mask {
                Some(mask) => Some(added(mask, heads, dtype)?),
                None => None,
            };
            Ok(Operands { query: query.to(dtype)?, key: key.to(dtype)?, value: value.to(dtype)?, mask })
        }

        fn attention<T: Element + MatmulElement>(
            &self,
            heads: &Heads,
            args: &AttentionArgs,
            draw: &NamedTensor,
        ) -> Result<Attention<T>> {
            let stack = |x: &NamedTensor, group: usize| {
                let [row_stride, col_stride] = [x.strides()[x.ndim() - 2], x.strides()[x.ndim() - 1]];
                MatrixStack {
                    first: Mat { ptr: x.ptr().cast::<T>(), row_stride, col_stride },
                    starts: heads.starts(x, group),
                }
            };
            let scale = args.scale.unwrap_or(1.0 / (heads.width() as f64).sqrt());
            let dropout = match *draw.to_vec::<i64>()? {
                [seed, offset] => {
                    let state = GeneratorState { seed: seed as u64, offset: offset as u64 };
                    let mut generator = Generator::from_seed(state.seed);
                    generator.set_state(state);
                    Some((args.dropout_p, generator))
                }
                _ => None,
            };
            Ok(Attention {
                heads: heads.count(),
                group: heads.group,
                queries: heads.queries(),
                keys: heads.keys(),
                width: heads.width(),
                depth: heads.value_width(),
                q: stack(&self.query, 1),
                k: stack(&self.key, heads.group),
                v: stack(&self.value, heads.group),
                mask: self.mask.as_ref().map(|mask| stack(mask, 1)),
                causal: args.is_causal,
                window: args.window,
                scale: T::from_scalar(scale.into()),
                dropout,
            })
        }
    }

    /// The mask as numbers to be added to the scores, of the size of all scores.
    #[track_caller]
    fn added(mask: &NamedTensor, heads: &Heads, dtype: DType) -> Result<NamedTensor> {
        if mask.dtype() != DType::Bool && !mask.dtype().is_floating_point() {
            let message = format!(
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {}",
                mask.dtype()
            );
            return Err(
                Error::about(&[mask], ErrorKind::DType, OP, message).with_repair("mask.to(DType::Bool)?")
            );
        }
        let sizes: Vec<usize> = crate::list(heads.batch.iter().chain(&heads.last[..2]).copied());
        let numbers = mask.unnamed().to(dtype)?;
        // `true` is 0, and `false` is -∞.
        let numbers = if mask.dtype() == DType::Bool { numbers.log()? } else { numbers };
        let Ok(expanded) = numbers.expand(&sizes[..]) else {
            let message = format!("the mask of sizes {:?} does not broadcast to {sizes:?}", mask.sizes());
            return Err(Error::about(&[mask], ErrorKind::Shape, OP, message));
        };
        Ok(expanded)
    }

    /// Checks the names of a mask, whose dims are those of the scores: the batch dims of all three inputs,
    /// and the positions of queries and keys.
    #[track_caller]
    fn check_mask([query, key, value]: [&NamedTensor; 3], mask: &NamedTensor) -> Result<()> {
        let ndim = query.ndim().max(key.ndim()).max(value.ndim());
        // For each dim of the scores, the input that tells its name.
        let told = |dim: usize| {
            let from_right = ndim - dim;
            let of_keys = [("key", key, 2), ("value", value, 2)];
            let of_batch =
                [("query", query, from_right), ("key", key, from_right), ("value", value, from_right)];
            let all = match from_right {
                1 => &of_keys[..],
                2 => &of_batch[..1],
                _ => &of_batch,
            };
            let mut dims = all.iter().filter_map(|(what, x, n)| Some((*what, *x, x.ndim().checked_sub(*n)?)));
            let first = dims.clone().next();
            dims.find(|(_, x, dim)| x.name(*dim).is_some()).or(first)
        };
        let name = |dim: usize| told(dim).and_then(|(_, x, own)| x.name(own));
        let shared = mask.ndim().min(ndim);
        for from_right in 1..=shared {
            if let Some((what, x, own)) = told(ndim - from_right) {
                let inputs = [x.input(), mask.input()];
                rules::matched(OP, [what, "mask"], inputs, [own, mask.ndim() - from_right])?;
            }
        }
        // Queries and keys can have the same name, which is then that of the keys.
        let is_keys = |dim: usize| dim + 2 == ndim && name(dim) == name(ndim - 1);
        let names = Names::unchecked((0..ndim).map(|dim| name(dim).filter(|_| !is_keys(dim))));
        let scores = NamedInput { names: &names, sizes: &vec![1; ndim] };
        let (first, own) = (ndim - shared, mask.ndim() - shared);
        rules::in_place(OP, "mask", [scores, mask.input()], |dim| {
            let at = dim.checked_sub(own)? + first;
            let is_both = mask.names().get(dim) == name(at) && is_keys(at);
            Some(if is_both { ndim - 1 } else { at })
        })
    }

    /// The names of the result, by the rules of the two products. Queries and keys can have the same name,
    /// since no tensor has both.
    #[track_caller]
    fn names([query, key, value]: [&NamedTensor; 3]) -> Result<Names> {
        if !query.has_names() && !key.has_names() && !value.has_names() {
            return Ok(Names::none());
        }
        let (q, k, v) = (query.ndim(), key.ndim(), value.ndim());
        rules::matched(OP, ["query", "key"], [query.input(), key.input()], [q - 1, k - 1])?;
        rules::matched(OP, ["key", "value"], [key.input(), value.input()], [k - 2, v - 2])?;
        let [of_key, of_value] = [key, value].map(|x| {
            let hidden = x.ndim() - 2;
            Names::unchecked((0..x.ndim()).map(|dim| x.name(dim).filter(|_| dim != hidden)))
        });
        let turned: Vec<usize> = crate::list((0..k - 2).chain([k - 1, k - 2]));
        let sizes: Vec<usize> = crate::list(turned.iter().map(|dim| key.sizes()[*dim]));
        let of_key = rules::permute(&of_key, &turned);
        let scores =
            rules::matmul(OP, ["query", "key"], query.input(), NamedInput { names: &of_key, sizes: &sizes })?;
        let sizes = vec![1; query.ndim().max(k)];
        rules::matmul(
            OP,
            ["query", "value"],
            NamedInput { names: &scores, sizes: &sizes },
            NamedInput { names: &of_value, sizes: &value.sizes()[..v] },
        )
    }
}

/// The gradients of [`scaled_dot_product_attention`](NamedTensor::scaled_dot_product_attention) in one pass:
/// those of query, key, value and mask that are wanted. `kept` are the result, the logarithms of its sums and
/// the random numbers.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`].
#[doc(hidden)]
#[track_caller]
pub fn attention_backward(
    g: &NamedTensor,
    inputs: [&NamedTensor; 3],
    attn_mask: Option<&NamedTensor>,
    kept: [&NamedTensor; 3],
    args: &AttentionArgs,
    wants: [bool; 4],
) -> Result<[Option<NamedTensor>; 4]> {
    kernels::backward(g, inputs, attn_mask, kept, args, wants)
}

/// Draws the numbers of a shape.
#[doc(hidden)]
pub type Draw<'f> = dyn Fn(Shape) -> Result<NamedTensor> + 'f;

/// The factors of the weights of an attention with dropout, for a gradient that is differentiated again. `made`
/// gives them from a function that draws as many as a shape has.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`].
#[doc(hidden)]
#[track_caller]
pub fn attention_dropout(
    draw: &NamedTensor,
    p: f64,
    dtype: DType,
    made: &dyn Fn(&Draw<'_>) -> Result<NamedTensor>,
) -> Result<Option<NamedTensor>> {
    if draw.numel() == 0 {
        return Ok(None);
    }
    let [seed, offset] = draw.elements_to_check::<i64>()?[..] else {
        return made(&|shape| NamedTensor::filled("dropout", shape, dtype, 0.into())).map(Some); // on the meta device
    };
    let mut generator = Generator::from_seed(seed as u64);
    generator.set_state(GeneratorState { seed: seed as u64, offset: offset as u64 });
    let factor = if p < 1.0 { 1.0 / (1.0 - p) } else { 0.0 };
    let drawn = |shape: Shape| NamedTensor::choice("dropout", shape, 1.0 - p, [0.0, factor], dtype);
    generator.scope(|| made(&drawn)).map(Some)
}
