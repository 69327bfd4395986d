//! The rules of names in the rows are true: dims of each input are permuted, swapped and renamed, and the call
//! does what its row says. Above all, no names are taken in vain: the result is the permuted result or an
//! error, and never another number, nor the same number under a wrong name.

use crate::recipe::{Recipe, identical};
use namegrad::core::names::{Meets, Outcome};
use namegrad::ops::{self, Op, Value};
use namegrad::prelude::*;
use namegrad_tests::draw::{Draw, Drawn, SEED};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

const NAMES: [&str; 6] = ["A", "B", "D", "E", "F", "G"]; // without that of channels
const OWN: [&str; 6] = ["P", "Q", "R", "S", "T", "U"];

/// Inputs that are tested elsewhere, and why.
const ELSEWHERE: [(&str, &str, &str); 7] = [
    ("cholesky_solve", "factor", "the dim between it and its transpose meets no other"),
    ("diagonal_scatter", "src", "its last dim is along the diagonal"),
    ("fill", "value", "a number"),
    ("index_fill", "value", "a number"),
    ("masked_fill", "value", "a number"),
    ("masked_scatter", "source", "a matrix is unified, a vector is read element by element"),
    ("nn.linear_cross_entropy", "linear_weight", "its rows are classes, which no other tensor has"),
];

