//! Jacobians, Hessians and their products, compared with derivatives worked out by hand and with each other.

use namegrad::autograd::functional::{
    Randomness, VmapOptions, hessian, hvp, jacfwd, jacobian, jvp, looped_in_vmap, vjp, vmap, vmap_with,
};
use namegrad::autograd::{Kept, Op, checkpoint, grad, gradcheck};
use namegrad::prelude::*;

fn vector(numbers: &[f64], name: &str) -> Result<Tensor> {
    Tensor::from_slice(numbers, [(name, numbers.len())])
}

fn close(a: &Tensor, b: &[f64]) {
    let a = a.to_vec::<f64>().unwrap();
    assert!(a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9), "{a:?} is not {b:?}");
}

/// `y = W x` by elementwise sine: `y[m] = sin(Σ W[m, n] x[n])`.
fn layer(inputs: &[Tensor]) -> Result<Tensor> {
    inputs[0].mv(&inputs[1])?.sin()
}

fn weight_and_input() -> Result<[Tensor; 2]> {
    let w = Tensor::from_slice(&[0.1, -0.2, 0.3, 0.4, 0.5, -0.6], [("m", 2), ("n", 3)])?;
    Ok([w, vector(&[1.0, 2.0, -1.0], "n")?])
}

#[test]
fn the_jacobian_has_the_dims_of_the_output_then_those_of_the_input() -> Result<()> {
    let [w, x] = weight_and_input()?;
    let jacobians = jacobian(layer, &[&w, &x])?;
    assert_eq!(*jacobians[0].names(), ["m", "m_", "n_"]);
    assert_eq!(*jacobians[1].names(), ["m", "n_"]);
    let slope = w.mv(&x)?.cos()?.to_vec::<f64>()?;
    let w = w.to_vec::<f64>()?;
    let by_x: Vec<f64> = (0..6).map(|i| slope[i / 3] * w[i]).collect();
    close(&jacobians[1], &by_x);
    let x = x.to_vec::<f64>()?;
    let by_w: Vec<f64> =
        (0..12).map(|i| if i / 6 == i % 6 / 3 { slope[i / 6] * x[i % 3] } else { 0.0 }).collect();
    close(&jacobians[0], &by_w);
    Ok(())
}

#[test]
fn products_with_the_jacobian_are_products_with_the_jacobian() -> Result<()> {
    let [w, x] = weight_and_input()?;
    let j = jacobian(layer, &[&w, &x])?.remove(1).rename(None)?;
    let (v, u) = (vector(&[0.7, -1.3], "m")?, vector(&[1.0, -2.0, 0.5], "n")?);
    let (y, gradients) = vjp(layer, &[&w, &x], Some(&v))?;
    close(&gradients[1], &v.rename(None)?.matmul(&j)?.to_vec::<f64>()?);
    assert_eq!(*y.names(), ["m"]);
    let (_, along) = jvp(layer, &[&w, &x], &[&w.zeros_like()?, &u])?;
    assert_eq!(*along.names(), ["m"]);
    close(&along, &j.matmul(&u.rename(None)?)?.to_vec::<f64>()?);
    Ok(())
}

#[test]
fn a_jvp_is_a_difference() -> Result<()> {
    let f = |x: &[Tensor]| x[0].mul(&x[1])?.exp()?.sum("n");
    let (x, y) = (vector(&[0.1, 0.2], "n")?, vector(&[-0.5, 1.5], "n")?);
    let (v, w) = (vector(&[1.0, -1.0], "n")?, vector(&[0.3, 2.0], "n")?);
    let (_, along) = jvp(f, &[&x, &y], &[&v, &w])?;
    let at = |t: f64| f(&[x.add(&v.mul(t)?)?, y.add(&w.mul(t)?)?])?.item::<f64>();
    let difference = (at(1e-6)? - at(-1e-6)?) / 2e-6;
    assert!((along.item::<f64>()? - difference).abs() < 1e-8);
    Ok(())
}

