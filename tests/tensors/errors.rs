//! Invalid calls: each gives an error of the right kind with the op, the sizes and names of the operands, the
//! caller's line, and a repair if there is one. No tensor changes.

use namegrad::autograd::{
    BackwardOptions, GradCheckOptions, Op, Operand, checkpoint, grad_with, gradcheck_with, gradgradcheck_with,
};
use namegrad::core::NamedTensor;
use namegrad::prelude::*;
use namegrad::{memory, names};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Fails unless the call returns an error of this kind at this line, whose text contains these parts.
/// `assert_error!(x.sum("Z"), NameNotFound, "sum", "Z")` becomes
///
/// ```ignore
/// let line = line!();
/// let Err(error) = x.sum("Z") else { panic!("line {line}: the call should fail") };
/// assert_eq!(error.kind(), ErrorKind::NameNotFound);
/// assert_eq!(error.op(), "sum");
/// assert!((line..line + 4).contains(&error.location().line()));
/// assert!(error.to_string().contains("Z"));
/// ```
macro_rules! assert_error {
    ($call:expr, $kind:ident, $op:literal $(, $part:expr)* $(,)?) => {{
        let line = line!();
        let error: Error = match $call {
            Ok(_) => panic!("line {line}: the call should fail"),
            Err(error) => error,
        };
        let text = error.to_string();
        assert_eq!(error.kind(), ErrorKind::$kind, "{text}");
        assert_eq!(error.op(), $op, "{text}");
        assert_eq!(error.location().file(), file!(), "{text}");
        // A call too long for one line starts on the next.
        assert!((line..line + 4).contains(&error.location().line()), "line {line}: {text}");
        assert!(text.contains(&format!("{}:{}", file!(), error.location().line())), "{text}");
        $(assert!(text.contains($part), "no {:?} in:\n{text}", $part);)*
    }};
}

fn images() -> Tensor {
    Tensor::ones((("N", 32), ("C", 3), 7)).unwrap()
}

// Names

#[test]
fn different_names_at_one_position() -> Result<()> {
    let (x, y) = (images(), Tensor::ones((("N", 32), ("D", 3), 7))?);
    assert_error!(
        x.add(&y),
        NameMismatch,
        "add",
        "dim 'C' and dim 'D' are at the same position from the right but do not match"
    );
    assert_error!(
        x.add(&y),
        NameMismatch,
        "add",
        "[N=32, C=3, ?=7], [N=32, D=3, ?=7]",
        "name every dim with refine_names"
    );
    assert_error!(
        Tensor::cat(&[&x, &y], 0),
        NameMismatch,
        "cat",
        "dim 'C' and dim 'D'",
        "[N=32, D=3, ?=7]",
        "try: "
    );
    assert_error!(x.clone().mul_(&y), NameMismatch, "mul_", "[N=32, C=3, ?=7], [N=32, D=3, ?=7]");
    Ok(())
}

#[test]
fn one_name_at_two_positions() -> Result<()> {
    let (x, y) = (Tensor::ones((("N", 3), 3))?, Tensor::ones([("N", 3)])?);
    assert_error!(
        x.add(&y),
        Misaligned,
        "add",
        "dim 'N' appears in a different position from the right",
        "[N=3, ?=3], [N=3]",
        "name every dim with refine_names"
    );
    assert_error!(y.add(&x), Misaligned, "add", "[N=3], [N=3, ?=3]", "name every dim with refine_names");
    Ok(())
}

#[test]
fn the_repair_of_a_misalignment_works() -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 3)])?;
    let y = Tensor::ones([("N", 2)])?;
    assert_error!(x.mul(&y), NameMismatch, "mul", "x.mul(&y.align_as(&x)?)?");
    assert_eq!(x.mul(&y.align_as(&x)?)?.shape().to_string(), "[N=2, C=3]");
    Ok(())
}

#[test]
fn names_that_are_not_there() -> Result<()> {
    let x = Tensor::ones([("batch", 2), ("in", 3)])?;
    assert_error!(
        x.sum("width"),
        NameNotFound,
        "sum",
        "Name 'width' not found in Tensor['batch', 'in'] of sizes [2, 3]",
        "[batch=2, in=3]"
    );
    assert_error!(x.mean("bach"), NameNotFound, "mean", "did you mean 'batch'?");
    assert_error!(x.softmax("In"), NameNotFound, "softmax", "did you mean 'in'?");
    assert_error!(x.transpose("batch", "out"), NameNotFound, "transpose", "'out'");
    assert_error!(x.rename([("bach", "N")]), NameNotFound, "rename", "did you mean 'batch'?");
    assert_error!(Tensor::ones([2])?.sum("N"), NameNotFound, "sum", "refine_names");
    assert_error!(x.align_to(["batch"]), NameNotFound, "align_to", "Cannot find dim 'in'", "\"...\"");
    assert_error!(x.sum(["batch", "batc"]), NameNotFound, "sum", "did you mean 'batch'?");
    assert_error!(x.contract(&Tensor::ones([("batch", 2)])?, "in"), NameNotFound, "contract", "'in'");
    Ok(())
}

#[test]
fn duplicate_names() -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 2)])?;
    assert_error!(
        Tensor::ones([("N", 2), ("N", 2)]),
        DuplicateName,
        "ones",
        "duplicate names. Got names: ['N', 'N']"
    );
    assert_error!(x.rename(["N", "N"]), DuplicateName, "rename", "duplicate names", "[N=2, C=2]");
    assert_error!(x.rename([("C", "N")]), DuplicateName, "rename", "duplicate names", "[N=2, C=2]");
    assert_error!(
        Tensor::ones((("N", 2), 2))?.refine_names(["N", "N"]),
        DuplicateName,
        "refine_names",
        "[N=2, ?=2]"
    );
    assert_error!(x.align_to(["N", "C", "N"]), DuplicateName, "align_to", "duplicate names", "[N=2, C=2]");
    assert_error!(
        x.matmul(&x.t()?),
        DuplicateName,
        "matmul",
        "[N=2, C=2], [C=2, N=2]",
        "x.matmul(&y.rename("
    );
    assert_error!(x.unflatten("N", [("C", 2), ("D", 1)]), DuplicateName, "unflatten", "[N=2, C=2]");
    assert_error!(
        Tensor::ones((("A", 2), 2, ("B", 2)))?.flatten([0, 1], "B"),
        DuplicateName,
        "flatten",
        "[A=2, ?=2, B=2]"
    );
    assert_error!(
        Tensor::stack_with([&x, &x], 0, StackOptions::new().name("N")),
        DuplicateName,
        "stack",
        "duplicate names"
    );
    Ok(())
}

