//! Recurrent layers, their cells and packed sequences: dims by name, single steps, lengths, PyTorch's paths
//! of parameters, and what they refuse.

use namegrad::autograd::gradcheck;
use namegrad::core::random::Generator;
use namegrad::nn::{
    GruCell, LstmCell, Nonlinearity, PadSequenceOptions, RnnCell, pack_padded_sequence, pack_sequence,
    pad_packed_sequence, pad_packed_sequence_with, pad_sequence, unpack_sequence, unpad_sequence,
};
use namegrad::prelude::*;

fn close(a: &Tensor, b: &Tensor) {
    assert_eq!(a.shape(), b.shape());
    let options = IscloseOptions::new().atol(1e-5).rtol(1e-5);
    assert!(a.allclose_with(b, options).unwrap(), "{a} is not {b}");
}

/// The output and the states for an input, first states and lengths.
type Run = dyn Fn(&Tensor, &[Tensor], Option<&Tensor>) -> Result<Vec<Tensor>>;

/// Any of the layers.
struct Row {
    name: &'static str,
    parameters: Vec<Parameter>,
    run: Box<Run>,
}

/// All layers, with two layers and both directions, and a plain one.
fn rows() -> Result<Vec<Row>> {
    let (input, hidden) = (("embed", 3), ("hidden", 4));
    let mut rows = Vec::new();
    for both in [false, true] {
        let layers = if both { 2 } else { 1 };
        for nonlinearity in [Nonlinearity::Tanh, Nonlinearity::Relu] {
            let builder = Rnn::builder(input, hidden, "time").nonlinearity(nonlinearity);
            let rnn = builder.num_layers(layers).bidirectional(both).build()?;
            rows.push(Row {
                name: "Rnn",
                parameters: rnn.parameters(),
                run: Box::new(move |x, first, lengths| {
                    let options = RnnOptions { h0: first.first().cloned(), lengths: lengths.cloned() };
                    let RecurrentOutput { output, hn } = rnn.forward_with(x, options)?;
                    Ok(vec![output, hn])
                }),
            });
        }
        let gru = Gru::builder(input, hidden, "time").num_layers(layers).bidirectional(both).build()?;
        rows.push(Row {
            name: "Gru",
            parameters: gru.parameters(),
            run: Box::new(move |x, first, lengths| {
                let options = GruOptions { h0: first.first().cloned(), lengths: lengths.cloned() };
                let RecurrentOutput { output, hn } = gru.forward_with(x, options)?;
                Ok(vec![output, hn])
            }),
        });
        for proj_size in [0, 2] {
            let builder = Lstm::builder(input, hidden, "time").proj_size(proj_size);
            let lstm = builder.num_layers(layers).bidirectional(both).build()?;
            rows.push(Row {
                name: "Lstm",
                parameters: lstm.parameters(),
                run: Box::new(move |x, first, lengths| {
                    let options = LstmOptions {
                        h0: first.first().cloned(),
                        c0: first.get(1).cloned(),
                        lengths: lengths.cloned(),
                    };
                    let LstmOutput { output, hn, cn } = lstm.forward_with(x, options)?;
                    Ok(vec![output, hn, cn])
                }),
            });
        }
    }
    Ok(rows)
}

/// The sum of all results, with their squares, so that every element has a different gradient.
fn total(results: &[Tensor]) -> Result<Tensor> {
    results.iter().try_fold(Tensor::new(0.0)?, |sum, x| sum.add(x.square()?.add(x)?.sum(..)?))
}

/// The results, and the gradients of the parameters and the inputs, do not depend on the order of the dims.
#[test]
fn the_order_of_dims_does_not_matter() -> Result<()> {
    manual_seed(0);
    let x = Tensor::randn([("time", 4), ("N", 2), ("embed", 3)])?;
    let lengths = Tensor::new([4, 2])?.refine_names(["N"])?;
    for row in rows()? {
        let run = |x: &Tensor, first: &[Tensor], lengths| -> Result<(Vec<Tensor>, Vec<Tensor>)> {
            row.parameters.iter().for_each(Parameter::zero_grad);
            let results = (row.run)(x, first, lengths)?;
            total(&results)?.backward()?;
            Ok((results, row.parameters.iter().map(|parameter| parameter.grad().unwrap()).collect()))
        };
        let first: Vec<Tensor> =
            run(&x, &[], None)?.0[1..].iter().map(Tensor::randn_like).collect::<Result<_>>()?;
        for lengths in [None, Some(&lengths)] {
            let (expected, gradients) = run(&x, &first, lengths)?;
            assert_eq!(expected[0].names().list(3), "['time', 'N', 'hidden']", "{}", row.name);
            assert_eq!(expected[1].names().list(3), "['layer', 'N', 'hidden']", "{}", row.name);
            for order in [["N", "time", "embed"], ["embed", "N", "time"], ["time", "embed", "N"]] {
                let turned: Vec<Tensor> = first
                    .iter()
                    .map(|first| first.align_to(["hidden", "N", "layer"]))
                    .collect::<Result<_>>()?;
                let (results, own) = run(&x.align_to(order)?, &turned, lengths)?;
                for (result, expected) in results.iter().zip(&expected) {
                    close(&result.align_as(expected)?, expected);
                }
                own.iter().zip(&gradients).for_each(|(own, expected)| close(own, expected));
            }
        }
    }
    Ok(())
}

