//! Ops that select elements and concatenate tensors.

use crate::check::{Call, Case, any, axes, check, in_places, index, mask, numbers, sizes, values};
use crate::plain::{Plain, sum};
use namegrad::core::Reduce;
use namegrad::prelude::*;
use namegrad_tests::values::{f64s, gradient};

cases! {
    index_select {
        (x: values("N=3 C=4"), at: index("2", [2, 0]); "N") => "N=2 C=4" any, |i| x.at(&[at.whole(&i[..1]), i[1]]);
        (x: values("N=3 C=4"), at: index("3", [1, 1, 3]); -1) => "N=3 C=3" any, |i| x.at(&[i[0], at.whole(&i[1..])]);
        (x: values("N=3"), at: index("", [1]); 0) => "N=1" any, |i| x.at(&[1]);
        (x: values("N=3 C=2"), at: index("0", []); 0) => "N=0 C=2" any, |i| x.at(i);
        (x: values(""), at: index("1", [0]); 0) => "" any, |i| x.at(&[]);
    }
    gather {
        (x: values("N=3 C=4"), at: index("N=2 B=3", [0, 3, 1, 2, 2, 2]); 1) => "N=2 B=3" any, |i| x.at(&[i[0], at.whole(i)]);
        (x: values("N=3 C=2"), at: index("4 2", [0, 1, 2, 0, 1, 1, 2, 2]); "N") => "N=4 C=2" any, |i| x.at(&[at.whole(i), i[1]]);
        (x: values(""), at: index("", [0]); 0) => "" any, |i| x.at(i);
        (x: values("N=3"), at: index("0", []); 0) => "N=0" any, |i| x.at(i);
    }
    scatter_add {
        (x: values("N=3 C=4"), at: index("2 3", [0, 3, 0, 2, 2, 1]), source: values("2 4"); 1) => "N=3 C=4" any,
            |i| x.at(i) + if i[0] < 2 { sum(3, |j| if at.whole(&[i[0], j]) == i[1] { source.at(&[i[0], j]) } else { 0.0 }) } else { 0.0 }, scale 10.0;
        (x: values(""), at: index("", [0]), source: values(""); 0) => "" any, |i| x.at(&[]) + source.at(&[]), scale 10.0;
        (x: values("N=3"), at: index("0", []), source: values("2"); 0) => "N=3" any, |i| x.at(i), scale 10.0;
    }
    index_add {
        (x: values("N=3 C=2"), at: index("4", [0, 2, 0, 0]), source: values("4 2"); "N") => "N=3 C=2" any,
            |i| x.at(i) + sum(4, |j| if at.whole(&[j]) == i[0] { source.at(&[j, i[1]]) } else { 0.0 }), scale 10.0;
        (x: values("N=2 C=2"), at: index("0", []), source: values("2 0"); 1) => "N=2 C=2" any, |i| x.at(i), scale 10.0;
        (x: values("N=3"), at: index("2", [2, 2]), source: values("2"); "N", 2) => "N=3" any,
            |i| x.at(i) + if i[0] == 2 { 2.0 * (source.data[0] + source.data[1]) } else { 0.0 }, scale 20.0;
    }
    scatter {
        (x: values("N=3 C=4"), at: index("2 3", [0, 3, 1, 2, 1, 0]), source: values("2 4"); 1) => "N=3 C=4" any,
            |i| placed(at, i[0], i[1]).map_or(x.at(i), |j| source.at(&[i[0], j]));
        (x: values("N=3 C=2"), at: index("1 2", [2, 0]), source: values("1 2"); "N") => "N=3 C=2" any,
            |i| if at.whole(&[0, i[1]]) == i[0] { source.at(&[0, i[1]]) } else { x.at(i) };
        (x: values(""), at: index("", [0]), source: values(""); 0) => "" any, |i| source.at(&[]);
        (x: values("N=3"), at: index("0", []), source: values("2"); 0) => "N=3" any, |i| x.at(i);
    }
    scatter_reduce {
        (x: values("N=2 C=3"), at: index("2 3", [0, 2, 0, 1, 1, 1]), source: values("2 3"); 1, "sum", true) => "N=2 C=3" any,
            |i| terms(x, at, source, i, true).into_iter().sum(), scale 10.0;
        (x: values("N=2 C=3"), at: index("2 3", [0, 2, 0, 1, 1, 1]), source: values("2 3"); 1, "sum", false) => "N=2 C=3" any,
            |i| terms(x, at, source, i, false).into_iter().sum(), scale 10.0;
        (x: values("N=2 C=3"), at: index("2 3", [0, 2, 0, 1, 1, 1]), source: values("2 4"); "C", "mean", true) => "N=2 C=3" numeric,
            |i| mean(&terms(x, at, source, i, true)), scale 10.0;
        (x: values("N=2 C=3"), at: index("2 3", [0, 2, 0, 1, 1, 1]), source: values("2 3"); 1, "mean", false) => "N=2 C=3" numeric,
            |i| mean(&terms(x, at, source, i, false)), scale 10.0;
        (x: values("N=2 C=3"), at: index("2 3", [0, 2, 0, 1, 1, 1]), source: values("2 3"); 1, "prod", true) => "N=2 C=3" any,
            |i| terms(x, at, source, i, true).into_iter().product(), scale 40.0;
        (x: values("N=2 C=3"), at: index("2 3", [0, 2, 0, 1, 1, 1]), source: values("2 3"); 1, "prod", false) => "N=2 C=3" any,
            |i| terms(x, at, source, i, false).into_iter().product(), scale 40.0;
        (x: values("N=2 C=3"), at: index("2 3", [0, 2, 0, 1, 1, 1]), source: values("2 3"); 1, "amax", true) => "N=2 C=3" any,
            |i| terms(x, at, source, i, true).into_iter().reduce(f64::max).unwrap();
        (x: values("N=2 C=3"), at: index("2 3", [0, 2, 0, 1, 1, 1]), source: values("2 3"); 1, "amin", false) => "N=2 C=3" any,
            |i| terms(x, at, source, i, false).into_iter().reduce(f64::min).unwrap();
        (x: values(""), at: index("", [0]), source: values(""); 0, "sum", false) => "" any, |i| source.at(&[]);
        (x: values("N=3"), at: index("0", []), source: values("2"); 0, "amax", true) => "N=3" any, |i| x.at(i);
    }
    index_reduce {
        (x: values("N=2 C=3"), at: index("4", [2, 0, 2, 2]), source: values("2 4"); 1, "sum", true) => "N=2 C=3" any,
            |i| slices(x, at, source, i, true).into_iter().sum(), scale 10.0;
        (x: values("N=2 C=3"), at: index("4", [2, 0, 2, 2]), source: values("2 4"); "C", "mean", false) => "N=2 C=3" numeric,
            |i| mean(&slices(x, at, source, i, false)), scale 10.0;
        (x: values("N=2 C=3"), at: index("C=3", [1, 1, 0]), source: values("2 3"); 1, "prod", true) => "N=2 C=3" any,
            |i| slices(x, at, source, i, true).into_iter().product(), scale 40.0;
        (x: values("N=2 C=3"), at: index("3", [1, 1, 0]), source: values("2 3"); 1, "prod", false) => "N=2 C=3" any,
            |i| slices(x, at, source, i, false).into_iter().product(), scale 40.0;
        (x: values("N=2 C=3"), at: index("4", [2, 0, 2, 2]), source: values("2 4"); 1, "amax", true) => "N=2 C=3" any,
            |i| slices(x, at, source, i, true).into_iter().reduce(f64::max).unwrap();
        (x: values("N=2 C=3"), at: index("4", [2, 0, 2, 2]), source: values("2 4"); 1, "amin", false) => "N=2 C=3" any,
            |i| slices(x, at, source, i, false).into_iter().reduce(f64::min).unwrap();
        (x: values("N=3"), at: index("0", []), source: values("0"); 0, "amax", true) => "N=3" any, |i| x.at(i);
    }
    index_copy {
        (x: values("N=3 C=2"), at: index("2", [2, 0]), source: values("2 2"); "N") => "N=3 C=2" any,
            |i| (0..2).find(|j| at.whole(&[*j]) == i[0]).map_or(x.at(i), |j| source.at(&[j, i[1]]));
        (x: values("N=2 C=2"), at: index("0", []), source: values("2 0"); 1) => "N=2 C=2" any, |i| x.at(i);
        (x: values(""), at: index("1", [0]), source: values(""); 0) => "" any, |i| source.at(&[]);
    }
    tril {
        (x: values("A=2 N=3 C=4"); 0) => "A=2 N=3 C=4" any, |i| if i[2] <= i[1] { x.at(i) } else { 0.0 };
        (x: values("N=3 C=4"); 1) => "N=3 C=4" any, |i| if i[1] <= i[0] + 1 { x.at(i) } else { 0.0 };
        (x: values("N=0 C=4"); 1) => "N=0 C=4" any, |i| x.at(i);
    }
    triu {
        (x: values("A=2 N=3 C=4"); 0) => "A=2 N=3 C=4" any, |i| if i[2] >= i[1] { x.at(i) } else { 0.0 };
        (x: values("N=3 C=4"); -1) => "N=3 C=4" any, |i| if i[1] + 1 >= i[0] { x.at(i) } else { 0.0 };
    }
    choose {
        (condition: mask("2 3", [1, 0, 1, 0, 0, 1]), x: values("N=2 C=3"), other: values("N=2 C=3")) => "N=2 C=3" any,
            |i| if condition.at(i) != 0.0 { x.at(i) } else { other.at(i) };
        (condition: mask("2 3", [1, 0, 1, 0, 0, 1]), x: values("C=3"), other: values("")) => "2 C=3" any,
            |i| if condition.at(i) != 0.0 { x.broadcast(i) } else { other.at(&[]) };
        (condition: mask("N=0", []), x: values(""), other: values("")) => "N=0" any, |i| 0.0;
    }
    masked_fill {
        (x: values("N=2 C=3"), mask: mask("C=3", [0, 1, 1]), value: values("")) => "N=2 C=3" any,
            |i| if mask.broadcast(i) != 0.0 { value.at(&[]) } else { x.at(i) };
        (x: values("3"), mask: mask("2 1", [0, 1]), value: values("")) => "2 3" any,
            |i| if mask.broadcast(i) != 0.0 { value.at(&[]) } else { x.broadcast(i) };
    }
    masked_select {
        (x: values("N=2 C=2"), mask: mask("2 2", [1, 0, 0, 1])) => "2" any, |i| x.at(&[i[0], i[0]]);
        (x: values("N=2 C=3"), mask: mask("C=3", [0, 1, 0])) => "2" any, |i| x.at(&[i[0], 1]);
        (x: values("C=3"), mask: mask("2 1", [0, 1])) => "3" any, |i| x.at(i);
        (x: values("C=3"), mask: mask("3", [0, 0, 0])) => "0" any, |i| x.at(i);
    }
    cat {
        (x: values("N=2 C=3"), y: values("?=2 C=2"); -1) => "N=2 C=5" any, |i| if i[1] < 3 { x.at(i) } else { y.at(&[i[0], i[1] - 3]) };
        (x: values("N=2 C=3"), y: values("N=2 C=0"); "C") => "N=2 C=3" any, |i| x.at(i);
        (x: values("N=2"), y: values("N=1"), z: values("N=2")) => "N=5" any, |i| [x.data[0], x.data[1], y.data[0], z.data[0], z.data[1]][i[0]];
    }
    stack {
        (x: values("N=2 C=3"), y: values("2 C=3"); 1) => "N=2 ?=2 C=3" any, |i| if i[1] == 0 { x.at(&[i[0], i[2]]) } else { y.at(&[i[0], i[2]]) };
        (x: values("C=3"), y: values("C=3"); -1, "N") => "C=3 N=2" any, |i| if i[1] == 0 { x.at(&i[..1]) } else { y.at(&i[..1]) };
        (x: values(""); -1) => "1" any, |i| x.at(&[]);
    }
    roll {
        (x: values("N=2 C=3"); -4, 1) => "N=2 C=3" any, |i| x.at(&[i[0], (i[1] + 4) % 3]);
        (x: values(""); 1, 0) => "" any, |i| x.at(i);
    }
    nonzero {
        (x: numbers("N=2 C=3", [0.0, 1.0, 0.0, 3.0, 0.0, 1.0])) => "3 2" indices, |i| [[0.0, 1.0], [1.0, 0.0], [1.0, 2.0]][i[0]][i[1]];
        (x: numbers("N=2", [0.0, 0.0])) => "0 1" indices, |i| x.at(i);
        (x: numbers("N=2", [0.0, 1.0]); ["place", "dim"]) => "place=1 dim=1" indices, |i| 1.0;
        (x: numbers("", [1.0])) => "1 0" indices, |i| x.at(i);
    }
}

