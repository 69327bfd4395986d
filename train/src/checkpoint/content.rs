//! The content of a checkpoint: one [`TensorFile`] with all parts.
//!
//! A tensor of a part is called `<part>.<tensor>`, and its metadata keys are `<part>.<key>`. The rest is JSON
//! under the metadata key [`HEADER`]. Nothing else says what is in the file, so nothing can contradict it. A
//! checksum of all this is under [`CHECKSUM`].

use super::Resumed;
use super::folder::by_name;
use super::part::{Parts, Resumable, Snapshot};
use namegrad_core::random::{GeneratorState, random_state, set_random_state};
use namegrad_core::{Error, ErrorKind, NamedTensor, Result};
use namegrad_io::fields::{insert_text, value_of};
use namegrad_io::sorted::list_of;
use namegrad_io::text::{append, closest_name, quoted, quoted_list};
use namegrad_io::{FileEntries, TensorFile};
use serde_json::Value;
use std::collections::BTreeMap;

const HEADER: &str = "checkpoint";
const CHECKSUM: &str = "checksum";
const VERSION: u64 = 1;

/// The content of a checkpoint besides the parts.
pub(super) struct CheckpointHeader {
    pub(super) step: u64,
    /// The metrics as text, because JSON has no infinite numbers.
    metrics: Vec<(String, String)>,
    pub(super) parts: Vec<String>,
    random: GeneratorState,
    /// Whether the file has a checksum. Files of earlier versions have none.
    has_checksum: bool,
    /// The order of the dims in memory, of the tensors whose last dim is not the innermost one. A file has no
    /// such order, and the rounding of some products depends on it.
    orders: Vec<(String, Vec<usize>)>,
}

impl CheckpointHeader {
    /// The header in the metadata of a file, or what is wrong with it.
    pub(super) fn of(metadata: &BTreeMap<String, String>) -> std::result::Result<CheckpointHeader, String> {
        let text = value_of(metadata, HEADER).ok_or("it is not a checkpoint")?;
        let header: Value = text.parse().map_err(|error: serde_json::Error| format!("{error}"))?;
        match header["version"].as_u64() {
            Some(VERSION) => {}
            Some(version) => {
                return Err(format!("it has version {version} of the format, only {VERSION} can be read"));
            }
            None => return Err(damaged("version")),
        }
        CheckpointHeader::parse(&header).map_err(damaged)
    }

    /// The content of a header, or the field that is missing or damaged.
    fn parse(header: &Value) -> std::result::Result<CheckpointHeader, &'static str> {
        let of_random = |field: &str| header["random"][field].as_u64().ok_or("random");
        let random = GeneratorState { seed: of_random("seed")?, offset: of_random("offset")? };
        let has_checksum = header["has_checksum"] == Value::Bool(true);
        let (metrics, parts, orders) = (Vec::new(), Vec::new(), Vec::new());
        let step = header["step"].as_u64().ok_or("step")?;
        let mut read = CheckpointHeader { step, metrics, parts, random, has_checksum, orders };
        for part in header["parts"].as_array().ok_or("parts")? {
            read.parts.push(part.as_str().ok_or("parts")?.to_string());
        }
        for (name, metric) in header["metrics"].as_object().ok_or("metrics")? {
            read.metrics.push((name.clone(), metric.as_str().ok_or("metrics")?.to_string()));
        }
        for (name, dims) in header["orders"].as_object().into_iter().flatten() {
            let mut order = Vec::new();
            for dim in dims.as_array().ok_or("orders")? {
                order.push(dim.as_u64().ok_or("orders")? as usize);
            }
            read.orders.push((name.clone(), order));
        }
        Ok(read)
    }

    fn to_json(&self) -> String {
        let metrics = list_of(self.metrics.len(), &mut |at| {
            let (name, text) = &self.metrics[at];
            format!("{}:{}", quoted(name), quoted(text))
        });
        let orders = list_of(self.orders.len(), &mut |at| {
            let (name, order) = &self.orders[at];
            format!("{}:{order:?}", quoted(name))
        });
        let parts = list_of(self.parts.len(), &mut |at| quoted(&self.parts[at]));
        let GeneratorState { seed, offset } = self.random;
        let mut text = format!("{{\"has_checksum\":{},\"metrics\":{{", self.has_checksum);
        append(&mut text, format_args!("{}}}", crate::joined(&metrics, ",")));
        if !orders.is_empty() {
            append(&mut text, format_args!(",\"orders\":{{{}}}", crate::joined(&orders, ",")));
        }
        append(&mut text, format_args!(",\"parts\":[{}]", crate::joined(&parts, ",")));
        append(&mut text, format_args!(",\"random\":{{\"offset\":{offset},\"seed\":{seed}}}"));
        append(&mut text, format_args!(",\"step\":{},\"version\":{VERSION}}}", self.step));
        text
    }

    pub(super) fn metrics(&self) -> BTreeMap<String, f64> {
        let mut metrics = Vec::new();
        for (name, text) in &self.metrics {
            if let Ok(value) = text.parse() {
                metrics.push((name.clone(), value));
            }
        }
        by_name(metrics)
    }
}

