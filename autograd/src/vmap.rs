//! Ops on the slices of a batch, all at once.
//!
//! In [`vmap`](crate::functional::vmap), the function sees tensors of one slice. Such a tensor has no numbers:
//! its value stands for a [`Batch`], the tensor of all slices, with the dim of the batch last. Ops run their
//! kernels on batches by a [`Rule`], and everything else, names, the tape and tangents, goes on as ever, on
//! values that stand for results.
//!
//! The dim of the batch is last and not first, so that the positions of all other dims, which the arguments of
//! an op refer to, do not change. For most ops this is all there is: a reduction, a softmax or a view of some
//! dims leaves the last one alone. Where the memory of a batch has another order, it keeps it.
//!
//! An op without a rule runs once for each slice. If `f` contains an op that is not of this library, `f` itself
//! does.

use crate::elsewhere;
use crate::plain::Input;
use crate::tape::{Save, inside, is_forward};
use crate::tensor::Tensor;
use namegrad_core::args::{Expanded, Paired, Positions};
use namegrad_core::random::Draws;
use namegrad_core::tensor::{Behind, looked_behind};
use namegrad_core::{DType, Element, Error, ErrorKind, NamedTensor, Result, Shape};
use std::any::Any;
use std::cell::RefCell;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

/// All slices of a tensor.
pub(crate) struct Batch {
    /// The call of `vmap` that it belongs to.
    level: u64,
    /// The tensor of the slices, without names; its last dim is that of the batch.
    slices: Tensor,
}

impl UnwindSafe for Batch {}
impl RefUnwindSafe for Batch {}

