//! The tape: the results and the errors of `backward`, with their locations, and very deep graphs.

use namegrad::autograd::{
    BackwardOptions, Kept, Op, grad, grad_with, gradcheck, gradgradcheck, is_grad_enabled,
};
use namegrad::core::NamedTensor;
use namegrad::prelude::*;
use namegrad_tests::values::{ONCE, assert_near, f64s, gradient, gradients};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

const RETAIN: BackwardOptions = BackwardOptions { retain_graph: true, ..ONCE };
const CREATE: BackwardOptions = BackwardOptions { create_graph: true, ..ONCE };
const UNUSED: BackwardOptions = BackwardOptions { allow_unused: true, ..ONCE };

/// A leaf that requires a gradient.
fn leaf<const K: usize>(data: [f64; K]) -> Tensor {
    TensorOptions::new().dtype(DType::F64).requires_grad(true).tensor(data).unwrap()
}

fn numbers(x: &Tensor) -> Vec<f64> {
    x.to(DType::F64).unwrap().to_vec().unwrap()
}

fn grad_of(x: &Tensor) -> Vec<f64> {
    numbers(&x.grad().expect("backward has reached this leaf"))
}

/// Fails unless the call returns an error of the tape that is reported at this line.
#[track_caller]
fn assert_refused<T: std::fmt::Debug>(result: Result<T>, words: &str) {
    let (error, caller) = (result.unwrap_err(), std::panic::Location::caller());
    assert_eq!(error.kind(), ErrorKind::Autograd, "{error}");
    // A call too long for one line starts on the next.
    assert!((caller.line()..caller.line() + 4).contains(&error.location().line()), "{caller}: {error}");
    assert_eq!(error.location().file(), caller.file(), "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

// Starting a backward pass

#[test]
fn backward_needs_one_element_or_its_gradient() -> Result<()> {
    let x = leaf([1.0, 2.0]);
    let y = x.mul(&x)?;
    assert_refused(y.backward(), "grad can be implicitly created only for scalar outputs");
    let g = TensorOptions::new().dtype(DType::F64).tensor([1.0, 10.0])?;
    y.backward_with(Some(&g), ONCE)?;
    assert_eq!(grad_of(&x), [2.0, 40.0]);
    let y = x.mul(&x)?;
    assert_refused(y.backward_with(Some(&Tensor::ones([3])?), ONCE), "Mismatch in shape");
    Ok(())
}

#[test]
fn backward_needs_a_graph() -> Result<()> {
    let x = Tensor::new(1.0)?;
    assert_refused(x.backward(), "does not require grad");
    let y = no_grad(|| leaf([1.0]).mul(2.0))?;
    assert_refused(y.backward(), "does not require grad");
    assert_refused(grad_with(&[&leaf([1.0])], &[&x], &[], ONCE), "input 0 does not require a gradient");
    Ok(())
}

#[test]
fn a_graph_is_walked_once_unless_retained() -> Result<()> {
    let x = leaf([3.0]);
    let y = x.mul(&x)?.sum(..)?;
    y.backward_with(None, RETAIN)?;
    y.backward_with(None, RETAIN)?;
    y.backward()?;
    assert_eq!(grad_of(&x), [18.0], "three walks of 6 each");
    assert_refused(y.backward(), "a second time");
    assert_eq!(grad_of(&x), [18.0], "a refused walk adds nothing");
    Ok(())
}

#[test]
fn what_kept_nothing_is_walked_again() -> Result<()> {
    let x = leaf([3.0]);
    let y = x.add(1.0)?.unsqueeze(0)?.sum(..)?;
    y.backward()?;
    y.backward()?;
    assert_eq!(grad_of(&x), [2.0]);
    let door = |keeps: bool| {
        let kept = Kept::input(&x);
        let op = Op::new("door", x.value().clone());
        match keeps {
            true => op.input(&x, move |g, cx| g.mul(kept.get(cx))),
            false => op.input(&x, |g, _| Ok(g.clone())),
        }
        .output()
    };
    for (keeps, again) in [(true, false), (false, true)] {
        let y = door(keeps);
        let g = leaf([1.0]).detach();
        y.backward_with(Some(&g), ONCE)?;
        assert_eq!(y.backward_with(Some(&g), ONCE).is_ok(), again);
    }
    Ok(())
}

#[test]
fn what_is_overwritten_has_a_gradient_of_zero() -> Result<()> {
    let changes: [fn(&mut Tensor) -> Result<()>; 4] = [
        |x| x.zero_().map(drop),
        |x| x.fill_(2.0).map(drop),
        |x| x.normal_(0.0, 1.0).map(drop),
        |x| x.random_(0..5).map(drop),
    ];
    for change in changes {
        let x = leaf([3.0]);
        let mut y = x.mul(2.0)?;
        change(&mut y)?;
        y.sum(..)?.backward()?;
        assert_eq!(grad_of(&x), [0.0]);
    }
    Ok(())
}

#[test]
fn a_part_walked_before_stops_the_whole_walk() -> Result<()> {
    let (x, z) = (leaf([3.0]), leaf([2.0]));
    let shared = x.mul(&x)?;
    shared.sum(..)?.backward()?;
    x.zero_grad();
    let y = shared.mul(&z)?.sum(..)?;
    assert_refused(y.backward(), "a second time");
    assert!(x.grad().is_none() && z.grad().is_none(), "a walk that fails leaves no half of the gradients");
    Ok(())
}

#[test]
fn a_leaf_is_its_own_graph() -> Result<()> {
    let x = leaf([5.0]);
    x.backward()?;
    x.backward()?;
    assert_eq!(grad_of(&x), [2.0]);
    Ok(())
}

#[test]
fn gradients_accumulate_until_they_are_forgotten() -> Result<()> {
    let x = leaf([1.0, 2.0]);
    x.sum(..)?.backward()?;
    x.mul(3.0)?.sum(..)?.backward()?;
    assert_eq!(grad_of(&x), [4.0, 4.0]);
    x.zero_grad();
    assert!(x.grad().is_none());
    x.sum(..)?.backward()?;
    assert_eq!(grad_of(&x), [1.0, 1.0]);
    Ok(())
}

#[test]
fn an_accumulated_gradient_held_by_the_user_does_not_change() -> Result<()> {
    let x = leaf([1.0]);
    x.mul(2.0)?.sum(..)?.backward()?;
    let first = x.grad().unwrap();
    x.mul(5.0)?.sum(..)?.backward()?;
    assert_eq!((numbers(&first), grad_of(&x)), (vec![2.0], vec![7.0]));
    Ok(())
}

#[test]
fn gradients_have_no_names() -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 3)])?.requiring_grad()?;
    let y = x.mul(&x)?;
    y.retain_grad()?;
    y.sum("C")?.sum("N")?.backward()?;
    assert!(!x.grad().unwrap().has_names() && !y.grad().unwrap().has_names());
    let given = Tensor::ones([("anything", 2), ("else", 3)])?;
    let y = x.mul(2.0)?;
    y.backward_with(Some(&given), ONCE)?;
    assert!(!x.grad().unwrap().has_names(), "the names of a given gradient are ignored");
    Ok(())
}

