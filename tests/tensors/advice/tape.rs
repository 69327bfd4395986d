//! Gradients that are missing or do not fit, and writes to what needs them.

use super::{Advice, follow};
use namegrad::autograd::functional::{Randomness, VmapOptions, vmap_with};
use namegrad::autograd::{
    self, Op, autocast, detect_anomaly, functional, grad, grad_with, gradcheck, gradcheck_parameters,
};
use namegrad::fused;
use namegrad::nn::{self, Buffer};
use namegrad::options::*;
use namegrad::prelude::*;

pub(super) fn follow(advice: &mut Advice) -> Result<()> {
    passes(advice)?;
    leaves(advice)?;
    writes(advice)?;
    checks(advice)
}

fn leaf() -> Result<Tensor> {
    Tensor::new([1.0, 2.0, 3.0])?.requiring_grad()
}

fn passes(advice: &mut Advice) -> Result<()> {
    let x = leaf()?;
    let y = x.square()?;
    let (g, retain) = (Tensor::ones([3])?, BackwardOptions::new().retain_graph(true));
    follow!(advice, y.backward_with(None, retain) => { let y = leaf()?.square()?; y.sum(..)?.backward()?; assert!(y.requires_grad()) }
        { let y = leaf()?.square()?; y.mean(..)?.backward()?; assert!(y.requires_grad()) }
        { let y = leaf()?.square()?; y.backward_with(Some(&g), BackwardOptions::new())?; assert!(y.requires_grad()) });
    follow!(advice, grad_with(&[&y], &[&x], &[], retain) => { let y = x.square()?; assert_eq!(grad(&[&y.sum(..)?], &[&x])?.len(), 1) }
        { let y = x.square()?; assert_eq!(grad_with(&[&y], &[&x], &[Some(&g)], BackwardOptions::new())?.len(), 1) });
    let loss = y.sum(..)?;
    loss.backward()?;
    follow!(advice, loss.backward() => {
        let loss = leaf()?.square()?.sum(..)?;
        loss.backward_with(None, BackwardOptions::new().retain_graph(true))?;
        loss.backward()?;
        assert!(loss.requires_grad())
    });
    let y = x.square()?.sum(..)?;
    grad(&[&y], &[&x])?;
    follow!(advice, grad(&[&y], &[&x]) => {
        let y = x.square()?.sum(..)?;
        grad_with(&[&y], &[&x], &[], BackwardOptions::new().retain_graph(true))?;
        assert_eq!(grad(&[&y], &[&x])?.len(), 1)
    });
    let y = x.square()?.sum(..)?;
    {
        let (own, x) = (&x, leaf()?);
        follow!(advice, grad(&[&y], &[&x]) => {
            let y = own.square()?.sum(..)?;
            assert!(grad_with(&[&y], &[&x], &[], BackwardOptions::new().allow_unused(true))?[0].is_none())
        });
        let x = Tensor::ones([3])?;
        follow!(advice, grad(&[&x.sum(..)?], &[&x]) => {
            let x = x.clone();
            let x = x.requiring_grad()?;
            assert_eq!(grad(&[&x.sum(..)?], &[&x])?.len(), 1)
        } { let model = Linear::new(3, 2)?; model.set_requires_grad(true)?; assert!(model.weight().requires_grad()) });
    }
    let (logits, target) = (Tensor::ones([("N", 2), ("class", 3)])?.requiring_grad()?, Tensor::new([0, 1])?);
    follow!(advice, logits.argmax("class")?.sum(..)?.backward() => {
        let loss = F::cross_entropy(&logits, &target, "class")?;
        loss.backward()?;
        assert!(logits.grad().is_some())
    });
    let model = Linear::new(3, 2)?;
    model.set_requires_grad(false)?;
    follow!(advice, model.forward(&Tensor::ones([3])?)?.sum(..)?.backward() => {
        let x = Tensor::ones([3])?;
        let x = x.requiring_grad()?;
        model.forward(&x)?.sum(..)?.backward()?;
        assert!(x.grad().is_some())
    } { model.set_requires_grad(true)?; assert!(model.weight().requires_grad()) });
    let own = leaf()?;
    follow!(advice, no_grad(|| own.square()?.sum(..)?.backward()) => {
        let loss = enable_grad(|| own.square()?.sum(..))?;
        loss.backward()?;
        assert!(own.grad().is_some())
    });
    let y = x.square()?;
    follow!(advice, y.backward_with(Some(&Tensor::ones([4])?), retain) => {
        y.backward_with(Some(&y.ones_like()?), retain)?;
        assert!(x.grad().is_some())
    });
    let gradient = Tensor::ones([3])?.long()?;
    follow!(advice, y.backward_with(Some(&gradient), retain) => {
        y.backward_with(Some(&gradient.to(DType::F32)?), retain)?;
        assert!(x.grad().is_some())
    });
    let refused =
        Op::new("mine", Tensor::ones([3])?.into_value()).input(&x, |_, _| Tensor::ones([7])).output();
    assert!(refused.sum(..)?.backward().is_err());
    Ok(())
}

