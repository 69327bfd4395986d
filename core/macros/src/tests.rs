//! Rows and derivatives with errors: the message, and the token at which it is reported.

mod forms;

use crate::derivative::Derivatives;
use crate::row::OpTable;
use crate::{Expansion, expand_composed, expand_kernels, expand_ops, expand_tape, of_file, setters, values};
use proc_macro2::{Ident, Span, TokenStream};

fn tokens(text: &str) -> TokenStream {
    text.parse().expect("tokens of Rust")
}

/// The token at which an error is reported, and its message.
fn reported(text: &str, error: &syn::Error) -> (String, String) {
    let (start, end) = (error.span().start(), error.span().end());
    let line = text.lines().nth(start.line - 1).unwrap_or_default();
    let to = if end.line == start.line { end.column } else { line.chars().count() };
    (line.chars().skip(start.column).take(to - start.column).collect(), error.to_string())
}

/// The first error in a table.
#[track_caller]
fn first_error(expanded: syn::Result<Expansion>) -> syn::Error {
    expanded.map_or_else(|error| error, |made| made.errors.into_iter().next().expect("there is a mistake"))
}

/// Expects that the table `unary` with this row is rejected at a token, with these words.
#[track_caller]
fn refused(row: &str, at: &str, words: &[&str]) {
    let text = format!("unary;\n{row}");
    let error = first_error(expand_ops(tokens(&text)));
    let (token, message) = reported(&text, &error);
    assert_eq!(token, at, "reported at another token: {message}");
    for word in words {
        assert!(message.contains(word), "`{word}` is not in: {message}");
    }
}

/// Expects that these derivatives of the rows are rejected at a token, with these words. An empty `at` is the
/// call of the macro.
#[track_caller]
fn refused_derivative(rows: &str, derivatives: &str, at: &str, words: &[&str]) {
    let table: OpTable = syn::parse2(tokens(&format!("unary;\n{rows}"))).expect("rows without a mistake");
    let text = format!("|g, cx|\n{derivatives}");
    let error = match syn::parse2::<Derivatives>(tokens(&text)) {
        Err(error) => error,
        Ok(parsed) => {
            let (errors, _) = parsed.check(&Ident::new("unary", Span::call_site()), &table.rows);
            parsed.errors.into_iter().chain(errors).next().expect("the derivatives have a mistake")
        }
    };
    let message = error.to_string();
    if !at.is_empty() {
        assert_eq!(reported(&text, &error).0, at, "reported at another token: {message}");
    }
    for word in words {
        assert!(message.contains(word), "`{word}` is not in: {message}");
    }
}

const EXP: &str = "/// `e^x`.\nexp exp_ (x) { float: x.exp() }";
const QR: &str = "/// `x = q r`.\nqr (x; reduced: bool = true) -> (q, r) on floats names keeps;";

#[test]
fn a_row_without_a_doc() {
    refused("exp (x) { float: x.exp() }", "exp", &["op `exp` has no doc", "/// ..."]);
}

#[test]
fn a_row_without_parentheses() {
    refused("/// doc\nexp { float: x.exp() }", "{", &["`exp`: expected `(`"]);
}

#[test]
fn an_in_place_form_of_another_name() {
    refused("/// doc\nexp expo_ (x) { float: x.exp() }", "expo_", &["`exp` is called `exp_`, not `expo_`"]);
}

#[test]
fn a_tensor_after_of_that_is_not_there() {
    let row = "/// doc\nnorm (x, weight?; dim: Dim of wieght) names keeps;";
    refused(row, "wieght", &["`norm`: `wieght` is not a tensor of this row", "`x`, `weight`"]);
}

#[test]
fn two_outputs_of_one_name() {
    let row = "/// doc\nqr (x) -> (q, q) names keeps;";
    refused(row, "q", &["`qr`: two outputs are called `q`"]);
}

#[test]
fn an_output_of_the_name_of_an_input() {
    let row = "/// doc\nqr (x) -> (q, x) names keeps;";
    refused(row, "x", &["`qr`: an output and an input are called `x`"]);
}

