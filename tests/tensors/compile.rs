//! The compiler's words for common mistakes: short, with the repair where the library can say it. The
//! programs are compiled against the library that this test is linked with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// A program: the code of its `main`, the code of the error that it has, and what the compiler says of it. A
/// program without one compiles.
struct Program {
    code: &'static str,
    error: &'static str,
    says: &'static [&'static str],
}

/// Enough for the place of the mistake, the repair, and the line that requires it.
const MOST_LINES: usize = 28;

const fn program(code: &'static str, error: &'static str, says: &'static [&'static str]) -> Program {
    Program { code, error, says }
}

const ONE: &str = "aborting due to 1 previous error";
const BUILT: &str = "is not built yet";

const MODEL: &str = r#"let model = Linear::new(("in", 3), ("out", 2))?;
    let x = Tensor::ones([("N", 2), ("in", 3)])?;
"#;

const PROGRAMS: &[Program] = &[
    program(r#"x.unflatten("in", [("heads", x.size("N")?), ("width", -1)])?;"#, "E0600", &["usize::MAX"]),
    program(r#"x.unflatten("in", [("heads", x.size("N")?), ("width", usize::MAX)])?;"#, "", &[]),
    program(r#"x.unflatten("in", (("heads", x.size("N")?), ("width", -1)))?;"#, "", &[]),
    program("x.reshape((x.size(\"N\")?, -1))?; x.reshape([3_u64, 2])?;", "", &[]),
    // Nothing of the library's is printed for a wrong number of arguments but the row.
    program(
        "x.sum(\"N\", SumOptions::new().dtype(DType::F64))?;",
        "E0061",
        &["dim: Reduced = .., dtype: Cast"],
    ),
    program("F::cross_entropy(&x, &x, \"in\", CrossEntropyOptions::new())?;", "E0061", &["cross_entropy ("]),
    program("x.sum()?;", "E0061", &["sum (x; dim: Reduced = .."]),
    program("x.softmax()?;", "E0061", &["x.softmax(/* dim */)"]),
    program("x.to(DType::I64)?.one_hot(10)?;", "E0061", &["num_classes: isize = -1"]),
    program("Linear::new((\"in\", 3), (\"out\", 2))?.bias(false);", "E0061", &["bias: Option<Parameter>"]),
    program(
        "BatchNorm::new((\"C\", 3)).eps(1e-3);",
        "E0599",
        &["is made already, and options are set before that", "start with `builder` in place of `new`"],
    ),
    program("CrossEntropyLoss::new(\"C\").label_smoothing(0.1);", "E0599", &["start with `builder`"]),
    program(
        "let mut adam = AdamW::builder(model.parameters()).lr(1e-3); adam.step()?;",
        "E0599",
        &["is not built yet", "end the builder with `.build()?`"],
    ),
    program("AdamW::builder(model.parameters()).zero_grad();", "E0277", &[BUILT, "end the builder"]),
    program("let o = Sgd::builder(model.parameters()); o.state_dict().save(\"o\")?;", "E0277", &[BUILT, ONE]),
    program(
        "let o = Sgd::builder(model.parameters()).build()?.state_dict(); Sgd::builder(model.parameters()).load_state_dict(&o)?;",
        "E0277",
        &[BUILT, ONE],
    ),
    program("let mut o = Sgd::builder(model.parameters()); o.set_lr(0.1)?;", "E0599", &[BUILT]),
    program(
        "let mut o = Sgd::builder(model.parameters()); o.step_with(&mut || model.forward(&x))?;",
        "E0599",
        &[BUILT],
    ),
    program("Linear::builder(3, 2).forward(&x)?;", "E0599", &["`LinearBuilder` is not built yet"]),
    program(
        "let mut adam = Adam::new(model.parameters())?; adam.weight_decay(0.1);",
        "E0599",
        &["is made already, and options are set before that"],
    ),
    program(
        "Conv2d::builder((\"C\", 3), (\"D\", 4), [(\"H\", 3), (\"W\", 3)]).forward(&x)?;",
        "E0599",
        &[BUILT],
    ),
    program("Relu.eps(1.0);", "E0599", &["no method named `eps` found"]),
    // A builder is named for builders only.
    program(
        "let linear = Linear::new((\"in\", 3), (\"out\", 2)); linear.forward(&x)?;",
        "E0599",
        &["no method named `forward` found", "use the `?` operator"],
    ),
    program("Some(model).forward(&x)?;", "E0599", &["no method named `forward` found for enum `Option<T>`"]),
    program(
        "let mut rate = 0.5_f64; rate.step();",
        "E0599",
        &["no method named `step` found for type `f64`"],
    ),
    program(
        "#[dims(pair = \"N\")] fn both(pair: (Tensor, Tensor)) -> Result<()> { drop(pair); Ok(()) }
         both((x.clone(), x))?;",
        "E0277",
        &["`#[dims(..)]` cannot check the dims of `(namegrad::prelude::Tensor, namegrad::prelude::Tensor)`"],
    ),
    program(
        "#[dims(x = \"N=3\", y = \"N=4\")] fn both(x: &Tensor, y: &Tensor) -> Result<Tensor> { x.add(y) }
         both(&x, &x)?;",
        "",
        &["`y`: the dim `N` has size 4, and size 3 in `x`", ONE],
    ),
    program("x.forward(&x)?;", "E0599", &["no method named `forward` found for struct"]),
    program("x.stride(\"N\")?;", "E0599", &["no method named `stride` found", "`strides`"]),
    program("struct Net; Net.forward(&x)?;", "E0599", &["no method named `forward` found for struct"]),
    program(
        "x.add(x.sum(\"N\"))?;",
        "E0277",
        &["cannot be the operand of a tensor", "must be unwrapped first, with `?`"],
    ),
    program("F::linear(&x, &x.t())?;", "E0277", &["is not a tensor", "must be unwrapped first, with `?`"]),
    program("model.forward(x)?;", "E0308", &["model.forward(&x)?;"]),
    program("x.view(-1, 10)?;", "E0061", &["view (x; size: Shape)"]),
    program("x.view(\"C\")?;", "E0277", &["is not a list of sizes", "expected a list, such as `[2, 3]`"]),
    program(
        "x.sum((\"N\", \"in\"))?;",
        "E0277",
        &["does not say which dims", "several dims are a list: `[\"H\", \"W\"]`"],
    ),
    program(
        "x.softmax(SoftmaxOptions::new())?;",
        "E0277",
        &["does not say which dim", "options go to the form of the method that ends in `_with`"],
    ),
    program("x.sum(1.5)?;", "E0277", &["`{float}` does not say which dims"]),
    program(
        "Linear::new(\"in\", 4)?;",
        "E0277",
        &["`&str` is not a new dim", "a dim with a name is a pair: `(\"C\", 3)`"],
    ),
    program(
        "#[derive(Module)] struct Scaled { scale: Option<Tensor> }",
        "",
        &["a tensor of a module is a `Parameter`, which is trained, or a `Buffer`"],
    ),
    program(
        "#[derive(Module)] struct Net { linear: Linear, training: bool }",
        "",
        &[
            "`train()` and `eval()` of the model do not reach a `bool`: its type is `namegrad::nn::Training`",
            ONE,
        ],
    ),
    // The uses of a model with a wrong field are not errors as well.
    program(
        "#[derive(Module)] struct Net { linear: Linear, scale: Tensor }
         let net = Net { linear: model, scale: x };
         Adam::new(net.parameters())?; println!(\"{net}\"); net.train();",
        "",
        &["a tensor of a module is a `Parameter`, which is trained, or a `Buffer`", ONE],
    ),
    program(
        "#[derive(Module)] enum Net { Dense { linear: Linear, #[module(no)] rate: f64 } }
         Net::Dense { linear: model, rate: 0.5 }.parameters();",
        "",
        &["expected `skip`, `flatten` or `name = \"..\"` on a field", ONE],
    ),
    program(
        "#[derive(Module)] struct Heads { of: std::collections::HashMap<String, Linear> }",
        "",
        &["use a `BTreeMap`, or put `#[module(skip)]` on the field"],
    ),
    program(
        "struct Own; #[derive(Module)] struct Model { own: Own }",
        "E0277",
        &["Own` cannot be a field of a module", "add #[derive(Module)] to your own type"],
    ),
    program(
        "struct Own; Own.parameters();",
        "E0599",
        &["Own` is not a module", "add #[derive(Module)] to it"],
    ),
    program(
        "#[derive(Module)] enum Block { Dense(Linear), Kept { scale: Parameter }, Off }
         AdamW::builder(Block::Dense(model).parameters()).build()?;",
        "",
        &[],
    ),
    program(
        "AdamW::builder(&model.parameters()).build()?; Sgd::builder([model.weight()]).build()?;",
        "",
        &[],
    ),
    program(
        "Sgd::builder(&model).build()?;",
        "E0277",
        &["`&namegrad::prelude::Linear` is not a list of parameters", "expected `model.parameters()`"],
    ),
    program("let v = x.item()?; println!(\"{v}\");", "E0277", &["say the type, as in `item::<f32>()`"]),
    program(
        "Loader::new(x, 32)?;",
        "E0277",
        &["is not a source of samples", "`TensorDataset::new((x, y))?`"],
    ),
];

/// The newest build of the library beside this test.
fn library() -> (PathBuf, PathBuf) {
    let test = std::env::current_exe().expect("the path of this test");
    let folder = test.parent().expect("the folder of this test").to_path_buf();
    let time =
        |path: &Path| path.metadata().and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let builds =
        fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.starts_with("libnamegrad-") && name.ends_with(".rlib")
        });
    let newest = builds.max_by_key(|path| time(path)).expect("the library is built");
    (newest, folder)
}

/// What the compiler prints about a program.
fn compiled(at: usize, program: &Program, library: &(PathBuf, PathBuf)) -> String {
    let folder = std::env::temp_dir();
    let [source, made] = ["rs", "rmeta"]
        .map(|extension| folder.join(format!("namegrad-compile-{}-{at}.{extension}", std::process::id())));
    let text = format!(
        "#![allow(unused)]\nuse namegrad::prelude::*;\nfn main() -> Result<()> {{\n    {MODEL}\n    {}\n    Ok(())\n}}\n",
        program.code
    );
    fs::write(&source, text).expect("a file in the folder for temporary files");
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let (extern_, search) =
        (format!("namegrad={}", library.0.display()), format!("dependency={}", library.1.display()));
    let output = Command::new(rustc)
        .args([
            "--edition=2024",
            "--emit=metadata",
            "--color=never",
            "--extern",
            &extern_,
            "-L",
            &search,
            "-o",
        ])
        .args([&made, &source])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")) // sources have paths from here
        .output()
        .expect("the compiler runs");
    for file in [source, made] {
        let _ = fs::remove_file(file);
    }
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_compiler_says_the_repair() {
    let library = library();
    let mut wrong = Vec::new();
    for (at, program) in PROGRAMS.iter().enumerate() {
        let output = compiled(at, program, &library);
        let head =
            if program.error.is_empty() { "error: ".into() } else { format!("error[{}]", program.error) };
        let is_expected = match program.says.is_empty() {
            true => output.is_empty(),
            false => output.starts_with(&head) && program.says.iter().all(|text| output.contains(text)),
        };
        // One error is as long as it may be; the first one has the repair.
        let first = output.lines().skip(1).take_while(|line| !line.starts_with("error")).count();
        if !is_expected || first > MOST_LINES || output.contains("originates in the macro") {
            wrong.push(format!(
                "{}\n{first} lines, expected {head} and {:?}\n{output}",
                program.code, program.says
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
