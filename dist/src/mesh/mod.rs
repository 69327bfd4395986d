//! [`Mesh`], ranks along named axes, and models whose dims are split over them by name. `value.rs` has tensors
//! in parts, `rules.rs` how ops run on them, and `state.rs` the states of models and optimizers.

mod drawn;
mod labels;
mod lifted;
mod mixing;
mod rules;
mod state;
#[cfg(test)]
mod tests;
mod value;
mod views;

use crate::backend::Reduction;
use crate::group::Group;
use crate::traffic;
use lifted::{Lifted, Renewing};
use namegrad::autograd::elsewhere::asking;
use namegrad::autograd::{Blocks, Op, PartOf, places};
use namegrad::core::names::closest;
use namegrad::core::random::{GeneratorState, random_state, set_random_state};
use namegrad::core::{Name, NamedTensor};
use namegrad::nn::Buffer;
use namegrad::prelude::*;
use std::cell::Cell;
use std::fmt;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use value::{Axes, Axis, Parted, Split, Value, parted};

const OP: &str = "Mesh";

/// The ranks of a group along named axes, and a table that says which dims are split along which axis.
///
/// Each rank holds a part of every tensor that has a dim of the table: of the parameters of a model that is
/// [split](Self::split), of the batches that it is [given](Self::part), and of what ops compute from them. In a
/// [`scope`](Self::scope) such a tensor has the names and sizes of the whole, so that a model is written as for
/// one process. An op runs on the parts where its dims allow it, and exchanges what is missing: a contraction
/// of a split dim adds the results of the ranks, a softmax exchanges maxima and sums, and so on. An op that
/// needs all of a split dim [gathers](Self::gathered) it. Outputs, gradients and states are those of one
/// process, up to rounding.
///
/// | table | what happens |
/// | --- | --- |
/// | `("batch", "data")` | each rank has a part of the batch; gradients of parameters are added |
/// | `("hidden", "model")` | layers to and from "hidden" have parts of their weights |
/// | `("heads", "model")` | attention has some heads on each rank |
/// | `("vocab", "model")` | embeddings, output layers and the cross entropy have parts of the vocabulary |
/// | [`zero(1, "data")`](Self::zero) | optimizers have parts of the parameters, whatever the names |
/// | [`fully_shard("data")`](Self::fully_shard) | parameters are in parts until an op needs them |
///
/// # Examples
/// With `mpirun -n 4`, the axes could be `[("data", 2), ("model", 2)]`.
/// ```
/// use namegrad::prelude::*;
/// use namegrad_dist::{Group, Mesh};
/// let world = Group::world()?;
/// let mesh = Mesh::on(&world, [("data", world.size()), ("model", 1)])?
///     .shard([("batch", "data"), ("hidden", "model")])?;
///
/// let model = Sequential::new()
///     .then(Linear::new(("in", 3), ("hidden", 8))?)
///     .then(Relu)
///     .then(Linear::new(("hidden", 8), ("class", 4))?);
/// mesh.split(&model)?;
/// let mut optimizer = Adam::new(model.parameters())?;
///
/// let x = mesh.part(&Tensor::ones([("batch", 4 * world.size()), ("in", 3)])?)?;
/// let y = mesh.part(&TensorOptions::new().dtype(DType::I64).zeros([("batch", 4 * world.size())])?)?;
/// let loss = mesh.scope(|| {
///     let loss = F::cross_entropy(&model.forward(&x)?, &y, "class")?;
///     loss.backward()?;
///     loss.item::<f32>()
/// })?;
/// optimizer.step()?;
/// assert!(loss > 0.0);
/// let whole = mesh.state_dict(&model)?; // as of a model on one process
/// assert_eq!(whole.get("0.weight").unwrap().shape().to_string(), "[hidden=8, in=3]");
/// # Ok::<(), Error>(())
/// ```
///
/// # Source
/// Shoeybi et al., *Megatron-LM* (2019), section 3; Rajbhandari et al., *ZeRO* (2019), sections 5 and 6.
#[derive(Clone)]
pub struct Mesh {
    world: Group,
    axes: Arc<Axes>,
    /// Names of dims with the axes that split them.
    table: Vec<(Name, usize)>,
    /// The axis along which parameters are in parts, whatever their names, and whether ops see the parts.
    stored: Option<(usize, bool)>,
    state: Arc<Mutex<State>>,
}

