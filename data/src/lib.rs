//! Data sets, and loaders that make batches whose dims have names.
//!
//! # A data set
//!
//! | from | |
//! | --- | --- |
//! | tensors | [`TensorDataset`], [`Windows`] of a long one |
//! | a `Vec` | [`Samples`] |
//! | your own type | [`Dataset`] |
//! | an iterator, a file that is larger than memory | [`Stream`] |
//! | MNIST and data sets in its format | [`Mnist`], [`idx::load`] |
//! | a CSV file | [`Csv`] |
//! | images in folders | `ImageFolder`, with the feature `images` |
//! | text | [`text::lines`], [`text::read_text`], [`Vocabulary`] |
//! | `.npy`, `.npz`, safetensors | `Tensor::load`, then [`TensorDataset`] |
//!
//! [`Standardize`] gives features the mean 0 and the standard deviation 1. The methods of [`Dataset`] make
//! others from it: `map`, `filter`, `subset`, `concat`, `zip`, `random_split`, `k_folds`; [`split`] has parts
//! by class, by group and in the order of time. [`Loader`] makes batches and says how their order, their
//! workers and their padding are chosen; [`Collate`] is how samples become a batch. [`sampler`] has other
//! orders than the usual two.
//!
//! # A classifier of clothes
//!
//! Fashion-MNIST is four files in a folder:
//! ```
//! use namegrad::prelude::*;
//!
//! # let folder = std::env::temp_dir().join(format!("namegrad-doc-fashion-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).unwrap();
//! # for part in ["train", "t10k"] {
//! #     let halves = [vec![0; 392], vec![255; 392], vec![0; 392]].concat(); // two images, one from 392 on
//! #     let image = |n: usize| halves[n % 2 * 392..][..784].to_vec();
//! #     let header = vec![0, 0, 8, 3, 0, 0, 0, 40, 0, 0, 0, 28, 0, 0, 0, 28];
//! #     let images: Vec<u8> = header.into_iter().chain((0..40).flat_map(image)).collect();
//! #     std::fs::write(folder.join(format!("{part}-images-idx3-ubyte")), images).unwrap();
//! #     let labels = [&[0, 0, 8, 1, 0, 0, 0, 40][..], &[0, 1].repeat(20)].concat();
//! #     std::fs::write(folder.join(format!("{part}-labels-idx1-ubyte")), labels).unwrap();
//! # }
//! manual_seed(0);
//! let data = Mnist::load(&folder)?;
//! let train = Loader::builder(data.train).batch_size(8).shuffle(true).workers(2).build()?;
//! let test = Loader::new(data.test, 1000)?;
//!
//! let model = Sequential::new()
//!     .then(Flatten::new(["C", "H", "W"], "pixels")?)
//!     .then(Linear::new(("pixels", 784), ("hidden", 32))?)
//!     .then(Relu)
//!     .then(Linear::new(("hidden", 32), ("class", 10))?);
//! let mut optimizer = Adam::new(model.parameters())?;
//! for _ in 0..3 {
//!     for batch in train.iter() {
//!         let (images, labels) = batch?; // [N, C=1, H, W] from 0 to 1, [N]
//!         let loss = F::cross_entropy(&model.forward(&images)?, &labels, "class")?;
//!         optimizer.zero_grad();
//!         loss.backward()?;
//!         optimizer.step()?;
//!     }
//! }
//! for batch in test.iter() {
//!     let (images, labels) = batch?;
//!     let right = no_grad(|| model.forward(&images))?.argmax("class")?.eq(&labels)?;
//!     assert!(right.to(DType::F32)?.mean("N")?.item::<f64>()? > 0.9);
//! }
//! # std::fs::remove_dir_all(folder).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! # A table of houses
//!
//! ```
//! use namegrad::data::{Standardize, Table};
//! use namegrad::prelude::*;
//!
//! # let path = std::env::temp_dir().join(format!("namegrad-doc-houses-{}.csv", std::process::id()));
//! # let area = |n: usize| if n == 7 { "".into() } else { (10 * (n % 9)).to_string() };
//! # let city = |n: usize| ["Rome", "Oslo"][n % 2];
//! # let rows = (0..80).map(|n| format!("{},{},{}\n", area(n), city(n), n % 9 + 3 * (n % 2)));
//! # std::fs::write(&path, format!("area,city,price\n{}", rows.collect::<String>())).unwrap();
//! manual_seed(0);
//! let houses = Csv::new(&path).categories(["city"]).fill("area", f64::NAN).read()?;
//! let cities = houses.category_names("city")?.len() as isize;
//! let [train, test] = houses.random_split([0.8, 0.2], 0)?;
//!
//! // Means and standard deviations of the training part alone. Missing areas become the mean, then 0.
//! let scaler = Standardize::fit(&train.columns_except(["price"])?)?;
//! let samples = |houses: &Table| -> Result<TensorDataset<(Tensor, Tensor)>> {
//!     let x = scaler.transform(&houses.columns_except(["price"])?)?.nan_to_num()?; // [N, feature]
//!     let one_hot = OneHotOptions::new().num_classes(cities).name("feature");
//!     let city = houses.category("city")?.one_hot_with(one_hot)?.to(DType::F32)?;
//!     TensorDataset::new((Tensor::cat([&x, &city], "feature")?, houses.column("price")?))
//! };
//! let train = Loader::builder(samples(&train)?).batch_size(16).shuffle(true).build()?;
//!
//! let model = Linear::new(("feature", 1 + cities as usize), ("price", 1))?;
//! let mut optimizer = Adam::builder(model.parameters()).lr(0.1).build()?;
//! for _ in 0..100 {
//!     for batch in train.iter() {
//!         let (x, price) = batch?; // [N, feature], [N]
//!         let loss = F::mse_loss(&model.forward(&x)?.squeeze("price")?, &price)?;
//!         optimizer.zero_grad();
//!         loss.backward()?;
//!         optimizer.step()?;
//!     }
//! }
//! for batch in Loader::new(samples(&test)?, 1000)?.iter() {
//!     let (x, price) = batch?;
//!     let error = model.forward(&x)?.squeeze("price")?.sub(&price)?.abs()?.mean("N")?;
//!     assert!(error.item::<f64>()? < 0.3);
//! }
//! # std::fs::remove_file(path).unwrap();
//! # Ok::<(), Error>(())
//! ```

