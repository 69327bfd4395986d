//! Products of matrices and vectors; `crate::cpu::matmul` computes them.

use namegrad_macros::ops;

ops! { matmul;
    //! # Products
    /// The product of two matrices, `[n, k]` and `[k, m]`.
    mm (x, other) on floats integers names contracts;
    /// A matrix `[n, k]` times a vector `[k]`.
    mv (x, other) on floats integers names contracts;
    /// The dot product of two vectors of the same size, as a 0-d tensor.
    dot (x, other) on floats integers names contracts;
    /// The products of two batches of matrices, `[b, n, k]` and `[b, k, m]`.
    bmm (x, other) on floats integers names contracts;
    /// The matrix product, which sums over the last dim of `x` and the second to last dim of `other`; the
    /// dims before them broadcast. A vector is a row on the left and a column on the right, and its dim is
    /// removed from the result.
    matmul (x, other) on floats integers names contracts;
    /// `beta x + alpha (a b)` for two matrices; `x` broadcasts to their product.
    addmm addmm_ (x, a, b; beta: Scalar = 1, alpha: Scalar = 1) on floats integers names contracts;
    /// `beta x + alpha (a b)` for a matrix and a vector; `x` broadcasts to their product.
    addmv addmv_ (x, a, b; beta: Scalar = 1, alpha: Scalar = 1) on floats integers names contracts;
    /// `beta x + alpha (a b)` for batches of matrices; `x` broadcasts to their products.
    baddbmm baddbmm_ (x, a, b; beta: Scalar = 1, alpha: Scalar = 1) on floats integers names contracts;
    /// `x + value a b`, elementwise.
    addcmul addcmul_ (x, a, b; value: Scalar = 1) on floats integers names unifies;
    /// `x + value a / b`, elementwise; dividing integers gives floats.
    addcdiv addcdiv_ (x, a, b; value: Scalar = 1) names unifies;
    /// The outer product of two vectors: `[n]` and `[m]` give `[n, m]`.
    outer (x, other; names: NewNames = None) names keeps, other: own;
    /// The sum of products over pairs of dims, `dims` of `x` and `other_dims` of `other`. The result has the
    /// remaining dims of `x`, followed by those of `other`, with their names.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let (x, y) = (Tensor::ones([("N", 2), ("C", 3)])?, Tensor::ones([("K", 3), ("M", 4)])?);
    /// assert_eq!(x.tensordot(&y, "C", "K")?.shape().to_string(), "[N=2, M=4]");
    /// # Ok::<(), Error>(())
    /// ```
    tensordot (x, other; dims: Dims, other_dims: Dims of other) on floats integers names contracts;
    /// The sum of products over `dims`, which both tensors must have by name. The result has first the other
    /// dims that both tensors have, each once, then the remaining dims of `x`, then those of `other`.
    ///
    /// ```
    /// use namegrad::prelude::*;
    /// let queries = Tensor::ones([("batch", 2), ("query", 3), ("embed", 4)])?;
    /// let keys = Tensor::ones([("embed", 4), ("batch", 2), ("key", 5)])?;
    /// assert_eq!(queries.contract(&keys, "embed")?.shape().to_string(), "[batch=2, query=3, key=5]");
    /// # Ok::<(), Error>(())
    /// ```
    contract (x, other; dims: Contraction of x, other) on floats integers names contracts, other: by dims;
}

/// Sums of a tensor and elementwise products.
mod by_element {
    namegrad_macros::kernels! {
        /// `x + a b`.
        addcmul (x, a, b) { float: x + a * b, int: x.wrapping_add(a.wrapping_mul(b)) }
        /// `x + a / b`.
        addcdiv (x, a, b) { float: x + a / b }
    }
}

pub(crate) mod kernels {
    use super::by_element::elements;
    use crate::args::Paired;
    use crate::cpu::matmul::{Mat, gemm_of};
    use crate::device::compute_in;
    use crate::dim::{Positions, called, in_rust};
    use crate::dtype::{Category, DType, Scalar, default_dtype};
    use crate::error::{Error, ErrorKind, Result};
    use crate::layout::{self, Sizes};
    use crate::names::{Name, Names, rules};
    use crate::ops::by_element::Kernel;
    use crate::ops::shape::kernels::{reorder, reshaped};
    use crate::sizes::broadcast;
    use crate::tensor::{NamedTensor, Unwritten};
    use std::borrow::Cow;

