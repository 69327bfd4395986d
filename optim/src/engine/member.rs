//! A parameter of an optimizer with its state: the tensors that a method keeps for it, and its step.

use super::*;

/// Tensors that a method keeps for a parameter, by name.
type SlotList = Vec<(String, NamedTensor)>;

/// A parameter and its state.
pub(super) struct Member {
    pub(super) parameter: Parameter,
    /// The number of its group.
    pub(super) group: usize,
    /// Its paths in the model, if they are known.
    pub(super) paths: Vec<String>,
    pub(super) steps: u64,
    /// Whether `steps` already includes the current step.
    pub(super) counted: bool,
    /// The copy in `f32` of a parameter of a half type.
    pub(super) master: Option<Master>,
    /// Slots that `Method::slots` no longer names, then those that it names, in its order.
    pub(super) slots: SlotList,
}

impl Member {
    /// Checks that the next step of the optimizer `name` is possible, and if asked for, that the gradient
    /// begins with finite numbers. Returns whether there is a gradient.
    pub(super) fn check(&self, name: &'static str, finite: bool) -> Result<bool> {
        let Some(grad) = self.parameter.grad() else { return Ok(false) };
        if finite && !begins_finite(grad.value()) {
            grad.value().check_finite(name).map_err(|error| error.context(self.of_gradient()))?;
        }
        if self.parameter.device() == Device::Cpu {
            let meta = |x: &NamedTensor| x.device() == Device::Meta;
            let wrong = if meta(grad.value()) {
                "the gradient is on the meta device, of a backward pass there: call zero_grad() and backward() again"
            } else if self.slots.iter().any(|(_, slot)| meta(slot)) {
                "the state is on the meta device, of steps there: make a new optimizer, or load a state"
            } else {
                ""
            };
            let path = self.paths.first().map(|path| format!("parameter '{path}': ")).unwrap_or_default();
            Error::ensure(wrong.is_empty(), ErrorKind::Device, name, || format!("{path}{wrong}"))?;
        }
        let own = self.parameter.shape();
        check_gradient(name, grad.sizes(), &own.sizes, self.parameter.dtype())?;
        check_names(name, &grad, own).map_err(|error| match self.paths.first() {
            Some(path) => error.context(format!("parameter '{path}': ")),
            None => error,
        })?;
        Ok(true)
    }

    /// The beginning of an error about the gradient.
    pub(super) fn of_gradient(&self) -> String {
        match self.paths.first() {
            Some(path) => format!("the gradient of '{path}': "),
            None => "a gradient: ".into(),
        }
    }

    /// Calls `f` with the number of the group and the parameter, if it has a gradient.
    pub(super) fn step(
        &mut self,
        groups: &dyn Groups,
        f: &mut dyn FnMut(usize, ParameterStep<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some(grad) = self.parameter.grad() else { return Ok(()) };
        let Member { parameter, group, steps, counted, master, slots, .. } = self;
        let part = part_of(groups, parameter);
        let (name, group) = (groups.name(), *group);
        let number = if *counted { *steps } else { steps.saturating_add(1) };
        let grad = whole(part, grad.value())?;
        let mut change = |value: &mut NamedTensor| {
            let (dtype, _device) = (value.dtype(), OnDevice::of(value));
            check_gradient(name, grad.sizes(), value.sizes(), dtype)?;
            let fresh = make_slots(groups, group, slots, value)?;
            let grad = grad.to(dtype.compute())?.contiguous()?.unnamed();
            for (_, slot) in &*slots {
                holding(Held::State, slot);
            }
            let shape = value.shape();
            let named = slots.len() - groups.slots(group, value.sizes()).len();
            master::change(master, value, &mut |param| {
                let slots = Slots { method: name, slots: &mut slots[named..] };
                f(group, ParameterStep { number, fresh, param, grad: &grad, slots })
            })?;
            let message = || format!("a step changed a parameter of {shape} to {}", value.shape());
            Error::ensure(value.sizes() == &shape.sizes[..], ErrorKind::Shape, name, message)
        };
        parameter.update_in_buffer(|value| in_whole(part, value, &mut change))?;
        (*steps, *counted) = (number, true);
        Ok(())
    }

    /// The same parameter with its state on the meta device.
    pub(super) fn planned(&self, without: &dyn Fn(&NamedTensor) -> NamedTensor) -> Member {
        let Member { parameter, group, paths, steps, counted, master, slots } = self;
        Member {
            parameter: parameter.clone(),
            paths: paths.clone(),
            master: master.as_ref().map(|master| Master { value: without(&master.value), rounded: None }),
            slots: crate::list(slots.iter().map(|(name, slot)| (name.clone(), without(slot)))),
            group: *group,
            steps: *steps,
            counted: *counted,
        }
    }

    /// A tensor with the dims of the parameter, or of the whole that it is a part of.
    pub(super) fn dims(&self) -> Result<NamedTensor> {
        let own = self.parameter.tensor().into_value();
        self.parameter.part().map_or(Ok(own.clone()), |part| part.dims(&own))
    }

    /// The state, of the whole if the parameter is a part.
    ///
    /// # Errors
    /// Those of the messages between processes.
    pub(super) fn state(&self) -> Result<ParameterState> {
        let (value, own, mut slots) = (self.dims()?, self.parameter.shape().sizes, BTreeMap::new());
        let whole = |x: &NamedTensor| match self.parameter.part() {
            Some(part) if x.sizes() == &own[..] && own[..] != *value.sizes() => part.whole(x),
            _ => Ok(x.clone()),
        };
        for (name, slot) in &self.slots {
            insert(&mut slots, name.clone(), whole(slot)?);
        }
        let master = self.master.as_ref().map(|master| whole(&master.value)).transpose()?;
        Ok(ParameterState {
            path: self.paths.first().cloned(),
            sizes: value.sizes().to_vec(),
            names: value.names().clone(),
            steps: self.steps,
            master,
            slots,
        })
    }
}

/// What a parameter is a part of, if a step has to see the whole.
pub(super) fn part_of<'p>(groups: &dyn Groups, parameter: &'p Parameter) -> Option<&'p dyn PartOf> {
    parameter.part().filter(|_| groups.needs_whole())
}

