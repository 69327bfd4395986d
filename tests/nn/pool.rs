//! Pooling functions and layers: names, padding, gradients, invalid input.

use namegrad::autograd::{gradcheck, gradgradcheck};
use namegrad::core::args::Windows;
use namegrad::nn::{AdaptiveMaxPool1d, FractionalMaxPool2d, LpPool2d};
use namegrad::prelude::*;

/// Numbers that all differ, so that no window has two largest ones.
fn numbers(sizes: &[usize]) -> Tensor {
    let count: usize = sizes.iter().product();
    let numbers: Vec<f64> = (0..count).map(|i| ((i * 7919) % 10007) as f64 / 5000.0 - 1.0).collect();
    Tensor::from_slice(&numbers, sizes.to_vec()).unwrap()
}

/// The largest and the mean of each window over one dim, from the definition.
fn plain(x: &[f64], size: usize, stride: usize, padding: usize, ceil: bool) -> (Vec<f64>, Vec<f64>) {
    let room = x.len() + 2 * padding - size;
    let mut count = if ceil { room.div_ceil(stride) } else { room / stride } + 1;
    if ceil && (count - 1) * stride >= x.len() + padding {
        count -= 1;
    }
    let window = |i: usize| -> Vec<f64> {
        let places = (i * stride..i * stride + size).filter_map(|at| at.checked_sub(padding));
        places.filter(|at| *at < x.len()).map(|at| x[at]).collect()
    };
    (0..count)
        .map(|i| {
            let all = window(i);
            let counted = size.min(x.len() + 2 * padding - i * stride);
            (all.iter().copied().fold(f64::MIN, f64::max), all.iter().sum::<f64>() / counted as f64)
        })
        .unzip()
}

#[test]
fn windows_with_padding_and_incomplete_ones() -> Result<()> {
    for length in 3..12 {
        let x = numbers(&[length]);
        let data = x.to_vec::<f64>()?;
        for (size, stride, padding) in [(2, 1, 0), (3, 2, 1), (3, 3, 1), (2, 3, 1), (3, 1, 0), (3, 5, 1)] {
            for ceil in [false, true] {
                let windows = Windows::sliding(size).stride(stride).padding(padding).ceil_mode(ceil);
                let (largest, means) = plain(&data, size, stride, padding, ceil);
                let found = x.max_pool(windows)?;
                assert_eq!(found.values.to_vec::<f64>()?, largest, "{length}: {windows:?}");
                let picked = x.index_select(&found.indices, 0)?;
                assert_eq!(picked.to_vec::<f64>()?, largest, "{length}: {windows:?}");
                let got = x.avg_pool(windows)?.to_vec::<f64>()?;
                let close = got.iter().zip(&means).all(|(a, b)| (a - b).abs() < 1e-12);
                assert!(got.len() == means.len() && close, "{length}: {windows:?}: {got:?} {means:?}");
            }
        }
    }
    Ok(())
}

/// With padding and dilation, the first element of a window may be before that of the window before it.
#[test]
fn windows_whose_first_elements_go_back() -> Result<()> {
    let x = Tensor::new([1.0, 2.0])?;
    let windows = Windows::sliding(2).stride(1).padding(1).dilation(2);
    assert_eq!(x.max_pool(windows)?.values.to_vec::<f32>()?, [2.0, 1.0]);
    assert_eq!(x.avg_pool(windows.count_include_pad(false))?.to_vec::<f32>()?, [2.0, 1.0]);
    Ok(())
}

#[test]
fn the_first_of_equal_elements_and_nan() -> Result<()> {
    let x = Tensor::new([1.0, 3.0, 3.0, 0.0, f64::NAN, 2.0])?;
    let found = x.max_pool(Windows::sliding(3))?;
    assert_eq!(found.indices.to_vec::<i64>()?, [1, 4]);
    assert!(found.values.to_vec::<f64>()?[1].is_nan());
    let lowest = Tensor::full([2], f64::NEG_INFINITY)?.max_pool(Windows::sliding(2))?;
    assert_eq!(lowest.indices.to_vec::<i64>()?, [0]);
    let x = Tensor::new([[1i64, 5, 9], [2, i64::MAX, 8]])?;
    let found = x.max_pool(Windows::sliding([2, 2]).stride(1))?;
    assert_eq!(found.values.to_vec::<i64>()?, [i64::MAX; 2]);
    assert_eq!(found.indices.to_vec::<i64>()?, [4, 4]);
    Ok(())
}

