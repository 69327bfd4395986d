//! A temporary folder for one test, removed when the test ends.

use std::fs;
use std::path::{Path, PathBuf};

/// A new folder inside the system's temporary folder.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// `name` must be unique among the tests of a process, which run in parallel.
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
        // A folder left behind does not make the test fail.
        let _ = fs::remove_dir_all(&self.0);
    }
}
