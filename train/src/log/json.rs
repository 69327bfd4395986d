//! The lines of `log.jsonl`: one JSON object for each record.
//!
//! JSON has no NaN and no infinities. They are the strings `"NaN"`, `"Infinity"` and `"-Infinity"`, as in the
//! JSON form of protocol buffers.

use super::value::{Content, Hparam, Record};
use super::{Histogram, csv};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The name of hyperparameters in a record.
pub(super) const HPARAMS: &str = "hparams";

#[derive(Serialize, Deserialize)]
struct JsonLine<'a> {
    step: u64,
    name: Cow<'a, str>,
    #[serde(flatten)]
    content: JsonContent<'a>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum JsonContent<'a> {
    Value(#[serde(with = "number")] f64),
    Histogram(Cow<'a, Histogram>),
    Text(Cow<'a, str>),
    Hparams(Cow<'a, BTreeMap<String, Hparam>>),
}

/// The line of a record; none for an image.
pub(super) fn line(record: &Record) -> Option<String> {
    let content = match &record.content {
        Content::Scalar(value) => JsonContent::Value(*value),
        Content::Histogram(histogram) => JsonContent::Histogram(Cow::Borrowed(histogram)),
        Content::Text(text) => JsonContent::Text(Cow::Borrowed(text)),
        Content::Hparams(values) => JsonContent::Hparams(Cow::Borrowed(values)),
        Content::Image(_) => return None,
    };
    let line = JsonLine { step: record.step, name: Cow::Borrowed(&record.name), content };
    let mut line = serde_json::to_string(&line).ok()?;
    line.push('\n');
    Some(line)
}

/// The record of a line, or what is wrong with it.
pub(super) fn record(line: &str) -> Result<Record, String> {
    let JsonLine { step, name, content } = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let content = match content {
        JsonContent::Value(value) => Content::Scalar(value),
        JsonContent::Histogram(histogram) => Content::Histogram(histogram.into_owned()),
        JsonContent::Text(text) => Content::Text(text.into_owned()),
        JsonContent::Hparams(values) => Content::Hparams(values.into_owned()),
    };
    Ok(Record { step, name: name.into_owned(), content })
}

/// Numbers that can be NaN or infinite.
pub(super) mod number {
    use super::csv;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::borrow::Cow;

    pub(in crate::log) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            value if value.is_nan() => serializer.serialize_str("NaN"),
            &f64::INFINITY => serializer.serialize_str("Infinity"),
            &f64::NEG_INFINITY => serializer.serialize_str("-Infinity"),
            value => serializer.serialize_f64(*value),
        }
    }

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Number<'a> {
        Finite(f64),
        Text(#[serde(borrow)] Cow<'a, str>),
    }

    pub(in crate::log) fn deserialize<'d, D: Deserializer<'d>>(deserializer: D) -> Result<f64, D::Error> {
        match Number::deserialize(deserializer)? {
            Number::Finite(value) => Ok(value),
            Number::Text(text) => match csv::number(&text) {
                Some(value) if !value.is_finite() => Ok(value),
                _ => Err(Error::custom(format!("'{text}' is not a number"))),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip() {
        let histogram = Histogram {
            min: -1.0,
            max: f64::NAN,
            sum: 0.1,
            sum_squares: f64::INFINITY,
            not_finite: 2,
            limits: vec![0.1, 1e300],
            counts: vec![3, u64::MAX],
        };
        let hparams = BTreeMap::from([
            ("lr".into(), Hparam::Number(1e-3)),
            ("act".into(), Hparam::Text("relu".into())),
            ("amsgrad".into(), Hparam::Bool(true)),
            ("clip".into(), Hparam::Number(f64::INFINITY)),
        ]);
        let scalars =
            [0.1, 1.0, -0.0, 5e-324, f64::MAX, 1.0 / 3.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        let contents = scalars.map(Content::Scalar).into_iter().chain([
            Content::Histogram(histogram),
            Content::Text("two\nlines \"and\" \u{1F600}".into()),
            Content::Hparams(hparams),
        ]);
        for (step, content) in (u64::MAX - 20..).zip(contents) {
            let written = Record { step, name: "loss, \"train\"".into(), content };
            let line = line(&written).unwrap();
            assert_eq!(line.matches('\n').count(), 1);
            let read = record(line.trim_end()).unwrap();
            // NaN is not equal to itself, but is printed the same.
            assert_eq!(format!("{read:?}"), format!("{written:?}"));
        }
    }

    #[test]
    fn a_line_that_is_none_is_an_error() {
        for line in [
            "",
            "{",
            "[]",
            "{\"step\":1}",
            "{\"step\":-1,\"name\":\"a\",\"value\":1}",
            "{\"step\":1,\"name\":\"a\",\"value\":\"x\"}",
        ] {
            assert!(record(line).is_err(), "{line}");
        }
    }
}
