//! The kernels for the CPU. A second device would be a folder beside this one.
//!
//! Other crates and your own ops use [`math`], [`update`], [`formula`] and [`vectors`]; all else is private to
//! this crate.
//!
//! A kernel is a plain function on slices, and on sizes for which the slices have room. It knows nothing about
//! names, errors or ops: this folder imports only dtypes, cells of recurrent layers and lists of sizes from the
//! rest of the crate, which a test checks.
//!
//! * Elements: `pointwise` (loops of elementwise rows), `convert` (casts), `copy` (dense copies of strided
//!   views), `fill` (elements from their positions), `join`, `index` (moved elements), `random`.
//! * Reductions: `fold`, `scan` (cumulative sums), `order` (sorting), `count` (counting and searching),
//!   [`vectors`] (sums of many vectors), `row` (the sums of one row), `exps` (exponentials
//!   of one row and their sum).
//! * Layers: `matmul`, `conv`, `pool`, `softmax`, `norm`, `standardize`, `attention`, `recurrent`; `resample`
//!   and `sample` for images; `linalg` for decompositions of matrices; [`update`] and [`formula`] for the steps
//!   of optimizers.
//! * Shared by all: `storage` (memory), `room` (memory to be written), `simd` (the widest vectors), `threads`
//!   and `rehearsal` (more threads than cores), and functions of one number in [`math`] and `integer`.

pub(crate) mod attention;
pub(crate) mod conv;
pub(crate) mod convert;
pub(crate) mod copy;
pub(crate) mod count;
mod exps;
pub(crate) mod fill;
pub(crate) mod fold;
pub mod formula;
pub(crate) mod index;
pub(crate) mod integer;
pub(crate) mod join;
pub(crate) mod linalg;
pub mod math;
pub(crate) mod matmul;
pub(crate) mod norm;
pub(crate) mod order;
pub(crate) mod pointwise;
pub(crate) mod pool;
pub(crate) mod random;
pub(crate) mod recurrent;
#[cfg(feature = "rehearsal")]
pub mod rehearsal;
pub(crate) mod resample;
pub(crate) mod room;
mod row;
pub(crate) mod sample;
pub(crate) mod scan;
pub(crate) mod simd;
pub(crate) mod softmax;
pub(crate) mod standardize;
pub(crate) mod storage;
pub(crate) mod threads;
pub mod update;
pub mod vectors;

/// The most dims that a window slides along.
pub const SPATIAL: usize = 3;

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    /// The modules below this one.
    const BELOW: [&str; 5] = ["callback", "cell", "dtype", "for_types", "layout"];

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => sources(&path, found),
                false => found.push(path),
            }
        }
    }

    #[test]
    fn nothing_above_is_imported() {
        let mut files = Vec::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cpu"), &mut files);
        assert!(files.len() > 50);
        let root = concat!("cra", "te::");
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
                for path in line.split(root).skip(1) {
                    let module = path.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
                    assert!(module == "cpu" || BELOW.contains(&module), "{}: {line}", file.display());
                }
            }
        }
    }
}
