//! Attention.

use crate::check::{by_subsets, mask, values};
use crate::plain::Plain;
use namegrad::autograd::grad_with;
use namegrad::core::random::Generator;
use namegrad::prelude::*;

/// Element `[.., i, d]` of the attention of `query`, `key` and `value` with these batch indices.
fn attended(
    (query, query_at): (&Plain, &[usize]),
    (key, value, key_at): (&Plain, &Plain, &[usize]),
    [i, d]: [usize; 2],
    scale: f64,
    added: impl Fn(usize) -> f64,
) -> f64 {
    let [.., keys, width] = key.sizes[..] else { unreachable!("a matrix") };
    let score = |j: usize| {
        let product =
            |e: usize| query.at(&[query_at, &[i, e]].concat()) * key.at(&[key_at, &[j, e]].concat());
        scale * (0..width).map(product).sum::<f64>() + added(j)
    };
    let max = (0..keys).map(score).fold(f64::NEG_INFINITY, f64::max);
    if max == f64::NEG_INFINITY {
        return 0.0;
    }
    let weights: Vec<f64> = (0..keys).map(|j| (score(j) - max).exp()).collect();
    let sum: f64 = weights.iter().sum();
    (0..keys).map(|j| weights[j] / sum * value.at(&[key_at, &[j, d]].concat())).sum()
}

fn hidden(is_hidden: bool) -> f64 {
    if is_hidden { f64::NEG_INFINITY } else { 0.0 }
}

cases! {
    scaled_dot_product_attention {
        (query: values("N=2 L=3 E=2"), key: values("N=2 S=4 E=2"), value: values("N=2 S=4 V=3")) => "N=2 L=3 V=3" floats, |i| {
            attended((query, &i[..1]), (key, value, &i[..1]), [i[1], i[2]], 0.5f64.sqrt(), |_| 0.0)
        }, scale 3.0;
        (query: values("L=3 E=2"), key: values("S=4 E=2"), value: values("S=4 V=2"), mask: values("L=3 S=4"); 0.0, false, 0.5, false) => "L=3 V=2" floats, |i| {
            attended((query, &[]), (key, value, &[]), [i[0], i[1]], 0.5, |j| mask.at(&[i[0], j]))
        }, scale 3.0;
        (query: values("N=2 L=3 E=2"), key: values("S=4 E=2"), value: values("N=2 S=4 V=1"); 0.0, true, 1.0, false) => "N=2 L=3 V=1" floats, |i| {
            let value = &Plain { sizes: vec![4, 1], data: (0..4).map(|j| value.at(&[i[0], j, 0])).collect() };
            attended((query, &i[..1]), (key, value, &[]), [i[1], i[2]], 1.0, |j| hidden(j > i[1]))
        }, scale 3.0;
        (query: values("N=1 heads=4 L=2 E=2"), key: values("N=1 heads=2 S=3 E=2"), value: values("N=1 heads=2 S=3 V=2"); 0.0, false, 1.0, true) => "N=1 heads=4 L=2 V=2" floats, |i| {
            attended((query, &i[..2]), (key, value, &[i[0], i[1] / 2]), [i[2], i[3]], 1.0, |_| 0.0)
        }, scale 3.0;
        (query: values("L=2 E=2"), key: values("S=3 E=2"), value: values("S=3 V=2"), seen: mask("L=2 S=3", [1, 0, 1, 0, 0, 0])) => "L=2 V=2" floats, |i| {
            attended((query, &[]), (key, value, &[]), [i[0], i[1]], 0.5f64.sqrt(), |j| hidden(seen.at(&[i[0], j]) == 0.0))
        }, scale 3.0;
        (query: values("L=2 E=0"), key: values("S=3 E=0"), value: values("S=3 V=1"); 0.0, false, 1.0, false) => "L=2 V=1" floats, |i| {
            (0..3).map(|j| value.at(&[j, 0])).sum::<f64>() / 3.0
        }, scale 3.0;
    }
}