#[test]
fn invalid_names() -> Result<()> {
    let x = Tensor::ones([2])?;
    for bad in ["", "1st", "a b", "a-b", "é", "N.C"] {
        assert_error!(
            Tensor::ones([(bad, 2)]),
            InvalidName,
            "ones",
            "a valid identifier contains only",
            format!("'{bad}'").as_str()
        );
        assert_error!(x.rename([bad]), InvalidName, "rename", "starts with a non-digit");
        assert_error!(x.unflatten(0, [(bad, 2)]), InvalidName, "unflatten");
        assert_error!(x.flatten(0, bad), InvalidName, "flatten");
    }
    Ok(())
}

#[test]
fn too_many_or_too_few_names() -> Result<()> {
    let x = Tensor::ones([2, 3])?;
    assert_error!(
        x.rename(["N"]),
        NameCount,
        "rename",
        "Number of names (1) and number of dimensions in tensor (2) do not match",
        "[2, 3]"
    );
    assert_error!(x.rename(["N", "C", "H"]), NameCount, "rename", "(3)", "(2)", "try: ");
    assert_error!(
        x.refine_names(["N"]),
        RefineConflict,
        "refine_names",
        "different numbers of dims",
        "[2, 3]"
    );
    assert_error!(x.rename(["...", "..."]), Ellipsis, "rename", "More than one Ellipsis", "try: ");
    Ok(())
}

#[test]
fn names_are_refined_and_not_changed() -> Result<()> {
    let x = images();
    assert_error!(
        x.refine_names(["N", "D", "W"]),
        RefineConflict,
        "refine_names",
        "'C' is different from 'D' at index 1",
        "[N=32, C=3, ?=7]",
        "refine_names only names dims that have none"
    );
    assert_error!(
        x.refine_names([Some("N"), None, None]),
        RefineConflict,
        "refine_names",
        "'C' is more specific than None at index 1"
    );
    assert_error!(
        x.align_to(["N", "C"]),
        UnnamedNotAllowed,
        "align_to",
        "Found unnamed dim at index 2",
        "[N=32, C=3, ?=7]",
        "refine_names"
    );
    assert_error!(x.contract(&x, "C"), UnnamedNotAllowed, "contract", "[N=32, C=3, ?=7], [N=32, C=3, ?=7]");
    Ok(())
}

#[test]
fn strict_names() -> Result<()> {
    let (x, y) = (Tensor::ones([("N", 2), ("C", 3)])?, Tensor::ones([3])?);
    x.add(&y)?;
    names::strict(|| {
        assert_error!(x.add(&y), NameMismatch, "add", "strict names", "[N=2, C=3], [3]");
        let z = Tensor::ones([("K", 3), ("M", 2)]).unwrap();
        assert_error!(x.matmul(&z), NameMismatch, "matmul", "[N=2, C=3], [K=3, M=2]");
    });
    x.add(&y)?;
    Ok(())
}

// Dims

#[test]
fn dims_out_of_range_or_given_twice() -> Result<()> {
    let x = images();
    let range = "Dimension out of range (expected to be in range of [-3, 2], but got 3)";
    assert_error!(x.sum(3), DimRange, "sum", range, "[N=32, C=3, ?=7]");
    assert_error!(x.sum([0, -4]), DimRange, "sum", "but got -4", "[N=32, C=3, ?=7]");
    assert_error!(x.softmax(isize::MIN), DimRange, "softmax", "[N=32, C=3, ?=7]");
    assert_error!(x.argmax(usize::MAX), DimRange, "argmax", "[N=32, C=3, ?=7]");
    assert_error!(
        x.argmax(["N", "C"]),
        DimRange,
        "argmax",
        "expected one dim",
        r#"["N", "C"]"#,
        "x.flatten("
    );
    assert_error!(x.quantile(0.5, [0, 1]), DimRange, "quantile", "expected one dim", "x.flatten(");
    assert_error!(x.cummax(3), DimRange, "cummax", "but got 3", "[N=32, C=3, ?=7]");
    assert_error!(x.transpose(0, 5), DimRange, "transpose", "but got 5");
    assert_error!(x.unsqueeze(4), DimRange, "unsqueeze", "range of [-4, 3], but got 4");
    assert_error!(x.sum([0, 1, 0]), DimRange, "sum", "dim 'N' appears multiple times", "[N=32, C=3, ?=7]");
    assert_error!(x.mean(keep(["N", "N"])), DimRange, "mean", "dim 'N' appears multiple times");
    assert_error!(x.amax([-1, 2]), DimRange, "amax", "dim 2 appears multiple times");
    assert_error!(x.flip([1, 1]), DimRange, "flip", "dim 'C' appears multiple times");
    assert_error!(x.permute([0, 1, 1]), DimRange, "permute", "dim 'C' appears multiple times");
    assert_error!(x.permute([0, 1]), DimRange, "permute", "2 dims are given for a tensor of 3");
    assert_error!(x.diagonal(1, 1), DimRange, "diagonal", "cannot be identical");
    assert_error!(x.flatten(["N", "?"], "F"), NameNotFound, "flatten");
    assert_error!(x.flatten([0, 2], "F"), DimRange, "flatten", "must be consecutive", "[N=32, C=3, ?=7]");
    assert_error!(x.size(3), DimRange, "size", "but got 3");
    assert_error!(Tensor::new(1.0)?.sum(1), DimRange, "sum", "range of [-1, 0], but got 1");
    Ok(())
}

// Sizes

#[test]
fn sizes_that_do_not_broadcast() -> Result<()> {
    let (x, y) = (Tensor::ones([("N", 2), ("C", 3)])?, Tensor::ones([4])?);
    let sentence =
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1";
    assert_error!(x.add(&y), Shape, "add", sentence, "[N=2, C=3], [4]");
    assert_error!(x.lt(&y), Shape, "lt", sentence, "[N=2, C=3], [4]");
    assert_error!(x.clamp(0.0, &y), Shape, "clamp", "[N=2, C=3], [4]");
    assert_error!(y.gt(0)?.choose(&x, 0.0), Shape, "choose", "[N=2, C=3]", "[4]");
    assert_error!(y.clone().add_(&x.rename(None)?), Shape, "add_", "[4], [2, 3]");
    let small = Tensor::ones([("C", 3)])?;
    assert_error!(
        small.clone().add_(&x),
        Shape,
        "add_",
        "doesn't match the broadcast shape [2, 3]",
        "[C=3], [N=2, C=3]"
    );
    Ok(())
}