    #[track_caller]
    fn same_dtype(op: &'static str, inputs: &[&NamedTensor]) -> Result<DType> {
        let dtype = inputs[0].dtype();
        if let Some(other) = inputs.iter().find(|x| x.dtype() != dtype) {
            let message =
                format!("expected all inputs to have the same dtype, but got {dtype} and {}", other.dtype());
            let repair = match inputs.len() {
                2 => format!("y.to(DType::{dtype:?})?"),
                _ => format!("x.to(DType::{dtype:?})?, and the other inputs alike"),
            };
            return Err(Error::about(inputs, ErrorKind::DType, op, message).with_repair(repair));
        }
        if dtype == DType::Bool {
            let message = "not implemented for bool; it takes the integers and floats";
            let repair = "x.to(DType::I64)?, and the other inputs alike";
            return Err(Error::about(inputs, ErrorKind::DType, op, message).with_repair(repair));
        }
        Ok(dtype)
    }

    /// Whether products are computed in `i64`, which gives the right low bits for this dtype.
    fn is_narrow(dtype: DType) -> bool {
        dtype.category() == Category::Integer && dtype != DType::I64
    }

    #[track_caller]
    pub(crate) fn mm(x: &NamedTensor, other: &NamedTensor) -> Result<NamedTensor> {
        check_matrices("mm", x, other)?;
        let names = rules::matmul("mm", rules::CALL, x.input(), other.input())?;
        product("mm", x, other, names)
    }

    /// The error with `matmul` as its repair, if the sizes are those of a product.
    #[cold]
    fn or_matmul(error: Error, x: &NamedTensor, other: &NamedTensor) -> Error {
        match multiplies(x, other) {
            true => error.with_repair("x.matmul(&y)?, which takes any number of dims"),
            false => error,
        }
    }

    /// Can `matmul` multiply tensors of these sizes?
    fn multiplies(x: &NamedTensor, other: &NamedTensor) -> bool {
        let (Some((inner, rows)), Some((last, rest))) = (x.sizes().split_last(), other.sizes().split_last())
        else {
            return false;
        };
        let (batch, own) = (rest.split_last(), rows.split_last().map_or(&[][..], |(_, batch)| batch));
        let pairs = own.iter().rev().zip(batch.map_or(&[][..], |(_, batch)| batch).iter().rev());
        inner == batch.map_or(last, |(rows, _)| rows)
            && pairs.into_iter().all(|(a, b)| a == b || *a == 1 || *b == 1)
    }

    #[track_caller]
    fn check_matrices(op: &'static str, x: &NamedTensor, other: &NamedTensor) -> Result<()> {
        for (which, matrix) in [("mat1", x), ("mat2", other)] {
            if matrix.ndim() != 2 {
                let message = format!("{which} must be a matrix, got {} dims", matrix.ndim());
                let error = Error::about(&[x, other], ErrorKind::Shape, op, message);
                return Err(if op == "mm" { or_matmul(error, x, other) } else { error });
            }
        }
        if x.sizes()[1] != other.sizes()[0] {
            return Err(not_multiplied(op, x, other));
        }
        Ok(())
    }

    /// The error of two tensors of which the last dim of one and the second to last of the other differ.
    #[cold]
    #[track_caller]
    fn not_multiplied(op: &'static str, x: &NamedTensor, other: &NamedTensor) -> Error {
        let (l, r) = (x.ndim(), other.ndim());
        let (last, inner) = (l - 1, r.saturating_sub(2));
        let rows: usize = layout::product(&x.sizes()[..last]);
        let (meets, cols) = (other.sizes()[inner], if r == 1 { 1 } else { other.sizes()[r - 1] });
        let message = format!(
            "mat1 and mat2 shapes cannot be multiplied ({rows}x{} and {meets}x{cols}): {} of the first has {0} elements, {} of the \
             second {meets}",
            x.sizes()[last],
            called(x, last),
            called(other, inner)
        );
        let error = Error::about(&[x, other], ErrorKind::Shape, op, message);
        // Names that would occur twice make another error of it.
        let turned = |x: &NamedTensor, rows: usize, other: &NamedTensor, cols: usize| {
            x.name(rows).is_none() || x.name(rows) != other.name(cols)
        };
        let is_product = ["mm", "matmul", "bmm"].contains(&op);
        if is_product && r >= 2 && l >= 2 && x.sizes()[last] == cols && turned(x, l - 2, other, r - 2) {
            return error.with_repair(format!("x.{op}(&y.mt()?)?"));
        }
        if is_product && r >= 2 && l >= 2 && x.sizes()[l - 2] == meets && turned(x, l - 1, other, r - 1) {
            return error.with_repair(format!("x.mt()?.{op}(&y)?"));
        }
        // By name, if one has it elsewhere.
        let shared = |dim: &usize| {
            let there = x.name(*dim).and_then(|name| other.names().position(name));
            let named = |x: &NamedTensor| x.names().iter(x.ndim()).all(|name| name.is_some());
            there.is_some_and(|there| other.sizes()[there] == x.sizes()[*dim]) && named(x) && named(other)
        };
        match x.name(last).filter(|_| is_product && shared(&last)) {
            Some(name) => {
                error.with_repair(format!("x.contract(&y, \"{name}\")?, which sums over that dim of both"))
            }
            None => error,
        }
    }

