//! Normalizations.

use crate::check::{by_subsets, values};
use crate::plain;
use namegrad::prelude::*;
use namegrad_tests::values::plain_and_recorded;

/// The number at position `at` of `lane`, normalized.
fn normalized(lane: &[f64], at: usize, eps: f64) -> f64 {
    (lane[at] - plain::mean(lane)) / (plain::variance(lane, 0.0) + eps).sqrt()
}

cases! {
    layer_norm {
        (x: values("N=2 C=3"); "C") => "N=2 C=3" floats, |i| normalized(&x.lane(&[i[0], 0], 1), i[1], 1e-5), scale 3.0;
        (x: values("N=2 C=3"), weight: values("C=3"), bias: values("C=3"); "C", 0.5) => "N=2 C=3" floats, |i| {
            normalized(&x.lane(&[i[0], 0], 1), i[1], 0.5) * weight.at(&i[1..]) + bias.at(&i[1..])
        }, scale 9.0;
        (x: values("C=4 N=2"), weight: values("C=4"); 0, 0.5) => "C=4 N=2" floats, |i| {
            normalized(&x.lane(&[0, i[1]], 0), i[0], 0.5) * weight.at(&i[..1])
        }, scale 9.0;
        (x: values("A=2 N=2 B=3"), weight: values("B=3 A=2"), bias: values("B=3 A=2"); ["B", "A"], 0.5) => "A=2 N=2 B=3" floats, |i| {
            let lane: Vec<f64> = (0..6).map(|at| x.at(&[at % 2, i[1], at / 2])).collect();
            normalized(&lane, i[2] * 2 + i[0], 0.5) * weight.at(&[i[2], i[0]]) + bias.at(&[i[2], i[0]])
        }, scale 9.0;
        (x: values("N=0 C=3"), weight: values("C=3"); "C") => "N=0 C=3" floats, |i| unreachable!();
    }
    rms_norm {
        (x: values("N=2 C=3"); "C", 0.5) => "N=2 C=3" floats, |i| scaled(&x.lane(&[i[0], 0], 1), i[1], 0.5), scale 3.0;
        (x: values("A=2 N=2 B=3"), weight: values("B=3 A=2"); ["B", "A"], 0.5) => "A=2 N=2 B=3" floats, |i| {
            let lane: Vec<f64> = (0..6).map(|at| x.at(&[at % 2, i[1], at / 2])).collect();
            scaled(&lane, i[2] * 2 + i[0], 0.5) * weight.at(&[i[2], i[0]])
        }, scale 9.0;
        (x: values("N=0 C=3"), weight: values("C=3"); "C") => "N=0 C=3" floats, |i| unreachable!();
    }
    standardize {
        // Batch normalization, with the channels in the middle and at the end.
        (x: values("N=2 C=3 L=2"), weight: values("C=3"), bias: values("C=3"); "C", ["N", "L"], 3, 0.5) y => "N=2 C=3 L=2" floats, |i| {
            let lane: Vec<f64> = (0..4).map(|at| x.at(&[at / 2, i[1], at % 2])).collect();
            normalized(&lane, i[0] * 2 + i[2], 0.5) * weight.at(&i[1..2]) + bias.at(&i[1..2])
        }, scale 9.0;
        (x: values("N=4 C=3"); "C", 0, 3, 0.5) y => "N=4 C=3" floats, |i| normalized(&x.lane(&[0, i[1]], 0), i[0], 0.5), scale 3.0;
        (x: values("N=4 C=3"); "C", 0, 3) mean => "C=3" computed, |i| plain::mean(&x.lane(&[0, i[0]], 0)), scale 3.0;
        (x: values("N=4 C=3"); "C", 0, 3) var => "C=3" computed, |i| plain::variance(&x.lane(&[0, i[0]], 0), 0.0), scale 9.0;
        // Group normalization; dims that are left ride along.
        (x: values("L=2 C=4 N=2"), weight: values("C=4"); "C", "L", 2, 0.5) y => "L=2 C=4 N=2" floats, |i| {
            let first = i[1] / 2 * 2;
            let lane: Vec<f64> = (0..4).map(|at| x.at(&[at % 2, first + at / 2, i[2]])).collect();
            normalized(&lane, (i[1] - first) * 2 + i[0], 0.5) * weight.at(&i[1..2])
        }, scale 9.0;
        (x: values("L=2 C=4 N=3"); "C", "L", 2) mean => "C=2 N=3" computed, |i| {
            let lane: Vec<f64> = (0..4).map(|at| x.at(&[at % 2, i[0] * 2 + at / 2, i[1]])).collect();
            plain::mean(&lane)
        }, scale 3.0;
        (x: values("N=0 C=3"); "C", "N", 3) y => "N=0 C=3" floats, |i| unreachable!();
        (x: values("N=0 C=4"); "C", "C", 2) var => "N=0 C=2" computed, |i| unreachable!();
    }
}

