//! Names that do not fit: misspelt, missing, at another place, or of other dims.

use super::{Advice, follow};
use namegrad::autograd::{BackwardOptions, scan};
use namegrad::names;
use namegrad::prelude::*;

pub(super) fn follow(advice: &mut Advice) -> Result<()> {
    naming(advice)?;
    meeting(advice)?;
    products(advice)?;
    positions(advice)?;
    writing(advice)?;
    patterns(advice)?;
    names::strict(|| strictly(advice))
}

fn naming(advice: &mut Advice) -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 3)])?;
    let plain = Tensor::ones([2, 3])?;
    follow!(advice, x.sum("c") => { assert_eq!(*x.sum("C")?.names(), ["N"]) });
    follow!(advice, plain.sum("C") => {
        let x = plain.refine_names(["...", "C"])?;
        assert_eq!(x.sum("C")?.sizes(), [2])
    } { let x = &plain; assert_eq!(x.refine_names(["...", "C"])?.name(0), None) });
    let image = plain.refine_names(["N", "..."])?;
    follow!(advice, image.sum("H") => { let x = &image; assert_eq!(*x.refine_names(["...", "H"])?.names(), ["N", "H"]) });
    let vector = Tensor::ones([3])?;
    follow!(advice, vector.sum("C") => { let x = &vector; assert_eq!(x.refine_names(["C"])?.sum("C")?.item::<f32>()?, 3.) });
    follow!(advice, Tensor::ones([("a b", 2)]) => { assert_eq!(*Tensor::ones([("a_b", 2)])?.names(), ["a_b"]) });
    follow!(advice, Tensor::ones([("1st", 2)]) => { assert_eq!(*Tensor::ones([("_1st", 2)])?.names(), ["_1st"]) });
    follow!(advice, Tensor::ones([("", 2)]) => { assert!(!Tensor::ones([(None, 2)])?.has_names()) });
    follow!(advice, x.rename(["a"]) => { assert_eq!(*x.rename(["a", "..."])?.names(), ["a", "C"]) });
    follow!(advice, TensorOptions::new().names(["N"]).ones([2, 3]) => {
        let options = TensorOptions::new().names([Some("N"), None]);
        assert_eq!(options.ones([2, 3])?.name(0).map(|name| name.as_str()), Some("N"))
    });
    follow!(advice, x.align_to(["...", "C", "..."]) => { assert_eq!(*x.align_to(["...", "C"])?.names(), ["N", "C"]) });
    follow!(advice, x.refine_names(["N", "D"]) => { assert_eq!(*x.rename(["N", "D"])?.names(), ["N", "D"]) });
    follow!(advice, x.align_to(["C"]) => { assert_eq!(*x.align_to(["C", "..."])?.names(), ["C", "N"]) });
    let half = x.rename([None, Some("C")])?;
    follow!(advice, half.align_to(["C"]) => { let x = &half; assert_eq!(x.align_to(["C", "..."])?.sizes(), [3, 2]) });
    let y = Tensor::ones([("N", 2), ("D", 3)])?;
    follow!(advice, x.align_as(&y) => { assert_eq!(*x.rename([("C", "D")])?.align_as(&y)?.names(), ["N", "D"]) });
    {
        let (x, y) = (&plain, &x);
        follow!(advice, x.align_as(y) => { assert_eq!(*x.refine_names(["N", "C"])?.align_as(&y)?.names(), ["N", "C"]) });
    }
    {
        let y = &plain;
        follow!(advice, x.align_as(y) => { assert_eq!(*x.align_as(&y.refine_names(["N", "C"])?)?.names(), ["N", "C"]) });
    }
    follow!(advice, x.expand([("H", 4), ("N", 2)]) => { assert_eq!(x.expand([("N", -1), ("C", -1)])?.sizes(), [2, 3]) });
    let mut out = Tensor::ones([("C", 2), ("D", 3)])?;
    follow!(advice, x.square()?.write_to(&mut out) => {
        let mut out = out.rename(["N", "C"])?;
        assert_eq!(*x.square()?.write_to(&mut out)?.names(), ["N", "C"])
    } { assert!(out.rename(["N", "C"])?.has_names()) });
    Ok(())
}

