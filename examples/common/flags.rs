//! The command line of a training example, and how it exits.
//!
//! An example flattens [`TrainFlags`] into its own `clap::Parser`, changes defaults with `mut_arg`, and calls
//! [`run`]:
//!
//! ```ignore
//! #[derive(clap::Parser)]
//! #[command(mut_arg("epochs", |arg| arg.default_value("5")))]
//! struct Flags {
//!     /// Folder with the four idx files
//!     #[arg(long, value_name = "FOLDER")]
//!     data: PathBuf,
//!     #[command(flatten)]
//!     train: TrainFlags,
//! }
//!
//! fn main() -> ExitCode {
//!     flags::run(|| {
//!         let flags = Flags::try_parse()?;
//!         flags.train.create_out()?;
//!         ...
//!     })
//! }
//! ```

use std::error::Error;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use super::Result;

// A number may begin with a hyphen, so that `-1` and `-inf` are rejected as values and not as unknown flags.

/// The flags of every training run.
#[derive(Debug, Clone, PartialEq, clap::Args)]
pub struct TrainFlags {
    /// The number of passes over the training data
    #[arg(long, value_name = "N", default_value_t = 20, allow_hyphen_values = true, value_parser = within(1..=100_000usize))]
    pub epochs: usize,

    /// Samples per step
    #[arg(long, value_name = "N", default_value_t = 64, allow_hyphen_values = true, value_parser = within(1..=1_000_000usize))]
    pub batch_size: usize,

    /// Steps in an epoch at most; 0 goes through all the data
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true, value_parser = within(0..=100_000_000usize))]
    pub steps: usize,

    /// Learning rate per step
    #[arg(long, value_name = "RATE", default_value_t = 1e-3, allow_hyphen_values = true, value_parser = learning_rate)]
    pub lr: f64,

    /// Seed of everything random; the same seed gives the same run
    #[arg(long, value_name = "SEED", default_value_t = 0, allow_hyphen_values = true, value_parser = within(0..=u64::MAX))]
    pub seed: u64,

    /// Threads to compute with; 0 takes all cores
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true, value_parser = within(0..=1024usize))]
    pub threads: usize,

    /// Features of the hidden layer
    #[arg(long, value_name = "N", default_value_t = 128, allow_hyphen_values = true, value_parser = within(1..=65_536usize))]
    pub hidden: usize,

    /// Probability to drop a hidden feature while training
    #[arg(long, value_name = "P", default_value_t = 0.1, allow_hyphen_values = true, value_parser = probability)]
    pub dropout: f64,

    /// Folder for the results, made if it is missing
    #[arg(long, value_name = "FOLDER", default_value = "target/examples")]
    pub out: PathBuf,
}

impl TrainFlags {
    /// Creates the folder for the results. Call this before training, so that a bad path does not waste the
    /// run.
    pub fn create_out(&self) -> Result<()> {
        create_folder(&self.out)
    }
}

/// Creates a folder, and those above it, if it is missing.
pub fn create_folder(folder: &Path) -> Result<()> {
    let failed = |error| format!("{}: the folder cannot be made: {error}", folder.display());
    Ok(std::fs::create_dir_all(folder).map_err(failed)?)
}

/// A parser for whole numbers in `range`.
pub fn within<T>(range: RangeInclusive<T>) -> impl Fn(&str) -> std::result::Result<T, String> + Clone
where
    T: FromStr + PartialOrd + Display + Clone,
{
    move |text| {
        let value = text.parse().ok().filter(|value| range.contains(value));
        value.ok_or_else(|| format!("not a whole number from {} to {}", range.start(), range.end()))
    }
}

/// A parser for a learning rate.
pub fn learning_rate(text: &str) -> std::result::Result<f64, String> {
    let value = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    value.ok_or_else(|| "not a finite number above 0".to_owned())
}

fn probability(text: &str) -> std::result::Result<f64, String> {
    let value = text.parse().ok().filter(|p| (0.0..1.0).contains(p));
    value.ok_or_else(|| "not a number from 0 to below 1".to_owned())
}

