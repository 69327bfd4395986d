//! Sizes, dtypes, indices and values that an op refuses.

use super::{Advice, follow};
use namegrad::core::{NamedTensor, Triangle};
use namegrad::names;
use namegrad::options::*;
use namegrad::prelude::*;

pub(super) fn follow(advice: &mut Advice) -> Result<()> {
    sizes(advice)?;
    products(advice)?;
    devices(advice)?;
    dtypes(advice)?;
    indices(advice)?;
    values(advice)?;
    windows(advice)
}

/// The numbers 0, 1, 2, .. in `x`.
fn counted(shape: [usize; 2]) -> Result<Tensor> {
    Tensor::arange(0.0, (shape[0] * shape[1]) as f64, 1.0)?.reshape(shape)
}

fn devices(advice: &mut Advice) -> Result<()> {
    let (x, y) = (counted([2, 3])?, counted([2, 3])?.to_device(Device::Meta)?);
    follow!(advice, x.mul(&y) => { assert_eq!(x.to_device(Device::Meta)?.mul(&y)?.sizes(), [2, 3]) });
    let (x, y) = (y, x);
    follow!(advice, x.mul(&y) => { assert_eq!(x.mul(&y.to_device(Device::Meta)?)?.sizes(), [2, 3]) });
    Ok(())
}

