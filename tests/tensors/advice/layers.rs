//! Layers and functions: dims that are missing or of another size, dtypes, options, states.

use super::{Advice, follow};
use namegrad::names;
use namegrad::nn::{self, parametrize};
use namegrad::options::*;
use namegrad::prelude::*;

pub(super) fn follow(advice: &mut Advice) -> Result<()> {
    dims(advice)?;
    images(advice)?;
    losses(advice)?;
    functions(advice)?;
    models(advice)?;
    names::strict(|| strictly(advice))
}

fn dims(advice: &mut Advice) -> Result<()> {
    let layer = Linear::new(("in", 3), ("out", 2))?;
    let x = Tensor::ones([("N", 4), ("features", 3)])?;
    follow!(advice, layer.forward(&x) => { assert_eq!(*layer.forward(&x.rename([("features", "in")])?)?.names(), ["N", "out"]) });
    let x = Tensor::ones([("out", 4), ("in", 3)])?;
    follow!(advice, layer.forward(&x) => { assert_eq!(*layer.forward(&x.rename([("out", "out_in")])?)?.names(), ["out_in", "out"]) });
    let x = Tensor::ones([("N", 4), ("in", 3)])?.to(DType::F64)?;
    follow!(advice, layer.forward(&x) => { assert_eq!(layer.forward(&x.to(DType::F32)?)?.sizes(), [4, 2]) });
    let (x, lengths) = (Tensor::ones([("N", 2), ("time", 3)])?, Tensor::new([3, 2])?.refine_names(["B"])?);
    follow!(advice, nn::pack_padded_sequence(&x, &lengths, "time") => {
        assert_eq!(nn::pack_padded_sequence(&x, &lengths.rename([("B", "N")])?, "time")?.lengths(), [3, 2])
    });
    Ok(())
}

fn images(advice: &mut Advice) -> Result<()> {
    let (conv, weight) = (
        Conv2d::new(("C", 3), ("out", 4), [3, 3])?,
        Tensor::ones([("out", 4), ("C", 3), ("H", 3), ("W", 3)])?,
    );
    let x = Tensor::ones([("N", 3), ("H", 8), ("W", 8)])?;
    follow!(advice, F::conv2d(&x, &weight) => { assert_eq!(F::conv2d(&x, &weight.rename([("C", "N")])?)?.sizes(), [4, 6, 6]) });
    let x = Tensor::ones([("N", 2), ("D", 3), ("H", 8), ("W", 8)])?;
    follow!(advice, conv.forward(&x) => { assert_eq!(conv.forward(&x.rename([("D", "C")])?)?.sizes(), [2, 4, 6, 6]) });
    let x = Tensor::ones([("out", 2), ("C", 3), ("H", 8), ("W", 8)])?;
    follow!(advice, conv.forward(&x) => { assert_eq!(conv.forward(&x.rename([("out", "out_in")])?)?.sizes(), [2, 4, 6, 6]) });
    follow!(advice, Conv2d::builder(3, 4, [3, 3]).stride(0).build() => { assert_eq!(Conv2d::builder(3, 4, [3, 3]).stride(1).build()?.parameters().len(), 2) });
    follow!(advice, Conv2d::builder(3, 4, [3, 3]).groups(2).build() => { assert_eq!(Conv2d::builder(3, 4, [3, 3]).groups(1).build()?.parameters().len(), 2) });
    follow!(advice, Conv2d::builder(3, 4, [3, 3]).stride(2).padding(Padding::Same).build() => {
        assert_eq!(Conv2d::builder(3, 4, [3, 3]).stride(1).padding(Padding::Same).build()?.parameters().len(), 2)
    });
    follow!(advice, Conv2d::builder(3, 4, [3, 3]).padding(-1).build() => { assert_eq!(Conv2d::builder(3, 4, [3, 3]).padding(0).build()?.parameters().len(), 2) });
    let (x, weight) = (Tensor::ones([1, 3, 4])?, Tensor::ones([3, 2, 3])?);
    let with = |options: ConvTranspose1dOptions<'_>| F::conv_transpose1d_with(&x, &weight, options);
    follow!(advice, with(ConvTranspose1dOptions::new().output_padding(2)) => {
        assert_eq!(with(ConvTranspose1dOptions::new().output_padding(0))?.sizes(), [1, 2, 6])
    });
    follow!(advice, with(ConvTranspose1dOptions::new().padding(4)) => {
        assert_eq!(with(ConvTranspose1dOptions::new().padding(0))?.sizes(), [1, 2, 6])
    });
    let bias = Tensor::ones([2])?.to(DType::F64)?;
    follow!(advice, with(ConvTranspose1dOptions::new().bias(&bias)) => {
        assert_eq!(with(ConvTranspose1dOptions::new().bias(&bias.to(DType::F32)?))?.sizes(), [1, 2, 6])
    });
    let x = Tensor::ones([("N", 2), ("H", 4), ("W", 4), ("C", 3)])?;
    follow!(advice, F::max_pool2d(&x, 2) => { assert_eq!(F::max_pool2d(&x.movedim("C", 1)?, 2)?.sizes(), [2, 3, 2, 2]) }
        { assert_eq!(F::max_pool2d(&x, [("H", 2), ("W", 2)])?.sizes(), [2, 2, 2, 3]); x.movedim("C", 1)?; });
    let x = Tensor::ones([3])?;
    follow!(advice, F::max_pool1d(&x, 2) => { assert_eq!(F::max_pool1d(&x.unsqueeze(0)?, 2)?.sizes(), [1, 1]) });
    Ok(())
}

