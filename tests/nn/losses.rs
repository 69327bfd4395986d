//! Activations, dropouts, losses and distances as layers: dims by name, wrong input, and what random layers
//! do on average. `tests/conformance/main.rs` compares the functions with PyTorch.

use namegrad::autograd::{BackwardOptions, grad_with, gradcheck};
use namegrad::core::Scalar;
use namegrad::core::random::Generator;
use namegrad::nn;
use namegrad::prelude::*;
use namegrad_tests::values::plain_and_recorded;

/// The result with its dims sorted by name.
fn sorted(y: &Tensor) -> Result<Tensor> {
    let mut names: Vec<String> = y.names().iter(y.ndim()).map(|name| name.unwrap().to_string()).collect();
    names.sort();
    if names.is_empty() { Ok(y.clone()) } else { y.align_to(names) }
}

fn assert_same(name: &str, got: &Tensor, want: &Tensor) -> Result<()> {
    let (got, want) = (sorted(got)?, sorted(want)?);
    assert_eq!(got.shape(), want.shape(), "{name}");
    let close = IscloseOptions::new().rtol(1e-6).atol(1e-7); // `Prelu` computes in f32
    assert!(got.allclose_with(&want, close)?, "{name}: {got:?} is not {want:?}");
    Ok(())
}

#[test]
fn the_class_dim_of_a_loss_is_found_by_name() -> Result<()> {
    let logits = Tensor::randn([("class", 3), ("N", 4)])?;
    let target = Tensor::new([0, 2, 1, 1])?.refine_names(["N"])?;
    let weight = Tensor::new([1.0, 2.0, 0.5])?;
    let layer = nn::CrossEntropyLoss::builder("class").weight(&weight).label_smoothing(0.1).build();
    let options = CrossEntropyOptions::new().weight(&weight).label_smoothing(0.1);
    let want = F::cross_entropy_with(&logits.align_to(["N", "class"])?, &target, "class", options)?;
    assert_same("CrossEntropyLoss", &layer.forward(&logits, &target)?, &want)?;
    assert_eq!(layer.named_buffers()[0].0, "weight");
    assert!(layer.to_string().starts_with("CrossEntropyLoss("), "{layer}");
    let error = layer.forward(&logits, &Tensor::new([0, 3, 1, 1])?).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Index);
    assert!(error.to_string().contains("Target 3 at [1] is out of bounds"), "{error}");
    Ok(())
}

#[test]
fn the_gradient_of_ctc_is_that_of_the_logits() -> Result<()> {
    let logits = Tensor::randn([("time", 6), ("N", 2), ("class", 4)])?.to(DType::F64)?;
    let targets = Tensor::new([[1, 1, 2], [3, 2, 0]])?;
    let (inputs, lengths) = (Tensor::new([6, 5])?, Tensor::new([3, 2])?);
    let loss =
        |x: &[Tensor]| F::ctc_loss(&x[0].log_softmax("class")?, &targets, &inputs, &lengths, "time", "class");
    gradcheck(loss, std::slice::from_ref(&logits))?;
    let batch_last = logits.align_to(["class", "time", "N"])?;
    assert_same("ctc_loss", &loss(&[batch_last])?, &loss(&[logits])?)
}

/// The loss of CTC as the sum over all paths, which it collapses one by one.
#[test]
fn ctc_sums_over_all_paths() -> Result<()> {
    let (time, classes, label) = (4, 3usize, vec![1, 1]);
    let p = Tensor::randn([time, classes])?.to(DType::F64)?.log_softmax(1)?;
    let numbers = p.to_vec::<f64>()?;
    let mut total = 0.0;
    for path in 0..classes.pow(time as u32) {
        let steps: Vec<usize> = (0..time).map(|t| path / classes.pow(t as u32) % classes).collect();
        let mut collapsed = steps.clone();
        collapsed.dedup();
        collapsed.retain(|class| *class != 0);
        if collapsed == label {
            total +=
                steps.iter().enumerate().map(|(t, class)| numbers[t * classes + class]).sum::<f64>().exp();
        }
    }
    let sum = CtcLossOptions::new().reduction(F::Reduction::Sum);
    let loss = F::ctc_loss_with(&p, &Tensor::new([1, 1])?, &Tensor::new(4)?, &Tensor::new(2)?, 0, 1, sum)?;
    assert!((loss.item::<f64>()? + total.ln()).abs() < 1e-9);
    Ok(())
}

