//! The full texts of errors for wrong calls, by subject.

use crate::wrong::Messages;
use namegrad::autograd::{Op, Parameter, detect_anomaly, functional, grad, gradcheck};
use namegrad::core::{Reduce, Triangle};
use namegrad::nn::{Buffer, init};
use namegrad::optim::{Lbfgs, clip_grad_norm_};
use namegrad::options::*;
use namegrad::prelude::*;
use namegrad::{names, ops};

fn images() -> Result<Tensor> {
    Tensor::ones([("N", 2), ("C", 3), ("H", 4), ("W", 5)])
}

fn matrix() -> Result<Tensor> {
    Tensor::ones([("N", 2), ("in", 3)])
}

#[test]
fn names_of_dims() -> Result<()> {
    let mut m = Messages::default();
    let (x, y) = (images()?, matrix()?);
    m.wrong(x.sum("width"));
    m.wrong(x.sum("c"));
    m.wrong(x.sum(["N", "N"]));
    m.wrong(x.sum(4));
    m.wrong(x.sum(-5));
    m.wrong(x.softmax("class"));
    m.wrong(x.add(&y));
    m.wrong(x.mul(&Tensor::ones([("W", 4), ("H", 5)])?));
    m.wrong(y.add(&Tensor::ones([("N", 2), ("inn", 3)])?));
    m.wrong(y.add(&Tensor::ones([("inn", 3)])?));
    m.wrong(y.clone().add_(&Tensor::ones([("NN", 2), ("inn", 3)])?));
    m.wrong(y.lerp(&Tensor::ones([("N", 2), ("inn", 3)])?, 0.5));
    let turned = y.t()?;
    m.wrong(y.masked_fill(turned.gt(0)?, 0.0));
    m.wrong(y.lerp(&turned, 0.5));
    m.wrong(y.clamp(&turned, 1.0));
    m.wrong(y.addcmul(&turned, &y));
    m.wrong(turned.gt(0)?.choose(&y, 0.0));
    m.wrong(y.gt(0)?.choose(Tensor::ones([("out", 3)])?, 0.0));
    m.wrong(x.align_to(["N", "C"]));
    m.wrong(x.align_to(["N", "C", "H", "X"]));
    m.wrong(y.align_as(&Tensor::ones([("N", 2), ("out", 3)])?));
    m.wrong(x.rename(["a", "b"]));
    m.wrong(x.rename(["a", "a", "b", "c"]));
    m.wrong(x.refine_names(["N", "C", "W", "H"]));
    m.wrong(x.refine_names(["N", "C"]));
    m.wrong(x.transpose("H", "depth"));
    m.wrong(x.permute(["N", "C", "H"]));
    m.wrong(x.permute([0, 1, 2, 2]));
    m.wrong(x.flatten(["C", "W"], "features"));
    m.wrong(x.unflatten("C", [("a", 2), ("b", 2)]));
    m.wrong(x.select("T", 0));
    m.wrong(x.narrow("H", 3, 4));
    m.wrong(x.squeeze("time"));
    m.wrong(x.size("depth"));
    m.wrong(x.sizes_of(["N", "time"]));
    m.wrong(y.contract(&y, "out"));
    m.wrong(y.mm(&y));
    m.wrong(Tensor::ones([("a b", 2)]));
    m.wrong(Tensor::ones([("N", 2), ("N", 3)]));
    m.wrong(names::strict(|| x.add(&Tensor::ones([5])?)));
    let plain = Tensor::ones([2, 3])?;
    m.wrong(x.rename([("T", "time")]));
    m.wrong(y.rename(["N", "in-features"]));
    m.wrong(y.clone().rename_(["a", "a"]));
    m.wrong(x.flatten(["C", "H"], "1st"));
    m.wrong(x.flatten(["H", "C"], "features"));
    m.wrong(plain.align_as(&y));
    m.wrong(Tensor::align_tensors([&x, &Tensor::ones([("K", 2)])?]));
    m.wrong(y.unsqueeze_with(0, UnsqueezeOptions::new().name("N")));
    m.wrong(y.contract(&plain, "in"));
    m.wrong(plain.contract(&plain, 0));
    m.wrong(plain.sum("N"));
    m.wrong(Tensor::cat([&y, &Tensor::ones([("N", 2), ("out", 3)])?], 0));
    m.wrong(Tensor::cat([&y, &Tensor::ones([("in", 3), ("N", 2)])?], "N"));
    m.wrong(Tensor::stack([&y, &Tensor::ones([("N", 2), ("out", 3)])?], 0));
    m.check("names_of_dims");
    Ok(())
}