/// Each index of a further dim is a separate batch; lengths are the same for all.
#[test]
fn further_dims_ride_along() -> Result<()> {
    manual_seed(1);
    let x = Tensor::randn([("N", 2), ("camera", 3), ("time", 4), ("embed", 3)])?;
    let lengths = Tensor::new([2, 4])?.refine_names(["N"])?;
    for row in rows()? {
        for lengths in [None, Some(&lengths)] {
            let all = (row.run)(&x, &[], lengths)?;
            assert_eq!(all[0].names().list(4), "['N', 'camera', 'time', 'hidden']");
            for camera in 0..3 {
                let one = (row.run)(&x.select("camera", camera)?, &[], lengths)?;
                for (all, one) in all.iter().zip(&one) {
                    close(&all.select("camera", camera)?, one);
                }
            }
        }
        let no_batch = (row.run)(&x.select("camera", 0)?.select("N", 1)?, &[], None)?;
        assert_eq!(no_batch[1].names().list(2), "['layer', 'hidden']");
    }
    Ok(())
}

/// A sequence in a batch has the results that it has alone, zeros after its end, and no gradient there.
#[test]
fn lengths_equal_each_sequence_alone() -> Result<()> {
    manual_seed(2);
    let x = Tensor::randn([("N", 3), ("time", 5), ("embed", 3)])?.requiring_grad()?;
    let own = [3, 5, 1];
    let lengths = Tensor::new(own)?.refine_names(["N"])?;
    for row in rows()? {
        let results = (row.run)(&x, &[], Some(&lengths))?;
        for (n, length) in own.into_iter().enumerate() {
            let n = n as isize;
            let alone = (row.run)(&x.select("N", n)?.narrow("time", 0, length)?, &[], None)?;
            close(&results[0].select("N", n)?.narrow("time", 0, length)?, &alone[0]);
            let rest = results[0].select("N", n)?.narrow("time", length as isize, 5 - length)?;
            assert!(rest.eq(0)?.all(..)?.item::<bool>()?, "{}", row.name);
            for (together, alone) in results.iter().zip(&alone).skip(1) {
                close(&together.select("N", n)?, alone);
            }
        }
        x.zero_grad();
        total(&results)?.backward()?;
        let gradient = x.grad().unwrap();
        assert!(gradient.select(0, 2)?.narrow(0, 1, 4)?.eq(0)?.all(..)?.item::<bool>()?);
        assert!(gradient.select(0, 0)?.narrow(0, 0, 3)?.ne(0)?.all(..)?.item::<bool>()?);
    }
    Ok(())
}

/// The parameters of a layer as those of a cell.
fn copy(layer: &dyn Module, cell: &dyn Module) -> Result<()> {
    for ((path, from), (of_cell, to)) in layer.named_parameters().into_iter().zip(cell.named_parameters()) {
        assert_eq!(path, format!("{of_cell}_l0"));
        to.set(from.tensor())?;
    }
    Ok(())
}

#[test]
fn cells_step_like_layers() -> Result<()> {
    manual_seed(3);
    let (input, hidden) = (("embed", 3), ("hidden", 4));
    let x = Tensor::randn([("time", 4), ("N", 2), ("camera", 2), ("embed", 3)])?;
    let steps = |step: &mut dyn FnMut(&Tensor) -> Result<Tensor>| -> Result<Tensor> {
        let ys: Vec<Tensor> = (0..4).map(|t| step(&x.select("time", t)?)).collect::<Result<_>>()?;
        Tensor::stack_with(&ys, 0, StackOptions::new().name("time"))
    };
    let states = |forward: &dyn Fn(&Tensor, Option<&Tensor>) -> Result<Tensor>| {
        let mut state = None;
        steps(&mut |x| {
            state = Some(forward(x, state.as_ref())?);
            Ok(state.clone().unwrap())
        })
    };

    let (layer, cell) = (Rnn::new(input, hidden, "time")?, RnnCell::new(input, hidden)?);
    copy(&layer, &cell)?;
    let ys = states(&|x, state| cell.forward(x, state))?;
    close(&ys, &layer.forward(&x)?.output);

    let builder = Rnn::builder(input, hidden, "time").nonlinearity(Nonlinearity::Relu).bias(false);
    let (layer, cell) = (builder.build()?, RnnCell::builder(input, hidden).nonlinearity(Nonlinearity::Relu));
    let cell = cell.bias(false).build()?;
    copy(&layer, &cell)?;
    let ys = states(&|x, state| cell.forward(x, state))?;
    close(&ys, &layer.forward(&x)?.output);

    let (layer, cell) = (Gru::new(input, hidden, "time")?, GruCell::new(input, hidden)?);
    copy(&layer, &cell)?;
    let ys = states(&|x, state| cell.forward(x, state))?;
    close(&ys, &layer.forward(&x)?.output);

    let (layer, cell) = (Lstm::new(input, hidden, "time")?, LstmCell::new(input, hidden)?);
    copy(&layer, &cell)?;
    let (mut h, mut c) = (None, None);
    let ys = steps(&mut |x| {
        let (new_h, new_c) = cell.forward(x, h.as_ref().zip(c.as_ref()))?;
        (h, c) = (Some(new_h.clone()), Some(new_c));
        Ok(new_h)
    })?;
    let LstmOutput { output, hn, cn } = layer.forward(&x)?;
    close(&ys, &output);
    close(&h.unwrap(), &hn.select("layer", 0)?);
    close(&c.unwrap(), &cn.select("layer", 0)?);
    Ok(())
}

