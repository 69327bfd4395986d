//! Options have the same name, type and default wherever they mean the same, and PyTorch's names.

use crate::equivalents;
use crate::layers::sources;
use std::collections::{BTreeMap, BTreeSet};

/// Options whose type or default differs, with the reason.
const DIFFER: &[(&str, &str)] = &[
    ("align_corners", "`interpolate` refuses it for some modes, so it can be left out there, as in PyTorch"),
    ("alpha", "PyTorch's: a factor of a product, the slope of an activation, a constant of a method"),
    ("atol", "of `isclose`; of a rank, it depends on the sizes of the matrix"),
    ("beta", "PyTorch's: as `alpha`"),
    ("betas", "of the paper of each method"),
    ("bins", "of `histc` a number; of histograms also one for each dim or the edges"),
    ("correction", "of `cov` a whole number, as in PyTorch"),
    ("dim", "of an embedding's table its new dim, of a triangular system the two of the triangle"),
    ("dims", "of images those that a window slides over, of `tensorsolve` those that are moved to the end"),
    ("dtype", "of parameters it is a dtype; of a result, it can be that of the input"),
    ("eps", "PyTorch's, of each norm, loss and method; that of `rms_norm` depends on the dtype"),
    ("factor", "PyTorch's, of each schedule"),
    ("ignore_index", "`linear_cross_entropy` refuses it beside probabilities, so it can be left out"),
    ("lambd", "PyTorch's: of `shrink`, and a decay of `Asgd`"),
    ("lr", "of the paper of each method, as in PyTorch"),
    ("margin", "PyTorch's, of each loss"),
    ("mode", "each function has its own modes, which are PyTorch's words"),
    (
        "momentum",
        "PyTorch's, of methods and of running statistics; without one, `BatchNorm` takes the mean of all",
    ),
    ("n", "of `diff`, of a transform a size by name, of `vander` as many as the dim has elements"),
    ("nesterov", "of the paper of each method"),
    ("ord", "of a vector a number, of a matrix one of its norms"),
    ("output_size", "of pooling by dim, of `repeat_interleave` a number"),
    ("p", "the order of a norm; `multi_margin_loss` takes 1 and 2 alone"),
    ("padding", "a convolution can also be told `Padding::Same`"),
    ("reduction", "`kl_div` has one more, the mean over the batch"),
    ("rtol", "as `atol`"),
    ("stride", "of a pooling, the size of its window; of a convolution, 1"),
    ("threshold", "of `softplus`, and of the plateau of a schedule"),
    ("training", "PyTorch's functions of dropout are in training by default, others not"),
    ("upper", "the triangle of a matrix, and PyTorch's bound of `rrelu`"),
    ("value", "PyTorch's: what `pad` writes, and a factor"),
    ("weight", "of a layer, a parameter that another one has as well; of a loss, a tensor"),
    ("weight_decay", "of the paper of each method"),
];

/// Options that PyTorch calls otherwise in the same call, with the reason.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("batch_first", "dims are found by name"),
    ("output_ratio", "`to_ratio`, a constructor of its own, because a layer has either"),
    ("output_size", "`to_size`, as `output_ratio`, or the sizes of the dims by name"),
    ("total_iters", "an argument, because every ramp has an end"),
    ("total_steps", "an argument, as `total_iters`"),
];

