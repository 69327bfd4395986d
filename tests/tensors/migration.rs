//! Checks that the calls in `docs/migration.md` compile and do what the page says.

use namegrad::io::TensorFile;
use namegrad::plan;
use namegrad::prelude::*;
use namegrad::train::log::{Histogram, Log};
use namegrad::train::meters::{
    Accuracy, Average, ConfusionMatrix, Mean, Perplexity, Regression, RocAuc, update_all,
};
use namegrad::train::profile::{profile, span};
use namegrad::train::{Checkpoints, EarlyStopping, parts};

fn images() -> Result<Tensor> {
    Tensor::rand([("N", 4), ("C", 3), ("H", 5), ("W", 7)])
}

#[test]
fn factories() -> Result<()> {
    assert_eq!(*Tensor::zeros([("N", 2), ("C", 3)])?.names(), ["N", "C"]);
    assert_eq!(*Tensor::rand((2, ("C", 3)))?.names(), [None, Some("C")]);
    let x = TensorOptions::new().dtype(DType::F64).requires_grad(true).zeros([3])?;
    assert!(x.requires_grad() && x.dtype() == DType::F64);
    assert_eq!(*Tensor::new([[1.0], [2.0]])?.refine_names(["N", "C"])?.names(), ["N", "C"]);
    Ok(())
}

#[test]
fn parts_and_places() -> Result<()> {
    let mut x = Tensor::zeros([("N", 2), ("C", 3)])?;
    x.index_put_(&[Index::At(0)], &Tensor::ones([("C", 3)])?)?;
    x.index_put_with_(&[(&Tensor::new([0, 0])?).into()], 1.0, IndexPutOptions::new().accumulate(true))?;
    assert_eq!(x.to_vec::<f32>()?, [3.0, 3.0, 3.0, 0.0, 0.0, 0.0]);
    assert_eq!([x.split(2, "N")?.len(), x.unbind("C")?.len(), x.chunk(2, 0)?.len()], [1, 3, 2]);
    assert_eq!(*x.ge(1)?.to(DType::F32)?.bernoulli()?.names(), ["N", "C"]);
    let mut g = namegrad::core::random::Generator::from_seed(1);
    g.scope(|| x.normal_(0.0, 1.0).map(drop))?;
    assert_eq!(g.state().offset, 6);
    Ok(())
}

#[test]
fn patterns() -> Result<()> {
    let x = Tensor::rand([("N", 2), ("P", 16), ("C", 4)])?;
    let maps = x.rearrange("N (h w) C -> N C h w", [("h", 8)])?;
    assert_eq!(maps.shape().to_string(), "[N=2, C=4, h=8, w=2]");
    let pooled = maps.reduce("N C (h 2) (w: w 2) -> N C h w", "max", [])?;
    assert_eq!(pooled.shape().to_string(), "[N=2, C=4, h=4, w=1]");
    assert_eq!(x.repeat_dims("... -> n ...", [("n", 4)])?.shape().to_string(), "[n=4, N=2, P=16, C=4]");
    let (packed, shapes) = Tensor::pack([&maps, &pooled], "N *")?;
    assert_eq!(packed.sizes(), [2, 4 * 16 + 4 * 4]);
    assert!(packed.unpack(&shapes, "N *")?[1].equal(&pooled)?);
    let index = Tensor::new([3, 0])?.refine_names(["N"])?;
    assert_eq!(x.index_by("C", &index)?.select("N", 1)?, x.at((("N", 1), ("C", 0)))?);
    Ok(())
}

#[test]
fn segments_scans_and_draws() -> Result<()> {
    let x = Tensor::new([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])?.refine_names(["edge", "C"])?;
    let (index, n) = (Tensor::new([1, 0, 1])?, 2);
    assert_eq!(x.segment_sum(&index, "edge", ("node", n))?.to_vec::<f32>()?, [3.0, 4.0, 6.0, 8.0]);
    let shares = x.segment_softmax(&index, "edge", ("node", n))?;
    assert!(shares.segment_sum(&index, "edge", n)?.allclose(&Tensor::ones([2, 2])?)?);
    let largest = Tensor::zeros([("node", n), ("C", 2)])?.index_reduce(
        &index,
        x.rename([("edge", "node")])?,
        "node",
        Reduce::Amax,
    )?;
    assert_eq!(largest.to_vec::<f32>()?, [3.0, 4.0, 5.0, 6.0]);
    let (h, all) = x.scan("edge", Tensor::zeros(("C", 2))?, |h, x| {
        let h = h.add(&x)?;
        Ok((h.clone(), h))
    })?;
    assert!(h.equal(&x.sum("edge")?)? && all.equal(&x.cumsum("edge")?)?);
    assert!(x.fold("edge", h.zeros_like()?, |h, x| h.add(&x))?.equal(&h)?);
    let draws = x.multinomial_with(3, "C", MultinomialOptions::new().replacement(true))?;
    let next = F::sample_with(&x, "C", SampleOptions::new().temperature(0.8).top_k(50).top_p(0.95))?;
    assert_eq!(
        (draws.shape().to_string(), next.shape().to_string()),
        ("[edge=3, ?=3]".into(), "[edge=3]".into())
    );
    Ok(())
}

#[test]
fn the_naming_api() -> Result<()> {
    let mut x = images()?;
    assert!(x.has_names() && x.sizes() == [4, 3, 5, 7] && x.size("C")? == 3);
    assert_eq!(*x.rename([("N", "batch")])?.names(), ["batch", "C", "H", "W"]);
    assert_eq!(*x.rename(["batch", "..."])?.names(), ["batch", "C", "H", "W"]);
    assert!(!x.rename(None)?.has_names());
    assert_eq!(*x.rename(None)?.refine_names(["N", "...", "C"])?.names(), [Some("N"), None, None, Some("C")]);
    assert_eq!(*x.align_to(["C", "..."])?.names(), ["C", "N", "H", "W"]);
    let scale = Tensor::ones([("C", 3)])?;
    assert_eq!(scale.align_as(&x)?.sizes(), [1, 3, 1, 1]);
    let aligned = Tensor::align_tensors([&scale, &x])?;
    assert_eq!(aligned[0].names(), x.names());
    let flat = x.flatten(["C", "H", "W"], "features")?;
    assert_eq!(*flat.names(), ["N", "features"]);
    assert_eq!(flat.unflatten("features", [("C", 3), ("H", 5), ("W", 7)])?.shape(), x.shape());
    x.rename_([("N", "batch")])?;
    x.rename_(["N", "C", "Y", "X"])?;
    assert_eq!(*x.names(), ["N", "C", "Y", "X"]);
    Ok(())
}

