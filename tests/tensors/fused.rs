//! Chains of elementwise ops that run tile by tile, beside the same ops one after another.

use namegrad::autograd::{
    BackwardOptions, autocast, checkpoint, detect_anomaly, functional, grad_with, gradcheck, gradgradcheck,
};
use namegrad::core::random::Generator;
use namegrad::fused;
use namegrad::prelude::*;

type Chain = fn(&[Tensor; 2]) -> Result<Tensor>;

/// Numbers with zeros and values that are not finite among them.
fn drawn(seed: u64, sizes: &[usize], dtype: DType) -> Result<Tensor> {
    let x = Generator::from_seed(seed).scope(|| Tensor::randn(sizes))?;
    let x = x.masked_fill(&x.abs().lt(0.01)?, 0.0).masked_fill(&x.gt(3.5)?, f64::INFINITY)?;
    x.masked_fill(&x.lt(-3.5)?, f64::NAN)?.to(dtype)
}

/// The elements as bits.
fn bits(x: &Tensor) -> Result<Vec<u64>> {
    Ok(x.to(DType::F64)?.to_vec::<f64>()?.into_iter().map(f64::to_bits).collect())
}

fn same(a: &Tensor, b: &Tensor, what: &str) -> Result<()> {
    assert_eq!(
        (a.dtype(), a.shape(), a.requires_grad()),
        (b.dtype(), b.shape(), b.requires_grad()),
        "{what}"
    );
    assert_eq!(bits(a)?, bits(b)?, "{what}");
    Ok(())
}

const CHAINS: [(&str, Chain); 7] = [
    ("affine", |[x, y]| x.mul(1.5).add(0.25).tanh().mul(0.7).add(y)),
    ("gelu", |[x, y]| {
        let inner = x.mul(x).mul(x).mul(0.044715).add(x).mul((2.0 / std::f64::consts::PI).sqrt());
        x.mul(0.5).mul(inner.tanh().add(1.0)?).mul(y)
    }),
    ("silu", |[x, y]| x.sigmoid().mul(x).mul(y)),
    ("eight", |[x, y]| x.mul(1.1).add(y).relu().mul(0.9).sub(0.1).mul(y).add(x).maximum(y)),
    ("masks", |[x, y]| x.gt(y)?.choose(&y.exp()?, x)?.clamp(-1.0, 2.0).square()),
    ("casts", |[x, y]| x.to(DType::F64)?.addcmul(x, y)?.to(x.dtype()).mul(y)),
    ("division", |[x, y]| x.div(y.square().add(1.0)?).atan2(y).neg().hypot(x)),
];

/// Result and gradients of both inputs, where they require them.
fn result(x: &Tensor, y: &Tensor, run: &dyn Fn(&[&Tensor; 2]) -> Result<Tensor>) -> Result<Vec<Tensor>> {
    let mut all = vec![run(&[x, y])?];
    if all[0].requires_grad() {
        let g = drawn(9, all[0].sizes(), DType::F64)?.to(all[0].dtype())?;
        let wanted: Vec<&Tensor> = [x, y].into_iter().filter(|x| x.requires_grad()).collect();
        let options = BackwardOptions::new().allow_unused(true);
        all.extend(grad_with(&[&all[0]], &wanted, &[Some(&g)], options)?.into_iter().flatten());
    }
    Ok(all)
}

/// Compares a fused chain with the ops one after another, on pools of several threads.
fn compare(x: &Tensor, y: &Tensor, what: &str) -> Result<()> {
    for (name, chain) in CHAINS {
        for [of_x, of_y] in [[false, false], [true, true], [false, true]] {
            let what = format!("{name} {what} {of_x} {of_y}");
            let leaf =
                |x: &Tensor, wanted: bool| if wanted { x.clone().requiring_grad() } else { Ok(x.clone()) };
            if [(x, of_x), (y, of_y)].iter().any(|(x, wanted)| *wanted && !x.dtype().is_floating_point()) {
                continue;
            }
            let (x, y) = (leaf(x, of_x)?, leaf(y, of_y)?);
            let whole = result(&x, &y, &|[x, y]| {
                let sizes = x.add(*y)?.sizes().to_vec();
                // What broadcasts is used several times, so that the order of sums would matter.
                chain(&[x.expand(&sizes[..])?, y.expand(&sizes[..])?])
            })?;
            for threads in [1, 2, 8, 64] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
                let tiled = pool.install(|| result(&x, &y, &|inputs| fused(inputs, chain)))?;
                assert_eq!(whole.len(), tiled.len(), "{what}");
                for (at, (a, b)) in whole.iter().zip(&tiled).enumerate() {
                    same(a, b, &format!("{what} {at} {threads} threads"))?;
                }
            }
        }
    }
    Ok(())
}

