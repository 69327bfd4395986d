//! Padding, resizing, sampling and unfolding of images: against slow references, by name, and invalid input.

use namegrad::autograd::{gradcheck, gradgradcheck};
use namegrad::core::args::Outside;
use namegrad::nn::{CircularPad, ConstantPad, Fold, FractionalMaxPool2d, ReflectionPad, ReplicationPad};
use namegrad::nn::{Unfold, Upsample, ZeroPad};
use namegrad::prelude::*;

use F::{InterpolateMode as Mode, PadMode, SampleMode};

/// Numbers that differ and have no simple ratios.
fn numbers(sizes: &[usize]) -> Tensor {
    let count: usize = sizes.iter().product();
    let numbers: Vec<f64> = (0..count).map(|i| ((i * 7919 + 13) % 10007) as f64 / 5000.0 - 1.0).collect();
    Tensor::from_slice(&numbers, sizes.to_vec()).unwrap()
}

fn close(got: &[f64], want: &[f64], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (at, (a, b)) in got.iter().zip(want).enumerate() {
        assert!((a - b).abs() < 1e-11 * (1.0 + b.abs()), "{what}: element {at} is {a}, not {b}");
    }
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    let error = result.unwrap_err();
    assert_eq!(error.location().file(), file!(), "{error}");
    error.kind()
}

// Resizing.

/// Keys' polynomials for `a = -3/4`, by the distance.
fn keys(at: f64) -> f64 {
    let (a, at) = (-0.75, at.abs());
    match at {
        _ if at <= 1.0 => (a + 2.0) * at.powi(3) - (a + 3.0) * at.powi(2) + 1.0,
        _ if at < 2.0 => a * at.powi(3) - 5.0 * a * at.powi(2) + 8.0 * a * at - 4.0 * a,
        _ => 0.0,
    }
}

/// The elements of a dim and their weights for output `i`, from the documentation of PyTorch's `interpolate`.
fn weights(mode: Mode, i: usize, n: usize, m: usize, align: bool, factor: Option<f64>) -> Vec<(usize, f64)> {
    let step = match align {
        true if m > 1 => (n - 1) as f64 / (m - 1) as f64,
        true => 0.0,
        false => factor.map_or(n as f64 / m as f64, |factor| 1.0 / factor),
    };
    let at = if align { step * i as f64 } else { step * (i as f64 + 0.5) - 0.5 };
    let edge = |k: i64| k.clamp(0, n as i64 - 1) as usize;
    match mode {
        Mode::Nearest => vec![(edge((step * i as f64 + 1e-9).floor() as i64), 1.0)],
        Mode::NearestExact => vec![(edge((step * (i as f64 + 0.5) + 1e-9).floor() as i64), 1.0)],
        Mode::Bicubic => {
            let first = at.floor() as i64;
            (first - 1..first + 3).map(|k| (edge(k), keys(at - k as f64))).collect()
        }
        Mode::Area => {
            let (first, last) = (i * n / m, ((i + 1) * n).div_ceil(m));
            (first..last).map(|k| (k, 1.0 / (last - first) as f64)).collect()
        }
        _ => {
            let at = at.clamp(0.0, n as f64 - 1.0);
            let first = at.floor();
            vec![(edge(first as i64), 1.0 - (at - first)), (edge(first as i64 + 1), at - first)]
        }
    }
}

#[test]
fn every_mode_is_its_formula() -> Result<()> {
    for (n, m) in [([3, 4], [5, 7]), ([5, 6], [2, 3]), ([4, 3], [4, 1]), ([1, 2], [3, 2]), ([7, 5], [6, 9])] {
        let x = numbers(&[2, 3, n[0], n[1]]);
        let data = x.to_vec::<f64>()?;
        for mode in [Mode::Nearest, Mode::NearestExact, Mode::Bilinear, Mode::Bicubic, Mode::Area] {
            for align in [false, true] {
                if align && !matches!(mode, Mode::Bilinear | Mode::Bicubic) {
                    continue;
                }
                let mut options = InterpolateOptions::new().mode(mode);
                if align {
                    options = options.align_corners(true);
                }
                let got = F::interpolate_with(&x, m, options)?;
                assert_eq!(got.sizes(), [2, 3, m[0], m[1]]);
                let mut want = Vec::new();
                for plane in data.chunks(n[0] * n[1]) {
                    for (i, j) in (0..m[0]).flat_map(|i| (0..m[1]).map(move |j| (i, j))) {
                        let (rows, columns) = (
                            weights(mode, i, n[0], m[0], align, None),
                            weights(mode, j, n[1], m[1], align, None),
                        );
                        let all = rows
                            .iter()
                            .flat_map(|(r, u)| columns.iter().map(move |(c, v)| plane[r * n[1] + c] * u * v));
                        want.push(all.sum());
                    }
                }
                close(&got.to_vec()?, &want, &format!("{mode:?} {n:?} to {m:?}, align {align}"));
            }
        }
    }
    Ok(())
}

#[test]
fn a_factor_is_used_as_it_is_unless_it_is_recomputed() -> Result<()> {
    let x = numbers(&[1, 1, 5]);
    let data = x.to_vec::<f64>()?;
    for factor in [1.5, 0.7, 2.3, 2.0] {
        let m = (5.0 * factor) as usize;
        for (recomputed, used) in [(false, Some(factor)), (true, None)] {
            let options = InterpolateOptions::new()
                .scale_factor(factor)
                .mode(Mode::Linear)
                .recompute_scale_factor(recomputed);
            let got = F::interpolate_with(&x, None, options)?.to_vec::<f64>()?;
            let want: Vec<f64> = (0..m)
                .map(|i| weights(Mode::Linear, i, 5, m, false, used).iter().map(|(k, w)| data[*k] * w).sum())
                .collect();
            close(&got, &want, &format!("factor {factor}, recomputed {recomputed}"));
        }
    }
    Ok(())
}

