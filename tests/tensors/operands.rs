//! Operands, operators on owned tensors, and reading numbers and sizes from tensors.

use namegrad::autograd::{Index, gradgradcheck};
use namegrad::core::Scalar;
use namegrad::prelude::*;
use namegrad_tests::values::{f64s, gradient};

fn numbers(x: &Tensor) -> Vec<f32> {
    x.to_vec().unwrap()
}

#[test]
fn a_parameter_is_an_operand() -> Result<()> {
    let p = Parameter::new(Tensor::new([2.0, 3.0])?.refine_names(["C"])?)?;
    let x = Tensor::new([[1.0, 10.0]])?.refine_names(["N", "C"])?;
    for y in [&x * &p, &x * p.clone(), &p * &x, p.clone() * &x, x.mul(&p)?, x.clone() * &p, &p * x.clone()] {
        assert_eq!((numbers(&y), y.requires_grad()), (vec![2.0, 30.0], true));
    }
    assert_eq!(numbers(&(2.0 * &p)), [4.0, 6.0]);
    assert_eq!(numbers(&(1 - &p)), [-1.0, -2.0]);
    assert_eq!(numbers(&(&p / 2.0)), [1.0, 1.5]);
    assert_eq!(numbers(&(-&p)), [-2.0, -3.0]);
    assert_eq!(numbers(&(&p + &p)), [4.0, 6.0]);
    let mut y = x.clone();
    y -= &p;
    assert_eq!(numbers(&y), [-1.0, 7.0]);
    assert_eq!(x.lt(&p)?.to_vec::<bool>()?, [true, false]);
    let w = Parameter::new(Tensor::new([[1.0], [2.0]])?.refine_names(["C", "out"])?)?;
    assert_eq!([numbers(&x.matmul(&w)?), numbers(&x.contract(&w, "C")?)], [[21.0], [21.0]]);
    assert_eq!(numbers(&F::linear(&x, &Parameter::new(Tensor::new([[1.0, 3.0]])?)?)?), [31.0]);
    assert_eq!(numbers(&x.index_select(&Tensor::new([1])?, "C")?), [10.0]);
    (&x * &p).sum(..)?.backward()?;
    assert_eq!(numbers(&p.grad().unwrap()), [1.0, 10.0]);
    // In lists too, where the gradient arrives.
    p.zero_grad();
    let both = Tensor::cat([&p, &p], "C")?;
    assert_eq!((numbers(&both), both.requires_grad()), (vec![2.0, 3.0, 2.0, 3.0], true));
    assert_eq!(Tensor::stack([&p], 0)?.sizes(), [1, 2]);
    assert_eq!(Tensor::align_tensors([&p])?[0].sizes(), [2]);
    both.sum(..)?.backward()?;
    assert_eq!(numbers(&p.grad().unwrap()), [2.0, 2.0]);
    Ok(())
}

