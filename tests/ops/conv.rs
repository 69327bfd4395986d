//! Convolutions. All three ops are sums of the same products, of an input, a weight and an output.

use crate::check::values;
use crate::plain::Plain;

/// The stride, the zeros before the input, and the dilation, for each dim.
type Slide<'a> = (&'a [usize], &'a [usize], &'a [usize]);

/// The indices in the input, the weight and the output of every product, for sizes `[N, C, ..]`,
/// `[out, C / groups, ..]` and `[N, out, ..]`.
fn products(
    x: &[usize],
    weight: &[usize],
    y: &[usize],
    (stride, padding, dilation): Slide<'_>,
) -> Vec<[Vec<usize>; 3]> {
    let (dims, groups) = (x.len() - 2, x[1] / weight[1]);
    let mut all = Vec::new();
    let loops: Vec<usize> =
        [y[0], y[1], weight[1]].into_iter().chain(y[2..].to_vec()).chain(weight[2..].to_vec()).collect();
    for at in 0..loops.iter().product() {
        let mut rest = at;
        let mut index: Vec<usize> = loops
            .iter()
            .rev()
            .map(|size| {
                let i = rest % size;
                rest /= size;
                i
            })
            .collect();
        index.reverse();
        let (n, o, c, places, taps) = (index[0], index[1], index[2], &index[3..3 + dims], &index[3 + dims..]);
        let there: Option<Vec<usize>> = (0..dims)
            .map(|d| {
                (places[d] * stride[d] + taps[d] * dilation[d])
                    .checked_sub(padding[d])
                    .filter(|at| *at < x[2 + d])
            })
            .collect();
        if let Some(there) = there {
            let channel = o / (weight[0] / groups) * weight[1] + c;
            all.push([
                [&[n, channel], &there[..]].concat(),
                [&[o, c], taps].concat(),
                [&[n, o], places].concat(),
            ]);
        }
    }
    all
}

/// The sum of the products with index `i` in one of the three tensors, of the elements of the other two.
fn total(which: usize, i: &[usize], a: &Plain, b: &Plain, sizes: [&[usize]; 3], slide: Slide<'_>) -> f64 {
    let [x, weight, y] = sizes;
    let others: Vec<usize> = (0..3).filter(|other| *other != which).collect();
    products(x, weight, y, slide)
        .iter()
        .filter(|index| index[which] == i)
        .map(|index| a.at(&index[others[0]]) * b.at(&index[others[1]]))
        .sum()
}