fn sizes(advice: &mut Advice) -> Result<()> {
    let x = counted([2, 3])?;
    let named = x.rename(["N", "C"])?;
    let y = Tensor::new([1.0, 2.0])?;
    follow!(advice, x.mul(&y) => { assert_eq!(x.mul(&y.unsqueeze(1)?)?.to_vec::<f32>()?, [0., 1., 2., 6., 8., 10.]) });
    let (x, y) = (y, x);
    follow!(advice, x.mul(&y) => { assert_eq!(x.unsqueeze(1)?.mul(&y)?.to_vec::<f32>()?, [0., 1., 2., 6., 8., 10.]) });
    let (x, y) = (y, Tensor::ones([4, 2, 3])?);
    follow!(advice, x.clone().add_(&y) => {
        let x = x.add(&y)?;
        assert_eq!(x.sizes(), [4, 2, 3]);
    });
    follow!(advice, x.t()?.view([6]) => { assert_eq!(x.t()?.reshape([6])?.to_vec::<f32>()?, x.t()?.flatten(.., None)?.to_vec::<f32>()?) }
        { let x = x.t()?; assert_eq!(x.reshape([6])?.numel(), 6) });
    follow!(advice, x.t()?.view([("a", 6)]) => { let x = x.t()?; assert_eq!(*x.reshape([("a", 6)])?.names(), ["a"]) });
    follow!(advice, x.t()?.view((("a", 6), 1)) => { let x = x.t()?; assert_eq!(*x.reshape((("a", 6), 1))?.names(), [Some("a"), None]) });
    follow!(advice, x.reshape([4, 2]) => { assert_eq!(x.reshape([-1, 2])?.sizes(), [3, 2]) });
    follow!(advice, named.reshape([("N", 4), ("D", 2)]) => {
        let x = &named;
        assert_eq!(*x.reshape([("N", 2), ("D", -1)])?.names(), ["N", "D"])
    });
    follow!(advice, x.expand([3]) => { assert_eq!(x.expand([-1, 3])?.sizes(), [2, 3]) });
    follow!(advice, x.expand([2, 6]) => { assert_eq!(x.expand([2, -1])?.sizes(), [2, 3]) }
        { assert_eq!(x.repeat([1, 2])?.sizes(), [2, 6]) });
    follow!(advice, x.expand([3, 3]) => { assert_eq!(x.expand([-1, 3])?.sizes(), [2, 3]) });
    follow!(advice, x.repeat([2]) => { assert_eq!(x.repeat([1, 2])?.sizes(), [2, 6]) });
    follow!(advice, Tensor::ones([2, 3, 4])?.t() => {
        let x = Tensor::ones([2, 3, 4])?;
        assert_eq!(x.transpose(-2, -1)?.sizes(), [2, 4, 3])
    });
    follow!(advice, named.permute(["N"]) => { let x = &named; assert_eq!(*x.permute(["N", "C"])?.names(), ["N", "C"]) });
    follow!(advice, x.sum(2) => { assert_eq!(x.sum(-1)?.sizes(), [2]) } { assert_eq!(x.sum(0)?.sizes(), [3]) });
    follow!(advice, x.flatten([] as [i32; 0], None) => { assert_eq!(x.flatten(.., None)?.sizes(), [6]) });
    let cube = Tensor::ones([("N", 2), ("C", 3), ("W", 4)])?;
    follow!(advice, cube.flatten(["N", "W"], "F") => {
        let x = &cube;
        assert_eq!(*x.align_to(["N", "W", "C"])?.flatten(["N", "W"], "F")?.names(), ["F", "C"])
    });
    follow!(advice, cube.rename(None)?.flatten([0, 2], "F") => {
        let x = cube.rename(None)?;
        assert_eq!(x.permute([0, 2, 1])?.flatten([0, 1], "F")?.sizes(), [8, 3])
    });
    follow!(advice, cube.unflatten("W", [("a", 3), ("b", 2)]) => {
        let x = &cube;
        assert_eq!(x.unflatten("W", [("a", -1), ("b", 2)])?.sizes(), [2, 3, 2, 2])
    });
    follow!(advice, x.unfold(0, 5, 1) => { assert_eq!(x.unfold(0, 2, 1)?.sizes(), [1, 3, 2]) });
    follow!(advice, x.unfold(0, 1, 0) => { assert_eq!(x.unfold(0, 1, 1)?.sizes(), [2, 3, 1]) });
    follow!(advice, x.diagonal(0, 0) => { assert_eq!(x.diagonal(0, 1)?.to_vec::<f32>()?, [0., 4.]) });
    follow!(advice, Tensor::ones([3])?.diagonal(0, 0) => {
        let x = Tensor::ones([3])?;
        assert_eq!(x.diag()?.sizes(), [3, 3])
    });
    follow!(advice, Tensor::ones([2, 3, 3])?.diag() => {
        let x = Tensor::ones([2, 3, 3])?;
        assert_eq!(x.diagonal(-2, -1)?.sizes(), [2, 3])
    });
    let tensors = [x.clone(), Tensor::ones([2, 4])?];
    follow!(advice, Tensor::cat(&tensors, 0) => { assert_eq!(Tensor::cat(&tensors, 1)?.sizes(), [2, 7]) } {
        assert_eq!(F::pad(&x, [(1, (0, 1))])?.sizes(), tensors[1].sizes())
    });
    follow!(advice, Tensor::stack(&tensors, 0) => { assert_eq!(Tensor::cat(&tensors, 1)?.sizes(), [2, 7]) } {
        assert_eq!(F::pad(&x, [(1, (0, 1))])?.sizes(), tensors[1].sizes())
    });
    let tensors = [Tensor::new(1.0)?, Tensor::new(2.0)?];
    follow!(advice, Tensor::cat(&tensors, 0) => { assert_eq!(Tensor::stack(&tensors, 0)?.to_vec::<f32>()?, [1., 2.]) });
    follow!(advice, x.item::<f32>() => { assert_eq!(x.to_vec::<f32>()?.len(), 6) } { assert_eq!(x.sum(..)?.item::<f32>()?, 15.) });
    follow!(advice, x.item_at::<f32>([1]) => { assert_eq!(x.item_at::<f32>([0, 0])?, 0.) });
    follow!(advice, x.is_nonzero() => { assert!(x.any(..)?.item::<bool>()?) } { assert!(!x.all(..)?.item::<bool>()?) });
    follow!(advice, x.value().clone().write_to(&mut Tensor::zeros([3])?.into_value()) => {
        let mut out = Tensor::zeros([2, 3])?.into_value();
        assert_eq!(x.value().clone().write_to(&mut out)?.sizes(), [2, 3])
    } );
    follow!(advice, x.masked_fill(x.gt(0)?, &Tensor::ones([3])?) => {
        let (mask, value) = (x.gt(0)?, Tensor::ones([3])?);
        assert_eq!(mask.choose(&value, &x)?.to_vec::<f32>()?, [0., 1., 1., 1., 1., 1.])
    });
    follow!(advice, NamedTensor::ones([2, 3])?.transpose(0, 1)?.as_slice::<f32>() => {
        let x = NamedTensor::ones([2, 3])?.transpose(0, 1)?;
        assert_eq!(x.contiguous()?.as_slice::<f32>()?.len(), 6)
    });
    Ok(())
}

