//! Patterns of paths, and the paths that errors suggest.

use namegrad::nn::pattern::{Pattern, nearest};

#[test]
fn stars() {
    let found = |pattern, path| Pattern::new(pattern).captures(path).map(|texts| texts.join("|"));
    for (pattern, path, want) in [
        ("a.b", "a.b", Some("")),
        ("a.*", "a.b", Some("b")),
        ("a.*", "a.b.c", None),
        ("a.**", "a.b.c", Some("b.c")),
        ("**.c", "a.b.c", Some("a.b.")),
        ("**.c", "c", Some("")),
        ("a.**.c", "a.c", Some("")),
        ("*.x*.?", "ab.xy.z", Some("ab|y|z")),
        ("*a*a", "banana", Some("b|nan")),
        ("a?", "a.", None),
        ("", "a", None),
        ("**", "", Some("")),
        ("**.c", "a.bc", None),
    ] {
        assert_eq!(found(pattern, path).as_deref(), want, "{pattern} {path}");
    }
    assert!(Pattern::new("blocks.*.norm").covers("blocks.0.norm.weight"));
    assert!(!Pattern::new("norm").covers("norms.weight"));
}

/// Tried one by one, the ways to share a path between the stars would take years.
#[test]
fn many_stars_on_a_long_path() {
    for (star, text, end) in [("*", "a", "b"), ("**", "a", "b"), ("**.", "a.", "b"), ("*?", "a", "b")] {
        let pattern = format!("{star}{text}").repeat(20);
        let path = text.repeat(200);
        assert!(Pattern::new(&(pattern.clone() + "**")).captures(&path).is_some(), "{pattern}");
        assert!(Pattern::new(&(pattern.clone() + end)).captures(&path).is_none(), "{pattern}");
    }
}

#[test]
fn paths_near_a_wrong_pattern() {
    let paths = [
        "embed.weight",
        "encoder.norm.weight",
        "encoder.layers.0.linear.weight",
        "encoder.layers.0.linear.bias",
        "encoder.layers.1.linear.weight",
        "decoder.layers.0.linear.weight",
        "head.weight",
    ];
    for (wanted, first) in [
        ("encoder.layer.*.linear.weight", &paths[2..3]),
        ("encoder.layer.*.weight", &paths[2..3]),
        ("encoder.layer", &paths[2..5]),
        ("encoder.layer.**", &paths[2..5]),
        ("layers.*.linear.weigth", &[paths[2], paths[4], paths[5]]),
        ("decoder.layers.3.linear.weight", &paths[5..6]),
        ("embedding.weight", &paths[..1]),
        ("**.weights", &paths[..1]),
    ] {
        let found = nearest(wanted, &mut paths.into_iter());
        let first: Vec<String> = first.iter().map(|path| format!("'{path}'")).collect();
        assert_eq!(found[..first.len()], first, "{wanted}: {found:?}");
        assert_eq!((found.len(), found[5].as_str()), (6, "..."));
    }
    let repair = |wanted: &str| {
        let error = Pattern::new(wanted).unmatched("freeze", "parameter", &mut paths.into_iter());
        error.repair().map(String::from)
    };
    let meant = |path: &str| Some(format!("{path:?}"));
    assert_eq!(repair("encoder.layer.*.*.weight"), meant("encoder.layers.*.*.weight"));
    assert_eq!(repair("encoder.layer.**"), meant("encoder.layers.**"));
    assert_eq!(repair("embbed.weight"), meant("embed.weight"));
    assert_eq!(repair("**.gamma.x.y"), None);
    assert_eq!(repair("**.weigths"), meant("**.weight"));
    assert_eq!(repair("encoder.**.norms.*"), meant("encoder.**.norm.*"));
    assert_eq!(repair("**.layer.**.bias"), meant("**.layers.**.bias"));
    let of_one_layer = |wanted: &str| {
        let error = Pattern::new(wanted).unmatched("AdamW", "parameter", &mut ["weight", "bias"].into_iter());
        error.repair().map(String::from)
    };
    assert_eq!(of_one_layer("**.biases"), meant("**.bias"));
    assert_eq!(of_one_layer("**.b"), None);
    assert_eq!(of_one_layer("*.*.*"), None);
}

#[test]
fn filled() {
    let renamed = |from, to, path| Pattern::new(to).filled(&Pattern::new(from).captures(path).unwrap());
    assert_eq!(renamed("model.**", "**", "model.a.b"), "a.b");
    assert_eq!(renamed("**", "model.**", "a.b"), "model.a.b");
    assert_eq!(renamed("enc.*.attn.**", "blocks.*.**", "enc.3.attn.q.weight"), "blocks.3.q.weight");
    assert_eq!(renamed("**.gamma", "**.weight", "a.b.gamma"), "a.b.weight");
    assert_eq!(renamed("**.gamma", "**.weight", "gamma"), "weight");
}
