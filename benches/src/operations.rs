//! Single operations: products, elementwise operations, reductions, and the overhead of an operation.

use crate::data::uniform;
use crate::harness::{Bench, Work};
use namegrad::fft;
use namegrad::prelude::*;

/// W1: matrix products.
pub(crate) fn products(bench: &Bench) -> Result<()> {
    if !bench.wants("W1") {
        return Ok(());
    }
    let square = [64, 128, 256, 512, 1024, 2048].map(|n| (format!("W1.sq.{n}"), [n, n, n]));
    let other = [[64, 784, 512], [512, 784, 512], [1, 1024, 4096], [4096, 64, 64]];
    let other = other.map(|[m, k, n]| (format!("W1.mm.{m}x{k}x{n}"), [m, k, n]));
    for (name, [m, k, n]) in square.into_iter().chain(other) {
        if bench.wants(&name) {
            let (a, b) = (uniform(1, &[m, k], 1.0)?, uniform(2, &[k, n], 1.0)?);
            bench.case(&name, Work::Flops(2 * m * k * n), || a.matmul(&b));
        }
    }
    let (a, b) = (uniform(1, &[512, 512], 1.0)?, uniform(2, &[512, 512], 1.0)?);
    let flops = Work::Flops(2 * 512 * 512 * 512);
    bench.case("W1.nt.512", flops, || a.matmul(&b.t()?));
    bench.case("W1.tn.512", flops, || a.t()?.matmul(&b));
    let (a, b) = (uniform(1, &[48, 128, 64], 1.0)?, uniform(2, &[48, 64, 128], 1.0)?);
    bench.case("W1.bmm.48x128x64x128", Work::Flops(2 * 48 * 128 * 64 * 128), || a.bmm(&b));
    Ok(())
}

/// W2: elementwise operations.
pub(crate) fn by_element(bench: &Bench) -> Result<()> {
    if !bench.wants("W2") {
        return Ok(());
    }
    for (n, label) in [(100, "1e2"), (10_000, "1e4"), (1_000_000, "1e6"), (10_000_000, "1e7")] {
        let (x, y) = (uniform(1, &[n], 1.0)?, uniform(2, &[n], 1.0)?);
        let (one, two) = (Work::Bytes(8 * n), Work::Bytes(12 * n));
        bench.case(&format!("W2.add.{label}"), two, || x.add(&y));
        bench.case(&format!("W2.mul.{label}"), two, || x.mul(&y));
        bench.case(&format!("W2.exp.{label}"), one, || x.exp());
        bench.case(&format!("W2.tanh.{label}"), one, || x.tanh());
        bench.case(&format!("W2.relu.{label}"), one, || x.relu());
        bench.case(&format!("W2.gelu.{label}"), one, || x.gelu());
    }
    let (x, y) =
        (uniform(1, &[1_000_000], 1.0)?.to(DType::F64)?, uniform(2, &[1_000_000], 1.0)?.to(DType::F64)?);
    bench.case("W2.add.1e6.f64", Work::Bytes(24_000_000), || x.add(&y));
    bench.case("W2.exp.1e6.f64", Work::Bytes(16_000_000), || x.exp());
    bench.case("W2.gelu.1e6.f64", Work::Bytes(16_000_000), || x.gelu());
    bench.case("W2.uniform.1e6", Work::Bytes(4_000_000), || x.rand_like());
    bench.case("W2.normal.1e6", Work::Bytes(4_000_000), || x.randn_like());
    let (x, bias) = (uniform(1, &[4096, 1024], 1.0)?, uniform(2, &[1024], 1.0)?);
    bench.case("W2.bias.4096x1024", Work::Bytes(8 * 4096 * 1024), || x.add(&bias));
    let (x, y) = (uniform(1, &[2048, 2048], 1.0)?, uniform(2, &[2048, 2048], 1.0)?);
    bench.case("W2.tadd.2048", Work::Bytes(12 * 2048 * 2048), || x.t()?.add(&y));
    Ok(())
}

