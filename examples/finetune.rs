//! Fine-tunes a network that PyTorch trained: `cargo run --release --example finetune`. The file of weights has
//! PyTorch's keys and no names. The network gets another head for another task, of which there are only a few
//! images, and learns it in two phases: first the head alone, then everything, in small steps.
//!
//! Without `--weights FILE`, which takes a `.pt`, `.pth` or `.safetensors` file, the program first writes such
//! a file itself: it trains the network to tell the ten digits apart. The other task is to tell even digits
//! from odd ones.

use clap::Parser;
use namegrad::nn::{LoadOptions, StateDict};
use namegrad::prelude::*;
use namegrad::train::meters::Accuracy;
use namegrad_examples::{Result, digits, flags, training};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Fine-tune a network with weights of PyTorch.
#[derive(Parser)]
struct Flags {
    /// File with the weights; by default one that is made from handwritten digits
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// Passes over the images of the new task in each of the two phases
    #[arg(long, value_name = "N", default_value_t = 40, allow_hyphen_values = true, value_parser = flags::within(1..=100_000usize))]
    epochs: usize,
    /// Images of the new task
    #[arg(long, value_name = "N", default_value_t = 20, allow_hyphen_values = true, value_parser = flags::within(1..=400usize))]
    images: usize,
    /// Seed of everything random; the same seed gives the same run
    #[arg(long, value_name = "SEED", default_value_t = 0, allow_hyphen_values = true, value_parser = flags::within(0..=u64::MAX))]
    seed: u64,
    /// Threads to compute with; 0 takes all cores
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true, value_parser = flags::within(0..=1024usize))]
    threads: usize,
    /// Folder for the results, made if it is missing
    #[arg(long, value_name = "FOLDER", default_value = "target/finetune")]
    out: PathBuf,
}

/// The images to train on before; the others are for the new task.
const FIRST: usize = 1000;
/// The features that the head gets.
const FEATURES: usize = 32;

/// In PyTorch:
///
/// ```python
/// self.features = nn.Sequential(
///     nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
///     nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
///     nn.AdaptiveMaxPool2d(1), nn.Flatten())
/// self.fc = nn.Linear(32, 10)
/// ```
#[derive(Module)]
struct Network {
    conv1: Conv2d,
    norm1: BatchNorm,
    conv2: Conv2d,
    norm2: BatchNorm,
    head: Linear,
}

/// The paths in the file, which `nn.DataParallel` has put a `module.` in front of, and the paths here.
const PATHS: [(&str, &str); 5] = [
    ("module.features.0.*", "conv1.*"),
    ("module.features.1.*", "norm1.*"),
    ("module.features.3.*", "conv2.*"),
    ("module.features.4.*", "norm2.*"),
    ("module.fc.*", "head.*"),
];

impl Network {
    fn new(classes: usize) -> namegrad::Result<Network> {
        let conv = |from: usize, to: usize| {
            Conv2d::builder(("C", from), ("C", to), [("H", 3), ("W", 3)]).padding(1).build()
        };
        Ok(Network {
            conv1: conv(1, 16)?,
            norm1: BatchNorm::new(("C", 16))?,
            conv2: conv(16, FEATURES)?,
            norm2: BatchNorm::new(("C", FEATURES))?,
            head: Linear::new(("C", FEATURES), ("class", classes))?,
        })
    }

    /// Logits `[N, class]` for images `[N, C, H, W]`.
    fn forward(&self, images: &Tensor) -> namegrad::Result<Tensor> {
        let x = self.norm1.forward(&self.conv1.forward(images)?)?.relu()?; // [N, C=16, H, W]
        let x = self.norm2.forward(&self.conv2.forward(&x)?)?.relu()?; // [N, C=32, H, W]
        self.head.forward(&x.amax(["H", "W"])?)
    }

    /// Passes over all images, in batches of 32.
    fn train_on(&self, task: &Task, optimizer: &mut AdamW, epochs: usize) -> Result<()> {
        let loader = Loader::builder(TensorDataset::new((task.images.clone(), task.labels.clone()))?);
        let loader = loader.batch_size(32).shuffle(true).build()?;
        for _ in 0..epochs {
            for batch in loader.iter() {
                let (images, labels) = batch?;
                let loss = F::cross_entropy(&self.forward(&images)?, &labels, "class")?;
                optimizer.zero_grad();
                loss.backward()?;
                optimizer.step()?;
            }
        }
        Ok(())
    }