#[test]
fn sizes() -> Result<()> {
    let mut m = Messages::default();
    let (x, plain) = (matrix()?, Tensor::ones([2, 3])?);
    m.wrong(plain.add(&Tensor::ones([4])?));
    m.wrong(x.mul(&Tensor::ones([("N", 5), ("in", 3)])?));
    m.wrong(plain.matmul(&plain));
    m.wrong(plain.mm(&Tensor::ones([2])?));
    m.wrong(plain.bmm(&plain));
    m.wrong(plain.mv(&Tensor::ones([2])?));
    m.wrong(plain.dot(&plain));
    m.wrong(plain.reshape([4, 2]));
    m.wrong(plain.reshape([-1, -1]));
    m.wrong(plain.reshape([-1, 4]));
    m.wrong(plain.t()?.view([6]));
    m.wrong(plain.expand([3, 3]));
    m.wrong(plain.expand([3]));
    m.wrong(plain.unsqueeze(4));
    m.wrong(plain.chunk(0, 0));
    m.wrong(plain.split(0, 0));
    m.wrong(plain.repeat([2]));
    m.wrong(plain.diagonal(0, 0));
    m.wrong(plain.unfold(0, 5, 1));
    m.wrong(plain.unfold(0, 1, 0));
    m.wrong(Tensor::cat([&plain, &Tensor::ones([2, 4])?], 0));
    m.wrong(Tensor::stack([&plain, &Tensor::ones([3, 2])?], 0));
    m.wrong(Tensor::cat([] as [&Tensor; 0], 0));
    m.wrong(Tensor::new([[1.0, 2.0], [3.0, 4.0]])?.item::<f32>());
    m.wrong(plain.item_at::<f32>([2, 0]));
    m.wrong(plain.addmm(&plain, &plain));
    m.wrong(plain.tensordot(&plain, 0, 1));
    m.wrong(Tensor::einsum("ij,jk->ik", [&plain, &plain]));
    m.wrong(Tensor::einsum("ij,k->q", [&plain, &plain]));
    m.wrong(Tensor::ones([usize::MAX, 2]));
    m.wrong(Tensor::zeros([1_usize << 50]));
    m.wrong(Tensor::eye(1_usize << 40, 1_usize << 40));
    m.wrong(plain.clone().add_(&Tensor::ones([4, 2, 3])?));
    let words = Tensor::ones([("word", 4), ("in", 5)])?;
    m.wrong(plain.mul(&Tensor::ones([2])?));
    m.wrong(plain.bmm(&Tensor::ones([2, 3, 4])?));
    m.wrong(plain.addmm(&Tensor::ones([2, 4])?, &Tensor::ones([4, 2])?));
    m.wrong(x.matmul(&words));
    m.wrong(x.clone().copy_(&Tensor::ones([4])?));
    m.wrong(x.split([1, 2], "N"));
    m.wrong(Tensor::einsum("nk,wk->nw", [&x, &words]));
    m.wrong(Tensor::einsum("ij->ikj", [&x]));
    m.wrong(plain.solve_triangular(&plain, Triangle::Upper));
    m.wrong(Tensor::new([vec![1.0, 2.0], vec![3.0]]));
    m.wrong(Tensor::from_slice(&[1.0, 2.0, 3.0], [2, 2]));
    m.wrong(plain.outer(&plain));
    m.wrong(x.reshape([("N", 4), ("D", 2)]));
    m.wrong(x.reshape([("N", 3), ("N", 2)]));
    m.wrong(x.kron_with(&x, KronOptions::new().names(["N"])));
    m.wrong(x.square().sum("in").add(&Tensor::ones([3])?));
    m.check("sizes");
    Ok(())
}

