//! Tests every op in the registry on tensors of random shapes, names, dtypes and memory orders. A new op
//! needs no line here, unless it takes a new kind of argument, which is then drawn in `tests/draw.rs`.

use crate::recipe::{Recipe, close, dense, identical, recipe, recipes};
use namegrad::ops::{Op, Value};
use namegrad::prelude::*;
use namegrad_tests::draw::{Draw, Drawn, SEED};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseResult, TestRunner};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Rayon pools of one thread and of four.
static POOLS: LazyLock<[rayon::ThreadPool; 2]> = LazyLock::new(|| {
    [1, 4].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap())
});

/// Runs `cases` draws of a strategy. Each op that `f` counts must have succeeded a few times; otherwise it
/// was not really tested.
fn play<S: Strategy>(cases: u32, strategy: S, f: impl Fn(S::Value, &dyn Fn(&Op, bool)) -> TestCaseResult) {
    let config = ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(*SEED),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let worked: RefCell<BTreeMap<&str, u32>> = RefCell::default();
    let count = |op: &Op, ok: bool| *worked.borrow_mut().entry(op.info.name).or_default() += u32::from(ok);
    TestRunner::new(config)
        .run(&strategy, |value| f(value, &count))
        .unwrap_or_else(|failure| panic!("NAMEGRAD_SEED={} plays it again: {failure}", *SEED));
    // More would fail by chance: few random calls of a transposed convolution are valid.
    let least = (cases / 1000).max(1);
    let rarely: Vec<_> = worked.into_inner().into_iter().filter(|(_, times)| *times < least).collect();
    let seed = *SEED;
    assert!(
        rarely.is_empty(),
        "NAMEGRAD_SEED={seed}: of {cases} calls these worked so few times: {rarely:?}"
    );
}

/// Checks that a call on views gives the same result as on dense tensors, that the in-place form gives the
/// same result as the op, or an error that changes nothing, and that other owners of a buffer see no change.
/// `same` compares two results.
fn check(
    op: &Op,
    call: &Drawn,
    same: &dyn Fn(&Tensor, &Tensor) -> bool,
    count: &dyn Fn(&Op, bool),
) -> TestCaseResult {
    let name = op.info.name;
    let (copies, result) = (call.map(dense), call.call(op));
    count(op, result.is_ok());
    match (&result, copies.call(op)) {
        (Ok(a), Ok(b)) => {
            let equal = a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| same(a, b));
            prop_assert!(equal, "{name} of views {a:?} and of dense tensors {b:?}: {call:?}");
        }
        (Err(a), Err(b)) => prop_assert_eq!(a.kind(), b.kind(), "{}: {} and {}", name, a, b),
        (Err(_), Ok(_)) if name.starts_with("view") => {} // views never copy
        (a, b) => prop_assert!(false, "{name} of views {a:?} and of dense tensors {b:?}"),
    }
    let unchanged = |x: &Drawn| {
        let pairs = x.tensors.iter().flat_map(|(_, x)| x).zip(copies.tensors.iter().flat_map(|(_, x)| x));
        pairs.into_iter().all(|(a, b)| identical(a, b))
    };
    prop_assert!(unchanged(call), "{name} changed an input");
    // An in-place form, which keeps its dtype, does not take a cast.
    if op.info.in_place.is_none()
        || call
            .args
            .iter()
            .any(|(arg, _)| op.info.args.iter().any(|info| info.name == *arg && info.ty == "Cast"))
    {
        return Ok(());
    }
    let x = &call.tensors[0].1[0];
    let stays = |y: &Tensor| y.sizes() == x.sizes() && (!x.has_names() || y.names() == x.names());
    let fits = |y: &Tensor| (!op.info.by_element || stays(y)) && y.dtype().can_cast(x.dtype());
    let wanted =
        result.as_ref().ok().map(|results| &results[0]).filter(|y| fits(y)).map(|y| y.to(x.dtype()).unwrap());
    for mut own in [x.clone(), dense(x)] {
        match (call.call_in_place(op, &mut own), &wanted) {
            (Ok(()), Some(y)) => {
                prop_assert!(same(&own, y), "{name} in place gives {own} and not {y}: {call:?}")
            }
            (Err(_), None) => {
                prop_assert!(identical(&own, x), "{name} failed and changed its tensor: {call:?}")
            }
            (done, _) => prop_assert!(false, "{name} in place gives {done:?} and else {result:?}: {call:?}"),
        }
    }
    prop_assert!(unchanged(call), "{name} in place changed an input");
    Ok(())
}

