//! `docs/operators.md`: every operator of PyTorch's table of named tensors, with what it is called here, its name rule, its dtypes and its derivative. Made
//! from the rows; the dtypes are found by asking each op. `NAMEGRAD_BLESS=1 cargo test --test operators` writes it anew.

#[path = "proptest/tables.rs"]
#[allow(dead_code, reason = "shared with the property tests")]
mod tables;

use namegrad::autograd::rules;
use namegrad::core::ops::{OpInfo, all};
use namegrad::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use tables::{Draw, REDUCTIONS, pointwise, with_arguments};

/// Operators of PyTorch's table that have no row of their own here: PyTorch's name, what to write here, the dtypes, and the derivative or why there is none.
const OTHERS: &[(&str, &str, &str, &str)] = &[
    // Names
    ("align_as", "x.align_as(&y)?", "all", "`g` aligned back"),
    ("align_to", "x.align_to([\"C\", \"...\"])?", "all", "`g` aligned back"),
    ("flatten", "x.flatten([\"H\", \"W\"], \"pixels\")?", "all", "`g` of the old sizes"),
    ("has_names", "x.has_names()", "all", ASKED),
    ("names", "x.names()", "all", ASKED),
    ("refine_names", "x.refine_names([\"N\", \"...\"])?", "all", "`g`"),
    ("rename", "x.rename([(\"N\", \"batch\")])?", "all", "`g`"),
    ("rename_", "x.rename_([(\"N\", \"batch\")])?", "all", "`g`"),
    ("unflatten", "x.unflatten(\"pixels\", [(\"H\", 8), (\"W\", 8)])?", "all", "`g` of the old sizes"),
    // New tensors
    ("empty", "Tensor::empty([(\"N\", 2)])?", "all", NEW),
    ("empty_like", "x.empty_like()?", "all", NEW),
    ("ones", "Tensor::ones([(\"N\", 2)])?", "all", NEW),
    ("zeros", "Tensor::zeros([(\"N\", 2)])?", "all", NEW),
    ("tensor", "Tensor::new([1.0, 2.0])?", "all", NEW),
    ("rand", "Tensor::rand([(\"N\", 2)])?", "floats", NEW),
    ("randn", "Tensor::randn([(\"N\", 2)])?", "floats", NEW),
    ("manual_seed", "manual_seed(0)", "none", ASKED),
    // Parts
    ("cat", "Tensor::cat(&[&x, &y], \"N\")?", "all", "the part of `g`"),
    ("chunk", "x.chunk(3, \"N\")?", "all", "each `g` in its place"),
    ("split", "x.split(2, \"N\")?, x.split([2, 1], \"N\")?", "all", "each `g` in its place"),
    ("unbind", "x.unbind(\"N\")?", "all", "each `g` in its place"),
    ("index_fill", "x.index_fill(&index, 0, \"N\")?", "all", "`g`, 0 where it was filled"),
    ("index_fill_", "x.index_fill_(&index, 0, \"N\")?", "all", "as `index_fill`"),
    ("masked_fill", "x.masked_fill(&mask, 0)?", "all", "`g`, 0 where it was filled"),
    ("masked_fill_", "x.masked_fill_(&mask, 0)?", "all", "as `masked_fill`"),
    ("masked_select", "x.masked_select(&mask)?", "all", "`g` in its place"),
    ("copy_", "x.copy_(&y)?", "all", "0; source: `g`"),
    ("fill_", "x.fill_(0)?", "all", "0"),
    ("zero_", "x.zero_()?", "all", "0"),
    ("resize_", "x.resize_([2, 3])?", "all", "none: a leaf has no sizes to change"),
    ("resize_as_", "x.resize_as_(&y)?", "all", "none: a leaf has no sizes to change"),
    ("std_mean", "x.std_mean(\"N\")?", "floats", "those of `std` and `mean`"),
    ("var_mean", "x.var_mean(\"N\")?", "floats", "those of `var` and `mean`"),
    // Random numbers
    ("bernoulli", "x.bernoulli()?", "floats", RANDOM),
    ("bernoulli_", "x.bernoulli_(0.5)?", "all", RANDOM),
    ("cauchy_", "x.cauchy_(0.0, 1.0)?", "floats", RANDOM),
    ("exponential_", "x.exponential_(1.0)?", "floats", RANDOM),
    ("log_normal_", "x.log_normal_(0.0, 1.0)?", "floats", RANDOM),
    ("normal", "Tensor::normal(&mean, 1.0)?", "floats", RANDOM),
    ("normal_", "x.normal_(0.0, 1.0)?", "floats", RANDOM),
    ("random_", "x.random_(0..10)?", "all", RANDOM),
    ("uniform_", "x.uniform_(0.0, 1.0)?", "floats", RANDOM),
    // Types and places
    ("cpu", "x.cpu()", "all", "`g`"),
    ("cuda", "x.cuda()?, an error without such a build", "all", "`g`"),
    ("device", "x.device()", "all", ASKED),
    ("get_device", "x.get_device()", "all", ASKED),
    ("is_cuda", "x.is_cuda()", "all", ASKED),
    ("is_pinned", "x.is_pinned()", "all", ASKED),
    ("is_shared", "x.is_shared()", "all", ASKED),
    ("is_sparse", "x.is_sparse()", "all", ASKED),
    ("is_sparse_csr", "x.is_sparse_csr()", "all", ASKED),
    ("type", "x.type_name()", "all", ASKED),
    ("bfloat16", "x.bfloat16()?", "all", CAST),
    ("bool", "x.bool()?", "all", CAST),
    ("byte", "x.byte()?", "all", CAST),
    ("char", "x.char()?", "all", CAST),
    ("double", "x.double()?", "all", CAST),
    ("float", "x.float()?", "all", CAST),
    ("half", "x.half()?", "all", CAST),
    ("int", "x.int()?", "all", CAST),
    ("long", "x.long()?", "all", CAST),
    ("short", "x.short()?", "all", CAST),
    ("to", "x.to(DType::F64)?", "all", CAST),
    ("type_as", "x.type_as(&y)?", "all", CAST),
    // Questions
    ("data_ptr", "x.data_ptr()", "all", ASKED),
    ("dim", "x.ndim()", "all", ASKED),
    ("element_size", "x.itemsize()", "all", ASKED),
    ("grad", "x.grad()", "floats", ASKED),
    ("is_contiguous", "x.is_contiguous()", "all", ASKED),
    ("is_floating_point", "x.dtype().is_floating_point()", "all", ASKED),
    ("is_leaf", "x.is_leaf()", "all", ASKED),
    ("is_signed", "x.dtype().is_signed()", "all", ASKED),
    ("is_tensor", "the type says so", "all", ASKED),
    ("item", "x.item()?", "all", ASKED),
    ("itemsize", "x.itemsize()", "all", ASKED),
    ("nbytes", "x.nbytes()", "all", ASKED),
    ("ndim", "x.ndim()", "all", ASKED),
    ("ndimension", "x.ndim()", "all", ASKED),
    ("numel", "x.numel()", "all", ASKED),
    ("requires_grad", "x.requires_grad()", "all", ASKED),
    ("size", "x.size(\"N\")?, x.sizes()", "all", ASKED),
    ("stride", "x.strides()", "all", ASKED),
    // The tape
    ("detach", "x.detach()", "all", "none: it cuts the gradient"),
    ("detach_", "x.detach_()", "all", "none: it cuts the gradient"),
    ("register_hook", "x.register_hook(|g| ..)?", "floats", ASKED),
    ("register_post_accumulate_grad_hook", "x.register_post_accumulate_grad_hook(|g| ..)?", "floats", ASKED),
    ("requires_grad_", "x.requires_grad_(true)?", "floats", ASKED),
];

