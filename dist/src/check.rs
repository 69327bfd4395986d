//! The check that all ranks make the same call. Each rank describes its call; the descriptions are compared by
//! a hash, in one all-reduce of 16 bytes, and exchanged only if they differ.

use crate::backend::{Reduction, Transfer};
use crate::group::{Group, room};
use namegrad::core::{DType, NamedTensor};
use namegrad::{Error, ErrorKind, Result};
use std::panic::Location;

impl Group {
    /// An error on all ranks unless they all give the same description, which may have several lines. The error
    /// has the first line that differs, and which ranks gave what.
    #[track_caller]
    pub(crate) fn check(&self, description: &str) -> Result<()> {
        self.check_at(description, Location::caller())
    }

    /// [`check`](Self::check) of a call at another line.
    #[track_caller]
    pub(crate) fn check_at(&self, description: &str, at: &'static Location<'static>) -> Result<()> {
        if self.size() == 1 || self.is_pretended() {
            return Ok(());
        }
        self.check_together()?;
        let hash = hash(description.as_bytes());
        let mine = NamedTensor::from_slice(&[hash, !hash], [2])?;
        let call = (description.lines().next().unwrap_or(""), at);
        let most = self.transfer(Transfer::AllReduce(Reduction::Max), mine, room(DType::I64, [2])?, call)?;
        match most.as_slice::<i64>()? {
            // `!` reverses the order of numbers, so these are the greatest and the least hash.
            [most, least] if *most == !*least => Ok(()),
            _ => Err(self.differing(description, at)?),
        }
    }

    /// The error of ranks whose descriptions differ.
    #[cold]
    fn differing(&self, description: &str, at: &'static Location<'static>) -> Result<Error> {
        self.lose();
        let mut mine = format!("{at}\n{description}").into_bytes();
        let length = NamedTensor::from_slice(&[mine.len() as i64], [1])?;
        let longest = self.transfer(
            Transfer::AllReduce(Reduction::Max),
            length,
            room(DType::I64, [1])?,
            (description, at),
        )?;
        mine.resize(longest.as_slice::<i64>()?[0] as usize, b' ');
        let mine = NamedTensor::from_slice(&mine, [mine.len()])?;
        let received = room(DType::U8, [mine.numel() * self.size()])?;
        let all = self.transfer(Transfer::AllGather, mine, received, (description, at))?;
        let texts: Vec<String> = all
            .as_slice::<u8>()?
            .chunks(all.numel() / self.size())
            .map(|text| String::from_utf8_lossy(text).trim_end().to_string())
            .collect();
        Ok(Error::new(ErrorKind::Value, "Group", difference(&texts)).at(at))
    }
}

/// Says how the descriptions of the ranks differ. Each has a line for the place of the call in front.
fn difference(texts: &[String]) -> String {
    let split: Vec<(&str, Vec<&str>)> = texts
        .iter()
        .map(|text| text.split_once('\n').unwrap_or((text, "")))
        .map(|(at, description)| (at, description.lines().collect()))
        .collect();
    let longest = split.iter().map(|(_, lines)| lines.len()).max().unwrap_or(0);
    let line =
        (0..longest).find(|line| split.iter().any(|(_, lines)| lines.get(*line) != split[0].1.get(*line)));
    let mut sides: Vec<(String, Vec<usize>)> = Vec::new();
    for (rank, (at, lines)) in split.iter().enumerate() {
        let text = line.and_then(|line| lines.get(line)).unwrap_or(&"nothing more");
        let heading = match line {
            Some(0) | None => String::new(),
            Some(_) => format!("{}: ", lines.first().unwrap_or(&"")),
        };
        let side = format!("{heading}{text} at {at}");
        match sides.iter_mut().find(|(other, _)| *other == side) {
            Some((_, ranks)) => ranks.push(rank),
            None => sides.push((side, vec![rank])),
        }
    }
    let sides: Vec<String> = sides.iter().map(|(side, ranks)| format!("{}: {side}", listed(ranks))).collect();
    format!("the ranks differ: {}", sides.join("; "))
}

/// Where ranks wait for the others, as they say.
pub(crate) fn waiting(words: &[Option<String>]) -> String {
    let mut sides: Vec<(&str, Vec<usize>)> = Vec::new();
    let mut silent = Vec::new();
    for (rank, text) in words.iter().enumerate() {
        let Some(text) = text else {
            silent.push(rank);
            continue;
        };
        match sides.iter_mut().find(|(other, _)| other == text) {
            Some((_, ranks)) => ranks.push(rank),
            None => sides.push((text, vec![rank])),
        }
    }
    let (wait, are) =
        (|ranks: &[usize]| if ranks.len() == 1 { "waits" } else { "wait" }, "computing, or have ended");
    let mut all: Vec<String> =
        sides.iter().map(|(text, ranks)| format!("{} {} in {text}", listed(ranks), wait(ranks))).collect();
    match silent.len() {
        0 => {}
        1 => all.push(format!("{} is computing, or has ended", listed(&silent))),
        _ => all.push(format!("{} are {are}", listed(&silent))),
    }
    all.join("; ")
}

/// "rank 3" or "ranks 0, 1, 3 to 7".
fn listed(ranks: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *rank => *last = *rank,
            _ => runs.push((*rank, *rank)),
        }
    }
    let words: Vec<String> = runs
        .iter()
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first}, {last}"),
            _ => format!("{first} to {last}"),
        })
        .collect();
    format!("{} {}", if ranks.len() == 1 { "rank" } else { "ranks" }, words.join(", "))
}

/// The FNV-1a hash.
fn hash(bytes: &[u8]) -> i64 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_listed_in_runs() {
        assert_eq!(listed(&[3]), "rank 3");
        assert_eq!(listed(&[0, 1, 3, 4, 5]), "ranks 0, 1, 3 to 5");
    }

    #[test]
    fn the_first_line_that_differs_is_said() {
        let texts =
            ["a.rs:1:1\nmodel\nw [3]\nb [1]", "a.rs:1:1\nmodel\nw [3]\nc [1]", "a.rs:1:1\nmodel\nw [3]"];
        let message = difference(&texts.map(String::from));
        let expected = "the ranks differ: rank 0: model: b [1] at a.rs:1:1; rank 1: model: c [1] at a.rs:1:1; \
                        rank 2: model: nothing more at a.rs:1:1";
        assert_eq!(message, expected);
    }
}
