//! Every op by element and every reduction on tensors of random shapes, names, dtypes and memory orders. The ops come from the tables of the library, so
//! that a new one is tested without a line here.

use namegrad::prelude::*;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::sync::LazyLock;

type Call = fn(&[Tensor]) -> Result<Tensor>;
type InPlace = fn(&mut Tensor, &[Tensor]) -> Result<()>;

/// An op by element, of some number of tensors.
struct Pointwise {
    name: &'static str,
    arity: usize,
    call: Call,
    in_place: Option<InPlace>,
}

macro_rules! in_place {
    ([] $($more:tt)*) => { None };
    ([$name_:ident] $($more:ident)*) => {
        Some(|x, others| {
            let [$($more),*] = others else { unreachable!() };
            x.$name_($($more),*).map(drop)
        })
    };
}

macro_rules! rows {
    ($table:ident $arity:literal: $($name:ident [$($name_:ident)?] ($x:ident $($more:ident)*))*) => {
        const $table: &[Pointwise] = &[$(Pointwise {
            name: stringify!($name),
            arity: $arity,
            call: |inputs| {
                let [$x $(, $more)*] = inputs else { unreachable!() };
                $x.$name($($more),*)
            },
            in_place: in_place!([$($name_)?] $($more)*),
        }),*];
    };
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident $($name_:ident)? ($x:ident) $(-> $out:ident)? { $($body:tt)* })*) => {
        rows! { UNARY 1: $($name [$($name_)?] ($x))* }
    };
}
namegrad::core::unary_ops!(unary);

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident $($name_:ident)? ($x:ident $y:ident) $(-> $out:ident)? { $($body:tt)* } $($mark:ident)*;)*) => {
        rows! { BINARY 2: $($name [$($name_)?] ($x $y))* }
    };
}
namegrad::core::binary_ops!(binary);

macro_rules! ternary {
    ($($(#[$doc:meta])* $name:ident $($name_:ident)? ($x:ident $y:ident $z:ident) { $($body:tt)* } $($mark:ident)*;)*) => {
        rows! { TERNARY 3: $($name [$($name_)?] ($x $y $z))* }
    };
}
namegrad::core::ternary_ops!(ternary);

type Reduction =
    (&'static str, fn(&Tensor, &[usize]) -> Result<Tensor>, fn(&Tensor, &[usize]) -> Result<Tensor>);

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident $name_keepdim:ident ($x:ident $(; $arg:ident: $ty:ty)?))*) => {
        const REDUCTIONS: &[Reduction] = &[$((
            stringify!($name),
            |x, dims| x.$name(dims $(, { let $arg: $ty = 1.5; $arg })?),
            |x, dims| x.$name_keepdim(dims $(, { let $arg: $ty = 1.5; $arg })?),
        )),*];
    };
}
namegrad::core::reduce_ops!(reductions);

fn pointwise() -> impl Iterator<Item = &'static Pointwise> {
    UNARY.iter().chain(BINARY).chain(TERNARY)
}

/// A step from one view to another.
#[derive(Clone, Copy, Debug)]
enum Step {
    Transpose(usize, usize),
    Flip(usize),
    Narrow(usize, usize, usize),
    Stride(usize, usize),
    Expand(usize, usize),
    Select(usize, usize),
}

/// How a tensor is made: a dense one, and steps from view to view.
#[derive(Clone, Debug)]
struct Recipe {
    sizes: Vec<usize>,
    named: Vec<bool>,
    dtype: DType,
    seed: u64,
    steps: Vec<Step>,
}

const NAMES: [&str; 4] = ["A", "B", "C", "D"];
const SPECIAL: [f64; 10] =
    [0.0, -0.0, 1.0, -1.0, 0.5, 1e-40, 1e38, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];

