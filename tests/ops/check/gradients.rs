//! Checks of the derivative.

use super::compare::assert_close;
use super::inputs::Role;
use super::values::{own, reversed};
use super::{Case, plain};
use crate::plain::Plain;
use namegrad::autograd::{BackwardOptions, GradCheckOptions, grad_with, gradcheck_with, gradgradcheck_with};
use namegrad::ops::{self, Gradients};
use namegrad::prelude::*;

/// The derivative of an op, for the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Derivative {
    /// By a row, by a function, or by the ops that it is composed of.
    Taped,
    /// Not at all: its result has no gradient.
    Constant,
    /// There is no derivative: the op is an error for an input that requires a gradient.
    Refused,
}

/// The derivative of an op, according to the registry. Ops that are not in it are composed of ops
/// that are.
fn derivative(op: &str) -> Derivative {
    match ops::find(op).map(|op| op.gradients) {
        Ok(Gradients::Constant) => Derivative::Constant,
        Ok(Gradients::Refused) => Derivative::Refused,
        _ => Derivative::Taped,
    }
}

/// Ops with cases whose result is not finite for finite numbers, such as the variance of one element.
const NOT_FINITE: [&str; 4] = ["var", "std", "var_mean", "std_mean"];

/// Tighter than PyTorch's tolerance, which accepts a factor of 1.0005.
const GRADCHECK: GradCheckOptions = GradCheckOptions { eps: 1e-5, atol: 1e-6, rtol: 1e-5 };

/// Checks that the fused gradients of an op equal those of its formula, for each subset of the inputs that
/// requires a gradient.
pub(crate) fn by_subsets(inputs: &[Tensor], op: impl Fn(&[Tensor]) -> Result<Tensor>) -> Result<()> {
    for subset in 1..1_usize << inputs.len() {
        let wanted = |at: usize| subset >> at & 1 == 1;
        let mut given = Vec::with_capacity(inputs.len());
        for (at, x) in inputs.iter().enumerate() {
            given.push(if wanted(at) { x.detach().requiring_grad()? } else { x.clone() });
        }
        let y = op(&given)?;
        let g = y.sin()?.detach();
        let leaves: Vec<&Tensor> = given.iter().filter(|x| x.requires_grad()).collect();
        let gradients = |create_graph| {
            let options = BackwardOptions { create_graph, retain_graph: true, ..BackwardOptions::default() };
            grad_with(&[&y], &leaves, &[Some(&g)], options)
        };
        for (fused, plainly) in gradients(false)?.iter().zip(&gradients(true)?) {
            let (Some(fused), Some(plainly)) = (fused, plainly) else { panic!("an input has no gradient") };
            let scale = plainly.abs()?.amax(..)?.item::<f64>()?;
            let apart = fused.sub(plainly.detach())?.abs()?.amax(..)?.item::<f64>()?;
            assert!(apart <= 1e-5 * scale, "subset {subset:b}: {apart} apart, of {scale}");
        }
    }
    Ok(())
}

impl Case {
    /// Checks the derivative to second order against differences, or whatever replaces the derivative.
    pub(crate) fn gradient(&self) {
        if (self.dtype)(DType::F64).is_none() {
            return;
        }
        let inputs = self.tensors(DType::F64);
        let leaves: Vec<usize> = (0..inputs.len()).filter(|i| self.inputs[*i].role == Role::Value).collect();
        let derivative = derivative(self.op);
        if derivative != Derivative::Taped || leaves.is_empty() {
            let derivative = if leaves.is_empty() { Derivative::Constant } else { derivative };
            return self.no_gradient(derivative, &inputs, &leaves);
        }
        if self.reference_of(&inputs).data.iter().any(|y| !y.is_finite()) {
            // There is no difference to compare with, so check only that gradients of the right kind arrive.
            assert!(NOT_FINITE.contains(&self.op), "{} is not finite", self.describe(DType::F64));
            return [DType::F64, DType::F32, DType::F16]
                .into_iter()
                .for_each(|dtype| self.gradients_fit(dtype, &leaves));
        }
        let given: Vec<Tensor> = leaves.iter().map(|i| inputs[*i].clone()).collect();
        // All inputs of the op; some come from outside.
        let all = |given: &[Tensor]| {
            let mut inputs = inputs.clone();
            leaves.iter().zip(given).for_each(|(i, x)| inputs[*i] = x.clone());
            inputs
        };
        let what = |how: &str| format!("{how}{}", self.describe(DType::F64));
        let plainly = |given: &[Tensor]| (self.call)(&all(given));
        gradcheck_with(plainly, &given, GRADCHECK).unwrap_or_else(|error| panic!("{}: {error}", what("")));
        gradgradcheck_with(plainly, &given, GRADCHECK)
            .unwrap_or_else(|error| panic!("{}: {error}", what("second order of ")));

        let reordered: Vec<Tensor> = given.iter().map(|x| x.permute(reversed(x)).unwrap()).collect();
        let permuted = |given: &[Tensor]| {
            let given: Result<Vec<Tensor>> = given.iter().map(|x| x.permute(reversed(x))).collect();
            (self.call)(&all(&given?))
        };
        gradcheck_with(permuted, &reordered, GRADCHECK)
            .unwrap_or_else(|error| panic!("{}: {error}", what("permuted inputs of ")));

        let twice = |given: &[Tensor]| {
            let (y, z) = ((self.call)(&all(given))?, (self.call)(&all(given))?);
            y.mul(&z)
        };
        gradcheck_with(twice, &given, GRADCHECK)
            .unwrap_or_else(|error| panic!("{}: {error}", what("inputs used twice by ")));

        if let Some(in_place) = &self.in_place
            && in_place(&mut own(&inputs[0]), &inputs[1..]).is_ok()
        {
            let changed = |given: &[Tensor]| {
                let inputs = all(given);
                let mut y = inputs[0].mul(1.0)?;
                in_place(&mut y, &inputs[1..])?;
                Ok(y)
            };
            gradcheck_with(changed, &given, GRADCHECK)
                .unwrap_or_else(|error| panic!("{}: {error}", what("in place: ")));
        }
        for dtype in [DType::F64, DType::F32, DType::F16] {
            self.gradients_fit(dtype, &leaves);
            self.fused_agrees(dtype, &leaves);
        }
    }