#[test]
fn three_dims_and_integers() -> Result<()> {
    let x = numbers(&[1, 2, 2, 3, 2]);
    let y = F::interpolate_with(&x, [4, 3, 3], InterpolateOptions::new().mode(Mode::Trilinear))?;
    // The dims one after another.
    let line = |x: &Tensor, dim: isize, size: usize| {
        F::interpolate_with(x, size, InterpolateOptions::new().mode(Mode::Linear).dims(dim))
    };
    let want = line(&line(&x, 2, 4)?, 4, 3)?;
    close(&y.to_vec()?, &want.to_vec()?, "trilinear");
    let whole = Tensor::new([[[1_i64 << 60, 3]]])?;
    assert_eq!(F::interpolate(&whole, 4)?.to_vec::<i64>()?, [1 << 60, 1 << 60, 3, 3]);
    let bytes = Tensor::new([[[[0, 100], [200, 255]]]])?.to(DType::U8)?;
    let wide = F::interpolate_with(&bytes, [2, 3], InterpolateOptions::new().mode(Mode::Bilinear))?;
    assert_eq!((wide.dtype(), wide.to_vec::<u8>()?), (DType::U8, vec![0, 50, 100, 200, 228, 255]));
    assert_eq!(kind(F::interpolate(&whole.gt(0)?, 4)), ErrorKind::DType);
    Ok(())
}

/// The weights of PIL's filters, normalized.
#[test]
fn antialiasing_takes_all_elements() -> Result<()> {
    let x = numbers(&[1, 1, 9, 6]);
    for (mode, cubic) in [(Mode::Bilinear, false), (Mode::Bicubic, true)] {
        let y = F::interpolate_with(&x, [3, 6], InterpolateOptions::new().mode(mode).antialias(true))?;
        let filter = |at: f64| match cubic {
            false => (1.0 - at.abs()).max(0.0),
            true => {
                let at = at.abs();
                if at < 1.0 {
                    1.5 * at.powi(3) - 2.5 * at.powi(2) + 1.0
                } else if at < 2.0 {
                    -0.5 * at.powi(3) + 2.5 * at.powi(2) - 4.0 * at + 2.0
                } else {
                    0.0
                }
            }
        };
        let rows = x.to_vec::<f64>()?;
        let mut want = Vec::new();
        for i in 0..3 {
            let center = 3.0 * (i as f64 + 0.5);
            let weights: Vec<f64> = (0..9).map(|k| filter((k as f64 + 0.5 - center) / 3.0)).collect();
            let total: f64 = weights.iter().sum();
            want.extend((0..6).map(|j| (0..9).map(|k| weights[k] / total * rows[k * 6 + j]).sum::<f64>()));
        }
        close(&y.to_vec()?, &want, &format!("{mode:?}"));
    }
    Ok(())
}

#[test]
fn names_and_their_order_for_resizing() -> Result<()> {
    let x = numbers(&[2, 3, 4, 5]).rename(["N", "C", "H", "W"])?;
    let options = || InterpolateOptions::new().mode(Mode::Bicubic);
    let want = F::interpolate_with(&x.rename(None)?, [6, 3], options())?;
    for order in [["H", "W", "C", "N"], ["W", "C", "H", "N"], ["C", "H", "N", "W"]] {
        let y = F::interpolate_with(&x.align_to(order)?, [("W", 3), ("H", 6)], options())?;
        assert_eq!(*y.names(), order);
        close(&y.align_to(["N", "C", "H", "W"])?.to_vec()?, &want.to_vec()?, &format!("{order:?}"));
    }
    let video = numbers(&[2, 3, 4, 5, 2]).rename(["N", "time", "H", "W", "C"])?;
    let y = F::interpolate_with(&video, [("H", 8), ("W", 5)], options())?;
    assert_eq!(y.shape().to_string(), "[N=2, time=3, H=8, W=5, C=2]");
    let one = F::interpolate_with(&video.select("time", 1)?, [("H", 8), ("W", 5)], options())?;
    close(&y.select("time", 1)?.to_vec()?, &one.to_vec()?, "a frame");
    let layer = Upsample::builder([("H", 8), ("W", 5)]).mode(Mode::Bicubic).build();
    assert!(layer.forward(&video)?.equal(&y)?);
    Ok(())
}

#[test]
fn gradients_of_resizing() -> Result<()> {
    let x = numbers(&[1, 2, 3, 4]);
    for mode in [Mode::Nearest, Mode::NearestExact, Mode::Bilinear, Mode::Bicubic, Mode::Area] {
        for size in [[5, 3], [2, 9]] {
            let of = |x: &[Tensor]| F::interpolate_with(&x[0], size, InterpolateOptions::new().mode(mode));
            gradcheck(of, std::slice::from_ref(&x))?;
            gradgradcheck(|x| of(x)?.square(), std::slice::from_ref(&x))?;
        }
    }
    let smooth = InterpolateOptions::new().mode(Mode::Bicubic).antialias(true);
    gradcheck(|x| F::interpolate_with(&x[0], [2, 2], smooth.clone()), &[x])?;
    Ok(())
}

