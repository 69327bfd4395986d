//! Meters against plain definitions, in batches and merged, and what they refuse.

use namegrad::prelude::*;
use namegrad::train::meters::{
    Accuracy, Average, ConfusionMatrix, Mean, Perplexity, Regression, RocAuc, update_all,
};

const CLASSES: usize = 4;

/// Random logits `[N, class, time]` and targets `[time, N]`, in batches of different sizes.
fn batches() -> Result<Vec<(Tensor, Tensor)>> {
    manual_seed(5);
    let batch = |n: usize| {
        let logits = Tensor::randn([("N", n), ("class", CLASSES), ("time", 3)])?;
        Ok((logits, Tensor::randint(0, CLASSES as i64 - 1, [("time", 3), ("N", n)])?))
    };
    [7, 1, 0, 12].into_iter().map(batch).collect()
}

/// All rows of logits with their targets.
fn samples(batches: &[(Tensor, Tensor)]) -> Result<Vec<(Vec<f64>, usize)>> {
    let mut samples = Vec::new();
    for (logits, target) in batches {
        let rows = logits.align_to(["N", "time", "class"])?.to_vec::<f64>()?;
        let targets = target.align_to(["N", "time"])?.to_vec::<i64>()?;
        samples
            .extend(rows.chunks(CLASSES).map(<[f64]>::to_vec).zip(targets.into_iter().map(|y| y as usize)));
    }
    Ok(samples)
}

fn predicted(row: &[f64]) -> usize {
    (0..row.len()).rev().max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap()
}

#[test]
fn accuracy_is_the_share_among_the_largest() -> Result<()> {
    let (batches, mut parts) = (batches()?, [Accuracy::top(2), Accuracy::top(2)]);
    let mut meters = [1, 2, 3, 4].map(Accuracy::top);
    for (number, (logits, target)) in batches.iter().enumerate() {
        for meter in &mut meters {
            meter.update(logits, target, "class")?;
        }
        parts[number % 2].update(logits, target, "class")?;
    }
    let samples = samples(&batches)?;
    for (k, meter) in (1..).zip(&meters) {
        let right =
            samples.iter().filter(|(row, y)| row.iter().filter(|value| **value > row[*y]).count() < k);
        assert_eq!(meter.compute(), right.count() as f64 / samples.len() as f64);
        assert_eq!(meter.count(), samples.len() as u64);
    }
    let [mut first, second] = parts;
    first.merge(&second);
    assert_eq!(first, meters[1]);
    first.reset();
    assert_eq!(first, Accuracy::top(2));
    Ok(())
}

#[test]
fn scores_follow_their_definitions() -> Result<()> {
    let batches = batches()?;
    let (mut matrix, mut by_class) = (ConfusionMatrix::new(CLASSES), ConfusionMatrix::new(CLASSES));
    for (logits, target) in &batches {
        matrix.update(logits, target, "class")?;
        by_class.update_classes(logits.argmax("class")?, target)?;
    }
    assert_eq!(matrix, by_class);
    let pairs: Vec<(usize, usize)> = samples(&batches)?.iter().map(|(row, y)| (*y, predicted(row))).collect();
    let count = |f: &dyn Fn(usize, usize) -> bool| pairs.iter().filter(|(y, p)| f(*y, *p)).count() as f64;
    let total = pairs.len() as f64;
    let mut sums = [[0.0; 3]; 2];
    for (class, scores) in matrix.per_class().iter().enumerate() {
        let right = count(&|y, p| y == class && p == class);
        let (support, chosen) = (count(&|y, _| y == class), count(&|_, p| p == class));
        let precision = right / chosen;
        let recall = if support > 0.0 { right / support } else { 0.0 }; // the last class has no samples
        let f1 = if right > 0.0 { 2.0 * precision * recall / (precision + recall) } else { 0.0 };
        assert_eq!((scores.precision, scores.recall, scores.support as f64), (precision, recall, support));
        assert!((scores.f1 - f1).abs() < 1e-12);
        for (sum, score) in [precision, recall, f1].into_iter().enumerate() {
            sums[0][sum] += score / CLASSES as f64;
            sums[1][sum] += score * support / total;
        }
    }
    for (average, [precision, recall, f1]) in [(Average::Macro, sums[0]), (Average::Weighted, sums[1])] {
        let scores = matrix.scores(average);
        for (own, expected) in [(scores.precision, precision), (scores.recall, recall), (scores.f1, f1)] {
            assert!((own - expected).abs() < 1e-12, "{average:?} {own} {expected}");
        }
    }
    let micro = matrix.scores(Average::Micro);
    assert_eq!((micro.precision, micro.f1), (matrix.accuracy(), matrix.accuracy()));
    assert_eq!(matrix.compute()?.sum(..)?.item::<i64>()?, pairs.len() as i64);
    assert_eq!(matrix.compute()?.shape().to_string(), "[true=4, predicted=4]");
    Ok(())
}

