//! The error type: what went wrong, the inputs, the caller's line, and a repair.
use crate::dtype::DType;
use crate::recycled::{FreeList, Recycle, Recycled};
use crate::shape::Shape;
use std::error::Error as StdError;
use std::panic::Location;
use std::sync::Arc;
use std::thread::LocalKey;
use std::{fmt, io};

mod words;
use words::Identity;

/// `Result` with the crate's [`Error`] by default. With another error type, as in
/// `Result<(), Box<dyn std::error::Error>>`, it is the `Result` of the standard library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of mistake that a caller made.
///
/// The sizes and names of the inputs are in [`Error::operands`], and a repair is in [`Error::repair`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Two named dims at the same position from the right differ.
    NameMismatch,
    /// A name is in both inputs, at different positions from the right.
    Misaligned,
    /// The tensor has no dim with this name.
    NameNotFound,
    /// The result would have the same name twice.
    DuplicateName,
    /// A name is not an identifier: ASCII letters, digits and underscore, not starting with a digit.
    InvalidName,
    /// An unnamed dim where every dim must be named.
    UnnamedNotAllowed,
    /// More than one `"..."` in a list of names, or one where it is not allowed.
    Ellipsis,
    /// The number of names is not the number of dims.
    NameCount,
    /// `refine_names` would change or drop a name.
    RefineConflict,
    /// The names of an output tensor differ from the computed names.
    OutNames,
    /// Sizes do not broadcast, multiply or reshape, or a tensor has the wrong number of dims.
    Shape,
    /// A dim is out of range, given twice, or in an order that the op does not accept.
    DimRange,
    /// The op does not accept this dtype, or the result cannot be cast to the dtype of the output.
    DType,
    /// An element index out of bounds.
    Index,
    /// Any other argument with a bad value.
    Value,
    /// A rule of differentiation is broken.
    Autograd,
    /// This form of the op is not supported.
    Unsupported,
    /// Tensors of one op are on different devices.
    Device,
    /// Out of memory.
    OutOfMemory,
    /// A file or stream could not be read or written.
    Io,
    /// The content of a file does not follow its format.
    Format,
    /// An error of other code, such as that of your own data set; see [`Error::other`].
    Other,
}

