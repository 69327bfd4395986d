//! Patterns of words, and indexing by the names of dims.

use crate::check::{index, values};
use crate::index::other;
use crate::plain::{Plain, sum};
use namegrad::autograd::Index;
use namegrad::core::Shape;
use namegrad::ops::Value;
use namegrad::prelude::*;

/// The argument `sizes` of a pattern, or the places of `at`.
fn pairs<T: Into<Value>, const K: usize>(pairs: [(&str, T); K]) -> Value {
    Value::List(pairs.map(|(word, value)| Value::List(vec![word.into(), value.into()])).to_vec())
}

/// A position among 4; a negative one counts from the end.
fn place(index: &Plain, i: &[usize]) -> usize {
    (index.at(i) as i64).rem_euclid(4) as usize
}

fn no_sizes() -> Value {
    Value::List(Vec::new())
}

cases! {
    rearrange {
        (x: values("2 6 3"); "n (h w) c -> n c h w", pairs([("h", 3)])) => "2 3 3 2" any, |i| x.at(&[i[0], 2 * i[2] + i[3], i[1]]);
        (x: values("N=2 H=4 W=6"); "N (H: y p) (W: x q) -> N (y x) (p q)", pairs([("p", 2), ("x", 2)])) => "N=2 ?=4 ?=6" any,
            |i| x.at(&[i[0], i[1] / 2 * 2 + i[2] / 3, i[1] % 2 * 3 + i[2] % 3]);
        (x: values("4 3"); "(a b) c -> c b a", pairs([("a", 2)])) => "3 2 2" any, |i| x.at(&[2 * i[2] + i[1], i[0]]);
        (x: values("A=2 B=3 C=2"); "... C -> C ...", no_sizes()) => "C=2 A=2 B=3" any, |i| x.at(&[i[1], i[2], i[0]]);
        (x: values("A=2 B=3 ?=2"); "A ... c -> (c ...) 1 A", no_sizes()) => "?=6 ?=1 A=2" any, |i| x.at(&[i[2], i[0] % 3, i[0] / 3]);
        (x: values("2 ?=1 3"); "a 1 b -> (b a) ()", no_sizes()) => "6 1" any, |i| x.at(&[i[0] % 2, 0, i[0] / 2]);
        (x: values(""); " -> 1 1", no_sizes()) => "1 1" any, |i| x.at(&[]);
        (x: values("A=0 B=3"); "A B->B A", no_sizes()) => "B=3 A=0" any, |i| x.at(&[i[1], i[0]]);
    }
    reduce {
        (x: values("N=2 H=4 W=2"); "N (H 2) (W 2) -> N H W", "max", no_sizes()) => "N=2 H=2 W=1" any,
            |i| [0, 1, 2, 3].map(|k| x.at(&[i[0], 2 * i[1] + k / 2, k % 2])).into_iter().fold(f64::NEG_INFINITY, f64::max);
        (x: values("N=2 C=3"); "N C -> 1 C", "min", no_sizes()) => "?=1 C=3" any, |i| x.at(&[0, i[1]]).min(x.at(&[1, i[1]]));
        (x: values("2 3"); "a b -> b a", "mean", no_sizes()) => "3 2" any, |i| x.at(&[i[1], i[0]]);
    }
    repeat_dims {
        (x: values("H=2 W=3"); "H W -> (2 H) (W n)", pairs([("n", 2)])) => "?=4 ?=6" any, |i| x.at(&[i[0] % 2, i[1] / 2]);
        (x: values("H=2 W=3"); "H W -> W 2 (H: n H)", pairs([("n", 2)])) => "W=3 ?=2 H=4" any, |i| x.at(&[i[2] % 2, i[0]]);
        (x: values("2 1"); "a 1 -> a b", pairs([("b", 3)])) => "2 3" any, |i| x.at(&[i[0], 0]);
        (x: values("2"); "... -> n ...", pairs([("n", 0)])) => "0 2" any, |i| 0.0;
    }
    at {
        (x: values("N=3 time=4"); pairs([("time", -1)])) => "N=3" any, |i| x.at(&[i[0], 3]);
        (x: values("N=3 time=4"); Value::List(vec![Value::List(vec![1.into(), [0, 4, 2].into()]), Value::List(vec!["N".into(), 1.into()])])) => "time=2" any,
            |i| x.at(&[1, 2 * i[0]]);
    }
    index_by {
        (x: values("vocab=4 embed=2"), ids: index("N=3", [3, 0, -1]); "vocab") => "N=3 embed=2" any, |i| x.at(&[place(ids, &i[..1]), i[1]]);
        (x: values("vocab=4 embed=2"), ids: index("", [1]); "vocab") => "embed=2" any, |i| x.at(&[1, i[0]]);
        (x: values("3"), ids: index("2", [2, 2]); 0) => "2" any, |i| x.at(&[2]);
    }
}

