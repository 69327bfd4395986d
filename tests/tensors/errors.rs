//! Invalid calls: each gives an error of the right kind with the op, the sizes and names of the operands, the
//! caller's line, and a repair if there is one. No tensor changes.

use crate::wrong::Messages;
use namegrad::autograd::{
    BackwardOptions, GradCheckOptions, Op, Operand, checkpoint, grad_with, gradcheck_with, gradgradcheck_with,
};
use namegrad::core::NamedTensor;
use namegrad::prelude::*;
use namegrad::{memory, names};
use namegrad_tests::values::ONCE;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn images() -> Tensor {
    Tensor::ones((("N", 32), ("C", 3), 7)).unwrap()
}

// Names

fn different_names_at_one_position(m: &mut Messages) -> Result<()> {
    let (x, y) = (images(), Tensor::ones((("N", 32), ("D", 3), 7))?);
    m.wrong(x.add(&y));
    m.wrong(Tensor::cat(&[&x, &y], 0));
    m.wrong(x.clone().mul_(&y));
    Ok(())
}

fn one_name_at_two_positions(m: &mut Messages) -> Result<()> {
    let (x, y) = (Tensor::ones((("N", 3), 3))?, Tensor::ones([("N", 3)])?);
    m.wrong(x.add(&y));
    m.wrong(y.add(&x));
    Ok(())
}

fn the_repair_of_a_misalignment_works(m: &mut Messages) -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 3)])?;
    let y = Tensor::ones([("N", 2)])?;
    m.wrong(x.mul(&y));
    assert_eq!(x.mul(&y.align_as(&x)?)?.shape().to_string(), "[N=2, C=3]");
    Ok(())
}

fn names_that_are_not_there(m: &mut Messages) -> Result<()> {
    let x = Tensor::ones([("batch", 2), ("in", 3)])?;
    m.wrong(x.sum("width"));
    m.wrong(x.mean("bach"));
    m.wrong(x.softmax("In"));
    m.wrong(x.transpose("batch", "out"));
    m.wrong(x.rename([("bach", "N")]));
    m.wrong(Tensor::ones([2])?.sum("N"));
    m.wrong(x.align_to(["batch"]));
    m.wrong(x.sum(["batch", "batc"]));
    m.wrong(x.contract(&Tensor::ones([("batch", 2)])?, "in"));
    Ok(())
}

fn duplicate_names(m: &mut Messages) -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 2)])?;
    m.wrong(Tensor::ones([("N", 2), ("N", 2)]));
    m.wrong(x.rename(["N", "N"]));
    m.wrong(x.rename([("C", "N")]));
    m.wrong(Tensor::ones((("N", 2), 2))?.refine_names(["N", "N"]));
    m.wrong(x.align_to(["N", "C", "N"]));
    m.wrong(x.matmul(&x.t()?));
    m.wrong(x.unflatten("N", [("C", 2), ("D", 1)]));
    m.wrong(Tensor::ones((("A", 2), 2, ("B", 2)))?.flatten([0, 1], "B"));
    m.wrong(Tensor::stack_with([&x, &x], 0, StackOptions::new().name("N")));
    Ok(())
}

fn invalid_names(m: &mut Messages) -> Result<()> {
    let x = Tensor::ones([2])?;
    for bad in ["", "1st", "a b", "a-b", "é", "N.C"] {
        m.wrong(Tensor::ones([(bad, 2)]));
        m.wrong(x.rename([bad]));
        m.wrong(x.unflatten(0, [(bad, 2)]));
        m.wrong(x.flatten(0, bad));
    }
    Ok(())
}

fn too_many_or_too_few_names(m: &mut Messages) -> Result<()> {
    let x = Tensor::ones([2, 3])?;
    m.wrong(x.rename(["N"]));
    m.wrong(x.rename(["N", "C", "H"]));
    m.wrong(x.refine_names(["N"]));
    m.wrong(x.rename(["...", "..."]));
    Ok(())
}

