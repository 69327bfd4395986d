//! Layers that rearrange elements.

use super::{Layer, within};
use crate::Module;
use crate::functional as F;
use crate::training::ModulePath;
use namegrad_autograd::Tensor;
use namegrad_core::args::Positions;
use namegrad_core::{Argument, Dim, Dims, Error, ErrorKind, IntoShape, Name, Result, Shape};

/// `Layer` for a layer with a method `forward`.
macro_rules! layers {
    ($($layer:ident)*) => {$(
        impl Layer for $layer {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                $layer::forward(self, x)
            }
        }
    )*};
}
layers! { Flatten Unflatten PixelShuffle PixelUnshuffle ChannelShuffle }

/// Flattens dims into one, at the place of the first of them.
///
/// The elements are in the order of the dims as they were given, so the result does not depend on the order
/// of the input's dims. [`Flatten::default`] flattens all dims but the first, like PyTorch's.
///
/// # Shapes
/// - `x`: any dims that include those to flatten, in any order
/// - result: the dims of `x`, with the new dim in place of the first of those
///
/// # Parameters
/// None.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// let flatten = Flatten::new(["C", "H", "W"], "features")?;
/// let images = Tensor::rand([("N", 2), ("C", 3), ("H", 4), ("W", 5)])?;
/// let y = flatten.forward(&images)?;
/// assert_eq!(y.shape().to_string(), "[N=2, features=60]");
/// let last = images.align_to(["N", "H", "W", "C"])?;
/// assert!(flatten.forward(&last)?.equal(&y)?);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default, Module)]
#[module(crate = crate, describe = Flatten::text)]
pub struct Flatten {
    /// `None` for all dims but the first.
    #[module(skip)]
    dims: Option<Dims>,
    #[module(skip)]
    name: Option<Name>,
    path: ModulePath,
}

impl Flatten {
    /// A layer that flattens `dims` into a dim called `name`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`].
    #[track_caller]
    pub fn new(dims: impl Into<Dims>, name: &str) -> Result<Flatten> {
        Ok(Flatten { dims: Some(dims.into()), name: Some(Name::new(name)?), path: ModulePath::new() })
    }

    /// The output for `x`.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` lacks a dim, [`ErrorKind::DuplicateName`] if it has one with the
    /// name of the result.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let _running = self.path.running();
        self.flattened(x).map_err(|error| within(error, "Flatten", &self.path))
    }

    #[track_caller]
    fn flattened(&self, x: &Tensor) -> Result<Tensor> {
        let dims: Positions = match &self.dims {
            Some(dims) => dims.clone().resolve("Flatten", x.value())?,
            None => (1..x.ndim()).collect(),
        };
        let Some(first) = dims.iter().min().copied() else {
            // Nothing to flatten: a dim of one element, as in PyTorch for one number.
            return if x.ndim() > 0 { Ok(x.clone()) } else { x.unsqueeze(0) };
        };
        let rest =
            |from: usize, to: usize| (from..to).filter(|dim| !dims.contains(dim)).collect::<Vec<usize>>();
        let order: Vec<usize> = [&rest(0, first)[..], &dims[..], &rest(first, x.ndim())[..]].concat();
        let flat: Vec<usize> = (first..first + dims.len()).collect();
        x.permute(order)?.flatten(flat, self.name.map(Name::as_str))
    }

    fn text(&self) -> String {
        match self.name {
            Some(name) => format!("Flatten(-> {name})"),
            None => "Flatten".into(),
        }
    }
}

/// Splits a dim into several.
///
/// # Shapes
/// - `x`: any dims that include the dim to split
/// - result: the dims of `x`, with the new dims in its place
///
/// # Parameters
/// None.
///
/// # Examples
/// ```
/// use namegrad::nn::Unflatten;
/// use namegrad::prelude::*;
/// let unflatten = Unflatten::new("features", [("C", 3), ("L", 4)])?;
/// let y = unflatten.forward(&Tensor::rand([("N", 2), ("features", 12)])?)?;
/// assert_eq!(y.shape().to_string(), "[N=2, C=3, L=4]");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = Unflatten::text)]
pub struct Unflatten {
    #[module(skip)]
    dim: Dim,
    shape: Shape,
    path: ModulePath,
}

impl Unflatten {
    /// A layer that splits `dim` into dims with the given sizes, with names or without.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`], [`ErrorKind::Value`] for a negative size.
    #[track_caller]
    pub fn new(dim: impl Into<Dim>, dims: impl IntoShape) -> Result<Unflatten> {
        let shape = dims.into_shape().map_err(|error| error.of("Unflatten"))?;
        Ok(Unflatten { dim: dim.into(), shape, path: ModulePath::new() })
    }

    /// The output for `x`.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` lacks the dim, [`ErrorKind::Shape`] if its size is not the product
    /// of the new sizes.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let _running = self.path.running();
        x.unflatten(self.dim.clone(), &self.shape).map_err(|error| within(error, "Unflatten", &self.path))
    }

    fn text(&self) -> String {
        format!("Unflatten(-> {})", self.shape)
    }
}

