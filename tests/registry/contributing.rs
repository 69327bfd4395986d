//! Checks that the code in CONTRIBUTING.md is copied from the library.

/// The text without white space and comment markers, which formatting may change.
fn dense(text: &str) -> String {
    text.split_whitespace().filter(|word| *word != "///").collect()
}

#[test]
fn every_example_is_in_the_file_that_it_names() {
    let root = namegrad_tests::root();
    let guide = std::fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let (mut found, mut missing) = (0, Vec::new());
    for block in guide.split("```rust,ignore\n").skip(1) {
        let (block, _) = block.split_once("\n```").expect("the block ends");
        let (path, code) = block.split_once('\n').expect("a path, then code");
        let path = path.strip_prefix("// ").expect("the first line names the file");
        let file = std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        if !dense(&file).contains(&dense(code)) {
            missing.push(format!("{path} does not have:\n{code}"));
        }
        found += 1;
    }
    assert!(missing.is_empty(), "{}", missing.join("\n\n"));
    assert!(found >= 25, "the guide shows {found} blocks of code");
}

/// Only the modules that the guide names may contain `unsafe` code.
#[test]
fn unsafe_code_is_confined() {
    let root = namegrad_tests::root();
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    for other in [
        "src",
        "core/macros/src",
        "autograd/src",
        "nn/src",
        "nn/derive/src",
        "optim/src",
        "data/src",
        "train/src",
    ] {
        assert!(read(&format!("{other}/lib.rs")).contains("\n#![forbid(unsafe_code)]\n"), "{other}");
    }
    for some in ["core/src", "io/src"] {
        assert!(read(&format!("{some}/lib.rs")).contains("\n#![deny(unsafe_code)]\n"), "{some}");
    }
    let guide = read("CONTRIBUTING.md");
    let (_, rule) = guide.split_once("**Unsafe.**").unwrap();
    let (rule, _) = rule.split_once("\n\n").unwrap();
    let mut allowed = 0;
    for file in ["core/src/lib.rs", "core/src/ops/mod.rs", "io/src/lib.rs"] {
        for module in read(file).split("#[allow(unsafe_code)]\n").skip(1) {
            let (_, module) = module.split_once("mod ").unwrap();
            let (module, _) = module.split_once(';').unwrap();
            assert!(rule.contains(&format!("`{module}`")), "the guide does not name {module}");
            allowed += 1;
        }
    }
    assert!(allowed > 0);
}

/// README, crate page and template give the same lines for fast debug builds.
#[test]
fn the_lines_for_debug_builds_are_those_of_the_template() {
    let root = namegrad_tests::root();
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let template = read("examples/template/Cargo.toml");
    let start = template.find("[profile.dev.package.\"*\"]").unwrap();
    let (lines, _) = template[start..].split_once("\n\n").unwrap();
    assert!(read("README.md").contains(lines));
    assert!(read("src/lib.rs").replace("//! ", "").contains(lines));
}
