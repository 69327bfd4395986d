//! Trains a language model of characters on a text, and writes a text like it:
//! `cargo run --release --example char_gpt -- --text FILE`. By default it reads the sources of this project.
//!
//! The configuration is nanoGPT's for a CPU: 4 layers with 4 heads and 128 features, sequences of 64 characters. The
//! names say what happens along which dim: attention looks back along "seq", the features of a character are
//! "embed", and the loss compares along "char". No dim is reshaped, transposed or counted.

mod common;

use clap::Parser;
use common::text::{self, Text};
use common::{Result, flags, training};
use namegrad::nn::{TransformerEncoder, TransformerEncoderLayer, init};
use namegrad::optim::{OptimizerState, clip_grad_norm_};
use namegrad::prelude::*;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

const BLOCK: usize = 64;
const LAYERS: usize = 4;

/// Train a language model of characters, and let it write.
#[derive(Parser)]
struct Flags {
    /// Text to learn; by default the sources of this project
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Steps in all, those before a resumed run included
    #[arg(long, value_name = "N", default_value_t = 2000, allow_hyphen_values = true, value_parser = flags::within(0..=10_000_000u64))]
    steps: u64,
    /// Sequences per step
    #[arg(long, value_name = "N", default_value_t = 12, allow_hyphen_values = true, value_parser = flags::within(1..=4096usize))]
    batch_size: usize,
    /// Highest learning rate
    #[arg(long, value_name = "RATE", default_value_t = 3e-3, allow_hyphen_values = true, value_parser = flags::learning_rate)]
    lr: f64,
    /// Characters to write at the end
    #[arg(long, value_name = "N", default_value_t = 500, allow_hyphen_values = true, value_parser = flags::within(0..=1_000_000usize))]
    sample: usize,
    /// Continue from the model and the optimizer in the folder of the results
    #[arg(long)]
    resume: bool,
    /// Seed of everything random; the same seed gives the same run
    #[arg(long, value_name = "SEED", default_value_t = 0, allow_hyphen_values = true, value_parser = flags::within(0..=u64::MAX))]
    seed: u64,
    /// Threads to compute with; 0 takes all cores
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true, value_parser = flags::within(0..=1024usize))]
    threads: usize,
    /// Folder for the results, made if it is missing
    #[arg(long, value_name = "FOLDER", default_value = "target/char_gpt")]
    out: PathBuf,
}

/// Vectors of characters and positions, and layers of attention. The vectors of the characters also tell how likely
/// each is to come next.
#[derive(Module)]
struct CharGpt {
    characters: Embedding,
    positions: Parameter,
    blocks: TransformerEncoder,
}

impl CharGpt {
    fn new(characters: usize) -> namegrad::Result<CharGpt> {
        let embed = ("embed", 128);
        let block =
            TransformerEncoderLayer::builder(embed, ("heads", 4), "seq").causal(true).norm_first(true);
        let block = block.dim_feedforward(4 * embed.1).activation(Tensor::gelu).bias(false).dropout(0.0);
        let norm = LayerNorm::builder([embed]).bias(false).build()?;
        let model = CharGpt {
            characters: Embedding::new(("char", characters), embed)?,
            positions: Parameter::new(Tensor::zeros([("seq", BLOCK), embed])?)?,
            blocks: TransformerEncoder::new(block, LAYERS)?.with_norm(norm),
        };
        for (path, weight) in model.named_parameters().iter().filter(|(_, parameter)| parameter.ndim() == 2) {
            // What is added to the residual stream in each layer is small, so that its sum is not large.
            let is_added = path.ends_with("out_proj.weight") || path.ends_with("linear2.weight");
            let std = if is_added { 0.02 / (2.0 * LAYERS as f64).sqrt() } else { 0.02 };
            init::normal_(weight, 0.0, std)?;
        }
        Ok(model)
    }

    /// Logits `[N, seq, char]` of the next character for characters `[N, seq]`.
    fn forward(&self, ids: &Tensor) -> namegrad::Result<Tensor> {
        let positions = self.positions.tensor().narrow("seq", 0, ids.size("seq")?)?; // [seq, embed]
        let x = self.characters.forward(ids)?.add(&positions)?; // [N, seq, embed]
        let x = self.blocks.forward(&x)?;
        x.contract(self.characters.weight().tensor(), "embed") // [N, seq, char]
    }

    fn loss(&self, ids: &[i64], starts: &[usize]) -> namegrad::Result<Tensor> {
        let windows = |shift: usize| -> namegrad::Result<Tensor> {
            let windows = starts.iter().flat_map(|start| &ids[start + shift..start + shift + BLOCK]).copied();
            Tensor::from_slice(&windows.collect::<Vec<_>>(), [("N", starts.len()), ("seq", BLOCK)])
        };
        F::cross_entropy(&self.forward(&windows(0)?)?, &windows(1)?, "char")
    }