/// What a mesh knows of a program.
#[derive(Default)]
struct State {
    parameters: Vec<Held>,
    buffers: Vec<Buffer>,
    /// The names of the table that a tensor had.
    seen: Vec<Name>,
    /// All other names that were seen, for suggestions.
    others: Vec<Name>,
    is_checked: bool,
}

/// A parameter of which this rank has a part.
struct Held {
    parameter: Parameter,
    splits: Vec<Option<Split>>,
}

thread_local! {
    static IN_SCOPE: Cell<bool> = const { Cell::new(false) };
}

impl Mesh {
    /// A mesh of all ranks. The last axis changes fastest: with axes of 2 and 4, ranks 0 to 3 are the first of
    /// 2.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad_dist::{Group, Mesh};
    /// let mesh = Mesh::new([("data", Group::world()?.size())])?;
    /// assert_eq!(mesh.axis("data")?.size(), Group::world()?.size());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Group::world`]; [`ErrorKind::Value`] if the sizes do not multiply to the number of ranks, or
    /// if two axes have the same name.
    #[track_caller]
    pub fn new<S: Into<String>>(axes: impl IntoIterator<Item = (S, usize)>) -> Result<Mesh> {
        Mesh::on(&Group::world()?, axes)
    }

    /// A mesh of the ranks of a group.
    ///
    /// # Errors
    /// Same as [`new`](Self::new).
    #[track_caller]
    pub fn on<S: Into<String>>(group: &Group, axes: impl IntoIterator<Item = (S, usize)>) -> Result<Mesh> {
        let sizes: Vec<(String, usize)> = axes.into_iter().map(|(name, size)| (name.into(), size)).collect();
        let text: Vec<String> = sizes.iter().map(|(name, size)| format!("{name}={size}")).collect();
        Error::ensure(!sizes.is_empty(), ErrorKind::Value, OP, || "a mesh has at least one axis")?;
        for (at, (name, _)) in sizes.iter().enumerate() {
            Error::ensure(sizes[..at].iter().all(|(other, _)| other != name), ErrorKind::Value, OP, || {
                format!("two axes are called '{name}'")
            })?;
        }
        let count = sizes.iter().try_fold(1_usize, |count, (_, size)| count.checked_mul(*size));
        if count != Some(group.size()) {
            let (ranks, of) = (group.size(), text.join(", "));
            let message =
                format!("axes {of} are {} ranks, and there are {ranks}", count.unwrap_or(usize::MAX));
            let first = sizes.first().map_or("data", |(name, _)| name);
            return Err(Error::new(ErrorKind::Value, OP, message)
                .with_repair(format!("Mesh::new([(\"{first}\", {ranks})])?, or start as many ranks")));
        }
        if group.is_checked() {
            group.check(&format!("Mesh of {}", text.join(", ")))?;
        }
        let (rank, mut inner, mut all) = (group.rank(), group.size(), Vec::new());
        for (name, size) in sizes {
            inner /= size;
            let own = rank / inner % size;
            let group = group.axis(rank - own * inner, size, &name)?;
            all.push(Axis { name, group });
        }
        Ok(Mesh {
            world: group.clone(),
            axes: Arc::new(Axes { all, stored: None, gathered: Mutex::default() }),
            table: Vec::new(),
            stored: None,
            state: Arc::default(),
        })
    }

    /// The same mesh with dims that are split: pairs of a name and an axis. A tensor that has the dim is
    /// divided into as many equal parts along it as the axis has ranks.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad_dist::{Group, Mesh};
    /// let world = Group::world()?;
    /// let mesh = Mesh::on(&world, [("model", world.size())])?;
    /// let error = mesh.shard([("hidden", "modle")]).err().unwrap();
    /// assert!(error.to_string().contains("did you mean 'model'?"));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for an axis that the mesh does not have and for a name that is there twice, and on
    /// all ranks if their tables differ; [`ErrorKind::InvalidName`].
    #[track_caller]
    pub fn shard<S: Into<String>, A: Into<String>>(
        mut self,
        table: impl IntoIterator<Item = (S, A)>,
    ) -> Result<Mesh> {
        let mut text = Vec::new();
        for (name, axis) in table {
            let (name, axis) = (Name::new(&name.into())?, axis.into());
            let at = self.position(&axis)?;
            Error::ensure(self.table.iter().all(|(other, _)| *other != name), ErrorKind::Value, OP, || {
                format!("the dim '{name}' is in the table twice")
            })?;
            text.push(format!("{name} along {axis}"));
            self.table.push((name, at));
        }
        if self.world.is_checked() {
            self.world.check(&format!("Mesh::shard\n{}", text.join("\n")))?;
        }
        Ok(self)
    }