#[test]
fn defaults_of_the_wrong_type() {
    let row = |arg: &str| format!("/// doc\nsoftplus (x; {arg}) {{ float: x }}");
    refused(
        &row("beta: f64 = true"),
        "true",
        &["`softplus`: the default of `beta` must be of type f64", "`1.0`"],
    );
    refused(&row("beta: f64 = \"one\""), "\"one\"", &["of type f64"]);
    refused(&row("n: usize = -1"), "-", &["the default of `n` must be of type usize"]);
    refused(&row("n: isize = 1.5"), "1.5", &["of type isize"]);
    refused(&row("flag: bool = 1"), "1", &["of type bool", "`true` or `false`"]);
    refused(&row("beta: f64 ="), ")", &["`softplus`: expected a default of `beta` after `=`"]);
}

#[test]
fn an_argument_without_a_type() {
    refused("/// doc\nflip (x; dims) names keeps;", "dims", &["`flip`: expected `:` and the type of `dims`"]);
}

#[test]
fn an_argument_twice() {
    refused("/// doc\nflip (x; dim: Dim, dim: Dim) names keeps;", "dim", &["`flip`: `dim` occurs twice"]);
}

#[test]
fn a_tensor_with_the_type_of_an_argument() {
    let words = ["`flip`: `Dim` is not a kind of tensor", "follow a `;`"];
    refused("/// doc\nflip (x, dim: Dim) names keeps;", "Dim", &words);
}

#[test]
fn a_first_tensor_that_can_be_missing() {
    refused("/// doc\nnorm (x?) names keeps;", "x", &["`norm`: the first tensor must be one"]);
}

#[test]
fn an_unknown_entry_of_a_body() {
    refused("/// doc\nexp (x) { flaot: x.exp() }", "flaot", &["`exp`: `flaot` is not one of float, int"]);
}

#[test]
fn a_body_without_a_formula() {
    refused("/// doc\nexp (x) { dtypes: Dtypes::Floats }", "exp", &["`exp`: expected a formula"]);
}

#[test]
fn an_unknown_word_for_loops() {
    let words = ["`lgamma`: `sclar` is not a way to compile its loops", "did you mean `scalar`?"];
    refused("/// doc\nlgamma (x) sclar { float: x.lgamma() }", "sclar", &words);
    let words = ["`fast` is not a way to compile its loops", "there is wide, halves, long, plain, scalar"];
    refused("/// doc\nlgamma (x) fast { float: x.lgamma() }", "fast", &words);
    let words = ["`plain` is about a formula on floats, and there is none"];
    refused("/// doc\nnot (x) plain { int: !x }", "plain", &words);
}

#[test]
fn a_formula_beside_that_of_all_dtypes() {
    let row = "/// doc\nsame (x) { any: x, float: x }";
    refused(row, "float", &["`same`: `any` is the formula of all dtypes"]);
}

#[test]
fn an_unknown_class_of_dtypes() {
    refused(
        "/// doc\nqr (x) on float names keeps;",
        "float",
        &["`float` is not a class of dtypes", "floats, integers, bool"],
    );
}

#[test]
fn a_row_without_a_rule_of_names() {
    refused(
        "/// doc\ngather (x, index; dim: Dim);",
        "index",
        &["`gather`: expected how the names of `index` meet"],
    );
    refused(
        "/// doc\ngather (x, index, source) names keeps, index: along x;",
        "source",
        &["`source`", "matched"],
    );
    refused("/// doc\nstack ([tensors]);", "tensors", &["`stack`: expected how the names of `tensors` meet"]);
}

#[test]
fn a_rule_of_names_with_a_wrong_word() {
    let row = |rule: &str| format!("/// doc\ngather (x, index; dim: Dim) names {rule};");
    refused(
        &row("keep"),
        "keep",
        &["`keep` is not a rule of the result", "did you mean `keeps`?", "contracts"],
    );
    refused(&row("unified"), "unified", &["`unified` is not a rule of the result"]);
    refused(
        &row("keeps, index: besides dim"),
        "besides",
        &["not a rule of an input", "did you mean `beside`?"],
    );
    refused(&row("keeps, index: beside dims"), "dims", &["`dims` is not a tensor or an argument", "`dim`?"]);
    refused(&row("keeps, indx: beside dim"), "indx", &["`indx` is not an input or an output", "`index`?"]);
    refused(&row("keeps, index: beside"), ";", &["expected a tensor or an argument after `beside`"]);
    refused(&row("keeps, removes"), "removes", &["expected an input or an output, and `:`"]);
    refused(&row("keeps, y: keep"), "keep", &["`keep` is not a rule of the result"]);
}

