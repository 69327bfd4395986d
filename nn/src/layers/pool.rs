//! Pooling over one, two or three dims. The layers are rows of a table: what differs is how their windows lie
//! and what they make of a window.

use super::*;
use crate::functional::pool::{avg_over, fractional_over, lp_over, max_over, unpool_over};
use crate::misused::{Built, IsBuilt, Options, TakesOptions};
use namegrad_core::Picked;
use namegrad_core::args::{Argument, Extents, Factors, Windows};

/// The dims of windows, and their assertion on the number of dims.
#[track_caller]
fn windows<const N: usize>(op: &'static str, dims: [impl NewDim; N]) -> Result<[Named; N]> {
    const { assert!(N >= 1 && N <= 3, "windows have one, two or three dims") };
    window(op, all_named(op, dims.map(NewDim::into_new_dim))?)
}

/// `MaxPool2d(H=2, W=2)`.
fn text(layer: &str, over: &[Named]) -> String {
    format!("{layer}({})", dims_text(over))
}

/// The names of windows.
fn names<const N: usize>(over: &[Named; N]) -> [Option<Name>; N] {
    over.map(|(name, _)| name)
}

/// The layers. A row has the docs; the layer, its builder and the aliases for one, two and three dims; the
/// inputs, and numbers that `new` takes before the dims; the function that makes a number of a window, `max`,
/// which has positions as well, or `own` if `forward` is written below; how the sizes become [`Windows`]; and
/// the settings of these that the builder has. The row
///
/// ```ignore
/// /// The doc.
/// AvgPool AvgPoolBuilder [AvgPool1d AvgPool2d AvgPool3d] (x) avg_over sliding { stride: impl Into<Extents> }
/// ```
/// becomes
///
/// ```ignore
/// /// The doc.
/// #[derive(Clone, Debug, Module)]
/// pub struct AvgPool<const N: usize> { windows: Windows, over: Over<N>, path: ModulePath }
/// pub type AvgPool1d = AvgPool<1>; ..
///
/// impl<const N: usize> AvgPool<N> {
///     pub fn new(dims: [impl NewDim; N]) -> Result<AvgPool<N>> { .. }
///     pub fn builder(dims: [impl NewDim; N]) -> AvgPoolBuilder<N> { .. }
/// }
/// impl<const N: usize> AvgPoolBuilder<N> {
///     pub fn stride(self, stride: impl Into<Extents>) -> Self { .. }
///     pub fn build(self) -> Result<AvgPool<N>> { .. }
/// }
/// ```
macro_rules! layers {
    ($(
        $(#[$doc:meta])*
        $Layer:ident $Builder:ident [$One:ident $Two:ident $Three:ident] ($($input:ident),+ $(; $number:ident)?) $what:ident $way:ident {
            $($setting:ident: $Setting:ty),*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Module)]
        #[module(crate = crate, describe = text(Self::NAME, &self.over), layer($($input),+))]
        pub struct $Layer<const N: usize> {
            $($number: f64,)?
            windows: Windows,
            over: [Named; N],
            path: ModulePath,
        }

        #[doc = concat!("[`", stringify!($Layer), "`] over one dim.")]
        pub type $One = $Layer<1>;
        #[doc = concat!("[`", stringify!($Layer), "`] over two dims.")]
        pub type $Two = $Layer<2>;
        #[doc = concat!("[`", stringify!($Layer), "`] over three dims.")]
        pub type $Three = $Layer<3>;

        impl<const N: usize> $Layer<N> {
            const NAME: &'static str = [stringify!($One), stringify!($Two), stringify!($Three)][N - 1];

            /// A layer with these dims, which the windows slide along: each a size with or without a name.
            ///
            /// # Errors
            /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size.
            #[track_caller]
            pub fn new($($number: f64,)? dims: [impl NewDim; N]) -> Result<$Layer<N>> {
                $Layer::builder($($number,)? dims).build()
            }

            /// A builder, to change the defaults of [`new`](Self::new).
            #[track_caller]
            pub fn builder($($number: f64,)? dims: [impl NewDim; N]) -> $Builder<N> {
                let over = windows(Self::NAME, dims);
                let sizes = over.as_ref().map_or([1; N], |over| over.map(|(_, size)| size));
                $Builder { $($number,)? windows: Windows::$way(sizes), over }
            }
        }

        #[doc = concat!("A builder for [`", stringify!($Layer), "`]; see [`", stringify!($Layer), "::builder`].")]
        #[derive(Clone, Debug)]
        pub struct $Builder<const N: usize> {
            $($number: f64,)?
            windows: Windows,
            /// The dims, or the error in one of them.
            over: Result<[Named; N]>,
        }

        impl<const N: usize> $Builder<N> {
            $(
                #[doc = concat!("See [`Windows::", stringify!($setting), "`](namegrad_core::args::Windows::", stringify!($setting), ").")]
                pub fn $setting(self, $setting: $Setting) -> Self {
                    Self { windows: self.windows.$setting($setting), ..self }
                }
            )*

            /// Builds the layer.
            ///
            /// # Errors
            #[doc = concat!("Those of [`", stringify!($Layer), "::new`].")]
            #[track_caller]
            pub fn build(self) -> Result<$Layer<N>> {
                let (over, path) = (self.over?, ModulePath::new());
                let windows = self.windows.in_order($Layer::<N>::NAME, &names(&over))?;
                Ok($Layer { $($number: self.$number,)? windows, over, path })
            }
        }

        impl<const N: usize> Options for $Layer<N> where $Layer<N>: TakesOptions {}
        impl<const N: usize> Options for Result<$Layer<N>> where Result<$Layer<N>>: TakesOptions {}
        impl<const N: usize> Built for $Builder<N> where $Builder<N>: IsBuilt {}

        layers!(@ $what $Layer $($number)?);
    )*};
    (@ max $Layer:ident) => {
        impl<const N: usize> $Layer<N> {
            /// The largest element of each window.
            ///
            /// # Errors
            /// [`ErrorKind::NameNotFound`] if `x` lacks a dim, [`ErrorKind::Shape`] if no window fits,
            /// [`ErrorKind::DType`] for `bool`.
            #[track_caller]
            pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
                Ok(self.forward_with_indices(x)?.values)
            }

            /// The largest element of each window, and its position in row-major order among the elements
            /// of the dims of the windows.
            ///
            /// # Errors
            /// Same as [`forward`](Self::forward).
            #[track_caller]
            pub fn forward_with_indices(&self, x: &Tensor) -> Result<Picked<Tensor>> {
                self.path.run(Self::NAME, &[x], &|_: &Running| {
                    max_over(x, self.windows, &sliding_dims(x, &names(&self.over))?)
                })
            }
        }
    };
    (@ own $Layer:ident) => {};
    (@ $over:ident $Layer:ident $($number:ident)?) => {
        impl<const N: usize> $Layer<N> {
            /// The number for each window.
            ///
            /// # Errors
            /// [`ErrorKind::NameNotFound`] if `x` lacks a dim, [`ErrorKind::Shape`] if no window fits,
            /// [`ErrorKind::DType`] unless `x` is floating-point, [`ErrorKind::Value`] for an exponent of 0.
            #[track_caller]
            pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
                self.path.run(Self::NAME, &[x], &|_: &Running| {
                    $over(x, $(self.$number,)? self.windows, &sliding_dims(x, &names(&self.over))?)
                })
            }
        }
    };
}

