//! Recurrent layers.

pub use crate::cell::Cell;

use crate::cpu::recurrent::backward_room;
use crate::cpu::recurrent::{RecurrentGradients, RecurrentLayer, RecurrentOut, SavedSteps};
use crate::device::{compute, takes};
use crate::dtype::{DType, dispatch};
use crate::error::{Error, ErrorKind, Result};
use crate::names::{Names, rules};
use crate::shape::Shape;
use crate::tensor::NamedTensor;
use namegrad_macros::ops;
use std::panic::Location;

ops! { recurrent;
    //! # Recurrent layers
    /// One direction of one recurrent layer, over all steps of `x`, from the state `hx` and, for an LSTM, the
    /// cells `cx`. Returns the states after each step, the last state, and the last cells, which are empty
    /// unless the cell is an LSTM. With `reverse`, the last step comes first. `lengths` are the lengths of
    /// the sequences: beyond its end, a sequence has the result 0, and its last state is that at its end.
    ///
    /// # Shapes
    /// With the gates of the cell stacked, `G` times `hidden`; `state` is `hidden` unless the `w_hr` of an
    /// LSTM projects it:
    /// - `x`: `[time, batch, input]`, `hx`: `[batch, state]`, `cx`: `[batch, hidden]`
    /// - `w_ih`: `[G hidden, input]`, `w_hh`: `[G hidden, state]`, `b_ih`, `b_hh`: `[G hidden]`, `w_hr`:
    ///   `[state, hidden]`
    /// - `lengths`: `[batch]`
    /// - `y`: `[time, batch, state]`, `hn`: like `hx`, `cn`: like `cx`
    ///
    /// # Source
    /// Hochreiter, Schmidhuber, *Long Short-Term Memory* (1997); Cho et al., *Learning Phrase Representations
    /// using RNN Encoder-Decoder* (2014); the order of the gates is PyTorch's.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::core::Cell;
    /// let x = Tensor::randn([("time", 5), ("N", 2), ("in", 3)])?;
    /// let (w_ih, w_hh) = (Tensor::randn([4 * 6, 3])?, Tensor::randn([4 * 6, 6])?);
    /// let state = Tensor::zeros([("N", 2), ("hidden", 6)])?;
    /// let options = RecurrentOptions::new().cx(&state);
    /// let (y, hn, cn) = x.recurrent_with(&state, &w_ih, &w_hh, Cell::Lstm, options)?;
    /// assert_eq!(y.shape().to_string(), "[time=5, N=2, hidden=6]");
    /// assert!(hn.equal(&y.select("time", -1)?)?);
    /// assert_eq!(cn.shape(), state.shape());
    /// # Ok::<(), Error>(())
    /// ```
    recurrent (x, hx, w_ih, w_hh, cx?, b_ih?, b_hh?, w_hr?, lengths?; cell: Cell, reverse: bool = false)
        -> (y, hn, cn; gates, inner)
        on floats names keeps, hn: of hx, cn: of cx, hx: renames last, w_ih: free, w_hh: free, cx: renames last, b_ih: free, b_hh: free, w_hr: free, lengths: along batch;
}

impl crate::args::Immediate for Cell {
    const WORDS: &'static [(&'static str, Cell)] =
        &[("tanh", Cell::Tanh), ("relu", Cell::Relu), ("lstm", Cell::Lstm), ("gru", Cell::Gru)];
}

/// The inputs of [`recurrent`](NamedTensor::recurrent).
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct RecurrentInputs<'a> {
    pub x: &'a NamedTensor,
    pub hx: &'a NamedTensor,
    pub w_ih: &'a NamedTensor,
    pub w_hh: &'a NamedTensor,
    pub cx: Option<&'a NamedTensor>,
    pub b_ih: Option<&'a NamedTensor>,
    pub b_hh: Option<&'a NamedTensor>,
    pub w_hr: Option<&'a NamedTensor>,
    pub lengths: Option<&'a NamedTensor>,
}

pub(crate) mod kernels {
    use super::*;

    const OP: &str = "recurrent";

