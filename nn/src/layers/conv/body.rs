//! The settings of a convolution, its parameters and its work.

use super::*;
use crate::functional::conv::{TransposedArguments, convolved, steps, transposed_images};

impl ConvolutionConfig {
    /// `C=3 -> F=16, H=3, W=3`.
    fn dims(&self) -> String {
        format!("{} -> {}, {}", dim_text(self.input), dim_text(self.output), dims_text(&self.kernel))
    }

    /// The names of the dims that the kernel slides along.
    fn spatial(&self) -> Vec<Option<Name>> {
        crate::list(self.kernel.iter().map(|(name, _)| *name))
    }

    /// The description of a layer in the summary.
    pub(super) fn text(&self) -> String {
        let padding = match self.padding {
            Padding::Zeros(zeros) => zeros.to_string(),
            Padding::Same => "same".into(),
            Padding::Valid => String::new(),
        };
        let settings = [
            (self.stride != Extents::from(1), format!("stride={}", self.stride)),
            (self.padding != Padding::Valid, format!("padding={padding}")),
            (self.dilation != Extents::from(1), format!("dilation={}", self.dilation)),
            (self.groups != 1, format!("groups={}", self.groups)),
        ];
        with_settings(self.layer, &self.dims(), &settings)
    }

    /// An error for numbers that no input fits. Numbers by name come in the order of the kernel.
    fn check(&mut self) -> Result<()> {
        let (dims, names) = (self.kernel.len(), self.spatial());
        (self.stride, self.dilation) = steps(self.stride, self.dilation, &names)?;
        self.output_padding = self.output_padding.in_order("", "output_padding", &names, Some(0.into()))?;
        self.padding = self.padding.in_order("", &names)?;
        let stride = self.stride.over("", "stride", dims)?;
        for (name, numbers) in [("stride", &stride), ("dilation", &self.dilation.over("", "dilation", dims)?)]
        {
            if numbers.len() != dims || is_in(numbers, 0) {
                let message = format_args!("`{name}` must be at least 1, got {numbers:?}");
                return Err(fault(ErrorKind::Value, message).with_repair(format!(".{name}(1)")));
            }
        }
        match self.padding {
            Padding::Same if stride.iter().any(|stride| *stride != 1) => {
                let message = format_args!("padding of the same size needs a stride of 1, got {stride:?}");
                Err(fault(ErrorKind::Value, message).with_repair(".stride(1)"))
            }
            Padding::Zeros(zeros) => zeros.over("", "padding", dims).map(drop),
            _ => Ok(()),
        }
    }

    /// The output padding with which a transposed convolution makes `sizes`.
    fn lacking(&self, lengths: &[usize], sizes: Extents, slide: TransposedArguments) -> Result<Extents> {
        let dims = lengths.len();
        let numbers = |name, extents: Extents| extents.over("", name, dims);
        let wanted = numbers("output_size", sizes.without_batch(dims))?;
        let (stride, dilation) = (numbers("stride", slide.stride)?, numbers("dilation", slide.dilation)?);
        let padding = numbers("padding", slide.padding)?;
        let mut all = Vec::with_capacity(dims);
        for dim in 0..dims {
            let span = dilation[dim].saturating_mul(self.kernel[dim].1.saturating_sub(1)).saturating_add(1);
            let least = (lengths[dim].saturating_sub(1).saturating_mul(stride[dim]).saturating_add(span))
                .saturating_sub(padding[dim].saturating_mul(2));
            let most = least.saturating_add(stride[dim].saturating_sub(1));
            let given = wanted.get(dim).copied().unwrap_or(0);
            let Some(extra) = given.checked_sub(least).filter(|_| given <= most) else {
                let length = lengths[dim];
                let message = format_args!(
                    "a convolution takes the sizes {least} to {most} to a length of {length}, and `output_size` is {given}"
                );
                return Err(fault(ErrorKind::Value, message));
            };
            all.push(extra);
        }
        Ok(Extents::from(&all[..]))
    }
}

/// A layer without its number of dims.
#[derive(Clone, Debug, Module)]
#[module(crate = crate, part)]
pub(super) struct ConvBody {
    pub(super) settings: ConvolutionConfig,
    pub(super) weight: Parameter,
    pub(super) bias: Option<Parameter>,
    path: ModulePath,
}

impl ConvBody {
    pub(super) fn new(mut settings: ConvolutionConfig) -> Result<ConvBody> {
        settings.check()?;
        let ConvolutionConfig { layer, input, output, groups, bias, dtype, .. } = settings;
        if groups == 0 || !input.1.is_multiple_of(groups) || !output.1.is_multiple_of(groups) {
            let (input, output) = (input.1, output.1);
            let message =
                format!("{input} input and {output} output channels cannot be split into {groups} groups");
            return Err(fault(ErrorKind::Value, message).with_repair(".groups(1)"));
        }
        let fits = settings.kernel.iter().all(|(_, size)| *size > 0);
        fits.or_value("a kernel must have at least one element along each dim, got 0")?;
        let own = beside(input, &[output.0], "_in")?;
        let channels = match settings.transposed {
            true => [own, (output.0, output.1 / groups)],
            false => [output, (own.0, own.1 / groups)],
        };
        let dims = [&channels[..], &settings.kernel].concat();
        let fan = dims[1..].iter().fold(1, |fan: usize, (_, size)| fan.saturating_mul(*size));
        let bound = 1.0 / (fan.max(1) as f64).sqrt();
        let weight = uniform(layer, &dims, bound, dtype)?;
        let bias = if bias { Some(uniform(layer, &[output], bound, dtype)?) } else { None };
        Ok(ConvBody { settings, weight, bias, path: ModulePath::new() })
    }

    /// The output for `x`; that of a transposed convolution has these sizes, if they are given.
    #[track_caller]
    pub(super) fn forward(&self, x: &Tensor, sizes: Option<Extents>) -> Result<Tensor> {
        let ConvolutionConfig { layer, input, output, ref kernel, mode, padding, .. } = self.settings;
        let ConvolutionConfig { transposed, stride, dilation, groups, output_padding, .. } = self.settings;
        self.path.run(layer, &[x], &|_: &Running| {
            let (weight, bias) = (self.weight.try_tensor()?, read(&self.bias)?);
            let (bias, spatial) = (bias.as_deref(), self.settings.spatial());
            let wanted = Wanted { channel: input.0, spatial: &spatial, made: output.0, of_weight: false };
            let layout = ImageDims::find(x, wanted)?;
            let finder = Finder { layer, path: &self.path, dims: &|| self.settings.dims() };
            finder.check_size(x, layout.channel(), input)?;
            finder.check_dtype("the input", x, weight.dtype())?;
            let mut images = layout.apply(x)?;
            if !transposed {
                let mut padding = padding;
                if mode != PaddingMode::Zeros {
                    images = self.settings.padded(images)?;
                    padding = Padding::Valid;
                }
                return convolved(&layout, images, &weight, bias, (stride, padding, dilation, groups));
            }
            let padding = if let Padding::Zeros(zeros) = padding { zeros } else { Extents::from(0) };
            let mut slide = TransposedArguments { stride, padding, output_padding, dilation, groups };
            if let Some(sizes) = sizes {
                let lengths = &images.sizes()[images.ndim() - kernel.len()..];
                let sizes = sizes.in_order("", "output_size", &spatial, None)?;
                slide.output_padding = self.settings.lacking(lengths, sizes, slide)?;
            }
            layout.restore(transposed_images(images, &weight, kernel.len(), bias, slide)?)
        })
    }
}
