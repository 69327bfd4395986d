//! The progress bar of an epoch.

use std::io::{IsTerminal, stderr, stdout};

use indicatif::{ProgressBar, ProgressStyle};

/// A bar with `steps` steps for one of `epochs`, counted from 1. `set_message` shows the loss beside it, and
/// `finish_and_clear` removes it.
///
/// It is hidden unless stdout and stderr are both terminals: in a log or a pipe it would only clutter the
/// output.
pub(crate) fn epoch_bar(epoch: usize, epochs: usize, steps: u64) -> ProgressBar {
    if !stdout().is_terminal() || !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let template = "{prefix} [{bar:30}] {pos}/{len} {msg} ({eta} left)";
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(steps)
        .with_style(style.progress_chars("=> "))
        .with_prefix(format!("epoch {epoch}/{epochs}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_can_be_driven_without_a_terminal() {
        let bar = epoch_bar(1, 2, 3);
        bar.inc(3);
        bar.set_message("loss 0.5");
        bar.finish_and_clear();
        assert!(bar.is_finished());
    }
}
