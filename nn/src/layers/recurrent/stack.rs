//! Layers and directions on top of each other, and a single step. The dims are in the order of the op.

use super::packed::PackedSequence;
use super::*;
use crate::dims::steps::{Flattening, Steps};
use crate::functional::options::DropoutOptions;
use namegrad_core::Cell;
use namegrad_core::args::NewName;
use namegrad_core::options::RecurrentOptions;
use parameters::unnamed;

/// The function that a [`Rnn`](super::Rnn) or a [`RnnCell`](super::RnnCell) applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nonlinearity {
    /// `tanh(x)`
    #[default]
    Tanh,
    /// `max(x, 0)`
    Relu,
}

impl Nonlinearity {
    pub(super) fn cell(self) -> Cell {
        match self {
            Nonlinearity::Tanh => Cell::Tanh,
            Nonlinearity::Relu => Cell::Relu,
        }
    }
}

/// The settings of a layer or a cell.
#[derive(Clone, Debug)]
pub(super) struct RecurrentSettings {
    pub(super) layer: &'static str,
    pub(super) cell: Cell,
    pub(super) input: Named,
    pub(super) hidden: Named,
    pub(super) bias: bool,
    pub(super) dtype: DType,
    /// The size of a state, or 0 for `hidden`.
    pub(super) proj_size: usize,
}

impl RecurrentSettings {
    /// The size of a state.
    pub(super) fn state(&self) -> usize {
        if self.proj_size > 0 { self.proj_size } else { self.hidden.1 }
    }

    /// `embed=64 -> hidden=128`
    pub(super) fn dims(&self) -> String {
        format!("{} -> {}", dim_text(self.input), dim_text(self.hidden))
    }

    /// An error of `build`.
    #[cold]
    #[track_caller]
    pub(super) fn refuse(&self, message: String) -> Error {
        Error::new(ErrorKind::Value, self.layer, message)
    }

    #[track_caller]
    pub(super) fn check(&self) -> Result<()> {
        check_dtype(self.layer, self.dtype)?;
        if self.hidden.1 == 0 {
            return Err(self.refuse("the hidden size must be greater than zero".into()));
        }
        if self.proj_size >= self.hidden.1 {
            let (proj, hidden) = (self.proj_size, self.hidden.1);
            let message =
                format!("proj_size has to be smaller than the hidden size, got {proj} and {hidden}");
            return Err(self.refuse(message));
        }
        Ok(())
    }
}

/// The parameters of one direction of one layer.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    /// The end of their names, such as `_l0_reverse`.
    suffix: String,
    w_ih: Parameter,
    w_hh: Parameter,
    biases: Option<[Parameter; 2]>,
    w_hr: Option<Parameter>,
}

impl Weights {
    /// Parameters for these features, uniform in ±1/√hidden.
    #[track_caller]
    pub(super) fn new(settings: &RecurrentSettings, input: Named, suffix: String) -> Result<Weights> {
        let (hidden, state) = (settings.hidden, settings.state());
        let gates = hidden.0.map(|_| Name::new("gates")).transpose()?;
        let gates = (gates, settings.cell.gates().saturating_mul(hidden.1));
        let of_input = beside(input, gates.0)?;
        let of_state = beside((hidden.0, state), gates.0)?;
        let bound = 1.0 / (hidden.1 as f64).sqrt();
        let biases = match settings.bias {
            true => Some([
                uniform(settings.layer, &[gates], bound, settings.dtype)?,
                uniform(settings.layer, &[gates], bound, settings.dtype)?,
            ]),
            false => None,
        };
        let w_hr = match settings.proj_size {
            0 => None,
            size => Some(uniform(
                settings.layer,
                &[(hidden.0, size), beside(hidden, hidden.0)?],
                bound,
                settings.dtype,
            )?),
        };
        let w_ih = uniform(settings.layer, &[gates, of_input], bound, settings.dtype)?;
        Ok(Weights {
            suffix,
            w_ih,
            w_hh: uniform(settings.layer, &[gates, of_state], bound, settings.dtype)?,
            biases,
            w_hr,
        })
    }

    pub(super) fn dtype(&self) -> DType {
        self.w_ih.dtype()
    }

