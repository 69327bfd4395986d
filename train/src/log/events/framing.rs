//! Frames of records: the length and its checksum, the data and its checksum, all in little-endian order.
//!
//! # Source
//! TensorFlow, `core/lib/io/record_writer.h`, and `core/lib/hash/crc32c.h` for the mask.

/// The length with its checksum.
const HEADER: usize = 12;
const FOOTER: usize = 4;

/// Appends a record.
pub(super) fn append(bytes: &mut Vec<u8>, data: &[u8]) {
    let length = (data.len() as u64).to_le_bytes();
    bytes.extend(length);
    bytes.extend(masked_crc(&length).to_le_bytes());
    bytes.extend(data);
    bytes.extend(masked_crc(data).to_le_bytes());
}

/// A record with its frame.
pub(super) struct Framed<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) data: &'a [u8],
}

/// The record at the beginning of `bytes`, or none if it is incomplete.
pub(super) fn next(bytes: &[u8]) -> Result<Option<Framed<'_>>, &'static str> {
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else { return Ok(None) };
    let Some((crc, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    if u32::from_le_bytes(*crc) != masked_crc(length) {
        return Err("the checksum of its length is wrong");
    }
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| "its length is too large")?;
    let Some((data, rest)) = rest.split_at_checked(length) else { return Ok(None) };
    let Some((crc, _)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    if u32::from_le_bytes(*crc) != masked_crc(data) {
        return Err("its checksum is wrong");
    }
    Ok(Some(Framed { bytes: &bytes[..HEADER + length + FOOTER], data }))
}

/// A checksum that can be part of data that has a checksum itself.
fn masked_crc(data: &[u8]) -> u32 {
    crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The Castagnoli polynomial with its bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// The checksums of all bytes.
const TABLE: [u32; 256] = {
    let (mut table, mut byte) = ([0; 256], 0);
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u32, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// RFC 3720, appendix B.4.
fn crc32c(data: &[u8]) -> u32 {
    !data.iter().fold(!0, |crc, byte| TABLE[((crc ^ u32::from(*byte)) & 0xff) as usize] ^ crc >> 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3720, appendix B.4.
    #[test]
    fn checksums() {
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(&(0..32).collect::<Vec<u8>>()), 0x46dd_794e);
    }

    #[test]
    fn a_part_of_a_record_is_none_and_a_changed_one_an_error() {
        let mut bytes = Vec::new();
        append(&mut bytes, b"some data");
        for length in 0..bytes.len() {
            assert!(next(&bytes[..length]).is_ok_and(|found| found.is_none()));
        }
        assert_eq!(next(&bytes).unwrap().unwrap().data, b"some data");
        for at in 0..bytes.len() {
            bytes[at] ^= 16;
            assert!(next(&bytes).is_err(), "byte {at}");
            bytes[at] ^= 16;
        }
    }
}
