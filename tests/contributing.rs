//! The code in CONTRIBUTING.md is code of the library, so that it compiles.

use std::path::Path;

/// The text without what formatting may change: white space, and where a comment wraps.
fn dense(text: &str) -> String {
    text.split_whitespace().filter(|word| *word != "///").collect()
}

#[test]
fn every_example_stands_in_the_file_that_it_names() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = std::fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let mut found = 0;
    for block in guide.split("```rust,ignore\n").skip(1) {
        let (block, _) = block.split_once("\n```").expect("the block ends");
        let (path, code) = block.split_once('\n').expect("a path, then code");
        let path = path.strip_prefix("// ").expect("the first line names the file");
        let file = std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert!(dense(&file).contains(&dense(code)), "{path} does not have:\n{code}");
        found += 1;
    }
    assert!(found >= 25, "the guide shows {found} blocks of code");
}
