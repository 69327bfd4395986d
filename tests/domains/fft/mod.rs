//! Fourier transforms and complex numbers.

mod complex;
mod rows;
mod stft;
mod transforms;
mod windows;

use namegrad::prelude::*;
use namegrad_tests::draw::Draw;

/// Random numbers of these sizes between -3 and 3.
fn drawn(sizes: &[usize], seed: u64) -> Tensor {
    Draw::new(seed).tensor(sizes, DType::F64)
}

/// A slow transform of complex numbers, `Σ x[j] e^(sign 2πi jk / n)`, of the values `x` cut or padded to `n`.
fn slow(x: &[[f64; 2]], n: usize, sign: f64) -> Vec<[f64; 2]> {
    let value = |k: usize| {
        let mut sum = [0.0; 2];
        for (j, [re, im]) in x.iter().take(n).enumerate() {
            let (sin, cos) = (sign * std::f64::consts::TAU * (j * k % n) as f64 / n as f64).sin_cos();
            sum[0] += re * cos - im * sin;
            sum[1] += re * sin + im * cos;
        }
        sum
    };
    (0..n).map(value).collect()
}

fn pairs(x: &[f64]) -> Vec<[f64; 2]> {
    x.chunks(2).map(|x| [x[0], x[1]]).collect()
}

fn assert_close(x: &Tensor, wanted: &[f64], atol: f64, what: &str) {
    let x = x.to(DType::F64).unwrap().to_vec::<f64>().unwrap();
    assert_eq!(x.len(), wanted.len(), "{what}");
    for (at, (x, wanted)) in x.iter().zip(wanted).enumerate() {
        assert!((x - wanted).abs() <= atol, "{what}: element {at} is {x}, not {wanted}");
    }
}