#[test]
fn bad_sizes_and_factors() -> Result<()> {
    let x = numbers(&[1, 2, 3, 4]);
    let of = |options: InterpolateOptions| F::interpolate_with(&x, None, options);
    let options = InterpolateOptions::new;
    assert_eq!(kind(F::interpolate(&x, 0)), ErrorKind::Value);
    assert_eq!(kind(F::interpolate(&x, [2, -1])), ErrorKind::Value);
    assert_eq!(kind(F::interpolate(&x, [2, 2, 2])), ErrorKind::Value);
    assert_eq!(kind(of(options())), ErrorKind::Value);
    for factor in [0.0, -1.0, f64::NAN, f64::INFINITY, 0.1] {
        assert_eq!(kind(of(options().scale_factor(factor))), ErrorKind::Value, "{factor}");
    }
    assert_eq!(kind(of(options().scale_factor(1e30))), ErrorKind::OutOfMemory);
    assert_eq!(kind(F::interpolate(&x, [isize::MAX, 2])), ErrorKind::OutOfMemory);
    assert_eq!(kind(F::interpolate_with(&x, 2, options().scale_factor(2.0))), ErrorKind::Value);
    assert_eq!(kind(F::interpolate_with(&x, 2, options().recompute_scale_factor(true))), ErrorKind::Value);
    assert_eq!(kind(F::interpolate_with(&x, 2, options().align_corners(false))), ErrorKind::Value);
    assert_eq!(kind(F::interpolate_with(&x, 2, options().antialias(true))), ErrorKind::Value);
    assert_eq!(kind(F::interpolate_with(&x, 2, options().mode(Mode::Linear))), ErrorKind::Shape);
    assert_eq!(kind(F::interpolate(&x.select(0, 0)?.select(0, 0)?, 2)), ErrorKind::Shape);
    assert_eq!(kind(F::interpolate(&x, [("H", 2)])), ErrorKind::NameNotFound);
    assert_eq!(kind(F::interpolate(&x.narrow(2, 0, 0)?, 2)), ErrorKind::Shape);
    // No images are no error.
    assert_eq!(F::interpolate(&x.narrow(0, 0, 0)?, 2)?.sizes(), [0, 2, 2, 2]);
    Ok(())
}

// Padding.

#[test]
fn every_padding_is_its_formula() -> Result<()> {
    let x = numbers(&[2, 4, 5]).rename(["N", "H", "W"])?;
    let place = |mode: PadMode, at: isize, n: isize| match mode {
        PadMode::Constant => (0..n).contains(&at).then_some(at),
        PadMode::Replicate => Some(at.clamp(0, n - 1)),
        PadMode::Circular => Some(at.rem_euclid(n)),
        PadMode::Reflect if at < 0 => Some(-at),
        PadMode::Reflect if at >= n => Some(2 * (n - 1) - at),
        PadMode::Reflect => Some(at),
    };
    for mode in [PadMode::Constant, PadMode::Reflect, PadMode::Replicate, PadMode::Circular] {
        for [top, bottom, left, right] in [[1, 2, 3, 0], [0, 0, 4, 4], [3, 3, 0, 1]] {
            let pads = [("W", (left, right)), ("H", (top, bottom))];
            let options = PadOptions::new().mode(mode);
            let y =
                F::pad_with(&x, pads, if mode == PadMode::Constant { options.value(0.5) } else { options })?;
            assert_eq!(*y.names(), ["N", "H", "W"]);
            let mut want = Vec::new();
            for n in 0..2 {
                for h in -top..4 + bottom {
                    for w in -left..5 + right {
                        want.push(match (place(mode, h, 4), place(mode, w, 5)) {
                            (Some(h), Some(w)) => x.value().to_vec::<f64>()?[(n * 20 + h * 5 + w) as usize],
                            _ => 0.5,
                        });
                    }
                }
            }
            close(&y.to_vec()?, &want, &format!("{mode:?} {pads:?}"));
        }
    }
    Ok(())
}

#[test]
fn negative_padding_crops() -> Result<()> {
    let x = Tensor::new([1.0, 2.0, 3.0, 4.0])?;
    let padded =
        |mode: PadMode, pad: [i32; 2]| F::pad_with(&x, pad, PadOptions::new().mode(mode))?.to_vec::<f32>();
    assert_eq!(padded(PadMode::Constant, [-1, 2])?, [2.0, 3.0, 4.0, 0.0, 0.0]);
    assert_eq!(padded(PadMode::Constant, [-2, -2])?, Vec::<f32>::new());
    assert_eq!(padded(PadMode::Reflect, [2, -1])?, [3.0, 2.0, 1.0, 2.0, 3.0]);
    assert_eq!(padded(PadMode::Replicate, [-1, 2])?, [2.0, 3.0, 4.0, 4.0, 4.0]);
    // What is repeated from the other end is what is left there.
    assert_eq!(padded(PadMode::Circular, [2, -1])?, [2.0, 3.0, 1.0, 2.0, 3.0]);
    let truth = Tensor::new([true, false])?;
    assert_eq!(F::pad(&truth, [1, 0])?.to_vec::<bool>()?, [false, true, false]);
    Ok(())
}

#[test]
fn gradients_of_padding() -> Result<()> {
    let x = numbers(&[2, 3, 4]);
    for mode in [PadMode::Constant, PadMode::Reflect, PadMode::Replicate, PadMode::Circular] {
        let of = |x: &[Tensor]| F::pad_with(&x[0], [2, -1, 1, 2], PadOptions::new().mode(mode));
        gradcheck(of, std::slice::from_ref(&x))?;
        gradgradcheck(|x| of(x)?.square(), std::slice::from_ref(&x))?;
    }
    Ok(())
}

