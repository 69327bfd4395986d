//! An interpreter of pickles that knows only what state dicts are made of.
//!
//! A pickle is a program for a machine with a stack and a memo. This one can make dicts, lists, tuples,
//! numbers, strings, bools and `None`. It cannot import anything: a global is a value of [`Global`] or an
//! error, and calling one makes a dict or describes a tensor. Everything that it holds is at most a small
//! multiple of the length of the pickle, because each op adds a bounded amount. Containers refer to each
//! other by number, so nothing here is recursive, neither for cycles nor for deep nesting.
//!
//! # Source
//! Python, `Lib/pickletools.py`; PyTorch, `torch/_utils.py` and `torch/_weights_only_unpickler.py`.

use namegrad_core::DType;
use std::collections::BTreeMap;
use std::rc::Rc;

/// PyTorch's own limit.
const MOST_DIMS: usize = 64;
/// PyTorch's keys are numbers.
const LONGEST_KEY: usize = 100;

/// A value in a pickle. Containers are indices into [`Machine::containers`].
#[derive(Clone, Debug)]
pub(crate) enum PickleValue {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Rc<str>),
    List(usize),
    Tuple(usize),
    Dict(usize),
    Global(Global),
    /// A number of [`Machine::storages`].
    Storage(usize),
    /// A number of [`Machine::tensors`].
    Tensor(usize),
}

impl PickleValue {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            PickleValue::None => "None",
            PickleValue::Bool(_) => "a bool",
            PickleValue::Int(_) => "an int",
            PickleValue::Float(_) => "a float",
            PickleValue::Text(_) => "a string",
            PickleValue::List(_) => "a list",
            PickleValue::Tuple(_) => "a tuple",
            PickleValue::Dict(_) => "a dict",
            PickleValue::Global(_) => "a function",
            PickleValue::Storage(_) => "a storage",
            PickleValue::Tensor(_) => "a tensor",
        }
    }
}

/// The globals that a pickle can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Global {
    OrderedDict,
    RebuildTensor,
    RebuildParameter,
    Storage(DType),
}

const GLOBALS: [(&str, &str, Global); 13] = [
    ("collections", "OrderedDict", Global::OrderedDict),
    ("torch._utils", "_rebuild_tensor_v2", Global::RebuildTensor),
    ("torch._utils", "_rebuild_parameter", Global::RebuildParameter),
    ("torch", "BoolStorage", Global::Storage(DType::Bool)),
    ("torch", "ByteStorage", Global::Storage(DType::U8)),
    ("torch", "CharStorage", Global::Storage(DType::I8)),
    ("torch", "ShortStorage", Global::Storage(DType::I16)),
    ("torch", "IntStorage", Global::Storage(DType::I32)),
    ("torch", "LongStorage", Global::Storage(DType::I64)),
    ("torch", "HalfStorage", Global::Storage(DType::F16)),
    ("torch", "BFloat16Storage", Global::Storage(DType::BF16)),
    ("torch", "FloatStorage", Global::Storage(DType::F32)),
    ("torch", "DoubleStorage", Global::Storage(DType::F64)),
];

/// The elements that tensors are views of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StorageRef {
    pub(crate) key: Rc<str>,
    pub(crate) dtype: DType,
    pub(crate) numel: u64,
}

/// A view of a storage.
#[derive(Clone, Debug)]
pub(crate) struct StridedView {
    pub(crate) storage: usize,
    pub(crate) offset: usize,
    pub(crate) sizes: Vec<usize>,
    pub(crate) strides: Vec<usize>,
}

#[derive(Debug)]
pub(crate) enum Container {
    Sequence(Vec<PickleValue>),
    Dict(Vec<(PickleValue, PickleValue)>),
}

impl Container {
    pub(crate) fn len(&self) -> usize {
        match self {
            Container::Sequence(items) => items.len(),
            Container::Dict(items) => items.len(),
        }
    }
}

/// The result of a pickle.
#[derive(Debug)]
pub(crate) struct Unpickled {
    pub(crate) root: PickleValue,
    pub(crate) containers: Vec<Container>,
    pub(crate) storages: Vec<StorageRef>,
    pub(crate) tensors: Vec<StridedView>,
}

