//! The lines of `log.csv`: `step,name,value`, one for each scalar.
//!
//! A name can appear at any time, which would be a new column in the middle of a table with a column for each
//! name. So there is a line for each number. Values that are not finite are `NaN`, `inf` and `-inf`, which
//! Rust, NumPy and pandas read.

use super::value::{Content, Record};

/// The first line.
pub(super) const HEADER: &str = "step,name,value\n";

/// The line of a scalar.
pub(super) fn line(record: &Record) -> Option<String> {
    let Content::Scalar(value) = record.content else { return None };
    let name = match record.name.contains([',', '"']) {
        true => format!("\"{}\"", record.name.replace("\"", "\"\"")),
        false => record.name.clone(),
    };
    Some(format!("{},{name},{value:?}\n", record.step))
}

/// The record of a line, or what is wrong with it.
pub(super) fn record(line: &str) -> Result<Record, String> {
    let expected = || "expected step,name,value".to_string();
    let (step, rest) = line.split_once(',').ok_or_else(expected)?;
    let (name, value) = rest.rsplit_once(',').ok_or_else(expected)?;
    let step = step.parse().map_err(|_| format!("'{step}' is not a step"))?;
    let name = match name.strip_prefix('"') {
        None if !name.contains([',', '"']) => name.to_string(),
        None => return Err(expected()),
        Some(quoted) => quoted.strip_suffix('"').ok_or_else(expected)?.replace("\"\"", "\""),
    };
    let value = number(value).ok_or_else(|| format!("'{value}' is not a number"))?;
    Ok(Record { step, name, content: Content::Scalar(value) })
}

/// A number, `NaN`, `inf` or `Infinity` with or without a sign.
pub(super) fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip() {
        for name in ["loss", "loss, train", "a \"b\"", "\"", ",", "\",\""] {
            for value in [0.1, -0.0, f64::MIN_POSITIVE, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                let written = Record { step: 7, name: name.into(), content: Content::Scalar(value) };
                let line = line(&written).unwrap();
                assert_eq!(format!("{:?}", record(line.trim_end()).unwrap()), format!("{written:?}"));
            }
        }
    }

    #[test]
    fn a_line_that_is_none_is_an_error() {
        for line in ["", "1", "1,a", "x,a,1", "1,a,x", "1,\"a,1", "1,a,b,1"] {
            assert!(record(line).is_err(), "{line}");
        }
    }
}
