//! Layers: dims by name, parameters by path, state dicts that fit or do not, and training.

use namegrad::core::NamedTensor;
use namegrad::nn::{Buffer, LoadOptions, StateDict};
use namegrad::optim::{Optimizer, Sgd};
use namegrad::prelude::*;

#[derive(Module)]
struct Block {
    running: Buffer,
    linear: Linear,
    scale: Option<Parameter>,
    depth: usize,
}

#[derive(Module)]
struct Net<M> {
    first: Linear,
    blocks: Vec<Block>,
    head: M,
    dropout: Dropout,
    #[module(skip)]
    _note: std::time::Duration,
}

fn block(scale: bool) -> Result<Block> {
    Ok(Block {
        running: Buffer::new(Tensor::zeros([("hidden", 4)])?),
        linear: Linear::new(("hidden", 4), ("hidden", 4))?,
        scale: if scale { Some(Parameter::new(Tensor::ones([("hidden", 4)])?)?) } else { None },
        depth: 3,
    })
}

fn net() -> Result<Net<Sequential>> {
    Ok(Net {
        first: Linear::new(("in", 3), ("hidden", 4))?,
        blocks: vec![block(true)?, block(false)?],
        head: Sequential::new()
            .then(Linear::builder(("hidden", 4), ("out", 2)).bias(false).build()?)
            .then(Relu),
        dropout: Dropout::new(0.5)?,
        _note: std::time::Duration::ZERO,
    })
}

#[test]
fn parameters_have_the_paths_of_the_fields() -> Result<()> {
    let net = net()?;
    let paths: Vec<String> = net.named_parameters().into_iter().map(|(path, _)| path).collect();
    let want = [
        "first.weight",
        "first.bias",
        "blocks.0.linear.weight",
        "blocks.0.linear.bias",
        "blocks.0.scale",
        "blocks.1.linear.weight",
        "blocks.1.linear.bias",
        "head.0.weight",
    ];
    assert_eq!(paths, want);
    let buffers: Vec<String> = net.named_buffers().into_iter().map(|(path, _)| path).collect();
    assert_eq!(buffers, ["blocks.0.running", "blocks.1.running"]);
    assert_eq!(net.num_parameters(), 3 * 4 + 4 + 2 * (16 + 4) + 4 + 8);
    assert_eq!(net.blocks[0].depth, 3);
    Ok(())
}

#[test]
fn the_summary_shows_dims_by_name_and_counts() -> Result<()> {
    let text = net()?.to_string();
    for part in [
        "Net",
        "Linear(in=3 -> hidden=4)",
        "float32[hidden=4, in=3]",
        "Dropout(p=0.5)",
        "68 parameters, 68 trainable",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    Ok(())
}

#[test]
fn train_and_eval_reach_every_layer() -> Result<()> {
    let net = net()?;
    let x = Tensor::ones([("N", 1000)])?;
    net.eval();
    assert_eq!(net.dropout.forward(&x)?.to_vec::<f32>()?, [1.0; 1000]);
    net.train();
    let dropped = net.dropout.forward(&x)?.to_vec::<f32>()?;
    assert!(dropped.iter().all(|v| *v == 0.0 || *v == 2.0));
    assert!(dropped.contains(&0.0) && dropped.contains(&2.0));
    Ok(())
}

#[test]
fn tied_parameters_count_once_and_learn_together() -> Result<()> {
    #[derive(Module)]
    struct Tied {
        both: [Parameter; 2],
    }
    let shared = Linear::builder(4, 4).bias(false).build()?.weight().clone();
    let tied = Tied { both: [shared.clone(), shared.clone()] };
    assert_eq!((tied.named_parameters().len(), tied.parameters().len(), tied.num_parameters()), (2, 1, 16));
    let x = Tensor::ones([4])?;
    shared.tensor().mul(tied.both[1].tensor())?.sum(..)?.add(&x.sum(..)?)?.backward()?;
    let want: Vec<f32> = shared.tensor().mul(2.0)?.to_vec()?;
    assert_eq!(shared.grad().unwrap().to_vec::<f32>()?, want);
    Ok(())
}

#[test]
fn linear_finds_its_dim_wherever_it_stands() -> Result<()> {
    let layer = Linear::new(("C", 3), ("features", 5))?;
    let last = Tensor::rand([("N", 2), ("H", 4), ("C", 3)])?;
    let want = layer.forward(&last)?;
    assert_eq!(*want.names(), ["N", "H", "features"]);
    for order in [["N", "C", "H"], ["C", "N", "H"], ["C", "H", "N"]] {
        let got = layer.forward(&last.align_to(order)?)?.align_to(["N", "H", "features"])?;
        assert_eq!(got.to_vec::<f32>()?, want.to_vec::<f32>()?);
    }
    let unnamed = layer.forward(&last.rename(None)?)?;
    assert_eq!(unnamed.to_vec::<f32>()?, want.to_vec::<f32>()?);
    Ok(())
}

#[test]
fn linear_refuses_what_is_not_its_input() -> Result<()> {
    let layer = Linear::new(("channel", 3), ("features", 5))?;
    let error = layer.forward(&Tensor::rand([("N", 2), ("chanel", 3)])?).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NameNotFound);
    assert_eq!(error.repair(), Some("x.rename([(\"chanel\", \"channel\")])?, if both names mean the same"));
    let error = layer.forward(&Tensor::rand([("N", 2), ("chanel", 4)])?).unwrap_err();
    assert_eq!(error.repair(), None, "its size differs");
    assert!(error.location().file().ends_with("linear.rs"), "{error}");
    let error = layer.forward(&Tensor::rand([("N", 2), ("channel", 4)])?).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    assert!(
        error.to_string().contains("(channel=3 -> features=5) needs 3 elements in the dim 'channel', got 4")
    );
    let error = layer.forward(&Tensor::rand([("features", 2), ("channel", 3)])?).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DuplicateName);
    assert_eq!(Linear::new(("1x", 3), ("y", 5)).err().unwrap().kind(), ErrorKind::InvalidName);
    assert_eq!(Dropout::new(1.5).err().unwrap().kind(), ErrorKind::Value);
    Ok(())
}

