//! `fft.*`, `stft`, `istft` and windows. A complex tensor of a case is one whose last dim is (re, im); here
//! that dim is called `complex` during the call, so that dims are counted as in PyTorch.

use crate::by_name::plain;
use crate::call::{Answer, Call, IntoOutputs, Value, missing};
use namegrad::complex;
use namegrad::fft::{self, Window};
use namegrad::ops::{self, Given};
use namegrad::prelude::*;

/// The call of a transform or of a window, or `None` if it is neither.
pub(crate) fn play(op: &str, c: &mut Call<'_>) -> Option<Answer<Vec<Value>>> {
    let answer = match op {
        "fft.fftfreq" | "fft.rfftfreq" => frequencies(op, c),
        _ if op.starts_with("fft.") || op == "stft" || op == "istft" => transform(op, c),
        "hann_window" => window(c, |_| Ok(Window::Hann)),
        "blackman_window" => window(c, |_| Ok(Window::Blackman)),
        "bartlett_window" => window(c, |_| Ok(Window::Bartlett)),
        "hamming_window" => window(c, |c| {
            Ok(Window::GeneralCosine(vec![c.float_or("alpha", 0.54)?, c.float_or("beta", 0.46)?]))
        }),
        _ if op.starts_with("signal.windows.") => signal(op, c),
        "kaiser_window" => window(c, |c| Ok(Window::Kaiser { beta: c.float_or("beta", 12.0)? })),
        _ => return None,
    };
    Some(answer.map(IntoOutputs::outputs))
}

fn frequencies(op: &str, c: &Call<'_>) -> Answer<Tensor> {
    let (n, d) = (c.int("n")?, c.float_or("d", 1.0)?);
    let dtype = c.dtype("dtype")?.unwrap_or(DType::F32);
    Ok(if op == "fft.fftfreq" { fft::fftfreq_as(n, d, dtype)? } else { fft::rfftfreq_as(n, d, dtype)? })
}

fn window(c: &Call<'_>, of: fn(&Call<'_>) -> Answer<Window>) -> Answer<Tensor> {
    let (window, n) = (of(c)?, c.int("window_length")?);
    let dtype = c.dtype("dtype")?.unwrap_or(DType::F32);
    Ok(if c.flag("periodic", true) {
        window.periodic_as(n, dtype)?
    } else {
        window.symmetric_as(n, dtype)?
    })
}

/// A window of `torch.signal.windows`, which is symmetric unless the call says otherwise.
fn signal(op: &str, c: &Call<'_>) -> Answer<Tensor> {
    let number = |key: &str, default: f64| c.float_or(key, default);
    let window = match op.trim_start_matches("signal.windows.") {
        "bartlett" => Window::Bartlett,
        "blackman" => Window::Blackman,
        "cosine" => Window::Cosine,
        "exponential" => {
            let center = if c.has("center") { Some(number("center", 0.0)?) } else { None };
            Window::Exponential { center, tau: number("tau", 1.0)? }
        }
        "gaussian" => Window::Gaussian { std: number("std", 1.0)? },
        "general_cosine" => {
            let list = c.arg("a").and_then(serde_json::Value::as_array).into_iter().flatten();
            Window::GeneralCosine(list.filter_map(serde_json::Value::as_f64).collect())
        }
        "general_hamming" => Window::GeneralHamming { alpha: number("alpha", 0.54)? },
        "hamming" => Window::Hamming,
        "hann" => Window::Hann,
        "kaiser" => Window::Kaiser { beta: number("beta", 12.0)? },
        "nuttall" => Window::Nuttall,
        _ => return missing(op),
    };
    c.flag("requires_grad", false);
    let (m, dtype) = (c.int("M")?, c.dtype("dtype")?.unwrap_or(DType::F32));
    Ok(if c.flag("sym", true) { window.symmetric_as(m, dtype)? } else { window.periodic_as(m, dtype)? })
}

fn transform(op: &str, c: &Call<'_>) -> Answer<Tensor> {
    let name = if op.starts_with("fft.") { op.to_string() } else { format!("fft.{op}") };
    let Ok(row) = ops::find(&name) else { return missing(op) };
    let (x, is_complex) = (c.x(0)?, c.flag("complex", false));
    let of_complex = ["Axis", "Axes"].contains(&row.info.args[0].ty);
    let x = match (is_complex, of_complex) {
        (true, _) => {
            let mut names = vec![None; x.ndim() - 1];
            names.push(Some("complex"));
            x.rename(names)?
        }
        (false, true) if op == "istft" => x.clone(),
        (false, true) => complex::from_real_with(x, complex::FromRealOptions::new().name("complex"))?,
        (false, false) => x.clone(),
    };
    if op == "stft" {
        c.flag("return_complex", true);
    }
    let mut args: Vec<(&str, Given<'_>)> = Vec::new();
    for key in c.unread() {
        let Some(value) = c.arg(key) else { continue };
        args.push(match c.input(value) {
            Some(tensor) => (key, tensor.into()),
            None => (key, Given::Value(plain(value, "")?)),
        });
    }
    Ok(row.call(&[&x], &args)?.remove(0).rename(None)?)
}
