//! Attention by name, against its formula written with `contract` and `softmax`.

use namegrad::autograd::gradcheck;
use namegrad::prelude::*;

/// All orders of some dims.
fn orders(names: &[&'static str]) -> Vec<Vec<&'static str>> {
    if names.is_empty() {
        return vec![vec![]];
    }
    let mut all = Vec::new();
    for at in 0..names.len() {
        let rest = [&names[..at], &names[at + 1..]].concat();
        for order in orders(&rest) {
            all.push([&names[at..=at], &order[..]].concat());
        }
    }
    all
}

/// Random numbers in `f64`, whose differences have enough digits.
fn draw(dims: &[(&str, usize)]) -> Tensor {
    TensorOptions::new().dtype(DType::F64).randn(dims).unwrap()
}

/// Attention over the positions "time" of the keys, with the numbers `added` to the scores. The keys of
/// `added` are called "time_key", and the result has the dims in the order of `like`.
fn formula(q: &Tensor, k: &Tensor, v: &Tensor, added: Option<&Tensor>, like: &Tensor) -> Result<Tensor> {
    let k = k.rename([("time", "time_key")])?;
    let mut v = v.rename([("time", "time_key")])?;
    let is_embed = v.names().iter(v.ndim()).any(|name| name.is_some_and(|name| name.as_str() == "embed"));
    if is_embed {
        v = v.rename([("embed", "own")])?;
    }
    let mut scores = q.contract(&k, "embed")?.div((q.size("embed")? as f64).sqrt())?;
    if let Some(added) = added {
        scores = scores.add(added.align_as(&scores)?)?;
    }
    let y = scores.softmax("time_key")?.contract(&v, "time_key")?;
    let y = if is_embed { y.rename([("own", "embed")])? } else { y };
    y.align_as(like)
}

fn names_of(y: &Tensor) -> Vec<&'static str> {
    y.names().iter(y.ndim()).flatten().map(|name| name.as_str()).collect()
}

fn assert_close(y: &Tensor, wanted: &Tensor) -> Result<()> {
    assert_eq!(y.shape(), wanted.shape());
    assert!(y.allclose_with(wanted, IscloseOptions::new().atol(1e-10))?, "{y} is not {wanted}");
    Ok(())
}

/// 0 where the condition on the positions of a query and a key holds, otherwise negative infinity.
fn hidden(queries: usize, keys: usize, is_seen: impl Fn(usize, usize) -> bool) -> Result<Tensor> {
    let mut numbers = Vec::new();
    for i in 0..queries {
        numbers.extend((0..keys).map(|j| if is_seen(i, j) { 0.0 } else { f64::NEG_INFINITY }));
    }
    Tensor::from_slice(&numbers, [("time", queries), ("time_key", keys)])
}

#[test]
fn any_order_of_dims_gives_the_formula() -> Result<()> {
    manual_seed(0);
    let q = draw(&[("N", 2), ("heads", 3), ("time", 4), ("embed", 5)]);
    let k = draw(&[("N", 2), ("heads", 3), ("time", 6), ("embed", 5)]);
    let v = draw(&[("N", 2), ("heads", 3), ("time", 6), ("value", 2)]);
    let mask = draw(&[("N", 2), ("time", 4), ("time_key", 6)]);
    let dims = orders(&["N", "heads", "time", "embed"]);
    let of_values = orders(&["N", "heads", "time", "value"]);
    let of_masks = orders(&["N", "time", "time_key"]);
    for (at, of_q) in dims.iter().enumerate() {
        let q = q.align_to(&of_q[..])?;
        for (step, of_k) in dims.iter().enumerate() {
            let k = k.align_to(&of_k[..])?;
            let v = v.align_to(&of_values[(at + 5 * step) % 24][..])?;
            let mask = mask.align_to(&of_masks[(at + step) % 6][..])?;
            let y = F::attention(&q, &k, &v, "time", "embed")?;
            let order: Vec<&str> =
                of_q.iter().map(|name| if *name == "embed" { "value" } else { name }).collect();
            assert_eq!(names_of(&y), order, "of q {of_q:?}");
            assert_close(&y, &formula(&q, &k, &v, None, &y)?)?;
            let y = F::attention_with(&q, &k, &v, "time", "embed", AttentionOptions::new().attn_mask(&mask))?;
            assert_close(&y, &formula(&q, &k, &v, Some(&mask), &y)?)?;
        }
    }
    Ok(())
}

#[test]
fn the_other_dims_are_matched_by_name() -> Result<()> {
    manual_seed(0);
    let q = draw(&[("word", 4), ("N", 2), ("embed", 5)]);
    for (k, v, names) in [
        (vec![("time", 6), ("embed", 5)], vec![("time", 6), ("embed", 5)], vec!["word", "N", "embed"]),
        (vec![("time", 6), ("embed", 5)], vec![("time", 6)], vec!["word", "N"]),
        (vec![("embed", 5), ("time", 6)], vec![("a", 2), ("time", 6), ("b", 3)], vec!["word", "N", "a", "b"]),
        (
            vec![("time", 6), ("heads", 3), ("embed", 5)],
            vec![("time", 6), ("b", 2)],
            vec!["heads", "word", "N", "b"],
        ),
        (vec![("time", 6), ("embed", 5)], vec![("word", 4), ("time", 6), ("N", 2)], vec!["word", "N"]),
    ] {
        let (k, v) = (draw(&k), draw(&v));
        let y = F::attention(&q, &k, &v, "time", "embed")?;
        assert_eq!(names_of(&y), names);
        assert_close(&y, &formula(&q, &k, &v, None, &y)?)?;
        let strict = namegrad::names::strict(|| F::attention(&q, &k, &v, "time", "embed"))?;
        assert_close(&strict, &y)?;
    }
    // A single query.
    let (q, k) = (draw(&[("embed", 5)]), draw(&[("time", 6), ("N", 2), ("embed", 5)]));
    let y = F::attention(&q, &k, &k, "time", "embed")?;
    assert_eq!(*y.names(), ["N", "embed"]);
    assert_close(&y, &formula(&q, &k, &k, None, &y)?)
}

#[test]
fn masks_biases_and_windows() -> Result<()> {
    manual_seed(0);
    let x = draw(&[("heads", 2), ("time", 7), ("embed", 4)]);
    let options = AttentionOptions::new;
    let with = |options: AttentionOptions<'_>| F::attention_with(&x, &x, &x, "time", "embed", options);
    let check = |y: Tensor, added: &Tensor| assert_close(&y, &formula(&x, &x, &x, Some(added), &y)?);
    let near = hidden(7, 7, |i, j| i.abs_diff(j) <= 2)?;
    let before = hidden(7, 7, |i, j| j <= i && i - j <= 2)?;
    check(with(options().window(2))?, &near)?;
    check(with(options().window(2).is_causal(true))?, &before)?;
    check(with(options().is_causal(true))?, &hidden(7, 7, |i, j| j <= i)?)?;
    check(with(options().attn_mask(&near.eq(0)?))?, &near)?;
    // ALiBi: numbers for each head and distance.
    let slopes = Tensor::new([0.5, 0.25])?.to(DType::F64)?.refine_names(["heads"])?;
    let positions = Tensor::arange(0, 7, 1)?.to(DType::F64)?;
    let distance = positions.sub(&positions.unsqueeze(1)?)?.refine_names(["time", "time_key"])?;
    let alibi = distance.align_to(["time", "time_key", "heads"])?.mul(&slopes)?;
    let both = before.align_as(&alibi)?.add(&alibi)?;
    check(with(options().bias(&alibi).is_causal(true).window(2))?, &both)?;
    check(with(options().bias(&alibi).attn_mask(&before.eq(0)?))?, &both)?;
    check(with(options().bias(&alibi).attn_mask(&alibi))?, &alibi.mul(2)?)?;
    // Padding, of keys that are not the queries.
    let q = draw(&[("word", 3), ("embed", 4)]);
    let seen = Tensor::new([true, true, false, true, false, false, false])?.refine_names(["time"])?;
    let y = F::attention_with(&q, &x, &x, "time", "embed", options().attn_mask(&seen))?;
    let added = seen.log()?.rename([("time", "time_key")])?.to(DType::F64)?;
    assert_close(&y, &formula(&q, &x, &x, Some(&added), &y)?)?;
    // A query that sees no key.
    let none = Tensor::zeros([("time_key", 7)])?.to(DType::Bool)?;
    assert_eq!(with(options().attn_mask(&none))?.abs()?.sum(..)?.item::<f64>()?, 0.0);
    Ok(())
}

#[test]
fn heads_of_keys_serve_groups() -> Result<()> {
    manual_seed(0);
    let q = draw(&[("heads", 6), ("time", 4), ("N", 2), ("embed", 3)]);
    let k = draw(&[("time", 5), ("embed", 3), ("N", 2), ("heads", 2)]);
    let options = || AttentionOptions::new().heads("heads");
    let all = |x: &Tensor| x.repeat_interleave(3, "heads");
    let mask = draw(&[("time_key", 5), ("heads", 6)]);
    for v in [draw(&[("heads", 2), ("time", 5), ("N", 2)]), draw(&[("time", 5), ("value", 2)])] {
        let of_all = if v.ndim() == 3 { all(&v)? } else { v.clone() };
        let y = F::attention_with(&q, &k, &v, "time", "embed", options().attn_mask(&mask))?;
        assert_close(&y, &formula(&q, &all(&k)?, &of_all, Some(&mask), &y)?)?;
    }
    // One head for all, and as many heads, are no groups.
    for k in [draw(&[("time", 5), ("embed", 3)]), draw(&[("heads", 6), ("time", 5), ("embed", 3)])] {
        let y = F::attention_with(&q, &k, &k, "time", "embed", options())?;
        assert_close(&y, &formula(&q, &k, &k, None, &y)?)?;
    }
    let error = F::attention(&q, &k, &k, "time", "embed").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    let repair = "AttentionOptions::new().heads(\"heads\")";
    assert!(error.to_string().contains(repair), "{error}");
    let odd = q.narrow("heads", 0, 5)?;
    let error = F::attention_with(&odd, &k, &k, "time", "embed", options()).unwrap_err();
    assert!(error.to_string().contains("must divide"), "{error}");
    // The heads are no positions, however many there are.
    let (q, kv) = (draw(&[("heads", 4), ("N", 2), ("embed", 3)]), draw(&[("time", 5), ("embed", 3)]));
    let y = F::attention_with(&q, &kv, &kv, "time", "embed", options())?;
    assert_close(&y, &F::attention(&q, &kv, &kv, "time", "embed")?.align_as(&y)?)?;
    Ok(())
}

#[test]
fn gradients_are_those_of_differences() -> Result<()> {
    manual_seed(0);
    let inputs = [
        draw(&[("heads", 4), ("time", 3), ("embed", 2)]),
        draw(&[("time", 3), ("embed", 2), ("heads", 2)]),
        draw(&[("N", 2), ("value", 2), ("time", 3), ("heads", 2)]),
        draw(&[("heads", 4), ("time_key", 3)]),
    ];
    let seen =
        Tensor::new([[true, false, true], [true; 3], [true; 3]])?.refine_names(["time", "time_key"])?;
    let f = |x: &[Tensor]| {
        let options =
            AttentionOptions::new().heads("heads").bias(&x[3]).attn_mask(&seen).window(1).scale(0.7);
        F::attention_with(&x[0], &x[1], &x[2], "time", "embed", options)
    };
    gradcheck(f, &inputs)?;
    Ok(())
}

/// Without names, dims have the same meaning at the same place from the right.
#[test]
fn without_names_it_is_the_op() -> Result<()> {
    manual_seed(0);
    let of = |sizes: &[usize]| Tensor::randn(sizes);
    for (q, k, v) in [([2, 4, 5], [2, 6, 5], [2, 6, 3]), ([1, 4, 5], [2, 6, 5], [1, 6, 5])] {
        let (q, k, v, mask) = (of(&q)?, of(&k)?, of(&v)?, of(&[2, 1, 6])?);
        let y =
            F::attention_with(&q, &k, &v, -2, -1, AttentionOptions::new().attn_mask(&mask).is_causal(true))?;
        let options = ScaledDotProductAttentionOptions::new().attn_mask(&mask).is_causal(true);
        let wanted = q.scaled_dot_product_attention_with(&k, &v, options)?;
        assert_eq!(y.sizes(), wanted.sizes());
        assert!(y.equal(&wanted)?);
        let turned = F::attention(&q.mt()?, &k.mt()?, &v.mt()?, -1, -2)?;
        assert!(
            turned
                .mt()?
                .allclose_with(&F::attention(&q, &k, &v, -2, -1)?, IscloseOptions::new().atol(1e-6))?
        );
    }
    Ok(())
}

#[test]
fn dropout_keeps_the_mean() -> Result<()> {
    manual_seed(1);
    let (q, v) = (Tensor::zeros([("word", 4000), ("embed", 1)])?, Tensor::ones([("time", 50)])?);
    let options = AttentionOptions::new().dropout_p(0.25);
    let y =
        F::attention_with(&q, Tensor::zeros([("time", 50), ("embed", 1)])?, &v, "time", "embed", options)?;
    assert!((y.mean(..)?.item::<f64>()? - 1.0).abs() < 0.01);
    assert!(y.std(..)?.item::<f64>()? > 0.05);
    Ok(())
}

/// The kind and the text of an error, which names the function.
fn refused(y: Result<Tensor>, kind: ErrorKind, words: &str) {
    let error = y.unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    assert!(text.starts_with("attention: ") && text.contains(words), "{text}");
    assert!(text.contains("attention_by_name.rs"), "{text}");
}

#[test]
fn wrong_calls() -> Result<()> {
    let x = Tensor::ones([("N", 2), ("time", 3), ("embed", 4)])?;
    let q = Tensor::ones([("word", 2), ("line", 2), ("embed", 4)])?;
    let options = AttentionOptions::new;
    let of = |q: &Tensor, k: &Tensor, v: &Tensor| F::attention(q, k, v, "time", "embed");
    let with = |options| F::attention_with(&x, &x, &x, "time", "embed", options);
    let named = |dims: &[(&str, usize)]| Tensor::ones(dims);
    use ErrorKind::{DuplicateName, NameMismatch, NameNotFound, Shape, Value};
    refused(F::attention(&x, &x, &x, "tme", "embed"), NameNotFound, "\"time\"");
    refused(F::attention(&x, &x, &x, "time", "embd"), NameNotFound, "\"embed\"");
    refused(F::attention(&x, &x, &x, "time", "time"), Value, "cannot be both");
    refused(of(&x, &x.rename([("embed", "embeds")])?, &x), NameNotFound, "\"embeds\"");
    refused(of(&x, &x, &x.rename([("time", "times")])?), NameNotFound, "\"times\"");
    refused(of(&x, &x.narrow("embed", 0, 3)?, &x), Shape, "'embed' has 4 elements in q and 3 in k");
    refused(of(&x, &x, &x.narrow("time", 0, 2)?), Shape, "'time' has 3 elements in k and 2 in v");
    let other = named(&[("N", 5), ("time", 3), ("embed", 4)])?;
    refused(of(&x, &other, &other), Shape, "the sizes of the dim 'N' differ: 2 in q, 5 in k, 5 in v");
    refused(of(&x.to(DType::F64)?, &x, &x), ErrorKind::DType, "same dtype");
    refused(of(&x, &x.rename(None)?, &x), NameNotFound, "'time' not found");
    refused(of(&x.rename(None)?.refine_names(["N", "time", "..."])?, &x, &x), NameNotFound, "embed");
    let part = Tensor::ones([2, 3, 4])?.rename([None, Some("time"), Some("embed")])?;
    refused(of(&part, &x, &x), NameMismatch, "has dims without names");
    // Masks.
    let bad = named(&[("time", 3), ("head", 3)])?;
    refused(with(options().attn_mask(&bad)), NameNotFound, "does not broadcast to [N=2, time=3, time_key=3]");
    let short = named(&[("time_key", 2)])?;
    refused(with(options().bias(&short)), Shape, "bias [time_key=2] does not broadcast");
    let plain = Tensor::ones([3, 3])?;
    refused(with(options().attn_mask(&plain)), NameMismatch, "refine_names");
    let whole = named(&[("time", 3)])?.to(DType::I64)?;
    refused(with(options().attn_mask(&whole)), ErrorKind::DType, "bool or floating-point");
    refused(with(options().bias(&whole)), ErrorKind::DType, "bias must be floating-point");
    let taken = x.rename([("N", "time_key")])?;
    let mask = named(&[("time", 3)])?;
    let y = F::attention_with(&taken, &taken, &taken, "time", "embed", options().bias(&mask));
    refused(y, DuplicateName, "'time_key'");
    // Options.
    refused(with(options().dropout_p(1.5)), Value, "between 0 and 1");
    refused(with(options().query_dim("N")), Value, "must be 'time'");
    refused(with(options().query_dim("tiem")), NameNotFound, "tiem");
    refused(with(options().heads("embed")), Value, "beside the positions");
    refused(with(options().heads("head")), NameNotFound, "head");
    let ordered = |options| F::attention_with(&q, &x, &x, "time", "embed", options);
    refused(ordered(options().is_causal(true)), Value, "any of 'word', 'line'");
    refused(ordered(options().query_dim("embed")), Value, "that k and v lack");
    let chosen = ordered(options().is_causal(true).query_dim("word"))?;
    assert_eq!(chosen.shape().to_string(), "[N=2, word=2, line=2, embed=4]");
    let one = q.select("word", 0)?.select("line", 0)?;
    let y = F::attention_with(&one, &x, &x, "time", "embed", options().window(1));
    refused(y, Value, "q has no positions");
    Ok(())
}

/// Heads have no order: a single query for each head has no positions that a causal mask could be about.
#[test]
fn heads_are_no_positions() -> Result<()> {
    let q = Tensor::randn([("N", 2), ("heads", 3), ("embed", 4)])?;
    let k = Tensor::randn([("N", 2), ("time", 5), ("embed", 4)])?;
    let with = |options| F::attention_with(&q, &k, &k, "time", "embed", options);
    for options in [AttentionOptions::new().is_causal(true), AttentionOptions::new().window(1)] {
        let error = with(options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Value);
        assert!(error.repair().unwrap().contains(".query_dim(\"heads\")"), "{error}");
    }
    assert_eq!(with(AttentionOptions::new())?.shape().to_string(), "[N=2, heads=3, embed=4]");
    with(AttentionOptions::new().is_causal(true).query_dim("heads"))?;
    Ok(())
}
