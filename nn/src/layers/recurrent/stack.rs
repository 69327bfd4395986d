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
    /// The dim to step along; `None` for a single step.
    pub(super) time: Option<Dim>,
    pub(super) num_layers: usize,
    pub(super) bidirectional: bool,
    /// The probability to drop an element between two layers in training.
    pub(super) dropout: f64,
    /// The name of the dim of layers and directions.
    pub(super) layer_dim: Option<Name>,
}

impl RecurrentSettings {
    /// The settings of a single step.
    pub(super) fn single(
        layer: &'static str,
        cell: Cell,
        [input, hidden]: [Named; 2],
        bias: bool,
        dtype: DType,
    ) -> RecurrentSettings {
        let (proj_size, time, num_layers, bidirectional) = (0, None, 1, false);
        let (dropout, layer_dim) = (0.0, None);
        RecurrentSettings {
            layer,
            cell,
            input,
            hidden,
            bias,
            dtype,
            proj_size,
            time,
            num_layers,
            bidirectional,
            dropout,
            layer_dim,
        }
    }

    /// The size of a state.
    fn state(&self) -> usize {
        if self.proj_size > 0 { self.proj_size } else { self.hidden.1 }
    }

    /// `embed=64 -> hidden=128`
    fn directions(&self) -> usize {
        if self.bidirectional { 2 } else { 1 }
    }

    /// `embed=64 -> hidden=128 along time`, and of a single step `embed=64 -> hidden=128`.
    fn dims(&self) -> String {
        let along = match &self.time {
            Some(Dim::Name(name)) => format!(" along {name}"),
            Some(Dim::Index(at)) => format!(" along dim {at}"),
            Some(Dim::Unknown(text)) => format!(" along {text}"),
            None => String::new(),
        };
        format!("{} -> {}{along}", dim_text(self.input), dim_text(self.hidden))
    }

    #[cold]
    #[track_caller]
    fn refuse(&self, message: String) -> Error {
        Error::new(ErrorKind::Value, self.layer, message)
    }

    /// The settings, checked, with the dim of layers that the user named, or its default.
    #[track_caller]
    fn checked(mut self, layer_dim: Option<NewName>) -> Result<RecurrentSettings> {
        self.layer_dim = match (layer_dim, self.hidden.0) {
            (Some(name), _) => name.name().map_err(|error| error.of(self.layer))?,
            (None, Some(_)) => Some(Name::new("layer")?),
            (None, None) => None,
        };
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
        if self.num_layers == 0 {
            return Err(self.refuse("the number of layers must be greater than zero".into()));
        }
        if !(0.0..=1.0).contains(&self.dropout) {
            let message = format!("dropout probability has to be between 0 and 1, but got {}", self.dropout);
            return Err(self.refuse(message));
        }
        if let Some(Dim::Unknown(text)) = &self.time {
            self.time = Some(Dim::Name(Name::new(text).map_err(|error| error.of(self.layer))?));
        }
        if let (Some(Dim::Name(time)), Some(input)) = (&self.time, self.input.0)
            && *time == input
        {
            let message = format!("'{time}' cannot be both the dim of time and that of the features");
            return Err(Error::new(ErrorKind::DuplicateName, self.layer, message));
        }
        Ok(self)
    }
}