/// Checked with scikit-learn: classes that occur nowhere do not count for the macro average.
#[test]
fn classes_that_occur_nowhere() -> Result<()> {
    let mut matrix = ConfusionMatrix::new(5);
    matrix.update_classes(Tensor::new([0, 1, 1])?, Tensor::new([0, 1, 3])?)?;
    // precision_score([0, 1, 3], [0, 1, 1], average="macro", zero_division=0)
    assert!((matrix.scores(Average::Macro).precision - 0.5).abs() < 1e-12);
    assert!((matrix.scores(Average::Macro).recall - 2.0 / 3.0).abs() < 1e-12);
    let table = matrix.to_string();
    assert!(table.lines().nth(3).is_some_and(|line| line.ends_with("-        -")), "{table}");
    Ok(())
}

#[test]
fn perplexity_is_the_exponential_of_the_cross_entropy() -> Result<()> {
    let (batches, mut meter) = (batches()?, Perplexity::new());
    let mut loss = Mean::new();
    for (logits, target) in &batches {
        meter.update(logits, target, "class")?;
        if target.numel() > 0 {
            let target = target.align_to(["N", "time"])?;
            loss.update(F::cross_entropy(logits, &target, "class")?, target.numel())?;
        }
    }
    assert!((meter.compute() / loss.compute().exp() - 1.0).abs() < 1e-6);
    let mut ignoring = Perplexity::new().ignore_index(-100);
    let logits = Tensor::new([[0.0, 0.0], [5.0, 9.0]])?;
    ignoring.update(logits, Tensor::new([1, -100])?, 1)?;
    assert!((ignoring.compute() - 2.0).abs() < 1e-6 && ignoring.count() == 1);
    Ok(())
}

#[test]
fn errors_of_numbers_follow_their_definitions() -> Result<()> {
    manual_seed(3);
    let (mut whole, mut first, mut second) = (Regression::new(), Regression::new(), Regression::new());
    let (mut p, mut y) = (Vec::new(), Vec::new());
    for n in [5, 0, 1, 20] {
        let target = Tensor::randn([("N", n), ("out", 2)])?.add(1e6)?.to(DType::F64)?;
        let predicted = target.add(Tensor::randn([("N", n), ("out", 2)])?.to(DType::F64)?)?;
        whole.update(predicted.align_to(["out", "N"])?, &target)?;
        (if n == 5 { &mut first } else { &mut second }).update(&predicted, &target)?;
        p.extend(predicted.to_vec::<f64>()?);
        y.extend(target.to_vec::<f64>()?);
    }
    let count = y.len() as f64;
    let mean = y.iter().sum::<f64>() / count;
    let sum = |f: &dyn Fn(f64, f64) -> f64| p.iter().zip(&y).map(|(p, y)| f(*p, *y)).sum::<f64>();
    let squared = sum(&|p, y| (p - y).powi(2));
    let scores = whole.compute();
    let expected = [
        sum(&|p, y| (p - y).abs()) / count,
        squared / count,
        1.0 - squared / sum(&|_, y| (y - mean).powi(2)),
    ];
    for (own, expected) in [scores.mae, scores.mse, scores.r2].into_iter().zip(expected) {
        assert!((own / expected - 1.0).abs() < 1e-9, "{own} {expected}");
    }
    assert_eq!(scores.rmse, scores.mse.sqrt());
    first.merge(&second);
    assert!((first.compute().r2 - scores.r2).abs() < 1e-9 * scores.r2.abs().max(1.0));
    // Equal targets, as in scikit-learn's r2_score.
    for (predicted, r2) in [([2.0, 2.0], 1.0), ([2.0, 3.0], 0.0)] {
        let mut errors = Regression::new();
        errors.update(Tensor::new(predicted)?, Tensor::new([2.0, 2.0])?)?;
        assert_eq!(errors.compute().r2, r2);
    }
    Ok(())
}

