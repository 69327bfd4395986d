//! Views and rearrangements.

use crate::check::values;
use crate::plain::{ravel, unravel};
use namegrad::ops;
use namegrad::prelude::*;

cases! {
    transpose {
        (x: values("N=2 C=3 H=4"); 0, 2) => "H=4 C=3 N=2" any, |i| x.at(&[i[2], i[1], i[0]]);
        (x: values("N=2 C=3"); "C", "N") => "C=3 N=2" any, |i| x.at(&[i[1], i[0]]);
        (x: values("N=2 ?=3"); -1, -1) => "N=2 ?=3" any, |i| x.at(i);
        (x: values(""); 0, -1) => "" any, |i| x.at(i);
        (x: values("N=0 C=3"); 0, 1) => "C=3 N=0" any, |i| x.at(i);
    }
    t {
        (x: values("N=2 C=3")) => "C=3 N=2" any, |i| x.at(&[i[1], i[0]]);
        (x: values("N=2")) => "N=2" any, |i| x.at(i);
        (x: values("")) => "" any, |i| x.at(i);
    }
    mt { (x: values("A=2 N=2 C=3")) => "A=2 C=3 N=2" any, |i| x.at(&[i[0], i[2], i[1]]); }
    permute {
        (x: values("N=2 C=3 H=4"); [2, 0, 1]) => "H=4 N=2 C=3" any, |i| x.at(&[i[1], i[2], i[0]]);
        (x: values("N=2 C=3"); ["C", "N"]) => "C=3 N=2" any, |i| x.at(&[i[1], i[0]]);
        (x: values("N=0 ?=3"); [-1, 0]) => "?=3 N=0" any, |i| x.at(i);
    }
    movedim {
        (x: values("N=2 C=3 H=4"); 0, -1) => "C=3 H=4 N=2" any, |i| x.at(&[i[2], i[0], i[1]]);
        (x: values("N=2 C=3 H=4"); "H", "N") => "H=4 N=2 C=3" any, |i| x.at(&[i[1], i[2], i[0]]);
        (x: values(""); 0, 0) => "" any, |i| x.at(i);
        (x: values("N=2 C=3 H=4"); ["N", "C"], [2, 0]) => "C=3 H=4 N=2" any, |i| x.at(&[i[2], i[0], i[1]]);
    }
    squeeze {
        (x: values("A=1 B=2 C=1"); [0, 2]) => "B=2" any, |i| x.at(&[0, i[0], 0]);
        (x: values("A=1 B=2 C=1"); "..") => "B=2" any, |i| x.at(&[0, i[0], 0]);
        (x: values("A=1 B=2"); "B") => "A=1 B=2" any, |i| x.at(i);
        (x: values("A=1 B=0"); 0) => "B=0" any, |i| x.at(i);
        (x: values(""); 0) => "" any, |i| x.at(i);
    }
    unsqueeze {
        (x: values("A=2 B=3"); 1) => "A=2 ?=1 B=3" any, |i| x.at(&[i[0], i[2]]);
        (x: values("A=2"); -1) => "A=2 ?=1" any, |i| x.at(&i[..1]);
        (x: values(""); 0) => "?=1" any, |i| x.at(&[]);
        (x: values("A=0"); 0) => "?=1 A=0" any, |i| x.at(&[]);
        (x: values("A=2"); 0, "N") => "N=1 A=2" any, |i| x.at(&i[1..]);
    }
    expand {
        (x: values("A=1 B=3"); [2, -1]) => "A=2 B=3" any, |i| x.at(&[0, i[1]]);
        (x: values("B=3"); [2, 2, 3]) => "?=2 ?=2 B=3" any, |i| x.at(&i[2..]);
        (x: values(""); [2]) => "2" any, |i| x.at(&[]);
        (x: values("A=1"); [0]) => "A=0" any, |i| x.at(&[0]);
    }
    view {
        (x: values("A=2 B=6"); [2, 6]) => "A=2 B=6" any, |i| x.at(i);
        (x: values("5"); [-1, 1]) => "5 1" any, |i| x.at(&i[..1]);
        (x: values(""); [1, 1]) => "1 1" any, |i| x.at(&[]);
        (x: values("0 3"); [0, 5]) => "0 5" any, |i| x.at(i);
    }
    reshape {
        (x: values("A=2 B=6"); [3, -1]) => "3 4" any, |i| x.at(&unravel(ravel(i, &[3, 4]), &[2, 6]));
        (x: values("A=2 B=6"); [2, 6]) => "A=2 B=6" any, |i| x.at(i);
        (x: values("A=2 B=3"); [-1]) => "6" any, |i| x.at(&unravel(i[0], &[2, 3]));
        (x: values("A=4 B=3"); [2, 1, 2, 3]) => "2 1 2 3" any, |i| x.at(&[2 * i[0] + i[2], i[3]]);
        (x: values("A=1"); [] as [i32; 0]) => "" any, |i| x.at(&[0]);
        (x: values("0 3"); [3, 0]) => "3 0" any, |i| x.at(i);
    }
    flip {
        (x: values("A=2 B=3"); [0, 1]) => "A=2 B=3" any, |i| x.at(&[1 - i[0], 2 - i[1]]);
        (x: values("A=2 B=3"); "B") => "A=2 B=3" any, |i| x.at(&[i[0], 2 - i[1]]);
        (x: values("A=0 B=3"); "..") => "A=0 B=3" any, |i| x.at(i);
        (x: values(""); "..") => "" any, |i| x.at(i);
    }
    repeat {
        (x: values("A=2 B=3"); [2, 1]) => "A=4 B=3" any, |i| x.at(&[i[0] % 2, i[1]]);
        (x: values("B=3"); [2, 2]) => "?=2 B=6" any, |i| x.at(&[i[1] % 3]);
        (x: values(""); [3]) => "3" any, |i| x.at(&[]);
        (x: values("A=2"); [0]) => "A=0" any, |i| x.at(i);
    }
    contiguous {
        (x: values("A=2 B=3")) => "A=2 B=3" any, |i| x.at(i);
        (x: values("")) => "" any, |i| x.at(i);
        (x: values("A=0 B=3")) => "A=0 B=3" any, |i| x.at(i);
    }
}