#[test]
fn ops_by_element() {
    play(400, (recipes(), any::<u64>()), |(recipes, seed), count| {
        let inputs = recipes.map(|recipe| recipe.tensor(true));
        for op in namegrad_tests::ops().filter(|op| op.info.by_element) {
            check(op, &Drawn::of(op, &inputs, &mut Draw::new(seed)), &identical, count)?;
        }
        Ok(())
    });
}

/// Ops whose results are sums, whose rounding depends on the order of the terms: all ops in these tables, and
/// these ops in other tables. The results of all other ops are moved or computed element by element, so no
/// bit may differ.
const SUMS: (&[&str], &[&str]) = (
    &[
        "along",
        "attention",
        "classes",
        "conv",
        "ctc",
        "distance",
        "einsum",
        "embedding",
        "fold",
        "linear",
        "margin",
        "matmul",
        "norm",
        "pool",
        "probability",
        "products",
        "recurrent",
        "reduce",
        "regression",
        "similarity",
        "statistics",
        // Those of linear algebra.
        "eigen",
        "factor",
        "functions",
        "solve",
        "svd",
    ],
    &[
        "scatter_add",
        "scatter_reduce",
        "index_add",
        "index_reduce",
        "segment_sum",
        "segment_mean",
        "segment_softmax",
        "index_put",
        "put",
        "bincount",
        "quantile",
        "trace",
    ],
);

#[test]
fn other_ops() {
    play(1200, (recipe(), any::<u64>()), |(recipe, seed), count| {
        let x = recipe.tensor(false);
        let largest = x.sizes().iter().copied().max().unwrap_or(1).max(x.numel());
        // Beside a wider tensor, sums of `x` alone are still rounded in its dtype.
        let narrowed = |y: &Tensor| match x.dtype().is_floating_point() && y.dtype().is_floating_point() {
            true => y.to(x.dtype()).unwrap(),
            false => y.clone(),
        };
        let rounded = |a: &Tensor, b: &Tensor| {
            let alike = a.dtype() == b.dtype() && close(&narrowed(a), &narrowed(b), 9.0 * largest as f64);
            alike || close(a, b, 9.0 * largest as f64)
        };
        for op in namegrad_tests::ops().filter(|op| !op.info.by_element) {
            let sums = SUMS.0.contains(&op.info.table) || SUMS.1.contains(&op.info.name);
            let same: &dyn Fn(&Tensor, &Tensor) -> bool = if sums { &rounded } else { &identical };
            check(op, &Drawn::of(op, std::slice::from_ref(&x), &mut Draw::new(seed)), same, count)?;
        }
        Ok(())
    });
}

/// The dims that the tensors of a call broadcast to, with their names, if they do.
fn broadcast(call: &Drawn) -> Option<Tensor> {
    let mut tensors =
        call.tensors.iter().flat_map(|(_, tensors)| tensors).map(|x| x.zeros_like()?.to(DType::F32));
    let first = tensors.next()?.ok()?;
    tensors.try_fold(first, |all, x| all.add(x?)).ok()
}

/// Whether `gone` has the dims of `kept` in the same order and with the same names, except for some of size
/// one.
fn is_without_dims(gone: &Tensor, kept: &Tensor) -> bool {
    let dims = |x: &Tensor| (0..x.ndim()).map(|dim| (x.name(dim), x.sizes()[dim])).collect::<Vec<_>>();
    let mut left = dims(gone).into_iter().peekable();
    let rest = dims(kept).into_iter().filter(|dim| left.next_if_eq(dim).is_none());
    let removed: Vec<_> = rest.collect();
    left.peek().is_none() && removed.iter().all(|(_, size)| *size == 1)
}

