//! Rows of tables, and features that are standardized.

use namegrad::data::{Csv, Dataset, Samples, Standardize, Table, split};
use namegrad::prelude::*;

fn table() -> Result<Table> {
    let text = b"a,city,b\n1,Rome,0.1\n2,Oslo,0.1\n,Rome,0.1\n4,Bonn,0.1\n".to_vec();
    Csv::from_bytes(text).categories(["city"]).fill("a", f64::NAN).read()
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T>, kind: ErrorKind, text: &str) {
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.location().file()), (kind, file!()), "{error}");
    assert!(error.message().contains(text), "{error}");
}

/// Over several parts, and where the dims are not in front.
#[test]
fn channels_are_standardized_over_all_pixels() -> Result<()> {
    let x = Tensor::arange(0, 2 * 3 * 200_000, 1)?.to(DType::F32)?.reshape([
        ("N", 2),
        ("C", 3),
        ("W", 200_000),
    ])?;
    let scaler = Standardize::fit_over(&x, except("C"))?;
    let wide = x.to(DType::F64)?;
    assert!(scaler.mean().allclose(&wide.mean(except("C"))?)?);
    assert!(
        scaler
            .std()
            .allclose(&wide.sub(&wide.mean(keep(except("C")))?)?.square()?.mean(except("C"))?.sqrt()?)?
    );
    let turned = x.align_to(["W", "C", "N"])?;
    assert_eq!(Standardize::fit_over(&turned, ["N", "W"])?.mean().shape(), scaler.mean().shape());
    assert!(scaler.transform(&turned)?.align_as(&x)?.equal(&scaler.transform(&x)?)?);
    let all = Standardize::fit_over(&x, ..)?;
    assert_eq!(all.mean().to_vec::<f64>()?, [(2.0 * 3.0 * 200_000.0 - 1.0) / 2.0]);
    assert_eq!(all.transform(&x)?.shape(), x.shape());
    refused(Standardize::fit_over(&x, "H"), ErrorKind::NameNotFound, "'H' not found");
    refused(Standardize::fit_over(&x, 3), ErrorKind::DimRange, "range");
    Ok(())
}

#[test]
fn tables_are_printed_and_described() -> Result<()> {
    let table = table()?;
    assert_eq!(
        format!("{table:?}"),
        "Table of 4 rows: 'a' of numbers, 'city' of 3 categories, 'b' of numbers"
    );
    assert_eq!(
        table.to_string(),
        "  a  city    b\n  1  Rome  0.1\n  2  Oslo  0.1\nNaN  Rome  0.1\n  4  Bonn  0.1"
    );
    assert_eq!(table.head(9)?.len(), 4);
    refused(table.head(0), ErrorKind::Value, "no row is chosen");

    // As pandas describes these columns.
    let text = b"2.5,x,1\n-1e-7,x,1\n12345678.5,x,1\n0,x,\n3,x,\n";
    let csv = Csv::from_bytes(text).header(false).categories([1]).fill(2, f64::NAN);
    let statistics = csv.read()?.describe()?;
    let lines: Vec<String> = statistics.to_string().lines().map(str::to_string).collect();
    assert_eq!(lines[0], "column  count     mean      std    min  25%  50%  75%       max");
    assert_eq!(lines[1], "     0      5  2469137  5521155  -1e-7    0  2.5    3  12345678");
    assert_eq!(statistics.column("std")?.to_vec::<f32>()?[1], 0.0);
    let words = Csv::from_bytes(b"x\ny\n").categories(["x"]).read()?;
    refused(words.describe(), ErrorKind::Value, "no columns of numbers");
    Ok(())
}