/// An op, its tensors and its arguments.
type ByHand = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// Calls of ops that random ones rarely fit. Integers, lengths, masks and probabilities are marked by a letter.
const BY_HAND: [ByHand; 69] = [
    ("binomial", "x p A=3 B=3; prob p A=3 B=3", &[]),
    ("cov", "x A=3 B=4; fweights n B=4; aweights p B=4", &[("dim", "B")]),
    ("cdist", "x A=3 B=4; other P=2 B=4", &[]),
    ("histogram", "x A=3 B=3; weight p A=3 B=3", &[]),
    ("histogramdd", "x A=3 B=2; weight p A=3", &[("bins", "2")]),
    ("diff", "x A=3 B=3; prepend A=1 B=3; append A=2 B=3", &[("dim", "A")]),
    ("trapezoid", "y A=3 B=4; x B=4", &[("dim", "B")]),
    ("cumulative_trapezoid", "y A=3 B=4; x B=4", &[("dim", "B")]),
    ("select_scatter", "x A=3 B=3 C=3; src B=3 C=3", &[("dim", "A"), ("index", "1")]),
    ("slice_scatter", "x A=3 B=3; src A=2 B=3", &[("dim", "A"), ("start", "0"), ("end", "2")]),
    ("isin", "x A=3 B=3; test_elements i P=2", &[]),
    ("rsub", "x A=3 B=3; other A=3 B=3", &[]),
    ("take_along_dim", "x A=3 B=4; indices i A=3 B=2", &[("dim", "B")]),
    ("tensorsolve", "x A=2 B=3 C=6; other A=2 B=3", &[]),
    ("layer_norm", "x A=2 B=3 D=3; weight B=3 D=3; bias B=3 D=3", &[("dims", "B D")]),
    (
        "recurrent",
        "x A=3 B=4 C=3; hx B=4 P=4; w_ih Q=16 C=3; w_hh Q=16 P=4; cx B=4 R=4; b_ih Q=16; b_hh Q=16; w_hr P=4 R=4; lengths n B=4",
        &[("cell", "lstm")],
    ),
    (
        "scaled_dot_product_attention",
        "query A=2 B=2 C=3 D=4; key A=2 B=2 E=5 D=4; value A=2 B=2 E=5 Z=3; attn_mask A=2 B=2 C=3 E=5",
        &[],
    ),
    ("masked_scatter", "x A=3 B=3; mask b A=3 B=3; source A=3 B=3", &[]),
    (
        "nn.multilabel_soft_margin_loss",
        "x A=3 B=3; target i A=3 B=3; weight p A=3 B=3",
        &[("class_dim", "B")],
    ),
    ("nn.cross_entropy", "logits A=3 B=3; target p A=3 B=3; weight p B=3", &[("class_dim", "B")]),
    ("segment_sum", "x A=4 B=3; index i A=4", &[("dim", "A"), ("segments", "2")]),
    ("segment_mean", "x A=4 B=3; index i A=4", &[("dim", "A"), ("segments", "2")]),
    ("segment_max", "x A=4 B=3; index i A=4", &[("dim", "A"), ("segments", "2")]),
    ("segment_min", "x A=4 B=3; index i A=4", &[("dim", "A"), ("segments", "2")]),
    ("segment_softmax", "x A=4 B=3; index i A=4", &[("dim", "A"), ("segments", "2")]),
    ("nn.embedding", "x i A=3 B=2; weight P=5 Q=3", &[]),
    ("nn.embedding_renorm", "x i A=3 B=2; weight P=5 Q=3", &[]),
    (
        "nn.instance_norm",
        "x A=2 B=3 C=4; running_mean B=3; running_var p B=3; weight B=3; bias B=3",
        &[("dim", "B"), ("dims", "C")],
    ),
    ("nn.binary_cross_entropy", "x p A=3 B=4; target p A=3 B=4; weight p A=3 B=4", &[]),
    (
        "nn.binary_cross_entropy_with_logits",
        "logits A=3 B=4; target p A=3 B=4; weight p A=3 B=4; pos_weight p A=3 B=4",
        &[],
    ),
    ("bincount", "x i A=5; weights A=5", &[]),
    ("index_put", "x A=3 B=3; values B=3", &[("indices", "0")]),
    ("sample_at_input", "x A=2 B=3 C=4 D=4; grid A=2 Q=4 R=4 S=2", &[("sampling", "linear"), ("sizes", "4")]),
    ("nn.linear", "x A=3 B=4; weight P=5 B=4; bias P=5", &[]),
    ("nn.cross_entropy", "logits A=3 B=4; target i A=3; weight p B=4", &[("class_dim", "B")]),
    ("nn.nll_loss", "log_probabilities A=3 B=4; target i A=3; weight p B=4", &[("class_dim", "B")]),
    ("nn.multi_margin_loss", "x A=3 B=4; target i A=3; weight p B=4", &[("class_dim", "B")]),
    ("nn.multilabel_margin_loss", "x A=3 B=4; target i A=3 B=4", &[("class_dim", "B")]),
    ("nn.multilabel_soft_margin_loss", "x A=3 B=4; target i A=3 B=4; weight p B=4", &[("class_dim", "B")]),
    (
        "nn.linear_cross_entropy",
        "x A=3 B=4; linear_weight P=5 B=4; target i A=3; linear_bias P=5; weight p P=5",
        &[],
    ),
    ("nn.gaussian_nll_loss", "x A=3 B=3; target A=3 B=3; var p A=3 B=3", &[]),
    ("nn.embedding_bag", "x i A=3; weight P=5 Q=3; offsets z R=2", &[("mode", "sum")]),
    ("scatter", "x A=3 B=4; index i A=3 P=2; source A=3 P=2", &[("dim", "B")]),
    ("addmv", "x A=3; a A=3 B=4; b B=4", &[]),
    ("addr", "x A=3 B=4; a A=3; b B=4", &[]),
    ("addbmm", "x A=3 B=4; a C=2 A=3 Z=5; b C=2 Z=5 B=4", &[]),
    ("convolution", "x A=2 B=3 C=5; weight P=4 B=3 C=2; bias P=4", &[]),
    ("sample_at", "x A=2 B=3 C=4 D=4; grid A=2 C=3 D=3 Z=2", &[("sampling", "linear")]),
    (
        "scaled_dot_product_attention",
        "query A=2 B=3 C=4; key A=2 D=5 C=4; value A=2 D=5 Z=3; attn_mask A=2 B=3 D=5",
        &[],
    ),
    ("recurrent", "x A=3 B=2 C=3; hx B=2 P=4; w_ih Q=4 C=3; w_hh Q=4 P=4", &[("cell", "tanh")]),
    ("put", "x A=3 B=3; index i P=3 Q=2; source P=3 Q=2", &[]),
    ("isclose", "x A=3 B=3; other A=3 B=3", &[]),
    ("float_power", "x A=3 B=3; exponent A=3 B=3", &[]),
    ("ldexp", "x A=3 B=3; other A=3 B=3", &[]),
    ("nextafter", "x A=3 B=3; other A=3 B=3", &[]),
    ("bernoulli_", "x A=3 B=3; p p A=3 B=3", &[]),
    ("normal", "mean A=3 B=3; std p A=3 B=3", &[]),
    ("resize_as_", "x A=3 B=3; other A=3 B=3", &[]),
    (
        "nn.attention",
        "q A=2 B=3 C=4; k A=2 D=5 C=4; v A=2 D=5 Z=3; attn_mask b B=3 D=5; bias A=2 B=3 D=5",
        &[("seq", "D"), ("embed", "C")],
    ),
    ("nn.conv1d", "x A=2 B=3 C=5; weight P=4 B=3 C=2; bias P=4", &[]),
    ("nn.conv2d", "x A=2 B=3 C=5 D=4; weight P=4 B=3 C=2 D=2; bias P=4", &[]),
    ("nn.conv3d", "x A=2 B=3 C=5 D=4 E=3; weight P=4 B=3 C=2 D=2 E=1; bias P=4", &[]),
    ("nn.conv_transpose1d", "x A=2 B=3 C=5; weight B=3 P=4 C=2; bias P=4", &[]),
    ("nn.conv_transpose2d", "x A=2 B=3 C=5 D=4; weight B=3 P=4 C=2 D=2; bias P=4", &[]),
    ("nn.conv_transpose3d", "x A=2 B=3 C=5 D=4 E=3; weight B=3 P=4 C=2 D=2 E=1; bias P=4", &[]),
    ("nn.embedding_bag", "x i A=3 B=2; weight P=5 Q=3; per_sample_weights A=3 B=2", &[("mode", "sum")]),
    ("nn.grid_sample", "x A=2 B=3 C=4 D=4; grid A=2 C=3 D=3 Z=2", &[]),
    ("nn.bilinear", "x A=3 B=4; other A=3 C=2; weight P=5 B=4 C=2; bias P=5", &[]),
    (
        "nn.ctc_loss",
        "log_probs A=6 B=2 C=4; targets n B=2 P=3; input_lengths n B=2; target_lengths n B=2",
        &[("time_dim", "A"), ("class_dim", "C")],
    ),
];

