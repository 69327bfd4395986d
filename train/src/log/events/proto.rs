//! The wire format of protocol buffers.
//!
//! # Source
//! Google, *Protocol Buffers Documentation*, "Encoding".

/// A message that is being written. Fields are written in the order of the calls.
#[derive(Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn new() -> Message {
        Message::default()
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn tag(&mut self, field: u32, wire: u8) {
        self.varint(u64::from(field) << 3 | u64::from(wire));
    }

    pub(super) fn integer(mut self, field: u32, value: u64) -> Message {
        self.tag(field, 0);
        self.varint(value);
        self
    }

    pub(super) fn double(mut self, field: u32, value: f64) -> Message {
        self.tag(field, 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(super) fn float(mut self, field: u32, value: f32) -> Message {
        self.tag(field, 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// A string, bytes, or a message.
    pub(super) fn bytes(mut self, field: u32, value: impl AsRef<[u8]>) -> Message {
        self.tag(field, 2);
        self.varint(value.as_ref().len() as u64);
        self.0.extend(value.as_ref());
        self
    }

    pub(super) fn message(self, field: u32, value: Message) -> Message {
        self.bytes(field, value.0)
    }

    pub(super) fn doubles(self, field: u32, values: impl IntoIterator<Item = f64>) -> Message {
        let bytes: Vec<u8> = values.into_iter().flat_map(f64::to_le_bytes).collect();
        self.bytes(field, bytes)
    }
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ProtoField<'a> {
    Integer(u64),
    Double(f64),
    Bytes(&'a [u8]),
    Float(f32),
}

impl<'a> ProtoField<'a> {
    pub(super) fn bytes(self) -> &'a [u8] {
        if let ProtoField::Bytes(bytes) = self { bytes } else { &[] }
    }

    pub(super) fn text(self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    pub(super) fn integer(self) -> u64 {
        if let ProtoField::Integer(value) = self { value } else { 0 }
    }

    pub(super) fn double(self) -> f64 {
        if let ProtoField::Double(value) = self { value } else { 0.0 }
    }

    /// The numbers of a packed field, or the one of a field that is not.
    pub(super) fn doubles(self) -> Vec<f64> {
        match self {
            ProtoField::Bytes(bytes) => {
                bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
            }
            field => vec![field.double()],
        }
    }
}

/// The fields of a message with their numbers.
pub(super) fn fields(message: &[u8]) -> Result<Vec<(u32, ProtoField<'_>)>, &'static str> {
    let (mut rest, mut fields) = (message, Vec::new());
    while !rest.is_empty() {
        let tag = varint(&mut rest)?;
        let number = u32::try_from(tag >> 3).map_err(|_| "a field number is too large")?;
        let field = match tag & 7 {
            0 => ProtoField::Integer(varint(&mut rest)?),
            1 => ProtoField::Double(f64::from_le_bytes(*chunk(&mut rest)?)),
            2 => {
                let length = usize::try_from(varint(&mut rest)?).map_err(|_| ENDS)?;
                let (bytes, after) = rest.split_at_checked(length).ok_or(ENDS)?;
                rest = after;
                ProtoField::Bytes(bytes)
            }
            5 => ProtoField::Float(f32::from_le_bytes(*chunk(&mut rest)?)),
            _ => return Err("a field has an unknown type"),
        };
        fields.push((number, field));
    }
    Ok(fields)
}

const ENDS: &str = "a message ends in the middle of a field";

fn chunk<'a, const N: usize>(rest: &mut &'a [u8]) -> Result<&'a [u8; N], &'static str> {
    let (chunk, after) = rest.split_first_chunk().ok_or(ENDS)?;
    *rest = after;
    Ok(chunk)
}

fn varint(rest: &mut &[u8]) -> Result<u64, &'static str> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let [byte] = *chunk(rest)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err("a number is too long")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_round_trip() {
        let message = Message::new()
            .integer(1, u64::MAX)
            .double(2, -0.5)
            .bytes(3, "text")
            .float(4, 1.5)
            .doubles(1000, [1.0, 2.0])
            .into_bytes();
        let read = fields(&message).unwrap();
        let expected = [
            ProtoField::Integer(u64::MAX),
            ProtoField::Double(-0.5),
            ProtoField::Bytes(b"text"),
            ProtoField::Float(1.5),
        ];
        assert_eq!(read.iter().map(|(_, field)| *field).take(4).collect::<Vec<_>>(), expected);
        assert_eq!((read[4].0, read[4].1.doubles()), (1000, vec![1.0, 2.0]));
        for length in 0..message.len() {
            let part = fields(&message[..length]);
            assert!(part.is_err() || part.is_ok_and(|part| part.len() < 5));
        }
        assert!(fields(&[0x80; 20]).is_err() && fields(&[7]).is_err());
    }
}