    #[track_caller]
    pub(crate) fn mv(x: &NamedTensor, other: &NamedTensor) -> Result<NamedTensor> {
        if x.ndim() != 2 || other.ndim() != 1 {
            let message = format!(
                "expected a matrix and a vector, got tensors of {} and {} dims",
                x.ndim(),
                other.ndim()
            );
            let error = Error::about(&[x, other], ErrorKind::Shape, "mv", message);
            return Err(or_matmul(error, x, other));
        }
        if x.sizes()[1] != other.sizes()[0] {
            let (rows, cols, size) = (x.sizes()[0], x.sizes()[1], other.sizes()[0]);
            let message = format!(
                "size mismatch, got a matrix of {rows}x{cols} and a vector of {size}: the vector needs {cols} elements, as many as {}",
                called(x, 1)
            );
            return Err(Error::about(&[x, other], ErrorKind::Shape, "mv", message));
        }
        let names = rules::matmul("mv", rules::CALL, x.input(), other.input())?;
        product("mv", x, other, names)
    }

    #[track_caller]
    pub(crate) fn dot(x: &NamedTensor, other: &NamedTensor) -> Result<NamedTensor> {
        if x.ndim() != 1 || other.ndim() != 1 {
            let message = format!("1D tensors expected, but got {}D and {}D tensors", x.ndim(), other.ndim());
            let error = Error::about(&[x, other], ErrorKind::Shape, "dot", message);
            let summed = "x.mul(&y)?.sum(..)? for the sum of all products";
            return Err(
                match (x.sizes() == other.sizes() && x.names() == other.names(), multiplies(x, other)) {
                    (true, true) => {
                        error.with_repair(format!("x.matmul(&y)? for a product of matrices, {summed}"))
                    }
                    (true, false) => error.with_repair(summed),
                    (false, _) => or_matmul(error, x, other),
                },
            );
        }
        if x.sizes() != other.sizes() {
            let (a, b) = (x.sizes()[0], other.sizes()[0]);
            let message = format!("both vectors must have the same number of elements, but got {a} and {b}");
            return Err(Error::about(&[x, other], ErrorKind::Shape, "dot", message));
        }
        rules::matmul("dot", rules::CALL, x.input(), other.input())?;
        product("dot", x, other, Names::none())
    }