thread_local! {
    /// The error of a function that cannot be mapped at all.
    static REFUSED: RefCell<Option<Error>> = const { RefCell::new(None) };
    /// The ops that ran once for each slice in the last call of `vmap`.
    static LOOPED: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

/// The batch that a value stands for.
#[inline]
pub(crate) fn batch_of(x: &NamedTensor) -> Option<&Batch> {
    let behind: &dyn Any = &*x.behind()?.0;
    behind.downcast_ref()
}

/// The level of the batch that a value stands for; 0 if it is a plain value.
pub(crate) fn level_of(x: &NamedTensor) -> u64 {
    batch_of(x).map_or(0, |batch| batch.level)
}

/// The highest level of the batches among the inputs; 0 if there is none.
pub(crate) fn level_of_inputs(inputs: &[Input<'_>]) -> u64 {
    let all = inputs.iter().flat_map(|input| input.tensors());
    all.map(|x| level_of(x.value())).max().unwrap_or(0)
}

/// The slices of `x` at `level`, with the dim of the batch last.
pub(crate) fn slices_of(x: &Tensor, level: u64) -> Option<&Tensor> {
    batch_of(x.value()).filter(|batch| batch.level == level).map(|batch| &batch.slices)
}

/// A tensor of one slice, which stands for `slices`.
#[track_caller]
pub(crate) fn standing_for(slices: Tensor, level: u64, shape: Shape) -> Result<NamedTensor> {
    let dtype = slices.dtype();
    let batch = Batch { level, slices: slices.unnamed() };
    NamedTensor::standing_for("vmap", shape, dtype, Behind(Box::new(batch)))
}

/// Remembers an error that calling the function for each slice would not report.
#[cold]
fn refuse(error: Error) -> Error {
    REFUSED.with_borrow_mut(|refused| refused.get_or_insert(error).clone())
}

/// The error of the caller, which is [refused](refuse) if that is a line of the program: a call of the function
/// for each slice would hide it. In an op of the library, such a call mends it.
#[cold]
#[track_caller]
fn refuse_of_program(error: Error) -> Error {
    if crate::line::is_of_library(Location::caller()) { error } else { refuse(error) }
}

/// The tensor of all slices, if `x` stands for one, also in nested calls.
pub(crate) fn all_slices(x: &Tensor) -> Tensor {
    let mut all = x.clone();
    while let Some(batch) = batch_of(all.value()) {
        all = batch.slices.clone();
    }
    all
}

/// A value, detached from the tape with the batch that it stands for.
pub(crate) fn detached(x: &NamedTensor) -> NamedTensor {
    let Some(Batch { level, slices }) = batch_of(x) else { return x.clone() };
    // Only memory for the stand-in can be missing.
    standing_for(slices.detach(), *level, x.shape()).unwrap_or_else(|_| x.clone())
}

/// The error that was remembered since the last call.
pub(crate) fn take_refused() -> Option<Error> {
    REFUSED.take()
}

/// The ops that ran once for each slice in the last call of `vmap` on this thread. A
/// call of the function itself for each slice is called `f`.
pub(crate) fn looped() -> Vec<&'static str> {
    LOOPED.with_borrow(Vec::clone)
}

/// Remembers that something ran once for each slice.
pub(crate) fn loops(op: &'static str) {
    LOOPED.with_borrow_mut(|looped| {
        if !looped.contains(&op) {
            looped.push(op);
        }
    });
}

/// Forgets what ran once for each slice.
pub(crate) fn forget_loops() {
    LOOPED.take();
}

/// Checks that a gradient is one for all slices, if the leaf that it is added to is.
pub(crate) fn check_accumulated(leaf: u64, grad: &Tensor) -> Result<()> {
    if level_of(grad.value()) <= leaf {
        return Ok(());
    }
    let message = "inside of vmap there is a gradient for each slice, and the leaf is one for all slices";
    let error = Error::about(&[grad.value()], ErrorKind::Unsupported, "backward", message);
    Err(refuse(error.with_repair("autograd::grad(&[&loss], &[&w])?, as a result of the function")))
}

/// Checks that a tensor has numbers that a program can read.
#[track_caller]
pub(crate) fn check_readable(op: &'static str, x: &Tensor) -> Result<()> {
    if batch_of(x.value()).is_none() {
        return Ok(());
    }
    let message =
        "the numbers of a tensor inside of vmap cannot be read: it stands for all slices of the batch";
    let error = Error::about(&[x.value()], ErrorKind::Unsupported, op, message)
        .with_repair("condition.choose(&a, &b)?, where both results are computed");
    Err(refuse_of_program(error))
}

/// The numbers of a tensor that an op reads. The line of the read is here, in the library: inside of `vmap`,
/// the function is then called once for each slice.
pub(crate) fn numbers_for_op<T: Element>(x: &Tensor) -> Result<Vec<T>> {
    x.to_vec()
}

/// Checks that what is written in place fits into a tensor: all slices do not fit into one.
#[track_caller]
pub(crate) fn check_in_place(op: &'static str, written: &Tensor, made: &Tensor) -> Result<()> {
    if level_of(made.value()) <= level_of(written.value()) {
        return Ok(());
    }
    let message = "vmap: the result has a number for each slice of the batch, and the tensor that is written to is one for all slices";
    let error = Error::about(&[written.value(), made.value()], ErrorKind::Unsupported, op, message);
    let out_of_place = op.trim_end_matches('_');
    let error = error.with_repair(format!("let x = x.{out_of_place}(..)?; in place of x.{op}(..)"));
    Err(refuse_of_program(error))
}

/// How an op runs on batches.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// With the batch as a further last dim of the first input; the others are the same for all slices.
    Along,
    /// With the batch as a further last dim of all inputs, which are repeated where they have none.
    Aligned,
    /// With the batch as a further first dim.
    First,
    /// As `Along`; the new dim of the op is before that of the batch.
    NewLast,
    /// As a view or a copy with the sizes of the result.
    Reshaped,
    Permuted,
    Transposed,
    Expanded,
    Repeated,
    /// A dim is made where a call on other tensors of as many dims makes one.
    NewDim,
    Looked,
    Matmul,
    Pairs,
    Images,
    /// Once for each slice.
    Loop,
}