fn products(advice: &mut Advice) -> Result<()> {
    let (x, y) = (counted([2, 3])?, counted([2, 3])?);
    follow!(advice, x.matmul(&y) => { assert_eq!(x.matmul(&y.mt()?)?.sizes(), [2, 2]) });
    {
        let y = counted([2, 4])?;
        follow!(advice, x.matmul(&y) => { assert_eq!(x.mt()?.matmul(&y)?.sizes(), [3, 4]) });
        let (x, y) =
            (x.rename(["N", "in"])?, Tensor::ones([("out", 4), ("in", 3)])?.rename([("out", "word")])?);
        follow!(advice, x.matmul(&y) => { assert_eq!(x.matmul(&y.mt()?)?.sizes(), [2, 4]) });
        let y = Tensor::ones([("in", 3), ("word", 5), ("rest", 4)])?;
        follow!(advice, x.matmul(&y) => { assert_eq!(*x.contract(&y, "in")?.names(), ["N", "word", "rest"]) });
    }
    let y = Tensor::ones([3])?;
    follow!(advice, x.mm(&y) => { assert_eq!(x.matmul(&y)?.sizes(), [2]) });
    let y = counted([3, 2])?;
    follow!(advice, x.mv(&y) => { assert_eq!(x.matmul(&y)?.sizes(), [2, 2]) });
    follow!(advice, x.bmm(&y) => { assert_eq!(x.matmul(&y)?.sizes(), [2, 2]) });
    follow!(advice, x.dot(&y) => { assert_eq!(x.matmul(&y)?.sizes(), [2, 2]) });
    {
        let (x, y) = (Tensor::ones([2, 2])?, Tensor::ones([2, 2])?);
        follow!(advice, x.dot(&y) => { assert_eq!(x.matmul(&y)?.sizes(), [2, 2]) } { assert_eq!(x.mul(&y)?.sum(..)?.item::<f32>()?, 4.) });
        let (x, y) = (counted([2, 3])?, counted([2, 3])?);
        follow!(advice, x.dot(&y) => { assert_eq!(x.mul(&y)?.sum(..)?.item::<f32>()?, 55.) });
        let (x, y) = (Tensor::ones([2, 3, 4])?, Tensor::ones([2, 5, 4])?);
        follow!(advice, x.bmm(&y) => { assert_eq!(x.bmm(&y.mt()?)?.sizes(), [2, 3, 5]) });
        let (x, y) = (Tensor::new(2.0)?, Tensor::ones([2])?);
        follow!(advice, x.matmul(&y) => { assert_eq!(x.mul(&y)?.to_vec::<f32>()?, [2., 2.]) });
    }
    let (one, two) = (Tensor::ones([3])?, Tensor::ones([3])?.to(DType::F64)?);
    follow!(advice, one.inner(&two) => {
        let (x, other) = (one.clone(), two.clone());
        assert_eq!(x.inner(&other.to(DType::F32)?)?.item::<f32>()?, 3.0)
    });
    let wide = y.to(DType::F64)?;
    follow!(advice, x.matmul(&wide) => { let y = wide.clone(); assert_eq!(x.matmul(&y.to(DType::F32)?)?.sizes(), [2, 2]) });
    follow!(advice, x.addmm(&x, &wide) => {
        let other = wide.to(DType::F32)?;
        assert_eq!(Tensor::ones([2])?.addmm(&x.to(DType::F32)?, &other)?.sizes(), [2, 2])
    });
    follow!(advice, x.gt(0)?.matmul(&y.gt(0)?) => {
        let (x, y) = (x.gt(0)?, y.gt(0)?);
        assert_eq!(x.to(DType::I64)?.matmul(&y.to(DType::I64)?)?.to_vec::<i64>()?, [2, 2, 2, 3])
    });
    follow!(advice, Tensor::einsum("ij,jk->ik", [&x, &wide]) => {
        let y = &wide;
        assert_eq!(Tensor::einsum("ij,jk->ik", [&x, &y.to(DType::F32)?])?.sizes(), [2, 2])
    });
    follow!(advice, Tensor::einsum("i->i", [&x]) => { assert_eq!(Tensor::einsum("...i->...i", [&x])?.sizes(), [2, 3]) });
    let (a, b) = (x.rename([Some("N"), None])?, y.rename([None, Some("out")])?);
    follow!(advice, a.contract(&b, 1) => {
        let (x, y) = (&a, &b);
        assert_eq!(x.tensordot(&y, 1, 0)?.sizes(), [2, 2])
    });
    let (a, b) = (x.rename(["N", "in"])?, Tensor::ones([2, 3])?);
    follow!(advice, a.contract(&b, "in") => {
        let (x, y) = (&a, &b);
        let y = y.refine_names(["...", "in"])?;
        assert!(x.contract(&y, "in").is_err(), "every dim needs a name");
        assert_eq!(x.contract(&y.refine_names(["K", "in"])?, "in")?.sizes(), [2, 2])
    });
    let triangle = Tensor::eye(2, 2)?;
    follow!(advice, triangle.solve_triangular(&Tensor::ones([2, 1])?.to(DType::F64)?, Triangle::Upper) => {
        let other = Tensor::ones([2, 1])?.to(DType::F64)?;
        assert_eq!(triangle.solve_triangular(&other.to(DType::F32)?, Triangle::Upper)?.sizes(), [2, 1])
    });
    Ok(())
}

