//! Complex matrices as pairs of real ones.

use crate::common::*;

/// The real and the imaginary part.
pub(crate) struct Complex {
    pub(crate) re: Tensor,
    pub(crate) im: Tensor,
}

impl Complex {
    /// The parts along a last dim of size 2.
    pub(crate) fn of(x: &Tensor) -> Result<Complex> {
        Ok(Complex { re: x.select(-1, 0)?, im: x.select(-1, 1)? })
    }

    pub(crate) fn of_values(re: NamedTensor, im: NamedTensor) -> Complex {
        Complex { re: Tensor::constant(re), im: Tensor::constant(im) }
    }

    /// Both parts along a new last dim.
    pub(crate) fn joined(&self) -> Result<Tensor> {
        Tensor::stack(&[&self.re, &self.im], -1)
    }

    /// The transpose, conjugated.
    pub(crate) fn adjoint(&self) -> Result<Complex> {
        Ok(Complex { re: self.re.mt()?, im: self.im.mt()?.neg()? })
    }

    pub(crate) fn matmul(&self, other: &Complex) -> Result<Complex> {
        Ok(Complex {
            re: self.re.matmul(&other.re)?.sub(&self.im.matmul(&other.im)?)?,
            im: self.re.matmul(&other.im)?.add(&self.im.matmul(&other.re)?)?,
        })
    }

    /// The quotient of elements.
    pub(crate) fn div(&self, other: &Complex) -> Result<Complex> {
        let square = other.re.square().add(other.im.square()?)?;
        Ok(Complex {
            re: self.re.mul(&other.re)?.add(self.im.mul(&other.im)?)?.div(&square)?,
            im: self.im.mul(&other.re)?.sub(self.re.mul(&other.im)?)?.div(&square)?,
        })
    }

    /// The solution `x` of `self x = b`, as that of a real system of twice the size.
    pub(crate) fn solve(&self, b: &Complex) -> Result<Complex> {
        let n = self.re.sizes()[self.re.ndim() - 1];
        let above = Tensor::cat(&[&self.re, &self.im.neg()?], -1)?;
        let below = Tensor::cat(&[&self.im, &self.re], -1)?;
        let a = Tensor::cat(&[&above, &below], -2)?;
        let (x, _) = crate::solve::solution(&a, &Tensor::cat(&[&b.re, &b.im], -2)?)?;
        Ok(Complex { re: x.narrow(-2, 0, n)?, im: x.narrow(-2, n, n)? })
    }
}