    /// The results of the op: the states after all steps, the last state and, for an LSTM, the last cells.
    pub(super) fn run(
        &self,
        cell: Cell,
        x: &Tensor,
        [h0, c0]: [Tensor; 2],
        lengths: Option<&Tensor>,
        reverse: bool,
    ) -> Result<[Tensor; 3]> {
        let (w_ih, w_hh) = (self.w_ih.try_tensor()?.rename(None)?, self.w_hh.try_tensor()?.rename(None)?);
        let (b_ih, b_hh) = self.biases.as_ref().map(|[b_ih, b_hh]| (b_ih, b_hh)).unzip();
        let (b_ih, b_hh, w_hr) = (unnamed(b_ih)?, unnamed(b_hh)?, unnamed(self.w_hr.as_ref())?);
        let options = RecurrentOptions {
            cx: (cell == Cell::Lstm).then_some(Cow::Borrowed(&c0)),
            b_ih: b_ih.as_ref().map(Cow::Borrowed),
            b_hh: b_hh.as_ref().map(Cow::Borrowed),
            w_hr: w_hr.as_ref().map(Cow::Borrowed),
            lengths: lengths.map(Cow::Borrowed),
            reverse,
        };
        let (y, hn, cn) = x.recurrent_with(&h0, &w_ih, &w_hh, cell, options)?;
        Ok([y, hn, cn])
    }
}

impl Field for Weights {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        let suffix = &self.suffix;
        visitor.field(&format!("weight_ih{suffix}"), &self.w_ih);
        visitor.field(&format!("weight_hh{suffix}"), &self.w_hh);
        if let Some([b_ih, b_hh]) = &self.biases {
            visitor.field(&format!("bias_ih{suffix}"), b_ih);
            visitor.field(&format!("bias_hh{suffix}"), b_hh);
        }
        if let Some(w_hr) = &self.w_hr {
            visitor.field(&format!("weight_hr{suffix}"), w_hr);
        }
    }
}

/// The body of [`Rnn`](super::Rnn), [`Lstm`](super::Lstm) and [`Gru`](super::Gru).
#[derive(Clone, Debug)]
pub(super) struct Stack {
    settings: RecurrentSettings,
    shape: Layers,
    /// Layer by layer, forward and then reverse.
    weights: Vec<Weights>,
    training: Training,
    path: ModulePath,
}

/// The numbers of layers and directions, and the dim along which they step.
#[derive(Clone, Debug)]
pub(super) struct Layers {
    pub(super) time: Dim,
    pub(super) layers: usize,
    pub(super) bidirectional: bool,
    /// The probability to drop an element between two layers in training.
    pub(super) dropout: f64,
    /// The name of the dim of layers and directions.
    pub(super) layer_dim: Option<Name>,
}

impl Stack {
    #[track_caller]
    pub(super) fn new(
        settings: RecurrentSettings,
        mut shape: Layers,
        layer_dim: Option<NewName>,
    ) -> Result<Stack> {
        shape.layer_dim = match (layer_dim, settings.hidden.0) {
            (Some(name), _) => name.name().map_err(|error| error.of(settings.layer))?,
            (None, Some(_)) => Some(Name::new("layer")?),
            (None, None) => None,
        };
        settings.check()?;
        if shape.layers == 0 {
            return Err(settings.refuse("the number of layers must be greater than zero".into()));
        }
        if !(0.0..=1.0).contains(&shape.dropout) {
            let message = format!("dropout probability has to be between 0 and 1, but got {}", shape.dropout);
            return Err(settings.refuse(message));
        }
        if let Dim::Unknown(text) = &shape.time {
            shape.time = Dim::Name(Name::new(text).map_err(|error| error.of(settings.layer))?);
        }
        if let (Dim::Name(time), Some(input)) = (&shape.time, settings.input.0)
            && *time == input
        {
            let message = format!("'{time}' cannot be both the dim of time and that of the features");
            return Err(Error::new(ErrorKind::DuplicateName, settings.layer, message));
        }
        let directions = if shape.bidirectional { 2 } else { 1 };
        let weights = repeated(settings.layer, shape.layers.saturating_mul(directions), &mut |at| {
            let layer = at / directions;
            let input = match layer {
                0 => settings.input,
                _ => (settings.hidden.0, settings.state().saturating_mul(directions)),
            };
            let reverse = if at % directions == 1 { "_reverse" } else { "" };
            Weights::new(&settings, input, format!("_l{layer}{reverse}"))
        })?;
        Ok(Stack { settings, shape, weights, training: Training::new(), path: ModulePath::new() })
    }

