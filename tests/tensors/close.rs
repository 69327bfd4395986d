//! Equality in users' tests: `assert_eq!` and the macros of `approx`, and what they print when they fail.

use approx::{assert_abs_diff_eq, assert_relative_eq, assert_relative_ne, assert_ulps_eq};
use namegrad::prelude::*;

fn message(assertion: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let panic = std::panic::catch_unwind(assertion).expect_err("the assertion fails");
    *panic.downcast::<String>().expect("a formatted message")
}

#[test]
fn tensors_that_are_near_pass() -> Result<()> {
    let x = Tensor::new([[1.0, 2.0], [3.0, 1e6]])?.refine_names(["N", "C"])?;
    let y = x.mul(1.0 + 5e-7)?;
    assert_eq!(x, x.clone());
    assert_relative_eq!(x, x);
    assert_relative_eq!(x, y, epsilon = 1e-6, max_relative = 1e-6);
    assert_relative_ne!(x, y);
    assert_ulps_eq!(x, y, max_ulps = 8);
    assert_abs_diff_eq!(x, y, epsilon = 1.0);
    assert_abs_diff_eq!(x.value(), y.value(), epsilon = 1.0);
    // The tape does not matter; dtype, names and sizes do.
    assert_relative_eq!(x, x.clone().requiring_grad()?);
    assert_relative_ne!(x, x.to(DType::F64)?);
    assert_relative_ne!(x, x.rename(None)?);
    assert_relative_ne!(x, x.t()?);
    let nan = Tensor::new([f64::NAN])?;
    assert_relative_ne!(nan, nan);
    assert_relative_eq!(Tensor::zeros([0])?, Tensor::zeros([0])?);
    Ok(())
}

#[test]
fn a_failure_says_where_by_name() -> Result<()> {
    let a = Tensor::new([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])?.refine_names(["N", "C"])?;
    let b = a.add(&Tensor::new([[0.0, 0.5, 0.0], [0.0, 0.0, -2.0]])?)?;
    let differences =
        "2 of 6 elements differ, the first at [N=0, C=1] (2 and 2.5), the most at [N=1, C=2] (6 and 4)";
    for text in [
        message(|| assert_relative_eq!(a, b, epsilon = 1e-6)),
        message(|| assert_abs_diff_eq!(a, b)),
        message(|| assert_ulps_eq!(a.value(), b.value())),
        message(|| assert_eq!(a, b)),
    ] {
        assert!(text.contains(differences), "{text}");
        assert!(text.contains("float32[N=2, C=3] <- ") || text.contains("right"), "{text}");
    }
    let text = message(|| assert_relative_eq!(a, b.rename(None).unwrap()));
    assert!(text.contains("the shapes differ, [N=2, C=3] and [2, 3]"), "{text}");
    let text = message(|| assert_relative_eq!(a, a.to(DType::F64).unwrap()));
    assert!(text.contains("the dtypes differ, float32 and float64"), "{text}");
    Ok(())
}

#[test]
fn a_sample_depends_on_the_seed_alone() -> Result<()> {
    use rand_distr::{Bernoulli, Binomial, Distribution, Gamma, Poisson, Uniform};
    let gamma = Gamma::new(2.0, 1.0).unwrap();
    let draw = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut generator = namegrad::core::random::Generator::from_seed(5);
            generator.scope(|| Tensor::sample([("N", 100_000)], &gamma))
        })
    };
    let x = draw(1)?;
    assert_eq!((x.dtype(), x.shape().to_string().as_str()), (DType::F32, "[N=100000]"));
    assert!([2, 5].into_iter().all(|threads| draw(threads).unwrap() == x));
    let StdMean { std, mean } = x.std_mean(..)?; // √2 and 2, each within four standard errors
    assert_abs_diff_eq!(mean.item::<f64>()?, 2.0, epsilon = 0.02);
    assert_abs_diff_eq!(std.item::<f64>()?, 2f64.sqrt(), epsilon = 0.03);

    fn dtype<T: namegrad::core::random::Sampled>(of: &(impl Distribution<T> + Sync)) -> Result<DType> {
        Tensor::sample([3], of).map(|x| x.dtype())
    }
    assert_eq!(dtype(&Gamma::new(2f32, 1.0).unwrap())?, DType::F32);
    assert_eq!(dtype(&Poisson::new(3.0).unwrap())?, DType::F32);
    assert_eq!(dtype(&Binomial::new(9, 0.5).unwrap())?, DType::I64);
    assert_eq!(dtype(&Uniform::new(0u8, 9).unwrap())?, DType::U8);
    assert_eq!(dtype(&Bernoulli::new(0.5).unwrap())?, DType::Bool);
    let wide = TensorOptions::new().dtype(DType::F64).requires_grad(true).sample([2, 2], &gamma)?;
    assert_eq!((wide.dtype(), wide.requires_grad()), (DType::F64, true));
    assert_ne!(wide, wide.to(DType::F32)?.to(DType::F64)?); // all digits are drawn
    Ok(())
}
