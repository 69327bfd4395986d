//! Derivatives of users' ops with names: the gradient of the output has its names, and that of an input is
//! checked and put into the order of the input by name.

use super::{Joined, Op, Outputs};
use crate::tape::{Cx, Origin};
use crate::tensor::Tensor;
use namegrad_core::{Error, ErrorKind, Name, Names, Result};

/// The names of the outputs and of an input, with which a gradient of the input is checked.
struct Fit {
    outputs: Vec<Names>,
    input: Names,
    ndim: usize,
}

impl Fit {
    fn new(outputs: &[Names], input: &Tensor) -> Fit {
        Fit { outputs: outputs.to_vec(), input: input.names().clone(), ndim: input.ndim() }
    }

    /// The gradient in the order of the input, summed over the dims that only an output has.
    fn apply(&self, gradient: Tensor, origin: Origin) -> Result<Tensor> {
        let wanted: Vec<Option<Name>> = crate::list(self.input.iter(self.ndim));
        if wanted.is_empty() || wanted.contains(&None) {
            return self.by_position(gradient, &wanted, origin);
        }
        let wrong = |what: String| {
            let message = format!("returned a gradient {what}; the input has {}", self.input.list(self.ndim));
            let error = Error::new(ErrorKind::Autograd, origin.op, message).at(origin.at);
            Err(error.with_operands([gradient.shape()]))
        };
        if let Some(name) = wanted.iter().flatten().find(|name| gradient.names().position(**name).is_none()) {
            return wrong(format!("without the dim '{name}'"));
        }
        let mut over = Vec::new();
        for dim in 0..gradient.ndim() {
            match gradient.name(dim) {
                name if wanted.contains(&name) && name.is_some() => {}
                Some(name) if self.outputs.iter().any(|own| own.position(name).is_some()) => over.push(dim),
                Some(name) => return wrong(format!("with the dim '{name}'")),
                None => return wrong("with an unnamed dim".into()),
            }
        }
        let gradient = if over.is_empty() { gradient } else { gradient.sum(over)? };
        let mut order = Vec::with_capacity(wanted.len());
        for name in wanted.iter().flatten() {
            order.push(gradient.names().position(*name).unwrap_or(0)); // found above
        }
        match order.is_sorted() {
            true => Ok(gradient),
            false => gradient.permute(order),
        }
    }

    /// The gradient of an input with unnamed dims, whose dims are meant by position: names must agree.
    fn by_position(&self, gradient: Tensor, wanted: &[Option<Name>], origin: Origin) -> Result<Tensor> {
        let apart = (wanted.iter().rev().zip((0..gradient.ndim()).rev()))
            .find_map(|(own, dim)| own.zip(gradient.name(dim)).filter(|(own, other)| own != other));
        let Some((own, other)) = apart else { return Ok(gradient) };
        let message = format!("returned a gradient with the dim '{other}' where the input has '{own}'");
        let error = Error::new(ErrorKind::Autograd, origin.op, message).at(origin.at);
        Err(error.with_operands([gradient.shape()]))
    }
}