    fn directions(&self) -> usize {
        if self.shape.bidirectional { 2 } else { 1 }
    }

    /// `embed=64 -> hidden=128 along time`
    fn dims(&self) -> String {
        let time = match &self.shape.time {
            Dim::Name(name) => name.to_string(),
            Dim::Index(at) => format!("dim {at}"),
            Dim::Unknown(text) => text.clone(),
        };
        format!("{} along {time}", self.settings.dims())
    }

    /// The description of the layer in the summary.
    pub(super) fn text(&self) -> String {
        let Layers { layers, bidirectional, dropout, .. } = self.shape;
        let mut text = format!("{}({}", self.settings.layer, self.dims());
        if self.settings.cell == Cell::Relu {
            text += ", relu";
        }
        if layers > 1 {
            text += &format!(", layers={layers}");
        }
        if bidirectional {
            text += ", bidirectional";
        }
        if self.settings.proj_size > 0 {
            text += &format!(", proj_size={}", self.settings.proj_size);
        }
        if dropout > 0.0 {
            text += &format!(", dropout={dropout}");
        }
        text + ")"
    }

    /// The output for `x`, and the last states and cells. It steps along `time` if that is given, otherwise
    /// along the dim of the layer.
    #[track_caller]
    pub(super) fn forward(
        &self,
        x: &Tensor,
        [h0, c0]: [Option<&Tensor>; 2],
        lengths: Option<&Tensor>,
        time: Option<usize>,
    ) -> Result<[Tensor; 3]> {
        self.path.run(self.settings.layer, &[x], |running| {
            let of = Finder { layer: self.settings.layer, path: &self.path, dims: &|| self.dims() };
            let (name, hidden) = (self.settings.hidden.0, self.settings.hidden.1);
            let known = time.map(|time| Dim::Index(time as isize));
            let places =
                Steps::find(of, x, self.settings.input, Some(known.as_ref().unwrap_or(&self.shape.time)))?;
            places.check_dtype(self.weights[0].dtype())?;
            let layers = (self.shape.layer_dim, self.weights.len());
            let of_output = places.like_input((name, self.settings.state() * self.directions()))?;
            let of_h = places.like_state(Some(layers), (name, self.settings.state()))?;
            let of_c = places.like_state(Some(layers), (name, hidden))?;
            let lengths = lengths.map(|lengths| places.lengths(lengths)).transpose()?;
            let given = |what, state: Option<&Tensor>, of_state: &Flattening| {
                state.map(|state| places.state(what, state, of_state)).transpose()
            };
            let first = [given("h0", h0, &of_h)?, given("c0", c0, &of_c)?];
            let flat = of_output.flat(x)?;
            let [y, hn, cn] = self.run(flat, first, lengths.as_ref())?;
            let cn = if self.settings.cell == Cell::Lstm { of_c.restore(&cn)? } else { cn };
            let (output, hn) = (of_output.restore(&y)?, of_h.restore(&hn)?);
            running.gives(&output);
            Ok([output, hn, cn])
        })
    }

    /// The results for sequences of different lengths, with the output first.
    #[track_caller]
    pub(super) fn forward_packed(
        &self,
        x: &PackedSequence,
        states: [Option<&Tensor>; 2],
        lengths: Option<&Tensor>,
    ) -> Result<(PackedSequence, Tensor, Tensor)> {
        if lengths.is_some() {
            let message = "packed sequences have lengths: leave those of the options out";
            return Err(Error::new(ErrorKind::Value, self.settings.layer, message));
        }
        let (padded, lengths, time) = x.padded(0.0, None)?;
        let [output, hn, cn] = self.forward(&padded, states, Some(&lengths), Some(time))?;
        Ok((x.repacked(&output)?, hn, cn))
    }