    fn accuracy(&self, task: &Task) -> namegrad::Result<String> {
        self.eval();
        let mut accuracy = Accuracy::new();
        accuracy.update(no_grad(|| self.forward(&task.images))?, &task.labels, "class")?;
        Ok(format!("{:.1} %", 100.0 * accuracy.compute()))
    }
}

/// Images `[N, C, H, W]` and labels `[N]`.
struct Task {
    images: Tensor,
    labels: Tensor,
}

impl Task {
    /// The digits.
    fn digits() -> namegrad::Result<Task> {
        let (images, labels) = digits::load()?;
        Ok(Task { images, labels })
    }

    /// Odd digits, as class 1, and even ones.
    fn parity(&self) -> namegrad::Result<Task> {
        Ok(Task { images: self.images.clone(), labels: self.labels.remainder(2)? })
    }

    /// The first images, and the others.
    fn split(&self, count: usize) -> namegrad::Result<[Task; 2]> {
        let part = |from: usize, count: usize| -> namegrad::Result<Task> {
            let (images, labels) = (&self.images, &self.labels);
            Ok(Task { images: images.narrow("N", from, count)?, labels: labels.narrow("N", from, count)? })
        };
        Ok([part(0, count)?, part(count, self.labels.numel() - count)?])
    }
}

/// Writes a file as PyTorch would: a network that knows the digits, under PyTorch's keys and without names.
fn pretrain(path: &Path, task: &Task) -> Result<()> {
    let network = Network::new(digits::CLASSES)?;
    let mut optimizer = AdamW::builder(network.parameters()).lr(3e-3).build()?;
    network.train();
    network.train_on(task, &mut optimizer, 8)?;
    println!("the digits: {} of {FIRST} right", network.accuracy(task)?);
    let mut state: StateDict =
        network.state_dict().iter().map(|(path, value)| (path.to_string(), value.unnamed())).collect();
    for (theirs, own) in PATHS {
        state.rename(own, theirs)?;
    }
    Ok(state.save(path)?)
}

/// A network with the weights of a file, except for its head, which stays as it is.
fn load(path: &Path) -> Result<Network> {
    let mut state = StateDict::load(path)?;
    for (theirs, own) in PATHS {
        state.rename(theirs, own)?;
    }
    for path in ["head.weight", "head.bias"] {
        state.remove(path);
    }
    let network = Network::new(2)?;
    // Values without names load by position. With `partial`, the file may lack values of the network, but only
    // those of the new head.
    let report = network.load_state_dict_with(&state, LoadOptions::new().partial(true))?;
    if report.missing != ["head.bias", "head.weight"] {
        return Err(format!("{}: the file lacks {}", path.display(), report.missing.join(", ")).into());
    }
    Ok(network)
}

fn main() -> ExitCode {
    flags::run(|| {
        let flags = Flags::try_parse()?;
        flags::create_folder(&flags.out)?;
        training::set_threads(flags.threads)?;
        manual_seed(flags.seed);
        let [before, rest] = Task::digits()?.split(FIRST)?;
        let path = match flags.weights {
            Some(path) => path,
            None => {
                let path = flags.out.join("pytorch.safetensors");
                pretrain(&path, &before)?;
                path
            }
        };
        let [few, others] = rest.parity()?.split(flags.images)?;
        println!("even and odd: {} images to learn from", few.labels.numel());

        manual_seed(flags.seed); // the same numbers, whether the file was made or given
        let network = load(&path)?;
        // The features stay as they are, and so do the mean and the variance of batch norm in `eval`.
        network.eval();
        for pattern in ["conv*", "norm*"] {
            network.freeze(pattern)?;
        }
        let mut optimizer = AdamW::builder(network.head.parameters()).lr(0.02).build()?;
        network.train_on(&few, &mut optimizer, flags.epochs)?;
        println!("after the head alone: {} of the others", network.accuracy(&others)?);

        network.set_requires_grad(true)?;
        network.train();
        let mut optimizer = AdamW::builder(network.parameters()).lr(1e-3).build()?;
        network.train_on(&few, &mut optimizer, flags.epochs)?;
        println!("after everything: {} of the others", network.accuracy(&others)?);
        network.state_dict().save(flags.out.join("model.safetensors"))?;

        let fresh = Network::new(2)?;
        fresh.train();
        let mut optimizer = AdamW::builder(fresh.parameters()).lr(3e-3).build()?;
        fresh.train_on(&few, &mut optimizer, 2 * flags.epochs)?;
        println!("a network without those weights: {}", fresh.accuracy(&others)?);
        Ok(())
    })
}
