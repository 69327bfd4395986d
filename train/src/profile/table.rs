//! A profile as a table.

use super::{Profile, Row, RowKind};
use namegrad_io::sorted;
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
    /// Each row of the profile is a row of the table: an op in a layer at a line.
    OpAndLine,
    /// A layer, for all of its ops.
    Layer,
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
    /// The place of the first row in the profile.
    place: usize,
    /// The ops, the lines and the layers that it has rows of.
    names: Vec<&'static str>,
    lines: Vec<SourceLine>,
    layers: Vec<Option<&'p str>>,
    sums: Sums,
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

    /// Makes one row for each layer, for all ops that it calls: what a layer costs, forward and backward.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::train::profile::profile;
    /// let model = Sequential::new().then(Linear::new(("in", 4), ("h", 4))?).then_named("squash", Tanh);
    /// let (y, profile) = profile(|| model.forward(&Tensor::ones([("N", 2), ("in", 4)])?));
    /// y?;
    /// assert!(profile.table().by_layer().to_string().contains("squash"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn by_layer(mut self) -> Self {
        self.grouping = Grouping::Layer;
        self
    }

    /// The rows of all parts, those with the most own time first.
    fn groups(&self) -> Vec<TableRow<'_>> {
        let rows = &self.profile.rows;
        let key = |at: usize| {
            let (row, line) = (&rows[at], line_of(&rows[at]));
            let (name, line, layer) = match self.grouping {
                Grouping::OpAndLine => (row.name, line, row.layer.as_deref()),
                Grouping::Layer => ("", ("", 0), row.layer.as_deref()),
                Grouping::Op => (row.name, ("", 0), None),
                Grouping::Line => ("", line, None),
            };
            (is_elsewhere(row), row.kind, name, line, layer)
        };
        let mut groups: Vec<TableRow<'_>> = Vec::new();
        let mut last = None;
        for at in sorted::order(rows.len(), &|a, b| key(a) < key(b)) {
            if PARTS.iter().all(|(_, kind)| *kind != rows[at].kind) {
                continue;
            }
            match groups.last_mut() {
                Some(group) if last == Some(key(at)) => group.add(&rows[at]),
                _ => groups.push(TableRow::of(at, &rows[at])),
            }
            last = Some(key(at));
        }
        sorted::sort(&mut groups, &|a, b| (b.sums.own, a.place) < (a.sums.own, b.place));
        groups
    }
}

impl<'p> TableRow<'p> {
    fn of(place: usize, row: &'p Row) -> TableRow<'p> {
        let (names, lines, layers) = (vec![row.name], vec![line_of(row)], vec![row.layer.as_deref()]);
        TableRow { first: row, place, names, lines, layers, sums: Sums::of(row) }
    }

    fn add(&mut self, row: &'p Row) {
        if !self.names.contains(&row.name) {
            self.names.push(row.name);
        }
        let line = line_of(row);
        if !self.lines.contains(&line) {
            self.lines.push(line);
        }
        if !self.layers.contains(&row.layer.as_deref()) {
            self.layers.push(row.layer.as_deref());
        }
        self.sums.add(Sums::of(row));
    }

    fn name(&self) -> String {
        match self.names[..] {
            [name] => format!("  {name}"),
            _ => format!("  {} ops", self.names.len()),
        }
    }

    /// The line, and the layer if it is one.
    fn line(&self) -> String {
        let line = match self.lines[..] {
            [(file, line)] => format!("{file}:{line}"),
            _ => format!("{} lines", self.lines.len()),
        };
        match self.layers[..] {
            [Some(layer)] => format!("{line} in {layer}"),
            _ => line,
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
        let shown = self.rows.min(groups.len());
        let mut width = 16;
        for group in &groups[..shown] {
            width = width.max(group.name().chars().count());
        }
        let mut lines = Lines { width, text: String::new() };
        lines.add(["", "calls", "total", "self", "share", "allocated", "line and layer"]);
        for elsewhere in [false, true] {
            for (title, kind) in PARTS {
                lines.add_part(&groups, shown, title, kind, elsewhere);
            }
        }
        for row in &profile.rows {
            if matches!(row.kind, RowKind::Outside | RowKind::Profile) {
                lines.add_numbers(row.name, [false, false, true], Sums::of(row), "");
            }
        }
        let (total, bytes) = (profile.total, profile.allocated);
        let all = Sums { calls: 0, total, own: total, share: 1.0, bytes };
        lines.add_numbers("in all", [false, true, true], all, "");
        f.write_str(&lines.text)
    }
}

/// The lines of a table, whose first column has this width.
struct Lines {
    width: usize,
    text: String,
}

impl Lines {
    fn add(&mut self, cells: [&str; 7]) {
        let [name, calls, total, own, share, bytes, line] = cells;
        let width = self.width;
        let line =
            format!("{name:width$}  {calls:>8}  {total:>10}  {own:>10}  {share:>7}  {bytes:>10}  {line}");
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(line.trim_end());
    }

    /// A line, of whose numbers of calls, total time and bytes those are empty that are not shown.
    #[inline(never)]
    fn add_numbers(&mut self, name: &str, shown: [bool; 3], sums: Sums, line: &str) {
        let [calls, total, bytes] = shown;
        let or_empty = |shown: bool, text: String| if shown { text } else { String::new() };
        let calls = or_empty(calls, sums.calls.to_string());
        let (total, bytes) = (or_empty(total, time(sums.total)), or_empty(bytes, size(sums.bytes)));
        self.add([name, &calls, &total, &time(sums.own), &percent(sums.share), &bytes, line]);
    }

    /// The groups of a kind of op, if there are any. The first `shown` of all groups have lines of their own.
    fn add_part(
        &mut self,
        groups: &[TableRow<'_>],
        shown: usize,
        title: &str,
        kind: RowKind,
        elsewhere: bool,
    ) {
        let (mut rows, mut count, mut all, mut others) = (Vec::new(), 0, Sums::default(), Sums::default());
        for (at, group) in groups.iter().enumerate() {
            if is_elsewhere(group.first) != elsewhere || group.first.kind != kind {
                continue;
            }
            all.add(group.sums);
            match at < shown {
                true => rows.push(group),
                false => {
                    others.add(group.sums);
                    count += 1;
                }
            }
        }
        if rows.is_empty() && count == 0 {
            return;
        }
        let title = format!("{title}{}", if elsewhere { ", other threads" } else { "" });
        self.add_numbers(&title, [false; 3], all, "");
        for group in rows {
            self.add_numbers(&group.name(), [true; 3], group.sums, &group.line());
        }
        if count > 0 {
            let title = format!("  … {count} other{}", if count == 1 { "" } else { "s" });
            self.add_numbers(&title, [true, false, true], others, "");
        }
    }
}

/// The sums of several rows.
#[derive(Clone, Copy, Default)]
struct Sums {
    calls: u64,
    total: Duration,
    own: Duration,
    share: f64,
    bytes: u64,
}

impl Sums {
    fn of(row: &Row) -> Sums {
        let Row { calls, total, own, share, bytes, .. } = *row;
        Sums { calls, total, own, share, bytes }
    }

    fn add(&mut self, other: Sums) {
        self.calls += other.calls;
        self.total += other.total;
        self.own += other.own;
        self.share += other.share;
        self.bytes += other.bytes;
    }
}

pub(crate) fn percent(share: f64) -> String {
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

pub(crate) fn size(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["B", "KiB", "MiB"] {
        if size < 1024.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{size:.1} {unit}") };
        }
        size /= 1024.0;
    }
    format!("{size:.1} GiB")
}
