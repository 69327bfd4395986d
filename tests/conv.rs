//! Convolution against plain loops, its derivatives against differences, and invalid input.

use namegrad::autograd::{gradcheck, gradgradcheck};
use namegrad::nn::functional::Padding;
use namegrad::prelude::*;

fn numbers(sizes: &[usize]) -> Tensor {
    let count: usize = sizes.iter().product();
    let numbers: Vec<f64> = (0..count).map(|i| ((i * 37 % 101) as f64 / 50.0 - 1.0).sin()).collect();
    Tensor::from_slice(&numbers, sizes.to_vec()).unwrap()
}

/// The definition, one element at a time.
fn plain(
    x: &Tensor,
    weight: &Tensor,
    bias: &Tensor,
    options: &Conv1dOptions<'_>,
    padding: usize,
) -> Vec<f64> {
    let (&[batch, channels, length], &[out, own, size]) = (x.sizes(), weight.sizes()) else { unreachable!() };
    let [x, weight, bias] = [x, weight, bias].map(|x| x.to_vec::<f64>().unwrap());
    let Conv1dOptions { stride, dilation, groups, .. } = *options;
    let places = (length + 2 * padding - dilation * (size - 1) - 1) / stride + 1;
    let mut y = Vec::new();
    for (n, o, t) in (0..batch).flat_map(|n| (0..out).flat_map(move |o| (0..places).map(move |t| (n, o, t))))
    {
        let mut sum = bias[o];
        for (c, k) in (0..own).flat_map(|c| (0..size).map(move |k| (c, k))) {
            let channel = o / (out / groups) * (channels / groups) + c;
            let at = (stride * t + dilation * k).checked_sub(padding).filter(|at| *at < length);
            sum += at.map_or(0.0, |at| {
                weight[(o * own + c) * size + k] * x[(n * channels + channel) * length + at]
            });
        }
        y.push(sum);
    }
    y
}

#[test]
fn values_and_gradients() -> Result<()> {
    for (stride, padding, dilation, groups) in
        [(1, 0, 1, 1), (2, 1, 1, 1), (1, 2, 2, 2), (3, 0, 1, 4), (2, 3, 3, 2)]
    {
        let options = Conv1dOptions::new()
            .stride(stride)
            .padding(Padding::Zeros(padding))
            .dilation(dilation)
            .groups(groups);
        let (x, weight, bias) = (numbers(&[2, 4, 9]), numbers(&[4, 4 / groups, 3]), numbers(&[4]));
        let y = F::conv1d_with(&x, &weight, options.clone().bias(&bias))?;
        let want = plain(&x, &weight, &bias, &options, padding);
        let got = y.to_vec::<f64>()?;
        assert!(
            got.len() == want.len() && got.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-12),
            "{options:?}"
        );
        let f = |inputs: &[Tensor]| {
            let padding = Padding::Zeros(padding);
            let options =
                Conv1dOptions { bias: Some((&inputs[2]).into()), stride, padding, dilation, groups };
            F::conv1d_with(&inputs[0], &inputs[1], options)
        };
        let inputs = [numbers(&[1, 4, 7]), weight.clone(), bias.clone()];
        gradcheck(f, &inputs)?;
        gradgradcheck(f, &inputs)?;
    }
    Ok(())
}

#[test]
fn names_and_sizes() -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 3), ("time", 8)])?;
    let weight = Tensor::ones([("features", 5), ("C", 3), ("tap", 4)])?;
    let y = F::conv1d_with(&x, &weight, Conv1dOptions::new().padding(Padding::Same))?;
    assert_eq!(y.shape().to_string(), "[N=2, features=5, time=8]");
    let one = F::conv1d(&x.select("N", 0)?, &weight)?;
    assert_eq!(one.shape().to_string(), "[features=5, time=5]");
    Ok(())
}

#[test]
fn bad_input() -> Result<()> {
    let (x, weight) = (Tensor::ones([1, 4, 5])?, Tensor::ones([2, 4, 3])?);
    let kind = |x: &Tensor, weight: &Tensor, options: Conv1dOptions<'_>| {
        F::conv1d_with(x, weight, options).unwrap_err().kind()
    };
    let options = Conv1dOptions::new;
    assert_eq!(kind(&x, &Tensor::ones([2, 3, 3])?, options()), ErrorKind::Shape);
    assert_eq!(kind(&x, &Tensor::ones([2, 4])?, options()), ErrorKind::Shape);
    assert_eq!(kind(&x, &Tensor::ones([2, 4, 6])?, options()), ErrorKind::Shape);
    assert_eq!(kind(&x, &Tensor::ones([2, 4, 0])?, options()), ErrorKind::Shape);
    assert_eq!(kind(&Tensor::ones([4])?, &weight, options()), ErrorKind::Shape);
    for broken in [options().stride(0), options().dilation(0), options().groups(0)] {
        assert_eq!(kind(&x, &weight, broken), ErrorKind::Value);
    }
    assert_eq!(kind(&x, &weight, options().stride(2).padding(Padding::Same)), ErrorKind::Value);
    Ok(())
}