#[test]
fn sizes_that_do_not_multiply() -> Result<()> {
    let (x, y) = (Tensor::ones([("N", 2), ("K", 3)])?, Tensor::ones([("J", 4), ("M", 5)])?);
    assert_error!(
        x.mm(&y),
        Shape,
        "mm",
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
        "[N=2, K=3], [J=4, M=5]"
    );
    assert_error!(x.matmul(&y), Shape, "matmul", "(2x3 and 4x5)", "[N=2, K=3], [J=4, M=5]");
    assert_error!(x.mv(&Tensor::ones([4])?), Shape, "mv", "size mismatch", "[N=2, K=3], [4]");
    assert_error!(x.dot(&x), Shape, "dot", "1D tensors expected, but got 2D and 2D", "[N=2, K=3]");
    assert_error!(x.bmm(&y), Shape, "bmm", "must be a 3D tensor", "[N=2, K=3], [J=4, M=5]");
    assert_error!(x.outer(&y), Shape, "outer", "Expected 1-D arguments", "[N=2, K=3], [J=4, M=5]");
    assert_error!(Tensor::new(1.0)?.matmul(&x), Shape, "matmul", "at least 1D", "[] (0-d), [N=2, K=3]");
    let other = Tensor::ones([("K", 4)])?;
    assert_error!(
        x.contract(&other, "K"),
        Shape,
        "contract",
        "dim 'K' has 3 elements in the first tensor and 4 in the second",
        "[N=2, K=3], [K=4]"
    );
    let (a, b) = (Tensor::ones([2, 1, 3])?, Tensor::ones([5, 3, 1])?);
    assert_error!(a.matmul(&b), Shape, "matmul", "[2, 1, 3], [5, 3, 1]");
    Ok(())
}

#[test]
fn sizes_that_do_not_reshape() -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 3)])?;
    assert_error!(
        x.reshape([4, 2]),
        Shape,
        "reshape",
        "shape '[4, 2]' is invalid for input of size 6",
        "[N=2, C=3]"
    );
    assert_error!(x.reshape([-1, -1]), Shape, "reshape", "only one dimension can be inferred");
    assert_error!(x.reshape([-1, 4]), Shape, "reshape", "'[-1, 4]' is invalid");
    assert_error!(x.reshape([-2, 3]), Value, "reshape", "a size must not be negative, got -2");
    assert_error!(x.reshape([-1, 0]), Shape, "reshape", "[N=2, C=3]");
    assert_error!(
        x.transpose(0, 1)?.view([6]),
        Shape,
        "view",
        "at least one dimension spans across two contiguous subspaces",
        "x.reshape([6])?"
    );
    assert_error!(x.expand([2, 4]), Shape, "expand", "(4) must match the existing size (3)", "[N=2, C=3]");
    assert_error!(x.expand([3]), Shape, "expand", "must be greater or equal to the number of dimensions");
    assert_error!(
        x.unflatten("C", [2, 2]),
        Shape,
        "unflatten",
        "don't multiply up to the size of dim 'C' (3)",
        "[N=2, C=3]"
    );
    assert_error!(x.repeat([2]), Shape, "repeat", "[N=2, C=3]");
    assert_error!(x.repeat([2, -1]), Shape, "repeat", "[N=2, C=3]");
    assert_error!(
        Tensor::cat(&[&x, &Tensor::ones([2, 4])?], 0),
        Shape,
        "cat",
        "Sizes of tensors must match except in dim 'N'",
        "[N=2, C=3], [2, 4]"
    );
    assert_error!(Tensor::cat(&[] as &[Tensor], 0), Value, "cat", "non-empty list");
    assert_error!(Tensor::stack([&x, &Tensor::ones([2])?], 0), Shape, "stack", "[2, 3] and [2]");
    assert_error!(Tensor::new([vec![1.0, 2.0], vec![3.0]]), Shape, "Tensor::new", "rows of equal length");
    assert_error!(
        Tensor::from_slice(&[1.0f32, 2.0], [3]),
        Shape,
        "from_slice",
        "2 elements do not fill sizes [3]"
    );
    assert_error!(
        x.item::<f32>(),
        Shape,
        "item",
        "a Tensor with 6 elements cannot be converted to Scalar",
        "[N=2, C=3]"
    );
    let nothing = Tensor::zeros([("N", 0), ("C", 2)])?;
    assert_error!(nothing.amax("N"), Shape, "amax", "non-zero size", "[N=0, C=2]");
    assert_error!(nothing.amax(..), Value, "amax", "a tensor without elements", "[N=0, C=2]");
    assert_error!(nothing.argmin("N"), Shape, "argmin", "[N=0, C=2]");
    assert_error!(nothing.select("C", 0)?.argmin("N"), Shape, "argmin", "[N=0]");
    assert_error!(
        x.unflatten("C", [2, -1]),
        Shape,
        "unflatten",
        "[2, -1] don't multiply up to the size of dim 'C' (3)"
    );
    assert_error!(x.unflatten("C", [-1, -1]), Shape, "unflatten", "[-1, -1]");
    assert_error!(x.unflatten("C", [-2, 3]), Value, "unflatten", "must not be negative, got -2");
    assert_error!(Tensor::cat(&[&x, &Tensor::zeros([0])?], 0), Shape, "cat", "number of dimensions");
    assert_error!(Tensor::zeros([("N", 0)])?.median("N"), Shape, "median", "non-zero size", "[N=0]");
    assert_error!(Tensor::zeros([("N", 0)])?.max(..), Value, "max", "[N=0]");
    let x = Tensor::new([1.0, 2.0])?.refine_names(["N"])?;
    assert_error!(x.kthvalue(3, "N"), Value, "kthvalue", "from 1 to 2", "[N=2]");
    assert_error!(x.topk(3, "N"), Value, "topk", "3 of the 2 elements of dim 'N'", "[N=2]");
    assert_error!(x.quantile(1.5, "N"), Value, "quantile", "between 0 and 1, got 1.5", "[N=2]");
    assert_error!(x.sum(..)?.diff(0), Shape, "diff", "at least one dim");
    assert_error!(
        x.histc_with(HistcOptions::new().bins(0).max(1.0)),
        Value,
        "histc",
        "bins must be at least 1, got 0",
        "[N=2]"
    );
    assert_error!(x.bucketize(&Tensor::zeros([1, 1])?), Shape, "bucketize", "a vector, got 2 dims", "[N=2]");
    assert_error!(x.bincount(), DType, "bincount", "a vector of integers, got 1 dims of float32", "[N=2]");
    assert_error!(x.nanmean(keep("C")), NameNotFound, "nanmean", "[N=2]");
    assert_error!(
        x.to(DType::I64)?.vector_norm_with("N", VectorNormOptions::new().ord(1.0)),
        DType,
        "vector_norm",
        "x.to(DType::F32)?"
    );
    assert_error!(x.requiring_grad()?.unique(), Autograd, "unique", "x.detach()");
    Ok(())
}

