//! The windows along a dim, each described by its first element and its length.

/// The positions of windows along a dim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowPositions {
    /// The elements of the dim.
    pub(crate) length: usize,
    /// The number of windows.
    pub(crate) count: usize,
    /// `None` if the windows share the elements.
    pub(crate) sliding: Option<Sliding>,
}

/// Windows of one size, at regular steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sliding {
    pub(crate) size: usize,
    pub(crate) stride: usize,
    pub(crate) padding: usize,
    pub(crate) dilation: usize,
    pub(crate) padding_counts: bool,
}

impl WindowPositions {
    /// The windows.
    pub(crate) fn along(self) -> DimWindows {
        let spans = (0..self.count).map(|i| match self.sliding {
            Some(sliding) => sliding.span(i, self.length),
            None => {
                let first = i * self.length / self.count;
                let count = ((i + 1) * self.length).div_ceil(self.count) - first;
                WindowSpan { first, count, divisor: count }
            }
        });
        DimWindows {
            length: self.length,
            step: self.sliding.map_or(1, |sliding| sliding.dilation),
            spans: crate::callback::list(spans),
        }
    }
}

impl Sliding {
    /// Window `i` over a dim of `length` elements.
    fn span(self, i: usize, length: usize) -> WindowSpan {
        let Sliding { size, stride, padding, dilation, padding_counts } = self;
        let start = i * stride; // counted from the start of the padding
        let before = padding.saturating_sub(start).div_ceil(dilation).min(size);
        let first = (start + before * dilation).saturating_sub(padding).min(length);
        let count = (length - first).div_ceil(dilation).min(size - before);
        let divisor = if padding_counts { size.min(length + 2 * padding - start) } else { count };
        WindowSpan { first, count, divisor }
    }
}

/// The windows along a dim.
#[derive(Clone, Debug)]
pub(crate) struct DimWindows {
    /// The elements of the dim.
    pub(crate) length: usize,
    /// The distance between the elements of a window.
    pub(crate) step: usize,
    pub(crate) spans: Vec<WindowSpan>,
}

/// A window along a dim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowSpan {
    /// The first element.
    pub(crate) first: usize,
    /// The number of its elements.
    pub(crate) count: usize,
    /// The divisor of a mean.
    pub(crate) divisor: usize,
}

impl DimWindows {
    /// A dim with one element, which is its only window.
    pub(crate) fn one() -> DimWindows {
        WindowPositions { length: 1, count: 1, sliding: None }.along()
    }

    /// Windows of one size that start at these elements.
    pub(crate) fn at(length: usize, size: usize, starts: Vec<usize>) -> DimWindows {
        let span = |first| WindowSpan { first, count: size, divisor: size };
        DimWindows { length, step: 1, spans: crate::callback::list(starts.into_iter().map(span)) }
    }
}
