//! Functions of `nn`. Most have no row here because there are answers recorded from PyTorch.

use crate::check::{index, numbers, values};
use namegrad::core::random::Generator;
use namegrad::prelude::*;

/// The largest of some elements.
fn largest(elements: impl Iterator<Item = f64>) -> f64 {
    elements.fold(f64::NEG_INFINITY, f64::max)
}

cases! {
    adaptive_max_pool3d {
        (x: values("C=2 D=3 H=2 W=4"); [1, 2, 2]) => "C=2 D=1 H=2 W=2" numeric, |i| {
            largest((0..6).map(|at| x.at(&[i[0], at / 2, i[2], 2 * i[3] + at % 2])))
        };
    }
    adaptive_avg_pool3d {
        (x: values("C=2 D=3 H=2 W=4"); [1, 2, 2]) => "C=2 D=1 H=2 W=2" floats, |i| {
            (0..6).map(|at| x.at(&[i[0], at / 2, i[2], 2 * i[3] + at % 2])).sum::<f64>() / 6.0
        }, scale 3.0;
    }
    lp_pool2d {
        (x: values("C=2 H=2 W=4"); 2.0, 2) => "C=2 H=1 W=2" floats, |i| {
            (0..4).map(|at| x.at(&[i[0], at / 2, 2 * i[2] + at % 2]).powi(2)).sum::<f64>().sqrt()
        }, scale 9.0;
    }
    lp_pool3d {
        (x: values("C=2 D=1 H=2 W=4"); 4.0, [1, 2, 2]) => "C=2 D=1 H=1 W=2" floats, |i| {
            (0..4).map(|at| x.at(&[i[0], 0, at / 2, 2 * i[3] + at % 2]).powi(4)).sum::<f64>().powf(0.25)
        }, scale 81.0;
    }
    fractional_max_pool2d {
        (x: values("C=1 H=3 W=5"), samples: numbers("1 1 2", [0.5, 0.25]); 2, [2, 2]) => "C=1 H=2 W=2" floats, |i| {
            largest((0..4).map(|at| x.at(&[0, [0, 1][i[1]] + at / 2, [0, 3][i[2]] + at % 2])))
        };
    }
    fractional_max_pool3d {
        (x: values("C=1 D=2 H=3 W=5"), samples: numbers("1 1 3", [0.5, 0.25, 0.75]); [1, 2, 2], [2, 2, 2]) => "C=1 D=2 H=2 W=2" floats, |i| {
            largest((0..4).map(|at| x.at(&[0, i[1], [0, 1][i[2]] + at / 2, [0, 3][i[3]] + at % 2])))
        };
    }
    attention {
        (q: values("E=2 L=3 N=2"), k: values("S=4 E=2"), v: values("N=2 D=3 S=4"); "S", "E") => "D=3 L=3 N=2" floats, |i| {
            let score = |s: usize| (0..2).map(|e| q.at(&[e, i[1], i[2]]) * k.at(&[s, e])).sum::<f64>() * 0.5f64.sqrt();
            let sum = (0..4).map(|s| score(s).exp()).sum::<f64>();
            (0..4).map(|s| score(s).exp() / sum * v.at(&[i[2], i[0], s])).sum()
        }, scale 3.0;
    }
    sample {
        (logits: values("N=3 C=4"); "C", 0.0) => "N=3" drawn, |i| {
            (0..4).rev().max_by(|a, b| logits.at(&[i[0], *a]).total_cmp(&logits.at(&[i[0], *b]))).unwrap() as f64
        };
        (logits: values("C=4 N=3"); 0, 2.0, 1) => "N=3" drawn, |i| {
            (0..4).rev().max_by(|a, b| logits.at(&[*a, i[0]]).total_cmp(&logits.at(&[*b, i[0]]))).unwrap() as f64
        };
    }
    linear_cross_entropy {
        (x: values("N=2 embed=3"), linear_weight: values("class=2 embed=3"), target: index("N=2", [1, 0])) => "" floats, |i| {
            let logit = |n: usize, c: usize| (0..3).map(|k| x.at(&[n, k]) * linear_weight.at(&[c, k])).sum::<f64>();
            (0..2).map(|n| (logit(n, 0).exp() + logit(n, 1).exp()).ln() - logit(n, 1 - n)).sum::<f64>() / 2.0
        }, scale 9.0;
    }
    max_unpool2d {
        (x: values("C=1 H=1 W=2"), indices: index("C=1 H=1 W=2", [5, 2]); 2) => "C=1 H=2 W=4" any, |i| {
            match i[1] * 4 + i[2] { 5 => x.at(&[0, 0, 0]), 2 => x.at(&[0, 0, 1]), _ => 0.0 }
        };
    }
    max_unpool3d {
        (x: values("C=1 D=1 H=1 W=2"), indices: index("C=1 D=1 H=1 W=2", [5, 2]); [1, 2, 2]) => "C=1 D=1 H=2 W=4" any, |i| {
            match i[2] * 4 + i[3] { 5 => x.at(&[0, 0, 0, 0]), 2 => x.at(&[0, 0, 0, 1]), _ => 0.0 }
        };
    }
    grid_sample {
        (x: values("N=2 C=2 H=2 W=4"), grid: numbers("N=2 H=1 W=2 ?=2", [-0.2, 0.1, 0.3, -0.2, 0.2, 0.3, 0.35, 0.05]))
            => "N=2 C=2 H=1 W=2" floats, |i| {
            let [w, h] = [(0, 4), (1, 2)].map(|(k, n)| ((grid.at(&[i[0], 0, i[3], k]) + 1.0) * n as f64 - 1.0) / 2.0);
            let weight = |at: f64, k: usize| (1.0 - (at - k as f64).abs()).max(0.0);
            (0..8).map(|k| weight(h, k / 4) * weight(w, k % 4) * x.at(&[i[0], i[1], k / 4, k % 4])).sum()
        }, scale 9.0;
    }
    affine_grid {
        (theta: values("N=2 ?=2 ?=3"); [2, 1, 2, 1]) => "N=2 ?=2 ?=1 ?=2" floats, |i| {
            let row = |k: usize| theta.at(&[i[0], i[3], k]);
            row(1) * (i[1] as f64 - 0.5) + row(2)
        }, scale 9.0;
    }
    mse_loss {
        (x: values("N=2 C=3"), target: values("C=3"); "none") => "N=2 C=3" numeric, |i| (x.at(i) - target.at(&i[1..])).powi(2), scale 9.0;
    }
    channel_shuffle {
        (x: values("N=2 C=6 L=2"); 2, "C") => "N=2 C=6 L=2" any, |i| x.at(&[i[0], i[1] % 2 * 3 + i[1] / 2, i[2]]);
        (x: values("N=0 C=6"); 3, 1) => "N=0 C=6" any, |i| unreachable!();
    }
    embedding_renorm {
        (x: index("time=3", [1, 0, 1]), weight: values("vocab=3 embed=2"); 1.0) => "vocab=3 embed=2" floats, |i| {
            let row = weight.lane(&[i[0], 0], 1);
            let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
            if i[0] < 2 && norm > 1.0 { row[i[1]] / (norm + 1e-7) } else { row[i[1]] }
        }, scale 3.0;
    }
    // With a large temperature the noise and the logits do not matter.
    gumbel_softmax {
        (logits: values("N=2 C=4"); "C", 1e30) => "N=2 C=4" floats, |i| 0.25;
    }
}

