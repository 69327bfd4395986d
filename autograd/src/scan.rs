//! Functions applied along a dim, step by step, with a state that each step passes on.

use crate::places;
use crate::tape::no_grad;
use crate::tensor::Tensor;
use namegrad_core::options::StackOptions;
use namegrad_core::random::Generator;
use namegrad_core::{Argument, Dim, Error, ErrorKind, Name, NamedTensor, Result, Shape, called};
use namegrad_macros::Setters;

/// One tensor or several: a [`Tensor`], or a tuple, an array or a `Vec` of such, as inputs, states and outputs
/// of [`scan`] are. `()` is none.
pub trait Tensors {
    /// Appends the tensors to a list.
    #[doc(hidden)]
    fn append_to(&self, list: &mut Vec<Tensor>);

    /// The same structure with the next tensors of a list.
    #[doc(hidden)]
    fn with_next(&self, list: &mut std::vec::IntoIter<Tensor>) -> Self;
}

impl Tensors for Tensor {
    fn append_to(&self, list: &mut Vec<Tensor>) {
        list.push(self.clone());
    }
    fn with_next(&self, list: &mut std::vec::IntoIter<Tensor>) -> Tensor {
        list.next().unwrap_or_else(|| self.clone())
    }
}

impl<T: Tensors> Tensors for Vec<T> {
    fn append_to(&self, list: &mut Vec<Tensor>) {
        self.iter().for_each(|part| part.append_to(list));
    }
    fn with_next(&self, list: &mut std::vec::IntoIter<Tensor>) -> Vec<T> {
        crate::list(self.iter().map(|part| part.with_next(list)))
    }
}

impl<T: Tensors, const K: usize> Tensors for [T; K] {
    fn append_to(&self, list: &mut Vec<Tensor>) {
        self.iter().for_each(|part| part.append_to(list));
    }
    fn with_next(&self, list: &mut std::vec::IntoIter<Tensor>) -> [T; K] {
        std::array::from_fn(|at| self[at].with_next(list))
    }
}

impl Tensors for () {
    fn append_to(&self, _: &mut Vec<Tensor>) {}
    fn with_next(&self, _: &mut std::vec::IntoIter<Tensor>) {}
}

impl<A: Tensors, B: Tensors> Tensors for (A, B) {
    fn append_to(&self, list: &mut Vec<Tensor>) {
        self.0.append_to(list);
        self.1.append_to(list);
    }
    fn with_next(&self, list: &mut std::vec::IntoIter<Tensor>) -> (A, B) {
        (self.0.with_next(list), self.1.with_next(list))
    }
}

impl<A: Tensors, B: Tensors, C: Tensors> Tensors for (A, B, C) {
    fn append_to(&self, list: &mut Vec<Tensor>) {
        self.0.append_to(list);
        self.1.append_to(list);
        self.2.append_to(list);
    }
    fn with_next(&self, list: &mut std::vec::IntoIter<Tensor>) -> (A, B, C) {
        (self.0.with_next(list), self.1.with_next(list), self.2.with_next(list))
    }
}

/// The options of [`scan`] and [`fold`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Setters)]
pub struct ScanOptions {
    /// Whether to go from the last step to the first. Outputs keep the places of their inputs.
    pub reverse: bool,
}