/// The number at position `at` of `lane`, divided by the root of the mean square.
fn scaled(lane: &[f64], at: usize, eps: f64) -> f64 {
    lane[at] / (lane.iter().map(|x| x * x).sum::<f64>() / lane.len() as f64 + eps).sqrt()
}

/// For any subset of the inputs, the fused backward pass equals the formula.
#[test]
fn gradients_of_any_subset() -> Result<()> {
    manual_seed(0);
    let x = Tensor::randn([("N", 33), ("time", 5), ("C", 70)])?;
    let (weight, bias) = (Tensor::randn([("C", 70)])?, Tensor::randn([("C", 70)])?);
    by_subsets(&[x, weight, bias], |inputs| {
        inputs[0].layer_norm_with("C", LayerNormOptions::new().weight(&inputs[1]).bias(&inputs[2]))
    })
}

/// The same for the other normalizations, whose loops depend on the sizes and on which elements share their
/// moments: long and short runs, groups, moments of all rows, and dims that are not dense.
#[test]
fn gradients_of_any_subset_over_groups() -> Result<()> {
    manual_seed(0);
    for (sizes, dims, groups) in [
        ([300, 6, 40], vec![0, 2], 6),
        ([300, 70, 1], vec![0, 2], 70),
        ([3, 6, 4000], vec![2], 3),
        ([3, 6, 40], vec![2], 6),
        ([40, 6, 3], vec![0], 2),
        ([400, 60, 1], vec![2], 4),
        ([3, 6, 40], vec![0], 6),
    ] {
        let x = Tensor::randn(sizes)?;
        let channels = sizes[1];
        let (weight, bias) = (Tensor::randn([channels])?, Tensor::randn([channels])?);
        let factors = Tensor::randn(sizes)?;
        by_subsets(&[x, weight, bias], |inputs| {
            let options = StandardizeOptions::new().weight(&inputs[1]).bias(&inputs[2]);
            let (y, mean, var) = inputs[0].standardize_with(1, dims.clone(), groups, options)?;
            // The moments have gradients too.
            y.mul(&factors)?.sum(..)?.add(mean.sin()?.sum(..)?)?.add(var.sin()?.sum(..)?)
        })?;
    }
    let x = Tensor::randn([("N", 33), ("C", 70)])?;
    by_subsets(&[x, Tensor::randn([("C", 70)])?], |inputs| {
        inputs[0].rms_norm_with("C", RmsNormOptions::new().weight(&inputs[1]))
    })
}

#[test]
fn parameters_that_do_not_fit() -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 3)])?;
    let kind =
        |weight: &Tensor| x.layer_norm_with("C", LayerNormOptions::new().weight(weight)).unwrap_err().kind();
    assert_eq!(kind(&Tensor::ones([("C", 2)])?), ErrorKind::Shape);
    assert_eq!(kind(&Tensor::ones([("K", 3)])?), ErrorKind::NameMismatch);
    assert_eq!(kind(&Tensor::new([1_i64, 2, 3])?), ErrorKind::DType);
    assert_eq!(x.to(DType::I64)?.layer_norm("C").unwrap_err().kind(), ErrorKind::DType);
    Ok(())
}

