//! Calls of ops by name: look-up, errors, and that every entry can be called.

use namegrad::core::ops::ArgInfo;
use namegrad::ops::{self, Given, Op, OpInfo, TensorKind};
use namegrad::prelude::*;
use std::path::Path;

fn x() -> Result<Tensor> {
    Tensor::new([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])?.refine_names(["N", "C"])
}

/// The text of an error of kind `Value`.
fn refused<T: std::fmt::Debug>(result: Result<T>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value, "{error}");
    error.to_string()
}

fn assert_has(text: &str, part: &str) {
    assert!(text.contains(part), "no {part:?} in: {text}");
}

#[test]
fn names_are_found() -> Result<()> {
    assert_has(&refused(ops::call("sofmax", &[], &[])), "no op is called `sofmax`; did you mean `softmax`?");
    for (name, own) in [
        ("clip", "clamp"),
        ("special.expit", "sigmoid"),
        ("linalg.cross", "cross"),
        ("swapdims", "transpose"),
        ("nn.relu", "relu"),
        ("nn.gelu", "nn.gelu"),
        ("gelu", "gelu"),
        ("cross_entropy", "nn.cross_entropy"),
        ("uniform_", "uniform_"),
    ] {
        assert_eq!(ops::find(name)?.info.name, own, "{name}");
    }
    // This function in PyTorch differs from the method with the same name.
    assert_eq!(ops::find("unfold")?.info.name, "unfold");
    assert_eq!(ops::find("nn.unfold")?.info.name, "nn.unfold");
    assert_eq!(ops::find_in_place("add_").unwrap().info.name, "add");
    assert_eq!(ops::find_in_place("fill_").unwrap().info.name, "fill");
    assert!(ops::find_in_place("sum_").is_none());
    Ok(())
}

#[test]
fn no_name_stands_twice() {
    let mut names: Vec<&str> = ops::all().map(|op| op.info.name).collect();
    names.sort_unstable();
    let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "{twice:?}");
    for op in ops::all() {
        let info = op.info;
        assert_eq!(info.in_place.is_some(), op.call_in_place.is_some(), "{}", info.name);
        assert!(!info.doc.is_empty() && !info.rule.is_empty(), "{}", info.name);
    }
}

