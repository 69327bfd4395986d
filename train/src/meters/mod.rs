//! Meters, which add up measures of quality over batches: [`Mean`], [`Accuracy`], [`ConfusionMatrix`] (with
//! precision, recall and F1), [`Perplexity`], [`RocAuc`] (with the points of its curves and average precision)
//! and [`Regression`] (with R², MAE and RMSE).
//!
//! A meter takes batches with `update`, gives its measure over all of them with `compute`, starts again with
//! `reset`, and adds the batches of another meter with `merge`, such as that of another thread. It counts
//! each sample once, so batches can differ in size. It holds numbers only: no tensors and no tape. Without
//! any batch, a measure is NaN. After an error, a meter is unchanged. [`update_all`] adds a batch to several
//! meters of classes.
//!
//! `classes` and `pairs` have what meters share: targets that are checked and in the order of the
//! predictions.
//!
//! ```
//! use namegrad::prelude::*;
//! use namegrad::train::meters::{Accuracy, Mean};
//! let (mut loss, mut accuracy) = (Mean::new(), Accuracy::new());
//! for (logits, target) in [([[2.0, 1.0], [0.0, 3.0]], [0, 1]), ([[1.0, 0.0], [5.0, 0.0]], [1, 0])] {
//!     let logits = Tensor::new(logits)?.refine_names(["N", "class"])?;
//!     let target = Tensor::new(target)?.refine_names(["N"])?;
//!     loss.update(F::cross_entropy(&logits, &target, "class")?, logits.size("N")?)?;
//!     accuracy.update(&logits, &target, "class")?;
//! }
//! assert_eq!(accuracy.compute(), 0.75);
//! println!("loss {loss}  accuracy {accuracy}");
//! # Ok::<(), Error>(())
//! ```

mod accuracy;
mod classes;
mod confusion;
mod mean;
mod pairs;
mod perplexity;
mod regression;
mod roc_auc;

pub use self::accuracy::Accuracy;
pub use self::classes::{ClassMeter, update_all};
pub use self::confusion::{Average, ConfusionMatrix, Scores};
pub use self::mean::Mean;
pub use self::perplexity::Perplexity;
pub use self::regression::{Regression, RegressionScores};
pub use self::roc_auc::{RocAuc, RocPoint};

use std::fmt;

/// A percentage, or `-` if it is NaN.
fn percent(f: &mut fmt::Formatter<'_>, share: f64) -> fmt::Result {
    match share.is_nan() {
        true => f.write_str("-"),
        false => write!(f, "{:.2} %", 100.0 * share),
    }
}
