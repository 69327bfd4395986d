//! A graph attention network: `cargo run --release --example graph`. In 1972, a conflict split a karate club in
//! two. From its graph of friendships and the sides of two members alone, the network tells on which side each
//! of the 34 members ended.
//!
//! The members are the dim `node`, and each friendship is two elements of the dim `edge`, one in each
//! direction. `index_select` brings values of nodes to the edges, and the segment ops bring values of edges to
//! the nodes at which they end. (W. Zachary, *An Information Flow Model for Conflict and Fission in Small
//! Groups*, 1977; P. Veličković et al., *Graph Attention Networks*, 2018.)

use clap::Parser;
use namegrad::nn::init;
use namegrad::prelude::*;
use namegrad_examples::flags;
use std::process::ExitCode;

/// Train a graph attention network on Zachary's karate club.
#[derive(Parser)]
struct Flags {
    /// The number of steps
    #[arg(long, value_name = "N", default_value_t = 200, allow_hyphen_values = true, value_parser = flags::within(1..=100_000usize))]
    steps: usize,
    /// Seed of everything random; the same seed gives the same run
    #[arg(long, value_name = "SEED", default_value_t = 0, allow_hyphen_values = true, value_parser = flags::within(0..=u64::MAX))]
    seed: u64,
}

const MEMBERS: usize = 34;
/// The two members whose sides are known: the instructor and the president.
const KNOWN: [i64; 2] = [0, 33];
/// The members who went with the instructor.
const INSTRUCTOR: [usize; 17] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21];
/// The friends of each member who have a higher number: 78 friendships.
#[rustfmt::skip]
const FRIENDS: [&[i64]; MEMBERS] = [
    &[1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31], &[2, 3, 7, 13, 17, 19, 21, 30],
    &[3, 7, 8, 9, 13, 27, 28, 32], &[7, 12, 13], &[6, 10], &[6, 10, 16], &[16], &[], &[30, 32, 33], &[33],
    &[], &[], &[], &[33], &[32, 33], &[32, 33], &[], &[], &[32, 33], &[33], &[32, 33], &[], &[32, 33],
    &[25, 27, 29, 32, 33], &[25, 27, 31], &[31], &[29, 33], &[33], &[31, 33], &[32, 33], &[32, 33],
    &[32, 33], &[33], &[],
];

/// The edges of a graph, as the nodes where they start and where they end; both `[edge]`.
struct Edges {
    from: Tensor,
    to: Tensor,
}

/// The friendships in both directions, and an edge from each member to itself.
fn club() -> Result<Edges> {
    let (mut from, mut to) = (Vec::new(), Vec::new());
    for (member, friends) in FRIENDS.iter().enumerate() {
        let member = member as i64;
        from.push(member);
        to.push(member);
        for friend in *friends {
            from.extend([member, *friend]);
            to.extend([*friend, member]);
        }
    }
    let vector = |nodes: &[i64]| Tensor::from_slice(nodes, ("edge", nodes.len()));
    Ok(Edges { from: vector(&from)?, to: vector(&to)? })
}

/// A layer of graph attention: each node gets the mean of its neighbors, with weights that each head learns.
#[derive(Module)]
struct GraphAttention {
    /// `[in, heads, out]`
    weight: Parameter,
    /// What a node says as the start of an edge, and as its end: `[heads, out]`
    start: Parameter,
    end: Parameter,
}

impl GraphAttention {
    fn new(features: usize, heads: usize, out: usize) -> Result<GraphAttention> {
        let (heads, out) = (("heads", heads), ("out", out));
        let parameter = |x: Result<Tensor>| Parameter::new(x?);
        let layer = GraphAttention {
            weight: parameter(Tensor::zeros([("in", features), heads, out]))?,
            start: parameter(Tensor::zeros([heads, out]))?,
            end: parameter(Tensor::zeros([heads, out]))?,
        };
        for weight in layer.parameters() {
            init::normal_(&weight, 0.0, 0.3)?;
        }
        Ok(layer)
    }

    /// From features `[node, in]` to `[node, heads, out]`.
    fn forward(&self, x: &Tensor, edges: &Edges) -> Result<Tensor> {
        let h = x.contract(&self.weight, "in")?; // [node, heads, out]
        let part = |of: &Parameter, at: &Tensor| h.mul(of.tensor())?.sum("out").index_select(at, "node");
        let scores = part(&self.start, &edges.from)?.add(part(&self.end, &edges.to)?)?; // [edge, heads]
        let nodes = ("node", x.size("node")?);
        let scores = scores.leaky_relu_with(LeakyReluOptions::new().negative_slope(0.2))?;
        let weights = scores.segment_softmax(&edges.to, "edge", nodes)?; // those of a node's edges sum to 1
        let messages = h.index_select(&edges.from, "node")?; // [edge, heads, out]
        messages.mul(weights.align_as(&messages)?)?.segment_sum(&edges.to, "edge", nodes)
    }
}

#[derive(Module)]
struct Network {
    first: GraphAttention,
    second: GraphAttention,
}

impl Network {
    /// Logits `[node, side]` from features `[node, in]`.
    fn forward(&self, x: &Tensor, edges: &Edges) -> Result<Tensor> {
        let h = self.first.forward(x, edges)?.elu()?.flatten(["heads", "out"], "in")?; // [node, in]
        self.second.forward(&h, edges)?.mean("heads")?.rename([("out", "side")])
    }
}

fn main() -> ExitCode {
    flags::run(|| {
        let flags = Flags::try_parse()?;
        manual_seed(flags.seed);
        let edges = club()?;
        // Nothing is known of a member but who it is.
        let x = Tensor::eye(MEMBERS, MEMBERS)?.refine_names(["node", "in"])?;
        let side: Vec<i64> = (0..MEMBERS).map(|member| i64::from(!INSTRUCTOR.contains(&member))).collect();
        let side = Tensor::from_slice(&side, ("node", MEMBERS))?;
        let known = Tensor::new(KNOWN)?.refine_names(["node"])?;

        let network =
            Network { first: GraphAttention::new(MEMBERS, 4, 8)?, second: GraphAttention::new(32, 1, 2)? };
        println!(
            "{} members, {} edges, {} numbers to learn",
            MEMBERS,
            edges.to.numel(),
            network.num_parameters()
        );
        let mut optimizer = AdamW::builder(network.parameters()).lr(0.01).weight_decay(0.05).build()?;
        let of_known = side.index_select(&known, "node")?;
        for step in 1..=flags.steps {
            let logits = network.forward(&x, &edges)?;
            let loss = F::cross_entropy(&logits.index_select(&known, "node")?, &of_known, "side")?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
            if step % 50 == 0 || step == flags.steps {
                let right = logits.argmax("side")?.eq(&side)?.sum("node")?.item::<i64>()?;
                println!(
                    "step {step:4}  loss {:.4}  {right} of {MEMBERS} members on the right side",
                    loss.item::<f64>()?
                );
            }
        }
        let wrong = no_grad(|| network.forward(&x, &edges))?.argmax("side")?.ne(&side)?;
        println!("on the wrong side: {:?}", wrong.nonzero()?.to_vec::<i64>()?);
        Ok(())
    })
}
