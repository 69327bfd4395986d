//! Products of matrices and vectors; the sums run in the blocked kernels of `crate::cpu::matmul`.

use crate::cpu::pointwise::Kernel;
use crate::dim::Dims;
use crate::dtype::Scalar;

/// The rows of the products, handed to `$with`.
#[macro_export]
#[doc(hidden)]
macro_rules! matmul_ops {
    ($with:ident) => {
        $with! {
            /// The product of two matrices, `[n, k]` and `[k, m]`.
            mm ["contracts away dims"] (x, other)
            /// A matrix `[n, k]` times a vector `[k]`.
            mv ["contracts away dims"] (x, other)
            /// The sum of the products of two vectors of one size, a 0-d tensor.
            dot ["contracts away dims"] (x, other)
            /// Products of as many matrices as there are in both: `[b, n, k]` and `[b, k, m]`.
            bmm ["contracts away dims"] (x, other)
            /// The product over the last dim of `x` and the last but one of `other`; the dims before them broadcast. A vector on the left is a row, on the
            /// right a column, and its dim is gone from the result.
            matmul ["contracts away dims"] (x, other)
            /// `beta x + alpha (a b)` of two matrices, to which `x` broadcasts.
            addmm addmm_ ["contracts away dims"] (x, a, b; beta: Scalar, alpha: Scalar)
            /// `beta x + alpha (a b)` of a matrix and a vector, to which `x` broadcasts.
            addmv addmv_ ["contracts away dims"] (x, a, b; beta: Scalar, alpha: Scalar)
            /// `beta x + alpha (a b)` of batches of matrices, to which `x` broadcasts.
            baddbmm baddbmm_ ["contracts away dims"] (x, a, b; beta: Scalar, alpha: Scalar)
            /// `x + value a b` by element.
            addcmul addcmul_ ["unifies names from inputs"] (x, a, b; value: Scalar)
            /// `x + value a / b` by element; integers divide as floats.
            addcdiv addcdiv_ ["unifies names from inputs"] (x, a, b; value: Scalar)
            /// All products of an element of one vector with one of another: `[n]` and `[m]` give `[n, m]`.
            outer ["keeps the name of each vector"] (x, other)
            /// The sum of the products over `dims`, which both tensors have by name: the other dims of `x` come first, then those of `other`. A dim that both
            /// have and that is not summed is kept once, aligned.
            contract ["contracts the dims that are named"] (x, other; dims: Dims)
        }
    };
}
matmul_ops!(define_ops);

/// `x + a b`.
static ADDCMUL: Kernel<3> =
    kernel!(3 addcmul (x a b) [] [] { float: x + a * b, int: x.wrapping_add(a.wrapping_mul(b)) });
/// `x + a / b`.
static ADDCDIV: Kernel<3> = kernel!(3 addcdiv (x a b) [] [] { float: x + a / b });

pub(crate) mod kernels {
    use crate::cpu::matmul::{Mat, MatmulElement, gemm, gemm_batched};
    use crate::cpu::pointwise::Kernel;
    use crate::dim::{Argument, Axes, Dim};
    use crate::dtype::{Category, DType, Element, Scalar, default_dtype, dispatch};
    use crate::error::{Error, ErrorKind, Result};
    use crate::names::{Name, NameArg, Names, is_strict, rules};
    use crate::shape::{Shape, Sizes, broadcast};
    use crate::tensor::NamedTensor;
    use smallvec::smallvec;

    #[track_caller]
    fn fail(kind: ErrorKind, op: &'static str, message: String, inputs: &[&NamedTensor]) -> Error {
        Error::new(kind, op, message).with_operands(inputs.iter().map(|x| x.extents()))
    }

    #[track_caller]
    fn same_dtype(op: &'static str, inputs: &[&NamedTensor]) -> Result<DType> {
        let dtype = inputs[0].dtype();
        if let Some(other) = inputs.iter().find(|x| x.dtype() != dtype) {
            let message =
                format!("expected all inputs to have the same dtype, but got {dtype} and {}", other.dtype());
            return Err(fail(ErrorKind::DType, op, message, inputs).with_repair(format!("y.to({dtype:?})?")));
        }
        if dtype == DType::Bool {
            let message = "not implemented for bool; it takes the integers and floats".to_string();
            return Err(fail(ErrorKind::DType, op, message, inputs));
        }
        Ok(dtype)
    }

