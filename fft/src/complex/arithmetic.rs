//! Products, quotients and powers of complex numbers, and reductions of them.

use super::number;
use super::parts::{from_parts, from_real, imag, real};
use crate::common::*;
use crate::engine::Real;
use bytemuck::{cast_slice, cast_slice_mut};
use num_complex::Complex;
use rayon::prelude::*;

functional! { arithmetic of complex;
    /// The products of complex numbers. `other` can be a number, which is real.
    ///
    /// # Shapes
    /// - `x`, `other`: complex, with dims that broadcast to each other
    /// - result: complex, the broadcast dims
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let i = Tensor::new([[0.0, 1.0]])?;
    /// assert_eq!(complex::mul(&i, &i)?.to_vec::<f32>()?, [-1.0, 0.0]);
    /// assert_eq!(complex::mul(&i, 3.0)?.to_vec::<f32>()?, [0.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    mul (x, other: Operand) on floats integers names unifies => {
        match other.ndim() {
            0 => x.mul(other),
            _ => pairwise(op, x, other, times),
        }
    }
    /// The quotients of complex numbers, without overflow in between. `other` can be a number, which is real.
    ///
    /// # Shapes
    /// - `x`, `other`: complex, with dims that broadcast to each other
    /// - result: complex, the broadcast dims
    ///
    /// # Source
    /// Smith, *Algorithm 116: Complex Division* (1962).
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let (z, i) = (Tensor::new([[1.0, 2.0]])?, Tensor::new([[0.0, 1.0]])?);
    /// assert_eq!(complex::div(&z, &i)?.to_vec::<f32>()?, [2.0, -1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    div (x, other: Operand) on floats integers names unifies => {
        match other.ndim() {
            0 => x.div(other),
            _ => pairwise(op, x, other, over),
        }
    }
    /// The powers `x^exponent`, on the principal branch. `exponent` is complex, or a real number. `0^0` is 1,
    /// and 0 is the power of 0 with any other exponent whose real part is positive.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::new([[0.0, 2.0]])?;
    /// assert!(complex::pow(&z, 2.0)?.allclose(&Tensor::new([[-4.0, 0.0]])?)?);
    /// # Ok::<(), Error>(())
    /// ```
    pow (x, exponent: Operand) on floats integers names unifies => {
        let exponent = match exponent.ndim() {
            0 => from_real(exponent)?,
            _ => exponent.clone(),
        };
        pairwise(op, x, &exponent, raised)
    }
    /// The reciprocals, `1 / z`.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let i = Tensor::new([[0.0, 2.0]])?;
    /// assert_eq!(complex::reciprocal(&i)?.to_vec::<f32>()?, [0.0, -0.5]);
    /// # Ok::<(), Error>(())
    /// ```
    reciprocal (x) on floats integers names keeps => {
        let (z, pair) = with_pair_last(op, x)?;
        let one = from_real(&z.new_ones(())?)?;
        let y = over(&one, &z.rename(None)?)?;
        moved_back(with_names_of(y, &z)?, pair)
    }
    /// The sums over dims; `..` are all but that of (re, im).
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::ones([("N", 2), ("C", 3), ("complex", 2)])?;
    /// assert_eq!(complex::sum(&z, ..)?.to_vec::<f32>()?, [6.0, 6.0]);
    /// assert_eq!(complex::sum(&z, "C")?.shape().to_string(), "[N=2, complex=2]");
    /// # Ok::<(), Error>(())
    /// ```
    sum (x; dim: Axes or Axes::ALL) on floats integers names removes => {
        if dim.dims.is_empty() { Ok(x.clone()) } else { x.sum(dim.places()) }
    }
    /// The means over dims; `..` are all but that of (re, im).
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::ones([("N", 2), ("C", 3), ("complex", 2)])?;
    /// assert_eq!(complex::mean(&z, ..)?.to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    mean (x; dim: Axes or Axes::ALL) on floats names removes => {
        if dim.dims.is_empty() { Ok(x.clone()) } else { x.mean(dim.places()) }
    }
    /// The products over dims; `..` are all but that of (re, im). The product of no numbers is 1.
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let z = Tensor::new([[0.0, 1.0], [0.0, 1.0], [2.0, 0.0]])?;
    /// assert_eq!(complex::prod(&z, ..)?.to_vec::<f32>()?, [-2.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    prod (x; dim: Axes or Axes::ALL) on floats integers names removes => {
        let mut z = x.clone();
        let mut all = dim.places();
        all.sort_unstable();
        for dim in all.into_iter().rev() {
            z = product_over(&z, dim)?;
        }
        Ok(z)
    }
    /// The matrix products of complex matrices, with the dims of [`matmul`](Self::matmul).
    ///
    /// # Shapes
    /// - `x`, `other`: complex; beside (re, im) the dims of the real matrix product
    /// - result: complex, the dims of the real matrix product
    ///
    /// # Examples
    /// ```
    /// use namegrad::complex;
    /// use namegrad::prelude::*;
    /// let a = Tensor::randn([("row", 2), ("k", 3), ("complex", 2)])?;
    /// let b = Tensor::randn([("k", 3), ("column", 4), ("complex", 2)])?;
    /// assert_eq!(complex::matmul(&a, &b)?.shape().to_string(), "[row=2, column=4, complex=2]");
    /// # Ok::<(), Error>(())
    /// ```
    matmul (x, other) on floats integers names contracts => {
        let ([a, b], [c, d]) = ([real(x)?, imag(x)?], [real(other)?, imag(other)?]);
        let re = a.matmul(&c).sub(b.matmul(&d)?)?;
        from_parts(&re, &a.matmul(&d).add(b.matmul(&c)?)?)
    }
}

