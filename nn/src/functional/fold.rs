//! Images as matrices of their windows, and back.

use super::*;

functional! { fold;
    /// The windows of images, each as a column; the arguments are in PyTorch's order:
    /// `y[n, (c, i, j), (h, w)] = x[n, c, stride h + dilation i - padding, stride w + dilation j - padding]`,
    /// with zeros outside of the image.
    ///
    /// # Shapes
    /// - `x`: `[N, C, H, W]`, or `[C, H, W]` without a batch
    /// - result: `[N, C · kernel height · kernel width, windows]`, with the name of `N`
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]])?;
    /// let windows = F::unfold(&x, 2, 1, 0, 1)?;
    /// assert_eq!(windows.sizes(), [4, 2]);
    /// assert_eq!(windows.to_vec::<f32>()?, [1.0, 2.0, 2.0, 3.0, 4.0, 5.0, 5.0, 6.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if no window fits, [`ErrorKind::Value`] for a size, stride or dilation of 0,
    /// [`ErrorKind::Misaligned`] if one of the last two dims has a name of channels.
    unfold (x; kernel_size: Extents, dilation: Extents or 1, padding: Extents or 0, stride: Extents or 1)
        names removes => {
        ensure_dims((3..=4).contains(&x.ndim()), "images [N, C, H, W] or [C, H, W]", x)?;
        let (batch, own) = x.sizes().split_at(x.ndim() - 3);
        let (channels, image) = (own[0], [own[1], own[2]]);
        check_last(2, x)?;
        let names = [x.name(x.ndim() - 2), x.name(x.ndim() - 1)];
        let grid = WindowGrid::new(image, names, [kernel_size, dilation, padding, stride])?;
        let planes = numel(batch) * channels;
        let around = |dim: usize| [grid.padding[dim] as isize; 2];
        let images = x.rename(None).reshape([planes, image[0], image[1]])?;
        let padded = with_constant(&images, &[(1, around(0)), (2, around(1))], 0.into())?;
        let columns = padded.reshape([planes, numel(&grid.padded)]).index_select(grid.places()?, 1)?;
        let sizes = [batch, &[channels * numel(&grid.kernel), numel(&grid.count)]].concat();
        named(columns.reshape(sizes)?, x, batch, [None; 2])
    }
    /// The images whose windows have these columns; where windows overlap, their sum. The opposite of
    /// [`unfold`] if they do not.
    ///
    /// # Shapes
    /// - `x`: `[N, C · kernel height · kernel width, windows]`, or without a batch
    /// - result: `[N, C, H, W]`, with `H` and `W` from `output_size`, with their names if it is given by name,
    ///   and the name of `N`
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]])?;
    /// let sums = F::fold(&F::unfold(&x, 2, 1, 0, 1)?, [2, 3], 2, 1, 0, 1)?;
    /// assert_eq!(sums.to_vec::<f32>()?, [1.0, 4.0, 3.0, 4.0, 10.0, 6.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`unfold`], and [`ErrorKind::Shape`] if there are other numbers of windows or elements.
    fold (
        x; output_size: Extents, kernel_size: Extents, dilation: Extents or 1, padding: Extents or 0,
        stride: Extents or 1
    ) on floats integers names removes => {
        ensure_dtype(x.dtype() != DType::Bool, NOT_BOOL, ("x", DType::U8))?;
        let names = output_size.names(2);
        let image = output_size.in_order("", "output_size", &names, None)?.over("", "output_size", 2)?;
        let [height, width] = image[..] else { return Err(value_error("`output_size` must be two numbers, got none")) };
        let grid = WindowGrid::new([height, width], [names[0], names[1]], [kernel_size, dilation, padding, stride])?;
        ensure_dims((2..=3).contains(&x.ndim()), "columns [N, elements, windows]", x)?;
        let (batch, columns) = x.sizes().split_at(x.ndim() - 2);
        let (rows, windows) = (columns[0], columns[1]);
        let (count, taps) = (numel(&grid.count), numel(&grid.kernel));
        (windows == count && rows.is_multiple_of(taps))
            .or_shape(format_args!(
                "an image of sizes {image:?} has {count} windows of {taps} elements for each channel, but `x` has {windows} columns of {rows}"
            ))?;
        let (channels, planes) = (rows / taps, numel(batch) * (rows / taps));
        let columns = x.rename(None).reshape([planes, taps * windows])?;
        let zeros = x.new_zeros([planes, numel(&grid.padded)])?;
        let sums =
            zeros.index_add(grid.places()?, columns, 1).reshape([planes, grid.padded[0], grid.padded[1]])?;
        let sums = sums.narrow(1, grid.padding[0], height).narrow(2, grid.padding[1], width)?;
        named(sums.reshape([batch, &[channels, height, width]].concat())?, x, batch, [names[0], names[1]])
    }
}

