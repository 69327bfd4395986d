//! Values with serde's traits in the metadata of a file.

use namegrad_core::ErrorKind;
use namegrad_io::TensorFile;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
enum Rate {
    Fixed(f64),
    Range(f32, f32),
    Decay { from: f64 },
}

#[derive(Serialize)]
struct Run {
    best: Option<f64>,
    losses: Vec<(u64, f64)>,
    rates: BTreeMap<&'static str, Rate>,
}

/// The text is that of `serde_json`, for every kind of value.
#[test]
fn values_are_written_as_serde_json_writes_them() {
    #[derive(Serialize)]
    struct Unit;
    #[derive(Serialize)]
    struct Newtype(u8);
    #[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
    enum Kind {
        First,
    }
    fn check(value: &impl Serialize) {
        let file = TensorFile::of_json("value", value).unwrap();
        assert_eq!(file.metadata["value"], serde_json::to_string(value).unwrap());
    }
    check(&(Unit, Newtype(7), Kind::First, (), true, 'ß', "a \"b\" \\ \n \u{1} é"));
    check(&(i8::MIN, i64::MIN, u64::MAX, i128::MIN, u128::MAX, Some(1), None::<u8>));
    check(&[Rate::Fixed(1.0), Rate::Range(0.1, 2.0), Rate::Decay { from: 0.1 }]);
    check(&(BTreeMap::from([(1, "a"), (2, "b")]), BTreeMap::from([(true, [0u8; 0])])));
    check(&(BTreeMap::from([(Kind::First, 1)]), BTreeMap::from([('x', BTreeMap::<u8, u8>::new())])));
    check(&[1.0, -0.0, 0.1, 1e-3, 123_456.75, 1.0 / 3.0, f64::MAX, f64::MIN_POSITIVE]);
    check(&[0.1f32, 1.0, 1e-7, 1.0 / 3.0]);
}

#[test]
fn numbers_that_json_lacks_are_errors() {
    let run =
        |best, loss, rate| Run { best, losses: vec![(0, 0.5), (1, loss)], rates: [("lr", rate)].into() };
    let mut file = TensorFile::default();
    let mut refused = |run: Run| {
        let error = file.insert_json("run", &run).unwrap_err();
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()));
        assert!(file.metadata.is_empty());
        error.message().to_string()
    };
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let cases = [
        (run(Some(nan), 1.0, Rate::Fixed(1.0)), "'best' is NaN"),
        (run(None, -inf, Rate::Fixed(1.0)), "'losses[1][1]' is -inf"),
        (run(None, 1.0, Rate::Fixed(nan)), "'rates[\"lr\"].Fixed' is NaN"),
        (run(None, 1.0, Rate::Range(0.0, f32::NAN)), "'rates[\"lr\"][1]' is NaN"),
        (run(None, 1.0, Rate::Decay { from: inf }), "'rates[\"lr\"].from' is inf"),
    ];
    for (run, message) in cases {
        assert_eq!(refused(run), format!("{message}, which JSON cannot store"));
    }
    file.insert_json("run", &run(None, 1.0, Rate::Range(0.0, 1.0))).unwrap();
    assert_eq!(
        file.metadata["run"],
        r#"{"best":null,"losses":[[0,0.5],[1,1.0]],"rates":{"lr":{"Range":[0.0,1.0]}}}"#
    );
    assert_eq!(
        file.insert_json("x", &nan).unwrap_err().message(),
        "the value is NaN, which JSON cannot store"
    );
    assert!(file.insert_json("x", &BTreeMap::from([([1, 2], 3)])).is_err(), "keys are text");
}
