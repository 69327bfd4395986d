//! Mixed precision: which dtypes ops run in, and what that does to gradients and to training.

use namegrad::autograd::{autocast, autocast_dtype, checkpoint, observe};
use namegrad::core::Cell as RecurrentCell;
use namegrad::prelude::*;
use std::cell::Cell;
use std::rc::Rc;

use DType::{BF16, F16, F32, F64};

fn x(sizes: &[usize], dtype: DType) -> Result<Tensor> {
    let numbers: Vec<f32> =
        (0..sizes.iter().product()).map(|i: usize| (i * 37 % 101) as f32 / 128.0 + 0.1).collect();
    Tensor::from_slice(&numbers, sizes)?.to(dtype)
}

type Case = (&'static str, DType, fn(DType) -> Result<Tensor>);

/// Ops whose inputs are of `d` where nothing else is said, and the dtype of the result if that is `f32` or
/// `bf16` outside of the scope.
///
/// The dtypes are those of PyTorch 2.15 for a GPU, from calls with fake tensors, except for `tensordot` and
/// `inner`, where they are those for the CPU, and ops that PyTorch does not have.
#[rustfmt::skip]
fn cases() -> Vec<Case> {
    vec![
        ("mm", BF16, |d| x(&[3, 3], d)?.mm(&x(&[3, 3], d)?)),
        ("mm of two dtypes", BF16, |d| x(&[3, 3], d)?.mm(&x(&[3, 3], F32)?)),
        ("matmul", BF16, |d| x(&[2, 3, 3], d)?.matmul(&x(&[3, 3], F32)?)),
        ("bmm", BF16, |d| x(&[2, 3, 3], d)?.bmm(&x(&[2, 3, 3], F32)?)),
        ("addmm", BF16, |d| x(&[3, 3], d)?.addmm(&x(&[3, 3], F32)?, &x(&[3, 3], d)?)),
        ("baddbmm", BF16, |d| x(&[2, 3, 3], d)?.baddbmm(&x(&[2, 3, 3], d)?, &x(&[2, 3, 3], F32)?)),
        ("mv", BF16, |d| x(&[3, 3], d)?.mv(&x(&[3], F32)?)),
        ("einsum", BF16, |d| Tensor::einsum("ij,jk->ik", [&x(&[3, 3], d)?, &x(&[3, 3], F32)?])),
        ("contract", BF16, |d| {
            let (a, b) = (x(&[3, 3], d)?.rename(["i", "j"])?, x(&[3, 3], F32)?.rename(["j", "k"])?);
            a.contract(&b, "j")
        }),
        ("tensordot", BF16, |d| x(&[3, 3], d)?.tensordot(&x(&[3, 3], F32)?, 1, 0)),
        ("inner", BF16, |d| x(&[3, 3], d)?.inner(&x(&[3, 3], F32)?)),
        ("linear", BF16, |d| F::linear_with(&x(&[2, 3], d)?, &x(&[4, 3], F32)?, LinearOptions::new().bias(&x(&[4], F32)?))),
        ("conv2d", BF16, |d| F::conv2d(&x(&[1, 2, 5, 5], d)?, &x(&[3, 2, 3, 3], F32)?)),
        ("conv_transpose2d", BF16, |d| F::conv_transpose2d(&x(&[1, 2, 5, 5], d)?, &x(&[2, 3, 3, 3], F32)?)),
        ("attention", BF16, |d| {
            let q = x(&[1, 2, 4, 8], d)?;
            F::scaled_dot_product_attention(&q, &x(&[1, 2, 4, 8], F32)?, &q)
        }),
        ("recurrent", BF16, |d| {
            let (h, w) = (x(&[2, 4], F32)?, x(&[4, 3], F32)?);
            Ok(x(&[5, 2, 3], d)?.recurrent(&h, &w, &x(&[4, 4], F32)?, RecurrentCell::Tanh)?.0)
        }),
        ("prelu", BF16, |d| F::prelu(&x(&[2, 3], d)?, &x(&[3], F32)?)),
        ("exp", F32, |d| x(&[3], d)?.exp()),
        ("log", F32, |d| x(&[3], d)?.log()),
        ("log1p", F32, |d| x(&[3], d)?.log1p()),
        ("reciprocal", F32, |d| x(&[3], d)?.reciprocal()),
        ("rsqrt", F32, |d| x(&[3], d)?.rsqrt()),
        ("acos", F32, |d| x(&[3], d)?.acos()),
        ("square", F32, |d| x(&[3], d)?.square()),
        ("pow", F32, |d| x(&[3], d)?.pow(2.5)),
        ("softplus", F32, |d| x(&[3], d)?.softplus()),
        ("sum", F32, |d| x(&[3], d)?.sum(..)),
        ("prod", F32, |d| x(&[3], d)?.prod(..)),
        ("cumsum", F32, |d| x(&[3], d)?.cumsum(0)),
        ("cumprod", F32, |d| x(&[3], d)?.cumprod(0)),
        ("norm", F32, |d| x(&[3], d)?.norm(..)),
        ("vector_norm", F32, |d| x(&[3], d)?.vector_norm(..)),
        ("logsumexp", F32, |d| x(&[3], d)?.logsumexp(0)),
        ("softmax", F32, |d| x(&[3], d)?.softmax(0)),
        ("log_softmax", F32, |d| x(&[3], d)?.log_softmax(0)),
        ("dist", F32, |d| x(&[3], d)?.dist(&x(&[3], F32)?.mul(2.0)?)),
        ("layer_norm", F32, |d| x(&[2, 3], d)?.layer_norm_with(1, LayerNormOptions::new().weight(&x(&[3], F32)?))),
        ("group_norm", F32, |d| F::group_norm(&x(&[2, 4, 3], d)?, 2, 1, ..)),
        ("rms_norm", F32, |d| x(&[2, 3], d)?.rms_norm(1)),
        ("mse_loss", F32, |d| F::mse_loss(&x(&[3], d)?, &x(&[3], d)?)),
        ("l1_loss", F32, |d| F::l1_loss(&x(&[3], d)?, &x(&[3], F32)?)),
        ("smooth_l1_loss", F32, |d| F::smooth_l1_loss(&x(&[3], d)?, &x(&[3], d)?)),
        ("huber_loss", F32, |d| F::huber_loss(&x(&[3], d)?, &x(&[3], d)?)),
        ("linear_cross_entropy", F32, |d| F::linear_cross_entropy(&x(&[2, 3], d)?, &x(&[4, 3], F32)?, &Tensor::new([0, 1])?)),
        ("cross_entropy", F32, |d| F::cross_entropy(&x(&[2, 3], d)?, &Tensor::new([0, 1])?, 1)),
        ("nll_loss", F32, |d| F::nll_loss(&x(&[2, 3], d)?, &Tensor::new([0, 1])?, 1)),
        ("kl_div", F32, |d| F::kl_div(&x(&[3], d)?, &x(&[3], d)?)),
        ("binary_cross_entropy_with_logits", F32, |d| F::binary_cross_entropy_with_logits(&x(&[3], d)?, &x(&[3], d)?)),
        ("binary_cross_entropy", F32, |d| F::binary_cross_entropy(&x(&[3], d)?, &x(&[3], d)?)),
        ("cosine_similarity", F32, |d| F::cosine_similarity(&x(&[2, 3], d)?, &x(&[2, 3], F32)?, 1)),
        ("triplet_margin_loss", F32, |d| F::triplet_margin_loss(&x(&[2, 3], d)?, &x(&[2, 3], F32)?, &x(&[2, 3], d)?, 1)),
        ("sqrt", BF16, |d| x(&[3], d)?.sqrt()),
        ("sigmoid", BF16, |d| x(&[3], d)?.sigmoid()),
        ("tanh", BF16, |d| x(&[3], d)?.tanh()),
        ("relu", BF16, |d| x(&[3], d)?.relu()),
        ("gelu", BF16, |d| x(&[3], d)?.gelu()),
        ("mean", BF16, |d| x(&[3], d)?.mean(..)),
        ("amax", BF16, |d| x(&[3], d)?.amax(..)),
        ("var", BF16, |d| x(&[3], d)?.var(..)),
        ("max_pool2d", BF16, |d| F::max_pool2d(&x(&[1, 1, 4, 4], d)?, 2)),
        ("batch_norm", BF16, |d| Ok(F::batch_norm_with(&x(&[4, 3], d)?, 1, BatchNormOptions::new().training(true)
            .weight(&x(&[3], F32)?).running_mean(&x(&[3], F32)?).running_var(&x(&[3], F32)?))?.0)),
        ("add", F32, |d| x(&[3], d)?.add(&x(&[3], F32)?)),
        ("cat", F32, |d| Tensor::cat([&x(&[3], d)?, &x(&[3], F32)?], 0)),
        ("stack", F32, |d| Tensor::stack([&x(&[3], d)?, &x(&[3], F32)?], 0)),
        ("stack of one dtype", BF16, |d| Tensor::stack([&x(&[3], d)?, &x(&[3], d)?], 0)),
        ("addcmul", F32, |d| x(&[3], F32)?.addcmul(&x(&[3], d)?, &x(&[3], F32)?)),
        ("atan2", F32, |d| x(&[3], d)?.atan2(&x(&[3], F32)?)),
        ("dot", F32, |d| x(&[3], d)?.dot(&x(&[3], F32)?)),
        ("dot of one dtype", BF16, |d| x(&[3], d)?.dot(&x(&[3], d)?)),
        ("scatter_add", F32, |d| x(&[3], F32)?.scatter_add(&Tensor::new([0, 1])?, &x(&[2], d)?, 0)),
        ("index_copy", F32, |d| x(&[3], F32)?.index_copy(&Tensor::new([0, 1])?, &x(&[2], d)?, 0)),
        ("index_put", F32, |d| x(&[3], d)?.index_put(&[(&Tensor::new([0, 1])?).into()], &x(&[2], F32)?)),
        ("bilinear", F32, |d| F::bilinear(&x(&[2, 3], d)?, &x(&[2, 3], d)?, &x(&[4, 3, 3], F32)?)),
        ("cross", F32, |d| x(&[3], d)?.cross(&x(&[3], F32)?, 0)),
    ]
}

#[test]
fn ops_run_in_the_dtypes_of_pytorch() {
    let mut wrong = Vec::new();
    for (name, want, call) in cases() {
        match autocast(BF16, || call(BF16)) {
            Ok(y) if y.dtype() == want => {}
            Ok(y) => wrong.push(format!("{name}: {}, not {want}", y.dtype())),
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
        // From f32 alone, only products are in another dtype.
        let is_product = BF16 == want && autocast(BF16, || call(F32)).is_ok_and(|y| y.dtype() == BF16);
        assert!(!is_product || cases().iter().position(|case| case.0 == name) < Some(17), "{name}");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(autocast_dtype(), None);
}

#[test]
fn every_listed_op_exists() {
    use namegrad::autograd::autocast::{FULL, LOW, WIDEST};
    for name in [LOW, FULL, WIDEST].concat() {
        let exists = namegrad::ops::find(name).is_ok() || namegrad::ops::find(&format!("nn.{name}")).is_ok();
        assert!(exists, "{name} is not an op");
    }
}

#[test]
fn results_are_near_those_in_f32() -> Result<()> {
    for (name, _, call) in cases() {
        let (plain, cast) = (call(F32)?, autocast(BF16, || call(F32))?);
        let off = plain.sub(&cast.to(F32)?)?.abs()?.amax(..)?.item::<f64>()?;
        let size = plain.abs()?.amax(..)?.item::<f64>()?;
        assert!(off <= 0.02 * size.max(0.1), "{name}: {off} of {size}");
    }
    Ok(())
}

#[test]
fn gradients_have_the_dtypes_of_their_tensors() -> Result<()> {
    let layer = Linear::new(("in", 3), ("out", 2))?;
    let input = x(&[4, 3], F32)?.rename(["N", "in"])?.requiring_grad()?;
    let loss =
        |dtype| autocast(dtype, || layer.forward(&input)?.softmax("out")?.select("out", 0)?.log()?.sum(..));
    loss(F32)?.backward()?;
    let tensors = || [input.grad(), layer.weight().grad(), layer.bias().unwrap().grad()].map(Option::unwrap);
    let plain = tensors();
    for dtype in [BF16, F16] {
        input.zero_grad();
        layer.zero_grad();
        loss(dtype)?.backward()?;
        for (plain, cast) in plain.iter().zip(tensors()) {
            assert_eq!(cast.dtype(), F32);
            let off = plain.sub(&cast)?.abs()?.amax(..)?.item::<f64>()?;
            assert!(off > 0.0 && off < 0.02, "{dtype}: {off}");
        }
    }
    Ok(())
}

/// The number of casts in `f`.
fn casts<R>(f: impl FnOnce() -> R) -> (R, usize) {
    let count = Rc::new(Cell::new(0));
    let seen = count.clone();
    let result = observe(move |op| seen.set(seen.get() + usize::from(op.op == "to")), f);
    (result, count.get())
}

#[test]
fn a_parameter_is_cast_once_in_a_scope() -> Result<()> {
    let weight = Parameter::new(x(&[3, 3], F32)?)?;
    let input = x(&[3, 3], BF16)?;
    let product = || input.mm(weight.tensor());
    let (sum, count) =
        casts(|| autocast(BF16, || product()?.add(&product()?)?.add(&autocast(BF16, product)?)));
    assert_eq!(count, 1);
    sum?.sum(..)?.backward()?;
    let three_times = weight.grad().unwrap();
    weight.zero_grad();
    autocast(BF16, product)?.sum(..)?.backward()?;
    let off = three_times.sub(&weight.grad().unwrap().mul(3.0)?)?.abs()?.amax(..)?.item::<f64>()?;
    assert!(off < 0.02 * three_times.amax(..)?.item::<f64>()?, "sums of bf16: {off}");

    // Of another dtype, with a record or without, after a change of the value, in another scope.
    let all = || {
        autocast(BF16, || {
            no_grad(product)?;
            let y = product()?;
            assert!(y.requires_grad(), "the cast without a record is not used");
            autocast(F16, product)?;
            let before = product()?;
            weight.update(|value| value.mul_(2.0).map(drop))?;
            let after = product()?;
            assert!(after.allclose(&before.mul(2.0)?)?, "the new value is cast");
            Ok::<_, Error>(())
        })?;
        autocast(BF16, product)
    };
    let (result, count) = casts(all);
    result?;
    // The input is cast to f16 as well.
    assert_eq!(count, 6);
    Ok(())
}

#[test]
fn scopes_nest_and_end() -> Result<()> {
    let a = x(&[2, 2], F32)?;
    autocast(BF16, || {
        assert_eq!(a.mm(&a)?.dtype(), BF16);
        assert_eq!(autocast(F32, || a.mm(&a))?.dtype(), F32);
        assert_eq!(autocast(F32, autocast_dtype), None);
        assert_eq!(autocast(F16, || a.mm(&a))?.dtype(), F16);
        assert_eq!(autocast_dtype(), Some(BF16));
        let other = std::thread::scope(|s| s.spawn(autocast_dtype).join());
        assert_eq!(other.unwrap(), None, "another thread");
        let caught = std::panic::catch_unwind(|| autocast(F16, || panic!("in the scope")));
        assert!(caught.is_err());
        assert_eq!(a.mm(&a)?.dtype(), BF16, "after a panic");
        // An op that fails leaves the scope as it was, too.
        assert!(a.mm(&Tensor::ones([3, 2])?).is_err());
        assert_eq!(a.mm(&a)?.dtype(), BF16);
        Ok::<_, Error>(())
    })?;
    assert_eq!(a.mm(&a)?.dtype(), F32);
    Ok(())
}

#[test]
fn in_place_ops_keep_their_dtype() -> Result<()> {
    autocast(BF16, || {
        let mut y = x(&[3], BF16)?;
        y.exp_()?.cumsum_(0)?;
        assert_eq!(y.dtype(), BF16);
        let mut y = x(&[3], BF16)?.requiring_grad()?.mul(1.0)?;
        y.exp_()?.cumsum_(0)?;
        assert_eq!(y.dtype(), BF16);
        let mut y = x(&[2, 2], F32)?.requiring_grad()?.mul(1.0)?;
        y.addmm_(&x(&[2, 2], F32)?, &x(&[2, 2], F32)?)?;
        assert_eq!(y.dtype(), F32);
        assert!(y.requires_grad());
        Ok(())
    })
}

#[test]
fn another_dtype_is_an_error_of_the_op() -> Result<()> {
    for dtype in [F64, DType::I64, DType::Bool] {
        let a = x(&[2, 2], F32)?;
        let error = autocast(dtype, || a.mm(&a)).unwrap_err();
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::DType, file!()));
        assert!(error.message().contains("tests/tensors/autocast.rs"), "{error}");
        assert!(autocast(dtype, || a.add(&a)).is_ok(), "it casts nothing");
    }
    let (a, b) = (Tensor::new([[1, 2]])?, Tensor::new([[3], [4]])?);
    assert_eq!(autocast(BF16, || a.mm(&b))?.item::<i64>()?, 11, "integers stay");
    let a = x(&[2, 2], F64)?;
    assert!(autocast(BF16, || a.mm(&a))?.equal(&a.mm(&a)?)?, "f64 stays");
    let error = autocast(BF16, || x(&[2, 3], F32)?.mm(&x(&[2, 3], F32)?)).unwrap_err();
    assert_eq!(error.location().file(), file!());
    assert!(!error.message().contains("autocast"), "{error}");

    // The f32 of the caller is bf16 in the error.
    let error = autocast(BF16, || a.mm(&x(&[2, 2], F32)?)).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::DType, file!()));
    let scope = "; autocast to bfloat16 (at tests/tensors/autocast.rs";
    assert!(error.message().contains(scope), "{error}");
    assert_eq!(error.message().matches("autocast").count(), 2, "the scope and the file: {error}");
    Ok(())
}

