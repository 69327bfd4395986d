//! A text as numbers of its characters, and the texts that examples learn.

use super::Result;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A text in which each character is a number.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    /// The characters that occur, in order; their positions are their numbers.
    pub(crate) characters: Vec<char>,
    pub(crate) ids: Vec<i64>,
}

impl Text {
    pub(crate) fn new(text: &str) -> Text {
        let characters: Vec<char> = text.chars().collect::<BTreeSet<char>>().into_iter().collect();
        let id = |c: char| characters.binary_search(&c).map_or(0, |id| id as i64); // each of them occurs
        Text { ids: text.chars().map(id).collect(), characters }
    }

    /// The text with these numbers.
    pub(crate) fn decode(&self, ids: &[i64]) -> String {
        ids.iter().map(|id| self.characters[*id as usize]).collect()
    }
}

/// The text in a file.
pub(crate) fn read(file: &Path) -> Result<String> {
    Ok(fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?)
}

/// The Rust sources in a folder and those in it, one after another, without those in `target` and in hidden folders.
pub(crate) fn sources(folder: &Path) -> Result<String> {
    let (mut folders, mut files) = (vec![folder.to_path_buf()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if name.ends_with(".rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::scratch::Scratch;
    use super::*;

    #[test]
    fn a_text_comes_back() {
        let text = Text::new("hello → hé");
        assert_eq!(text.characters, [' ', 'e', 'h', 'l', 'o', 'é', '→']);
        assert_eq!(text.decode(&text.ids), "hello → hé");
        assert!(Text::new("").ids.is_empty());
    }

    #[test]
    fn sources_are_in_order() {
        let folder = Scratch::new("text-sources");
        for (path, text) in
            [("b.rs", "b"), ("a/c.rs", "c"), ("target/d.rs", "d"), (".e/f.rs", "f"), ("g.txt", "g")]
        {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        assert_eq!(sources(folder.path()).unwrap(), "cb");
        let missing = folder.path().join("missing");
        assert!(read(&missing).unwrap_err().to_string().starts_with(&missing.display().to_string()));
    }
}
