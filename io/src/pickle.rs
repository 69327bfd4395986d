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

use crate::sorted;
use namegrad_core::DType;
use std::borrow::Cow;

/// PyTorch's own limit.
const MOST_DIMS: usize = 64;
/// PyTorch's keys are numbers.
const LONGEST_KEY: usize = 100;

/// A value in a pickle; texts are parts of it. Containers are indices into [`Machine::containers`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum PickleValue<'p> {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'p str),
    List(usize),
    Tuple(usize),
    Dict(usize),
    Global(Global),
    /// A number of [`Machine::storages`].
    Storage(usize),
    /// A number of [`Machine::tensors`].
    Tensor(usize),
}

impl PickleValue<'_> {
    pub(crate) fn kind(self) -> &'static str {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StorageRef<'p> {
    pub(crate) key: &'p str,
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

/// The result of a pickle.
#[derive(Debug)]
pub(crate) struct Unpickled<'p> {
    pub(crate) root: PickleValue<'p>,
    /// The items of lists and tuples, and the keys and values in turn of dicts.
    pub(crate) containers: Vec<Vec<PickleValue<'p>>>,
    /// The storages, as often as the pickle refers to them.
    pub(crate) storages: Vec<StorageRef<'p>>,
    pub(crate) tensors: Vec<StridedView>,
}

/// The error of a pickle that is refused.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) message: String,
    /// Whether the pickle has objects other than tensors, such as a whole model.
    pub(crate) is_foreign: bool,
}

/// The value that an op gives, or the reason why it is refused.
type Done<T = ()> = Result<T, Cow<'static, str>>;

/// Runs a pickle.
pub(crate) fn unpickle(pickle: &[u8]) -> Result<Unpickled<'_>, Refused> {
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
struct Machine<'p> {
    rest: &'p [u8],
    stack: Vec<PickleValue<'p>>,
    /// The heights of the stack at the marks.
    marks: Vec<usize>,
    memo: Vec<Option<PickleValue<'p>>>,
    /// The number of values in the memo.
    remembered: usize,
    /// The length of the pickle, which limits the keys of the memo.
    length: usize,
    containers: Vec<Vec<PickleValue<'p>>>,
    storages: Vec<StorageRef<'p>>,
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

impl<'p> Machine<'p> {
    /// Executes one op. The last one returns the result.
    fn step(&mut self) -> Done<Option<PickleValue<'p>>> {
        let op = self.bytes(1)?[0];
        match op {
            0x80 => self.protocol()?,
            0x95 => drop(self.bytes(8)?), // the length of a frame
            b'.' => {
                self.check_storages()?;
                return self.pop().map(Some);
            }

            b'N' => self.push(PickleValue::None),
            0x88 => self.push(PickleValue::Bool(true)),
            0x89 => self.push(PickleValue::Bool(false)),
            b'K' => self.integer(1)?,
            b'M' => self.integer(2)?,
            b'J' => {
                let number = i32::from_le_bytes(self.array()?);
                self.push(PickleValue::Int(number.into()));
            }
            0x8a => self.long()?,
            b'G' => {
                let number = f64::from_be_bytes(self.array()?);
                self.push(PickleValue::Float(number));
            }
            0x8c => self.text(1)?,
            b'X' => self.text(4)?,
            0x8d => self.text(8)?,

            b'(' => self.marks.push(self.stack.len()),
            b'0' => drop(self.pop()?),
            b'1' => drop(self.since_mark()?),
            b'2' => {
                let top = *self.stack.last().ok_or("its stack is empty")?;
                self.push(top);
            }
            b')' => self.container(PickleValue::Tuple, Vec::new()),
            b']' => self.container(PickleValue::List, Vec::new()),
            b'}' => self.container(PickleValue::Dict, Vec::new()),
            0x85..=0x87 | b't' | b'l' | b'd' => {
                let items = match op {
                    0x85..=0x87 => self.take(usize::from(op - 0x84))?,
                    _ => self.since_mark()?,
                };
                match op {
                    b'l' => self.container(PickleValue::List, items),
                    b'd' => {
                        check_pairs(&items)?;
                        self.container(PickleValue::Dict, items);
                    }
                    _ => self.container(PickleValue::Tuple, items),
                }
            }
            b'a' | b'e' | b's' | b'u' => {
                let items = match op {
                    b'a' => self.take(1)?,
                    b's' => self.take(2)?,
                    _ => self.since_mark()?,
                };
                self.extend(matches!(op, b's' | b'u'), items)?;
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
                let (name, module) = (self.pop()?, self.pop()?);
                let (PickleValue::Text(module), PickleValue::Text(name)) = (module, name) else {
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
                return Err(format!("the pickle has the op {name}, which state dicts do not have").into());
            }
        }
        Ok(None)
    }

