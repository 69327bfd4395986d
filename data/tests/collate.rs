//! Batches of every kind of sample, and samples that do not fit together.

use namegrad::core::Scalar;
use namegrad::data::{Collate, Dataset, Loader, Ragged, Samples};
use namegrad::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

/// The batch of all samples.
fn batch<T: Collate + Clone + Send + Sync + 'static>(samples: Vec<T>) -> Result<T::Batch>
where
    T::Batch: 'static,
{
    let count = samples.len();
    Loader::new(Samples::new(samples), count)?.peek()
}

#[test]
fn numbers_keep_their_dtype() -> Result<()> {
    assert_eq!(batch(vec![true, false])?.dtype(), DType::Bool);
    assert_eq!(batch(vec![1u8, 255])?.to_vec::<u8>()?, [1, 255]);
    assert_eq!(batch(vec![1i32, -2])?.to_vec::<i32>()?, [1, -2]);
    assert_eq!(batch(vec![1i64, -2])?.to_vec::<i64>()?, [1, -2]);
    assert_eq!(batch(vec![1usize, 2])?.dtype(), DType::I64);
    assert_eq!(batch(vec![usize::MAX]).unwrap_err().kind(), ErrorKind::Value);
    assert_eq!(batch(vec![0.5f32])?.dtype(), DType::F32);
    assert_eq!(batch(vec![0.5f64])?.shape().to_string(), "[N=1]");
    Ok(())
}

#[test]
fn samples_of_several_parts() -> Result<()> {
    let sample = |n: i64| {
        Ok::<_, Error>((Tensor::full([("C", 2)], n)?, n, n.to_string(), PathBuf::from("a"), true, "s"))
    };
    let (x, n, text, path, flag, s) = batch(vec![sample(1)?, sample(2)?])?;
    assert_eq!((x.shape().to_string(), n.to_vec::<i64>()?), ("[N=2, C=2]".into(), vec![1, 2]));
    assert_eq!(
        (text, path.len(), flag.dtype(), s.len()),
        (vec!["1".to_string(), "2".into()], 2, DType::Bool, 2)
    );
    let (one,) = batch(vec![(1i64,), (2,)])?;
    assert_eq!(one.to_vec::<i64>()?, [1, 2]);

    assert_eq!(batch(vec![Some(1i64), Some(2)])?.unwrap().to_vec::<i64>()?, [1, 2]);
    assert!(batch(vec![None::<i64>, None])?.is_none());
    let error = batch(vec![Some(1i64), None]).unwrap_err();
    assert!(error.message().contains("sample 0 is Some, but sample 1 is None"), "{error}");

    let map = |keys: &[&str]| keys.iter().map(|key| (key.to_string(), 1i64)).collect::<BTreeMap<_, _>>();
    let both = batch(vec![map(&["a", "b"]), map(&["a", "b"])])?;
    assert_eq!(both["b"].to_vec::<i64>()?, [1, 1]);
    let hashed: HashMap<String, i64> = map(&["a"]).into_iter().collect();
    assert_eq!(batch(vec![hashed.clone(), hashed])?["a"].numel(), 2);
    for other in [&["a"][..], &["a", "c"], &["a", "b", "c"], &[]] {
        let error = batch(vec![map(&["a", "b"]), map(other)]).unwrap_err();
        assert!(error.message().contains("sample 1 has other keys than sample 0"), "{error}");
    }
    Ok(())
}

