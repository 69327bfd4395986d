//! The tables of all modules, functions, optimizers and schedules in `docs/migration.md`: the calls on the
//! right are compiled here, and the page is generated from them (`NAMEGRAD_BLESS=1`).

use crate::layers::{layers_of, sources};
use namegrad::nn::*;
use namegrad::optim::*;
use namegrad::prelude::*;
use namegrad_tests::list::{OPTIMIZERS as OPTIMIZERS_HERE, SCHEDULES as SCHEDULES_HERE};
use std::collections::BTreeSet;

/// A row: PyTorch's call, ours, and a function that runs ours, unless it needs tensors.
type Row = (&'static str, &'static str, Option<fn() -> Result<()>>);

/// Rows; the names of tensors that a call takes are in brackets, and it is only compiled.
macro_rules! rows {
    ($($torch:literal $([$($x:ident)*])? => $ours:expr;)*) => {
        &[$(($torch, stringify!($ours), rows!(@run $([$($x)*])? $ours))),*]
    };
    (@run [$($x:ident)*] $ours:expr) => {{
        #[allow(dead_code)]
        fn compiled($($x: Tensor),*) -> Result<()> {
            let _ = $ours;
            Ok(())
        }
        None
    }};
    (@run $ours:expr) => {
        Some(|| {
            let _ = $ours;
            Ok(())
        })
    };
}

