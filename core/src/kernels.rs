//! What crates with kernels of their own need: memory of results that need not be zeroed first, and loops with
//! the widest vectors of the CPU.

use crate::cpu::simd::{Simd, Vectorized, vectorize};
use crate::dtype::Element;
use crate::error::Result;
use crate::names::Names;
use crate::tensor::{NamedTensor, Unwritten};
use std::mem::MaybeUninit;

pub use crate::cpu::room::{copy, write_in_turn};
pub use crate::cpu::threads::write_parts;

/// The dense tensor of what `write` writes: it gets the memory and returns it as elements.
#[track_caller]
pub fn written<T: Element>(
    op: &'static str,
    sizes: &[usize],
    write: impl FnOnce(&mut [MaybeUninit<T>]) -> &mut [T],
) -> Result<NamedTensor> {
    Ok(Unwritten::of(op, sizes, Names::none(), T::DTYPE)?.write(write))
}

/// The elements that a kernel reads; none on the meta device, where kernels do not run.
#[track_caller]
pub fn elements<T: Element>(x: &NamedTensor) -> Result<&[T]> {
    x.elements()
}

/// [`elements`] that a kernel writes to.
#[track_caller]
pub fn elements_mut<T: Element>(x: &mut NamedTensor) -> Result<&mut [T]> {
    if x.is_meta() { Ok(&mut []) } else { x.as_mut_slice() }
}

/// A loop to be compiled for each set of instructions.
pub trait Loop {
    /// The loop. It must be `#[inline(always)]`, and so must every function that it calls in a hot place.
    fn run(self);
}

struct Wide<L>(L);

impl<L: Loop> Vectorized for Wide<L> {
    type Out<'a> = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S, (): ()) {
        self.0.run();
    }
}

/// Runs a loop with the widest vectors of this CPU.
pub fn widely(job: impl Loop) {
    vectorize(Wide(job), ());
}