/// The column of `row` in which the index is `to`.
fn placed(at: &Plain, row: usize, to: usize) -> Option<usize> {
    (0..at.sizes[1]).find(|j| row < at.sizes[0] && at.whole(&[row, *j]) == to)
}

/// The elements that are reduced to one element of a matrix along its rows.
fn terms(x: &Plain, at: &Plain, source: &Plain, i: &[usize], include_self: bool) -> Vec<f64> {
    let own = (0..at.sizes[1]).filter(|j| at.whole(&[i[0], *j]) == i[1]);
    let mut terms: Vec<f64> = own.map(|j| source.at(&[i[0], j])).collect();
    if include_self || terms.is_empty() {
        terms.insert(0, x.at(i));
    }
    terms
}

/// The elements that are reduced to one element of a matrix along its rows, whose columns have positions.
fn slices(x: &Plain, at: &Plain, source: &Plain, i: &[usize], include_self: bool) -> Vec<f64> {
    let own = (0..at.sizes[0]).filter(|j| at.whole(&[*j]) == i[1]);
    let mut terms: Vec<f64> = own.map(|j| source.at(&[i[0], j])).collect();
    if include_self || terms.is_empty() {
        terms.insert(0, x.at(i));
    }
    terms
}

/// The mean, rounded down for integers.
fn mean(terms: &[f64]) -> f64 {
    let mean = terms.iter().sum::<f64>() / terms.len() as f64;
    if terms.iter().all(|x| x.fract() == 0.0) { mean.floor() } else { mean }
}