/// A call that is written by hand.
fn by_hand(tensors: &'static str, args: &[(&'static str, &str)]) -> Drawn {
    let tensor = |text: &'static str| {
        let mut words = text.split(' ').filter(|word| !word.is_empty());
        let name = words.next().unwrap();
        let (dims, kinds): (Vec<_>, Vec<_>) = words.partition(|word| word.contains('='));
        let dims: Vec<(&str, usize)> = dims
            .iter()
            .map(|dim| dim.split_once('=').unwrap())
            .map(|(name, size)| (name, size.parse().unwrap()))
            .collect();
        let sizes: Vec<usize> = dims.iter().map(|(_, size)| *size).collect();
        let x = Draw::new(text.len() as u64).tensor(&sizes, DType::F32);
        let x = match kinds.first().copied() {
            None => x,
            Some("i") => x.gt(0).unwrap().to(DType::I64).unwrap(),
            Some("n") => x.full_like(2.0).unwrap().to(DType::I64).unwrap(),
            Some("z") => x.full_like(0.0).unwrap().to(DType::I64).unwrap(),
            Some("b") => x.gt(-2.0).unwrap(),
            _ => x.sigmoid().unwrap(),
        };
        (name, x.rename(dims.iter().map(|(name, _)| *name).collect::<Vec<_>>()).unwrap())
    };
    let one = |text: &str| text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from);
    let value = |text: &str| match text.contains(' ') {
        true => Value::List(text.split(' ').map(one).collect()),
        false => one(text),
    };
    let args = args.iter().map(|(name, text)| (*name, value(text))).collect();
    Drawn::with(tensors.split("; ").map(tensor).collect(), args)
}

type Names = Vec<&'static str>;

/// The position of the dim that an argument says.
fn dim_of(call: &Drawn, arg: &str, x: &Tensor) -> Option<usize> {
    match arg {
        "last" => x.ndim().checked_sub(1),
        "channels" => Some(usize::from(x.ndim() > 1)),
        "batch" => Some(0),
        _ => match call.args.iter().find(|(name, _)| *name == arg).map(|(_, value)| value) {
            Some(Value::Int(dim)) if x.ndim() > 0 => Some(dim.rem_euclid(x.ndim() as i64) as usize),
            Some(Value::Text(text)) => NAMES.iter().position(|name| name == text),
            Some(_) => None,
            None => Some(usize::from(x.ndim() > 1)).filter(|dim| *dim < x.ndim()),
        },
    }
}

/// The names that an input of `ndim` dims can have beside those of the first tensor, by its rule.
fn candidates(meets: Meets, call: &Drawn, x: &Tensor, ndim: usize) -> Vec<Names> {
    let own: Names = NAMES[..x.ndim()].to_vec();
    let without = |dim: usize| {
        own.iter().enumerate().filter(|(d, _)| *d != dim).map(|(_, name)| *name).collect::<Names>()
    };
    let trailing = || own[own.len().saturating_sub(ndim)..].to_vec();
    let mut lists: Vec<Names> = match meets {
        Meets::First => vec![own.clone()],
        Meets::Without(arg) => dim_of(call, arg, x).map(without).into_iter().chain([own.clone()]).collect(),
        Meets::Along("batch") => own.iter().rev().map(|name| vec![*name]).collect(),
        Meets::Picks(_) => vec![OWN[..ndim].to_vec()],
        Meets::Along(arg) => {
            dim_of(call, arg, x).into_iter().map(|dim| vec![own[dim]]).chain([trailing()]).collect()
        }
        Meets::Contracted if own.is_empty() => vec![],
        Meets::Contracted => {
            let last = own[own.len() - 1];
            let batch = &own[..ndim.saturating_sub(2).min(own.len() - 1)];
            let rows = own.get(own.len().wrapping_sub(2)).copied().unwrap_or("K");
            let matrices =
                [[last, "Z"], [rows, "K"], ["K", last]].map(|matrix| [batch, &matrix[..]].concat());
            [vec![vec![last], vec!["K"]], matrices.into()].concat()
        }
        Meets::Own | Meets::Free | Meets::Renames(_) => vec![OWN[..ndim].to_vec()],
        Meets::Unified | Meets::Matched | Meets::Beside(_) | Meets::By(_) | Meets::Aligned => {
            vec![trailing()]
        }
    };
    lists.retain(|names| names.len() == ndim && names.iter().collect::<BTreeSet<_>>().len() == ndim);
    lists
}

/// A call in which as many tensors as possible have names, if there is a valid one, and its result.
fn named(op: &Op, call: &Drawn, strict: bool) -> Option<(Drawn, Vec<Tensor>)> {
    let mut bare = call.map(|x| x.rename(None).unwrap());
    let x = bare.tensors.first()?.1.first()?.clone();
    // Dims by name, so that the call says the same for any order of the dims.
    let is_dim = |name: &str| {
        op.info.args.iter().any(|arg| arg.name == name && arg.ty.contains("Dim") || arg.ty == "Reduced")
    };
    for arg in op.info.args.iter().filter(|arg| is_dim(arg.name)) {
        if let Some(Ok(dim)) = arg.default.map(str::parse::<i64>)
            && bare.args.iter().all(|(name, _)| *name != arg.name)
        {
            bare.args.push((arg.name, dim.into()));
        }
    }
    for (_, value) in bare.args.iter_mut().filter(|(name, _)| is_dim(name)) {
        by_name(value, x.ndim());
    }
    let mut open = Vec::new();
    for (at, (name, tensors)) in bare.tensors.iter().enumerate() {
        let meets = op.info.tensors.iter().find(|tensor| tensor.name == *name)?.meets;
        for (k, y) in tensors.iter().enumerate() {
            let meets = if (at, k) == (0, 0) { Meets::First } else { meets };
            let lists = candidates(meets, &bare, &x, y.ndim());
            if y.ndim() > 0 && !lists.is_empty() {
                open.push((at, k, lists));
            }
        }
    }
    let count: usize = open.iter().map(|(.., lists)| lists.len()).product();
    // All inputs with names, or one without.
    for unnamed in std::iter::once(None).chain((1..open.len()).map(Some)) {
        for mut choice in 0..count {
            let mut named = bare.clone();
            for (number, (at, k, lists)) in open.iter().enumerate() {
                let names = &lists[choice % lists.len()];
                choice /= lists.len();
                if unnamed != Some(number) {
                    named.tensors[*at].1[*k] = bare.tensors[*at].1[*k].rename(&names[..]).unwrap();
                }
            }
            let result = in_mode(strict, || named.call(op));
            if let Ok(result) = result {
                return Some((named, result));
            }
        }
    }
    None
}

