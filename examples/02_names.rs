//! Named dims: the worked examples of PyTorch's guide to named tensors, followed by those of its name
//! inference rules, in the same order.
//!
//! `cargo run --example 02_names`

use namegrad::autograd::BackwardOptions;
use namegrad::core::Names;
use namegrad::names;
use namegrad::prelude::*;

/// Prints the dims of a result, and checks their names.
fn shows<N>(x: Tensor, names: N)
where
    Names: PartialEq<N>,
{
    println!("{}", x.shape());
    assert!(*x.names() == names);
}

/// Prints the error of a call, which names the op and the line, and checks its kind.
fn fails<T>(call: Result<T>, kind: ErrorKind) {
    let Err(error) = call else { panic!("the call should fail") };
    println!("{error}");
    assert_eq!(error.kind(), kind);
}

fn main() -> Result<()> {
    creating()?;
    matching()?;
    aligning()?;
    manipulating()?;
    differentiating()?;
    refining()?;
    removing()?;
    unifying()?;
    contracting()?;
    in_place()?;
    strict()
}

/// Names and sizes are given together; `names`, `rename`, and unnamed dims.
fn creating() -> Result<()> {
    println!("{}", Tensor::zeros([("N", 2), ("C", 3)])?);
    let images = Tensor::randn([("N", 1), ("C", 2), ("H", 2), ("W", 3)])?;
    shows(images.clone(), ["N", "C", "H", "W"]);
    shows(images.rename([("H", "height"), ("W", "width")])?, ["N", "C", "height", "width"]);
    shows(Tensor::randn((1, ("C", 2), ("H", 2), ("W", 3)))?, [None, Some("C"), Some("H"), Some("W")]);
    shows(Tensor::randn([("N", 3), ("C", 3)])?.abs()?, ["N", "C"]); // all ops propagate names
    Ok(())
}

/// Two names match if they are equal or one is missing; the result gets the name that is there.
fn matching() -> Result<()> {
    let x = Tensor::randn([("X", 3)])?;
    let y = Tensor::randn([3])?;
    let z = Tensor::randn([("Z", 3)])?;
    shows(&x + &y, ["X"]);
    shows(&x + &x, ["X"]);
    fails(x.add(&z), ErrorKind::NameMismatch);
    Ok(())
}

/// Works for channels in any position, as long as there is a dim `C`.
fn scale_channels(input: &Tensor, scale: &Tensor) -> Result<Tensor> {
    let scale = scale.refine_names(["C"])?;
    input.mul(&scale.align_as(input)?)
}

/// Broadcasting by name is explicit: `align_as` or `align_to`, then the op.
fn aligning() -> Result<()> {
    let scale = Tensor::randn([("C", 3)])?;
    let images = Tensor::rand([("N", 3), ("H", 3), ("W", 3), ("C", 3)])?;
    let more_images = Tensor::rand([("N", 3), ("C", 3), ("H", 3), ("W", 3)])?;
    let videos = Tensor::randn([("N", 3), ("C", 3), ("H", 3), ("W", 3), ("D", 3)])?;
    shows(scale_channels(&images, &scale)?, ["N", "H", "W", "C"]);
    shows(scale_channels(&more_images, &scale)?, ["N", "C", "H", "W"]);
    shows(scale_channels(&videos, &scale)?, ["N", "C", "H", "W", "D"]);

    // A mask with its dims in another order.
    let mut images = Tensor::rand([("N", 2), ("H", 5), ("W", 4), ("C", 3)])?;
    let mask = Tensor::randint(0, 2, [4, 5])?.to(DType::Bool)?.refine_names(["W", "H"])?;
    shows(images.masked_fill_(&mask.align_as(&images)?, 0.0)?.clone(), ["N", "H", "W", "C"]);
    Ok(())
}

/// A permutation that mentions only the dims that move; flattening and unflattening dims by name.
fn manipulating() -> Result<()> {
    let tensor = Tensor::randn([2, 2, 2, 2, 2, 2])?.refine_names(["A", "B", "C", "D", "E", "F"])?;
    shows(tensor.align_to(["F", "E", "..."])?, ["F", "E", "A", "B", "C", "D"]);
    let images = Tensor::randn([32, 3, 128, 128])?.refine_names(["N", "C", "H", "W"])?;
    let flat = images.flatten(["C", "H", "W"], "features")?;
    shows(flat.clone(), ["N", "features"]);
    shows(flat.unflatten("features", [("C", 3), ("H", 128), ("W", 128)])?, ["N", "C", "H", "W"]);
    Ok(())
}