/// Modules of `torch.nn`.
const MODULES: &[Row] = rows! {
    "nn.Linear(3, 8)" => Linear::new(("C", 3), ("features", 8))?;
    "nn.Bilinear(3, 4, 8)" => Bilinear::new(("C", 3), ("D", 4), ("features", 8))?;
    "nn.Identity()" => Identity;
    "nn.Sequential(nn.Linear(3, 8), nn.ReLU())" => Sequential::new().then(Linear::new(("C", 3), ("features", 8))?).then(Relu);
    "nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])" => (0..3).map(|_| Linear::new(("C", 8), ("C", 8))).collect::<Result<ModuleList<_>>>()?;
    "nn.ModuleDict({\"head\": nn.Linear(8, 2)})" => { let mut heads = ModuleDict::new(); heads.insert("head", Linear::new(("C", 8), ("class", 2))?)?; heads };
    "nn.Embedding(100, 8, padding_idx=0)" => Embedding::builder(("vocab", 100), ("embed", 8)).padding_idx(0).build()?;
    "nn.EmbeddingBag(100, 8, mode=\"sum\")" => EmbeddingBag::builder(("vocab", 100), ("embed", 8)).mode(F::BagMode::Sum).dim("word").build()?;
    "nn.Flatten()" => Flatten::new(["C", "H", "W"], "features")?;
    "nn.Unflatten(1, (3, 4))" => Unflatten::new("features", [("C", 3), ("W", 4)])?;
    "nn.Conv1d(3, 8, 3)" => Conv1d::new(("C", 3), ("features", 8), [("L", 3)])?;
    "nn.Conv2d(3, 8, 3, stride=2, padding=1)" => Conv2d::builder(("C", 3), ("features", 8), [("H", 3), ("W", 3)]).stride(2).padding(1).build()?;
    "nn.Conv2d(3, 8, 3, stride=(2, 1))" => Conv2d::builder(("C", 3), ("features", 8), [("H", 3), ("W", 3)]).stride(("H", 2)).build()?;
    "nn.Conv2d(8, 8, 3, padding=\"same\", groups=8)" => Conv2d::builder(("C", 8), ("C", 8), [("H", 3), ("W", 3)]).padding(Padding::Same).groups(8).build()?;
    "nn.Conv3d(3, 8, 3)" => Conv3d::new(("C", 3), ("features", 8), [("D", 3), ("H", 3), ("W", 3)])?;
    "nn.ConvTranspose1d(3, 8, 3)" => ConvTranspose1d::new(("C", 3), ("features", 8), [("L", 3)])?;
    "nn.ConvTranspose2d(3, 8, 4, stride=2)" => ConvTranspose2d::builder(("C", 3), ("features", 8), [("H", 4), ("W", 4)]).stride(2).build()?;
    "nn.ConvTranspose3d(3, 8, 3)" => ConvTranspose3d::new(("C", 3), ("features", 8), [("D", 3), ("H", 3), ("W", 3)])?;
    "nn.Unfold(3)" => Unfold::builder("C", [("H", 3), ("W", 3)]).name("window").build()?;
    "nn.Fold((4, 6), 2)" => Fold::builder("C", [("H", 4), ("W", 6)], [2, 2]).windows("window").build()?;
    "nn.MaxPool1d(2)" => MaxPool1d::new([("L", 2)])?;
    "nn.MaxPool2d(3, stride=2, padding=1)" => MaxPool2d::builder([("H", 3), ("W", 3)]).stride(2).padding(1).build()?;
    "nn.MaxPool3d(2)" => MaxPool3d::new([("D", 2), ("H", 2), ("W", 2)])?;
    "nn.MaxUnpool1d(2)" => MaxUnpool1d::new([("L", 2)])?;
    "nn.MaxUnpool2d(2)" => MaxUnpool2d::new([("H", 2), ("W", 2)])?;
    "nn.MaxUnpool3d(2)" => MaxUnpool3d::new([("D", 2), ("H", 2), ("W", 2)])?;
    "nn.AvgPool1d(2)" => AvgPool1d::new([("L", 2)])?;
    "nn.AvgPool2d(2)" => AvgPool2d::new([("H", 2), ("W", 2)])?;
    "nn.AvgPool3d(2)" => AvgPool3d::new([("D", 2), ("H", 2), ("W", 2)])?;
    "nn.FractionalMaxPool2d(2, output_ratio=0.5)" => FractionalMaxPool2d::to_ratio([("H", 2), ("W", 2)], 0.5)?;
    "nn.FractionalMaxPool3d(2, output_size=3)" => FractionalMaxPool3d::to_size([("D", 2), ("H", 2), ("W", 2)], 3)?;
    "nn.LPPool1d(2, 3)" => LpPool1d::new(2.0, [("L", 3)])?;
    "nn.LPPool2d(2, 3)" => LpPool2d::new(2.0, [("H", 3), ("W", 3)])?;
    "nn.LPPool3d(2, 3)" => LpPool3d::new(2.0, [("D", 3), ("H", 3), ("W", 3)])?;
    "nn.AdaptiveMaxPool1d(1)" => AdaptiveMaxPool1d::new([("L", 1)])?;
    "nn.AdaptiveMaxPool2d(1)" => AdaptiveMaxPool2d::new([("H", 1), ("W", 1)])?;
    "nn.AdaptiveMaxPool3d(1)" => AdaptiveMaxPool3d::new([("D", 1), ("H", 1), ("W", 1)])?;
    "nn.AdaptiveAvgPool1d(1)" => AdaptiveAvgPool1d::new([("L", 1)])?;
    "nn.AdaptiveAvgPool2d(1)" => AdaptiveAvgPool2d::new([("H", 1), ("W", 1)])?;
    "nn.AdaptiveAvgPool3d(1)" => AdaptiveAvgPool3d::new([("D", 1), ("H", 1), ("W", 1)])?;
    "nn.ReflectionPad1d(1)`, `2d`, `3d" => ReflectionPad::new([("L", 1)]);
    "nn.ReplicationPad1d(1)`, `2d`, `3d" => ReplicationPad::new([("L", 1)]);
    "nn.ZeroPad1d(1)`, `2d`, `3d" => ZeroPad::new([("L", 1)]);
    "nn.ConstantPad1d(1, 0.5)`, `2d`, `3d" => ConstantPad::new([("L", 1)], 0.5);
    "nn.CircularPad1d(1)`, `2d`, `3d" => CircularPad::new([("L", 1)]);
    "nn.Upsample((8, 6))`, `nn.UpsamplingNearest2d((8, 6))" => Upsample::new([("H", 8), ("W", 6)]);
    "nn.PixelShuffle(2)" => PixelShuffle::new(2, "C", ["H", "W"])?;
    "nn.PixelUnshuffle(2)" => PixelUnshuffle::new(2, "C", ["H", "W"])?;
    "nn.ChannelShuffle(2)" => ChannelShuffle::new(2, "C")?;
    "nn.BatchNorm1d(8)`, `nn.BatchNorm2d(8)`, `nn.BatchNorm3d(8)" => BatchNorm::new(("C", 8))?;
    "nn.BatchNorm2d(8, eps=1e-3, momentum=0.01)" => BatchNorm::builder(("C", 8)).eps(1e-3).momentum(0.01).build()?;
    "nn.LayerNorm(8)" => LayerNorm::new(("C", 8))?;
    "nn.RMSNorm(8)" => RmsNorm::new(("C", 8))?;
    "nn.GroupNorm(2, 8)" => GroupNorm::new(2, ("C", 8), ["H", "W"])?;
    "nn.InstanceNorm1d(8)`, `nn.InstanceNorm2d(8)`, `nn.InstanceNorm3d(8)" => InstanceNorm::new(("C", 8), ["H", "W"])?;
    "nn.LocalResponseNorm(3)" => LocalResponseNorm::new(3, "C")?;
    "nn.RNN(3, 8, batch_first=True)" => Rnn::new(("embed", 3), ("hidden", 8), "time")?;
    "nn.GRU(3, 8, batch_first=True)" => Gru::new(("embed", 3), ("hidden", 8), "time")?;
    "nn.LSTM(3, 8, num_layers=2, batch_first=True)" => Lstm::builder(("embed", 3), ("hidden", 8), "time").num_layers(2).build()?;
    "nn.RNNCell(3, 8)" => RnnCell::new(("embed", 3), ("hidden", 8))?;
    "nn.GRUCell(3, 8)" => GruCell::new(("embed", 3), ("hidden", 8))?;
    "nn.LSTMCell(3, 8)" => LstmCell::new(("embed", 3), ("hidden", 8))?;
    "nn.MultiheadAttention(64, 4, kdim=32, vdim=32)" => MultiheadAttention::builder(("embed", 64), ("heads", 4), "target").key_seq("source").kdim(32).vdim(32).build()?;
    "nn.TransformerEncoderLayer(64, 4)" => TransformerEncoderLayer::new(("embed", 64), ("heads", 4), "source")?;
    "nn.TransformerDecoderLayer(64, 4)" => TransformerDecoderLayer::builder(("embed", 64), ("heads", 4), "target").memory_seq("source").build()?;
    "nn.TransformerEncoder(layer, 2)" => TransformerEncoder::new(TransformerEncoderLayer::builder(("embed", 64), ("heads", 4), "source"), 2)?;
    "nn.TransformerDecoder(layer, 2)" => TransformerDecoder::new(TransformerDecoderLayer::builder(("embed", 64), ("heads", 4), "target").memory_seq("source"), 2)?;
    "nn.Transformer(64, 4, num_encoder_layers=2)" => Transformer::builder(("embed", 64), ("heads", 4), "target").source_seq("source").num_encoder_layers(2).build()?;
    "nn.Dropout(0.5)" => Dropout::new(0.5)?;
    "nn.Dropout1d(0.5)" => Dropout1d::new(0.5, "L")?;
    "nn.Dropout2d(0.5)" => Dropout2d::new(0.5, ["H", "W"])?;
    "nn.Dropout3d(0.5)" => Dropout3d::new(0.5, ["D", "H", "W"])?;
    "nn.AlphaDropout(0.5)" => AlphaDropout::new(0.5)?;
    "nn.FeatureAlphaDropout(0.5)" => FeatureAlphaDropout::new(0.5, ["H", "W"])?;
    "nn.ReLU()" => Relu;
    "nn.ReLU6()" => Relu6;
    "nn.Sigmoid()" => Sigmoid;
    "nn.Tanh()" => Tanh;
    "nn.SiLU()" => Silu;
    "nn.Mish()" => Mish;
    "nn.SELU()" => Selu;
    "nn.Hardswish()" => Hardswish;
    "nn.Hardsigmoid()" => Hardsigmoid;
    "nn.LogSigmoid()" => LogSigmoid;
    "nn.Softsign()" => Softsign;
    "nn.Tanhshrink()" => Tanhshrink;
    "nn.GELU(approximate=\"tanh\")" => Gelu::builder().approximate(F::Approximate::Tanh).build();
    "nn.ELU()" => Elu::new();
    "nn.CELU()" => Celu::new();
    "nn.LeakyReLU(0.1)" => LeakyRelu::builder().negative_slope(0.1).build();
    "nn.PReLU(8)" => Prelu::new(("C", 8))?;
    "nn.RReLU()" => Rrelu::new();
    "nn.Softplus()" => Softplus::new();
    "nn.Hardtanh(-2, 2)" => Hardtanh::builder().min_val(-2.0).max_val(2.0).build();
    "nn.Softshrink()" => Softshrink::new();
    "nn.Hardshrink()" => Hardshrink::new();
    "nn.Threshold(0.1, 20)" => Threshold::new(0.1, 20);
    "nn.Softmax(1)`, `nn.Softmax2d()" => Softmax::new("C");
    "nn.LogSoftmax(1)" => LogSoftmax::new("C");
    "nn.Softmin(1)" => Softmin::new("C");
    "nn.GLU(1)" => Glu::new("C");
    "nn.AdaptiveLogSoftmaxWithLoss(8, 100, [10, 50])" => AdaptiveLogSoftmaxWithLoss::new(("C", 8), ("class", 100), [10, 50])?;
    "nn.PairwiseDistance()" => PairwiseDistance::new("C");
    "nn.CosineSimilarity()" => CosineSimilarity::new("C");
    "nn.MSELoss()" => MseLoss::new();
    "nn.L1Loss()" => L1Loss::new();
    "nn.SmoothL1Loss()" => SmoothL1Loss::new();
    "nn.HuberLoss()" => HuberLoss::new();
    "nn.PoissonNLLLoss()" => PoissonNllLoss::new();
    "nn.GaussianNLLLoss()" => GaussianNllLoss::new();
    "nn.BCELoss()" => BceLoss::new();
    "nn.BCEWithLogitsLoss()" => BceWithLogitsLoss::new();
    "nn.KLDivLoss()" => KlDivLoss::new();
    "nn.CrossEntropyLoss(ignore_index=-1)" => CrossEntropyLoss::builder("class").ignore_index(-1).build();
    "nn.LinearCrossEntropyLoss(8, 100)" => LinearCrossEntropyLoss::new(("C", 8), ("class", 100))?;
    "nn.NLLLoss()" => NllLoss::new("class");
    "nn.CTCLoss()" => CtcLoss::new("time", "class");
    "nn.MarginRankingLoss()" => MarginRankingLoss::new();
    "nn.HingeEmbeddingLoss()" => HingeEmbeddingLoss::new();
    "nn.SoftMarginLoss()" => SoftMarginLoss::new();
    "nn.MultiLabelMarginLoss()" => MultilabelMarginLoss::new("class");
    "nn.MultiLabelSoftMarginLoss()" => MultilabelSoftMarginLoss::new("class");
    "nn.MultiMarginLoss()" => MultiMarginLoss::new("class");
    "nn.CosineEmbeddingLoss()" => CosineEmbeddingLoss::new("C");
    "nn.TripletMarginLoss()" => TripletMarginLoss::new("C");
    "nn.TripletMarginWithDistanceLoss()" => TripletMarginWithDistanceLoss::new(|a: &Tensor, b: &Tensor| F::pairwise_distance(a, b, "C"));
};