#[test]
fn an_in_place_form_of_several_outputs() {
    let row = "/// doc\nqr qr_ (x) -> (q, r) names keeps;";
    refused(row, "qr_", &["only an op of one tensor and one output has an in-place form"]);
}

#[test]
fn an_op_twice() {
    refused(&format!("{EXP}\n{EXP}"), "exp", &["op `exp` has two rows"]);
}

#[test]
fn a_row_that_does_not_end() {
    refused("/// doc\nqr (x) names keeps /// doc\nexp (x) { float: x }", "/// doc", &["`qr`: expected"]);
}

#[test]
fn a_derivative_of_no_op() {
    let words =
        ["a derivative of `expp`, which is not an op of core/src/ops/unary.rs", "did you mean `exp`?"];
    refused_derivative(EXP, "expp(x) -> y { x: [y] g * y }", "expp", &words);
}

#[test]
fn two_derivatives() {
    let twice = "exp(x) -> y { x: [y] g * y }\nexp constant;";
    refused_derivative(EXP, twice, "exp", &["`exp` has two derivatives"]);
}

#[test]
fn no_derivative() {
    refused_derivative(
        EXP,
        "",
        "",
        &[
            "op `exp` of core/src/ops/unary.rs has no derivative here",
            "`exp(x) -> y { x: [..] .. }`",
            "`exp constant;`",
        ],
    );
}

#[test]
fn what_is_used_and_not_kept() {
    let words = ["`y` is used in the gradient of `exp` and not kept: write `[y]`"];
    refused_derivative(EXP, "exp(x) -> y { x: [] g * y }", "y", &words);
    let words = ["`r` is used in the gradient of `qr` and not kept: write `[q r]`"];
    refused_derivative(QR, "qr(x) -> (q, r) { x: [q] gradient(g_q, q, r)? }", "r", &words);
    let words = ["`reduced` is used in the gradient of `qr` and not kept: write `[..; reduced]`"];
    refused_derivative(
        QR,
        "qr(x; reduced) -> (q, r) { x: [q r] gradient(q, r, reduced)? }",
        "reduced",
        &words,
    );
}

#[test]
fn what_is_kept_and_not_used() {
    let words = ["`x` is kept for the gradient of `exp` and not used"];
    refused_derivative(EXP, "exp(x) -> y { x: [x y] g * y }", "x", &words);
}

#[test]
fn a_gradient_of_no_input() {
    let words = ["`z` is not a tensor that `exp` takes", "did you mean `x`?"];
    refused_derivative(EXP, "exp(x) -> y { z: [y] g * y }", "z", &words);
}

#[test]
fn two_gradients_of_one_input() {
    let twice = "exp(x) -> y { x: [y] g * y, x: [y] g * y }";
    refused_derivative(EXP, twice, "x", &["`exp` has two gradients of `x`"]);
}

#[test]
fn another_number_of_outputs() {
    let words = ["`qr` has 2 outputs, and 1 are named here"];
    refused_derivative(QR, "qr(x) -> y { x: [y] g }", "qr", &words);
}

#[test]
fn an_argument_that_the_op_does_not_have() {
    let words = ["`reducd` is not an argument of `qr`", "did you mean `reduced`?"];
    refused_derivative(QR, "qr(x; reducd) -> (q, r) { x: [q r] f(q, r)? }", "reducd", &words);
}

#[test]
fn a_gradient_of_a_mask() {
    let row = "/// doc\nfill (x, mask: bool) { float: if mask { x } else { x } }";
    let both = "fill(x, mask) -> y { x: [] g.clone(), mask: [] g.clone() }";
    refused_derivative(row, both, "mask", &["`mask` of `fill` is a mask, which has no gradient"]);
}

#[test]
fn a_derivative_without_brackets() {
    refused_derivative(
        EXP,
        "exp(x) -> y { x: g * y }",
        "g",
        &["`exp`: expected `[`, what the gradient keeps"],
    );
}

#[test]
fn a_derivative_without_an_output() {
    refused_derivative(EXP, "exp(x) { x: [] g }", "{", &["`exp`: expected `-> y`"]);
}