fn names_are_refined_and_not_changed(m: &mut Messages) -> Result<()> {
    let x = images();
    m.wrong(x.refine_names(["N", "D", "W"]));
    m.wrong(x.refine_names([Some("N"), None, None]));
    m.wrong(x.align_to(["N", "C"]));
    m.wrong(x.contract(&x, "C"));
    Ok(())
}

fn strict_names(m: &mut Messages) -> Result<()> {
    let (x, y) = (Tensor::ones([("N", 2), ("C", 3)])?, Tensor::ones([3])?);
    x.add(&y)?;
    names::strict(|| {
        m.wrong(x.add(&y));
        let z = Tensor::ones([("K", 3), ("M", 2)]).unwrap();
        m.wrong(x.matmul(&z));
    });
    x.add(&y)?;
    Ok(())
}

// Dims

fn dims_out_of_range_or_given_twice(m: &mut Messages) -> Result<()> {
    let x = images();
    m.wrong(x.sum(3));
    m.wrong(x.sum([0, -4]));
    m.wrong(x.softmax(isize::MIN));
    m.wrong(x.argmax(usize::MAX));
    m.wrong(x.argmax(["N", "C"]));
    m.wrong(x.quantile(0.5, [0, 1]));
    m.wrong(x.cummax(3));
    m.wrong(x.transpose(0, 5));
    m.wrong(x.unsqueeze(4));
    m.wrong(x.sum([0, 1, 0]));
    m.wrong(x.mean(keep(["N", "N"])));
    m.wrong(x.amax([-1, 2]));
    m.wrong(x.flip([1, 1]));
    m.wrong(x.permute([0, 1, 1]));
    m.wrong(x.permute([0, 1]));
    m.wrong(x.diagonal(1, 1));
    m.wrong(x.flatten(["N", "?"], "F"));
    m.wrong(x.flatten([0, 2], "F"));
    m.wrong(x.size(3));
    m.wrong(Tensor::new(1.0)?.sum(1));
    Ok(())
}

// Sizes

fn sizes_that_do_not_broadcast(m: &mut Messages) -> Result<()> {
    let (x, y) = (Tensor::ones([("N", 2), ("C", 3)])?, Tensor::ones([4])?);
    m.wrong(x.add(&y));
    m.wrong(x.lt(&y));
    m.wrong(x.clamp(0.0, &y));
    m.wrong(y.gt(0)?.choose(&x, 0.0));
    m.wrong(y.clone().add_(&x.rename(None)?));
    let small = Tensor::ones([("C", 3)])?;
    m.wrong(small.clone().add_(&x));
    Ok(())
}

fn sizes_that_do_not_multiply(m: &mut Messages) -> Result<()> {
    let (x, y) = (Tensor::ones([("N", 2), ("K", 3)])?, Tensor::ones([("J", 4), ("M", 5)])?);
    m.wrong(x.mm(&y));
    m.wrong(x.matmul(&y));
    m.wrong(x.mv(&Tensor::ones([4])?));
    m.wrong(x.dot(&x));
    m.wrong(x.bmm(&y));
    m.wrong(x.outer(&y));
    m.wrong(Tensor::new(1.0)?.matmul(&x));
    let other = Tensor::ones([("K", 4)])?;
    m.wrong(x.contract(&other, "K"));
    let (a, b) = (Tensor::ones([2, 1, 3])?, Tensor::ones([5, 3, 1])?);
    m.wrong(a.matmul(&b));
    Ok(())
}

