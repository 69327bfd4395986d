//! The tape on many threads at once.

use namegrad::autograd::{BackwardOptions, Cx, Op, checkpoint, grad_with};
use namegrad::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const THREADS: usize = 8;

/// Runs `f` on several threads at once, with the number of each thread, and returns the results.
fn on_threads<R: Send>(f: impl Fn(usize) -> Result<R> + Sync) -> Result<Vec<R>> {
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..THREADS)
            .map(|number| {
                scope.spawn({
                    let f = &f;
                    move || f(number)
                })
            })
            .collect();
        running.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    })
}

/// Gradients of a small network at `seed`.
fn gradients(seed: usize) -> Result<Vec<f64>> {
    let numbers: Vec<f64> = (0..12).map(|i| ((seed * 12 + i) as f64).sin()).collect();
    let x = Tensor::from_slice(&numbers, [("N", 3), ("C", 4)])?.requiring_grad()?;
    let hidden = x.matmul(&x.t()?.rename([("N", "M")])?)?.tanh()?;
    let loss = hidden.softmax(0)?.mul(&hidden)?.exp()?.sum(..)?;
    loss.backward()?;
    x.grad().expect("a leaf").to_vec()
}

#[test]
fn graphs_on_many_threads_do_not_see_each_other() -> Result<()> {
    let alone = (0..200).map(gradients).collect::<Result<Vec<_>>>()?;
    for together in on_threads(|_| (0..200).map(gradients).collect::<Result<Vec<_>>>())? {
        assert_eq!(together, alone);
    }
    Ok(())
}

#[test]
fn gradients_of_all_threads_meet_in_a_shared_parameter() -> Result<()> {
    const STEPS: usize = 200;
    let weight = Parameter::new(Tensor::ones([("C", 4)])?)?;
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = seen.clone();
    weight.tensor().register_post_accumulate_grad_hook(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(None)
    })?;
    on_threads(|number| {
        for step in 0..STEPS {
            // Whole numbers, so that the order of the sums does not matter.
            let x = Tensor::ones([("N", 2), ("C", 4)])?.mul((number + step) as f64)?;
            x.mul(weight.tensor())?.sum(..)?.backward()?;
        }
        Ok(())
    })?;
    let total: usize = (0..THREADS).flat_map(|number| (0..STEPS).map(move |step| 2 * (number + step))).sum();
    assert_eq!(weight.grad().expect("all threads added to it").to_vec::<f64>()?, [total as f64; 4]);
    assert_eq!(seen.load(Ordering::Relaxed), THREADS * STEPS);
    Ok(())
}

#[test]
fn one_of_many_walks_through_a_graph_that_is_not_retained_succeeds() -> Result<()> {
    let x = Tensor::ones([4])?.requiring_grad()?;
    for _ in 0..50 {
        x.zero_grad();
        let loss = x.exp()?.sum(..)?;
        let through = on_threads(|_| Ok(loss.backward()))?;
        let well = through.iter().filter(|walk| walk.is_ok()).count();
        assert_eq!(well, 1);
        assert!(through.iter().flat_map(|walk| walk.as_ref().err()).all(|e| e.kind() == ErrorKind::Autograd));
        assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [1f32.exp(); 4]);
    }
    Ok(())
}

#[test]
fn checkpoints_draw_their_own_numbers_again_whatever_others_draw() -> Result<()> {
    on_threads(|_| {
        for _ in 0..50 {
            let x = Tensor::ones([256])?.requiring_grad()?;
            let block = |x: &[Tensor]| F::dropout(&F::dropout(&x[0], 0.5)?, 0.5);
            let y = checkpoint(block, &[&x])?;
            let options = BackwardOptions::default();
            let of_x = grad_with(&[&y.sum(..)?], &[&x], &[], options)?.remove(0).expect("it depends on x");
            assert_eq!(of_x.to_vec::<f32>()?, y.to_vec::<f32>()?, "what was dropped has no gradient");
        }
        Ok(())
    })
    .map(drop)
}

#[test]
fn a_graph_made_by_one_thread_is_walked_and_dropped_by_others() -> Result<()> {
    let token = Arc::new(());
    let graphs = on_threads(|number| {
        let x = Tensor::new([number as f64])?.requiring_grad()?;
        let held = token.clone();
        let gradient = move |g: &Tensor, _: &Cx<'_>| {
            let _ = &held;
            Ok(g.clone())
        };
        let mut y = Op::new("held", x.value().clone()).input(&x, gradient).output();
        for _ in 0..10_000 {
            y = y.add(1.0)?;
        }
        Ok((x, y))
    })?;
    on_threads(|number| {
        let (x, y) = graphs[(number + 1) % THREADS].clone();
        y.backward()?;
        assert_eq!(x.grad().expect("a leaf").item::<f64>()?, 1.0);
        Ok(())
    })?;
    std::thread::spawn(move || drop(graphs)).join().expect("dropping does not panic");
    assert_eq!(Arc::strong_count(&token), 1);
    Ok(())
}