/// Reductions whose dtypes or roundings have rules of their own.
#[test]
fn reductions() -> Result<()> {
    let x = Tensor::arange(0, 12, 1)?.reshape([("N", 2), ("time", 6)])?;
    let by = |reduction: &str| x.reduce("N (time 3) -> time N", reduction, []);
    let element = |t: usize, n: usize, k: usize| (6 * n + 3 * t + k) as i64;
    let expected = |of: &dyn Fn([i64; 3]) -> i64| -> Vec<i64> {
        [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(t, n)| of([0, 1, 2].map(|k| element(t, n, k)))).to_vec()
    };
    assert_eq!(by("sum")?.to_vec::<i64>()?, expected(&|terms| terms.iter().sum()));
    assert_eq!(by("prod")?.to_vec::<i64>()?, expected(&|terms| terms.iter().product()));
    assert_eq!(by("max")?.shape().to_string(), "[time=2, N=2]");
    assert_eq!(by("all")?.to_vec::<bool>()?, [false, true, true, true]);
    assert_eq!((by("any")?.dtype(), by("any")?.to_vec::<bool>()?), (DType::Bool, vec![true; 4]));
    assert_eq!(by("mean").unwrap_err().kind(), ErrorKind::DType);
    assert_eq!(x.to(DType::F64)?.reduce("... -> ", "mean", [])?.item::<f64>()?, 5.5);
    // Where nothing is reduced, the tensor keeps its dtype.
    assert_eq!(x.to(DType::I32)?.reduce("N time -> time N", "mean", [])?.dtype(), DType::I32);
    let empty = Tensor::zeros([2, 0])?;
    assert_eq!(empty.reduce("a b -> a", "sum", [])?.to_vec::<f32>()?, [0.0, 0.0]);
    assert_eq!(empty.reduce("a b -> ", "max", []).unwrap_err().kind(), ErrorKind::Shape);
    Ok(())
}

/// Splits, transposes and new dims are views; only merging dims that are apart copies.
#[test]
fn views() -> Result<()> {
    let x = Tensor::arange(0, 24, 1)?.reshape([("N", 2), ("P", 12)])?;
    let shares = |y: &Tensor| y.value().data_ptr() == x.value().data_ptr();
    assert!(shares(&x.rearrange("N (h w) -> w N h", [("h", 3)])?));
    assert!(shares(&x.rearrange("N P -> 1 (all: N P)", [])?));
    assert!(shares(&x.repeat_dims("N P -> P n N", [("n", 1000)])?));
    assert!(shares(&x.rearrange("... -> ...", [])?));
    assert!(!shares(&x.rearrange("N P -> (P N)", [])?));
    Ok(())
}

