//! A folder for one test, removed when the test is over.

use std::fs;
use std::path::{Path, PathBuf};

/// A fresh folder under the system's own for temporary files.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// `name` must differ between the tests of one process, which run side by side.
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("namegrad-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("the temporary folder is writable");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder left behind does not make a test wrong.
        let _ = fs::remove_dir_all(&self.0);
    }
}