#[test]
fn ops_by_name() -> Result<()> {
    let x = images()?;
    assert_eq!(*x.sum("C")?.names(), ["N", "H", "W"]);
    assert_eq!(*x.sum(keep(["N", "C"]))?.names(), ["N", "C", "H", "W"]);
    assert_eq!(x.sum(..)?.ndim(), 0);
    assert_eq!(x.amax("C")?.names(), x.argmax("C")?.names());
    let Picked { values, indices } = x.max("C")?;
    assert_eq!((values.names(), indices.names()), (x.amax("C")?.names(), x.amax("C")?.names()));
    assert_eq!(x.topk(2, "C")?.values.shape().to_string(), "[N=4, C=2, H=5, W=7]");
    assert_eq!(
        x.std_with("C", StdOptions::new().correction(0.0))?.names(),
        x.vector_norm_with("C", VectorNormOptions::new().ord(1.0))?.names()
    );
    for y in [x.softmax("C")?, x.log_softmax("C")?, x.cumsum("W")?] {
        assert_eq!(y.names(), x.names());
    }
    assert_eq!(*x.transpose("N", "C")?.names(), ["C", "N", "H", "W"]);
    assert_eq!(*x.narrow("N", 0, 1)?.squeeze("N")?.names(), ["C", "H", "W"]);
    assert_eq!(*x.select("N", 0)?.names(), ["C", "H", "W"]);
    assert_eq!(x.slice("N", 1, 3, 1)?.size("N")?, 2);
    assert_eq!(*x.index(&[Index::At(-1), (1..).into()])?.names(), ["C", "H", "W"]);
    assert_eq!(x.index(&[(&x.gt(2.0)?).into()])?.numel(), 0);
    let index = Tensor::new([0, 2])?;
    assert_eq!(x.index_select(&index, "N")?.shape().to_string(), "[N=2, C=3, H=5, W=7]");
    assert_eq!(
        *x.gather(&x.argmax("W")?.unsqueeze(-1)?.rename(["N", "C", "H", "W"])?, "W")?.names(),
        ["N", "C", "H", "W"]
    );
    assert_eq!(Tensor::cat([&x, &x], "N")?.size("N")?, 8);
    assert_eq!(
        *Tensor::stack_with([&x, &x], 0, StackOptions::new().name("time"))?.names(),
        ["time", "N", "C", "H", "W"]
    );
    Ok(())
}

#[test]
fn arithmetic_and_products() -> Result<()> {
    let mut x = Tensor::rand([("N", 2), ("in", 3)])?;
    let w = Tensor::rand([("in", 3), ("out", 4)])?;
    assert_eq!((&x + &x).to_vec::<f32>()?, x.add(&x)?.to_vec::<f32>()?);
    let y = x.clone();
    x += &y;
    x.add_(&y)?;
    for product in [x.mm(&w)?, x.matmul(&w)?, x.contract(&w, "in")?] {
        assert_eq!(*product.names(), ["N", "out"]);
    }
    let mask = x.t()?.lt(0)?;
    x.masked_fill_(&mask.align_as(&x)?, 0)?;
    let number: f64 = x.sum(..)?.item::<f64>()?;
    assert!((number - x.to_vec::<f32>()?.iter().map(|x| f64::from(*x)).sum::<f64>()).abs() < 1e-5);
    assert!(names::strict(|| x.add(Tensor::ones([3])?)).is_err());
    Ok(())
}

#[test]
fn more_parts_and_places() -> Result<()> {
    let mut x = images()?;
    assert_eq!(x.split(2, "N")?.len() + x.unbind("C")?.len() + x.chunk(2, "N")?.len(), 2 + 3 + 2);
    assert_eq!(*x.unbind("C")?[0].names(), ["N", "H", "W"]);
    let index = Tensor::new([0, 2])?;
    assert_eq!(*x.index_fill(&index, 0, "N")?.names(), ["N", "C", "H", "W"]);
    assert_eq!(x.masked_select(&x.ge(0)?)?.numel(), x.numel());
    x.index_put_(&[Index::At(0)], &Tensor::zeros([1])?)?;
    x.index_put_with_(&[(&index).into()], &Tensor::ones([1])?, IndexPutOptions::new().accumulate(true))?;
    assert_eq!(x.select("N", 0)?.sum(..)?.item::<f64>()?, 3.0 * 5.0 * 7.0);
    for picked in [x.median("C")?, x.mode("C")?, x.kthvalue(2, "C")?] {
        assert_eq!(*picked.values.names(), ["N", "H", "W"]);
    }
    let StdMean { std, mean } = x.std_mean("C")?;
    assert_eq!(std.names(), mean.names());
    let mut out = Tensor::zeros([4, 5, 7])?;
    x.sum("C")?.write_to(&mut out)?;
    assert_eq!(*out.names(), ["N", "H", "W"]);
    let flat = x.flatten(["C", "H", "W"], "features")?;
    assert_eq!(flat.unflatten("features", [("C", 3), ("H", -1)])?.size("H")?, 35);
    assert_eq!(x.clamp(0, 1)?.names(), x.clamp_min(0)?.names());
    Ok(())
}

#[test]
fn drawn_numbers() -> Result<()> {
    manual_seed(0);
    let mut x = Tensor::zeros([("N", 100)])?;
    assert_eq!(*Tensor::full([("N", 4)], 0.5)?.bernoulli()?.names(), ["N"]);
    assert_eq!(*Tensor::normal(&x, 1.0)?.names(), ["N"]);
    x.normal_(0.0, 1.0)?;
    assert!(x.random_(0..10)?.lt(10)?.all(..)?.item::<bool>()?);
    Ok(())
}

#[test]
fn gradients_and_layers() -> Result<()> {
    let x = Tensor::rand([("N", 2), ("C", 3)])?.requiring_grad()?;
    let y = x.square()?;
    let g = Tensor::ones([2, 3])?;
    y.backward_with(Some(&g), BackwardOptions { retain_graph: true, ..Default::default() })?;
    let found = autograd::grad_with(&[&y], &[&x], &[Some(&g)], BackwardOptions::default())?;
    assert_eq!(found[0].as_ref().unwrap().to_vec::<f32>()?, x.grad().unwrap().to_vec::<f32>()?);
    assert!(!no_grad(|| x.exp())?.requires_grad());
    let logits = Linear::new(("C", 3), ("class", 5))?.forward(&x)?;
    F::cross_entropy(&logits, &Tensor::new([4, 0])?.refine_names(["N"])?, "class")?.backward()?;
    Ok(())
}