/// A word is the name of a dim, so a tensor in another order or with other names is refused.
#[test]
fn words_are_names() -> Result<()> {
    let x = Tensor::zeros([("N", 2), ("P", 6), ("C", 3)])?;
    let kind = |x: &Tensor, pattern: &str| x.rearrange(pattern, [("h", 2)]).unwrap_err().kind();
    let pattern = "N (h w) C -> N C h w";
    assert_eq!(x.rearrange(pattern, [("h", 2)])?.shape().to_string(), "[N=2, C=3, h=2, w=3]");
    for order in [["N", "C", "P"], ["C", "P", "N"], ["P", "N", "C"]] {
        assert_eq!(kind(&x.align_to(order)?, pattern), ErrorKind::NameMismatch, "{order:?}");
    }
    assert_eq!(kind(&x.rename(["N", "P", "c"])?, pattern), ErrorKind::NameMismatch);
    assert_eq!(kind(&x.rename([None, Some("N"), Some("C")])?, pattern), ErrorKind::Misaligned);
    let some = x.rename([None, Some("P"), None])?;
    assert_eq!(some.rearrange(pattern, [("h", 2)])?.shape().to_string(), "[N=2, C=3, h=2, w=3]");
    assert!(!x.rename(None)?.rearrange(pattern, [("h", 2)])?.has_names());
    // Two dims that are split could be taken for each other.
    let y = Tensor::zeros([("H", 4), ("W", 6)])?;
    let split = |pattern: &str| y.rearrange(pattern, [("p", 2), ("q", 2)]);
    assert_eq!(split("(y p) (x q) -> y x (p q)").unwrap_err().kind(), ErrorKind::NameMismatch);
    assert_eq!(split("(H p) (W q) -> H W (p q)")?.shape().to_string(), "[H=2, W=3, ?=4]");
    assert_eq!(split("(H: y p) (x q) -> y x (p q)")?.shape().to_string(), "[y=2, x=3, ?=4]");
    assert_eq!(split("(W: y p) (H: x q) -> y x (p q)").unwrap_err().kind(), ErrorKind::NameMismatch);
    // Names of the result.
    let (a, b) = (Tensor::zeros([("A", 2), ("B", 3)])?, [("n", 2)]);
    assert_eq!(a.rearrange("... B -> B ...", [])?.shape().to_string(), "[B=3, A=2]");
    assert_eq!(a.repeat_dims("A ... -> A n ...", b)?.shape().to_string(), "[A=2, n=2, B=3]");
    let twice = a.repeat_dims("A ... -> A B ...", [("B", 2)]).unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::DuplicateName);
    assert_eq!(a.rearrange("A B -> (é: A B)", []).unwrap_err().kind(), ErrorKind::InvalidName);
    assert_eq!(a.rename(None)?.rearrange("é B -> B é", [])?.sizes(), [3, 2]);
    Ok(())
}

/// Faults of patterns, marked with a caret.
#[test]
fn faults() -> Result<()> {
    let x = Tensor::zeros([2, 3, 4])?;
    let fault = |pattern: &str, mark: &str| {
        let error = x.repeat_dims(pattern, []).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Value, "{error}");
        assert!(error.message().ends_with(&format!("\n    {pattern}\n    {mark}^")), "{error}");
    };
    fault("a b c", "     ");
    fault("a -> b -> c", "       ");
    fault("a (b c -> a b c", "  ");
    fault("a b) c -> c b a", "   ");
    fault("a ((b) c) d -> a b c d", "   ");
    fault("a, b c -> a b c", " ");
    fault("é b. c -> a b c", "   ");
    fault("a _b c -> c a", "  ");
    fault("a 1b c -> c a", "  ");
    fault("a b a -> b a", "    ");
    fault("... a ... -> a ...", "      ");
    fault("(...) c -> c ...", "");
    fault("a b c -> ... a b c", "         ");
    fault("a b c -> a b", "    ");
    fault("a b c -> a b c d", "               ");
    fault("a b 0 -> a b", "    ");
    fault("a b c -> a b c *", "               ");
    fault("(a b: c) d e -> a b c d e", "    ");
    let sizes = |pattern: &str, sizes: &[(&str, usize)]| {
        let error = x.rearrange(pattern, sizes).unwrap_err();
        (error.kind(), error.message().to_string())
    };
    let unused = sizes("time b c -> c b time", &[("tme", 2)]);
    assert_eq!(unused.0, ErrorKind::Value);
    assert!(unused.1.ends_with("did you mean 'time'?"), "{}", unused.1);
    assert_eq!(sizes("a b c -> c b a", &[("a", 2), ("a", 2)]).0, ErrorKind::Value);
    assert_eq!(sizes("(a d) b c -> a b c d", &[]).0, ErrorKind::Value);
    assert_eq!(sizes("a b (c d) -> a b c d", &[("c", 3)]).0, ErrorKind::Shape);
    assert_eq!(sizes("a b (c d) -> a b c d", &[("c", 0)]).0, ErrorKind::Shape);
    assert_eq!(sizes("a b (c d) -> a b c d", &[("c", usize::MAX)]).0, ErrorKind::Value);
    assert_eq!(sizes("a b c -> c b a", &[("a", 3)]).0, ErrorKind::Shape);
    assert_eq!(sizes("a b -> b a", &[]).0, ErrorKind::Shape);
    assert_eq!(sizes("a b c d ... -> a b c d ...", &[]).0, ErrorKind::Shape);
    let large = Tensor::zeros([1, 0])?.repeat_dims("a b -> (a m n) b", [("m", 1 << 40), ("n", 1 << 40)]);
    assert_eq!(large.unwrap_err().kind(), ErrorKind::OutOfMemory);
    assert_eq!(x.reduce("a b c -> a", "maxx", []).unwrap_err().kind(), ErrorKind::Value);
    Ok(())
}

