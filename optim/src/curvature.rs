//! [`History`], what L-BFGS knows from earlier iterations, and the next direction that follows from it.
//!
//! The two loops of the algorithm run over numbers, not over vectors: all that they need is the products of the
//! vectors with each other. So an iteration reads the vectors twice, once for their products with the gradient and
//! once for the direction, which is a sum of multiples of them.

use crate::method::number;
use namegrad_core::cpu::combine::{combine, dots};
use namegrad_core::cpu::math::Real;
use namegrad_core::{DType, Element, Error, ErrorKind, NamedTensor, Result};
use std::collections::BTreeMap;

/// What is known from earlier iterations.
pub(crate) struct History {
    /// The last direction.
    pub(crate) d: NamedTensor,
    /// The length of the last step, in units of `d`.
    pub(crate) t: f64,
    /// The gradient before that step.
    before: NamedTensor,
    /// The changes of the gradient and of all parameters in earlier steps, `(y, s)`, the oldest first.
    pairs: Vec<(NamedTensor, NamedTensor)>,
    products: Products,
    /// `s·y / y·y` of the last pair.
    scale: f64,
}

/// The products of the vectors of all pairs.
#[derive(Clone, Default)]
struct Products {
    /// `s_y[i][j] = s[i] · y[j]`
    s_y: Vec<Vec<f64>>,
    /// `y_y[i][j] = y[i] · y[j]`
    y_y: Vec<Vec<f64>>,
}

impl Products {
    fn forget_first(&mut self) {
        for matrix in [&mut self.s_y, &mut self.y_y] {
            matrix.remove(0);
            for row in matrix {
                row.remove(0);
            }
        }
    }

    /// Adds the products of a new pair, the last, with the vectors of each pair: `s[i]·y`, `s·y[i]` and `y·y[i]`.
    fn add(&mut self, new: &[[f64; 3]]) {
        let earlier = self.s_y.iter_mut().zip(&mut self.y_y);
        for ((s_row, y_row), [with_s, _, with_y]) in earlier.zip(new) {
            s_row.push(*with_s);
            y_row.push(*with_y);
        }
        self.s_y.push(new.iter().map(|[_, s_y, _]| *s_y).collect());
        self.y_y.push(new.iter().map(|[.., y_y]| *y_y).collect());
    }

    /// The direction `-H g` as a sum of multiples of each `y`, each `s` and `g`, in this order. `y_g` and `s_g` are
    /// the products with `g`, and `scale` is the first estimate of `H`.
    fn direction(&self, y_g: &[f64], s_g: &[f64], scale: f64) -> Vec<f64> {
        let Products { s_y, y_y } = self;
        let m = s_y.len();
        let inverse = |i: usize| 1.0 / s_y[i][i];
        let sum = |from: &[f64], of: &dyn Fn(usize) -> f64| -> f64 {
            from.iter().enumerate().map(|(j, factor)| factor * of(j)).sum()
        };
        // r = -g - Σ alpha y
        let mut alpha = vec![0.0; m];
        for i in (0..m).rev() {
            alpha[i] = -inverse(i) * (s_g[i] + sum(&alpha, &|j| s_y[i][j]));
        }
        // r = scale r + Σ along s
        let mut along = vec![0.0; m];
        for i in 0..m {
            let y_r = -scale * (y_g[i] + sum(&alpha, &|j| y_y[i][j])) + sum(&along, &|j| s_y[j][i]);
            along[i] = alpha[i] - inverse(i) * y_r;
        }
        let of_y = alpha.iter().map(|alpha| -scale * alpha);
        of_y.chain(along.iter().copied()).chain([-scale]).collect()
    }
}

/// The names of the tensors in a state, besides those of the pairs.
const VECTORS: [&str; 2] = ["d", "prev_flat_grad"];
const NUMBERS: [&str; 2] = ["t", "H_diag"];
const PRODUCTS: [&str; 2] = ["s_y", "y_y"];
/// The names of the tensors of pair `i` are these, a dot and `i`.
const PAIRS: [&str; 2] = ["old_dirs", "old_stps"];

type Shared = BTreeMap<String, NamedTensor>;

impl History {
    /// The history after a first iteration, which steps `t` along `-grad`.
    pub(crate) fn start(grad: &NamedTensor, t: f64) -> Result<History> {
        let products = Products::default();
        Ok(History { d: grad.neg()?, t, before: grad.clone(), pairs: Vec::new(), products, scale: 1.0 })
    }