/// Compares each operator on an owned tensor with the method, if the buffer can be reused and if it cannot.
#[test]
fn operators_on_owned_tensors_equal_methods() -> Result<()> {
    let named = |names: [&str; 2]| Tensor::new([[1.0, 2.0], [3.0, -4.0]])?.refine_names(names);
    let integers = Tensor::new([[1, 2], [3, -4]])?;
    let lefts = [
        named(["N", "C"])?,
        named(["N", "C"])?.rename(None)?,
        named(["N", "C"])?.rename([Some("N"), None])?,
        named(["C", "N"])?.transpose("C", "N")?,
        Tensor::new([2.0, 4.0])?,
        integers.clone(),
        integers.to(DType::I8)?,
        integers.gt(0)?,
        named(["N", "C"])?.to(DType::BF16)?,
        named(["N", "C"])?.requiring_grad()?,
        Tensor::new(2.0)?,
    ];
    let rights = [
        Tensor::new([2.0, 8.0])?,
        Tensor::new([2.0, 8.0])?.refine_names(["C"])?,
        Tensor::new([2, 8])?,
        Tensor::new([[2.0], [8.0]])?,
        Tensor::new(3.0)?,
        Tensor::new(3.0)?.to(DType::F64)?,
        Tensor::new([2.0, 8.0])?.to(DType::F64)?,
        Tensor::ones([3, 2, 2])?,
        Tensor::new([2.0, 8.0])?.requiring_grad()?,
        Tensor::new([true, false])?,
    ];
    type Method = fn(&Tensor, &Tensor) -> Result<Tensor>;
    type Operator = fn(Tensor, &Tensor) -> Tensor;
    let pairs: [(Method, Operator); 4] = [
        (|x, y| x.add(y), |x, y| x + y),
        (|x, y| x.sub(y), |x, y| x - y),
        (|x, y| x.mul(y), |x, y| x * y),
        (|x, y| x.div(y), |x, y| x / y),
    ];
    let mut compared = 0;
    for (left, right) in lefts.iter().flat_map(|left| rights.iter().map(move |right| (left, right))) {
        for (method, operator) in pairs {
            let Ok(want) = method(left, right) else { continue };
            // An unshared copy with the same memory order.
            let owned = Tensor::constant(left.value().to(DType::F64)?.to(left.dtype())?);
            let owned = if left.requires_grad() { owned.requiring_grad()? } else { owned };
            let got = operator(owned, right);
            assert_eq!((got.dtype(), got.shape()), (want.dtype(), want.shape()), "{left:?} {right:?}");
            assert_eq!(got.requires_grad(), want.requires_grad());
            let wide = |x: &Tensor| x.to(DType::F64)?.to_vec::<f64>();
            assert_eq!(format!("{:?}", wide(&got)?), format!("{:?}", wide(&want)?), "{left:?} {right:?}");
            compared += 1;
        }
    }
    assert!(compared > 350, "{compared}");
    let y = no_grad(|| Tensor::new([1.0])?.requiring_grad().map(|x| -(x * 2.0)))?;
    assert!(!y.requires_grad() && y.is_leaf());
    Ok(())
}

#[test]
fn numbers_of_another_kind_need_a_cast() -> Result<()> {
    let (float, integer, truth) = (Tensor::new([2.5])?, Tensor::new([300])?, Tensor::new([true])?);
    assert_eq!((float.item::<f32>()?, float.item::<f64>()?), (2.5, 2.5));
    assert_eq!((integer.item::<i16>()?, integer.item::<usize>()?), (300, 300));
    assert!(truth.item::<bool>()?);
    assert_eq!([&float, &integer].map(|x| x.item::<Scalar>().unwrap().to_f64()), [2.5, 300.0]);
    assert_eq!(integer.to_vec::<i16>()?, [300]);
    for (error, repair) in [
        (float.item::<i64>().unwrap_err(), "x.to(DType::I64)?.item::<i64>()?"),
        (float.item::<usize>().unwrap_err(), "x.to(DType::I64)?.item::<i64>()?"),
        (integer.item::<f32>().unwrap_err(), "x.to(DType::F32)?.item::<f32>()?"),
        (truth.item::<u8>().unwrap_err(), "x.to(DType::U8)?.item::<u8>()?"),
        (float.to_vec::<i32>().unwrap_err(), "x.to(DType::I32)?.to_vec::<i32>()?"),
        (integer.to_vec::<f64>().unwrap_err(), "x.to(DType::F64)?.to_vec::<f64>()?"),
        (truth.to_vec::<f32>().unwrap_err(), "x.to(DType::F32)?.to_vec::<f32>()?"),
        (float.value().to_vec::<bool>().unwrap_err(), "x.to(DType::Bool)?.to_vec::<bool>()?"),
    ] {
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::DType, file!()), "{error}");
        assert_eq!(error.repair(), Some(repair));
    }
    for (error, repair) in [
        (integer.item::<u8>().unwrap_err(), "x.item::<i64>()?"),
        (integer.to_vec::<i8>().unwrap_err(), "x.to_vec::<i64>()?"),
        (integer.neg()?.item::<usize>().unwrap_err(), "x.item::<i64>()?"),
    ] {
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()), "{error}");
        assert_eq!(error.repair(), Some(repair));
    }
    Ok(())
}

