//! Layers and directions on top of each other, and a single step. The dims are in the order of the op.

use super::*;
use crate::dims::steps::{Flattening, Steps};
use crate::functional::dropout::probability;
use namegrad_core::options::RecurrentOptions;

/// The function that a [`Rnn`](super::Rnn) or a [`RnnCell`](super::RnnCell) applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nonlinearity {
    /// `tanh(x)`
    #[default]
    Tanh,
    /// `max(x, 0)`
    Relu,
}

impl RecurrentConfig {
    fn cell(&self) -> Cell {
        match (self.cell, self.nonlinearity) {
            (Cell::Tanh, Nonlinearity::Relu) => Cell::Relu,
            (cell, _) => cell,
        }
    }

    fn state(&self) -> usize {
        if self.proj_size > 0 { self.proj_size } else { self.hidden.1 }
    }

    /// `embed=64 -> hidden=128`
    fn directions(&self) -> usize {
        if self.bidirectional { 2 } else { 1 }
    }

    /// `embed=64 -> hidden=128 along time`, and of a single step `embed=64 -> hidden=128`.
    fn dims(&self) -> String {
        let along = match self.time {
            _ if self.is_step => String::new(),
            Seq::Name(name) => format!(" along {name}"),
            Seq::Index(at) => format!(" along dim {at}"),
        };
        format!("{} -> {}{along}", dim_text(self.input), dim_text(self.hidden))
    }

    /// Checks the settings, and returns the name of the dim of layers, which is the user's or the default.
    fn checked(&self) -> Result<Option<Name>> {
        let (hidden, proj) = (self.hidden.1, self.proj_size);
        let layer_dim = match (&self.layer_dim, self.hidden.0) {
            (Some(name), _) => name.clone().name()?,
            (None, Some(_)) if !self.is_step => Some(Name::new("layer")?),
            _ => None,
        };
        (hidden > 0).or_value("the hidden size must be greater than zero")?;
        (proj < hidden).or_value(format_args!(
            "proj_size has to be smaller than the hidden size, got {proj} and {hidden}"
        ))?;
        (self.num_layers > 0).or_value("the number of layers must be greater than zero")?;
        probability(self.layer, "dropout", self.dropout)?;
        if let Seq::Name(time) = self.time
            && self.input.0 == Some(time)
        {
            let message = format_args!("'{time}' cannot be both the dim of time and that of the features");
            return Err(fault(ErrorKind::DuplicateName, message));
        }
        Ok(layer_dim)
    }
}

/// The parameters of one direction of one layer.
#[derive(Clone, Debug)]
struct Weights {
    /// The end of their names, such as `_l0_reverse`.
    suffix: String,
    w_ih: Parameter,
    w_hh: Parameter,
    b_ih: Option<Parameter>,
    b_hh: Option<Parameter>,
    w_hr: Option<Parameter>,
}