#[track_caller]
fn check_factor(layer: &'static str, what: &str, factor: usize) -> Result<()> {
    if factor > 0 {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Value, layer, format!("{what} must be at least 1, got 0")))
}

/// A layer of [`F::pixel_shuffle`] or its reverse.
macro_rules! shuffles {
    ($($(#[$doc:meta])* $layer:ident $function:ident $factor:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Module)]
        #[module(crate = crate, describe = $layer::text)]
        pub struct $layer {
            factor: usize,
            #[module(skip)]
            dim: Dim,
            #[module(skip)]
            dims: Dims,
            path: ModulePath,
        }

        impl $layer {
            /// A layer for channels along `dim` and pixels along the two dims `dims`.
            ///
            /// # Errors
            /// [`ErrorKind::Value`] for a factor of 0.
            #[track_caller]
            pub fn new($factor: usize, dim: impl Into<Dim>, dims: impl Into<Dims>) -> Result<$layer> {
                check_factor(stringify!($layer), stringify!($factor), $factor)?;
                let (dim, dims) = (dim.into(), dims.into());
                Ok($layer { factor: $factor, dim, dims, path: ModulePath::new() })
            }

            /// The output for `x`.
            ///
            /// # Errors
            /// [`ErrorKind::NameNotFound`] if `x` lacks a dim, [`ErrorKind::Shape`] if its sizes are not
            /// divisible by the factor.
            #[track_caller]
            pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
                let _running = self.path.running();
                F::$function(x, self.factor, self.dim.clone(), self.dims.clone())
                    .map_err(|error| within(error, stringify!($layer), &self.path))
            }

            fn text(&self) -> String {
                format!("{}({})", stringify!($layer), self.factor)
            }
        }
    )*};
}
shuffles! {
    /// [`F::pixel_shuffle`] as a layer: moves channels into space.
    ///
    /// # Shapes
    /// - `x`: any dims that include the channels `C r²` and the two dims of the image `H`, `W`, in any order
    /// - result: the dims of `x`, with the sizes `C`, `H r` and `W r`
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::nn::PixelShuffle;
    /// use namegrad::prelude::*;
    /// let layer = PixelShuffle::new(2, "C", ["H", "W"])?;
    /// let y = layer.forward(&Tensor::rand([("N", 1), ("C", 8), ("H", 3), ("W", 3)])?)?;
    /// assert_eq!(y.shape().to_string(), "[N=1, C=2, H=6, W=6]");
    /// # Ok::<(), Error>(())
    /// ```
    PixelShuffle pixel_shuffle upscale_factor;
    /// [`F::pixel_unshuffle`] as a layer: moves space into channels.
    ///
    /// # Shapes
    /// - `x`: any dims that include the channels `C` and the two dims of the image `H r`, `W r`, in any order
    /// - result: the dims of `x`, with the sizes `C r²`, `H` and `W`
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::nn::PixelUnshuffle;
    /// use namegrad::prelude::*;
    /// let layer = PixelUnshuffle::new(2, "C", ["H", "W"])?;
    /// let y = layer.forward(&Tensor::rand([("N", 1), ("C", 2), ("H", 6), ("W", 6)])?)?;
    /// assert_eq!(y.shape().to_string(), "[N=1, C=8, H=3, W=3]");
    /// # Ok::<(), Error>(())
    /// ```
    PixelUnshuffle pixel_unshuffle downscale_factor;
}

/// [`F::channel_shuffle`] as a layer: interleaves groups of channels.
///
/// # Shapes
/// - `x`: any dims that include the channels, in any order
/// - result: the dims of `x`
///
/// # Parameters
/// None.
///
/// # Examples
/// ```
/// use namegrad::nn::ChannelShuffle;
/// use namegrad::prelude::*;
/// let layer = ChannelShuffle::new(2, "C")?;
/// let y = layer.forward(&Tensor::new([[1, 2, 3, 4]])?.refine_names(["N", "C"])?)?;
/// assert_eq!(y.to_vec::<i64>()?, [1, 3, 2, 4]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = ChannelShuffle::text)]
pub struct ChannelShuffle {
    groups: usize,
    #[module(skip)]
    dim: Dim,
    path: ModulePath,
}

impl ChannelShuffle {
    /// A layer for `groups` groups of the channels along `dim`.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for no groups.
    #[track_caller]
    pub fn new(groups: usize, dim: impl Into<Dim>) -> Result<ChannelShuffle> {
        check_factor("ChannelShuffle", "groups", groups)?;
        Ok(ChannelShuffle { groups, dim: dim.into(), path: ModulePath::new() })
    }

    /// The output for `x`, with the dims of `x`.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` lacks the dim, [`ErrorKind::Shape`] if the groups do not divide its
    /// size.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let _running = self.path.running();
        F::channel_shuffle(x, self.groups, self.dim.clone())
            .map_err(|error| within(error, "ChannelShuffle", &self.path))
    }

    fn text(&self) -> String {
        format!("ChannelShuffle({})", self.groups)
    }
}
