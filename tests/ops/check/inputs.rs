//! The inputs of cases: sizes with names, and numbers that are the same in every run.

use namegrad::core::Category;
use namegrad::prelude::*;
use std::ops::Range;

/// An input of a case: its sizes and names, and its numbers as floats and as integers.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(super) axes: Axes,
    pub(super) floats: Vec<f64>,
    pub(super) ints: Vec<f64>,
    pub(super) role: Role,
    /// The draw of the numbers, unless they were given.
    pub(super) drawn: Option<Drawn>,
}

/// A draw of numbers: the seed, and the map from numbers between -3 and 3 to the floats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    seed: u64,
    float: fn(f64) -> f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// An input of the dtype that is checked.
    Value,
    /// An input of the dtype that is checked, on whose numbers the result does not depend.
    Beside,
    /// An input that is always `i64`.
    Index,
    /// An input that is always `bool`.
    Mask,
}

/// Sizes with names.
pub(crate) type Axes = Vec<(Option<String>, usize)>;

/// `"N=2 ?=3"` or `"2 3"` as sizes with names.
pub(crate) fn axes(text: &str) -> Axes {
    let axis = |word: &str| match word.split_once('=') {
        Some(("?", size)) => (None, size.parse().unwrap()),
        Some((name, size)) => (Some(name.to_string()), size.parse().unwrap()),
        None => (None, word.parse().unwrap()),
    };
    text.split_whitespace().map(axis).collect()
}

pub(crate) fn sizes(axes: &Axes) -> Vec<usize> {
    axes.iter().map(|(_, size)| *size).collect()
}

/// Numbers that are the same in each run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A different seed for each text.
    pub(crate) fn of(text: &str) -> Random {
        Random(
            text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
            }),
        )
    }

    /// SplitMix64: Steele, Lea, Flood, *Fast splittable pseudorandom number generators* (2014).
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn float(&mut self, range: &Range<f64>) -> f64 {
        range.start + (range.end - range.start) * (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A whole number in the range.
    pub(super) fn whole(&mut self, range: &Range<f64>) -> f64 {
        let (low, high) = (range.start.ceil(), range.end.floor());
        low + (self.bits() % ((high - low).max(0.0) as u64 + 1)) as f64
    }
}

/// Numbers between -3 and 3, which depend on the text and, in [`in_places`], on the position among the
/// inputs.
pub(crate) fn values(text: &str) -> Input {
    Drawn { seed: Random::of(text).0, float: |x| x }.input(axes(text), Role::Value)
}

/// An input whose sizes matter to the result, but not its numbers.
pub(crate) fn beside(text: &str) -> Input {
    Input { role: Role::Beside, ..values(text) }
}

/// Numbers near 1, so that even a long product is neither large nor small.
pub(crate) fn near_one(text: &str) -> Input {
    Drawn { seed: Random::of(text).0, float: |x| 1.0 + x / 6000.0 }.input(axes(text), Role::Value)
}

/// These numbers.
pub(crate) fn numbers(text: &str, numbers: impl AsRef<[f64]>) -> Input {
    let numbers = numbers.as_ref().to_vec();
    Input { axes: axes(text), floats: numbers.clone(), ints: numbers, role: Role::Value, drawn: None }
}

/// These positions.
pub(crate) fn index<const K: usize>(text: &str, positions: [i64; K]) -> Input {
    Input { role: Role::Index, ..numbers(text, positions.map(|i| i as f64)) }
}

/// This condition; 1 is true.
pub(crate) fn mask<const K: usize>(text: &str, truth: [u8; K]) -> Input {
    Input { role: Role::Mask, ..numbers(text, truth.map(f64::from)) }
}

/// The inputs of one case. Inputs with the same sizes have different numbers, because drawn numbers also
/// depend on the position.
pub(crate) fn in_places(inputs: Vec<Input>) -> Vec<Input> {
    inputs.into_iter().enumerate().map(|(place, input)| input.at(place)).collect()
}

impl Drawn {
    fn input(self, axes: Axes, role: Role) -> Input {
        let (range, numel) = (-3.0..3.0, sizes(&axes).iter().product());
        let mut random = Random(self.seed);
        let floats = (0..numel).map(|_| (self.float)(random.float(&range))).collect();
        let ints = (0..numel).map(|_| random.whole(&range)).collect();
        Input { axes, floats, ints, role, drawn: Some(self) }
    }
}

impl Input {
    fn at(self, place: usize) -> Input {
        match self.drawn {
            Some(drawn) if place > 0 => {
                let seed = Random(drawn.seed.wrapping_add(place as u64)).bits();
                Drawn { seed, ..drawn }.input(self.axes, self.role)
            }
            _ => self,
        }
    }

    /// The sum of the magnitudes of the finite numbers, to which the rounding errors of a sum are relative.
    pub(crate) fn magnitude(&self) -> f64 {
        self.floats.iter().map(|x| x.abs()).filter(|x| x.is_finite()).sum::<f64>().max(1.0)
    }

    /// The input with its values in `dtype`.
    pub(super) fn tensor(&self, dtype: DType) -> Tensor {
        let dtype = match self.role {
            Role::Value | Role::Beside => dtype,
            Role::Index => DType::I64,
            Role::Mask => DType::Bool,
        };
        let data: Vec<f64> = match dtype.category() {
            Category::Float => self.floats.clone(),
            Category::Integer if dtype == DType::U8 => self.ints.iter().map(|x| x.abs()).collect(),
            Category::Integer => self.ints.clone(),
            Category::Bool => self.ints.iter().map(|x| x % 2.0).collect(),
        };
        let shape: Vec<(Option<&str>, usize)> =
            self.axes.iter().map(|(name, size)| (name.as_deref(), *size)).collect();
        Tensor::from_slice(&data, shape).unwrap().to(dtype).unwrap()
    }
}
