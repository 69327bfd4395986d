//! No names are taken in vain: if two names of one input are swapped, or one is another, the call is an error
//! or gives another result.

use crate::recipe::{Recipe, identical};
use namegrad::ops::Op;
use namegrad::prelude::*;
use namegrad_tests::draw::{Draw, Drawn, SEED};
use std::collections::BTreeMap;

const NAMES: [&str; 6] = ["A", "B", "C", "D", "E", "F"];

/// Inputs whose names say nothing about what the op does with them, and the reason.
const FREE: [(&str, &str, &str); 13] = [
    ("convolution_input", "weight", GRADIENT),
    ("convolution_weight", "g", GRADIENT),
    ("sample_at_input", "grid", GRADIENT),
    ("fractional_max_pool", "samples", RANDOM),
    ("nn.fractional_max_pool2d", "samples", RANDOM),
    ("nn.fractional_max_pool3d", "samples", RANDOM),
    ("kron", "other", "every dim is multiplied with one of the other tensor, not matched"),
    ("type_as", "other", "only the dtype counts"),
    ("resize_as_", "other", "only the sizes count"),
    ("bucketize", "boundaries", "a vector that belongs to no dim"),
    ("nn.embedding", "weight", ROWS),
    ("nn.embedding_bag", "weight", ROWS),
    ("take", "index", "positions in row-major order"),
];
const ROWS: &str = "its rows belong to numbers and to no dim";
const GRADIENT: &str = "the gradient of another op, which has checked the names";
const RANDOM: &str = "random numbers, which are as random in any order";

/// Inputs with dims whose names are checked in strict mode alone, and the reason.
const FREE_UNLESS_STRICT: [(&str, &str, &str); 16] = [
    ("addbmm", "a", CONTRACTED),
    ("addmm", "a", CONTRACTED),
    ("addmm", "b", CONTRACTED),
    ("baddbmm", "a", CONTRACTED),
    ("baddbmm", "b", CONTRACTED),
    ("bmm", "other", CONTRACTED),
    ("matmul", "other", CONTRACTED),
    ("mm", "other", CONTRACTED),
    ("nn.bilinear", "other", CONTRACTED),
    ("tensordot", "other", CONTRACTED),
    ("index_add", "source", "along `dim`, it has the name of the index, which has none here"),
    ("index_copy", "source", "as in index_add"),
    ("index_reduce", "source", "as in index_add"),
    ("scaled_dot_product_attention", "key", UNNAMED),
    ("scaled_dot_product_attention", "value", UNNAMED),
    ("scaled_dot_product_attention", "attn_mask", UNNAMED),
];
const UNNAMED: &str = "other inputs are without names here";
const CONTRACTED: &str = "the specification contracts dims of different names";

/// A call in which every tensor of as many dims as the first has its names.
fn named(call: &Drawn) -> Drawn {
    let names = &NAMES[..call.tensors[0].1[0].ndim()];
    call.map(|x| match x.ndim() == names.len() {
        true => x.rename(None).unwrap().rename(names).unwrap(),
        false => x.rename(None).unwrap(),
    })
}

/// The names of a tensor of `ndim` dims with two of them swapped, and with one replaced.
fn others(ndim: usize) -> Vec<Vec<&'static str>> {
    let own = NAMES[..ndim].to_vec();
    let swapped = [(0, 1), (ndim - 2, ndim - 1)].map(|(i, j)| {
        let mut names = own.clone();
        names.swap(i, j);
        names
    });
    let replaced = (0..ndim).map(|dim| {
        let mut names = own.clone();
        names[dim] = "other";
        names
    });
    swapped.into_iter().chain(replaced).collect()
}

/// The first call with other names of an input whose result is the same.
fn ignored(op: &Op, call: &Drawn, result: &[Tensor], strict: bool) -> Option<String> {
    let inputs = call.tensors.iter().enumerate().skip(1);
    for (at, k) in inputs.flat_map(|(at, (_, tensors))| (0..tensors.len()).map(move |k| (at, k))) {
        let (name, x) = (call.tensors[at].0, &call.tensors[at].1[k]);
        let lists = [&FREE[..], if strict { &[] } else { &FREE_UNLESS_STRICT }];
        let free = lists.concat().iter().any(|(of, input, _)| (*of, *input) == (op.info.name, name));
        if free || !x.has_names() || x.ndim() < 2 || x.numel() < 2 {
            continue;
        }
        for names in others(x.ndim()) {
            let mut renamed = call.clone();
            renamed.tensors[at].1[k] = x.rename(&names[..]).unwrap();
            let same = |new: &[Tensor]| {
                new.len() == result.len() && new.iter().zip(result).all(|(a, b)| identical(a, b))
            };
            // Few integers may be the same by chance, and equal elements say nothing of their order.
            let tells = result.iter().any(|y| {
                let elements = y.to(DType::F64).unwrap().to_vec::<f64>().unwrap();
                let differ = elements.iter().any(|x| *x != elements[0]);
                y.dtype().is_floating_point() && (differ || y.numel() == 1) || differ && y.numel() > 3
            });
            if tells && renamed.call(op).is_ok_and(|new| same(&new)) {
                return Some(format!("{}: `{name}` with names {names:?}, in {call:?}", op.info.name));
            }
        }
    }
    None
}

#[test]
fn other_names_are_an_error_or_another_result() {
    let mut found = BTreeMap::new();
    for round in 0..160 {
        let (strict, seed) = (round % 2 == 1, SEED.wrapping_add(round as u64));
        let sizes = [vec![3, 3], vec![3, 3, 3], vec![2, 3, 3], vec![2, 3, 3, 3]][round / 2 % 4].clone();
        let dtype = [DType::F32, DType::I64, DType::Bool][round / 8 % 3];
        let x = Recipe { named: vec![true; sizes.len()], sizes, dtype, seed, steps: vec![] }.tensor(false);
        for op in namegrad_tests::ops().filter(|op| op.info.tensors.len() > 1) {
            let mut call = named(&Drawn::of(op, std::slice::from_ref(&x), &mut Draw::new(seed)));
            call.args.retain(|(name, _)| *name != "scale"); // times 0, all keys are alike
            let how = || call.call(op).ok().and_then(|result| ignored(op, &call, &result, strict));
            if let Some(how) = if strict { namegrad::names::strict(how) } else { how() } {
                found.entry(op.info.name).or_insert(format!("{how}, strict: {strict}"));
            }
        }
    }
    let found: Vec<String> = found.into_values().collect();
    assert!(found.is_empty(), "NAMEGRAD_SEED={} finds ops that ignore names:\n{}", *SEED, found.join("\n"));
}
