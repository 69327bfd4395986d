//! Special functions against values with 25 digits, which mpmath 1.3 computed with 60 digits (Johansson et
//! al., *mpmath: a Python library for arbitrary-precision floating-point arithmetic*), in
//! `fixtures/special.csv`; and in the narrower dtypes against those in `f64`.

use namegrad::prelude::*;

/// A function, and its largest allowed error in `f64` and in `f32`, in units of the last place of the value
/// or of `scale`, whichever is larger. The `scale` is needed where a function crosses zero at a number that
/// is not exactly representable, because there no digit of the value can be right.
struct Row {
    name: &'static str,
    call: fn(&Tensor) -> Result<Tensor>,
    units: [f64; 2],
    scale: f64,
}

const fn row(name: &'static str, call: fn(&Tensor) -> Result<Tensor>, units: [f64; 2], scale: f64) -> Row {
    Row { name, call, units, scale }
}

const ROWS: &[Row] = &[
    row("lgamma", |x| x.lgamma(), [4.0, 2.0], 1.0),
    row("digamma", |x| x.digamma(), [8.0, 2.0], 1.0),
    row("trigamma", |x| x.polygamma(1), [8.0, 2.0], 0.0),
    row("polygamma3", |x| x.polygamma(3), [8.0, 2.0], 0.0),
    row("erf", |x| x.erf(), [4.0, 4.0], 0.0),
    row("erfc", |x| x.erfc(), [8.0, 8.0], 0.0),
    row("erfinv", |x| x.erfinv(), [4.0, 2.0], 0.0),
    row("erfcx", |x| x.erfcx(), [8.0, 4.0], 0.0),
    row("ndtr", |x| x.ndtr(), [8.0, 4.0], 0.0),
    row("ndtri", |x| x.ndtri(), [8.0, 2.0], 1.0),
    row("log_ndtr", |x| x.log_ndtr(), [8.0, 4.0], 0.0),
    row("i0", |x| x.i0(), [8.0, 4.0], 0.0),
    row("i1", |x| x.i1(), [8.0, 4.0], 0.0),
    row("i0e", |x| x.i0e(), [8.0, 4.0], 0.0),
    row("i1e", |x| x.i1e(), [8.0, 4.0], 0.0),
    row("expm1", |x| x.expm1(), [4.0, 4.0], 0.0),
    row("log1p", |x| x.log1p(), [4.0, 4.0], 0.0),
    row("logit", |x| x.logit(), [4.0, 4.0], 1.0),
    row("sinc", |x| x.sinc(), [4.0, 4.0], 1.0),
    row("entr", |x| x.entr(), [4.0, 4.0], 1.0),
    // Close to a zero the phase of the oscillation is rounded.
    row("bessel_j0", |x| x.bessel_j0(), [400.0, 4.0], 0.0),
    row("bessel_j1", |x| x.bessel_j1(), [40.0, 4.0], 0.0),
    row("bessel_y0", |x| x.bessel_y0(), [4000.0, 4.0], 0.0),
    row("bessel_y1", |x| x.bessel_y1(), [400.0, 4.0], 0.0),
    row("modified_bessel_k0", |x| x.modified_bessel_k0(), [8.0, 4.0], 0.0),
    row("modified_bessel_k1", |x| x.modified_bessel_k1(), [8.0, 4.0], 0.0),
    row("scaled_modified_bessel_k0", |x| x.scaled_modified_bessel_k0(), [8.0, 4.0], 0.0),
    row("scaled_modified_bessel_k1", |x| x.scaled_modified_bessel_k1(), [8.0, 4.0], 0.0),
    row("spherical_bessel_j0", |x| x.spherical_bessel_j0(), [8.0, 4.0], 0.0),
    row("airy_ai", |x| x.airy_ai(), [40.0, 4.0], 0.0),
    row("airy_ai_prime", |x| x.airy_ai_prime(), [40.0, 4.0], 0.1),
    row("gammainc_0.001", |x| x.full_like(0.001)?.gammainc(x), [40.0, 4.0], 0.0),
    row("gammainc_0.5", |x| x.full_like(0.5)?.gammainc(x), [40.0, 4.0], 0.0),
    row("gammainc_3.0", |x| x.full_like(3.0)?.gammainc(x), [40.0, 4.0], 0.0),
    row("gammainc_50.0", |x| x.full_like(50.0)?.gammainc(x), [400.0, 4.0], 0.0),
    row("gammaincc_0.001", |x| x.full_like(0.001)?.gammaincc(x), [40.0, 4.0], 0.0),
    row("gammaincc_0.5", |x| x.full_like(0.5)?.gammaincc(x), [40.0, 4.0], 0.0),
    row("gammaincc_3.0", |x| x.full_like(3.0)?.gammaincc(x), [40.0, 4.0], 0.0),
    row("gammaincc_50.0", |x| x.full_like(50.0)?.gammaincc(x), [40.0, 4.0], 0.0),
    row("zeta_1.5", |x| x.full_like(1.5)?.zeta(x), [8.0, 4.0], 0.0),
    row("zeta_40.5", |x| x.full_like(40.5)?.zeta(x), [8.0, 4.0], 0.0),
];

