//! The affine map.

use namegrad_autograd::Tensor;
use namegrad_core::{DType, Error, ErrorKind, Names, Result, Sizes};
use namegrad_macros::functional;
use std::panic::Location;

functional! { linear;
    /// `x weightᵀ + bias` over the last dim of `x`.
    ///
    /// # Shapes
    /// - `x`: `[.., in]`
    /// - `weight`: `[out, in]`, or `[in]` for a single output without a dim
    /// - `bias`: `[out]`, or one number
    /// - result: `[.., out]`, with the names of `x` and the first name of the weight; or `[..]`
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::rand([("N", 2), ("in", 3)])?;
    /// let weight = Tensor::rand([("out", 4), ("in", 3)])?;
    /// assert_eq!(F::linear(&x, &weight)?.shape().to_string(), "[N=2, out=4]");
    /// let bias = Tensor::ones([("out", 4)])?;
    /// let y = F::linear_with(&x, &weight, LinearOptions::new().bias(&bias))?;
    /// assert!(y.sub(1)?.allclose(&F::linear(&x, &weight)?)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`], [`ErrorKind::DType`], [`ErrorKind::DuplicateName`] if `x` has the name of the
    /// output; in strict mode [`ErrorKind::NameMismatch`].
    linear (x, weight, bias?) on floats integers names "contracts away dims";
    /// `y[.., o] = Σ_i Σ_j x[.., i] weight[o, i, j] other[.., j] + bias[o]`.
    ///
    /// # Shapes
    /// - `x`: `[.., in1]`
    /// - `other`: `[.., in2]`, with the same first dims
    /// - `weight`: `[out, in1, in2]`
    /// - `bias`: `[out]`
    /// - result: `[.., out]`, with the names of `x` and the first name of the weight
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let (x, other) = (Tensor::new([[1.0, 2.0]])?, Tensor::new([[3.0, 4.0]])?);
    /// let weight = Tensor::new([[[1.0, 0.0], [0.0, 1.0]]])?; // the dot product
    /// assert_eq!(F::bilinear(&x, &other, &weight)?.to_vec::<f32>()?, [11.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`], [`ErrorKind::DType`], [`ErrorKind::NameMismatch`] if the first dims differ in
    /// name.
    bilinear (x, other, weight, bias?) on floats integers names "unifies names from inputs";
}

mod kernels {
    pub(super) use super::two::bilinear;
    use super::*;

    #[track_caller]
    pub(super) fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        check(x, weight, bias)?;
        if weight.ndim() == 1 {
            let y = x.matmul(weight)?;
            return match bias {
                Some(bias) => y.add(bias),
                None => Ok(y),
            };
        }
        let across = weight.t()?;
        if x.ndim() == 2 {
            return match bias {
                Some(bias) => bias.addmm(x, &across),
                None => x.mm(&across),
            };
        }
        if x.ndim() < 2 {
            let y = x.matmul(&across)?;
            return match bias {
                Some(bias) => y.add(bias),
                None => Ok(y),
            };
        }
        // One product with a matrix of all rows instead of one product for each batch. The batch dims get
        // their names back at the end.
        let last = x.ndim() - 1;
        if namegrad_core::names::is_strict() && x.name(last) != weight.name(1) {
            return x.matmul(&across); // for its error
        }
        let names = Names::new("linear", x.names().iter(last + 1).take(last).chain([weight.name(0)]))
            .map_err(|error| error.with_operands([x.shape(), weight.shape()]))?;
        let count: usize = x.sizes()[..last].iter().product(); // rows may have no elements
        let rows = x.rename(None)?.reshape([count, x.sizes()[last]])?;
        let mut sizes = Sizes::from_slice(x.sizes());
        sizes[last] = weight.sizes()[0];
        linear(&rows, &weight.rename(None)?, bias.map(|bias| bias.rename(None)).transpose()?.as_ref())?
            .reshape(sizes)?
            .rename(Some(names))
    }
}

/// [`bilinear`].
mod two {
    use super::*;
    use namegrad_core::Name;

    const OP: &str = "bilinear";

    #[track_caller]
    pub(super) fn bilinear(
        x: &Tensor,
        other: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
    ) -> Result<Tensor> {
        let names = check(x, other, weight, bias)?;
        let [out, first, second] = [weight.sizes()[0], weight.sizes()[1], weight.sizes()[2]];
        let leading = &x.sizes()[..x.ndim() - 1];
        let n: usize = leading.iter().product();
        let weight = weight.rename(None)?.permute([1, 0, 2])?.reshape([first, out * second])?;
        let product = x.rename(None)?.reshape([n, first])?.mm(&weight)?.reshape([n, out, second])?;
        let other = other.rename(None)?.reshape([n, second, 1])?;
        let mut y = product.bmm(&other)?.reshape([n, out])?;
        if let Some(bias) = bias {
            y = y.add(&bias.rename(None)?)?;
        }
        y.reshape([leading, &[out]].concat())?.rename(names.is_named().then_some(names))
    }