    #[track_caller]
    pub(crate) fn recurrent(
        x: &NamedTensor,
        hx: &NamedTensor,
        w_ih: &NamedTensor,
        w_hh: &NamedTensor,
        cx: Option<&NamedTensor>,
        b_ih: Option<&NamedTensor>,
        b_hh: Option<&NamedTensor>,
        w_hr: Option<&NamedTensor>,
        lengths: Option<&NamedTensor>,
        cell: Cell,
        reverse: bool,
    ) -> Result<(NamedTensor, NamedTensor, NamedTensor, NamedTensor, NamedTensor)> {
        let inputs = RecurrentInputs { x, hx, w_ih, w_hh, cx, b_ih, b_hh, w_hr, lengths };
        let sizes = Sizes::new(&inputs, cell)?;
        let dense = Dense::new(&inputs)?;
        let dtype = dense.x.dtype();
        let Sizes { steps, batch, hidden, state, .. } = sizes;
        let has_inner = matches!(cell, Cell::Lstm | Cell::Gru);
        let zeros = |sizes: &[usize]| zeros(OP, sizes, dtype);
        let mut y = zeros(&[steps, batch, state])?;
        let mut gates = zeros(&[steps, batch, cell.gates() * hidden])?;
        let mut inner = zeros(&[if has_inner { steps } else { 0 }, batch, hidden])?;
        let mut h = dense.hx.deep_clone()?;
        let mut c = match &dense.cx {
            Some(cx) => cx.deep_clone()?,
            None => zeros(&[0])?,
        };
        compute(|| {
            dispatch!(dtype, float T => {
            let lengths = sizes.lengths(lengths)?;
            let out = RecurrentOut {
                y: y.as_mut_slice::<T>()?,
                gates: gates.as_mut_slice::<T>()?,
                inner: inner.as_mut_slice::<T>()?,
                h: h.as_mut_slice::<T>()?,
                c: c.as_mut_slice::<T>()?,
            };
            dense.layer::<T>(&sizes, cell, reverse, lengths.as_deref())?.forward(dense.x.elements::<T>()?, out);
            Ok(())
        }, else unreachable!("checked to be floats"))
        })?;
        let names = Names::new(OP, [x.name(0), x.name(1), hx.name(1)])?;
        let back = |result: NamedTensor, names: Names| {
            Ok::<_, Error>(result.into_dtype(x.dtype())?.with_names(names))
        };
        let of_cells = cx.map_or_else(Names::none, |cx| cx.names().clone());
        Ok((back(y, names)?, back(h, hx.names().clone())?, back(c, of_cells)?, gates, inner))
    }

    /// The gradients of all inputs but the lengths. `gs` are the gradients of the results.
    #[track_caller]
    pub(super) fn backward(
        gs: [&NamedTensor; 3],
        inputs: &RecurrentInputs<'_>,
        [y, gates, inner]: [&NamedTensor; 3],
        cell: Cell,
        reverse: bool,
    ) -> Result<[Option<NamedTensor>; 8]> {
        const OP: &str = "recurrent_backward";
        let sizes = Sizes::new(inputs, cell)?;
        let dense = Dense::new(inputs)?;
        let dtype = dense.x.dtype();
        let like = |x: &NamedTensor| zeros(OP, x.sizes(), dtype);
        let bias = || zeros(OP, &[cell.gates() * sizes.hidden], dtype);
        let (mut of_x, mut of_w_ih, mut of_w_hh) = (like(&dense.x)?, like(&dense.w_ih)?, like(&dense.w_hh)?);
        let (mut of_b_ih, mut of_b_hh) = (bias()?, bias()?);
        let mut of_w_hr = match &dense.w_hr {
            Some(w_hr) => like(w_hr)?,
            None => zeros(OP, &[0], dtype)?,
        };
        let [dy, dh, dc] = gs.map(|g| g.unnamed().to(dtype).and_then(|g| g.contiguous()));
        let (dy, mut of_h, mut of_c) = (dy?, dh?.deep_clone()?, dc?.deep_clone()?);
        let y = y.unnamed().to(dtype)?.contiguous()?;
        takes(|| [0, dtype.itemsize() * backward_room(cell, y.numel(), gates.numel(), inner.numel())]);
        compute(|| {
            dispatch!(dtype, float T => {
            let lengths = sizes.lengths(inputs.lengths)?;
            let kept = SavedSteps {
                x: dense.x.elements::<T>()?,
                h: dense.hx.elements::<T>()?,
                c: dense.cx.as_ref().map_or(Ok(&[][..]), |cx| cx.elements::<T>())?,
                y: y.elements::<T>()?,
                gates: gates.elements::<T>()?,
                inner: inner.elements::<T>()?,
                dy: dy.elements::<T>()?,
            };
            let of = RecurrentGradients {
                x: of_x.as_mut_slice::<T>()?,
                h: of_h.as_mut_slice::<T>()?,
                c: of_c.as_mut_slice::<T>()?,
                w_ih: of_w_ih.as_mut_slice::<T>()?,
                w_hh: of_w_hh.as_mut_slice::<T>()?,
                b_ih: of_b_ih.as_mut_slice::<T>()?,
                b_hh: of_b_hh.as_mut_slice::<T>()?,
                w_hr: of_w_hr.as_mut_slice::<T>()?,
            };
            dense.layer::<T>(&sizes, cell, reverse, lengths.as_deref())?.backward(kept, of);
            Ok(())
        }, else unreachable!("only floats have gradients"))
        })?;
        let [cx, b_ih, b_hh, w_hr] = [inputs.cx, inputs.b_ih, inputs.b_hh, inputs.w_hr].map(|x| x.is_some());
        Ok([
            Some(of_x),
            Some(of_h),
            Some(of_w_ih),
            Some(of_w_hh),
            cx.then_some(of_c),
            b_ih.then_some(of_b_ih),
            b_hh.then_some(of_b_hh),
            w_hr.then_some(of_w_hr),
        ])
    }