/// `y` with the name of the first dim of `x`, if that is a batch, and these names at the end.
fn named(y: Tensor, x: &Tensor, batch: &[usize], last: [Option<Name>; 2]) -> Result<Tensor> {
    let mut names = names_at(x, &range(0..batch.len()));
    names.resize(y.ndim() - 2, None);
    names.extend(last);
    with_names(y, &Names::new("", names)?)
}

/// The positions of windows on an image.
struct WindowGrid {
    kernel: [usize; 2],
    dilation: [usize; 2],
    padding: [usize; 2],
    stride: [usize; 2],
    /// The sizes of the image with its padding.
    padded: [usize; 2],
    /// The windows in each direction.
    count: [usize; 2],
}

impl WindowGrid {
    fn new(image: [usize; 2], dims: [Option<Name>; 2], extents: [Extents; 4]) -> Result<WindowGrid> {
        let names = [("kernel_size", None), ("dilation", Some(1)), ("padding", Some(0)), ("stride", Some(1))];
        let mut all = [[0; 2]; 4];
        for (at, (name, or)) in names.into_iter().enumerate() {
            let numbers = extents[at].in_order("", name, &dims, or.map(Extents::from))?.over("", name, 2)?;
            (numbers.len() == 2 && (name == "padding" || !numbers.contains(&0)))
                .or_value(format_args!("`{name}` must be at least 1, got {numbers:?}"))?;
            all[at].copy_from_slice(&numbers);
        }
        let [kernel, dilation, padding, stride] = all;
        let (mut padded, mut count) = ([0; 2], [0; 2]);
        for dim in 0..2 {
            let span = dilation[dim].saturating_mul(kernel[dim] - 1).saturating_add(1);
            let room = padding[dim].checked_mul(2).and_then(|more| image[dim].checked_add(more));
            let Some(room) = room.filter(|room| *room >= span) else {
                return Err(shape_error(format_args!(
                    "a window over {span} elements does not fit into a size of {} and padding {}",
                    image[dim], padding[dim]
                )));
            };
            (padded[dim], count[dim]) = (room, (room - span) / stride[dim] + 1);
        }
        let fits = padded[0].checked_mul(padded[1]).is_some_and(|volume| volume <= isize::MAX as usize);
        ensure_memory(fits, format_args!("an image of sizes {padded:?}"))?;
        Ok(WindowGrid { kernel, dilation, padding, stride, padded, count })
    }

    /// The position in the padded image of each element of each window.
    fn places(&self) -> Result<Tensor> {
        let (taps, windows) = (numel(&self.kernel), numel(&self.count));
        NamedTensor::check_room("", taps.saturating_mul(windows), size_of::<i64>())?;
        let mut places = Vec::with_capacity(taps * windows);
        for tap in 0..taps {
            let (i, j) = (tap / self.kernel[1], tap % self.kernel[1]);
            for window in 0..windows {
                let (h, w) = (window / self.count[1], window % self.count[1]);
                let row = h * self.stride[0] + i * self.dilation[0];
                places.push((row * self.padded[1] + j * self.dilation[1] + w * self.stride[1]) as i64);
            }
        }
        tensor_of(&places, &[taps * windows])
    }
}
