//! Normalizations, embeddings and other layers without convolutions: dims by name, PyTorch's state, and what
//! they refuse.

use crate::orders;
use namegrad::nn::{
    Bilinear, ChannelShuffle, EmbeddingBag, Identity, InstanceNorm, Lambda, LocalResponseNorm, ModuleDict,
    ModuleList, PixelShuffle, PixelUnshuffle, Unflatten,
};
use namegrad::prelude::*;

fn close(a: &Tensor, b: &Tensor) {
    let options = IscloseOptions::new().atol(1e-5).rtol(1e-5);
    assert!(a.allclose_with(b, options).unwrap(), "{a} is not {b}");
}

/// A layer for inputs with the dims N=2, F=4, H=3, W=2, or some of them.
type Row = (&'static str, &'static [(&'static str, usize)], fn() -> Result<Box<dyn Layer>>);

const IMAGE: &[(&str, usize)] = &[("N", 2), ("F", 4), ("H", 4), ("W", 2)];

/// Layers that take floats.
const LAYERS: &[Row] = &[
    ("BatchNorm", IMAGE, || Ok(Box::new(BatchNorm::new(("F", 4))?))),
    ("LayerNorm", IMAGE, || Ok(Box::new(LayerNorm::new([("F", 4), ("H", 4)])?))),
    ("RmsNorm", IMAGE, || Ok(Box::new(RmsNorm::new([("F", 4)])?))),
    ("GroupNorm", IMAGE, || Ok(Box::new(GroupNorm::new(2, ("F", 4), ["H", "W"])?))),
    ("InstanceNorm", IMAGE, || {
        Ok(Box::new(InstanceNorm::builder(("F", 4), ["H", "W"]).affine(true).build()?))
    }),
    ("LocalResponseNorm", IMAGE, || Ok(Box::new(LocalResponseNorm::new(3, "F")?))),
    ("PixelShuffle", IMAGE, || Ok(Box::new(PixelShuffle::new(2, "F", ["H", "W"])?))),
    ("PixelUnshuffle", IMAGE, || Ok(Box::new(PixelUnshuffle::new(2, "F", ["H", "W"])?))),
    ("ChannelShuffle", IMAGE, || Ok(Box::new(ChannelShuffle::new(2, "F")?))),
    ("Flatten", IMAGE, || Ok(Box::new(Flatten::new(["F", "H", "W"], "features")?))),
    ("Unflatten", IMAGE, || Ok(Box::new(Unflatten::new("F", [("A", 2), ("B", 2)])?))),
    ("Identity", IMAGE, || Ok(Box::new(Identity))),
    ("Lambda", IMAGE, || Ok(Box::new(Lambda::new(|x| x.mul(x.mean(["H", "W"])?.align_as(x)?))))),
    ("Residual", IMAGE, || Ok(Box::new(Residual::new(Linear::new(("F", 4), ("F", 4))?)))),
];

/// The names of a tensor.
fn names(x: &Tensor) -> Vec<&'static str> {
    (0..x.ndim()).map(|dim| x.name(dim).unwrap().as_str()).collect()
}

/// The values and gradients by name do not depend on the order of the dims.
#[test]
fn the_order_of_dims_does_not_matter() -> Result<()> {
    for (name, dims, make) in LAYERS {
        manual_seed(1);
        let layer = make()?;
        let x = Tensor::randn(dims.to_vec())?;
        let want = layer.forward(&x)?;
        let factors = Tensor::randn(want.shape())?;
        let gradient = |x: &Tensor| -> Result<(Tensor, Tensor)> {
            let x = x.detach().requiring_grad()?;
            let y = layer.forward(&x)?.align_to(names(&want))?;
            y.mul(&factors)?.sum(..)?.backward()?;
            Ok((y, x.grad().unwrap().rename(Some(x.names().clone()))?.align_to(names_of(dims))?))
        };
        let (_, want_gradient) = gradient(&x)?;
        for order in orders(&names_of(dims)) {
            let (y, g) = gradient(&x.align_to(order.clone())?)?;
            assert_eq!(y.shape(), want.shape(), "{name} {order:?}");
            close(&y, &want);
            close(&g, &want_gradient);
        }
    }
    Ok(())
}

fn names_of(dims: &[(&'static str, usize)]) -> Vec<&'static str> {
    dims.iter().map(|(name, _)| *name).collect()
}

/// A further dim rides along: its slices are what the layer gives for the slices of the input. Batch
/// normalization takes its statistics over it.
#[test]
fn further_dims_ride_along() -> Result<()> {
    for (name, dims, make) in LAYERS.iter().filter(|row| row.0 != "BatchNorm") {
        manual_seed(2);
        let layer = make()?;
        for place in 0..=dims.len() {
            let mut wider = dims.to_vec();
            wider.insert(place, ("time", 3));
            let x = Tensor::randn(wider)?;
            let y = layer.forward(&x)?;
            for time in 0..3 {
                let want = layer.forward(&x.select("time", time)?)?;
                let got = y.select("time", time)?.align_to(names(&want))?;
                assert_eq!(got.shape(), want.shape(), "{name}");
                close(&got, &want);
            }
        }
    }
    Ok(())
}

/// Without names, dims are found by position, as in PyTorch.
#[test]
fn without_names_by_position() -> Result<()> {
    manual_seed(3);
    let x = Tensor::randn([2, 4, 3, 2])?;
    let named = x.rename(["N", "F", "H", "W"])?;
    let pairs: Vec<(Box<dyn Layer>, Box<dyn Layer>)> = vec![
        (Box::new(BatchNorm::new(4)?), Box::new(BatchNorm::new(("F", 4))?)),
        (Box::new(LayerNorm::new([3, 2])?), Box::new(LayerNorm::new([("H", 3), ("W", 2)])?)),
        (Box::new(RmsNorm::new([2])?), Box::new(RmsNorm::new([("W", 2)])?)),
        (Box::new(GroupNorm::new(2, 4, ..)?), Box::new(GroupNorm::new(2, ("F", 4), ["H", "W"])?)),
        (Box::new(InstanceNorm::new(4, ..)?), Box::new(InstanceNorm::new(("F", 4), ["H", "W"])?)),
        (Box::new(Flatten::default()), Box::new(Flatten::new(["F", "H", "W"], "features")?)),
    ];
    for (plain, by_name) in pairs {
        close(&plain.forward(&x)?, &by_name.forward(&named)?.rename(None)?);
    }
    Ok(())
}

/// PyTorch's names and first values, and its updates: `(1 - momentum) old + momentum new`, with the unbiased
/// variance.
#[test]
fn batch_norm_keeps_running_statistics() -> Result<()> {
    let norm = BatchNorm::new(("F", 2))?;
    let paths: Vec<String> = norm.state_dict().iter().map(|(path, _)| path.to_string()).collect();
    assert_eq!(paths, ["bias", "num_batches_tracked", "running_mean", "running_var", "weight"]);
    let x = Tensor::new([[1.0, 2.0], [3.0, 6.0], [5.0, 10.0]])?.refine_names(["N", "F"])?;
    norm.forward(&x)?;
    let mean = norm.running_mean().unwrap();
    let var = norm.running_var().unwrap();
    close(&mean.tensor(), &Tensor::new([0.3, 0.6])?);
    close(&var.tensor(), &Tensor::new([0.9 + 0.4, 0.9 + 1.6])?);
    assert_eq!(norm.state_dict().get("num_batches_tracked").unwrap().item::<i64>()?, 1);
    norm.eval();
    let y = norm.forward(&x)?;
    let want = x.sub(mean.tensor())?.div(&var.tensor().add(1e-5)?.sqrt()?)?;
    close(&y, &want);
    assert_eq!(norm.state_dict().get("num_batches_tracked").unwrap().item::<i64>()?, 1);

    let average = BatchNorm::builder(("F", 2)).momentum(None).build()?;
    average.forward(&x)?;
    average.forward(&x.mul(3.0)?)?;
    close(&average.running_mean().unwrap().tensor(), &Tensor::new([6.0, 12.0])?);
    Ok(())
}

#[test]
fn instance_norm_averages_its_statistics() -> Result<()> {
    let norm = InstanceNorm::builder(("C", 1), "L").track_running_stats(true).build()?;
    let x = Tensor::new([[[0.0, 2.0]], [[4.0, 8.0]]])?.refine_names(["N", "C", "L"])?;
    norm.forward(&x)?;
    let state = norm.state_dict();
    assert!((state.get("running_mean").unwrap().item::<f64>()? - 0.35).abs() < 1e-6);
    // Unbiased variances 2 and 8.
    assert!((state.get("running_var").unwrap().item::<f64>()? - 1.4).abs() < 1e-6);
    Ok(())
}

#[test]
fn embeddings() -> Result<()> {
    let table = Embedding::builder(("vocab", 4), ("embed", 2)).padding_idx(-1).max_norm(1.0).build()?;
    table.weight().set(Tensor::new([[3.0, 4.0], [0.3, 0.4], [30.0, 40.0], [5.0, 0.0]])?)?;
    let x = Tensor::new([[0, 1], [3, 0]])?.refine_names(["time", "N"])?;
    let y = table.forward(&x)?;
    assert_eq!(y.shape().to_string(), "[time=2, N=2, embed=2]");
    // The rows that were used are now short, in the weight.
    let want = Tensor::new([[0.6, 0.8], [0.3, 0.4], [30.0, 40.0], [1.0, 0.0]])?;
    close(&table.weight().tensor().rename(None)?, &want);
    close(&y.select("time", 0)?.rename(None)?, &want.narrow(0, 0, 2)?);
    y.sum(..)?.backward()?;
    let gradient = table.weight().grad().unwrap();
    assert_eq!(gradient.to_vec::<f32>()?, [2.0, 2.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);

    let bag = EmbeddingBag::builder(("vocab", 4), ("embed", 2)).mode(F::BagMode::Max).build()?;
    bag.weight().set(Tensor::new([[1.0, 0.0], [0.0, 1.0], [2.0, -1.0], [0.0, 0.0]])?)?;
    let (indices, starts) = (Tensor::new([0, 1, 2])?, Tensor::new([0, 2, 2])?);
    let y = bag.forward_bags(&indices, Some(&starts), None)?;
    assert_eq!(y.to_vec::<f32>()?, [1.0, 1.0, 0.0, 0.0, 2.0, -1.0]);
    y.sum(..)?.backward()?;
    let gradient = bag.weight().grad().unwrap();
    assert_eq!(gradient.to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0]);
    Ok(())
}

#[test]
fn bilinear_finds_both_dims() -> Result<()> {
    manual_seed(4);
    let layer = Bilinear::new(("C", 3), ("C", 3), ("C", 2))?;
    assert_eq!(layer.weight().shape().to_string(), "[C=2, C_in1=3, C_in2=3]");
    let x = Tensor::randn([("N", 2), ("H", 4), ("C", 3)])?;
    let other = Tensor::randn([("N", 2), ("H", 4), ("C", 3)])?;
    let want = layer.forward(&x, &other)?;
    assert_eq!(want.shape().to_string(), "[N=2, H=4, C=2]");
    close(&namegrad::names::strict(|| layer.forward(&x, &other))?, &want);
    let turned = layer.forward(&x.align_to(["C", "N", "H"])?, &other.align_to(["H", "C", "N"])?)?;
    close(&turned.align_to(["N", "H", "C"])?, &want);
    // By position only if names are not strict.
    let unnamed = other.rename([None, None, Some("C")])?;
    close(&layer.forward(&x, &unnamed)?, &want);
    for (x, other) in [(&x, &unnamed), (&unnamed, &x)] {
        let error = namegrad::names::strict(|| layer.forward(x, other)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NameMismatch);
    }
    Ok(())
}

#[test]
fn lists_and_dicts_of_layers() -> Result<()> {
    let mut list: ModuleList = ModuleList::new();
    list.push(Box::new(Linear::new(("C", 2), ("C", 2))?));
    list.push(Box::new(Relu));
    assert_eq!((list.len(), list.named_parameters()[0].0.as_str()), (2, "0.weight"));
    let mut dict: ModuleDict = ModuleDict::new();
    dict.insert("a", Box::new(Relu))?;
    assert!(dict.insert("a", Box::new(Tanh))?.is_some());
    assert!(dict.insert("a.b", Box::new(Relu)).is_err_and(|error| error.kind() == ErrorKind::Value));
    assert!(dict.get("b").is_err_and(|error| error.message().contains("there are [\"a\"]")));
    assert_eq!(dict.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["a"]);
    Ok(())
}

/// Errors name the layer's path, its dims and the input's, and the caller's line.
#[test]
fn wrong_inputs() -> Result<()> {
    let model = Sequential::new().then_named("norm", BatchNorm::new(("F", 3))?);
    model.train();
    let error = model.forward(&Tensor::ones([("N", 2), ("F", 4)])?).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    let text = error.to_string();
    assert!(text.contains("the layer 'norm' (F=3) needs 3 elements in the dim 'F', got 4"), "{text}");
    assert!(error.location().file().ends_with("norm_layers.rs"), "{text}");
    let kind = |result: Result<Tensor>| result.unwrap_err().kind();
    let named = |sizes: [(&'static str, usize); 2]| Tensor::ones(sizes);
    assert_eq!(kind(model.forward(&named([("N", 2), ("C", 3)])?)), ErrorKind::NameNotFound);
    let error = model.forward(&named([("N", 1), ("F", 3)])?).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    assert!(error.message().contains("expected more than 1 value per channel when training"), "{error}");
    // Nothing was learned from the batches that were refused.
    let count = model.state_dict().get("norm.num_batches_tracked").unwrap().item::<i64>()?;
    assert_eq!(count, 0);
    assert_eq!(kind(LayerNorm::new([("F", 3)])?.forward(&named([("N", 1), ("F", 2)])?)), ErrorKind::Shape);
    assert_eq!(GroupNorm::new(2, ("F", 3), ..).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(
        kind(BatchNorm::new(("F", 3))?.forward(&Tensor::new([[1, 2, 3], [4, 5, 6]])?)),
        ErrorKind::DType
    );
    let table = Embedding::new(("vocab", 3), ("embed", 2))?;
    let error = table.forward(&Tensor::new([[0, 1], [2, 3]])?).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Index);
    assert!(error.message().contains("index 3 at position [1, 1] is out of range for 3 rows"), "{error}");
    assert_eq!(kind(table.forward(&Tensor::new([-1])?)), ErrorKind::Index);
    assert_eq!(kind(table.forward(&Tensor::new([1.0])?)), ErrorKind::DType);
    let taken = Tensor::new([1])?.refine_names(["embed"])?;
    assert_eq!(kind(table.forward(&taken)), ErrorKind::DuplicateName);
    let bag = EmbeddingBag::new(("vocab", 3), ("embed", 2))?;
    let starts = |starts: &[i64]| {
        let starts = Tensor::from_slice(starts, [starts.len()]).unwrap();
        bag.forward_bags(&Tensor::new([0, 1]).unwrap(), Some(&starts), None).unwrap_err().kind()
    };
    for wrong in [&[1, 2][..], &[0, 2, 1], &[0, 3], &[0, -1]] {
        assert_eq!(starts(wrong), ErrorKind::Value, "{wrong:?}");
    }
    let options = EmbeddingBagOptions::new().include_last_offset(true);
    let (ends, weight) = (Tensor::new([0, 1])?, Tensor::ones([3, 2])?);
    let bags = F::embedding_bag_with(&Tensor::new([0, 1])?, &weight, options.offsets(&ends));
    assert_eq!(bags.unwrap_err().kind(), ErrorKind::Value, "the last offset is not the end");
    assert_eq!(kind(bag.forward(&Tensor::new([0, 1])?)), ErrorKind::Value);
    Ok(())
}

/// Half types have their statistics in `f32`; empty inputs give empty results.
#[test]
fn other_dtypes_and_nothing() -> Result<()> {
    let x = Tensor::randn([("N", 4), ("F", 2)])?;
    for dtype in [DType::F16, DType::BF16, DType::F64] {
        let norm = BatchNorm::new(("F", 2))?;
        norm.to(dtype)?;
        let y = norm.forward(&x.to(dtype)?)?;
        assert_eq!((y.dtype(), norm.running_mean().unwrap().value().dtype()), (dtype, dtype));
        norm.eval();
        assert_eq!(norm.forward(&x.to(dtype)?)?.dtype(), dtype);
    }
    let norm = BatchNorm::new(("F", 2))?;
    assert_eq!(norm.forward(&Tensor::zeros([("N", 0), ("F", 2)])?)?.sizes(), [0, 2]);
    assert_eq!(norm.running_var().unwrap().tensor().to_vec::<f32>()?, [1.0, 1.0]);
    let table = Embedding::new(("vocab", 3), ("embed", 2))?;
    assert_eq!(table.forward(&Tensor::zeros([("N", 0)])?.to(DType::I64)?)?.sizes(), [0, 2]);
    Ok(())
}

#[test]
fn batches_of_other_threads_were_not_counted() -> Result<()> {
    let norm = BatchNorm::builder(("C", 2)).momentum(None).build()?;
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for at in 0..25 {
                    let x = Tensor::new([[0.0, 1.0], [at as f64, 3.0]]).unwrap();
                    norm.forward(&x.refine_names(["N", "C"]).unwrap()).unwrap();
                }
            });
        }
    });
    let count = |norm: &BatchNorm| norm.state_dict().get("num_batches_tracked").unwrap().item::<i64>();
    assert_eq!(count(&norm)?, 8 * 25);
    let mean = norm.running_mean().unwrap().tensor();
    close(&mean, &Tensor::new([6.0, 2.0])?.refine_names(["C"])?);
    // An empty batch has no statistics, so it is not counted.
    norm.forward(&Tensor::ones([("N", 0), ("C", 2)])?)?;
    assert_eq!(count(&norm)?, 8 * 25);
    assert!(norm.running_mean().unwrap().tensor().equal(&mean)?);
    Ok(())
}