#[test]
fn second_derivatives() -> Result<()> {
    let x = vector(&[0.5, -1.0, 2.0], "n")?;
    // Σ x³ + x₀ x₂
    let f = |x: &Tensor| {
        let product = x.select("n", 0)?.mul(&x.select("n", 2)?)?;
        x.pow(3)?.sum(..)?.add(&product)
    };
    let h = hessian(f, &x)?;
    assert_eq!(*h.names(), ["n", "n_"]);
    close(&h, &[3.0, 0.0, 1.0, 0.0, -6.0, 0.0, 1.0, 0.0, 12.0]);
    let v = vector(&[1.0, 2.0, 3.0], "n")?;
    let (y, product) = hvp(f, &x, &v)?;
    assert!((y.item::<f64>()? - (0.125 - 1.0 + 8.0 + 1.0)).abs() < 1e-12);
    close(&product, &h.rename(None)?.mv(&v.rename(None)?)?.to_vec::<f64>()?);
    Ok(())
}

#[test]
fn results_are_recorded_if_the_inputs_are() -> Result<()> {
    let x = vector(&[0.5, -1.0], "n")?;
    type Function = fn(&[Tensor]) -> Result<Tensor>;
    let parts: [Function; 4] = [
        |x| vjp(|x| x[0].exp(), &[&x[0]], Some(&x[0].detach())).map(|(_, mut of_x)| of_x.remove(0)),
        |x| jvp(|x| x[0].sin(), &[&x[0]], &[&x[0].detach()]).map(|(_, along)| along),
        |x| Ok(jacobian(|x| x[0].exp()?.sum(..), &[&x[0]])?.remove(0)),
        |x| hvp(|x| x.pow(3)?.sum(..), &x[0], &x[0].detach()).map(|(_, product)| product),
    ];
    for (number, part) in parts.into_iter().enumerate() {
        // The direction must not change with the input, so it is a constant.
        let direction = x.clone();
        let fixed = move |inputs: &[Tensor]| match number {
            0 => vjp(|x| x[0].exp(), &[&inputs[0]], Some(&direction)).map(|(_, mut of_x)| of_x.remove(0)),
            1 => jvp(|x| x[0].sin(), &[&inputs[0]], &[&direction]).map(|(_, along)| along),
            3 => hvp(|x| x.pow(3)?.sum(..), &inputs[0], &direction).map(|(_, product)| product),
            _ => part(inputs),
        };
        gradcheck(fixed, std::slice::from_ref(&x))?;
        assert!(
            !part(std::slice::from_ref(&x))?.requires_grad(),
            "number {number} without a gradient to follow"
        );
    }
    assert!(x.grad().is_none());
    Ok(())
}

#[test]
fn a_function_of_nothing_has_derivatives_of_zero() -> Result<()> {
    let x = vector(&[1.0, 2.0], "n")?;
    let constant = |_: &[Tensor]| Tensor::from_slice(&[3.0_f64], [("k", 1)]);
    close(&jacobian(constant, &[&x])?[0], &[0.0, 0.0]);
    close(&jvp(constant, &[&x], &[&x])?.1, &[0.0]);
    close(&vjp(constant, &[&x], None)?.1[0], &[0.0, 0.0]);
    Ok(())
}

