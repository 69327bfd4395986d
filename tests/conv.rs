//! Convolutions of sizes that fill several blocks against plain loops, names, and invalid input.

use namegrad::autograd::{gradcheck, gradgradcheck};
use namegrad::prelude::*;

fn numbers(sizes: &[usize]) -> Tensor {
    let count: usize = sizes.iter().product();
    let numbers: Vec<f64> = (0..count).map(|i| ((i * 37 % 101) as f64 / 50.0 - 1.0).sin()).collect();
    Tensor::from_slice(&numbers, sizes.to_vec()).unwrap()
}

/// The arguments of a convolution over two dims.
#[derive(Clone, Copy, Debug)]
struct Slide {
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
    groups: usize,
}

impl Slide {
    fn call(&self, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
        let options = Conv2dOptions::new().stride(self.stride).padding(self.padding);
        F::conv2d_with(x, weight, options.dilation(self.dilation).groups(self.groups))
    }

    /// Calls `f` with the positions of the input, the weight and the output of each product.
    fn each_product(
        &self,
        x: &[usize],
        weight: &[usize],
        y: &[usize],
        mut f: impl FnMut(usize, usize, usize),
    ) {
        let Slide { stride, padding, dilation, groups } = *self;
        for (n, o, h, w) in positions([y[0], y[1], y[2], y[3]]) {
            for (_, c, i, j) in positions([1, weight[1], weight[2], weight[3]]) {
                let channel = o / (weight[0] / groups) * weight[1] + c;
                let row = (h * stride[0] + i * dilation[0]).checked_sub(padding[0]).filter(|at| *at < x[2]);
                let col = (w * stride[1] + j * dilation[1]).checked_sub(padding[1]).filter(|at| *at < x[3]);
                if let (Some(row), Some(col)) = (row, col) {
                    f(
                        ((n * x[1] + channel) * x[2] + row) * x[3] + col,
                        ((o * weight[1] + c) * weight[2] + i) * weight[3] + j,
                        ((n * y[1] + o) * y[2] + h) * y[3] + w,
                    );
                }
            }
        }
    }
}

fn positions([a, b, c, d]: [usize; 4]) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    (0..a).flat_map(move |i| {
        (0..b).flat_map(move |j| (0..c).flat_map(move |k| (0..d).map(move |l| (i, j, k, l))))
    })
}

/// The output and both gradients of convolutions whose matrices do not fill whole tiles, panels and blocks.
#[test]
fn large_convolutions() -> Result<()> {
    let plain = Slide { stride: [1, 1], padding: [0, 0], dilation: [1, 1], groups: 1 };
    let cases = [
        (plain, [2, 5, 13, 17], [19, 5, 3, 3]),
        (Slide { padding: [1, 1], ..plain }, [3, 20, 11, 9], [15, 20, 3, 3]),
        // More columns than a block of a product has, and rows at a distance of 4096 bytes.
        (Slide { padding: [0, 1], ..plain }, [1, 128, 6, 8], [3, 128, 4, 2]),
        (Slide { stride: [2, 3], padding: [2, 1], ..plain }, [2, 6, 20, 23], [7, 6, 5, 4]),
        (
            Slide { stride: [2, 1], padding: [3, 2], dilation: [2, 3], groups: 3 },
            [2, 6, 15, 16],
            [9, 2, 3, 2],
        ),
        (Slide { padding: [1, 1], groups: 8, ..plain }, [2, 8, 12, 10], [8, 1, 3, 3]),
        (plain, [3, 33, 9, 9], [17, 33, 1, 1]),
        (Slide { stride: [3, 3], ..plain }, [2, 4, 10, 11], [5, 4, 1, 1]),
        (plain, [2, 2, 40, 30], [3, 2, 2, 2]),
    ];
    for (slide, x_sizes, weight_sizes) in cases {
        let x = numbers(&x_sizes).requiring_grad()?;
        let weight = numbers(&weight_sizes).requiring_grad()?;
        let y = slide.call(&x, &weight)?;
        let g = numbers(y.sizes()).mul(0.5)?;
        y.backward_with(Some(&g), BackwardOptions::default())?;
        let [x_data, w_data, g_data] = [&x, &weight, &g].map(|x| x.to_vec::<f64>().unwrap());
        let mut want = [vec![0.0; y.numel()], vec![0.0; x.numel()], vec![0.0; weight.numel()]];
        slide.each_product(&x_sizes, &weight_sizes, y.sizes(), |i, j, k| {
            want[0][k] += x_data[i] * w_data[j];
            want[1][i] += g_data[k] * w_data[j];
            want[2][j] += g_data[k] * x_data[i];
        });
        let got = [y, x.grad().unwrap(), weight.grad().unwrap()];
        for (which, (got, want)) in got.iter().zip(&want).enumerate() {
            let got = got.to_vec::<f64>()?;
            let apart = got.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            // Sums of at most a few thousand products below 1.
            assert!(got.len() == want.len() && apart < 1e-10, "{slide:?} {which}: {apart}");
        }
        let single =
            slide.call(&x.to(DType::F32)?, &weight.to(DType::F32)?)?.to(DType::F64)?.to_vec::<f64>()?;
        assert!(single.iter().zip(&want[0]).all(|(a, b)| (a - b).abs() < 1e-3), "{slide:?} in f32");
    }
    Ok(())
}