fn meeting(advice: &mut Advice) -> Result<()> {
    let x = Tensor::arange(0.0, 6.0, 1.0)?.reshape([("N", 2), ("in", 3)])?;
    let y = x.t()?;
    follow!(advice, x.add(&y) => { assert!(x.add(&y.align_as(&x)?)?.allclose(&x.mul(2)?)?) });
    follow!(advice, x.clone().add_(&y).map(drop) => {
        let (mut x, twice) = (x.clone(), x.mul(2)?);
        x.add_(&y.align_as(&x)?)?;
        assert!(x.allclose(&twice)?)
    });
    follow!(advice, x.clone().copy_(&y).map(drop) => {
        let (mut x, same) = (x.zeros_like()?, x.clone());
        let src = &y;
        x.copy_(&src.align_as(&x)?)?;
        assert!(x.allclose(&same)?)
    });
    let (narrow, wide) =
        (Tensor::ones([("in", 3), ("N", 2)])?, Tensor::ones([("K", 2), ("N", 2), ("in", 3)])?);
    {
        let (x, y) = (&narrow, &wide);
        follow!(advice, x.add(y) => { assert_eq!(x.align_as(&y)?.add(&y)?.sizes(), [2, 2, 3]) });
    }
    follow!(advice, x.lerp(&y, 0.5) => {
        let end = &y;
        assert!(x.lerp(&end.align_as(&x)?, 0.5)?.allclose(&x)?)
    });
    let y = Tensor::ones([("N", 2), ("inn", 3)])?;
    follow!(advice, x.add(&y) => { assert_eq!(*x.add(&y.rename([("inn", "in")])?)?.names(), ["N", "in"]) });
    follow!(advice, x.lerp(&y, 0.5) => { let end = &y; assert_eq!(x.lerp(&end.rename([("inn", "in")])?, 0.5)?.numel(), 6) });
    let y = Tensor::ones([("in", 3), ("W", 4)])?;
    follow!(advice, x.mul(&y) => { assert_eq!(x.align_to(["N", "in", "W"])?.mul(&y.align_to(["N", "in", "W"])?)?.sizes(), [2, 3, 4]) });
    follow!(advice, x.lerp(&y, 0.5) => {
        let end = &y;
        let (x, end) = (x.align_to(["N", "in", "W"])?, end.align_to(["N", "in", "W"])?);
        assert_eq!(x.lerp(&end, 0.5)?.sizes(), [2, 3, 4])
    });
    let y = x.t()?;
    follow!(advice, Tensor::cat([&x, &y], "N") => { assert_eq!(Tensor::cat([&x, &y.align_as(&x)?], "N")?.sizes(), [4, 3]) });
    follow!(advice, Tensor::stack([&x, &y], 0) => { assert!(Tensor::stack([&x, &y.align_as(&x)?], 0)?.select(0, 1)?.allclose(&x)?) });
    let y = Tensor::ones([("N", 2), ("out", 3)])?;
    follow!(advice, Tensor::cat([&x, &y], 0) => { assert_eq!(Tensor::cat([&x, &y.rename([("out", "in")])?], 0)?.sizes(), [4, 3]) });
    let y = Tensor::ones([("in", 3), ("N", 2)])?;
    follow!(advice, x.matmul(&y) => { assert_eq!(*x.matmul(&y.rename([("N", "N_")])?)?.names(), ["N", "N_"]) });
    Ok(())
}