    /// The mean loss of at most `limit` sequences, evenly spread over a text.
    fn evaluate(&self, ids: &[i64], limit: usize) -> namegrad::Result<f64> {
        let step = ((ids.len() - 1) / BLOCK).div_ceil(limit).max(1) * BLOCK;
        let starts: Vec<usize> = (0..ids.len() - BLOCK).step_by(step).collect();
        let sum = starts.chunks(64).try_fold(0.0, |sum, starts| {
            let loss = no_grad(|| self.loss(ids, starts))?;
            Ok::<_, Error>(sum + loss.item::<f64>()? * starts.len() as f64)
        })?;
        Ok(sum / starts.len() as f64)
    }

    /// The ids of characters that the model writes after `ids`.
    fn write(&self, mut ids: Vec<i64>, count: usize) -> namegrad::Result<Vec<i64>> {
        for _ in 0..count {
            let seen = &ids[ids.len().saturating_sub(BLOCK)..];
            let seen = Tensor::from_slice(seen, [("N", 1), ("seq", seen.len())])?;
            let logits = no_grad(|| self.forward(&seen))?.select("seq", -1)?; // [N, char]
            let one_hot = F::gumbel_softmax_with(&logits, "char", GumbelSoftmaxOptions::new().hard(true))?;
            ids.push(one_hot.argmax("char")?.item::<i64>()?);
        }
        Ok(ids)
    }
}

/// The learning rate rises linearly for 100 steps, and falls to a tenth along a cosine.
fn lr(step: u64, flags: &Flags) -> f64 {
    let warm = (step + 1) as f64 / 100.0;
    let done = (step.saturating_sub(100)) as f64 / flags.steps.saturating_sub(100).max(1) as f64;
    flags.lr * warm.min(0.55 + 0.45 * (std::f64::consts::PI * done).cos())
}

fn train(model: &CharGpt, train: &[i64], validation: &[i64], flags: &Flags) -> Result<()> {
    let (weights, norms): (Vec<_>, Vec<_>) = model.parameters().into_iter().partition(|x| x.ndim() > 1);
    let optimizer = AdamW::builder(weights).betas((0.9, 0.99)).weight_decay(0.1);
    let mut optimizer = optimizer.group(norms, |options| options.weight_decay = 0.0).build()?;
    let files = ["model.safetensors", "optimizer.safetensors"].map(|name| flags.out.join(name));
    if flags.resume {
        model.load_state_dict(&namegrad::nn::StateDict::load(&files[0])?)?;
        optimizer.load_state_dict(&OptimizerState::load(&files[1])?)?;
    }
    let first = optimizer.state_dict().groups[0].parameters[0].steps;
    let start = Instant::now();
    for step in first..flags.steps {
        manual_seed(flags.seed.wrapping_add(step)); // so that a resumed run draws what an uninterrupted one does
        let drawn = Tensor::randint(0, (train.len() - BLOCK) as i64, [flags.batch_size])?.to_vec::<i64>()?;
        let loss = model.loss(train, &drawn.into_iter().map(|start| start as usize).collect::<Vec<_>>())?;
        optimizer.zero_grad();
        loss.backward()?;
        clip_grad_norm_(model.parameters(), 1.0)?;
        optimizer.set_lr(lr(step, flags))?;
        optimizer.step()?;
        let done = step + 1;
        if done % 100 == 0 || done == flags.steps {
            let seconds = start.elapsed().as_secs_f64();
            println!("step {done:5}  train loss {:.4}  {seconds:6.1} s", loss.item::<f64>()?);
        }
        if done % 500 == 0 || done == flags.steps {
            println!("step {done:5}  validation loss {:.4}", model.evaluate(validation, 200)?);
            model.state_dict().save(&files[0])?;
            optimizer.state_dict().save(&files[1])?;
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    flags::run(|| {
        let flags = Flags::try_parse()?;
        let text = Text::new(&match &flags.text {
            Some(file) => text::read(file)?,
            None => text::sources(Path::new(env!("CARGO_MANIFEST_DIR")))?,
        });
        flags::create_folder(&flags.out)?;
        training::set_threads(flags.threads)?;
        manual_seed(flags.seed);
        let (ids, characters) = (&text.ids, text.characters.len());
        let (train_ids, validation) = ids.split_at(ids.len() / 10 * 9);
        if validation.len() <= BLOCK {
            return Err(format!("the text has only {} characters", ids.len()).into());
        }
        println!("{} characters, {characters} of them different, seed {}", ids.len(), flags.seed);
        let model = CharGpt::new(characters)?;
        println!("{model}\n");
        train(&model, train_ids, validation, &flags)?;
        println!("\nvalidation loss on all of the last tenth {:.4}", model.evaluate(validation, usize::MAX)?);
        manual_seed(flags.seed);
        let written = model.write(text.ids[..1].to_vec(), flags.sample)?;
        println!("\n{}", text.decode(&written));
        Ok(())
    })
}