/// Calls `step` with a state and the slices of `xs` at each position along `dim`, one after another. Each call
/// gives the next state and outputs. The result is the last state and all outputs, stacked along `dim`.
///
/// `xs`, the state and the outputs are [`Tensors`]: a tensor, or a tuple, an array or a `Vec` of tensors. For a
/// single input, [`Tensor::scan`] is the same as a method. Gradients flow through all steps, to `xs`, `init`
/// and everything that `step` uses, such as the parameters of a layer.
///
/// - A slice has the dims of its input without `dim`.
/// - The state has the same names, sizes and dtypes after each step, those of `init`, and so have the outputs.
/// - `dim` has its name in the stacked outputs, and the position that it has in the first input. An output with
///   fewer dims has it last.
/// - If `dim` has size 0, only a call of `step` can tell the shapes of the outputs. It is called once, with
///   zeros, without recording and with random numbers of its own, and buffers that it changes have their values
///   back afterwards. [`fold`] has no outputs, and calls nothing.
///
/// Backward needs the values that all steps saved. With [`checkpoint`](crate::checkpoint()) in `step`, it needs
/// the states alone and computes each step again:
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::autograd::{checkpoint, scan};
/// // An average that forgets, masked: padding leaves the state as it is.
/// let x = Tensor::new([[1.0, 1.0], [3.0, 9.0]])?.refine_names(["time", "N"])?.requiring_grad()?;
/// let mask = Tensor::new([[true, true], [true, false]])?.refine_names(["time", "N"])?;
/// let init = Tensor::zeros([("N", 2)])?;
/// let (last, all) = scan(&(x.clone(), mask), "time", init, |state, (x, mask)| {
///     let next = checkpoint(|t| t[0].lerp(&t[1], 0.5), &[&state, &x])?;
///     let state = mask.choose(&next, &state)?;
///     Ok((state.clone(), state))
/// })?;
/// assert_eq!(all.shape().to_string(), "[time=2, N=2]");
/// assert_eq!(last.to_vec::<f32>()?, [1.75, 0.5]);
/// last.sum(..)?.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [0.25, 0.5, 0.5, 0.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// The errors of `step`. [`ErrorKind::Shape`], [`ErrorKind::NameMismatch`] or [`ErrorKind::DType`] if the state
/// or the outputs change from one step to the next, [`ErrorKind::Shape`] if the inputs have different sizes
/// along `dim`, [`ErrorKind::DuplicateName`] if an output has the name of `dim`, [`ErrorKind::Value`] without
/// inputs, [`ErrorKind::NameNotFound`], [`ErrorKind::DimRange`].
#[track_caller]
pub fn scan<X: Tensors, C: Tensors, Y: Tensors>(
    xs: &X,
    dim: impl Into<Dim>,
    init: C,
    step: impl FnMut(C, X) -> Result<(C, Y)>,
) -> Result<(C, Y)> {
    scan_with(xs, dim, init, ScanOptions::new(), step)
}

/// [`scan`] with options.
///
/// # Errors
/// Same as [`scan`].
#[track_caller]
pub fn scan_with<X: Tensors, C: Tensors, Y: Tensors>(
    xs: &X,
    dim: impl Into<Dim>,
    init: C,
    options: ScanOptions,
    mut step: impl FnMut(C, X) -> Result<(C, Y)>,
) -> Result<(C, Y)> {
    let mut form: Option<Y> = None;
    let mut run = |state: Vec<Tensor>, x: Vec<Tensor>| {
        let (state, y) = step(init.with_next(&mut state.into_iter()), xs.with_next(&mut x.into_iter()))?;
        let lists = (list(&state), list(&y));
        form.get_or_insert(y);
        Ok(lists)
    };
    let call = Call { op: "scan", xs: list(xs), dim: dim.into(), options, stacks: true };
    let (state, outputs) = call.run(list(&init), &mut run)?;
    let form = form.expect("`run` has called it");
    Ok((init.with_next(&mut state.into_iter()), form.with_next(&mut outputs.into_iter())))
}

/// The last state of a [`scan`] without outputs: `step(.. step(step(init, x₀), x₁) .., xₙ)`. Without any
/// step, it is `init`.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::autograd::fold;
/// // A polynomial in x by Horner's rule, from its coefficients.
/// let coefficients = Tensor::new([1.0, 2.0, 3.0])?.refine_names(["power"])?;
/// let x = Tensor::new([0.0, 10.0])?.refine_names(["N"])?;
/// let zero = x.zeros_like()?;
/// let y = fold(&coefficients, "power", zero, |sum, c| sum.mul(&x).add(&c))?;
/// assert_eq!(y.to_vec::<f32>()?, [3.0, 123.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Same as [`scan`].
#[track_caller]
pub fn fold<X: Tensors, C: Tensors>(
    xs: &X,
    dim: impl Into<Dim>,
    init: C,
    step: impl FnMut(C, X) -> Result<C>,
) -> Result<C> {
    fold_with(xs, dim, init, ScanOptions::new(), step)
}

