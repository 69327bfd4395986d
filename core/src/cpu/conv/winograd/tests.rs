//! Every direction, size of tile and set of instructions against plain sums in `f64`.

use super::*;
use crate::cpu::simd::supported;

/// Numbers between -1 and 1 from a seed.
fn numbers(seed: u64, len: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as f64 / f64::from(1_u32 << 30) - 1.0) as f32
    };
    (0..len).map(|_| next()).collect()
}

/// A convolution of images, with the same padding on all sides.
fn geometry(batch: usize, [channels, features]: [usize; 2], [h, w]: [usize; 2], padding: usize) -> Geometry {
    Geometry {
        batch,
        groups: 1,
        channels,
        features,
        input: [1, h, w],
        kernel: [1, 3, 3],
        output: [1, h + 2 * padding - 2, w + 2 * padding - 2],
        stride: [1; 3],
        padding: [0, padding, padding],
        dilation: [1; 3],
    }
}

/// Calls `f` with the positions in the input, the weight and the output of every product.
fn each_product(g: &Geometry, mut f: impl FnMut(usize, usize, usize)) {
    let ([_, h, w], [_, rows, columns], [_, top, left]) = (g.input, g.output, g.padding);
    for (n, o, c) in (0..g.batch * g.features * g.channels)
        .map(|at| (at / g.channels / g.features, at / g.channels % g.features, at % g.channels))
    {
        for at in 0..rows * columns * 9 {
            let (y, x, i, j) = (at / 9 / columns, at / 9 % columns, at % 9 / 3, at % 3);
            let from = ((y + i).checked_sub(top), (x + j).checked_sub(left));
            if let (Some(row), Some(column)) = from
                && row < h
                && column < w
            {
                f(
                    ((n * g.channels + c) * h + row) * w + column,
                    (o * g.channels + c) * 9 + i * 3 + j,
                    ((n * g.features + o) * rows + y) * columns + x,
                );
            }
        }
    }
}

/// The output with a bias, the gradient of the input and that of the weight, for one size of tile.
fn results(
    maps: &'static TileMaps,
    geometry: &Geometry,
    [x, w, g]: [&[f32]; 3],
    bias: &[f32],
) -> [Vec<f32>; 3] {
    let to = |numbers: &[f32]| To(numbers.as_ptr().cast_mut().cast());
    let mut results = [g, x, w].map(|like| vec![f32::NAN; like.len()]);
    let [y, dx, dw] = results.each_mut().map(|result| To(result.as_mut_ptr().cast()));
    let tiled = |is_gradient| TiledConvolution::new(maps, geometry, is_gradient);
    // SAFETY: the operands have the sizes of the convolution.
    unsafe {
        assert!(tiled(false).write(to(x), to(w), Some(bias), y));
        assert!(tiled(true).write(to(g), to(w), None, dx));
        assert!(tiled(false).write_weight(to(x), to(g), dw));
    }
    results
}

/// The most errors of tiles of 2 and of 4, relative to the sum of the absolute values of the products. Those of
/// plain sums in `f32` are near 2e-7.
const ERRORS: [f64; 2] = [1e-6, 8e-6];

#[test]
fn tiles_are_near_plain_sums() {
    let cases = [
        (2, [17, 19], [13, 18], 1),
        (1, [16, 33], [9, 7], 0),
        (3, [5, 3], [4, 5], 1),
        (1, [1, 1], [3, 3], 0),
        (1, [1, 16], [1, 1], 1),
        (2, [3, 2], [2, 11], 4),
        (1, [130, 2], [6, 6], 1),
        (1, [2, 130], [6, 6], 2),
        (1, [4, 4], [70, 3], 1),
        (1, [4, 4], [3, 70], 1),
    ];
    for (batch, channels, sizes, padding) in cases {
        let geometry = geometry(batch, channels, sizes, padding);
        let area = |sizes: [usize; 3]| batch * volume(&sizes);
        let x = numbers(1, area(geometry.input) * channels[0]);
        let w = numbers(2, 9 * channels[0] * channels[1]);
        let g = numbers(3, area(geometry.output) * channels[1]);
        let bias = numbers(4, channels[1]);
        // The sums, and those of the absolute values.
        let mut expected = [&g, &x, &w].map(|like| vec![(0.0_f64, 0.0_f64); like.len()]);
        for (at, sum) in expected[0].iter_mut().enumerate() {
            let bias = f64::from(bias[at / volume(&geometry.output) % channels[1]]);
            *sum = (bias, bias.abs());
        }
        each_product(&geometry, |i, j, k| {
            let [x, w, g] = [x[i], w[j], g[k]].map(f64::from);
            let [ys, dxs, dws] = &mut expected;
            for (sum, product) in [(&mut ys[k], x * w), (&mut dxs[i], g * w), (&mut dws[j], g * x)] {
                *sum = (sum.0 + product, sum.1 + product.abs());
            }
        });
        for isa in supported() {
            for (maps, most) in TileMaps::of(isa).into_iter().flatten().zip(ERRORS) {
                let case = format!("{isa:?}, tiles of {}: {batch}, {channels:?}, {sizes:?}", maps.side);
                let on = |threads| {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    pool.install(|| results(maps, &geometry, [&x, &w, &g], &bias))
                };
                let found = on(1);
                for (which, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    for (y, (sum, scale)) in found.iter().zip(expected) {
                        let apart = (f64::from(*y) - sum).abs();
                        assert!(apart <= most * scale.max(0.1), "{case}, {which}: {y} is not {sum}");
                    }
                }
                let bits = |of: &[Vec<f32>; 3]| {
                    of.each_ref().map(|x| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>())
                };
                for threads in [3, 64] {
                    assert_eq!(bits(&found), bits(&on(threads)), "{case}");
                }
            }
        }
    }
}
