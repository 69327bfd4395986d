//! Writes a function for each call on `docs/operators.md`, which `main.rs` compiles and runs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let page = Path::new(&folder).join("../../docs/operators.md");
    println!("cargo::rerun-if-changed={}", page.display());
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=NAMEGRAD_OP");
    // If the tests are limited to an op, its calls are all that is compiled.
    let chosen = std::env::var("NAMEGRAD_OP").ok();
    let is_chosen = |op: &str| {
        chosen.as_deref().is_none_or(|chosen| op == chosen || op.strip_prefix("nn.") == Some(chosen))
    };
    let page = std::fs::read_to_string(page).expect("the page of operators");
    let (ops, others) = page.split_once("\n## ").expect("two tables");

    let mut calls = String::from(
        "/// The calls, each after the name of the op.\npub(crate) const CALLS: &[(&str, Call)] = &[\n",
    );
    for row in ops.lines().filter(|line| line.starts_with("| `")) {
        let columns: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
        let shown: Vec<&str> = columns[0].split("<br>").map(|call| call.trim_matches('`')).collect();
        let types = arguments(columns[1]);
        let op = op(shown[0]);
        for call in shown.iter().filter(|_| is_chosen(&op)) {
            writeln!(calls, "    (\"{op}\", |given| Some({})),", drawn(call, &types)).unwrap();
        }
    }
    calls += "];\n\n/// The calls of methods that are not ops. They are only compiled.\n\
              pub(crate) fn others(mut x: Tensor, y: Tensor, mean: Tensor) -> Result<()> {\n";
    for row in others.lines().filter(|line| line.starts_with("| `")) {
        let call = row.split(" | ").nth(1).and_then(|call| call.strip_prefix('`')?.strip_suffix('`'));
        if let Some(call) = call.filter(|_| chosen.is_none()) {
            writeln!(calls, "    {{ let (mut x, y) = (x.clone(), &y); {call}; }}").unwrap();
        }
    }
    calls += "    Ok(())\n}\n";
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    std::fs::write(Path::new(&out).join("calls.rs"), calls).expect("a file in the folder of the build");
}

/// The name in the registry of the op that is called: `nn.relu` for `F::relu(x)?`.
fn op(call: &str) -> String {
    let (path, _) = call.split_once('(').expect("a call");
    let module = ["fft", "complex"].iter().find(|module| path.starts_with(&format!("{module}::")));
    match (path.strip_prefix("F::"), module) {
        (Some(function), _) => format!("nn.{function}"),
        (None, Some(_)) => path.replace("::", "."),
        (None, None) => path.rsplit(['.', ':']).next().expect("a method").to_string(),
    }
}

/// The types of the arguments in a column such as `` `dim: Dim`, `k: usize` ``.
fn arguments(column: &str) -> BTreeMap<&str, &str> {
    let arguments = column.split('`').filter(|text| text.contains(": "));
    arguments.map(|argument| argument.split_once(": ").expect("a name and a type")).collect()
}

/// The call with values that are drawn for its names, as an expression of type `Result<()>`.
fn drawn(call: &str, types: &BTreeMap<&str, &str>) -> String {
    let (path, _) = call.split_once('(').expect("a call");
    let method = path.rsplit(['.', ':']).next().expect("a method");
    let mut values = String::new();
    for name in names(call) {
        let value = match types.get(name).copied() {
            None if method.ends_with('_') && path == format!("{name}.{method}") => {
                format!("&mut given.tensor(\"{name}\")?.clone()")
            }
            None => format!("given.tensor(\"{name}\")?"),
            Some("&[&Tensor]") => format!("&given.tensors(\"{name}\")?[..]"),
            Some("Shape" | "Expansion") => format!("&given.sizes(\"{name}\")?[..]"),
            Some("Indices") => format!("&given.indices(\"{name}\")?[..]"),
            Some("NewName" | "Text" | "&str") => format!("given.text(\"{name}\")?"),
            Some("NewNames") => format!("&given.texts(\"{name}\")?[..]"),
            Some(ty) => {
                let ty = match ty {
                    "Reduced" | "Matrix" => "Dims",
                    "Place" => "isize",
                    "Cast" => "DType",
                    other => other,
                };
                format!("given.arg::<{ty}>(\"{name}\")?")
            }
        };
        write!(values, "let {name} = {value}; ").unwrap();
    }
    format!("{{ {values}(|| -> Result<()> {{ {call}; Ok(()) }})() }}")
}

/// The names of values in a call: its words that are neither types nor called.
fn names(call: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let letter = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = call;
    let mut before = ' ';
    while let Some(start) = rest.find(letter) {
        before = rest[..start].chars().next_back().unwrap_or(before);
        let length = rest[start..].find(|c| !letter(c)).unwrap_or(rest.len() - start);
        let word = &rest[start..start + length];
        rest = &rest[start + length..];
        let called = rest.starts_with('(') || rest.starts_with("::");
        if !called && before != '.' && word.starts_with(char::is_lowercase) && !found.contains(&word) {
            found.push(word);
        }
        before = word.chars().next_back().unwrap_or(' ');
    }
    found
}
