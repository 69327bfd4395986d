//! Mistakes in signatures: the message, and the token at which it is reported.

use super::checked;
use proc_macro2::TokenStream as Tokens;

const FUNCTION: &str = "fn area(x: &Tensor, mut y: Tensor) -> Result<Tensor> { x.mul(y) }";

fn tokens(text: &str) -> Tokens {
    text.parse().expect("tokens of Rust")
}

/// Expects that the attribute is rejected at a token of `text`, one of the two, with these words.
#[track_caller]
fn refused(notation: &str, function: &str, text: &str, at: &str, words: &str) {
    let error = checked(tokens(notation), tokens(function)).expect_err("there is a mistake");
    let (start, end) = (error.span().start(), error.span().end());
    let found: String = text.chars().skip(start.column).take(end.column - start.column).collect();
    assert_eq!(found, at, "reported at another token: {error}");
    assert!(error.to_string().contains(words), "`{words}` is not in: {error}");
}

#[track_caller]
fn notation(notation: &str, at: &str, words: &str) {
    refused(notation, FUNCTION, notation, at, words);
}

#[track_caller]
fn function(function: &str, at: &str, words: &str) {
    refused(r#"x = "N C""#, function, function, at, words);
}

#[test]
fn wrong_dims() {
    notation(r#"x = "N 1C""#, r#""N 1C""#, "`x`: `1C` is not the name of a dim");
    notation(r#"x = "N", y = "N, C""#, r#""N, C""#, "`y`: `N,` is not the name of a dim");
    notation(r#"x = "N größe""#, r#""N größe""#, "`größe` is not the name");
    notation(r#"x = "N C N""#, r#""N C N""#, "the dim `N` occurs twice");
    notation(r#"x = "... N ...""#, r#""... N ...""#, "`...` occurs twice");
    notation(r#"x = "C=3? C=c""#, r#""C=3? C=c""#, "the size in `C=c` is not a number");
    notation(r#"x = "C=-3""#, r#""C=-3""#, "the size in `C=-3` is not a number");
    notation(r#"x = "=3""#, r#""=3""#, "`` is not the name");
    notation(r#"x = "[N C""#, r#""[N C""#, "between `[` and `]`");
    notation(r#"x = "N=3", y = "N=4""#, r#""N=4""#, "`y`: the dim `N` has size 4, and size 3 in `x`");
    notation(r#"x = "N C]""#, r#""N C]""#, "between `[` and `]`");
}

#[test]
fn wrong_places() {
    notation(r#"z = "N""#, "z", "`area` has no argument `z`; it has `x`, `y`, and `returns` is its result");
    notation(r#"x = "N", x = "C""#, "x", "the dims of `x` are given twice");
    notation(r#"x = N"#, "N", "expected the dims as a text");
    notation(r#"x "N""#, r#""N""#, "expected `=`");
    notation(r#"x = "N" y = "C""#, "y", "expected `,`");
    notation(r#"self.weight = "N""#, "self", "`area` has no argument `self`");
    notation("crate = namegrad", "", "say the dims of an argument");
    let twice = checked(tokens(r#"x = "N", x.a = "N", returns = "N", returns.0 = "N""#), tokens(FUNCTION));
    assert!(twice.is_ok(), "fields are places of their own");
}

#[test]
fn wrong_functions() {
    function("fn f(x: &Tensor) { }", "f", "must return a `Result`");
    function("pub async fn f(x: &Tensor) -> Result<()> { }", "async", "does not support `async fn`");
    function("const fn f(x: &Tensor) -> Result<()> { }", "const", "does not support `const fn`");
    function("fn f(x: &Tensor) -> Result<()>;", ";", "needs a function with a body");
    function("struct S { x: Tensor }", "struct", "is for functions and methods");
    function("impl S { }", "impl", "is for functions and methods");
}

#[test]
fn arguments_of_any_pattern() {
    let f = "#[inline] pub(crate) unsafe extern \"C\" fn f<'a, T: Into<Vec<u8>>, const N: usize>(
        &'a self, (x, mut y): (HashMap<u8, Tensor>, Tensor), Pair { z, .. }: a::Pair<'a, T>, r#type: &Tensor,
    ) -> Result<()> where T: Clone { Ok(()) }";
    let all = r#"x = "N", y = "N", z = "N", self.w = "N", r#type = "N", crate = other::name"#;
    let made = checked(tokens(all), tokens(f)).expect("no mistake").to_string();
    assert!(made.contains(":: track_caller") || made.contains("track_caller"));
    assert!(made.contains("other :: name :: core"));
    let tracked =
        checked(tokens(r#"x = "N""#), tokens(&format!("#[track_caller] {FUNCTION}"))).expect("fine");
    assert_eq!(tracked.to_string().matches("track_caller").count(), 1);
}

/// After a mistake the function is still there, so that its calls are no further errors.
#[test]
fn a_function_with_a_mistake_stays() {
    let made = super::expand(tokens(r#"x = "1""#), tokens(FUNCTION)).to_string();
    assert!(made.contains("compile_error") && made.contains("fn area"));
}
