//! How far ops go on more threads than this machine has cores, and models on more ranks:
//! `cargo run --release -p namegrad-bench --features rehearsal -- --scale docs/scale` prints the table of
//! `docs/scale.md` and draws its pictures.

use crate::growth::Clock;
use crate::harness::Flags;
use namegrad::prelude::*;
use namegrad::train::pictures::{Chart, Figure};
use std::path::Path;

/// Prints the table and writes the pictures to a folder.
pub(crate) fn draw(flags: &Flags, folder: &Path) -> Result<()> {
    ranks().columns(2).save(folder.join("ranks.svg"))?;
    threads::print(Clock { budget: flags.budget })
}

#[cfg(not(feature = "rehearsal"))]
mod threads {
    use super::*;

    pub(super) fn print(_: Clock) -> Result<()> {
        Err(Error::other("the table of threads needs the feature: --features rehearsal"))
    }
}

#[cfg(feature = "rehearsal")]
mod threads {
    use super::*;
    use crate::training::{cnn, lstm, mlp};
    use namegrad::autograd::BackwardOptions;
    use namegrad::core::rehearsal::{Rehearsal, rehearse};

    /// The cores that are rehearsed.
    const THREADS: usize = 64;
    /// The bytes that all cores read and write in a second: 12 channels of DDR5-4800.
    const BANDWIDTH: f64 = 460.8e9;

    pub(super) fn print(clock: Clock) -> Result<()> {
        let pools = [1, 2, THREADS]
            .map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool"));
        println!(
            "| op | sections | parts | one thread | serial | bound by parts | bound by bandwidth | 2 threads | 64 threads on 2 cores |"
        );
        println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
        for (name, bytes, make) in OPS {
            let mut run = make()?;
            let mut times = [0.0; 3];
            for (pool, time) in pools.iter().zip(&mut times) {
                *time = pool.install(|| clock.least(&mut run))? / 1e9;
            }
            let rehearsal = pools[2].install(|| rehearsed(&mut run))?;
            let [one, two, all] = times;
            let by_bandwidth = match bytes {
                0 => "".to_string(),
                bytes => format!("{:.1}", one / (*bytes as f64 / BANDWIDTH)),
            };
            println!(
                "| {name} | {} | {} | {} | {:.1} % | {:.1} | {by_bandwidth} | {:.2} | {:.2} |",
                rehearsal.sections,
                rehearsal.parts,
                text(one),
                100.0 * rehearsal.serial.as_secs_f64() / (rehearsal.serial + rehearsal.shared).as_secs_f64(),
                rehearsal.bound(),
                one / two,
                two / all,
            );
        }
        Ok(())
    }

    /// The least disturbed of several rehearsals.
    fn rehearsed(run: &mut Run) -> Result<Rehearsal> {
        let mut best: Option<Rehearsal> = None;
        for _ in 0..10 {
            let (result, next) = rehearse(&mut *run);
            result?;
            let total = |of: &Rehearsal| of.serial + of.shared;
            if best.is_none_or(|best| total(&next) < total(&best)) {
                best = Some(next);
            }
        }
        Ok(best.expect("a rehearsal"))
    }

    fn text(seconds: f64) -> String {
        match seconds {
            0.1.. => format!("{seconds:.2} s"),
            1e-3.. => format!("{:.1} ms", 1e3 * seconds),
            _ => format!("{:.0} µs", 1e6 * seconds),
        }
    }

    type Run = Box<dyn FnMut() -> Result<()> + Send>;
    type Make = fn() -> Result<Run>;

    /// An op of tensors, forward.
    fn op(f: impl Fn() -> Result<Tensor> + Send + 'static) -> Result<Run> {
        Ok(Box::new(move || f().map(drop)))
    }

    /// The gradients of a function of tensors.
    fn gradients<const N: usize>(
        inputs: [Tensor; N],
        f: impl Fn(&[Tensor; N]) -> Result<Tensor> + Send + 'static,
    ) -> Result<Run> {
        let leaves = inputs.map(|x| x.requiring_grad().expect("floats"));
        Ok(Box::new(move || {
            let y = f(&leaves)?;
            let g = y.detach();
            leaves.iter().for_each(Tensor::zero_grad);
            y.backward_with(Some(&g), BackwardOptions::new())
        }))
    }