#[test]
fn kernels_have_formulas() {
    let error = first_error(expand_kernels(tokens("/// doc\nrelu (y, g) names unifies;")));
    assert!(error.to_string().contains("`relu`: expected a formula"), "{error}");
}

#[test]
fn composed_ops_have_functions() {
    let error =
        first_error(expand_composed(tokens("products;\n/// doc\nkron (x, other) { float: x * other }")));
    assert!(error.to_string().contains("`kron`: a composed op has no kernel"), "{error}");
}

#[test]
fn code_that_does_not_end_or_is_in_a_table_of_kernels() {
    refused("/// doc\nexp (x) names keeps =>;", "=>", &["`exp`", "an expression and `;`, or a block"]);
    refused("/// doc\nexp (x) names keeps => x.exp();", "exp", &["only composed ops and functions"]);
    let table = "products;\n/// doc\ninner (x, other) names contracts => x.dot(other);";
    let code = expand_composed(tokens(table)).unwrap_or_default().code.to_string();
    assert!(code.contains("mod rows") && code.contains("rows :: inner"), "{code}");
}

/// The code generated from rows.
fn made(rows: &str) -> String {
    let table: OpTable = syn::parse2(tokens(&format!("unary;\n{rows}"))).expect("rows without a mistake");
    values::table(&table).to_string()
}

#[test]
fn every_line_of_the_doc_arrives() {
    let code = made(
        "/// First line,\n/// second line.\n///\n/// ```\n/// let x = 1;\n/// ```\nexp (x) { float: x.exp() }",
    );
    for line in ["First line,", "second line.", "let x = 1;", "```ignore"] {
        assert!(code.contains(line), "`{line}` is lost");
    }
}

#[test]
fn options_are_a_struct_and_two_forms() {
    let code = made("/// doc\nsoftplus softplus_ (x; beta: f64 = 1.5) { float: x * beta }");
    for part in ["struct SoftplusOptions", "fn softplus_with", "fn softplus_with_", "fn softplus_", "1.5"] {
        assert!(code.contains(part), "`{part}` is missing");
    }
    assert!(!made(EXP).contains("Options {"), "an op without options has none");
}

#[test]
fn the_data_of_an_op_has_all_of_its_row() {
    let code = made(
        "/// doc\nnorm (x, weight?; dim: Dim of weight, eps: f64 = 1e-5) -> (y; rstd) on floats names keeps;",
    );
    for part in [
        "\"weight\"",
        "Optional",
        "\"dim\"",
        "\"Dim\"",
        "Some (\"1e-5\")",
        "outputs : & [\"y\"]",
        "Category :: Float",
    ] {
        assert!(code.contains(part), "`{part}` is missing in {code}");
    }
}

#[test]
fn an_op_of_the_name_of_an_argument() {
    let code = made("/// doc\nthreshold (x; threshold: Scalar) { float: x }");
    assert!(code.contains("static THRESHOLD") && !code.contains("static threshold"), "{code}");
}

#[test]
fn a_type_that_no_argument_has() {
    let row = |arg: &str| format!("/// doc\nhardshrink (x; {arg}) {{ float: x }}");
    let words =
        ["`hardshrink`: `float64` is not a type of arguments; there are Dim, ", "usize, isize, f64, bool"];
    refused(&row("lambd: float64 = 0.5"), "float64", &words);
    refused(&row("lambd: float64"), "float64", &words);
    refused(&row("lambd: Option<float64>"), "float64", &words);
    refused(
        &row("lambd: Float = 0.5"),
        "Float",
        &["a default of type Float cannot be `0.5`", "usize, isize, f64, bool"],
    );
}

#[test]
fn a_comma_that_is_missing_in_a_body() {
    let row = "/// doc\nhardshrink (x) { float: if x > T::ZERO { x } else { -x } dtypes: Dtypes::Floats }";
    refused(row, "dtypes", &["`hardshrink`: expected `,` before `dtypes:`"]);
}

#[test]
fn an_op_by_element_with_words_of_other_ops() {
    let row = |words: &str| format!("/// doc\nexp (x) {words} {{ float: x.exp() }}");
    refused(
        &row("on floats"),
        "floats",
        &["`exp`: an op by element says its dtypes by", "`dtypes:`, not by `on`"],
    );
    refused(&row("names keeps"), "names", &["an op by element has no `names`"]);
}