#[test]
fn the_same_bits_as_one_op_after_another() -> Result<()> {
    let of = |seed, sizes: &[usize]| drawn(seed, sizes, DType::F32);
    compare(&of(1, &[40_003])?, &of(2, &[40_003])?, "prime")?;
    compare(&of(1, &[2, 20_001])?, &of(2, &[20_001])?, "a row beyond a tile")?;
    compare(&of(1, &[3, 3, 4000])?, &of(2, &[3, 1, 1])?, "broadcast in the middle")?;
    compare(&of(1, &[8192, 1])?, &of(2, &[1, 5])?, "both broadcast")?;
    compare(&of(1, &[])?, &of(2, &[])?, "0-d")?;
    compare(&of(1, &[2])?, &of(2, &[1])?, "small")?;
    compare(&of(1, &[0, 3])?, &of(2, &[3])?, "empty")?;
    compare(&of(1, &[201, 203])?.t()?, &of(2, &[203, 201])?.flip([0, 1])?, "transposed and reversed")?;
    compare(&of(1, &[128, 128, 3])?.narrow(2, 1, 1)?, &of(2, &[128, 1])?, "every third")
}

#[test]
fn the_same_bits_in_every_dtype() -> Result<()> {
    for (a, b) in [
        (DType::F64, DType::F64),
        (DType::F32, DType::F64),
        (DType::F16, DType::F16),
        (DType::BF16, DType::F32),
        (DType::F32, DType::I32),
        (DType::I64, DType::F32),
        (DType::F32, DType::Bool),
    ] {
        compare(&drawn(1, &[20, 1001], a)?, &drawn(2, &[1001], b)?, &format!("{a} {b}"))?;
    }
    Ok(())
}

#[test]
fn several_results() -> Result<()> {
    let x = drawn(1, &[50_001], DType::F32)?.requiring_grad()?;
    let y = drawn(2, &[50_001], DType::F32)?.requiring_grad()?;
    let chain = |[x, y]: &[Tensor; 2]| Ok(((x.mul(y)?.tanh()?, x.gt(y)?), [x.exp()?, y.detach().neg()?]));
    let of = |all: ((Tensor, Tensor), [Tensor; 2])| {
        let ((a, b), [c, d]) = all;
        vec![a, b, c, d]
    };
    let (whole, tiled) = (of(chain(&[x.clone(), y.clone()])?), of(fused(&[&x, &y], chain)?));
    for (a, b) in whole.iter().zip(&tiled) {
        same(a, b, "results")?;
    }
    for used in [vec![0, 2], vec![0], vec![2]] {
        let gradients = |all: &[Tensor]| {
            let outputs: Vec<&Tensor> = used.iter().map(|at| &all[*at]).collect();
            let g = outputs[0].detach();
            let options = BackwardOptions::new().allow_unused(true).retain_graph(true);
            grad_with(&outputs, &[&x, &y], &vec![Some(&g); used.len()], options)
        };
        for (a, b) in gradients(&whole)?.iter().zip(&gradients(&tiled)?) {
            match (a, b) {
                (Some(a), Some(b)) => same(a, b, &format!("{used:?}"))?,
                (a, b) => assert_eq!(a.is_some(), b.is_some(), "{used:?}"),
            }
        }
    }
    Ok(())
}

