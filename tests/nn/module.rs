//! Tests of whole models: freezing by pattern, copies, calls with other parameters, checks of
//! gradients, and parametrizations.

use namegrad::autograd::{gradcheck_parameters, observe};
use namegrad::core::NamedTensor;
use namegrad::nn::parametrize::{self, Parametrization, SpectralNormOptions};
use namegrad::nn::{Buffer, Hooked, Lambda, ModuleDict, ModuleList, functional_call, gradcheck_module};
use namegrad::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

#[derive(Clone, Module)]
struct Block {
    norm: LayerNorm,
    linear: Linear,
}

/// Two blocks, and a head with the weight of the first linear layer.
#[derive(Clone, Module)]
struct Model {
    blocks: Vec<Block>,
    head: Parameter,
    batches: Buffer,
    tail: Sequential,
    dropout: Dropout,
}

impl Model {
    fn new() -> Result<Model> {
        let block = || -> Result<Block> {
            Ok(Block { norm: LayerNorm::new([("x", 3)])?, linear: Linear::new(("x", 3), ("x", 3))? })
        };
        let blocks = vec![block()?, block()?];
        Ok(Model {
            head: blocks[0].linear.weight().clone(),
            blocks,
            batches: Buffer::new(Tensor::zeros([("x", 3)])?),
            tail: Sequential::new().then(Linear::new(("x", 3), ("y", 2))?).then(Tanh),
            dropout: Dropout::new(0.5)?,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = self.dropout.forward(x)?;
        for block in &self.blocks {
            x = x.add(&block.linear.forward(&block.norm.forward(&x)?)?)?;
        }
        self.batches.set(self.batches.tensor().add(1.0)?)?;
        self.tail.forward(&x.rename(None)?.mm(&self.head.tensor().rename(None)?)?.rename(["N", "x"])?)
    }
}

fn input() -> Result<Tensor> {
    Tensor::randn([("N", 4), ("x", 3)])
}

fn paths(model: &dyn Module) -> Vec<String> {
    model.named_parameters().into_iter().map(|(path, _)| path).collect()
}

#[test]
fn parameters_are_frozen_by_pattern() -> Result<()> {
    let model = Model::new()?;
    let frozen = || -> Vec<String> {
        let all = model.named_parameters().into_iter();
        all.filter(|(_, parameter)| !parameter.requires_grad()).map(|(path, _)| path).collect()
    };
    let norms = ["blocks.0.norm.weight", "blocks.0.norm.bias", "blocks.1.norm.weight", "blocks.1.norm.bias"];
    assert_eq!(model.freeze("blocks.*.norm")?, norms);
    assert_eq!(frozen(), norms);
    assert_eq!(model.unfreeze("blocks.?.norm.*")?, norms);
    assert!(frozen().is_empty());
    assert_eq!(model.freeze("**.bias")?.len(), 5);
    assert_eq!(model.freeze("**")?, paths(&model));
    assert_eq!(model.unfreeze("head")?, ["head"]);
    // The head is the weight of the first block.
    assert!(model.blocks[0].linear.weight().requires_grad());
    assert_eq!(model.matching("tail")?.len(), 2);
    for wrong in ["blocks.*.nrom", "", "norm", "blocks.*.norm.weight.x", "*.weight"] {
        let error = model.freeze(wrong).unwrap_err();
        assert_eq!(
            (error.kind(), error.op(), error.location().file()),
            (ErrorKind::Value, "freeze", file!())
        );
        assert!(error.message().contains("the nearest: '"), "{error}");
    }
    let text = model.freeze("blocks.0.norm.wieght").unwrap_err().to_string();
    assert!(text.contains("\"blocks.0.norm.weight\""), "{text}");
    Ok(())
}

#[test]
fn a_deep_copy_is_independent_and_keeps_ties() -> Result<()> {
    let model = Model::new()?;
    model.freeze("tail")?;
    model.eval();
    let x = input()?;
    let before = model.forward(&x)?;
    let copy = model.deep_copy()?;
    assert!(copy.forward(&x)?.equal(&before)?);
    assert!(copy.head.is(copy.blocks[0].linear.weight()) && !copy.head.is(&model.head));
    assert!(!copy.parameters().iter().any(|own| model.parameters().iter().any(|other| own.is(other))));
    assert_eq!(copy.matching("tail")?.iter().filter(|(_, parameter)| parameter.requires_grad()).count(), 0);
    for parameter in model.parameters() {
        parameter.update(|value| value.mul_(0.0).map(drop))?;
    }
    model.batches.set(NamedTensor::full([3], 9.0)?)?;
    model.train();
    model.dropout.forward(&x)?;
    assert!(copy.forward(&x)?.equal(&before)?);
    assert_eq!(paths(&copy), paths(&model));
    // A clone has the same parameters.
    let clone = model.clone();
    assert!(clone.head.is(&model.head));
    // Gradients of the copy are its own.
    copy.forward(&x)?.sum(..)?.backward()?;
    assert!(copy.head.grad().is_some() && model.head.grad().is_none());
    Ok(())
}

#[test]
fn copies_of_boxed_layers() -> Result<()> {
    #[derive(Module)]
    struct Uncloned(Linear);
    impl Layer for Uncloned {
        fn forward(&self, x: &Tensor) -> Result<Tensor> {
            self.0.forward(x)
        }
    }
    let linear = || Linear::new(("x", 3), ("x", 3));
    let mut list: ModuleList = ModuleList::new();
    list.push(Box::new(linear()?));
    list.push(Box::new(Residual::new(linear()?)));
    let copy = list.deep_copy()?;
    assert!(!copy.parameters()[0].is(&list.parameters()[0]));
    assert_eq!(paths(&copy), paths(&list));
    assert!(copy[1].forward(&input()?).is_ok());
    // Layers over any number of dims, and layers with layers inside.
    let image = [("H", 3), ("W", 3)];
    let model = Sequential::new()
        .then(Conv2d::builder(("C", 2), ("C", 2), image).padding(1).build()?)
        .then(BatchNorm::new(("C", 2))?)
        .then(MaxPool2d::new([("H", 2), ("W", 2)])?)
        .then(Relu)
        .then(namegrad::nn::Gelu::new())
        .then(Residual::new(Sequential::new().then(Linear::new(("C", 2), ("C", 2))?)))
        .then_named(
            "head",
            Sequential::new().then(Flatten::new(["C", "H", "W"], "x")?).then(Dropout::new(0.1)?),
        );
    model.eval();
    let images = Tensor::randn([("N", 2), ("C", 2), ("H", 4), ("W", 4)])?;
    let copy = model.deep_copy()?;
    assert!(copy.forward(&images)?.equal(&model.forward(&images)?)?);
    model.train();
    model.forward(&images)?;
    let running = |model: &Sequential| model.state_dict().get("1.running_mean").unwrap().to_vec::<f32>();
    assert_ne!(running(&model)?, running(&copy)?);
    assert_eq!(running(&copy)?, [0.0; 2]);
    let mut named: ModuleDict<Linear> = ModuleDict::new();
    named.insert("a", linear()?)?;
    assert!(!named.deep_copy()?.get("a")?.weight().is(named.get("a")?.weight()));

    list.push(Box::new(Uncloned(linear()?)));
    let error = list.deep_copy().err().unwrap();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Unsupported, file!()));
    assert!(error.message().contains("Uncloned"), "{error}");
    let error = Sequential::new().then(Uncloned(linear()?)).deep_copy().err().unwrap();
    assert!(error.message().contains("Uncloned"), "{error}");