/// Every op that makes a dim can name it: the calls, and the result with its names.
#[test]
fn new_dims_can_be_named() -> Result<()> {
    let x = Tensor::rand([("N", 4), ("C", 6)])?;
    let v = Tensor::new([1, 0, 2])?.refine_names(["N"])?;
    let square = Tensor::rand([("A", 2), ("B", 2)])?;
    let (q, r) = x.qr_with(.., QrOptions::new().name("rank"))?;
    let unique = v.unique_with(UniqueOptions::new().name("value"))?;
    let mut grown = x.clone();
    grown.unsqueeze_with_(0, UnsqueezeOptions::new().name("time"))?;
    let made = [
        (x.unsqueeze_with(1, UnsqueezeOptions::new().name("H"))?, "[N=4, H=1, C=6]"),
        (grown, "[time=1, N=4, C=6]"),
        (Tensor::stack_with([&x, &x], 0, StackOptions::new().name("time"))?, "[time=2, N=4, C=6]"),
        (x.reshape([("N", 4), ("features", -1)])?, "[N=4, features=6]"),
        (x.view([("row", -1), ("col", 3)])?, "[row=8, col=3]"),
        (x.unflatten("C", [("H", 2), ("W", -1)])?, "[N=4, H=2, W=3]"),
        (x.flatten(["N", "C"], "all")?, "[all=24]"),
        (x.expand([("time", 2), ("N", 4), ("C", 6)])?, "[time=2, N=4, C=6]"),
        (x.repeat([("time", 2), ("N", 1), ("C", 1)])?, "[time=2, N=4, C=6]"),
        (x.tile([("time", 2), ("N", 1), ("C", 1)])?, "[time=2, N=4, C=6]"),
        (x.unfold_with("C", 2, 2, UnfoldOptions::new().name("window"))?, "[N=4, C=3, window=2]"),
        (x.diagonal_with("N", "C", DiagonalOptions::new().name("i"))?, "[i=4]"),
        (square.diag_with(DiagOptions::new().names(["i"]))?, "[i=2]"),
        (v.diag_with(DiagOptions::new().names(["row", "col"]))?, "[row=3, col=3]"),
        (x.diag_embed_with(DiagEmbedOptions::new().names(["row", "col"]))?, "[N=4, row=6, col=6]"),
        (v.one_hot_with(OneHotOptions::new().name("class"))?, "[N=3, class=3]"),
        (v.nonzero_with(NonzeroOptions::new().names(["place", "dim"]))?, "[place=2, dim=1]"),
        (v.outer(&v.rename(None)?)?, "[N=3, ?=3]"),
        (v.outer_with(&v, OuterOptions::new().names(["row", "col"]))?, "[row=3, col=3]"),
        (x.masked_select_with(&x.ge(0)?, MaskedSelectOptions::new().name("picked"))?, "[picked=24]"),
        (v.bincount_with(BincountOptions::new().name("number"))?, "[number=3]"),
        (x.histc_with(HistcOptions::new().bins(5).name("bin"))?, "[bin=5]"),
        (unique.values, "[value=3]"),
        (unique.inverse, "[N=3]"),
        (unique.counts, "[value=3]"),
        (q, "[N=4, rank=4]"),
        (r, "[rank=4, C=6]"),
        (
            Tensor::einsum_with("i,j->ji", [&v, &v], EinsumOptions::new().names(["row", "col"]))?,
            "[row=3, col=3]",
        ),
        (v.kron_with(&v, KronOptions::new().names(["pair"]))?, "[pair=9]"),
        (square.ravel_with(RavelOptions::new().name("all"))?, "[all=4]"),
        (v.ravel()?, "[N=3]"),
        (TensorOptions::new().names(["time"]).arange(0, 4, 1)?, "[time=4]"),
        (TensorOptions::new().names(["row", "col"]).eye(2, 3)?, "[row=2, col=3]"),
        (TensorOptions::new().names([None, Some("C")]).tensor([[1.0, 2.0]])?, "[?=1, C=2]"),
        (
            Tensor::block_diag_with([&square, &x], BlockDiagOptions::new().names(["row", "col"]))?,
            "[row=6, col=8]",
        ),
    ];
    for (y, shape) in made {
        assert_eq!(y.shape().to_string(), shape);
    }
    let error = v.outer_with(&v, OuterOptions::new().names(["row"])).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::NameCount, "outer"));
    let error = TensorOptions::new().names(["row", "col"]).linspace(0.0, 1.0, 3).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::NameCount, "TensorOptions::names"));
    let error = TensorOptions::new().names(["row"]).zeros([("N", 3)]).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::RefineConflict, "TensorOptions::names"));
    let error = x.qr_with(.., QrOptions::new().name("C")).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::DuplicateName, "qr"));
    Ok(())
}