#![forbid(unsafe_code)]

mod collate;
mod concat;
mod csv;
mod dataset;
pub mod idx;
#[cfg(feature = "images")]
mod images;
mod input;
mod loader;
mod map;
mod mnist;
#[cfg(feature = "images")]
mod pixels;
mod random;
pub mod sampler;
pub mod split;
mod stack;
mod standardize;
mod stream;
mod subset;
mod tensors;
pub mod text;
mod zip;

pub use self::csv::{Column, Csv, Fill, Row, Table};
#[doc(hidden)]
pub use collate::derived;
pub use collate::{Collate, Collation};
pub use concat::Concat;
pub use dataset::{Dataset, Samples};
#[cfg(feature = "images")]
pub use images::{ImageFolder, read_gray_image, read_image};
#[doc(hidden)]
pub use loader::LoaderPosition;
pub use loader::{Batches, Cycle, Loader, LoaderBuilder, LoaderState, Source};
pub use map::Map;
pub use mnist::{LabeledImages, Mnist};
use namegrad_core::{joined, list};
pub use namegrad_data_derive::Collate;
pub use sampler::Sampler;
pub use split::SplitSizes;
pub use stack::{Padded, Ragged};
pub use standardize::Standardize;
pub use stream::Stream;
pub use subset::Subset;
pub use tensors::{TensorDataset, Tensors};
pub use text::{Vocabulary, Windows};
pub use zip::Zip;