#[test]
fn gradients() -> Result<()> {
    let x = [numbers(&[2, 5, 6])];
    let overlapping = Windows::sliding([3, 2]).stride([1, 2]).padding(1);
    for windows in
        [Windows::sliding([2, 3]), overlapping, overlapping.ceil_mode(true), Windows::adaptive([2, 4])]
    {
        let max = |x: &[Tensor]| Ok(x[0].max_pool(windows)?.values);
        let mean = |x: &[Tensor]| x[0].avg_pool(windows);
        gradcheck(max, &x)?;
        gradgradcheck(max, &x)?;
        gradcheck(mean, &x)?;
        gradgradcheck(mean, &x)?;
    }
    let dilated = |x: &[Tensor]| Ok(x[0].max_pool(Windows::sliding([2, 2]).dilation(2).stride(1))?.values);
    gradcheck(dilated, &x)?;
    let counted = |x: &[Tensor]| x[0].avg_pool(overlapping.count_include_pad(false));
    gradcheck(counted, &x)?;
    let overridden = |x: &[Tensor]| x[0].avg_pool(overlapping.divisor_override(3));
    gradcheck(overridden, &x)?;
    let samples = numbers(&[1, 2, 2]).abs()?.mul(0.4)?;
    let fractional = |x: &[Tensor]| Ok(x[0].fractional_max_pool(&samples, 2, [3, 4])?.values);
    gradcheck(fractional, &x)?;
    gradgradcheck(fractional, &x)?;
    Ok(())
}

/// Every layer finds its dims in any order, and takes more dims.
#[test]
fn dims_in_any_order() -> Result<()> {
    let x = numbers(&[2, 3, 7, 8]).rename(["N", "C", "H", "W"])?;
    let dims = [("H", 2), ("W", 3)];
    let layers: Vec<Box<dyn Layer>> = vec![
        Box::new(MaxPool2d::new(dims)?),
        Box::new(MaxPool2d::builder(dims).stride([1, 2]).padding(1).ceil_mode(true).build()?),
        Box::new(AvgPool2d::builder(dims).stride(2).padding([0, 1]).count_include_pad(false).build()?),
        Box::new(AdaptiveMaxPool2d::new(dims)?),
        Box::new(AdaptiveAvgPool2d::new(dims)?),
        Box::new(LpPool2d::new(2.0, dims)?),
        Box::new(AvgPool1d::new([("W", 2)])?),
        Box::new(AdaptiveMaxPool1d::new([("H", 2)])?),
    ];
    for layer in &layers {
        let want = layer.forward(&x)?;
        assert_eq!(*want.names(), ["N", "C", "H", "W"]);
        for order in [["W", "N", "H", "C"], ["H", "W", "C", "N"], ["C", "W", "N", "H"]] {
            let got = layer.forward(&x.align_to(order)?)?;
            assert_eq!(*got.names(), order);
            assert!(got.align_as(&want)?.allclose(&want)?, "{}", layer.describe());
        }
        let video = Tensor::stack([&x, &x], 0)?.rename(["time", "N", "C", "H", "W"])?;
        assert!(layer.forward(&video)?.select("time", 1)?.allclose(&want)?);
    }
    let kept = F::adaptive_avg_pool2d(&x, [Some(2), None])?;
    assert!(kept.equal(&F::adaptive_avg_pool2d(&x, [2, 8])?)?);
    // Without names they are the last dims.
    let y = MaxPool2d::new([2, 3])?.forward(&x.rename(None)?)?;
    assert!(y.equal(&layers[0].forward(&x)?.rename(None)?)?);
    let turned = F::avg_pool2d_with(&x, [3, 2], AvgPool2dOptions::new().dims(["W", "H"]))?;
    assert!(turned.allclose(&F::avg_pool2d(&x, [2, 3])?)?);
    Ok(())
}