#[test]
fn transposed_convolutions_are_the_gradients_of_convolutions() -> Result<()> {
    for (stride, padding, extra, dilation, groups) in
        [(1, 0, 0, 1, 1), (2, 1, 1, 1, 1), (3, 2, 1, 2, 2), (1, 0, 1, 2, 1), (2, 1, 2, 3, 1)]
    {
        let (x, weight) = (numbers(&[2, 4, 5, 3]), numbers(&[4, 6 / groups, 3, 2]));
        let options = ConvTranspose2dOptions::new().stride(stride).padding(padding).output_padding(extra);
        let y = F::conv_transpose2d_with(&x, &weight, options.dilation(dilation).groups(groups))?;
        let size = |length: usize, kernel: usize| {
            (length - 1) * stride + dilation * (kernel - 1) + extra + 1 - 2 * padding
        };
        assert_eq!(*y.sizes(), [2, 6, size(5, 3), size(3, 2)]);
        // <y, z> = <x, conv(z)>, where conv(z) has a few more places if the output padding exceeds the stride.
        let z = numbers(y.sizes());
        let options = Conv2dOptions::new().stride(stride).padding(padding).dilation(dilation).groups(groups);
        let back = F::conv2d_with(&z, &weight, options)?.narrow(2, 0, 5)?.narrow(3, 0, 3)?;
        let left = y.mul(&z)?.sum(..)?.item::<f64>()?;
        let right = x.mul(&back)?.sum(..)?.item::<f64>()?;
        assert!((left - right).abs() < 1e-10, "{left} {right}");
    }
    Ok(())
}

