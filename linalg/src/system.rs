//! The right side of a system of equations: its dims, and the names of the solution.

use crate::common::*;

/// The right side `b` of `a x = b`, or of `x a = b`.
pub(crate) struct System {
    /// Without names, as matrices in the last two dims of a system `a x = b`.
    pub(crate) b: Tensor,
    is_vector: bool,
    is_right: bool,
    /// The names of the solution, with its batch dims in the order of `b`.
    names: Vec<Option<Name>>,
    /// The dims of the given tensor in the order of `b`.
    order: Vec<usize>,
}

impl System {
    /// `b` for the matrices `a`. The dim that is contracted has the name `from`, if it has one, and is found
    /// by it; in the solution it is called `to`.
    pub(crate) fn of(
        a: &Matrices,
        b: &Tensor,
        [from, to]: [Option<Name>; 2],
        is_right: bool,
    ) -> Result<System> {
        System::with(a, b, [from, to], is_right, vectors_of(a, b) && !is_right)
    }

    /// Like [`of`](Self::of), for a right side that has matrices whatever its dims are.
    pub(crate) fn matrices(
        a: &Matrices,
        b: &Tensor,
        names: [Option<Name>; 2],
        is_right: bool,
    ) -> Result<System> {
        System::with(a, b, names, is_right, false)
    }

    fn with(
        a: &Matrices,
        b: &Tensor,
        [from, to]: [Option<Name>; 2],
        is_right: bool,
        is_vector: bool,
    ) -> Result<System> {
        if b.dtype() != a.x.dtype() {
            let message = format!("expected two tensors of one dtype, got {} and {}", a.x.dtype(), b.dtype());
            return Err(
                fault(ErrorKind::DType, message).with_repair(format!("other.to(DType::{:?})?", a.x.dtype()))
            );
        }
        let least = if is_vector { 1 } else { 2 };
        if b.ndim() < least {
            let message = format!("expected matrices on the right side, got {} dims", b.ndim());
            return Err(fault(ErrorKind::Shape, message));
        }
        let expected = b.ndim() - if is_vector || is_right { 1 } else { 2 };
        let found = from.and_then(|name| b.names().position(name));
        let at = found.unwrap_or(expected);
        if let (Some(name), Some(from)) = (b.name(at), from)
            && name != from
        {
            let message =
                format!("the dim '{name}' of the right side meets the dim '{from}' of the matrices");
            return Err(fault(ErrorKind::NameMismatch, message));
        }
        let mut order: Vec<usize> = (0..b.ndim()).filter(|dim| *dim != at).collect();
        let place = order.len() - usize::from(!is_vector && !is_right);
        order.insert(place, at);
        let batch = &order[..b.ndim() - least];
        let mut names = unified(&a.batch, &batch.iter().map(|dim| b.name(*dim)).collect::<Vec<_>>())?;
        names.extend(order[batch.len()..].iter().map(|dim| b.name(*dim)));
        let row = names.len() - if is_vector || is_right { 1 } else { 2 };
        if from.is_some() || to.is_some() {
            names[row] = to;
        }
        let mut matrices = b.rename(None)?;
        if !order.is_sorted() {
            matrices = matrices.permute(&order[..])?;
        }
        matrices = match (is_vector, is_right) {
            (true, _) => matrices.unsqueeze(-1)?,
            (_, true) => matrices.mt()?,
            _ => matrices,
        };
        Ok(System { b: matrices, is_vector, is_right, names, order })
    }

    /// An error unless the right side has as many rows as the matrices.
    pub(crate) fn check_rows(&self, rows: usize) -> Result<()> {
        let own = self.b.sizes()[self.b.ndim() - 2];
        if own == rows {
            return Ok(());
        }
        let side = if self.is_right { "columns" } else { "rows" };
        let message = format!("the matrices have {rows} {side}, and the right side has {own}");
        Err(fault(ErrorKind::Shape, message))
    }

    /// The solution, from that of the system of [`b`](Self::b).
    pub(crate) fn solution(&self, x: Tensor) -> Result<Tensor> {
        let x = match (self.is_vector, self.is_right) {
            (true, _) => x.squeeze(-1)?,
            (_, true) => x.mt()?,
            _ => x,
        };
        let x = named(x, self.names.clone())?;
        if self.order.is_sorted() {
            return Ok(x);
        }
        // Batch dims that only the matrices have come first.
        let more = self.names.len() - self.order.len();
        let mut back: Vec<usize> = (0..self.names.len()).collect();
        for (at, dim) in self.order.iter().enumerate() {
            back[more + dim] = more + at;
        }
        x.permute(back)
    }
}

/// The names of batch dims that meet from the last one on.
fn unified(a: &[Option<Name>], b: &[Option<Name>]) -> Result<Vec<Option<Name>>> {
    let of = |names: &[Option<Name>], k: usize| names.len().checked_sub(k + 1).and_then(|at| names[at]);
    let mut all = Vec::new();
    for k in 0..a.len().max(b.len()) {
        let (one, other) = (of(a, k), of(b, k));
        if let (Some(one), Some(other)) = (one, other)
            && one != other
        {
            let message = format!("the batch dims '{one}' and '{other}' meet");
            return Err(fault(ErrorKind::NameMismatch, message));
        }
        for (name, others) in [(one, b), (other, a)] {
            if let Some(name) = name
                && others.contains(&Some(name))
                && of(others, k) != Some(name)
            {
                let message = format!("the batch dim '{name}' is at different places");
                return Err(fault(ErrorKind::Misaligned, message));
            }
        }
        all.push(one.or(other));
    }
    all.reverse();
    Ok(all)
}