#[test]
fn the_largest_are_put_back() -> Result<()> {
    let x = numbers(&[2, 3, 4, 6]).rename(["N", "C", "H", "W"])?;
    let (pool, back) = (MaxPool2d::new([("H", 2), ("W", 2)])?, MaxUnpool2d::new([("H", 2), ("W", 2)])?);
    let found = pool.forward_with_indices(&x.align_to(["H", "N", "W", "C"])?)?;
    let put = back.forward(&found.values, &found.indices)?;
    assert_eq!(put.shape().to_string(), "[H=4, N=2, W=6, C=3]");
    let put = put.align_as(&x)?;
    assert!(put.eq(&x)?.logical_or(put.eq(0)?)?.all(..)?.is_nonzero()?);
    assert_eq!(put.ne(0)?.sum(..)?.item::<i64>()?, 2 * 3 * 2 * 3);
    let wider = back.forward_to(&found.values, &found.indices, [4, 7])?;
    assert_eq!(wider.shape().to_string(), "[H=4, N=2, W=7, C=3]");
    Ok(())
}

#[test]
fn random_windows() -> Result<()> {
    manual_seed(0);
    let x = numbers(&[2, 3, 9, 12]).rename(["N", "C", "H", "W"])?;
    let pool = FractionalMaxPool2d::to_size([("W", 3), ("H", 2)], [5, 4])?;
    let found = pool.forward_with_indices(&x)?;
    assert_eq!(found.values.shape().to_string(), "[N=2, C=3, H=4, W=5]");
    assert!(found.values.ge(x.amin(["H", "W"])?.unsqueeze(2)?.unsqueeze(3)?)?.all(..)?.is_nonzero()?);
    Ok(())
}

#[test]
fn folds() -> Result<()> {
    let x = numbers(&[2, 3, 5, 6]);
    for (kernel, dilation, padding, stride) in [([2, 3], 1, 0, 1), ([3, 2], 2, 1, 2), ([1, 1], 1, 2, 3)] {
        let weight = numbers(&[4, 3, kernel[0], kernel[1]]);
        let options = Conv2dOptions::new().dilation(dilation).padding(padding).stride(stride);
        let want = F::conv2d_with(&x, &weight, options)?;
        let columns = F::unfold(&x, kernel, dilation, padding, stride)?;
        let y = weight.reshape([4, 3 * kernel[0] * kernel[1]])?.matmul(&columns)?;
        assert!(y.reshape(want.sizes())?.allclose(&want)?);
        let f = |x: &[Tensor]| F::unfold(&x[0], kernel, dilation, padding, stride);
        gradcheck(f, std::slice::from_ref(&x))?;
        // <unfold(x), z> = <x, fold(z)>.
        let z = numbers(columns.sizes());
        let back = F::fold(&z, [5, 6], kernel, dilation, padding, stride)?;
        let (left, right) = (columns.mul(&z)?.sum(..)?, back.mul(&x)?.sum(..)?);
        assert!(left.allclose(&right)?);
    }
    Ok(())
}

#[test]
fn bad_input() -> Result<()> {
    let x = numbers(&[2, 3, 4]).rename(["N", "C", "time"])?;
    let kind = |result: Result<Tensor>| {
        let error = result.unwrap_err();
        assert_eq!(error.location().file(), file!(), "{error}");
        error.kind()
    };
    assert_eq!(kind(F::max_pool1d(&x, 5)), ErrorKind::Shape);
    assert_eq!(kind(F::max_pool1d(&x, 0)), ErrorKind::Value);
    assert_eq!(kind(F::max_pool1d(&x, -1)), ErrorKind::Value);
    assert_eq!(kind(F::max_pool1d(&x, [1, 2])), ErrorKind::Value);
    assert_eq!(kind(F::max_pool1d_with(&x, 2, MaxPool1dOptions::new().padding(2))), ErrorKind::Shape);
    assert_eq!(kind(F::max_pool1d_with(&x, 2, MaxPool1dOptions::new().stride(0))), ErrorKind::Value);
    assert_eq!(kind(F::max_pool1d_with(&x, 2, MaxPool1dOptions::new().dims("H"))), ErrorKind::NameNotFound);
    assert_eq!(kind(F::max_pool1d_with(&x, 2, MaxPool1dOptions::new().dims([0, 1]))), ErrorKind::Value);
    assert_eq!(kind(F::max_pool1d(&x.gt(0)?, 2)), ErrorKind::DType);
    assert_eq!(kind(F::avg_pool1d(&x.gt(0)?, 2)), ErrorKind::DType);
    assert_eq!(kind(F::max_pool3d(&x.select(0, 0)?, 2)), ErrorKind::Shape);
    let far = Tensor::full([2, 3, 4], 99)?;
    assert_eq!(kind(F::max_unpool1d(&x, &far, 2)), ErrorKind::Index);
    assert_eq!(kind(F::max_unpool1d(&x, far.narrow(2, 0, 3)?, 2)), ErrorKind::Shape);
    let plain = x.rename(None)?;
    let both = FractionalMaxPool2dOptions::new().output_size(2).output_ratio(0.5);
    assert_eq!(kind(F::fractional_max_pool2d_with(&plain, 2, both)), ErrorKind::Value);
    let more = FractionalMaxPool2dOptions::new().output_ratio(1.5);
    assert_eq!(kind(F::fractional_max_pool2d_with(&plain, 2, more)), ErrorKind::Value);
    let huge = F::adaptive_avg_pool1d(&x, isize::MAX as usize / 2);
    assert_eq!(kind(huge), ErrorKind::OutOfMemory);
    let pool = MaxPool2d::new([("H", 2), ("W", 2)])?;
    assert_eq!(kind(pool.forward(&x)), ErrorKind::NameNotFound);
    assert_eq!(MaxPool1d::new([("time", 0)]).unwrap_err().kind(), ErrorKind::Value);
    Ok(())
}