const ASKED: &str = "none: no op";
const NEW: &str = "none: it is new";
const RANDOM: &str = "none: it is drawn";
const CAST: &str = "`g` cast back";

/// A line per operator of the table.
fn page() -> String {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let table = std::fs::read_to_string(fixtures.join("operators.csv")).unwrap();
    let tested = std::fs::read_to_string(fixtures.join("implemented.txt")).unwrap();
    let tested: BTreeSet<&str> = tested.lines().filter_map(|line| Some(line.rsplit_once(' ')?.0)).collect();
    let rows: BTreeMap<&str, &OpInfo> = all().map(|op| (op.name, op)).collect();
    let in_place: BTreeMap<&str, &OpInfo> = all().filter_map(|op| Some((op.in_place?, op))).collect();
    let dtypes = dtypes();

    let mut page = String::from(HEAD);
    let mut missing = Vec::new();
    for line in table.lines().skip(1) {
        let (api, rule) = line.trim_end().rsplit_once(',').expect("an operator and its rule");
        let api = api.trim_matches('"');
        let name = api.rsplit('.').next().expect("a name");
        let (here, types, derivative, out) =
            if let Some((_, here, types, derivative)) = OTHERS.iter().find(|(other, ..)| *other == name) {
                // That `cuda` is an error without such a build is tested in `tests/ops/composed.rs`.
                if name != "cuda" && !tested.contains(name) {
                    missing.push(format!("{name}: no case of the conformance set passes"));
                }
                let out = if [ASKED, NEW].contains(derivative) || name == "cuda" || name.ends_with('_') {
                    ""
                } else {
                    "yes"
                };
                (format!("`{here}`"), types.to_string(), derivative.to_string(), out)
            } else if let Some(op) = rows.get(name) {
                (format!("`x.{name}`"), dtypes[op.name].clone(), derivative(op.name), "yes")
            } else if let Some(op) = in_place.get(name) {
                (format!("`x.{name}`"), dtypes[op.name].clone(), format!("as `{}`", op.name), "")
            } else {
                missing.push(format!("{name}: no row, and not among the others"));
                continue;
            };
        let rule = if rule == "None" { "nothing to name" } else { rule };
        writeln!(page, "| `{api}` | {here} | {rule} | {types} | {derivative} | {out} |").unwrap();
    }
    assert!(
        missing.is_empty(),
        "operators of PyTorch's table that are not here, or not tested:\n{}",
        missing.join("\n")
    );
    page
}