/// The product over a dim by halves, whose derivative has no quotients.
fn product_over(z: &Tensor, dim: usize) -> Result<Tensor> {
    let mut z = z.clone();
    if z.sizes()[dim] == 0 {
        let one = from_real(&z.sum(dim)?.select(pair_dim("prod", z.sum(dim)?.value())?, 0).ones_like()?)?;
        return Ok(one);
    }
    while z.sizes()[dim] > 1 {
        let size = z.sizes()[dim];
        let half = size / 2;
        let product = mul(&z.narrow(dim, 0, half)?, &z.narrow(dim, half, half)?)?;
        z = match size % 2 {
            0 => product,
            _ => Tensor::cat(&[&product, &z.narrow(dim, size - 1, 1)?], dim)?,
        };
    }
    z.select(dim, 0)
}

/// A function of two tensors without names whose pairs are the last dim.
type OfPairs = fn(&Tensor, &Tensor) -> Result<Tensor>;

/// A function of two complex tensors, broadcast to each other.
#[track_caller]
fn pairwise(op: &'static str, a: &Tensor, b: &Tensor, f: OfPairs) -> Result<Tensor> {
    let [(a, place), (b, other)] = [with_pair_last(op, a)?, with_pair_last(op, b)?];
    let from_end = |z: &Tensor, pair: usize| z.ndim() - pair;
    let (own, others) = (from_end(&a, place), from_end(&b, other));
    if own != others && a.ndim() > 1 && b.ndim() > 1 {
        let message = "the dims of (re, im) are at different places from the end";
        let error = Error::about(&[a.value(), b.value()], ErrorKind::Misaligned, op, message);
        return Err(error.with_repair("other.align_as(&x)?"));
    }
    let names = a.value().unified_names(op, "broadcast", b.value())?;
    let y = f(&a.rename(None)?, &b.rename(None)?)?;
    let place = y.ndim() - if a.ndim() > 1 { own } else { others };
    moved_back(if names.is_named() { y.rename(Some(names))? } else { y }, place)
}

/// A complex tensor of floats with (re, im) as its last dim, and where that was.
#[track_caller]
pub(crate) fn with_pair_last(op: &'static str, x: &Tensor) -> Result<(Tensor, usize)> {
    let pair = pair_dim(op, x.value())?;
    let x = if x.dtype().is_floating_point() { x.clone() } else { x.to(default_dtype())? };
    match pair + 1 == x.ndim() {
        true => Ok((x, pair)),
        false => Ok((x.movedim(pair, -1)?, pair)),
    }
}

/// The pairs of a result back at their place.
pub(crate) fn moved_back(z: Tensor, pair: usize) -> Result<Tensor> {
    if pair + 1 == z.ndim() { Ok(z) } else { z.movedim(-1, pair) }
}

