//! Split models beside the same models on one process. Ranks are threads here.

use super::*;
mod planned;
mod steps;

use crate::backend::{Backend, Done, Reduction, Transfer, Work};
use namegrad::core::DType;
use namegrad::nn::StateDict;
use std::collections::HashMap;
use std::sync::Condvar;
use std::thread;

/// What the ranks of a group have sent, by the number of the transfer.
#[derive(Default)]
struct Board {
    sent: Mutex<HashMap<u64, Vec<Option<NamedTensor>>>>,
    came: Condvar,
}

/// The boards of all groups, by the path of colors that made them.
#[derive(Default)]
struct Boards(Mutex<HashMap<String, Arc<Board>>>);

/// A rank that is a thread.
struct Thread {
    boards: Arc<Boards>,
    path: String,
    /// The ranks of the first group that are in this one.
    members: Vec<usize>,
    rank: usize,
    count: Mutex<u64>,
}

impl Thread {
    fn board(&self) -> Arc<Board> {
        self.boards.0.lock().unwrap().entry(self.path.clone()).or_default().clone()
    }

    fn exchange(&self, sent: NamedTensor) -> Vec<NamedTensor> {
        let (board, size) = (self.board(), self.members.len());
        let number = {
            let mut count = self.count.lock().unwrap();
            *count += 1;
            *count
        };
        let mut all = board.sent.lock().unwrap();
        all.entry(number).or_insert_with(|| vec![None; size])[self.rank] = Some(sent);
        board.came.notify_all();
        while !all[&number].iter().all(Option::is_some) {
            let (guard, timeout) = board.came.wait_timeout(all, std::time::Duration::from_secs(60)).unwrap();
            assert!(!timeout.timed_out(), "a rank did not come");
            all = guard;
        }
        let given = all[&number].iter().flatten().cloned().collect();
        all.retain(|other, _| *other + 4 > number);
        given
    }
}

impl Backend for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.members.len()
    }

    fn start(&self, transfer: Transfer, sent: NamedTensor, received: NamedTensor) -> Result<Box<dyn Work>> {
        let all = self.exchange(sent);
        let reduce = |reduction: Reduction| {
            let mut sum = all[0].clone();
            for x in &all[1..] {
                sum = match reduction {
                    Reduction::Sum | Reduction::Mean => sum.add(x)?,
                    Reduction::Min => sum.minimum(x)?,
                    Reduction::Max => sum.maximum(x)?,
                    Reduction::Product => sum.mul(x)?,
                };
            }
            Ok::<_, Error>(sum)
        };
        let flat = |x: &NamedTensor| x.reshape([-1]);
        let own = |x: &NamedTensor| {
            let x = flat(x)?;
            let part = x.numel() / self.members.len();
            x.narrow(0, (self.rank * part) as isize, part)
        };
        let y = match transfer {
            Transfer::AllReduce(reduction) => reduce(reduction)?,
            Transfer::ReduceScatter(reduction) => own(&reduce(reduction)?)?,
            Transfer::AllGather => {
                let all = all.iter().map(flat).collect::<Result<Vec<_>>>()?;
                NamedTensor::cat(&all.iter().collect::<Vec<_>>(), 0)?
            }
            Transfer::Broadcast(root) => all[root].clone(),
            other => unreachable!("{other:?} is not tested with threads"),
        };
        Ok(Box::new(Done(y.reshape(received.sizes())?.contiguous()?)))
    }

    fn split(&self, color: usize) -> Result<Box<dyn Backend>> {
        let colors = self.exchange(NamedTensor::from_slice(&[color as i64], [1])?);
        let colors: Vec<usize> = colors.iter().map(|x| x.item::<i64>().unwrap() as usize).collect();
        let same: Vec<usize> = (0..colors.len()).filter(|rank| colors[*rank] == color).collect();
        let count = *self.count.lock().unwrap();
        Ok(Box::new(Thread {
            boards: self.boards.clone(),
            path: format!("{}/{count}:{color}", self.path),
            rank: same.iter().position(|rank| *rank == self.rank).unwrap(),
            members: same,
            count: Mutex::new(0),
        }))
    }

    fn abort(&self) -> ! {
        panic!("aborted")
    }

    fn abandon(&self) {}
}

