//! Every exchange in every dtype, against the same computed on one rank.

use crate::{Outcome, Program, output_of};
use namegrad::core::DType;
use namegrad::prelude::*;
use namegrad_dist::{DataParallel, Group, Reduction};

const ALL: &[usize] = &[1, 2, 4];

pub(crate) const PROGRAMS: &[Program] = &[
    Program { name: "exchanges", ranks: ALL, run: exchanges, error: None },
    Program { name: "gradients", ranks: ALL, run: gradients, error: None },
    Program { name: "messages", ranks: &[2, 4], run: messages, error: None },
    Program { name: "sub-groups", ranks: ALL, run: sub_groups, error: None },
    Program { name: "files", ranks: ALL, run: files, error: None },
    Program { name: "random-numbers", ranks: ALL, run: random_numbers, error: None },
    Program { name: "bytes", ranks: &[], run: bytes, error: None },
];

/// Exchanges a few MiB, and prints what [`Group::bytes_sent`] counts.
fn bytes(group: &Group) -> Outcome {
    let x = Tensor::ones([("N", 8), ("C", 1 << 17)])?;
    for _ in 0..3 {
        group.all_reduce(&x, Reduction::Sum)?;
        group.all_gather(&x, "N")?;
        group.all_to_all(&x, "N", "C")?;
        group.broadcast(&x, 0)?;
    }
    let model = DataParallel::new(Linear::new(("C", 512), ("h", 1024))?, group)?;
    model.forward(&Tensor::ones([("N", 4), ("C", 512)])?)?.mean(..)?.backward()?;
    println!("sent {}", group.bytes_sent());
    Ok(())
}