#[test]
fn nothing_and_nan() -> Result<()> {
    assert!(Mean::new().compute().is_nan() && Accuracy::new().compute().is_nan());
    assert!(Perplexity::new().compute().is_nan() && Regression::new().compute().mae.is_nan());
    let matrix = ConfusionMatrix::new(2);
    assert!(matrix.accuracy().is_nan() && matrix.scores(Average::Macro).f1.is_nan());
    for shown in [Mean::new().to_string(), Accuracy::new().to_string(), Perplexity::new().to_string()] {
        assert_eq!(shown, "-");
    }
    assert!(matrix.to_string().ends_with("accuracy - (0 of 0)"));
    assert!(ConfusionMatrix::new(0).to_string().contains("accuracy -"));
    let mut mean = Mean::new();
    mean.update(f64::NAN, 0)?;
    mean.update(2.0, 1)?;
    assert_eq!(mean.compute(), 2.0);
    mean.update(f64::NAN, 1)?;
    assert!(mean.compute().is_nan());
    let mut errors = Regression::new();
    errors.update(Tensor::new([f64::NAN, 1.0])?, Tensor::new([0.0, 1.0])?)?;
    let scores = errors.compute();
    assert!(scores.mae.is_nan() && scores.rmse.is_nan() && scores.r2.is_nan());
    // NaN is larger than any number, as in argmax.
    let logits = Tensor::new([[f64::NAN, 1.0], [f64::NAN, 1.0]])?;
    let (mut accuracy, mut matrix) = (Accuracy::new(), ConfusionMatrix::new(2));
    accuracy.update(&logits, Tensor::new([0, 1])?, 1)?;
    matrix.update(&logits, Tensor::new([0, 1])?, 1)?;
    assert_eq!((accuracy.compute(), matrix.accuracy()), (0.5, 0.5));
    Ok(())
}

#[test]
fn bad_arguments_are_errors_and_change_nothing() -> Result<()> {
    manual_seed(1);
    let logits = Tensor::randn([("N", 2), ("class", 3)])?;
    let named = |data: [i64; 2], name: &str| Tensor::new(data)?.refine_names([name]);
    let mut accuracy = Accuracy::new();
    for (target, dim, kind) in [
        (named([0, 1], "N")?, "clas", ErrorKind::NameNotFound),
        (named([0, 1], "time")?, "class", ErrorKind::NameMismatch),
        (Tensor::new([0, 1, 2])?, "class", ErrorKind::Shape),
        (Tensor::new([[0], [1]])?, "class", ErrorKind::Shape),
        (Tensor::new([0.0, 1.0])?, "class", ErrorKind::DType),
        (Tensor::new([0, 3])?, "class", ErrorKind::Index),
        (Tensor::new([0, -100])?, "class", ErrorKind::Index),
    ] {
        let mut matrix = ConfusionMatrix::new(3);
        let mut perplexity = Perplexity::new();
        for error in [
            accuracy.update(&logits, &target, dim).unwrap_err(),
            matrix.update(&logits, &target, dim).unwrap_err(),
            perplexity.update(&logits, &target, dim).unwrap_err(),
        ] {
            assert_eq!(error.kind(), kind, "{error}");
            assert_eq!(error.location().file(), file!(), "{error}");
        }
        assert_eq!((matrix, perplexity), (ConfusionMatrix::new(3), Perplexity::new()));
    }
    assert_eq!(accuracy, Accuracy::new());
    assert_eq!(accuracy.update(Tensor::new(1.0)?, Tensor::new(0)?, 0).unwrap_err().kind(), ErrorKind::Shape);
    let mut matrix = ConfusionMatrix::new(2);
    assert_eq!(matrix.update(&logits, Tensor::new([0, 1])?, "class").unwrap_err().kind(), ErrorKind::Shape);
    let [zero, two] = [Tensor::new([0])?, Tensor::new([2])?];
    assert_eq!(matrix.update_classes(&two, &zero).unwrap_err().kind(), ErrorKind::Index);
    assert_eq!(matrix.merge(&ConfusionMatrix::new(3)).unwrap_err().kind(), ErrorKind::Value);
    assert_eq!(matrix.names(["one"]).unwrap_err().kind(), ErrorKind::Value);
    let mut mean = Mean::new();
    for weight in [-1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(mean.update(1.0, weight).unwrap_err().kind(), ErrorKind::Value);
    }
    assert_eq!(mean.update(&logits, 1).unwrap_err().kind(), ErrorKind::Shape);
    let error = Regression::new().update(Tensor::zeros([2, 1])?, Tensor::zeros([2])?).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    Ok(())
}