/// A number is written to every position.
#[test]
fn scatter_of_a_number() {
    let mut x = Tensor::new([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).unwrap();
    x.requires_grad_(true).unwrap();
    let at = Tensor::new([[0i64, 2], [1, 1]]).unwrap();
    let y = x.scatter(&at, -1.0, 1).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [-1.0, 2.0, -1.0, 4.0, -1.0, 6.0]);
    y.sum(..).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
}

/// If there is a zero, the gradient of a product cannot be computed by division.
#[test]
fn scatter_reduce_with_zeros() {
    use namegrad::autograd::gradcheck;
    let at = Tensor::new([0_i64, 0, 0, 1, 1, 2]).unwrap();
    let source = Tensor::new([2.0, 0.0, 3.0, 0.0, 0.0, 4.0]).unwrap().to(DType::F64).unwrap();
    for first in [0.0, 5.0] {
        let x = Tensor::new([first, 7.0, 3.0, 2.0]).unwrap().to(DType::F64).unwrap();
        for include_self in [true, false] {
            let product = |given: &[Tensor]| {
                given[0].scatter_reduce_with(
                    &at,
                    &given[1],
                    0,
                    Reduce::Prod,
                    ScatterReduceOptions::new().include_self(include_self),
                )
            };
            gradcheck(product, &[x.clone(), source.clone()]).unwrap();
        }
    }
}

