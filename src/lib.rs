//! Deep learning with tensors whose dims have names: values, gradients, layers, optimizers.
//!
//! You refer to a dim by its name, whatever its position, and mixing up two dims is an error instead of
//! a loss that does not fall. Names are optional: a tensor without names behaves as in other libraries.
//!
//! ```
//! use namegrad::prelude::*;
//!
//! #[derive(Module)]
//! struct Mlp {
//!     hidden: Linear,
//!     out: Linear,
//! }
//!
//! impl Mlp {
//!     fn forward(&self, x: &Tensor) -> Result<Tensor> {
//!         self.out.forward(&self.hidden.forward(x)?.relu()?)
//!     }
//! }
//!
//! manual_seed(0);
//! let model = Mlp {
//!     hidden: Linear::new(("coord", 2), ("hidden", 32))?,
//!     out: Linear::new(("hidden", 32), ("class", 2))?,
//! };
//! let mut optimizer = AdamW::builder(model.parameters()).lr(0.02).build()?;
//! // Points in the plane; the class says whether both coordinates have the same sign.
//! let points = Tensor::randn([("N", 256), ("coord", 2)])?;
//! let class = points.prod("coord").gt(0).to(DType::I64)?; // [N]
//! for _ in 0..200 {
//!     let logits = model.forward(&points)?; // [N, class]
//!     let loss = F::cross_entropy(&logits, &class, "class")?;
//!     optimizer.zero_grad();
//!     loss.backward()?;
//!     optimizer.step()?;
//! }
//! let right = model.forward(&points)?.argmax("class").eq(&class)?;
//! assert!(right.to(DType::F32).mean("N").item::<f64>()? > 0.95);
//! # Ok::<(), Error>(())
//! ```
//!
//! # Debug builds
//!
//! A plain `cargo run` is many times slower than `cargo run --release`. These lines in your `Cargo.toml`
//! compile your dependencies with optimizations in either case; `examples/template/` is a starter project
//! that has them.
//!
//! ```toml
//! [profile.dev.package."*"]
//! opt-level = 3
//! debug = false
//! debug-assertions = false
//! overflow-checks = false
//! codegen-units = 16
//! ```
//!
//! # Threads
//!
//! Large ops run on all cores. The environment variable `RAYON_NUM_THREADS` sets another number of threads,
//! and so does [rayon](https://docs.rs/rayon) in a program, for all ops or for a part of them:
//!
//! ```
//! use namegrad::prelude::*;
//! let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("a pool");
//! let y = pool.install(|| Tensor::ones([1000, 1000])?.exp())?;
//! # assert_eq!(y.numel(), 1_000_000);
//! # Ok::<(), Error>(())
//! ```
//!
//! `docs/performance.md` also says how a loader's workers share the cores with ops.
//!
//! # Where to find what
//!
//! * [`Tensor`](prelude::Tensor) has the ops as methods, and [`TensorOptions`](prelude::TensorOptions) has
//!   factories with a choice of dtype. The numbered programs in `examples/` introduce them in order.
//! * [`names`]: names, the rules by which ops propagate them, and [`names::strict`].
//! * [`autograd`]: the tape, [`autograd::grad`], [`autograd::Op`] for your own ops,
//!   [`autograd::gradcheck`].
//! * [`nn`]: [`nn::Module`] and its derive macro, layers, [`nn::functional`], [`nn::init`], saved models.
//! * [`optim`]: optimizers, learning rate schedules ([`optim::schedule`]), clipping, averages of models, and
//!   their saved state. [`autograd::autocast`](autograd::autocast()) and [`optim::GradScaler`]: mixed
//!   precision.
//! * [`data`]: data sets, and loaders that make batches. [`train`]: checkpoints, logs, meters, profiles.
//! * `distributions`, with the feature of that name: probability distributions, with draws, densities and
//!   divergences.
//! * `fft` and `complex`, with the feature `fft`: Fourier transforms and functions of complex numbers.
//! * `linalg`, with the feature of that name: systems of equations, factorizations, eigenvalues, norms of
//!   matrices.
//! * [`io`]: files of tensors: safetensors, NumPy's `.npy` and `.npz`, PyTorch's state dicts.
//! * [`ops`]: a registry of all ops, which can be called by name with named arguments. [`options`]: the
//!   options of ops.
//! * [`core`]: tensors as plain values, dtypes, kernels, [`core::random`]. [`memory`]: how much memory
//!   tensors use.
//! * [`Error`]: what an error contains. Every method that can fail returns one; the operators `+ - * /` panic
//!   with its text.
//!
//! If you know PyTorch's named tensors, `docs/migration.md` shows what to write here. `docs/operators.md`
//! lists every op.

