//! Each test is a bug that was there once.

use namegrad::autograd::{BackwardOptions, GradCheck, Op, checkpoint, grad, gradgradcheck};
use namegrad::core::random::Generator;
use namegrad::prelude::*;

#[test]
fn numbers_of_f64_were_rounded_to_the_default_dtype_first() -> Result<()> {
    let x = TensorOptions::new().dtype(DType::F64).tensor([0.1, 1.0 + 1e-12])?;
    assert_eq!(x.to_vec::<f64>()?, [0.1, 1.0 + 1e-12]);
    Ok(())
}

#[test]
fn backward_of_a_batched_product_over_nothing_could_not_infer_a_size() -> Result<()> {
    let a = Tensor::ones([2, 2, 0])?.requires_grad_(true)?;
    let b = Tensor::ones([0, 3])?.requires_grad_(true)?;
    a.matmul(&b)?.sum(..)?.backward()?;
    assert_eq!(a.grad().unwrap().sizes(), [2, 2, 0]);
    assert_eq!(b.grad().unwrap().sizes(), [0, 3]);
    Ok(())
}

#[test]
fn the_second_derivative_of_a_product_with_a_zero_was_zero() -> Result<()> {
    for zeros in [[0.0, 2.0, 3.0], [0.0, 0.0, 5.0]] {
        let x = TensorOptions::new().dtype(DType::F64).tensor([zeros, [1.0, 2.0, 0.5]])?;
        gradgradcheck(|x| x[0].prod(1), std::slice::from_ref(&x), GradCheck::default())?;
        gradgradcheck(|x| x[0].prod(..), &[x], GradCheck::default())?;
    }
    Ok(())
}

#[test]
fn an_empty_view_in_an_op_by_element_divided_by_zero() -> Result<()> {
    let x = Tensor::ones([4, 0])?.slice(1, 0, 0, 2)?; // read across its memory, if there were any
    assert_eq!(x.ne(0)?.sizes(), [4, 0]);
    assert_eq!(x.mul(&x)?.sum(..)?.item()?.to_f64(), 0.0);
    Ok(())
}