#[test]
fn sizes_that_cannot_be_had() -> Result<()> {
    let live = memory::stats().live_bytes;
    assert_error!(Tensor::zeros([1usize << 60]), OutOfMemory, "zeros", "out of memory: ");
    assert_error!(Tensor::ones([1usize << 60]), OutOfMemory, "ones");
    assert_error!(Tensor::zeros([1usize << 45]), OutOfMemory, "zeros");
    assert_error!(Tensor::zeros([usize::MAX, usize::MAX]), OutOfMemory, "zeros", "do not fit in memory");
    assert_error!(Tensor::zeros([usize::MAX, 2, 0]), OutOfMemory, "zeros", "do not fit in memory");
    assert_error!(Tensor::full([1usize << 62, 4], 1), OutOfMemory, "full");
    assert_error!(Tensor::arange(0, i64::MAX, 1), OutOfMemory, "arange");
    assert_error!(Tensor::eye(1 << 31, 1 << 31), OutOfMemory, "eye");
    assert_error!(Tensor::zeros([-1]), Value, "zeros", "must not be negative, got -1");
    assert_error!(Tensor::zeros([("N", -1)]), Value, "zeros", "must not be negative, got -1");
    let one = Tensor::ones([("N", 1)])?;
    assert_error!(one.expand([1usize << 62]), OutOfMemory, "expand");
    assert_error!(one.repeat([1usize << 60]), OutOfMemory, "repeat");
    let wide = one.expand([1usize << 60])?; // a view that holds one number
    assert_error!(wide.exp(), OutOfMemory, "exp");
    assert_error!(wide.contiguous(), OutOfMemory, "contiguous");
    assert_error!(wide.outer(&wide.rename(None)?), OutOfMemory, "outer");
    assert_error!(wide.reshape([1usize << 30, 1 << 30])?.add(1.0), OutOfMemory, "add");
    assert_error!(wide.rename(None)?.unsqueeze(1)?.add(&wide.rename(None)?), OutOfMemory, "add");
    assert!(memory::stats().live_bytes < live + (1 << 30), "what failed holds nothing");
    Ok(())
}

// Everything else

#[test]
fn wrong_dtypes() -> Result<()> {
    let (floats, ints) = (Tensor::ones([("N", 2)])?, Tensor::new([1, 2])?);
    let truth = floats.gt(0)?;
    assert_error!(
        floats.bitwise_and(&floats),
        DType,
        "bitwise_and",
        "not implemented for float32; it takes bool, uint8"
    );
    assert_error!(truth.sub(&truth), DType, "sub", "not implemented for bool");
    assert_error!(
        floats.sub(&truth),
        DType,
        "sub",
        "not implemented for bool",
        "[N=2] float32, [N=2] bool",
        "logical_not"
    );
    assert_error!(ints.hypot(&ints), DType, "hypot", "not implemented for int64; it takes float16, bfloat16");
    assert_error!(ints.frac(), DType, "frac", "not implemented for int64; it takes float16, bfloat16");
    assert_error!(ints.lerp(2, 0.5), DType, "lerp", "one floating-point dtype, got int64, int64, float32");
    assert_error!(
        floats.lerp(&floats.to(DType::F64)?, 0.5),
        DType,
        "lerp",
        "got float32, float64, float32",
        "[N=2] float32, [N=2] float64"
    );
    assert_error!(
        truth.argmax(0),
        DType,
        "argmax",
        "not implemented for bool",
        "x.to(DType::U8)?.argmax(0)?"
    );
    assert_error!(ints.pow(-1), DType, "pow", "negative integer powers", "x.to(DType::F32)?");
    assert_error!(truth.pow(&truth), DType, "pow", "not implemented for bool");
    assert_error!(truth.neg(), DType, "neg", "not implemented for bool");
    assert_error!(ints.elu(), DType, "elu", "not implemented for int64", "try: x.to(DType::F32)?");
    assert_error!(floats.bitwise_not(), DType, "bitwise_not", "for float32", "try: x.to(DType::I64)?");
    assert_error!(
        ints.mean(..),
        DType,
        "mean",
        "not implemented for int64; it takes floating point dtypes",
        "x.to(DType::F32)?"
    );
    assert_error!(ints.softmax(0), DType, "softmax", "not implemented for int64", "x.to(DType::F32)?");
    assert_error!(
        ints.clone().div_(2),
        DType,
        "div_",
        "result type float32 can't be cast to the desired output type int64"
    );
    assert_error!(ints.clone().add_(0.5), DType, "add_", "can't be cast");
    assert_error!(
        truth.clone().add_(1),
        DType,
        "add_",
        "result type int64 can't be cast to the desired output type bool"
    );
    assert_error!(ints.clone().exp_(), DType, "exp_", "can't be cast");
    assert_error!(
        floats.choose(&floats, 0.0),
        DType,
        "choose",
        "expected condition to be a boolean tensor, but got float32"
    );
    assert_error!(floats.masked_fill(&ints, 0.0), DType, "masked_fill", "mask.ne(0)?");
    assert_error!(floats.masked_select(&ints), DType, "masked_select", "boolean tensor");
    assert_error!(floats.mm(&ints), Shape, "mm");
    assert_error!(
        floats.dot(&ints),
        DType,
        "dot",
        "same dtype, but got float32 and int64",
        "[N=2] float32, [2] int64",
        "y.to(DType::F32)?"
    );
    assert_error!(truth.dot(&truth), DType, "dot", "not implemented for bool");
    assert_error!(
        floats.index_select(&floats, 0),
        DType,
        "index_select",
        "int32/int64 for index, got float32"
    );
    assert_error!(floats.index_add(&ints.mul(0)?, &ints, 0), DType, "index_add", "same dtype");
    assert_error!(
        Tensor::new([1, 2])?.requiring_grad(),
        Autograd,
        "requiring_grad",
        "floating point dtype can require gradients, got int64"
    );
    assert_error!(Parameter::new(Tensor::new([1, 2])?), Autograd, "Parameter::new", "DType::F32");
    Ok(())
}