/// `from + 0, from + 1, ..` in a shape with names.
fn counted<const K: usize>(shape: [(&str, usize); K], from: f64) -> Result<Tensor> {
    let numel: usize = shape.iter().map(|(_, size)| size).product();
    Tensor::arange(from, from + numel as f64, 1.0)?.reshape(shape)
}

/// Factors and sums with dims in another order.
fn products(advice: &mut Advice) -> Result<()> {
    let (x, y) =
        (counted([("N", 2), ("A", 3), ("B", 4)], 0.0)?, counted([("N", 2), ("B", 4), ("C", 5)], 1.0)?);
    let right = x.bmm(&y)?;
    {
        let y = y.align_to(["B", "N", "C"])?;
        follow!(advice, x.bmm(&y) => { assert!(x.bmm(&y.align_to(["N", "B", "C"])?)?.equal(&right)?) });
        follow!(advice, x.matmul(&y) => { assert!(x.matmul(&y.align_to(["N", "B", "C"])?)?.equal(&right)?) });
    }
    {
        let x = x.align_to(["A", "N", "B"])?;
        follow!(advice, x.bmm(&y) => { assert!(x.align_to(["N", "A", "B"])?.bmm(&y)?.equal(&right)?) });
    }
    {
        // All sizes are the same, so that the names alone tell.
        let (x, y) =
            (counted([("A", 2), ("N", 2), ("B", 2)], 0.0)?, counted([("N", 2), ("B", 2), ("C", 2)], 1.0)?);
        let right = x.align_to(["N", "A", "B"])?.bmm(&y)?;
        follow!(advice, x.bmm(&y) => { assert!(x.align_to(["N", "A", "B"])?.bmm(&y)?.equal(&right)?) });
    }
    let (a, b) = (counted([("A", 2), ("K", 3)], 0.0)?, counted([("K", 3), ("C", 4)], 1.0)?);
    let x = counted([("C", 4), ("A", 2)], 5.0)?;
    let right = a.mm(&b)?.add(&x.t()?)?;
    follow!(advice, x.addmm(&a, &b) => { assert!(x.align_to(["A", "C"])?.addmm(&a, &b)?.equal(&right)?) });
    follow!(advice, x.clone().addmm_(&a, &b).map(drop) => {
        let mut x = x.align_to(["A", "C"])?;
        assert!(x.addmm_(&a, &b)?.equal(&right)?)
    });
    let x = counted([("A", 2)], 5.0)?;
    follow!(advice, x.addmm(&a, &b) => { assert_eq!(x.align_to(["A", "C"])?.addmm(&a, &b)?.sizes(), [2, 4]) });
    let (a, b) = (a.select("K", 1)?, b.select("K", 0)?);
    let x = counted([("C", 4), ("A", 2)], 5.0)?;
    let right = a.outer(&b)?.add(&x.t()?)?;
    follow!(advice, x.addr(&a, &b) => { assert!(x.align_to(["A", "C"])?.addr(&a, &b)?.equal(&right)?) });
    let (a, b) =
        (counted([("N", 2), ("A", 3), ("B", 4)], 0.0)?, counted([("N", 2), ("B", 4), ("C", 5)], 1.0)?);
    let right = a.bmm(&b)?.sum("N")?.add(&counted([("C", 5), ("A", 3)], 5.0)?.t()?)?;
    {
        let x = counted([("C", 5), ("A", 3)], 5.0)?;
        follow!(advice, x.addbmm(&a, &b) => { assert!(x.align_to(["A", "C"])?.addbmm(&a, &b)?.equal(&right)?) });
    }
    let x = counted([("A", 3), ("N", 2), ("C", 5)], 5.0)?;
    let right = a.bmm(&b)?.add(&x.align_to(["N", "A", "C"])?)?;
    follow!(advice, x.baddbmm(&a, &b) => { assert!(x.align_to(["N", "A", "C"])?.baddbmm(&a, &b)?.equal(&right)?) });
    // The names of the factors are those of the call.
    let (x, a, b) =
        (Tensor::ones([2, 2])?, Tensor::ones([("N", 2), ("K", 3)])?, Tensor::ones([("K", 3), ("N", 2)])?);
    follow!(advice, x.addmm(&a, &b) => { assert_eq!(*x.addmm(&a, &b.rename([("N", "N_")])?)?.names(), ["N", "N_"]) });
    Ok(())
}

