//! Recurrent layers, made of the op [`recurrent`](Tensor::recurrent), which runs one direction of one layer.
//!
//! `layers` has [`Recurrent`], which [`Rnn`], [`Lstm`] and [`Gru`] are kinds of, and `cells` their single
//! steps; `kinds` says how they differ. Both are made of `stack`, which has the parameters and runs layers
//! and directions without names. `packed` has sequences of different lengths without padding.

mod cells;
mod kinds;
mod layers;
mod packed;
mod stack;

pub use cells::{
    GruCell, GruCellBuilder, LstmCell, LstmCellBuilder, RecurrentCell, RecurrentCellBuilder, RnnCell,
    RnnCellBuilder,
};
pub use layers::{
    Gru, GruBuilder, GruOptions, Lstm, LstmBuilder, LstmOptions, LstmOutput, Recurrent, RecurrentBuilder,
    RecurrentOutput, Rnn, RnnBuilder, RnnOptions,
};
pub use packed::{
    PackedSequence, PadSequenceOptions, pack_padded_sequence, pack_sequence, pad_packed_sequence,
    pad_packed_sequence_with, pad_sequence, pad_sequence_with, unpack_sequence, unpad_sequence,
};
pub use stack::Nonlinearity;

use super::*;
use kinds::RecurrentKind;
