//! `docs/operators.md`: every op, with the calls, the name rule, the dtypes and the derivative from its row,
//! and PyTorch's names for it. `tests/calls` compiles every call on the page.

use crate::derivatives::derivative;
use namegrad::ops::{self, ArgInfo, Gradients, OpInfo, TensorKind};
use namegrad::prelude::*;
use namegrad_tests::draw::{Draw, Drawn};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The operators in PyTorch's table of named tensors that are not ops here: PyTorch's name, the call here,
/// the dtypes, and the derivative or why there is none.
const OTHERS: &[(&str, &str, &str, &str)] = &[
    ("align_as", "x.align_as(&y)?", "all", "`g` aligned back"),
    ("align_to", "x.align_to([\"C\", \"...\"])?", "all", "`g` aligned back"),
    ("flatten", "x.flatten([\"H\", \"W\"], \"pixels\")?", "all", "`g` of the old sizes"),
    ("has_names", "x.has_names()", "all", ASKED),
    ("names", "x.names()", "all", ASKED),
    ("refine_names", "x.refine_names([\"N\", \"...\"])?", "all", "`g`"),
    ("rename", "x.rename([(\"N\", \"batch\")])?", "all", "`g`"),
    ("rename_", "x.rename_([(\"N\", \"batch\")])?", "all", "`g`"),
    ("unflatten", "x.unflatten(\"pixels\", [(\"H\", 8), (\"W\", 8)])?", "all", "`g` of the old sizes"),
    ("empty", "Tensor::empty([(\"N\", 2)])?", "all", NEW),
    ("ones", "Tensor::ones([(\"N\", 2)])?", "all", NEW),
    ("zeros", "Tensor::zeros([(\"N\", 2)])?", "all", NEW),
    ("tensor", "Tensor::new([1.0, 2.0])?", "all", NEW),
    ("rand", "Tensor::rand([(\"N\", 2)])?", "floats", NEW),
    ("randn", "Tensor::randn([(\"N\", 2)])?", "floats", NEW),
    ("manual_seed", "manual_seed(0)", "none", ASKED),
    ("random_", "x.random_(0..10)?", "all", RANDOM),
    ("cpu", "x.cpu()?", "all", "`g`"),
    ("cuda", "x.cuda()?", "all", "`g`"),
    ("device", "x.device()", "all", ASKED),
    ("get_device", "x.device()", "all", ASKED),
    ("is_cuda", "x.is_cuda()", "all", ASKED),
    ("is_pinned", "", "all", ASKED),
    ("is_shared", "x.is_shared()", "all", ASKED),
    ("is_sparse", "x.is_sparse()", "all", ASKED),
    ("is_sparse_csr", "x.is_sparse()", "all", ASKED),
    ("type", "x.type_name()", "all", ASKED),
    ("data_ptr", "x.data_ptr()", "all", ASKED),
    ("dim", "x.ndim()", "all", ASKED),
    ("element_size", "x.element_size()", "all", ASKED),
    ("grad", "x.grad()", "floats", ASKED),
    ("is_contiguous", "x.is_contiguous()", "all", ASKED),
    ("is_floating_point", "x.dtype().is_floating_point()", "all", ASKED),
    ("is_leaf", "x.is_leaf()", "all", ASKED),
    ("is_signed", "x.dtype().is_signed()", "all", ASKED),
    ("is_tensor", "", "all", ASKED),
    ("item", "x.item::<f32>()?", "all", ASKED),
    ("itemsize", "x.element_size()", "all", ASKED),
    ("nbytes", "x.nbytes()", "all", ASKED),
    ("ndim", "x.ndim()", "all", ASKED),
    ("ndimension", "x.ndim()", "all", ASKED),
    ("numel", "x.numel()", "all", ASKED),
    ("requires_grad", "x.requires_grad()", "all", ASKED),
    ("size", "x.size(\"N\")?", "all", ASKED),
    ("stride", "x.strides()", "all", ASKED),
    ("detach", "x.detach()", "all", "none: it cuts the gradient"),
    ("detach_", "x.detach_()", "all", "none: it cuts the gradient"),
    ("register_hook", "x.register_hook(|g| g.mul(2.0).map(Some))?", "floats", ASKED),
    (
        "register_post_accumulate_grad_hook",
        "x.register_post_accumulate_grad_hook(|g| g.mul(2.0).map(Some))?",
        "floats",
        ASKED,
    ),
    ("requires_grad_", "x.requires_grad_(true)?", "floats", ASKED),
];

