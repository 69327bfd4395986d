//! Convolutions of sizes that fill several blocks against plain loops, names, and invalid input.

use namegrad::autograd::{gradcheck, gradgradcheck};
use namegrad::nn::PaddingMode;
use namegrad::prelude::*;
use namegrad::{Winograd, set_winograd};

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
    fn call(&self, x: &Tensor, weight: &Tensor, bias: &Tensor) -> Result<Tensor> {
        let options = Conv2dOptions::new().stride(self.stride).padding(self.padding).bias(bias);
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
        (Slide { padding: [1, 0], ..plain }, [2, 17, 13, 19], [18, 17, 3, 3]),
        (Slide { padding: [4, 1], ..plain }, [1, 16, 16, 15], [16, 16, 3, 3]),
        (Slide { stride: [2, 3], padding: [1, 2], groups: 6, ..plain }, [2, 6, 11, 17], [6, 1, 3, 3]),
        (Slide { padding: [2, 1], dilation: [2, 1], groups: 3, ..plain }, [1, 3, 7, 20], [3, 1, 3, 2]),
        (plain, [0, 16, 20, 20], [16, 16, 3, 3]),
        // Several blocks of rows, of columns and of channels.
        (Slide { padding: [2, 2], ..plain }, [1, 24, 31, 40], [6, 24, 5, 5]),
        (Slide { stride: [2, 2], padding: [3, 3], ..plain }, [2, 3, 62, 70], [5, 3, 7, 7]),
        (Slide { padding: [0, 4], dilation: [1, 2], ..plain }, [1, 9, 1, 1300], [10, 9, 1, 5]),
        (Slide { stride: [1, 2], groups: 2, ..plain }, [2, 34, 9, 50], [20, 17, 2, 3]),
    ];
    for (slide, x_sizes, weight_sizes) in cases {
        let x = numbers(&x_sizes).requiring_grad()?;
        let weight = numbers(&weight_sizes).requiring_grad()?;
        let bias = numbers(&weight_sizes[..1]);
        let y = slide.call(&x, &weight, &bias)?;
        let g = numbers(y.sizes()).mul(0.5)?;
        y.backward_with(Some(&g), BackwardOptions::default())?;
        let [x_data, w_data, g_data] = [&x, &weight, &g].map(|x| x.to_vec::<f64>().unwrap());
        let start = bias.reshape([-1, 1, 1])?.expand(y.sizes())?.to_vec::<f64>()?;
        let mut want = [start, vec![0.0; x.numel()], vec![0.0; weight.numel()]];
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
        // In `f32`, which has other loops.
        let single = [&x, &weight].map(|x| x.detach().to(DType::F32)?.requiring_grad());
        let [x, weight] = single.map(Result::unwrap);
        let y = slide.call(&x, &weight, &bias.to(DType::F32)?)?;
        y.backward_with(Some(&g.to(DType::F32)?), BackwardOptions::default())?;
        for (which, (got, want)) in
            [y, x.grad().unwrap(), weight.grad().unwrap()].iter().zip(&want).enumerate()
        {
            let got = got.to(DType::F64)?.to_vec::<f64>()?;
            let apart = got.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(got.len() == want.len() && apart < 1e-3, "{slide:?} {which} in f32: {apart}");
        }
    }
    Ok(())
}