/// The calls of `docs/migration.md`, as they are written there.
#[allow(unused_must_use, unused_variables, dead_code, clippy::all)]
fn page(tensors: [Tensor; 11], net: Linear, path: &str, data: [[f32; 2]; 2]) -> Result<()> {
    let [mut x, y, w, mut z, p, mean, mask, index, loss, logits, target] = tensors;
    let mut g = namegrad::core::random::Generator::from_seed(1);
    Tensor::zeros([("N", 2), ("C", 3)])?;
    Tensor::rand((2, ("C", 3)))?;
    TensorOptions::new().dtype(DType::F64).requires_grad(true).zeros([3])?;
    Tensor::new(data)?.refine_names(["N", "C"])?;
    TensorOptions::new().names(["time"]).arange(0, 12, 1)?;
    Tensor::eye(3, 3)?;
    let numbers = [1.0_f32; 6];
    Tensor::from_slice(&numbers, [2, 3])?;
    let array = ndarray::arr2(&data);
    Tensor::from_ndarray(array.view())?;
    x.to_ndarray::<f32>()?;
    Tensor::randint(0, 10, [3])?;
    Tensor::randperm(5)?;
    p.multinomial_with(3, "class", MultinomialOptions::new().replacement(true))?;
    F::sample_with(&logits, "token", SampleOptions::new().temperature(0.8).top_k(50).top_p(0.95))?;
    let gamma = rand_distr::Gamma::new(2.0, 1.0).expect("a shape and a scale above 0");
    Tensor::sample([3], &gamma)?;
    x.empty_like()?;
    x.new_zeros([2])?;
    manual_seed(0);
    p.bernoulli()?;
    Tensor::normal(&mean, 1.0)?;
    x.normal_(0.0, 1.0)?;
    x.random_(0..10)?;
    g.scope(|| x.uniform_(0.0, 1.0).map(drop))?;
    x.names();
    x.has_names();
    *x.names() == ["N", "C"];
    x.sizes();
    x.size("C")?;
    x.strides();
    x.rename([("N", "batch")])?;
    x.rename(["batch", "..."])?;
    x.rename(None)?;
    x.rename_([("N", "batch")])?;
    x.rename_(["N", "C"])?;
    x.refine_names(["N", "...", "C"])?;
    x.align_to(["C", "..."])?;
    x.align_as(&y)?;
    Tensor::align_tensors([&x, &y])?;
    x.flatten(["C", "H", "W"], "features")?;
    x.unflatten("features", [("C", 3), ("H", -1)])?;
    names::strict(|| ..);
    x.sum("C")?;
    x.sum(keep(["N", "C"]))?;
    x.sum(..)?;
    x.sum_with("C", SumOptions::new().dtype(DType::F64))?;
    x.mean("C")?;
    x.prod("C")?;
    x.logsumexp("C")?;
    x.all("C")?;
    x.std("C")?;
    x.var_with("C", VarOptions::new().correction(0.0))?;
    let StdMean { std, mean } = x.std_mean("C")?;
    x.mean(except("C"))?;
    x.quantile(0.5, "C")?;
    x.quantile([0.1, 0.9], "C")?;
    {
        let (series, t) = (Tensor::ones([("time", 120)])?, Tensor::arange(0, 120, 1)?.to(DType::F32)?);
        let (x, y) = (Tensor::randn([("N", 4), ("C", 3)])?, Tensor::randn([("M", 2), ("C", 3)])?);
        let (rates, a) = (Tensor::ones([3])?, Tensor::ones([3])?);
        x.cov("N")?;
        x.cdist(&y)?;
        series.trapezoid_with("time", TrapezoidOptions::new().x(&t))?;
        series.windows("time", 96, 1, "window")?;
        series.windows_ahead("time", 96, 24, 1, "window")?;
        rates.poisson()?;
        let x = rates.clone();
        a.gammainc(&x)?;
    }
    {
        let mask = x.gt(0)?;
        x.masked_mean(&mask, "C")?;
        x.masked_softmax(&mask, "C")?;
    }
    x.histc_with(HistcOptions::new().bins(5))?;
    index.bincount()?;
    x.layer_norm_with("C", LayerNormOptions::new().weight(&w))?;
    x.vector_norm_with("C", VectorNormOptions::new().ord(1.0))?;
    let Picked { values, indices } = x.max("C")?;
    x.amax(..)?;
    x.median("C")?;
    x.mode("C")?;
    x.kthvalue(2, "C")?;
    x.topk(2, "C")?;
    x.sort("C")?;
    x.softmax("C")?;
    x.log_softmax("C")?;
    x.cumsum("T")?;
    x.cumprod("T")?;
    x.transpose("N", "C")?;
    x.squeeze("N")?;
    x.select("N", 0)?;
    x.narrow("N", 0, 2)?;
    x.slice("N", 1, 3, 1)?;
    x.split(2, "N")?;
    x.unbind("N")?;
    x.chunk(2, "N")?;
    x.index(&[Index::At(-1), (1..).into()])?;
    x.index(&[(&mask).into()])?;
    x.at([("N", 1..3), ("C", 0..2)])?;
    x.at((("N", 1..3), ("C", 0)))?;
    x.index_by("C", &index)?;
    x.rearrange("N (h w) C -> N C h w", [("h", 8)])?;
    x.rearrange("N C ... -> N ... C", [])?;
    Tensor::stack([&x, &y], 0)?.rearrange("n ... -> ... n", [])?;
    x.reduce("N C (H 2) (W 2) -> N C H W", "max", [])?;
    x.repeat_dims("... -> n ...", [("n", 4)])?;
    Tensor::einsum("N in, in out -> N out", [&x, &w])?;
    {
        let (z, shapes) = Tensor::pack([&x, &y], "N *")?;
        z.unpack(&shapes, "N *")?;
    }
    x.index_put_(&[Index::At(0)], &y)?;
    x.index_put_with_(&[(&index).into()], &y, IndexPutOptions::new().accumulate(true))?;
    x.index_select(&index, "N")?;
    x.gather(&index, "N")?;
    w.index(&[(&index).into()])?;
    x.index_reduce(&index, &y, "N", Reduce::Amax)?;
    let n = 2;
    x.segment_sum(&index, "edge", ("node", n))?;
    x.segment_mean(&index, "edge", ("node", n))?;
    x.segment_max(&index, "edge", ("node", n))?;
    x.segment_min(&index, "edge", ("node", n))?;
    x.segment_softmax(&index, "edge", ("node", n))?;
    x.index_fill(&index, 0, "N")?;
    x.masked_select(&mask)?;
    let parts = vec![x.clone(), y.clone()];
    Tensor::cat([&x, &y], "N")?;
    Tensor::stack(&parts, 0)?;
    mask.choose(&x, &y)?;
    mask.choose(1.0, 0.0)?;
    x.unsqueeze(0)?;
    x.unsqueeze_with(0, UnsqueezeOptions::new().name("time"))?;
    Tensor::stack_with(&parts, 0, StackOptions::new().name("time"))?;
    x.reshape([("N", 4), ("features", -1)])?;
    x.view([("N", 4), ("features", -1)])?;
    x.unfold_with("T", 3, 1, UnfoldOptions::new().name("window"))?;
    x.diagonal_with(0, 1, DiagonalOptions::new().name("i"))?;
    x.diag_with(DiagOptions::new().names(["i"]))?;
    index.one_hot_with(OneHotOptions::new().num_classes(10).name("class"))?;
    x.nonzero_with(NonzeroOptions::new().names(["place", "dim"]))?;
    x.masked_select_with(&mask, MaskedSelectOptions::new().name("picked"))?;
    x.outer(&y)?;
    x.outer_with(&y, OuterOptions::new().names(["row", "col"]))?;
    &x + &y;
    x.add(&y)?;
    x += &y;
    x.add_(&y)?;
    x.add(&y)?.write_to(&mut z)?;
    x.clamp(0, 1)?;
    x.clamp_min(0)?;
    x.masked_fill_(&mask.align_as(&x)?, 0)?;
    x.copy_(&y)?;
    x.mm(&w)?;
    x.matmul(&w)?;
    Tensor::einsum("bi,io->bo", [&x, &w])?;
    x.contract(&w, "in")?;
    #[dims(q = "N query embed", returns = "N query value")]
    fn renamed(q: &Tensor) -> Result<Tensor> {
        q.rename([("embed", "value")])
    }
    renamed(&Tensor::zeros([("N", 1), ("query", 2), ("embed", 3)])?)?;
    x.item::<f32>()?;
    x.to_vec::<f32>()?;
    x.item_at::<f32>([1, 2])?;
    let [n, t] = x.sizes_of(["N", "time"])?;
    x.double()?;
    x.to(DType::I64)?;
    x.type_as(&y)?;
    x.ndim();
    x.numel();
    x.element_size();
    x.maximum(&y)?;
    x.minimum(&y)?;
    x.round_with(RoundOptions::new().decimals(2))?;
    x.floor_divide(&y)?;
    x.trunc_divide(&y)?;
    x.solve_triangular(&y, Triangle::Upper)?;
    x.solve_triangular_with(&y, Triangle::Upper, SolveTriangularOptions::new().dim([1, 0]))?;
    let (a, b) = (Tensor::new([[4.0, 1.0], [1.0, 3.0]])?, Tensor::new([[1.0, 2.0], [3.0, 4.0]])?);
    let (c, l) = (b.clone(), a.cholesky(..)?);
    a.solve(&b, ..)?;
    a.solve_with(&b, .., SolveOptions::new().left(false))?;
    a.inv(..)?;
    a.inv_ex(..)?;
    a.pinv(..)?;
    a.det(..)?;
    a.slogdet(..)?;
    a.logdet(..)?;
    b.cholesky_solve(&l, ..)?;
    x.qr(..)?;
    x.qr_with(.., QrOptions::new().mode(QrMode::Complete))?;
    x.lu(..)?;
    x.lu_factor(..)?;
    x.svd_with(.., SvdOptions::new().full_matrices(false))?;
    x.svdvals(..)?;
    a.eigh(..)?;
    a.eigvalsh(..)?;
    a.eig(..)?;
    x.lstsq(&b, ..)?;
    x.matrix_norm_with(.., MatrixNormOptions::new().ord(MatrixNorm::Nuclear))?;
    x.norm(..)?;
    a.matrix_power(3, ..)?;
    a.matrix_exp(..)?;
    Tensor::multi_dot([&a, &b, &c])?;
    x.vecdot(&y, -1)?;
    x.mt()?;
    x.t()?;
    x.dtype();
    x.type_name();
    x.device();
    {
        struct Net;
        impl Net {
            fn new() -> Result<Linear> {
                Linear::new(("C", 3), ("class", 5))
            }
        }
        let step = || Net::new()?.forward(&x)?.sum(..)?.backward();
        on_device(Device::Meta, || Net::new())?;
        x.to_device(Device::Meta)?;
        TensorOptions::new().device(Device::Meta).zeros(3)?;
        x.device() == Device::Meta;
        let state = net.state_dict();
        net.load_state_dict(&state)?;
        plan(|| step())?;
    }
    let g = y.clone();
    let f = |x: &[Tensor]| x[0].square();
    loss.backward()?;
    x.grad();
    loss.backward_with(Some(&g), BackwardOptions::new().retain_graph(true))?;
    autograd::grad(&[&y], &[&x])?;
    autograd::grad_with(&[&y], &[&x], &[Some(&g)], BackwardOptions::default())?;
    BackwardOptions::new().named(true);
    no_grad(|| ..);
    inference_mode(|| ..);
    x.requires_grad_(true)?;
    Tensor::randn([3])?.requiring_grad()?;
    detect_anomaly(|| ..);
    autograd::functional::jacobian(f, &[&x])?;
    let v = x.ones_like()?;
    autograd::functional::jvp(f, &[&x], &[&v])?;
    autograd::functional::jacrev(f, &[&x])?;
    autograd::functional::jacfwd(f, &[&x])?;
    {
        use namegrad::autograd::functional::{Randomness, VmapOptions, vmap};
        use namegrad::autograd::grad;
        let (x, t) = (Tensor::ones([("N", 2), ("n", 3)])?, Tensor::ones([("N", 2)])?);
        let w = Tensor::ones([("n", 3)])?.requiring_grad()?;
        let f = |x: &[Tensor]| x[0].square();
        autograd::functional::vmap(f, &[&x], "N")?;
        autograd::functional::vmap_with(
            f,
            &[&x, &w],
            "N",
            VmapOptions::new().shared(vec![1]).randomness(Randomness::Different),
        )?;
        let loss = |x: &Tensor, t: &Tensor| x.dot(&w)?.sub(t)?.square();
        vmap(|s| grad(&[&loss(&s[0], &s[1])?], &[&w]), &[&x, &t], "N")?;
    }
    checkpoint(f, &[&x])?;
    namegrad::fused(&[&x, &y], |[x, y]| x.mul(y).tanh())?;
    let hook = |_: &Tensor| Ok(None);
    x.register_post_accumulate_grad_hook(hook)?;
    loss.backward_with(None, BackwardOptions::new().early(true))?;
    Linear::new(("C", 3), ("features", 8))?;
    Linear::builder(("C", 3), ("features", 8)).bias(false).build()?;
    Conv2d::builder(("C", 3), ("features", 8), [("H", 3), ("W", 3)]).stride(("H", 2)).build()?;
    {
        let lstm =
            Lstm::builder(("embed", 8), ("hidden", 16), "time").num_layers(2).bidirectional(true).build()?;
        let x = Tensor::randn([("N", 2), ("time", 3), ("embed", 8)])?;
        let LstmOutput { hn: h0, cn: c0, .. } = lstm.forward(&x)?;
        let LstmOutput { output, hn, cn } = lstm.forward_with(&x, LstmOptions::new().h0(&h0).c0(&c0))?;
        assert!(output.sizes() == [2, 3, 32] && hn.shape() == cn.shape());
        let h0 = Tensor::zeros([("hidden", 16)])?;
        let gru = Gru::new(("embed", 8), ("hidden", 16), "time")?;
        gru.forward_with(&x, GruOptions::new().h0(&h0))?;
        let lengths = Tensor::new([3, 1])?.refine_names(["N"])?;
        lstm.forward_with(&x, LstmOptions::new().lengths(&lengths))?;
        let packed = nn::pack_padded_sequence(&x, &lengths, "time")?;
        lstm.forward_packed(&packed)?;
    }
    net.eval();
    F::dropout_with(&x, 0.1, DropoutOptions::new().training(false))?;
    F::cross_entropy_with(&logits, &target, "class", CrossEntropyOptions::new().ignore_index(0))?;
    F::sample_with(&logits, "class", SampleOptions::new().temperature(0.8))?;
    {
        let linear = || Linear::new(("C", 3), ("features", 8));
        let layers = vec![linear()?];
        layers.into_iter().collect::<ModuleList<Linear>>();
        let linear = linear()?;
        let layer = nn::Hooked::new(linear);
        layer.register_forward_hook(|_, x, y| Ok(Some(y.add(x)?)));
        let linear = layer;
        Sequential::new().then(linear).then(Relu);
    }
    TensorOptions::new().dtype(DType::F64).randn([3])?;
    x.sum(keep("C"))?;
    x.mean(["H", "W"])?;
    RotaryEmbedding::new(("embed", 16), "seq")?;
    let rope = RotaryEmbedding::new(("width", 16), "seq")?;
    MultiheadAttention::builder(("embed", 64), ("heads", 4), "seq").kv_heads(2).build()?;
    MultiheadAttention::builder(("embed", 64), ("heads", 4), "seq").rotary(rope).build()?;
    F::pad(&x, [("H", (1, 1)), ("W", (0, 2))])?;
    ReflectionPad::new([("H", 1), ("W", 1)]);
    F::interpolate_with(
        &x,
        None,
        InterpolateOptions::new().scale_factor([("H", 2.0), ("W", 2.0)]).mode(F::InterpolateMode::Bilinear),
    )?;
    let theta = w.clone();
    F::grid_sample(&x, &F::affine_grid(&theta, [("N", 4), ("C", 3), ("H", 5), ("W", 7)])?)?;
    F::cross_entropy(&logits, &target, "class")?;
    F::cross_entropy_with(&logits, &target, "class", CrossEntropyOptions::new().label_smoothing(0.1))?;
    let (q, k, v) = (&x, &x, &x);
    F::attention(&q, &k, &v, "time", "embed")?;
    F::attention_with(&q, &k, &v, "time", "embed", AttentionOptions::new().is_causal(true))?;
    F::scaled_dot_product_attention(&q, &k, &v)?;
    MultiheadAttention::new(("embed", 64), ("heads", 4), "seq")?.attend(&q, &k, &v)?;
    let mha = MultiheadAttention::new(("embed", 64), ("heads", 4), "seq")?;
    mha.attend_with(&x, &x, &x, MultiheadAttentionOptions::new().key_padding_mask(&p).need_weights(true))?;
    TransformerEncoder::new(
        TransformerEncoderLayer::builder(("embed", 64), ("heads", 4), "seq").dim_feedforward(256),
        6,
    )?;
    let w = Parameter::new(w)?;
    nn::init::xavier_uniform_(&w)?;
    nn::init::xavier_uniform_with_(&w, nn::init::XavierOptions::new().gain(2.0))?;
    nn::init::trunc_normal_(&w, 0.0, 0.02, -2.0, 2.0)?;
    nn::init::orthogonal_(&w, 1.0)?;
    nn::init::kaiming_normal_with_(&w, nn::init::KaimingOptions::new().fan(nn::init::Fan::Out))?;
    Buffer::new(Tensor::zeros([("C", 3)])?);
    net.state_dict().save(path)?;
    let state = net.state_dict();
    net.load_state_dict_with(&state, LoadOptions::new().partial(true))?;
    net.load_state_dict(&StateDict::load("net.pth")?)?;
    let mut state = StateDict::default();
    state.rename("module.**", "**")?;
    let table = Embedding::new(("vocab", 8), ("embed", 3))?;
    let (embed, vocab) = (("embed", 3), ("vocab", 8));
    Linear::builder(embed, vocab).weight(table.weight()).build()?;
    net.freeze("fc")?;
    net.freeze("blocks.*.norm")?;
    net.deep_copy()?;
    let (x, w) = (Tensor::ones([3])?, Tensor::ones([8, 3])?);
    nn::functional_call(&net, [("weight", w)], || net.forward(&x))?;
    nn::parametrize::weight_norm(&net, "fc.weight", "out")?;
    nn::parametrize::spectral_norm(&net, "fc.weight", "out")?;
    #[derive(Clone, Module)]
    struct P;
    impl nn::parametrize::Parametrization for P {
        fn compute(&self, originals: &[Tensor]) -> Result<Tensor> {
            Ok(originals[0].clone())
        }
    }
    nn::parametrize::register(&net, "fc.weight", P)?;
    net.summary_of(|| net.forward(&x))?;
    let (x, w) = (Tensor::ones([3])?, Parameter::new(Tensor::ones([3])?)?);
    let file = TensorFile::default();
    file.save("x.npz")?;
    TensorFile::load("x.npz")?;
    x.save("x.safetensors")?;
    Tensor::load("x.safetensors")?;
    AdamW::builder(net.parameters()).lr(1e-3).build()?;
    let mut optimizer = AdamW::new(net.parameters())?;
    optimizer.set_lr(1e-4)?;
    optimizer.state_dict().save(path)?;
    let p = net.parameters();
    Sgd::new(p)?;
    let p = net.parameters();
    RmsProp::new(p)?;
    let p = net.parameters();
    Asgd::new(p)?;
    AdamW::builder_named(net.named_parameters())
        .lr(1e-3)
        .group_matching("**.bias", |group| group.weight_decay = 0.0)
        .build()?;
    let head = Linear::new(("h", 3), ("classes", 2))?;
    optimizer.add_group(head.parameters(), |group| group.lr = 1e-2)?;
    schedules(net.clone(), 100)?;
    runs(net.clone())?;
    let _ = rayon::ThreadPoolBuilder::new().num_threads(4).build_global();
    rayon::current_num_threads();
    let linear = Linear::new(("C", 3), ("features", 8))?;
    Sequential::new().then(linear).then(nn::Lambda::new(|x| x.square()));
    Lbfgs::builder(net.parameters()).line_search_fn(Some(LineSearch::StrongWolfe)).build()?;
    w.update(|w| w.clamp_(-1, 1).map(drop))?;
    clip_grad_norm_(net.parameters(), 1.0)?;
    let loss = net.forward(&Tensor::rand([("N", 4), ("pixels", 3)])?)?.sum(..)?;
    loss.check_finite()?;
    let optimizer = Sgd::new(net.parameters())?;
    optimizer.check_finite()?;
    mixed_precision(net, Tensor::rand([("N", 4), ("pixels", 3)])?)
}