// `grad`

#[test]
fn grad_of_intermediates_touches_no_leaf() -> Result<()> {
    let x = leaf([3.0]);
    let y = x.mul(&x)?;
    let z = y.mul(&y)?.sum(..)?;
    let found = grad_with(&[&z], &[&y, &x], &[], ONCE)?;
    let found: Vec<f64> = found.into_iter().flat_map(|g| numbers(&g.unwrap())).collect();
    assert_eq!(found, [18.0, 108.0]);
    assert!(x.grad().is_none());
    Ok(())
}

#[test]
fn grad_walks_only_what_it_needs() -> Result<()> {
    let (x, z) = (leaf([3.0]), leaf([2.0]));
    let (used, other) = (x.mul(&x)?, z.mul(&z)?);
    let y = used.mul(&other)?.sum(..)?;
    grad_with(&[&y], &[&used], &[], ONCE)?;
    other.sum(..)?.backward()?;
    assert_eq!(grad_of(&z), [4.0], "the other branch was not walked, so it can be walked now");
    Ok(())
}

#[test]
fn grad_of_several_outputs_is_that_of_their_sum() -> Result<()> {
    let x = leaf([1.0, 2.0]);
    let (a, b) = (x.mul(3.0)?.sum(..)?, x.mul(&x)?);
    let weights = TensorOptions::new().dtype(DType::F64).tensor([1.0, 10.0])?;
    let found = grad_with(&[&a, &b], &[&x], &[None, Some(&weights)], ONCE)?;
    assert_eq!(numbers(found[0].as_ref().unwrap()), [5.0, 43.0]);
    assert_refused(grad_with(&[&a], &[&x], &[None, None], ONCE), "1 outputs and 2 gradients");
    Ok(())
}

#[test]
fn an_unused_input_is_an_error_unless_allowed() -> Result<()> {
    let (x, other) = (leaf([1.0]), leaf([1.0]));
    let y = x.mul(2.0)?.sum(..)?;
    let found = grad_with(&[&y], &[&other, &x], &[], BackwardOptions { retain_graph: true, ..UNUSED })?;
    assert!(found[0].is_none() && found[1].is_some());
    assert_refused(grad_with(&[&y], &[&x, &other], &[], ONCE), "not have been used in the graph: input 1");
    Ok(())
}

#[test]
fn create_graph_gives_gradients_of_gradients() -> Result<()> {
    let x = leaf([2.0]);
    let mut y = x.pow(5.0)?.sum(..)?;
    for want in [80.0, 160.0, 240.0, 240.0, 120.0] {
        let found = grad_with(&[&y], &[&x], &[], CREATE)?.remove(0).unwrap();
        assert_eq!(numbers(&found), [want]);
        y = found.sum(..)?;
    }
    Ok(())
}

#[test]
fn backward_with_create_graph_leaves_a_gradient_that_can_be_differentiated() -> Result<()> {
    let x = leaf([3.0]);
    x.mul(&x)?.mul(&x)?.sum(..)?.backward_with(None, CREATE)?;
    let first = x.grad().unwrap();
    assert_eq!(numbers(&first), [27.0]);
    let second = grad_with(&[&first], &[&x], &[], ONCE)?.remove(0).unwrap();
    assert_eq!(numbers(&second), [18.0]);
    x.zero_grad(); // the gradient owns the graph, and the graph owns the leaf
    Ok(())
}