/// The rule of an op that is not elementwise.
#[rustfmt::skip]
fn rule_of(op: &str) -> Rule {
    match op {
        "sum" | "prod" | "mean" | "amax" | "amin" | "aminmax" | "all" | "any" | "logsumexp" | "var" | "std" | "var_mean"
        | "std_mean" | "norm" | "vector_norm" | "nansum" | "nanmean" | "count_nonzero"
        | "softmax" | "log_softmax" | "cumsum" | "cumprod" | "logcumsumexp"
        | "max" | "min" | "median" | "nanmedian" | "mode" | "kthvalue" | "sort" | "topk" | "cummax" | "cummin" | "argmax"
        | "argmin" | "argsort"
        | "transpose" | "movedim" | "squeeze" | "flip" | "contiguous" | "narrow" | "slice" | "select" | "roll" | "to"
        | "layer_norm" | "rms_norm" | "resample" => Rule::Along,
        "gather" | "scatter_add" | "scatter" | "cat" | "class_cross_entropy" => Rule::Aligned,
        "diagonal" | "unfold" => Rule::NewLast,
        "tril" | "triu" | "qr" | "avg_pool" | "max_pool" => Rule::First,
        "repeat" => Rule::Repeated,
        "view" | "reshape" | "flatten" | "unflatten" => Rule::Reshaped,
        "permute" => Rule::Permuted,
        "t" | "mt" => Rule::Transposed,
        "expand" => Rule::Expanded,
        "unsqueeze" | "stack" => Rule::NewDim,
        "index_select" => Rule::Looked,
        "mm" | "mv" | "dot" | "bmm" | "outer" | "matmul" => Rule::Matmul,
        "contract" | "tensordot" => Rule::Pairs,
        "convolution" | "convolution_input" => Rule::Images,
        _ => Rule::Loop,
    }
}

/// A call of an op on tensors that stand for others.
pub struct Call<'a> {
    /// The name of the op.
    pub op: &'static str,
    /// Whether each element of the result depends on the elements of the inputs at the same place.
    pub by_element: bool,
    /// The inputs, some of which stand for others.
    pub inputs: &'a [Input<'a>],
    /// The kernel on tensors of one slice, for the sizes, names and dtypes of the outputs; the outputs that
    /// only formulas see come last.
    pub(crate) of_slice: &'a dyn Fn() -> Result<Vec<NamedTensor>>,
    /// The op on other tensors, with the outputs that only formulas see.
    pub(crate) run: &'a dyn Fn(&[Input<'_>]) -> Result<Vec<Tensor>>,
    /// The number of outputs that are results; `None` if all are.
    pub(crate) returned: Option<usize>,
    pub(crate) args: Option<&'a dyn Save>,
}