/// The product of all factors may be out of the range of the dtype, and those without one factor not.
#[test]
fn scatter_reduce_of_large_numbers() -> Result<()> {
    let (x, at) = (Tensor::new([1.0])?, Tensor::new([0_i64, 0, 0])?);
    for dtype in [DType::F32, DType::BF16] {
        let source = Tensor::new([1e30, 1e30, 1e-30])?.to(dtype)?.requiring_grad()?;
        x.to(dtype)?.scatter_reduce(&at, &source, 0, Reduce::Prod)?.sum(..)?.backward()?;
        let gradient = source.grad().unwrap().to_vec::<f64>()?;
        assert!((gradient[0] - 1.0).abs() < 0.02 && gradient[0] == gradient[1], "{dtype}: {gradient:?}");
        assert_eq!(gradient[2], f64::INFINITY);
    }
    Ok(())
}

/// The gradient of an extreme that occurs several times is shared.
#[test]
fn scatter_reduce_shares_the_gradient() {
    let (at, source) = (Tensor::new([0_i64, 0, 1]).unwrap(), Tensor::new([3.0, 3.0, 1.0]).unwrap());
    let x = Tensor::new([3.0, 2.0]).unwrap().requiring_grad().unwrap();
    let source = source.requiring_grad().unwrap();
    x.scatter_reduce(&at, &source, 0, Reduce::Amax).unwrap().sum(..).unwrap().backward().unwrap();
    let third = 1.0 / 3.0;
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [third, 1.0]);
    assert_eq!(source.grad().unwrap().to_vec::<f32>().unwrap(), [third, third, 0.0]);
}