#[test]
fn wrong_input_of_losses_is_an_error() -> Result<()> {
    let x = Tensor::new([[0.5, 0.25], [0.75, 1.5]])?.refine_names(["N", "class"])?;
    let kind = |result: Result<Tensor>| {
        let error = result.unwrap_err();
        assert!(error.location().file().ends_with("losses.rs"), "{error}");
        (error.kind(), error.to_string())
    };
    let target = x.clamp(0, 1)?;
    let (value, text) = kind(F::binary_cross_entropy(&x, &target));
    assert_eq!(value, ErrorKind::Value);
    assert!(
        text.contains("all elements of x should be between 0 and 1, and it has 1.5 at [N=1, class=1]"),
        "{text}"
    );
    assert_eq!(kind(F::binary_cross_entropy(&target, &x)).0, ErrorKind::Value);
    assert_eq!(kind(F::binary_cross_entropy_with_logits(&x, &target.to(DType::I64)?)).0, ErrorKind::DType);
    assert_eq!(kind(F::binary_cross_entropy(&target, &target.select(0, 0)?)).0, ErrorKind::Shape);
    let permuted = target.align_to(["class", "N"])?;
    assert_eq!(kind(F::binary_cross_entropy_with_logits(&x, &permuted)).0, ErrorKind::Misaligned);
    assert_eq!(kind(F::multi_margin_loss(&x, &Tensor::new([0.0, 1.0])?, "class")).0, ErrorKind::DType);
    assert_eq!(kind(F::multi_margin_loss(&x, &Tensor::new([0, 2])?, "class")).0, ErrorKind::Index);
    assert_eq!(
        kind(F::multilabel_margin_loss(&x, &Tensor::new([[0, 2], [-1, 0]])?, "class")).0,
        ErrorKind::Index
    );
    assert_eq!(kind(F::gaussian_nll_loss(&x, &x, -1.0)).0, ErrorKind::Value);
    assert_eq!(
        kind(F::triplet_margin_loss_with(&x, &x, &x, "class", TripletMarginLossOptions::new().margin(0.0))).0,
        ErrorKind::Value
    );
    assert_eq!(kind(F::glu(&Tensor::ones([3])?, 0)).0, ErrorKind::Shape);
    assert_eq!(kind(F::dropout2d(&x, 1.5, ["N", "class"])).0, ErrorKind::Value);
    assert_eq!(kind(F::dropout2d(&x, 0.5, "class")).0, ErrorKind::Value);
    assert_eq!(kind(F::dropout1d(&x, 0.5, "H")).0, ErrorKind::NameNotFound);
    assert_eq!(kind(F::prelu(&x, &Tensor::ones([("class", 3)])?)).0, ErrorKind::Shape);
    let log_p = Tensor::zeros([4, 3])?;
    let ctc = |targets: &[i64], input: i64, target: i64| {
        let targets = Tensor::from_slice(targets, [targets.len()])?;
        F::ctc_loss(&log_p, &targets, &Tensor::new(input)?, &Tensor::new(target)?, 0, 1)
    };
    let (out_of_range, text) = kind(ctc(&[1, 3], 4, 2));
    assert_eq!(out_of_range, ErrorKind::Index);
    assert!(text.contains("Target 3, label 1 of sequence 0, is out of bounds for 3 classes"), "{text}");
    assert_eq!(kind(ctc(&[1, 2], 5, 2)).0, ErrorKind::Value);
    assert_eq!(kind(ctc(&[1, 2], 4, 3)).0, ErrorKind::Value);
    assert_eq!(nn::AlphaDropout::new(-0.1).err().unwrap().kind(), ErrorKind::Value);
    assert_eq!(nn::Dropout2d::new(1.1, ["H", "W"]).err().unwrap().kind(), ErrorKind::Value);
    Ok(())
}

#[test]
fn dropout_of_maps_drops_each_map_of_each_index() -> Result<()> {
    manual_seed(1);
    let x = Tensor::ones([("H", 2), ("time", 10), ("N", 10), ("W", 3), ("C", 10)])?;
    let layer = nn::Dropout2d::new(0.25, ["H", "W"])?;
    let y = layer.forward(&x)?;
    assert_eq!(y.shape(), x.shape());
    let (high, low) = (y.amax(["H", "W"])?, y.amin(["H", "W"])?);
    assert!(high.equal(&low)?);
    // 1000 maps: the share that is kept has a standard deviation of 0.014.
    let kept = high.gt(0)?.to(DType::F64)?.mean(..)?.item::<f64>()?;
    assert!((kept - 0.75).abs() < 0.07, "{kept}");
    layer.eval();
    assert!(layer.forward(&x)?.equal(&x)?);
    Ok(())
}

#[test]
fn alpha_dropout_keeps_mean_and_variance() -> Result<()> {
    manual_seed(2);
    let x = Tensor::randn([100_000])?;
    let y = nn::AlphaDropout::new(0.3)?.forward(&x)?;
    let (mean, std) = (y.mean(..)?.item::<f64>()?, y.std(..)?.item::<f64>()?);
    assert!(mean.abs() < 0.02 && (std - 1.0).abs() < 0.02, "{mean} {std}");
    let slopes = F::rrelu_with(&Tensor::full([1000], -1.0)?, RreluOptions::new().training(true))?;
    let slopes = slopes.neg()?.to_vec::<f32>()?;
    assert!(slopes.iter().all(|slope| (0.125..=1.0 / 3.0).contains(slope)));
    Ok(())
}