    #[derive(Clone, Module)]
    struct Shared {
        layer: Arc<Linear>,
    }
    let shared = Shared { layer: Arc::new(linear()?) };
    let error = shared.deep_copy().err().unwrap();
    assert!(error.message().contains("'layer.weight', 'layer.bias'"), "{error}");
    Ok(())
}

#[test]
fn a_functional_call_uses_and_restores() -> Result<()> {
    let model = Model::new()?;
    model.eval();
    let (x, before) = (input()?, model.state_dict());
    let plain = model.forward(&x)?;
    let weight = Tensor::randn([2, 3])?.requiring_grad()?;
    let y = functional_call(&model, [("tail.0.weight", weight.clone())], || model.forward(&x))?;
    assert!(!y.allclose(&plain)?);
    y.sum(..)?.backward()?;
    assert!(weight.grad().is_some());
    assert!(
        model.matching("tail.0.weight")?[0].1.grad().is_none(),
        "the replaced parameter gets no gradient"
    );
    assert!(model.head.grad().is_some());
    assert!(model.forward(&x)?.equal(&plain)?);

    // A tied parameter is replaced under all of its paths.
    let zeros = Tensor::zeros([3, 3])?;
    let y = functional_call(&model, [("head", zeros.clone())], || {
        assert_eq!(model.blocks[0].linear.weight().tensor().to_vec::<f32>()?, [0.0; 9]);
        model.forward(&x)
    })?;
    assert!(y.allclose(&functional_call(&model, [("blocks.0.linear.weight", zeros.clone())], || {
        model.forward(&x)
    })?)?);
    functional_call(&model, [("head", zeros.clone()), ("blocks.0.linear.weight", zeros.clone())], || Ok(()))?;
    let two = [("head", zeros.clone()), ("blocks.0.linear.weight", Tensor::ones([3, 3])?)];
    assert_eq!(functional_call(&model, two, || Ok(())).unwrap_err().kind(), ErrorKind::Value);

    // A buffer that is given is set in the call alone.
    let counted = model.batches.value();
    functional_call(&model, [("batches", Tensor::full([3], 5.0)?)], || {
        model.forward(&x)?;
        assert_eq!(model.batches.tensor().to_vec::<f32>()?, [6.0; 3]);
        Ok(())
    })?;
    assert_eq!(model.batches.value(), counted);

    // After an error, after a panic, and in another thread.
    let failed: Result<()> = functional_call(&model, [("head", zeros.clone())], || {
        Err(Error::new(ErrorKind::Value, "own", "an error of the caller"))
    });
    assert_eq!(failed.unwrap_err().op(), "own");
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        functional_call(&model, [("head", zeros.clone())], || -> Result<()> { panic!("of the caller") })
    }));
    assert!(caught.is_err());
    functional_call(&model, [("head", zeros.clone())], || {
        let own = std::thread::scope(|scope| scope.spawn(|| model.head.tensor()).join().unwrap());
        assert_ne!(own.to_vec::<f32>()?, [0.0; 9]);
        functional_call(&model, [("head", Tensor::ones([3, 3])?)], || {
            assert_eq!(model.head.tensor().to_vec::<f32>()?, [1.0; 9]);
            Ok(())
        })?;
        assert_eq!(model.head.tensor().to_vec::<f32>()?, [0.0; 9]);
        Ok(())
    })?;
    for (path, value) in before.iter().filter(|(path, _)| *path != "batches") {
        assert_eq!(model.state_dict().get(path), Some(value), "{path}");
    }

    for (path, value, kind) in [
        ("haed", zeros.clone(), ErrorKind::Value),
        ("head", Tensor::zeros([3, 2])?, ErrorKind::Shape),
        ("head", Tensor::zeros([("a", 3), ("b", 3)])?, ErrorKind::NameMismatch),
    ] {
        let error = functional_call(&model, [(path, value)], || Ok(())).unwrap_err();
        assert_eq!((error.kind(), error.op(), error.location().file()), (kind, "functional_call", file!()));
        assert!(error.message().contains("head"), "{error}");
    }
    Ok(())
}