#[test]
fn patterns() -> Result<()> {
    let mut m = Messages::default();
    let x = Tensor::ones([("N", 2), ("H", 4), ("W", 6)])?;
    let plain = x.rename(None)?;
    m.wrong(x.rearrange("N H W", []));
    m.wrong(x.rearrange("N (H W -> N H W", []));
    m.wrong(x.rearrange("N H-W -> H W", []));
    m.wrong(x.rearrange("N H W -> N H", []));
    m.wrong(x.rearrange("N H W -> W H N", [("h", 4)]));
    m.wrong(x.rearrange("N W H -> N H W", []));
    m.wrong(x.rearrange("N h W -> h N W", []));
    m.wrong(x.rearrange("N (h p) (w q) -> N h w (p q)", [("p", 2), ("q", 2)]));
    m.wrong(x.rename([None, Some("N"), None])?.rearrange("N h w -> w h N", []));
    m.wrong(plain.rearrange("N (h p) (w q) -> N h w (p q)", [("p", 2)]));
    m.wrong(plain.rearrange("N (h p) (w q) -> N h w (p q)", [("p", 3), ("q", 2)]));
    m.wrong(plain.rearrange("N H -> H N", []));
    m.wrong(plain.reduce("N H W -> N", "maximum", []));
    m.wrong(plain.repeat_dims("N H W -> N H W C", []));
    m.wrong(Tensor::pack([&x, &plain], "N embed"));
    m.wrong(Tensor::pack([&x, &plain.select(0, 0)?.select(0, 0)?], "N * W"));
    m.wrong(x.unpack([vec![3], vec![2]], "N * W"));
    m.wrong(Tensor::einsum("batch H in, in out -> batch H out", [&x, &Tensor::ones([6, 5])?]));
    m.wrong(Tensor::einsum("N H W -> N H depth", [&x]));
    m.wrong(x.at([("h", 0)]));
    m.wrong(x.index_by("W", &Tensor::ones([("N", 3)])?.long()?));
    m.wrong(x.index_by("W", &Tensor::new([6])?));
    m.check("patterns");
    Ok(())
}

#[test]
fn indices() -> Result<()> {
    let mut m = Messages::default();
    let (x, y) = (images()?, Tensor::ones([2, 3])?);
    let (floats, far) = (Tensor::new([0.5])?, Tensor::new([7])?);
    m.wrong(x.select("C", 3));
    m.wrong(x.select("C", -4));
    m.wrong(x.index_select(&far, "C"));
    m.wrong(x.index_select(&floats, "C"));
    m.wrong(y.gather(&far, 0));
    m.wrong(y.gather(&Tensor::new([[0, 9]])?, 0));
    m.wrong(y.take(&far));
    m.wrong(y.index_add(&far, &y, 0));
    m.wrong(y.index_fill(&far, 1.0, 0));
    m.wrong(y.scatter(&Tensor::new([[9]])?, 1.0, 0));
    m.wrong(y.masked_fill(&Tensor::ones([2])?, 0.0));
    m.wrong(y.masked_fill(&Tensor::ones([2])?.gt(0)?, 0.0));
    m.wrong(y.masked_select(&floats));
    m.wrong(y.index(&[Index::At(5)]));
    m.wrong(y.index(&[Index::At(0), Index::At(0), Index::At(0)]));
    m.wrong(y.topk(4, 1));
    m.wrong(y.kthvalue(0, 1));
    m.wrong(y.kthvalue(4, 1));
    m.wrong(Tensor::zeros([0])?.argmax(..));
    m.wrong(Tensor::zeros([0])?.amax(..));
    m.wrong(y.repeat_interleave(&Tensor::new([1, 2, 3])?, 0));
    m.wrong(Tensor::new([-1])?.bincount());
    m.wrong(Tensor::new([-1])?.one_hot());
    m.wrong(x.gather(&Tensor::zeros([4, 3, 4, 5])?.long()?, "C"));
    m.wrong(x.index_select(&Tensor::new([-1])?, "C"));
    m.wrong(y.take_along_dim(&Tensor::new([0, 1])?, 0));
    m.wrong(y.scatter_reduce(&Tensor::new([[5]])?, &Tensor::ones([1, 1])?, 1, Reduce::Sum));
    m.wrong(y.index_add(&Tensor::new([0])?, &y, 0));
    m.wrong(y.put(&Tensor::new([0, 1])?, &Tensor::ones([1])?));
    m.wrong(y.index(&[Index::from(&Tensor::new([0, 5])?)]));
    m.wrong(y.clone().index_put_(&[Index::At(0)], &Tensor::ones([4])?));
    m.wrong(y.masked_fill(&y.gt(0)?, &Tensor::ones([3])?));
    m.wrong(y.masked_scatter(&y.gt(0)?, &Tensor::ones([2])?));
    m.check("indices");
    Ok(())
}

