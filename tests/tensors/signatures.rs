//! Functions with a signature of dims: what fits, what does not, and what the errors say.

use namegrad::core::NamedTensor;
use namegrad::names::Names;
use namegrad::prelude::*;

#[dims(q = "N query embed", k = "N key embed", returns = "N query key")]
fn scores(q: &Tensor, k: &Tensor) -> Result<Tensor> {
    q.contract(k, "embed")
}

#[dims(x = "[N C=3 H? ... W]", returns = "[N ...]")]
fn in_order(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

#[dims(x = "N C?", y = "... N")]
fn optional(x: Option<&Tensor>, y: &[Tensor]) -> Result<usize> {
    Ok(y.len() + usize::from(x.is_some()))
}

fn zeros<const N: usize>(dims: [(&str, usize); N]) -> Tensor {
    Tensor::zeros(dims).unwrap()
}

#[track_caller]
fn refused<T>(result: Result<T>, kind: ErrorKind, start: &str) -> Error {
    let error = result.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.message().starts_with(start), "{error}");
    error
}

#[test]
fn dims_in_any_order() {
    let (q, k) = (zeros([("N", 2), ("query", 4), ("embed", 8)]), zeros([("N", 2), ("key", 5), ("embed", 8)]));
    assert_eq!(scores(&q, &k).unwrap().shape().to_string(), "[N=2, query=4, key=5]");
    let moved = [q.align_to(["embed", "N", "query"]).unwrap(), k.align_to(["key", "embed", "N"]).unwrap()];
    assert!(scores(&moved[0], &k).is_ok() && scores(&moved[0], &moved[1]).is_ok());
}

#[test]
fn the_error_shows_the_signature_the_tensor_and_the_line() {
    let (q, k) = (zeros([("N", 2), ("query", 4), ("embed", 8)]), zeros([("N", 2), ("key", 5), ("embed", 7)]));
    let (error, line) = (scores(&q, &k).unwrap_err(), line!());
    assert_eq!((error.location().file(), error.location().line()), (file!(), line));
    let text = format!(
        "scores: `k` has size 7 in dim 'embed', but `q` has size 8; the signature is (q = \"N query embed\", \
         k = \"N key embed\", returns = \"N query key\"), where N=2, query=4, embed=8, key=5 (at {})\n  \
         inputs: [N=2, key=5, embed=7]",
        error.location()
    );
    assert_eq!(error.to_string(), text);
}

#[test]
fn missing_and_further_dims() {
    let (q, k) = (zeros([("N", 2), ("query", 4), ("embed", 8)]), zeros([("N", 2), ("key", 5), ("embed", 8)]));
    let renamed = k.rename([("embed", "width")]).unwrap();
    refused(scores(&q, &renamed), ErrorKind::NameNotFound, "`k` has no dim 'embed';");
    refused(scores(&q.rename(None::<Names>).unwrap(), &k), ErrorKind::UnnamedNotAllowed, "`q` has no names;");
    refused(scores(&Tensor::zeros(()).unwrap(), &k), ErrorKind::NameNotFound, "`q` has no dim 'N';");
    let further = q.unsqueeze_with(0, UnsqueezeOptions::new().name("time")).unwrap();
    refused(scores(&further, &k), ErrorKind::Shape, "`q` has the further dim 'time';");
    refused(
        scores(&q.unsqueeze(1).unwrap(), &k),
        ErrorKind::Shape,
        "`q` has a further dim, which is unnamed;",
    );
    // Sizes of zero are sizes.
    let empty = zeros([("N", 0), ("query", 4), ("embed", 8)]);
    refused(scores(&empty, &k), ErrorKind::Shape, "`k` has size 2 in dim 'N', but `q` has size 0;");
}

