//! The macros that turn rows into tests. Ops are called by name, so rows mention neither methods nor in-place
//! forms; if the registry has an in-place form, it is checked too.

/// Rows of elementwise ops, with a test for each:
///
/// ```ignore
/// maximum (x: -3.0..3.0, y: -3.0..3.0) [float int bool] larger(x, y), kinks x - y;
/// leaky_relu (x: -3.0..3.0; negative_slope 0.2) [float only]
///     if x > 0.0 { x } else { negative_slope * x }, kinks x;
/// ```
/// A row has the range of each input, and the other arguments; the classes of dtypes; the reference; an
/// expression that is zero where there is no derivative; and a `scale` to which rounding errors are relative,
/// in addition to the result. The second row becomes
///
/// ```ignore
/// #[test]
/// fn leaky_relu() {
///     static ROW: Pointwise = Pointwise {
///         op: "leaky_relu",
///         args: || vec![("negative_slope", 0.2.into())],
///         classes: &["float", "only"],
///         ranges: &[-3.0..3.0],
///         reference: |numbers| {
///             let [x] = *numbers else { .. };
///             let negative_slope = 0.2;
///             if x > 0.0 { x } else { negative_slope * x }
///         },
///         kinks: |numbers| { let [x] = *numbers else { .. }; [x, f64::INFINITY][0] },
///         scale: [0.0][0],
///     };
///     pointwise(&ROW);
/// }
/// ```
macro_rules! pointwise {
    ($(
        $name:ident ($($x:ident: $range:expr),+ $(; $($key:ident $arg:literal),*)?) [$($class:ident)*] $reference:expr
        $(, kinks $kinks:expr)? $(, scale $scale:expr)?;
    )*) => {
        /// The ops of this table.
        pub(crate) const OPS: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            #[allow(unused_variables)] // a kink may depend on only some of the inputs
            fn $name() {
                static ROW: $crate::check::Pointwise = $crate::check::Pointwise {
                    op: stringify!($name),
                    args: || vec![$($((stringify!($key), namegrad::ops::Value::from($arg))),*)?],
                    classes: &[$(stringify!($class)),*],
                    ranges: &[$($range),+],
                    reference: |numbers| {
                        let [$($x),+] = *numbers else { unreachable!() };
                        $($(let $key = f64::from($arg);)*)?
                        $reference
                    },
                    kinks: |numbers| {
                        let [$($x),+] = *numbers else { unreachable!() };
                        $($(let $key = f64::from($arg);)*)?
                        [$($kinks,)? f64::INFINITY][0]
                    },
                    scale: [$($scale,)? 0.0][0],
                };
                $crate::check::pointwise(&ROW);
            }
        )*
    };
}

/// Rows of all other ops, with a test for each, which has one or more cases:
///
/// ```ignore
/// transpose { (x: values("N=2 C=3 H=4"); 0, 2) => "H=4 C=3 N=2" any, |i| x.at(&[i[2], i[1], i[0]]); }
/// unique { (x: numbers("N=3", [2.0, 1.0, 2.0])) counts => "2" indices, |i| [1.0, 2.0][i[0]]; }
/// chunk { (x: values("N=4"); 2) #1 => "N=2" any, |i| x.at(&[2 + i[0]]); }
/// ```
/// A case has the inputs, and the other arguments in the order of the op's row; the output, by its name or
/// its number in a list; its sizes with names, and the rule for its dtype; the element of the result at index
/// `i`; and the `scale` of rounding errors, if there are any. The first row becomes
///
/// ```ignore
/// #[test]
/// fn transpose() {
///     let element = |x: &[Plain], i: &[usize]| { let [x] = x else { .. }; x.at(&[i[2], i[1], i[0]]) };
///     let (inputs, args) = (vec![values("N=2 C=3 H=4")], vec![0.into(), 2.into()]);
///     check(&Case::new("transpose", inputs, args, ("", 0), "H=4 C=3 N=2", any, element, None));
/// }
/// ```
macro_rules! cases {
    ($($name:ident { $(
        ($($x:ident: $input:expr),+ $(; $($arg:expr),*)?) $($output:ident)? $(#$at:literal)? => $result:literal $dtype:ident, |$i:ident| $element:expr $(, scale $scale:expr)?;
    )+ })*) => {
        /// The ops of this table.
        pub(crate) const OPS: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            #[allow(unused_variables)] // a reference may not need all inputs
            fn $name() {
                $({
                    let element = |x: &[$crate::plain::Plain], $i: &[usize]| -> f64 {
                        let [$($x),+] = x else { unreachable!() };
                        $element
                    };
                    let args = vec![$($(namegrad::ops::Value::from($arg)),*)?];
                    let (inputs, output) = (vec![$($input),+], (concat!($(stringify!($output))?), [$($at,)? 0][0]));
                    let (dtype, scale) = ($crate::check::$dtype, [$(Some($scale),)? None][0]);
                    $crate::check::check(&$crate::check::Case::new(
                        stringify!($name), inputs, args, output, $result, dtype, element, scale,
                    ));
                })+
            }
        )*
    };
}

/// Rows of ops along dims, with a test for each:
///
/// ```ignore
/// rows! { Along:
///     argsort_descending = argsort (_n: descending true) indices Stays Exact |x| plain::sorted(x, true);
/// }
/// ```
/// First comes the type of the rows. A row has the name of the test, if it is not the name of the op; the op,
/// which of its outputs, and its other arguments for `n` elements; the rule for the dtype of the result, the
/// other arguments of `new` of the type, and the reference for the numbers along the dims. The row becomes an
/// entry of `ROWS` and its test:
///
/// ```ignore
/// static ROWS: &[(&str, Along)] = &[(
///     "argsort_descending",
///     Along::new("argsort", "", |_n| vec![("descending", true.into())], indices, Stays, Exact, |x| {
///         plain::sorted(x, true)
///     }),
/// )];
/// #[test]
/// fn argsort_descending() {
///     row("argsort_descending").check();
/// }
/// ```
macro_rules! rows {
    ($Row:ident: $(
        $name:ident $(= $op:ident $(.$output:ident)?)? $(($n:ident: $($key:ident $arg:expr),*))?
        $dtype:ident $($word:ident)* |$x:ident| $reference:expr;
    )*) => {
        /// The ops of this table.
        pub(crate) const OPS: &[&str] = &[$([$(stringify!($op),)? stringify!($name)][0]),*];

        static ROWS: &[(&str, $Row)] = &[$((stringify!($name), $Row::new(
            [$(stringify!($op),)? stringify!($name)][0],
            concat!($($(stringify!($output))?)?),
            [$(|$n: usize| vec![$((stringify!($key), $arg.into())),*],)? |_: usize| Vec::new()][0],
            $crate::check::$dtype,
            $($word,)*
            |$x| $reference,
        ))),*];

        fn row(name: &str) -> &'static $Row {
            ROWS.iter().find(|(row, _)| *row == name).map(|(_, row)| row).expect("a row of the table")
        }

        $(
            #[test]
            fn $name() {
                row(stringify!($name)).check();
            }
        )*
    };
}