/// The result of [`Tensor::scaled_dot_product_attention_with`], computed with all scores at once.
fn at_once(inputs: &[Tensor], mask: Option<&Tensor>, causal: bool) -> Result<Tensor> {
    let [q, k, v] = inputs else { unreachable!("query, key and value") };
    let mut scores = q.matmul(k.mt()?)?.div((q.sizes()[q.ndim() - 1] as f64).sqrt())?;
    if let Some(mask) = mask {
        scores = scores.add(mask)?;
    }
    if causal {
        let [.., queries, keys] = *scores.sizes() else { unreachable!("a matrix") };
        let unseen = Tensor::ones([queries, keys])?.triu_with(TriuOptions::new().diagonal(1))?;
        scores = scores.masked_fill(unseen.ne(0.0)?, f64::NEG_INFINITY)?;
    }
    scores.softmax(-1)?.matmul(v)
}

/// Over several blocks of queries and keys, on views and with broadcast dims.
#[test]
fn blocks_give_what_all_scores_give() -> Result<()> {
    manual_seed(0);
    let options = ScaledDotProductAttentionOptions::new;
    for (queries, keys) in [(1, 1), (64, 128), (65, 129), (200, 300), (300, 70), (1, 700)] {
        let draw = |len, width| Tensor::randn([2, len, 3, width])?.transpose(1, 2);
        let [q, k, v] = [draw(queries, 20)?, draw(keys, 20)?, draw(keys, 9)?];
        let mask = Tensor::randn([3, 1, keys])?;
        for causal in [false, true] {
            for mask in [None, Some(&mask)] {
                let leaf = |x: &Tensor| x.detach().requiring_grad();
                let inputs = [leaf(&q)?, leaf(&k)?, leaf(&v)?];
                let mut options = options().is_causal(causal);
                options.attn_mask = mask.map(Into::into);
                let y = inputs[0].scaled_dot_product_attention_with(&inputs[1], &inputs[2], options)?;
                let wanted = at_once(&inputs, mask, causal)?;
                assert!(
                    y.allclose_with(&wanted, IscloseOptions::new().atol(1e-5))?,
                    "{queries} {keys} {causal}"
                );
                let g = Tensor::randn(y.sizes())?;
                let all: Vec<&Tensor> = inputs.iter().collect();
                let [of, of_wanted] =
                    [&y, &wanted].map(|y| grad_with(&[y], &all, &[Some(&g)], BackwardOptions::default()));
                for (of, of_wanted) in of?.into_iter().flatten().zip(of_wanted?.into_iter().flatten()) {
                    let close = IscloseOptions::new().rtol(1e-4).atol(1e-4);
                    assert!(of.allclose_with(&of_wanted, close)?, "gradients: {queries} {keys} {causal}");
                }
            }
        }
    }
    Ok(())
}

/// A window gives what its mask gives, over several blocks, for queries that see few keys or none, and with the
/// same bits for any number of threads.
#[test]
fn windows_are_masks() -> Result<()> {
    let close = IscloseOptions::new().rtol(1e-4).atol(1e-5);
    let mut generator = Generator::from_seed(9);
    for (queries, keys) in [(1, 1), (65, 129), (300, 300), (300, 70), (90, 400)] {
        let draw = |len, width| Tensor::randn([2, 3, len, width])?.requiring_grad();
        let inputs =
            generator.scope(|| Ok::<_, Error>([draw(queries, 20)?, draw(keys, 20)?, draw(keys, 9)?]))?;
        let g = generator.scope(|| Tensor::randn([2, 3, queries, 9]))?;
        let [q, k, v] = &inputs;
        for (window, causal) in
            [(0, false), (3, true), (40, false), (130, true), (1000, false), (usize::MAX, true)]
        {
            let near = Tensor::arange(0, queries as i64, 1)?.unsqueeze(1)?.sub(Tensor::arange(
                0,
                keys as i64,
                1,
            )?)?;
            let near = near.abs()?.le(i64::try_from(window).unwrap_or(i64::MAX))?;
            let run = |options: ScaledDotProductAttentionOptions<'_, Tensor>| {
                let y = q.scaled_dot_product_attention_with(k, v, options.is_causal(causal))?;
                let gradients = grad_with(&[&y], &[q, k, v], &[Some(&g)], BackwardOptions::default())?;
                Ok::<_, Error>([vec![y.detach()], gradients.into_iter().flatten().collect()].concat())
            };
            let options = ScaledDotProductAttentionOptions::new;
            let found = run(options().window(window))?;
            let wanted = run(options().attn_mask(&near))?;
            for (at, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
                assert!(
                    found.allclose_with(wanted, close.clone())?,
                    "{at} of {queries} {keys} {window} {causal}"
                );
            }
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
            for (one, many) in pool.install(|| run(options().window(window)))?.iter().zip(&found) {
                assert!(one.equal(many)?, "one thread: {queries} {keys} {window} {causal}");
            }
        }
    }
    Ok(())
}