/// A table of 1.46 MB was printed whole.
#[test]
fn long_and_wide_tables_are_printed_in_part() -> Result<()> {
    let line = |of: &dyn Fn(usize) -> String| (0..30).map(of).collect::<Vec<_>>().join(",") + "\n";
    let row = line(&|at| at.to_string());
    let table = Csv::from_bytes((line(&|at| format!("x{at}")) + &row.repeat(1000)).into_bytes()).read()?;
    let text = table.to_string();
    assert!(text.starts_with("x0  x1") && text.contains("x9  ...\n") && !text.contains("x10"), "{text}");
    assert!(text.ends_with("\n... and 950 more rows") && text.lines().count() == 52, "{text}");
    let text = format!("{table:?}");
    assert!(text.ends_with("'x19' of numbers, ...") && text.len() < 500, "{text}");
    assert_eq!(table.describe()?.to_string().lines().count(), 31);
    let subset = Samples::new((0..1000).collect::<Vec<i64>>()).subset(0..800)?;
    assert_eq!(format!("{subset:?}"), "Subset of 800 of 1000 samples");
    Ok(())
}

#[test]
fn columns_have_any_dtype_and_can_be_added() -> Result<()> {
    let table = table()?;
    let twice = table.column_in("b", DType::F64)?.mul(2.0)?;
    assert_eq!((twice.dtype(), twice.to_vec::<f64>()?), (DType::F64, vec![0.2; 4]));
    let more = table.with_column("c", &twice)?.with_column("city", table.category("city")?)?;
    assert_eq!(more.names(), ["a", "city", "b", "c"]);
    assert_eq!(more.rows([3])?.column("city")?.to_vec::<f32>()?, [0.0]);
    assert_eq!(more.with_column("c", Tensor::zeros([4])?)?.column("c")?.to_vec::<f32>()?, [0.0; 4]);
    assert_eq!(table.names().len(), 3, "the table itself stays");
    refused(table.column_in("a", DType::I64), ErrorKind::Value, "column 'a' has numbers that");
    refused(table.column_in("city", DType::I64), ErrorKind::Value, "has categories");
    refused(table.with_column("c", Tensor::zeros([3])?), ErrorKind::Shape, "[3], but the table has 4 rows");
    let plain = Csv::from_bytes(b"300\n").header(false).read()?;
    refused(plain.column_in(0, DType::U8), ErrorKind::Value, "has numbers that");
    refused(plain.with_column("c", Tensor::zeros([1])?), ErrorKind::Value, "without a header");
    Ok(())
}

#[test]
fn rows_keep_columns_and_categories() -> Result<()> {
    let table = table()?;
    let some = table.rows([3, 0, 0])?;
    assert_eq!((some.len(), some.column("a")?.to_vec::<f32>()?), (3, vec![4.0, 1.0, 1.0]));
    assert_eq!(some.category("city")?.to_vec::<i64>()?, [0, 2, 2]);
    assert_eq!(some.category_names("city")?, table.category_names("city")?);
    let oslo = table.rows_where(&table.category("city")?.eq(1)?)?;
    assert_eq!(oslo.column("a")?.to_vec::<f32>()?, [2.0]);
    let [one, other] = table.random_split([0.5, 0.5], 3)?;
    let mut all = [one.category("city")?.to_vec::<i64>()?, other.category("city")?.to_vec::<i64>()?].concat();
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 2]);

    refused(table.rows([0, 4]), ErrorKind::Index, "no row 4 in a table of 4");
    refused(table.rows([]), ErrorKind::Value, "no row is chosen");
    refused(table.rows_where(&table.column("b")?.gt(1)?), ErrorKind::Value, "no row is chosen");
    refused(table.rows_where(&table.column("a")?), ErrorKind::DType, "bool");
    refused(table.rows_where(&Tensor::ones([3])?.gt(0)?), ErrorKind::Shape, "[3], but the table has 4 rows");
    refused(table.random_split([3, 2], 0), ErrorKind::Value, "do not sum to 4");
    Ok(())
}