#[test]
fn one_element_and_sizes_by_name() -> Result<()> {
    let x = TensorOptions::new().arange(0.0, 24.0, 1.0)?.reshape([("N", 2), ("C", 3), ("time", 4)])?;
    let [n, time] = x.sizes_of(["N", "time"])?;
    assert_eq!((n, time, x.sizes_of([-1, 0])?, x.sizes_of::<0>([""; 0])?), (2, 4, [4, 2], []));
    let error = x.sizes_of(["N", "tim"]).unwrap_err();
    assert_eq!(
        (error.kind(), error.op(), error.location().file()),
        (ErrorKind::NameNotFound, "sizes_of", file!())
    );
    assert_eq!(x.item_at::<f32>([1, 0, -1])?, 15.0);
    let (row, column): (usize, usize) = (1, 2);
    assert_eq!(x.item_at::<f64>([row, column, 3])?, 23.0);
    for error in [
        x.item_at::<f32>([1, 0]).unwrap_err(),
        x.item_at::<f32>([2, 0, 0]).unwrap_err(),
        x.item_at::<f32>([0, -4, 0]).unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.op()), (ErrorKind::Index, "item_at"), "{error}");
        assert!(error.location().file() == file!() && error.operands()[0] == x.shape(), "{error}");
    }
    Ok(())
}

#[test]
fn indices_of_any_integer_type() -> Result<()> {
    let x = TensorOptions::new().arange(0.0, 6.0, 1.0)?;
    let (a, b) = (1_usize, 3_usize);
    let cases: [(Index, &[f32]); 9] = [
        ((a..b).into(), &[1.0, 2.0]),
        ((a..=b).into(), &[1.0, 2.0, 3.0]),
        ((b..).into(), &[3.0, 4.0, 5.0]),
        ((..a).into(), &[0.0]),
        ((1..3).into(), &[1.0, 2.0]),
        ((-2..).into(), &[4.0, 5.0]),
        ((-3..=-1).into(), &[3.0, 4.0, 5.0]),
        ((1_i64..3).into(), &[1.0, 2.0]),
        ((2..usize::MAX).into(), &[2.0, 3.0, 4.0, 5.0]),
    ];
    for (index, want) in cases {
        assert_eq!(numbers(&x.index(std::slice::from_ref(&index))?), want, "{index:?}");
    }
    assert_eq!(x.index(&[b.into()])?.item::<f32>()?, 3.0);
    assert_eq!(x.index(&[(-1).into()])?.item::<f32>()?, 5.0);
    assert_eq!(x.index(&[usize::MAX.into()]).unwrap_err().kind(), ErrorKind::Index);
    Ok(())
}

#[test]
fn requires_grad_changes_its_tensor() -> Result<()> {
    let mut x = Tensor::new([1.0])?;
    assert!(x.requires_grad_(true)?.requires_grad());
    assert!(x.requires_grad() && !x.requires_grad_(false)?.requires_grad() && !x.requires_grad());
    assert!(x.requiring_grad()?.requires_grad());
    Ok(())
}

/// The prelude's `Result` also accepts another error type.
#[test]
fn the_prelude_keeps_results_of_other_errors() {
    use std::error::Error;
    fn parse(text: &str) -> Result<f64, Box<dyn Error>> {
        let x = Tensor::new([text.parse::<f64>()?])?;
        Ok(x.item()?)
    }
    fn plain(text: &str) -> Result<f64, std::num::ParseFloatError> {
        text.parse()
    }
    assert_eq!((parse("2.5").unwrap(), plain("0.5").unwrap()), (2.5, 0.5));
    assert!(parse("x").is_err() && plain("x").is_err());
}