    #[track_caller]
    fn zeros(op: &'static str, sizes: &[usize], dtype: DType) -> Result<NamedTensor> {
        NamedTensor::filled(op, Shape { sizes: sizes.into(), names: Names::none() }, dtype, 0.into())
    }

    struct Sizes {
        steps: usize,
        batch: usize,
        input: usize,
        hidden: usize,
        state: usize,
    }

    impl Sizes {
        #[track_caller]
        fn new(inputs: &RecurrentInputs<'_>, cell: Cell) -> Result<Sizes> {
            let RecurrentInputs { x, hx, w_ih, w_hh, cx, b_ih, b_hh, w_hr, lengths } = *inputs;
            let shown = [x, hx, w_ih, w_hh];
            let caller = Location::caller();
            let fail = |kind, message: String| Err(Error::about(&shown, kind, OP, message).at(caller));
            x.check_float(OP)?;
            let others = [Some(hx), Some(w_ih), Some(w_hh), cx, b_ih, b_hh, w_hr];
            let others = ["hx", "w_ih", "w_hh", "cx", "b_ih", "b_hh", "w_hr"].into_iter().zip(others);
            let mut others = others.filter_map(|(name, other)| Some((name, other?)));
            if let Some((name, other)) = others.find(|(_, other)| other.dtype() != x.dtype()) {
                let message = format!("the input is {}, and `{name}` is {}", x.dtype(), other.dtype());
                let error = Error::about(&shown, ErrorKind::DType, OP, message);
                return Err(error.with_repair(format!("{name}.to(DType::{:?})?", x.dtype())));
            }
            let ([steps, batch, input], [_, state]) = (x.sizes(), hx.sizes()) else {
                let message = "expected an input [time, batch, input] and a state [batch, state]";
                return fail(ErrorKind::Shape, message.into());
            };
            let (steps, batch, input, state) = (*steps, *batch, *input, *state);
            let width = w_ih.sizes().first().copied().unwrap_or(0);
            if width % cell.gates() != 0 {
                let message = format!("{width} rows of w_ih are not {} gates of one size", cell.gates());
                return fail(ErrorKind::Shape, message);
            }
            let hidden = width / cell.gates();
            if cx.is_some() != (cell == Cell::Lstm) {
                let message = "an LSTM, and no other cell, has the first cells `cx`";
                return fail(ErrorKind::Value, message.into());
            }
            if w_hr.is_some() && cell != Cell::Lstm {
                let message = "an LSTM, and no other cell, has the projection `w_hr`, as in PyTorch";
                return fail(ErrorKind::Value, message.into());
            }
            let expected: [(&str, Option<&NamedTensor>, &[usize]); 8] = [
                ("hx", Some(hx), &[batch, state]),
                ("w_ih", Some(w_ih), &[width, input]),
                ("w_hh", Some(w_hh), &[width, state]),
                ("cx", cx, &[batch, hidden]),
                ("b_ih", b_ih, &[width]),
                ("b_hh", b_hh, &[width]),
                ("w_hr", w_hr, &[state, hidden]),
                ("lengths", lengths, &[batch]),
            ];
            for (name, tensor, sizes) in expected {
                if let Some(tensor) = tensor.filter(|tensor| tensor.sizes() != sizes) {
                    let message = format!("expected `{name}` of sizes {sizes:?}, got {:?}", tensor.sizes());
                    return fail(ErrorKind::Shape, message);
                }
            }
            let of_batch = [("hx", Some(hx)), ("cx", cx), ("lengths", lengths)];
            for (at, (name, other)) in of_batch.iter().enumerate() {
                let Some(other) = other else { continue };
                rules::agree(OP, ["x", name], [x.input(), other.input()], [1, 0])?;
                rules::in_place(OP, name, [x.input(), other.input()], |dim| Some(dim + 1))?;
                for (first, before) in &of_batch[..at] {
                    let Some(before) = before else { continue };
                    rules::agree(OP, [first, name], [before.input(), other.input()], [0, 0])?;
                    rules::in_place(OP, name, [before.input(), other.input()], Some)?;
                }
            }
            if w_hr.is_none() && state != hidden {
                let message = format!("the state has {state} elements, and the weights are for {hidden}");
                return fail(ErrorKind::Shape, message);
            }
            Ok(Sizes { steps, batch, input, hidden, state })
        }

