//! Eigenvalues and eigenvectors.

use crate::common::*;
use crate::complex::Complex;

methods! { eigen;
    //! Eigenvalues and eigenvectors.
    //!
    //! `dim` is the dims of the rows and of the columns, such as `["row", "col"]`; `..` means the last two.
    //! All other dims are batch dims. A complex number is two elements along a last dim of size 2: its real
    //! and its imaginary part.

    /// The eigenvalues of symmetric matrices, from the smallest, and the eigenvectors: `x = v diag(values)
    /// vᵀ`. Only the lower triangle of `x` is read, or the upper one with
    /// [`Upper`](namegrad_core::Triangle::Upper).
    ///
    /// The gradient of the eigenvectors divides by the differences of the eigenvalues: where two are equal,
    /// it is infinite or NaN. That of the eigenvalues alone is finite.
    ///
    /// # Shapes
    /// - `x`: `[.., n, n]`
    /// - `values`: `[.., n]`, along a dim called `name`
    /// - `vectors`: `[.., n, n]`, with an eigenvector in each column: the rows have the name of the rows of
    ///   `x`, the columns are called `name`
    ///
    /// # Errors
    /// [`Value`](namegrad_core::ErrorKind::Value) for elements that are infinite or NaN.
    ///
    /// # Source
    /// Golub, Van Loan, *Matrix Computations* (4th edition, 2013), chapter 8; the gradient: Giles, *An Extended
    /// Collection of Matrix Derivative Results* (2008), section 3.1.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[2.0, 1.0], [1.0, 2.0]])?.refine_names(["coord", "other"])?;
    /// let (values, vectors) = x.eigh_with(["coord", "other"], EighOptions::new().name("mode"))?;
    /// assert_eq!(vectors.shape().to_string(), "[coord=2, mode=2]");
    /// assert!(values.allclose(&Tensor::new([1.0, 3.0])?.refine_names(["mode"])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    eigh (x; dim: Matrix or .., uplo: Triangle = Triangle::Lower, name: NewName = None) -> (values, vectors) on floats names removes
        => {
        let of = Matrices::square(x, dim)?;
        of.check_finite()?;
        let ([values, vectors], infos) = symmetric(&lower(&of.x, uplo)?)?;
        of.check(&infos, unfinished)?;
        Ok((of.vectors(values, name)?, of.matrices(vectors, [of.names[0], name])?))
    }
    /// The eigenvalues of [`eigh`](Self::eigh), without the eigenvectors.
    eigvalsh (x; dim: Matrix or .., uplo: Triangle = Triangle::Lower, name: NewName = None) on floats names removes => {
        let of = Matrices::square(x, dim)?;
        of.check_finite()?;
        let (values, infos) = symmetric_values(&lower(&of.x, uplo)?)?;
        of.check(&infos, unfinished)?;
        of.vectors(values, name)
    }
    /// The eigenvalues of square matrices, which may be complex, and the eigenvectors: `x v = v
    /// diag(values)`. Each eigenvector has length 1. The order of the eigenvalues is not specified.
    ///
    /// The gradient divides by the differences of the eigenvalues: where two are equal, it is infinite or
    /// NaN. An eigenvector times a number of length 1 is one as well, so a loss must not depend on that number.
    ///
    /// # Shapes
    /// - `x`: `[.., n, n]`
    /// - `values`: `[.., n, 2]`, along a dim called `name`, and the real and imaginary part
    /// - `vectors`: `[.., n, n, 2]`, with an eigenvector in each column, and the real and imaginary part
    ///
    /// # Errors
    /// [`Value`](namegrad_core::ErrorKind::Value) for elements that are infinite or NaN.
    ///
    /// # Source
    /// Golub, Van Loan, *Matrix Computations* (4th edition, 2013), chapter 7; the gradient: Boeddeker et al.,
    /// *On the Computation of Complex-valued Gradients with Application to Statistically Optimum Beamforming*
    /// (2017), equation 4.77.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let turn = Tensor::new([[0.0, -1.0], [1.0, 0.0]])?; // by a right angle: the eigenvalues are i and -i
    /// let (values, _) = turn.eig(..)?;
    /// assert!(values.select(-1, 0)?.allclose(&Tensor::zeros([2])?)?);
    /// assert!(values.select(-1, 1)?.abs()?.allclose(&Tensor::ones([2])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    eig (x; dim: Matrix or .., name: NewName = None) -> (values, vectors) on floats names removes => {
        let of = Matrices::square(x, dim)?;
        of.check_finite()?;
        let ([values, vectors], infos) = general(&of.x)?;
        of.check(&infos, unfinished)?;
        let names = of.batch.iter().copied();
        Ok((
            named(values, names.clone().chain([name, None]).collect())?,
            named(vectors, names.chain([of.names[0], name, None]).collect())?,
        ))
    }
    /// The eigenvalues of [`eig`](Self::eig), without the eigenvectors.
    eigvals (x; dim: Matrix or .., name: NewName = None) on floats names removes => {
        let of = Matrices::square(x, dim)?;
        of.check_finite()?;
        let (values, infos) = match of.x.is_followed() {
            true => {
                let ([values, _], infos) = general(&of.x)?;
                (values, infos)
            }
            false => {
                let ([re, im], _, infos) = values::general(of.x.value(), false)?;
                (Complex::of_values(re, im).joined()?, infos)
            }
        };
        of.check(&infos, unfinished)?;
        named(values, of.batch.iter().copied().chain([name, None]).collect())
    }
}

