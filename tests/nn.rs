//! Layers: dims by name, parameters by path, states that fit or do not, and that training learns.

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
        running: Buffer::new(NamedTensor::zeros([("hidden", 4)])?),
        linear: Linear::new(("hidden", 4), ("hidden_", 4))?,
        scale: if scale { Some(Parameter::new(Tensor::ones([("hidden", 4)])?)?) } else { None },
        depth: 3,
    })
}

fn net() -> Result<Net<Sequential>> {
    Ok(Net {
        first: Linear::new(("in", 3), ("hidden", 4))?,
        blocks: vec![block(true)?, block(false)?],
        head: Sequential::new().then(Linear::without_bias(("hidden", 4), ("out", 2))?).then(Relu),
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
    let shared = Linear::without_bias(4, 4)?.weight().clone();
    let tied = vec![shared.clone(), shared.clone()];
    assert_eq!((tied.named_parameters().len(), tied.parameters().len(), tied.num_parameters()), (2, 1, 16));
    let x = Tensor::ones([4])?;
    shared.tensor().mul(tied[1].tensor())?.sum(..)?.add(&x.sum(..)?)?.backward()?;
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
    assert!(error.to_string().contains("did you mean 'chanel'?"), "{error}");
    assert!(error.location().file().ends_with("nn.rs"), "{error}");
    let error = layer.forward(&Tensor::rand([("N", 2), ("channel", 4)])?).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    let error = layer.forward(&Tensor::rand([("features", 2), ("channel", 3)])?).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DuplicateName);
    assert_eq!(Linear::new(("1x", 3), ("y", 5)).err().unwrap().kind(), ErrorKind::InvalidName);
    assert_eq!(Linear::new(("x", 3), ("x", 5)).err().unwrap().kind(), ErrorKind::DuplicateName);
    assert_eq!(Dropout::new(1.5).err().unwrap().kind(), ErrorKind::Value);
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
fn a_state_in_another_order_is_aligned_by_name() -> Result<()> {
    let model = Linear::without_bias(("in", 3), ("out", 2))?;
    let turned = NamedTensor::from_slice(&[1f32, 4.0, 2.0, 5.0, 3.0, 6.0], [("in", 3), ("out", 2)])?;
    let state: StateDict = [("weight".to_string(), turned)].into_iter().collect();
    assert!(model.load_state_dict(&state).is_err());
    model.load_state_dict_with(&state, LoadOptions { align: true, ..Default::default() })?;
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
fn a_batch_of_matrices_times_a_vector_is_a_batch_of_vectors() -> Result<()> {
    let x = Tensor::arange(0, 2 * 3 * 4, 1)?.to(DType::F32)?.reshape([2, 3, 4])?;
    let v = Tensor::new([1.0, 2.0, 3.0, 4.0])?;
    let want = x.mul(&v)?.sum(-1)?;
    assert_eq!(x.matmul(&v)?.to_vec::<f32>()?, want.to_vec::<f32>()?);
    assert_eq!(x.matmul(&v.unsqueeze(-1)?)?.to_vec::<f32>()?, want.to_vec::<f32>()?);
    Ok(())
}
