//! Spectra of pieces of signals against a slow transform of each, and back.

use super::{assert_close, drawn, slow};
use namegrad::autograd::{gradcheck, gradgradcheck};
use namegrad::fft::{self, IstftOptions, PadMode, StftOptions, Window, complex};
use namegrad::prelude::*;

#[test]
fn pieces_against_a_slow_transform() -> Result<()> {
    for (n, hop, length, aligned) in [(8, 3, 8, false), (7, 2, 5, false), (9, 4, 4, true), (1, 1, 1, false)] {
        let x = drawn(&[23], n as u64);
        let window = drawn(&[length], 1 + n as u64);
        let mut options = StftOptions::new().window(&window).hop_length(hop).win_length(length).center(false);
        if aligned {
            options = options.align_to_window(true);
        }
        let y = fft::stft_with(&x, 0, n, options)?;
        let (signal, weights) = (x.to_vec::<f64>()?, window.to_vec::<f64>()?);
        let has = if aligned { length } else { n };
        let pieces = (signal.len() - has) / hop + 1;
        assert_eq!(y.sizes(), [n / 2 + 1, pieces, 2]);
        let before = (n - length) / 2;
        for piece in 0..pieces {
            // An aligned piece starts before its window.
            let start = (piece * hop) as isize - if aligned { before as isize } else { 0 };
            let part: Vec<[f64; 2]> = (0..n)
                .map(|j| {
                    let at = usize::try_from(start + j as isize).ok().and_then(|at| signal.get(at));
                    let weight = j.checked_sub(before).and_then(|j| weights.get(j)).unwrap_or(&0.0);
                    [at.unwrap_or(&0.0) * weight, 0.0]
                })
                .collect();
            let mut wanted = slow(&part, n, -1.0);
            wanted.truncate(n / 2 + 1);
            assert_close(&y.select(1, piece as isize)?, &wanted.concat(), 1e-11, &format!("{n} {piece}"));
        }
    }
    Ok(())
}

