//! Progress bars: [`progress`] for any iterator, [`Progress`] with a label, messages and nested bars.
//!
//! A bar is shown on stderr if that is a terminal. Otherwise, as in a pipe or a file, nothing is printed,
//! unless [`Progress::every`] asks for a line now and then.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt;
use std::io::{IsTerminal, stderr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An iterator that shows its progress: how many items are done, how many in a second, and the time left.
///
/// ```
/// use namegrad::train::progress::progress;
/// let mut sum = 0;
/// for number in progress(1..=100) {
///     sum += number;
/// }
/// assert_eq!(sum, 5050);
/// ```
pub fn progress<I: IntoIterator>(items: I) -> impl Iterator<Item = I::Item> {
    let items = items.into_iter();
    let bar = match items.size_hint() {
        (_, Some(total)) => Progress::new(total),
        _ => Progress::unknown(),
    };
    CountedItems { items, started: false, bar: Bar::Own(bar) }
}

/// A progress bar for a loop, or for several nested loops.
///
/// ```
/// use namegrad::train::progress::Progress;
/// let (epochs, batches) = (2, [0.5, 0.25, 0.125]);
/// let all = Progress::new(epochs).label("epochs");
/// for epoch in all.over(1..=epochs) {
///     let bar = all.nested(batches.len()).label(format!("epoch {epoch}"));
///     for loss in bar.over(batches) {
///         bar.message(format!("loss {loss:.4}"));
///     }
///     all.println(format!("epoch {epoch} is done")); // above the bars
/// }
/// ```
pub struct Progress {
    bar: ProgressBar,
    bars: MultiProgress,
    lines: Option<PlainLines>,
}

/// Lines in place of a bar.
struct PlainLines {
    every: Duration,
    clock: Mutex<Clock>,
}

/// When lines were printed.
#[derive(Clone, Copy)]
struct Clock {
    start: Instant,
    last: Instant,
    /// The number of items that were done at the last line.
    printed: Option<u64>,
}

impl PlainLines {
    fn new(every: Duration) -> PlainLines {
        PlainLines { every, clock: Mutex::new(Clock::start()) }
    }

    fn clock(&self) -> MutexGuard<'_, Clock> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock {
    fn start() -> Clock {
        let now = Instant::now();
        Clock { start: now, last: now, printed: None }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress")
            .field("label", &self.bar.prefix())
            .field("done", &self.bar.position())
            .field("total", &self.bar.length())
            .finish_non_exhaustive()
    }
}

impl Progress {
    /// A bar for this number of items.
    pub fn new(total: usize) -> Progress {
        Progress::on(target(), Some(total))
    }

    /// A bar for a number of items that is not known.
    pub fn unknown() -> Progress {
        Progress::on(target(), None)
    }

    fn on(target: ProgressDrawTarget, total: Option<usize>) -> Progress {
        let bars = MultiProgress::with_draw_target(target);
        Progress { bar: bars.add(bar(total)), bars, lines: None }
    }

    /// Sets the label in front of the bar.
    pub fn label(self, label: impl Into<String>) -> Progress {
        self.bar.set_prefix(label.into());
        self
    }

    /// Prints a line this often if stderr is no terminal, and one at the end.
    ///
    /// ```
    /// use namegrad::train::progress::Progress;
    /// use std::time::Duration;
    /// let bar = Progress::new(3).label("files").every(Duration::from_secs(30));
    /// # for _ in bar.over(0..3) {}
    /// ```
    pub fn every(mut self, every: Duration) -> Progress {
        self.lines = Some(PlainLines::new(every));
        self
    }

    /// Shows the progress of an iterator. An item is done when the next one is asked for. The bar disappears
    /// at the end, or when the loop is left. Each call starts again from 0.
    pub fn over<I: IntoIterator>(&self, items: I) -> impl Iterator<Item = I::Item> {
        self.bar.reset();
        if let Some(lines) = &self.lines {
            *lines.clock() = Clock::start();
        }
        CountedItems { items: items.into_iter(), started: false, bar: Bar::Shared(self) }
    }

    /// A bar below this one, for a loop in a loop.
    pub fn nested(&self, total: usize) -> Progress {
        let every = self.lines.as_ref().map(|lines| lines.every);
        let nested = Progress { bar: self.bars.add(bar(Some(total))), bars: self.bars.clone(), lines: None };
        match every {
            Some(every) => nested.every(every),
            None => nested,
        }
    }

    /// Sets the text behind the bar, such as the loss.
    pub fn message(&self, message: impl Into<String>) {
        self.bar.set_message(message.into());
    }

    /// Prints a line to stdout, above the bars if there are any.
    pub fn println(&self, line: impl fmt::Display) {
        self.bars.suspend(|| println!("{line}"));
    }

    /// Counts one more item, in a loop that is not over an iterator.
    pub fn inc(&self) {
        self.bar.inc(1);
        let is_last = self.bar.length() == Some(self.bar.position());
        self.print_line(is_last);
    }

    /// Prints a line, if there are lines, and it is time for one or the last one.
    fn print_line(&self, is_last: bool) {
        let Some(lines) = self.lines.as_ref().filter(|_| self.bars.is_hidden()) else { return };
        let (now, done) = (Instant::now(), Some(self.bar.position()));
        let mut clock = lines.clock();
        if (is_last && clock.printed != done) || (!is_last && now - clock.last >= lines.every) {
            (clock.last, clock.printed) = (now, done);
            eprintln!("{}", self.line(now - clock.start, is_last));
        }
    }

    /// `epoch 1/2  300/938  52.1/s  12 s left  loss 0.5`, and `epoch 1/2  938/938  52.1/s  in 18 s  loss 0.4`
    /// for the last one.
    fn line(&self, elapsed: Duration, is_last: bool) -> String {
        let done = self.bar.position();
        let rate = done as f64 / elapsed.as_secs_f64();
        let mut parts = vec![self.bar.prefix()];
        let of = self.bar.length().map_or(String::new(), |total| format!("/{total}"));
        parts.push(format!("{done}{of}  {rate:.1}/s"));
        match self.bar.length() {
            _ if is_last => parts.push(format!("in {:.0} s", elapsed.as_secs_f64())),
            Some(total) => parts.push(format!("{:.0} s left", total.saturating_sub(done) as f64 / rate)),
            None => {}
        }
        parts.push(self.bar.message());
        parts.retain(|part| !part.is_empty());
        crate::joined(&parts, "  ")
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Stderr, if it is a terminal.
fn target() -> ProgressDrawTarget {
    match stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    }
}

fn bar(total: Option<usize>) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => {
            (ProgressBar::new(total as u64), "{prefix} [{bar:30}] {pos}/{len} {rate} {msg} ({eta} left)")
        }
        None => (ProgressBar::no_length(), "{prefix} {spinner} {pos} {rate} {msg} ({elapsed})"),
    };
    // Both templates are right, and a wrong one would give the default bar.
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let rate = |state: &ProgressState, out: &mut dyn fmt::Write| {
        let _ = write!(out, "{:.1}/s", state.per_sec());
    };
    bar.with_style(style.with_key("rate", rate).progress_chars("=> "))
}