/// A case of an op that has no row in a table because it takes a list of tensors or a mask.
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
        inputs: in_places(inputs),
        result,
        dtype: any,
        reference: Box::new(reference),
        scale: None,
        reshapes: true,
    });
}

/// Elements that were not selected were read from uninitialized memory.
#[test]
fn an_empty_index_into_a_0d_tensor_gave_a_number_from_nowhere() -> Result<()> {
    let x = Tensor::full([0usize; 0], 3.0)?;
    let index = |n: usize| Tensor::zeros([n])?.to(DType::I64);
    assert_eq!(x.index_select(&index(1)?, 0)?.item::<f64>()?, 3.0);
    for n in [0, 2] {
        assert_eq!(x.index_select(&index(n)?, 0).unwrap_err().kind(), ErrorKind::Index);
    }
    Ok(())
}

#[test]
fn sums_of_many_terms_by_index_saturated() -> Result<()> {
    let ones = Tensor::ones([3000])?;
    let places = Tensor::zeros([3000])?.to(DType::I64)?;
    for dtype in [DType::F16, DType::BF16] {
        let half = ones.to(dtype)?.requiring_grad()?;
        let sum = places.bincount_with(BincountOptions::new().weights(&half))?;
        assert_eq!((sum.dtype(), sum.to_vec::<f64>()?), (DType::F64, vec![3000.0]));
        sum.sum(..)?.backward()?;
        assert_eq!(half.grad().unwrap().to_vec::<f32>()?, vec![1.0; 3000]);
        let sum = Tensor::zeros([2])?.to(dtype)?.index_add(&places, half.detach(), 0)?;
        assert_eq!(sum.to_vec::<f32>()?, [Tensor::new([3000.0])?.to(dtype)?.to_vec::<f32>()?[0], 0.0]);
    }
    let n = 1_000_000;
    let terms = Tensor::full([n], 0.1)?;
    let places = Tensor::zeros([n])?.to(DType::I64)?;
    let exact = [(f64::from(0.1f32) * n as f64) as f32];
    assert_eq!(places.bincount_with(BincountOptions::new().weights(&terms))?.to_vec::<f32>()?, exact);
    assert_eq!(Tensor::zeros([1])?.index_add(&places, &terms, 0)?.to_vec::<f32>()?, exact);
    assert_eq!(Tensor::zeros([1])?.scatter_add(&places, &terms, 0)?.to_vec::<f32>()?, exact);
    Ok(())
}

#[test]
fn a_0d_tensor_and_an_index_of_one_element_did_not_meet() -> Result<()> {
    let x = Tensor::new(5.0)?.requiring_grad()?;
    let source = Tensor::new([2.0])?.requiring_grad()?;
    let index = Tensor::new([0])?;
    assert_eq!(x.gather(&index, 0)?.to_vec::<f32>()?, [5.0]);
    for (y, value) in [
        (x.index_add(&index, &source, 0)?, 7.0),
        (x.index_copy(&index, &source, 0)?, 2.0),
        (x.scatter(&index, &source, 0)?, 2.0),
        (x.scatter_add(&index, &source, 0)?, 7.0),
    ] {
        assert_eq!((y.ndim(), y.item::<f64>()?), (0, value));
        y.backward()?;
    }
    assert_eq!((x.grad().unwrap().item::<f64>()?, x.grad().unwrap().ndim()), (2.0, 0));
    assert_eq!(source.grad().unwrap().to_vec::<f32>()?, [4.0]);
    assert!(x.gather(&Tensor::new([[0]])?, 0).is_err());
    Ok(())
}