#[test]
fn layers_of_padding() -> Result<()> {
    let x = numbers(&[2, 3, 4, 5]).rename(["N", "C", "H", "W"])?;
    let pads = [("H", (1, 2)), ("W", (2, 0))];
    let layers: [(Box<dyn Layer>, PadMode); 4] = [
        (Box::new(ZeroPad::new(pads)), PadMode::Constant),
        (Box::new(ReflectionPad::new(pads)), PadMode::Reflect),
        (Box::new(ReplicationPad::new(pads)), PadMode::Replicate),
        (Box::new(CircularPad::new(pads)), PadMode::Circular),
    ];
    for (layer, mode) in &layers {
        let want = F::pad_with(&x, [2, 0, 1, 2], PadOptions::new().mode(*mode))?;
        let y = layer.forward(&x.align_to(["W", "N", "H", "C"])?)?;
        assert!(y.align_as(&want)?.equal(&want)?, "{mode:?}");
    }
    let nines = ConstantPad::new([("H", 1)], 9).forward(&x)?;
    assert_eq!(nines.select("H", 0)?.to_vec::<f64>()?, [9.0; 30]);
    assert_eq!(
        ZeroPad::new(pads).summary().to_string().lines().count(),
        ZeroPad::new([1, 1]).summary().to_string().lines().count()
    );
    Ok(())
}

#[test]
fn bad_padding() -> Result<()> {
    let x = numbers(&[2, 3, 4]);
    let mode = |mode: PadMode| PadOptions::new().mode(mode);
    assert_eq!(kind(F::pad_with(&x, [4, 0], mode(PadMode::Reflect))), ErrorKind::Value);
    assert_eq!(kind(F::pad_with(&x, [0, 5], mode(PadMode::Circular))), ErrorKind::Value);
    assert_eq!(kind(F::pad_with(&x.narrow(2, 0, 0)?, [1, 0], mode(PadMode::Replicate))), ErrorKind::Value);
    assert_eq!(kind(F::pad_with(&x, [-4, 1], mode(PadMode::Circular))), ErrorKind::Value);
    assert_eq!(kind(F::pad(&x, [-3, -2])), ErrorKind::Value);
    assert_eq!(kind(F::pad(&x, [1, 2, 3])), ErrorKind::Value);
    assert_eq!(kind(F::pad(&x, [1; 8])), ErrorKind::Value);
    assert_eq!(kind(F::pad(&x, [("H", 1)])), ErrorKind::NameNotFound);
    assert_eq!(kind(F::pad_with(&x, [1, 1], mode(PadMode::Reflect).value(1.0))), ErrorKind::Value);
    assert_eq!(kind(F::pad(&x, [isize::MAX, 0])), ErrorKind::OutOfMemory);
    assert_eq!(kind(F::pad_with(&x, [isize::MAX / 16, 0], mode(PadMode::Replicate))), ErrorKind::OutOfMemory);
    Ok(())
}

// Sampling.

/// The options of sampling an image.
#[derive(Clone, Copy, Debug)]
struct How {
    mode: SampleMode,
    outside: Outside,
    align: bool,
}

impl How {
    fn all() -> Vec<How> {
        let mut all = Vec::new();
        for mode in [SampleMode::Bilinear, SampleMode::Nearest, SampleMode::Bicubic] {
            for outside in [Outside::Zeros, Outside::Border, Outside::Reflection] {
                all.extend([false, true].map(|align| How { mode, outside, align }));
            }
        }
        all
    }

    fn options(self) -> GridSampleOptions {
        GridSampleOptions::new().mode(self.mode).padding_mode(self.outside).align_corners(self.align)
    }

    /// A position, moved into the image as the padding says.
    fn inside(self, at: f64, n: usize) -> f64 {
        let last = n as f64 - 1.0;
        match self.outside {
            Outside::Zeros => at,
            Outside::Border => at.clamp(0.0, last),
            Outside::Reflection => {
                let (low, high) = if self.align { (0.0, last) } else { (-0.5, last + 0.5) };
                let mut at = at;
                while high > low && (at < low || at > high) {
                    at = if at < low { 2.0 * low - at } else { 2.0 * high - at };
                }
                at.clamp(0.0, last)
            }
        }
    }

    /// The elements around a coordinate with their weights.
    fn around(self, coordinate: f64, n: usize) -> Vec<(i64, f64)> {
        let size = n as f64;
        let at = match self.align {
            true => (coordinate + 1.0) / 2.0 * (size - 1.0),
            false => ((coordinate + 1.0) * size - 1.0) / 2.0,
        };
        match self.mode {
            SampleMode::Nearest => vec![(self.inside(at, n).round_ties_even() as i64, 1.0)],
            SampleMode::Bilinear => {
                let at = self.inside(at, n);
                let first = at.floor();
                vec![(first as i64, 1.0 - (at - first)), (first as i64 + 1, at - first)]
            }
            SampleMode::Bicubic => {
                let first = at.floor() as i64;
                let tap = |k: i64| (self.inside(k as f64, n) as i64, keys(at - k as f64));
                (first - 1..first + 3).map(tap).collect()
            }
        }
    }
}