/// Functions of `torch.nn.functional`, with the tensors that they take.
const FUNCTIONS: &[Row] = rows! {
    "F.linear(x, w, b)" [x w b] => F::linear_with(&x, &w, LinearOptions::new().bias(&b))?;
    "F.bilinear(x, y, w)" [x y w] => F::bilinear(&x, &y, &w)?;
    "F.embedding(index, w)" [index w] => F::embedding(&index, &w)?;
    "F.embedding_bag(index, w, mode=\"sum\")" [index w] => F::embedding_bag_with(&index, &w, EmbeddingBagOptions::new().mode(F::BagMode::Sum))?;
    "torch.embedding_renorm_(w, index, 1.0, 2.0)" [index w] => F::embedding_renorm(&index, &w, 1.0)?;
    "F.one_hot(index, 10)" [index] => index.one_hot_with(OneHotOptions::new().num_classes(10).name("class"))?;
    "F.conv1d(x, w)" [x w] => F::conv1d(&x, &w)?;
    "F.conv2d(x, w, b, stride=2)" [x w b] => F::conv2d_with(&x, &w, Conv2dOptions::new().bias(&b).stride(2))?;
    "F.conv3d(x, w)" [x w] => F::conv3d(&x, &w)?;
    "F.conv_transpose1d(x, w)" [x w] => F::conv_transpose1d(&x, &w)?;
    "F.conv_transpose2d(x, w)" [x w] => F::conv_transpose2d(&x, &w)?;
    "F.conv_transpose3d(x, w)" [x w] => F::conv_transpose3d(&x, &w)?;
    "F.unfold(x, 3)" [x] => F::unfold(&x, 3, 1, 0, 1)?;
    "F.fold(x, (4, 6), 2)" [x] => F::fold(&x, [4, 6], 2, 1, 0, 1)?;
    "F.pad(x, (1, 1), mode=\"reflect\")" [x] => F::pad_with(&x, [("W", (1, 1))], PadOptions::new().mode(F::PadMode::Reflect))?;
    "F.interpolate(x, (8, 6))" [x] => F::interpolate(&x, [("H", 8), ("W", 6)])?;
    "F.grid_sample(x, grid)" [x grid] => F::grid_sample(&x, &grid)?;
    "F.affine_grid(theta, (4, 3, 8, 6))" [theta] => F::affine_grid(&theta, [("N", 4), ("C", 3), ("H", 8), ("W", 6)])?;
    "F.pixel_shuffle(x, 2)" [x] => F::pixel_shuffle(&x, 2, "C", ["H", "W"])?;
    "F.pixel_unshuffle(x, 2)" [x] => F::pixel_unshuffle(&x, 2, "C", ["H", "W"])?;
    "F.channel_shuffle(x, 2)" [x] => F::channel_shuffle(&x, 2, "C")?;
    "F.max_pool1d(x, 2)" [x] => F::max_pool1d(&x, ("L", 2))?;
    "F.max_pool2d(x, 2, stride=1)" [x] => F::max_pool2d_with(&x, [("H", 2), ("W", 2)], MaxPool2dOptions::new().stride(1))?;
    "F.max_pool3d(x, 2)" [x] => F::max_pool3d(&x, [("D", 2), ("H", 2), ("W", 2)])?;
    "F.max_unpool1d(x, indices, 2)" [x indices] => F::max_unpool1d(&x, &indices, ("L", 2))?;
    "F.max_unpool2d(x, indices, 2)" [x indices] => F::max_unpool2d(&x, &indices, [("H", 2), ("W", 2)])?;
    "F.max_unpool3d(x, indices, 2)" [x indices] => F::max_unpool3d(&x, &indices, [("D", 2), ("H", 2), ("W", 2)])?;
    "F.avg_pool1d(x, 2)" [x] => F::avg_pool1d(&x, ("L", 2))?;
    "F.avg_pool2d(x, 2)" [x] => F::avg_pool2d(&x, [("H", 2), ("W", 2)])?;
    "F.avg_pool3d(x, 2)" [x] => F::avg_pool3d(&x, [("D", 2), ("H", 2), ("W", 2)])?;
    "F.lp_pool1d(x, 2, 3)" [x] => F::lp_pool1d(&x, 2.0, ("L", 3))?;
    "F.lp_pool2d(x, 2, 3)" [x] => F::lp_pool2d(&x, 2.0, [("H", 3), ("W", 3)])?;
    "F.lp_pool3d(x, 2, 3)" [x] => F::lp_pool3d(&x, 2.0, [("D", 3), ("H", 3), ("W", 3)])?;
    "F.fractional_max_pool2d(x, 2, output_ratio=0.5)" [x] => F::fractional_max_pool2d_with(&x, [("H", 2), ("W", 2)], FractionalMaxPool2dOptions::new().output_ratio([0.5, 0.5]))?;
    "F.fractional_max_pool3d(x, 2, output_size=3)" [x] => F::fractional_max_pool3d_with(&x, [("D", 2), ("H", 2), ("W", 2)], FractionalMaxPool3dOptions::new().output_size([3, 3, 3]))?;
    "F.adaptive_max_pool1d(x, 1)" [x] => F::adaptive_max_pool1d(&x, ("L", 1))?;
    "F.adaptive_max_pool2d(x, 1)" [x] => F::adaptive_max_pool2d(&x, [("H", 1), ("W", 1)])?;
    "F.adaptive_max_pool3d(x, 1)" [x] => F::adaptive_max_pool3d(&x, [("D", 1), ("H", 1), ("W", 1)])?;
    "F.adaptive_avg_pool1d(x, 1)" [x] => F::adaptive_avg_pool1d(&x, ("L", 1))?;
    "F.adaptive_avg_pool2d(x, 1)" [x] => F::adaptive_avg_pool2d(&x, [("H", 1), ("W", 1)])?;
    "F.adaptive_avg_pool3d(x, 1)" [x] => F::adaptive_avg_pool3d(&x, [("D", 1), ("H", 1), ("W", 1)])?;
    "F.batch_norm(x, mean, var, training=True)" [x mean var] => F::batch_norm_with(&x, "C", BatchNormOptions::new().running_mean(&mean).running_var(&var).training(true))?;
    "F.instance_norm(x)" [x] => F::instance_norm(&x, "C", ["H", "W"])?;
    "F.group_norm(x, 2)" [x] => F::group_norm(&x, 2, "C", ["H", "W"])?;
    "F.layer_norm(x, (8,))" [x] => x.layer_norm("C")?;
    "F.rms_norm(x, (8,))" [x] => x.rms_norm("C")?;
    "F.local_response_norm(x, 3)" [x] => F::local_response_norm(&x, 3, "C")?;
    "F.normalize(x)" [x] => F::normalize(&x, "C")?;
    "F.dropout(x, 0.5, training=self.training)" [x] => F::dropout_with(&x, 0.5, DropoutOptions::new().training(false))?;
    "F.dropout1d(x, 0.5)" [x] => F::dropout1d(&x, 0.5, "L")?;
    "F.dropout2d(x, 0.5)" [x] => F::dropout2d(&x, 0.5, ["H", "W"])?;
    "F.dropout3d(x, 0.5)" [x] => F::dropout3d(&x, 0.5, ["D", "H", "W"])?;
    "F.alpha_dropout(x, 0.5)" [x] => F::alpha_dropout(&x, 0.5)?;
    "F.feature_alpha_dropout(x, 0.5)" [x] => F::feature_alpha_dropout(&x, 0.5, ["H", "W"])?;
    "F.relu(x)" [x] => x.relu()?;
    "F.relu6(x)" [x] => F::relu6(&x)?;
    "F.elu(x, 0.5)" [x] => x.elu_with(EluOptions::new().alpha(0.5))?;
    "F.selu(x)" [x] => x.selu()?;
    "F.celu(x)" [x] => x.celu()?;
    "F.leaky_relu(x)" [x] => x.leaky_relu()?;
    "F.prelu(x, w)" [x w] => F::prelu(&x, &w)?;
    "F.rrelu(x)" [x] => F::rrelu(&x)?;
    "F.gelu(x)" [x] => F::gelu(&x)?;
    "F.silu(x)" [x] => x.silu()?;
    "F.mish(x)" [x] => x.mish()?;
    "F.softplus(x)" [x] => x.softplus()?;
    "F.softsign(x)" [x] => F::softsign(&x)?;
    "F.tanhshrink(x)" [x] => F::tanhshrink(&x)?;
    "F.softshrink(x)" [x] => F::softshrink(&x)?;
    "F.hardshrink(x)" [x] => F::hardshrink(&x)?;
    "F.hardtanh(x)" [x] => x.hardtanh()?;
    "F.hardswish(x)" [x] => x.hardswish()?;
    "F.hardsigmoid(x)" [x] => x.hardsigmoid()?;
    "F.sigmoid(x)" [x] => x.sigmoid()?;
    "F.logsigmoid(x)" [x] => x.logsigmoid()?;
    "F.tanh(x)" [x] => x.tanh()?;
    "F.threshold(x, 0.1, 20)" [x] => x.threshold(0.1, 20)?;
    "F.glu(x)" [x] => F::glu(&x, "C")?;
    "F.softmax(x, 1)" [x] => x.softmax("C")?;
    "F.log_softmax(x, 1)" [x] => x.log_softmax("C")?;
    "F.softmin(x, 1)" [x] => F::softmin(&x, "C")?;
    "F.gumbel_softmax(x, hard=True)" [x] => F::gumbel_softmax_with(&x, "C", GumbelSoftmaxOptions::new().hard(true))?;
    "F.scaled_dot_product_attention(q, k, v)" [q k v] => F::attention(&q, &k, &v, "time", "embed")?;
    "F.cosine_similarity(x, y)" [x y] => F::cosine_similarity(&x, &y, "C")?;
    "F.pairwise_distance(x, y)" [x y] => F::pairwise_distance(&x, &y, "C")?;
    "F.pdist(x)" [x] => F::pdist(&x, "C")?;
    "F.cross_entropy(x, target)" [x target] => F::cross_entropy(&x, &target, "class")?;
    "F.linear_cross_entropy(x, w, target)" [x w target] => F::linear_cross_entropy(&x, &w, &target)?;
    "F.nll_loss(x, target)" [x target] => F::nll_loss(&x, &target, "class")?;
    "F.ctc_loss(x, targets, lengths, target_lengths)" [x targets lengths target_lengths] => F::ctc_loss(&x, &targets, &lengths, &target_lengths, "time", "class")?;
    "F.binary_cross_entropy(x, target)" [x target] => F::binary_cross_entropy(&x, &target)?;
    "F.binary_cross_entropy_with_logits(x, target, pos_weight=w)" [x target w] => F::binary_cross_entropy_with_logits_with(&x, &target, BinaryCrossEntropyWithLogitsOptions::new().pos_weight(&w))?;
    "F.kl_div(x, target, reduction=\"batchmean\")" [x target] => F::kl_div_with(&x, &target, KlDivOptions::new().reduction(F::KlReduction::BatchMean))?;
    "F.mse_loss(x, target)" [x target] => F::mse_loss(&x, &target)?;
    "F.l1_loss(x, target)" [x target] => F::l1_loss(&x, &target)?;
    "F.smooth_l1_loss(x, target)" [x target] => F::smooth_l1_loss(&x, &target)?;
    "F.huber_loss(x, target)" [x target] => F::huber_loss(&x, &target)?;
    "F.poisson_nll_loss(x, target)" [x target] => F::poisson_nll_loss(&x, &target)?;
    "F.gaussian_nll_loss(x, target, var)" [x target var] => F::gaussian_nll_loss(&x, &target, &var)?;
    "F.margin_ranking_loss(x, y, target)" [x y target] => F::margin_ranking_loss(&x, &y, &target)?;
    "F.hinge_embedding_loss(x, target)" [x target] => F::hinge_embedding_loss(&x, &target)?;
    "F.soft_margin_loss(x, target)" [x target] => F::soft_margin_loss(&x, &target)?;
    "F.multilabel_margin_loss(x, target)" [x target] => F::multilabel_margin_loss(&x, &target, "class")?;
    "F.multilabel_soft_margin_loss(x, target)" [x target] => F::multilabel_soft_margin_loss(&x, &target, "class")?;
    "F.multi_margin_loss(x, target)" [x target] => F::multi_margin_loss(&x, &target, "class")?;
    "F.cosine_embedding_loss(x, y, target)" [x y target] => F::cosine_embedding_loss(&x, &y, &target, "C")?;
    "F.triplet_margin_loss(x, near, far)" [x near far] => F::triplet_margin_loss(&x, &near, &far, "C")?;
    "F.triplet_margin_with_distance_loss(x, near, far)" [x near far] => F::triplet_margin_with_distance_loss(&x, &near, &far, |a, b| F::pairwise_distance(a, b, "C"), Default::default())?;
};

