//! Pictures: what is in the files, and values that are hard to draw.

use crate::common::Scratch;
use namegrad::prelude::*;
use namegrad::train::log::{Histogram, History};
use namegrad::train::lr_finder::LrFinder;
use namegrad::train::meters::ConfusionMatrix;
use namegrad::train::pictures::{Chart, Figure, Images, Matrix};
use std::fs;

fn history() -> Result<History> {
    let mut history = History::new();
    for epoch in 1..=60 {
        history.push("train", epoch, 2.0 / f64::from(epoch))?;
        history.push("test", epoch, 0.2 + 2.0 / f64::from(epoch))?;
        history.push("accuracy", epoch, 1.0 - 0.9 / f64::from(epoch))?;
    }
    Ok(history)
}

/// The pixels of a PNG file, and their width.
fn pixels(png: &[u8]) -> (usize, Vec<[u8; 3]>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let (width, height) = (reader.info().width as usize, reader.info().height as usize);
    let mut bytes = vec![0; width * height * 3];
    reader.next_frame(&mut bytes).unwrap();
    (width, bytes.as_chunks().0.to_vec())
}

fn matrix() -> Result<ConfusionMatrix> {
    let mut matrix = ConfusionMatrix::new(3).names(["cat", "dog", "a long name"])?;
    matrix.update_classes(Tensor::new([0, 1, 1, 2, 2, 2])?, Tensor::new([0, 1, 0, 2, 2, 1])?)?;
    Ok(matrix)
}

fn figure() -> Result<Figure> {
    let history = history()?;
    let plane = Tensor::rand([("H", 4), ("W", 6), ("C", 3)])?.mul(0.5)?.add(0.5)?;
    let scatter = Chart::new("plane")
        .image(&plane, [-1.0, 1.0], [-1.0, 1.0])?
        .points("a", [(0.0, 0.5), (0.5, -0.5)])
        .points("b", [(-0.5, 0.25)]);
    let weights = Histogram::new(Tensor::randn([1000])?, 30)?;
    let digits = Tensor::rand([("N", 4), ("H", 8), ("W", 8)])?;
    let weight = Parameter::new(Tensor::new([2.0, -1.0])?)?;
    let mut optimizer = Sgd::builder([weight.clone()]).lr(0.1).build()?;
    let curve =
        LrFinder::new().run(&Sequential::new(), &mut optimizer, |_| weight.tensor().square()?.sum(..))?;
    Ok(Figure::new("digits & <letters>")
        .columns(3)
        .panel(Chart::of(&history, ["train", "test"])?.x_label("epoch").y_label("loss"))
        .panel(Chart::of(&history, ["accuracy"])?.x_label("epoch").y_label("accuracy (%)").log_y(true))
        .panel(curve.chart())
        .panel(scatter)
        .panel(Chart::new("weights").histogram("layer 1", &weights))
        .panel(Matrix::new("confusion", &matrix()?))
        .panel(Images::new().row(&digits)?.row(&digits)?))
}

#[test]
fn a_figure_has_its_words() -> Result<()> {
    manual_seed(1);
    let folder = Scratch::new("pictures");
    fs::create_dir_all(folder.path()).unwrap();
    let (svg, png) = (folder.path().join("figure.svg"), folder.path().join("figure.PNG"));
    figure()?.save(&svg)?;
    figure()?.save(&png)?;
    let text = fs::read_to_string(&svg).unwrap();
    assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
    let words: Vec<&str> = text.lines().map(str::trim).collect();
    for word in [
        "digits &amp; &lt;letters&gt;",
        "epoch",
        "loss",
        "accuracy (%)",
        "train",
        "test",
        "learning rate",
        "layer 1",
        "cat",
        "predicted",
        "a long name",
    ] {
        assert!(words.contains(&word), "{word} is missing");
    }
    let (width, pixels) = pixels(&fs::read(&png).unwrap());
    assert!(width > 3 * 560 - 1 && pixels.iter().filter(|color| **color == [31, 119, 180]).count() > 100);
    Ok(())
}

/// Letters are drawn in PNG files without any font of the system.
#[test]
fn texts_are_in_png_files() -> Result<()> {
    let dark = |title: &str| -> Result<usize> {
        let (width, pixels) = pixels(&Chart::new(title).to_png()?);
        Ok(pixels[..width * 40].iter().filter(|color| color.iter().all(|part| *part < 100)).count())
    };
    let (without, with) = (dark("")?, dark("loss of W, x² and µ")?);
    assert!(with > without + 100, "{without} {with}");
    Ok(())
}

