//! Repairs in messages are programs. Each case makes a call that fails, and programs that follow its repair:
//! the code that the message prints must be in one of them, they run, and they assert what the message
//! promises. A repair in the sources that no case follows fails the test.

mod layers;
mod names;
mod ops;
mod sources;
mod tape;
mod training;

use namegrad::prelude::*;

/// What the cases have found.
#[derive(Default)]
struct Advice {
    /// The repairs that were followed.
    printed: Vec<String>,
    /// The cases that failed.
    wrong: Vec<String>,
}

impl Advice {
    /// Compares the repair of an error with the code of the programs that follow it.
    fn compare(&mut self, error: &Error, programs: &[&str]) {
        let place = error.location();
        let mut fail = |why: &str| self.wrong.push(format!("{place}: {why}\n{error}"));
        let Some(repair) = error.repair() else { return fail("there is no repair") };
        for program in programs.iter().filter(|program| !program.contains("assert")) {
            fail(&format!("nothing is asserted in {program}"));
        }
        let code = code_of(repair);
        if code.is_empty() {
            fail("the repair has no code");
        }
        for piece in code {
            if !programs.iter().any(|program| has(program, &piece)) {
                fail(&format!("no program has {piece}"));
            }
        }
        self.printed.push(repair.to_string());
    }

    /// Notes a program that fails or panics.
    fn ran(&mut self, error: &Error, result: std::thread::Result<Result<()>>) {
        match result {
            Ok(Ok(())) => {}
            Ok(Err(second)) => self.wrong.push(format!("following a repair fails: {second}\nof {error}")),
            Err(_) => self.wrong.push(format!("a program that follows a repair panics: {error}")),
        }
    }
}

/// A call that fails, and the programs that follow its repair: `follow!(advice, x.sum("c") => { .. } { .. })`.
macro_rules! follow {
    ($advice:ident, $wrong:expr => $({ $($code:tt)* })+) => {
        match $wrong {
            Ok(_) => $advice.wrong.push(format!("the call should fail: {}", stringify!($wrong))),
            Err(error) => {
                let error: Error = error;
                $advice.compare(&error, &[$(stringify!($($code)*)),+]);
                $({
                    #[allow(redundant_semicolons)]
                    let program = || -> Result<()> {
                        $($code)*;
                        Ok(())
                    };
                    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(program));
                    $advice.ran(&error, result);
                })+
            }
        }
    };
}
use follow;

/// The code in a repair: words join the pieces, and say when each is right.
fn code_of(repair: &str) -> Vec<String> {
    const JOINING: [&str; 17] = [
        "or", "for", "if", "which", "where", "as", "to", "with", "in", "before", "first", "without", "and",
        "after", "at", "until", "on",
    ];
    let (mut pieces, mut start, mut depth, mut is_text) = (Vec::new(), 0, 0, false);
    let bytes = repair.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'"' if at == 0 || bytes[at - 1] != b'\\' => is_text = !is_text,
            _ if is_text => {}
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b' ' if depth == 0 => {
                let word = repair[at + 1..].split([' ', ',']).next().unwrap_or_default();
                if matches!(bytes[at - 1], b',' | b';' | b':') || JOINING.contains(&word) {
                    pieces.push(&repair[start..at]);
                    start = at + 1;
                }
            }
            _ => {}
        }
    }
    pieces.push(&repair[start..]);
    let words = |piece: &str| {
        JOINING
            .iter()
            .find_map(|word| piece.strip_prefix(word)?.strip_prefix(' '))
            .unwrap_or(piece)
            .to_string()
    };
    let pieces = pieces.into_iter().map(|piece| piece.trim_end_matches([',', ';', ':']));
    let trimmed = pieces.map(|piece| match piece.starts_with("if ") && piece.ends_with('}') {
        true => piece.to_string(),
        false => words(piece),
    });
    let is_code = |piece: &String| {
        let is_one =
            !has_spaces(piece) || ["let ", "if ", "#[", "torch"].iter().any(|start| piece.starts_with(start));
        let is_number = piece.parse::<f64>().is_ok() && piece.contains(|c: char| c.is_ascii_digit());
        let has_signs = piece.contains(['(', '"', '?', '[']) || piece.contains("::") || piece.contains(" = ");
        is_number || piece == "None" || has_signs && (is_one || piece.contains(" = "))
    };
    trimmed.filter(is_code).collect()
}

/// Whether there is a space outside of brackets and texts.
fn has_spaces(piece: &str) -> bool {
    let (mut depth, mut is_text) = (0, false);
    piece.bytes().any(|byte| {
        match byte {
            b'"' => is_text = !is_text,
            b'(' | b'[' | b'{' if !is_text => depth += 1,
            b')' | b']' | b'}' if !is_text => depth -= 1,
            _ => {}
        }
        byte == b' ' && depth == 0 && !is_text
    })
}

/// Whether a program has a piece of code, whose `..` can be anything.
fn has(program: &str, piece: &str) -> bool {
    let dense = |text: &str| text.split_whitespace().collect::<String>();
    let (program, piece) = (dense(program), dense(piece));
    let mut rest = &program[..];
    piece.split("..").all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

#[test]
fn every_repair_is_followed() {
    let mut advice = Advice::default();
    for cases in [ops::follow, names::follow, tape::follow, layers::follow, training::follow] {
        if let Err(error) = cases(&mut advice) {
            advice.wrong.push(format!("a call between the cases fails: {error}"));
        }
    }
    let mut wrong = std::mem::take(&mut advice.wrong);
    wrong.extend(sources::not_followed(&advice.printed));
    assert!(wrong.is_empty(), "{} repairs:\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn code_and_words_of_a_repair_are_told_apart() {
    let code = |repair| code_of(repair).join(" | ");
    assert_eq!(
        code("x.rename([(\"A\", \"B\")])?, if both names mean the same"),
        "x.rename([(\"A\", \"B\")])?"
    );
    assert_eq!(code("x.any(..)? or x.all(..)?"), "x.any(..)? | x.all(..)?");
    assert_eq!(code("let x = x.detach(); before it"), "let x = x.detach()");
    assert_eq!(
        code("if x.numel() > 0 { .. }, or Reduction::Sum in the options"),
        "if x.numel() > 0 { .. } | Reduction::Sum"
    );
    assert_eq!(code("-1 for the last dim, 0 for the first"), "-1 | 0");
    assert!(has("let y = x . sum ( [\"A\"] ) ?", "x.sum(..)?") && !has("x.sum(1)", "x.mean(1)"));
}