/// Words of an equation, against sums over positions.
#[test]
fn einsum_in_words() -> Result<()> {
    let product = |equation: &'static str| move |x: &[Tensor]| Tensor::einsum(equation, x);
    let words = "row inner, inner col -> col row";
    let (a, b) = (Tensor::rand([("row", 2), ("inner", 3)])?, Tensor::rand([("inner", 3), ("col", 4)])?);
    let y = product(words)(&[a.clone(), b.clone()])?;
    assert_eq!(y.shape().to_string(), "[col=4, row=2]");
    assert!(y.rename(None)?.allclose(&a.rename(None)?.matmul(&b.rename(None)?)?.t()?)?);
    assert!(!product(words)(&[a.rename(None)?, b.rename(None)?])?.has_names());
    let given = EinsumOptions::new().names(["x", "y"]);
    assert_eq!(*Tensor::einsum_with(words, &[&a, &b], given)?.names(), ["x", "y"]);
    let error = product(words)(&[a.t()?, b.clone()]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NameMismatch);
    let (vector, square) = (Tensor::ones([3])?, Tensor::ones([3, 3])?);
    let total = |equation: &str, x: &[&Tensor]| Tensor::einsum(equation, x)?.sum(..)?.item::<f64>();
    assert_eq!(total("time, time ->", &[&vector, &vector])?, 3.0);
    assert_eq!(total("time,time->time", &[&vector, &vector])?, 3.0);
    assert_eq!(total("a_1 a_1 ->", &[&square])?, 3.0);
    assert_eq!(total("ij, jk -> ik", &[&square, &square])?, 27.0); // letters
    assert_eq!(total("ab cd -> ab", &[&Tensor::ones([1, 2, 3, 4])?])?, 24.0); // letters
    let x = Tensor::rand([("N", 2), ("M", 3), ("in", 4)])?;
    let weight = Tensor::rand([("in", 4), ("out", 5)])?;
    assert_eq!(
        Tensor::einsum("... in, in out -> ... out", &[&x, &weight])?.shape().to_string(),
        "[N=2, M=3, out=5]"
    );
    for (equation, kind) in [
        ("row col", ErrorKind::Value),
        ("row col -> other", ErrorKind::Value),
        ("row col -> row row", ErrorKind::Value),
        ("row 1 -> row", ErrorKind::Value),
        ("(row col) x -> x", ErrorKind::Value),
        ("row c-l -> row", ErrorKind::Value),
        ("row col depth -> row", ErrorKind::Shape),
        ("row row -> row, row", ErrorKind::Value),
    ] {
        assert_eq!(Tensor::einsum(equation, &[&square]).unwrap_err().kind(), kind, "{equation}");
    }
    Ok(())
}