#[test]
fn folds_of_a_table_are_those_of_a_data_set() -> Result<()> {
    let text = (0..10).map(|n| format!("{n}\n")).collect::<String>();
    let table = Csv::from_bytes(format!("n\n{text}").into_bytes()).read()?;
    let folds = table.k_folds(4, 7)?;
    let data = Samples::new((0..10).map(|n| n as f32).collect()).k_folds(4, 7)?;
    assert_eq!((folds.len(), data.len()), (4, 4));
    for (fold, data) in folds.iter().zip(&data) {
        for (table, data) in fold.iter().zip(data) {
            let samples = (0..data.len()).map(|at| data.get(at)).collect::<Result<Vec<f32>>>()?;
            assert_eq!(table.column("n")?.to_vec::<f32>()?, samples);
        }
    }
    refused(table.k_folds(11, 0), ErrorKind::Value, "11 folds of 10 samples");
    Ok(())
}

#[test]
fn names_are_of_columns_that_are_there() -> Result<()> {
    let csv = || Csv::from_bytes(b"id,a,city\n1,2,Rome\n".to_vec()).categories([2]).skip([0]);
    let table = csv().read()?;
    assert_eq!(table.names(), ["a", "city"]);
    assert_eq!((table.numeric_columns(), table.category_columns()), (vec!["a"], vec!["city"]));
    assert_eq!(table.columns(table.numeric_columns())?.to_vec::<f32>()?, [2.0]);
    assert!(table.rows([0])?.names() == table.names());
    Ok(())
}

#[test]
fn missing_numbers_can_stay_missing() -> Result<()> {
    let a = table()?.column("a")?.to_vec::<f32>()?;
    assert!(a[2].is_nan(), "NaN, not the mean of the whole table");
    assert_eq!([a[0], a[1], a[3]], [1.0, 2.0, 4.0]);
    Ok(())
}

#[test]
fn features_are_standardized() -> Result<()> {
    let x = table()?.columns(["a", "b"])?; // [N=4, feature=2]
    let scaler = Standardize::fit(&x)?;
    let (mean, std) = (7.0 / 3.0, (14.0f64 / 9.0).sqrt()); // of 1, 2, 4
    let close = |x: &Tensor, y: &[f64]| -> Result<bool> {
        let x = x.to(DType::F64)?.to_vec::<f64>()?;
        Ok(x.len() == y.len()
            && x.iter().zip(y).all(|(x, y)| (x - y).abs() < 1e-6 || x.is_nan() && y.is_nan()))
    };
    assert!(close(scaler.mean(), &[mean, 0.1f32.into()])?);
    assert!(close(scaler.std(), &[std, 1.0])?, "a constant feature");
    let z = |a: f64| (a - mean) / std;
    let y = scaler.transform(&x)?;
    assert_eq!((y.dtype(), y.shape()), (DType::F32, x.shape()));
    assert!(close(&y, &[z(1.0), 0.0, z(2.0), 0.0, f64::NAN, 0.0, z(4.0), 0.0])?);
    assert!(close(&scaler.inverse(&y)?.select("feature", 0)?, &[1.0, 2.0, f64::NAN, 4.0])?);
    // The features are found by name: in another order of dims, and in a single sample.
    let turned = scaler.transform(&x.align_to(["feature", "N"])?)?;
    assert!(close(&turned.select("feature", 0)?, &[z(1.0), z(2.0), f64::NAN, z(4.0)])?);
    assert!(close(&scaler.transform(&Tensor::new([4.0, 0.1])?.refine_names(["feature"])?)?, &[z(4.0), 0.0])?);
    assert_eq!(Standardize::fit(&x.align_to(["feature", "N"])?)?, scaler);

    // Without names, integers, and a column of targets.
    let unnamed = Standardize::fit(&Tensor::new([[1i64, 0], [3, 0]])?)?;
    let y = unnamed.transform(&Tensor::new([[5i64, 1]])?)?;
    assert_eq!((y.dtype(), y.to_vec::<f32>()?), (DType::F32, vec![3.0, 1.0]));
    let targets = Standardize::fit(&Tensor::new([1.0, 3.0])?.refine_names(["N"])?)?;
    let mut prediction = Tensor::new([[0.5], [-1.0]])?.refine_names(["N", "price"])?;
    prediction.requires_grad_(true)?;
    let price = targets.inverse(&prediction)?;
    assert_eq!(price.to_vec::<f32>()?, [2.5, 1.0]);
    price.sum(..)?.backward()?;
    assert_eq!(prediction.grad().unwrap().to_vec::<f32>()?, [1.0, 1.0]);
    let half = targets.transform(&Tensor::new([5.0])?.to(DType::BF16)?)?;
    assert_eq!((half.dtype(), half.to(DType::F32)?.item::<f32>()?), (DType::BF16, 3.0));

    refused(Standardize::fit(&x.rename(["row", "feature"])?), ErrorKind::NameNotFound, "'N' not found");
    refused(Standardize::fit(&x.mul(f64::NAN)?), ErrorKind::Value, "only missing values");
    let some = x.div(Tensor::new([1.0, 0.0])?.refine_names(["feature"])?)?; // infinite
    let some = some.masked_fill(&some.isinf()?, f64::NAN)?;
    refused(Standardize::fit(&some), ErrorKind::Value, "feature 1 (from 0) has only missing values");
    let both = Tensor::full([("N", 2), ("C", 1), ("W", 2)], f64::NAN)?;
    refused(Standardize::fit(&both), ErrorKind::Value, "C 0, W 0 and C 0, W 1 (from 0) have only missing");
    refused(Standardize::fit(&both.select("C", 0)?.select("W", 0)?), ErrorKind::Value, "only missing values");
    refused(Standardize::fit(&Tensor::zeros([0, 2])?), ErrorKind::Value, "no values");
    refused(Standardize::fit(&Tensor::new([1.0, f64::INFINITY])?), ErrorKind::Value, "infinite");
    let other = Tensor::zeros([("N", 4), ("feature", 3)])?;
    refused(
        scaler.transform(&other),
        ErrorKind::Shape,
        "fitted to samples of [feature=2], got [N=4, feature=3]",
    );
    refused(scaler.inverse(&Tensor::zeros([4, 2])?), ErrorKind::Shape, "[feature=2]");
    refused(
        unnamed.transform(&Tensor::zeros([4, 3])?),
        ErrorKind::Shape,
        "fitted to samples of [2], got [4, 3]",
    );
    Ok(())
}