/// [`fold`] with options.
///
/// # Errors
/// Same as [`fold`].
#[track_caller]
pub fn fold_with<X: Tensors, C: Tensors>(
    xs: &X,
    dim: impl Into<Dim>,
    init: C,
    options: ScanOptions,
    mut step: impl FnMut(C, X) -> Result<C>,
) -> Result<C> {
    let mut run = |state: Vec<Tensor>, x: Vec<Tensor>| {
        let state = step(init.with_next(&mut state.into_iter()), xs.with_next(&mut x.into_iter()))?;
        Ok((list(&state), Vec::new()))
    };
    let call = Call { op: "fold", xs: list(xs), dim: dim.into(), options, stacks: false };
    let (state, _) = call.run(list(&init), &mut run)?;
    Ok(init.with_next(&mut state.into_iter()))
}

/// # Functions along a dim
impl Tensor {
    /// Calls `step` with a state and the slice at each position along `dim`, one after another: [`scan`] of
    /// this tensor. Returns the last state and the outputs, stacked along `dim` at its position in this
    /// tensor.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 2.0, 3.0]])?.refine_names(["N", "time"])?;
    /// let (last, sums) = x.scan("time", Tensor::zeros(("N", 1))?, |sum, x| {
    ///     let sum = sum.add(&x)?;
    ///     Ok((sum.clone(), sum))
    /// })?;
    /// assert_eq!(last.to_vec::<f32>()?, [6.0]);
    /// assert_eq!((sums.shape(), sums.to_vec::<f32>()?), (x.shape(), vec![1.0, 3.0, 6.0]));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`scan`].
    #[track_caller]
    pub fn scan<C: Tensors, Y: Tensors>(
        &self,
        dim: impl Into<Dim>,
        init: C,
        step: impl FnMut(C, Tensor) -> Result<(C, Y)>,
    ) -> Result<(C, Y)> {
        scan(self, dim, init, step)
    }

    /// [`scan`](Self::scan) with options.
    ///
    /// # Errors
    /// Same as [`scan`].
    #[track_caller]
    pub fn scan_with<C: Tensors, Y: Tensors>(
        &self,
        dim: impl Into<Dim>,
        init: C,
        options: ScanOptions,
        step: impl FnMut(C, Tensor) -> Result<(C, Y)>,
    ) -> Result<(C, Y)> {
        scan_with(self, dim, init, options, step)
    }

    /// The last state of a [`scan`](Self::scan) without outputs: [`fold`] of this tensor.
    ///
    /// # Errors
    /// Same as [`scan`].
    #[track_caller]
    pub fn fold<C: Tensors>(
        &self,
        dim: impl Into<Dim>,
        init: C,
        step: impl FnMut(C, Tensor) -> Result<C>,
    ) -> Result<C> {
        fold(self, dim, init, step)
    }

    /// [`fold`](Self::fold) with options.
    ///
    /// # Errors
    /// Same as [`scan`].
    #[track_caller]
    pub fn fold_with<C: Tensors>(
        &self,
        dim: impl Into<Dim>,
        init: C,
        options: ScanOptions,
        step: impl FnMut(C, Tensor) -> Result<C>,
    ) -> Result<C> {
        fold_with(self, dim, init, options, step)
    }
}

pub(crate) fn list(tensors: &impl Tensors) -> Vec<Tensor> {
    let mut list = Vec::new();
    tensors.append_to(&mut list);
    list
}

/// A step on lists: from the state and the slices to the next state and the outputs.
type Step<'a> = dyn FnMut(Vec<Tensor>, Vec<Tensor>) -> Result<(Vec<Tensor>, Vec<Tensor>)> + 'a;

/// A scan or a fold, on lists of tensors.
struct Call {
    op: &'static str,
    xs: Vec<Tensor>,
    dim: Dim,
    options: ScanOptions,
    /// Whether steps have outputs.
    stacks: bool,
}