#[test]
fn every_sampling_is_its_formula() -> Result<()> {
    let (n, sizes) = (2, [3, 4]);
    let x = numbers(&[n, 2, sizes[0], sizes[1]]);
    let grid = numbers(&[n, 3, 5, 2]).mul(1.7)?;
    let (data, at) = (x.to_vec::<f64>()?, grid.to_vec::<f64>()?);
    for how in How::all() {
        let y = F::grid_sample_with(&x, &grid, how.options())?;
        assert_eq!(y.sizes(), [n, 2, 3, 5]);
        let mut want = Vec::new();
        for (plane, p) in (0..n * 2).flat_map(|plane| (0..15).map(move |p| (plane, p))) {
            let [to_w, to_h] = [0, 1].map(|k| at[(plane / 2 * 15 + p) * 2 + k]);
            let mut sum = 0.0;
            for (h, u) in how.around(to_h, sizes[0]) {
                for (w, v) in how.around(to_w, sizes[1]) {
                    if (0..3).contains(&h) && (0..4).contains(&w) {
                        sum += u * v * data[plane * 12 + (h * 4 + w) as usize];
                    }
                }
            }
            want.push(sum);
        }
        close(&y.to_vec()?, &want, &format!("{how:?}"));
    }
    Ok(())
}

#[test]
fn gradients_of_sampling() -> Result<()> {
    let (x, grid) = (numbers(&[2, 2, 3, 4]), numbers(&[2, 2, 3, 2]).mul(1.31)?);
    for how in How::all() {
        let of = |given: &[Tensor]| F::grid_sample_with(&given[0], &given[1], how.options());
        gradcheck(of, &[x.clone(), grid.clone()])
            .map_err(|error| error.context(format_args!("{how:?}: ")))?;
        gradgradcheck(of, &[x.clone(), grid.clone()])?;
    }
    let (x, grid) = (numbers(&[1, 2, 2, 3, 2]), numbers(&[1, 2, 1, 2, 3]));
    for mode in [SampleMode::Bilinear, SampleMode::Nearest, SampleMode::Bicubic] {
        let options = GridSampleOptions::new().mode(mode);
        let of = |given: &[Tensor]| F::grid_sample_with(&given[0], &given[1], options.clone());
        gradcheck(of, &[x.clone(), grid.clone()])?;
        gradgradcheck(of, &[x.clone(), grid.clone()])?;
    }
    Ok(())
}

/// A cubic over three dims is one over two dims of what it is over the first.
#[test]
fn cubic_sampling_of_volumes() -> Result<()> {
    let x = numbers(&[1, 1, 1, 3, 4]);
    let plane = numbers(&[1, 3, 2, 2]);
    let grid = Tensor::cat(&[&plane, &plane.narrow(3, 0, 1)?.mul(0)?], 3)?.unsqueeze(1)?;
    let options = || GridSampleOptions::new().mode(SampleMode::Bicubic).padding_mode(Outside::Border);
    let flat = F::grid_sample_with(&x.select(2, 0)?, &plane, options())?;
    close(&F::grid_sample_with(&x, &grid, options())?.to_vec()?, &flat.to_vec()?, "one plane");
    Ok(())
}

/// Elements outside have no part in the result, not even infinity times 0, and positions may be anything.
#[test]
fn positions_far_away() -> Result<()> {
    let x = Tensor::new([[[[f64::INFINITY, 1.0], [2.0, 3.0]]]])?;
    let at = |x: f64, y: f64| Tensor::new([[[[x, y]]]]);
    for far in [1e30, -1e300, f64::INFINITY, f64::NAN] {
        for how in How::all() {
            let y = F::grid_sample_with(&x, &at(far, 0.3)?, how.options())?;
            assert_eq!(y.sizes(), [1, 1, 1, 1]);
        }
    }
    let far = F::grid_sample(&x, &at(5.0, 5.0)?)?;
    assert_eq!(far.to_vec::<f64>()?, [0.0]);
    let corner = GridSampleOptions::new().align_corners(true);
    assert_eq!(F::grid_sample_with(&x, &at(1.0, 1.0)?, corner)?.to_vec::<f64>()?, [3.0]);
    Ok(())
}

#[test]
fn names_and_their_order_for_sampling() -> Result<()> {
    let x = numbers(&[2, 3, 4, 5]).rename(["N", "C", "H", "W"])?;
    let grid = numbers(&[2, 6, 7, 2]).rename(["N", "H", "W", "xy"])?;
    let want = F::grid_sample(&x.rename(None)?, &grid.rename(None)?)?;
    let dims = || GridSampleOptions::new().dims(["H", "W"]);
    for order in [["H", "W", "C", "N"], ["W", "C", "H", "N"], ["C", "H", "N", "W"]] {
        let y = F::grid_sample_with(&x.align_to(order)?, &grid, dims())?;
        assert_eq!(*y.names(), order);
        close(&y.align_to(["N", "C", "H", "W"])?.to_vec()?, &want.to_vec()?, &format!("{order:?}"));
        let turned = grid.align_to(["W", "H", "N", "xy"])?;
        close(
            &F::grid_sample_with(&x.align_to(order)?, &turned, dims())?.to_vec()?,
            &y.to_vec()?,
            "the grid",
        );
    }
    // More dims are channels, or batch dims if the grid has them.
    let video = numbers(&[2, 3, 2, 4, 5]).rename(["N", "time", "C", "H", "W"])?;
    let y = F::grid_sample(&video, &grid)?;
    assert_eq!(y.shape().to_string(), "[N=2, time=3, C=2, H=6, W=7]");
    let frame = F::grid_sample(&video.select("time", 1)?, &grid)?;
    close(&y.select("time", 1)?.to_vec()?, &frame.to_vec()?, "a frame");
    let shared = F::grid_sample(&video, &grid.select("N", 1)?)?;
    close(&shared.select("N", 1)?.to_vec()?, &y.select("N", 1)?.to_vec()?, "one grid for all");
    Ok(())
}

