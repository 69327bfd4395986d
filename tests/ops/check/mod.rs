//! The checks of each row of the tables.
//!
//! A row becomes [`Case`]s: an op with its inputs, the names and the dtype that the result must have, and a
//! slow reference. [`check`] then checks
//!
//! * the value in each of the ten dtypes, and that an unsupported dtype is an error;
//! * the names, with named and with unnamed inputs;
//! * the same result for any memory order of the inputs: permuted, flipped, narrowed, stepped, expanded;
//! * that the in-place form gives the same result, in a shared buffer, an unshared one and a view, and that a
//!   failed call does not change its tensor;
//! * the gradient to second order against differences, including through views and for inputs that are used
//!   twice; its sizes, dtype and lack of names; and that a fused gradient agrees with its row.
//!
//! `inputs` makes the inputs, `dtypes` has rules for the dtypes of results, and `compare` decides which
//! numbers are close enough; the checks are in `values` and `gradients`. The cases of elementwise ops are
//! generated from the row (`by_element`): broadcasting, 0-d and empty inputs, and values at 0, kinks, large
//! numbers, infinities and NaN. The tables are written with the macros in `macros`.

use crate::plain::Plain;
use namegrad::ops::{self, Given, Value};
use namegrad::prelude::*;

#[macro_use]
mod macros;
mod by_element;
mod compare;
mod dtypes;
mod gradients;
mod inputs;
mod values;

pub(crate) use by_element::{Pointwise, pointwise};
pub(crate) use compare::identical;
pub(crate) use dtypes::*;
pub(crate) use gradients::by_subsets;
pub(crate) use inputs::*;
pub(crate) use values::orders;

/// The numbers of a tensor, as they are after rounding to its dtype.
pub(crate) fn plain(x: &Tensor) -> Plain {
    Plain { sizes: x.sizes().to_vec(), data: x.to(DType::F64).unwrap().to_vec().unwrap() }
}

/// An op on tensors.
pub(crate) type Call = Box<dyn Fn(&[Tensor]) -> Result<Tensor>>;

/// The in-place form of an op on a tensor and others.
pub(crate) type CallInPlace = Box<dyn Fn(&mut Tensor, &[Tensor]) -> Result<()>>;

/// A slow, plain form of an op.
pub(crate) type Reference = Box<dyn Fn(&[Plain]) -> Plain>;

/// An op on given inputs.
pub(crate) struct Case {
    pub(crate) op: &'static str,
    pub(crate) call: Call,
    pub(crate) in_place: Option<CallInPlace>,
    pub(crate) inputs: Vec<Input>,
    /// The sizes and names of the result.
    pub(crate) result: Axes,
    /// The dtype of the result, or `None` if the op rejects the dtype.
    pub(crate) dtype: fn(DType) -> Option<DType>,
    pub(crate) reference: Reference,
    /// The size of the terms that may cancel in the result; rounding errors are also relative to this. If it
    /// is `None`, no bit of the result depends on the memory order.
    pub(crate) scale: Option<f64>,
    /// Whether the in-place form may change the sizes.
    pub(crate) reshapes: bool,
}

/// Runs all checks of a case.
pub(crate) fn check(case: &Case) {
    for dtype in DType::ALL {
        case.value(dtype);
        case.in_place(dtype);
    }
    case.no_names();
    for dtype in [DType::F64, DType::F32, DType::I32, DType::Bool] {
        case.orders(dtype);
    }
    case.gradient();
}

/// Arguments of an op by their names.
pub(crate) type Args = Vec<(&'static str, Value)>;

/// An op, called by its name, and its in-place form if it has one. If there are several outputs, the result
/// is the output with this name, or the first.
pub(crate) fn by_name(op: &'static str, args: Args, output: &'static str) -> (Call, Option<CallInPlace>) {
    let row = ops::find(op).unwrap();
    let own = args.clone();
    let call = move |inputs: &[Tensor]| {
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        let at = row.info.outputs.iter().position(|name| *name == output).unwrap_or(0);
        Ok(row.call(&inputs, &given(&own))?.swap_remove(at))
    };
    let in_place = row.info.in_place.map(|_| {
        Box::new(move |x: &mut Tensor, others: &[Tensor]| {
            let others: Vec<&Tensor> = others.iter().collect();
            row.call_in_place(x, &others, &given(&args))
        }) as CallInPlace
    });
    (Box::new(call), in_place)
}

/// The output with this number, for an op that returns a list.
fn number(op: &'static str, args: Args, at: usize) -> Call {
    let row = ops::find(op).unwrap();
    Box::new(move |inputs| Ok(row.call(&inputs.iter().collect::<Vec<_>>(), &given(&args))?.swap_remove(at)))
}

fn given(args: &Args) -> Vec<(&'static str, Given<'static>)> {
    args.iter().map(|(name, value)| (*name, Given::Value(value.clone()))).collect()
}

impl Case {
    /// A case of a row: the name of the op, the arguments in the order of its row, and the element of the
    /// result at an index.
    #[allow(clippy::too_many_arguments)] // the parts of a row
    pub(crate) fn new(
        op: &'static str,
        inputs: Vec<Input>,
        args: Vec<Value>,
        (output, at): (&'static str, usize),
        result: &str,
        dtype: fn(DType) -> Option<DType>,
        element: impl Fn(&[Plain], &[usize]) -> f64 + 'static,
        scale: Option<f64>,
    ) -> Case {
        let row = ops::find(op).unwrap();
        assert!(output.is_empty() || row.info.outputs.contains(&output), "{op} has no output {output}");
        let args = row.info.args.iter().map(|arg| arg.name).zip(args).collect();
        let (call, in_place) = if at == 0 { by_name(op, args, output) } else { (number(op, args, at), None) };
        let result = axes(result);
        let sizes = sizes(&result);
        let reference = Box::new(move |x: &[Plain]| Plain::from_fn(&sizes, |i| element(x, i)));
        let inputs = in_places(inputs);
        Case { op, call, in_place, inputs, result, dtype, reference, scale, reshapes: !row.info.by_element }
    }

    fn tensors(&self, dtype: DType) -> Vec<Tensor> {
        self.inputs.iter().map(|input| input.tensor(dtype)).collect()
    }

    fn describe(&self, dtype: DType) -> String {
        let inputs: Vec<String> = self.tensors(dtype).iter().map(|x| format!("{x:?}")).collect();
        format!("{} of {dtype} on {}", self.op, inputs.join(" and "))
    }

    fn reference_of(&self, inputs: &[Tensor]) -> Plain {
        (self.reference)(&inputs.iter().map(plain).collect::<Vec<_>>())
    }
}
