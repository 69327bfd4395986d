//! Ops that pick elements and put tensors together.

use crate::check::{Call, Case, any, axes, check, index, mask, numbers, sizes, values};
use crate::plain::{Plain, sum};
use namegrad::core::Reduce;
use namegrad::prelude::*;

cases! {
    index_select {
        (x: values("N=3 C=4"), at: index("2", [2, 0]); "N") => "N=2 C=4" any, |i| x.at(&[at.whole(&i[..1]), i[1]]);
        (x: values("N=3 C=4"), at: index("3", [1, 1, 3]); -1) => "N=3 C=3" any, |i| x.at(&[i[0], at.whole(&i[1..])]);
        (x: values("N=3"), at: index("", [1]); 0) => "N=1" any, |i| x.at(&[1]);
        (x: values("N=3 C=2"), at: index("0", []); 0) => "N=0 C=2" any, |i| x.at(i);
        (x: values(""), at: index("1", [0]); 0) => "" any, |i| x.at(&[]);
    }
    gather {
        (x: values("N=3 C=4"), at: index("A=2 B=3", [0, 3, 1, 2, 2, 2]); 1) => "A=2 B=3" any, |i| x.at(&[i[0], at.whole(i)]);
        (x: values("N=3 C=2"), at: index("4 2", [0, 1, 2, 0, 1, 1, 2, 2]); "N") => "4 2" any, |i| x.at(&[at.whole(i), i[1]]);
        (x: values(""), at: index("", [0]); 0) => "" any, |i| x.at(i);
        (x: values("N=3"), at: index("0", []); 0) => "0" any, |i| x.at(i);
    }
    scatter_add scatter_add_ {
        (x: values("N=3 C=4"), at: index("2 3", [0, 3, 0, 2, 2, 1]), source: values("2 4"); 1) => "N=3 C=4" any,
            |i| x.at(i) + if i[0] < 2 { sum(3, |j| if at.whole(&[i[0], j]) == i[1] { source.at(&[i[0], j]) } else { 0.0 }) } else { 0.0 }, scale 10.0;
        (x: values(""), at: index("", [0]), source: values(""); 0) => "" any, |i| x.at(&[]) + source.at(&[]), scale 10.0;
        (x: values("N=3"), at: index("0", []), source: values("2"); 0) => "N=3" any, |i| x.at(i), scale 10.0;
    }
    index_add index_add_ {
        (x: values("N=3 C=2"), at: index("4", [0, 2, 0, 0]), source: values("4 2"); "N") => "N=3 C=2" any,
            |i| x.at(i) + sum(4, |j| if at.whole(&[j]) == i[0] { source.at(&[j, i[1]]) } else { 0.0 }), scale 10.0;
        (x: values("N=2 C=2"), at: index("0", []), source: values("2 0"); 1) => "N=2 C=2" any, |i| x.at(i), scale 10.0;
    }
    scatter scatter_ {
        (x: values("N=3 C=4"), at: index("2 3", [0, 3, 1, 2, 1, 0]), source: values("2 4"); 1) => "N=3 C=4" any,
            |i| placed(at, i[0], i[1]).map_or(x.at(i), |j| source.at(&[i[0], j]));
        (x: values("N=3 C=2"), at: index("1 2", [2, 0]), source: values("1 2"); "N") => "N=3 C=2" any,
            |i| if at.whole(&[0, i[1]]) == i[0] { source.at(&[0, i[1]]) } else { x.at(i) };
        (x: values(""), at: index("", [0]), source: values(""); 0) => "" any, |i| source.at(&[]);
        (x: values("N=3"), at: index("0", []), source: values("2"); 0) => "N=3" any, |i| x.at(i);
    }
    scatter_reduce scatter_reduce_ {
        (x: values("N=2 C=3"), at: index("2 3", [0, 2, 0, 1, 1, 1]), source: values("2 3"); 1, Reduce::Sum, true) => "N=2 C=3" any,
            |i| terms(x, at, source, i, true).into_iter().sum(), scale 10.0;
        (x: values("N=2 C=3"), at: index("2 3", [0, 2, 0, 1, 1, 1]), source: values("2 3"); 1, Reduce::Sum, false) => "N=2 C=3" any,
            |i| terms(x, at, source, i, false).into_iter().sum(), scale 10.0;
        (x: values("N=2 C=3"), at: index("2 3", [0, 2, 0, 1, 1, 1]), source: values("2 4"); "C", Reduce::Mean, true) => "N=2 C=3" numeric,
            |i| mean(&terms(x, at, source, i, true)), scale 10.0;
        (x: values("N=2 C=3"), at: index("2 3", [0, 2, 0, 1, 1, 1]), source: values("2 3"); 1, Reduce::Mean, false) => "N=2 C=3" numeric,
            |i| mean(&terms(x, at, source, i, false)), scale 10.0;
        (x: values("N=2 C=3"), at: index("2 3", [0, 2, 0, 1, 1, 1]), source: values("2 3"); 1, Reduce::Prod, true) => "N=2 C=3" any,
            |i| terms(x, at, source, i, true).into_iter().product(), scale 40.0;
        (x: values("N=2 C=3"), at: index("2 3", [0, 2, 0, 1, 1, 1]), source: values("2 3"); 1, Reduce::Prod, false) => "N=2 C=3" any,
            |i| terms(x, at, source, i, false).into_iter().product(), scale 40.0;
        (x: values("N=2 C=3"), at: index("2 3", [0, 2, 0, 1, 1, 1]), source: values("2 3"); 1, Reduce::Amax, true) => "N=2 C=3" any,
            |i| terms(x, at, source, i, true).into_iter().reduce(f64::max).unwrap();
        (x: values("N=2 C=3"), at: index("2 3", [0, 2, 0, 1, 1, 1]), source: values("2 3"); 1, Reduce::Amin, false) => "N=2 C=3" any,
            |i| terms(x, at, source, i, false).into_iter().reduce(f64::min).unwrap();
        (x: values(""), at: index("", [0]), source: values(""); 0, Reduce::Sum, false) => "" any, |i| source.at(&[]);
        (x: values("N=3"), at: index("0", []), source: values("2"); 0, Reduce::Amax, true) => "N=3" any, |i| x.at(i);
    }
    index_copy index_copy_ {
        (x: values("N=3 C=2"), at: index("2", [2, 0]), source: values("2 2"); "N") => "N=3 C=2" any,
            |i| (0..2).find(|j| at.whole(&[*j]) == i[0]).map_or(x.at(i), |j| source.at(&[j, i[1]]));
        (x: values("N=2 C=2"), at: index("0", []), source: values("2 0"); 1) => "N=2 C=2" any, |i| x.at(i);
        (x: values(""), at: index("1", [0]), source: values(""); 0) => "" any, |i| source.at(&[]);
    }
    tril tril_ {
        (x: values("A=2 N=3 C=4"); 0) => "A=2 N=3 C=4" any, |i| if i[2] <= i[1] { x.at(i) } else { 0.0 };
        (x: values("N=3 C=4"); 1) => "N=3 C=4" any, |i| if i[1] <= i[0] + 1 { x.at(i) } else { 0.0 };
        (x: values("N=0 C=4"); 1) => "N=0 C=4" any, |i| x.at(i);
    }
    triu triu_ {
        (x: values("A=2 N=3 C=4"); 0) => "A=2 N=3 C=4" any, |i| if i[2] >= i[1] { x.at(i) } else { 0.0 };
        (x: values("N=3 C=4"); -1) => "N=3 C=4" any, |i| if i[1] + 1 >= i[0] { x.at(i) } else { 0.0 };
    }
    nonzero {
        (x: numbers("N=2 C=3", [0.0, 1.0, 0.0, 3.0, 0.0, 1.0])) => "3 2" indices, |i| [[0.0, 1.0], [1.0, 0.0], [1.0, 2.0]][i[0]][i[1]];
        (x: numbers("N=2", [0.0, 0.0])) => "0 1" indices, |i| x.at(i);
        (x: numbers("", [1.0])) => "1 0" indices, |i| x.at(i);
    }
}