    #[track_caller]
    pub(crate) fn mm(x: &NamedTensor, other: &NamedTensor) -> Result<NamedTensor> {
        check_matrices("mm", x, other)?;
        let names = rules::mm("mm", x.input(), other.input())?;
        product("mm", x, other, names)
    }

    #[track_caller]
    fn check_matrices(op: &'static str, x: &NamedTensor, other: &NamedTensor) -> Result<()> {
        for (which, matrix) in [("mat1", x), ("mat2", other)] {
            if matrix.ndim() != 2 {
                return Err(fail(ErrorKind::Shape, op, format!("{which} must be a matrix"), &[x, other]));
            }
        }
        if x.sizes()[1] != other.sizes()[0] {
            let ([a, b], [c, d]) = ([x.sizes()[0], x.sizes()[1]], [other.sizes()[0], other.sizes()[1]]);
            let message = format!("mat1 and mat2 shapes cannot be multiplied ({a}x{b} and {c}x{d})");
            return Err(fail(ErrorKind::Shape, op, message, &[x, other]));
        }
        Ok(())
    }

    #[track_caller]
    pub(crate) fn mv(x: &NamedTensor, other: &NamedTensor) -> Result<NamedTensor> {
        if x.ndim() != 2 || other.ndim() != 1 {
            let message = format!("vector + matrix @ vector expected, got 1, {}, {}", x.ndim(), other.ndim());
            return Err(fail(ErrorKind::Shape, "mv", message, &[x, other]));
        }
        if x.sizes()[1] != other.sizes()[0] {
            let (rows, cols, size) = (x.sizes()[0], x.sizes()[1], other.sizes()[0]);
            let message = format!("size mismatch, got input ({rows}), mat ({rows}x{cols}), vec ({size})");
            return Err(fail(ErrorKind::Shape, "mv", message, &[x, other]));
        }
        let names = rules::mv("mv", x.input(), other.input())?;
        product("mv", x, other, names)
    }

    #[track_caller]
    pub(crate) fn dot(x: &NamedTensor, other: &NamedTensor) -> Result<NamedTensor> {
        if x.ndim() != 1 || other.ndim() != 1 {
            let message = format!("1D tensors expected, but got {}D and {}D tensors", x.ndim(), other.ndim());
            return Err(fail(ErrorKind::Shape, "dot", message, &[x, other]));
        }
        if x.sizes() != other.sizes() {
            let (a, b) = (x.sizes()[0], other.sizes()[0]);
            let message = format!(
                "inconsistent tensor size, expected tensor [{a}] and src [{b}] to have the same number of elements, but got {a} and {b}"
            );
            return Err(fail(ErrorKind::Shape, "dot", message, &[x, other]));
        }
        rules::matmul("dot", x.input(), other.input())?;
        product("dot", x, other, Names::none())
    }

    #[track_caller]
    pub(crate) fn bmm(x: &NamedTensor, other: &NamedTensor) -> Result<NamedTensor> {
        for (which, batch) in [("batch1", x), ("batch2", other)] {
            if batch.ndim() != 3 {
                return Err(fail(
                    ErrorKind::Shape,
                    "bmm",
                    format!("{which} must be a 3D tensor"),
                    &[x, other],
                ));
            }
        }
        if x.sizes()[0] != other.sizes()[0] || x.sizes()[2] != other.sizes()[1] {
            let message = format!(
                "Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
                x.sizes()[0],
                x.sizes()[2],
                other.sizes()[0],
                other.sizes()[1]
            );
            return Err(fail(ErrorKind::Shape, "bmm", message, &[x, other]));
        }
        let names = rules::matmul("bmm", x.input(), other.input())?;
        product("bmm", x, other, names)
    }

    #[track_caller]
    pub(crate) fn matmul(x: &NamedTensor, other: &NamedTensor) -> Result<NamedTensor> {
        const OP: &str = "matmul";
        let (l, r) = (x.ndim(), other.ndim());
        if l == 0 || r == 0 {
            let message =
                format!("both arguments to matmul need to be at least 1D, but they are {l}D and {r}D");
            return Err(fail(ErrorKind::Shape, OP, message, &[x, other]));
        }
        let (inner_l, inner_r) = (x.sizes()[l - 1], other.sizes()[r.saturating_sub(2)]);
        if inner_l != inner_r {
            let rows = |x: &NamedTensor| x.sizes()[..x.ndim() - 1].iter().product::<usize>();
            let cols = if r == 1 { 1 } else { other.sizes()[r - 1] };
            let message = format!(
                "mat1 and mat2 shapes cannot be multiplied ({}x{inner_l} and {inner_r}x{cols})",
                rows(x)
            );
            return Err(fail(ErrorKind::Shape, OP, message, &[x, other]));
        }
        let names = rules::matmul(OP, x.input(), other.input())?;
        product(OP, x, other, names)
    }

