//! PyTorch's functions that make tensors, for calls by name. Programs call the factories of
//! [`Tensor`] and [`TensorOptions`].

use namegrad_autograd::{Tensor, TensorOptions};
use namegrad_core::args;
use namegrad_core::{DType, Name};
use namegrad_macros::functional;

functional! { factories of torch;
    /// Zeros.
    zeros (; size: Shape, dtype: Option<DType> = None, names: NewNames = None) names called size
        => of(dtype, names).zeros(args::Shape(size));
    /// Ones.
    ones (; size: Shape, dtype: Option<DType> = None, names: NewNames = None) names called size
        => of(dtype, names).ones(args::Shape(size));
    /// Values to be written later.
    empty (; size: Shape, dtype: Option<DType> = None, names: NewNames = None) names called size
        => of(dtype, names).empty(args::Shape(size));
    /// Copies of `fill_value`.
    full (; size: Shape, fill_value: Scalar, dtype: Option<DType> = None, names: NewNames = None) names called size
        => of(dtype, names).full(args::Shape(size), fill_value);
    /// Uniform random numbers in [0, 1).
    rand (; size: Shape, dtype: Option<DType> = None, names: NewNames = None) names called size
        => of(dtype, names).rand(args::Shape(size));
    /// Normal random numbers.
    randn (; size: Shape, dtype: Option<DType> = None, names: NewNames = None) names called size
        => of(dtype, names).randn(args::Shape(size));
    /// Random integers in [`low`, `high`).
    randint (; high: isize, size: Shape, low: isize = 0, dtype: Option<DType> = None) names called size
        => Tensor::randint(low as i64, high as i64, args::Shape(size))?.to(dtype.unwrap_or(DType::I64));
    /// A random order of `0..n`.
    randperm (; n: usize) names unnamed => Tensor::randperm(n);
    /// A number as a tensor.
    scalar_tensor (; s: Scalar, dtype: Option<DType> = None) names unnamed => of(dtype, vec![]).full((), s);
    /// A matrix of `n` rows and `m` columns with ones on the diagonal.
    eye (; n: usize, m: Option<usize> = None, dtype: Option<DType> = None) names unnamed
        => of(dtype, vec![]).eye(n, m.unwrap_or(n));
    /// `start, start + step, ...` up to before `end`.
    arange (; end: Scalar, start: Scalar = 0, step: Scalar = 1, dtype: Option<DType> = None) names unnamed
        => of(dtype, vec![]).arange(start, end, step);
    /// `steps` numbers evenly spaced from `start` to `end`.
    linspace (start: Operand, end: Operand; steps: usize, dtype: Option<DType> = None) names unnamed, end: free
        => of(dtype, vec![]).linspace(start, end, steps);
    /// `steps` powers of `base` with evenly spaced exponents from `start` to `end`.
    logspace (start: Operand, end: Operand; steps: usize, base: f64 = 10.0, dtype: Option<DType> = None)
        names unnamed, end: free => of(dtype, vec![]).logspace(start, end, steps, base);
    /// The indices of the lower triangle of a matrix.
    tril_indices (; row: usize, col: usize, offset: isize = 0) names unnamed => Tensor::tril_indices(row, col, offset);
    /// The indices of the upper triangle of a matrix.
    triu_indices (; row: usize, col: usize, offset: isize = 0) names unnamed => Tensor::triu_indices(row, col, offset);
}

fn of(dtype: Option<DType>, names: Vec<Option<Name>>) -> TensorOptions {
    let mut options = TensorOptions::new();
    if !names.is_empty() {
        options = options.names(names.iter().map(|name| name.map(Name::as_str)).collect::<Vec<_>>());
    }
    match dtype {
        Some(dtype) => options.dtype(dtype),
        None => options,
    }
}