#![forbid(unsafe_code)]

#[cfg(not(feature = "linalg"))]
#[doc(hidden)]
pub mod missing;
pub mod ops;

pub use namegrad_autograd as autograd;
pub use namegrad_autograd::fused;
pub use namegrad_core as core;
pub use namegrad_core::{Device, Error, ErrorKind, Result, Winograd, memory, names, on_device, set_winograd};
#[cfg(feature = "training")]
pub use namegrad_data as data;
#[cfg(feature = "distributions")]
pub use namegrad_distributions as distributions;
pub use namegrad_io as io;
#[cfg(feature = "linalg")]
pub use namegrad_linalg as linalg;
pub use namegrad_nn as nn;
pub use namegrad_nn::dims;
#[cfg(feature = "training")]
pub use namegrad_optim as optim;
#[cfg(feature = "training")]
pub use namegrad_train as train;
#[cfg(feature = "training")]
pub use namegrad_train::{Plan, plan};

/// Fourier transforms, with the feature `fft`.
#[cfg(feature = "fft")] // in Cargo.toml: namegrad = { version = "0.1", features = ["fft"] }
pub mod fft {
    pub use namegrad_fft::*;
}

#[doc(inline)]
#[cfg(feature = "fft")] // in Cargo.toml: namegrad = { version = "0.1", features = ["fft"] }
pub use namegrad_fft::complex;

/// The options of ops and of the functions in [`nn::functional`].
pub mod options {
    pub use namegrad_autograd::options::*;
    pub use namegrad_autograd::{BackwardOptions, ScanOptions};
    #[cfg(feature = "linalg")]
    pub use namegrad_linalg::options::*;
    pub use namegrad_nn::functional::options::*;
}