/// Optimizers of `torch.optim`.
const OPTIMIZERS: &[Row] = rows! {
    "optim.SGD(p, 0.1, momentum=0.9)" => Sgd::builder(net().parameters()).lr(0.1).momentum(0.9).build()?;
    "optim.ASGD(p)" => Asgd::new(net().parameters())?;
    "optim.Adam(p, 1e-3)" => Adam::builder(net().parameters()).lr(1e-3).build()?;
    "optim.AdamW(p, weight_decay=0.1)" => AdamW::builder(net().parameters()).weight_decay(0.1).build()?;
    "optim.NAdam(p)" => NAdam::new(net().parameters())?;
    "optim.RAdam(p)" => RAdam::new(net().parameters())?;
    "optim.Adamax(p)" => Adamax::new(net().parameters())?;
    "optim.Adagrad(p)" => Adagrad::new(net().parameters())?;
    "optim.Adadelta(p)" => Adadelta::new(net().parameters())?;
    "optim.RMSprop(p)" => RmsProp::new(net().parameters())?;
    "optim.Rprop(p)" => Rprop::new(net().parameters())?;
    "optim.Adafactor(p)" => Adafactor::new(net().parameters())?;
    "optim.Muon(p)" => Muon::new(net().parameters())?;
    "optim.LBFGS(p)" => Lbfgs::new(net().parameters())?;
};