impl Recipe {
    /// The tensor. `special` lets infinities and NaN in.
    fn tensor(&self, special: bool) -> Tensor {
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

fn recipe() -> impl Strategy<Value = Recipe> {
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

/// A recipe, and others whose tensors mostly broadcast to its: parts of it, or something else altogether.
fn recipes() -> impl Strategy<Value = [Recipe; 3]> {
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

/// The same sizes, names, dtype and bits, any NaN being equal to any other.
fn identical(a: &Tensor, b: &Tensor) -> bool {
    let bits = |x: &Tensor| -> Vec<u64> {
        match x.dtype().is_floating_point() {
            true => {
                x.to_vec::<f64>().unwrap().iter().map(|x| if x.is_nan() { 1 } else { x.to_bits() }).collect()
            }
            false => x.to_vec::<i64>().unwrap().iter().map(|x| *x as u64).collect(),
        }
    };
    a.dtype() == b.dtype() && a.extents() == b.extents() && bits(a) == bits(b)
}

/// The same, where sums may have been rounded in another order: `size` is that of the terms.
fn close(a: &Tensor, b: &Tensor, size: f64) -> bool {
    let tolerance = match a.dtype() {
        DType::F64 => 1e-12,
        DType::F32 => 1e-5,
        DType::F16 | DType::BF16 => 1e-2,
        _ => 0.0,
    };
    let near = |(a, b): (f64, f64)| {
        a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance * (a.abs() + size)
    };
    let pairs = || a.to_vec::<f64>().unwrap().into_iter().zip(b.to_vec::<f64>().unwrap());
    a.dtype() == b.dtype() && a.extents() == b.extents() && pairs().all(near)
}

fn dense(x: &Tensor) -> Tensor {
    Tensor::constant(x.value().deep_clone().unwrap())
}

/// Rayon pools of one thread and of four.
static POOLS: LazyLock<[rayon::ThreadPool; 2]> = LazyLock::new(|| {
    [1, 4].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap())
});

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, rng_seed: RngSeed::Fixed(0), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ops_by_element(recipes in recipes()) {
        let inputs = recipes.map(|recipe| recipe.tensor(true));
        let copies = inputs.each_ref().map(dense);
        for op in pointwise() {
            let (inputs, copies) = (&inputs[..op.arity], &copies[..op.arity]);
            let result = (op.call)(inputs);
            // The result does not depend on the memory order.
            match (&result, (op.call)(copies)) {
                (Ok(a), Ok(b)) => prop_assert!(identical(a, &b), "{} of views {a} and of dense tensors {b}", op.name),
                (Err(a), Err(b)) => prop_assert_eq!(a.kind(), b.kind(), "{}", op.name),
                (a, b) => prop_assert!(false, "{} of views {a:?} and of dense tensors {b:?}", op.name),
            }
            // In place gives what the op gives, or an error that changes nothing; other holders of the buffer see nothing.
            let Some(in_place) = op.in_place else { continue };
            let fits = |y: &Tensor| y.sizes() == inputs[0].sizes() && y.dtype().can_cast(inputs[0].dtype());
            let wanted = result.as_ref().ok().filter(|y| fits(y)).map(|y| y.to(inputs[0].dtype()).unwrap());
            for mut x in [inputs[0].clone(), dense(&inputs[0])] {
                match (in_place(&mut x, &inputs[1..]), &wanted) {
                    (Ok(()), Some(y)) => prop_assert!(identical(&x, y), "{} in place gives {x} and not {y}", op.name),
                    (Err(_), None) => prop_assert!(identical(&x, &copies[0]), "{} failed and changed its tensor", op.name),
                    (done, _) => prop_assert!(false, "{} in place gives {done:?} and else {result:?}", op.name),
                }
            }
            prop_assert!(inputs.iter().zip(copies).all(|(a, b)| identical(a, b)), "{} changed an input", op.name);
        }
    }

    #[test]
    fn reductions(recipe in recipe(), which in any::<[bool; 4]>(), special in any::<bool>()) {
        let x = recipe.tensor(special);
        let copy = dense(&x);
        let dims: Vec<usize> = (0..x.ndim()).filter(|dim| which[*dim]).collect();
        for (name, reduce, keepdim) in REDUCTIONS {
            let (a, b) = (reduce(&x, &dims), reduce(&copy, &dims));
            match (&a, &b) {
                (Ok(a), Ok(b)) if special => prop_assert_eq!((a.extents(), a.dtype()), (b.extents(), b.dtype()), "{}", name),
                (Ok(a), Ok(b)) => prop_assert!(close(a, b, 9.0 * x.numel() as f64), "{name} of a view {a} and of a dense tensor {b}"),
                (Err(a), Err(b)) => prop_assert_eq!(a.kind(), b.kind(), "{}", name),
                _ => prop_assert!(false, "{name} of a view {a:?} and of a dense tensor {b:?}"),
            }
            match (a, keepdim(&x, &dims)) {
                (Ok(a), Ok(b)) => {
                    let kept: Vec<usize> = (0..x.ndim()).map(|dim| if dims.contains(&dim) { 1 } else { x.sizes()[dim] }).collect();
                    prop_assert_eq!(b.sizes(), &kept[..], "{}", name);
                    prop_assert_eq!(b.names(), x.names(), "{}", name);
                    prop_assert!(identical(&a.rename(None)?, &b.rename(None)?.reshape(a.sizes())?), "{name} with its dims kept");
                }
                (Err(a), Err(b)) => prop_assert_eq!(a.kind(), b.kind(), "{}", name),
                (a, b) => prop_assert!(false, "{name} {a:?} and with its dims kept {b:?}"),
            }
        }
        prop_assert!(identical(&x, &copy), "a reduction changed its input");
    }
}

/// Large enough to be divided among threads.
fn large([rows, cols]: [usize; 2], dtype: DType, transposed: bool) -> Tensor {
    let sizes = if transposed { vec![cols, rows] } else { vec![rows, cols] };
    let recipe = Recipe { named: vec![false; 2], sizes, dtype, seed: 7, steps: vec![] };
    let x = recipe.tensor(false);
    if transposed { x.transpose(0, 1).unwrap() } else { x }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    for dtype in [DType::F32, DType::BF16, DType::I64] {
        let inputs = |sizes| [false, true, false].map(|transposed| large(sizes, dtype, transposed));
        let same = |name: &str, call: &(dyn Fn() -> Result<Tensor> + Sync)| {
            let [one, four] = POOLS.each_ref().map(|pool| pool.install(call));
            match (one, four) {
                (Ok(one), Ok(four)) => {
                    assert!(identical(&one, &four), "{name} of {dtype} with one thread and with four")
                }
                (one, four) => assert_eq!(one.is_ok(), four.is_ok(), "{name} of {dtype}"),
            }
        };
        // The loops are the same for all dtypes; integers have ops of their own.
        let once =
            |op: &&Pointwise| dtype == DType::F32 || dtype == DType::I64 && op.name.starts_with("bitwise");
        let few = inputs([300, 450]);
        for op in pointwise().filter(once) {
            same(op.name, &|| (op.call)(&few[..op.arity]));
        }
        let inputs = inputs([701, 401]);
        for (name, reduce, _) in REDUCTIONS {
            for dims in [&[0][..], &[1], &[0, 1]] {
                same(name, &|| reduce(&inputs[0], dims));
                same(name, &|| reduce(&inputs[1], dims));
            }
        }
        same("matmul", &|| {
            inputs[0].narrow(0, 0, 150)?.matmul(&inputs[1].narrow(0, 0, 401)?.narrow(1, 0, 150)?)
        });
        same("softmax", &|| inputs[1].softmax(0));
        same("log_softmax", &|| inputs[0].log_softmax(1));
        same("cumsum", &|| inputs[1].cumsum(1));
        same("cumprod", &|| inputs[0].cumprod(0));
        same("logcumsumexp", &|| inputs[0].to(DType::F32)?.logcumsumexp(1));
        same("argsort", &|| inputs[0].argsort(1, false));
        same("median", &|| Ok(inputs[0].median(0)?.values));
        same("topk", &|| Ok(inputs[1].topk(9, 1, true)?.indices));
        same("searchsorted", &|| {
            inputs[0].select(0, 0)?.sort(0, false)?.values.searchsorted(&inputs[1], false)
        });
    }
}