#[test]
fn a_hard_gumbel_sample_has_the_gradient_of_the_soft_one() -> Result<()> {
    let logits = Tensor::randn([("N", 5), ("class", 3)])?.requiring_grad()?;
    let weight = Tensor::randn([("class", 3)])?;
    let gradient = |hard: bool| -> Result<Vec<f32>> {
        let options = GumbelSoftmaxOptions::new().hard(hard);
        let sample = Generator::from_seed(3).scope(|| F::gumbel_softmax_with(&logits, "class", options))?;
        if hard {
            assert!(sample.detach().amax("class")?.allclose(1.0)?);
        }
        let loss = sample.mul(&weight)?.sum(..)?;
        logits.zero_grad();
        loss.backward()?;
        logits.grad().unwrap().to_vec()
    };
    let (hard, soft) = (gradient(true)?, gradient(false)?);
    assert!(hard.iter().zip(&soft).all(|(a, b)| (a - b).abs() < 1e-6), "{hard:?} {soft:?}");
    Ok(())
}

/// Numbers of `torch.nn.AdaptiveLogSoftmaxWithLoss` with the same weights.
#[test]
fn log_softmax_by_clusters_of_classes() -> Result<()> {
    let builder = nn::AdaptiveLogSoftmaxWithLoss::builder(("embed", 4), ("class", 8), [2, 5]);
    let layer = builder.div_value(2.0).head_bias(true).dtype(DType::F64).build()?;
    let paths = [
        "head.weight",
        "head.bias",
        "tail.0.0.weight",
        "tail.0.1.weight",
        "tail.1.0.weight",
        "tail.1.1.weight",
    ];
    assert_eq!(layer.named_parameters().iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), paths);
    for (number, (_, parameter)) in layer.named_parameters().into_iter().enumerate() {
        let shape = parameter.shape();
        let values: Vec<f64> = (0..parameter.numel()).map(|at| ((at + number) as f64).sin()).collect();
        parameter.set(Tensor::from_slice(&values, shape)?.value())?;
    }
    let numbers: Vec<f64> = (0..12).map(|at| f64::from(at).cos()).collect();
    let x = Tensor::from_slice(&numbers, [("N", 3), ("embed", 4)])?.requiring_grad()?;
    let target = Tensor::new([1, 3, 7])?;
    let found = layer.forward(&x, &target)?;
    let close = |found: &Tensor, wanted: &[f64]| -> Result<()> {
        assert!(found.rename(None)?.allclose(Tensor::from_slice(wanted, [wanted.len()])?)?, "{found}");
        Ok(())
    };
    close(&found.output, &[-3.6574223000291375, -4.687546229918914, -4.584126385271479])?;
    assert_eq!(found.output.shape().to_string(), "[N=3]");
    assert!((found.loss.item::<f64>()? - 4.3096983050731765).abs() < 1e-12);
    found.loss.backward()?;
    close(&x.grad().unwrap().sum(1)?, &[0.4861416136869942, 0.43651980691776937, -0.6843504162587769])?;
    let last = layer.named_parameters().pop().unwrap().1.grad().unwrap().sum(1)?;
    close(&last, &[0.038814342655804114, 0.08899589761166465, -0.12781024026746873])?;
    let all = layer.log_prob(&x)?;
    assert_eq!(all.shape().to_string(), "[N=3, class=8]");
    assert!(all.exp().sum("class")?.allclose(1.0)?);
    let picked = all.gather(target.unsqueeze(1)?.refine_names(["N", "class"])?, "class").squeeze("class")?;
    assert!(picked.allclose(&found.output)?);
    assert_eq!(layer.predict(&x)?.to_vec::<i64>()?, [2, 0, 1]);

    let kind = |result: Result<nn::AdaptiveLogSoftmax>| {
        let error = result.unwrap_err();
        assert_eq!((error.op(), error.location().file()), ("AdaptiveLogSoftmaxWithLoss", file!()), "{error}");
        error.kind()
    };
    assert_eq!(kind(layer.forward(&x, &Tensor::new([1, 8, 0])?)), ErrorKind::Index);
    assert_eq!(kind(layer.forward(&x, &Tensor::new([1, -1, 0])?)), ErrorKind::Index);
    assert_eq!(kind(layer.forward(&x, &Tensor::new([1.0, 2.0, 0.0])?)), ErrorKind::DType);
    assert_eq!(kind(layer.forward(&x, &Tensor::new([1, 2])?)), ErrorKind::Shape);
    assert_eq!(kind(layer.forward(&x, &target.refine_names(["time"])?)), ErrorKind::NameMismatch);
    assert_eq!(kind(layer.forward(&x.rename(["N", "C"])?, &target)), ErrorKind::NameNotFound);
    for cutoffs in [vec![], vec![0], vec![8], vec![3, 3], vec![5, 2]] {
        let error = nn::AdaptiveLogSoftmaxWithLoss::new(4, 8, cutoffs).unwrap_err();
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
    }
    Ok(())
}