#[test]
fn a_backward_pass_and_a_checkpoint_run_in_the_dtypes_of_the_forward_pass() -> Result<()> {
    let weight = Parameter::new(x(&[3, 3], F32)?)?;
    let input = x(&[3, 3], F32)?.requiring_grad()?;
    let held = weight.clone();
    let block = move |inputs: &[Tensor]| inputs[0].mm(held.tensor())?.tanh()?.mm(held.tensor());
    let mut gradients = Vec::new();
    for inside in [true, false] {
        for again in [true, false] {
            weight.zero_grad();
            input.zero_grad();
            let (loss, dtype) = autocast(BF16, || {
                let y = input.mm(weight.tensor())?;
                let y = if again { checkpoint(block.clone(), &[&y])? } else { block(&[y])? };
                let dtype = y.dtype();
                let loss = y.mm(weight.tensor())?.square()?.sum(..)?;
                if inside {
                    loss.backward()?;
                }
                Ok::<_, Error>((loss, dtype))
            })?;
            assert_eq!(dtype, BF16);
            if !inside {
                loss.backward()?;
            }
            gradients.push([weight.grad().unwrap(), input.grad().unwrap()]);
        }
    }
    for other in &gradients[1..] {
        for (a, b) in gradients[0].iter().zip(other) {
            assert_eq!((a.dtype(), b.dtype()), (F32, F32));
            // The sums of the gradients of one weight may be rounded in another order.
            let off = a.sub(b)?.abs()?.amax(..)?.div(&a.abs()?.amax(..)?)?.item::<f64>()?;
            assert!(off < 0.01, "{off}");
        }
    }
    Ok(())
}

