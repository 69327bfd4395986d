//! The messages of event files: `Event` with a `Summary` of one value, and back.

use super::proto::{Message, ProtoField, fields};
use crate::log::Histogram;
use crate::log::json::HPARAMS;
use crate::log::value::{Content, Hparam, Image, Record};
use std::collections::BTreeMap;

/// The first event of a file.
pub(super) fn version(wall_time: f64) -> Vec<u8> {
    Message::new().double(1, wall_time).bytes(3, "brain.Event:2").into_bytes()
}

/// The tag under which the plugin looks for the hyperparameters of a run.
const SESSION_START: &str = "_hparams_/session_start_info";
const DT_STRING: u64 = 7;

/// The event of a record.
pub(super) fn encode(record: &Record, wall_time: f64) -> Vec<u8> {
    let tag = match record.content {
        Content::Hparams(_) => SESSION_START,
        _ => &record.name,
    };
    let value = Message::new().bytes(1, tag);
    let value = match &record.content {
        Content::Scalar(scalar) => value.float(2, *scalar as f32),
        Content::Image(image) => value.message(4, of_image(image)),
        Content::Histogram(histogram) => value.message(5, of_histogram(histogram)),
        Content::Text(text) => {
            let shape = Message::new().message(2, Message::new().integer(1, 1)); // [1]
            let tensor = Message::new().integer(1, DT_STRING).message(2, shape).bytes(8, text);
            value.message(8, tensor).message(9, of_plugin("text", Vec::new()))
        }
        Content::Hparams(values) => {
            let data = of_hparams(values, wall_time).into_bytes();
            value.message(9, of_plugin("hparams", data))
        }
    };
    let summary = Message::new().message(1, value);
    Message::new().double(1, wall_time).integer(2, record.step).message(5, summary).into_bytes()
}

fn of_image(image: &Image) -> Message {
    Message::new().integer(1, image.height as u64).integer(2, image.width as u64).bytes(4, &image.png)
}

fn of_histogram(histogram: &Histogram) -> Message {
    Message::new()
        .double(1, histogram.min)
        .double(2, histogram.max)
        .double(3, histogram.count() as f64)
        .double(4, histogram.sum)
        .double(5, histogram.sum_squares)
        .doubles(6, histogram.limits.iter().copied())
        .doubles(7, histogram.counts.iter().map(|count| *count as f64))
}

/// `SummaryMetadata` with the name of a plugin and its data.
fn of_plugin(name: &str, data: Vec<u8>) -> Message {
    Message::new().message(1, Message::new().bytes(1, name).bytes(2, data))
}

/// `HParamsPluginData` with a `SessionStartInfo`.
fn of_hparams(values: &BTreeMap<String, Hparam>, wall_time: f64) -> Message {
    let mut session = Message::new();
    for (name, value) in values {
        let value = match value {
            Hparam::Number(number) => Message::new().double(2, *number),
            Hparam::Text(text) => Message::new().bytes(3, text),
            Hparam::Bool(value) => Message::new().integer(4, u64::from(*value)),
        };
        session = session.message(1, Message::new().bytes(1, name).message(2, value));
    }
    Message::new().message(3, session.double(5, wall_time))
}

/// The records of an event: none for the first of a file, one for our own, any number for others'.
pub(super) fn decode(event: &[u8]) -> Result<Vec<Record>, &'static str> {
    let (mut step, mut records) = (0, Vec::new());
    for (number, field) in fields(event)? {
        match number {
            2 => step = field.integer(),
            5 => {
                for (number, value) in fields(field.bytes())? {
                    if number == 1 {
                        records.extend(value_of(value.bytes())?);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(records.into_iter().map(|(name, content)| Record { step, name, content }).collect())
}

/// The name and the content of a value, or none for a form that is not written here.
fn value_of(value: &[u8]) -> Result<Option<(String, Content)>, &'static str> {
    let (mut name, mut content, mut text, mut plugin) = (String::new(), None, None, (String::new(), &[][..]));
    for (number, field) in fields(value)? {
        match (number, field) {
            (1, field) => name = field.text(),
            (2, ProtoField::Float(scalar)) => content = Some(Content::Scalar(scalar.into())),
            (4, field) => content = Some(Content::Image(image_of(field.bytes())?)),
            (5, field) => content = Some(Content::Histogram(histogram_of(field.bytes())?)),
            (8, field) => text = fields(field.bytes())?.into_iter().find(|(number, _)| *number == 8),
            (9, field) => plugin = plugin_of(field.bytes())?,
            _ => {}
        }
    }
    Ok(match (plugin.0.as_str(), content) {
        ("hparams", _) if name == SESSION_START => {
            Some((HPARAMS.into(), Content::Hparams(hparams_of(plugin.1)?)))
        }
        ("text", _) => text.map(|(_, text)| (name, Content::Text(text.text()))),
        (_, content) => content.map(|content| (name, content)),
    })
}

fn image_of(message: &[u8]) -> Result<Image, &'static str> {
    let mut image = Image { width: 0, height: 0, png: vec![] };
    for (number, field) in fields(message)? {
        match number {
            1 => image.height = field.integer() as usize,
            2 => image.width = field.integer() as usize,
            4 => image.png = field.bytes().to_vec(),
            _ => {}
        }
    }
    Ok(image)
}

fn histogram_of(message: &[u8]) -> Result<Histogram, &'static str> {
    let (min, max, not_finite) = (0.0, 0.0, 0);
    let (limits, counts) = (vec![], vec![]);
    let mut histogram = Histogram { min, max, sum: 0.0, sum_squares: 0.0, not_finite, limits, counts };
    for (number, field) in fields(message)? {
        match number {
            1 => histogram.min = field.double(),
            2 => histogram.max = field.double(),
            4 => histogram.sum = field.double(),
            5 => histogram.sum_squares = field.double(),
            6 => histogram.limits.extend(field.doubles()),
            7 => histogram.counts.extend(field.doubles().into_iter().map(|count| count as u64)),
            _ => {}
        }
    }
    Ok(histogram)
}

/// The name of the plugin, and its data.
fn plugin_of(metadata: &[u8]) -> Result<(String, &[u8]), &'static str> {
    let (mut name, mut data) = (String::new(), &[][..]);
    for (number, field) in fields(metadata)? {
        if number != 1 {
            continue;
        }
        for (number, field) in fields(field.bytes())? {
            match number {
                1 => name = field.text(),
                2 => data = field.bytes(),
                _ => {}
            }
        }
    }
    Ok((name, data))
}

fn hparams_of(data: &[u8]) -> Result<BTreeMap<String, Hparam>, &'static str> {
    let mut values = BTreeMap::new();
    for (number, session) in fields(data)? {
        if number != 3 {
            continue;
        }
        for (number, entry) in fields(session.bytes())? {
            if number != 1 {
                continue;
            }
            let (mut name, mut value) = (String::new(), None);
            for (number, field) in fields(entry.bytes())? {
                match number {
                    1 => name = field.text(),
                    2 => value = fields(field.bytes())?.into_iter().find_map(hparam_of),
                    _ => {}
                }
            }
            values.extend(value.map(|value| (name, value)));
        }
    }
    Ok(values)
}

fn hparam_of((number, field): (u32, ProtoField<'_>)) -> Option<Hparam> {
    match number {
        2 => Some(Hparam::Number(field.double())),
        3 => Some(Hparam::Text(field.text())),
        4 => Some(Hparam::Bool(field.integer() != 0)),
        _ => None,
    }
}