/// The text of the error of a call.
fn text(result: Result<Tensor>) -> String {
    let error = result.unwrap_err();
    assert!(error.location().file().ends_with("linear.rs"), "{error}");
    let text = error.to_string();
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    format!("{}\n{rest}", first.split(" (at ").next().unwrap())
}

#[test]
fn errors_of_a_layer_have_its_name_and_its_path() -> Result<()> {
    #[derive(Module)]
    struct Model {
        blocks: Vec<Linear>,
        head: Sequential,
    }
    let linear = |input, output| Linear::new((input, 4), (output, 4));
    let model = Model {
        blocks: vec![linear("in", "hidden")?],
        head: Sequential::new()
            .then(Relu)
            .then(linear("hidden", "out")?)
            .then_named("drop", Dropout::new(0.5)?),
    };
    let x = Tensor::ones([("N", 5), ("features", 4)])?;
    assert_eq!(
        text(model.blocks[0].forward(&x)),
        "Linear: the layer (in=4 -> hidden=4) needs the dim 'in', which the input does not have\n  \
         inputs: [N=5, features=4]\n  try: x.rename([(\"features\", \"in\")])?, if both names mean the same"
    );
    assert_eq!(model.parameters().len(), 4); // and every layer knows its path
    let at = "Linear: the layer 'blocks.0' (in=4 -> hidden=4)";
    assert!(text(model.blocks[0].forward(&x)).starts_with(&format!("{at} needs the dim 'in'")));
    assert_eq!(
        text(model.blocks[0].forward(&Tensor::ones([("N", 5), ("in", 4)])?.to(DType::F64)?)),
        format!(
            "{at} has parameters of float32, and the input is float64\n  inputs: [N=5, in=4]\n  try: x.to(DType::F32)?"
        )
    );
    assert!(text(model.blocks[0].forward(&Tensor::ones([("hidden", 5), ("in", 4)])?)).contains(
        "makes the dim 'hidden', which the input already has\n  inputs: [hidden=5, in=4]\n  try: x.rename"
    ));
    assert!(text(model.head.forward(&x)).starts_with("Linear: the layer 'head.1' (hidden=4 -> out=4) needs"));
    let bools = Tensor::ones([("N", 5), ("hidden", 4)])?.to(DType::Bool)?;
    assert!(text(model.head.forward(&bools)).starts_with("Relu: the layer 'head.0': "));
    Ok(())
}

#[test]
fn a_sequential_says_which_layer_failed() -> Result<()> {
    let inner = Sequential::new().then(Relu).then_named("fc", Linear::new(("in", 3), ("out", 2))?);
    let model = Sequential::new().then(Relu).then(inner);
    let x = Tensor::ones([("N", 5), ("in", 4)])?;
    assert!(text(model.forward(&x)).starts_with("Linear: the layer '1.fc' (in=3 -> out=2) needs 3 elements"));
    model.eval();
    assert!(text(model.forward(&x)).starts_with("Linear: the layer '1.fc' (in=3 -> out=2) needs 3 elements"));
    Ok(())
}

#[test]
fn a_layer_from_a_dim_to_one_of_the_same_name() -> Result<()> {
    use namegrad::core::names::strict;
    let layer = Linear::new(("hidden", 4), ("hidden", 4))?;
    assert_eq!(layer.weight().tensor().shape().to_string(), "[hidden=4, hidden_in=4]");
    for dims in [["N", "time", "hidden"], ["hidden", "N", "time"]] {
        let x = Tensor::rand([(dims[0], 4), (dims[1], 4), (dims[2], 4)])?;
        let y = strict(|| layer.forward(&x))?;
        assert_eq!(y.shape(), x.shape());
        let want = layer.forward(&x.align_to(["N", "time", "hidden"])?.rename(None)?)?;
        let y = y.align_to(["N", "time", "hidden"])?.rename(None)?;
        assert!(y.allclose(&want.rename(None)?)?);
    }
    Ok(())
}

#[test]
fn every_module_is_printed() -> Result<()> {
    let boxed: Box<dyn Layer> = Box::new(Linear::new(("in", 3), ("out", 2))?);
    assert!(
        boxed.to_string().starts_with("Linear(in=3 -> out=2)\n  weight  float32[out=2, in=3]"),
        "{boxed}"
    );
    assert_eq!((Relu.to_string(), Dropout::new(0.5)?.to_string()), ("Relu".into(), "Dropout(p=0.5)".into()));
    assert_eq!(boxed.num_parameters(), 8);
    let model = Sequential::new().then(boxed).then(namegrad::nn::Hooked::new(Tanh));
    let text = model.to_string();
    assert!(
        text.starts_with("Sequential\n  0         Linear(in=3 -> out=2)\n  0.weight  float32[out=2, in=3]"),
        "{text}"
    );
    assert!(text.contains("\n  1         Tanh\n"), "{text}");
    Ok(())
}