/// Matrices whose lower triangle is the one that is read.
fn lower(x: &Tensor, triangle: Triangle) -> Result<Tensor> {
    if triangle == Triangle::Lower { Ok(x.clone()) } else { x.mt() }
}

fn unfinished(_: i32) -> String {
    "has eigenvalues that the algorithm did not find".into()
}

/// The eigenvalues and eigenvectors of a tensor without names.
pub(crate) fn symmetric(x: &Tensor) -> Result<([Tensor; 2], Vec<i32>)> {
    let (values, vectors, infos) = values::symmetric(x.value(), true)?;
    let Some(vectors) = vectors else { unreachable!("they were wanted") };
    let kept = [Kept::output_at(0, &values), Kept::output_at(1, &vectors)];
    let made = Op::with_outputs("eigh", vec![values, vectors]).inputs(&[Some(x)], move |gs, cx| {
        let [values, v] = [kept[0].get(cx), kept[1].get(cx)];
        let g_values = cx.output_gradient(0)?;
        if gs[1].is_none() {
            return Ok(vec![Some(v.mul(g_values.unsqueeze(-2)?).matmul(v.mt()?)?)]);
        }
        let turned = v.mt().matmul(cx.output_gradient(1)?)?;
        let gaps = values.unsqueeze(-2).sub(values.unsqueeze(-1)?)?;
        let inner = with_diagonal(&turned, &gaps, &g_values)?;
        Ok(vec![Some(v.matmul(&inner).matmul(v.mt()?)?)])
    });
    let Ok(made) = <[Tensor; 2]>::try_from(made) else { unreachable!("two outputs") };
    Ok((made, infos))
}

/// The eigenvalues alone.
pub(crate) fn symmetric_values(x: &Tensor) -> Result<(Tensor, Vec<i32>)> {
    if x.is_followed() {
        let ([values, _], infos) = symmetric(x)?;
        return Ok((values, infos));
    }
    let (values, _, infos) = values::symmetric(x.value(), false)?;
    Ok((Tensor::constant(values), infos))
}

/// `x / gaps` beside the diagonal, and `diagonal` on it.
fn with_diagonal(x: &Tensor, gaps: &Tensor, diagonal: &Tensor) -> Result<Tensor> {
    let n = x.sizes()[x.ndim() - 1];
    let one = TensorOptions::new().dtype(x.dtype()).eye(n, n)?;
    let is_diagonal = one.eq(1.0)?;
    let beside = x.div(gaps.masked_fill(&is_diagonal, 1.0)?)?.masked_fill(&is_diagonal, 0.0)?;
    beside.add(one.mul(diagonal.unsqueeze(-1)?)?)
}