#[test]
fn a_perceptron_learns_as_in_f32() -> Result<()> {
    let train = |dtype| {
        manual_seed(7);
        let model = Sequential::new()
            .then(Linear::new(("in", 2), ("h", 32))?)
            .then(LayerNorm::new([("h", 32)])?)
            .then(Relu)
            .then(Linear::new(("h", 32), ("class", 2))?);
        let points = Tensor::randn([("N", 128), ("in", 2)])?;
        let class = points.prod("in").gt(0).to(DType::I64)?;
        let mut optimizer = AdamW::builder(model.parameters()).lr(0.02).build()?;
        let mut last = 0.0;
        for _ in 0..60 {
            let loss = autocast(dtype, || F::cross_entropy(&model.forward(&points)?, &class, "class"))?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
            last = loss.item::<f64>()?;
        }
        Ok::<_, Error>(last)
    };
    let (plain, cast) = (train(F32)?, train(BF16)?);
    assert!(plain < 0.2 && (cast - plain).abs() < 0.1, "{plain} and {cast}");
    Ok(())
}

/// Runs two layers of a kind one after the other, so that the second gets what the first gives, and checks
/// that all parameters get gradients of `f32`.
fn check_layers(name: &str, module: &dyn Module, forward: impl Fn() -> Result<Tensor>) -> Result<()> {
    for dtype in [BF16, F16] {
        module.zero_grad();
        let y = autocast(dtype, &forward).map_err(|error| error.context(format!("{name} in {dtype}: ")))?;
        assert_eq!(y.dtype(), dtype, "{name}");
        let plain = forward()?;
        let off = plain.sub(&y.to(F32)?)?.abs()?.amax(..)?.item::<f64>()?;
        let size = plain.abs()?.amax(..)?.item::<f64>()?;
        assert!(off < 0.03 * size.max(0.1), "{name} in {dtype}: {off} of {size}");
        y.to(F32)?.square()?.sum(..)?.backward()?;
        for (path, parameter) in module.named_parameters() {
            let grad = parameter.grad().unwrap_or_else(|| panic!("{name}: no gradient of {path}"));
            assert_eq!(grad.dtype(), F32, "{name}: {path}");
        }
    }
    Ok(())
}

