//! The part of the zip format that `.npz` and `.pt` files use: entries that are stored or deflated, in a
//! single file without encryption; large archives in the Zip64 form. Entries are written without compression.
//!
//! Nothing that an archive says is trusted: positions are compared with the length of the file, the entries
//! together cannot be larger than the file, a deflated entry cannot claim to be larger than deflate can make
//! it, and no memory is allocated for the claimed size of an entry before its content is read.
//!
//! # Source
//! PKWARE, *APPNOTE.TXT*, .ZIP File Format Specification, version 6.3.10. RFC 1951 for deflate.

use crate::input::{Output, ReadSome, Reader, read_up_to};
use crate::sorted;
use flate2::Crc;
use flate2::read::DeflateDecoder;
use std::io::{self, Read};

/// Starts an entry.
pub(crate) const ENTRY: &[u8] = b"PK\x03\x04";
/// Starts the end of the archive.
pub(crate) const END: &[u8] = b"PK\x05\x06";
const DIRECTORY: &[u8] = b"PK\x01\x02";
const END64: &[u8] = b"PK\x06\x06";
const LOCATOR64: &[u8] = b"PK\x06\x07";

const ENTRY_SIZE: u64 = 30;
const DIRECTORY_SIZE: usize = 46;
const END_SIZE: usize = 22;
const END64_SIZE: usize = 56;
const LOCATOR64_SIZE: usize = 20;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;
const ENCRYPTED: u16 = 1;
/// The names are in UTF-8.
const UTF8: u16 = 1 << 11;
/// The extra field with the sizes and the position of a large entry.
const ZIP64: u16 = 1;
/// The checksum of entries that PyTorch writes after `set_crc32_options(False)`.
const UNCHECKED: u32 = 0;
/// Deflate makes at most 258 bytes of 2 bits.
const MOST_INFLATED: u64 = 1032;

fn malformed(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.into())
}

/// An entry of an archive.
#[derive(Clone, Debug)]
pub(crate) struct ZipEntry {
    pub(crate) name: String,
    /// The length of the content.
    pub(crate) size: u64,
    method: u16,
    crc: u32,
    /// The length in the archive.
    compressed: u64,
    /// The position of its header.
    header: u64,
}

impl ZipEntry {
    pub(crate) fn is_stored(&self) -> bool {
        self.method == STORED
    }
}

/// An archive that is read.
pub(crate) struct Archive<'a> {
    from: Reader<'a>,
    length: u64,
    entries: Vec<ZipEntry>,
    /// The numbers of the entries, sorted by their names.
    by_name: Vec<usize>,
}

impl<'a> Archive<'a> {
    /// Reads the directory of an archive of `length` bytes.
    pub(crate) fn new(from: Reader<'a>, length: u64) -> io::Result<Archive<'a>> {
        let mut archive = Archive { from, length, entries: Vec::new(), by_name: Vec::new() };
        let (count, start, size) = archive.directory()?;
        let directory = archive.bytes_at(start, size)?;
        archive.entries = entries(&directory, count)?;
        let entries = &archive.entries;
        archive.by_name = sorted::order(entries.len(), &|a, b| entries[a].name < entries[b].name);
        for pair in archive.by_name.windows(2) {
            let name = &entries[pair[1]].name;
            if entries[pair[0]].name == *name {
                return Err(malformed(format!("two entries are called '{name}'")));
            }
        }
        let mut total = 0u64;
        for entry in entries {
            total = total.saturating_add(entry.compressed).saturating_add(ENTRY_SIZE);
        }
        if total > length {
            return Err(malformed(format!("the entries have {total} bytes, the file {length}")));
        }
        Ok(archive)
    }

    pub(crate) fn entries(&self) -> &[ZipEntry] {
        &self.entries
    }

    pub(crate) fn entry(&self, name: &str) -> Option<&ZipEntry> {
        let entry = |at: usize| &self.entries[self.by_name[at]];
        sorted::find(self.entries.len(), &|at| &entry(at).name, name).ok().map(entry)
    }

    /// The content of an entry, which is read completely only if its checksum is right.
    pub(crate) fn open(&self, entry: &ZipEntry) -> io::Result<EntryReader<'a>> {
        let header = self.bytes_at(entry.header, ENTRY_SIZE)?;
        if !header.starts_with(ENTRY) {
            return Err(malformed(format!("'{}' is not where the directory says", entry.name)));
        }
        let skipped = u64::from(u16_at(&header, 26)) + u64::from(u16_at(&header, 28));
        let start = entry.header + ENTRY_SIZE + skipped;
        if start.checked_add(entry.compressed).is_none_or(|end| end > self.length) {
            return Err(malformed(format!("'{}' ends after the file", entry.name)));
        }
        let bytes = self.from.part(start, start + entry.compressed);
        let from = match entry.method {
            STORED => Decoder::Stored(bytes),
            DEFLATED => Decoder::Deflated(DeflateDecoder::new(bytes)),
            method => {
                return Err(malformed(format!("'{}' is compressed by method {method}", entry.name)));
            }
        };
        let content = EntryReader { from, left: entry.size, crc: Crc::new(), expected: entry.crc };
        if entry.size == 0 && entry.crc != 0 {
            return Err(content.damaged());
        }
        Ok(content)
    }

