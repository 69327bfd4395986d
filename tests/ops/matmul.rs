//! Products. Terms are at most 9, so errors are relative to the number of terms times that.

use crate::check::{near_one, numbers, values};
use crate::plain::sum;
use namegrad::prelude::*;

cases! {
    mm {
        (a: values("N=3 K=4"), b: values("K=4 M=2")) => "N=3 M=2" numeric, |i| sum(4, |k| a.at(&[i[0], k]) * b.at(&[k, i[1]])), scale 36.0;
        (a: values("N=2 K=1"), b: values("1 3")) => "N=2 ?=3" numeric, |i| a.at(&[i[0], 0]) * b.at(&[0, i[1]]), scale 9.0;
        (a: values("N=2 K=0"), b: values("K=0 M=3")) => "N=2 M=3" numeric, |i| 0.0, scale 1.0;
        (a: values("N=0 K=2"), b: values("K=2 M=3")) => "N=0 M=3" numeric, |i| 0.0, scale 1.0;
    }
    mv {
        (a: values("N=3 K=4"), b: values("K=4")) => "N=3" numeric, |i| sum(4, |k| a.at(&[i[0], k]) * b.at(&[k])), scale 36.0;
        (a: values("N=3 K=0"), b: values("0")) => "N=3" numeric, |i| 0.0, scale 1.0;
    }
    dot {
        (a: values("K=5"), b: values("K=5")) => "" numeric, |i| sum(5, |k| a.at(&[k]) * b.at(&[k])), scale 45.0;
        (a: values("0"), b: values("0")) => "" numeric, |i| 0.0, scale 1.0;
    }
    bmm {
        (a: values("B=2 N=2 K=3"), b: values("B=2 K=3 M=2")) => "B=2 N=2 M=2" numeric,
            |i| sum(3, |k| a.at(&[i[0], i[1], k]) * b.at(&[i[0], k, i[2]])), scale 27.0;
        (a: values("B=0 N=2 K=3"), b: values("B=0 K=3 M=2")) => "B=0 N=2 M=2" numeric, |i| 0.0, scale 1.0;
    }
    matmul {
        (a: values("K=3"), b: values("K=3")) => "" numeric, |i| sum(3, |k| a.at(&[k]) * b.at(&[k])), scale 27.0;
        (a: values("N=2 K=3"), b: values("K=3")) => "N=2" numeric, |i| sum(3, |k| a.at(&[i[0], k]) * b.at(&[k])), scale 27.0;
        (a: values("K=3"), b: values("K=3 M=2")) => "M=2" numeric, |i| sum(3, |k| a.at(&[k]) * b.at(&[k, i[0]])), scale 27.0;
        (a: values("N=2 K=3"), b: values("K=3 M=2")) => "N=2 M=2" numeric, |i| sum(3, |k| a.at(&[i[0], k]) * b.at(&[k, i[1]])), scale 27.0;
        (a: values("A=2 N=2 K=3"), b: values("K=3 M=2")) => "A=2 N=2 M=2" numeric,
            |i| sum(3, |k| a.at(&[i[0], i[1], k]) * b.at(&[k, i[2]])), scale 27.0;
        (a: values("A=2 N=2 K=3"), b: values("K=3")) => "A=2 N=2" numeric, |i| sum(3, |k| a.at(&[i[0], i[1], k]) * b.at(&[k])), scale 27.0;
        (a: values("K=3"), b: values("A=2 K=3 M=2")) => "A=2 M=2" numeric, |i| sum(3, |k| a.at(&[k]) * b.at(&[i[0], k, i[1]])), scale 27.0;
        (a: values("A=2 B=1 N=2 K=3"), b: values("B=2 K=3 M=1")) => "A=2 B=2 N=2 M=1" numeric,
            |i| sum(3, |k| a.at(&[i[0], 0, i[2], k]) * b.at(&[i[1], k, i[3]])), scale 27.0;
        (a: values("A=0 N=2 K=3"), b: values("K=3 M=2")) => "A=0 N=2 M=2" numeric, |i| 0.0, scale 1.0;
        (a: values("A=2 N=2 K=0"), b: values("K=0 M=2")) => "A=2 N=2 M=2" numeric, |i| 0.0, scale 1.0;
    }
    addmm {
        (x: values("N=2 M=2"), a: values("N=2 K=3"), b: values("K=3 M=2"); 2, -1) => "N=2 M=2" numeric,
            |i| 2.0 * x.at(i) - sum(3, |k| a.at(&[i[0], k]) * b.at(&[k, i[1]])), scale 33.0;
        (x: values("M=2"), a: values("N=2 K=3"), b: values("K=3 M=2"); 1, 1) => "N=2 M=2" numeric,
            |i| x.broadcast(i) + sum(3, |k| a.at(&[i[0], k]) * b.at(&[k, i[1]])), scale 33.0;
        (x: values(""), a: values("N=2 K=0"), b: values("K=0 M=2"); 1, 1) => "N=2 M=2" numeric, |i| x.broadcast(i), scale 3.0;
        (x: numbers("2 2", [f64::NAN; 4]), a: values("N=2 K=3"), b: values("K=3 M=2"); 0, 1) => "N=2 M=2" numeric,
            |i| sum(3, |k| a.at(&[i[0], k]) * b.at(&[k, i[1]])), scale 33.0;
    }
    addmv {
        (x: values("N=2"), a: values("N=2 K=3"), b: values("K=3"); 3, 2) => "N=2" numeric,
            |i| 3.0 * x.at(i) + 2.0 * sum(3, |k| a.at(&[i[0], k]) * b.at(&[k])), scale 63.0;
        (x: values(""), a: values("N=2 K=3"), b: values("K=3"); 1, 1) => "N=2" numeric,
            |i| x.at(&[]) + sum(3, |k| a.at(&[i[0], k]) * b.at(&[k])), scale 30.0;
    }
    baddbmm {
        (x: values("B=2 N=2 M=2"), a: values("B=2 N=2 K=3"), b: values("B=2 K=3 M=2"); -1, 2) => "B=2 N=2 M=2" numeric,
            |i| 2.0 * sum(3, |k| a.at(&[i[0], i[1], k]) * b.at(&[i[0], k, i[2]])) - x.at(i), scale 57.0;
        (x: values("M=2"), a: values("B=2 N=2 K=3"), b: values("B=2 K=3 M=2"); 1, 1) => "B=2 N=2 M=2" numeric,
            |i| x.broadcast(i) + sum(3, |k| a.at(&[i[0], i[1], k]) * b.at(&[i[0], k, i[2]])), scale 57.0;
    }
    addcmul {
        (x: values("N=2 C=3"), a: values("N=2 ?=1"), b: values("C=3"); 2) => "N=2 C=3" numeric,
            |i| x.at(i) + 2.0 * a.broadcast(i) * b.broadcast(i), scale 21.0;
        (x: values("C=3"), a: values("N=2 C=3"), b: values("")  ; 1) => "N=2 C=3" numeric, |i| x.broadcast(i) + a.at(i) * b.at(&[]), scale 12.0;
        (x: values("0"), a: values("0"), b: values("0"); 1) => "0" numeric, |i| 0.0;
    }
    addcdiv {
        (x: values("N=2 C=3"), a: values("N=2 ?=1"), b: near_one("C=3"); -0.5) => "N=2 C=3" to_float,
            |i| x.at(i) - 0.5 * a.broadcast(i) / b.broadcast(i), scale 5.0;
        (x: values(""), a: values("N=2"), b: near_one("N=2"); 1) => "N=2" to_float, |i| x.at(&[]) + a.at(i) / b.at(i), scale 6.0;
    }
    outer {
        (a: values("N=3"), b: values("M=2")) => "N=3 M=2" any, |i| a.at(&i[..1]) * b.at(&i[1..]);
        (a: values("N=0"), b: values("2")) => "N=0 ?=2" any, |i| 0.0;
    }
    tensordot {
        (a: values("N=2 K=3"), b: values("M=4 K=3"); "K", 1) => "N=2 M=4" numeric, |i| sum(3, |k| a.at(&[i[0], k]) * b.at(&[i[1], k])), scale 27.0;
        (a: values("A=2 B=3 N=2"), b: values("3 2 M=2"); [0, 1], [1, 0]) => "N=2 M=2" numeric,
            |i| sum(6, |k| a.at(&[k / 3, k % 3, i[0]]) * b.at(&[k % 3, k / 3, i[1]])), scale 54.0;
        (a: values("N=2"), b: values("M=3"); [] as [i32; 0], [] as [i32; 0]) => "N=2 M=3" numeric, |i| a.at(&i[..1]) * b.at(&i[1..]), scale 9.0;
    }
    contract {
        (a: values("N=3 K=4"), b: values("M=2 K=4"); "K") => "N=3 M=2" numeric, |i| sum(4, |k| a.at(&[i[0], k]) * b.at(&[i[1], k])), scale 36.0;
        (a: values("H=2 N=2 K=3"), b: values("K=3 M=2 H=2"); "K") => "H=2 N=2 M=2" numeric,
            |i| sum(3, |k| a.at(&[i[0], i[1], k]) * b.at(&[k, i[2], i[0]])), scale 27.0;
        (a: values("A=2 B=3"), b: values("B=3 A=2"); ["A", "B"]) => "" numeric, |i| sum(6, |k| a.at(&[k / 3, k % 3]) * b.at(&[k % 3, k / 3])), scale 54.0;
        (a: values("N=2 K=0"), b: values("K=0")  ; ["K"]) => "N=2" numeric, |i| 0.0, scale 1.0;
    }
}