#[test]
fn affine_maps() -> Result<()> {
    let theta = numbers(&[2, 2, 3]);
    for align in [false, true] {
        let options = || AffineGridOptions::new().align_corners(align);
        let grid = F::affine_grid_with(&theta, [2, 1, 3, 4], options())?;
        let t = theta.to_vec::<f64>()?;
        let place = |i: usize, n: usize| match align {
            true => 2.0 * i as f64 / (n - 1) as f64 - 1.0,
            false => (2.0 * i as f64 + 1.0) / n as f64 - 1.0,
        };
        let mut want = Vec::new();
        for (n, i, j) in (0..2).flat_map(|n| (0..3).flat_map(move |i| (0..4).map(move |j| (n, i, j)))) {
            let (x, y) = (place(j, 4), place(i, 3));
            want.extend([0, 3].map(|row| t[n * 6 + row] * x + t[n * 6 + row + 1] * y + t[n * 6 + row + 2]));
        }
        close(&grid.to_vec()?, &want, "a grid");
        gradcheck(
            |theta| F::affine_grid_with(&theta[0], [2, 1, 3, 1], options()),
            std::slice::from_ref(&theta),
        )?;
    }
    let volume = F::affine_grid(&numbers(&[1, 3, 4]), [("N", 1), ("C", 2), ("D", 2), ("H", 3), ("W", 4)])?;
    assert_eq!(volume.shape().to_string(), "[N=1, D=2, H=3, W=4, ?=3]");
    Ok(())
}

#[test]
fn bad_grids() -> Result<()> {
    let (x, grid) = (numbers(&[2, 2, 3, 4]), numbers(&[2, 2, 3, 2]));
    assert_eq!(kind(F::grid_sample(&x, grid.narrow(0, 0, 1)?)), ErrorKind::Shape);
    assert_eq!(kind(F::grid_sample(&x, grid.narrow(3, 0, 0)?)), ErrorKind::Shape);
    assert_eq!(kind(F::grid_sample(&x, numbers(&[2, 2, 3, 3]))), ErrorKind::Shape);
    assert_eq!(kind(F::grid_sample(&x, grid.to(DType::F32)?)), ErrorKind::DType);
    assert_eq!(kind(F::grid_sample(&x.to(DType::I64)?, &grid)), ErrorKind::DType);
    assert_eq!(kind(F::grid_sample(&x.narrow(2, 0, 0)?, &grid)), ErrorKind::Shape);
    let named = x.rename(["N", "C", "H", "W"])?;
    let other = grid.rename(["batch", "H", "W", "xy"])?;
    assert_eq!(kind(F::grid_sample(&named, &other)), ErrorKind::NameMismatch);
    // Positions with the name of another dim, and coordinates with the name of a dim of the images.
    let square = numbers(&[2, 2, 2, 2]).rename(["N", "C", "H", "W"])?;
    for (names, wrong) in [
        (["N", "H", "W", "xy"], None),
        (["N", "H", "xy", "W"], Some(ErrorKind::NameMismatch)),
        (["N", "xy", "H", "W"], Some(ErrorKind::NameMismatch)),
        (["N", "H", "banana", "xy"], Some(ErrorKind::NameMismatch)),
        (["N", "H", "W", "C"], Some(ErrorKind::Misaligned)),
    ] {
        let y = F::grid_sample(&square, numbers(&[2, 2, 2, 2]).rename(names)?);
        assert_eq!(y.err().map(|error| error.kind()), wrong, "{names:?}");
    }
    let theta = numbers(&[2, 2, 3]);
    assert_eq!(kind(F::affine_grid(&theta, [1, 1, 3, 4])), ErrorKind::Shape);
    assert_eq!(kind(F::affine_grid(&theta, [2, 1, 0, 4])), ErrorKind::Value);
    assert_eq!(kind(F::affine_grid(&theta, [2, 1, 4])), ErrorKind::Shape);
    assert_eq!(kind(F::affine_grid(&theta.to(DType::I64)?, [2, 1, 3, 4])), ErrorKind::DType);
    Ok(())
}

// Windows, pooling and transposed convolution.

