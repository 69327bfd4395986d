//! Each test is for a bug that has been fixed.

use namegrad::autograd::{
    BackwardOptions, Op, checkpoint, grad, grad_with, gradcheck_parameters, gradgradcheck,
};
use namegrad::core::{NamedTensor, Scalar, random::Generator};
use namegrad::prelude::*;

#[test]
fn numbers_of_f64_were_rounded_to_the_default_dtype_first() -> Result<()> {
    let x = TensorOptions::new().dtype(DType::F64).tensor([0.1, 1.0 + 1e-12])?;
    assert_eq!(x.to_vec::<f64>()?, [0.1, 1.0 + 1e-12]);
    Ok(())
}

#[test]
fn backward_of_a_batched_product_over_nothing_could_not_infer_a_size() -> Result<()> {
    let a = Tensor::ones([2, 2, 0])?.requiring_grad()?;
    let b = Tensor::ones([0, 3])?.requiring_grad()?;
    a.matmul(&b)?.sum(..)?.backward()?;
    assert_eq!(a.grad().unwrap().sizes(), [2, 2, 0]);
    assert_eq!(b.grad().unwrap().sizes(), [0, 3]);
    Ok(())
}

#[test]
fn the_second_derivative_of_a_product_with_a_zero_was_zero() -> Result<()> {
    for zeros in [[0.0, 2.0, 3.0], [0.0, 0.0, 5.0]] {
        let x = TensorOptions::new().dtype(DType::F64).tensor([zeros, [1.0, 2.0, 0.5]])?;
        gradgradcheck(|x| x[0].prod(1), std::slice::from_ref(&x))?;
        gradgradcheck(|x| x[0].prod(..), &[x])?;
    }
    Ok(())
}

#[test]
fn an_empty_view_in_an_op_by_element_divided_by_zero() -> Result<()> {
    let x = Tensor::ones([4, 0])?.slice(1, 0, 0, 2)?; // read as transposed, if it had elements
    assert_eq!(x.ne(0)?.sizes(), [4, 0]);
    assert_eq!(x.mul(&x)?.sum(..)?.item::<f64>()?, 0.0);
    Ok(())
}

#[test]
fn the_error_of_a_hook_pointed_into_the_library() -> Result<()> {
    let x = Tensor::ones([2])?.requiring_grad()?;
    x.register_hook(|_| Ok(Some(Tensor::ones([3])?)))?;
    let error = x.sum(..)?.backward().unwrap_err();
    assert_eq!(error.location().file(), file!());
    Ok(())
}

#[test]
fn the_error_of_random_numbers_in_place_pointed_into_the_library() -> Result<()> {
    let error = Tensor::ones([2])?.random_(3..3).map(drop).unwrap_err();
    assert_eq!(error.location().file(), file!());
    Ok(())
}

#[test]
fn cat_told_its_operands_in_the_wrong_order() -> Result<()> {
    let (x, y) = (Tensor::ones([("N", 2)])?, Tensor::ones([("M", 2)])?);
    let error = Tensor::cat(&[&x, &y], 0).unwrap_err();
    assert!(error.message().contains("dims ['N'] and dims ['M']"), "{error}");
    Ok(())
}

#[test]
fn the_error_of_a_negative_size_pointed_into_the_library() {
    let error = Tensor::zeros([-1]).unwrap_err();
    assert_eq!(error.location().file(), file!());
}

/// The gradients of the sum of `y` with respect to two numbers.
fn gradients(y: fn(&Tensor, &Tensor) -> Result<Tensor>, a: f64, b: f64) -> Result<[f64; 2]> {
    let number = |x: f64| TensorOptions::new().dtype(DType::F64).requires_grad(true).tensor([x]);
    let (a, b) = (number(a)?, number(b)?);
    y(&a, &b)?.sum(..)?.backward()?;
    let of = |x: &Tensor| x.grad().expect("took part").item::<f64>();
    Ok([of(&a)?, of(&b)?])
}

#[test]
fn the_angle_of_no_direction_had_a_gradient_of_nan() -> Result<()> {
    assert_eq!(gradients(|a, b| a.atan2(b), 0.0, 0.0)?, [0.0, 0.0]);
    Ok(())
}

#[test]
fn logaddexp_of_an_infinity_had_a_gradient_of_nan() -> Result<()> {
    assert_eq!(gradients(|a, b| a.logaddexp(b), f64::INFINITY, 1.0)?, [1.0, 0.0]);
    assert_eq!(gradients(|a, b| a.logaddexp(b), f64::NEG_INFINITY, 1.0)?, [0.0, 1.0]);
    assert_eq!(gradients(|a, b| a.logaddexp2(b), 1.0, f64::INFINITY)?, [0.0, 1.0]);
    Ok(())
}

#[test]
fn a_nan_stopped_the_gradient_that_passed_through_it() -> Result<()> {
    assert_eq!(gradients(|a, b| a.maximum(b), f64::NAN, 1.0)?, [1.0, 1.0]);
    assert_eq!(gradients(|a, b| a.minimum(b), 1.0, f64::NAN)?, [1.0, 1.0]);
    assert_eq!(gradients(|a, b| a.mul(b)?.relu()?.add(a), 1.0, f64::NAN)?[1], 1.0);
    Ok(())
}

#[test]
fn a_divisor_that_is_zero_once_cast_was_a_panic() -> Result<()> {
    let x = Tensor::new([1u8, 2])?;
    assert_eq!(x.floor_divide(256).unwrap_err().kind(), ErrorKind::Value);
    assert_eq!(x.remainder(&Tensor::new(512)?).unwrap_err().kind(), ErrorKind::Value);
    Ok(())
}

/// Elements that were not selected were read from uninitialized memory.
#[test]
fn an_empty_index_into_a_0d_tensor_gave_a_number_from_nowhere() -> Result<()> {
    let x = Tensor::full([0usize; 0], 3.0)?;
    let index = |n: usize| Tensor::zeros([n])?.to(DType::I64);
    assert_eq!(x.index_select(&index(1)?, 0)?.item::<f64>()?, 3.0);
    for n in [0, 2] {
        assert_eq!(x.index_select(&index(n)?, 0).unwrap_err().kind(), ErrorKind::Index);
    }
    Ok(())
}

#[test]
fn the_gradient_of_a_mean_of_ignored_losses_was_not_a_number() -> Result<()> {
    use namegrad::nn::functional::cross_entropy_with;
    let target = Tensor::new([-100, -100])?;
    for label_smoothing in [0.0, 0.1] {
        let logits = Tensor::new([[1.0, 2.0, 3.0], [0.0, 0.5, -1.0]])?.requiring_grad()?;
        let options = CrossEntropyOptions::new().label_smoothing(label_smoothing);
        let loss = cross_entropy_with(&logits, &target, 1, options)?;
        assert!(loss.item::<f64>()?.is_nan());
        loss.backward()?;
        assert_eq!(logits.grad().unwrap().to_vec::<f32>()?, [0.0; 6]);
    }
    Ok(())
}

#[test]
fn sizes_of_parts_that_overflow_were_a_panic() -> Result<()> {
    let error = Tensor::zeros([4])?.split([isize::MAX, isize::MAX], 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    Ok(())
}

/// The answers are PyTorch's on x86-64, where each width has its own conversion.
#[test]
fn floats_beyond_an_integer_were_cast_as_if_to_64_bits() -> Result<()> {
    let x = Tensor::from_slice(&[3_000_000_005.0, -3e9, f64::NAN, 70_000.0, -129.7], [5])?;
    let cast = |dtype| x.to(dtype)?.to_vec::<i64>();
    assert_eq!(cast(DType::U8)?, [5, 0, 0, 112, 127]);
    assert_eq!(cast(DType::I8)?, [0, 0, 0, 112, 127]);
    assert_eq!(cast(DType::I16)?, [0, 0, 0, 4464, -129]);
    let least = i64::from(i32::MIN);
    assert_eq!(cast(DType::I32)?, [least, least, least, 70_000, -129]);
    assert_eq!(cast(DType::I64)?, [3_000_000_005, -3_000_000_000, i64::MIN, 70_000, -129]);
    Ok(())
}

/// The error has the location of the op, not of the library.
#[test]
fn the_error_of_a_wrong_gradient_of_an_op_pointed_into_the_library() -> Result<()> {
    let x = Tensor::ones([2])?.requiring_grad()?;
    let wrong = Op::new("wrong", x.value().clone()).input(&x, |_, _| Tensor::ones([3])).output();
    let error = wrong.sum(..)?.backward().unwrap_err();
    assert_eq!((error.op(), error.location().file()), ("wrong", file!()));
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

/// The second run always drew from the default generator, even if the first one did not.
#[test]
fn a_checkpoint_in_the_scope_of_a_generator_dropped_other_elements_the_second_time() -> Result<()> {
    let x = Tensor::ones([100])?.requiring_grad()?;
    let y = Generator::from_seed(5).scope(|| checkpoint(|x| F::dropout(&x[0], 0.5), &[&x]))?;
    y.sum(..)?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, y.to_vec::<f32>()?);
    Ok(())
}

/// The graph beyond a tensor whose gradient was requested was walked needlessly, which used it up, or failed
/// if it was already used up.
#[test]
fn a_gradient_of_an_intermediate_used_up_what_it_was_made_of() -> Result<()> {
    let x = Tensor::new([2.0])?.requiring_grad()?;
    let y = x.exp()?;
    let gradient = |y: &Tensor| grad_with(&[&y.square()?], &[y], &[], BackwardOptions::default());
    let before = gradient(&y)?.remove(0).unwrap().item::<f64>()?;
    y.backward()?;
    assert_eq!(gradient(&y)?.remove(0).unwrap().item::<f64>()?, before);
    assert_eq!(before, y.mul(2)?.item::<f64>()?);
    // Another input beyond it is still reached.
    let y = x.exp()?;
    let both = grad_with(&[&y.square()?], &[&y, &x], &[], BackwardOptions::default())?;
    assert!(both.iter().all(Option::is_some));
    assert!(y.backward().is_err());
    // Even if there is a path that does not lead through it.
    let y = x.exp()?;
    let loss = y.mul(&checkpoint(|x| x[0].square(), &[&x])?)?;
    let of_x = grad_with(&[&loss], &[&y, &x], &[], BackwardOptions::default())?.remove(1).unwrap();
    let want = y.mul(x.square()?.add(x.mul(2)?)?)?; // (eˣ x²)' = eˣ (x² + 2x)
    assert!(of_x.allclose(&want)?);
    Ok(())
}

/// The gradient inside was the gradient of the result, as if every op were the identity.
#[test]
fn a_gradient_inside_of_a_checkpoint_was_wrong_in_silence() -> Result<()> {
    let create = BackwardOptions { create_graph: true, ..BackwardOptions::default() };
    let f = move |x: &[Tensor]| Ok(grad_with(&[&x[0].pow(3)?], &[&x[0]], &[], create)?.remove(0).unwrap());
    let x = Tensor::new([2.0])?.requiring_grad()?;
    assert_eq!(f(std::slice::from_ref(&x))?.item::<f64>()?, 12.0);
    let error = checkpoint(f, &[&x]).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Autograd, file!()));
    assert!(error.to_string().contains("called in a checkpoint"), "{error}");
    Ok(())
}