/// Schedules of `torch.optim.lr_scheduler`, without the optimizer.
const SCHEDULES: &[Row] = rows! {
    "StepLR(30, gamma=0.5)" => schedule::StepDecay::new(30).gamma(0.5);
    "MultiStepLR([30, 80])" => schedule::MultiStep::new([30, 80]);
    "ExponentialLR(0.99)" => schedule::Exponential::new(0.99);
    "LinearLR(0.1, total_iters=5)" => schedule::LinearRamp::new(5).start_factor(0.1);
    "ConstantLR(0.1, 5)" => schedule::Constant::new(5).factor(0.1);
    "PolynomialLR(100)" => schedule::Polynomial::new(100);
    "CosineAnnealingLR(1000)" => schedule::Cosine::new(1000);
    "CosineAnnealingWarmRestarts(10)" => schedule::CosineRestarts::new(10);
    "OneCycleLR(0.1, total_steps=1000)" => schedule::OneCycle::new(0.1, 1000);
    "CyclicLR(0.01, 0.1)" => schedule::Cyclic::new(0.01, 0.1);
    "SWALR(0.05)" => schedule::SwaLr::new(0.05);
    "LambdaLR(lambda step: 1 / (1 + step))" => schedule::Lambda::new(|step| 1.0 / (1.0 + step));
    "MultiplicativeLR(lambda step: 0.9)" => schedule::Multiplicative::new(|_| 0.9);
    "SequentialLR([warmup, cosine], [5])" => schedule::Sequence::new(schedule::LinearRamp::new(5)).then(5, schedule::Cosine::new(1000));
    "ChainedScheduler([constant, exponential])" => schedule::Chained::new(schedule::Constant::new(5)).with(schedule::Exponential::new(0.9));
    "ReduceLROnPlateau(patience=5)" => schedule::ReduceOnPlateau::builder().patience(5).build(&Sgd::new(net().parameters())?)?;
};

