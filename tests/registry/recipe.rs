//! Random tensors, each made from a dense tensor by a sequence of views, and comparisons of results.

use namegrad::prelude::*;
use proptest::prelude::*;

/// A step from one view to another.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Transpose(usize, usize),
    Flip(usize),
    Narrow(usize, usize, usize),
    Stride(usize, usize),
    Expand(usize, usize),
    Select(usize, usize),
}

/// A sequence of views that makes a tensor from a dense one.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    pub(crate) sizes: Vec<usize>,
    pub(crate) named: Vec<bool>,
    pub(crate) dtype: DType,
    pub(crate) seed: u64,
    pub(crate) steps: Vec<Step>,
}

pub(crate) const NAMES: [&str; 4] = ["A", "B", "C", "D"];
pub(crate) const SPECIAL: [f64; 10] =
    [0.0, -0.0, 1.0, -1.0, 0.5, 1e-40, 1e38, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];

impl Recipe {
    /// The tensor. With `special`, it may have infinities and NaN.
    pub(crate) fn tensor(&self, special: bool) -> Tensor {
        let mut state = self.seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        let numbers: Vec<f64> = (0..self.sizes.iter().product())
            .map(|_| match next() {
                bits if special && bits % 8 == 0 => SPECIAL[bits / 8 % SPECIAL.len()],
                bits if self.dtype.is_floating_point() => (bits % 6001) as f64 / 1000.0 - 3.0,
                bits => (bits % 7) as f64 - 3.0,
            })
            .collect();
        let name = |dim: usize| self.named[dim].then_some(NAMES[dim]);
        let shape: Vec<(Option<&str>, usize)> =
            self.sizes.iter().enumerate().map(|(dim, size)| (name(dim), *size)).collect();
        let x = Tensor::from_slice(&numbers, shape).unwrap().to(self.dtype).unwrap();
        self.steps.iter().fold(x, |x, step| step.of(&x).unwrap())
    }
}

impl Step {
    fn of(self, x: &Tensor) -> Result<Tensor> {
        if x.ndim() == 0 {
            return Ok(x.clone());
        }
        let dim = |dim: usize| dim % x.ndim();
        let size = |at: usize| x.sizes()[dim(at)];
        match self {
            Step::Transpose(a, b) => x.transpose(dim(a), dim(b)),
            Step::Flip(a) => x.flip(dim(a)),
            Step::Narrow(a, from, length) => {
                let from = from % (size(a) + 1);
                x.narrow(dim(a), from, length % (size(a) - from + 1))
            }
            Step::Stride(a, by) => x.slice(dim(a), 0, size(a), by + 1),
            Step::Expand(a, to) => {
                let one = x.narrow(dim(a), 0, size(a).min(1))?;
                let mut sizes = one.sizes().to_vec();
                sizes[dim(a)] = if size(a) == 0 { 0 } else { to };
                one.expand(sizes)
            }
            Step::Select(a, index) if size(a) > 0 && x.ndim() > 1 => x.select(dim(a), index % size(a)),
            Step::Select(..) => Ok(x.clone()),
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4usize, 0..4usize).prop_map(|(a, b)| Step::Transpose(a, b)),
        (0..4usize).prop_map(Step::Flip),
        (0..4usize, 0..5usize, 1..5usize).prop_map(|(a, b, c)| Step::Narrow(a, b, c)),
        (0..4usize, 1..3usize).prop_map(|(a, b)| Step::Stride(a, b)),
        (0..4usize, 1..4usize).prop_map(|(a, b)| Step::Expand(a, b)),
        (0..4usize, 0..4usize).prop_map(|(a, b)| Step::Select(a, b)),
    ]
}

pub(crate) fn recipe() -> impl Strategy<Value = Recipe> {
    let size = prop_oneof![1 => Just(0usize), 2 => Just(1), 6 => 2..6usize];
    let dims = proptest::collection::vec((size, any::<bool>()), 0..4);
    let dtype = proptest::sample::select(DType::ALL.to_vec());
    (dims, dtype, any::<u64>(), proptest::collection::vec(step(), 0..4)).prop_map(
        |(dims, dtype, seed, steps)| {
            let (sizes, named) = dims.into_iter().unzip();
            Recipe { sizes, named, dtype, seed, steps }
        },
    )
}

/// A recipe, and others, most of whose tensors broadcast to the first.
pub(crate) fn recipes() -> impl Strategy<Value = [Recipe; 3]> {
    let other = || (recipe(), any::<bool>(), any::<bool>(), 0..4usize);
    (recipe(), other(), other()).prop_map(|(first, b, c)| {
        let like = |(mut other, free, same_dtype, skip): (Recipe, bool, bool, usize)| {
            if !free {
                let sizes = first.tensor(false).sizes().to_vec();
                let skip = skip.min(sizes.len());
                other.sizes = sizes[skip..]
                    .iter()
                    .enumerate()
                    .map(|(k, size)| if k % 3 == 2 { 1 } else { *size })
                    .collect();
                other.named = vec![false; other.sizes.len()];
                other.steps.retain(|step| matches!(step, Step::Flip(_)));
            }
            if same_dtype {
                other.dtype = first.dtype;
            }
            other
        };
        let (b, c) = (like(b), like(c));
        [first, b, c]
    })
}

/// Whether sizes, names, dtype and bits are the same; all NaN are equal.
pub(crate) fn identical(a: &Tensor, b: &Tensor) -> bool {
    let bits = |x: &Tensor| -> Vec<u64> {
        match x.dtype().is_floating_point() {
            true => {
                x.to_vec::<f64>().unwrap().iter().map(|x| if x.is_nan() { 1 } else { x.to_bits() }).collect()
            }
            false => x.to(DType::I64).unwrap().to_vec::<i64>().unwrap().iter().map(|x| *x as u64).collect(),
        }
    };
    a.dtype() == b.dtype() && a.shape() == b.shape() && bits(a) == bits(b)
}

/// Like [`identical`], but sums may be rounded in another order; `size` is the size of the terms. Half types
/// are added in `f32` and rounded once.
pub(crate) fn close(a: &Tensor, b: &Tensor, size: f64) -> bool {
    let (last, sums) = match a.dtype() {
        DType::F64 => (1e-12, 1e-12),
        DType::F32 => (1e-5, 1e-5),
        DType::F16 => (2f64.powi(-10), 1e-5),
        DType::BF16 => (2f64.powi(-7), 1e-5),
        _ => (0.0, 0.0),
    };
    let near = |(a, b): (f64, f64)| {
        a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= last * a.abs() + sums * size
    };
    let wide = |x: &Tensor| x.to(DType::F64).unwrap().to_vec::<f64>().unwrap();
    let pairs = || wide(a).into_iter().zip(wide(b));
    a.dtype() == b.dtype() && a.shape() == b.shape() && pairs().all(near)
}

pub(crate) fn dense(x: &Tensor) -> Tensor {
    Tensor::constant(x.value().deep_clone().unwrap())
}