#[test]
fn without_create_graph_gradients_are_constants() -> Result<()> {
    let x = leaf([3.0]);
    let y = x.mul(&x)?.sum(..)?;
    let found = grad_with(&[&y], &[&x], &[], RETAIN)?.remove(0).unwrap();
    assert!(!found.requires_grad());
    y.backward()?;
    assert!(!x.grad().unwrap().requires_grad());
    Ok(())
}

// Hooks

#[test]
fn hooks_run_in_order_until_removed() -> Result<()> {
    let x = leaf([1.0]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let hook = |label: &'static str, factor: f64| {
        let seen = seen.clone();
        x.register_hook(move |g| {
            seen.lock().unwrap().push((label, numbers(g)[0]));
            g.mul(factor).map(Some)
        })
    };
    let (first, second) = (hook("first", 2.0)?, hook("second", 5.0)?);
    x.mul(3.0)?.sum(..)?.backward()?;
    assert_eq!(*seen.lock().unwrap(), [("first", 3.0), ("second", 6.0)]);
    assert_eq!(grad_of(&x), [30.0]);
    first.remove();
    first.remove();
    x.zero_grad();
    x.mul(3.0)?.sum(..)?.backward()?;
    assert_eq!(grad_of(&x), [15.0]);
    drop(second);
    x.mul(3.0)?.sum(..)?.backward()?;
    assert_eq!(grad_of(&x), [30.0], "dropping a handle leaves the hook");
    Ok(())
}

#[test]
fn a_hook_of_an_intermediate_sees_its_whole_gradient_once() -> Result<()> {
    let x = leaf([1.0]);
    let y = x.mul(2.0)?;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let copy = seen.clone();
    y.register_hook(move |g| {
        copy.lock().unwrap().push(numbers(g)[0]);
        Ok(None)
    })?;
    y.mul(3.0)?.add(&y.mul(4.0)?)?.sum(..)?.backward()?;
    assert_eq!(*seen.lock().unwrap(), [7.0]);
    assert_eq!(grad_of(&x), [14.0]);
    Ok(())
}

#[test]
fn hooks_after_accumulation_see_the_sum() -> Result<()> {
    let x = leaf([1.0]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let copy = seen.clone();
    let handle = x.register_post_accumulate_grad_hook(move |g| {
        copy.lock().unwrap().push(numbers(g)[0]);
        Ok(None)
    })?;
    x.mul(2.0)?.sum(..)?.backward()?;
    x.mul(3.0)?.sum(..)?.backward()?;
    handle.remove();
    x.mul(4.0)?.sum(..)?.backward()?;
    assert_eq!(*seen.lock().unwrap(), [2.0, 5.0]);
    assert_refused(x.mul(2.0)?.register_post_accumulate_grad_hook(|_| Ok(None)).map(drop), "non-leaf");
    Ok(())
}

#[test]
fn a_hook_must_keep_sizes_and_dtype() -> Result<()> {
    let x = leaf([1.0, 2.0]);
    let wrong_size = x.register_hook(|_| Ok(Some(Tensor::ones([3])?)))?;
    let y = x.mul(2.0)?.sum(..)?;
    assert_refused(y.backward_with(None, RETAIN), "a hook changed the sizes of a gradient from [2] to [3]");
    wrong_size.remove();
    let wrong_dtype = x.register_hook(|_| Ok(Some(Tensor::ones([2])?)))?;
    assert_refused(y.backward_with(None, RETAIN), "a hook changed the dtype");
    wrong_dtype.remove();
    assert!(x.grad().is_none());
    y.backward()?;
    assert_eq!(grad_of(&x), [2.0, 2.0]);
    Ok(())
}

#[test]
fn the_error_of_a_hook_comes_through() -> Result<()> {
    let x = leaf([1.0]);
    x.register_hook(|g| g.sum("no_such_dim").map(Some))?;
    let error = x.mul(2.0)?.sum(..)?.backward().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NameNotFound);
    assert!(x.grad().is_none());
    Ok(())
}

#[test]
fn hooks_need_a_gradient_to_wait_for() -> Result<()> {
    let x = Tensor::ones([1])?;
    assert_refused(x.register_hook(|_| Ok(None)).map(drop), "doesn't require gradient");
    assert_refused(x.retain_grad(), "can't retain_grad");
    assert_refused(x.set_grad(Some(Tensor::ones([1])?)), "does not require a gradient");
    Ok(())
}

// Records on the tape

#[test]
fn intermediates_keep_their_gradient_on_demand() -> Result<()> {
    let x = leaf([2.0]);
    let (kept, not) = (x.mul(3.0)?, x.mul(4.0)?);
    kept.retain_grad()?;
    kept.mul(&not)?.sum(..)?.backward()?;
    assert_eq!(grad_of(&kept), [8.0]);
    assert!(not.grad().is_none());
    Ok(())
}

