//! Tables of vectors.

use super::*;
use crate::functional::embedding::{padding_row, renormed};

/// The settings of both layers besides the weight.
#[derive(Clone, Debug, Setters)]
#[setters(builds(Embedding, EmbeddingBag))]
struct EmbeddingTable {
    /// The dim of the rows of the table, a size with or without a name.
    vocab: Named,
    /// The dim of an embedding, a size with or without a name.
    embed: Named,
    /// The index of padding, which counts from the end if it is negative. Its row starts as zeros and gets no
    /// gradient.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let table = Embedding::builder(("vocab", 5), ("embed", 2)).padding_idx(0).build()?;
    /// assert_eq!(table.forward(&Tensor::new(0)?)?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    padding_idx: Option<isize>,
    /// The largest norm of a row: larger rows are scaled down to it, in the weight, when they are used.
    max_norm: Option<f64>,
    /// The norm that `max_norm` limits; the default is 2.
    #[setters(default = 2.0)]
    norm_type: f64,
    /// Whether the gradient of a row is divided by the number of its indices; the default is `false`.
    scale_grad_by_freq: bool,
    /// The dtype of the weight; the default is the default dtype.
    dtype: DType,
    /// A parameter in place of a new weight, such as the weight of another layer, which both then share. It
    /// has the dims of the vocabulary and of the vectors, by name or by position.
    weight: Option<Parameter>,
    /// The reduction of the rows of a bag; the default is their mean.
    #[setters(of(EmbeddingBagBuilder))]
    mode: F::BagMode,
    /// The dim along which the indices of `x` are a bag; the default is the last.
    ///
    /// ```
    /// use namegrad::nn::EmbeddingBag;
    /// use namegrad::prelude::*;
    /// let bag = EmbeddingBag::builder(("vocab", 9), ("embed", 4)).dim("word").build()?;
    /// let words = Tensor::new([[1, 0], [5, 0], [8, 2]])?.refine_names(["word", "N"])?;
    /// assert_eq!(bag.forward(&words)?.shape().to_string(), "[N=2, embed=4]");
    /// # Ok::<(), Error>(())
    /// ```
    #[setters(of(EmbeddingBagBuilder))]
    dim: Option<Dim>,
    /// Whether the last offset is the end of the last bag; the default is `false`.
    #[setters(of(EmbeddingBagBuilder))]
    include_last_offset: bool,
}

impl EmbeddingTable {
    /// The weight: the one that was given, or else normally distributed, with zeros for padding.
    fn weight(&mut self) -> Result<Parameter> {
        check_dtype("", self.dtype)?;
        let (dims, padding) = ([self.vocab, self.embed], padding_row(self.padding_idx, self.vocab.1)?);
        if let Some(weight) = self.weight.take() {
            return shared("", weight, dims);
        }
        let mut value = TensorOptions::new().dtype(self.dtype).normal(shape_of(&dims)?, 0.0, 1.0)?;
        if let Some(row) = padding {
            value = value.index_fill(tensor_of(&[row as i64], &[1])?, 0.0, 0)?;
        }
        Parameter::new(value)
    }

    /// Scales down the rows of the weight that are used, if there is a limit.
    fn renorm(&self, weight: &Parameter, x: &Tensor) -> Result<()> {
        if self.max_norm.is_none() {
            return Ok(());
        }
        // For the errors of indices, before anything is written.
        F::embedding(&x.detach().rename(None)?, weight.try_tensor()?.detach())?;
        let index = x.value().rename(None)?.to(DType::I64)?.reshape([-1])?;
        weight.update(|value| {
            *value = renormed(value, &index, self.max_norm, self.norm_type)?;
            Ok(())
        })
    }

    fn text(&self) -> String {
        format!("{} -> {}", dim_text(self.vocab), dim_text(self.embed))
    }
}

/// A table of vectors: gives the row of the weight for each index.
///
/// # Shapes
/// - `x`: integers, any dims
/// - result: the dims of `x`, followed by the dim of the vectors
///
/// # Parameters
/// - `weight`: `[vocab, embed]`, normally distributed with mean 0 and deviation 1
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// let table = Embedding::new(("vocab", 65), ("embed", 8))?;
/// let words = Tensor::new([[1, 5, 64], [0, 0, 2]])?.refine_names(["N", "time"])?;
/// assert_eq!(table.forward(&words)?.shape().to_string(), "[N=2, time=3, embed=8]");
/// let error = table.forward(&Tensor::new([3, 65])?).unwrap_err();
/// assert!(error.message().contains("index 65 at position [1] is out of range for 65 rows"));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, dims = self.table.text(), layer, get(weight))]
pub struct Embedding {
    /// The weight, `[vocab, embed]`.
    weight: Parameter,
    table: EmbeddingTable,
    path: ModulePath,
}