#[test]
fn a_check_of_a_model_says_which_parameters_fail() -> Result<()> {
    let model = Model::new()?;
    model.to(DType::F64)?;
    model.eval();
    let x = input()?.to(DType::F64)?;
    model.freeze("blocks.1")?;
    gradcheck_module(&model, || model.forward(&x))?;
    // Another value on the tape than the function has.
    let wrong = || {
        let y = model.forward(&x)?;
        let bias = model.matching("tail.0.bias")?[0].1.tensor().square()?.sum(..)?;
        let norm = model.matching("blocks.0.norm.bias")?[0].1.tensor().exp()?.sum(..)?;
        y.add(bias.detach())?.add(norm.detach())
    };
    let error = gradcheck_module(&model, wrong).unwrap_err();
    assert_eq!((error.op(), error.location().file()), ("gradcheck_module", file!()));
    for path in ["'tail.0.bias'", "'blocks.0.norm.bias'"] {
        assert!(error.message().contains(path), "{error}");
    }
    assert!(!error.message().contains("'head'"), "{error}");
    model.freeze("**")?;
    assert_eq!(gradcheck_module(&model, || model.forward(&x)).unwrap_err().kind(), ErrorKind::Value);
    Ok(())
}

#[test]
fn weight_norm_is_pytorch_s() -> Result<()> {
    let conv = Conv2d::new(("C", 2), ("F", 3), [("H", 2), ("W", 2)])?;
    conv.to(DType::F64)?;
    let weight = conv.weight().tensor().detach();
    parametrize::weight_norm(&conv, "weight", "F")?;
    let g = "parametrizations.weight.original0";
    let v = "parametrizations.weight.original1";
    assert_eq!(paths(&conv), [g, v, "bias"]);
    let state = conv.state_dict();
    assert_eq!(state.get(g).unwrap().shape().to_string(), "[F=3, C=1, H=1, W=1]");
    assert_eq!(state.get(v).unwrap().to_vec::<f64>()?, weight.to_vec::<f64>()?);
    assert!(conv.weight().tensor().allclose(&weight)?);
    assert_eq!(conv.weight().tensor().names(), weight.names());

    // Twice the length gives twice the weight; another length of the direction changes nothing.
    let parts: Vec<Parameter> = conv.parameters();
    parts[0].update(|g| g.mul_(2.0).map(drop))?;
    parts[1].update(|v| v.mul_(7.0).map(drop))?;
    assert!(conv.weight().tensor().allclose(&weight.mul(2.0)?)?);
    let x = Tensor::randn([("N", 2), ("C", 2), ("H", 3), ("W", 3)])?.to(DType::F64)?;
    gradcheck_module(&conv, || conv.forward(&x))?;
    let mut optimizer = Sgd::builder(conv.parameters()).lr(0.1).build()?;
    conv.forward(&x)?.square()?.sum(..)?.backward()?;
    optimizer.step()?;
    assert!(!conv.weight().tensor().allclose(&weight.mul(2.0)?)?);

    // The value stays when the parametrization ends, and a state goes to another model.
    let other = Conv2d::new(("C", 2), ("F", 3), [("H", 2), ("W", 2)])?;
    other.to(DType::F64)?;
    parametrize::weight_norm(&other, "weight", 0)?;
    other.load_state_dict(&conv.state_dict())?;
    assert!(other.weight().tensor().equal(&conv.weight().tensor())?);
    let copy = conv.deep_copy()?;
    assert!(copy.weight().tensor().equal(&conv.weight().tensor())?);
    copy.parameters()[0].update(|g| g.mul_(0.0).map(drop))?;
    assert!(!copy.weight().tensor().equal(&conv.weight().tensor())?);
    let last = conv.weight().tensor().detach();
    parametrize::remove(&conv, "weight")?;
    assert_eq!(paths(&conv), ["weight", "bias"]);
    assert!(conv.weight().tensor().equal(&last)? && conv.weight().requires_grad());

    let error = parametrize::weight_norm(&conv, "wieght", "F").unwrap_err();
    assert!(error.message().contains("'weight'") && error.location().file() == file!(), "{error}");
    assert_eq!(parametrize::weight_norm(&conv, "weight", "G").unwrap_err().kind(), ErrorKind::NameNotFound);
    assert_eq!(parametrize::remove(&conv, "weight").unwrap_err().kind(), ErrorKind::Value);
    // One length for all is PyTorch's `dim=None`.
    parametrize::register(&conv, "weight", parametrize::WeightNorm::whole())?;
    assert_eq!(conv.parameters()[0].ndim(), 0);
    assert!(conv.weight().tensor().allclose(&last)?);
    Ok(())
}