#[test]
fn the_divisor_of_a_mean_of_windows_could_not_be_negative_and_integers_had_no_mean() -> Result<()> {
    let x = Tensor::new([[[1.0, 3.0], [5.0, 7.0]]])?.requiring_grad()?;
    let y = F::avg_pool2d_with(&x, 2, AvgPool2dOptions::new().divisor_override(-2))?;
    assert_eq!(y.to_vec::<f32>()?, [-8.0]);
    y.sum(..)?.backward()?;
    assert_eq!(x.grad().expect("a gradient").to_vec::<f32>()?, [-0.5; 4]);
    let whole = F::avg_pool1d(&Tensor::new([[-1, -2, 3, 4]])?, 2)?; // rounded toward zero
    assert_eq!((whole.dtype(), whole.to_vec::<i64>()?), (DType::I64, vec![-1, 3]));
    Ok(())
}

#[test]
fn a_stride_of_zero_put_all_maxima_into_one_place() -> Result<()> {
    let (x, indices) = (Tensor::ones([1, 1, 2])?, Tensor::new([[[0, 1]]])?);
    let options = MaxUnpool1dOptions::new().stride(0);
    assert_eq!(F::max_unpool1d_with(&x, &indices, 2, options).unwrap_err().kind(), ErrorKind::Value);
    Ok(())
}

#[test]
fn lp_pooling_did_not_take_infinite_norms_or_incomplete_windows() -> Result<()> {
    let x = Tensor::new([[1.0, -5.0, 2.0]])?;
    let ceil = || LpPool1dOptions::new().ceil_mode(true);
    assert_eq!(F::lp_pool1d_with(&x, f64::INFINITY, 2, ceil())?.to_vec::<f32>()?, [5.0, 2.0]);
    assert_eq!(F::lp_pool1d_with(&x, f64::NEG_INFINITY, 2, ceil())?.to_vec::<f32>()?, [1.0, 2.0]);
    // The window of 2 alone counts as one of two such elements, as in PyTorch.
    let sums = F::lp_pool1d_with(&x.abs()?, 1.0, 2, ceil())?;
    assert_eq!(sums.to_vec::<f32>()?, [6.0, 4.0]);
    Ok(())
}

#[test]
fn pooling_by_position_took_tensors_without_channels() -> Result<()> {
    let kind = |y: Result<Tensor>| y.unwrap_err().kind();
    for sizes in [vec![4, 4], vec![1, 1, 1, 4, 4]] {
        let x = Tensor::ones(sizes)?;
        assert_eq!(kind(F::max_pool2d(&x, 2)), ErrorKind::Shape);
        assert_eq!(kind(F::avg_pool2d(&x, 2)), ErrorKind::Shape);
        assert_eq!(kind(F::adaptive_avg_pool2d(&x, 2)), ErrorKind::Shape);
    }
    assert_eq!(kind(F::max_pool1d(&Tensor::ones([0, 4])?, 1)), ErrorKind::Shape);
    // Names say which dims there are, so there can be any others.
    let x = Tensor::ones([("H", 4), ("W", 4)])?;
    assert_eq!(F::max_pool2d(&x, 2)?.sizes(), [2, 2]);
    let largest = Tensor::ones([1, 1, 4])?.max_pool(namegrad::core::args::Windows::sliding(2))?;
    let unpooled = |size: usize| {
        let options = MaxUnpool1dOptions::new().output_size(size);
        F::max_unpool1d_with(&largest.values, &largest.indices, 2, options)
    };
    assert_eq!(unpooled(5)?.sizes(), [1, 1, 5]);
    assert_eq!(kind(unpooled(6)), ErrorKind::Shape);
    Ok(())
}

