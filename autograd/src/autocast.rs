//! [`autocast`]: products in a half type, sums and losses in `f32`. The lists of ops are [`LOW`], [`FULL`]
//! and [`WIDEST`]; the macros of op tables ask [`class_of`].

use crate::line::called_here;
use crate::plain::Input;
use crate::tape::{is_forgetting, is_grad_enabled};
use crate::tensor::Tensor;
use namegrad_core::{DType, Error, ErrorKind, NamedTensor, Result};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::panic::Location;

/// Runs `f` in mixed precision: ops cast their inputs of `f32`, `bf16` and `f16` to the dtype that suits the
/// op.
///
/// | ops | run in |
/// | --- | --- |
/// | matrix products, `contract`, `einsum`; linear and recurrent layers, convolutions, attention | `dtype` |
/// | `exp`, `log`, `pow`, `sum`, `prod`, `cumsum`, `softmax`, `interpolate`; normalizations, losses | `f32` |
/// | `cat`, `stack`, `dot`, `cross`, `scatter` and others that take one dtype alone | their widest dtype |
/// | all others | the dtypes that they are given, with the usual promotion |
///
/// Products in `dtype` are summed in `f32`.
///
/// Inputs of `f64` and of integers are never cast, and neither are those of in-place ops. The lists are those
/// of PyTorch's autocast for GPUs, which unlike those for the CPU have sums, softmax and norms in `f32`.
/// `tensordot` and `inner` are products of matrices, as in those for the CPU, and `trace` is a sum.
/// The [`dtype`](Tensor::dtype) of a result shows the dtype in which an op ran.
///
/// Parameters stay `f32`, and so do their gradients: a cast is recorded like any op. A parameter that is used
/// several times is cast once; the casts are dropped at the end of the outermost scope, so open a scope for
/// each step rather than one for the whole loop. A backward pass runs in the dtypes of the forward pass,
/// inside of the scope or, better, after it. With `f16`, use a `GradScaler`, in the crate of optimizers,
/// because small gradients vanish in it; `bf16` needs none.
///
/// Use `bf16` on a CPU. With instructions for its products, a training step takes 0.27 to 0.6 of its time in
/// `f32`, and without them a little longer; `docs/performance.md` has the figures. On most CPUs, `f16` is
/// slower than `f32`.
///
/// Your own [`Op`](crate::Op) gets its inputs as they are, which may be of several dtypes. Cast them
/// before you apply it, such as with `x.to(DType::F32)?`.
///
/// Scopes nest. `DType::F32` switches casts off inside of another scope. A scope is of the calling thread
/// alone, and ends after a panic, too.
///
/// # Errors
/// Only of the ops: if `dtype` is none of `bf16`, `f16` and `f32`, every op that would cast is an error of
/// kind [`ErrorKind::DType`].
///
/// # Source
/// Micikevicius et al., *Mixed Precision Training* (2018); PyTorch, `ATen/autocast_mode.h`.
///
/// # Examples
/// ```
/// use namegrad::autograd::autocast;
/// use namegrad::prelude::*;
/// let layer = Linear::new(("in", 3), ("out", 2))?;
/// let x = Tensor::randn([("N", 4), ("in", 3)])?;
/// let loss = autocast(DType::BF16, || {
///     let y = layer.forward(&x)?;
///     assert_eq!(y.dtype(), DType::BF16);
///     F::mse_loss(&y, &Tensor::zeros([("N", 4), ("out", 2)])?)
/// })?;
/// assert_eq!(loss.dtype(), DType::F32);
/// loss.backward()?;
/// assert_eq!(layer.weight().grad().unwrap().dtype(), DType::F32);
/// # Ok::<(), Error>(())
/// ```
#[track_caller]
pub fn autocast<R>(dtype: DType, f: impl FnOnce() -> R) -> R {
    let at = Location::caller();
    let mode = (dtype != DType::F32).then_some(CastMode { dtype, at });
    let _scope = Scope::enter(mode);
    f()
}