#[test]
fn classes_that_cannot_be_encoded() -> Result<()> {
    let x = Tensor::new([0, 3])?;
    let of = |count: isize| OneHotOptions::new().num_classes(count);
    for (error, kind, text) in [
        (x.one_hot_with(of(3)).unwrap_err(), ErrorKind::Value, "got 3 of 3"),
        (x.neg()?.one_hot().unwrap_err(), ErrorKind::Value, "must not be negative, got -3"),
        (x.narrow(0, 0, 0)?.one_hot().unwrap_err(), ErrorKind::Value, "no classes are given"),
        (x.float()?.one_hot().unwrap_err(), ErrorKind::DType, "must be integers, got float32"),
    ] {
        assert_eq!((error.kind(), error.op(), error.location().file()), (kind, "one_hot", file!()));
        assert!(error.message().contains(text), "{error}");
    }
    assert_eq!(x.narrow(0, 0, 0)?.one_hot_with(of(3))?.sizes(), [0, 3]);
    assert_eq!(ops::call("one_hot", &[&x], &[("num_classes", 4.into())])?[0].sizes(), [2, 4]);
    Ok(())
}

/// Sizes with names mean the dims of these names.
#[test]
fn expand_and_repeat_by_name() -> Result<()> {
    let mut h0 = Tensor::rand([("layer", 2), ("N", 1), ("hidden", 3)])?;
    h0.requires_grad_(true)?;
    let wide = h0.expand(("N", 6))?;
    assert_eq!(wide.shape().to_string(), "[layer=2, N=6, hidden=3]");
    let turned = h0.expand([("hidden", -1), ("N", 6), ("layer", 2)])?;
    assert_eq!(turned.shape().to_string(), "[hidden=3, N=6, layer=2]");
    assert!(turned.align_as(&wide)?.equal(&wide)?);
    assert_eq!(h0.expand(("T", 5))?.shape().to_string(), "[T=5, layer=2, N=1, hidden=3]");
    let inner = h0.expand([("layer", 2), ("T", 5), ("N", 1), ("hidden", 3)])?;
    assert!(inner.select("T", 4)?.equal(&h0)?);
    let x = Tensor::rand([("N", 1), ("C", 2)])?;
    let twice = x.expand((("C", 2), 3)).unwrap_err(); // the name of the second dim is that of the first now
    assert_eq!(twice.repair(), Some("x.expand([2, -1])?, which keeps the size"));
    let repeated = h0.repeat([("N", 2), ("hidden", 1), ("layer", 3)])?;
    assert!(repeated.equal(&h0.repeat([3, 2, 1])?.align_to(["N", "hidden", "layer"])?)?);

    // The gradient has the order of the tensor.
    let weights = Tensor::rand([("hidden", 3), ("N", 6), ("layer", 2)])?;
    let expected = weights.sum(keep("N"))?.align_as(&h0)?;
    turned.mul(&weights)?.sum(..)?.backward()?;
    assert!(h0.grad().expect("it was computed").allclose(&expected.rename(None)?)?);
    h0.zero_grad();
    let weights = Tensor::rand(repeated.shape())?;
    let parts = weights.unflatten("N", [("n", 2), ("N", 1)])?;
    let parts = parts.unflatten("layer", [("l", 3), ("layer", 2)])?;
    let expected = parts.sum(["n", "l"])?.align_as(&h0)?;
    repeated.mul(&weights)?.sum(..)?.backward()?;
    assert!(h0.grad().expect("it was computed").allclose(&expected.rename(None)?)?);

    for (sizes, kind) in [
        (vec![("a", 6), ("b", 4), ("c", 3)], ErrorKind::NameMismatch),
        (vec![("N", 6), ("layer", 2), ("C", 3)], ErrorKind::NameMismatch),
        (vec![("layer", 6)], ErrorKind::Shape),
        (vec![("T", -1)], ErrorKind::Shape),
        (vec![("N", 6), ("N", 6)], ErrorKind::DuplicateName),
    ] {
        assert_eq!(h0.expand(&sizes).unwrap_err().kind(), kind, "{sizes:?}");
    }
    // Without names, or with sizes that have none, positions count, but never against a name.
    assert_eq!(
        h0.rename(None)?.expand([("a", 2), ("b", 6), ("c", 3)])?.shape().to_string(),
        "[a=2, b=6, c=3]"
    );
    let partly = h0.rename([Some("layer"), None, Some("hidden")])?;
    assert_eq!(
        partly.expand([("layer", 2), ("N", 6), ("hidden", 3)])?.shape().to_string(),
        "[layer=2, N=6, hidden=3]"
    );
    assert_eq!(
        partly.expand([("N", 2), ("layer", 6), ("hidden", 3)]).unwrap_err().kind(),
        ErrorKind::NameMismatch
    );

    let other = Tensor::zeros([("C", 4), ("N", 4)])?;
    let row = Tensor::rand([("N", 1), ("C", 4)])?;
    assert_eq!(row.expand_as(&other)?.shape(), other.shape());
    assert_eq!(row.expand_as(&other.rename(["C", "M"])?).unwrap_err().kind(), ErrorKind::NameMismatch);
    assert_eq!(row.expand_as(&other.rename(None)?)?.shape().to_string(), "[N=4, C=4]");
    assert_eq!(row.expand_as(&Tensor::zeros(("N", 4))?).unwrap_err().kind(), ErrorKind::NameMismatch);
    assert!(namegrad::names::strict(|| row.expand_as(&other.rename(None)?)).is_err());
    let partly = row.rename([Some("C"), None])?;
    assert_eq!(partly.expand_as(&other)?.shape(), other.shape());
    assert!(namegrad::names::strict(|| partly.expand_as(&other)).is_err());
    namegrad::names::strict(|| row.expand_as(&other))?;
    Ok(())
}