#[test]
fn places_of_fractional_pooling_were_not_rounded_toward_zero() -> Result<()> {
    let x = Tensor::arange(0, 16, 1)?.to(DType::F32)?.reshape([1, 1, 16])?;
    let samples = Tensor::full([1, 1, 1], -0.7130395)?;
    let places = x.fractional_max_pool(&samples, 1, 8)?.values.to_vec::<f32>()?;
    assert_eq!(places, [0.0, 1.0, 3.0, 5.0, 8.0, 10.0, 12.0, 15.0]);
    Ok(())
}

#[test]
fn a_maximum_over_padding_alone_panicked_in_its_gradient() -> Result<()> {
    let kind = |result: Result<Tensor>| result.unwrap_err().kind();
    let x = Tensor::ones([2, 3, 0])?.requiring_grad()?;
    let padded = MaxPool1dOptions::new().padding(1);
    assert_eq!(kind(F::max_pool1d_with(&x, 2, padded)), ErrorKind::Shape);
    assert_eq!(kind(F::avg_pool1d_with(&x, 2, AvgPool1dOptions::new().padding(1))), ErrorKind::Shape);
    assert_eq!(kind(F::adaptive_max_pool1d(&x, 2)), ErrorKind::Shape);
    assert_eq!(kind(MaxPool1d::builder([2]).padding(1).build()?.forward(&x)), ErrorKind::Shape);
    // A batch can be empty.
    assert_eq!(F::max_pool1d(&Tensor::ones([0, 3, 4])?, 2)?.sizes(), [0, 3, 2]);
    Ok(())
}

#[test]
fn unpooling_ignored_the_names_of_the_indices() -> Result<()> {
    let x = Tensor::randn([("N", 2), ("C", 2), ("L", 2)])?;
    let indices = Tensor::new([[[0, 3], [1, 2]], [[0, 2], [1, 3]]])?;
    let put = |names: [&str; 3]| F::max_unpool1d(&x, &indices.rename(names)?, 2);
    let plain = F::max_unpool1d(&x, &indices, 2)?;
    assert!(put(["N", "C", "L"])?.equal(&plain)?);
    assert_eq!(put(["N", "L", "C"]).unwrap_err().op(), "max_unpool1d");
    assert_eq!(put(["x", "y", "z"]).unwrap_err().kind(), ErrorKind::NameMismatch);
    let layer = MaxUnpool1d::new([("L", 2)])?;
    let turned = [&x, &indices.rename(["N", "C", "L"])?].map(|x| x.align_to(["N", "L", "C"]).unwrap());
    assert!(layer.forward(&turned[0], &turned[1])?.align_as(&plain)?.equal(&plain)?);
    assert!(layer.forward(&turned[0], &indices.rename(["N", "C", "L"])?).is_err());
    Ok(())
}