#[cold]
fn damaged(field: &str) -> String {
    format!("'{field}' of its header is missing or damaged")
}

/// The content of a checkpoint of the current state.
pub(super) fn compose(step: u64, parts: &Parts<'_>, metrics: &BTreeMap<String, f64>) -> Result<TensorFile> {
    let (mut names, mut texts_of_metrics, mut orders) = (Vec::new(), Vec::new(), Vec::new());
    for (name, value) in metrics {
        texts_of_metrics.push((name.clone(), format!("{value:?}")));
    }
    let (mut tensors, mut texts) = (Vec::new(), Vec::new());
    for (name, part) in &parts.parts {
        names.push(name.clone());
        let state = part.state().map_err(|error| error.context(format_args!("part '{name}': ")))?;
        let (own_tensors, own_texts) = state.into_entries();
        for (key, tensor) in own_tensors {
            let name = format!("{name}.{key}");
            if let Some(order) = order_of(&tensor) {
                orders.push((name.clone(), order));
            }
            tensors.push((name, tensor));
        }
        for (key, text) in own_texts {
            texts.push((format!("{name}.{key}"), text));
        }
    }
    let header = CheckpointHeader {
        step,
        metrics: texts_of_metrics,
        parts: names,
        random: random_state(),
        has_checksum: true,
        orders,
    };
    let mut file = TensorFile::of_entries(tensors, texts);
    insert_text(&mut file.metadata, HEADER.into(), header.to_json());
    let checksum = checksum_text(file.checksum()?);
    insert_text(&mut file.metadata, CHECKSUM.into(), checksum);
    Ok(file)
}

fn checksum_text(checksum: u32) -> String {
    format!("{checksum:08x}")
}

/// Checks that a file has the content with which it was written.
pub(super) fn verify(file: &TensorFile, header: &CheckpointHeader) -> Result<()> {
    let written = value_of(&file.metadata, CHECKSUM);
    if written.is_none() && !header.has_checksum {
        return Ok(());
    }
    let now = checksum_text(file.checksum_without(Some(CHECKSUM))?);
    let written = written.map_or("missing", String::as_str);
    match now == written {
        true => Ok(()),
        false => {
            let message = format!(
                "the content has changed since it was written: its checksum is {now}, the one in the file is {written}"
            );
            Err(Error::new(ErrorKind::Format, "restore", message))
        }
    }
}

/// The parts of a checkpoint that a call restores.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Take {
    /// All parts and the state of the random generator.
    All,
    /// The parts of the call that the checkpoint has, and the state of the random generator; the others are
    /// unchanged.
    Common,
    /// The parts of the call, which the checkpoint must have.
    Given,
}

/// Restores the parts from a checkpoint. After an error, everything is as it was before.
pub(super) fn apply(
    file: &FileEntries,
    header: &CheckpointHeader,
    parts: &mut Parts<'_>,
    take: Take,
) -> Result<Resumed> {
    let resumed = compare(header, parts, take)?;
    parts.parts.retain(|(name, _)| !resumed.missing.contains(name));
    let mut before: Vec<Snapshot> = Vec::new();
    for (_, part) in &parts.parts {
        before.push(part.before()?);
    }
    for at in 0..parts.parts.len() {
        let (name, part) = &mut parts.parts[at];
        if let Err(error) = part_of(file, header, name).and_then(|state| part.restore(&state)) {
            return Err(put_back(error, &mut parts.parts[..=at], &before, take));
        }
    }
    if take != Take::Given {
        set_random_state(header.random);
    }
    Ok(resumed)
}