fn leaves(advice: &mut Advice) -> Result<()> {
    let (x, whole) = (Tensor::ones([3])?, Tensor::new([1, 2])?);
    follow!(advice, whole.clone().requiring_grad() => { let x = whole.clone(); assert!(x.to(DType::F32)?.requiring_grad()?.requires_grad()) });
    follow!(advice, Parameter::new(whole.clone()) => { let x = whole.clone(); assert!(Parameter::new(x.to(DType::F32)?)?.requires_grad()) });
    let parameter = Parameter::new(Tensor::ones([3])?)?;
    follow!(advice, parameter.to_dtype(DType::I64) => { parameter.to_dtype(DType::F64)?; assert_eq!(parameter.tensor().dtype(), DType::F64) });
    follow!(advice, leaf()?.square()?.requires_grad_(false) => {
        let x = leaf()?.square()?;
        let x = x.detach();
        assert!(!x.requires_grad())
    });
    follow!(advice, x.set_grad(Some(Tensor::ones([3])?)) => {
        let x = x.clone();
        let x = x.requiring_grad()?;
        x.set_grad(Some(Tensor::ones([3])?))?;
        assert!(x.grad().is_some())
    });
    follow!(advice, x.retain_grad() => { let x = x.clone(); let x = x.requiring_grad()?; x.retain_grad()?; assert!(x.requires_grad()) });
    follow!(advice, x.register_hook(|_| Ok(None)) => {
        let x = x.clone();
        let x = x.requiring_grad()?;
        x.register_hook(|_| Ok(None))?;
        assert!(x.requires_grad())
    });
    follow!(advice, leaf()?.square()?.register_post_accumulate_grad_hook(|_| Ok(None)) => {
        let x = leaf()?.square()?;
        x.register_hook(|_| Ok(None))?;
        assert!(x.requires_grad())
    });
    let (matrix, row) = (Tensor::ones([2, 3])?, Tensor::ones([3])?);
    let factor = Tensor::new(2.0)?.requiring_grad()?;
    for w in [row, factor] {
        let own = w.clone();
        follow!(advice, fused(&[&matrix], move |[x]| x.mul(&own)) => {
            let x = Tensor::ones([2, 3])?;
            assert_eq!(fused(&[&x, &w], |[x, w]| x.mul(w))?.sizes(), [2, 3])
        });
    }
    follow!(advice, fused(&[&x], |[x]| F::dropout(x, 0.5)) => {
        let mask = F::dropout(&x.ones_like()?, 0.5)?;
        let y = fused(&[&x, &mask], |[x, mask]| x.mul(mask))?;
        assert!(y.equal(&x.mul(&mask)?)?)
    });
    let buffer = Buffer::new(Tensor::new([1, 2])?);
    let value = Tensor::new([0.5, 2.0])?;
    follow!(advice, buffer.set(value.value()) => { buffer.set(value.to(DType::I64)?.value())?; assert_eq!(buffer.tensor().dtype(), DType::I64) });
    let model = Linear::new(3, 2)?;
    nn::parametrize::weight_norm(&model, "weight", 0)?;
    follow!(advice, model.weight().set(Tensor::ones([2, 3])?.value()) => { assert!(model.named_parameters().len() > 2) }
        { let others = model.named_parameters(); assert_eq!(others.len(), 3) });
    Ok(())
}