/// The share of pairs of both classes in the right order, where equal scores count half.
fn share_of_pairs(scores: &[f64], target: &[i64]) -> f64 {
    let of =
        |class: i64| scores.iter().zip(target).filter(move |(_, y)| **y == class).map(|(score, _)| *score);
    let (mut points, mut pairs) = (0.0, 0.0);
    for positive in of(1) {
        for negative in of(0) {
            points += if positive > negative { 1.0 } else { f64::from(u8::from(positive == negative)) / 2.0 };
            pairs += 1.0;
        }
    }
    points / pairs
}

#[test]
fn the_area_under_the_roc_curve_is_exact() -> Result<()> {
    let inf = f64::INFINITY;
    let known: [(&[f64], &[i64], f64); 6] = [
        (&[0.1, 0.4, 0.35, 0.8], &[0, 0, 1, 1], 0.75), // the example of scikit-learn
        (&[0.5, 0.5, 0.5], &[0, 1, 1], 0.5),
        (&[1.0, 2.0, 2.0, 3.0], &[0, 0, 1, 1], 0.875),
        (&[3.0, 2.0], &[0, 1], 0.0),
        (&[-0.0, 0.0], &[0, 1], 0.5),
        (&[-inf, -1.0, 1.0, inf, inf], &[0, 1, 0, 0, 1], 3.5 / 6.0),
    ];
    for (scores, target, area) in known {
        let mut auc = RocAuc::new();
        auc.update(Tensor::from_slice(scores, [scores.len()])?, Tensor::from_slice(target, [target.len()])?)?;
        assert_eq!((auc.compute(), share_of_pairs(scores, target)), (area, area), "{scores:?}");
        let json = serde_json::to_string(&auc).unwrap();
        assert_eq!(serde_json::from_str::<RocAuc>(&json).unwrap(), auc);
    }

    manual_seed(3);
    let scores = Tensor::randint(0, 20, [("N", 200), ("time", 2)])?.to(DType::F32)?;
    let target = Tensor::randint(0, 2, [("time", 2), ("N", 200)])?;
    let (mut whole, mut first, mut second) = (RocAuc::new(), RocAuc::new(), RocAuc::new());
    whole.update(&scores, &target)?; // dims are found by name
    first.update(scores.narrow("N", 0, 50)?, target.narrow("N", 0, 50)?.to(DType::F32)?)?;
    second.update(scores.narrow("N", 50, 150)?, target.narrow("N", 50, 150)?.eq(1)?)?;
    first.merge(&second);
    let expected =
        share_of_pairs(&scores.to_vec::<f64>()?, &target.align_to(["N", "time"])?.to_vec::<i64>()?);
    assert_eq!((whole.compute(), first.compute(), first.count()), (expected, expected, 400));

    let before = whole.clone();
    let error = whole.update(Tensor::new([0.5, 0.5])?, Tensor::new([0, 2])?).unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()), "{error}");
    assert_eq!(whole.update(Tensor::ones([2])?, Tensor::ones([3])?).unwrap_err().kind(), ErrorKind::Shape);
    assert!(whole == before && RocAuc::new().compute().is_nan());
    whole.update(Tensor::new([f64::NAN])?, Tensor::new([1])?)?;
    assert!(whole.compute().is_nan() && whole.to_string() == "-");
    Ok(())
}