#[test]
fn indices_out_of_bounds() -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 3)])?;
    assert_error!(x.select("N", 2), Index, "select", "index 2 out of range", "[N=2, C=3]");
    assert_error!(x.select("N", -3), Index, "select", "index -3 out of range");
    assert_error!(x.select(0, isize::MIN), Index, "select", "out of range");
    assert_error!(x.select(0, isize::MAX), Index, "select", "out of range");
    assert_error!(
        x.narrow("C", 1, 3),
        Index,
        "narrow",
        "start (1) + length (3) exceeds the size of dim 'C' (3)",
        "[N=2, C=3]"
    );
    assert_error!(x.narrow("C", 4, 0), Index, "narrow", "out of range");
    assert_error!(x.narrow("C", 0, -1), Value, "narrow", "must not be negative, got -1");
    assert_error!(x.narrow("C", isize::MIN, 1), Index, "narrow", "out of range");
    assert_error!(x.narrow("C", 1, usize::MAX), Index, "narrow", "exceeds the size of dim 'C'");
    assert_error!(x.slice("C", 0, 3, 0), Value, "slice", "step must be positive");
    assert_error!(Tensor::new(1.0)?.select(0, 0), DimRange, "select", "0-dim tensor");
    assert_error!(
        x.index_select(&Tensor::new([0, 2])?, "N"),
        Index,
        "index_select",
        "index 2 is out of bounds for dim 'N' of size 2"
    );
    assert_error!(
        x.index_select(&Tensor::new([-1])?, "N"),
        Index,
        "index_select",
        "index -1 is out of bounds"
    );
    assert_error!(
        x.gather(&Tensor::new([[3]])?, 1),
        Index,
        "gather",
        "index 3 is out of bounds for dim 'C' of size 3"
    );
    assert_error!(
        x.gather(&Tensor::new([0])?, 1),
        Shape,
        "gather",
        "same number of dimensions",
        "[N=2, C=3], [1]"
    );
    assert_error!(
        x.scatter_add(&Tensor::new([[0, 5]])?, &x, 1),
        Index,
        "scatter_add",
        "index 5 is out of bounds"
    );
    assert_error!(
        x.index_add(&Tensor::new([0, 0])?, &Tensor::ones([3, 3])?, 0),
        Shape,
        "index_add",
        "source must have sizes [2, 3]"
    );
    Ok(())
}

#[test]
fn bad_parts_and_places() -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 3)])?;
    assert_error!(x.split(2, "W"), NameNotFound, "split", "Name 'W' not found in Tensor['N', 'C']");
    assert_error!(x.split([1, 1], 1), Shape, "split", "sum exactly to 3");
    assert_error!(x.chunk(0, 0), Value, "chunk", "at least 1, got 0");
    assert_error!(x.tensor_split(0, 0), Value, "tensor_split", "at least 1, got 0");
    assert_error!(x.unbind(2), DimRange, "unbind", "Dimension out of range");
    assert_error!(
        x.unfold("C", 4, 1),
        Value,
        "unfold",
        "a window of 4 elements is larger than dim 'C' of size 3",
        "[N=2, C=3]"
    );
    assert_error!(x.movedim([0, 1], 0), DimRange, "movedim", "cannot move 2 dims to 1 places");
    assert_error!(x.rot90(1, 0), DimRange, "rot90", "the plane of two dims, got 1");
    assert_error!(images().diag(), Shape, "diag", "1D or 2D", "[N=32, C=3, ?=7]");
    assert_error!(images().trace(), Shape, "trace");
    assert_error!(Tensor::new(1.0)?.diag_embed(), Shape, "diag_embed");
    assert_error!(Tensor::block_diag(&[&images()]), Shape, "block_diag", "at most 2 dims");
    assert_error!(
        Tensor::broadcast_tensors(&[&x, &images()]),
        Shape,
        "broadcast_tensors",
        "[N=32, C=3, ?=7]"
    );
    assert_error!(x.repeat_interleave(-1, 0), Value, "repeat_interleave", "must not be negative");
    assert_error!(x.repeat_interleave(1.5, 0), DType, "repeat_interleave", "int32 or int64, got float32");
    assert_error!(x.index_fill(&Tensor::new([3])?, 0, "C"), Index, "index_fill", "index 3 is out of bounds");
    assert_error!(x.index_fill(&Tensor::new([0.5])?, 0, "C"), DType, "index_fill", "int32/int64");
    assert_error!(x.index_copy(&Tensor::new([0])?, &x, 0), Shape, "index_copy", "must have sizes [1, 3]");
    assert_error!(x.scatter(&Tensor::new([[0, 5]])?, &x, 1), Index, "scatter", "index 5 is out of bounds");
    assert_error!(x.scatter(&Tensor::new([[0]])?, &Tensor::new([[1]])?, 1), DType, "scatter", "same dtype");
    assert_error!(x.take(&Tensor::new([1.0])?), DType, "take");
    assert_error!(x.take_along_dim(&Tensor::new([1])?, 0), Shape, "take_along_dim", "[N=2, C=3], [1]");
    assert_error!(x.masked_scatter(&x, &x), DType, "masked_scatter", "boolean tensor");
    assert_error!(
        x.masked_scatter(&x.gt(0)?, &Tensor::ones([5])?),
        Shape,
        "masked_scatter",
        "the source has 5 elements, and the mask is true at 6"
    );
    Ok(())
}

#[test]
fn bad_products_and_queries() -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 3)])?;
    assert_error!(x.cross(&x, "N"), Shape, "cross", "must have length 3", "[N=2, C=3], [N=2, C=3]");
    assert_error!(x.addr(&x, &x), Shape, "addr", "expected two vectors");
    assert_error!(x.addbmm(&x, &x), Shape, "addbmm", "expected batches of matrices");
    assert_error!(x.dist_with(&x, DistOptions::new().p(-1.0)), Value, "dist", "must not be negative, got -1");
    assert_error!(x.addcmul(&x, images()), Misaligned, "addcmul");
    assert_error!(x.gt(0)?.addcmul(&x.gt(0)?, &x.gt(0)?), DType, "addcmul", "not implemented for bool");
    assert_error!(Tensor::einsum("ij->ik", &[&x]), Shape, "einsum", "the subscript 'k' of the result");
    assert_error!(Tensor::einsum("i,j", &[&x]), Value, "einsum", "of 2 operands, and 1 are given");
    assert_error!(
        x.to(DType::I32)?.round_with(RoundOptions::new().decimals(-1)),
        DType,
        "round",
        "-1 decimals"
    );
    assert_error!(x.is_nonzero(), Value, "is_nonzero", "ambiguous", "try: ");
    assert_error!(x.cuda(), Unsupported, "cuda", "no CUDA", "[N=2, C=3]");
    assert_error!(x.clone().resize_([2]), Shape, "resize_", "Cannot resize named tensor", "try: ");
    assert_error!(x.clone().copy_(&Tensor::ones([("C", 3), ("N", 1)])?), NameMismatch, "copy_");
    assert_error!(x.clone().bernoulli_(2.0), Value, "bernoulli_", "between 0 and 1, got 2");
    assert_error!(Tensor::normal(&x, -1.0), Value, "normal", "no element of std may be negative");
    assert_error!(x.clone().requiring_grad()?.resize_([3, 2]), Autograd, "resize_", "require grad");
    Ok(())
}