    /// The same mesh, where parameters are also divided along `axis`, whatever their names: along a dim that no
    /// other axis splits and whose size the axis divides. So each rank has a part of the state of the optimizer
    /// and of the gradients. A scope begins by gathering the parameters. `level` is that of ZeRO: 1 for this,
    /// and 3 for [`fully_shard`](Self::fully_shard).
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for another level, and for an axis that the mesh does not have.
    #[track_caller]
    pub fn zero<A: Into<String>>(mut self, level: usize, axis: A) -> Result<Mesh> {
        Error::ensure(matches!(level, 1 | 3), ErrorKind::Value, OP, || {
            format!("the level of ZeRO is 1 or 3, not {level}")
        })?;
        let axis = self.position(&axis.into())?;
        self.stored = Some((axis, level == 3));
        let all = self.axes.all.clone();
        self.axes = Arc::new(Axes { all, stored: Some(axis), gathered: Mutex::default() });
        if self.world.is_checked() {
            self.world.check(&format!("Mesh::zero({level}) {:?}", self.stored))?;
        }
        Ok(self)
    }

    /// As [`zero`](Self::zero), but each op gathers its parameters and forgets them again, forward and
    /// backward. So the whole of a parameter is in memory only while an op uses it.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for an axis that the mesh does not have.
    #[track_caller]
    pub fn fully_shard<A: Into<String>>(self, axis: A) -> Result<Mesh> {
        self.zero(3, axis)
    }

    /// The group of the ranks that differ from this one along an axis alone.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for an axis that the mesh does not have.
    #[track_caller]
    pub fn axis(&self, name: &str) -> Result<&Group> {
        Ok(&self.axes.all[self.position(name)?].group)
    }

    /// Keeps this rank's part of each parameter of the model. All ranks get the values of rank 0 first, and its
    /// random numbers. Split a model before you give its parameters to an optimizer; buffers stay whole.
    ///
    /// A model that does not fit on one rank is made on [`Device::Meta`] and loaded after it is split: each
    /// rank keeps its part of each value.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad_dist::{Group, Mesh};
    /// let world = Group::world()?;
    /// let mesh = Mesh::on(&world, [("model", world.size())])?.shard([("hidden", "model")])?;
    /// let make = || Linear::new(("in", 3), ("hidden", 4 * world.size()));
    /// let state = make()?.state_dict(); // from a file
    /// let model = on_device(Device::Meta, make)?;
    /// mesh.split(&model)?;
    /// model.load_state_dict(&state)?;
    /// assert_eq!(model.weight().shape().sizes[..], [4, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if an axis does not divide a dim; [`ErrorKind::Value`] if one axis splits two dims
    /// of a parameter, and on all ranks if their models differ.
    #[track_caller]
    pub fn split(&self, model: &dyn Module) -> Result<()> {
        let parameters = model.named_parameters();
        let mut text = vec!["Mesh::split".to_string()];
        text.extend(parameters.iter().map(|(path, x)| format!("{path} {} {}", x.shape(), x.dtype())));
        self.world.check(&text.join("\n"))?;
        // First everything is checked, so that an error leaves the model as it was.
        let mut planned = Vec::new();
        for (path, parameter) in &parameters {
            let is_known = self.state().parameters.iter().any(|held| held.parameter.is(parameter));
            if is_known || planned.iter().any(|(other, _): &(&Parameter, _)| other.is(parameter)) {
                continue;
            }
            let x = parameter.try_tensor()?;
            let named = |error: Error| error.context(format_args!("'{path}': "));
            Error::ensure(parameter.part().is_none(), ErrorKind::Value, OP, || {
                format!("'{path}' is in parts of another mesh already")
            })?;
            planned.push((parameter, self.splits_of(x.value(), Some(parameter)).map_err(named)?));
        }
        for (parameter, splits) in planned {
            let x = parameter.try_tensor()?.detach();
            let is_meta = x.device() == Device::Meta;
            let x = if is_meta { x } else { self.world.broadcast(&x, 0)? }.into_value();
            // In memory of its own, so that the whole is freed.
            let part = self.axes.whole(x).placed(&self.axes, &splits)?.part.deep_clone()?;
            parameter.update(|own| {
                *own = part;
                Ok(())
            })?;
            if splits.iter().any(Option::is_some) {
                parameter.set_part(Arc::new(PartOfMesh { axes: self.axes.clone(), splits: splits.clone() }));
            }
            self.state().parameters.push(Held { parameter: parameter.clone(), splits });
        }
        self.same_random_state()?;
        for (_, buffer) in model.named_buffers() {
            if buffer.value().device() != Device::Meta {
                buffer.set(self.world.broadcast(&Tensor::from(buffer.value()), 0)?.value())?;
            }
            self.state().buffers.push(buffer);
        }
        Ok(())
    }

