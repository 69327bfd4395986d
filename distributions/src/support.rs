//! [`Support`]: the values that a distribution can give, and the conditions on its parameters, with errors
//! that say which element breaks them.

use crate::common::*;
use crate::frame::part;
use crate::matrix;
use crate::odds::step_of;

/// The values that a parameter can have, or that a distribution can give.
#[derive(Clone, Debug)]
pub enum Support {
    /// Any number but NaN.
    Real,
    /// `x > 0`.
    Positive,
    /// `x >= 0`.
    NonNegative,
    /// `0 <= x <= 1`.
    UnitInterval,
    /// `0 < x <= 1`.
    PositiveUnitInterval,
    /// `low <= x <= high`.
    Interval {
        /// The smallest values.
        low: Tensor,
        /// The largest values.
        high: Tensor,
    },
    /// `x >= low`.
    AtLeast(Tensor),
    /// `x > low`.
    Above(Tensor),
    /// `x < high`.
    Below(Tensor),
    /// `0 <= x < 1`.
    BelowOne,
    /// 0 or 1.
    Boolean,
    /// 0, 1, 2, ...
    NonNegativeInteger,
    /// 0, 1, ... up to a largest number.
    IntegerUpTo(Tensor),
    /// Numbers that are not negative and whose sum along the last dim is one, up to rounding in their dtype.
    Simplex,
    /// Numbers that are not negative, and not all 0, along the last dim.
    Weights,
    /// Numbers below infinity, and not all -inf, along the last dim.
    Logits,
    /// One 1 along the last dim, and zeros.
    OneHot,
    /// Numbers that are not negative and whose sum along the last dim is at most this one.
    CountsUpTo(f64),
    /// Symmetric positive definite matrices in the last two dims.
    PositiveDefinite,
    /// Lower triangular matrices with a positive diagonal in the last two dims.
    LowerCholesky,
    /// Lower triangular matrices with a positive diagonal, and rows of length one.
    CorrCholesky,
}

/// A condition on one element, beside numbers that bound it.
type Test = fn(&[f64]) -> bool;

impl Support {
    /// The indices below `count`.
    pub(crate) fn index_below(count: usize) -> Support {
        match TensorOptions::new().dtype(DType::F64).full((), count as f64 - 1.0) {
            Ok(last) => Support::IntegerUpTo(last),
            Err(_) => Support::NonNegativeInteger, // out of memory
        }
    }

    /// The numbers from `low` to `high`.
    pub(crate) fn between(low: f64, high: f64) -> Support {
        match (Tensor::full((), low), Tensor::full((), high)) {
            (Ok(low), Ok(high)) => Support::Interval { low, high },
            _ => Support::Real, // out of memory
        }
    }

    /// The number of dims that the condition is about.
    pub fn event_dims(&self) -> usize {
        match self {
            Support::Simplex
            | Support::Weights
            | Support::Logits
            | Support::OneHot
            | Support::CountsUpTo(_) => 1,
            Support::PositiveDefinite | Support::LowerCholesky | Support::CorrCholesky => 2,
            _ => 0,
        }
    }

    /// The condition, as what comes after "must be".
    pub fn words(&self) -> String {
        match self {
            Support::Real => "a number".into(),
            Support::Positive => "positive".into(),
            Support::NonNegative => "at least 0".into(),
            Support::UnitInterval => "between 0 and 1".into(),
            Support::PositiveUnitInterval => "above 0 and at most 1".into(),
            Support::Interval { low, high } => format!("between {} and {}", bound(low), bound(high)),
            Support::AtLeast(low) => format!("at least {}", bound(low)),
            Support::Above(low) => format!("greater than {}", bound(low)),
            Support::Below(high) => format!("less than {}", bound(high)),
            Support::BelowOne => "at least 0 and less than 1".into(),
            Support::Boolean => "0 or 1".into(),
            Support::NonNegativeInteger => "a whole number that is not negative".into(),
            Support::IntegerUpTo(high) => format!("a whole number from 0 to {}", bound(high)),
            Support::Simplex => "probabilities whose sum is 1".into(),
            Support::Weights => "numbers that are not negative and not all 0".into(),
            Support::Logits => "numbers below infinity and not all -inf".into(),
            Support::OneHot => "one 1 and zeros".into(),
            Support::CountsUpTo(total) => format!("counts whose sum is at most {total}"),
            Support::PositiveDefinite => "a symmetric positive definite matrix".into(),
            Support::LowerCholesky => "a lower triangular matrix with a positive diagonal".into(),
            Support::CorrCholesky => {
                "a lower triangular matrix with a positive diagonal and rows of length 1".into()
            }
        }
    }

