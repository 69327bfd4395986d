//! The convolutional network of PyTorch's MNIST example.

use crate::flags::TrainFlags;
use namegrad::prelude::*;
use std::path::PathBuf;

/// The digits 0 to 9.
pub const CLASSES: usize = 10;
/// The mean and the standard deviation of the pixels of MNIST.
const PIXELS: (f64, f64) = (0.1307, 0.3081);

/// The flags of `mnist_cnn`, on one process or many.
#[derive(clap::Args)]
#[command(
    mut_arg("epochs", |arg| arg.default_value("4")),
    mut_arg("dropout", |arg| arg.default_value("0.5")),
    mut_arg("out", |arg| arg.default_value("target/mnist_cnn")),
)]
pub struct CnnFlags {
    /// Folder with train-images-idx3-ubyte, train-labels-idx1-ubyte and the two t10k files, optionally with
    /// .gz
    #[arg(long, value_name = "FOLDER")]
    pub data: PathBuf,
    /// Divide each batch among the processes that mpirun starts; only in the folder dist
    #[arg(long)]
    pub distributed: bool,
    #[allow(missing_docs, reason = "has flags of its own")]
    #[command(flatten)]
    pub train: TrainFlags,
}

/// Two convolutions and two linear layers.
#[derive(Module)]
pub struct Cnn {
    conv1: Conv2d,
    conv2: Conv2d,
    pool: MaxPool2d,
    dropout1: Dropout,
    flatten: Flatten,
    fc1: Linear,
    dropout2: Dropout,
    fc2: Linear,
}

impl Cnn {
    /// A network for images with `side` rows and columns.
    pub fn new(side: usize, hidden: usize, dropout: f64) -> Result<Cnn> {
        // A convolution says once which dims it slides along and what becomes of the channels. The order of
        // the dims of the images does not matter, and neither do further dims.
        let pooled = side.saturating_sub(4) / 2;
        Ok(Cnn {
            conv1: Conv2d::new(("C", 1), ("C", 32), [("H", 3), ("W", 3)])?,
            conv2: Conv2d::new(("C", 32), ("C", 64), [("H", 3), ("W", 3)])?,
            pool: MaxPool2d::new([("H", 2), ("W", 2)])?,
            dropout1: Dropout::new(0.25)?,
            flatten: Flatten::new(["C", "H", "W"], "features")?,
            fc1: Linear::new(("features", 64 * pooled * pooled), ("hidden", hidden))?,
            dropout2: Dropout::new(dropout)?,
            fc2: Linear::new(("hidden", hidden), ("class", CLASSES))?,
        })
    }
}

impl Layer for Cnn {
    /// Logits `[N, class]` for images `[N, C, H, W]`.
    fn forward(&self, images: &Tensor) -> Result<Tensor> {
        let (mean, std) = PIXELS;
        let x = images.sub(mean)?.div(std)?;
        let x = self.conv1.forward(&x)?.relu()?; // [N, C=32, H=26, W=26]
        let x = self.conv2.forward(&x)?.relu()?; // [N, C=64, H=24, W=24]
        let x = self.dropout1.forward(&self.pool.forward(&x)?)?; // [N, C=64, H=12, W=12]
        let h = self.fc1.forward(&self.flatten.forward(&x)?)?.relu()?; // [N, hidden]
        self.fc2.forward(&self.dropout2.forward(&h)?)
    }
}