#[test]
fn windows_by_name() -> Result<()> {
    let x = numbers(&[2, 3, 5, 6]).rename(["N", "C", "H", "W"])?;
    let layer =
        Unfold::builder("C", [("H", 2), ("W", 3)]).stride([1, 2]).padding(1).name("window").build()?;
    let want = F::unfold(&x.rename(None)?, [2, 3], 1, 1, [1, 2])?;
    for order in [["N", "C", "H", "W"], ["W", "N", "H", "C"], ["C", "H", "W", "N"]] {
        let y = layer.forward(&x.align_to(order)?)?;
        assert_eq!(*y.names(), ["N", "C", "window"]);
        close(&y.to_vec()?, &want.to_vec()?, &format!("{order:?}"));
    }
    let fold = Fold::builder("C", [("H", 5), ("W", 6)], [2, 3]).stride([1, 2]).padding(1).build()?;
    let columns = layer.forward(&x)?;
    let back = fold.forward(&columns)?;
    assert_eq!(back.shape().to_string(), "[N=2, C=3, H=5, W=6]");
    close(&back.to_vec()?, &F::fold(&want, [5, 6], [2, 3], 1, 1, [1, 2])?.to_vec()?, "sums");
    // The sizes of windows by name, in another order, and wrong ones.
    let swapped =
        Fold::builder("C", [("H", 5), ("W", 6)], [("W", 3), ("H", 2)]).stride([1, 2]).padding(1).build()?;
    assert_eq!(
        format!("{swapped:?}"),
        format!(
            "{:?}",
            Fold::builder("C", [("H", 5), ("W", 6)], [("H", 2), ("W", 3)])
                .stride([1, 2])
                .padding(1)
                .build()?
        )
    );
    for (kernel, kind) in
        [([("Q", 2), ("H", 3)], ErrorKind::NameNotFound), ([("W", 2), ("W", 3)], ErrorKind::DuplicateName)]
    {
        assert_eq!(Fold::new("C", [("H", 5), ("W", 6)], kernel).unwrap_err().kind(), kind);
    }
    let by_name = Fold::builder("C", [("H", 5), ("W", 6)], [2, 3])
        .stride([1, 2])
        .padding(1)
        .windows("window")
        .build()?;
    assert!(by_name.forward(&columns.align_to(["window", "C", "N"])?)?.equal(&back)?);
    // Without a batch, without names, and with more dims.
    let one = F::unfold(&x.rename(None)?.select(0, 1)?, [2, 3], 1, 1, [1, 2])?;
    assert!(one.equal(&want.select(0, 1)?)?);
    assert_eq!(F::fold(&one, [5, 6], [2, 3], 1, 1, [1, 2])?.sizes(), [3, 5, 6]);
    assert_eq!(Unfold::new(-3, [2, 2])?.forward(&x.rename(None)?)?.sizes(), [2, 12, 20]);
    let video = numbers(&[2, 4, 3, 5, 6]).rename(["N", "time", "C", "H", "W"])?;
    let all = layer.forward(&video)?;
    assert_eq!(all.shape().to_string(), "[N=2, time=4, C=18, window=18]");
    close(&all.select("time", 2)?.to_vec()?, &layer.forward(&video.select("time", 2)?)?.to_vec()?, "a frame");
    assert_eq!(kind(layer.forward(&x.rename([("C", "color")])?)), ErrorKind::NameNotFound);
    assert_eq!(Unfold::new("C", [("H", 0), ("W", 2)]).unwrap_err().kind(), ErrorKind::Value);
    Ok(())
}

#[test]
fn ratios_by_dim() -> Result<()> {
    let x = numbers(&[1, 2, 10, 10]).rename(["N", "C", "H", "W"])?;
    let pool = FractionalMaxPool2d::to_ratio([("W", 2), ("H", 2)], [("H", 0.5), ("W", 0.8)])?;
    assert_eq!(pool.forward(&x)?.shape().to_string(), "[N=1, C=2, H=5, W=8]");
    let pool = FractionalMaxPool2d::to_ratio([("W", 2), ("H", 2)], [0.8, 0.5])?;
    assert_eq!(pool.forward(&x)?.shape().to_string(), "[N=1, C=2, H=5, W=8]");
    let options = || FractionalMaxPool2dOptions::new();
    let y = F::fractional_max_pool2d_with(&x, 2, options().output_ratio([0.5, 0.8]))?;
    assert_eq!(y.sizes(), [1, 2, 5, 8]);
    let wrong = [0.5, 0.5, 0.5];
    assert_eq!(kind(F::fractional_max_pool2d_with(&x, 2, options().output_ratio(wrong))), ErrorKind::Value);
    assert_eq!(FractionalMaxPool2d::to_ratio([2, 2], [0.5, 1.0]).unwrap_err().kind(), ErrorKind::Value);
    Ok(())
}

#[test]
fn transposed_convolutions_to_a_size() -> Result<()> {
    let layer =
        ConvTranspose2d::builder(("F", 2), ("C", 3), [("H", 3), ("W", 3)]).stride(2).padding(1).build()?;
    let x = Tensor::rand([("N", 1), ("H", 4), ("W", 4), ("F", 2)])?;
    assert_eq!(layer.forward(&x)?.shape().to_string(), "[N=1, H=7, W=7, C=3]");
    let y = layer.forward_to(&x, [8, 7])?;
    assert_eq!(y.shape().to_string(), "[N=1, H=8, W=7, C=3]");
    let padded = ConvTranspose2d::builder(("F", 2), ("C", 3), [("H", 3), ("W", 3)])
        .stride(2)
        .padding(1)
        .output_padding([1, 0])
        .build()?;
    padded.load_state_dict(&layer.state_dict())?;
    assert!(y.equal(&padded.forward(&x)?)?);
    assert_eq!(kind(layer.forward_to(&x, [9, 7])), ErrorKind::Value);
    assert_eq!(kind(layer.forward_to(&x, [6, 7])), ErrorKind::Value);
    assert_eq!(kind(layer.forward_to(&x, [8, 7, 7])), ErrorKind::Value);
    Ok(())
}