impl Call {
    #[track_caller]
    fn run(self, init: Vec<Tensor>, step: &mut Step<'_>) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
        let Some(first) = self.xs.first() else {
            return Err(Error::new(
                ErrorKind::Value,
                self.op,
                "there is no tensor whose slices are the steps",
            ));
        };
        let mut dims = Vec::with_capacity(self.xs.len());
        for x in &self.xs {
            dims.push(self.dim_of(x)?);
        }
        let (place, count) = (dims[0], first.sizes()[dims[0]]);
        if let Some((x, dim)) = self.xs.iter().zip(&dims).find(|(x, dim)| x.sizes()[**dim] != count) {
            let size = x.sizes()[*dim];
            let message =
                format!("the inputs have {count} and {size} steps along {}", called(first.value(), place));
            let shapes = self.xs.iter().map(|x| x.shape());
            return Err(Error::new(ErrorKind::Shape, self.op, message).with_operands(shapes));
        }
        let name = first.name(place);
        if count == 0 {
            return self.without_steps(&dims, init, step, name);
        }
        let mut slices = Vec::with_capacity(self.xs.len());
        for (x, dim) in self.xs.iter().zip(&dims) {
            slices.push(x.unbind(*dim)?);
        }
        let mut state = init;
        let mut outputs: Vec<Vec<Tensor>> = Vec::with_capacity(count);
        for at in 0..count {
            let at = if self.options.reverse { count - 1 - at } else { at };
            let (next, y) = step(state.clone(), crate::list(slices.iter().map(|parts| parts[at].clone())))?;
            self.check_same("state", at, &state, &next)?;
            match outputs.first() {
                Some(first) => self.check_same("output", at, first, &y)?,
                None => self.check_names(&y, name)?,
            }
            state = next;
            outputs.push(y);
        }
        if self.options.reverse {
            outputs.reverse();
        }
        let mut stacked = Vec::new();
        for k in 0..outputs[0].len() {
            let each: Vec<&Tensor> = crate::list(outputs.iter().map(|y| &y[k]));
            let place = place.min(each[0].ndim());
            let stack = match name {
                Some(name) => Tensor::stack_with(each, place, StackOptions::new().name(name)),
                None => Tensor::stack(each, place),
            };
            stacked.push(stack.map_err(|error| error.of(self.op))?);
        }
        Ok((state, stacked))
    }

    #[track_caller]
    fn dim_of(&self, x: &Tensor) -> Result<usize> {
        if x.ndim() == 0 {
            let message = "a 0-d tensor has no dim whose slices are the steps";
            return Err(Error::about(&[x.value()], ErrorKind::Shape, self.op, message));
        }
        self.dim.look_up(self.op, &[x.value()])
    }