    /// A tensor of which this rank keeps a part, along the dims in the table. It has the sizes of `x`, which
    /// all ranks have.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if an axis does not divide a dim; [`ErrorKind::Value`] if one axis splits two dims.
    #[track_caller]
    pub fn part(&self, x: &Tensor) -> Result<Tensor> {
        let splits = self.splits_of(x.value(), None)?;
        let part = self.axes.value(x.value()).placed(&self.axes, &splits)?;
        let axes = self.axes.clone();
        let y = part.into_tensor(&self.axes)?;
        Ok(Op::new("Mesh::part", y).input_once(x, move |g, _| whole_of(&axes, g)).output())
    }

    /// The tensor whose parts the ranks have, such as the batches of a loader for each rank: `x` is this rank's
    /// part along the dims in the table.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad_dist::{Group, Mesh};
    /// let world = Group::world()?;
    /// let mesh = Mesh::on(&world, [("data", world.size())])?.shard([("batch", "data")])?;
    /// let x = mesh.joined(&Tensor::ones([("batch", 2)])?)?;
    /// assert_eq!(x.numel(), 2 * world.size());
    /// assert_eq!(mesh.whole(&x)?, Tensor::ones([("batch", 2 * world.size())])?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if one axis splits two dims, and on all ranks if the parts differ in size;
    /// [`ErrorKind::Autograd`] if the part requires a gradient.
    #[track_caller]
    pub fn joined(&self, x: &Tensor) -> Result<Tensor> {
        crate::collective::without_gradient("Mesh::joined", x)?;
        if self.world.is_checked() {
            self.world.check(&format!("Mesh::joined {} {}", x.shape(), x.dtype()))?;
        }
        let splits = self.named_splits(x.value())?;
        Ok(Tensor::from(Value::of(x.value().clone(), splits).into_tensor(&self.axes)?))
    }

    /// The tensor with the parts of all ranks, on every rank.
    ///
    /// # Errors
    /// Those of [`Group::all_gather`].
    #[track_caller]
    pub fn whole(&self, x: &Tensor) -> Result<Tensor> {
        let _gathers = traffic::in_call("Mesh::whole", Location::caller());
        let value = self.axes.value(x.value());
        let (axes, splits) = (self.axes.clone(), value.splits.clone());
        let y = whole_of(&self.axes, x.value())?;
        let op = Op::new("Mesh::whole", y);
        Ok(op.input_once(x, move |g, _| axes.value(g).placed(&axes, &splits)?.into_tensor(&axes)).output())
    }

    /// The part of this rank, as a tensor of its own.
    pub fn mine(&self, x: &Tensor) -> Tensor {
        // Only a failed exchange of terms leaves those of this rank.
        let _ = parted(x.value()).map(Parted::sum);
        Tensor::from(self.axes.value(x.value()).part)
    }