/// With `keep`, the dims of a reduction are kept with size one and with their names; nothing else changes. An
/// op on several tensors that broadcast reduces the dims that they broadcast to.
#[test]
fn reductions_keep_dims() {
    let reduces = |op: &&Op| op.info.args.iter().any(|arg| arg.ty == "Reduced");
    play(300, (recipe(), any::<u64>()), |(recipe, seed), count| {
        let x = recipe.tensor(false);
        for op in namegrad_tests::ops().filter(reduces) {
            let mut call = Drawn::of(op, std::slice::from_ref(&x), &mut Draw::new(seed));
            call.args.retain(|(name, _)| *name != "keepdim");
            let gone = call.call(op);
            call.args.push(("keepdim", true.into()));
            count(op, gone.is_ok());
            match (gone, call.call(op)) {
                (Ok(gone), Ok(kept)) => {
                    for (gone, kept) in gone.iter().zip(&kept) {
                        if let Some(x) = broadcast(&call) {
                            prop_assert_eq!(kept.names(), x.names(), "{}: {:?}", op.info.name, call);
                            let sizes = kept.sizes().iter().zip(x.sizes());
                            prop_assert!(
                                sizes.into_iter().all(|(a, b)| a == b || *a == 1),
                                "{}: {call:?}",
                                op.info.name
                            );
                        }
                        prop_assert!(is_without_dims(gone, kept), "{}: {call:?}", op.info.name);
                        let same = kept.rename(None)?.reshape(gone.sizes())?;
                        prop_assert!(identical(&gone.rename(None)?, &same), "{}: {call:?}", op.info.name);
                    }
                }
                (Err(a), Err(b)) => prop_assert_eq!(a.kind(), b.kind(), "{}", op.info.name),
                (a, b) => prop_assert!(false, "{} {a:?} and with its dims kept {b:?}", op.info.name),
            }
        }
        Ok(())
    });
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
        let same = |name: &str, call: &(dyn Fn() -> Result<Vec<Tensor>> + Sync)| {
            let [one, four] = POOLS.each_ref().map(|pool| pool.install(call));
            match (one, four) {
                (Ok(one), Ok(four)) => {
                    let equal = one.iter().zip(&four).all(|(one, four)| identical(one, four));
                    assert!(equal, "{name} of {dtype} with one thread and with four");
                }
                (one, four) => assert_eq!(one.is_ok(), four.is_ok(), "{name} of {dtype}"),
            }
        };
        let inputs = |sizes| [false, true, false].map(|transposed| large(sizes, dtype, transposed));
        // The loops are the same for all dtypes; some ops take only integers.
        let once = |op: &&Op| {
            op.info.by_element
                && (dtype == DType::F32 || dtype == DType::I64 && op.info.name.starts_with("bitwise"))
        };
        let few = inputs([300, 450]);
        for op in namegrad_tests::ops().filter(once) {
            let call = Drawn::of(op, &few, &mut Draw::new(3));
            same(op.info.name, &|| call.call(op));
        }
        let [plain, transposed, other] = inputs([701, 401]);
        for op in namegrad_tests::ops().filter(|op| ["reduce", "along", "pick"].contains(&op.info.table)) {
            for dim in [Value::from([0]), [1].into(), [0, 1].into()] {
                let dim = match (op.info.args.iter().find(|arg| arg.name == "dim").map(|arg| arg.ty), &dim) {
                    (Some("Dim"), Value::List(dims)) => dims[0].clone(),
                    _ => dim,
                };
                let args = [("dim", dim.into()), ("k", 9.into())];
                let args =
                    if op.info.args.iter().any(|arg| arg.name == "k") { &args[..] } else { &args[..1] };
                same(op.info.name, &|| op.call(&[&plain], args));
                same(op.info.name, &|| op.call(&[&transposed], args));
            }
        }
        same("matmul", &|| {
            Ok(vec![plain.narrow(0, 0, 150)?.matmul(&other.narrow(0, 0, 401)?.narrow(1, 0, 150)?)?])
        });
        same("searchsorted", &|| Ok(vec![plain.select(0, 0)?.sort(0)?.values.searchsorted(&transposed)?]));
    }
}
