//! Values of a user's program as parts of a run: counters, histories, anything with serde's traits.

use super::part::Resumable;
use namegrad_core::{Element, Error, ErrorKind, NamedTensor, Result};
use namegrad_io::TensorFile;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;

/// The metadata key of JSON, and the name of a tensor.
pub(super) const KEY: &str = "value";

/// A value that is saved as JSON. Floats and lists of floats are saved as a tensor: JSON has neither NaN nor
/// infinite numbers, and they are common here, such as a best loss that starts at infinity.
pub(super) struct ValuePart<'a, T>(pub(super) &'a mut T);

impl<T: Serialize + DeserializeOwned + 'static> Resumable for ValuePart<'_, T> {
    fn state(&self) -> Result<TensorFile> {
        let mut file = TensorFile::default();
        match floats::<f32>(self.0).or_else(|| floats::<f64>(self.0)) {
            Some(tensor) => drop(file.tensors.insert(KEY.into(), tensor?)),
            None => drop(file.metadata.insert(KEY.into(), json(self.0)?)),
        }
        Ok(file)
    }

    fn restore(&mut self, state: &TensorFile) -> Result<()> {
        let value = match state.tensors.get(KEY) {
            Some(tensor) => from_tensor::<T, f32>(tensor)?.or(from_tensor::<T, f64>(tensor)?),
            None => state.metadata.get(KEY).map(|text| parse(text)).transpose()?,
        };
        *self.0 = value.ok_or_else(|| {
            let saved = if state.tensors.contains_key(KEY) { "numbers" } else { "something else" };
            Error::new(
                ErrorKind::Format,
                "load",
                format!("expected a value of type {}, found {saved}", type_words::<T>()),
            )
        })?;
        Ok(())
    }
}

/// A type as a program spells it: `Vec<String>` for `alloc::vec::Vec<alloc::string::String>`.
fn type_words<T>() -> String {
    let is_path = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let path = std::any::type_name::<T>();
    let words = path.split_inclusive(|letter| !is_path(letter));
    words.map(|word| word.rsplit("::").next().unwrap_or(word)).collect()
}

/// The JSON of a value, if the value can be read from it.
fn json<T: Serialize + DeserializeOwned>(value: &T) -> Result<String> {
    let refused = |reason: &str| {
        let message = format!(
            "a value of type {} cannot be saved: {reason}; numbers that can be NaN or infinite need a part of their own, f64 or Vec<f64>",
            type_words::<T>()
        );
        Error::new(ErrorKind::Value, "save", message)
    };
    let mut file = TensorFile::default();
    file.insert_json(KEY, value).map_err(|error| refused(error.message()))?;
    let text = file.metadata.remove(KEY).unwrap_or_default();
    let read: T = serde_json::from_str(&text).map_err(|error| refused(&format!("{error}")))?;
    match serde_json::to_string(&read).is_ok_and(|again| again.len() == text.len()) {
        true => Ok(text),
        false => Err(refused("it is not the same after reading it")),
    }
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| {
        let message = format!("expected a value of type {}: {error}", type_words::<T>());
        Error::new(ErrorKind::Format, "load", message)
    })
}

/// The tensor of a float, which has no dims, or of a list or an option of floats.
fn floats<E: Element + 'static>(value: &dyn Any) -> Option<Result<NamedTensor>> {
    if let Some(one) = value.downcast_ref::<E>() {
        return Some(NamedTensor::from_slice(&[*one], ()));
    }
    if let Some(option) = value.downcast_ref::<Option<E>>() {
        let list: Vec<E> = crate::list(option.iter().copied());
        return Some(NamedTensor::from_slice(&list, [list.len()]));
    }
    let list = value.downcast_ref::<Vec<E>>()?;
    Some(NamedTensor::from_slice(list, [list.len()]))
}

/// The value in a tensor of [`floats`], if `T` is one of these types.
fn from_tensor<T: Any, E: Element + 'static>(tensor: &NamedTensor) -> Result<Option<T>> {
    if tensor.dtype() != E::DTYPE || tensor.ndim() > 1 {
        return Ok(None);
    }
    let list = tensor.to_vec::<E>()?;
    let (is_one, first) = (tensor.ndim() == 0, list.first().copied());
    let mut candidates: Vec<Box<dyn Any>> = Vec::new();
    match (is_one, first) {
        (true, Some(one)) => candidates.push(Box::new(one)),
        (true, None) => {}
        (false, first) => {
            if list.len() <= 1 {
                candidates.push(Box::new(first));
            }
            candidates.push(Box::new(list));
        }
    }
    Ok(candidates.into_iter().find_map(|value| value.downcast::<T>().ok()).map(|value| *value))
}

#[cfg(test)]
mod tests {
    use super::type_words;
    use std::collections::BTreeMap;

    #[test]
    fn a_type_is_called_as_in_a_program() {
        let words = [
            type_words::<String>(),
            type_words::<BTreeMap<String, Vec<Option<f64>>>>(),
            type_words::<(u8, [f32; 2])>(),
        ];
        assert_eq!(words, ["String", "BTreeMap<String, Vec<Option<f64>>>", "(u8, [f32; 2])"]);
    }
}