/// Gradients have no names, and the names of a gradient passed to `backward_with` are ignored.
fn differentiating() -> Result<()> {
    let x = Tensor::randn([("D", 3)])?;
    let weight = Tensor::randn([("D", 3)])?.requiring_grad()?;
    let grad_loss = Tensor::randn([3])?;
    let backward =
        |gradient: &Tensor| (&x - &weight).abs()?.backward_with(Some(gradient), BackwardOptions::default());
    backward(&grad_loss)?;
    let first = weight.grad().unwrap();
    shows(first.clone(), [None]);
    weight.zero_grad();
    backward(&grad_loss.refine_names(["C"])?)?;
    assert_eq!(first.to_vec::<f32>()?, weight.grad().unwrap().to_vec::<f32>()?);
    Ok(())
}

/// `rename` in its three forms, `refine_names` for dims that have none.
fn refining() -> Result<()> {
    let images = Tensor::rand([("N", 2), ("C", 3), ("H", 5), ("W", 7)])?;
    shows(images.rename([("N", "batch"), ("C", "channels")])?, ["batch", "channels", "H", "W"]);
    shows(images.rename(None)?, [None, None, None, None]);
    shows(images.rename(["batch", "channel", "height", "width"])?, ["batch", "channel", "height", "width"]);
    let tensor = Tensor::randn([2, 3, 5, 7, 11])?;
    shows(tensor.refine_names(["A", "...", "B", "C"])?, [Some("A"), None, None, Some("B"), Some("C")]);
    fails(images.refine_names(["N", "channels", "..."]), ErrorKind::RefineConflict);
    Ok(())
}

/// Rule "removes dimensions": a name works wherever an index does, and a list of names wherever a list of
/// indices does.
fn removing() -> Result<()> {
    let x = Tensor::randn([("N", 1), ("C", 3), ("H", 3), ("W", 3)])?;
    shows(x.squeeze("N")?, ["C", "H", "W"]);
    shows(x.sum(["N", "C"])?, ["H", "W"]);
    shows(x.sum(keep(["N", "C"]))?, ["N", "C", "H", "W"]);
    shows(x.transpose("N", "C")?, ["C", "N", "H", "W"]); // rule "permutes dimensions"
    Ok(())
}

/// Rule "unifies names from inputs": the names must match position by position, from the right, and no name
/// may occur in two positions.
fn unifying() -> Result<()> {
    let tensor = Tensor::randn((("N", 3), 3))?;
    shows(&tensor + Tensor::randn((3, ("C", 3)))?, ["N", "C"]);
    fails(Tensor::randn([("N", 3), ("C", 3)])?.add(Tensor::randn([("N", 3)])?), ErrorKind::NameMismatch);
    fails(tensor.add(Tensor::randn([("N", 3)])?), ErrorKind::Misaligned);
    Ok(())
}

/// Rule "contracts away dims": the dims that are summed over are removed without checking their names.
/// `contract` checks them.
fn contracting() -> Result<()> {
    let x = Tensor::randn([("N", 3), ("D", 3)])?;
    shows(x.mm(&Tensor::randn([("in", 3), ("out", 3)])?)?, ["N", "out"]);
    shows(x.mv(&Tensor::randn([("something", 3)])?)?, ["N"]);
    let a = Tensor::randn([("A", 3), ("B", 3), ("C", 3), ("D", 3)])?;
    let b = Tensor::randn([("B", 3), ("E", 3), ("F", 3)])?;
    shows(a.matmul(&b)?, ["A", "B", "C", "F"]);

    let keys = Tensor::randn([("D", 3), ("key", 4)])?; // not in PyTorch: sums over a name
    shows(x.contract(&keys, "D")?, ["N", "key"]);
    fails(x.contract(&keys.rename([("D", "d")])?, "D"), ErrorKind::NameNotFound);
    Ok(())
}

/// An in-place op gives its tensor the names of the result.
fn in_place() -> Result<()> {
    let mut x = Tensor::randn([3, 3])?;
    let y = Tensor::randn([("N", 3), ("C", 3)])?;
    shows(x.clone(), [None, None]);
    x += &y;
    shows(x.clone(), ["N", "C"]);
    Ok(())
}

/// Strict mode is for programs that name every dim: what the rules allow only for the sake of unnamed tensors
/// is an error.
fn strict() -> Result<()> {
    let x = Tensor::randn([("N", 3), ("D", 3)])?;
    fails(names::strict(|| x.add(Tensor::randn([3])?)), ErrorKind::NameMismatch);
    fails(names::strict(|| x.mm(&Tensor::randn([("in", 3), ("out", 3)])?)), ErrorKind::NameMismatch);
    Ok(())
}