impl Weights {
    /// Parameters for these features, uniform in ±1/√hidden.
    fn new(settings: &RecurrentConfig, input: Named, suffix: String) -> Result<Weights> {
        let (RecurrentConfig { layer, hidden, bias, dtype, .. }, state) = (settings, settings.state());
        let gates = hidden.0.map(|_| Name::new("gates")).transpose()?;
        let gates = (gates, settings.cell.gates().saturating_mul(hidden.1));
        let of_input = beside(input, &[gates.0], "_in")?;
        let of_state = beside((hidden.0, state), &[gates.0], "_in")?;
        let bound = 1.0 / (hidden.1 as f64).sqrt();
        let drawn = |dims: &[Named]| uniform(layer, dims, bound, *dtype);
        Ok(Weights {
            suffix,
            // In the order in which they are drawn.
            b_ih: if *bias { Some(drawn(&[gates])?) } else { None },
            b_hh: if *bias { Some(drawn(&[gates])?) } else { None },
            w_hr: match settings.proj_size {
                0 => None,
                size => Some(drawn(&[(hidden.0, size), beside(*hidden, &[hidden.0], "_in")?])?),
            },
            w_ih: drawn(&[gates, of_input])?,
            w_hh: drawn(&[gates, of_state])?,
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
        let plain = |parameter: &Option<Parameter>| unnamed(parameter.as_ref()).map(|x| x.map(Cow::Owned));
        let (b_ih, b_hh, w_hr) = (plain(&self.b_ih)?, plain(&self.b_hh)?, plain(&self.w_hr)?);
        let cx = (cell == Cell::Lstm).then_some(Cow::Borrowed(&c0));
        let lengths = lengths.map(Cow::Borrowed);
        let options = RecurrentOptions { cx, b_ih, b_hh, w_hr, lengths, reverse };
        let (y, hn, cn) = x.recurrent_with(&h0, &w_ih, &w_hh, cell, options)?;
        Ok([y, hn, cn])
    }
}

impl Field for Weights {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        let names = ["weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr"];
        let parameters: [&dyn Field; 5] = [&self.w_ih, &self.w_hh, &self.b_ih, &self.b_hh, &self.w_hr];
        for (name, parameter) in names.into_iter().zip(parameters) {
            visitor.field(&format!("{name}{}", self.suffix), parameter);
        }
    }
}

/// The body of all recurrent layers and of their single steps.
#[derive(Clone, Debug)]
pub(super) struct Stack {
    settings: RecurrentConfig,
    /// The name of the dim of layers and directions in states.
    layer_dim: Option<Name>,
    /// Layer by layer, forward and then reverse.
    weights: Vec<Weights>,
    training: Training,
    path: ModulePath,
}

impl Stack {
    pub(super) fn new(settings: RecurrentConfig) -> Result<Stack> {
        let layer_dim = settings.checked()?;
        let directions = settings.directions();
        let above = (settings.hidden.0, settings.state().saturating_mul(directions));
        let count = settings.num_layers.saturating_mul(directions);
        let weights = repeated(settings.layer, count, &mut |at| {
            let layer = at / directions;
            let input = if layer == 0 { settings.input } else { above };
            let reverse = if at % directions == 1 { "_reverse" } else { "" };
            let suffix = if settings.is_step { String::new() } else { format!("_l{layer}{reverse}") };
            Weights::new(&settings, input, suffix)
        })?;
        Ok(Stack { settings, layer_dim, weights, training: Training::new(), path: ModulePath::new() })
    }

    /// The description of the layer in the summary.
    pub(super) fn text(&self) -> String {
        let RecurrentConfig { layer, nonlinearity, num_layers, bidirectional, proj_size, dropout, .. } =
            self.settings;
        let (relu, several, drops) = (nonlinearity == Nonlinearity::Relu, num_layers > 1, dropout > 0.0);
        let settings = [
            (relu, "relu".into()),
            (several, format!("layers={num_layers}")),
            (bidirectional, "bidirectional".into()),
            (proj_size > 0, format!("proj_size={proj_size}")),
            (drops, format!("dropout={dropout}")),
        ];
        with_settings(layer, &self.settings.dims(), &settings)
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
        self.path.run(self.settings.layer, &[x], &|running: &Running| {
            let settings = &self.settings;
            let of = Finder { layer: settings.layer, path: &self.path, dims: &|| settings.dims() };
            let (name, hidden) = settings.hidden;
            let time = time.map_or(settings.time.dim(), |time| Dim::Index(time as isize));
            let places = Steps::find(of, x, settings.input, Some(&time).filter(|_| !settings.is_step))?;
            of.check_dtype("the input", x, self.weights[0].w_ih.dtype())?;
            let layers = (!settings.is_step).then_some((self.layer_dim, self.weights.len()));
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
        let superfluous = "packed sequences have lengths: leave those of the options out";
        Error::ensure(lengths.is_none(), ErrorKind::Value, self.settings.layer, || superfluous)?;
        let (padded, lengths, time) = x.padded(0.0, None)?;
        let [output, hn, cn] = self.forward(&padded, states, Some(&lengths), Some(time))?;
        Ok((x.repacked(&output)?, hn, cn))
    }

    /// The layers for `x`, `[time, batch, features]`, from states `[batch, hidden]` for each layer or none: the
    /// output, and the last states and cells of each layer.
    fn run(&self, x: Tensor, first: [Vec<Tensor>; 2], lengths: Option<&Tensor>) -> Result<[Vec<Tensor>; 3]> {
        let RecurrentConfig { hidden, num_layers, dropout, .. } = self.settings;
        let (cell, directions, batch) = (self.settings.cell(), self.settings.directions(), x.sizes()[1]);
        let options = TensorOptions::new().dtype(x.dtype()).device(x.device());
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