/// Images or a grid in another order of their dims: the same result by name, or an error.
#[test]
fn sampling_takes_no_dim_for_another() -> Result<()> {
    let x = numbers(&[3, 3, 3, 3]).rename(["N", "C", "H", "W"])?;
    let grid = numbers(&[3, 3, 3, 2]).rename(["N", "H", "W", "xy"])?;
    let want = F::grid_sample(&x, &grid)?;
    let mut calls = Vec::new();
    for order in crate::orders(&["N", "C", "H", "W"]) {
        calls.push((x.align_to(order)?, grid.clone()));
    }
    for order in crate::orders(&["N", "H", "W"]) {
        calls.push((x.clone(), grid.align_to([&order[..], &["xy"]].concat())?));
    }
    let mut taken = 0;
    for (images, grid) in &calls {
        let sample = || F::grid_sample(images, grid);
        for y in [sample(), namegrad::names::strict(sample)] {
            let what = format!("{} {}", images.shape(), grid.shape());
            match y {
                Ok(y) => close(&y.align_as(&want)?.to_vec()?, &want.to_vec()?, &what),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Misaligned, "{what}: {error}"),
            }
            taken += usize::from(sample().is_ok());
        }
    }
    assert!(taken > 12, "{taken}");
    let last = x.align_to(["N", "H", "W", "C"])?.rename([("C", "band")])?;
    assert_eq!(*F::grid_sample(&last, &grid)?.names(), ["N", "H", "W", "band"]);
    // Affine maps have the batch first.
    let sizes = || [("N", 3), ("C", 1), ("H", 2), ("W", 2)];
    let theta = numbers(&[3, 2, 3]).rename(["N", "i", "j"])?;
    F::affine_grid(&theta, sizes())?;
    let swapped = F::affine_grid(&theta.align_to(["j", "i", "N"])?, sizes()).unwrap_err();
    assert_eq!((swapped.kind(), swapped.repair()), (ErrorKind::Misaligned, Some("theta.movedim(\"N\", 0)?")));
    assert_eq!(
        F::affine_grid(&theta.rename(["Q", "i", "j"])?, sizes()).unwrap_err().kind(),
        ErrorKind::Misaligned
    );
    assert_eq!(
        F::affine_grid(&theta.rename(["N", "H", "W"])?, sizes()).unwrap_err().kind(),
        ErrorKind::Misaligned
    );
    assert_eq!(F::affine_grid(&theta, [3, 1, 2, 2])?.names().get(0).map(|name| name.as_str()), Some("N"));
    Ok(())
}

/// Images and a grid in any orders of their dims, with the channels last too: one result for one order of the
/// positions, or an error.
#[test]
fn sampling_of_channels_last_took_the_batch_for_positions() -> Result<()> {
    let (x, grid) = (numbers(&[3, 3, 3, 3]), numbers(&[3, 3, 3, 2]));
    for (batch, channels) in [("N", "C"), ("image", "band")] {
        let x = x.rename([batch, channels, "H", "W"])?;
        let grid = grid.rename([batch, "H", "W", "xy"])?;
        let mut taken = 0;
        for order in crate::orders(&[batch, channels, "H", "W"]) {
            let images = x.align_to(order)?;
            let mut results: Vec<Tensor> = Vec::new();
            for order in crate::orders(&[batch, "H", "W"]) {
                let grid = grid.align_to([&order[..], &["xy"]].concat())?;
                let sample = || F::grid_sample(&images, &grid);
                let what = format!("{} {}", images.shape(), grid.shape());
                assert_eq!(sample().is_ok(), namegrad::names::strict(sample).is_ok(), "{what}");
                match sample() {
                    Ok(y) => results.push(y.align_to([batch, channels, "H", "W"])?),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Misaligned, "{what}: {error}"),
                }
            }
            for y in &results {
                close(&y.to_vec()?, &results[0].to_vec()?, &images.shape().to_string());
            }
            taken += results.len();
        }
        assert!(taken >= 12, "{taken}");
    }
    let (images, grid) = (x.rename(["C", "H", "W", "N"])?, grid.rename(["H", "W", "N", "xy"])?);
    let error = F::grid_sample(&images, &grid).unwrap_err();
    let repair = "GridSampleOptions::new().dims([\"H\", \"W\"]), with the dim of the first coordinate last";
    assert_eq!(error.repair(), Some(repair));
    F::grid_sample_with(&images, &grid, GridSampleOptions::new().dims(["H", "W"]))?;
    // An unnamed dim of the grid is not that of the channels.
    let grid = grid.rename([None, Some("H"), Some("W"), Some("xy")])?;
    for (names, wrong) in [
        (["N", "C", "H", "W"], None),
        (["C", "N", "H", "W"], Some(ErrorKind::Misaligned)),
        (["C", "image", "H", "W"], Some(ErrorKind::Misaligned)),
        (["band", "N", "H", "W"], Some(ErrorKind::Misaligned)),
    ] {
        let images = x.rename(names)?;
        let sample = || F::grid_sample(&images, &grid);
        assert_eq!(sample().err().map(|error| error.kind()), wrong, "{names:?}");
        assert_eq!(kind(namegrad::names::strict(sample)), ErrorKind::NameMismatch);
    }
    // Images `[C, H, W]` have a grid for each channel.
    F::grid_sample(&x.select(0, 0)?.rename(["C", "H", "W"])?, &grid)?;
    // An unnamed grid is not over the batch.
    assert_eq!(kind(F::grid_sample(&images, &grid.rename(None)?)), ErrorKind::Misaligned);
    Ok(())
}

#[test]
fn sizes_of_affine_grids_in_another_order_were_taken_by_position() -> Result<()> {
    let theta = numbers(&[3, 2, 3]);
    let affine = |names: [&'static str; 4]| F::affine_grid(&theta, names.map(|name| (name, 3)));
    affine(["N", "C", "H", "W"])?;
    affine(["image", "band", "H", "W"])?;
    for names in [["N", "H", "W", "C"], ["C", "N", "H", "W"], ["H", "W", "C", "N"], ["H", "band", "W", "N"]] {
        assert_eq!(kind(affine(names)), ErrorKind::Misaligned, "{names:?}");
    }
    let strict = namegrad::names::strict(|| affine(["N", "C", "H", "W"]));
    assert_eq!(kind(strict), ErrorKind::NameMismatch);
    Ok(())
}
