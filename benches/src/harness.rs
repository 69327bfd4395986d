//! Flags, timing and the JSON output.

use std::hint::black_box;
use std::time::{Duration, Instant};

pub(crate) const USAGE: &str = "\
--threads N          threads of the pool (1)
--variant NAME       copied to the output (default)
--only W1,W2.exp     workloads by the start of their names; all if not given
--budget SECONDS     how long each workload is measured (0.3)
--fast 0|1           do not report the loss of step 30
--retry K            repeat this often while others use the machine (3)
--growth FOLDER      draw pictures of costs by size, and nothing else
--scale FOLDER       print and draw how ops and models scale, and nothing else
--rss base|W5|W6|W7|W8|W13  print the peak of memory of a training run, or of batches, and nothing else";

/// The flags of the command line.
pub(crate) struct Flags {
    pub(crate) threads: usize,
    variant: String,
    only: Vec<String>,
    pub(crate) budget: f64,
    fast: bool,
    retry: usize,
    pub(crate) rss: Option<String>,
    pub(crate) growth: Option<String>,
    pub(crate) scale: Option<String>,
}

impl Flags {
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Flags, String> {
        let mut flags = Flags {
            threads: 1,
            variant: "default".into(),
            only: Vec::new(),
            budget: 0.3,
            fast: false,
            retry: 3,
            rss: None,
            growth: None,
            scale: None,
        };
        while let Some(flag) = args.next() {
            let Some(value) = args.next() else { return Err(format!("{flag} has no value")) };
            let number = || value.parse::<f64>().map_err(|_| format!("{flag} takes a number, not {value}"));
            match flag.as_str() {
                "--threads" => flags.threads = number()? as usize,
                "--variant" => flags.variant = value,
                "--only" => flags.only = value.split(',').map(String::from).collect(),
                "--budget" => flags.budget = number()?,
                "--fast" => flags.fast = number()? != 0.0,
                "--retry" => flags.retry = number()? as usize,
                "--scale" => flags.scale = Some(value),
                "--growth" => flags.growth = Some(value),
                "--rss" => flags.rss = Some(value),
                _ => return Err(format!("no such flag: {flag}")),
            }
        }
        Ok(flags)
    }
}

/// The amount of work in a workload, for rates.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// No rate.
    Call,
    /// Floating-point operations.
    Flops(usize),
    /// Bytes read and written.
    Bytes(usize),
    /// A number of operations in one run; the time of a single operation is reported.
    Operations(usize),
}

/// The measurements of a workload.
struct Measured {
    seconds: Vec<f64>,
    /// The share of one CPU that other programs used during the measurement.
    other: f64,
}

pub(crate) struct Bench {
    pub(crate) flags: Flags,
}

/// The shortest time that is measured at once, long enough that reading the clock does not matter.
const SAMPLE: Duration = Duration::from_micros(200);
/// A machine is quiet if other programs use less than this share of one CPU.
const QUIET: f64 = 0.15;

impl Bench {
    pub(crate) fn new(flags: Flags) -> Bench {
        Bench { flags }
    }

    /// Whether the flags select this workload, by its name or a prefix of it.
    pub(crate) fn wants(&self, name: &str) -> bool {
        let only = &self.flags.only;
        only.is_empty() || only.iter().any(|wanted| name.starts_with(wanted) || wanted.starts_with(name))
    }

    fn wants_exactly(&self, name: &str) -> bool {
        let only = &self.flags.only;
        only.is_empty() || only.iter().any(|wanted| name.starts_with(wanted))
    }

    /// Measures `run`, whose result is ignored.
    pub(crate) fn case<R, E: std::fmt::Debug>(
        &self,
        name: &str,
        work: Work,
        mut run: impl FnMut() -> Result<R, E>,
    ) {
        if !self.wants_exactly(name) {
            return;
        }
        let mut time = |runs: usize| {
            let start = Instant::now();
            for _ in 0..runs {
                drop(black_box(run().expect("a workload of valid sizes")));
            }
            start.elapsed()
        };
        time(1);
        let mut runs = 1;
        let mut elapsed = time(runs);
        while elapsed <= SAMPLE {
            runs *= 2;
            elapsed = time(runs);
        }
        let one = elapsed.as_secs_f64() / runs as f64;
        time(((self.flags.budget * 0.25 / one) as usize).min(20_000));
        let measured = self.undisturbed(|| {
            let mut seconds = Vec::new();
            let start = Instant::now();
            while seconds.len() < 100_000
                && (seconds.len() < 5 || start.elapsed().as_secs_f64() < self.flags.budget)
            {
                seconds.push(time(runs).as_secs_f64() / runs as f64);
            }
            seconds
        });
        let extra = match work {
            Work::Flops(flops) => format!(",\"flops\":{flops}"),
            Work::Bytes(bytes) => format!(",\"bytes\":{bytes}"),
            Work::Call | Work::Operations(_) => String::new(),
        };
        let per = if let Work::Operations(n) = work { n as f64 } else { 1.0 };
        self.print(name, &measured, per, &extra);
    }