fn sizes_that_do_not_reshape(m: &mut Messages) -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 3)])?;
    m.wrong(x.reshape([4, 2]));
    m.wrong(x.reshape([-1, -1]));
    m.wrong(x.reshape([-1, 4]));
    m.wrong(x.reshape([-2, 3]));
    m.wrong(x.reshape([-1, 0]));
    m.wrong(x.transpose(0, 1)?.view([6]));
    m.wrong(x.expand([2, 4]));
    m.wrong(x.expand([3]));
    m.wrong(x.unflatten("C", [2, 2]));
    m.wrong(x.repeat([2]));
    m.wrong(x.repeat([2, -1]));
    m.wrong(Tensor::cat(&[&x, &Tensor::ones([2, 4])?], 0));
    m.wrong(Tensor::cat(&[] as &[Tensor], 0));
    m.wrong(Tensor::stack([&x, &Tensor::ones([2])?], 0));
    m.wrong(Tensor::new([vec![1.0, 2.0], vec![3.0]]));
    m.wrong(Tensor::from_slice(&[1.0f32, 2.0], [3]));
    m.wrong(x.item::<f32>());
    let nothing = Tensor::zeros([("N", 0), ("C", 2)])?;
    m.wrong(nothing.amax("N"));
    m.wrong(nothing.amax(..));
    m.wrong(nothing.argmin("N"));
    m.wrong(nothing.select("C", 0)?.argmin("N"));
    m.wrong(x.unflatten("C", [2, -1]));
    m.wrong(x.unflatten("C", [-1, -1]));
    m.wrong(x.unflatten("C", [-2, 3]));
    m.wrong(Tensor::cat(&[&x, &Tensor::zeros([0])?], 0));
    m.wrong(Tensor::zeros([("N", 0)])?.median("N"));
    m.wrong(Tensor::zeros([("N", 0)])?.max(..));
    let x = Tensor::new([1.0, 2.0])?.refine_names(["N"])?;
    m.wrong(x.kthvalue(3, "N"));
    m.wrong(x.topk(3, "N"));
    m.wrong(x.quantile(1.5, "N"));
    m.wrong(x.sum(..)?.diff(0));
    m.wrong(x.histc_with(HistcOptions::new().bins(0).max(1.0)));
    m.wrong(x.bucketize(&Tensor::zeros([1, 1])?));
    m.wrong(x.bincount());
    m.wrong(x.nanmean(keep("C")));
    m.wrong(x.to(DType::I64)?.vector_norm_with("N", VectorNormOptions::new().ord(1.0)));
    m.wrong(x.requiring_grad()?.unique());
    Ok(())
}

fn sizes_that_cannot_be_had(m: &mut Messages) -> Result<()> {
    let live = memory::stats().live_bytes;
    m.wrong(Tensor::zeros([1usize << 60]));
    m.wrong(Tensor::ones([1usize << 60]));
    m.wrong(Tensor::zeros([1usize << 45]));
    m.wrong(Tensor::zeros([usize::MAX, usize::MAX]));
    m.wrong(Tensor::zeros([usize::MAX, 2, 0]));
    m.wrong(Tensor::full([1usize << 62, 4], 1));
    m.wrong(Tensor::arange(0, i64::MAX, 1));
    m.wrong(Tensor::eye(1 << 31, 1 << 31));
    m.wrong(Tensor::zeros([-1]));
    m.wrong(Tensor::zeros([("N", -1)]));
    let one = Tensor::ones([("N", 1)])?;
    m.wrong(one.expand([1usize << 62]));
    m.wrong(one.repeat([1usize << 60]));
    let wide = one.expand([1usize << 60])?; // a view that holds one number
    m.wrong(wide.exp());
    m.wrong(wide.contiguous());
    m.wrong(wide.outer(&wide.rename(None)?));
    m.wrong(wide.reshape([1usize << 30, 1 << 30])?.add(1.0));
    m.wrong(wide.rename(None)?.unsqueeze(1)?.add(&wide.rename(None)?));
    assert!(memory::stats().live_bytes < live + (1 << 30), "what failed holds nothing");
    Ok(())
}

// Everything else