/// A tensor, or the whole that it is a part of.
pub(super) fn whole<'t>(part: Option<&dyn PartOf>, own: &'t NamedTensor) -> Result<Cow<'t, NamedTensor>> {
    part.map_or(Ok(Cow::Borrowed(own)), |part| part.whole(own).map(Cow::Owned))
}

/// Changes a tensor, or the whole that it is a part of.
pub(super) fn in_whole(
    part: Option<&dyn PartOf>,
    own: &mut NamedTensor,
    f: &mut dyn FnMut(&mut NamedTensor) -> Result<()>,
) -> Result<()> {
    let Some(part) = part else { return f(own) };
    let mut whole = part.whole(own)?;
    f(&mut whole)?;
    *own = part.mine(&whole)?;
    Ok(())
}

/// The names of a slot: those of the parameter if it has the same sizes.
#[inline(never)]
pub(super) fn slot_names(sizes: &[usize], value: &NamedTensor) -> Names {
    if sizes == value.sizes() { value.names().clone() } else { Names::none() }
}

/// Moves the slots that are `named` behind those that are not, in the order of the names.
pub(super) fn sort_slots(named: &[&str], slots: &mut SlotList) {
    for name in named {
        if let Some(place) = slots.iter().position(|(own, _)| own == name) {
            let slot = slots.remove(place);
            slots.push(slot);
        }
    }
}

/// How many elements of a gradient a step looks at, which costs next to nothing.
const LOOKED_AT: usize = 64;

/// Whether the first elements of a gradient are finite. If the loss is NaN, so are all gradients of it.
fn begins_finite(grad: &NamedTensor) -> bool {
    let dtype = grad.dtype();
    if dtype == DType::F32 && grad.is_contiguous() {
        grad.as_slice::<f32>().is_ok_and(|all| all.iter().take(LOOKED_AT).all(|x| x.is_finite()))
    } else if dtype == DType::F64 && grad.is_contiguous() {
        grad.as_slice::<f64>().is_ok_and(|all| all.iter().take(LOOKED_AT).all(|x| x.is_finite()))
    } else {
        // Of other dtypes and orders the first element alone.
        let first = || (0..grad.ndim()).try_fold(grad.clone(), |x, _| x.select(0, 0))?.item::<f64>();
        grad.numel() == 0 || first().is_ok_and(f64::is_finite)
    }
}

fn check_gradient(name: &'static str, grad: &[usize], param: &[usize], dtype: DType) -> Result<()> {
    let message = || format!("a parameter must be of a floating point dtype, not {dtype}");
    Error::ensure(dtype.is_floating_point(), ErrorKind::DType, name, message)?;
    let message = || format!("a gradient of {grad:?} for a parameter of {param:?}");
    Error::ensure(grad == param, ErrorKind::Shape, name, message)
}

/// Checks that a gradient with names has those of its parameter.
fn check_names(name: &'static str, grad: &Tensor, own: Shape) -> Result<()> {
    let ndim = own.sizes.len();
    if apart(grad.names().iter(ndim), own.names.iter(ndim)).is_none() {
        return Ok(());
    }
    let lists = [grad.names().list(ndim), own.names.list(ndim)];
    let message = format!("a gradient with the names {} for a parameter with {}", lists[0], lists[1]);
    Err(Error::new(ErrorKind::NameMismatch, name, message).with_operands([grad.shape(), own]).with_repair(
        "p.set_grad(Some(g.align_as(&p.tensor())?))?, or g.rename(None)? if the positions are right",
    ))
}

/// Creates the missing slots of a parameter of a group. Returns whether all of its slots are new.
fn make_slots(groups: &dyn Groups, group: usize, slots: &mut SlotList, value: &NamedTensor) -> Result<bool> {
    let dtype = value.dtype().compute();
    let mut made = 0;
    let named = groups.slots(group, value.sizes());
    for &slot in named {
        let (sizes, start) = groups.slot(group, slot, value.sizes());
        match slots.iter_mut().find(|(name, _)| name == slot) {
            Some((_, kept)) if kept.sizes() != sizes => {
                let (kept, now) = (kept.sizes(), value.sizes());
                let message = format!(
                    "{slot} has sizes {kept:?}, for a parameter that now has {now:?}; other sizes need a new optimizer"
                );
                return Err(Error::new(ErrorKind::Shape, groups.name(), message));
            }
            Some((_, kept)) if kept.dtype() != dtype => *kept = kept.to(dtype)?,
            Some(_) => {}
            None => {
                let names = slot_names(&sizes, value);
                let shape = Shape { sizes: sizes.into(), names };
                slots.push((slot.into(), NamedTensor::full_as(groups.name(), shape, start.into(), dtype)?));
                made += 1;
            }
        }
    }
    if made > 0 {
        sort_slots(named, slots);
    }
    Ok(made == named.len())
}
