//! Every op on tensors of random shapes, names, dtypes and memory orders. The ops come from the tables of the library, so that a new one is tested without a
//! line here, unless it takes a kind of argument that none took before: that is drawn in `proptest/tables.rs`.

#[path = "proptest/recipe.rs"]
mod recipe;
#[path = "proptest/tables.rs"]
mod tables;

use namegrad::prelude::*;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use recipe::{Recipe, close, dense, identical, recipe, recipes};
use std::sync::LazyLock;
use tables::{Draw, Pointwise, REDUCTIONS, pointwise, with_arguments};

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

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ops_with_arguments(recipe in recipe(), seed in any::<u64>()) {
        let x = recipe.tensor(false);
        let copy = dense(&x);
        for op in with_arguments() {
            let mut draw = Draw(seed);
            let mut others = Vec::new();
            for role in op.roles {
                others.push(draw.other(role, &x, &others));
            }
            let draw = || draw.clone();
            let result = (op.call)(&x, &others, &mut draw());
            match (&result, (op.call)(&copy, &others, &mut draw())) {
                (Ok(a), Ok(b)) => prop_assert!(close(a, &b, 9.0 * x.numel() as f64), "{} of a view {a} and of a dense tensor {b}", op.name),
                (Err(a), Err(b)) => prop_assert_eq!(a.kind(), b.kind(), "{}", op.name),
                (Err(_), Ok(_)) if op.name == "view" => {} // it never copies
                (a, b) => prop_assert!(false, "{} of a view {a:?} and of a dense tensor {b:?}", op.name),
            }
            let Some(in_place) = op.in_place else { continue };
            for mut own in [x.clone(), copy.clone(), dense(&x)] {
                match (in_place(&mut own, &others, &mut draw()), &result) {
                    (Ok(()), Ok(y)) => prop_assert!(close(&own, &y.to(x.dtype())?, 9.0 * x.numel() as f64), "{} in place gives {own} and not {y}", op.name),
                    (Err(_), _) => prop_assert!(identical(&own, &copy), "{} failed and changed its tensor", op.name),
                    (Ok(()), Err(error)) => prop_assert!(false, "{} in place works where {error}", op.name),
                }
            }
            prop_assert!(identical(&x, &copy), "{} changed its input", op.name);
        }
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