fn wrong_dtypes(m: &mut Messages) -> Result<()> {
    let (floats, ints) = (Tensor::ones([("N", 2)])?, Tensor::new([1, 2])?);
    let truth = floats.gt(0)?;
    m.wrong(floats.bitwise_and(&floats));
    m.wrong(truth.sub(&truth));
    m.wrong(floats.sub(&truth));
    m.wrong(ints.hypot(&ints));
    m.wrong(ints.frac());
    m.wrong(ints.lerp(2, 0.5));
    m.wrong(floats.lerp(&floats.to(DType::F64)?, 0.5));
    m.wrong(truth.argmax(0));
    m.wrong(ints.pow(-1));
    m.wrong(truth.pow(&truth));
    m.wrong(truth.neg());
    m.wrong(ints.elu());
    m.wrong(floats.bitwise_not());
    m.wrong(ints.mean(..));
    m.wrong(ints.softmax(0));
    m.wrong(ints.clone().div_(2));
    m.wrong(ints.clone().add_(0.5));
    m.wrong(truth.clone().add_(1));
    m.wrong(ints.clone().exp_());
    m.wrong(floats.choose(&floats, 0.0));
    m.wrong(floats.masked_fill(&ints, 0.0));
    m.wrong(floats.masked_select(&ints));
    m.wrong(floats.mm(&ints));
    m.wrong(floats.dot(&ints));
    m.wrong(truth.dot(&truth));
    m.wrong(floats.index_select(&floats, 0));
    m.wrong(floats.index_add(&ints.mul(0)?, &ints, 0));
    m.wrong(Tensor::new([1, 2])?.requiring_grad());
    m.wrong(Parameter::new(Tensor::new([1, 2])?));
    Ok(())
}

fn indices_out_of_bounds(m: &mut Messages) -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 3)])?;
    m.wrong(x.select("N", 2));
    m.wrong(x.select("N", -3));
    m.wrong(x.select(0, isize::MIN));
    m.wrong(x.select(0, isize::MAX));
    m.wrong(x.narrow("C", 1, 3));
    m.wrong(x.narrow("C", 4, 0));
    m.wrong(x.narrow("C", 0, -1));
    m.wrong(x.narrow("C", isize::MIN, 1));
    m.wrong(x.narrow("C", 1, usize::MAX));
    m.wrong(x.slice("C", 0, 3, 0));
    m.wrong(Tensor::new(1.0)?.select(0, 0));
    m.wrong(x.index_select(&Tensor::new([0, 2])?, "N"));
    m.wrong(x.index_select(&Tensor::new([-1])?, "N"));
    m.wrong(x.gather(&Tensor::new([[3]])?, 1));
    m.wrong(x.gather(&Tensor::new([0])?, 1));
    m.wrong(x.scatter_add(&Tensor::new([[0, 5]])?, &x, 1));
    m.wrong(x.index_add(&Tensor::new([0, 0])?, &Tensor::ones([3, 3])?, 0));
    Ok(())
}

fn bad_parts_and_places(m: &mut Messages) -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 3)])?;
    m.wrong(x.split(2, "W"));
    m.wrong(x.split([1, 1], 1));
    m.wrong(x.chunk(0, 0));
    m.wrong(x.tensor_split(0, 0));
    m.wrong(x.unbind(2));
    m.wrong(x.unfold("C", 4, 1));
    m.wrong(x.movedim([0, 1], 0));
    m.wrong(x.rot90(1, 0));
    m.wrong(images().diag());
    m.wrong(images().trace());
    m.wrong(Tensor::new(1.0)?.diag_embed());
    m.wrong(Tensor::block_diag(&[&images()]));
    m.wrong(Tensor::broadcast_tensors(&[&x, &images()]));
    m.wrong(x.repeat_interleave(-1, 0));
    m.wrong(x.repeat_interleave(1.5, 0));
    m.wrong(x.index_fill(&Tensor::new([3])?, 0, "C"));
    m.wrong(x.index_fill(&Tensor::new([0.5])?, 0, "C"));
    m.wrong(x.index_copy(&Tensor::new([0])?, &x, 0));
    m.wrong(x.scatter(&Tensor::new([[0, 5]])?, &x, 1));
    m.wrong(x.scatter(&Tensor::new([[0]])?, &Tensor::new([[1]])?, 1));
    m.wrong(x.take(&Tensor::new([1.0])?));
    m.wrong(x.take_along_dim(&Tensor::new([1])?, 0));
    m.wrong(x.masked_scatter(&x, &x));
    m.wrong(x.masked_scatter(&x.gt(0)?, &Tensor::ones([5])?));
    Ok(())
}

