//! The forms of rows, and the errors for invalid rows.

use crate::derivative::How;
use crate::row::parse::parse_row;
use crate::row::{OpRow, TensorKind};
use crate::{expand_functional, expand_ops};
use syn::parse::{Parse, ParseStream};
use syn::{Result, parse_str};

fn row(text: &str) -> OpRow {
    let parsed = parse_str(&format!("/// Doc.\n{text}"));
    let Whole(row) = parsed.unwrap_or_else(|error| panic!("{text}: {error}"));
    row
}

/// A row without errors.
struct Whole(OpRow);

impl Parse for Whole {
    fn parse(input: ParseStream<'_>) -> Result<Whole> {
        let mut errors = Vec::new();
        let (row, _) = parse_row(input, &mut errors)?;
        errors.pop().map_or(Ok(Whole(row)), Err)
    }
}

/// The error for an invalid row.
fn refused(text: &str) -> String {
    parse_str::<Whole>(&format!("/// Doc.\n{text}"))
        .err()
        .unwrap_or_else(|| panic!("{text}: no error"))
        .to_string()
}

fn assert_refused(text: &str, part: &str) {
    let error = refused(text);
    assert!(error.contains(part), "{text}: no {part:?} in {error:?}");
}

#[test]
fn arguments_before_and_behind_the_tensors() {
    let row = row("einsum (equation: Equation; [operands]; how: How = How::Plain) names unifies;");
    let leads: Vec<bool> = row.args.iter().map(|arg| arg.leads).collect();
    assert_eq!(leads, [true, false]);
    assert!(row.tensors[0].kind == TensorKind::List && !row.is_method());
    assert!(!row.args[0].is_option() && row.args[1].is_option());
    assert_refused("f (x: Image) names keeps;", "`Image` is not a kind of tensor");
    assert_refused("f (x: Image, y) names keeps;", "expected `:` and the type of `y`");
}

#[test]
fn an_operand_first_is_no_method() {
    assert!(!row("normal (mean: Operand, std: Operand) names unifies;").is_method());
    assert_refused("f (x: Operand) names keeps;", "the first tensor must be one");
    assert_refused("f (mask: bool) names keeps;", "the first tensor must be one");
    assert_refused("f f_ (mask: bool, x) { float: x }", "an op on a mask has no in-place form");
    assert!(row("f (mask: bool, x) { float: x }").is_method());
    let table = "unary; /// Doc.\nf (x: Operand, y) names unifies;".parse().expect("tokens");
    assert_eq!(expand_ops(table).expect("a table").errors.len(), 1);
}

#[test]
fn defaults_that_are_options_and_that_are_not() {
    let row = row("normal_ (mut x; mean: f64 or 0.0, std: f64 = 1.0, dim: Dim = -1) names keeps;");
    let options: Vec<bool> = row.args.iter().map(|arg| arg.is_option()).collect();
    assert_eq!(options, [false, true, false]);
    assert!(row.args.iter().all(|arg| arg.default.is_some()));
    assert_refused("f (x; p: f64 or true) names keeps;", "the default of `p` must be of type f64");
    assert_refused("f (x; p: f64 1.0) names keeps;", "expected `of TENSOR`, `= default`, `or default`");
}

#[test]
fn ops_in_place_only() {
    let row = row("fill_ (mut x, value: Operand of f64) names unifies;");
    assert!(row.is_in_place_only() && row.writes() && row.tensors[1].exact);
    assert_eq!(row.options_name(), "FillOptions");
    assert_eq!(row.with_name(false), "fill_with_");
    assert_refused("fill_ (x) names keeps;", "takes a `mut` tensor first");
    assert_refused("fill_ (mut x) -> [parts] names keeps;", "has no outputs besides what it writes to");
    assert_refused("f (mut x, value: Operand of f32) names keeps;", "expected `Operand of f64`");
    let both = self::row("put put_ (mut x, index) names unifies;");
    assert!(!both.is_in_place_only() && both.writes());
    assert_eq!(
        [both.with_name(false), both.with_name(true)].map(|name| name.to_string()),
        ["put_with", "put_with_"]
    );
}