fn dtypes(advice: &mut Advice) -> Result<()> {
    let (floats, ints) = (Tensor::new([0.5, 2.0])?, Tensor::new([1, 2])?);
    let truth = ints.gt(1)?;
    let (x, y) = (truth.clone(), truth.clone());
    follow!(advice, x.sub(&y) => { assert_eq!(x.logical_not()?.to_vec::<bool>()?, [true, false]) }
        { assert_eq!(x.logical_xor(&y)?.to_vec::<bool>()?, [false, false]) }
        { assert_eq!(x.to(DType::I64)?.sub(&y.to(DType::I64)?)?.to_vec::<i64>()?, [0, 0]) });
    follow!(advice, x.rsub(&y) => { let other = &y; assert_eq!(x.logical_xor(other)?.to_vec::<bool>()?, [false, false]) });
    let counted_by = |fweights: &Tensor| floats.cov_with(0, CovOptions::new().fweights(fweights));
    let weighted_by = |aweights: &Tensor| floats.cov_with(0, CovOptions::new().aweights(aweights));
    follow!(advice, counted_by(&floats.ceil()?) => {
        let fweights = floats.ceil()?;
        assert_eq!(counted_by(&fweights.to(DType::I64)?)?.item::<f32>()?, 0.75)
    });
    follow!(advice, weighted_by(&ints) => {
        let aweights = &ints;
        assert!(weighted_by(&aweights.to(DType::F32)?)?.item::<f32>()? > 0.0)
    });
    follow!(advice, floats.bitwise_and(&floats) => { let x = &floats; assert_eq!(x.to(DType::I64)?.bitwise_and(&ints)?.numel(), 2) });
    follow!(advice, ints.bitwise_and(&floats) => {
        let (x, y) = (&ints, &floats);
        assert_eq!(x.bitwise_and(&y.to(DType::I64)?)?.to_vec::<i64>()?, [0, 2])
    });
    follow!(advice, floats.lerp(&floats.to(DType::F64)?, 0.5) => {
        let (x, end) = (&floats, floats.to(DType::F64)?);
        assert_eq!(x.to(DType::F64)?.lerp(&end, 0.5)?.dtype(), DType::F64)
    });
    follow!(advice, floats.choose(1, 2) => { let condition = &floats; assert_eq!(condition.ne(0)?.choose(1, 2)?.to_vec::<i64>()?, [1, 1]) });
    follow!(advice, floats.masked_fill(&floats, 0.0) => {
        let mask = &floats;
        assert_eq!(floats.masked_fill(mask.ne(0)?, 0.0)?.to_vec::<f32>()?, [0., 0.])
    });
    follow!(advice, floats.masked_select(&floats) => { let mask = &floats; assert_eq!(floats.masked_select(&mask.ne(0)?)?.numel(), 2) });
    follow!(advice, floats.masked_scatter(&floats, &floats) => {
        let mask = &floats;
        assert_eq!(floats.masked_scatter(&mask.ne(0)?, &floats)?.numel(), 2)
    });
    follow!(advice, ints.clone().exp_() => {
        let mut x = ints.clone();
        x = x.to(DType::F32)?;
        assert!(x.exp_()?.item_at::<f32>([0])? > 2.7)
    });
    follow!(advice, ints.clone().cumsum_with(0, CumsumOptions::new())?.clone().sinc_() => {
        let mut x = ints.clone();
        x = x.to(DType::F32)?;
        assert_eq!(x.sinc_()?.numel(), 2)
    });
    follow!(advice, ints.pow(-1) => { let x = &ints; assert_eq!(x.to(DType::F32)?.pow(-1)?.to_vec::<f32>()?, [1., 0.5]) });
    follow!(advice, ints.floor_divide(0) => { let x = &ints; assert!(x.to(DType::F32)?.floor_divide(0)?.isinf()?.all(..)?.item::<bool>()?) });
    follow!(advice, ints.nextafter(&ints) => { let x = &ints; assert_eq!(x.to(DType::F32)?.nextafter(&floats)?.numel(), 2) });
    follow!(advice, ints.round_with(RoundOptions::new().decimals(-1)) => {
        let x = &ints;
        assert_eq!(x.to(DType::F64)?.round_with(RoundOptions::new().decimals(-1))?.to_vec::<f64>()?, [0., 0.])
    });
    follow!(advice, truth.argmax(0) => { let x = &truth; assert_eq!(x.to(DType::U8)?.argmax(0)?.item::<i64>()?, 1) });
    follow!(advice, truth.argmax(..) => { let x = &truth; assert_eq!(x.to(DType::U8)?.argmax(..)?.item::<i64>()?, 1) });
    follow!(advice, ints.searchsorted(&floats) => {
        let boundaries = &ints;
        assert_eq!(boundaries.to(DType::F32)?.searchsorted(&floats)?.to_vec::<i64>()?, [0, 1])
    });
    follow!(advice, floats.bincount() => { let x = &floats; assert_eq!(x.to(DType::I64)?.reshape([-1])?.bincount()?.to_vec::<i64>()?, [1, 0, 1]) });
    follow!(advice, Tensor::new([-1, 2])?.bincount() => {
        let x = Tensor::new([-1, 2])?;
        assert_eq!(x.sub(x.amin(..)?)?.bincount()?.to_vec::<i64>()?, [1, 0, 0, 1])
    });
    let index = Tensor::new([1.0, 0.0])?;
    follow!(advice, floats.index_select(&index, 0) => { assert_eq!(floats.index_select(&index.to(DType::I64)?, 0)?.to_vec::<f32>()?, [2., 0.5]) });
    follow!(advice, floats.take(&index) => { assert_eq!(floats.take(&index.to(DType::I64)?)?.to_vec::<f32>()?, [2., 0.5]) });
    let places = index.clone();
    follow!(advice, floats.index(&[Index::from(&places)]) => {
        assert_eq!(floats.index(&[Index::from(&places.to(DType::I64)?)])?.to_vec::<f32>()?, [2., 0.5])
    });
    let source = floats.to(DType::F64)?;
    follow!(advice, floats.scatter(&Tensor::new([0])?, &source, 0) => {
        let first = source.narrow(0, 0, 1)?;
        assert_eq!(floats.scatter(&Tensor::new([0])?, &source.to(DType::F32)?.narrow(0, 0, 1)?, 0)?.numel(), 2);
        assert_eq!(first.numel(), 1)
    });
    follow!(advice, truth.scatter_reduce(&Tensor::new([0])?, &truth.narrow(0, 0, 1)?, 0, Reduce::Mean) => {
        let x = &truth;
        let source = truth.narrow(0, 0, 1)?.to(DType::U8)?;
        assert_eq!(x.to(DType::U8)?.scatter_reduce(&Tensor::new([0])?, &source, 0, Reduce::Mean)?.numel(), 2)
    });
    follow!(advice, floats.one_hot() => { let x = index.clone(); assert_eq!(x.to(DType::I64)?.one_hot()?.sizes(), [2, 2]) });
    let repeats = index.clone();
    follow!(advice, floats.repeat_interleave(&repeats, 0) => {
        assert_eq!(floats.repeat_interleave(&repeats.to(DType::I64)?, 0)?.to_vec::<f32>()?, [0.5])
    });
    follow!(advice, ints.quantile(0.5, 0) => { let x = &ints; assert_eq!(x.to(DType::F32)?.quantile(0.5, 0)?.item::<f32>()?, 1.5) });
    follow!(advice, floats.to_vec::<i32>() => { let x = &floats; assert_eq!(x.to(DType::I32)?.to_vec::<i32>()?, [0, 2]) });
    follow!(advice, floats.to_ndarray::<i32>() => { let x = &floats; assert_eq!(x.to(DType::I32)?.to_ndarray::<i32>()?.len(), 2) });
    let (one, whole) = (Tensor::new(1.5)?, Tensor::new(3)?);
    follow!(advice, one.item::<i64>() => { let x = &one; assert_eq!(x.to(DType::I64)?.item::<i64>()?, 1) });
    follow!(advice, Tensor::new(300)?.item::<u8>() => { let x = Tensor::new(300)?; assert_eq!(x.item::<i64>()?, 300) });
    follow!(advice, whole.item::<f32>() => { let x = &whole; assert_eq!(x.to(DType::F32)?.item::<f32>()?, 3.) });
    follow!(advice, floats.item_at::<i64>([0]) => { let (x, at) = (&floats, [0]); assert_eq!(x.to(DType::I64)?.item_at::<i64>(at)?, 0) });
    follow!(advice, TensorOptions::new().dtype(DType::I64).rand([2]) => {
        assert_eq!(TensorOptions::new().dtype(DType::F32).rand([2])?.numel(), 2)
    });
    follow!(advice, ints.clone().uniform_(0.0, 1.0) => {
        let mut x = ints.clone();
        x = x.to(DType::F32)?;
        assert!(x.uniform_(0.0, 1.0)?.lt(1.0)?.all(..)?.item::<bool>()?)
    });
    follow!(advice, ints.to(DType::U8)?.full_like(300) => {
        let x = ints.to(DType::U8)?;
        assert_eq!(x.to(DType::I64)?.full_like(300)?.to_vec::<i64>()?, [300, 300])
    });
    follow!(advice, TensorOptions::new().dtype(DType::U8).full([2], 300) => {
        assert_eq!(TensorOptions::new().dtype(DType::I64).full([2], 300)?.numel(), 2)
    });
    follow!(advice, TensorOptions::new().dtype(DType::I64).requires_grad(true).zeros([2]) => {
        let options = TensorOptions::new().dtype(DType::F32).requires_grad(true);
        assert!(options.zeros([2])?.requires_grad())
    });
    Ok(())
}

