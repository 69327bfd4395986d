//! Patterns of paths, such as `blocks.*.norm`.

use namegrad_core::names::{closest, edit_distance};
use namegrad_core::{Error, ErrorKind};

/// A pattern of paths: `*` is any text without a dot, `**` any text, `**.` any number of whole segments, and
/// `?` one character other than a dot.
pub struct Pattern {
    text: String,
    parts: Vec<PatternPart>,
}

#[derive(Clone, Copy, PartialEq)]
enum PatternPart {
    Char(char),
    /// `?`
    One,
    /// `*`
    Segment,
    /// `**`
    Any,
    /// `**.`
    Segments,
}

impl Pattern {
    /// The pattern with this text.
    pub fn new(text: &str) -> Pattern {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some(first) = rest.chars().next() {
            let (part, length) = match first {
                _ if rest.starts_with("**.") => (PatternPart::Segments, 3),
                _ if rest.starts_with("**") => (PatternPart::Any, 2),
                '*' => (PatternPart::Segment, 1),
                '?' => (PatternPart::One, 1),
                first => (PatternPart::Char(first), first.len_utf8()),
            };
            parts.push(part);
            rest = &rest[length..];
        }
        Pattern { text: text.into(), parts }
    }

    /// The texts in place of the stars and question marks, if the pattern matches the path.
    pub fn captures<'p>(&self, path: &'p str) -> Option<Vec<&'p str>> {
        // Where each part begins; the last one that can take more takes more when the rest does not fit.
        let mut starts = vec![0];
        let mut lengths: Vec<usize> = Vec::new();
        let mut least = 0; // the shortest length that the part at hand may take
        loop {
            let (at, start) = (lengths.len(), starts[lengths.len()]);
            let taken = match self.parts.get(at) {
                Some(part) => part.takes(&path[start..], least),
                None if start == path.len() => break,
                None => None,
            };
            if let Some(length) = taken {
                lengths.push(length);
                starts.push(start + length);
                least = 0;
            } else {
                // Back to the part before, which is to take more.
                starts.pop();
                least = lengths.pop()? + 1;
            }
        }
        let each = self.parts.iter().zip(starts.iter().zip(&lengths));
        let texts = each.filter(|(part, _)| !matches!(part, PatternPart::Char(_)));
        Some(texts.map(|(_, (start, length))| &path[*start..start + length]).collect())
    }

    /// Whether the pattern matches the path or that of a module around it.
    pub fn covers(&self, path: &str) -> bool {
        let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
        ends.into_iter().any(|end| self.captures(&path[..end]).is_some())
    }

    /// The pattern with texts in place of its stars and question marks, in order. If there are fewer texts,
    /// the others are empty.
    pub fn filled(&self, texts: &[&str]) -> String {
        let mut texts = texts.iter();
        let mut path = String::new();
        for part in &self.parts {
            match part {
                PatternPart::Char(char) => path.push(*char),
                _ => {
                    let text = texts.next().copied().unwrap_or_default().trim_end_matches('.');
                    path.push_str(text);
                    if *part == PatternPart::Segments && !text.is_empty() {
                        path.push('.');
                    }
                }
            }
        }
        path
    }

    /// The number of stars and question marks.
    pub fn stars(&self) -> usize {
        self.parts.iter().filter(|part| !matches!(part, PatternPart::Char(_))).count()
    }

    /// The error of a pattern that matches none of these paths.
    #[cold]
    #[track_caller]
    pub fn unmatched<'p>(
        &self,
        op: &'static str,
        what: &str,
        paths: impl Iterator<Item = &'p str> + Clone,
    ) -> Error {
        let text = &self.text;
        let error = Error::new(
            ErrorKind::Value,
            op,
            match paths.clone().next() {
                None => format!("no {what} matches '{text}', because there is none"),
                Some(_) => format!(
                    "no {what} matches '{text}'; the nearest: {}",
                    nearest(text, paths.clone()).join(", ")
                ),
            },
        );
        let corrected = by_distance(text, paths.clone()).first().and_then(|path| corrected(text, path));
        match corrected.or_else(|| closest(text, paths).map(String::from)) {
            Some(path) => error.with_repair(format!("did you mean '{path}'?")),
            None => error,
        }
    }
}