/// An iterator with a bar.
struct CountedItems<'a, I> {
    items: I,
    started: bool,
    bar: Bar<'a>,
}

enum Bar<'a> {
    Own(Progress),
    Shared(&'a Progress),
}

impl Bar<'_> {
    fn get(&self) -> &Progress {
        match self {
            Bar::Own(bar) => bar,
            Bar::Shared(bar) => bar,
        }
    }
}

impl<I: Iterator> Iterator for CountedItems<'_, I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        if std::mem::replace(&mut self.started, true) {
            self.bar.get().inc();
        }
        let item = self.items.next();
        if item.is_none() {
            self.started = false;
            self.bar.get().print_line(true);
        }
        item
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.items.size_hint()
    }
}

impl<I> Drop for CountedItems<'_, I> {
    fn drop(&mut self) {
        self.bar.get().bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::TermLike;
    use std::io;
    use std::sync::Arc;

    /// A terminal that keeps all that is written to it.
    #[derive(Clone, Debug, Default)]
    struct Paper(Arc<Mutex<String>>);

    impl TermLike for Paper {
        fn width(&self) -> u16 {
            120
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_terminal_shows_rate_message_and_time_left() {
        let paper = Paper::default();
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(paper.clone()), 255);
        let all = Progress::on(target, Some(2)).label("epochs");
        for epoch in all.over(1..=2) {
            let bar = all.nested(3).label(format!("epoch {epoch}"));
            for item in bar.over(0..3) {
                bar.message(format!("loss {item}"));
                std::thread::sleep(Duration::from_millis(15));
            }
        }
        drop(all);
        let shown = paper.0.lock().unwrap().clone();
        for word in ["epochs [", "epoch 2 [", " 1/3 ", "/s", "loss 2", "left)"] {
            assert!(shown.contains(word), "{word} is not in {shown}");
        }
    }

    #[test]
    fn all_items_come_through_whatever_their_number() {
        assert_eq!(progress(0..5).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!(progress(std::iter::empty::<u8>()).count(), 0);
        let bar = Progress::new(2);
        for _ in 0..2 {
            assert_eq!(bar.over(0..10).take(7).count(), 7, "more than announced");
        }
        assert_eq!(progress(std::iter::from_fn(|| Some(1))).take(3).count(), 3, "without an end");
    }

    #[test]
    fn a_line_says_what_a_bar_does() {
        let bar = Progress::on(ProgressDrawTarget::hidden(), Some(10)).label("epoch 1/2");
        bar.message("loss 0.5");
        bar.bar.inc(4);
        assert_eq!(bar.line(Duration::from_secs(2), false), "epoch 1/2  4/10  2.0/s  3 s left  loss 0.5");
        assert_eq!(bar.line(Duration::from_secs(2), true), "epoch 1/2  4/10  2.0/s  in 2 s  loss 0.5");
        let bar = Progress::on(ProgressDrawTarget::hidden(), None);
        bar.inc();
        assert_eq!(bar.line(Duration::from_secs(1), false), "1  1.0/s");
    }
}
