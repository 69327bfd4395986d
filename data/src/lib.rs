//! Data sets, and loaders that make batches of them whose dims have names.

#![forbid(unsafe_code)]

mod collate;
mod concat;
mod dataset;
mod loader;
mod map;
mod random;
pub mod sampler;
mod split;
mod stack;
mod stream;
mod subset;
mod tensors;

pub use collate::{Collate, Collation};
pub use concat::Concat;
pub use dataset::{Dataset, Samples};
pub use loader::{Batches, Loader, LoaderBuilder, LoaderState, Source};
pub use map::Map;
pub use sampler::Sampler;
pub use split::Parts;
pub use stack::{Padded, Ragged};
pub use stream::Stream;
pub use subset::Subset;
pub use tensors::{TensorDataset, Tensors};