#[test]
fn spectral_norm_divides_by_the_largest_singular_value() -> Result<()> {
    manual_seed(3);
    let layer = Linear::builder(("in", 4), ("out", 3)).dtype(DType::F64).build()?;
    // Of the matrix diag(5, 1, 0.5), with a column of zeros.
    let weight = Tensor::new([[5.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.5, 0.0]])?;
    layer.weight().set(weight.value())?;
    parametrize::spectral_norm(&layer, "weight", "out")?;
    assert_eq!(paths(&layer), ["parametrizations.weight.original", "bias"]);
    let buffers: Vec<String> = layer.named_buffers().into_iter().map(|(path, _)| path).collect();
    assert_eq!(buffers, ["parametrizations.weight.0._u", "parametrizations.weight.0._v"]);
    let close = || IscloseOptions::new().rtol(1e-9).atol(1e-9);
    let want = weight.to(DType::F64)?.div(5.0)?;
    assert!(layer.weight().tensor().rename(None)?.allclose_with(&want, close())?);

    // PyTorch's formula: one iteration in training mode, none in evaluation mode.
    let buffer = |at: usize| layer.named_buffers()[at].1.tensor();
    let matrix = Tensor::randn([3, 4])?.to(DType::F64)?;
    layer.parameters()[0].set(matrix.value())?;
    let (u, v) = (buffer(0), buffer(1));
    layer.eval();
    let sigma = u.dot(&matrix.mv(&v)?)?;
    assert!(layer.weight().tensor().rename(None)?.allclose_with(&matrix.div(&sigma)?, close())?);
    assert!(buffer(0).equal(&u)? && buffer(1).equal(&v)?);
    layer.train();
    let unit = |x: Tensor| x.div(&x.norm(..)?);
    let u = unit(matrix.mv(&v)?)?;
    let v = unit(matrix.t()?.mv(&u)?)?;
    let got = layer.weight().tensor().rename(None)?;
    assert!(got.allclose_with(&matrix.div(&u.dot(&matrix.mv(&v)?)?)?, close())?);
    assert!(buffer(0).allclose_with(&u, close())? && buffer(1).allclose_with(&v, close())?);

    layer.eval();
    let x = Tensor::randn([("N", 2), ("in", 4)])?.to(DType::F64)?;
    gradcheck_module(&layer, || layer.forward(&x))?;
    // The summary and the state read the parts, so the vectors stay.
    layer.train();
    let before = buffer(0);
    layer.state_dict();
    layer.summary();
    layer.num_parameters();
    assert!(buffer(0).equal(&before)?);

    let plain = Linear::new(2, 2)?;
    let none = SpectralNormOptions::new().n_power_iterations(0);
    assert_eq!(
        parametrize::spectral_norm_with(&plain, "weight", 0, none).unwrap_err().kind(),
        ErrorKind::Value
    );
    assert_eq!(paths(&plain), ["weight", "bias"]);
    // A vector is divided by its norm.
    parametrize::spectral_norm(&plain, "bias", 0)?;
    assert!((plain.bias().unwrap().tensor().norm(..)?.item::<f64>()? - 1.0).abs() < 1e-6);
    // A transposed convolution has its outputs second.
    let conv = ConvTranspose1d::new(("C", 3), ("F", 2), [("L", 2)])?;
    parametrize::spectral_norm(&conv, "weight", "F")?;
    assert_eq!(conv.named_buffers()[0].1.value().sizes(), [2]);
    assert_eq!(conv.named_buffers()[1].1.value().sizes(), [6]);
    Ok(())
}