#[test]
fn an_op_of_the_name_of_a_keyword() {
    refused("/// doc\nwhere (x) { float: x }", "where", &["`where` is a keyword of Rust"]);
    refused_derivative(EXP, "where(x) -> y { x: [] g }", "where", &["`where` is a keyword of Rust"]);
}

#[test]
fn a_bad_row_leaves_the_others() {
    let bad_rows = [
        "/// doc\nbad bad_ (x) { flaot: x }",
        "/// doc\nbad bad_ (x; p: f64 = true) { float: x }",
        "bad bad_ (x) { float: x }",
        "/// doc\nbad bad_ (x) on floats { float: x }",
        "/// doc\nbad bad_ (x) - > bool { float: x }",
    ];
    for bad in bad_rows {
        let text = format!("unary;\n{EXP}\n{bad}\n/// doc\nrelu (x) {{ float: x }}");
        let made = expand_ops(tokens(&text)).expect("rows");
        assert_eq!(made.errors.len(), 1, "{bad}: {:?}", made.errors);
        for method in ["fn exp_", "fn relu", "fn bad", "fn bad_"] {
            assert!(made.code.to_string().contains(method), "{bad}: no `{method}`");
        }
    }
    let text = format!("unary;\n{EXP}\n/// doc\nbad [x];\n/// doc\nrelu (x) {{ float: x }}");
    let made = expand_ops(tokens(&text)).expect("rows");
    assert_eq!(made.errors.len(), 1);
    assert!(["fn exp_", "fn relu"].iter().all(|method| made.code.to_string().contains(method)));
}

#[test]
fn a_bad_derivative_leaves_the_others() {
    let rows = format!("{EXP}\n/// doc\nrelu (x) {{ float: x }}\n/// doc\nsin (x) {{ float: x }}");
    let bad = ["exp(x) -> y { x: g * y }", "exp(x) { x: [y] g * y }", "exp(x) -> y { x: [] g * y }"];
    for bad in bad {
        let text =
            format!("{{ unary; {rows} }} {{ |g, cx| relu(x) -> y {{ x: [] g }} {bad} sin constant; }}");
        let made = expand_tape(tokens(&text)).expect("derivatives");
        assert_eq!(made.errors.len(), 1, "{bad}: {:?}", made.errors);
        for method in ["fn exp", "fn relu", "fn sin"] {
            assert!(made.code.to_string().contains(method), "{bad}: no `{method}`");
        }
    }
}

const PRELU: &str = "/// doc\nprelu (x, weight) { float: x }";

#[test]
fn an_input_without_a_gradient() {
    let words = ["`prelu`: the gradient of `weight` is missing", "`weight: [..] ..`", "`weight: refused`"];
    refused_derivative(PRELU, "prelu(x, weight) -> y { x: [] g.clone() }", "prelu", &words);
    let refused = "|g, cx| prelu(x, weight) -> y { x: [] g.clone(), weight: refused }";
    let table: OpTable = syn::parse2(tokens(&format!("unary;\n{PRELU}"))).expect("rows");
    let parsed: Derivatives = syn::parse2(tokens(refused)).expect("derivatives");
    let (code, errors) = crate::tape::table(&table, &parsed);
    assert!(errors.is_empty() && parsed.errors.is_empty());
    assert!(code.to_string().contains("refused : & [(1usize , \"weight\")]"), "{code}");
}

#[test]
fn a_comma_that_is_missing_between_gradients() {
    let both = "prelu(x, weight) -> y { x: [] g.clone() weight: [x] g * x }";
    refused_derivative(PRELU, both, "weight", &["`prelu`: expected `,` before `weight:`"]);
    let both = "prelu(x, weight) -> y { x: [] g.clone() (weight): [x] [g * x] }";
    refused_derivative(PRELU, both, "(", &["`prelu`: expected `,`"]);
    let refused = "prelu(x, weight) -> y { x: refused weight: [x] g * x }";
    refused_derivative(PRELU, refused, "weight", &["`prelu`: expected `,` before `weight:`"]);
}

#[test]
fn an_arrow_of_the_wrong_kind() {
    let derivative = "exp(x) -> y { x: [y] g * y -> kernel(y) }";
    refused_derivative(EXP, derivative, "-", &["`exp`: `->` in a gradient: did you mean `=>`?"]);
}

