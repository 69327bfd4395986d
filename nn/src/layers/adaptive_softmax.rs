//! Log-softmax over many classes, of which few are frequent.

use super::*;
use crate::functional::embedding::check_integers;
use crate::functional::no_class;
use namegrad_core::{Device, OnDevice};

const LAYER: &str = "AdaptiveLogSoftmaxWithLoss";
const MOST_CLUSTERS: usize = 1 << 12;

/// Log-softmax over many classes, with the mean negative log likelihood of the targets. Classes are sorted by
/// frequency, the most frequent first, and split into clusters at the `cutoffs`. Scores are computed for the
/// first cluster and for each other cluster as a whole; within a cluster, only for inputs whose target is in
/// it, and with fewer features the rarer the cluster.
///
/// # Shapes
/// - `x`: any dims that include the input dim, in any position
/// - `target`: integers, the other dims of `x`, in their order
/// - [`AdaptiveLogSoftmax::output`]: the other dims; [`AdaptiveLogSoftmax::loss`]: one number
///
/// If the layer's input dim or the last dim of `x` is unnamed, the last dim of `x` is the input dim.
///
/// # Parameters
/// - `head.weight`: `[classes, in]`, for the first cluster and a class for each other one; also `head.bias`
///   with [`head_bias`](AdaptiveLogSoftmaxWithLossBuilder::head_bias)
/// - `tail.0.0.weight`: `[projection, in]`, and `tail.0.1.weight`: `[classes, projection]`, for each other
///   cluster; all initialized as in [`Linear`]
///
/// # Source
/// Grave, Joulin, Cissé, Grangier, Jégou, *Efficient softmax approximation for GPUs* (2017), in the form of
/// `torch.nn.AdaptiveLogSoftmaxWithLoss`.
///
/// # Examples
/// ```
/// use namegrad::nn::AdaptiveLogSoftmaxWithLoss;
/// use namegrad::prelude::*;
/// let softmax = AdaptiveLogSoftmaxWithLoss::new(("embed", 16), ("class", 1000), [10, 100])?;
/// let x = Tensor::randn([("N", 4), ("embed", 16)])?;
/// let target = Tensor::new([3, 50, 999, 0])?.refine_names(["N"])?;
/// let found = softmax.forward(&x, &target)?;
/// found.loss.backward()?;
/// let all = softmax.log_prob(&x)?; // [N, class]
/// let picked = all.gather(&target.unsqueeze(1)?.refine_names(["N", "class"])?, "class")?.squeeze("class")?;
/// assert!(found.output.allclose(&picked)?);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, dims = format!("{}, {:?}", self.dims(), &self.ends[1..self.ends.len() - 1]))]
pub struct AdaptiveLogSoftmaxWithLoss {
    head: Linear,
    tail: ModuleList<Sequential>,
    input: Named,
    classes: Named,
    /// The ends of the clusters, from 0 to the number of classes.
    ends: Vec<usize>,
    path: ModulePath,
}

/// A result of [`AdaptiveLogSoftmaxWithLoss::forward`].
#[derive(Clone, Debug)]
pub struct AdaptiveLogSoftmax {
    /// The log probability of each target.
    pub output: Tensor,
    /// The mean negative log probability.
    pub loss: Tensor,
}

/// A builder for [`AdaptiveLogSoftmaxWithLoss`]; see [`AdaptiveLogSoftmaxWithLoss::builder`].
///
/// ```
/// use namegrad::nn::AdaptiveLogSoftmaxWithLoss;
/// use namegrad::prelude::*;
/// let softmax = AdaptiveLogSoftmaxWithLoss::builder(8, 20, [5]).div_value(2.0).head_bias(true).build()?;
/// let paths: Vec<_> = softmax.named_parameters().into_iter().map(|(path, _)| path).collect();
/// assert_eq!(paths, ["head.weight", "head.bias", "tail.0.0.weight", "tail.0.1.weight"]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Setters)]
struct AdaptiveLogSoftmaxWithLossConfig {
    /// The input dim, a size with or without a name.
    input: Named,
    /// The dim of the classes, a size with or without a name.
    classes: Named,
    /// The classes at which the clusters after the first begin.
    #[setters(given)]
    cutoffs: Vec<usize>,
    /// By what the number of features is divided from one cluster to the next; the default is 4.
    #[setters(default = 4.0)]
    div_value: f64,
    /// Whether the scores of the first cluster and of the others have a bias; the default is `false`.
    head_bias: bool,
    /// The dtype of the parameters; the default is the default dtype.
    dtype: DType,
}