/// Without names: `[time, batch, features]`, with the dim 1 `[batch, time, features]`, or without a batch.
#[test]
fn without_names_by_position() -> Result<()> {
    manual_seed(4);
    let first = Lstm::builder(3, 4, 0).num_layers(2).build()?;
    let x = Tensor::randn([5, 2, 3])?;
    let LstmOutput { output, hn, cn } = first.forward(&x)?;
    assert_eq!((output.sizes(), hn.sizes(), cn.sizes()), (&[5, 2, 4][..], &[2, 2, 4][..], &[2, 2, 4][..]));
    assert!(!hn.has_names() && !first.parameters()[0].tensor().has_names());

    let second = Lstm::builder(3, 4, 1).num_layers(2).build()?;
    second.load_state_dict(&first.state_dict())?;
    let turned = second.forward(&x.transpose(0, 1)?)?;
    close(&turned.output.transpose(0, 1)?, &output);
    close(&turned.hn, &hn);
    let lengths = Tensor::new([5, 3])?;
    let (one, other) = (LstmOptions::new().lengths(&lengths), LstmOptions::new().lengths(&lengths));
    let (one, other) = (first.forward_with(&x, one)?, second.forward_with(&x.transpose(0, 1)?, other)?);
    close(&one.output, &other.output.transpose(0, 1)?);

    // A layer with names takes an input without them.
    let named = Lstm::builder(("embed", 3), ("hidden", 4), "time").num_layers(2).build()?;
    let state = first.state_dict();
    for (path, parameter) in named.named_parameters() {
        parameter.set(state.get(&path).unwrap())?;
    }
    assert_eq!(named.forward(&x)?.output.shape().to_string(), "[?=5, ?=2, hidden=4]");
    for layer in [&first, &second, &named] {
        let alone = layer.forward(&x.select(1, 0)?)?;
        close(&alone.output.rename(None)?, &output.select(1, 0)?);
        assert_eq!(alone.hn.sizes(), [2, 4]);
    }
    Ok(())
}

/// The paths, the order and the sizes of PyTorch, values in ±1/√hidden, and a round trip.
#[test]
fn parameters_of_pytorch() -> Result<()> {
    manual_seed(5);
    let build = || {
        Lstm::builder(("embed", 3), ("hidden", 4), "time")
            .num_layers(2)
            .bidirectional(true)
            .proj_size(2)
            .build()
    };
    let lstm = build()?;
    let shapes: Vec<String> = lstm
        .named_parameters()
        .into_iter()
        .map(|(path, parameter)| format!("{path} {}", parameter.shape()))
        .collect();
    let mut expected = Vec::new();
    for (layer, input) in [(0, "embed=3"), (1, "hidden=4")] {
        for end in ["", "_reverse"] {
            let end = format!("_l{layer}{end}");
            expected.push(format!("weight_ih{end} [gates=16, {input}]"));
            expected.push(format!("weight_hh{end} [gates=16, hidden=2]"));
            expected.push(format!("bias_ih{end} [gates=16]"));
            expected.push(format!("bias_hh{end} [gates=16]"));
            expected.push(format!("weight_hr{end} [hidden=2, hidden_in=4]"));
        }
    }
    assert_eq!(shapes, expected);
    assert!(
        lstm.to_string()
            .contains("Lstm(embed=3 -> hidden=4 along time, layers=2, bidirectional, proj_size=2)")
    );
    for parameter in lstm.parameters() {
        let most = parameter.tensor().abs()?.amax(..)?.item::<f64>()?;
        assert!(most <= 0.5 && (parameter.numel() < 16 || most > 0.3), "{most}");
    }
    let other = build()?;
    let x = Tensor::randn([("time", 3), ("embed", 3)])?;
    assert!(!other.forward(&x)?.hn.allclose(lstm.forward(&x)?.hn)?);
    other.load_state_dict(&lstm.state_dict())?;
    close(&other.forward(&x)?.hn, &lstm.forward(&x)?.hn);

    // As PyTorch saves it: no names, the same paths.
    let plain = Lstm::builder(3, 4, 0).num_layers(2).bidirectional(true).proj_size(2).build()?;
    let paths =
        |module: &dyn Module| module.named_parameters().into_iter().map(|(path, _)| path).collect::<Vec<_>>();
    assert_eq!(paths(&plain), paths(&lstm));
    assert_eq!(paths(&GruCell::new(3, 4)?), ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]);
    assert_eq!(paths(&Gru::builder(3, 4, 0).bias(false).build()?), ["weight_ih_l0", "weight_hh_l0"]);
    Ok(())
}

