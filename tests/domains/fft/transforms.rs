//! Transforms against a slow one.

use super::{assert_close, drawn, pairs, slow};
use namegrad::fft::{
    self, FftOptions, HfftOptions, IfftOptions, IhfftOptions, IrfftOptions, Norm, RfftOptions,
};
use namegrad::prelude::*;

const SIZES: [usize; 16] = [1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 30, 31, 64, 97, 128];
const NORMS: [Norm; 3] = [Norm::Backward, Norm::Ortho, Norm::Forward];

/// The factor of a transform of `n` points.
fn factor(norm: Norm, n: usize, inverse: bool) -> f64 {
    match (norm, inverse) {
        (Norm::Ortho, _) => 1.0 / (n as f64).sqrt(),
        (Norm::Backward, true) | (Norm::Forward, false) => 1.0 / n as f64,
        _ => 1.0,
    }
}

fn scaled(x: Vec<[f64; 2]>, factor: f64) -> Vec<f64> {
    x.into_iter().flatten().map(|x| x * factor).collect()
}

#[test]
fn complex_transforms() -> Result<()> {
    for (size, n) in
        SIZES.iter().flat_map(|size| [1, 2, size - size / 2, *size, size + 3].map(|n| (*size, n)))
    {
        for norm in NORMS {
            let x = drawn(&[size, 2], size as u64);
            let of = pairs(&x.to_vec::<f64>()?);
            let y = fft::fft_with(&x, 0, FftOptions::new().n(n).norm(norm))?;
            let wanted = scaled(slow(&of, n, -1.0), factor(norm, n, false));
            assert_close(&y, &wanted, 1e-12 * n as f64 * 10.0, &format!("fft of {size} for {n}"));
            let y = fft::ifft_with(&x, 0, IfftOptions::new().n(n).norm(norm))?;
            let wanted = scaled(slow(&of, n, 1.0), factor(norm, n, true));
            assert_close(&y, &wanted, 1e-12 * n as f64 * 10.0, &format!("ifft of {size} for {n}"));
        }
    }
    Ok(())
}

#[test]
fn transforms_of_real_signals() -> Result<()> {
    for (size, n) in SIZES.iter().flat_map(|size| [1, *size, size + 4, size.div_ceil(2)].map(|n| (*size, n)))
    {
        for norm in NORMS {
            let what = format!("{size} for {n}");
            let x = drawn(&[size], size as u64);
            let of: Vec<[f64; 2]> = x.to_vec::<f64>()?.into_iter().map(|x| [x, 0.0]).collect();
            let half = |sign, inverse| {
                let mut all = slow(&of, n, sign);
                all.truncate(n / 2 + 1);
                scaled(all, factor(norm, n, inverse))
            };
            let y = fft::rfft_with(&x, 0, RfftOptions::new().n(n).norm(norm))?;
            assert_close(&y, &half(-1.0, false), 1e-11 * n as f64, &what);
            let y = fft::ihfft_with(&x, 0, IhfftOptions::new().n(n).norm(norm))?;
            assert_close(&y, &half(1.0, true), 1e-11 * n as f64, &what);
        }
    }
    Ok(())
}

/// The whole spectrum of which `x` is the first half: the rest mirrors it.
fn mirrored(x: &[[f64; 2]], n: usize) -> Vec<[f64; 2]> {
    let at = |k: usize| x.get(k).copied().unwrap_or_default();
    (0..n)
        .map(|k| match k {
            k if k == 0 || 2 * k == n => [at(k)[0], 0.0],
            k if 2 * k < n => at(k),
            k => [at(n - k)[0], -at(n - k)[1]],
        })
        .collect()
}