#[test]
fn dtypes() -> Result<()> {
    let mut m = Messages::default();
    let (floats, ints) = (Tensor::ones([2])?, Tensor::new([1, 2])?);
    let (truth, bytes) = (ints.gt(1)?, ints.to(DType::U8)?);
    let wide = floats.to(DType::F64)?;
    m.wrong(floats.matmul(&wide));
    m.wrong(ints.clone().add_(0.5));
    m.wrong(ints.clone().exp_());
    m.wrong(truth.sub(&truth));
    m.wrong(truth.neg());
    m.wrong(floats.bitwise_and(&floats));
    m.wrong(ints.mean(..));
    m.wrong(ints.clone().requiring_grad());
    m.wrong(bytes.full_like(300));
    m.wrong(bytes.masked_fill(&truth, 1000));
    m.wrong(bytes.maximum(1000));
    m.wrong(floats.choose(1, 2));
    m.wrong(floats.to_vec::<i32>());
    m.wrong(Tensor::new(1.5)?.item::<i64>());
    m.wrong(Tensor::new(3)?.item::<f32>());
    m.wrong(floats.lerp(&wide, 0.5));
    m.wrong(floats.logical_and("x".len() as f64)?.sub(&truth));
    m.wrong(ints.bitwise_and(&floats));
    m.wrong(ints.quantile(0.5, 0));
    m.wrong(Tensor::new(300)?.item::<u8>());
    m.wrong(TensorOptions::new().dtype(DType::I64).rand([2]));
    m.wrong(Tensor::einsum("i,i->", [&floats, &wide]));
    m.wrong(floats.scatter(&Tensor::new([0])?, &wide, 0));
    m.wrong(floats.item_at::<i64>([0]));
    m.wrong(floats.to_ndarray::<i32>());
    m.check("dtypes");
    Ok(())
}

#[test]
fn values() -> Result<()> {
    let mut m = Messages::default();
    let x = Tensor::ones([2, 3])?;
    m.wrong(Tensor::arange(0, 10, 0));
    m.wrong(Tensor::arange(10, 0, 1));
    m.wrong(Tensor::arange(0.0, f64::INFINITY, 1.0));
    m.wrong(Tensor::linspace(0.0, 1.0, usize::MAX));
    m.wrong(x.quantile(1.5, 0));
    m.wrong(x.clone().bernoulli_(1.5));
    m.wrong(x.clone().normal_(0.0, -1.0));
    m.wrong(x.clone().uniform_(1.0, 0.0));
    m.wrong(x.clone().exponential_(0.0));
    m.wrong(F::dropout(&x, 1.5));
    m.wrong(Dropout::new(-0.1));
    m.wrong(Linear::new(("in", 0), ("out", 2)).and_then(|l| l.forward(&x)));
    m.wrong(Tensor::load("missing.safetensors"));
    m.wrong(x.save("x.txt"));
    m.wrong(x.quantile(95.0, 0));
    m.wrong(Tensor::zeros([2, 0])?.quantile(0.5, 1));
    m.wrong(Tensor::randint(5, 5, [2]));
    m.wrong(x.byte()?.random_(0..1000));
    m.wrong(x.bernoulli().and_then(|x| x.sub(2)?.bernoulli()));
    m.wrong(x.histc_with(HistcOptions::new().bins(0)));
    m.wrong(x.long()?.floor_divide(0));
    m.wrong(x.save("no/such/folder/x.npy"));
    m.check("values");
    Ok(())
}

