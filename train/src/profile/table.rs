//! A profile as a table.

use super::{Profile, Row, RowKind};
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

/// The parts of the table, in their order.
const PARTS: [(&str, RowKind); 3] =
    [("forward", RowKind::Forward), ("backward", RowKind::Backward), ("spans", RowKind::Span)];

/// The rows that a table shows by default.
const ROWS: usize = 20;

/// A [`Profile`] as text: the rows with the most self time, and one row for the others of each part.
///
/// All threads besides that of the profile, such as the workers of a loader, are summed up in one part
/// "other threads". Their time runs beside that of the program, so its share can be above 100 %.
///
/// ```
/// use namegrad::prelude::*;
/// use namegrad::train::profile::profile;
/// let x = Tensor::randn([100])?;
/// let (result, profile) = profile(|| -> Result<Tensor> {
///     let y = x.exp()?.add(1.0)?;
///     y.exp()?.sqrt()?.sin()
/// });
/// result?;
/// let table = profile.table().by_op().rows(2).to_string();
/// assert!(table.contains("… 2 others")); // of `exp`, `add`, `sqrt` and `sin`
/// println!("{}", profile.table().by_line());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Table<'p> {
    profile: &'p Profile,
    rows: usize,
    grouping: Grouping,
}

/// The rows of a profile that become one row of the table.
#[derive(Clone, Copy, Debug)]
enum Grouping {
    /// Each row of the profile is a row of the table: an op at a line.
    OpAndLine,
    Op,
    Line,
}

/// A file and a line in it. Calls in one line differ in their columns.
type SourceLine = (&'static str, u32);

fn line_of(row: &Row) -> SourceLine {
    (row.at.file(), row.at.line())
}

/// Whether a row is of another thread than that of the profile. Loaders start new workers in each epoch, so
/// threads with the same work can be many.
fn is_elsewhere(row: &Row) -> bool {
    row.thread > 0
}

/// A row of the table.
struct TableRow<'p> {
    /// The first of its rows.
    first: &'p Row,
    /// The ops, and the lines, that it has rows of.
    names: Vec<&'static str>,
    lines: Vec<SourceLine>,
    calls: u64,
    total: Duration,
    own: Duration,
    share: f64,
    bytes: u64,
}

impl Profile {
    /// The profile as a table, of which you can choose the rows. `println!("{profile}")` prints it with the
    /// 20 rows that took the most time; [`rows`](Self::rows) has all of them.
    pub fn table(&self) -> Table<'_> {
        Table { profile: self, rows: ROWS, grouping: Grouping::OpAndLine }
    }
}

impl Table<'_> {
    /// The number of rows that are shown; the others are summed up. The default is 20.
    pub fn rows(mut self, rows: usize) -> Self {
        self.rows = rows;
        self
    }

    /// Makes one row for each op, for all lines that call it.
    pub fn by_op(mut self) -> Self {
        self.grouping = Grouping::Op;
        self
    }

    /// Makes one row for each line of the program, for all ops that it calls.
    pub fn by_line(mut self) -> Self {
        self.grouping = Grouping::Line;
        self
    }

    /// The rows of all parts, those with the most own time first.
    fn groups(&self) -> Vec<TableRow<'_>> {
        let mut groups: Vec<TableRow<'_>> = Vec::new();
        let mut places = HashMap::new();
        let rows = self.profile.rows.iter().filter(|row| PARTS.iter().any(|(_, kind)| *kind == row.kind));
        for row in rows {
            let line = line_of(row);
            let key = match self.grouping {
                Grouping::OpAndLine => (Some(row.name), Some(line)),
                Grouping::Op => (Some(row.name), None),
                Grouping::Line => (None, Some(line)),
            };
            let place = *places.entry((is_elsewhere(row), row.kind, key)).or_insert(groups.len());
            match groups.get_mut(place) {
                Some(group) => group.add(row),
                None => groups.push(TableRow::of(row)),
            }
        }
        groups.sort_by_key(|group| std::cmp::Reverse(group.own)); // stable
        groups
    }
}