#[test]
fn transforms_of_halves() -> Result<()> {
    for (size, n) in
        SIZES.iter().flat_map(|size| [1, 2 * size, 2 * size + 1, *size, size + 1].map(|n| (*size, n)))
    {
        for norm in NORMS {
            let what = format!("{size} for {n}");
            let x = drawn(&[size, 2], size as u64);
            let all = mirrored(&pairs(&x.to_vec::<f64>()?), n);
            let real = |sign, inverse| {
                slow(&all, n, sign).into_iter().map(|x| x[0] * factor(norm, n, inverse)).collect::<Vec<f64>>()
            };
            let y = fft::irfft_with(&x, 0, IrfftOptions::new().n(n).norm(norm))?;
            assert_close(&y, &real(1.0, true), 1e-11 * n as f64, &what);
            let y = fft::hfft_with(&x, 0, HfftOptions::new().n(n).norm(norm))?;
            assert_close(&y, &real(-1.0, false), 1e-11 * n as f64, &what);
        }
    }
    Ok(())
}

/// A transform over several dims is one over each, in any order of the dims and by name.
#[test]
fn several_dims_are_one_after_another() -> Result<()> {
    let x = drawn(&[3, 4, 5, 6], 1).rename(["A", "B", "D", "E"])?;
    let z = drawn(&[3, 4, 5, 2], 2).rename(["A", "B", "D", "complex"])?;
    let close = |a: &Tensor, b: &Tensor| a.allclose_with(b, IscloseOptions::new().atol(1e-10)).unwrap();
    assert!(close(&fft::fft2(&z, ["D", "A"])?, &fft::fft(&fft::fft(&z, "A")?, "D")?));
    assert!(close(&fft::fftn(&z, ..)?, &fft::fft(&fft::fft2(&z, ["A", "D"])?, "B")?));
    assert!(close(&fft::ifftn(&z, ["B", "D"])?, &fft::ifft(&fft::ifft(&z, "B")?, "D")?));
    assert!(close(&fft::rfftn(&x, ["E", "B", "D"])?, &fft::fft2(&fft::rfft(&x, "D")?, ["E", "B"])?));
    assert!(close(&fft::ihfft2(&x, ["E", "B"])?, &fft::ifft(&fft::ihfft(&x, "B")?, "E")?));
    assert!(close(&fft::irfft2(&z, ["B", "D"])?, &fft::irfft(&fft::ifft(&z, "B")?, "D")?));
    assert!(close(&fft::hfftn(&z, ["A", "B", "D"])?, &fft::hfft(&fft::fft2(&z, ["A", "B"])?, "D")?));
    let given = fft::fft2_with(&z, ["B", "A"], fft::Fft2Options::new().s([("A", 7), ("B", 2)]))?;
    let listed = fft::fft2_with(&z, ["B", "A"], fft::Fft2Options::new().s([2, 7]))?;
    assert_eq!((given.sizes(), given.equal(&listed)?), (&[7, 2, 5, 2][..], true));
    let last = fft::fftn_with(&z, .., fft::FftnOptions::new().s([6]))?;
    assert_eq!(last.shape().to_string(), "[A=3, B=4, D=6, complex=2]");
    let kept = fft::irfftn_with(&z, ["A", "B"], fft::IrfftnOptions::new().s([-1, -1]))?;
    assert_eq!(kept.shape().to_string(), "[A=3, B=6, D=5]");
    Ok(())
}

/// The result is the same for any memory order, number of threads and place of the dim, also for tensors that
/// are transformed on all threads.
#[test]
fn lanes_have_any_order() -> Result<()> {
    let pools =
        [1, 2, 5].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
    for sizes in [vec![7, 3], vec![1, 9], vec![300, 40], vec![2, 60, 70], vec![12, 33, 20]] {
        for dtype in [DType::F32, DType::F64] {
            for n in [3, 64, 100] {
                let x = drawn(&[&sizes[..], &[2]].concat(), 3).to(dtype)?;
                let one = |x: &Tensor, dim: usize| fft::fft_with(x, dim, FftOptions::new().n(n));
                for dim in 0..sizes.len() {
                    // Lanes one after another.
                    let last = x.movedim(dim, -2)?.contiguous()?;
                    let wanted = one(&last, sizes.len() - 1)?.movedim(-2, dim)?;
                    for pool in &pools {
                        let y = pool.install(|| one(&x, dim))?;
                        assert!(y.equal(&wanted)?, "{sizes:?} {dim} {n}");
                        let real = x.select(-1, 0)?;
                        let half = |x: &Tensor| fft::rfft_with(x, dim, RfftOptions::new().n(n));
                        assert!(pool.install(|| half(&real))?.equal(&half(&real.contiguous()?)?)?);
                    }
                }
            }
        }
    }
    Ok(())
}