/// The parameters of one direction of one layer.
#[derive(Clone, Debug)]
struct Weights {
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
    fn new(settings: &RecurrentSettings, input: Named, suffix: String) -> Result<Weights> {
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

    /// The results of the op: the states after all steps, the last state and, for an LSTM, the last cells.
    fn run(
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

/// The body of all recurrent layers and of their single steps.
#[derive(Clone, Debug)]
pub(super) struct Stack {
    settings: RecurrentSettings,
    /// Layer by layer, forward and then reverse.
    weights: Vec<Weights>,
    training: Training,
    path: ModulePath,
}

impl Stack {
    #[track_caller]
    pub(super) fn new(settings: RecurrentSettings, layer_dim: Option<NewName>) -> Result<Stack> {
        let settings = settings.checked(layer_dim)?;
        let (hidden, directions) = (settings.hidden.0, settings.directions());
        let count = settings.num_layers.saturating_mul(directions);
        let weights = repeated(settings.layer, count, &mut |at| {
            let layer = at / directions;
            let input = match layer {
                0 => settings.input,
                _ => (hidden, settings.state().saturating_mul(directions)),
            };
            let reverse = if at % directions == 1 { "_reverse" } else { "" };
            let suffix = match settings.time {
                Some(_) => format!("_l{layer}{reverse}"),
                None => String::new(),
            };
            Weights::new(&settings, input, suffix)
        })?;
        Ok(Stack { settings, weights, training: Training::new(), path: ModulePath::new() })
    }

    /// The description of the layer in the summary.
    pub(super) fn text(&self) -> String {
        let RecurrentSettings { layer, cell, num_layers, bidirectional, proj_size, dropout, .. } =
            self.settings;
        let mut text = format!("{layer}({}", self.settings.dims());
        if cell == Cell::Relu {
            text += ", relu";
        }
        if num_layers > 1 {
            text += &format!(", layers={num_layers}");
        }
        if bidirectional {
            text += ", bidirectional";
        }
        if proj_size > 0 {
            text += &format!(", proj_size={proj_size}");
        }
        if dropout > 0.0 {
            text += &format!(", dropout={dropout}");
        }
        text + ")"
    }

    /// The output for `x`, and the last states and cells. It steps along `time` if that is given, otherwise
    /// along the dim of the layer. Of a single step, the output is the state.
    #[track_caller]
    pub(super) fn forward(
        &self,
        x: &Tensor,
        [h0, c0]: [Option<&Tensor>; 2],
        lengths: Option<&Tensor>,
        time: Option<usize>,
    ) -> Result<[Tensor; 3]> {
        self.path.run(self.settings.layer, &[x], &|running| {
            let settings = &self.settings;
            let of = Finder { layer: settings.layer, path: &self.path, dims: &|| settings.dims() };
            let (name, hidden) = settings.hidden;
            let known = time.map(|time| Dim::Index(time as isize));
            let places = Steps::find(of, x, settings.input, known.as_ref().or(settings.time.as_ref()))?;
            places.check_dtype(self.weights[0].w_ih.dtype())?;
            let layers = settings.time.as_ref().map(|_| (settings.layer_dim, self.weights.len()));
            let of_output = places.like_input((name, settings.state() * settings.directions()))?;
            let of_h = places.like_state(layers, (name, settings.state()))?;
            let of_c = places.like_state(layers, (name, hidden))?;
            let lengths = lengths.map(|lengths| places.lengths(lengths)).transpose()?;
            let given = |what: &str, state: Option<&Tensor>, of_state: &Flattening| -> Result<Vec<Tensor>> {
                match (state, layers) {
                    (None, _) => Ok(Vec::new()),
                    (Some(state), Some(_)) => places.state(&format!("{what}0"), state, of_state)?.unbind(0),
                    (Some(state), None) => Ok(vec![places.state(what, state, of_state)?]),
                }
            };
            let first = [given("h", h0, &of_h)?, given("c", c0, &of_c)?];
            let mut flat = of_output.flat(x)?;
            if layers.is_none() {
                flat = flat.unsqueeze(0)?;
            }
            let [y, hns, cns] = self.run(flat, first, lengths.as_ref())?;
            let last = |mut states: Vec<Tensor>, of_state: &Flattening| match layers {
                Some(_) => of_state.restore(&Tensor::stack(&states, 0)?),
                None => of_state.restore(&states.remove(0)),
            };
            let (hn, is_lstm) = (last(hns, &of_h)?, settings.cell == Cell::Lstm);
            let cn = if is_lstm { last(cns, &of_c)? } else { hn.clone() };
            let output = if layers.is_some() { of_output.restore(&y[0])? } else { hn.clone() };
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

    /// The layers for `x`, `[time, batch, features]`, from states `[batch, hidden]` for each layer or none: the
    /// output, and the last states and cells of each layer.
    fn run(&self, x: Tensor, first: [Vec<Tensor>; 2], lengths: Option<&Tensor>) -> Result<[Vec<Tensor>; 3]> {
        let RecurrentSettings { cell, hidden, num_layers, dropout, .. } = self.settings;
        let (directions, batch) = (self.settings.directions(), x.sizes()[1]);
        let options = TensorOptions::new().dtype(x.dtype());
        let zeros = [options.zeros([batch, self.settings.state()])?, options.zeros([batch, hidden.1])?];
        let (mut y, mut hns, mut cns) = (x, Vec::new(), Vec::new());
        for layer in 0..num_layers {
            if layer > 0 {
                let training = DropoutOptions { training: self.training.get() };
                y = F::dropout_with(&y, dropout, training)?;
            }
            let mut parts = Vec::with_capacity(directions);
            for direction in 0..directions {
                let at = layer * directions + direction;
                let state = [0, 1].map(|k| first[k].get(at).unwrap_or(&zeros[k]).clone());
                let [part, hn, cn] = self.weights[at].run(cell, &y, state, lengths, direction == 1)?;
                parts.push(part);
                hns.push(hn);
                cns.push(cn);
            }
            y = if directions == 1 { parts.remove(0) } else { Tensor::cat(&parts, 2)? };
        }
        Ok([vec![y], hns, cns])
    }
}

impl Field for Stack {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.weights.iter().for_each(|weights| weights.visit(visitor));
        visitor.fields(&[("training", &self.training), ("path", &self.path)]);
    }
}