/// Without tiles, a convolution by a kernel of 3 × 3 has the errors of a sum of products.
#[test]
fn convolutions_without_tiles() -> Result<()> {
    let (x, weight) = (numbers(&[1, 16, 18, 18]), numbers(&[16, 16, 3, 3]));
    let exact = F::conv2d(&x, &weight)?;
    // The sums of 144 products are of numbers up to 1.
    for (tiles, most) in [(Winograd::TwoByTwo, 1e-4), (Winograd::Off, 2e-5), (Winograd::FourByFour, 2e-4)] {
        set_winograd(tiles);
        let y = F::conv2d(&x.to(DType::F32)?, &weight.to(DType::F32)?)?;
        let (y, exact) = (y.to(DType::F64)?.to_vec::<f64>()?, exact.to_vec::<f64>()?);
        let apart = y.iter().zip(&exact).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(apart < most, "{tiles:?}: {apart}");
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
        // <y, z> = <x, conv(z)>, where conv(z) has a few more places if the output padding exceeds the
        // stride.
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

/// In `bf16`, products are exact in `f32`, and sums are rounded once.
#[test]
fn half_types_are_those_of_floats_rounded() -> Result<()> {
    let slides = [
        (
            [2, 6, 17, 19],
            [8, 6, 3, 3],
            Slide { stride: [1, 1], padding: [1, 1], dilation: [1, 1], groups: 1 },
        ),
        (
            [2, 6, 17, 19],
            [8, 3, 3, 2],
            Slide { stride: [2, 3], padding: [2, 0], dilation: [1, 2], groups: 2 },
        ),
        (
            [3, 40, 9, 70],
            [33, 40, 1, 1],
            Slide { stride: [1, 1], padding: [0, 0], dilation: [1, 1], groups: 1 },
        ),
        (
            [1, 1, 30, 30],
            [5, 1, 5, 5],
            Slide { stride: [1, 2], padding: [0, 3], dilation: [2, 1], groups: 1 },
        ),
    ];
    for dtype in [DType::BF16, DType::F16] {
        let near = |found: &Tensor, expected: &Tensor, what: &str| -> Result<()> {
            assert_eq!((found.dtype(), found.sizes()), (dtype, expected.sizes()));
            let (found, expected) = (found.to_vec::<f64>()?, expected.to_vec::<f64>()?);
            let largest = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
            for (found, expected) in found.into_iter().zip(expected) {
                let bound = expected.abs() / 200.0 + largest * 1e-6;
                assert!((found - expected).abs() <= bound, "{dtype} {what}: {found} is not {expected}");
            }
            Ok(())
        };
        for (x, weight, slide) in slides {
            let half = |sizes: &[usize]| numbers(sizes).to(dtype);
            let (x, weight, bias) = (half(&x)?, half(&weight)?, half(&weight[..1])?);
            let options = || {
                let options = Conv2dOptions::new().stride(slide.stride).padding(slide.padding);
                options.dilation(slide.dilation).groups(slide.groups)
            };
            let run = |dtype: DType, with_bias: bool| -> Result<[Tensor; 3]> {
                let [x, weight, bias] = [&x, &weight, &bias].map(|x| x.to(dtype).unwrap());
                let [x, weight] = [x, weight].map(|x| Parameter::new(x).unwrap());
                let options = if with_bias { options().bias(&bias) } else { options() };
                let y = F::conv2d_with(&x.tensor(), weight.tensor(), options)?;
                y.backward_with(
                    Some(&numbers(y.sizes()).to(DType::BF16)?.to(dtype)?),
                    BackwardOptions::new(),
                )?;
                Ok([y.detach(), x.grad().unwrap(), weight.grad().unwrap()])
            };
            for with_bias in [false, true] {
                let (found, expected) = (run(dtype, with_bias)?, run(DType::F64, with_bias)?);
                for ((found, expected), what) in
                    found.iter().zip(&expected).zip(["output", "input", "weight"])
                {
                    near(found, expected, &format!("{what} of {slide:?}"))?;
                }
            }
        }
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
    let weight = Tensor::ones([("features", 5), ("C", 3), ("time", 4)])?;
    let y = F::conv1d_with(&x, &weight, Conv1dOptions::new().padding(Padding::Same))?;
    assert_eq!(y.shape().to_string(), "[N=2, features=5, time=8]");
    let one = F::conv1d(&x.select("N", 0)?, &weight)?;
    assert_eq!(one.shape().to_string(), "[features=5, time=5]");

    // A dim of the kernel that `x` lacks does not slide along another one, nor is a bias of other features
    // taken.
    let other = weight.rename([("time", "tap")])?;
    let error = F::conv1d(&x, &other).unwrap_err();
    assert_eq!(error.repair(), Some("weight.rename([(\"tap\", \"time\")])?, if both mean the same"));
    assert!(F::conv1d(&x, &other.rename([("tap", "time")])?).is_ok());
    let bias = Tensor::ones([("feature", 5)])?;
    let error = F::conv1d_with(&x, &weight, Conv1dOptions::new().bias(&bias)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NameMismatch);
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
            F::conv_transpose2d_with(x, &back, ConvTranspose2dOptions::new().stride(vec![1_usize, 2]))?,
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
    let twice = Tensor::ones([("N", 2), ("C", 4), ("time", 3)])?;
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

/// Every layer finds its dims in any order, takes more dims, and equals the function by position.
#[test]
fn layers_find_their_dims() -> Result<()> {
    manual_seed(0);
    let x = Tensor::randn([("N", 2), ("C", 4), ("H", 6), ("W", 5)])?;
    let layers: Vec<(Box<dyn Layer>, &str)> = vec![
        (Box::new(Conv2d::new(("C", 4), ("F", 6), [("H", 3), ("W", 2)])?), "[N=2, F=6, H=4, W=4]"),
        (
            Box::new(
                Conv2d::builder(("C", 4), ("C", 8), [("W", 2), ("H", 3)]).stride([1, 2]).groups(2).build()?,
            ),
            "[N=2, C=8, H=2, W=4]",
        ),
        (
            Box::new(
                Conv2d::builder(("C", 4), ("F", 3), [("H", 2), ("W", 3)])
                    .padding(Padding::Same)
                    .bias(false)
                    .build()?,
            ),
            "[N=2, F=3, H=6, W=5]",
        ),
        (
            Box::new(Conv1d::builder(("C", 4), ("F", 2), [("W", 3)]).padding(1).build()?),
            "[N=2, F=2, H=6, W=5]",
        ),
        (
            Box::new(
                ConvTranspose2d::builder(("C", 4), ("F", 2), [("H", 3), ("W", 2)])
                    .stride(2)
                    .output_padding([1, 0])
                    .build()?,
            ),
            "[N=2, F=2, H=14, W=10]",
        ),
        (
            Box::new(ConvTranspose1d::builder(("C", 4), ("C", 4), [("H", 3)]).groups(2).padding(1).build()?),
            "[N=2, C=4, H=6, W=5]",
        ),
    ];
    for (layer, shape) in &layers {
        let want = layer.forward(&x)?;
        assert_eq!(want.shape().to_string(), *shape, "{}", layer.describe());
        for order in [["W", "N", "H", "C"], ["H", "C", "W", "N"], ["C", "N", "H", "W"]] {
            let got = layer.forward(&x.align_to(order)?)?;
            let made = order.map(|name| {
                if name == "C" { want.names().iter(4).nth(1).unwrap().unwrap().as_str() } else { name }
            });
            assert_eq!(*got.names(), made);
            assert!(
                got.align_as(&want)?.allclose_with(&want, IscloseOptions::new().atol(1e-5))?,
                "{}",
                layer.describe()
            );
        }
        let video = Tensor::stack([&x, &x], 0)?.rename(["time", "N", "C", "H", "W"])?;
        let got = layer.forward(&video)?;
        assert!(got.select("time", 1)?.allclose_with(&want, IscloseOptions::new().atol(1e-5))?);
        want.sum(..)?.backward()?;
        assert!(layer.parameters().iter().all(|parameter| parameter.grad().is_some()));
    }
    let layer = Conv2d::new(4, 6, [3, 2])?;
    let (weight, bias) = (layer.weight().tensor(), layer.bias().unwrap().tensor());
    let want = F::conv2d_with(&x.rename(None)?, &weight, Conv2dOptions::new().bias(&bias))?;
    assert!(layer.forward(&x.rename(None)?)?.allclose(&want)?);
    assert_eq!(layer.to_string().matches("weight").count(), 1);
    Ok(())
}

#[test]
fn parameters_start_as_in_pytorch() -> Result<()> {
    manual_seed(0);
    // The fan is what one element of the output sums over: 8 / 2 channels times 3 times 5.
    let layer = Conv2d::builder(("C", 8), ("F", 30), [("H", 3), ("W", 5)]).groups(2).build()?;
    for parameter in layer.parameters() {
        let (bound, largest) = (1.0 / 60f64.sqrt(), parameter.tensor().abs()?.amax(..)?.item::<f64>()?);
        assert!(largest <= bound && largest > 0.9 * bound, "{largest} {bound}");
    }
    assert_eq!(layer.weight().tensor().shape().to_string(), "[F=30, C=4, H=3, W=5]");
    assert_eq!(
        layer.named_parameters().iter().map(|(path, _)| &path[..]).collect::<Vec<_>>(),
        ["weight", "bias"]
    );
    // PyTorch takes the second dim of the weight for the fan here too.
    let layer = ConvTranspose2d::new(("C", 30), ("F", 4), [("H", 3), ("W", 5)])?;
    let largest = layer.weight().tensor().abs()?.amax(..)?.item::<f64>()?;
    assert!(largest <= 1.0 / 60f64.sqrt() && largest > 0.9 / 60f64.sqrt());
    Ok(())
}

#[test]
fn padding_with_elements_of_the_input() -> Result<()> {
    let x = Tensor::new([[1.0, 2.0, 3.0, 4.0]])?.refine_names(["C", "time"])?;
    let modes = [
        (PaddingMode::Zeros, [0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 0.0, 0.0]),
        (PaddingMode::Reflect, [3.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0, 2.0]),
        (PaddingMode::Replicate, [1.0, 1.0, 1.0, 2.0, 3.0, 4.0, 4.0, 4.0]),
        (PaddingMode::Circular, [3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0, 2.0]),
    ];
    for (mode, padded) in modes {
        let layer = Conv1d::builder(("C", 1), ("F", 1), [("time", 2)])
            .padding(2)
            .padding_mode(mode)
            .bias(false)
            .build()?;
        let weight = layer.weight().tensor().to_vec::<f32>()?;
        let want: Vec<f32> = padded.windows(2).map(|two| weight[0] * two[0] + weight[1] * two[1]).collect();
        let got = layer.forward(&x)?.to_vec::<f32>()?;
        assert!(
            got.len() == 7 && got.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-5),
            "{mode:?}: {got:?} {want:?}"
        );
    }
    let wide = Conv1d::builder(("C", 1), ("F", 1), [("time", 2)])
        .padding(4)
        .padding_mode(PaddingMode::Reflect)
        .build()?;
    assert_eq!(wide.forward(&x).unwrap_err().kind(), ErrorKind::Value);
    Ok(())
}

#[test]
fn bad_input_of_layers() -> Result<()> {
    #[derive(Module)]
    struct Model {
        first: Conv2d,
    }
    let model = Model { first: Conv2d::new(("C", 3), ("F", 4), [("H", 3), ("W", 3)])? };
    let said = |x: &Tensor| {
        let error = model.first.forward(x).unwrap_err();
        assert_eq!((error.op(), error.location().file()), ("Conv2d", file!()), "{error}");
        (error.kind(), error.message().to_string())
    };
    model.summary(); // gives the layers their paths
    let (kind, text) = said(&Tensor::ones([("N", 2), ("C", 5), ("H", 4), ("W", 4)])?);
    assert_eq!(kind, ErrorKind::Shape);
    assert!(text.contains("(C=3 -> F=4, H=3, W=3) needs 3 elements in the dim 'C', got 5"), "{text}");
    assert_eq!(said(&Tensor::ones([("N", 2), ("C", 3), ("H", 2), ("W", 4)])?).0, ErrorKind::Shape);
    assert_eq!(said(&Tensor::ones([("N", 2), ("color", 3), ("H", 4), ("W", 4)])?).0, ErrorKind::NameNotFound);
    assert_eq!(said(&Tensor::ones([("N", 2), ("C", 3), ("H", 4), ("time", 4)])?).0, ErrorKind::NameNotFound);
    assert_eq!(said(&Tensor::ones([("F", 2), ("C", 3), ("H", 4), ("W", 4)])?).0, ErrorKind::DuplicateName);
    assert_eq!(said(&Tensor::ones([("C", 3), ("H", 4), ("W", 4)])?.to(DType::F64)?).0, ErrorKind::DType);
    let kind = |builder: namegrad::nn::ConvBuilder<1>| builder.build().unwrap_err().kind();
    let builder = || Conv1d::builder(("C", 4), ("F", 6), [("time", 3)]);
    assert_eq!(kind(builder().groups(4)), ErrorKind::Value);
    assert_eq!(kind(builder().groups(0)), ErrorKind::Value);
    assert_eq!(kind(builder().dtype(DType::I64)), ErrorKind::DType);
    assert_eq!(kind(Conv1d::builder(("C", 4), ("F", 6), [("C", 3)])), ErrorKind::DuplicateName);
    assert_eq!(kind(Conv1d::builder(("C", 4), ("F", 6), [("time", 0)])), ErrorKind::Value);
    Ok(())
}

#[test]
fn a_large_dilation_overflowed() -> Result<()> {
    let (x, weight) = (Tensor::ones([1, 1, 4])?, Tensor::ones([1, 1, 3])?);
    let error = F::conv1d_with(&x, &weight, Conv1dOptions::new().dilation(usize::MAX)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    assert!(F::conv1d_with(&x, &weight, Conv1dOptions::new().groups(usize::MAX)).is_err());
    Ok(())
}

#[test]
fn convolutions_that_fit_no_input_were_made() -> Result<()> {
    let conv = || Conv2d::builder(("C", 3), ("F", 4), [("H", 3), ("W", 3)]);
    let same = namegrad::core::args::Padding::Same;
    // A list of another length says nothing of the numbers that are meant.
    let longer = conv().stride([1, 2, 3]).build().unwrap_err();
    assert_eq!(longer.message(), "`stride` must be one number or 2, one for each dim, got [1, 2, 3]");
    assert_eq!(longer.repair(), None);
    for (made, message, repair) in [
        (conv().stride(0).build(), "`stride` must be at least 1, got [0, 0]", ".stride(1)"),
        (conv().dilation([1, 0]).build(), "`dilation` must be at least 1, got [1, 0]", ".dilation(1)"),
        (conv().padding(-1).build(), "`padding` must not be negative, got -1", ".padding(0)"),
        (
            conv().stride(2).padding(same).build(),
            "padding of the same size needs a stride of 1, got [2, 2]",
            ".stride(1)",
        ),
    ] {
        let error = made.unwrap_err();
        assert_eq!((error.op(), error.message(), error.repair()), ("Conv2d", message, Some(repair)));
        assert_eq!(error.location().file(), file!());
    }
    let transposed = ConvTranspose2d::builder(("C", 3), ("F", 4), [("H", 3), ("W", 3)]).stride(0).build();
    assert_eq!(transposed.unwrap_err().op(), "ConvTranspose2d");
    Ok(())
}

#[test]
fn many_groups_of_no_channels_and_huge_strides_were_panics_or_endless() -> Result<()> {
    let none = Tensor::zeros([0, 3])?;
    let options = ConvolutionWeightOptions::new().groups(usize::MAX);
    let error = none.convolution_weight_with(&none, 1, options).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Shape, file!()));
    let error = Tensor::zeros([3, 0])?.standardize(1, 0, usize::MAX).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Shape, file!()));
    let x = Tensor::zeros([1, 2, 3])?;
    let options = MaxUnpool1dOptions::new().stride(isize::MAX as usize).output_size(0);
    let error = F::max_unpool1d_with(&x, &x.to(DType::I64)?, isize::MAX as usize, options).unwrap_err();
    assert_eq!(error.location().file(), file!());
    Ok(())
}