/// The error of a pickle that is refused.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) message: String,
    /// Whether the pickle has objects other than tensors, such as a whole model.
    pub(crate) is_foreign: bool,
}

/// Runs a pickle.
pub(crate) fn unpickle(pickle: &[u8]) -> Result<Unpickled, Refused> {
    let mut machine = Machine { rest: pickle, length: pickle.len(), ..Machine::default() };
    let root = loop {
        let at = pickle.len() - machine.rest.len();
        match machine.step() {
            Ok(None) => {}
            Ok(Some(root)) => break root,
            Err(message) => {
                let message = format!("{message} (at byte {at} of the pickle); nothing was run");
                return Err(Refused { message, is_foreign: machine.is_foreign });
            }
        }
    };
    let Machine { containers, storages, tensors, .. } = machine;
    Ok(Unpickled { root, containers, storages, tensors })
}

#[derive(Default)]
struct Machine<'a> {
    rest: &'a [u8],
    stack: Vec<PickleValue>,
    /// The heights of the stack at the marks.
    marks: Vec<usize>,
    memo: Vec<Option<PickleValue>>,
    /// The number of values in the memo.
    remembered: usize,
    /// The length of the pickle, which limits the keys of the memo.
    length: usize,
    containers: Vec<Container>,
    storages: Vec<StorageRef>,
    /// The number of the storage of each key.
    keys: BTreeMap<String, usize>,
    tensors: Vec<StridedView>,
    is_foreign: bool,
}

/// The names of ops that are refused, for messages; the numbers are those of Python.
const REFUSED: [(u8, &str); 27] = [
    (b'i', "INST"),
    (b'o', "OBJ"),
    (0x81, "NEWOBJ"),
    (0x92, "NEWOBJ_EX"),
    (0x82, "EXT1"),
    (0x83, "EXT2"),
    (0x84, "EXT4"),
    (b'P', "PERSID"),
    (0x8f, "EMPTY_SET"),
    (0x90, "ADDITEMS"),
    (0x91, "FROZENSET"),
    (b'B', "BINBYTES"),
    (b'C', "SHORT_BINBYTES"),
    (0x8e, "BINBYTES8"),
    (0x96, "BYTEARRAY8"),
    (0x97, "NEXT_BUFFER"),
    (0x98, "READONLY_BUFFER"),
    (0x8b, "LONG4"),
    (b'I', "INT"),
    (b'L', "LONG"),
    (b'F', "FLOAT"),
    (b'S', "STRING"),
    (b'V', "UNICODE"),
    (b'g', "GET"),
    (b'p', "PUT"),
    (b'T', "BINSTRING"),
    (b'U', "SHORT_BINSTRING"),
];