layers! {
    /// The largest element of each window over `N` dims, which the layer finds by name: [`MaxPool1d`],
    /// [`MaxPool2d`], [`MaxPool3d`]. The padding has no part in the maximum.
    ///
    /// # Shapes
    /// - `x`: any dims that include those of the windows, in any order; without names, they are the last
    /// - result: the dims of `x`, with the number of windows in place of those sizes
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let pool = MaxPool2d::new([("H", 2), ("W", 2)])?;
    /// let x = Tensor::rand([("N", 2), ("H", 8), ("W", 6), ("C", 3)])?;
    /// assert_eq!(pool.forward(&x)?.shape().to_string(), "[N=2, H=4, W=3, C=3]");
    /// let overlapping = MaxPool2d::builder([("H", 3), ("W", 3)]).stride(2).padding(1).build()?;
    /// assert_eq!(overlapping.forward(&x)?.shape().to_string(), "[N=2, H=4, W=3, C=3]");
    /// # Ok::<(), Error>(())
    /// ```
    MaxPool MaxPoolBuilder [MaxPool1d MaxPool2d MaxPool3d] (x) max sliding {
        stride: impl Into<Extents>, padding: impl Into<Extents>, dilation: impl Into<Extents>, ceil_mode: bool
    }
    /// The mean of each window over `N` dims, which the layer finds by name: [`AvgPool1d`], [`AvgPool2d`],
    /// [`AvgPool3d`].
    ///
    /// # Shapes
    /// - `x`: any dims that include those of the windows, in any order; without names, they are the last
    /// - result: the dims of `x`, with the number of windows in place of those sizes
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let pool = AvgPool1d::new([("time", 2)])?;
    /// let x = Tensor::new([[1.0, 3.0, 5.0, 7.0]])?.refine_names(["C", "time"])?;
    /// assert_eq!(pool.forward(&x)?.to_vec::<f32>()?, [2.0, 6.0]);
    /// # Ok::<(), Error>(())
    /// ```
    AvgPool AvgPoolBuilder [AvgPool1d AvgPool2d AvgPool3d] (x) avg_over sliding {
        stride: impl Into<Extents>, padding: impl Into<Extents>, ceil_mode: bool, count_include_pad: bool,
        divisor_override: isize
    }
    /// The largest element of each of a fixed number of windows over `N` dims, which the layer finds by name:
    /// [`AdaptiveMaxPool1d`], [`AdaptiveMaxPool2d`], [`AdaptiveMaxPool3d`]. The sizes are those of the
    /// result. Window `i` of `n` is from `⌊i L / n⌋` to `⌈(i + 1) L / n⌉` of the `L` elements of a dim.
    ///
    /// # Shapes
    /// - `x`: any dims that include those of the windows, in any order; without names, they are the last
    /// - result: the dims of `x`, with the sizes of the layer in those dims
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let pool = AdaptiveMaxPool2d::new([("H", 1), ("W", 2)])?;
    /// let x = Tensor::rand([("N", 2), ("C", 3), ("H", 5), ("W", 7)])?;
    /// assert_eq!(pool.forward(&x)?.shape().to_string(), "[N=2, C=3, H=1, W=2]");
    /// # Ok::<(), Error>(())
    /// ```
    AdaptiveMaxPool AdaptiveMaxPoolBuilder [AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d] (x) max adaptive {}
    /// The mean of each of a fixed number of windows over `N` dims, which the layer finds by name:
    /// [`AdaptiveAvgPool1d`], [`AdaptiveAvgPool2d`], [`AdaptiveAvgPool3d`]. The windows are those of
    /// [`AdaptiveMaxPool`].
    ///
    /// # Shapes
    /// - `x`: any dims that include those of the windows, in any order; without names, they are the last
    /// - result: the dims of `x`, with the sizes of the layer in those dims
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let pool = AdaptiveAvgPool2d::new([("H", 1), ("W", 1)])?;
    /// let x = Tensor::rand([("N", 2), ("C", 3), ("H", 5), ("W", 7)])?;
    /// let y = pool.forward(&x)?;
    /// assert!(y.allclose(&x.mean(keep(["H", "W"]))?)?);
    /// # Ok::<(), Error>(())
    /// ```
    AdaptiveAvgPool AdaptiveAvgPoolBuilder [AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d] (x) avg_over adaptive {}
    /// The opposite of a [`MaxPool`] over `N` dims: zeros, with the elements of the input at the positions
    /// that [`MaxPool::forward_with_indices`] gave. [`MaxUnpool1d`], [`MaxUnpool2d`], [`MaxUnpool3d`].
    ///
    /// # Shapes
    /// - `x`, `indices`: the same dims, which include those of the windows, in any order; without names, they
    ///   are the last
    /// - result: the dims of `x`, with the sizes before pooling in those of the windows
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 5.0, 2.0, 3.0]])?.refine_names(["C", "time"])?;
    /// let largest = MaxPool1d::new([("time", 2)])?.forward_with_indices(&x)?;
    /// let back = MaxUnpool1d::new([("time", 2)])?.forward(&largest.values, &largest.indices)?;
    /// assert_eq!(back.to_vec::<f32>()?, [0.0, 5.0, 0.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    MaxUnpool MaxUnpoolBuilder [MaxUnpool1d MaxUnpool2d MaxUnpool3d] (x, indices) own sliding {
        stride: impl Into<Extents>, padding: impl Into<Extents>
    }
    /// The norm of each window over `N` dims, without absolute values: `(Σ x^norm_type)^(1 / norm_type)`.
    /// [`LpPool1d`], [`LpPool2d`], [`LpPool3d`].
    ///
    /// # Shapes
    /// - `x`: any dims that include those of the windows, in any order; without names, they are the last
    /// - result: the dims of `x`, with the number of windows in place of those sizes
    ///
    /// # Parameters
    /// None.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::nn::LpPool1d;
    /// let pool = LpPool1d::new(2.0, [("time", 2)])?;
    /// let x = Tensor::new([[3.0, 4.0, 6.0, 8.0]])?.refine_names(["C", "time"])?;
    /// assert_eq!(pool.forward(&x)?.to_vec::<f32>()?, [5.0, 10.0]);
    /// # Ok::<(), Error>(())
    /// ```
    LpPool LpPoolBuilder [LpPool1d LpPool2d LpPool3d] (x; norm_type) lp_over sliding {
        stride: impl Into<Extents>, ceil_mode: bool
    }
}