#[test]
fn there_and_back() -> Result<()> {
    let x = drawn(&[2, 3, 50], 3).rename(["N", "channel", "time"])?;
    for (n, hop, length) in [(8, 2, 8), (9, 3, 7), (16, 4, 12)] {
        for normalized in [false, true] {
            for onesided in [false, true] {
                let window = Window::Hann.periodic_as(length, DType::F64)?;
                let options = StftOptions::new().window(&window).hop_length(hop).win_length(length);
                let options = options.normalized(normalized).onesided(onesided).name("frequency");
                let y = fft::stft_with(&x, "time", n, options)?;
                let frequencies = if onesided { n / 2 + 1 } else { n };
                assert_eq!(y.size("frequency")?, frequencies);
                for order in [
                    ["N", "channel", "frequency", "time", "complex"],
                    ["complex", "time", "N", "frequency", "channel"],
                ] {
                    let options = IstftOptions::new().window(&window).hop_length(hop).win_length(length);
                    let options = options.normalized(normalized).onesided(onesided).length(50);
                    let back = fft::istft_with(&y.align_to(order)?, ["frequency", "time"], n, options)?;
                    let same = back.align_as(&x)?.allclose_with(&x, IscloseOptions::new().atol(1e-9))?;
                    assert!(same, "{n} {hop} {length}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn complex_signals() -> Result<()> {
    let z = drawn(&[20, 2], 4).rename(["time", "complex"])?;
    let options = || StftOptions::new().name("frequency").hop_length(2);
    let y = fft::stft_with(&z, "time", 8, options())?;
    assert_eq!(y.shape().to_string(), "[frequency=8, time=11, complex=2]");
    let [re, im] = [complex::real(&z)?, complex::imag(&z)?];
    let both = [re, im].map(|x| fft::stft_with(&x, "time", 8, options().onesided(false)).unwrap());
    let i = Tensor::new([0.0, 1.0])?.to(DType::F64)?;
    let sum = both[0].add(complex::mul(&both[1], &i.rename(["complex"])?)?)?;
    assert!(y.allclose_with(&sum, IscloseOptions::new().atol(1e-10))?);
    let back = IstftOptions::new().hop_length(2).return_complex(true);
    let back = fft::istft_with(&y, ["frequency", "time"], 8, back)?;
    assert!(back.allclose_with(&z, IscloseOptions::new().atol(1e-9))?);
    let error = fft::stft_with(&z, "time", 8, options().onesided(true)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value);
    Ok(())
}

#[test]
fn gradients() -> Result<()> {
    let (x, window) = (drawn(&[2, 9], 5), drawn(&[3], 6).abs()?.add(0.5)?);
    let of = |x: &[Tensor]| {
        let options =
            StftOptions::new().window(&x[1]).win_length(3).hop_length(2).pad_mode(PadMode::Replicate);
        fft::stft_with(&x[0], -1, 4, options)
    };
    gradcheck(of, &[x.clone(), window.clone()])?;
    gradgradcheck(of, &[x, window.clone()])?;
    let y = drawn(&[3, 5, 2], 7);
    let back = |y: &[Tensor]| {
        let options = IstftOptions::new().window(&y[1]).win_length(3).hop_length(1).length(4);
        fft::istft_with(&y[0], [0, 1], 4, options)
    };
    gradcheck(back, &[y.clone(), window.clone()])?;
    gradgradcheck(back, &[y, window])?;
    Ok(())
}

#[test]
fn errors() -> Result<()> {
    let x = Tensor::zeros([("time", 16)])?;
    let stft = |n: usize, options: StftOptions<'_>| fft::stft_with(&x, "time", n, options).unwrap_err();
    let new = StftOptions::new;
    let value = [
        stft(0, new().hop_length(1)),
        stft(2, new()), // n_fft / 4 is 0
        stft(4, new().hop_length(0)),
        stft(4, new().win_length(0)),
        stft(4, new().win_length(5)),
        stft(17, new().center(false)),
        stft(40, new()),
        stft(4, new().align_to_window(true)),
    ];
    for error in value {
        assert_eq!((error.kind(), error.op()), (ErrorKind::Value, "fft.stft"), "{error}");
    }
    let window = Tensor::ones([3])?;
    assert_eq!(stft(4, new().window(&window)).kind(), ErrorKind::Shape);
    let named = Tensor::ones([("space", 4)])?;
    assert_eq!(stft(4, new().window(&named)).kind(), ErrorKind::NameMismatch);
    assert_eq!(fft::stft(&x.to(DType::I64)?, "time", 4).unwrap_err().kind(), ErrorKind::DType);
    assert_eq!(fft::stft(&x.to(DType::F16)?, "time", 4).unwrap_err().kind(), ErrorKind::DType);
    assert_eq!(fft::stft(&Tensor::zeros([2, 2, 8])?, -1, 4).unwrap_err().kind(), ErrorKind::Shape);
    let y = fft::stft_with(&x, "time", 4, new().name("frequency"))?;
    let istft = |n: usize, options: IstftOptions<'_>| {
        fft::istft_with(&y, ["frequency", "time"], n, options).unwrap_err()
    };
    let new = IstftOptions::new;
    let zeros = Tensor::zeros([4])?;
    let hann = Window::Hann.periodic(4)?;
    let value = [
        istft(4, new().hop_length(0)),
        istft(4, new().hop_length(5)),
        istft(4, new().win_length(5)),
        istft(4, new().length(0)),
        istft(4, new().window(&zeros)),
        istft(4, new().window(&hann).center(false)),
        istft(4, new().return_complex(true)),
    ];
    for error in value {
        assert_eq!((error.kind(), error.op()), (ErrorKind::Value, "fft.istft"), "{error}");
    }
    assert_eq!(istft(0, new()).kind(), ErrorKind::Shape);
    assert_eq!(istft(8, new()).kind(), ErrorKind::Shape);
    assert_eq!(istft(4, new().onesided(false)).kind(), ErrorKind::Shape);
    assert_eq!(istft(4, new().window(&window)).kind(), ErrorKind::Shape);
    assert_eq!(fft::istft(&y, "time", 4).unwrap_err().kind(), ErrorKind::DimRange);
    let none = fft::istft(&y.narrow("time", 0, 0)?, ["frequency", "time"], 4).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::Value);
    let long = fft::istft_with(&y, ["frequency", "time"], 4, new().length(100))?;
    assert_eq!(long.size("time")?, 100);
    Ok(())
}

/// Errors show the sizes of what the caller passed.
#[test]
fn inputs_of_errors() -> Result<()> {
    let x = Tensor::zeros([("N", 2), ("time", 8)])?;
    let y = fft::stft_with(&x, "time", 4, StftOptions::new().name("frequency"))?;
    let window = Tensor::zeros([4])?;
    for error in [
        fft::stft_with(&x, "time", 4, StftOptions::new().hop_length(0)).unwrap_err(),
        fft::stft_with(&x, "time", 9, StftOptions::new().center(false)).unwrap_err(),
        fft::stft(&x, "time", 20).unwrap_err(),
    ] {
        assert_eq!(error.operands()[0], x.shape(), "{error}");
    }
    let dims = ["frequency", "time"];
    for error in [
        fft::istft(&y, dims, 7).unwrap_err(),
        fft::istft_with(&y, dims, 4, IstftOptions::new().window(&window)).unwrap_err(),
        fft::istft_with(&y, dims, 4, IstftOptions::new().length(0)).unwrap_err(),
    ] {
        assert_eq!(error.operands()[0], y.shape(), "{error}");
    }
    Ok(())
}

/// A complex window is that of its parts.
#[test]
fn complex_windows() -> Result<()> {
    let (re, im) = (Tensor::randn([4])?, Tensor::randn([4])?);
    let window = complex::from_parts(&re, &im)?;
    let signal = Tensor::randn([("time", 12), ("complex", 2)])?;
    let of =
        |x: &Tensor, w: &Tensor| fft::stft_with(x, "time", 4, StftOptions::new().window(w).onesided(false));
    for x in [signal.select("complex", 0)?, signal] {
        let i = Tensor::new([0.0, 1.0])?.refine_names(["complex"])?;
        let turned = complex::mul(&of(&x, &im)?, &i)?;
        assert!(
            of(&x, &window)?.allclose_with(&of(&x, &re)?.add(&turned)?, IscloseOptions::new().atol(1e-5))?
        );
        let options = StftOptions::new().window(&window).onesided(true);
        assert_eq!(fft::stft_with(&x, "time", 4, options).unwrap_err().kind(), ErrorKind::Value);
    }
    Ok(())
}

/// Where pieces contradict each other, a complex window gives the quotient of PyTorch.
#[test]
fn signals_of_complex_windows() -> Result<()> {
    let re = Tensor::new([0.5, 1.0, 2.0, 1.5, 1.0, 0.7, 0.3, 0.9])?.to(DType::F64)?;
    let im = Tensor::new([0.1, -0.4, 0.3, 0.2, 0.0, 0.5, -0.2, 0.6])?.to(DType::F64)?;
    let window = complex::from_parts(&re, &im)?;
    let count = Tensor::arange(0, 8 * 13, 1)?.to(DType::F64)?;
    let y = complex::from_parts(&count.cos()?, &count.sin().mul(0.5)?)?.reshape([8, 13, 2])?;
    let options = IstftOptions::new().window(&window).hop_length(2).onesided(false);
    let x = fft::istft_with(&y, [0, 1], 8, options.clone().return_complex(true))?;
    let recorded = [(0, [-0.0103, 0.0221]), (5, [0.0207, -0.0252]), (23, [-0.0767, 0.0836])];
    for (at, value) in recorded {
        let value = Tensor::new(value)?.to(DType::F64)?;
        assert!(x.select(0, at)?.allclose_with(&value, IscloseOptions::new().atol(6e-5))?, "{at}");
    }
    let error = fft::istft_with(&y, [0, 1], 8, options).unwrap_err();
    assert!(error.to_string().contains("return_complex(true)"), "{error}");
    // The signal of its own pieces is itself.
    let x = Tensor::randn([("time", 24)])?.to(DType::F64)?;
    let how = StftOptions::new().window(&window).hop_length(2).onesided(false);
    let y = fft::stft_with(&x, "time", 8, how.name("frequency"))?;
    let back = IstftOptions::new().window(&window).hop_length(2).return_complex(true);
    let same = complex::real(&fft::istft_with(&y, ["frequency", "time"], 8, back)?)?;
    assert!(same.allclose_with(&x, IscloseOptions::new().atol(1e-10))?);
    Ok(())
}
