//! The ops of the library's tables, in a form in which a test can call them all: ops by element, reductions, and the others with arguments that are drawn
//! at random.

use namegrad::core::{Category, Count, Dim, DimOrAll, Dims, Int, Reduce, Scalar, SizeList};
use namegrad::prelude::*;

pub(crate) type Call = fn(&[Tensor]) -> Result<Tensor>;
pub(crate) type InPlace = fn(&mut Tensor, &[Tensor]) -> Result<()>;

/// An op by element, of some number of tensors.
pub(crate) struct Pointwise {
    pub(crate) name: &'static str,
    pub(crate) arity: usize,
    pub(crate) call: Call,
    pub(crate) in_place: Option<InPlace>,
}

macro_rules! in_place {
    ([] $($more:tt)*) => { None };
    ([$name_:ident] $($more:ident)*) => {
        Some(|x, others| {
            let [$($more),*] = others else { unreachable!() };
            x.$name_($($more),*).map(drop)
        })
    };
}

macro_rules! rows {
    ($table:ident $arity:literal: $($name:ident [$($name_:ident)?] ($x:ident $($more:ident)*))*) => {
        pub(crate) const $table: &[Pointwise] = &[$(Pointwise {
            name: stringify!($name),
            arity: $arity,
            call: |inputs| {
                let [$x $(, $more)*] = inputs else { unreachable!() };
                $x.$name($($more),*)
            },
            in_place: in_place!([$($name_)?] $($more)*),
        }),*];
    };
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident $($name_:ident)? ($x:ident) $(-> $out:ident)? { $($body:tt)* })*) => {
        rows! { UNARY 1: $($name [$($name_)?] ($x))* }
    };
}
namegrad::core::unary_ops!(unary);

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident $($name_:ident)? ($x:ident $y:ident) $(-> $out:ident)? { $($body:tt)* } $($mark:ident)*;)*) => {
        rows! { BINARY 2: $($name [$($name_)?] ($x $y))* }
    };
}
namegrad::core::binary_ops!(binary);

macro_rules! ternary {
    ($($(#[$doc:meta])* $name:ident $($name_:ident)? ($x:ident $y:ident $z:ident) { $($body:tt)* } $($mark:ident)*;)*) => {
        rows! { TERNARY 3: $($name [$($name_)?] ($x $y $z))* }
    };
}
namegrad::core::ternary_ops!(ternary);

pub(crate) type Reduction =
    (&'static str, fn(&Tensor, &[usize]) -> Result<Tensor>, fn(&Tensor, &[usize]) -> Result<Tensor>);

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident $name_keepdim:ident ($x:ident $(; $arg:ident: $ty:ty)?))*) => {
        pub(crate) const REDUCTIONS: &[Reduction] = &[$((
            stringify!($name),
            |x, dims| x.$name(dims $(, { let $arg: $ty = 1.5; $arg })?),
            |x, dims| x.$name_keepdim(dims $(, { let $arg: $ty = 1.5; $arg })?),
        )),*];
    };
}
namegrad::core::reduce_ops!(reductions);

pub(crate) fn pointwise() -> impl Iterator<Item = &'static Pointwise> {
    UNARY.iter().chain(BINARY).chain(TERNARY)
}

type CallWithArguments = fn(&Tensor, &[Tensor], &mut Draw) -> Result<Tensor>;
type InPlaceWithArguments = fn(&mut Tensor, &[Tensor], &mut Draw) -> Result<()>;

/// An op of another table: tensors by the roles that the row calls them, and arguments.
pub(crate) struct WithArguments {
    pub(crate) name: &'static str,
    pub(crate) roles: &'static [&'static str],
    pub(crate) call: CallWithArguments,
    pub(crate) in_place: Option<InPlaceWithArguments>,
}