    /// A product of checked operands: vectors or batches of matrices.
    #[track_caller]
    fn product(op: &'static str, x: &NamedTensor, other: &NamedTensor, names: Names) -> Result<NamedTensor> {
        let dtype = same_dtype(op, &[x, other])?;
        let (l, r) = (x.ndim(), other.ndim());
        let batch = match l.max(r) {
            0..=2 => Sizes::new(),
            _ => broadcast(op, &x.sizes()[..l.saturating_sub(2)], &other.sizes()[..r.saturating_sub(2)])
                .map_err(|error| error.with_operands([x.extents(), other.extents()]))?,
        };
        let mut sizes = Sizes::from_slice(&batch);
        if l >= 2 {
            sizes.push(x.sizes()[l - 2]);
        }
        if r >= 2 {
            sizes.push(other.sizes()[r - 1]);
        }
        let mut out = NamedTensor::uninit(op, Shape { sizes, names }, dtype)?;
        multiply(dtype, &batch, x, other, Scalar::Int(1), Scalar::Int(0), &mut out);
        Ok(out)
    }

    /// `out ← beta out + alpha x other`, `out` being dense with the batch dims, rows and columns of the product.
    fn multiply(
        dtype: DType,
        batch: &[usize],
        x: &NamedTensor,
        other: &NamedTensor,
        alpha: Scalar,
        beta: Scalar,
        out: &mut NamedTensor,
    ) {
        match dtype {
            DType::Bool => unreachable!("same_dtype refuses bool"),
            DType::F16 => run::<half::f16>(batch, x, other, alpha, beta, out),
            DType::BF16 => run::<half::bf16>(batch, x, other, alpha, beta, out),
            _ => dispatch!(dtype, number T => run::<T>(batch, x, other, alpha, beta, out), else ()),
        }
    }

    fn run<T: MatmulElement + Element>(
        batch: &[usize],
        x: &NamedTensor,
        other: &NamedTensor,
        alpha: Scalar,
        beta: Scalar,
        out: &mut NamedTensor,
    ) {
        let (l, r) = (x.ndim(), other.ndim());
        let (m, row_a) = if l >= 2 { (x.sizes()[l - 2], x.strides()[l - 2]) } else { (1, 0) };
        let (k, col_a) = (x.sizes()[l - 1], x.strides()[l - 1]);
        let row_b = other.strides()[r.saturating_sub(2)];
        let (n, col_b) = if r >= 2 { (other.sizes()[r - 1], other.strides()[r - 1]) } else { (1, 0) };
        let a = Mat { ptr: x.ptr().cast::<T>(), row_stride: row_a, col_stride: col_a };
        let b = Mat { ptr: other.ptr().cast::<T>(), row_stride: row_b, col_stride: col_b };
        let c = Mat { ptr: out.ptr_mut().cast::<T>(), row_stride: n as isize, col_stride: 1 };
        let count: usize = batch.iter().product();
        // Where product `index` starts in an operand, of which the batch dims may be fewer or of size one.
        let start = |operand: &NamedTensor, mut index: usize| {
            let own = operand.ndim().saturating_sub(2);
            let mut offset = 0;
            for (from_right, size) in batch.iter().rev().enumerate() {
                if from_right < own && operand.sizes()[own - 1 - from_right] != 1 {
                    offset += (index % size) as isize * operand.strides()[own - 1 - from_right];
                }
                index /= size;
            }
            offset
        };
        let offsets = |index: usize| (start(x, index), start(other, index), (index * m * n) as isize);
        let (alpha, beta) = (T::from_scalar(alpha), T::from_scalar(beta));
        // SAFETY: the strides and sizes are those of the tensors, of dtype T; `out` is dense, of the sizes of the product, and held by nobody else.
        unsafe {
            if count == 1 {
                gemm(m, k, n, alpha, a, b, beta, c); // the offsets are zero
            } else {
                gemm_batched(count, &offsets, m, k, n, alpha, a, b, beta, c);
            }
        }
    }

