//! MNIST and data sets in its format: [`Mnist`], [`LabeledImages`].

use crate::collate::Collation;
use crate::dataset::{Dataset, no_sample};
use crate::idx;
use namegrad_autograd::Tensor;
use namegrad_core::options::UnsqueezeOptions;
use namegrad_core::{DType, Error, ErrorKind, Result};
use std::panic::Location;
use std::path::{Path, PathBuf};

/// The training set and the test set of MNIST, or of a data set in its format: Fashion-MNIST, KMNIST.
///
/// # Examples
/// ```
/// # use namegrad::data::{Dataset, Loader, Mnist};
/// # use namegrad::prelude::*;
/// # let folder = std::env::temp_dir().join(format!("namegrad-doc-mnist-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # for part in ["train", "t10k"] {
/// #     let images = [&[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28][..], &[51; 2 * 28 * 28]].concat();
/// #     std::fs::write(folder.join(format!("{part}-images-idx3-ubyte")), images).unwrap();
/// #     let labels = [0, 0, 8, 1, 0, 0, 0, 2, 3, 9];
/// #     std::fs::write(folder.join(format!("{part}-labels-idx1-ubyte")), labels).unwrap();
/// # }
/// let mnist = Mnist::load(&folder)?;
/// for batch in Loader::builder(mnist.train).batch_size(64).shuffle(true).build()?.iter() {
///     let (images, labels) = batch?; // [N, C=1, H, W] from 0 to 1, [N]
///     # assert_eq!(images.shape().to_string(), "[N=2, C=1, H=28, W=28]");
///     # assert_eq!(labels.dtype(), DType::I64);
///     # assert_eq!(images.to_vec::<f32>()?[0], 0.2);
/// }
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Mnist {
    /// The samples to train on: 60,000 in MNIST.
    pub train: LabeledImages,
    /// The samples to test on: 10,000 in MNIST.
    pub test: LabeledImages,
}

impl Mnist {
    /// Reads the four files `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, `t10k-images-idx3-ubyte`
    /// and `t10k-labels-idx1-ubyte`, with or without `.gz`, from a folder.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if a file is missing or cannot be read, and those of [`LabeledImages::load`].
    #[track_caller]
    pub fn load(folder: impl AsRef<Path>) -> Result<Mnist> {
        let (folder, caller) = (folder.as_ref(), Location::caller());
        let part = |part: &str| {
            let images = found(folder, &format!("{part}-images-idx3-ubyte"))?;
            LabeledImages::read(&images, &found(folder, &format!("{part}-labels-idx1-ubyte"))?)
        };
        let read = || Ok(Mnist { train: part("train")?, test: part("t10k")? });
        read().map_err(|error: Error| error.at(caller))
    }
}

/// The path of a file, with or without `.gz`.
fn found(folder: &Path, name: &str) -> Result<PathBuf> {
    let missing = |what: String| Err(Error::new(ErrorKind::Io, "Mnist", what));
    if !folder.is_dir() {
        return missing(format!("{}: no such folder", folder.display()));
    }
    let paths = [folder.join(name), folder.join(format!("{name}.gz"))];
    match paths.iter().find(|path| path.exists()) {
        Some(path) => Ok(path.clone()),
        None => missing(format!("{}: missing, with and without .gz", paths[0].display())),
    }
}

/// Gray images of one size with the number of a class each, from idx files. A sample is an image `[C=1, H,
/// W]` in `f32` from 0 to 1 and its label; a batch `[N, C, H, W]` and `[N]` in `i64`. The images are kept in
/// memory in `u8`.
#[derive(Clone, Debug)]
pub struct LabeledImages {
    images: Tensor,
    labels: Tensor,
}

const OP: &str = "LabeledImages";

impl LabeledImages {
    /// Reads the idx files of the images and of their labels.
    ///
    /// # Errors
    /// The errors of [`idx::load`]; [`ErrorKind::Format`] if the files are not `[N, H, W]` and `[N]` of `u8`.
    #[track_caller]
    pub fn load(images: impl AsRef<Path>, labels: impl AsRef<Path>) -> Result<LabeledImages> {
        let caller = Location::caller();
        LabeledImages::read(images.as_ref(), labels.as_ref()).map_err(|error| error.at(caller))
    }

    fn read(images: &Path, labels: &Path) -> Result<LabeledImages> {
        let (x, y) = (idx::load(images)?, idx::load(labels)?);
        for (path, tensor, dims) in [(images, &x, 3), (labels, &y, 1)] {
            if tensor.ndim() != dims || tensor.dtype() != DType::U8 {
                let (path, found) = (path.display(), tensor.dtype());
                let message =
                    format!("{path}: expected {dims} dims of uint8, found {:?} of {found}", tensor.sizes());
                return Err(Error::new(ErrorKind::Format, OP, message));
            }
        }
        if x.sizes()[0] != y.sizes()[0] {
            let (n, m) = (x.sizes()[0], y.sizes()[0]);
            let message =
                format!("{}: {n} images, but {} has {m} labels", images.display(), labels.display());
            return Err(Error::new(ErrorKind::Format, OP, message));
        }
        let x = x.refine_names(["N", "H", "W"])?;
        Ok(LabeledImages {
            images: x.unsqueeze_with(1, UnsqueezeOptions::new().name("C"))?,
            labels: y.to(DType::I64)?.refine_names(["N"])?,
        })
    }

    /// The images as they are in the file, `[N, C=1, H, W]` in `u8`, from 0 to 255. Samples are from 0 to 1, so
    /// a [`Standardize`](crate::Standardize) for them is fitted to [`tensors`](Self::tensors).
    pub fn images(&self) -> &Tensor {
        &self.images
    }

    /// The labels, `[N]` in `i64`.
    pub fn labels(&self) -> &Tensor {
        &self.labels
    }

    /// All samples as one batch: images `[N, C=1, H, W]` in `f32` from 0 to 1, and labels `[N]`.
    ///
    /// The mean and the standard deviation of a channel, for torchvision's `Normalize`, are those of
    /// `Standardize::fit_over(&train.tensors()?.0, except("C"))?`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    pub fn tensors(&self) -> Result<(Tensor, Tensor)> {
        Ok((scaled(&self.images)?, self.labels.clone()))
    }
}

/// Gray levels from 0 to 1.
fn scaled(images: &Tensor) -> Result<Tensor> {
    images.to(DType::F32)?.div(255.0)
}

impl Dataset for LabeledImages {
    type Sample = (Tensor, i64);

    fn len(&self) -> usize {
        self.labels.numel()
    }

    #[track_caller]
    fn get(&self, index: usize) -> Result<(Tensor, i64)> {
        if index >= self.len() {
            return Err(no_sample(OP, index, self.len()));
        }
        let image = scaled(&self.images.select("N", index)?)?;
        Ok((image, self.labels.select("N", index)?.item()?))
    }

    fn get_batch(&self, indices: &[usize], how: &Collation<'_>) -> Option<Result<(Tensor, Tensor)>> {
        let inner = ["C", "H", "W"].contains(&how.batch_dim().as_str());
        let in_range = indices.iter().all(|index| *index < self.len());
        (!inner && in_range).then(|| {
            let index: Vec<i64> = crate::list(indices.iter().map(|index| *index as i64));
            let index = Tensor::from_slice(&index, [index.len()])?;
            let picked = |x: &Tensor| x.index_select(&index, "N")?.rename([("N", how.batch_dim().as_str())]);
            Ok((scaled(&picked(&self.images)?)?, picked(&self.labels)?))
        })
    }
}