#[test]
fn bad_values() -> Result<()> {
    let ints = Tensor::new([1, 0])?;
    assert_error!(ints.floor_divide(&ints), Value, "floor_divide", "ZeroDivisionError");
    assert_error!(ints.remainder(0), Value, "remainder", "ZeroDivisionError");
    assert_error!(ints.clone().fmod_(&ints), Value, "fmod_", "ZeroDivisionError");
    assert_error!(Tensor::arange(0, 3, 0), Value, "arange", "step must be nonzero");
    assert_error!(Tensor::arange(0, 3, -1), Value, "arange", "inconsistent with step sign");
    assert_error!(Tensor::arange(0.0, f64::NAN, 1.0), Value, "arange", "unsupported range");
    assert_error!(Tensor::randint(3, 3, [2]), Value, "randint");
    assert_error!(TensorOptions::new().normal([2], 0.0, -1.0), Value, "normal");
    assert_error!(TensorOptions::new().dtype(DType::I64).rand([2]), DType, "rand");
    Ok(())
}

/// Calls that fail in place, on a tensor whose buffer is shared and one whose buffer is not.
#[test]
fn outputs_that_do_not_fit() -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 3)])?;
    let mut named = Tensor::zeros([("C", 3), ("N", 2)])?;
    let mut other = Tensor::zeros([("N", 2), ("D", 3)])?;
    let mut integers = Tensor::zeros([2, 3])?.to(DType::I64)?;
    assert_error!(x.exp()?.write_to(&mut named), Shape, "write_to", "[3, 2]", "[2, 3]", "[C=3, N=2]");
    assert_error!(
        x.exp()?.write_to(&mut other),
        OutNames,
        "write_to",
        "specified out tensor with names ['N', 'D'] are not the same as the computed output names ['N', 'C']",
        "out.rename([\"N\", \"C\"])?"
    );
    assert_error!(x.exp()?.write_to(&mut integers), DType, "write_to", "can't be cast");
    let leaf = x.clone().requiring_grad()?;
    let mut out = Tensor::zeros([2, 3])?;
    assert_error!(leaf.exp()?.write_to(&mut out), Autograd, "write_to", "no_grad");
    for untouched in [&named, &other, &integers, &out] {
        assert!(!untouched.ne(0)?.any(..)?.item::<bool>()?);
    }
    no_grad(|| leaf.exp()?.write_to(&mut out).map(drop))?;
    assert_eq!(*out.names(), ["N", "C"]);
    let mut empty = Tensor::zeros([0])?;
    assert_eq!(x.exp()?.write_to(&mut empty)?.sizes(), [2, 3]);
    Ok(())
}

#[test]
fn a_failed_call_leaves_its_tensor_as_it_was() -> Result<()> {
    type Change = fn(&mut Tensor) -> Result<()>;
    let changes: [(&str, Change); 18] = [
        ("a larger operand", |x| x.add_(&Tensor::ones([5, 2, 3])?).map(drop)),
        ("sizes that do not broadcast", |x| x.mul_(&Tensor::ones([4])?).map(drop)),
        ("names that do not match", |x| x.add_(&Tensor::ones([("N", 2), ("D", 3)])?).map(drop)),
        ("a division by zero", |x| x.floor_divide_(0).map(drop)),
        ("a result that does not fit", |x| x.div_(2).map(drop)),
        ("a wrong dtype", |x| x.pow_(0.5).map(drop)),
        ("a larger bound", |x| x.clamp_(0, &Tensor::new(vec![vec![vec![1; 3]; 2]; 2])?).map(drop)),
        ("a weight of another dtype", |x| x.lerp_(1, 0.5).map(drop)),
        ("a mask that is not bool", |x| x.masked_fill_(&Tensor::ones([2, 3])?, 0).map(drop)),
        ("a larger mask", |x| x.masked_fill_(&Tensor::ones([2, 2, 3])?.gt(0)?, 0).map(drop)),
        ("a dim out of range", |x| x.transpose_(0, 2).map(drop)),
        ("a name that is not there", |x| x.squeeze_("W").map(drop)),
        ("an index out of bounds", |x| {
            x.index_add_(&Tensor::new([7])?, &Tensor::new([[1, 1, 1]])?, 0).map(drop)
        }),
        ("a source of another dtype", |x| {
            x.index_add_(&Tensor::new([0])?, &Tensor::ones([1, 3])?, 0).map(drop)
        }),
        ("duplicate names", |x| x.rename_(["A", "A"]).map(drop)),
        ("too many names", |x| x.rename_(["A", "B", "C"]).map(drop)),
        ("matrices that do not fit", |x| x.addmm_(&Tensor::ones([2, 2])?, &Tensor::ones([3, 3])?).map(drop)),
        ("no random integers", |x| x.random_(3..3).map(drop)),
    ];
    for (what, change) in changes {
        for shared in [false, true] {
            let mut x = Tensor::new([[1, -2, 3], [4, 5, 6]])?.rename(["N", "C"])?;
            let other = shared.then(|| x.clone());
            let before = x.value().data_ptr();
            let error = change(&mut x).expect_err(what);
            assert_eq!(error.location().file(), file!(), "{what}: {error}");
            assert_eq!(x.to_vec::<i64>()?, [1, -2, 3, 4, 5, 6], "{what}");
            assert_eq!(x.shape().to_string(), "[N=2, C=3]", "{what}");
            assert_eq!(x.value().data_ptr(), before, "{what}");
            drop(other);
        }
    }
    Ok(())
}

