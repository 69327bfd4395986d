//! The repairs in the sources, and those of them that no case has followed.

use std::fs;
use std::path::{Path, PathBuf};

/// The calls that give an error its repair, in their last argument.
const GIVING: [&str; 3] = [".with_repair(", "refused(", "wrong_order("];

/// Repairs of failures of the system, which no program can provoke, and repairs in Python.
const BY_THE_SYSTEM: [&str; 5] = [
    ".workers(2)",
    "if let Err(error) = log.scalar(..) { .. } to train on without it",
    "torch.save(torch.load(path, weights_only=True), path) # in Python",
    "torch.save(model.state_dict(), path) # in Python",
    "torch.save(program.state_dict(), path) # in Python",
];

/// The texts of repairs in the sources that no printed repair is made of.
pub(super) fn not_followed(printed: &[String]) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut missing = Vec::new();
    for krate in ["core", "autograd", "io", "nn", "optim", "data", "train"] {
        let mut files = Vec::new();
        rust_files(&root.join(krate).join("src"), &mut files);
        let sources: Vec<(PathBuf, String)> = files
            .into_iter()
            .map(|path| (path.clone(), code(&fs::read_to_string(&path).expect("a source"))))
            .collect();
        for (path, text) in &sources {
            for (at, giving) in
                GIVING.iter().flat_map(|giving| text.match_indices(giving).map(move |(at, _)| (at, giving)))
            {
                let is_other = giving.starts_with(char::is_alphabetic)
                    && text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
                // The errors of optimizers are given their repairs by functions.
                if is_other || text[..at].ends_with("fn ") || krate != "optim" && *giving != GIVING[0] {
                    continue;
                }
                let argument = last_argument(&text[at + giving.len()..]);
                let mut texts = texts_in(argument);
                if texts.is_empty() {
                    texts = words(argument)
                        .into_iter()
                        .filter(|word| *word != "OP")
                        .flat_map(|word| made(word, &text[..at], &sources))
                        .collect();
                }
                texts.retain(|text| {
                    !BY_THE_SYSTEM.contains(&&text[..])
                        && !printed.iter().any(|printed| is_made_of(printed, text))
                });
                let line = text[..at].lines().count();
                let place = path.strip_prefix(&root).unwrap_or(path).display().to_string();
                missing.extend(
                    texts.into_iter().map(|text| format!("{place}:{line}: no case follows {text:?}")),
                );
            }
        }
    }
    missing.sort();
    missing.dedup();
    missing
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources").flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => rust_files(&path, files),
            false if path.extension().is_some_and(|extension| extension == "rs") => files.push(path),
            false => {}
        }
    }
}

/// The code of a file: its comments and tests are empty lines.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    text.lines().map(|line| if is_comment(&line) { "" } else { line }).collect::<Vec<_>>().join("\n")
}

/// The end of code that is closed by what opened before it, and its last argument.
fn last_argument(text: &str) -> &str {
    let (mut start, mut end) = (0, text.len());
    scan(text, &mut |at, byte, depth| {
        match (byte, depth) {
            (b',', 0) if !text[at + 1..].trim_start().starts_with(')') => start = at + 1,
            (_, -1) => end = at,
            _ => {}
        }
        depth >= 0
    });
    &text[start..end.max(start)]
}

/// Calls `f` with each byte outside of texts and how deep it is in brackets, until that returns `false`.
fn scan(text: &str, f: &mut dyn FnMut(usize, u8, i32) -> bool) {
    let (bytes, mut at, mut depth) = (text.as_bytes(), 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'\'' if bytes.get(at + 2) == Some(&b'\'') => at += 2,
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        if at < bytes.len() && !f(at, bytes[at], depth) {
            return;
        }
        at += 1;
    }
}

/// The texts in a piece of code that have letters.
fn texts_in(code: &str) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), code);
    while let Some(start) = rest.find('"') {
        let body = &rest[start + 1..];
        let mut end = 0;
        while end < body.len() && body.as_bytes()[end] != b'"' {
            end += if body.as_bytes()[end] == b'\\' { 2 } else { 1 };
        }
        let Some(text) = body.get(..end) else { break };
        if text.contains(|c: char| c.is_alphanumeric()) && !rest[..start].ends_with(".expect(") {
            found.push(text.to_string());
        }
        rest = body.get(end + 1..).unwrap_or_default();
    }
    found
}

/// The texts that begin with code, among those of messages.
fn repairs_in(code: &str) -> Vec<String> {
    let begins = |text: &String| {
        let text = unescaped(text);
        super::code_of(&text).first().is_some_and(|first| text.starts_with(first))
    };
    texts_in(code).into_iter().filter(begins).collect()
}

fn words(code: &str) -> Vec<&str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect()
}

/// The texts that a variable, a constant or a function makes: a variable is in the code before its use.
fn made(word: &str, before: &str, sources: &[(PathBuf, String)]) -> Vec<String> {
    let is_bound = |at: usize| {
        let line = before[at..].split(['=', ';']).next().unwrap_or_default();
        words(line).contains(&word)
    };
    if let Some((at, _)) = before.match_indices("let ").filter(|(at, _)| is_bound(*at)).last() {
        let statement = &before[at..];
        let mut end = statement.len();
        scan(statement, &mut |at, byte, depth| {
            if byte == b';' && depth == 0 {
                end = at;
            }
            end == statement.len()
        });
        return repairs_in(&statement[..end]);
    }
    for (_, text) in sources {
        if let Some(at) = text.find(&format!("const {word}:")) {
            return texts_in(text[at..].split_once(";\n").map_or("", |(constant, _)| constant));
        }
        if let Some(at) = text.find(&format!("fn {word}(")) {
            let Some((_, body)) = text[at..].split_once('{') else { continue };
            let mut end = body.len();
            scan(body, &mut |at, _, depth| {
                end = at;
                depth >= 0
            });
            return repairs_in(&body[..end]);
        }
    }
    Vec::new()
}

/// A text as it is printed, except for its holes.
fn unescaped(text: &str) -> String {
    let mut lines = text.split("\\\n");
    let mut joined = lines.next().unwrap_or_default().to_string();
    lines.for_each(|line| joined += line.trim_start());
    joined.replace("\\\"", "\"").replace("{{", "{").replace("}}", "}")
}

/// Whether a printed repair has the fixed parts of a text, in their order.
fn is_made_of(printed: &str, text: &str) -> bool {
    let (mut rest, text) = (printed, unescaped(text));
    let mut parts = Vec::new();
    let mut left = &text[..];
    while let Some((part, after)) = left.split_once('{') {
        // `{ .. }` is code, and everything else in braces a hole.
        match after.starts_with(' ') {
            true => {
                let end = after.find('}').map_or(after.len(), |end| end + 1);
                parts.push(part);
                left = &after[end..];
            }
            false => {
                parts.push(part);
                left = after.split_once('}').map_or("", |(_, after)| after);
            }
        }
    }
    parts.push(left);
    parts.iter().all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}