#[test]
fn gradients() -> Result<()> {
    manual_seed(6);
    let (input, hidden) = (("embed", 2), ("hidden", 3));
    let gru =
        Gru::builder(input, hidden, "time").num_layers(2).bidirectional(true).dtype(DType::F64).build()?;
    let lstm = Lstm::builder(input, hidden, "time").proj_size(2).dtype(DType::F64).build()?;
    let cell = LstmCell::builder(input, hidden).dtype(DType::F64).build()?;
    let draw = |dims: &[(&str, usize)]| TensorOptions::new().dtype(DType::F64).randn(dims.to_vec());
    let x = draw(&[("N", 2), ("time", 3), ("embed", 2)])?;
    let lengths = Tensor::new([3, 2])?.refine_names(["N"])?;
    let h0 = draw(&[("layer", 4), ("N", 2), ("hidden", 3)])?;
    gradcheck(
        |inputs| {
            let options = GruOptions::new().h0(&inputs[1]).lengths(&lengths);
            let RecurrentOutput { output, hn } = gru.forward_with(&inputs[0], options)?;
            output.square()?.sum(..)?.add(hn.sum(..)?)
        },
        &[x.clone(), h0],
    )?;
    let h0 = draw(&[("N", 2), ("hidden", 2)])?;
    let c0 = draw(&[("N", 2), ("hidden", 3)])?;
    gradcheck(
        |inputs| {
            let LstmOutput { output, hn, cn } =
                lstm.forward_with(&inputs[0], LstmOptions::new().h0(&inputs[1]).c0(&inputs[2]))?;
            output.square()?.sum(..)?.add(hn.sum(..)?)?.add(cn.square()?.sum(..)?)
        },
        &[x.clone(), h0, c0.clone()],
    )?;
    let x = x.select("time", 0)?;
    gradcheck(
        |inputs| {
            let (h, c) = cell.forward(&inputs[0], (&inputs[1], &inputs[1]))?;
            h.square()?.sum(..)?.add(c.sum(..)?)
        },
        &[x, c0],
    )?;
    Ok(())
}

/// Dropout is between the layers, in training.
#[test]
fn dropout_between_layers() -> Result<()> {
    manual_seed(7);
    let x = Tensor::randn([("time", 6), ("N", 4), ("embed", 3)])?;
    let gru = Gru::builder(("embed", 3), ("hidden", 8), "time").num_layers(2).dropout(0.5).build()?;
    let twice = || Ok::<_, Error>((gru.forward(&x)?, gru.forward(&x)?));
    let (one, other) = twice()?;
    assert!(one.hn.select("layer", 0)?.equal(&other.hn.select("layer", 0)?)?);
    assert!(!one.hn.select("layer", 1)?.equal(&other.hn.select("layer", 1)?)?);
    gru.eval();
    let (one, other) = twice()?;
    assert!(one.output.equal(&other.output)?);
    let one = Gru::builder(("embed", 3), ("hidden", 8), "time").dropout(1.0).build()?;
    assert!(one.forward(&x)?.output.equal(&one.forward(&x)?.output)?);
    Ok(())
}