    /// Measures a training step, which returns its loss.
    pub(crate) fn training(
        &self,
        name: &str,
        make: impl FnOnce() -> namegrad::Result<Step>,
    ) -> namegrad::Result<()> {
        if !self.wants_exactly(name) {
            return Ok(());
        }
        let mut step = make()?;
        namegrad::core::memory::reset_peak();
        let first = step()?.item::<f64>()?;
        for _ in 1..if self.flags.fast { 4 } else { 30 } {
            step()?;
        }
        let late = step()?.item::<f64>()?;
        let peak = namegrad::core::memory::stats().peak_bytes as f64 / (1 << 20) as f64;
        let budget = (self.flags.budget * 6.0).max(1.0);
        let measured = self.undisturbed(|| {
            let mut seconds = Vec::new();
            let start = Instant::now();
            while seconds.len() < 10 || start.elapsed().as_secs_f64() < budget {
                let start = Instant::now();
                drop(black_box(step().expect("the steps before went well")));
                seconds.push(start.elapsed().as_secs_f64());
            }
            seconds
        });
        let mut extra = format!(",\"loss0\":{first:.6},\"peak_live_mib\":{peak:.1}");
        if !self.flags.fast {
            extra += &format!(",\"loss30\":{late:.6}");
        }
        self.print(name, &measured, 1.0, &extra);
        Ok(())
    }

    /// Runs `measure` until no other program disturbs it, and returns the least disturbed run.
    fn undisturbed(&self, mut measure: impl FnMut() -> Vec<f64>) -> Measured {
        let mut best: Option<Measured> = None;
        for _ in 0..=self.flags.retry {
            let (busy, own, start) = (machine_seconds(), own_seconds(), Instant::now());
            let seconds = measure();
            let others = (machine_seconds() - busy) - (own_seconds() - own);
            let other = (others / start.elapsed().as_secs_f64()).max(0.0);
            if best.as_ref().is_none_or(|best| other < best.other) {
                best = Some(Measured { seconds, other });
            }
            if other < QUIET {
                break;
            }
        }
        best.expect("at least one run")
    }

    fn print(&self, name: &str, measured: &Measured, per: f64, extra: &str) {
        let mut seconds = measured.seconds.clone();
        seconds.sort_by(f64::total_cmp);
        let (median, least) = (seconds[seconds.len() / 2], seconds[0]);
        println!(
            "{{\"peer\":\"namegrad\",\"variant\":\"{}\",\"workload\":\"{name}\",\"threads\":{},\"median_ms\":{:.9},\"min_ms\":{:.9},\
             \"reps\":{}{extra},\"other\":{:.3}}}",
            self.flags.variant,
            self.flags.threads,
            median * 1e3 / per,
            least * 1e3 / per,
            seconds.len(),
            measured.other
        );
    }

    /// Prints the peak memory of this process.
    pub(crate) fn print_memory(&self, name: &str) {
        let peak = kibibytes("VmHWM:") / 1024.0;
        println!(
            "{{\"peer\":\"namegrad\",\"variant\":\"{}\",\"workload\":\"{name}\",\"threads\":{},\"peak_rss_mib\":{peak:.1},\
             \"peak_live_mib\":{:.1}}}",
            self.flags.variant,
            self.flags.threads,
            namegrad::core::memory::stats().peak_bytes as f64 / (1 << 20) as f64
        );
    }
}

/// A training step, which returns the loss.
pub(crate) type Step = Box<dyn FnMut() -> namegrad::Result<namegrad::prelude::Tensor> + Send>;

/// The unit in which the kernel counts CPU time on every common Linux.
const TICKS: f64 = 100.0;

fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// The CPU time that all programs have used since the machine started; 0 if it is unknown.
fn machine_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    // user, nice, system, idle, iowait, irq, softirq, steal
    let counts = numbers(stat.lines().next().unwrap_or_default());
    if counts.len() < 8 { 0.0 } else { ([0, 1, 2, 5, 6, 7].map(|i| counts[i]).iter().sum::<f64>()) / TICKS }
}

/// The CPU time that this process has used; 0 if it is unknown.
fn own_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program may contain spaces. After its closing parenthesis comes the third field; fields
    // 14 and 15 are the times.
    let fields = numbers(stat.rsplit(')').next().unwrap_or_default());
    // The state is a letter and does not count as a number.
    if fields.len() < 12 { 0.0 } else { (fields[10] + fields[11]) / TICKS }
}

/// A value from the status of the process, in KiB.
fn kibibytes(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|line| numbers(line).first().copied()).unwrap_or(f64::NAN)
}
