//! The ops, a row each.
//!
//! A row says an op's name (and its in-place form), its doc, its arguments and its kernel. The tables are macros that hand their rows to another macro, so that one
//! row makes the method of [`NamedTensor`](crate::NamedTensor), the method of `namegrad::Tensor` with the same doc, the in-place form, and the
//! entry in [`all`]. The file says the kind: [`unary`] one tensor by element, [`binary`] two, [`reduce`] over dims, [`along`] one dim, [`pick`] elements of it with
//! their places, [`count`] counts and searches, [`shape`] views, [`matmul`] products, [`index`] parts. Without rows are [`naming`], the API of names,
//! [`create`] and [`random`], new tensors, `mask`, `write` and `join`.

#[macro_use]
mod rows;
pub mod along;
pub mod binary;
pub mod count;
pub mod create;
#[doc(hidden)]
pub mod gradients;
pub mod index;
mod join;
#[doc(hidden)]
pub mod loss;
mod mask;
pub mod matmul;
pub mod naming;
pub mod pick;
pub mod random;
pub mod reduce;
pub mod shape;
pub mod unary;
mod write;

/// What is known of an op from its row.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// The name.
    pub name: &'static str,
    /// The in-place form, if there is one.
    pub in_place: Option<&'static str>,
    /// The rule of name inference that it follows.
    pub rule: &'static str,
    /// The lines of the doc.
    pub doc: &'static [&'static str],
}

/// Every op that has a row.
pub fn all() -> impl Iterator<Item = &'static OpInfo> {
    [
        unary::ROWS,
        unary::PARAMETRIC_ROWS,
        binary::ROWS,
        binary::TERNARY_ROWS,
        reduce::ROWS,
        along::ROWS,
        pick::ROWS,
        count::ROWS,
        shape::ROWS,
        index::ROWS,
        matmul::ROWS,
    ]
    .into_iter()
    .flatten()
}