#[test]
fn packed_sequences() -> Result<()> {
    manual_seed(8);
    let x = Tensor::randn([("N", 4), ("embed", 3), ("time", 5)])?;
    let lengths = Tensor::new([2, 5, 3, 5])?.refine_names(["N"])?;
    let packed = pack_padded_sequence(&x, &lengths, "time")?;
    assert_eq!(packed.batch_sizes(), [4, 4, 3, 2, 2]);
    assert_eq!(packed.sorted_indices(), [1, 3, 2, 0]);
    assert_eq!(packed.lengths(), [2, 5, 3, 5]);
    assert_eq!(packed.data().shape().to_string(), "[?=15, embed=3]");
    let (padded, back) = pad_packed_sequence(&packed)?;
    assert_eq!(back.shape().to_string(), "[N=4]");
    assert!(back.equal(&lengths)?);
    assert_eq!(padded.shape(), x.shape());
    for (one, other) in
        unpad_sequence(&padded, &lengths, "time")?.iter().zip(unpad_sequence(&x, &lengths, "time")?)
    {
        assert!(one.equal(&other)?);
    }
    let options = PadSequenceOptions::new().padding_value(-1.0).total_length(7);
    let (longer, _) = pad_packed_sequence_with(&packed, options)?;
    assert_eq!(longer.shape().to_string(), "[N=4, embed=3, time=7]");
    assert_eq!(longer.select("N", 0)?.narrow("time", 2, 5)?.to_vec::<f32>()?, [-1.0; 15]);

    for both in [false, true] {
        let lstm =
            Lstm::builder(("embed", 3), ("hidden", 4), "time").num_layers(2).bidirectional(both).build()?;
        let one = lstm.forward_packed(&packed)?;
        let other = lstm.forward_with(&x, LstmOptions::new().lengths(&lengths))?;
        close(&pad_packed_sequence(&one.output)?.0, &other.output);
        close(&one.hn, &other.hn);
        close(&one.cn, &other.cn);
        // The gradient of what was packed goes through.
        lstm.zero_grad();
        let leaf = x.detach().requiring_grad()?;
        let packed = pack_padded_sequence(&leaf, &lengths, "time")?;
        let out = lstm.forward_packed(&packed.map(|data| data.tanh())?)?;
        total(&[out.output.data().clone(), out.hn])?.backward()?;
        let gradient = leaf.grad().unwrap();
        assert!(gradient.select(0, 0)?.narrow(1, 2, 3)?.eq(0)?.all(..)?.item::<bool>()?);
        assert!(gradient.select(0, 1)?.ne(0)?.all(..)?.item::<bool>()?);
    }

    // Without names, as in PyTorch.
    let sequences = [4, 2, 3].map(|length| Tensor::randn([length, 3]).unwrap());
    let padded = pad_sequence(&sequences, 0, None)?;
    assert_eq!(padded.sizes(), [4, 3, 3]);
    let packed = pack_sequence(&sequences, 0, None)?;
    let gru = Gru::new(3, 4, 0)?;
    let hidden = gru.forward_packed(&packed)?;
    for ((sequence, n), output) in sequences.iter().zip(0..).zip(unpack_sequence(&hidden.output)?) {
        let alone = gru.forward(sequence)?;
        close(&output, &alone.output);
        close(&hidden.hn.select(1, n)?, &alone.hn);
    }
    for (sequence, back) in sequences.iter().zip(unpack_sequence(&packed)?) {
        assert!(back.equal(sequence)?);
    }
    let error = pack_padded_sequence(&x, &Tensor::new([2, 0, 3, 5])?, "time").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value);
    let kind = |lengths: Tensor| pack_padded_sequence(&x, &lengths, "time").unwrap_err().kind();
    assert_eq!(kind(Tensor::new([2, 3])?), ErrorKind::Shape);
    assert_eq!(kind(lengths.rename(["M"])?), ErrorKind::NameNotFound);
    let options = GruOptions::new().lengths(&lengths);
    assert_eq!(gru.forward_packed_with(&packed, options).unwrap_err().kind(), ErrorKind::Value);
    assert_eq!(kind(Tensor::new([2.0, 3.0, 1.0, 1.0])?), ErrorKind::DType);
    assert_eq!(pad_sequence(&[], 0, None).unwrap_err().kind(), ErrorKind::Value);
    Ok(())
}

#[derive(Module)]
struct Model {
    encoder: Lstm,
    cell: GruCell,
}