#[test]
fn outputs_and_tensors_in_another_order() {
    let derivative = "qr(x) -> (r, q) { x: [q r] f(g_q, g_r, q, r)? }";
    refused_derivative(QR, derivative, "r", &["`qr` gives (q, r), in this order"]);
    let derivative = "prelu(weight, x) -> y { x: [] g.clone(), weight: [x] g * x }";
    refused_derivative(PRELU, derivative, "weight", &["`prelu` takes (x, weight), in this order"]);
}

#[test]
fn one_gradient_of_several_outputs() {
    let words = ["`qr` has several outputs: there are `g_q` and `g_r` in place of `g`"];
    refused_derivative(QR, "qr(x) -> (q, r) { x: [q r] f(g, q, r)? }", "g", &words);
}

#[test]
fn a_table_of_another_file() {
    let table = "plar; |g, cx| exp constant;";
    let made =
        |path: &str| of_file(tokens(table), path, |table| Ok(Expansion::from(table))).expect("a table");
    let wrong = made("autograd/src/rules/polar.rs");
    assert_eq!(reported(table, &wrong.errors[0]).0, "plar");
    assert_eq!(wrong.errors[0].to_string(), "the table of polar.rs is called `polar`, not `plar`");
    assert!(wrong.code.to_string().starts_with("polar ;"), "it is expanded under the right name");
    assert!(made("rules/plar.rs").errors.is_empty() && made("").errors.is_empty());
}

#[test]
fn setters_are_for_structs_with_fields_that_have_names() {
    let of = |text: &str| setters::of_struct(&syn::parse_str(text).expect("a type"));
    let made = of("struct Options { #[setters(into)] gain: Gain, #[doc = \"Kept.\"] fan: Fan }")
        .unwrap()
        .to_string();
    assert!(made.contains("gain : impl :: std :: convert :: Into < Gain >"), "{made}");
    assert!(made.contains("# [doc = \"Kept.\"] pub fn fan (mut self , fan : Fan) -> Self"), "{made}");
    let text = "#[setters(of(Builder<Options>), at = held, own)] struct Options { fan: Fan }";
    let made = of(text).unwrap().to_string();
    for code in
        ["impl Builder < Options > {", "self . held . fan = fan", "pub fn new () -> Self", "self . fan = fan"]
    {
        assert!(made.contains(code), "{code}: {made}");
    }
    let text = "struct LinearConfig { #[doc = \" The input dim.\"] input: Named, \
        #[setters(default = input)] output: Named, dtype: DType, padding: Option<Extents>, \
        #[setters(of(OwnBuilder))] own: usize }";
    let made = of(text).unwrap().to_string();
    for code in [
        "# [doc = \" - `input`: The input dim\"]",
        "pub fn new (input : impl namegrad_core :: NewDim) -> namegrad_core :: Result < Self >",
        "let input = crate :: layers :: kept (crate :: dims :: named (layer , input) , & mut checked) ; let output = input ;",
        "let dtype = namegrad_core :: default_dtype () ;",
        "pub struct LinearBuilder { config : LinearConfig",
        "pub fn output (mut self , output : impl namegrad_core :: NewDim) -> Self",
        "padding : impl :: std :: convert :: Into < Extents >",
        "impl OwnBuilder { pub fn own (mut self , own : usize) -> Self { self . config . own = own ; self } }",
        "self . config . padding = :: std :: option :: Option :: Some (padding . into ())",
    ] {
        assert!(made.contains(code), "{code}: {made}");
    }
    let made = of("struct Options { #[setters(default = 1.0)] gain: f64, fan: Fan }").unwrap().to_string();
    assert!(made.contains("Options { gain : 1.0 , fan : Default :: default () , }"), "{made}");
    for (text, message) in [
        ("enum Options { A }", "options are a struct whose fields have names"),
        ("struct Options(f64);", "options are a struct whose fields have names"),
        (
            "struct Options { #[setters(from)] gain: f64 }",
            "expected `into`, `default = value`, `given`, `skip` or `of(Builder)`",
        ),
    ] {
        assert_eq!(of(text).unwrap_err().to_string(), message);
    }
}
