//! The calls of the ops of the fixtures.
//!
//! Ops are called by name through the registry, with PyTorch's names of arguments (`by_name`), so a new op
//! needs no line here. The tables below are for methods that are not ops and for calls that differ in
//! namegrad. [`different`] is tried before the registry, the others after it. `"T" => |c| c.x(0)?.mt()?;`
//! reads the positional tensor 0; an in-place form uses `c.in_place`.

use crate::attention;
use crate::by_name::{self, plain};
use crate::call::{Answer, Call, IntoOutputs, Value, copied, dim, dims, missing, unwritable};
use crate::properties::{positions_of, properties};
use crate::recurrent::recurrent;
use namegrad::autograd::Index;
use namegrad::core::args::{Extents, Windows};
use namegrad::core::names::Renaming;
use namegrad::core::{Argument, Dim, Name, NameArg, Scalar};
use namegrad::ops::{self, Given};
use namegrad::prelude::*;
use serde_json::{Value as Json, json};

/// The call of an op.
pub(crate) type Row = fn(&mut Call<'_>) -> Answer<Vec<Value>>;

/// PyTorch's other names for methods that are not ops or that have an entry below.
const OTHER_NAMES: [(&str, &str); 6] = [
    ("divide", "div"),
    ("itemsize", "element_size"),
    ("ndim", "dim"),
    ("ndimension", "dim"),
    ("nelement", "numel"),
    ("shape", "size"),
];

/// Replays the call of an op. Returns `None` if there is no such op. The functions of `torch.special` are
/// ordinary methods in namegrad.
pub(crate) fn play(op: &str, c: &mut Call<'_>) -> Option<Answer<Vec<Value>>> {
    #[cfg(feature = "all")]
    if op.starts_with("distributions.") {
        return Some(crate::distributions::play(op, c));
    }
    if let Some(answer) = crate::fft::play(op, c) {
        return Some(answer);
    }
    #[cfg(feature = "all")]
    if let Some(row) = crate::linalg::different(op) {
        return Some(row(c));
    }
    let op = op.strip_prefix("special.").unwrap_or(op);
    let op = OTHER_NAMES.iter().find(|(other, _)| *other == op).map_or(op, |(_, own)| own);
    if op.starts_with("masked.") {
        return Some(masked(op, c));
    }
    if let Some(row) = different(op).or_else(|| written(op)).or_else(|| create(op)) {
        return Some(row(c));
    }
    if op == "clamp_" {
        return Some(bounded(c).and_then(|bounded| by_name::required(&format!("{bounded}_"), c)));
    }
    if let Some(answer) = by_name::call(op, c) {
        return Some(answer);
    }
    let tables = [naming, queries, others, properties, recurrent];
    tables.iter().find_map(|table| table(op)).map(|row| row(c))
}

/// `"name" | "alias" => |c| outputs;` as a function from names to rows. The expression may use `?`. The row
/// above becomes the arm
///
/// ```ignore
/// "T" => |c| Ok(IntoOutputs::outputs(c.x(0)?.mt()?)),
/// ```
macro_rules! table {
    ($(#[$doc:meta])* $vis:vis fn $table:ident; $($($op:literal)|+ => |$c:ident| $outputs:expr;)*) => {
        $(#[$doc])*
        $vis fn $table(op: &str) -> Option<$crate::ops::Row> {
            Some(match op {
                $($($op)|+ => |$c| Ok($crate::call::IntoOutputs::outputs($outputs)),)*
                _ => return None,
            })
        }
    };
}
pub(crate) use table;

table! {
    /// Ops whose names or arguments differ from PyTorch's, depending on the arguments.
    fn different;
    "div" => |c| match c.text("rounding_mode") {
        Some("floor") => by_name::required("floor_divide", c)?,
        Some(_) => by_name::required("trunc_divide", c)?,
        None => by_name::required("div", c)?,
    };
    "nn.max_pool1d" => |c| pooled(c, "nn.max_pool1d")?;
    "nn.max_pool2d" => |c| pooled(c, "nn.max_pool2d")?;
    "nn.max_pool3d" => |c| pooled(c, "nn.max_pool3d")?;
    "nn.fractional_max_pool2d" => |c| fractional(c, 2)?;
    "nn.fractional_max_pool3d" => |c| fractional(c, 3)?;
    "nn.ctc_loss" => |c| { c.lists_as_tensors(&["input_lengths", "target_lengths"])?; by_name::required("nn.ctc_loss", c)? };
    "nn.adaptive_max_pool1d" => |c| adaptively_pooled(c, 1, "nn.adaptive_max_pool1d")?;
    "nn.adaptive_max_pool2d" => |c| adaptively_pooled(c, 2, "nn.adaptive_max_pool2d")?;
    "nn.adaptive_max_pool3d" => |c| adaptively_pooled(c, 3, "nn.adaptive_max_pool3d")?;
    "max" => |c| by_name::required(if c.count() == 2 { "maximum" } else { "max" }, c)?;
    "min" => |c| by_name::required(if c.count() == 2 { "minimum" } else { "min" }, c)?;
    "clamp" => |c| by_name::required(bounded(c)?, c)?;
    "atleast_1d" => |c| c.xs()?.into_iter().map(Tensor::atleast_1d).collect::<Result<Vec<_>>>()?;
    "atleast_2d" => |c| c.xs()?.into_iter().map(Tensor::atleast_2d).collect::<Result<Vec<_>>>()?;
    "atleast_3d" => |c| c.xs()?.into_iter().map(Tensor::atleast_3d).collect::<Result<Vec<_>>>()?;
    "where" => |c| match (c.has("self"), c.has("other")) {
        (false, false) if c.count() == 1 => return Ok(vec![positions_of(c.x(0)?)?]),
        (true, _) => c.x(0)?.choose(c.number(&["self"])?, c.x(1)?)?,
        (_, true) => c.x(0)?.choose(c.x(1)?, c.number(&["other"])?)?,
        _ => c.x(0)?.choose(c.x(1)?, c.x(2)?)?,
    };
    "logit" => |c| match c.has("eps") {
        true => {
            let eps = c.float_or("eps", 0.0)?;
            c.x(0)?.clamp(eps, 1.0 - eps)?.logit()?.outputs()
        }
        false => by_name::required("logit", c)?,
    };
    "norm" => |c| {
        #[cfg(feature = "all")]
        if c.text("p").is_some_and(|p| ["fro", "nuc"].contains(&p)) {
            return crate::linalg::norm(c, "p");
        }
        let (x, dims, options) = (c.x(0)?, c.dims("dim")?, VectorNormOptions::new().ord(c.float_or("p", 2.0)?));
        x.vector_norm_with(if c.flag("keepdim", false) { keep(dims) } else { dims }, options)?
    };
    "to" => |c| {
        c.flag("copy", false);
        by_name::required(if c.has("dtype") { "to" } else { "type_as" }, c)?
    };
    "tensordot" => |c| tensordot(c)?;
    "einops.rearrange" => |c| einops(c, |x, pattern, sizes| x.rearrange(pattern, sizes))?;
    "einops.reduce" => |c| {
        let reduction = c.text("reduction").unwrap_or_default();
        einops(c, |x, pattern, sizes| x.reduce(pattern, reduction, sizes))?
    };
    "einops.repeat" => |c| einops(c, |x, pattern, sizes| x.repeat_dims(pattern, sizes))?;
    "einops.einsum" => |c| Tensor::einsum(c.text("pattern").unwrap_or_default(), c.xs()?)?;
    "roll" => |c| roll(c)?;
    "unique" => |c| distinct(c, "unique")?;
    "unique_consecutive" => |c| distinct(c, "unique_consecutive")?;
}

table! {
    /// Functions of `nn` that write to their arguments in PyTorch, or whose arguments differ.
    fn written;
    "nn.MultiheadAttention" => |c| attention::multihead(c)?;
    "nn.TransformerEncoderLayer" => |c| attention::encoder(c)?;
    "nn.TransformerDecoderLayer" => |c| attention::decoder(c)?;
    "nn.batch_norm" => |c| running(c, "nn.batch_norm")?;
    "nn.instance_norm" => |c| running(c, "nn.instance_norm")?;
    "nn.avg_pool1d" => |c| { no_stride(c); by_name::required("nn.avg_pool1d", c)? };
    "nn.avg_pool2d" => |c| { no_stride(c); by_name::required("nn.avg_pool2d", c)? };
    "nn.avg_pool3d" => |c| { no_stride(c); by_name::required("nn.avg_pool3d", c)? };
    "nn._threshold" => |c| by_name::required("nn.threshold", c)?;
    "nn.fractional_max_pool2d_with_indices" => |c| fractional(c, 2)?;
    "nn.fractional_max_pool3d_with_indices" => |c| fractional(c, 3)?;
    "nn.triplet_margin_with_distance_loss" => |c| triplet(c)?;
    "nn.upsample" | "nn.upsample_nearest" => |c| by_name::required("nn.interpolate", c)?;
    "nn.upsample_bilinear" => |c| {
        let options = InterpolateOptions::new().mode(F::InterpolateMode::Bilinear).align_corners(true);
        let floats = |key: &str| -> Answer<Vec<f64>> {
            let list = c.arg(key).and_then(Json::as_array).cloned();
            let list = list.or_else(|| c.arg(key).map(|one| vec![one.clone(); 2])).unwrap_or_default();
            Ok(list.iter().filter_map(Json::as_f64).collect())
        };
        match c.has("size") {
            true => F::interpolate_with(c.x(0)?, &c.ints("size")?[..], options)?,
            false => F::interpolate_with(c.x(0)?, None, options.scale_factor(&floats("scale_factor")?[..]))?,
        }
    };
    "nn.embedding" => |c| {
        let outputs = by_name::required("nn.embedding", c)?;
        if c.has("max_norm") {
            let options = EmbeddingRenormOptions::new().norm_type(c.float_or("norm_type", 2.0)?);
            c.after = vec![F::embedding_renorm_with(c.x(0)?, c.x(1)?, c.float_or("max_norm", 0.0)?, options)?];
        }
        outputs
    };
    "nn.layer_norm" => |c| {
        let (x, eps) = (c.x(0)?, c.float_or("eps", 1e-5)?);
        let layer = LayerNorm::builder(c.ints("normalized_shape")?).elementwise_affine(false).eps(eps).build()?;
        layer.forward(x)?; // checks the sizes
        let mut options = LayerNormOptions::new().eps(eps);
        if let Some(weight) = c.tensor("weight") {
            options = options.weight(weight);
        }
        if let Some(bias) = c.tensor("bias") {
            options = options.bias(bias);
        }
        F::layer_norm_with(x, last_dims(c)?, options)?
    };
    "nn.rms_norm" => |c| {
        let x = c.x(0)?;
        let layer = RmsNorm::builder(c.ints("normalized_shape")?).elementwise_affine(false).build()?;
        layer.forward(x)?; // checks the sizes
        let mut options = RmsNormOptions::new();
        if c.has("eps") {
            options = options.eps(c.float_or("eps", 0.0)?);
        }
        c.arg("eps");
        if let Some(weight) = c.tensor("weight") {
            options = options.weight(weight);
        }
        F::rms_norm_with(x, last_dims(c)?, options)?
    };
}

/// The outputs that the call asks for.
fn distinct(c: &mut Call<'_>, name: &str) -> Answer<Vec<Value>> {
    let wanted = [true, c.flag("return_inverse", false), c.flag("return_counts", false)];
    let outputs = by_name::required(name, c)?.into_iter().zip(wanted);
    Ok(outputs.filter(|(_, wanted)| *wanted).map(|(output, _)| output).collect())
}

/// Reads a stride that is an empty list, which is none in PyTorch.
fn no_stride(c: &Call<'_>) {
    if c.is_empty_list("stride") {
        c.arg("stride");
    }
}

/// A loss of triplets with the distance that PyTorch takes by default.
fn triplet(c: &Call<'_>) -> Answer<Tensor> {
    c.arg("distance_function");
    let mut options = F::TripletMarginWithDistanceLossOptions::new().margin(c.float_or("margin", 1.0)?);
    options = options.swap(c.flag("swap", false));
    if let Some(reduction) = c.arg("reduction") {
        options.reduction = match F::Reduction::from_value(&plain(reduction, "Reduction")?) {
            Some(reduction) => reduction,
            None => return missing(format!("reduction {reduction}")),
        };
    }
    let distance = |x: &Tensor, y: &Tensor| F::pairwise_distance(x, y, -1);
    Ok(F::triplet_margin_with_distance_loss(c.x(0)?, c.x(1)?, c.x(2)?, distance, options)?)
}

/// The positions of the last dims, as many as `normalized_shape` has.
fn last_dims(c: &Call<'_>) -> Answer<Vec<isize>> {
    let count = c.ints("normalized_shape")?.len() as isize;
    Ok((-count..0).collect())
}

/// A normalization that returns the running statistics, which PyTorch writes to its arguments.
fn running(c: &mut Call<'_>, op: &str) -> Answer<Vec<Value>> {
    let given = c.has("running_mean");
    let mut outputs = by_name::required(op, c)?;
    if given {
        let written = outputs.iter().skip(1).filter_map(|output| match output {
            Value::Tensor(tensor) => Some(tensor.clone()),
            Value::Plain(_) => None,
        });
        c.after = written.collect();
    }
    outputs.truncate(1);
    Ok(outputs)
}

/// The name of the method says which bounds are given, so a call without bounds cannot be written.
fn bounded(c: &Call<'_>) -> Answer<&'static str> {
    match (c.has("min"), c.has("max")) {
        (true, true) => Ok("clamp"),
        (true, false) => Ok("clamp_min"),
        (false, true) => Ok("clamp_max"),
        (false, false) => unwritable("clamp takes its bounds, clamp_min and clamp_max one"),
    }
}

/// The names of a tensor, with `null` for unnamed dims.
fn names(x: &Tensor) -> Json {
    x.names().iter(x.ndim()).map(|name| name.map_or(Json::Null, |name| json!(name.as_str()))).collect()
}

table! {
    /// The naming API.
    fn naming;
    "names" => |c| names(c.x(0)?);
    "has_names" => |c| json!(c.x(0)?.has_names());
    "rename" => |c| renamed(c)?;
    "rename_" => |c| c.in_place(|x, c| {
        let renamed = rename(x, c)?;
        x.rename_(Some(renamed.names().clone()).filter(|names| names.is_named()))?;
        Ok(x)
    })?;
    "refine_names" => |c| c.x(0)?.refine_names(c.names("names")?)?;
    "align_to" => |c| c.x(0)?.align_to(c.names("names")?)?;
    "align_as" => |c| c.x(0)?.align_as(c.x(1)?)?;
    "align_tensors" => |c| Tensor::align_tensors(&c.xs()?)?;
    "flatten" => |c| flatten(c)?;
    "unflatten" => |c| c.x(0)?.unflatten(c.dim("dim")?, c.named_shape()?)?;
}

fn renamed(c: &Call<'_>) -> Answer<Tensor> {
    rename(c.x(0)?, c)
}

/// Names by position, by name, or `null` for none. The first two cannot be combined here.
fn rename(x: &Tensor, c: &Call<'_>) -> Answer<Tensor> {
    let map = c.arg("rename_map").and_then(Json::as_object);
    let pairs =
        map.map(|map| map.iter().map(|(from, to)| Ok((from.clone(), name(to)?))).collect::<Result<Vec<_>>>());
    match (pairs, c.has("names")) {
        (Some(_), true) => {
            c.arg("names");
            Err(Error::new(ErrorKind::Unsupported, "rename", "names by position and by name at once").into())
        }
        (Some(pairs), false) => Ok(x.rename(Renaming::Map(pairs?))?),
        (None, true) => Ok(x.rename(c.names("names")?)?),
        (None, false) => {
            c.arg("names");
            Ok(x.rename(None)?)
        }
    }
}

/// The new name of a dim; `null` removes it.
fn name(to: &Json) -> Result<NameArg> {
    to.as_str().map_or(Ok(NameArg::Unnamed), |text| Name::new(text).map(NameArg::Name))
}

fn flatten(c: &Call<'_>) -> Answer<Tensor> {
    let (x, name) = (c.x(0)?, c.text("out_dim"));
    if c.has("dims") {
        return Ok(x.flatten(c.dim_list("dims")?, name)?);
    }
    let (start, end) = (c.dim_or("start_dim", 0)?, c.dim_or("end_dim", -1)?);
    let at = |dim: Dim| dim.resolve("flatten", x.value());
    let (start, end) = (at(start)?, at(end)?);
    let dims = if start <= end { (start..=end).collect() } else { vec![start, end] };
    Ok(x.flatten(dims, name)?)
}

table! {
    /// Queries.
    fn queries;
    "dim" => |c| json!(c.x(0)?.ndim());
    "numel" => |c| json!(c.x(0)?.numel());
    "len" => |c| json!(c.x(0)?.size(0)?);
    "size" => |c| match c.has("dim") {
        true => json!(c.x(0)?.size(c.dim("dim")?)?),
        false => json!(c.x(0)?.sizes()),
    };
    "stride" => |c| match c.has("dim") {
        true => { let x = c.x(0)?; json!(x.strides()[c.dim("dim")?.resolve("stride", x.value())?]) }
        false => json!(c.x(0)?.strides()),
    };
    "element_size" => |c| json!(c.x(0)?.dtype().itemsize());
    "nbytes" => |c| json!(c.x(0)?.value().nbytes());
    "dtype" => |c| json!(c.x(0)?.dtype().torch_name());
    "is_floating_point" => |c| json!(c.x(0)?.dtype().is_floating_point());
    "is_signed" => |c| json!(c.x(0)?.dtype().is_signed());
    "is_contiguous" => |c| json!(c.x(0)?.is_contiguous());
    "is_same_size" => |c| json!(c.x(0)?.sizes() == c.x(1)?.sizes());
    "is_leaf" => |c| json!(c.x(0)?.is_leaf());
    "requires_grad" => |c| json!(c.x(0)?.requires_grad());
    "requires_grad_" => |c| c.in_place(|x, c| Ok(x.requires_grad_(c.flag("requires_grad", true))?))?;
    "item" => |c| number(c.x(0)?.item::<namegrad::core::Scalar>()?);
    "tolist" => |c| nested(c.x(0)?)?;
    "is_tensor" => |c| match c.arg("obj") { Some(_) => json!(false), None => json!(c.count() == 1) };
    "manual_seed" => |c| {
        let [first, second] = [seeded(c)?, seeded(c)?];
        json!(first.to_vec::<f64>()? == second.to_vec::<f64>()?)
    };
    "grad" => |c| gradient(c)?;
    "register_hook" => |c| {
        let scale = c.arg("scale").map(|_| c.float_or("scale", 1.0)).transpose()?;
        c.x(0)?.register_hook(move |g| scale.map(|scale| g.mul(scale)).transpose())?;
        c.x(0)?.sin()?
    };
    "register_post_accumulate_grad_hook" => |c| {
        let scale = c.float_or("scale", 1.0)?;
        let x = c.x(0)?;
        x.register_post_accumulate_grad_hook(move |g| g.mul(scale).map(Some))?;
        x.sin()?.backward_with(Some(c.x(1)?), Default::default())?;
        vec![x.grad().map_or(Value::Plain(Json::Null), Value::Tensor)]
    };
}

fn number(value: Scalar) -> Json {
    match value {
        Scalar::Bool(value) => json!(value),
        Scalar::Int(value) => json!(value),
        Scalar::Float(value) if value.is_nan() => json!("nan"),
        Scalar::Float(value) if value.is_infinite() => json!(if value > 0.0 { "inf" } else { "-inf" }),
        Scalar::Float(value) => json!(value),
    }
}

/// The elements as nested lists.
fn nested(x: &Tensor) -> Answer<Json> {
    if x.ndim() == 0 {
        return Ok(number(x.item::<namegrad::core::Scalar>()?));
    }
    (0..x.sizes()[0]).map(|row| nested(&x.select(0, row)?)).collect::<Answer<Vec<Json>>>().map(Json::Array)
}

fn seeded(c: &Call<'_>) -> Answer<Tensor> {
    manual_seed(c.int("seed")? as u64);
    let sizes = c.ints("size")?;
    match c.text("fn") {
        Some("rand") => Ok(Tensor::rand(sizes)?),
        Some("randn") => Ok(Tensor::randn(sizes)?),
        other => missing(format!("manual_seed with {other:?}")),
    }
}

/// `x.grad` of a new leaf, or after backward passes through an op.
fn gradient(c: &Call<'_>) -> Answer<Vec<Value>> {
    let x = c.x(0)?;
    if let Some(op) = c.text("fn") {
        for _ in 0..c.int_or("times", 1)? {
            let none = Default::default();
            let mut call = Call::new(&none, vec![x.clone()]);
            let Some(answer) = play(op, &mut call) else { return missing(op) };
            if let [Value::Tensor(y)] = &answer?[..] {
                y.backward_with(Some(c.x(1)?), Default::default())?;
            }
        }
    }
    Ok(vec![x.grad().map_or(Value::Plain(Json::Null), Value::Tensor)])
}

table! {
    /// New tensors.
    fn create;
    "zeros" => |c| c.options()?.zeros(c.shape()?)?;
    "ones" => |c| c.options()?.ones(c.shape()?)?;
    "empty" => |c| c.options()?.empty(c.shape()?)?;
    "rand" => |c| c.options()?.rand(c.shape()?)?;
    "randn" => |c| c.options()?.randn(c.shape()?)?;
    "full" => |c| c.options()?.full(c.shape()?, c.scalar("fill_value")?)?;
    "tensor" => |c| tensor(c)?;
    "eye" => |c| { let n = c.int("n")? as usize; c.options()?.eye(n, c.int_or("m", n as isize)? as usize)? };
    "arange" => |c| {
        let (end, zero) = (c.scalar("end")?, Scalar::Int(0));
        c.options()?.arange(c.scalar_or("start", zero)?, end, c.scalar_or("step", Scalar::Int(1))?)?
    };
    "logspace" => |c| { let [start, end] = ends(c)?; c.options()?.logspace(start, end, c.int("steps")? as usize, c.float_or("base", 10.0)?)? };
    "tril_indices" => |c| Tensor::tril_indices(c.int("row")? as usize, c.int("col")? as usize, c.int_or("offset", 0)?)?.to(c.dtype("dtype")?.unwrap_or(DType::I64))?;
    "triu_indices" => |c| Tensor::triu_indices(c.int("row")? as usize, c.int("col")? as usize, c.int_or("offset", 0)?)?.to(c.dtype("dtype")?.unwrap_or(DType::I64))?;
    "linspace" => |c| { let [start, end] = ends(c)?; c.options()?.linspace(start, end, c.int("steps")? as usize)? };
}

/// The ends of a range, each a number or the next tensor.
fn ends(c: &Call<'_>) -> Answer<[Tensor; 2]> {
    let number = |key: &str| -> Answer<Tensor> {
        Ok(TensorOptions::new().dtype(DType::F64).full((), c.scalar(key)?.to_f64())?)
    };
    let start = if c.has("start") { number("start")? } else { c.x(0)?.clone() };
    let end = if c.has("end") { number("end")? } else { c.x(usize::from(!c.has("start")))?.clone() };
    Ok([start, end])
}

/// A function of `torch.masked`. Without a mask, all elements count.
fn masked(op: &str, c: &Call<'_>) -> Answer<Vec<Value>> {
    let x = &c.x(0)?.to(c.dtype("dtype")?.unwrap_or(c.x(0)?.dtype()))?;
    let all = x.eq(x)?.logical_or(x.ne(x)?)?;
    let mask = |key: &str| c.tensor(key).unwrap_or(&all).clone();
    let without = |x: &Tensor, mask: Tensor, value: f64| x.masked_fill(&mask.logical_not()?, value);
    let y = match op.strip_prefix("masked.").unwrap_or(op) {
        "softmin" => x.neg().masked_softmax(mask("mask"), c.dim("dim")?)?,
        "logaddexp" => {
            let low = f64::NEG_INFINITY;
            let other = without(c.x(1)?, mask("other_mask"), low)?;
            without(x, mask("input_mask"), low).logaddexp(&other)?
        }
        "normalize" => {
            let (mask, order) = (mask("mask"), MaskedNormOptions::new().ord(c.float_or("ord", 2.0)?));
            let norm = x.masked_norm_with(&mask, keep(c.dim("dim")?), order)?;
            without(x, mask, 0.0).div(norm.clamp_min(c.float_or("eps", 1e-12)?)?)?
        }
        name => {
            let mut args = vec![("mask", Given::Value(ops::Value::None)); 0];
            for (from, to) in
                [("dim", "dim"), ("keepdim", "keepdim"), ("ord", "ord"), ("correction", "correction")]
            {
                if let Some(value) = c.arg(from) {
                    args.push((to, Given::Value(plain(value, if from == "ord" { "f64" } else { "" })?)));
                }
            }
            if let Some(unbiased) = c.arg("unbiased").and_then(Json::as_bool) {
                args.push(("correction", f64::from(unbiased).into()));
            }
            return Ok(ops::call(&format!("masked_{name}"), &[x, &mask("mask")], &args)?.outputs());
        }
    };
    Ok(y.outputs())
}

/// A tensor of nested lists, given here as flat numbers and sizes.
fn tensor(c: &Call<'_>) -> Answer<Tensor> {
    let Some(data) = c.arg("data") else { return missing("tensor without data") };
    let (mut sizes, mut level) = (Vec::new(), data);
    while let Json::Array(rows) = level {
        sizes.push(rows.len());
        match rows.first() {
            Some(row) => level = row,
            None => break,
        }
    }
    let mut flat = Vec::new();
    flatten_json(data, &mut flat);
    let widest = flat.iter().map(|number| number.dtype()).fold(DType::Bool, DType::promote);
    let widest = if flat.is_empty() { DType::F32 } else { widest };
    let dtype = c.dtype("dtype")?.unwrap_or(widest);
    let options = TensorOptions::new().dtype(dtype);
    let tensor = match widest {
        DType::I64 => options
            .tensor(flat.iter().map(|x| namegrad::core::Element::from_scalar(*x)).collect::<Vec<i64>>())?,
        DType::Bool => options.tensor(flat.iter().map(|x| x.to_f64() != 0.0).collect::<Vec<bool>>())?,
        _ => options.tensor(flat.iter().map(|x| x.to_f64()).collect::<Vec<f64>>())?,
    };
    let mut tensor = tensor.reshape(&sizes[..])?;
    if c.has("names") {
        tensor = tensor.rename(c.names("names")?)?;
    }
    tensor.requires_grad_(c.flag("requires_grad", false))?;
    Ok(tensor)
}

fn flatten_json(data: &Json, into: &mut Vec<Scalar>) {
    match data {
        Json::Array(rows) => rows.iter().for_each(|row| flatten_json(row, into)),
        number => into.extend(crate::case::scalar(number)),
    }
}

table! {
    /// Calls without rows: the tape, and calls that take more than values.
    fn others;
    "__radd__" => |c| c.other()?.add(c.x(0)?)?;
    "__rsub__" => |c| c.other()?.sub(c.x(0)?)?;
    "__rmul__" => |c| c.other()?.mul(c.x(0)?)?;
    "__rdiv__" => |c| c.other()?.div(c.x(0)?)?;
    "__rmod__" => |c| c.other()?.remainder(c.x(0)?)?;
    "__rpow__" => |c| c.other()?.pow(c.x(0)?)?;
    "__rmatmul__" => |c| c.other()?.matmul(c.x(0)?)?;
    "__rand__" => |c| c.other()?.bitwise_and(c.x(0)?)?;
    "__ror__" => |c| c.other()?.bitwise_or(c.x(0)?)?;
    "__rxor__" => |c| c.other()?.bitwise_xor(c.x(0)?)?;
    "H" | "mH" => |c| if c.x(0)?.ndim() == 0 { c.x(0)?.clone() } else { c.x(0)?.mt()? };
    "alias_copy" | "conj" | "conj_physical" | "real" | "resolve_conj" | "resolve_neg" | "view_as_complex"
        | "view_as_real" => |c| c.x(0)?.clone();
    "angle" => |c| {
        let x = &if c.x(0)?.dtype().is_floating_point() { c.x(0)?.clone() } else { c.x(0)?.float()? };
        x.isnan()?.choose(x, x.lt(0)?.choose(std::f64::consts::PI, 0.0)?.to(x.dtype())?)?
    };
    "isreal" => |c| c.x(0)?.full_like_with(true, FullLikeOptions::new().dtype(DType::Bool))?;
    "complex" => |c| namegrad::complex::from_parts(c.x(0)?, c.x(1)?)?;
    "polar" => |c| namegrad::complex::polar(c.x(0)?, c.x(1)?)?;
    "cdouble" => |c| namegrad::complex::from_real(&c.x(0)?.double()?)?;
    "cfloat" => |c| namegrad::complex::from_real(&c.x(0)?.float()?)?;
    "sum_to_size" => |c| { let size: Vec<usize> = c.ints("size")?.iter().map(|size| *size as usize).collect(); if size == c.x(0)?.sizes() && !size.is_empty() { c.x(0)?.clone() } else { c.x(0)?.sum_to(&size)? } };
    "triangular_solve" => |c| {
        let (b, a) = (c.x(0)?, c.x(1)?);
        let upper = if c.flag("upper", true) { Triangle::Upper } else { Triangle::Lower };
        let options = SolveTriangularOptions::new().unitriangular(c.flag("unitriangular", false));
        let solution = match c.flag("transpose", false) {
            true => a.mt()?.solve_triangular_with(b, upper.transposed(), options)?,
            false => a.solve_triangular_with(b, upper, options)?,
        };
        vec![solution, a.clone()]
    };
    "cauchy" => |c| { let mut x = c.x(0)?.detach(); x.cauchy_(c.float_or("median", 0.0)?, c.float_or("sigma", 1.0)?)?; x };
    "exponential" => |c| { let mut x = c.x(0)?.detach(); x.exponential_(c.float_or("lambd", 1.0)?)?; x };
    "geometric" => |c| { let mut x = c.x(0)?.detach(); x.geometric_(c.float_or("p", 0.5)?)?; x };
    "log_normal" => |c| { let mut x = c.x(0)?.detach(); x.log_normal_(c.float_or("mean", 1.0)?, c.float_or("std", 2.0)?)?; x };
    "uniform" => |c| { let mut x = c.x(0)?.detach(); x.uniform_(c.float_or("from", 0.0)?, c.float_or("to", 1.0)?)?; x };
    "T" => |c| { let x = c.x(0)?; x.permute((0..x.ndim()).rev().collect::<Vec<usize>>())? };
    "getitem" => |c| c.x(0)?.index(&indices(c)?[..])?;
    "setitem_" => |c| c.in_place(|x, c| Ok(x.index_put_(&indices(c)?[..], c.operand(1, "value")?)?))?;
    "clone" => |c| copied(c.x(0)?)?;
    "detach" => |c| c.x(0)?.detach();
    "detach_" => |c| c.in_place(|x, _| Ok(x.detach_()))?;
    "random_" => |c| c.in_place(|x, c| match (c.has("from"), c.has("to")) {
        (false, false) => Ok(x.random_(..)?),
        (false, true) => Ok(x.random_(..c.int("to")? as i64)?),
        _ => Ok(x.random_(c.int("from")? as i64..c.int("to")? as i64)?),
    })?;
    "normal" => |c| match (c.has("mean"), c.count()) {
        (true, _) => Tensor::normal(c.number(&["mean"])?, c.x(0)?)?,
        (false, 1) => Tensor::normal(c.x(0)?, c.number(&["std"])?)?,
        _ => Tensor::normal(c.x(0)?, c.x(1)?)?,
    };
}

/// The numbers of an argument, which may be missing.
fn extents(c: &Call<'_>, key: &str) -> Answer<Extents> {
    match c.arg(key) {
        None => Ok(Extents::default()),
        Some(Json::Array(list)) if list.is_empty() => Ok(Extents::default()), // as in PyTorch
        Some(value) => match Extents::from_value(&plain(value, "Extents")?) {
            Some(extents) => Ok(extents),
            None => missing(format!("`{key}` {value}")),
        },
    }
}

/// Pooling over the last dims, with the indices if the call asks for them.
fn pooled(c: &mut Call<'_>, name: &str) -> Answer<Vec<Value>> {
    no_stride(c);
    if !c.flag("return_indices", false) {
        return by_name::required(name, c);
    }
    let of_all = |extents: Extents| if extents.is_none() { Extents::from(0) } else { extents };
    let dims = if name.ends_with("1d") {
        1
    } else if name.ends_with("2d") {
        2
    } else {
        3
    };
    let kernel = Windows::sliding(each(extents(c, "kernel_size")?, dims)).stride(extents(c, "stride")?);
    let dilation = if c.has("dilation") { extents(c, "dilation")? } else { 1.into() };
    c.arg("dilation");
    let windows = kernel.padding(of_all(extents(c, "padding")?)).dilation(dilation);
    let Picked { values, indices } = c.x(0)?.max_pool(windows.ceil_mode(c.flag("ceil_mode", false)))?;
    Ok(vec![Value::Tensor(values), Value::Tensor(indices)])
}

/// A number for each dim.
fn each(extents: Extents, dims: usize) -> Extents {
    match extents.over("conformance", "kernel_size", dims) {
        Ok(numbers) => Extents::from(&numbers[..]),
        Err(_) => extents,
    }
}

/// Adaptive pooling over the last `dims` dims, with the indices if the call asks for them.
fn adaptively_pooled(c: &mut Call<'_>, dims: usize, name: &str) -> Answer<Vec<Value>> {
    if !c.flag("return_indices", false) {
        return by_name::required(name, c);
    }
    let x = c.x(0)?;
    let lengths = &x.sizes()[x.ndim().saturating_sub(dims)..];
    let sizes = extents(c, "output_size")?.or_lengths("max_pool", "output_size", lengths)?;
    let Picked { values, indices } = x.max_pool(Windows::adaptive(&sizes[..]))?;
    Ok(vec![Value::Tensor(values), Value::Tensor(indices)])
}

/// Pooling by fractions over the last dims, at drawn places or those of `_random_samples`.
fn fractional(c: &mut Call<'_>, dims: usize) -> Answer<Vec<Value>> {
    let (x, kernel) = (c.x(0)?, extents(c, "kernel_size")?);
    let drawn = match c.tensor("_random_samples") {
        // Without a batch, PyTorch takes the first of several samples.
        Some(samples) if x.ndim() == dims + 1 => samples.narrow(0, 0, 1)?,
        Some(samples) => samples.clone(),
        None => {
            let planes: usize = x.sizes()[..x.ndim().saturating_sub(dims)].iter().product();
            TensorOptions::new().dtype(x.dtype()).rand([1, planes, dims])?
        }
    };
    let lengths = &x.sizes()[x.ndim().saturating_sub(dims)..];
    let ratio = |at: usize| match c.arg("output_ratio") {
        Some(Json::Array(list)) => list[at].as_f64(),
        one => one.and_then(Json::as_f64),
    };
    let sizes = match c.has("output_size") {
        true => extents(c, "output_size")?.over("fractional_max_pool", "output_size", dims)?,
        false => lengths
            .iter()
            .enumerate()
            .map(|(at, length)| (*length as f64 * ratio(at).unwrap_or(0.5)) as usize)
            .collect(),
    };
    c.arg("output_size"); // used: the sizes
    c.arg("output_ratio");
    let Picked { values, indices } = x.fractional_max_pool(&drawn, kernel, &sizes[..])?;
    let count = if c.flag("return_indices", false) { 2 } else { 1 };
    Ok([values, indices].into_iter().take(count).map(Value::Tensor).collect())
}

/// Rolls by one shift after another; without dims, rolls the flattened tensor.
fn roll(c: &Call<'_>) -> Answer<Tensor> {
    let shifts = c.ints("shifts")?;
    let dims: Vec<Dim> = match c.arg("dims") {
        None => return Ok(c.x(0)?.reshape([-1])?.roll(shifts[0], 0)?.reshape(c.x(0)?.sizes())?),
        Some(Json::Array(list)) => list.iter().map(dim).collect::<Answer<_>>()?,
        Some(one) => vec![dim(one)?],
    };
    if dims.len() != shifts.len() {
        return missing("shifts and dims of different number");
    }
    let mut x = c.x(0)?.clone();
    for (shift, dim) in shifts.into_iter().zip(dims) {
        x = x.roll(shift, dim)?;
    }
    Ok(x)
}

pub(crate) fn indices(c: &Call<'_>) -> Answer<Vec<Index>> {
    let Some(list) = c.arg("index").and_then(Json::as_array) else {
        return missing("getitem without a list");
    };
    let entry = |entry: &Json| match entry {
        Json::Null => Ok(Index::New),
        Json::Number(at) => Ok(Index::At(at.as_i64().unwrap_or_default() as isize)),
        Json::String(_) => Ok(Index::Ellipsis),
        Json::Array(list) if list.iter().all(Json::is_i64) => {
            let positions: Vec<i64> = list.iter().filter_map(Json::as_i64).collect();
            Ok(Index::from(&positions[..]))
        }
        Json::Object(_) => match (c.input(entry), entry["slice"].as_array()) {
            (Some(tensor), _) => Ok(Index::from(tensor)),
            (None, Some(slice)) => {
                let end = |k: usize| slice[k].as_i64().map(|at| at as isize);
                Ok(Index::Slice { start: end(0), end: end(1), step: end(2).unwrap_or(1) as usize })
            }
            (None, None) => missing(format!("index {entry}")),
        },
        other => missing(format!("index {other}")),
    };
    list.iter().map(entry).collect()
}

/// A call with a pattern. Several tensors are stacked.
fn einops(c: &Call<'_>, op: impl Fn(Tensor, &str, &[(&str, usize)]) -> Result<Tensor>) -> Answer<Tensor> {
    let x = match c.arg("tensor") {
        Some(list) => Tensor::stack(c.inputs_of(list), 0)?,
        None => c.x(0)?.clone(),
    };
    let sizes = c.arg("axes_lengths").and_then(Json::as_object).into_iter().flatten();
    let sizes: Vec<(&str, usize)> =
        sizes.map(|(word, size)| (word.as_str(), size.as_u64().unwrap_or_default() as usize)).collect();
    Ok(op(x, c.text("pattern").unwrap_or_default(), &sizes)?)
}

/// Contracts the last dims of one tensor and the first of the other, or two lists of dims.
fn tensordot(c: &Call<'_>) -> Answer<Tensor> {
    let (x, y) = (c.x(0)?, c.x(1)?);
    match c.arg("dims") {
        Some(Json::Array(lists)) => Ok(x.tensordot(y, dims(&lists[0])?, dims(&lists[1])?)?),
        count => {
            let count = count.and_then(Json::as_u64).unwrap_or(2) as usize;
            let last: Vec<usize> = (x.ndim().saturating_sub(count)..x.ndim()).collect();
            Ok(x.tensordot(y, last, (0..count).collect::<Vec<usize>>())?)
        }
    }
}