#[test]
fn gradients_of_composed_ops() {
    let how = |text: &str| crate::composed::how(&row(text));
    assert!(matches!(how("f (x) names keeps;"), How::Composed));
    assert!(matches!(how("f (x) names keeps constant;"), How::Constant));
    assert!(matches!(how("f (x) names keeps refused;"), How::Refused));
    assert!(matches!(how("f (x) -> bool names keeps;"), How::Constant));
    assert_refused("f (x) names keeps composed;", "expected `-> ..`, `on ..`");
    // The derivatives of a table in core are elsewhere.
    let table = "unary; /// Doc.\nf (x) names keeps constant;".parse().expect("tokens");
    assert_eq!(expand_ops(table).expect("a table").errors.len(), 1);
}

#[test]
fn functions_write_to_nothing() {
    for text in ["f f_ (x) names keeps;", "f (mut x) names keeps;", "f (x) { float: x }"] {
        let table = format!("loss; /// Doc.\n{text}").parse().expect("tokens");
        assert_eq!(expand_functional(table).expect("a table").errors.len(), 1, "{text}");
    }
}

#[test]
fn the_heading_of_a_table() {
    let table = "unary;\n//! # By element\n/// Doc.\nexp (x) { float: x.exp() }";
    let made = expand_ops(table.parse().unwrap()).unwrap();
    assert!(made.errors.is_empty());
    let code = made.code.to_string();
    assert!(code.contains("# [doc = \" # By element\"] impl crate :: NamedTensor"), "{code}");
}

#[test]
fn layers_of_functions() {
    let with = |layers: &str| format!("f (x, w?; p: f64, eps: f64 = 1e-5) names unifies {layers};");
    let two = row(&with("layer F (eps) layer Fixed (eps = 1.0, p if check)"));
    assert_eq!(two.layers.iter().map(|layer| layer.settings.len()).collect::<Vec<_>>(), [1, 2]);
    assert_refused(&with("layer F (epz)"), "layer `F`: `epz` is not an argument of `f`; did you mean `eps`");
    assert_refused(&with("layer"), "expected the name of the layer");
    assert_refused(&with("layer F (eps 1.0)"), "expected `= value`, `if CHECK`, `,` or `)`");
    assert_refused(&with("layer F (eps = true)"), "the default of `eps` must be of type f64");
    let table = "math; /// Doc.\nf ([xs]) names unifies layer F;".parse().expect("tokens");
    assert_eq!(expand_functional(table).expect("a table").errors.len(), 1);
    let op = "unary; /// Doc.\nf (x) names keeps layer F;".parse().expect("tokens");
    assert_eq!(expand_ops(op).expect("a table").errors.len(), 1);
}

#[test]
fn functions_over_other_numbers_of_dims() {
    let table =
        "pool; /// Doc.\npool1d /// Two.\npool2d (x; size: usize) names keeps;".parse().expect("tokens");
    let expansion = expand_functional(table).expect("a table");
    assert!(expansion.errors.is_empty());
    let code = expansion.code.to_string();
    assert!(code.contains("kernels :: pool ((\"pool2d\" , 2usize) ,"), "{code}");
    assert_refused("pool1d /// Doc.\npool2d names keeps;", "expected `(` and its tensors");
}

#[test]
fn the_rule_of_names_in_words() {
    let text = |text: &str| row(text).rule_text();
    assert_eq!(text("exp (x);"), "keeps input names");
    assert_eq!(text("sum (x; dim: Reduced = ..);"), "removes dimensions");
    assert_eq!(text("add (x, other) { float: x }"), "unifies names from inputs");
    assert_eq!(text("cat ([tensors]; dim: Dim) names unifies;"), "unifies names from inputs");
    assert_eq!(
        text("unsqueeze (x; dim: Dim, name: NewName = None);"),
        "keeps input names; the new dim is called `name` or unnamed"
    );
    assert_eq!(
        text("scatter (x, index, source; dim: Dim) names keeps, index: beside dim, source: beside dim;"),
        "keeps input names; `index` and `source` match beside `dim`"
    );
    assert_eq!(
        text("qr (x; name: NewName = None) -> (q, r) names called name, r: removes;"),
        "gives a dim called `name`, or an unnamed one; `r` removes dimensions"
    );
    assert_eq!(
        text("embedding (x, weight) names keeps, weight: renames last;"),
        "keeps input names; `weight` gives its name to the last dim"
    );
}
