//! Recurrent layers.

use crate::check::{by_subsets, values};
use crate::plain::Plain;
use namegrad::core::Cell;
use namegrad::prelude::*;

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The parameters of a layer, as rows.
struct Layer<'a> {
    cell: Cell,
    x: &'a Plain,
    w_ih: &'a Plain,
    w_hh: &'a Plain,
    b_ih: Option<&'a Plain>,
    b_hh: Option<&'a Plain>,
}

impl Layer<'_> {
    fn hidden(&self) -> usize {
        self.w_ih.sizes[0] / self.cell.gates()
    }

    /// The state and the cells after step `t` of sequence `n`, whose steps before it are `order`.
    fn after(&self, order: &[usize], n: usize, h: Vec<f64>, c: Vec<f64>) -> [Vec<f64>; 2] {
        let [.., input] = self.x.sizes[..] else { unreachable!("three dims") };
        order.iter().fold([h, c], |[h, c], t| {
            let bias = |bias: Option<&Plain>, gate| bias.map_or(0.0, |bias| bias.at(&[gate]));
            let of_input = |gate: usize| {
                let product = |i| self.w_ih.at(&[gate, i]) * self.x.at(&[*t, n, i]);
                (0..input).map(product).sum::<f64>() + bias(self.b_ih, gate)
            };
            let of_state = |gate: usize| {
                let product = |i| self.w_hh.at(&[gate, i]) * h[i];
                (0..h.len()).map(product).sum::<f64>() + bias(self.b_hh, gate)
            };
            let (size, both) = (self.hidden(), |gate: usize| of_input(gate) + of_state(gate));
            let each = |f: &dyn Fn(usize) -> f64| (0..size).map(f).collect::<Vec<f64>>();
            match self.cell {
                Cell::Tanh => [each(&|k| both(k).tanh()), c],
                Cell::Relu => [each(&|k| both(k).max(0.0)), c],
                Cell::Gru => {
                    let r = |k| sigmoid(both(k));
                    let z = |k| sigmoid(both(size + k));
                    let new = |k| (of_input(2 * size + k) + r(k) * of_state(2 * size + k)).tanh();
                    [each(&|k| (1.0 - z(k)) * new(k) + z(k) * h[k]), c]
                }
                Cell::Lstm => {
                    let cells = each(&|k| {
                        sigmoid(both(size + k)) * c[k] + sigmoid(both(k)) * both(2 * size + k).tanh()
                    });
                    [each(&|k| sigmoid(both(3 * size + k)) * cells[k].tanh()), cells]
                }
            }
        })
    }
}

fn row(x: &Plain, n: usize) -> Vec<f64> {
    (0..x.sizes[1]).map(|k| x.at(&[n, k])).collect()
}

cases! {
    recurrent {
        (x: values("T=3 N=2 I=2"), hx: values("N=2 H=2"), w_ih: values("A=2 I=2"), w_hh: values("A=2 H=2"); "tanh") y => "T=3 N=2 H=2" floats, |i| {
            let order: Vec<usize> = (0..=i[0]).collect();
            Layer { cell: Cell::Tanh, x, w_ih, w_hh, b_ih: None, b_hh: None }.after(&order, i[1], row(hx, i[1]), vec![])[0][i[2]]
        }, scale 3.0;
        (x: values("T=2 N=1 I=2"), hx: values("N=1 H=2"), w_ih: values("A=6 I=2"), w_hh: values("A=6 H=2"); "gru") hn => "N=1 H=2" floats, |i| {
            Layer { cell: Cell::Gru, x, w_ih, w_hh, b_ih: None, b_hh: None }.after(&[0, 1], i[0], row(hx, i[0]), vec![])[0][i[1]]
        }, scale 3.0;
        (x: values("T=2 N=2 I=1"), hx: values("N=2 H=1"), w_ih: values("A=4 I=1"), w_hh: values("A=4 H=1"), cx: values("N=2 H=1"); "lstm", true) cn => "N=2 H=1" floats, |i| {
            Layer { cell: Cell::Lstm, x, w_ih, w_hh, b_ih: None, b_hh: None }.after(&[1, 0], i[0], row(hx, i[0]), row(cx, i[0]))[1][i[1]]
        }, scale 3.0;
        (x: values("T=0 N=2 I=1"), hx: values("N=2 H=1"), w_ih: values("A=1 I=1"), w_hh: values("A=1 H=1"); "relu") hn => "N=2 H=1" floats, |i| hx.at(i), scale 3.0;
    }
}

