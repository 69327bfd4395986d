//! Draws random calls of any op in the registry: tensors by kind and arguments by type, from the row of the
//! op. Most of the calls are valid.

use namegrad::core::Category;
use namegrad::core::random::Generator;
use namegrad::ops::{ArgInfo, Given, Op, TensorInfo, TensorKind, Value};
use namegrad::prelude::*;
use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::SystemTime;

/// The seed of the draws: a new one in each run, unless the variable `NAMEGRAD_SEED` gives one.
pub static SEED: LazyLock<u64> = LazyLock::new(|| match std::env::var("NAMEGRAD_SEED") {
    Ok(seed) => seed.parse().expect("NAMEGRAD_SEED is an integer"),
    Err(_) => u64::from(SystemTime::UNIX_EPOCH.elapsed().expect("a clock after 1970").subsec_nanos()),
});

/// A call: the tensors and arguments, by name.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The tensors by name; a list has several.
    pub tensors: Vec<(&'static str, Vec<Tensor>)>,
    /// The arguments by name.
    pub args: Vec<(&'static str, Value)>,
    lists: bool,
}

impl Drawn {
    /// A call with these tensors and arguments.
    pub fn with(tensors: Vec<(&'static str, Tensor)>, args: Vec<(&'static str, Value)>) -> Drawn {
        let tensors = tensors.into_iter().map(|(name, x)| (name, vec![x])).collect();
        Drawn { tensors, args, lists: false }
    }

    /// A call of `op` that starts with these tensors; the other tensors and the arguments are drawn.
    pub fn of(op: &Op, first: &[Tensor], draw: &mut Draw) -> Drawn {
        let (info, x) = (op.info, &fitted(op, &first[0]));
        let mut args = Vec::new();
        for arg in info.args {
            if arg.default.is_none() || draw.below(3) > 0 {
                args.push((arg.name, draw.value(arg, x)));
            }
            if arg.ty == "Reduced" && draw.below(2) == 0 {
                args.push(("keepdim", true.into()));
            }
        }
        let dim = args.iter().find_map(|(name, value)| match value {
            Value::Int(dim) if *name == "dim" && x.ndim() > 0 => {
                Some(dim.rem_euclid(x.ndim() as i64) as usize)
            }
            Value::Text(text) if *name == "dim" => {
                (0..x.ndim()).find(|dim| x.name(*dim).is_some_and(|name| name.as_str() == text))
            }
            _ => None,
        });
        let mut drawn = Drawn { tensors: Vec::new(), args, lists: false };
        for (at, tensor) in info.tensors.iter().enumerate() {
            let count = if tensor.kind == TensorKind::List { 1 + draw.below(3) } else { 1 };
            let all = (0..count).map(|k| match first.get(at + k) {
                _ if at > 0 && is_table(op) => draw.of_table(tensor.name, x),
                _ if at > 0 && is_of_channels(op) => {
                    let channels = x.sizes().get(dim.unwrap_or(1)).copied().unwrap_or(1);
                    draw.tensor(&[channels], x.dtype())
                }
                _ if tensor.name == "pivots" => draw.pivots(x),
                _ if at > 0 && info.name == "nn.attention" => draw.of_attention(tensor.name, x),
                _ if at > 0 && info.name == "recurrent" => draw.of_cell(tensor.name, x, &drawn.args),
                Some(_) if at + k == 0 && tensor.kind != TensorKind::Mask => x.clone(),
                Some(x) if tensor.kind != TensorKind::Mask && info.by_element => x.clone(),
                _ => draw.other(tensor, info.by_element, x, dim, &drawn.tensors),
            });
            let all = all.collect();
            drawn.lists |= tensor.kind == TensorKind::List;
            if tensor.kind != TensorKind::Optional || draw.below(2) == 0 {
                drawn.tensors.push((tensor.name, all));
            }
        }
        drawn
    }

    /// A call of `op` on tensors of one dtype, except for indices and masks.
    pub fn alike(op: &Op, x: &Tensor, draw: &mut Draw) -> Drawn {
        let mut call = Drawn::of(op, std::slice::from_ref(x), draw);
        for ((_, tensors), info) in call.tensors.iter_mut().zip(op.info.tensors) {
            let fixed = info.kind == TensorKind::Mask
                || info.exact
                || is_table(op) && info.name != "x"
                || ["index", "indices", "pivots", "repeats", "target", "samples"].contains(&info.name)
                || of_lengths(info.name);
            let tensors = tensors.iter_mut().filter(|_| !fixed);
            tensors.for_each(|tensor| *tensor = tensor.to(x.dtype()).unwrap());
        }
        call
    }

    /// The same call with `f` applied to its tensors.
    pub fn map(&self, f: impl Fn(&Tensor) -> Tensor) -> Drawn {
        let mut other = self.clone();
        other.tensors.iter_mut().flat_map(|(_, tensors)| tensors).for_each(|x| *x = f(x));
        other
    }

    fn given(&self, skip: usize) -> Vec<(&'static str, Given<'_>)> {
        let tensors = self.tensors.iter().skip(skip).map(|(name, tensors)| match &tensors[..] {
            [one] if !self.lists => (*name, Given::Tensor(one)),
            all => (*name, Given::Tensors(all.iter().collect())),
        });
        tensors.chain(self.args.iter().map(|(name, value)| (*name, Given::Value(value.clone())))).collect()
    }

    /// Calls the op, with the same random numbers each time.
    pub fn call(&self, op: &Op) -> Result<Vec<Tensor>> {
        Generator::from_seed(0).scope(|| op.call(&[], &self.given(0)))
    }

    /// Calls the in-place form with `x` as the first tensor.
    pub fn call_in_place(&self, op: &Op, x: &mut Tensor) -> Result<()> {
        Generator::from_seed(0).scope(|| op.call_in_place(x, &[], &self.given(1)))
    }
}

/// `x` with as many dims as a function such as `conv3d` takes at least, as probabilities, or as affine maps.
fn fitted(op: &Op, x: &Tensor) -> Tensor {
    if op.info.name == "nn.binary_cross_entropy" && x.dtype().is_floating_point() {
        return x.sigmoid().unwrap();
    }
    if op.info.name == "nn.affine_grid" && x.numel() > 0 {
        let one = x.rename(None).unwrap().reshape([-1]).unwrap().narrow(0, 0, 1).unwrap();
        return one.expand([1, 2, 3]).unwrap();
    }
    if REGULAR.contains(&op.info.name) && x.ndim() >= 2 && x.dtype().is_floating_point() {
        return regular(x).unwrap();
    }
    let least = ["1d", "2d", "3d"].iter().position(|end| op.info.name.ends_with(end)).map_or(0, |at| at + 2);
    let of_images =
        ["sample_at", "sample_at_input", "nn.grid_sample", "nn.interpolate"].contains(&op.info.name);
    let least = if of_images { 3 } else { least };
    (x.ndim()..least).fold(x.clone(), |x, _| x.unsqueeze(0).unwrap())
}

/// Ops that refuse singular matrices, or those that are not positive definite.
const REGULAR: [&str; 9] =
    ["solve", "solve_ex", "inv", "inv_ex", "logdet", "cholesky", "cholesky_ex", "lu_factor", "lu_solve"];

/// Positive definite matrices of the sizes of the rows, with the names of `x`.
fn regular(x: &Tensor) -> Result<Tensor> {
    let rows = x.rename(None)?.to(DType::F64)?;
    let n = rows.sizes()[rows.ndim() - 2];
    let one = TensorOptions::new().dtype(DType::F64).eye(n, n)?;
    rows.matmul(&rows.mt()?)?.add(one)?.to(x.dtype())?.rename(Some(x.names().clone()))
}

/// Whether an op takes indices first and then a table of floats.
fn is_table(op: &Op) -> bool {
    op.info.name.starts_with("nn.embedding")
}

/// Whether the tensors after the first have a number for each channel.
fn is_of_channels(op: &Op) -> bool {
    op.info.table == "norm" && op.info.args.iter().any(|arg| arg.name == "dim")
}

/// Whether a tensor has labels of sequences or their lengths.
fn of_lengths(name: &str) -> bool {
    ["targets", "lengths", "input_lengths", "target_lengths"].contains(&name)
}

/// The place of 0 among the floats that are drawn.
const ZERO: usize = 3000;

/// Random numbers, the same for the same seed.
#[derive(Clone)]
pub struct Draw {
    state: u64,
    /// The floats drawn so far, where they must differ.
    distinct: Option<BTreeSet<usize>>,
}

impl Draw {
    /// Starts at this seed.
    pub fn new(seed: u64) -> Draw {
        Draw { state: seed, distinct: None }
    }

    /// Draws distinct indices: among equal ones the last would win. Floats differ in all tensors and are not
    /// 0, as equal ones are at a kink of a maximum.
    pub fn distinct(seed: u64) -> Draw {
        Draw { state: seed, distinct: Some([ZERO].into()) }
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as usize % end
    }

    /// The index of one of the floats.
    fn float(&mut self) -> usize {
        loop {
            let drawn = self.below(2 * ZERO + 1);
            if self.distinct.as_mut().is_none_or(|seen| seen.insert(drawn)) {
                return drawn;
            }
        }
    }

    /// A tensor of numbers between -3 and 3. Floats have many digits, so that none is at a kink.
    pub fn tensor(&mut self, sizes: &[usize], dtype: DType) -> Tensor {
        let numbers: Vec<f64> = (0..sizes.iter().product())
            .map(|_| match dtype.category() {
                Category::Float => (self.float() as f64 - ZERO as f64) * 0.000_997_3,
                Category::Integer => self.below(6) as f64 - 1.0,
                Category::Bool => self.below(2) as f64,
            })
            .collect();
        Tensor::from_slice(&numbers, sizes).unwrap().to(dtype).unwrap()
    }

    /// A tensor that fits indices `x` into a table.
    fn of_table(&mut self, name: &str, x: &Tensor) -> Tensor {
        match name {
            "offsets" => Tensor::new([0_i64, self.below(2) as i64]).unwrap(),
            "per_sample_weights" => self.tensor(x.sizes(), DType::F64),
            _ => {
                let columns = 1 + self.below(3);
                self.tensor(&[5, columns], DType::F64)
            }
        }
    }

    /// The rows that are swapped in an elimination of the matrices `x`.
    fn pivots(&mut self, x: &Tensor) -> Tensor {
        let sizes = &x.sizes()[..x.ndim().saturating_sub(1)];
        let n = sizes.last().copied().unwrap_or(1).max(1);
        let rows = (0..sizes.iter().product::<usize>()).map(|k| k % n);
        let rows: Vec<i64> = rows.map(|row| (row + 1 + self.below(n - row)) as i64).collect();
        Tensor::from_slice(&rows, sizes).unwrap().to(DType::I32).unwrap()
    }

    /// Keys or values for the queries `x`, or one number that is added to all scores.
    fn of_attention(&mut self, name: &str, x: &Tensor) -> Tensor {
        match name {
            "k" | "v" => self.tensor(x.sizes(), x.dtype()).rename(Some(x.names().clone())).unwrap(),
            _ => self.tensor(&[], x.dtype()),
        }
    }

    /// A weight or a state of a recurrent layer over `x`, `[time, batch, input]`.
    fn of_cell(&mut self, name: &str, x: &Tensor, args: &[(&str, Value)]) -> Tensor {
        let sizes: [usize; 3] = x.sizes().try_into().unwrap_or([1; 3]);
        let [time, batch, input] = sizes;
        let cell = args.iter().find(|(name, _)| *name == "cell").map(|(_, value)| value);
        let gates = match cell {
            Some(Value::Text(cell)) if cell == "lstm" => 4,
            Some(Value::Text(cell)) if cell == "gru" => 3,
            _ => 1,
        };
        let hidden = 2;
        let sizes = match name {
            "hx" | "cx" => vec![batch, hidden],
            "w_ih" => vec![gates * hidden, input],
            "w_hh" => vec![gates * hidden, hidden],
            "w_hr" => vec![hidden, hidden],
            "lengths" => return Tensor::full([batch], 1 + self.below(time.max(1)) as i64).unwrap(),
            _ => vec![gates * hidden],
        };
        self.tensor(&sizes, x.dtype())
    }

    /// A tensor that fits `x` and the tensors drawn before.
    fn other(
        &mut self,
        tensor: &TensorInfo,
        by_element: bool,
        x: &Tensor,
        dim: Option<usize>,
        before: &[(&str, Vec<Tensor>)],
    ) -> Tensor {
        let dtype = match self.below(8) {
            0 => DType::ALL[self.below(DType::ALL.len())],
            _ => x.dtype(),
        };
        let mut sizes = x.sizes().to_vec();
        match tensor.kind {
            TensorKind::Mask => {
                sizes.drain(..self.below(sizes.len() + 1));
                return self.tensor(&sizes, DType::Bool);
            }
            _ if by_element => {
                sizes.drain(..self.below(sizes.len() + 1));
                return self.tensor(&sizes, dtype);
            }
            TensorKind::Operand if tensor.name != "repeats" => {
                return self.tensor(&[], if tensor.exact { DType::F64 } else { dtype });
            }
            TensorKind::List => return self.tensor(&sizes, dtype),
            _ => {}
        }
        if tensor.name == "index" || tensor.name == "indices" {
            let along = dim.filter(|dim| *dim < sizes.len());
            let length = along.map_or(x.numel(), |dim| sizes[dim]).max(1);
            let (start, apart) = (self.below(length), self.distinct.is_some() || self.below(2) == 0);
            let count = if apart { self.below(4).min(length) } else { self.below(4) };
            let shape = if self.below(2) == 0 { vec![count] } else { sizes };
            let step = along.map_or(1, |dim| shape.iter().skip(dim + 1).product::<usize>().max(1));
            let count = along.and_then(|dim| shape.get(dim)).copied().unwrap_or(usize::MAX).max(1);
            let position = |at: usize| if apart { (start + at / step % count) % length } else { self.below(length) } as i64;
            let positions: Vec<i64> = (0..shape.iter().product()).map(position).collect();
            return Tensor::from_slice(&positions, shape).unwrap();
        }
        let dim = dim.unwrap_or(0);
        let length = x.sizes().get(dim).copied().unwrap_or(1);
        let last = sizes.last().copied().unwrap_or(1);
        if let Some((_, index)) = before.iter().find(|(name, _)| name.starts_with("ind")) {
            // A source has the sizes of its index, or the length of an index vector along the dim.
            let index = index[0].sizes().to_vec();
            if index.len() == 1 && dim < sizes.len() && self.below(2) == 0 {
                sizes[dim] = index[0];
            } else {
                sizes = index;
            }
            return self.tensor(&sizes, dtype);
        }
        if tensor.name == "target" && self.below(2) == 0 {
            // Class indices: the sizes without one dim.
            if sizes.len() > 1 {
                sizes.remove(1);
            } else {
                sizes.clear();
            }
            return Tensor::zeros(sizes).unwrap().to(DType::I64).unwrap();
        }
        if tensor.name == "target" && self.below(2) == 0 {
            return self.tensor(&sizes, DType::Bool).to(dtype).unwrap(); // probabilities
        }
        if tensor.name == "samples" {
            // Between 0 and 1, for each plane over the last dim.
            let planes = x.sizes().iter().rev().skip(1).product();
            return self.tensor(&[1, planes, 1], DType::F32).mul(0.16).unwrap().add(0.5).unwrap();
        }
        if of_lengths(tensor.name) {
            return Tensor::ones([1]).unwrap().to(DType::I64).unwrap(); // one label of a sequence without a batch
        }
        if let ("weight", [_, (_, other)]) = (tensor.name, before)
            && let Some(columns) = other[0].sizes().last()
        {
            let sizes = [1 + self.below(3), last, *columns];
            return self.tensor(&sizes, dtype);
        }
        if tensor.name == "weight" && sizes.len() > 2 && self.below(2) == 0 {
            // A kernel whose first or second dim has the channels.
            let others = [1 + self.below(2), sizes[1]];
            let (first, kernel) = (self.below(2), 1 + self.below(2));
            sizes[2..].fill(kernel);
            (sizes[0], sizes[1]) = (others[first], others[1 - first]);
            return self.tensor(&sizes, dtype);
        }
        if tensor.name == "grid" && sizes.len() > 2 {
            // A position for each element, most of them inside.
            sizes.remove(1);
            sizes.push(sizes.len() - 1);
            return self.tensor(&sizes, dtype).mul(0.4).unwrap().to(dtype).unwrap();
        }
        if tensor.name == "repeats" {
            return Tensor::full([[].as_slice(), &[length]][self.below(2)], 2)
                .unwrap()
                .to(DType::I64)
                .unwrap();
        }
        match self.below(8) {
            0 => {}
            6 | 7 => sizes.insert(0, 1 + self.below(2)),
            1 => {
                return self
                    .tensor(&sizes, dtype)
                    .rename(Some(x.names().clone()).filter(|names| names.is_named()))
                    .unwrap();
            }
            2 => sizes = vec![last],
            3 => sizes = vec![1 + self.below(3)],
            // A matrix, or a batch of matrices, with as many rows as the previous one has columns.
            matrices => {
                let left = before.last().map_or(x.sizes(), |(_, tensors)| tensors[0].sizes());
                let rows = left.last().copied().unwrap_or(2);
                sizes = left[..left.len().saturating_sub(2)].to_vec();
                // The last matrix may have as many columns as `x`, to which the product is added.
                let columns = if matrices == 5 && before.len() > 1 { last } else { 1 + self.below(3) };
                sizes.extend([rows, columns]);
            }
        }
        self.tensor(&sizes, dtype)
    }

    /// An argument for `x`, by type.
    fn value(&mut self, arg: &ArgInfo, x: &Tensor) -> Value {
        let mut word = |words: &[&str]| Value::from(words[self.below(words.len())]);
        match arg.ty {
            "Dim" | "Axis" | "RealAxis" | "AnyAxis" => self.dim(x),
            "Dims" | "Reduced" | "Contraction" | "Axes" | "RealAxes" | "AnyAxes" => self.dims(x),
            "Matrix" | "MatrixDims" => "..".into(),
            "QrMode" => word(&["reduced", "complete"]),
            "MatrixNorm" => word(&["fro", "nuc", "inf", "-inf"]),
            "Place" => (self.below(2 * x.ndim() + 3) as i64 - x.ndim() as i64 - 1).into(),
            // The sizes of images for a map of them.
            "Shape" if arg.name == "size" && x.sizes() == [1, 2, 3] => {
                [1, 1 + self.below(2), 1 + self.below(3), 2].into()
            }
            "Shape" if arg.name == "segments" => match self.below(3) {
                0 => [self.below(5)].into(),
                _ => Value::List(vec![Value::List(vec!["new".into(), (2 + self.below(4) as i64).into()])]),
            },
            "Shape" | "Expansion" => self.shape(x),
            "NewName" if ["heads", "query_dim"].contains(&arg.name) => Value::None, // they are dims
            "NewName" => word(&["new", "other"]),
            "NewNames" => ["new", "other"].into(),
            "Reduce" => word(&["sum", "prod", "mean", "amax", "amin"]),
            "Reduction" => word(&["mean", "sum", "none"]),
            "KlReduction" => word(&["mean", "batchmean", "sum", "none"]),
            "Approximate" => word(&["none", "tanh"]),
            "Norm" => word(&["backward", "ortho", "forward"]),
            "Cell" => word(&["tanh", "relu", "lstm", "gru"]),
            "BagMode" => word(&["sum", "mean", "max"]),
            "Sampling" => word(&["nearest", "linear", "cubic"]),
            "SampleMode" => word(&["nearest", "bilinear", "bicubic"]),
            "Outside" => word(&["zeros", "border", "reflection"]),
            "PadMode" => word(&["constant", "reflect", "replicate", "circular"]),
            "InterpolateMode" => word(&["nearest", "nearest-exact", "linear", "bilinear", "bicubic", "area"]),
            "Indexing" => word(&["ij", "xy"]),
            "Text" if arg.name == "reduction" => word(&["sum", "mean", "max", "min", "prod", "any", "all"]),
            "Text" if arg.name == "pattern" => word(&[
                "... -> ...",
                "A ... -> ... A",
                "A B -> (B A)",
                "A B D -> D (A B)",
                "A ... -> ...",
                "A (b 2) -> (b A)",
                "A (n b) ... -> n (A b) ...",
                "A ... -> A n ...",
            ]),
            "WordSizes" => Value::List(vec![Value::List(vec!["n".into(), 2.into()])]),
            "Text" => word(&[
                "i->",
                "ij->ji",
                "...i->i...",
                "i,i->i",
                "ij,ij,ij->",
                "...,...->...",
                "A B, A B -> B A",
            ]),
            "Between" => word(&["linear", "lower", "higher", "midpoint", "nearest"]),
            "EuclidMode" => word(&["use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"]),
            "Strides" => vec![1 + self.below(2); x.ndim().max(1)].into(),
            "Numbers" => match (arg.name, self.below(3)) {
                ("q", _) => (self.below(5) as f64 / 4.0).into(),
                ("bins", 0) => vec![2_usize; x.sizes().last().copied().unwrap_or(1)].into(),
                ("bins", _) => (1 + self.below(4)).into(),
                ("range", 0) => [-2.0, 2.5].into(),
                ("spacing", _) => (0.5 + self.below(3) as f64).into(),
                _ => Value::None,
            },
            "Equation" => word(&["i->", "ij->ji", "...i->i...", "i,i->i", "ij,ij,ij->", "...,...->..."]),
            "Sections" if self.below(2) == 0 => self.below(4).into(),
            "Sections" => [self.below(3), self.below(3)].into(),
            "Indices" => self.indices(),
            "Places" => {
                let place = |dim: Value, index: Value| Value::List(vec![dim, index]);
                let range = Value::List(vec![self.below(2).into(), Value::None, (1 + self.below(2)).into()]);
                match self.below(2) {
                    0 => Value::List(vec![place(self.dim(x), 0.into())]),
                    _ => Value::List(vec![place(self.dim(x), range)]),
                }
            }
            "Pads" => [self.below(4) as i64 - 1, self.below(3) as i64].into(),
            "SizesByDim" | "Resize" => (self.below(6) as i64).into(),
            "Padding" => self.below(3).into(),
            // The sizes before a window made them smaller.
            "Extents" if arg.name == "sizes" => (x.sizes().last().unwrap_or(&1) + self.below(3)).into(),
            // Mostly valid: a step of 0 is an error.
            "Extents" if ["stride", "dilation"].contains(&arg.name) && self.below(8) > 0 => {
                (1 + self.below(2)).into()
            }
            "Extents" if arg.name == "output_padding" && self.below(4) > 0 => 0_usize.into(),
            "Extents" | "Windows" => match self.below(4) {
                0 => [1 + self.below(2)].into(),
                1 => [1 + self.below(2), 1 + self.below(2)].into(),
                _ => self.below(3).into(),
            },
            "ClassDim" => self.dim(x),
            "SlidingDims" if !arg.option => self.dims(x),
            "usize" if arg.name == "groups" && self.below(4) > 0 => 1_usize.into(),
            "usize" => self.below(5).into(),
            "isize" => (self.below(9) as i64 - 3).into(),
            "f64" | "Option<f64>" => (self.below(11) as f64 / 4.0 - 0.5).into(),
            "Scalar" => (self.below(5) as i64 - 2).into(),
            "bool" | "Triangle" => (self.below(2) == 0).into(),
            "Cast" | "DType" => DType::ALL[self.below(DType::ALL.len())].into(),
            other => match arg.default {
                Some(_) => Value::None,
                None => panic!(
                    "`{}` is of type {other}, which no op took before: say here how it is drawn",
                    arg.name
                ),
            },
        }
    }

    /// A list of one or two indices, one of which may be a range, an ellipsis or a new dim.
    fn indices(&mut self) -> Value {
        let other = match self.below(4) {
            0 => Value::List(vec![self.below(3).into(), Value::None]),
            1 => "...".into(),
            2 => Value::None,
            _ => return Value::List(vec![(self.below(4) as i64 - 2).into()]),
        };
        Value::List(vec![other, (self.below(4) as i64 - 2).into()])
    }

    fn dim(&mut self, x: &Tensor) -> Value {
        let dim = self.below(2 * x.ndim() + 3) as i64 - x.ndim() as i64 - 1;
        match usize::try_from(dim).ok().filter(|dim| *dim < x.ndim()).and_then(|dim| x.name(dim)) {
            Some(name) if self.below(2) == 0 => name.as_str().into(),
            _ if self.below(20) == 0 => "no_such_dim".into(),
            _ => dim.into(),
        }
    }

    fn dims(&mut self, x: &Tensor) -> Value {
        match self.below(4) {
            0 => return "..".into(),
            1 => return self.dim(x),
            _ => {}
        }
        let mut dims: Vec<usize> = (0..x.ndim()).collect();
        for at in 1..dims.len() {
            dims.swap(at, self.below(at + 1));
        }
        if self.below(2) == 0 {
            dims.truncate(self.below(dims.len() + 1));
        }
        let names = dims
            .iter()
            .map(|dim| x.name(*dim).map(|name| Value::from(name.as_str())))
            .collect::<Option<Vec<Value>>>();
        match names {
            Some(names) if self.below(2) == 0 => Value::List(names),
            _ => dims.into(),
        }
    }

    /// The sizes of `x` in another order, merged, with one to be inferred, or with an extra dim; or the same
    /// number of repeats.
    fn shape(&mut self, x: &Tensor) -> Value {
        let mut sizes: Vec<i64> = x.sizes().iter().map(|size| *size as i64).collect();
        match self.below(6) {
            0 => sizes.reverse(),
            1 => sizes = vec![sizes.iter().product()],
            2 => sizes.insert(0, 2),
            3 if !sizes.is_empty() => {
                let at = self.below(sizes.len());
                sizes[at] = -1;
            }
            4 => sizes.iter_mut().for_each(|size| *size = self.below(3) as i64),
            _ => {}
        }
        sizes.into()
    }
}