    /// Checks sizes, dtypes and names, and returns the names of the result.
    #[track_caller]
    fn check(x: &Tensor, other: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Names> {
        let operands =
            || [x.shape(), other.shape(), weight.shape()].into_iter().chain(bias.map(Tensor::shape));
        let caller = Location::caller();
        let fail = |kind, message: String| -> Result<Names> {
            Err(Error::new(kind, OP, message).with_operands(operands()).at(caller))
        };
        let [out, first, second] = *weight.sizes() else {
            let message = format!("expected a weight [out, in1, in2], got {} dims", weight.ndim());
            return fail(ErrorKind::Shape, message);
        };
        for (which, input, size) in [("first", x, first), ("second", other, second)] {
            if input.sizes().last() != Some(&size) {
                let message = format!(
                    "the weight needs {size} elements in the last dim of the {which} input, whose sizes are {:?}",
                    input.sizes()
                );
                return fail(ErrorKind::Shape, message);
            }
        }
        let (leading, of_other) = (&x.sizes()[..x.ndim() - 1], &other.sizes()[..other.ndim() - 1]);
        if leading != of_other {
            let message = format!("the dims before the last differ: {leading:?} and {of_other:?}");
            return fail(ErrorKind::Shape, message);
        }
        if x.dtype() == DType::Bool {
            let message = "not implemented for bool; it takes the integers and floats".into();
            return fail(ErrorKind::DType, message).map_err(|error| error.with_repair("x.to(DType::F32)?"));
        }
        for (which, input) in [("other", Some(other)), ("weight", Some(weight)), ("bias", bias)] {
            let Some(input) = input.filter(|input| input.dtype() != x.dtype()) else { continue };
            let message = format!("x is {}, and the {which} is {}", x.dtype(), input.dtype());
            return fail(ErrorKind::DType, message)
                .map_err(|error| error.with_repair(format!("{which}.to(DType::{:?})?", x.dtype())));
        }
        if let Some(bias) = bias.filter(|bias| *bias.sizes() != [out]) {
            let message = format!("the bias must have sizes [{out}], got {:?}", bias.sizes());
            return fail(ErrorKind::Shape, message);
        }
        let mut names: Vec<Option<Name>> = Vec::with_capacity(x.ndim());
        for dim in 0..leading.len() {
            match (x.name(dim), other.name(dim)) {
                (Some(own), Some(its)) if own != its => {
                    let message = format!("dim {dim} is '{own}' in one input and '{its}' in the other");
                    return fail(ErrorKind::NameMismatch, message);
                }
                (own, its) => names.push(own.or(its)),
            }
        }
        names.push(weight.name(0));
        Names::new(OP, names).map_err(|error| error.with_operands(operands()))
    }
}

/// Checks sizes and dtypes, so that errors are about the inputs of `linear` and not about the ops that it
/// calls.
#[track_caller]
fn check(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<()> {
    let operands = || [x.shape(), weight.shape()].into_iter().chain(bias.map(Tensor::shape));
    let caller = Location::caller();
    let fail =
        |kind, message: String| Error::new(kind, "linear", message).with_operands(operands()).at(caller);
    let (out, input) = match *weight.sizes() {
        [input] => (None, input),
        [out, input] => (Some(out), input),
        _ => {
            let message = format!("expected a weight [out, in] or [in], got {} dims", weight.ndim());
            return Err(fail(ErrorKind::Shape, message));
        }
    };
    let of_x = x.sizes().last().copied();
    if of_x != Some(input) {
        let of_x = of_x.map_or("x has no dims".into(), |size| format!("that of x has {size}"));
        let message = format!("the last dim of the weight has {input} elements, and {of_x}");
        return Err(fail(ErrorKind::Shape, message));
    }
    let dtype = weight.dtype();
    if x.dtype() != dtype {
        let message = format!("x is {}, and the weight is {dtype}", x.dtype());
        return Err(fail(ErrorKind::DType, message).with_repair(format!("x.to(DType::{dtype:?})?")));
    }
    let name = weight.name(0).filter(|_| out.is_some());
    if let Some(name) = name
        && x.names().position(name).is_some_and(|taken| taken + 1 < x.ndim())
    {
        let message = format!("the result would have the dim '{name}' of the weight, which x already has");
        let repair = format!("weight.rename([(\"{name}\", \"{name}_out\")])?");
        return Err(fail(ErrorKind::DuplicateName, message).with_repair(repair));
    }
    let Some(bias) = bias else { return Ok(()) };
    if bias.dtype() != dtype {
        let message = format!("the bias is {}, and x and the weight are {dtype}", bias.dtype());
        return Err(fail(ErrorKind::DType, message).with_repair(format!("bias.to(DType::{dtype:?})?")));
    }
    if bias.numel() != 1 && bias.sizes() != out.as_slice() {
        let want = out.map_or("one number".into(), |out| format!("sizes [{out}]"));
        let message = format!("the bias must have {want}, got {:?}", bias.sizes());
        return Err(fail(ErrorKind::Shape, message));
    }
    match (bias.sizes().first().and_then(|_| bias.name(0)), name) {
        (Some(own), Some(name)) if own != name => {
            let message = format!("the dim of the bias is '{own}', and that of the weight is '{name}'");
            Err(fail(ErrorKind::NameMismatch, message).with_repair(format!("bias.rename([\"{name}\"])?")))
        }
        _ => Ok(()),
    }
}