impl EmbeddingBuilder {
    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size or
    /// `padding_idx`, [`ErrorKind::DType`] for a dtype that is not floating-point, [`ErrorKind::Shape`] or
    /// [`ErrorKind::NameMismatch`] for a [`weight`](Self::weight) with other dims.
    #[track_caller]
    pub fn build(self) -> Result<Embedding> {
        let mut table = self.config()?;
        Ok(Embedding { weight: made("Embedding", table.weight())?, table, path: ModulePath::new() })
    }
}

impl Embedding {
    /// The rows at the indices in `x`.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] for an index that is out of range, [`ErrorKind::DType`] unless `x` is of
    /// integers, [`ErrorKind::DuplicateName`] if `x` already has the dim of the vectors.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.path.run("Embedding", &[x], &|_: &Running| {
            self.table.renorm(&self.weight, x)?;
            let EmbeddingTable { padding_idx, scale_grad_by_freq, .. } = self.table;
            let options = EmbeddingOptions { padding_idx, scale_grad_by_freq, ..EmbeddingOptions::new() };
            F::embedding_with(x, &self.weight, options)
        })
    }
}

/// A table of vectors that gives the mean, the sum or the maximum of the rows of each bag of indices.
///
/// # Shapes
/// - `x`: integers, `[.., items]`: the indices along the last dim, or the [`dim`](EmbeddingBagBuilder::dim)
///   of the layer, are a bag
/// - result: the other dims of `x`, followed by the dim of the vectors
///
/// [`forward_bags`](Self::forward_bags) takes bags of different lengths.
///
/// # Parameters
/// - `weight`: `[vocab, embed]`, normally distributed with mean 0 and deviation 1
///
/// # Examples
/// ```
/// use namegrad::nn::EmbeddingBag;
/// use namegrad::prelude::*;
/// let bag = EmbeddingBag::builder(("vocab", 9), ("embed", 4)).mode(F::BagMode::Sum).build()?;
/// let words = Tensor::new([[1, 5, 8], [0, 0, 2]])?.refine_names(["N", "word"])?;
/// assert_eq!(bag.forward(&words)?.shape().to_string(), "[N=2, embed=4]");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, dims = self.table.text(), layer, get(weight))]
pub struct EmbeddingBag {
    /// The weight, `[vocab, embed]`.
    weight: Parameter,
    table: EmbeddingTable,
    path: ModulePath,
}

impl EmbeddingBagBuilder {
    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size or
    /// `padding_idx`, [`ErrorKind::DType`] for a dtype that is not floating-point, [`ErrorKind::Shape`] or
    /// [`ErrorKind::NameMismatch`] for a [`weight`](Self::weight) with other dims.
    #[track_caller]
    pub fn build(self) -> Result<EmbeddingBag> {
        let mut table = self.config()?;
        Ok(EmbeddingBag { weight: made("EmbeddingBag", table.weight())?, table, path: ModulePath::new() })
    }
}

impl EmbeddingBag {
    /// The output for bags along the last dim of `x`, or the dim of the layer.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] for an index that is out of range, [`ErrorKind::DType`] unless `x` is of
    /// integers, [`ErrorKind::Value`] if `x` has fewer than two dims.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let Some(dim) = &self.table.dim else { return self.forward_bags(x, None, None) };
        let last = self.path.run("EmbeddingBag", &[x], &|_: &Running| x.movedim(dim.clone(), -1))?;
        self.forward_bags(&last, None, None)
    }

    /// The output for a vector of indices, in which bags start at `offsets`, or for bags along the last dim
    /// of `x`, with factors for the rows of a sum.
    ///
    /// ```
    /// use namegrad::nn::EmbeddingBag;
    /// use namegrad::prelude::*;
    /// let bag = EmbeddingBag::new(("vocab", 9), ("embed", 4))?;
    /// let (words, starts) = (Tensor::new([1, 5, 8, 0])?, Tensor::new([0, 3])?.refine_names(["N"])?);
    /// let y = bag.forward_bags(&words, Some(&starts), None)?;
    /// assert_eq!(y.shape().to_string(), "[N=2, embed=4]");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`F::embedding_bag_with`].
    #[track_caller]
    pub fn forward_bags(
        &self,
        x: &Tensor,
        offsets: Option<&Tensor>,
        per_sample_weights: Option<&Tensor>,
    ) -> Result<Tensor> {
        self.path.run("EmbeddingBag", &[x], &|_: &Running| {
            let table = &self.table;
            table.renorm(&self.weight, x)?;
            let mut options = EmbeddingBagOptions::new().mode(table.mode);
            (options.offsets, options.padding_idx) = (offsets.map(Cow::Borrowed), table.padding_idx);
            options.per_sample_weights = per_sample_weights.map(Cow::Borrowed);
            options.scale_grad_by_freq = table.scale_grad_by_freq;
            options.include_last_offset = table.include_last_offset;
            F::embedding_bag_with(x, &self.weight, options)
        })
    }
}