/// Dims by the names of the first tensor.
fn by_name(value: &mut Value, ndim: usize) {
    match value {
        Value::Int(dim) if (-(ndim as i64)..ndim as i64).contains(dim) => {
            *value = NAMES[dim.rem_euclid(ndim as i64) as usize].into();
        }
        Value::List(all) => all.iter_mut().for_each(|dim| by_name(dim, ndim)),
        _ => {}
    }
}

fn in_mode<T>(strict: bool, f: impl FnOnce() -> T) -> T {
    if strict { namegrad::names::strict(f) } else { f() }
}

/// Are the elements different enough that another order of them shows? Few integers may be the same by
/// chance, and equal elements say nothing of their order.
fn tells(result: &[Tensor]) -> bool {
    result.iter().any(|y| {
        let elements = y.to(DType::F64).unwrap().to_vec::<f64>().unwrap();
        let differ = elements.iter().any(|x| *x != elements[0]);
        y.dtype().is_floating_point() && (differ || y.numel() == 1) || differ && y.numel() > 3
    })
}

fn same(new: &[Tensor], result: &[Tensor]) -> bool {
    new.len() == result.len() && new.iter().zip(result).all(|(a, b)| identical(a, b))
}

/// The same numbers, whatever the names.
fn same_numbers(new: &[Tensor], result: &[Tensor]) -> bool {
    let bare = |all: &[Tensor]| all.iter().map(|y| y.rename(None).unwrap()).collect::<Vec<_>>();
    same(&bare(new), &bare(result))
}

/// The same tensors, up to the order of their dims and of sums.
fn same_by_name(new: &[Tensor], result: &[Tensor]) -> bool {
    let one = |a: &Tensor, b: &Tensor| -> Result<bool> {
        let all_named = b.ndim() > 1 && (0..b.ndim()).all(|dim| b.name(dim).is_some());
        let a = if all_named { a.align_as(b)? } else { a.clone() };
        if a.shape() != b.shape() {
            return Ok(false);
        }
        let options = IscloseOptions::new().rtol(1e-4).atol(1e-5).equal_nan(true);
        Ok(identical(&a, b) || b.dtype().is_floating_point() && a.allclose_with(b, options)?)
    };
    new.len() == result.len() && new.iter().zip(result).all(|(a, b)| one(a, b).unwrap_or(false))
}

/// What is wrong with the rule of an input of this call, if anything.
fn untrue(op: &Op, call: &Drawn, result: &[Tensor], (at, k): (usize, usize), strict: bool) -> Option<String> {
    let (input, x) = (call.tensors[at].0, &call.tensors[at].1[k]);
    let meets = match (at, k) {
        (0, 0) => Meets::First,
        _ => op.info.tensors.iter().find(|tensor| tensor.name == input)?.meets,
    };
    let names: Names = (0..x.ndim())
        .map(|dim| {
            [NAMES, OWN]
                .concat()
                .into_iter()
                .chain(["Z", "K"])
                .find(|name| x.name(dim).is_some_and(|own| own.as_str() == *name))
        })
        .collect::<Option<_>>()?;
    let with = |other: Tensor| {
        let mut changed = call.clone();
        changed.tensors[at].1[k] = other;
        (in_mode(strict, || changed.call(op)), changed)
    };
    let say = |what: &str, changed: &Drawn, error: Option<&Error>| {
        let error = error.map_or(String::new(), |error| format!(", which fails: {error}"));
        Some(format!("{}: `{input}` is {meets:?}, but {what}{error}, in {:?}", op.info.name, changed))
    };
    if x.numel() < 2 || ELSEWHERE.iter().any(|(of, name, _)| (*of, *name) == (op.info.name, input)) {
        return None; // one element belongs to no dim
    }
    let all_named = call.tensors.iter().all(|(_, all)| all.iter().all(|x| x.ndim() == 0 || x.has_names()));
    let free = matches!(meets, Meets::Own | Meets::Free);
    // Another order.
    let mut orders: Vec<Names> = vec![names.iter().rev().copied().collect()];
    let mut turned = names.clone();
    turned.rotate_left(1.min(names.len()));
    orders.push(turned);
    for order in orders.into_iter().filter(|order| *order != names && !free && meets != Meets::First) {
        let (new, changed) = with(x.align_to(&order[..]).unwrap());
        match new {
            Ok(new) if same_by_name(&new, result) => {}
            Ok(_) if meets == Meets::Contracted && !strict => {}
            Ok(_) if matches!(meets, Meets::By(_)) && !all_named => {}
            Ok(_) => return say("in another order it gives another result", &changed, None),
            Err(error) if matches!(meets, Meets::Aligned) => {
                return say("another order is an error", &changed, Some(&error));
            }
            Err(_) => {}
        }
    }
    // Another name, and two names swapped.
    let fresh = (0..names.len()).map(|dim| {
        let mut other = names.clone();
        other[dim] = "fresh";
        (Some(dim), other)
    });
    let swaps = (1..names.len()).map(|dim| {
        let mut other = names.clone();
        other.swap(dim - 1, dim);
        (None, other)
    });
    let beside = match meets {
        Meets::Beside(arg) => dim_of(call, arg, &call.tensors[0].1[0]),
        _ => None,
    };
    let is_own = |name: &str| {
        let all = call.tensors.iter().flat_map(|(_, all)| all);
        all.filter(|x| (0..x.ndim()).any(|dim| x.name(dim).is_some_and(|own| own.as_str() == name))).count()
            < 2
    };
    for (dim, other) in fresh.chain(swaps) {
        let (new, changed) = with(x.rename(&other[..]).unwrap());
        let new = match (new, meets) {
            (Err(error), Meets::Free | Meets::Own) if dim.is_some() => {
                return say("another name is an error", &changed, Some(&error));
            }
            (Err(_), _) => continue,
            (Ok(new), _) => new,
        };
        let wrong = match meets {
            Meets::Free if !same(&new, result) => "names change the result",
            Meets::Own if !same_numbers(&new, result) => "names change numbers",
            Meets::First | Meets::Free | Meets::Own => continue,
            Meets::Contracted if !strict => continue,
            Meets::Beside(_) if dim.is_some() && dim == beside => continue,
            Meets::Picks(_)
                if dim.is_some() || names.iter().zip(&other).all(|(a, b)| a == b || is_own(a)) =>
            {
                continue;
            }
            Meets::Aligned if dim.is_some_and(|dim| is_own(names[dim])) => continue,
            _ if !all_named => continue,
            Meets::Unified | Meets::Matched | Meets::Without(_) | Meets::Along(_) => {
                "other names are no error"
            }
            _ if same(&new, result) && tells(result) => "with other names it is the same",
            _ => continue,
        };
        return say(wrong, &changed, None);
    }
    None
}

