//! The report: counts by op and by file.

use std::collections::BTreeMap;
use std::fmt;

/// The end of a case.
pub(crate) enum Verdict {
    Passed,
    /// Works here, but PyTorch contradicts its own documentation or does not support the form, so no values
    /// are recorded. `seen`: the values equal those of the same call without names.
    Works {
        seen: bool,
    },
    /// Differs from PyTorch for a documented reason.
    Known(String),
    Failed(String),
    NotImplemented(String),
}

/// Numbers of cases by verdict.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) works: usize,
    unseen: usize,
    pub(crate) failed: usize,
    pub(crate) missing: usize,
    known: usize,
}

impl Tally {
    fn count(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::Works { seen } => {
                self.works += 1;
                self.unseen += usize::from(!seen);
            }
            Verdict::Known(_) => self.known += 1,
            Verdict::Failed(_) => self.failed += 1,
            Verdict::NotImplemented(_) => self.missing += 1,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { passed, works, unseen, failed, missing, known } = self;
        write!(f, "{passed} passed, {failed} failed, {missing} not implemented, {known} known deviations, ")?;
        write!(f, "{works} work where PyTorch refuses ({unseen} of them with values that nothing says)")
    }
}

/// All verdicts, by op and by file.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) ops: BTreeMap<String, Tally>,
    files: BTreeMap<String, Tally>,
    all: Tally,
    failures: Vec<String>,
    /// `id: reason` for each known deviation.
    pub(crate) known: Vec<String>,
    missing: BTreeMap<String, usize>,
}

impl Report {
    pub(crate) fn add(&mut self, file: &str, op: &str, id: &str, verdict: Verdict) {
        self.ops.entry(op.into()).or_default().count(&verdict);
        self.files.entry(file.into()).or_default().count(&verdict);
        self.all.count(&verdict);
        match verdict {
            Verdict::Failed(difference) => self.failures.push(format!("{id}: {difference}")),
            Verdict::Known(reason) => self.known.push(format!("{id}: {reason}")),
            Verdict::NotImplemented(what) => *self.missing.entry(format!("{op}: {what}")).or_default() += 1,
            Verdict::Passed | Verdict::Works { .. } => {}
        }
    }

    /// Cases that failed.
    pub(crate) fn failed(&self) -> usize {
        self.all.failed
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nby op:")?;
        for (op, tally) in &self.ops {
            writeln!(f, "  {op}: {tally}")?;
        }
        if !self.missing.is_empty() {
            writeln!(f, "\nnot implemented:")?;
            for (what, count) in &self.missing {
                writeln!(f, "  {what} ({count})")?;
            }
        }
        if !self.known.is_empty() {
            writeln!(f, "\nknown deviations:")?;
            self.known.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        }
        if !self.failures.is_empty() {
            writeln!(f, "\nfailed:")?;
            self.failures.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        }
        writeln!(f, "\nby file:")?;
        for (file, tally) in &self.files {
            writeln!(f, "  {file}: {tally}")?;
        }
        write!(f, "conformance: {}", self.all)
    }
}