/// The number of samples of each label in a part.
fn counts(labels: &[i64], part: &[usize]) -> Vec<usize> {
    let most = labels.iter().max().map_or(0, |label| *label as usize + 1);
    let mut counts = vec![0; most];
    part.iter().for_each(|sample| counts[labels[*sample] as usize] += 1);
    counts
}

/// The parts together have each sample once.
#[track_caller]
fn are_all(len: usize, parts: &[Vec<usize>]) {
    let mut all = parts.concat();
    all.sort_unstable();
    assert_eq!(all, (0..len).collect::<Vec<_>>());
}

#[test]
fn classes_have_the_same_shares_in_all_parts() -> Result<()> {
    // 100 of 0, 10 of 1, 3 of 2, one of each of the others.
    let mut labels: Vec<i64> = [[0; 100].as_slice(), &[1; 10], &[2; 3]].concat();
    labels.extend(3..40);
    let total = counts(&labels, &(0..150).collect::<Vec<_>>());
    for seed in 0..20 {
        let [train, test] = split::stratified(&labels, [0.8, 0.2], seed)?;
        assert_eq!((train.len(), test.len()), (120, 30));
        are_all(150, &[train, test.clone()]);
        for (count, of) in counts(&labels, &test).iter().zip(&total).take(3) {
            assert!((*count as f64 - 0.2 * *of as f64).abs() <= 4.0, "{seed}: {count} of {of}");
        }
        let single = counts(&labels, &test)[3..].iter().sum::<usize>();
        assert!((1..=15).contains(&single), "seed {seed}: {single} of 37 single samples in the test");
        let folds = split::stratified_folds(&labels[..110], 5, seed)?;
        for [train, test] in &folds {
            are_all(110, &[train.clone(), test.clone()]);
            let [many, few] = counts(&labels[..110], test)[..] else { unreachable!() };
            assert!((19..=21).contains(&many) && (1..=3).contains(&few), "{seed}: {many} and {few}");
        }
        are_all(110, &tests_of(&folds));
    }
    assert_eq!(split::stratified(&labels, [100, 50], 3)?, split::stratified(&labels, [100, 50], 3)?);
    assert_ne!(split::stratified(&labels, [100, 50], 3)?, split::stratified(&labels, [100, 50], 4)?);
    refused(split::stratified(&labels, [0.5, 0.4], 0), ErrorKind::Value, "sum to 1");
    refused(split::stratified_folds(&labels, 1, 0), ErrorKind::Value, "1 folds of 150 samples");
    Ok(())
}