    /// Learns from the last step, which ended at a point with the gradient `grad`, and sets the next direction
    /// `-H grad`. `H` is the estimate of the inverse Hessian from at most `size` pairs.
    ///
    /// # Source
    /// Nocedal, Wright, *Numerical Optimization* (2nd edition, 2006), algorithm 7.4, over the products of vectors as
    /// in Byrd, Nocedal, Schnabel, *Representations of quasi-Newton matrices and their use in limited memory
    /// methods* (1994), section 2.
    pub(crate) fn follow(&mut self, grad: &NamedTensor, size: usize) -> Result<()> {
        match grad.dtype() {
            DType::F64 => self.follow_as::<f64>(grad, size),
            _ => self.follow_as::<f32>(grad, size),
        }
    }

    fn follow_as<T: Real + Element>(&mut self, grad: &NamedTensor, size: usize) -> Result<()> {
        let learned = self.learn::<T>(grad, size)?;
        let History { d, before, pairs, products, scale, .. } = self;
        let m = pairs.len();
        let ys = pairs.iter().map(|(y, _)| y.as_slice::<T>());
        let mut vectors = ys.chain(pairs.iter().map(|(_, s)| s.as_slice())).collect::<Result<Vec<_>>>()?;
        // All products with the gradient and with the new pair, in one pass.
        let mut others = vec![grad.as_slice()?];
        if learned {
            others.extend([vectors[m - 1], vectors[2 * m - 1]]);
        }
        let with = dots(&vectors, &others);
        let (with_y, with_s) = with.split_at(m * others.len());
        let [y, s] = [with_y, with_s].map(|rows| rows.chunks(others.len()).collect::<Vec<_>>());
        if learned {
            products.add(&(0..m).map(|i| [s[i][1], y[i][2], y[i][1]]).collect::<Vec<_>>());
        }
        let [y_g, s_g] = [y, s].map(|rows| rows.iter().map(|row| row[0]).collect::<Vec<_>>());
        vectors.push(others[0]);
        combine(&products.direction(&y_g, &s_g, *scale), &vectors, d.as_mut_slice()?);
        *before = grad.clone();
        Ok(())
    }

    /// Adds the pair of the last step, unless the loss is not convex along it. Returns whether it was added.
    fn learn<T: Real + Element>(&mut self, grad: &NamedTensor, size: usize) -> Result<bool> {
        let (y, s) = (grad.sub(&self.before)?, self.d.mul(self.t)?);
        let products = dots(&[y.as_slice::<T>()?], &[s.as_slice()?, y.as_slice()?]);
        if products[0] <= 1e-10 || products[0].is_nan() {
            return Ok(false);
        }
        self.scale = products[0] / products[1];
        if self.pairs.len() >= size && !self.pairs.is_empty() {
            self.pairs.remove(0);
            self.products.forget_first();
        }
        self.pairs.push((y, s));
        Ok(true)
    }

    /// The history in a state, if there is one.
    pub(crate) fn load(shared: &Shared, dtype: DType) -> Result<Option<History>> {
        let vector = |name: &str| shared.get(name).map(|value| value.to(dtype)?.contiguous()).transpose();
        let scalar = |name: &str| shared.get(name).map(number).transpose();
        let (Some(d), Some(before)) = (vector(VECTORS[0])?, vector(VECTORS[1])?) else { return Ok(None) };
        let (Some(t), Some(scale)) = (scalar(NUMBERS[0])?, scalar(NUMBERS[1])?) else { return Ok(None) };
        let mut pairs = Vec::new();
        loop {
            let [y, s] = PAIRS.map(|name| vector(&format!("{name}.{}", pairs.len())));
            let (Some(y), Some(s)) = (y?, s?) else { break };
            pairs.push((y, s));
        }
        let matrix = |name: &str| -> Result<Vec<Vec<f64>>> {
            let numbers = shared.get(name).map(NamedTensor::to_vec::<f64>).transpose()?.unwrap_or_default();
            Ok(numbers.chunks(pairs.len().max(1)).map(<[f64]>::to_vec).collect())
        };
        let products = Products { s_y: matrix(PRODUCTS[0])?, y_y: matrix(PRODUCTS[1])? };
        Ok(Some(History { d, t, before, pairs, products, scale }))
    }

    pub(crate) fn save(self, shared: &mut Shared) -> Result<()> {
        shared.clear();
        let vectors = VECTORS.into_iter().zip([self.d, self.before]);
        shared.extend(vectors.map(|(name, value)| (name.to_string(), value)));
        for (name, number) in NUMBERS.into_iter().zip([self.t, self.scale]) {
            shared.insert(name.into(), NamedTensor::from_slice(&[number], ())?);
        }
        let m = self.pairs.len();
        for (name, matrix) in PRODUCTS.into_iter().zip([self.products.s_y, self.products.y_y]) {
            shared.insert(name.into(), NamedTensor::from_slice(&matrix.concat(), [m, m])?);
        }
        for (i, (y, s)) in self.pairs.into_iter().enumerate() {
            shared.insert(format!("{}.{i}", PAIRS[0]), y);
            shared.insert(format!("{}.{i}", PAIRS[1]), s);
        }
        Ok(())
    }