    /// Finds the directory: the number of entries, its position and its size.
    fn directory(&self) -> io::Result<(u64, u64, u64)> {
        let tail = self.length.min((END_SIZE + usize::from(u16::MAX) + LOCATOR64_SIZE) as u64);
        let start = self.length - tail;
        let tail = self.bytes_at(start, tail)?;
        let is_end = |&at: &usize| {
            let end = &tail[at..];
            end.starts_with(END) && usize::from(u16_at(end, 20)) + END_SIZE == end.len()
        };
        let at = (0..(tail.len() + 1).saturating_sub(END_SIZE)).rev().find(is_end);
        let at = at.ok_or_else(|| malformed("not a zip archive, or cut short: it has no directory"))?;
        let end = &tail[at..];
        let (mut count, mut size, mut first) =
            (u64::from(u16_at(end, 10)), u64::from(u32_at(end, 12)), u64::from(u32_at(end, 16)));
        let mut limit = start + at as u64;
        let large = count == u64::from(u16::MAX) || [size, first].contains(&u64::from(u32::MAX));
        if large && at >= LOCATOR64_SIZE && tail[at - LOCATOR64_SIZE..].starts_with(LOCATOR64) {
            limit = u64_at(&tail, at - LOCATOR64_SIZE + 8);
            let end = self.bytes_at(limit, END64_SIZE as u64)?;
            if !end.starts_with(END64) {
                return Err(malformed("the end of the Zip64 archive is not where it says"));
            }
            (count, size, first) = (u64_at(&end, 32), u64_at(&end, 40), u64_at(&end, 48));
        }
        if first.checked_add(size).is_none_or(|end| end > limit) {
            return Err(malformed("the directory of the zip archive ends after the file"));
        }
        Ok((count, first, size))
    }

    /// Reads bytes that are inside of the file.
    fn bytes_at(&self, start: u64, count: u64) -> io::Result<Vec<u8>> {
        if start.checked_add(count).is_none_or(|end| end > self.length) {
            return Err(malformed("the zip archive points after its end"));
        }
        let mut bytes = Vec::new();
        read_up_to(count, &mut self.from.part(start, start + count), &mut bytes)?;
        if (bytes.len() as u64) < count {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(bytes)
    }
}

/// The entries of a directory.
fn entries(mut directory: &[u8], count: u64) -> io::Result<Vec<ZipEntry>> {
    let mut entries = Vec::new();
    for _ in 0..count {
        let (entry, rest) = entry(directory)?;
        entries.push(entry);
        directory = rest;
    }
    Ok(entries)
}

/// The first entry of a directory, and the rest.
fn entry(directory: &[u8]) -> io::Result<(ZipEntry, &[u8])> {
    let short = || malformed("the directory of the zip archive is cut short");
    let (fixed, rest) = directory.split_at_checked(DIRECTORY_SIZE).ok_or_else(short)?;
    if !fixed.starts_with(DIRECTORY) {
        return Err(malformed("the directory of the zip archive is damaged"));
    }
    let (name, rest) = rest.split_at_checked(u16_at(fixed, 28).into()).ok_or_else(short)?;
    let (extra, rest) = rest.split_at_checked(u16_at(fixed, 30).into()).ok_or_else(short)?;
    let (_, rest) = rest.split_at_checked(u16_at(fixed, 32).into()).ok_or_else(short)?;
    let name = str::from_utf8(name).map_err(|_| malformed("the name of an entry is not UTF-8"))?.to_string();
    let mut sizes = [u32_at(fixed, 24), u32_at(fixed, 20), u32_at(fixed, 42)].map(u64::from);
    if sizes.contains(&u64::from(u32::MAX)) {
        let mut large = zip64(extra);
        for size in sizes.iter_mut().filter(|size| **size == u64::from(u32::MAX)) {
            let (first, rest) = large.split_at_checked(8).ok_or_else(short)?;
            *size = u64_at(first, 0);
            large = rest;
        }
    }
    let [size, compressed, header] = sizes;
    if u16_at(fixed, 8) & ENCRYPTED != 0 {
        return Err(malformed(format!("'{name}' is encrypted")));
    }
    let method = u16_at(fixed, 10);
    let fits = match method {
        STORED => size == compressed,
        DEFLATED => size / MOST_INFLATED <= compressed,
        _ => true, // refused when it is opened
    };
    if !fits {
        return Err(malformed(format!("'{name}' cannot have {size} bytes: {compressed} are in the archive")));
    }
    Ok((ZipEntry { name, size, method, crc: u32_at(fixed, 16), compressed, header }, rest))
}

/// The extra field of a large entry, or nothing.
fn zip64(mut extra: &[u8]) -> &[u8] {
    while let Some((head, rest)) = extra.split_at_checked(4) {
        let Some((field, rest)) = rest.split_at_checked(u16_at(head, 2).into()) else { break };
        if u16_at(head, 0) == ZIP64 {
            return field;
        }
        extra = rest;
    }
    &[]
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

enum Decoder<'a> {
    Stored(Reader<'a>),
    Deflated(DeflateDecoder<Reader<'a>>),
}

impl Decoder<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Decoder::Stored(from) => from.read_some(out),
            Decoder::Deflated(from) => from.read(out),
        }
    }
}