        /// The lengths, each within the steps.
        #[track_caller]
        fn lengths(&self, lengths: Option<&NamedTensor>) -> Result<Option<Vec<usize>>> {
            let Some(lengths) = lengths else { return Ok(None) };
            let whole = lengths.to(DType::I64)?.to_vec::<i64>()?;
            let mut found = Vec::with_capacity(whole.len());
            for (at, length) in whole.into_iter().enumerate() {
                match usize::try_from(length).ok().filter(|length| *length <= self.steps) {
                    Some(length) => found.push(length),
                    None => {
                        let message = format!(
                            "length {length} at position {at} is not between 0 and {} steps",
                            self.steps
                        );
                        return Err(Error::about(&[lengths], ErrorKind::Value, OP, message));
                    }
                }
            }
            Ok(Some(found))
        }
    }

    /// The inputs, dense and in the dtype that kernels compute in.
    struct Dense {
        x: NamedTensor,
        hx: NamedTensor,
        w_ih: NamedTensor,
        w_hh: NamedTensor,
        cx: Option<NamedTensor>,
        b_ih: Option<NamedTensor>,
        b_hh: Option<NamedTensor>,
        w_hr: Option<NamedTensor>,
    }

    impl Dense {
        #[track_caller]
        fn new(inputs: &RecurrentInputs<'_>) -> Result<Dense> {
            let dtype = inputs.x.dtype().compute();
            let dense = |x: &NamedTensor| x.unnamed().to(dtype)?.contiguous();
            let maybe = |x: Option<&NamedTensor>| x.map(dense).transpose();
            Ok(Dense {
                x: dense(inputs.x)?,
                hx: dense(inputs.hx)?,
                w_ih: dense(inputs.w_ih)?,
                w_hh: dense(inputs.w_hh)?,
                cx: maybe(inputs.cx)?,
                b_ih: maybe(inputs.b_ih)?,
                b_hh: maybe(inputs.b_hh)?,
                w_hr: maybe(inputs.w_hr)?,
            })
        }

        fn layer<'a, T: crate::dtype::Element>(
            &'a self,
            sizes: &Sizes,
            cell: Cell,
            reverse: bool,
            lengths: Option<&'a [usize]>,
        ) -> Result<RecurrentLayer<'a, T>> {
            let slice = |x: &'a Option<NamedTensor>| x.as_ref().map(|x| x.elements::<T>()).transpose();
            Ok(RecurrentLayer {
                cell,
                steps: sizes.steps,
                batch: sizes.batch,
                input: sizes.input,
                hidden: sizes.hidden,
                state: sizes.state,
                w_ih: self.w_ih.elements::<T>()?,
                w_hh: self.w_hh.elements::<T>()?,
                b_ih: slice(&self.b_ih)?,
                b_hh: slice(&self.b_hh)?,
                w_hr: slice(&self.w_hr)?,
                lengths,
                reverse,
            })
        }
    }
}

/// The gradients of [`recurrent`](NamedTensor::recurrent) in one pass, of all inputs but the lengths, for
/// those of `y`, `hn` and `cn`. `kept` are `y`, the gates and what is kept besides.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`].
#[doc(hidden)]
#[track_caller]
pub fn recurrent_backward(
    gs: [&NamedTensor; 3],
    inputs: &RecurrentInputs<'_>,
    kept: [&NamedTensor; 3],
    cell: Cell,
    reverse: bool,
) -> Result<[Option<NamedTensor>; 8]> {
    kernels::backward(gs, inputs, kept, cell, reverse)
}
