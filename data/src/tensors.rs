//! [`TensorDataset`]: samples along a dim of one tensor or of several.

use crate::collate::{Collate, Collation};
use crate::dataset::{Dataset, no_sample};
use namegrad_autograd::Tensor;
use namegrad_core::{Error, ErrorKind, Name, Result, for_types};
use namegrad_io::text::shapes;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;

const OP: &str = "TensorDataset";

/// The slices of one tensor, or of a tuple of up to four tensors, along a dim. Nothing is copied until a
/// batch is made, and clones share the tensors.
///
/// # Examples
/// ```
/// use namegrad::data::{Dataset, Loader, TensorDataset};
/// use namegrad::prelude::*;
/// let x = Tensor::randn([("N", 100), ("feature", 3)])?;
/// let y = x.sum("feature")?;
/// let [train, test] = TensorDataset::new((x, y))?.random_split([0.8, 0.2], 0)?;
/// assert_eq!((train.len(), test.len()), (80, 20));
/// for batch in Loader::builder(train).batch_size(32).shuffle(true).build()?.iter() {
///     let (x, y) = batch?; // [N, feature], [N]
///     assert!(x.sum("feature")?.allclose(&y)?);
/// }
/// # Ok::<(), Error>(())
/// ```
///
/// A `.npy` file or a tensor of a safetensors file is a data set in two lines:
/// ```
/// use namegrad::data::{Dataset, TensorDataset};
/// use namegrad::prelude::*;
/// # let path = std::env::temp_dir().join(format!("namegrad-doc-data-{}.npy", std::process::id()));
/// # Tensor::zeros([5, 3])?.save(&path)?;
/// let x = Tensor::load(&path)?.refine_names(["N", "feature"])?;
/// let data = TensorDataset::new(x)?;
/// assert_eq!(data.get(0)?.shape().to_string(), "[feature=3]");
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), Error>(())
/// ```
pub struct TensorDataset<T> {
    rows: Vec<Slices>,
    len: usize,
    tuple: PhantomData<fn() -> T>,
}

/// A tensor, and the position of its batch dim.
#[derive(Clone, Debug)]
struct Slices {
    tensor: Tensor,
    dim: usize,
}

impl<T: Tensors> TensorDataset<T> {
    /// The slices along the dim "N". If no dim of a tensor is called so, it is the first dim, which must be
    /// unnamed then.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the tensors have different sizes along the dim, or there is a tensor without
    /// dims; [`ErrorKind::NameNotFound`] if a tensor has no such dim; [`ErrorKind::Autograd`] if one requires
    /// a gradient.
    #[track_caller]
    pub fn new(tensors: T) -> Result<TensorDataset<T>> {
        let caller = Location::caller();
        TensorDataset::of(tensors, samples_dim).map_err(|error| error.at(caller))
    }

    /// The slices along a dim of another name.
    ///
    /// # Errors
    /// Same as [`new`](Self::new).
    ///
    /// ```
    /// use namegrad::data::{Dataset, TensorDataset};
    /// use namegrad::prelude::*;
    /// let series = Tensor::zeros([("channel", 2), ("time", 50)])?;
    /// let data = TensorDataset::along("time", series)?;
    /// assert_eq!((data.len(), data.get(7)?.shape().to_string()), (50, "[channel=2]".into()));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn along(dim: &str, tensors: T) -> Result<TensorDataset<T>> {
        let caller = Location::caller();
        let called = |tensor: &Tensor| position(tensor, dim).ok_or_else(|| no_dim(tensor, dim));
        TensorDataset::of(tensors, called).map_err(|error| error.at(caller))
    }

    fn of(tensors: T, dim: impl Fn(&Tensor) -> Result<usize>) -> Result<TensorDataset<T>> {
        let mut rows = Vec::new();
        for tensor in tensors.into_list() {
            rows.push(Slices { dim: dim(&tensor)?, tensor });
        }
        Ok(TensorDataset { len: check(&rows)?, rows, tuple: PhantomData })
    }
}

/// The number of samples, which is the same for all tensors.
fn check(rows: &[Slices]) -> Result<usize> {
    let (mut lengths, mut tensors) = (Vec::new(), Vec::new());
    for Slices { tensor, dim } in rows {
        lengths.push(tensor.sizes()[*dim]);
        tensors.push(tensor.value());
    }
    if lengths.iter().any(|length| *length != lengths[0]) {
        let message = format!("the tensors have {lengths:?} samples, but each must have as many");
        return Err(Error::new(ErrorKind::Shape, OP, message).with_operands(shapes(&tensors)));
    }
    if rows.iter().any(|rows| rows.tensor.requires_grad()) {
        let message = "a tensor of the data set requires a gradient";
        return Err(Error::new(ErrorKind::Autograd, OP, message)
            .with_operands(shapes(&tensors))
            .with_repair("TensorDataset::new((x.detach(), y))?"));
    }
    Ok(lengths.first().copied().unwrap_or(0))
}

/// The position of a dim.
fn position(tensor: &Tensor, dim: &str) -> Option<usize> {
    Name::lookup(dim).and_then(|name| tensor.names().position(name))
}

