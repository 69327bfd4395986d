//! Every layer, from one table: dims in any order, further dims, no names, copies. A new layer is one line of
//! [`rows`].

use namegrad::autograd::observe;
use namegrad::nn::{self, *};
use namegrad::prelude::*;
use namegrad_tests::list::{OPTIMIZERS, SCHEDULES};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::slice::from_ref;
use std::sync::Arc;

type Call = Box<dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>>;

/// A layer that is made, and its forward pass.
struct Made {
    module: Arc<dyn Module>,
    call: Call,
}

/// A layer with its inputs.
struct Row {
    /// The type of the layer.
    name: &'static str,
    /// In the order of dims that the layer without names takes.
    inputs: Vec<Tensor>,
    /// The layer made with names, and without.
    named: Made,
    plain: Made,
    /// A deep copy of another layer made with names.
    copy: Made,
    /// The use that a layer makes of further dims.
    further: Further,
}

/// The use that a layer makes of further dims.
#[derive(Clone, Copy, PartialEq)]
enum Further {
    /// The result for each index is that for the slice; for a result without the dim, the mean of those.
    Rides,
    /// The layer takes statistics over it, so the slices must be equal.
    Shared,
    /// The layer draws random numbers for it, so the numbers differ: only the dims are compared.
    Random,
}
use Further::*;

/// The results of a layer as a list.
trait Results {
    fn list(self) -> Vec<Tensor>;
}

impl Results for Tensor {
    fn list(self) -> Vec<Tensor> {
        vec![self]
    }
}

impl<A: Results, B: Results> Results for (A, B) {
    fn list(self) -> Vec<Tensor> {
        [self.0.list(), self.1.list()].concat()
    }
}

impl Results for AdaptiveLogSoftmax {
    fn list(self) -> Vec<Tensor> {
        vec![self.output, self.loss]
    }
}

impl Results for RecurrentOutput {
    fn list(self) -> Vec<Tensor> {
        vec![self.output, self.hn]
    }
}

impl Results for LstmOutput {
    fn list(self) -> Vec<Tensor> {
        vec![self.output, self.hn, self.cn]
    }
}

/// An [`LstmCell`] whose states are separate inputs.
#[derive(Clone, Module)]
struct OfStates {
    #[module(flatten)]
    cell: LstmCell,
}

impl OfStates {
    fn new(cell: LstmCell) -> OfStates {
        OfStates { cell }
    }

    fn forward(&self, x: &Tensor, h: &Tensor, c: &Tensor) -> Result<(Tensor, Tensor)> {
        self.cell.forward(x, (h, c))
    }
}

/// A row has the layer with names, the layer without, and the inputs. After them comes what differs from
/// [`Rides`]. The layer is in evaluation mode after `eval`.
macro_rules! rows {
    ($($layer:ident: $named:expr, $plain:expr; $($input:expr),+ $(=> $further:ident)?);* $(;)?) => {
        vec![$(Row {
            name: stringify!($layer),
            inputs: vec![$($input.clone()),+],
            named: rows!(@made $named; $($input),+),
            plain: rows!(@made $plain; $($input),+),
            copy: rows!(@made $named.deep_copy()?; $($input),+),
            #[allow(unused)]
            further: { let further = Rides; $(let further = $further;)? further },
        }),*]
    };
    (@made $layer:expr; $($input:expr),+) => {{
        let layer = Arc::new($layer);
        let module: Arc<dyn Module> = layer.clone();
        let call = move |inputs: &[Tensor]| {
            let mut inputs = inputs.iter();
            Ok((*layer).forward($({ let _ = stringify!($input); inputs.next().unwrap() }),+)?.list())
        };
        Made { module, call: Box::new(call) }
    }};
}

/// The layer in evaluation mode.
fn eval<M: Module>(layer: M) -> M {
    layer.eval();
    layer
}

/// The layers to be tested: all, or the chosen one.
fn rows() -> Result<Vec<Row>> {
    let mut rows = every_row()?;
    if let Some(chosen) = namegrad_tests::chosen() {
        let closest = namegrad::core::names::closest(chosen, rows.iter().map(|row| row.name));
        let closest = closest.map_or(String::new(), |name| format!("; did you mean {name}?"));
        rows.retain(|row| row.name == chosen);
        assert!(!rows.is_empty(), "no layer {chosen} has a row in tests/nn/layers.rs{closest}");
    }
    Ok(rows)
}