#[test]
fn layers_take_what_other_layers_give() -> Result<()> {
    manual_seed(1);
    let x = Tensor::randn([("N", 2), ("time", 5), ("f", 6)])?;
    let two = (Linear::new(("f", 6), ("f", 6))?, Linear::new(("f", 6), ("f", 6))?);
    let model = Sequential::new().then(two.0).then(Relu).then(two.1);
    check_layers("Linear", &model, || model.forward(&x))?;

    let images = Tensor::randn([("N", 2), ("C", 3), ("H", 6), ("W", 6)])?;
    let model = Sequential::new()
        .then(Conv2d::new(("C", 3), ("C", 4), [3, 3])?)
        .then(BatchNorm::new(("C", 4))?)
        .then(Relu)
        .then(ConvTranspose2d::new(("C", 4), ("C", 2), [3, 3])?);
    check_layers("Conv2d", &model, || model.forward(&images))?;

    let attention = MultiheadAttention::new(("f", 6), ("heads", 2), "time")?;
    check_layers("MultiheadAttention", &attention, || attention.forward(&attention.forward(&x)?))?;

    let lstm = Lstm::builder(("f", 6), ("f", 6), "time").num_layers(2).build()?;
    check_layers("Lstm", &lstm, || Ok(lstm.forward(&x)?.output))?;
    let gru = Gru::new(("f", 6), ("f", 6), "time")?;
    check_layers("Gru", &gru, || Ok(gru.forward(&gru.forward(&x)?.output)?.output))?;

    let encoder = namegrad::nn::TransformerEncoderLayer::builder(("f", 6), 2, "time").dropout(0.0).build()?;
    let out = Linear::new(("f", 6), ("out", 3))?;
    let all = Sequential::new().then(encoder).then(out);
    check_layers("TransformerEncoderLayer", &all, || all.forward(&x))
}

#[test]
fn a_layer_with_other_parameters_is_refused_as_ever() -> Result<()> {
    let layer = Linear::new(("f", 6), ("out", 2))?;
    layer.to(F64)?;
    let x = Tensor::randn([("N", 2), ("f", 6)])?;
    assert_eq!(autocast(BF16, || layer.forward(&x)).unwrap_err().kind(), ErrorKind::DType);
    layer.to(F32)?;
    assert_eq!(layer.forward(&x.to(BF16)?).unwrap_err().kind(), ErrorKind::DType);
    Ok(())
}