fn writes(advice: &mut Advice) -> Result<()> {
    let (x, p) = (leaf()?, Parameter::new(Tensor::ones([3])?)?);
    follow!(advice, x.clone().add_(1.0) => { p.update(|v| v.add_(1.0).map(drop))?; assert_eq!(p.tensor().item_at::<f32>([0])?, 2.) }
        { let mut x = x.clone(); no_grad(|| x.add_(1.0).map(drop))?; assert_eq!(x.item_at::<f32>([0])?, 2.) });
    let y = x.square()?;
    follow!(advice, y.clone().write_to(&mut Tensor::zeros([3])?) => {
        let mut out = Tensor::zeros([3])?;
        let y = y.clone();
        no_grad(|| y.write_to(&mut out).map(drop))?;
        assert_eq!(out.to_vec::<f32>()?, [1., 4., 9.])
    });
    let whole = Tensor::new([1, 2])?;
    follow!(advice, whole.clone().div_(2.0) => { let mut x = whole.clone(); x = x.to(DType::F32)?; assert_eq!(x.div_(2.0)?.item_at::<f32>([0])?, 0.5) });
    follow!(advice, x.clone().resize_([6]) => { let mut x = x.detach(); assert_eq!(x.resize_([6])?.numel(), 6) });
    let named = Tensor::ones([("N", 3)])?;
    follow!(advice, named.clone().resize_([6]) => { let x = &named; assert_eq!(x.rename(None)?.resize_([6])?.numel(), 6) });
    Ok(())
}