impl Op {
    /// Like [`input`](Self::input), with names: `g` has those of the output, and the gradient that `gradient`
    /// returns has those of `x`, in any order. Dims of the output that `x` does not have, because it was
    /// broadcast along them, are summed over. Save tensors with
    /// [`Kept::named_input`](crate::Kept::named_input) and [`Kept::named_output`](crate::Kept::named_output).
    ///
    /// So a derivative refers to dims by name and works in every order of dims, and a gradient with the wrong
    /// dims is an error even if the sizes fit.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::autograd::{Kept, Op};
    ///
    /// /// `x` times a scale for each channel, in any order of dims.
    /// fn scaled(x: &Tensor, scale: &Tensor) -> Result<Tensor> {
    ///     let y = x.value().mul(scale.value().align_as(x.value())?)?;
    ///     let (kept_x, kept_scale) = (Kept::named_input(x), Kept::named_input(scale));
    ///     Ok(Op::new("scaled", y)
    ///         .input_named(x, move |g, cx| g.mul(kept_scale.get(cx).align_as(g)?))
    ///         .input_named(scale, move |g, cx| g.mul(kept_x.get(cx))) // summed over all dims but C
    ///         .output())
    /// }
    ///
    /// let x = Tensor::ones([("N", 2), ("C", 3), ("time", 4)])?.requiring_grad()?;
    /// let scale = Tensor::new([1.0, 2.0, 3.0])?.refine_names(["C"])?.requiring_grad()?;
    /// scaled(&x, &scale)?.sum(..)?.backward()?;
    /// assert_eq!(scale.grad().unwrap().to_vec::<f32>()?, [8.0, 8.0, 8.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// In the backward pass, [`ErrorKind::Autograd`] if the gradient lacks a dim of `x`, or has one that
    /// neither `x` nor the output has. The error names the op and the line that called [`new`](Self::new).
    /// Dims of an `x` without names are meant by position.
    pub fn input_named(
        self,
        x: &Tensor,
        gradient: impl Fn(&Tensor, &Cx<'_>) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Op {
        if x.tracked().is_none() {
            return self.input(x, gradient);
        }
        let (names, origin) = (self.value.names().clone(), self.origin);
        let fit = Fit::new(std::slice::from_ref(&names), x);
        self.input(x, move |g, cx| fit.apply(gradient(&g.clone().named(names.clone()), cx)?, origin))
    }

    /// Like [`inputs`](Self::inputs), with names, as in [`input_named`](Self::input_named).
    ///
    /// # Errors
    /// Those of [`inputs`](Self::inputs) and [`input_named`](Self::input_named).
    pub fn inputs_named(
        self,
        inputs: &[Option<&Tensor>],
        gradients: impl Fn(&Tensor, &Cx<'_>) -> Result<Vec<Option<Tensor>>> + Send + Sync + 'static,
    ) -> Joined {
        let (names, origin) = (self.value.names().clone(), self.origin);
        let fits = all(inputs, std::slice::from_ref(&names));
        self.inputs(inputs, move |g, cx| {
            apply_all(&fits, gradients(&g.clone().named(names.clone()), cx)?, origin)
        })
    }
}

impl Outputs {
    /// Like [`inputs`](Self::inputs), with names, as in [`Op::input_named`]. The gradient of an output that
    /// nothing uses is zeros.
    ///
    /// # Errors
    /// Those of [`inputs`](Self::inputs) and [`Op::input_named`].
    pub fn inputs_named(
        self,
        inputs: &[Option<&Tensor>],
        gradients: impl Fn(&[Tensor], &Cx<'_>) -> Result<Vec<Option<Tensor>>> + Send + Sync + 'static,
    ) -> Vec<Tensor> {
        let names: Vec<Names> = crate::list(self.values.iter().map(|value| value.names().clone()));
        let (fits, origin) = (all(inputs, &names), self.origin);
        self.inputs(inputs, move |_, cx| {
            let mut named = Vec::with_capacity(names.len());
            for (number, names) in names.iter().enumerate() {
                named.push(cx.output_gradient(number)?.named(names.clone()));
            }
            apply_all(&fits, gradients(&named, cx)?, origin)
        })
    }
}

fn all(inputs: &[Option<&Tensor>], outputs: &[Names]) -> Vec<Option<Fit>> {
    crate::list(inputs.iter().map(|x| x.map(|x| Fit::new(outputs, x))))
}

/// The gradients of all inputs that have one. Too few or too many of them are an error of the tape.
fn apply_all(
    fits: &[Option<Fit>],
    gradients: Vec<Option<Tensor>>,
    origin: Origin,
) -> Result<Vec<Option<Tensor>>> {
    let mut fitted = Vec::with_capacity(gradients.len());
    for (number, gradient) in gradients.into_iter().enumerate() {
        fitted.push(match (gradient, fits.get(number)) {
            (Some(gradient), Some(Some(fit))) => Some(fit.apply(gradient, origin)?),
            (gradient, _) => gradient,
        });
    }
    Ok(fitted)
}
