//! Clipping, against a plain reference.

use namegrad_autograd::{Parameter, Tensor};
use namegrad_core::{DType, ErrorKind, NamedTensor, Result};
use namegrad_optim::{
    ClipGradNormOptions, clip_each_grad_norm_, clip_each_grad_norm_with_, clip_grad_norm_,
    clip_grad_norm_with_, clip_grad_value_, clip_grads_with_norm_, total_norm, total_norm_with,
};

fn numbers(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 37 % 101) as f64 - 50.0) / 64.0).collect()
}

/// Parameters with gradients: a number, none, an empty one, a long one, which several threads share, and one
/// whose gradient is a transposed view.
fn all(dtype: DType) -> Result<Vec<Parameter>> {
    let tensor =
        |values: &[f64], sizes: &[usize]| Tensor::constant(NamedTensor::from_slice(values, sizes)?).to(dtype);
    let mut parameters = Vec::new();
    for sizes in [&[][..], &[3], &[0, 4], &[301, 300], &[5, 7]] {
        parameters.push(Parameter::new(tensor(&vec![0.0; sizes.iter().product()], sizes)?)?);
    }
    for (number, sizes) in [(0, &[][..]), (2, &[0, 4]), (3, &[301, 300])] {
        parameters[number].set_grad(Some(tensor(&numbers(sizes.iter().product()), sizes)?))?;
    }
    parameters[4].set_grad(Some(tensor(&numbers(35), &[7, 5])?.t()?))?;
    Ok(parameters)
}

fn gradients(parameters: &[Parameter]) -> Result<Vec<Vec<f64>>> {
    let grads = parameters.iter().filter_map(Parameter::grad);
    grads.map(|grad| grad.to(DType::F64)?.value().contiguous()?.to_vec::<f64>()).collect()
}

fn norm(values: &[f64], order: f64) -> f64 {
    match order {
        f64::INFINITY => values.iter().fold(0.0, |max, x| f64::max(max, x.abs())),
        p => values.iter().map(|x| x.abs().powf(p)).sum::<f64>().powf(1.0 / p),
    }
}

const DTYPES: [(DType, f64); 4] =
    [(DType::F64, 1e-12), (DType::F32, 1e-5), (DType::F16, 2e-3), (DType::BF16, 2e-2)];

fn close(found: &[f64], want: impl Iterator<Item = f64>, tolerance: f64, what: &str) {
    for (found, want) in found.iter().zip(want) {
        assert!((found - want).abs() <= tolerance * want.abs().max(1e-3), "{what}: {found}, not {want}");
    }
}

#[test]
fn norms_of_any_order_and_dtype_are_those_of_all_numbers() -> Result<()> {
    for (dtype, tolerance) in DTYPES {
        for order in [1.0, 2.0, 3.0, f64::INFINITY] {
            let what = format!("{dtype}, order {order}");
            let options = ClipGradNormOptions::new().norm_type(order);
            let parameters = all(dtype)?;
            let before = gradients(&parameters)?;
            let want = norm(&before.concat(), order);
            let grads: Vec<Tensor> = parameters.iter().filter_map(Parameter::grad).collect();
            let total = total_norm_with(&grads, options.clone())?;
            drop(grads);
            close(&[total], [want].into_iter(), 1e-5, &what);
            assert_eq!(clip_grad_norm_with_(&parameters, 0.5, options.clone())?, total, "{what}");
            let factor = 0.5 / (total + 1e-6);
            let after = gradients(&parameters)?.concat();
            close(&after, before.concat().iter().map(|g| g * factor), tolerance, &what);

            let parameters = all(dtype)?;
            let norms = clip_each_grad_norm_with_(&parameters, 0.5, options)?;
            assert_eq!(norms.len(), 5);
            assert_eq!([norms[1], norms[2]], [0.0, 0.0], "{what}: no gradient, no elements");
            for (found, before) in gradients(&parameters)?.iter().zip(&before) {
                let factor = (0.5 / (norm(before, order) + 1e-6)).min(1.0);
                close(found, before.iter().map(|g| g * factor), tolerance, &what);
            }
        }
        let parameters = all(dtype)?;
        let before = gradients(&parameters)?.concat();
        clip_grad_value_(&parameters, 0.25)?;
        let after = gradients(&parameters)?.concat();
        close(&after, before.iter().map(|g| g.clamp(-0.25, 0.25)), 0.0, "values");
    }
    Ok(())
}