#[test]
fn points_of_the_curves_of_scores() -> Result<()> {
    manual_seed(4);
    let (scores, target) = (Tensor::randint(-5, 5, [300])?.to(DType::F64)?, Tensor::randint(0, 2, [300])?);
    let mut auc = RocAuc::new();
    auc.update(&scores, &target)?;
    let (points, samples) = (auc.points(), scores.to_vec::<f64>()?.into_iter().zip(target.to_vec::<i64>()?));
    let samples: Vec<(f64, i64)> = samples.collect();
    assert_eq!(points.len(), 11);
    for point in &points {
        let count = |class: i64, least: f64| {
            samples.iter().filter(|sample| sample.1 == class && sample.0 >= least).count() as f64
        };
        let all = f64::NEG_INFINITY;
        let (negative, positive) = (count(0, point.threshold), count(1, point.threshold));
        assert_eq!(point.false_positive_rate, negative / count(0, all));
        assert_eq!(point.recall, positive / count(1, all));
        let precision = if point.threshold.is_infinite() { 1.0 } else { positive / (negative + positive) };
        assert_eq!(point.precision, precision, "{point:?}");
    }
    let area = |pair: &[namegrad::train::meters::RocPoint]| {
        (pair[1].false_positive_rate - pair[0].false_positive_rate) * (pair[1].recall + pair[0].recall) / 2.0
    };
    assert!((points.windows(2).map(area).sum::<f64>() - auc.compute()).abs() < 1e-12);

    // The example of scikit-learn's `average_precision_score`.
    let mut auc = RocAuc::new();
    assert!(auc.points().is_empty() && auc.average_precision().is_nan());
    auc.update(Tensor::new([0.1, 0.4, 0.35, 0.8])?, Tensor::new([0, 0, 1, 1])?)?;
    assert!((auc.average_precision() - 0.8333333333333333).abs() < 1e-12);
    // Infinite scores and zeros of either sign.
    let mut auc = RocAuc::new();
    let scores = [f64::INFINITY, 0.0, -0.0, f64::NEG_INFINITY];
    auc.update(Tensor::new(scores)?, Tensor::new([1, 0, 1, 0])?)?;
    let thresholds: Vec<f64> = auc.points().iter().map(|point| point.threshold).collect();
    assert_eq!(thresholds, [f64::INFINITY, f64::INFINITY, 0.0, f64::NEG_INFINITY]);
    auc.update(Tensor::new([f64::NAN])?, Tensor::new([1])?)?;
    assert!(auc.points().is_empty() && auc.average_precision().is_nan());
    Ok(())
}

#[test]
fn several_meters_take_a_batch_at_once() -> Result<()> {
    let mut alone = (Accuracy::new(), ConfusionMatrix::new(CLASSES), Perplexity::new());
    let mut together = alone.clone();
    for (logits, target) in batches()? {
        alone.0.update(&logits, &target, "class")?;
        alone.1.update(&logits, &target, "class")?;
        alone.2.update(&logits, &target, "class")?;
        let meters = &mut together;
        update_all(&mut [&mut meters.0, &mut meters.1, &mut meters.2], &logits, &target, "class")?;
    }
    assert_eq!(together, alone);
    // One of them does not take the batch.
    let (logits, target) = &batches()?[0];
    let mut other = ConfusionMatrix::new(CLASSES + 1);
    let error = update_all(&mut [&mut together.0, &mut other], logits, target, "class").unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (ErrorKind::Shape, file!()), "{error}");
    assert_eq!(together, alone);
    Ok(())
}
