//! Complex tensors as text.

use crate::common::*;
use std::fmt;

/// A complex tensor as text: see [`display`].
#[derive(Clone, Debug)]
pub struct Text {
    sizes: Vec<usize>,
    /// (re, im) of each number.
    numbers: Vec<f64>,
}

/// A complex tensor as text, with its numbers as `1.5-2i`.
///
/// ```
/// use namegrad::complex;
/// use namegrad::prelude::*;
/// let z = Tensor::new([[[1.0, 2.0], [3.0, -0.5]]])?;
/// assert_eq!(complex::display(&z)?.to_string(), "[[1+2i, 3-0.5i]]");
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] unless the tensor is complex.
#[track_caller]
pub fn display(x: &Tensor) -> Result<Text> {
    let z = x.value().rename(None)?.movedim(pair_dim("display", x.value())?, -1)?;
    let sizes = z.sizes()[..z.ndim() - 1].to_vec();
    // The digits of a number are those of its dtype.
    let numbers = match z.dtype() {
        DType::F64 => z.contiguous()?.to_vec::<f64>()?,
        _ => {
            let short = z.to(DType::F32)?.contiguous()?.to_vec::<f32>()?;
            short.iter().map(|x| x.to_string().parse().unwrap_or(f64::NAN)).collect()
        }
    };
    Ok(Text { sizes, numbers })
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count: usize = self.sizes.iter().product();
        if count == 0 {
            return write!(f, "[]");
        }
        for at in 0..count {
            // A bracket for each dim that starts here, and one for each that ends.
            let mut run = 1;
            let mut edges = 0;
            for size in self.sizes.iter().rev() {
                run *= size;
                edges += usize::from(at % run == 0);
            }
            write!(f, "{}", "[".repeat(edges))?;
            let (re, im) = (self.numbers[2 * at], self.numbers[2 * at + 1]);
            write!(f, "{re}{im:+}i")?;
            let (mut run, mut edges) = (1, 0);
            for size in self.sizes.iter().rev() {
                run *= size;
                edges += usize::from((at + 1) % run == 0);
            }
            write!(f, "{}", "]".repeat(edges))?;
            if at + 1 < count {
                write!(f, ", ")?;
            }
        }
        Ok(())
    }
}
