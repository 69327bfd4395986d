//! The kernels of [`standardize`](NamedTensor::standardize): checks, layout, and the arithmetic on the
//! statistics between the loops of `crate::cpu::standardize`.
use crate::cpu::standardize::{AffineMap, RunLayout, Terms, sums};
use crate::device::is_on_meta;
use crate::dim::{Positions, sort_dims};
use crate::dtype::{DType, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::names::Names;
use crate::ops::norm::kernels::check_parameter;
use crate::ops::shape::kernels::reorder;
use crate::tensor::{NamedTensor, Unwritten};

const OP: &str = "standardize";

/// The elements that share their statistics: groups of the channels along `dim`, together with the dims
/// `over`, which may contain `dim`.
#[derive(Clone, Copy)]
pub(crate) struct ChannelGroups<'a> {
    pub(crate) dim: usize,
    pub(crate) over: &'a [usize],
    pub(crate) groups: usize,
}

/// A tensor as the loops see it.
struct RunPlan {
    /// The order of the dims in which the tensor is dense.
    order: Positions,
    layout: RunLayout,
    channels_per_group: usize,
    groups: usize,
    /// Whether each channel has one statistic for all `outer`.
    by_channel: bool,
    /// The dims of the statistics in the order of the loops; the channel dim is the last.
    kept: Positions,
    /// The number of statistics, and of the elements of each.
    count: usize,
    n: usize,
}

impl RunPlan {
    fn new(x: &NamedTensor, how: ChannelGroups<'_>) -> RunPlan {
        let ChannelGroups { dim, over, groups } = how;
        let sizes = x.sizes();
        let (mut summed, mut kept) = (Positions::new(), Positions::new());
        for other in 0..x.ndim() {
            match over.contains(&other) {
                _ if other == dim => {}
                true => summed.push(other),
                false => kept.push(other),
            }
        }
        let by_channel = kept.is_empty() && groups == sizes[dim];
        let mut order = kept.clone();
        order.push(dim);
        order.extend_from_slice(&summed);
        if by_channel {
            sort_dims(&mut order, &|a, b| a < b);
        }
        let place = order.iter().position(|own| *own == dim).unwrap_or_default();
        let product = |dims: &[usize]| dims.iter().map(|dim| sizes[*dim]).product::<usize>();
        let channels = sizes[dim];
        let channels_per_group = channels / groups;
        let n = product(&summed) * channels_per_group;
        let count = product(&kept) * groups;
        kept.push(dim);
        let layout = RunLayout { channels, inner: product(&order[place + 1..]) };
        RunPlan { order, layout, channels_per_group, groups, by_channel, kept, count, n }
    }

    #[track_caller]
    fn dense(&self, x: &NamedTensor, dtype: DType) -> Result<NamedTensor> {
        reorder(&x.unnamed(), &self.order).to(dtype)?.contiguous()
    }

    /// The sizes of a tensor with this many elements along the channel dim, in the order of the loops.
    fn sizes(&self, x: &NamedTensor, dims: &[usize], channels: usize) -> Vec<usize> {
        let channel = self.kept[self.kept.len() - 1];
        let mut sizes = Vec::with_capacity(dims.len());
        for dim in dims {
            sizes.push(if *dim == channel { channels } else { x.sizes()[*dim] });
        }
        sizes
    }

    /// The statistics as a tensor whose dims are those of `x` that are left.
    #[track_caller]
    fn statistic(&self, x: &NamedTensor, numbers: &[f64], dtype: DType) -> Result<NamedTensor> {
        let value = numbers_as(numbers, &self.sizes(x, &self.kept, self.groups), dtype)?;
        let mut sorted = self.kept.clone();
        sort_dims(&mut sorted, &|a, b| a < b);
        let mut names = Vec::new();
        for dim in &sorted {
            names.push(x.name(*dim));
        }
        Ok(reorder(&value, &places(&self.kept, &sorted)).with_names(Names::new(OP, names)?))
    }