#[test]
fn arguments_are_checked() -> Result<()> {
    let x = x()?;
    let call =
        |name: &str, tensors: &[&Tensor], args: &[(&str, Given<'_>)]| refused(ops::call(name, tensors, args));
    assert_has(&call("softmax", &[&x], &[]), "softmax: the argument `dim` is missing");
    assert_has(&call("softmax", &[], &[("dim", 0.into())]), "the tensor `x` is missing");
    assert_has(&call("softmax", &[&x, &x], &[("dim", 0.into())]), "takes 1 tensor, got 2");
    assert_has(&call("softmax", &[&x], &[("dims", 0.into())]), "no argument `dims`; did you mean `dim`?");
    assert_has(&call("diag", &[&x], &[("keepdim", true.into())]), "no argument `keepdim`");
    let twice = [("dim", 0.into()), ("dim", 1.into())];
    assert_has(&call("softmax", &[&x], &twice), "the argument `dim` is given twice");
    assert_has(&call("softmax", &[&x], &[("dim", 0.5.into())]), "`dim` must be a dim, got the float 0.5");
    assert_has(&call("softmax", &[&x], &[("dim", (&x).into())]), "`dim` must be a dim, got a tensor");
    assert_has(
        &call("sum", &[&x], &[("keepdim", 1.into())]),
        "`keepdim` must be true or false, got the integer 1",
    );
    assert_has(&call("mm", &[&x], &[("other", 2.into())]), "`other` must be a tensor, got the integer 2");
    assert_has(
        &call("split", &[&x], &[("split_size", "N".into())]),
        "`split_size` must be a size or a list of sizes, got",
    );
    let reduction = [("reduction", "average".into())];
    let words = "`reduction` must be one of mean, sum, none, got the text \"average\"";
    assert_has(&call("nn.mse_loss", &[&x, &x], &reduction), words);
    assert_has(&call("sum", &[&x], &[("dim", 0.5.into())]), "`dim` must be a dim or a list of dims, got");
    assert_has(
        &call("nan_to_num", &[&x], &[("posinf", "N".into())]),
        "`posinf` must be a number or nothing, got",
    );
    assert_has(&call("sum", &[&x], &[("accuracy", 1.into())]), "there are x, dim, dtype, keepdim");
    assert_has(&call("mul", &[&x, &x], &[("other", (&x).into())]), "`other` is given twice");
    assert_has(&call("bincount", &[&x, &x, &x], &[]), "takes 1 or 2 tensors, got 3");
    assert_has(&call("layer_norm", &[&x, &x, &x, &x], &[]), "takes 1 to 3 tensors, got 4");
    assert_has(&call("nn.relu", &[&x], &[("slope", 1.into())]), "no argument `slope`");
    Ok(())
}

#[test]
fn errors_are_those_of_the_caller() -> Result<()> {
    let x = x()?;
    for (name, args) in [("softmax", vec![("dim", "K".into())]), ("chunk", vec![("chunks", 0.into())])] {
        let (error, line) = (ops::call(name, &[&x], &args).unwrap_err(), line!());
        assert_eq!((error.location().file(), error.location().line()), (file!(), line), "{error}");
    }
    let (error, line) = (ops::call("softmax", &[&x], &[("dims", 0.into())]).unwrap_err(), line!());
    assert_eq!((error.location().file(), error.location().line()), (file!(), line), "{error}");
    Ok(())
}

#[test]
fn numbers_and_tensors_by_name() -> Result<()> {
    let x = x()?;
    let call = |name: &str, tensors: &[&Tensor], args: &[(&str, Given<'_>)]| -> Result<Tensor> {
        Ok(ops::call(name, tensors, args)?.remove(0))
    };
    assert!(call("mul", &[&x], &[("other", 2.into())])?.equal(&x.mul(2)?)?);
    assert!(call("sub", &[&x], &[("self", 1.0.into())])?.equal(&x.neg()?.add(1.0)?)?);
    assert!(call("mul", &[], &[("input", (&x).into()), ("other", (&x).into())])?.equal(&x.square()?)?);
    // A number keeps its digits if the op computes in f64.
    let power = call("float_power", &[&x], &[("exponent", 0.1.into())])?;
    assert!(power.equal(&x.to(DType::F64)?.pow(0.1)?)? && x.float_power(0.1)?.equal(&power)?);
    let power = call("float_power", &[], &[("self", 0.1.into()), ("exponent", (&x).into())])?;
    assert!(power.equal(&TensorOptions::new().dtype(DType::F64).tensor(0.1)?.pow(&x.to(DType::F64)?)?)?);
    // An op that is not a method can take a number as its first tensor.
    let around = call("normal", &[&x.zeros_like()?], &[("mean", 2.5.into())])?;
    assert!(around.equal(&x.full_like(2.5)?)? && Tensor::normal(2.5, x.zeros_like()?)?.equal(&around)?);
    // An optional tensor, passed in order, by name, as `None`, or left out.
    let (weight, bias) = (Tensor::ones([2, 3])?, Tensor::new([1.0, 2.0])?);
    let plain = call("nn.linear", &[&x, &weight], &[("bias", Given::Value(namegrad::core::Value::None))])?;
    assert!(plain.equal(&F::linear(&x, &weight)?)?);
    for shifted in [
        call("nn.linear", &[&x, &weight, &bias], &[])?,
        call("nn.linear", &[&x, &weight], &[("bias", (&bias).into())])?,
    ] {
        assert!(shifted.equal(&F::linear_with(&x, &weight, LinearOptions::new().bias(&bias))?)?);
    }
    assert_has(&refused(call("nn.linear", &[&x, &weight], &[("bias", 1.into())])), "`bias` must be a tensor");
    Ok(())
}

#[test]
fn other_names_of_pytorch() -> Result<()> {
    let x = x()?;
    let call = |name: &str, tensors: &[&Tensor], args: &[(&str, Given<'_>)]| -> Result<Tensor> {
        Ok(ops::call(name, tensors, args)?.remove(0))
    };
    // One op in PyTorch, several here: the arguments determine which.
    assert!(
        call("round", &[&x], &[("decimals", (-1).into())])?
            .equal(&x.round_with(RoundOptions::new().decimals(-1))?)?
    );
    assert!(call("round", &[&x], &[])?.equal(&x.round()?)?);
    assert!(call("clamp", &[&x], &[("min", 2.into())])?.equal(&x.clamp_min(2)?)?);
    let none = Given::Value(namegrad::core::Value::None);
    assert!(call("clip", &[&x], &[("min", none), ("max", 2.into())])?.equal(&x.clamp_max(2)?)?);
    assert!(call("clamp", &[&x], &[("min", 2.into()), ("max", 3.into())])?.equal(&x.clamp(2, 3)?)?);
    assert!(call("clamp", &[&x, &x.mul(2)?], &[("max", 3.into())])?.equal(&x.clamp(x.mul(2)?, 3)?)?);
    assert_has(&refused(call("clamp", &[&x], &[])), "the tensor `min` is missing");
    let mut y = x.clone();
    ops::find("clamp")?.call_in_place(&mut y, &[], &[("max", 2.into())])?;
    assert!(y.equal(&x.clamp_max(2)?)?);
    // Other names of arguments.
    let index = Tensor::new([[0], [1]])?;
    let scattered = call("scatter", &[&x, &index], &[("value", 9.0.into()), ("dim", "C".into())])?;
    assert_eq!(scattered.to_vec::<f32>()?, [9.0, 2.0, 3.0, 4.0, 9.0, 6.0]);
    assert!(x.scatter(&index, 9.0, "C")?.equal(&scattered)?);
    let source = Tensor::new([[9.0], [9.0]])?;
    assert!(
        call("scatter", &[&x, &index], &[("src", (&source).into()), ("dim", 1.into())])?.equal(&scattered)?
    );
    let (plain, square) = (x.rename(None)?, Tensor::ones([3, 3])?);
    let product = call("addmm", &[&plain], &[("mat1", (&plain).into()), ("mat2", (&square).into())])?;
    assert!(product.equal(&plain.addmm(&plain, &square)?)?);
    Ok(())
}

/// An argument in PyTorch can say another op here, or change nothing.
#[test]
fn arguments_that_say_another_op() -> Result<()> {
    let x = x()?;
    let call = |name: &str, tensors: &[&Tensor], args: &[(&str, Given<'_>)]| ops::call(name, tensors, args);
    let halves = call("div", &[&x], &[("other", 2.into()), ("rounding_mode", "floor".into())])?;
    assert!(halves[0].equal(&x.floor_divide(2)?)?);
    let mut y = x.clone();
    ops::find("div")?.call_in_place(
        &mut y,
        &[],
        &[("other", 2.into()), ("rounding_mode", "trunc".into())],
    )?;
    assert!(y.equal(&x.trunc_divide(2)?)?);
    let ends = x.ge(3.0)?;
    for places in [call("nonzero", &[&ends], &[("as_tuple", true.into())])?, call("where", &[&ends], &[])?] {
        assert_eq!(places[0].to_vec::<i64>()?, [0, 1, 1, 1]);
        assert_eq!(places[1].to_vec::<i64>()?, [2, 0, 1, 2]);
    }
    let index = Tensor::new([[0], [1]])?;
    let args = [("dim", 1.into()), ("reduce", "multiply".into())];
    let products = call("scatter", &[&x, &index, &Tensor::new([[3.0], [3.0]])?], &args)?;
    assert_eq!(products[0].to_vec::<f32>()?, [3.0, 2.0, 3.0, 4.0, 15.0, 6.0]);
    let columns =
        call("unique", &[&Tensor::new([[1, 1], [0, 0]])?], &[("dim", 1.into()), ("sorted", true.into())])?;
    assert_eq!(columns[0].sizes(), [2, 1]);
    let start = Tensor::new(1)?;
    let part =
        call("narrow", &[&x], &[("dim", "C".into()), ("start", (&start).into()), ("length", 1.into())])?;
    assert_eq!(part[0].to_vec::<f32>()?, [2.0, 5.0]);
    let parts = call("tensor_split", &[&x], &[("sections", (&Tensor::new([1])?).into()), ("dim", 1.into())])?;
    assert_eq!(parts[1].shape().to_string(), "[N=2, C=2]");
    assert!(call("expand_copy", &[&x.select(0, 0)?], &[("size", [2, 3].into())]).is_ok());
    assert_eq!(x.index(&[[1, 0].into()])?.to_vec::<f32>()?, [4.0, 5.0, 6.0, 1.0, 2.0, 3.0]);
    assert_eq!(Tensor::triu_indices(2, 3, 1)?.to_vec::<i64>()?, [0, 0, 1, 1, 2, 2]);
    assert_eq!(Tensor::logspace(0, 2, 3)?.to_vec::<f32>()?, [1.0, 10.0, 100.0]);
    assert_eq!(Tensor::broadcast_shapes(&[&[2], &[3]]).unwrap_err().kind(), ErrorKind::Shape);
    Ok(())
}

#[test]
fn logit_clamps_with_eps() -> Result<()> {
    let x = Tensor::new([-1.0, 0.0, 0.1, 0.5, 0.9, 1.5])?.to(DType::F64)?.requiring_grad()?;
    let y = x.logit_with(LogitOptions::new().eps(0.2))?;
    let want = x.clamp(0.2, 0.8)?.logit()?;
    assert!(y.allclose(&want)?);
    y.sum(..)?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [0.0, 0.0, 0.0, 4.0, 0.0, 0.0]);
    x.zero_grad();
    x.logit()?.sum(..)?.backward()?;
    let gradient = x.grad().unwrap().to_vec::<f64>()?;
    assert!(gradient[0].is_nan() && gradient[5].is_nan() && gradient[3] == 4.0);
    Ok(())
}

#[test]
fn lists_and_several_outputs() -> Result<()> {
    let x = x()?;
    let both = ops::call("cat", &[&x, &x], &[("dim", "N".into())])?;
    assert_eq!(both[0].shape().to_string(), "[N=4, C=3]");
    assert!(
        ops::call("cat", &[], &[("tensors", vec![&x, &x].into()), ("dim", 0.into())])?[0].equal(&both[0])?
    );
    let parts = ops::call("split", &[&x], &[("split_size", [1, 2].into()), ("dim", "C".into())])?;
    assert_eq!(parts.iter().map(|part| part.sizes()[1]).collect::<Vec<_>>(), [1, 2]);
    let product = ops::call("einsum", &[&x, &x], &[("equation", "ij,kj->ik".into())])?;
    assert!(product[0].equal(&x.rename(None)?.mm(&x.rename(None)?.t()?)?)?);
    let grid =
        ops::call("meshgrid", &[&Tensor::new([1, 2])?, &Tensor::new([3])?], &[("indexing", "xy".into())])?;
    assert_eq!(grid[0].sizes(), [1, 2]);
    // Indices are numbers and ranges, or tensors.
    let row = ops::call("index", &[&x], &[("indices", [-1, 0].into())])?;
    assert_eq!(row[0].item::<f64>()?, 4.0);
    let (places, value) = (Tensor::new([1, 1])?, Tensor::new(1.0)?);
    let args = [("indices", vec![&places].into()), ("accumulate", true.into())];
    let put = ops::call("index_put", &[&x, &value], &args)?;
    assert_eq!(put[0].to_vec::<f32>()?, [1.0, 2.0, 3.0, 6.0, 7.0, 8.0]);
    Ok(())
}

#[test]
fn kept_dims() -> Result<()> {
    let x = x()?;
    let kept =
        |args: &[(&str, Given<'_>)]| Ok::<_, Error>(ops::call("sum", &[&x], args)?[0].shape().to_string());
    assert_eq!(kept(&[("dim", "C".into()), ("keepdim", true.into())])?, "[N=2, C=1]");
    assert_eq!(kept(&[("dim", "C".into()), ("keepdim", false.into())])?, "[N=2]");
    assert_eq!(kept(&[("keepdim", true.into())])?, "[N=1, C=1]");
    assert_eq!(kept(&[])?, "[]");
    Ok(())
}

#[test]
fn in_place() -> Result<()> {
    let mut y = x()?;
    let add = ops::find("add")?;
    add.call_in_place(&mut y, &[], &[("other", 1.into())])?;
    assert!(y.equal(&x()?.add(1)?)?);
    ops::find("fill_")?.call_in_place(&mut y, &[], &[("value", 7.into())])?;
    assert_eq!(y.to_vec::<f32>()?, [7.0; 6]);
    // Out of place, the op does not change its input.
    let drawn = ops::call("uniform_", &[&y], &[("from", 1.0.into()), ("to", 2.0.into())])?;
    assert!(drawn[0].lt(2)?.all(..)?.is_nonzero()? && y.eq(7)?.all(..)?.is_nonzero()?);
    let error = ops::find("sum")?.call_in_place(&mut y, &[], &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let mut leaf = x()?.requiring_grad()?;
    for name in ["fill", "copy_", "index_fill", "zero_", "bernoulli_", "resize_"] {
        let (index, value) = (Tensor::new([0])?, Tensor::new(1.0)?);
        let (others, args): (&[&Tensor], Vec<(&str, Given<'_>)>) = match name {
            "fill" | "copy_" | "bernoulli_" => (&[&value], vec![]),
            "index_fill" => (&[&index, &value], vec![("dim", 0.into())]),
            "resize_" => (&[], vec![("size", [1].into())]),
            _ => (&[], vec![]),
        };
        let error = ops::find(name)?.call_in_place(&mut leaf, others, &args).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Autograd, "{name}: {error}");
    }
    assert!(leaf.equal(&x()?)?);
    Ok(())
}

#[test]
fn functions_have_their_options() -> Result<()> {
    let logits = Tensor::new([[2.0, 0.0, 1.0], [0.0, 2.0, 1.0]])?;
    let (target, weight) = (Tensor::new([0, 1])?, Tensor::new([1.0, 2.0, 3.0])?);
    let args = [("weight", (&weight).into()), ("label_smoothing", 0.1.into()), ("reduction", "sum".into())];
    let loss = ops::call("nn.cross_entropy", &[&logits, &target], &args)?;
    let options =
        CrossEntropyOptions::new().weight(&weight).label_smoothing(0.1).reduction(F::Reduction::Sum);
    assert!(loss[0].equal(&F::cross_entropy_with(&logits, &target, 1, options)?)?);
    // Without a batch the classes come first.
    let one = ops::call("nn.cross_entropy", &[&logits.select(0, 0)?, &Tensor::new(0)?], &[])?;
    assert!(one[0].equal(&F::cross_entropy(&logits.select(0, 0)?, &Tensor::new(0)?, 0)?)?);
    let still = ops::call("nn.dropout", &[&logits], &[("training", false.into())])?;
    assert!(still[0].equal(&logits)?);
    let gelu = ops::call("nn.gelu", &[&logits], &[("approximate", "tanh".into())])?;
    assert!(gelu[0].allclose_with(&logits.gelu()?, IscloseOptions::new().atol(1e-3))?);
    assert!(!gelu[0].equal(&logits.gelu()?)?);
    assert!(F::elu_with(&logits, EluOptions::new().alpha(0.5))?.equal(&logits)?);
    Ok(())
}

/// The table of a file, if it has one: `unary` for a file with the line `ops! { unary;`.
fn table_of(file: &Path, macro_name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).unwrap();
    let start = format!("{macro_name}! {{ ");
    let name = text.lines().find_map(|line| line.strip_prefix(&start))?;
    Some(name.split([';', ' ']).next().unwrap_or(name).to_string())
}

/// The files in a folder and in its folders.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|entry| if entry.is_dir() { files(&entry) } else { vec![entry] }).collect()
}

/// A table is registered by the `mod` line of its file and its name in `tables!`. If one of them is missing,
/// its ops compile in some crates and are missing in others.
#[test]
fn every_table_is_registered() {
    let in_core = |op: &OpInfo| namegrad::core::ops::all().any(|info| info.name == op.name);
    type Has<'a> = &'a dyn Fn(&str) -> bool;
    let has = |table: &str, own: &dyn Fn(&OpInfo) -> bool| {
        ops::all().any(|op| op.info.table == table && own(op.info))
    };
    let is_function = |op: &OpInfo| op.name.contains('.');
    let folders: [(&str, &str, Has<'_>); 6] = [
        ("core/src/ops", "ops", &|table| namegrad::core::ops::all().any(|info| info.table == table)),
        ("autograd/src/rules", "derivatives", &|table| has(table, &in_core)),
        ("autograd/src/composed", "composed", &|table| has(table, &|op| !in_core(op) && !is_function(op))),
        ("nn/src/functional", "functional", &|table| has(table, &|op| op.name.starts_with("nn."))),
        ("linalg/src", "methods", &|table| namegrad_tests::LINALG.contains(&table)),
        ("fft/src", "functional", &|table| has(table, &|op| namegrad_tests::is_of_domain(op.name))),
    ];
    let mut tables = 0;
    for (folder, macro_name, is_registered) in folders {
        for file in files(&namegrad_tests::root().join(folder)) {
            let Some(table) = table_of(&file, macro_name) else { continue };
            let stem = file.file_stem().unwrap().to_string_lossy();
            assert_eq!(table, stem, "{folder}/{stem}.rs: a table has the name of its file");
            assert!(
                is_registered(&table),
                "{folder}/{stem}.rs is not registered: {folder}/mod.rs needs `mod {stem};` and `{stem}` in `tables!`"
            );
            tables += 1;
        }
    }
    assert!(tables >= 45, "{tables} tables were found");
}

/// The tensors with which an op is tried.
fn tensors() -> Result<Vec<Tensor>> {
    let floats = |sizes: &[usize]| Tensor::full(sizes, 0.5)?.to(DType::F64);
    let whole = |sizes: &[usize]| Tensor::zeros(sizes)?.to(DType::I64);
    let named = Tensor::full([("A", 3), ("B", 3)], 0.5)?.to(DType::F64)?;
    Ok(vec![
        floats(&[3, 3])?,
        whole(&[3, 3])?,
        Tensor::ones([3, 3])?.to(DType::Bool)?,
        floats(&[3])?,
        whole(&[3])?,
        floats(&[])?,
        floats(&[3, 3, 3])?,
        floats(&[2])?,
        named,
        floats(&[2, 2, 2, 2])?,
        floats(&[2, 2, 2, 2, 2])?,
        floats(&[1, 1, 2])?,
        floats(&[1, 2, 3])?,
        floats(&[1, 1, 3, 3])?,
        TensorOptions::new().dtype(DType::F64).eye(3, 3)?,
        Tensor::new([1, 2, 3])?,
        whole(&[3, 3, 3])?,
        whole(&[1, 1, 1, 1])?,
    ])
}

/// The values with which an argument without a default is tried.
fn values(arg: &ArgInfo) -> Vec<Given<'static>> {
    match arg.ty {
        "Dim" | "Dims" | "Reduced" | "Matrix" | "Place" => {
            vec![0.into(), 1.into(), [0, 1].into(), "A".into()]
        }
        "Contraction" => vec!["A".into()],
        "Shape" | "Expansion" => vec![[3, 3].into(), [3, 3, 3].into(), [9].into(), [1, 1, 2, 2].into()],
        "usize" | "Windows" | "Resize" => vec![1.into(), 3.into()],
        "Sampling" => vec!["linear".into()],
        "Pads" => vec![[1, 1].into()],
        "Extents" => {
            vec![1.into(), 3.into(), 5.into(), [1].into(), [1, 1].into(), [1, 3].into(), [1, 1, 1].into()]
        }
        "isize" => vec![0.into(), 1.into()],
        "f64" | "Scalar" => vec![0.5.into(), 1.into()],
        "bool" | "Triangle" => vec![false.into(), true.into()],
        "DType" => vec!["float64".into()],
        "NewName" => vec!["made".into()],
        "Reduce" => vec!["sum".into()],
        "Sections" => vec![1.into()],
        "Text" if arg.name == "reduction" => vec!["sum".into()],
        "Text" if arg.name == "pattern" => vec!["... a -> a ...".into()],
        "WordSizes" => vec![Given::Value(namegrad::ops::Value::List(Vec::new()))],
        "Text" => vec!["ij,ij->i".into()],
        "Indices" => vec![[0].into()],
        "Places" => vec![[[0, 0]].into()],
        "Cell" => vec!["tanh".into()],
        "Numbers" => vec![0.5.into()],
        "Strides" => vec![[1, 1].into(), [1].into()],
        ty => panic!("no value of type {ty} is tried: say one here"),
    }
}

/// All ways to choose one item of each list.
fn choices<T: Clone>(lists: &[Vec<T>]) -> Vec<Vec<T>> {
    lists.iter().fold(vec![Vec::new()], |made, list| {
        let longer = |start: &Vec<T>| {
            list.iter().map(|next| [&start[..], std::slice::from_ref(next)].concat()).collect::<Vec<_>>()
        };
        made.iter().flat_map(longer).collect()
    })
}

/// Whether `call` works with some tensors and arguments.
fn some_work(
    op: &Op,
    tensors: &[Tensor],
    mut call: impl FnMut(&[&Tensor], &[(&str, Given<'_>)]) -> bool,
) -> bool {
    let slots: Vec<Vec<Vec<&Tensor>>> = op
        .info
        .tensors
        .iter()
        .filter(|tensor| tensor.kind != TensorKind::Optional)
        .map(|tensor| match tensor.kind {
            TensorKind::List => tensors.iter().map(|x| vec![x, x]).collect(),
            _ => tensors.iter().map(|x| vec![x]).collect(),
        })
        .collect();
    let needed: Vec<&ArgInfo> = op.info.args.iter().filter(|arg| arg.default.is_none()).collect();
    let lists: Vec<Vec<Given<'_>>> = needed.iter().map(|arg| values(arg)).collect();
    let chosen = choices(&lists);
    choices(&slots).iter().any(|slots| {
        let given = slots.concat();
        chosen.iter().any(|values| {
            let mut args: Vec<_> = needed.iter().map(|arg| arg.name).zip(values.iter().cloned()).collect();
            if op.info.name == "nn.batch_norm" {
                args.push(("training", true.into())); // otherwise it needs running statistics
            }
            if op.info.name == "nn.interpolate" {
                args.push(("size", 2.into())); // or a factor
            }
            call(&given, &args)
        })
    })
}

#[test]
fn every_entry_can_be_called() -> Result<()> {
    let tensors = tensors()?;
    let mut failed = Vec::new();
    for op in namegrad_tests::ops() {
        if !some_work(op, &tensors, |given, args| op.call(given, args).is_ok()) {
            failed.push(op.info.name);
        }
        let in_place = |given: &[&Tensor], args: &[(&str, Given<'_>)]| {
            let mut x = given[0].clone();
            op.call_in_place(&mut x, &given[1..], args).is_ok()
        };
        if op.info.in_place.is_some() && !some_work(op, &tensors, in_place) {
            failed.push(op.info.in_place.unwrap_or_default());
        }
    }
    assert!(failed.is_empty(), "these calls failed: {failed:?}");
    Ok(())
}

/// PyTorch's functions that make tensors, by the names of their arguments.
#[test]
fn factories() -> Result<()> {
    let of = |name: &str, args: &[(&str, Given<'_>)]| Ok::<_, Error>(ops::call(name, &[], args)?.remove(0));
    let zeros =
        of("zeros", &[("size", [2, 3].into()), ("names", ["N", "C"].into()), ("dtype", DType::F64.into())])?;
    assert_eq!((zeros.shape().to_string(), zeros.dtype()), ("[N=2, C=3]".into(), DType::F64));
    assert!(of("full", &[("size", [2].into()), ("fill_value", 7.into())])?.equal(&Tensor::new([7, 7])?)?);
    assert!(of("scalar_tensor", &[("s", 2.5.into())])?.equal(&Tensor::new(2.5)?)?);
    assert!(of("eye", &[("n", 3.into())])?.equal(&Tensor::eye(3, 3)?)?);
    assert!(of("arange", &[("start", 1.into()), ("end", 4.into())])?.equal(&Tensor::new([1, 2, 3])?)?);
    let three = ("steps", 3.into());
    let spaced = of("linspace", &[("start", 0.into()), ("end", 1.into()), three.clone()])?;
    assert!(spaced.equal(&Tensor::new([0.0, 0.5, 1.0])?)?);
    let powers = of("logspace", &[("start", 0.into()), ("end", 2.into()), three, ("base", 2.0.into())])?;
    assert!(powers.equal(&Tensor::new([1.0, 2.0, 4.0])?)?);
    assert!(
        of("tril_indices", &[("row", 2.into()), ("col", 2.into())])?
            .equal(&Tensor::tril_indices(2, 2, 0)?)?
    );
    let drawn = of("randint", &[("low", 3.into()), ("high", 5.into()), ("size", [9].into())])?;
    assert!(drawn.ge(3)?.logical_and(drawn.lt(5)?)?.all(..)?.item::<bool>()? && drawn.dtype() == DType::I64);
    for name in ["ones", "empty", "rand", "randn", "torch.zeros"] {
        assert_eq!(of(name, &[("size", [4].into())])?.sizes(), [4], "{name}");
    }
    assert_eq!(of("randperm", &[("n", 4.into())])?.sum(..)?.item::<i64>()?, 6);
    Ok(())
}