/// Packing flattens and concatenates what meets `*`; unpacking undoes it, with names and gradients.
#[test]
fn packs() -> Result<()> {
    let parts = [
        Tensor::rand([("N", 2), ("embed", 3)])?,
        Tensor::rand([("N", 2), ("time", 4), ("embed", 3)])?,
        Tensor::rand([("N", 2), ("H", 2), ("W", 3), ("embed", 3)])?,
    ];
    let (packed, shapes) = Tensor::pack(&parts, "N * embed")?;
    assert_eq!(packed.shape().to_string(), "[N=2, ?=11, embed=3]");
    assert_eq!(shapes.iter().map(Shape::to_string).collect::<Vec<_>>(), ["[]", "[time=4]", "[H=2, W=3]"]);
    for (n, e) in [(0, 0), (1, 2)] {
        assert_eq!(packed.item_at::<f64>([n, 0, e])?, parts[0].item_at::<f64>([n, e])?);
        assert_eq!(packed.item_at::<f64>([n, 3, e])?, parts[1].item_at::<f64>([n, 2, e])?);
        assert_eq!(packed.item_at::<f64>([n, 5 + 4, e])?, parts[2].item_at::<f64>([n, 1, 1, e])?);
    }
    for (part, again) in parts.iter().zip(packed.unpack(&shapes, "N * embed")?) {
        assert_eq!(part.shape(), again.shape());
        assert_eq!(part.to_vec::<f32>()?, again.to_vec::<f32>()?);
    }
    let sizes = |shapes: Vec<Vec<isize>>| -> Result<Vec<Vec<usize>>> {
        Ok(packed.unpack(shapes, "N * embed")?.iter().map(|x| x.sizes().to_vec()).collect())
    };
    assert_eq!(sizes(vec![vec![], vec![-1, 2], vec![4]])?, [vec![2, 3], vec![2, 3, 2, 3], vec![2, 4, 3]]);
    assert_eq!(sizes(vec![vec![11]])?, [[2, 11, 3]]);
    let kind = |shapes| sizes(shapes).unwrap_err().kind();
    assert_eq!(kind(vec![vec![3], vec![4]]), ErrorKind::Shape);
    assert_eq!(kind(vec![vec![3], vec![5, -1]]), ErrorKind::Shape);
    assert_eq!(kind(vec![vec![-1], vec![-1]]), ErrorKind::Value);
    assert_eq!(kind(vec![vec![12], vec![-1]]), ErrorKind::Shape);
    let refused = |x: &Tensor, pattern: &str| Tensor::pack(&[x], pattern).unwrap_err().kind();
    assert_eq!(refused(&parts[1], "embed * N"), ErrorKind::NameMismatch);
    assert_eq!(refused(&parts[1], "N time embed C *"), ErrorKind::Shape);
    for pattern in ["N embed", "N * *", "N (a b) *", "N ... *", "N 1 *", "N *-", "*N"] {
        assert_eq!(refused(&parts[2], pattern), ErrorKind::Value, "{pattern}");
    }
    assert_eq!(Tensor::pack([] as [&Tensor; 0], "*").unwrap_err().kind(), ErrorKind::Value);
    assert_eq!(packed.unpack(&shapes, "embed * N").unwrap_err().kind(), ErrorKind::NameMismatch);
    assert_eq!(packed.unpack(&shapes, "N (token: *) embed")?.len(), 3);
    assert_eq!(packed.unpack(&shapes, "N *").unwrap_err().kind(), ErrorKind::Shape);
    let named = packed.rename(["N", "token", "embed"])?;
    assert_eq!(named.unpack(&shapes, "N (other: *) embed").unwrap_err().kind(), ErrorKind::NameMismatch);
    let x = parts[1].detach().requiring_grad()?;
    let (packed, shapes) = Tensor::pack([&x, &parts[2]], "N * embed")?;
    packed.unpack(&shapes, "N * embed")?[0].mul(3.0)?.sum(..)?.backward()?;
    assert_eq!(x.grad().expect("it was computed").to_vec::<f32>()?, [3.0; 24]);
    Ok(())
}