pub(crate) fn with_names_of(y: Tensor, z: &Tensor) -> Result<Tensor> {
    if z.has_names() { y.rename(Some(z.names().clone())) } else { Ok(y) }
}

/// Zeros where the mask is true. The mask broadcasts.
pub(crate) fn masked(x: &Tensor, mask: &Tensor) -> Result<Tensor> {
    x.masked_fill(mask, 0.0)
}

/// The elements of complex numbers with (re, im) as the last dim through a function of one number.
#[track_caller]
pub(crate) fn each(
    op: &'static str,
    z: &NamedTensor,
    f: fn(Complex<f64>) -> Complex<f64>,
) -> Result<NamedTensor> {
    each_of(op, &[z], |x| f(x[0]))
}

/// The points from which several threads are faster than one.
const SHARED: usize = 1 << 13;
/// The elements of a task.
const GRAIN: usize = 1 << 11;

/// Complex numbers that are broadcast to each other through a function in `f64`.
#[track_caller]
pub(crate) fn each_of(
    op: &'static str,
    tensors: &[&NamedTensor],
    f: impl Fn(&[Complex<f64>]) -> Complex<f64> + Sync,
) -> Result<NamedTensor> {
    let (dense, mut y, dtype) = dense(op, tensors)?;
    match y.dtype() {
        DType::F64 => apply::<f64>(&dense, elements_mut(&mut y)?, f)?,
        _ => apply::<f32>(&dense, elements_mut(&mut y)?, f)?,
    }
    y.to(dtype)
}

/// Dense tensors of `f32` or `f64` that are broadcast to each other, zeros of their sizes, and the dtype of a
/// result.
#[track_caller]
fn dense(op: &'static str, tensors: &[&NamedTensor]) -> Result<(Vec<NamedTensor>, NamedTensor, DType)> {
    let dtype = tensors.iter().map(|x| x.dtype()).fold(tensors[0].dtype(), DType::promote);
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let mut dense = Vec::with_capacity(tensors.len());
    let sizes = common_sizes(op, tensors)?;
    for x in tensors {
        dense.push(x.rename(None)?.to(wide)?.expand(&sizes[..])?.contiguous()?);
    }
    Ok((dense, NamedTensor::full_as(op, &sizes[..], 0.into(), wide)?, dtype))
}

/// The products of two tensors, in the precision of their elements.
#[track_caller]
fn products(a: &NamedTensor, b: &NamedTensor) -> Result<NamedTensor> {
    fn multiply<T: Real>(x: &[NamedTensor], y: &mut [T]) -> Result<()> {
        let [a, b]: [&[Complex<T>]; 2] =
            [cast_slice(elements::<T>(&x[0])?), cast_slice(elements::<T>(&x[1])?)];
        let y: &mut [Complex<T>] = cast_slice_mut(y);
        let run = |(at, y): (usize, &mut [Complex<T>])| {
            let (a, b) = (&a[at * SHARED..], &b[at * SHARED..]);
            y.iter_mut().zip(a).zip(b).for_each(|((y, a), b)| *y = *a * *b);
        };
        match y.len() <= SHARED {
            true => run((0, y)),
            false => y.par_chunks_mut(SHARED).enumerate().for_each(run),
        }
        Ok(())
    }
    let (dense, mut y, dtype) = dense("complex.mul", &[a, b])?;
    match y.dtype() {
        DType::F64 => multiply::<f64>(&dense, elements_mut(&mut y)?)?,
        _ => multiply::<f32>(&dense, elements_mut(&mut y)?)?,
    }
    y.to(dtype)
}

fn apply<T: Real + Into<f64>>(
    dense: &[NamedTensor],
    y: &mut [T],
    f: impl Fn(&[Complex<f64>]) -> Complex<f64> + Sync,
) -> Result<()> {
    let mut slices: Vec<&[Complex<T>]> = Vec::with_capacity(dense.len());
    for x in dense {
        slices.push(cast_slice(elements::<T>(x)?));
    }
    let wide = |z: &Complex<T>| Complex::new(z.re.into(), z.im.into());
    let y: &mut [Complex<T>] = cast_slice_mut(y);
    let run = |(at, y): (usize, &mut [Complex<T>])| {
        let start = at * GRAIN;
        for (index, y) in y.iter_mut().enumerate() {
            let z = match slices[..] {
                [a] => f(&[wide(&a[start + index])]),
                [a, b, ..] => f(&[wide(&a[start + index]), wide(&b[start + index])]),
                [] => return,
            };
            *y = Complex::new(T::of(z.re), T::of(z.im));
        }
    };
    match y.len() < SHARED {
        true => y.chunks_mut(GRAIN).enumerate().for_each(run),
        false => y.par_chunks_mut(GRAIN).enumerate().for_each(run),
    }
    Ok(())
}