    /// Gradients have the sizes and the dtype of their tensors, and no names.
    fn gradients_fit(&self, dtype: DType, leaves: &[usize]) {
        let mut inputs = self.tensors(dtype);
        for i in leaves {
            inputs[*i].requires_grad_(true).unwrap();
        }
        let what = || format!("backward of {}", self.describe(dtype));
        let y = (self.call)(&inputs).unwrap();
        assert!(y.requires_grad(), "{} is cut", what());
        y.sum(..).unwrap().backward().unwrap_or_else(|error| panic!("{}: {error}", what()));
        for i in leaves {
            let Some(grad) = inputs[*i].grad() else { panic!("input {i} has no gradient in the {}", what()) };
            assert_eq!(grad.sizes(), inputs[*i].sizes(), "{}", what());
            assert_eq!(grad.dtype(), dtype, "{}", what());
            assert!(!grad.has_names(), "{}", what());
        }
    }

    /// The kernel that runs when the backward pass is not recorded equals the formula of its row.
    fn fused_agrees(&self, dtype: DType, leaves: &[usize]) {
        let mut inputs = self.tensors(dtype);
        for i in leaves {
            inputs[*i].requires_grad_(true).unwrap();
        }
        let given: Vec<&Tensor> = leaves.iter().map(|i| &inputs[*i]).collect();
        let y = (self.call)(&inputs).unwrap();
        let weights =
            Plain::from_fn(y.sizes(), |i| 1.0 + 0.5 * (1.0 + crate::plain::ravel(i, y.sizes()) as f64).sin());
        let weights = Tensor::from_slice(&weights.data, y.sizes()).unwrap();
        let options = |create_graph| BackwardOptions {
            retain_graph: true,
            create_graph,
            allow_unused: false,
            named: false,
            early: false,
        };
        let walk = |create_graph| grad_with(&[&y], &given, &[Some(&weights)], options(create_graph)).unwrap();
        for (fused, row) in walk(false).into_iter().zip(walk(true)) {
            let what = || format!("fused gradient of {}", self.describe(dtype));
            let want = plain(&row.unwrap());
            let size = want.data.iter().fold(1.0, |size: f64, x| size.max(x.abs()));
            assert_close(&fused.unwrap(), &want, 4.0 * size, &what);
        }
    }

    /// The result of an op without a derivative requires no gradient, or the op is an error.
    fn no_gradient(&self, derivative: Derivative, inputs: &[Tensor], leaves: &[usize]) {
        let mut inputs = inputs.to_vec();
        for i in leaves {
            inputs[*i].requires_grad_(true).unwrap();
        }
        match ((self.call)(&inputs), derivative) {
            (Ok(y), Derivative::Constant) => assert!(!y.requires_grad(), "{}", self.op),
            (Err(error), Derivative::Refused) => assert_eq!(error.kind(), ErrorKind::Autograd, "{error}"),
            (result, _) => panic!("{} is {derivative:?} and gives {result:?}", self.op),
        }
    }
}