#[test]
fn leaves_and_their_makers() -> Result<()> {
    let x = leaf([2.0]);
    let y = x.exp()?;
    assert!(x.is_leaf() && x.requires_grad() && x.grad_fn().is_none());
    assert!(!y.is_leaf() && y.requires_grad());
    assert_eq!(y.grad_fn(), Some("exp"));
    let cut = y.detach();
    assert!(cut.is_leaf() && !cut.requires_grad());
    assert_eq!(cut.value().data_ptr(), y.value().data_ptr(), "detach shares the buffer");
    let truth = x.gt(0.0)?;
    assert!(!truth.requires_grad() && truth.is_leaf());
    assert_refused(y.clone().requires_grad_(false).map(drop), "only change requires_grad flags of leaf");
    assert_refused(Tensor::new(1)?.requiring_grad().map(drop), "only Tensors of floating point dtype");
    Ok(())
}

#[test]
fn detach_cuts_one_way_only() -> Result<()> {
    let x = leaf([3.0]);
    x.mul(x.detach())?.sum(..)?.backward()?;
    assert_eq!(grad_of(&x), [3.0]);
    let mut y = x.mul(2.0)?;
    y.detach_();
    assert!(!y.requires_grad());
    Ok(())
}

#[test]
fn recording_nests_and_comes_back_after_a_panic() -> Result<()> {
    let x = leaf([1.0]);
    no_grad(|| {
        assert!(!is_grad_enabled());
        assert!(!x.mul(2.0).unwrap().requires_grad());
        enable_grad(|| {
            assert!(x.mul(2.0).unwrap().requires_grad());
            no_grad(|| assert!(!is_grad_enabled()));
            assert!(is_grad_enabled());
        });
        assert!(!is_grad_enabled());
        let other_thread = std::thread::spawn(is_grad_enabled).join().unwrap();
        assert!(other_thread, "each thread has its own switch");
    });
    assert!(is_grad_enabled());
    let panicked = catch_unwind(|| no_grad(|| panic!("in no_grad")));
    assert!(panicked.is_err() && is_grad_enabled());
    let y = x.mul(2.0)?;
    x.register_hook(|_| panic!("in a hook"))?;
    assert!(catch_unwind(AssertUnwindSafe(|| y.sum(..).unwrap().backward())).is_err());
    assert!(is_grad_enabled(), "backward had switched recording off");
    Ok(())
}

/// The error of a backward pass without a graph says where recording was last off.
#[test]
fn a_forward_pass_in_no_grad_is_found() -> Result<()> {
    let x = leaf([2.0]);
    let backward = |loss: &Tensor| loss.backward().unwrap_err();
    let fresh = std::thread::spawn(|| Tensor::new(1.0).unwrap().backward().unwrap_err()).join().unwrap();
    assert!(!fresh.message().contains("no_grad at"), "{fresh}");
    let (loss, line) = (no_grad(|| x.square()?.sum(..))?, line!());
    let error = backward(&loss);
    assert!(error.message().contains(&format!("no_grad at {}:{line}:", file!())), "{error}");
    // The line is that of the program, not of the library.
    let _detached = namegrad::autograd::checkpoint(|t| t[0].square(), &[&x])?;
    assert!(backward(&loss).message().contains(&format!("{}:{line}:", file!())));
    Ok(())
}

#[test]
fn what_is_made_in_no_grad_can_require_a_gradient() -> Result<()> {
    let x = no_grad(|| leaf([2.0]));
    x.mul(&x)?.sum(..)?.backward()?;
    assert_eq!(grad_of(&x), [4.0]);
    Ok(())
}

// In place

#[test]
fn a_leaf_is_not_changed_in_place_while_recording() -> Result<()> {
    let mut x = leaf([1.0, 2.0]);
    assert_refused(x.mul_(2.0).map(drop), "a leaf Variable that requires grad");
    assert_refused(x.exp_().map(drop), "a leaf Variable that requires grad");
    assert_refused(x.zero_().map(drop), "a leaf Variable that requires grad");
    assert_refused(x.clamp_(0.0, 1.0).map(drop), "a leaf Variable that requires grad");
    assert_refused(x.transpose_(0, 0).map(drop), "a leaf Variable that requires grad");
    assert_eq!(numbers(&x), [1.0, 2.0]);
    no_grad(|| x.mul_(2.0).map(drop))?;
    assert!(x.requires_grad() && x.is_leaf());
    x.mul(&x)?.sum(..)?.backward()?;
    assert_eq!(grad_of(&x), [4.0, 8.0]);
    Ok(())
}

#[test]
fn a_kept_value_is_not_corrupted_by_later_changes() -> Result<()> {
    let x = leaf([1.0, 2.0]);
    let mut a = x.mul(3.0)?;
    let y = a.mul(&a)?; // saves `a`
    a.zero_()?;
    let mut e = y.exp()?; // saves its output
    let z = e.sum(..)?;
    no_grad(|| e.zero_().map(drop))?;
    z.backward()?;
    // d/dx exp(9 x²) = 18 x exp(9 x²)
    for (got, x) in grad_of(&x).iter().zip([1.0f64, 2.0]) {
        let want = 18.0 * x * (9.0 * x * x).exp();
        assert!((got - want).abs() <= 1e-12 * want, "{got} and not {want}");
    }
    Ok(())
}