#[test]
fn sample_draws_from_the_likely_classes() -> Result<()> {
    // Probabilities 1/2, 1/4, 1/8, 1/8.
    let logits =
        Tensor::new([0.25f64.ln(), 0.125f64.ln(), 0.5f64.ln(), 0.125f64.ln()])?.refine_names(["token"])?;
    let n = 20_000;
    let rows = logits.unsqueeze_with(0, UnsqueezeOptions::new().name("N")).expand([n, -1])?;
    let check = |options: SampleOptions, want: [f64; 4]| -> Result<()> {
        let drawn = Generator::from_seed(5).scope(|| F::sample_with(&rows, "token", options.clone()))?;
        assert_eq!((drawn.shape().to_string(), drawn.dtype()), (format!("[N={n}]"), DType::I64));
        for (class, want) in want.into_iter().enumerate() {
            let share = drawn.eq(class as i64)?.to(DType::F64)?.mean(..)?.item::<f64>()?;
            // Four standard deviations of a share of 20 000 are at most 0.015.
            assert!(
                share == want || want > 0.0 && (share - want).abs() < 0.015,
                "{options:?}, {class}: {share}"
            );
        }
        Ok(())
    };
    check(SampleOptions::new(), [0.25, 0.125, 0.5, 0.125])?;
    check(SampleOptions::new().temperature(0.5), [4.0 / 22.0, 1.0 / 22.0, 16.0 / 22.0, 1.0 / 22.0])?;
    check(SampleOptions::new().top_k(2), [1.0 / 3.0, 0.0, 2.0 / 3.0, 0.0])?;
    check(SampleOptions::new().top_k(9), [0.25, 0.125, 0.5, 0.125])?;
    // As few classes as reach it: exactly one half, and a little more.
    check(SampleOptions::new().top_p(0.5), [0.0, 0.0, 1.0, 0.0])?;
    check(SampleOptions::new().top_p(0.51), [1.0 / 3.0, 0.0, 2.0 / 3.0, 0.0])?;
    check(SampleOptions::new().top_p(0.0), [0.0, 0.0, 1.0, 0.0])?;
    check(SampleOptions::new().top_k(2).top_p(0.66), [0.0, 0.0, 1.0, 0.0])?;
    check(SampleOptions::new().temperature(1e-300), [0.0, 0.0, 1.0, 0.0])?;
    check(SampleOptions::new().temperature(0.0).top_k(3), [0.0, 0.0, 1.0, 0.0])
}