#[test]
fn the_recorded_gradient_of_layer_norm_was_computed_in_half_precision() -> Result<()> {
    for values in [[1.0, 1.125], [3.0, 3.0078125], [-7.0, 2.0]] {
        let x = Tensor::new([values])?.to(DType::F16)?;
        let g = Tensor::new([[1.0, -3.0]])?.to(DType::F16)?;
        let [plain, recorded] = plain_and_recorded(&x, |x| x.layer_norm(1)?.mul(&g)?.sum(..))?;
        // The terms cancel and are multiplied by an `rstd` of up to 200, so an error of `f32` grows to 1e-4.
        let close = plain.iter().zip(&recorded).all(|(a, b)| (a - b).abs() <= 1e-3 * a.abs() + 1e-4);
        assert!(close, "{plain:?} and {recorded:?}");
    }
    Ok(())
}

#[test]
fn the_mean_of_layer_norm_was_rounded_twice() -> Result<()> {
    let y = Tensor::new([1e7, 1e7 + 1.0, 1e7 + 2.0])?.layer_norm(0)?.to_vec::<f32>()?;
    let want = 1.5f32.sqrt();
    assert!(y.iter().zip([-want, 0.0, want]).all(|(y, want)| (y - want).abs() < 1e-4), "{y:?}");
    Ok(())
}

#[test]
fn a_row_of_nan_shifted_the_moments_of_the_others() -> Result<()> {
    let row: Vec<f32> = (0..1000).map(|k| 1000.0 + (k as f32 * 0.37).sin()).collect();
    let row = Tensor::from_slice(&row, [1, 1000])?;
    let beside = |other: f64| -> Result<[f32; 2]> {
        let both = Tensor::cat(&[&Tensor::full([1, 1000], other)?, &row], 0)?;
        let StdMean { std, mean } = both.std_mean(1)?;
        Ok([std.to_vec::<f32>()?[1], mean.to_vec::<f32>()?[1]])
    };
    assert_eq!(beside(f64::NAN)?, beside(0.0)?);
    assert_eq!(beside(f64::INFINITY)?, beside(0.0)?);
    // The squares of these overflow `f32`.
    let large = Tensor::new([1e30, -1e30])?;
    assert_eq!(large.std(..)?.item::<f64>()?, f64::from((2f64.sqrt() * f64::from(1e30f32)) as f32));
    Ok(())
}

#[test]
fn the_gradient_of_a_small_norm_overflowed_in_half_types() -> Result<()> {
    let tiny = TensorOptions::new().dtype(DType::F16).tensor([1e-6, 1e-6])?.requiring_grad()?;
    tiny.vector_norm(0)?.backward()?;
    for slope in tiny.grad().unwrap().to_vec::<f64>()? {
        assert!((slope - 0.5f64.sqrt()).abs() < 0.1, "{slope}"); // `tiny` has few bits
    }
    let far = TensorOptions::new().dtype(DType::F16).tensor([-6e4, 6e4])?.requiring_grad()?;
    let tanh = GeluOptions::new().approximate(F::Approximate::Tanh);
    F::gelu_with(&far, tanh)?.sum(..)?.backward()?;
    assert_eq!(far.grad().unwrap().to_vec::<f64>()?, [0.0, 1.0]);
    Ok(())
}