/// Indices by name, in the forms that a caller can write.
#[test]
fn at_by_name() -> Result<()> {
    let x = Tensor::arange(0, 24, 1)?.reshape([("N", 2), ("time", 4), ("C", 3)])?;
    let same = |y: Result<Tensor>, indices: &[Index]| -> Result<()> {
        let (y, z) = (y?, x.index(indices)?);
        assert_eq!((y.shape(), y.to_vec::<i64>()?), (z.shape(), z.to_vec::<i64>()?));
        Ok(())
    };
    let all = || Index::from(..);
    same(x.at([("time", 1..3)]), &[all(), (1..3).into()])?;
    same(x.at([("C", -1), ("N", 0)]), &[0.into(), all(), Index::At(-1)])?;
    same(x.at((("time", ..-1), ("C", 0))), &[all(), (..-1).into(), 0.into()])?;
    let (rows, cols) = (Tensor::new([1, 0])?, Tensor::new([2, 2])?);
    same(x.at([("time", &rows), ("C", &cols)]), &[all(), (&rows).into(), (&cols).into()])?;
    let every_second = Index::Slice { start: None, end: None, step: 2 };
    let mask = Tensor::new([true, false, true])?;
    same(
        x.at((("time", every_second.clone()), (0, 1), ("C", &mask))),
        &[1.into(), every_second, (&mask).into()],
    )?;
    let kind = |y: Result<Tensor>| y.unwrap_err().kind();
    assert_eq!(kind(x.at([("times", 0)])), ErrorKind::NameNotFound);
    assert_eq!(kind(x.at([("time", 4)])), ErrorKind::Index);
    assert_eq!(kind(x.at([("time", 0), ("time", 1)])), ErrorKind::DimRange);
    assert_eq!(kind(x.at([("time", Index::Ellipsis)])), ErrorKind::Unsupported);
    Ok(())
}

/// Dims that both have are matched by name, in any order of both.
#[test]
fn index_by_aligns() -> Result<()> {
    let x =
        || vec![values("N=2 V=4 time=3 E=2"), index("time=3 K=2 N=2", [0, 1, 2, 3, -1, 0, 1, 1, 2, 0, 3, 2])];
    let by_name = |x: &[Tensor]| x[0].index_by("V", &x[1]);
    other("index_by", by_name, x(), "N=2 K=2 time=3 E=2", |x, i| {
        x[0].at(&[i[0], place(&x[1], &[i[2], i[1], i[0]]), i[2], i[3]])
    });
    let x = Tensor::rand([("time", 3), ("V", 4), ("N", 2)])?;
    let ids = Tensor::new([[3, 0, 1], [1, 1, 2]])?.rename(["N", "time"])?;
    let y = x.index_by("V", &ids)?;
    assert_eq!(y.shape().to_string(), "[time=3, N=2]");
    let again = x.align_to(["V", "N", "time"])?.index_by("V", &ids.align_to(["time", "N"])?)?;
    assert_eq!(again.align_as(&y)?.to_vec::<f32>()?, y.to_vec::<f32>()?);
    let want =
        sum(6, |k| x.item_at::<f64>([k % 3, ids.item_at::<usize>([k / 3, k % 3]).unwrap(), k / 3]).unwrap());
    assert!((y.sum(..)?.item::<f64>()? - want).abs() < 1e-5);
    let kind = |ids: &Tensor| x.index_by("V", ids).unwrap_err().kind();
    assert_eq!(kind(&ids.rename(["N", "V"])?), ErrorKind::NameMismatch);
    assert_eq!(kind(&ids.rename(["time", "N"])?), ErrorKind::Shape);
    assert_eq!(kind(&ids.add(1)?), ErrorKind::Index);
    assert_eq!(kind(&ids.to(DType::F32)?), ErrorKind::DType);
    assert_eq!(x.index_by("W", &ids).unwrap_err().kind(), ErrorKind::NameNotFound);
    Ok(())
}