#[test]
fn gradients() -> Result<()> {
    let mut m = Messages::default();
    let x = Tensor::ones([2, 3])?.requiring_grad()?;
    let y = x.square()?;
    m.wrong(y.backward());
    m.wrong(Tensor::ones([2])?.sum(..)?.backward());
    m.wrong(x.argmax(..)?.backward());
    m.wrong(y.backward_with(Some(&Tensor::ones([4])?), BackwardOptions::new()));
    let loss = y.sum(..)?;
    loss.backward()?;
    m.wrong(loss.backward());
    m.wrong(x.clone().add_(1.0));
    m.wrong(y.clone().requires_grad_(false));
    m.wrong(gradcheck(|_| x.sum(..), &[]));
    m.wrong(gradcheck(|_| Tensor::ones([2]), &[x.detach().double()?]));
    m.wrong(
        Op::new("mine", Tensor::ones([2])?.into_value())
            .input(&x, |_, _| Tensor::ones([7]))
            .output()
            .sum(..)?
            .backward(),
    );
    let weight = Parameter::new(Tensor::ones([3])?)?;
    m.wrong(weight.set(Tensor::ones([4])?.value()));
    m.wrong(Buffer::new(Tensor::ones([3])?).set(Tensor::ones([4])?.value()));
    m.wrong(weight.tensor().mul_(2.0));
    m.wrong(x.clone().zero_());
    m.wrong(grad(&[&y], &[&x]));
    m.wrong(grad(&[&y.sum(..)?], &[&Tensor::ones([2])?]));
    m.wrong(grad(&[&y.sum(..)?], &[&Tensor::ones([2])?.requiring_grad()?]));
    m.wrong(Tensor::ones([2])?.register_hook(|_| Ok(None)));
    m.wrong(functional::hessian(|x| x.square(), &x));
    m.wrong(functional::vmap(|x| x[0].square(), &[&x], "N"));
    m.wrong(functional::vjp(|x| x[0].square(), &[&x], Some(&Tensor::ones([4])?)));
    m.wrong(Tensor::ones([2])?.square()?.write_to(&mut Tensor::zeros([3])?));
    let data = Tensor::new([-1.0, 1.0, 1.0])?;
    let of = |data: &Tensor| data.mul(weight.tensor())?.sum(..);
    m.wrong(detect_anomaly(|| of(&data.log()?)?.backward()));
    m.wrong(detect_anomaly(|| of(&Tensor::new([f32::NAN, 1.0, 1.0])?)?.backward()));
    m.check("gradients");
    Ok(())
}

#[derive(Module)]
struct Block {
    attention: Linear,
}

impl Block {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.attention.forward(x)
    }
}

#[derive(Module)]
struct Model {
    blocks: Vec<Block>,
}