fn checks(advice: &mut Advice) -> Result<()> {
    let x = Tensor::new([1.0, 2.0])?;
    follow!(advice, autocast(DType::I64, || x.matmul(&x)) => { assert_eq!(autocast(DType::BF16, || x.matmul(&x))?.dtype(), DType::BF16) });
    follow!(advice, functional::hessian(|x| x.square(), &x) => {
        let of = |x: &Tensor| { let y = x.square()?; y.sum(..) };
        assert_eq!(functional::hessian(of, &x)?.sizes(), [2, 2])
    } { let of = |x: &Tensor| { let y = x.square()?; y.mean(..) }; assert_eq!(functional::hessian(of, &x)?.sizes(), [2, 2]) });
    let rows = Tensor::new([[1.0, 2.0], [-3.0, 1.0]])?.refine_names(["N", "n"])?;
    let decided = |x: &[Tensor]| if x[0].sum(..)?.item::<f32>()? > 0.0 { x[0].exp() } else { x[0].sin() };
    follow!(advice, functional::vmap(decided, &[&rows], "N") => {
        let chosen = |x: &[Tensor]| {
            let (condition, a, b) = (x[0].sum(..)?.gt(0)?, x[0].exp()?, x[0].sin()?);
            let chosen = condition.choose(&a, &b)?;
            chosen.mul(1.0)
        };
        assert_eq!(functional::vmap(chosen, &[&rows], "N")?.shape(), rows.shape())
    });
    let noisy = |x: &[Tensor]| x[0].add(&x[0].randn_like()?);
    follow!(advice, functional::vmap(noisy, &[&rows], "N") => {
        let (f, x) = (noisy, rows.rename([("N", "batch")])?);
        assert_eq!(vmap_with(f, &[&x], "batch", VmapOptions::new().randomness(Randomness::Different))?.shape(), x.shape())
    });
    let row = rows.select("N", 0)?;
    follow!(advice, functional::vmap(|x| x[0].dot(&x[1]), &[&rows, &row], "N") => {
        let options = VmapOptions::new().shared(vec![1]);
        assert_eq!(vmap_with(|x| x[0].dot(&x[1]), &[&rows, &row], "N", options)?.numel(), 2)
    });
    let summed = |x: &[Tensor]| Tensor::zeros([2])?.add_(&x[0]).cloned();
    follow!(advice, functional::vmap(summed, &[&rows], "N") => {
        let summed = |y: &[Tensor]| { let x = Tensor::zeros([2])?; let x = x.add(&y[0])?; Ok(x) };
        assert_eq!(functional::vmap(summed, &[&rows], "N")?.numel(), 4)
    });
    let w = Tensor::ones([2])?.requiring_grad()?;
    let backward = |x: &[Tensor]| x[0].dot(&w)?.backward().map(|()| x[0].clone());
    follow!(advice, functional::vmap(backward, &[&rows], "N") => {
        let gradient = |x: &[Tensor]| { let loss = x[0].dot(&w)?; Ok(autograd::grad(&[&loss], &[&w])?.remove(0)) };
        assert_eq!(functional::vmap(gradient, &[&rows], "N")?.sizes(), [2, 2])
    });
    follow!(advice, gradcheck(|x| x[0].mul(1.0), &[Tensor::new([1, 2])?]) => {
        let x = Tensor::new([1, 2])?;
        gradcheck(|x| x[0].mul(1.0), &[x.to(DType::F64)?])?;
        assert_eq!(x.numel(), 2)
    });
    let double = x.to(DType::F64)?;
    follow!(advice, gradcheck(|x| x[0].mul(Tensor::rand([2])?), &[double.clone()]) => {
        gradcheck(|x| { manual_seed(0); x[0].mul(Tensor::rand([2])?) }, &[double.clone()])?;
        let model = Sequential::new();
        model.eval();
        assert_eq!(model.parameters().len(), 0)
    });
    let rounded = |x: &[Tensor]| x[0].exp()?.mul(3.0)?.sin();
    follow!(advice, gradcheck(rounded, &[x.clone()]) => { gradcheck(rounded, &[x.to(DType::F64)?])?; assert_eq!(x.numel(), 2) });
    let weight = Parameter::new(Tensor::new([0.0])?)?;
    let p = 0.5;
    let at = |x: f64| Tensor::new([x])?.requiring_grad();
    follow!(advice, detect_anomaly(|| at(0.0)?.sqrt()?.mul(0.0)?.backward()) => {
        let x = at(0.0)?;
        detect_anomaly(|| x.add(1e-12)?.sqrt()?.mul(0.0)?.backward())?;
        assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [0.])
    });
    follow!(advice, detect_anomaly(|| at(0.0)?.pow(p)?.mul(0.0)?.backward()) => {
        let x = at(0.0)?;
        detect_anomaly(|| x.add(1e-12)?.pow(p)?.mul(0.0)?.backward())?;
        assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [0.])
    });
    follow!(advice, detect_anomaly(|| at(0.0)?.hypot(at(0.0)?)?.backward()) => {
        let (x, y) = (at(0.0)?, at(0.0)?);
        detect_anomaly(|| x.square()?.add(y.square()?)?.add(1e-12)?.sqrt()?.backward())?;
        assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [0.])
    });
    follow!(advice, detect_anomaly(|| at(1.0)?.acos()?.mul(0.0)?.backward()) => {
        let x = at(1.0)?;
        detect_anomaly(|| x.clamp(-1.0 + 1e-6, 1.0 - 1e-6)?.acos()?.mul(0.0)?.backward())?;
        assert!(x.grad().is_some())
    });
    let loss = weight.tensor().add(f64::NAN)?.sum(..)?;
    follow!(advice, detect_anomaly(|| loss.backward()) => {
        let found = detect_anomaly(|| weight.tensor().add(f64::NAN)?.sum(..)?.backward());
        assert!(found.unwrap_err().message().contains("'add'"))
    });
    let parameter = Parameter::new(Tensor::ones([2])?.to(DType::F64)?)?;
    parameter.set_requires_grad(false)?;
    let of = || parameter.tensor().square()?.sum(..);
    follow!(advice, gradcheck_parameters(of, [("p".to_string(), parameter.clone())]) => {
        parameter.set_requires_grad(true)?;
        gradcheck_parameters(of, [("p".to_string(), parameter.clone())])?;
        assert!(parameter.requires_grad())
    });
    let x = leaf()?;
    follow!(advice, x.histc() => { assert_eq!(x.detach().histc()?.numel(), 100) });
    let named = Parameter::new(Tensor::ones([("N", 2), ("C", 2)])?)?;
    let value = Tensor::ones([("C", 2), ("N", 2)])?;
    follow!(advice, named.set(value.value()) => {
        let p = &named;
        p.set(value.align_as(&p.tensor())?.value())?;
        assert_eq!(*p.tensor().names(), ["N", "C"])
    } { named.set(value.rename(None)?.value())?; assert_eq!(*named.tensor().names(), ["N", "C"]) });
    let value = named.tensor().detach().rename([("C", "channel")])?;
    follow!(advice, named.set(value.value()) => {
        named.set(value.rename([("channel", "C")])?.value())?;
        assert_eq!(*named.tensor().names(), ["N", "C"])
    } { named.set(value.rename(None)?.value())?; assert_eq!(*named.tensor().names(), ["N", "C"]) });
    Ok(())
}