#[test]
fn a_tensor_did_not_spread_over_the_mask_of_masked_scatter() -> Result<()> {
    let mask = Tensor::new([[true, false], [true, true]])?;
    let source = f64s([7.0, 8.0, 9.0])?;
    let y = f64s([1.0, 2.0])?.masked_scatter(&mask, &source)?;
    assert_eq!((y.sizes(), y.to_vec::<f64>()?), (&[2, 2][..], vec![7.0, 2.0, 8.0, 9.0]));
    assert_eq!(gradient(&f64s([1.0, 2.0])?, |x| x.masked_scatter(&mask, &source))?, [0.0, 1.0]);
    assert_eq!(f64s([1.0, 2.0])?.masked_scatter_(&mask, &source).unwrap_err().kind(), ErrorKind::Shape);
    let named = f64s([1.0, 2.0])?.refine_names(["C"])?;
    assert_eq!(named.masked_scatter(&mask, &source).unwrap_err().kind(), ErrorKind::Shape);
    Ok(())
}

/// The dims beside the positions are those of the tensor, and an index gives its dim a name.
#[test]
fn names_beside_the_positions() -> Result<()> {
    let x = Tensor::rand([("node", 3), ("C", 4)])?;
    let unnamed = Tensor::new([2, 0])?;
    let edges = unnamed.refine_names(["edge"])?;
    assert_eq!(x.index_select(&edges, "node")?.shape().to_string(), "[edge=2, C=4]");
    assert_eq!(x.index_select(&unnamed, "node")?.shape().to_string(), "[node=2, C=4]");
    assert_eq!(
        x.index_select(&unnamed.refine_names(["C"])?, "node").unwrap_err().kind(),
        ErrorKind::DuplicateName
    );

    let sum = |names: [&str; 2]| x.index_add(&edges, &Tensor::ones([(names[0], 2), (names[1], 4)])?, "node");
    assert_eq!(sum(["edge", "C"])?.shape(), x.shape());
    for (names, kind) in [
        (["edge", "K"], ErrorKind::NameMismatch),
        (["node", "C"], ErrorKind::NameMismatch), // the index is of edges
        (["C", "edge"], ErrorKind::Misaligned),
    ] {
        assert_eq!(sum(names).unwrap_err().kind(), kind, "{names:?}");
    }
    // An index with the name of another dim.
    let index = Tensor::new([0, 1])?.refine_names(["C"])?;
    assert_eq!(x.index_fill(&index, 0.0, "node").unwrap_err().kind(), ErrorKind::DuplicateName);
    let unnamed = Tensor::ones([2, 4])?;
    assert_eq!(x.index_add(&index, &unnamed, "node").unwrap_err().kind(), ErrorKind::DuplicateName);

    let swapped = Tensor::ones([("C", 3), ("node", 4)])?;
    assert_eq!(
        x.index_copy(&Tensor::new([0, 1, 2])?, &swapped, "node").unwrap_err().kind(),
        ErrorKind::Misaligned
    );

    let index = Tensor::zeros([("node", 3), ("top", 2)])?.to(DType::I64)?;
    assert_eq!(x.gather(&index, "C")?.shape().to_string(), "[node=3, top=2]");
    let turned = Tensor::zeros([("top", 2), ("node", 3)])?.to(DType::I64)?;
    let error = x.gather(&turned, "C").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NameMismatch);
    assert_eq!(error.repair(), Some("index.align_to([\"node\", \"top\"])?"));
    assert_eq!(x.gather(&turned.align_to(["node", "top"])?, "C")?.shape().to_string(), "[node=3, top=2]");
    let source = Tensor::ones([("node", 3), ("top", 2)])?;
    assert_eq!(x.scatter_add(&index, &source, "C")?.shape(), x.shape());
    for names in [["node", "rank"], ["row", "top"]] {
        let error = x.scatter(&index, &source.rename(names)?, "C").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NameMismatch, "{names:?}");
    }
    assert_eq!(
        namegrad::names::strict(|| x.gather(&index.rename(None)?, "C")).unwrap_err().kind(),
        ErrorKind::NameMismatch
    );
    Ok(())
}

