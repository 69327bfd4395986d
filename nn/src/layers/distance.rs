//! Similarities and distances as layers.

use super::stateless::stateless;
use crate::functional as F;
use crate::functional::options::*;
use namegrad_autograd::Tensor;
use namegrad_core::{Dim, Dims, Result};

stateless! {
    /// [`F::pairwise_distance`](crate::functional::pairwise_distance) of vectors along a dim, which is found
    /// by name.
    ///
    /// # Shapes
    /// - `x1`, `x2`: dims that broadcast and include `dim`
    /// - result: the broadcast dims, without `dim`
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::PairwiseDistance;
    /// let x = Tensor::new([[3.0, 4.0]])?.refine_names(["N", "embed"])?;
    /// let distance = PairwiseDistance::new("embed")?.forward(&x, &x.mul(0)?)?;
    /// assert!((distance.item::<f64>()? - 5.0).abs() < 1e-4);
    /// # Ok::<(), Error>(())
    /// ```
    PairwiseDistance PairwiseDistanceBuilder (x1, x2) { dim: Dims } [] {
        /// The order of the norm; the default is 2.
        p: f64 = 2.0,
        /// What is added to a difference; the default is 1e-6.
        eps: f64 = 1e-6,
    } => |_training| F::pairwise_distance_with(x1, x2, dim, PairwiseDistanceOptions { p, eps });

    /// [`F::cosine_similarity`](crate::functional::cosine_similarity) of vectors along a dim, which is found
    /// by name.
    ///
    /// # Shapes
    /// - `x1`, `x2`: dims that broadcast and include `dim`
    /// - result: the broadcast dims, without `dim`
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::CosineSimilarity;
    /// let x = Tensor::new([[3.0, 4.0]])?.refine_names(["N", "embed"])?;
    /// let cosine = CosineSimilarity::new("embed")?.forward(&x, &x.mul(-2)?)?;
    /// assert!((cosine.item::<f64>()? + 1.0).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    CosineSimilarity CosineSimilarityBuilder (x1, x2) { dim: Dim } [] {
        /// The smallest length; the default is 1e-8.
        eps: f64 = 1e-8,
    } => |_training| F::cosine_similarity_with(x1, x2, dim, CosineSimilarityOptions { eps });
}