fn indices(advice: &mut Advice) -> Result<()> {
    let x = counted([2, 3])?;
    let named = x.rename(["N", "C"])?;
    follow!(advice, named.select("C", 3) => { let x = &named; assert_eq!(x.select("C", -1)?.to_vec::<f32>()?, [2., 5.]) });
    follow!(advice, x.narrow(1, 1, 4) => { assert_eq!(x.narrow(1, 1, 2)?.to_vec::<f32>()?, [1., 2., 4., 5.]) });
    let index = Tensor::new([-1])?;
    follow!(advice, x.index_select(&index, 1) => { assert_eq!(x.index_select(&index.remainder(3)?, 1)?.to_vec::<f32>()?, [2., 5.]) });
    let index = Tensor::new([[0, 1]])?;
    follow!(advice, x.index_select(&index, 1) => { assert_eq!(x.index_select(&index.flatten(.., None)?, 1)?.sizes(), [2, 2]) });
    let index = Tensor::new([0, 1])?;
    follow!(advice, x.gather(&index, 1) => { assert_eq!(x.gather(&index.unsqueeze(1)?, 1)?.to_vec::<f32>()?, [0., 4.]) }
        { assert_eq!(x.index_select(&index, 1)?.to_vec::<f32>()?, [0., 1., 3., 4.]) });
    follow!(advice, named.gather(&index, "C") => { let x = &named; assert_eq!(x.gather(&index.unsqueeze(1)?, "C")?.sizes(), [2, 1]) }
        { let x = &named; assert_eq!(x.index_select(&index, "C")?.sizes(), [2, 2]) });
    let (index, source) = (Tensor::new([1, 0])?, counted([2, 2])?);
    follow!(advice, x.scatter_add(&index, &source, 1) => { assert_eq!(x.index_add(&index, &source, 1)?.to_vec::<f32>()?, [1., 1., 2., 6., 6., 5.]) });
    follow!(advice, x.scatter(&index, &source, 1) => { assert_eq!(x.index_copy(&index, &source, 1)?.to_vec::<f32>()?, [1., 0., 2., 3., 2., 5.]) });
    let reduce = namegrad::core::Reduce::Amax;
    follow!(advice, x.scatter_reduce(&index, &source, 1, reduce) => { assert_eq!(x.index_reduce(&index, &source, 1, reduce)?.to_vec::<f32>()?, [1., 1., 2., 3., 4., 5.]) });
    let repeats = Tensor::new([1, 2])?.rename(["M"])?;
    follow!(advice, named.repeat_interleave(&repeats, "N") => {
        let x = &named;
        assert_eq!(x.repeat_interleave(&repeats.rename([("M", "N")])?, "N")?.sizes(), [3, 3])
    });
    let indices = Tensor::new([0, 1, 0])?;
    follow!(advice, x.take_along_dim(&indices, 0) => { assert_eq!(x.take_along_dim(&indices.unsqueeze(0)?, 0)?.to_vec::<f32>()?, [0., 4., 2.]) });
    follow!(advice, x.topk(4, 1) => { assert_eq!(x.topk(3, 1)?.values.sizes(), [2, 3]) });
    let empty = Tensor::zeros([0])?;
    follow!(advice, empty.argmax(..) => { let x = &empty; if x.numel() > 0 { x.argmax(..)?; } assert_eq!(x.numel(), 0) });
    follow!(advice, Tensor::zeros([2, 0])?.argmax(1) => { let x = &empty; if x.numel() > 0 { x.argmax(0)?; } assert_eq!(x.numel(), 0) });
    follow!(advice, empty.amax(..) => { let x = &empty; if x.numel() > 0 { x.amax(..)?; } assert_eq!(x.numel(), 0) });
    follow!(advice, empty.quantile(0.5, 0) => { let x = &empty; if x.numel() > 0 { x.quantile(0.5, 0)?; } assert_eq!(x.numel(), 0) });
    let (index, dim) = (Tensor::new([0, 1])?, 0);
    follow!(advice, x.segment_sum(&index, dim, [2, 2]) => { assert_eq!(x.segment_sum(&index, dim, ("node", 10))?.sizes(), [10, 3]) });
    let far = Tensor::new([4, 9])?;
    follow!(advice, x.segment_sum(&far, dim, ("node", 4)) => { assert_eq!(x.segment_sum(&far, dim, ("node", 10))?.sizes(), [10, 3]) });
    let weights = Tensor::new([1.0, 0.0])?;
    follow!(advice, weights.multinomial(2, 0) => {
        let options = MultinomialOptions::new().replacement(true);
        assert_eq!(weights.multinomial_with(2, 0, options)?.to_vec::<i64>()?, [0, 0]);
        assert!(MultinomialOptions::new().replacement(true).replacement)
    });
    let cube = Tensor::arange(0.0, 24.0, 1.0)?.reshape([("N", 2), ("C", 3), ("W", 4)])?;
    let (k, q) = (2, 0.5);
    follow!(advice, cube.argmax(["N", "C"]) => { let x = &cube; assert_eq!(x.flatten(["N", "C"], "flat")?.argmax("flat")?.sizes(), [4]) });
    follow!(advice, cube.kthvalue(k, ["N", "C"]) => { let x = &cube; assert_eq!(x.flatten(["N", "C"], "flat")?.kthvalue(k, "flat")?.values.sizes(), [4]) });
    follow!(advice, cube.quantile(q, ["N", "C"]) => { let x = &cube; assert_eq!(x.flatten(["N", "C"], "flat")?.quantile(q, "flat")?.sizes(), [4]) });
    follow!(advice, cube.max(["N", "W"]) => { let x = &cube; assert_eq!(x.amax(["N", "W"])?.to_vec::<f32>()?, [15., 19., 23.]) }
        { let x = &cube; assert_eq!(x.movedim(["N", "W"], [-2, -1])?.flatten([-2, -1], "flat")?.max("flat")?.values.to_vec::<f32>()?, [15., 19., 23.]) });
    follow!(advice, Tensor::zeros([0])?.long()?.one_hot() => {
        let x = Tensor::zeros([0])?.long()?;
        assert_eq!(x.one_hot_with(OneHotOptions::new().num_classes(10))?.sizes(), [0, 10])
    });
    follow!(advice, index.one_hot_with(OneHotOptions::new().num_classes(1)) => {
        let x = &index;
        assert_eq!(x.one_hot_with(OneHotOptions::new().num_classes(2))?.sizes(), [2, 2])
    });
    let mask = x.gt(1)?.rename(["C", "N"])?;
    follow!(advice, x.rename(["N", "C"])?.index(&[Index::from(&mask)]) => {
        let (x, mask) = (x.rename(["N", "C"])?, x.gt(1)?.rename(["N", "C"])?.t()?);
        assert_eq!(x.index(&[Index::from(&mask.align_as(&x)?)])?.to_vec::<f32>()?, [2., 3., 4., 5.])
    } { let x = &x; assert_eq!(x.index(&[Index::from(&mask.rename(None)?)])?.numel(), 4) });
    let (rows, columns) = (index.rename(["a"])?, index.rename(["b"])?);
    follow!(advice, x.index(&[Index::from(&rows), Index::from(&columns)]) => {
        let index = &columns;
        assert_eq!(x.index(&[Index::from(&rows), Index::from(&index.rename(None)?)])?.to_vec::<f32>()?, [0., 4.])
    });
    Ok(())
}

