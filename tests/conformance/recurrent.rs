//! Recurrent layers and cells, whose parameters are inputs of a case.

use crate::call::{Answer, Call};
use crate::ops::table;
use namegrad::nn::{GruCell, LstmCell, Nonlinearity, RnnCell};
use namegrad::prelude::*;

table! {
    /// Recurrent layers.
    pub(crate) fn recurrent;
    "nn.RNN" => |c| {
        let builder = Rnn::builder(c.int("input_size")?, c.int("hidden_size")?, time(c)).dropout(c.float_or("dropout", 0.0)?);
        let builder = builder.num_layers(layers(c)?).bidirectional(c.flag("bidirectional", false)).bias(c.flag("bias", true));
        let layer = builder.nonlinearity(nonlinearity(c)).dtype(c.x(0)?.dtype()).build()?;
        let states = states(c)?;
        load(c, &layer, 1 + states)?;
        let mut options = RnnOptions::new();
        options.h0 = if states > 0 { Some(c.x(1)?.clone()) } else { None };
        let RecurrentOutput { output, hn } = layer.forward_with(c.x(0)?, options)?;
        vec![output, hn]
    };
    "nn.GRU" => |c| {
        let builder = Gru::builder(c.int("input_size")?, c.int("hidden_size")?, time(c)).dropout(c.float_or("dropout", 0.0)?);
        let builder = builder.num_layers(layers(c)?).bidirectional(c.flag("bidirectional", false)).bias(c.flag("bias", true));
        let layer = builder.dtype(c.x(0)?.dtype()).build()?;
        let states = states(c)?;
        load(c, &layer, 1 + states)?;
        let mut options = GruOptions::new();
        options.h0 = if states > 0 { Some(c.x(1)?.clone()) } else { None };
        let RecurrentOutput { output, hn } = layer.forward_with(c.x(0)?, options)?;
        vec![output, hn]
    };
    "nn.LSTM" => |c| {
        let builder = Lstm::builder(c.int("input_size")?, c.int("hidden_size")?, time(c)).dropout(c.float_or("dropout", 0.0)?);
        let builder = builder.num_layers(layers(c)?).bidirectional(c.flag("bidirectional", false)).bias(c.flag("bias", true));
        let layer = builder.proj_size(c.int_or("proj_size", 0)? as usize).dtype(c.x(0)?.dtype()).build()?;
        let states = states(c)?;
        load(c, &layer, 1 + states)?;
        let mut options = LstmOptions::new();
        if states > 0 {
            options = options.h0(c.x(1)?).c0(c.x(2)?);
        }
        let LstmOutput { output, hn, cn } = layer.forward_with(c.x(0)?, options)?;
        vec![output, hn, cn]
    };
    "nn.RNNCell" => |c| {
        let (input, hidden, bias) = sizes(c, 2)?;
        let builder = RnnCell::builder(input, hidden).nonlinearity(nonlinearity(c)).bias(bias);
        let cell = builder.dtype(c.x(0)?.dtype()).build()?;
        load(c, &cell, 2)?;
        cell.forward(c.x(0)?, c.x(1)?)?
    };
    "nn.GRUCell" => |c| {
        let (input, hidden, bias) = sizes(c, 2)?;
        let cell = GruCell::builder(input, hidden).bias(bias).dtype(c.x(0)?.dtype()).build()?;
        load(c, &cell, 2)?;
        cell.forward(c.x(0)?, c.x(1)?)?
    };
    "nn.LSTMCell" => |c| {
        let (input, hidden, bias) = sizes(c, 3)?;
        let cell = LstmCell::builder(input, hidden).bias(bias).dtype(c.x(0)?.dtype()).build()?;
        load(c, &cell, 3)?;
        let (h, c) = cell.forward(c.x(0)?, (c.x(1)?, c.x(2)?))?;
        vec![h, c]
    };
}

/// The dim of time.
fn time(c: &Call<'_>) -> isize {
    if c.flag("batch_first", false) { 1 } else { 0 }
}

fn layers(c: &Call<'_>) -> Answer<usize> {
    Ok(c.int_or("num_layers", 1)? as usize)
}

fn nonlinearity(c: &Call<'_>) -> Nonlinearity {
    if c.text("nonlinearity") == Some("relu") { Nonlinearity::Relu } else { Nonlinearity::Tanh }
}

/// The number of first states among the inputs.
fn states(c: &Call<'_>) -> Answer<usize> {
    Ok(c.count().saturating_sub(1 + c.int("n_weights")? as usize))
}

/// The sizes of input and state of a cell, and whether it has biases. Its weights start at `first`.
fn sizes(c: &Call<'_>, first: usize) -> Answer<(usize, usize, bool)> {
    let (input, state) = (c.x(first)?.size(1)?, c.x(first + 1)?.size(1)?);
    Ok((input, state, c.count() > first + 2))
}

/// Sets the parameters to the inputs from `first`, whose gradients are theirs from now on.
fn load(c: &mut Call<'_>, layer: &dyn Module, first: usize) -> Answer<()> {
    for (at, (_, parameter)) in layer.named_parameters().into_iter().enumerate() {
        parameter.set(c.x(first + at)?)?;
        c.parameters.push((first + at, parameter.tensor()));
    }
    Ok(())
}