#[test]
fn the_error_of_a_hook_pointed_into_the_library() -> Result<()> {
    let x = Tensor::ones([2])?.requires_grad_(true)?;
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

/// The gradients of the sum of `y` by two numbers.
fn gradients(y: fn(&Tensor, &Tensor) -> Result<Tensor>, a: f64, b: f64) -> Result<[f64; 2]> {
    let number = |x: f64| TensorOptions::new().dtype(DType::F64).requires_grad(true).tensor([x]);
    let (a, b) = (number(a)?, number(b)?);
    y(&a, &b)?.sum(..)?.backward()?;
    let of = |x: &Tensor| x.grad().expect("took part").item().map(|g| g.to_f64());
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

/// Elements that nobody had picked were read from memory that nobody had written.
#[test]
fn an_empty_index_into_a_0d_tensor_gave_a_number_from_nowhere() -> Result<()> {
    let x = Tensor::full([0usize; 0], 3.0)?;
    let index = |n: usize| Tensor::zeros([n])?.to(DType::I64);
    assert_eq!(x.index_select(&index(1)?, 0)?.item()?.to_f64(), 3.0);
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
        let logits = Tensor::new([[1.0, 2.0, 3.0], [0.0, 0.5, -1.0]])?.requires_grad_(true)?;
        let options = CrossEntropyOptions::new().label_smoothing(label_smoothing);
        let loss = cross_entropy_with(&logits, &target, 1, options)?;
        assert!(loss.item()?.to_f64().is_nan());
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

/// The answers are PyTorch's on x86-64, where each width has a conversion of its own.
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

/// The walk's own check has the place of the op, not of the library.
#[test]
fn the_error_of_a_wrong_gradient_of_an_op_pointed_into_the_library() -> Result<()> {
    let x = Tensor::ones([2])?.requires_grad_(true)?;
    let wrong = Op::new("wrong", x.value().clone()).input(&x, |_, _| Tensor::ones([3])).output();
    let error = wrong.sum(..)?.backward().unwrap_err();
    assert_eq!((error.op(), error.location().file()), ("wrong", file!()));
    Ok(())
}

/// One hook that failed left other leaves without the gradients of the pass.
#[test]
fn a_hook_after_accumulation_that_failed_left_gradients_half_accumulated() -> Result<()> {
    let [x, y] = [Tensor::ones([2])?.requires_grad_(true)?, Tensor::ones([2])?.requires_grad_(true)?];
    for leaf in [&x, &y] {
        leaf.register_post_accumulate_grad_hook(|g| g.sum("no_such_dim").map(Some))?;
    }
    assert!(x.mul(&y)?.sum(..)?.backward().is_err());
    assert!(x.grad().is_some() && y.grad().is_some());
    Ok(())
}

#[test]
fn a_hook_after_accumulation_could_leave_a_gradient_of_other_sizes() -> Result<()> {
    let x = Tensor::ones([2])?.requires_grad_(true)?;
    x.register_post_accumulate_grad_hook(|_| Ok(Some(Tensor::ones([3])?)))?;
    let error = x.sum(..)?.backward().unwrap_err();
    assert_eq!((error.op(), error.location().file()), ("register_post_accumulate_grad_hook", file!()));
    assert_eq!(x.grad().unwrap().sizes(), [2]);
    Ok(())
}

/// The second time the numbers came from the default generator, whichever they came from at first.
#[test]
fn a_checkpoint_in_the_scope_of_a_generator_dropped_other_elements_the_second_time() -> Result<()> {
    let x = Tensor::ones([100])?.requires_grad_(true)?;
    let y = Generator::from_seed(5).scope(|| checkpoint(|x| F::dropout(&x[0], 0.5), &[&x]))?;
    y.sum(..)?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, y.to_vec::<f32>()?);
    Ok(())
}

/// The way beyond a tensor whose gradient was asked for was walked to no end: used up, or an error if it was
/// before.
#[test]
fn a_gradient_of_an_intermediate_used_up_what_it_was_made_of() -> Result<()> {
    let x = Tensor::new([2.0])?.requires_grad_(true)?;
    let y = x.exp()?;
    let gradient = |y: &Tensor| grad(&[&y.square()?], &[y], &[], BackwardOptions::default());
    let before = gradient(&y)?.remove(0).unwrap().item()?;
    y.backward()?;
    assert_eq!(gradient(&y)?.remove(0).unwrap().item()?, before);
    assert_eq!(before.to_f64(), y.mul(2)?.item()?.to_f64());
    // Another input beyond it is still reached.
    let y = x.exp()?;
    let both = grad(&[&y.square()?], &[&y, &x], &[], BackwardOptions::default())?;
    assert!(both.iter().all(Option::is_some));
    assert!(y.backward().is_err());
    // Also if a way that does not lead through it is found on the walk.
    let y = x.exp()?;
    let loss = y.mul(&checkpoint(|x| x[0].square(), &[&x])?)?;
    let of_x = grad(&[&loss], &[&y, &x], &[], BackwardOptions::default())?.remove(1).unwrap();
    let want = y.mul(x.square()?.add(x.mul(2)?)?)?; // (eˣ x²)' = eˣ (x² + 2x)
    assert!(of_x.allclose(&want)?);
    Ok(())
}

/// The gradient inside was that of the result, as if every op were the identity.
#[test]
fn a_gradient_inside_of_a_checkpoint_was_wrong_in_silence() -> Result<()> {
    let create = BackwardOptions { create_graph: true, ..BackwardOptions::default() };
    let f = move |x: &[Tensor]| Ok(grad(&[&x[0].pow(3)?], &[&x[0]], &[], create)?.remove(0).unwrap());
    let x = Tensor::new([2.0])?.requires_grad_(true)?;
    assert_eq!(f(std::slice::from_ref(&x))?.item()?.to_f64(), 12.0);
    let error = checkpoint(f, &[&x]).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Autograd, file!()));
    assert!(error.to_string().contains("called in a checkpoint"), "{error}");
    Ok(())
}