/// Dims in another order where elements are written, read one by one, or given as a gradient.
fn writing(advice: &mut Advice) -> Result<()> {
    let x = counted([("N", 2), ("C", 3)], 0.0)?;
    let mask = x.gt(1)?;
    {
        let mask = mask.t()?;
        follow!(advice, x.masked_scatter(&mask, &x) => { assert!(x.masked_scatter(&mask.align_as(&x)?, &x).is_ok()) });
    }
    let source = x.mul(2)?.t()?;
    follow!(advice, x.masked_scatter(&mask, &source) => {
        let written = x.masked_scatter(&mask, &source.align_as(&x)?)?;
        assert_eq!(written.to_vec::<f32>()?, [0., 1., 0., 2., 4., 6.])
    });
    let index = Tensor::new([[5, 4, 3], [2, 1, 0]])?.refine_names(["P", "Q"])?;
    let source = index.mul(10)?.float()?.t()?;
    follow!(advice, x.put(&index, &source) => {
        assert!(x.put(&index, &source.align_as(&index)?)?.equal(&x.full_like(10)?.mul(&x)?)?)
    });
    let y = x.clone().requiring_grad()?.square()?;
    let gradient = x.t()?;
    for named in [false, true] {
        let options = BackwardOptions::new().retain_graph(true).named(named);
        follow!(advice, y.backward_with(Some(&gradient), options) => {
            assert!(y.backward_with(Some(&gradient.align_as(&y)?), options).is_ok())
        });
    }
    let mut out = Tensor::zeros([("C", 3), ("N", 2)])?;
    {
        let y = x.square()?;
        follow!(advice, y.clone().write_to(&mut out) => {
            let mut out = Tensor::zeros([("C", 3), ("N", 2)])?;
            assert!(y.align_as(&out)?.write_to(&mut out)?.equal(&x.square()?.t()?)?)
        });
    }
    let mut empty = Tensor::zeros([("C", 0), ("N", 0)])?;
    {
        let y = x.square()?;
        follow!(advice, y.clone().write_to(&mut empty) => {
            let mut out = Tensor::zeros([2, 3])?;
            assert!(y.write_to(&mut out)?.equal(&x.square()?)?)
        });
    }
    let merged = [("N", 3), ("pair", 2)];
    follow!(advice, x.reshape(merged) => { assert_eq!(*x.rename(None)?.reshape([("N", 3), ("pair", 2)])?.names(), ["N", "pair"]) });
    let other = Tensor::zeros([("C", 3), ("N", 2)])?;
    follow!(advice, x.view_as(&other) => { assert!(x.align_to(["C", "N"])?.equal(&x.t()?)?) });
    follow!(advice, x.reshape_as(&other) => { assert!(x.align_to(["C", "N"])?.equal(&x.t()?)?) });
    follow!(advice, x.reshape([("C", 3), ("N", 2)]) => { assert!(x.align_to(["C", "N"])?.equal(&x.t()?)?) });
    follow!(advice, x.reshape([("C", 3), ("M", 1), ("N", 2)]) => {
        assert_eq!(x.align_to(["C", "N"])?.reshape([("C", 3), ("M", 1), ("N", 2)])?.to_vec::<f32>()?, [0., 3., 1., 4., 2., 5.])
    });
    follow!(advice, x.reshape([("C", 3), ("N", 1), ("M", 2)]) => {
        assert_eq!(x.rename(None)?.reshape([("C", 3), ("N", 1), ("M", 2)])?.to_vec::<f32>()?, [0., 1., 2., 3., 4., 5.])
    });
    follow!(advice, x.clone().resize_as_(&other).map(drop) => {
        let mut x = x.clone();
        assert_eq!(*x.resize_as_(&other.align_as(&x)?)?.names(), ["N", "C"])
    });
    Ok(())
}