/// The items that most programs need: `use namegrad::prelude::*`.
///
/// The rule is that it has
/// * tensors, parameters and buffers, their options, and the types that ops take and return;
/// * every layer, loss and container of [`nn`] with its options, and the functions of [`nn::functional`] as
///   `F`;
/// * what models are made of, saved with and loaded with: [`Module`](nn::Module), [`Layer`](nn::Layer),
///   [`Training`](nn::Training), [`StateDict`](nn::StateDict), [`LoadOptions`](nn::LoadOptions);
/// * every optimizer of [`optim`] and every schedule of [`optim::schedule`], and what is done around a step:
///   `clip_grad_norm_`, `AveragedModel`, `GradScaler`;
/// * the methods of distributions, with the feature `distributions`; their names are imported one by one;
/// * the methods of linear algebra, with the feature `linalg`;
/// * the functions that change how a closure is recorded: `no_grad`, `enable_grad`, `inference_mode`,
///   `autocast`, `checkpoint`, `detect_anomaly`;
/// * [`Loader`](data::Loader) and what is loaded most: tables, lists of tensors, MNIST;
/// * the modules `autograd`, `names`, `nn`, `optim` and `schedule`, for everything else in them:
///   `nn::init::zeros_`, `names::strict`.
///
/// What two modules have is written with its module: `nn::Lambda` is a layer, `schedule::Lambda` a schedule,
/// `distributions::Exponential` a distribution, `schedule::Exponential` a schedule.
/// Files and training runs, [`io`] and [`train`], are imported by their paths.
pub mod prelude {
    #[cfg(not(feature = "linalg"))]
    #[doc(hidden)]
    pub use crate::missing::Linalg as _;
    pub use crate::options::*;
    pub use crate::{autograd, names, nn};
    pub use namegrad_autograd::chain::*;
    pub use namegrad_autograd::{
        Index, Parameter, Tensor, TensorOptions, autocast, checkpoint, detect_anomaly, enable_grad,
        inference_mode, no_grad,
    };
    pub use namegrad_core::args::Padding;
    pub use namegrad_core::random::manual_seed;
    pub use namegrad_core::{
        DType, Device, Error, ErrorKind, Picked, QrMode, Reduce, Result, StdMean, Triangle, VarMean, except,
        keep, on_device,
    };
    #[cfg(feature = "training")]
    pub use namegrad_data::{Csv, Dataset, Loader, Mnist, TensorDataset};
    #[cfg(feature = "distributions")]
    pub use namegrad_distributions::{Distribution as _, DistributionExt as _};
    pub use namegrad_io::Files;
    #[cfg(feature = "linalg")]
    pub use namegrad_linalg::{Eigen as _, Factor as _, Functions as _, MatrixNorm, Solve as _, Svd as _};
    pub use namegrad_nn::dims;
    pub use namegrad_nn::functional as F;
    #[doc(hidden)]
    pub use namegrad_nn::misused::{Built as _, Options as _};
    // Layers.
    #[cfg(feature = "training")]
    pub use crate::{optim, optim::schedule};
    pub use namegrad_nn::{
        AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d, AdaptiveLogSoftmaxWithLoss,
        AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d, AlphaDropout, AvgPool1d, AvgPool2d,
        AvgPool3d, BatchNorm, BceLoss, BceWithLogitsLoss, Bilinear, Celu, ChannelShuffle, CircularPad,
        ConstantPad, Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d,
        CosineEmbeddingLoss, CosineSimilarity, CrossEntropyLoss, CtcLoss, Dropout, Dropout1d, Dropout2d,
        Dropout3d, Elu, Embedding, EmbeddingBag, FeatureAlphaDropout, Flatten, Fold, FractionalMaxPool2d,
        FractionalMaxPool3d, GaussianNllLoss, Gelu, Glu, GroupNorm, Gru, GruCell, Hardshrink, Hardsigmoid,
        Hardswish, Hardtanh, HingeEmbeddingLoss, HuberLoss, Identity, InstanceNorm, KlDivLoss, L1Loss,
        LayerNorm, LeakyRelu, Linear, LinearCrossEntropyLoss, LocalResponseNorm, LogSigmoid, LogSoftmax,
        LpPool1d, LpPool2d, LpPool3d, Lstm, LstmCell, MarginRankingLoss, MaxPool1d, MaxPool2d, MaxPool3d,
        MaxUnpool1d, MaxUnpool2d, MaxUnpool3d, Mish, ModuleDict, ModuleList, MseLoss, MultiMarginLoss,
        MultiheadAttention, MultilabelMarginLoss, MultilabelSoftMarginLoss, NllLoss, PairwiseDistance,
        PixelShuffle, PixelUnshuffle, PoissonNllLoss, Prelu, ReflectionPad, Relu, Relu6, ReplicationPad,
        Residual, RmsNorm, Rnn, RnnCell, RotaryEmbedding, Rrelu, Selu, Sequential, Sigmoid, Silu,
        SmoothL1Loss, SoftMarginLoss, Softmax, Softmin, Softplus, Softshrink, Softsign, Tanh, Tanhshrink,
        Threshold, Transformer, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder,
        TransformerEncoderLayer, TripletMarginLoss, TripletMarginWithDistanceLoss, Unflatten, Unfold,
        Upsample, ZeroPad,
    };
    pub use namegrad_nn::{
        Buffer, GruOptions, Layer, LoadOptions, LstmOptions, LstmOutput, Module, ModuleFields,
        MultiheadAttentionOptions, RecurrentOutput, RnnOptions, StateDict, Training,
        TransformerDecoderOptions, TransformerEncoderOptions,
    };
    // Schedules.
    #[cfg(feature = "training")]
    pub use namegrad_optim::schedule::{
        Chained, Constant, Cosine, CosineRestarts, Cyclic, LinearRamp, MultiStep, Multiplicative, OneCycle,
        Polynomial, ReduceOnPlateau, Schedule, Scheduler, Sequence, StepDecay, SwaLr,
    };
    #[cfg(feature = "training")]
    pub use namegrad_optim::{
        Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax, Asgd, AveragedModel, GradScaler, Lamb, Lbfgs,
        LineSearch, Lion, Muon, NAdam, Optimizer, RAdam, RmsProp, Rprop, Sgd, clip_grad_norm_,
        clip_grad_value_,
    };
}

/// The code of the README and of the page of plans, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/plan.md")]
struct Readme;
