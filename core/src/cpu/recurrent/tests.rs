use super::*;
use crate::cpu::random::{Generator, fill_normal};

/// The inputs `x h c w_ih w_hh b_ih b_hh w_hr`.
type Inputs = [Vec<f64>; 8];

struct Shape {
    cell: Cell,
    reverse: bool,
    lengths: Option<[usize; 3]>,
    projects: bool,
}

const STEPS: usize = 4;
const BATCH: usize = 3;
const INPUT: usize = 2;
const HIDDEN: usize = 5;

impl Shape {
    fn layer<'a>(&'a self, all: &'a Inputs) -> RecurrentLayer<'a, f64> {
        RecurrentLayer {
            cell: self.cell,
            steps: STEPS,
            batch: BATCH,
            input: INPUT,
            hidden: HIDDEN,
            state: self.state(),
            w_ih: &all[3],
            w_hh: &all[4],
            b_ih: Some(&all[5]),
            b_hh: Some(&all[6]),
            w_hr: self.projects.then_some(&all[7]),
            lengths: self.lengths.as_ref().map(|lengths| &lengths[..]),
            reverse: self.reverse,
        }
    }

    fn state(&self) -> usize {
        if self.projects { 2 } else { HIDDEN }
    }

    /// The states after each step, the gates, what is kept besides, the last state and the last cells.
    fn run(&self, all: &Inputs) -> [Vec<f64>; 5] {
        let has = |is: bool, len: usize| vec![0.0; if is { len } else { 0 }];
        let (is_lstm, items) = (self.cell == Cell::Lstm, STEPS * BATCH);
        let mut y = vec![0.0; items * self.state()];
        let mut gates = vec![0.0; items * self.cell.gates() * HIDDEN];
        let mut inner = has(is_lstm || self.cell == Cell::Gru, items * HIDDEN);
        let (mut h, mut c) = (all[1].clone(), if is_lstm { all[2].clone() } else { Vec::new() });
        let out = RecurrentOut { y: &mut y, gates: &mut gates, inner: &mut inner, h: &mut h, c: &mut c };
        self.layer(all).forward(&all[0], out);
        [y, gates, inner, h, c]
    }

    /// The sum of all results, weighted.
    fn total(&self, all: &Inputs, weights: &[f64]) -> f64 {
        let [y, _, _, h, c] = self.run(all);
        y.iter().chain(&h).chain(&c).zip(weights).map(|(x, weight)| x * weight).sum()
    }

    fn check(&self, draw: &mut dyn FnMut(usize) -> Vec<f64>) {
        let (state, width) = (self.state(), self.cell.gates() * HIDDEN);
        let lengths = [
            STEPS * BATCH * INPUT,
            BATCH * state,
            BATCH * HIDDEN,
            width * INPUT,
            width * state,
            width,
            width,
        ];
        let [x, h, c, w_ih, w_hh, b_ih, b_hh] = lengths.map(&mut *draw);
        let mut all = [x, h, c, w_ih, w_hh, b_ih, b_hh, draw(state * HIDDEN)];
        let weights = draw(STEPS * BATCH * state + BATCH * state + BATCH * HIDDEN);
        let (of_y, rest) = weights.split_at(STEPS * BATCH * state);
        let (of_h, of_c) = rest.split_at(BATCH * state);
        let [y, gates, inner, ..] = self.run(&all);
        let mut gradients = all.each_ref().map(|input| vec![0.0; input.len()]);
        gradients[1].copy_from_slice(of_h);
        gradients[2].copy_from_slice(of_c);
        let [dx, dh, dc, dw_ih, dw_hh, db_ih, db_hh, dw_hr] = gradients.each_mut().map(|x| &mut x[..]);
        let kept =
            SavedSteps { x: &all[0], h: &all[1], c: &all[2], y: &y, gates: &gates, inner: &inner, dy: of_y };
        let w_hr = if self.projects { dw_hr } else { &mut [] };
        let of = RecurrentGradients {
            x: dx,
            h: dh,
            c: dc,
            w_ih: dw_ih,
            w_hh: dw_hh,
            b_ih: db_ih,
            b_hh: db_hh,
            w_hr,
        };
        self.layer(&all).backward(kept, of);
        for which in 0..all.len() {
            if which == 2 && self.cell != Cell::Lstm || which == 7 && !self.projects {
                continue;
            }
            for at in 0..all[which].len() {
                let value = all[which][at];
                let mut side = |step: f64| {
                    all[which][at] = value + step;
                    self.total(&all, &weights)
                };
                let difference = (side(1e-5) - side(-1e-5)) / 2e-5;
                all[which][at] = value;
                let gradient = gradients[which][at];
                assert!(
                    (difference - gradient).abs() < 1e-6 * (1.0 + gradient.abs()),
                    "{:?}, reverse {}, lengths {:?}, input {which} at {at}: {difference} and {gradient}",
                    self.cell,
                    self.reverse,
                    self.lengths,
                );
            }
        }
    }
}

#[test]
fn gradients_are_differences() {
    let mut generator = Generator::from_seed(3);
    let mut draw = |len: usize| {
        let mut x = vec![0.0; len];
        fill_normal(&mut x, 0.0, 0.7, &mut generator);
        x
    };
    for cell in [Cell::Tanh, Cell::Relu, Cell::Lstm, Cell::Gru] {
        for (reverse, lengths) in
            [(false, None), (true, None), (true, Some([4, 1, 2])), (false, Some([0, 4, 3]))]
        {
            Shape { cell, reverse, lengths, projects: false }.check(&mut draw);
        }
    }
    Shape { cell: Cell::Lstm, reverse: false, lengths: None, projects: true }.check(&mut draw);
    Shape { cell: Cell::Lstm, reverse: true, lengths: Some([2, 4, 3]), projects: true }.check(&mut draw);
}
