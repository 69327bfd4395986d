//! Trains a language model of characters on a text, and writes a text like it:
//! `cargo run --release --example char_gpt -- --text FILE`. By default it reads the sources of this project.
//!
//! The configuration is nanoGPT's for a CPU: 4 layers with 4 heads and 128 features, sequences of 64
//! characters. The names say what happens along which dim: attention looks back along "seq", the features of
//! a character are "embed", and the loss compares along "char". No dim is reshaped, transposed or counted.

use clap::Parser;
use namegrad::data::sampler::Random;
use namegrad::data::{Loader, Vocabulary, Windows, text};
use namegrad::nn::{TransformerEncoder, TransformerEncoderLayer, init};
use namegrad::optim::clip_grad_norm_;
use namegrad::optim::schedule::{Cosine, Schedule, Scheduler};
use namegrad::prelude::*;
use namegrad::train::log::Log;
use namegrad::train::meters::Mean;
use namegrad::train::{Best, Checkpoints, parts};
use namegrad_examples::{Result, flags, training};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

const BLOCK: usize = 64;
const LAYERS: usize = 4;
/// The steps in which the learning rate rises.
const WARMUP: usize = 100;
/// The steps after which the run is evaluated and saved.
const PERIOD: usize = 500;

/// Sequences `[N, seq]` and the same one character later.
type Sequences = Loader<(Tensor, Tensor)>;