impl<const N: usize> MaxUnpool<N> {
    /// Zeros, with the elements of `x` at `indices`. The result has the smallest sizes that have such
    /// windows.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` lacks a dim, [`ErrorKind::Shape`] if `indices` has other sizes,
    /// [`ErrorKind::Index`] for an index outside of the result.
    #[track_caller]
    pub fn forward(&self, x: &Tensor, indices: &Tensor) -> Result<Tensor> {
        self.forward_to(x, indices, Extents::default())
    }

    /// [`forward`](Self::forward) for a result with these sizes in the dims of the windows.
    ///
    /// # Errors
    /// Same as [`forward`](Self::forward).
    #[track_caller]
    pub fn forward_to(&self, x: &Tensor, indices: &Tensor, sizes: impl Into<Extents>) -> Result<Tensor> {
        let sizes = sizes.into();
        self.path.run(Self::NAME, &[x, indices], &|_: &Running| {
            let dims = sliding_dims(x, &names(&self.over))?;
            let (kernel, stride, padding) = self.windows.sizes();
            let sizes = sizes.in_order("", "output_size", &names(&self.over), None)?;
            unpool_over([x, indices], kernel, stride, padding, sizes, &dims)
        })
    }
}

/// The largest element of windows of one size at random places over `N` dims, which the layer finds by name:
/// [`FractionalMaxPool2d`], [`FractionalMaxPool3d`].
///
/// # Shapes
/// - `x`: any dims that include those of the windows, in any order; without names, they are the last
/// - result: the dims of `x`, with the number of windows in place of those sizes
///
/// # Parameters
/// None.
///
/// # Source
/// Graham, *Fractional Max-Pooling* (2014), section 2.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// use namegrad::nn::FractionalMaxPool2d;
/// let pool = FractionalMaxPool2d::to_ratio([("H", 2), ("W", 2)], 0.6)?;
/// let x = Tensor::rand([("N", 2), ("C", 3), ("H", 10), ("W", 5)])?;
/// assert_eq!(pool.forward(&x)?.shape().to_string(), "[N=2, C=3, H=6, W=3]");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, describe = text(Self::NAME, &self.over), layer)]
pub struct FractionalMaxPool<const N: usize> {
    size: Extents,
    ratio: Factors,
    over: [Named; N],
    path: ModulePath,
}