/// Runs an example. If it fails, prints the error as one line on stderr and exits with 2, otherwise with 0.
///
/// In clap, help and version are errors too; they go to stdout, and the exit code is 0.
pub fn run(main: impl FnOnce() -> Result<()>) -> ExitCode {
    let Err(error) = main() else {
        return ExitCode::SUCCESS;
    };
    match error.downcast_ref::<clap::Error>() {
        Some(help) if !help.use_stderr() => print!("{help}"),
        _ => {
            eprintln!("error: {}", one_line(error.as_ref()));
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// The error's text without line breaks. For clap's errors it is the first paragraph; the others repeat the
/// usage.
fn one_line(error: &(dyn Error + 'static)) -> String {
    let text = error.to_string();
    let text = match error.is::<clap::Error>() {
        true => text.trim_start_matches("error: ").split("\n\n").next().unwrap_or_default(),
        false => &text,
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::scratch::Scratch;
    use super::*;

    #[derive(Debug, Parser)]
    #[command(mut_arg("epochs", |arg| arg.default_value("5")))]
    struct Flags {
        /// Folder with the data
        #[arg(long)]
        data: PathBuf,
        #[command(flatten)]
        train: TrainFlags,
    }

    fn parse(flags: &[&str]) -> Result<TrainFlags> {
        Ok(Flags::try_parse_from(["example", "--data", "d"].iter().chain(flags))?.train)
    }

    fn error(flags: &[&str]) -> String {
        one_line(parse(flags).unwrap_err().as_ref())
    }

    #[test]
    fn defaults_can_be_changed_by_an_example() {
        let flags = parse(&[]).unwrap();
        assert_eq!((flags.epochs, flags.batch_size, flags.threads), (5, 64, 0));
        assert_eq!(flags.out, PathBuf::from("target/examples"));
        let flags =
            parse(&["--epochs", "7", "--lr=1e-2", "--seed", "18446744073709551615", "--out", "o"]).unwrap();
        assert_eq!((flags.epochs, flags.lr, flags.seed), (7, 0.01, u64::MAX));
    }

    #[test]
    fn a_wrong_value_is_one_line() {
        let count = "not a whole number from 1 to 100000";
        for value in ["-1", "0", "1.5", "100001", "99999999999999999999999", "many", "--lr"] {
            let expected = format!("invalid value '{value}' for '--epochs <N>': {count}");
            assert_eq!(error(&["--epochs", value]), expected);
        }
        for value in ["nan", "-nan", "inf", "-inf", "0", "-0.1", "1e-999", "1e999", "-x"] {
            let expected = format!("invalid value '{value}' for '--lr <RATE>': not a finite number above 0");
            assert_eq!(error(&["--lr", value]), expected);
        }
        for value in ["nan", "-0.1", "1", "half"] {
            let expected =
                format!("invalid value '{value}' for '--dropout <P>': not a number from 0 to below 1");
            assert_eq!(error(&["--dropout", value]), expected);
        }
        for flag in ["--batch-size", "--hidden", "--seed", "--threads"] {
            let error = error(&[flag, "-1"]);
            assert!(error.starts_with(&format!("invalid value '-1' for '{flag} ")), "{error}");
        }
        assert!(error(&["--batch-size", "0"]).starts_with("invalid value '0' for '--batch-size <N>': "));
    }

    #[test]
    fn a_wrong_flag_is_one_line() {
        assert_eq!(error(&["--epoch", "1"]), "unexpected argument '--epoch' found");
        assert_eq!(error(&["--epochs"]), "a value is required for '--epochs <N>' but none was supplied");
        assert_eq!(
            one_line(&Flags::try_parse_from(["example"]).unwrap_err()),
            "the following required arguments were not provided: --data <DATA>"
        );
    }

    #[test]
    fn other_errors_are_one_line_as_well() {
        let error: Box<dyn Error> = "first\n  second\n\nthird".into();
        assert_eq!(one_line(error.as_ref()), "first second third");
    }

    #[test]
    fn the_exit_code_tells_help_from_a_mistake() {
        // An `ExitCode` can only be compared in print.
        let code = |result: Result<()>| format!("{:?}", run(|| result));
        let [success, mistake] = [ExitCode::SUCCESS, ExitCode::from(2)].map(|code| format!("{code:?}"));
        assert_eq!(code(Ok(())), success);
        assert_eq!(code(parse(&["--help"]).map(drop)), success);
        assert_eq!(code(parse(&["--epochs", "-1"]).map(drop)), mistake);
        assert_eq!(code(Err("bad data".into())), mistake);
    }

    #[test]
    fn the_folder_for_results_is_made() {
        let folder = Scratch::new("flags-out");
        let out = folder.path().join("a/b");
        let flags = TrainFlags { out: out.clone(), ..parse(&[]).unwrap() };
        flags.create_out().unwrap();
        flags.create_out().unwrap();
        assert!(out.is_dir());

        let file = out.join("file");
        std::fs::write(&file, "").unwrap();
        let error = TrainFlags { out: file.clone(), ..flags }.create_out().unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}: the folder cannot be made: ", file.display())), "{error}");
    }
}
