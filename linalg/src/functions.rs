//! Functions of matrices.

use crate::common::*;

methods! { functions;
    //! Functions of matrices.
    //!
    //! `dim` is the dims of the rows and of the columns, such as `["row", "col"]`; `..` means the last two.
    //! All other dims are batch dims.

    /// The product of `n` square matrices `x`: the identity for 0, and a power of the inverse for a negative
    /// `n`.
    ///
    /// # Errors
    /// [`Value`](namegrad_core::ErrorKind::Value) for a singular matrix and a negative `n`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([[1.0, 1.0], [1.0, 0.0]])?;
    /// assert_eq!(x.matrix_power(10, ..)?.to_vec::<f32>()?, [89.0, 55.0, 55.0, 34.0]);
    /// # Ok::<(), Error>(())
    /// ```
    matrix_power (x; n: isize, dim: Matrix or ..) on floats names keeps => {
        let of = Matrices::square(x, dim)?;
        of.matrices(power(&of, n)?, of.names)
    }
    /// The exponential of square matrices: `1 + x + x² / 2! + x³ / 3! + ..`.
    ///
    /// # Source
    /// Higham, *The Scaling and Squaring Method for the Matrix Exponential Revisited* (2005), algorithm 2.3
    /// with the approximant of degree 13; the gradient: Mathias, *A Chain Rule for Matrix Functions and
    /// Applications* (1996).
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let turn = Tensor::new([[0.0, -1.0], [1.0, 0.0]])?; // its exponential turns by an angle of 1
    /// let y = turn.matrix_exp(..)?;
    /// assert!((y.item_at::<f64>([1, 0])? - 1f64.sin()).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    matrix_exp (x; dim: Matrix or ..) on floats names keeps => {
        let of = Matrices::square(x, dim)?;
        of.matrices(exponential(&of.x)?, of.names)
    }
    /// The powers `1, x, x² ..` of each element along a new last dim called `name`: `n` of them, or as many
    /// as the last dim of `x` has elements.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// let x = Tensor::new([2.0, 3.0])?.refine_names(["point"])?;
    /// let y = x.vander_with(VanderOptions::new().n(3).name("degree"))?;
    /// assert_eq!(y.shape().to_string(), "[point=2, degree=3]");
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0, 4.0, 1.0, 3.0, 9.0]);
    /// # Ok::<(), Error>(())
    /// ```
    vander (x; n: Option<usize> = None, name: NewName = None) names keeps => {
        let x = &x.atleast_1d()?;
        let count = n.unwrap_or(x.sizes()[x.ndim() - 1]);
        if count < 2 {
            return Err(fault(ErrorKind::Value, format!("the number of powers must be at least 2, got {count}")));
        }
        let names: Vec<_> = (0..x.ndim()).map(|dim| x.name(dim)).chain([name]).collect();
        let x = x.rename(None).unsqueeze(-1)?;
        let mut sizes = x.sizes().to_vec();
        let one = TensorOptions::new().dtype(x.dtype()).ones(&sizes[..])?;
        sizes[x.ndim() - 1] = count - 1;
        let powers = x.expand(&sizes[..])?.cumprod(-1)?;
        named(Tensor::cat(&[&one, &powers], -1)?, names)
    }
}

fn power(of: &Matrices, n: isize) -> Result<Tensor> {
    let size = of.sizes[0];
    if n == 0 {
        let one = TensorOptions::new().dtype(of.x.dtype()).eye(size, size)?;
        let value = one.expand(of.x.sizes())?.contiguous()?.into_value();
        return Ok(Op::new("matrix_power", value).input(&of.x, |g, _| g.zeros_like()).output());
    }
    let mut square = of.x.clone();
    if n < 0 {
        let (inverse, infos) = crate::solve::inverse(&of.x)?;
        of.check(&infos, |pivot| format!("is singular: pivot {pivot} is 0"))?;
        square = inverse;
    }
    let (mut rest, mut product): (usize, Option<Tensor>) = (n.unsigned_abs(), None);
    loop {
        if rest % 2 == 1 {
            product = Some(match product {
                Some(product) => product.matmul(&square)?,
                None => square.clone(),
            });
        }
        rest /= 2;
        match product {
            Some(product) if rest == 0 => return Ok(product),
            _ => square = square.matmul(&square)?,
        }
    }
}

