//! Tensors as users see them: arithmetic, the tape, errors. Layers are in `nn`.

mod advice;
mod autocast;
mod autograd;
mod chain;
mod checks;
mod close;
mod compile;
mod errors;
mod functional;
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
