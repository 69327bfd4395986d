//! Data sets, files and loaders.

mod collate;
mod files;
#[cfg(feature = "images")]
mod images;
mod loader;
mod memory;
mod properties;
mod resume;
mod table;
#[cfg(target_os = "linux")]
mod threads;