#[test]
fn an_optimizer_step_between_forward_and_backward_changes_no_gradient() -> Result<()> {
    let mut w = leaf([2.0]);
    let y = w.mul(&w)?.sum(..)?;
    w.update(|value| value.mul_(100.0).map(drop))?;
    y.backward()?;
    assert_eq!(grad_of(&w), [4.0]);
    assert_eq!(numbers(&w), [200.0]);
    Ok(())
}

#[test]
fn in_place_ops_are_recorded() -> Result<()> {
    let x = leaf([2.0]);
    let mut y = x.mul(3.0)?;
    y.mul_(&x)?.add_(1.0)?; // 3 x² + 1
    assert_eq!(y.grad_fn(), Some("add"));
    y.sum(..)?.backward()?;
    assert_eq!(grad_of(&x), [12.0]);
    let mut constant = Tensor::zeros([1])?.to(DType::F64)?;
    constant.add_(&x)?;
    assert!(constant.requires_grad(), "a constant takes part from then on");
    Ok(())
}

#[test]
fn a_failed_call_in_place_changes_neither_value_nor_place() -> Result<()> {
    let x = leaf([1.0, 2.0]);
    let mut y = x.mul(3.0)?;
    assert!(y.add_(&Tensor::ones([5])?).is_err());
    assert!(y.add_(&Tensor::ones([2, 2])?.to(DType::F64)?).is_err());
    assert_eq!((numbers(&y), y.grad_fn()), (vec![3.0, 6.0], Some("mul")));
    y.sum(..)?.backward()?;
    assert_eq!(grad_of(&x), [3.0, 3.0]);
    Ok(())
}

// Graphs of all shapes

#[test]
fn a_value_used_many_times_gets_the_sum() -> Result<()> {
    let x = leaf([2.0]);
    let a = x.mul(&x)?;
    let b = a.mul(&x)?;
    a.add(&b)?.add(&a)?.add(&x)?.sum(..)?.backward()?; // 2 x² + x³ + x
    assert_eq!(grad_of(&x), [4.0 * 2.0 + 3.0 * 4.0 + 1.0]);
    Ok(())
}

#[test]
fn a_graph_is_shared_by_threads() -> Result<()> {
    let x = leaf([1.0, 2.0, 3.0]);
    let shared = x.mul(&x)?;
    std::thread::scope(|scope| {
        let walks: Vec<_> = (0..8)
            .map(|k| {
                let (x, shared) = (&x, &shared);
                scope.spawn(move || -> Result<()> {
                    let y = shared.mul(f64::from(k))?.sum(..)?;
                    y.backward_with(None, RETAIN)?;
                    let own = grad_with(&[&y], &[x], &[], RETAIN)?.remove(0).unwrap();
                    assert_eq!(numbers(&own), [1.0, 2.0, 3.0].map(|x| 2.0 * x * f64::from(k)));
                    Ok(())
                })
            })
            .collect();
        walks.into_iter().try_for_each(|walk| walk.join().unwrap())
    })?;
    assert_eq!(grad_of(&x), [1.0, 2.0, 3.0].map(|x| 2.0 * x * 28.0), "0 + 1 + .. + 7 = 28");
    Ok(())
}

/// Long enough that recursion would overflow the stack of a thread.
const LONG: usize = 1_000_000;

#[test]
fn a_chain_of_a_million_ops() -> Result<()> {
    let x = leaf([1.0]);
    let mut y = x.clone();
    for _ in 0..LONG {
        y = y.add(1.0)?;
    }
    y.sum(..)?.backward()?;
    assert_eq!(grad_of(&x), [1.0]);
    Ok(())
}

#[test]
fn a_long_chain_is_dropped_without_being_walked() -> Result<()> {
    let x = leaf([1.0]);
    let mut y = x.clone();
    for _ in 0..LONG / 2 {
        y = y.neg()?;
    }
    let last = y.clone();
    drop(y);
    std::thread::spawn(move || drop(last)).join().unwrap();
    Ok(())
}

#[test]
fn a_chain_whose_links_keep_their_inputs() -> Result<()> {
    let x = leaf([0.5]);
    let mut y = x.clone();
    for _ in 0..LONG / 20 {
        y = y.mul(&y.sin()?)?.add(0.25)?;
    }
    let first = grad_with(&[&y.sum(..)?], &[&x], &[], RETAIN)?.remove(0).unwrap();
    assert!(numbers(&first)[0].is_finite());
    drop(y); // the backward pass did not finish, so everything is still saved
    Ok(())
}

#[test]
fn a_chain_is_differentiated_twice() -> Result<()> {
    let x = leaf([1.0 + 1e-6]);
    let mut y = x.clone();
    for _ in 0..5_000 {
        y = y.mul(&x)?;
    }
    let first = grad_with(&[&y.sum(..)?], &[&x], &[], CREATE)?.remove(0).unwrap();
    let second = grad_with(&[&first.sum(..)?], &[&x], &[], ONCE)?.remove(0).unwrap();
    let (n, x) = (5_001.0f64, 1.0 + 1e-6f64);
    let want = n * (n - 1.0) * x.powf(n - 2.0);
    assert!((numbers(&second)[0] / want - 1.0).abs() < 1e-9, "{} and not {want}", numbers(&second)[0]);
    Ok(())
}