/// The calls of the page about clipping, averages and mixed precision.
fn mixed_precision(net: Linear, x: Tensor) -> Result<()> {
    let net = net.deep_copy()?;
    optim::clip_each_grad_norm_(net.parameters(), 1.0)?;
    let grads = [Tensor::new([3.0, 4.0])?];
    let norm = optim::total_norm(&grads)?;
    optim::clip_grads_with_norm_(net.parameters(), 1.0, norm)?;
    AveragedModel::ema(&net, 0.999)?;
    let mut average = AveragedModel::new(&net)?;
    average.update_parameters(&net)?;
    average.scope(&net, || net.forward(&x))?;
    average.copy_to(&net.deep_copy()?)?;
    let batches = [x.clone()];
    average.update_batch_norm(&net, &batches, |x| net.forward(x))?;
    let mut optimizer = AdamW::new(net.parameters())?;
    Scheduler::new(SwaLr::new(0.05), &mut optimizer)?;
    let loss = autocast(DType::BF16, || net.forward(&x))?.square()?.sum(..)?;
    let mut scaler = GradScaler::new();
    scaler.scale(&loss)?.backward()?;
    scaler.unscale_(&optimizer)?;
    scaler.step(&mut optimizer)?;
    scaler.update()?;
    Ok(())
}

