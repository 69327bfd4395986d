//! The parts of a convolution: the settings of a layer, with their checks and their text, and its
//! parameters.

use super::{ConvBuilder, ConvTransposeBuilder, Named, PaddingMode};
use namegrad_autograd::{Parameter, TensorOptions};
use namegrad_core::args::{Extents, Padding};
use namegrad_core::names::Name;
use namegrad_core::{DType, Error, ErrorKind, NewDim, Result, Shape};
use namegrad_macros::Setters;

/// The settings of a layer.
#[derive(Clone, Debug, Setters)]
#[setters(of(ConvBuilder, ConvTransposeBuilder), at = settings, fallible)]
pub(super) struct Settings<const N: usize> {
    #[setters(skip)]
    pub(super) input: Named,
    #[setters(skip)]
    pub(super) output: Named,
    #[setters(skip)]
    pub(super) kernel: [Named; N],
    /// The step from one place of the kernel to the next; the default is 1. One number for all dims
    /// or a list of one for each, as for all such options.
    #[setters(into)]
    pub(super) stride: Extents,
    #[setters(skip)]
    pub(super) padding: Padding,
    /// The distance between the elements under the kernel; the default is 1.
    #[setters(into)]
    pub(super) dilation: Extents,
    /// The number of groups into which the channels are split, each with its own part of the weight;
    /// the default is 1.
    pub(super) groups: usize,
    #[setters(skip)]
    pub(super) mode: PaddingMode,
}

impl<const N: usize> Settings<N> {
    /// The settings of `new`.
    #[track_caller]
    pub(super) fn new(
        op: &'static str,
        input: impl NewDim,
        output: impl NewDim,
        kernel: [impl NewDim; N],
    ) -> Result<Settings<N>> {
        const { assert!(N >= 1 && N <= 3, "a convolution is over one, two or three dims") };
        let of = |error: Error| error.of(op);
        let (input, output) = (input.into_new_dim().map_err(of)?, output.into_new_dim().map_err(of)?);
        let mut sizes = [(None, 0); N];
        for (to, size) in sizes.iter_mut().zip(kernel) {
            *to = size.into_new_dim().map_err(of)?;
        }
        let one = Extents::from(1);
        Ok(Settings {
            input,
            output,
            kernel: sizes,
            stride: one,
            padding: Padding::Valid,
            dilation: one,
            groups: 1,
            mode: PaddingMode::Zeros,
        })
    }

    /// The names of the dims that the kernel slides along.
    pub(super) fn spatial(&self) -> [Option<Name>; N] {
        self.kernel.map(|(name, _)| name)
    }

    /// `C=3 -> F=16, H=3, W=3`.
    pub(super) fn dims(&self) -> String {
        dims_text(self.input, self.output, &self.kernel)
    }

    /// The description of a layer in the summary.
    pub(super) fn text(&self, layer: &str) -> String {
        let mut text = format!("{layer}({}", self.dims());
        if self.stride != Extents::from(1) {
            text += &format!(", stride={}", self.stride);
        }
        match self.padding {
            Padding::Zeros(zeros) => text += &format!(", padding={zeros}"),
            Padding::Same => text += ", padding=same",
            Padding::Valid => {}
        }
        if self.dilation != Extents::from(1) {
            text += &format!(", dilation={}", self.dilation);
        }
        if self.groups != 1 {
            text += &format!(", groups={}", self.groups);
        }
        text + ")"
    }

    /// An error for numbers that no input fits.
    #[track_caller]
    pub(super) fn check(&self, op: &'static str) -> Result<()> {
        let refused = ErrorKind::Value;
        let stride = self.stride.over(op, "stride", N)?;
        for (name, numbers) in [("stride", &stride), ("dilation", &self.dilation.over(op, "dilation", N)?)] {
            if numbers.len() != N || numbers.contains(&0) {
                let message = format!("`{name}` must be at least 1, got {numbers:?}");
                return Err(Error::new(refused, op, message).with_repair(format!(".{name}(1)")));
            }
        }
        match self.padding {
            Padding::Same if stride.iter().any(|stride| *stride != 1) => {
                let message = format!("padding of the same size needs a stride of 1, got {stride:?}");
                Err(Error::new(refused, op, message).with_repair(".stride(1)"))
            }
            Padding::Zeros(zeros) => zeros.over(op, "padding", N).map(drop),
            _ => Ok(()),
        }
    }
}

fn dims_text(input: Named, output: Named, kernel: &[Named]) -> String {
    let dim = |(name, size): &Named| name.map_or(size.to_string(), |name| format!("{name}={size}"));
    let kernel: Vec<String> = kernel.iter().map(dim).collect();
    format!("{} -> {}, {}", dim(&input), dim(&output), kernel.join(", "))
}

/// The weight and the bias of a layer.
#[track_caller]
pub(super) fn parameters(
    op: &'static str,
    [input, output]: [Named; 2],
    kernel: &[Named],
    (groups, transposed, bias): (usize, bool, bool),
    dtype: DType,
) -> Result<(Parameter, Option<Parameter>)> {
    if !dtype.is_floating_point() {
        let message = format!("the parameters of a layer are floating-point, not {dtype}");
        return Err(Error::new(ErrorKind::DType, op, message).with_repair(".dtype(DType::F32)"));
    }
    if groups == 0 || !input.1.is_multiple_of(groups) || !output.1.is_multiple_of(groups) {
        let (input, output) = (input.1, output.1);
        let message =
            format!("{input} input and {output} output channels cannot be split into {groups} groups");
        return Err(Error::new(ErrorKind::Value, op, message).with_repair(".groups(1)"));
    }
    if let Some((_, size)) = kernel.iter().find(|(_, size)| *size == 0) {
        let message = format!("a kernel must have at least one element along each dim, got {size}");
        return Err(Error::new(ErrorKind::Value, op, message));
    }
    let own_name = match input.0 {
        Some(name) if input.0 == output.0 => Some(Name::new(&format!("{name}_in"))?),
        _ => input.0,
    };
    let channels = match transposed {
        true => [(own_name, input.1), (output.0, output.1 / groups)],
        false => [output, (own_name, input.1 / groups)],
    };
    let shape =
        Shape::new(channels.into_iter().chain(kernel.iter().copied())).map_err(|error| error.of(op))?;
    let fan: usize = shape.sizes.iter().skip(1).fold(1, |fan, size| fan.saturating_mul(*size));
    let bound = 1.0 / (fan.max(1) as f64).sqrt();
    let options = TensorOptions::new().dtype(dtype);
    let weight = options.clone().uniform(shape, -bound, bound).map_err(|error| error.of(op))?;
    let weight = Parameter::new(weight)?;
    let bias = match bias {
        true => {
            let bias = options.uniform(Shape::new([output])?, -bound, bound);
            Some(Parameter::new(bias.map_err(|error| error.of(op))?)?)
        }
        false => None,
    };
    Ok((weight, bias))
}