    /// Runs `f`, in which the parameters of models that were [split](Self::split) are tensors in parts. The
    /// backward pass belongs inside.
    ///
    /// A scope is for the passes of one step: its parameters have the values of its beginning. For an optimizer
    /// that computes the loss itself there is [`closure`](Self::closure).
    ///
    /// All ranks run the same ops. Random numbers are those of one process: all ranks draw the same ones, and
    /// their parts of what dropout drops.
    ///
    /// # Errors
    /// Those of `f`; [`ErrorKind::Value`] at the end of the first scope if no parameter and no
    /// [part](Self::part) had a name of the table;
    /// [`ErrorKind::Unsupported`] if code outside of this library has read the numbers of a tensor in parts.
    #[track_caller]
    pub fn scope<R>(&self, f: impl FnOnce() -> Result<R>) -> Result<R> {
        if IN_SCOPE.get() {
            return f();
        }
        struct Leave;
        impl Drop for Leave {
            fn drop(&mut self) {
                IN_SCOPE.set(false);
            }
        }
        let (mut all, mut values) = (Vec::new(), Vec::new());
        let gathers = traffic::in_call("Mesh::scope", Location::caller());
        let gathered = self.stored.filter(|(_, is_seen)| !is_seen).map(|(axis, _)| axis);
        for Held { parameter, splits } in &self.state().parameters {
            let lifted = Lifted::new(&self.axes, parameter, splits, gathered)?;
            values.push(lifted.tensor()?);
            all.push(lifted);
        }
        drop(gathers);
        IN_SCOPE.set(true);
        let (_leave, _renewing) = (Leave, Renewing::new(all));
        let (made, is_looked) = asking(|| places::substituted(values, f));
        let made = made?;
        for buffer in &self.state().buffers {
            let value = buffer.value();
            if parted(&value).is_some() {
                buffer.set(&whole_of(&self.axes, &value)?)?;
            }
        }
        self.check_table()?;
        match is_looked {
            false => Ok(made),
            true => {
                let message =
                    "something has read the numbers of a tensor in parts that is no op of the library";
                Err(Error::new(ErrorKind::Unsupported, "Mesh::scope", message)
                    .with_repair("mesh.whole(&x)?, for the tensor that it reads"))
            }
        }
    }