#[test]
fn dims_in_this_order() {
    for good in [
        zeros([("N", 2), ("C", 3), ("H", 4), ("W", 4)]),
        zeros([("N", 2), ("C", 3), ("W", 4)]),
        zeros([("N", 2), ("C", 3), ("D", 1), ("E", 1), ("W", 4)]),
        zeros([("N", 2), ("C", 3), ("H", 4), ("D", 1), ("W", 4)]),
    ] {
        assert!(in_order(&good).is_ok(), "{}", good.shape());
    }
    for bad in [
        zeros([("C", 3), ("N", 2), ("W", 4)]),
        zeros([("N", 2), ("C", 3), ("W", 4), ("H", 4)]),
        zeros([("D", 2), ("N", 2), ("C", 3), ("W", 4)]),
        zeros([("N", 2), ("D", 2), ("C", 3), ("W", 4)]),
        zeros([("N", 2), ("C", 3), ("D", 2), ("H", 3), ("W", 4)]),
        zeros([("N", 2), ("C", 3), ("W", 4), ("D", 2)]),
    ] {
        let error = refused(in_order(&bad), ErrorKind::Misaligned, "the dims of `x` are in another order;");
        let middle = if bad.names().to_string().contains("'H'") { "\"H\", " } else { "" };
        let repair = format!("x.align_to([\"N\", \"C\", {middle}\"...\", \"W\"])?");
        assert_eq!(error.repair(), Some(&repair[..]));
        // Followed, the repair works.
        let order: Vec<&str> = repair.split('"').skip(1).step_by(2).collect();
        assert!(in_order(&bad.align_to(&order[..]).unwrap()).is_ok(), "{}", bad.shape());
    }
    let four = zeros([("N", 2), ("C", 4), ("W", 4)]);
    refused(in_order(&four), ErrorKind::Shape, "`x` has size 4 in dim 'C', not 3;");
}

#[test]
fn options_and_lists() {
    let (n, m) = (zeros([("N", 2)]), zeros([("time", 3), ("N", 3)]));
    assert_eq!(optional(Some(&n), &[n.clone(), n.clone()]).unwrap(), 3);
    assert_eq!(
        optional(
            None,
            &[m.clone(), m.rename(None::<Names>).unwrap().refine_names([None, Some("N")]).unwrap()]
        )
        .unwrap(),
        2
    );
    assert_eq!(optional(Some(&zeros([("C", 1), ("N", 2)])), &[]).unwrap(), 1);
    let words = "`y` has size 3 in dim 'N', but `x` has size 2;";
    refused(optional(Some(&n), &[n.clone(), m.clone()]), ErrorKind::Shape, words);
    // Two tensors of one list.
    refused(optional(None, &[n, m]), ErrorKind::Shape, "`y` has size 3 in dim 'N', but `y` has size 2;");
}

/// The result is compared with the arguments, and the repair of its order is that of the result.
#[test]
fn the_result_is_checked() {
    #[dims(x = "N in", returns = "N out")]
    fn wrong(x: &Tensor, way: usize) -> Result<Tensor> {
        if way == 0 {
            return x.sum("in");
        }
        let y = x.rename([("in", "out")])?;
        if way == 1 { Tensor::cat(&[&y, &y], "N") } else { Ok(y) }
    }
    let x = zeros([("N", 2), ("in", 3)]);
    refused(wrong(&x, 0), ErrorKind::NameNotFound, "the result has no dim 'out';");
    refused(wrong(&x, 1), ErrorKind::Shape, "the result has size 4 in dim 'N', but `x` has size 2;");
    assert!(wrong(&x, 2).is_ok());

    #[dims(returns = "[C N]")]
    fn turned(x: &Tensor) -> Result<Tensor> {
        Ok(x.clone())
    }
    let error =
        refused(turned(&zeros([("N", 2), ("C", 3)])), ErrorKind::Misaligned, "the dims of the result");
    assert_eq!(error.repair(), Some(".align_to([\"C\", \"N\"])?"));
}