macro_rules! with_arguments {
    ($table:ident $(
        $(#[$doc:meta])*
        $name:ident $($name_:ident)? [$rule:literal] ($x:ident $(, $other:ident)* $(; $($arg:ident: $ty:ty),*)?)
    )*) => {
        const $table: &[WithArguments] = &[$(WithArguments {
            name: stringify!($name),
            roles: &[$(stringify!($other)),*],
            call: |x, others, draw| {
                let [$($other),*] = others else { unreachable!() };
                $($(let $arg = <$ty as Drawn>::draw(draw, x);)*)?
                let _ = draw;
                x.$name($($other,)* $($($arg),*)?)
            },
            in_place: with_arguments!(@ [$($name_)?] ($($other)*) ($($($arg: $ty)*)?)),
        }),*];
    };
    (@ [] $others:tt $arguments:tt) => { None };
    (@ [$name_:ident] ($($other:ident)*) ($($arg:ident: $ty:ty)*)) => {
        Some(|x, others, draw| {
            let [$($other),*] = others else { unreachable!() };
            $(let $arg = <$ty as Drawn>::draw(draw, x);)*
            let _ = draw;
            x.$name_($($other,)* $($arg),*).map(drop)
        })
    };
}
macro_rules! along { ($($rows:tt)*) => { with_arguments! { ALONG $($rows)* } }; }
namegrad::core::along_ops!(along);
macro_rules! shape { ($($rows:tt)*) => { with_arguments! { SHAPE $($rows)* } }; }
namegrad::core::shape_ops!(shape);
macro_rules! index { ($($rows:tt)*) => { with_arguments! { INDEX $($rows)* } }; }
namegrad::core::index_ops!(index);
macro_rules! matmul { ($($rows:tt)*) => { with_arguments! { MATMUL $($rows)* } }; }
namegrad::core::matmul_ops!(matmul);

/// Ops that pick: their values.
macro_rules! picks {
    ($(
        $(#[$doc:meta])*
        $name:ident $($name_keepdim:ident)? [$rule:literal] ($x:ident $(, $k:ident: $K:ty)?; $dim:ident: $Dim:ty $(, $flag:ident: $Flag:ty)?)
    )*) => {
        const PICKS: &[WithArguments] = &[$(WithArguments {
            name: stringify!($name),
            roles: &[],
            call: |x, _, draw| {
                $(let $k = <$K as Drawn>::draw(draw, x);)?
                let $dim = <$Dim as Drawn>::draw(draw, x);
                $(let $flag = <$Flag as Drawn>::draw(draw, x);)?
                Ok(x.$name($($k,)? $dim $(, $flag)?)?.values)
            },
            in_place: None,
        }),*];
    };
}
namegrad::core::pick_ops!(picks);

pub(crate) fn with_arguments() -> impl Iterator<Item = &'static WithArguments> {
    [ALONG, PICKS, SHAPE, INDEX, MATMUL].into_iter().flatten()
}

/// Random numbers, the same for the same seed: an op is called several times with the same arguments.
#[derive(Clone)]
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    /// The tensor that stands beside `x` in a role, for an op that was given `others` already. Mostly it fits.
    pub(crate) fn other(&mut self, role: &str, x: &Tensor, others: &[Tensor]) -> Tensor {
        let mut sizes = x.sizes().to_vec();
        let mut dtype = x.dtype();
        match role {
            "index" => {
                dtype = DType::I64;
                if self.below(2) == 0 {
                    sizes = vec![self.below(4)];
                }
            }
            "mask" => dtype = DType::Bool,
            "source" | "src" if !others.is_empty() => sizes = others[0].sizes().to_vec(),
            // The other matrix of a product: its rows are the columns of `x`.
            _ => {
                let last = sizes.pop().unwrap_or(1);
                let rows = sizes.pop();
                match self.below(3) {
                    0 => sizes = vec![last],
                    1 => sizes = vec![last, self.below(3) + 1],
                    _ => sizes.extend([last, rows.unwrap_or(2)]),
                }
            }
        }
        let count: usize = sizes.iter().product();
        let numbers: Vec<f64> = (0..count)
            .map(|_| match dtype.category() {
                Category::Float => self.below(600) as f64 / 100.0 - 3.0,
                Category::Integer => self.below(6) as f64 - 1.0,
                Category::Bool => self.below(2) as f64,
            })
            .collect();
        Tensor::from_slice(&numbers, sizes).unwrap().to(dtype).unwrap()
    }
}

/// An argument that can be drawn; mostly one that fits `x`.
trait Drawn {
    fn draw(draw: &mut Draw, x: &Tensor) -> Self;
}

impl Drawn for Dim {
    fn draw(draw: &mut Draw, x: &Tensor) -> Dim {
        let dim = draw.below(2 * x.ndim() + 3) as isize - x.ndim() as isize - 1;
        match usize::try_from(dim).ok().filter(|dim| *dim < x.ndim()).and_then(|dim| x.names().get(dim)) {
            Some(name) if draw.below(2) == 0 => Dim::Name(name),
            _ if draw.below(20) == 0 => Dim::from("no_such_dim"),
            _ => Dim::Index(dim),
        }
    }
}
impl Drawn for DimOrAll {
    fn draw(draw: &mut Draw, x: &Tensor) -> DimOrAll {
        if draw.below(4) == 0 { (..).into() } else { Dim::draw(draw, x).into() }
    }
}
impl Drawn for Dims {
    fn draw(draw: &mut Draw, x: &Tensor) -> Dims {
        if draw.below(4) == 0 {
            return Dims::All;
        }
        let mut dims: Vec<usize> = (0..x.ndim()).collect();
        for at in 1..dims.len() {
            dims.swap(at, draw.below(at + 1));
        }
        let count = if draw.below(2) == 0 { dims.len() } else { draw.below(dims.len() + 1) };
        dims.truncate(count);
        Dims::from(dims)
    }
}
impl Drawn for Int {
    fn draw(draw: &mut Draw, _: &Tensor) -> Int {
        Int(draw.below(9) as isize - 3)
    }
}
impl Drawn for Count {
    fn draw(draw: &mut Draw, _: &Tensor) -> Count {
        Count(draw.below(6) as isize - 1)
    }
}
impl Drawn for SizeList {
    /// The sizes of `x` in another order, perhaps merged, with one to be inferred, or with a dim more.
    fn draw(draw: &mut Draw, x: &Tensor) -> SizeList {
        let mut sizes: Vec<isize> = x.sizes().iter().map(|size| *size as isize).collect();
        match draw.below(5) {
            0 => sizes.reverse(),
            1 => sizes = vec![sizes.iter().product()],
            2 => sizes.insert(0, 2),
            3 if !sizes.is_empty() => {
                let at = draw.below(sizes.len());
                sizes[at] = -1;
            }
            _ => {}
        }
        SizeList::from(sizes)
    }
}
impl Drawn for Scalar {
    fn draw(draw: &mut Draw, _: &Tensor) -> Scalar {
        Scalar::Int(draw.below(5) as i64 - 2)
    }
}
impl Drawn for f64 {
    fn draw(draw: &mut Draw, _: &Tensor) -> f64 {
        draw.below(9) as f64 / 2.0 - 2.0
    }
}
impl Drawn for Reduce {
    fn draw(draw: &mut Draw, _: &Tensor) -> Reduce {
        [Reduce::Sum, Reduce::Prod, Reduce::Mean, Reduce::Amax, Reduce::Amin][draw.below(5)]
    }
}
impl Drawn for bool {
    fn draw(draw: &mut Draw, _: &Tensor) -> bool {
        draw.below(2) == 0
    }
}