    /// `beta x + alpha (a b)` with the names of `a b` unified with those of `x`.
    #[track_caller]
    fn add_product(
        op: &'static str,
        x: &NamedTensor,
        a: &NamedTensor,
        b: &NamedTensor,
        beta: Scalar,
        alpha: Scalar,
        sizes: Sizes,
    ) -> Result<NamedTensor> {
        let dtype = same_dtype(op, &[x, a, b])?;
        for (which, value) in [("beta", beta), ("alpha", alpha)] {
            if matches!(value, Scalar::Float(_)) && dtype.category() != Category::Float {
                let message = format!(
                    "For integral input tensors, argument {which} must not be a floating point number."
                );
                return Err(fail(ErrorKind::DType, op, message, &[x, a, b]));
            }
        }
        let names = rules::matmul(op, a.input(), b.input())?;
        let product = rules::Input { names: &names, sizes: &sizes };
        let names = rules::unify(op, "broadcast", product, x.input())?;
        let spread = sizes.iter().map(|size| *size as isize).collect();
        let spread = crate::ops::shape::kernels::expand(x, spread)
            .map_err(|error| error.with_operands([x.extents()]))?;
        let mut out = if beta.to_f64() == 0.0 {
            NamedTensor::uninit(op, Shape { sizes: sizes.clone(), names }, dtype)? // NaN in `x` does not count then
        } else {
            crate::ops::shape::kernels::packed(op, &spread, dtype)?.with_names(names)
        };
        let batch = &sizes[..a.ndim() - 2];
        multiply(dtype, batch, a, b, alpha, beta, &mut out);
        Ok(out)
    }

    #[track_caller]
    pub(crate) fn addmm(
        x: &NamedTensor,
        a: &NamedTensor,
        b: &NamedTensor,
        beta: Scalar,
        alpha: Scalar,
    ) -> Result<NamedTensor> {
        check_matrices("addmm", a, b)?;
        add_product("addmm", x, a, b, beta, alpha, smallvec![a.sizes()[0], b.sizes()[1]])
    }

    #[track_caller]
    pub(crate) fn addmv(
        x: &NamedTensor,
        a: &NamedTensor,
        b: &NamedTensor,
        beta: Scalar,
        alpha: Scalar,
    ) -> Result<NamedTensor> {
        let fits = a.ndim() == 2 && b.ndim() == 1 && x.ndim() <= 1 && a.sizes()[1] == b.sizes()[0];
        if !fits || x.ndim() == 1 && ![1, a.sizes()[0]].contains(&x.sizes()[0]) {
            let message =
                format!("size mismatch, got input {:?}, mat {:?}, vec {:?}", x.sizes(), a.sizes(), b.sizes());
            return Err(fail(ErrorKind::Shape, "addmv", message, &[x, a, b]));
        }
        add_product("addmv", x, a, b, beta, alpha, smallvec![a.sizes()[0]])
    }

    #[track_caller]
    pub(crate) fn baddbmm(
        x: &NamedTensor,
        a: &NamedTensor,
        b: &NamedTensor,
        beta: Scalar,
        alpha: Scalar,
    ) -> Result<NamedTensor> {
        if a.ndim() != 3 || b.ndim() != 3 || a.sizes()[0] != b.sizes()[0] || a.sizes()[2] != b.sizes()[1] {
            let message =
                format!("batches of sizes {:?} and {:?} cannot be multiplied", a.sizes(), b.sizes());
            return Err(fail(ErrorKind::Shape, "baddbmm", message, &[x, a, b]));
        }
        add_product("baddbmm", x, a, b, beta, alpha, smallvec![a.sizes()[0], a.sizes()[1], b.sizes()[2]])
    }

    #[track_caller]
    pub(crate) fn addcmul(
        x: &NamedTensor,
        a: &NamedTensor,
        b: &NamedTensor,
        value: Scalar,
    ) -> Result<NamedTensor> {
        with_scaled(&super::ADDCMUL, [x, a, b], value)
    }

    #[track_caller]
    pub(crate) fn addcdiv(
        x: &NamedTensor,
        a: &NamedTensor,
        b: &NamedTensor,
        value: Scalar,
    ) -> Result<NamedTensor> {
        with_scaled(&super::ADDCDIV, [x, a, b], value)
    }

    /// The op with its second input times `value`, which is not rounded to a half type.
    #[track_caller]
    fn with_scaled(kernel: &Kernel<3>, [x, a, b]: [&NamedTensor; 3], value: Scalar) -> Result<NamedTensor> {
        let dtype = kernel.compute_dtype(&[x, a, b])?;
        let dtype = if value.dtype().category() > dtype.category() { default_dtype() } else { dtype };
        if value.to_f64() == 1.0 {
            return kernel.apply_as(dtype, [x, a, b]);
        }
        kernel.apply_as(dtype, [x, &a.to(dtype.compute())?.mul(value)?, b])
    }

