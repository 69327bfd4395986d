//! Ranks that fail, or call different functions: all end, with one error.

use crate::{Outcome, Program, models, output_of};
use namegrad::core::{DType, Device};
use namegrad::data::sampler::InOrder;
use namegrad::data::{Dataset, Loader, Samples};
use namegrad::prelude::*;
use namegrad_dist::{Group, Mesh, Reduction};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

const SEVERAL: &[usize] = &[2, 4];

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "different-names",
        ranks: SEVERAL,
        run: |group| {
            let x = Tensor::ones([("N", 2), (if group.rank() == 1 { "K" } else { "C" }, 3)])?;
            group.all_reduce(&x, Reduction::Sum)?;
            Ok(())
        },
        error: Some("rank 1: all_reduce(Sum) of [N=2, K=3] float32 at tests/ranks/failures.rs"),
    },
    Program {
        name: "different-sizes",
        ranks: SEVERAL,
        run: |group| {
            group.all_gather(&Tensor::ones([("N", 2), ("C", 3 + group.rank() % 2)])?, "N")?;
            Ok(())
        },
        error: Some("the ranks differ"),
    },
    Program {
        name: "different-dtypes",
        ranks: SEVERAL,
        run: |group| {
            let dtype = if group.rank() == 0 { DType::F64 } else { DType::BF16 };
            let x = Tensor::ones([("N", 2)])?.to(dtype)?;
            group.start_broadcast(&x, 0)?.wait()?;
            Ok(())
        },
        error: Some("rank 0: broadcast(rank 0) of [N=2] float64"),
    },
    Program {
        name: "different-functions",
        ranks: SEVERAL,
        run: |group| {
            let x = Tensor::ones([("N", 4)])?;
            match group.rank() {
                0 => group.reduce_scatter(&x, "N", Reduction::Sum)?,
                _ => group.all_reduce(&x, Reduction::Mean)?,
            };
            Ok(())
        },
        error: Some("rank 0: reduce_scatter(dim 0, Sum) of [N=4] float32"),
    },
    Program {
        name: "different-ends",
        ranks: SEVERAL,
        run: |group| {
            for _ in 0..2 + group.rank() / (group.size() - 1) {
                group.all_reduce(&Tensor::ones([2])?, Reduction::Sum)?;
            }
            Ok(())
        },
        error: Some("the end of the program"),
    },
    Program {
        name: "an-error",
        ranks: SEVERAL,
        run: |group| match group.rank() {
            1 => Err("the disk is full".into()),
            _ => {
                group.barrier()?;
                Ok(())
            }
        },
        error: Some("error: rank 1 of "),
    },
    Program {
        name: "a-panic",
        ranks: SEVERAL,
        run: |group| match group.rank() {
            1 => panic!("a bug"),
            _ => {
                group.barrier()?;
                Ok(())
            }
        },
        error: Some("panicked: a bug"),
    },
    Program {
        name: "a-panic-in-a-worker",
        ranks: SEVERAL,
        run: |group| {
            let is_second = group.rank() == 1;
            let data = Samples::new((0..24).collect::<Vec<i64>>()).map(move |n: i64| {
                assert!(!(is_second && n == 17), "a bug in the data");
                Ok(n)
            });
            let sampler = group.sampler(InOrder);
            let loader = Loader::builder(data).batch_size(2).workers(2).sampler(sampler).build()?;
            for batch in loader.iter() {
                group.all_reduce(&batch?, Reduction::Sum)?;
            }
            Ok(())
        },
        error: Some("sample 17 panicked: a bug in the data"),
    },
    Program {
        name: "different-data",
        ranks: SEVERAL,
        run: |group| {
            let samples = if group.rank() == 1 { 9 } else { 16 };
            let data = Samples::new((0..samples).collect::<Vec<i64>>());
            let loader = Loader::builder(data).batch_size(1).sampler(group.sampler(InOrder)).build()?;
            for batch in loader.iter() {
                group.all_reduce(&batch?, Reduction::Sum)?;
            }
            Ok(())
        },
        error: Some("rank 1: the end of the program"),
    },
    Program {
        name: "a-killed-rank",
        ranks: SEVERAL,
        run: |group| {
            if group.rank() == 1 {
                let own = std::process::id().to_string();
                std::process::Command::new("kill").args(["-9", &own]).status()?;
            }
            group.barrier()?;
            Ok(())
        },
        error: Some("process rank 1 "),
    },
    Program {
        name: "a-rank-that-never-comes",
        ranks: &[4],
        run: |group| match group.rank() {
            1 => {
                std::thread::sleep(Duration::from_secs(30));
                Ok(())
            }
            _ => {
                group.timeout(Duration::from_secs(1)).barrier()?;
                Ok(())
            }
        },
        error: Some(
            "error: rank 0 of 4: Group: waited 1 s for the other ranks: ranks 0, 2, 3 wait in barrier over 4 ranks, at \
             tests/ranks/failures.rs",
        ),
    },
    Program {
        name: "different-axes",
        ranks: &[4],
        run: |group| {
            let mesh = Mesh::on(&group.timeout(Duration::from_secs(1)), [("data", 2), ("model", 2)])?;
            let x = Tensor::ones([("N", 4)])?;
            let axis = if group.rank() == 3 { "model" } else { "data" };
            mesh.axis(axis)?.all_reduce(&x, Reduction::Sum)?;
            Ok(())
        },
        error: Some(
            "rank 1 waits in all_reduce(Sum) of [N=4] float32 over 'data', at tests/ranks/failures.rs",
        ),
    },
    Program {
        name: "an-early-end-of-a-sub-group",
        ranks: &[4],
        run: |group| {
            let pair = group.split(group.rank() % 2)?;
            if group.rank() != 3 {
                pair.all_reduce(&Tensor::ones([4])?, Reduction::Sum)?;
            }
            Ok(())
        },
        error: Some(
            "rank 1 waits in all_reduce(Sum) of [4] float32 over 2 ranks, at tests/ranks/failures.rs",
        ),
    },
    Program {
        name: "axes-in-another-order",
        ranks: &[4],
        run: |group| {
            let mesh = Mesh::on(&group.timeout(Duration::from_secs(1)), [("data", 2), ("model", 2)])?;
            let x = Tensor::ones([("N", 4)])?;
            for axis in if matches!(group.rank(), 1 | 2) { ["model", "data"] } else { ["data", "model"] } {
                mesh.axis(axis)?.checked(false).all_reduce(&x, Reduction::Sum)?;
            }
            Ok(())
        },
        error: Some("ranks 1, 2 wait in all_reduce over 'model', at tests/ranks/failures.rs"),
    },
    Program { name: "bad-input", ranks: SEVERAL, run: bad_input, error: None },
];

