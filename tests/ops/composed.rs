//! Composed ops, which have no row in core but are checked in the same way.

use crate::check::identical;
use crate::check::{beside, index, mask, near_one, numbers, plain, values};
use crate::index::other;
use crate::plain::{self, Plain, sum, unravel};
use namegrad::autograd::{Index, Indexing};
use namegrad::core::random::Generator;
use namegrad::core::{Category, Device};
use namegrad::ops::{self, Given};
use namegrad::prelude::*;

/// Ops that the functions below check.
pub(crate) fn by_function() -> impl Iterator<Item = &'static str> {
    let alone = ["copy_", "resize_", "resize_as_", "type_as", "einsum", "index", "index_put"];
    let drawn = [
        "normal",
        "bernoulli",
        "multinomial",
        "poisson",
        "binomial",
        "standard_gamma",
        "dirichlet",
        "randint_like",
    ]
    .into_iter()
    .chain(DISTRIBUTIONS.iter().map(|(name, ..)| *name));
    alone.into_iter().chain(drawn).chain(CASTS).chain(FILLS.iter().map(|(name, _)| *name))
}

cases! {
    index_fill {
        (x: values("N=3 C=4"), at: index("2", [-1, 0]), value: values(""); "N") => "N=3 C=4" any, |i| if i[0] == 1 { x.at(i) } else { value.at(&[]) };
        (x: values("N=3 C=4"), at: index("C=1", [2]), value: values(""); 1) => "N=3 C=4" any, |i| if i[1] == 2 { value.at(&[]) } else { x.at(i) };
        (x: values("N=2"), at: index("0", []), value: values(""); 0) => "N=2" any, |i| x.at(i);
        (x: values(""), at: index("1", [0]), value: values(""); 0) => "" any, |i| value.at(&[]);
    }
    diagflat { (x: values("N=2 C=2"); 1) => "5 5" any, |i| if i[1] == i[0] + 1 { x.data[i[0]] } else { 0.0 }; }
    atleast_1d { (x: values("")) => "1" any, |i| x.data[0]; (x: values("N=2 C=3")) => "N=2 C=3" any, |i| x.at(i); }
    atleast_2d { (x: values("N=3")) => "?=1 N=3" any, |i| x.at(&i[1..]); }
    atleast_3d {
        (x: values("N=3")) => "?=1 N=3 ?=1" any, |i| x.at(&i[1..2]);
        (x: values("N=2 C=3")) => "N=2 C=3 ?=1" any, |i| x.at(&i[..2]);
        (x: values("")) => "1 1 1" any, |i| x.data[0];
    }
    windows {
        (x: values("N=2 T=7"); "T", 3, 2, "W") => "N=2 T=3 W=3" any, |i| x.at(&[i[0], 2 * i[1] + i[2]]);
        (x: values("T=4 C=2"); 0, 4, 1, "W") => "T=1 W=4 C=2" any, |i| x.at(&[i[1], i[2]]);
    }
    windows_ahead {
        (x: values("T=7 C=2"); "T", 3, 2, 1, "W") seen => "T=3 W=3 C=2" any, |i| x.at(&[i[0] + i[1], i[2]]);
        (x: values("T=7 C=2"); "T", 3, 2, 1, "W") ahead => "T=3 W=2 C=2" any, |i| x.at(&[i[0] + 3 + i[1], i[2]]);
    }
    as_strided {
        (x: values("N=3 C=4"); [2, 3], [5, 1], 2) => "2 3" any, |i| x.data[2 + 5 * i[0] + i[1]];
        (x: values("6"); [4, 3], [1, 1]) => "4 3" any, |i| x.data[i[0] + i[1]];
    }
    hsplit { (x: values("N=2 C=4"); 2) #1 => "N=2 C=2" any, |i| x.at(&[i[0], 2 + i[1]]); (x: values("N=4"); [1]) #1 => "N=3" any, |i| x.at(&[1 + i[0]]); }
    vsplit { (x: values("N=4 C=2"); [1, 3]) #1 => "N=2 C=2" any, |i| x.at(&[1 + i[0], i[1]]); }
    dsplit { (x: values("2 2 4"); 2) #1 => "2 2 2" any, |i| x.at(&[i[0], i[1], 2 + i[2]]); }
    rsub { (x: values("N=2 C=3"), y: values("C=3"); 2) => "N=2 C=3" numeric, |i| y.broadcast(i) - 2.0 * x.at(i), scale 9.0; }
    isin {
        (x: numbers("N=2 C=2", [1.0, 0.0, 2.0, 3.0]), tests: numbers("3", [3.0, 1.0, 1.0])) => "N=2 C=2" truth, |i| tests.data.contains(&x.at(i)).into();
        (x: numbers("N=2", [1.0, 0.0]), tests: numbers("0", []); true) => "N=2" truth, |i| 1.0;
        (x: numbers("N=2", [1.0, 0.0]), tests: numbers("", [0.0])) => "N=2" truth, |i| i[0] as f64;
    }
    cartesian_prod {
        (x: values("N=2"), y: values("3")) => "6 2" any, |i| if i[1] == 0 { x.data[i[0] / 3] } else { y.data[i[0] % 3] };
        (x: values("N=2")) => "2" any, |i| x.at(i);
    }
    combinations {
        (x: values("N=3"); 2) => "3 2" any, |i| x.data[[[0, 1], [0, 2], [1, 2]][i[0]][i[1]]];
        (x: values("N=2"); 3, true) => "4 3" any, |i| x.data[[[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1]][i[0]][i[1]]];
        (x: values("N=2"); 3) => "0 3" any, |i| 0.0;
    }
    select_scatter {
        (x: values("N=2 C=3"), src: values("N=2"); "C", -1) => "N=2 C=3" any, |i| if i[1] == 2 { src.at(&i[..1]) } else { x.at(i) };
    }
    slice_scatter {
        (x: values("N=5 C=2"), src: values("N=2 C=2"); 0, 1, 4, 2) => "N=5 C=2" any, |i| if [1, 3].contains(&i[0]) { src.at(&[i[0] / 2, i[1]]) } else { x.at(i) };
    }
    diagonal_scatter {
        (x: values("N=3 C=3"), src: values("2"); 0, 1, 1) => "N=3 C=3" any, |i| if i[1] == i[0] + 1 { src.at(&i[..1]) } else { x.at(i) };
        (x: values("N=2 B=2 C=3"), src: values("B=2 ?=2"); "N", "C", 0) => "N=2 B=2 C=3" any, |i| if i[2] == i[0] { src.at(&i[1..]) } else { x.at(i) };
    }
    argwhere { (x: numbers("N=2 C=2", [0.0, 1.0, 1.0, 0.0])) => "2 2" indices, |i| [[0.0, 1.0], [1.0, 0.0]][i[0]][i[1]]; }
    nonzero_numpy {
        (x: numbers("N=2 C=2", [0.0, 1.0, 1.0, 0.0]); "at") #1 => "at=2" indices, |i| [1.0, 0.0][i[0]];
        (x: numbers("", [1.0])) => "1" indices, |i| 0.0;
    }
    unravel_index { (x: index("N=3", [5, 0, 2]); [2, 3]) #1 => "N=3" indices, |i| x.at(i) % 3.0; }
    unique_consecutive {
        (x: numbers("N=2 C=2", [1.0, 1.0, 0.0, 1.0]); "..") values => "3" any, |i| [1.0, 0.0, 1.0][i[0]];
        (x: numbers("N=2 C=2", [1.0, 1.0, 0.0, 1.0]); "..") inverse => "N=2 C=2" indices, |i| [[0.0, 0.0], [1.0, 2.0]][i[0]][i[1]];
        (x: numbers("N=3 C=2", [1.0, 0.0, 1.0, 0.0, 0.0, 0.0]); "N") values => "N=2 C=2" any, |i| x.at(&[2 * i[0], i[1]]);
        (x: numbers("N=3 C=2", [1.0, 0.0, 1.0, 0.0, 0.0, 0.0]); "N") counts => "N=2" indices, |i| [2.0, 1.0][i[0]];
        (x: values("0"); 0) counts => "0" indices, |i| 0.0;
    }
    trapezoid {
        (y: values("N=2 T=4"); "T", 0.5) => "N=2" to_number, |i| sum(3, |k| 0.25 * (y.at(&[i[0], k]) + y.at(&[i[0], k + 1]))), scale 9.0;
        (y: values("T=3 C=2"), x: values("T=3"); "T") => "C=2" to_number, |i| sum(2, |k| 0.5 * (x.at(&[k + 1]) - x.at(&[k])) * (y.at(&[k, i[0]]) + y.at(&[k + 1, i[0]]))), scale 36.0;
        (y: values("T=1 C=2"); 0) => "C=2" to_number, |i| 0.0;
    }
    cumulative_trapezoid {
        (y: values("N=2 T=4"); "T", 0.5) => "N=2 T=3" to_number, |i| sum(i[1] + 1, |k| 0.25 * (y.at(&[i[0], k]) + y.at(&[i[0], k + 1]))), scale 9.0;
        (y: values("T=3 C=2"), x: values("T=3"); "T") => "T=2 C=2" to_number, |i| sum(i[0] + 1, |k| 0.5 * (x.at(&[k + 1]) - x.at(&[k])) * (y.at(&[k, i[1]]) + y.at(&[k + 1, i[1]]))), scale 36.0;
    }
    gradient {
        (x: values("N=4 C=2"); "N", 0.5) #0 => "N=4 C=2" to_number, |i| {
            let (low, high) = (i[0].saturating_sub(1), (i[0] + 1).min(3));
            (x.at(&[high, i[1]]) - x.at(&[low, i[1]])) / (0.5 * (high - low) as f64)
        }, scale 24.0;
        (x: values("N=3 C=4"); "..", [1.0, 2.0], 2) #1 => "N=3 C=4" to_number, |i| {
            let at = |k: usize| x.at(&[i[0], k]);
            match i[1] {
                0 => (4.0 * at(1) - at(2) - 3.0 * at(0)) / 4.0,
                3 => (3.0 * at(3) - 4.0 * at(2) + at(1)) / 4.0,
                k => (at(k + 1) - at(k - 1)) / 4.0,
            }
        }, scale 24.0;
    }
    cov {
        (x: values("N=3 C=2"); "N") => "C=2 ?=2" to_number, |i| covariance(x, 1.0, i), scale 18.0;
        (x: values("N=3 C=2"); 0, 0, "D") => "C=2 D=2" to_number, |i| covariance(x, 0.0, i), scale 18.0;
        (x: values("N=3")) => "" to_number, |i| covariance(&Plain { sizes: vec![3, 1], data: x.data.clone() }, 1.0, &[0, 0]), scale 18.0;
    }
    corrcoef {
        (x: values("N=4 C=2"); "N") => "C=2 ?=2" to_number, |i| {
            covariance(x, 1.0, i) / (covariance(x, 1.0, &[i[0]; 2]) * covariance(x, 1.0, &[i[1]; 2])).sqrt()
        }, scale 3.0;
    }
    cdist {
        (x: values("N=3 C=2"), y: values("M=2 C=2")) => "N=3 M=2" floats, |i| power_mean(x, y, i, 2.0), scale 6.0;
        (x: values("N=30 C=2"), y: values("M=2 C=2")) => "N=30 M=2" floats, |i| power_mean(x, y, i, 2.0), scale 600.0;
        (x: values("N=3 C=2"), y: values("M=2 C=2"); 1.0) => "N=3 M=2" floats, |i| power_mean(x, y, i, 1.0), scale 6.0;
        (x: values("N=3 C=2"), y: values("M=2 C=2"); 0.0) => "N=3 M=2" floats, |i| (0..2).map(|k| f64::from(x.at(&[i[0], k]) != y.at(&[i[1], k]))).sum();
        (x: values("N=3 C=2"), y: values("M=2 C=2"); f64::INFINITY) => "N=3 M=2" floats, |i| (0..2).map(|k| (x.at(&[i[0], k]) - y.at(&[i[1], k])).abs()).fold(0.0, f64::max), scale 6.0;
        (x: values("N=3 C=2"), y: values("M=2 C=2"); 3.5) => "N=3 M=2" floats, |i| power_mean(x, y, i, 3.5), scale 6.0;
    }
    renorm {
        (x: values("N=3 C=2"); 2.0, "N", 1.5) => "N=3 C=2" floats, |i| {
            let norm = x.lane(&[i[0], 0], 1).iter().map(|x| x * x).sum::<f64>().sqrt();
            if norm > 1.5 { x.at(i) * 1.5 / (norm + 1e-7) } else { x.at(i) }
        }, scale 3.0;
    }
    histogram {
        (x: numbers("N=5", [0.0, 1.0, 0.4, 1.0, 0.6]); 2) hist => "2" floats, |i| [2.0, 3.0][i[0]];
        (x: numbers("N=5", [0.0, 1.0, 0.4, 1.0, 0.6]); 4, [-0.5, 0.5], true) hist => "4" floats, |i| [0.0, 0.0, 2.0, 2.0][i[0]];
        (x: numbers("N=2", [0.0, 1.0]), weight: numbers("N=2", [3.0, 0.5]); 2) hist => "2" floats, |i| [3.0, 0.5][i[0]];
        (x: numbers("N=2", [0.0, 4.0]); 4) bin_edges => "5" floats, |i| i[0] as f64;
    }
    histogramdd {
        (x: numbers("N=3 ?=2", [0.0, 1.0, 1.0, 0.0, 1.0, 0.0]); 2) #0 => "2 2" floats, |i| [[0.0, 1.0], [2.0, 0.0]][i[0]][i[1]];
        (x: numbers("N=3 ?=2", [0.0, 1.0, 1.0, 0.0, 1.0, 0.0]); [2, 1]) #2 => "2" floats, |i| i[0] as f64;
    }
    chebyshev_polynomial_t { (x: values("N=3"), n: index("N=3", [0, 2, 3])) => "N=3" to_float, |i| { let x = x.at(i); [1.0, 2.0 * x * x - 1.0, 4.0 * x.powi(3) - 3.0 * x][i[0]] }, scale 300.0; }
    chebyshev_polynomial_u { (x: values("N=3"), n: index("N=3", [0, 2, 3])) => "N=3" to_float, |i| { let x = x.at(i); [1.0, 4.0 * x * x - 1.0, 8.0 * x.powi(3) - 4.0 * x][i[0]] }, scale 300.0; }
    chebyshev_polynomial_v { (x: values("N=3"), n: index("N=3", [0, 2, 3])) => "N=3" to_float, |i| { let x = x.at(i); [1.0, 4.0 * x * x - 2.0 * x - 1.0, 8.0 * x.powi(3) - 4.0 * x * x - 4.0 * x + 1.0][i[0]] }, scale 300.0; }
    chebyshev_polynomial_w { (x: values("N=3"), n: index("N=3", [0, 2, 3])) => "N=3" to_float, |i| { let x = x.at(i); [1.0, 4.0 * x * x + 2.0 * x - 1.0, 8.0 * x.powi(3) + 4.0 * x * x - 4.0 * x - 1.0][i[0]] }, scale 300.0; }
    hermite_polynomial_h { (x: values("N=3"), n: index("N=3", [0, 2, 3])) => "N=3" to_float, |i| { let x = x.at(i); [1.0, 4.0 * x * x - 2.0, 8.0 * x.powi(3) - 12.0 * x][i[0]] }, scale 300.0; }
    hermite_polynomial_he { (x: values("N=3"), n: index("N=3", [0, 2, 3])) => "N=3" to_float, |i| { let x = x.at(i); [1.0, x * x - 1.0, x.powi(3) - 3.0 * x][i[0]] }, scale 300.0; }
    laguerre_polynomial_l { (x: values("N=3"), n: index("N=3", [0, 2, 3])) => "N=3" to_float, |i| { let x = x.at(i); [1.0, 0.5 * x * x - 2.0 * x + 1.0, 1.0 - 3.0 * x + 1.5 * x * x - x.powi(3) / 6.0][i[0]] }, scale 300.0; }
    legendre_polynomial_p { (x: values("N=3"), n: index("N=3", [0, 2, 3])) => "N=3" to_float, |i| { let x = x.at(i); [1.0, 1.5 * x * x - 0.5, 2.5 * x.powi(3) - 1.5 * x][i[0]] }, scale 300.0; }
    shifted_chebyshev_polynomial_t { (x: values("N=3"), n: index("N=3", [0, 2, 3])) => "N=3" to_float, |i| { let x = 2.0 * x.at(i) - 1.0; [1.0, 2.0 * x * x - 1.0, 4.0 * x.powi(3) - 3.0 * x][i[0]] }, scale 3000.0; }
    shifted_chebyshev_polynomial_u { (x: values("N=3"), n: index("N=3", [0, 2, 3])) => "N=3" to_float, |i| { let x = 2.0 * x.at(i) - 1.0; [1.0, 4.0 * x * x - 1.0, 8.0 * x.powi(3) - 4.0 * x][i[0]] }, scale 3000.0; }
    shifted_chebyshev_polynomial_v { (x: values("N=3"), n: index("N=3", [0, 2, 3])) => "N=3" to_float, |i| { let x = 2.0 * x.at(i) - 1.0; [1.0, 4.0 * x * x - 2.0 * x - 1.0, 8.0 * x.powi(3) - 4.0 * x * x - 4.0 * x + 1.0][i[0]] }, scale 3000.0; }
    shifted_chebyshev_polynomial_w { (x: values("N=3"), n: index("N=3", [0, 2, 3])) => "N=3" to_float, |i| { let x = 2.0 * x.at(i) - 1.0; [1.0, 4.0 * x * x + 2.0 * x - 1.0, 8.0 * x.powi(3) + 4.0 * x * x - 4.0 * x - 1.0][i[0]] }, scale 3000.0; }
    bessel_j0 { (x: values("N=3")) => "N=3" to_float, |i| libm::j0(x.at(i)), scale 1.0; }
    bessel_j1 { (x: values("N=3")) => "N=3" to_float, |i| libm::j1(x.at(i)), scale 1.0; }
    bessel_y0 { (x: numbers("N=3", [1.0, 3.0, 5.0])) => "N=3" to_float, |i| libm::y0(x.at(i)), scale 1.0; }
    bessel_y1 { (x: numbers("N=3", [1.0, 3.0, 5.0])) => "N=3" to_float, |i| libm::y1(x.at(i)), scale 1.0; }
    modified_bessel_k0 { (x: numbers("N=3", [1.0, 3.0, 5.0])) => "N=3" to_float, |i| plain::modified_bessel_k(0.0, x.at(i), 0.0), scale 1.0; }
    modified_bessel_k1 { (x: numbers("N=3", [1.0, 3.0, 5.0])) => "N=3" to_float, |i| plain::modified_bessel_k(1.0, x.at(i), 0.0), scale 1.0; }
    scaled_modified_bessel_k0 { (x: numbers("N=3", [1.0, 3.0, 5.0])) => "N=3" to_float, |i| plain::modified_bessel_k(0.0, x.at(i), x.at(i)), scale 1.0; }
    scaled_modified_bessel_k1 { (x: numbers("N=3", [1.0, 3.0, 5.0])) => "N=3" to_float, |i| plain::modified_bessel_k(1.0, x.at(i), x.at(i)), scale 1.0; }
    spherical_bessel_j0 { (x: numbers("N=3", [1.0, 5.0, -3.0])) => "N=3" to_float, |i| x.at(i).sin() / x.at(i), scale 1.0; }
    airy_ai { (x: numbers("N=4", [1.0, 2.0, -3.0, 0.0])) => "N=4" to_float, |i| plain::airy(x.at(i)), scale 1.0; }
    airy_ai_prime { (x: numbers("N=4", [1.0, 2.0, -3.0, 0.0])) => "N=4" to_float, |i| (plain::airy(x.at(i) + 1e-5) - plain::airy(x.at(i) - 1e-5)) / 2e-5, scale 1e6; }
    xlog1py { (x: numbers("N=3", [0.0, 2.0, -1.0]), y: numbers("N=3", [0.5, 1.0, 2.0])) => "N=3" to_float, |i| if x.at(i) == 0.0 { 0.0 } else { x.at(i) * y.at(i).ln_1p() }, scale 3.0; }
    zeta { (s: index("N=3", [2, 3, 9]), q: numbers("N=3", [1.0, 2.0, 1.5])) => "N=3" to_float, |i| sum(20000, |k| (q.at(i) + k as f64).powf(-s.at(i))) + (q.at(i) + 19999.5).powf(1.0 - s.at(i)) / (s.at(i) - 1.0), scale 2.0; }
    gammainc { (a: index("N=3", [1, 2, 3]), x: numbers("N=3", [1.0, 2.0, 0.5])) => "N=3" to_float, |i| 1.0 - upper_gamma(a.at(i), x.at(i)), scale 1.0; }
    gammaincc { (a: index("N=3", [1, 2, 3]), x: numbers("N=3", [1.0, 2.0, 0.5])) => "N=3" to_float, |i| upper_gamma(a.at(i), x.at(i)), scale 1.0; }
    multigammaln { (x: numbers("N=2", [2.0, 3.0]); 3) => "N=2" to_float, |i| 1.5 * std::f64::consts::PI.ln() + sum(3, |j| libm::lgamma(x.at(i) - 0.5 * j as f64)), scale 3.0; }
    masked_scatter {
        (x: values("N=2 C=3"), mask: mask("C=3", [0, 1, 1]), source: values("2 3")) => "N=2 C=3" any,
            |i| if i[1] == 0 { x.at(i) } else { source.at(&unravel(2 * i[0] + i[1] - 1, &[2, 3])) };
        (x: values("N=2"), mask: mask("N=2", [0, 0]), source: values("0")) => "N=2" any, |i| x.at(i);
    }
    take {
        (x: values("N=2 C=3"), at: index("A=2 B=2", [5, 0, -1, 3])) => "A=2 B=2" any, |i| x.data[at.at(i).rem_euclid(6.0) as usize];
        (x: values(""), at: index("0", [])) => "0" any, |i| 0.0;
    }
    take_along_dim {
        (x: values("N=2 C=3"), at: index("1 2", [2, 0]); 1) => "N=2 C=2" any, |i| x.at(&[i[0], at.whole(&[0, i[1]])]);
        (x: values("N=2 C=1"), at: index("1 3", [1, 0, 1]); "N") => "N=1 C=3" any, |i| x.at(&[at.whole(i), 0]);
    }
    segment_sum {
        (x: values("N=2 edge=4"), at: index("edge=4", [2, 0, 2, 2]); "edge", node(3)) => "N=2 node=3" sums,
            |i| segment(x, at, i, 1).into_iter().sum(), scale 12.0;
        (x: values("edge=3 C=2"), at: index("3", [1, 0, 1]); 0, 2) => "?=2 C=2" sums, |i| segment(x, at, i, 0).into_iter().sum(), scale 9.0;
        (x: values("edge=0 C=2"), at: index("0", []); 0, node(2)) => "node=2 C=2" sums, |i| 0.0;
        (x: values("edge=0 C=2"), at: index("0", []); 0, node(0)) => "node=0 C=2" sums, |i| 0.0;
    }
    segment_mean {
        (x: values("N=2 edge=4 C=2"), at: index("edge=4", [2, 0, 2, 2]); -2, node(3)) => "N=2 node=3 C=2" floats, |i| {
            let terms = segment(x, at, i, 1);
            terms.iter().sum::<f64>() / terms.len().max(1) as f64
        }, scale 12.0;
    }
    segment_max {
        (x: values("N=2 edge=4"), at: index("edge=4", [2, 0, 1, 2]); "edge", node(3)) => "N=2 node=3" any,
            |i| segment(x, at, i, 1).into_iter().fold(f64::NEG_INFINITY, f64::max);
        (x: values("edge=4 C=2"), at: index("4", [2, 0, 2, 2]); "edge", node(3), 0.0) => "node=3 C=2" any,
            |i| segment(x, at, i, 0).into_iter().reduce(f64::max).unwrap_or(0.0);
    }
    segment_min {
        (x: values("N=2 edge=4"), at: index("edge=4", [2, 0, 1, 2]); "edge", node(3)) => "N=2 node=3" any,
            |i| segment(x, at, i, 1).into_iter().fold(f64::INFINITY, f64::min);
        (x: values("edge=4 C=2"), at: index("4", [2, 0, 2, 2]); "edge", node(3), 1.0) => "node=3 C=2" any,
            |i| segment(x, at, i, 0).into_iter().reduce(f64::min).unwrap_or(1.0);
    }
    segment_softmax {
        (x: values("N=2 edge=4"), at: index("edge=4", [2, 0, 2, 2]); "edge", node(3)) => "N=2 edge=4" floats, |i| {
            let own = [i[0], at.whole(&i[1..])];
            x.at(i).exp() / segment(x, at, &own, 1).into_iter().map(f64::exp).sum::<f64>()
        }, scale 1.0;
        (x: values("edge=5 C=2"), at: index("5", [1, 0, 1, 1, 0]); 0, 4) => "edge=5 C=2" floats, |i| {
            let own = [at.whole(&i[..1]), i[1]];
            x.at(i).exp() / segment(x, at, &own, 0).into_iter().map(f64::exp).sum::<f64>()
        }, scale 1.0;
    }
    repeat_interleave {
        (x: values("N=2 C=3"), times: index("", [2]); "N") => "N=4 C=3" any, |i| x.at(&[i[0] / 2, i[1]]);
        (x: values("N=2 C=3"), times: index("3", [2, 0, 1]); 1) => "N=2 C=3" any, |i| x.at(&[i[0], [0, 0, 2][i[1]]]);
        (x: values(""), times: index("", [3]); 0) => "3" any, |i| x.at(&[]);
        (x: values("N=2"), times: index("", [0]); 0) => "N=0" any, |i| x.at(i);
    }
    tile {
        (x: values("N=2 C=3"); [2]) => "N=2 C=6" any, |i| x.at(&[i[0], i[1] % 3]);
        (x: values("C=3"); [2, 2]) => "?=2 C=6" any, |i| x.at(&[i[1] % 3]);
    }
    diag {
        (x: values("N=3"); 1) => "4 4" any, |i| if i[1] == i[0] + 1 { x.at(&i[..1]) } else { 0.0 };
        (x: values("N=2 C=3"); 1) => "2" any, |i| x.at(&[i[0], i[0] + 1]);
    }
    diag_embed {
        (x: values("N=2 C=3"); 0, -2, -1) => "N=2 ?=3 ?=3" any, |i| if i[1] == i[2] { x.at(&i[..2]) } else { 0.0 };
        (x: values("N=2 C=3"); -1, 2, 0) => "?=4 N=2 ?=4" any, |i| if i[2] == i[0] + 1 { x.at(&[i[1], i[0]]) } else { 0.0 };
    }
    rot90 {
        (x: values("H=2 W=3"); 1, ["H", "W"]) => "W=3 H=2" any, |i| x.at(&[i[1], 2 - i[0]]);
        (x: values("H=2 W=3"); -1, [0, 1]) => "W=3 H=2" any, |i| x.at(&[1 - i[1], i[0]]);
        (x: values("H=2 W=3"); 6, [1, 0]) => "H=2 W=3" any, |i| x.at(&[1 - i[0], 2 - i[1]]);
        (x: values("H=2 W=3"); 4, [0, 1]) => "H=2 W=3" any, |i| x.at(i);
    }
    trace { (x: values("N=2 C=3")) => "" sums, |i| x.at(&[0, 0]) + x.at(&[1, 1]), scale 6.0; }
    kron {
        (x: values("N=2 C=2"), y: values("3")) => "2 6" any, |i| x.at(&[i[0], i[1] / 3]) * y.at(&[i[1] % 3]);
        (x: values(""), y: values("N=2")) => "2" any, |i| x.at(&[]) * y.at(i);
    }
    addr {
        (x: values("M=2"), a: values("N=3"), b: values("M=2"); 2, 3) => "N=3 M=2" any, |i| {
            let (x, product) = (x.broadcast(i), a.at(&i[..1]) * b.at(&i[1..]));
            let masks = [a, b].iter().all(|x| x.data.iter().all(|x| *x == 0.0 || *x == 1.0));
            if masks { f64::from(x + product > 0.0) } else { 2.0 * x + 3.0 * product }
        }, scale 33.0;
    }
    addbmm {
        (x: values("N=2 M=2"), a: values("B=2 N=2 K=3"), b: values("B=2 K=3 M=2"); 1, 2) => "N=2 M=2" numeric,
            |i| x.at(i) + 2.0 * sum(6, |k| a.at(&[k / 3, i[0], k % 3]) * b.at(&[k / 3, k % 3, i[1]])), scale 111.0;
    }
    vdot { (a: values("K=5"), b: values("K=5")) => "" numeric, |i| sum(5, |k| a.at(&[k]) * b.at(&[k])), scale 45.0; }
    inner {
        (a: values("N=2 K=3"), b: values("M=4 K=3")) => "N=2 M=4" numeric, |i| sum(3, |k| a.at(&[i[0], k]) * b.at(&[i[1], k])), scale 27.0;
        (a: values("N=2"), b: values("")) => "N=2" any, |i| a.at(i) * b.at(&[]);
    }
    vecdot {
        (a: values("N=2 C=3"), b: values("N=2 C=3"); "C") => "N=2" sums, |i| {
            (0..3).map(|k| a.at(&[i[0], k]) * b.at(&[i[0], k])).sum()
        }, scale 27.0;
    }
    multi_dot {
        (a: values("A=2 B=3"), b: values("B=3 C=2"), c: values("C=2")) => "A=2" numeric, |i| {
            let at = |k: usize| (0..2).map(|j| b.at(&[k, j]) * c.at(&[j])).sum::<f64>();
            (0..3).map(|k| a.at(&[i[0], k]) * at(k)).sum()
        }, scale 200.0;
    }
    cross {
        (a: values("N=2 C=3"), b: values("C=3"); "C") => "N=2 C=3" numeric, |i| {
            let (j, k) = ((i[1] + 1) % 3, (i[1] + 2) % 3);
            a.at(&[i[0], j]) * b.at(&[k]) - a.at(&[i[0], k]) * b.at(&[j])
        }, scale 18.0;
    }
    dist {
        (x: values("N=2 C=3"), y: values("C=3"); 2.0) => "" floats, |i| sum(6, |k| apart(x, y, k).powi(2)).sqrt(), scale 20.0;
        (x: values("N=4"), y: values("4"); 3.0) => "" floats, |i| sum(4, |k| apart(x, y, k).abs().powi(3)).cbrt(), scale 20.0;
        (x: values("N=4"), y: values("4"); 1.0) => "" floats, |i| sum(4, |k| apart(x, y, k).abs()), scale 20.0;
        (x: values("N=4"), y: values("4"); f64::INFINITY) => "" floats, |i| (0..4).map(|k| apart(x, y, k).abs()).fold(0.0, f64::max), scale 6.0;
    }
    prelu {
        (x: values("N=2 C=3"), weight: values("C=3")) => "N=2 C=3" floats,
            |i| if x.at(i) > 0.0 { x.at(i) } else { x.at(i) * weight.at(&i[1..]) }, scale 9.0;
        (x: values("N=2 C=3 L=2"), weight: values("3")) => "N=2 C=3 L=2" floats,
            |i| if x.at(i) > 0.0 { x.at(i) } else { x.at(i) * weight.at(&i[1..2]) }, scale 9.0;
    }
    nan_to_num { (x: values("N=2 C=3"); 0.0, 1.0, 2.0) => "N=2 C=3" any, |i| x.at(i); }
    float_power { (x: near_one("N=3"), y: values("N=3")) => "N=3" doubles, |i| x.at(i).powf(y.at(i)), scale 1.0; }
    isclose {
        (x: numbers("N=3", [1.0, 2.0, 0.0]), y: numbers("N=3", [1.0, 3.0, 0.0])) => "N=3" truth, |i| (x.at(i) == y.at(i)).into();
        (x: values("N=2 C=3"), y: values("C=3"); 0.5, 0.25) => "N=2 C=3" truth, |i| ((x.at(i) - y.broadcast(i)).abs() <= 0.25 + 0.5 * y.broadcast(i).abs()).into();
    }
    isposinf { (x: values("N=2 C=3")) => "N=2 C=3" truth, |i| 0.0; }
    isneginf { (x: values("N=2 C=3")) => "N=2 C=3" truth, |i| 0.0; }
    hstack {
        (x: values("N=2 C=3"), y: values("N=2 C=3")) => "N=2 C=6" any, |i| [x, y][i[1] / 3].at(&[i[0], i[1] % 3]);
        (x: values("N=2"), y: values("N=2")) => "N=4" any, |i| [x, y][i[0] / 2].at(&[i[0] % 2]);
    }
    vstack {
        (x: values("N=2 C=3"), y: values("N=2 C=3")) => "N=4 C=3" any, |i| [x, y][i[0] / 2].at(&[i[0] % 2, i[1]]);
        (x: values("C=3"), y: values("C=3")) => "?=2 C=3" any, |i| [x, y][i[0]].at(&i[1..]);
    }
    dstack {
        (x: values("N=2 C=3"), y: values("N=2 C=3")) => "N=2 C=3 ?=2" any, |i| [x, y][i[2]].at(&i[..2]);
        (x: values("C=3"), y: values("C=3")) => "?=1 C=3 ?=2" any, |i| [x, y][i[2]].at(&i[1..2]);
    }
    column_stack { (x: values("N=3"), y: values("N=3")) => "N=3 ?=2" any, |i| [x, y][i[1]].at(&i[..1]); }
    one_hot {
        (x: index("N=3", [2, 0, 1]); 4) => "N=3 ?=4" indices, |i| (x.at(&i[..1]) == i[1] as f64).into();
        (x: index("N=2 T=2", [1, 0, 0, 1]); -1, "class") => "N=2 T=2 class=2" indices, |i| (x.at(&i[..2]) == i[2] as f64).into();
        (x: index("", [1])) => "2" indices, |i| i[0] as f64;
    }
    block_diag {
        (x: values("2 3"), y: values("2")) => "3 5" any, |i| match (i[0] < 2, i[1] < 3) {
            (true, true) => x.at(i),
            (false, false) => y.at(&[i[1] - 3]),
            _ => 0.0,
        };
    }
    broadcast_tensors { (x: values("N=2 ?=1"), y: beside("C=3")) => "N=2 C=3" any, |i| x.broadcast(i); }
    meshgrid {
        (x: values("H=2"), y: beside("W=3")) => "H=2 W=3" any, |i| x.at(&i[..1]);
        (x: beside("H=2"), y: values("W=3")) #1 => "H=2 W=3" any, |i| y.at(&i[1..]);
        (x: values("H=2"), y: beside("W=3"); "xy") => "W=3 H=2" any, |i| x.at(&i[1..]);
    }
    split {
        (x: values("N=2 C=5"); 2, "C") #2 => "N=2 C=1" any, |i| x.at(&[i[0], i[1] + 4]);
        (x: values("N=2 C=5"); [1, 4], -1) #1 => "N=2 C=4" any, |i| x.at(&[i[0], i[1] + 1]);
    }
    chunk { (x: values("N=2 C=5"); 2, "C") #1 => "N=2 C=2" any, |i| x.at(&[i[0], i[1] + 3]); }
    tensor_split {
        (x: values("N=2 C=5"); 3, 1) #1 => "N=2 C=2" any, |i| x.at(&[i[0], i[1] + 2]);
        (x: values("N=2 C=5"); [1, -1], 1) #1 => "N=2 C=3" any, |i| x.at(&[i[0], i[1] + 1]);
    }
    unbind { (x: values("N=2 C=5"); "C") #3 => "N=2" any, |i| x.at(&[i[0], 3]); }
    put {
        (x: values("N=2 C=2"), at: index("2", [3, 0]), source: values("2")) => "N=2 C=2" any, |i| match (i[0], i[1]) {
            (1, 1) => source.data[0],
            (0, 0) => source.data[1],
            _ => x.at(i),
        };
        (x: values("N=3"), at: index("2", [1, 1]), source: values("2"); true) => "N=3" any,
            |i| x.at(i) + if i[0] == 1 { source.data[0] + source.data[1] } else { 0.0 }, scale 9.0;
    }
    ravel { (x: values("N=2 C=3")) => "6" any, |i| x.data[i[0]]; (x: values("N=2")) => "N=2" any, |i| x.at(i); }
    fliplr { (x: values("N=2 C=3")) => "N=2 C=3" any, |i| x.at(&[i[0], 2 - i[1]]); }
    flipud { (x: values("N=2 C=3")) => "N=2 C=3" any, |i| x.at(&[1 - i[0], i[1]]); }
    swapaxes { (x: values("N=2 C=3"); 0, "C") => "C=3 N=2" any, |i| x.at(&[i[1], i[0]]); }
    expand_as { (x: values("C=3"), y: beside("2 3")) => "?=2 C=3" any, |i| x.at(&i[1..]); }
    view_as { (x: values("6"), y: beside("2 3")) => "2 3" any, |i| x.data[3 * i[0] + i[1]]; }
    reshape_as { (x: values("N=2 C=3"), y: beside("3 2")) => "3 2" any, |i| x.data[2 * i[0] + i[1]]; }
    to {
        (x: values("N=2 C=3"); "float64") => "N=2 C=3" doubles, |i| x.at(i);
    }
    frexp {
        (x: values("N=2 C=3")) mantissa => "N=2 C=3" floats, |i| x.at(i) / exponent(x.at(i)).exp2();
    }
    masked_sum {
        (x: values("N=2 C=3"), m: mask("N=2 C=3", [1, 0, 1, 0, 1, 1]); "C") => "N=2" sums, |i| kept(x, m, i[0]).iter().sum(), scale 10.0;
        (x: values("N=2 C=3"), m: mask("C=3", [0, 1, 0]); 1) => "N=2" sums, |i| x.at(&[i[0], 1]), scale 10.0;
        (x: values("N=2"), m: mask("N=2", [0, 0]); 0) => "" sums, |i| 0.0;
    }
    masked_prod { (x: values("N=2 C=3"), m: mask("N=2 C=3", [1, 0, 1, 0, 1, 1]); "C") => "N=2" sums, |i| kept(x, m, i[0]).iter().product(), scale 10.0; }
    masked_mean { (x: values("N=2 C=3"), m: mask("N=2 C=3", [1, 0, 1, 0, 1, 1]); "C") => "N=2" to_float, |i| kept(x, m, i[0]).iter().sum::<f64>() / 2.0, scale 10.0; }
    masked_var {
        (x: values("N=2 C=3"), m: mask("N=2 C=3", [1, 0, 1, 0, 1, 1]); "C") => "N=2" to_float, |i| spread(&kept(x, m, i[0])), scale 20.0;
        (x: values("N=2 C=3"), m: mask("N=2 C=3", [1, 0, 1, 0, 1, 1]); "C", 0.0) => "N=2" to_float, |i| spread(&kept(x, m, i[0])) / 2.0, scale 20.0;
    }
    masked_std { (x: values("N=2 C=3"), m: mask("N=2 C=3", [1, 0, 1, 0, 1, 1]); "C") => "N=2" to_float, |i| spread(&kept(x, m, i[0])).sqrt(), scale 10.0; }
    masked_amax { (x: values("N=2 C=3"), m: mask("N=2 C=3", [1, 0, 1, 0, 1, 1]); "C") => "N=2" any, |i| kept(x, m, i[0]).into_iter().reduce(f64::max).unwrap(); }
    masked_amin { (x: values("N=2 C=3"), m: mask("N=2 C=3", [1, 0, 1, 0, 1, 1]); "C") => "N=2" any, |i| kept(x, m, i[0]).into_iter().reduce(f64::min).unwrap(); }
    masked_argmax { (x: values("N=2 C=3"), m: mask("C=3", [0, 1, 0]); "C") => "N=2" indices, |i| 1.0; }
    masked_argmin { (x: values("N=2 C=3"), m: mask("C=3", [0, 1, 0]); "C") => "N=2" indices, |i| 1.0; }
    masked_median { (x: values("N=2 C=3"), m: mask("N=2 C=3", [1, 0, 1, 0, 1, 1]); "C") => "N=2" to_float, |i| kept(x, m, i[0]).into_iter().reduce(f64::min).unwrap(); }
    masked_norm { (x: values("N=2 C=3"), m: mask("N=2 C=3", [1, 0, 1, 0, 1, 1]); "C") => "N=2" to_float, |i| kept(x, m, i[0]).iter().map(|x| x * x).sum::<f64>().sqrt(), scale 10.0; }
    masked_logsumexp { (x: values("N=2 C=3"), m: mask("N=2 C=3", [1, 0, 1, 0, 1, 1]); "C") => "N=2" to_float, |i| kept(x, m, i[0]).iter().map(|x| x.exp()).sum::<f64>().ln(), scale 10.0; }
    masked_softmax { (x: values("N=2 C=3"), m: mask("N=2 C=3", [1, 0, 1, 0, 1, 1]); "C") => "N=2 C=3" to_float, |i| share(x, m, i), scale 1.0; }
    masked_log_softmax { (x: values("N=2 C=3"), m: mask("C=3", [1, 1, 1]); "C") => "N=2 C=3" to_float, |i| share(x, m, i).ln(), scale 10.0; }
    masked_cumsum { (x: values("N=2 C=3"), m: mask("N=2 C=3", [1, 0, 1, 0, 1, 1]); "C") => "N=2 C=3" sums, |i| (0..=i[1]).map(|k| m.at(&[i[0], k]) * x.at(&[i[0], k])).sum(), scale 10.0; }
    masked_cumprod { (x: values("N=2 C=3"), m: mask("C=3", [0, 1, 1]); "C") => "N=2 C=3" sums, |i| (1..=i[1]).map(|k| x.at(&[i[0], k])).product(), scale 10.0; }
    ldexp { (x: values("N=2 C=3"), y: values("C=3")) => "N=2 C=3" to_float, |i| x.at(i) * y.broadcast(i).exp2(), scale 1.0; }
}

/// The exponent of a number that is not 0, such that the mantissa is in [½, 1).
fn exponent(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { f64::from(libm::frexp(x).1) }
}

/// The elements of a row where the mask is true.
fn kept(x: &Plain, mask: &Plain, row: usize) -> Vec<f64> {
    let places = (0..x.sizes[1]).filter(|k| mask.broadcast(&[row, *k]) != 0.0);
    places.map(|k| x.at(&[row, k])).collect()
}

/// The sum of the squared deviations of two numbers from their mean.
fn spread(x: &[f64]) -> f64 {
    (x[0] - x[1]).powi(2) / 2.0
}

/// Softmax over the elements where the mask is true.
fn share(x: &Plain, mask: &Plain, i: &[usize]) -> f64 {
    mask.broadcast(i) * x.at(i).exp() / kept(x, mask, i[0]).iter().map(|x| x.exp()).sum::<f64>()
}

/// `Q(a, x)` for a whole number `a`: `e^-x Σ xᵏ / k!` over `k < a`.
fn upper_gamma(a: f64, x: f64) -> f64 {
    (0..a as i32).map(|k| (-x).exp() * x.powi(k) / libm::tgamma(f64::from(k) + 1.0)).sum()
}

/// The covariance of two columns of a matrix.
fn covariance(x: &Plain, correction: f64, columns: &[usize]) -> f64 {
    let n = x.sizes[0];
    let mean = |c: usize| sum(n, |k| x.at(&[k, c])) / n as f64;
    let [a, b] = [0, 1].map(|k| columns[k]);
    sum(n, |k| (x.at(&[k, a]) - mean(a)) * (x.at(&[k, b]) - mean(b))) / (n as f64 - correction)
}

/// The distance of two rows of matrices.
fn power_mean(x: &Plain, y: &Plain, i: &[usize], p: f64) -> f64 {
    sum(x.sizes[1], |k| (x.at(&[i[0], k]) - y.at(&[i[1], k])).abs().powf(p)).powf(1.0 / p)
}

/// A dim of segments with a name.
fn node(count: i64) -> ops::Value {
    ops::Value::List(vec![ops::Value::List(vec!["node".into(), count.into()])])
}

/// The elements of the segment at index `i` of a reduction along `dim`.
fn segment(x: &Plain, at: &Plain, i: &[usize], dim: usize) -> Vec<f64> {
    let own = (0..at.sizes[0]).filter(|j| at.whole(&[*j]) == i[dim]);
    own.map(|j| x.at(&[&i[..dim], &[j], &i[dim + 1..]].concat())).collect()
}

#[test]
fn segments_are_checked() -> Result<()> {
    let x = Tensor::ones([("edge", 3), ("embed", 2)])?;
    let at = |numbers: [i64; 3]| Tensor::new(numbers);
    let kind = |made: Result<Tensor>| made.unwrap_err().kind();
    let error = x.segment_sum(&at([0, 3, 1])?, "edge", ("node", 3)).unwrap_err();
    let text = "segment_sum: index has the number 3, but there are 3 segments";
    assert!(error.to_string().starts_with(text), "{error}");
    assert!(error.to_string().contains("(\"node\", 4)"), "{error}");
    let error = x.segment_sum(&at([4, 9, 5])?, "edge", ("node", 4)).unwrap_err();
    assert!(error.message().contains("the number 9, but there are 4"), "{error}");
    assert_eq!(error.repair(), Some("(\"node\", 10) or more segments"));
    assert_eq!(kind(x.segment_sum(&at([0, -1, 1])?, "edge", ("node", 3))), ErrorKind::Index);
    assert_eq!(kind(x.segment_max(&at([0, 0, 1])?, "edge", 0)), ErrorKind::Index);
    assert_eq!(kind(x.segment_sum(&at([0, 1, 1])?, "embed", 2)), ErrorKind::Shape);
    assert_eq!(kind(x.segment_sum(&at([0, 1, 1])?, "edges", 2)), ErrorKind::NameNotFound);
    assert_eq!(kind(x.segment_sum(&at([0, 1, 1])?, "edge", ("embed", 2))), ErrorKind::DuplicateName);
    assert_eq!(kind(x.segment_softmax(&at([0, 1, 1])?, "edge", ("embed", 2))), ErrorKind::DuplicateName);
    assert_eq!(kind(x.segment_sum(&at([0, 1, 1])?, "edge", [2, 2])), ErrorKind::Shape);
    assert_eq!(kind(x.segment_sum(&at([0, 1, 1])?, "edge", -1)), ErrorKind::Shape);
    assert_eq!(kind(x.segment_sum(&at([0, 1, 1])?.unsqueeze(0)?, "edge", 2)), ErrorKind::Shape);
    assert_eq!(kind(x.segment_sum(&at([0, 1, 1])?.to(DType::F32)?, "edge", 2)), ErrorKind::DType);
    assert_eq!(kind(Tensor::new(1.0)?.segment_sum(&Tensor::new([0])?, 0, 2)), ErrorKind::Shape);
    let named = at([0, 1, 1])?.refine_names(["node"])?;
    assert_eq!(kind(x.segment_mean(&named, "edge", ("node", 2))), ErrorKind::NameMismatch);
    assert_eq!(
        kind(namegrad::names::strict(|| x.segment_min(&at([0, 1, 1])?, "edge", ("node", 2)))),
        ErrorKind::NameMismatch
    );
    let wide = Tensor::ones([("edge", 3)])?.to(DType::I64)?;
    assert_eq!(wide.segment_max(&at([0, 0, 0])?, 0, 2)?.to_vec::<i64>()?, [1, i64::MIN]);
    assert_eq!(wide.to(DType::U8)?.segment_min(&at([0, 0, 0])?, 0, 2)?.to_vec::<u8>()?, [1, 255]);
    // The value of an empty segment is a number of the dtype.
    for (dtype, empty, fits) in [
        (DType::I64, -3.0, true),
        (DType::I64, 0.5, false),
        (DType::U8, 300.0, false),
        (DType::Bool, 300.0, false),
        (DType::Bool, 0.0, true),
        (DType::I32, f64::NAN, false),
        (DType::F16, 1e9, false),
        (DType::F16, f64::INFINITY, true),
        (DType::F32, 1e39, false),
        (DType::BF16, 1e9, true),
    ] {
        let x = wide.to(dtype)?;
        let largest = x.segment_max_with(&at([0, 0, 0])?, 0, 2, SegmentMaxOptions::new().empty(empty));
        let least = x.segment_min_with(&at([0, 0, 0])?, 0, 2, SegmentMinOptions::new().empty(empty));
        for made in [largest, least] {
            match made {
                Ok(y) if fits => {
                    let want = Tensor::new(empty)?.to(dtype)?.to(DType::F64)?.item::<f64>()?;
                    assert_eq!(y.to(DType::F64)?.to_vec::<f64>()?, [1.0, want]);
                }
                Err(error) if !fits => assert_eq!(error.kind(), ErrorKind::Value, "{error}"),
                made => panic!("{empty} in {dtype}: {made:?}"),
            }
        }
    }
    Ok(())
}

/// Extremes of floats, ties and half types.
#[test]
fn segments_at_the_edges_of_numbers() -> Result<()> {
    let at = Tensor::new([0, 0, 1, 1, 2, 2])?;
    let x = Tensor::new([1e30, 2e30, f32::NEG_INFINITY, f32::NEG_INFINITY, f32::NAN, 1.0])?;
    let y = x.segment_softmax(&at, 0, 3)?.to_vec::<f32>()?;
    assert_eq!(y[..2], [0.0, 1.0]);
    assert!(y[2..].iter().all(|y| y.is_nan()));
    let largest = x.segment_max(&at, 0, 3)?.to_vec::<f32>()?;
    assert!(largest[..2] == [2e30, f32::NEG_INFINITY] && largest[2].is_nan());
    let x = Tensor::new([3.0, 3.0, 1.0, 4.0, 0.0, 0.0])?.requiring_grad()?;
    x.segment_max(&at, 0, 4)?.narrow(0, 0, 3)?.sum(..)?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [0.5, 0.5, 0.0, 1.0, 0.5, 0.5]);
    // One term of 2048 and many of 1: sums in half precision would stop at 2048.
    let ones = Tensor::ones([101])?.to(DType::F16)?.mul(2048.0)?;
    let tail = Tensor::ones([100])?.to(DType::F16)?;
    let x = Tensor::cat(&[&ones.narrow(0, 0, 1)?, &tail], 0)?;
    let sum = x.segment_sum(x.zeros_like()?.to(DType::I64)?, 0, 90)?;
    assert_eq!(sum.select(0, 0)?.item::<f64>()?, 2148.0);
    let mean = x.segment_mean(x.zeros_like()?.to(DType::I64)?, 0, 90)?.select(0, 0)?.item::<f64>()?;
    assert!((mean - 2148.0 / 101.0).abs() < 0.01, "{mean}");
    Ok(())
}

/// Like [`other`](crate::index::other), for an op that sums products: `bool` is rejected, and rounding errors
/// are relative to `scale`.
fn numeric_only(
    call: impl Fn(&[Tensor]) -> Result<Tensor> + 'static,
    inputs: Vec<crate::check::Input>,
    result: &str,
    element: impl Fn(&[Plain], &[usize]) -> f64 + 'static,
    scale: f64,
) {
    let result = crate::check::axes(result);
    let sizes = crate::check::sizes(&result);
    crate::check::check(&crate::check::Case {
        op: "einsum",
        call: Box::new(call),
        in_place: None,
        inputs,
        result,
        dtype: crate::check::numeric,
        reference: Box::new(move |x| Plain::from_fn(&sizes, |i| element(x, i))),
        scale: Some(scale),
        reshapes: true,
    });
}

/// The difference of elements `k` of two tensors; the second broadcasts.
fn apart(x: &Plain, y: &Plain, k: usize) -> f64 {
    x.data[k] - y.data[k % y.data.len()]
}

#[test]
fn parts_of_nothing() {
    let x = Tensor::zeros([("N", 0), ("C", 2)]).unwrap();
    let sizes =
        |parts: Result<Vec<Tensor>>| -> Vec<usize> { parts.unwrap().iter().map(|x| x.sizes()[0]).collect() };
    assert_eq!(sizes(x.split(3, 0)), [0]);
    assert_eq!(sizes(x.split(0, 0)), [0]);
    assert_eq!(sizes(x.chunk(2, 0)), [0, 0]);
    assert_eq!(sizes(x.tensor_split(2, 0)), [0, 0]);
    assert!(x.unbind(0).unwrap().is_empty());
    let kind = |result: Result<Vec<Tensor>>| result.unwrap_err().kind();
    assert_eq!(kind(x.split(0, 1)), ErrorKind::Value);
    assert_eq!(kind(x.split([1, -1], 0)), ErrorKind::Value);
    assert_eq!(kind(x.split([1, 1], 0)), ErrorKind::Shape);
    assert_eq!(kind(x.tensor_split(0, 0)), ErrorKind::Value);
    assert_eq!(kind(Tensor::new(1.0).unwrap().split(1, 0)), ErrorKind::DimRange);
}

#[test]
fn made_to_fit() {
    let inputs = || vec![values("N=2 ?=1"), values("C=3")];
    let fit = |x: &[Tensor]| {
        let parts = Tensor::broadcast_tensors(&[&x[0], &x[1]])?;
        Tensor::stack([parts[0].rename(None)?, parts[1].rename(None)?], 0)
    };
    other("broadcast_tensors", fit, inputs(), "2 2 3", |x, i| x[i[0]].broadcast(&i[1..]));
    let vectors = || vec![values("H=2"), values("W=3")];
    let grid = |x: &[Tensor]| {
        let grid = Tensor::meshgrid(&[&x[0], &x[1]])?;
        grid[0].mul(&grid[1])
    };
    other("meshgrid", grid, vectors(), "H=2 W=3", |x, i| x[0].at(&i[..1]) * x[1].at(&i[1..]));
    let turned = Tensor::meshgrid_with(
        &[&Tensor::new([1, 2]).unwrap(), &Tensor::new([3, 4, 5]).unwrap()],
        MeshgridOptions::new().indexing(Indexing::Xy),
    )
    .unwrap();
    assert_eq!(
        (turned[0].sizes(), turned[0].to_vec::<i64>().unwrap()),
        (&[3, 2][..], vec![1, 2, 1, 2, 1, 2])
    );
}

#[test]
fn index_put() {
    let x = || values("N=3 C=4");
    let row = |x: &[Tensor]| x[0].index_put(&[Index::At(1), (1..3).into()], &x[1]);
    other("index_put", row, vec![x(), values("C=2")], "N=3 C=4", |x, i| {
        if i[0] == 1 && (1..3).contains(&i[1]) { x[1].at(&[i[1] - 1]) } else { x[0].at(i) }
    });
    let rows =
        |x: &[Tensor]| x[0].index_put_with(&[(&x[2]).into()], &x[1], IndexPutOptions::new().accumulate(true));
    other("index_put", rows, vec![x(), numbers("2 1", [0.5, 2.0]), index("2", [2, 2])], "N=3 C=4", |x, i| {
        x[0].at(i) + if i[0] == 2 { x[1].data[0] + x[1].data[1] } else { 0.0 }
    });
    let masked = |x: &[Tensor]| x[0].index_put(&[(&x[2]).into()], &x[1]);
    other("index_put", masked, vec![values("N=2"), values(""), mask("N=2", [0, 1])], "N=2", |x, i| {
        if i[0] == 1 { x[1].at(&[]) } else { x[0].at(i) }
    });
    let x = Tensor::zeros([("N", 2), ("C", 2)]).unwrap();
    let named = Tensor::zeros([("K", 2)]).unwrap();
    assert_eq!(x.index_put(&[Index::At(0)], &named).unwrap_err().kind(), ErrorKind::NameMismatch);
}

#[test]
fn index_put_in_place() {
    let places: [&[Index]; 6] = [
        &[Index::At(1)],
        &[(..).into(), (1..).into()],
        &[Index::Slice { start: Some(0), end: None, step: 2 }, Index::New, Index::At(-1)],
        &[Index::Ellipsis],
        &[(3..3).into()],
        &[(&Tensor::new([2, 0]).unwrap()).into(), Index::At(0)],
    ];
    for dtype in [DType::Bool, DType::F16, DType::F32, DType::F64] {
        let x = Tensor::arange(1, 13, 1).unwrap().to(dtype).unwrap().reshape([3, 4]).unwrap();
        for (number, at) in places.into_iter().enumerate() {
            let want = x.index_put(at, 0).unwrap();
            // Each element of the part is 0; all others are unchanged.
            let inside = Tensor::zeros([3, 4]).unwrap().index_put(at, 1).unwrap().ne(0).unwrap();
            assert!(want.equal(&x.masked_fill(&inside, 0).unwrap()).unwrap(), "{dtype}, {number}");
            let mut own = Tensor::constant(x.value().deep_clone().unwrap());
            let before = own.data_ptr();
            own.index_put_(at, 0).unwrap();
            assert!(own.equal(&want).unwrap(), "{dtype}, {number}");
            assert!(own.data_ptr() == before || number == 5, "{dtype}, {number}: the buffer was copied");
            for (order, mut x) in crate::check::orders(&x) {
                let held = x.clone();
                x.index_put_(at, 0).unwrap();
                assert!(x.equal(&want).unwrap(), "{dtype}, {number}, {order}");
                assert!(held.index_put(at, 0).unwrap().equal(&want).unwrap(), "{dtype}, {number}, {order}");
            }
        }
    }
    // Under `no_grad`, a leaf is updated and stays a leaf; out of place, the result is a new tensor.
    let mut leaf = Tensor::zeros([2]).unwrap().requiring_grad().unwrap();
    assert_eq!(leaf.index_put_(&[Index::At(0)], 1).unwrap_err().kind(), ErrorKind::Autograd);
    no_grad(|| leaf.index_put_(&[Index::At(0)], 1).map(drop)).unwrap();
    assert!(leaf.requires_grad() && leaf.is_leaf());
    assert!(!no_grad(|| leaf.index_put(&[Index::At(0)], 1)).unwrap().requires_grad());
    assert_eq!(plain(&leaf).data, [1.0, 0.0]);
}

/// A part that is not a view of the tensor is an error, because it may be outside of the buffer.
#[test]
fn write_part() {
    let base = Tensor::zeros([4]).unwrap().into_value();
    let (mut low, high) = (base.narrow(0, 0, 2).unwrap(), base.narrow(0, 1, 2).unwrap());
    let one = Tensor::ones([2]).unwrap().into_value();
    assert_eq!(low.write_part(high.clone(), &one).unwrap_err().kind(), ErrorKind::Value);
    assert_eq!(
        base.clone().flip(0).unwrap().write_part(base.clone(), &one).unwrap_err().kind(),
        ErrorKind::Shape
    );
    let mut whole = base.clone();
    whole.write_part(high, &one).unwrap();
    assert_eq!(whole.to_vec::<f32>().unwrap(), [0.0, 1.0, 1.0, 0.0]);
    assert_eq!(base.to_vec::<f32>().unwrap(), [0.0; 4]);
    let mut turned = whole.clone();
    turned
        .write_part(
            turned.flip(0).unwrap(),
            &whole.mul(Tensor::arange(0, 4, 1).unwrap().into_value()).unwrap(),
        )
        .unwrap();
    assert_eq!(turned.to_vec::<f32>().unwrap(), [0.0, 2.0, 1.0, 0.0]);
}

#[test]
fn copied() {
    let copied = |x: &[Tensor]| {
        let mut y = x[0].mul(1.0)?.to(x[0].dtype())?;
        y.copy_(&x[1])?;
        Ok(y)
    };
    other("copy_", copied, vec![values("N=2 C=3"), values("C=3")], "N=2 C=3", |x, i| x[1].at(&i[1..]));
    let mut named = Tensor::zeros([("N", 2), ("C", 3)]).unwrap();
    let error = named.copy_(Tensor::zeros([("C", 3), ("N", 2)]).unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NameMismatch);
    let mut leaf = Tensor::zeros([3]).unwrap().requiring_grad().unwrap();
    assert_eq!(leaf.copy_(Tensor::ones([3]).unwrap()).unwrap_err().kind(), ErrorKind::Autograd);
}

#[test]
fn resized() {
    let mut x = Tensor::new([1, 2, 3]).unwrap();
    assert_eq!(x.resize_([2, 2]).unwrap().to_vec::<i64>().unwrap(), [1, 2, 3, 0]);
    assert_eq!(x.resize_([1]).unwrap().to_vec::<i64>().unwrap(), [1]);
    assert_eq!(x.resize_([-1]).unwrap_err().kind(), ErrorKind::Value);
    let mut named = Tensor::zeros([("N", 2)]).unwrap();
    assert_eq!(named.resize_([3]).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(named.resize_as_(Tensor::zeros([2]).unwrap()).unwrap_err().kind(), ErrorKind::OutNames);
    assert_eq!(Tensor::zeros([2]).unwrap().resize_as_(&named).unwrap().shape(), named.shape());
}

#[test]
fn replaced() {
    let x = Tensor::new([f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0]).unwrap();
    for (dtype, digits) in [(DType::F16, 11), (DType::BF16, 8), (DType::F32, 24), (DType::F64, 53)] {
        let x = x.to(dtype).unwrap().requiring_grad().unwrap();
        let y = x.nan_to_num_with(NanToNumOptions::new().nan(3.0).neginf(-5.0)).unwrap();
        let [nan, high, low, one] = plain(&y).data[..] else { unreachable!() };
        assert_eq!([nan, low, one], [3.0, -5.0, 1.0]);
        // Two more units in the last place are too much.
        let more =
            Tensor::from_slice(&[high * (1.0 + 2f64.powi(1 - digits))], [1]).unwrap().to(dtype).unwrap();
        assert!(high.is_finite() && plain(&more).data[0].is_infinite(), "{dtype}: {high} is not the largest");
        y.sum(..).unwrap().backward().unwrap();
        assert_eq!(plain(&x.grad().unwrap()).data, [0.0, 0.0, 0.0, 1.0]);
    }
    let whole = x.to(DType::I32).unwrap();
    assert!(whole.nan_to_num().unwrap().equal(&whole).unwrap());
    let truth = |x: Result<Tensor>| x.unwrap().to_vec::<bool>().unwrap();
    assert_eq!(truth(x.isposinf()), [false, true, false, false]);
    assert_eq!(truth(x.isneginf()), [false, false, true, false]);
    assert_eq!(truth(Tensor::new([1, i64::MAX]).unwrap().isposinf()), [false, false]);
}

#[test]
fn near() {
    let x = Tensor::new([1.0, f64::INFINITY, f64::NAN, 0.0]).unwrap();
    let y = Tensor::new([1.0 + 5e-6, f64::INFINITY, f64::NAN, 1e-4]).unwrap();
    assert_eq!(x.isclose(&y).unwrap().to_vec::<bool>().unwrap(), [true, true, false, false]);
    let loose = IscloseOptions::new().atol(1e-3).equal_nan(true);
    assert!(x.allclose_with(&y, loose).unwrap());
    assert!(!x.equal(&x).unwrap());
    let bytes = Tensor::new([0, 255]).unwrap().to(DType::U8).unwrap();
    assert_eq!(bytes.isclose(bytes.flip(0).unwrap()).unwrap().to_vec::<bool>().unwrap(), [false, false]);
    let large = Tensor::new([i64::MAX]).unwrap();
    assert!(
        large.isclose_with(&large, IscloseOptions::new().rtol(0.0).atol(0.0)).unwrap().is_nonzero().unwrap()
    );
    let named = Tensor::zeros([("N", 2)]).unwrap();
    assert!(named.equal(&named).unwrap() && !named.equal(&named.rename(None).unwrap()).unwrap());
    assert_eq!(named.is_nonzero().unwrap_err().kind(), ErrorKind::Value);
    let negative = IscloseOptions::new().rtol(-1.0);
    assert_eq!(named.isclose_with(&named, negative).unwrap_err().kind(), ErrorKind::Value);
}

#[test]
fn einsum() {
    let of =
        |equation: &'static str| move |x: &[Tensor]| Tensor::einsum(equation, &x.iter().collect::<Vec<_>>());
    let (a, b) = (|| values("N=2 K=3"), || values("3 4"));
    let product = |x: &[Plain], i: &[usize]| sum(3, |k| x[0].at(&[i[0], k]) * x[1].at(&[k, i[1]]));
    numeric_only(of("ij,jk->ik"), vec![a(), b()], "2 4", product, 27.0);
    numeric_only(of(" ij , jk -> ki"), vec![a(), b()], "4 2", move |x, i| product(x, &[i[1], i[0]]), 27.0);
    numeric_only(
        of("...ij,jk"),
        vec![values("5 2 3"), b()],
        "5 2 4",
        |x, i| sum(3, |k| x[0].at(&[i[0], i[1], k]) * x[1].at(&[k, i[2]])),
        27.0,
    );
    numeric_only(
        of("ij,j->"),
        vec![a(), values("3")],
        "",
        |x, _| sum(6, |k| x[0].data[k] * x[1].data[k % 3]),
        54.0,
    );
    numeric_only(
        of("ij,kj,j->ik"),
        vec![a(), values("4 3"), values("3")],
        "2 4",
        |x, i| sum(3, |k| x[0].at(&[i[0], k]) * x[1].at(&[i[1], k]) * x[2].at(&[k])),
        81.0,
    );
    numeric_only(
        of("bi,bi->b"),
        vec![a(), values("1 3")],
        "2",
        |x, i| sum(3, |k| x[0].at(&[i[0], k]) * x[1].at(&[0, k])),
        27.0,
    );
    numeric_only(
        of("iji,j->ij"),
        vec![values("2 3 2"), values("3")],
        "2 3",
        |x, i| x[0].at(&[i[0], i[1], i[0]]) * x[1].at(&i[1..]),
        9.0,
    );
    other("einsum", of("iij->ji"), vec![values("2 2 3")], "3 2", |x, i| x[0].at(&[i[1], i[1], i[0]]));
    let kind =
        |equation: &str| Tensor::einsum(equation, &[&Tensor::zeros([2, 3]).unwrap()]).unwrap_err().kind();
    assert_eq!(["ij->k", "ijk", "ii", "ij->ii"].map(kind), [ErrorKind::Shape; 4]);
    assert_eq!(["i,j", "i1", "i-j"].map(kind), [ErrorKind::Value; 3]);
    assert_eq!(kind("......"), ErrorKind::Ellipsis);
}

#[test]
fn drawn() {
    let mut generator = Generator::from_seed(5);
    let mut draw = |draw: fn(&mut Tensor) -> Result<()>| -> Vec<f64> {
        let mut x = Tensor::zeros([("N", 100)]).unwrap();
        generator.manual_seed(5);
        generator.scope(|| draw(&mut x)).unwrap();
        let first = x.to_vec::<f64>().unwrap();
        generator.manual_seed(5);
        generator.scope(|| draw(&mut x)).unwrap();
        assert_eq!(x.to_vec::<f64>().unwrap(), first);
        assert_eq!((generator.state().offset, x.shape().to_string()), (100, "[N=100]".to_string()));
        first
    };
    assert!(
        draw(|x| x.random_(-3..4).map(drop)).iter().all(|x| (-3.0..=3.0).contains(x) && x.fract() == 0.0)
    );
    assert!(draw(|x| x.random_(..).map(drop)).iter().all(|x| (0.0..=16777216.0).contains(x)));
    let share = draw(|x| x.bernoulli_(0.25).map(drop)).iter().sum::<f64>() / 100.0;
    assert!((share - 0.25).abs() < 0.2, "{share}"); // four standard deviations are 0.17
    let probabilities = Tensor::new([0.0, 1.0]).unwrap();
    let mut whole = Tensor::zeros([("N", 3), ("C", 2)]).unwrap().to(DType::I64).unwrap();
    assert_eq!(whole.bernoulli_(&probabilities).unwrap().to_vec::<i64>().unwrap(), [0, 1, 0, 1, 0, 1]);
    assert_eq!(whole.shape().to_string(), "[N=3, C=2]");
    let mut bytes = whole.to(DType::U8).unwrap();
    for outside in [0..257, -1..3] {
        assert_eq!(bytes.random_(outside).unwrap_err().kind(), ErrorKind::Value);
    }
    assert_eq!(bytes.bernoulli_(1.5).unwrap_err().kind(), ErrorKind::Value);
    let std = Tensor::new([1.0, -1.0]).unwrap();
    assert_eq!(Tensor::normal(0.0, &std).unwrap_err().kind(), ErrorKind::Value);
    let mut leaf = Tensor::zeros([2]).unwrap().requiring_grad().unwrap();
    assert_eq!(leaf.bernoulli_(0.5).unwrap_err().kind(), ErrorKind::Autograd);
    assert_eq!(leaf.random_(..).unwrap_err().kind(), ErrorKind::Autograd);
}

#[test]
fn asked() {
    let x = Tensor::zeros([("N", 2)]).unwrap();
    assert_eq!((x.device(), x.is_cuda()), (Device::Cpu, false));
    assert_eq!(Device::Cuda(1).to_string(), "cuda:1");
    assert_eq!(x.cuda().unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(x.cpu().unwrap().data_ptr(), x.data_ptr());
    assert_eq!((x.element_size(), x.nbytes(), x.type_name()), (4, 8, "torch.FloatTensor"));
    assert_eq!(x.type_as(Tensor::new([1]).unwrap()).unwrap().dtype(), DType::I64);
    assert_eq!(x.result_type(Tensor::zeros([1]).unwrap().to(DType::F64).unwrap()).unwrap(), DType::F64);
}

/// Each cast is [`to`](Tensor::to) its dtype.
#[test]
fn casts() {
    let to = |x: &Tensor, name: &str| ops::call(name, &[x], &[]).unwrap().swap_remove(0);
    for from in DType::ALL {
        let x = Tensor::new([0.0, 2.75, 1.0, 100.0]).unwrap().refine_names(["N"]).unwrap().to(from).unwrap();
        for (name, dtype) in CASTS.into_iter().zip(DType::ALL) {
            assert!(identical(&to(&x, name), &x.to(dtype).unwrap()), "{name} of {from}");
            let same =
                ops::call("type_as", &[&x, &Tensor::zeros([0]).unwrap().to(dtype).unwrap()], &[]).unwrap();
            assert!(identical(&same[0], &x.to(dtype).unwrap()), "type_as of {from}");
        }
    }
    let x = Tensor::new([1.0]).unwrap().requiring_grad().unwrap();
    to(&x, "double").sum(..).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().dtype(), DType::F32);
}

/// PyTorch's methods, in the order of `DType::ALL`.
const CASTS: [&str; 10] =
    ["bool", "byte", "char", "short", "int", "long", "half", "bfloat16", "float", "double"];

/// An op that creates or fills a tensor, and a check of its elements.
type Fill = (&'static str, fn(f64) -> bool);

/// The fills; if an op takes a value, it is 7.
const FILLS: [Fill; 12] = [
    ("zeros_like", |x| x == 0.0),
    ("ones_like", |x| x == 1.0),
    ("full_like", |x| x == 7.0),
    ("empty_like", |_| true),
    ("rand_like", |x| (0.0..1.0).contains(&x)),
    ("randn_like", f64::is_finite),
    ("new_zeros", |x| x == 0.0),
    ("new_empty", |x| x == 0.0),
    ("new_ones", |x| x == 1.0),
    ("new_full", |x| x == 7.0),
    ("zero_", |x| x == 0.0),
    ("fill", |x| x == 7.0),
];

#[test]
fn made_like_another() {
    let floats = Tensor::new([[1.0, 2.0], [3.0, 4.0]]).unwrap().refine_names(["N", "C"]).unwrap();
    for (name, is_right) in FILLS {
        let info = ops::find(name).unwrap().info;
        let dtype = if info.dtypes.contains(&Category::Integer) { DType::I16 } else { DType::F64 };
        let x = floats.to(dtype).unwrap();
        let mut shape = x.shape();
        let mut args: Vec<(&str, Given<'_>)> = Vec::new();
        for arg in info.args {
            match arg.name {
                "size" => {
                    args.push(("size", [3].into()));
                    shape = Tensor::zeros([3]).unwrap().shape();
                }
                "fill_value" => args.push(("fill_value", 7.into())),
                _ => {}
            }
        }
        args.extend((name == "fill").then(|| ("value", 7.into())));
        let y = ops::call(name, &[&x], &args).unwrap().swap_remove(0);
        assert_eq!((y.dtype(), y.shape()), (dtype, shape), "{name}");
        let numbers = y.to(DType::F64).unwrap().to_vec::<f64>().unwrap();
        assert!(numbers.iter().all(|x| is_right(*x)), "{name}: {numbers:?}");
        assert!(!name.starts_with("rand") || numbers[0] != numbers[1], "{name}: {numbers:?}");
        if info.args.iter().any(|arg| arg.name == "dtype") {
            args.push(("dtype", DType::F32.into()));
            assert_eq!(ops::call(name, &[&x], &args).unwrap()[0].dtype(), DType::F32, "{name}");
        }
    }
}

/// Draws from an op with named arguments, and pairs of a number and the expected share of draws up to it.
type Distribution = (&'static str, &'static [(&'static str, f64)], fn() -> [(f64, f64); 2]);

/// For each distribution, the median and another quantile, from the formula of the distribution.
const DISTRIBUTIONS: [Distribution; 7] = [
    ("uniform_", &[("from", -1.0), ("to", 3.0)], || [(1.0, 0.5), (2.0, 0.75)]),
    ("normal_", &[("mean", 1.0), ("std", 2.0)], || [(1.0, 0.5), (3.0, below_one_std())]),
    ("log_normal_", &[("mean", 1.0), ("std", 2.0)], || [(1f64.exp(), 0.5), (3f64.exp(), below_one_std())]),
    ("exponential_", &[("lambd", 2.0)], || [(2f64.ln() / 2.0, 0.5), (1.0, 1.0 - (-2f64).exp())]),
    ("cauchy_", &[("median", 1.0), ("sigma", 2.0)], || [(1.0, 0.5), (3.0, 0.75)]),
    ("geometric_", &[("p", 0.25)], || [(1.0, 0.25), (3.0, 1.0 - 0.75f64.powi(3))]),
    ("bernoulli_", &[("p", 0.25)], || [(0.0, 0.75), (1.0, 1.0)]),
];

/// The share of normal numbers below the mean plus the standard deviation.
fn below_one_std() -> f64 {
    0.5 * libm::erfc(-1.0 / 2f64.sqrt())
}

#[test]
fn distributions() {
    let n = 40_000;
    for (name, args, quantiles) in DISTRIBUTIONS {
        let args: Vec<(&str, Given<'_>)> =
            args.iter().map(|(name, value)| (*name, (*value).into())).collect();
        manual_seed(11);
        let mut x = Tensor::zeros([n]).unwrap().to(DType::F64).unwrap();
        ops::find(name).unwrap().call_in_place(&mut x, &[], &args).unwrap();
        let numbers = x.to_vec::<f64>().unwrap();
        for (at, want) in quantiles() {
            let found = numbers.iter().filter(|x| **x <= at).count() as f64 / n as f64;
            // Four standard deviations of a share of 40 000 are 0.01.
            assert!((found - want).abs() < 0.01, "{name}: {found} of the numbers are up to {at}, not {want}");
        }
    }
    let p = Tensor::new([0.0, 1.0, 1.0]).unwrap();
    assert_eq!(p.bernoulli().unwrap().to_vec::<f64>().unwrap(), [0.0, 1.0, 1.0]);
}

/// Draws have the moments of their distributions, up to five standard deviations of the mean of 20 000.
#[test]
fn counts_and_gammas_have_their_moments() -> Result<()> {
    let n = 20_000;
    let full = |value: f64| TensorOptions::new().dtype(DType::F64).full([("N", n)], value);
    let check = |drawn: &Tensor, mean: f64, variance: f64| -> Result<()> {
        assert_eq!((drawn.shape().to_string(), drawn.dtype()), (format!("[N={n}]"), DType::F64));
        let found = drawn.mean(..)?.item::<f64>()?;
        assert!((found - mean).abs() < 5.0 * (variance / n as f64).sqrt(), "{found} is not {mean}");
        let found = drawn.var(..)?.item::<f64>()?;
        assert!((found / variance - 1.0).abs() < 0.1, "{found} is not {variance}");
        Ok(())
    };
    Generator::from_seed(5).scope(|| {
        for rate in [0.5, 4.0, 90.0] {
            check(&full(rate)?.poisson()?, rate, rate)?;
            check(&full(rate)?.standard_gamma()?, rate, rate)?;
        }
        for (count, prob) in [(3.0, 0.25), (200.0, 0.7)] {
            check(&full(count)?.binomial(&full(prob)?)?, count * prob, count * prob * (1.0 - prob))?;
        }
        let parts = Tensor::stack(&[full(1.0)?, full(3.0)?], 1)?.dirichlet(1)?;
        check(&parts.select(1, 0)?, 0.25, 0.25 * 0.75 / 5.0)?;
        assert!(parts.sum(1)?.allclose(1.0)?);
        let whole = full(0.0)?.to(DType::I16)?.randint_like(-2, 3)?;
        assert_eq!(
            (whole.dtype(), whole.amin(..)?.item::<i64>()?, whole.amax(..)?.item::<i64>()?),
            (DType::I16, -2, 2)
        );
        for wrong in [full(-1.0)?.poisson(), full(0.0)?.standard_gamma(), full(2.0)?.binomial(&full(1.5)?)] {
            assert_eq!(wrong.unwrap_err().kind(), ErrorKind::Value);
        }
        Ok(())
    })
}

/// Views that are written back, windows and histograms refuse what does not fit.
#[test]
fn what_the_daily_operators_refuse() -> Result<()> {
    let x = Tensor::zeros([("N", 3), ("C", 4)])?;
    let kind = |made: Result<Tensor>| made.unwrap_err().kind();
    assert_eq!(kind(x.select_scatter(&Tensor::ones([("C", 4)])?, "N", 3)), ErrorKind::Index);
    assert_eq!(kind(x.select_scatter(&Tensor::ones([("C", 3)])?, "N", 0)), ErrorKind::Shape);
    assert_eq!(kind(x.select_scatter(&Tensor::ones([("D", 4)])?, "N", 0)), ErrorKind::NameMismatch);
    assert_eq!(kind(x.diagonal_scatter(&Tensor::ones([2])?, "N", "C")), ErrorKind::Shape);
    assert_eq!(kind(x.as_strided([2, 7], [6, 1])), ErrorKind::Index);
    assert_eq!(kind(x.windows("C", 5, 1, "window")), ErrorKind::Value);
    assert_eq!(kind(x.windows("C", 2, 1, "N")), ErrorKind::DuplicateName);
    assert_eq!(kind(x.windows_ahead("C", 3, 2, 1, "window").map(|(seen, _)| seen)), ErrorKind::Value);
    let negative = CovOptions::new().aweights(Tensor::new([1.0, -1.0, 0.0])?);
    assert_eq!(kind(x.cov_with("N", negative)), ErrorKind::Value);
    let descending = HistogramOptions::new().bins(&Tensor::new([1.0, 0.0])?);
    assert_eq!(x.histogram_with(descending).unwrap_err().kind(), ErrorKind::Value);
    assert_eq!(kind(x.cdist(&Tensor::zeros([2, 3])?)), ErrorKind::Shape);
    assert_eq!(kind(x.cdist_with(&x, CdistOptions::new().p(-1.0))), ErrorKind::Value);
    let more = RepeatInterleaveOptions::new().output_size(7);
    assert_eq!(kind(x.repeat_interleave_with(2, "N", more)), ErrorKind::Value);
    Ok(())
}

#[test]
fn multinomial_draws_by_weight() -> Result<()> {
    let n = 20_000;
    let weights = Tensor::new([1.0, 0.0, 5.0, 2.0])?.refine_names(["class"])?;
    let share = |drawn: &Tensor, class: i64| drawn.eq(class)?.to(DType::F64)?.mean(..)?.item::<f64>();
    Generator::from_seed(3).scope(|| {
        for scale in [1.0, 1e-38, 4e37] {
            let options = MultinomialOptions::new().replacement(true).name("draw");
            let drawn = weights.mul(scale)?.multinomial_with(n, "class", options)?;
            assert_eq!((drawn.shape().to_string(), drawn.dtype()), (format!("[draw={n}]"), DType::I64));
            for (class, weight) in [1.0, 0.0, 5.0, 2.0].into_iter().enumerate() {
                // Four standard deviations of a share of 20 000 are at most 0.015.
                assert!((share(&drawn, class as i64)? - weight / 8.0).abs() < 0.015, "class {class}");
            }
        }
        // Without replacement, the first position is drawn by weight, and the second by the weights that
        // remain.
        let rows = weights.rename([("class", "C")])?.unsqueeze(0)?.expand([n as i64, -1])?;
        let drawn = rows.multinomial(2, "C")?;
        let (first, second) = (drawn.select(1, 0)?, drawn.select(1, 1)?);
        assert!(!first.eq(&second)?.any(..)?.item::<bool>()?);
        assert!(
            (share(&first, 2)? - 5.0 / 8.0).abs() < 0.015 && share(&first, 1)? + share(&second, 1)? == 0.0
        );
        let of_second = 1.0 / 8.0 * 5.0 / 7.0 + 2.0 / 8.0 * 5.0 / 6.0;
        assert!((share(&second, 2)? - of_second).abs() < 0.015);
        // A weight that vanishes beside the largest is above 0, and one of 0 is not.
        let far = Tensor::from_slice(&[1e300, 0.0, 1e-300], 3)?;
        assert_eq!(far.multinomial(2, 0)?.to_vec::<i64>()?, [0, 2]);
        // All positions, in any order, with the dim in front.
        let all = weights
            .add(1.0)
            .unsqueeze_with(1, UnsqueezeOptions::new().name("N"))
            .expand([-1, 7])?
            .multinomial(4, "class")?;
        assert_eq!(all.shape().to_string(), "[?=4, N=7]");
        assert!(all.sort(0)?.values.eq(Tensor::arange(0, 4, 1)?.unsqueeze(1)?)?.all(..)?.item::<bool>()?);
        Ok(())
    })
}

#[test]
fn what_multinomial_refuses() -> Result<()> {
    let weights = |numbers: [f64; 3]| Tensor::new(numbers)?.refine_names(["class"]);
    let refused = |kind: ErrorKind, text: &str, made: Result<Tensor>| {
        let error = made.unwrap_err();
        assert!(error.kind() == kind && error.to_string().contains(text), "{error}");
    };
    use ErrorKind::{DuplicateName, NameNotFound, Shape, Value};
    refused(Value, "got -1", weights([1.0, -1.0, 1.0])?.multinomial(1, "class"));
    refused(Value, "got NaN", weights([1.0, f64::NAN, 1.0])?.multinomial(1, "class"));
    refused(Value, "got inf", weights([1.0, f64::INFINITY, 1.0])?.multinomial(1, "class"));
    refused(Value, "all weights of a draw are 0", weights([0.0; 3])?.multinomial(1, "class"));
    let two = weights([0.0, 1.0, 1.0])?;
    refused(
        Value,
        "3 draws without replacement need as many weights above 0, got 2",
        two.multinomial(3, "class"),
    );
    let more = MultinomialOptions::new().replacement(true);
    assert_eq!(two.multinomial_with(9, "class", more.clone())?.sizes(), [9]);
    refused(NameNotFound, "'classes'", two.multinomial(1, "classes"));
    refused(Shape, "0-d", Tensor::new(1.0)?.multinomial(1, 0));
    refused(ErrorKind::DType, "", Tensor::new([1, 2])?.multinomial(1, 0));
    let rows = Tensor::ones([("N", 2), ("class", 3)])?;
    refused(DuplicateName, "'N'", rows.multinomial_with(1, "class", more.name("N")));
    assert_eq!(rows.multinomial(0, "class")?.shape().to_string(), "[N=2, ?=0]");
    assert_eq!(
        Tensor::ones([("N", 0), ("class", 3)])?.multinomial(2, "class")?.shape().to_string(),
        "[N=0, ?=2]"
    );
    refused(Value, "no weights", Tensor::ones([("N", 2), ("class", 0)])?.multinomial(1, "class"));
    Ok(())
}

/// The parts of a matrix that indices select.
#[test]
fn index_of_parts() {
    let x = || vec![values("N=3 C=4")];
    other(
        "index",
        |x| x[0].index(&[Index::At(-1), (1..3).into()]),
        x(),
        "C=2",
        |x, i| x[0].at(&[2, i[0] + 1]),
    );
    other(
        "index",
        |x| x[0].index(&[Index::Ellipsis, Index::New, Index::At(1)]),
        x(),
        "N=3 ?=1",
        |x, i| x[0].at(&[i[0], 1]),
    );
    let rows = |x: &[Tensor]| x[0].index(&[(&x[1]).into()]);
    other("index", rows, vec![values("N=3 C=4"), index("2", [2, 0])], "N=2 C=4", |x, i| {
        x[0].at(&[x[1].whole(&i[..1]), i[1]])
    });
}

/// The exponent keeps its digits, and no power of two on the way is out of range.
#[test]
fn ldexp_of_large_exponents() -> Result<()> {
    let of = |x: Tensor, exponent: i64| x.ldexp(&Tensor::new([exponent])?)?.item::<f64>();
    assert_eq!(of(Tensor::new([true])?, 7)?, 128.0);
    assert_eq!(of(Tensor::new([251])?.to(DType::U8)?, -5)?, 251.0 / 32.0);
    assert_eq!(of(Tensor::new([0.0])?, 200)?, 0.0);
    let large = of(Tensor::new([1e-30])?, 200)?;
    assert_eq!(large, f64::from((f64::from(1e-30f32) * 2f64.powi(200)) as f32));
    let wide = Tensor::new([3.0])?.to(DType::F64)?;
    assert_eq!(of(wide.clone(), 1000)?, 3.0 * 2f64.powi(1000));
    assert_eq!(wide.ldexp(&Tensor::new([-1060])?)?.item::<f64>()?, 3.0 * 2f64.powi(-530) * 2f64.powi(-530));
    // The gradient of an exponent: Σ g y ln 2.
    let exponent = Tensor::new([0.5])?.requiring_grad()?;
    Tensor::new([1.0, 3.0])?.ldexp(&exponent)?.sum(..)?.backward()?;
    let gradient = exponent.grad().expect("it was computed").item::<f64>()?;
    assert!((gradient - 4.0 * 2f64.sqrt() * std::f64::consts::LN_2).abs() < 1e-6);
    Ok(())
}

#[test]
fn exponents() -> Result<()> {
    let x = [12.0, -0.5, 0.0, f64::INFINITY, 5e-324, -f64::MAX, 1.0];
    let (m, e) = Tensor::from_slice(&x, [7])?.frexp()?;
    assert_eq!(e.to_vec::<i32>()?, x.map(|x| if x.is_finite() { exponent(x) as i32 } else { 0 }));
    assert_eq!(m.ldexp(&e)?.to_vec::<f64>()?, x);
    assert!(m.to_vec::<f64>()?.iter().all(|m| *m == 0.0 || m.is_infinite() || (0.5..1.0).contains(&m.abs())));
    Ok(())
}

/// Elements where the mask is false are never the position of an extreme.
#[test]
fn positions_of_masked_extremes() -> Result<()> {
    let mask = Tensor::new([false, true, true])?;
    let x = Tensor::new([0, 0, 0])?.to(DType::U8)?;
    assert_eq!(x.masked_argmax(&mask, 0)?.item::<i64>()?, 1);
    let x = Tensor::new([f64::INFINITY, f64::NEG_INFINITY, f64::NAN])?;
    assert_eq!(x.masked_argmax(&mask, ..)?.item::<i64>()?, 2);
    assert_eq!(x.masked_argmin(&Tensor::new([true, true, false])?, 0)?.item::<i64>()?, 1);
    Ok(())
}
