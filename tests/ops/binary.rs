//! Elementwise ops on two or three tensors.

use crate::plain;
use namegrad::prelude::*;
use namegrad_tests::values::{f64s, gradients};
use std::f64::consts::LN_2;

pointwise! {
//  op, arguments                                    [dtypes]         reference, where it has no derivative
    add (x: -3.0..3.0, y: -3.0..3.0)            [float int bool] x + y;
    sub (x: -3.0..3.0, y: -3.0..3.0)            [float int signed] x - y;
    mul (x: -3.0..3.0, y: -3.0..3.0)            [float int bool] x * y;
    div (x: -3.0..3.0, y: 0.5..3.0)             [float]          x / y;
    floor_divide (x: -6.0..6.0, y: -3.0..3.0) [float int] plain::floor_divide(x, y), kinks y * (x / y - (x / y).round());
    trunc_divide (x: -6.0..6.0, y: -3.0..3.0) [float int] (x / y).trunc(), kinks y * (x / y - (x / y).round());
    fmod (x: -6.0..6.0, y: -3.0..3.0)          [float int]      x % y, kinks y * (x / y - (x / y).round());
    remainder (x: -6.0..6.0, y: -3.0..3.0) [float int]     plain::remainder(x, y), kinks y * (x / y - (x / y).round());
    pow (x: 0.3..3.0, y: -2.0..3.0)             [float int]      x.powf(y);
    atan2 (x: -3.0..3.0, y: -3.0..3.0)        [float]          x.atan2(y), kinks x * y;
    hypot (x: -3.0..3.0, y: -3.0..3.0)        [float only]     x.hypot(y), kinks x * y;
    logaddexp (x: -3.0..3.0, y: -3.0..3.0)           [float]          plain::logaddexp(x, y), scale 1.0;
    logaddexp2 (x: -3.0..3.0, y: -3.0..3.0)          [float]          plain::logaddexp(x * LN_2, y * LN_2) / LN_2, scale 1.0;
    xlogy (x: -3.0..3.0, y: 0.1..3.0)         [float]          if x == 0.0 && !y.is_nan() { 0.0 } else { x * y.ln() }, kinks x;
    bernoulli_cross_entropy (x: 0.1..0.9, y: 0.0..1.0) [float only] (y - 1.0) * plain::larger((-x).ln_1p(), -100.0) - y * plain::larger(x.ln(), -100.0), scale 1e4;
    copysign (x: -3.0..3.0, y: -3.0..3.0)  [float]          x.copysign(y), kinks x * y;
    maximum (x: -3.0..3.0, y: -3.0..3.0)             [float int bool] plain::larger(x, y), kinks x - y;
    minimum (x: -3.0..3.0, y: -3.0..3.0)             [float int bool] plain::smaller(x, y), kinks x - y;
    fmax (x: -3.0..3.0, y: -3.0..3.0)                [float int bool] x.max(y), kinks x - y;
    fmin (x: -3.0..3.0, y: -3.0..3.0)                [float int bool] x.min(y), kinks x - y;
    clamp_min (x: -3.0..3.0, y: -3.0..3.0) [float int bool] plain::larger(x, y), kinks x - y;
    clamp_max (x: -3.0..3.0, y: -3.0..3.0) [float int bool] plain::smaller(x, y), kinks x - y;
    heaviside (x: -3.0..3.0, y: -3.0..3.0) [float int bool] if x == 0.0 { y } else { (x > 0.0).into() }, kinks x;
    eq (x: -3.0..3.0, y: -3.0..3.0)              [float int bool test] (x == y).into();
    ne (x: -3.0..3.0, y: -3.0..3.0)              [float int bool test] (x != y).into();
    lt (x: -3.0..3.0, y: -3.0..3.0)              [float int bool test] (x < y).into();
    le (x: -3.0..3.0, y: -3.0..3.0)              [float int bool test] (x <= y).into();
    gt (x: -3.0..3.0, y: -3.0..3.0)              [float int bool test] (x > y).into();
    ge (x: -3.0..3.0, y: -3.0..3.0)              [float int bool test] (x >= y).into();
    logical_and (x: -3.0..3.0, y: -3.0..3.0) [float int bool test] (x != 0.0 && y != 0.0).into();
    logical_or (x: -3.0..3.0, y: -3.0..3.0) [float int bool test] (x != 0.0 || y != 0.0).into();
    logical_xor (x: -3.0..3.0, y: -3.0..3.0) [float int bool test] ((x != 0.0) != (y != 0.0)).into();
    bitwise_and (x: -9.0..9.0, y: -9.0..9.0) [int bool]  (x as i64 & y as i64) as f64;
    bitwise_or (x: -9.0..9.0, y: -9.0..9.0) [int bool]    (x as i64 | y as i64) as f64;
    bitwise_xor (x: -9.0..9.0, y: -9.0..9.0) [int bool]  (x as i64 ^ y as i64) as f64;
    bitwise_left_shift (x: -9.0..9.0, y: -1.0..9.0) [int] plain::shift_left(x, y);
    bitwise_right_shift (x: -9.0..9.0, y: -1.0..9.0) [int] plain::shift_right(x, y);
    gcd (x: -12.0..12.0, y: -12.0..12.0)        [int]            plain::gcd(x, y);
    lcm (x: -9.0..9.0, y: -9.0..9.0)            [int]            if x * y == 0.0 { 0.0 } else { (x * y).abs() / plain::gcd(x, y) };
    lerp (x: -3.0..3.0, end: -3.0..3.0, weight: 0.0..1.0) [float alike] plain::lerp(x, end, weight), kinks weight - 0.5, scale 6.0;
    clamp (x: -3.0..3.0, min: -2.0..0.0, max: -1.0..2.0) [float int] plain::smaller(plain::larger(x, min), max), kinks (x - min) * (x - max) * (min - max);
}

