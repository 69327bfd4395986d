//! [`Formula`], an elementwise update of one element, and [`Elementwise`], its loop over all of them.

use crate::method::ParameterStep;
use namegrad_core::Result;
use namegrad_core::cpu::math::Real;
use namegrad_core::cpu::update::Update;
use std::marker::PhantomData;

/// A formula for one element of a parameter, with `K` numbers that are the same for all elements and `N`
/// states of the element.
pub(crate) trait Formula<const K: usize, const N: usize>: Sync {
    /// The new element and states, from the numbers, the element, its gradient and its states. It must be
    /// `#[inline(always)]`, and so must every function that it calls.
    fn apply<T: Real>(numbers: [T; K], p: T, g: T, states: [T; N]) -> (T, [T; N]);
}

/// A [`Formula`] for all elements.
pub(crate) struct Elementwise<F, const K: usize> {
    numbers: [f64; K],
    formula: PhantomData<F>,
}

impl<F, const K: usize> Elementwise<F, K> {
    pub(crate) fn new(_formula: F, numbers: [f64; K]) -> Elementwise<F, K> {
        Elementwise { numbers, formula: PhantomData }
    }
}

impl<F: Formula<K, N>, const K: usize, const N: usize> Update<N> for Elementwise<F, K> {
    #[inline(always)]
    fn run<T: Real>(&self, params: &mut [T], grads: &[T], mut states: [&mut [T]; N]) {
        let numbers = rounded(&self.numbers);
        // The compiler sees that no index is out of range, so that the loop becomes vectors.
        let n = params.len();
        let grads = &grads[..n];
        for state in &mut states {
            *state = &mut std::mem::take(state)[..n];
        }
        for i in 0..n {
            // Not with vectors where few CPUs run the loop.
            let i = if T::IS_RARE { std::hint::black_box(i) } else { i };
            let mut own = [T::ZERO; N];
            for k in 0..N {
                own[k] = states[k][i];
            }
            let (param, own) = F::apply(numbers, params[i], grads[i], own);
            params[i] = param;
            for k in 0..N {
                states[k][i] = own[k];
            }
        }
    }
}

impl ParameterStep<'_> {
    /// Updates the parameter and all slots with a formula.
    pub(crate) fn apply<F: Formula<K, N>, const K: usize, const N: usize>(
        self,
        formula: F,
        numbers: [f64; K],
    ) -> Result<()> {
        self.run::<N>(&Elementwise::new(formula, numbers))
    }
}

/// Numbers in the type of the computation.
#[inline(always)]
pub(crate) fn rounded<T: Real, const K: usize>(numbers: &[f64; K]) -> [T; K] {
    let mut rounded = [T::ZERO; K];
    for k in 0..K {
        rounded[k] = T::from_f64(numbers[k]);
    }
    rounded
}

/// The factor of a gradient: -1 to ascend.
pub(crate) fn sign_of(maximize: bool) -> f64 {
    if maximize { -1.0 } else { 1.0 }
}

/// -1, 0 or 1; NaN of NaN.
#[inline(always)]
pub(crate) fn sign<T: Real>(x: T) -> T {
    let negative = if x < T::ZERO { -T::ONE } else { x };
    if x > T::ZERO { T::ONE } else { negative }
}
