//! Sizes and strides: lists of each, and [`Layout`], both together, so small that moving a tensor takes only
//! a few instructions.

use crate::short::Short;

/// The sizes of a tensor, outermost first; up to six are stored inline.
pub type Sizes = Short<usize, 6>;

/// The distance in elements between neighbors along each dim; may be negative or zero.
pub(crate) type Strides = Short<isize, 6>;

/// The number of dims that are stored inline.
const FEW: usize = 4;

/// The sizes and strides of a tensor.
pub(crate) enum Layout {
    Few { ndim: Few, sizes: [usize; FEW], strides: [isize; FEW] },
    Many(Many),
}

/// A number of dims that are stored inline.
///
/// It takes a whole word, as does the tag of [`Layout`] in it, and of a result of an op: a word of which a
/// part was written alone cannot be read before the write has reached the cache, and tensors are moved often.
#[derive(Clone, Copy, PartialEq)]
#[repr(u64)]
pub(crate) enum Few {
    Zero = 0,
    One = 1,
    Two = 2,
    Three = 3,
    Four = 4,
}

impl Few {
    /// The number, if it is not too large.
    #[inline]
    fn new(ndim: usize) -> Option<Few> {
        Some(match ndim {
            0 => Few::Zero,
            1 => Few::One,
            2 => Few::Two,
            3 => Few::Three,
            4 => Few::Four,
            _ => return None,
        })
    }
}

/// Two lists behind one pointer, so that the rare case does not make the common case larger.
type Many = Box<(Box<[usize]>, Box<[isize]>)>;

/// Tensors are cloned everywhere, so only the common case is inlined.
impl Clone for Layout {
    #[inline]
    fn clone(&self) -> Layout {
        match self {
            Layout::Few { ndim, sizes, strides } => {
                Layout::Few { ndim: *ndim, sizes: *sizes, strides: *strides }
            }
            Layout::Many(both) => Layout::Many(copied(both)),
        }
    }
}

#[cold]
fn copied(both: &Many) -> Many {
    both.clone()
}

impl Layout {
    /// A layout with a size and a stride for each dim.
    #[inline]
    pub(crate) fn new(sizes: &[usize], strides: &[isize]) -> Layout {
        debug_assert_eq!(sizes.len(), strides.len());
        let Some(ndim) = Few::new(sizes.len()) else {
            return Layout::Many(Box::new((sizes.into(), strides.into())));
        };
        let mut few = ([0; FEW], [0; FEW]);
        few.0[..sizes.len()].copy_from_slice(sizes);
        few.1[..sizes.len()].copy_from_slice(strides);
        Layout::Few { ndim, sizes: few.0, strides: few.1 }
    }

    /// Row-major order without gaps.
    #[inline]
    pub(crate) fn contiguous(sizes: &[usize]) -> Layout {
        let step = |size: usize| size.max(1) as isize;
        // Each case stays in registers. A loop would store values that the copy of the tensor immediately
        // loads again, and stall.
        let (ndim, few, strides) = match *sizes {
            [] => (Few::Zero, [0; FEW], [0; FEW]),
            [a] => (Few::One, [a, 0, 0, 0], [1, 0, 0, 0]),
            [a, b] => (Few::Two, [a, b, 0, 0], [step(b), 1, 0, 0]),
            [a, b, c] => (Few::Three, [a, b, c, 0], [step(b).wrapping_mul(step(c)), step(c), 1, 0]),
            [a, b, c, d] => {
                let inner = step(c).wrapping_mul(step(d));
                (Few::Four, [a, b, c, d], [step(b).wrapping_mul(inner), inner, step(d), 1])
            }
            _ => {
                let mut strides = Strides::from_elem(1, sizes.len());
                fill_strides(sizes, &mut strides);
                return Layout::new(sizes, &strides);
            }
        };
        Layout::Few { ndim, sizes: few, strides }
    }

    #[inline]
    pub(crate) fn sizes(&self) -> &[usize] {
        match self {
            Layout::Few { ndim, sizes, .. } => &sizes[..*ndim as usize],
            Layout::Many(both) => &both.0,
        }
    }

    /// Whether the sizes equal those of `other`. With many dims, `false` means nothing.
    #[inline]
    pub(crate) fn has_sizes_of(&self, other: &Layout) -> bool {
        match (self, other) {
            // Missing dims have size 0, so all sizes are compared at once.
            (Layout::Few { ndim: m, sizes: a, .. }, Layout::Few { ndim: n, sizes: b, .. }) => {
                m == n && a == b
            }
            _ => false,
        }
    }

    #[inline]
    pub(crate) fn strides(&self) -> &[isize] {
        match self {
            Layout::Few { ndim, strides, .. } => &strides[..*ndim as usize],
            Layout::Many(both) => &both.1,
        }
    }
}

/// The strides of a dense tensor whose last dim is innermost.
#[inline]
pub(crate) fn fill_strides(sizes: &[usize], strides: &mut [isize]) {
    let mut step = 1isize;
    for (stride, size) in strides.iter_mut().zip(sizes).rev() {
        *stride = step;
        step = step.wrapping_mul((*size).max(1) as isize);
    }
}

/// The strides of a dense tensor whose last dim is innermost.
#[inline(never)]
pub(crate) fn contiguous_strides(sizes: &[usize]) -> Strides {
    let mut strides: Strides = Short::from_elem(1, sizes.len());
    fill_strides(sizes, &mut strides);
    strides
}

/// `[outer, n, inner]` around `dim`; a 0-d tensor counts as having one dim of size one.
#[inline(never)]
pub(crate) fn around(sizes: &[usize], dim: usize) -> [usize; 3] {
    let inner = product(sizes.get(dim + 1..).unwrap_or_default());
    [product(&sizes[..dim]), sizes.get(dim).copied().unwrap_or(1), inner]
}

/// The number of elements with these sizes. A call, since the compiler makes vectors of the loop, which one or
/// two dims do not reach.
#[inline(never)]
pub(crate) fn product(sizes: &[usize]) -> usize {
    match sizes {
        [] => 1,
        [n] => *n,
        [n, m] => n * m,
        _ => sizes.iter().product(),
    }
}

/// Whether a list has a number: a call, as [`product`] is.
#[inline(never)]
pub(crate) fn has(numbers: &[usize], number: usize) -> bool {
    numbers.contains(&number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_dims_look_the_same() {
        for ndim in 0..8 {
            let sizes: Vec<usize> = (2..ndim + 2).collect();
            let layout = Layout::contiguous(&sizes);
            assert_eq!(layout.sizes(), sizes);
            let strides: Vec<isize> =
                (0..ndim).map(|dim| sizes[dim + 1..].iter().product::<usize>() as isize).collect();
            assert_eq!(layout.strides(), strides);
            assert_eq!(Layout::new(&sizes, &strides).clone().strides(), strides);
        }
    }
}