#[test]
fn linear_cross_entropy_is_that_of_a_linear_map() -> Result<()> {
    manual_seed(3);
    let float = |x: Result<Tensor>| x?.to(DType::F64);
    let x = float(Tensor::randn([("N", 5), ("embed", 3)]))?;
    let weight = float(Tensor::randn([("class", 4), ("place", 2), ("embed", 3)]))?;
    let bias = float(Tensor::randn([("class", 4), ("place", 2)]))?;
    let of_class = Tensor::new([0.5, 1.0, 2.0, 0.1])?.to(DType::F64)?;
    let target = Tensor::new([[0, 1], [3, 3], [2, 1], [0, 0], [1, 2]])?;
    let options = || {
        let options = LinearCrossEntropyOptions::new().linear_bias(&bias).weight(&of_class);
        options.ignore_index(2).label_smoothing(0.1)
    };
    let logits = x.contract(&weight, "embed")?.add(&bias)?;
    let plain = CrossEntropyOptions::new().weight(&of_class).ignore_index(2).label_smoothing(0.1);
    let want = F::cross_entropy_with(&logits, &target, "class", plain)?;
    assert!(F::linear_cross_entropy_with(&x, &weight, &target, options())?.allclose(&want)?);
    // Several dims of a batch, by name; probabilities; no batch.
    let sequences = x.reshape([1, 5, 3])?.rename(["seq", "N", "embed"])?;
    let of_sequences = F::linear_cross_entropy_with(&sequences, &weight, &target.unsqueeze(0)?, options())?;
    assert!(of_sequences.allclose(&want)?);
    let p = logits.softmax("class")?.detach();
    let bare = LinearCrossEntropyOptions::new().linear_bias(&bias);
    let with_p = F::linear_cross_entropy_with(&x, &weight, &p, bare)?;
    assert!(with_p.allclose(&F::cross_entropy(&logits, &p, "class")?)?);
    let (one, line) = (x.select("N", 0)?, weight.select("place", 0)?);
    let alone = F::linear_cross_entropy(&one, &line, &Tensor::new(1)?)?;
    assert!(alone.allclose(&F::cross_entropy(&F::linear(&one, &line)?, &Tensor::new(1)?, 0)?)?);
    gradcheck(|x| F::linear_cross_entropy(&x[0], &x[1], &target), &[x.clone(), weight.clone()])?;
    let kind = |y: Result<Tensor>| y.unwrap_err().kind();
    assert_eq!(kind(F::linear_cross_entropy_with(&x, &weight, &p, options())), ErrorKind::Value);
    assert_eq!(kind(F::linear_cross_entropy(&one, &weight, &Tensor::new(1)?)), ErrorKind::Shape);
    assert_eq!(kind(F::linear_cross_entropy(&x, &of_class, &target)), ErrorKind::Shape);
    let depth = weight.rename([("embed", "depth")])?;
    assert_eq!(kind(F::linear_cross_entropy(&x, &depth, &target)), ErrorKind::NameMismatch);
    assert_eq!(kind(F::linear_cross_entropy(&sequences.rename(None)?, &line, &target)), ErrorKind::Shape);
    assert_eq!(kind(F::linear_cross_entropy(&x.to(DType::F32)?, &line, &target)), ErrorKind::DType);
    assert_eq!(kind(F::linear_cross_entropy(&x, &weight, &target.add(4)?)), ErrorKind::Index);
    Ok(())
}

#[test]
fn a_layer_of_a_linear_map_and_its_loss() -> Result<()> {
    let weight = Tensor::new([0.5, 1.0, 2.0])?;
    let builder = nn::LinearCrossEntropyLoss::builder(("embed", 4), ("class", 3)).bias(true).weight(&weight);
    let layer = builder.ignore_index(1).label_smoothing(0.1).build()?;
    let paths: Vec<String> = layer.named_parameters().into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["linear.weight", "linear.bias"]);
    let x = Tensor::randn([("embed", 4), ("N", 2), ("seq", 3)])?;
    let target = Tensor::new([[0, 1, 2], [2, 2, 0]])?.refine_names(["N", "seq"])?;
    let (map, bias) = (layer.linear().weight().tensor(), layer.linear().bias().unwrap().tensor());
    let options = LinearCrossEntropyOptions::new().linear_bias(&bias).weight(&weight);
    let rows = x.align_to(["N", "seq", "embed"])?.flatten(["N", "seq"], "N")?;
    let options = options.ignore_index(1).label_smoothing(0.1);
    let want = F::linear_cross_entropy_with(&rows, &map, target.flatten(["N", "seq"], "N")?, options)?;
    assert!(layer.forward(&x, &target)?.allclose(&want)?);
    let plain = nn::LinearCrossEntropyLoss::new(4, 3)?;
    assert!(plain.linear().bias().is_none());
    let error = plain.forward(&Tensor::ones([2, 4])?, &Tensor::new([0, 7])?).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Index);
    assert!(error.to_string().starts_with("LinearCrossEntropyLoss: "), "{error}");
    Ok(())
}

#[test]
fn the_gradient_of_a_mean_of_ignored_losses_was_not_a_number() -> Result<()> {
    use namegrad::nn::functional::cross_entropy_with;
    let target = Tensor::new([-100, -100])?;
    for label_smoothing in [0.0, 0.1] {
        let logits = Tensor::new([[1.0, 2.0, 3.0], [0.0, 0.5, -1.0]])?.requiring_grad()?;
        let options = CrossEntropyOptions::new().label_smoothing(label_smoothing);
        let loss = cross_entropy_with(&logits, &target, 1, options)?;
        assert!(loss.item::<f64>()?.is_nan());
        loss.backward()?;
        assert_eq!(logits.grad().unwrap().to_vec::<f32>()?, [0.0; 6]);
    }
    Ok(())
}