#[test]
fn a_map_over_a_named_dim() -> Result<()> {
    let x =
        Tensor::from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [("n", 2), ("batch", 3)])?.requiring_grad()?;
    let y = vmap(|x| x[0].square()?.sum("n"), &[&x], "batch")?;
    assert_eq!(*y.names(), ["batch"]);
    close(&y, &[17.0, 29.0, 45.0]);
    y.sum(..)?.backward()?;
    close(&x.grad().unwrap(), &[2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    Ok(())
}

/// A direction has the dims of its tensor in the same order.
#[test]
fn directions_in_another_order() -> Result<()> {
    let x = Tensor::new([[1.0, 2.0], [3.0, 4.0]])?.rename(["N", "C"])?;
    let v = x.rename(["C", "N"])?;
    let cube = |x: &[Tensor]| x[0].pow(3);
    let products = |v: &Tensor| {
        let of_sum = hvp(|x| x.pow(3)?.sum(..), &x, v).map(|(_, product)| product);
        let gradients = vjp(cube, &[&x], Some(v)).map(|(_, mut gradients)| gradients.remove(0));
        let y = x.detach().requiring_grad()?.pow(3)?;
        let backward = y.backward_with(Some(v), BackwardOptions::new()).map(|()| x.clone());
        Ok::<_, Error>([of_sum, gradients, jvp(cube, &[&x], &[v]).map(|(_, along)| along), backward])
    };
    for product in products(&v)?.into_iter().take(3) {
        let error = product.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NameMismatch, "{error}");
        assert!(error.repair().is_some_and(|repair| repair.contains("align_as(&")), "{error}");
    }
    // Strict mode checks the gradient that a backward pass starts with, too.
    for product in namegrad::names::strict(|| products(&v))? {
        assert_eq!(product.unwrap_err().kind(), ErrorKind::NameMismatch);
    }
    for (own, bare) in products(&x)?.into_iter().zip(products(&x.rename(None)?)?) {
        assert!(own?.rename(None)?.equal(&bare?.rename(None)?)?);
    }
    Ok(())
}

#[test]
fn wrong_uses() -> Result<()> {
    let (x, y) = (vector(&[1.0, 2.0], "n")?, vector(&[1.0, 2.0, 3.0], "n")?);
    let kind = |error: Error| error.kind();
    assert_eq!(jvp(|x| x[0].exp(), &[&x], &[]).map_err(kind).unwrap_err(), ErrorKind::Autograd);
    assert_eq!(jvp(|x| x[0].exp(), &[&x], &[&y]).map_err(kind).unwrap_err(), ErrorKind::Autograd);
    assert_eq!(vjp(|x| x[0].exp(), &[&x], Some(&y)).map_err(kind).unwrap_err(), ErrorKind::Autograd);
    assert_eq!(hessian(|x| x.exp(), &x).map_err(kind).unwrap_err(), ErrorKind::Autograd);
    assert_eq!(vmap(|x| x[0].exp(), &[&x, &y], "n").map_err(kind).unwrap_err(), ErrorKind::Shape);
    assert_eq!(vmap(|x| x[0].exp(), &[&x], "batch").map_err(kind).unwrap_err(), ErrorKind::NameNotFound);
    let collides = Tensor::ones([("n_", 2)])?;
    let outer = |_: &[Tensor]| collides.mul(1);
    assert_eq!(jacobian(outer, &[&x]).map_err(kind).unwrap_err(), ErrorKind::DuplicateName);
    Ok(())
}

/// `x³` with its own derivative.
fn cube(x: &Tensor) -> Result<Tensor> {
    let kept = Kept::input(x);
    let y = x.value().mul(x.value())?.mul(x.value())?;
    Ok(Op::new("cube", y).input(x, move |g, cx| g.mul(kept.get(cx).square()?.mul(3.0)?)).output())
}

/// The radius and the angle of a point, with the derivatives of both outputs at once.
fn polar(x: &Tensor, y: &Tensor) -> Result<Vec<Tensor>> {
    let r = x.value().square()?.add(&y.value().square()?)?.sqrt()?;
    let angle = y.value().atan2(x.value())?;
    let kept = [Kept::output_at(0, &r), Kept::output_at(1, &angle)];
    Ok(Op::with_outputs("polar", vec![r, angle]).inputs(&[Some(x), Some(y)], move |_, cx| {
        let [r, angle] = [kept[0].get(cx), kept[1].get(cx)];
        let [along, across] = [cx.output_gradient(0)?, cx.output_gradient(1)?.div(&r)?];
        let (sin, cos) = (angle.sin()?, angle.cos()?);
        let of_x = along.mul(&cos)?.sub(across.mul(&sin)?)?;
        let of_y = along.mul(&sin)?.add(across.mul(&cos)?)?;
        Ok(vec![Some(of_x), Some(of_y)])
    }))
}