/// The column of `row` in which the index says `to`.
fn placed(at: &Plain, row: usize, to: usize) -> Option<usize> {
    (0..at.sizes[1]).find(|j| row < at.sizes[0] && at.whole(&[row, *j]) == to)
}

/// What is reduced to an element of a matrix along its rows.
fn terms(x: &Plain, at: &Plain, source: &Plain, i: &[usize], include_self: bool) -> Vec<f64> {
    let own = (0..at.sizes[1]).filter(|j| at.whole(&[i[0], *j]) == i[1]);
    let mut terms: Vec<f64> = own.map(|j| source.at(&[i[0], j])).collect();
    if include_self || terms.is_empty() {
        terms.insert(0, x.at(i));
    }
    terms
}

/// The mean; that of whole numbers rounds down.
fn mean(terms: &[f64]) -> f64 {
    let mean = terms.iter().sum::<f64>() / terms.len() as f64;
    if terms.iter().all(|x| x.fract() == 0.0) { mean.floor() } else { mean }
}

/// Beside a zero the gradient of a product is not what is divided out.
#[test]
fn scatter_reduce_with_zeros() {
    use namegrad::autograd::{GradCheck, gradcheck};
    let at = Tensor::new([0_i64, 0, 0, 1, 1, 2]).unwrap();
    let source = Tensor::new([2.0, 0.0, 3.0, 0.0, 0.0, 4.0]).unwrap().to(DType::F64).unwrap();
    for first in [0.0, 5.0] {
        let x = Tensor::new([first, 7.0, 3.0, 2.0]).unwrap().to(DType::F64).unwrap();
        for include_self in [true, false] {
            let product =
                |given: &[Tensor]| given[0].scatter_reduce(&at, &given[1], 0, Reduce::Prod, include_self);
            gradcheck(product, &[x.clone(), source.clone()], GradCheck::default()).unwrap();
        }
    }
}