#[test]
fn ignore_index_wrapped_in_the_dtype_of_the_target() -> Result<()> {
    manual_seed(0);
    let logits = Tensor::randn([3, 200])?;
    for (ignore_index, classes) in [(-100, [156, 1, 2]), (1_i64 << 32, [0, 1, 2])] {
        let losses = |target: &Tensor, logits: &Tensor| {
            let options = ClassCrossEntropyOptions::new().ignore_index(ignore_index);
            logits.class_cross_entropy_with(target, 1, options)?.sum(..)
        };
        let loss = |target: &Tensor| {
            let options = CrossEntropyOptions::new().ignore_index(ignore_index);
            F::cross_entropy_with(&logits, target, 1, options)?.item::<Scalar>()
        };
        let target = Tensor::new(classes.map(i64::from))?;
        let (want, gradient) = (loss(&target)?, plain_and_recorded(&logits, |x| losses(&target, x))?);
        for dtype in [DType::U8, DType::I32] {
            let target = target.to(dtype)?;
            assert_eq!(loss(&target)?, want, "{dtype}");
            let [plain, recorded] = plain_and_recorded(&logits, |x| losses(&target, x))?;
            assert_eq!(plain, gradient[0], "{dtype}");
            assert!(plain.iter().zip(&recorded).all(|(a, b)| (a - b).abs() < 1e-6), "{dtype}");
        }
    }
    Ok(())
}

#[test]
fn losses_of_half_types_were_infinite_for_large_batches() -> Result<()> {
    let n = 70_000;
    for dtype in [DType::F16, DType::BF16] {
        let logits = Tensor::zeros([n, 4])?.to(dtype)?.requiring_grad()?;
        let target = Tensor::zeros([n])?.to(DType::I64)?;
        let mut ignored = vec![0_i64; n];
        ignored[0] = -100;
        let ignored = Tensor::new(ignored)?;
        let even = Tensor::full([n, 4], 0.25)?.to(dtype)?;
        let weight = Tensor::ones([4])?.to(dtype)?;
        let weighted = || CrossEntropyOptions::new().weight(&weight);
        let smoothed = || CrossEntropyOptions::new().label_smoothing(0.5);
        let losses = [
            F::cross_entropy(&logits, &target, 1)?,
            F::cross_entropy(&logits, &ignored, 1)?,
            F::cross_entropy(&logits, &even, 1)?,
            F::cross_entropy_with(&logits, &target, 1, weighted())?,
            F::cross_entropy_with(&logits, &ignored, 1, weighted())?,
            F::cross_entropy_with(&logits, &even, 1, weighted())?,
            F::cross_entropy_with(&logits, &target, 1, smoothed())?,
            F::cross_entropy_with(&logits, &ignored, 1, smoothed())?,
            F::nll_loss(&logits.log_softmax(1)?, &ignored, 1)?,
            F::nll_loss_with(&logits.log_softmax(1)?, &target, 1, NllLossOptions::new().weight(&weight))?,
        ];
        for (case, loss) in losses.iter().enumerate() {
            assert_eq!(loss.dtype(), dtype);
            let got = loss.item::<f64>()?;
            assert!((got - 4f64.ln()).abs() < 0.01, "{dtype}, case {case}: {got}");
        }
        let gradient = grad_with(&[&losses[3]], &[&logits], &[], BackwardOptions::default())?;
        let gradient = gradient[0].as_ref().unwrap().select(1, 0)?;
        let got = gradient.select(0, 0)?.item::<f64>()?;
        // The spacing of f16 there is 6e-8.
        assert!((got + 0.75 / n as f64).abs() < 6e-8, "{dtype}: {got}");
    }
    Ok(())
}

#[test]
fn strict_names_refused_losses_of_named_tensors() -> Result<()> {
    manual_seed(0);
    let logits = Tensor::randn([("N", 3), ("E", 4)])?;
    let named = |classes: [i64; 3]| Tensor::new(classes)?.refine_names(["N"]);
    let weight = Tensor::new([1.0, 2.0, 3.0, 4.0])?.refine_names(["E"])?;
    let probabilities = logits.softmax("E")?;
    let log_p = logits.log_softmax("E")?;
    let options = CrossEntropyOptions::new;
    let all = || -> Result<Vec<Tensor>> {
        let mut losses = Vec::new();
        for target in [named([0, 3, 1])?, named([0, -100, 1])?, probabilities.clone()] {
            for reduction in [F::Reduction::Mean, F::Reduction::None] {
                for options in [
                    options(),
                    options().weight(&weight),
                    options().label_smoothing(0.1),
                    options().label_smoothing(0.1).weight(&weight),
                ] {
                    let options = options.reduction(reduction);
                    losses.push(F::cross_entropy_with(&logits, &target, "E", options)?);
                }
                if !target.dtype().is_floating_point() {
                    let options = NllLossOptions::new().reduction(reduction);
                    losses.push(F::nll_loss_with(&log_p, &target, "E", options.clone())?);
                    losses.push(F::nll_loss_with(&log_p, &target, "E", options.weight(&weight))?);
                }
            }
        }
        Ok(losses)
    };
    let (strict, free) = (namegrad::core::names::strict(all)?, all()?);
    for (strict, free) in strict.iter().zip(&free) {
        assert_eq!(strict.to_vec::<f32>()?, free.to_vec::<f32>()?);
        assert!(strict.ndim() == 0 || *strict.names() == ["N"]);
    }
    Ok(())
}