/// Strides, paddings and dilations by the name of a dim, in any order.
#[test]
fn numbers_by_name() -> Result<()> {
    let (kernel, x) = ([("H", 3), ("W", 2)], Tensor::randn([("N", 2), ("W", 9), ("C", 4), ("H", 11)])?);
    let builder = || Conv2d::builder(("C", 4), ("F", 2), kernel);
    // Pairs are an array, a slice or a `Vec`, of any text.
    let pairs = vec![("W".to_string(), 1_usize), ("H".to_string(), 2)];
    let conv = builder().stride(&pairs).padding(("W", 1)).dilation(vec![("W", 3)]).build()?;
    let height = [("H".to_string(), 2_usize)];
    for conv in [
        builder().stride(&pairs[..]),
        builder().stride(pairs.clone()),
        builder().stride(&height),
        builder().stride(height),
    ] {
        assert!(conv.build()?.to_string().contains("stride=[2, 1]"));
    }
    assert_eq!(
        conv.to_string().lines().next().map(|line| line.contains("stride=[2, 1], padding=[0, 1]")),
        Some(true)
    );
    let (weight, bias) = (conv.weight().tensor(), conv.bias().unwrap().tensor());
    let options = Conv2dOptions::new().stride([2, 1]).padding([0, 1]).dilation([1, 3]).bias(&bias);
    let expected = F::conv2d_with(&x, &weight, options)?;
    assert!(conv.forward(&x)?.equal(&expected)?);
    let options = Conv2dOptions::new().stride(("H", 2)).padding([("W", 1)]).dilation(("W", 3)).bias(&bias);
    assert!(F::conv2d_with(&x, &weight, options)?.equal(&expected)?);
    // The names of the input, where the weight has none.
    let images = x.align_to(["N", "C", "H", "W"])?;
    let options = Conv2dOptions::new().stride(("H", 2)).padding([("W", 1)]).dilation(("W", 3)).bias(&bias);
    let found = F::conv2d_with(&images, &weight.rename(None)?, options)?;
    assert!(found.rename(None)?.equal(&expected.align_to(["N", "F", "H", "W"])?.rename(None)?)?);

    let up = ConvTranspose2d::builder(("C", 4), ("F", 2), kernel)
        .stride([("W", 3), ("H", 2)])
        .padding(("H", 1))
        .output_padding(("W", 2))
        .build()?;
    let (weight, up_bias) = (up.weight().tensor(), up.bias().unwrap().tensor());
    let options = ConvTranspose2dOptions::new().stride([2, 3]).padding([1, 0]).output_padding([0, 2]);
    let expected = F::conv_transpose2d_with(&x, &weight, options.bias(&up_bias))?;
    assert!(up.forward(&x)?.equal(&expected)?);
    let options = ConvTranspose2dOptions::new().stride([("W", 3), ("H", 2)]).padding(("H", 1));
    let options = options.output_padding(("W", 2)).bias(&up_bias);
    assert!(F::conv_transpose2d_with(&x, &weight, options)?.equal(&expected)?);
    assert_eq!(up.forward_to(&x, [("W", 27), ("H", 22)])?.shape().to_string(), "[N=2, W=27, F=2, H=22]");

    let refused = |built: Result<Conv2d>, kind: ErrorKind, words: &str| {
        let error = built.unwrap_err();
        assert!(error.kind() == kind && error.message().contains(words), "{error}");
        assert_eq!(error.location().file(), file!());
    };
    let dims = "; the dims of the windows are 'H', 'W'";
    refused(
        builder().stride(("Z", 2)).build(),
        ErrorKind::NameNotFound,
        &format!("`stride` has a number for 'Z'{dims}"),
    );
    let twice = builder().dilation([("H", 2), ("H", 1)]).build();
    refused(twice, ErrorKind::DuplicateName, &format!("`dilation` has the dim 'H' twice{dims}"));
    refused(builder().padding(("1st", 1)).build(), ErrorKind::InvalidName, "whose name is not valid");
    refused(builder().stride(("H", 0)).build(), ErrorKind::Value, "`stride` must be at least 1, got [0, 1]");
    refused(builder().padding(("H", -1)).build(), ErrorKind::Value, "must not be negative, got [-1, 0]");
    let unnamed = Conv2d::builder(4, 2, [3, 2]).stride(("H", 2)).build();
    refused(unnamed, ErrorKind::NameNotFound, "the dims of the windows are an unnamed dim, an unnamed dim");
    let many = builder().stride([("H", 1), ("W", 1), ("a", 1), ("b", 1), ("c", 1), ("d", 1)]).build();
    refused(many, ErrorKind::NameNotFound, "has a number for 'a'");
    // The op itself knows no names of dims.
    let options = ConvolutionOptions::new().stride(("H", 2));
    let error = images.convolution_with(&weight.rename(None)?, options).unwrap_err();
    assert!(error.message().contains("in the order of the dims here, not [H=2]"), "{error}");
    Ok(())
}