#[test]
fn wrong_inputs() -> Result<()> {
    let model = Model {
        encoder: Lstm::new(("embed", 3), ("hidden", 4), "time")?,
        cell: GruCell::new(("embed", 3), ("hidden", 4))?,
    };
    model.train();
    let shape = |dims: &[(&str, usize)]| Tensor::ones(dims.to_vec());
    let good = shape(&[("time", 5), ("N", 2), ("embed", 3)])?;
    let fail = |x: &Tensor| model.encoder.forward(x).unwrap_err();
    let error = fail(&shape(&[("time", 5), ("N", 2), ("embed", 7)])?);
    assert_eq!(error.kind(), ErrorKind::Shape);
    let text = error.to_string();
    let expected = "Lstm: the layer 'encoder' (embed=3 -> hidden=4 along time) needs 3 elements in the dim 'embed', got 7";
    assert!(text.contains(expected) && text.contains("tests/nn/recurrent.rs"), "{text}");
    let error = fail(&shape(&[("time", 0), ("N", 2), ("embed", 3)])?);
    assert!(error.kind() == ErrorKind::Shape && error.message().contains("at least one step"), "{error}");
    let error = fail(&shape(&[("step", 5), ("N", 2), ("embed", 3)])?);
    assert!(error.kind() == ErrorKind::NameNotFound && error.message().contains("'time'"), "{error}");
    assert_eq!(fail(&shape(&[("time", 5), ("N", 2), ("C", 3)])?).kind(), ErrorKind::NameNotFound);
    assert_eq!(fail(&shape(&[("time", 5), ("hidden", 2), ("embed", 3)])?).kind(), ErrorKind::DuplicateName);
    assert_eq!(fail(&shape(&[("time", 5), ("layer", 2), ("embed", 3)])?).kind(), ErrorKind::DuplicateName);
    assert_eq!(fail(&good.to(DType::F64)?).kind(), ErrorKind::DType);
    assert_eq!(fail(&Tensor::new(1.0)?).kind(), ErrorKind::Shape);
    assert_eq!(fail(&Tensor::ones([3])?).kind(), ErrorKind::Shape);

    let lengths = |lengths: Tensor| {
        let options = LstmOptions::new().lengths(&lengths);
        let error = model.encoder.forward_with(&good, options).unwrap_err();
        assert!(error.message().contains("'encoder'"), "{error}");
        error.kind()
    };
    for wrong in [[5, 6], [0, 5], [5, -1]] {
        assert_eq!(lengths(Tensor::new(wrong)?), ErrorKind::Value, "{wrong:?}");
    }
    assert_eq!(lengths(Tensor::new([5, 5, 5])?), ErrorKind::Shape);
    assert_eq!(lengths(Tensor::new([5.0, 5.0])?), ErrorKind::DType);
    assert_eq!(lengths(Tensor::new([5, 5])?.refine_names(["M"])?), ErrorKind::Shape);

    let state = |h0: &Tensor, c0: Option<&Tensor>| {
        let mut options = LstmOptions::new().h0(h0);
        options.c0 = c0.cloned();
        let error = model.encoder.forward_with(&good, options).unwrap_err();
        assert!(error.location().file().ends_with("recurrent.rs"), "{error}");
        error.kind()
    };
    let right = shape(&[("layer", 1), ("N", 2), ("hidden", 4)])?;
    // What is missing is named, and what need not be there.
    let options = LstmOptions::new().h0(&shape(&[("N", 2), ("out", 4)])?);
    let text = model.encoder.forward_with(&good, options).unwrap_err().message().to_string();
    assert!(
        text.ends_with("got [N=2, out=4], which lacks 'hidden'; these can be left out: 'layer', 'N'"),
        "{text}"
    );
    // The batch of another tensor is not a batch that is missing.
    assert_eq!(state(&shape(&[("M", 2), ("hidden", 4)])?, None), ErrorKind::NameNotFound);
    assert_eq!(state(&shape(&[("M", 1), ("layer", 1), ("hidden", 4)])?, None), ErrorKind::NameNotFound);
    assert_eq!(state(&shape(&[("N", 3), ("hidden", 4)])?, None), ErrorKind::Shape);
    assert_eq!(state(&shape(&[("N", 2)])?, None), ErrorKind::Shape);
    assert_eq!(
        state(&shape(&[("N", 2), ("hidden", 4)])?.rename(None)?.select(0, 0)?, None),
        ErrorKind::Shape
    );
    for wrong in [[("layer", 2), ("N", 2), ("hidden", 4)], [("layer", 1), ("N", 2), ("hidden", 3)]] {
        assert_eq!(state(&shape(&wrong)?, Some(&right)), ErrorKind::Shape);
    }
    assert_eq!(state(&shape(&[("layer", 1), ("N", 2), ("C", 4)])?, Some(&right)), ErrorKind::NameNotFound);
    assert_eq!(state(&right.to(DType::F64)?, Some(&right)), ErrorKind::DType);

    let error = model.cell.forward(&shape(&[("N", 2), ("embed", 2)])?, None).unwrap_err();
    assert!(error.message().contains("the layer 'cell' (embed=3 -> hidden=4)"), "{error}");
    let x = shape(&[("N", 2), ("embed", 3)])?;
    let error = model.cell.forward(&x, &shape(&[("N", 3), ("hidden", 4)])?).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);

    let builder = || Lstm::builder(("embed", 3), ("hidden", 4), "time");
    let value = |built: Result<Lstm>| assert_eq!(built.unwrap_err().kind(), ErrorKind::Value);
    value(builder().dropout(1.1).num_layers(2).build());
    value(builder().dropout(-0.1).build());
    value(builder().dropout(f64::NAN).build());
    value(builder().num_layers(0).build());
    value(builder().proj_size(4).build());
    value(Lstm::new(("embed", 3), ("hidden", 0), "time"));
    value(Lstm::new(("embed", -3), ("hidden", 2), "time"));
    let kind = |built: Result<Lstm>| built.unwrap_err().kind();
    assert_eq!(kind(builder().dtype(DType::I64).build()), ErrorKind::DType);
    assert_eq!(kind(Lstm::new(("time", 3), ("hidden", 4), "time")), ErrorKind::DuplicateName);
    assert_eq!(kind(Lstm::new(("embed", 3), ("hidden", 4), "2 times")), ErrorKind::InvalidName);
    assert_eq!(kind(Lstm::new(("1embed", 3), ("hidden", 4), "time")), ErrorKind::InvalidName);
    Ok(())
}