#[test]
fn backward_of_a_batched_product_over_nothing_could_not_infer_a_size() -> Result<()> {
    let a = Tensor::ones([2, 2, 0])?.requiring_grad()?;
    let b = Tensor::ones([0, 3])?.requiring_grad()?;
    a.matmul(&b)?.sum(..)?.backward()?;
    assert_eq!(a.grad().unwrap().sizes(), [2, 2, 0]);
    assert_eq!(b.grad().unwrap().sizes(), [0, 3]);
    Ok(())
}

#[test]
fn tensordot_of_small_integers_over_a_dim_of_size_one_was_refused() -> Result<()> {
    for dtype in [DType::U8, DType::I32] {
        let x = Tensor::new([[1], [2]])?.to(dtype)?;
        let y = Tensor::new([[1, 2], [3, 4]])?.to(dtype)?;
        let product = x.tensordot(&y, [1], [0])?;
        assert_eq!((product.dtype(), product.to_vec::<i64>()?), (dtype, vec![4, 6, 8, 12]));
    }
    Ok(())
}

/// All sums of parts at a time would take 8 bytes for each 2^15 elements of the dim.
#[test]
fn long_dims_are_summed_in_rounds() -> Result<()> {
    let k = (1usize << 24) + 7;
    let x = Tensor::new([0.5])?.to(DType::F64)?.expand([k])?;
    assert_eq!(x.dot(&x)?.item::<f64>()?, k as f64 / 4.0);
    Ok(())
}