#[test]
fn recorded_gradients_of_ignored_and_infinite_logits_were_nan() -> Result<()> {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let ignored = Tensor::new([-100_i64, -100])?;
    let logits = Tensor::new([[1.0, 2.0], [3.0, 5.0]])?;
    let weight = Tensor::new([1.0, 2.0])?;
    let all = [
        CrossEntropyOptions::new(),
        CrossEntropyOptions::new().weight(&weight),
        CrossEntropyOptions::new().label_smoothing(0.5),
        CrossEntropyOptions::new().label_smoothing(0.5).weight(&weight),
    ];
    for options in all {
        let of = |target: &Tensor, x: &Tensor| F::cross_entropy_with(x, target, 1, options.clone());
        assert_eq!(plain_and_recorded(&logits, |x| of(&ignored, x))?, [[0.0; 4]; 2]);
        let (row, target) = (Tensor::new([[nan, nan], [1.0, 1.0]])?, Tensor::new([-100_i64, 0])?);
        for gradient in plain_and_recorded(&row, |x| of(&target, x))? {
            assert_eq!(gradient[..2], [0.0; 2]);
            assert!(gradient[2] < 0.0 && gradient[3] > 0.0, "{gradient:?}");
        }
        let row = Tensor::new([[inf, 1.0], [1.0, 1.0]])?;
        for gradient in plain_and_recorded(&row, |x| of(&Tensor::new([1_i64, 0])?, x))? {
            assert!(gradient[..2].iter().all(|g| g.is_nan()), "{gradient:?}");
        }
    }
    let scalar = Tensor::new(1.5)?;
    let none = Tensor::new(-100_i64)?;
    assert_eq!(plain_and_recorded(&scalar, |x| F::cross_entropy(x, &none, 0))?, [[0.0]; 2]);
    Ok(())
}

#[test]
fn logits_without_classes_were_blamed_on_the_target() -> Result<()> {
    let (logits, target) = (Tensor::ones([2, 0])?, Tensor::new([0_i64, 0])?);
    for error in [
        logits.class_cross_entropy(&target, 1).unwrap_err(),
        F::cross_entropy(&logits, &target, 1).unwrap_err(),
        F::nll_loss(&logits, &target, 1).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Shape);
        assert!(error.to_string().contains("expected at least one class"), "{error}");
    }
    Ok(())
}

#[test]
fn what_drops_nothing_asked_for_a_dim_of_channels() -> Result<()> {
    let x = Tensor::new([1.0, 2.0])?;
    assert!(F::dropout2d_with(&x, 0.5, [0; 0], Dropout2dOptions::new().training(false)).is_err()); // no two dims
    let y = F::feature_alpha_dropout(&x, 0.5, [0; 0])?;
    assert!(y.equal(&x)?);
    let training = FeatureAlphaDropoutOptions::new().training(true);
    assert_eq!(
        F::feature_alpha_dropout_with(&x, 0.5, [0; 0], training).unwrap_err().kind(),
        ErrorKind::Shape
    );
    Ok(())
}

#[test]
fn distances_and_bilinear_forms_of_integers_were_refused() -> Result<()> {
    let (a, b) = (Tensor::new([[3, 4]])?, Tensor::new([[0, 0]])?);
    let distance = F::pairwise_distance(&a, &b, -1)?;
    assert!(distance.dtype() == DType::F32 && (distance.item::<f32>()? - 5.0).abs() < 1e-4);
    let y = F::bilinear(&a, &a, &Tensor::new([[[1, 0], [0, 1]]])?)?;
    assert_eq!(y.to_vec::<i64>()?, [25]);
    Ok(())
}

#[test]
fn the_gradient_of_an_impossible_ctc_loss_was_zero() -> Result<()> {
    let x = Tensor::zeros([2, 2, 3])?.log_softmax(2)?.detach().requiring_grad()?;
    let targets = Tensor::new([[1, 1], [1, 2]])?; // equal labels need a blank between them
    let (steps, lengths) = (Tensor::new([2, 2])?, Tensor::new([2, 2])?);
    let options = |zero| CtcLossOptions::new().reduction(F::Reduction::None).zero_infinity(zero);
    let losses = F::ctc_loss_with(&x, &targets, &steps, &lengths, 0, 2, options(false))?;
    assert!(losses.to_vec::<f64>()?[0].is_infinite());
    losses.sum(..)?.backward()?;
    let gradient = x.grad().unwrap();
    assert!(gradient.select(1, 0)?.isnan()?.all(..)?.item::<bool>()?);
    assert!(gradient.select(1, 1)?.isfinite()?.all(..)?.item::<bool>()?);
    let x = x.detach().requiring_grad()?;
    F::ctc_loss_with(&x, &targets, &steps, &lengths, 0, 2, options(true))?.sum(..)?.backward()?;
    assert_eq!(x.grad().unwrap().select(1, 0)?.to_vec::<f64>()?, [0.0; 6]);
    Ok(())
}