/// The names that the arguments of a call give.
fn given(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        // The words of a pattern are names.
        Value::Text(text) => names.extend(text.split([' ', '(', ')', ':']).map(String::from)),
        Value::List(all) => all.iter().for_each(|value| given(value, names)),
        _ => {}
    }
}

/// Ops whose result is more than one word says, and what it is.
const MORE: [(&str, &str); 3] = [
    ("repeat_interleave", "several dims become one without a name"),
    ("take_along_dim", "several dims become one without a name"),
    ("unique_consecutive", "several dims become one without a name"),
];

/// What is wrong with what the row says about its results, if anything.
fn untrue_result(op: &Op, call: &Drawn, result: &[Tensor]) -> Option<String> {
    let names_of =
        |x: &Tensor| (0..x.ndim()).map(|dim| x.name(dim).map(|name| name.to_string())).collect::<Vec<_>>();
    let x = call.tensors.first()?.1.first()?;
    let of = |name: &str| call.tensors.iter().find(|(of, _)| *of == name).map(|(_, all)| &all[0]);
    let mut new = BTreeSet::new();
    call.args.iter().for_each(|(_, value)| given(value, &mut new));
    let renames = call.tensors.iter().any(|(name, _)| {
        let meets = op.info.tensors.iter().find(|tensor| tensor.name == *name).map(|tensor| tensor.meets);
        matches!(meets, Some(Meets::Renames(_) | Meets::Own))
    });
    for (at, y) in result.iter().enumerate() {
        let outcome = op.info.names[at.min(op.info.names.len() - 1)];
        let all: BTreeSet<String> =
            call.tensors.iter().flat_map(|(_, all)| all.iter().flat_map(names_of)).flatten().collect();
        let (own, made) = (names_of(x), names_of(y));
        let within = |allowed: &dyn Fn(&String) -> bool| {
            made.iter().flatten().all(|name| allowed(name) || new.contains(name))
        };
        let mut sorted = [own.clone(), made.clone()];
        sorted.iter_mut().for_each(|names| names.sort());
        let fits = match outcome {
            Outcome::Keeps if renames => within(&|name| all.contains(name)),
            Outcome::Keeps => {
                within(&|name| own.contains(&Some(name.clone())))
                    && own.iter().all(|name| made.contains(name))
            }
            Outcome::Removes => {
                within(&|name| own.contains(&Some(name.clone())) || renames && all.contains(name))
            }
            Outcome::Permutes => sorted[0] == sorted[1],
            Outcome::Unifies | Outcome::Contracts => within(&|name| all.contains(name)),
            Outcome::Of(input) => of(input).is_none_or(|of| {
                let of = names_of(of);
                within(&|name| of.contains(&Some(name.clone())) || own.contains(&Some(name.clone())))
                    && of.iter().flatten().all(|name| made.contains(&Some(name.clone())))
            }),
            // An ellipsis in a pattern keeps names.
            Outcome::Called(_) => within(&|name| new.contains("...") && own.contains(&Some(name.clone()))),
            Outcome::Reshapes => within(&|name| own.contains(&Some(name.clone()))),
            Outcome::Unnamed => made.iter().all(Option::is_none),
        };
        if !fits && MORE.iter().all(|(name, _)| *name != op.info.name) {
            return Some(format!("{}: {outcome:?}, but has {made:?}, in {call:?}", op.info.name));
        }
    }
    None
}

/// Random calls of every op and function with names, in plain or strict mode.
fn calls(rounds: Range<usize>, least: usize, mut each: impl FnMut(&Op, &Drawn, &[Tensor], bool)) {
    calls_of(&|_| true, rounds, least, &mut each);
}

