//! Data sets, and loaders that make batches of them whose dims have names.

#![forbid(unsafe_code)]