/// W14: transposed copies, half types, conversions, cumulative sums and sorting.
pub(crate) fn moves(bench: &Bench) -> Result<()> {
    if !bench.wants("W14") {
        return Ok(());
    }
    let x = uniform(1, &[2048, 2048], 1.0)?;
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        let x = x.to(dtype)?;
        bench.case(&format!("W14.copy.2048.{dtype}"), Work::Bytes(8 << 22), || x.t()?.contiguous());
    }
    let images = uniform(1, &[16, 64, 56, 56], 1.0)?;
    bench.case("W14.channels_last", Work::Bytes(8 * 16 * 64 * 56 * 56), || {
        images.permute([0, 2, 3, 1])?.contiguous()
    });
    let x = uniform(1, &[1_000_000], 1.0)?;
    for dtype in [DType::F16, DType::BF16] {
        let half = x.to(dtype)?;
        let name = |op: &str| format!("W14.{op}.1e6.{dtype}");
        bench.case(&name("add"), Work::Bytes(6_000_000), || half.add(&half));
        bench.case(&name("mul"), Work::Bytes(6_000_000), || half.mul(&half));
        bench.case(&name("relu"), Work::Bytes(4_000_000), || half.relu());
        bench.case(&name("exp"), Work::Bytes(4_000_000), || half.exp());
        bench.case(&name("sum"), Work::Bytes(2_000_000), || half.sum(..));
        let rows = half.reshape([1000, 1000])?;
        bench.case(&name("sum0"), Work::Bytes(2_000_000), || rows.sum(0));
        bench.case(&name("sum1"), Work::Bytes(2_000_000), || rows.sum(1));
        bench.case(&name("widen"), Work::Bytes(6_000_000), || half.to(DType::F32));
        bench.case(&name("narrow"), Work::Bytes(6_000_000), || x.to(dtype));
    }
    let (whole, rows) = (x.mul(1000.0)?.to(DType::I64)?, x.reshape([1000, 1000])?);
    bench.case("W14.sum.1e6.int64", Work::Bytes(8_000_000), || whole.sum(..));
    bench.case("W14.truncate.1e6", Work::Bytes(12_000_000), || x.to(DType::I64));
    bench.case("W14.cumsum.1e6", Work::Bytes(8_000_000), || x.cumsum(0));
    bench.case("W14.cumsum0.1000", Work::Bytes(8_000_000), || rows.cumsum(0));
    bench.case("W14.sort.1e6", Work::Bytes(16_000_000), || x.sort(0));
    bench.case("W14.sort.1000", Work::Bytes(16_000_000), || rows.sort(1));
    bench.case("W14.argsort.1e6.int64", Work::Bytes(16_000_000), || whole.argsort(0));
    bench.case("W14.topk.1e6", Work::Bytes(4_000_000), || x.topk(100, 0));
    bench.case("W14.unique.1e6.int64", Work::Bytes(8_000_000), || whole.unique());
    Ok(())
}

