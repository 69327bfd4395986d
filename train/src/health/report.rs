//! The numbers of a tensor, of a parameter and of a model, and their table.

use namegrad_autograd::Parameter;
use namegrad_core::{DType, Element, NamedTensor, Result, Shape};
use std::fmt;

/// The health of a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TensorHealth {
    /// The length as a vector: `√(Σ x²)`. It is NaN or infinite if an element is.
    pub norm: f64,
    /// The share of elements that are 0, from 0 to 1.
    pub zeros: f64,
    /// The number of elements that are NaN.
    pub nan: usize,
    /// The number of elements that are infinite.
    pub infinite: usize,
}

impl TensorHealth {
    /// The health of any tensor of floats.
    ///
    /// ```
    /// use namegrad::core::NamedTensor;
    /// use namegrad::train::TensorHealth;
    /// let health = TensorHealth::of(&NamedTensor::from_slice(&[3.0_f32, 0.0, 4.0, 0.0], [4])?)?;
    /// assert_eq!((health.norm, health.zeros, health.nan, health.infinite), (5.0, 0.5, 0, 0));
    /// # Ok::<(), namegrad::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`](namegrad_core::ErrorKind::OutOfMemory).
    #[track_caller]
    pub fn of(tensor: &NamedTensor) -> Result<TensorHealth> {
        match tensor.dtype() {
            DType::F32 => count::<f32>(tensor, f64::from),
            DType::F64 => count::<f64>(tensor, |x| x),
            _ => count::<f32>(&tensor.to(DType::F32)?, f64::from),
        }
    }

    /// Whether all elements are finite.
    pub fn is_finite(&self) -> bool {
        self.nan == 0 && self.infinite == 0
    }
}

fn count<E: Element>(tensor: &NamedTensor, wide: impl Fn(E) -> f64) -> Result<TensorHealth> {
    let tensor = tensor.contiguous()?;
    let elements = tensor.as_slice::<E>()?;
    let (mut squares, mut largest, mut zeros, mut nan, mut infinite) = (0.0, 0.0_f64, 0_usize, 0, 0);
    for x in elements {
        let x = wide(*x);
        squares += x * x;
        largest = largest.max(x.abs());
        zeros += usize::from(x == 0.0);
        nan += usize::from(x.is_nan());
        infinite += usize::from(x.is_infinite());
    }
    let in_range = squares.is_nan() || (1e-280..1e280).contains(&squares);
    let norm = match in_range || largest == 0.0 || largest.is_infinite() {
        true => squares.sqrt(),
        // The squares of large or small `f64` overflow or vanish.
        false => largest * elements.iter().map(|x| (wide(*x) / largest).powi(2)).sum::<f64>().sqrt(),
    };
    Ok(TensorHealth { norm, zeros: zeros as f64 / elements.len().max(1) as f64, nan, infinite })
}

/// The health of a parameter.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ParameterHealth {
    /// Its path in the model.
    pub path: String,
    /// Its sizes and names.
    pub shape: Shape,
    /// Its value.
    pub value: TensorHealth,
    /// Its gradient, if it has one.
    pub grad: Option<TensorHealth>,
    /// The change of its value by the last step, if the value before is known.
    pub update: Option<TensorHealth>,
}

impl ParameterHealth {
    pub(super) fn of(
        path: &str,
        parameter: &Parameter,
        before: Option<&NamedTensor>,
    ) -> Result<ParameterHealth> {
        let tensor = parameter.try_tensor()?;
        let value = tensor.value();
        let grad = parameter.grad().map(|grad| TensorHealth::of(grad.value())).transpose()?;
        let dtype = value.dtype().compute();
        let update = match before.filter(|before| before.sizes() == value.sizes()) {
            Some(before) => {
                let change = value.to(dtype)?.unnamed().sub(before.to(dtype)?.unnamed())?;
                Some(TensorHealth::of(&change)?)
            }
            None => None,
        };
        let (path, shape, value) = (path.to_string(), value.shape(), TensorHealth::of(value)?);
        Ok(ParameterHealth { path, shape, value, grad, update })
    }

    /// The norm of the update as a part of the norm of the value. About a thousandth is common.
    pub fn update_ratio(&self) -> Option<f64> {
        Some(self.update?.norm / self.value.norm)
    }

    /// Whether value, gradient and update are finite.
    pub fn is_finite(&self) -> bool {
        let all = [Some(self.value), self.grad, self.update];
        all.iter().flatten().all(TensorHealth::is_finite)
    }
}

/// The health of all parameters, in the order of the model. Printed, it is a table with a legend.
#[derive(Clone, Debug)]
pub struct HealthReport {
    rows: Vec<ParameterHealth>,
}

