//! [`Standardize`]: features with mean 0 and standard deviation 1.

use crate::tensors::samples_dim;
use namegrad_autograd::Tensor;
use namegrad_core::args::{Argument, Over, Reduced};
use namegrad_core::{DType, Dims, Error, ErrorKind, Name, Result, keep};
use namegrad_io::TensorFile;
use namegrad_io::sorted::list_of;
use namegrad_io::text::shapes;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::panic::Location;
use std::path::Path;

const OP: &str = "Standardize";
/// The metadata key of a file.
const KEY: &str = "standardize";

/// The mean and the standard deviation of each feature, and the transformation `(x - mean) / std` and its
/// inverse: scikit-learn's `StandardScaler`.
///
/// Fit it to the samples to train on alone, and apply it to all. It is the standard deviation of the
/// population, whose sum is divided by the number of samples. A feature that is constant is divided by 1.
///
/// Missing values, as NaN, do not count in [`fit`](Self::fit) and stay NaN in [`transform`](Self::transform).
/// After that, 0 is the mean, so `nan_to_num` fills them with the mean of the samples that were fitted.
///
/// # Examples
/// ```
/// use namegrad::data::{Csv, Standardize, Table};
/// use namegrad::prelude::*;
/// # let rooms = |n: usize| if n == 7 { "".into() } else { n.to_string() };
/// # let rows = (0..40).map(|n| format!("{},{},{}\n", n % 9, rooms(n), 3 * n));
/// # let bytes = format!("area,rooms,price\n{}", rows.collect::<String>()).into_bytes();
/// let houses = Csv::from_bytes(bytes).fill("rooms", f64::NAN).read()?;
/// let [train, test] = houses.random_split([0.8, 0.2], 0)?;
///
/// let features = |houses: &Table| houses.columns_except(["price"]); // [N, feature]
/// let scaler = Standardize::fit(&features(&train)?)?;
/// let x = scaler.transform(&features(&train)?)?.nan_to_num()?;
/// let test_x = scaler.transform(&features(&test)?)?.nan_to_num()?;
/// assert!(x.mean("N")?.abs()?.le(1e-5)?.all(..)?.item::<bool>()?);
///
/// // Prices too; predictions become prices again.
/// let prices = Standardize::fit(&train.column("price")?)?;
/// let y = prices.transform(&train.column("price")?)?;
/// assert!(prices.inverse(&y)?.allclose(&train.column("price")?)?);
/// # Ok::<(), Error>(())
/// ```
///
/// Save it with the model: as a part of a checkpoint, `parts![&model, &mut scaler]`, with
/// [`save`](Self::save), or as a value with serde's traits.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StandardizeState", into = "StandardizeState")]
pub struct Standardize {
    /// In `f64`, with the dims of a sample.
    mean: Tensor,
    /// The same, with 1 for constant features.
    std: Tensor,
}

impl Standardize {
    /// The means and standard deviations over the dim "N", or over the first dim if that is unnamed.
    ///
    /// # Shapes
    /// - `x`: `N` and any other dims, such as `[N, feature]`; or `[N]`, such as a column of targets
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if there is no dim "N", [`ErrorKind::Shape`] if there is no dim at all;
    /// [`ErrorKind::Value`] if a feature has no values, or one that is infinite.
    ///
    /// # Source
    /// scikit-learn, `sklearn/preprocessing/_data.py`, `StandardScaler`; what is constant up to rounding is
    /// from `_is_constant_feature`.
    #[track_caller]
    pub fn fit(x: &Tensor) -> Result<Standardize> {
        let caller = Location::caller();
        let dim = samples_dim(x).map_err(|error| {
            let first = (x.ndim() > 0).then(|| x.name(0)).flatten();
            let repair =
                first.map(|first| format!("x.rename([(\"{first}\", \"N\")])?, if it counts the samples"));
            error.of(OP).with_repair(repair.unwrap_or_default()).at(caller)
        })?;
        Standardize::fitted(x, dim.into()).map_err(|error| error.at(caller))
    }

    /// The means and standard deviations over any dims, such as those of each channel of images.
    ///
    /// ```
    /// use namegrad::data::Standardize;
    /// use namegrad::prelude::*;
    /// let images = Tensor::rand([("N", 8), ("C", 3), ("H", 4), ("W", 4)])?;
    /// let scaler = Standardize::fit_over(&images, except("C"))?;
    /// assert_eq!(scaler.mean().shape().to_string(), "[C=3]");
    /// println!("{scaler:?}"); // the values
    /// let x = scaler.transform(&images)?;
    /// assert!(x.mean(except("C"))?.abs()?.le(1e-5)?.all(..)?.item::<bool>()?);
    ///
    /// // An image alone too.
    /// assert_eq!(scaler.transform(&images.select("N", 0)?)?.sizes(), [3, 4, 4]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Tensor::mean`] about dims; [`ErrorKind::Value`] as for [`fit`](Self::fit).
    #[track_caller]
    pub fn fit_over(x: &Tensor, dims: impl Into<Dims>) -> Result<Standardize> {
        let caller = Location::caller();
        Standardize::fitted(x, dims.into()).map_err(|error| error.at(caller))
    }