#[test]
fn the_dim_of_pairs_can_be_anywhere() -> Result<()> {
    let z = drawn(&[4, 5, 2], 4).rename(["N", "time", "complex"])?;
    let wanted = fft::fft(&z, "time")?;
    for order in [["complex", "N", "time"], ["N", "complex", "time"], ["time", "N", "complex"]] {
        let y = fft::fft(&z.align_to(order)?, "time")?;
        assert_eq!(y.name(0).unwrap().as_str(), order[0]);
        assert!(y.align_as(&wanted)?.equal(&wanted)?);
        let real = fft::irfft(&z.align_to(order)?, "time")?;
        assert!(real.align_to(["N", "time"])?.equal(&fft::irfft(&z, "time")?)?);
    }
    // Indices do not count it.
    assert!(fft::fft(&z.align_to(["complex", "N", "time"])?, -1)?.align_as(&wanted)?.equal(&wanted)?);
    assert!(fft::fft(&z.rename(None)?, 1)?.equal(&wanted.rename(None)?)?);
    Ok(())
}

#[test]
fn empty_batches_and_single_values() -> Result<()> {
    let none = Tensor::zeros([("N", 0), ("time", 8)])?;
    assert_eq!(fft::rfft(&none, "time")?.shape().to_string(), "[N=0, time=5, complex=2]");
    assert_eq!(fft::irfft(&fft::rfft(&none, "time")?, "time")?.sizes(), [0, 8]);
    let z = Tensor::zeros([("N", 0), ("complex", 2), ("time", 3)])?.requiring_grad()?;
    let y = fft::fft2_with(&z, ["N", "time"], fft::Fft2Options::new().s([2, 3]))?;
    assert_eq!(y.to_vec::<f32>()?, [0.0; 12]);
    y.sum(..)?.backward()?;
    assert_eq!(z.grad().unwrap().sizes(), [0, 2, 3]);
    let one = Tensor::new([[3.0, 4.0]])?;
    assert_eq!(fft::fft(&one, 0)?.to_vec::<f32>()?, [3.0, 4.0]);
    Ok(())
}

/// A transform that shortens or extends a signal has the gradient of that.
#[test]
fn gradients_of_cut_and_padded_signals() -> Result<()> {
    use namegrad::autograd::{gradcheck, gradgradcheck};
    for n in [1, 2, 3, 5, 6, 9] {
        let (x, z) = (drawn(&[2, 5], n), drawn(&[5, 2], n));
        let n = n as usize;
        gradcheck(|x| fft::rfft_with(&x[0], 1, RfftOptions::new().n(n)), std::slice::from_ref(&x))?;
        gradcheck(
            |x| fft::ihfft_with(&x[0], 0, IhfftOptions::new().n(n).norm(Norm::Ortho)),
            std::slice::from_ref(&x),
        )?;
        gradcheck(
            |x| fft::fft_with(&x[0], 0, FftOptions::new().n(n).norm(Norm::Forward)),
            std::slice::from_ref(&z),
        )?;
        gradcheck(|x| fft::irfft_with(&x[0], 0, IrfftOptions::new().n(n)), std::slice::from_ref(&z))?;
        gradcheck(
            |x| fft::hfft_with(&x[0], 0, HfftOptions::new().n(n).norm(Norm::Ortho)),
            std::slice::from_ref(&z),
        )?;
        let energy = |x: &[Tensor]| fft::rfft_with(&x[0], 1, RfftOptions::new().n(n))?.square();
        gradgradcheck(energy, &[x])?;
    }
    Ok(())
}