#[test]
fn lora_learns_little_and_is_merged() -> Result<()> {
    let model = Model::new()?;
    model.eval();
    let x = input()?;
    let before = model.forward(&x)?;
    model.freeze("**")?;
    let adapters = parametrize::lora(&model, "blocks.*.linear.weight", 2, 6.0)?;
    assert_eq!(adapters.len(), 2);
    assert!(model.forward(&x)?.equal(&before)?, "an adapter computes the same at first");
    let learned: Vec<String> = {
        let all = model.named_parameters().into_iter();
        all.filter(|(_, parameter)| parameter.requires_grad()).map(|(path, _)| path).collect()
    };
    assert!(learned.contains(&"blocks.1.linear.parametrizations.weight.0.lora_A".to_string()), "{learned:?}");
    assert_eq!(
        learned.len(),
        2 + 2 + 2,
        "A and B of two weights, one of which is also the head: {learned:?}"
    );

    // B is zeros, so A gets its gradient after the first step.
    let mut optimizer = Sgd::builder(model.parameters()).lr(0.1).build()?;
    for _ in 0..2 {
        optimizer.zero_grad();
        model.forward(&x)?.square()?.sum(..)?.backward()?;
        optimizer.step()?;
    }
    let trained = model.forward(&x)?;
    assert!(!trained.allclose(&before)?);
    let weight = model.blocks[1].linear.weight();
    let state = model.state_dict();
    let part =
        |name: &str| state.get(&format!("blocks.1.linear.parametrizations.weight.{name}")).unwrap().unnamed();
    let want = part("original").add(&part("0.lora_B").mm(&part("0.lora_A"))?.mul(3.0)?)?;
    assert!(weight.tensor().rename(None)?.allclose(Tensor::constant(want))?);
    assert!(
        !weight
            .tensor()
            .allclose(&Tensor::constant(part("original")).rename(Some(weight.tensor().names().clone()))?)?
    );

    let close = || IscloseOptions::new().rtol(1e-4).atol(1e-5);
    for adapter in &adapters {
        adapter.merge()?;
        adapter.merge()?;
        assert!(adapter.is_merged());
    }
    assert!(model.forward(&x)?.allclose_with(&trained, close())?);
    assert!(!model.forward(&x)?.requires_grad());
    let copy = model.deep_copy()?;
    for adapter in &adapters {
        adapter.unmerge()?;
    }
    assert!(model.forward(&x)?.allclose_with(&trained, close())?);
    assert!(copy.forward(&x)?.allclose_with(&trained, close())?);
    // The end of the parametrization leaves the sum.
    parametrize::remove(&model, "blocks.1.linear.weight")?;
    assert!(model.forward(&x)?.allclose_with(&trained, close())?);

    let kind = |pattern: &str, rank| parametrize::lora(&model, pattern, rank, 1.0).unwrap_err().kind();
    assert_eq!(kind("blocks.1.linear.weight", 0), ErrorKind::Value);
    assert_eq!(kind("blocks.1.linear.wieght", 2), ErrorKind::Value);
    assert_eq!(kind("blocks.*.linear.weight", 2), ErrorKind::Value); // one has an adapter already
    assert_eq!(kind("blocks.1.linear.bias", 2), ErrorKind::Shape);
    assert!(model.blocks[1].linear.weight().computed().is_none());
    // A convolution is a matrix of its first dim and all others.
    let conv = Conv1d::new(("C", 3), ("F", 2), [("L", 2)])?;
    let lora = parametrize::lora(&conv, "weight", 1, 1.0)?;
    lora[0].merge()?;
    assert_eq!(conv.weight().tensor().shape().to_string(), "[F=2, C=3, L=2]");
    Ok(())
}