/// States that are the same for the whole batch, and an LSTM with one of its two states.
#[test]
fn states_without_the_batch() -> Result<()> {
    Generator::from_seed(31).scope(|| {
        let lstm = Lstm::builder(("embed", 3), ("hidden", 4), "time").num_layers(2).proj_size(2).build()?;
        let x = Tensor::randn([("N", 2), ("time", 5), ("M", 3), ("embed", 3)])?;
        let (h0, c0) =
            (Tensor::randn([("layer", 2), ("hidden", 2)])?, Tensor::randn([("hidden", 4), ("layer", 2)])?);
        let whole = |x: &Tensor, size: usize| {
            let dims = [("N", 2), ("M", 3)].into_iter().try_fold(x.clone(), |x, (name, size)| {
                x.unsqueeze_with(1, UnsqueezeOptions::new().name(name))?.expand((name, size))
            });
            dims?.align_to(["layer", "N", "M", "hidden"])?.narrow("hidden", 0, size)?.contiguous()
        };
        let expected = lstm.forward_with(&x, LstmOptions::new().h0(&whole(&h0, 2)?).c0(&whole(&c0, 4)?))?;
        let same = |options: LstmOptions| -> Result<()> {
            let found = lstm.forward_with(&x, options)?;
            assert!(found.output.equal(&expected.output)? && found.cn.equal(&expected.cn)?);
            Ok(())
        };
        same(LstmOptions::new().h0(&h0).c0(&c0))?;
        same(LstmOptions::new().h0(&whole(&h0, 2)?.narrow("N", 0, 1)?).c0(&whole(&c0, 4)?.select("M", 0)?))?;
        // Zeros in place of a state that is not given.
        let zeros = Tensor::zeros([("layer", 2), ("hidden", 4)])?;
        let half = lstm.forward_with(&x, LstmOptions::new().h0(&h0))?;
        assert!(half.hn.equal(&lstm.forward_with(&x, LstmOptions::new().h0(&h0).c0(&zeros))?.hn)?);
        let half = lstm.forward_with(&x, LstmOptions::new().c0(&c0))?;
        let zeros = zeros.narrow("hidden", 0, 2)?;
        assert!(half.hn.equal(&lstm.forward_with(&x, LstmOptions::new().h0(&zeros).c0(&c0))?.hn)?);

        // A state that is learned, for every batch, an empty one too; and a cell's.
        let gru = Gru::new(("embed", 3), ("hidden", 4), "time")?;
        let first = Parameter::new(Tensor::randn([("hidden", 4)])?)?;
        gru.forward_with(&x, GruOptions::new().h0(&first))?.output.sum(..)?.backward()?;
        assert!(first.grad().is_some_and(|grad| grad.sizes() == [4]));
        let first = first.tensor();
        let empty = gru.forward_with(&x.narrow("N", 0, 0)?, GruOptions::new().h0(&first))?;
        assert_eq!(empty.hn.shape().to_string(), "[layer=1, N=0, M=3, hidden=4]");
        let cell = GruCell::new(("embed", 3), ("hidden", 4))?;
        let step = cell.forward(&x.select("time", 0)?, &first)?;
        assert_eq!(step.shape().to_string(), "[N=2, M=3, hidden=4]");
        // Without names, every dim must be there, as in PyTorch.
        let plain = GruOptions::new().h0(&first.rename(None)?);
        assert_eq!(gru.forward_with(&x, plain).unwrap_err().kind(), ErrorKind::Shape);
        // One state for several layers would not say which.
        let single = LstmOptions::new().h0(&h0.select("layer", 0)?);
        assert_eq!(lstm.forward_with(&x, single).unwrap_err().kind(), ErrorKind::Shape);
        Ok(())
    })
}

/// Other names and dtypes, an empty batch, strict names, and a layer that learns.
#[test]
fn other_inputs() -> Result<()> {
    manual_seed(9);
    let gru = Gru::builder(("gates", 3), ("gates", 4), "time").layer_dim("depth").build()?;
    let x = Tensor::randn([("time", 5), ("layer", 2), ("gates", 3)])?;
    assert_eq!(gru.forward(&x)?.hn.shape().to_string(), "[depth=1, layer=2, gates=4]");
    let empty = Tensor::zeros([("time", 5), ("N", 0), ("gates", 3)])?;
    assert_eq!(gru.forward(&empty)?.output.sizes(), [5, 0, 4]);
    for dtype in [DType::F16, DType::BF16, DType::F64] {
        let gru = Gru::builder(("gates", 3), ("gates", 4), "time")
            .num_layers(2)
            .dtype(dtype)
            .layer_dim(None)
            .build()?;
        let out = gru.forward(&x.to(dtype)?)?;
        assert_eq!(
            (out.output.dtype(), out.hn.shape().to_string()),
            (dtype, "[?=2, layer=2, gates=4]".into())
        );
    }
    namegrad::names::strict(|| {
        gru.forward(&x)?;
        assert_eq!(gru.forward(&x.rename(None)?).unwrap_err().kind(), ErrorKind::NameMismatch);
        let state = Tensor::zeros([("layer", 2), ("gates", 4)])?;
        gru.forward_with(&x, GruOptions::new().h0(&state))?;
        let plain = GruOptions::new().h0(&state.rename(None)?);
        assert_eq!(gru.forward_with(&x, plain).unwrap_err().kind(), ErrorKind::NameNotFound);
        Ok::<_, Error>(())
    })?;

    // The sum of the first and the last number.
    let (lstm, out) = (Lstm::new(("in", 1), ("hidden", 8), "time")?, Linear::new(("hidden", 8), ("out", 1))?);
    let parameters = lstm.parameters().into_iter().chain(out.parameters());
    let mut optimizer = Adam::builder(parameters).lr(0.02).build()?;
    let x = Tensor::rand([("N", 64), ("time", 6), ("in", 1)])?;
    let target = x.select("time", 0)?.add(x.select("time", -1)?)?.select("in", 0)?;
    let mut losses = Vec::new();
    for _ in 0..60 {
        let last = lstm.forward(&x)?.hn.select("layer", 0)?;
        let loss = F::mse_loss(&out.forward(&last)?.select("out", 0)?, &target)?;
        losses.push(loss.item::<f64>()?);
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
    }
    assert!(losses[59] < 0.3 * losses[0], "{losses:?}");
    Ok(())
}