fn bad_products_and_queries(m: &mut Messages) -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 3)])?;
    m.wrong(x.cross(&x, "N"));
    m.wrong(x.addr(&x, &x));
    m.wrong(x.addbmm(&x, &x));
    m.wrong(x.dist_with(&x, DistOptions::new().p(-1.0)));
    m.wrong(x.addcmul(&x, images()));
    m.wrong(x.gt(0)?.addcmul(&x.gt(0)?, &x.gt(0)?));
    m.wrong(Tensor::einsum("ij->ik", &[&x]));
    m.wrong(Tensor::einsum("i,j", &[&x]));
    m.wrong(Tensor::einsum("n c, c", &[&x, &x]));
    m.wrong(Tensor::einsum("batch C -> batch", &[&x]));
    m.wrong(x.rearrange("N C", []));
    m.wrong(x.rearrange("C N -> N C", []));
    m.wrong(x.rearrange("N 1C -> C N", []));
    m.wrong(x.rearrange("N (C D) -> C N D", []));
    m.wrong(x.rearrange("(a b) (c d) -> a b c d", [("a", 1), ("c", 1)]));
    m.wrong(x.rearrange("(C: N) C -> C N", []));
    m.wrong(x.reduce("N -> N", "sum", []));
    m.wrong(x.reduce("N C -> N", "total", []));
    m.wrong(x.reduce("N C -> N", "sum", [("D", 1)]));
    m.wrong(x.long()?.reduce("N C -> N", "mean", []));
    m.wrong(x.repeat_dims("N C -> N C (é: N n)", [("n", 2)]));
    m.wrong(x.repeat_dims("N C -> N C n", [("n", 1 << 60)]));
    m.wrong(Tensor::pack([&x], "N C D *"));
    m.wrong(Tensor::pack([&x, &Tensor::ones([3, 3])?], "N *"));
    m.wrong(Tensor::pack([&x], "C *"));
    m.wrong(x.unpack([[2], [2]], "N *"));
    m.wrong(x.unpack([[-1], [-1]], "N *"));
    m.wrong(x.unpack([[("N", 3)]], "N *"));
    m.wrong(x.at([("D", 0)]));
    m.wrong(x.at([("C", Index::New)]));
    m.wrong(x.index_by("C", &x));
    m.wrong(x.index_by("C", &Tensor::new([4])?));
    m.wrong(x.to(DType::I32)?.round_with(RoundOptions::new().decimals(-1)));
    m.wrong(x.is_nonzero());
    m.wrong(x.cuda());
    m.wrong(x.clone().resize_([2]));
    m.wrong(x.clone().copy_(&Tensor::ones([("C", 3), ("N", 1)])?));
    m.wrong(x.clone().bernoulli_(2.0));
    m.wrong(Tensor::normal(&x, -1.0));
    m.wrong(x.clone().requiring_grad()?.resize_([3, 2]));
    Ok(())
}

fn bad_values(m: &mut Messages) -> Result<()> {
    let ints = Tensor::new([1, 0])?;
    m.wrong(ints.floor_divide(&ints));
    m.wrong(ints.remainder(0));
    m.wrong(ints.clone().fmod_(&ints));
    m.wrong(Tensor::arange(0, 3, 0));
    m.wrong(Tensor::arange(0, 3, -1));
    m.wrong(Tensor::arange(0.0, f64::NAN, 1.0));
    m.wrong(Tensor::randint(3, 3, [2]));
    m.wrong(TensorOptions::new().normal([2], 0.0, -1.0));
    m.wrong(TensorOptions::new().dtype(DType::I64).rand([2]));
    Ok(())
}

/// Calls that fail in place, on a tensor whose buffer is shared and one whose buffer is not.
fn outputs_that_do_not_fit(m: &mut Messages) -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 3)])?;
    let mut named = Tensor::zeros([("C", 3), ("N", 2)])?;
    let mut other = Tensor::zeros([("N", 2), ("D", 3)])?;
    let mut integers = Tensor::zeros([2, 3])?.to(DType::I64)?;
    m.wrong(x.exp()?.write_to(&mut named));
    m.wrong(x.exp()?.write_to(&mut other));
    m.wrong(x.exp()?.write_to(&mut integers));
    let leaf = x.clone().requiring_grad()?;
    let mut out = Tensor::zeros([2, 3])?;
    m.wrong(leaf.exp()?.write_to(&mut out));
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