fn f64s<const N: usize>(numbers: [f64; N]) -> Result<Tensor> {
    TensorOptions::new().dtype(DType::F64).tensor(numbers)
}

/// The gradient of the sum of `f(x)`.
fn gradient(x: &Tensor, f: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Vec<f64>> {
    let x = x.detach().requiring_grad()?;
    f(&x)?.sum(..)?.backward()?;
    x.grad().unwrap().to_vec()
}

#[track_caller]
fn assert_near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (a, b) in found.iter().zip(expected) {
        let near = a == b || (a - b).abs() <= 1e-14 * b.abs() || a.is_nan() && b.is_nan();
        assert!(near, "{found:?} is not {expected:?}");
    }
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
fn special_functions_were_wrong_far_out_and_beside_poles() -> Result<()> {
    assert_near(&f64s([-688051.7, -1e8])?.erfcx()?.to_vec()?, &[f64::INFINITY; 2]);
    assert_near(&gradient(&f64s([1e8])?, |x| x.log_ndtr())?, &[0.0]);
    assert!(f64s([-1e5, 0.999])?.acosh()?.isnan()?.all(..)?.item::<bool>()?);
    // The second derivative of the series of sinc is -π²/3 at 0.
    let slope = -std::f64::consts::PI.powi(2) / 3.0;
    assert_near(
        &gradient(&f64s([0.0, 1e-300, -1e-9])?, |x| x.sinc())?,
        &[0.0, slope * 1e-300, slope * -1e-9],
    );
    assert_near(&f64s([-1e-10, f64::NEG_INFINITY])?.polygamma(2)?.to_vec()?, &[2e30, f64::NEG_INFINITY]);
    assert_near(&gradient(&f64s([1e3, -1e3])?, |x| x.i1())?, &[f64::INFINITY; 2]);
    Ok(())
}

#[test]
fn running_sums_and_deviations_lost_what_does_not_fit_f32() -> Result<()> {
    let last = |x: Tensor| x.select(0, -1)?.item::<f64>();
    assert_eq!(last(Tensor::full([20_000_000], 1.0)?.cumsum(0)?)?, 2e7);
    assert_eq!(last(Tensor::full([1_000_000], 0.1)?.cumsum(0)?)?, 1e5);
    let std = Tensor::new([1e20, 2e20])?.std(..)?.item::<f64>()?;
    assert!((std / 5e39f64.sqrt() - 1.0).abs() < 1e-6, "{std}");
    Ok(())
}

#[test]
fn numbers_wrapped_where_a_range_ends() -> Result<()> {
    for dtype in [DType::I8, DType::U8] {
        let mut x = TensorOptions::new().dtype(dtype).zeros([1000])?;
        x.geometric_(0.001)?;
        assert!(x.amin(..)?.item::<Scalar>()?.to_f64() >= 1.0, "{dtype}");
        assert!(x.gt(100)?.any(..)?.item::<bool>()?, "{dtype}");
    }
    let x = Tensor::new([100, -5])?.to(DType::I8)?;
    for error in [x.clamp(0, 1000), x.clamp_max(1000), x.clamp_min(-129)] {
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Value);
    }
    assert_eq!(x.clamp(0, 127)?.to_vec::<i8>()?, [100, 0]);
    let mut x = Tensor::zeros([1000])?;
    x.uniform_(-3e38, 3e38)?;
    assert!(x.isfinite()?.all(..)?.item::<bool>()?);
    assert!(x.amin(..)?.item::<f64>()? < -2e38 && x.amax(..)?.item::<f64>()? > 2e38);
    assert!(TensorOptions::new().arange((1i64 << 53) + 1, 1i64 << 53, 1).is_err());
    assert_eq!(TensorOptions::new().dtype(DType::I64).linspace(0.9, 5.9, 3)?.to_vec::<i64>()?, [0, 2, 5]);
    Ok(())
}

#[test]
fn fractional_steps_made_equal_integers() -> Result<()> {
    let integers = TensorOptions::new().dtype(DType::I64);
    assert!(integers.arange(0.0, 3.0, 0.5).is_err());
    assert_eq!(integers.arange(0.0, 3.0, 1.5)?.to_vec::<i64>()?, [0, 1, 2]);
    Ok(())
}