/// What is done with a call that has a result: the op, the call, the result, and whether names were strict.
type EachCall<'a> = dyn FnMut(&Op, &Drawn, &[Tensor], bool) + 'a;

/// The same for some ops.
fn calls_of(chosen: &dyn Fn(&Op) -> bool, rounds: Range<usize>, least: usize, each: &mut EachCall<'_>) {
    for round in rounds {
        let (strict, seed) = (round % 2 == 1, SEED.wrapping_add(round as u64));
        let sizes =
            [vec![3, 3], vec![3, 3, 3], vec![2, 3, 3], vec![2, 3, 3, 3], vec![3]][round / 2 % 5].clone();
        let dtype = [DType::F32, DType::I64, DType::Bool][round / 10 % 3];
        let x = Recipe { named: vec![true; sizes.len()], sizes, dtype, seed, steps: vec![] }.tensor(false);
        for op in namegrad_tests::ops().filter(|op| chosen(op)) {
            let mut call = Drawn::of(op, std::slice::from_ref(&x), &mut Draw::new(seed));
            call.args.retain(|(name, _)| *name != "scale"); // times 0, all keys are alike
            if call.tensors.iter().map(|(_, all)| all.len()).sum::<usize>() < least {
                continue;
            }
            if let Some((call, result)) = named(op, &call, strict) {
                each(op, &call, &result, strict);
            }
        }
    }
}

#[test]
fn inputs_meet_as_their_rows_say() {
    let (mut found, reached) = (BTreeMap::new(), RefCell::new(BTreeSet::new()));
    let mut check = |op: &Op, call: &Drawn, result: &[Tensor], strict: bool| {
        for (at, (name, all)) in call.tensors.iter().enumerate() {
            for (k, x) in all.iter().enumerate() {
                if x.has_names() && x.numel() > 1 {
                    reached.borrow_mut().insert((op.info.name, *name));
                }
                if let Some(how) = untrue(op, call, result, (at, k), strict) {
                    found.entry((op.info.name, *name)).or_insert(format!("{how}, strict: {strict}"));
                }
            }
        }
    };
    calls(0..200, 2, &mut check);
    for (name, tensors, args) in BY_HAND {
        let (op, call) = (ops::find(name).unwrap(), by_hand(tensors, args));
        for strict in [false, true] {
            let result = in_mode(strict, || call.call(op));
            let result = result.unwrap_or_else(|error| panic!("{name}, strict: {strict}: {error}"));
            check(op, &call, &result, strict);
        }
    }
    // Few random calls of some ops have all of their optional inputs.
    let missed = |reached: &BTreeSet<_>| -> Vec<(&str, &str)> {
        let several = namegrad_tests::ops().filter(|op| op.info.tensors.len() > 1);
        let inputs =
            several.flat_map(|op| op.info.tensors[1..].iter().map(|input| (op.info.name, input.name)));
        let known = |input: &(&str, &str)| ELSEWHERE.iter().any(|(op, name, _)| (*op, *name) == *input);
        inputs.filter(|input| !reached.contains(input) && !known(input)).collect()
    };
    for start in (200..5000).step_by(200) {
        let left: BTreeSet<&str> = missed(&reached.borrow()).into_iter().map(|(op, _)| op).collect();
        calls_of(&|op| left.contains(op.info.name), start..start + 200, 2, &mut check);
    }
    let found: Vec<String> = found.into_values().collect();
    assert!(found.is_empty(), "NAMEGRAD_SEED={} finds rules that are not true:\n{}", *SEED, found.join("\n"));
    let missed = missed(&reached.borrow());
    assert!(missed.is_empty(), "no call reaches {missed:?}");
}

#[test]
fn results_have_the_names_that_their_rows_say() {
    let mut found = BTreeMap::new();
    calls(0..60, 1, |op, call, result, _| {
        if let Some(how) = untrue_result(op, call, result) {
            found.entry(op.info.name).or_insert(how);
        }
    });
    let found: Vec<String> = found.into_values().collect();
    assert!(found.is_empty(), "NAMEGRAD_SEED={} finds rules that are not true:\n{}", *SEED, found.join("\n"));
}
/// Applies the repair of an error about the order of dims to a call, such as `y.align_as(&x)?`.
/// A name is that of an input, or `x` and `y` are the first and the one in another order.
fn repaired(op: &Op, call: &Drawn, at: usize, repair: &str) -> Option<Drawn> {
    let (before, after) = repair.split_once(".align_")?;
    let word =
        |text: &str| text.chars().rev().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let name: String = word(before).chars().rev().collect();
    let place = |name: &str| match call.tensors.iter().position(|(input, _)| *input == name) {
        Some(place) => Some(place),
        None => {
            ["x", "y"].iter().position(|other| *other == name).map(|second| if second == 1 { at } else { 0 })
        }
    };
    let mut repaired = call.clone();
    let aligned = place(&name)?;
    let own = repaired.tensors[aligned].1.last()?;
    let new = match after.strip_prefix("as(&") {
        Some(rest) => {
            let like: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            own.align_as(&call.tensors[place(&like)?].1[0]).ok()?
        }
        None => {
            let list = after.strip_prefix("to([")?.split_once(']')?.0;
            own.align_to(list.split(", ").map(|name| name.trim_matches('"')).collect::<Vec<_>>()).ok()?
        }
    };
    let _ = op;
    *repaired.tensors[aligned].1.last_mut()? = new;
    Some(repaired)
}