const ASKED: &str = "none: not an op";
const NEW: &str = "none: a new tensor";
const RANDOM: &str = "none: random numbers";

/// The calls of an op on the page: the method, the form with options, and the in-place form.
fn shown(info: &'static OpInfo) -> Vec<String> {
    let function = info.name.split_once('.');
    let name = function.map_or(info.name, |(_, name)| name);
    let method = function.is_none()
        && info.tensors.first().is_some_and(|x| !matches!(x.kind, TensorKind::List | TensorKind::Operand));
    let receiver = match (function, method) {
        (Some(("nn", _)), _) => "F::".to_string(),
        (Some((module, _)), _) => format!("{module}::"),
        (None, true) => format!("{}.", info.tensors[0].name),
        (None, false) => "Tensor::".to_string(),
    };
    let tensors = |optional: bool| {
        let tensors = info.tensors.iter().skip(usize::from(method && !optional));
        tensors.filter(move |x| (x.kind == TensorKind::Optional) == optional).map(|x| x.name)
    };
    let args = |option: bool, leads: bool| {
        info.args.iter().filter(move |arg| arg.option == option && arg.leads == leads).map(|arg| arg.name)
    };
    let options_of = function.map_or(String::new(), |(module, _)| match module {
        "nn" => String::new(),
        module => format!("{module}::"),
    });
    let given: Vec<&str> = args(false, true).chain(tensors(false)).chain(args(false, false)).collect();
    let options = tensors(true).chain(info.args.iter().filter(|arg| arg.option).map(|arg| arg.name));
    let setters: String = options.map(|name| format!(".{name}({name})")).collect();
    let call = |called: &str, last: Option<String>| {
        let passed: Vec<String> = given.iter().map(|name| name.to_string()).chain(last).collect();
        format!("{receiver}{called}({})?", passed.join(", "))
    };
    let mut all = vec![call(name, None)];
    if !setters.is_empty() {
        let with =
            format!("{}_with{}", name.trim_end_matches('_'), if name.ends_with('_') { "_" } else { "" });
        all.push(call(&with, Some(format!("{options_of}{}Options::new(){setters}", camel(name)))));
    }
    all.extend(info.in_place.filter(|in_place| *in_place != name).map(|in_place| call(in_place, None)));
    all
}

/// The arguments of an op that are not tensors, and lists of tensors, with their types in the row.
fn arguments(info: &OpInfo) -> String {
    let lists = info.tensors.iter().filter(|x| x.kind == TensorKind::List);
    let lists = lists.map(|x| format!("`{}: &[&Tensor]`", x.name));
    lists.chain(info.args.iter().map(argument)).collect::<Vec<_>>().join(", ")
}

fn argument(arg: &ArgInfo) -> String {
    format!("`{}: {}`", arg.name, arg.ty)
}

/// `scatter_add` as `ScatterAdd`.
fn camel(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty());
    words.map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

/// PyTorch's table: the path of each operator, its short name, its name rule.
fn pytorch() -> Vec<(String, String, String)> {
    let table = include_str!("../fixtures/operators.csv").lines().skip(1);
    let entry = |line: &str| {
        let (api, rule) = line.trim_end().rsplit_once(',').expect("an operator and its rule");
        let api = api.trim_matches('"');
        (api.to_string(), api.rsplit('.').next().expect("a name").to_string(), rule.to_string())
    };
    table.map(entry).collect()
}