/// Every layer.
fn every_row() -> Result<Vec<Row>> {
    manual_seed(0);
    let class = [("N", 3), ("class", 4)];
    let x = Tensor::randn(class)?;
    let (other, third) = (Tensor::randn(class)?, Tensor::randn(class)?);
    let (p, q) = (x.sigmoid()?, other.sigmoid()?);
    let few = Tensor::randn([("N", 3), ("E", 2)])?;
    let other_few = Tensor::randn([("N", 3), ("E", 2)])?;
    let series = Tensor::randn([("time", 5), ("N", 2), ("E", 3)])?;
    let classes = Tensor::new([1, 3, 0])?.refine_names(["N"])?;
    let signs = Tensor::new([1, -1, 1])?.refine_names(["N"])?;
    let all_signs = other.sign()?;
    let labels = Tensor::new([[1, -1, 0, 0], [3, 2, -1, 0], [0, 1, 2, 3]])?
        .refine_names(class.map(|(name, _)| name))?;
    let log_probs = Tensor::randn([("time", 6), ("N", 2), ("class", 4)])?.log_softmax("class")?;
    let targets = Tensor::new([[1, 1, 2], [3, 2, 0]])?.refine_names(["N", "label"])?;
    let lengths = Tensor::new([6, 5])?.refine_names(["N"])?;
    let label_lengths = Tensor::new([3, 2])?.refine_names(["N"])?;
    let line = Tensor::randn([("N", 2), ("C", 4), ("L", 8)])?;
    let image = Tensor::randn([("N", 2), ("C", 4), ("H", 6), ("W", 4)])?;
    let volume = Tensor::randn([("N", 2), ("C", 4), ("D", 4), ("H", 2), ("W", 4)])?;
    let words = Tensor::new([[1, 5, 8], [0, 0, 2]])?.refine_names(["N", "word"])?;
    let (l, hw, dhw) = ([("L", 2)], [("H", 2), ("W", 2)], [("D", 2), ("H", 2), ("W", 2)]);
    let (l_, hw_, dhw_) = ([2], [2, 2], [2, 2, 2]);
    let columns = Tensor::randn([("N", 2), ("C", 16), ("window", 15)])?;
    let pooled = MaxPool2d::new(hw)?.forward_with_indices(&image)?;
    let pooled_line = MaxPool1d::new(l)?.forward_with_indices(&line)?;
    let pooled_volume = MaxPool3d::new(dhw)?.forward_with_indices(&volume)?;
    let target = Tensor::randn([("target", 3), ("N", 2), ("embed", 4)])?;
    let source = Tensor::randn([("source", 5), ("N", 2), ("embed", 4)])?;
    let heads = Tensor::randn([("N", 2), ("heads", 3), ("seq", 5), ("width", 4)])?;
    let attention =
        || MultiheadAttention::builder(("embed", 4), ("heads", 2), "target").is_causal(true).build();
    let plain_attention = || MultiheadAttention::builder(4, 2, 0).is_causal(true).build();
    let encoder = || TransformerEncoderLayer::builder(("embed", 4), ("heads", 2), "source").dropout(0.0);
    let plain_encoder = || TransformerEncoderLayer::builder(4, 2, 0).dropout(0.0);
    let decoder = || {
        TransformerDecoderLayer::builder(("embed", 4), ("heads", 2), "target")
            .memory_seq("source")
            .dropout(0.0)
    };
    let plain_decoder = || TransformerDecoderLayer::builder(4, 2, 0).dropout(0.0);
    let both =
        || Transformer::builder(("embed", 4), ("heads", 2), "target").source_seq("source").dropout(0.0);
    let plain_both = || Transformer::builder(4, 2, 0).dropout(0.0);

    Ok(rows! {
        Relu: Relu, Relu; x;
        Sigmoid: Sigmoid, Sigmoid; x;
        Tanh: Tanh, Tanh; x;
        Relu6: Relu6, Relu6; x;
        Selu: Selu, Selu; x;
        Silu: Silu, Silu; x;
        Mish: Mish, Mish; x;
        Hardswish: Hardswish, Hardswish; x;
        Hardsigmoid: Hardsigmoid, Hardsigmoid; x;
        LogSigmoid: LogSigmoid, LogSigmoid; x;
        Softsign: Softsign, Softsign; x;
        Tanhshrink: Tanhshrink, Tanhshrink; x;
        Elu: Elu::new(), Elu::new(); x;
        Celu: Celu::new(), Celu::new(); x;
        LeakyRelu: LeakyRelu::new(), LeakyRelu::new(); x;
        Softplus: Softplus::new(), Softplus::new(); x;
        Hardtanh: Hardtanh::new(), Hardtanh::new(); x;
        Softshrink: Softshrink::new(), Softshrink::new(); x;
        Hardshrink: Hardshrink::new(), Hardshrink::new(); x;
        Gelu: Gelu::new(), Gelu::default(); x;
        Rrelu: eval(Rrelu::new()), eval(Rrelu::default()); x;
        Threshold: Threshold::new(0.1, 20), Threshold::new(0.1, 20); x;
        Softmax: Softmax::new("class"), Softmax::new(1); x;
        LogSoftmax: LogSoftmax::new("class"), LogSoftmax::new(1); x;
        Softmin: Softmin::new("class"), Softmin::new(1); x;
        Glu: Glu::new("class"), Glu::new(1); x;
        Prelu: Prelu::new(("C", 4))?, Prelu::new(4)?; image;

        Linear: Linear::new(("class", 4), ("out", 3))?, Linear::new(4, 3)?; x;
        Linear: Linear::new(("class", 4), ("class", 4))?, Linear::new(4, 4)?; x;
        Bilinear: Bilinear::new(("class", 4), ("E", 2), ("out", 3))?, Bilinear::new(4, 2, 3)?; x, few;
        Embedding: Embedding::new(("vocab", 9), ("embed", 4))?, Embedding::new(9, 4)?; words;
        EmbeddingBag: EmbeddingBag::builder(("vocab", 9), ("embed", 4)).dim("word").build()?, EmbeddingBag::new(9, 4)?;
            words;
        Identity: Identity, Identity; image;
        Lambda: Lambda::new(|x| x.square()), Lambda::new(|x| x.square()); image;
        Residual: Residual::new(Linear::new(("W", 4), ("W", 4))?), Residual::new(Linear::new(4, 4)?); image;
        Sequential: Sequential::new().then(Linear::new(("W", 4), ("out", 3))?).then(Relu),
            Sequential::new().then(Linear::new(4, 3)?).then(Relu); image;

        Rnn: Rnn::new(("E", 3), ("hidden", 2), "time")?, Rnn::new(3, 2, 0)?; series;
        Gru: Gru::builder(("E", 3), ("hidden", 2), "time").bidirectional(true).num_layers(2).build()?,
            Gru::builder(3, 2, 0).bidirectional(true).num_layers(2).build()?; series;
        Lstm: Lstm::new(("E", 3), ("hidden", 2), "time")?, Lstm::new(3, 2, 0)?; series;
        RnnCell: RnnCell::new(("class", 4), ("E", 2))?, RnnCell::new(4, 2)?; x, few;
        GruCell: GruCell::new(("class", 4), ("E", 2))?, GruCell::new(4, 2)?; x, few;
        LstmCell: OfStates::new(LstmCell::new(("class", 4), ("E", 2))?), OfStates::new(LstmCell::new(4, 2)?);
            x, few, other_few;

        Conv: Conv1d::new(("C", 4), ("F", 3), l)?, Conv1d::new(4, 3, l_)?; line;
        Conv: Conv2d::new(("C", 4), ("F", 3), hw)?, Conv2d::new(4, 3, hw_)?; image;
        Conv: Conv2d::builder(("C", 4), ("C", 4), hw).padding(1).stride(2).groups(2).build()?,
            Conv2d::builder(4, 4, hw_).padding(1).stride(2).groups(2).build()?; image;
        Conv: Conv3d::new(("C", 4), ("F", 3), dhw)?, Conv3d::new(4, 3, dhw_)?; volume;
        ConvTranspose: ConvTranspose1d::new(("C", 4), ("F", 3), l)?, ConvTranspose1d::new(4, 3, l_)?; line;
        ConvTranspose: ConvTranspose2d::new(("C", 4), ("F", 3), hw)?, ConvTranspose2d::new(4, 3, hw_)?; image;
        ConvTranspose: ConvTranspose3d::new(("C", 4), ("F", 3), dhw)?, ConvTranspose3d::new(4, 3, dhw_)?; volume;

        MaxPool: MaxPool1d::new(l)?, MaxPool1d::new(l_)?; line;
        MaxPool: MaxPool2d::new(hw)?, MaxPool2d::new(hw_)?; image;
        MaxPool: MaxPool3d::new(dhw)?, MaxPool3d::new(dhw_)?; volume;
        AvgPool: AvgPool1d::new(l)?, AvgPool1d::new(l_)?; line;
        AvgPool: AvgPool2d::new(hw)?, AvgPool2d::new(hw_)?; image;
        AvgPool: AvgPool3d::new(dhw)?, AvgPool3d::new(dhw_)?; volume;
        AdaptiveMaxPool: AdaptiveMaxPool2d::new(hw)?, AdaptiveMaxPool2d::new(hw_)?; image;
        AdaptiveAvgPool: AdaptiveAvgPool2d::new(hw)?, AdaptiveAvgPool2d::new(hw_)?; image;
        MaxUnpool: MaxUnpool1d::new(l)?, MaxUnpool1d::new(l_)?; pooled_line.values, pooled_line.indices;
        MaxUnpool: MaxUnpool2d::new(hw)?, MaxUnpool2d::new(hw_)?; pooled.values, pooled.indices;
        MaxUnpool: MaxUnpool3d::new(dhw)?, MaxUnpool3d::new(dhw_)?; pooled_volume.values, pooled_volume.indices;
        LpPool: LpPool2d::new(2.0, hw)?, LpPool2d::new(2.0, hw_)?; image;
        FractionalMaxPool: FractionalMaxPool2d::to_size(hw, [3, 2])?, FractionalMaxPool2d::to_size(hw_, [3, 2])?; image => Random;

        BatchNorm: BatchNorm::new(("C", 4))?, BatchNorm::new(4)?; image => Shared;
        BatchNorm: eval(BatchNorm::new(("C", 4))?), eval(BatchNorm::new(4)?); image;
        LayerNorm: LayerNorm::new([("H", 6), ("W", 4)])?, LayerNorm::new([6, 4])?; image;
        RmsNorm: RmsNorm::new([("W", 4)])?, RmsNorm::new([4])?; image;
        GroupNorm: GroupNorm::new(2, ("C", 4), ["H", "W"])?, GroupNorm::new(2, 4, ..)?; image;
        InstanceNorm: InstanceNorm::new(("C", 4), ["H", "W"])?, InstanceNorm::new(4, ..)?; image;
        LocalResponseNorm: LocalResponseNorm::new(3, "C")?, LocalResponseNorm::new(3, 1)?; image;

        Flatten: Flatten::new(["C", "H", "W"], "features")?, Flatten::default(); image;
        Unflatten: Unflatten::new("C", [("A", 2), ("B", 2)])?, Unflatten::new(1, [2, 2])?; image;
        ZeroPad: ZeroPad::new([("H", (1, 2)), ("W", (2, 0))]), ZeroPad::new([2, 0, 1, 2]); image;
        ConstantPad: ConstantPad::new([("H", 1)], 0.5), ConstantPad::new([0, 0, 1, 1], 0.5); image;
        ReflectionPad: ReflectionPad::new([("H", (1, 2)), ("W", (2, 0))]), ReflectionPad::new([2, 0, 1, 2]); image;
        ReplicationPad: ReplicationPad::new([("W", (2, 1))]), ReplicationPad::new([2, 1]); image;
        CircularPad: CircularPad::new([("H", (1, 2)), ("W", (2, 0))]), CircularPad::new([2, 0, 1, 2]); image;
        Upsample: Upsample::new([("H", 8), ("W", 3)]), Upsample::new([8, 3]); image;
        Unfold: Unfold::builder("C", hw).name("window").build()?, Unfold::new(1, hw_)?; image;
        Fold: Fold::builder("C", [("H", 4), ("W", 6)], [2, 2]).windows("window").build()?,
            Fold::new(1, [4, 6], [2, 2])?; columns;
        PixelShuffle: PixelShuffle::new(2, "C", ["H", "W"])?, PixelShuffle::new(2, 1, [2, 3])?; image;
        PixelUnshuffle: PixelUnshuffle::new(2, "C", ["H", "W"])?, PixelUnshuffle::new(2, 1, [2, 3])?; image;
        ChannelShuffle: ChannelShuffle::new(2, "C")?, ChannelShuffle::new(2, 1)?; image;
        Dropout: eval(Dropout::new(0.5)?), eval(Dropout::new(0.5)?); image;
        Dropout: Dropout::new(0.5)?, Dropout::new(0.5)?; image => Random;
        Dropout1d: Dropout1d::new(0.5, "L")?, Dropout1d::new(0.5, 2)?; line => Random;
        Dropout2d: Dropout2d::new(0.5, ["H", "W"])?, Dropout2d::new(0.5, [2, 3])?; image => Random;
        Dropout3d: Dropout3d::new(0.5, ["D", "H", "W"])?, Dropout3d::new(0.5, [2, 3, 4])?; volume => Random;
        AlphaDropout: AlphaDropout::new(0.5)?, AlphaDropout::new(0.5)?; image => Random;
        FeatureAlphaDropout: FeatureAlphaDropout::new(0.5, ["H", "W"])?, FeatureAlphaDropout::new(0.5, [2, 3])?; image => Random;

        MultiheadAttention: attention()?, plain_attention()?; target;
        TransformerEncoderLayer: encoder().dim_feedforward(5).build()?, plain_encoder().dim_feedforward(5).build()?; source;
        TransformerEncoder: TransformerEncoder::new(encoder().dim_feedforward(5).norm_first(true), 2)?,
            TransformerEncoder::new(plain_encoder().dim_feedforward(5).norm_first(true), 2)?; source;
        TransformerDecoderLayer: decoder().dim_feedforward(5).build()?, plain_decoder().dim_feedforward(5).build()?;
            target, source;
        TransformerDecoder: TransformerDecoder::new(decoder().dim_feedforward(5).is_causal(true), 2)?,
            TransformerDecoder::new(plain_decoder().dim_feedforward(5).is_causal(true), 2)?; target, source;
        Transformer: both().dim_feedforward(5).num_encoder_layers(1).num_decoder_layers(1).build()?,
            plain_both().dim_feedforward(5).num_encoder_layers(1).num_decoder_layers(1).build()?; source, target;
        RotaryEmbedding: RotaryEmbedding::new(("width", 4), "seq")?, RotaryEmbedding::new(4, -2)?; heads;

        PairwiseDistance: PairwiseDistance::new("class"), PairwiseDistance::new(1); x, other;
        CosineSimilarity: CosineSimilarity::new("class"), CosineSimilarity::new(1); x, other;
        MseLoss: MseLoss::new(), MseLoss::default(); x, other;
        L1Loss: L1Loss::new(), L1Loss::new(); x, other;
        SmoothL1Loss: SmoothL1Loss::new(), SmoothL1Loss::new(); x, other;
        HuberLoss: HuberLoss::new(), HuberLoss::new(); x, other;
        PoissonNllLoss: PoissonNllLoss::new(), PoissonNllLoss::new(); x, other;
        GaussianNllLoss: GaussianNllLoss::new(), GaussianNllLoss::new(); x, other, p;
        BceLoss: BceLoss::new(), BceLoss::new(); p, q;
        BceWithLogitsLoss: BceWithLogitsLoss::new(), BceWithLogitsLoss::new(); x, q;
        KlDivLoss: KlDivLoss::new(), KlDivLoss::new(); x, q;
        CrossEntropyLoss: CrossEntropyLoss::new("class"), CrossEntropyLoss::new(1); x, classes;
        CrossEntropyLoss: CrossEntropyLoss::new("class"), CrossEntropyLoss::new(1); x, q;
        LinearCrossEntropyLoss: LinearCrossEntropyLoss::new(("class", 4), ("kind", 5))?, LinearCrossEntropyLoss::new(4, 5)?; x, classes;
        NllLoss: NllLoss::new("class"), NllLoss::new(1); x, classes;
        MultiMarginLoss: MultiMarginLoss::new("class"), MultiMarginLoss::new(1); x, classes;
        MultilabelMarginLoss: MultilabelMarginLoss::new("class"), MultilabelMarginLoss::new(1); x, labels;
        MultilabelSoftMarginLoss: MultilabelSoftMarginLoss::new("class"), MultilabelSoftMarginLoss::new(1); x, q;
        SoftMarginLoss: SoftMarginLoss::new(), SoftMarginLoss::new(); x, all_signs;
        HingeEmbeddingLoss: HingeEmbeddingLoss::new(), HingeEmbeddingLoss::new(); x, all_signs;
        MarginRankingLoss: MarginRankingLoss::new(), MarginRankingLoss::new(); x, other, all_signs;
        CosineEmbeddingLoss: CosineEmbeddingLoss::new("class"), CosineEmbeddingLoss::new(1); x, other, signs;
        TripletMarginLoss: TripletMarginLoss::new("class"), TripletMarginLoss::new(1); x, other, third;
        TripletMarginWithDistanceLoss: TripletMarginWithDistanceLoss::new(|a: &Tensor, b: &Tensor| a.mul(b).sum("class")),
            TripletMarginWithDistanceLoss::new(|a: &Tensor, b: &Tensor| a.mul(b).sum(1)); x, other, third;
        AdaptiveLogSoftmaxWithLoss: AdaptiveLogSoftmaxWithLoss::new(("class", 4), ("word", 9), [2, 5])?,
            AdaptiveLogSoftmaxWithLoss::new(4, 9, [2, 5])?; x, classes;
        CtcLoss: CtcLoss::new("time", "class"), CtcLoss::new(0, 2); log_probs, targets, lengths, label_lengths;
    })
}

