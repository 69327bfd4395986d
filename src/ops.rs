//! Ops by name: facts about each op, and calls with named arguments.
//!
//! Programs normally call ops as methods. This module is for code that has the names of ops as data: recorded
//! calls, gradient checks over all ops, replayed graphs, bindings. Arguments have PyTorch's names, and the
//! defaults in the row of the op.
//!
//! ```
//! use namegrad::prelude::*;
//! use namegrad::ops;
//! let x = Tensor::new([[1.0, 2.0], [3.0, 4.0]])?.refine_names(["row", "class"])?;
//! let sums = ops::call("sum", &[&x], &[("dim", "class".into()), ("keepdim", true.into())])?;
//! assert_eq!(sums[0].shape().to_string(), "[row=2, class=1]");
//! let error = ops::call("sofmax", &[&x], &[]).unwrap_err();
//! assert!(error.to_string().contains("did you mean `softmax`?"));
//! # Ok::<(), Error>(())
//! ```

pub use namegrad_autograd::registry::{Given, Gradients, Op};
pub use namegrad_core::Value;
pub use namegrad_core::ops::{ArgInfo, OpInfo, TensorInfo, TensorKind};

use namegrad_autograd::Tensor;
use namegrad_core::{Error, ErrorKind, Result};
use namegrad_nn::FACTORIES;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Every op, in the order of the tables, and every function of [`nn::functional`](crate::nn::functional) that
/// is not also a method. The names of functions start with `nn.`, and those of the functions of `fft` and
/// `complex`, which the feature `fft` has, with `fft.` and `complex.`. Methods
/// of `linalg` are there with its feature.
pub fn all() -> impl Iterator<Item = &'static Op> {
    let functions = namegrad_nn::functional::OPS.iter().flat_map(|table| table.iter().copied());
    #[cfg(feature = "fft")]
    let functions = functions.chain(namegrad_fft::OPS.iter().flat_map(|table| table.iter().copied()));
    let all = namegrad_autograd::registry::all();
    #[cfg(feature = "linalg")]
    let all = all.chain(namegrad_linalg::OPS.iter().flat_map(|table| table.iter().copied()));
    all.chain(functions)
}

/// The op with this name; PyTorch's other names for it work too. For names that start with `nn.`, functions
/// come first, because they can take more arguments than the method with the same name. The factories, such as
/// `zeros`, are found too, but are not among [`all`]: they take no tensors.
///
/// # Errors
/// [`ErrorKind::Value`] for an unknown name; the error suggests a similar one.
#[track_caller]
pub fn find(name: &str) -> Result<&'static Op> {
    static BY_NAME: LazyLock<HashMap<&'static str, &'static Op>> =
        LazyLock::new(|| all().chain(FACTORIES.iter().copied()).map(|op| (op.info.name, op)).collect());
    let plain = ["special.", "linalg.", "nn.", "torch."].iter().find_map(|prefix| name.strip_prefix(prefix));
    let plain = plain.unwrap_or(name);
    // PyTorch's functions that copy what a view shows: here, nothing is written through a view.
    let plain = plain.strip_suffix("_copy").filter(|_| !BY_NAME.contains_key(plain)).unwrap_or(plain);
    let own = ALIASES.iter().find(|(alias, _)| *alias == plain).map_or(plain, |(_, own)| own);
    let known = BY_NAME.get(name).or_else(|| BY_NAME.get(own).filter(|_| !OTHERS.contains(&name)));
    let of = |module: &str| BY_NAME.get(format!("{module}{own}").as_str());
    let masked = || BY_NAME.get(own.strip_prefix("masked.").map(|own| format!("masked_{own}"))?.as_str());
    if let Some(op) = known.or_else(|| of("nn.")).or_else(|| of("torch.")).or_else(masked) {
        return Ok(op);
    }
    #[cfg(not(feature = "fft"))]
    if ["fft.", "complex."].iter().any(|prefix| name.starts_with(prefix)) {
        let message = format!("`{name}` needs the feature `fft`");
        return Err(Error::new(ErrorKind::Value, "ops::find", message)
            .with_repair("namegrad = { version = \"0.1\", features = [\"fft\"] } in Cargo.toml"));
    }
    let near = namegrad_core::names::closest(name, BY_NAME.keys().copied());
    let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    Err(Error::new(ErrorKind::Value, "ops::find", format!("no op is called `{name}`{near}")))
}

/// The op whose in-place form has this name.
pub fn find_in_place(name: &str) -> Option<&'static Op> {
    all().find(|op| op.info.in_place == Some(name))
}

/// Calls an op by its name; see [`Op::call`].
///
/// # Errors
/// The errors of [`find`] and of [`Op::call`].
#[track_caller]
pub fn call(name: &str, tensors: &[&Tensor], args: &[(&str, Given<'_>)]) -> Result<Vec<Tensor>> {
    find(name)?.call(tensors, args)
}

/// Functions in PyTorch that differ from the method with the same name.
const OTHERS: [&str; 1] = ["nn.unfold"];

/// PyTorch's other names for ops.
const ALIASES: [(&str, &str); 47] = [
    ("absolute", "abs"),
    ("arccos", "acos"),
    ("arccosh", "acosh"),
    ("arcsin", "asin"),
    ("arcsinh", "asinh"),
    ("arctan", "atan"),
    ("arctan2", "atan2"),
    ("arctanh", "atanh"),
    ("broadcast_to", "expand"),
    ("clip", "clamp"),
    ("concat", "cat"),
    ("concatenate", "cat"),
    ("constant_pad_nd", "pad"),
    ("divide", "div"),
    ("expit", "sigmoid"),
    ("fill_", "fill"),
    ("fix", "trunc"),
    ("_sample_dirichlet", "dirichlet"),
    ("_standard_gamma", "standard_gamma"),
    ("gammaln", "lgamma"),
    ("ger", "outer"),
    ("greater", "gt"),
    ("greater_equal", "ge"),
    ("igamma", "gammainc"),
    ("igammac", "gammaincc"),
    ("inverse", "inv"),
    ("less", "lt"),
    ("less_equal", "le"),
    ("mT", "mt"),
    ("modified_bessel_i0", "i0"),
    ("modified_bessel_i1", "i1"),
    ("moveaxis", "movedim"),
    ("multiply", "mul"),
    ("mvlgamma", "multigammaln"),
    ("negative", "neg"),
    ("pinverse", "pinv"),
    ("psi", "digamma"),
    ("row_stack", "vstack"),
    ("split_with_sizes", "split"),
    ("subtract", "sub"),
    ("swapdims", "transpose"),
    ("trapz", "trapezoid"),
    ("true_divide", "div"),
    ("unsafe_chunk", "chunk"),
    ("unsafe_split", "split"),
    ("unsafe_split_with_sizes", "split"),
    ("where", "choose"),
];