#[test]
fn functions_took_what_they_cannot_use() -> Result<()> {
    let kind = |y: Result<Tensor>| y.unwrap_err().kind();
    let x = Tensor::ones([1, 4, 1])?;
    assert_eq!(kind(F::group_norm(&x, 4, 1, 2)), ErrorKind::Shape);
    assert_eq!(kind(F::group_norm(&Tensor::ones([1, 0, 2])?, 1, 1, 2)), ErrorKind::Shape);
    assert_eq!(kind(F::group_norm(&Tensor::ones([1, 2, 0])?, 1, 1, 2)), ErrorKind::Shape);
    let options = BatchNormOptions::new().training(true).eps(0.0);
    assert_eq!(F::batch_norm_with(&Tensor::ones([2, 3])?, 1, options).unwrap_err().kind(), ErrorKind::Value);
    let (logits, p) = (Tensor::ones([2, 3])?, Tensor::ones([2, 3])?);
    let options = CrossEntropyOptions::new().ignore_index(1);
    assert_eq!(kind(F::cross_entropy_with(&logits, &p, 1, options)), ErrorKind::Value);
    let bags = Tensor::new([[0, 1]])?;
    let options = EmbeddingBagOptions::new().mode(F::BagMode::Max).scale_grad_by_freq(true);
    assert_eq!(kind(F::embedding_bag_with(&bags, &logits, options)), ErrorKind::Value);
    assert_eq!(kind(Tensor::new([1, 2])?.gelu()), ErrorKind::DType);
    Ok(())
}

#[test]
fn functions_refused_integers_and_bits() -> Result<()> {
    let x = Tensor::new([[1, 2], [3, 4]])?;
    let evaluated = DropoutOptions::new().training(false);
    assert!(F::dropout_with(&x, 0.5, evaluated)?.equal(&x)?);
    assert_eq!(F::dropout(&x, 1.0)?.to_vec::<i64>()?, [0; 4]);
    assert_eq!(F::dropout(&x, 0.5).unwrap_err().kind(), ErrorKind::DType);
    let y = F::local_response_norm(&x.unsqueeze(0)?, 2, 1)?;
    assert_eq!(y.dtype(), DType::F32);
    let bits = x.gt(2)?;
    let close = F::cosine_embedding_loss(&bits, &bits, &Tensor::new([1, 1])?, 1)?;
    assert!((close.item::<f64>()? - 0.5).abs() < 1e-6);
    let one = MultiMarginLossOptions::new().reduction(F::Reduction::None);
    let losses = F::multi_margin_loss_with(&Tensor::new([0.1, 0.2])?, &Tensor::new([1])?, 0, one)?;
    assert_eq!(losses.sizes(), [1]);
    Ok(())
}

#[test]
fn the_gradient_of_a_cross_entropy_with_bits_was_a_panic() -> Result<()> {
    let mut probability = Tensor::new([0.25, 0.5])?;
    probability.requires_grad_(true)?;
    probability.bernoulli_cross_entropy(&Tensor::new([true, false])?)?.mean(..)?.backward()?;
    assert!(probability.grad().unwrap().allclose(&Tensor::new([-2.0, 1.0])?)?);
    Ok(())
}

#[test]
fn ctc_took_lengths_of_other_dims() -> Result<()> {
    let log_p = Tensor::randn([("time", 6), ("N", 2), ("class", 4)])?.log_softmax("class")?;
    let targets = Tensor::new([[1, 1, 2], [3, 2, 0]])?.refine_names(["N", "label"])?;
    let lengths = |name: &str| Tensor::new([3, 2])?.refine_names([name]);
    let loss = |targets: &Tensor, inputs: &Tensor, lengths: &Tensor| {
        F::ctc_loss(&log_p, targets, inputs, lengths, "time", "class")
    };
    loss(&targets, &lengths("N")?, &lengths("N")?)?;
    let other = lengths("banana")?;
    let squares = Tensor::new([[1, 1], [3, 2]])?;
    for result in [
        loss(&targets, &other, &lengths("N")?),
        loss(&targets, &lengths("N")?, &other),
        loss(&squares.refine_names(["M", "label"])?, &lengths("N")?, &Tensor::new([2, 2])?),
    ] {
        let error = result.unwrap_err();
        assert_eq!(
            (error.kind(), error.op(), error.location().file()),
            (ErrorKind::NameMismatch, "ctc_loss", file!())
        );
    }
    let error = loss(&targets, &other, &lengths("N")?).unwrap_err();
    let repair = "input_lengths.rename([(\"banana\", \"N\")])?, if both names mean the same";
    assert_eq!(error.repair(), Some(repair));
    loss(&targets, &other.rename([("banana", "N")])?, &lengths("N")?)?;
    let plain = lengths("N")?.rename(None)?;
    loss(&targets, &plain, &plain)?;
    assert!(namegrad::names::strict(|| loss(&targets, &plain, &lengths("N")?)).is_err());
    Ok(())
}