    #[track_caller]
    pub(crate) fn bmm(x: &NamedTensor, other: &NamedTensor) -> Result<NamedTensor> {
        for (which, batch) in [("batch1", x), ("batch2", other)] {
            if batch.ndim() != 3 {
                let message = format!("{which} must be a 3D tensor, got {} dims", batch.ndim());
                let error = Error::about(&[x, other], ErrorKind::Shape, "bmm", message);
                return Err(or_matmul(error, x, other));
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
            let error = Error::about(&[x, other], ErrorKind::Shape, "bmm", message);
            let turned = x.sizes()[0] == other.sizes()[0] && x.sizes()[2] == other.sizes()[2];
            return Err(if turned { error.with_repair("x.bmm(&y.mt()?)?") } else { error });
        }
        let names = rules::matmul("bmm", rules::CALL, x.input(), other.input())?;
        product("bmm", x, other, names)
    }

    #[track_caller]
    pub(crate) fn matmul(x: &NamedTensor, other: &NamedTensor) -> Result<NamedTensor> {
        const OP: &str = "matmul";
        let (l, r) = (x.ndim(), other.ndim());
        if l == 0 || r == 0 {
            let message =
                format!("both arguments to matmul need to be at least 1D, but they are {l}D and {r}D");
            return Err(Error::about(&[x, other], ErrorKind::Shape, OP, message).with_repair("x.mul(&y)?"));
        }
        let (inner_l, inner_r) = (x.sizes()[l - 1], other.sizes()[r.saturating_sub(2)]);
        if inner_l != inner_r {
            return Err(not_multiplied(OP, x, other));
        }
        let names = rules::matmul(OP, rules::CALL, x.input(), other.input())?;
        product(OP, x, other, names)
    }

    /// The product of checked operands: vectors or batches of matrices.
    #[track_caller]
    fn product(op: &'static str, x: &NamedTensor, other: &NamedTensor, names: Names) -> Result<NamedTensor> {
        let dtype = same_dtype(op, &[x, other])?;
        if is_narrow(dtype) {
            let [x, other] = [x.to(DType::I64)?, other.to(DType::I64)?];
            return product(op, &x, &other, names)?.to(dtype);
        }
        let (l, r) = (x.ndim(), other.ndim());
        let batch = match l.max(r) {
            0..=2 => Sizes::new(),
            _ => broadcast(op, &x.sizes()[..l.saturating_sub(2)], &other.sizes()[..r.saturating_sub(2)])
                .map_err(|error| error.with_operands([x.shape(), other.shape()]))?,
        };
        let mut sizes = Sizes::from_slice(&batch);
        if l >= 2 {
            sizes.push(x.sizes()[l - 2]);
        }
        if r >= 2 {
            sizes.push(other.sizes()[r - 1]);
        }
        let out = Unwritten::of(op, &sizes, names, dtype)?;
        let [alpha, beta] = [1, 0].map(Scalar::Int);
        // SAFETY: `out` is fresh and has the sizes of the product. With a `beta` of 0 it is written
        // everywhere and never read.
        Ok(unsafe { out.write_at(|to| multiply(dtype, &batch, x, other, alpha, beta, to)) })
    }

    /// `out ← beta out + alpha x other`, where `out` is dense and has the batch dims, rows and columns of the
    /// product. If `beta` is 0, it need not be initialized.
    ///
    /// # Safety
    /// `out` has room for the elements of the product, in `dtype`, and nothing else accesses it meanwhile.
    /// The inputs are of `dtype`, and their batch dims broadcast to `batch`.
    unsafe fn multiply(
        dtype: DType,
        batch: &[usize],
        x: &NamedTensor,
        other: &NamedTensor,
        alpha: Scalar,
        beta: Scalar,
        out: *mut u8,
    ) {
        let (l, r) = (x.ndim(), other.ndim());
        let (m, row_a) = if l >= 2 { (x.sizes()[l - 2], x.strides()[l - 2]) } else { (1, 0) };
        let (k, col_a) = (x.sizes()[l - 1], x.strides()[l - 1]);
        let row_b = other.strides()[r.saturating_sub(2)];
        let (n, col_b) = if r >= 2 { (other.sizes()[r - 1], other.strides()[r - 1]) } else { (1, 0) };
        let a = Mat { ptr: x.ptr(), row_stride: row_a, col_stride: col_a };
        let b = Mat { ptr: other.ptr(), row_stride: row_b, col_stride: col_b };
        let c = Mat { ptr: out, row_stride: n as isize, col_stride: 1 };
        let count: usize = layout::product(batch);
        // The offset of product `index` in an operand, which may have fewer batch dims, or batch dims of size
        // one.
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
        // SAFETY: the strides and sizes are those of the tensors, of this dtype; the caller guarantees that
        // `out` has room for the product and is held by nobody else.
        unsafe { gemm_of(dtype, (count, &offsets), [m, k, n], alpha, a, b, beta, c) }
    }

    /// An error for a factor that is a float, if the first tensor has none.
    #[track_caller]
    pub(in crate::ops) fn check_factor(
        op: &'static str,
        which: &str,
        value: Scalar,
        tensors: &[&NamedTensor],
    ) -> Result<()> {
        if matches!(value, Scalar::Float(_)) && tensors[0].dtype().category() != Category::Float {
            let message =
                format!("For integral input tensors, argument {which} must not be a floating point number.");
            return Err(Error::about(tensors, ErrorKind::DType, op, message));
        }
        Ok(())
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
        let caller = std::panic::Location::caller();
        check_factor(op, "beta", beta, &[x, a, b])?;
        check_factor(op, "alpha", alpha, &[x, a, b])?;
        if is_narrow(dtype) {
            let [x, a, b] = [x.to(DType::I64)?, a.to(DType::I64)?, b.to(DType::I64)?];
            return add_product(op, &x, &a, &b, beta, alpha, sizes)?.to(dtype);
        }
        let names = rules::matmul(op, ["a", "b"], a.input(), b.input())?;
        let product = rules::NamedInput { names: &names, sizes: &sizes };
        let names = rules::unify(op, "broadcast", product, x.input())
            .map_err(|error| error.with_inputs(&[x, a, b]))?;
        let spread = x.expand(&sizes[..]).map_err(|_| {
            let message =
                format!("the input {} does not broadcast to the product, of sizes {sizes:?}", x.shape());
            Error::about(&[x, a, b], ErrorKind::Shape, op, message).at(caller)
        })?;
        if alpha.to_f64() == 0.0 && beta.to_f64() != 0.0 {
            // The product does not count, not even if it is infinite.
            let out = crate::ops::cast::packed(op, &spread, dtype)?.with_names(names);
            return if beta.to_f64() == 1.0 { Ok(out) } else { out.mul(beta) };
        }
        let batch = &sizes[..a.ndim() - 2];
        if beta.to_f64() == 0.0 {
            // NaN in `x` does not count then.
            let out = Unwritten::of(op, &sizes, names, dtype)?;
            // SAFETY: as in `product`.
            return Ok(unsafe { out.write_at(|to| multiply(dtype, batch, a, b, alpha, beta, to)) });
        }
        let mut out = crate::ops::cast::packed(op, &spread, dtype)?.with_names(names);
        compute_in(&mut out, |out| {
            // SAFETY: `out` is a dense copy of the sizes of the product, held by nobody else.
            unsafe { multiply(dtype, batch, a, b, alpha, beta, out.ptr_mut()) };
            Ok(())
        })?;
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
        check_matrices("addmm", a, b).map_err(|error| error.with_inputs(&[x, a, b]))?;
        add_product("addmm", x, a, b, beta, alpha, Sizes::from_slice(&[a.sizes()[0], b.sizes()[1]]))
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
            return Err(Error::about(&[x, a, b], ErrorKind::Shape, "addmv", message));
        }
        add_product("addmv", x, a, b, beta, alpha, Sizes::from_slice(&[a.sizes()[0]]))
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
            return Err(Error::about(&[x, a, b], ErrorKind::Shape, "baddbmm", message));
        }
        add_product(
            "baddbmm",
            x,
            a,
            b,
            beta,
            alpha,
            Sizes::from_slice(&[a.sizes()[0], a.sizes()[1], b.sizes()[2]]),
        )
    }

    #[track_caller]
    pub(crate) fn addcmul(
        x: &NamedTensor,
        a: &NamedTensor,
        b: &NamedTensor,
        value: Scalar,
    ) -> Result<NamedTensor> {
        with_scaled(&elements::ADDCMUL, [x, a, b], value)
    }

    #[track_caller]
    pub(crate) fn addcdiv(
        x: &NamedTensor,
        a: &NamedTensor,
        b: &NamedTensor,
        value: Scalar,
    ) -> Result<NamedTensor> {
        with_scaled(&elements::ADDCDIV, [x, a, b], value)
    }

    /// Applies the op with its second input multiplied by `value`, which is not rounded to a half type.
    #[track_caller]
    fn with_scaled(kernel: &Kernel, [x, a, b]: [&NamedTensor; 3], value: Scalar) -> Result<NamedTensor> {
        let dtype = kernel.compute_dtype(&[x, a, b])?;
        let dtype = if value.dtype().category() > dtype.category() { default_dtype() } else { dtype };
        if value.to_f64() == 1.0 {
            return kernel.apply_as(dtype, &[x, a, b], &[]);
        }
        kernel.apply_as(dtype, &[x, &a.to(dtype.compute())?.mul(value)?, b], &[])
    }

    #[track_caller]
    pub(crate) fn outer(
        x: &NamedTensor,
        other: &NamedTensor,
        names: Vec<Option<Name>>,
    ) -> Result<NamedTensor> {
        if x.ndim() != 1 || other.ndim() != 1 {
            let message = format!("Expected 1-D arguments, but got {}-D and {}-D", x.ndim(), other.ndim());
            return Err(Error::about(&[x, other], ErrorKind::Shape, "outer", message));
        }
        let names = Names::given("outer", &names, &[x.name(0), other.name(0)])
            .map_err(|error| error.with_operands([x.shape(), other.shape()]))?;
        let product = x.unnamed().unsqueeze(1)?.mul(other.unnamed());
        Ok(product.map_err(|error| error.of("outer").with_inputs(&[x, other]))?.with_names(names))
    }

    #[track_caller]
    pub(crate) fn tensordot(
        x: &NamedTensor,
        other: &NamedTensor,
        dims: Positions,
        other_dims: Positions,
    ) -> Result<NamedTensor> {
        let (mut x, mut other) = (Cow::Borrowed(x), Cow::Borrowed(other));
        let mut fits = dims.len() == other_dims.len();
        for (dim, other_dim) in dims.iter().zip(&other_dims) {
            // As in PyTorch, a dim of size one matches any size; the other tensor is summed over that dim, in
            // its own dtype.
            let summed = |x: &NamedTensor, dim| x.sum(crate::keep(dim))?.into_dtype(x.dtype());
            match (x.sizes()[*dim], other.sizes()[*other_dim]) {
                (m, n) if m == n => {}
                (1, _) => other = Cow::Owned(summed(&other, *other_dim)?),
                (_, 1) => x = Cow::Owned(summed(&x, *dim)?),
                _ => fits = false,
            }
        }
        if !fits {
            let (own, others) = (x.sizes(), other.sizes());
            let list = |x: &NamedTensor, dims: &[usize]| {
                crate::joined(&crate::list::<_, Vec<_>>(dims.iter().map(|dim| in_rust(x, *dim))), ", ")
            };
            let message = format!(
                "contracted dims [{}] of {own:?} and [{}] of {others:?} need to match",
                list(&x, &dims),
                list(&other, &other_dims)
            );
            return Err(Error::about(&[&x, &other], ErrorKind::Shape, "tensordot", message));
        }
        for (dim, other_dim) in dims.iter().zip(&other_dims) {
            x.check_contracted("tensordot", rules::CALL, &other, [*dim, *other_dim])?;
        }
        let pairs = crate::list(dims.into_iter().zip(other_dims));
        paired("tensordot", &x, &other, &Paired::new([x.ndim(), other.ndim()], &[], pairs))
    }

    #[track_caller]
    pub(crate) fn contract(x: &NamedTensor, other: &NamedTensor, dims: Paired) -> Result<NamedTensor> {
        paired("contract", x, other, &dims)
    }

    /// The sum of products over pairs of dims: flattening three groups of dims on each side gives a batched
    /// matrix product.
    #[track_caller]
    fn paired(op: &'static str, x: &NamedTensor, other: &NamedTensor, dims: &Paired) -> Result<NamedTensor> {
        let [batch, other_batch] = sides(&dims.batch);
        let [summed, other_summed] = sides(&dims.summed);
        let grouped = |x: &NamedTensor, groups: [&[usize]; 3]| {
            let count = |group: &[usize]| group.iter().map(|dim| x.sizes()[*dim]).product::<usize>();
            let sizes = crate::list(groups.map(count).into_iter());
            reshaped(op, &reorder(&x.unnamed(), &groups.concat()), sizes, Names::none())
        };
        let a = grouped(x, [&batch, &dims.rows, &summed])?;
        let b = grouped(other, [&other_batch, &other_summed, &dims.cols])?;
        let made = |dims: &[usize], x: &NamedTensor| {
            crate::list::<_, Vec<_>>(dims.iter().map(|dim| (x.sizes()[*dim], x.name(*dim))))
        };
        let left = made(&batch, x).into_iter().chain(made(&dims.rows, x));
        let (sizes, names): (Sizes, Vec<_>) = left.chain(made(&dims.cols, other)).unzip();
        let names = Names::new(op, names).map_err(|error| error.with_operands([x.shape(), other.shape()]))?;
        same_dtype(op, &[x, other])?;
        reshaped(op, &bmm(&a, &b)?, sizes, names)
    }

    /// The left dims and the right dims of pairs.
    fn sides(pairs: &[(usize, usize)]) -> [Positions; 2] {
        let (left, right) = pairs.iter().copied().unzip();
        [left, right]
    }
}