/// Puts parts back as they were before, of which the last one could not be restored because of an error.
#[cold]
fn put_back(
    error: Error,
    touched: &mut [(String, Box<dyn Resumable + '_>)],
    before: &[Snapshot],
    take: Take,
) -> Error {
    let failed = touched.last().map_or(String::new(), |(name, _)| name.clone());
    let mut error = error.context(format_args!("part '{failed}': "));
    for ((name, part), before) in touched.iter_mut().zip(before) {
        if let Err(second) = part.put_back(before) {
            let message = format!(
                "{}; after that, part '{name}' could not be put back as it was: {}",
                error.message(),
                second.message()
            );
            error = error.with_message(message);
        }
    }
    let without = format!("checkpoints.resume_some(parts)? without '{failed}'");
    let repair = match (take, error.repair()) {
        (Take::Given, _) => return error,
        // Without its step, a schedule leaves the last rate of the old one for a step.
        (_, Some(own)) if own.contains(".step_to(") => format!("{without}, and after that {own}"),
        _ => format!("{without}, if that is to begin again"),
    };
    error.with_repair(repair)
}

/// Compares the parts of the checkpoint with those of the call. An error if they differ in a way that `take`
/// does not allow.
fn compare(header: &CheckpointHeader, parts: &Parts<'_>, take: Take) -> Result<Resumed> {
    let (mut missing, mut unused) = (Vec::new(), Vec::new());
    for name in parts.names() {
        if header.parts.iter().all(|own| own != name) {
            missing.push(name.to_string());
        }
    }
    for own in &header.parts {
        if parts.names().all(|name| name != own) {
            unused.push(own.clone());
        }
    }
    let fits = match take {
        Take::All => missing.is_empty() && unused.is_empty(),
        Take::Common => missing.len() < parts.parts.len(),
        Take::Given => missing.is_empty(),
    };
    if fits {
        return Ok(Resumed { step: header.step, missing, unused });
    }
    Err(misfit(header, parts, take, &missing, &unused))
}

/// The error of parts that differ from those of the checkpoint.
#[cold]
fn misfit(
    header: &CheckpointHeader,
    parts: &Parts<'_>,
    take: Take,
    missing: &[String],
    unused: &[String],
) -> Error {
    let mut differences = Vec::new();
    for name in missing {
        let found = match closest_name(name, &mut header.parts.iter().map(String::as_str)) {
            Some(similar) => format!("'{similar}'"),
            None => quoted_list(usize::MAX, &mut header.parts.iter().map(String::as_str)),
        };
        differences.push(format!("the checkpoint has no part '{name}', it has {found}"));
    }
    if take == Take::All {
        for name in unused {
            differences.push(format!("part '{name}' of the checkpoint is not among the parts"));
        }
    }
    let renamed = match (missing, unused) {
        ([new], [old]) => parts.form(new).map(|form| format!("parts![{old} = {form}{new}]")),
        _ => None,
    };
    let repair = match (renamed, take) {
        (Some(renamed), Take::All) => {
            format!("{renamed} if only the variable has a new name, or checkpoints.resume_some(parts)?")
        }
        (None, Take::All) => {
            "checkpoints.resume_some(parts)?, which goes on with the parts that both have".into()
        }
        (Some(renamed), _) => format!("{renamed} if only the variable has a new name"),
        (None, _) => String::new(),
    };
    Error::new(ErrorKind::Value, "restore", crate::joined(&differences, "; ")).with_repair(repair)
}

/// The state of a part.
fn part_of(file: &FileEntries, header: &CheckpointHeader, name: &str) -> Result<TensorFile> {
    let own = |key: &str| Some(key.strip_prefix(name)?.strip_prefix('.')?.to_string());
    let (mut tensors, mut texts) = (Vec::new(), Vec::new());
    for (key, text) in &file.1 {
        if let Some(key) = own(key) {
            texts.push((key, text.clone()));
        }
    }
    for (key, tensor) in &file.0 {
        let Some(name) = own(key) else { continue };
        let tensor = match header.orders.iter().find(|(own, _)| own == key) {
            Some((_, order)) => in_order(tensor, order)?,
            None => tensor.clone(),
        };
        tensors.push((name, tensor));
    }
    Ok(TensorFile::of_entries(tensors, texts))
}

/// The dims of a tensor from the outermost to the innermost in memory, if that is not their own order.
fn order_of(tensor: &NamedTensor) -> Option<Vec<usize>> {
    let (sizes, strides) = (tensor.sizes(), tensor.strides());
    let mut order: Vec<usize> = crate::list(0..sizes.len());
    let long = |dim: &usize| sizes[*dim] > 1;
    let in_order = |pair: &[usize]| strides[pair[0]].unsigned_abs() >= strides[pair[1]].unsigned_abs();
    let mut longer = order.clone();
    longer.retain(long);
    if longer.windows(2).all(in_order) {
        return None;
    }
    // By the strides, the largest first, without changing the order of equal ones.
    for end in 1..order.len() {
        let mut at = end;
        while at > 0 && !in_order(&[order[at - 1], order[at]]) {
            order.swap(at - 1, at);
            at -= 1;
        }
    }
    Some(order)
}

/// The tensor with its dims in an order of [`order_of`] in memory.
fn in_order(tensor: &NamedTensor, order: &[usize]) -> Result<NamedTensor> {
    let mut back = vec![0; order.len()];
    for (at, dim) in order.iter().enumerate() {
        match back.get_mut(*dim) {
            Some(place) => *place = at,
            None => return Err(Error::new(ErrorKind::Format, "load", "the orders are damaged")),
        }
    }
    tensor.permute(order.to_vec())?.contiguous()?.permute(back)
}