fn losses(advice: &mut Advice) -> Result<()> {
    let logits = Tensor::ones([("N", 5), ("class", 3)])?;
    let target = Tensor::ones([("N", 5)])?;
    follow!(advice, F::nll_loss(&logits, &target, "class") => { assert!(F::nll_loss(&logits, &target.to(DType::I64)?, "class")?.isfinite()?.item::<bool>()?) });
    let target = Tensor::new([[0], [1], [2], [0], [0]])?;
    follow!(advice, F::cross_entropy(&logits, &target, "class") => { assert!(F::cross_entropy(&logits, &target.squeeze(1)?, "class")?.isfinite()?.item::<bool>()?) });
    let target = Tensor::new([0, 1, 2, 0, 1])?;
    follow!(advice, F::cross_entropy(&logits, &target, "N") => { assert!(F::cross_entropy(&logits, &target, "class")?.isfinite()?.item::<bool>()?) });
    let shares = Tensor::ones([("N", 5), ("class", 3)])?.long()?;
    let target = &shares;
    follow!(advice, F::cross_entropy(&logits, target, "class") => { assert!(F::cross_entropy(&logits, &target.to(DType::F32)?, "class")?.isfinite()?.item::<bool>()?) });
    let (x, weight) = (logits.clone(), Tensor::ones([("classes", 3)])?);
    let target = Tensor::new([0, 1, 2, 0, 1])?;
    let with = |weight: &Tensor| {
        F::cross_entropy_with(&x, &target, "class", CrossEntropyOptions::new().weight(weight))
    };
    follow!(advice, with(&weight) => { assert!(with(&weight.rename([("classes", "class")])?)?.isfinite()?.item::<bool>()?) });
    let (x, target) = (Tensor::ones([("N", 5), ("out", 1)])?, Tensor::ones([("N", 5)])?);
    follow!(advice, F::mse_loss(&x, &target) => { assert_eq!(F::mse_loss(&x.squeeze("out")?, &target)?.item::<f32>()?, 0.) });
    let logits = &x;
    follow!(advice, F::binary_cross_entropy_with_logits(logits, &target) => {
        assert!(F::binary_cross_entropy_with_logits(&logits.squeeze("out")?, &target)?.isfinite()?.item::<bool>()?)
    });
    let (x, target) = (Tensor::ones([("N", 5)])?, Tensor::ones([("M", 5)])?);
    follow!(advice, F::mse_loss(&x, &target) => { assert_eq!(F::mse_loss(&x, &target.rename([("M", "N")])?)?.item::<f32>()?, 0.) });
    let (x, target) = (Tensor::ones([5, 1])?, Tensor::ones([1, 4])?);
    follow!(advice, F::mse_loss(&x, &target) => { assert_eq!(F::mse_loss(&x.expand([5, 4])?, &target)?.item::<f32>()?, 0.) });
    let (x, target) = (Tensor::ones([("N", 5), ("class", 3)])?, Tensor::ones([("N", 5)])?);
    follow!(advice, F::mse_loss(&x, &target) => { assert_eq!(F::mse_loss(&x, &target.align_as(&x)?)?.item::<f32>()?, 0.) });
    follow!(advice, F::binary_cross_entropy(&x, &target) => {
        assert_eq!(F::binary_cross_entropy(&x, &target.align_as(&x)?.expand_as(&x)?)?.item::<f32>()?, 0.)
    });
    let (x, target) = (Tensor::ones([5, 3])?, Tensor::ones([5])?);
    follow!(advice, F::mse_loss(&x, &target) => { assert_eq!(F::mse_loss(&x, &target.unsqueeze(1)?)?.item::<f32>()?, 0.) });
    follow!(advice, F::binary_cross_entropy(&x, &target) => {
        assert_eq!(F::binary_cross_entropy(&x, &target.unsqueeze(1)?.expand_as(&x)?)?.item::<f32>()?, 0.)
    });
    let (anchor, positive) = (Tensor::ones([("N", 5), ("E", 3)])?, Tensor::ones([("M", 5), ("E", 3)])?);
    follow!(advice, F::triplet_margin_loss(&anchor, &positive, &anchor, "E") => {
        let positive = positive.rename([("M", "N")])?;
        assert_eq!(F::triplet_margin_loss(&anchor, &positive, &anchor, "E")?.item::<f32>()?, 1.)
    });
    #[dims(x = "N inn", y = "N in")]
    fn misspelt(x: &Tensor, y: &Tensor) -> Result<Tensor> {
        x.add(y)
    }
    let x = Tensor::ones([("N", 5), ("in", 3)])?;
    follow!(advice, misspelt(&x, &x) => {
        #[dims(x = "N in", y = "N in")]
        fn right(x: &Tensor, y: &Tensor) -> Result<Tensor> {
            x.add(y)
        }
        assert_eq!(right(&x, &x)?.sizes(), [5, 3])
    });
    let (gru, x) = (Gru::new(("E", 3), ("H", 2), "time")?, Tensor::ones([("time", 4), ("E", 3)])?);
    let h0 = Tensor::zeros([("H", 2)])?.to(DType::F64)?;
    let run = |h0: &Tensor| gru.forward_with(&x, GruOptions::new().h0(h0));
    follow!(advice, run(&h0) => { assert_eq!(run(&h0.to(DType::F32)?)?.hn.sizes(), [1, 2]) });
    let (x, target) = (Tensor::ones([2])?, Tensor::ones([2])?.gt(0)?);
    follow!(advice, F::mse_loss(&x, &target) => { assert_eq!(F::mse_loss(&x, &target.to(DType::F32)?)?.item::<f32>()?, 0.) });
    let empty = Tensor::ones([0, 2])?;
    follow!(advice, F::mse_loss(&empty, &empty) => { let x = &empty; if x.numel() > 0 { F::mse_loss(x, x)?; } assert_eq!(x.numel(), 0) }
        { assert_eq!(F::mse_loss_with(&empty, &empty, MseLossOptions::new().reduction(F::Reduction::Sum))?.item::<f32>()?, 0.) });
    Ok(())
}

