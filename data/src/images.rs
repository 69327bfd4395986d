//! [`ImageFolder`]: images in a folder for each class, and [`read_image`].

use crate::dataset::{Dataset, no_sample};
use crate::pixels::Pixels;
use namegrad_autograd::Tensor;
use namegrad_core::{Error, ErrorKind, Result};
use namegrad_io::sorted;
use std::collections::HashSet;
use std::fs;
use std::io;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const OP: &str = "ImageFolder";
/// The extensions of files that are images.
const EXTENSIONS: [&str; 3] = ["png", "jpg", "jpeg"];

/// PNG and JPEG images, in a folder for each class, which is named for it: torchvision's `ImageFolder`. It
/// needs the feature `images`.
///
/// A sample is an image `[C=3, H, W]` in `f32` from 0 to 1, or `[C=1, H, W]` after [`gray`](Self::gray), and
/// the number of its class. Images are decoded when they are read, in the workers of a loader.
///
/// # Examples
/// ```
/// use namegrad::data::{Dataset, ImageFolder, Loader};
/// use namegrad::prelude::*;
/// # let folder = std::env::temp_dir().join(format!("namegrad-doc-images-{}", std::process::id()));
/// # for class in ["cat", "dog"] {
/// #     std::fs::create_dir_all(folder.join(class)).unwrap();
/// #     let image = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/3x2.png"));
/// #     std::fs::write(folder.join(class).join("1.png"), image).unwrap();
/// # }
/// let pets = ImageFolder::load(&folder)?; // cat/1.png, dog/1.png
/// assert_eq!(pets.classes(), ["cat", "dog"]);
/// let loader = Loader::builder(pets).batch_size(2).workers(2).build()?;
/// for batch in loader.iter() {
///     let (images, labels) = batch?;
///     assert_eq!(images.shape().to_string(), "[N=2, C=3, H=2, W=3]");
///     assert_eq!(labels.to_vec::<i64>()?, [0, 1]);
/// }
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ImageFolder {
    classes: Arc<Vec<String>>,
    files: Arc<Vec<(PathBuf, i64)>>,
    gray: bool,
}

impl ImageFolder {
    /// Finds the images: each folder in `folder` is a class, in alphabetical order, and has images, also in
    /// subfolders. Links are followed; files that are not images are left out.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if a folder cannot be read; [`ErrorKind::Value`] if there are no classes, or one has
    /// no images.
    #[track_caller]
    pub fn load(folder: impl AsRef<Path>) -> Result<ImageFolder> {
        let caller = Location::caller();
        ImageFolder::find(folder.as_ref()).map_err(|error| error.at(caller))
    }

    fn find(folder: &Path) -> Result<ImageFolder> {
        let refused = |message: String| Err(Error::new(ErrorKind::Value, OP, message));
        let (mut classes, mut files) = (Vec::new(), Vec::new());
        for class in entries(folder)?.into_iter().filter(|path| path.is_dir()) {
            let known = files.len();
            add_images(&class, classes.len() as i64, &mut files)?;
            if files.len() == known {
                return refused(format!(
                    "{}: no .png, .jpg or .jpeg in the folder of a class",
                    class.display()
                ));
            }
            classes.push(class.file_name().unwrap_or_default().to_string_lossy().into_owned());
        }
        if classes.is_empty() {
            return refused(format!("{}: no folder of a class in it", folder.display()));
        }
        Ok(ImageFolder { classes: Arc::new(classes), files: Arc::new(files), gray: false })
    }

    /// The same images in gray, `[C=1, H, W]`.
    pub fn gray(mut self) -> ImageFolder {
        self.gray = true;
        self
    }

    /// The names of the classes in the order of their numbers.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The file of a sample.
    pub fn path(&self, index: usize) -> Option<&Path> {
        self.files.get(index).map(|(path, _)| path.as_path())
    }
}

/// Adds the images in a folder and in those in it, each of them once, so that a link to a folder above it is
/// no endless search.
fn add_images(folder: &Path, class: i64, files: &mut Vec<(PathBuf, i64)>) -> Result<()> {
    let mut folders = vec![folder.to_path_buf()];
    let mut seen: HashSet<PathBuf> = fs::canonicalize(folder).into_iter().collect();
    let first = files.len();
    while let Some(folder) = folders.pop() {
        for path in entries(&folder)? {
            let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
            if path.is_dir() {
                if fs::canonicalize(&path).is_ok_and(|real| seen.insert(real)) {
                    folders.push(path);
                }
            } else if EXTENSIONS.contains(&extension.as_str()) {
                files.push((path, class));
            }
        }
    }
    sorted::sort(&mut files[first..], &|a, b| a < b);
    Ok(())
}

/// The entries of a folder in alphabetical order.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error: io::Error| Error::new(ErrorKind::Io, OP, format!("{}: {error}", folder.display()));
    let entries = fs::read_dir(folder).map_err(failed)?.map(|entry| Ok(entry.map_err(failed)?.path()));
    let mut paths = entries.collect::<Result<Vec<_>>>()?;
    sorted::sort(&mut paths, &|a: &PathBuf, b| a < b);
    Ok(paths)
}

impl Dataset for ImageFolder {
    type Sample = (Tensor, i64);

    fn len(&self) -> usize {
        self.files.len()
    }

    #[track_caller]
    fn get(&self, index: usize) -> Result<(Tensor, i64)> {
        let Some((path, class)) = self.files.get(index) else {
            return Err(no_sample(OP, index, self.len()));
        };
        let caller = Location::caller();
        Ok((pixels(OP, path, self.gray).map_err(|error| error.at(caller))?, *class))
    }
}

/// A PNG or JPEG image as `[C=3, H, W]`, in `f32` from 0 to 1. It needs the feature `images`.
///
/// ```
/// use namegrad::data::{read_gray_image, read_image};
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/3x2.png");
/// let image = read_image(path)?;
/// assert_eq!(image.shape().to_string(), "[C=3, H=2, W=3]");
/// assert_eq!(read_gray_image(path)?.shape().to_string(), "[C=1, H=2, W=3]");
/// # Ok::<(), namegrad::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Io`] if the file cannot be read, [`ErrorKind::Format`] if it is not an image.
#[track_caller]
pub fn read_image(path: impl AsRef<Path>) -> Result<Tensor> {
    let caller = Location::caller();
    pixels("read_image", path.as_ref(), false).map_err(|error| error.at(caller))
}

/// A PNG or JPEG image in gray, as `[C=1, H, W]`: see [`read_image`].
///
/// # Errors
/// Same as [`read_image`].
#[track_caller]
pub fn read_gray_image(path: impl AsRef<Path>) -> Result<Tensor> {
    let caller = Location::caller();
    pixels("read_gray_image", path.as_ref(), true).map_err(|error| error.at(caller))
}

/// The image in a file, whose content, not its name, tells the format.
fn pixels(op: &'static str, path: &Path, gray: bool) -> Result<Tensor> {
    let failed = |kind, error: String| Error::new(kind, op, format!("{}: {error}", path.display()));
    let bytes = fs::read(path).map_err(|error| failed(ErrorKind::Io, error.to_string()))?;
    let image = Pixels::decode(&bytes).map_err(|error| failed(ErrorKind::Format, error.to_string()))?;
    let (channels, levels) = if gray { (1, image.gray()) } else { (3, image.rgb()) };
    let levels: Vec<f32> = levels.into_iter().map(|level| f32::from(level) / 255.0).collect();
    Tensor::from_slice(&levels, [("C", channels), ("H", image.height), ("W", image.width)])
}