fn net() -> Linear {
    Linear::builder(("in", 3), ("out", 2)).bias(false).build().expect("small")
}

/// The headings of the tables, with their rows.
const TABLES: [(&str, &[Row]); 4] = [
    ("Modules of `torch.nn`, in `namegrad::nn` and in the prelude", MODULES),
    ("Functions of `torch.nn.functional`, in `namegrad::nn::functional`: `F` in the prelude", FUNCTIONS),
    ("Optimizers of `torch.optim`, in `namegrad::optim` and in the prelude", OPTIMIZERS),
    ("Schedules of `torch.optim.lr_scheduler`, in `namegrad::optim::schedule`", SCHEDULES),
];

/// PyTorch's calls and ours.
pub(crate) fn calls() -> impl Iterator<Item = (&'static str, String)> {
    TABLES.iter().flat_map(|(_, rows)| *rows).map(|(torch, ours, _)| (*torch, one_line(ours)))
}

/// The end of the page, from here on.
const START: &str = "## Everything by its name in PyTorch\n";

fn page() -> String {
    let mut text = START.to_string() + "
These tables have a row for every module, function, optimizer and schedule that both have. Calls with
options that are not shown are on the page of the type. [operators.md](operators.md) lists the methods of tensors by
their names in PyTorch.
";
    for (heading, rows) in TABLES {
        text += &format!("\n### {heading}\n\n| PyTorch | here |\n| --- | --- |\n");
        for (torch, ours, _) in rows {
            text += &format!("| `{torch}` | `{}` |\n", one_line(ours).replace('|', "\\|"));
        }
    }
    text
}

