//! A profile as a table.

use super::{Profile, Row, RowKind};
use std::fmt;
use std::time::Duration;

/// The parts of the table, in their order.
const PARTS: [(&str, RowKind); 3] =
    [("forward", RowKind::Forward), ("backward", RowKind::Backward), ("spans", RowKind::Span)];

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.iter().map(|row| row.name.len() + 2).max().unwrap_or(0).max(16);
        writeln!(
            f,
            "{:width$}  {:>8}  {:>10}  {:>10}  {:>7}  {:>10}  line",
            "", "calls", "total", "self", "share", "allocated"
        )?;
        let threads = self.rows.iter().map(|row| row.thread).max().unwrap_or(0);
        for thread in 0..=threads {
            for (title, kind) in PARTS {
                let rows = || self.rows.iter().filter(|row| row.thread == thread && row.kind == kind);
                if rows().next().is_none() {
                    continue;
                }
                let own: Duration = rows().map(|row| row.own).sum();
                let share: f64 = rows().map(|row| row.share).sum();
                let title = if thread == 0 { title.to_string() } else { format!("{title}, thread {thread}") };
                let (own, share) = (time(own), percent(share));
                writeln!(f, "{title:width$}  {:>8}  {:>10}  {own:>10}  {share:>7}", "", "")?;
                rows().try_for_each(|row| {
                    line(f, row, width, &format!("{}:{}", row.at.file(), row.at.line()))
                })?;
            }
        }
        let rest = self.rows.iter().filter(|row| matches!(row.kind, RowKind::Outside | RowKind::Profile));
        for Row { name, own, share, bytes, .. } in rest {
            let (own, share, bytes) = (time(*own), percent(*share), size(*bytes));
            writeln!(f, "{name:width$}  {:>8}  {:>10}  {own:>10}  {share:>7}  {bytes:>10}", "", "")?;
        }
        let (total, bytes) = (time(self.total), size(self.allocated));
        write!(f, "{:width$}  {:>8}  {total:>10}  {total:>10}  {:>7}  {bytes:>10}", "in all", "", "100.0 %")
    }
}

fn line(f: &mut fmt::Formatter<'_>, row: &Row, width: usize, at: &str) -> fmt::Result {
    let Row { name, calls, total, own, share, bytes, .. } = row;
    let (total, own, share, bytes) = (time(*total), time(*own), percent(*share), size(*bytes));
    let name = format!("  {name}");
    writeln!(f, "{name:width$}  {calls:>8}  {total:>10}  {own:>10}  {share:>7}  {bytes:>10}  {at}")
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        _ if seconds >= 1.0 => format!("{seconds:.3} s"),
        _ if seconds >= 1e-3 => format!("{:.3} ms", seconds * 1e3),
        _ => format!("{:.2} µs", seconds * 1e6),
    }
}

fn size(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["B", "KiB", "MiB"] {
        if size < 1024.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{size:.1} {unit}") };
        }
        size /= 1024.0;
    }
    format!("{size:.1} GiB")
}