/// The values of an op whose function records it.
#[cold]
pub(crate) fn values(
    op: &'static str,
    inputs: &[Input<'_>],
    of_slice: &dyn Fn() -> Result<Vec<NamedTensor>>,
    run: &dyn Fn(&[Input<'_>]) -> Result<Vec<Tensor>>,
) -> Result<Vec<NamedTensor>> {
    let call = Call { op, by_element: false, inputs, of_slice, returned: None, run, args: None };
    match call.outputs()? {
        Some(values) => Ok(values),
        None => of_slice(),
    }
}

/// The value of an op of one tensor that has no row: `of_slice`, and on batches `run`.
#[track_caller]
pub(crate) fn value_of(
    op: &'static str,
    x: &Tensor,
    of_slice: &dyn Fn() -> Result<NamedTensor>,
    run: &dyn Fn(&Tensor) -> Result<Tensor>,
) -> Result<NamedTensor> {
    let caller = Location::caller(); // closures do not get it
    if !is_forward() {
        return of_slice().map_err(|error| error.at(caller));
    }
    let list = || of_slice().map(|value| vec![value]);
    let mut made = values(op, &[Input::One(x)], &list, &|inputs| Ok(vec![run(inputs[0].tensors()[0])?]))
        .map_err(|error| error.at(caller))?;
    Ok(made.remove(0))
}

/// The tensors of an input at a level: the slices, or a tensor for all slices.
struct Lowered {
    tensors: Vec<(Tensor, bool)>,
    is_list: bool,
    is_optional: bool,
}

impl Call<'_> {
    /// The outputs as values that stand for batches, with those that only formulas see; `None` if no input is a
    /// batch.
    #[cold]
    pub(crate) fn outputs(&self) -> Result<Option<Vec<NamedTensor>>> {
        let level = level_of_inputs(self.inputs);
        if level == 0 {
            return elsewhere::outputs(self);
        }
        inside(level, || self.at(level)).map(Some)
    }

    /// The op on other tensors, with the outputs that only formulas see.
    ///
    /// # Errors
    /// Those of the op.
    pub fn on(&self, inputs: &[Input<'_>]) -> Result<Vec<Tensor>> {
        (self.run)(inputs)
    }

    /// The kernel on the tensors that stand for others. It computes nothing if the op makes a view.
    ///
    /// # Errors
    /// Those of the op.
    pub fn on_stand_ins(&self) -> Result<Vec<NamedTensor>> {
        looked_behind(|| (self.of_slice)()).0
    }

    /// The arguments that formulas see, as a tuple.
    pub fn args(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.args.map(Save::save)
    }

    fn at(&self, level: u64) -> Result<Vec<NamedTensor>> {
        let mut lowered = Vec::with_capacity(self.inputs.len());
        for input in self.inputs {
            let tensors = input.tensors().iter().map(|x| match slices_of(x, level) {
                Some(slices) => (slices.clone(), true),
                None => (x.unnamed(), false),
            });
            lowered.push(Lowered {
                tensors: crate::list(tensors),
                is_list: matches!(input, Input::List(_)),
                is_optional: matches!(input, Input::Optional(_)),
            });
        }
        let count = count_of(&lowered);
        let (draws, shapes) = match self.by_element && self.is_unnamed() {
            true => (Draws::default(), Vec::new()),
            false => {
                let (draws, of_slice) = Draws::record(|| looked_behind(|| (self.of_slice)()).0);
                (draws, crate::list::<_, Vec<Shape>>(of_slice?.iter().map(NamedTensor::shape)))
            }
        };
        let rule = if self.by_element { Rule::Aligned } else { rule_of(self.op) };
        if rule != Rule::Loop && !self.mixes_numbers(&lowered) {
            let made = match self.by_element {
                true => self.by_element(&lowered).map(Some),
                false => self.by_rule(rule, &lowered, count, &shapes),
            };
            // What a rule does not do, a loop does.
            if let Ok(Some(made)) = made
                && let Some(made) = self.checked(made, level, count, &shapes)?
            {
                return Ok(made);
            }
        }
        self.by_loop(&lowered, level, count, draws)
    }

    fn is_unnamed(&self) -> bool {
        !self.inputs.iter().any(|input| input.tensors().iter().any(|x| x.has_names()))
    }

    /// Whether a tensor of one number per slice would widen the dtype of the others, which a number does not.
    fn mixes_numbers(&self, lowered: &[Lowered]) -> bool {
        let all = || lowered.iter().flat_map(|input| &input.tensors);
        self.by_element
            && all().any(|(x, is_batch)| *is_batch && x.ndim() == 1)
            && all().any(|(x, _)| {
                all().any(|(y, _)| {
                    x.dtype() != y.dtype() && x.dtype() != DType::Bool && y.dtype() != DType::Bool
                })
            })
    }

    /// The outputs, if they have the sizes of a slice with the batch last.
    fn checked(
        &self,
        made: Vec<Tensor>,
        level: u64,
        count: usize,
        shapes: &[Shape],
    ) -> Result<Option<Vec<NamedTensor>>> {
        let mut outputs = Vec::with_capacity(made.len());
        // Where the batch is in the other outputs is unknown. Only kernels read them, and none is called on
        // a slice.
        for (number, y) in made.into_iter().take(self.returned.unwrap_or(usize::MAX)).enumerate() {
            let Some((last, sizes)) = y.sizes().split_last() else { return Ok(None) };
            let shape = match shapes.get(number) {
                Some(shape) => shape.clone(),
                None => Shape { sizes: sizes.iter().copied().collect(), names: Default::default() },
            };
            if *last != count || sizes != &shape.sizes[..] {
                return Ok(None);
            }
            outputs.push(standing_for(y, level, shape)?);
        }
        for hidden in shapes.iter().skip(outputs.len()) {
            outputs.push(NamedTensor::zeros(hidden.clone())?);
        }
        Ok(Some(outputs))
    }

    fn call(&self, tensors: &[Lowered]) -> Result<Vec<Tensor>> {
        let lists: Vec<Vec<&Tensor>> =
            crate::list(tensors.iter().map(|input| crate::list(input.tensors.iter().map(|(x, _)| x))));
        let mut inputs = Vec::with_capacity(tensors.len());
        for (input, list) in tensors.iter().zip(&lists) {
            inputs.push(match (input.is_list, input.is_optional) {
                (true, _) => Input::List(list),
                (_, true) => Input::Optional(list.first().copied()),
                _ => Input::One(list[0]),
            });
        }
        (self.run)(&inputs)
    }

    /// Elements meet from the right, where all inputs have the batch.
    fn by_element(&self, lowered: &[Lowered]) -> Result<Vec<Tensor>> {
        let aligned = mapped(lowered, &|x, is_batch| match is_batch || x.ndim() == 0 {
            true => Ok(x.clone()),
            false => x.unsqueeze(-1),
        })?;
        self.call(&aligned)
    }

    fn by_rule(
        &self,
        rule: Rule,
        lowered: &[Lowered],
        count: usize,
        shapes: &[Shape],
    ) -> Result<Option<Vec<Tensor>>> {
        let is_batch =
            |at: usize| lowered.get(at).is_some_and(|input| input.tensors.iter().all(|(_, is)| *is));
        let only_first =
            is_batch(0) && lowered.iter().skip(1).all(|input| !input.tensors.iter().any(|(_, is)| *is));
        let (first, first_is) = &lowered[0].tensors[0];
        let n = first.ndim() - usize::from(*first_is);
        let sizes = || crate::list::<_, Vec<usize>>(shapes[0].sizes.iter().copied());
        let with = |x: Result<Tensor>| x.map(|x| Some(vec![x]));
        if n == 0 && matches!(rule, Rule::Along | Rule::Aligned | Rule::NewLast) {
            return self.of_numbers(rule, lowered, count, shapes);
        }
        match rule {
            Rule::Along if only_first => self.call(lowered).map(Some),
            Rule::NewLast if only_first => {
                let mut made = self.call(lowered)?;
                for y in &mut made {
                    *y = y.movedim(-1, y.ndim() as isize - 2)?;
                }
                Ok(Some(made))
            }
            Rule::Aligned => self.call(&mapped(lowered, &|x, is| repeated(x, is, count))?).map(Some),
            Rule::First => {
                let firsts = mapped(lowered, &|x, is| repeated(x, is, count)?.movedim(-1, 0))?;
                let mut made = self.call(&firsts)?;
                for y in &mut made {
                    *y = y.movedim(0, -1)?;
                }
                Ok(Some(made))
            }
            Rule::Reshaped => with(as_sizes(first, &sizes(), count)),
            Rule::Permuted => {
                let Some(args) = self.args.map(Save::save) else { return Ok(None) };
                let Some((dims,)) = args.downcast_ref::<(Positions,)>() else { return Ok(None) };
                with(first.permute(crate::list::<_, Vec<usize>>(dims.iter().copied().chain([n]))))
            }
            Rule::Transposed => with(if n < 2 { Ok(first.clone()) } else { first.transpose(n - 2, n - 1) }),
            Rule::Expanded => {
                if !self.expands_by_position() {
                    return Ok(None);
                }
                let sizes = sizes();
                let mut own = vec![1; sizes.len() - n];
                own.extend_from_slice(&first.sizes()[..n]);
                with(as_sizes(first, &own, count)?.expand([&sizes[..], &[count]].concat()))
            }
            Rule::Repeated => {
                let (sizes, own) = (sizes(), &first.sizes()[..n]);
                if !self.expands_by_position() || own.contains(&0) {
                    return Ok(None);
                }
                let mut all = vec![1; sizes.len() - n];
                all.extend_from_slice(own);
                let mut repeats: Vec<usize> =
                    crate::list(sizes.iter().zip(&all).map(|(size, own)| size / own));
                repeats.push(1);
                with(as_sizes(first, &all, count)?.repeat(repeats))
            }
            Rule::NewDim => {
                let at = self.new_dim(lowered, n)?;
                let mut parts = Vec::with_capacity(lowered[0].tensors.len());
                for (x, is) in &lowered[0].tensors {
                    parts.push(repeated(x, *is, count)?);
                }
                with(match self.op {
                    "stack" => Tensor::stack(&parts, at),
                    _ => parts[0].unsqueeze(at),
                })
            }
            Rule::Looked => self.looked(lowered, is_batch(0), is_batch(1), count),
            Rule::Matmul => with(self.product(lowered)),
            Rule::Pairs => self.pairs(lowered),
            Rule::Images => self.images(lowered, only_first, count),
            _ => Ok(None),
        }
    }

    /// Whether the sizes in the arguments are for dims by position.
    fn expands_by_position(&self) -> bool {
        let args = self.args.map(Save::save);
        let sizes = args.as_ref().and_then(|args| args.downcast_ref::<(Expanded,)>());
        sizes.is_some_and(|args| args.0.order().is_none())
    }

    /// An op along a dim of 0-d tensors, for which they count as vectors of one element.
    fn of_numbers(
        &self,
        rule: Rule,
        lowered: &[Lowered],
        count: usize,
        shapes: &[Shape],
    ) -> Result<Option<Vec<Tensor>>> {
        if rule != Rule::Along
            || lowered.len() != 1
            || shapes.iter().any(|shape| shape.sizes.iter().any(|size| *size != 1))
        {
            return Ok(None);
        }
        let mut made = self.call(&mapped(lowered, &|x, _| x.unsqueeze(0))?)?;
        for (y, shape) in made.iter_mut().zip(shapes) {
            *y = y.reshape([&shape.sizes[..], &[count]].concat())?;
        }
        Ok(Some(made))
    }

    /// Where the op makes a new dim, found by a call on small tensors of as many dims.
    fn new_dim(&self, lowered: &[Lowered], n: usize) -> Result<isize> {
        let length = if lowered[0].is_list { lowered[0].tensors.len() } else { 1 };
        let own: Vec<usize> = vec![length + 1; n];
        let small = mapped(lowered, &|_, _| Ok(Tensor::constant(NamedTensor::zeros(&own[..])?)))?;
        let made = self.call(&small)?;
        let place = made[0].sizes().iter().position(|size| *size == length);
        Ok(place.unwrap_or(0) as isize)
    }

    /// `index_select` with an index that differs from slice to slice: all are looked up at once.
    fn looked(
        &self,
        lowered: &[Lowered],
        x_is: bool,
        index_is: bool,
        count: usize,
    ) -> Result<Option<Vec<Tensor>>> {
        let [x, index] = [&lowered[0].tensors[0].0, &lowered[1].tensors[0].0];
        if x_is && !index_is {
            return self.call(lowered).map(Some);
        }
        if x_is {
            return Ok(None);
        }
        let flat = Lowered { tensors: vec![(index.reshape([-1])?, false)], ..lowered[1].like() };
        let found =
            self.call(&[Lowered { tensors: vec![(x.clone(), false)], ..lowered[0].like() }, flat])?.remove(0);
        let numbers = index.numel();
        // The dim of the index, which has another size in a smaller call.
        let fewer =
            Lowered { tensors: vec![(index.reshape([-1])?.narrow(0, 0, 0)?, false)], ..lowered[1].like() };
        let none = self
            .call(&[Lowered { tensors: vec![(x.clone(), false)], ..lowered[0].like() }, fewer])?
            .remove(0);
        let differs = |dim: &usize| found.sizes()[*dim] != none.sizes()[*dim];
        let Some(dim) = (0..found.ndim()).find(differs) else { return Ok(None) };
        let own = numbers / count.max(1);
        let split = found.unflatten(dim, [own, count])?;
        Ok(Some(vec![split.movedim(dim as isize + 1, -1)?]))
    }

    /// Products of vectors and matrices, with the batch first; batches of vectors and one matrix are a
    /// product of two matrices.
    fn product(&self, lowered: &[Lowered]) -> Result<Tensor> {
        let [(a, a_is), (b, b_is)] = [&lowered[0].tensors[0], &lowered[1].tensors[0]];
        let [m, n] = [a.ndim() - usize::from(*a_is), b.ndim() - usize::from(*b_is)];
        let last = |x: &Tensor, is: bool| if is { Ok(x.clone()) } else { x.unsqueeze(-1) };
        match (m, n) {
            (1, 1) => {
                let (a, b) = (last(a, *a_is)?, last(b, *b_is)?);
                match self.op {
                    "outer" => a.unsqueeze(1)?.mul(b.unsqueeze(0)?),
                    _ => a.mul(b)?.sum(0),
                }
            }
            (2, 1) if !a_is => a.mm(b),
            (1, 2) if !b_is => b.t()?.mm(a),
            _ => {
                let most = m.max(n).max(2);
                let first = |x: &Tensor, is: bool, own: usize, column: bool| {
                    let x = if is { x.movedim(-1, 0)? } else { x.unsqueeze(0)? };
                    let x = match (own, column) {
                        (1, true) => x.unsqueeze(-1)?,
                        (1, false) => x.unsqueeze(1)?,
                        _ => x,
                    };
                    let mut sizes = x.sizes().to_vec();
                    sizes.splice(1..1, vec![1; most - own.max(2)]);
                    x.reshape(sizes)
                };
                let (a, b) = (first(a, *a_is, m, false)?, first(b, *b_is, n, true)?);
                let y = a.matmul(b)?;
                let y = if n == 1 { y.squeeze(-1)? } else { y };
                let y = if m == 1 { y.squeeze(if n == 1 { -1 } else { -2 })? } else { y };
                y.movedim(0, -1)
            }
        }
    }

    /// Sums of products over pairs of dims. The result has the batch dims of both, the rows and the columns.
    fn pairs(&self, lowered: &[Lowered]) -> Result<Option<Vec<Tensor>>> {
        let [(a, a_is), (b, b_is)] = [&lowered[0].tensors[0], &lowered[1].tensors[0]];
        let ndims = [a.ndim() - usize::from(*a_is), b.ndim() - usize::from(*b_is)];
        let Some(args) = self.args.map(Save::save) else { return Ok(None) };
        let dims = match (args.downcast_ref::<(Paired,)>(), args.downcast_ref::<(Positions, Positions)>()) {
            (Some((dims,)), _) => dims.clone(),
            (_, Some((own, other))) => {
                Paired::new(ndims, &[], crate::list(own.iter().copied().zip(other.iter().copied())))
            }
            _ => return Ok(None),
        };
        let side = |x: &Tensor, is: bool, n: usize, of: [&[usize]; 3]| {
            let x = if is { x.movedim(-1, 0)? } else { x.unsqueeze(0)? };
            let order: Vec<usize> =
                crate::list([0].into_iter().chain(of.concat().into_iter().map(|dim| dim + 1)));
            debug_assert_eq!(order.len(), n + 1);
            let x = x.permute(&order[..])?;
            let mut sizes = vec![x.sizes()[0]];
            let mut at = 1;
            for part in of {
                sizes.push(x.sizes()[at..at + part.len()].iter().product());
                at += part.len();
            }
            let kept = x.sizes()[1..].to_vec();
            Ok::<_, Error>((x.reshape(sizes)?, kept))
        };
        let pairs = |of: &[(usize, usize)], right: bool| -> Vec<usize> {
            crate::list(of.iter().map(|(a, b)| if right { *b } else { *a }))
        };
        let (batch, summed) = (&dims.batch, &dims.summed);
        let own = [pairs(batch, false), pairs(summed, false), pairs(batch, true), pairs(summed, true)];
        let (x, of_x) = side(a, *a_is, ndims[0], [&own[0], &dims.rows, &own[1]])?;
        let (y, of_y) = side(b, *b_is, ndims[1], [&own[2], &own[3], &dims.cols])?;
        let differs = |pair: &(usize, usize)| a.sizes()[pair.0] != b.sizes()[pair.1];
        if batch.iter().chain(summed).any(differs) {
            return Ok(None); // one of the two is repeated
        }
        let made = x.matmul(&y)?; // [slices, batch, rows, cols]
        let (b, r, s) = (batch.len(), dims.rows.len(), summed.len());
        let mut sizes = vec![made.sizes()[0]];
        sizes.extend((0..b).map(|dim| of_x[dim].max(of_y[dim])));
        sizes.extend_from_slice(&of_x[b..b + r]);
        sizes.extend_from_slice(&of_y[b + s..]);
        Ok(Some(vec![made.reshape(sizes)?.movedim(0, -1)?]))
    }

    /// Convolutions with one weight: the slices are further images.
    fn images(&self, lowered: &[Lowered], only_first: bool, count: usize) -> Result<Option<Vec<Tensor>>> {
        if !only_first {
            return Ok(None);
        }
        let (x, weight) = (&lowered[0].tensors[0].0, &lowered[1].tensors[0].0);
        let firsts = x.movedim(-1, 0)?;
        let has_images = x.ndim() == weight.ndim() + 1;
        let images = if has_images { firsts.flatten([0, 1], None)? } else { firsts.clone() };
        let mut all: Vec<Lowered> = crate::list(lowered.iter().map(Lowered::copied));
        all[0].tensors = vec![(images, true)];
        let y = self.call(&all)?.remove(0);
        let y = if has_images { y.unflatten(0, [count, x.sizes()[0]])? } else { y };
        Ok(Some(vec![y.movedim(0, -1)?]))
    }

    /// Once for each slice.
    fn by_loop(
        &self,
        lowered: &[Lowered],
        level: u64,
        count: usize,
        draws: Draws,
    ) -> Result<Vec<NamedTensor>> {
        loops(self.op);
        let mut outputs: Vec<Vec<Tensor>> = Vec::new();
        for at in 0..count {
            let mut slices: Vec<Lowered> = crate::list(lowered.iter().map(Lowered::copied));
            for (slice, input) in slices.iter_mut().zip(self.inputs) {
                for ((x, is), own) in slice.tensors.iter_mut().zip(input.tensors()) {
                    if *is {
                        *x = x.select(-1, at)?;
                    }
                    *x = x.clone().with_names_of(own);
                }
            }
            // The same numbers; different ones are for calls of the whole function.
            let made = draws.replay(|| self.call(&slices))?;
            outputs.resize(made.len(), Vec::with_capacity(count));
            for (all, y) in outputs.iter_mut().zip(made) {
                all.push(y);
            }
        }
        let mut values = Vec::with_capacity(outputs.len());
        for all in &outputs {
            let shape = all[0].shape();
            if all.iter().any(|y| y.shape() != shape) {
                let message = "the sizes of the result differ from slice to slice";
                return Err(Error::new(ErrorKind::Shape, self.op, message));
            }
            let unnamed: Vec<Tensor> = crate::list(all.iter().map(Tensor::unnamed));
            values.push(standing_for(Tensor::stack(&unnamed, -1)?, level, shape)?);
        }
        Ok(values)
    }
}

impl Lowered {
    /// An input of the same kind, without tensors.
    fn like(&self) -> Lowered {
        Lowered { tensors: Vec::new(), ..*self }
    }

    fn copied(&self) -> Lowered {
        Lowered { tensors: self.tensors.clone(), ..*self }
    }
}

/// The inputs with `f` applied to their tensors.
fn mapped(lowered: &[Lowered], f: &dyn Fn(&Tensor, bool) -> Result<Tensor>) -> Result<Vec<Lowered>> {
    let mut all = Vec::with_capacity(lowered.len());
    for input in lowered {
        let mut tensors = Vec::with_capacity(input.tensors.len());
        for (x, is) in &input.tensors {
            tensors.push((f(x, *is)?, true));
        }
        all.push(Lowered { tensors, ..*input });
    }
    Ok(all)
}

fn count_of(lowered: &[Lowered]) -> usize {
    let mut all = lowered.iter().flat_map(|input| &input.tensors);
    all.find(|(_, is)| *is).and_then(|(x, _)| x.sizes().last().copied()).unwrap_or(0)
}

/// The slices, which are all the same if there is no batch.
fn repeated(x: &Tensor, is_batch: bool, count: usize) -> Result<Tensor> {
    match is_batch {
        true => Ok(x.clone()),
        false => x.unsqueeze(-1)?.expand([x.sizes(), &[count]].concat()),
    }
}

/// A batch with other sizes of each slice.
fn as_sizes(x: &Tensor, sizes: &[usize], count: usize) -> Result<Tensor> {
    x.movedim(-1, 0)?.reshape([&[count], sizes].concat())?.movedim(0, -1)
}