cases! {
    convolution {
        (x: values("N=2 C=3 L=5"), weight: values("O=2 C=3 L=2")) => "N=2 O=2 L=4" numeric,
            |i| total(2, i, x, weight, [&[2, 3, 5], &[2, 3, 2], &[2, 2, 4]], (&[1], &[0], &[1])), scale 54.0;
        (x: values("C=1 L=4"), weight: values("O=2 C=1 L=2")) => "O=2 L=3" numeric,
            |i| (0..2).map(|k| x.at(&[0, i[1] + k]) * weight.at(&[i[0], 0, k])).sum(), scale 18.0;
        (x: values("N=2 C=2 H=4 W=5"), weight: values("O=4 C=1 H=2 W=3"), bias: values("O=4"); [2, 1], [1, 0], [1, 2], 2) => "N=2 O=4 H=3 W=1" numeric,
            |i| bias.at(&i[1..2]) + total(2, i, x, weight, [&[2, 2, 4, 5], &[4, 1, 2, 3], &[2, 4, 3, 1]], (&[2, 1], &[1, 0], &[1, 2])), scale 57.0;
        (x: values("N=1 C=2 D=2 H=3 W=2"), weight: values("O=1 C=2 D=2 H=2 W=1"), bias: values("O=1"); 1, "same") => "N=1 O=1 D=2 H=3 W=2" numeric,
            |i| bias.at(&[0]) + total(2, i, x, weight, [&[1, 2, 2, 3, 2], &[1, 2, 2, 2, 1], &[1, 1, 2, 3, 2]], (&[1; 3], &[0; 3], &[1; 3])), scale 75.0;
        (x: values("N=2 C=3 H=2 W=2"), weight: values("O=2 C=3 H=1 W=1")) => "N=2 O=2 H=2 W=2" numeric,
            |i| (0..3).map(|c| x.at(&[i[0], c, i[2], i[3]]) * weight.at(&[i[1], c, 0, 0])).sum(), scale 27.0;
        (x: values("N=2 C=3 L=4"), weight: values("O=2 C=3 L=1"), bias: values("O=2")) => "N=2 O=2 L=4" numeric,
            |i| bias.at(&i[1..2]) + (0..3).map(|c| x.at(&[i[0], c, i[2]]) * weight.at(&[i[1], c, 0])).sum::<f64>(), scale 30.0;
        (x: values("N=0 C=1 L=3"), weight: values("O=2 C=1 L=2")) => "N=0 O=2 L=2" numeric, |i| unreachable!();
        (x: values("N=1 C=0 L=3"), weight: values("O=2 C=0 L=2"), bias: values("O=2")) => "N=1 O=2 L=2" numeric, |i| bias.at(&i[1..2]);
    }
    convolution_input {
        (y: values("2 2 4"), weight: values("2 3 2"); 5) => "2 3 5" numeric,
            |i| total(0, i, weight, y, [&[2, 3, 5], &[2, 3, 2], &[2, 2, 4]], (&[1], &[0], &[1])), scale 36.0;
        (y: values("2 4 3 1"), weight: values("4 1 2 3"); [4, 5], [2, 1], [1, 0], [1, 2], 2) => "2 2 4 5" numeric,
            |i| total(0, i, weight, y, [&[2, 2, 4, 5], &[4, 1, 2, 3], &[2, 4, 3, 1]], (&[2, 1], &[1, 0], &[1, 2])), scale 57.0;
        (y: values("1 1 2 3 2"), weight: values("1 2 2 2 1"); [2, 3, 2], 1, "same") => "1 2 2 3 2" numeric,
            |i| total(0, i, weight, y, [&[1, 2, 2, 3, 2], &[1, 2, 2, 2, 1], &[1, 1, 2, 3, 2]], (&[1; 3], &[0; 3], &[1; 3])), scale 75.0;
        (y: values("1 2 2"), weight: values("2 1 1"); 5, 3) => "1 1 5" numeric,
            |i| total(0, i, weight, y, [&[1, 1, 5], &[2, 1, 1], &[1, 2, 2]], (&[3], &[0], &[1])), scale 18.0;
        (y: values("2 2 3"), weight: values("2 3 1"); 3) => "2 3 3" numeric,
            |i| total(0, i, weight, y, [&[2, 3, 3], &[2, 3, 1], &[2, 2, 3]], (&[1], &[0], &[1])), scale 18.0;
    }
    convolution_weight {
        (x: values("2 3 5"), y: values("2 2 4"); 2) => "2 3 2" numeric,
            |i| total(1, i, x, y, [&[2, 3, 5], &[2, 3, 2], &[2, 2, 4]], (&[1], &[0], &[1])), scale 72.0;
        (x: values("2 2 4 5"), y: values("2 4 3 1"); [2, 3], [2, 1], [1, 0], [1, 2], 2) => "4 1 2 3" numeric,
            |i| total(1, i, x, y, [&[2, 2, 4, 5], &[4, 1, 2, 3], &[2, 4, 3, 1]], (&[2, 1], &[1, 0], &[1, 2])), scale 57.0;
        (x: values("1 2 2 3 2"), y: values("1 1 2 3 2"); [2, 2, 1], 1, "same") => "1 2 2 2 1" numeric,
            |i| total(1, i, x, y, [&[1, 2, 2, 3, 2], &[1, 2, 2, 2, 1], &[1, 1, 2, 3, 2]], (&[1; 3], &[0; 3], &[1; 3])), scale 110.0;
        (x: values("0 1 3"), y: values("0 2 2"); 2) => "2 1 2" numeric, |i| 0.0, scale 1.0;
    }
}