/// The content of an entry. The read that returns its last byte checks its length and checksum.
pub(crate) struct EntryReader<'a> {
    from: Decoder<'a>,
    left: u64,
    crc: Crc,
    expected: u32,
}

impl EntryReader<'_> {
    fn damaged(&self) -> io::Error {
        malformed("the file is damaged: the checksum of an entry is wrong")
    }

    /// All of the content.
    pub(crate) fn into_vec(mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        read_up_to(u64::MAX, &mut self, &mut bytes)?;
        Ok(bytes)
    }
}

impl ReadSome for EntryReader<'_> {
    fn read_some(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(out.len());
        if most == 0 {
            return Ok(0);
        }
        let n = self.from.read(&mut out[..most])?;
        if n == 0 {
            return Err(malformed("the file is damaged: an entry is shorter than the directory says"));
        }
        self.crc.update(&out[..n]);
        self.left -= n as u64;
        if self.left == 0 {
            if self.expected != UNCHECKED && self.crc.sum() != self.expected {
                return Err(self.damaged());
            }
            if self.from.read(&mut [0])? > 0 {
                return Err(malformed("the file is damaged: an entry is longer than the directory says"));
            }
        }
        Ok(n)
    }
}

/// Writes an archive, entry by entry.
pub(crate) struct Writer<'a> {
    out: &'a mut Output<'a>,
    position: u64,
    directory: Vec<u8>,
    count: u64,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: &'a mut Output<'a>) -> Writer<'a> {
        Writer { out, position: 0, directory: Vec::new(), count: 0 }
    }

    /// Writes an entry without compression. Its content is made twice: for the checksum and for the file.
    pub(crate) fn add(
        &mut self,
        name: &str,
        content: &dyn Fn(&mut Output<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let (mut sum, mut size) = (Crc::new(), 0);
        content(&mut |bytes| {
            sum.update(bytes);
            size += bytes.len() as u64;
            Ok(())
        })?;
        let crc = sum.sum();
        let name_length = u16::try_from(name.len()).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, "a name is longer than zip archives allow")
        })?;
        let header = self.position;
        let small = size < u32::MAX.into() && header < u32::MAX.into();
        let version: u16 = if small { 20 } else { 45 };
        let in_32 = |x: u64| if small { x as u32 } else { u32::MAX };
        // Shared by both headers: version, flags, method, time and date (1980-01-01), checksum, sizes, name.
        let mut fields = Vec::new();
        fields.extend(version.to_le_bytes());
        fields.extend(UTF8.to_le_bytes());
        fields.extend(STORED.to_le_bytes());
        fields.extend([0, 0, 0x21, 0]);
        fields.extend(crc.to_le_bytes());
        fields.extend(in_32(size).to_le_bytes());
        fields.extend(in_32(size).to_le_bytes());
        fields.extend(name_length.to_le_bytes());

        let extra = |with_header: bool| {
            let mut extra = Vec::new();
            if !small {
                let length: u16 = if with_header { 24 } else { 16 };
                extra.extend(ZIP64.to_le_bytes());
                extra.extend(length.to_le_bytes());
                extra.extend(size.to_le_bytes());
                extra.extend(size.to_le_bytes());
                extra.extend(header.to_le_bytes());
                extra.truncate(4 + usize::from(length));
            }
            extra
        };
        let (here, there) = (extra(false), extra(true));
        let here_length = here.len() as u16; // at most 20
        self.write(&[ENTRY, &fields, &here_length.to_le_bytes(), name.as_bytes(), &here].concat())?;
        content(self.out)?;
        self.position += size;

        self.directory.extend(DIRECTORY);
        self.directory.extend(version.to_le_bytes()); // the version that it was made by
        self.directory.extend(fields);
        self.directory.extend((there.len() as u16).to_le_bytes());
        self.directory.extend([0; 10]); // no comment, on disk 0, no attributes
        self.directory.extend(in_32(header).to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.directory.extend(there);
        self.count += 1;
        Ok(())
    }

    /// Writes the directory.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        let (start, directory) = (self.position, std::mem::take(&mut self.directory));
        self.write(&directory)?;
        let (end, size) = (self.position, directory.len() as u64);
        let large = self.count >= u16::MAX.into() || [start, size].iter().any(|&x| x >= u32::MAX.into());
        if large {
            let mut end64 = END64.to_vec();
            end64.extend((END64_SIZE as u64 - 12).to_le_bytes());
            end64.extend([45, 0, 45, 0]);
            end64.extend([0; 8]);
            for number in [self.count, self.count, size, start] {
                end64.extend(number.to_le_bytes());
            }
            end64.extend(LOCATOR64);
            end64.extend([0; 4]);
            end64.extend(end.to_le_bytes());
            end64.extend(1u32.to_le_bytes());
            self.write(&end64)?;
        }
        let count = u16::try_from(self.count).unwrap_or(u16::MAX).to_le_bytes();
        let in_32 = |x: u64| u32::try_from(x).unwrap_or(u32::MAX).to_le_bytes();
        let size = if large { u64::MAX } else { size };
        self.write(&[END, &[0; 4], &count, &count, &in_32(size), &in_32(start), &[0, 0]].concat())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        (self.out)(bytes)?;
        self.position += bytes.len() as u64;
        Ok(())
    }
}