fn positions(advice: &mut Advice) -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 3)])?;
    let index = Tensor::zeros([("C", 3), ("N", 1)])?.long()?;
    follow!(advice, x.gather(&index, "N") => { assert_eq!(x.gather(&index.align_as(&x)?, "N")?.sizes(), [1, 3]) });
    // The positions of an index without the dim, in any order.
    let index = Tensor::new([2, 0])?.rename(["N"])?;
    follow!(advice, x.gather(&index, "C") => { assert_eq!(*x.gather(&index.align_as(&x)?, "C")?.names(), ["N", "C"]) });
    let index = Tensor::zeros([("N", 1), ("D", 3)])?.long()?;
    follow!(advice, x.gather(&index, "N") => { assert_eq!(x.gather(&index.rename([("D", "C")])?, "N")?.sizes(), [1, 3]) });
    let x = Tensor::ones([("time", 3), ("N", 2)])?;
    let init = Tensor::ones([("N", 2)])?;
    let zeros = init.zeros_like()?.long()?;
    follow!(advice, x.fold("time", zeros.clone(), |state, x| state.add(&x)) => {
        let init = &zeros;
        assert_eq!(x.fold("time", init.to(DType::F32)?, |state, x| state.add(&x))?.dtype(), DType::F32)
    });
    follow!(advice, x.fold("time", init.clone(), |state, x| state.add(x.to(DType::F64)?)) => {
        let sum = x.fold("time", init.clone(), |state, x| {
            let state = state.add(x.to(DType::F64)?)?;
            let state = state.to(DType::F32)?;
            Ok(state)
        })?;
        assert_eq!(sum.to_vec::<f32>()?, [4., 4.])
    });
    let pairs = Tensor::ones([("N", 2), ("C", 3)])?;
    follow!(advice, x.fold("time", pairs.clone(), |state, _| state.t()) => {
        let kept = x.fold("time", pairs.clone(), |state, _| state.t()?.align_to(["N", "C"]))?;
        let state = &kept;
        assert_eq!(state.align_to(["N", "C"])?.sizes(), [2, 3])
    });
    let unnamed = Tensor::zeros([2])?;
    follow!(advice, x.fold("time", unnamed.clone(), |state, x| state.add(&x)) => {
        let init = &unnamed;
        let sum = x.fold("time", init.refine_names(["N"])?, |state, x| state.add(&x))?;
        assert_eq!(*sum.names(), ["N"])
    });
    let (edges, to) = (Tensor::ones([("feature", 3), ("edge", 2)])?, Tensor::new([0, 1])?.rename(["edge"])?);
    follow!(advice, edges.segment_sum(&to, "feature", ("node", 2)) => {
        assert_eq!(edges.segment_sum(&to, "edge", ("node", 2))?.sizes(), [3, 2])
    });
    follow!(advice, scan(&x, "time", init.clone(), |carry, x| Ok((carry, x.rename(["time"])?))) => {
        let (_, scanned) = scan(&x, "time", init.clone(), |carry, x| {
            let y = x.rename(["time"])?;
            Ok((carry, y.rename([("time", "time_")])?))
        })?;
        assert_eq!(scanned.sizes(), [3, 2])
    });
    Ok(())
}