fn number(x: f64) -> Result<Tensor> {
    Tensor::from_slice(&[x], [] as [usize; 0])
}

/// The derivative of a function of one number, in forward mode.
fn slope(f: impl Fn(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Tensor> {
    Ok(jvp(|x| f(&x[0]), &[x], &[&x.detach().ones_like()?])?.1)
}

/// The same in reverse mode.
fn slope_back(f: impl Fn(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Tensor> {
    Ok(vjp(|x| f(&x[0]), &[x], None)?.1.remove(0))
}

#[test]
fn nested_derivatives_do_not_mix() -> Result<()> {
    type Slope = fn(&dyn Fn(&Tensor) -> Result<Tensor>, &Tensor) -> Result<Tensor>;
    let modes: [Slope; 2] = [|f, x| slope(f, x), |f, x| slope_back(f, x)];
    let one = number(1.0)?;
    for outer in modes {
        for inner in modes {
            // d/dx (x d/dy (x + y)) = 1: the tangent of `x` must not count for `y`.
            let confused = |x: &Tensor| x.mul(&inner(&|y| x.add(y), &one)?);
            assert_eq!(outer(&confused, &one)?.item::<f64>()?, 1.0);
            // d/dx (x d/dy (x y²)) at y = x: d/dx 2 x³ = 6 x².
            let cubic = |x: &Tensor| x.mul(&inner(&|y| x.mul(&y.square()?), x)?);
            assert_eq!(outer(&cubic, &number(3.0)?)?.item::<f64>()?, 54.0);
            for third in modes {
                // The third derivative of x⁵, by ops of the library and of a user.
                let fifth = |x: &Tensor| x.square()?.mul(&cube(x)?);
                let first = |x: &Tensor| inner(&fifth, x);
                let second = |x: &Tensor| third(&first, x);
                let found = outer(&second, &number(2.0)?)?.item::<f64>()?;
                assert!((found - 60.0 * 4.0).abs() < 1e-9, "{found}");
            }
        }
    }
    Ok(())
}

#[test]
fn the_angle_and_the_radius_in_all_modes() -> Result<()> {
    let [x, y] = [number(3.0)?, number(4.0)?];
    let of = |x: &[Tensor]| {
        let both = polar(&x[0], &x[1])?;
        both[0].square()?.mul(&both[1])
    };
    let plain = |x: &[Tensor]| x[0].square()?.add(&x[1].square()?)?.mul(&x[1].atan2(&x[0])?);
    let [v, w] = [number(0.3)?, number(-0.7)?];
    let along = |of: &dyn Fn(&[Tensor]) -> Result<Tensor>| {
        let first = |x: &[Tensor]| Ok::<_, Error>(jvp(of, &[&x[0], &x[1]], &[&v, &w])?.1);
        let back = |x: &[Tensor]| {
            let gradients = vjp(of, &[&x[0], &x[1]], None)?.1;
            gradients[0].mul(&v)?.add(&gradients[1].mul(&w)?)
        };
        let twice = vjp(first, &[&x, &y], None)?.1;
        Ok::<_, Error>([
            first(&[x.clone(), y.clone()])?,
            back(&[x.clone(), y.clone()])?,
            jvp(first, &[&x, &y], &[&v, &w])?.1,
            jvp(back, &[&x, &y], &[&v, &w])?.1,
            twice[0].mul(&v)?.add(&twice[1].mul(&w)?)?,
        ])
    };
    for (a, b) in along(&of)?.iter().zip(along(&plain)?) {
        assert!((a.item::<f64>()? - b.item::<f64>()?).abs() < 1e-9, "{a} and {b}");
    }
    Ok(())
}

#[test]
fn tangents_go_through_no_grad_in_place_ops_and_checkpoints_but_not_through_detach() -> Result<()> {
    let x = vector(&[0.5, -1.0, 2.0], "n")?;
    let of = |f: &dyn Fn(&Tensor) -> Result<Tensor>| {
        let along = jvp(|x| f(&x[0]), &[&x], &[&x.ones_like()?])?.1;
        assert!(!along.requires_grad());
        along.to_vec::<f64>()
    };
    let square: Vec<f64> = x.mul(2.0)?.to_vec()?;
    assert_eq!(of(&|x| no_grad(|| x.square()))?, square);
    assert_eq!(of(&|x| checkpoint(|x| x[0].square(), &[x]))?, square);
    assert_eq!(of(&|x| x.detach().square())?, [0.0; 3]);
    assert_eq!(of(&|x| x.detach().mul(x))?, x.to_vec::<f64>()?);
    assert_eq!(of(&|x| x.sign())?, [0.0; 3]);
    let in_place = |x: &Tensor| {
        let mut y = x.clone();
        y.mul_(x)?;
        y += 1.0;
        Ok::<_, Error>(y)
    };
    assert_eq!(of(&in_place)?, square);
    assert_eq!(of(&|x| no_grad(|| in_place(x)))?, square);
    let written = |x: &Tensor| {
        let mut y = Tensor::zeros([("n", 3)])?.to(DType::F64)?;
        y.index_put_(&[Index::from(1)], x.select("n", 2)?.square()?)?;
        Ok(y)
    };
    assert_eq!(of(&written)?, [0.0, 4.0, 0.0]);
    assert_eq!(of(&|x| no_grad(|| written(x)))?, [0.0, 4.0, 0.0]);
    assert_eq!(of(&|x| Tensor::cat(&[&x.square()?, &x.detach(), x], "n"))?[..3], square);
    assert_eq!(of(&|x| Tensor::stack(&[&x.square()?, &x.detach()], 0))?[..3], square);
    // A tangent that escapes its function counts no more.
    let escaped = std::cell::RefCell::new(x.clone());
    jvp(|x| Ok(escaped.replace(x[0].clone())), &[&x], &[&x])?;
    let escaped = escaped.into_inner();
    assert!(!escaped.requires_grad() && !escaped.square()?.requires_grad());
    assert_eq!(
        jvp(|x| escaped.mul(&x[0]), &[&x], &[&x.ones_like()?])?.1.to_vec::<f64>()?,
        x.to_vec::<f64>()?
    );
    Ok(())
}

#[test]
fn jacobians_and_hessians_agree_in_both_modes() -> Result<()> {
    let [w, x] = weight_and_input()?;
    let (reverse, forward) = (jacobian(layer, &[&w, &x])?, jacfwd(layer, &[&w, &x])?);
    for (a, b) in reverse.iter().zip(&forward) {
        assert_eq!(a.shape(), b.shape());
        close(a, &b.to_vec::<f64>()?);
    }
    assert!(looped_in_vmap().is_empty());
    // A Hessian as the Jacobian of a gradient, in all combinations.
    let f = |x: &Tensor| x.pow(3)?.sum(..)?.mul(&x.sin()?.sum(..)?);
    let gradient = |x: &[Tensor]| Ok(vjp(|x| f(&x[0]), &[&x[0]], None)?.1.remove(0));
    let along = |x: &[Tensor]| jacfwd(|x| f(&x[0]), &[&x[0]])?.remove(0).rename(["n"]);
    let h = hessian(f, &x)?;
    assert_eq!(*h.names(), ["n", "n_"]);
    let others = [
        jacobian(gradient, &[&x])?.remove(0),
        jacfwd(gradient, &[&x])?.remove(0),
        jacobian(along, &[&x])?.remove(0),
        jacfwd(along, &[&x])?.remove(0),
    ];
    for other in others {
        close(&other, &h.to_vec::<f64>()?);
    }
    // Empty inputs and results.
    let none = Tensor::zeros([("n", 0)])?.to(DType::F64)?;
    assert_eq!(jacfwd(|x| x[1].mul(2), &[&none, &x])?[0].shape().to_string(), "[n=3, n_=0]");
    assert_eq!(jacobian(|x| x[0].mul(2), &[&none])?[0].sizes(), [0, 0]);
    Ok(())
}

/// A small model, its inputs and its targets.
fn model() -> Result<(Sequential, Tensor, Tensor)> {
    manual_seed(5);
    let model = Sequential::new()
        .then(Linear::new(("in", 4), ("hidden", 8))?)
        .then(nn::Tanh)
        .then(Linear::new(("hidden", 8), ("class", 3))?);
    let x = Tensor::randn([("N", 6), ("in", 4)])?;
    let target = Tensor::new([0, 1, 2, 2, 1, 0])?.refine_names(["N"])?;
    Ok((model, x, target))
}

#[test]
fn gradients_per_sample() -> Result<()> {
    let (model, x, target) = model()?;
    let parameters: Vec<Tensor> = model.parameters().iter().map(|p| p.tensor()).collect();
    let of_sample = |sample: &[Tensor]| {
        let loss = F::cross_entropy(&model.forward(&sample[0])?, &sample[1], "class")?;
        grad(&[&loss], &parameters.iter().collect::<Vec<_>>())
    };
    let all = vmap(of_sample, &[&x, &target], "N")?;
    assert!(looped_in_vmap().is_empty(), "{:?}", looped_in_vmap());
    assert_eq!(all.len(), 4);
    for at in 0..6 {
        let one = of_sample(&[x.select("N", at)?, target.select("N", at)?])?;
        for (all, one) in all.iter().zip(&one) {
            assert!(all.select(0, at)?.allclose_with(one, IscloseOptions::new().atol(1e-6))?);
        }
    }
    // Nested: for each sample, the Jacobian of the scores by the inputs.
    let jacobians = vmap(|x| Ok(jacobian(|x| model.forward(&x[0]), &[&x[0]])?.remove(0)), &[&x], "N")?;
    assert_eq!(jacobians.shape().to_string(), "[N=6, class=3, in_=4]");
    let first = jacobian(|x| model.forward(&x[0]), &[&x.select("N", 0)?])?.remove(0);
    assert!(jacobians.select("N", 0)?.allclose_with(&first, IscloseOptions::new().atol(1e-6))?);
    Ok(())
}

#[test]
fn the_dim_of_a_map_is_invisible() -> Result<()> {
    let x = Tensor::arange(0, 24, 1)?.to(DType::F64)?.reshape([("a", 2), ("N", 3), ("b", 4)])?;
    let y = vmap(
        |x| {
            assert_eq!(x[0].shape().to_string(), "[a=2, b=4]");
            assert!(x[0].size("N").is_err());
            x[0].sub(&x[0].mean(keep("b"))?)?.movedim(0, 1)
        },
        &[&x],
        "N",
    )?;
    assert_eq!(y.shape().to_string(), "[N=3, b=4, a=2]");
    let whole = x.sub(&x.mean(keep("b"))?)?.align_to(["N", "b", "a"])?;
    assert!(y.equal(&whole)?);
    // Over all pairs: a map in a map, of different inputs.
    let [p, q] = [x.select("a", 0)?.rename([("N", "p")])?, x.select("a", 1)?.rename([("N", "q")])?];
    let products = vmap(|p| vmap(|q| p[0].dot(&q[0]), &[&q], "q"), &[&p], "p")?;
    assert_eq!(products.shape().to_string(), "[p=3, q=3]");
    assert!(products.equal(&p.matmul(q.t()?)?)?);
    // A result that is the same for all slices, and a place for the dim.
    let constant = vmap(|_| Ok(p.clone()), &[&x], "N")?;
    assert_eq!(constant.shape().to_string(), "[N=3, p=3, b=4]");
    let last = vmap_with(|x| x[0].exp(), &[&x], "N", VmapOptions::new().out_dim(-1))?;
    assert_eq!(last.shape().to_string(), "[a=2, b=4, N=3]");
    Ok(())
}

#[test]
fn what_a_map_refuses() -> Result<()> {
    let x = Tensor::new([[1.0, 2.0], [-3.0, 4.0]])?.refine_names(["N", "n"])?;
    let fails = |f: &dyn Fn(&[Tensor]) -> Result<Tensor>| vmap(f, &[&x], "N").unwrap_err();
    // Numbers decide which ops run.
    let error = fails(&|x| if x[0].sum(..)?.item::<f32>()? > 0.0 { x[0].exp() } else { x[0].sin() });
    assert_eq!((error.kind(), error.op()), (ErrorKind::Unsupported, "item"));
    assert!(error.location().file().ends_with("functional.rs"), "{error}");
    // All slices are written into one tensor.
    let error = fails(&|x| {
        let mut sum = Tensor::zeros([("n", 2)])?;
        sum.add_(&x[0])?;
        Ok(sum)
    });
    assert_eq!((error.kind(), error.op()), (ErrorKind::Unsupported, "add_"));
    let written = vmap(
        |x| {
            let mut own = x[0].clone();
            own.mul_(2.0)?;
            own += &x[0];
            Ok(own)
        },
        &[&x],
        "N",
    )?;
    assert!(written.equal(&x.mul(3.0)?)?);
    // A gradient for each slice is added to one leaf.
    let w = Tensor::new([1.0, 2.0])?.refine_names(["n"])?.requiring_grad()?;
    let error = fails(&|x| {
        x[0].dot(&w)?.backward()?;
        Ok(w.clone())
    });
    assert_eq!((error.kind(), error.op()), (ErrorKind::Unsupported, "backward"));
    assert!(w.grad().is_none());
    // An input without the dim, which all slices may share.
    let error = vmap(|x| x[0].dot(&x[1]), &[&x, &w], "N").unwrap_err();
    assert!(error.repair().is_some_and(|repair| repair.contains(".shared(vec![1])")), "{error}");
    let shared = vmap_with(|x| x[0].dot(&x[1]), &[&x, &w], "N", VmapOptions::new().shared(vec![1]))?;
    assert_eq!(shared.to_vec::<f32>()?, [5.0, 5.0]);
    // The errors of a slice.
    assert_eq!(fails(&|x| x[0].sum("N")).kind(), ErrorKind::NameNotFound);
    assert_eq!(fails(&|x| x[0].select("n", 2)).kind(), ErrorKind::Index);
    Ok(())
}

#[test]
fn random_numbers_in_a_map() -> Result<()> {
    let x = Tensor::zeros([("N", 4), ("n", 50)])?;
    let with = |randomness| {
        let f = |x: &[Tensor]| F::dropout(&x[0].add(1.0)?, 0.5)?.add(&x[0].randn_like()?);
        vmap_with(f, &[&x], "N", VmapOptions::new().randomness(randomness))
    };
    let error = with(Randomness::Error).unwrap_err();
    assert!(error.message().contains("randomness error mode"), "{error}");
    let rows = |y: Tensor| y.unbind("N");
    let same = rows(with(Randomness::Same)?)?;
    assert!(same[0].equal(&same[1])? && same[0].equal(&same[3])?);
    let different = rows(with(Randomness::Different)?)?;
    assert!(!different[0].equal(&different[1])?);
    Ok(())
}

/// Your own ops read numbers, so the function is called for each slice.
#[test]
fn your_own_ops_in_a_map() -> Result<()> {
    let x = Tensor::new([[1.0, 2.0], [-3.0, 4.0]])?.refine_names(["N", "n"])?;
    let y = vmap(|x| cube(&x[0])?.sum(..), &[&x], "N")?;
    assert_eq!(y.to_vec::<f32>()?, [9.0, 37.0]);
    assert_eq!(looped_in_vmap(), ["f"]);
    let gradients = vmap(|x| Ok(vjp(|x| cube(&x[0])?.sum(..), &[&x[0]], None)?.1.remove(0)), &[&x], "N")?;
    assert_eq!(gradients.to_vec::<f32>()?, [3.0, 12.0, 27.0, 48.0]);
    // An op without a rule runs for each slice, and the rest at once.
    vmap(|x| x[0].exp()?.histc_with(HistcOptions::new().bins(2).min(0.0).max(1.0)), &[&x], "N")?;
    assert_eq!(looped_in_vmap(), ["histc"]);
    Ok(())
}

/// An index that is another one in each slice is read, which calls the function for each.
#[test]
fn an_index_in_a_map() -> Result<()> {
    let table = Tensor::new([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])?.refine_names(["N", "k"])?;
    let index = Tensor::new([2, 0])?.refine_names(["N"])?;
    let by = vmap(|s| s[0].index_by("k", &s[1]), &[&table, &index], "N")?;
    let at = vmap(|s| s[0].at([("k", &s[1])]), &[&table, &index], "N")?;
    assert_eq!((by.to_vec::<f32>()?, at.to_vec::<f32>()?), (vec![3.0, 4.0], vec![3.0, 4.0]));
    let outside = Tensor::new([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])?.refine_names(["k", "e"])?;
    let rows = vmap(|s| outside.index_by("k", &s[0]), &[&index], "N")?;
    assert_eq!(rows.shape().to_string(), "[N=2, e=2]");
    assert_eq!(rows.to_vec::<f32>()?, [5.0, 6.0, 1.0, 2.0]);
    Ok(())
}

/// Ops in frequent forms run on all slices at once.
#[test]
fn what_does_not_loop_in_a_map() -> Result<()> {
    type Part = fn(&[Tensor]) -> Result<Tensor>;
    let parts: [Part; 30] = [
        |x| x[0].add(&x[1])?.mul(2.0)?.gelu(),
        |x| x[0].gt(0.0)?.choose(&x[0], &x[1]),
        |x| x[0].sum("n"),
        |x| x[0].mean(keep(["m", "n"])),
        |x| x[0].logsumexp(..),
        |x| x[0].std("m"),
        |x| x[0].softmax("n"),
        |x| x[0].cumsum("m"),
        |x| Ok(x[0].max("n")?.values),
        |x| Ok(x[0].sort("m")?.values),
        |x| Ok(x[0].topk(2, "n")?.values),
        |x| x[0].argmax("n"),
        |x| x[0].transpose("m", "n"),
        |x| x[0].rename(None)?.permute([1, 0]),
        |x| x[0].flatten(["m", "n"], "k")?.unflatten("k", [("a", 2), ("b", 6)]),
        |x| x[0].unsqueeze(-1)?.expand([3, 4, 2]),
        |x| x[0].narrow("n", 1, 2)?.flip("n"),
        |x| Tensor::stack(&[&x[0], &x[1]], -1),
        |x| Tensor::cat(&[&x[0], &x[1]], "n"),
        |x| x[0].split(2, "n")?[1].to(DType::F32),
        |x| x[0].align_to(["n", "new", "m"]),
        |x| x[0].tril(),
        |x| x[0].matmul(&x[1].t()?.rename([("m", "k")])?),
        |x| x[0].rename(None)?.matmul(Tensor::ones([4, 2])?.to(DType::F64)?),
        |x| x[0].contract(&x[1], ["m", "n"]),
        |x| x[0].select("m", 0)?.dot(&x[1].select("m", 1)?),
        |x| x[0].index_select(&x[2], "n"),
        |x| Tensor::ones([5, 2])?.index_select(&x[2], 0),
        |x| x[0].rename(None)?.gather(x[2].rename(None)?.unsqueeze(0)?.expand([3, 2])?, 1),
        |x| F::layer_norm(&x[0], "n"),
    ];
    let x = Tensor::rand([("N", 5), ("m", 3), ("n", 4)])?.to(DType::F64)?;
    let index = Tensor::new([[0, 1]; 5])?.refine_names(["N", "k"])?;
    for (number, part) in parts.into_iter().enumerate() {
        vmap_with(part, &[&x, &x.cos()?, &index.select("N", 0)?], "N", VmapOptions::new().shared(vec![2]))?;
        assert!(looped_in_vmap().is_empty(), "number {number}: {:?}", looped_in_vmap());
    }
    Ok(())
}