/// The squares are out of the range of `f64`.
#[test]
fn norms_and_distances_of_the_ends_of_f64() -> Result<()> {
    for scale in [1e300, 1e-300] {
        let x = Tensor::from_slice(&[3.0 * scale, -4.0 * scale], 2)?.requiring_grad()?;
        let near = |got: Result<Tensor>, want: f64| {
            let got = got?.item::<f64>()?;
            assert!((got - want).abs() <= 1e-12 * want, "{got} is not {want}");
            Ok::<_, Error>(())
        };
        let norm = x.norm(..)?;
        near(Ok(norm.clone()), 5.0 * scale)?;
        norm.backward()?;
        let gradient = x.grad().unwrap().to_vec::<f64>()?;
        assert!((gradient[0] - 0.6).abs() < 1e-12 && (gradient[1] + 0.8).abs() < 1e-12, "{gradient:?}");
        near(x.dist(&x.neg()?), 10.0 * scale)?;
        // The others have an `eps`, beside which the small numbers vanish.
        if scale > 1.0 {
            near(F::pairwise_distance(&x, &x.neg()?, 0), 10.0 * scale)?;
            near(F::normalize(&x, 0)?.abs()?.sum(..), 1.4)?;
            near(F::cosine_similarity(&x, &x, 0), 1.0)?;
        }
    }
    Ok(())
}

/// Norms of any order of large and small numbers, and distances, compared with the same sum of parts of the
/// largest in `f64`. Their gradients are `sign(x) (|x| / norm)^(ord - 1)`.
#[test]
fn norms_of_any_order_overflowed() -> Result<()> {
    for ord in [0.5, 2.0, 3.0, 100.0, 1e4, 1e8, -1.0, -1e4] {
        for row in [[1e30, -2e30, 1e29], [1e-30, 3e-30, -2e-30], [3.0, -4.0, 0.5], [0.0, 0.0, 0.0]] {
            let x = Tensor::new(row)?.requiring_grad()?;
            let parts = row.map(|x: f64| f64::from((x as f32).abs()));
            let scale = parts.into_iter().fold(if ord > 0.0 { 0.0 } else { f64::INFINITY }, |a: f64, b| {
                match ord > 0.0 {
                    true => a.max(b),
                    false => a.min(b),
                }
            });
            let sum: f64 = parts.iter().map(|x| (x / scale).powf(ord)).sum();
            let want = if scale == 0.0 { 0.0 } else { scale * sum.powf(1.0 / ord) };
            let (pair, options) =
                (Tensor::stack(&[&x, &x.zeros_like()?], 0)?, PdistOptions::new().p(ord.abs()));
            let norm = x.vector_norm_with(.., VectorNormOptions::new().ord(ord))?;
            let distance = F::pdist_with(&pair, 1, options)?;
            // A power of an `f32` near 1 has an error of the order times its epsilon.
            let close = |got: f64| (got - want).abs() <= 4e-6 * want;
            assert!(close(norm.item()?), "{norm:?} of order {ord} of {row:?} is not {want}");
            assert!(
                ord < 0.0 || close(distance.item()?),
                "{distance:?} of order {ord} of {row:?} is not {want}"
            );
            norm.backward()?;
            for (slope, x) in x.grad().unwrap().to_vec::<f64>()?.into_iter().zip(row) {
                let exact = x.signum() * (x.abs() / want).powf(ord - 1.0);
                let exact = if x == 0.0 || want == 0.0 { 0.0 } else { exact };
                let error = (slope - exact).abs();
                assert!(
                    error <= 1e-6 * (1.0 + ord.abs()) * exact.abs() + 1e-3,
                    "{slope} is not {exact} for {ord}"
                );
            }
        }
    }
    // The distance of vectors without elements is 0 for every order, as in PyTorch.
    for p in [0.0, 1.0, 3.0, f64::INFINITY] {
        let x = Tensor::zeros([3, 0])?.requiring_grad()?;
        let distances = F::pdist_with(&x, 1, PdistOptions::new().p(p))?;
        assert_eq!(distances.to_vec::<f32>()?, [0.0; 3]);
        distances.sum(..)?.backward()?;
        assert_eq!(x.grad().unwrap().sizes(), [3, 0]);
    }
    for p in [-1.0, f64::NAN] {
        let error = F::pdist_with(&Tensor::zeros([2, 2])?, 1, PdistOptions::new().p(p)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Value);
    }
    Ok(())
}