/// Windows, steps and sizes of results by the name of a dim, in any order.
#[test]
fn numbers_by_name() -> Result<()> {
    let x = Tensor::randn([("N", 2), ("C", 3), ("H", 9), ("W", 8)])?;
    let moved = x.align_to(["W", "N", "H", "C"])?;
    let same = |found: Tensor, expected: &Tensor| -> Result<()> {
        assert!(found.align_to(["N", "C", "H", "W"])?.equal(expected)?);
        Ok(())
    };
    let options = || MaxPool2dOptions::new().padding([1, 0]).dilation([1, 2]);
    let expected = F::max_pool2d_with(&x, [3, 2], options().stride([3, 1]))?;
    let named = || MaxPool2dOptions::new().padding(("H", 1)).dilation([("W", 2)]);
    let (kernel, dims) = ([("W", 2), ("H", 3)], ["H", "W"]);
    same(F::max_pool2d_with(&x, kernel, named().stride(("W", 1)))?, &expected)?;
    same(F::max_pool2d_with(&moved, kernel, named().stride(("W", 1)).dims(dims))?, &expected)?;
    let layer = MaxPool2d::builder([("H", 3), ("W", 2)]);
    let layer = layer.stride(("W", 1)).padding(("H", 1)).dilation(("W", 2)).build()?;
    same(layer.forward(&moved)?, &expected)?;
    let windows = Windows::sliding(kernel).stride(("W", 1)).padding(("H", 1)).dilation(("W", 2));
    same(x.max_pool(windows)?.values, &expected)?;
    // Gradients have no names, and the windows are those of the input.
    let leaf = x.clone().requiring_grad()?;
    leaf.avg_pool(Windows::sliding(kernel).stride(("W", 1)))?.sum(..)?.backward()?;
    assert_eq!(leaf.grad().unwrap().sizes(), x.sizes());

    let expected = F::avg_pool2d_with(&x, [3, 2], AvgPool2dOptions::new().stride([3, 1]))?;
    same(
        F::avg_pool2d_with(&moved, kernel, AvgPool2dOptions::new().stride(("W", 1)).dims(dims))?,
        &expected,
    )?;
    let expected = F::lp_pool2d(&x.abs()?, 2.0, [3, 2])?;
    same(F::lp_pool2d_with(&moved.abs()?, 2.0, kernel, LpPool2dOptions::new().dims(dims))?, &expected)?;
    let expected = F::adaptive_avg_pool2d(&x, [9, 3])?;
    let adaptive = AdaptiveAvgPool2dOptions::new().dims(dims);
    same(F::adaptive_avg_pool2d_with(&moved, ("W", 3), adaptive)?, &expected)?;

    let picked = MaxPool2d::builder([("H", 2), ("W", 2)])
        .stride([("W", 3), ("H", 2)])
        .build()?
        .forward_with_indices(&x)?;
    let unpool = MaxUnpool2d::builder([("H", 2), ("W", 2)]).stride([("W", 3), ("H", 2)]).build()?;
    let back = unpool.forward_to(&picked.values, &picked.indices, [("W", 8), ("H", 9)])?;
    assert_eq!(back.sizes(), x.sizes());
    let options = MaxUnpool2dOptions::new().stride([("H", 2), ("W", 3)]).output_size([("W", 8), ("H", 9)]);
    assert!(F::max_unpool2d_with(&picked.values, &picked.indices, 2, options)?.equal(&back)?);
    let sizes = FractionalMaxPool2dOptions::new().output_size([("W", 3), ("H", 4)]);
    assert_eq!(
        F::fractional_max_pool2d_with(&x, ("H", 2), sizes.clone()).unwrap_err().kind(),
        ErrorKind::Value
    );
    assert_eq!(F::fractional_max_pool2d_with(&x, 2, sizes)?.sizes(), [2, 3, 4, 3]);

    let missing = F::max_pool2d(&x, ("H", 2)).unwrap_err();
    assert!(
        missing.message().contains("`kernel_size` has no number for 'W'; the dims of the windows are"),
        "{missing}"
    );
    let unknown = F::avg_pool2d(&x, [("H", 2), ("D", 2)]).unwrap_err();
    assert_eq!((unknown.kind(), unknown.op()), (ErrorKind::NameNotFound, "avg_pool2d"));
    assert!(MaxPool2d::builder([("H", 2), ("W", 2)]).stride([("C", 2)]).build().is_err());
    assert!(F::max_pool2d(&x.rename(None)?, kernel).is_err());
    Ok(())
}

/// Windows as columns and back, with numbers by name.
#[test]
fn unfold_and_fold_by_name() -> Result<()> {
    let x = Tensor::randn([("N", 2), ("C", 3), ("H", 5), ("W", 6)])?;
    let columns = F::unfold(&x, [2, 3], [2, 1], [0, 1], [1, 2])?;
    let named = F::unfold(&x, [("W", 3), ("H", 2)], ("H", 2), ("W", 1), ("W", 2))?;
    assert!(named.equal(&columns)?);
    let back = F::fold(&columns, [5, 6], [2, 3], [2, 1], [0, 1], [1, 2])?;
    let images = F::fold(&columns, [("H", 5), ("W", 6)], [("W", 3), ("H", 2)], ("H", 2), ("W", 1), ("W", 2))?;
    assert_eq!(images.shape().to_string(), "[N=2, ?=3, H=5, W=6]");
    assert!(images.rename(None)?.equal(&back.rename(None)?)?);

    let unfold = namegrad::nn::Unfold::builder("C", [("H", 2), ("W", 3)]).stride(("W", 2)).padding(("W", 1));
    let unfold = unfold.dilation(("H", 2)).build()?;
    assert!(unfold.forward(&x)?.rename(None)?.equal(&columns.rename(None)?)?);
    let fold =
        namegrad::nn::Fold::builder("C", [("H", 5), ("W", 6)], [2, 3]).stride(("W", 2)).padding(("W", 1));
    let fold = fold.dilation(("H", 2)).build()?;
    let columns = columns.refine_names(["N", "C", "window"])?;
    assert!(fold.forward(&columns)?.rename(None)?.equal(&back.rename(None)?)?);
    assert_eq!(F::fold(&columns, ("H", 5), 2, 1, 0, 1).unwrap_err().kind(), ErrorKind::Value);
    Ok(())
}