    /// The layers for `x`, `[time, batch, features]`, and first states `[layers, batch, hidden]`.
    fn run(&self, x: Tensor, first: [Option<Tensor>; 2], lengths: Option<&Tensor>) -> Result<[Tensor; 3]> {
        let (cell, directions, batch) = (self.settings.cell, self.directions(), x.sizes()[1]);
        let options = TensorOptions::new().dtype(x.dtype());
        let zeros =
            [options.zeros([batch, self.settings.state()])?, options.zeros([batch, self.settings.hidden.1])?];
        let (mut y, mut hns, mut cns) = (x, Vec::new(), Vec::new());
        for layer in 0..self.shape.layers {
            if layer > 0 {
                let training = DropoutOptions { training: self.training.get() };
                y = F::dropout_with(&y, self.shape.dropout, training)?;
            }
            let mut parts = Vec::with_capacity(directions);
            for direction in 0..directions {
                let at = layer * directions + direction;
                let mut state = zeros.clone();
                for (state, first) in state.iter_mut().zip(&first) {
                    if let Some(first) = first {
                        *state = first.select(0, at as isize)?;
                    }
                }
                let [part, hn, cn] = self.weights[at].run(cell, &y, state, lengths, direction == 1)?;
                parts.push(part);
                hns.push(hn);
                cns.push(cn);
            }
            y = if directions == 1 { parts.remove(0) } else { Tensor::cat(&parts, 2)? };
        }
        let cn = if cell == Cell::Lstm { Tensor::stack(&cns, 0)? } else { cns.remove(0) };
        Ok([y, Tensor::stack(&hns, 0)?, cn])
    }
}

impl Field for Stack {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.weights.iter().for_each(|weights| weights.visit(visitor));
        visitor.field("training", &self.training);
        visitor.field("path", &self.path);
    }
}

/// The body of the cells: one step of one layer.
#[derive(Clone, Debug)]
pub(super) struct SingleStep {
    settings: RecurrentSettings,
    weights: Weights,
    path: ModulePath,
}

impl SingleStep {
    #[track_caller]
    pub(super) fn new(settings: RecurrentSettings) -> Result<SingleStep> {
        settings.check()?;
        let weights = Weights::new(&settings, settings.input, String::new())?;
        Ok(SingleStep { settings, weights, path: ModulePath::new() })
    }

    /// The description of the cell in the summary.
    pub(super) fn text(&self) -> String {
        let relu = if self.settings.cell == Cell::Relu { ", relu" } else { "" };
        format!("{}({}{relu})", self.settings.layer, self.settings.dims())
    }

    /// The next state, and for an LSTM the next cells. States that are not given are zeros.
    #[track_caller]
    pub(super) fn forward(&self, x: &Tensor, [h, c]: [Option<&Tensor>; 2]) -> Result<[Tensor; 2]> {
        self.path.run(self.settings.layer, &[x], |running| {
            let of = Finder { layer: self.settings.layer, path: &self.path, dims: &|| self.settings.dims() };
            let hidden = self.settings.hidden;
            let places = Steps::find(of, x, self.settings.input, None)?;
            places.check_dtype(self.weights.dtype())?;
            let (of_input, way) = (places.like_input(self.settings.input)?, places.like_state(None, hidden)?);
            let flat = of_input.flat(x)?.unsqueeze(0)?;
            let zeros = TensorOptions::new().dtype(x.dtype()).zeros([flat.sizes()[1], hidden.1])?;
            let h = h.map(|h| places.state("h", h, &way)).transpose()?.unwrap_or_else(|| zeros.clone());
            let c = c.map(|c| places.state("c", c, &way)).transpose()?.unwrap_or(zeros);
            let [_, hn, cn] = self.weights.run(self.settings.cell, &flat, [h, c], None, false)?;
            let cn = if self.settings.cell == Cell::Lstm { way.restore(&cn)? } else { cn };
            let hn = way.restore(&hn)?;
            running.gives(&hn);
            Ok([hn, cn])
        })
    }
}

impl Field for SingleStep {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.weights.visit(visitor);
        visitor.field("path", &self.path);
    }
}