    /// Pushes a value on the stack. It is not inlined, because many ops call it.
    #[inline(never)]
    fn push(&mut self, value: PickleValue<'p>) {
        self.stack.push(value);
    }

    #[inline(never)]
    fn bytes(&mut self, count: usize) -> Done<&'p [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or("the pickle is cut short")?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Done<[u8; N]> {
        Ok(self.bytes(N)?.try_into().expect("that many bytes"))
    }

    /// An unsigned number of at most 8 bytes.
    #[inline(never)]
    fn unsigned(&mut self, count: usize) -> Done<u64> {
        let bytes = self.bytes(count)?;
        Ok(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    fn protocol(&mut self) -> Done {
        match self.unsigned(1)? {
            2..=5 => Ok(()),
            version => Err(format!("the pickle has protocol {version}, expected 2 to 5").into()),
        }
    }

    fn integer(&mut self, count: usize) -> Done {
        let number = self.unsigned(count)?;
        self.push(PickleValue::Int(number as i64)); // at most 16 bits
        Ok(())
    }

    /// An integer of any length, of which those in 64 bits are known.
    fn long(&mut self) -> Done {
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
        self.push(PickleValue::Int(i64::from_le_bytes(number)));
        Ok(())
    }

    fn text(&mut self, width: usize) -> Done {
        let length = usize::try_from(self.unsigned(width)?).map_err(|_| "the pickle is cut short")?;
        let text = str::from_utf8(self.bytes(length)?).map_err(|_| "a string of the pickle is not UTF-8")?;
        self.push(PickleValue::Text(text));
        Ok(())
    }

    fn line(&mut self) -> Done<&'p str> {
        let end = self.rest.iter().position(|byte| *byte == b'\n').ok_or("the pickle is cut short")?;
        let line = self.bytes(end)?;
        self.bytes(1)?;
        str::from_utf8(line).map_err(|_| "a name in the pickle is not UTF-8".into())
    }

    /// The height below which the stack belongs to what was before the last mark.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    #[inline(never)]
    fn pop(&mut self) -> Done<PickleValue<'p>> {
        match self.stack.len() > self.floor() {
            true => Ok(self.stack.pop().expect("there is one")),
            false => Err(TOO_MANY.into()),
        }
    }

    #[inline(never)]
    fn take(&mut self, count: usize) -> Done<Vec<PickleValue<'p>>> {
        let start = self.stack.len().checked_sub(count).filter(|start| *start >= self.floor());
        Ok(self.stack.split_off(start.ok_or(TOO_MANY)?))
    }

    fn since_mark(&mut self) -> Done<Vec<PickleValue<'p>>> {
        let mark = self.marks.pop().ok_or("the pickle has an op that needs a mark, and no mark")?;
        Ok(self.stack.split_off(mark))
    }

    #[inline(never)]
    fn container(&mut self, kind: fn(usize) -> PickleValue<'p>, items: Vec<PickleValue<'p>>) {
        self.stack.push(kind(self.containers.len()));
        self.containers.push(items);
    }

    /// The value on top of the stack, after the last mark.
    fn top(&self) -> Option<PickleValue<'p>> {
        self.stack.get(self.floor()..)?.last().copied()
    }

    /// Appends items to the list on top of the stack, or keys and values to the dict.
    fn extend(&mut self, is_dict: bool, items: Vec<PickleValue<'p>>) -> Done {
        if is_dict {
            check_pairs(&items)?;
        }
        match (is_dict, self.top()) {
            (false, Some(PickleValue::List(number))) | (true, Some(PickleValue::Dict(number))) => {
                self.containers[number].extend_from_slice(&items);
                Ok(())
            }
            (false, other) => Err(mismatch("the pickle appends to", other)),
            (true, other) => Err(mismatch("the pickle sets items of", other)),
        }
    }

    fn remember(&mut self, key: u32) -> Done {
        let top = self.top().ok_or("the pickle remembers nothing")?;
        let key = key as usize;
        if key >= self.length {
            return Err(format!("the pickle has a memo {key}, but only {} bytes", self.length).into());
        }
        if key >= self.memo.len() {
            self.memo.resize(key + 1, None);
        }
        self.remembered += usize::from(self.memo[key].is_none());
        self.memo[key] = Some(top);
        Ok(())
    }

    fn recall(&mut self, width: usize) -> Done {
        let key = self.unsigned(width)? as usize;
        let Some(Some(value)) = self.memo.get(key) else {
            return Err(format!("the pickle has no memo {key}").into());
        };
        self.push(*value);
        Ok(())
    }

    fn global(&mut self, module: &str, name: &str) -> Done {
        let known = GLOBALS.iter().find(|known| (known.0, known.1) == (module, name));
        let Some((_, _, global)) = known else {
            let mut full = format!("{module}.{name}");
            if let Some((end, _)) = full.char_indices().nth(200) {
                full.truncate(end);
            }
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
            return Err(format!("the pickle asks for {full:?}, which {what}").into());
        };
        self.push(PickleValue::Global(*global));
        Ok(())
    }

    fn items(&self, tuple: &PickleValue<'p>) -> Option<&[PickleValue<'p>]> {
        let (PickleValue::Tuple(number) | PickleValue::List(number)) = tuple else { return None };
        Some(&self.containers[*number])
    }

    /// A storage: `("storage", type, key, device, number of elements)`.
    fn persistent(&mut self) -> Done {
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
        let numel = u64::try_from(*numel).ok().filter(|_| *tag == "storage");
        let numel = numel.ok_or("the pickle has a storage of a negative size")?;
        if key.len() > LONGEST_KEY {
            return Err("the pickle has a storage whose key is too long".into());
        }
        let storage = StorageRef { key, dtype: *dtype, numel };
        self.push(PickleValue::Storage(self.storages.len()));
        self.storages.push(storage);
        Ok(())
    }

    /// Checks that storages with the same key are the same.
    fn check_storages(&self) -> Done {
        let all = &self.storages;
        let order = sorted::order(all.len(), &|a, b| all[a].key < all[b].key);
        for pair in order.windows(2) {
            let [a, b] = [all[pair[0]], all[pair[1]]];
            if a.key == b.key && a != b {
                return Err(format!("the pickle has the storage '{}' with different sizes", a.key).into());
            }
        }
        Ok(())
    }

    fn call(&mut self) -> Done {
        let (arguments, called) = (self.pop()?, self.pop()?);
        let (PickleValue::Global(global), Some(arguments)) = (called, self.items(&arguments)) else {
            return Err(mismatch("the pickle calls", Some(called)));
        };
        match global {
            // Its items are set one by one. From a list of them, a few bytes could make many large dicts.
            Global::OrderedDict if arguments.is_empty() => self.container(PickleValue::Dict, Vec::new()),
            Global::OrderedDict => return Err("the pickle makes an OrderedDict of a list".into()),
            Global::RebuildTensor => {
                let view = self
                    .view(arguments)
                    .ok_or("the pickle has a tensor that is not well-formed or not plain")?;
                self.push(PickleValue::Tensor(self.tensors.len()));
                self.tensors.push(view);
            }
            Global::RebuildParameter => match arguments {
                [PickleValue::Tensor(tensor), _, _] => self.push(PickleValue::Tensor(*tensor)),
                _ => return Err("the pickle has a parameter without a tensor".into()),
            },
            Global::Storage(_) => return Err("the pickle calls a type of storage".into()),
        }
        Ok(())
    }

    /// `(storage, offset, sizes, strides, requires_grad, hooks)`, with metadata in some versions: bits that
    /// change what the elements mean.
    fn view(&self, arguments: &[PickleValue<'p>]) -> Option<StridedView> {
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
            [PickleValue::Dict(metadata)] => self.containers[*metadata].is_empty(),
            _ => false,
        };
        let numbers = |tuple| -> Option<Vec<usize>> {
            let mut numbers = Vec::new();
            for item in self.items(tuple).filter(|items| items.len() <= MOST_DIMS)? {
                let PickleValue::Int(number) = item else { return None };
                numbers.push(usize::try_from(*number).ok()?);
            }
            Some(numbers)
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
    fn build(&mut self) -> Done {
        let _state = self.pop()?;
        match self.top() {
            Some(PickleValue::Dict(_)) => Ok(()),
            other => Err(mismatch("the pickle sets the state of", other)),
        }
    }
}

const TOO_MANY: &str = "the pickle takes more from its stack than there is";

#[cold]
fn mismatch(does: &str, to: Option<PickleValue<'_>>) -> Cow<'static, str> {
    format!("{does} {}", to.map_or("nothing", |value| value.kind())).into()
}

/// Checks that items are keys and values in turn.
fn check_pairs(items: &[PickleValue<'_>]) -> Done {
    match items.len().is_multiple_of(2) {
        true => Ok(()),
        false => Err("the pickle has a key without a value".into()),
    }
}