#[test]
fn a_wide_fan_out() -> Result<()> {
    let x = leaf([1.0]);
    let parts: Vec<Tensor> = (0..30_000).map(|_| x.mul(2.0)).collect::<Result<_>>()?;
    let mut total = parts[0].clone();
    for part in &parts[1..] {
        total = total.add(part)?;
    }
    total.sum(..)?.backward()?;
    assert_eq!(grad_of(&x), [60_000.0]);
    Ok(())
}

#[test]
fn a_graph_with_exponentially_many_paths() -> Result<()> {
    let x = leaf([1.0]);
    let mut y = x.clone();
    for _ in 0..60 {
        y = y.add(&y)?;
    }
    y.sum(..)?.backward()?;
    assert_eq!(grad_of(&x), [2.0f64.powi(60)]);
    Ok(())
}

// Where there is no derivative

/// The gradients of the inputs of `f`, with a gradient of 1 for each element of the output.
fn slopes<const K: usize, const N: usize>(
    f: impl Fn(&[Tensor; N]) -> Result<Tensor>,
    inputs: [[f64; K]; N],
) -> Result<[Vec<f64>; N]> {
    let inputs = inputs.map(leaf);
    f(&inputs)?.sum(..)?.backward()?;
    Ok(inputs.each_ref().map(grad_of))
}

#[test]
fn at_a_bound_the_gradient_is_that_of_what_is_clamped() -> Result<()> {
    let (low, high) = ([1.0; 6], [2.0; 6]);
    let x = [0.0, 1.0, 1.5, 2.0, 3.0, f64::NAN];
    let clamp = |[x, low, high]: &[Tensor; 3]| x.clamp(low, high);
    let found = slopes(clamp, [x, low, high])?;
    let want =
        [[0.0, 1.0, 1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]];
    assert_eq!(found, want);
    // With equal bounds, the result is the lower bound below them and the upper bound above. With crossed
    // bounds, it is always the upper one.
    let found = slopes(clamp, [[0.0, 1.0, 2.0], [1.0; 3], [1.0; 3]])?;
    assert_eq!(found, [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]);
    let found = slopes(clamp, [[0.0, 1.5, 3.0], [2.0; 3], [1.0; 3]])?;
    assert_eq!(found, [[0.0; 3], [0.0; 3], [1.0; 3]]);
    Ok(())
}

#[test]
fn of_two_equal_ones_both_have_half() -> Result<()> {
    let (a, b) = ([1.0, 2.0, f64::NAN, 1.0], [1.0, 1.0, 1.0, f64::NAN]);
    assert_eq!(slopes(|[a, b]| a.maximum(b), [a, b])?, [[0.5, 1.0, 1.0, 1.0], [0.5, 0.0, 1.0, 1.0]]);
    assert_eq!(slopes(|[a, b]| a.minimum(b), [a, b])?, [[0.5, 0.0, 1.0, 1.0], [0.5, 1.0, 1.0, 1.0]]);
    // As in PyTorch 2.10, which gives the whole gradient to the first input.
    assert_eq!(slopes(|[a, b]| a.fmax(b), [a, b])?, [[1.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0]]);
    assert_eq!(slopes(|[a, b]| a.fmin(b), [a, b])?, [[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]]);
    Ok(())
}

#[test]
fn slopes_of_functions_of_one_number_at_their_ends() -> Result<()> {
    let [logit] = slopes(|[x]| x.logit(), [[-0.5, 0.0, 0.5, 1.0, 1.5]])?;
    assert!(logit[0].is_nan() && logit[4].is_nan(), "{logit:?}");
    assert_eq!(logit[1..4], [f64::INFINITY, 4.0, f64::INFINITY]);
    assert_eq!(slopes(|[x]| x.digamma(), [[0.0, f64::INFINITY]])?, [[f64::INFINITY, 0.0]]);
    assert_eq!(slopes(|[x]| x.i0(), [[0.0]])?, [[0.0]]);
    assert_eq!(slopes(|[x]| x.i0e(), [[0.0]])?, [[0.0]]);
    let one_half = |slopes: [Vec<f64>; 1]| slopes[0].iter().all(|slope| (slope - 0.5).abs() < 1e-15);
    assert!(one_half(slopes(|[x]| x.i1(), [[0.0, -0.0]])?));
    assert!(one_half(slopes(|[x]| x.i1e(), [[0.0, -0.0]])?));
    assert_eq!(slopes(|[x]| x.sinc(), [[0.0]])?, [[0.0]]);
    assert_eq!(slopes(|[x]| x.entr(), [[0.0, 1.0]])?, [[f64::INFINITY, -1.0]]);
    Ok(())
}

// User-defined ops

/// `x³`, which saves its input.
fn cube(x: &Tensor) -> Result<Tensor> {
    let y = x.value().mul(x.value())?.mul(x.value())?;
    let kept = Kept::input(x);
    Ok(Op::new("cube", y).input(x, move |g, cx| g.mul(&kept.get(cx).square()?.mul(3.0)?)).output())
}