#[test]
fn tensors_that_do_not_fit_together() -> Result<()> {
    let x = Tensor::zeros([("H", 2), ("W", 3)])?;
    let refused = |other: Tensor| {
        let error = batch(vec![x.clone(), x.clone(), other]).unwrap_err();
        assert_eq!(error.location().file(), file!(), "the line of the loop");
        error
    };
    let error = refused(x.align_to(["W", "H"])?);
    assert_eq!(error.kind(), ErrorKind::NameMismatch);
    assert!(error.message().contains("sample 0 is [H=2, W=3], but sample 2 is [W=3, H=2]"), "{error}");
    assert_eq!(error.repair(), Some("x.align_to([\"H\", \"W\"])?"));
    let error = refused(x.rename(["H", "width"])?);
    assert_eq!((error.kind(), error.repair()), (ErrorKind::NameMismatch, Some("x.rename([\"H\", \"W\"])?")));
    assert_eq!(refused(x.rename(None)?).kind(), ErrorKind::NameMismatch);
    assert_eq!(refused(x.sum("H")?).kind(), ErrorKind::Shape);
    assert_eq!(refused(x.to(DType::F64)?).kind(), ErrorKind::DType);
    let error = refused(Tensor::zeros([("H", 2), ("W", 4)])?);
    assert_eq!(
        (error.kind(), error.repair()),
        (ErrorKind::Shape, Some("Loader::builder(data).pad(\"W\", 0)"))
    );
    let error = batch(vec![(1i64, Tensor::zeros([("N", 2)])?)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DuplicateName);
    assert!(
        error.message().contains("element 1 of the tuples: sample 0, [N=2], has a dim 'N' already"),
        "{error}"
    );
    Ok(())
}

#[test]
fn ragged_dims_are_padded_on_request() -> Result<()> {
    let x = |h, w| Tensor::ones([("H", h), ("W", w)]);
    let data = Samples::new(vec![x(2, 3)?, x(1, 4)?, x(0, 0)?]);
    let loader = Loader::builder(data.clone()).batch_size(3).pad("H", -1).pad("W", 0.5).build()?;
    let batch = loader.peek()?;
    assert_eq!(batch.shape().to_string(), "[N=3, H=2, W=4]");
    let rows = [[1.0, 1.0, 1.0, 0.5], [1.0, 1.0, 1.0, 0.5], [1.0; 4], [-1.0; 4]].concat();
    assert_eq!(batch.to_vec::<f32>()?[..16], rows);
    assert!(Loader::builder(data).batch_size(3).pad("W", 0).build()?.peek().is_err(), "H is not padded");

    // Different values for the inputs and the targets of a model of sequences.
    let pairs = Samples::new(vec![2i64, 3]).map(|length| {
        let ids = Tensor::full([("seq", length)], 7i64)?;
        Ok((Ragged::new(ids.clone(), "seq")?, Ragged::new(ids, "seq")?.value(-100)))
    });
    let (x, y) = Loader::new(pairs, 2)?.peek()?;
    assert_eq!(x.tensor.to_vec::<i64>()?, [7, 7, 0, 7, 7, 7]);
    assert_eq!(y.tensor.to_vec::<i64>()?, [7, 7, -100, 7, 7, 7]);
    assert_eq!((x.lengths.shape().to_string(), y.lengths.to_vec::<i64>()?), ("[N=2]".into(), vec![2, 3]));
    let error = Ragged::new(x.tensor, "time").unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::NameNotFound, file!()));
    Ok(())
}

#[test]
fn ragged_samples_are_padded_alike() -> Result<()> {
    let x = |h, w| Tensor::ones([("H", h), ("W", w)]);
    let refused = |one: Ragged, other: Ragged| {
        let error = batch(vec![one.clone(), one, other]).unwrap_err();
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
        error.message().to_string()
    };
    let (h, w) = (Ragged::new(x(2, 3)?, "H")?, Ragged::new(x(2, 3)?, "W")?);
    let message = refused(h.clone(), w.clone());
    assert_eq!(message, "batch 0: sample 0 pads 'H' with 0, but sample 2 pads 'W' with 0");
    let message = refused(h.clone(), h.clone().value(-1));
    assert_eq!(message, "batch 0: sample 0 pads 'H' with 0, but sample 2 pads 'H' with -1");
    for (one, other) in [(f64::NAN.into(), f64::NAN.into()), (Scalar::Int(1), Scalar::Float(1.0))] {
        batch(vec![w.clone().value(one), w.clone().value(other)])?;
    }
    Ok(())
}