/// An error of the body keeps its own line and text; wrong arguments do not run the body.
#[test]
fn errors_of_the_body_are_its_own() {
    #[dims(x = "N", returns = "N")]
    fn body(x: &Tensor, ran: &mut bool) -> Result<Tensor> {
        *ran = true;
        x.sum("Z")
    }
    let mut ran = false;
    let error = body(&zeros([("N", 2)]), &mut ran).unwrap_err();
    assert_eq!((error.op(), error.location().line() + 4, ran), ("sum", line!(), true));
    ran = false;
    assert!(body(&zeros([("C", 2)]), &mut ran).is_err() && !ran);
}

/// A name of the program that the macro uses as well.
#[allow(dead_code)]
const SIGNATURE: usize = 7;

trait Shift {
    fn shift(&mut self, by: Tensor) -> Result<(Tensor, usize), Box<dyn std::error::Error>>;
}

struct Counter<T> {
    weight: Parameter,
    calls: T,
}

impl<T: From<u8> + std::ops::AddAssign> Shift for Counter<T> {
    #[dims(by = "N embed?", self.weight = "N", returns.0 = "N embed?")]
    fn shift(&mut self, mut by: Tensor) -> Result<(Tensor, usize), Box<dyn std::error::Error>> {
        self.calls += T::from(1);
        if by.ndim() == 1 {
            by.add_(self.weight.tensor())?;
            return Ok((by, SIGNATURE));
        }
        let met = by.add(self.weight.tensor().align_as(&by)?)?;
        Ok((met, SIGNATURE))
    }
}

#[test]
fn methods_of_traits_with_generics_and_other_errors() {
    let weight = Parameter::new(zeros([("N", 2)])).unwrap();
    let mut counter = Counter { weight, calls: 0_u32 };
    let (y, number) = counter.shift(Tensor::ones([("N", 2)]).unwrap()).unwrap();
    assert_eq!((y.to_vec::<f32>().unwrap(), number), (vec![1.0, 1.0], 7));
    assert!(counter.shift(zeros([("embed", 3), ("N", 2)])).is_ok());
    let counter: &mut dyn Shift = &mut counter;
    let error = counter.shift(zeros([("N", 3)])).unwrap_err();
    let error = error.downcast::<Error>().unwrap();
    assert!(
        error.message().starts_with("`self.weight` has size 2 in dim 'N', but `by` has size 3;"),
        "{error}"
    );
}

#[test]
fn values_borrowed_results_and_closures() {
    #[dims(x = "N", list = "N", returns = "N")]
    fn first<'a>(x: &'a NamedTensor, list: Vec<NamedTensor>) -> Result<&'a NamedTensor> {
        (0..list.len())
            .try_for_each(|_| if list.len() > 2 { Err(Error::other("too many")) } else { Ok(()) })?;
        Ok(x)
    }
    #[dims(x = "N")]
    fn lazy(x: &Tensor) -> Result<impl Iterator<Item = usize> + use<>> {
        let size = x.size("N")?;
        Ok((0..3).map(move |at| at * size))
    }
    let x = NamedTensor::zeros([("N", 2)]).unwrap();
    assert_eq!(first(&x, vec![x.clone()]).unwrap().sizes(), [2]);
    assert!(first(&x, vec![x.clone(); 3]).is_err());
    assert_eq!(lazy(&zeros([("N", 5)])).unwrap().collect::<Vec<usize>>(), [0, 5, 10]);
    assert!(lazy(&zeros([("C", 5)])).is_err());
}

/// Layers in a model, in other threads too.
#[test]
fn a_signature_on_forward() {
    #[derive(Module)]
    #[module(layer)]
    struct Head {
        out: Linear,
    }
    impl Head {
        #[dims(x = "N embed", returns = "N class=3")]
        fn forward(&self, x: &Tensor) -> Result<Tensor> {
            self.out.forward(x)
        }
    }
    let head = Head { out: Linear::new(("embed", 4), ("class", 3)).unwrap() };
    let model = Sequential::new().then(head);
    let shape = std::thread::scope(|scope| {
        let run = || model.forward(&zeros([("N", 2), ("embed", 4)])).unwrap().shape().to_string();
        scope.spawn(run).join().unwrap()
    });
    assert_eq!(shape, "[N=2, class=3]");
    let error = model.forward(&zeros([("N", 2), ("time", 5), ("embed", 4)])).unwrap_err();
    assert!(error.to_string().contains("has the further dim 'time'"), "{error}");
}