/// Layers that run what they are given, so no row can say what they do.
const CONTAINERS: &[&str] = &["ModuleList", "ModuleDict", "Hooked"];

/// The names of the dims.
fn names(x: &Tensor) -> Vec<String> {
    (0..x.ndim()).map(|dim| x.name(dim).map_or("?".into(), |name| name.to_string())).collect()
}

/// The result with its dims sorted by name.
fn sorted(y: &Tensor) -> Result<Tensor> {
    let mut names = names(y);
    names.sort();
    if names.is_empty() { Ok(y.clone()) } else { y.align_to(names) }
}

fn assert_same(what: &str, got: &[Tensor], want: &[Tensor], further: Further) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (got, want) in got.iter().zip(want) {
        let [got, want] = [got, want].map(|y| sorted(y).unwrap_or_else(|error| panic!("{what}: {error}")));
        assert_eq!(got.shape(), want.shape(), "{what}");
        // Sums of at most some hundred products in another order.
        let close = IscloseOptions::new().rtol(1e-5).atol(2e-5);
        let same = further == Random || got.allclose_with(&want, close).unwrap();
        assert!(same, "{what}: {got:?} is not {want:?}");
    }
}

fn run(what: &str, made: &Made, inputs: &[Tensor]) -> Vec<Tensor> {
    (made.call)(inputs).unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// Runs a test as it is, and with strict names.
fn in_both_modes(test: &dyn Fn() -> Result<()>) -> Result<()> {
    test()?;
    namegrad::names::strict(test)
}

/// The gradients of the sum of squares of all results by the inputs, with the names of the inputs.
fn gradients(what: &str, made: &Made, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let leaf = |x: &Tensor| match x.dtype().is_floating_point() {
        true => x.detach().requiring_grad(),
        false => Ok(x.clone()),
    };
    let leaves: Vec<Tensor> = inputs.iter().map(leaf).collect::<Result<_>>()?;
    for y in run(what, made, &leaves).iter().filter(|y| y.requires_grad()) {
        y.square()?.sum(..)?.backward_with(None, BackwardOptions::new().retain_graph(true))?;
    }
    let found = leaves.iter().filter_map(|x| Some((x, x.grad()?)));
    found.map(|(x, grad)| grad.rename(Some(x.names().clone()))).collect()
}

/// The rule of the prelude: every layer with its options, optimizer and schedule, and no name that two modules
/// have. `tests/tensors/migration.rs` imports nothing else for what models and steps need.
#[test]
fn the_prelude_has_every_layer_optimizer_and_schedule() -> Result<()> {
    let file = include_str!("../../src/lib.rs");
    let prelude =
        file.split_once("pub mod prelude {").expect("the prelude").1.split_once("\n}\n").expect("its end").0;
    let code: String = prelude.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let names: Vec<&str> = code.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let layers = every_row()?.into_iter().map(|row| row.name);
    let optimizers = OPTIMIZERS.iter().map(|optimizer| optimizer.name());
    let schedules = SCHEDULES.iter().map(|(_, schedule)| schedule().name());
    // `Warmup` is what `warmup` of a schedule returns.
    let options = ["MultiheadAttention", "TransformerEncoder", "TransformerDecoder", "Lstm", "Gru", "Rnn"];
    let options = options.map(|layer| format!("{layer}Options"));
    let all: BTreeSet<&str> = layers
        .chain(options.iter().map(String::as_str))
        .chain(optimizers)
        .chain(schedules)
        .filter(|name| *name != "Warmup")
        .collect();
    // `Conv` of any number of dims is in the prelude for two dims, and others.
    let has = |name: &str| names.contains(&name) || names.contains(&&*format!("{name}2d"));
    let twice = ["Lambda", "Exponential"]; // layers and schedules, distributions and schedules
    let missing: Vec<&&str> = all.iter().filter(|name| !has(name) && !twice.contains(name)).collect();
    assert!(missing.is_empty(), "not in the prelude: {missing:?}");
    assert!(!names.iter().any(|name| twice.contains(name)), "names that two modules have");
    let mut types: Vec<&str> =
        names.into_iter().filter(|name| name.starts_with(char::is_uppercase)).collect();
    types.sort();
    for pair in types.windows(2) {
        assert!(pair[0] != pair[1], "{} is in the prelude twice", pair[0]);
    }
    Ok(())
}

/// The dims of the inputs can be in any order: the result and its gradients are the same by name.
#[test]
fn dims_in_any_order() -> Result<()> {
    in_both_modes(&dims_in_any_order_in_this_mode)
}

fn dims_in_any_order_in_this_mode() -> Result<()> {
    for Row { name, inputs, named, further, .. } in rows()? {
        let want = run(name, &named, &inputs);
        let want_gradients = gradients(name, &named, &inputs)?;
        let most = inputs.iter().map(Tensor::ndim).max().unwrap();
        for turn in 0..most {
            for reversed in [false, true] {
                let turned = |x: &Tensor| {
                    let mut order = names(x);
                    if reversed {
                        order.reverse();
                    }
                    let count = order.len().max(1);
                    order.rotate_left(turn % count);
                    if order.is_empty() { Ok(x.clone()) } else { x.align_to(order) }
                };
                let inputs: Vec<Tensor> = inputs.iter().map(turned).collect::<Result<_>>()?;
                let shapes: Vec<String> = inputs.iter().map(|x| x.shape().to_string()).collect();
                let what = format!("{name} of {}", shapes.join(", "));
                assert_same(&what, &run(&what, &named, &inputs), &want, further);
                let what = format!("the gradients of {what}");
                assert_same(&what, &gradients(&what, &named, &inputs)?, &want_gradients, further);
            }
        }
    }
    Ok(())
}

/// Applies a repair such as `target.align_as(&x)?` or `target.align_to(["N"])?` to the input that it is about.
fn aligned(x: &Tensor, first: &Tensor, repair: &str) -> Result<Tensor> {
    match repair.split_once(".align_to([") {
        Some((_, list)) => {
            let list = list.split_once(']').map_or("", |(list, _)| list);
            x.align_to(list.split(", ").map(|name| name.trim_matches('"')).collect::<Vec<_>>())
        }
        None => {
            assert!(repair.contains(".align_as(&"), "{repair}");
            x.align_as(first)
        }
    }
}

/// A further input in another order gives the same result by name, or an error whose repair does. With other
/// names, or two names swapped, no layer gives the same result.
#[test]
fn further_inputs_are_found_by_name_or_refused() -> Result<()> {
    in_both_modes(&further_inputs_are_found_by_name_or_refused_in_this_mode)
}

fn further_inputs_are_found_by_name_or_refused_in_this_mode() -> Result<()> {
    let mut wrong = Vec::new();
    for Row { name, inputs, named, further, .. } in rows()?.into_iter().filter(|row| row.further != Random) {
        let want = run(name, &named, &inputs);
        for at in 1..inputs.len() {
            let with = |x: Tensor| {
                let mut changed = inputs.clone();
                changed[at] = x;
                changed
            };
            let (x, own) = (&inputs[at], names(&inputs[at]));
            let turned = with(x.align_to(own.iter().rev().map(String::as_str).collect::<Vec<_>>())?);
            match (named.call)(&turned) {
                Ok(got) => {
                    assert_same(&format!("{name} with input {at} in another order"), &got, &want, further)
                }
                Err(error) => {
                    let repair = error.repair().unwrap_or_else(|| panic!("{name}: no repair: {error}"));
                    let repaired = with(aligned(&turned[at], &inputs[0], repair)?);
                    assert_same(
                        &format!("{name} after {repair}"),
                        &run(name, &named, &repaired),
                        &want,
                        further,
                    );
                }
            }
            // A name that no other input has is the layer's own business, such as that of labels.
            let others =
                |own: &str| inputs.iter().filter(|x| names(x).iter().any(|name| name == own)).count() > 1;
            let fresh = (0..own.len()).filter(|dim| others(&own[*dim])).map(|dim| {
                let mut other = own.clone();
                other[dim] = "fresh".into();
                other
            });
            let swapped = (1..own.len()).map(|dim| {
                let mut other = own.clone();
                other.swap(dim - 1, dim);
                other
            });
            for other in fresh.chain(swapped) {
                let same = |got: Vec<Tensor>| {
                    got.iter().zip(&want).all(|(a, b)| a.shape() == b.shape() && a.equal(b).unwrap_or(false))
                };
                if (named.call)(&with(x.rename(other.clone())?)).is_ok_and(same) {
                    wrong.push(format!("{name} takes input {at} as {other:?} in place of {own:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

/// No layer fails in strict mode on dims with the right names.
#[test]
fn strict_names_are_taken() -> Result<()> {
    let mut failed = Vec::new();
    for Row { name, inputs, named, further, .. } in rows()? {
        match namegrad::names::strict(|| (named.call)(&inputs)) {
            Ok(got) => assert_same(name, &got, &run(name, &named, &inputs), further),
            Err(error) => failed.push(format!("{name}: {error}")),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// A layer under a further dim is the layer for each of its indices, wherever the dim is.
#[test]
fn further_dims_ride_along() -> Result<()> {
    in_both_modes(&further_dims_ride_along_in_this_mode)
}

fn further_dims_ride_along_in_this_mode() -> Result<()> {
    for Row { name, inputs, named, further, .. } in rows()? {
        let most = inputs.iter().map(Tensor::ndim).max().unwrap();
        for place in 0..=most {
            let widened = |x: &Tensor| -> Result<Tensor> {
                let place = place.min(x.ndim());
                // Another order of the elements along the first dim has the same classes, labels and lengths.
                let other = if further == Shared { x.clone() } else { x.flip(0)? };
                let mut order = names(x);
                order.insert(place, "extra".into());
                Tensor::stack([x, &other], place)?.rename(order)
            };
            let wide: Vec<Tensor> = inputs.iter().map(widened).collect::<Result<_>>()?;
            let what = format!("{name} of {}", wide[0].shape());
            let got = run(&what, &named, &wide);
            let at = |all: &[Tensor], index: usize| -> Result<Vec<Tensor>> {
                all.iter().map(|x| x.select("extra", index)).collect()
            };
            let [first, second] = [run(&what, &named, &at(&wide, 0)?), run(&what, &named, &at(&wide, 1)?)];
            for (got, (a, b)) in got.iter().zip(first.into_iter().zip(second)) {
                if got.ndim() == 0 {
                    assert_same(&what, from_ref(got), &[a.add(b)?.div(2.0)?], further);
                    continue;
                }
                assert_same(&what, &[got.select("extra", 0)?, got.select("extra", 1)?], &[a, b], further);
            }
        }
    }
    Ok(())
}

/// Without names, dims are found by position. A state of a layer with names fits one without.
#[test]
fn without_names_by_position() -> Result<()> {
    for Row { name, inputs, named, plain, further, .. } in rows()? {
        let want = run(name, &named, &inputs);
        plain.module.load_state_dict(&named.module.state_dict())?;
        let unnamed: Vec<Tensor> = inputs.iter().map(|x| x.rename(None)).collect::<Result<_>>()?;
        for (maker, made) in [("without names", &plain), ("with names", &named)] {
            let what = format!("{name} made {maker}, of inputs without");
            // Some find dims by name alone, if they are given names.
            let Ok(got) = (made.call)(&unnamed) else {
                assert!(maker == "with names", "{what}: {}", (made.call)(&unnamed).unwrap_err());
                continue;
            };
            for (got, want) in got.iter().zip(&want) {
                let (got, want) = (got.rename(None)?, want.rename(None)?);
                assert_eq!(got.sizes(), want.sizes(), "{what}");
                let close = IscloseOptions::new().rtol(1e-5).atol(2e-5);
                assert!(
                    further == Random || got.allclose_with(&want, close)?,
                    "{what}: {got:?} is not {want:?}"
                );
            }
        }
    }
    Ok(())
}

/// A layer that is made on the meta device gives there what it gives on the CPU, without elements: results,
/// gradients of inputs and of parameters.
#[test]
fn layers_run_without_elements() -> Result<()> {
    let forms = |all: &[Tensor]| -> Vec<String> {
        all.iter().map(|x| format!("{} {} {:?}", x.dtype(), x.shape(), x.value().strides())).collect()
    };
    let all = |row: &Row| -> Result<Vec<Tensor>> {
        let results = (row.named.call)(&row.inputs)?;
        let given = gradients(row.name, &row.named, &row.inputs)?;
        let own = row.named.module.parameters().into_iter().filter_map(|parameter| parameter.grad());
        Ok(results.into_iter().chain(given).chain(own).collect())
    };
    let meta = on_device(Device::Meta, every_row)?;
    for (row, meta) in every_row()?.iter().zip(&meta) {
        let found = all(meta);
        let found = found.unwrap_or_else(|error| panic!("{}: {error}", row.name));
        assert!(found.iter().all(|x| x.device() == Device::Meta), "{}", row.name);
        let (found, expected) = (forms(&found), forms(&all(row)?));
        // Without elements, a target is in each cluster, and all have gradients.
        let more = if row.name == "AdaptiveLogSoftmaxWithLoss" { 2 } else { 0 };
        assert_eq!(found[..found.len() - more], expected, "{}", row.name);
        let moved = &row.copy.module;
        moved.to_device(Device::Meta)?;
        assert!(moved.parameters().iter().all(|parameter| parameter.device() == Device::Meta));
    }
    Ok(())
}

/// Optimizers step without elements, and keep their state on the device of the parameter.
#[test]
fn optimizers_step_without_elements() -> Result<()> {
    // That of L-BFGS goes on where the loss says.
    for optimizer in OPTIMIZERS.iter().filter(|optimizer| optimizer.name() != "Lbfgs") {
        let model = on_device(Device::Meta, || Linear::new(("in", 400), ("out", 300)))?;
        let mut own = optimizer.build(&[model.weight().clone()], &serde_json::Value::Null)?;
        for _ in 0..2 {
            own.zero_grad();
            let x = on_device(Device::Meta, || Tensor::ones([("N", 2), ("in", 400)]))?;
            model.forward(&x)?.square()?.sum(..)?.backward()?;
            let norm = optim::clip_grad_norm_(model.parameters(), 1.0)?;
            assert!(norm.is_nan(), "{}", optimizer.name()); // there is none
            own.step().unwrap_or_else(|error| panic!("{}: {error}", optimizer.name()));
        }
        assert_eq!(model.weight().device(), Device::Meta);
        if own.state_dict().groups[0].parameters[0].slots.is_empty() {
            continue;
        }
        // With values in the model, the state is still without.
        model.load_state_dict(&Linear::new(("in", 400), ("out", 300))?.state_dict())?;
        own.zero_grad();
        model.forward(&Tensor::ones([("N", 2), ("in", 400)])?)?.sum(..)?.backward()?;
        let error = own.step().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Device, "{error}");
        assert!(error.to_string().contains("make a new optimizer"), "{error}");
        for state in own.state_dict().groups.iter().flat_map(|group| &group.parameters) {
            for (name, slot) in &state.slots {
                assert_eq!(slot.device(), Device::Meta, "{} of {}", name, optimizer.name());
            }
        }
    }
    Ok(())
}

/// A copy of a norm does not sum over processes because the original is told to.
#[test]
fn copies_are_synchronized_apart() -> Result<()> {
    let synchronize = |norm: &BatchNorm, times: f64| {
        norm.entries(&mut |_, entry| {
            if let Entry::Synchronized(sums) = entry {
                sums.set(Some(move |sum: &Tensor| sum.mul(times)));
            }
        });
    };
    let x = Tensor::randn([("N", 4), ("C", 2)])?;
    let (norm, alone) = (BatchNorm::new(("C", 2))?, BatchNorm::new(("C", 2))?);
    let copy = norm.deep_copy()?;
    synchronize(&copy, 3.0);
    assert_eq!(norm.forward(&x)?, alone.forward(&x)?);
    synchronize(&norm, 2.0);
    let later = norm.deep_copy()?; // as it is now
    synchronize(&norm, 5.0);
    synchronize(&alone, 2.0);
    later.load_state_dict(&alone.state_dict())?;
    assert_eq!(later.forward(&x)?, alone.forward(&x)?);
    Ok(())
}

/// Layers are copied with the model that they are a part of.
#[test]
fn layers_are_copied() -> Result<()> {
    for Row { name, inputs, named, copy, further, .. } in rows()? {
        copy.module.load_state_dict(&named.module.state_dict())?;
        assert_same(name, &run(name, &copy, &inputs), &run(name, &named, &inputs), further);
    }
    Ok(())
}

/// A summary of a run shows the dims of what the layer gives.
#[test]
fn summaries_show_outputs() -> Result<()> {
    let mut wrong = Vec::new();
    for Row { name, inputs, named, .. } in rows()? {
        let mut given = Vec::new();
        let summary = named.module.summary_of(|| {
            given = (named.call)(&inputs)?;
            Ok(())
        })?;
        // A layer that computes nothing, such as dropout in evaluation mode, shows none.
        let want = given[0].shape();
        if let Some(shown) = summary.layers()[0].output.as_ref().filter(|shown| **shown != want) {
            wrong.push(format!("{name}: {shown} in place of {want}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

/// The ops of a layer count for the line that calls `forward`: that is where a profile shows them.
#[test]
fn ops_count_for_the_line_of_the_call() -> Result<()> {
    let mut elsewhere = BTreeSet::new();
    for Row { name, inputs, named, plain, .. } in rows()? {
        let unnamed: Vec<Tensor> = inputs.iter().map(|x| x.rename(None)).collect::<Result<_>>()?;
        for (made, inputs) in [(&named, &inputs), (&plain, &unnamed)] {
            let seen = Rc::new(RefCell::new(Vec::new()));
            let list = seen.clone();
            observe(move |op| list.borrow_mut().push((op.op, op.at)), || (made.call)(inputs))?;
            let others = seen.take().into_iter().filter(|(_, at)| at.file() != file!());
            elsewhere.extend(others.map(|(op, at)| format!("{name}: {op} at {at}")));
        }
    }
    assert!(elsewhere.is_empty(), "{elsewhere:#?}");
    Ok(())
}

/// Every type of layer in the sources has a row.
#[test]
fn every_layer_is_in_the_table() -> Result<()> {
    let rows: BTreeSet<&str> = every_row()?.iter().map(|row| row.name).collect();
    let mut missing = Vec::new();
    for path in sources(&["layers", "functional"]) {
        let text = std::fs::read_to_string(&path).unwrap();
        for layer in layers_of(&text) {
            if !rows.contains(layer.as_str()) && !CONTAINERS.contains(&layer.as_str()) {
                missing.push(format!("{layer} of {}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "no row in tests/nn/layers.rs: {missing:#?}");
    Ok(())
}

/// The files in these folders of `nn/src`.
pub(crate) fn sources(folders: &[&str]) -> Vec<std::path::PathBuf> {
    let nn = namegrad_tests::root().join("nn/src");
    let mut folders: Vec<_> = folders.iter().map(|folder| nn.join(folder)).collect();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files
}

/// The layers in a source file: public structs that derive `Module`, or the types `pub type Conv<..> =
/// Convolution<..>` that they are the common form of, rows of functions with `layer Relu`, and rows of layers,
/// `MaxPool MaxPoolBuilder ..`.
pub(crate) fn layers_of(text: &str) -> Vec<String> {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric()).collect::<String>();
    let mut found = Vec::new();
    let (mut derives, mut structs, mut forms) = (false, BTreeSet::new(), BTreeSet::new());
    for code in text.lines().map(str::trim_start).filter(|code| !code.starts_with("//")) {
        if let Some(name) = code.strip_prefix("pub struct ").map(word) {
            if derives && !name.is_empty() {
                structs.insert(name.clone());
                found.push(name);
            }
            derives = false;
        } else if let Some((name, of)) =
            code.strip_prefix("pub type ").and_then(|code| code.split_once(" = "))
        {
            if structs.contains(&word(of)) && !name.starts_with(&word(of)) {
                found.push(word(name));
                forms.insert(word(of));
            }
        } else if code.starts_with("#[derive(") {
            derives = code.contains("Module)") || code.contains("Module,");
        } else {
            if let Some((first, _)) = code.split_once(' ').filter(|(first, rest)| {
                word(first) == *first && rest.starts_with(&format!("{first}Builder "))
            }) {
                found.push(first.into());
            }
            let code = format!(" {code}");
            let layers = code.split(" layer ").skip(1).map(word);
            found.extend(layers.filter(|layer| layer.starts_with(char::is_uppercase)));
        }
    }
    found.retain(|layer| !forms.contains(layer));
    found
}

/// Whether a line declares the type with this name.
fn declares(line: &str, name: &str) -> bool {
    let declared = line.strip_prefix("pub struct ").or(line.strip_prefix("pub type "));
    let rest = declared.and_then(|declared| declared.strip_prefix(name));
    rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// The doc of a layer has the shapes by name, the parameters with their first values, and an example.
#[test]
fn every_layer_is_documented() {
    let mut missing = Vec::new();
    for path in sources(&["layers"]) {
        let text = std::fs::read_to_string(&path).unwrap();
        for layer in layers_of(&text) {
            let mut doc: Vec<&str> = Vec::new();
            for line in text.lines().map(str::trim_start) {
                if line.starts_with("///") {
                    doc.push(line);
                } else if line.starts_with(&format!("{layer} ")) || declares(line, &layer) {
                    break;
                } else if !line.starts_with("#[") {
                    doc.clear();
                }
            }
            for section in ["/// # Shapes", "/// # Parameters", "/// # Examples"] {
                if !CONTAINERS.contains(&layer.as_str()) && !doc.contains(&section) && layer != "Hooked" {
                    missing.push(format!("{layer}: {section}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn the_sources_are_read() {
    let sources = sources(&["layers", "functional"]);
    let texts = sources.iter().map(|path| std::fs::read_to_string(path).unwrap());
    let found: BTreeSet<String> = texts.flat_map(|text| layers_of(&text)).collect();
    for layer in
        ["Relu", "Elu", "Conv", "MaxPool", "LpPool", "Dropout1d", "PixelShuffle", "CtcLoss", "Linear"]
    {
        assert!(found.contains(layer), "{layer} is not in {found:?}");
    }
}

/// A layer with one parameter whose name is not in the table above.
#[test]
fn a_summary_of_a_run() -> Result<()> {
    let model = Sequential::new()
        .then(Conv2d::new(("C", 3), ("F", 8), [("H", 3), ("W", 3)])?)
        .then(BatchNorm::new(("F", 8))?)
        .then(Relu)
        .then(nn::Flatten::new(["F", "H", "W"], "features")?)
        .then(Linear::new(("features", 8 * 4 * 4), ("class", 10))?);
    let x = Tensor::randn([("N", 2), ("C", 3), ("H", 6), ("W", 6)])?;
    let mean = |model: &Sequential| model.state_dict().get("1.running_mean").unwrap().to_vec::<f32>();
    let summary = model.summary_of(|| model.forward(&x))?;
    assert_eq!(mean(&model)?, [0.0; 8], "a summary changes nothing");
    let layer = |path: &str| summary.layers().iter().find(|layer| layer.path == path).unwrap().clone();
    assert_eq!(layer("0").multiply_adds, 2 * 8 * 4 * 4 * 3 * 3 * 3);
    assert_eq!(layer("0").output.unwrap().to_string(), "[N=2, F=8, H=4, W=4]");
    assert_eq!((layer("0").parameters, layer("0").bytes), (8 * 3 * 9 + 8, 4 * (8 * 3 * 9 + 8)));
    assert_eq!((layer("1").multiply_adds, layer("1").calls), (0, 1));
    assert_eq!(layer("4").multiply_adds, 2 * 128 * 10);
    assert_eq!(layer("4").output.unwrap().to_string(), "[N=2, class=10]");
    assert_eq!(summary.multiply_adds(), layer("0").multiply_adds + layer("4").multiply_adds);
    println!("{summary}");
    assert!(summary.to_string().contains("multiply-adds"), "{summary}");
    assert!(model.summary_of(|| model.forward(&Tensor::ones([2])?)).is_err());
    assert!(!model.summary().to_string().contains("multiply-adds"));
    Ok(())
}

/// A layer is given inputs of other dtypes and names. What its errors advise is about these inputs, and not
/// about tensors inside of it, and makes the call work.
#[test]
fn repairs_of_layers_are_about_their_inputs() -> Result<()> {
    let mut wrong = BTreeSet::new();
    for Row { name, inputs, named, .. } in rows()? {
        for (at, x) in inputs.iter().enumerate() {
            let mut others =
                vec![x.to(DType::F64)?, x.to(DType::I64)?, x.ne(0)?, x.select(0, 0)?, x.rename(None)?];
            for own in (0..x.ndim()).filter_map(|dim| x.name(dim)) {
                others.push(x.rename([(own.as_str(), "other")])?);
            }
            for other in others {
                let mut given = inputs.clone();
                given[at] = other.clone();
                let Err(error) = (named.call)(&given) else { continue };
                let Some(repair) = error.repair() else { continue };
                let receiver = repair.split(['.', ' ']).next().unwrap_or_default();
                let mut words = repair.split(|c: char| !c.is_alphanumeric() && c != '_');
                let is_inside = ["weight", "bias", "a", "b", "mat1", "mat2"].contains(&receiver);
                if is_inside || words.any(|word| word == "y") || repair.contains(&format!(".{name}(")) {
                    wrong.insert(format!("{name}: {repair}"));
                }
                // The cast or the rename of the only input.
                let cast = DType::ALL.into_iter().find(|dtype| repair == format!("x.to(DType::{dtype:?})?"));
                if let (Some(dtype), 1) = (cast, inputs.len())
                    && let Err(second) = (named.call)(&[other.to(dtype)?])
                {
                    wrong.insert(format!("{name}: {repair} leads to {second}"));
                }
                let renamed =
                    repair.strip_prefix("x.rename([(\"other\", \"").and_then(|rest| rest.split('"').next());
                if let (Some(own), 1) = (renamed, inputs.len())
                    && let Err(second) = (named.call)(&[other.rename([("other", own)])?])
                {
                    wrong.insert(format!("{name}: {repair} leads to {second}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}