#[test]
fn precision() -> Result<()> {
    for n in [1 << 10, 1 << 16, 3 * 5 * 7 * 11 * 13, 65537] {
        let x = drawn(&[n, 2], n as u64);
        let wide = fft::fft(&x, 0)?;
        let narrow = fft::fft(&x.to(DType::F32)?, 0)?.to(DType::F64)?;
        let size = wide.abs()?.amax(..)?.item::<f64>()?;
        let error = narrow.sub(&wide).abs().amax(..)?.item::<f64>()?;
        assert!(error < 2e-6 * size, "{n}: {error} of {size}");
        let back = fft::ifft(&wide, 0)?.sub(&x).abs().amax(..)?.item::<f64>()?;
        assert!(back < 1e-13, "{n}: {back}");
    }
    Ok(())
}

#[test]
fn frequencies() -> Result<()> {
    assert_eq!(fft::fftfreq(4, 0.25)?.to_vec::<f32>()?, [0.0, 1.0, -2.0, -1.0]);
    assert_eq!(fft::fftfreq(5, 0.2)?.to_vec::<f32>()?, [0.0, 1.0, 2.0, -2.0, -1.0]);
    assert_eq!(fft::rfftfreq(5, 0.2)?.to_vec::<f32>()?, [0.0, 1.0, 2.0]);
    assert_eq!(fft::fftfreq(0, 1.0)?.sizes(), [0]);
    assert_eq!(fft::fftfreq(-1, 1.0).unwrap_err().kind(), ErrorKind::Value);
    assert_eq!(fft::rfftfreq_as(3, 1.0, DType::I64).unwrap_err().kind(), ErrorKind::DType);
    let x = drawn(&[4, 5, 2], 5).rename(["A", "B", "complex"])?;
    let y = fft::fftshift(&x, ..)?;
    assert!(y.equal(&x.roll(2, "A")?.roll(2, "B")?)?);
    assert!(fft::ifftshift(&y, ..)?.equal(&x)?);
    assert!(fft::fftshift(&x, "B")?.equal(&x.roll(2, "B")?)?);
    Ok(())
}

#[test]
fn errors() -> Result<()> {
    let (x, z) = (Tensor::zeros([("N", 2), ("time", 4)])?, Tensor::zeros([("time", 4), ("complex", 2)])?);
    let kind = |result: Result<Tensor>| result.unwrap_err().kind();
    let says = |result: Result<Tensor>, text: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(text), "no {text:?} in {error}");
    };
    let none = || FftOptions::new().n(0);
    says(fft::fft_with(&z, "time", none()), "fft.fft: Invalid number of data points (0) specified");
    says(fft::rfft_with(&x, "time", RfftOptions::new().n(-2)), "(-2)");
    says(fft::irfft(&z.narrow("time", 0, 1)?, "time"), "(0)");
    says(fft::rfft(&z, "time"), "expected a real tensor, and this one has a dim 'complex'");
    says(fft::fft(&x, "time"), "expected a complex tensor");
    assert_eq!(fft::fft(&x, "time").unwrap_err().repair(), Some("complex::from_real(&x)? if x is real"));
    says(fft::fft(&z, "tim"), "Name 'tim' not found");
    assert_eq!(kind(fft::rfft(&x.to(DType::F16)?, 1)), ErrorKind::DType);
    assert_eq!(kind(fft::rfft(&Tensor::new(1.0)?, -1)), ErrorKind::DimRange);
    assert_eq!(kind(fft::rfft(&x, 2)), ErrorKind::DimRange);
    assert_eq!(kind(fft::fftn(&z, [0, 0])), ErrorKind::DimRange);
    assert_eq!(kind(fft::rfftn(&x, [0; 0])), ErrorKind::Value);
    assert_eq!(kind(fft::rfft2_with(&x, ["N", "time"], fft::Rfft2Options::new().s([2]))), ErrorKind::Shape);
    says(
        fft::rfft2_with(&x, ["time"], fft::Rfft2Options::new().s([("N", 2)])),
        "a number of points is given for dim 'N', which is not transformed",
    );
    says(fft::fft_with(&z, "time", FftOptions::new().n([2, 3])), "`n` must be one number");
    says(fft::rfft_with(&x, "time", RfftOptions::new().name("N")), "duplicate");
    let line = line!() + 1;
    let error = fft::fft(&x, "time").unwrap_err();
    assert_eq!((error.location().file(), error.location().line()), (file!(), line));
    Ok(())
}