/// The gradient of an extreme that stands several times is shared.
#[test]
fn scatter_reduce_shares_the_gradient() {
    let (at, source) = (Tensor::new([0_i64, 0, 1]).unwrap(), Tensor::new([3.0, 3.0, 1.0]).unwrap());
    let x = Tensor::new([3.0, 2.0]).unwrap().requires_grad_(true).unwrap();
    let source = source.requires_grad_(true).unwrap();
    x.scatter_reduce(&at, &source, 0, Reduce::Amax, true).unwrap().sum(..).unwrap().backward().unwrap();
    let third = 1.0 / 3.0;
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [third, 1.0]);
    assert_eq!(source.grad().unwrap().to_vec::<f32>().unwrap(), [third, third, 0.0]);
}

/// A case of an op that has no row in a table because it takes a list of tensors, or a mask.
pub(crate) fn other(
    op: &'static str,
    call: impl Fn(&[Tensor]) -> Result<Tensor> + 'static,
    inputs: Vec<crate::check::Input>,
    result: &str,
    element: impl Fn(&[Plain], &[usize]) -> f64 + 'static,
) {
    let result = axes(result);
    let shape = sizes(&result);
    let reference = move |x: &[Plain]| Plain::from_fn(&shape, |i| element(x, i));
    let call: Call = Box::new(call);
    check(&Case {
        op,
        call,
        in_place: None,
        inputs,
        result,
        dtype: any,
        reference: Box::new(reference),
        scale: None,
        reshapes: true,
    });
}

#[test]
fn where_self() {
    let condition = || mask("2 3", [1, 0, 1, 0, 0, 1]);
    let chosen = |x: &[Plain], i: &[usize]| {
        if x[1].broadcast(i) != 0.0 { x[0].broadcast(i) } else { x[2].broadcast(i) }
    };
    let call = |x: &[Tensor]| x[0].where_self(&x[1], &x[2]);
    other("where", call, vec![values("N=2 C=3"), condition(), values("N=2 C=3")], "N=2 C=3", chosen);
    other("where", call, vec![values("C=3"), condition(), values("")], "2 C=3", chosen);
    other("where", call, vec![values(""), mask("N=0", []), values("")], "N=0", chosen);
}

#[test]
fn masked_fill() {
    let filled =
        |x: &[Plain], i: &[usize]| if x[1].broadcast(i) != 0.0 { x[2].at(&[]) } else { x[0].broadcast(i) };
    let call = |x: &[Tensor]| x[0].masked_fill(&x[1], &x[2]);
    other(
        "masked_fill",
        call,
        vec![values("N=2 C=3"), mask("C=3", [0, 1, 1]), values("")],
        "N=2 C=3",
        filled,
    );
    other("masked_fill", call, vec![values("C=3"), mask("2 1", [0, 1]), values("")], "2 C=3", filled);
}

#[test]
fn masked_select() {
    let call = |x: &[Tensor]| x[0].masked_select(&x[1]);
    other("masked_select", call, vec![values("N=2 C=2"), mask("2 2", [1, 0, 0, 1])], "2", |x, i| {
        x[0].at(&[i[0], i[0]])
    });
    other("masked_select", call, vec![values("N=2 C=3"), mask("C=3", [0, 1, 0])], "2", |x, i| {
        x[0].at(&[i[0], 1])
    });
    other("masked_select", call, vec![values("C=3"), mask("2 1", [0, 1])], "3", |x, i| x[0].at(i));
    other("masked_select", call, vec![values("C=3"), mask("3", [0, 0, 0])], "0", |x, i| x[0].at(i));
}

#[test]
fn cat() {
    let parts = |x: &[Plain], i: &[usize]| if i[1] < 3 { x[0].at(i) } else { x[1].at(&[i[0], i[1] - 3]) };
    let call = |x: &[Tensor]| Tensor::cat(&[&x[0], &x[1]], -1);
    other("cat", call, vec![values("N=2 C=3"), values("?=2 C=2")], "N=2 C=5", parts);
    other("cat", call, vec![values("N=2 C=3"), values("N=2 C=0")], "N=2 C=3", parts);
}

#[test]
fn stack() {
    let call = |x: &[Tensor]| Tensor::stack(&[&x[0], &x[1]], 1, None);
    other("stack", call, vec![values("N=2 C=3"), values("2 C=3")], "N=2 ?=2 C=3", |x, i| {
        x[i[1]].at(&[i[0], i[2]])
    });
    other("stack", |x| Tensor::stack(&[&x[0]], -1, None), vec![values("")], "1", |x, _| x[0].at(&[]));
}

#[test]
fn roll() {
    let call = |x: &[Tensor]| x[0].roll(-4, 1);
    other("roll", call, vec![values("N=2 C=3")], "N=2 C=3", |x, i| x[0].at(&[i[0], (i[1] + 4) % 3]));
    other("roll", |x| x[0].roll(1, 0), vec![values("")], "", |x, i| x[0].at(i));
}