/// The bytes of an archive with these entries.
#[cfg(test)]
pub(crate) fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = |part: &[u8]| {
        bytes.extend_from_slice(part);
        Ok(())
    };
    let mut zip = Writer::new(&mut out);
    for (name, content) in entries {
        zip.add(name, &|out| out(content)).unwrap();
    }
    zip.finish().unwrap();
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// An entry as a test writes it: its name, method, checksum, stated size and bytes.
    type Raw<'a> = (&'a str, u16, u32, u64, &'a [u8]);

    fn crc(bytes: &[u8]) -> u32 {
        let mut crc = Crc::new();
        crc.update(bytes);
        crc.sum()
    }

    fn deflated(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    /// An archive whose directory says that all entries are at the position of the last one, if `overlap`.
    /// Sizes are in the Zip64 form if `large`.
    fn raw(entries: &[Raw<'_>], overlap: bool, large: bool) -> Vec<u8> {
        let (mut bytes, mut directory, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        for (name, method, _, _, content) in entries {
            starts.push(bytes.len());
            bytes.extend([ENTRY, &[20, 0, 0, 0], &method.to_le_bytes(), &[0; 16]].concat());
            bytes.extend([name.len() as u8, 0, 0, 0]);
            bytes.extend([name.as_bytes(), content].concat());
        }
        for ((name, method, crc, size, content), start) in entries.iter().zip(&starts) {
            let start = if overlap { starts[starts.len() - 1] } else { *start };
            let all = [*size, content.len() as u64, start as u64];
            let small = all.map(|x| if large { u32::MAX } else { x as u32 }.to_le_bytes());
            let mut extra = Vec::new();
            if large {
                extra.extend([9, 0, 1, 0, 7, 1, 0, 24, 0]); // another field before it
                extra.extend(all.map(u64::to_le_bytes).concat());
            }
            directory.extend([DIRECTORY, &[20, 0, 20, 0, 0, 0], &method.to_le_bytes(), &[0; 4]].concat());
            directory.extend([crc.to_le_bytes(), small[1], small[0]].concat());
            directory.extend([name.len() as u8, 0, extra.len() as u8, 0]);
            directory.extend([&[0; 10], &small[2][..], name.as_bytes(), &extra].concat());
        }
        let (start, size) = (bytes.len() as u32, directory.len() as u32);
        let count = (entries.len() as u16).to_le_bytes();
        bytes.extend(directory);
        bytes.extend(
            [END, &[0; 4], &count, &count, &size.to_le_bytes(), &start.to_le_bytes(), &[0, 0]].concat(),
        );
        bytes
    }

    /// The contents of all entries.
    fn read(bytes: &[u8]) -> io::Result<Vec<(String, Vec<u8>)>> {
        let archive = Archive::new(Reader::bytes(bytes), bytes.len() as u64)?;
        let entries = archive.entries().to_vec();
        entries.into_iter().map(|entry| Ok((entry.name.clone(), archive.open(&entry)?.into_vec()?))).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        for count in [0, 1, 3, 70_000] {
            let names: Vec<String> = (0..count).map(|i| i.to_string()).collect();
            let entries: Vec<(&str, &[u8])> =
                names.iter().enumerate().map(|(i, name)| (&name[..], &[7, 7][..i % 3])).collect();
            let contents = read(&archive(&entries)).unwrap();
            assert_eq!(contents.len(), count);
            for (i, (name, content)) in contents.into_iter().enumerate() {
                assert_eq!((name, content), (i.to_string(), vec![7; i % 3]));
            }
        }
    }

    #[test]
    fn stored_and_deflated_entries_are_read() {
        let zeros = vec![0; 100_000];
        let small = deflated(&zeros);
        let entries: [Raw<'_>; 2] =
            [("a", STORED, crc(b"text"), 4, b"text"), ("b", DEFLATED, crc(&zeros), 100_000, &small)];
        for large in [false, true] {
            let contents = read(&raw(&entries, false, large)).unwrap();
            assert_eq!(contents, [("a".to_string(), b"text".to_vec()), ("b".to_string(), zeros.clone())]);
        }
        let unchecked = raw(&[("a", STORED, UNCHECKED, 4, b"text")], false, false);
        assert_eq!(read(&unchecked).unwrap(), [("a".to_string(), b"text".to_vec())]);
        let with_comment = [&raw(&entries, false, false)[..], b"comment"].concat();
        let mut with_comment = with_comment;
        let at = with_comment.len() - 9;
        with_comment[at] = 7;
        assert_eq!(read(&with_comment).unwrap().len(), 2);
    }

    #[test]
    fn says_what_is_wrong() {
        let zeros = vec![0; 100_000];
        let small = deflated(&zeros);
        let sum = crc(&zeros);
        let of = |entry: Raw<'_>| raw(&[entry], false, false);
        for (bytes, message) in [
            (of(("a", STORED, 9, 4, b"text")), "checksum"),
            (of(("a", STORED, 1, 0, b"")), "checksum"),
            (of(("a", STORED, 0, 5, b"text")), "cannot have 5 bytes"),
            (of(("a", STORED, 0, u32::MAX.into(), b"text")), "cut short"),
            (of(("a", DEFLATED, sum, 100_000_000, &small)), "cannot have 100000000 bytes"),
            (of(("a", DEFLATED, sum, 100_001, &small)), "shorter"),
            (of(("a", DEFLATED, crc(&zeros[1..]), 99_999, &small)), "longer"),
            (of(("a", 12, 0, 4, b"text")), "method 12"),
            (raw(&[("a", STORED, crc(b"text"), 4, &b"text"[..]); 2], false, false), "two entries"),
            (of(("a", STORED, 0, 4, b"text"))[4..].to_vec(), "ends after the file"),
            (b"PK\x03\x04".repeat(10), "no directory"),
            (vec![], "no directory"),
        ] {
            let error = read(&bytes).unwrap_err();
            assert!(error.to_string().contains(message), "{error} does not say '{message}'");
        }
    }

    /// Many entries that all are the same bytes: each is small, and all of them would fill memory.
    #[test]
    fn entries_cannot_be_more_than_the_file() {
        let content = vec![1; 10_000];
        let sum = crc(&content);
        let entries: Vec<Raw<'_>> = ["a", "b", "c"]
            .map(|name| (name, STORED, sum, 10_000, if name == "c" { &content[..] } else { b"" }))
            .into();
        let mut bytes = raw(&entries, true, false);
        // The sizes in the archive of the first two, which the helper took from their content.
        let directory = bytes.len() - END_SIZE - 3 * (DIRECTORY_SIZE + 1);
        for entry in 0..2 {
            let at = directory + entry * (DIRECTORY_SIZE + 1) + 20;
            bytes[at..at + 4].copy_from_slice(&10_000u32.to_le_bytes());
        }
        assert!(read(&bytes).unwrap_err().to_string().contains("the entries have"));
    }
}
