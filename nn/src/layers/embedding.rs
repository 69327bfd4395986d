//! Tables of vectors.

use super::*;
use crate::functional::BagMode;
use crate::functional::embedding::renormed;
use crate::functional::options::{EmbeddingBagOptions, EmbeddingOptions};

/// The settings of both layers besides the weight.
#[derive(Clone, Debug, Setters)]
#[setters(of(EmbeddingBuilder, EmbeddingBagBuilder), at = table, fallible)]
struct EmbeddingTable {
    #[setters(skip)]
    dims: [Named; 2],
    /// The index of padding, which counts from the end if it is negative. Its row starts as zeros and gets no
    /// gradient.
    #[setters(some)]
    padding_idx: Option<isize>,
    /// The largest norm of a row: larger rows are scaled down to it, in the weight, when they are used.
    #[setters(some)]
    max_norm: Option<f64>,
    /// The norm that `max_norm` limits; the default is 2.
    norm_type: f64,
    /// Whether the gradient of a row is divided by the number of its indices; the default is `false`.
    scale_grad_by_freq: bool,
    /// The dtype of the weight; the default is the default dtype.
    dtype: DType,
    /// A parameter in place of a new weight, such as the weight of another layer, which both then share. It
    /// has the dims of the vocabulary and of the vectors, by name or by position.
    #[setters(some, cloned)]
    weight: Option<Parameter>,
}

impl EmbeddingTable {
    #[track_caller]
    fn new(layer: &'static str, vocab: impl NewDim, embed: impl NewDim) -> Result<EmbeddingTable> {
        Ok(EmbeddingTable {
            dims: all_named(layer, [vocab.into_new_dim(), embed.into_new_dim()])?,
            padding_idx: None,
            max_norm: None,
            norm_type: 2.0,
            scale_grad_by_freq: false,
            dtype: default_dtype(),
            weight: None,
        })
    }