#[test]
fn a_generic_module_is_bounded_by_what_its_fields_need() -> Result<()> {
    use std::marker::PhantomData;
    struct Mode;
    #[derive(Module)]
    struct Net<Norm, M> {
        norm: Option<Norm>,
        mode: PhantomData<M>,
        r#type: f64,
    }
    let net = Net::<Linear, Mode> { norm: Some(Linear::new(2, 2)?), mode: PhantomData, r#type: 1.0 };
    assert_eq!(net.named_parameters()[0].0, "norm.weight");
    assert_eq!((net.mode, net.r#type), (PhantomData, 1.0));
    Ok(())
}

#[test]
fn a_buffer_is_checked_like_a_parameter() -> Result<()> {
    let buffer = Buffer::new(Tensor::zeros([("C", 2)])?.requiring_grad()?);
    assert!(!buffer.tensor().requires_grad());
    let wrong = NamedTensor::zeros([3])?;
    assert_eq!(buffer.set(&wrong).unwrap_err().kind(), ErrorKind::Shape);
    let parameter = Parameter::new(Tensor::zeros([("C", 2)])?)?;
    assert_eq!(parameter.set(&wrong).unwrap_err().kind(), ErrorKind::Shape);
    buffer.set(&NamedTensor::ones([2])?.to(DType::F64)?)?;
    assert_eq!((buffer.value().dtype(), buffer.value().shape().to_string()), (DType::F32, "[C=2]".into()));
    let steps = Buffer::new(Tensor::new(0_i64)?);
    assert_eq!(steps.set(&NamedTensor::ones(())?).unwrap_err().kind(), ErrorKind::DType);
    Ok(())
}

#[test]
fn gradients_reach_weight_and_bias_through_every_rank() -> Result<()> {
    let layer = Linear::new(("in", 3), ("out", 2))?;
    for shape in [vec![3usize], vec![4, 3], vec![2, 4, 3], vec![2, 2, 4, 3]] {
        layer.zero_grad();
        let rows: usize = shape[..shape.len() - 1].iter().product();
        let x = Tensor::ones(shape)?.requiring_grad()?;
        layer.forward(&x)?.sum(..)?.backward()?;
        assert_eq!(layer.bias().unwrap().grad().unwrap().to_vec::<f32>()?, [rows as f32; 2]);
        assert_eq!(layer.weight().grad().unwrap().to_vec::<f32>()?, [rows as f32; 6]);
        assert!(!layer.weight().grad().unwrap().has_names());
        assert_eq!(x.grad().unwrap().sizes(), x.sizes());
    }
    Ok(())
}

#[test]
fn a_state_goes_from_model_to_model() -> Result<()> {
    let (from, to) = (net()?, net()?);
    to.load_state_dict(&from.state_dict())?;
    for ((path, a), (_, b)) in from.named_parameters().iter().zip(to.named_parameters()) {
        assert_eq!(a.tensor().to_vec::<f32>()?, b.tensor().to_vec::<f32>()?, "{path}");
        assert_eq!(a.tensor().names(), b.tensor().names());
    }
    Ok(())
}

#[test]
fn a_state_that_does_not_fit_changes_nothing() -> Result<()> {
    let model = net()?;
    let before = model.state_dict();
    let mut wrong: StateDict = net()?.state_dict();
    let bias = wrong.remove("first.bias").unwrap();
    wrong.insert("first.bais", bias);
    wrong.insert("head.0.weight", NamedTensor::zeros([("out", 2), ("hidden", 5)])?);
    let error = model.load_state_dict(&wrong).unwrap_err();
    for part in [
        "missing: first.bias",
        "unexpected: first.bais",
        "head.0.weight is [out=2, hidden=4] in the model and [out=2, hidden=5]",
    ] {
        assert!(error.to_string().contains(part), "{part} is not in {error}");
    }
    for (path, value) in before.iter() {
        assert_eq!(value.to_vec::<f32>()?, model.state_dict().get(path).unwrap().to_vec::<f32>()?);
    }
    Ok(())
}

#[test]
fn the_repair_of_a_state_that_fits_partly_loads_it() -> Result<()> {
    let model = Linear::new(("in", 3), ("out", 2))?;
    let call = |setters: &str| format!("model.load_state_dict_with(&state, LoadOptions::new(){setters})?");
    let repair = |state: &StateDict| model.load_state_dict(state).unwrap_err().repair().unwrap().to_string();
    let mut state = model.state_dict();
    let bias = state.remove("bias").unwrap();
    let left =
        |path: &str| format!("{}, which leaves initial values in the model: {path}", call(".partial(true)"));
    assert_eq!(repair(&state), left("bias"));
    assert_eq!(model.load_state_dict_with(&state, LoadOptions::new().partial(true))?.missing, ["bias"]);
    state.insert("bias", bias.rename(["classes"])?);
    assert_eq!(repair(&state), call(".ignore_names(true)") + ", if the names mean the same");
    model.load_state_dict_with(&state, LoadOptions::new().ignore_names(true))?;
    state.insert("bias", bias.clone());
    state.insert("weight", NamedTensor::zeros([("in", 3), ("out", 2)])?);
    assert_eq!(repair(&state), call(".align(true)"));
    model.load_state_dict_with(&state, LoadOptions::new().align(true))?;
    state.insert("weight", NamedTensor::zeros([("in", 5), ("out", 2)])?);
    assert_eq!(repair(&state), format!("state.remove(\"weight\"); {}", left("weight")));
    state.remove("weight");
    model.load_state_dict_with(&state, LoadOptions::new().partial(true))?;
    Ok(())
}

#[test]
fn a_state_in_another_order_is_aligned_by_name() -> Result<()> {
    let model = Linear::builder(("in", 3), ("out", 2)).bias(false).build()?;
    let turned = NamedTensor::from_slice(&[1f32, 4.0, 2.0, 5.0, 3.0, 6.0], [("in", 3), ("out", 2)])?;
    let state: StateDict = [("weight".to_string(), turned)].into_iter().collect();
    assert!(model.load_state_dict(&state).is_err());
    model.load_state_dict_with(&state, LoadOptions::new().align(true))?;
    assert_eq!(model.weight().tensor().to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(*model.weight().tensor().names(), ["out", "in"]);
    Ok(())
}

#[test]
fn a_saved_model_is_the_same_after_loading() -> Result<()> {
    let path = std::env::temp_dir().join(format!("namegrad-nn-{}.safetensors", std::process::id()));
    let (from, to) = (net()?, net()?);
    from.state_dict().save(&path)?;
    let state = StateDict::load(&path)?;
    std::fs::remove_file(&path).unwrap();
    assert_eq!(*state.get("first.weight").unwrap().names(), ["hidden", "in"]);
    to.load_state_dict(&state)?;
    assert_eq!(from.first.weight().tensor().to_vec::<f32>()?, to.first.weight().tensor().to_vec::<f32>()?);
    Ok(())
}

#[test]
fn a_file_that_is_not_there_is_an_error_that_names_it() {
    let error = StateDict::load("no/such/file.safetensors").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("no/such/file.safetensors"), "{error}");
}

#[test]
fn a_few_steps_lower_the_loss() -> Result<()> {
    manual_seed(1);
    let model = Sequential::new()
        .then(Linear::new(("x", 2), ("h", 16))?)
        .then(Relu)
        .then(Linear::new(("h", 16), ("class", 2))?);
    let x = Tensor::rand([("N", 64), ("x", 2)])?;
    let target = x.select("x", 0)?.gt(&x.select("x", 1)?)?.to(DType::I64)?;
    let mut optimizer = Sgd::builder(model.parameters()).lr(0.5).momentum(0.9).build()?;
    let mut losses = Vec::new();
    for _ in 0..60 {
        let loss = F::cross_entropy(&model.forward(&x)?, &target, "class")?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        losses.push(loss.item::<f64>()?);
    }
    assert!(losses[59] < 0.3 * losses[0], "{losses:?}");
    Ok(())
}

#[test]
fn to_casts_parameters_and_buffers() -> Result<()> {
    let model = net()?;
    model.to(DType::F64)?;
    assert!(model.state_dict().iter().all(|(_, value)| value.dtype() == DType::F64));
    assert_eq!(model.to(DType::I64).unwrap_err().kind(), ErrorKind::Autograd);
    Ok(())
}

#[test]
fn cross_entropy_says_what_is_wrong_with_a_target() -> Result<()> {
    let logits = Tensor::rand([("N", 2), ("class", 3)])?;
    let kind = |target: Result<Tensor>| {
        target
            .and_then(|target| F::cross_entropy(&logits, &target, "class"))
            .map(drop)
            .map_err(|error| error.kind())
    };
    assert_eq!(kind(Tensor::new([0, 3])), Err(ErrorKind::Index));
    assert_eq!(kind(Tensor::new([0, -1])), Err(ErrorKind::Index));
    assert_eq!(kind(Tensor::new([0, 1, 2])), Err(ErrorKind::Shape));
    assert_eq!(kind(Tensor::new([0, 1])?.refine_names(["T"])), Err(ErrorKind::NameMismatch));
    assert_eq!(kind(Tensor::new([0, -100])), Ok(()));
    assert_eq!(kind(Tensor::new([true, false])), Err(ErrorKind::DType));
    let classes = F::cross_entropy(&logits, &Tensor::new([0, 1])?, "klass").unwrap_err();
    assert_eq!(classes.kind(), ErrorKind::NameNotFound);
    Ok(())
}

#[test]
fn a_loss_that_would_broadcast_to_more_than_both_was_computed() -> Result<()> {
    let column = Tensor::ones([("N", 5), ("out", 1)])?;
    let row = Tensor::ones([("N", 5)])?;
    let unnamed = Tensor::ones([5, 1])?;
    for (x, target, repair) in [
        (&column, &row.rename(None)?, "x.squeeze(\"out\")?"),
        (&row, &unnamed, "target.squeeze(1)?"),
        (&unnamed, &Tensor::ones([1, 4])?, "x.expand([5, 4])?, if that is meant"),
    ] {
        let error = F::mse_loss(x, target).unwrap_err();
        assert_eq!((error.kind(), error.repair()), (ErrorKind::Shape, Some(repair)), "{error}");
        assert!(error.message().contains("which is larger than both"), "{error}");
    }
    assert_eq!(F::mse_loss(&column.squeeze("out")?, &row)?.item::<f64>()?, 0.0);
    assert_eq!(F::mse_loss(&column, &Tensor::new(1.0)?)?.item::<f64>()?, 0.0);
    assert_eq!(F::mse_loss(&Tensor::ones([2, 3])?, &Tensor::ones([3])?)?.item::<f64>()?, 0.0);
    Ok(())
}

#[test]
fn the_mean_loss_of_an_empty_batch_was_nan() -> Result<()> {
    let (logits, classes) = (Tensor::zeros([("N", 0), ("class", 3)])?, Tensor::zeros([0])?.to(DType::I64)?);
    let probabilities = Tensor::zeros([0, 3])?;
    let sum = F::Reduction::Sum;
    for (mean, sum) in [
        (
            F::mse_loss(&logits, &logits),
            F::mse_loss_with(&logits, &logits, MseLossOptions::new().reduction(sum)),
        ),
        (
            F::cross_entropy(&logits, &classes, "class"),
            F::cross_entropy_with(&logits, &classes, "class", CrossEntropyOptions::new().reduction(sum)),
        ),
        (
            F::cross_entropy(&logits, &probabilities, "class"),
            F::cross_entropy_with(
                &logits,
                &probabilities,
                "class",
                CrossEntropyOptions::new().reduction(sum),
            ),
        ),
        (
            F::nll_loss(&logits, &classes, "class"),
            F::nll_loss_with(&logits, &classes, "class", NllLossOptions::new().reduction(sum)),
        ),
    ] {
        let error = mean.unwrap_err();
        assert!(error.kind() == ErrorKind::Value && error.message().contains("empty batch"), "{error}");
        assert_eq!(sum?.item::<f64>()?, 0.0);
    }
    Ok(())
}

#[test]
fn errors_of_a_target_say_how_to_mend_it() -> Result<()> {
    let logits = Tensor::rand([("N", 5), ("class", 3)])?;
    let of = |target: &Tensor| text(F::cross_entropy(&logits, target, "class"));
    assert_eq!(
        of(&Tensor::ones([5])?),
        "cross_entropy: the target is float32 of sizes [5]: class indices must be integers, of sizes [5]; probabilities \
         must have the sizes of the logits, [5, 3]\n  inputs: [N=5, class=3] float32, [5] float32\n  try: target.to(DType::I64)?"
    );
    assert_eq!(
        of(&Tensor::ones([5, 1])?.to(DType::I64)?),
        "cross_entropy: expected class indices of sizes [5], those of the logits without the class dim 'class', got [5, 1]\n  \
         inputs: [N=5, class=3], [5, 1]\n  try: target.squeeze(1)?"
    );
    assert_eq!(
        of(&Tensor::new([0, 2, 1, 3, 0])?.refine_names(["N"])?),
        "cross_entropy: Target 3 at [N=3] is out of bounds for 3 classes: they are 0 to 2\n  \
         inputs: [N=5, class=3], [N=5]"
    );
    Ok(())
}

#[test]
fn errors_of_functions_are_about_what_was_given() -> Result<()> {
    use namegrad::nn::init;
    let ones = |dims: &[(&str, usize)]| Tensor::ones(dims);
    let (x, weight) = (ones(&[("N", 5), ("in", 3)])?, ones(&[("out", 2), ("in", 3)])?);
    let said = |result: Result<Tensor>| {
        let error = result.unwrap_err();
        assert!(error.location().file().ends_with("linear.rs"), "{error}");
        (error.kind(), error.op(), error.repair().map(str::to_string))
    };
    let repair = |text: &str| Some(text.to_string());

    // The dim of the bias was not compared if `x` has three dims.
    let wrong = ones(&[("other", 2)])?;
    for x in [&x, &ones(&[("N", 5), ("time", 2), ("in", 3)])?] {
        let bias = LinearOptions::new().bias(&wrong);
        let renamed = repair("bias.rename([(\"other\", \"out\")])?, if both names mean the same");
        let want = (ErrorKind::NameMismatch, "linear", renamed);
        assert_eq!(said(F::linear_with(x, &weight, bias)), want);
        F::linear_with(x, &weight, LinearOptions::new().bias(&wrong.rename(["out"])?))?;
    }
    assert_eq!(
        said(F::linear(&x, &ones(&[("N", 2), ("in", 3)])?)),
        (ErrorKind::DuplicateName, "linear", repair("weight.rename([(\"N\", \"N_out\")])?"))
    );
    assert_eq!(
        said(F::linear(&x.to(DType::F64)?, &weight)),
        (ErrorKind::DType, "linear", repair("x.to(DType::F32)?"))
    );
    let signal = Tensor::ones([1, 4])?;
    let (kernel, bias) = (Tensor::ones([2, 1, 3])?, Tensor::ones([3])?);
    let error = F::conv1d_with(&signal, &kernel, Conv1dOptions::new().bias(&bias)).unwrap_err();
    assert!(error.message().contains("the bias must have sizes [2], got [3]"), "{error}");
    assert_eq!(error.operands()[0].to_string(), "[1, 4]");
    assert_eq!(
        said(F::conv1d(&signal.to(DType::F64)?, &kernel)),
        (ErrorKind::DType, "conv1d", repair("x.to(DType::F32)?"))
    );

    let logits = ones(&[("N", 5), ("class", 3)])?;
    let target = ones(&[("class", 3), ("N", 5)])?;
    let turned = |op| (ErrorKind::Misaligned, op, repair("target.align_as(&logits)?"));
    assert_eq!(said(F::cross_entropy(&logits, &target, "class")), turned("cross_entropy"));
    F::cross_entropy(&logits, &target.align_as(&logits)?, "class")?;
    assert_eq!(said(F::mse_loss(&logits, &ones(&[("class", 5), ("N", 3)])?)).0, ErrorKind::Misaligned);
    let logits = ones(&[("N", 5), ("class", 3), ("time", 4)])?;
    let classes = Tensor::zeros([("time", 4), ("N", 5)])?.to(DType::I64)?;
    assert_eq!(
        said(F::cross_entropy(&logits, &classes, "class")).2,
        repair("target.align_to([\"N\", \"time\"])?")
    );
    F::cross_entropy(&logits, &classes.align_to(["N", "time"])?, "class")?;
    let bools = x.gt(0)?;
    assert_eq!(
        said(F::mse_loss(&bools, &bools)),
        (ErrorKind::DType, "mse_loss", repair("x.to(DType::F32)?"))
    );

    let weight = Parameter::new(weight)?;
    for error in
        [init::uniform_(&weight, 1.0, 0.0).unwrap_err(), init::normal_(&weight, 0.0, -1.0).unwrap_err()]
    {
        assert!(error.location().file().ends_with("linear.rs"), "{error}");
    }
    Ok(())
}

#[test]
fn strict_names_reach_layers() -> Result<()> {
    use namegrad::core::names::strict;
    let (named, unnamed) = (Linear::new(("in", 3), ("out", 2))?, Linear::new(3, 2)?);
    let (x, y) = (Tensor::ones([("N", 5), ("in", 3)])?, Tensor::ones([5, 3])?);
    let repair = |result: Result<Tensor>| result.unwrap_err().repair().map(str::to_string);
    assert_eq!(strict(|| repair(named.forward(&y))), Some("x.refine_names([\"...\", \"in\"])?".to_string()));
    strict(|| named.forward(&y.refine_names(["...", "in"])?))?;
    assert_eq!(strict(|| repair(unnamed.forward(&x))), Some("Linear::new((\"in\", 3), 2)?".to_string()));
    strict(|| unnamed.forward(&y))?;
    Ok(())
}

#[test]
fn initializations_take_their_options() -> Result<()> {
    use namegrad::nn::init::{self, Fan, Gain, KaimingOptions, XavierOptions};
    manual_seed(7);
    let weight = Parameter::new(Tensor::zeros([("out", 300), ("in", 200)])?)?;
    let std = || weight.tensor().std(..)?.item::<f64>();
    let close = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 0.02, "{got} {want}");
    init::xavier_normal_(&weight)?;
    close(std()?, (2f64 / 500.0).sqrt());
    init::xavier_uniform_with_(&weight, XavierOptions::new().gain(3.0))?;
    close(std()?, 3.0 * (2f64 / 500.0).sqrt());
    init::kaiming_uniform_(&weight)?;
    close(std()?, (2f64 / 200.0).sqrt());
    init::kaiming_normal_with_(&weight, KaimingOptions { fan: Fan::Out, gain: Gain::Tanh })?;
    close(std()?, 5.0 / 3.0 / 300f64.sqrt());
    // The standard deviation of a normal number within two of them.
    init::trunc_normal_(&weight, 0.5, 0.1, 0.3, 0.7)?;
    close(std()?, 0.0880);
    let mean = weight.tensor().mean(..)?.item::<f64>()?;
    assert!((mean - 0.5).abs() < 0.002 && weight.tensor().amax(..)?.item::<f64>()? <= 0.7, "{mean}");
    assert_eq!(init::trunc_normal_(&weight, 0.0, 0.1, 1.0, 1.0).unwrap_err().kind(), ErrorKind::Value);
    for dims in [&[("out", 6), ("in", 2), ("W", 2)][..], &[("out", 3), ("in", 2), ("W", 2)]] {
        let weight = Parameter::new(Tensor::zeros(dims)?)?;
        init::orthogonal_(&weight, 2.0)?;
        let matrix = weight.tensor().rename(None)?.reshape([dims[0].1, 4])?;
        let [square, n] = match dims[0].1 < 4 {
            true => [matrix.matmul(&matrix.t()?)?, Tensor::eye(3, 3)?],
            false => [matrix.t()?.matmul(&matrix)?, Tensor::eye(4, 4)?],
        };
        assert!(square.sub(&n.mul(4.0)?)?.abs()?.amax(..)?.item::<f64>()? < 1e-5, "{square:?}");
    }
    let bias = Parameter::new(Tensor::zeros([3])?)?;
    assert_eq!(init::orthogonal_(&bias, 1.0).unwrap_err().kind(), ErrorKind::Shape);
    let error = init::xavier_normal_(&bias).unwrap_err();
    assert_eq!((error.op(), error.kind()), ("xavier_normal_", ErrorKind::Shape));
    Ok(())
}

#[test]
fn a_batch_of_matrices_times_a_vector_is_a_batch_of_vectors() -> Result<()> {
    let x = Tensor::arange(0, 2 * 3 * 4, 1)?.to(DType::F32)?.reshape([2, 3, 4])?;
    let v = Tensor::new([1.0, 2.0, 3.0, 4.0])?;
    let want = x.mul(&v)?.sum(-1)?;
    assert_eq!(x.matmul(&v)?.to_vec::<f32>()?, want.to_vec::<f32>()?);
    assert_eq!(x.matmul(&v.unsqueeze(-1)?)?.to_vec::<f32>()?, want.to_vec::<f32>()?);
    Ok(())
}

#[test]
fn the_name_of_a_weight_was_not_checked() -> Result<()> {
    use namegrad::core::names::strict;
    let logits = Tensor::ones([("N", 2), ("class", 3)])?;
    let target = Tensor::new([0_i64, 1])?.refine_names(["N"])?;
    let kinds = |weight: &Tensor| {
        let kind = |loss: Result<Tensor>| loss.map(drop).map_err(|error| error.kind());
        let options = || CrossEntropyOptions::new().weight(weight);
        let norm = LayerNormOptions::new().weight(weight);
        [
            kind(F::cross_entropy_with(&logits, &target, "class", options())),
            kind(F::cross_entropy_with(&logits, &logits, "class", options())),
            kind(F::nll_loss_with(&logits, &target, "class", NllLossOptions::new().weight(weight))),
            kind(logits.layer_norm_with("class", norm)),
        ]
    };
    let (other, unnamed) = (Tensor::ones([("Q", 3)])?, Tensor::ones([3])?);
    assert_eq!(kinds(&other), [Err(ErrorKind::NameMismatch); 4]);
    assert_eq!(kinds(&unnamed), [Ok(()); 4]);
    assert_eq!(strict(|| kinds(&unnamed)), [Err(ErrorKind::NameMismatch); 4]);
    let own = Tensor::ones([("class", 3)])?;
    assert_eq!(strict(|| kinds(&own)), [Ok(()); 4]);
    Ok(())
}

#[test]
fn linear_without_input_features_failed_for_more_than_two_dims() -> Result<()> {
    let y = F::linear_with(
        &Tensor::zeros([2, 3, 0])?,
        &Tensor::zeros([4, 0])?,
        LinearOptions::new().bias(&Tensor::new([1.0, 2.0, 3.0, 4.0])?),
    )?;
    assert_eq!(y.sizes(), [2, 3, 4]);
    assert_eq!(y.select(0, 1)?.select(0, 2)?.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    Ok(())
}

#[test]
fn errors_of_some_layers_had_the_line_of_a_closure() -> Result<()> {
    use namegrad::nn::{
        MultiheadAttentionOptions, TransformerDecoderLayer, TransformerDecoderOptions,
        TransformerEncoderLayer, TransformerEncoderOptions,
    };
    let x = Tensor::ones([("N", 2), ("seq", 3), ("embed", 4)])?;
    let layer = MultiheadAttention::new(("embed", 4), ("heads", 2), "seq")?;
    let encoder = TransformerEncoderLayer::builder(("embed", 4), ("heads", 2), "seq").build()?;
    let decoder = TransformerDecoderLayer::builder(("embed", 4), ("heads", 2), "seq").build()?;
    let attend = |options| layer.attend_with(&x, &x, &x, options).map(drop);
    let (wrong, hidden) = (Tensor::ones([3, 5])?, Tensor::ones([3, 5])?.gt(0)?);
    let options = ScaledDotProductAttentionOptions::new().attn_mask(&wrong);
    let errors = [
        attend(MultiheadAttentionOptions::new().attn_mask(&wrong)),
        attend(MultiheadAttentionOptions::new().key_padding_mask(&hidden)),
        MultiheadAttention::new(("embed", 4), ("heads", 3), "seq").map(drop),
        TransformerEncoderLayer::builder(("embed", 4), ("heads", 2), "seq").dropout(2.0).build().map(drop),
        encoder.forward_with(&x, TransformerEncoderOptions::new().src_mask(&wrong)).map(drop),
        encoder.forward(&wrong).map(drop),
        decoder.forward_with(&x, &x, TransformerDecoderOptions::new().memory_mask(&wrong)).map(drop),
        TransformerDecoderLayer::builder(("embed", 4), ("heads", 3), "seq").build().map(drop),
        TransformerDecoderLayer::builder(("embed", 4), ("heads", 2), "seq")
            .dim_feedforward(usize::MAX)
            .build()
            .map(drop),
        x.scaled_dot_product_attention_with(&x, &x, options).map(drop),
        Conv2d::new(("C", usize::MAX), ("F", 4), [("H", 3), ("W", 3)]).map(drop),
    ];
    for error in errors.map(Result::unwrap_err) {
        assert_eq!(error.location().file(), file!(), "{error}");
    }
    // A mask of padding is shown as it was given.
    let error = attend(MultiheadAttentionOptions::new().key_padding_mask(&hidden)).unwrap_err();
    assert!(
        error.message().ends_with("key_padding_mask [3, 5] does not broadcast to [N=2, seq=3]"),
        "{error}"
    );
    Ok(())
}

#[test]
fn errors_of_layers_made_in_closures_had_the_line_of_the_closure() -> Result<()> {
    use namegrad::nn::{
        Bilinear, Transformer, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder,
    };
    use namegrad::nn::{TransformerDecoderOptions, TransformerEncoderLayer};
    let attention = MultiheadAttention::new(("embed", 4), ("heads", 2), "seq")?;
    let x = |n: usize| Tensor::ones([("N", n), ("seq", 3), ("embed", 4)]);
    let encoder = |heads: usize| {
        let layer = TransformerEncoderLayer::builder(("embed", 4), ("heads", heads), "seq");
        move || TransformerEncoder::new(layer, 2)
    };
    let decoder = TransformerDecoderLayer::builder(("embed", 4), ("heads", 3), "seq");
    let errors = [
        TransformerEncoder::new(TransformerEncoderLayer::builder(4, 3, 0), 2).map(drop),
        TransformerDecoder::new(decoder, 2).map(drop),
        Transformer::builder(("embed", 4), ("heads", 3), "seq").build().map(drop),
        attention.attend(&x(2)?, &x(3)?, &x(3)?).map(drop),
        BatchNorm::new(("C", usize::MAX)).map(drop),
        Bilinear::new(("a", usize::MAX), ("b", 2), ("c", 2)).map(drop),
        // 3 times the features overflowed.
        MultiheadAttention::new(("embed", usize::MAX - 1), ("heads", 1), "seq").map(drop),
    ];
    for error in errors.map(Result::unwrap_err) {
        assert_eq!(error.location().file(), file!(), "{error}");
    }
    // Layers in layers know their paths before any walk.
    let error = encoder(2)()?.forward(&Tensor::ones([("seq", 3), ("embed", 5)])?).unwrap_err();
    assert!(error.message().starts_with("the layer 'layers.0.self_attn' (embed=4"), "{error}");
    let outer = Sequential::new().then_named("enc", encoder(2)()?);
    let error = outer.forward(&Tensor::ones([("seq", 3), ("embed", 5)])?).unwrap_err();
    assert!(error.message().starts_with("the layer 'enc.layers.0.self_attn' (embed=4"), "{error}");
    let layer = TransformerDecoderLayer::builder(("embed", 4), ("heads", 2), "seq");
    let decoder = TransformerDecoder::new(layer, 1)?;
    let padding = Tensor::new([[0, 1, 1], [0, 0, 0]])?;
    let options = TransformerDecoderOptions::new().memory_key_padding_mask(&padding);
    let error = decoder.forward_with(&x(2)?, &x(2)?, options).unwrap_err();
    assert!(error.message().starts_with("the layer 'layers.0.multihead_attn'"), "{error}");
    assert_eq!(error.operands(), [padding.shape()]); // as it was given
    let block = Sequential::new().then_named("block", Residual::new(Linear::new(("x", 2), ("x", 3))?));
    let error = block.forward(&Tensor::ones([("x", 2)])?).unwrap_err();
    assert!(error.message().starts_with("the layer 'block': the output of"), "{error}");
    let error = block.forward(&Tensor::ones([("y", 2)])?).unwrap_err();
    assert!(error.message().starts_with("the layer 'block.inner' (x=2"), "{error}");
    Ok(())
}

#[test]
fn a_dim_was_contracted_with_another_one() -> Result<()> {
    let weight = Tensor::randn([("out", 2), ("a", 4)])?;
    for sizes in [&[("a", 4), ("N", 4)][..], &[("a", 4), ("N", 3)], &[("T", 5), ("a", 4), ("N", 4)]] {
        let x = Tensor::randn(sizes)?;
        let error = F::linear(&x, &weight).unwrap_err();
        assert_eq!((error.kind(), error.repair()), (ErrorKind::NameMismatch, Some("x.movedim(\"a\", -1)?")));
        assert_eq!(F::linear(&x.movedim("a", -1)?, &weight)?.name(x.ndim() - 1), weight.name(0));
    }
    let x = Tensor::randn([("N", 3), ("features", 4)])?;
    let error = F::linear(&x, &weight).unwrap_err();
    assert_eq!(error.repair(), Some("x.rename([(\"features\", \"a\")])?, if both names mean the same"));
    assert_eq!(*F::linear(&x.rename([("features", "a")])?, &weight)?.names(), ["N", "out"]);
    // A dim without a name fits any other.
    F::linear(&x.rename([Some("N"), None])?, &weight)?;
    F::linear(&x, &weight.rename(None)?)?;

    let weight = Tensor::randn([("out", 2), ("a", 4), ("b", 3)])?;
    let (x, other) = (Tensor::randn([("N", 4), ("a", 4)])?, Tensor::randn([("N", 4), ("b", 3)])?);
    assert_eq!(*F::bilinear(&x, &other, &weight)?.names(), ["N", "out"]);
    let error = F::bilinear(&x.t()?, &other, &weight).unwrap_err();
    assert_eq!((error.kind(), error.repair()), (ErrorKind::NameMismatch, Some("x.movedim(\"a\", -1)?")));
    let error = F::bilinear(&x, &other.rename([("b", "c")])?, &weight).unwrap_err();
    assert_eq!(error.repair(), Some("other.rename([(\"c\", \"b\")])?, if both names mean the same"));
    let error = F::bilinear(&x, &other.rename([("N", "M")])?, &weight).unwrap_err();
    assert_eq!(error.repair(), Some("other.rename([(\"M\", \"N\")])?, if both names mean the same"));
    Ok(())
}
