//! Windows against their formulas and against PyTorch's.

use super::assert_close;
use namegrad::fft::Window;
use namegrad::prelude::*;

/// Numbers of `torch.signal.windows` in PyTorch 2.15, in `float64`: the window, the symmetric numbers for five,
/// and the periodic ones.
#[allow(clippy::approx_constant, reason = "answers that happen to be a constant")]
fn recorded() -> Vec<(Window, [f64; 5], [f64; 5])> {
    vec![
        (
            Window::Bartlett,
            [0.0, 0.5, 1.0, 0.5, 0.0],
            [0.0, 0.4, 0.8, 0.7999999999999999, 0.3999999999999999],
        ),
        (
            Window::Blackman,
            [0.0, 0.3399999999999999, 0.9999999999999999, 0.3400000000000001, 0.0],
            [0.0, 0.20077014326253045, 0.8492298567374694, 0.8492298567374695, 0.20077014326253056],
        ),
        (
            Window::Cosine,
            [0.3090169943749474, 0.8090169943749475, 1.0, 0.8090169943749475, 0.3090169943749475],
            [
                0.25881904510252074,
                std::f64::consts::FRAC_1_SQRT_2,
                0.9659258262890683,
                0.9659258262890683,
                std::f64::consts::FRAC_1_SQRT_2,
            ],
        ),
        (
            Window::Exponential { center: None, tau: 1.5 },
            [0.26359713811572677, 0.513417119032592, 1.0, 0.513417119032592, 0.26359713811572677],
            [
                0.18887560283756186,
                0.3678794411714424,
                0.7165313105737893,
                0.7165313105737893,
                0.36787944117144233,
            ],
        ),
        (
            Window::Gaussian { std: 1.2 },
            [0.24935220877729616, 0.7066482778577162, 1.0, 0.7066482778577162, 0.24935220877729616],
            [
                0.11416176000968695,
                0.4578333617716142,
                0.9168553557320289,
                0.9168553557320289,
                0.4578333617716142,
            ],
        ),
        (
            Window::GeneralCosine(vec![0.4, 0.5, 0.1]),
            [0.0, 0.29999999999999993, 1.0, 0.30000000000000016, 0.0],
            [0.0, 0.16458980337503154, 0.8354101966249684, 0.8354101966249686, 0.16458980337503165],
        ),
        (
            Window::GeneralHamming { alpha: 0.6 },
            [0.19999999999999996, 0.6, 1.0, 0.6000000000000001, 0.19999999999999996],
            [
                0.19999999999999996,
                0.476393202250021,
                0.9236067977499789,
                0.923606797749979,
                0.4763932022500211,
            ],
        ),
        (
            Window::Hamming,
            [0.08000000000000007, 0.54, 1.0, 0.5400000000000001, 0.08000000000000007],
            [
                0.08000000000000007,
                0.3978521825875242,
                0.9121478174124757,
                0.9121478174124759,
                0.3978521825875243,
            ],
        ),
        (
            Window::Hann,
            [0.0, 0.49999999999999994, 1.0, 0.5000000000000001, 0.0],
            [0.0, 0.3454915028125263, 0.9045084971874737, 0.9045084971874737, 0.3454915028125264],
        ),
        (
            Window::Kaiser { beta: 8.0 },
            [0.002338830512733327, 0.36897272261583314, 1.0, 0.36897272261583314, 0.002338830512733327],
            [
                0.002338830512733327,
                0.22677684133642736,
                0.8598020817729667,
                0.8598020817729667,
                0.2267768413364272,
            ],
        ),
        (
            Window::Nuttall,
            [0.0003628000000000381, 0.22698239999999995, 1.0, 0.2269824000000001, 0.0003628000000000381],
            [
                0.0003628000000000381,
                0.11051525304987178,
                0.7982580969501282,
                0.7982580969501283,
                0.11051525304987185,
            ],
        ),
    ]
}

#[test]
fn windows_are_those_of_pytorch() -> Result<()> {
    for (window, symmetric, periodic) in recorded() {
        let what = format!("{window:?}");
        assert_close(&window.symmetric_as(5, DType::F64)?, &symmetric, 1e-14, &what);
        assert_close(&window.periodic_as(5, DType::F64)?, &periodic, 1e-14, &what);
        assert_close(&window.symmetric(5)?, &symmetric, 1e-7, &what);
        assert_eq!(window.symmetric(("time", 0))?.shape().to_string(), "[time=0]");
        assert_eq!(window.periodic(1)?.to_vec::<f32>()?, [1.0]);
        // The first numbers of a symmetric window of one more.
        if !matches!(window, Window::Exponential { .. }) {
            let more = window.symmetric_as(9, DType::F64)?.narrow(0, 0, 8)?;
            assert!(window.periodic_as(8, DType::F64)?.allclose(&more)?, "{what}");
        }
    }
    Ok(())
}

#[test]
fn wide_kaiser_windows_do_not_overflow() -> Result<()> {
    let window = Window::Kaiser { beta: 1e4 }.symmetric_as(5, DType::F64)?;
    assert!(window.isfinite()?.all(..)?.item::<bool>()?);
    assert_eq!(window.item_at::<f64>([2])?, 1.0);
    assert_eq!(Window::Kaiser { beta: 0.0 }.periodic(3)?.to_vec::<f32>()?, [1.0; 3]);
    Ok(())
}

#[test]
fn parameters_are_checked() {
    let value = [
        Window::Exponential { center: None, tau: 0.0 },
        Window::Exponential { center: Some(1.0), tau: 1.0 },
        Window::Gaussian { std: 0.0 },
        Window::Gaussian { std: f64::NAN },
        Window::Kaiser { beta: -1.0 },
        Window::GeneralCosine(Vec::new()),
    ];
    for window in value {
        let error = window.symmetric(4).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Value, "{window:?}");
        assert_eq!(error.location().file(), file!());
    }
    assert_eq!(Window::Hann.periodic(-1).unwrap_err().kind(), ErrorKind::Value);
    assert_eq!(Window::Hann.periodic_as(4, DType::I64).unwrap_err().kind(), ErrorKind::DType);
    assert!(Window::Exponential { center: Some(1.0), tau: 1.0 }.periodic(4).is_ok());
}