/// [`FractionalMaxPool`] over two dims.
pub type FractionalMaxPool2d = FractionalMaxPool<2>;
/// [`FractionalMaxPool`] over three dims.
pub type FractionalMaxPool3d = FractionalMaxPool<3>;

impl<const N: usize> FractionalMaxPool<N> {
    const NAME: &'static str = ["FractionalMaxPool1d", "FractionalMaxPool2d", "FractionalMaxPool3d"][N - 1];

    /// A layer with windows over these dims, and a result of these sizes in them.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size.
    #[track_caller]
    pub fn to_size(dims: [impl NewDim; N], sizes: impl Into<Extents>) -> Result<FractionalMaxPool<N>> {
        let (over, ratio) = (windows(Self::NAME, dims)?, Factors::NONE);
        let size = sizes.into().in_order(Self::NAME, "sizes", &names(&over), None)?;
        Ok(FractionalMaxPool { size, ratio, over, path: ModulePath::new() })
    }

    /// A layer with windows over these dims, and a result whose sizes in them are this part of the input's:
    /// one number, a list of one for each dim, or pairs such as `[("H", 0.5), ("W", 0.7)]`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size or a ratio
    /// that is not between 0 and 1.
    #[track_caller]
    pub fn to_ratio(dims: [impl NewDim; N], ratio: impl Into<Factors>) -> Result<FractionalMaxPool<N>> {
        let ratio = ratio.into();
        if let Some(ratio) = ratio.numbers().iter().find(|ratio| !(**ratio > 0.0 && **ratio < 1.0)) {
            let message = format!("the ratio must be between 0 and 1, got {ratio}");
            return Err(Error::new(ErrorKind::Value, Self::NAME, message));
        }
        let (over, size) = (windows(Self::NAME, dims)?, Extents::default());
        Ok(FractionalMaxPool { size, ratio, over, path: ModulePath::new() })
    }

    /// The largest element of each window.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` lacks a dim, [`ErrorKind::Shape`] if the windows do not fit,
    /// [`ErrorKind::DType`] unless `x` is floating-point.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.forward_with_indices(x)?.values)
    }

    /// The largest element of each window, and its position in row-major order among the elements of the dims
    /// of the windows.
    ///
    /// # Errors
    /// Same as [`forward`](Self::forward).
    #[track_caller]
    pub fn forward_with_indices(&self, x: &Tensor) -> Result<Picked<Tensor>> {
        self.path.run(Self::NAME, &[x], &|_: &Running| {
            let dims = sliding_dims(x, &names(&self.over))?;
            let ratio = self.ratio.resolve(Self::NAME, x.value())?;
            fractional_over(x, None, [self.over.map(|(_, size)| size).into(), self.size], ratio, &dims)
        })
    }
}