#[test]
fn operators_panic_with_the_text_of_the_methods() -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 3)])?;
    let y = Tensor::ones([("N", 2), ("D", 3)])?;
    type Operator = fn(&Tensor, &Tensor) -> Tensor;
    type Method = fn(&Tensor, &Tensor) -> Result<Tensor>;
    let pairs: [(Operator, Method); 8] = [
        (|x, y| x + y, |x, y| x.add(y)),
        (|x, y| x - y, |x, y| x.sub(y)),
        (|x, y| x * y, |x, y| x.mul(y)),
        (|x, y| x / y, |x, y| x.div(y)),
        (|x, y| x.clone() + y, |x, y| x.add(y)),
        (|x, y| assigned(x, |x| *x += y), |x, y| x.clone().add_(y).cloned()),
        (|x, y| assigned(x, |x| *x -= y), |x, y| x.clone().sub_(y).cloned()),
        (|x, y| assigned(x, |x| *x /= y), |x, y| x.clone().div_(y).cloned()),
    ];
    for (number, (operator, method)) in pairs.iter().enumerate() {
        let payload = catch_unwind(AssertUnwindSafe(|| operator(&x, &y))).expect_err("names differ");
        let panic = payload.downcast_ref::<String>().expect("a text");
        let error = method(&x, &y).unwrap_err().to_string();
        // Both end with their own line.
        let without_place =
            |text: &str| text.replace(&text[text.find("(at ").unwrap()..=text.find(')').unwrap()], "");
        let place = |text: &str| text[text.find("(at ").unwrap()..].contains(file!());
        assert_eq!(without_place(panic), without_place(&error), "pair {number}");
        assert!(place(panic), "pair {number}: {panic}");
    }
    assert_eq!((x.shape().to_string(), y.shape().to_string()), ("[N=2, C=3]".into(), "[N=2, D=3]".into()));
    Ok(())
}

fn assigned(x: &Tensor, assign: impl FnOnce(&mut Tensor)) -> Tensor {
    let mut x = x.clone();
    assign(&mut x);
    x
}

#[test]
fn an_operand_that_is_a_number_never_fails() -> Result<()> {
    assert_eq!(2.5.operand()?.item::<f64>()?, 2.5);
    Ok(())
}

// Gradients

const CREATE: BackwardOptions =
    BackwardOptions { create_graph: true, retain_graph: true, allow_unused: false, named: false };

fn leaf() -> Tensor {
    Tensor::ones([("N", 2)]).unwrap().requiring_grad().unwrap()
}

#[test]
fn gradients_that_do_not_fit() -> Result<()> {
    let x = leaf();
    let y = x.mul(2)?;
    let (long, ints) = (Tensor::ones([3])?, Tensor::new([1, 1])?);
    let mismatch = "Mismatch in shape: the gradient has sizes [3] and the tensor [2]";
    assert_error!(y.backward_with(Some(&long), CREATE), Autograd, "backward", mismatch);
    assert_error!(grad_with(&[&y], &[&x], &[Some(&long)], CREATE), Autograd, "grad", mismatch);
    assert_error!(x.set_grad(Some(long.clone())), Autograd, "set_grad", mismatch);
    let of_int = "a gradient of int64 for a tensor of float32";
    assert_error!(y.backward_with(Some(&ints), CREATE), Autograd, "backward", of_int);
    assert_error!(x.set_grad(Some(ints.clone())), Autograd, "set_grad", of_int);
    assert_error!(
        grad_with(&[&y], &[&x], &[None, None], CREATE),
        Autograd,
        "grad",
        "1 outputs and 2 gradients"
    );
    assert_error!(y.backward(), Autograd, "backward", "only for scalar outputs", "try: ");
    assert!(x.grad().is_none());
    Ok(())
}

#[test]
fn what_cannot_have_a_gradient() -> Result<()> {
    let ints = Tensor::new([1, 2])?;
    let floating = "only Tensors of floating point dtype can require gradients, got int64";
    assert_error!(ints.clone().requiring_grad(), Autograd, "requiring_grad", floating, "DType::F32");
    assert_error!(ints.gt(0)?.requiring_grad(), Autograd, "requiring_grad", "got bool");
    assert_error!(Parameter::new(ints.clone()), Autograd, "Parameter::new", floating);
    assert_error!(TensorOptions::new().requires_grad(true).tensor([1, 2]), Autograd, "tensor", "int64");
    let none = "element 0 of tensors does not require grad";
    assert_error!(
        leaf().argmax(..)?.backward(),
        Autograd,
        "backward",
        none,
        "int64",
        "argmax",
        "loss of floats"
    );
    let cut = leaf().argmax(..)?.to(DType::F32)?.mean(..)?;
    assert_error!(
        cut.backward(),
        Autograd,
        "backward",
        none,
        "such as argmax",
        "set_requires_grad(true)",
        "[] (0-d)"
    );
    assert_error!(ints.retain_grad(), Autograd, "retain_grad", "requires_grad=False");
    assert_error!(ints.register_hook(|_| Ok(None)), Autograd, "register_hook", "doesn't require gradient");
    assert_error!(grad_with(&[&leaf()], &[&ints], &[Some(&ints)], CREATE), Autograd, "grad");
    Ok(())
}

#[test]
fn hooks_that_give_what_does_not_fit() -> Result<()> {
    let after = "register_post_accumulate_grad_hook";
    for wrong in [Tensor::ones([3])?, TensorOptions::new().dtype(DType::F64).ones([2])?, Tensor::new([1, 1])?]
    {
        let (x, y, z) = (leaf(), leaf(), leaf());
        let (of_y, of_z) = (wrong.clone(), wrong.clone());
        x.register_hook(move |_| Ok(Some(wrong.clone())))?;
        y.exp()?.register_hook(move |_| Ok(Some(of_y.clone())))?;
        z.register_post_accumulate_grad_hook(move |_| Ok(Some(of_z.clone())))?;
        assert_error!(
            x.sum(..)?.backward(),
            Autograd,
            "register_hook",
            "a hook changed the",
            "of a gradient from"
        );
        assert_error!(
            z.sum(..)?.backward(),
            Autograd,
            "register_post_accumulate_grad_hook",
            "a hook changed the"
        );
        assert!(x.grad().is_none(), "nothing is accumulated");
        assert_eq!(z.grad().expect(after).to_vec::<f32>()?, [1.0, 1.0]);
    }
    Ok(())
}

/// A user's op with this gradient for each of its two inputs.
#[track_caller]
fn own_op(x: &Tensor, gradient: Tensor) -> Result<Tensor> {
    let op = Op::new("own", x.value().clone());
    op.input(&leaf(), |g, _| Ok(g.clone())).input(x, move |_, _| Ok(gradient.clone())).output().sum(..)
}

/// A user's op with these gradients for its single input.
#[track_caller]
fn own_op_of_several(x: &Tensor, gradients: Vec<Option<Tensor>>) -> Result<Tensor> {
    let op = Op::with_outputs("several", vec![x.value().clone(), x.value().clone()]);
    op.inputs(&[Some(x)], move |_, _| Ok(gradients.clone()))[0].sum(..)
}