impl<'p> TableRow<'p> {
    fn of(row: &'p Row) -> TableRow<'p> {
        let Row { name, calls, total, own, share, bytes, .. } = *row;
        TableRow { first: row, names: vec![name], lines: vec![line_of(row)], calls, total, own, share, bytes }
    }

    fn add(&mut self, row: &'p Row) {
        if !self.names.contains(&row.name) {
            self.names.push(row.name);
        }
        let line = line_of(row);
        if !self.lines.contains(&line) {
            self.lines.push(line);
        }
        self.calls += row.calls;
        self.total += row.total;
        self.own += row.own;
        self.share += row.share;
        self.bytes += row.bytes;
    }

    fn name(&self) -> String {
        match self.names[..] {
            [name] => format!("  {name}"),
            _ => format!("  {} ops", self.names.len()),
        }
    }

    fn line(&self) -> String {
        match self.lines[..] {
            [(file, line)] => format!("{file}:{line}"),
            _ => format!("{} lines", self.lines.len()),
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table().fmt(f)
    }
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (profile, groups) = (self.profile, self.groups());
        let shown = &groups[..self.rows.min(groups.len())];
        let width = shown.iter().map(|group| group.name().chars().count()).max().unwrap_or(0).max(16);
        let cells = |f: &mut fmt::Formatter<'_>, cells: [&str; 7]| {
            let [name, calls, total, own, share, bytes, line] = cells;
            let text =
                format!("{name:width$}  {calls:>8}  {total:>10}  {own:>10}  {share:>7}  {bytes:>10}  {line}");
            f.write_str(text.trim_end())
        };
        cells(f, ["", "calls", "total", "self", "share", "allocated", "line"])?;
        let parts =
            [false, true].into_iter().flat_map(|other| PARTS.map(|(title, kind)| (other, title, kind)));
        for (elsewhere, title, kind) in parts {
            let is_here =
                |group: &&TableRow<'_>| is_elsewhere(group.first) == elsewhere && group.first.kind == kind;
            let all: Vec<&TableRow<'_>> = groups.iter().filter(is_here).collect();
            if all.is_empty() {
                continue;
            }
            let title = if elsewhere { format!("{title}, other threads") } else { title.to_string() };
            let sums = |groups: &[&TableRow<'_>]| {
                let own: Duration = groups.iter().map(|group| group.own).sum();
                (time(own), percent(groups.iter().map(|group| group.share).sum()))
            };
            let (own, share) = sums(&all);
            f.write_str("\n")?;
            cells(f, [&title, "", "", &own, &share, "", ""])?;
            let (shown, others) = all.split_at(shown.iter().filter(is_here).count());
            for group in shown {
                let calls = group.calls.to_string();
                let (total, own, share) = (time(group.total), time(group.own), percent(group.share));
                f.write_str("\n")?;
                cells(f, [&group.name(), &calls, &total, &own, &share, &size(group.bytes), &group.line()])?;
            }
            if !others.is_empty() {
                let word = if others.len() == 1 { "other" } else { "others" };
                let title = format!("  … {} {word}", others.len());
                let calls: u64 = others.iter().map(|group| group.calls).sum();
                let (own, share) = sums(others);
                let bytes = size(others.iter().map(|group| group.bytes).sum());
                f.write_str("\n")?;
                cells(f, [&title, &calls.to_string(), "", &own, &share, &bytes, ""])?;
            }
        }
        let is_rest = |row: &&Row| matches!(row.kind, RowKind::Outside | RowKind::Profile);
        for Row { name, own, share, bytes, .. } in profile.rows.iter().filter(is_rest) {
            f.write_str("\n")?;
            cells(f, [name, "", "", &time(*own), &percent(*share), &size(*bytes), ""])?;
        }
        let (total, bytes) = (time(profile.total), size(profile.allocated));
        f.write_str("\n")?;
        cells(f, ["in all", "", &total, &total, "100.0 %", &bytes, ""])
    }
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