    #[track_caller]
    pub(crate) fn outer(x: &NamedTensor, other: &NamedTensor) -> Result<NamedTensor> {
        if x.ndim() != 1 || other.ndim() != 1 {
            let message =
                format!("outer: Expected 1-D arguments, but got {}-D and {}-D", x.ndim(), other.ndim());
            return Err(fail(ErrorKind::Shape, "outer", message, &[x, other]));
        }
        let names = Names::new("outer", [x.name(0), other.name(0)])
            .map_err(|error| error.with_operands([x.extents(), other.extents()]))?;
        Ok(x.unnamed().unsqueeze(1)?.mul(other.unnamed())?.with_names(names))
    }

    #[track_caller]
    pub(crate) fn contract(x: &NamedTensor, other: &NamedTensor, dims: Axes) -> Result<NamedTensor> {
        const OP: &str = "contract";
        let inputs = [x, other];
        let mut summed: Vec<Name> = Vec::new();
        for dim in dims {
            let Some(name) = x.name(dim) else {
                let message = format!("dim {dim} has no name, and contract sums over dims by name");
                return Err(fail(ErrorKind::UnnamedNotAllowed, OP, message, &inputs));
            };
            let there = Dim::Name(name).resolve(OP, other)?;
            if x.sizes()[dim] != other.sizes()[there] {
                let message = format!(
                    "dim '{name}' is {} on the left and {} on the right",
                    x.sizes()[dim],
                    other.sizes()[there]
                );
                return Err(fail(ErrorKind::Shape, OP, message, &inputs));
            }
            summed.push(name);
        }
        for input in inputs {
            if let Some(dim) = (0..input.ndim()).find(|dim| input.name(*dim).is_none()) {
                let message = format!("every dim must be named; dim {dim} of {} is not", input.extents());
                return Err(fail(ErrorKind::UnnamedNotAllowed, OP, message, &inputs));
            }
        }
        let named = |input: &NamedTensor| input.names().iter(input.ndim()).flatten().collect::<Vec<Name>>();
        let (left, right) = (named(x), named(other));
        let batch: Vec<Name> =
            left.iter().filter(|name| right.contains(name) && !summed.contains(name)).copied().collect();
        let rows: Vec<Name> = left.iter().filter(|name| !right.contains(name)).copied().collect();
        let cols: Vec<Name> = right.iter().filter(|name| !left.contains(name)).copied().collect();
        if is_strict() && summed.is_empty() {
            let message = "strict names: nothing is contracted".to_string();
            return Err(
                fail(ErrorKind::Value, OP, message, &inputs).with_repair("use mul for a product by element")
            );
        }
        // Three groups of dims a side, each flattened: a batch of products of matrices.
        let grouped = |input: &NamedTensor, groups: [&[Name]; 3]| -> Result<(NamedTensor, Vec<usize>)> {
            let order: Vec<NameArg> =
                groups.iter().flat_map(|group| group.iter().map(|name| NameArg::Name(*name))).collect();
            let aligned = input.align_to(order)?;
            let counts = groups.map(<[Name]>::len);
            let mut sizes = Sizes::new();
            let mut from = 0;
            for count in counts {
                sizes.push(aligned.sizes()[from..from + count].iter().product());
                from += count;
            }
            let all = aligned.sizes().to_vec();
            Ok((crate::ops::shape::kernels::reshaped(OP, &aligned, sizes, Names::none())?, all))
        };
        let (a, a_sizes) = grouped(x, [&batch, &rows, &summed])?;
        let (b, b_sizes) = grouped(other, [&batch, &summed, &cols])?;
        for (dim, name) in batch.iter().enumerate() {
            if a_sizes[dim] != b_sizes[dim] {
                let message =
                    format!("dim '{name}' is {} on the left and {} on the right", a_sizes[dim], b_sizes[dim]);
                return Err(fail(ErrorKind::Shape, OP, message, &inputs));
            }
        }
        let product = bmm(&a, &b)?;
        let sizes: Sizes = a_sizes[..batch.len() + rows.len()]
            .iter()
            .chain(&b_sizes[batch.len() + summed.len()..])
            .copied()
            .collect();
        let names = Names::new(OP, batch.iter().chain(&rows).chain(&cols).map(|name| Some(*name)))?;
        crate::ops::shape::kernels::reshaped(OP, &product, sizes, names)
    }
}