    /// The numbers of a statistic, or of its gradient, in the order of the loops.
    #[track_caller]
    fn numbers(&self, statistic: &NamedTensor) -> Result<Vec<f64>> {
        let mut sorted = self.kept.clone();
        sort_dims(&mut sorted, &|a, b| a < b);
        let order = places(&sorted, &self.kept);
        reorder(&statistic.unnamed(), &order).to(DType::F64).and_then(numbers_of)
    }

    fn back(&self, y: &NamedTensor) -> NamedTensor {
        let mut inverse = self.order.clone();
        self.order.iter().enumerate().for_each(|(to, from)| inverse[*from] = to);
        reorder(y, &inverse)
    }

    /// The number of runs, each of which has its own numbers.
    fn runs(&self, x: &NamedTensor) -> usize {
        match self.by_channel {
            true => self.layout.channels,
            false => x.numel().checked_div(self.layout.inner).unwrap_or(0),
        }
    }

    /// The statistic that run number `run` belongs to.
    fn group_of(&self, run: usize) -> usize {
        if self.by_channel { run % self.layout.channels } else { run / self.channels_per_group }
    }

    /// The sum over the runs of each statistic, each times the number of its channel.
    fn by_group(&self, sums: &[f64], weight: &dyn Fn(usize) -> f64) -> Vec<f64> {
        let mut total = vec![0.0; self.count];
        for (run, sum) in sums.iter().enumerate() {
            total[self.group_of(run)] += sum * weight(run % self.layout.channels);
        }
        total
    }

    /// A number for each run, in the dtype of the loops: `f(run, its statistic, its channel)`.
    #[track_caller]
    fn of_runs(&self, x: &NamedTensor, dtype: DType, f: &dyn Fn(usize, usize) -> f64) -> Result<NamedTensor> {
        let mut numbers = vec![0.0; self.runs(x)];
        for (run, number) in numbers.iter_mut().enumerate() {
            *number = f(self.group_of(run), run % self.layout.channels.max(1));
        }
        numbers_as(&numbers, &[numbers.len()], dtype)
    }

    /// The sums over each run, as `f64`.
    #[track_caller]
    fn sums(
        &self,
        terms: Terms,
        x: &NamedTensor,
        g: &NamedTensor,
        mean: Option<&NamedTensor>,
    ) -> Result<[Vec<f64>; 2]> {
        if is_on_meta() {
            return Ok([(); 2].map(|()| vec![0.0; self.runs(x)]));
        }
        Ok(dispatch!(x.dtype(), float T => {
            let mean = mean.map(|mean| mean.elements::<T>()).transpose()?.unwrap_or(&[]);
            sums(terms, x.elements::<T>()?, g.elements::<T>()?, self.layout, mean, self.by_channel)
        }, else unreachable!("checked to be a float")))
    }
}

/// The places in `all` of `some` of its dims.
fn places(all: &[usize], some: &[usize]) -> Positions {
    let mut places = Positions::new();
    for dim in some {
        places.push(all.iter().position(|own| own == dim).unwrap_or_default());
    }
    places
}

/// A tensor of numbers that are computed in `f64`.
#[track_caller]
fn numbers_as(numbers: &[f64], sizes: &[usize], dtype: DType) -> Result<NamedTensor> {
    NamedTensor::from_slice(numbers, sizes)?.to(dtype)
}

/// The elements of a tensor of `f64`; zeros on the meta device, where results do not depend on them.
#[track_caller]
fn numbers_of(x: NamedTensor) -> Result<Vec<f64>> {
    if is_on_meta() { Ok(vec![0.0; x.numel()]) } else { x.to_vec() }
}

/// The numbers of the channels, or `default` for each.
#[track_caller]
fn of_channels(parameter: Option<&NamedTensor>, default: f64, channels: usize) -> Result<Vec<f64>> {
    match parameter {
        Some(parameter) => parameter.to(DType::F64).and_then(numbers_of),
        None => Ok(vec![default; channels]),
    }
}

