//! Tensors: creating, inspecting, combining and viewing them, and what errors say.
//!
//! `cargo run --example 01_tensors`

use namegrad::prelude::*;

fn main() -> Result<()> {
    factories()?;
    dtypes()?;
    arithmetic()?;
    views()?;
    values()?;
    errors()
}

/// A plain size makes an unnamed dim; a pair of name and size makes a named one.
fn factories() -> Result<()> {
    let plain = Tensor::zeros([2, 3])?;
    let named = Tensor::ones([("N", 2), ("C", 3)])?;
    let mixed = Tensor::full((("N", 2), 3), 7)?; // a tuple can mix named and unnamed dims
    println!("{plain}\n{named}\n{mixed}");
    assert_eq!(mixed.shape().to_string(), "[N=2, ?=3]"); // how errors and `{:?}` show a tensor

    // Numbers are given as nested arrays or `Vec`s, or as a flat slice with a shape.
    let rows = Tensor::new([[1.0, 2.0], [3.0, 4.0]])?;
    let flat = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
    assert_eq!(rows.to_vec::<f32>()?, flat.to_vec::<f32>()?);

    // The seed decides every random number, on any machine and with any number of threads.
    manual_seed(0);
    let first = Tensor::randn([3])?;
    manual_seed(0);
    assert_eq!(first.to_vec::<f32>()?, Tensor::randn([3])?.to_vec::<f32>()?);
    Ok(())
}

/// The dtype is chosen at run time. Mixed dtypes are promoted as in PyTorch.
fn dtypes() -> Result<()> {
    let floats = Tensor::new([0.5, 1.5])?;
    let integers = Tensor::arange(0, 2, 1)?;
    assert_eq!((floats.dtype(), integers.dtype()), (DType::F32, DType::I64));
    assert_eq!(floats.add(&integers)?.dtype(), DType::F32);
    assert_eq!(integers.div(2)?.dtype(), DType::F32); // dividing integers gives floats

    let doubles = TensorOptions::new().dtype(DType::F64).linspace(0.0, 1.0, 3)?;
    println!("{doubles}\n{}", floats.gt(1.0)?);
    assert_eq!(floats.to(DType::BF16)?.dtype(), DType::BF16);
    Ok(())
}

/// Methods return a `Result`. Operators do the same, but panic instead of returning an error.
fn arithmetic() -> Result<()> {
    let column = Tensor::new([[0.0], [10.0]])?;
    let row = Tensor::new([1.0, 2.0, 3.0])?;
    let table = column.add(&row)?; // sizes broadcast from the right: [2, 1] and [3] give [2, 3]
    assert_eq!(table.to_vec::<f32>()?, (&column + &row).to_vec::<f32>()?);
    println!("{}", 2.0 * &table - 1.0);

    let product = table.matmul(&table.t()?)?;
    assert_eq!(product.sizes(), [2, 2]);
    assert_eq!(table.sum(..)?.item::<f64>()?, 42.0); // `..` is all dims
    assert_eq!(table.amax(1)?.to_vec::<f32>()?, [3.0, 13.0]); // by position
    assert_eq!(table.refine_names(["row", "col"])?.argmax("col")?.to_vec::<i64>()?, [2, 2]); // by name
    Ok(())
}

/// A view shares the memory of its tensor: nothing is copied.
fn views() -> Result<()> {
    let x = Tensor::arange(0, 24, 1)?.reshape([2, 3, 4])?.refine_names(["N", "C", "W"])?;
    let across = x.transpose("N", "W")?;
    assert_eq!(across.value().data_ptr(), x.value().data_ptr());
    println!("{:?} -> {:?}", x, across);

    let last = x.select("W", -1)?; // the last position of a dim, which is removed
    let some = x.narrow("C", 1, 2)?; // two positions, starting at the second
    let back = x.flip("W")?;
    assert_eq!(last.shape().to_string(), "[N=2, C=3]");
    assert_eq!(some.shape().to_string(), "[N=2, C=2, W=4]");
    assert_eq!(back.select("N", 0)?.select("C", 0)?.to_vec::<i64>()?, [3, 2, 1, 0]);
    Ok(())
}

/// A tensor is a value: changing one handle in place does not change any other handle.
fn values() -> Result<()> {
    let x = Tensor::zeros([("N", 2), ("C", 2)])?;
    let mut row = x.select("N", 0)?;
    row.fill_(1.0)?.mul_(5.0)?; // in PyTorch this would write into `x` as well
    assert_eq!(row.to_vec::<f32>()?, [5.0, 5.0]);
    assert_eq!(x.sum(..)?.item::<f64>()?, 0.0);

    // Where PyTorch writes through a view, use an op that returns the new tensor.
    let first = Tensor::new([0])?;
    let written = x.index_add(&first, &row.unsqueeze(0)?, "N")?;
    println!("{written}");
    assert_eq!(written.to_vec::<f32>()?, [5.0, 5.0, 0.0, 0.0]);
    Ok(())
}

/// An error names the op, what was requested, the inputs and the caller's line, and suggests a repair if one
/// is known.
fn errors() -> Result<()> {
    let x = Tensor::zeros([("batch", 2), ("width", 3)])?;
    let error = x.sum("widht").unwrap_err();
    println!("{error}");
    assert_eq!(error.kind(), ErrorKind::NameNotFound);
    assert_eq!(error.repair(), Some("\"width\""));
    assert!(error.location().file().ends_with("01_tensors.rs"));

    let error = x.add(&Tensor::zeros([4])?).unwrap_err();
    println!("{error}");
    assert_eq!(error.kind(), ErrorKind::Shape);
    Ok(())
}