/// Ops run on the pool in which they are called, as `docs/performance.md` says.
#[test]
fn ops_run_on_the_pool_around_them() -> Result<()> {
    let x = Tensor::ones([1 << 21])?;
    // Whether an op asked other threads of the pool for help, while those were busy.
    let asks_for_help = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        let (busy, started) = std::sync::mpsc::channel();
        let (release, released) = std::sync::mpsc::channel::<()>();
        let released = std::sync::Mutex::new(released);
        let released = Arc::new(released);
        for _ in 1..threads {
            let (busy, released) = (busy.clone(), released.clone());
            pool.spawn(move || {
                busy.send(()).expect("the test waits");
                // Ends when the test does.
                released.lock().map(|released| released.recv().ok()).ok();
            });
            started.recv().expect("a thread of the pool");
        }
        let asked = pool.install(|| {
            assert_eq!(rayon::current_num_threads(), threads);
            x.exp().map(|_| pool.current_thread_has_pending_tasks())
        });
        drop(release);
        asked
    };
    assert_eq!(asks_for_help(1)?, Some(false));
    assert_eq!(asks_for_help(2)?, Some(true));
    Ok(())
}

/// Each op divides its work among the threads of the pool, and no sum depends on how.
#[test]
fn no_bit_depends_on_the_number_of_threads() -> Result<()> {
    type Run = fn() -> Result<Tensor>;
    let ops: [(&str, Run); 16] = [
        ("sum", || Tensor::randn([300_000])?.sum(..)),
        ("sums of rows", || Tensor::randn([16, 20_000])?.sum(1)),
        ("sums of columns", || Tensor::randn([3000, 100])?.sum(0)),
        ("norm", || Tensor::randn([300_000])?.norm(..)),
        ("softmax", || Tensor::randn([300, 1000])?.softmax(1)),
        ("cumsum", || Tensor::randn([30, 10_000])?.cumsum(1)),
        ("sort", || Ok(Tensor::randint(0, 1000, [100_000])?.sort(0)?.indices)),
        ("randn", || Tensor::randn([300_000])),
        ("zeros", || Tensor::zeros([1 << 19])),
        ("product", || Tensor::randn([150, 300])?.matmul(&Tensor::randn([300, 150])?)),
        ("long product", || Tensor::randn([8, 1 << 17])?.matmul(&Tensor::randn([1 << 17, 8])?)),
        ("convolution", || {
            with_gradients([Tensor::randn([4, 32, 16, 16])?, Tensor::randn([32, 32, 3, 3])?], |[x, w]| {
                F::conv2d(x, w)
            })
        }),
        ("strided convolution", || {
            let inputs = [Tensor::randn([4, 16, 24, 24])?, Tensor::randn([16, 16, 3, 3])?];
            with_gradients(inputs, |[x, w]| F::conv2d_with(x, w, Conv2dOptions::new().stride(2)))
        }),
        ("batch norm", || {
            let inputs = [Tensor::randn([16, 32, 24, 24])?, Tensor::randn([32])?];
            with_gradients(inputs, |[x, w]| {
                Ok(F::batch_norm_with(x, 1, BatchNormOptions::new().weight(w).training(true))?.0)
            })
        }),
        ("layer norm", || {
            let inputs = [Tensor::randn([1500, 200])?, Tensor::randn([200])?];
            with_gradients(inputs, |[x, w]| x.layer_norm_with(-1, LayerNormOptions::new().weight(w)))
        }),
        ("attention", || {
            let [q, k] = [Tensor::randn([1, 2, 130, 16])?, Tensor::randn([1, 2, 130, 16])?];
            with_gradients([q, k], |[q, k]| F::scaled_dot_product_attention(q, k, k))
        }),
    ];
    let pools = [1, 2, 5, 16, 64]
        .map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
    for (name, run) in ops {
        let mut expected = None;
        for pool in &pools {
            let result = pool.install(|| {
                manual_seed(3);
                run()
            })?;
            let expected = expected.get_or_insert_with(|| result.clone());
            assert!(result.equal(expected)?, "{name} on {} threads", pool.current_num_threads());
        }
    }
    Ok(())
}

/// The output of a function and the gradients of its inputs, one after another.
fn with_gradients<const N: usize>(
    inputs: [Tensor; N],
    f: impl Fn(&[Tensor; N]) -> Result<Tensor>,
) -> Result<Tensor> {
    let leaves = inputs.map(|x| x.requiring_grad().expect("floats"));
    let y = f(&leaves)?;
    y.square()?.sum(..)?.backward()?;
    let mut all = vec![y.detach().reshape([-1])?];
    for leaf in &leaves {
        all.push(leaf.grad().expect("a leaf").reshape([-1])?);
    }
    Tensor::cat(all, 0)
}