/// The page.
fn page() -> String {
    let mut page = String::from(HEAD);
    let table = pytorch();
    for op in ops::all() {
        let info = op.info;
        let calls: Vec<String> = shown(info).into_iter().map(|call| format!("`{call}`")).collect();
        let names = table.iter().filter(|(_, name, _)| *name == info.name || info.in_place == Some(name));
        let names: Vec<String> = names.map(|(api, ..)| format!("`{api}`")).collect();
        let (calls, names) = (calls.join("<br>"), names.join(", "));
        let (arguments, dtypes, derivative) = (arguments(info), claimed(info), derivative(op));
        writeln!(page, "| {calls} | {arguments} | {} | {dtypes} | {derivative} | {names} |", info.rule)
            .unwrap();
    }
    page.push_str(OTHERS_HEAD);
    for (api, name, rule) in table.iter().filter(|(_, name, _)| !is_op(name)) {
        let Some((_, here, dtypes, why)) = OTHERS.iter().find(|(other, ..)| other == name) else {
            panic!("`{name}` of PyTorch's table is neither an op nor among the others")
        };
        let here = if here.is_empty() { "the type says so".into() } else { format!("`{here}`") };
        let rule = if rule == "None" { "nothing to name" } else { rule };
        writeln!(page, "| `{api}` | {here} | {rule} | {dtypes} | {why} |").unwrap();
    }
    page
}

/// Whether this is the name of an op or of an in-place form.
fn is_op(name: &str) -> bool {
    ops::find(name).is_ok_and(|op| op.info.table != "factories") || ops::find_in_place(name).is_some()
}

const HEAD: &str = "\
# Operators

This page lists every op with its calls, name rule and dtypes, the gradient of each input, and its entries in
PyTorch's table of named tensors. `tests/registry/operators.rs` generates it from the rows of the ops.

`tests/calls` compiles every call with values of the types in the second column.

A dim is an index or a name. An op that takes several dims accepts a list of either, or `..` for all dims. In the
gradients, `g` is the gradient of the output `y`, and `cx` is the context of the backward pass, which has the sizes
of the inputs; `σ` is the sigmoid, and `n` the number of elements that were reduced to one. If the result of an op is always a float, integers and `bool` are converted to the default float
dtype first. To write a result to an existing tensor, as with PyTorch's `out=`, call
`x.exp()?.write_to(&mut out)?`.

The third column says what names the result has, and how those of each further tensor meet those of the first.
Inputs that unify or match want their dims in the same order: another order is an error, and `y.align_as(&x)?`
repairs it. Dims that are contracted can have different names, except in strict mode.
`tests/registry/names.rs` permutes, swaps and renames the dims of every input to prove these rules.

| call | arguments | names | dtypes | derivative | PyTorch |
| --- | --- | --- | --- | --- | --- |
";

const OTHERS_HEAD: &str = "
## Methods that are not ops

The other entries of PyTorch's table: names, factories, properties, hooks.

| PyTorch | here | names | dtypes | derivative |
| --- | --- | --- | --- | --- |
";