/// What meets element by element has its dims in one order: another order is an error, and following its repair
/// gives the result.
#[test]
fn another_order_is_refused_and_repaired() {
    let mut found = BTreeMap::new();
    let mut check = |op: &Op, call: &Drawn, result: &[Tensor], strict: bool| {
        for (at, (input, all)) in call.tensors.iter().enumerate() {
            let meets = op.info.tensors.iter().find(|tensor| tensor.name == *input).unwrap().meets;
            let is_list = op.info.tensors[0].kind == ops::TensorKind::List;
            let meet =
                matches!(meets, Meets::Unified | Meets::Matched | Meets::Beside(_) | Meets::Without(_));
            let x = all.last().unwrap();
            if !meet
                || at == 0 && !(is_list && all.len() == 2)
                || x.ndim() < 2
                || x.numel() < 2
                || !x.has_names()
                || op.info.name == "resize_as_"
            // which writes names
            {
                continue;
            }
            let order: Vec<String> =
                (0..x.ndim()).rev().map(|dim| x.name(dim).unwrap().to_string()).collect();
            let mut changed = call.clone();
            *changed.tensors[at].1.last_mut().unwrap() = x.align_to(order).unwrap();
            let how = match in_mode(strict, || changed.call(op)) {
                Ok(new) if same_by_name(&new, result) => "is taken in another order".to_string(),
                Ok(_) => "gives another result in another order".to_string(),
                Err(error) => match error.repair().map(|repair| (repair, repaired(op, &changed, at, repair)))
                {
                    None => format!("has no repair: {error}"),
                    Some((_, None)) => format!("has a repair that cannot be followed: {error}"),
                    Some((_, Some(call))) => match in_mode(strict, || call.call(op)) {
                        Ok(new) if same_by_name(&new, result) => continue,
                        Ok(_) => format!("has a repair that gives another result: {error}"),
                        Err(next) => format!("has a repair that fails: {error}\nthen {next}"),
                    },
                },
            };
            found
                .entry((op.info.name, *input))
                .or_insert(format!("{}: `{input}` {how}, in {changed:?}", op.info.name));
        }
    };
    calls(0..200, 2, &mut check);
    for (name, tensors, args) in BY_HAND {
        let (op, call) = (ops::find(name).unwrap(), by_hand(tensors, args));
        let result = call.call(op).unwrap();
        check(op, &call, &result, false);
    }
    let found: Vec<String> = found.into_values().collect();
    assert!(found.is_empty(), "NAMEGRAD_SEED={} finds:\n{}", *SEED, found.join("\n"));
}

/// An argument with the positions of the dims of `x` in place of their names.
fn by_position(value: &mut Value, x: &Tensor) {
    match value {
        Value::Text(text) => {
            if let Some(dim) =
                (0..x.ndim()).find(|dim| x.name(*dim).is_some_and(|name| name.as_str() == text))
            {
                *value = (dim as i64).into();
            }
        }
        Value::List(all) => all.iter_mut().for_each(|dim| by_position(dim, x)),
        _ => {}
    }
}

/// Inputs whose names say nothing about those of the others, and why.
const ALONE: [(&str, &str, &str); 1] =
    [("cat", "tensors", "the joined dims can have names of their own if the result has a new one")];

/// Without names of the first tensor, the others still agree among themselves: names that two of them have are
/// those of the same dims, so other names, or the same in other places, are an error or change the result.
#[test]
fn others_agree_beside_an_unnamed_first() {
    let (mut found, mut reached) = (BTreeMap::new(), BTreeSet::new());
    let mut check = |op: &Op, call: &Drawn, _: &[Tensor], strict: bool| {
        let (mut bare, first) = (call.clone(), call.tensors[0].1[0].clone());
        bare.tensors[0].1[0] = first.rename(None).unwrap();
        let mut result = in_mode(strict, || bare.call(op));
        if result.is_err() {
            bare.args.iter_mut().for_each(|(_, value)| by_position(value, &first));
            result = in_mode(strict, || bare.call(op));
        }
        let Ok(result) = result else { return };
        for (at, (input, all)) in bare.tensors.iter().enumerate() {
            let meets = op.info.tensors.iter().find(|tensor| tensor.name == *input).unwrap().meets;
            if matches!(meets, Meets::Own | Meets::Free) || meets == Meets::Contracted && !strict {
                continue; // names of their own, or dims that may be summed over
            }
            for (k, y) in all.iter().enumerate().filter(|place| (at, place.0) != (0, 0)) {
                let has = |x: &Tensor, name: &str| {
                    (0..x.ndim()).any(|dim| x.name(dim).is_some_and(|own| own.as_str() == name))
                };
                let is_shared = |name: &str| {
                    bare.tensors.iter().enumerate().any(|(other, (_, all))| {
                        all.iter().enumerate().any(|(j, z)| (other, j) != (at, k) && has(z, name))
                    })
                };
                let names: Vec<String> =
                    y.names().iter(y.ndim()).flatten().map(|name| name.to_string()).collect();
                if names.len() != y.ndim()
                    || y.numel() < 2
                    || ALONE.iter().any(|(of, name, _)| (*of, *name) == (op.info.name, *input))
                {
                    continue;
                }
                let with = |other: Tensor| {
                    let mut changed = bare.clone();
                    changed.tensors[at].1[k] = other;
                    (in_mode(strict, || changed.call(op)), changed)
                };
                let mut say = |what: &str, changed: &Drawn| {
                    let how = format!("{}: `{input}` {what}, in {changed:?}, strict: {strict}", op.info.name);
                    found.entry((op.info.name, *input)).or_insert(how);
                };
                for dim in (0..names.len()).filter(|dim| is_shared(&names[*dim])) {
                    reached.insert((op.info.name, *input));
                    let mut other = names.clone();
                    other[dim] = "fresh".into();
                    let (new, changed) = with(y.rename(other).unwrap());
                    if new.is_ok_and(|new| same(&new, &result) && tells(&new)) {
                        say("gives the same with another name", &changed);
                    }
                    if dim > 0 && is_shared(&names[dim - 1]) {
                        let mut other = names.clone();
                        other.swap(dim - 1, dim);
                        let (new, changed) = with(y.rename(other.clone()).unwrap());
                        if new.is_ok_and(|new| same_numbers(&new, &result) && tells(&new)) {
                            say("gives the same numbers with names swapped", &changed);
                        }
                        let (new, changed) = with(y.align_to(other).unwrap());
                        if new.is_ok_and(|new| !same_by_name(&new, &result)) {
                            say("gives another result in another order", &changed);
                        }
                    }
                }
            }
        }
    };
    calls(0..200, 3, &mut check);
    for (name, tensors, args) in BY_HAND {
        let (op, call) = (ops::find(name).unwrap(), by_hand(tensors, args));
        for strict in [false, true] {
            check(op, &call, &[], strict);
        }
    }
    let found: Vec<String> = found.into_values().collect();
    assert!(found.is_empty(), "NAMEGRAD_SEED={} finds:\n{}", *SEED, found.join("\n"));
    assert!(reached.len() > 20 || namegrad_tests::chosen().is_some(), "only {reached:?}");
}