#[test]
fn ops_that_give_gradients_that_do_not_fit() -> Result<()> {
    let x = leaf();
    let (long, ints) = (Tensor::ones([3])?, Tensor::new([1, 1])?);
    assert_error!(
        own_op(&x, long.clone())?.backward(),
        Autograd,
        "own",
        "in the backward of own, called at tests/tensors/errors.rs",
        "returned an invalid gradient at index 1 - got [3] but expected shape compatible with [2]"
    );
    assert_error!(
        own_op(&x, ints.clone())?.backward(),
        Autograd,
        "own",
        "at index 1 - got int64 but expected float32"
    );
    let broadcast = Tensor::ones([4, 2])?;
    own_op(&x, broadcast)?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [4.0, 4.0], "what was broadcast is summed");
    x.zero_grad();
    assert_error!(
        own_op_of_several(&x, vec![])?.backward(),
        Autograd,
        "several",
        "gave 0 gradients for 1 inputs"
    );
    assert_error!(
        own_op_of_several(&x, vec![None, None])?.backward(),
        Autograd,
        "several",
        "gave 2 gradients"
    );
    assert_error!(
        own_op_of_several(&x, vec![Some(long)])?.backward(),
        Autograd,
        "several",
        "at index 0 - got [3]"
    );
    assert!(x.grad().is_none());
    Ok(())
}

/// A user's op with a gradient outside of the tape.
#[track_caller]
fn own_op_once(x: &Tensor) -> Result<Tensor> {
    let op = Op::new("once", x.value().clone());
    op.input_once(x, |g, _| Ok(g.clone())).output().exp()?.sum(..)
}

#[test]
fn second_derivatives_that_are_not_there() -> Result<()> {
    let x = leaf();
    let again = "the gradient of this op cannot be differentiated again";
    let first = |y: &Tensor| grad_with(&[y], &[&x], &[], CREATE).map(|mut found| found.remove(0).unwrap());
    assert_error!(
        first(&own_op_once(&x)?)?.sum(..)?.backward(),
        Autograd,
        "once",
        again,
        "in the backward of once"
    );
    let loss = x.exp()?.sum(..)?;
    loss.backward()?;
    assert_error!(
        loss.backward(),
        Autograd,
        "backward",
        "a second time",
        "loss.backward_with(None, BackwardOptions::new().retain_graph(true))?"
    );
    Ok(())
}

#[test]
fn checks_of_derivatives_that_cannot_be_done() -> Result<()> {
    let (x, options) = ([Tensor::ones([("N", 2)])?], GradCheckOptions::default());
    let f = |x: &[Tensor]| x[0].exp();
    let whole = [x[0].to(DType::I64)?];
    let floats = "expected inputs of floats, got int64";
    assert_error!(gradcheck_with(f, &whole, options), DType, "gradcheck", floats, "[N=2]", "DType::F64");
    assert_error!(gradgradcheck_with(f, &whole, options), DType, "gradgradcheck", floats, "DType::F64");
    // In dtypes narrower than f64, the difference for such a small step is noise; a large step passes, with a
    // warning.
    assert_error!(gradcheck_with(f, &x, options), Autograd, "gradcheck", "float32", "DType::F64");
    let coarse = GradCheckOptions { eps: 1e-2, atol: 1e-2, rtol: 1e-2 };
    let warning = gradcheck_with(f, &x, coarse)?.warning.expect("f32 is narrow");
    assert!(warning.contains("float32"), "{warning}");
    assert_eq!(gradcheck_with(f, &[x[0].to(DType::F64)?], options)?.warning, None);
    Ok(())
}

#[test]
fn checkpoints_that_compute_something_else_the_second_time() -> Result<()> {
    use std::sync::atomic::{AtomicUsize, Ordering};
    /// A function that returns `x` in the first call and the result of `second` in the second.
    #[track_caller]
    fn then(x: &Tensor, second: fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
        let calls = AtomicUsize::new(0);
        let f = move |x: &[Tensor]| match calls.fetch_add(1, Ordering::Relaxed) {
            0 => x[0].exp(),
            _ => second(&x[0]),
        };
        checkpoint(f, &[x])?.sum(..)
    }
    let x = leaf();
    assert_error!(
        then(&x, |x| x.narrow(0, 0, 1))?.backward(),
        Autograd,
        "checkpoint",
        "float32 [1], and was of float32 [2]"
    );
    assert_error!(then(&x, |x| x.to(DType::F64))?.backward(), Autograd, "checkpoint", "it is of float64 [2]");
    assert_error!(then(&x, |x| Ok(x.detach()))?.backward(), Autograd, "checkpoint", "it depends on nothing");
    assert!(x.grad().is_none());
    Ok(())
}

// Errors of other code

/// The number of lines of a file, with the number of the line that fails if there is none.
fn lines_of(path: &str) -> (Result<usize>, u32) {
    let read = || -> Result<usize> { Ok(std::fs::read_to_string(path)?.lines().count()) };
    (read(), line!() - 1)
}

#[test]
fn an_error_of_a_file_in_your_own_function() {
    let (found, line) = lines_of("there is no such file");
    let error = found.unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::Io, ""));
    assert_eq!((error.location().file(), error.location().line()), (file!(), line), "{error}");
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<std::io::Error>());
    assert_eq!(source.map(|source| source.kind()), Some(std::io::ErrorKind::NotFound));
    assert!(error.to_string().starts_with(error.message()), "{error}");
    // A clone and an error with more words have the same source.
    assert!(std::error::Error::source(&error.clone().context("sample 3: ")).is_some());
}

#[test]
fn an_error_of_another_library() {
    let (error, line) = ("three".parse::<usize>().map_err(|error| Error::other(error)).unwrap_err(), line!());
    assert_eq!((error.kind(), error.location().line()), (ErrorKind::Other, line));
    assert!(std::error::Error::source(&error).is_some_and(|source| source.is::<std::num::ParseIntError>()));
    assert_error!(Err::<(), _>(Error::other("a row has no label")), Other, "", "a row has no label (at ");
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

#[test]
fn sizes_of_parts_that_overflow_were_a_panic() -> Result<()> {
    let error = Tensor::zeros([4])?.split([isize::MAX, isize::MAX], 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
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
fn take_along_dim_changed_the_position_that_its_error_shows() -> Result<()> {
    let error = Tensor::ones([2, 2])?.take_along_dim(&Tensor::new([[-3]])?, 1).unwrap_err();
    assert!(error.message().contains("index -3 is out of bounds"), "{error}");
    Ok(())
}

#[test]
fn names_of_any_length_lived_forever() -> Result<()> {
    use namegrad::core::Name;
    assert!(Name::new(&"n".repeat(255)).is_ok());
    assert_eq!(Name::new(&"n".repeat(256)).unwrap_err().kind(), ErrorKind::InvalidName);
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