#[track_caller]
pub(crate) fn forward(
    x: &NamedTensor,
    weight: Option<&NamedTensor>,
    bias: Option<&NamedTensor>,
    how: ChannelGroups<'_>,
    eps: f64,
) -> Result<(NamedTensor, NamedTensor, NamedTensor)> {
    check(x, weight, bias, how)?;
    let (plan, dtype) = (RunPlan::new(x, how), x.dtype().compute());
    let dense = plan.dense(x, dtype)?;
    // The lists below: numbers of statistics, of channels and of runs.
    let longest = plan.count.max(plan.layout.channels).max(plan.runs(x));
    NamedTensor::check_room(OP, longest, 8 * size_of::<f64>())?;
    let n = plan.n as f64;
    let mean_of = |totals: &[f64]| -> Vec<f64> {
        {
            let mut mean = plan.by_group(totals, &|_| 1.0);
            mean.iter_mut().for_each(|sum| *sum /= n);
            mean
        }
    };
    let inner = plan.layout.inner as f64;
    let (mean, squares) = match plan.layout.inner > 1 {
        true => {
            // One pass over the input: the squares around the mean of a run, and what the mean of all adds.
            let [totals, mut squares] = plan.sums(Terms::Moments, &dense, &dense, None)?;
            let mean = mean_of(&totals);
            for (run, (square, total)) in squares.iter_mut().zip(&totals).enumerate() {
                *square += inner * (total / inner - mean[plan.group_of(run)]).powi(2);
            }
            (mean, squares)
        }
        false => {
            let [totals, _] = plan.sums(Terms::Values, &dense, &dense, None)?;
            let mean = mean_of(&totals);
            let centers = plan.of_runs(x, dtype, &|group, _| mean[group])?;
            let [squares, _] = plan.sums(Terms::Squares, &dense, &dense, Some(&centers))?;
            (mean, squares)
        }
    };
    let centers = plan.of_runs(x, dtype, &|group, _| mean[group])?;
    let var = mean_of(&squares);
    let scale = of_channels(weight, 1.0, plan.layout.channels)?;
    let shift = of_channels(bias, 0.0, plan.layout.channels)?;
    let across = plan.of_runs(x, dtype, &|group, channel| scale[channel] / (var[group] + eps).sqrt())?;
    let shift = plan.of_runs(x, dtype, &|_, channel| shift[channel])?;
    let y = Unwritten::like(OP, &dense, dtype)?;
    let y = dispatch!(dtype, float T => {
        let map = AffineMap {
            x: dense.elements::<T>()?,
            g: None,
            mean: centers.elements()?,
            across: across.elements()?,
            shift: shift.elements()?,
        };
        y.write(|y| map.write(plan.layout, y))
    }, else unreachable!("checked to be a float"));
    let y = plan.back(&y.into_dtype(x.dtype())?).with_names(x.names().clone());
    Ok((y, plan.statistic(x, &mean, dtype)?, plan.statistic(x, &var, dtype)?))
}

#[track_caller]
fn check(
    x: &NamedTensor,
    weight: Option<&NamedTensor>,
    bias: Option<&NamedTensor>,
    how: ChannelGroups<'_>,
) -> Result<()> {
    x.check_float(OP)?;
    let ChannelGroups { dim, groups, .. } = how;
    if x.ndim() == 0 {
        let message = "expected a dim of channels, but the input is one number";
        return Err(Error::about(&[x], ErrorKind::Shape, OP, message));
    }
    let channels = x.sizes()[dim];
    // Any number divides 0, but each group has a statistic, which takes memory.
    if groups == 0 || groups > channels.max(1) || !channels.is_multiple_of(groups) {
        let message = format!("{channels} channels cannot be split into {groups} groups of one size");
        return Err(Error::about(&[x], ErrorKind::Shape, OP, message));
    }
    let dims: Positions = crate::list([dim].into_iter());
    for (name, parameter) in [("weight", weight), ("bias", bias)] {
        if let Some(parameter) = parameter {
            check_parameter(OP, x, name, parameter, &dims)?;
        }
    }
    if let (Some(weight), Some(bias)) = (weight, bias) {
        weight.check_alike(OP, ["weight", "bias"], bias)?;
    }
    Ok(())
}