/// The eigenvalues and eigenvectors of a tensor without names, with real and imaginary parts in a last dim.
fn general(x: &Tensor) -> Result<([Tensor; 2], Vec<i32>)> {
    let (values, vectors, infos) = values::general(x.value(), true)?;
    let Some(vectors) = vectors else { unreachable!("they were wanted") };
    let values = values.map(Tensor::constant);
    let vectors = eigenvectors(&Tensor::constant(vectors), &values[1])?;
    let [re, im] = values;
    let values = Complex { re, im }.joined()?.into_value();
    let vectors = vectors.joined()?.into_value();
    let kept = [Kept::output_at(0, &values), Kept::output_at(1, &vectors)];
    let made = Op::with_outputs("eig", vec![values, vectors]).inputs(&[Some(x)], move |_, cx| {
        let [values, v] = [Complex::of(&kept[0].get(cx))?, Complex::of(&kept[1].get(cx))?];
        let [g_values, g] = [Complex::of(&cx.output_gradient(0)?)?, Complex::of(&cx.output_gradient(1)?)?];
        let adjoint = v.adjoint()?;
        let turned = adjoint.matmul(&g)?;
        // Along the vectors themselves, whose length is fixed.
        let along = turned.re.diagonal(-2, -1)?.unsqueeze(-2)?;
        let own = adjoint.matmul(&v)?;
        let turned =
            Complex { re: turned.re.sub(own.re.mul(&along)?)?, im: turned.im.sub(own.im.mul(&along)?)? };
        let gap = |x: &Tensor| x.unsqueeze(-2).sub(x.unsqueeze(-1)?);
        let n = turned.re.sizes()[turned.re.ndim() - 1];
        let one = TensorOptions::new().dtype(turned.re.dtype()).eye(n, n)?;
        let is_diagonal = one.eq(1.0)?;
        let gaps = Complex {
            re: gap(&values.re)?.masked_fill(&is_diagonal, 1.0)?,
            im: gap(&values.im)?.masked_fill(&is_diagonal, 0.0)?.neg()?,
        };
        let beside = turned.div(&gaps)?;
        let on = |x: &Tensor, g: &Tensor| x.masked_fill(&is_diagonal, 0.0).add(one.mul(g.unsqueeze(-1)?)?);
        let inner = Complex { re: on(&beside.re, &g_values.re)?, im: on(&beside.im, &g_values.im)? };
        Ok(vec![Some(adjoint.solve(&inner.matmul(&adjoint)?)?.re)])
    });
    let Ok(made) = <[Tensor; 2]>::try_from(made) else { unreachable!("two outputs") };
    Ok((made, infos))
}

/// The eigenvectors of length 1 in the columns of a complex matrix. Those of a pair of complex eigenvalues
/// are the real and the imaginary part of the first one, beside each other.
fn eigenvectors(columns: &Tensor, im: &Tensor) -> Result<Complex> {
    let n = im.sizes()[im.ndim() - 1];
    // The first of a pair has the column after it as imaginary part; the second is the conjugate.
    let parts = values::numbers_or(im.to(DType::F64)?.value(), 0.0)?;
    let (mut of_re, mut of_im, mut signs) = (Vec::new(), Vec::new(), Vec::new());
    for row in parts.chunks(n.max(1)) {
        let mut k = 0;
        while k < row.len() {
            if row[k] == 0.0 || k + 1 == row.len() {
                of_re.push(k as i64);
                of_im.push(k as i64);
                signs.push(0.0);
                k += 1;
            } else {
                of_re.extend([k as i64, k as i64]);
                of_im.extend([k as i64 + 1, k as i64 + 1]);
                signs.extend([1.0, -1.0]);
                k += 2;
            }
        }
    }
    let picked = |at: &[i64]| {
        let at = Tensor::constant(NamedTensor::from_slice(at, im.sizes())?);
        columns.gather(&at.unsqueeze(-2).expand(columns.sizes())?, -1)
    };
    let signs = Tensor::constant(NamedTensor::from_slice(&signs, im.sizes())?.to(im.dtype())?);
    let v = Complex { re: picked(&of_re)?, im: picked(&of_im)?.mul(signs.unsqueeze(-2)?)? };
    let length = v.re.square().add(v.im.square()?).sum(keep(-2)).sqrt()?;
    Ok(Complex { re: v.re.div(&length)?, im: v.im.div(&length)? })
}
