//! Compiles every call that `docs/operators.md` shows, and checks that errors name the op and the caller's
//! line. The build script reads the calls from the page.

#[allow(unused_imports, unused_must_use, unused_mut, unused_variables)] // not every call uses all of it
#[allow(clippy::needless_borrow, reason = "a call is the same for values and references")]
mod calls {
    use crate::Given;
    use namegrad::autograd::*;
    use namegrad::core::args::*;
    use namegrad::fft::{AnyAxes, AnyAxis, Axes, Axis, Norm, Overlap, RealAxes, RealAxis};
    use namegrad::nn::functional::*;
    use namegrad::prelude::*;
    use namegrad::{complex, fft};

    /// Makes a call with the given values; `None` if a value that it needs is missing.
    pub(crate) type Call = fn(&Given<'_>) -> Option<Result<()>>;

    include!(concat!(env!("OUT_DIR"), "/calls.rs"));
}

use calls::{CALLS, Call};
use namegrad::autograd::{Index, Observed, observe};
use namegrad::core::Argument;
use namegrad::ops::{self, Op, OpInfo, Value};
use namegrad::prelude::*;
use namegrad_tests::draw::{Draw, Drawn};
use namegrad_tests::is_chosen;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// The calls of methods that are not ops are only compiled.
const _: fn(Tensor, Tensor, Tensor) -> Result<()> = calls::others;

/// The randomly generated tensors and arguments of a call. They are looked up by name; the result is `None`
/// if one does not exist or has another kind.
pub(crate) struct Given<'a>(&'a Drawn);

#[allow(dead_code, reason = "the calls of one op do not need values of every type")]
impl Given<'_> {
    fn tensors(&self, name: &str) -> Option<Vec<&Tensor>> {
        self.0.tensors.iter().find(|(drawn, _)| *drawn == name).map(|(_, tensors)| tensors.iter().collect())
    }

    fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors(name)?.first().copied()
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.0.args.iter().find(|(drawn, _)| *drawn == name).map(|(_, value)| value)
    }

    fn arg<K: Argument>(&self, name: &str) -> Option<K> {
        K::from_value(self.value(name)?)
    }

    fn text(&self, name: &str) -> Option<&str> {
        if let Value::Text(text) = self.value(name)? { Some(text) } else { None }
    }

    fn texts(&self, name: &str) -> Option<Vec<&str>> {
        let Value::List(texts) = self.value(name)? else { return None };
        texts.iter().map(|text| if let Value::Text(text) = text { Some(&text[..]) } else { None }).collect()
    }

    fn sizes(&self, name: &str) -> Option<Vec<isize>> {
        let Value::List(sizes) = self.value(name)? else { return None };
        sizes.iter().map(isize::from_value).collect()
    }

    fn indices(&self, name: &str) -> Option<Vec<Index>> {
        Some(self.sizes(name)?.into_iter().map(Index::from).collect())
    }
}

/// A tensor of any dtype with up to three dims, with or without names. Some require a gradient.
fn any_tensor(draw: &mut Draw) -> Tensor {
    let dtype = DType::ALL[draw.below(DType::ALL.len())];
    let sizes: Vec<usize> = (0..draw.below(4)).map(|_| 1 + draw.below(3)).collect();
    let mut names: Vec<Option<&str>> =
        ["A", "B", "C"][..sizes.len()].iter().map(|name| Some(*name)).collect();
    names.rotate_left(draw.below(sizes.len().max(1)));
    names.iter_mut().for_each(|name| *name = name.filter(|_| draw.below(3) > 0));
    let x = draw.tensor(&sizes, dtype).rename(names).unwrap();
    if draw.below(8) == 0 && dtype.is_floating_point() { x.requiring_grad().unwrap() } else { x }
}

/// A call of `op`, often with a tensor that does not fit the others.
fn any_call(op: &Op, seed: u64) -> Drawn {
    let mut draw = Draw::new(seed);
    let tensors = [(); 3].map(|()| any_tensor(&mut draw));
    let mut call = Drawn::of(op, &tensors, &mut draw);
    if draw.below(4) == 0 {
        let at = draw.below(call.tensors.len());
        call.tensors[at].1[0] = any_tensor(&mut draw);
    }
    call
}