/// The results of the forward pass that the backward pass needs.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Backward<'a> {
    /// The gradients of the result, the mean and the variance.
    pub g: [&'a NamedTensor; 3],
    /// The input.
    pub x: &'a NamedTensor,
    /// The weight, if there was one.
    pub weight: Option<&'a NamedTensor>,
    /// The mean and the variance.
    pub moments: [&'a NamedTensor; 2],
    /// The channel dim.
    pub dim: usize,
    /// The dims that were normalized over.
    pub over: &'a [usize],
    /// The groups of the channels.
    pub groups: usize,
    /// The number that was added to the variance.
    pub eps: f64,
}

impl Backward<'_> {
    /// The gradients of the input, the weight and the bias that are wanted.
    ///
    /// With `gw` the gradient times the weight, `x̃ = x - mean` and `n` elements in a group, that of the
    /// input is `rstd gw - rstd mean(gw) - rstd³ x̃ mean(gw x̃)`, plus `g_mean / n` and `2 x̃ g_var / n`;
    /// that of the weight is `Σ g x̃ rstd` and that of the bias `Σ g`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    #[track_caller]
    pub fn gradients(self, wants: [bool; 3]) -> Result<[Option<NamedTensor>; 3]> {
        let Backward { g: [g, g_mean, g_var], x, weight, moments, dim, over, groups, eps } = self;
        let (plan, dtype) = (RunPlan::new(x, ChannelGroups { dim, over, groups }), x.dtype().compute());
        let (dense, g) = (plan.dense(x, dtype)?, plan.dense(g, dtype)?);
        let [mean, var] = [plan.numbers(moments[0])?, plan.numbers(moments[1])?];
        let [g_mean, g_var] = [plan.numbers(g_mean)?, plan.numbers(g_var)?];
        let (n, channels) = (plan.n as f64, plan.layout.channels);
        let rstd: Vec<f64> = crate::list(var.iter().map(|var| 1.0 / (var + eps).sqrt()));
        let centers = plan.of_runs(x, dtype, &|group, _| mean[group])?;
        let [of_g, of_product] = plan.sums(Terms::Products, &dense, &g, Some(&centers))?;
        let scale = of_channels(weight, 1.0, channels)?;
        let of_input = match wants[0] {
            false => None,
            true => {
                let along = plan.of_runs(x, dtype, &|group, channel| rstd[group] * scale[channel])?;
                let sums = plan.by_group(&of_g, &|channel| scale[channel]);
                let products = plan.by_group(&of_product, &|channel| scale[channel]);
                let across = plan.of_runs(x, dtype, &|group, _| {
                    (2.0 * g_var[group] - rstd[group].powi(3) * products[group]) / n
                })?;
                let shift =
                    plan.of_runs(x, dtype, &|group, _| (g_mean[group] - rstd[group] * sums[group]) / n)?;
                let dx = Unwritten::like(OP, &dense, dtype)?;
                let dx = dispatch!(dtype, float T => {
                    let map = AffineMap {
                        x: dense.elements::<T>()?,
                        g: Some((g.elements()?, along.elements()?)),
                        mean: centers.elements()?,
                        across: across.elements()?,
                        shift: shift.elements()?,
                    };
                    dx.write(|dx| map.write(plan.layout, dx))
                }, else unreachable!("only floats have gradients"));
                Some(plan.back(&dx.into_dtype(x.dtype())?))
            }
        };
        let mut sums = [vec![0.0; channels], vec![0.0; channels]];
        if channels > 0 {
            for (run, (of_g, of_product)) in of_g.iter().zip(&of_product).enumerate() {
                sums[0][run % channels] += of_product * rstd.get(plan.group_of(run)).copied().unwrap_or(0.0);
                sums[1][run % channels] += of_g;
            }
        }
        let parameter = |wanted: bool, sums: &[f64]| match wanted {
            true => numbers_as(sums, &[channels], dtype).map(Some),
            false => Ok(None),
        };
        Ok([of_input, parameter(wants[1], &sums[0])?, parameter(wants[2], &sums[1])?])
    }
}