/// The error of `got` in units of the last place of the exact value.
fn error(got: f64, exact: f64, scale: f64, epsilon: f64) -> f64 {
    if got == exact { 0.0 } else { (got - exact).abs() / (exact.abs().max(scale) * epsilon) }
}

#[test]
fn special_functions_have_all_their_digits() -> Result<()> {
    let file = namegrad_tests::root().join("tests/fixtures/special.csv");
    let table = std::fs::read_to_string(file).expect("a file that is shipped");
    let lines: Vec<[&str; 3]> = table
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect::<Vec<_>>().try_into().expect("three fields"))
        .collect();
    let mut wrong = Vec::new();
    for row in ROWS {
        let mut count = 0;
        for [_, x, value] in lines.iter().filter(|line| line[0] == row.name) {
            count += 1;
            let (x, exact): (f64, f64) = (x.parse().expect("a number"), value.parse().expect("a number"));
            let in_f64 = |x: f64| (row.call)(&Tensor::from_slice(&[x], [1])?)?.to_vec::<f64>().map(|y| y[0]);
            let got = (row.call)(&Tensor::from_slice(&[x], [1])?)?.to_vec::<f64>()?[0];
            let units = error(got, exact, row.scale, f64::EPSILON);
            if units.is_nan() || units > row.units[0] {
                wrong.push(format!("{}({x:e}) = {got:e}, not {value}: {units:.1} units", row.name));
            }
            let narrow = x as f32;
            let (got, exact) = (
                (row.call)(&Tensor::from_slice(&[narrow], [1])?)?.to_vec::<f32>()?[0],
                in_f64(narrow.into())?,
            );
            if !(exact.abs() < f64::from(f32::MAX) && exact.abs() > f64::from(f32::MIN_POSITIVE)) {
                // Out of the range of `f32`: it is cut to the nearest number, of which the smallest may be
                // lost.
                let nearest = exact as f32;
                let apart = (got - nearest).abs();
                if !(got == nearest || got.is_nan() && nearest.is_nan() || apart <= f32::MIN_POSITIVE) {
                    wrong.push(format!("{}({narrow:e}) = {got:e} in f32, not {nearest:e}", row.name));
                }
                continue;
            }
            let units = error(got.into(), exact, row.scale, f32::EPSILON.into());
            if units.is_nan() || units > row.units[1] {
                wrong.push(format!(
                    "{}({narrow:e}) = {got:e} in f32, not {exact:e}: {units:.1} units",
                    row.name
                ));
            }
        }
        assert!(count > 9, "{} has {count} values in the table", row.name);
    }
    assert!(wrong.is_empty(), "{} wrong values:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}