/// `e^x`, whose derivative is computed from its output, times `y`, which is broadcast.
fn scaled_exp(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let e = x.value().exp()?;
    let value = e.mul(y.value())?;
    let (out, x_kept) = (Kept::output(&value), Kept::input(x));
    Ok(Op::new("scaled_exp", value)
        .input(x, move |g, cx| g.mul(out.get(cx)))
        .input(y, move |g, cx| g.mul(x_kept.get(cx).exp()?))
        .output())
}

#[test]
fn a_users_op_is_an_op() -> Result<()> {
    let x = leaf([0.5, -1.0, 2.0]);
    gradcheck(|x| cube(&x[0]), std::slice::from_ref(&x))?;
    gradgradcheck(|x| cube(&x[0]), std::slice::from_ref(&x))?;
    assert_eq!(cube(&x)?.grad_fn(), Some("cube"));
    let matrix = TensorOptions::new().dtype(DType::F64).tensor([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])?;
    gradcheck(|x| scaled_exp(&x[0], &x[1]), &[matrix.clone(), x.clone()])?;
    gradgradcheck(|x| scaled_exp(&x[0], &x[1]), &[matrix, x])?;
    Ok(())
}

#[test]
fn a_wrong_derivative_is_found() -> Result<()> {
    let wrong = |x: &[Tensor]| {
        let value = x[0].value().square()?;
        let kept = Kept::input(&x[0]);
        Ok(Op::new("wrong", value).input(&x[0], move |g, cx| g.mul(&kept.get(cx).mul(2.01)?)).output())
    };
    assert_refused(gradcheck(wrong, &[leaf([1.0])]), "on the tape");
    let first_order_only = |x: &[Tensor]| {
        let value = x[0].value().square()?;
        let kept = Kept::input(&x[0].detach());
        Ok(Op::new("cut", value).input(&x[0], move |g, cx| g.mul(&kept.get(cx).mul(2.0)?)).output())
    };
    gradcheck(first_order_only, &[leaf([1.0])])?;
    assert_refused(gradgradcheck(first_order_only, &[leaf([1.0])]), "on the tape");
    Ok(())
}

#[test]
fn an_error_in_a_derivative_says_which_op_and_where() -> Result<()> {
    let x = leaf([1.0, 2.0]);
    let line = line!() + 1;
    let op = Op::new("broken", NamedTensor::ones([2])?.to(DType::F64)?);
    let y = op.input(&x, |g, _| g.sum("no_such_dim")).output();
    let error = y.sum(..)?.backward().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NameNotFound);
    assert!(
        error.to_string().contains(&format!("in the backward of broken, called at {}:{line}", file!())),
        "{error}"
    );
    Ok(())
}

#[test]
fn a_nan_stopped_the_gradient_that_passed_through_it() -> Result<()> {
    assert_eq!(gradients(|a, b| a.maximum(b), f64::NAN, 1.0)?, [1.0, 1.0]);
    assert_eq!(gradients(|a, b| a.minimum(b), 1.0, f64::NAN)?, [1.0, 1.0]);
    assert_eq!(gradients(|a, b| a.mul(b)?.relu()?.add(a), 1.0, f64::NAN)?[1], 1.0);
    Ok(())
}

/// One hook that failed left other leaves without the gradients of the pass.
#[test]
fn a_hook_after_accumulation_that_failed_left_gradients_half_accumulated() -> Result<()> {
    let [x, y] = [Tensor::ones([2])?.requiring_grad()?, Tensor::ones([2])?.requiring_grad()?];
    for leaf in [&x, &y] {
        leaf.register_post_accumulate_grad_hook(|g| g.sum("no_such_dim").map(Some))?;
    }
    assert!(x.mul(&y)?.sum(..)?.backward().is_err());
    assert!(x.grad().is_some() && y.grad().is_some());
    Ok(())
}

#[test]
fn a_hook_after_accumulation_could_leave_a_gradient_of_other_sizes() -> Result<()> {
    let x = Tensor::ones([2])?.requiring_grad()?;
    x.register_post_accumulate_grad_hook(|_| Ok(Some(Tensor::ones([3])?)))?;
    let error = x.sum(..)?.backward().unwrap_err();
    assert_eq!((error.op(), error.location().file()), ("register_post_accumulate_grad_hook", file!()));
    assert_eq!(x.grad().unwrap().sizes(), [2]);
    Ok(())
}

#[test]
fn gradients_were_computed_in_the_dtype_of_an_integer_operand() -> Result<()> {
    let i8 = |number: i64| Tensor::new([number])?.to(DType::I8);
    let one = f64s([1.0])?;
    assert_near(&gradient(&one, |x| i8(100)?.atan2(x))?, &[-100.0 / 10_001.0]);
    assert_near(&gradient(&one, |x| x.xlogy(&i8(100)?))?, &[100f64.ln()]);
    assert_near(&gradient(&f64s([1.1])?, |x| x.pow(i8(-128)?))?, &[-128.0 * 1.1f64.powi(-129)]);
    assert_near(&gradient(&f64s([1.5])?, |x| x.ldexp(Tensor::new([200])?))?, &[200f64.exp2()]);
    assert_near(&gradient(&f64s([1.3])?, |x| Tensor::new(3.0)?.pow(x))?, &[3f64.powf(1.3) * 3f64.ln()]);
    Ok(())
}