/// W15: Fourier transforms, of one signal and of many, and convolutions by them and by windows.
pub(crate) fn transforms(bench: &Bench) -> Result<()> {
    if !bench.wants("W15") {
        return Ok(());
    }
    // A transform of n points takes about 5 n log n operations.
    let flops = |lanes: usize, n: usize| Work::Flops(5 * lanes * n * n.ilog2() as usize);
    let lanes = [(1, 1 << 10), (1, 1 << 12), (1, 1 << 14), (1, 1 << 16), (1, 1 << 18), (1, 1 << 20)];
    for (lanes, n) in
        lanes.into_iter().chain([(1024, 1024), (64, 1 << 14), (10_000, 64), (100, 1000), (100, 1009)])
    {
        let x = uniform(1, &[lanes, n], 1.0)?;
        let z = uniform(2, &[lanes, n, 2], 1.0)?;
        let half = fft::rfft(&x, 1)?;
        let name = |op: &str| format!("W15.{op}.{lanes}x{n}");
        bench.case(&name("fft"), flops(lanes, n), || fft::fft(&z, 1));
        bench.case(&name("rfft"), flops(lanes, n), || fft::rfft(&x, 1));
        bench.case(&name("irfft"), flops(lanes, n), || fft::irfft(&half, 1));
    }
    let z = uniform(1, &[1024, 1024, 2], 1.0)?;
    bench.case("W15.fft0.1024x1024", flops(1024, 1024), || fft::fft(&z, 0));
    bench.case("W15.fft2.1024x1024", flops(2048, 1024), || fft::fft2(&z, [0, 1]));
    let images = uniform(1, &[16, 3, 224, 224], 1.0)?;
    bench.case("W15.rfft2.48x224x224", flops(48 * 448, 224), || fft::rfft2(&images, [2, 3]));
    let (sound, window) = (uniform(1, &[16, 16_000], 1.0)?, fft::Window::Hann.periodic(400)?);
    let options = || fft::StftOptions::new().window(&window).hop_length(160);
    bench.case("W15.stft.16x16000", Work::Call, || fft::stft_with(&sound, 1, 400, options()));
    let spectra = fft::stft_with(&sound, 1, 400, options())?;
    let options = || fft::IstftOptions::new().window(&window).hop_length(160);
    bench.case("W15.istft.16x16000", Work::Call, || fft::istft_with(&spectra, [1, 2], 400, options()));
    let signals = uniform(1, &[8, 10_000], 1.0)?;
    for size in [8, 16, 32, 64, 128, 512, 2048] {
        let kernel = uniform(2, &[size], 1.0)?;
        bench.case(&format!("W15.convolve.{size}"), Work::Call, || fft::convolve(&signals, &kernel, 1));
        let (x, weight) = (signals.unsqueeze(1)?, kernel.flip(0)?.reshape([1, 1, size])?);
        let options = || Conv1dOptions::new().padding(size - 1);
        bench.case(&format!("W15.conv1d.{size}"), Work::Call, || F::conv1d_with(&x, &weight, options()));
    }
    let image = uniform(1, &[1, 1, 512, 512], 1.0)?;
    for size in [3, 5, 7, 11, 15, 31] {
        let weight = uniform(2, &[1, 1, size, size], 1.0)?;
        let options = || Conv2dOptions::new().padding(size - 1);
        bench.case(&format!("W15.conv2d.{size}"), Work::Call, || F::conv2d_with(&image, &weight, options()));
        bench.case(&format!("W15.convolve2.{size}"), Work::Call, || fft::convolve(&image, &weight, [2, 3]));
    }
    Ok(())
}