#[test]
fn derivatives_of_derivatives_and_forward_mode() -> Result<()> {
    let x = Generator::from_seed(1).scope(|| Tensor::randn([2, 3]))?.to(DType::F64)?;
    let y = Generator::from_seed(2).scope(|| Tensor::randn([3]))?.to(DType::F64)?;
    let run = |t: &[Tensor]| fused(&[&t[0], &t[1]], CHAINS[0].1)?.square();
    gradcheck(run, &[x.clone(), y.clone()])?;
    gradgradcheck(run, &[x.clone(), y.clone()])?;
    let whole = |t: &[Tensor]| CHAINS[0].1(&[t[0].clone(), t[1].clone()])?.square();
    let v = [&x.ones_like()?, &y.ones_like()?];
    let (tiled, whole) = (functional::jvp(run, &[&x, &y], &v)?, functional::jvp(whole, &[&x, &y], &v)?);
    same(&tiled.1, &whole.1, "tangent")
}

#[test]
fn inside_of_vmap() -> Result<()> {
    let x = Generator::from_seed(1).scope(|| Tensor::randn([("batch", 3), ("C", 5)]))?;
    let y = drawn(2, &[5], DType::F32)?.requiring_grad()?;
    let own = y.clone();
    let tiled = functional::vmap(move |x| fused(&[&x[0], &own], CHAINS[0].1), &[&x], "batch")?;
    let own = y.clone();
    let whole = functional::vmap(move |x| CHAINS[0].1(&[x[0].clone(), own.clone()]), &[&x], "batch")?;
    same(&tiled, &whole, "forward")?;
    // The gradients of a graph that was made outside.
    let of = |z: Tensor| {
        let retain = BackwardOptions::new().retain_graph(true);
        let f = |g: &[Tensor]| Ok(grad_with(&[&z], &[&y], &[Some(&g[0])], retain)?.remove(0).expect("y"));
        functional::vmap(f, &[&x], "batch")
    };
    same(&of(fused(&[&y], |[y]| y.exp().mul(y))?)?, &of(y.exp().mul(&y)?)?, "gradients")
}

#[test]
fn hooks_run_once_and_modes_hold() -> Result<()> {
    let x = drawn(1, &[40_000], DType::F32)?.requiring_grad()?;
    x.register_hook(|g| g.mul(2.0).map(Some))?;
    let create = BackwardOptions::new().create_graph(true);
    for options in [BackwardOptions::new(), create] {
        let y = fused(&[&x], |[x]| x.mul(3.0).add(1.0))?.sum(..)?;
        let of_x = grad_with(&[&y], &[&x], &[], options)?.remove(0).expect("it depends on x");
        assert_eq!(of_x.amin(..)?.item::<f32>()?, 6.0);
    }
    let chain = |x: &Tensor| x.exp().mul(x).tanh();
    assert!(!no_grad(|| fused(&[&x], move |[x]| chain(x)))?.requires_grad());
    let half = x.detach().to(DType::BF16)?;
    let (tiled, whole) = autocast(DType::BF16, || (fused(&[&half], move |[x]| chain(x)), chain(&half)));
    assert_eq!(whole.as_ref().map(Tensor::dtype).ok(), Some(DType::F32), "exp runs in f32");
    same(&tiled?, &whole?, "autocast")?;
    let x = x.detach().clamp(-2.0, 2.0).nan_to_num().requiring_grad()?;
    let of = |y: Tensor| grad_with(&[&y.sum(..)?], &[&x], &[], BackwardOptions::new());
    let inside = of(checkpoint(move |x| fused(&[&x[0]], move |[x]| chain(x))?.mul(2.0), &[&x])?)?.remove(0);
    let whole = of(chain(&x)?.mul(2.0)?)?.remove(0);
    same(&inside.expect("x"), &whole.clone().expect("x"), "in a checkpoint")?;
    let looked_at = detect_anomaly(|| of(fused(&[&x], move |[x]| chain(x))?.mul(2.0)?))?.remove(0);
    same(&looked_at.expect("x"), &whole.expect("x"), "anomaly mode")?;
    let error = detect_anomaly(|| of(fused(&[&x], |[x]| x.log().mul(2.0))?)).unwrap_err();
    assert!(error.message().contains("'log'"), "{error}");
    Ok(())
}