/// Train a language model of characters, and let it write.
#[derive(Parser)]
struct Flags {
    /// Text to learn; by default the sources of this project
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Steps in all
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
    /// Stop after this step, as if interrupted
    #[arg(long, value_name = "N")]
    stop: Option<u64>,
    /// Continue from the last checkpoint in the folder of the results
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

/// Vectors of characters and positions, and layers of attention. The vectors of the characters also tell how
/// likely each is to come next.
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
            TransformerEncoderLayer::builder(embed, ("heads", 4), "seq").is_causal(true).norm_first(true);
        let block = block.dim_feedforward(4 * embed.1).activation(Tensor::gelu).bias(false).dropout(0.0);
        let norm = LayerNorm::builder([embed]).bias(false).build()?;
        let model = CharGpt {
            characters: Embedding::new(("char", characters), embed)?,
            positions: Parameter::new(Tensor::zeros([("seq", BLOCK), embed])?)?,
            blocks: TransformerEncoder::new(block, LAYERS)?.with_norm(norm),
        };
        for (path, weight) in model.named_parameters().iter().filter(|(_, parameter)| parameter.ndim() == 2) {
            // Each layer adds small numbers to the residual stream, so that their sum is not large.
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

    /// The mean loss.
    fn evaluate(&self, sequences: &Sequences) -> namegrad::Result<Mean> {
        let mut mean = Mean::new();
        for batch in sequences.iter() {
            let (x, y) = batch?;
            let loss = no_grad(|| F::cross_entropy(&self.forward(&x)?, &y, "char"))?;
            mean.update(loss, x.size("N")? as f64)?;
        }
        Ok(mean)
    }

    /// The ids of characters that the model writes after `ids`.
    fn write(&self, mut ids: Vec<i64>, count: usize) -> namegrad::Result<Vec<i64>> {
        for _ in 0..count {
            let seen = &ids[ids.len().saturating_sub(BLOCK)..];
            let seen = Tensor::from_slice(seen, [("N", 1), ("seq", seen.len())])?;
            let logits = no_grad(|| self.forward(&seen))?.select("seq", -1)?; // [N, char]
            ids.push(F::sample(&logits, "char")?.item::<i64>()?);
        }
        Ok(ids)
    }
}

/// At most `limit` sequences, evenly spread over a text `[seq]`.
fn spread(text: &Tensor, limit: usize) -> namegrad::Result<Sequences> {
    let stride = ((text.numel() - 1) / BLOCK).div_ceil(limit).max(1) * BLOCK;
    Loader::new(Windows::new(text.clone(), "seq", BLOCK)?.stride(stride)?.shifted()?, 64)
}

fn train(model: &CharGpt, text: &Tensor, validation: &Tensor, flags: &Flags) -> Result<()> {
    let (weights, norms): (Vec<_>, Vec<_>) = model.parameters().into_iter().partition(|x| x.ndim() > 1);
    let optimizer = AdamW::builder(weights).lr(flags.lr).betas((0.9, 0.99)).weight_decay(0.1);
    let mut optimizer = optimizer.group(norms, |options| options.weight_decay = 0.0).build()?;
    let falling = (flags.steps as usize).saturating_sub(WARMUP).max(1);
    let schedule = Cosine::new(falling).eta_min(flags.lr / 10.0).warmup(WARMUP);
    let mut scheduler = Scheduler::new(schedule, &mut optimizer)?;
    // Sequences from anywhere in the text.
    let sampler = Random::new().replacement(true).num_samples(PERIOD * flags.batch_size);
    let data = Windows::new(text.clone(), "seq", BLOCK)?.shifted()?;
    let loader = Loader::builder(data).batch_size(flags.batch_size).sampler(sampler).build()?;
    let validation = spread(validation, 200)?;

    let checkpoints =
        Checkpoints::builder(&flags.out).keep_last(1).keep_best(1, "loss", Best::Lowest).build()?;
    let mut step = 0_u64;
    let log = Log::builder(&flags.out);
    let mut log = match flags.resume {
        true => {
            checkpoints.resume(parts![model, &mut optimizer, &mut scheduler, &loader, &mut step])?;
            log.resume_from(step + 1).build()?
        }
        false => {
            checkpoints.remove_after(0)?;
            log.build()?
        }
    };
    let start = Instant::now();
    let last = flags.stop.unwrap_or(flags.steps).min(flags.steps);
    while step < last {
        for batch in loader.iter().take((last - step) as usize) {
            let (x, y) = batch?;
            let loss = F::cross_entropy(&model.forward(&x)?, &y, "char")?;
            optimizer.zero_grad();
            loss.backward()?;
            clip_grad_norm_(model.parameters(), 1.0)?;
            optimizer.step()?;
            scheduler.step(&mut optimizer)?;
            step += 1;
            log.scalar("loss/train", step, &loss)?;
            if step.is_multiple_of(100) || step == last {
                let seconds = start.elapsed().as_secs_f64();
                println!("step {step:5}  train loss {:.4}  {seconds:6.1} s", loss.item::<f64>()?);
            }
        }
        let mean = model.evaluate(&validation)?;
        println!("step {step:5}  validation loss {mean}");
        log.scalar("loss/validation", step, mean.compute())?;
        checkpoints.save_with(
            step,
            parts![model, &mut optimizer, &mut scheduler, &loader, &mut step],
            [("loss", mean.compute())],
        )?;
    }
    Ok(())
}

/// The Rust sources in a folder and those in it, one after another, without those in `target` and in hidden
/// folders.
fn sources(folder: &Path) -> Result<String> {
    let (mut folders, mut files) = (vec![folder.to_path_buf()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if name.ends_with(".rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files.iter().map(text::read_text).collect::<namegrad::Result<_>>()?)
}

fn main() -> ExitCode {
    flags::run(|| {
        let flags = Flags::try_parse()?;
        let text = match &flags.text {
            Some(file) => text::read_text(file)?,
            None => sources(Path::new(env!("CARGO_MANIFEST_DIR")))?,
        };
        flags::create_folder(&flags.out)?;
        training::set_threads(flags.threads)?;
        manual_seed(flags.seed);
        let vocabulary = Vocabulary::chars(&text);
        let ids = vocabulary.encode(&text)?; // [seq]
        let (count, characters) = (ids.numel(), vocabulary.len());
        let first = count / 10 * 9;
        if count - first <= BLOCK {
            return Err(format!("the text has only {count} characters").into());
        }
        let [training, validation] = [ids.narrow("seq", 0, first)?, ids.narrow("seq", first, count - first)?];
        println!("{count} characters, {characters} of them different, seed {}", flags.seed);
        let model = CharGpt::new(characters)?;
        println!("{model}\n");
        train(&model, &training, &validation, &flags)?;
        let mean = model.evaluate(&spread(&validation, usize::MAX)?)?;
        println!("\nvalidation loss on all of the last tenth {mean}");
        manual_seed(flags.seed);
        let start = ids.narrow("seq", 0, 1)?.to_vec::<i64>()?;
        println!("\n{}", vocabulary.text(&model.write(start, flags.sample)?)?);
        Ok(())
    })
}