/// Every cell in both directions, with biases and sequences of different lengths.
#[test]
fn sequences_end_where_they_end() -> Result<()> {
    manual_seed(0);
    let (steps, batch, input, hidden) = (5, 3, 2, 4);
    let lengths = Tensor::new([5, 0, 3])?;
    for cell in [Cell::Tanh, Cell::Relu, Cell::Gru, Cell::Lstm] {
        let width = cell.gates() * hidden;
        let x = Tensor::randn([steps, batch, input])?.to(DType::F64)?;
        let draw = |sizes: [usize; 2]| Tensor::randn(sizes)?.to(DType::F64);
        let (hx, cx) = (draw([batch, hidden])?, draw([batch, hidden])?);
        let (w_ih, w_hh, b) = (draw([width, input])?, draw([width, hidden])?, draw([2, width])?);
        let (b_ih, b_hh) = (b.select(0, 0)?, b.select(0, 1)?);
        let plain = [&x, &w_ih, &w_hh, &b_ih, &b_hh, &hx, &cx].map(crate::check::plain);
        let layer = Layer {
            cell,
            x: &plain[0],
            w_ih: &plain[1],
            w_hh: &plain[2],
            b_ih: Some(&plain[3]),
            b_hh: Some(&plain[4]),
        };
        for reverse in [false, true] {
            let mut options =
                RecurrentOptions::new().b_ih(&b_ih).b_hh(&b_hh).lengths(&lengths).reverse(reverse);
            if cell == Cell::Lstm {
                options = options.cx(&cx);
            }
            let (y, hn, cn) = x.recurrent_with(&hx, &w_ih, &w_hh, cell, options)?;
            let [y, hn, cn] = [&y, &hn, &cn].map(crate::check::plain);
            for (n, length) in [5, 0, 3].into_iter().enumerate() {
                let mut order: Vec<usize> = (0..length).collect();
                if reverse {
                    order.reverse();
                }
                let first = || (row(&plain[5], n), row(&plain[6], n));
                let [h, c] = layer.after(&order, n, first().0, first().1);
                for k in 0..hidden {
                    assert!((hn.at(&[n, k]) - h[k]).abs() < 1e-12, "{cell:?} {reverse}");
                    assert!(
                        cell != Cell::Lstm || (cn.at(&[n, k]) - c[k]).abs() < 1e-12,
                        "{cell:?} {reverse}"
                    );
                }
                for (at, t) in order.iter().enumerate() {
                    let [h, _] = layer.after(&order[..=at], n, first().0, first().1);
                    assert!(
                        (0..hidden).all(|k| (y.at(&[*t, n, k]) - h[k]).abs() < 1e-12),
                        "{cell:?} {reverse}"
                    );
                }
                assert!((length..steps).all(|t| (0..hidden).all(|k| y.at(&[t, n, k]) == 0.0)));
            }
        }
    }
    Ok(())
}

/// For any subset of the inputs, the fused backward pass equals that of the steps one by one.
#[test]
fn gradients_of_any_subset() -> Result<()> {
    manual_seed(1);
    let (batch, input, hidden, state) = (3, 2, 4, 2);
    let lengths = Tensor::new([4, 2, 3])?;
    for cell in [Cell::Tanh, Cell::Relu, Cell::Gru, Cell::Lstm] {
        let width = cell.gates() * hidden;
        let state = if cell == Cell::Lstm { state } else { hidden };
        let mut sizes = vec![
            vec![4, batch, input],
            vec![batch, state],
            vec![width, input],
            vec![width, state],
            vec![width],
            vec![width],
        ];
        if cell == Cell::Lstm {
            sizes.extend([vec![batch, hidden], vec![state, hidden]]);
        }
        let inputs: Vec<Tensor> = sizes.into_iter().map(Tensor::randn).collect::<Result<_>>()?;
        for lengths in [None, Some(&lengths)] {
            by_subsets(&inputs, |inputs| {
                let mut options =
                    RecurrentOptions::new().b_ih(&inputs[4]).b_hh(&inputs[5]).reverse(lengths.is_some());
                options.lengths = lengths.map(Into::into);
                if cell == Cell::Lstm {
                    options = options.cx(&inputs[6]).w_hr(&inputs[7]);
                }
                let (y, hn, cn) =
                    inputs[0].recurrent_with(&inputs[1], &inputs[2], &inputs[3], cell, options)?;
                Tensor::cat([y.reshape([-1])?, hn.reshape([-1])?, cn.reshape([-1])?], 0)
            })?;
        }
    }
    Ok(())
}

#[test]
fn names_and_wrong_calls() -> Result<()> {
    let x = Tensor::ones([("time", 3), ("N", 2), ("in", 4)])?;
    let hx = Tensor::ones([("N", 2), ("hidden", 5)])?;
    let (w_ih, w_hh) = (Tensor::ones([5, 4])?, Tensor::ones([5, 5])?);
    let (y, hn, _) = x.recurrent(&hx, &w_ih, &w_hh, Cell::Tanh)?;
    assert_eq!((y.shape().to_string(), hn.shape()), ("[time=3, N=2, hidden=5]".into(), hx.shape()));
    let kind = |y: Result<(Tensor, Tensor, Tensor)>| y.unwrap_err().kind();
    assert_eq!(kind(x.recurrent(&hx, &w_ih, &w_hh, Cell::Gru)), ErrorKind::Shape);
    assert_eq!(kind(x.recurrent(&hx, &w_hh, &w_hh, Cell::Tanh)), ErrorKind::Shape);
    assert_eq!(kind(x.recurrent(hx.to(DType::F64)?, &w_ih, &w_hh, Cell::Tanh)), ErrorKind::DType);
    let options = RecurrentOptions::new;
    let with = |options| kind(x.recurrent_with(&hx, &w_ih, &w_hh, Cell::Tanh, options));
    assert_eq!(with(options().cx(&hx)), ErrorKind::Value);
    // Its gradient was zero.
    assert_eq!(with(options().w_hr(&w_hh)), ErrorKind::Value);
    let (long, short) = (Tensor::new([4, 1])?, Tensor::new([1])?);
    assert_eq!(with(options().lengths(&long)), ErrorKind::Value);
    assert_eq!(with(options().lengths(&short)), ErrorKind::Shape);
    Ok(())
}
