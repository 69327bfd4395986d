//! The lines of `log.jsonl`: one JSON object for each record.
//!
//! JSON has no NaN and no infinities. They are the strings `"NaN"`, `"Infinity"` and `"-Infinity"`, as in the
//! JSON form of protocol buffers.

use super::value::{Content, Hparam, Record, by_name};
use super::{Histogram, csv};
use namegrad_io::sorted::list_of;
use namegrad_io::text::quoted;
use serde_json::Value;
use std::collections::BTreeMap;

/// The name of hyperparameters in a record.
pub(super) const HPARAMS: &str = "hparams";
/// No hyperparameters, as JSON.
pub(super) const NO_HPARAMS: &str = "{}";

/// The line of a record; none for an image.
pub(super) fn line(record: &Record) -> Option<String> {
    let (kind, content) = match &record.content {
        Content::Scalar(value) => ("value", of_number(*value)),
        Content::Histogram(histogram) => ("histogram", of_histogram(histogram)),
        Content::Text(text) => ("text", quoted(text)),
        Content::Hparams(values) => ("hparams", of_hparams(values)),
        Content::Image(_) => return None,
    };
    let (step, name) = (record.step, quoted(&record.name));
    Some(format!("{{\"step\":{step},\"name\":{name},\"{kind}\":{content}}}\n"))
}

fn of_number(value: f64) -> String {
    match value {
        _ if value.is_nan() => "\"NaN\"".into(),
        f64::INFINITY => "\"Infinity\"".into(),
        f64::NEG_INFINITY => "\"-Infinity\"".into(),
        _ => Value::from(value).to_string(),
    }
}

fn of_histogram(histogram: &Histogram) -> String {
    let Histogram { min, max, sum, sum_squares, not_finite, limits, counts } = histogram;
    let [min, max, sum, sum_squares] = [min, max, sum, sum_squares].map(|value| of_number(*value));
    let limit_texts = list_of(limits.len(), &mut |at| of_number(limits[at]));
    let count_texts = list_of(counts.len(), &mut |at| counts[at].to_string());
    format!(
        "{{\"min\":{min},\"max\":{max},\"sum\":{sum},\"sum_squares\":{sum_squares},\"not_finite\":{not_finite},\
         \"limits\":[{}],\"counts\":[{}]}}",
        crate::joined(&limit_texts, ","),
        crate::joined(&count_texts, ",")
    )
}

/// Hyperparameters as a JSON object.
pub(super) fn of_hparams(values: &BTreeMap<String, Hparam>) -> String {
    let mut fields = Vec::new();
    for (name, value) in values {
        let value = match value {
            Hparam::Bool(value) => value.to_string(),
            Hparam::Number(value) => of_number(*value),
            Hparam::Text(text) => quoted(text),
        };
        fields.push(format!("{}:{value}", quoted(name)));
    }
    format!("{{{}}}", crate::joined(&fields, ","))
}

/// The record of a line, or what is wrong with it.
pub(super) fn record(line: &str) -> Result<Record, String> {
    let object: Value = line.parse().map_err(|error: serde_json::Error| format!("{error}"))?;
    let step = object["step"].as_u64().ok_or("'step' is missing or not a whole number")?;
    let name = object["name"].as_str().ok_or("'name' is missing or not a text")?.to_string();
    let content = if let Some(value) = object.get("value") {
        Content::Scalar(number_of(value)?)
    } else if let Some(histogram) = object.get("histogram") {
        Content::Histogram(histogram_of(histogram)?)
    } else if let Some(text) = object.get("text") {
        Content::Text(text.as_str().ok_or("'text' is not a text")?.to_string())
    } else if let Some(values) = object.get("hparams") {
        Content::Hparams(hparams_of(values)?)
    } else {
        return Err("it has neither a value, a histogram, a text nor hyperparameters".into());
    };
    Ok(Record { step, name, content })
}

fn number_of(value: &Value) -> Result<f64, String> {
    if let Some(number) = value.as_f64() {
        return Ok(number);
    }
    let number = value.as_str().and_then(csv::number).filter(|number| !number.is_finite());
    number.ok_or_else(|| format!("{value} is not a number"))
}

fn histogram_of(object: &Value) -> Result<Histogram, String> {
    let number =
        |field: &str| number_of(&object[field]).map_err(|error| format!("'{field}' of a histogram: {error}"));
    let list =
        |field: &str| object[field].as_array().ok_or_else(|| format!("a histogram has no list '{field}'"));
    let mut limits = Vec::new();
    for limit in list("limits")? {
        limits.push(number_of(limit)?);
    }
    let mut counts = Vec::new();
    for count in list("counts")? {
        counts.push(count.as_u64().ok_or_else(|| format!("{count} is not a count"))?);
    }
    let (min, max) = (number("min")?, number("max")?);
    let (sum, sum_squares) = (number("sum")?, number("sum_squares")?);
    let not_finite = match object.get("not_finite") {
        None => 0, // in files of earlier versions
        Some(count) => count.as_u64().ok_or_else(|| format!("{count} is not a count"))?,
    };
    Ok(Histogram { min, max, sum, sum_squares, not_finite, limits, counts })
}

fn hparams_of(object: &Value) -> Result<BTreeMap<String, Hparam>, String> {
    let mut values = Vec::new();
    for (name, value) in object.as_object().ok_or("'hparams' is not an object")? {
        let hparam = match (value, number_of(value)) {
            (_, Ok(number)) => Hparam::Number(number),
            (Value::Bool(value), _) => Hparam::Bool(*value),
            (Value::String(text), _) => Hparam::Text(text.clone()),
            _ => return Err(format!("'{name}' is neither a number, a text nor a bool")),
        };
        values.push((name.clone(), hparam));
    }
    Ok(by_name(values))
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