/// Ops that the functions below check.
pub(crate) const BY_FUNCTION: &[&str] = &["nextafter"];

/// There is no number between a number and the next one.
#[test]
fn nextafter() {
    use namegrad::prelude::*;
    let x = Tensor::new([0.0, -0.0, 1.0, -1.0, f64::MAX, f64::INFINITY, f64::NAN, 2.0])
        .unwrap()
        .to(DType::F64)
        .unwrap();
    let y = x.nextafter(f64::INFINITY).unwrap().to_vec::<f64>().unwrap();
    for (x, y) in x.to_vec::<f64>().unwrap().into_iter().zip(y) {
        assert!(y == x.next_up() || x.is_nan() && y.is_nan(), "after {x} comes {y}");
    }
    let single = Tensor::new([1.0]).unwrap().refine_names(["N"]).unwrap();
    let next = single.nextafter(Tensor::zeros([2, 1]).unwrap()).unwrap();
    assert_eq!(next.to_vec::<f32>().unwrap(), [1f32.next_down(); 2]);
    assert_eq!(next.shape().to_string(), "[?=2, N=1]");
    // By conversion from the bits, which count up through the positive numbers of a half type.
    for (dtype, number) in [
        (DType::F16, (|bits| half::f16::from_bits(bits).to_f64()) as fn(u16) -> f64),
        (DType::BF16, |bits| half::bf16::from_bits(bits).to_f64()),
    ] {
        let (zero, infinity) = (Tensor::new([0.0]).unwrap(), Tensor::new([f64::INFINITY]).unwrap());
        let [zero, infinity] = [zero, infinity].map(|x| x.to(dtype).unwrap());
        let after = |x: &Tensor, y: &Tensor| x.nextafter(y).unwrap().to_vec::<f64>().unwrap()[0];
        for bits in (0..1 << 15).take_while(|bits| number(*bits).is_finite()) {
            let (x, next) = (number(bits), number(bits + 1));
            let [x, next] = [x, next].map(|x| Tensor::from_slice(&[x], [1]).unwrap().to(dtype).unwrap());
            assert_eq!(after(&x, &infinity), number(bits + 1), "{dtype}, {bits}");
            assert_eq!(after(&next, &zero), number(bits), "{dtype}, {bits}");
            let [x, next, infinity] = [&x, &next, &infinity].map(|x| x.neg().unwrap());
            assert_eq!(after(&x, &infinity), -number(bits + 1), "{dtype}, -{bits}");
            assert_eq!(after(&next, &zero), -number(bits), "{dtype}, -{bits}");
        }
    }
    for dtype in [DType::I32, DType::Bool] {
        let error = single.to(dtype).unwrap().nextafter(single.to(dtype).unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DType, "{dtype}");
    }
    assert_eq!(single.requiring_grad().unwrap().nextafter(0.0).unwrap_err().kind(), ErrorKind::Autograd);
}