/// The exponential of a tensor without names. Its derivative in the direction `d` is the upper right block of
/// the exponential of `[[x, d], [0, x]]`, and the gradient is that of the transposed matrix in the direction
/// `g`.
fn exponential(x: &Tensor) -> Result<Tensor> {
    let y = approximated(&x.detach())?.into_value();
    let kept = Kept::input(x);
    let op = Op::new("matrix_exp", y).input(x, move |g, cx| {
        let x = kept.get(cx).mt()?;
        let n = x.sizes()[x.ndim() - 1];
        let (above, below) = (Tensor::cat(&[&x, g], -1)?, Tensor::cat(&[&x.zeros_like()?, &x], -1)?);
        exponential(&Tensor::cat(&[&above, &below], -2)?)?.narrow(-2, 0, n).narrow(-1, n, n)
    });
    Ok(op.output())
}

/// The coefficients of the approximant of degree 13, divided by the first.
const PADE: [f64; 14] = {
    let all = [
        64764752532480000.0,
        32382376266240000.0,
        7771770303897600.0,
        1187353796428800.0,
        129060195264000.0,
        10559470521600.0,
        670442572800.0,
        33522128640.0,
        1323241920.0,
        40840800.0,
        960960.0,
        16380.0,
        182.0,
        1.0,
    ];
    let (mut scaled, mut k) = ([0.0; 14], 0);
    while k < 14 {
        scaled[k] = all[k] / all[0];
        k += 1;
    }
    scaled
};

fn approximated(x: &Tensor) -> Result<Tensor> {
    /// Up to this norm the approximant is accurate.
    const NORM: f64 = 5.371920351148152;
    let n = x.sizes()[x.ndim() - 1];
    if x.numel() == 0 {
        return Ok(x.clone());
    }
    // Each matrix is halved so often that its norm is small, and the result is squared as often.
    let norms = x.abs().sum(-2).amax(keep(-1)).unsqueeze(-1).to(DType::F64)?; // [.., 1, 1]
    let halvings = norms
        .div(NORM)
        .log2()
        .ceil()
        .clamp_min(0.0)
        .nan_to_num_with(NanToNumOptions::new().nan(0.0).posinf(0.0))?;
    let scale = halvings.neg().exp2().to(x.dtype())?;
    let most = values::numbers_or(halvings.amax(..)?.value(), 0.0)?[0] as i64;
    let x = x.mul(&scale)?;
    let x2 = x.matmul(&x)?;
    let x4 = x2.matmul(&x2)?;
    let x6 = x4.matmul(&x2)?;
    let one = TensorOptions::new().dtype(x.dtype()).eye(n, n)?;
    let sum = |from: usize| {
        let high = x6.mul(PADE[from + 12])?.add(x4.mul(PADE[from + 10])?)?.add(x2.mul(PADE[from + 8])?)?;
        x6.matmul(&high)?
            .add(x6.mul(PADE[from + 6])?)?
            .add(x4.mul(PADE[from + 4])?)?
            .add(x2.mul(PADE[from + 2])?)?
            .add(one.mul(PADE[from])?)
    };
    let (odd, even) = (x.matmul(&sum(1)?)?, sum(0)?);
    let mut y = crate::solve::solution(&even.sub(&odd)?, &even.add(&odd)?)?.0;
    for step in 0..most {
        y = halvings.gt(step as f64)?.choose(y.matmul(&y)?, &y)?;
    }
    Ok(y)
}