/// The sizes of tensors that are broadcast to each other.
#[track_caller]
fn common_sizes(op: &'static str, tensors: &[&NamedTensor]) -> Result<Vec<usize>> {
    let mut sizes = tensors[0].sizes().to_vec();
    for x in &tensors[1..] {
        let (own, other) = (x.sizes(), sizes.clone());
        let ndim = own.len().max(other.len());
        let at =
            |sizes: &[usize], dim: usize| (dim + sizes.len()).checked_sub(ndim).map_or(1, |dim| sizes[dim]);
        sizes = Vec::with_capacity(ndim);
        for dim in 0..ndim {
            sizes.push(match (at(&other, dim), at(own, dim)) {
                (a, b) if a == b || b == 1 => a,
                (1, b) => b,
                (a, b) => {
                    let message = format!(
                        "The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension {dim}"
                    );
                    return Err(Error::about(tensors, ErrorKind::Shape, op, message));
                }
            });
        }
    }
    Ok(sizes)
}

/// The conjugates.
pub(crate) fn conjugated(z: &Tensor) -> Result<Tensor> {
    let value = each("complex.conj", z.value(), |z| z.conj())?;
    let value = if z.has_names() { value.rename(Some(z.names().clone()))? } else { value };
    Ok(Op::new("complex.conj", value).input(z, |g, _| conjugated(g)).output())
}

/// `a b`.
#[track_caller]
pub(crate) fn times(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let value = products(a.value(), b.value())?;
    let (kept_a, kept_b) = (Kept::input(a), Kept::input(b));
    let op = Op::new("complex.mul", value)
        .input(a, move |g, cx| times(g, &conjugated(&kept_b.get(cx))?))
        .input(b, move |g, cx| times(g, &conjugated(&kept_a.get(cx))?));
    Ok(op.output())
}

/// `a / b`.
#[track_caller]
pub(crate) fn over(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let value = each_of("complex.div", &[a.value(), b.value()], |z| number::quotient(z[0], z[1]))?;
    let kept = [Kept::input(b), Kept::output(&value)];
    let other = kept.clone();
    let op = Op::new("complex.div", value)
        .input(a, move |g, cx| over(g, &conjugated(&kept[0].get(cx))?))
        .input(b, move |g, cx| {
            let [b, y] = [other[0].get(cx), other[1].get(cx)];
            over(&times(g, &conjugated(&y)?)?, &conjugated(&b)?).neg()
        });
    Ok(op.output())
}

/// `a^b`.
#[track_caller]
fn raised(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let value = each_of("complex.pow", &[a.value(), b.value()], |z| number::power(z[0], z[1]))?;
    let kept = [Kept::input(a), Kept::input(b), Kept::output(&value)];
    let other = kept.clone();
    let op = Op::new("complex.pow", value)
        .input(a, move |g, cx| {
            let [a, b] = [kept[0].get(cx), kept[1].get(cx)];
            let less = b.sub(from_real(&b.new_ones(())?)?)?;
            // The power 0 has no slope, not even at 0.
            let flat = super::parts::abs(&b)?.eq(0.0).unsqueeze(-1)?;
            let slope = times(&b, &raised(&a, &less)?)?;
            times(g, &conjugated(&slope.masked_fill(&flat, 0.0)?)?)
        })
        .input(b, move |g, cx| {
            let [a, y] = [other[0].get(cx), other[2].get(cx)];
            let zero = super::parts::abs(&a)?.eq(0.0).unsqueeze(-1)?;
            // 0 to any power stays what it is.
            let safe = zero.choose(1.0, &a)?;
            let slope = times(&y, &super::elementary::log(&safe)?)?.masked_fill(&zero, 0.0)?;
            times(g, &conjugated(&slope)?)
        });
    Ok(op.output())
}