#[test]
fn a_pad_value_is_one_of_the_dtype() -> Result<()> {
    let pad = |dtype: DType, value: Scalar| {
        let samples = vec![Tensor::ones([("a", 1)])?.to(dtype)?, Tensor::ones([("a", 2)])?.to(dtype)?];
        let loader = Loader::builder(Samples::new(samples)).batch_size(2).pad("a", value).build()?;
        loader.iter().next().unwrap()?.to(DType::F64)?.to_vec::<f64>()
    };
    let (float, int) = (Scalar::Float, Scalar::Int);
    let bad = [
        (DType::I64, float(0.5)),
        (DType::I64, float(f64::NAN)),
        (DType::I64, float(1e300)),
        (DType::I8, int(128)),
        (DType::U8, int(-1)),
        (DType::Bool, int(2)),
        (DType::F32, float(1e300)),
        (DType::F16, float(70000.0)),
        (DType::F32, int(16777217)),
    ];
    for (dtype, value) in bad {
        let error = pad(dtype, value).unwrap_err();
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()), "{dtype} {value}");
        let message =
            format!("batch 0: the dim 'a' cannot be padded with {value}, because the samples are {dtype}");
        assert_eq!(error.message(), message);
    }
    let good = [
        (DType::I64, float(-3.0)),
        (DType::I64, int(-(1 << 53))),
        (DType::U8, int(255)),
        (DType::Bool, int(1)),
        (DType::Bool, Scalar::Bool(false)),
        (DType::F32, float(f64::NEG_INFINITY)),
        (DType::F16, int(-100)),
        (DType::F64, float(0.1)),
    ];
    for (dtype, value) in good {
        assert_eq!(pad(dtype, value)?[1], value.to_f64(), "{dtype} {value}");
    }
    assert_eq!(pad(DType::F32, float(0.1))?[1], f64::from(0.1f32), "floats are rounded");
    assert!(pad(DType::F32, float(f64::NAN))?[1].is_nan());
    Ok(())
}

mod derived {
    use super::*;

    /// Fields of all kinds, in a module of its own: the batch has their visibility.
    #[derive(Clone, Collate)]
    pub(super) struct Picture<T> {
        pub(super) image: Tensor,
        pub(super) r#type: T,
        name: String,
        pair: (u8, Option<f64>),
    }

    impl<T> Picture<T> {
        pub(super) fn new(width: usize, class: T) -> Result<Picture<T>> {
            let image = Tensor::ones([("C", 1), ("W", width)])?;
            Ok(Picture { image, r#type: class, name: width.to_string(), pair: (1, Some(0.5)) })
        }
    }

    #[derive(Clone, Collate)]
    #[collate(batch = Points)]
    struct Point(f32, i64);

    #[test]
    fn structs_become_structs_of_batches() -> Result<()> {
        let batch: PictureBatch<i64> = batch(vec![Picture::new(2, 3)?, Picture::new(2, 5)?])?;
        assert_eq!(batch.image.shape().to_string(), "[N=2, C=1, W=2]");
        assert_eq!(batch.r#type.to_vec::<i64>()?, [3, 5]);
        assert_eq!(batch.name, ["2", "2"]);
        assert_eq!(batch.pair.1.unwrap().to_vec::<f64>()?, [0.5, 0.5]);

        let Points(x, y) = super::batch(vec![Point(0.5, 1), Point(1.5, 2)])?;
        assert_eq!((x.to_vec::<f32>()?, y.to_vec::<i64>()?), (vec![0.5, 1.5], vec![1, 2]));
        Ok(())
    }
}

/// The error names the field and the sample.
#[test]
fn fields_that_do_not_fit_together_are_named() -> Result<()> {
    let pictures = vec![derived::Picture::new(2, 0.5)?, derived::Picture::new(3, 0.5)?];
    let error = batch(pictures.clone()).err().unwrap();
    assert!(error.message().contains("field 'image': ") && error.message().contains("sample 1"), "{error}");

    let loader: Loader<_> = Loader::builder(Samples::new(pictures)).batch_size(2).pad("W", 0).build()?;
    let padded: derived::PictureBatch<f64> = loader.peek()?;
    assert_eq!((padded.image.sizes(), padded.r#type.dtype()), (&[2, 1, 3][..], DType::F64));
    Ok(())
}
