//! The cells of recurrent layers.

/// The kind of cell: the formula of a step from the gates and the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// `h = tanh(a)`
    Tanh,
    /// `h = max(a, 0)`
    Relu,
    /// Gates `i f g o`: `c = f c + i g`, `h = o tanh(c)`.
    Lstm,
    /// Gates `r z n`: `h = (1 - z) n + z h`, where the state enters `n` through `r`.
    Gru,
}

impl Cell {
    /// The number of gates.
    pub fn gates(self) -> usize {
        match self {
            Cell::Tanh | Cell::Relu => 1,
            Cell::Gru => 3,
            Cell::Lstm => 4,
        }
    }
}