/// The dtype in which products run on this thread, if it is in a scope of [`autocast`].
///
/// ```
/// use namegrad::autograd::{autocast, autocast_dtype};
/// use namegrad::prelude::*;
/// assert_eq!(autocast(DType::BF16, autocast_dtype), Some(DType::BF16));
/// assert_eq!(autocast_dtype(), None);
/// ```
pub fn autocast_dtype() -> Option<DType> {
    MODE.get().map(|mode| mode.dtype)
}

/// The dtype that an op runs in.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The dtype of the scope.
    Low,
    /// `f32`.
    Full,
    /// The widest dtype of the inputs.
    Widest,
}

/// Ops that run in the dtype of the scope.
#[doc(hidden)]
#[rustfmt::skip]
pub const LOW: &[&str] = &[
    "mm", "mv", "bmm", "matmul", "addmm", "addmv", "addr", "addbmm", "baddbmm", "tensordot", "inner", "contract",
    "einsum", "linear", "convolution", "convolution_input", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "scaled_dot_product_attention", "recurrent", "prelu",
];

/// Ops that run in `f32`.
#[doc(hidden)]
#[rustfmt::skip]
pub const FULL: &[&str] = &[
    "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal", "rsqrt",
    "sinh", "tan", "pow", "square", "softplus",
    "sum", "prod", "cumsum", "cumprod", "logsumexp", "softmax", "log_softmax", "norm", "vector_norm", "trace",
    "quantile", "segment_sum", "segment_mean", "segment_softmax",
    "layer_norm", "rms_norm", "group_norm",
    "cosine_similarity", "pairwise_distance", "pdist", "dist",
    "interpolate", "resample", "qr", "solve_triangular",
    "cross_entropy", "class_cross_entropy", "linear_cross_entropy", "nll_loss", "ctc_loss", "kl_div",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "bernoulli_cross_entropy",
    "l1_loss", "mse_loss", "huber_loss", "smooth_l1_loss", "gaussian_nll_loss", "poisson_nll_loss",
    "hinge_embedding_loss", "margin_ranking_loss", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "soft_margin_loss", "cosine_embedding_loss", "triplet_margin_loss",
];

/// Ops that run in the widest dtype of their inputs.
#[doc(hidden)]
#[rustfmt::skip]
pub const WIDEST: &[&str] = &[
    "addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "grid_sample", "sample_at",
    "cat", "stack", "index_copy", "index_add", "index_put", "index_reduce", "scatter", "scatter_add",
    "scatter_reduce",
];

/// The class of an op, if it has one.
#[doc(hidden)]
pub const fn class_of(op: &str) -> Option<Class> {
    if has(LOW, op) {
        return Some(Class::Low);
    }
    if has(FULL, op) {
        return Some(Class::Full);
    }
    if has(WIDEST, op) { Some(Class::Widest) } else { None }
}