/// The calls of the page about schedules.
fn schedules(net: Linear, batches: usize) -> Result<()> {
    let mut optimizer = AdamW::new(net.parameters())?;
    let mut scheduler = Scheduler::new(Cosine::new(1000), &mut optimizer)?;
    scheduler.step(&mut optimizer)?;
    let rates = [scheduler.lrs()[0], optimizer.lr()];
    assert_eq!(rates[0], rates[1]);
    Scheduler::new(StepDecay::new(30).gamma(0.5), &mut optimizer)?;
    Scheduler::new(MultiStep::new([30, 80]), &mut optimizer)?;
    Scheduler::new(Cosine::new(1000).warmup(100).start_factor(0.1), &mut optimizer)?;
    let sequence = Sequence::new(LinearRamp::new(100)).then(100, Cosine::new(1000));
    Scheduler::new(sequence, &mut optimizer)?;
    let chained = Chained::new(Constant::new(10).factor(0.1)).with(schedule::Exponential::new(0.9));
    Scheduler::new(chained, &mut optimizer)?;
    Scheduler::new(OneCycle::new(0.1, 10 * batches), &mut optimizer)?;
    Scheduler::new(schedule::Lambda::new(|step| 0.95_f64.powf(step)), &mut optimizer)?;
    let mut scheduler = Scheduler::new(CosineRestarts::new(10), &mut optimizer)?;
    let (epoch, i, n) = (2.0, 1.0, 4.0);
    scheduler.step_to(epoch + i / n, &mut optimizer)?;
    let state = scheduler.state_dict();
    scheduler.load_state_dict(&state, &mut optimizer)?;
    {
        use namegrad::optim::{self, ParameterStep, schedule::Schedule};
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        struct Mine {
            lr: f64,
        }
        impl optim::Method for Mine {
            const NAME: &'static str = "Mine";
            fn lr(&self) -> f64 {
                self.lr
            }
            fn set_lr(&mut self, lr: f64) {
                self.lr = lr;
            }
            fn slots(&self, _sizes: &[usize]) -> &'static [&'static str] {
                &["m"]
            }
            fn update(&self, step: ParameterStep<'_>) -> Result<()> {
                let [m] = step.slots.take()?;
                m.mul_(0.9)?.add_(step.grad)?;
                step.param.sub_(&m.mul(self.lr)?).map(drop)
            }
        }
        impl Schedule for Mine {
            fn factor(&self, step: f64) -> f64 {
                1.0 / (1.0 + step)
            }
        }
        let mut optimizer = optim::Builder::new(net.parameters(), Mine { lr: 0.1 }).build()?;
        Scheduler::new(Mine { lr: 0.1 }, &mut optimizer)?.step(&mut optimizer)?;
        assert_eq!(optimizer.lr(), 0.05);
    }
    let mut plateau = ReduceOnPlateau::builder().patience(5).build(&optimizer)?;
    let loss = 0.5;
    plateau.step(loss, &mut optimizer)?;
    let mut stopping = EarlyStopping::builder().patience(5).min_delta(1e-3).build()?;
    assert!(!stopping.step(loss)?);
    stopping.step_model(loss, &net)?;
    stopping.restore_best(&net)?;
    Ok(())
}