/// The dtypes that the row declares, in words.
fn claimed(info: &OpInfo) -> String {
    described(
        &DType::ALL.into_iter().filter(|dtype| info.dtypes.contains(&dtype.category())).collect::<Vec<_>>(),
    )
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

/// Ops that take `bool` in some calls although their rows do not declare it, with the condition.
const PARTLY_BOOL: [(&str, &str); 2] =
    [("einsum", "where nothing is summed"), ("inner", "with a 0-d tensor, where it is the product")];

/// An op works on each dtype of the classes that its row declares, and on no other.
#[test]
fn ops_take_the_dtypes_that_their_rows_claim() {
    let shapes: [&[(&str, usize)]; 6] = [
        &[("A", 2), ("B", 2)],
        &[("A", 3)],
        &[("A", 2), ("B", 3), ("D", 2)],
        &[("A", 4)],
        &[("A", 2), ("B", 2), ("D", 2)],
        &[],
    ];
    let mut wrong = Vec::new();
    for op in namegrad_tests::ops() {
        for dtype in DType::ALL {
            let works = (0..600).any(|seed| {
                let x = Tensor::ones(shapes[seed % 6].to_vec()).unwrap().to(dtype).unwrap();
                let mut call = Drawn::alike(op, &x, &mut Draw::new(seed as u64));
                // A cast takes any dtype to one that the op takes.
                call.args
                    .retain(|(name, _)| op.info.args.iter().all(|arg| arg.name != *name || arg.ty != "Cast"));
                call.call(op).is_ok()
            });
            let partly = dtype == DType::Bool && PARTLY_BOOL.iter().any(|(name, _)| *name == op.info.name);
            let is_half = matches!(dtype, DType::F16 | DType::BF16);
            // As in PyTorch, linear algebra has no half types.
            let whole = is_half && namegrad_tests::LINALG.contains(&op.info.table);
            if !partly && !whole && works != op.info.dtypes.contains(&dtype.category()) {
                let (name, claims) = (op.info.name, claimed(op.info));
                wrong.push(match works {
                    true => format!(
                        "{name} works on {dtype}, but its row says {claims}: refuse it in the kernel, as \
                         `check_float` does for `on floats`, or let the row say more"
                    ),
                    false => format!(
                        "{name} does not work on {dtype}, but its row says {claims}: mend the kernel, or let \
                         the row say less, as in `on floats integers`"
                    ),
                });
            }
        }
    }
    assert!(wrong.is_empty(), "against their rows:\n{}", wrong.join("\n"));
}

/// The name rules of the rows agree with PyTorch's table, unless the table is vague.
#[test]
fn rules_are_those_of_pytorch() {
    let vague = [
        "None",
        "See documentation",
        "factory",
        "out function semantics",
        "Only allow resizes that do not change shape",
    ];
    let mut differ = Vec::new();
    for (api, name, rule) in
        pytorch().into_iter().filter(|(_, name, rule)| is_op(name) && !vague.contains(&rule.as_str()))
    {
        let op = ops::find_in_place(&name).unwrap_or_else(|| ops::find(&name).unwrap());
        if !op.info.rule.starts_with(&rule) && !DIFFERENT_RULES.contains(&op.info.name) {
            differ.push(format!("{api}: {rule}, here {}", op.info.rule));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

/// Ops whose rule differs from PyTorch's: here bounds, masks and standard deviations also have names,
/// selected elements have none, `topk` keeps the dim that it shortens, and `expand` and `repeat` match names.
const DIFFERENT_RULES: [&str; 7] =
    ["clamp", "expand", "masked_fill", "masked_select", "normal", "repeat", "topk"];

/// Every entry of `OTHERS` is tested with an answer recorded from PyTorch, and none is an op.
#[test]
fn others_are_tested_and_no_ops() {
    let tested =
        include_str!("../fixtures/implemented.txt").lines().filter_map(|line| line.split(' ').next());
    let tested: BTreeSet<&str> = tested.collect();
    for (name, ..) in OTHERS {
        assert!(!is_op(name), "`{name}` is an op: it needs no entry among the others");
        // That `cuda` is an error without such a build is tested in `tests/ops/composed.rs`.
        assert!(*name == "cuda" || tested.contains(name), "{name}: no case of the conformance set passes");
    }
}

/// Formulas use the same names of tensors as the calls next to them.
#[test]
fn gradients_have_the_names_of_the_tensors() {
    for op in ops::all() {
        let Gradients::Formulas(formulas) = op.gradients else { continue };
        for input in formulas.iter().flat_map(|(inputs, _)| inputs.split(", ")) {
            let known = op.info.tensors.iter().any(|tensor| tensor.name == input);
            assert!(known, "{}: `{input}` is not a tensor of the row", op.info.name);
        }
    }
    let Gradients::Formulas([_, (input, formula)]) = ops::find("mul").unwrap().gradients else { panic!() };
    assert_eq!((*input, *formula), ("other", "g * x"));
}

#[test]
fn the_page_is_that_of_the_rows() {
    let (file, text) = (namegrad_tests::root().join("docs/operators.md"), page());
    if std::env::var_os("NAMEGRAD_BLESS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    let stale = text.lines().zip(written.lines()).find(|(now, then)| now != then);
    assert!(
        written == text,
        "docs/operators.md is stale, first at {stale:?}; NAMEGRAD_BLESS=1 cargo test --test registry rewrites it"
    );
}