#[test]
fn windows_find_the_dims_that_they_name() -> Result<()> {
    let x = Tensor::randn([("N", 2), ("C", 3), ("H", 8), ("W", 6)])?;
    let images = x.align_to(["N", "H", "W", "C"])?;
    let same = |found: Result<Tensor>, expected: Result<Tensor>| -> Result<()> {
        let found = found?;
        assert_eq!(*found.names(), ["N", "H", "W", "C"]);
        assert!(found.align_to(["N", "C", "H", "W"])?.equal(&expected?)?);
        Ok(())
    };
    let kernel = [("W", 2), ("H", 4)];
    same(F::max_pool2d(&images, kernel), F::max_pool2d(&x, [4, 2]))?;
    same(F::avg_pool2d(&images, kernel), F::avg_pool2d(&x, [4, 2]))?;
    same(F::lp_pool2d(&images, 2.0, kernel), F::lp_pool2d(&x, 2.0, [4, 2]))?;
    same(F::adaptive_max_pool2d(&images, kernel), F::adaptive_max_pool2d(&x, [4, 2]))?;
    same(F::adaptive_avg_pool2d(&images, kernel), F::adaptive_avg_pool2d(&x, [4, 2]))?;
    let samples = Tensor::rand([2, 3, 2])?;
    let options = || FractionalMaxPool2dOptions::new().samples(&samples).output_size([3, 2]);
    same(
        F::fractional_max_pool2d_with(&images, kernel, options()),
        F::fractional_max_pool2d_with(&x, [4, 2], options()),
    )?;
    let largest = x.max_pool(Windows::sliding([4, 2]))?;
    let [values, indices] = [&largest.values, &largest.indices].map(|x| x.align_to(["N", "H", "W", "C"]));
    same(
        F::max_unpool2d(&values?, &indices?, kernel),
        F::max_unpool2d(&largest.values, &largest.indices, [4, 2]),
    )?;
    let steps = Tensor::randn([("N", 2), ("time", 8), ("C", 3)])?;
    for y in [F::max_pool1d(&steps, ("time", 2))?, F::avg_pool1d(&steps, ("time", 2))?] {
        assert_eq!(y.shape().to_string(), "[N=2, time=4, C=3]");
    }
    // Channels can be pooled by their name, and not because they are last.
    assert_eq!(F::max_pool1d(&steps, ("C", 3))?.sizes(), [2, 8, 1]);
    let grid = Tensor::zeros([2, 8, 6, 2])?;
    let wrong = [
        F::max_pool2d(&images, 2),
        F::avg_pool2d(&images, 2),
        F::lp_pool2d(&images, 2.0, 2),
        F::adaptive_avg_pool2d(&images, 1),
        F::fractional_max_pool2d_with(&images, 2, options()),
        F::max_unpool2d(&images, &images.to(DType::I64)?, 2),
        F::unfold(&images, 2, 1, 0, 1),
        F::grid_sample(&images, &grid),
        F::interpolate(&images, 4),
    ];
    for result in wrong {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misaligned, "{error}");
        assert_eq!(error.repair(), Some("x.movedim(\"C\", 1)?, or the names of the dims"), "{error}");
    }
    let error = F::max_pool2d(&images, [("H", 2), ("w", 2)]).unwrap_err();
    assert_eq!((error.kind(), error.repair()), (ErrorKind::NameNotFound, Some("\"W\"")), "{error}");
    let moved = images.movedim("C", 1)?;
    assert_eq!(F::max_pool2d(&moved, 2)?.shape().to_string(), "[N=2, C=3, H=4, W=3]");
    let error = F::max_pool2d(&x.select("N", 0)?.select("W", 0)?, 2).unwrap_err();
    assert_eq!((error.kind(), error.repair()), (ErrorKind::Misaligned, None));
    Ok(())
}
