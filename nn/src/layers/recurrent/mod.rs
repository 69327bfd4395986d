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

pub use {cells::*, layers::*, packed::*, stack::*};

use super::*;
use kinds::RecurrentKind;
use namegrad_core::Cell;