#[test]
fn what_sample_refuses() -> Result<()> {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let refused = |text: &str, made: Result<Tensor>| {
        let error = made.unwrap_err();
        assert!(error.kind() == ErrorKind::Value && error.to_string().contains(text), "{error}");
        assert!(error.op() == "sample" && error.location().file().ends_with("functional.rs"), "{error}");
    };
    for temperature in [0.0, 1.0] {
        let options = || SampleOptions::new().temperature(temperature);
        let sample = |numbers: [f64; 3]| {
            let logits = Tensor::new([[0.0; 3], numbers])?.refine_names(["N", "class"])?;
            F::sample_with(&logits, "class", options())
        };
        refused("NaN", sample([0.0, nan, inf]));
        refused("+∞", sample([0.0, -inf, inf]));
        refused("-∞", sample([-inf; 3]));
        assert_eq!(sample([-inf, 1.0, -inf])?.select(0, 1)?.item::<i64>()?, 1);
    }
    let x = Tensor::zeros([("N", 2), ("class", 3)])?;
    for (options, text) in [
        (SampleOptions::new().temperature(-1.0), "got -1"),
        (SampleOptions::new().temperature(nan), "got NaN"),
        (SampleOptions::new().top_k(0), "top_k"),
        (SampleOptions::new().top_p(1.5), "top_p"),
        (SampleOptions::new().top_p(nan), "top_p"),
    ] {
        refused(text, F::sample_with(&x, "class", options));
    }
    refused("no classes", F::sample(&x.narrow("class", 0, 0)?, "class"));
    assert_eq!(F::sample(&x.narrow("N", 0, 0)?, "class")?.shape().to_string(), "[N=0]");
    assert_eq!(F::sample(&x.select("N", 0)?, "class")?.ndim(), 0);
    Ok(())
}