    /// Checks every element of `x`, which `what` is in the error.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] with the position of the first element that breaks the condition, and its value.
    #[track_caller]
    pub fn check(&self, op: &'static str, what: &str, x: &Tensor) -> Result<()> {
        match self {
            Support::Interval { low, high } => self.check_each(op, what, &[x, low, high]),
            Support::AtLeast(bound)
            | Support::Above(bound)
            | Support::Below(bound)
            | Support::IntegerUpTo(bound) => self.check_each(op, what, &[x, bound]),
            _ if self.event_dims() == 0 => self.check_each(op, what, &[x]),
            _ => self.check_slices(op, what, x),
        }
    }

    fn test(&self) -> Test {
        match self {
            Support::Positive => |x| x[0] > 0.0,
            Support::NonNegative => |x| x[0] >= 0.0,
            Support::UnitInterval => |x| (0.0..=1.0).contains(&x[0]),
            Support::PositiveUnitInterval => |x| x[0] > 0.0 && x[0] <= 1.0,
            Support::Interval { .. } => |x| x[1] <= x[0] && x[0] <= x[2],
            Support::AtLeast(_) => |x| x[0] >= x[1],
            Support::Above(_) => |x| x[0] > x[1],
            Support::Below(_) => |x| x[0] < x[1],
            Support::BelowOne => |x| (0.0..1.0).contains(&x[0]),
            Support::Boolean => |x| x[0] == 0.0 || x[0] == 1.0,
            Support::NonNegativeInteger => |x| x[0] >= 0.0 && x[0] == x[0].floor(),
            Support::IntegerUpTo(_) => |x| x[0] >= 0.0 && x[0] == x[0].floor() && x[0] <= x[1],
            _ => |x| !x[0].is_nan(),
        }
    }

    #[track_caller]
    fn check_each(&self, op: &'static str, what: &str, tensors: &[&Tensor]) -> Result<()> {
        let (columns, shape) = columns(tensors)?;
        let test = self.test();
        let mut row = vec![0.0; columns.len()];
        for index in 0..columns[0].len() {
            for (number, column) in row.iter_mut().zip(&columns) {
                *number = column[index];
            }
            if !test(&row) {
                return Err(self.broken(op, what, &place(&shape, index), row[0]));
            }
        }
        Ok(())
    }

    #[track_caller]
    fn check_slices(&self, op: &'static str, what: &str, x: &Tensor) -> Result<()> {
        let dims = self.event_dims();
        let (slices, sizes) = (part(&x.shape(), 0..x.ndim() - dims), &x.sizes()[x.ndim() - dims..]);
        let numbers = numbers(x)?;
        let length = sizes.iter().product::<usize>();
        if length == 0 {
            return Ok(());
        }
        for (index, slice) in numbers.chunks(length).enumerate() {
            if let Some(element) = self.broken_element(slice) {
                let place = place(&x.shape(), index * length + element);
                return Err(self.broken(op, what, &place, slice[element]));
            }
            let Some(broken) = self.broken_in(slice, sizes, step_of(x.dtype())) else { continue };
            let place = place(&slices, index);
            let message = format!("{what} must be {}, but {broken} {what}{place}", self.words());
            return Err(Error::new(ErrorKind::Value, op, message).with_operands([x.shape()]));
        }
        Ok(())
    }

    /// The first element of a slice that breaks the condition by itself.
    fn broken_element(&self, x: &[f64]) -> Option<usize> {
        match self {
            Support::Simplex | Support::Weights | Support::CountsUpTo(_) => {
                x.iter().position(|x| x.is_nan() || *x < 0.0)
            }
            Support::Logits => x.iter().position(|x| x.is_nan() || *x == f64::INFINITY),
            Support::OneHot => x.iter().position(|x| *x != 0.0 && *x != 1.0),
            _ => None,
        }
    }