const HEAD: &str = "\
# Operators

Every operator of PyTorch's table of named tensors: what it is called here, the rule by which names pass, the dtypes, and the gradient of each input, `g` being that of
the output `y`, as its row in `autograd/src/rules` says it. This page is made from the rows by `tests/operators.rs`.

A dim is an index, a name, or where several are taken a list of either or `..` for all. Results can be written to a tensor that is there, as PyTorch's `out=` does, where the
last column says so: `x.exp()?.write_to(&mut out)?`. Integers that an op of floats is given are taken as the default float; the dtypes are those that it accepts.

| PyTorch | here | names | dtypes | derivative | out |
| --- | --- | --- | --- | --- | --- |
";

/// The gradients of an op as its row says them.
fn derivative(op: &str) -> String {
    if let Some(row) = rules::rows().find(|row| row.op == op) {
        let text = |(input, gradient): &(&str, &str)| {
            let gradient: String = gradient.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("{input}: `{}`", gradient.replace('|', "\\|"))
        };
        return row.gradients.iter().map(text).collect::<Vec<_>>().join("; ");
    }
    if rules::constants().any(|name| name == op) || ["all", "any"].contains(&op) {
        return "none: a result of bool or indices has no gradient".into();
    }
    "recorded by hand".into()
}

/// The dtypes of each op: those on which it gives a result for some of the tensors and arguments that it is tried with.
fn dtypes() -> BTreeMap<&'static str, String> {
    let shapes: [&[(&str, usize)]; 4] =
        [&[("A", 2), ("B", 2)], &[("A", 3)], &[("A", 2), ("B", 3), ("C", 2)], &[]];
    let tensors = |dtype: DType| shapes.map(|shape| Tensor::ones(shape.to_vec()).unwrap().to(dtype).unwrap());
    let mut accepted = BTreeMap::new();
    let mut ask = |name: &'static str, works: &dyn Fn(&Tensor) -> bool| {
        let found: Vec<DType> =
            DType::ALL.into_iter().filter(|dtype| tensors(*dtype).iter().any(works)).collect();
        accepted.insert(name, described(&found));
    };
    for op in pointwise() {
        ask(op.name, &|x| (op.call)(&vec![x.clone(); op.arity]).is_ok());
    }
    for (name, reduce, _) in REDUCTIONS {
        ask(name, &|x| reduce(x, &[0]).is_ok());
    }
    for op in with_arguments() {
        ask(op.name, &|x| {
            (0..300).any(|seed| {
                let mut draw = Draw(seed);
                let mut others = Vec::new();
                for role in op.roles {
                    others.push(draw.other(role, x, &others));
                }
                (op.call)(x, &others, &mut draw).is_ok()
            })
        });
    }
    accepted
}

fn described(dtypes: &[DType]) -> String {
    let has = |dtype| dtypes.contains(&dtype);
    let floats = [DType::F16, DType::BF16, DType::F32, DType::F64].map(has);
    let integers = [DType::U8, DType::I8, DType::I16, DType::I32, DType::I64].map(has);
    let of = |all: &[bool], text| all.iter().all(|has| *has).then_some(text);
    let classes: Vec<&str> =
        [of(&floats, "floats"), of(&integers, "integers"), of(&[has(DType::Bool)], "bool")]
            .into_iter()
            .flatten()
            .collect();
    let whole = floats.iter().all(|x| *x == floats[0]) && integers.iter().all(|x| *x == integers[0]);
    match (&classes[..], whole) {
        ([_, _, _], true) => "all".into(),
        (classes, true) => classes.join(", "),
        _ => dtypes.iter().map(|dtype| dtype.torch_name()).collect::<Vec<_>>().join(", "),
    }
}

#[test]
fn the_page_of_operators_is_that_of_the_rows() {
    let file: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operators.md");
    let page = page();
    if std::env::var_os("NAMEGRAD_BLESS").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    let stale = page.lines().zip(written.lines()).find(|(now, then)| now != then);
    assert!(
        written == page,
        "docs/operators.md is stale, first at {stale:?}; NAMEGRAD_BLESS=1 writes it anew"
    );
}