#[test]
fn extreme_counts_and_shifts_panicked() -> Result<()> {
    assert_eq!(Tensor::zeros([0])?.chunk(usize::MAX, 0).unwrap_err().kind(), ErrorKind::OutOfMemory);
    assert_eq!(Tensor::zeros([3])?.tensor_split(isize::MAX, 0).unwrap_err().kind(), ErrorKind::OutOfMemory);
    for repeats in [[1 << 60, 5], [i64::MAX, i64::MAX]] {
        let error = Tensor::zeros([2])?.repeat_interleave(&Tensor::new(repeats)?, 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    }
    let wide = Tensor::ones([1])?.expand([1usize << 60])?;
    let row = Tensor::ones([1, 1, 5])?;
    for (op, error) in [
        ("cat", Tensor::cat(&[&wide; 17], 0)),
        ("diag_embed", row.diag_embed_with(DiagEmbedOptions::new().offset(isize::MAX))),
        ("kron", Tensor::zeros([0, 1usize << 40])?.kron(&Tensor::zeros([0, 1usize << 40])?)),
        ("bincount", Tensor::new([i64::MAX])?.bincount()),
        ("conv1d", F::conv1d_with(&row, &row, Conv1dOptions::new().padding(usize::MAX / 4))),
    ] {
        let error = error.unwrap_err();
        assert_eq!((error.kind(), error.op()), (ErrorKind::OutOfMemory, op), "{error}");
        assert_eq!(error.location().file(), file!(), "{error}");
    }
    let weights = f64s([1.0, 10.0, 100.0])?;
    // isize::MIN is 1 modulo 3.
    assert_eq!(f64s([1.0, 2.0, 3.0])?.roll(isize::MIN, 0)?.to_vec::<f64>()?, [3.0, 1.0, 2.0]);
    let rolled = gradient(&f64s([1.0, 2.0, 3.0])?, |x| x.roll(isize::MIN, 0)?.mul(&weights))?;
    assert_eq!(rolled, [10.0, 100.0, 1.0]);
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
fn a_product_that_does_not_count_gave_nan() -> Result<()> {
    let infinite = Tensor::full([2, 2], f64::INFINITY)?;
    for beta in [1.0, 2.0] {
        let options = AddmmOptions::new().alpha(0.0).beta(beta);
        let y = Tensor::ones([2, 2])?.addmm_with(&infinite, &infinite, options)?;
        assert_eq!(y.to_vec::<f64>()?, [beta; 4]);
    }
    Ok(())
}

#[test]
fn the_gradient_of_logsumexp_was_wrong_beside_infinity() -> Result<()> {
    let x = f64s([1.0, f64::INFINITY, 2.0])?;
    assert_near(&gradient(&x, |x| x.logsumexp(0))?, &[0.0, f64::NAN, 0.0]);
    Ok(())
}

#[test]
fn forms_of_calls_that_pytorch_takes_were_refused() -> Result<()> {
    let x = f64s([1.0, 2.0])?;
    assert_eq!(x.take_along_dim(&Tensor::new([-1])?, 0)?.to_vec::<f64>()?, [2.0]);
    // A dim of size one matches any size, as in PyTorch.
    let y = Tensor::ones([1, 3])?.tensordot(&Tensor::ones([4, 1])?, [0], [0])?;
    assert_eq!((y.sizes(), y.to_vec::<f64>()?), (&[3, 1][..], vec![4.0; 3]));
    let inputs = [f64s([2.0])?.reshape([1, 1])?, f64s([1.0, 2.0, 3.0, 4.0])?.reshape([2, 2])?];
    gradgradcheck(|x| x[0].tensordot(&x[1], [0, 1], [0, 1]), &inputs)?;
    gradgradcheck(|x| x[1].tensordot(&x[0], [0], [1]), &inputs)?;
    assert!(x.inner(&f64s([1.0])?).is_err());
    assert_eq!(Tensor::new([1.5])?.to(DType::F16)?.ldexp(Tensor::new([3])?)?.dtype(), DType::F16);
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
fn names_appeared_on_tensors_that_had_others() -> Result<()> {
    let mut x = Tensor::ones((("p", 2), 2))?;
    let error = x.add_(&Tensor::ones((2, ("r", 2)))?).map(drop).unwrap_err();
    assert_eq!((error.kind(), x.shape().to_string().as_str()), (ErrorKind::OutNames, "[p=2, ?=2]"));
    let mask = Tensor::ones([("N", 2), ("C", 3)])?.gt(0)?;
    assert_eq!(Tensor::ones([("C", 3)])?.masked_fill(&mask, 0.0).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(Tensor::ones([3])?.masked_fill(&mask.rename(None)?, 0.0)?.sizes(), [2, 3]);
    Ok(())
}

/// The dim was looked up in the tensor with the most dims, but used on the first.
#[test]
fn cat_of_a_vector_and_a_matrix_is_an_error() -> Result<()> {
    let (vector, matrix) = (Tensor::ones([3])?, Tensor::ones([3, 1])?);
    let error = Tensor::cat(&[&vector, &matrix], 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape, "{error}");
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

/// The gradient of `x`, computed by the kernels and by the differentiable formulas.
fn plain_and_recorded(x: &Tensor, loss: impl Fn(&Tensor) -> Result<Tensor>) -> Result<[Vec<f64>; 2]> {
    let x = x.detach().requiring_grad()?;
    let of = |recorded| {
        let options = BackwardOptions { create_graph: recorded, ..Default::default() };
        let gradients = grad_with(&[&loss(&x)?], &[&x], &[], options)?;
        gradients[0].as_ref().unwrap().to(DType::F64)?.to_vec::<f64>()
    };
    Ok([of(false)?, of(true)?])
}

#[test]
fn the_recorded_gradient_of_layer_norm_was_computed_in_half_precision() -> Result<()> {
    for values in [[1.0, 1.125], [3.0, 3.0078125], [-7.0, 2.0]] {
        let x = Tensor::new([values])?.to(DType::F16)?;
        let g = Tensor::new([[1.0, -3.0]])?.to(DType::F16)?;
        let [plain, recorded] = plain_and_recorded(&x, |x| x.layer_norm(1)?.mul(&g)?.sum(..))?;
        // The terms cancel and are multiplied by an `rstd` of up to 200, so an error of `f32` grows to 1e-4.
        let close = plain.iter().zip(&recorded).all(|(a, b)| (a - b).abs() <= 1e-3 * a.abs() + 1e-4);
        assert!(close, "{plain:?} and {recorded:?}");
    }
    Ok(())
}

#[test]
fn the_mean_of_layer_norm_was_rounded_twice() -> Result<()> {
    let y = Tensor::new([1e7, 1e7 + 1.0, 1e7 + 2.0])?.layer_norm(0)?.to_vec::<f32>()?;
    let want = 1.5f32.sqrt();
    assert!(y.iter().zip([-want, 0.0, want]).all(|(y, want)| (y - want).abs() < 1e-4), "{y:?}");
    Ok(())
}

#[test]
fn ignore_index_wrapped_in_the_dtype_of_the_target() -> Result<()> {
    manual_seed(0);
    let logits = Tensor::randn([3, 200])?;
    for (ignore_index, classes) in [(-100, [156, 1, 2]), (1_i64 << 32, [0, 1, 2])] {
        let losses = |target: &Tensor, logits: &Tensor| {
            let options = ClassCrossEntropyOptions::new().ignore_index(ignore_index);
            logits.class_cross_entropy_with(target, 1, options)?.sum(..)
        };
        let loss = |target: &Tensor| {
            let options = CrossEntropyOptions::new().ignore_index(ignore_index);
            F::cross_entropy_with(&logits, target, 1, options)?.item::<Scalar>()
        };
        let target = Tensor::new(classes.map(i64::from))?;
        let (want, gradient) = (loss(&target)?, plain_and_recorded(&logits, |x| losses(&target, x))?);
        for dtype in [DType::U8, DType::I32] {
            let target = target.to(dtype)?;
            assert_eq!(loss(&target)?, want, "{dtype}");
            let [plain, recorded] = plain_and_recorded(&logits, |x| losses(&target, x))?;
            assert_eq!(plain, gradient[0], "{dtype}");
            assert!(plain.iter().zip(&recorded).all(|(a, b)| (a - b).abs() < 1e-6), "{dtype}");
        }
    }
    Ok(())
}

#[test]
fn losses_of_half_types_were_infinite_for_large_batches() -> Result<()> {
    let n = 70_000;
    for dtype in [DType::F16, DType::BF16] {
        let logits = Tensor::zeros([n, 4])?.to(dtype)?.requiring_grad()?;
        let target = Tensor::zeros([n])?.to(DType::I64)?;
        let mut ignored = vec![0_i64; n];
        ignored[0] = -100;
        let ignored = Tensor::new(ignored)?;
        let even = Tensor::full([n, 4], 0.25)?.to(dtype)?;
        let weight = Tensor::ones([4])?.to(dtype)?;
        let weighted = || CrossEntropyOptions::new().weight(&weight);
        let smoothed = || CrossEntropyOptions::new().label_smoothing(0.5);
        let losses = [
            F::cross_entropy(&logits, &target, 1)?,
            F::cross_entropy(&logits, &ignored, 1)?,
            F::cross_entropy(&logits, &even, 1)?,
            F::cross_entropy_with(&logits, &target, 1, weighted())?,
            F::cross_entropy_with(&logits, &ignored, 1, weighted())?,
            F::cross_entropy_with(&logits, &even, 1, weighted())?,
            F::cross_entropy_with(&logits, &target, 1, smoothed())?,
            F::cross_entropy_with(&logits, &ignored, 1, smoothed())?,
            F::nll_loss(&logits.log_softmax(1)?, &ignored, 1)?,
            F::nll_loss_with(&logits.log_softmax(1)?, &target, 1, NllLossOptions::new().weight(&weight))?,
        ];
        for (case, loss) in losses.iter().enumerate() {
            assert_eq!(loss.dtype(), dtype);
            let got = loss.item::<f64>()?;
            assert!((got - 4f64.ln()).abs() < 0.01, "{dtype}, case {case}: {got}");
        }
        let gradient = grad_with(&[&losses[3]], &[&logits], &[], BackwardOptions::default())?;
        let gradient = gradient[0].as_ref().unwrap().select(1, 0)?;
        let got = gradient.select(0, 0)?.item::<f64>()?;
        // The spacing of f16 there is 6e-8.
        assert!((got + 0.75 / n as f64).abs() < 6e-8, "{dtype}: {got}");
    }
    Ok(())
}

#[test]
fn strict_names_refused_losses_of_named_tensors() -> Result<()> {
    manual_seed(0);
    let logits = Tensor::randn([("N", 3), ("E", 4)])?;
    let named = |classes: [i64; 3]| Tensor::new(classes)?.refine_names(["N"]);
    let weight = Tensor::new([1.0, 2.0, 3.0, 4.0])?.refine_names(["E"])?;
    let probabilities = logits.softmax("E")?;
    let log_p = logits.log_softmax("E")?;
    let options = CrossEntropyOptions::new;
    let all = || -> Result<Vec<Tensor>> {
        let mut losses = Vec::new();
        for target in [named([0, 3, 1])?, named([0, -100, 1])?, probabilities.clone()] {
            for reduction in [F::Reduction::Mean, F::Reduction::None] {
                for options in [
                    options(),
                    options().weight(&weight),
                    options().label_smoothing(0.1),
                    options().label_smoothing(0.1).weight(&weight),
                ] {
                    let options = options.reduction(reduction);
                    losses.push(F::cross_entropy_with(&logits, &target, "E", options)?);
                }
                if !target.dtype().is_floating_point() {
                    let options = NllLossOptions::new().reduction(reduction);
                    losses.push(F::nll_loss_with(&log_p, &target, "E", options.clone())?);
                    losses.push(F::nll_loss_with(&log_p, &target, "E", options.weight(&weight))?);
                }
            }
        }
        Ok(losses)
    };
    let (strict, free) = (namegrad::core::names::strict(all)?, all()?);
    for (strict, free) in strict.iter().zip(&free) {
        assert_eq!(strict.to_vec::<f32>()?, free.to_vec::<f32>()?);
        assert!(strict.ndim() == 0 || *strict.names() == ["N"]);
    }
    Ok(())
}

#[test]
fn recorded_gradients_of_ignored_and_infinite_logits_were_nan() -> Result<()> {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let ignored = Tensor::new([-100_i64, -100])?;
    let logits = Tensor::new([[1.0, 2.0], [3.0, 5.0]])?;
    let weight = Tensor::new([1.0, 2.0])?;
    let all = [
        CrossEntropyOptions::new(),
        CrossEntropyOptions::new().weight(&weight),
        CrossEntropyOptions::new().label_smoothing(0.5),
        CrossEntropyOptions::new().label_smoothing(0.5).weight(&weight),
    ];
    for options in all {
        let of = |target: &Tensor, x: &Tensor| F::cross_entropy_with(x, target, 1, options.clone());
        assert_eq!(plain_and_recorded(&logits, |x| of(&ignored, x))?, [[0.0; 4]; 2]);
        let (row, target) = (Tensor::new([[nan, nan], [1.0, 1.0]])?, Tensor::new([-100_i64, 0])?);
        for gradient in plain_and_recorded(&row, |x| of(&target, x))? {
            assert_eq!(gradient[..2], [0.0; 2]);
            assert!(gradient[2] < 0.0 && gradient[3] > 0.0, "{gradient:?}");
        }
        let row = Tensor::new([[inf, 1.0], [1.0, 1.0]])?;
        for gradient in plain_and_recorded(&row, |x| of(&Tensor::new([1_i64, 0])?, x))? {
            assert!(gradient[..2].iter().all(|g| g.is_nan()), "{gradient:?}");
        }
    }
    let scalar = Tensor::new(1.5)?;
    let none = Tensor::new(-100_i64)?;
    assert_eq!(plain_and_recorded(&scalar, |x| F::cross_entropy(x, &none, 0))?, [[0.0]; 2]);
    Ok(())
}

#[test]
fn the_name_of_a_weight_was_not_checked() -> Result<()> {
    use namegrad::core::names::strict;
    let logits = Tensor::ones([("N", 2), ("class", 3)])?;
    let target = Tensor::new([0_i64, 1])?.refine_names(["N"])?;
    let kinds = |weight: &Tensor| {
        let kind = |loss: Result<Tensor>| loss.map(drop).map_err(|error| error.kind());
        let options = || CrossEntropyOptions::new().weight(weight);
        let norm = LayerNormOptions::new().weight(weight);
        [
            kind(F::cross_entropy_with(&logits, &target, "class", options())),
            kind(F::cross_entropy_with(&logits, &logits, "class", options())),
            kind(F::nll_loss_with(&logits, &target, "class", NllLossOptions::new().weight(weight))),
            kind(logits.layer_norm_with("class", norm)),
        ]
    };
    let (other, unnamed) = (Tensor::ones([("Q", 3)])?, Tensor::ones([3])?);
    assert_eq!(kinds(&other), [Err(ErrorKind::NameMismatch); 4]);
    assert_eq!(kinds(&unnamed), [Ok(()); 4]);
    assert_eq!(strict(|| kinds(&unnamed)), [Err(ErrorKind::NameMismatch); 4]);
    let own = Tensor::ones([("class", 3)])?;
    assert_eq!(strict(|| kinds(&own)), [Ok(()); 4]);
    Ok(())
}

#[test]
fn logits_without_classes_were_blamed_on_the_target() -> Result<()> {
    let (logits, target) = (Tensor::ones([2, 0])?, Tensor::new([0_i64, 0])?);
    for error in [
        logits.class_cross_entropy(&target, 1).unwrap_err(),
        F::cross_entropy(&logits, &target, 1).unwrap_err(),
        F::nll_loss(&logits, &target, 1).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Shape);
        assert!(error.to_string().contains("expected at least one class"), "{error}");
    }
    Ok(())
}

// Values at the edges of dtypes and of arguments.

#[test]
fn an_optional_tensor_given_as_a_list_was_ignored() -> Result<()> {
    use namegrad::ops;
    let (x, weight) = (Tensor::ones([2, 3])?, Tensor::ones([2, 3])?);
    let places = Tensor::new([0, 1])?;
    let b = Tensor::ones([2])?;
    let calls = [
        ops::call("nn.linear", &[&x, &weight], &[("bias", vec![&b].into())]),
        ops::call("nn.layer_norm", &[&x], &[("dims", 1.into()), ("weight", vec![&b].into())]),
        ops::call("bincount", &[&places], &[("weights", vec![&b].into())]),
    ];
    for call in calls {
        let error = call.unwrap_err();
        assert!(error.message().ends_with("` must be a tensor"), "{error}");
    }
    assert!(ops::call("nn.linear", &[&x, &weight], &[("bias", namegrad::core::Value::None.into())]).is_ok());
    Ok(())
}

#[test]
fn sums_of_many_terms_by_index_saturated() -> Result<()> {
    let ones = Tensor::ones([3000])?;
    let places = Tensor::zeros([3000])?.to(DType::I64)?;
    for dtype in [DType::F16, DType::BF16] {
        let half = ones.to(dtype)?.requiring_grad()?;
        let sum = places.bincount_with(BincountOptions::new().weights(&half))?;
        assert_eq!((sum.dtype(), sum.to_vec::<f64>()?), (DType::F64, vec![3000.0]));
        sum.sum(..)?.backward()?;
        assert_eq!(half.grad().unwrap().to_vec::<f32>()?, vec![1.0; 3000]);
        let sum = Tensor::zeros([2])?.to(dtype)?.index_add(&places, half.detach(), 0)?;
        assert_eq!(sum.to_vec::<f32>()?, [Tensor::new([3000.0])?.to(dtype)?.to_vec::<f32>()?[0], 0.0]);
    }
    let n = 1_000_000;
    let terms = Tensor::full([n], 0.1)?;
    let places = Tensor::zeros([n])?.to(DType::I64)?;
    let exact = [(f64::from(0.1f32) * n as f64) as f32];
    assert_eq!(places.bincount_with(BincountOptions::new().weights(&terms))?.to_vec::<f32>()?, exact);
    assert_eq!(Tensor::zeros([1])?.index_add(&places, &terms, 0)?.to_vec::<f32>()?, exact);
    assert_eq!(Tensor::zeros([1])?.scatter_add(&places, &terms, 0)?.to_vec::<f32>()?, exact);
    Ok(())
}

#[test]
fn a_number_was_wrapped_to_the_dtype_it_was_compared_in() -> Result<()> {
    let bytes = Tensor::new([0, 44, 156, 255])?.to(DType::U8)?;
    assert_eq!(bytes.eq(-100)?.to_vec::<bool>()?, [false; 4]);
    assert_eq!(bytes.ne(300)?.to_vec::<bool>()?, [true; 4]);
    assert_eq!(bytes.lt(300)?.to_vec::<bool>()?, [true; 4]);
    assert_eq!(bytes.le(-1)?.to_vec::<bool>()?, [false; 4]);
    assert_eq!(bytes.gt(-1)?.to_vec::<bool>()?, [true; 4]);
    assert_eq!(bytes.ge(256)?.to_vec::<bool>()?, [false; 4]);
    assert_eq!(bytes.ge(44)?.to_vec::<bool>()?, [false, true, true, true]);
    assert_eq!(bytes.logical_and(256)?.to_vec::<bool>()?, [false, true, true, true]);
    assert_eq!(bytes.isclose(-100)?.to_vec::<bool>()?, [false; 4]);
    let mut written = bytes.clone();
    assert_eq!(written.lt_(300)?.to_vec::<u8>()?, [1; 4]);
    let wide = Tensor::new([0, 1])?.to(DType::I32)?;
    assert_eq!(wide.eq(1i64 << 32)?.to_vec::<bool>()?, [false; 2]);
    assert_eq!(wide.gt(i64::MIN)?.to_vec::<bool>()?, [true; 2]);
    Ok(())
}

#[test]
fn tensordot_of_small_integers_over_a_dim_of_size_one_was_refused() -> Result<()> {
    for dtype in [DType::U8, DType::I32] {
        let x = Tensor::new([[1], [2]])?.to(dtype)?;
        let y = Tensor::new([[1, 2], [3, 4]])?.to(dtype)?;
        let product = x.tensordot(&y, [1], [0])?;
        assert_eq!((product.dtype(), product.to_vec::<i64>()?), (dtype, vec![4, 6, 8, 12]));
    }
    Ok(())
}

#[test]
fn a_row_of_nan_shifted_the_moments_of_the_others() -> Result<()> {
    let row: Vec<f32> = (0..1000).map(|k| 1000.0 + (k as f32 * 0.37).sin()).collect();
    let row = Tensor::from_slice(&row, [1, 1000])?;
    let beside = |other: f64| -> Result<[f32; 2]> {
        let both = Tensor::cat(&[&Tensor::full([1, 1000], other)?, &row], 0)?;
        let StdMean { std, mean } = both.std_mean(1)?;
        Ok([std.to_vec::<f32>()?[1], mean.to_vec::<f32>()?[1]])
    };
    assert_eq!(beside(f64::NAN)?, beside(0.0)?);
    assert_eq!(beside(f64::INFINITY)?, beside(0.0)?);
    // The squares of these overflow `f32`.
    let large = Tensor::new([1e30, -1e30])?;
    assert_eq!(large.std(..)?.item::<f64>()?, f64::from((2f64.sqrt() * f64::from(1e30f32)) as f32));
    Ok(())
}

#[test]
fn a_variance_with_a_correction_of_nan_was_infinite() -> Result<()> {
    let x = f64s([1.0, 2.0, 4.0])?;
    let var =
        |correction| x.var_mean_with(.., VarMeanOptions::new().correction(correction))?.var.item::<Scalar>();
    assert!(var(f64::NAN)?.to_f64().is_nan());
    assert_eq!(var(f64::INFINITY)?.to_f64(), f64::INFINITY);
    assert_eq!(var(3.0)?.to_f64(), f64::INFINITY);
    Ok(())
}

#[test]
fn views_of_nothing_had_sizes_that_no_tensor_can_have() -> Result<()> {
    let x = Tensor::zeros([0])?;
    let far = i64::MAX as usize;
    for sizes in [[far, 0, 0], [far, far, 0], [0, far, far]] {
        for view in [x.view(sizes), x.reshape(sizes), Tensor::zeros([1, 0, 1])?.expand([far, 0, far])] {
            assert_eq!(view.unwrap_err().kind(), ErrorKind::OutOfMemory, "{sizes:?}");
        }
        assert_eq!(Tensor::ones([1])?.view(sizes).unwrap_err().kind(), ErrorKind::Shape);
    }
    for sizes in [[far, 0, 1], [2, far, 0]] {
        assert_eq!(x.unflatten(0, sizes).unwrap_err().kind(), ErrorKind::OutOfMemory, "{sizes:?}");
    }
    assert_eq!(x.unflatten(0, [7, 0, 5])?.sizes(), [7, 0, 5]);
    assert_eq!(x.view([7, 0, 5])?.add(1.0)?.sizes(), [7, 0, 5]);
    Ok(())
}

#[test]
fn hardtanh_and_celu_took_arguments_without_a_meaning() -> Result<()> {
    let mut x = Tensor::new([-2.0, 0.5])?;
    let crossed = || HardtanhOptions::new().min_val(1).max_val(-1);
    let flat = || CeluOptions::new().alpha(0.0);
    for (error, text) in [
        (x.hardtanh_with(crossed()).unwrap_err(), "min_val cannot be greater than max_val"),
        (x.hardtanh_with_(crossed()).map(drop).unwrap_err(), "min_val cannot be greater than max_val"),
        (x.celu_with(flat()).unwrap_err(), "alpha cannot be 0 for CELU"),
        (x.celu_with_(flat()).map(drop).unwrap_err(), "alpha cannot be 0 for CELU"),
    ] {
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
        assert!(error.message().contains(text), "{error}");
    }
    assert_eq!(x.hardtanh_with(HardtanhOptions::new().min_val(1).max_val(1))?.to_vec::<f32>()?, [1.0, 1.0]);
    Ok(())
}

#[test]
fn errors_named_the_op_that_another_is_made_of() -> Result<()> {
    let x = Tensor::new([[1.0, 2.0]])?;
    let halves = Tensor::new([[0.5]])?;
    for error in [
        x.take_along_dim(&halves, 1).unwrap_err(),
        x.take(&halves).unwrap_err(),
        Tensor::einsum("ab,bc", &[&x]).unwrap_err(),
        x.gt(0)?.index_fill(&Tensor::new([0.5])?, 1, 0).unwrap_err(),
    ] {
        let (text, op) = (error.to_string(), error.op());
        let own = text.strip_prefix(op).unwrap_or_else(|| panic!("{text}"));
        assert!(!own.strip_prefix("()").unwrap_or(own).contains("()"), "{text}");
    }
    Ok(())
}

#[test]
fn the_median_of_an_empty_tensor_was_an_error() -> Result<()> {
    let x = Tensor::zeros([2, 0])?.requiring_grad()?;
    for Picked { values, indices } in [x.median(..)?, x.nanmedian(..)?] {
        assert!(values.item::<f64>()?.is_nan() && indices.item::<i64>()? == -1);
        values.backward()?;
    }
    assert_eq!(x.grad().unwrap().sizes(), [2, 0]);
    assert_eq!(x.median(keep(..))?.values.sizes(), [1, 1]);
    // An integer dtype has no NaN, and an empty lane has no median.
    assert_eq!(x.to(DType::I64)?.median(..).unwrap_err().kind(), ErrorKind::Value);
    assert_eq!(x.median(1).unwrap_err().kind(), ErrorKind::Shape);
    Ok(())
}

#[test]
fn a_number_beyond_an_integer_dtype_wrapped() -> Result<()> {
    let x = Tensor::new([1, 2, 3])?.to(DType::I8)?;
    let (mask, first) = (x.gt(1)?, Tensor::new([0])?);
    let small = TensorOptions::new().dtype(DType::I8);
    for (op, made) in [
        ("masked_fill", x.masked_fill(&mask, 1000)),
        ("masked_fill", x.masked_fill(&mask, f64::NAN)),
        ("index_fill", x.index_fill(&first, 1000, 0)),
        ("index_put", x.index_put(&[Index::At(0)], -129)),
        ("scatter", x.scatter(&first, 1000, 0)),
        ("maximum", x.maximum(1000)),
        ("fmin", x.fmin(-129)),
        ("heaviside", x.heaviside(128)),
        ("remainder", x.remainder(256)),
        ("floor_divide", x.floor_divide(1000)),
        ("pow", x.pow(1000)),
        ("bitwise_left_shift", x.bitwise_left_shift(256)),
        ("full_like", x.full_like(1000)),
        ("new_full", x.new_full([2], 1000)),
        ("full", small.full([2], -129)),
        ("full", TensorOptions::new().dtype(DType::I64).full([2], 1e19)),
        ("fill_", x.clone().fill_(1000).cloned()),
        ("masked_fill_", x.clone().masked_fill_(&mask, 1000).cloned()),
        ("linspace", small.linspace(0.0, 128.0, 3)),
    ] {
        let error = made.unwrap_err();
        assert_eq!((error.kind(), error.op()), (ErrorKind::Value, op), "{error}");
        assert_eq!(error.location().file(), file!(), "{error}");
        assert!(error.message().contains(" does not fit in int"), "{error}");
    }
    // Fractions are truncated, and sums wrap, as their results do.
    assert_eq!(x.masked_fill(&mask, 7.9)?.to_vec::<i8>()?, [1, 7, 7]);
    assert_eq!(x.add(1000)?.to_vec::<i8>()?, [-23, -22, -21]);
    assert_eq!(x.maximum(f64::INFINITY)?.dtype(), DType::F32);
    Ok(())
}

#[test]
fn errors_in_place_named_the_other_form() -> Result<()> {
    let mut x = Tensor::ones([2, 3])?;
    let four = Tensor::ones([4])?;
    let mut errors = vec![
        ("add_", x.add_(&four).unwrap_err()),
        ("lerp_", x.lerp_(&four, 0.5).unwrap_err()),
        ("cumsum_", x.cumsum_("C").unwrap_err()),
        ("index_fill_", x.index_fill_(&Tensor::new([9])?, 1.0, 0).unwrap_err()),
        ("scatter_", x.scatter_(&Tensor::new([9])?, 1.0, 0).unwrap_err()),
        ("addmm_", x.addmm_(&Tensor::ones([2, 3])?, &four).unwrap_err()),
        ("squeeze_", x.squeeze_(9).unwrap_err()),
    ];
    // On the tape, and as plain values.
    let mut y = Tensor::ones([2, 3])?.requiring_grad()?.mul(1.0)?;
    errors.push(("add_", y.add_(&four).unwrap_err()));
    errors.push(("cumsum_", y.cumsum_("C").unwrap_err()));
    let mut value = NamedTensor::ones([2, 3])?;
    errors.push(("mul_", value.mul_(four.value()).unwrap_err()));
    errors.push(("cumsum_", value.cumsum_(7).unwrap_err()));
    for (op, error) in errors {
        assert_eq!((error.op(), error.location().file()), (op, file!()), "{error}");
        assert!(error.to_string().starts_with(&format!("{op}: ")), "{error}");
    }
    Ok(())
}

#[test]
fn the_gradient_of_logcumsumexp_of_large_numbers_was_nan() -> Result<()> {
    for [a, b] in [[-1000.0, 1000.0], [1000.0, -1000.0]] {
        let x = f64s([a, b])?;
        let want = if a < b { [1.0, 1.0] } else { [2.0, 0.0] };
        assert_near(&gradient(&x, |x| x.logcumsumexp(0))?, &want);
    }
    let x = [f64s([0.5, 0.5, 800.0, -800.0])?];
    gradgradcheck(|x| x[0].logcumsumexp(0), &x)?;
    let least = f64::NEG_INFINITY;
    let halves = 1.0 / (1.0 + 1f64.exp());
    assert_near(
        &gradient(&f64s([least, 1.0, 2.0])?, |x| x.logcumsumexp(0))?,
        &[0.0, 1.0 + halves, 1.0 - halves],
    );
    Ok(())
}

#[test]
fn a_0d_tensor_and_an_index_of_one_element_did_not_meet() -> Result<()> {
    let x = Tensor::new(5.0)?.requiring_grad()?;
    let source = Tensor::new([2.0])?.requiring_grad()?;
    let index = Tensor::new([0])?;
    assert_eq!(x.gather(&index, 0)?.to_vec::<f32>()?, [5.0]);
    for (y, value) in [
        (x.index_add(&index, &source, 0)?, 7.0),
        (x.index_copy(&index, &source, 0)?, 2.0),
        (x.scatter(&index, &source, 0)?, 2.0),
        (x.scatter_add(&index, &source, 0)?, 7.0),
    ] {
        assert_eq!((y.ndim(), y.item::<f64>()?), (0, value));
        y.backward()?;
    }
    assert_eq!((x.grad().unwrap().item::<f64>()?, x.grad().unwrap().ndim()), (2.0, 0));
    assert_eq!(source.grad().unwrap().to_vec::<f32>()?, [4.0]);
    assert!(x.gather(&Tensor::new([[0]])?, 0).is_err());
    Ok(())
}

#[test]
fn take_along_dim_changed_the_position_that_its_error_shows() -> Result<()> {
    let error = Tensor::ones([2, 2])?.take_along_dim(&Tensor::new([[-3]])?, 1).unwrap_err();
    assert!(error.message().contains("index -3 is out of bounds"), "{error}");
    Ok(())
}

#[test]
fn a_tensor_did_not_spread_over_the_mask_of_masked_scatter() -> Result<()> {
    let mask = Tensor::new([[true, false], [true, true]])?;
    let source = f64s([7.0, 8.0, 9.0])?;
    let y = f64s([1.0, 2.0])?.masked_scatter(&mask, &source)?;
    assert_eq!((y.sizes(), y.to_vec::<f64>()?), (&[2, 2][..], vec![7.0, 2.0, 8.0, 9.0]));
    assert_eq!(gradient(&f64s([1.0, 2.0])?, |x| x.masked_scatter(&mask, &source))?, [0.0, 1.0]);
    assert_eq!(f64s([1.0, 2.0])?.masked_scatter_(&mask, &source).unwrap_err().kind(), ErrorKind::Shape);
    let named = f64s([1.0, 2.0])?.refine_names(["C"])?;
    assert_eq!(named.masked_scatter(&mask, &source).unwrap_err().kind(), ErrorKind::Shape);
    Ok(())
}

#[test]
fn a_tensor_could_not_be_saved_without_a_module() -> Result<()> {
    use namegrad::io::TensorFile;
    let folder = std::env::temp_dir().join(format!("namegrad-tensor-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let at = |name: &str| folder.join(name);
    let x = Tensor::new([[1.5, f64::NEG_INFINITY]])?.refine_names(["N", "C"])?.requiring_grad()?;
    for dtype in [DType::BF16, DType::F32, DType::I64, DType::Bool] {
        let y = x.detach().to(dtype)?;
        y.t()?.save(at("x.safetensors"))?;
        assert_eq!(Tensor::load(at("x.safetensors"))?, y.t()?);
        let written = y.t()?.save(at("x.npy"));
        match dtype {
            DType::BF16 => assert_eq!(written.unwrap_err().op(), "save"),
            _ => assert_eq!(Tensor::load(at("x.npy"))?, y.t()?.rename(None)?),
        }
    }
    x.save(at("x.SafeTensors"))?;
    assert!(!Tensor::load(at("x.SafeTensors"))?.requires_grad());
    let mut two = TensorFile::default();
    for name in ["a", "b"] {
        two.tensors.insert(name.into(), x.value().clone());
    }
    two.save(at("two.safetensors"))?;
    for (error, kind) in [
        (x.save(at("x.pt")).unwrap_err(), ErrorKind::Value),
        (Tensor::load(at("x")).unwrap_err(), ErrorKind::Value),
        (Tensor::load(at("none.npy")).unwrap_err(), ErrorKind::Io),
        (Tensor::load(at("two.safetensors")).unwrap_err(), ErrorKind::Format),
    ] {
        assert_eq!((error.kind(), error.location().file()), (kind, file!()), "{error}");
        assert!(["save", "load"].contains(&error.op()), "{error}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
    Ok(())
}

#[test]
fn names_of_any_length_lived_forever() -> Result<()> {
    use namegrad::core::Name;
    assert!(Name::new(&"n".repeat(255)).is_ok());
    assert_eq!(Name::new(&"n".repeat(256)).unwrap_err().kind(), ErrorKind::InvalidName);
    Ok(())
}

/// Sums of integers were always `i64`, even if another integer dtype was requested.
#[test]
fn sums_did_not_have_the_integer_dtype_that_was_asked_for() -> Result<()> {
    let x = Tensor::new([[100.7, 100.2], [f64::NAN, 3.9]])?.refine_names(["N", "C"])?;
    let whole = x.narrow("N", 0, 1)?.select("N", 0)?;
    for dtype in [DType::U8, DType::I8, DType::I16, DType::I32, DType::I64] {
        // As in PyTorch, the elements are cast first, and the sum wraps.
        let wrapped = |number: i64| Tensor::new(number)?.to(dtype)?.double()?.to_vec::<f64>();
        let sum = whole.sum_with(.., SumOptions::new().dtype(dtype))?;
        assert_eq!((sum.dtype(), sum.double()?.to_vec::<f64>()?), (dtype, wrapped(200)?));
        let prod = whole.prod_with(keep("C"), ProdOptions::new().dtype(dtype))?;
        assert_eq!((prod.dtype(), prod.double()?.to_vec::<f64>()?), (dtype, wrapped(10_000)?));
        let sums = whole.cumsum_with("C", CumsumOptions::new().dtype(dtype))?;
        assert_eq!((sums.dtype(), sums.select(0, 1)?.double()?.to_vec::<f64>()?), (dtype, wrapped(200)?));
        let products = whole.cumprod_with("C", CumprodOptions::new().dtype(dtype))?;
        assert_eq!(
            (products.dtype(), products.select(0, 1)?.double()?.to_vec::<f64>()?),
            (dtype, wrapped(10_000)?)
        );
        let numbers = x.nansum_with(.., NansumOptions::new().dtype(dtype))?;
        assert_eq!((numbers.dtype(), numbers.double()?.to_vec::<f64>()?), (dtype, wrapped(203)?));
    }
    let leaf = x.detach().requiring_grad()?;
    let sum = leaf.sum_with("C", SumOptions::new().dtype(DType::F32))?;
    assert!(sum.requires_grad());
    assert!(!leaf.sum_with("C", SumOptions::new().dtype(DType::I32))?.requires_grad());
    Ok(())
}

#[test]
fn numbers_beside_a_mask_had_the_digits_of_another_dtype() -> Result<()> {
    let x = Tensor::new([1.0, 2.0])?.to(DType::F64)?;
    let y = x.gt(1.5)?.choose(0.1, &x)?;
    assert_eq!((y.dtype(), y.to_vec::<f64>()?), (DType::F64, vec![1.0, 0.1]));
    let y = x.gt(1.5)?.choose(&x.to(DType::F16)?, 0.5)?;
    assert_eq!((y.dtype(), y.to_vec::<f64>()?), (DType::F16, vec![0.5, 2.0]));
    assert_eq!(x.gt(1.5)?.choose(1.0, 0.0)?.dtype(), DType::F32);
    Ok(())
}

/// Only slices of references were accepted.
#[test]
fn a_list_of_tensors_had_to_be_a_slice_of_references() -> Result<()> {
    let parts = vec![Tensor::ones([("N", 1)])?, Tensor::zeros([("N", 2)])?];
    let [a, b] = [&parts[0], &parts[1]];
    let joined = Tensor::cat(&parts, "N")?;
    assert_eq!(joined.to_vec::<f32>()?, [1.0, 0.0, 0.0]);
    for other in [
        Tensor::cat([a, b], "N")?,
        Tensor::cat(&[a, b], "N")?,
        Tensor::cat(parts.iter(), "N")?,
        Tensor::cat(parts.iter().cloned().map(std::sync::Arc::new), "N")?,
        Tensor::cat(parts.clone(), "N")?,
        Tensor::hstack(&parts[..])?,
    ] {
        assert!(other.equal(&joined)?);
    }
    assert_eq!(Tensor::einsum("i,j->ij", &parts)?.sizes(), [1, 2]);
    assert_eq!(Tensor::align_tensors(&parts)?.len(), 2);
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

#[test]
fn a_range_of_small_integers_wrapped() -> Result<()> {
    let range =
        |start: f64, end: f64, step: f64, dtype| TensorOptions::new().dtype(dtype).arange(start, end, step);
    for (start, end, step, dtype, number) in [
        (0.0, 300.0, 1.0, DType::U8, "299 does not fit in uint8"),
        (-1.0, 3.0, 1.0, DType::U8, "-1 does not fit in uint8"),
        (100.0, -200.0, -50.0, DType::I8, "-150 does not fit in int8"),
        (0.0, 1e300, 1e299, DType::I64, "does not fit in int64"),
    ] {
        let error = range(start, end, step, dtype).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Value, "{error}");
        assert!(error.message().contains(number), "{error}");
    }
    assert_eq!(range(250.0, 256.0, 1.0, DType::U8)?.to_vec::<i64>()?, [250, 251, 252, 253, 254, 255]);
    assert_eq!(range(127.0, -200.0, -255.0, DType::I8)?.to_vec::<i64>()?, [127, -128]);
    assert_eq!(range(300.0, 300.0, 1.0, DType::U8)?.numel(), 0);
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

#[test]
fn the_gradient_of_lerp_by_a_mask_panicked() -> Result<()> {
    let x = Tensor::new([1.0, 2.0])?.requiring_grad()?;
    x.lerp(&Tensor::new([5.0, 5.0])?, true)?.sum(..)?.backward()?;
    assert_eq!(x.grad().expect("a gradient").to_vec::<f32>()?, [0.0, 0.0]);
    Ok(())
}

#[test]
fn numbers_beyond_i64_became_negative() -> Result<()> {
    assert_eq!(Tensor::new(vec![usize::MAX]).unwrap_err().kind(), ErrorKind::Value);
    assert_eq!(Tensor::zeros([1])?.add(usize::MAX)?.to_vec::<f32>()?, [usize::MAX as f32]);
    let whole = TensorOptions::new().dtype(DType::I64);
    assert_eq!(whole.tensor([f64::NAN]).unwrap_err().kind(), ErrorKind::Value);
    assert_eq!(whole.full([1], usize::MAX).unwrap_err().kind(), ErrorKind::Value);
    Ok(())
}

#[test]
fn tied_parameters_failed_the_gradient_check() -> Result<()> {
    let tied = Parameter::new(TensorOptions::new().dtype(DType::F64).tensor([0.5, -1.0])?)?;
    let paths = [("a".to_string(), tied.clone()), ("b".to_string(), tied.clone())];
    gradcheck_parameters(|| tied.square().sum(..), paths)?;
    Ok(())
}

#[test]
fn a_large_dilation_overflowed() -> Result<()> {
    let (x, weight) = (Tensor::ones([1, 1, 4])?, Tensor::ones([1, 1, 3])?);
    let error = F::conv1d_with(&x, &weight, Conv1dOptions::new().dilation(usize::MAX)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    assert!(F::conv1d_with(&x, &weight, Conv1dOptions::new().groups(usize::MAX)).is_err());
    Ok(())
}

#[test]
fn values_and_masks_with_other_names_were_taken() -> Result<()> {
    let square = Tensor::new([[1.0, 2.0], [3.0, 4.0]])?.refine_names(["N", "C"])?;
    let p = Parameter::new(square.clone())?;
    let error = p.set(square.t()?).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::NameMismatch, "Parameter::set"));
    p.set(square.t()?.rename(None)?)?;
    assert_eq!(p.tensor().to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    assert_eq!(*p.tensor().names(), ["N", "C"]);
    let mask = square.t()?.gt(2)?;
    let error = square.index(&[(&mask).into()]).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::NameMismatch, "index"));
    assert_eq!(square.index(&[(&mask.align_as(&square)?).into()])?.to_vec::<f32>()?, [3.0, 4.0]);
    Ok(())
}

/// A dim given by name before any tensor had the name was never found: layers store such dims.
#[test]
fn a_dim_that_was_stored_before_its_name_was_used_was_not_found() -> Result<()> {
    let stored = namegrad::core::Dims::from("a_name_of_no_other_test");
    let x = Tensor::ones([("a_name_of_no_other_test", 3)])?;
    assert_eq!(x.sum(stored)?.item::<f32>()?, 3.0);
    Ok(())
}

#[test]
fn linear_without_input_features_failed_for_more_than_two_dims() -> Result<()> {
    let y = F::linear_with(
        &Tensor::zeros([2, 3, 0])?,
        &Tensor::zeros([4, 0])?,
        LinearOptions::new().bias(&Tensor::new([1.0, 2.0, 3.0, 4.0])?),
    )?;
    assert_eq!(y.sizes(), [2, 3, 4]);
    assert_eq!(y.select(0, 1)?.select(0, 2)?.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    Ok(())
}

#[test]
fn what_drops_nothing_asked_for_a_dim_of_channels() -> Result<()> {
    let x = Tensor::new([1.0, 2.0])?;
    assert!(F::dropout2d_with(&x, 0.5, [0; 0], Dropout2dOptions::new().training(false)).is_err()); // no two dims
    let y = F::feature_alpha_dropout(&x, 0.5, [0; 0])?;
    assert!(y.equal(&x)?);
    let training = FeatureAlphaDropoutOptions::new().training(true);
    assert_eq!(
        F::feature_alpha_dropout_with(&x, 0.5, [0; 0], training).unwrap_err().kind(),
        ErrorKind::Shape
    );
    Ok(())
}

#[test]
fn the_divisor_of_a_mean_of_windows_could_not_be_negative_and_integers_had_no_mean() -> Result<()> {
    let x = Tensor::new([[[1.0, 3.0], [5.0, 7.0]]])?.requiring_grad()?;
    let y = F::avg_pool2d_with(&x, 2, AvgPool2dOptions::new().divisor_override(-2))?;
    assert_eq!(y.to_vec::<f32>()?, [-8.0]);
    y.sum(..)?.backward()?;
    assert_eq!(x.grad().expect("a gradient").to_vec::<f32>()?, [-0.5; 4]);
    let whole = F::avg_pool1d(&Tensor::new([[-1, -2, 3, 4]])?, 2)?; // rounded toward zero
    assert_eq!((whole.dtype(), whole.to_vec::<i64>()?), (DType::I64, vec![-1, 3]));
    Ok(())
}

#[test]
fn a_stride_of_zero_put_all_maxima_into_one_place() -> Result<()> {
    let (x, indices) = (Tensor::ones([1, 1, 2])?, Tensor::new([[[0, 1]]])?);
    let options = MaxUnpool1dOptions::new().stride(0);
    assert_eq!(F::max_unpool1d_with(&x, &indices, 2, options).unwrap_err().kind(), ErrorKind::Value);
    Ok(())
}

#[test]
fn distances_and_bilinear_forms_of_integers_were_refused() -> Result<()> {
    let (a, b) = (Tensor::new([[3, 4]])?, Tensor::new([[0, 0]])?);
    let distance = F::pairwise_distance(&a, &b, -1)?;
    assert!(distance.dtype() == DType::F32 && (distance.item::<f32>()? - 5.0).abs() < 1e-4);
    let y = F::bilinear(&a, &a, &Tensor::new([[[1, 0], [0, 1]]])?)?;
    assert_eq!(y.to_vec::<i64>()?, [25]);
    Ok(())
}

#[test]
fn errors_of_some_layers_had_the_line_of_a_closure() -> Result<()> {
    use namegrad::nn::{
        MultiheadAttentionOptions, TransformerDecoderLayer, TransformerDecoderOptions,
        TransformerEncoderLayer, TransformerEncoderOptions,
    };
    let x = Tensor::ones([("N", 2), ("seq", 3), ("embed", 4)])?;
    let layer = MultiheadAttention::new(("embed", 4), ("heads", 2), "seq")?;
    let encoder = TransformerEncoderLayer::builder(("embed", 4), ("heads", 2), "seq").build()?;
    let decoder = TransformerDecoderLayer::builder(("embed", 4), ("heads", 2), "seq").build()?;
    let attend = |options| layer.attend_with(&x, &x, &x, options).map(drop);
    let (wrong, hidden) = (Tensor::ones([3, 5])?, Tensor::ones([3, 5])?.gt(0)?);
    let options = ScaledDotProductAttentionOptions::new().attn_mask(&wrong);
    let errors = [
        attend(MultiheadAttentionOptions::new().attn_mask(&wrong)),
        attend(MultiheadAttentionOptions::new().key_padding_mask(&hidden)),
        MultiheadAttention::new(("embed", 4), ("heads", 3), "seq").map(drop),
        TransformerEncoderLayer::builder(("embed", 4), ("heads", 2), "seq").dropout(2.0).build().map(drop),
        encoder.forward_with(&x, TransformerEncoderOptions::new().src_mask(&wrong)).map(drop),
        encoder.forward(&wrong).map(drop),
        decoder.forward_with(&x, &x, TransformerDecoderOptions::new().memory_mask(&wrong)).map(drop),
        TransformerDecoderLayer::builder(("embed", 4), ("heads", 3), "seq").build().map(drop),
        TransformerDecoderLayer::builder(("embed", 4), ("heads", 2), "seq")
            .dim_feedforward(usize::MAX)
            .build()
            .map(drop),
        x.scaled_dot_product_attention_with(&x, &x, options).map(drop),
        Conv2d::new(("C", usize::MAX), ("F", 4), [("H", 3), ("W", 3)]).map(drop),
    ];
    for error in errors.map(Result::unwrap_err) {
        assert_eq!(error.location().file(), file!(), "{error}");
    }
    // A mask of padding is shown as it was given.
    let error = attend(MultiheadAttentionOptions::new().key_padding_mask(&hidden)).unwrap_err();
    assert!(
        error.message().ends_with("key_padding_mask [3, 5] does not broadcast to [N=2, seq=3]"),
        "{error}"
    );
    Ok(())
}

#[test]
fn errors_of_layers_made_in_closures_had_the_line_of_the_closure() -> Result<()> {
    use namegrad::nn::{
        Bilinear, Transformer, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder,
    };
    use namegrad::nn::{TransformerDecoderOptions, TransformerEncoderLayer};
    let attention = MultiheadAttention::new(("embed", 4), ("heads", 2), "seq")?;
    let x = |n: usize| Tensor::ones([("N", n), ("seq", 3), ("embed", 4)]);
    let encoder = |heads: usize| {
        let layer = TransformerEncoderLayer::builder(("embed", 4), ("heads", heads), "seq");
        move || TransformerEncoder::new(layer, 2)
    };
    let decoder = TransformerDecoderLayer::builder(("embed", 4), ("heads", 3), "seq");
    let errors = [
        TransformerEncoder::new(TransformerEncoderLayer::builder(4, 3, 0), 2).map(drop),
        TransformerDecoder::new(decoder, 2).map(drop),
        Transformer::builder(("embed", 4), ("heads", 3), "seq").build().map(drop),
        attention.attend(&x(2)?, &x(3)?, &x(3)?).map(drop),
        BatchNorm::new(("C", usize::MAX)).map(drop),
        Bilinear::new(("a", usize::MAX), ("b", 2), ("c", 2)).map(drop),
        // 3 times the features overflowed.
        MultiheadAttention::new(("embed", usize::MAX - 1), ("heads", 1), "seq").map(drop),
    ];
    for error in errors.map(Result::unwrap_err) {
        assert_eq!(error.location().file(), file!(), "{error}");
    }
    // Layers in layers know their paths before any walk.
    let error = encoder(2)()?.forward(&Tensor::ones([("seq", 3), ("embed", 5)])?).unwrap_err();
    assert!(error.message().starts_with("the layer 'layers.0.self_attn' (embed=4"), "{error}");
    let outer = Sequential::new().then_named("enc", encoder(2)()?);
    let error = outer.forward(&Tensor::ones([("seq", 3), ("embed", 5)])?).unwrap_err();
    assert!(error.message().starts_with("the layer 'enc.layers.0.self_attn' (embed=4"), "{error}");
    let layer = TransformerDecoderLayer::builder(("embed", 4), ("heads", 2), "seq");
    let decoder = TransformerDecoder::new(layer, 1)?;
    let padding = Tensor::new([[0, 1, 1], [0, 0, 0]])?;
    let options = TransformerDecoderOptions::new().memory_key_padding_mask(&padding);
    let error = decoder.forward_with(&x(2)?, &x(2)?, options).unwrap_err();
    assert!(error.message().starts_with("the layer 'layers.0.multihead_attn'"), "{error}");
    assert_eq!(error.operands(), [padding.shape()]); // as it was given
    let block = Sequential::new().then_named("block", Residual::new(Linear::new(("x", 2), ("x", 3))?));
    let error = block.forward(&Tensor::ones([("x", 2)])?).unwrap_err();
    assert!(error.message().starts_with("the layer 'block': the output of"), "{error}");
    Ok(())
}

#[test]
fn a_parametrization_that_failed_later_was_a_panic() -> Result<()> {
    use namegrad::nn::parametrize::{self, Parametrization};
    /// The identity for small numbers.
    #[derive(Clone, Module)]
    struct Small;
    impl Parametrization for Small {
        fn compute(&self, originals: &[Tensor]) -> Result<Tensor> {
            let large = originals[0].abs()?.amax(..)?.item::<f32>()? > 5.0;
            if large { originals[0].sum("nothing") } else { Ok(originals[0].clone()) }
        }
    }
    let model = Sequential::new().then_named("fc", Linear::new(("in", 2), ("out", 3))?).then(Relu);
    parametrize::register(&model, "fc.weight", Small)?;
    model.train();
    let (_, original) = model.named_parameters().remove(0);
    original.update(|value| value.add_(10.0).map(drop))?;
    let error = model.forward(&Tensor::ones([("in", 2)])?).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::NameNotFound, "Linear"));
    assert_eq!(error.location().file(), file!());
    let message = "the layer 'fc': a parameter that is computed from others: Name 'nothing'";
    assert!(error.message().starts_with(message), "{error}");
    // Neither the rest of the model nor its text fails.
    assert_eq!(model.state_dict().len(), 2);
    assert!(format!("{model} {model:?}").contains("Small"));
    original.update(|value| value.sub_(10.0).map(drop))?;
    model.forward(&Tensor::ones([("in", 2)])?)?;

    // Several originals can only be those of the first parametrization.
    for spectral in [false, true] {
        let layer = Linear::new(2, 3)?;
        match spectral {
            true => parametrize::spectral_norm(&layer, "weight", 0)?,
            false => parametrize::weight_norm(&layer, "weight", 0)?,
        }
        layer.eval();
        let before = layer.weight().tensor();
        let error = parametrize::weight_norm(&layer, "weight", 0).unwrap_err();
        assert_eq!((error.kind(), error.op()), (ErrorKind::Value, "weight_norm"));
        assert!(error.message().contains("can only be the first parametrization"), "{error}");
        assert!(layer.weight().tensor().allclose(&before)?);
    }
    Ok(())
}

#[test]
fn a_model_with_hooked_layers_could_not_be_copied() -> Result<()> {
    use namegrad::nn::Hooked;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    #[derive(Clone, Module)]
    struct Model {
        first: Hooked<Linear>,
        second: Linear,
    }
    let model = Model {
        first: Hooked::new(Linear::new(("x", 2), ("h", 3))?),
        second: Linear::new(("h", 3), ("y", 1))?,
    };
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let handle = model.first.register_forward_hook(move |_, _, _| {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(None)
    });
    let copy = model.deep_copy()?;
    assert!(!copy.first.layer().weight().is(model.first.layer().weight()));
    assert!(!copy.second.weight().is(model.second.weight()));
    let x = Tensor::ones([("x", 2)])?;
    assert!(copy.first.forward(&x)?.equal(&model.first.forward(&x)?)?);
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    handle.remove(); // from the original alone
    model.first.forward(&x)?;
    copy.first.forward(&x)?;
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    assert!(model.first.clone().layer().weight().is(model.first.layer().weight())); // a clone shares it
    Ok(())
}

#[test]
fn convolutions_that_fit_no_input_were_made() -> Result<()> {
    let conv = || Conv2d::builder(("C", 3), ("F", 4), [("H", 3), ("W", 3)]);
    let same = namegrad::core::args::Padding::Same;
    for (made, message, repair) in [
        (conv().stride(0).build(), "`stride` must be at least 1, got [0, 0]", ".stride(1)"),
        (conv().dilation([1, 0]).build(), "`dilation` must be at least 1, got [1, 0]", ".dilation(1)"),
        (conv().padding(-1).build(), "`padding` must not be negative, got -1", ".padding(0)"),
        (
            conv().stride([1, 2, 3]).build(),
            "`stride` must be one number or 2, one for each dim, got [1, 2, 3]",
            ".stride(1)",
        ),
        (
            conv().stride(2).padding(same).build(),
            "padding of the same size needs a stride of 1, got [2, 2]",
            ".stride(1)",
        ),
    ] {
        let error = made.unwrap_err();
        assert_eq!((error.op(), error.message(), error.repair()), ("Conv2d", message, Some(repair)));
        assert_eq!(error.location().file(), file!());
    }
    let transposed = ConvTranspose2d::builder(("C", 3), ("F", 4), [("H", 3), ("W", 3)]).stride(0).build();
    assert_eq!(transposed.unwrap_err().op(), "ConvTranspose2d");
    Ok(())
}

#[test]
fn the_gradient_of_a_small_norm_overflowed_in_half_types() -> Result<()> {
    let tiny = TensorOptions::new().dtype(DType::F16).tensor([1e-6, 1e-6])?.requiring_grad()?;
    tiny.vector_norm(0)?.backward()?;
    for slope in tiny.grad().unwrap().to_vec::<f64>()? {
        assert!((slope - 0.5f64.sqrt()).abs() < 0.1, "{slope}"); // `tiny` has few bits
    }
    let far = TensorOptions::new().dtype(DType::F16).tensor([-6e4, 6e4])?.requiring_grad()?;
    let tanh = GeluOptions::new().approximate(F::Approximate::Tanh);
    F::gelu_with(&far, tanh)?.sum(..)?.backward()?;
    assert_eq!(far.grad().unwrap().to_vec::<f64>()?, [0.0, 1.0]);
    Ok(())
}

#[test]
fn lp_pooling_did_not_take_infinite_norms_or_incomplete_windows() -> Result<()> {
    let x = Tensor::new([[1.0, -5.0, 2.0]])?;
    let ceil = || LpPool1dOptions::new().ceil_mode(true);
    assert_eq!(F::lp_pool1d_with(&x, f64::INFINITY, 2, ceil())?.to_vec::<f32>()?, [5.0, 2.0]);
    assert_eq!(F::lp_pool1d_with(&x, f64::NEG_INFINITY, 2, ceil())?.to_vec::<f32>()?, [1.0, 2.0]);
    // The window of 2 alone counts as one of two such elements, as in PyTorch.
    let sums = F::lp_pool1d_with(&x.abs()?, 1.0, 2, ceil())?;
    assert_eq!(sums.to_vec::<f32>()?, [6.0, 4.0]);
    Ok(())
}

#[test]
fn pooling_by_position_took_tensors_without_channels() -> Result<()> {
    let kind = |y: Result<Tensor>| y.unwrap_err().kind();
    for sizes in [vec![4, 4], vec![1, 1, 1, 4, 4]] {
        let x = Tensor::ones(sizes)?;
        assert_eq!(kind(F::max_pool2d(&x, 2)), ErrorKind::Shape);
        assert_eq!(kind(F::avg_pool2d(&x, 2)), ErrorKind::Shape);
        assert_eq!(kind(F::adaptive_avg_pool2d(&x, 2)), ErrorKind::Shape);
    }
    assert_eq!(kind(F::max_pool1d(&Tensor::ones([0, 4])?, 1)), ErrorKind::Shape);
    // Names say which dims there are, so there can be any others.
    let x = Tensor::ones([("H", 4), ("W", 4)])?;
    assert_eq!(F::max_pool2d(&x, 2)?.sizes(), [2, 2]);
    let largest = Tensor::ones([1, 1, 4])?.max_pool(namegrad::core::args::Windows::sliding(2))?;
    let unpooled = |size: usize| {
        let options = MaxUnpool1dOptions::new().output_size(size);
        F::max_unpool1d_with(&largest.values, &largest.indices, 2, options)
    };
    assert_eq!(unpooled(5)?.sizes(), [1, 1, 5]);
    assert_eq!(kind(unpooled(6)), ErrorKind::Shape);
    Ok(())
}

#[test]
fn places_of_fractional_pooling_were_not_rounded_toward_zero() -> Result<()> {
    let x = Tensor::arange(0, 16, 1)?.to(DType::F32)?.reshape([1, 1, 16])?;
    let samples = Tensor::full([1, 1, 1], -0.7130395)?;
    let places = x.fractional_max_pool(&samples, 1, 8)?.values.to_vec::<f32>()?;
    assert_eq!(places, [0.0, 1.0, 3.0, 5.0, 8.0, 10.0, 12.0, 15.0]);
    Ok(())
}

#[test]
fn the_gradient_of_an_impossible_ctc_loss_was_zero() -> Result<()> {
    let x = Tensor::zeros([2, 2, 3])?.log_softmax(2)?.detach().requiring_grad()?;
    let targets = Tensor::new([[1, 1], [1, 2]])?; // equal labels need a blank between them
    let (steps, lengths) = (Tensor::new([2, 2])?, Tensor::new([2, 2])?);
    let options = |zero| CtcLossOptions::new().reduction(F::Reduction::None).zero_infinity(zero);
    let losses = F::ctc_loss_with(&x, &targets, &steps, &lengths, 0, 2, options(false))?;
    assert!(losses.to_vec::<f64>()?[0].is_infinite());
    losses.sum(..)?.backward()?;
    let gradient = x.grad().unwrap();
    assert!(gradient.select(1, 0)?.isnan()?.all(..)?.item::<bool>()?);
    assert!(gradient.select(1, 1)?.isfinite()?.all(..)?.item::<bool>()?);
    let x = x.detach().requiring_grad()?;
    F::ctc_loss_with(&x, &targets, &steps, &lengths, 0, 2, options(true))?.sum(..)?.backward()?;
    assert_eq!(x.grad().unwrap().select(1, 0)?.to_vec::<f64>()?, [0.0; 6]);
    Ok(())
}

#[test]
fn functions_took_what_they_cannot_use() -> Result<()> {
    let kind = |y: Result<Tensor>| y.unwrap_err().kind();
    let x = Tensor::ones([1, 4, 1])?;
    assert_eq!(kind(F::group_norm(&x, 4, 1, 2)), ErrorKind::Shape);
    assert_eq!(kind(F::group_norm(&Tensor::ones([1, 0, 2])?, 1, 1, 2)), ErrorKind::Shape);
    assert_eq!(kind(F::group_norm(&Tensor::ones([1, 2, 0])?, 1, 1, 2)), ErrorKind::Shape);
    let options = BatchNormOptions::new().training(true).eps(0.0);
    assert_eq!(F::batch_norm_with(&Tensor::ones([2, 3])?, 1, options).unwrap_err().kind(), ErrorKind::Value);
    let (logits, p) = (Tensor::ones([2, 3])?, Tensor::ones([2, 3])?);
    let options = CrossEntropyOptions::new().ignore_index(1);
    assert_eq!(kind(F::cross_entropy_with(&logits, &p, 1, options)), ErrorKind::Value);
    let bags = Tensor::new([[0, 1]])?;
    let options = EmbeddingBagOptions::new().mode(F::BagMode::Max).scale_grad_by_freq(true);
    assert_eq!(kind(F::embedding_bag_with(&bags, &logits, options)), ErrorKind::Value);
    assert_eq!(kind(Tensor::new([1, 2])?.gelu()), ErrorKind::DType);
    Ok(())
}

#[test]
fn functions_refused_integers_and_bits() -> Result<()> {
    let x = Tensor::new([[1, 2], [3, 4]])?;
    let evaluated = DropoutOptions::new().training(false);
    assert!(F::dropout_with(&x, 0.5, evaluated)?.equal(&x)?);
    assert_eq!(F::dropout(&x, 1.0)?.to_vec::<i64>()?, [0; 4]);
    assert_eq!(F::dropout(&x, 0.5).unwrap_err().kind(), ErrorKind::DType);
    let y = F::local_response_norm(&x.unsqueeze(0)?, 2, 1)?;
    assert_eq!(y.dtype(), DType::F32);
    let bits = x.gt(2)?;
    let close = F::cosine_embedding_loss(&bits, &bits, &Tensor::new([1, 1])?, 1)?;
    assert!((close.item::<f64>()? - 0.5).abs() < 1e-6);
    let one = MultiMarginLossOptions::new().reduction(F::Reduction::None);
    let losses = F::multi_margin_loss_with(&Tensor::new([0.1, 0.2])?, &Tensor::new([1])?, 0, one)?;
    assert_eq!(losses.sizes(), [1]);
    Ok(())
}

#[test]
fn scalars_of_products_of_halves_were_rounded_to_halves() -> Result<()> {
    let x = Tensor::full([3, 3], 131.0)?.to(DType::BF16)?;
    let zero = Tensor::zeros([3, 3])?.to(DType::BF16)?;
    // -4.775 would be rounded to -4.78125, and the product to -628.
    let found = x.addmm_with(&zero, &zero, AddmmOptions::new().beta(-4.775))?;
    assert_eq!(found.to_vec::<f64>()?, [-624.0; 9]);
    Ok(())
}

#[test]
fn many_groups_of_no_channels_and_huge_strides_were_panics_or_endless() -> Result<()> {
    let none = Tensor::zeros([0, 3])?;
    let options = ConvolutionWeightOptions::new().groups(usize::MAX);
    let error = none.convolution_weight_with(&none, 1, options).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Shape, file!()));
    let error = Tensor::zeros([3, 0])?.standardize(1, 0, usize::MAX).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Shape, file!()));
    let x = Tensor::zeros([1, 2, 3])?;
    let options = MaxUnpool1dOptions::new().stride(isize::MAX as usize).output_size(0);
    let error = F::max_unpool1d_with(&x, &x.to(DType::I64)?, isize::MAX as usize, options).unwrap_err();
    assert_eq!(error.location().file(), file!());
    Ok(())
}

#[test]
fn the_gradient_of_a_cross_entropy_with_bits_was_a_panic() -> Result<()> {
    let mut probability = Tensor::new([0.25, 0.5])?;
    probability.requires_grad_(true)?;
    probability.bernoulli_cross_entropy(&Tensor::new([true, false])?)?.mean(..)?.backward()?;
    assert!(probability.grad().unwrap().allclose(&Tensor::new([-2.0, 1.0])?)?);
    Ok(())
}