/// Open MPI counts the bytes of all messages itself; they are as many as the formulas of `docs/scale.md` say.
pub(crate) fn bytes_of_mpi(ranks: usize) -> Result<(), String> {
    let folder = std::env::temp_dir().join(format!("namegrad-dist-bytes-{}-{ranks}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let files = folder.join("rank").display().to_string();
    let variables = [
        ("OMPI_MCA_pml_monitoring_enable", "1"),
        ("OMPI_MCA_pml_monitoring_enable_output", "3"),
        ("OMPI_MCA_pml_monitoring_filename", &files),
    ];
    let output = output_of("bytes", ranks, &variables)?;
    let counted = output.text.lines().filter_map(|line| line.strip_prefix("sent ")?.parse::<f64>().ok());
    let (counts, counted) = (counted.clone().count(), counted.sum::<f64>());
    let (mut sent, mut seen) = (0.0, 0);
    for rank in 0..ranks {
        let Ok(text) = std::fs::read_to_string(format!("{files}.{rank}.prof")) else { continue };
        seen += 1;
        let to_others = text.lines().filter(|line| line.starts_with("E\t") || line.starts_with("I\t"));
        let of_line = |line: &str| line.split('\t').nth(3)?.strip_suffix(" bytes")?.parse::<f64>().ok();
        sent += to_others.filter_map(of_line).sum::<f64>();
    }
    let _ = std::fs::remove_dir_all(folder);
    match seen {
        _ if !output.succeeded || counts != ranks => Err(output.text),
        0 => Err("skipped: this MPI does not count bytes".into()),
        _ if (sent / counted - 1.0).abs() < 0.01 => Ok(()),
        _ => Err(format!("FAILED: {counted} bytes by the formulas, {sent} by MPI")),
    }
}

/// What rank `rank` has: `[C=3, N=4 ranks]`, small whole numbers, so that all sums are exact.
fn of_rank(rank: usize, ranks: usize, dtype: DType) -> Result<Tensor> {
    let count = 12 * ranks as i64;
    let x = Tensor::arange(0, count, 1)?
        .add(5 * rank as i64)?
        .mul(7)?
        .remainder(if dtype == DType::Bool { 2 } else { 4 })?;
    x.to(dtype)?.reshape([("C", 3), ("N", 4 * ranks)])
}

/// The tensors of all ranks, `[rank, C, N]`.
fn of_all(ranks: usize, dtype: DType) -> Result<Tensor> {
    Tensor::stack((0..ranks).map(|rank| of_rank(rank, ranks, dtype)).collect::<Result<Vec<_>>>()?, 0)
}

fn reduced(all: &Tensor, reduction: Reduction) -> Result<Tensor> {
    let dtype = all.dtype();
    let y = match reduction {
        Reduction::Sum => all.sum(0)?,
        Reduction::Mean => all.mean(0)?,
        Reduction::Min => all.to(DType::F64)?.amin(0)?,
        Reduction::Max => all.to(DType::F64)?.amax(0)?,
        _ => all.prod(0)?,
    };
    y.to(dtype)
}

fn reductions(dtype: DType) -> Vec<Reduction> {
    let all = [Reduction::Min, Reduction::Max, Reduction::Sum, Reduction::Product, Reduction::Mean];
    let count = if dtype == DType::Bool {
        2
    } else if dtype.is_floating_point() {
        5
    } else {
        4
    };
    all[..count].to_vec()
}

fn expect(what: &str, got: &Tensor, expected: &Tensor) -> Outcome {
    let same = got.dtype() == expected.dtype() && got.shape() == expected.shape() && got.equal(expected)?;
    if same { Ok(()) } else { Err(format!("{what}: expected {expected}, got {got}").into()) }
}

fn exchanges(group: &Group) -> Outcome {
    let (rank, ranks) = (group.rank(), group.size());
    for dtype in DType::ALL {
        let (x, all) = (of_rank(rank, ranks, dtype)?, of_all(ranks, dtype)?);
        for group in [group.clone(), group.checked(false)] {
            for reduction in reductions(dtype) {
                let what = format!("{dtype} {reduction:?}");
                let whole = reduced(&all, reduction)?;
                expect(&what, &group.all_reduce(&x, reduction)?, &whole)?;
                expect(&what, &group.start_all_reduce(&x, reduction)?.wait()?, &whole)?;
                let part = group.part(&whole, "N")?;
                expect(&what, &group.reduce_scatter(&x, "N", reduction)?, &part)?;
                expect(&what, &group.start_reduce_scatter(&x, 1, reduction)?.wait()?, &part)?;
            }
            let what = format!("{dtype}");
            for dim in ["C", "N"] {
                let joined = Tensor::cat(
                    (0..ranks).map(|rank| all.select(0, rank)).collect::<Result<Vec<_>>>()?,
                    dim,
                )?;
                expect(&what, &group.all_gather(&x, dim)?, &joined)?;
                expect(&what, &group.start_all_gather(&x, dim)?.wait()?, &joined)?;
            }
            for root in 0..ranks {
                let expected = all.select(0, root)?;
                expect(&what, &group.broadcast(&x, root)?, &expected)?;
                expect(&what, &group.start_broadcast(&x, root)?.wait()?, &expected)?;
            }
            for join in ["C", "N"] {
                let parts = (0..ranks).map(|from| all.select(0, from)?.narrow("N", 4 * rank, 4));
                let expected = Tensor::cat(parts.collect::<Result<Vec<_>>>()?, join)?;
                expect(&what, &group.all_to_all(&x, "N", join)?, &expected)?;
                expect(&what, &group.start_all_to_all(&x, "N", join)?.wait()?, &expected)?;
            }
        }
    }
    // A view, an empty tensor and one without dims.
    let x = Tensor::full([("N", 2), ("C", 3)], rank as f64)?.transpose("N", "C")?;
    let sum = (0..ranks).sum::<usize>() as f64;
    expect("a view", &group.all_reduce(&x, Reduction::Sum)?, &Tensor::full([("C", 3), ("N", 2)], sum)?)?;
    let empty = Tensor::zeros([("N", 0), ("C", 3)])?;
    expect("empty", &group.all_gather(&empty, "N")?, &empty)?;
    expect("empty", &group.all_reduce(&empty, Reduction::Max)?, &empty)?;
    expect("0-d", &group.all_reduce(&Tensor::new(rank as f64)?, Reduction::Sum)?, &Tensor::new(sum)?)?;
    // Several at once, which end in any order.
    let pending = (0..8).map(|n| group.start_all_reduce(&Tensor::full([1000], n)?, Reduction::Sum));
    for (n, pending) in pending.collect::<Result<Vec<_>>>()?.into_iter().enumerate().rev() {
        expect("several", &pending.wait()?, &Tensor::full([1000], n * ranks)?)?;
    }
    drop(group.start_all_reduce(&Tensor::ones([1000])?, Reduction::Sum)?);
    Ok(())
}

/// The gradient of `sum(w y)` for a `w` of each rank, against the same function of all inputs on one rank.
fn gradients(group: &Group) -> Outcome {
    let (rank, ranks) = (group.rank(), group.size());
    type Exchange = fn(&Group, &Tensor) -> Result<Tensor>;
    let exchanges: [(&str, Exchange); 7] = [
        ("sum", |group, x| group.all_reduce(x, Reduction::Sum)),
        ("mean", |group, x| group.all_reduce(x, Reduction::Mean)),
        ("scatter", |group, x| group.reduce_scatter(x, "N", Reduction::Sum)),
        ("scatter mean", |group, x| group.reduce_scatter(x, "N", Reduction::Mean)),
        ("gather", |group, x| group.all_gather(x, "C")),
        ("all to all", |group, x| group.all_to_all(x, "N", "C")),
        ("broadcast", |group, x| group.broadcast(x, group.size() - 1)),
    ];
    for (what, exchange) in exchanges {
        // All ranks change in one direction each: the derivative of the sum of the losses along all of them.
        let x = of_rank(rank, ranks, DType::F64)?.div(7.0)?.requiring_grad()?;
        let loss = |x: &Tensor| {
            let y = exchange(group, x)?;
            y.sin()?.mul(rank as f64 + 1.0)?.sum(..)
        };
        loss(&x)?.backward()?;
        let direction = of_rank(rank + 3, ranks, DType::F64)?;
        let along = x.grad().expect("a gradient").mul(&direction.rename(None)?)?.sum(..)?;
        let along = group.all_reduce(&along, Reduction::Sum)?.item::<f64>()?;
        let step = 1e-5;
        let at =
            |step: f64| group.all_reduce(&loss(&x.detach().add(&direction.mul(step)?)?)?, Reduction::Sum);
        let expected = (at(step)?.item::<f64>()? - at(-step)?.item::<f64>()?) / (2.0 * step);
        if (along - expected).abs() > 1e-6 * expected.abs().max(1.0) {
            return Err(format!("{what}: the derivative is {along}, and {expected} by differences").into());
        }
    }
    let x = Tensor::ones([3])?.requiring_grad()?;
    let error = group.all_reduce(&x, Reduction::Max).expect_err("no derivative");
    assert_eq!((error.kind(), error.op()), (ErrorKind::Autograd, "all_reduce"));
    let error = group.start_all_gather(&x, 0).map(drop).expect_err("no derivative");
    assert_eq!(error.kind(), ErrorKind::Autograd);
    Ok(())
}

fn messages(group: &Group) -> Outcome {
    let (rank, ranks) = (group.rank(), group.size());
    let (next, before) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
    for dtype in DType::ALL {
        let sent = group.start_send(&of_rank(rank, ranks, dtype)?, next)?;
        expect("a ring", &group.receive(before)?, &of_rank(before, ranks, dtype)?)?;
        sent.wait()?;
    }
    let shapes =
        [Tensor::ones(())?, Tensor::ones([0])?, Tensor::ones([2, 3])?.refine_names([None, Some("C")])?];
    for x in shapes {
        match rank {
            0 => group.send(&x, 1)?,
            1 => expect("a shape", &group.receive(0)?, &x)?,
            _ => {}
        }
    }
    for rank in [rank, ranks] {
        assert_eq!(group.receive(rank).expect_err("no other rank").kind(), ErrorKind::Value);
    }
    Ok(())
}

fn sub_groups(group: &Group) -> Outcome {
    let (rank, ranks) = (group.rank(), group.size());
    let half = group.split(rank % 2)?;
    assert_eq!((half.rank(), half.size()), (rank / 2, (ranks + 1 - rank % 2) / 2));
    let sum = half.all_reduce(&Tensor::new(rank as i64)?, Reduction::Sum)?.item::<i64>()?;
    assert_eq!(sum, (0..ranks).filter(|other| other % 2 == rank % 2).sum::<usize>() as i64);
    Ok(())
}

fn files(group: &Group) -> Outcome {
    assert_eq!(group.on_first(|| Ok(7))?, group.is_first().then_some(7));
    let error = group.on_first(|| Err::<(), _>(Error::other("No space left on device"))).expect_err("full");
    assert!(error.to_string().contains("rank 0: No space left on device"), "{error}");
    group.barrier()?;
    Ok(())
}

fn random_numbers(group: &Group) -> Outcome {
    manual_seed(3);
    Tensor::rand([5])?;
    group.spread_random_state()?;
    let drawn = group.all_gather(&Tensor::rand([("rank", 1), ("n", 4)])?, "rank")?;
    for rank in 1..group.size() {
        assert!(!drawn.select("rank", 0)?.equal(&drawn.select("rank", rank)?)?);
    }
    Ok(())
}