const CREATE: BackwardOptions = BackwardOptions { create_graph: true, retain_graph: true, ..ONCE };

fn leaf() -> Tensor {
    Tensor::ones([("N", 2)]).unwrap().requiring_grad().unwrap()
}

fn gradients_that_do_not_fit(m: &mut Messages) -> Result<()> {
    let x = leaf();
    let y = x.mul(2)?;
    let (long, ints) = (Tensor::ones([3])?, Tensor::new([1, 1])?);
    m.wrong(y.backward_with(Some(&long), CREATE));
    m.wrong(grad_with(&[&y], &[&x], &[Some(&long)], CREATE));
    m.wrong(x.set_grad(Some(long.clone())));
    m.wrong(y.backward_with(Some(&ints), CREATE));
    m.wrong(x.set_grad(Some(ints.clone())));
    m.wrong(grad_with(&[&y], &[&x], &[None, None], CREATE));
    m.wrong(y.backward());
    assert!(x.grad().is_none());
    Ok(())
}

fn what_cannot_have_a_gradient(m: &mut Messages) -> Result<()> {
    let ints = Tensor::new([1, 2])?;
    m.wrong(ints.clone().requiring_grad());
    m.wrong(ints.gt(0)?.requiring_grad());
    m.wrong(Parameter::new(ints.clone()));
    m.wrong(TensorOptions::new().requires_grad(true).tensor([1, 2]));
    m.wrong(leaf().argmax(..)?.backward());
    let cut = leaf().argmax(..)?.to(DType::F32)?.mean(..)?;
    m.wrong(cut.backward());
    m.wrong(ints.retain_grad());
    m.wrong(ints.register_hook(|_| Ok(None)));
    m.wrong(grad_with(&[&leaf()], &[&ints], &[Some(&ints)], CREATE));
    Ok(())
}