#[test]
fn a_known_norm_scales_like_a_computed_one() -> Result<()> {
    let [own, known] = [all(DType::F32)?, all(DType::F32)?];
    let norm = clip_grad_norm_(&own, 0.1)?;
    clip_grads_with_norm_(&known, 0.1, norm)?;
    assert_eq!(gradients(&own)?, gradients(&known)?);
    clip_grads_with_norm_(&known, 0.1, 0.05)?;
    assert_eq!(gradients(&own)?, gradients(&known)?, "short enough");
    assert_eq!(total_norm(Vec::<Tensor>::new())?, 0.0);
    Ok(())
}

#[test]
fn a_norm_that_must_be_finite_is_an_error_before_anything_changes() -> Result<()> {
    let strict = || ClipGradNormOptions::new().error_if_nonfinite(true);
    for (bad, order) in [(f64::NAN, 2.0), (f64::INFINITY, 2.0), (f64::NAN, f64::INFINITY), (f64::NAN, 1.0)] {
        let parameters = all(DType::F32)?;
        parameters[1].set_grad(Some(Tensor::new([0.5, bad, 0.0])?))?;
        let before = gradients(&parameters)?;
        let bits = |all: Vec<Vec<f64>>| all.concat().iter().map(|g| g.to_bits()).collect::<Vec<_>>();
        for error in [
            clip_grad_norm_with_(&parameters, 0.1, strict().norm_type(order)).unwrap_err(),
            clip_each_grad_norm_with_(&parameters, 0.1, strict().norm_type(order)).unwrap_err(),
            total_norm_with([parameters[1].grad().unwrap()], strict().norm_type(order)).unwrap_err(),
        ] {
            assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
            let words = ["is non-finite, so it cannot be clipped: that of gradient ", ", [3], is "];
            assert!(words.iter().all(|words| error.message().contains(words)), "{error}");
        }
        assert_eq!(bits(gradients(&parameters)?), bits(before), "{bad}, {order}");
        // Each gradient by itself: the others stay good.
        let norms = clip_each_grad_norm_with_(&parameters, 0.1, ClipGradNormOptions::new().norm_type(order))?;
        assert!(!norms[1].is_finite() && norms[3].is_finite());
        assert!(gradients(&parameters)?[3].iter().all(|g| g.is_finite()));
    }
    Ok(())
}

#[test]
fn gradients_are_clipped_in_place_but_not_those_that_somebody_holds() -> Result<()> {
    let parameters = all(DType::F32)?;
    let place = || parameters[3].grad().unwrap().value().data_ptr();
    let before = place();
    clip_grad_norm_(&parameters, 0.1)?;
    clip_each_grad_norm_(&parameters, 0.01)?;
    clip_grad_value_(&parameters, 1e-5)?;
    assert_eq!(place(), before);
    let held = parameters[3].grad().unwrap();
    let values = held.to_vec::<f32>()?;
    clip_grad_norm_(&parameters, 1e-7)?;
    assert_eq!(held.to_vec::<f32>()?, values);
    assert_ne!(place(), before);
    // A parameter that is given twice is scaled once.
    let a = Parameter::new(Tensor::new([0.0])?)?;
    a.set_grad(Some(Tensor::new([4.0])?))?;
    assert_eq!(clip_each_grad_norm_([&a, &a], 1.0)?, [4.0, 4.0]);
    assert!((a.grad().unwrap().to_vec::<f64>()?[0] - 1.0).abs() < 1e-6);
    Ok(())
}

#[test]
fn bad_arguments_are_refused() -> Result<()> {
    let parameters = all(DType::F32)?;
    let before = gradients(&parameters)?;
    let order = |order| ClipGradNormOptions::new().norm_type(order);
    for error in [
        clip_each_grad_norm_(&parameters, -1.0).unwrap_err(),
        clip_each_grad_norm_(&parameters, f64::NAN).unwrap_err(),
        clip_each_grad_norm_with_(&parameters, 1.0, order(f64::NAN)).unwrap_err(),
        clip_grads_with_norm_(&parameters, -1.0, 1.0).unwrap_err(),
        clip_grads_with_norm_(&parameters, 1.0, -1.0).unwrap_err(),
        total_norm_with([&before[0]].map(|g| Tensor::new(g[0]).unwrap()), order(-2.0)).unwrap_err(),
        clip_grad_value_(&parameters, f64::NAN).unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()), "{error}");
    }
    assert!(total_norm([Tensor::new([1, 2])?]).is_err());
    assert_eq!(gradients(&parameters)?, before);
    Ok(())
}
