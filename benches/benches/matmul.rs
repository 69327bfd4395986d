//! Compares `Tensor::matmul` with the bare kernels of `matrixmultiply` and `gemm`, which write into an
//! existing buffer.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use namegrad::prelude::*;
use std::hint::black_box;

/// `m`, `k`, `n` of the products.
const SHAPES: [[usize; 3]; 7] = [
    [16, 16, 16],
    [64, 64, 64],
    [256, 256, 256],
    [1024, 1024, 1024],
    [64, 784, 512],
    [1, 1024, 4096],
    [4096, 64, 64],
];

fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * 1.37).sin()).collect()
}

fn products(criterion: &mut Criterion) {
    for [m, k, n] in SHAPES {
        let (a, b) = (numbers(m * k), numbers(k * n));
        let mut c = vec![0.0; m * n];
        let mut group = criterion.benchmark_group(format!("{m}x{k}x{n}"));
        group.throughput(Throughput::Elements((2 * m * k * n) as u64));

        let x = Tensor::from_slice(&a, [m, k]).expect("sizes that match");
        let y = Tensor::from_slice(&b, [k, n]).expect("sizes that match");
        group.bench_function(BenchmarkId::from_parameter("namegrad"), |bench| {
            bench.iter(|| black_box(x.matmul(&y).expect("sizes that match")));
        });
        group.bench_function(BenchmarkId::from_parameter("matrixmultiply"), |bench| {
            bench.iter(|| {
                let (k_, n_) = (k as isize, n as isize);
                let (a, b) = (a.as_ptr(), b.as_ptr());
                // SAFETY: the buffers have `m k`, `k n` and `m n` numbers in row-major order, as the strides
                // say.
                unsafe {
                    matrixmultiply::sgemm(m, k, n, 1.0, a, k_, 1, b, n_, 1, 0.0, c.as_mut_ptr(), n_, 1);
                }
                black_box(&mut c);
            });
        });
        group.bench_function(BenchmarkId::from_parameter("gemm"), |bench| {
            let threads = gemm::Parallelism::Rayon(0);
            bench.iter(|| {
                let (k_, n_) = (k as isize, n as isize);
                let (a, b) = (a.as_ptr(), b.as_ptr());
                // SAFETY: as above; strides are given column first.
                unsafe {
                    gemm::gemm(
                        m,
                        n,
                        k,
                        c.as_mut_ptr(),
                        1,
                        n_,
                        false,
                        a,
                        1,
                        k_,
                        b,
                        1,
                        n_,
                        0.0,
                        1.0,
                        false,
                        false,
                        false,
                        threads,
                    );
                }
                black_box(&mut c);
            });
        });
        group.finish();
    }
}

criterion_group! {
    name = matmul;
    config = Criterion::default().warm_up_time(std::time::Duration::from_millis(300)).sample_size(20);
    targets = products
}
criterion_main!(matmul);