    fn fitted(x: &Tensor, dims: Dims) -> Result<Standardize> {
        let x = x.detach();
        let over = Reduced(keep(dims)).look_up(OP, &[x.value()])?;
        if x.numel() == 0 {
            return Err(refused(&x, "there are no values"));
        }
        let count = total(&x, &over, &|x| x.isnan()?.logical_not()?.sum(&over)?.to(DType::F64))?;
        let is_empty = count.eq(0.0)?.squeeze(Dims::from(&*over))?;
        if is_empty.any(..)?.item::<bool>()? {
            return Err(refused(&x, &only_missing(&is_empty)?).with_repair(
                "table.columns_except([..])? without its column; table.numeric_columns() has the names in the order of the features",
            ));
        }
        if x.isinf()?.any(..)?.item::<bool>()? {
            return Err(refused(&x, "a value is infinite")
                .with_repair("x.masked_fill(&x.isinf()?, f64::NAN)?, which makes it missing"));
        }
        let mean = total(&x, &over, &|x| x.nansum(&over))?.div(&count)?;
        let variance = total(&x, &over, &|x| x.sub(&mean)?.square()?.nansum(&over))?.div(&count)?;
        // Rounding errors of the mean make the variance of a constant feature small, but not 0.
        let rounding = count.mul(&mean)?.mul(f64::EPSILON)?.square()?;
        let bound = count.mul(&variance)?.mul(f64::EPSILON)?.add(&rounding)?;
        let std = variance.sqrt()?.masked_fill(&variance.le(&bound)?, 1.0)?;
        let of_features = |x: Tensor| x.squeeze(Dims::from(&*over));
        Ok(Standardize { mean: of_features(mean)?, std: of_features(std)? })
    }

    /// The mean of each feature, in `f64`.
    pub fn mean(&self) -> &Tensor {
        &self.mean
    }

    /// The divisor of each feature, in `f64`: its standard deviation, or 1 if it is constant.
    pub fn std(&self) -> &Tensor {
        &self.std
    }

    /// `(x - mean) / std`. The features are found by name, wherever they are in `x`; without names, they are
    /// the last dims. Integers become `f32`.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if `x` does not have the features that were fitted, and the errors of
    /// [`Tensor::align_as`].
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Result<Tensor> {
        let caller = Location::caller();
        self.apply(x, &|x, mean, std| x.sub(mean)?.div(std)).map_err(|error| error.at(caller))
    }

    /// `x std + mean`, the inverse of [`transform`](Self::transform): predictions in the units of the data.
    ///
    /// # Errors
    /// Same as [`transform`](Self::transform).
    #[track_caller]
    pub fn inverse(&self, x: &Tensor) -> Result<Tensor> {
        let caller = Location::caller();
        self.apply(x, &|x, mean, std| x.mul(std)?.add(mean)).map_err(|error| error.at(caller))
    }

    fn apply(&self, x: &Tensor, f: &dyn Fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>) -> Result<Tensor> {
        let own = self.mean.shape();
        let names: Option<Vec<Name>> = crate::list((0..own.sizes.len()).map(|dim| self.mean.name(dim)));
        let names = names.filter(|names| !names.is_empty());
        let size = |name: &Name| x.names().position(*name).map(|dim| x.sizes()[dim]);
        let fits = match &names {
            Some(names) => names.iter().zip(&own.sizes).all(|(name, own)| size(name) == Some(*own)),
            None => x.sizes().ends_with(&own.sizes),
        };
        if !fits {
            let message = format!("fitted to samples of {own}, got {}", x.shape());
            return Err(Error::new(ErrorKind::Shape, OP, message));
        }
        let dtype = if x.dtype().is_floating_point() { x.dtype() } else { DType::F32 };
        let wide = dtype.promote(DType::F32); // half types are too coarse for the mean
        let aligned = |fitted: &Tensor| match names {
            Some(_) => fitted.align_as(x)?.to(wide),
            None => fitted.to(wide),
        };
        f(&x.to(wide)?, &aligned(&self.mean)?, &aligned(&self.std)?)?.to(dtype)
    }