#[test]
fn an_empty_view_in_an_op_by_element_divided_by_zero() -> Result<()> {
    let x = Tensor::ones([4, 0])?.slice(1, 0, 0, 2)?; // read as transposed, if it had elements
    assert_eq!(x.ne(0)?.sizes(), [4, 0]);
    assert_eq!(x.mul(&x)?.sum(..)?.item::<f64>()?, 0.0);
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
fn a_divisor_that_is_zero_once_cast_was_a_panic() -> Result<()> {
    let x = Tensor::new([1u8, 2])?;
    assert_eq!(x.floor_divide(256).unwrap_err().kind(), ErrorKind::Value);
    assert_eq!(x.remainder(&Tensor::new(512)?).unwrap_err().kind(), ErrorKind::Value);
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
fn the_gradient_of_atan2_at_infinity() -> Result<()> {
    assert_eq!(gradients(|a, b| a.atan2(b), 1.0, f64::INFINITY)?, [0.0, 0.0]);
    assert_eq!(gradients(|a, b| a.atan2(b), f64::INFINITY, 1.0)?, [0.0, 0.0]);
    Ok(())
}

/// The squares of the coordinates are out of range, their ratio is not.
#[test]
fn the_gradient_of_atan2_of_large_and_small_numbers() -> Result<()> {
    for (size, dtype) in [
        (300.0, DType::F16),
        (1e-4, DType::F16),
        (1e30, DType::F32),
        (1e-30, DType::F32),
        (1e-200, DType::F64),
    ] {
        let [y, x] = [3.0, 4.0].map(|side| f64s([side * size]).and_then(|x| x.to(dtype)?.requiring_grad()));
        let (y, x) = (y?, x?);
        y.atan2(&x)?.sum(..)?.backward()?;
        let of = |x: &Tensor| x.grad().expect("it was computed").item::<f64>();
        let (dy, dx) = (of(&y)? * size, of(&x)? * size);
        assert!((dy - 0.16).abs() < 2e-3 && (dx + 0.12).abs() < 2e-3, "{size}: {dy}, {dx}");
    }
    Ok(())
}

/// The dtype of the base has only even numbers there.
#[test]
fn the_sign_of_a_power_comes_from_the_exact_exponent() -> Result<()> {
    for (dtype, odd) in [(DType::F32, (1i64 << 24) + 1), (DType::F64, (1 << 53) + 1), (DType::F16, 2049)] {
        let x = Tensor::new([-1.0, 1.0, -1.0])?.to(dtype)?.requiring_grad()?;
        let exponents = Tensor::new([odd, odd, odd - 1])?;
        let y = x.pow(&exponents)?;
        assert_eq!((y.dtype(), y.to_vec::<f64>()?), (dtype, vec![-1.0, 1.0, 1.0]));
        assert_eq!(x.narrow(0, 0, 1)?.pow(odd)?.item::<f64>()?, -1.0);
        y.sum(..)?.backward()?;
        let slopes = x.grad().expect("it was computed").sign()?;
        assert_eq!(slopes.to_vec::<f64>()?, [1.0, 1.0, -1.0], "{dtype}");
        let mut x = x.detach();
        x.pow_(&exponents)?;
        assert_eq!(x.to_vec::<f64>()?, [-1.0, 1.0, 1.0]);
    }
    let zero = f64s([-0.0, 0.0, -0.0])?.pow(&Tensor::new([-3, -3, -2])?)?;
    assert_eq!(zero.to_vec::<f64>()?, [f64::NEG_INFINITY, f64::INFINITY, f64::INFINITY]);
    let error = Tensor::ones([("N", 2)])?.pow(&Tensor::new([1, 2])?.refine_names(["C"])?).unwrap_err();
    assert_eq!((error.op(), error.kind()), ("pow", ErrorKind::NameMismatch));
    Ok(())
}

#[test]
fn a_bound_beyond_an_integer_dtype_limits_nothing() -> Result<()> {
    let x = Tensor::new([0u8, 7, 255])?;
    assert_eq!(x.clamp(-1, 100)?.to_vec::<u8>()?, [0, 7, 100]);
    assert_eq!(x.clamp_min(-1)?.to_vec::<u8>()?, [0, 7, 255]);
    assert_eq!(x.clamp_max(300)?.to_vec::<u8>()?, [0, 7, 255]);
    assert_eq!(x.clamp_max(&Tensor::new(-1)?)?.to_vec::<u8>()?, [0, 0, 0]);
    assert_eq!(x.clamp_min(300)?.to_vec::<u8>()?, [255, 255, 255]);
    let mut y = x.clone();
    y.clamp_(-5, 1000)?;
    assert_eq!((y.dtype(), y.to_vec::<u8>()?), (DType::U8, vec![0, 7, 255]));
    assert_eq!(x.to(DType::I8)?.clamp(-1000, 5)?.to_vec::<i8>()?, [0, 5, -1]);
    assert_eq!(x.clamp(-1.5, 6.5)?.to_vec::<f32>()?, [0.0, 6.5, 6.5]);
    Ok(())
}