#[test]
fn any_values_can_be_drawn() -> Result<()> {
    for values in [
        &[][..],
        &[0.5],
        &[0.5, 0.5],
        &[0.0, 0.0, 0.0],
        &[-3.0, -3.0],
        &[1.0, 1.0 + f64::EPSILON],
        &[1e-300],
        &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY],
        &[0.5, f64::NAN, 1e20, f64::MAX, f64::MIN, 1e-300],
        &[1e-8, 1e8],
    ] {
        for log in [false, true] {
            let points = || (0..).zip(values.iter().copied());
            let chart = Chart::new("a")
                .line("line", points().map(|(x, y)| (f64::from(x), y)))
                .points("points", points())
                .points("turned", values.iter().map(|x| (*x, 1.0)))
                .histogram("bars", &Histogram::new(Tensor::from_slice(values, [values.len()])?, 5)?)
                .log_x(log)
                .log_y(log);
            chart.to_svg()?;
            chart.to_png()?;
        }
    }
    Chart::new("ends")
        .x_range(3.0, 3.0)
        .y_range(f64::NAN, 1.0)
        .line("", [(1.0, 2.0), (4.0, 1e9)])
        .to_svg()?;
    Figure::new("").to_png()?;
    Images::new().to_png()?;
    Images::new().row(Tensor::zeros([("N", 0), ("H", 2), ("W", 2)])?)?.to_svg()?;
    Matrix::new("empty", &ConfusionMatrix::new(0)).to_png()?;
    Matrix::new("nothing", &ConfusionMatrix::new(2)).to_svg()?;
    Ok(())
}

#[test]
fn a_gap_divides_a_line() -> Result<()> {
    let lines = |values: &[f64]| -> Result<usize> {
        let points = (0..).zip(values.iter().copied()).map(|(x, y)| (f64::from(x), y));
        let svg = Chart::new("").line("", points).to_svg()?;
        Ok(svg.matches("<polyline").filter(|_| true).count())
    };
    let whole = lines(&[1.0, 2.0, 3.0, 4.0])?;
    assert_eq!(lines(&[1.0, f64::NAN, 3.0, 4.0])?, whole + 1);
    Ok(())
}

#[test]
fn pixels_have_their_colors() -> Result<()> {
    let image = Tensor::new([[[0.0, 1.0], [2.0, f64::NAN]]])?.refine_names(["C", "H", "W"])?;
    let (width, pixels) = pixels(&Images::new().scale(2).row(&image)?.to_png()?);
    let at = |x: usize, y: usize| pixels[y * width + x][0];
    assert_eq!((width, [at(6, 6), at(9, 6), at(6, 9), at(8, 8)]), (16, [0, 255, 255, 0]));
    Ok(())
}

#[test]
fn bad_arguments_are_errors() -> Result<()> {
    let folder = Scratch::new("pictures-bad");
    fs::create_dir_all(folder.path()).unwrap();
    let chart = Chart::new("a");
    for name in ["a.jpg", "a", ".svg"] {
        let error = chart.save(folder.path().join(name)).unwrap_err();
        assert_eq!((error.kind(), error.op(), error.location().file()), (ErrorKind::Value, "save", file!()));
    }
    assert_eq!(chart.save(folder.path().join("none/a.svg")).unwrap_err().kind(), ErrorKind::Io);
    for (width, height) in [(0, 100), (100, 0), (u32::MAX, 100)] {
        assert_eq!(Chart::new("a").size(width, height).to_png().unwrap_err().kind(), ErrorKind::Value);
    }
    for (width, height) in [(1, 1), (3, 50), (50, 3), (80, 80)] {
        Chart::new("small").size(width, height).line("a", [(0.0, 1.0)]).to_png()?;
        Chart::new("small").size(width, height).line("a", [(0.0, 1.0)]).to_svg()?;
    }
    assert!(Chart::of(&history()?, ["train"])?.title("Digits").to_svg()?.contains("Digits"));
    let error = Chart::of(&history()?, ["trian"]).unwrap_err();
    assert!(error.to_string().contains("'train'") && error.location().file() == file!(), "{error}");
    let flat = Tensor::zeros([("N", 2), ("pixels", 9)])?;
    assert!(Images::new().row(&flat).is_err());
    assert!(Chart::new("").image(&flat, [0.0, 1.0], [0.0, 1.0]).is_err());
    Ok(())
}

#[test]
fn smooth_lines_have_the_lines_behind_them() -> Result<()> {
    let noisy = |scale: f64| (0..100).map(move |step| (step, scale * f64::from(step * 37 % 11)));
    let plain = Chart::new("").line("a", noisy(1.0)).line("b", noisy(2.0)).points("c", noisy(1.0));
    let lines = |svg: &str| svg.matches("<polyline").count();
    let before = plain.to_svg()?;
    let smooth = plain.clone().smooth(0.9)?.to_svg()?;
    assert_eq!(lines(&smooth), lines(&before) + 2);
    assert_eq!(smooth.matches("opacity=\"0.25\"").count(), 2);
    // The lines themselves are where they were, and the legend has each name once.
    let raw: Vec<&str> = before.lines().filter(|line| line.contains("stroke-width=\"2\"")).collect();
    assert_eq!(raw.len(), 2);
    for line in raw {
        assert!(smooth.contains(line.split("points=").nth(1).unwrap()));
    }
    assert_eq!((smooth.matches("\na\n").count(), before.matches("\na\n").count()), (1, 1));
    assert_eq!(plain.clone().smooth(0.0)?.to_svg()?, before);
    for weight in [1.0, -0.1, f64::NAN] {
        let error = plain.clone().smooth(weight).unwrap_err();
        assert_eq!((error.kind(), error.location().file()), (ErrorKind::Value, file!()), "{error}");
    }
    Ok(())
}