    fn vector() -> Result<Tensor> {
        Tensor::rand([1 << 22])
    }

    fn matrix() -> Result<Tensor> {
        Tensor::rand([4096, 1024])
    }

    fn images(batch: usize) -> Result<Tensor> {
        Tensor::rand([batch, 64, 56, 56])
    }

    fn kernel() -> Result<Tensor> {
        Tensor::rand([64, 64, 3, 3])
    }

    fn heads() -> Result<Tensor> {
        Tensor::rand([1, 8, 1024, 64])
    }

    const MIB: usize = 1 << 20;

    /// The name, the bytes of inputs and outputs if these exceed the caches, and the call.
    const OPS: &[(&str, usize, Make)] = &[
        ("add, 4 Mi", 32 * MIB, || {
            let x = vector()?;
            op(move || x.add(&x))
        }),
        ("exp, 4 Mi", 32 * MIB, || {
            let x = vector()?;
            op(move || x.exp())
        }),
        ("cast to bf16, 4 Mi", 24 * MIB, || {
            let x = vector()?;
            op(move || x.to(DType::BF16))
        }),
        ("transposed copy, 4096 x 1024", 32 * MIB, || {
            let x = matrix()?.t()?;
            op(move || x.contiguous())
        }),
        ("cat of two, 4 Mi", 48 * MIB, || {
            let x = vector()?;
            op(move || Tensor::cat([&x, &x], 0))
        }),
        ("zeros, 4 Mi", 16 * MIB, || op(|| Tensor::zeros([1 << 22]))),
        ("ones, 4 Mi", 16 * MIB, || op(|| Tensor::ones([1 << 22]))),
        ("randn, 4 Mi", 16 * MIB, || op(|| Tensor::randn([1 << 22]))),
        ("sum of all, 4 Mi", 16 * MIB, || {
            let x = vector()?;
            op(move || x.sum(..))
        }),
        ("sums of columns, 4096 x 1024", 16 * MIB, || {
            let x = matrix()?;
            op(move || x.sum(0))
        }),
        ("sums of rows, 4096 x 1024", 16 * MIB, || {
            let x = matrix()?;
            op(move || x.sum(1))
        }),
        ("sums of 16 long rows, 4 Mi", 16 * MIB, || {
            let x = vector()?.reshape([16, 1 << 18])?;
            op(move || x.sum(1))
        }),
        ("argmax of rows, 4096 x 1024", 16 * MIB, || {
            let x = matrix()?;
            op(move || x.argmax(1))
        }),
        ("argmax of all, 4 Mi", 16 * MIB, || {
            let x = vector()?;
            op(move || x.argmax(0))
        }),
        ("softmax of rows, 4096 x 1024", 32 * MIB, || {
            let x = matrix()?;
            op(move || x.softmax(1))
        }),
        ("softmax of 8 long rows, 4 Mi", 32 * MIB, || {
            let x = vector()?.reshape([8, 1 << 19])?;
            op(move || x.softmax(1))
        }),
        ("softmax of columns, 4096 x 1024", 32 * MIB, || {
            let x = matrix()?;
            op(move || x.softmax(0))
        }),
        ("cumsum of rows, 4096 x 1024", 32 * MIB, || {
            let x = matrix()?;
            op(move || x.cumsum(1))
        }),
        ("cumsum of one row, 4 Mi", 32 * MIB, || {
            let x = vector()?;
            op(move || x.cumsum(0))
        }),
        ("sort, 1 Mi", 0, || {
            let x = Tensor::rand([1 << 20])?;
            op(move || Ok(x.sort(0)?.values))
        }),
        ("topk of rows, 4096 x 1024", 16 * MIB, || {
            let x = matrix()?;
            op(move || Ok(x.topk(10, 1)?.values))
        }),
        ("masked_select, 4 Mi", 0, || {
            let x = vector()?;
            let mask = x.gt(0.5)?;
            op(move || x.masked_select(&mask))
        }),
        ("product, 128 x 128", 0, || {
            let x = Tensor::rand([128, 128])?;
            op(move || x.matmul(&x))
        }),
        ("product, 512 x 512", 0, || {
            let x = Tensor::rand([512, 512])?;
            op(move || x.matmul(&x))
        }),
        ("product, 1024 x 1024", 0, || {
            let x = Tensor::rand([1024, 1024])?;
            op(move || x.matmul(&x))
        }),
        ("product, 32 x 1024 x 4096", 0, || {
            let (x, y) = (Tensor::rand([32, 1024])?, Tensor::rand([1024, 4096])?);
            op(move || x.matmul(&y))
        }),
        ("product, 64 x 2^20 x 64", 512 * MIB, || {
            let (x, y) = (Tensor::rand([64, 1 << 20])?, Tensor::rand([1 << 20, 64])?);
            op(move || x.matmul(&y))
        }),
        ("product by a vector, 4096 x 1024", 16 * MIB, || {
            let (x, y) = (matrix()?, Tensor::rand([1024])?);
            op(move || x.matmul(&y))
        }),
        ("64 products, 128 x 128", 0, || {
            let x = Tensor::rand([64, 128, 128])?;
            op(move || x.matmul(&x))
        }),
        ("convolution 3 x 3, 16 images", 0, || {
            let (x, w) = (images(16)?, kernel()?);
            op(move || F::conv2d(&x, &w))
        }),
        ("convolution 3 x 3, one image", 0, || {
            let (x, w) = (images(1)?, kernel()?);
            op(move || F::conv2d(&x, &w))
        }),
        ("convolution, stride 2", 0, || {
            let (x, w) = (images(16)?, kernel()?);
            op(move || F::conv2d_with(&x, &w, Conv2dOptions::new().stride(2)))
        }),
        ("convolution 3 x 3, gradients", 0, || gradients([images(16)?, kernel()?], |[x, w]| F::conv2d(x, w))),
        ("convolution, stride 2, gradients", 0, || {
            gradients([images(16)?, kernel()?], |[x, w]| F::conv2d_with(x, w, Conv2dOptions::new().stride(2)))
        }),
        ("convolution, depthwise, gradients", 0, || {
            gradients([images(16)?, Tensor::rand([64, 1, 3, 3])?], |[x, w]| {
                F::conv2d_with(x, w, Conv2dOptions::new().groups(64))
            })
        }),
        ("max pooling, 16 images", 0, || {
            let x = images(16)?;
            op(move || F::max_pool2d(&x, 2))
        }),
        ("batch norm, gradients", 0, || {
            gradients([images(16)?, Tensor::rand([64])?, Tensor::rand([64])?], |[x, w, b]| {
                Ok(F::batch_norm_with(x, 1, BatchNormOptions::new().weight(w).bias(b).training(true))?.0)
            })
        }),
        ("layer norm, gradients", 0, || {
            gradients([matrix()?, Tensor::rand([1024])?, Tensor::rand([1024])?], |[x, w, b]| {
                x.layer_norm_with(-1, LayerNormOptions::new().weight(w).bias(b))
            })
        }),
        ("attention, 8 heads of 1024", 0, || {
            let x = heads()?;
            op(move || F::scaled_dot_product_attention(&x, &x, &x))
        }),
        ("attention, gradients", 0, || {
            gradients([heads()?, heads()?, heads()?], |[q, k, v]| F::scaled_dot_product_attention(q, k, v))
        }),
        ("embedding, 8192 of 50,000 x 256", 0, || {
            let (w, at) = table()?;
            op(move || F::embedding(&at, &w))
        }),
        ("embedding, gradients", 0, || {
            let (w, at) = table()?;
            gradients([w], move |[w]| F::embedding(&at, w))
        }),
        ("cross entropy, 4096 x 1024, gradients", 0, || {
            let at = Tensor::rand([4096])?.mul(1024.0)?.to(DType::I64)?;
            gradients([matrix()?], move |[x]| F::cross_entropy(x, &at, 1))
        }),
        ("dropout, 4 Mi", 32 * MIB, || {
            let x = vector()?;
            op(move || F::dropout(&x, 0.5))
        }),
        ("AdamW, 4 Mi", 112 * MIB, || {
            let parameter = Parameter::new(vector()?)?;
            parameter.set_grad(Some(vector()?))?;
            let mut optimizer = AdamW::new([&parameter])?;
            Ok(Box::new(move || optimizer.step()))
        }),
        ("norm of gradients, 4 Mi", 16 * MIB, || {
            let parameter = Parameter::new(vector()?)?;
            parameter.set_grad(Some(vector()?))?;
            Ok(Box::new(move || namegrad::optim::clip_grad_norm_([&parameter], 1e9).map(drop)))
        }),
        ("LSTM, a step of training", 0, || step(lstm()?)),
        ("MLP, a step of training", 0, || step(mlp(512, DType::F32)?)),
        ("convnet, a step of training", 0, || step(cnn()?)),
    ];

