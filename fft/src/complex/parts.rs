//! Complex tensors from real ones, and their parts.

use crate::common::*;
use crate::complex::arithmetic::{conjugated, masked, moved_back, with_pair_last};
use crate::pair::COMPLEX;

functional! { parts of complex;
    /// The complex numbers `re + i im`. `name` is the name of the new dim of (re, im) at the end, by default
    /// `complex` if one of the parts has names.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = complex::from_parts(&Tensor::ones([("N", 3)])?, &Tensor::zeros([("N", 3)])?)?;
    /// assert_eq!(z.shape().to_string(), "[N=3, complex=2]");
    /// # Ok::<(), Error>(())
    /// ```
    from_parts (re, im; name: NewName = None) names unifies => {
        let name = pair_name(re.has_names() || im.has_names(), name);
        let parts = Tensor::broadcast_tensors(&[re, im])?;
        Tensor::stack_with(&parts, -1, namegrad_autograd::options::StackOptions::new().name(name))
    }
    /// The complex numbers `x + 0i`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = complex::from_real(&Tensor::new([2.0])?)?;
    /// assert_eq!(z.to_vec::<f32>()?, [2.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    from_real (x; name: NewName = None) names keeps => {
        let name = pair_name(x.has_names(), name);
        Tensor::stack_with(&[x, &x.zeros_like()?], -1, namegrad_autograd::options::StackOptions::new().name(name))
    }
    /// The complex numbers with these absolute values and angles: `abs e^(i angle)`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = complex::polar(&Tensor::new([2.0])?, &Tensor::new([0.5])?)?;
    /// assert!(complex::angle(&z)?.allclose(&Tensor::new([0.5])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    polar (abs, angle; name: NewName = None) on floats names unifies => {
        let (re, im) = (abs.mul(angle.cos()?)?, abs.mul(angle.sin()?)?);
        from_parts_with(&re, &im, FromPartsOptions { name: given(name) })
    }
    /// The real parts.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::new([[1.0, 2.0], [3.0, 4.0]])?;
    /// assert_eq!(complex::real(&z)?.to_vec::<f32>()?, [1.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    real (x) names removes => x.select(pair_dim(op, x.value())?, 0);
    /// The imaginary parts.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::new([[1.0, 2.0], [3.0, 4.0]])?;
    /// assert_eq!(complex::imag(&z)?.to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    imag (x) names removes => x.select(pair_dim(op, x.value())?, 1);
    /// The conjugates, `re - i im`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::new([[1.0, 2.0]])?;
    /// assert_eq!(complex::conj(&z)?.to_vec::<f32>()?, [1.0, -2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    conj (x) on floats names keeps => {
        let (z, pair) = with_pair_last(op, x)?;
        moved_back(conjugated(&z)?, pair)
    }
    /// The absolute values, `√(re² + im²)`, without overflow. The gradient at 0 is 0.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::new([[3.0, 4.0]])?;
    /// assert_eq!(complex::abs(&z)?.to_vec::<f32>()?, [5.0]);
    /// # Ok::<(), Error>(())
    /// ```
    abs (x) on floats names removes => {
        let (z, _) = with_pair_last(op, x)?;
        let value = z.value().select(-1, 0)?.hypot(&z.value().select(-1, 1)?)?;
        let kept = [Kept::input(&z), Kept::output(&value)];
        let op = Op::new(op, value).input(&z, move |g, cx| {
            let [z, y] = [kept[0].get(cx), kept[1].get(cx)];
            g.unsqueeze(-1).mul(unit(&z, &y)?)
        });
        Ok(op.output())
    }
    /// The angles in radians, from `-π` to `π`. The gradient at 0 is 0.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::new([[0.0, 2.0], [-1.0, 0.0]])?;
    /// let angles = complex::angle(&z)?;
    /// assert!(angles.allclose(&Tensor::new([0.5 * std::f64::consts::PI, std::f64::consts::PI])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    angle (x) on floats names removes => {
        let (z, _) = with_pair_last(op, x)?;
        let value = z.value().select(-1, 1)?.atan2(&z.value().select(-1, 0)?)?;
        let kept = Kept::input(&z);
        let op = Op::new(op, value).input(&z, move |g, cx| {
            let z = kept.get(cx);
            // i z / |z|²
            let turned = Tensor::stack(&[&z.select(-1, 1)?.neg()?, &z.select(-1, 0)?], -1)?;
            let size = abs(&z)?;
            let unit = unit(&turned, &size)?;
            masked(&unit.div(size.unsqueeze(-1)?)?, &size.eq(0.0).unsqueeze(-1)?).mul(g.unsqueeze(-1)?)
        });
        Ok(op.output())
    }
    /// The numbers on the unit circle in the same direction, `z / |z|`, and 0 for 0.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::new([[3.0, 4.0], [0.0, 0.0]])?;
    /// assert!(complex::sgn(&z)?.allclose(&Tensor::new([[0.6, 0.8], [0.0, 0.0]])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    sgn (x) on floats names keeps => {
        let (z, pair) = with_pair_last(op, x)?;
        let z_unnamed = z.rename(None)?;
        let y = unit(&z_unnamed, &abs(&z_unnamed)?)?;
        let y = if z.has_names() { y.rename(Some(z.names().clone()))? } else { y };
        moved_back(y, pair)
    }
}

/// `z / |z|`, and 0 for 0; `y` is `|z|`, and the pairs are the last dim.
fn unit(z: &Tensor, y: &Tensor) -> Result<Tensor> {
    let zero = y.eq(0.0)?;
    let size = zero.choose(1.0, y)?;
    masked(&z.div(size.unsqueeze(-1)?)?, &zero.unsqueeze(-1)?)
}

/// The name of a new dim of (re, im).
fn pair_name(has_names: bool, name: Option<Name>) -> NewName {
    if has_names && name.is_none() { NewName::from(COMPLEX) } else { given(name) }
}

fn given(name: Option<Name>) -> NewName {
    name.map_or(NewName::None, NewName::from)
}
