//! Pictures of how the cost of a unit of work changes with sizes, depth, batch, length, channels and threads:
//! `namegrad-bench --growth docs/growth`. A line that rises is a cost that grows faster than the work.

use crate::harness::Flags;
use namegrad::prelude::*;
use namegrad::train::pictures::{Chart, Figure};
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

/// Writes the pictures to a folder.
pub(crate) fn draw(flags: &Flags, folder: &Path) -> Result<()> {
    let clock = Clock { budget: flags.budget };
    for (file, figure) in
        [("sizes.svg", sizes(clock)?), ("models.svg", models(clock)?), ("threads.svg", threads(clock)?)]
    {
        figure.columns(2).save(folder.join(file))?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
pub(crate) struct Clock {
    /// How long each point is measured, in seconds.
    pub(crate) budget: f64,
}

impl Clock {
    /// The shortest time of a call, in nanoseconds.
    pub(crate) fn least<R>(self, mut run: impl FnMut() -> Result<R>) -> Result<f64> {
        // No point depends on those before it.
        namegrad::memory::empty_cache();
        run()?;
        let mut runs = 1;
        let (start, mut least) = (Instant::now(), f64::INFINITY);
        while least == f64::INFINITY || start.elapsed().as_secs_f64() < self.budget {
            let round = Instant::now();
            for _ in 0..runs {
                black_box(run()?);
            }
            let seconds = round.elapsed().as_secs_f64();
            least = least.min(seconds / runs as f64);
            // Reading the clock must not matter.
            if seconds < 20e-6 {
                runs *= 2;
            }
        }
        Ok(least * 1e9)
    }

    /// The cost of a unit of work at each size: `make` returns the work and what is measured.
    fn line<R>(
        self,
        chart: Chart,
        name: &str,
        sizes: impl IntoIterator<Item = usize>,
        mut make: impl FnMut(usize) -> Result<(usize, Box<dyn FnMut() -> Result<R>>)>,
    ) -> Result<Chart> {
        let mut points = Vec::new();
        for size in sizes {
            let (work, run) = make(size)?;
            let cost = self.least(run)? / work as f64;
            println!("{name}\t{size}\t{cost:.6} ns");
            points.push((size, cost));
        }
        Ok(chart.line(name, points))
    }
}

fn chart(title: &str, x: &str, unit: &str) -> Chart {
    Chart::new(title).x_label(x).y_label(format!("ns for {unit}")).log_x(true).log_y(true).size(720, 480)
}

fn powers(of: usize, from: usize, to: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(from), move |n| n.checked_mul(of)).take_while(move |n| *n <= to)
}

/// Ops by the number of elements, products by the side, convolutions by channels.
fn sizes(clock: Clock) -> Result<Figure> {
    type Op = fn(&Tensor) -> Result<Tensor>;
    let ops: [(&str, Op); 6] = [
        ("add", |x| x.add(x)),
        ("exp", |x| x.exp()),
        ("softmax", |x| x.softmax(0)),
        ("sum", |x| x.sum(0)),
        ("cumsum", |x| x.cumsum(0)),
        ("sort", |x| Ok(x.sort(0)?.values)),
    ];
    let mut elements = chart("Ops on a vector", "elements", "an element");
    for (name, op) in ops {
        elements = clock.line(elements, name, powers(4, 1, 1 << 24), |n| {
            let x = Tensor::rand([n])?;
            Ok((n, Box::new(move || op(&x))))
        })?;
    }
    let mut sides = chart("Products", "side", "a multiply-add");
    sides = clock.line(sides, "square", (0..=22).map(|i| 2f64.powf(i as f64 / 2.0) as usize), |n| {
        let x = Tensor::rand([n, n])?;
        Ok((n.pow(3), Box::new(move || x.matmul(&x))))
    })?;
    sides = clock.line(sides, "by a vector", powers(2, 1, 4096), |n| {
        let (x, y) = (Tensor::rand([n, n])?, Tensor::rand([n])?);
        Ok((n * n, Box::new(move || x.matmul(&y))))
    })?;
    sides = clock.line(sides, "64 at once", powers(2, 1, 512), |n| {
        let x = Tensor::rand([64, n, n])?;
        Ok((64 * n.pow(3), Box::new(move || x.matmul(&x))))
    })?;
    let mut channels = chart("Convolutions of 28 x 28, from and to", "channels", "a multiply-add");
    for (name, side, stride, groups) in
        [("1 x 1", 1, 1, 1), ("3 x 3", 3, 1, 1), ("3 x 3, stride 2", 3, 2, 1), ("5 x 5", 5, 1, 1)]
    {
        channels = clock.line(channels, name, (0..=16).map(|i| 2f64.powf(i as f64 / 2.0) as usize), |c| {
            let (x, weight) = (Tensor::rand([4, c, 28, 28])?, Tensor::rand([c, c / groups, side, side])?);
            let options = Conv2dOptions::new().stride(stride).padding(side / 2).groups(groups);
            let work = F::conv2d_with(&x, &weight, options.clone())?.numel() * c * side * side;
            Ok((work, Box::new(move || F::conv2d_with(&x, &weight, options.clone()))))
        })?;
    }
    channels = clock.line(channels, "3 x 3, depthwise", powers(2, 1, 256), |c| {
        let (x, weight) = (Tensor::rand([4, c, 28, 28])?, Tensor::rand([c, 1, 3, 3])?);
        let options = Conv2dOptions::new().padding(1).groups(c);
        Ok((4 * c * 28 * 28 * 9, Box::new(move || F::conv2d_with(&x, &weight, options.clone()))))
    })?;
    Ok(Figure::new("Cost by size, one thread for each core").panel(elements).panel(sides).panel(channels))
}

/// Forward and backward of models by depth, batch and length.
fn models(clock: Clock) -> Result<Figure> {
    let mut depths = chart("A multilayer perceptron, batch 32", "layers", "a layer");
    for width in [8, 64, 512] {
        depths = clock.line(depths, &format!("width {width}"), powers(2, 1, 1024), |depth| {
            let layers = (0..depth).map(|_| Linear::new(width, width)).collect::<Result<Vec<_>>>()?;
            let x = Tensor::randn([32, width])?;
            Ok((
                depth,
                Box::new(move || {
                    step(&x, &layers, |x| {
                        layers.iter().try_fold(x.clone(), |x, layer| layer.forward(&x)?.tanh())
                    })
                }),
            ))
        })?;
    }
    let mut batches = chart("Models by batch", "batch", "a sample");
    batches = clock.line(batches, "linear layers of 256", powers(2, 1, 4096), |batch| {
        let layers = [Linear::new(256, 256)?, Linear::new(256, 256)?];
        let x = Tensor::randn([batch, 256])?;
        Ok((
            batch,
            Box::new(move || step(&x, &layers, |x| layers[1].forward(&layers[0].forward(x)?.relu()?))),
        ))
    })?;
    batches = clock.line(batches, "convolutions of 16 x 16", powers(2, 1, 256), |batch| {
        let layers = [Conv2d::new(3, 32, [3, 3])?, Conv2d::new(32, 32, [3, 3])?];
        let x = Tensor::randn([batch, 3, 16, 16])?;
        Ok((
            batch,
            Box::new(move || step(&x, &layers, |x| layers[1].forward(&layers[0].forward(x)?.relu()?))),
        ))
    })?;
    let mut lengths = chart("Models by length", "time steps", "a time step");
    lengths = clock.line(lengths, "LSTM of 64", powers(2, 1, 1024), |length| {
        let lstm = Lstm::new(("in", 64), ("hidden", 64), "time")?;
        let x = Tensor::randn([("N", 8), ("time", length), ("in", 64)])?;
        Ok((length, Box::new(move || step(&x, std::slice::from_ref(&lstm), |x| Ok(lstm.forward(x)?.output)))))
    })?;
    for (name, heads) in [("attention, 4 heads of 16", 4), ("attention, 1 head of 64", 1)] {
        lengths = clock.line(lengths, name, powers(2, 1, 2048), |length| {
            let x = Tensor::randn([8, heads, length, 64 / heads])?;
            Ok((
                length,
                Box::new(move || step(&x, &[] as &[Linear], |x| F::scaled_dot_product_attention(x, x, x))),
            ))
        })?;
    }
    let title = "Forward and backward of models, one thread for each core";
    Ok(Figure::new(title).panel(depths).panel(batches).panel(lengths))
}

/// The output of a model, and the gradients of its input and parameters.
fn step(x: &Tensor, layers: &[impl Module], model: impl Fn(&Tensor) -> Result<Tensor>) -> Result<()> {
    layers.iter().for_each(Module::zero_grad);
    let x = x.clone().requiring_grad()?;
    model(&x)?.sum(..)?.backward()
}

/// The speed of ops with 1 to 16 threads, also more than there are cores.
fn threads(clock: Clock) -> Result<Figure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let x = Tensor::rand([4096, 1024])?;
    let images = Tensor::rand([16, 64, 28, 28])?;
    let weight = Tensor::rand([64, 64, 3, 3])?;
    type Run<'a> = Box<dyn Fn() -> Result<Tensor> + Sync + 'a>;
    let ops: [(&str, Run<'_>); 6] = [
        ("product of 1024 x 1024", Box::new(|| x.narrow(0, 0, 1024)?.matmul(&x.narrow(0, 0, 1024)?))),
        ("3 x 3 convolution", Box::new(|| F::conv2d(&images, &weight))),
        ("exp", Box::new(|| x.exp())),
        ("add", Box::new(|| x.add(&x))),
        ("sums of columns", Box::new(|| x.sum(0))),
        ("softmax of rows", Box::new(|| x.softmax(1))),
    ];
    let mut speed = Chart::new(format!("Ops on {cores} cores")).x_label("threads").size(720, 480);
    speed = speed.y_label("times the speed of one thread");
    for (name, run) in &ops {
        let mut points = Vec::new();
        let mut one = None;
        for threads in [1, 2, 3, 4, 6, 8, 12, 16] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            let time = pool.install(|| clock.least(run))?;
            println!("{name}\t{threads} threads\t{time:.0} ns");
            points.push((threads, *one.get_or_insert(time) / time));
        }
        speed = speed.line(*name, points);
    }
    Ok(Figure::new("Threads").panel(speed))
}