    fn table() -> Result<(Tensor, Tensor)> {
        Ok((Tensor::rand([50_000, 256])?, Tensor::rand([8192])?.mul(50_000.0)?.to(DType::I64)?))
    }

    fn step(mut step: crate::harness::Step) -> Result<Run> {
        Ok(Box::new(move || step().map(drop)))
    }
}

/// A network: its name, the seconds of a message, and the seconds of a byte.
type Network = (&'static str, f64, f64);

const NETWORKS: [Network; 3] = [
    ("10 Gbit/s, 30 µs", 30e-6, 8.0 / 10e9),
    ("37 Gbit/s, 1.9 µs", 1.93e-6, 8.0 / 37.23e9),
    ("100 Gbit/s, 2 µs", 2e-6, 8.0 / 100e9),
];

/// The bytes of gradients of the model in the pictures.
const BYTES: f64 = 100e6;
/// The share of computing that an exchange can hide behind: a backward pass is twice a forward pass.
const BACKWARD: f64 = 2.0 / 3.0;

/// The seconds of an all-reduce in a ring.
fn ring(n: f64, bytes: f64, (_, alpha, beta): Network) -> f64 {
    2.0 * (n - 1.0) * (alpha + beta * bytes / n)
}

/// The seconds of an all-reduce in a tree: to one rank and back.
fn tree(n: f64, bytes: f64, (_, alpha, beta): Network) -> f64 {
    2.0 * n.log2().ceil() * (alpha + beta * bytes)
}

/// The seconds of a step that computes for `seconds`, with the exchange after it or behind the backward pass.
fn step(seconds: f64, n: f64, network: Network, is_hidden: bool) -> f64 {
    let exchange = ring(n, BYTES, network).min(tree(n, BYTES, network));
    seconds + if is_hidden { (exchange - BACKWARD * seconds).max(0.0) } else { exchange }
}

/// Times of exchanges and steps by the number of ranks, as a model of messages and bytes gives them.
fn ranks() -> Figure {
    let all = || (0..=20).map(|half| 2f64.powf(half as f64 / 2.0).round());
    let chart =
        |title: &str, y: &str| Chart::new(title).x_label("ranks").y_label(y).log_x(true).size(720, 480);
    let mut exchange = chart("All-reduce of 100 MB", "seconds").log_y(true);
    let mut weak =
        chart("The same batch for each rank, 1 s of computing", "% of the speed of one, for each rank");
    let mut strong =
        chart("The same batch for all ranks, 64 s of computing", "times the speed of one").log_y(true);
    for network in NETWORKS {
        let several = || all().filter(|n| *n > 1.0);
        exchange =
            exchange.line(format!("{}: ring", network.0), several().map(|n| (n, ring(n, BYTES, network))));
        exchange =
            exchange.line(format!("{}: tree", network.0), several().map(|n| (n, tree(n, BYTES, network))));
        for (is_hidden, words) in [(false, "after"), (true, "behind backward")] {
            let name = format!("{}, {words}", network.0);
            weak = weak.line(&name, all().map(|n| (n, 100.0 / step(1.0, n, network, is_hidden))));
            strong = strong.line(&name, all().map(|n| (n, 64.0 / step(64.0 / n, n, network, is_hidden))));
        }
    }
    strong = strong.line("as many times as ranks", all().map(|n| (n, n)));
    Figure::new("Data parallel training of 25 million parameters").panel(exchange).panel(weak).panel(strong)
}