impl AdaptiveLogSoftmaxWithLossBuilder {
    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`]; [`ErrorKind::Value`] unless the cutoffs increase, from at least 1 to less
    /// than the number of classes, and for a `div_value` that is not positive; [`ErrorKind::DType`] for a
    /// dtype that is not floating-point.
    #[track_caller]
    pub fn build(self) -> Result<AdaptiveLogSoftmaxWithLoss> {
        made(LAYER, self.config()?.layer())
    }
}

impl AdaptiveLogSoftmaxWithLossConfig {
    /// A layer with new parameters.
    fn layer(self) -> Result<AdaptiveLogSoftmaxWithLoss> {
        let AdaptiveLogSoftmaxWithLossConfig { input, classes, cutoffs, div_value, head_bias, dtype } = self;
        let (clusters, ends) = (cutoffs.len(), [&[0], &cutoffs[..], &[classes.1]].concat());
        let fit = (1..=MOST_CLUSTERS).contains(&clusters) && ends.is_sorted_by(|a, b| a < b);
        let (some, more) = (&cutoffs[..clusters.min(8)], if clusters > 8 { ", .." } else { "" });
        fit.or_value(format_args!(
            "cutoffs must increase, from at least 1 to less than the {} classes, and be at most {MOST_CLUSTERS}, got {some:?}{more}",
            classes.1
        ))?;
        let text = dim_text(input);
        (input.1 > 0).or_value(format_args!("the input dim must have a size greater than 0, got {text}"))?;
        (div_value > 0.0).or_value(format_args!("div_value must be greater than 0, got {div_value}"))?;
        let linear = |from: Named, to: Named, bias: bool| {
            Linear::builder(open(from), open(to)).bias(bias).dtype(dtype).build()
        };
        let head = linear(input, (classes.0, cutoffs[0] + clusters), head_bias)?;
        let projection = input.0.map(|_| Name::new("projection")).transpose()?;
        let mut tail = ModuleList::new();
        for cluster in 1..=clusters {
            let between = (projection, (input.1 as f64 / div_value.powi(cluster as i32)).floor() as usize);
            let last = (classes.0, ends[cluster + 1] - ends[cluster]);
            let first = linear(input, between, false)?;
            tail.push(Sequential::new().then(first).then(linear(between, last, false)?));
        }
        Ok(AdaptiveLogSoftmaxWithLoss { head, tail, input, classes, ends, path: ModulePath::new() })
    }
}

impl AdaptiveLogSoftmaxWithLoss {
    /// The log probability of each target, and the mean loss.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` has no input dim; [`ErrorKind::Shape`] if it has another size, or
    /// the target does not have the other dims; [`ErrorKind::NameMismatch`] if it names them differently;
    /// [`ErrorKind::DType`] for targets that are not integers; [`ErrorKind::Index`] for a class that does not
    /// exist, with its position; [`ErrorKind::Value`] for an empty batch.
    #[track_caller]
    pub fn forward(&self, x: &Tensor, target: &Tensor) -> Result<AdaptiveLogSoftmax> {
        self.path.run(LAYER, &[x, target], &|_: &Running| {
            let _device = OnDevice::of(x.value());
            let dim = self.place(x)?;
            let rest = x.value().select(dim, 0)?;
            let (got, expected) = (target.sizes(), rest.sizes());
            (got == expected).or_shape(format_args!(
                "expected one class for each input, of sizes {expected:?}, got {got:?}"
            ))?;
            (target.numel() > 0).or_value("there is no mean loss of an empty batch")?;
            let names = rest.unified_names(LAYER, "broadcast", target.value())?;
            let classes = self.classes_of(target)?;
            let rows = x.movedim(dim, -1)?.rename(None)?.reshape([classes.len(), self.input.1])?;
            let rows = with_names(rows, &Names::new(LAYER, vec![None, self.input.0])?)?;
            // For each cluster, the rows whose target is in it, and the class of each within it.
            let mut inside = vec![(Vec::new(), Vec::new()); self.ends.len() - 1];
            let mut of_head = Vec::with_capacity(classes.len());
            for (row, class) in classes.iter().enumerate() {
                let cluster = self.ends[1..].partition_point(|end| end <= class);
                inside[cluster].0.push(row as i64);
                inside[cluster].1.push((class - self.ends[cluster]) as i64);
                of_head.push(if cluster == 0 { *class } else { self.ends[1] + cluster - 1 } as i64);
            }
            let mut output = picked(&self.head, &rows, &of_head)?;
            for (layers, (index, of_cluster)) in self.tail.iter().zip(&inside[1..]) {
                if !index.is_empty() {
                    let index = tensor_of(index, &[index.len()])?;
                    let found = picked(layers, &rows.index_select(&index, 0)?, of_cluster)?;
                    output = output.index_add(&index, &found, 0)?;
                }
            }
            let loss = output.mean(..)?.neg()?;
            let output = output.reshape(rest.sizes())?;
            Ok(AdaptiveLogSoftmax { output: with_names(output, &names)?, loss })
        })
    }