    /// What is wrong with a slice as a whole, if anything is, as what comes before its name.
    fn broken_in(&self, x: &[f64], sizes: &[usize], step: f64) -> Option<String> {
        if matches!(self, Support::Logits) {
            let is_broken = x.iter().all(|x| *x == f64::NEG_INFINITY);
            return is_broken.then(|| "every number is -inf in".into());
        }
        let sum: f64 = x.iter().sum();
        let is_right = match self {
            Support::Simplex => (sum - 1.0).abs() <= (step * (32 + x.len()) as f64).clamp(1e-6, 0.1),
            Support::Weights => sum > 0.0 && sum.is_finite(),
            Support::CountsUpTo(total) => sum <= *total,
            Support::OneHot => sum == 1.0,
            _ => {
                return self.broken_matrix(x, sizes);
            }
        };
        (!is_right).then(|| format!("{sum} is the sum of"))
    }

    fn broken_matrix(&self, x: &[f64], sizes: &[usize]) -> Option<String> {
        let n = sizes[1];
        if sizes[0] != n {
            return Some(format!("a matrix of {} by {n} is", sizes[0]));
        }
        match self {
            Support::PositiveDefinite => broken_definite(x, n),
            Support::LowerCholesky => broken_triangle(x, n),
            _ => broken_triangle(x, n).or_else(|| {
                let length = |row: &[f64]| row.iter().map(|x| x * x).sum::<f64>();
                let row = x.chunks(n).position(|row| (length(row) - 1.0).abs() > 1e-4)?;
                Some(format!("row {row} has another length in"))
            }),
        }
    }

    #[cold]
    #[track_caller]
    fn broken(&self, op: &'static str, what: &str, place: &str, value: f64) -> Error {
        let message = format!("{what} must be {}, but {what}{place} is {value}", self.words());
        Error::new(ErrorKind::Value, op, message)
    }
}

fn broken_triangle(x: &[f64], n: usize) -> Option<String> {
    for (row, numbers) in x.chunks(n).enumerate() {
        if let Some(above) = numbers[row + 1..].iter().find(|x| **x != 0.0) {
            return Some(format!("{above} is above the diagonal of"));
        }
        if numbers[row].is_nan() || numbers[row] <= 0.0 {
            return Some(format!("{} is on the diagonal of", numbers[row]));
        }
    }
    None
}

fn broken_definite(x: &[f64], n: usize) -> Option<String> {
    for row in 0..n {
        for column in 0..row {
            let (a, b) = (x[row * n + column], x[column * n + row]);
            if (a - b).abs() > 1e-6 + 1e-5 * b.abs() {
                return Some(format!("{a} and {b} are at mirrored places of"));
            }
        }
    }
    let is_definite = matrix::factor(x, n).is_some();
    (!is_definite).then(|| "an eigenvalue is not positive in".into())
}

/// A bound as text: the number, if there is only one.
fn bound(x: &Tensor) -> String {
    match numbers(x) {
        Ok(numbers) if numbers.iter().all(|number| *number == numbers[0]) && !numbers.is_empty() => {
            format!("{}", numbers[0])
        }
        _ => "the bound beside it".into(),
    }
}

/// Where an element is, by the names of its dims: `[N: 3, 2]`; nothing in a tensor without dims.
pub(crate) fn place(shape: &Shape, index: usize) -> String {
    if shape.sizes.is_empty() {
        return String::new();
    }
    let (mut rest, mut at) = (index, vec![0; shape.sizes.len()]);
    for (dim, size) in shape.sizes.iter().enumerate().rev() {
        at[dim] = rest % size;
        rest /= size;
    }
    let text = |(dim, at): (usize, &usize)| match shape.names.get(dim) {
        Some(name) => format!("{name}: {at}"),
        None => format!("{at}"),
    };
    let list: Vec<String> = at.iter().enumerate().map(text).collect();
    format!("[{}]", list.join(", "))
}

/// The elements in order, as `f64`.
#[track_caller]
pub(crate) fn numbers(x: &Tensor) -> Result<Vec<f64>> {
    x.value().to(DType::F64)?.to_vec::<f64>()
}

/// The elements of tensors that are broadcast to each other, as `f64`, and the shape that they have then.
#[track_caller]
pub(crate) fn columns(tensors: &[&Tensor]) -> Result<(Vec<Vec<f64>>, Shape)> {
    if let [x] = tensors {
        return Ok((vec![numbers(x)?], x.shape()));
    }
    let detached: Vec<Tensor> = tensors.iter().map(|x| x.detach()).collect();
    let references: Vec<&Tensor> = detached.iter().collect();
    let spread = Tensor::broadcast_tensors(&references)?;
    let mut columns = Vec::with_capacity(spread.len());
    for x in &spread {
        columns.push(numbers(x)?);
    }
    Ok((columns, spread[0].shape()))
}