    /// The weight: the one that was given, or else normally distributed, with zeros for padding.
    #[track_caller]
    fn weight(&mut self, layer: &'static str) -> Result<Parameter> {
        check_dtype(layer, self.dtype)?;
        let rows = self.dims[0].1 as isize;
        if let Some(padding) = self.padding_idx.filter(|padding| !(-rows..rows).contains(padding)) {
            let message = format!("padding_idx {padding} is not one of the {rows} rows of the weight");
            return Err(Error::new(ErrorKind::Value, layer, message));
        }
        if let Some(weight) = self.weight.take() {
            return shared(layer, weight, self.dims);
        }
        let shape = shape_of(&self.dims)?;
        let value = TensorOptions::new().dtype(self.dtype).normal(shape, 0.0, 1.0);
        let mut value = value.map_err(|error| error.of(layer))?;
        if let Some(padding) = self.padding_idx {
            let row = Tensor::from_slice(&[padding.rem_euclid(rows) as i64], [1])?;
            value = value.index_fill(&row, 0.0, 0)?;
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
        format!("{} -> {}", dim_text(self.dims[0]), dim_text(self.dims[1]))
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
#[module(crate = crate, dims = self.table.text(), layer)]
pub struct Embedding {
    weight: Parameter,
    #[module(skip)]
    table: EmbeddingTable,
    path: ModulePath,
}

/// A builder for [`Embedding`]; see [`Embedding::builder`].
#[derive(Clone, Debug)]
pub struct EmbeddingBuilder {
    table: Result<EmbeddingTable>,
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
        let mut table = self.table?;
        Ok(Embedding { weight: table.weight("Embedding")?, table, path: ModulePath::new() })
    }
}

impl Embedding {
    /// A table with a row for each of `vocab` and a column for each of `embed`, sizes with or without names.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`], [`ErrorKind::Value`] for a negative size.
    #[track_caller]
    pub fn new(vocab: impl NewDim, embed: impl NewDim) -> Result<Embedding> {
        Embedding::builder(vocab, embed).build()
    }

    /// A builder, to change the defaults of [`new`](Self::new).
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let table = Embedding::builder(("vocab", 5), ("embed", 2)).padding_idx(0).build()?;
    /// assert_eq!(table.forward(&Tensor::new(0)?)?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn builder(vocab: impl NewDim, embed: impl NewDim) -> EmbeddingBuilder {
        EmbeddingBuilder { table: EmbeddingTable::new("Embedding", vocab, embed) }
    }

    /// The weight, `[vocab, embed]`.
    pub fn weight(&self) -> &Parameter {
        &self.weight
    }

    /// The rows at the indices in `x`.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] for an index that is out of range, [`ErrorKind::DType`] unless `x` is of
    /// integers, [`ErrorKind::DuplicateName`] if `x` already has the dim of the vectors.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.path.run("Embedding", &[x], |_| {
            self.table.renorm(&self.weight, x)?;
            let options = EmbeddingOptions {
                padding_idx: self.table.padding_idx,
                scale_grad_by_freq: self.table.scale_grad_by_freq,
                ..EmbeddingOptions::new()
            };
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
#[module(crate = crate, dims = self.table.text(), layer)]
pub struct EmbeddingBag {
    weight: Parameter,
    #[module(skip)]
    table: EmbeddingTable,
    #[module(skip)]
    mode: BagMode,
    /// The dim of the items of a bag; `None` for the last.
    #[module(skip)]
    items: Option<Dim>,
    include_last_offset: bool,
    path: ModulePath,
}

/// A builder for [`EmbeddingBag`]; see [`EmbeddingBag::builder`].
#[derive(Clone, Debug, Setters)]
#[setters(builder)]
pub struct EmbeddingBagBuilder {
    #[setters(skip)]
    table: Result<EmbeddingTable>,
    /// The reduction of the rows of a bag; the default is their mean.
    mode: BagMode,
    #[setters(skip)]
    items: Option<Dim>,
    /// Whether the last offset is the end of the last bag; the default is `false`.
    include_last_offset: bool,
}

impl EmbeddingBagBuilder {
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
    pub fn dim(mut self, dim: impl Into<Dim>) -> EmbeddingBagBuilder {
        self.items = Some(dim.into());
        self
    }

    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size or
    /// `padding_idx`, [`ErrorKind::DType`] for a dtype that is not floating-point, [`ErrorKind::Shape`] or
    /// [`ErrorKind::NameMismatch`] for a [`weight`](Self::weight) with other dims.
    #[track_caller]
    pub fn build(self) -> Result<EmbeddingBag> {
        let EmbeddingBagBuilder { table, mode, items, include_last_offset } = self;
        let mut table = table?;
        let weight = table.weight("EmbeddingBag")?;
        Ok(EmbeddingBag { weight, table, mode, items, include_last_offset, path: ModulePath::new() })
    }
}

impl EmbeddingBag {
    /// A table with a row for each of `vocab` and a column for each of `embed`, sizes with or without names.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`], [`ErrorKind::Value`] for a negative size.
    #[track_caller]
    pub fn new(vocab: impl NewDim, embed: impl NewDim) -> Result<EmbeddingBag> {
        EmbeddingBag::builder(vocab, embed).build()
    }

    /// A builder, to change the defaults of [`new`](Self::new).
    #[track_caller]
    pub fn builder(vocab: impl NewDim, embed: impl NewDim) -> EmbeddingBagBuilder {
        EmbeddingBagBuilder {
            table: EmbeddingTable::new("EmbeddingBag", vocab, embed),
            mode: BagMode::Mean,
            items: None,
            include_last_offset: false,
        }
    }

    /// The weight, `[vocab, embed]`.
    pub fn weight(&self) -> &Parameter {
        &self.weight
    }

    /// The output for bags along the last dim of `x`, or the dim of the layer.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] for an index that is out of range, [`ErrorKind::DType`] unless `x` is of
    /// integers, [`ErrorKind::Value`] if `x` has fewer than two dims.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match &self.items {
            Some(items) => {
                let last = self.path.run("EmbeddingBag", &[x], |_| x.movedim(items.clone(), -1))?;
                self.forward_bags(&last, None, None)
            }
            None => self.forward_bags(x, None, None),
        }
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
        self.path.run("EmbeddingBag", &[x], |_| {
            let table = &self.table;
            table.renorm(&self.weight, x)?;
            let options = EmbeddingBagOptions {
                offsets: offsets.map(Cow::Borrowed),
                per_sample_weights: per_sample_weights.map(Cow::Borrowed),
                mode: self.mode,
                padding_idx: table.padding_idx,
                scale_grad_by_freq: table.scale_grad_by_freq,
                include_last_offset: self.include_last_offset,
                ..EmbeddingBagOptions::new()
            };
            F::embedding_bag_with(x, &self.weight, options)
        })
    }
}
