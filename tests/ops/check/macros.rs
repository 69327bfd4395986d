//! The macros that turn rows into tests.

/// Rows of ops by element, a test for each:
///
/// ```ignore
/// maximum (x: -3.0..3.0, y: -3.0..3.0) [float int bool] larger(x, y), kinks x - y;
/// ```
/// The op with its in-place form if it has one; for each input where its numbers come from; the classes of dtypes; the reference; what is zero where there is no
/// derivative; the `scale` to which rounding errors are relative besides the result.
macro_rules! pointwise {
    ($(
        $name:ident $($name_:ident)? ($x:ident: $range:expr $(, $more:ident: $ranges:expr)*) [$($class:ident)*] $reference:expr
        $(, kinks $kinks:expr)? $(, scale $scale:expr)?;
    )*) => {
        /// The ops of this table.
        pub(crate) const OPS: &[$crate::Tested] = &[$((stringify!($name), in_place!(name $($name_)?))),*];
        $(
            #[test]
            #[allow(unused_variables)] // a kink may depend on some of the inputs only
            fn $name() {
                static ROW: $crate::check::Pointwise = $crate::check::Pointwise {
                    op: stringify!($name),
                    call: |inputs| {
                        let [$x $(, $more)*] = inputs else { unreachable!() };
                        $x.$name($($more),*)
                    },
                    in_place: in_place!(call [$($name_)?] $($more)*),
                    classes: &[$(stringify!($class)),*],
                    ranges: &[$range $(, $ranges)*],
                    reference: |numbers| {
                        let [$x $(, $more)*] = *numbers else { unreachable!() };
                        $reference
                    },
                    kinks: |numbers| {
                        let [$x $(, $more)*] = *numbers else { unreachable!() };
                        [$($kinks,)? f64::INFINITY][0]
                    },
                    scale: [$($scale,)? 0.0][0],
                };
                $crate::check::pointwise(&ROW);
            }
        )*
    };
}

/// The in-place form of a row, if there is one: its name, or the call.
macro_rules! in_place {
    (name) => { None };
    (name $name_:ident) => { Some(stringify!($name_)) };
    (call [] $($more:ident)*) => { None };
    (call [$name_:ident] $($more:ident)*) => {
        Some(|x, others| {
            let [$($more),*] = others else { unreachable!() };
            x.$name_($($more),*).map(drop)
        })
    };
}

/// Rows of all other ops, a test for each, with a case or more:
///
/// ```ignore
/// transpose transpose_ { (x: values("N=2 C=3 H=4"); 0, 2) => "H=4 C=3 N=2" any, |i| x.at(&[i[2], i[1], i[0]]); }
/// ```
/// The inputs and the other arguments; the result with its names, and how its dtype follows from that of the values; the element of the result at index `i`; the
/// `scale` of rounding errors where there are any.
macro_rules! cases {
    ($($name:ident $($name_:ident)? { $($cases:tt)+ })*) => {
        /// The ops of this table.
        pub(crate) const OPS: &[$crate::Tested] = &[$((stringify!($name), in_place!(name $($name_)?))),*];
        $(
            #[test]
            #[allow(unused_variables)] // a reference may not need all inputs
            fn $name() {
                cases!(@ $name [$($name_)?] $($cases)+);
            }
        )*
    };
    (@ $name:ident $name_:tt
        $(($x:ident: $input:expr $(, $more:ident: $inputs:expr)* $(; $($arg:expr),*)?)
            => $result:literal $dtype:ident, |$i:ident| $element:expr $(, scale $scale:expr)?;)+
    ) => {
        $($crate::check::check(&case! {
            $name $name_ [$x: $input $(, $more: $inputs)*] [$($($arg),*)?]
            $result, $dtype, |$i| $element, [$($scale)?]
        });)+
    };
}

/// One case of a row.
macro_rules! case {
    ($name:ident [$($name_:ident)?] [$x:ident: $input:expr $(, $more:ident: $inputs:expr)*] $args:tt
        $result:literal, $dtype:ident, |$i:ident| $element:expr, [$($scale:expr)?]) => {{
        let result = $crate::check::axes($result);
        let sizes = $crate::check::sizes(&result);
        $crate::check::Case {
            op: stringify!($name),
            call: Box::new(|inputs| {
                let [$x $(, $more)*] = inputs else { unreachable!() };
                case!(method $x $name [$($more),*] $args)
            }),
            in_place: case!(in_place [$($name_)?] [$($more),*] $args),
            inputs: vec![$input $(, $inputs)*],
            result,
            dtype: $crate::check::$dtype,
            reference: Box::new(move |inputs| {
                let [$x $(, $more)*] = inputs else { unreachable!() };
                $crate::plain::Plain::from_fn(&sizes, |$i: &[usize]| $element)
            }),
            scale: [$(Some($scale),)? None][0],
            reshapes: true,
        }
    }};
    (method $x:ident $name:ident [$($more:ident),*] [$($arg:expr),*]) => { $x.$name($($more,)* $($arg),*) };
    (in_place [] $more:tt $args:tt) => { None };
    (in_place [$name_:ident] [$($more:ident),*] $args:tt) => {
        Some(Box::new(|x: &mut namegrad::prelude::Tensor, others: &[namegrad::prelude::Tensor]| {
            let [$($more),*] = others else { unreachable!() };
            case!(method x $name_ [$($more),*] $args).map(drop)
        }) as $crate::check::CallInPlace)
    };
}