/// Ops whose meaning is the order of dims, of the first, of the last, or of all elements, and ops of random
/// numbers, which are in the order of the elements.
const BY_ORDER: [&str; 12] = [
    "unique_dim",     // slices are compared in the order of their elements
    "take_along_dim", // without a dim
    "fliplr",
    "flipud",
    "msort",
    "rot90",
    "tril",
    "triu",
    "put",
    "repeat_interleave",
    "nn.group_norm", // `..` are the dims behind the channels
    "nn.instance_norm",
];
const RANDOM: [&str; 16] = [
    "binomial",
    "dirichlet",
    "poisson",
    "standard_gamma",
    "bernoulli",
    "multinomial",
    "normal",
    "rand_like",
    "randn_like",
    "randint_like",
    "nn.alpha_dropout",
    "nn.dropout",
    "nn.feature_alpha_dropout",
    "nn.gumbel_softmax",
    "nn.rrelu",
    "nn.sample",
];

/// The first input in another order gives the permuted result or an error, if all dims are said by name.
#[test]
fn the_first_input_can_have_any_order() {
    let by_name = ["Dim", "Dims", "Reduced", "ClassDim"];
    let numbers =
        ["f64", "usize", "isize", "bool", "Cast", "DType", "Scalar", "Reduction", "Reduce", "KlReduction"];
    let says = |op: &Op| {
        let known = |ty: &str| by_name.contains(&ty) || numbers.contains(&ty) || ty.starts_with("Option");
        let open =
            |outcome: &Outcome| matches!(outcome, Outcome::Reshapes | Outcome::Called(_) | Outcome::Unnamed);
        let meets = |meets: &Meets| !matches!(meets, Meets::Contracted | Meets::Own | Meets::Free);
        op.info.args.iter().all(|arg| known(arg.ty))
            && !op.info.names.iter().any(open)
            && op.info.tensors.iter().all(|tensor| meets(&tensor.meets))
            && ![&BY_ORDER[..], &RANDOM].concat().contains(&op.info.name)
            && !(op.info.in_place.is_some() && op.info.name.ends_with('_')) // they draw random numbers
    };
    let is_named = |x: &Tensor| (0..x.ndim()).all(|dim| x.name(dim).is_some());
    let (mut found, mut count) = (BTreeMap::new(), 0);
    calls(0..60, 1, |op, call, result, strict| {
        let x = &call.tensors[0].1[0];
        let all = call.tensors.iter().flat_map(|(_, all)| all).chain(result);
        // Positions and groups over several dims are in the order of these.
        let several =
            call.args.iter().any(|(_, value)| matches!(value, Value::List(_)) || *value == "..".into());
        let picks = op.info.table == "pick" || op.info.name.starts_with("masked_arg");
        let of_all = picks && call.args.iter().all(|(name, _)| *name != "dim");
        if !says(op) || of_all || x.ndim() < 2 || x.numel() < 2 || several || !all.into_iter().all(is_named) {
            return;
        }
        count += 1;
        let order: Vec<String> = (0..x.ndim()).rev().map(|dim| x.name(dim).unwrap().to_string()).collect();
        let mut changed = call.clone();
        changed.tensors[0].1[0] = x.align_to(order).unwrap();
        if let Ok(new) = in_mode(strict, || changed.call(op))
            && !same_by_name(&new, result)
        {
            let how = format!("{}: {changed:?} is {new:?}, not {result:?}", op.info.name);
            found.entry(op.info.name).or_insert(how);
        }
    });
    let found: Vec<String> = found.into_values().collect();
    assert!(found.is_empty(), "NAMEGRAD_SEED={} finds:\n{}", *SEED, found.join("\n"));
    assert!(count > 1000 || namegrad_tests::chosen().is_some(), "only {count} calls");
}
