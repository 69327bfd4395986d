//! The affine map.

use super::*;
use namegrad_core::Sizes;

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
    linear (x, weight, bias?) on floats integers names contracts => {
        check_linear(x, weight, bias)?;
        if x.ndim() == 2 && weight.ndim() == 2 {
            let across = weight.t()?;
            return match bias {
                Some(bias) => bias.addmm(x, &across),
                None => x.mm(&across),
            };
        }
        if x.ndim() < 2 || weight.ndim() == 1 {
            let y = x.matmul(weight.t()?); // a vector is not transposed
            return match bias {
                Some(bias) => y.add(bias),
                None => y,
            };
        }
        // One product with a matrix of all rows instead of one product for each batch. The batch dims get
        // their names back at the end.
        let last = x.ndim() - 1;
        let names = names_and(x, last, weight.name(0))?;
        let count = numel(&x.sizes()[..last]); // rows may have no elements
        let rows = x.rename(None).reshape([count, x.sizes()[last]])?;
        let mut sizes = Sizes::from_slice(x.sizes());
        sizes[last] = weight.sizes()[0];
        let bias = bias.map(|bias| bias.rename(None)).transpose()?;
        linear(&rows, &weight.rename(None)?, bias.as_ref()).reshape(sizes).rename(Some(names))
    }
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
    bilinear (x, other, weight, bias?) on floats integers names contracts => {
        check_bilinear([x, other, weight], bias)?;
        let [out, first, second] = [0, 1, 2].map(|dim| weight.sizes()[dim]);
        let leading = &x.sizes()[..x.ndim() - 1];
        let mut names: Vec<Option<Name>> = crate::list((0..leading.len()).map(|dim| x.name(dim).or(other.name(dim))));
        names.push(weight.name(0));
        let n = numel(leading);
        let weight = weight.rename(None).permute([1, 0, 2]).reshape([first, out * second])?;
        let product = x.rename(None).reshape([n, first]).mm(&weight).reshape([n, out, second])?;
        let other = other.rename(None).reshape([n, second, 1])?;
        let mut y = product.bmm(&other).reshape([n, out])?;
        if let Some(bias) = bias {
            y = y.add(&bias.rename(None)?)?;
        }
        with_names(y.reshape([leading, &[out]].concat())?, &Names::new("", names)?)
    }
}

/// Checks that the last dim of `x`, called `what`, and the dim of the weight that it is contracted with have
/// the same name, if both have one.
pub(super) fn check_contracted((what, x): Called<'_>, (to, weight): Called<'_>, dim: usize) -> Result<()> {
    let Some(last) = x.ndim().checked_sub(1) else { return Ok(()) };
    let (Some(own), Some(wanted)) = (x.name(last), weight.name(dim)) else {
        let check = || x.value().check_contracted("", [what, to], weight.value(), [last, dim]);
        return if is_strict() { check() } else { Ok(()) };
    };
    if own == wanted {
        return Ok(());
    }
    let fits = |dim_of_x: usize| x.sizes()[dim_of_x] == weight.sizes()[dim];
    let repair = match x.names().position(wanted) {
        Some(at) if fits(at) => format!("{what}.movedim(\"{wanted}\", -1)?"),
        None if fits(last) => renaming(what, own, &wanted),
        _ => return Ok(()), // for the error about sizes
    };
    let message =
        format!("the dim '{own}' of {what} would be contracted with the dim '{wanted}' of the weight");
    Err(fault(ErrorKind::NameMismatch, message).with_repair(repair))
}

/// Checks the arguments of [`linear`].
fn check_linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<()> {
    ensure_dims((1..=2).contains(&weight.ndim()), "a weight [out, in] or [in]", weight)?;
    check_contracted(("x", x), ("weight", weight), weight.ndim() - 1)?;
    let (out, input) = weight.sizes().split_at(weight.ndim() - 1);
    if x.sizes().last() != input.first() {
        let of_x = x.sizes().last().map_or("x has no dims".into(), |size| format!("that of x has {size}"));
        let input = input[0];
        return Err(shape_error(format_args!("the last dim of the weight has {input} elements, and {of_x}")));
    }
    let (of_x, dtype) = (x.dtype(), weight.dtype());
    ensure_dtype(of_x == dtype, format_args!("x is {of_x}, and the weight is {dtype}"), ("x", dtype))?;
    let name = weight.name(0).filter(|_| !out.is_empty());
    if let Some(name) = name
        && x.names().position(name).is_some_and(|taken| taken + 1 < x.ndim())
    {
        let message = format!("the result would have the dim '{name}' of the weight, which x already has");
        let repair = format!("weight.rename([(\"{name}\", \"{name}_out\")])?");
        return Err(fault(ErrorKind::DuplicateName, message).with_repair(repair));
    }
    let Some(bias) = bias else { return Ok(()) };
    let message = format_args!("the bias is {}, and x and the weight are {dtype}", bias.dtype());
    ensure_dtype(bias.dtype() == dtype, message, ("bias", dtype))?;
    if bias.numel() != 1 && bias.sizes() != out {
        let want = if out.is_empty() { "one number".into() } else { format!("sizes {out:?}") };
        return Err(shape_error(format_args!("the bias must have {want}, got {:?}", bias.sizes())));
    }
    match (bias.names().get(0), name) {
        (Some(_), Some(_)) => check_meeting(("bias", bias, 0), ("the weight", name)),
        _ => Ok(()),
    }
}

/// Checks the arguments of [`bilinear`].
fn check_bilinear([x, other, weight]: [&Tensor; 3], bias: Option<&Tensor>) -> Result<()> {
    ensure_dims(weight.ndim() == 3, "a weight [out, in1, in2]", weight)?;
    check_contracted(("x", x), ("weight", weight), 1)?;
    check_contracted(("other", other), ("weight", weight), 2)?;
    for (which, input, size) in [("first", x, weight.sizes()[1]), ("second", other, weight.sizes()[2])] {
        let sizes = input.sizes();
        (sizes.last() == Some(&size)).or_shape(format_args!(
            "the weight needs {size} elements in the last dim of the {which} input, whose sizes are {sizes:?}"
        ))?;
    }
    let (leading, of_other) = (&x.sizes()[..x.ndim() - 1], &other.sizes()[..other.ndim() - 1]);
    (leading == of_other).or_shape(format_args!(
        "all dims of x and other but the last must have the same sizes, got {leading:?} and {of_other:?}"
    ))?;
    ensure_dtype(x.dtype() != DType::Bool, NOT_BOOL, ("x", DType::F32))?;
    for (which, input) in [("other", Some(other)), ("weight", Some(weight)), ("bias", bias)] {
        let (own, dtype) = (input.map_or(x.dtype(), Tensor::dtype), x.dtype());
        ensure_dtype(own == dtype, format_args!("x is {dtype}, and the {which} is {own}"), (which, dtype))?;
    }
    if let Some(bias) = bias {
        ensure_sizes("a bias", bias, &weight.sizes()[..1])?;
        check_meeting(("bias", bias, 0), ("the weight", weight.name(0)))?;
    }
    check_meeting_all(("other", other), ("x", x), leading.len())
}