fn tests_of(folds: &[[Vec<usize>; 2]]) -> Vec<Vec<usize>> {
    folds.iter().map(|[_, test]| test.clone()).collect()
}

#[test]
fn a_group_is_in_one_part() -> Result<()> {
    let groups: Vec<i64> = (0..200).map(|sample: i64| sample * sample % 37).collect();
    for seed in 0..10 {
        let [train, valid, test] = split::grouped(&groups, [0.7, 0.2, 0.1], seed)?;
        are_all(200, &[train.clone(), valid.clone(), test.clone()]);
        for (part, length) in [(&train, 140), (&valid, 40), (&test, 20)] {
            assert!(part.len().abs_diff(length) <= 11, "seed {seed}: {} of {length}", part.len());
        }
        let parts = [train, valid, test].map(|part| counts(&groups, &part));
        for group in 0..37 {
            assert!(parts.iter().filter(|part| part.get(group).is_some_and(|count| *count > 0)).count() <= 1);
        }
        let folds = split::grouped_folds(&groups, 4, seed)?;
        are_all(200, &tests_of(&folds));
        for [train, test] in &folds {
            are_all(200, &[train.clone(), test.clone()]);
            let (train, test) = (counts(&groups, train), counts(&groups, test));
            assert!(train.iter().zip(&test).all(|(train, test)| *train == 0 || *test == 0));
            assert!((44..=55).contains(&test.iter().sum::<usize>()), "seed {seed}: {test:?}");
        }
    }
    // One large group: the others still fill the other parts.
    let [train, test] = split::grouped(&[0, 0, 0, 0, 0, 0, 0, 0, 1], [1, 8], 0)?;
    assert_eq!((train, test.len()), (vec![8], 8));
    let [one, two, three] = split::grouped(&[5, 5, 5, 5, 5, 5, 6, 7], [6, 1, 1], 0)?;
    assert_eq!((one.len(), two.len(), three.len()), (6, 1, 1));
    refused(split::grouped(&[1, 1, 2], [1, 1, 1], 0), ErrorKind::Value, "2 groups of 3 samples");
    refused(split::grouped_folds(&[1, 1, 1], 2, 0), ErrorKind::Value, "1 groups of 3 samples");
    Ok(())
}

#[test]
fn later_samples_are_tested_on() -> Result<()> {
    for (len, k, gap) in [(10, 3, 0), (10, 4, 1), (100, 7, 5), (4, 1, 0)] {
        let folds = split::ordered_folds(len, k, gap)?;
        assert_eq!((folds.len(), folds[k - 1][1].last()), (k, Some(&(len - 1))));
        for [train, test] in &folds {
            assert_eq!((train[0], test.len()), (0, len / (k + 1)));
            assert_eq!(train[train.len() - 1] + 1 + gap, test[0]);
        }
    }
    for (len, k, gap) in [(10, 0, 0), (10, 10, 0), (10, usize::MAX, 0), (10, 4, 2), (0, 1, 0)] {
        refused(split::ordered_folds(len, k, gap), ErrorKind::Value, "a part would be empty");
    }
    refused(split::ordered::<2>(5, [0.0, 1.0]), ErrorKind::Value, "empty");
    Ok(())
}