fn bad_input(group: &Group) -> Outcome {
    let alone = group.on_first(|| group.all_reduce(&Tensor::ones([2])?, Reduction::Sum).map(drop));
    let alone = alone.expect_err("an exchange of one rank").to_string();
    assert!(alone.contains("rank 0 alone runs the function"), "{alone}");
    let number = Tensor::new(2.0)?;
    for error in [group.all_gather(&number, 0), group.all_to_all(&number, 0, 0)] {
        assert_eq!(error.expect_err("no dim").kind(), ErrorKind::Shape);
    }
    let x = Tensor::ones([("N", 2 * group.size() + 1)])?;
    let error = group.reduce_scatter(&x, "N", Reduction::Sum).expect_err("no multiple");
    assert_eq!(error.kind(), ErrorKind::Shape);
    assert!(error.to_string().contains("dim 'N' of size"), "{error}");
    let meta = TensorOptions::new().device(Device::Meta).zeros([("N", 4)])?;
    let errors = [group.all_reduce(&meta, Reduction::Sum).map(drop), group.send(&meta, 1 - group.rank() % 2)];
    for error in errors.map(|result| result.expect_err("no elements")) {
        assert!(error.to_string().contains("meta"), "{error}");
    }
    let kinds = [
        group.all_gather(&x, "C").expect_err("no dim").kind(),
        group.broadcast(&x, group.size()).expect_err("no rank").kind(),
        group.all_reduce(&x.to(DType::I32)?, Reduction::Mean).expect_err("no float").kind(),
        group.all_reduce(&x.to(DType::Bool)?, Reduction::Sum).expect_err("no number").kind(),
    ];
    assert_eq!(kinds, [ErrorKind::NameNotFound, ErrorKind::Value, ErrorKind::DType, ErrorKind::DType]);
    Ok(())
}

