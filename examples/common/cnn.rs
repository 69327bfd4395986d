//! The convolutional network of PyTorch's MNIST example.

use namegrad::prelude::*;

/// The digits 0 to 9.
pub const CLASSES: usize = 10;
/// The mean and the standard deviation of the pixels of MNIST.
const PIXELS: (f64, f64) = (0.1307, 0.3081);

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