fn values(advice: &mut Advice) -> Result<()> {
    let x = counted([2, 3])?;
    follow!(advice, x.quantile(95.0, 0) => { let q = 0.95; assert_eq!(x.quantile(q, 0)?.sizes(), [3]) });
    let weights = Tensor::new([1.0, -1.0])?;
    follow!(advice, weights.multinomial(1, 0) => {
        let (x, dim) = (&weights, 0);
        assert_eq!(x.softmax(dim)?.multinomial(1, 0)?.sizes(), [1])
    });
    follow!(advice, x.byte()?.random_(0..1000) => { let mut x = x.byte()?; assert_eq!(x.random_(0..=255)?.numel(), 6) });
    names::strict(|| {
        let (x, y) = (Tensor::ones([("N", 2), ("in", 3)])?, Tensor::ones([2, 3])?);
        follow!(advice, x.add(&y) => { let y = y.refine_names(["N", "in"])?; assert_eq!(x.add(&y)?.numel(), 6) }
            { let y = y.refine_names([None, Some("in")])?; assert!(y.has_names()) });
        Ok(())
    })
}

fn windows(advice: &mut Advice) -> Result<()> {
    let (x, weight) = (Tensor::ones([1, 4, 8])?, Tensor::ones([4, 4, 3])?);
    let with = |options: Conv1dOptions<'_>| F::conv1d_with(&x, &weight, options);
    follow!(advice, with(Conv1dOptions::new().stride(0)) => { assert_eq!(with(Conv1dOptions::new().stride(1))?.sizes(), [1, 4, 6]) });
    follow!(advice, with(Conv1dOptions::new().dilation(0)) => { assert_eq!(with(Conv1dOptions::new().dilation(1))?.sizes(), [1, 4, 6]) });
    follow!(advice, with(Conv1dOptions::new().groups(0)) => { assert_eq!(with(Conv1dOptions::new().groups(1))?.sizes(), [1, 4, 6]) });
    follow!(advice, with(Conv1dOptions::new().groups(3)) => { assert_eq!(with(Conv1dOptions::new().groups(1))?.sizes(), [1, 4, 6]) });
    follow!(advice, with(Conv1dOptions::new().padding(Padding::Same).stride(2)) => {
        assert_eq!(with(Conv1dOptions::new().stride(1).padding(Padding::Same))?.sizes(), [1, 4, 8])
    });
    follow!(advice, F::conv1d(&x.narrow(2, 0, 1)?, &weight) => {
        let x = x.narrow(2, 0, 1)?;
        assert_eq!(F::conv1d_with(&x, &weight, Conv1dOptions::new().padding(1))?.sizes(), [1, 4, 1])
    });
    follow!(advice, F::conv1d(&x.gt(0)?, &weight.gt(0)?) => {
        let (x, weight) = (x.gt(0)?, weight.gt(0)?);
        assert_eq!(F::conv1d(&x.to(DType::F32)?, &weight.to(DType::F32)?)?.sizes(), [1, 4, 6])
    });
    let (bias, wide) = (Tensor::ones([4])?.to(DType::F64)?, x.to(DType::F64)?);
    follow!(advice, F::conv1d(&wide, &weight) => { let x = &wide; assert_eq!(F::conv1d(&x.to(DType::F32)?, &weight)?.sizes(), [1, 4, 6]) });
    follow!(advice, with(Conv1dOptions::new().bias(&bias)) => {
        assert_eq!(with(Conv1dOptions::new().bias(&bias.to(DType::F32)?))?.sizes(), [1, 4, 6])
    });
    Ok(())
}
