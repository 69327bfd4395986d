//! [`Vocabulary`]: the tokens of texts, and their numbers.

use namegrad_autograd::Tensor;
use namegrad_core::{Error, ErrorKind, Result};
use namegrad_io::{TensorFile, sorted};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::panic::Location;
use std::path::Path;

const OP: &str = "Vocabulary";
/// The metadata key of a file.
const KEY: &str = "vocabulary";

/// The kind of the tokens: bytes, characters or words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tokens {
    /// The bytes of its UTF-8 form.
    Bytes,
    /// Its characters.
    Chars,
    /// Its words: what is between blanks.
    Words,
}

/// Tokens with a number for each. It turns texts into tensors and back.
///
/// # Examples
/// ```
/// use namegrad::data::Vocabulary;
/// let vocabulary = Vocabulary::chars("hello");
/// assert_eq!(vocabulary.tokens(), ["e", "h", "l", "o"]);
/// let ids = vocabulary.encode("hell")?; // [seq] in i64
/// assert_eq!(ids.to_vec::<i64>()?, [1, 0, 2, 2]);
/// assert_eq!(vocabulary.decode(&ids)?, "hell");
/// # Ok::<(), namegrad::Error>(())
/// ```
///
/// Special tokens come first, in the order in which they are added; a token that is not known gets the number
/// of the unknown one:
/// ```
/// use namegrad::data::Vocabulary;
/// let vocabulary = Vocabulary::words("the cat and the dog").with_special("<pad>")?.with_unknown("<unk>")?;
/// assert_eq!(vocabulary.tokens(), ["<pad>", "<unk>", "and", "cat", "dog", "the"]);
/// assert_eq!(vocabulary.id("<pad>"), Some(0));
/// assert_eq!(vocabulary.ids("the bird")?, [5, 1]);
/// # Ok::<(), namegrad::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "VocabularyState", into = "VocabularyState")]
pub struct Vocabulary {
    of: Tokens,
    tokens: Vec<String>,
    ids: HashMap<String, i64>,
    special: usize,
    unknown: Option<i64>,
}

/// The tokens with their numbers.
fn numbered(tokens: &[String]) -> HashMap<String, i64> {
    let mut ids = HashMap::new();
    for (id, token) in tokens.iter().enumerate() {
        ids.insert(token.clone(), id as i64);
    }
    ids
}

impl Vocabulary {
    /// The 256 bytes, each with its value as its number.
    pub fn bytes() -> Vocabulary {
        Vocabulary::of(Tokens::Bytes, sorted::list_of(256, &mut |byte| format!("{byte:#04x}")))
    }

    /// The characters that occur in a text, in alphabetical order.
    pub fn chars(text: &str) -> Vocabulary {
        let mut is_used = vec![false; char::MAX as usize + 1];
        for char in text.chars() {
            is_used[char as usize] = true;
        }
        let chars = ('\0'..=char::MAX).filter(|char| is_used[*char as usize]);
        Vocabulary::of(Tokens::Chars, crate::list(chars.map(String::from)))
    }

    /// The words that occur in a text, in alphabetical order.
    pub fn words(text: &str) -> Vocabulary {
        Vocabulary::frequent_words(text, 1)
    }

    /// The words that occur in a text at least `min_count` times, in alphabetical order.
    ///
    /// ```
    /// use namegrad::data::Vocabulary;
    /// assert_eq!(Vocabulary::frequent_words("the cat and the dog", 2).tokens(), ["the"]);
    /// ```
    pub fn frequent_words(text: &str, min_count: usize) -> Vocabulary {
        let mut counts: HashMap<String, i64> = HashMap::new();
        for word in text.split_whitespace() {
            match counts.get_mut(word) {
                Some(count) => *count += 1,
                None => drop(counts.insert(word.to_string(), 1)),
            }
        }
        let mut words = Vec::new();
        for (word, count) in counts {
            words.extend((count as usize >= min_count).then_some(word));
        }
        sorted::sort(&mut words, &|a, b| a < b);
        Vocabulary::of(Tokens::Words, words)
    }

    /// A vocabulary of tokens that differ.
    fn of(of: Tokens, tokens: Vec<String>) -> Vocabulary {
        Vocabulary { of, ids: numbered(&tokens), tokens, special: 0, unknown: None }
    }

    /// The same vocabulary with a special token, such as `<pad>`, after those that it has, and before all
    /// others. In a text it is not special; [`id`](Self::id) tells its number.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if it is in the vocabulary already, or that is one of bytes.
    #[track_caller]
    pub fn with_special(mut self, token: &str) -> Result<Vocabulary> {
        let caller = Location::caller();
        let refused = |message: String| Err(Error::new(ErrorKind::Value, OP, message).at(caller));
        if self.of == Tokens::Bytes {
            return refused("the number of a byte is its value, so there are no special tokens".into());
        }
        if self.ids.contains_key(token) {
            return refused(format!("'{token}' is in the vocabulary already"));
        }
        self.tokens.insert(self.special, token.into());
        self.special += 1;
        self.ids = numbered(&self.tokens);
        Ok(self)
    }

    /// The same vocabulary with a special token whose number every unknown token gets.
    ///
    /// # Errors
    /// Same as [`with_special`](Self::with_special).
    #[track_caller]
    pub fn with_unknown(self, token: &str) -> Result<Vocabulary> {
        let mut vocabulary = self.with_special(token)?;
        vocabulary.unknown = vocabulary.id(token);
        Ok(vocabulary)
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// All tokens in the order of their numbers.
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }

    /// The number of a token.
    pub fn id(&self, token: &str) -> Option<i64> {
        self.ids.get(token).copied()
    }

    /// The numbers of the tokens of a text.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if a token is not in the vocabulary, and that has no unknown token.
    #[track_caller]
    pub fn ids(&self, text: &str) -> Result<Vec<i64>> {
        let caller = Location::caller();
        let mut ids = Vec::new();
        let mut add = |token: &str| match self.id(token).or(self.unknown) {
            Some(id) => {
                ids.push(id);
                Ok(())
            }
            None => {
                let place = ids.len();
                let message = format!("{token:?}, token {place} of the text, is not in the vocabulary");
                let error = Error::new(ErrorKind::Value, OP, message);
                Err(error.with_repair("vocabulary.with_unknown(\"<unk>\")?").at(caller))
            }
        };
        match self.of {
            Tokens::Bytes => return Ok(crate::list(text.bytes().map(i64::from))),
            Tokens::Words => text.split_whitespace().try_for_each(add)?,
            Tokens::Chars => {
                let mut bytes = [0; 4];
                for char in text.chars() {
                    add(char.encode_utf8(&mut bytes))?;
                }
            }
        }
        Ok(ids)
    }

    /// The numbers of the tokens of a text, `[seq]` in `i64`.
    ///
    /// # Errors
    /// Same as [`ids`](Self::ids).
    #[track_caller]
    pub fn encode(&self, text: &str) -> Result<Tensor> {
        let caller = Location::caller();
        let ids = self.ids(text).map_err(|error| error.at(caller))?;
        Tensor::from_slice(&ids, [("seq", ids.len())])
    }

    /// The text of a vector of numbers, in `i64`: bytes and characters one after another, words with a blank
    /// between them. Bytes that are not UTF-8 become `U+FFFD`.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] if there is no token with a number, [`ErrorKind::DType`] for another dtype.
    #[track_caller]
    pub fn decode(&self, ids: &Tensor) -> Result<String> {
        let caller = Location::caller();
        self.text(&ids.to_vec::<i64>()?).map_err(|error| error.at(caller))
    }

    /// The text of numbers; see [`decode`](Self::decode).
    ///
    /// # Errors
    /// [`ErrorKind::Index`] if there is no token with a number.
    #[track_caller]
    pub fn text(&self, ids: &[i64]) -> Result<String> {
        let caller = Location::caller();
        let mut tokens = Vec::new();
        for id in ids {
            let Some(token) = usize::try_from(*id).ok().and_then(|id| self.tokens.get(id)) else {
                let message = format!("no token has number {id} in a vocabulary of {}", self.len());
                return Err(Error::new(ErrorKind::Index, OP, message).at(caller));
            };
            tokens.push(token.clone());
        }
        Ok(match self.of {
            Tokens::Chars => crate::joined(&tokens, ""),
            Tokens::Words => crate::joined(&tokens, " "),
            Tokens::Bytes => {
                let bytes: Vec<u8> = crate::list(ids.iter().map(|id| *id as u8));
                String::from_utf8_lossy(&bytes).into_owned()
            }
        })
    }

    /// Writes the vocabulary to a safetensors file without tensors, as JSON under the metadata key
    /// `vocabulary`. If that fails, an existing file is unchanged.
    ///
    /// # Errors
    /// Same as [`TensorFile::save`](namegrad_io::TensorFile::save).
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let caller = Location::caller();
        TensorFile::of_json(KEY, self).and_then(|file| file.save(path)).map_err(|error| error.at(caller))
    }

    /// Reads a vocabulary from a file.
    ///
    /// ```
    /// use namegrad::data::Vocabulary;
    /// # let file = format!("namegrad-doc-words-{}.safetensors", std::process::id());
    /// # let path = std::env::temp_dir().join(file);
    /// let vocabulary = Vocabulary::words("the cat").with_unknown("<unk>")?;
    /// vocabulary.save(&path)?;
    /// assert_eq!(Vocabulary::load(&path)?, vocabulary);
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`TensorFile::load`](namegrad_io::TensorFile::load); [`ErrorKind::Format`] if the file
    /// is not a vocabulary.
    #[track_caller]
    pub fn load(path: impl AsRef<Path>) -> Result<Vocabulary> {
        TensorFile::load_as(path, |file| file.json(KEY, "a vocabulary"))
    }
}

/// A vocabulary in a file.
#[derive(Serialize, Deserialize)]
struct VocabularyState {
    of: Tokens,
    special: usize,
    unknown: Option<i64>,
    tokens: Vec<String>,
}

impl From<Vocabulary> for VocabularyState {
    fn from(vocabulary: Vocabulary) -> VocabularyState {
        let Vocabulary { of, special, unknown, tokens, .. } = vocabulary;
        VocabularyState { of, special, unknown, tokens }
    }
}

impl TryFrom<VocabularyState> for Vocabulary {
    type Error = String;

    fn try_from(described: VocabularyState) -> std::result::Result<Vocabulary, String> {
        let VocabularyState { of, special, unknown, tokens } = described;
        let count = tokens.len();
        let vocabulary = Vocabulary { special, unknown, ..Vocabulary::of(of, tokens) };
        let in_range = unknown.is_none_or(|id| (0..special as i64).contains(&id)) && special <= count;
        match vocabulary.ids.len() == count && in_range && (of != Tokens::Bytes || count == 256) {
            true => Ok(vocabulary),
            false => Err("not a vocabulary: a token repeats, or a number is out of range".into()),
        }
    }
}