    /// Writes the means and standard deviations to a safetensors file, as JSON under the metadata key
    /// `standardize`. If that fails, an existing file is unchanged.
    ///
    /// # Errors
    /// Same as [`TensorFile::save`].
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let caller = Location::caller();
        TensorFile::of_json(KEY, self).and_then(|file| file.save(path)).map_err(|error| error.at(caller))
    }

    /// Reads what [`save`](Self::save) has written.
    ///
    /// ```
    /// use namegrad::data::Standardize;
    /// use namegrad::prelude::*;
    /// # let file = format!("namegrad-doc-scaler-{}.safetensors", std::process::id());
    /// # let path = std::env::temp_dir().join(file);
    /// let scaler = Standardize::fit(&Tensor::randn([("N", 100), ("feature", 3)])?)?;
    /// scaler.save(&path)?;
    /// assert_eq!(Standardize::load(&path)?, scaler);
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`TensorFile::load`]; [`ErrorKind::Format`] if the file has no means and standard
    /// deviations.
    #[track_caller]
    pub fn load(path: impl AsRef<Path>) -> Result<Standardize> {
        TensorFile::load_as(path, |file| file.json(KEY, "means and standard deviations"))
    }
}

/// With the means and the standard deviations.
impl fmt::Debug for Standardize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Standardize { mean, std } = self;
        f.debug_struct(OP)
            .field("mean", &format_args!("{mean}"))
            .field("std", &format_args!("{std}"))
            .finish()
    }
}

/// Says which features have only missing values: those where `is_empty` is true.
#[cold]
fn only_missing(is_empty: &Tensor) -> Result<String> {
    let name = |dim: usize| is_empty.name(dim).map_or("feature".into(), |name| format!("{name}"));
    let (indices, ndim) = (is_empty.nonzero()?.to_vec::<i64>()?, is_empty.ndim()); // [place, dim]
    let place = |at: usize| {
        let dims = list_of(ndim, &mut |dim| format!("{} {}", name(dim), indices[at * ndim + dim]));
        crate::joined(&dims, ", ")
    };
    let places = list_of(indices.len() / ndim.max(1), &mut { place });
    Ok(match &places[..] {
        [] => "there are only missing values".into(),
        [one] => format!("{one} (from 0) has only missing values"),
        [first @ .., last] if first.len() < 8 => {
            format!("{} and {last} (from 0) have only missing values", crate::joined(first, ", "))
        }
        all => {
            let more = all.len() - 8;
            format!("{} and {more} more (from 0) have only missing values", crate::joined(&all[..8], ", "))
        }
    })
}

#[cold]
fn refused(x: &Tensor, what: &str) -> Error {
    Error::new(ErrorKind::Value, OP, what).with_operands(shapes(&[x.value()]))
}

/// The most elements that are converted to `f64` at once.
const PART: usize = 1 << 20;

/// The sum of `f` over parts of `x` along the first of the dims, in `f64`. `x` has elements.
fn total(x: &Tensor, over: &Over, f: &dyn Fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let Some(dim) = over.first().copied() else { return f(&x.to(DType::F64)?) };
    let size = x.sizes()[dim];
    let len = (PART / (x.numel() / size)).max(1);
    let part = |start: usize| f(&x.narrow(dim, start as isize, len.min(size - start))?.to(DType::F64)?);
    let mut total = part(0)?;
    for start in (len..size).step_by(len) {
        total = part(start)?.add(&total)?;
    }
    Ok(total)
}

/// The means and standard deviations in a file.
#[derive(Serialize, Deserialize)]
struct StandardizeState {
    names: Vec<Option<String>>,
    sizes: Vec<usize>,
    mean: Vec<f64>,
    std: Vec<f64>,
}

impl From<Standardize> for StandardizeState {
    fn from(Standardize { mean, std }: Standardize) -> StandardizeState {
        let list = |x: &Tensor| x.to_vec::<f64>().unwrap_or_default(); // both are `f64`
        let names = (0..mean.ndim()).map(|dim| mean.name(dim).map(|name| format!("{name}")));
        StandardizeState {
            names: crate::list(names),
            sizes: mean.sizes().to_vec(),
            mean: list(&mean),
            std: list(&std),
        }
    }
}

impl TryFrom<StandardizeState> for Standardize {
    type Error = Error;

    fn try_from(StandardizeState { names, sizes, mean, std }: StandardizeState) -> Result<Standardize> {
        let tensor = |list: &[f64]| Tensor::from_slice(list, &sizes[..])?.refine_names(&names[..]);
        if !std.iter().all(|std| *std > 0.0) {
            return Err(Error::new(ErrorKind::Format, OP, "a standard deviation is not positive"));
        }
        Ok(Standardize { mean: tensor(&mean)?, std: tensor(&std)? })
    }
}