    /// The loss of a step that calls it itself, several times perhaps: each call is a [`scope`](Self::scope)
    /// with its backward pass.
    ///
    /// ```
    /// use namegrad::optim::Lbfgs;
    /// use namegrad::prelude::*;
    /// use namegrad_dist::{Group, Mesh};
    /// let world = Group::world()?;
    /// let mesh = Mesh::on(&world, [("model", world.size())])?.shard([("hidden", "model")])?;
    /// let model = Linear::new(("in", 3), ("hidden", 4 * world.size()))?;
    /// mesh.split(&model)?;
    /// let x = Tensor::ones([("N", 2), ("in", 3)])?;
    /// let mut optimizer = Lbfgs::new(model.parameters())?;
    /// for _ in 0..3 {
    ///     optimizer.step_with(&mut mesh.closure(|| model.forward(&x)?.square()?.mean(..)))?;
    /// }
    /// # Ok::<(), Error>(())
    /// ```
    pub fn closure<'a>(
        &'a self,
        mut loss: impl FnMut() -> Result<Tensor> + 'a,
    ) -> impl FnMut() -> Result<Tensor> + 'a {
        move || {
            Error::ensure(
                !IN_SCOPE.get(),
                ErrorKind::Autograd,
                "Mesh::closure",
                || "a step inside of a scope, whose parameters have the values of its beginning",
            )?;
            let value = self.scope(|| {
                let loss = loss()?;
                loss.backward()?;
                self.whole(&loss.detach())
            })?;
            // The step makes a backward pass from what it gets; the gradients are there already.
            value.zeros_like()?.requiring_grad()?.add(&value)
        }
    }

    /// What ops have gathered because they need all of a dim, since the mesh was made: the op, the dim and the
    /// axis. Each is an exchange of a whole tensor, which another table may avoid.
    pub fn gathered(&self) -> Vec<String> {
        self.axes.gathered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The bytes that this rank has sent along all axes, as [`Group::bytes_sent`] counts them.
    pub fn bytes_sent(&self) -> u64 {
        self.axes.all.iter().map(|axis| axis.group.bytes_sent()).sum()
    }

    /// Gives all ranks the random numbers of rank 0.
    #[track_caller]
    fn same_random_state(&self) -> Result<()> {
        if self.world.is_pretended() {
            return Ok(());
        }
        let GeneratorState { seed, offset } = random_state();
        let words = Tensor::new([seed, offset].map(u64::cast_signed))?;
        if let [seed, offset] = self.world.broadcast(&words, 0)?.to_vec::<i64>()?[..] {
            let [seed, offset] = [seed, offset].map(i64::cast_unsigned);
            set_random_state(GeneratorState { seed, offset });
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[track_caller]
    fn position(&self, axis: &str) -> Result<usize> {
        if let Some(at) = self.axes.all.iter().position(|own| own.name == axis) {
            return Ok(at);
        }
        let names: Vec<&str> = self.axes.all.iter().map(|own| &own.name[..]).collect();
        let near = closest(axis, names.iter().copied());
        let hint = near.map_or(String::new(), |name| format!("; did you mean '{name}'?"));
        let message = format!("there is no axis '{axis}' in a mesh of {}{hint}", names.join(", "));
        Err(Error::new(ErrorKind::Value, OP, message))
    }

    /// How a tensor is split by the names of its dims.
    #[track_caller]
    fn named_splits(&self, x: &NamedTensor) -> Result<Vec<Option<Split>>> {
        let mut splits: Vec<Option<Split>> = vec![None; self.axes.all.len()];
        for dim in 0..x.ndim() {
            let Some(name) = x.name(dim) else { continue };
            let mut state = self.state();
            let Some((_, axis)) = self.table.iter().find(|(own, _)| *own == name) else {
                if !state.others.contains(&name) {
                    state.others.push(name);
                }
                continue;
            };
            if !state.seen.contains(&name) {
                state.seen.push(name);
            }
            drop(state);
            let own = &self.axes.all[*axis];
            if own.group.size() == 1 {
                continue;
            }
            if let Some(other) = &splits[*axis] {
                return Err(self.twice(x, x.name(other.dim), name, *axis));
            }
            splits[*axis] = Some(Split::of(dim));
        }
        Ok(splits)
    }

    /// The error of two dims of one tensor along one axis.
    #[track_caller]
    fn twice(&self, x: &NamedTensor, first: Option<Name>, name: Name, axis: usize) -> Error {
        let first = first.map_or(String::new(), |name| name.to_string());
        let axis = &self.axes.all[axis].name;
        let message =
            format!("'{first}' and '{name}' are both split along '{axis}', and {} has both", x.shape());
        Error::new(ErrorKind::Value, OP, message)
            .with_operands([x.shape()])
            .with_repair(format!("a table without '{name}', or with another axis for it"))
    }

    /// An error unless an axis divides a dim.
    #[track_caller]
    fn check_divided(&self, x: &NamedTensor, name: Option<Name>, size: usize, axis: usize) -> Result<()> {
        let ranks = self.axes.size(axis);
        if size.is_multiple_of(ranks) {
            return Ok(());
        }
        let name = name.map_or(String::new(), |name| name.to_string());
        let axis = &self.axes.all[axis].name;
        let message = format!(
            "the dim '{name}' of size {size} cannot be divided among the {ranks} ranks along '{axis}'"
        );
        let next = size.div_ceil(ranks) * ranks;
        Err(Error::new(ErrorKind::Shape, OP, message)
            .with_operands([x.shape()])
            .with_repair(format!("(\"{name}\", {next}), the next size that can be divided")))
    }

    /// How a whole tensor is split; a parameter also where it is only stored in parts.
    #[track_caller]
    fn splits_of(&self, x: &NamedTensor, parameter: Option<&Parameter>) -> Result<Vec<Option<Split>>> {
        let mut splits = self.named_splits(x)?;
        for (axis, split) in splits.iter().enumerate() {
            let Some(Split { dim, .. }) = split else { continue };
            self.check_divided(x, x.name(*dim), x.sizes()[*dim], axis)?;
        }
        let Some(parameter) = parameter else { return Ok(splits) };
        if let Some(Blocks { dim, sizes, of: (name, count) }) = parameter.blocks()
            && let Some((_, axis)) = self.table.iter().find(|(own, _)| own == name)
        {
            self.state().seen.push(*name);
            if self.axes.size(*axis) > 1 {
                self.check_divided(x, Some(*name), *count, *axis)?;
                if let Some(other) =
                    splits[*axis].as_ref().or(splits.iter().flatten().find(|own| own.dim == *dim))
                {
                    return Err(self.twice(x, x.name(other.dim), *name, *axis));
                }
                let blocks = if sizes.len() > 1 { sizes.clone() } else { Vec::new() };
                splits[*axis] = Some(Split { blocks, ..Split::of(*dim) });
            }
        }
        let Some((axis, _)) = self.stored else { return Ok(splits) };
        let ranks = self.axes.size(axis);
        if ranks > 1 && splits[axis].is_none() {
            let is_free = |dim: &usize| !splits.iter().flatten().any(|split: &Split| split.dim == *dim);
            let fits = |dim: &usize| x.sizes()[*dim].is_multiple_of(ranks) && x.sizes()[*dim] > 0;
            let largest = (0..x.ndim()).filter(is_free).filter(fits).max_by_key(|dim| x.sizes()[*dim]);
            splits[axis] = largest.map(|dim| Split { is_stored: true, ..Split::of(dim) });
        }
        Ok(splits)
    }

    /// An error for a name of the table that no tensor had.
    #[track_caller]
    fn check_table(&self) -> Result<()> {
        let mut state = self.state();
        if std::mem::replace(&mut state.is_checked, true) {
            return Ok(());
        }
        let Some((name, _)) = self.table.iter().find(|(name, _)| !state.seen.contains(name)) else {
            return Ok(());
        };
        let near = closest(name.as_str(), state.others.iter().map(|name| name.as_str()));
        let mut others: Vec<&str> = state.others.iter().map(|name| name.as_str()).collect();
        others.sort_unstable();
        let others = others.join("', '");
        let hint = match near {
            Some(name) => format!("; did you mean '{name}'?"),
            None if others.is_empty() => String::new(),
            None => format!("; other dims were '{others}'"),
        };
        let message =
            format!("no tensor that split() or part() was given has the dim '{name}' of the table{hint}");
        Err(Error::new(ErrorKind::Value, OP, message)
            .with_repair("mesh.part(&x)?, for a batch, or a table without the name"))
    }
}

impl fmt::Debug for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axes: Vec<String> =
            self.axes.all.iter().map(|axis| format!("{}={}", axis.name, axis.group.size())).collect();
        write!(f, "Mesh({}; rank {})", axes.join(", "), self.world.rank())
    }
}