/// For any subset of the inputs, the fused backward pass equals the formula; with dropout as well.
#[test]
fn gradients_of_any_subset() -> Result<()> {
    for dropout in [0.0, 0.4] {
        let [q, k] = [[2, 4, 70, 8], [2, 2, 150, 8]];
        let inputs = [Tensor::randn(q)?, Tensor::randn(k)?, Tensor::randn(k)?, Tensor::randn([70, 150])?];
        by_subsets(&inputs, |inputs| {
            let options = ScaledDotProductAttentionOptions::new().dropout_p(dropout).enable_gqa(true);
            inputs[0].scaled_dot_product_attention_with(&inputs[1], &inputs[2], options.attn_mask(&inputs[3]))
        })?;
        by_subsets(&inputs, |inputs| {
            let options = ScaledDotProductAttentionOptions::new().dropout_p(dropout).enable_gqa(true);
            let options = options.window(30).is_causal(true).attn_mask(&inputs[3]);
            inputs[0].scaled_dot_product_attention_with(&inputs[1], &inputs[2], options)
        })?;
    }
    Ok(())
}

#[test]
fn dropout_keeps_the_mean() -> Result<()> {
    manual_seed(1);
    let (q, v) = (Tensor::zeros([1, 4000, 1])?, Tensor::ones([1, 50, 1])?);
    let options = ScaledDotProductAttentionOptions::new().dropout_p(0.25);
    let y = q.scaled_dot_product_attention_with(&Tensor::zeros([1, 50, 1])?, &v, options)?;
    assert!((y.mean(..)?.item::<f64>()? - 1.0).abs() < 0.01);
    assert!((y.std(..)?.item::<f64>()? - (0.25f64 / 0.75 / 50.0).sqrt()).abs() < 0.005);
    Ok(())
}

#[test]
fn names_and_wrong_calls() -> Result<()> {
    let x = Tensor::ones([("N", 2), ("heads", 2), ("seq", 3), ("embed", 4)])?;
    let y = x.scaled_dot_product_attention(&x, &x)?;
    assert_eq!(*y.names(), ["N", "heads", "seq", "embed"]);
    let key = x.rename([("seq", "source")])?;
    let memory = key.rename([("embed", "depth")])?;
    let y = x.scaled_dot_product_attention(&key, &memory.select("N", 0)?)?;
    assert_eq!(*y.names(), ["N", "heads", "seq", "depth"]);
    let kind = |y: Result<Tensor>| y.unwrap_err().kind();
    // The contracted dims have the same names.
    assert_eq!(kind(x.scaled_dot_product_attention(&memory, &memory)), ErrorKind::NameMismatch);
    assert_eq!(kind(x.scaled_dot_product_attention(&key, &x)), ErrorKind::NameMismatch);
    let other = x.rename([("heads", "groups")])?;
    assert_eq!(kind(x.scaled_dot_product_attention(&other, &x)), ErrorKind::NameMismatch);
    assert_eq!(kind(x.scaled_dot_product_attention(&x.narrow("embed", 0, 3)?, &x)), ErrorKind::Shape);
    assert_eq!(kind(x.scaled_dot_product_attention(&x, x.narrow("seq", 0, 2)?)), ErrorKind::Shape);
    assert_eq!(kind(x.scaled_dot_product_attention(x.to(DType::F64)?, &x)), ErrorKind::DType);
    let options = ScaledDotProductAttentionOptions::new;
    let with = |options| kind(x.scaled_dot_product_attention_with(&x, &x, options));
    let short = Tensor::ones([3, 2])?;
    let whole = Tensor::ones([3, 3])?.to(DType::I64)?;
    assert_eq!(with(options().attn_mask(&short)), ErrorKind::Shape);
    assert_eq!(with(options().attn_mask(&whole)), ErrorKind::DType);
    assert_eq!(with(options().dropout_p(1.5)), ErrorKind::Value);
    let odd = Tensor::ones([2, 3, 3, 4])?;
    let plain = x.rename(None)?;
    let grouped = odd.scaled_dot_product_attention_with(&plain, &plain, options().enable_gqa(true));
    assert_eq!(kind(grouped), ErrorKind::Shape);
    Ok(())
}