#[test]
fn dist_of_order_0_was_cut_from_the_tape() -> Result<()> {
    assert_eq!(
        gradient(&f64s([1.0, 2.0])?, |x| x.dist_with(&f64s([1.0, 5.0])?, DistOptions::new().p(0.0)))?,
        [0.0; 2]
    );
    Ok(())
}

#[test]
fn nextafter_towards_a_tensor_with_a_gradient_cut_it_in_silence() -> Result<()> {
    let (x, other) = (Tensor::zeros([2])?, Tensor::ones([2])?);
    assert!(!x.nextafter(&other)?.requires_grad());
    let error = x.nextafter(other.requiring_grad()?).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Autograd);
    assert!(error.to_string().contains("the gradient of `other` is not implemented"), "{error}");
    assert!(error.to_string().contains("other.detach()"), "{error}");
    Ok(())
}

#[test]
fn a_long_graph_in_a_local_of_a_thread_overflowed_the_stack() -> Result<()> {
    thread_local!(static KEPT: std::cell::RefCell<Option<Tensor>> = const { std::cell::RefCell::new(None) });
    let thread = std::thread::spawn(|| -> Result<()> {
        let mut x = Tensor::ones([1])?.requiring_grad()?;
        // The thread-local that is used first is destroyed last.
        KEPT.with(|_| ());
        drop(x.add(1.0)?);
        for _ in 0..100_000 {
            x = x.add(1.0)?;
        }
        KEPT.set(Some(x));
        Ok(())
    });
    thread.join().unwrap()
}

#[test]
fn a_parameter_that_was_read_while_it_was_updated_hung() -> Result<()> {
    let p = Parameter::new(Tensor::new([1.0, 2.0])?)?;
    let tied = p.clone();
    p.update(|value| value.add_(tied.tensor().value()).map(drop))?;
    assert_eq!(tied.tensor().to_vec::<f32>()?, [2.0, 4.0]);
    let error = p.update(|_| tied.update(|_| Ok(()))).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Autograd, file!()));
    // A closure that fails changes nothing, and the parameter can be updated again.
    p.update(|value| value.mul_(0.0)?.add_(&NamedTensor::zeros([3])?).map(drop)).unwrap_err();
    assert_eq!(p.tensor().to_vec::<f32>()?, [2.0, 4.0]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..100).for_each(|_| p.update(|value| value.add_(1.0).map(drop)).unwrap()));
        }
    });
    assert_eq!(p.tensor().to_vec::<f32>()?, [402.0, 404.0]);
    Ok(())
}

#[test]
fn names_of_a_gradient_of_a_users_op_met_those_of_another() -> Result<()> {
    let x = Tensor::ones([2])?.requiring_grad()?;
    for name in ["A", "B"] {
        let weight = Tensor::ones([(name, 2)])?;
        Op::new("weighted", x.value().clone())
            .input(&x, move |g, _| g.mul(&weight))
            .output()
            .sum(..)?
            .backward()?;
        assert!(!x.grad().unwrap().has_names());
    }
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [2.0, 2.0]);
    Ok(())
}

#[test]
fn gradients_beside_a_mask_or_an_integer_failed() -> Result<()> {
    let mask = Tensor::new([true, false])?;
    let x = TensorOptions::new().dtype(DType::F64).tensor([0.5, -1.0])?.requiring_grad()?;
    for [y, same] in [
        [x.logaddexp(&mask)?, x.logaddexp(mask.to(DType::F64)?)?],
        [mask.logaddexp(&x)?, mask.to(DType::F64)?.logaddexp(&x)?],
        [x.logaddexp2(&mask)?, x.logaddexp2(mask.to(DType::F64)?)?],
        [x.outer(&mask.to(DType::I64)?)?, x.outer(&mask.to(DType::F64)?)?],
        [mask.to(DType::I64)?.outer(&x)?, mask.to(DType::F64)?.outer(&x)?],
    ] {
        let [y, same] = [y, same].map(|y| grad(&[&y.sum(..)?], &[&x]));
        assert!(y?[0].equal(&same?[0])?);
    }
    Ok(())
}

/// The part of the graph that had been freed was taken for a leaf, and what came through it was missing.
#[test]
fn gradients_through_a_freed_graph_were_wrong() -> Result<()> {
    let x = Tensor::new([1.0, 2.0])?.requiring_grad()?;
    let h = x.exp()?;
    let first = h.sum(..)?;
    let second = h.square().sum(..).add(x.sum(..)?)?;
    grad(&[&first], &[&x])?;
    let unused = BackwardOptions::new().allow_unused(true);
    for error in [
        grad(&[&second], &[&x]).unwrap_err(),
        grad(&[&first], &[&x]).unwrap_err(),
        grad_with(&[&second], &[&x], &[], unused).unwrap_err(),
    ] {
        assert!(error.message().contains("a second time"), "{error}");
    }
    // The freed part is behind the input, where the gradient does not go.
    let z = h.mul(3.0).sum(..)?;
    assert_eq!(grad(&[&z], &[&h])?[0].to_vec::<f32>()?, [3.0, 3.0]);
    Ok(())
}