#[test]
fn a_parametrization_of_a_user() -> Result<()> {
    /// The originals are squared, and a scale is learned.
    #[derive(Clone, Module)]
    struct Squared {
        scale: Parameter,
    }
    impl Parametrization for Squared {
        fn compute(&self, originals: &[Tensor]) -> Result<Tensor> {
            originals[0].square()?.mul(self.scale.tensor())
        }
        fn originals(&self, value: &Tensor) -> Result<Vec<Tensor>> {
            Ok(vec![value.abs()?.sqrt()?])
        }
    }
    let layer = Linear::builder(("in", 2), ("out", 2)).bias(false).dtype(DType::F64).build()?;
    let absolute = layer.weight().tensor().detach().abs()?;
    let one = || Parameter::new(Tensor::new(1.0)?.to(DType::F64)?);
    parametrize::register(&layer, "weight", Squared { scale: one()? })?;
    assert!(layer.weight().tensor().allclose(&absolute)?);
    assert_eq!(paths(&layer), ["parametrizations.weight.original", "parametrizations.weight.0.scale"]);
    let x = Tensor::randn([("N", 2), ("in", 2)])?.to(DType::F64)?;
    gradcheck_parameters(|| layer.forward(&x), layer.named_parameters())?;
    // Another one on top of it.
    parametrize::register(&layer, "weight", Squared { scale: one()? })?;
    assert!(layer.weight().tensor().allclose(&absolute.square()?)?);
    assert_eq!(paths(&layer).len(), 3);
    assert!(layer.to_string().contains("parametrizations.weight.1         Squared"), "{layer}");

    // The parameter itself cannot be changed, and a step that changes its sizes is refused.
    let error = layer.weight().set(absolute.value()).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Autograd, file!()));
    #[derive(Clone, Module)]
    struct Sum;
    impl Parametrization for Sum {
        fn compute(&self, originals: &[Tensor]) -> Result<Tensor> {
            originals[0].sum(..)
        }
    }
    let plain = Linear::new(2, 2)?;
    assert_eq!(parametrize::register(&plain, "weight", Sum).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(paths(&plain), ["weight", "bias"]);
    // The parts are cast with the model, and the parameter can be given in a call.
    layer.to(DType::F32)?;
    assert_eq!((layer.weight().dtype(), layer.weight().requires_grad()), (DType::F32, true));
    let given = Tensor::ones([2, 2])?;
    let y = functional_call(&layer, [("weight", given)], || layer.forward(&x.to(DType::F32)?))?;
    assert!(y.select("out", 0)?.allclose(&x.to(DType::F32)?.sum("in")?)?);
    Ok(())
}

#[test]
fn a_shared_parameter_is_parametrized_once() -> Result<()> {
    let model = Model::new()?;
    parametrize::weight_norm(&model, "head", 0)?;
    assert!(model.blocks[0].linear.weight().computed().is_some());
    let state = model.state_dict();
    assert!(state.get("parametrizations.head.original0").is_some());
    assert!(state.get("blocks.0.linear.parametrizations.weight.original0").is_some());
    let count = model.parameters().len();
    assert_eq!(count, model.named_parameters().len() - 2);
    let copy = model.deep_copy()?;
    assert_eq!(copy.parameters().len(), count);
    assert!(copy.head.is(copy.blocks[0].linear.weight()));
    Ok(())
}

#[test]
fn ops_are_observed() -> Result<()> {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let list = seen.clone();
    let x = Tensor::ones([("a", 2), ("b", 3)])?;
    let record = move |op: &namegrad::autograd::Observed<'_>| {
        let _ = op.outputs[0].exp(); // not shown
        list.borrow_mut().push((op.op, op.inputs.len(), op.outputs[0].shape().to_string()));
    };
    let failed: Result<()> = observe(record, || {
        x.add(&x)?.sum("a")?;
        Err(Error::new(ErrorKind::Value, "own", "an error"))
    });
    assert!(failed.is_err());
    x.exp()?; // after the observer
    let want = [("add", 2, "[a=2, b=3]".to_string()), ("sum", 1, "[b=3]".to_string())];
    assert_eq!(*seen.borrow(), want);
    Ok(())
}