/// The result of a generated call. A panic fails the test, which then shows the call.
fn played(op: &Op, call: Call, seed: u64) -> Option<Result<()>> {
    let drawn = any_call(op, seed);
    let result = catch_unwind(AssertUnwindSafe(|| call(&Given(&drawn))));
    result.unwrap_or_else(|_| panic!("{} panics: {drawn:?}", op.info.name))
}

/// The number of calls that are generated, and the number of errors that are checked.
const DRAWS: u64 = 600;
const ERRORS: usize = 60;

/// An error has the caller's line (otherwise a function on the way lacks `#[track_caller]`) and names the op
/// that was called (otherwise a kernel has the name of another op). If it is about a dtype, it suggests a
/// cast.
#[test]
fn errors_name_the_op_and_the_line_of_the_caller() {
    let (mut failed, mut wrong) = (BTreeSet::new(), BTreeSet::new());
    for (name, call) in CALLS.iter().filter(|(name, _)| is_chosen(name)) {
        let op = ops::find(name).unwrap();
        for error in (0..DRAWS).filter_map(|seed| played(op, *call, seed)?.err()).take(ERRORS) {
            failed.insert(*name);
            if error.kind() == ErrorKind::DType && error.repair().is_none() {
                wrong.insert(format!("{name}: no repair: {}", error.message()));
            }
            if !error.location().file().ends_with("calls.rs") {
                wrong.insert(format!("{name}: no `#[track_caller]` on the way to {}", error.location()));
            }
            if !is_name_of(op.info, error.op()) {
                wrong.insert(format!("{name}: an error names `{}`: {}", error.op(), error.message()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.into_iter().collect::<Vec<_>>().join("\n"));
    let shown = |op: &&Op| is_chosen(op.info.name) && CALLS.iter().any(|(name, _)| *name == op.info.name);
    let never = ops::all().filter(shown).map(|op| op.info);
    let never = never.filter(|info| !failed.contains(info.name) && !takes_any_tensor(info));
    let never: Vec<&str> = never.map(|info| info.name).collect();
    let none_can: Vec<&str> = NEVER_FAIL.into_iter().filter(|name| is_chosen(name)).collect();
    assert_eq!(never, none_can, "the ops of which no drawn call fails, and those of which none can");
}

/// An op that is composed of others counts for the line of its call, and so do the others, as in a profile.
#[test]
fn ops_count_for_the_line_of_the_call() {
    let elsewhere = Rc::new(RefCell::new(BTreeSet::new()));
    for (name, call) in CALLS.iter().filter(|(name, _)| is_chosen(name)) {
        let (op, found) = (ops::find(name).unwrap(), elsewhere.clone());
        let note = move |op: &Observed<'_>| {
            // Those of this test make the inputs.
            if !op.at.file().starts_with("tests/") && !op.at.file().ends_with("/out/calls.rs") {
                found.borrow_mut().insert(format!("{name}: {} at {}", op.op, op.at));
            }
        };
        observe(note, || (0..60).for_each(|seed| drop(played(op, *call, seed))));
    }
    let elsewhere = elsewhere.take();
    assert!(elsewhere.is_empty(), "{elsewhere:#?}");
}

/// Whether this is the name of the op or of its in-place form.
fn is_name_of(info: &OpInfo, name: &str) -> bool {
    info.name.strip_prefix("nn.").unwrap_or(info.name) == name || info.in_place == Some(name)
}

/// Whether the op takes one tensor of any dtype and nothing else according to its row, so that no call is
/// wrong.
fn takes_any_tensor(info: &OpInfo) -> bool {
    info.tensors.len() == 1 && info.args.is_empty() && info.dtypes.len() == 3
}

/// Other ops that take all tensors: casts, new tensors of the sizes of another, a function whose other
/// argument is of two values, and those whose only argument is drawn as it must be, names.
const NEVER_FAIL: [&str; 12] = [
    "nonzero",
    "to",
    "type_as",
    "argwhere",
    "nonzero_numpy",
    "zeros_like",
    "ones_like",
    "empty_like",
    "isin",
    "diagflat",
    "ravel",
    "complex.from_real",
];