/// Patterns on tensors with other names, or in another order.
fn patterns(advice: &mut Advice) -> Result<()> {
    let images = Tensor::ones([("N", 2), ("H", 4), ("W", 6)])?;
    let x = images.align_to(["W", "N", "H"])?;
    follow!(advice, x.rearrange("N H W -> H N W", []) => {
        assert_eq!(x.align_to(["N", "H", "W"])?.rearrange("N H W -> H N W", [])?.sizes(), [4, 2, 6])
    });
    let maps = images.align_to(["N", "W", "H"])?;
    follow!(advice, maps.rearrange("N (h p) W -> N W h p", [("p", 2)]) => {
        let x = &maps;
        assert_eq!(x.align_to(["N", "...", "W"])?.rearrange("N (h p) W -> N W h p", [("p", 2)])?.sizes(), [2, 6, 2, 2])
    });
    let (tokens, shapes) = Tensor::pack([&images], "N (token: *) W")?;
    follow!(advice, tokens.unpack(&shapes, "N (place: *) W") => {
        assert_eq!(tokens.unpack(&shapes, "N (token: *) W")?[0].sizes(), [2, 4, 6])
    });
    let x = images;
    follow!(advice, x.rearrange("n H ... -> H n ...", []) => {
        assert_eq!(x.rearrange("N H ... -> H N ...", [])?.sizes(), [4, 2, 6])
    });
    follow!(advice, x.reduce("N (h 2) (w 2) -> N h w", "mean", []) => {
        assert_eq!(x.reduce("N (H: h 2) (W: w 2) -> N h w", "mean", [])?.sizes(), [2, 2, 3])
    });
    follow!(advice, x.long()?.reduce("N H W -> N", "mean", []) => {
        let x = x.long()?;
        assert_eq!(x.to(DType::F32)?.reduce("N H W -> N", "mean", [])?.sizes(), [2])
    });
    let y = Tensor::ones([("W", 6), ("out", 5)])?;
    follow!(advice, Tensor::einsum("N H in, in out -> N H out", [&x, &y]) => {
        assert_eq!(Tensor::einsum("N H W, W out -> N H out", [&x, &y])?.sizes(), [2, 4, 5])
    });
    let swapped = Tensor::ones([("in", 2), ("N", 3)])?;
    let weight = Tensor::ones([("in", 2), ("out", 5)])?;
    follow!(advice, Tensor::einsum("N in, in out -> N out", [&swapped, &weight]) => {
        let x = &swapped;
        assert_eq!(Tensor::einsum("N in, in out -> N out", [&x.align_to(["N", "in"])?, &weight])?.sizes(), [3, 5])
    });
    follow!(advice, x.rearrange("n h w -> n w h", []) => {
        assert_eq!(x.rearrange("N H W -> N W H", [])?.sizes(), [2, 6, 4])
    });
    let index = Tensor::zeros([("N", 2)])?;
    follow!(advice, x.index_by("W", &index) => { assert_eq!(x.index_by("W", &index.to(DType::I64)?)?.sizes(), [2, 4]) });
    Ok(())
}

fn strictly(advice: &mut Advice) -> Result<()> {
    let (x, plain) = (Tensor::ones([("N", 2), ("in", 3)])?, Tensor::ones([2, 3])?);
    let y = Tensor::ones([("word", 3), ("out", 4)])?;
    follow!(advice, x.matmul(&y) => { assert_eq!(x.matmul(&y.rename([("word", "in")])?)?.sizes(), [2, 4]) });
    let y = y.rename([None, Some("out")])?;
    follow!(advice, x.matmul(&y) => { assert_eq!(x.matmul(&y.refine_names(["in", "out"])?)?.sizes(), [2, 4]) });
    let y = Tensor::ones([("in", 3), ("out", 4)])?;
    {
        let x = &plain;
        follow!(advice, x.matmul(&y) => { assert_eq!(x.refine_names([None, Some("in")])?.matmul(&y)?.sizes(), [2, 4]) });
    }
    let index = Tensor::zeros([1, 3])?.long()?;
    follow!(advice, x.gather(&index, "N") => { assert_eq!(x.gather(&index.refine_names([None, Some("in")])?, "N")?.sizes(), [1, 3]) });
    Ok(())
}