/// The error of images without names whose channels are last says that, and its repair works.
#[test]
fn images_without_names_with_channels_last() -> Result<()> {
    let conv = Conv2d::new(("C", 3), ("F", 4), [("H", 3), ("W", 3)])?;
    let x = Tensor::rand([2, 32, 16, 3])?;
    let error = conv.forward(&x).unwrap_err();
    let words = "needs 3 elements in dim 1, got 32; the input has no names, by which it would be found; is dim 3 'C'?";
    assert!(error.message().contains(words), "{error}");
    assert_eq!(error.repair(), Some("x.refine_names([\"...\", \"C\"])?"));
    let y = conv.forward(&x.refine_names(["...", "C"])?)?;
    assert_eq!(y.shape().to_string(), "[?=2, ?=30, ?=14, F=4]");
    let named = conv.forward(&x.refine_names(["N", "H", "W", "C"])?)?;
    assert!(named.rename(None)?.equal(&y.rename(None)?)?);
    Ok(())
}

#[test]
fn a_rename_to_a_name_that_the_weight_has_was_suggested() -> Result<()> {
    let x = Tensor::ones([("N", 2), ("H", 6), ("W", 6), ("C", 3)])?;
    let weight = Tensor::ones([("H", 3), ("W", 3), ("C", 3), ("F", 4)])?;
    let error = F::conv2d(&x, &weight).unwrap_err();
    assert_eq!((error.kind(), error.repair()), (ErrorKind::NameNotFound, None), "{error}");
    let weight = weight.align_to(["F", "C", "H", "W"])?;
    assert_eq!(F::conv2d(&x, &weight)?.shape().to_string(), "[N=2, H=4, W=4, F=4]");
    let bias = Tensor::ones([("C", 4)])?;
    let error = F::conv2d_with(&x, &weight, Conv2dOptions::new().bias(&bias)).unwrap_err();
    assert_eq!(error.repair(), Some("bias.rename([(\"C\", \"F\")])?, if both names mean the same"));
    Ok(())
}
