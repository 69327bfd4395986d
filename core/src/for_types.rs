//! One implementation for several types.

/// Items that are the same for several types: `for_types!(u8, i8 => T { impl Whole for T {} })` becomes
///
/// ```ignore
/// const _: () = { type T = u8; const _: () = { impl Whole for T {} }; };
/// const _: () = { type T = i8; const _: () = { impl Whole for T {} }; };
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! for_types {
    ($($type:ty),* => $T:ident $items:tt) => {
        // One of the types may need no conversion.
        $(#[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
        const _: () = {
            type $T = $type;
            const _: () = $items;
        };)*
    };
}
pub use for_types;