fn hooks_that_give_what_does_not_fit(m: &mut Messages) -> Result<()> {
    let after = "register_post_accumulate_grad_hook";
    for wrong in [Tensor::ones([3])?, TensorOptions::new().dtype(DType::F64).ones([2])?, Tensor::new([1, 1])?]
    {
        let (x, y, z) = (leaf(), leaf(), leaf());
        let (of_y, of_z) = (wrong.clone(), wrong.clone());
        x.register_hook(move |_| Ok(Some(wrong.clone())))?;
        y.exp()?.register_hook(move |_| Ok(Some(of_y.clone())))?;
        z.register_post_accumulate_grad_hook(move |_| Ok(Some(of_z.clone())))?;
        m.wrong(x.sum(..)?.backward());
        m.wrong(z.sum(..)?.backward());
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

fn ops_that_give_gradients_that_do_not_fit(m: &mut Messages) -> Result<()> {
    let x = leaf();
    let (long, ints) = (Tensor::ones([3])?, Tensor::new([1, 1])?);
    m.wrong(own_op(&x, long.clone())?.backward());
    m.wrong(own_op(&x, ints.clone())?.backward());
    let broadcast = Tensor::ones([4, 2])?;
    own_op(&x, broadcast)?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [4.0, 4.0], "what was broadcast is summed");
    x.zero_grad();
    m.wrong(own_op_of_several(&x, vec![])?.backward());
    m.wrong(own_op_of_several(&x, vec![None, None])?.backward());
    m.wrong(own_op_of_several(&x, vec![Some(long)])?.backward());
    assert!(x.grad().is_none());
    Ok(())
}

/// A user's op with a gradient outside of the tape.
#[track_caller]
fn own_op_once(x: &Tensor) -> Result<Tensor> {
    let op = Op::new("once", x.value().clone());
    op.input_once(x, |g, _| Ok(g.clone())).output().exp()?.sum(..)
}

fn second_derivatives_that_are_not_there(m: &mut Messages) -> Result<()> {
    let x = leaf();
    let first = |y: &Tensor| grad_with(&[y], &[&x], &[], CREATE).map(|mut found| found.remove(0).unwrap());
    m.wrong(first(&own_op_once(&x)?)?.sum(..)?.backward());
    let loss = x.exp()?.sum(..)?;
    loss.backward()?;
    m.wrong(loss.backward());
    Ok(())
}

fn checks_of_derivatives_that_cannot_be_done(m: &mut Messages) -> Result<()> {
    let (x, options) = ([Tensor::ones([("N", 2)])?], GradCheckOptions::default());
    let f = |x: &[Tensor]| x[0].exp();
    let whole = [x[0].to(DType::I64)?];
    m.wrong(gradcheck_with(f, &whole, options));
    m.wrong(gradgradcheck_with(f, &whole, options));
    // In dtypes narrower than f64, the difference for such a small step is noise; a large step passes, with a
    // warning.
    m.wrong(gradcheck_with(f, &x, options));
    let coarse = GradCheckOptions { eps: 1e-2, atol: 1e-2, rtol: 1e-2 };
    let warning = gradcheck_with(f, &x, coarse)?.warning.expect("f32 is narrow");
    assert!(warning.contains("float32"), "{warning}");
    assert_eq!(gradcheck_with(f, &[x[0].to(DType::F64)?], options)?.warning, None);
    Ok(())
}

fn checkpoints_that_compute_something_else_the_second_time(m: &mut Messages) -> Result<()> {
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
    m.wrong(then(&x, |x| x.narrow(0, 0, 1))?.backward());
    m.wrong(then(&x, |x| x.to(DType::F64))?.backward());
    m.wrong(then(&x, |x| Ok(x.detach()))?.backward());
    assert!(x.grad().is_none());
    Ok(())
}

#[test]
fn wrong_names() -> Result<()> {
    let mut m = Messages::default();
    different_names_at_one_position(&mut m)?;
    one_name_at_two_positions(&mut m)?;
    the_repair_of_a_misalignment_works(&mut m)?;
    names_that_are_not_there(&mut m)?;
    duplicate_names(&mut m)?;
    invalid_names(&mut m)?;
    too_many_or_too_few_names(&mut m)?;
    names_are_refined_and_not_changed(&mut m)?;
    strict_names(&mut m)?;
    m.check("wrong_names");
    Ok(())
}

#[test]
fn wrong_dims_and_sizes() -> Result<()> {
    let mut m = Messages::default();
    dims_out_of_range_or_given_twice(&mut m)?;
    sizes_that_do_not_broadcast(&mut m)?;
    sizes_that_do_not_multiply(&mut m)?;
    sizes_that_do_not_reshape(&mut m)?;
    sizes_that_cannot_be_had(&mut m)?;
    m.check("wrong_dims_and_sizes");
    Ok(())
}

#[test]
fn wrong_values() -> Result<()> {
    let mut m = Messages::default();
    wrong_dtypes(&mut m)?;
    indices_out_of_bounds(&mut m)?;
    bad_parts_and_places(&mut m)?;
    bad_products_and_queries(&mut m)?;
    bad_values(&mut m)?;
    outputs_that_do_not_fit(&mut m)?;
    m.check("wrong_values");
    Ok(())
}

#[test]
fn wrong_gradients() -> Result<()> {
    let mut m = Messages::default();
    gradients_that_do_not_fit(&mut m)?;
    what_cannot_have_a_gradient(&mut m)?;
    hooks_that_give_what_does_not_fit(&mut m)?;
    ops_that_give_gradients_that_do_not_fit(&mut m)?;
    second_derivatives_that_are_not_there(&mut m)?;
    checks_of_derivatives_that_cannot_be_done(&mut m)?;
    checkpoints_that_compute_something_else_the_second_time(&mut m)?;
    m.check("wrong_gradients");
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
    assert!(Error::other("a row has no label").to_string().starts_with("a row has no label (at "));
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