/// The dims of a mask are those of the scores: batch dims that only keys or values have, too.
#[test]
fn a_mask_has_the_names_of_the_scores() -> Result<()> {
    let randn = |dims: &[(&'static str, usize)]| Tensor::randn(dims.to_vec());
    let k = randn(&[("A", 2), ("H", 2), ("S", 5), ("embed", 4)])?;
    let v = k.rename([("embed", "V")])?;
    let bare = [&k, &v].map(|x| x.select("A", 0)?.select("H", 0));
    let [flat_k, flat_v] = [bare[0].clone()?, bare[1].clone()?];
    let q = randn(&[("time", 3), ("embed", 4)])?;
    let full = randn(&[("A", 2), ("H", 2), ("time", 3), ("embed", 4)])?;
    let mask = randn(&[("A", 2), ("H", 2), ("time", 3), ("S", 5)])?;
    for (q, k, v) in [
        (&q, &k, &v),
        (&full.rename(None)?, &k, &v),
        (&q, &flat_k, &v),
        (&full, &flat_k, &flat_v),
        (&full, &k.rename(None)?, &v),
    ] {
        let with = |mask: &Tensor| {
            q.scaled_dot_product_attention_with(k, v, ScaledDotProductAttentionOptions::new().attn_mask(mask))
        };
        let want = with(&mask)?;
        assert!(with(&mask.rename(None)?)?.rename(None)?.allclose(&want.rename(None)?)?);
        for wrong in [
            mask.align_to(["H", "A", "time", "S"])?,
            mask.rename([("A", "other")])?,
            mask.rename([("S", "other")])?,
            mask.rename(["A", "time", "H", "S"])?,
            mask.rename([None, None, Some("A"), None])?,
            mask.rename([None, None, None, Some("H")])?,
        ] {
            assert!(
                with(&wrong).is_err(),
                "{} with {} and {} takes {}",
                q.shape(),
                k.shape(),
                v.shape(),
                wrong.shape()
            );
        }
        assert!(namegrad::names::strict(|| with(&mask.align_to(["H", "A", "time", "S"]).unwrap())).is_err());
    }
    // Queries and keys of one name: a vector is about the keys.
    let x = randn(&[("N", 2), ("time", 3), ("embed", 4)])?;
    let bias = Tensor::new([0.0, 1.0, 2.0])?;
    let with = |mask: &Tensor| {
        x.scaled_dot_product_attention_with(&x, &x, ScaledDotProductAttentionOptions::new().attn_mask(mask))
    };
    assert!(with(&bias.rename(["time"])?)?.allclose(&with(&bias)?)?);
    Ok(())
}

#[test]
fn a_repair_of_dtypes_casts_what_differs() -> Result<()> {
    let x = Tensor::ones([2, 3])?;
    let error = x.scaled_dot_product_attention(&x, &x.to(DType::F64)?).unwrap_err();
    assert_eq!(error.repair(), Some("value.to(DType::F32)?"));
    Ok(())
}