impl HealthReport {
    pub(super) fn new(rows: Vec<ParameterHealth>) -> HealthReport {
        HealthReport { rows }
    }

    /// A row for each parameter.
    pub fn rows(&self) -> &[ParameterHealth] {
        &self.rows
    }

    /// The first parameter whose value, gradient or update is not finite.
    pub fn first_bad(&self) -> Option<&ParameterHealth> {
        self.rows.iter().find(|row| !row.is_finite())
    }

    /// The numbers by name, for a log: `weight/value_norm`, `weight/grad_norm`, `weight/grad_zeros`,
    /// `weight/update_norm`, `weight/nonfinite`.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::train::health;
    /// let layer = Linear::new(("in", 3), ("out", 2))?;
    /// layer.bias().unwrap().update(|bias| bias.mul_(0.0)?.add_(2.0).map(drop))?;
    /// let scalars = health(layer.named_parameters())?.scalars();
    /// assert!(scalars.contains(&("bias/value_norm".to_string(), 8.0_f64.sqrt())));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn scalars(&self) -> Vec<(String, f64)> {
        let mut scalars = Vec::new();
        for row in &self.rows {
            let mut push = |what: &str, number: f64| scalars.push((format!("{}/{what}", row.path), number));
            push("value_norm", row.value.norm);
            if let Some(grad) = row.grad {
                push("grad_norm", grad.norm);
                push("grad_zeros", grad.zeros);
            }
            if let Some(update) = row.update {
                push("update_norm", update.norm);
            }
            let all = [Some(row.value), row.grad, row.update];
            push(
                "nonfinite",
                all.iter().flatten().map(|each| each.nan + each.infinite).sum::<usize>() as f64,
            );
        }
        scalars
    }
}

impl fmt::Display for HealthReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.rows.iter().map(|row| row.path.chars().count()).max().unwrap_or(0).max(9);
        let shape =
            self.rows.iter().map(|row| format!("{}", row.shape).chars().count()).max().unwrap_or(0).max(4);
        write!(
            f,
            "{:path$}  {:shape$}  {:>10}  {:>10}  {:>10}",
            "parameter", "dims", "value", "gradient", "update"
        )?;
        write!(f, "  {:>12}  {:>10}  {:>5}  {:>8}", "update/value", "grad zeros", "nan", "infinite")?;
        for row in &self.rows {
            let all = [Some(row.value), row.grad, row.update];
            let sum = |of: fn(&TensorHealth) -> usize| all.iter().flatten().map(of).sum::<usize>();
            let (nan, infinite) = (sum(|each| each.nan), sum(|each| each.infinite));
            let number = |number: Option<f64>| number.map_or("-".to_string(), four_digits);
            let (value, grad) = (number(Some(row.value.norm)), number(row.grad.map(|grad| grad.norm)));
            let (update, ratio) = (number(row.update.map(|update| update.norm)), number(row.update_ratio()));
            let zeros = row.grad.map_or("-".to_string(), |grad| format!("{:.1} %", 100.0 * grad.zeros));
            let dims = format!("{}", row.shape);
            write!(f, "\n{:path$}  {dims:shape$}  {value:>10}  {grad:>10}  {update:>10}", row.path)?;
            write!(f, "  {ratio:>12}  {zeros:>10}  {nan:>5}  {infinite:>8}")?;
        }
        f.write_str(
            "\nvalue, gradient and update are norms, √(Σ x²); nan and infinite count elements of all three",
        )
    }
}

/// A number with 4 significant digits, as C's `%.4g`: without an exponent if it is between 0.0001 and 10000.
fn four_digits(number: f64) -> String {
    let scientific = format!("{number:.3e}");
    let exponent = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok());
    match exponent {
        Some(exponent @ -4..=3) => {
            let plain = format!("{number:.*}", (3 - exponent) as usize);
            let zeros = |text: &str| text.trim_end_matches('0').trim_end_matches('.').to_string();
            if plain.contains('.') { zeros(&plain) } else { plain }
        }
        _ => scientific,
    }
}

#[cfg(test)]
mod tests {
    use super::four_digits;

    #[test]
    fn numbers_have_four_digits() {
        let numbers = [2.32891, 0.0, 1.0, -12.5, 9999.7, 1234.4, 0.000123456, 0.00001234, 6.02e23];
        let texts = ["2.329", "0", "1", "-12.5", "1.000e4", "1234", "0.0001235", "1.234e-5", "6.020e23"];
        assert_eq!(numbers.map(four_digits), texts);
        assert_eq!([f64::NAN, f64::INFINITY].map(four_digits), ["NaN", "inf"]);
    }
}