#[test]
fn ctc_read_steps_past_the_end_and_classes_that_no_target_has() -> Result<()> {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let number = |x: &Tensor| {
        F::ctc_loss(x, &Tensor::new([[1]])?, &Tensor::new([1])?, &Tensor::new([1])?, "time", "class")
    };
    for past in [nan, inf, -inf] {
        let x = Tensor::new([[[-1.0, -0.5]], [[past, past]]])?.refine_names(["time", "N", "class"])?;
        let x = x.requiring_grad()?;
        number(&x)?.backward()?;
        let grad = x.grad().unwrap();
        assert_eq!(grad.select(0, 1)?.abs()?.sum(..)?.item::<f64>()?, 0.0);
        assert!(grad.isfinite()?.all(..)?.is_nonzero()?, "{grad}");
    }
    let x = Tensor::new([[[-1.0, -0.5, inf]]])?.refine_names(["time", "N", "class"])?;
    assert_eq!(number(&x)?.item::<f64>()?, 0.5);
    assert_eq!(number(&x.requiring_grad()?)?.item::<f64>()?, 0.5);
    Ok(())
}

#[test]
fn weights_with_names_of_other_dims_were_taken() -> Result<()> {
    let x = Tensor::randn([("N", 3), ("class", 3)])?;
    let target = x.sigmoid()?;
    let weight = Tensor::rand([("N", 3), ("class", 3)])?;
    let soft = |weight: &Tensor| {
        F::multilabel_soft_margin_loss_with(
            &x,
            &target,
            "class",
            MultilabelSoftMarginLossOptions::new().weight(weight),
        )
    };
    soft(&weight)?;
    let swapped = weight.rename(["class", "N"])?;
    let error = soft(&swapped).unwrap_err();
    assert_eq!((error.kind(), error.repair()), (ErrorKind::Misaligned, Some("weight.align_as(&x)?")));
    soft(&swapped.align_as(&x)?)?;
    assert_eq!(soft(&weight.rename(["N", "kind"])?).unwrap_err().kind(), ErrorKind::NameMismatch);
    let logits = BinaryCrossEntropyWithLogitsOptions::new;
    let of = |options| F::binary_cross_entropy_with_logits_with(&x, &target, options);
    assert!(of(logits().weight(&swapped)).is_err());
    assert!(of(logits().pos_weight(&swapped)).is_err());
    assert!(F::mse_loss_with(&x, &target, MseLossOptions::new().weight(&swapped)).is_err());
    assert!(F::gaussian_nll_loss(&x, &target, &swapped).is_err());

    let table = Tensor::rand([("vocab", 5), ("embed", 2)])?;
    let words = Tensor::new([[0, 1], [2, 3]])?.refine_names(["N", "word"])?;
    let bag = |factors: &Tensor| {
        let options = EmbeddingBagOptions::new().mode(F::BagMode::Sum).per_sample_weights(factors);
        F::embedding_bag_with(&words, &table, options)
    };
    let factors = Tensor::rand([("N", 2), ("word", 2)])?;
    bag(&factors)?;
    assert_eq!(bag(&factors.rename(["word", "N"])?).unwrap_err().kind(), ErrorKind::NameMismatch);
    let statistics = Tensor::rand([("banana", 3)])?;
    let named = |mean: &Tensor| {
        F::batch_norm_with(&x, "class", BatchNormOptions::new().running_mean(mean).running_var(&statistics))
    };
    assert_eq!(named(&statistics).unwrap_err().kind(), ErrorKind::NameMismatch);
    Ok(())
}

#[test]
fn slopes_failed_in_strict_mode() -> Result<()> {
    let x = Tensor::new([[-1.0, 2.0, -3.0]])?.refine_names(["N", "C"])?;
    let layer = nn::Prelu::new(("C", 3))?;
    let (one, of_dim_1) = (nn::Prelu::new(1)?, nn::Prelu::new(3)?);
    let slopes = Tensor::ones([("C", 3)])?;
    assert_eq!(F::prelu(&x.rename(["N", "Z"])?, &slopes).unwrap_err().kind(), ErrorKind::NameNotFound);
    namegrad::names::strict(|| {
        assert_eq!(layer.forward(&x)?.to_vec::<f32>()?, [-0.25, 2.0, -0.75]);
        assert_eq!(one.forward(&x)?.shape(), x.shape());
        assert_eq!(F::rrelu_with(&x, RreluOptions::new().training(true))?.shape(), x.shape());
        assert_eq!(of_dim_1.forward(&x).unwrap_err().kind(), ErrorKind::NameMismatch);
        Ok(())
    })
}