impl PatternPart {
    /// The number of bytes that the part takes from the start of `rest`, at least `least`.
    fn takes(self, rest: &str, least: usize) -> Option<usize> {
        let first = rest.chars().next();
        let fixed = |fits: bool| first.filter(|_| fits).map(char::len_utf8).filter(|length| *length >= least);
        match self {
            PatternPart::Char(char) => fixed(first == Some(char)),
            PatternPart::One => fixed(first != Some('.')),
            _ => {
                let length = (least..=rest.len()).find(|length| rest.is_char_boundary(*length))?;
                match self {
                    PatternPart::Segment => (!rest[..length].contains('.')).then_some(length),
                    PatternPart::Segments => (length..=rest.len())
                        .find(|length| *length == 0 || rest.as_bytes()[*length - 1] == b'.'),
                    _ => Some(length),
                }
            }
        }
    }
}

/// Up to five of the paths, those most like `wanted` first, which is a path or a pattern.
pub fn nearest<'p>(wanted: &str, paths: impl Iterator<Item = &'p str>) -> Vec<String> {
    let all = by_distance(wanted, paths);
    let mut found: Vec<String> = all.iter().take(5).map(|path| format!("'{path}'")).collect();
    if all.len() > 5 {
        found.push("...".into());
    }
    found
}

/// The paths, those most like `wanted` first. Of equals, the earlier one is first.
fn by_distance<'p>(wanted: &str, paths: impl Iterator<Item = &'p str>) -> Vec<&'p str> {
    let mut all: Vec<(usize, &str)> = paths.map(|path| (distance(wanted, path), path)).collect();
    all.sort_by_key(|(distance, _)| *distance);
    all.into_iter().map(|(_, path)| path).collect()
}

/// The cost of a segment that the pattern lacks, or that has nothing in common with that of the path.
const SEGMENT: usize = 100;

/// The cost of a segment that only the pattern has.
const SUPERFLUOUS: usize = 150;

/// The cost of a segment at the end of the path that the pattern lacks. It is low because a pattern is often
/// that of a module.
const REST: usize = 25;

/// The edit distance between the segments of a pattern and those of a path. `*` is like any segment, and `**`
/// like any number of them.
fn distance(pattern: &str, path: &str) -> usize {
    let path: Vec<&str> = path.split('.').collect();
    // From the segments of the pattern so far to the first `j` of the path.
    let mut row: Vec<usize> = (0..=path.len()).map(|j| j * SEGMENT).collect();
    for wanted in pattern.split('.') {
        let (lacking, superfluous) = if wanted == "**" { (0, 0) } else { (SEGMENT, SUPERFLUOUS) };
        let mut diagonal = row[0];
        row[0] += superfluous;
        for (j, segment) in path.iter().enumerate() {
            let replaced = diagonal + unlike(wanted, segment);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + lacking).min(diagonal + superfluous);
        }
    }
    let with_rest = |(j, cost): (usize, &usize)| cost + REST * (path.len() - j);
    row.iter().enumerate().map(with_rest).min().unwrap_or(0)
}

/// The difference between a segment of a pattern and that of a path, from 0 to [`SEGMENT`].
fn unlike(wanted: &str, segment: &str) -> usize {
    if Pattern::new(wanted).captures(segment).is_some() {
        return 0;
    }
    (SEGMENT * edit_distance(wanted, segment)).div_ceil(wanted.len().max(segment.len()))
}

/// The pattern with the segments of the path where they differ, if few do and it matches the path then. A
/// pattern of wildcards alone is none: it would match paths that nobody meant.
fn corrected(pattern: &str, path: &str) -> Option<String> {
    let segments: Vec<&str> = path.split('.').collect();
    // How much the pattern so far differs from the first `j` segments of the path, and what it should be.
    let mut row: Vec<Option<(usize, Vec<&str>)>> = vec![None; segments.len() + 1];
    row[0] = Some((0, Vec::new()));
    for wanted in pattern.split('.') {
        let longer = |(cost, so_far): &(usize, Vec<_>), more: usize, segment| {
            (cost + more, [so_far.as_slice(), &[segment]].concat())
        };
        let next = |j: usize| match wanted {
            "**" => {
                let least = row[..=j].iter().flatten().min_by_key(|(cost, _)| *cost)?;
                Some(longer(least, 0, wanted))
            }
            _ => {
                let segment = segments[j.checked_sub(1)?];
                match unlike(wanted, segment) {
                    0 => Some(longer(row[j - 1].as_ref()?, 0, wanted)),
                    cost if cost <= SEGMENT / 2 => Some(longer(row[j - 1].as_ref()?, cost, segment)),
                    _ => None,
                }
            }
        };
        row = (0..row.len()).map(next).collect();
    }
    let corrected = row.pop().flatten()?.1.join(".");
    let says_something = corrected.contains(|letter| !matches!(letter, '*' | '?' | '.'));
    (says_something && Pattern::new(&corrected).captures(path).is_some()).then_some(corrected)
}