#[test]
fn zero_dims() {
    #[dims(x = "", returns = "...")]
    fn scalar(x: &Tensor) -> Result<Tensor> {
        Ok(x.clone())
    }
    assert!(scalar(&Tensor::zeros(()).unwrap()).is_ok());
    refused(
        scalar(&Tensor::zeros([1]).unwrap()),
        ErrorKind::Shape,
        "`x` has a further dim, which is unnamed;",
    );
}

#[test]
fn an_optional_dim_behind_the_others_can_be_missing() {
    #[dims(x = "[a ... b?]")]
    fn last(x: &Tensor) -> Result<()> {
        let _ = x;
        Ok(())
    }
    #[dims(x = "[... a? b]")]
    fn last_but_one(x: &Tensor) -> Result<()> {
        let _ = x;
        Ok(())
    }
    assert!(last(&zeros([("a", 1), ("c", 1)])).is_ok());
    assert!(last(&zeros([("a", 1), ("c", 1), ("b", 2)])).is_ok());
    refused(
        last(&zeros([("a", 1), ("b", 2), ("c", 1)])),
        ErrorKind::Misaligned,
        "the dims of `x` are in another order;",
    );
    assert!(last_but_one(&zeros([("x", 1), ("b", 1)])).is_ok());
    assert!(last_but_one(&zeros([("x", 1), ("a", 2), ("b", 1)])).is_ok());
    refused(
        last_but_one(&zeros([("a", 1), ("x", 2), ("b", 1)])),
        ErrorKind::Misaligned,
        "the dims of `x` are in another order;",
    );
}

/// What holds a tensor, as an argument and in the result.
#[test]
fn pointers_to_tensors() {
    use std::borrow::Cow;
    use std::rc::Rc;
    use std::sync::Arc;
    #[dims(a = "N", b = "N", c = "N", d = "N", e = "N", returns = "N")]
    fn all(
        a: Box<Tensor>,
        b: Rc<Tensor>,
        c: &Arc<Tensor>,
        d: Cow<'_, Tensor>,
        e: Option<Box<[Tensor; 2]>>,
    ) -> Result<Vec<Option<Arc<Tensor>>>> {
        let _ = (a, b, d, e);
        Ok(vec![None, Some(c.clone())])
    }
    let x = || zeros([("N", 2)]);
    let run = |e: usize| {
        let e = Some(Box::new([x(), zeros([("N", e)])]));
        all(Box::new(x()), Rc::new(x()), &Arc::new(x()), Cow::Owned(x()), e)
    };
    assert_eq!(run(2).unwrap().len(), 2);
    refused(run(3), ErrorKind::Shape, "`e` has size 3 in dim 'N', but `a` has size 2;");
}

/// A name that occurs once, and is near to one that the tensor has and another part says.
#[test]
fn a_misspelt_name_of_the_signature() {
    #[dims(q = "[N qurey embed=8]", k = "N query embed")]
    fn wrong(q: &Tensor, k: &Tensor) -> Result<()> {
        let _ = (q, k);
        Ok(())
    }
    let q = zeros([("N", 2), ("query", 4), ("embed", 8)]);
    let error = refused(wrong(&q, &q), ErrorKind::NameNotFound, "`q` has no dim 'qurey';");
    assert_eq!(error.repair(), Some("q = \"[N query embed=8]\", if 'qurey' is misspelt"));
    let other =
        refused(wrong(&q.rename(["N", "time", "embed"]).unwrap(), &q), ErrorKind::NameNotFound, "`q`");
    assert_eq!(other.repair(), None);
}