/// An expression in one line, as it is written.
fn one_line(code: &str) -> String {
    let words: Vec<&str> = code.split_whitespace().collect();
    words.join(" ").replace("( ", "(").replace(" .", ".").replace(",)", ")")
}

#[test]
fn the_page_has_the_calls_of_this_file() -> Result<()> {
    let path = namegrad_tests::root().join("docs/migration.md");
    let old = std::fs::read_to_string(&path).unwrap();
    let (before, _) = old.split_once(START).unwrap_or((&old, ""));
    let new = format!("{}\n\n{}", before.trim_end(), page());
    if std::env::var_os("NAMEGRAD_BLESS").is_some() {
        std::fs::write(&path, &new).unwrap();
    } else {
        assert!(old == new, "docs/migration.md is old: run this test with NAMEGRAD_BLESS=1");
    }
    for (torch, _, run) in TABLES.iter().flat_map(|(_, rows)| *rows) {
        run.map_or(Ok(()), |run| run()).unwrap_or_else(|error| panic!("{torch}: {error}"));
    }
    Ok(())
}

/// Layers, functions and optimizers that PyTorch does not have.
const OWN: &[&str] = &["Hooked", "Lambda", "Residual", "RotaryEmbedding", "Lion", "Lamb", "F::sample"];

#[test]
fn the_tables_are_complete() {
    let page = page();
    let mut missing: BTreeSet<String> = BTreeSet::new();
    let mut look = |name: &str, forms: &[&str]| {
        let is_there = forms.iter().any(|after| page.contains(&format!("{name}{after}")));
        if !is_there && !OWN.contains(&name) {
            missing.insert(name.to_string());
        }
    };
    for path in sources(&["layers", "functional"]) {
        for layer in layers_of(&std::fs::read_to_string(path).unwrap()) {
            look(&layer, &["::", "`", "<", "1d::", "2d::"]);
        }
    }
    for op in F::OPS.iter().flat_map(|table| *table) {
        look(&op.info.name.replace("nn.", "F::"), &["(", "_with("]);
    }
    for optimizer in &OPTIMIZERS_HERE {
        look(optimizer.name(), &["::"]);
    }
    for (torch, _) in SCHEDULES_HERE.iter().filter(|(torch, _)| !torch.is_empty()) {
        look(torch, &["("]);
    }
    assert!(missing.is_empty(), "no row in tests/nn/equivalents.rs: {missing:?}");
}