/// A run that ends at a random step, as its last rank is killed or its first one has no room for a checkpoint,
/// ends at once on all ranks. It goes on from its last checkpoint to the same bits as a run that was not
/// interrupted, or on another number of ranks.
pub(crate) fn resumed(ranks: usize, is_full: bool) -> Result<(), String> {
    let nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").subsec_nanos();
    let random = nanos as usize / 1000;
    // The first checkpoint of a full disk is whole.
    let step = if is_full { 4 + random % (models::STEPS - 3) } else { 1 + random % models::STEPS };
    let (variable, named) = match is_full {
        true => (models::FULL_AT, "error: rank 0 of ".to_string()),
        false => (models::KILL_AT, format!("process rank {} ", ranks - 1)),
    };
    let base = std::env::temp_dir().join(format!("namegrad-dist-{}-{ranks}-{is_full}", std::process::id()));
    let [whole, broken] = ["whole", "broken"].map(|name| base.join(name).display().to_string());
    let run_on = |ranks: usize, folder: &str, more: &[(&str, &str)]| {
        let variables = [&[(models::FOLDER, folder)], more].concat();
        output_of("resumable", ranks, &variables)
    };
    let run = |folder: &str, more: &[(&str, &str)]| run_on(ranks, folder, more);
    let expect = |what: &str, holds: bool, text: &str| match holds {
        true => Ok(()),
        false => Err(format!("FAILED: {what}, {variable} {step}\n{text}")),
    };
    let started = Instant::now();
    let ended = run(&broken, &[(variable, &step.to_string())])?;
    let is_named = !ended.succeeded && ended.text.matches(&named).count() == 1;
    expect("the others end", is_named && started.elapsed() < Duration::from_secs(20), &ended.text)?;
    if is_full {
        expect("the reason", ended.text.contains("File too large"), &ended.text)?;
        let names = std::fs::read_dir(&broken).map_err(|error| error.to_string())?;
        let names = names.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut steps: Vec<String> =
            names.filter(|name| name.contains("step") || name.contains("tmp")).collect();
        steps.sort();
        let kept: Vec<String> =
            (1..=(step - 1) / 3).map(|third| format!("step-{:08}.safetensors", 3 * third)).collect();
        expect("no half-written file", steps == kept, &steps.join(" "))?;
    }
    for (what, folder) in [("a whole run", &whole), ("a resumed run", &broken)] {
        let output = run(folder, &[])?;
        expect(what, output.succeeded, &output.text)?;
    }
    let end = |folder: &str| std::fs::read(Path::new(folder).join("end.safetensors")).unwrap_or_default();
    expect("the same bits", !end(&whole).is_empty() && end(&whole) == end(&broken), "")?;
    // Without its end, the whole run goes on from step 9 on another number of ranks.
    let last = format!("step-{:08}.safetensors", models::STEPS);
    for file in ["end.safetensors", &last] {
        std::fs::remove_file(Path::new(&whole).join(file)).map_err(|error| error.to_string())?;
    }
    let output = run_on(6 - ranks, &whole, &[])?;
    expect("another number of ranks", output.succeeded && !end(&whole).is_empty(), &output.text)?;
    let _ = std::fs::remove_dir_all(base);
    Ok(())
}