#[test]
fn layers_and_losses() -> Result<()> {
    let mut m = Messages::default();
    let layer = Linear::new(("pixels", 4), ("hidden", 3))?;
    let logits = Tensor::ones([("N", 5), ("class", 3)])?;
    m.wrong(layer.forward(&Tensor::ones([("N", 5), ("features", 4)])?));
    m.wrong(layer.forward(&Tensor::ones([("N", 5), ("pixels", 6)])?));
    m.wrong(layer.forward(&Tensor::ones([5, 6])?));
    m.wrong(layer.forward(&Tensor::ones([("N", 5), ("pixels", 4)])?.double()?));
    m.wrong(layer.forward(&Tensor::ones([("hidden", 5), ("pixels", 4)])?));
    m.wrong(layer.forward(&Tensor::ones([("N", 5), ("pixels", 4)])?.to(DType::I64)?));
    m.wrong(F::cross_entropy(&logits, &Tensor::ones([("N", 5)])?, "class"));
    m.wrong(F::cross_entropy(&logits, &Tensor::new([0, 1, 2, 3, 0])?, "class"));
    m.wrong(F::cross_entropy(&logits, &Tensor::new([0, 1, -2, 0, 0])?, "class"));
    m.wrong(F::cross_entropy(&logits, &Tensor::new([[0], [1], [2], [0], [0]])?, "class"));
    m.wrong(F::cross_entropy(&logits, &Tensor::new([0, 1])?, "class"));
    m.wrong(F::cross_entropy(&logits, &Tensor::new([0, 1, 2, 0, 0])?, "classes"));
    m.wrong(F::mse_loss(&Tensor::ones([5, 1])?, &Tensor::ones([5])?));
    m.wrong(F::mse_loss(&Tensor::ones([0, 2])?, &Tensor::ones([0, 2])?));
    m.wrong(F::mse_loss(&Tensor::ones([("N", 5)])?, &Tensor::ones([("M", 5)])?));
    let column = Tensor::ones([("N", 5), ("out", 1)])?;
    m.wrong(F::mse_loss(&column, &Tensor::ones([("N", 5)])?));
    m.wrong(F::l1_loss(&Tensor::ones([("N", 5)])?, &column));
    m.wrong(F::huber_loss(&column.rename([Some("N"), None])?, &Tensor::ones([("N", 5)])?));
    m.wrong(F::binary_cross_entropy_with_logits(&column, &Tensor::ones([("N", 5)])?));
    m.wrong(F::nll_loss(&logits, &Tensor::new([0, 1, 2, 9, 0])?, "class"));
    m.wrong(Linear::new(("in", 3), ("in out", 3)));
    let model = Sequential::new()
        .then(Linear::new(("pixels", 4), ("hidden", 3))?)
        .then(Linear::new(("hiden", 3), ("out", 2))?);
    m.wrong(model.forward(&Tensor::ones([("N", 5), ("pixels", 4)])?));
    let other = Linear::new(("pixels", 4), ("hidden", 7))?;
    m.wrong(other.load_state_dict(&layer.state_dict()));
    m.wrong(model.load_state_dict(&layer.state_dict()));
    let x = Tensor::ones([2, 3])?;
    m.wrong(F::cross_entropy(&logits, &Tensor::new([0, 1, 2, 0, 1])?, "N"));
    m.wrong(F::cross_entropy(&logits, &Tensor::new([0, 1, 2, 0, 1])?.rename(["batch"])?, "class"));
    m.wrong(F::linear(&x, &Tensor::ones([4, 5])?));
    m.wrong(F::conv1d(&Tensor::ones([1, 3, 2])?, &Tensor::ones([4, 3, 3])?));
    m.wrong(init::xavier_uniform_(&Parameter::new(Tensor::ones([3])?)?));
    m.wrong(
        Linear::new(3, 4)
            .and_then(|l| Sequential::new().then(Sequential::new().then(l)).forward(&logits.t()?)),
    );
    // A path is known from the first walk on, such as that of an optimizer.
    let model = Model { blocks: vec![Block { attention: Linear::new(("in", 3), ("out", 3))? }] };
    m.wrong(model.blocks[0].forward(&logits));
    assert_eq!(model.parameters().len(), 2);
    m.wrong(model.blocks[0].forward(&logits));
    m.wrong(clip_grad_norm_(model.parameters(), -1.0));
    m.wrong(F::mse_loss(&logits, &x.gt(0)?));
    m.wrong(names::strict(|| F::mse_loss(&logits, &Tensor::ones([5, 3])?)));
    m.check("layers_and_losses");
    Ok(())
}

#[test]
fn optimizers() -> Result<()> {
    let mut m = Messages::default();
    let layer = Linear::new(("in", 2), ("out", 2))?;
    m.wrong(AdamW::builder(layer.parameters()).lr(-1.0).build());
    m.wrong(AdamW::builder(layer.parameters()).betas((1.0, 0.999)).build());
    m.wrong(AdamW::builder(layer.parameters()).eps(-1.0).build());
    m.wrong(Adam::builder(layer.parameters()).weight_decay(f64::NAN).build());
    m.wrong(Sgd::builder(layer.parameters()).momentum(-0.5).build());
    m.wrong(Sgd::builder(Vec::<Parameter>::new()).lr(0.1).build());
    m.wrong(AdamW::builder_named(layer.named_parameters()).group_matching("**.biases", |_| {}).build());
    m.wrong(Lbfgs::builder_named(layer.named_parameters()).group_matching("**.bias", |_| {}).build());
    m.check("optimizers");
    Ok(())
}

#[test]
fn calls_by_name() -> Result<()> {
    let mut m = Messages::default();
    let x = matrix()?;
    m.wrong(ops::find("sofmax"));
    let softmax = ops::find("softmax")?;
    m.wrong(softmax.call(&[&x], &[]));
    m.wrong(softmax.call(&[&x], &[("dims", "in".into())]));
    m.wrong(softmax.call(&[&x], &[("dim", "out".into())]));
    m.wrong(softmax.call(&[&x], &[("dim", 0.5.into())]));
    m.wrong(softmax.call(&[&x, &x], &[("dim", "in".into())]));
    m.wrong(softmax.call(&[], &[("dim", "in".into())]));
    m.wrong(softmax.call(&[&x], &[("dim", "in".into()), ("dim", "N".into())]));
    m.wrong(ops::find("sum")?.call_in_place(&mut x.clone(), &[], &[]));
    m.check("calls_by_name");
    Ok(())
}