const fn has(list: &[&str], op: &str) -> bool {
    let mut number = 0;
    while number < list.len() {
        if same(list[number].as_bytes(), op.as_bytes()) {
            return true;
        }
        number += 1;
    }
    false
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// A scope that casts, and where it was opened.
#[derive(Clone, Copy)]
pub(crate) struct CastMode {
    dtype: DType,
    at: &'static Location<'static>,
}

thread_local! {
    static MODE: Cell<Option<CastMode>> = const { Cell::new(None) };
    static SCOPES: Cell<usize> = const { Cell::new(0) };
    static CASTS: RefCell<HashMap<Key, KeptCast>> = RefCell::default();
}

/// A leaf by its number on the tape, the dtype that it was cast to, and whether the cast was recorded.
type Key = (u64, DType, bool);

/// The cast of a leaf.
struct KeptCast {
    /// The value that was cast, which keeps its buffer from being reused for another.
    of: NamedTensor,
    cast: Tensor,
}

/// Whether ops cast their inputs on this thread.
#[doc(hidden)]
#[inline]
pub fn is_on() -> bool {
    MODE.get().is_some()
}

/// Whether a layer with parameters of one dtype takes an input of another: if that is the same, or both are
/// cast.
#[doc(hidden)]
pub fn fits(input: DType, parameters: DType) -> bool {
    input == parameters || is_on() && is_cast(input) && is_cast(parameters)
}

/// The scope of this thread, for a computation that is repeated later.
pub(crate) fn mode() -> Option<CastMode> {
    MODE.get()
}

/// Runs `f` in a new scope, which keeps nothing of the one around it.
pub(crate) fn in_mode<R>(mode: Option<CastMode>, f: impl FnOnce() -> R) -> R {
    struct Restore(HashMap<Key, KeptCast>);
    impl Drop for Restore {
        fn drop(&mut self) {
            drop(CASTS.replace(std::mem::take(&mut self.0)));
        }
    }
    let _restore = Restore(CASTS.take());
    let _scope = Scope::enter(mode);
    f()
}

/// A scope, until it is dropped.
struct Scope(Option<CastMode>);

impl Scope {
    fn enter(mode: Option<CastMode>) -> Scope {
        SCOPES.set(SCOPES.get() + 1);
        Scope(MODE.replace(mode))
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        MODE.set(self.0);
        SCOPES.set(SCOPES.get() - 1);
        if SCOPES.get() == 0 {
            drop(CASTS.take());
        }
    }
}

/// No casts until it is dropped: inside of an op that has cast its inputs, and in a backward pass.
#[doc(hidden)]
#[must_use]
pub struct Off(Option<CastMode>);

impl Off {
    #[doc(hidden)]
    #[inline]
    pub fn enter() -> Off {
        Off(MODE.replace(None))
    }
}

impl Drop for Off {
    #[inline]
    fn drop(&mut self) {
        MODE.set(self.0);
    }
}

/// Runs an op with cast inputs, if it has this class. If it is an error about dtypes, it says that inputs
/// were cast.
///
/// # Errors
/// Those of [`Casts::of`] and of the op, at the caller's line.
#[doc(hidden)]
#[track_caller]
pub fn with_casts<T>(
    op: &'static str,
    class: Option<Class>,
    inputs: &[Input<'_>],
    then: &dyn OnCasts<T>,
) -> Result<T> {
    on_casts(op, class, inputs, &mut |casts| then.run(casts))
}

/// [`with_casts`] for a closure that is called once.
#[track_caller]
fn on_casts<T>(
    op: &'static str,
    class: Option<Class>,
    inputs: &[Input<'_>],
    then: &mut dyn FnMut(&Casts) -> Result<T>,
) -> Result<T> {
    let caller = Location::caller(); // a closure does not get it
    let _called = called_here();
    let casts = Casts::of(op, class, inputs)?;
    match then(&casts) {
        Ok(made) => Ok(made),
        Err(error) => Err(casts.explain(error).at(caller)),
    }
}

/// The computation of an op on cast inputs, a closure. It is a trait of its own because an object of `Fn` has
/// two more functions, which would be compiled for each op.
#[doc(hidden)]
pub trait OnCasts<T> {
    fn run(&self, casts: &Casts) -> Result<T>;
}

impl<T, F: Fn(&Casts) -> Result<T>> OnCasts<T> for F {
    #[inline]
    fn run(&self, casts: &Casts) -> Result<T> {
        self(casts)
    }
}

/// [`with_casts`] for an op that takes all its inputs in a list.
#[track_caller]
pub(crate) fn with_inputs<T>(
    op: &'static str,
    class: Option<Class>,
    inputs: &[Input<'_>],
    then: &mut dyn FnMut(&[Input<'_>]) -> Result<T>,
) -> Result<T> {
    on_casts(op, class, inputs, &mut |casts| {
        let mut lists = Vec::with_capacity(inputs.len());
        for at in 0..inputs.len() {
            lists.push(casts.list(at));
        }
        let mut cast = Vec::with_capacity(inputs.len());
        for (input, list) in inputs.iter().zip(&lists) {
            cast.push(match input {
                Input::One(_) => Input::One(list[0]),
                Input::Optional(_) => Input::Optional(list.first().copied()),
                Input::List(_) => Input::List(list),
            });
        }
        then(&cast)
    })
}

/// The inputs of one op, cast. While it exists, nothing else casts.
#[doc(hidden)]
pub struct Casts {
    mode: CastMode,
    inputs: Vec<Vec<Tensor>>,
    _off: Off,
}

impl Casts {
    /// Casts the inputs of an op with this class.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] if the dtype of the scope is not one of those that products run in,
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    fn of(op: &'static str, class: Option<Class>, inputs: &[Input<'_>]) -> Result<Casts> {
        let mode = MODE.get().expect("a scope, in which an op casts");
        let CastMode { dtype, at } = mode;
        if !matches!(dtype, DType::BF16 | DType::F16) {
            let message =
                format!("autocast takes bf16, f16 or f32, and not {dtype}, which it was given at {at}");
            return Err(Error::new(ErrorKind::DType, op, message).with_repair("autocast(DType::BF16, || ..)"));
        }
        let to = match class {
            Some(Class::Low) => dtype,
            Some(Class::Widest) => widest(inputs),
            Some(Class::Full) | None => DType::F32,
        };
        let off = Off::enter();
        let mut all = Vec::with_capacity(inputs.len());
        for input in inputs {
            let mut casts = Vec::new();
            for x in input.tensors() {
                casts.push(cast(x, to)?);
            }
            all.push(casts);
        }
        Ok(Casts { mode, inputs: all, _off: off })
    }

    /// Input number `at`.
    pub fn one(&self, at: usize) -> &Tensor {
        &self.inputs[at][0]
    }

    /// Input number `at`, if the op was called with it.
    pub fn optional(&self, at: usize) -> Option<&Tensor> {
        self.inputs[at].first()
    }

    /// The list that is input number `at`.
    pub fn list(&self, at: usize) -> Vec<&Tensor> {
        self.inputs[at].iter().collect()
    }

    #[cold]
    fn explain(&self, error: Error) -> Error {
        let CastMode { dtype, at } = self.mode;
        if error.kind() != ErrorKind::DType {
            return error;
        }
        let message = error.message();
        let message =
            format!("{message}; autocast to {dtype} (at {at}) casts only float32, float16 and bfloat16");
        error.with_message(message)
    }
}

/// The widest dtype of the inputs that are cast.
fn widest(inputs: &[Input<'_>]) -> DType {
    let mut widest = DType::Bool; // narrower than all that are cast
    for input in inputs {
        for x in input.tensors() {
            if is_cast(x.dtype()) {
                widest = widest.promote(x.dtype());
            }
        }
    }
    widest
}

#[track_caller]
fn cast(x: &Tensor, to: DType) -> Result<Tensor> {
    if x.dtype() == to || !is_cast(x.dtype()) || x.value().is_number() {
        return Ok(x.clone());
    }
    match x.meta().filter(|meta| meta.is_leaf() && to != DType::F32 && !is_forgetting()) {
        Some(leaf) => kept((leaf.id, to, is_grad_enabled()), x),
        None => x.to(to),
    }
}

/// Whether tensors of a dtype are cast.
fn is_cast(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F16 | DType::BF16)
}

/// The cast of a leaf, which is made once.
#[track_caller]
fn kept(key: Key, x: &Tensor) -> Result<Tensor> {
    let known = CASTS.with_borrow(|casts| {
        casts.get(&key).filter(|kept| is_same(&kept.of, x.value())).map(|kept| kept.cast.clone())
    });
    if let Some(cast) = known {
        return Ok(cast.with_names_of(x));
    }
    let cast = x.to(key.1)?;
    let before = CASTS
        .with_borrow_mut(|casts| casts.insert(key, KeptCast { of: x.value().clone(), cast: cast.clone() }));
    drop(before); // outside of the borrow
    Ok(cast)
}

/// Whether two tensors are the same view of the same buffer, whatever the names.
fn is_same(a: &NamedTensor, b: &NamedTensor) -> bool {
    a.data_ptr() == b.data_ptr() && a.sizes() == b.sizes() && a.strides() == b.strides()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_op_has_one_class() {
        let mut all: Vec<&str> = [LOW, FULL, WIDEST].concat();
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{all:?}");
        assert_eq!(class_of("mm"), Some(Class::Low));
        assert_eq!(class_of("m"), None);
        assert_eq!(class_of("mmm"), None);
    }
}
