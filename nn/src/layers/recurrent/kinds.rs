//! [`RecurrentKind`]: how [`Rnn`](super::Rnn), [`Lstm`](super::Lstm) and [`Gru`](super::Gru) differ.

use super::*;

/// A kind of recurrent layer, as the type of its options.
#[doc(hidden)]
pub trait RecurrentKind: Default {
    /// The names of the layer and of a single step.
    const NAMES: [&'static str; 2];
    const CELL: Cell;

    /// The results of the layer.
    type Output<S>;
    /// The state of a single step, as an argument.
    type Before<'a>;
    /// The state after a single step.
    type After;

    /// The first states and cells, and the lengths.
    fn given(&self) -> ([Option<&Tensor>; 2], Option<&Tensor>);
    fn output<S>(output: S, hn: Tensor, cn: Tensor) -> Self::Output<S>;
    fn before<'a>(state: Option<Self::Before<'a>>) -> [Option<&'a Tensor>; 2];
    fn after(state: [Tensor; 2]) -> Self::After;
}

impl<const GATED: bool> RecurrentKind for StateOptions<GATED> {
    const NAMES: [&'static str; 2] = if GATED { ["Gru", "GruCell"] } else { ["Rnn", "RnnCell"] };
    const CELL: Cell = if GATED { Cell::Gru } else { Cell::Tanh };
    type Output<S> = RecurrentOutput<S>;
    type Before<'a> = &'a Tensor;
    type After = Tensor;

    fn given(&self) -> ([Option<&Tensor>; 2], Option<&Tensor>) {
        ([self.h0.as_ref(), None], self.lengths.as_ref())
    }

    fn output<S>(output: S, hn: Tensor, _: Tensor) -> RecurrentOutput<S> {
        RecurrentOutput { output, hn }
    }

    fn before<'a>(state: Option<Self::Before<'a>>) -> [Option<&'a Tensor>; 2] {
        [state, None]
    }

    fn after([h, _]: [Tensor; 2]) -> Tensor {
        h
    }
}

impl RecurrentKind for LstmOptions {
    const NAMES: [&'static str; 2] = ["Lstm", "LstmCell"];
    const CELL: Cell = Cell::Lstm;
    type Output<S> = LstmOutput<S>;
    type Before<'a> = (&'a Tensor, &'a Tensor);
    type After = (Tensor, Tensor);

    fn given(&self) -> ([Option<&Tensor>; 2], Option<&Tensor>) {
        ([self.h0.as_ref(), self.c0.as_ref()], self.lengths.as_ref())
    }

    fn output<S>(output: S, hn: Tensor, cn: Tensor) -> LstmOutput<S> {
        LstmOutput { output, hn, cn }
    }

    fn before<'a>(state: Option<Self::Before<'a>>) -> [Option<&'a Tensor>; 2] {
        state.map_or([None, None], |(h, c)| [Some(h), Some(c)])
    }

    fn after(state: [Tensor; 2]) -> (Tensor, Tensor) {
        state.into()
    }
}