fn functions(advice: &mut Advice) -> Result<()> {
    let x = Tensor::ones([2, 3])?.long()?;
    follow!(advice, F::dropout_with(&x, 0.5, DropoutOptions::new().training(true)) => { assert_eq!(F::dropout(&x.to(DType::F32)?, 0.5)?.sizes(), [2, 3]) });
    let (x, weight) = (Tensor::ones([2, 3])?, Tensor::ones([("out", 4), ("in", 3)])?);
    let wide = x.to(DType::F64)?;
    {
        let x = &wide;
        follow!(advice, F::linear(x, &weight) => { assert_eq!(F::linear(&x.to(DType::F32)?, &weight)?.sizes(), [2, 4]) });
        let x = Tensor::ones([("in", 3), ("N", 3)])?;
        follow!(advice, F::linear(&x, &weight) => { assert_eq!(F::linear(&x.movedim("in", -1)?, &weight)?.sizes(), [3, 4]) });
        let x = Tensor::ones([("N", 2), ("features", 3)])?;
        follow!(advice, F::linear(&x, &weight) => { assert_eq!(F::linear(&x.rename([("features", "in")])?, &weight)?.sizes(), [2, 4]) });
        let x = Tensor::ones([("out", 2), ("in", 3)])?;
        follow!(advice, F::linear(&x, &weight) => { assert_eq!(F::linear(&x, &weight.rename([("out", "out_out")])?)?.sizes(), [2, 4]) });
    }
    let bias = Tensor::ones([("o", 4)])?;
    let with = |bias: &Tensor| F::linear_with(&x, &weight, LinearOptions::new().bias(bias));
    follow!(advice, with(&bias) => { assert_eq!(with(&bias.rename([("o", "out")])?)?.sizes(), [2, 4]) });
    follow!(advice, F::lp_pool1d(&Tensor::ones([1, 4])?, 0.0, 2) => { assert_eq!(F::lp_pool1d(&Tensor::ones([1, 4])?, 2.0, 2)?.sizes(), [1, 2]) });
    let norm = BatchNorm::new(("C", 3))?;
    let x = Tensor::ones([("N", 1), ("C", 3)])?;
    follow!(advice, norm.forward(&x) => { let model = &norm; model.eval(); assert_eq!(norm.forward(&x)?.sizes(), [1, 3]) });
    let (q, k) =
        (Tensor::ones([("a", 2), ("b", 3), ("embed", 4)])?, Tensor::ones([("time", 5), ("embed", 4)])?);
    let with = |options: AttentionOptions<'_>| F::attention_with(&q, &k, &k, "time", "embed", options);
    follow!(advice, with(AttentionOptions::new().is_causal(true)) => {
        assert_eq!(with(AttentionOptions::new().query_dim("b").is_causal(true))?.sizes(), [2, 3, 4])
    });
    let heads = q.select("a", 0)?.rename(["heads", "embed"])?;
    let with = |options: AttentionOptions<'_>| F::attention_with(&heads, &k, &k, "time", "embed", options);
    follow!(advice, with(AttentionOptions::new().is_causal(true)) => {
        assert_eq!(with(AttentionOptions::new().query_dim("heads").is_causal(true))?.sizes(), [3, 4])
    });
    let (x, grid) =
        (Tensor::ones([("N", 2), ("W", 3), ("H", 4)])?, Tensor::ones([("H", 5), ("W", 6), ("xy", 2)])?);
    follow!(advice, F::grid_sample(&x, &grid) => {
        let options = GridSampleOptions::new().dims(["H", "W"]);
        assert_eq!(F::grid_sample_with(&x, &grid, options)?.sizes(), [2, 6, 5])
    });
    let sizes = [("N", 2), ("C", 1), ("H", 2), ("W", 2)];
    let theta = Tensor::ones([("i", 2), ("N", 2), ("j", 3)])?;
    follow!(advice, F::affine_grid(&theta, sizes) => {
        assert_eq!(F::affine_grid(&theta.movedim("N", 0)?, sizes)?.sizes(), [2, 2, 2, 2])
    });
    let theta = Tensor::ones([("maps", 2), ("i", 2), ("j", 3)])?;
    follow!(advice, F::affine_grid(&theta, sizes) => {
        assert_eq!(F::affine_grid(&theta.rename([("maps", "N")])?, sizes)?.sizes(), [2, 2, 2, 2])
    });
    {
        let (query, value) = (Tensor::ones([2, 3])?, Tensor::ones([2, 3])?.to(DType::F64)?);
        follow!(advice, query.scaled_dot_product_attention(&query, &value) => {
            assert_eq!(query.scaled_dot_product_attention(&query, &value.to(DType::F32)?)?.sizes(), [2, 3])
        });
    }
    let (x, weight) = (Tensor::new([1, 2, 4, 5])?, Tensor::ones([10, 3])?);
    follow!(advice, F::embedding_bag(&x, &weight) => {
        let x = x.unsqueeze(0)?;
        assert_eq!(F::embedding_bag(&x, &weight)?.sizes(), [1, 3])
    });
    let factors = Tensor::ones([4])?;
    let (mean, offsets) = (F::BagMode::Mean, Tensor::new([0])?);
    let per_sample_weights = factors.to(DType::F64)?;
    let bag =
        |options: EmbeddingBagOptions<'_>| F::embedding_bag_with(&x, &weight, options.offsets(&offsets));
    follow!(advice, bag(EmbeddingBagOptions::new().mode(mean).per_sample_weights(&factors)) => {
        assert_eq!(bag(EmbeddingBagOptions::new().mode(F::BagMode::Sum).per_sample_weights(&factors))?.sizes(), [1, 3])
    });
    follow!(advice, bag(EmbeddingBagOptions::new().mode(F::BagMode::Sum).per_sample_weights(&per_sample_weights)) => {
        let narrow = per_sample_weights.to(DType::F32)?;
        assert_eq!(bag(EmbeddingBagOptions::new().mode(F::BagMode::Sum).per_sample_weights(&narrow))?.sizes(), [1, 3])
    });
    let (image, grid) = (Tensor::ones([1, 1, 4, 4])?, Tensor::zeros([1, 2, 2, 2])?.to(DType::F64)?);
    follow!(advice, F::grid_sample(&image, &grid) => { assert_eq!(F::grid_sample(&image, &grid.to(DType::F32)?)?.sizes(), [1, 1, 2, 2]) });
    let (images, grid) = (Tensor::ones([3, 1, 4, 4])?, Tensor::zeros([1, 2, 2, 2])?);
    follow!(advice, F::grid_sample(&images, &grid) => { assert_eq!(F::grid_sample(&images, &grid.expand([3, -1, -1, -1])?)?.sizes(), [3, 1, 2, 2]) });
    let (images, grid) = (images.rename(["N", "C", "H", "W"])?, grid.rename([Some("N"), None, None, None])?);
    follow!(advice, F::grid_sample(&images, &grid) => { assert_eq!(F::grid_sample(&images, &grid.squeeze("N")?)?.sizes(), [3, 1, 2, 2]) });
    let (x, prelu) = (Tensor::ones([2, 3])?, Tensor::ones([3])?.to(DType::F64)?);
    follow!(advice, x.prelu(&prelu) => { let weight = &prelu; assert_eq!(x.prelu(&weight.to(DType::F32)?)?.sizes(), [2, 3]) });
    let image = Tensor::ones([1, 1, 4, 4])?;
    let pool = |options: FractionalMaxPool2dOptions<'_, _>| F::fractional_max_pool2d_with(&image, 2, options);
    follow!(advice, pool(FractionalMaxPool2dOptions::new().output_ratio(2.0)) => {
        assert_eq!(pool(FractionalMaxPool2dOptions::new().output_ratio(0.5))?.sizes(), [1, 1, 2, 2])
    });
    let q = Tensor::ones([("time", 3), ("embed", 4)])?;
    let (hidden, zeros) =
        (Tensor::ones([("time_key", 3)])?.gt(0)?, Tensor::zeros([("time_key", 3)])?.long()?);
    let with = |options: AttentionOptions<'_>| F::attention_with(&q, &q, &q, "time", "embed", options);
    let attn_mask = Tensor::ones([3, 3])?.tril()?;
    follow!(advice, with(AttentionOptions::new().attn_mask(&attn_mask)) => {
        let mask = attn_mask.refine_names(["time", "time_key"])?;
        assert_eq!(with(AttentionOptions::new().attn_mask(&mask))?.sizes(), [3, 4])
    });
    follow!(advice, with(AttentionOptions::new().bias(&hidden)) => { assert_eq!(with(AttentionOptions::new().attn_mask(&hidden))?.sizes(), [3, 4]) });
    follow!(advice, with(AttentionOptions::new().bias(&zeros)) => {
        let bias = &zeros;
        assert_eq!(with(AttentionOptions::new().bias(&bias.to(DType::F32)?))?.sizes(), [3, 4])
    });
    let (seen, added) = (Tensor::ones([("time", 3)])?.gt(0)?, Tensor::ones([("time", 3)])?);
    follow!(advice, with(AttentionOptions::new().attn_mask(&seen)) => {
        let attn_mask = &seen;
        assert_eq!(with(AttentionOptions::new().attn_mask(&attn_mask.rename([("time", "time_key")])?))?.sizes(), [3, 4])
    });
    follow!(advice, with(AttentionOptions::new().bias(&added)) => {
        let bias = &added;
        assert_eq!(with(AttentionOptions::new().bias(&bias.rename([("time", "time_key")])?))?.sizes(), [3, 4])
    });
    let key = Tensor::ones([("embed", 4), ("time", 4)])?;
    let (query, value) = (key.t()?, key.t()?.rename(["time", "value"])?);
    follow!(advice, F::scaled_dot_product_attention(&query, &key, &value) => {
        assert_eq!(F::scaled_dot_product_attention(&query, &key.transpose("time", "embed")?, &value)?.sizes(), [4, 4])
    });
    let mask = Tensor::ones([3, 3])?.long()?;
    let plain = q.rename(None)?;
    let with = |mask: &Tensor| {
        let options = ScaledDotProductAttentionOptions::new().attn_mask(mask);
        F::scaled_dot_product_attention_with(&plain, &plain, &plain, options)
    };
    follow!(advice, with(&mask) => { assert_eq!(with(&mask.to(DType::Bool)?)?.sizes(), [3, 4]) });
    let x = Tensor::new([1, 2, 4, 5])?;
    let weight = Tensor::ones([10, 3])?;
    follow!(advice, F::embedding(&x.to(DType::F32)?, &weight) => { let x = x.to(DType::F32)?; assert_eq!(F::embedding(&x.to(DType::I64)?, &weight)?.sizes(), [4, 3]) });
    Ok(())
}

