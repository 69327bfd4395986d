//! [`Unfold`] and [`Fold`]: the windows of an image as columns, and back.

use super::*;
use namegrad_core::args::{Argument, Extents, NewName};

/// The positions of windows on an image.
#[derive(Clone, Copy, Debug, Setters)]
#[setters(of(UnfoldBuilder, FoldBuilder), at = config.settings)]
struct WindowSettings {
    /// The distance between the elements of a window; the default is 1.
    #[setters(default = Extents::from(1))]
    dilation: Extents,
    /// The zeros around the image that windows also have; the default is 0.
    #[setters(default = Extents::from(0))]
    padding: Extents,
    /// The step from one window to the next; the default is 1. One number for both dims, a list of two, or
    /// pairs such as `[("H", 2), ("W", 1)]`, as for all such options.
    #[setters(default = Extents::from(1))]
    stride: Extents,
}

impl WindowSettings {
    /// The settings with numbers in the order of these dims, if they are given by name.
    #[track_caller]
    fn in_order(mut self, layer: &'static str, dims: &[Named; 2]) -> Result<WindowSettings> {
        let names = dims.map(|(name, _)| name);
        self.dilation = self.dilation.in_order(layer, "dilation", &names, Some(1.into()))?;
        self.padding = self.padding.in_order(layer, "padding", &names, Some(0.into()))?;
        self.stride = self.stride.in_order(layer, "stride", &names, Some(1.into()))?;
        Ok(self)
    }
}

/// `x` with these dims last and the others as one before them, and the other dims.
fn flattened(x: &Tensor, last: &[usize]) -> Result<(Tensor, Vec<usize>)> {
    let others = others(x, last);
    let batch = sizes_of(x, &others).iter().product();
    let sizes = [&[batch], &sizes_of(x, last)[..]].concat();
    Ok((x.rename(None)?.permute([&others[..], last].concat())?.reshape(sizes)?, others))
}

/// The reverse of [`flattened`], for a result whose last dims have other names.
fn unflattened(y: Tensor, x: &Tensor, others: &[usize], last: &[Option<Name>]) -> Result<Tensor> {
    let mut names = names_at(x, others);
    names.extend_from_slice(last);
    let names = Names::new("rename", names)?;
    with_names(y.reshape([&sizes_of(x, others)[..], &y.sizes()[1..]].concat())?, &names)
}

/// The windows of images, each as a column: [`F::unfold`] as a layer, which finds its dims by name.
///
/// # Shapes
/// - `x`: any dims that include the channels and the two dims of the windows
/// - result: the other dims of `x`, the channels times the elements of a window, and the windows
///
/// # Parameters
/// None.
///
/// # Examples
/// ```
/// use namegrad::nn::Unfold;
/// use namegrad::prelude::*;
/// let layer = Unfold::builder("C", [("H", 2), ("W", 2)]).stride(2).name("window").build()?;
/// let x = Tensor::rand([("N", 2), ("H", 4), ("W", 6), ("C", 3)])?;
/// assert_eq!(layer.forward(&x)?.shape().to_string(), "[N=2, C=12, window=6]");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, dims = dims_text(&self.config.kernel), layer)]
pub struct Unfold {
    config: UnfoldConfig,
    name: Option<Name>,
    path: ModulePath,
}

/// The images whose windows have these columns, summed where windows overlap: [`F::fold`] as a layer, which
/// finds its dims by name.
///
/// # Shapes
/// - `x`: any dims that include the channels, times the elements of a window, and the windows, by default the
///   last dim
/// - result: the other dims of `x`, the channels, and the two dims of the image
///
/// # Parameters
/// None.
///
/// # Examples
/// ```
/// use namegrad::nn::Fold;
/// use namegrad::prelude::*;
/// let layer = Fold::builder("C", [("H", 4), ("W", 6)], [2, 2]).stride(2).windows("window").build()?;
/// let x = Tensor::rand([("N", 2), ("window", 6), ("C", 12)])?;
/// assert_eq!(layer.forward(&x)?.shape().to_string(), "[N=2, C=3, H=4, W=6]");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Module)]
#[module(crate = crate, dims = format!("-> {}, {}", dims_text(&self.config.output), dims_text(&self.config.kernel)), layer)]
pub struct Fold {
    config: FoldConfig,
    path: ModulePath,
}

/// A builder for [`Unfold`]; see [`Unfold::builder`].
#[derive(Clone, Debug, Setters)]
struct UnfoldConfig {
    /// The dim of the channels.
    #[setters(given)]
    channels: Dim,
    /// The dims of the windows, sizes with or without names.
    kernel: [Named; 2],
    #[setters(skip)]
    settings: WindowSettings,
    /// The name of the dim of the windows; by default it has none.
    name: NewName,
}