    /// Checks that a state has all tensors of a history of vectors with `numel` elements, or none.
    pub(crate) fn check(shared: &Shared, numel: usize) -> Result<()> {
        let pairs = (0..).take_while(|i| shared.contains_key(&format!("{}.{i}", PAIRS[0]))).count();
        let of_pairs = |i: usize| PAIRS.map(|name| format!("{name}.{i}"));
        let vectors = VECTORS.map(String::from).into_iter().chain((0..pairs).flat_map(of_pairs));
        let expected = vectors.map(|name| (name, vec![numel]));
        let expected = expected.chain(NUMBERS.map(|name| (name.into(), vec![])));
        let expected = expected.chain(PRODUCTS.map(|name| (name.into(), vec![pairs; 2])));
        let expected: BTreeMap<String, Vec<usize>> = expected.collect();
        let wrong = |message: String| Err(Error::new(ErrorKind::Value, "Lbfgs", message));
        if shared.is_empty() {
            return Ok(());
        }
        for (name, sizes) in &expected {
            match shared.get(name) {
                None => return wrong(format!("{name} is missing in the state")),
                Some(value) if value.sizes() != sizes || !value.dtype().is_floating_point() => {
                    return wrong(format!("{name} is {value:?} in the state, must be of sizes {sizes:?}"));
                }
                Some(_) => {}
            }
        }
        match shared.keys().find(|name| !expected.contains_key(*name)) {
            Some(name) => wrong(format!("{name} in the state is not of Lbfgs")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dot(x: &[f64], y: &[f64]) -> f64 {
        x.iter().zip(y).map(|(x, y)| x * y).sum()
    }

    /// Algorithm 7.4 over vectors.
    fn two_loops(g: &[f64], pairs: &[(Vec<f64>, Vec<f64>)], scale: f64) -> Vec<f64> {
        let mut r: Vec<f64> = g.iter().map(|g| -g).collect();
        let add = |r: &mut Vec<f64>, a: f64, x: &[f64]| r.iter_mut().zip(x).for_each(|(r, x)| *r += a * x);
        let mut alphas = Vec::new();
        for (y, s) in pairs.iter().rev() {
            alphas.push(dot(s, &r) / dot(s, y));
            add(&mut r, -alphas[alphas.len() - 1], y);
        }
        r.iter_mut().for_each(|r| *r *= scale);
        for ((y, s), alpha) in pairs.iter().zip(alphas.into_iter().rev()) {
            let beta = dot(y, &r) / dot(s, y);
            add(&mut r, alpha - beta, s);
        }
        r
    }

    #[test]
    fn directions_are_those_of_the_loops_over_vectors() {
        let n = 40;
        let vector = |k: usize| (0..n).map(|i| ((i * 7 + k * 13) as f64 * 0.37).sin()).collect::<Vec<f64>>();
        let tensor = |x: &[f64]| NamedTensor::from_slice(x, [n]).unwrap();
        let mut point = vector(0);
        // The gradient of Σ (1 + i) x⁴ / 4.
        let gradient =
            |x: &[f64]| x.iter().zip(1..).map(|(x, i)| f64::from(i) * x.powi(3)).collect::<Vec<f64>>();
        let mut g = gradient(&point);
        let mut history = History::start(&tensor(&g), 1e-3).unwrap();
        let mut pairs: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
        for step in 0..9 {
            let s: Vec<f64> = history.d.to_vec::<f64>().unwrap().iter().map(|d| d * history.t).collect();
            point.iter_mut().zip(&s).for_each(|(x, s)| *x += s);
            let before = std::mem::replace(&mut g, gradient(&point));
            let y: Vec<f64> = g.iter().zip(&before).map(|(g, before)| g - before).collect();
            let scale = dot(&s, &y) / dot(&y, &y);
            assert!(dot(&s, &y) > 1e-10, "step {step}");
            pairs.push((y, s));
            if pairs.len() > 4 {
                pairs.remove(0);
            }
            // Through a state, as between two steps.
            let mut shared = Shared::new();
            history.save(&mut shared).unwrap();
            History::check(&shared, n).unwrap();
            history = History::load(&shared, DType::F64).unwrap().unwrap();
            history.follow(&tensor(&g), 4).unwrap();
            history.t = 0.1;
            let expected = two_loops(&g, &pairs, scale);
            let largest = expected.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
            for (found, expected) in history.d.to_vec::<f64>().unwrap().iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-10 * largest, "step {step}: {found} is not {expected}");
            }
        }
    }
}