/// Convolutions against the sum that defines them, for each mode, dims in any order and over two dims.
#[test]
fn convolutions() -> Result<()> {
    use namegrad::fft::{ConvolveOptions, Overlap};
    for (n, m) in [(1, 1), (5, 3), (3, 5), (16, 16), (30, 7)] {
        let (x, kernel) = (drawn(&[2, n], n as u64), drawn(&[m], 40));
        let full: Vec<f64> = (0..2 * (n + m - 1))
            .map(|at| {
                let (row, k) = (at / (n + m - 1), at % (n + m - 1));
                let term = |j: usize| {
                    let at = k.checked_sub(j).filter(|at| *at < n);
                    at.map_or(0.0, |at| {
                        x.item_at::<f64>([row, at]).unwrap() * kernel.item_at::<f64>([j]).unwrap()
                    })
                };
                (0..m).map(term).sum()
            })
            .collect();
        let y = fft::convolve(&x, &kernel, 1)?;
        assert_close(&y, &full, 1e-12 * m as f64 * 10.0, "full");
        let same = fft::convolve_with(&x, &kernel, 1, ConvolveOptions::new().mode(Overlap::Same))?;
        assert!(same.equal(&y.narrow(1, ((m - 1) / 2) as isize, n)?)?);
        let valid = fft::convolve_with(&x, &kernel, 1, ConvolveOptions::new().mode(Overlap::Valid));
        match n >= m {
            true => assert!(valid?.equal(&y.narrow(1, (m - 1) as isize, n - m + 1)?)?),
            false => assert_eq!(valid.unwrap_err().kind(), ErrorKind::Value),
        }
    }
    let x = drawn(&[3, 6, 7], 6).rename(["N", "H", "W"])?;
    let kernel = drawn(&[2, 4], 7).rename(["H", "W"])?;
    let y = fft::convolve(&x, &kernel, ["H", "W"])?;
    assert_eq!(y.shape().to_string(), "[N=3, H=7, W=10]");
    let turned = fft::convolve(&x.align_to(["W", "N", "H"])?, &kernel.t()?, ["W", "H"])?;
    assert!(turned.align_as(&y)?.allclose_with(&y, IscloseOptions::new().atol(1e-12))?);
    let bare = fft::convolve(&x.rename(None)?, &kernel.t()?.rename(None)?, [2, 1])?;
    assert!(bare.allclose_with(&y.rename(None)?, IscloseOptions::new().atol(1e-12))?);
    let error = fft::convolve(&x, &kernel.rename([("W", "time")])?, ["H", "W"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NameNotFound);
    Ok(())
}

/// Forward mode, and `vmap` over a dim that the transform does not have.
#[test]
fn tangents_and_batches() -> Result<()> {
    use namegrad::autograd::functional::{jvp, vmap};
    let (x, t) = (drawn(&[3, 7], 8), drawn(&[3, 7], 9));
    let energy = |x: &Tensor| fft::irfft(&fft::rfft(x, -1)?.square()?, -1);
    let (_, tangent) = jvp(|x| energy(&x[0]), &[&x], &[&t])?;
    let step = 1e-6;
    let apart = energy(&x.add(t.mul(step)?)?)?.sub(energy(&x.sub(t.mul(step)?)?)?)?.div(2.0 * step)?;
    assert!(tangent.allclose_with(&apart, IscloseOptions::new().rtol(1e-6).atol(1e-6))?);
    let rows = vmap(|x| energy(&x[0]), &[&x], 0)?;
    assert!(rows.allclose_with(&energy(&x)?, IscloseOptions::new().atol(1e-12))?);
    Ok(())
}