impl<'a> Machine<'a> {
    /// Executes one op. The last one returns the result.
    fn step(&mut self) -> Result<Option<PickleValue>, String> {
        let op = self.bytes(1)?[0];
        match op {
            0x80 => self.protocol()?,
            0x95 => drop(self.bytes(8)?), // the length of a frame
            b'.' => return self.pop().map(Some),

            b'N' => self.stack.push(PickleValue::None),
            0x88 => self.stack.push(PickleValue::Bool(true)),
            0x89 => self.stack.push(PickleValue::Bool(false)),
            b'K' => self.integer(1)?,
            b'M' => self.integer(2)?,
            b'J' => {
                let number = i32::from_le_bytes(self.array()?);
                self.stack.push(PickleValue::Int(number.into()));
            }
            0x8a => self.long()?,
            b'G' => {
                let number = f64::from_be_bytes(self.array()?);
                self.stack.push(PickleValue::Float(number));
            }
            0x8c => self.text(1)?,
            b'X' => self.text(4)?,
            0x8d => self.text(8)?,

            b'(' => self.marks.push(self.stack.len()),
            b'0' => drop(self.pop()?),
            b'1' => drop(self.since_mark()?),
            b'2' => {
                let top = self.stack.last().ok_or("its stack is empty")?.clone();
                self.stack.push(top);
            }
            b')' => self.tuple(Vec::new()),
            0x85..=0x87 => {
                let items = self.take(usize::from(op - 0x84))?;
                self.tuple(items);
            }
            b't' => {
                let items = self.since_mark()?;
                self.tuple(items);
            }
            b']' => self.list(Vec::new()),
            b'l' => {
                let items = self.since_mark()?;
                self.list(items);
            }
            b'}' => self.dict(Vec::new()),
            b'd' => {
                let items = self.since_mark()?;
                self.dict(pairs(items)?);
            }
            b'a' => {
                let items = self.take(1)?;
                self.append(items)?;
            }
            b'e' => {
                let items = self.since_mark()?;
                self.append(items)?;
            }
            b's' => {
                let items = self.take(2)?;
                self.insert(items)?;
            }
            b'u' => {
                let items = self.since_mark()?;
                self.insert(items)?;
            }

            b'q' => {
                let key = self.unsigned(1)? as u32;
                self.remember(key)?;
            }
            b'r' => {
                let key = self.unsigned(4)? as u32;
                self.remember(key)?;
            }
            0x94 => self.remember(self.remembered as u32)?,
            b'h' => self.recall(1)?,
            b'j' => self.recall(4)?,

            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.global(module, name)?;
            }
            0x93 => {
                let names = self.take(2)?;
                let [PickleValue::Text(module), PickleValue::Text(name)] = &names[..] else {
                    return Err("it names a global by something other than strings".into());
                };
                self.global(module, name)?;
            }
            b'Q' => self.persistent()?,
            b'R' => self.call()?,
            b'b' => self.build()?,
            op => {
                let name = REFUSED.iter().find(|(refused, _)| *refused == op);
                let name = name.map_or(format!("0x{op:02x}"), |(_, name)| (*name).to_string());
                return Err(format!("the pickle has the op {name}, which state dicts do not have"));
            }
        }
        Ok(None)
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], String> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or("the pickle is cut short")?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        Ok(self.bytes(N)?.try_into().expect("that many bytes"))
    }

    /// An unsigned number of at most 8 bytes.
    fn unsigned(&mut self, count: usize) -> Result<u64, String> {
        let bytes = self.bytes(count)?;
        Ok(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    fn protocol(&mut self) -> Result<(), String> {
        match self.unsigned(1)? {
            2..=5 => Ok(()),
            version => Err(format!("the pickle has protocol {version}, expected 2 to 5")),
        }
    }

    fn integer(&mut self, count: usize) -> Result<(), String> {
        let number = self.unsigned(count)?;
        self.stack.push(PickleValue::Int(number as i64)); // at most 16 bits
        Ok(())
    }

    /// An integer of any length, of which those in 64 bits are known.
    fn long(&mut self) -> Result<(), String> {
        let count = self.unsigned(1)? as usize;
        let bytes = self.bytes(count)?;
        let sign = if bytes.last().is_some_and(|last| *last >= 0x80) { 0xff } else { 0 };
        if bytes.iter().skip(8).any(|byte| *byte != sign) || (count > 8 && (bytes[7] ^ sign) >= 0x80) {
            return Err("the pickle has an integer of more than 64 bits".into());
        }
        let mut number = [sign; 8];
        for (to, from) in number.iter_mut().zip(bytes) {
            *to = *from;
        }
        self.stack.push(PickleValue::Int(i64::from_le_bytes(number)));
        Ok(())
    }

    fn text(&mut self, width: usize) -> Result<(), String> {
        let length = usize::try_from(self.unsigned(width)?).map_err(|_| "the pickle is cut short")?;
        let text = str::from_utf8(self.bytes(length)?).map_err(|_| "a string of the pickle is not UTF-8")?;
        self.stack.push(PickleValue::Text(text.into()));
        Ok(())
    }

    fn line(&mut self) -> Result<&'a str, String> {
        let end = self.rest.iter().position(|byte| *byte == b'\n').ok_or("the pickle is cut short")?;
        let line = self.bytes(end)?;
        self.bytes(1)?;
        str::from_utf8(line).map_err(|_| "a name in the pickle is not UTF-8".into())
    }

    /// The height below which the stack belongs to what was before the last mark.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn pop(&mut self) -> Result<PickleValue, String> {
        let items = self.take(1)?;
        Ok(items.into_iter().next().expect("there is one"))
    }

    fn take(&mut self, count: usize) -> Result<Vec<PickleValue>, String> {
        let start = self.stack.len().checked_sub(count).filter(|start| *start >= self.floor());
        Ok(self.stack.split_off(start.ok_or("the pickle takes more from its stack than there is")?))
    }

    fn since_mark(&mut self) -> Result<Vec<PickleValue>, String> {
        let mark = self.marks.pop().ok_or("the pickle has an op that needs a mark, and no mark")?;
        Ok(self.stack.split_off(mark))
    }

    fn tuple(&mut self, items: Vec<PickleValue>) {
        self.stack.push(PickleValue::Tuple(self.containers.len()));
        self.containers.push(Container::Sequence(items));
    }

    fn list(&mut self, items: Vec<PickleValue>) {
        self.stack.push(PickleValue::List(self.containers.len()));
        self.containers.push(Container::Sequence(items));
    }

    fn dict(&mut self, items: Vec<(PickleValue, PickleValue)>) {
        self.stack.push(PickleValue::Dict(self.containers.len()));
        self.containers.push(Container::Dict(items));
    }

    fn append(&mut self, items: Vec<PickleValue>) -> Result<(), String> {
        match self.stack.get(self.floor()..).and_then(<[PickleValue]>::last) {
            Some(PickleValue::List(list)) => match &mut self.containers[*list] {
                Container::Sequence(list) => list.extend(items),
                Container::Dict(_) => unreachable!("a list is a sequence"),
            },
            other => {
                return Err(format!("the pickle appends to {}", other.map_or("nothing", PickleValue::kind)));
            }
        }
        Ok(())
    }

    fn insert(&mut self, items: Vec<PickleValue>) -> Result<(), String> {
        let items = pairs(items)?;
        match self.stack.get(self.floor()..).and_then(<[PickleValue]>::last) {
            Some(PickleValue::Dict(dict)) => match &mut self.containers[*dict] {
                Container::Dict(dict) => dict.extend(items),
                Container::Sequence(_) => unreachable!("a dict has pairs"),
            },
            other => {
                return Err(format!(
                    "the pickle sets items of {}",
                    other.map_or("nothing", PickleValue::kind)
                ));
            }
        }
        Ok(())
    }

    fn remember(&mut self, key: u32) -> Result<(), String> {
        let top = self.stack.get(self.floor()..).and_then(<[PickleValue]>::last);
        let top = top.ok_or("the pickle remembers nothing")?.clone();
        let key = key as usize;
        if key >= self.length {
            return Err(format!("the pickle has a memo {key}, but only {} bytes", self.length));
        }
        if key >= self.memo.len() {
            self.memo.resize(key + 1, None);
        }
        self.remembered += usize::from(self.memo[key].is_none());
        self.memo[key] = Some(top);
        Ok(())
    }

    fn recall(&mut self, width: usize) -> Result<(), String> {
        let key = self.unsigned(width)? as usize;
        let value = self
            .memo
            .get(key)
            .and_then(Option::as_ref)
            .ok_or_else(|| format!("the pickle has no memo {key}"))?
            .clone();
        self.stack.push(value);
        Ok(())
    }

    fn global(&mut self, module: &str, name: &str) -> Result<(), String> {
        let known = GLOBALS.iter().find(|known| (known.0, known.1) == (module, name));
        let Some((_, _, global)) = known else {
            let full: String = format!("{module}.{name}").chars().take(200).collect();
            let what = match module {
                "torch" if name.ends_with("Storage") => "is a storage of a dtype that is not supported",
                "torch._utils" if name.starts_with("_rebuild_") => {
                    "makes a kind of tensor that is not supported"
                }
                _ => {
                    self.is_foreign = true;
                    "is not part of a state dict"
                }
            };
            return Err(format!("the pickle asks for {full:?}, which {what}"));
        };
        self.stack.push(PickleValue::Global(*global));
        Ok(())
    }

    fn items(&self, tuple: &PickleValue) -> Option<&[PickleValue]> {
        let (PickleValue::Tuple(number) | PickleValue::List(number)) = tuple else { return None };
        match &self.containers[*number] {
            Container::Sequence(items) => Some(items),
            Container::Dict(_) => None,
        }
    }

    /// A storage: `("storage", type, key, device, number of elements)`.
    fn persistent(&mut self) -> Result<(), String> {
        let id = self.pop()?;
        let Some(
            [
                PickleValue::Text(tag),
                PickleValue::Global(Global::Storage(dtype)),
                PickleValue::Text(key),
                _,
                PickleValue::Int(numel),
            ],
        ) = self.items(&id)
        else {
            return Err("the pickle refers to something other than a storage of a tensor".into());
        };
        let numel = u64::try_from(*numel).ok().filter(|_| &**tag == "storage");
        let storage = StorageRef {
            key: key.clone(),
            dtype: *dtype,
            numel: numel.ok_or("the pickle has a storage of a negative size")?,
        };
        if storage.key.len() > LONGEST_KEY {
            return Err("the pickle has a storage whose key is too long".into());
        }
        let number = *self.keys.entry(key.to_string()).or_insert(self.storages.len());
        match self.storages.get(number) {
            Some(same) if *same != storage => {
                return Err(format!("the pickle has the storage '{}' with different sizes", storage.key));
            }
            Some(_) => {}
            None => self.storages.push(storage),
        }
        self.stack.push(PickleValue::Storage(number));
        Ok(())
    }

    fn call(&mut self) -> Result<(), String> {
        let call = self.take(2)?;
        let (PickleValue::Global(global), Some(arguments)) = (&call[0], self.items(&call[1])) else {
            return Err(format!("the pickle calls {}", call[0].kind()));
        };
        match global {
            // Its items are set one by one. From a list of them, a few bytes could make many large dicts.
            Global::OrderedDict if arguments.is_empty() => self.dict(Vec::new()),
            Global::OrderedDict => return Err("the pickle makes an OrderedDict of a list".into()),
            Global::RebuildTensor => {
                let view = self
                    .view(arguments)
                    .ok_or("the pickle has a tensor that is not well-formed or not plain")?;
                self.stack.push(PickleValue::Tensor(self.tensors.len()));
                self.tensors.push(view);
            }
            Global::RebuildParameter => match arguments {
                [PickleValue::Tensor(tensor), _, _] => self.stack.push(PickleValue::Tensor(*tensor)),
                _ => return Err("the pickle has a parameter without a tensor".into()),
            },
            Global::Storage(_) => return Err("the pickle calls a type of storage".into()),
        }
        Ok(())
    }

    /// `(storage, offset, sizes, strides, requires_grad, hooks)`, with metadata in some versions: bits that
    /// change what the elements mean.
    fn view(&self, arguments: &[PickleValue]) -> Option<StridedView> {
        let [
            PickleValue::Storage(storage),
            PickleValue::Int(offset),
            sizes,
            strides,
            PickleValue::Bool(_),
            _,
            rest @ ..,
        ] = arguments
        else {
            return None;
        };
        let plain = match rest {
            [] | [PickleValue::None] => true,
            [PickleValue::Dict(metadata)] => self.containers[*metadata].len() == 0,
            _ => false,
        };
        let numbers = |tuple: &PickleValue| -> Option<Vec<usize>> {
            self.items(tuple)
                .filter(|items| items.len() <= MOST_DIMS)?
                .iter()
                .map(|item| match item {
                    PickleValue::Int(number) => usize::try_from(*number).ok(),
                    _ => None,
                })
                .collect()
        };
        let (sizes, strides) = (numbers(sizes)?, numbers(strides)?);
        let offset = usize::try_from(*offset).ok()?;
        (plain && sizes.len() == strides.len()).then_some(StridedView {
            storage: *storage,
            offset,
            sizes,
            strides,
        })
    }

    /// Sets the state of an object: that of an `OrderedDict`, which has no meaning here.
    fn build(&mut self) -> Result<(), String> {
        let _state = self.pop()?;
        match self.stack.get(self.floor()..).and_then(<[PickleValue]>::last) {
            Some(PickleValue::Dict(_)) => Ok(()),
            other => {
                Err(format!("the pickle sets the state of {}", other.map_or("nothing", PickleValue::kind)))
            }
        }
    }
}

/// Keys and values in turn.
fn pairs(items: Vec<PickleValue>) -> Result<Vec<(PickleValue, PickleValue)>, String> {
    if !items.len().is_multiple_of(2) {
        return Err("the pickle has a key without a value".into());
    }
    let mut items = items.into_iter();
    Ok(std::iter::from_fn(|| items.next().zip(items.next())).collect())
}