fn models(advice: &mut Advice) -> Result<()> {
    let model = Sequential::new().then(Linear::new(("in", 3), ("out", 2))?);
    follow!(advice, Linear::builder(3, 2).dtype(DType::I64).build() => { assert_eq!(Linear::builder(3, 2).dtype(DType::F32).build()?.parameters().len(), 2) });
    follow!(advice, model.freeze("0.wieght") => { model.freeze("0.weight")?; assert_eq!(model.parameters().len(), 2) });
    model.freeze("**")?;
    follow!(advice, nn::gradcheck_module(&model, || model.forward(&Tensor::ones([("in", 3)])?)) => {
        model.unfreeze("**")?;
        assert!(model.parameters()[0].requires_grad())
    });
    let model = Sequential::new().then(Linear::new(3, 2)?).then(Gelu::new());
    let x = Tensor::ones([3])?;
    let loss = |x: &Tensor| model.forward(x)?.mul(100.0)?.sin();
    follow!(advice, nn::gradcheck_module(&model, || loss(&x)) => {
        model.to(DType::F64)?;
        let x = x.to(DType::F64)?;
        nn::gradcheck_module(&model, || loss(&x))?;
        assert_eq!(model.parameters().len(), 2)
    });
    let model = Linear::new(3, 2)?;
    parametrize::lora(&model, "weight", 1, 1.0)?;
    follow!(advice, parametrize::lora(&model, "weight", 1, 1.0) => { parametrize::remove(&model, "weight")?; assert_eq!(model.parameters().len(), 2) });
    #[derive(Module)]
    #[module(layer)]
    struct Held {
        inner: Linear,
    }
    impl Held {
        fn forward(&self, x: &Tensor) -> Result<Tensor> {
            self.inner.forward(x)
        }
    }
    let held = Sequential::new().then(Held { inner: Linear::new(3, 2)? });
    follow!(advice, held.deep_copy() => {
        #[derive(Clone)]
        #[derive(Module)]
        #[module(layer)]
        struct Copied {
            inner: Linear,
        }
        impl Copied {
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                self.inner.forward(x)
            }
        }
        let held = Sequential::new().then(Copied { inner: Linear::new(3, 2)? });
        assert_eq!(held.deep_copy()?.parameters().len(), 2)
    });
    let boxed: Box<dyn Layer> = Box::new(Held { inner: Linear::new(3, 2)? });
    follow!(advice, boxed.clone().forward(&Tensor::ones([3])?) => {
        #[derive(Clone)]
        #[derive(Module)]
        struct Copied(Linear);
        assert_eq!(Copied(Linear::new(3, 2)?).parameters().len(), 2)
    });
    let attention = MultiheadAttention::new(("embed", 4), ("heads", 2), "time")?;
    let (x, mask) = (Tensor::ones([("time", 3), ("embed", 4)])?, Tensor::zeros([3, 3])?.long()?);
    let with = |mask: &Tensor| {
        attention.attend_with(&x, &x, &x, nn::MultiheadAttentionOptions::new().attn_mask(mask))
    };
    follow!(advice, with(&mask) => { assert_eq!(with(&mask.to(DType::Bool)?)?.output.sizes(), [3, 4]) });
    let attn_mask = Tensor::ones([("time", 3)])?.lt(0)?;
    follow!(advice, with(&attn_mask) => { assert_eq!(with(&attn_mask.rename([("time", "time_key")])?)?.output.sizes(), [3, 4]) });
    let mut state = model.state_dict();
    state.rename("weight", "kernel")?;
    follow!(advice, model.load_state_dict(&state) => {
        let mut state = state.clone();
        state.rename("kernel", "weight")?;
        model.load_state_dict(&state)?;
        assert_eq!(state.len(), 2)
    });
    Ok(())
}