#[cfg(test)]
mod tests {
    use super::{Pattern, nearest};

    #[test]
    fn stars() {
        let found = |pattern, path| Pattern::new(pattern).captures(path).map(|texts| texts.join("|"));
        for (pattern, path, want) in [
            ("a.b", "a.b", Some("")),
            ("a.*", "a.b", Some("b")),
            ("a.*", "a.b.c", None),
            ("a.**", "a.b.c", Some("b.c")),
            ("**.c", "a.b.c", Some("a.b.")),
            ("**.c", "c", Some("")),
            ("a.**.c", "a.c", Some("")),
            ("*.x*.?", "ab.xy.z", Some("ab|y|z")),
            ("*a*a", "banana", Some("b|nan")),
            ("a?", "a.", None),
            ("", "a", None),
            ("**", "", Some("")),
            ("**.c", "a.bc", None),
        ] {
            assert_eq!(found(pattern, path).as_deref(), want, "{pattern} {path}");
        }
        assert!(Pattern::new("blocks.*.norm").covers("blocks.0.norm.weight"));
        assert!(!Pattern::new("norm").covers("norms.weight"));
    }

    #[test]
    fn paths_near_a_wrong_pattern() {
        let paths = [
            "embed.weight",
            "encoder.norm.weight",
            "encoder.layers.0.linear.weight",
            "encoder.layers.0.linear.bias",
            "encoder.layers.1.linear.weight",
            "decoder.layers.0.linear.weight",
            "head.weight",
        ];
        for (wanted, first) in [
            ("encoder.layer.*.linear.weight", &paths[2..3]),
            ("encoder.layer.*.weight", &paths[2..3]),
            ("encoder.layer", &paths[2..5]),
            ("encoder.layer.**", &paths[2..5]),
            ("layers.*.linear.weigth", &[paths[2], paths[4], paths[5]]),
            ("decoder.layers.3.linear.weight", &paths[5..6]),
            ("embedding.weight", &paths[..1]),
            ("**.weights", &paths[..1]),
        ] {
            let found = nearest(wanted, paths.into_iter());
            let first: Vec<String> = first.iter().map(|path| format!("'{path}'")).collect();
            assert_eq!(found[..first.len()], first, "{wanted}: {found:?}");
            assert_eq!((found.len(), found[5].as_str()), (6, "..."));
        }
        let repair = |wanted: &str| {
            let error = Pattern::new(wanted).unmatched("freeze", "parameter", paths.into_iter());
            error.repair().map(String::from)
        };
        let meant = |path: &str| Some(format!("did you mean '{path}'?"));
        assert_eq!(repair("encoder.layer.*.*.weight"), meant("encoder.layers.*.*.weight"));
        assert_eq!(repair("encoder.layer.**"), meant("encoder.layers.**"));
        assert_eq!(repair("embbed.weight"), meant("embed.weight"));
        assert_eq!(repair("**.gamma.x.y"), None);
        assert_eq!(repair("**.weigths"), meant("**.weight"));
        assert_eq!(repair("encoder.**.norms.*"), meant("encoder.**.norm.*"));
        assert_eq!(repair("**.layer.**.bias"), meant("**.layers.**.bias"));
        let of_one_layer = |wanted: &str| {
            let error = Pattern::new(wanted).unmatched("AdamW", "parameter", ["weight", "bias"].into_iter());
            error.repair().map(String::from)
        };
        assert_eq!(of_one_layer("**.biases"), meant("**.bias"));
        assert_eq!(of_one_layer("**.b"), None);
        assert_eq!(of_one_layer("*.*.*"), None);
    }

    #[test]
    fn filled() {
        let renamed = |from, to, path| Pattern::new(to).filled(&Pattern::new(from).captures(path).unwrap());
        assert_eq!(renamed("model.**", "**", "model.a.b"), "a.b");
        assert_eq!(renamed("**", "model.**", "a.b"), "model.a.b");
        assert_eq!(renamed("enc.*.attn.**", "blocks.*.**", "enc.3.attn.q.weight"), "blocks.3.q.weight");
        assert_eq!(renamed("**.gamma", "**.weight", "a.b.gamma"), "a.b.weight");
        assert_eq!(renamed("**.gamma", "**.weight", "gamma"), "weight");
    }
}