/// W3: reductions, softmax and layer norm.
pub(crate) fn along_dims(bench: &Bench) -> Result<()> {
    if !bench.wants("W3") {
        return Ok(());
    }
    let x = uniform(1, &[10_000_000], 1.0)?;
    bench.case("W3.sum_all.1e7", Work::Bytes(40_000_000), || x.sum(..));
    let x = uniform(1, &[4096, 1024], 1.0)?;
    let bytes = Work::Bytes(4 * 4096 * 1024);
    bench.case("W3.sum0.4096x1024", bytes, || x.sum(0));
    bench.case("W3.sum1.4096x1024", bytes, || x.sum(1));
    bench.case("W3.amax0.4096x1024", bytes, || x.amax(0));
    bench.case("W3.amax1.4096x1024", bytes, || x.amax(1));
    bench.case("W3.amin1.4096x1024", bytes, || x.amin(1));
    let x = uniform(1, &[1024, 1024], 1.0)?;
    let bytes = Work::Bytes(8 * 1024 * 1024);
    bench.case("W3.softmax.1024", bytes, || x.softmax(-1));
    bench.case("W3.softmax0.1024", bytes, || x.softmax(0));
    bench.case("W3.log_softmax.1024", bytes, || x.log_softmax(-1));
    bench.case("W3.logsumexp.1024", bytes, || x.logsumexp(-1));
    let short = uniform(1, &[100_000, 10], 1.0)?;
    bench.case("W3.log_softmax.1e5x10", Work::Bytes(8_000_000), || short.log_softmax(-1));
    bench.case("W3.amax1.1e5x10", Work::Bytes(4_000_000), || short.amax(1));
    let (weight, bias) = (Tensor::ones([1024])?, Tensor::zeros([1024])?);
    bench.case("W3.layer_norm.1024", bytes, || {
        x.layer_norm_with(-1, LayerNormOptions::new().weight(&weight).bias(&bias))
    });
    let x = x.to(DType::F64)?;
    let bytes = Work::Bytes(16 * 1024 * 1024);
    bench.case("W3.sum1.1024.f64", bytes, || x.sum(1));
    bench.case("W3.amax1.1024.f64", bytes, || x.amax(1));
    bench.case("W3.softmax.1024.f64", bytes, || x.softmax(-1));
    bench.case("W3.softmax0.1024.f64", bytes, || x.softmax(0));
    bench.case("W3.log_softmax.1024.f64", bytes, || x.log_softmax(-1));
    bench.case("W3.layer_norm.1024.f64", bytes, || x.layer_norm(-1));
    Ok(())
}

/// W4: a single element, which measures only the overhead.
pub(crate) fn overhead(bench: &Bench) -> Result<()> {
    if !bench.wants("W4") {
        return Ok(());
    }
    let (x, y) = (Tensor::ones([1])?, Tensor::ones([1])?);
    bench.case("W4.add1.fwd", Work::Call, || x.add(&y));
    bench.case("W4.add1.nograd", Work::Call, || no_grad(|| x.add(&y)));
    bench.case("W4.addnumber.fwd", Work::Call, || x.add(1.0));
    let leaf = Tensor::ones([1])?.requiring_grad()?;
    bench.case("W4.add1.grad", Work::Call, || leaf.add(&y));
    let start = Tensor::new(1.0)?.requiring_grad()?;
    let (factor, term) = (Tensor::new(0.999)?, Tensor::new(0.001)?);
    bench.case("W4.chain1000", Work::Operations(1000), || {
        start.zero_grad();
        let mut x = start.clone();
        for _ in 0..500 {
            x = x.mul(&factor)?;
            x = x.add(&term)?;
        }
        x.backward()
    });
    Ok(())
}

/// W4N: the same operation without and with names.
pub(crate) fn names(bench: &Bench) -> Result<()> {
    if !bench.wants("W4N") {
        return Ok(());
    }
    let (x, y) = (Tensor::ones([2, 3])?, Tensor::ones([2, 3])?);
    let (named_x, named_y) = (Tensor::ones([("N", 2), ("C", 3)])?, Tensor::ones([("N", 2), ("C", 3)])?);
    let (w, named_w) = (Tensor::ones([3, 4])?, Tensor::ones([("C", 3), ("K", 4)])?);
    bench.case("W4N.add.plain", Work::Call, || x.add(&y));
    bench.case("W4N.add.named", Work::Call, || named_x.add(&named_y));
    bench.case("W4N.abs.plain", Work::Call, || x.abs());
    bench.case("W4N.abs.named", Work::Call, || named_x.abs());
    bench.case("W4N.mm.plain", Work::Call, || x.mm(&w));
    bench.case("W4N.mm.named", Work::Call, || named_x.mm(&named_w));
    bench.case("W4N.sum.plain", Work::Call, || x.sum(1));
    bench.case("W4N.sum.named", Work::Call, || named_x.sum("C"));
    bench.case("W4N.sum.by_number", Work::Call, || named_x.sum(1));
    bench.case("W4N.order.plain", Work::Call, || x.permute([1, 0]));
    bench.case("W4N.order.named", Work::Call, || named_x.align_to(["C", "N"]));
    Ok(())
}