/// A name that a tensor has stays with the elements of its dim, or the reshape is an error.
#[test]
fn a_reshape_gives_no_name_to_other_elements() -> Result<()> {
    let x = Tensor::arange(0.0, 12.0, 1.0)?.reshape([("A", 2), ("B", 3), ("C", 2), ("D", 1)])?;
    let names = [None, Some("A"), Some("B"), Some("C"), Some("D"), Some("new")];
    let sizes: [&[usize]; 9] =
        [&[12], &[2, 6], &[6, 2], &[2, 3, 2], &[3, 2, 2], &[2, 2, 3], &[2, 1, 6], &[1, 2, 6], &[2, 3, 2, 1]];
    let elements = |x: &Tensor, name: &str, at: i64| -> Result<Vec<i64>> {
        let mut all = x.select(name, at)?.to(DType::I64)?.to_vec::<i64>()?;
        all.sort_unstable();
        Ok(all)
    };
    let mut taken = 0;
    for sizes in sizes {
        for mut choice in 0..names.len().pow(sizes.len() as u32) {
            let mut dims = Vec::new();
            for size in sizes {
                dims.push((names[choice % names.len()], *size));
                choice /= names.len();
            }
            for y in [x.reshape(dims.clone()), x.view(dims.clone())] {
                let Ok(y) = y else { continue };
                taken += 1;
                for name in ["A", "B", "C", "D"].into_iter().filter(|name| y.size(*name).is_ok()) {
                    assert_eq!(x.size(name)?, y.size(name)?, "{dims:?}");
                    for at in 0..x.size(name)? as i64 {
                        assert_eq!(elements(&x, name, at)?, elements(&y, name, at)?, "{dims:?}");
                    }
                }
            }
        }
    }
    assert!(taken > 100, "{taken}");
    let square = Tensor::new([[1.0, 2.0], [3.0, 4.0]])?.rename(["N", "C"])?;
    for wrong in [[("C", 2), ("X", 2)], [("X", 2), ("N", 2)]] {
        assert_eq!(square.reshape(wrong).unwrap_err().kind(), ErrorKind::Misaligned);
        assert_eq!(square.reshape_as(&Tensor::zeros(wrong)?).unwrap_err().kind(), ErrorKind::Misaligned);
    }
    assert_eq!(square.reshape((("C", 2), 2)).unwrap_err().kind(), ErrorKind::Misaligned);
    Ok(())
}