#[test]
fn hooks_of_a_layer_with_several_inputs() -> Result<()> {
    #[derive(Module)]
    struct Cell {
        update: Linear,
    }
    impl Layer<(Tensor, Tensor), (Tensor, Tensor)> for Cell {
        fn forward(&self, (x, state): &(Tensor, Tensor)) -> Result<(Tensor, Tensor)> {
            let state = self.update.forward(&x.add(state)?)?.tanh()?;
            Ok((state.relu()?, state))
        }
    }
    let cell = Hooked::new(Cell { update: Linear::new(("h", 3), ("h", 3))? });
    cell.register_forward_pre_hook(|_, (x, state)| Ok(Some((x.mul(0.0)?, state.mul(0.0)?))));
    let seen = cell.register_forward_hook(|_, _, (y, state)| Ok(Some((y.add(1.0)?, state.clone()))));
    let inputs = (Tensor::ones([("h", 3)])?, Tensor::ones([("h", 3)])?);
    let bias = cell.layer().update.bias().unwrap().tensor();
    let (y, state) = cell.forward(&inputs)?;
    assert!(state.allclose(&bias.tanh()?)? && y.allclose(&state.relu()?.add(1.0)?)?);
    seen.remove();
    assert!(cell.forward(&inputs)?.0.allclose(&state.relu()?)?);

    // Gradients of all inputs and outputs.
    let cell = Hooked::new(Cell { update: Linear::new(("h", 3), ("h", 3))? });
    let calls = Arc::new(std::sync::Mutex::new(Vec::new()));
    let list = calls.clone();
    cell.register_gradient_hook(move |_, inputs, outputs| {
        list.lock().unwrap().push((inputs.to_vec(), outputs.to_vec()));
        Ok(Some(vec![inputs[0].clone(), inputs[1].as_ref().map(|g| g.mul(2.0)).transpose()?]))
    });
    let x = Tensor::randn([("h", 3)])?.requiring_grad()?;
    let before = Tensor::randn([("h", 3)])?.requiring_grad()?;
    let (_, state) = cell.forward(&(x.clone(), before.clone()))?;
    state.sum(..)?.backward()?;
    let plain = x.detach().requiring_grad()?;
    cell.layer().forward(&(plain.clone(), before.detach()))?.1.sum(..)?.backward()?;
    assert!(x.grad().unwrap().allclose(plain.grad().unwrap())?);
    assert!(before.grad().unwrap().allclose(&plain.grad().unwrap().mul(2.0)?)?);
    {
        let calls = calls.lock().unwrap();
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0].1[1].as_ref().unwrap().to_vec::<f32>()?, [1.0; 3]);
    }
    // Without gradients of inputs, the hook sees those of the outputs.
    let hooked = Hooked::new(Cell { update: Linear::new(("h", 3), ("h", 3))? });
    let list = calls.clone();
    hooked.register_gradient_hook(move |_, inputs, outputs| {
        list.lock().unwrap().push((inputs.to_vec(), outputs.to_vec()));
        Ok(None)
    });
    hooked.forward(&inputs)?.1.sum(..)?.backward()?;
    let calls = calls.lock().unwrap();
    assert!(calls.len() == 2 && calls[1].0.iter().all(Option::is_none));
    Ok(())
}

#[test]
fn a_closure_in_a_sequence() -> Result<()> {
    let model = Sequential::new()
        .then(Linear::new(("in", 3), ("out", 4))?)
        .then(Lambda::new(|x| x.square()))
        .then_named("halves", Lambda::new(|x| x.narrow("out", 0, 2)));
    let x = Tensor::randn([("N", 2), ("in", 3)])?;
    let y = model.forward(&x)?;
    assert_eq!(y.shape().to_string(), "[N=2, out=2]");
    assert_eq!(model.named_parameters().len(), 2);
    assert!(model.deep_copy()?.forward(&x)?.equal(&y)?);
    assert!(model.to_string().contains("Lambda"), "{model}");
    // An error has the line of the closure and the path of the layer.
    let wrong = Sequential::new().then(Relu).then_named("sum", Lambda::new(|x| x.sum("out")));
    let line = line!() - 1;
    let error = wrong.forward(&x).unwrap_err();
    assert!(error.message().starts_with("the layer 'sum': "), "{error}");
    assert_eq!((error.op(), error.location().file(), error.location().line()), ("sum", file!(), line));
    Ok(())
}

#[test]
fn tied_parameters_failed_the_gradient_check() -> Result<()> {
    let tied = Parameter::new(TensorOptions::new().dtype(DType::F64).tensor([0.5, -1.0])?)?;
    let paths = [("a".to_string(), tied.clone()), ("b".to_string(), tied.clone())];
    gradcheck_parameters(|| tied.square().sum(..), paths)?;
    Ok(())
}

#[test]
fn a_parametrization_that_failed_later_was_a_panic() -> Result<()> {
    use namegrad::nn::parametrize::{self, Parametrization};
    /// The identity for small numbers.
    #[derive(Clone, Module)]
    struct Small;
    impl Parametrization for Small {
        fn compute(&self, originals: &[Tensor]) -> Result<Tensor> {
            let large = originals[0].abs()?.amax(..)?.item::<f32>()? > 5.0;
            if large { originals[0].sum("nothing") } else { Ok(originals[0].clone()) }
        }
    }
    let model = Sequential::new().then_named("fc", Linear::new(("in", 2), ("out", 3))?).then(Relu);
    parametrize::register(&model, "fc.weight", Small)?;
    model.train();
    let (_, original) = model.named_parameters().remove(0);
    original.update(|value| value.add_(10.0).map(drop))?;
    let error = model.forward(&Tensor::ones([("in", 2)])?).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::NameNotFound, "Linear"));
    assert_eq!(error.location().file(), file!());
    let message = "the layer 'fc': a parameter that is computed from others: Name 'nothing'";
    assert!(error.message().starts_with(message), "{error}");
    // Neither the rest of the model nor its text fails.
    assert_eq!(model.state_dict().len(), 2);
    assert!(format!("{model} {model:?}").contains("Small"));
    original.update(|value| value.sub_(10.0).map(drop))?;
    model.forward(&Tensor::ones([("in", 2)])?)?;

    // Several originals can only be those of the first parametrization.
    for spectral in [false, true] {
        let layer = Linear::new(2, 3)?;
        match spectral {
            true => parametrize::spectral_norm(&layer, "weight", 0)?,
            false => parametrize::weight_norm(&layer, "weight", 0)?,
        }
        layer.eval();
        let before = layer.weight().tensor();
        let error = parametrize::weight_norm(&layer, "weight", 0).unwrap_err();
        assert_eq!((error.kind(), error.op()), (ErrorKind::Value, "weight_norm"));
        assert!(error.message().contains("can only be the first parametrization"), "{error}");
        assert!(layer.weight().tensor().allclose(&before)?);
    }
    Ok(())
}