fn strictly(advice: &mut Advice) -> Result<()> {
    let (x, lengths) = (Tensor::ones([("N", 2), ("time", 3)])?, Tensor::new([3, 2])?);
    follow!(advice, nn::pack_padded_sequence(&x, &lengths, "time") => {
        assert_eq!(nn::pack_padded_sequence(&x, &lengths.refine_names(["N"])?, "time")?.lengths(), [3, 2])
    });
    let layer = Linear::new(("in", 3), ("out", 2))?;
    let x = Tensor::ones([4, 3])?;
    follow!(advice, layer.forward(&x) => { assert_eq!(layer.forward(&x.refine_names(["...", "in"])?)?.sizes(), [4, 2]) });
    let x = Tensor::ones([("N", 4), ("in", 3)])?;
    follow!(advice, Linear::new(3, 2)?.forward(&x) => { assert_eq!(Linear::new(("in", 3), 2)?.forward(&x)?.sizes(), [4, 2]) });
    let (logits, target) = (Tensor::ones([5, 3])?, Tensor::new([0, 1, 2, 0, 1])?);
    let weight = Tensor::ones([("class", 3)])?;
    let with = |weight: &Tensor| {
        F::cross_entropy_with(&logits, &target, 1, CrossEntropyOptions::new().weight(weight))
    };
    follow!(advice, with(&weight) => { assert!(with(&weight.rename(None)?)?.isfinite()?.item::<bool>()?) });
    let logits = Tensor::ones([("N", 5), ("class", 3)])?;
    follow!(advice, F::cross_entropy(&logits, &target, "class") => {
        assert!(F::cross_entropy(&logits, &target.refine_names(["N"])?, "class")?.isfinite()?.item::<bool>()?)
    });
    Ok(())
}