/// Runs `f` on as many ranks, and gives their results.
fn on_ranks<R: Send>(count: usize, f: impl Fn(&Group) -> R + Sync) -> Vec<R> {
    let boards = Arc::new(Boards::default());
    thread::scope(|scope| {
        let ranks: Vec<_> = (0..count)
            .map(|rank| {
                let (boards, f) = (boards.clone(), &f);
                scope.spawn(move || {
                    let members = (0..count).collect();
                    let own = Thread { boards, path: String::new(), members, rank, count: Mutex::new(0) };
                    f(&Group::of(own))
                })
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// Numbers that look random, the same on all threads.
fn numbers(seed: usize, shape: &[(&str, usize)]) -> Tensor {
    let count: usize = shape.iter().map(|(_, size)| size).product();
    let numbers: Vec<f64> =
        (0..count).map(|at| ((at * 37 + seed * 101) as f64 * 0.731).sin() * 0.5).collect();
    let x = Tensor::from(NamedTensor::from_slice(&numbers, [count]).unwrap());
    let sizes: Vec<usize> = shape.iter().map(|(_, size)| *size).collect();
    let names: Vec<&str> = shape.iter().map(|(name, _)| *name).collect();
    x.reshape(sizes).unwrap().refine_names(names).unwrap()
}

/// Sets the parameters of a model to numbers that depend on their order.
fn filled(model: &dyn Module) {
    model.to(DType::F64).unwrap();
    for (at, (_, parameter)) in model.named_parameters().iter().enumerate() {
        let sizes = parameter.shape().sizes;
        let count: usize = sizes.iter().product();
        let numbers: Vec<f64> = (0..count).map(|n| ((n * 13 + at * 71) as f64 * 0.617).sin() * 0.4).collect();
        let names = parameter.shape().names;
        let value = NamedTensor::from_slice(&numbers, [count]).unwrap().reshape(&sizes[..]).unwrap();
        parameter.set(value.with_names(names)).unwrap();
    }
}

fn close(what: &str, x: &NamedTensor, y: &NamedTensor) {
    assert_eq!(x.shape(), y.shape(), "{what}");
    let numbers = |x: &NamedTensor| x.to(DType::F64).unwrap().to_vec::<f64>().unwrap();
    let (x, y) = (numbers(x), numbers(y));
    for (at, (x, y)) in x.iter().zip(&y).enumerate() {
        assert!((x - y).abs() <= 1e-9 * (1.0 + y.abs()), "{what}: element {at} is {x}, not {y}");
    }
}

type Table<'a> = &'a [(&'a str, &'a str)];
type Axes2<'a> = &'a [(&'a str, usize)];

/// A model of one of the tests: how it is made, and its loss on a batch.
struct Case<M> {
    model: fn() -> M,
    loss: fn(&M, &[Tensor]) -> Result<Tensor>,
    batch: fn() -> Vec<Tensor>,
}

/// What a run gives: the losses, and the state of the model and the optimizer.
struct Ran {
    losses: Vec<f64>,
    state: Vec<(String, NamedTensor)>,
    moments: Vec<NamedTensor>,
    gathered: Vec<String>,
}

const STEPS: usize = 3;

impl<M: Module> Case<M> {
    fn alone(&self) -> Result<Ran> {
        let model = (self.model)();
        filled(&model);
        let mut optimizer = Adam::builder(model.parameters()).lr(0.05).build()?;
        let mut losses = Vec::new();
        for _ in 0..STEPS {
            optimizer.zero_grad();
            let loss = (self.loss)(&model, &(self.batch)())?;
            loss.backward()?;
            optimizer.step()?;
            losses.push(loss.item::<f64>()?);
        }
        let state = model.state_dict().iter().map(|(path, x)| (path.to_string(), x.clone())).collect();
        Ok(Ran { losses, state, moments: moments(&optimizer.state_dict()), gathered: Vec::new() })
    }

    fn split(&self, group: &Group, axes: Axes2<'_>, table: Table<'_>, zero: Option<usize>) -> Result<Ran> {
        let mut mesh = Mesh::on(group, axes.iter().copied())?.shard(table.iter().copied())?;
        if let Some(level) = zero {
            mesh = mesh.zero(level, axes[0].0)?;
        }
        let model = (self.model)();
        filled(&model);
        mesh.split(&model)?;
        let mut optimizer = Adam::builder(model.parameters()).lr(0.05).build()?;
        let mut losses = Vec::new();
        let batch: Vec<Tensor> = (self.batch)().iter().map(|x| mesh.part(x)).collect::<Result<_>>()?;
        for _ in 0..STEPS {
            optimizer.zero_grad();
            losses.push(mesh.scope(|| {
                let loss = (self.loss)(&model, &batch)?;
                loss.backward()?;
                loss.item::<f64>()
            })?);
            optimizer.step()?;
        }
        let state = mesh.state_dict(&model)?;
        let state = state.iter().map(|(path, x)| (path.to_string(), x.clone())).collect();
        let moments = moments(&mesh.optimizer_state(&optimizer)?);
        Ok(Ran { losses, state, moments, gathered: mesh.gathered() })
    }

    /// Compares all ranks with one process; gives what was gathered.
    #[track_caller]
    fn check(&self, axes: Axes2<'_>, table: Table<'_>, zero: Option<usize>) -> Vec<String> {
        self.compare(axes, table, zero)
            .unwrap_or_else(|error| panic!("axes {axes:?}, table {table:?}: {error}"))
    }

    /// [`check`](Self::check), or the error of all ranks.
    fn compare(&self, axes: Axes2<'_>, table: Table<'_>, zero: Option<usize>) -> Result<Vec<String>> {
        let what = format!("axes {axes:?}, table {table:?}, zero {zero:?}");
        let alone = self.alone().unwrap();
        let count = axes.iter().map(|(_, size)| size).product();
        let all = on_ranks(count, |group| self.split(group, axes, table, zero));
        let mut gathered = Vec::new();
        for ran in all {
            let ran = ran?;
            for (own, one) in ran.losses.iter().zip(&alone.losses) {
                assert!(
                    (own - one).abs() <= 1e-9 * (1.0 + one.abs()),
                    "{what}: {:?}, {:?}",
                    ran.losses,
                    alone.losses
                );
            }
            for ((path, x), (_, y)) in ran.state.iter().zip(&alone.state) {
                close(&format!("{what}: {path}"), x, y);
            }
            assert_eq!(ran.moments.len(), alone.moments.len());
            for (x, y) in ran.moments.iter().zip(&alone.moments) {
                close(&what, x, y);
            }
            gathered = ran.gathered;
        }
        Ok(gathered)
    }
}

fn moments(state: &namegrad::optim::OptimizerState) -> Vec<NamedTensor> {
    let all = state.groups.iter().flat_map(|group| &group.parameters);
    all.flat_map(|kept| kept.slots.values().cloned()).collect()
}

#[derive(Module)]
struct Mlp {
    hidden: Linear,
    norm: LayerNorm,
    out: Linear,
}

const MLP: Case<Mlp> = Case {
    model: || Mlp {
        hidden: Linear::new(("in", 3), ("hidden", 8)).unwrap(),
        norm: LayerNorm::new(("hidden", 8)).unwrap(),
        out: Linear::new(("hidden", 8), ("class", 4)).unwrap(),
    },
    loss: |model, batch| {
        let h = model.norm.forward(&model.hidden.forward(&batch[0])?.gelu()?)?;
        F::cross_entropy(&model.out.forward(&h)?, &batch[1], "class")
    },
    batch: || vec![numbers(1, &[("batch", 8), ("in", 3)]), classes(2, &[("batch", 8)], 4)],
};

/// Classes that look random.
fn classes(seed: usize, shape: &[(&str, usize)], count: usize) -> Tensor {
    numbers(seed, shape)
        .mul(1000.0)
        .unwrap()
        .abs()
        .unwrap()
        .floor()
        .unwrap()
        .remainder(count as f64)
        .unwrap()
        .to(DType::I64)
        .unwrap()
}

#[test]
fn an_mlp_is_that_of_one_process() {
    let tables: [Table<'_>; 6] = [
        &[("batch", "data")],
        &[("hidden", "model")],
        &[("batch", "data"), ("hidden", "model")],
        &[("batch", "data"), ("class", "model")],
        &[("batch", "data"), ("in", "model")],
        &[("hidden", "data"), ("batch", "model")],
    ];
    for axes in [
        [("data", 1), ("model", 1)],
        [("data", 2), ("model", 1)],
        [("data", 1), ("model", 2)],
        [("data", 2), ("model", 2)],
        [("data", 4), ("model", 1)],
    ] {
        for table in tables {
            if table
                .iter()
                .any(|(name, axis)| *name == "in" && axes.iter().any(|(own, size)| own == axis && *size > 1))
            {
                continue;
            }
            let gathered = MLP.check(&axes, table, None);
            println!("{axes:?} {table:?} {gathered:?}");
        }
    }
}

#[test]
fn parameters_in_parts_of_zero() {
    for level in [1, 3] {
        for axes in [[("data", 2), ("model", 1)], [("data", 2), ("model", 2)]] {
            MLP.check(&axes, &[("batch", "data"), ("hidden", "model")], Some(level));
        }
    }
}

#[derive(Module)]
struct Block {
    tokens: Embedding,
    attention: MultiheadAttention,
    first: LayerNorm,
    second: RmsNorm,
    hidden: Linear,
    back: Linear,
    out: Linear,
}

const BLOCK: Case<Block> = Case {
    model: || Block {
        tokens: Embedding::new(("vocab", 12), ("embed", 8)).unwrap(),
        attention: MultiheadAttention::builder(("embed", 8), ("heads", 4), "seq")
            .is_causal(true)
            .build()
            .unwrap(),
        first: LayerNorm::new(("embed", 8)).unwrap(),
        second: RmsNorm::new(("embed", 8)).unwrap(),
        hidden: Linear::new(("embed", 8), ("hidden", 16)).unwrap(),
        back: Linear::new(("hidden", 16), ("embed", 8)).unwrap(),
        out: Linear::new(("embed", 8), ("vocab", 12)).unwrap(),
    },
    loss: |model, batch| {
        let x = model.tokens.forward(&batch[0])?;
        let x = x.add(&model.attention.forward(&model.first.forward(&x)?)?)?;
        let h = model.hidden.forward(&model.second.forward(&x)?)?.silu()?;
        let x = x.add(&model.back.forward(&h)?)?;
        let options = F::options::CrossEntropyOptions::new().ignore_index(3).label_smoothing(0.1);
        F::cross_entropy_with(&model.out.forward(&x)?, &batch[1], "vocab", options)
    },
    batch: || {
        let shape = [("batch", 4), ("seq", 4)];
        vec![classes(1, &shape, 12), classes(2, &shape, 12)]
    },
};

const DROPPING: Case<TransformerEncoderLayer> = Case {
    model: || {
        let layer = TransformerEncoderLayer::builder(("embed", 8), ("heads", 4), "seq").dim_feedforward(128);
        layer.dropout(0.3).build().unwrap()
    },
    loss: |model, batch| {
        // Each step drops the same features.
        let mut generator = namegrad::core::random::Generator::from_seed(5);
        generator.scope(|| model.forward(&batch[0])?.square()?.mul(&batch[1])?.mean(..))
    },
    batch: || {
        let shape = [("batch", 4), ("seq", 3), ("embed", 8)];
        vec![numbers(1, &shape), numbers(2, &shape)]
    },
};

#[test]
fn dropped_scores_and_features_are_those_of_one_process() {
    let tables: [Table<'_>; 4] = [
        &[("batch", "data")],
        &[("heads", "model")],
        &[("batch", "data"), ("heads", "model"), ("feedforward", "model")],
        &[("batch", "model"), ("heads", "data")],
    ];
    for table in tables {
        for zero in [None, Some(1)] {
            let gathered = DROPPING.check(&[("data", 2), ("model", 2)], table, zero);
            assert!(!gathered.iter().any(|text| text.contains("attention")), "{table:?}: {gathered:?}");
        }
    }
}

const WEIGHTED: Case<Linear> = Case {
    model: || Linear::new(("in", 3), ("class", 8)).unwrap(),
    loss: |model, batch| {
        let logits = model.forward(&batch[0])?;
        let weight = numbers(7, &[("class", 8)]).abs()?.add(0.5)?;
        let options = F::options::CrossEntropyOptions::new().weight(&weight).ignore_index(2);
        let smooth = F::options::CrossEntropyOptions::new().weight(&weight).label_smoothing(0.2);
        let by_class = F::cross_entropy_with(&logits, &batch[1], "class", options)?;
        let soft = F::cross_entropy_with(&logits, &batch[1], "class", smooth)?;
        let probabilities = logits.detach().softmax("class")?;
        by_class.add(&soft)?.add(&F::cross_entropy(&logits.mul(2.0)?, &probabilities, "class")?)
    },
    batch: || vec![numbers(1, &[("batch", 8), ("in", 3)]), classes(2, &[("batch", 8)], 8)],
};

#[test]
fn class_weights_of_a_split_vocabulary_are_those_of_one_process() {
    let tables: [Table<'_>; 3] = [
        &[("class", "model")],
        &[("batch", "data"), ("class", "model")],
        &[("class", "data"), ("batch", "model")],
    ];
    for table in tables {
        println!("{:?}", WEIGHTED.check(&[("data", 2), ("model", 2)], table, None));
    }
}

#[test]
fn a_transformer_is_that_of_one_process() {
    let tables: [Table<'_>; 6] = [
        &[("batch", "data")],
        &[("hidden", "model")],
        &[("batch", "data"), ("hidden", "model"), ("vocab", "model")],
        &[("batch", "data"), ("hidden", "model"), ("qkv", "model"), ("embed_in", "model")],
        &[("embed", "model"), ("batch", "data")],
        &[("heads", "model"), ("batch", "data"), ("hidden", "model"), ("vocab", "model")],
    ];
    for table in tables {
        for axes in [[("data", 2), ("model", 2)], [("data", 1), ("model", 4)]] {
            let gathered = BLOCK.check(&axes, table, None);
            println!("{axes:?} {table:?} {gathered:?}");
        }
    }
    BLOCK.check(&[("data", 2), ("model", 2)], &[("batch", "data"), ("hidden", "model")], Some(3));
}

#[derive(Module)]
struct Sequences {
    lstm: Lstm,
    gru: Gru,
    out: Linear,
}

const SEQUENCES: Case<Sequences> = Case {
    model: || Sequences {
        lstm: Lstm::new(("in", 3), ("hidden", 8), "time").unwrap(),
        gru: Gru::new(("hidden", 8), ("state", 4), "time").unwrap(),
        out: Linear::new(("state", 4), ("class", 2)).unwrap(),
    },
    loss: |model, batch| {
        let y = model.gru.forward(&model.lstm.forward(&batch[0])?.output)?.output;
        F::mse_loss(&model.out.forward(&y)?, &batch[1])
    },
    batch: || {
        let shape = [("time", 3), ("batch", 4)];
        vec![
            numbers(1, &[&shape[..], &[("in", 3)]].concat()),
            numbers(2, &[&shape[..], &[("class", 2)]].concat()),
        ]
    },
};

#[test]
fn recurrent_layers_are_those_of_one_process() {
    let tables: [Table<'_>; 3] = [
        &[("batch", "data")],
        &[("batch", "data"), ("gates", "model")],
        &[("hidden", "model"), ("state", "data")],
    ];
    for table in tables {
        let gathered = SEQUENCES.check(&[("data", 2), ("model", 2)], table, None);
        println!("{table:?} {gathered:?}");
    }
}

#[derive(Module)]
struct Images {
    conv: Conv2d,
    norm: BatchNorm,
    out: Linear,
}

const IMAGES: Case<Images> = Case {
    model: || Images {
        // A bias before a norm has no gradient but rounding errors, which Adam makes large.
        conv: Conv2d::builder(("C", 2), ("maps", 4), [("H", 3), ("W", 3)]).bias(false).build().unwrap(),
        norm: BatchNorm::new(("maps", 4)).unwrap(),
        out: Linear::new(("features", 16), ("class", 4)).unwrap(),
    },
    loss: |model, batch| {
        let y = model.norm.forward(&model.conv.forward(&batch[0])?)?.relu()?;
        let y = F::max_pool2d(&y, 2)?.flatten(["maps", "H", "W"], "features")?;
        F::cross_entropy(&model.out.forward(&y)?, &batch[1], "class")
    },
    batch: || vec![numbers(1, &[("N", 4), ("C", 2), ("H", 6), ("W", 6)]), classes(2, &[("N", 4)], 4)],
};

#[test]
fn convolutions_are_those_of_one_process() {
    let tables: [Table<'_>; 3] =
        [&[("N", "data")], &[("N", "data"), ("maps", "model")], &[("N", "data"), ("features", "model")]];
    for table in tables {
        let gathered = IMAGES.check(&[("data", 2), ("model", 2)], table, None);
        println!("{table:?} {gathered:?}");
    }
}

/// Tables over these names that a counter chooses. Each is equal to one process, or an error says why not.
fn random_tables<M: Module>(case: &Case<M>, names: &[&str], count: usize) {
    let axes = [[("data", 2), ("model", 2)], [("data", 4), ("model", 1)], [("data", 1), ("model", 2)]];
    let (mut equal, mut word) = (0, 12345_u64);
    let mut next = |below: usize| {
        word = word.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (word >> 33) as usize % below
    };
    for number in 0..count {
        let table: Vec<(&str, &str)> = names
            .iter()
            .filter_map(|name| [Some("data"), Some("model"), None, None][next(4)].map(|axis| (*name, axis)))
            .collect();
        let zero = [None, None, Some(1), Some(3)][next(4)];
        match case.compare(&axes[number % 3], &table, zero) {
            Ok(_) => equal += 1,
            Err(error) => {
                let text = error.to_string();
                let is_clear = text.contains("are both split along") || text.contains("cannot be divided");
                assert!(is_clear, "{table:?}: {text}");
            }
        }
    }
    assert!(equal > count / 4, "{equal} of {count} tables fit");
}

#[test]
fn any_table_is_equal_or_an_error() {
    random_tables(&MLP, &["batch", "in", "hidden", "class"], 30);
    random_tables(&BLOCK, &["batch", "seq", "embed", "hidden", "vocab", "heads", "qkv", "embed_in"], 60);
    random_tables(&SEQUENCES, &["batch", "time", "in", "hidden", "state", "gates", "class"], 30);
    random_tables(&IMAGES, &["N", "C", "H", "maps", "features", "class"], 30);
}

#[test]
fn bytes_are_those_of_the_theory() {
    // A layer to "hidden" and one from it: the forward pass adds the results, the backward pass nothing.
    let sent = on_ranks(2, |group| -> Result<u64> {
        let mesh = Mesh::on(group, [("model", 2)])?.shard([("hidden", "model")])?;
        let model = Sequential::new()
            .then(Linear::new(("in", 3), ("hidden", 8))?)
            .then(Relu)
            .then(Linear::new(("hidden", 8), ("class", 4))?);
        mesh.split(&model)?;
        let (x, y) = (numbers(1, &[("batch", 8), ("in", 3)]).to(DType::F32)?, classes(2, &[("batch", 8)], 4));
        let before = mesh.bytes_sent();
        mesh.scope(|| F::cross_entropy(&model.forward(&x)?, &y, "class")?.backward())?;
        Ok(mesh.bytes_sent() - before)
    });
    for sent in sent {
        // Of b bytes, an all-reduce sends 2 b (n - 1) / n.
        assert_eq!(sent.unwrap(), 2 * (8 * 4 * 4) / 2);
    }
}

#[test]
fn states_are_loaded_by_other_tables() {
    let whole = (BLOCK.model)();
    filled(&whole);
    let loss = (BLOCK.loss)(&whole, &(BLOCK.batch)()).unwrap();
    let state = whole.state_dict();
    let table = [("batch", "data"), ("heads", "model"), ("vocab", "model")];
    for result in on_ranks(4, |group| -> Result<(f64, StateDict)> {
        let mesh = Mesh::on(group, [("data", 2), ("model", 2)])?.shard(table)?.fully_shard("data")?;
        let model = (BLOCK.model)();
        model.to(DType::F64)?;
        mesh.split(&model)?;
        mesh.load_state_dict(&model, &state)?;
        let batch: Vec<Tensor> = (BLOCK.batch)().iter().map(|x| mesh.part(x)).collect::<Result<_>>()?;
        let loss = mesh.scope(|| (BLOCK.loss)(&model, &batch)?.item::<f64>())?;
        Ok((loss, mesh.state_dict(&model)?))
    }) {
        let (own, saved) = result.unwrap();
        assert!((own - loss.item::<f64>().unwrap()).abs() < 1e-12);
        for ((path, x), (_, y)) in saved.iter().zip(state.iter()) {
            close(path, x, y);
        }
    }
}

#[test]
fn norms_of_gradients_are_over_all_parts() {
    let alone = (MLP.model)();
    filled(&alone);
    (MLP.loss)(&alone, &(MLP.batch)()).unwrap().backward().unwrap();
    let norm = namegrad::optim::clip_grad_norm_(alone.parameters(), 0.01).unwrap();
    for result in on_ranks(4, |group| -> Result<(f64, f64)> {
        let mesh =
            Mesh::on(group, [("data", 2), ("model", 2)])?.shard([("batch", "data"), ("hidden", "model")])?;
        let model = (MLP.model)();
        filled(&model);
        mesh.split(&model)?;
        let batch: Vec<Tensor> = (MLP.batch)().iter().map(|x| mesh.part(x)).collect::<Result<_>>()?;
        mesh.scope(|| (MLP.loss)(&model, &batch)?.backward())?;
        Ok((mesh.clip_grad_norm_(&model, 0.01)?, mesh.clip_grad_norm_(&model, 0.01)?))
    }) {
        let (before, after) = result.unwrap();
        assert!((before - norm).abs() < 1e-12 && (after - 0.01).abs() < 1e-5, "{before} {after}");
    }
}

/// The message of what all ranks get.
fn message<R: Send>(count: usize, f: impl Fn(&Group) -> Result<R> + Sync) -> String {
    let all = on_ranks(count, |group| f(group).err().map(|error| error.to_string()));
    let all: Vec<String> = all.into_iter().map(|text| text.expect("an error on every rank")).collect();
    all[0].clone()
}

#[test]
fn bad_input_says_what_is_wrong() {
    let has =
        |text: String, parts: &[&str]| parts.iter().for_each(|part| assert!(text.contains(part), "{text}"));
    let axes = [("data", 2), ("model", 2)];
    has(message(3, |group| Mesh::on(group, axes)), &["axes data=2, model=2 are 4 ranks, and there are 3"]);
    has(message(4, |group| Mesh::on(group, [("data", 2), ("data", 2)])), &["two axes are called 'data'"]);
    let of = |group: &Group, table: Table<'_>| Mesh::on(group, axes)?.shard(table.iter().copied());
    has(message(4, |group| of(group, &[("batch", "date")])), &["no axis 'date'", "did you mean 'data'?"]);
    has(
        message(4, |group| of(group, &[("batch", "data"), ("batch", "model")])),
        &["'batch' is in the table twice"],
    );
    has(
        message(4, |group| {
            of(group, if group.rank() < 2 { &[("batch", "data")] } else { &[("hidden", "data")] })
        }),
        &["the ranks differ", "batch along data", "hidden along data"],
    );
    has(
        message(4, |group| of(group, &[("hidden", "data"), ("class", "data")])?.split(&(MLP.model)())),
        &["'out.weight'", "'class' and 'hidden' are both split along 'data'"],
    );
    let odd = || Linear::new(("in", 3), ("hidden", 5)).unwrap();
    has(
        message(4, |group| of(group, &[("hidden", "data")])?.split(&odd())),
        &["'hidden' of size 5 cannot be divided among the 2 ranks along 'data'", "(\"hidden\", 6)"],
    );
    has(
        message(4, |group| {
            let mesh = of(group, &[("hiden", "model")])?;
            let model = (MLP.model)();
            filled(&model);
            mesh.split(&model)?;
            mesh.scope(|| (MLP.loss)(&model, &(MLP.batch)()))
        }),
        &["has the dim 'hiden' of the table; did you mean 'hidden'?"],
    );
    has(
        message(4, |group| of(group, &[("batch", "data")])?.part(&numbers(1, &[("batch", 3)]))),
        &["'batch' of size 3 cannot be divided"],
    );
    has(
        message(2, |group| {
            let mesh = Mesh::on(group, [("data", 2)])?.shard([("hidden", "data")])?;
            let model = (MLP.model)();
            filled(&model);
            mesh.split(&model)?;
            let x = numbers(1, &[("batch", 8), ("in", 3)]);
            let loss = mesh.scope(|| model.hidden.forward(&x)?.sum(..))?;
            loss.backward()
        }),
        &["the backward pass of a scope has to be inside of it"],
    );
    has(
        message(2, |group| {
            Mesh::on(group, [("data", 2)])?.split(&Linear::new(("in", 3), ("out", 2 + group.rank()))?)
        }),
        &["the ranks differ", "[out=2, in=3]", "[out=3, in=3]"],
    );
}

#[test]
fn random_calls_of_ops_are_those_of_one_process() {
    let x = numbers(1, &[("a", 4), ("b", 8), ("c", 2)]);
    let y = numbers(2, &[("a", 4), ("b", 8), ("c", 2)]);
    type Call = fn(&Tensor, &Tensor) -> Result<Tensor>;
    let calls: [(&str, Call); 34] = [
        ("add", |x, y| x.add(y)),
        ("mean", |x, _| x.mul(x)?.mean("b")),
        ("sum", |x, _| x.sum(namegrad::core::keep(["a", "c"]))),
        ("amax", |x, _| x.amax("b")),
        ("amax of all", |x, _| x.amax(..)),
        ("ties", |x, _| x.round()?.amin("b")),
        ("prod", |x, _| x.prod("b")),
        ("var", |x, _| x.var("b")),
        ("std", |x, _| x.std(["a", "b"])),
        ("logsumexp", |x, _| x.logsumexp("b")),
        ("norm", |x, _| x.norm("b")),
        ("vector_norm", |x, _| x.vector_norm_with("b", namegrad::prelude::VectorNormOptions::new().ord(3.0))),
        ("softmax", |x, y| x.softmax("b")?.mul(y)),
        ("log_softmax", |x, y| x.log_softmax("b")?.mul(y)),
        ("cumsum", |x, y| x.cumsum("b")?.mul(y)),
        ("sort", |x, y| x.sort("b")?.values.mul(y)),
        ("max", |x, _| Ok(x.max("b")?.values)),
        ("transpose", |x, _| x.transpose("a", "b")),
        ("flip", |x, y| x.flip("b")?.mul(y)),
        ("roll", |x, y| x.roll(1, "b")?.mul(y)),
        ("narrow", |x, _| x.narrow("b", 2, 3)),
        ("select", |x, _| x.select("b", 5)),
        ("select_last", |x, _| x.select("b", -1)),
        ("flatten", |x, _| x.flatten(["b", "c"], "d")),
        ("unflatten", |x, _| x.unflatten("b", [("e", 4), ("f", 2)])),
        ("cat", |x, y| Tensor::cat(&[x, y], "b")),
        ("stack", |x, y| Tensor::stack(&[x, y], 1)),
        ("repeat", |x, _| x.rename(None)?.repeat([1, 2, 1])),
        ("expand", |x, y| x.sum("b")?.unsqueeze(1)?.rename(None)?.expand([4, 8, 2])?.mul(y.rename(None)?)),
        ("matmul", |x, y| x.rename(None)?.matmul(y.rename(None)?.mt()?)),
        ("contract", |x, y| x.contract(y.rename([("a", "d"), ("c", "e")])?, ["b"])),
        ("tril", |x, _| x.rename(None)?.tril()),
        ("diagonal", |x, _| x.rename(None)?.diagonal(0, 1)),
        ("clamp", |x, _| x.clamp(-0.2, 0.3)),
    ];
    for (op, call) in calls {
        for table in
            [&[("a", "data"), ("b", "model")][..], &[("b", "data")], &[("c", "data"), ("a", "model")]]
        {
            let alone = || -> Result<(Tensor, Tensor, Tensor)> {
                let (x, y) = (x.clone().requiring_grad()?, y.clone().requiring_grad()?);
                let z = call(&x, &y)?;
                z.square()?.sum(..)?.backward()?;
                let of = |x: &Tensor| x.grad().map_or_else(|| x.zeros_like(), Ok);
                Ok((z, of(&x)?, of(&y)?))
            };
            let (z, of_x, of_y) = alone().unwrap_or_else(|error| panic!("{op}: {error}"));
            for made in on_ranks(4, |group| -> Result<[Tensor; 3]> {
                let mesh = Mesh::on(group, [("data", 2), ("model", 2)])?.shard(table.iter().copied())?;
                let (x, y) = (x.clone().requiring_grad()?, y.clone().requiring_grad()?);
                let z = mesh.scope(|| {
                    let z = call(&mesh.part(&x)?, &mesh.part(&y)?)?;
                    z.square()?.sum(..)?.backward()?;
                    mesh.whole(&z.detach())
                })?;
                let of = |x: &Tensor| x.grad().map_or_else(|| x.zeros_like(), Ok);
                Ok([z, of(&x)?, of(&y)?])
            }) {
                let [own, own_x, own_y] = made.unwrap_or_else(|error| panic!("{op}, {table:?}: {error}"));
                let what = format!("{op}, {table:?}");
                close(&what, own.value(), z.value());
                close(
                    &format!("{what}: gradient"),
                    own_x.rename(None).unwrap().value(),
                    of_x.rename(None).unwrap().value(),
                );
                close(
                    &format!("{what}: gradient"),
                    own_y.rename(None).unwrap().value(),
                    of_y.rename(None).unwrap().value(),
                );
            }
        }
    }
}