/// The options by name: their types and defaults, and where they are. A default of "" is not known.
fn options() -> BTreeMap<String, BTreeMap<(String, String), Vec<String>>> {
    let mut all: BTreeMap<String, BTreeMap<_, Vec<String>>> = BTreeMap::new();
    let mut add = |name: &str, ty: &str, default: &str, place: &str| {
        let known = all.entry(name.to_string()).or_default();
        known.entry((ty.to_string(), default.to_string())).or_default().push(place.to_string());
    };
    for op in namegrad::ops::all() {
        let info = op.info;
        for arg in info.args.iter().filter(|arg| arg.option) {
            add(arg.name, arg.ty, arg.default.unwrap_or_default(), info.name);
        }
    }
    for path in sources(&["layers"]) {
        let text = std::fs::read_to_string(&path).unwrap();
        for (name, ty, of) in fields(&text) {
            add(name, ty, "", of);
        }
    }
    // The rows of optimizers and schedules: `lr: f64 = 1e-3 in 0.0..`.
    let optim = namegrad_tests::root().join("optim/src");
    for folder in ["methods", "schedule"] {
        for entry in std::fs::read_dir(optim.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let of = path.file_stem().unwrap().to_str().unwrap();
            for line in text.lines().map(str::trim) {
                let Some((name, rest)) = line.split_once(": ") else { continue };
                let Some((ty, default)) = rest.split_once(" = ") else { continue };
                if name.chars().all(|c| c.is_ascii_lowercase() || c == '_') && !line.starts_with("let ") {
                    let default = default.split(" in ").next().unwrap().trim_end_matches([',', ';']);
                    add(name, ty, default, &format!("optim {of}"));
                }
            }
        }
    }
    all
}

/// The fields of the structs with setters: their names and types, and the struct.
fn fields(text: &str) -> Vec<(&str, &str, &str)> {
    let (mut found, mut of, mut skipped) = (Vec::new(), None, false);
    let mut derives = false;
    for line in text.lines() {
        let code = line.trim().trim_start_matches("pub ").trim_start_matches("pub(super) ");
        if line.starts_with("#[derive(") {
            derives = line.contains("Setters");
        } else if let Some(name) = code.strip_prefix("struct ") {
            of = derives.then(|| name.split(['<', ' ']).next().unwrap());
            derives = false;
        } else if line == "}" {
            of = None;
        } else if code.starts_with("#[setters(skip") || code.starts_with("#[setters(given") {
            skipped = true;
        } else if let (Some(of), Some((name, ty))) =
            (of, code.strip_suffix(',').and_then(|code| code.split_once(": ")))
            && !std::mem::take(&mut skipped)
            && !code.starts_with("//")
            && !["Named", "Seq", "Kernel", "Vec<Named>", "[Named; 2]"].contains(&kind(ty))
        {
            found.push((name.rsplit(' ').next().unwrap(), ty, of));
        }
    }
    found
}

/// The kind of value that a type takes: a number by name is one, and so is what can be left out.
fn kind(ty: &str) -> &str {
    ty.strip_prefix("Option<").and_then(|inner| inner.strip_suffix('>')).unwrap_or(ty)
}

#[test]
fn the_same_name_has_the_same_type_and_default() {
    let (mut wrong, mut differing) = (Vec::new(), BTreeSet::new());
    for (name, forms) in options() {
        let types: BTreeSet<&str> = forms.keys().map(|(ty, _)| kind(ty)).collect();
        let defaults: BTreeSet<&str> =
            forms.keys().map(|(_, default)| &default[..]).filter(|text| !text.is_empty()).collect();
        if types.len() > 1 || defaults.len() > 1 {
            differing.insert(name.clone());
            if !DIFFER.iter().any(|(known, _)| *known == name) {
                wrong.push(format!("{name}: {forms:?}"));
            }
        }
    }
    let stale: Vec<_> = DIFFER.iter().filter(|(name, _)| !differing.contains(*name)).collect();
    assert!(wrong.is_empty() && stale.is_empty(), "{stale:?}\n{}", wrong.join("\n"));
}

/// A keyword of PyTorch's call is a setter or an argument with that name in ours.
#[test]
fn options_have_the_names_of_pytorch() {
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for (torch, ours) in equivalents::calls() {
        for keyword in torch.split(['(', ' ', ',']).filter_map(|word| Some(word.split_once('=')?.0)) {
            let is_name =
                !keyword.is_empty() && keyword.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            let has =
                ours.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == keyword);
            if !is_name || has {
                continue;
            }
            match OTHER_NAMES.iter().find(|(known, _)| *known == keyword) {
                Some((known, _)) => drop(used.insert(*known)),
                None => wrong.push(format!("{keyword} of {torch}: {ours}")),
            }
        }
    }
    let stale: Vec<_> = OTHER_NAMES.iter().filter(|(name, _)| !used.contains(name)).collect();
    assert!(wrong.is_empty() && stale.is_empty(), "{stale:?}\n{}", wrong.join("\n"));
}