    /// The state as it was, and empty outputs in the shapes that a step on zeros gives.
    #[track_caller]
    fn without_steps(
        &self,
        dims: &[usize],
        init: Vec<Tensor>,
        step: &mut Step<'_>,
        name: Option<Name>,
    ) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
        let mut outputs = Vec::new();
        if !self.stacks {
            return Ok((init, outputs));
        }
        let empty = |shape: Vec<(Option<Name>, usize)>, x: &Tensor| {
            NamedTensor::zeros(Shape::new(shape)?)?.to(x.dtype()).map(Tensor::constant)
        };
        let dims_of = |x: &Tensor| crate::list::<_, Vec<_>>((0..x.ndim()).map(|d| (x.name(d), x.sizes()[d])));
        let mut slices = Vec::with_capacity(dims.len());
        for (x, dim) in self.xs.iter().zip(dims) {
            let mut shape = dims_of(x);
            shape.remove(*dim);
            slices.push(empty(shape, x)?);
        }
        // Its random numbers are its own, so that those of the program do not depend on it.
        let state = crate::list(init.iter().map(Tensor::detach));
        let rehearse = || places::rehearsed(|| step(state, slices));
        let (next, y) = no_grad(|| Generator::from_seed(0).scope(rehearse))?;
        self.check_same("state", 0, &init, &next)?;
        self.check_names(&y, name)?;
        for y in y {
            let mut shape = dims_of(&y);
            shape.insert(dims[0].min(y.ndim()), (name, 0));
            outputs.push(empty(shape, &y)?);
        }
        Ok((init, outputs))
    }

    /// An error if an output has the name of the dim that it is stacked along.
    #[track_caller]
    fn check_names(&self, outputs: &[Tensor], name: Option<Name>) -> Result<()> {
        let Some(name) = name else { return Ok(()) };
        match outputs.iter().find(|y| y.names().position(name).is_some()) {
            None => Ok(()),
            Some(y) => {
                let message =
                    format!("an output already has the dim '{name}', along which outputs are stacked");
                let error = Error::about(&[y.value()], ErrorKind::DuplicateName, self.op, message);
                Err(error.with_repair(format!("y.rename([(\"{name}\", \"{name}_\")])? in the step")))
            }
        }
    }

    /// An error unless all tensors have the names, sizes and dtypes of those before.
    #[track_caller]
    fn check_same(&self, what: &str, step: usize, before: &[Tensor], after: &[Tensor]) -> Result<()> {
        if before.len() != after.len() {
            let (before, after) = (before.len(), after.len());
            let message = format!("step {step} gives {after} tensors as its {what}, and it had {before}");
            return Err(Error::new(ErrorKind::Value, self.op, message));
        }
        for (a, b) in before.iter().zip(after) {
            let kind = if a.names() != b.names() {
                ErrorKind::NameMismatch
            } else if a.sizes() != b.sizes() {
                ErrorKind::Shape
            } else if a.dtype() != b.dtype() {
                ErrorKind::DType
            } else {
                continue;
            };
            return Err(self.changed(kind, what, step, [a, b]));
        }
        Ok(())
    }

    #[cold]
    #[track_caller]
    fn changed(&self, kind: ErrorKind, what: &str, step: usize, [a, b]: [&Tensor; 2]) -> Error {
        let show = |x: &Tensor| match kind {
            ErrorKind::DType => format!("{} {}", x.shape(), x.dtype()),
            _ => format!("{}", x.shape()),
        };
        let since = if what == "state" { "before it" } else { "at the first step" };
        let message = format!(
            "the {what} must have the same names, sizes and dtype at each step; step {step} gives {}, and it was {} {since}",
            show(b),
            show(a)
        );
        let error = Error::about(&[a.value(), b.value()], kind, self.op, message);
        // The names as they are written, if all dims have one.
        let all = |x: &Tensor| {
            let names: Option<Vec<_>> = crate::list(x.names().iter(x.ndim()));
            names.map(|names| crate::list::<_, Vec<_>>(names.iter().map(|name| format!("\"{name}\""))))
        };
        // No name is in a list twice.
        let are_same =
            |a: &[String], b: &[String]| a.len() == b.len() && a.iter().all(|name| b.contains(name));
        let [before, after] = [all(a), all(b)];
        match (kind, before, after) {
            (ErrorKind::DType, ..)
                if what == "state" && b.dtype().is_floating_point() && !a.dtype().is_floating_point() =>
            {
                error.with_repair(format!("init.to(DType::{:?})? before it", b.dtype()))
            }
            (ErrorKind::DType, ..) => {
                error.with_repair(format!("{what}.to(DType::{:?})? in the step", a.dtype()))
            }
            (ErrorKind::NameMismatch, Some(before), Some(after)) if are_same(&before, &after) => {
                let names = crate::joined(&before, ", ");
                error.with_repair(format!("{what}.align_to([{names}])? in the step"))
            }
            (ErrorKind::NameMismatch, None, Some(names))
                if what == "state" && !a.has_names() && a.sizes() == b.sizes() =>
            {
                error.with_repair(format!("init.refine_names([{}])? before it", crate::joined(&names, ", ")))
            }
            _ => error,
        }
    }
}