/// The calls of the page about training runs.
fn runs(net: Linear) -> Result<()> {
    let batch = Tensor::ones([("C", 3)])?;
    let step = |batch: &Tensor| no_grad(|| net.forward(batch));
    let (result, profile) = profile(|| step(&batch));
    result?;
    println!("{profile}");
    let folder = std::env::temp_dir().join(format!("namegrad-migration-run-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    let path = folder.join("trace.json");
    profile.table().by_op().rows(10);
    profile.table().by_layer();
    profile.chrome_trace(path)?;
    span("augment", || ..);
    let mut optimizer = AdamW::new(net.parameters())?;
    let mut epoch = 3;
    let checkpoints = Checkpoints::new(&folder)?;
    checkpoints.save(epoch, parts![&net, &mut optimizer, &mut epoch])?;
    checkpoints.resume(parts![&net, &mut optimizer, &mut epoch])?;
    std::fs::remove_dir_all(folder).expect("the folder from above");
    Ok(())
}

/// The calls of the page about data.
#[allow(dead_code, unused_variables, clippy::redundant_closure)]
fn page_of_data(words: Vec<Tensor>, [x, y]: [Tensor; 2], folder: &str) -> Result<()> {
    use namegrad::data::sampler::{Distributed, Random, Weighted};
    use namegrad::data::{
        Collate, Collation, Csv, Dataset, Fill, Loader, Mnist, Ragged, Samples, Standardize, Stream,
        TensorDataset, split,
    };
    struct Words(Vec<Tensor>);
    impl Dataset for Words {
        type Sample = Tensor;
        fn len(&self) -> usize {
            self.0.len()
        }
        fn get(&self, index: usize) -> Result<Tensor> {
            Ok(self.0[index].clone())
        }
    }
    let ragged = x.clone();
    let pairs = TensorDataset::new((x, y))?;
    let data = pairs.clone();
    let loader = Loader::builder(data).batch_size(64).shuffle(true).workers(2).build()?;
    for batch in loader.iter() {
        let (x, y) = batch?;
    }
    let (state, batches) = (loader.state_dict()?, loader.len()?);
    drop(loader.cycle());
    loader.load_state_dict(&state)?;
    let data = pairs.clone();
    data.k_folds(5, 7)?;
    let (labels, groups) = ([0; 64].map(i64::from), (0..64).collect::<Vec<i64>>());
    {
        let (x, y) = (Tensor::rand([("N", 4), ("feature", 2)])?, Tensor::rand([("N", 4), ("feature", 2)])?);
        let scaler = Standardize::fit(&x)?;
        scaler.transform(&x)?;
        scaler.inverse(&y)?;
        let images = images()?;
        let scaler = Standardize::fit_over(&images, except("C"))?;
        scaler.transform(&images)?;
        let mean = Tensor::new([0.485, 0.456, 0.406])?.refine_names(["C"])?;
        let std = Tensor::new([0.229, 0.224, 0.225])?.refine_names(["C"])?;
        images.sub(&mean.align_as(&images)?)?.div(&std.align_as(&images)?)?;
        let csv = || Csv::from_bytes(b"city\nRome\nOslo\n");
        let train = {
            let csv = csv();
            csv.categories(["city"]).read()?
        };
        let csv = csv();
        csv.categories_like(&train).read()?;
    }
    let table = Csv::from_bytes(format!("a,b,id\n{}", "1,2,3\n".repeat(64)).into_bytes()).read()?;
    table.with_column("c", table.column("a")?.div(table.column("b")?)?)?;
    table.column_in("id", DType::I64)?;
    let data = pairs.clone();
    let [train, test] = split::stratified(&labels, [0.8, 0.2], 7)?;
    let same = train.clone();
    data.subset(train)?;
    let train = same;
    table.rows(train)?;
    let data = pairs.clone();
    split::stratified_folds(&labels, 5, 7)?;
    split::grouped(&groups, [0.8, 0.2], 7)?;
    split::grouped_folds(&groups, 5, 7)?;
    split::ordered_folds(data.len(), 5, 3)?;
    drop(test);
    table.head(5)?;
    table.describe()?;
    println!("{table}");
    let data = pairs.clone();
    let [train, test] = data.random_split([0.8, 0.2], 7)?;
    let (data, weights, indices) = (pairs.clone(), vec![1.0], [0]);
    Loader::builder(data).sampler(Weighted::new(weights).num_samples(1000)).build()?;
    let (data, rank, world) = (pairs, 0, 2);
    data.subset(indices)?;
    Distributed::new(Random::new(), rank, world)?;
    let f = |words: Vec<Tensor>, how: &Collation<'_>| Tensor::collate(words, how);
    let data = Words(words.clone());
    Loader::builder_with(data, f).build()?;
    let data = Words(words);
    Loader::builder(data).pad("time", 0).build()?;
    let x = ragged;
    Ragged::new(x, "time")?;
    let [a, b] = [vec![1], vec![2]].map(Samples::new);
    a.concat(b);
    fn lines() -> [&'static str; 2] {
        ["a", "b"]
    }
    Stream::new(|| lines());
    Mnist::load(folder)?;
    namegrad::data::ImageFolder::load(folder)?;
    let path = folder;
    Csv::new(path).read()?;
    let table = Csv::new(path).fill_numbers(Fill::Mean).read()?;
    table.numeric_columns();
    table.value_counts("city")?;
    table.group_by("city")?;
    Csv::new(path).dates(["day"]).read()?;
    Csv::new(path).times(["time"]).read()?;
    Ok(())
}

/// Parts of the page that are not calls that can be compiled.
const SKETCHES: &[&str] = &[
    r#"x.scan("time", h, |h, x| ..)?"#,
    "x.fold(..)",
    "images",
    "Checkpoints::new(\"runs/first\")?",
    "namegrad::io",
    "namegrad::train::profile",
    "namegrad::train",
    "file.tensors",
    "Option",
    "RAYON_NUM_THREADS=4",
    "net",
    "rand_distr",
    "w",
    "C",
    "g",
    "autograd::gradcheck(f, &[x])?",
    "autograd::gradcheck_parameters(f, model.named_parameters())?",
    "mean: Buffer",
    "training: Training",
    "self.training.get()",
    ".npy",
    "optimizer.step_with(&mut || loss(&model))?",
    "step_with",
    "zero_grad",
    "backward",
    "clip_grad_value_",
    "LR",
    "Scheduler::new",
    "autograd::Op::new(\"name\", value).input(&x, |g, cx| ..).output()",
    ".inputs(&[Some(&x), bias], ..)",
    ".input_named(&x, ..)",
    "Kept::named_input(&x)",
    "Dropout",
    "eval",
    "heads",
    "rope",
    "layer.register_forward_hook(|_, x, y| ..)",
    "autograd::Op::with_outputs",
    "namegrad::train",
    "tensorboard",
    "progress",
    "pictures",
    "C",
    "H",
    "W",
    "for x in progress(loader) { .. }",
];

/// The calls about logs, meters and pictures.
#[allow(dead_code)]
fn page_of_training(
    net: Linear,
    [x, logits, target, loss, image]: [Tensor; 5],
    [a, b]: [f64; 2],
    step: u64,
) -> Result<()> {
    let mut log = Log::new("runs/a")?;
    Log::builder("runs/a").resume_from(100).build()?;
    log.scalar("loss/train", step, &loss)?;
    log.scalars(step, [("loss/train", a), ("loss/test", b)])?;
    log.histogram("x", step, Histogram::new(&x, 30)?)?;
    log.parameters(step, &net)?;
    log.text("note", step, "a text")?;
    log.hparams([("lr", 0.1.into())])?;
    let mut mean = Mean::new();
    mean.update(&loss, 64)?;
    let mut accuracy = Accuracy::new();
    Accuracy::top(5);
    accuracy.update(&logits, &target, "class")?;
    let mut matrix = ConfusionMatrix::new(10);
    matrix.scores(Average::Macro);
    matrix.per_class();
    update_all(&mut [&mut accuracy, &mut matrix], &logits, &target, "class")?;
    Perplexity::new().ignore_index(-100);
    let mut auc = RocAuc::new();
    let (scores, target) = (logits.select("class", 1)?, target.eq(1)?);
    auc.update(&scores, &target)?;
    auc.compute();
    auc.points();
    auc.average_precision();
    Regression::new();
    {
        Log::builder("runs/a").tensorboard(true).build()?;
        log.image("x", step, &image)?;
    }
    {
        use namegrad::train::pictures::Chart;
        let history = log.history()?;
        Chart::of(&history, ["loss/train"])?.save("loss.svg")?;
    }
    drop(image);
    Ok(())
}

/// The calls of its section about Fourier transforms.
#[test]
fn page_of_transforms() -> Result<()> {
    use namegrad::{complex, fft};
    let x = Tensor::randn([("N", 2), ("time", 20)])?;
    let y = fft::rfft(&x, "time")?;
    assert_eq!(fft::irfft_with(&y, "time", fft::IrfftOptions::new().n(9))?.size("time")?, 9);
    let z = fft::fft(&complex::from_real(&x)?, "time")?;
    fft::fft_with(&z, "time", fft::FftOptions::new().norm(fft::Norm::Ortho))?;
    assert_eq!(fft::ifft(&z, "time")?.shape(), z.shape());
    let images = images()?;
    assert_eq!(fft::rfft2(&images, ["H", "W"])?.sizes(), [4, 3, 5, 4, 2]);
    assert_eq!(fft::fftn_with(&z, .., fft::FftnOptions::new().s([8]))?.sizes(), [2, 8, 2]);
    let f = fft::fftfreq(("frequency", 8), 0.1)?;
    assert_eq!(*fft::fftshift(&f, ..)?.names(), ["frequency"]);
    let w = fft::Window::Hann.periodic(8)?;
    assert!(fft::Window::Kaiser { beta: 6.0 }.symmetric(8)?.allclose(&w.ones_like()?).is_ok());
    let spectra = fft::stft_with(&x, "time", 8, fft::StftOptions::new().window(&w).name("frequency"))?;
    let back =
        fft::istft_with(&spectra, ["frequency", "time"], 8, fft::IstftOptions::new().window(&w).length(20))?;
    assert!(back.allclose_with(&x, IscloseOptions::new().atol(1e-5))?);
    let (re, im) = (complex::real(&z)?, complex::imag(&z)?);
    assert!(complex::from_parts(&re, &im)?.equal(&z)?);
    let (r, angle) = (complex::abs(&z)?, complex::angle(&z)?);
    assert!(complex::polar(&r, &angle)?.allclose_with(&z, IscloseOptions::new().atol(1e-4))?);
    let w = complex::conj(&z)?;
    let quotient = complex::div(&z, &w)?;
    complex::mul(&z, &w)?;
    assert!(complex::mul(&quotient, &w)?.allclose_with(&z, IscloseOptions::new().atol(1e-4))?);
    assert_eq!([complex::pow(&z, 2)?.shape(), z.add(&w)?.shape()], [z.shape(), z.shape()]);
    let (a, b) = (z.rename(None)?, z.rename(None)?.transpose(0, 1)?);
    assert_eq!(complex::matmul(&a, &b)?.sizes(), [2, 2, 2]);
    assert_eq!(
        [complex::sum(&z, ..)?.ndim(), complex::prod(&z, 0)?.ndim(), complex::mean(&z, ..)?.ndim()],
        [1, 2, 1]
    );
    println!("{}", complex::display(&z)?);
    Ok(())
}

/// The calls of its section about distributions.
#[expect(dead_code, reason = "compiled, not run")]
fn page_of_distributions([loc, scale, x, p, probs, c, df, v]: [Tensor; 8]) -> Result<()> {
    use namegrad::distributions::*;
    Gamma::new(2.0, 1.0)?.sample([3])?;
    {
        let d = Normal::new(&loc, &scale)?;
        d.log_prob(&x)?;
        d.cdf(&x)?;
        d.icdf(&p)?;
        d.sample(())?;
        d.sample([("draw", 100)])?;
        d.rsample([("draw", 100)])?;
        d.mean()?;
        d.mode()?;
        d.variance()?;
        d.stddev()?;
        d.entropy()?;
        d.perplexity()?;
        d.batch_shape();
        d.event_shape();
        d.has_rsample();
        d.support();
        Independent::new(d, "coord")?;
    }
    unchecked(|| Normal::new(&loc, &scale))?;
    let b = Bernoulli::new(&probs)?;
    Bernoulli::from_logits(&x)?;
    b.enumerate_support(Some("value"))?;
    let mixture = Categorical::new(&probs, "class")?;
    OneHotCategorical::from_logits(&x, "class")?;
    Multinomial::new(5, &probs, "class")?;
    Dirichlet::new(&c, "class")?;
    StudentT::new(&df, 0.0, 1.0)?;
    MultivariateNormal::new(&loc, &v, ["coord", "other"])?;
    MultivariateNormal::from_precision(&loc, &v, ["coord", "other"])?;
    MultivariateNormal::from_scale_tril(&loc, &v, ["coord", "other"])?;
    let components = Normal::new(&loc, &scale)?;
    MixtureSameFamily::new(mixture, components)?;
    let d = Normal::new(&loc, &scale)?;
    let transforms: Vec<Box<dyn Transform>> =
        vec![Box::new(ExpTransform), Box::new(AffineTransform::new(1.0, 2.0)?)];
    Transformed::new(d, transforms)?;
    let (p, q) = (Normal::new(&loc, &scale)?, Laplace::new(&loc, &scale)?);
    kl_divergence(&p, &q)?;

    #[derive(Debug)]
    struct Own(Frame);
    impl Distribution for Own {
        fn frame(&self) -> &Frame {
            &self.0
        }
        fn support(&self) -> Support {
            Support::Real
        }
        fn log_density(&self, x: &Tensor) -> Result<Tensor> {
            x.square()
        }
        fn draw(&self, shape: &namegrad::core::Shape) -> Result<Tensor> {
            Tensor::zeros(shape)
        }
    }
    Ok(())
}

#[test]
fn the_calls_of_the_page_are_compiled() {
    let dense = |text: &str| text.split_whitespace().collect::<String>().replace(",)", ")");
    let compiled = dense(include_str!("migration.rs").split_once("fn page(").expect("the calls").1);
    let mut found = 0;
    let (page, _) = include_str!("../../docs/migration.md")
        .split_once("## Everything by its name in PyTorch") // which tests/nn/equivalents.rs compiles
        .expect("the tables after the page");
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let line = line.replace("\\|", "\u{1}");
        let right = line.trim_end_matches([' ', '|']).rsplit(" | ").next().expect("a right side");
        for call in right.split('`').skip(1).step_by(2).map(|call| call.replace('\u{1}', "|")) {
            if SKETCHES.contains(&&*call) || call.starts_with("#[derive") {
                continue;
            }
            assert!(compiled.contains(&dense(&call)), "`{call}` is not among the calls in `page`");
            found += 1;
        }
    }
    assert!(found > 100, "{found} calls on the page");
}