/// NaN is an extreme as any other: the gradient goes to it.
#[test]
fn scatter_reduce_of_nan() -> Result<()> {
    for reduce in [Reduce::Amax, Reduce::Amin] {
        let x = f64s([f64::NAN, 1.0, 2.0])?.requiring_grad()?;
        let source = f64s([f64::NAN, 0.0])?.requiring_grad()?;
        let y = x.scatter_reduce(&Tensor::new([1, 1])?, &source, 0, reduce)?;
        y.sum(..)?.backward()?;
        let of = |x: &Tensor| x.grad().expect("it was computed").to_vec::<f64>();
        assert_eq!(of(&x)?, [1.0, 0.0, 1.0]);
        assert_eq!(of(&source)?, [1.0, 0.0]);
    }
    Ok(())
}

/// A concatenated dim can get another name, whatever it is called in the tensors; the other dims still match.
#[test]
fn cat_names_its_dim() -> Result<()> {
    let x = Tensor::ones([("N", 2), ("color", 3)])?;
    let depth = Tensor::ones([("N", 2), ("depth", 1)])?;
    let named =
        |x: &Tensor, y: &Tensor, name: &str| Tensor::cat_with(&[x, y], 1, CatOptions::new().name(name));
    assert_eq!(named(&x, &depth, "C")?.shape().to_string(), "[N=2, C=4]");
    assert_eq!(named(&x.rename(None)?, &depth, "C")?.shape().to_string(), "[N=2, C=4]");
    assert_eq!(Tensor::cat(&[&x, &depth], 1).unwrap_err().kind(), ErrorKind::NameMismatch);
    assert_eq!(named(&x, &depth.rename(["M", "depth"])?, "C").unwrap_err().kind(), ErrorKind::NameMismatch);
    assert_eq!(named(&x, &depth, "N").unwrap_err().kind(), ErrorKind::DuplicateName);
    let (x, depth) = (x.requiring_grad()?, depth.requiring_grad()?);
    named(&x, &depth, "C")?.mul(3.0)?.sum(..)?.backward()?;
    assert_eq!(depth.grad().unwrap().to_vec::<f32>()?, [3.0, 3.0]);
    Ok(())
}

/// A letter is one dim: differently named dims with it are an error, and in strict mode unnamed ones too.
#[test]
fn letters_of_einsum_have_one_name() -> Result<()> {
    let x = Tensor::ones([("N", 2), ("in", 3)])?;
    let weight = Tensor::ones([("out", 3), ("in", 3)])?;
    assert_eq!(Tensor::einsum("ni,oi->no", &[&x, &weight])?.sizes(), [2, 3]);
    let error = Tensor::einsum("ni,io->no", &[&x, &weight]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NameMismatch);
    assert!(
        error.message().contains("'i' is a dim that is 'in' in operand 0 and 'out' in operand 1"),
        "{error}"
    );
    let unnamed = weight.rename(None)?;
    assert!(Tensor::einsum("ni,io->no", &[&x, &unnamed]).is_ok());
    assert!(namegrad::names::strict(|| Tensor::einsum("ni,io->no", &[&x, &unnamed])).is_err());
    Ok(())
}

/// The repair of an index that lacks one dim reads one element for each of its positions.
#[test]
fn an_index_with_a_dim_less_is_aligned() -> Result<()> {
    let x = Tensor::new([[1, 2, 3], [4, 5, 6]])?.refine_names(["N", "class"])?;
    let index = Tensor::new([2, 0])?.refine_names(["N"])?;
    let error = x.gather(&index, "class").unwrap_err();
    assert!(error.repair().unwrap().starts_with("x.gather(&index.align_as(&x)?, \"class\")?"), "{error}");
    assert_eq!(x.gather(&index.align_as(&x)?, "class")?.to_vec::<i64>()?, [3, 4]);
    Ok(())
}

#[test]
fn index_fill_of_a_named_tensor_failed_in_strict_mode() -> Result<()> {
    let x = Tensor::ones([("N", 2), ("C", 3)])?;
    let y = namegrad::names::strict(|| x.index_fill(&Tensor::new([0, -1])?, 0, "C"))?;
    assert_eq!((y.shape(), y.to_vec::<f32>()?), (x.shape(), vec![0.0, 1.0, 0.0, 0.0, 1.0, 0.0]));
    // Reductions over segments are methods of results too.
    let sums = x.exp().segment_sum(&Tensor::new([0, 0, 1])?, "C", ("part", 2))?;
    assert_eq!(sums.shape().to_string(), "[N=2, part=2]");
    Ok(())
}