#[test]
fn a_model_with_hooked_layers_could_not_be_copied() -> Result<()> {
    use namegrad::nn::Hooked;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    #[derive(Clone, Module)]
    struct Model {
        first: Hooked<Linear>,
        second: Linear,
    }
    let model = Model {
        first: Hooked::new(Linear::new(("x", 2), ("h", 3))?),
        second: Linear::new(("h", 3), ("y", 1))?,
    };
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let handle = model.first.register_forward_hook(move |_, _, _| {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(None)
    });
    let copy = model.deep_copy()?;
    assert!(!copy.first.layer().weight().is(model.first.layer().weight()));
    assert!(!copy.second.weight().is(model.second.weight()));
    let x = Tensor::ones([("x", 2)])?;
    assert!(copy.first.forward(&x)?.equal(&model.first.forward(&x)?)?);
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    handle.remove(); // from the original alone
    model.first.forward(&x)?;
    copy.first.forward(&x)?;
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    assert!(model.first.clone().layer().weight().is(model.first.layer().weight())); // a clone shares it
    Ok(())
}

/// A count that does not fit in memory is an error: no list is allocated for it, and nothing runs until it is
/// exhausted.
#[test]
fn counts_that_do_not_fit() -> Result<()> {
    let encoder = || TransformerEncoderLayer::builder(("embed", 4), ("heads", 2), "time").dim_feedforward(2);
    let decoder = || TransformerDecoderLayer::builder(("embed", 4), ("heads", 2), "time").dim_feedforward(2);
    for many in [1_usize << 44, usize::MAX / 2, usize::MAX] {
        let lstm = Lstm::builder(("embed", 2), ("hidden", 2), "time").num_layers(many);
        let whole = Transformer::builder(("embed", 4), ("heads", 2), "time").dim_feedforward(2);
        for error in [
            lstm.clone().build().map(drop),
            lstm.bidirectional(true).build().map(drop),
            TransformerEncoder::new(encoder(), many).map(drop),
            TransformerDecoder::new(decoder(), many).map(drop),
            whole.clone().num_encoder_layers(many).build().map(drop),
            whole.num_encoder_layers(1).num_decoder_layers(many).build().map(drop),
        ] {
            let error = error.unwrap_err();
            assert_eq!((error.kind(), error.location().file()), (ErrorKind::OutOfMemory, file!()), "{error}");
        }
        let words = AdaptiveLogSoftmaxWithLoss::new(("embed", 4), ("word", many), 1..many).unwrap_err();
        assert!(words.kind() == ErrorKind::Value && words.to_string().len() < 400, "{words}");
        let rotary = RotaryEmbedding::new(("width", 4), "time")?;
        let from = rotary.forward_from(&Tensor::ones([("time", 2), ("width", 4)])?, many);
        assert_eq!(from.is_ok(), many == 1 << 44);
    }
    Ok(())
}

/// Every container is made of an iterator, and takes more modules.
#[test]
fn containers_take_iterators() -> Result<()> {
    let linear = |size: usize| Linear::new(("x", size), ("x", size + 1));
    let sizes = |model: &dyn Module| -> Vec<usize> {
        model
            .parameters()
            .iter()
            .filter(|place| place.ndim() == 2)
            .map(|place| place.tensor().sizes()[1])
            .collect()
    };
    let mut list = (1..3).map(linear).collect::<Result<ModuleList<Linear>>>()?;
    list.extend([linear(3)?]);
    let mut sequence = (1..3).map(linear).collect::<Result<Sequential>>()?;
    sequence.extend([linear(3)?]);
    let mut dict = ModuleDict::of([("a", linear(1)?), ("b", linear(2)?)])?;
    dict.extend(vec![("c".to_string(), linear(3)?)])?;
    for model in [&list as &dyn Module, &sequence, &dict] {
        assert_eq!(sizes(model), [1, 2, 3]);
    }
    assert_eq!(paths(&sequence)[4], "2.weight");
    assert_eq!(sequence.forward(&Tensor::ones([("x", 1)])?)?.sizes(), [4]);
    assert_eq!(paths(&dict)[4], "c.weight");
    assert_eq!(dict.extend([("a.b", linear(1)?)]).unwrap_err().kind(), ErrorKind::Value);
    assert_eq!(ModuleDict::of([("", linear(1)?)]).unwrap_err().location().file(), file!());
    Ok(())
}