/// The error of a call.
///
/// Prints the message, the caller's line, the operands as `[N=32, C=3, ?=7]`, and a repair if one is known:
///
/// ```
/// use namegrad_core::{ErrorKind, NamedTensor};
/// let x = NamedTensor::zeros([("batch", 2), ("in", 3)])?;
/// let error = x.sum("width").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::NameNotFound);
/// let start = "sum: Name 'width' not found in Tensor['batch', 'in'] of sizes [2, 3]";
/// assert!(error.to_string().starts_with(start));
/// # Ok::<(), namegrad_core::Error>(())
/// ```
///
/// `?` turns an error of `std::io` into one of kind [`ErrorKind::Io`], at the line of the `?`:
///
/// ```
/// use namegrad_core::{ErrorKind, Result};
/// fn number_of_rows(path: &str) -> Result<usize> {
///     Ok(std::fs::read_to_string(path)?.lines().count())
/// }
/// let error = number_of_rows("missing.csv").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Io);
/// assert!(std::error::Error::source(&error).is_some_and(|source| source.is::<std::io::Error>()));
/// ```
#[derive(Clone)]
pub struct Error(Recycled<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    op: &'static str,
    message: String,
    operands: Vec<Shape>,
    /// The dtypes of the operands, or none. Only errors about dtypes print them.
    dtypes: Vec<DType>,
    repair: Option<String>,
    /// The tensors of the call that failed, by the names that its repair uses.
    words: Vec<(&'static str, Identity)>,
    at: &'static Location<'static>,
    /// An error of other code that this one was made of.
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

/// Every `?` may drop an error: with [`Recycled`], it does so by one call.
impl Recycle for Inner {
    const MAY_PANIC: bool = true;

    #[inline]
    fn free() -> &'static LocalKey<FreeList<Inner>> {
        thread_local!(static FREE: FreeList<Inner> = const { FreeList::new() });
        &FREE
    }
}

impl Error {
    /// An error at the caller's line, for functions of your own that can fail.
    ///
    /// `op` is the name of the function that failed, which is printed in front: that of an op, or of your own
    /// function or type. `message` says what was wrong, with the values that matter.
    ///
    /// For an error of another library, use [`Error::other`].
    ///
    /// ```
    /// use namegrad_core::{Error, ErrorKind, Result};
    /// #[track_caller] // so that the error has the line of the caller
    /// fn grade(points: i64) -> Result<i64> {
    ///     if points > 100 {
    ///         let message = format!("points must be at most 100, got {points}");
    ///         let error = Error::new(ErrorKind::Value, "grade", message);
    ///         return Err(error.with_repair("grade(points.min(100))?"));
    ///     }
    ///     Ok(points / 10)
    /// }
    /// let error = grade(120).unwrap_err();
    /// assert!(error.to_string().starts_with("grade: points must be at most 100, got 120 (at "));
    /// assert_eq!((error.kind(), error.op()), (ErrorKind::Value, "grade"));
    /// ```
    #[cold]
    #[track_caller]
    #[inline(never)]
    pub fn new(kind: ErrorKind, op: &'static str, message: impl Into<String>) -> Error {
        Error::made(kind, op, message.into(), Location::caller())
    }

    #[cold]
    #[inline(never)]
    fn made(kind: ErrorKind, op: &'static str, message: String, at: &'static Location<'static>) -> Error {
        let (operands, dtypes, words) = (Vec::new(), Vec::new(), Vec::new());
        Error(Recycled::new(|| Inner {
            kind,
            op,
            message,
            operands,
            dtypes,
            repair: None,
            words,
            at,
            source: None,
        }))
    }

    /// The error of other code, or a message, as an error of kind [`ErrorKind::Other`] at the caller's line.
    /// The error is its [`source`](std::error::Error::source).
    ///
    /// Call it in a closure, as below: in `map_err(Error::other)`, the line would be one of the standard
    /// library.
    ///
    /// ```
    /// use namegrad_core::{Error, ErrorKind, Result};
    /// fn label(text: &str) -> Result<i64> {
    ///     if text.is_empty() {
    ///         return Err(Error::other("a row has no label"));
    ///     }
    ///     text.parse::<i64>().map_err(|error| Error::other(error))
    /// }
    /// let error = label("cat").unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Other);
    /// assert!(error.to_string().starts_with("invalid digit found in string (at "));
    /// assert_eq!(label("").unwrap_err().message(), "a row has no label");
    /// ```
    #[cold]
    #[track_caller]
    pub fn other(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        Error::foreign(ErrorKind::Other, error.into().into())
    }

    #[cold]
    #[track_caller]
    fn foreign(kind: ErrorKind, source: Arc<dyn StdError + Send + Sync>) -> Error {
        let mut error = Error::new(kind, "", format!("{source}"));
        error.0.source = Some(source);
        error
    }

    /// Returns an error unless `condition` is true. The message is built only in that case.
    ///
    /// # Errors
    /// An error of this kind and op, at the caller's line.
    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn ensure<M: Into<String>>(
        condition: bool,
        kind: ErrorKind,
        op: &'static str,
        message: impl FnOnce() -> M,
    ) -> Result<()> {
        if condition { Ok(()) } else { Err(Error::new(kind, op, message())) }
    }

    /// The same error with the sizes and names of the inputs that it is about.
    #[inline(never)]
    pub fn with_operands(mut self, operands: impl IntoIterator<Item = Shape>) -> Error {
        self.0.operands = crate::list(operands.into_iter());
        self.0.dtypes.clear();
        self
    }

    /// The same error with the shapes and dtypes of the inputs that it is about.
    pub(crate) fn with_described(mut self, operands: Vec<Shape>, dtypes: Vec<DType>) -> Error {
        self.0.operands = operands;
        self.0.dtypes = dtypes;
        self
    }

    /// The same error with the code that repairs the call: an expression in place of the call, or of the
    /// argument that is wrong. Words may follow it, as in `x.rename([("A", "B")])?, if both names mean the
    /// same`; they say when it is right, if it may mean something else. An empty text is no repair.
    #[inline(never)]
    pub fn with_repair(self, repair: impl Into<String>) -> Error {
        self.repaired_by(repair.into())
    }

    #[cold]
    #[inline(never)]
    fn repaired_by(mut self, repair: String) -> Error {
        self.0.repair = Some(repair).filter(|repair| !repair.is_empty());
        self
    }

    /// The same error, reported at `at`: for a call that fails later than it was made.
    pub fn at(mut self, at: &'static Location<'static>) -> Error {
        self.0.at = at;
        self
    }

    /// The same error with another sentence.
    #[doc(hidden)]
    pub fn with_message(mut self, message: String) -> Error {
        self.0.message = message;
        self
    }

    /// The same error with a prefix, such as `"backward of mul: "`.
    #[inline(never)]
    pub fn context(mut self, words: impl fmt::Display) -> Error {
        self.0.message = format!("{words}{}", self.0.message);
        self
    }

    /// The kind of mistake.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The op that was called; empty for an error of other code.
    pub fn op(&self) -> &'static str {
        self.0.op
    }

    /// The message, without the operands and the line.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The names and sizes of the inputs that the error is about.
    pub fn operands(&self) -> &[Shape] {
        &self.0.operands
    }

    /// A line of code that would repair the call.
    pub fn repair(&self) -> Option<&str> {
        self.0.repair.as_deref()
    }

    /// The line of the caller.
    pub fn location(&self) -> &'static Location<'static> {
        self.0.at
    }
}

/// The number of operands that are printed: a list of tensors can be long.
const MOST_SHOWN: usize = 8;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, op, message, operands, dtypes, repair, at, .. } = &*self.0;
        if !op.is_empty() {
            write!(f, "{op}: ")?;
        }
        write!(f, "{message} (at {at})")?;
        for (number, shape) in operands.iter().enumerate() {
            if number == MOST_SHOWN {
                write!(f, ", .. {} in all", operands.len())?;
                break;
            }
            write!(f, "{}{shape}", if number == 0 { "\n  inputs: " } else { ", " })?;
            if shape.sizes.is_empty() {
                f.write_str(" (0-d)")?; // `[]` would read as "no inputs"
            }
            match dtypes.get(number) {
                Some(dtype) if *kind == ErrorKind::DType => write!(f, " {dtype}")?,
                _ => {}
            }
        }
        match repair {
            Some(repair) => write!(f, "\n  try: {repair}"),
            None => Ok(()),
        }
    }
}

/// Same as `Display`, because `main` and `unwrap` print errors with `Debug`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

impl From<io::Error> for Error {
    #[track_caller]
    fn from(error: io::Error) -> Error {
        Error::foreign(ErrorKind::Io, Arc::new(error))
    }
}
