//! Folders for the files of a test, and a small model.

#![allow(dead_code)]

use namegrad::prelude::*;
use std::path::{Path, PathBuf};

/// A model with all that a step changes: parameters, running statistics and the random numbers of dropout.
#[derive(Module)]
pub(crate) struct Model {
    pub(crate) hidden: Linear,
    pub(crate) norm: BatchNorm,
    dropout: Dropout,
    out: Linear,
}

impl Model {
    pub(crate) fn new(dropout: f64, out: usize) -> Result<Model> {
        Ok(Model {
            hidden: Linear::new(("in", 3), ("h", 8))?,
            norm: BatchNorm::new(("h", 8))?,
            dropout: Dropout::new(dropout)?,
            out: Linear::new(("h", 8), ("out", out))?,
        })
    }

    pub(crate) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let h = self.norm.forward(&self.hidden.forward(x)?)?.relu()?;
        self.out.forward(&self.dropout.forward(&h)?)
    }
}

/// A folder that is removed at the end of a test.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("namegrad-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Scratch(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