#[test]
fn numbers_of_f64_were_rounded_to_the_default_dtype_first() -> Result<()> {
    let x = TensorOptions::new().dtype(DType::F64).tensor([0.1, 1.0 + 1e-12])?;
    assert_eq!(x.to_vec::<f64>()?, [0.1, 1.0 + 1e-12]);
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

#[test]
fn numbers_wrapped_where_a_range_ends() -> Result<()> {
    for dtype in [DType::I8, DType::U8] {
        let mut x = TensorOptions::new().dtype(dtype).zeros([1000])?;
        x.geometric_(0.001)?;
        assert!(x.amin(..)?.item::<Scalar>()?.to_f64() >= 1.0, "{dtype}");
        assert!(x.gt(100)?.any(..)?.item::<bool>()?, "{dtype}");
    }
    let x = Tensor::new([100, -5])?.to(DType::I8)?;
    for same in [x.clamp(-1000, 1000)?, x.clamp_max(1000)?, x.clamp_min(-129)?] {
        assert_eq!(same.to_vec::<i8>()?, [100, -5]);
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
    assert_eq!(integers.arange(0.0, 3.0, 1.5)?.to_vec::<i64>()?, [0, 1]);
    assert_eq!(integers.arange(2.1, -2.9, -1.0)?.to_vec::<i64>()?, [2, 1, 0, -1, -2]);
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
    assert_eq!(Tensor::zeros([1usize << 50, 0])?.unbind(0).unwrap_err().kind(), ErrorKind::OutOfMemory);
    assert_eq!(F::pdist(&Tensor::zeros([1usize << 32, 0])?, 1).unwrap_err().kind(), ErrorKind::OutOfMemory);
    let none = Tensor::zeros([0, 1, 3])?;
    assert_eq!(F::adaptive_max_pool1d(&none, 1usize << 50)?.sizes(), [0, 1, 1 << 50]);
    assert_eq!(F::adaptive_avg_pool1d(&none, 1usize << 50)?.sizes(), [0, 1, 1 << 50]);
    assert_eq!(F::interpolate(&none, 1isize << 50)?.sizes(), [0, 1, 1 << 50]);
    let long = Tensor::ones([1, 1, 2, 1])?.expand([1, 1, 2, 1usize << 44])?;
    assert_eq!(F::unfold(&long, 2, 1, 0, 1).unwrap_err().kind(), ErrorKind::OutOfMemory);
    let channels = Tensor::ones([0, 1])?.expand([0usize, 1 << 44])?;
    assert_eq!(channels.standardize(1, 0, 1).unwrap_err().kind(), ErrorKind::OutOfMemory);
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
fn forms_of_calls_that_pytorch_takes_were_refused() -> Result<()> {
    let x = f64s([1.0, 2.0])?;
    // An exponent is an `f64`, which for this number is even.
    for y in [x.neg()?.float_power(i64::MAX)?, x.neg()?.float_power(&Tensor::new([i64::MAX])?)?] {
        assert_eq!(y.to_vec::<f64>()?, [1.0, f64::INFINITY]);
    }
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
fn scalars_of_products_of_halves_were_rounded_to_halves() -> Result<()> {
    let x = Tensor::full([3, 3], 131.0)?.to(DType::BF16)?;
    let zero = Tensor::zeros([3, 3])?.to(DType::BF16)?;
    // -4.775 would be rounded to -4.78125, and the product to -628.
    let found = x.addmm_with(&zero, &zero, AddmmOptions::new().beta(-4.775))?;
    assert_eq!(found.to_vec::<f64>()?, [-624.0; 9]);
    Ok(())
}

#[test]
fn numbers_between_tensors() -> Result<()> {
    let ends = [Tensor::new(1.0)?.requiring_grad()?, Tensor::new(3.0)?.requiring_grad()?];
    let options = TensorOptions::new().names(["time"]).requires_grad(true);
    let y = options.linspace(&ends[0], &ends[1], 5)?;
    assert_eq!(
        (y.shape().to_string(), y.to_vec::<f32>()?),
        ("[time=5]".into(), vec![1.0, 1.5, 2.0, 2.5, 3.0])
    );
    y.sum(..)?.backward()?;
    assert_eq!(ends.map(|end| end.grad().unwrap().item::<f32>().unwrap()), [2.5, 2.5]);
    let bound = Tensor::new([[2]])?;
    assert_eq!(Tensor::linspace(&bound, 4, 3)?.to_vec::<f32>()?, [2.0, 3.0, 4.0]);
    assert_eq!(Tensor::logspace(0.0, &bound, 3)?.to_vec::<f32>()?, [1.0, 10.0, 100.0]);
    let several = Tensor::linspace(0.0, Tensor::zeros([2])?, 3).unwrap_err();
    assert_eq!((several.kind(), several.op()), (ErrorKind::Shape, "linspace"));
    Ok(())
}