/// The dim of the samples: "N", or the first one if it is unnamed.
pub(crate) fn samples_dim(tensor: &Tensor) -> Result<usize> {
    let unnamed = tensor.ndim() > 0 && tensor.name(0).is_none();
    position(tensor, "N").or(unnamed.then_some(0)).ok_or_else(|| no_dim(tensor, "N"))
}

#[cold]
fn no_dim(tensor: &Tensor, dim: &str) -> Error {
    if tensor.ndim() == 0 {
        let message = "a tensor without dims has no samples";
        return Error::new(ErrorKind::Shape, OP, message).with_operands(shapes(&[tensor.value()]));
    }
    let (names, sizes) = (tensor.names().tuple(tensor.ndim()), tensor.sizes());
    let message = format!("Name '{dim}' not found in Tensor{names} of sizes {sizes:?}");
    let repair = match tensor.name(0) {
        Some(first) => format!("TensorDataset::along(\"{first}\", tensors)?"),
        None => format!("x.refine_names([\"{dim}\", \"...\"])?"),
    };
    Error::new(ErrorKind::NameNotFound, OP, message)
        .with_operands(shapes(&[tensor.value()]))
        .with_repair(repair)
}

impl<T> Clone for TensorDataset<T> {
    fn clone(&self) -> TensorDataset<T> {
        TensorDataset { rows: self.rows.clone(), len: self.len, tuple: PhantomData }
    }
}

impl<T> fmt::Debug for TensorDataset<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.rows.iter().map(|rows| rows.tensor.shape())).finish()
    }
}

impl<T: Tensors> Dataset for TensorDataset<T> {
    type Sample = T;

    fn len(&self) -> usize {
        self.len
    }

    #[track_caller]
    fn get(&self, index: usize) -> Result<T> {
        if index >= self.len {
            return Err(no_sample(OP, index, self.len));
        }
        let slice = |rows: &Slices| rows.tensor.select(rows.dim, index);
        self.rows.iter().map(slice).collect::<Result<_>>().map(T::from_list)
    }

    fn get_batch(&self, indices: &[usize], how: &Collation<'_>) -> Option<Result<T>> {
        // Elsewhere a gather would copy the whole tensor, or leave the batch dim where it is.
        let rows_are_blocks = |rows: &Slices| rows.dim == 0 && rows.tensor.is_contiguous();
        let in_range = || indices.iter().all(|index| *index < self.len);
        let other_dims = |rows: &Slices| (1..rows.tensor.ndim()).map(|dim| rows.tensor.name(dim)).collect();
        let renamed = |rows: &Slices| {
            let names: Vec<Option<Name>> = other_dims(rows);
            !names.contains(&Some(how.batch_dim()))
        };
        let fast = self.rows.iter().all(|rows| rows_are_blocks(rows) && renamed(rows)) && in_range();
        fast.then(|| self.gather(indices, how))
    }
}

impl<T: Tensors> TensorDataset<T> {
    fn gather(&self, indices: &[usize], how: &Collation<'_>) -> Result<T> {
        let indices: Vec<i64> = indices.iter().map(|index| *index as i64).collect();
        let index = Tensor::from_slice(&indices, [indices.len()])?;
        let picked = |rows: &Slices| {
            let batch = rows.tensor.index_select(&index, 0)?;
            if batch.name(0) == Some(how.batch_dim()) {
                return Ok(batch);
            }
            let names =
                (0..batch.ndim()).map(|dim| if dim == 0 { Some(how.batch_dim()) } else { batch.name(dim) });
            let names = namegrad_core::Names::new(OP, names)?;
            Ok(Tensor::constant(batch.into_value().with_names(names)))
        };
        self.rows.iter().map(picked).collect::<Result<_>>().map(T::from_list)
    }
}

/// A tensor, or a tuple of up to four tensors.
pub trait Tensors: Collate<Batch = Self> + Send + sealed::List {}

mod sealed {
    use namegrad_autograd::Tensor;

    pub trait List {
        fn into_list(self) -> Vec<Tensor>;
        /// The reverse of `into_list`, for a list of the same length.
        fn from_list(list: Vec<Tensor>) -> Self;
    }
}

impl Tensors for Tensor {}
impl sealed::List for Tensor {
    fn into_list(self) -> Vec<Tensor> {
        vec![self]
    }

    fn from_list(list: Vec<Tensor>) -> Tensor {
        <(Tensor,)>::from_list(list).0
    }
}

for_types!((Tensor,), (Tensor, Tensor), (Tensor, Tensor, Tensor), (Tensor, Tensor, Tensor, Tensor) => Tuple {
    const COUNT: usize = size_of::<Tuple>() / size_of::<Tensor>();

    impl Tensors for Tuple {}
    impl sealed::List for Tuple {
        fn into_list(self) -> Vec<Tensor> {
            <[Tensor; COUNT]>::from(self).into()
        }

        fn from_list(list: Vec<Tensor>) -> Tuple {
            <[Tensor; COUNT]>::try_from(list).expect("a list that `into_list` has made").into()
        }
    }
});
