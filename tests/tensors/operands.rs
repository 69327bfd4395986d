//! Operands, operators on owned tensors, and reading numbers and sizes from tensors.

use namegrad::autograd::Index;
use namegrad::core::Scalar;
use namegrad::prelude::*;

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