fn whole_of(axes: &Axes, x: &NamedTensor) -> Result<NamedTensor> {
    let mut value = axes.value(x);
    value.gather_all(axes)?;
    Ok(value.part)
}

/// What a parameter is a part of, for optimizers.
struct PartOfMesh {
    axes: Arc<Axes>,
    splits: Vec<Option<Split>>,
}

impl PartOf for PartOfMesh {
    fn whole(&self, part: &NamedTensor) -> Result<NamedTensor> {
        let is_pretended = self.axes.all.iter().any(|axis| axis.group.is_pretended());
        if part.device() == Device::Meta && !is_pretended {
            return self.dims(part);
        }
        let mut value = Value::of(part.clone(), self.splits.clone());
        value.gather_all(&self.axes)?;
        Ok(value.part)
    }

    fn dims(&self, part: &NamedTensor) -> Result<NamedTensor> {
        let sizes = Value::of(part.clone(), self.splits.clone()).sizes(&self.axes);
        let number = || NamedTensor::zeros(())?.to(part.dtype())?.expand(&sizes[..]);
        let dims = if part.device() == Device::Meta { on_device(Device::Meta, number) } else { number() };
        Ok(dims?.with_names(part.names().clone()))
    }

    fn mine(&self, whole: &NamedTensor) -> Result<NamedTensor> {
        self.axes.whole(whole.clone()).placed(&self.axes, &self.splits)?.part.deep_clone()
    }

    fn sum(&self, number: f64) -> Result<f64> {
        let mut sum = NamedTensor::from_slice(&[number], [1])?;
        for (axis, split) in self.splits.iter().enumerate() {
            if split.is_some() {
                sum = self.axes.reduced(&sum, axis, Reduction::Sum)?;
            }
        }
        if sum.device() == Device::Meta { Ok(number) } else { sum.to_vec::<f64>().map(|sum| sum[0]) }
    }
}