#[test]
fn gradients() -> Result<()> {
    for (stride, padding, dilation, groups) in
        [(1, 0, 1, 1), (2, 1, 1, 1), (1, 2, 2, 2), (3, 0, 1, 4), (2, 3, 3, 2)]
    {
        let f = |inputs: &[Tensor]| {
            let options =
                Conv1dOptions::new().stride(stride).padding(padding).dilation(dilation).groups(groups);
            F::conv1d_with(&inputs[0], &inputs[1], options.bias(&inputs[2]))
        };
        let inputs = [numbers(&[2, 4, 7]), numbers(&[4, 4 / groups, 3]), numbers(&[4])];
        gradcheck(f, &inputs)?;
        gradgradcheck(f, &inputs)?;
        let f = |inputs: &[Tensor]| {
            let options = ConvTranspose1dOptions::new().stride(stride).dilation(dilation).groups(groups);
            F::conv_transpose1d_with(&inputs[0], &inputs[1], options.bias(&inputs[2]))
        };
        let inputs = [numbers(&[2, 4, 3]), numbers(&[4, 2, 3]), numbers(&[2 * groups])];
        gradcheck(f, &inputs)?;
        gradgradcheck(f, &inputs)?;
    }
    Ok(())
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() -> Result<()> {
    let (x, weight) = (numbers(&[4, 16, 12, 12]).to(DType::F32)?, numbers(&[24, 16, 3, 3]).to(DType::F32)?);
    let run = || -> Result<[Vec<f32>; 3]> {
        let (x, weight) = (x.detach().requiring_grad()?, weight.detach().requiring_grad()?);
        let y = F::conv2d_with(&x, &weight, Conv2dOptions::new().padding(1))?;
        y.square()?.sum(..)?.backward()?;
        Ok([y.to_vec()?, x.grad().unwrap().to_vec()?, weight.grad().unwrap().to_vec()?])
    };
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(run)?;
    let three = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap().install(run)?;
    assert_eq!(alone, three);
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

/// Any order of the dims of a named input gives the same result by name, with any number of batch dims.
#[test]
fn dims_in_any_order() -> Result<()> {
    let names = ["N", "time", "C", "H", "W"];
    let x = numbers(&[2, 3, 4, 5, 6]).rename(names)?;
    let weight = numbers(&[2, 4, 3, 2]).rename(["F", "C", "H", "W"])?;
    let back = numbers(&[4, 2, 3, 2]).rename(["C", "F", "H", "W"])?;
    let each = |x: &Tensor| -> Result<[Tensor; 2]> {
        Ok([
            F::conv2d_with(x, &weight, Conv2dOptions::new().stride([1, 2]))?,
            F::conv_transpose2d_with(x, &back, ConvTranspose2dOptions::new().stride([1, 2]))?,
        ])
    };
    let want = each(&x)?;
    assert_eq!(want[0].shape().to_string(), "[N=2, time=3, F=2, H=3, W=3]");
    assert_eq!(want[1].shape().to_string(), "[N=2, time=3, F=2, H=7, W=12]");
    let image =
        F::conv2d_with(&x.select("N", 1)?.select("time", 2)?, &weight, Conv2dOptions::new().stride([1, 2]))?;
    assert!(image.allclose(want[0].select("N", 1)?.select("time", 2)?)?);
    for order in [["W", "C", "N", "H", "time"], ["C", "H", "W", "N", "time"], ["H", "time", "W", "C", "N"]] {
        for (got, want) in each(&x.align_to(order)?)?.iter().zip(&want) {
            let order = order.map(|name| if name == "C" { "F" } else { name });
            assert_eq!(*got.names(), order);
            assert!(got.align_as(want)?.allclose(want)?);
        }
    }
    Ok(())
}

#[test]
fn bad_input() -> Result<()> {
    let (x, weight) = (Tensor::ones([1, 4, 5])?, Tensor::ones([2, 4, 3])?);
    let kind = |x: &Tensor, weight: &Tensor, options: Conv1dOptions<'_>| {
        let error = F::conv1d_with(x, weight, options).unwrap_err();
        assert_eq!((error.op(), error.location().file()), ("conv1d", file!()));
        error.kind()
    };
    let options = Conv1dOptions::new;
    assert_eq!(kind(&x, &Tensor::ones([2, 3, 3])?, options()), ErrorKind::Shape);
    assert_eq!(kind(&x, &Tensor::ones([2, 4])?, options()), ErrorKind::Shape);
    assert_eq!(kind(&x, &Tensor::ones([2, 4, 6])?, options()), ErrorKind::Shape);
    assert_eq!(kind(&x, &Tensor::ones([2, 4, 0])?, options()), ErrorKind::Shape);
    assert_eq!(kind(&x, &Tensor::ones([3, 2, 2])?, options().groups(2)), ErrorKind::Shape);
    assert_eq!(kind(&Tensor::ones([4])?, &weight, options()), ErrorKind::Shape);
    assert_eq!(kind(&Tensor::ones([1, 1, 4, 5])?, &weight, options()), ErrorKind::Shape);
    for broken in [
        options().stride(0),
        options().dilation(0),
        options().groups(0),
        options().stride(-1),
        options().stride([1, 1]),
        options().padding([1, 1]),
    ] {
        assert_eq!(kind(&x, &weight, broken), ErrorKind::Value);
    }
    assert_eq!(kind(&x, &weight, options().stride(2).padding(Padding::Same)), ErrorKind::Value);
    let named = Tensor::ones([("N", 1), ("C", 4), ("time", 5)])?;
    let other = Tensor::ones([("F", 2), ("pixel", 4), ("tap", 3)])?;
    assert_eq!(kind(&named, &other, options()), ErrorKind::NameNotFound);
    let twice = Tensor::ones([("N", 2), ("C", 4), ("tap", 3)])?;
    assert_eq!(kind(&named, &twice, options()), ErrorKind::DuplicateName);
    let back = |options: ConvTranspose1dOptions<'_>| {
        F::conv_transpose1d_with(&x, &Tensor::ones([4, 2, 3])?, options).map(drop)
    };
    let options = ConvTranspose1dOptions::new;
    assert_eq!(back(options().output_padding(1)).unwrap_err().kind(), ErrorKind::Value);
    assert_eq!(back(options().padding(4)).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(back(options().stride(usize::MAX)).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(F::conv_transpose1d(&x, &weight).unwrap_err().kind(), ErrorKind::Shape);
    Ok(())
}