#[test]
fn lengths_of_the_dim_of_time_were_taken_for_those_of_the_batch() -> Result<()> {
    use namegrad::nn::pack_padded_sequence;
    let x = Tensor::randn([2, 2, 3])?;
    let lengths = Tensor::new([2, 1])?;
    let pack = |names: [&str; 3], lengths: &Tensor| {
        let x = x.refine_names(names.map(|name| (name != "_").then_some(name)))?;
        pack_padded_sequence(&x, lengths, "time").map(drop)
    };
    let of = |name: &str| lengths.refine_names([name]);
    pack(["_", "time", "E"], &of("N")?)?;
    for names in [["_", "time", "E"], ["N", "time", "E"]] {
        let error = pack(names, &of("time")?).unwrap_err();
        assert_eq!((error.kind(), error.op()), (ErrorKind::NameMismatch, "pack_padded_sequence"));
    }
    let error = pack(["N", "time", "E"], &of("M")?).unwrap_err();
    assert_eq!(error.repair(), Some("lengths.rename([(\"M\", \"N\")])?"));
    // Strict mode has no dim without a name for one with a name.
    let named = ["N", "time", "E"];
    pack(named, &lengths)?;
    let error = namegrad::names::strict(|| pack(named, &lengths)).unwrap_err();
    assert_eq!(error.repair(), Some("lengths.refine_names([\"N\"])?"));
    namegrad::names::strict(|| pack(named, &of("N")?))
}

/// Batch dims without names in `x` have those of the states and the lengths, which agree on them.
#[test]
fn states_and_lengths_of_an_unnamed_input_could_contradict_each_other() -> Result<()> {
    let layer = Lstm::new(("embed", 3), ("hidden", 3), "time")?;
    let cell = LstmCell::new(("embed", 3), ("hidden", 3))?;
    let x = Tensor::randn([4, 3, 3, 3])?;
    let h = Tensor::randn([("layer", 1), ("N", 3), ("M", 3), ("hidden", 3)])?;
    let lengths = Tensor::new([[1, 2, 3], [4, 4, 1], [2, 2, 2]])?.rename(["N", "M"])?;
    let run = |x: &Tensor, h0: &Tensor, c0: &Tensor, lengths: &Tensor| -> Result<Tensor> {
        Ok(layer.forward_with(x, LstmOptions::new().h0(h0).c0(c0).lengths(lengths))?.output)
    };
    let want = run(&x.rename(["time", "N", "M", "embed"])?, &h, &h, &lengths)?.rename(None)?;
    let got = run(&x, &h, &h, &lengths)?;
    close(&got.rename(None)?, &want);
    close(&run(&x, &h, &h.rename(None)?, &lengths.rename([None, Some("M")])?)?.rename(None)?, &want);
    let turned = h.align_to(["layer", "M", "N", "hidden"])?;
    let partly = h.rename([Some("layer"), Some("M"), None, Some("hidden")])?;
    for (h0, c0, lengths) in [
        (&turned, &h, &lengths),
        (&h, &turned, &lengths),
        (&h, &h, &lengths.t()?),
        (&turned, &turned, &lengths),
        (&h.rename([("N", "Z")])?, &h, &lengths),
        (&h, &h, &lengths.rename(["N", "Z"])?),
        (&partly, &partly, &lengths.rename([None, Some("M")])?),
    ] {
        let error = run(&x, h0, c0, lengths).unwrap_err();
        let what = format!("{} {} {}: {error}", h0.shape(), c0.shape(), lengths.shape());
        assert_eq!(error.kind(), ErrorKind::NameMismatch, "{what}");
    }
    let one = |x: &Tensor| x.select(0, 0);
    let step = |h: &Tensor, c: &Tensor| cell.forward(&one(&x)?, (&one(h)?, &one(c)?)).map(drop);
    step(&h, &h)?;
    assert_eq!(step(&h, &turned).unwrap_err().kind(), ErrorKind::NameMismatch);
    Ok(())
}