impl UnfoldBuilder {
    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size.
    #[track_caller]
    pub fn build(self) -> Result<Unfold> {
        let mut config = self.config()?;
        let name = config.name.clone().name().map_err(|error| error.of("Unfold"))?;
        let kernel = window("Unfold", config.kernel)?;
        config.settings = config.settings.in_order("Unfold", &kernel)?;
        Ok(Unfold { config, name, path: ModulePath::new() })
    }
}

impl Unfold {
    /// The windows of `x`.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` lacks a dim, [`ErrorKind::Shape`] if no window fits,
    /// [`ErrorKind::Value`] for a stride or dilation of 0.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.path.run("Unfold", &[x], &|_: &Running| {
            let UnfoldConfig { ref channels, kernel, settings, .. } = self.config;
            let WindowSettings { dilation, padding, stride } = settings;
            let dims = sliding_dims(x, &kernel.map(|(name, _)| name))?;
            let channel = channel("Unfold", channels, x, &dims, &self.path)?;
            let (images, others) = flattened(x, &[channel, dims[0], dims[1]])?;
            let columns = F::unfold(&images, kernel.map(|(_, size)| size), dilation, padding, stride)?;
            unflattened(columns, x, &others, &[x.name(channel), self.name])
        })
    }
}

/// The position of the channels, which must not be one of the other dims.
fn channel(op: &'static str, dim: &Dim, x: &Tensor, others: &[usize], path: &ModulePath) -> Result<usize> {
    let channel = Argument::resolve(dim, op, x.value())?;
    if x.ndim() == 0 || is_in(others, channel) {
        let message = format!("{} takes one dim for two", called(path, &format!("channels {dim:?}")));
        return Err(Error::new(ErrorKind::Shape, op, message).with_operands([x.shape()]));
    }
    Ok(channel)
}

/// A builder for [`Fold`]; see [`Fold::builder`].
#[derive(Clone, Debug, Setters)]
struct FoldConfig {
    /// The dim of the channels.
    #[setters(given)]
    channels: Dim,
    /// The dims of the images, sizes with or without names.
    output: [Named; 2],
    /// The sizes of the windows, with or without the names of the dims of the images.
    kernel: [Named; 2],
    #[setters(skip)]
    settings: WindowSettings,
    /// The dim of the windows; the default is the last.
    #[setters(default = Dim::Index(-1))]
    windows: Dim,
}

impl FoldBuilder {
    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name, [`ErrorKind::Value`] for an invalid size.
    #[track_caller]
    pub fn build(self) -> Result<Fold> {
        let mut config = self.config()?;
        config.kernel = kernel_of(&window("Fold", config.kernel)?, &config.output)?;
        config.settings = config.settings.in_order("Fold", &config.output)?;
        Ok(Fold { config, path: ModulePath::new() })
    }
}

/// The sizes of windows in the order of the dims `output`, if they are given by name.
#[track_caller]
fn kernel_of(kernel: &[Named; 2], output: &[Named; 2]) -> Result<[Named; 2]> {
    let [(Some(first), height), (Some(second), width)] = *kernel else {
        let Some(name) = kernel.iter().find_map(|(name, _)| *name) else { return Ok(*kernel) };
        let message = format!("`kernel_size` has a number for '{name}' and one without a name");
        return Err(Error::new(ErrorKind::Value, "Fold", message));
    };
    let pairs = Extents::from([(first.as_str(), height), (second.as_str(), width)]);
    let sizes = pairs.in_order("Fold", "kernel_size", &output.map(|(name, _)| name), None)?;
    let sizes = sizes.over("Fold", "kernel_size", 2)?;
    Ok([(output[0].0, sizes[0]), (output[1].0, sizes[1])])
}

impl Fold {
    /// The images.
    ///
    /// # Errors
    /// [`ErrorKind::NameNotFound`] if `x` lacks a dim, [`ErrorKind::Shape`] if there are other numbers of
    /// windows or elements, [`ErrorKind::DuplicateName`] if `x` has another dim with a name of the result.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.path.run("Fold", &[x], &|_: &Running| {
            let FoldConfig { ref channels, output, kernel, settings, ref windows } = self.config;
            let WindowSettings { dilation, padding, stride } = settings;
            let columns = Argument::resolve(windows, "Fold", x.value())?;
            let channel = channel("Fold", channels, x, &[columns], &self.path)?;
            let (matrices, others) = flattened(x, &[channel, columns])?;
            let [(height, rows), (width, columns)] = output;
            let images =
                F::fold(&matrices, [rows, columns], kernel.map(|(_, size)| size), dilation, padding, stride)?;
            unflattened(images, x, &others, &[x.name(channel), height, width])
        })
    }
}