#[test]
fn names_are_those_of_the_ops() -> Result<()> {
    let x = Tensor::ones([("N", 300), ("C", 200)])?;
    let y = Tensor::ones(("C", 200))?.requiring_grad()?;
    let z = fused(&[&x, &y], |[x, y]| x.add(y).exp())?;
    assert_eq!(z.shape().to_string(), "[N=300, C=200]");
    z.sum(..)?.backward()?;
    let wrong = Tensor::ones(("D", 200))?;
    let whole = x.add(&wrong).unwrap_err();
    let error = fused(&[&x, &wrong], |[x, y]| x.add(y)).unwrap_err();
    assert_eq!((error.kind(), error.message()), (whole.kind(), whole.message()));
    let error = fused(&[&x, &Tensor::ones([300])?], |[x, y]| x.add(y)).unwrap_err();
    assert_eq!((error.kind(), error.op(), error.location().line()), (ErrorKind::Shape, "fused", line!() - 1));
    Ok(())
}

#[test]
fn what_is_not_elementwise_is_an_error() -> Result<()> {
    fn refused(sizes: &[(&'static str, usize)], f: fn(&Tensor) -> Result<Tensor>, what: &str) -> Result<()> {
        let x = Generator::from_seed(1).scope(|| Tensor::rand(sizes))?.add(0.5)?;
        for x in [x.clone(), x.requiring_grad()?] {
            let error = fused(&[&x], move |[x]| f(x)).expect_err(what);
            assert!(error.message().contains(what) && error.op() == "fused", "{what}: {error}");
        }
        Ok(())
    }
    fn steep(x: &Tensor) -> Result<Tensor> {
        x.neg()?.leaky_relu_with(LeakyReluOptions::new().negative_slope(x.sizes()[1] as f64))
    }
    let large = [("N", 300), ("C", 100)];
    let square = [("N", 1000), ("C", 128)];
    let rows = [("N", 7), ("C", 30_000)];
    for sizes in [&large, &square, &rows, &[("N", 3), ("C", 3)]] {
        let foreign = "not an elementwise op";
        refused(sizes, |x| x.sub(x.amax(keep("C"))?), foreign)?;
        refused(sizes, |x| x.softmax("C"), foreign)?;
        refused(sizes, |x| x.cumsum("N"), foreign)?;
        refused(sizes, |x| x.flip("N"), foreign)?;
        refused(sizes, |x| x.mul(x.sum(..)?), foreign)?;
        refused(sizes, |x| x.transpose("N", "C"), foreign)?;
        refused(sizes, |x| x.mul(x.numel() as f64), "something else for other sizes")?;
        refused(sizes, |x| x.mul(x.sizes()[0] as f64), "something else for other sizes")?;
        refused(sizes, |x| x.mul(x.size("N")? as f64), "fails on a part")?;
        refused(sizes, steep, "other values")?;
        refused(sizes, |x| x.mul(&Tensor::arange(0, x.numel() as i64, 1)?.view(x.sizes())?), "")?;
        refused(sizes, |x| x.mul(Tensor::rand_like(x)?), "random")?;
        refused(sizes, |x| F::dropout(x, 0.5), "random")?;
        refused(sizes, |x| x.rename(["A", "B"]), foreign)?;
        refused(sizes, |x| x.rename(["C", "N"]), foreign)?;
        refused(sizes, |x| x.align_to(["C", "N"]), foreign)?;
        refused(sizes, |x| x.flatten(["N", "C"], "all"), foreign)?;
    }
    Ok(())
}

#[test]
fn what_requires_a_gradient_is_an_input() -> Result<()> {
    let x = Tensor::ones([300, 200])?;
    let (w, number) = (Tensor::ones([200])?.requiring_grad()?, Tensor::new(2.0)?);
    let own = number.clone().requiring_grad()?;
    let error = fused(&[&x], move |[x]| x.mul(&own)).unwrap_err();
    assert_eq!((error.kind(), error.location().line()), (ErrorKind::Autograd, line!() - 1), "{error}");
    let constant = number.clone();
    assert_eq!(fused(&[&x], move |[x]| x.mul(&constant))?.sum(..)?.item::<f64>()?, 120_000.0);
    // A constant with dims could be that of another tile.
    let row = w.detach();
    assert!(fused(&[&x], move |[x]| x.mul(&row)).is_err());
    let other = Tensor::ones([300, 200])?;
    assert!(fused(&[&x], move |[x]| x.mul(&other)).is_err());
    assert!(fused(&[&x, &Tensor::ones([1, 200])?], |[_, y]| y.exp()).is_err(), "a result that broadcasts");
    Ok(())
}
