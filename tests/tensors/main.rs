//! Tensors as users see them: arithmetic, the tape, errors. Layers are in `nn`.

#[allow(
    clippy::cloned_ref_to_slice_refs,
    clippy::needless_borrow,
    clippy::needless_borrows_for_generic_args,
    clippy::unnecessary_mut_passed,
    clippy::useless_conversion,
    reason = "the programs are the ones that messages print"
)]
mod advice;
mod autocast;
mod autograd;
mod chain;
mod checks;
mod close;
mod compile;
mod errors;
mod functional;
mod fused;
mod joint;
mod memory;
mod messages;
mod migration;
mod operands;
mod scan;
mod signatures;
mod special;
mod tape;
mod threads;
mod wrong;