#[test]
fn dates_and_times_are_numbers() -> Result<()> {
    let text = b"day,at,x\n2024-02-29,2024-02-29T12:30:00Z,1\n1969-12-31,1970-01-01 00:00:00.25+00:00,2\n,2024-03-01,3\n";
    let csv = Csv::from_bytes(text.as_slice()).dates(["day"]).times(["at"]);
    let table = csv.clone().fill("day", f64::NAN).read()?;
    assert_eq!(format!("{table:?}"), "Table of 3 rows: 'day' of dates, 'at' of times, 'x' of numbers");
    assert_eq!(
        table.to_string(),
        "       day                       at  x\n2024-02-29      2024-02-29 12:30:00  1\n1969-12-31  1970-01-01 00:00:00.250  2\n       NaN      2024-03-01 00:00:00  3"
    );
    assert_eq!(table.column_in("at", DType::F64)?.to_vec::<f64>()?, [1_709_209_800.0, 0.25, 1_709_251_200.0]);
    assert_eq!(table.head(2)?.column_in("day", DType::I64)?.to_vec::<i64>()?, [19_782, -1]);
    assert_eq!(table.numeric_columns(), ["day", "at", "x"]);
    let groups = table.group_by("day")?;
    assert_eq!(
        groups.iter().map(|(day, _)| day.as_str()).collect::<Vec<_>>(),
        ["1969-12-31", "2024-02-29", "NaN"]
    );
    let kind = ErrorKind::Format;
    refused(csv.read(), kind, "line 4, column 'day': the value is missing");
    let wrong = Csv::from_bytes(b"day\n2023-02-29\n").dates(["day"]);
    refused(wrong.read(), kind, "line 2, column 'day': '2023-02-29' is not a date such as 2024-02-29");
    let times = Csv::from_bytes(b"day\n2023-02-28T10:00\n").dates(["day"]);
    assert_eq!(times.read().unwrap_err().repair(), Some(".times([\"day\"])"));
    assert_eq!(times.times(["day"]).read()?.len(), 1);
    refused(Csv::from_bytes(b"at\n25:00\n").times(["at"]).read(), kind, "'25:00' is not a time");
    // A derived column in place of one of dates has numbers.
    let derived = table.with_column("day", table.column("x")?)?;
    assert_eq!(format!("{derived:?}"), "Table of 3 rows: 'day' of numbers, 'at' of times, 'x' of numbers");
    Ok(())
}

#[test]
fn rows_are_grouped_and_counted() -> Result<()> {
    let table = table()?;
    assert_eq!(table.value_counts("city")?, [("Rome".into(), 2), ("Bonn".into(), 1), ("Oslo".into(), 1)]);
    let groups = table.group_by("city")?;
    let sizes: Vec<(&str, usize)> = groups.iter().map(|(name, rows)| (name.as_str(), rows.len())).collect();
    assert_eq!(sizes, [("Bonn", 1), ("Oslo", 1), ("Rome", 2)]);
    assert_eq!(groups[2].1.column("a")?.to_vec::<f32>()?[0], 1.0);
    assert_eq!(table.value_counts("b")?, [("0.1".into(), 4)]);
    let by_number: Vec<String> = table.group_by("a")?.into_iter().map(|(name, _)| name).collect();
    assert_eq!(by_number, ["1", "2", "4", "NaN"]);
    // As sums over segments.
    let mean = table.column("b")?.segment_mean(&table.category("city")?, "N", ("city", 3))?;
    assert!(mean.allclose(&Tensor::full(("city", 3), 0.1)?)?);
    // Categories without rows are no groups.
    let one = table.rows([0])?;
    assert_eq!(one.value_counts("city")?, [("Rome".into(), 1)]);
    refused(table.value_counts("town"), ErrorKind::Value, "no column 'town'");
    refused(table.group_by(7), ErrorKind::Value, "no column 7");
    let skipped = Csv::from_bytes(b"a,b\n1,2\n").skip(["a"]).read()?;
    refused(skipped.group_by("a"), ErrorKind::Value, "was skipped");
    Ok(())
}