    /// The log probabilities of all classes: the dims of `x`, with that of the classes in place of the input
    /// dim.
    ///
    /// # Errors
    /// Same as [`forward`](Self::forward) about `x`.
    #[track_caller]
    pub fn log_prob(&self, x: &Tensor) -> Result<Tensor> {
        self.path.run(LAYER, &[x], &|_: &Running| {
            let dim = self.place(x)?;
            let head = self.head.forward(x)?.log_softmax(dim)?;
            let mut parts = vec![head.narrow(dim, 0, self.ends[1])?];
            for (cluster, layers) in self.tail.iter().enumerate() {
                let of_cluster = head.narrow(dim, self.ends[1] + cluster, 1)?;
                parts.push(layers.forward(x)?.log_softmax(dim)?.add(&of_cluster)?);
            }
            Tensor::cat(&parts, dim)
        })
    }

    /// The class with the highest probability: the dims of `x` without the input dim.
    ///
    /// # Errors
    /// Same as [`forward`](Self::forward) about `x`.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Result<Tensor> {
        let all = self.log_prob(x)?;
        all.argmax(self.place(x)?)
    }

    /// The position of the input dim.
    fn place(&self, x: &Tensor) -> Result<usize> {
        let of = Finder { layer: LAYER, path: &self.path, dims: &|| self.dims() };
        of.place(x, self.input, x.ndim().checked_sub(1))
    }

    /// The classes of all targets, checked.
    fn classes_of(&self, target: &Tensor) -> Result<Vec<usize>> {
        check_integers(("classes", "target"), target)?;
        let target = &target.to(DType::I64)?;
        if target.device() == Device::Meta {
            // As many of each cluster.
            return Ok(crate::list((0..target.numel()).map(|row| self.ends[row % (self.ends.len() - 1)])));
        }
        let classes = target.to_vec::<i64>()?;
        match classes.iter().position(|class| !(0..self.classes.1 as i64).contains(class)) {
            Some(at) => Err(no_class(target, at, classes[at], self.classes.1)),
            None => Ok(whole(&classes)),
        }
    }

    fn dims(&self) -> String {
        format!("{} to {}", dim_text(self.input), dim_text(self.classes))
    }
}

/// The log probability of one class for each row, by a layer that gives the scores of all.
fn picked(layer: &dyn Layer, rows: &Tensor, classes: &[i64]) -> Result<Tensor> {
    let index = tensor_of(classes, &[classes.len(), 1])?;
    layer.forward(rows)?.rename(None)?.log_softmax(1)?.gather(&index, 1)?.squeeze(1)
}
